# bash completion of ngx-bloom
#
# Made by "make man" from the tool's tables.

# Sets kind, the kind of the value of an option of a command, and words.

_ngx_bloom_value() {
    case $1:$2 in
    build:--output | build:-o) kind=file ;;
    build:--fpr | build:-p) kind=word words='' ;;
    build:--capacity | build:-n) kind=word words='' ;;
    build:--layout) kind=word words='blocked classic fuse' ;;
    build:--hash) kind=word words='murmur3 siphash' ;;
    build:--form) kind=word words='raw lower host url' ;;
    build:--seed) kind=word words='' ;;
    build:--like) kind=file ;;
    build:--as-of) kind=word words='start' ;;
    build:--source) kind=word words='' ;;
    build:--from) kind=word words='auto lines adblock hosts dnsmasq unbound rpz json' ;;
    build:--exceptions) kind=file ;;
    build:--without) kind=file ;;
    build:--max-errors) kind=word words='' ;;
    build:--max-skipped) kind=word words='' ;;
    build:--threads | build:-j) kind=word words='' ;;
    build:--memory) kind=word words='' ;;
    build:--temp) kind=directory ;;
    build:--except) kind=file ;;
    build:--min-keys) kind=word words='' ;;
    build:--max-loss) kind=word words='off' ;;
    build:--max-growth) kind=word words='off' ;;
    build:--replaces) kind=file ;;
    build:--must-have) kind=file ;;
    build:--must-not-have) kind=file ;;
    test:--file | test:-f) kind=file ;;
    expand:--form) kind=word words='url host lower raw' ;;
    expand:--file | expand:-f) kind=file ;;
    verify:--min-keys) kind=word words='' ;;
    verify:--max-loss) kind=word words='off' ;;
    verify:--max-growth) kind=word words='off' ;;
    verify:--replaces) kind=file ;;
    verify:--must-have) kind=file ;;
    verify:--must-not-have) kind=file ;;
    verify:--not-older-than) kind=file ;;
    size:--items | size:-n) kind=word words='' ;;
    size:--fpr | size:-p) kind=word words='' ;;
    size:--memory | size:-m) kind=word words='' ;;
    size:--layout) kind=word words='blocked classic fuse' ;;
    size:--max-keys) kind=word words='' ;;
    size:--expire) kind=word words='' ;;
    add:--as-of) kind=word words='start' ;;
    add:--source) kind=word words='' ;;
    add:--from) kind=word words='auto lines adblock hosts dnsmasq unbound rpz json' ;;
    add:--exceptions) kind=file ;;
    add:--without) kind=file ;;
    add:--max-errors) kind=word words='' ;;
    add:--max-skipped) kind=word words='' ;;
    add:--threads | add:-j) kind=word words='' ;;
    add:--memory) kind=word words='' ;;
    add:--temp) kind=directory ;;
    merge:--output | merge:-o) kind=file ;;
    merge:--min-keys) kind=word words='' ;;
    merge:--max-loss) kind=word words='off' ;;
    merge:--max-growth) kind=word words='off' ;;
    merge:--replaces) kind=file ;;
    follow:--stream) kind=word words='' ;;
    follow:--source) kind=word words='the source of zones name in their bloom' ;;
    follow:--zone) kind=word words='' ;;
    follow:--from) kind=word words='beginning now' ;;
    follow:--timeout) kind=word words='' ;;
    follow:--answer-timeout) kind=word words='' ;;
    follow:--netrc) kind=file ;;
    follow:--proxy) kind=word words='' ;;
    follow:--cacert) kind=file ;;
    follow:--cert) kind=file ;;
    follow:--cert-key) kind=file ;;
    import:--output | import:-o) kind=file ;;
    import:--from) kind=word words='guava redisbloom bitmap go-zero redisson dcso bits-and-blooms spark libbloom' ;;
    import:--funnel) kind=word words='bytes utf16 long int' ;;
    import:--bits) kind=word words='' ;;
    import:--hashes) kind=word words='' ;;
    import:--scheme) kind=word words='guava64 guava32 go-zero redisson redisbloom dcso bits-and-blooms spark1 spark2 libbloom double' ;;
    import:--shard) kind=word words='' ;;
    import:--capacity | import:-n) kind=word words='' ;;
    import:--fpr | import:-p) kind=word words='' ;;
    import:--form) kind=word words='lower host url raw' ;;
    import:--check) kind=file ;;
    import:--as-of) kind=word words='start' ;;
    import:--timeout) kind=word words='' ;;
    import:--cacert) kind=file ;;
    import:--cert) kind=file ;;
    import:--cert-key) kind=file ;;
    import:--min-keys) kind=word words='' ;;
    import:--max-loss) kind=word words='off' ;;
    import:--max-growth) kind=word words='off' ;;
    import:--replaces) kind=file ;;
    export:--output | export:-o) kind=file ;;
    export:--to) kind=word words='guava dcso bits-and-blooms spark redisbloom bitmap' ;;
    export:--key) kind=word words='' ;;
    analyze:--capacity | analyze:-n) kind=word words='' ;;
    analyze:--fpr | analyze:-p) kind=word words='' ;;
    analyze:--layout) kind=word words='blocked classic' ;;
    analyze:--hash) kind=word words='murmur3 siphash' ;;
    analyze:--seed) kind=word words='' ;;
    analyze:--runs) kind=word words='' ;;
    analyze:--steps) kind=word words='' ;;
    analyze:--asked) kind=word words='' ;;
    analyze:--threads | analyze:-j) kind=word words='' ;;
    status:--timeout) kind=word words='' ;;
    status:--sample) kind=file ;;
    status:--netrc) kind=file ;;
    status:--proxy) kind=word words='' ;;
    status:--cacert) kind=file ;;
    status:--cert) kind=file ;;
    status:--cert-key) kind=file ;;
    *) kind=none ;;
    esac
}

