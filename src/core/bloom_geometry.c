/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Rates are computed by formula.  Sizes have no closed formula, so they are
 * found by bisection over the rate.
 */

#include <math.h>
#include <string.h>

#include "bloom_geometry.h"


/*
 * One line per key suffices down to this rate, two lines down to its square,
 * and so on.  Below, the uneven load of lines costs more space than another
 * line costs time.
 */
#define RATE_PER_LINE  1e-3


/* Returns the lowest rate for which this number of lines suffices. */
static double
lines_suffice(uint32_t lines)
{
    return 0.999 * pow(RATE_PER_LINE, lines);
}


double
bloom_geometry_classic_fpr(const bloom_geometry_t *g, double fill)
{
    double  m, k, rate;

    m = (double) g->bits;
    k = g->k;
    rate = pow(fill, k);

    if (g->k > 1 && g->layout == BLOOM_LAYOUT_CLASSIC) {

        /*
         * Double hashing spreads a key's bits over the filter in equal steps.
         * If the step is close to a fraction c/q of the filter, q < k, the key
         * has about q distinct bits instead of k.  This puts a floor under the
         * rate, which matters in small filters.  Summed over all fractions and
         * distances from them, the floor is
         *
         *     fill (1 + fill) / ((1 - fill)^2 (k - 1) m).
         *
         * The rest of the term below comes from keys whose bits run alongside
         * a member's bits, in the same or the opposite direction.  That part is
         * measured, and matters at low fill ratios: see
         * t/unit/test_geometry_fpr.c.
         */

        rate += fill * (1.35 + 0.65 * fill)
                / ((1 - fill) * (1 - fill) * (k - 1) * m);
    }

    return fmin(1, rate);
}


static double
classic_fpr(const bloom_geometry_t *g, double items)
{
    double  fill;

    fill = -expm1(g->k * items * log1p(-1 / (double) g->bits));

    return bloom_geometry_classic_fpr(g, fill);
}


/*
 * Returns E[(1 - x^J)^r] for J ~ Binomial(trials, q) and x = 1 - 1/sector.  The
 * power is expanded, and each E[s^J] is replaced by its closed form,
 * (1 - q(1 - s))^trials.
 */
static long double
line_moment(unsigned r, long double sector, long double trials, long double q)
{
    unsigned     i;
    long double  sum, term, log_x;

    sum = 0;
    term = 1;                            /* (-1)^i C(r, i) */
    log_x = log1pl(-1 / sector);

    for (i = 0; i <= r; i++) {
        sum += term * expl(trials * log1pl(q * expm1l(i * log_x)));
        term = -term * (r - i) / (i + 1);
    }

    return fmaxl(sum, 0);
}


static double
blocked_fpr(const bloom_geometry_t *g, double items)
{
    unsigned     r;
    long double  q, sector, one, two, three, trials;

    q = (long double) BLOOM_LINE_BITS / g->bits;
    r = g->k / g->lines;
    sector = (long double) BLOOM_LINE_BITS / r;
    trials = (long double) items * g->lines;

    if (q == 1) {

        /* every key is in the only line */

        return (double) powl(-expm1l(trials * log1pl(-1 / sector)), g->k);
    }

    one = line_moment(r, sector, trials, q);

    if (g->lines == 1) {
        return (double) one;
    }

    /* a key's lines are drawn independently and may coincide */

    two = line_moment(2 * r, sector, trials, q);

    if (g->lines == 2) {
        return (double) ((1 - q) * one * one + q * two);
    }

    three = line_moment(3 * r, sector, trials, q);

    return (double) ((1 - q) * (1 - 2 * q) * one * one * one
                     + 3 * q * (1 - q) * one * two + q * q * three);
}


/* The number of keys in each link is not known; they are taken to be spread in
 * proportion to the room of the links. */
static double
links_fpr(const bloom_geometry_t *g, double items)
{
    double            room, none;
    uint32_t          i;
    bloom_geometry_t  one;

    for (room = 0, i = 0; i < g->links; i++) {
        room += (double) g->link[i].bits / g->link[i].k;
    }

    for (none = 0, i = 0; i < g->links; i++) {
        one = bloom_geometry_part(g, i);
        none += log1p(-classic_fpr(&one, items * (double) one.bits / one.k
                                         / room));
    }

    return 0 - expm1(none);
}


double
bloom_geometry_fpr(const bloom_geometry_t *g, uint64_t items)
{
    if (items == 0) {
        return 0;
    }

    switch (g->layout) {

    case BLOOM_LAYOUT_BLOCKED:
        return blocked_fpr(g, (double) items);

    case BLOOM_LAYOUT_LINKS:
        return links_fpr(g, (double) items);

    case BLOOM_LAYOUT_FUSE:
        return bloom_fuse_fpr(&g->fuse);
    }

    return classic_fpr(g, (double) items);
}


