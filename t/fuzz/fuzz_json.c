/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the reader of JSON arrays: for any input, the strings and the offset
 * of an error do not depend on where the input is cut.  The reader reads back
 * what the writer has escaped.
 */

#include "fuzz.h"

#include "bloom_json.h"
#include "bloom_json_writer.h"
#include "bloom_utf8.h"


typedef struct {
    uint64_t     hash;                   /* of the strings, FNV-1a */
    uint64_t     count;
    uint64_t     strings;
    uint64_t     offset;
    const char  *error;
} outcome_t;


static uint8_t  buf[64];           /* longer strings are cut */


static void
mix(outcome_t *out, const uint8_t *p, size_t len)
{
    size_t  i;

    out->hash = (out->hash ^ len) * 0x100000001b3;

    for (i = 0; i < len; i++) {
        out->hash = (out->hash ^ p[i]) * 0x100000001b3;
    }

    out->count++;
}


/* Reads pieces of `piece` bytes, each one byte longer than the one before. */
static void
read_pieces(outcome_t *out, const uint8_t *data, size_t size, size_t piece)
{
    int             rc;
    size_t          n;
    uint8_t        *copy;
    bloom_key_t     key;
    bloom_json_t    json;
    const uint8_t  *pos;

    memset(out, 0, sizeof(outcome_t));
    bloom_json_begin(&json, buf, sizeof(buf));

    for (rc = 0; rc == 0 && size != 0; data += n, size -= n, piece++) {
        n = piece < size ? piece : size;

        copy = malloc(n);
        expect(copy != NULL);
        memcpy(copy, data, n);

        pos = copy;

        while ((rc = bloom_json_next(&json, &key, &pos, copy + n)) == 1) {
            expect(key.len <= sizeof(buf));
            mix(out, key.data, key.len);
        }

        expect(rc == -1 || pos == copy + n);
        free(copy);
    }

    rc = bloom_json_end(&json);
    expect((rc == 0) == (json.error == NULL));
    expect(json.strings - out->count <= 1);

    out->strings = json.strings;
    out->offset = json.offset;
    out->error = json.error;
}


typedef struct {
    uint8_t  *text;
    size_t    len;
    size_t    size;
} output_t;


static void
take(void *data, const void *bytes, size_t len)
{
    output_t  *output = data;

    expect(len <= output->size - output->len);

    memcpy(output->text + output->len, bytes, len);
    output->len += len;
}


static void
write_and_read(const uint8_t *data, size_t size)
{
    int                   rc;
    size_t                n, again;
    output_t              output;
    bloom_key_t           key;
    bloom_json_t          json;
    const uint8_t        *pos;
    bloom_json_writer_t   writer;

    output.text = malloc(6 * size + 4);
    output.len = 0;
    output.size = 6 * size + 4;
    expect(output.text != NULL);

    bloom_json_writer_init(&writer, take, &output);
    bloom_json_put_array(&writer, NULL);
    bloom_json_put_bytes(&writer, NULL, data, size);
    bloom_json_put_end(&writer);

    pos = output.text;
    bloom_json_begin(&json, buf, sizeof(buf));
    rc = bloom_json_next(&json, &key, &pos, output.text + output.len);

    expect(rc == 1);

    /* the text is the same, except where it was not UTF-8 */

    for (n = 0; n < size; n += again) {
        again = bloom_utf8_len(data + n, size - n);

        if (again == 0) {
            break;
        }
    }

    expect(n < size
           || (key.len == (size < sizeof(buf) ? size : sizeof(buf))
               && (size == 0 || memcmp(key.data, data, key.len) == 0)));

    rc = bloom_json_next(&json, &key, &pos, pos + 1);
    expect(rc == 0);
    expect(bloom_json_end(&json) == 0);

    free(output.text);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     piece;
    outcome_t  whole, cut;

    if (size == 0) {
        return 0;
    }

    piece = data[0] % 16 + 1;
    data++;
    size--;

    read_pieces(&whole, data, size, size + 1);
    read_pieces(&cut, data, size, piece);

    expect(memcmp(&whole, &cut, sizeof(outcome_t)) == 0);

    write_and_read(data, size);

    return 0;
}
