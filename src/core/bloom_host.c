/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A plain name, the common case, is read in one pass.  Only other hosts are
 * tried as addresses or converted to punycode.
 */

#include <stdio.h>
#include <string.h>

#include "bloom_ascii.h"
#include "bloom_escape.h"
#include "bloom_host.h"
#include "bloom_host_convert.h"
#include "bloom_idn.h"


static const char  no_host[] = "has no host";
static const char  bad_port[] = "has a port that is not a number";
static const char  bad_ipv4[] = "has an invalid IPv4 address";
static const char  bad_ipv6[] = "has an invalid IPv6 address";
static const char  bad_byte[] = "has a byte that a host cannot have";
static const char  too_long[] = "has a host name longer than 253 bytes";


/* The bytes of DNS names, in lower case; a dot is DOT, other bytes are 0. */
#define DOT  1

static const uint8_t  plain[256] = {
    ['-'] = '-', DOT,
    ['0'] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
    ['A'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
            'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
    ['_'] = '_',
    ['a'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
            'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z'
};


const uint8_t *
bloom_host_scan(bloom_host_t *host, const uint8_t *p, const uint8_t *end)
{
    size_t    i, len, dot;
    uint8_t   c;
    unsigned  dots;

    len = (size_t) (end - p);
    len = len < BLOOM_HOST_MAX ? len : BLOOM_HOST_MAX;
    dot = (size_t) -1;                   /* offset of the last dot */
    dots = 0;

    for (i = 0; i < len; i++) {
        c = plain[p[i]];

        if (c > DOT) {
            host->text[i] = c;
            continue;
        }

        if (c != DOT) {
            break;
        }

        if (i == dot + 1) {
            return NULL;
        }

        host->text[i] = '.';
        host->dot[dots++] = (uint8_t) i;
        dot = i;
    }

    /* a name whose last label begins with a digit may be an address */

    if (i == dot + 1 || bloom_is_digit(p[dot + 1])
        || (i == BLOOM_HOST_MAX && p + i < end && plain[p[i]] != '\0'))
    {
        return NULL;
    }

    host->kind = BLOOM_HOST_NAME;
    host->scanned = 1;
    host->len = i;
    host->dots = dots;

    return p + i;
}


static void
set_ipv4(bloom_host_t *host, uint32_t address)
{
    int       shift;
    unsigned  n;
    uint8_t  *p;

    p = host->text;

    for (shift = 24; shift >= 0; shift -= 8) {
        n = address >> shift & 0xff;

        if (n >= 100) {
            *p++ = (uint8_t) ('0' + n / 100);
        }

        if (n >= 10) {
            *p++ = (uint8_t) ('0' + n / 10 % 10);
        }

        *p++ = (uint8_t) ('0' + n % 10);
        *p++ = '.';
    }

    host->kind = BLOOM_HOST_IPV4;
    host->len = (size_t) (p - host->text) - 1;
}


/* Returns a part of an IPv4 address; -1 if it is not a number or has more than
 * 32 bits. */
static int64_t
ipv4_part(const uint8_t *p, size_t len)
{
    int       digit;
    int64_t   value;
    unsigned  base;

    if (len == 0) {
        return -1;
    }

    base = 10;

    if (len > 1 && p[0] == '0') {
        base = (p[1] | 0x20) == 'x' ? 16 : 8;
        p += base == 16 ? 2 : 1;
        len -= base == 16 ? 2 : 1;
    }

    for (value = 0; len != 0; p++, len--) {
        digit = bloom_hex_digit(*p);

        if (digit == -1 || (unsigned) digit >= base) {
            return -1;
        }

        value = value * base + digit;

        if (value > UINT32_MAX) {
            return -1;
        }
    }

    return value;
}


static int
all_digits(const uint8_t *p, size_t len)
{
    for ( /* void */ ; len != 0; p++, len--) {
        if (!bloom_is_digit(*p)) {
            return 0;
        }
    }

    return 1;
}


/* Returns 1 if the last label is a number: then the host is an address. */
static int
ends_in_number(const bloom_host_t *host)
{
    size_t          len;
    const uint8_t  *p, *last, *end;

    end = host->text + host->len;

    for (last = end; last > host->text && last[-1] != '.'; last--) {
        /* void */
    }

    len = (size_t) (end - last);

    if (all_digits(last, len)) {
        return 1;
    }

    for (p = last + 2; len >= 2 && p < end; p++) {
        if (bloom_hex_digit(*p) == -1) {
            return 0;
        }
    }

    return len >= 2 && last[0] == '0' && last[1] == 'x';
}


static const char *
parse_ipv4(bloom_host_t *host)
{
    int64_t         value;
    unsigned        shift;
    uint32_t        address;
    const uint8_t  *p, *end, *dot;

    address = 0;
    shift = 32;
    end = host->text + host->len;

    for (p = host->text; /* void */ ; p = dot + 1) {
        dot = memchr(p, '.', (size_t) (end - p));
        value = ipv4_part(p, (size_t) ((dot == NULL ? end : dot) - p));

        if (value == -1 || shift == 0) {
            return bad_ipv4;
        }

        if (dot == NULL) {
            break;
        }

        if (value > 0xff) {
            return bad_ipv4;
        }

        shift -= 8;
        address |= (uint32_t) value << shift;
    }

    if ((uint64_t) value >> shift != 0) {
        return bad_ipv4;
    }

    set_ipv4(host, address | (uint32_t) value);

    return NULL;
}


/* Reads the four numbers that may end an IPv6 address.  Chromium, unlike the
 * URL Standard, accepts octal and hexadecimal ones. */
static int
dotted_quad(const uint8_t *p, const uint8_t *end, uint16_t pair[2])
{
    int64_t         value;
    unsigned        i;
    uint32_t        address;
    const uint8_t  *dot;

    address = 0;

    for (i = 0; i < 4; i++) {
        dot = memchr(p, '.', (size_t) (end - p));

        if ((dot == NULL) != (i == 3)) {
            return -1;
        }

        dot = dot == NULL ? end : dot;
        value = ipv4_part(p, (size_t) (dot - p));

        if (value == -1 || value > 0xff) {
            return -1;
        }

        address = address << 8 | (uint32_t) value;
        p = dot + 1;
    }

    pair[0] = (uint16_t) (address >> 16);
    pair[1] = (uint16_t) address;

    return 0;
}


/* Returns 1 if the last group of an IPv6 address is at p and has a dot. */
static int
is_dotted(const uint8_t *p, const uint8_t *end)
{
    int  dotted;

    for (dotted = 0; p < end && *p != ':'; p++) {
        dotted |= *p == '.';
    }

    return p == end && dotted;
}


/* Reads an IPv6 address (RFC 4291, section 2.2) without brackets. */
static int
read_ipv6(uint16_t group[8], const uint8_t *p, const uint8_t *end)
{
    int             digit, gap;
    unsigned        n, i, value;
    const uint8_t  *start;

    n = 0;
    gap = -1;

    if (end - p >= 2 && p[0] == ':' && p[1] == ':') {
        gap = 0;
        p += 2;
    }

    while (p < end) {

        if (n == 8) {
            return -1;
        }

        start = p;
        value = 0;

        while (p < end && p - start < 4
               && (digit = bloom_hex_digit(*p)) != -1)
        {
            value = value << 4 | (unsigned) digit;
            p++;
        }

        if (is_dotted(start, end)) {

            if (n > 6 || dotted_quad(start, end, &group[n]) != 0) {
                return -1;
            }

            n += 2;
            p = end;
            break;
        }

        if (p == start) {
            return -1;
        }

        group[n++] = (uint16_t) value;

        if (p == end) {
            break;
        }

        if (*p++ != ':' || p == end) {
            return -1;
        }

        if (*p == ':') {

            if (gap != -1) {
                return -1;
            }

            gap = (int) n;
            p++;
        }
    }

    if (gap == -1) {
        return n == 8 ? 0 : -1;
    }

    if (n > 7) {
        return -1;
    }

    for (i = 0; i < n - (unsigned) gap; i++) {
        group[7 - i] = group[n - 1 - i];
    }

    for (i = (unsigned) gap; i < 8 - n + (unsigned) gap; i++) {
        group[i] = 0;
    }

    return 0;
}


/* Writes an IPv6 address (RFC 5952, section 4): "::" replaces the longest run
 * of at least two zeros, or the first such run. */
static void
set_ipv6(bloom_host_t *host, const uint16_t group[8])
{
    char      text[48];
    unsigned  i, run, at, longest, len;

    at = 8;
    longest = 1;

    for (i = 0; i < 8; i += run + 1) {

        for (run = 0; i + run < 8 && group[i + run] == 0; run++) {
            /* void */
        }

        if (run > longest) {
            longest = run;
            at = i;
        }
    }

    for (i = 0, len = 0; i < 8; /* void */ ) {

        if (i == at) {
            len += (unsigned) sprintf(text + len, "::");
            i += longest;
            continue;
        }

        len += (unsigned) sprintf(text + len, "%s%x",
                                  i == 0 || i == at + longest ? "" : ":",
                                  group[i]);
        i++;
    }

    host->kind = BLOOM_HOST_IPV6;
    host->len = len;
    memcpy(host->text, text, len);
}


/* Returns 1 for a byte that even a zone cannot have. */
static int
ends_host(uint8_t c)
{
    return c == '\0' || c == '/' || c == '\\' || c == '?' || c == '@'
           || c == '[' || c == ']';
}


static const char *
parse_ipv6(bloom_host_t *host, const uint8_t *p, size_t len)
{
    uint16_t        group[8];
    const uint8_t  *zone, *end;

    static const uint16_t  mapped[6] = { 0, 0, 0, 0, 0, 0xffff };
    static const uint16_t  nat64[6] = { 0x64, 0xff9b, 0, 0, 0, 0 };

    end = p + len;
    zone = memchr(p, '%', len);

    if (read_ipv6(group, p, zone == NULL ? end : zone) != 0) {
        return bad_ipv6;
    }

    for ( /* void */ ; zone != NULL && zone < end; zone++) {
        if (ends_host(*zone)) {
            return bad_byte;
        }
    }

    if (memcmp(group, mapped, sizeof(mapped)) == 0
        || memcmp(group, nat64, sizeof(nat64)) == 0)
    {
        set_ipv4(host, (uint32_t) group[6] << 16 | group[7]);

    } else {
        set_ipv6(host, group);
    }

    return NULL;
}


/*
 * Appends to a name.  A dot is dropped at the beginning and after another dot.
 * A dot for which there is no room is dropped too: it is the last byte, or the
 * next byte fails.
 */
static int
append(bloom_host_t *host, const uint8_t *p, size_t len)
{
    for ( /* void */ ; len != 0; p++, len--) {

        if (*p == '.'
            && (host->len == 0 || host->len == BLOOM_HOST_MAX
                || host->text[host->len - 1] == '.'))
        {
            continue;
        }

        if (host->len == BLOOM_HOST_MAX) {
            return -1;
        }

        if (*p == '.') {
            host->dot[host->dots++] = (uint8_t) host->len;
        }

        host->text[host->len++] = bloom_lower(*p);
    }

    return 0;
}


static const char *
parse_name(bloom_host_t *host, const uint8_t *p, size_t len)
{
    int             n, high;
    size_t          dot;
    uint8_t         ascii[BLOOM_IDN_LABEL];
    const uint8_t  *end, *start;

    host->kind = BLOOM_HOST_NAME;
    host->len = 0;
    host->dots = 0;

    bloom_idn_begin_name();

    for (end = p + len; p < end; p += dot) {
        start = p;
        high = 0;
        dot = 0;

        for ( /* void */ ; p < end; p++) {

            if (*p == '.') {
                dot = 1;
                break;
            }

            if (*p < 0x80) {
                continue;
            }

            dot = bloom_idn_dot(p, (size_t) (end - p));

            if (dot != 0) {
                break;
            }

            high = 1;
        }

        n = high ? bloom_idn_label(ascii, start, (size_t) (p - start))
            : BLOOM_IDN_REFUSED;

        if (n == BLOOM_IDN_SPENT
            || (n == BLOOM_IDN_REFUSED
                ? append(host, start, (size_t) (p - start))
                : append(host, ascii, (size_t) n)) != 0)
        {
            return too_long;
        }

        if (dot != 0) {
            (void) append(host, (const uint8_t *) ".", 1);
        }
    }

    if (host->len != 0 && host->text[host->len - 1] == '.') {
        host->len--;
        host->dots--;
    }

    if (host->len == 0) {
        return no_host;
    }

    return ends_in_number(host) ? parse_ipv4(host) : NULL;
}


/* Returns NULL if p .. end is empty or a port, else why not. */
static const char *
check_port(const uint8_t *p, const uint8_t *end)
{
    if (p == end) {
        return NULL;
    }

    return *p == ':' && all_digits(p + 1, (size_t) (end - p - 1))
           ? NULL : bad_port;
}


static const char *parse_odd(bloom_host_t *host, const uint8_t *p,
    const uint8_t *end, uint8_t *copy);


/* Bytes that need parse_odd(): they surround a host, end it or begin an
 * escape. */
#define ODD  1

static const uint8_t  marks[256] = {
    ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD,
    ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD, ODD,
    ODD, ODD, ODD,
    ['#'] = ODD, ['%'] = ODD, ['/'] = ODD, ['?'] = ODD, ['@'] = ODD,
    ['\\'] = ODD
};


/* Reads a name or an address. */
static const char *
parse_decoded(bloom_host_t *host, const uint8_t *data, size_t len)
{
    size_t          i, colons;
    const char     *why;
    const uint8_t  *end, *stop;

    end = data + len;
    stop = end;
    colons = 0;

    for (i = 0; i < len; i++) {
        if (data[i] == ':') {
            stop = data + i;
            colons++;
        }
    }

    if (colons > 1) {

        if (data[0] != '[') {
            return parse_ipv6(host, data, len);
        }

        stop = memchr(data, ']', len);

        if (stop == NULL) {
            return bad_ipv6;
        }

        why = check_port(stop + 1, end);

        return why != NULL ? why
               : parse_ipv6(host, data + 1, (size_t) (stop - data - 1));
    }

    why = check_port(stop, end);

    return why != NULL ? why : parse_name(host, data, (size_t) (stop - data));
}


/* Reads a host whose characters are converted before it is read. */
static const char * __attribute__((noinline))
parse_converted(bloom_host_t *host, const uint8_t *data, size_t len)
{
    int      n;
    uint8_t  text[BLOOM_HOST_CONVERTED];

    n = bloom_host_convert(text, data, len);

    return n == -1 ? bad_byte : n == -2 ? too_long : n == 0 ? no_host
           : parse_decoded(host, text, (size_t) n);
}


/* Reads a host that is not plain; if `copy` is given, as a key of the form
 * host. */
static const char * __attribute__((noinline))
parse_any(bloom_host_t *host, const uint8_t *data, size_t len, uint8_t *copy)
{
    size_t   i;
    uint8_t  seen;

    host->scanned = 0;

    for (seen = 0, i = 0; i < len; i++) {
        seen |= marks[data[i]];
    }

    return copy != NULL && seen ? parse_odd(host, data, data + len, copy)
           : bloom_host_needs_conversion(data, len)
             ? parse_converted(host, data, len)
           : parse_decoded(host, data, len);
}


static const char *
parse(bloom_host_t *host, const uint8_t *data, size_t len, uint8_t *copy)
{
    const uint8_t  *end, *stop;

    if (len == 0) {
        return no_host;
    }

    end = data + len;
    stop = bloom_host_scan(host, data, end);

    if (stop == end || (stop != NULL && check_port(stop, end) == NULL)) {
        return NULL;
    }

    return parse_any(host, data, len, copy);
}


/* Copies a host without what surrounds it, decodes it, and reads it. */
static const char *
parse_odd(bloom_host_t *host, const uint8_t *p, const uint8_t *end,
    uint8_t *copy)
{
    int        bracket;
    uint8_t   *out;
    unsigned   colons;

    while (p < end && *p <= ' ') {
        p++;
    }

    while (p < end && end[-1] <= ' ') {
        end--;
    }

    out = copy;
    colons = 0;
    bracket = 0;

    for ( /* void */ ; p < end; p++) {

        switch (*p) {

        case '/': case '\\': case '?': case '#':
            return bad_byte;

        case '\t': case '\r': case '\n':
            break;

        case '@':
            out = copy;
            colons = 0;
            bracket = 0;
            break;

        default:
            colons += *p == ':';
            bracket |= *p == '[';
            *out++ = *p;
        }
    }

    p = copy;

    if (colons < 2 || bracket) {

        /* not an IPv6 address, whose zone may look like an escape unless it is
         * that of a URL */

        out = bloom_unescape(copy, out);

        for (p = out; p > copy && p[-1] != '@'; p--) {
            /* void */
        }
    }

    return parse(host, p, (size_t) (out - p), NULL);
}


const char *
bloom_host_parse(bloom_host_t *host, const uint8_t *data, size_t len)
{
    return parse(host, data, len, NULL);
}


const char *
bloom_host_parse_key(bloom_host_t *host, const uint8_t *data, size_t len,
    uint8_t *copy)
{
    return parse(host, data, len, copy);
}


/* Returns 1 for a byte that has a meaning in or after the host of a URL. */
static int
is_mark(uint8_t c)
{
    return c == '/' || c == '\\' || c == '?' || c == '@' || c == ':' || c == '['
           || c == ']';
}


uint8_t *
bloom_host_write(uint8_t *out, const bloom_host_t *host, size_t *offset,
    unsigned parents)
{
    size_t    i;
    uint8_t   c, *start;
    unsigned  n;

    if (host->kind == BLOOM_HOST_IPV6) {
        *out++ = '[';
        out = (uint8_t *) memcpy(out, host->text, host->len) + host->len;
        *out++ = ']';
        return out;
    }

    start = out;
    n = 1;

    for (i = 0; i < host->len; i++) {

        /* escapes before a parent domain have moved it */

        if (n < parents && offset[n] == i) {
            offset[n++] = (size_t) (out - start);
        }

        c = host->text[i];
        out = is_mark(c) ? bloom_put_escape(out, c)
              : bloom_put_escaped(out, c);
    }

    return out;
}


int
bloom_host_is_plain(const bloom_host_t *host)
{
    size_t  i;

    if (host->scanned || host->kind != BLOOM_HOST_NAME) {
        return 1;
    }

    for (i = 0; i < host->len; i++) {
        if (plain[host->text[i]] == '\0') {
            return 0;
        }
    }

    return 1;
}


int
bloom_host_is_forbidden(const uint8_t *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {

        switch (text[i]) {

        case '%':                        /* any other forbidden byte */
        case '<':
        case '>':
        case '^':
        case '|':
            return 1;
        }
    }

    return 0;
}


unsigned
bloom_host_parents(size_t *offset, const bloom_host_t *host, unsigned labels)
{
    unsigned  i, n;

    offset[0] = 0;
    n = 1;

    if (host->kind != BLOOM_HOST_NAME) {
        return n;
    }

    /* after dot i, there are dots - i labels */

    i = host->dots > labels ? host->dots - labels : 0;

    for ( /* void */ ; i + 1 < host->dots && n < labels; i++) {
        offset[n++] = (size_t) host->dot[i] + 1;
    }

    return n;
}
