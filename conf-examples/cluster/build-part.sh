#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-part.sh: builds an image of the keys of one partition
#
# Usage: build-part.sh SHAPE DIRECTORY [OPTION...]
#
# Spark's pipe() or Hadoop's streaming runs it with the keys of the partition on
# standard input, one on each line. It copies the image to DIRECTORY, which all
# machines share, and prints its name.
#
#   SHAPE      an image that the new one can be merged with, or the first 4096
#              bytes of such an image
#   DIRECTORY  a directory, or a URL for `hadoop fs -put`, such as
#              hdfs:///tmp/ids
#   OPTION     further options of `ngx-bloom build`, such as --as-of
#
# Each run chooses a new name, and prints it only when the image is complete.
# Merge the images whose names the job returns. Do not merge all that DIRECTORY
# has: a run that the cluster stopped or repeated may have left an image with a
# part of its keys.
#
# TMPDIR (default: the working directory) needs room for one image.
#
# docs/cluster.md explains the steps.

set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: build-part.sh SHAPE DIRECTORY [OPTION...]" >&2
    exit 2
fi

shape=$1
directory=$2
shift 2

name=$(< /proc/sys/kernel/random/uuid).bloom

trap 'exit 1' INT TERM HUP
work=$(mktemp -d -p "${TMPDIR:-$PWD}" build-part.XXXXXX)
trap 'rm -rf "$work"' EXIT

# a cluster runs as many of these as there are processors, and some partitions
# have no keys

ngx-bloom build --quiet --threads 1 --allow-empty --like "$shape" \
    --temp "$work" "$@" -o "$work/$name" - >&2

case $directory in
    *://*)  hadoop fs -put "$work/$name" "$directory/$name" >&2 ;;
    *)      cp "$work/$name" "$directory/$name" ;;
esac

echo "$name"
