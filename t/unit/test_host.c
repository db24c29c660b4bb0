/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests read names, IPv4 addresses in every legal spelling, and IPv6
 * addresses.
 *
 * The C library's inet_aton() and inet_ntop() are the reference where they
 * agree with the URL Standard.
 */

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "bloom_host.h"


static const char *
parse(bloom_host_t *host, const void *data, size_t len)
{
    uint8_t     *copy;
    const char  *why;

    copy = unit_copy(data, len);
    memset(host, 0xa5, sizeof(*host));

    why = bloom_host_parse(host, copy, len);

    free(copy);

    return why;
}


/* Writes `n` copies of a piece. */
static void
repeat(char *text, const char *piece, size_t n)
{
    size_t  len;

    for (len = strlen(piece); n > 0; n--, text += len) {
        memcpy(text, piece, len);
    }
}


typedef struct {
    const char  *in;
    const char  *out;            /* the name, "ipv4 ADDRESS", "ipv6 ADDRESS", or
                                    why it is invalid */
} host_case_t;


static void
check(const host_case_t *cases, size_t n)
{
    char          out[BLOOM_HOST_MAX + 10];
    size_t        i;
    const char   *why;
    bloom_host_t  host;

    for (i = 0; i < n; i++) {
        why = parse(&host, cases[i].in, strlen(cases[i].in));

        if (why == NULL) {
            sprintf(out, "%s%.*s", host.kind == BLOOM_HOST_IPV4 ? "ipv4 "
                                   : host.kind == BLOOM_HOST_IPV6 ? "ipv6 "
                                   : "", (int) host.len, host.text);
        }

        if (strcmp(why ? why : out, cases[i].out) != 0) {
            fail_msg("\"%s\": %s, and not: %s", cases[i].in, why ? why : out,
                     cases[i].out);
        }
    }
}


TEST(names_are_normalised_or_refused)
{
    static const host_case_t  cases[] = {
        { "example.com", "example.com" },
        { "EXAMPLE.Com", "example.com" },
        { "example.com.", "example.com" },
        { "..a...b..", "a.b" },
        { "example.com:8080", "example.com" },
        { "example.com:", "example.com" },
        { "example.com.:99999999", "example.com" },
        { "localhost", "localhost" },
        { "_dmarc.a-b.example", "_dmarc.a-b.example" },
        { "1.2.3.4.example", "1.2.3.4.example" },
        { "a.0xg", "a.0xg" },
        { "a.x0", "a.x0" },
        { "a b%c#d", "a b%c#d" },
        { "A/b\\?@.c", "a/b\\?@.c" },
        { "[a].b", "[a].b" },
        { "[]", "[]" },
        { "[1.2.3.4]:80", "[1.2.3.4]" },

        { "", "has no host" },
        { ".", "has no host" },
        { "....", "has no host" },
        { ":80", "has no host" },
        { ".:80", "has no host" },
        { "a:b", "has a port that is not a number" },
        { "a:8o", "has a port that is not a number" },
    };

    check(cases, array_len(cases));
}


#define A55  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


