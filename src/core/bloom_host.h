/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions bring a host, which is a name, an IPv4 address or an IPv6
 * address, into its one canonical form.
 *
 *     name   Lower case, without a dot at either end or two dots in a row.  A
 *            label with bytes above 0x7f becomes punycode if it can be
 *            converted.  Chromium decodes escapes that this gives, as in
 *            "ev" U+FF05 "69l".  bloom_host_write() escapes bytes that hosts
 *            cannot have
 *     IPv4   Four decimal numbers with dots.  The input may be any form that
 *            the URL Standard's "IPv4 parser" accepts: one to four parts in
 *            decimal, octal (0...) or hexadecimal (0x...), of which the last
 *            one fills the remaining bytes.  A name whose last label is a
 *            number is read as an address, and is invalid if that fails
 *     IPv6   The text form of RFC 5952 without brackets and zone.  An address
 *            in ::ffff:0:0/96 (mapped) or 64:ff9b::/96 (NAT64) becomes the
 *            IPv4 address in its last 32 bits
 *
 * docs/key-forms.md gives the reasons.
 */

#ifndef BLOOM_HOST_H
#define BLOOM_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_HOST_MAX          253      /* bytes, the limit of DNS */
#define BLOOM_HOST_EXPRESSIONS  30

/* The output of bloom_host_write(): each byte may become an escape. */
#define BLOOM_HOST_ROOM         (3 * BLOOM_HOST_MAX)

typedef enum {
    BLOOM_HOST_NAME = 0,
    BLOOM_HOST_IPV4,
    BLOOM_HOST_IPV6
} bloom_host_e;

/* A host in canonical form, before it is escaped or put in brackets. */
typedef struct {
    bloom_host_e  kind;
    int           scanned;               /* bloom_host_scan() has read it */
    size_t        len;                   /* 1 to BLOOM_HOST_MAX */
    unsigned      dots;                  /* in a name, and their offsets */
    uint8_t       dot[BLOOM_HOST_MAX / 2];
    uint8_t       text[BLOOM_HOST_MAX];
} bloom_host_t;


/*
 * Reads a host and drops its port, if there is one.  An IPv6 address may be in
 * brackets; without brackets it cannot have a port.  Returns NULL if the key is
 * valid, else the reason why it is not: a phrase to follow the key, such as
 * "has no host".
 *
 * The text of a name may contain bytes that hosts cannot have.  Such a name is
 * not invalid here, because its parent domains may be listed.  The caller
 * escapes the bytes with bloom_host_write(), or refuses the host.
 *
 * Time is linear in `len`, and libidn2 gets at most BLOOM_IDN_MAX bytes.  A
 * name that needs more is invalid: it is longer than any that DNS resolves.
 */
const char *bloom_host_parse(bloom_host_t *host, const uint8_t *data,
    size_t len);

/*
 * Reads a key of the form host.  It first removes what a URL allows in and
 * around a host, and then does what bloom_host_parse() does.  It removes
 *
 *     spaces and control characters at both ends of the key
 *     tabs and line ends anywhere
 *     userinfo before the host
 *
 * Escapes are decoded, except in an IPv6 address.  A key with "/", "\", "?" or
 * "#" is invalid.  `copy` has `len` bytes.
 */
const char *bloom_host_parse_key(bloom_host_t *host, const uint8_t *data,
    size_t len, uint8_t *copy);

/*
 * Reads a plain name, the common case, up to `end` or the first byte that no
 * DNS name has.  Returns where it stopped, or NULL if the name is empty or
 * needs more than conversion to lower case.  On NULL, call bloom_host_parse(),
 * which tries this function first itself.
 */
const uint8_t *bloom_host_scan(bloom_host_t *host, const uint8_t *p,
    const uint8_t *end);

/*
 * Writes a host as it appears in a URL to `out`, which has BLOOM_HOST_ROOM
 * bytes: bytes that hosts cannot have become escapes, and an IPv6 address gets
 * brackets.  Returns the end of the output.  The offsets that
 * bloom_host_parents() returned are changed to offsets into the output.
 */
uint8_t *bloom_host_write(uint8_t *out, const bloom_host_t *host,
    size_t *offset, unsigned parents);

/*
 * Returns 1 if the host is an address, or a name of letters, digits, "-", "_"
 * and dots only; else 0.
 */
int bloom_host_is_plain(const bloom_host_t *host);

/*
 * Returns 1 if a browser refuses the host because of a byte in it: one of the
 * URL Standard's "forbidden domain code points", or in a label that it cannot
 * convert to ASCII; else 0.  The host is written as bloom_host_write() writes
 * it, `len` bytes at `text`.
 */
int bloom_host_is_forbidden(const uint8_t *text, size_t len);

/*
 * Finds the offsets in the text at which the host and its parent domains begin.
 * The host itself comes first, then its parents of two to `labels` labels, the
 * longest first.  Returns the number of offsets, 1 to `labels`.  An address has
 * no parents.
 *
 * A top-level domain does not count as a parent: a false positive for it would
 * hit every name below it.
 */
unsigned bloom_host_parents(size_t *offset, const bloom_host_t *host,
    unsigned labels);


#pragma GCC visibility pop

#endif /* BLOOM_HOST_H */
