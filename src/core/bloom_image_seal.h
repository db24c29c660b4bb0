/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions seal an image: they fill the tables with the checksums of its
 * chunks.  Call them when the bits are final, before bloom_image_encode().
 */

#ifndef BLOOM_IMAGE_SEAL_H
#define BLOOM_IMAGE_SEAL_H

#include "bloom_image.h"

#pragma GCC visibility push(hidden)


/*
 * Fills `table`, bloom_image_table_size() bytes, with the checksums of the
 * payload, and sets image->table_crc.
 */
void bloom_image_seal(bloom_image_t *image, const void *payload, void *table);

/*
 * Do what bloom_image_seal() does, in pieces.  Call the first function for
 * every chunk, bloom_image_chunk_size() bytes, in any order; then call the
 * second one once.
 */
void bloom_image_seal_chunk(const bloom_image_t *image, uint64_t chunk,
    const void *data, void *table);
void bloom_image_seal_table(bloom_image_t *image, void *table);

/*
 * Seal the exceptions in the same way, if the image has any: image->exceptions
 * and image->exceptions_size are set, `data` has the entries and zeros after
 * them, bloom_image_exceptions_padded() bytes, and `table` has
 * bloom_image_exceptions_table_size() bytes.
 */
void bloom_image_seal_exceptions(bloom_image_t *image, const void *data,
    void *table);
void bloom_image_seal_exceptions_chunk(const bloom_image_t *image,
    uint64_t chunk, const void *data, void *table);
void bloom_image_seal_exceptions_table(bloom_image_t *image, void *table);


#pragma GCC visibility pop

#endif /* BLOOM_IMAGE_SEAL_H */
