#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run-fuzz.sh SECONDS PROGRAM...
#
# Runs each fuzzer for this number of seconds. It starts from the inputs in
# t/fuzz/corpus/NAME and from those that earlier runs found, which are in
# build/fuzz/corpus/NAME. An input that breaks something is kept in
# build/fuzz/findings/ and fails the run.

set -u

seconds=$1
shift
failed=0

for program in "$@"; do
    name=$(basename "$program" | sed 's/^fuzz_//')
    seeds=t/fuzz/corpus/$name
    corpus=build/fuzz/corpus/$name
    findings=build/fuzz/findings/$name
    log=$program.log

    mkdir -p "$corpus" "$findings"

    if [ ! -d "$seeds" ]; then
        echo "not ok - $program: its corpus $seeds is missing"
        failed=1
        continue
    fi

    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
                  -print_final_stats=1 -verbosity=0 \
                  -artifact_prefix="$findings/" "$corpus" "$seeds" \
                  > "$log" 2>&1
    then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "ok - $program: none of $runs inputs in $seconds s breaks it"
    else
        tail -n 60 "$log"
        echo "not ok - $program: an input in $findings breaks it;" \
             "reproduce it with: $program FILE"
        failed=1
    fi
done

exit $failed
