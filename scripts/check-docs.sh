#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-docs.sh: compares the documentation with the program (`make test-docs`)
#
# It checks that
#   - each link in README.md, docs/, conf-examples/ and t/ leads to a file and,
#     if it names one, to a heading in it;
#   - the commands in the ```console blocks of README.md and of the documents
#     listed at the end of this file give the outputs shown;
#   - `nginx -t` accepts the ```nginx blocks of these documents; a block whose
#     fence names a file is instead an excerpt of that file;
#   - the table of sizes in docs/sizing.md is what `ngx-bloom size` computes;
#   - docs/directives.md describes each directive, with its contexts, and each
#     variable of the source, and no other;
#   - docs/api.md lists the requests that the source has, and its tables are what
#     `make docs` makes of those of the source; README.md has at most 300 lines;
#   - docs/architecture.md lists the files of the source, and docs/state.md the
#     files of a state directory and the fields of its control page;
#   - docs/ngx-bloom.1 and docs/ngx-bloom.bash are what `make man` makes of the
#     tool's tables;
#   - CHANGELOG.md has a section [Unreleased] of at most 80 lines, and names no
#     newer release than the version of the source, which debian/changelog has;
#   - no old name is left: see scripts/old-names.pl;
#   - the lists of files in debian/ name files that exist;
#   - `make run` serves what it promises.
#
# With --tables it runs no command of a document: it checks the links, the tables
# and what else it compares with the source, in some seconds. With other arguments
# it checks the blocks of these documents only.
#
# Each document with blocks gets a copy of the checkout for its commands.  In a
# console block a line "$ COMMAND" is followed by its output, standard error
# included, in which "..." stands for any text, line ends included.  The ports
# 8080 to 8082 are replaced by free ones.  A reload takes a moment, so a curl is
# repeated for some seconds until its output is as shown.

set -u
cd "$(dirname "$0")/.." || exit 1

nginx=${NGINX:-$(command -v nginx || echo /usr/sbin/nginx)}
PATH=$PWD/build:$(dirname "$nginx"):$PATH
top=$PWD
doc=README.md
module=$top/build/ngx_http_bloom_module.so
failed=0

for file in "$nginx" "$module" build/ngx-bloom build/manpage \
            build/completion; do
    if [ ! -e "$file" ]; then
        echo "$0: $file is missing; \`make test-docs\` builds first" >&2
        exit 1
    fi
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/bloom-docs-XXXXXX") || exit 1
chmod 755 "$scratch"

cleanup() {
    stop_nginx
    rm -rf "$scratch"
}

# Stops an nginx that a document has left running.