/* Sets g->bits to the smallest size that keeps the rate.  Returns -1 if no size
 * does. */
static int
fit_bits(bloom_geometry_t *g, uint64_t items, double fpr)
{
    uint64_t  low, high, mid;

    /*
     * The filter has at least as many lines as a key.  With fewer, the lines of
     * a key coincide often, and the rate is a few percent above the expected.
     */

    low = g->lines > 1 ? g->lines - 1 : 0;
    high = BLOOM_BITS_MAX / BLOOM_LINE_BITS;

    g->bits = BLOOM_BITS_MAX;

    if (bloom_geometry_fpr(g, items) > fpr) {
        return -1;
    }

    while (high - low > 1) {
        mid = low + (high - low) / 2;
        g->bits = mid * BLOOM_LINE_BITS;

        if (bloom_geometry_fpr(g, items) > fpr) {
            low = mid;

        } else {
            high = mid;
        }
    }

    g->bits = high * BLOOM_LINE_BITS;

    return 0;
}


int
bloom_geometry_size(bloom_geometry_t *g, uint32_t layout, uint64_t capacity,
    double fpr)
{
    int               found;
    double            rate, best;
    uint32_t          k, step, last;
    bloom_geometry_t  try;

    if (capacity == 0 || capacity > BLOOM_CAPACITY_MAX
        || !(fpr >= BLOOM_FPR_MIN && fpr <= BLOOM_FPR_MAX))
    {
        return -1;
    }

    if (layout == BLOOM_LAYOUT_FUSE) {
        return bloom_geometry_size_fuse(g, capacity, fpr);
    }

    best = 1;
    memset(&try, 0, sizeof(try));
    try.layout = layout;

    if (layout == BLOOM_LAYOUT_CLASSIC) {
        /* small filters need less than the textbook's k, see above */

        try.lines = 0;
        k = 1;
        last = (uint32_t) floor(-log2(fpr)) + 1;
        step = 1;

    } else {
        try.lines = 1;

        while (try.lines < BLOOM_LINES_MAX && fpr < lines_suffice(try.lines)) {
            try.lines++;
        }

        k = try.lines;
        last = k * BLOOM_LINE_WORDS;
        step = 0;                        /* doubles */
    }

    for (found = -1; k <= last; k += step ? step : k) {
        try.k = k;

        if (fit_bits(&try, capacity, fpr) != 0) {
            continue;
        }

        rate = bloom_geometry_fpr(&try, capacity);

        if (found == -1 || try.bits < g->bits
            || (try.bits == g->bits && rate < best))
        {
            *g = try;
            best = rate;
            found = 0;
        }
    }

    return found;
}


int
bloom_geometry_size_fuse(bloom_geometry_t *g, uint64_t keys, double fpr)
{
    if (keys > BLOOM_CAPACITY_MAX
        || !(fpr >= BLOOM_FPR_MIN && fpr <= BLOOM_FPR_MAX))
    {
        return -1;
    }

    memset(g, 0, sizeof(*g));

    g->layout = BLOOM_LAYOUT_FUSE;
    g->k = BLOOM_FUSE_K;
    bloom_fuse_size(&g->fuse, keys, fpr);
    g->bits = bloom_geometry_whole_lines(bloom_fuse_bits(&g->fuse));

    return g->bits <= BLOOM_BITS_MAX ? 0 : -1;
}


uint64_t
bloom_geometry_size_capacity(bloom_geometry_t *g, uint32_t layout,
    uint64_t bytes, double fpr)
{
    uint64_t          low, high, mid;
    bloom_geometry_t  try;

    low = 0;
    high = BLOOM_CAPACITY_MAX + 1;

    while (high - low > 1) {
        mid = low + (high - low) / 2;

        if (bloom_geometry_size(&try, layout, mid, fpr) == 0
            && bloom_geometry_bytes(&try) <= bytes)
        {
            *g = try;
            low = mid;

        } else {
            high = mid;
        }
    }

    return low;
}


static int
fits(bloom_geometry_t *g, uint32_t layout, uint64_t bytes, uint64_t capacity,
    double fpr)
{
    return bloom_geometry_size(g, layout, capacity, fpr) == 0
           && bloom_geometry_bytes(g) <= bytes;
}


