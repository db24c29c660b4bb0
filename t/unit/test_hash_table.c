/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that the tool's table finds each hash, and that hashes that
 * an attacker chooses do not meet in few slots.
 */

#include "unit.h"

#include "hash_table.c"

#define HASHES  65536

/* More hashes than this do not begin at one slot.  With 4 slots for each hash,
 * random ones have at most 6 or so. */
#define MEET    12


static uint64_t  secrets = 7;


/* What the table needs of the tool. */

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

    for (i = 0; i < len; i++) {
        ((uint8_t *) buf)[i] = (uint8_t) unit_random(&secrets);
    }
}


/* Makes the hash of a number; hashes of a kind have much in common. */
static void
make_hash(uint64_t hash[2], uint64_t i, int kind)
{
    uint64_t  state;

    state = i;
    hash[0] = unit_random(&state);
    hash[1] = unit_random(&state);

    switch (kind) {

    case 0:
        break;

    case 1:                              /* the lowest bits, and the highest */
        hash[0] >>= 24;
        hash[1] = hash[1] << 32 | 5;
        break;

    case 2:
        hash[0] = 42;
        break;

    case 3:
        hash[1] = 42;
        break;

    case 4:                              /* small numbers */
        hash[0] = i;
        hash[1] = 0;
        break;

    case 5:                              /* large ones */
        hash[0] = 9;
        hash[1] = i << 48;
        break;

    case 6:                              /* each half has few values */
        hash[0] = (i & 0xff) << 56;
        hash[1] = (i >> 8) << 56;
        break;

    default:                             /* equal halves */
        hash[1] = hash[0];
        break;
    }
}

#define KINDS  8


/* Hashes of one word and of two are found, and no others. */
TEST(each_hash_is_found)
{
    int            kind;
    size_t         i;
    uint32_t      *slot;
    unsigned       width;
    uint64_t      *array, hash[2];
    hash_table_t   table;

    memset(&table, 0, sizeof(table));
    array = cli_alloc(2 * HASHES * sizeof(uint64_t));

    for (kind = 0; kind < KINDS; kind++) {

        /* of one word, only kinds whose h2 differ */

        for (width = kind == 3 || kind == 4 || kind == 6 ? 2 : 1; width <= 2;
             width++)
        {
            hash_table_clear(&table, 4 * HASHES);

            for (i = 0; i < 2 * HASHES; i++) {
                make_hash(hash, i % HASHES, kind);

                if (width == 1) {
                    hash[0] = hash[1];
                }

                slot = hash_table_find(&table, array, width, hash[0], hash[1]);

                if (i >= HASHES) {
                    assert_int_equal(*slot, i - HASHES + 1);
                    continue;
                }

                assert_int_equal(*slot, 0);
                *slot = (uint32_t) (i + 1);
                array[i * width] = hash[0];
                array[i * width + width - 1] = hash[1];
            }

            for (i = 0; i < HASHES; i++) {
                make_hash(hash, i + HASHES, 0);
                assert_int_equal(*hash_table_find(&table, array, width,
                                                  hash[width == 1], hash[1]),
                                 0);
            }
        }
    }

    free(array);
    hash_table_free(&table);
}


TEST(chosen_hashes_do_not_meet)
{
    int            kind;
    size_t         i, home;
    uint64_t       hash[2];
    uint8_t       *meet;
    hash_table_t   table;

    meet = cli_alloc(4 * HASHES);

    for (kind = 0; kind < KINDS; kind++) {
        memset(&table, 0, sizeof(table));
        memset(meet, 0, 4 * HASHES);
        hash_table_clear(&table, 4 * HASHES);

        for (i = 0; i < HASHES; i++) {
            make_hash(hash, i, kind);
            home = hash_table_home(&table, hash[0], hash[1]);

            assert_true(home < 4 * HASHES);

            if (++meet[home] > MEET) {
                print_error("kind %d: more than %d hashes meet\n", kind, MEET);
                fail();
            }
        }

        hash_table_free(&table);
    }

    free(meet);
}


/* Each table has a secret of its own, and has no hashes when it is cleared. */
TEST(tables_differ)
{
    size_t        i, same;
    uint64_t      hash[2];
    hash_table_t  one, two;

    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    hash_table_clear(&one, HASHES);
    hash_table_clear(&two, HASHES);

    for (i = 0, same = 0; i < HASHES; i++) {
        make_hash(hash, i, 0);
        same += hash_table_home(&one, hash[0], hash[1])
                == hash_table_home(&two, hash[0], hash[1]);
    }

    assert_true(same < 20);

    hash_table_clear(&one, 100);
    assert_int_equal(one.bits, 7);

    for (i = 0; i < 128; i++) {
        assert_int_equal(one.slot[i], 0);
        one.slot[i] = 1;
    }

    hash_table_clear(&one, 0);
    assert_int_equal(one.bits, 6);
    assert_int_equal(one.slot[0], 0);
    assert_int_equal(one.slot[63], 0);

    hash_table_free(&one);
    hash_table_free(&two);
}
