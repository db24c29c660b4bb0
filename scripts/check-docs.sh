#!/bin/bash
# check-docs.sh: the body of `make test-docs`
#
# Holds the documentation to what the program does:
#   - links to files in README.md, docs/ and conf-examples/ lead somewhere;
#   - README's ```console blocks are run, in one copy of the checkout, and give
#     the outputs shown;
#   - its ```nginx blocks are accepted by `nginx -t`, or, where the fence names
#     a file, are lines of that file;
#   - its table of sizes is what `ngx-bloom size` says;
#   - it describes each directive and variable, with its contexts, and no other;
#   - `make run` serves what it promises.
#
# In a console block a line "$ COMMAND" is followed by its output, standard
# error included. There "..." stands for any text, also of several lines; other
# ports are used for 8080 and 8081; and a curl is repeated for some seconds
# while its output differs, since a reload takes a moment.

set -u
cd "$(dirname "$0")/.." || exit 1

nginx=${NGINX:-$(command -v nginx || echo /usr/sbin/nginx)}
PATH=$PWD/build:$(dirname "$nginx"):$PATH
top=$PWD
doc=$top/README.md
module=$top/build/ngx_http_bloom_module.so
failed=0

for file in "$nginx" "$module" build/ngx-bloom; do
    if [ ! -e "$file" ]; then
        echo "$0: $file is missing; \`make test-docs\` builds first" >&2
        exit 1
    fi
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/bloom-docs-XXXXXX") || exit 1
chmod 755 "$scratch"

