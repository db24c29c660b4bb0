/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom export` writes an imported image in the format of its source.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_census.h"
#include "bloom_foreign_formats.h"
#include "cli.h"
#include "command.h"
#include "image_read.h"
#include "json.h"
#include "output.h"
#include "visible.h"

#define PIECE  (4 * 1024 * 1024)


typedef struct {
    const bloom_foreign_format_t  *format;
    const char                    *output;
    const char                    *key;
    int                            quiet;
    int                            json;

    image_read_t                   from;
    bloom_foreign_out_t            head;
    output_t                       out;
    uint8_t                        piece[PIECE];
    uint64_t                       iter;     /* last one of BF.LOADCHUNK */
} export_t;


static int
take_format(const option_t *option, const char *text, void *to)
{
    const bloom_foreign_format_t  **format = to;

    *format = bloom_foreign_formats_find(text);

    if (*format == NULL || (*format)->write == NULL) {
        return options_wrong(option, text, "must be guava, redisbloom, bitmap, "
                             "dcso, bits-and-blooms or spark");
    }

    return CLI_OK;
}


static const option_t  options[] = {
    { 'o', "output", "FILE", offsetof(export_t, output), options_take_text,
      "the file to write; it is written whole or not at all",
      .needed = "the file to write" },
    { 0, "to", "FORMAT", offsetof(export_t, format), take_format,
      "the format to write\n"
      "guava, dcso, bits-and-blooms, spark: a file\n"
      "redisbloom: BF.LOADCHUNK commands for \"redis-cli --pipe\"\n"
      "bitmap: SETRANGE commands for \"redis-cli --pipe\"",
      .needed = "the format to write" },
    { 0, "key", "KEY", offsetof(export_t, key), options_take_text,
      "for redisbloom and bitmap: the Redis key that the commands create; it "
      "should not exist before" },
    OPTIONS_QUIET(export_t),
    OPTIONS_JSON(export_t),
    { 0 }
};


/* Begins an array of n strings in the protocol of Redis. */
static int
begin(export_t *x, int n)
{
    char  text[32];

    return output_write(&x->out, text,
                        (size_t) snprintf(text, sizeof(text), "*%d\r\n", n));
}


static int
word(export_t *x, const void *data, size_t len)
{
    char  text[32];

    if (output_write(&x->out, text,
                     (size_t) snprintf(text, sizeof(text), "$%zu\r\n", len))
        != 0
        || output_write(&x->out, data, len) != 0)
    {
        return -1;
    }

    return output_write(&x->out, "\r\n", 2);
}


static int
number(export_t *x, uint64_t n)
{
    char  text[32];

    return word(x, text,
                (size_t) snprintf(text, sizeof(text), "%" PRIu64, n));
}


/* Writes "BF.LOADCHUNK key iter data".  The iterator of the header is 1, to
 * which each chunk adds its bytes. */
static int
load_chunk_command(export_t *x, const void *data, size_t len, int header)
{
    x->iter = header ? 1 : x->iter + len;

    if (begin(x, 4) != 0
        || word(x, "BF.LOADCHUNK", 12) != 0
        || word(x, x->key, strlen(x->key)) != 0
        || number(x, x->iter) != 0)
    {
        return -1;
    }

    return word(x, data, len);
}


static int
setrange_command(export_t *x, uint64_t at, const void *data, size_t len)
{
    if (begin(x, 4) != 0
        || word(x, "SETRANGE", 8) != 0
        || word(x, x->key, strlen(x->key)) != 0
        || number(x, at) != 0)
    {
        return -1;
    }

    return word(x, data, len);
}


static int
write_piece(export_t *x, uint64_t at, size_t len)
{
    if (x->format == &bloom_foreign_redisbloom) {
        return load_chunk_command(x, x->piece, len, 0);
    }

    if (x->format == &bloom_foreign_bitmap) {
        return setrange_command(x, at, x->piece, len);
    }

    return output_write(&x->out, x->piece, len);
}


/* Returns 1 if all bytes are zero; such a piece of a bitmap is not written. */
static int
is_empty(const uint8_t *p, size_t len)
{
    return *p == 0 && memcmp(p, p + 1, len - 1) == 0;
}


static int
write_bits(export_t *x)
{
    size_t                   n;
    uint32_t                 i;
    uint64_t                 at, end, offset;
    bloom_link_t             link;
    const uint8_t           *bits;
    const bloom_geometry_t  *g;

    g = &x->from.image.geometry;

    for (i = 0; i < bloom_foreign_links(g); i++) {

        link = bloom_foreign_link(g, i, &offset);
        bits = (const uint8_t *) x->from.words + offset;
        end = x->head.link_bytes[i];

        /* never write bytes of another link, or from outside the filter */

        if (end > bloom_geometry_whole_lines(link.bits) / 8) {
            cli_error("%s: cannot be written as %s: link %" PRIu32 " would "
                      "have %" PRIu64 " bytes for %" PRIu64 " bits; import it "
                      "again", x->from.path, x->format->name, i, end,
                      link.bits);
            return CLI_ERROR;
        }

        /* a string ends with its last bit that is set, as SETBIT writes it */

        while (x->format == &bloom_foreign_bitmap && end != 0
               && bits[end - 1] == 0)
        {
            end--;
        }

        for (at = 0; at < end; at += n) {
            n = end - at < PIECE ? (size_t) (end - at) : PIECE;

            if (x->format == &bloom_foreign_bitmap
                && is_empty(bits + at, n))
            {
                continue;
            }

            memcpy(x->piece, bits + at, n);
            bloom_foreign_order(x->head.order, x->piece, n);

            if (write_piece(x, at, n) != 0) {
                return CLI_ERROR;
            }
        }
    }

    return CLI_OK;
}


static int
export_image(export_t *x)
{
    int                   rc;
    bloom_census_t        census;
    const bloom_image_t  *image;

    image = &x->from.image;

    /* some formats record the number of keys */

    census = image_read_census(image, x->from.words);
    x->head.items = bloom_census_items(&census);

    /* an image that nginx copied may have zeros instead of the header */

    if (x->from.origin != NULL
        && is_empty(x->from.origin, x->from.image.origin_len))
    {
        x->from.image.origin_len = 0;
    }

    if (x->format->write(&x->head, image, x->from.origin) != 0) {
        cli_error("%s: %s", x->from.path, x->head.error);
        return CLI_ERROR;
    }

    if (output_open(&x->out, x->output) != 0) {
        return CLI_ERROR;
    }

    if (output_is(&x->out, x->from.path)) {
        cli_error("%s: is also the output, and the filter would replace the "
                  "image; write to another file", x->from.path);
        output_discard(&x->out);
        return CLI_ERROR;
    }

    rc = 0;

    if (x->format == &bloom_foreign_redisbloom) {
        rc = load_chunk_command(x, x->head.head, x->head.head_len, 1);

    } else if (x->head.head_len != 0) {
        rc = output_write(&x->out, x->head.head, x->head.head_len);
    }

    if (rc == 0 && write_bits(x) == CLI_OK
        && (x->head.tail_len == 0
            || output_write(&x->out, x->head.tail, x->head.tail_len) == 0)
        && output_commit(&x->out) == 0)
    {
        return CLI_OK;
    }

    output_discard(&x->out);

    return CLI_ERROR;
}


static void
report(const export_t *x)
{
    bloom_json_writer_t  json;

    if (x->json) {
        json_begin(&json, 0);
        bloom_json_put_text(&json, "file", x->output);
        bloom_json_put_text(&json, "to", x->format->name);
        bloom_json_put_count(&json, "items", x->head.items);
        json_end(&json);

    } else if (!x->quiet) {
        visible_name(x->output);
        printf(": %s, about %" PRIu64 " key%s\n", x->format->name,
               x->head.items, CLI_S(x->head.items));
    }
}


/* No other format has removed keys, or other exceptions. */
static int
check_removed(const export_t *x)
{
    uint64_t  n;

    n = x->from.image.exceptions;

    if (n == 0) {
        return CLI_OK;
    }

    cli_error("%s: has %" PRIu64 " exception%s, such as removed keys, which "
              "the format %s cannot express, so %s would be present again; "
              "rebuild the source without %s, or add %s to the image: "
              "\"ngx-bloom info --exceptions --json\" lists %s for \"ngx-bloom "
              "add --from json\"", x->from.path, n,
              CLI_S(n), x->format->name, n == 1 ? "it" : "they",
              n == 1 ? "it" : "them", n == 1 ? "it" : "them",
              n == 1 ? "it" : "them");

    return CLI_ERROR;
}


static int
run(char **operands, int n, void *values)
{
    int        rc;
    export_t  *x = values;

    if (n != 1) {
        return cli_misuse("name one image");
    }

    if (x->key == NULL && (x->format == &bloom_foreign_redisbloom
                           || x->format == &bloom_foreign_bitmap))
    {
        return cli_misuse("--key KEY is missing; it names the key in Redis");
    }

    if (image_read_header(&x->from, operands[0]) != CLI_OK) {
        return CLI_ERROR;
    }

    rc = check_removed(x);

    if (rc == CLI_OK) {
        rc = image_read_all(&x->from);
    }

    if (rc == CLI_OK) {
        rc = export_image(x);
    }

    if (rc == CLI_OK) {
        report(x);
    }

    image_read_free(&x->from);

    return rc == CLI_OK ? CLI_OK : CLI_ERROR;
}


static export_t  values;

static const command_member_t  members[] = {
    { "file", "the name of the file" },
    { "to", "the format of the file" },
    { "items", "the number of keys, estimated from the bits" },
    { 0 }
};

const command_t  cmd_export = {
    .name = "export",
    .does = "write an imported image in its source's format",
    .synopsis = "--to FORMAT -o FILE [OPTION...] IMAGE",
    .about =
        "Writes an imported image in the format of its source. If no keys were "
        "added since the import, the result is byte for byte the source. "
        "Images in the layouts blocked and classic cannot be exported, as no "
        "other system has these layouts. An image with removed keys, or "
        "with other exceptions, cannot be exported either, as these keys would "
        "be present in the result.",
    .options = options,
    .values = &values,
    .members = members,
    .examples =
        "ngx-bloom export --to guava -o ids.guava ids.bloom\n"
        "ngx-bloom export --to redisbloom --key ids -o ids.resp ids.bloom\n"
        "redis-cli --pipe < ids.resp\n",
    .run = run
};