TEST(internationalised_names_become_ascii)
{
    static const host_case_t  cases[] = {
        { "b\xc3\xbc" "cher.example", "xn--bcher-kva.example" },
        { "B\xc3\x9c" "CHER.Example", "xn--bcher-kva.example" },
        { "XN--BCHER-KVA.example", "xn--bcher-kva.example" },
        { "fa\xc3\x9f.de", "xn--fa-hia.de" },
        { "\xe4\xb8\xad\xe5\x9b\xbd", "xn--fiqs8s" },

        /* IDNA2008 does not allow symbols, but browsers do */
        { "\xe2\x98\x83.net", "xn--n3h.net" },

        /* full-width letters, a soft hyphen, an ideographic full stop */
        { "\xef\xbd\x85vil.com", "evil.com" },
        { "e\xc2\xadvil.com", "evil.com" },
        { "evil\xe3\x80\x82" "com", "evil.com" },
        { "evil.com\xe3\x80\x82", "evil.com" },
        { "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.1", "ipv4 127.0.0.1" },

        /* a label that cannot be converted stays, the others are converted */
        { "bad\x80.\xc3\xa9.com", "bad\x80.xn--9ca.com" },

        /* a full-width solidus becomes a solidus, which no name has */
        { "a\xef\xbc\x8f" "b.com", "a\xef\xbc\x8f" "b.com" },

        /* dots separate labels, whatever the labels are */
        { "ab--c\xe3\x80\x82" "evil.com", "ab--c.evil.com" },
        { "-a\xef\xbc\x8e" "a-\xef\xbd\xa1" "evil.com", "-a.a-.evil.com" },
        { "\xff\xe3\x80\x82" "e\xe3\x80.com", "\xff.e\xe3\x80.com" },
        { "\xe3\x80\x82.a\xe3\x80\x82.b", "a.b" },

        /* hyphens, as browsers allow them, and characters mapped to one */
        { "ab--\xc3\xbc", "xn--ab---3ra" },
        { "AB\xef\xbc\x8d\xef\xb9\xa3\xc3\x9c", "xn--ab---3ra" },
        { "-\xc3\xbc-", "xn-----xka" },
        { "a-\xcc\x88", "xn--a--vub" },
        { "\xef\xbd\x98n\xef\xbc\x8d-bcher-kva", "xn--bcher-kva" },

        /* other ASCII characters that browsers accept */
        { "!\xc3\xbc", "xn--!-eha" },
        { "a\xef\xbc\x81" "b", "a!b" },

        /* Chromium decodes what has become an escape */

        { "ev\xef\xbc\x85" "69l.com", "evil.com" },
        { "\xef\xb9\xaa\xef\xbc\x96\xf0\x9d\x9f\x97vil.com", "ivil.com" },
        { "\xc3\x9c.evil\xef\xbc\x85" "2Ec\xc2\xadom", "xn--tda.evil.com" },
        { "127.1.\xef\xbc\x85" "31", "ipv4 127.1.0.1" },
        { "\xc2\xad\xef\xbc\x85" "zz", "%zz" },
        { "a\xef\xbc\x85" "2Fb.com", "has a byte that a host cannot have" },
        { "a\xef\xbc\x85" "e9.com", "has a byte that a host cannot have" },
        { "\xe3\x88\x80", "xn--()-dmk" },

        /* characters that IDNA2008 refuses, next to deviation characters */
        { "fa\xc3\x9f\xc3\xa9\xe2\x98\x83", "xn--fa-hia4b4405a" },
        { "\xe2\x98\x83\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7",
          "xn--11b2ezcw70k6zg" },
        { "a\xe2\x80\x8d" "b", "ab" },
        { "\xe2\x98\x83\xe2\x80\x8c", "xn--n3h" },

        /* U+10FFFF, which no version of Unicode will assign, stays */
        { "A\xf4\x8f\xbf\xbf", "xn--a-h023p" },

        /* characters that an older libidn2 ignores, maps or composes in another
         * way, alone and beside others that it has to map */
        { "\xe2\x81\xa1" "e\xe1\xa0\x8e" "vil\xe2\x81\xaa", "evil" },
        { "\xf0\x9c\xb3\x9avil", "evil" },
        { "\xf0\x9e\x80\xb0", "xn--80a" },
        { "\xd0\x90\xf0\x9e\x80\xb0", "xn--80aa" },
        { "\xc3\x9c\xea\x9f\x9a", "xn--tda2556f" },
        { "\xf0\x96\xb5\xa7\xf0\x96\xb5\xa8", "xn--9i0fb" },
        { "\xe1\xba\x9e", "xn--zca" },

        /* what no host has, unless it composes */
        { "a\xef\xb7\xba.b", "a\xef\xb7\xba.b" },
        { "a\xef\xb9\xa4.b", "a\xef\xb9\xa4.b" },
        { "a\xef\xb9\xa4\xcc\xb8" "b", "xn--ab-tjv" },

        /* a label that would be longer than DNS allows stays */
        { "\xc3\xbc" A55 ".b", "xn--" A55 "-oxf.b" },
        { "\xc3\xbc" A55 "a.b", "\xc3\xbc" A55 "a.b" },

        { "\xc2\xad", "has no host" },
        { "\xe3\x80\x82", "has no host" },
    };

    check(cases, array_len(cases));
}


