#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# follow-file.sh FILE SOURCE ZONE
#
# A follower in thirty lines: sends the lines of FILE, "+KEY" or "-KEY", to a
# zone, whose URL is ZONE, and goes on when lines are appended.  A position is a
# number of lines.  Replace count(), read() and the sleep to follow another log.

file=$1 source=$2 zone=$3

count() { wc -l < "$file"; }
read() { sed -n "$(($1 + 1)),$2p;$2q" "$file"; }

position() {
    curl -sS --max-time 10 "$zone" \
    | sed -n 's/.*"source":{[^}]*"position":"\([0-9]*\)".*/\1/p'
}

while :; do
    after=$(position)
    if [ -z "$after" ]; then sleep 1; continue; fi      # nginx does not answer

    while last=$(count); do
        if [ "$last" -lt "$after" ]; then               # the file was replaced
            curl -sS -X POST "$zone/gap?source=$source&position=$last"
            break
        fi

        to=$((last < after + 1000 ? last : after + 1000))

        # without lines, the positions are equal: a sign of life
        read "$after" "$to" \
        | curl -sS -f --max-time 10 -H 'Content-Type: text/plain' -o /dev/null \
              --data-binary @- \
              "$zone/changes?source=$source&after=$after&position=$to" \
        || break                                        # ask for its position

        if [ "$to" -eq "$last" ] && [ "$to" -eq "$after" ]; then sleep 1; fi
        after=$to
    done

    sleep 1
done
