# Completion of mcpx for fish. Put it in place with:
#   mcpx completions fish > ~/.config/fish/completions/mcpx.fish
# What may come next is asked of mcpx itself; it starts neither a daemon nor a server.
function __mcpx_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct | string unescape 2>/dev/null)
    for line in ($before[1] complete fish $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :directories
                __fish_complete_directories "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c mcpx -f -a '(__mcpx_complete)'
