/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in files for guards, and compares numbers of keys
 * with each other and with the bits of an image.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bloom_fuse.h"
#include "bloom_guard.h"
#include "bloom_units.h"


/* Far below the change of one key in the largest filter. */
#define ROUNDING  1e-14

/* By how much the bits may contradict the number of keys. */
#define SIGMAS  10
#define BITS    32
#define PART    0.125


/* How many keys a part may have. */
typedef struct {
    double  least;
    double  most;
    double  likely;
} range_t;


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}


/* Removes the blanks at both ends of a key. */
static void
trim(bloom_key_t *key)
{
    while (key->len != 0 && is_blank(key->data[0])) {
        key->data++;
        key->len--;
    }

    while (key->len != 0 && is_blank(key->data[key->len - 1])) {
        key->len--;
    }
}


int
bloom_guard_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    uint64_t *line)
{
    size_t  i;

    if (!bloom_key_next(key, pos, end, BLOOM_SPLIT_LINES, 1)) {
        return 0;
    }

    ++*line;
    trim(key);

    if (key->len != 0 && key->data[0] == '!') {
        key->len = 0;
    }

    for (i = 0; i < key->len; i++) {
        if (key->data[i] == '#' && (i == 0 || is_blank(key->data[i - 1]))) {
            key->len = i;
            trim(key);
            break;
        }
    }

    return 1;
}


int
bloom_guard_limit_parse(bloom_guard_limit_t *limit, const char *text,
    size_t len, double most)
{
    if (bloom_units_percent(text, len, &limit->part) == 0) {
        limit->kind = BLOOM_GUARD_PART;
        return limit->part <= most ? 0 : -1;
    }

    if (bloom_units_count(text, len, &limit->keys) == 0) {
        limit->kind = BLOOM_GUARD_KEYS;
        return limit->keys <= BLOOM_CAPACITY_MAX ? 0 : -1;
    }

    return -1;
}


int
bloom_guard_limited(const bloom_guard_limits_t *limits)
{
    return limits->loss.kind != BLOOM_GUARD_ANY
           || limits->growth.kind != BLOOM_GUARD_ANY;
}


/* Tells whether a change by so many keys, which are this part, is too large. */
static int
is_over(const bloom_guard_limit_t *limit, uint64_t keys, double part)
{
    switch (limit->kind) {

    case BLOOM_GUARD_PART:
        return part > limit->part * (1 + ROUNDING);

    case BLOOM_GUARD_KEYS:
        return keys > limit->keys;

    default:
        return 0;
    }
}


/* Writes a percentage, without an exponent if it is large. */
static void
write_percent(char *text, size_t size, double part)
{
    snprintf(text, size, part < 1 ? "%.3g %%" : "%.0f %%", 100 * part);
}


int
bloom_guard_exceeds(const bloom_guard_limits_t *limits, uint64_t before,
    uint64_t now, bloom_guard_excess_t *excess)
{
    char                        percent[32];
    double                      part;
    uint64_t                    keys;
    const bloom_guard_limit_t  *limit;

    excess->loss = now < before;
    limit = excess->loss ? &limits->loss : &limits->growth;
    keys = excess->loss ? before - now : now - before;
    part = before != 0 ? (double) keys / (double) before : 0;

    if (!is_over(limit, keys, part)) {
        return 0;
    }

    write_percent(percent, sizeof(percent), part);

    snprintf(excess->change, sizeof(excess->change),
             "%" PRIu64 " %s%s%s%s than the %" PRIu64, keys,
             excess->loss ? "fewer" : "more", before != 0 ? " (" : "",
             before != 0 ? percent : "", before != 0 ? ")" : "", before);

    if (limit->kind == BLOOM_GUARD_PART) {
        write_percent(excess->allowed, sizeof(excess->allowed), limit->part);

    } else {
        snprintf(excess->allowed, sizeof(excess->allowed), "%" PRIu64 " key%s",
                 limit->keys, limit->keys == 1 ? "" : "s");
    }

    return 1;
}


/* Returns the number of keys that set so many bits; INFINITY if all bits are
 * set. */
static double
keys_of(const bloom_geometry_t *g, double bits_set)
{
    double  m;

    m = (double) g->bits;

    return bits_set < m ? -m / g->k * log1p(-bits_set / m) : INFINITY;
}


static range_t
fuse_range(const bloom_geometry_t *g, double bits_set)
{
    double   slots, key, margin;
    range_t  range;

    slots = (double) (bloom_fuse_slots(&g->fuse) << g->fuse.shard_bits);
    key = (g->fuse.width + (double) g->fuse.wide / slots) / 2;
    margin = SIGMAS * sqrt(bits_set / 2) + BITS;

    range.least = (bits_set - margin) / key;
    range.most = (bits_set + margin) / key;
    range.likely = bits_set / key;

    return range;
}


/* Nothing is known of how the bits are spread over the links. */
static range_t
links_range(const bloom_geometry_t *g, double bits_set)
{
    double    k;
    range_t   range;
    uint32_t  i;

    for (k = 1, i = 0; i < g->links; i++) {
        k = fmax(k, g->link[i].k);
    }

    range.least = bits_set / k;
    range.most = bits_set > BITS ? INFINITY : BITS;
    range.likely = range.least;

    return range;
}


static range_t
part_range(const bloom_geometry_t *g, uint64_t n)
{
    double   m, zeros, a, margin, bits_set;
    range_t  range;

    bits_set = (double) n;

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return fuse_range(g, bits_set);
    }

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        return links_range(g, bits_set);
    }

    m = (double) g->bits;
    zeros = fmax(m - bits_set, 1);
    a = -log(zeros / m);
    margin = SIGMAS * sqrt(fmax(zeros * (1 - (1 + a) * zeros / m), 0)) + BITS;

    range.least = keys_of(g, fmax(bits_set - margin, 0));
    range.most = keys_of(g, bits_set + margin);
    range.likely = keys_of(g, m - zeros);

    return range;
}


int
bloom_guard_contradicts(const bloom_image_t *image, const uint64_t *bits_set,
    uint64_t *items)
{
    double                   keys, least, most, likely, counted;
    range_t                  range;
    uint32_t                 i;
    bloom_geometry_t         part;
    const bloom_geometry_t  *g;

    g = &image->geometry;
    keys = (double) image->items;
    *items = image->items;

    if (g->slices != 0) {
        return 0;
    }

    least = 0;
    most = 0;
    likely = 0;
    counted = 1;

    for (i = 0; i <= g->layers; i++) {
        part = g->layers != 0 ? bloom_geometry_part(g, i) : *g;
        range = part_range(&part, bits_set[i]);

        least += range.least;
        most += range.most;
        likely += range.likely;

        if (g->layers != 0 && isfinite(range.most)) {
            counted *= 1 - bloom_geometry_fpr(&part,
                                              (uint64_t) ceil(range.most));
        }
    }

    *items = (uint64_t) llround(likely);

    if (most < keys * (1 - PART) * counted) {
        return -1;
    }

    return least * (1 - PART) > keys;
}
