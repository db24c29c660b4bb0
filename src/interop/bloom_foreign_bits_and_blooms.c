
/*
 * bits-and-blooms (formerly willf) bloom, for Go: BloomFilter.WriteTo().
 * Numbers of 8 bytes, big-endian:
 *
 *     0  m, bits of the filter      8   k
 *     16 bits of the bit set: m, or up to 63 more
 *     24 words of 64 bits
 *
 * The last two are little-endian if the program had said so.  In JSON there is
 * {"m":1000,"k":4,"b":"..."}, where b is all from byte 16 on in base64, of
 * either alphabet.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_bytes.h"
#include "bloom_hasher.h"

#define HEAD  24


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    uint64_t  bits, set;

    if (len < HEAD) {
        return bloom_foreign_fail(f, "is no bits-and-blooms filter: it has %zu "
                                  "bytes, and a header alone has %d", len,
                                  HEAD);
    }

    bits = bloom_get64be(head);
    set = bloom_get64be(head + 16);
    f->order = BLOOM_ORDER_BE;

    if (set < bits || set - bits > 63) {
        set = bloom_get64(head + 16);
        f->order = BLOOM_ORDER_LE;
    }

    if (set < bits || set - bits > 63) {
        return bloom_foreign_fail(f, "is no bits-and-blooms filter: %" PRIu64
                                  " bits in a set of %" PRIu64, bits,
                                  bloom_get64be(head + 16));
    }

    if (bloom_foreign_geometry(f, BLOOM_LAYOUT_FOUR, bits,
                               bloom_get64be(head + 8)) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_MURMUR3_TWICE, 0) != 0)
    {
        return -1;
    }

    f->payload = HEAD;
    f->bytes = (set + 63) / 64 * 8;
    f->link_bytes[0] = f->bytes;

    if (f->bytes > bloom_geometry_whole_lines(bits) / 8) {
        return bloom_foreign_fail(f, "is no bits-and-blooms filter: %" PRIu64
                                  " bits in a set of %" PRIu64, bits, set);
    }

    if (bloom_foreign_size(f, size) != 0) {
        return -1;
    }

    bloom_foreign_promise(f, 0, 0);
    bloom_foreign_keep(f, BLOOM_ORIGIN_BITS_AND_BLOOMS, HEAD);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    int                      rc;
    bloom_foreign_t          f;
    const bloom_geometry_t  *g;

    if (bloom_foreign_scheme(out, image, "bits-and-blooms", BLOOM_LAYOUT_FOUR,
                             BLOOM_HASH_MURMUR3_TWICE) != 0)
    {
        return -1;
    }

    rc = bloom_foreign_origin(out, &bloom_foreign_bits_and_blooms, image,
                              origin, &f);

    if (rc == -1) {
        return -1;
    }

    out->head_len = HEAD;

    if (rc == 1) {
        memcpy(out->head, origin, HEAD);
        out->order = f.order;
        out->link_bytes[0] = f.link_bytes[0];

        return 0;
    }

    g = &image->geometry;

    bloom_put64be(out->head, g->bits);
    bloom_put64be(out->head + 8, g->k);
    bloom_put64be(out->head + 16, g->bits);
    out->order = BLOOM_ORDER_BE;
    out->link_bytes[0] = (g->bits + 63) / 64 * 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_bits_and_blooms = {
    "bits-and-blooms", BLOOM_ORIGIN_BITS_AND_BLOOMS, "a bits-and-blooms filter",
    parse, write_head
};


/* ---- JSON ---- */

static const uint8_t *
skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p != end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
        p++;
    }

    return p;
}


/* Behind `what`, which may have blanks between its words; NULL if it is not
 * there. */
static const uint8_t *
expect(const uint8_t *p, const uint8_t *end, const char *what)
{
    char  before;

    for (before = 'a'; *what != '\0'; before = *what++, p++) {

        if (strchr("{,:}", *what) != NULL || (*what == '"'
                                              && !(before >= 'a'
                                                   && before <= 'z')))
        {
            p = skip_space(p, end);
        }

        if (p == end || *p != (uint8_t) *what) {
            return NULL;
        }
    }

    return p;
}


static const uint8_t *
number(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    const uint8_t  *begin;

    p = skip_space(p, end);
    begin = p;

    for (*value = 0; p != end && *p >= '0' && *p <= '9'; p++) {

        if (*value > (UINT64_MAX - 9) / 10) {
            return NULL;
        }

        *value = *value * 10 + (uint64_t) (*p - '0');
    }

    return p == begin ? NULL : p;
}


/* 0 to 63, -1 if the character is none of the alphabet's. */
static int
base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '-' || c == '+' ? 62 : c == '_' || c == '/' ? 63 : -1;
}


int64_t
bloom_foreign_json(uint8_t *dst, const uint8_t *src, size_t len,
    char error[BLOOM_FOREIGN_ERROR_LEN])
{
    int             digit, n;
    uint8_t        *out;
    uint32_t        group;
    uint64_t        m, k;
    const uint8_t  *p, *end;

    p = src;
    end = src + len;

    p = expect(p, end, "{\"m\":");
    p = p ? number(p, end, &m) : NULL;
    p = p ? expect(p, end, ",\"k\":") : NULL;
    p = p ? number(p, end, &k) : NULL;
    p = p ? expect(p, end, ",\"b\":\"") : NULL;

    if (p == NULL) {
        snprintf(error, BLOOM_FOREIGN_ERROR_LEN,
                 "is no bits-and-blooms filter in JSON: it does not begin with "
                 "{\"m\":...,\"k\":...,\"b\":\"");
        return -1;
    }

    /* the text before took more than these 16 bytes */

    bloom_put64be(dst, m);
    bloom_put64be(dst + 8, k);
    out = dst + 16;

    group = 0;
    n = 0;

    for ( /* void */ ; p != end; p++) {

        digit = base64_digit(*p);

        if (digit == -1) {
            break;
        }

        group = group << 6 | (uint32_t) digit;

        if (++n == 4) {
            *out++ = (uint8_t) (group >> 16);
            *out++ = (uint8_t) (group >> 8);
            *out++ = (uint8_t) group;
            group = 0;
            n = 0;
        }
    }

    if (n == 2) {
        *out++ = (uint8_t) (group >> 4);

    } else if (n == 3) {
        *out++ = (uint8_t) (group >> 10);
        *out++ = (uint8_t) (group >> 2);
    }

    while (n > 1 && n < 4 && p != end && *p == '=') {
        p++;
        n++;
    }

    p = n == 1 ? NULL : expect(p, end, "\"}");

    if (p == NULL || skip_space(p, end) != end) {
        snprintf(error, BLOOM_FOREIGN_ERROR_LEN,
                 "is no bits-and-blooms filter in JSON: its base64 does not "
                 "end with \"} at the end of the file");
        return -1;
    }

    return out - dst;
}