TEST(ipv4_addresses_are_normalised_or_refused)
{
    static const host_case_t  cases[] = {
        { "1.2.3.4", "ipv4 1.2.3.4" },
        { "1.2.3.4.", "ipv4 1.2.3.4" },
        { "1.2.3.4:80", "ipv4 1.2.3.4" },
        { "3279880203", "ipv4 195.127.0.11" },
        { "0xc37f000b", "ipv4 195.127.0.11" },
        { "0XC37F000B", "ipv4 195.127.0.11" },
        { "030337600013", "ipv4 195.127.0.11" },
        { "195.0x7f.0.013", "ipv4 195.127.0.11" },
        { "195.8323083", "ipv4 195.127.0.11" },
        { "195.127.11", "ipv4 195.127.0.11" },
        { "127.1", "ipv4 127.0.0.1" },
        { "0", "ipv4 0.0.0.0" },
        { "0x", "ipv4 0.0.0.0" },
        { "4294967295", "ipv4 255.255.255.255" },
        { "00000000000000000001", "ipv4 0.0.0.1" },
        { "12.0x12.01234", "ipv4 12.18.2.156" },

        { "4294967296", "has an invalid IPv4 address" },
        { "99999999999999999999", "has an invalid IPv4 address" },
        { "1.2.3.256", "has an invalid IPv4 address" },
        { "1.2.65536", "has an invalid IPv4 address" },
        { "1.16777216", "has an invalid IPv4 address" },
        { "256.2.3.4", "has an invalid IPv4 address" },
        { "1.2.3.4.5", "has an invalid IPv4 address" },
        { "1.2.3.08", "has an invalid IPv4 address" },
        { "1.2.3.0x", "ipv4 1.2.3.0" },
        { "a.1", "has an invalid IPv4 address" },
        { "a.0x1f", "has an invalid IPv4 address" },
    };

    check(cases, array_len(cases));
}


/* Random addresses in random spellings are read as by inet_aton(). */
TEST(random_ipv4_spellings_match_inet_aton)
{
    char            text[80], expected[INET_ADDRSTRLEN];
    int             i, len;
    uint32_t        address, part;
    uint64_t        seed;
    unsigned        parts, p, bits;
    bloom_host_t    host;
    struct in_addr  in;

    static const char *const  format[] = { "%u", "0%o", "0x%x", "0X%X",
                                           "0000%o" };

    seed = 4;

    for (i = 0; i < 20000; i++) {
        address = (uint32_t) unit_random(&seed);
        parts = 1 + (unsigned) (unit_random(&seed) % 4);
        bits = 32;
        len = 0;

        for (p = 1; p <= parts; p++) {
            bits -= p == parts ? bits : 8;
            part = (p == parts && p != 1)
                   ? address & ((1ull << (32 - 8 * (p - 1))) - 1)
                   : parts == 1 ? address : address >> bits & 0xff;

            len += sprintf(text + len, p == 1 ? "" : ".");
            len += sprintf(text + len, format[unit_random(&seed) % 5], part);
        }

        assert_int_equal(inet_aton(text, &in), 1);
        assert_int_equal(ntohl(in.s_addr), address);
        inet_ntop(AF_INET, &in, expected, sizeof(expected));

        assert_null(parse(&host, text, (size_t) len));
        assert_int_equal(host.kind, BLOOM_HOST_IPV4);
        assert_int_equal(host.len, strlen(expected));
        assert_memory_equal(host.text, expected, host.len);
    }
}


