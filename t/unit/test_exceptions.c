/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare a set of exceptions with a plain table, while one process
 * changes the set, and check that exceptions of images are read and written.
 */

#include "unit.h"

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"

#define KEYS        3000                 /* of the model */
#define OPERATIONS  1000000


static const uint8_t  secret[BLOOM_HASH_KEY_LEN] = "a secret of test";


static void
make_sized(bloom_exceptions_t *set, uint64_t n, uint64_t bytes)
{
    void    *memory;
    size_t   size;

    size = bloom_exceptions_size(n, bytes);

    memory = aligned_alloc(64, size);
    assert_non_null(memory);
    memset(memory, 0, size);

    bloom_exceptions_attach(set, memory, n, bytes);
    bloom_exceptions_init(set, secret);
}


static void
make(bloom_exceptions_t *set, uint64_t n)
{
    make_sized(set, n, n * BLOOM_EXCEPTION_KEY_USUAL);
}


static int
put(bloom_exceptions_t *set, const void *data, size_t len, unsigned kinds,
    uint64_t time)
{
    bloom_exception_t  exception;

    exception.kinds = kinds;
    exception.time = time;
    exception.position = 0;
    exception.key.data = data;
    exception.key.len = len;

    return bloom_exceptions_put(set, &exception);
}


static int
drop(bloom_exceptions_t *set, const void *data, size_t len, unsigned kinds)
{
    return bloom_exceptions_drop(set, data, len, kinds, UINT64_MAX);
}


/* Returns 1 if there is room for one more key of `len` bytes, else 0. */
static int
room(bloom_exceptions_t *set, size_t len)
{
    return bloom_exceptions_count(set) < set->nlines
           && bloom_exceptions_cells(len) <= bloom_exceptions_free(set);
}


/* ---- one process ---- */


TEST(an_empty_set_has_no_keys)
{
    uint8_t             buf[BLOOM_KEY_MAX];
    uint64_t            cursor;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    assert_int_equal(bloom_exceptions_size(0, 0), 0);
    bloom_exceptions_attach(&set, NULL, 0, 0);
    bloom_exceptions_init(&set, secret);

    assert_int_equal(bloom_exceptions_count(&set), 0);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 0);
    assert_int_equal(room(&set, 1), 0);
    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_REMOVED, 1), -1);
    assert_int_equal(drop(&set, "a", 1, 7), 0);

    cursor = 0;
    assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf), 0);
}


TEST(kinds_and_time_of_a_key)
{
    uint8_t             buf[BLOOM_KEY_MAX];
    uint64_t            cursor;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    make(&set, 10);

    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_REMOVED, 5), 1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1),
                     BLOOM_EXCEPTION_REMOVED);
    assert_int_equal(bloom_exceptions_has(&set, "b", 1), 0);
    assert_int_equal(bloom_exceptions_has(&set, "", 0), 0);
    assert_int_equal(set.head->puts, 2);

    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_FEEDBACK, 1ull << 50), 0);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1),
                     BLOOM_EXCEPTION_REMOVED | BLOOM_EXCEPTION_FEEDBACK);

    cursor = 0;
    assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf), 1);
    assert_int_equal(exception.kinds, 6);
    assert_int_equal(exception.time, 1ull << 50);
    assert_int_equal(exception.key.len, 1);
    assert_int_equal(exception.key.data[0], 'a');
    assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf), 0);

    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_REMOVED), 0);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1),
                     BLOOM_EXCEPTION_FEEDBACK);
    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_BUILT), 0);
    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_FEEDBACK), 1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 0);
    assert_int_equal(bloom_exceptions_count(&set), 0);

    assert_int_equal(put(&set, "", 0, 7, 1), -1);

    free(set.head);
}


/* A line as bloom_exceptions.c has it. */
typedef struct {
    struct {
        uint64_t  h1;
        uint64_t  h2;
    }         hash[3];
    uint32_t  first[3];
    uint32_t  away;                      /* 256 times the number of keys that
                                            are in later lines, and how far */
} line_t;


