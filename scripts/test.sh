#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# test.sh: the body of `make test`
#
# Runs every stage, `make test-STAGE`, even if one fails. Counts the passed and
# failed tests in their output, and ends with a line "N passed, N failed", which
# is also in build/test/result. Each stage's output is in build/test/STAGE.log.
# What failed is said once more before that line, and is in build/test/failures.

set -u
cd "$(dirname "$0")/.." || exit 1

make="${MAKE:-make} --no-print-directory"
out=build/test
passed=0
failed=0

rm -rf $out
mkdir -p $out
touch $out/failures


# count LOG STATUS: prints "passed failed" of a stage. It reads the output of
# cmocka and prove, and lines "ok ..." and "not ok ..." of other programs. A
# stage that ended with an error but reported none, or that checked nothing,
# counts as one failure.

count() {
    awk -v status="$2" '
        /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
        /^\[  FAILED  \] [0-9]+ test/ { failed += $4 }
        /^ok /                        { passed++ }
        /^not ok /                    { failed++ }

        # prove prints a line for each file that failed, and one for all tests
        # at the end; a file that failed without a failed test is one failure
        / \(Wstat: [0-9]+.* Tests: [0-9]+ Failed: [0-9]+\)$/ {
            bad += $NF
            failed += $NF
            silent = ($NF + 0 == 0)
            if (silent && !/Wstat: 0 /) { failed++; silent = 0 }
        }
        /^  Parse errors:/ { failed += silent; silent = 0 }
        /^Files=[0-9]+, Tests=[0-9]+/ {
            split($2, tests, "[=,]")
            passed += tests[2] - bad
            bad = 0
        }

        END {
            if (failed == 0 && (status != 0 || passed == 0)) {
                failed = 1
            }
            print passed + 0, failed + 0
        }' "$1"
}


# failures NAME: prints what a stage's output says about its failed tests, or
# its last lines if it says nothing

failures() {
    echo "==== $1: what failed"
    grep -aE -A 3 -e '^ *# +Failed test' -e '^not ok ' -e '^\[  ERROR ' \
              -e '^\[  FAILED  \] [^0-9]' -e ' \(Wstat: ' -e 'error: ' \
              -e '^  Parse errors:' "$out/$1.log" \
        | grep -avE '^(--)?$|Looks like|Non-zero exit' | head -n 60 \
        | grep -a . || tail -n 5 "$out/$1.log"
    echo
}


# stage NAME COMMAND...

stage() {
    local name=$1 status ok bad started=$SECONDS
    shift

    echo "==== $name"
    "$@" 2>&1 | tee "$out/$name.log"
    status=${PIPESTATUS[0]}

    read -r ok bad <<< "$(count "$out/$name.log" "$status")"
    if [ "$ok" -eq 0 ] && [ "$status" -eq 0 ]; then
        echo "$name: nothing was checked, which counts as a failure"
    fi

    passed=$((passed + ok))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ] || failures "$name" >> $out/failures

    echo "==== $name: $ok passed, $bad failed ($((SECONDS - started)) s)"
    echo
}


# Builds what the first stages share, before anything runs in parallel.

build() {
    $make -j "$(nproc)" all unit fuzzers \
    && echo "ok - module, tool, unit tests and fuzzers are built"
}

background_result() {
    cat $out/background.log
    return "$background_status"
}

# The sources of nginx and of programs derived from it that NGINX_SOURCES has

others=$(scripts/nginx-sources.sh) || exit 1

stage build build
stage layers $make test-layers

# One lane compiles and fuzzes, the other runs the tests, which mostly wait. A
# stage that needs an nginx waits for its lock while the other lane compiles it.

set -m          # makes the lane a process group, which can be killed as a whole
(
    $make old-module
    $make nginxes
    for name in $others; do CC=gcc scripts/build-nginx.sh "$name" dynamic; done
    $make test-fuzz
) > $out/background.log 2>&1 < /dev/null &
background=$!
set +m

trap 'kill -- -$background 2> /dev/null' EXIT
trap 'exit 130' INT TERM

stage unit $make test-unit
stage nginx $make test-nginx
if [ -x scripts/check-docs.sh ]; then
    stage docs $make test-docs
fi
stage nginx-1.22 $make test-nginx-1.22
stage nginx-1.26 $make test-nginx-1.26-short
if [ -n "$others" ]; then
    stage nginxes $make test-nginxes-short
else
    echo "==== nginxes: did not run, because NGINX_SOURCES and" \
         "../shared/nginx have no sources"
    echo
fi
stage sanitize-unit $make test-sanitize-unit
stage sanitize $make test-sanitize-short
stage chaos $make test-chaos

wait "$background"
background_status=$?
stage fuzz background_result

cat $out/failures
echo "$passed passed, $failed failed" | tee $out/result
[ "$failed" -eq 0 ]
