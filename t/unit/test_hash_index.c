/* SPDX-License-Identifier: BSD-2-Clause */

/* Hashes in the table of the tool, each with marks of its own. */

#include "unit.h"

#include "hash_index.c"

#define HASHES  5000
#define FIRST   2
#define SECOND  4


/* What the table needs of the tool. */

const char  *cli_command;

void *
cli_alloc(size_t size)
{
    void  *p;

    p = malloc(size);
    assert_non_null(p);

    return p;
}


void
cli_random(void *buf, size_t len)
{
    size_t    i;
    uint64_t  state;

    state = 7;

    for (i = 0; i < len; i++) {
        ((uint8_t *) buf)[i] = (uint8_t) unit_random(&state);
    }
}


/* Fills an array with hashes: random ones, with equal halves, small numbers, or
 * numbers that differ in the highest bits only. */
static void
make_hashes(bloom_hash_t *hash, size_t n, int kind)
{
    size_t    i;
    uint64_t  state;

    state = 1;

    for (i = 0; i < n; i++) {
        hash[i].h1 = kind == 0 ? unit_random(&state)
                     : kind == 1 ? 42
                     : kind == 2 ? (uint64_t) i
                     : (uint64_t) i << 48;
        hash[i].h2 = kind == 2 ? 0
                     : kind == 3 ? 9
                     : unit_random(&state);
    }
}


static void
each_hash_has_its_own_marks(void **state)
{
    int            kind;
    size_t         i;
    bloom_hash_t  *hash;
    hash_index_t   index;

    (void) state;

    hash = calloc(2 * HASHES, sizeof(*hash));
    assert_non_null(hash);

    for (kind = 0; kind < 4; kind++) {
        make_hashes(hash, 2 * HASHES, kind);
        hash_index_create(&index, HASHES);

        for (i = 0; i < HASHES; i++) {
            hash_index_add(&index, hash[i]);
            hash_index_add(&index, hash[i]);
        }

        /* the first half of those that are there, and others */

        hash_index_mark(&index, hash + HASHES / 2, HASHES, FIRST);
        hash_index_mark(&index, hash, 1, SECOND);

        for (i = 0; i < 2 * HASHES; i++) {
            assert_int_equal(hash_index_marks(&index, hash[i]),
                             i >= HASHES ? 0
                             : i >= HASHES / 2 ? HASH_INDEX_PRESENT | FIRST
                             : i == 0 ? HASH_INDEX_PRESENT | SECOND
                             : HASH_INDEX_PRESENT);
        }

        hash_index_free(&index);
    }

    free(hash);
}


static void
hash_of_zeros_is_a_hash(void **state)
{
    hash_index_t  index;

    const bloom_hash_t  zero = { 0, 0 };

    (void) state;

    hash_index_create(&index, 0);
    assert_int_equal(hash_index_marks(&index, zero), 0);

    hash_index_mark(&index, &zero, 1, FIRST);
    assert_int_equal(hash_index_marks(&index, zero), 0);

    hash_index_add(&index, zero);
    hash_index_mark(&index, &zero, 1, FIRST);
    assert_int_equal(hash_index_marks(&index, zero),
                     HASH_INDEX_PRESENT | FIRST);

    hash_index_free(&index);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_hash_has_its_own_marks),
        cmocka_unit_test(hash_of_zeros_is_a_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