/* A lookup in a full set reads one line for nearly every key. */
TEST(a_full_set_has_its_keys_at_home)
{
    enum { N = 100000 };

    char                key[16];
    uint64_t            away, reach;
    unsigned            i, n;
    const line_t       *line;
    bloom_exceptions_t  set;

    make(&set, N);

    for (i = 0; i < N; i++) {
        n = snprintf(key, sizeof(key), "key%u", i);
        assert_int_equal(put(&set, key, n, BLOOM_EXCEPTION_REMOVED, 1), 1);
    }

    assert_int_equal(put(&set, "more", 4, BLOOM_EXCEPTION_REMOVED, 1), -1);

    line = (const line_t *) set.lines;

    for (i = 0, away = 0, reach = 0; i < set.nlines; i++) {
        away += line[i].away >> 8;
        reach = line[i].away % 256 > reach ? line[i].away % 256 : reach;
    }

    /* of a Poisson distribution of mean 1, 2.3 % are beyond 3; keys of other
     * lines take some more slots */

    assert_in_range(away, N * 2 / 100, N * 3 / 100);
    assert_in_range(reach, 1, 8);

    free(set.head);
}


/* A search for a free slot ends after 256 lines, in a set however full. */
TEST(a_put_searches_256_lines)
{
    enum { N = 1000 };

    line_t             *line;
    unsigned            i, j, home;
    bloom_exceptions_t  set;

    make(&set, N);
    line = (line_t *) set.lines;

    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_REMOVED, 1), 1);

    for (home = 0; line[home].first[0] == 0; home++) {
        assert_in_range(home, 0, N - 2);
    }

    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_REMOVED), 1);

    /* slots of processes that died, as the set's count has none of them */

    for (i = 0; i < N; i++) {
        for (j = 0; j < 3; j++) {
            line[i].first[j] = 1;
        }
    }

    line[(home + 256) % N].first[2] = 0;
    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_REMOVED, 1), -1);
    assert_int_equal(bloom_exceptions_count(&set), 0);

    line[(home + 255) % N].first[2] = 0;
    assert_int_equal(put(&set, "a", 1, BLOOM_EXCEPTION_REMOVED, 1), 1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1),
                     BLOOM_EXCEPTION_REMOVED);
    assert_int_equal(line[home].away, 256 + 255);

    free(set.head);
}


/* A key without kinds has a place, but is not found before it has a kind. */
TEST(a_key_that_is_confirmed)
{
    uint8_t             buf[BLOOM_KEY_MAX];
    uint64_t            cursor;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    make(&set, 10);

    assert_int_equal(put(&set, "a", 1, 0, 1), 1);
    assert_int_equal(set.head->puts, 2);
    assert_int_equal(bloom_exceptions_count(&set), 1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 0);

    cursor = 0;
    assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf), 0);

    assert_int_equal(bloom_exceptions_confirm(&set, "a", 1,
                                              BLOOM_EXCEPTION_FEEDBACK),
                     1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1),
                     BLOOM_EXCEPTION_FEEDBACK);
    assert_int_equal(bloom_exceptions_feedback(&set), 1);

    cursor = 0;
    assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf), 1);
    assert_int_equal(exception.kinds, BLOOM_EXCEPTION_FEEDBACK);

    assert_int_equal(bloom_exceptions_confirm(&set, "b", 1,
                                              BLOOM_EXCEPTION_FEEDBACK),
                     0);

    /* an addition drops a key, with or without kinds */

    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_KINDS), 1);
    assert_int_equal(put(&set, "a", 1, 0, 1), 1);
    assert_int_equal(drop(&set, "a", 1, BLOOM_EXCEPTION_KINDS), 1);
    assert_int_equal(bloom_exceptions_confirm(&set, "a", 1,
                                              BLOOM_EXCEPTION_FEEDBACK),
                     0);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 0);
    assert_int_equal(bloom_exceptions_count(&set), 0);
    assert_int_equal(bloom_exceptions_feedback(&set), 0);
    assert_int_equal(set.head->cells_used, 0);

    free(set.head);
}


/* A record that is older than the one that made the key an exception changes
 * neither its time nor its position, and does not drop it. */
