/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that an entry of the file "base" whose values contradict
 * each other is refused, by a writer's check and by a reader.
 */

#include "base_files.h"


/* Makes an entry in which each value is set, of a zone that stands on an
 * upload. */
static void
create_full(bloom_base_t *base)
{
    int  i;

    static const bloom_reached_t  place = {
        0x1235, { 100, 7 }, { 90, 0 }, 1, { 42, { 95, 3 } }, { 80, 0 }
    };

    memset(base, 0, sizeof(*base));

    base->number = 9;
    base->journal[0] = 1;
    base->kind = BLOOM_BASE_UPLOAD;
    base->build_id[0] = 2;
    base->replaced[0] = 3;
    base->dropped = 5000;
    base->floor = 9000;
    base->lost = 10000;
    base->lost_keys = 3;

    base->from = (bloom_point_t) { 800, 10, 6000, { 2, 20 }, place };
    base->checkpoint[0] = (bloom_point_t) { 1600, 20, 7000, { 3, 30 }, place };
    base->checkpoint[1] = (bloom_point_t) { 2400, 30, 8000, { 4, 40 }, place };

    for (i = 0; i < 2; i++) {
        base->checksum[i] = 11 + i;
        base->accepted[i] = (bloom_accepted_t) {
            { 4 }, 1000, 2000, 3000, { 5, 6 }
        };
    }
}


/* Expects that neither a check nor a reader accepts an entry. */
static void
wrong(const bloom_base_t *base, const char *expected)
{
    uint8_t      file[BLOOM_BASE_SIZE] = { 0 };
    const char  *said;

    said = bloom_base_check(base);

    if (said == NULL || strcmp(said, expected) != 0) {
        fail_msg("\"%s\" instead of \"%s\"", said ? said : "valid", expected);
    }

    bloom_base_encode(base, file);
    refused(file, sizeof(file), BLOOM_BASE_DAMAGED, expected);
}


#define wrong_if(change, expected)                                           \
    do {                                                                     \
        bloom_base_t  b;                                                     \
                                                                             \
        create_full(&b);                                                     \
        change;                                                              \
        wrong(&b, expected);                                                 \
    } while (0)

#define valid_if(change)                                                     \
    do {                                                                     \
        uint8_t       file[BLOOM_BASE_SIZE] = { 0 };                         \
        bloom_base_t  b;                                                     \
                                                                             \
        create_full(&b);                                                     \
        change;                                                              \
        assert_null(bloom_base_check(&b));                                   \
        bloom_base_encode(&b, file);                                         \
        counts(file, sizeof(file), 0, &b);                                   \
    } while (0)


TEST(values_of_the_wrong_kind_are_refused)
{
    valid_if((void) 0);

    wrong_if(b.number = 0, "has the number 0");
    wrong_if(b.kind = (bloom_base_e) 4, "has an unknown kind");
    wrong_if(b.kind = (bloom_base_e) -1, "has an unknown kind");

    wrong_if(b.kind = BLOOM_BASE_EMPTY; b.replaced[0] = 0,
             "stands on an empty filter, but names an image");
    wrong_if(b.kind = BLOOM_BASE_FILE,
             "has no upload, but names the image that it replaced");
    wrong_if(b.kind = BLOOM_BASE_CHECKPOINT,
             "has no upload, but names the image that it replaced");
    wrong_if(b.kind = BLOOM_BASE_EMPTY; b.build_id[0] = 0,
             "has no upload, but names the image that it replaced");

    valid_if(b.kind = BLOOM_BASE_EMPTY; b.build_id[0] = 0; b.replaced[0] = 0);
    valid_if(b.kind = BLOOM_BASE_FILE; b.replaced[0] = 0);
    valid_if(b.kind = BLOOM_BASE_CHECKPOINT; b.replaced[0] = 0);
    valid_if(b.kind = BLOOM_BASE_CHECKPOINT; b.replaced[0] = 0;
             b.build_id[0] = 0);
    valid_if(b.replaced[0] = 0);

    wrong_if(b.lost = 0, "has lost keys, but no time of a loss");
    valid_if(b.lost = 0; b.lost_keys = 0);
    valid_if(b.lost_keys = 0);

    wrong_if(b.dropped = 9001, "has a time after its floor");
    valid_if(b.dropped = 9000);
}


