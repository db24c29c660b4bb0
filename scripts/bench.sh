#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh [SECTION...]: the body of `make bench`
#
# Runs bench/SECTION.pl for each (all when not given), and writes one report,
# with what machine it was, to bench/results/NAME.md and to the terminal.
#
#   BENCH_NAME    the report's name (the processor's)
#   BENCH_QUICK   1: small and short, only to see that it works; the report is
#                 left in build/bench
#   BENCH_ROUNDS  how often each thing has its turn
#   BENCH_MEMORY  the largest filter of the section lookups, as 8g (two thirds
#                 of the memory that is free)
#   BENCH_KEYS    the most keys that the section build takes: 1000000000
#                 needs 33 GB on the disk (100 million)
#   TMPDIR        where the data lies: about 4 GB
#
# Ctrl-C ends it with a report of what has been measured.

set -eu
cd "$(dirname "$0")/.."

sections=("$@")
[ $# -gt 0 ] || sections=(instructions lookups lookups-zone requests rules
                           build pages additions latency reload replay incident
                           import)

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

# what plots are called

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


# Who else uses the processors: their share that is not idle, over a second.

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
    echo "By \`make bench\`; [README.md](../README.md) says what is measured" \
         "and how. What is compared ran side by side, in turns; figures are" \
         "medians of the turns. Ratios carry, the rest is this machine's."
    echo
    machine
} | tee "$part"

failed=0
trap 'failed=130' INT

for section in "${sections[@]}"; do
    if [ $failed = 130 ]; then
        echo "Not measured, since it was stopped: $section." | tee -a "$part"
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
            echo "Too much for seconds and latencies to be this module's" \
                 "alone: run it again when it is quiet."
        fi
    } | tee -a "$part"
done

mv "$part" "$report"
echo "All of this is in $report"
exit $failed
