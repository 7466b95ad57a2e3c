#compdef tabletop
# Completion of tabletop for zsh.
_tabletop() {
    local line name kind=none
    local -a plain open
    for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ $line == :* ]]; then
            kind=${line#:}
            continue
        fi
        name=${${line%%$'\t'*}//:/\\:}
        if [[ $line == *$'\t'* ]]; then
            name+=:${line#*$'\t'}
        fi
        if [[ $name == *=(|:*) ]]; then
            open+=("$name")
        else
            plain+=("$name")
        fi
    done
    (($#plain)) && _describe -t values value plain
    (($#open)) && _describe -t values value open -S ''
    case $kind in
    files) compset -P '*='; _files ;;
    folders) compset -P '*='; _files -/ ;;
    esac
    return 0
}
if [[ $funcstack[1] == _tabletop ]]; then
    _tabletop "$@"
else
    compdef _tabletop tabletop
fi