stop_nginx() {
    if [ -s "$scratch/conf-examples/nginx.pid" ]; then
        kill "$(cat "$scratch/conf-examples/nginx.pid")" 2> /dev/null
    fi
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

# A heading's anchor is the heading in lower case, without punctuation, and with
# "-" for each space.  If several headings of a file give the same anchor, all
# but the first get a number: "-1", "-2" and so on.

anchors() {
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' \
    | sed 's/[^a-z0-9 _-]//g; s/ /-/g' \
    | awk '{ print $0 (n[$0]++ ? "-" n[$0] - 1 : "") }'
}

check_links() {
    local file link path bad=
    local -A known

    for file in *.md {docs,bench,conf-examples,t}/*.md {conf-examples,t}/*/*.md
    do
        [ -e "$file" ] || continue

        while IFS= read -r link; do
            case $link in *://*) continue ;; esac

            path=$file
            if [ -n "${link%%#*}" ]; then
                path=$(dirname "$file")/${link%%#*}
            fi

            if [ ! -e "$path" ]; then
                bad="$bad$file: $link does not exist"$'\n'

            elif [ "$link" != "${link#*#}" ]; then
                : "${known[$path]:=$(anchors "$path")}"

                grep -qxF -e "${link#*#}" <<< "${known[$path]}" \
                || bad="$bad$file: $link names no heading"$'\n'
            fi
        done < <(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//')
    done

    same "links lead to files and headings" "" "$bad"
}


# ---- blocks ----

# check_console FIRST_LINE TEXT: runs the commands of a block

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

# run_command LINE COMMAND EXPECTED: runs a command and compares its output

run_command() {
    local command pattern actual try tries=1

    [ -n "$2" ] || return 0

    command=$(use_ports <<< "$2")
    case $command in curl*) tries=50 ;; esac

    # a pattern in which only "..." is special: it matches anything
    pattern=$(use_ports <<< "${3%$'\n'}" | sed 's/[][\\*?]/\\&/g; s/\.\.\./*/g')

    for ((try = 0; try < tries; try++)); do
        actual=$(cd "$scratch" && timeout 60 bash -c "$command" 2>&1 \
                                  < /dev/null | tr -d '\r')

        # shellcheck disable=SC2053
        if [[ $actual == $pattern ]]; then
            ok "$doc:$1: $2"
            return
        fi

        sleep 0.1
    done

    not_ok "$doc:$1: $2" "expected:" "$3" "actual:" "$actual"
}

use_ports() {
    sed "s/\b8080\b/$port/g; s/\b8081\b/$backend/g; s/\b8082\b/$third/g" "$@"
}

# check_excerpt LINE FILE TEXT: checks that the file contains the lines of the
# text, in this order and next to each other; their indentation does not matter

check_excerpt() {
    local file

    file=$(sed 's/^ *//' "$top/$2")$'\n'

    if [[ $file == *"$(sed 's/^ *//' <<< "$3")"$'\n'* ]]; then
        ok "$doc:$1: an excerpt of $2"
    else
        not_ok "$doc:$1: an excerpt of $2" "differs from the file"
    fi
}

# check_snippet LINE TEXT: checks that nginx accepts the text in an http block or,
# if it begins with a location, in a server.  The zones "ids", "good" and "bad" (of
# the form url), an image "urls" of that form with files of keys, and
# the upstream "backend" exist.

check_snippet() {
    local dir=$scratch/snippet said zone form block=$2

    case $2 in location*) block="server { $2 }" ;; esac

    mkdir -p "$dir"
    for zone in ids bad good; do
        form=raw
        [ $zone = bad ] && form=url
        [ -e "$dir/$zone.bloom" ] \
        || ngx-bloom build -q --as-of "$(date +%s)" -o "$dir/$zone.bloom" \
                     --form $form - <<< "$zone" || return
    done
    [ -e "$dir/urls.bloom" ] \
    || ngx-bloom build -q -o "$dir/urls.bloom" --form url - \
                 <<< 'evil.example/' || return
    echo evil.example > "$dir/always-listed.txt"
    echo own.example > "$dir/own-sites.txt"

    {
        echo "load_module $module; pid nginx.pid; error_log stderr;"
        echo "events {} http {"
        echo "include $top/conf-examples/local.conf;"
        echo "upstream backend { server 127.0.0.1:$backend; }"
        echo "$block"
        for zone in ids bad good; do
            grep -q "zone=$zone[: ].*\(file\|capacity\)=" <<< "$2" \
            || echo "bloom_zone zone=$zone file=$zone.bloom;"
        done
        echo "}"
    } > "$dir/nginx.conf"

    if said=$("$nginx" -e stderr -p "$dir" -c nginx.conf -t 2>&1); then
        ok "$doc:$1: nginx accepts the example"
    else
        not_ok "$doc:$1: nginx accepts the example" "$said"
    fi
}

# copy_checkout: makes the directory in which a document's commands run

copy_checkout() {
    mkdir -p "$scratch/build"
    ln -sf "$top"/build/ngx* "$scratch/build/"

    rm -rf "$scratch/conf-examples"
    (cd "$top" && cp -r conf-examples "$scratch/" \
               && cd "$scratch/conf-examples" \
               && rm -rf -- *.bloom *.log *.pid cache state temp-*)

    # other runs of this script, at the same time, begin with other ports
    port=$(free_port $((18080 + $$ % 1000 * 4)))
    backend=$(free_port $((port + 1)))
    third=$(free_port $((backend + 1)))
    use_ports -i "$scratch"/conf-examples/{*.conf,*/try.env}
}

# check_blocks DOCUMENT: checks all fenced blocks of a document

check_blocks() {
    local line number=0 begin fence= info text

    doc=$1
    copy_checkout

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
                *)        not_ok "$doc:$begin: unknown fence \"$info\"" ;;
            esac

        elif [ -n "$fence" ]; then
            text=$text$line$'\n'
        fi
    done < "$top/$doc"

    for ((line = 0; line < 50; line++)); do
        [ -s "$scratch/conf-examples/nginx.pid" ] || return 0
        sleep 0.1
    done

    stop_nginx
    not_ok "$doc stops what it starts" "nginx still runs"
}


