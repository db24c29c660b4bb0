/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check digests of changes: that their values are as documented,
 * that it does not matter where batches end, and that any other change or order
 * gives another digest.
 */

#include <string.h>

#include "unit.h"

#include "bloom_digest.h"


/* Counts changes, "+key" or "-key", in batches of `n` changes. */
static uint64_t
digest_of(const char *const *changes, size_t n)
{
    size_t                i;
    bloom_key_t           key;
    bloom_digest_t        digest;
    bloom_digest_batch_t  batch;

    static const bloom_position_t  since = { 5, 6 };

    bloom_digest_restart(&digest, since);
    assert_int_equal(digest.value, 0);

    while (*changes != NULL) {
        bloom_digest_begin(&batch);

        for (i = 0; i < n && *changes != NULL; i++, changes++) {
            key.data = (const uint8_t *) *changes + 1;
            key.len = strlen(*changes) - 1;
            bloom_digest_put(&batch, &key, **changes == '-');
        }

        bloom_digest_extend(&digest, &batch);
    }

    assert_int_equal(bloom_position_cmp(digest.since, since), 0);

    return digest.value;
}


static const char  *const changes[] = {
    "+one", "-one", "+one", "+two", "-three", "-three", "+\xff", NULL
};


/* The values are those of t/lib/BloomTest/Digest.pm. */
TEST(the_values_are_as_documented)
{
    static const char  *const none[] = { NULL };
    static const char  *const added[] = { "+one", NULL };
    static const char  *const removed[] = { "-one", NULL };
    static const char  *const longer[] = { "-two", "+four", NULL };

    assert_int_equal(digest_of(none, 1), 0);
    assert_int_equal(digest_of(added, 1), 0x113c087f76ea9f7e);
    assert_int_equal(digest_of(removed, 1), 0xedeccfa44f37695d);
    assert_int_equal(digest_of(longer, 1), 0x9dc70ed0b3ee10e3);
    assert_int_equal(digest_of(changes, 1), 0xbfbeb8a7433e739e);
}


TEST(batches_may_end_anywhere)
{
    size_t                n;
    bloom_digest_t        digest = { 17, { 1, 2 } };
    bloom_digest_batch_t  batch;

    for (n = 2; n < 9; n++) {
        assert_int_equal(digest_of(changes, n), digest_of(changes, 1));
    }

    bloom_digest_begin(&batch);
    bloom_digest_extend(&digest, &batch);
    assert_int_equal(digest.value, 17);
}


TEST(other_changes_have_another_digest)
{
    size_t       i, j;
    uint64_t     right;
    const char  *other[sizeof(changes) / sizeof(changes[0])];

    right = digest_of(changes, 3);

    for (i = 0; changes[i] != NULL; i++) {

        /* a change is missing */

        memcpy(other, changes, sizeof(other));
        memmove(other + i, other + i + 1,
                sizeof(other) - (i + 1) * sizeof(other[0]));
        assert_int_not_equal(digest_of(other, 3), right);

        /* a change is another one */

        memcpy(other, changes, sizeof(other));
        other[i] = changes[i][0] == '+' ? "-else" : "+else";
        assert_int_not_equal(digest_of(other, 3), right);

        /* two changes have changed places */

        for (j = 0; j < i; j++) {
            memcpy(other, changes, sizeof(other));
            other[i] = changes[j];
            other[j] = changes[i];

            if (strcmp(changes[i], changes[j]) != 0) {
                assert_int_not_equal(digest_of(other, 3), right);
            }
        }
    }
}
