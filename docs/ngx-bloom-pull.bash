# bash completion of ngx-bloom-pull

_ngx_bloom_pull() {
    local word=${COMP_WORDS[COMP_CWORD]}

    COMPREPLY=()

    case ${COMP_WORDS[COMP_CWORD - 1]} in
        --public-key | --metrics) return ;;
        --reload | --max-size | --max-time) compopt +o default; return ;;
    esac

    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W '--public-key --reload
                --allow-older --metrics --max-size --max-time --help' -- "$word") ;;
    esac
}

complete -o default -F _ngx_bloom_pull ngx-bloom-pull
