#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh [SECTION...]: the body of `make bench`
#
# Runs bench/SECTION.pl for each section, by default for all. Writes one report
# with a description of the machine to bench/results/NAME.md and the terminal.
#
#   BENCH_NAME    name of the report (default: the processor's name)
#   BENCH_QUICK   1: a small and short run that shows that everything works; the
#                 report goes to build/bench/results
#   BENCH_ROUNDS  number of turns of each measurement
#   BENCH_MEMORY  size of the largest filter in the section lookups, such as 8g
#                 (default: two thirds of the free memory)
#   BENCH_KEYS    largest number of keys in the section build, where 1000000000
#                 needs 33 GB on the disk, of keys in the section cluster, where
#                 100 million need 23 GB, and of good keys in the section except
#                 (default: 100 million)
#   TMPDIR        directory for the data, about 4 GB (cluster: 23 GB)
#
# Ctrl-C stops the run and leaves a report of what has been measured.

set -eu
cd "$(dirname "$0")/.."

sections=("$@")
[ $# -gt 0 ] || sections=(instructions costs lookups lookups-zone requests
                           build cluster except pages additions removals latency
                           reload replay incident adaptive import growth expiry
                           ring lua fleet)

for section in "${sections[@]}"; do
    if [ ! -e "bench/$section.pl" ]; then
        echo "There is no section \"$section\" of benchmarks; there are:" \
             $(basename -a -s .pl bench/*.pl) >&2
        exit 2
    fi
done

nginx=${TEST_NGINX_BINARY:-$(command -v nginx || echo /usr/sbin/nginx)}
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
processors=$(nproc)
out=build/bench/results

[ -n "${BENCH_QUICK:-}" ] || out=bench/results

name=${BENCH_NAME:-$(echo "$model $processors cores" | tr -cs 'A-Za-z0-9\n' - \
                     | tr A-Z a-z)}
report=$out/$name.md

mkdir -p $out build/bench

# the prefix of the plots' names

export BENCH_FILES=$PWD/$out/$name


machine() {
    local tmp=${TMPDIR:-/tmp}

    cat << END
| | |
|---|---|
| processor | $model, $processors cores |
| cache | $(lscpu 2>/dev/null | sed -n 's/^ *L3 cache: *//p') L3 |
| memory | $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 2^20 }' /proc/meminfo) |
| kernel | $(uname -sr) |
| huge pages for shared memory | $(sed -n 's/.*\[\(.*\)\].*/\1/p' \
        /sys/kernel/mm/transparent_hugepage/shmem_enabled 2>/dev/null) |
| disk | $(stat -f -c %T "$tmp") on $(df --output=source "$tmp" | tail -n 1) |
| nginx | $($nginx -v 2>&1 | sed 's/.*nginx\///') |
| compiler | $(cc --version | head -n 1) |
| commit | $(git describe --always --dirty 2>/dev/null || echo unknown) |
| rounds | ${BENCH_ROUNDS:-as each section says}${BENCH_QUICK:+, quick} |
| when | $(date -u '+%F %H:%M UTC') |
END
}


# Prints how busy the processors are with other work, over some seconds.

others() {
    awk '/^cpu / { n = 0; for (i = 2; i <= 9; i++) { n += $i }
                   print n, $5 + $6, $3, $9 }' /proc/stat
}

busy() {
    local before after

    trap '' INT
    before=$(others)
    sleep "${1:-2}"
    after=$(others)

    echo "$before $after" | awk '{
        all = $5 - $1
        printf "%.0f %% busy, %.0f %% of that with lower priority, %.0f %% " \
               "taken by the host\n", 100 - 100 * ($6 - $2) / all,
               all - ($6 - $2) ? 100 * ($7 - $3) / (all - ($6 - $2)) : 0,
               100 * ($8 - $4) / all }'
}


part=build/bench/report.$$
trap 'rm -f $part' EXIT

{
    echo "# Benchmarks: $model, $processors cores"
    echo
    echo "This report was made by \`make bench\`;" \
         "[README.md](../README.md) says what is measured and how. Things" \
         "that are compared took turns, and figures are medians of the turns." \
         "Ratios are comparable between machines; other figures are not."
    echo
    machine
} | tee "$part"

failed=0
trap 'failed=130' INT

for section in "${sections[@]}"; do
    if [ $failed = 130 ]; then
        echo "Not measured, because the run was stopped: $section." \
            | tee -a "$part"
        continue
    fi

    before=$(busy)
    echo | tee -a "$part"

    if ! BENCH_SECTION=$PWD/$part \
            perl -Ibench -It/lib "bench/$section.pl"
    then
        echo "bench/$section.pl failed" >&2
        echo "This section could not be finished." | tee -a "$part"
        [ $failed = 130 ] || failed=1
    fi

    after=$(busy)

    {
        echo "Other work on the machine: $before before, $after after."

        if [ "${before%% *}" -gt 10 ] || [ "${after%% *}" -gt 10 ]; then
            echo "This much other work distorts seconds and latencies: run" \
                 "the benchmark again when the machine is quiet."
        fi
    } | tee -a "$part"
done

mv "$part" "$report"
echo "The report is in $report"
exit $failed