TEST(positions_of_a_key)
{
    uint8_t             buf[BLOOM_KEY_MAX];
    unsigned            i;
    uint64_t            cursor;
    bloom_exception_t   in, out;
    bloom_exceptions_t  set;

    static const uint64_t  positions[][2] = {
        { 100, 100 }, { 50, 100 }, { 100, 100 }, { 200, 200 }
    };

    make(&set, 10);

    for (i = 0; i < array_len(positions); i++) {
        in.kinds = BLOOM_EXCEPTION_REMOVED;
        in.time = positions[i][0] + 1;
        in.position = positions[i][0];
        in.key.data = (const uint8_t *) "a";
        in.key.len = 1;

        assert_int_equal(bloom_exceptions_put(&set, &in), i == 0);

        cursor = 0;
        assert_int_equal(bloom_exceptions_next(&set, &cursor, &out, buf), 1);
        assert_int_equal(out.position, positions[i][1]);
        assert_int_equal(out.time, positions[i][1] + 1);
    }

    assert_int_equal(bloom_exceptions_drop(&set, "a", 1, 7, 199), 0);
    assert_int_equal(bloom_exceptions_drop(&set, "a", 1, 7, 200), 0);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 2);
    assert_int_equal(bloom_exceptions_drop(&set, "a", 1, 1, 201), 0);
    assert_int_equal(bloom_exceptions_drop(&set, "a", 1, 2, 201), 1);
    assert_int_equal(bloom_exceptions_has(&set, "a", 1), 0);

    free(set.head);
}


/* A key of the model: its length and its bytes follow from its number. */
static size_t
key_of(unsigned number, uint8_t *key)
{
    size_t    i, len;
    uint64_t  state;

    state = number;
    len = 8 + unit_random(&state) % 240;

    for (i = 0; i < len; i++) {
        key[i] = (uint8_t) unit_random(&state);
    }

    memcpy(key, &number, sizeof(number));

    return len;
}


typedef struct {
    unsigned  kinds;
    uint64_t  time;
    int       listed;
} known_t;


/* Checks that the set is equal to the table. */
static void
compare(bloom_exceptions_t *set, known_t *known, unsigned n)
{
    size_t             len;
    uint8_t            buf[BLOOM_KEY_MAX], key[256];
    unsigned           i, number;
    uint64_t           cursor, count, feedback;
    bloom_exception_t  exception;

    for (i = 0, count = 0, feedback = 0; i < n; i++) {
        len = key_of(i, key);
        assert_int_equal(bloom_exceptions_has(set, key, len), known[i].kinds);
        known[i].listed = 0;
        count += known[i].kinds != 0;
        feedback += (known[i].kinds & BLOOM_EXCEPTION_FEEDBACK) != 0;
    }

    assert_int_equal(bloom_exceptions_count(set), count);
    assert_int_equal(bloom_exceptions_feedback(set), feedback);

    cursor = 0;

    while (bloom_exceptions_next(set, &cursor, &exception, buf)) {
        memcpy(&number, exception.key.data, sizeof(number));
        assert_true(number < n);

        len = key_of(number, key);
        assert_int_equal(exception.key.len, len);
        assert_memory_equal(exception.key.data, key, len);
        assert_int_equal(exception.kinds, known[number].kinds);
        assert_int_equal(exception.time, known[number].time);
        assert_int_equal(known[number].listed++, 0);
        count--;
    }

    assert_int_equal(count, 0);
}


