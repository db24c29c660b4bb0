#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check-docs.sh: the body of `make test-docs`
#
# Holds the documentation to what the program does:
#   - links to files in README.md, docs/ and conf-examples/ lead somewhere;
#   - the ```console blocks of README.md, docs/api.md and docs/operations.md
#     are run, for each in a copy of the checkout, and give the outputs shown;
#   - their ```nginx blocks are accepted by `nginx -t`, or, where the fence
#     names a file, are lines of that file;
#   - README's table of sizes is what `ngx-bloom size` says;
#   - it describes each directive and variable, with its contexts, and no other;
#   - docs/api.md has each request, error, metric and member of a zone's state
#     that the source has, and no other, and README each request;
#   - docs/architecture.md has a line for each file of the source, and
#     docs/state.md for each kind of file in a state directory;
#   - docs/ngx-bloom.1 is what `make man` makes of the tool's tables;
#   - `make run` serves what it promises.
#
# In a console block a line "$ COMMAND" is followed by its output, standard
# error included. There "..." stands for any text, also of several lines; other
# ports are used for 8080 to 8082; and a curl is repeated for some seconds while
# its output differs, since a reload takes a moment.

set -u
cd "$(dirname "$0")/.." || exit 1

nginx=${NGINX:-$(command -v nginx || echo /usr/sbin/nginx)}
PATH=$PWD/build:$(dirname "$nginx"):$PATH
top=$PWD
doc=README.md
module=$top/build/ngx_http_bloom_module.so
failed=0

for file in "$nginx" "$module" build/ngx-bloom build/manpage; do
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

# what a document left running

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

# check_excerpt LINE FILE TEXT: the text's lines, one after another, are in the
# file, whatever they are indented by

check_excerpt() {
    local file

    file=$(sed 's/^ *//' "$top/$2")$'\n'

    if [[ $file == *"$(sed 's/^ *//' <<< "$3")"$'\n'* ]]; then
        ok "$doc:$1: an excerpt of $2"
    else
        not_ok "$doc:$1: an excerpt of $2" "differs from the file"
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
        ok "$doc:$1: nginx accepts the example"
    else
        not_ok "$doc:$1: nginx accepts the example" "$said"
    fi
}

# copy_checkout: what the documents' commands find

copy_checkout() {
    mkdir -p "$scratch/build"
    ln -sf "$top"/build/ngx* "$scratch/build/"

    rm -rf "$scratch/conf-examples"
    (cd "$top" && cp -r conf-examples "$scratch/" \
               && cd "$scratch/conf-examples" \
               && rm -rf -- *.bloom *.log *.pid cache state temp-*)

    # runs beside this one begin elsewhere
    port=$(free_port $((18080 + $$ % 1000 * 4)))
    backend=$(free_port $((port + 1)))
    third=$(free_port $((backend + 1)))
    use_ports -i "$scratch"/conf-examples/*.conf
}

# check_blocks DOCUMENT

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
}


# ---- sizes ----

# memory LAYOUT ITEMS RATE: as the table has it

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
    same "the table of sizes" "$(size_table)" \
         "$(grep -E '^\| [0-9]+[mg] \|' README.md)"
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
         }' README.md | sort
}

check_names() {
    same "the directives and their contexts" "$(commands)" "$(described)"

    same "the variables" \
         "$(grep -oE 'ngx_string\("bloom_[a-z_]+"\), NULL' \
                 src/http/ngx_http_bloom_variables.c | cut -d '"' -f 2 | sort)" \
         "$(grep -oE '^### \$bloom_[a-z_]+' README.md | cut -d '$' -f 2 | sort)"
}


# ---- the endpoint, files ----

# "METHOD PATH changes" of each route; without "changes" where $1 says "names"

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

# the same of a table whose rows begin "| `METHOD PATH` | yes"

described_routes() {
    sed -nE 's/^\| `(GET|POST|PUT|DELETE) (\/[^`?]*)` \| ([a-z]+) .*/\1 \2 \3/p' \
        "$1" | sort
}

# "STATUS CODE" of each error

errors() {
    grep -oE '^    \{ [0-9]{3}, "[a-z_]+" \}' src/http/api/ngx_http_bloom_error.c \
    | tr -d '{}",' | awk '$1 != 200 { print $1, $2 }' | sort
}

# The places in JSON of a zone's state, each with its objects' names and dots:
# the first column of the table of stats.

members() {
    grep -oE '^    \{ "[a-z_.]+"' src/http/api/ngx_http_bloom_stats.c \
    | tr -d '{ "' | sort
}

# "NAME TYPE LABEL: VALUE, VALUE ...: HELP" of each metric, as the tables of
# stats and of rules' metrics have them

