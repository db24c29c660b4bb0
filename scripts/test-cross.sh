#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# test-cross.sh UNIT...: the body of `make test-cross`
#
# On an emulated aarch64 (qemu-user), runs the unit tests, among them the golden
# vectors, and the tool. The tool must build images with the same bytes as the
# tool of this machine, and read that tool's images.
#
# On emulated x86-64 processors without AVX, and with AVX2 but without AVX-512,
# runs the tool and the unit tests of code that chooses its instructions by the
# processor. An instruction that the processor lacks would kill the program.
#
#   CROSS_SKIP  unit tests to leave out on aarch64. The default is those that
#               add millions of keys or search for sizes: they take many minutes
#               under emulation, and their C is the same on both processors.

set -u
cd "$(dirname "$0")/.." || exit 1

searches="test_geometry test_geometry_fpr"
skip=" ${CROSS_SKIP-$searches} "
root=$PWD/build/cross
failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bloom-cross-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

ok() { echo "ok - $1"; }

not_ok() {
    echo "not ok - $1"
    sed 's/^/# /' "$scratch/log"
    failed=1
}

aarch64() {
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$libraries" "$@"
}

libraries=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu


# check NAME COMMAND...: reports whether the command succeeds

check() {
    local name=$1
    shift

    if "$@" > "$scratch/log" 2>&1; then ok "$name"; else not_ok "$name"; fi
}

# unit NAME COMMAND...: reports whether all tests of a cmocka program pass

unit() {
    local name=$1
    shift

    if "$@" > "$scratch/log" 2>&1 \
       && grep -q '^\[  PASSED  \] [1-9]' "$scratch/log"
    then
        ok "$name"
    else
        not_ok "$name"
    fi
}

# has VECTOR...: reports whether the last unit test found these instruction sets
# on its processor, in this order

has() {
    local found

    found=$(sed -n 's/^this processor has //p' "$scratch/log" | tr '\n' ' ')

    if [ "$found" = "$* " ]; then
        ok "which has: $*"
    else
        not_ok "which has: $*; found: $found"
    fi
}


# ---- aarch64 ----

for name in "$@"; do
    if [[ $skip == *" $name "* ]]; then
        echo "# aarch64: $name is left out"
        continue
    fi

    unit "aarch64: $name" aarch64 "build/cross/unit/$name"

    if [ "$name" = test_simd ]; then
        has portable
    fi
done

seq 1 20000 > "$scratch/keys"
seq 20001 40000 > "$scratch/others"

# Compares two images without their first page, which has a build's id and time.

same() {
    cmp --ignore-initial=4096 "$scratch/here" "$scratch/there" \
    && [ "$(stat -c %s "$scratch/here")" = "$(stat -c %s "$scratch/there")" ]
}

for how in "-p 0.001" "-p 1e-5" "-p 1e-7" "-p 0.01 --layout classic" \
           "-p 0.2" \
           "-p 0.001 --hash siphash --seed 000102030405060708090a0b0c0d0e0f"
do
    case $how in *--seed*) seed= ;; *) seed="--seed 7" ;; esac

    # shellcheck disable=SC2086
    check "build $how" build/ngx-bloom build -q $how $seed \
          -o "$scratch/here" "$scratch/keys"
    # shellcheck disable=SC2086
    check "aarch64: build $how" aarch64 build/cross/ngx-bloom build -q $how \
          $seed -o "$scratch/there" "$scratch/keys"
    check "build $how: the same bytes" same

    check "aarch64: reads it" aarch64 build/cross/ngx-bloom verify \
          "$scratch/here"
    check "aarch64: all keys are present" aarch64 build/cross/ngx-bloom test \
          -q "$scratch/here" -f "$scratch/keys"

    build/ngx-bloom test "$scratch/here" -f "$scratch/others" \
        > "$scratch/answers.here"
    aarch64 build/cross/ngx-bloom test "$scratch/there" -f "$scratch/others" \
        > "$scratch/answers.there"

    check "build $how: others have the same answers" \
          cmp "$scratch/answers.here" "$scratch/answers.there"
    check "and there are some" grep -q '^absent ' "$scratch/answers.here"
done


# ---- x86-64 ----

if [ "$(uname -m)" = x86_64 ]; then

    for model in Nehalem core2duo Haswell; do

        for name in test_layout test_layout_foreign test_crc test_line_ends \
                    test_image_golden test_hash test_simd
        do
            [ -e "build/unit/$name" ] || continue
            unit "$model: $name" qemu-x86_64 -cpu $model "build/unit/$name"
        done

        case $model in
            Haswell) has avx2 portable ;;
            *)       has portable ;;
        esac

        check "$model: build" qemu-x86_64 -cpu $model build/ngx-bloom build -q \
              -p 0.001 --seed 7 -o "$scratch/there" "$scratch/keys"
        check "build" build/ngx-bloom build -q -p 0.001 --seed 7 \
              -o "$scratch/here" "$scratch/keys"
        check "$model: the same bytes" same

        for way in alone loop batch; do
            check "$model: lookups, $way" qemu-x86_64 -cpu $model \
                  build/bench/lookups -m 1m -n 1000 -r 1 --hits 0.5 --way $way
        done
    done
fi

exit $failed