TEST(ipv6_addresses_are_normalised_or_refused)
{
    static const host_case_t  cases[] = {
        { "[::1]", "ipv6 ::1" },
        { "[::1]:8080", "ipv6 ::1" },
        { "[::\xe2\x80\x8b" "1]:80", "ipv6 ::1" },
        { "\xc2\xad[\xef\xbc\x9a:\xef\xbc\x91]", "ipv6 ::1" },
        { "[1::\xef\xbc\x85" "32]", "ipv6 1::2" },
        { "::1", "ipv6 ::1" },
        { "::", "ipv6 ::" },
        { "[2001:0DB8:0:0:0:0:0:1]", "ipv6 2001:db8::1" },
        { "[2001:db8:0:1:1:1:1:1]", "ipv6 2001:db8:0:1:1:1:1:1" },
        { "[2001:0:0:1:0:0:0:1]", "ipv6 2001:0:0:1::1" },
        { "[2001:db8:0:0:1:0:0:1]", "ipv6 2001:db8::1:0:0:1" },
        { "[1:2:3:4:5:6:7::]", "ipv6 1:2:3:4:5:6:7:0" },
        { "[fe80::1%25eth0]", "ipv6 fe80::1" },
        { "fe80::1%eth0", "ipv6 fe80::1" },
        { "[::192.9.5.5]", "ipv6 ::c009:505" },

        /* IPv6 addresses that contain an IPv4 address */
        { "[::ffff:1.2.3.4]", "ipv4 1.2.3.4" },
        { "[::ffff:0300.0.2.01]", "ipv4 192.0.2.1" },
        { "[::0X1.0x.000000.2]", "ipv6 ::100:2" },
        { "[::ffff:102:304]", "ipv4 1.2.3.4" },
        { "[64:ff9b::1.2.3.4]", "ipv4 1.2.3.4" },

        { "[:]:", "has an invalid IPv6 address" },
        { "[::", "has an invalid IPv6 address" },
        { "[::1", "has an invalid IPv6 address" },
        { "[1:2:3]", "has an invalid IPv6 address" },
        { "[1::2::3]", "has an invalid IPv6 address" },
        { "[:1::2]", "has an invalid IPv6 address" },
        { "[1::2:]", "has an invalid IPv6 address" },
        { "[12345::]", "has an invalid IPv6 address" },
        { "[::g]", "has an invalid IPv6 address" },
        { "[::1.2.3]", "has an invalid IPv6 address" },
        { "[::1.2.3.256]", "has an invalid IPv6 address" },
        { "[::1.2.0x103]", "has an invalid IPv6 address" },
        { "[::08.2.3.4]", "has an invalid IPv6 address" },
        { "[::1.2.3.4:5]", "has an invalid IPv6 address" },
        { "[::1.2.3.4.]", "has an invalid IPv6 address" },
        { "[1:2:3:4:5:6:7:1.2.3.4]", "has an invalid IPv6 address" },
        { "[1:2:3:4:5:6:7:8:9]", "has an invalid IPv6 address" },
        { "[1:2:3:4::5:6:7:8]", "has an invalid IPv6 address" },
        { "[::1]x", "has a port that is not a number" },
        { "[::1]:x", "has a port that is not a number" },
        { "a:b:80", "has an invalid IPv6 address" },
    };

    check(cases, array_len(cases));
}


/* Random addresses with many zeros, written in full. */
TEST(random_ipv6_addresses_match_inet_ntop)
{
    char             text[80], expected[INET6_ADDRSTRLEN];
    int              i, g, len;
    uint64_t         seed;
    uint16_t         group[8];
    bloom_host_t     host;
    struct in6_addr  in;

    seed = 6;

    for (i = 0; i < 20000; i++) {

        for (g = 0, len = 0; g < 8; g++) {
            group[g] = unit_random(&seed) % 2 ? 0
                       : (uint16_t) (1 + unit_random(&seed) % 0xffff);
            len += sprintf(text + len, unit_random(&seed) % 2 ? "%s%04X"
                                                              : "%s%x",
                           g ? ":" : "", group[g]);
        }

        /* inet_ntop() shows IPv4 in some addresses; RFC 5952 does not */

        if (memcmp(group, (uint16_t [6]) { 0 }, 10) == 0) {
            continue;
        }

        assert_int_equal(inet_pton(AF_INET6, text, &in), 1);
        inet_ntop(AF_INET6, &in, expected, sizeof(expected));

        assert_null(parse(&host, text, (size_t) len));
        assert_int_equal(host.kind, BLOOM_HOST_IPV6);
        assert_int_equal(host.len, strlen(expected));
        assert_memory_equal(host.text, expected, host.len);

        assert_null(parse(&host, expected, strlen(expected)));
        assert_memory_equal(host.text, expected, host.len);
    }
}


