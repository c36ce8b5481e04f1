#compdef mcpx
# Completion of mcpx for zsh. Put it in place with:
#   mcpx completions zsh > "${fpath[1]}/_mcpx"
# or, for this shell alone: source <(mcpx completions zsh)
# What may come next is asked of mcpx itself; it starts neither a daemon nor a server.
_mcpx() {
    local -a lines whole open
    local line word about
    lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        case $line in
            '') continue ;;
            :files) _files; continue ;;
            :directories) _files -/; continue ;;
        esac
        word=${line%%$'\t'*} about=${line#*$'\t'}
        word=${word//\\/\\\\} word=${word//:/\\:}
        if [[ $about == '+'* ]]; then open+=("$word:${about#?}"); else whole+=("$word:${about#?}"); fi
    done
    (( ${#open} )) && _describe -t words mcpx open -S ''
    (( ${#whole} )) && _describe -t words mcpx whole
}
if [ "${funcstack[1]}" = _mcpx ]; then
    _mcpx "$@"
else
    compdef _mcpx mcpx
fi
