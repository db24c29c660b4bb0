/* SPDX-License-Identifier: BSD-2-Clause */

/* Lines as the tool finds them: by the processor's vectors and without. */

#include "unit.h"

#include "line_ends.c"

#define LEN   700
#define ROOM  200


/* Finds all line ends, in as many calls as needed, and returns their number. */
static size_t
all_ends(size_t (*find)(const uint8_t *, size_t *, size_t, uint8_t, uint32_t *,
    size_t), const uint8_t *data, size_t len, uint32_t *all)
{
    size_t    from, before, n, total;
    uint32_t  ends[ROOM + 1];

    for (from = 0, total = 0; from < len; total += n) {
        before = from;
        ends[ROOM] = 0xfeedbeef;

        n = find(data, &from, len, '\n', ends, ROOM);

        assert_true(from > before && from <= len);
        assert_true(n <= ROOM && ends[ROOM] == 0xfeedbeef);

        memcpy(all + total, ends, n * sizeof(ends[0]));
    }

    return total;
}


static void
expect_ends(const uint8_t *data, size_t len)
{
    size_t    i, n;
    uint32_t  ends[LEN], vector[LEN], portable[LEN];

    for (i = 0, n = 0; i < len; i++) {
        if (data[i] == '\n') {
            ends[n++] = (uint32_t) i;
        }
    }

    assert_int_equal(all_ends(line_ends_find, data, len, vector), n);
    assert_int_equal(all_ends(line_ends_find_portable, data, len, portable), n);
    assert_memory_equal(vector, ends, n * sizeof(ends[0]));
    assert_memory_equal(portable, ends, n * sizeof(ends[0]));
}


/* Tests texts of no line ends to line ends only, at every length and
 * alignment. */
TEST(line_ends_are_found_at_every_density)
{
    size_t    i, len, at;
    uint8_t   data[LEN + 64];
    uint64_t  seed, dense;

    for (seed = 1, dense = 0; dense <= 16; dense++) {
        for (i = 0; i < sizeof(data); i++) {
            data[i] = unit_random(&seed) % 16 < dense ? '\n' : 'a';
        }

        for (len = 0; len <= LEN; len += len < 200 ? 1 : 37) {
            for (at = 0; at < 64; at += 7) {
                expect_ends(data + at, len);
            }
        }
    }
}
