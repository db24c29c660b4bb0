/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has what tests of the file "base" need: files that are decoded,
 * and random entries.
 */

#ifndef BASE_FILES_H
#define BASE_FILES_H

#include "unit.h"

#include "bloom_base.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"

/* Offsets from docs/state.md. */
#define AT_VERSION   8
#define AT_ORDER     12
#define AT_SIZE      16
#define AT_KIND      20
#define AT_RESERVED  616
#define AT_CRC       4092


/* Makes the checksum of an entry right. */
static inline void
make_checksum(uint8_t *entry)
{
    bloom_put32(entry + AT_CRC, bloom_crc32c(0, entry, AT_CRC));
}


/* Decodes the first `len` bytes in memory of exactly that size.  Returns what
 * bloom_base_decode() does. */
static inline bloom_base_result_e
decode(bloom_base_t *base, unsigned *which, const uint8_t *file, size_t len,
    char *error)
{
    uint8_t              *exact;
    bloom_base_result_e   rc;

    exact = unit_copy(file, len);
    rc = bloom_base_decode(base, which, exact, len, error);
    free(exact);

    return rc;
}


/* Expects that an entry of a file counts, and has the values of `expected`. */
static inline void
counts(const uint8_t *file, size_t len, unsigned expected_which,
    const bloom_base_t *expected)
{
    char          error[BLOOM_BASE_ERROR_LEN];
    unsigned      which;
    bloom_base_t  base;

    memset(&base, 0xee, sizeof(base));
    which = 7;

    if (decode(&base, &which, file, len, error) != BLOOM_BASE_OK) {
        fail_msg("a file with a valid entry %s", error);
    }

    assert_int_equal(which, expected_which);
    assert_memory_equal(&base, expected, sizeof(base));
}


/* Expects that no entry counts, for a reason with these words. */
static inline void
refused(const uint8_t *file, size_t len, bloom_base_result_e rc,
    const char *expected)
{
    char          error[BLOOM_BASE_ERROR_LEN];
    unsigned      which;
    bloom_base_t  base;

    error[0] = '\0';
    which = 7;

    assert_int_equal(decode(&base, &which, file, len, error), rc);
    assert_int_equal(which, 7);

    if (strstr(error, expected) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", error, expected);
    }
}


/* ---- random entries ---- */


/* Returns a random number, often a small or a great one. */
static inline uint64_t
any(uint64_t *seed)
{
    switch (unit_random(seed) % 8) {

    case 0:
        return unit_random(seed) % 4;

    case 1:
        return UINT64_MAX - unit_random(seed) % 4;

    default:
        return unit_random(seed) >> unit_random(seed) % 64;
    }
}


/* Returns a random number from `low` to `high`, often one of them. */
static inline uint64_t
between(uint64_t *seed, uint64_t low, uint64_t high)
{
    switch (unit_random(seed) % 4) {

    case 0:
        return low;

    case 1:
        return high;

    default:
        return high - low == UINT64_MAX ? unit_random(seed)
               : low + unit_random(seed) % (high - low + 1);
    }
}


static inline void
any_bytes(uint64_t *seed, uint8_t *bytes, size_t len)
{
    while (len-- > 0) {
        bytes[len] = (uint8_t) unit_random(seed);
    }
}


static inline bloom_position_t
any_position(uint64_t *seed)
{
    bloom_position_t  position;

    position.high = any(seed);
    position.low = any(seed);

    return position;
}


static inline void
any_place(uint64_t *seed, bloom_reached_t *place)
{
    bloom_position_t  other;

    if (unit_random(seed) % 4 == 0) {
        return;
    }

    place->source = any(seed) | 1;
    place->position = any_position(seed);
    place->gap = any_position(seed);
    place->lost = unit_random(seed) % 2
                  && !bloom_position_is_zero(place->gap);
    place->digest.value = any(seed);
    place->digest.since = any_position(seed);
    place->due = any_position(seed);

    if (bloom_position_cmp(place->digest.since, place->position) > 0) {
        other = place->position;
        place->position = place->digest.since;
        place->digest.since = other;
    }
}


/* Makes a point at or behind `before`. */
static inline void
any_point(uint64_t *seed, const bloom_point_t *before, uint64_t floor,
    bloom_point_t *point)
{
    uint64_t  keys, least;

    *point = *before;
    point->time = between(seed, 0, floor);
    memset(&point->place, 0, sizeof(point->place));
    any_place(seed, &point->place);

    if (unit_random(seed) % 4 == 0
        || before->position == (UINT64_MAX & ~(uint64_t) 7))
    {
        return;
    }

    point->position = between(seed, before->position / 8 + 1, UINT64_MAX / 8)
                      * 8;
    point->sequence = between(seed, before->sequence, UINT64_MAX);

    /* keys that are added to the count have 1 to BLOOM_KEY_MAX bytes each */

    least = UINT64_MAX - before->removals.bytes;
    keys = between(seed, 0, least < UINT64_MAX - before->removals.keys
                            ? least : UINT64_MAX - before->removals.keys);

    point->removals.keys += keys;
    point->removals.bytes += between(seed, keys,
                                     keys > least / BLOOM_KEY_MAX
                                     ? least : keys * BLOOM_KEY_MAX);
}


static inline void
any_accepted(uint64_t *seed, bloom_accepted_t *accepted)
{
    any_bytes(seed, accepted->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    accepted->keys = any(seed);
    accepted->as_of = any(seed);
    accepted->loaded = between(seed, 1, UINT64_MAX);
    accepted->position = any_position(seed);
}


/* Makes an entry with any values that an entry may have. */
static inline void
any_base(uint64_t *seed, bloom_base_t *base)
{
    bloom_point_t  beginning;

    memset(base, 0, sizeof(*base));
    memset(&beginning, 0, sizeof(beginning));

    base->number = any(seed);
    base->number += base->number == 0;
    any_bytes(seed, base->journal, BLOOM_JOURNAL_ID_LEN);
    base->kind = (bloom_base_e) (unit_random(seed) % 4);

    if (base->kind != BLOOM_BASE_EMPTY && unit_random(seed) % 8 != 0) {
        any_bytes(seed, base->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    }

    if (base->kind == BLOOM_BASE_UPLOAD && unit_random(seed) % 4 != 0) {
        any_bytes(seed, base->replaced, BLOOM_IMAGE_BUILD_ID_LEN);
    }

    base->floor = any(seed);
    base->dropped = between(seed, 0, base->floor);
    base->lost = any(seed);
    base->lost_keys = base->lost ? any(seed) : 0;

    beginning.sequence = 1;
    any_point(seed, &beginning, base->floor, &base->from);

    if (base->kind == BLOOM_BASE_CHECKPOINT || unit_random(seed) % 2) {
        any_point(seed, &base->from, base->floor, &base->checkpoint[0]);

        if (base->checkpoint[0].position == 0) {
            base->checkpoint[0].position = 8;
        }

        any_point(seed, &base->checkpoint[0], base->floor,
                  &base->checkpoint[1]);

        base->checksum[0] = (uint32_t) any(seed);
        base->checksum[1] = (uint32_t) any(seed);

        if (base->kind != BLOOM_BASE_CHECKPOINT && unit_random(seed) % 2) {
            bloom_base_forget(base, 0);
        }
    }

    if (unit_random(seed) % 4 != 0) {
        any_accepted(seed, &base->accepted[0]);

        if (unit_random(seed) % 4 != 0) {
            any_accepted(seed, &base->accepted[1]);
        }
    }
}


#endif /* BASE_FILES_H */