TEST(wrong_points_are_refused)
{
    int  i;

    for (i = 0; i < 3; i++) {

#define point  (i == 2 ? &b.from : &b.checkpoint[i])

        wrong_if(point->position += 4,
                 "has a position that is not a multiple of 8");
        wrong_if(point->position++,
                 "has a position that is not a multiple of 8");
        wrong_if(point->sequence = 0, "has the sequence 0");
        wrong_if(point->time = 9001, "has a time after its floor");
        valid_if(point->time = 9000);
        valid_if(point->time = 0);

        wrong_if(point->removals.bytes = point->removals.keys - 1,
                 "has too few or too many bytes of removed keys");
        wrong_if(point->removals.bytes = 65535 * point->removals.keys + 1,
                 "has too few or too many bytes of removed keys");
        wrong_if(point->removals.keys = 0,
                 "has too few or too many bytes of removed keys");
        wrong_if(point->removals.bytes = UINT64_MAX,
                 "has too few or too many bytes of removed keys");

        wrong_if(point->place.source = 0, "has a place in no source");
        wrong_if(point->place.source = 0x1234,
                 "has an even number for a source");
        wrong_if(point->place.lost = 2, "has an unknown kind of gap");
        wrong_if(point->place.lost = (uint64_t) 1 << 32,
                 "has an unknown kind of gap");
        wrong_if(point->place.gap.high = 0,
                 "says that a source lost changes, but not up to where");
        wrong_if(point->place.digest.since.high = 101,
                 "has a digest that begins behind its place in the source");
        wrong_if(point->place.digest.since = point->place.position;
                 point->place.digest.since.low++,
                 "has a digest that begins behind its place in the source");
        valid_if(point->place.digest.since = point->place.position);
        valid_if(point->place.lost = 0);
        valid_if(point->place.lost = 0; point->place.gap.high = 0);
        valid_if(memset(&point->place, 0, sizeof(b.from.place)));

#undef point
    }

    /* exactly as many bytes as the keys can have */

    valid_if(b.checkpoint[1].removals.bytes = 4 * 65535);
    valid_if(b.checkpoint[1].removals.keys = 40);
    valid_if(b.from.removals.keys = 0; b.from.removals.bytes = 0);
}


/* A place in no source has zeros, whichever field it is. */
TEST(each_field_of_a_place_needs_a_source)
{
    size_t   at;

    for (at = 8; at < sizeof(bloom_reached_t); at += 8) {
        wrong_if(memset(&b.from.place, 0, sizeof(b.from.place));
                 ((uint8_t *) &b.from.place)[at + at / 8 % 8] = 1,
                 "has a place in no source");
    }
}


TEST(points_in_the_wrong_order_are_refused)
{
    static const char  *const before = "has a checkpoint before its journal";
    static const char  *const order = "has checkpoints in the wrong order";

    wrong_if(b.from.position = 1608, before);
    wrong_if(b.from.position = 1600, before);
    wrong_if(b.from.sequence = 21, before);
    wrong_if(b.from.removals.keys = 5; b.from.removals.bytes = 5, before);
    wrong_if(b.from.removals.bytes = 31, before);

    wrong_if(b.checkpoint[0].position = 2408, order);
    wrong_if(b.checkpoint[0].position = 2400, order);
    wrong_if(b.checkpoint[0].position = 2400; b.checkpoint[0].sequence = 30,
             order);
    wrong_if(b.checkpoint[0].sequence = 31, order);
    wrong_if(b.checkpoint[0].removals.keys = 5, order);
    wrong_if(b.checkpoint[0].removals.bytes = 41, order);

    /* all three at the same point; and between two segments, at the end of one
     * and the beginning of the next */

    valid_if(b.from = b.checkpoint[0] = b.checkpoint[1]);
    valid_if(b.checkpoint[0] = b.checkpoint[1];
             b.checkpoint[0].position -= 8);

    /* a single checkpoint is the newer one, and is no older one */

    valid_if(bloom_base_forget(&b, 0));
    valid_if(bloom_base_forget(&b, 0); bloom_base_forget(&b, 1));
    wrong_if(bloom_base_forget(&b, 1), order);
    wrong_if(bloom_base_forget(&b, 0);
             b.from.position = 2408, before);

    wrong_if(bloom_base_forget(&b, 0);
             b.kind = BLOOM_BASE_CHECKPOINT; b.replaced[0] = 0,
             "stands on an older checkpoint that it lacks");
    wrong_if(bloom_base_forget(&b, 0); bloom_base_forget(&b, 1);
             b.kind = BLOOM_BASE_CHECKPOINT; b.replaced[0] = 0,
             "stands on an older checkpoint that it lacks");
}


TEST(what_is_not_there_has_no_values)
{
    int     i;
    size_t  at;

    for (i = 0; i < 2; i++) {
        for (at = 8; at < sizeof(bloom_point_t); at += 8) {
            wrong_if(bloom_base_forget(&b, i);
                     ((uint8_t *) &b.checkpoint[i])[at + at / 8 % 8] = 1,
                     "has a checkpoint without a position");
        }

        wrong_if(bloom_base_forget(&b, i); b.checksum[i] = 1,
                 "has a checkpoint without a position");
        valid_if(b.checksum[i] = 0);

        for (at = 0; at < sizeof(bloom_accepted_t); at += 8) {
            if (at != offsetof(bloom_accepted_t, loaded)) {
                wrong_if(memset(&b.accepted[i], 0, sizeof(b.accepted[i]));
                         ((uint8_t *) &b.accepted[i])[at + at / 8 % 8] = 1,
                         "has an accepted image that was never loaded");
            }
        }
    }

    wrong_if(memset(&b.accepted[0], 0, sizeof(b.accepted[0])),
             "has no last accepted image, but one before it");

    valid_if(memset(&b.accepted[1], 0, sizeof(b.accepted[1])));
    valid_if(memset(b.accepted, 0, sizeof(b.accepted)));

    /* all that an accepted image needs is a time of its first load */

    valid_if(b.accepted[0].keys = 0; b.accepted[0].as_of = 0);
    valid_if(b.accepted[1].build_id[0] = 0);
    valid_if(memset(b.accepted, 0, sizeof(b.accepted));
             b.accepted[0].loaded = 1);
}
