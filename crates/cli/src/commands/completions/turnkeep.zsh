#compdef turnkeep
# Completion for turnkeep: asks the program itself what may come next.
_turnkeep() {
    local -a found
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    if (( ${#found} )); then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
if [[ $funcstack[1] == _turnkeep ]]; then
    _turnkeep "$@"
else
    compdef _turnkeep turnkeep
fi
