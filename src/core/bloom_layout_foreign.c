/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * All of these layouts share one loop over a walk, which yields the numbers of
 * a key's bits one after the other.
 */

#include "bloom_layout_foreign.h"
#include "bloom_bits.h"
#include "bloom_murmur3.h"

#define LEHMER_P  18446744073709551557ull
#define LEHMER_G  18446744073709550147ull


/* The walk over a key's bits. */
typedef struct {
    uint32_t         i;                  /* of the next bit */
    uint64_t         x;
    uint64_t         step;
    uint64_t         other;              /* zigzag: the next step */
    uint64_t         g[4];               /* four */
    bloom_murmur3_t  prefix;             /* each */
} walk_t;


static inline int64_t
i32(uint64_t x)
{
    return (int32_t) (uint32_t) x;
}


static inline uint64_t
flip(int64_t c)
{
    return (uint64_t) (c < 0 ? ~c : c);
}


static inline __attribute__((always_inline)) void
walk_begin(walk_t *w, uint32_t layout, bloom_hash_t hash)
{
    uint8_t       one;
    const void   *key;
    bloom_hash_t  h;

    w->i = 0;
    w->x = hash.h1;
    w->step = hash.h2;

    switch (layout) {

    case BLOOM_LAYOUT_DOUBLE31:
        w->step = hash.h1 >> 32;
        w->x += w->step;
        break;

    case BLOOM_LAYOUT_SPARK2:
        w->step = (uint64_t) i32(hash.h1 >> 32);
        w->x = (uint64_t) i32(hash.h1) * INT32_MAX;
        break;

    case BLOOM_LAYOUT_ZIGZAG:
        w->other = hash.h1;
        break;

    case BLOOM_LAYOUT_LEHMER:
        w->x = hash.h1 % LEHMER_P;
        break;

    case BLOOM_LAYOUT_FOUR:
        one = 1;
        key = (const void *) (uintptr_t) hash.h1;

        bloom_murmur3_begin(&w->prefix);
        bloom_murmur3_update(&w->prefix, key, hash.h2);
        h = bloom_murmur3_end(&w->prefix);
        w->g[0] = h.h1;
        w->g[1] = h.h2;

        bloom_murmur3_update(&w->prefix, &one, 1);
        h = bloom_murmur3_end(&w->prefix);
        w->g[2] = h.h1;
        w->g[3] = h.h2;
        break;

    case BLOOM_LAYOUT_EACH:
        key = (const void *) (uintptr_t) hash.h1;

        bloom_murmur3_begin(&w->prefix);
        bloom_murmur3_update(&w->prefix, key, hash.h2);
        break;
    }
}


static inline __attribute__((always_inline)) uint64_t
walk_next(walk_t *w, uint32_t layout, uint64_t bits)
{
    uint8_t          last;
    uint32_t         i;
    uint64_t         x, other;
    bloom_murmur3_t  m;

    i = w->i++;
    x = w->x;

    switch (layout) {

    case BLOOM_LAYOUT_DOUBLE63:
        w->x += w->step;
        x &= INT64_MAX;
        break;

    case BLOOM_LAYOUT_DOUBLE31:
        w->x += w->step;
        x = flip(i32(x));
        break;

    case BLOOM_LAYOUT_SPARK2:
        w->x += w->step;
        x = flip((int64_t) w->x);
        break;

    case BLOOM_LAYOUT_ZIGZAG:
        w->x += w->step;
        other = w->other;
        w->other = w->step;
        w->step = other;
        x &= INT64_MAX;
        break;

    case BLOOM_LAYOUT_LEHMER:
        x = (x * LEHMER_G) % LEHMER_P;
        w->x = x;
        break;

    case BLOOM_LAYOUT_FOUR:
        x = w->g[i % 2] + i * w->g[2 + (i + i % 2) % 4 / 2];
        break;

    case BLOOM_LAYOUT_EACH:
        m = w->prefix;
        last = (uint8_t) i;
        bloom_murmur3_update(&m, &last, 1);
        x = bloom_murmur3_end(&m).h1;
        break;

    default:
        w->x += w->step;
    }

    return x % bits;
}


static inline __attribute__((always_inline)) int
test_bits(uint32_t layout, uint32_t k, uint64_t bits, const uint64_t *words,
    bloom_hash_t hash)
{
    walk_t  w;

    walk_begin(&w, layout, hash);

    for ( /* void */ ; k != 0; k--) {
        if ((bloom_bit_load(words, walk_next(&w, layout, bits)) & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


static int
links_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    uint32_t             i;
    uint64_t             from;
    const bloom_link_t  *link;

    /* the newest link comes first: it is the largest */

    from = g->bits;

    for (i = g->links; i != 0; i--) {
        link = &g->link[i - 1];
        from -= bloom_geometry_whole_lines(link->bits);

        if (test_bits(BLOOM_LAYOUT_DOUBLE, link->k, link->bits,
                      words + from / 64, hash))
        {
            return 1;
        }
    }

    return 0;
}


int
bloom_layout_foreign_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    /* each layout gets its own loop, without a branch on the layout in it */

#define test_as(layout)                                                      \
    case layout:                                                             \
        return test_bits(layout, g->k, g->bits, words, hash)

    switch (g->layout) {

    test_as(BLOOM_LAYOUT_DOUBLE);
    test_as(BLOOM_LAYOUT_DOUBLE63);
    test_as(BLOOM_LAYOUT_DOUBLE31);
    test_as(BLOOM_LAYOUT_SPARK2);
    test_as(BLOOM_LAYOUT_ZIGZAG);
    test_as(BLOOM_LAYOUT_LEHMER);
    test_as(BLOOM_LAYOUT_FOUR);
    test_as(BLOOM_LAYOUT_EACH);

    case BLOOM_LAYOUT_LINKS:
        return links_test(g, words, hash);
    }

#undef test_as

    return 0;
}


uint32_t
bloom_layout_foreign_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX])
{
    walk_t               w;
    uint32_t             i, layout;
    uint64_t             from, end;
    const bloom_link_t  *link;

    from = 0;
    end = g->bits;
    layout = g->layout;

    if (layout == BLOOM_LAYOUT_LINKS) {
        link = &g->link[g->links - 1];
        from = g->bits - bloom_geometry_whole_lines(link->bits);
        end = link->bits;
        layout = BLOOM_LAYOUT_DOUBLE;
    }

    walk_begin(&w, layout, hash);

    for (i = 0; i < g->k; i++) {
        bits[i] = from + walk_next(&w, layout, end);
    }

    return g->k;
}


int
bloom_layout_foreign_add(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash, int atomic)
{
    int       changed;
    uint32_t  i;
    uint64_t  bits[BLOOM_K_MAX];

    if (g->layout == BLOOM_LAYOUT_LINKS && links_test(g, words, hash)) {
        return 0;
    }

    (void) bloom_layout_foreign_bits(g, hash, bits);

    for (changed = 0, i = 0; i < g->k; i++) {
        changed += bloom_bit_set(words, bits[i], atomic);
    }

    return changed;
}
