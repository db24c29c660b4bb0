
/*
 * Writing images.
 */

#ifndef IMAGE_WRITE_H
#define IMAGE_WRITE_H

#include "bloom_image.h"
#include "output.h"


/*
 * Seals the image, gives it a new build id and the present as its time of
 * creation, writes it with its words and commits.  CLI_OK, or CLI_ERROR with a
 * message: then nothing is left of it.
 */
int store_image(output_t *out, bloom_image_t *image, const uint64_t *words);

/* The same, with the image->origin_len bytes of its origin; NULL: none. */
int store_imported(output_t *out, bloom_image_t *image, const uint64_t *words,
    const uint8_t *origin);

/*
 * The same chunk by chunk, in their order, of an image whose bits are never
 * all in memory.  Only its geometry need be known at first; what else it says
 * is taken at the end.  Each is CLI_OK or CLI_ERROR, and store_end() follows
 * store_begin() in any case: after an error with `failed`.
 */
typedef struct {
    output_t       *out;
    bloom_image_t  *image;
    uint64_t        chunk;               /* the next */
    uint8_t        *table;
} store_t;

int store_begin(store_t *store, output_t *out, bloom_image_t *image);
int store_chunk(store_t *store, const void *data);
int store_end(store_t *store, const uint8_t *origin, int failed);

/* Warns if an image has so many items that it breaks its promise. */
void store_warn_full(const bloom_image_t *image, const char *advice);

/* Random bytes for seeds and ids, or the end of the program. */
void store_random(void *buf, size_t len);


#endif /* IMAGE_WRITE_H */
