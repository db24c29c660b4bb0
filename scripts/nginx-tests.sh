#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-tests.sh SUITE NGINX [MODULE] [TEST...]
#
# Runs nginx's own tests twice: with NGINX alone, and with the module in every
# location. Each location then has a rule that fires without effect, an audit,
# feedback and an addition. Compares the outcomes of the tests.
#
# SUITE is a directory with nginx's tests, which the project nginx/nginx-tests
# publishes. NGINX is a program that --with-http_... options of ./configure gave
# the features to test. MODULE is ngx_http_bloom_module.so, or "" if it is
# linked into NGINX. Without TEST, all files of the suite run.
#
# TEST_JOBS files run at once (2). The output of each is in the directories
# build/nginx-tests/without and with. Files whose outcomes differ run again in
# both ways, one at a time, because the clock of a busy machine fails some tests.
#
# nginx-tests.expected names the files whose outcomes differ for a reason. The
# exit status is 0 if no other file differs, and if a test has passed in both
# ways.

set -u

usage="usage: $0 SUITE NGINX [MODULE] [TEST...]"
suite=$(realpath "${1:?$usage}")
nginx=$(realpath "${2:?$usage}")
module=${3:-}
if [ -n "$module" ]; then module=$(realpath "$module"); fi
shift $(($# < 3 ? $# : 3))

cd "$(dirname "$0")/.." || exit 1
out=$PWD/build/nginx-tests
mkdir -p "$out"

# The relative path is in the directory of each test. The zone of the additions
# is not that of the rule, so that no decision depends on the order of requests.

load=${module:+"load_module $module;"}
http='
    bloom_state_path bloom;
    bloom_zone       zone=nginx_tests_asked capacity=10k fpr=0.001;
    bloom_zone       zone=nginx_tests_added capacity=10k fpr=0.001;
    bloom_reject     absent $request_uri zone=nginx_tests_asked;
    bloom_dry_run    on;
    bloom_audit      100%;
    bloom_feedback   404;
    bloom_add        $request_uri zone=nginx_tests_added;
'


# one FILE: runs a test and prints "FILE: N ok", "FILE: N not ok" and so on for
# each of its results, and its exit status

one() {
    local tap=$log/${1##*/}

    timeout 600 perl "$1" > "$tap" 2> "$tap.err" < /dev/null
    echo "exit $?" >> "$tap"

    awk -v file="${1##*/}" '
        /^(not )?ok [0-9]+/ {
            n = $1 == "ok" ? $2 : $3
            mark = / # TODO/ ? " TODO" : / # skip/ ? " skip" : ""
            print file ": " n ($1 == "ok" ? " ok" : " not ok") mark
        }
        /^1\.\./     { print file ": " ($0 ~ /SKIP/ ? $0 : "plan " $1) }
        /^exit [0-9]/ { print file ": " $0 }
    ' "$tap"
}


# run NAME FILE...: runs the tests, and writes their outcomes over earlier ones

run() {
    local outcomes=$out/$1.outcomes

    export log=$out/$1
    shift
    mkdir -p "$log"

    (cd "$suite" && printf '%s\0' "$@" \
     | xargs -0 -P "${jobs:-${TEST_JOBS:-2}}" -I FILE bash -c 'one FILE') \
        > "$outcomes.new"

    {
        cut -d : -f 1 "$outcomes.new" | sort -u \
        | awk 'NR == FNR { again[$0]; next }
               { split($0, f, ":"); if (!(f[1] in again)) print }' \
              - "$outcomes"
        cat "$outcomes.new"
    } | sort -V > "$outcomes.all"

    mv "$outcomes.all" "$outcomes"
    rm "$outcomes.new"
}

# both FILE...: runs the tests without and with the module

both() {
    TEST_NGINX_GLOBALS=$root run without "$@"
    TEST_NGINX_GLOBALS=$root$load TEST_NGINX_GLOBALS_HTTP=$http run with "$@"
}

# totals NAME: prints the totals of a run, and fails if no test passed

totals() {
    awk -v name="$1" -F ': ' '
        { files[$1] = 1 }
        $2 ~ /^[0-9]+ ok/                  { ok++ }
        $2 ~ /^[0-9]+ not ok$/             { failed++ }
        $2 ~ /^[0-9]+ not ok TODO/         { todo++ }
        $2 ~ /SKIP/                        { skipped++ }
        $2 ~ /^exit [1-9]/                 { bad++ }
        END {
            for (f in files) n++
            printf "%s the module: %d files, of which %d are skipped and %d" \
                   " fail; %d tests pass, %d fail, %d fail as expected\n",
                   name, n, skipped, bad, ok, failed, todo
            exit ok == 0
        }' "$out/$1.outcomes"
}

# differing: prints the names of the files whose outcomes differ

differing() {
    diff "$out/without.outcomes" "$out/with.outcomes" > "$out/differences"
    sed -n 's/^[<>] \([^:]*\): .*/\1/p' "$out/differences" | sort -u
}

export -f one
export TEST_NGINX_BINARY=$nginx
root=
if [ "$(id -u)" = 0 ]; then root='user root;'; fi

if [ $# = 0 ]; then
    set -- $(cd "$suite" && ls ./*.t)
fi

: > "$out/without.outcomes"
: > "$out/with.outcomes"
both "$@"

again=$(differing)

if [ -n "$again" ]; then
    echo "these differ, and run again:" $again
    jobs=1 both $(printf './%s\n' $again)
fi

status=0
totals without && totals with || status=1

for file in $(differing); do
    reason=$(sed -n "s/^${file//./\\.} *//p" scripts/nginx-tests.expected)

    if [ -n "$reason" ]; then
        echo "ok - $file differs as expected: $reason"
    else
        echo "not ok - $file has the same outcomes with the module" \
             "(< without, > with)"
        grep "^[<>] $file: " "$out/differences"
        status=1
    fi
done

if [ $status = 0 ]; then echo "ok - all other outcomes are equal"; fi

exit $status