double
bloom_geometry_size_fpr(bloom_geometry_t *g, uint32_t layout, uint64_t bytes,
    uint64_t capacity)
{
    int       i;
    double    low, high, mid;
    uint32_t  lines;

    /*
     * With a given number of lines, a lower rate takes more space.  But where a
     * lower rate needs another line, the space drops.  So each number of lines
     * is searched separately, beginning with the most lines, which have the
     * lowest rates.
     */

    low = BLOOM_FPR_MIN;
    lines = layout == BLOOM_LAYOUT_BLOCKED ? BLOOM_LINES_MAX : 1;

    for ( /* void */ ; lines > 0; lines--, low = lines_suffice(lines)) {
        high = lines > 1 ? nextafter(lines_suffice(lines - 1), 0)
                         : BLOOM_FPR_MAX;

        if (!fits(g, layout, bytes, capacity, high)) {
            continue;
        }

        if (fits(g, layout, bytes, capacity, low)) {
            return low;
        }

        /* 60 halvings exhaust the precision of a double */

        for (i = 0; i < 60; i++) {
            mid = sqrt(low * high);

            if (fits(g, layout, bytes, capacity, mid)) {
                high = mid;

            } else {
                low = mid;
            }
        }

        (void) bloom_geometry_size(g, layout, capacity, high);

        return high;
    }

    return 0;
}


uint64_t
bloom_geometry_bytes(const bloom_geometry_t *g)
{
    uint32_t  i;
    uint64_t  bits;

    bits = bloom_geometry_whole_lines(g->bits);

    /* a copy from memory that another process writes may have any number */

    if (g->slices != 0) {
        bits *= g->slices < BLOOM_PARTS_MAX ? g->slices : BLOOM_PARTS_MAX;
    }

    for (i = 0; i < g->layers && i < BLOOM_LAYERS_MAX; i++) {
        bits += g->layer[i].bits;
    }

    return bits / 8;
}


uint32_t
bloom_geometry_parts(const bloom_geometry_t *g)
{
    if (g->slices != 0) {
        return g->slices;
    }

    return g->layout == BLOOM_LAYOUT_LINKS ? g->links : 1u + g->layers;
}


bloom_geometry_t
bloom_geometry_part(const bloom_geometry_t *g, uint32_t part)
{
    bloom_geometry_t  one;

    memset(&one, 0, sizeof(one));

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        one.layout = BLOOM_LAYOUT_DOUBLE;
        one.k = g->link[part].k;
        one.bits = g->link[part].bits;

    } else if (part == 0 || g->slices != 0) {
        one.layout = g->layout;
        one.k = g->k;
        one.lines = g->lines;
        one.bits = g->bits;
        one.fuse = g->fuse;

    } else {
        one.layout = BLOOM_LAYOUT_BLOCKED;
        one.k = g->layer[part - 1].k;
        one.lines = g->layer[part - 1].lines;
        one.bits = g->layer[part - 1].bits;
    }

    return one;
}


static int
links_valid(const bloom_geometry_t *g)
{
    uint32_t  i;
    uint64_t  bits;

    if (g->links < 2 || g->links > BLOOM_LINKS_MAX
        || g->k != g->link[g->links - 1].k)
    {
        return 0;
    }

    for (bits = 0, i = 0; i < g->links; i++) {

        if (g->link[i].bits == 0 || g->link[i].bits > BLOOM_BITS_MAX
            || g->link[i].k == 0 || g->link[i].k > BLOOM_K_MAX
            || g->link[i].zero != 0)
        {
            return 0;
        }

        bits += bloom_geometry_whole_lines(g->link[i].bits);
    }

    return bits == g->bits;
}


static int
foreign_valid(const bloom_geometry_t *g)
{
    if (g->bits == 0 || g->bits > BLOOM_BITS_MAX || g->lines != 0
        || g->k == 0 || g->k > BLOOM_K_MAX)
    {
        return 0;
    }

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        return links_valid(g);
    }

    return bloom_geometry_layout_name(g->layout) != NULL;
}


static int
fuse_valid(const bloom_geometry_t *g)
{
    return g->k == BLOOM_FUSE_K && g->lines == 0
           && g->fuse.keys <= BLOOM_CAPACITY_MAX
           && g->fuse.room <= BLOOM_CAPACITY_MAX
           && bloom_fuse_valid(&g->fuse)
           && g->bits <= BLOOM_BITS_MAX
           && g->bits == bloom_geometry_whole_lines(bloom_fuse_bits(&g->fuse));
}


static int
own_valid(const bloom_geometry_t *g)
{
    uint32_t  per_line;

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return fuse_valid(g);
    }

    if (g->bits == 0 || g->bits % BLOOM_LINE_BITS != 0
        || g->bits > BLOOM_BITS_MAX)
    {
        return 0;
    }

    if (g->k == 0 || g->k > BLOOM_OWN_K_MAX) {
        return 0;
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return g->lines == 0;
    }

    if (g->layout != BLOOM_LAYOUT_BLOCKED
        || g->lines == 0 || g->lines > BLOOM_LINES_MAX
        || g->k % g->lines != 0)
    {
        return 0;
    }

    per_line = g->k / g->lines;

    return per_line == 1 || per_line == 2 || per_line == 4 || per_line == 8;
}