metrics() {
    perl -0777 -ne '
        while (/"([a-z_]+)",\s+(?:NULL|"([a-z]+)=\\"([a-z_]+)\\""),
                \s+(?:NGX_\w+,\s+)?(NULL|"(?:[^"\\]|"\s+")*")\s\}/gx)
        {
            my ($name, $label, $value, $help) = ($1, $2, $3, $4);
            push @names, $name if !$metric{$name};
            my $m = $metric{$name} //= {};
            $m->{label} = $label // "";
            push @{ $m->{values} }, $value if defined $value;
            next if $help eq "NULL";
            ($m->{help} = $help) =~ s/"\s+"//g;
            $m->{help} =~ s/^"|\.?"$//g;
        }
        END {
            for (@names) {
                my $m = $metric{$_};
                print "nginx_bloom_$_ ", /_total$/ ? "counter" : "gauge",
                      $m->{values} ? " $m->{label}: " : "",
                      join(", ", @{ $m->{values} // [] }), ": $m->{help}\n";
            }
        }' src/http/api/ngx_http_bloom_{stats,metrics}.c | sort
}

described_metrics() {
    sed -nE 's/^\| `(nginx_bloom_[a-z_]+)` \| ([a-z]+) \| (.*) \| (.*) \|$/\1 \2 \3: \4/p' \
        docs/api.md | tr -d '`' | sed 's/  *: /: /' | sort
}

# the names of files in a state directory, with "*" for what differs

state_files() {
    {
        grep -ohE '"(control(\.tmp)?|lock|dropped|lost|(instance|journal|upload|checkpoint|segment|damaged|compact)\.[^" ]+)"' \
             src/{store,zone}/ngx_bloom_*.c
        grep -hA1 'ngx_bloom_state_files_temporary(' src/{store,zone,http/api}/ngx_*.c \
        | sed -nE 's/.*"([a-z]+)", "([a-z]+)".*/\1.*.*.\2/p'
    } | tr -d '"\\' | sed -E 's/%[0-9]*[a-zA-Z]+/*/g' | sort -u
}

check_endpoint() {
    same "docs/api.md has the requests of the source" \
         "$(routes)" "$(described_routes docs/api.md)"

    same "README.md has the requests of the source" \
         "$(routes)" "$(described_routes README.md)"

    same "docs/api.md has the errors of the source" "$(errors)" \
         "$(sed -nE 's/^\| ([0-9]{3}) \| `([a-z_]+)` .*/\1 \2/p' docs/api.md \
            | sort)"

    same "docs/api.md has the metrics of the source, with labels and help" \
         "$(metrics)" "$(described_metrics)"

    # the members before the table of states

    same "docs/api.md has the members of a zone's state" "$(members)" \
         "$(sed -n '/^## State/,/^| `state` | means/p' docs/api.md \
            | sed -nE '/means/d; s/^\| `([a-z_.]+)` \|.*/\1/p' | sort)"
}

# first_column FILE: of the table that begins with "| file |"

first_column() {
    sed -n '/^| file |/,/^$/p' "$1" | grep -E '^\| `' | cut -d '|' -f 2
}

check_files() {
    same "docs/architecture.md has the files of the source" \
         "$(printf '%s\n' ngx_http_bloom_module.c src/{core,interop,store,zone,http,http/api}/*.[ch] | sort)" \
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

# "OFFSET SIZE FIELD" of the page, and "SIZE bytes" of all of it, as the
# compiler lays it out

control_page() {
    local header=src/store/ngx_bloom_control.h

    {
        echo '#include <stdio.h>'
        echo '#include <stddef.h>'
        echo '#include <stdint.h>'
        echo '#include <pthread.h>'
        echo '#include "bloom_image.h"'
        echo 'typedef unsigned char u_char;'
        sed -n '/^#define NGX_BLOOM_[A-Z_]* /p
                /^\/\* The end of the journal: /,/^} ngx_bloom_control_t;/p' $header
        echo 'int main(void) {'
        {
            sed -n '/contents of the file "control"/,/^} ngx_bloom_control_t;/p' \
                $header \
            | sed -nE 's/^ {12}[a-z_0-9]+ +([a-z_]+)(\[.*)?;.*/\1/p
                       s/^ {12}\} ([a-z_]+)\[.*/\1/p
                       s/^ {4}(\}|u_char) +([a-z_]+)\[.*/\2/p'
            sed -n '/^typedef/h; //!H; /^} ngx_bloom_pending_t;/{x;p}' $header \
            | sed -nE 's/^ {4}[a-z_0-9]+ +([a-z_]+);.*/pending.\1/p'
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


check_links
check_names
check_endpoint
check_files
check_sizes
check_man_page
check_blocks README.md
check_blocks docs/api.md
check_blocks docs/operations.md

if scripts/run.sh --check > "$scratch/run.log" 2>&1; then
    grep '^ok ' "$scratch/run.log"
else
    cat "$scratch/run.log"
    not_ok "make run serves, answers and stops"
fi

[ $failed = 0 ]
