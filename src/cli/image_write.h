/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions seal image files and write them, whole or not at all.
 */

#ifndef IMAGE_WRITE_H
#define IMAGE_WRITE_H

#include "bloom_image.h"
#include "output.h"


/*
 * Seals the image, gives it a new build id and the present as its time of
 * creation, writes it with its words and commits.  `origin` is what an imported
 * filter's source had, image->origin_len bytes; NULL: none.  Returns CLI_OK; or
 * CLI_ERROR after a message: then nothing is left of it.
 */
int image_write(output_t *out, bloom_image_t *image, const uint64_t *words,
    const uint8_t *origin);

/*
 * The same chunk by chunk, in their order, of an image whose bits are never
 * all in memory.  Only its geometry need be known at first; what else it says
 * is taken at the end.  Each returns CLI_OK or CLI_ERROR, and image_write_end()
 * follows image_write_begin() in any case: after an error with `failed`.
 */
typedef struct {
    output_t       *out;
    bloom_image_t  *image;
    uint64_t        chunk;               /* the next */
    uint8_t        *table;
} image_write_t;

int image_write_begin(image_write_t *write, output_t *out,
    bloom_image_t *image);
int image_write_chunk(image_write_t *write, const void *data);
int image_write_end(image_write_t *write, const uint8_t *origin, int failed);

/* Warns if an image has so many items that it breaks its promise. */
void image_write_warn_full(const bloom_image_t *image, const char *advice);

/* Warns if everybody may read an image that has a secret. */
void image_write_warn_secret(const bloom_image_t *image, const output_t *out);

/* Fills a buffer with random bytes for seeds and ids, or ends the program. */
void image_write_random(void *buf, size_t len);


#endif /* IMAGE_WRITE_H */
