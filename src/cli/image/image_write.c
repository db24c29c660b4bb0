/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file computes the checksums of an image and writes it to an output.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "image_write.h"
#include "bloom_image_seal.h"
#include "units.h"


const char *
image_write_show_rate(char text[IMAGE_WRITE_RATE_LEN],
    const bloom_image_t *image, double fpr)
{
    char  now[UNITS_LEN], full[UNITS_LEN];

    format_rate(now, fpr);
    format_rate(full, bloom_image_promised(image));

    /* a fuse base has no room that could change its rate */

    if (image->items == bloom_image_capacity(image) || strcmp(now, full) == 0
        || (image->geometry.layout == BLOOM_LAYOUT_FUSE
            && image->geometry.layers == 0))
    {
        snprintf(text, IMAGE_WRITE_RATE_LEN, "false-positive rate %s", now);

    } else {
        snprintf(text, IMAGE_WRITE_RATE_LEN,
                 "false-positive rate now %s, at capacity %s", now, full);
    }

    return text;
}


void
image_write_warn_full(const bloom_image_t *image, double fpr,
    const char *advice)
{
    char      rate[UNITS_LEN], promised[UNITS_LEN];
    uint64_t  capacity;

    capacity = bloom_image_capacity(image);

    if (fpr <= bloom_image_promised(image)
        || (image->items <= capacity && image->geometry.layers == 0))
    {
        return;
    }

    format_rate(rate, fpr);
    format_rate(promised, bloom_image_promised(image));

    if (strcmp(rate, promised) == 0) {
        return;
    }

    if (image->items <= capacity) {
        cli_warn("the base or a layer has more keys than it has room for: "
                 "expect a false-positive rate of about %s, not the promised "
                 "%s; %s", rate, promised, advice);
        return;
    }

    cli_warn("%" PRIu64 " distinct keys exceed the capacity of %" PRIu64
             ": expect a false-positive rate of about %s, not the promised "
             "%s; %s", image->items, capacity, rate, promised, advice);
}


void
image_write_warn_secret(const bloom_image_t *image, const output_t *out)
{
    if (image->hasher.kind != BLOOM_HASH_SIPHASH || !out->replaces
        || (out->mode & S_IROTH) == 0)
    {
        return;
    }

    cli_warn("%s: contains a secret, and everybody on this machine may read "
             "it, as it keeps the mode %04o of the file that it replaced; give "
             "it the group of nginx's workers, and run \"chmod o=\" on it",
             out->name, (unsigned) out->mode);
}


int
image_write(output_t *out, bloom_image_t *image, const uint64_t *words,
    const uint8_t *origin, const removed_keys_t *removed)
{
    int             rc;
    image_write_t   write;
    const uint8_t  *p;

    rc = image_write_begin(&write, out, image);

    for (p = (const uint8_t *) words;
         rc == CLI_OK && write.chunk < bloom_image_chunks(image);
         p += BLOOM_IMAGE_CHUNK)
    {
        rc = image_write_chunk(&write, p);
    }

    return image_write_end(&write, origin, removed, rc != CLI_OK);
}


int
image_write_begin(image_write_t *write, output_t *out, bloom_image_t *image)
{
    write->out = out;
    write->image = image;
    write->chunk = 0;
    write->table = cli_alloc(bloom_image_table_size(image));

    return output_seek(out, BLOOM_IMAGE_PAGE + bloom_image_table_size(image))
           == 0 ? CLI_OK : CLI_ERROR;
}


int
image_write_chunk(image_write_t *write, const void *data)
{
    bloom_image_seal_chunk(write->image, write->chunk, data, write->table);

    return output_write(write->out, data,
                        bloom_image_chunk_size(write->image, write->chunk++))
           == 0 ? CLI_OK : CLI_ERROR;
}


/* Writes the exceptions and their table, after the chunks.  An image may
 * have none. */
static int
write_exceptions(image_write_t *write, const removed_keys_t *removed)
{
    int             rc;
    void           *table;
    uint8_t        *data;
    bloom_image_t  *image;

    image = write->image;
    image->exceptions_crc = 0;
    data = removed_keys_data(removed, image);

    if (data == NULL) {
        return CLI_OK;
    }

    if (image->exceptions_size > BLOOM_IMAGE_EXCEPTIONS_MAX) {
        cli_error("%s: not written: its %" PRIu64 " removed keys and other "
                  "exceptions would take %" PRIu64 " bytes, and an image can "
                  "have %" PRIu64 " bytes of them; merge fewer images, or "
                  "build a new one",
                  write->out->name, image->exceptions, image->exceptions_size,
                  BLOOM_IMAGE_EXCEPTIONS_MAX);
        free(data);
        return CLI_ERROR;
    }

    table = cli_alloc(bloom_image_exceptions_table_size(image));
    bloom_image_seal_exceptions(image, data, table);

    rc = output_write(write->out, table,
                      bloom_image_exceptions_table_size(image)) == 0
         && output_write(write->out, data,
                         bloom_image_exceptions_padded(image)) == 0
         ? CLI_OK : CLI_ERROR;

    free(table);
    free(data);

    return rc;
}


/* Writes header and table, after all other parts, and commits the output. */
static int
write_header(image_write_t *write, const uint8_t *origin)
{
    uint8_t          header[BLOOM_IMAGE_PAGE];
    output_t        *out;
    bloom_image_t   *image;
    struct timespec  now;

    out = write->out;
    image = write->image;

    clock_gettime(CLOCK_REALTIME, &now);

    image->created = (uint64_t) now.tv_sec * 1000
                     + (uint64_t) now.tv_nsec / 1000000;

    cli_random(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    if (origin == NULL) {
        image->origin_len = 0;
    }

    /* it may have other keys than the zone that it was a copy of */

    memset(&image->copy, 0, sizeof(image->copy));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        output_secret(out);
    }

    bloom_image_seal_table(image, write->table);
    bloom_image_encode(image, header);

    if (image->origin_len != 0) {
        memcpy(header + bloom_image_origin_at(image), origin,
               image->origin_len);
        bloom_image_encode_again(header);
    }

    return output_seek(out, 0) == 0
           && output_write(out, header, sizeof(header)) == 0
           && output_write(out, write->table, bloom_image_table_size(image))
              == 0
           && output_commit(out) == 0 ? CLI_OK : CLI_ERROR;
}


int
image_write_end(image_write_t *write, const uint8_t *origin,
    const removed_keys_t *removed, int failed)
{
    int  rc;

    rc = failed ? CLI_ERROR : write_exceptions(write, removed);

    if (rc == CLI_OK) {
        rc = write_header(write, origin);
    }

    free(write->table);

    return rc;
}
