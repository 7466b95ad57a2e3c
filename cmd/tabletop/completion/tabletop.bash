# Completion of tabletop for bash.
_tabletop() {
    local word line kind=none glued=0 i
    local words=()
    # Bash splits words at = and :, which flags and addresses contain.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]} > 0)) && { ((glued)) || [[ $word == [=:]* ]]; }; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        glued=0
        if [[ $word == *[=:] ]]; then glued=1; fi
    done
    local value=${words[${#words[@]} - 1]} prefix=
    if [[ $COMP_WORDBREAKS == *=* && $value == *=* ]]; then
        prefix=${value%=*}= # readline keeps this part
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :* ]]; then
            kind=${line#:}
            continue
        fi
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$prefix"}")
    done < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
    local action=
    case $kind in
    files) action=-f ;;
    folders) action=-d ;;
    *) return ;;
    esac
    value=${value##*=}
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do
        if [[ -z $prefix && ${words[${#words[@]} - 1]} == *=* ]]; then
            line=${words[${#words[@]} - 1]%=*}=$line
        fi
        COMPREPLY+=("$line")
    done < <(compgen $action -- "$value")
}
complete -F _tabletop tabletop
