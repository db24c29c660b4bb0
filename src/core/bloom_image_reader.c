/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A table is read twice: when the file is opened, and page by page before the
 * chunks, so that its size is no matter.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_image_reader.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_image_decode.h"

#define SUMS_IN_A_PAGE   (BLOOM_IMAGE_PAGE / 4)

#define fail(...)                                                            \
    (snprintf(error, BLOOM_IMAGE_ERROR_LEN, __VA_ARGS__), -1)


static uint64_t
min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}


/* Reads a page of a table, and adds it to the checksum *crc. */
static int
read_page(bloom_image_reader_t *reader, uint64_t offset, uint32_t *crc)
{
    char  *error;

    error = reader->error;

    if (reader->read(reader->ctx, reader->page, BLOOM_IMAGE_PAGE, offset)
        != 0)
    {
        return fail("cannot be read at byte %" PRIu64, offset);
    }

    *crc = bloom_crc32c(*crc, reader->page, BLOOM_IMAGE_PAGE);

    return 0;
}


static int
check_table(bloom_image_reader_t *reader, const bloom_image_part_t *part)
{
    char      *error;
    uint32_t   crc;
    uint64_t   offset;

    error = reader->error;
    crc = 0;

    for (offset = part->table; offset < part->data; offset += BLOOM_IMAGE_PAGE)
    {
        if (read_page(reader, offset, &crc) != 0) {
            return -1;
        }
    }

    if (crc != part->table_crc) {
        return fail("is damaged: the checksum of its table, bytes %" PRIu64
                    " to %" PRIu64 ", differs; copy or build it again",
                    part->table, part->data - 1);
    }

    return 0;
}


int
bloom_image_open(bloom_image_reader_t *reader, bloom_image_read_pt read,
    void *ctx, uint64_t file_size)
{
    char                *error;
    bloom_image_part_t   payload, exceptions;

    reader->next = 0;
    reader->next_exceptions = 0;
    reader->len = 0;
    reader->table_crc = 0;
    reader->read = read;
    reader->ctx = ctx;
    reader->error[0] = '\0';

    error = reader->error;

    if (file_size == 0) {
        return fail("is empty; build it again");
    }

    memset(reader->page, 0, BLOOM_IMAGE_PAGE);

    if (read(ctx, reader->page, (size_t) min64(file_size, BLOOM_IMAGE_PAGE), 0)
        != 0)
    {
        return fail("cannot be read at byte 0");
    }

    /* decoding refuses a file shorter than a page: its size is wrong */

    if (bloom_image_decode(&reader->image, reader->page, file_size, error)
        != 0)
    {
        return -1;
    }

    reader->checksum = bloom_image_checksum(reader->page);

    if ((reader->image.flags & BLOOM_IMAGE_RING)
        && bloom_image_get_ring(&reader->image, &reader->ring, reader->page)
           != 0)
    {
        return fail("is invalid: its slices cannot be as they are described; "
                    "let nginx write it again");
    }

    payload = bloom_image_payload_part(&reader->image);
    exceptions = bloom_image_exceptions_part(&reader->image);

    return check_table(reader, &payload) == 0
           && check_table(reader, &exceptions) == 0 ? 0 : -1;
}


/* Reads and checks a chunk, and the page of the table that has its checksum. */
static int
read_chunk(bloom_image_reader_t *reader, const bloom_image_part_t *part,
    uint64_t chunk, void *dst)
{
    char      *error;
    size_t     len;
    uint32_t   crc;
    uint64_t   offset, at;

    error = reader->error;
    at = chunk % SUMS_IN_A_PAGE;
    crc = chunk == 0 ? 0 : reader->table_crc;

    if (at == 0) {
        if (read_page(reader, part->table + 4 * chunk, &crc) != 0) {
            return -1;
        }

        if (part->chunks - chunk <= SUMS_IN_A_PAGE && crc != part->table_crc) {
            return fail("changed while it was read; write a new image to "
                        "another file, then rename that file");
        }
    }

    offset = chunk * BLOOM_IMAGE_CHUNK;
    len = (size_t) min64(part->size - offset, BLOOM_IMAGE_CHUNK);
    offset += part->data;

    if (reader->read(reader->ctx, dst, len, offset) != 0) {
        return fail("cannot be read at byte %" PRIu64, offset);
    }

    if (bloom_crc32c(0, dst, len) != bloom_get32(reader->page + 4 * at)) {
        return fail("is damaged: the checksum of bytes %" PRIu64 " to %" PRIu64
                    " differs; copy or build it again",
                    offset, offset + len - 1);
    }

    reader->table_crc = crc;
    reader->len = len;

    return 0;
}


/* Returns 1 if the bits after an imported filter's last bit are zero.  They are
 * in the last chunk, and fewer than 512. */
static int
padding_zero(const bloom_image_t *image, const uint8_t *chunk, size_t len)
{
    uint64_t                 bits, over;
    const bloom_geometry_t  *g;

    g = &image->geometry;
    bits = g->layout == BLOOM_LAYOUT_LINKS ? g->link[g->links - 1].bits
                                           : g->bits;
    over = bloom_geometry_whole_lines(bits) - bits;

    return bloom_all_zero(chunk + len - over / 8, over / 8)
           && (over % 8 == 0
               || chunk[len - over / 8 - 1] >> (8 - over % 8) == 0);
}


int
bloom_image_next(bloom_image_reader_t *reader, void *dst)
{
    char                *error;
    bloom_image_part_t   payload;

    error = reader->error;
    payload = bloom_image_payload_part(&reader->image);

    if (reader->next == payload.chunks) {
        return 0;
    }

    if (read_chunk(reader, &payload, reader->next, dst) != 0) {
        return -1;
    }

    if (reader->next + 1 == payload.chunks
        && !padding_zero(&reader->image, dst, reader->len))
    {
        return fail("is invalid: bits after its last one are set; "
                    "build it again");
    }

    reader->next++;

    return 1;
}


int
bloom_image_next_exceptions(bloom_image_reader_t *reader, void *dst)
{
    char                *error;
    size_t               over;
    bloom_image_part_t   exceptions;

    error = reader->error;
    exceptions = bloom_image_exceptions_part(&reader->image);

    if (reader->next_exceptions == exceptions.chunks) {
        return 0;
    }

    if (read_chunk(reader, &exceptions, reader->next_exceptions, dst) != 0) {
        return -1;
    }

    over = (size_t) (exceptions.size - reader->image.exceptions_size);

    if (reader->next_exceptions + 1 == exceptions.chunks
        && !bloom_all_zero((uint8_t *) dst + reader->len - over, over))
    {
        return fail("is invalid: bytes after its exceptions are not zero; "
                    "build it again");
    }

    reader->next_exceptions++;

    return 1;
}
