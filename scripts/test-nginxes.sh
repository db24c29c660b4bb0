#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# test-nginxes.sh short|all TEST...
#
# Builds the module with each source that nginx-sources.sh lists, and runs the
# tests (files in t/) with it. Ends with a table. For each source:
#
#   short   compiles the module as a dynamic one with gcc, and runs the tests
#   all     compiles it as a dynamic one and into nginx, with gcc and clang, and
#           runs the tests with both nginxes of gcc
#
# TEST_NGINXES names the sources to use, if not all of them. A test of upgrades
# also uses the installed nginx, with build/ngx_http_bloom_module.so.
#
# nginx's build has -Wall -Wextra and -Werror, without -Wunused-parameter, since
# nginx calls many functions with arguments that most of them do not need. The
# script checks that these flags are in force, and counts the warnings of the
# module's files. "all" compiles each file of the module again.
#
# Prints "ok" and "not ok" for each build, and prove's output for each run. If
# there is no source, it says so and exits with 0.

set -u
cd "$(dirname "$0")/.." || exit 1

mode=${1:?"usage: $0 short|all TEST..."}
shift

names=${TEST_NGINXES:-$(scripts/nginx-sources.sh)} || exit 1
out=build/nginxes
failed=0

if [ -z "$names" ]; then
    echo "did not run: NGINX_SOURCES names no directory with sources of" \
         "nginx, and ../shared/nginx has none"
    exit 0
fi

installed=$(PATH=$PATH:/usr/sbin command -v nginx)

mkdir -p $out
: > $out/table


# flags WORK: prints which of the flags nginx's build does not use

flags() {
    local cflags flag

    cflags=" $(sed -n 's/^CFLAGS = *//p' "$1/objs/Makefile") "

    for flag in -Wall -Werror; do
        case $cflags in *" $flag "*) ;; *) echo "$flag" ;; esac
    done

    case $cflags in *" -W "*|*" -Wextra "*) ;; *) echo "-Wextra" ;; esac
}


# build NAME KIND COMPILER: builds, prints the result, and sets work and
# warnings

build() {
    local lacks built

    work=$PWD/build/$1-$2-$3

    if [ "$mode" = all ] && [ -d "$work/objs/addon" ]; then
        find "$work/objs/addon" -name '*.o' -delete
    fi

    CC=$3 scripts/build-nginx.sh "$1" "$2"
    built=$?

    # warnings are errors, but a compiler may have some that are not

    warnings=$(grep -cE '^bloom/[^:]*:[0-9]+:.*(warning|error):' "$work/log")
    lacks=$(flags "$work")

    if [ $built = 0 ] && [ "$warnings" = 0 ] && [ -z "$lacks" ]; then
        echo "ok - the module compiles without warnings: $1, $2, $3"
        return 0
    fi

    echo "not ok - the module compiles without warnings: $1, $2, $3" \
         "(warnings: $warnings${lacks:+; nginx is built without} $lacks)"
    failed=1

    return $built
}


# row NAME KIND COMPILER [LOG]: adds a line to the table

row() {
    local version counts="not run"

    version=$("$work/objs/nginx" -v 2>&1 \
              | sed -n 's/^[A-Za-z]* version: //p' | paste -sd, | sed 's/,/, /')

    if [ $# = 4 ]; then
        counts=$(awk '
            / \(Wstat: [0-9]+.* Tests: [0-9]+ Failed: [0-9]+\)$/ {
                failed += $NF
                if ($NF == 0) failed++
            }
            /\. skipped: / { skipped++ }
            /^Files=[0-9]+, Tests=[0-9]+/ {
                split($1, f, "[=,]"); files = f[2]
                split($2, t, "[=,]"); tests = t[2]
            }
            END {
                printf "%d files, %d skipped: %d passed, %d failed", files,
                       skipped, tests - failed, failed
            }' "$4")
    fi

    printf '%s|%s|%s|%s|%s|%s\n' "$1" "${version:--}" "$3" "$2" "$warnings" \
           "$counts" >> $out/table
}


# try NAME KIND COMPILER [TEST...]: builds and runs the tests

try() {
    local name=$1 kind=$2 compiler=$3 module log
    shift 3

    if ! build "$name" "$kind" "$compiler" || [ $# = 0 ]; then
        row "$name" "$kind" "$compiler"
        return
    fi

    module=
    if [ "$kind" = dynamic ]; then
        module=$work/objs/ngx_http_bloom_module.so
    fi

    log=$out/$name-$kind-$compiler.log
    echo "running the tests with $name, $kind, $compiler"

    TEST_NGINX_BINARY=$work/objs/nginx TEST_NGINX_MODULE=$module \
    TEST_NGINX_OTHER_BINARY=$installed \
    TEST_NGINX_OTHER_MODULE=$PWD/build/ngx_http_bloom_module.so \
        prove -It/lib -j "${TEST_JOBS:-4}" "$@" > "$log" 2>&1 || failed=1

    grep -v '\. ok$' "$log"
    row "$name" "$kind" "$compiler" "$log"
}


for name in $names; do
    case $mode in
        short)
            try "$name" dynamic gcc "$@"
        ;;
        all)
            try "$name" dynamic gcc "$@"
            try "$name" static gcc "$@"
            try "$name" dynamic clang
            try "$name" static clang
        ;;
    esac
done

echo
(echo "source|version|compiler|module|warnings|tests"; cat $out/table) \
| awk -F '|' '{ printf "%-18s %-31s %-8s %-8s %-9s%s\n", $1, $2, $3, $4, $5, $6 }'

exit $failed