# Sets words to the options of a command.

_ngx_bloom_options() {
    case $1 in
    build) words=' --output --fpr --capacity --layout --hash --form --seed --like --as-of --source --from --exceptions --without --max-errors --max-skipped --null --threads --memory --temp --quiet --except --except-wins --allow-empty --min-keys --max-loss --max-growth --replaces --must-have --must-not-have --json --help' ;;
    info) words=' --removed --exceptions --null --json --help' ;;
    test) words=' --file --null --count --quiet --json --help' ;;
    expand) words=' --form --file --null --json --help' ;;
    verify) words=' --min-keys --max-loss --max-growth --replaces --must-have --must-not-have --not-older-than --quiet --json --help' ;;
    size) words=' --items --fpr --memory --layout --max-keys --expire --json --help' ;;
    add) words=' --as-of --source --from --exceptions --without --max-errors --max-skipped --null --threads --memory --temp --quiet --json --help' ;;
    merge) words=' --output --min-keys --max-loss --max-growth --replaces --quiet --json --help' ;;
    journal) words=' --keys --removed --null --quiet --json --help' ;;
    follow) words=' --stream --source --zone --from --empty --once --timeout --answer-timeout --netrc --proxy --cacert --cert --cert-key --quiet --help' ;;
    import) words=' --output --from --funnel --bits --hashes --scheme --shard --capacity --fpr --form --check --as-of --timeout --cacert --cert --cert-key --min-keys --max-loss --max-growth --replaces --quiet --json --help' ;;
    export) words=' --output --to --key --quiet --json --help' ;;
    analyze) words=' --capacity --fpr --layout --hash --seed --runs --steps --asked --threads --quiet --csv --json --help' ;;
    status) words=' --timeout --sample --netrc --proxy --cacert --cert --cert-key --json --help' ;;
    *) words='--help --version' ;;
    esac
}

_ngx_bloom() {
    local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD
    local word command=${COMP_WORDS[1]} kind words commands='build info test expand verify size add merge journal follow import export analyze status help'

    COMPREPLY=()
    compopt -o default 2> /dev/null

    # readline makes words of "--layout", "=" and "blocked"

    if [[ $cur == = ]]; then
        cur=
        at=$((at + 1))
    fi
    if [[ ${COMP_WORDS[at - 1]} == = ]]; then
        at=$((at - 1))
    fi

    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
        words=$commands
        [[ $cur == -* ]] && words='--help --version'
        compopt +o default 2> /dev/null
    else
        _ngx_bloom_value "$command" "${COMP_WORDS[at - 1]}"

        case $kind in
        file) return ;;
        directory)
            compopt -o dirnames +o default 2> /dev/null
            return ;;
        word) compopt +o default 2> /dev/null ;;
        none)
            [[ $cur == -* ]] || return
            _ngx_bloom_options "$command" ;;
        esac
    fi

    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -W "$words" -- "$cur")
}

complete -o default -F _ngx_bloom ngx-bloom