static int
ring_valid(const bloom_geometry_t *g)
{
    bloom_geometry_t  slice;

    slice = bloom_geometry_part(g, 0);

    return g->layout == BLOOM_LAYOUT_BLOCKED && g->layers == 0
           && g->slices <= BLOOM_PARTS_MAX && g->open < g->slices
           && g->live >> g->slices == 0 && own_valid(&slice)
           && g->bits <= BLOOM_BITS_MAX / g->slices;
}


int
bloom_geometry_valid(const bloom_geometry_t *g)
{
    uint32_t          i;
    uint64_t          bits;
    bloom_geometry_t  part;

    if (g->slices != 0) {
        return ring_valid(g);
    }

    if (bloom_geometry_is_foreign(g->layout)) {
        return g->layers == 0 && foreign_valid(g);
    }

    if (g->layers > BLOOM_LAYERS_MAX) {
        return 0;
    }

    for (bits = 0, i = 0; i <= g->layers; i++) {
        part = bloom_geometry_part(g, i);

        if (!own_valid(&part)) {
            return 0;
        }

        bits += part.bits;
    }

    return bits <= BLOOM_BITS_MAX;
}


int
bloom_geometry_equal(const bloom_geometry_t *a, const bloom_geometry_t *b)
{
    uint32_t  i;

    if (a->layout != b->layout || a->k != b->k || a->lines != b->lines
        || a->bits != b->bits || a->slices != b->slices
        || bloom_geometry_parts(a) != bloom_geometry_parts(b))
    {
        return 0;
    }

    if (a->layout == BLOOM_LAYOUT_FUSE
        && memcmp(&a->fuse, &b->fuse, sizeof(a->fuse)) != 0)
    {
        return 0;
    }

    for (i = 0; i < a->layers; i++) {
        if (a->layer[i].bits != b->layer[i].bits
            || a->layer[i].k != b->layer[i].k
            || a->layer[i].lines != b->layer[i].lines)
        {
            return 0;
        }
    }

    for (i = 0; a->layout == BLOOM_LAYOUT_LINKS && i < a->links; i++) {
        if (a->link[i].bits != b->link[i].bits
            || a->link[i].k != b->link[i].k)
        {
            return 0;
        }
    }

    return 1;
}


/* Returns k; for links, the mean k weighted by the room of each link. */
static double
mean_k(const bloom_geometry_t *g)
{
    double    bits, room;
    uint32_t  i;

    if (g->layout != BLOOM_LAYOUT_LINKS) {
        return g->k;
    }

    for (bits = 0, room = 0, i = 0; i < g->links; i++) {
        bits += (double) g->link[i].bits;
        room += (double) g->link[i].bits / g->link[i].k;
    }

    return bits / room;
}


uint64_t
bloom_geometry_items(const bloom_geometry_t *g, uint64_t bits_set)
{
    double  m, zeros;

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return g->fuse.keys;
    }

    m = (double) g->bits;
    zeros = bits_set < g->bits ? (double) (g->bits - bits_set) : 1;

    return (uint64_t) llround(-m / mean_k(g) * log(zeros / m));
}


double
bloom_geometry_items_error(const bloom_geometry_t *g, uint64_t items)
{
    double  m, a, k;

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return 0;
    }

    m = (double) g->bits;
    k = mean_k(g);
    a = k * (double) items / m;

    return sqrt(m * (expm1(a) - a)) / k;
}


const char *
bloom_geometry_layout_name(uint32_t layout)
{
    static const char *const  names[] = {
        NULL, "blocked", "classic", NULL, "double", "double63", "double31",
        "spark2", "zigzag", "lehmer", "four", "each", "links",
        "fuse"
    };

    return layout < sizeof(names) / sizeof(names[0]) ? names[layout] : NULL;
}


uint32_t
bloom_geometry_layout_parse(const char *name, uint64_t len)
{
    uint32_t     layout;
    const char  *candidate;

    for (layout = BLOOM_LAYOUT_BLOCKED; layout <= BLOOM_LAYOUT_FUSE; layout++) {
        candidate = bloom_geometry_layout_name(layout);

        if (candidate != NULL && !bloom_geometry_is_foreign(layout)
            && strlen(candidate) == len && memcmp(candidate, name, len) == 0)
        {
            return layout;
        }
    }

    return 0;
}
