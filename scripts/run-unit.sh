#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run-unit.sh PROGRAM...
#
# Runs the unit tests one after the other. Goes on if one fails.

set -u
failed=0

for program in "$@"; do
    echo "-- $program"
    log=$program.log

    "$program" > "$log" 2>&1
    status=$?

    grep -v '^\[ RUN      \]\|^\[       OK \]' "$log"

    if [ $status -ne 0 ]; then
        failed=1

        # cmocka names the tests that failed, unless the program died
        if ! grep -q '^\[  FAILED  \]' "$log"; then
            echo "not ok - $program ended with status $status"
        fi
    elif ! grep -q '^\[  PASSED  \] [1-9]' "$log"; then
        failed=1
        echo "not ok - $program ran no test"
    fi
done

exit $failed
