/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions compute the checksums of an image and write it, whole or not
 * at all.
 */

#ifndef IMAGE_WRITE_H
#define IMAGE_WRITE_H

#include "bloom_image.h"
#include "output.h"
#include "removed_keys.h"


/*
 * Gives the image a new build id, the current time as its time of creation, and
 * checksums, then writes it with its words and commits it.  It is no copy of a
 * zone any more.  `origin` is the header of an imported filter's source,
 * image->origin_len bytes, and `removed` are the removed keys; NULL: none.
 * Returns CLI_OK; or CLI_ERROR after a message, with nothing left of the file.
 */
int image_write(output_t *out, bloom_image_t *image, const uint64_t *words,
    const uint8_t *origin, const removed_keys_t *removed);

/*
 * These three functions write an image chunk by chunk, in order, so that its
 * bits are never all in memory.  image_write_begin() needs the image's geometry
 * only; image_write_end() reads the rest.  Each returns CLI_OK; or CLI_ERROR
 * after a message.  Call image_write_end() after image_write_begin() in any
 * case, with `failed` set after an error.
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
int image_write_end(image_write_t *write, const uint8_t *origin,
    const removed_keys_t *removed, int failed);

/* Returns "false-positive rate now 8.3e-08 %, at capacity 0.01 %", or one rate
 * if the image is full.  `fpr` is the rate now. */
#define IMAGE_WRITE_RATE_LEN  192

const char *image_write_show_rate(char text[IMAGE_WRITE_RATE_LEN],
    const bloom_image_t *image, double fpr);

/* Warns if the image has more items than it has room for, in all or in a part
 * of its layers, and so exceeds its false-positive rate: `fpr` is the rate now.
 * The warning ends with `advice`. */
void image_write_warn_full(const bloom_image_t *image, double fpr,
    const char *advice);

/* Warns if the image contains a secret and everybody may read it. */
void image_write_warn_secret(const bloom_image_t *image, const output_t *out);


#endif /* IMAGE_WRITE_H */