TEST(random_operations_are_those_of_a_table)
{
    int                 rc;
    size_t              len;
    uint8_t             key[256];
    unsigned            i, number, kinds, full;
    uint64_t            random;
    known_t            *known;
    bloom_exceptions_t  set;

    /* two thirds of the keys fit, so the set is often full */

    make(&set, KEYS * 2 / 3);
    known = unit_zeros(KEYS * sizeof(*known));

    random = 1;
    full = 0;

    for (i = 0; i < OPERATIONS; i++) {
        number = (unsigned) (unit_random(&random) % KEYS);
        kinds = 1 + (unsigned) (unit_random(&random) % 7);
        len = key_of(number, key);

        assert_int_equal(bloom_exceptions_has(&set, key, len),
                         known[number].kinds);

        if (unit_random(&random) % 16 < (i / 100000 % 2 ? 5 : 12)) {
            rc = room(&set, len);

            if (known[number].kinds != 0) {
                rc = 0;

            } else if (rc == 0) {
                rc = -1;
            }

            assert_int_equal(put(&set, key, len, kinds, i), rc);

            if (rc >= 0) {
                known[number].kinds |= kinds;
                known[number].time = i;

            } else {
                full++;
            }

            continue;
        }

        rc = known[number].kinds != 0 && (known[number].kinds & ~kinds) == 0;

        assert_int_equal(drop(&set, key, len, kinds), rc);
        known[number].kinds &= ~kinds;

        if (i % 50000 == 0) {
            compare(&set, known, KEYS);
        }
    }

    compare(&set, known, KEYS);
    assert_true(full > 1000);

    /* the whole room returns */

    for (number = 0; number < KEYS; number++) {
        len = key_of(number, key);
        (void) drop(&set, key, len, 7);
        known[number].kinds = 0;
    }

    compare(&set, known, KEYS);
    assert_int_equal(set.head->cells_used, 0);

    free(known);
    free(set.head);
}


TEST(a_set_has_the_room_for_which_it_was_made)
{
    size_t              len;
    uint8_t             key[512];
    unsigned            i, n, round;
    uint64_t            bytes;
    bloom_exceptions_t  set;

    memset(key, 0, sizeof(key));

    for (n = 1; n < 5000; n = n * 3 / 2 + 1) {

        /* lengths that fill cells badly, and of 100 bytes on average */

        make(&set, n);

        for (round = 0; round < 50; round++) {
            for (i = 0; i < n; i++) {
                len = i % 2 ? 159 : 41;
                memcpy(key, &i, 4);
                memcpy(key + 4, &round, 4);

                assert_int_equal(room(&set, len), 1);
                assert_int_equal(put(&set, key, len, 2, i), 1);
            }

            assert_int_equal(room(&set, 1), 0);
            assert_int_equal(put(&set, "x", 1, 2, 0), -1);

            for (i = 0; i < n; i++) {
                memcpy(key, &i, 4);
                assert_int_equal(drop(&set, key, i % 2 ? 159 : 41, 7), 1);
            }

            assert_int_equal(bloom_exceptions_count(&set), 0);
            assert_int_equal(set.head->cells_used, 0);
        }

        free(set.head);
    }

    for (len = 1; len < 300; len++) {
        bytes = 100 * len;
        make_sized(&set, 100, bytes);

        for (i = 0; i < 100; i++) {
            key[0] = (uint8_t) i;
            assert_int_equal(put(&set, key, len, 2, i), 1);
        }

        free(set.head);
    }
}


TEST(keys_of_any_length)
{
    size_t              i, len;
    uint8_t            *key, *buf;
    uint64_t            cursor, random;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    static const size_t  lengths[] = {
        1, 39, 40, 41, 99, 100, 101, 160, 161, 1000, 65534, 65535
    };

    key = unit_alloc(65536);
    buf = unit_alloc(BLOOM_KEY_MAX);

    random = 7;

    for (i = 0; i < 65536; i++) {
        key[i] = (uint8_t) unit_random(&random);
    }

    for (i = 0; i < array_len(lengths); i++) {
        len = lengths[i];
        make_sized(&set, 1, len);

        assert_int_equal(put(&set, key, len, 2, 3), 1);
        assert_int_equal(bloom_exceptions_has(&set, key, len), 2);
        assert_int_equal(bloom_exceptions_has(&set, key, len - 1), 0);

        cursor = 0;
        assert_int_equal(bloom_exceptions_next(&set, &cursor, &exception, buf),
                         1);
        assert_int_equal(exception.key.len, len);
        assert_memory_equal(exception.key.data, key, len);

        assert_int_equal(drop(&set, key, len, 7), 1);
        assert_int_equal(set.head->cells_used, 0);
        free(set.head);
    }

    make_sized(&set, 1, 70000);
    assert_int_equal(put(&set, key, 65536, 2, 3), -1);
    free(set.head);

    free(key);
    free(buf);
}


