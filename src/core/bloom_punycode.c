/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Punycode writes the ASCII characters first, then one number for each other
 * character: its distance from the one before, counted over all positions and
 * all code points.  The weights of the digits adapt to the numbers before.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_punycode.h"


/* RFC 3492, section 5 */
#define BASE   36
#define T_MIN  1
#define T_MAX  26
#define SKEW   38
#define DAMP   700
#define BIAS   72
#define FIRST  0x80                      /* the lowest code point encoded */

#define LAST   0x10ffff


static uint32_t
adapt(uint32_t delta, uint32_t n, int first)
{
    uint32_t  k;

    delta /= first ? DAMP : 2;
    delta += delta / n;

    for (k = 0; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE) {
        delta /= BASE - T_MIN;
    }

    return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}


/* Returns the threshold of the digit at place k (section 6.2). */
static uint32_t
threshold(uint32_t k, uint32_t bias)
{
    return k <= bias + T_MIN ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
}


static size_t
put_number(uint8_t *out, size_t at, size_t room, uint32_t value, uint32_t bias)
{
    uint32_t  k, t, digit;

    for (k = BASE; /* void */ ; k += BASE) {
        t = threshold(k, bias);
        digit = value < t ? value : t + (value - t) % (BASE - t);

        if (at < room) {
            out[at] = (uint8_t) (digit < 26 ? 'a' + digit : '0' + digit - 26);
        }

        at++;

        if (value < t) {
            return at;
        }

        value = (value - t) / (BASE - t);
    }
}


int
bloom_punycode_encode(uint8_t *out, size_t room, const uint32_t *c, size_t n)
{
    size_t    i, at, basic, done;
    uint32_t  code, next, delta, bias;

    for (i = 0, at = 0; i < n; i++) {

        if (c[i] >= FIRST) {
            continue;
        }

        if (at == room) {
            return -1;
        }

        out[at++] = (uint8_t) c[i];
    }

    basic = at;

    if (basic != 0) {

        if (at == room) {
            return -1;
        }

        out[at++] = '-';
    }

    code = FIRST;
    bias = BIAS;
    delta = 0;

    for (done = basic; done < n; code++, delta++) {

        for (i = 0, next = LAST; i < n; i++) {
            if (c[i] >= code && c[i] < next) {
                next = c[i];
            }
        }

        if (next - code > (UINT32_MAX - delta - n) / (done + 1)) {
            return -1;
        }

        delta += (next - code) * (uint32_t) (done + 1);
        code = next;

        for (i = 0; i < n; i++) {
            delta += c[i] < code;

            if (c[i] != code) {
                continue;
            }

            at = put_number(out, at, room, delta, bias);

            if (at > room) {
                return -1;
            }

            bias = adapt(delta, (uint32_t) done + 1, done == basic);
            delta = 0;
            done++;
        }
    }

    return (int) at;
}


static int
digit_of(uint8_t c)
{
    return bloom_is_alpha(c) ? (c | 0x20) - 'a'
           : bloom_is_digit(c) ? c - '0' + 26 : -1;
}


int
bloom_punycode_decode(uint32_t *c, size_t room, const uint8_t *p, size_t len)
{
    int             digit;
    size_t          n, basic;
    uint64_t        i, weight, before;
    uint32_t        code, bias, k, t;
    const uint8_t  *end;

    end = p + len;

    for (basic = len; basic != 0 && p[basic - 1] != '-'; basic--) {
        /* void */
    }

    n = basic == 0 ? 0 : basic - 1;

    if (n > room) {
        return -1;
    }

    for (i = 0; i < n; i++) {

        if (p[i] >= FIRST) {
            return -1;
        }

        c[i] = p[i];
    }

    code = FIRST;
    bias = BIAS;
    i = 0;

    for (p += basic; p < end; /* void */ ) {
        before = i;
        weight = 1;

        for (k = BASE; /* void */ ; k += BASE) {
            digit = p < end ? digit_of(*p++) : -1;

            if (digit == -1) {
                return -1;
            }

            i += (uint64_t) digit * weight;
            t = threshold(k, bias);

            if ((uint32_t) digit < t) {
                break;
            }

            weight *= BASE - t;

            if (i > UINT32_MAX || weight > UINT32_MAX) {
                return -1;
            }
        }

        if (i > UINT32_MAX || n == room) {
            return -1;
        }

        bias = adapt((uint32_t) (i - before), (uint32_t) n + 1, before == 0);

        if (i / (n + 1) > LAST - code) {
            return -1;
        }

        code += (uint32_t) (i / (n + 1));
        i %= n + 1;

        memmove(c + i + 1, c + i, (n - i) * sizeof(*c));
        c[i++] = code;
        n++;
    }

    return (int) n;
}