# ---- the man page ----

check_man_page() {
    same "docs/ngx-bloom.1 has the options of the tool; see make man" \
         "$(build/manpage docs/ngx-bloom.1.in 2>&1)" "$(cat docs/ngx-bloom.1)"
    same "docs/ngx-bloom.bash has the options of the tool; see make man" \
         "$(build/completion)" "$(cat docs/ngx-bloom.bash)"
}


# ---- the version ----

# Until the first release, the one section of CHANGELOG.md is [Unreleased].

check_version() {
    local version sections released

    version=$(sed -n 's/^#define BLOOM_VERSION  "\(.*\)"$/\1/p' \
                  src/core/bloom_version.h)
    sections=$(sed -n 's/^## //p' CHANGELOG.md)
    released=$(sed -n '2s/^\[\([0-9][^]]*\)\] - [0-9-]*$/\1/p' \
               <<< "$sections")

    same "CHANGELOG.md begins with the section [Unreleased]" "[Unreleased]" \
         "$(head -n 1 <<< "$sections")"

    if [ "$(wc -l <<< "$sections")" -gt 1 ]; then
        same "the newest release in CHANGELOG.md is the version of the source" \
             "$version" "$released"
    fi

    same "the section [Unreleased] of CHANGELOG.md has at most 80 lines" "" \
         "$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md \
            | grep -vc '^## \[[0-9]' | awk '$1 > 80 { print $1 " lines" }')"

    same "the newest version in debian/changelog is that of the source" \
         "$version" \
         "$(sed -n '1s/^ngx-bloom (\([^)]*\)) .*/\1/p' debian/changelog)"
}


# ---- old names ----

check_old_names() {
    same "the names of 1.0 stand everywhere" "" "$(scripts/old-names.pl 2>&1)"
}


# ---- the Debian packages ----

# Each file that a list in debian/ names exists, or is what the build makes.

