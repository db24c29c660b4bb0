/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the splitting of streams into keys, and the decoding of keys.
 *
 * The input's first byte is the delimiter, the second one is the seed of the
 * lengths of the pieces, and the rest is the text.  For any input:
 *
 *   - a text in pieces of any lengths gives the same keys as the whole text;
 *   - the keys and their delimiters are the whole text, in order;
 *   - no decoded key is longer than the key, and decoding in place gives the
 *     same result as decoding to other memory.
 */

#include "fuzz.h"

#include "bloom_key.h"


/* Returns a copy of exactly that size: sanitizers notice a read beyond. */
static uint8_t *
copy_of(const uint8_t *data, size_t len)
{
    uint8_t  *copy;

    copy = malloc(len + (len == 0));
    expect(copy != NULL);

    if (len != 0) {
        memcpy(copy, data, len);
    }

    return copy;
}


/* Checks that there is only one delimiter between a key and the next. */
static void
cut_at_once(const uint8_t *text, size_t len, bloom_split_e split)
{
    uint8_t         delimiter;
    bloom_key_t     key;
    const uint8_t  *pos, *end, *before, *stop;

    pos = text;
    end = text + len;
    delimiter = split == BLOOM_SPLIT_NUL ? '\0' : '\n';

    for (before = pos; bloom_key_next(&key, &pos, end, split, 1);
         before = pos)
    {
        expect(key.data == before && pos > before && pos <= end);
        expect(key.len == 0
               || memchr(key.data, delimiter, key.len) == NULL);

        stop = key.data + key.len;

        if (split == BLOOM_SPLIT_LINES && stop < end && *stop == '\r') {
            stop++;
        }

        if (stop < end && *stop == delimiter) {
            stop++;

        } else {
            expect(stop == end);
        }

        expect(stop == pos);
    }

    expect(pos == end);
}


/* Passes the text in pieces, and expects the keys of the whole text. */
static void
cut_in_pieces(const uint8_t *text, size_t len, bloom_split_e split,
    uint64_t random)
{
    int             last;
    size_t          start, given, piece;
    uint8_t        *part;
    bloom_key_t     key, expected;
    const uint8_t  *pos, *all;

    all = text;

    for (start = 0, given = 0, last = 0; !last; /* void */ ) {
        random = random * 6364136223846793005 + 1442695040888963407;
        piece = (random >> 33) % ((random >> 60) + 1);

        if (piece > len - given) {
            piece = len - given;
        }

        /* the end is known with the last piece, or only after it */

        given += piece;
        last = given == len && (piece == 0 || random >> 63);

        part = copy_of(text + start, given - start);

        for (pos = part;
             bloom_key_next(&key, &pos, part + (given - start), split, last);
             /* void */ )
        {
            expect(bloom_key_next(&expected, &all, text + len, split, 1));
            expect(key.len == expected.len);
            expect(key.len == 0
                   || memcmp(key.data, expected.data, key.len) == 0);
        }

        start += (size_t) (pos - part);
        free(part);
    }

    expect(start == len);
    expect(!bloom_key_next(&expected, &all, text + len, split, 1));
}


static void
decode(const uint8_t *text, size_t len, bloom_decode_e how)
{
    size_t    i, n;
    uint8_t  *out, *in_place;

    out = copy_of(text, len);            /* room for len bytes, no more */
    in_place = copy_of(text, len);

    n = bloom_key_decode(out, text, len, how);

    expect(n <= len);
    expect(bloom_key_decode(in_place, in_place, len, how) == n);
    expect(memcmp(in_place, out, n) == 0);

    if (how == BLOOM_DECODE_OFF || len == 0 || memchr(text, '%', len) == NULL)
    {
        expect(n == len);

        for (i = 0; i < len; i++) {
            expect(out[i] == (how == BLOOM_DECODE_FORM && text[i] == '+'
                              ? ' ' : text[i]));
        }

    } else {
        /* an escape turns three bytes into one */
        expect((len - n) % 2 == 0);
    }

    free(out);
    free(in_place);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t        *text;
    size_t          len, mark;
    bloom_split_e   split;

    if (size < 2) {
        return 0;
    }

    split = data[0] & 1 ? BLOOM_SPLIT_NUL : BLOOM_SPLIT_LINES;

    len = size - 2;
    text = copy_of(data + 2, len);

    mark = bloom_key_mark(text, len);
    expect(mark == 0 || (mark == 3 && len >= 3 && text[0] == 0xef));

    cut_at_once(text, len, split);
    cut_in_pieces(text, len, split, data[1]);

    decode(text, len, BLOOM_DECODE_OFF);
    decode(text, len, BLOOM_DECODE_URI);
    decode(text, len, BLOOM_DECODE_FORM);

    free(text);

    return 0;
}
