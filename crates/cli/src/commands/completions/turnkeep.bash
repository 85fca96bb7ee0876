# Completion for turnkeep: asks the program itself what may come next.
_turnkeep() {
    local line=${COMP_LINE:0:COMP_POINT} words word head
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    mapfile -t COMPREPLY < <("${words[0]}" complete -- "${words[@]}" 2>/dev/null)
    # bash begins a new word behind these signs, and replaces only that.
    head=${word%"${word##*[@:=]}"}
    if [[ -n $head && $COMP_WORDBREAKS == *"${head: -1}"* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$head"}")
    fi
}
complete -o default -F _turnkeep turnkeep
