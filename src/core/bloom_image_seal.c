/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A table has the checksum of each chunk, and zeros up to the end of its last
 * page.  Its own checksum is for the header.
 */

#include <string.h>

#include "bloom_image_seal.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"


static void
seal_chunk(void *table, uint64_t chunk, const void *data, size_t size)
{
    bloom_put32((uint8_t *) table + 4 * chunk, bloom_crc32c(0, data, size));
}


/* Fills the rest of a table with zeros.  Returns its checksum. */
static uint32_t
seal_table(void *table, uint64_t chunks, uint64_t size)
{
    memset((uint8_t *) table + 4 * chunks, 0, size - 4 * chunks);

    return bloom_crc32c(0, table, size);
}


void
bloom_image_seal(bloom_image_t *image, const void *payload, void *table)
{
    uint64_t  i;

    for (i = 0; i < bloom_image_chunks(image); i++) {
        bloom_image_seal_chunk(image, i, (const uint8_t *) payload
                                         + i * BLOOM_IMAGE_CHUNK, table);
    }

    bloom_image_seal_table(image, table);
}


void
bloom_image_seal_chunk(const bloom_image_t *image, uint64_t chunk,
    const void *data, void *table)
{
    seal_chunk(table, chunk, data, bloom_image_chunk_size(image, chunk));
}


void
bloom_image_seal_table(bloom_image_t *image, void *table)
{
    image->table_crc = seal_table(table, bloom_image_chunks(image),
                                  bloom_image_table_size(image));
}


void
bloom_image_seal_exceptions(bloom_image_t *image, const void *data,
    void *table)
{
    uint64_t  i;

    for (i = 0; i < bloom_image_exceptions_chunks(image); i++) {
        bloom_image_seal_exceptions_chunk(image, i, (const uint8_t *) data
                                                    + i * BLOOM_IMAGE_CHUNK,
                                          table);
    }

    bloom_image_seal_exceptions_table(image, table);
}


void
bloom_image_seal_exceptions_chunk(const bloom_image_t *image, uint64_t chunk,
    const void *data, void *table)
{
    seal_chunk(table, chunk, data,
               bloom_image_exceptions_chunk_size(image, chunk));
}


void
bloom_image_seal_exceptions_table(bloom_image_t *image, void *table)
{
    uint64_t  chunks, size;

    chunks = bloom_image_exceptions_chunks(image);
    size = bloom_image_exceptions_table_size(image);

    image->exceptions_crc = seal_table(table, chunks, size);
}