TEST(hosts_longer_than_253_bytes_are_refused)
{
    char          text[70000];
    size_t        i;
    bloom_host_t  host;

    static const char  too_long[] = "has a host name longer than 253 bytes";

    /* 253 bytes are a name, also with dots around it; 254 are not */

    memset(text, 'a', sizeof(text));

    for (i = 63; i < 253; i += 64) {
        text[i] = '.';
    }

    assert_null(parse(&host, text, 253));
    assert_int_equal(host.len, 253);
    assert_memory_equal(host.text, text, 253);

    memcpy(text + 253, "...", 3);
    assert_null(parse(&host, text, 256));
    assert_int_equal(host.len, 253);

    memcpy(text + 253, "\xe3\x80\x82", 3);
    assert_null(parse(&host, text + 190, 66));
    assert_int_equal(host.len, 63);

    memcpy(text + 253, ".b", 2);
    assert_string_equal(parse(&host, text, 255), too_long);

    text[253] = 'a';
    assert_string_equal(parse(&host, text, 254), too_long);
    assert_string_equal(parse(&host, text, sizeof(text)), too_long);

    /* libidn2 gets a bounded number of bytes, even if all are ignored */

    repeat(text, "\xc2\xad", sizeof(text) / 2);
    memcpy(text + 69000, "evil", 4);
    assert_null(parse(&host, text, sizeof(text)));
    assert_int_equal(host.len, 4);
    assert_memory_equal(host.text, "evil", 4);

    repeat(text, "\xc2\xad.", sizeof(text) / 3);
    assert_string_equal(parse(&host, text, sizeof(text) - 1), "has no host");

    repeat(text, "\xef\xbd\x85", sizeof(text) / 3);
    assert_string_equal(parse(&host, text, sizeof(text)), too_long);

    /* a DNS name can have 127 labels, all of which may need conversion */

    repeat(text, "\xef\xbd\x85.", 127);
    assert_null(parse(&host, text, 4 * 127 - 1));
    assert_int_equal(host.len, 253);
    assert_int_equal(host.dots, 126);

    repeat(text, "\xef\xbd\x85-", 32);
    assert_null(parse(&host, text, 4 * 31));
    assert_int_equal(host.len, 62);
    assert_null(parse(&host, text, 4 * 32));
    assert_int_equal(host.len, 4 * 32);

    /* a zero byte */

    assert_null(parse(&host, "a\0b", 3));
    assert_int_equal(host.len, 3);
    assert_memory_equal(host.text, "a\0b", 3);
    assert_null(parse(&host, "\xc3\xbc\0", 3));
    assert_int_equal(host.len, 3);
}


/* Tests bloom_host_parents() of a name, read by the fast and the slow path. */
static unsigned
begins(size_t *offset, const char *name, unsigned labels)
{
    char          longer[BLOOM_HOST_MAX + 2];
    size_t        other[BLOOM_HOST_EXPRESSIONS];
    unsigned      n;
    bloom_host_t  host;

    sprintf(longer, "%s.", name);
    assert_null(parse(&host, longer, strlen(longer)));
    assert_false(host.scanned);
    n = bloom_host_parents(other, &host, labels);

    assert_null(parse(&host, name, strlen(name)));
    assert_true(host.scanned);
    assert_int_equal(bloom_host_parents(offset, &host, labels), n);
    assert_memory_equal(offset, other, n * sizeof(*other));

    return n;
}


TEST(parent_domains_begin_at_the_right_offsets)
{
    char    name[2 * 40 + 1];
    size_t  i, offset[BLOOM_HOST_EXPRESSIONS];

    static const struct {
        const char  *name;
        unsigned     n;
        size_t       offset[5];
    } cases[] = {
        { "com", 1, { 0 } },
        { "a.com", 1, { 0 } },
        { "a.b.c.com", 3, { 0, 2, 4 } },
        { "a.b.c.d.e.f.g", 5, { 0, 4, 6, 8, 10 } },
    };

    for (i = 0; i < array_len(cases); i++) {
        assert_int_equal(begins(offset, cases[i].name, 5), cases[i].n);
        assert_memory_equal(offset, cases[i].offset,
                            cases[i].n * sizeof(*offset));
    }

    /* the shortest parents of a name with very many */

    repeat(name, "a.", 40);
    name[2 * 40 - 1] = '\0';

    assert_int_equal(begins(offset, name, BLOOM_HOST_EXPRESSIONS),
                     BLOOM_HOST_EXPRESSIONS);
    assert_int_equal(offset[0], 0);
    assert_int_equal(offset[1], 2 * 10);
    assert_int_equal(offset[29], 2 * 38);
}