check_debian() {
    local list file missing=

    for list in debian/*.install debian/*.docs; do
        while read -r file _; do
            case $file in usr/lib/nginx/modules/*.so) continue ;; esac

            compgen -G "$file" > /dev/null \
            || missing="$missing$list: $file does not exist"$'\n'
        done < "$list"
    done

    same "the lists in debian/ name files that exist" "" "$missing"
}


# ---- sizes ----

# memory LAYOUT ITEMS RATE: prints the filter's size as the table writes it

memory() {
    ngx-bloom size --layout "$1" -n "$2" -p "$3" --json \
    | grep -oE '"filter_bytes": *[0-9]+' | head -n 1 | grep -oE '[0-9]+' \
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
    same "docs/sizing.md has the sizes that ngx-bloom computes" "$(size_table)" \
         "$(grep -E '^\| [0-9]+[mg] \|' docs/sizing.md)"
}


# ---- directives and variables ----

# Prints "NAME: CONTEXT, CONTEXT" for each directive of the module, but for old
# names.

commands() {
    tr -d '\n' < ngx_http_bloom_module.c \
    | grep -oE '\{ ngx_string\("bloom_[a-z_]+"\), +[A-Z0-9_|]+, +[a-z_]+' \
    | grep -v 'ngx_http_bloom_conf_renamed$' \
    | while IFS= read -r line; do
        contexts=
        case $line in *HTTP_MAIN*) contexts="$contexts, http" ;; esac
        case $line in *HTTP_SRV*) contexts="$contexts, server" ;; esac
        case $line in *HTTP_LOC*) contexts="$contexts, location" ;; esac
        echo "$(cut -d '"' -f 2 <<< "$line"): ${contexts#, }"
    done | sort
}

# Prints the same for each directive that docs/directives.md describes.

described() {
    awk '/^### bloom_/ { name = $2 }
         /^\| Context/ && name {
             gsub(/^\| Context \| | \|$/, ""); gsub(/`/, "")
             print name ": " $0; name = ""
         }' docs/directives.md | sort
}

check_names() {
    same "docs/directives.md has the directives, with their contexts" \
         "$(commands)" "$(described)"

    same "docs/directives.md has the variables" \
         "$(grep -oE 'ngx_string\("bloom_[a-z_]+"\), NGX_BLOOM_RULE_' \
                 src/rules/ngx_bloom_rule_decide.c | cut -d '"' -f 2 | sort)" \
         "$(grep -oE '^### \$bloom_[a-z_]+' docs/directives.md | cut -d '$' -f 2 \
            | sort)"
}


# ---- the endpoint, files ----

# Prints "METHOD PATH CHANGES" for each request that the endpoint answers;
# CHANGES is "yes" or "no".

routes() {
    tr -d '\n' < src/http/api/ngx_http_bloom_api.c \
    | grep -oE '\{ NGX_HTTP_BLOOM_[A-Z]+, [01], ngx_string\("[^"]*"\), +NGX_[A-Z_]+' \
    | tr -d ',"(){}' | sed 's/ngx_string/"/; s/NGX_HTTP_BLOOM_//g' \
    | while read -r method zone path needs; do
        path=${path#\"}
        case $zone in
            0) path=/$path ;;
            1) path=/zones/NAME$path ;;
        esac
        case $needs in WRITE) write=yes ;; *) write=no ;; esac
        echo "$method $path $write"
    done | sort
}

# Prints the same for each row "| `METHOD PATH` | yes ..." of a document.

described_routes() {
    sed -nE 's/^\| `(GET|POST|PUT|DELETE) (\/[^`?]*)` \| ([a-z]+) .*/\1 \2 \3/p' \
        "$1" | sort
}

# Prints the names of files in a state directory, with "*" for the parts that
# vary.

state_files() {
    {
        grep -ohE '"((base|control)(\.tmp)?|lock|(instance|journal|upload|checkpoint|segment|damaged)\.[^" ]+)"' \
             src/{store,zone,change,image,process}/ngx_bloom_*.c
        grep -hA1 'ngx_bloom_state_files_temporary(' src/{store,zone,change,image,process,http/api}/ngx_*.c \
        | sed -nE 's/.*"([a-z]+)", "([a-z]+)".*/\1.*.*.\2/p'
    } | tr -d '"\\' | sed -E 's/%[0-9]*[a-zA-Z]+/*/g' | sort -u
}

check_endpoint() {
    local document

    same "docs/api.md has the requests of the source" \
         "$(routes)" "$(described_routes docs/api.md)"

    same "README.md has at most 300 lines" "" \
         "$(wc -l < README.md | awk '$1 > 300 { print $1 " lines" }')"

    for document in docs/api.md docs/operations.md; do
        same "$document has the tables of the source; see make docs" \
             "$(scripts/tables.pl $document 2>&1)" "$(cat $document)"
    done
}

# first_column FILE: prints the first column of the table that begins with
# "| file |"

first_column() {
    sed -n '/^| file |/,/^$/p' "$1" | grep -E '^\| `' | cut -d '|' -f 2
}