cleanup() {
    if [ -s "$scratch/conf-examples/nginx.pid" ]; then
        kill "$(cat "$scratch/conf-examples/nginx.pid")" 2> /dev/null
    fi
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

ok() { echo "ok - $1"; }

not_ok() {
    echo "not ok - $1"
    printf '%s\n' "${@:2}" | sed 's/^/#   /'
    failed=1
}

# same WHAT EXPECTED ACTUAL

same() {
    if [ "$2" = "$3" ]; then
        ok "$1"
    else
        not_ok "$1" "expected:" "$2" "actual:" "$3"
    fi
}

free_port() {
    local port=$1

    while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do
        port=$((port + 1))
    done

    echo $port
}


# ---- links ----

# A heading's anchor is the heading in lower case, without punctuation, and
# with "-" for each space.

anchors() {
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' \
    | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
    local file link path bad=

    for file in README.md docs/*.md conf-examples/*.md t/*.md; do
        [ -e "$file" ] || continue

        while IFS= read -r link; do
            case $link in *://*) continue ;; esac

            path=$file
            if [ -n "${link%%#*}" ]; then
                path=$(dirname "$file")/${link%%#*}
            fi

            if [ ! -e "$path" ]; then
                bad="$bad$file: $link does not exist"$'\n'

            elif [ "$link" != "${link#*#}" ] \
                 && ! anchors "$path" | grep -qxF "${link#*#}"
            then
                bad="$bad$file: $link names no heading"$'\n'
            fi
        done < <(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//')
    done

    same "links lead to files and headings" "" "$bad"
}


# ---- blocks ----

# check_console FIRST_LINE TEXT

check_console() {
    local line command= expected= at=$1 number=$1

    while IFS= read -r line; do
        number=$((number + 1))

        if [ "${line#\$ }" != "$line" ]; then
            run_command "$at" "$command" "$expected"
            command=${line#\$ }
            expected=
            at=$number
        else
            expected=$expected$line$'\n'
        fi
    done <<< "$2"

    run_command "$at" "$command" "$expected"
}

# run_command LINE COMMAND EXPECTED

run_command() {
    local command pattern actual try tries=1

    [ -n "$2" ] || return 0

    command=$(use_ports <<< "$2")
    case $command in curl*) tries=50 ;; esac

    # each character for itself, but "..." for anything
    pattern=$(use_ports <<< "${3%$'\n'}" | sed 's/[][\\*?]/\\&/g; s/\.\.\./*/g')

    for ((try = 0; try < tries; try++)); do
        actual=$(cd "$scratch" && timeout 60 bash -c "$command" 2>&1 \
                                  < /dev/null | tr -d '\r')

        # shellcheck disable=SC2053
        if [[ $actual == $pattern ]]; then
            ok "README.md:$1: $2"
            return
        fi

        sleep 0.1
    done

    not_ok "README.md:$1: $2" "expected:" "$3" "actual:" "$actual"
}

use_ports() { sed "s/\b8080\b/$port/g; s/\b8081\b/$backend/g"; }

# check_excerpt LINE FILE TEXT: the text's lines, one after another, are in the
# file, whatever they are indented by

check_excerpt() {
    local file

    file=$(sed 's/^ *//' "$top/$2")$'\n'

    if [[ $file == *"$(sed 's/^ *//' <<< "$3")"$'\n'* ]]; then
        ok "README.md:$1: an excerpt of $2"
    else
        not_ok "README.md:$1: an excerpt of $2" "differs from the file"
    fi
}

# check_snippet LINE TEXT: part of an http block

check_snippet() {
    local dir=$scratch/snippet said zone

    mkdir -p "$dir"
    for zone in ids bad good; do
        [ -e "$dir/$zone.bloom" ] \
        || ngx-bloom build -q -o "$dir/$zone.bloom" - <<< "$zone" || return
    done

    {
        echo "load_module $module; pid nginx.pid; error_log stderr;"
        echo "events {} http {"
        echo "include $top/conf-examples/local.conf;"
        echo "upstream backend { server 127.0.0.1:$backend; }"
        echo "$2"
        for zone in ids bad good; do
            grep -q "zone=$zone[: ].*\(file\|capacity\)=" <<< "$2" \
            || echo "bloom_zone zone=$zone file=$zone.bloom;"
        done
        echo "}"
    } > "$dir/nginx.conf"

    if said=$("$nginx" -e stderr -p "$dir" -c nginx.conf -t 2>&1); then
        ok "README.md:$1: nginx accepts the example"
    else
        not_ok "README.md:$1: nginx accepts the example" "$said"
    fi
}

check_blocks() {
    local line number=0 begin fence= info text

    mkdir "$scratch/build"
    ln -s "$top"/build/ngx* "$scratch/build/"
    (cd "$top" && cp -r conf-examples "$scratch/" \
               && cd "$scratch/conf-examples" \
               && rm -rf -- *.bloom *.log *.pid cache state temp-*)

    port=$(free_port 18080)
    backend=$(free_port $((port + 1)))
    sed -i "s/\b8080\b/$port/g; s/\b8081\b/$backend/g" \
        "$scratch"/conf-examples/*.conf

    while IFS= read -r line; do
        number=$((number + 1))

        if [ -z "$fence" ] && [ "${line#\`\`\`}" != "$line" ]; then
            fence=1
            info=${line#\`\`\`}
            begin=$number
            text=

        elif [ -n "$fence" ] && [ "$line" = '```' ]; then
            fence=

            case $info in
                console)  check_console "$begin" "${text%$'\n'}" ;;
                nginx)    check_snippet "$begin" "${text%$'\n'}" ;;
                nginx\ *) check_excerpt "$begin" "${info#nginx }" \
                                        "${text%$'\n'}" ;;
                sh|text)  ;;
                *)        not_ok "README.md:$begin: unknown fence \"$info\"" ;;
            esac

        elif [ -n "$fence" ]; then
            text=$text$line$'\n'
        fi
    done < "$doc"
}


# ---- sizes ----

# memory LAYOUT ITEMS RATE: as the table has it

memory() {
    ngx-bloom size --layout "$1" -n "$2" -p "$3" --json \
    | grep -oE '"bytes": *[0-9]+' | head -n 1 | grep -oE '[0-9]+' \
    | awk '{ m = $1 / 1048576
             if (m < 1000) { printf "%.1f MiB", m }
             else { printf "%.2f GiB", m / 1024 } }'
}

size_table() {
    local items rate row

    for items in 1m 10m 100m 1g; do
        row="| $items"
        for rate in 1e-2 1e-3 1e-4 1e-5 1e-6; do
            row="$row | $(memory blocked $items $rate)"
            row="$row / $(memory classic $items $rate)"
        done
        echo "$row |"
    done
}

check_sizes() {
    same "the table of sizes" "$(size_table)" \
         "$(grep -E '^\| [0-9]+[mg] \|' "$doc")"
}


# ---- directives and variables ----

# "name: contexts" of each command in the module, and of each in README

commands() {
    tr -d '\n' < ngx_http_bloom_module.c \
    | grep -oE '\{ ngx_string\("bloom_[a-z_]+"\), +[A-Z0-9_|]+' \
    | while IFS= read -r line; do
        contexts=
        case $line in *HTTP_MAIN*) contexts="$contexts, http" ;; esac
        case $line in *HTTP_SRV*) contexts="$contexts, server" ;; esac
        case $line in *HTTP_LOC*) contexts="$contexts, location" ;; esac
        echo "$(cut -d '"' -f 2 <<< "$line"): ${contexts#, }"
    done | sort
}

described() {
    awk '/^### bloom_/ { name = $2 }
         /^\| Context/ && name {
             gsub(/^\| Context \| | \|$/, ""); gsub(/`/, "")
             print name ": " $0; name = ""
         }' "$doc" | sort
}

check_names() {
    same "the directives and their contexts" "$(commands)" "$(described)"

    same "the variables" \
         "$(grep -oE 'ngx_string\("bloom_[a-z_]+"\), NULL' \
                 src/ngx_http_bloom_variables.c | cut -d '"' -f 2 | sort)" \
         "$(grep -oE '^### \$bloom_[a-z_]+' "$doc" | cut -d '$' -f 2 | sort)"
}


check_links
check_names
check_sizes
check_blocks

if scripts/run.sh --check > "$scratch/run.log" 2>&1; then
    grep '^ok ' "$scratch/run.log"
else
    cat "$scratch/run.log"
    not_ok "make run serves, answers and stops"
fi

[ $failed = 0 ]
