/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function describes an image in JSON, in the same words for all commands.
 */

#ifndef IMAGE_JSON_H
#define IMAGE_JSON_H

#include "bloom_image.h"
#include "json.h"


/* Prints the image's file and header; `items_error` is the standard error of
 * the number of its keys, 0 if they are counted. */
void image_json(json_t *json, const char *path, const bloom_image_t *image,
    double items_error);

/* Returns the standard error of image->items as the header tells it. */
double image_json_items_error(const bloom_image_t *image);

/* Returns the bits for each key, of which there may be none. */
double image_json_bits_per_item(const bloom_image_t *image);


#endif /* IMAGE_JSON_H */
