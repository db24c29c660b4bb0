/* SPDX-License-Identifier: BSD-2-Clause */

/* Keys in the set of the tool, each with the first line where it is. */

#include "unit.h"

#include "key_set.c"

#define KEYS  3000


/* What the set needs of the tool. */

void *
cli_alloc(size_t size)
{
    return cli_realloc(NULL, size);
}


void *
cli_realloc(void *old, size_t size)
{
    void  *p;

    p = realloc(old, size);
    assert_non_null(p);

    return p;
}


void
cli_random(void *buf, size_t len)
{
    memset(buf, 5, len);
}


static bloom_key_t
key_of(char text[32], int i)
{
    bloom_key_t  key;

    key.len = (size_t) sprintf(text, "%d", i);
    key.data = (const uint8_t *) text;

    return key;
}


static int
add(key_set_t *set, const bloom_key_t *key, unsigned file, uint64_t line,
    size_t *at)
{
    place_t  place = { file, line };

    return key_set_add(set, key, &place, at);
}


TEST(keys_are_found_with_their_first_place)
{
    int             i;
    char            text[32];
    size_t          at;
    key_set_t       set;
    bloom_key_t     key, same;
    key_set_key_t  *found;

    key_set_create(&set);

    for (i = 0; i < KEYS; i++) {
        key = key_of(text, i);

        assert_int_equal(add(&set, &key, 1, 10, &at), 1);
        assert_int_equal(at, i);
        at = KEYS;
        assert_int_equal(add(&set, &key, 1, 10, &at), 0);
        assert_int_equal(at, i);
        assert_int_equal(add(&set, &key, 2, 1, &at), 0);
        assert_int_equal(add(&set, &key, 1, 11, &at), 0);
    }

    for (i = 0; i < KEYS; i++) {
        key = key_of(text, i);

        if (i % 3 == 1) {
            at = 0;
            assert_int_equal(add(&set, &key, 1, 9, &at), 1);
            assert_int_equal(at, i);

        } else if (i % 3 == 2) {
            assert_int_equal(add(&set, &key, 0, 99, &at), 1);
            assert_int_equal(at, i);
        }
    }

    assert_int_equal(set.n, KEYS);

    for (i = 0; i < KEYS; i++) {
        key = key_of(text, i);
        found = key_set_find(&set, &key);

        assert_ptr_equal(found, &set.key[i]);
        assert_int_equal(found->place.file, i % 3 == 2 ? 0 : 1);
        assert_int_equal(found->place.line, i % 3 == 0 ? 10 : i % 3 == 1 ? 9 : 99);
        assert_int_equal(found->found, 0);

        same = key_set_text(&set, found);
        assert_int_equal(same.len, key.len);
        assert_memory_equal(same.data, key.data, key.len);

        key.len--;                       /* "12" without its end, or "" */

        if (i < 10) {
            assert_null(key_set_find(&set, &key));
        }
    }

    key = key_of(text, KEYS);
    assert_null(key_set_find(&set, &key));

    key_set_free(&set);
}