check_files() {
    same "docs/architecture.md has the files of the source" \
         "$(printf '%s\n' ngx_http_bloom_module.c src/{core,interop,store,zone,change,image,process,rules,http,http/api}/*.[ch] | sort)" \
         "$(first_column docs/architecture.md \
            | grep -oE '`[a-z0-9_/]+\.(\[ch\]|c|h)`' | tr -d '`' \
            | sed 's/\(.*\)\[ch\]/\1c\n\1h/' | sort)"

    same "docs/state.md has the files of a state directory" \
         "$(state_files)" \
         "$(first_column docs/state.md | tr -d '` ' | sed 's/[A-Z][A-Z]*/*/g' \
            | sort -u)"

    same "docs/state.md has the fields of the control page" "$(control_page)" \
         "$(sed -nE 's/^\| ([0-9]+) \| ([0-9]+) \| `([a-z_.]+)` .*/\1 \2 \3/p
                     s/^The page has ([0-9]+ bytes)\..*/\1/p' docs/state.md \
            | sort -n)"
}

# Prints "OFFSET SIZE FIELD" for each field of the control page as the compiler
# lays it out, and "SIZE bytes" for the whole page.

control_page() {
    local header=src/store/ngx_bloom_control.h

    {
        echo '#include <stdio.h>'
        echo '#include <stddef.h>'
        echo '#include <stdint.h>'
        echo '#include <pthread.h>'
        echo '#include "bloom_base.h"'
        echo 'typedef unsigned char u_char;'
        sed -n '/^#define NGX_BLOOM_BOOT_LEN/p
                /^typedef struct/,/^} ngx_bloom_clock_t;/p' \
            src/store/ngx_bloom_clock.h
        sed -n '/^#define NGX_BLOOM_[A-Z_]* /p
                /^\/\* The end of the journal: /,/^} ngx_bloom_control_t;/p' $header
        echo 'int main(void) {'
        {
            sed -n '/contents of the file "control"/,/^} ngx_bloom_control_t;/p' \
                $header \
            | sed -nE 's/^ {12}[a-z_0-9]+ +([a-z_]+)(\[.*)?;.*/\1/p
                       s/^ {12}\} ([a-z_]+)(\[.*)?;.*/\1/p
                       s/^ {4}(\}|u_char) +([a-z_]+)\[.*/\2/p'
            sed -n '/^typedef/h; //!H; /^} ngx_bloom_loss_t;/{x;p}' $header \
            | sed -nE 's/^ {4}[a-z_0-9]+ +([a-z_]+)(\[.*)?;.*/loss.\1/p'
        } | while read -r field; do
            echo "printf(\"%zu %zu $field\\n\","
            echo "offsetof(ngx_bloom_control_t, $field),"
            echo "sizeof(((ngx_bloom_control_t *) 0)->$field));"
        done
        echo 'printf("%zu bytes\n", sizeof(ngx_bloom_control_t));'
        echo 'return 0; }'
    } > "$scratch/control.c"

    gcc -Isrc/core -o "$scratch/control" "$scratch/control.c" && "$scratch/control" \
    | sort -n
}


if [ $# -gt 0 ] && [ "$1" != --tables ]; then
    for document in "$@"; do
        check_blocks "$document"
    done

    exit $failed
fi

check_links
check_names
check_endpoint
check_files
check_sizes
check_man_page
check_version
check_old_names
check_debian

if [ "${1:-}" = --tables ]; then
    exit $failed
fi

check_blocks README.md
check_blocks docs/directives.md
check_blocks docs/sizing.md
check_blocks docs/api.md
check_blocks docs/operations.md
check_blocks docs/rollout.md
check_blocks docs/nightly.md
check_blocks docs/block-list-job.md
check_blocks docs/cluster.md
check_blocks docs/deleting.md
check_blocks docs/expiry.md
check_blocks docs/adaptive.md
check_blocks docs/key-forms.md
check_blocks docs/security.md

if scripts/run.sh --check > "$scratch/run.log" 2>&1; then
    grep '^ok ' "$scratch/run.log"
else
    cat "$scratch/run.log"
    not_ok "make run serves, answers and stops"
fi

[ $failed = 0 ]
