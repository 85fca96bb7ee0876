# Completion for turnkeep: asks the program itself what may come next.
function __turnkeep_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] complete -- $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c turnkeep -f -a '(__turnkeep_complete)'