/* Tests where the fast path ends: at this byte, or not at all if the slow path
 * is needed. */
TEST(a_short_scan_ends_at_the_right_byte)
{
    size_t          i;
    uint8_t         name[BLOOM_HOST_MAX + 2];
    bloom_host_t    host;
    const uint8_t  *in, *stop;

    static const struct {
        const char  *in;
        int          stop;
        const char  *out;
    } cases[] = {
        { "A-b_9.Com", 9, "a-b_9.com" },
        { "a.com:80", 5, "a.com" },
        { "a.com/b.com", 5, "a.com" },
        { "a.com b", 5, "a.com" },
        { "a.com\x80", 5, "a.com" },
        { "", -1, NULL },
        { "/a", -1, NULL },
        { ".a", -1, NULL },
        { "a..b", -1, NULL },
        { "a.b./", -1, NULL },
        { "1.2.3.4", -1, NULL },
        { "a.0x1", -1, NULL },
    };

    for (i = 0; i < array_len(cases); i++) {
        in = (const uint8_t *) cases[i].in;
        stop = bloom_host_scan(&host, in, in + strlen(cases[i].in));

        if (cases[i].stop == -1) {
            assert_null(stop);
            continue;
        }

        assert_ptr_equal(stop, in + cases[i].stop);
        assert_int_equal(host.kind, BLOOM_HOST_NAME);
        assert_int_equal(host.len, strlen(cases[i].out));
        assert_memory_equal(host.text, cases[i].out, host.len);
    }

    memset(name, 'a', sizeof(name));
    name[BLOOM_HOST_MAX + 1] = ':';

    assert_null(bloom_host_scan(&host, name, name + sizeof(name)));
    assert_ptr_equal(bloom_host_scan(&host, name + 1, name + sizeof(name)),
                     name + sizeof(name) - 1);
}


/* Returns a name as it is written, and its parents. */
TEST(odd_bytes_are_escaped_and_move_the_parents)
{
    size_t        offset[BLOOM_HOST_EXPRESSIONS];
    uint8_t       out[BLOOM_HOST_ROOM], *end;
    unsigned      n;
    bloom_host_t  host;

    assert_null(parse(&host, "a b.[\x80%/\\?@].c#.evil.com", 24));

    n = bloom_host_parents(offset, &host, BLOOM_HOST_EXPRESSIONS);
    assert_int_equal(n, 4);

    end = bloom_host_write(out, &host, offset, n);
    *end = '\0';

    assert_string_equal(out, "a%20b.%5B%80%25%2F%5C%3F%40%5D.c%23.evil.com");
    assert_string_equal(out + offset[1],
                        "%5B%80%25%2F%5C%3F%40%5D.c%23.evil.com");
    assert_string_equal(out + offset[2], "c%23.evil.com");
    assert_string_equal(out + offset[3], "evil.com");

    memset(host.text, 0xff, sizeof(host.text));
    host.len = BLOOM_HOST_MAX;
    host.dots = 0;
    assert_ptr_equal(bloom_host_write(out, &host, offset, 1),
                     out + BLOOM_HOST_ROOM);

    assert_null(parse(&host, "[::1]:80", 8));
    end = bloom_host_write(out, &host, offset, 1);
    assert_int_equal(end - out, 5);
    assert_memory_equal(out, "[::1]", 5);
}


TEST(plain_hosts_are_recognised)
{
    size_t        i;
    bloom_host_t  host;

    static const char *const  yes[] = { "a-b_c.d9.com", "::1", "1.2.3.4" };
    static const char *const  no[] = { "a b", "a%20b", "a#b", "a*b",
                                       "a\x80", "a\x7f", "a!" };

    for (i = 0; i < array_len(yes); i++) {
        assert_null(parse(&host, yes[i], strlen(yes[i])));
        assert_true(bloom_host_is_plain(&host));
    }

    for (i = 0; i < array_len(no); i++) {
        assert_null(parse(&host, no[i], strlen(no[i])));
        assert_false(bloom_host_is_plain(&host));
    }
}
