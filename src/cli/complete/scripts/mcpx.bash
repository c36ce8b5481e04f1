# Completion of mcpx for bash. Put it in place with:
#   mcpx completions bash > ~/.local/share/bash-completion/completions/mcpx
# or, for this shell alone: source <(mcpx completions bash)
# What may come next is asked of mcpx itself; it starts neither a daemon nor a server.
_mcpx() {
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} word
    local program=${COMP_WORDS[0]/#\~/$HOME}
    COMPREPLY=()
    while IFS= read -r word; do
        case $word in
            :files) compopt -o filenames; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current") ;;
            :directories) compopt -o filenames; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$current") ;;
            :open) compopt -o nospace ;;
            *) COMPREPLY+=("$word") ;;
        esac
    done < <("$program" complete bash "$line" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -F _mcpx mcpx