/* A call reads only as many lines as it is told to read. */
TEST(listing_in_pieces)
{
    int                 rc;
    uint8_t             buf[BLOOM_KEY_MAX];
    unsigned            i, found, calls;
    uint64_t            cursor, before;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    make(&set, 1000);

    for (i = 0; i < 20; i++) {
        assert_int_equal(put(&set, &i, sizeof(i), 2, i), 1);
    }

    cursor = 0;
    found = 0;
    calls = 0;

    do {
        before = cursor;
        rc = bloom_exceptions_next_within(&set, &cursor, 10, &exception, buf);
        assert_true(cursor - before <= 30);
        found += rc == 1;
        calls++;
    } while (rc != 0);

    assert_int_equal(found, 20);
    assert_true(calls >= 100);

    free(set.head);
}


/* Whatever the memory has, no call loops or leaves it, and no key is listed
 * whose bytes are not those that were put. */
TEST(garbage_in_the_memory)
{
    size_t              size, from;
    uint8_t             buf[BLOOM_KEY_MAX], key[256], *memory;
    unsigned            i, n, listed, number;
    uint64_t            cursor, random;
    bloom_exception_t   exception;
    bloom_exceptions_t  set;

    n = 64;
    random = 3;
    size = bloom_exceptions_size(n, n * BLOOM_EXCEPTION_KEY_USUAL);

    for (i = 0; i < 3000; i++) {
        make(&set, n);
        memory = (uint8_t *) set.head;

        for (number = 0; number < n / 2; number++) {
            (void) put(&set, key, key_of(number, key), 2, 1);
        }

        /* all but the secret and the counter of keys; the lines in half of the
         * rounds only */

        for (from = 24; from < size; from++) {
            if (unit_random(&random) % 50 == 0
                && (i % 2 == 0 || from >= 64 * (1 + n)))
            {
                memory[from] = (uint8_t) unit_random(&random);
            }
        }

        for (cursor = 0, listed = 0;
             bloom_exceptions_next(&set, &cursor, &exception, buf);
             listed++)
        {
            memcpy(&number, buf, sizeof(number));
            assert_true(number < n / 2);
            assert_int_equal(exception.key.len, key_of(number, key));
            assert_memory_equal(buf, key, exception.key.len);
        }

        assert_true(listed < n / 2);

        for (number = 0; number < n; number++) {
            from = key_of(number, key);

            (void) bloom_exceptions_has(&set, key, from);
            (void) put(&set, key, from, 2, 1);
            (void) drop(&set, key, from, 7);
        }

        free(memory);
    }
}


/* ---- exceptions in an image ---- */


TEST(written_exceptions_are_read_back)
{
    size_t             len;
    uint8_t           *data, *key, *p;
    const uint8_t     *q;
    bloom_exception_t  in, out;

    key = unit_alloc(BLOOM_KEY_MAX);
    data = unit_alloc(BLOOM_KEY_MAX + 16);
    memset(key, 'k', BLOOM_KEY_MAX);

    for (len = 1; len <= BLOOM_KEY_MAX; len += 1 + len / 7) {
        in.kinds = 1 + len % 7;
        in.time = len * 0x0123456789abcdef;
        in.key.data = key;
        in.key.len = len;

        p = bloom_exception_write(&in, data);
        assert_int_equal(p - data, bloom_exception_size(&in));

        q = data;
        assert_int_equal(bloom_exception_read(&q, p, &out), 1);
        assert_ptr_equal(q, p);
        assert_int_equal(out.kinds, in.kinds);
        assert_int_equal(out.time, in.time);
        assert_int_equal(out.key.len, len);
        assert_memory_equal(out.key.data, key, len);
        assert_int_equal(bloom_exception_read(&q, p, &out), 0);

        q = data;
        assert_int_equal(bloom_exception_read(&q, p - 1, &out), -1);
        assert_ptr_equal(q, data);
    }

    free(key);
    free(data);
}
