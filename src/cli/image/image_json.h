/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print an image's header as members of a JSON object, with the
 * same names for all commands.
 */

#ifndef IMAGE_JSON_H
#define IMAGE_JSON_H

#include "bloom_census.h"
#include "json.h"
#include "removed_keys.h"


/* Prints the image's file and header; `kinds` are those of its exceptions, or
 * NULL: none; `items_error` is the standard error of the number of items, 0 if
 * it is exact; `fpr` is the rate with these items. */
void image_json(bloom_json_writer_t *json, const char *path,
    const bloom_image_t *image, const exception_kinds_t *kinds,
    double items_error, double fpr);

/* Prints the base and the layers: how many keys each has room for, and its
 * dimensions.  If there is a census, it is printed, too. */
void image_json_parts(bloom_json_writer_t *json, const bloom_image_t *image,
    const bloom_census_t *census);

/* Prints the fill ratio; null in layout fuse, where it means nothing. */
void image_json_fill(bloom_json_writer_t *json, uint32_t layout, double fill);

/* Prints how many exceptions have each kind. */
void image_json_kinds(bloom_json_writer_t *json,
    const exception_kinds_t *kinds);

/* Returns the standard error of image->items: 0, unless the header says that
 * the number is an estimate. */
double image_json_items_error(const bloom_image_t *image);

/* Returns the number of bits for each item; an empty image counts as one
 * item. */
double image_json_bits_per_item(const bloom_image_t *image);


#endif /* IMAGE_JSON_H */
