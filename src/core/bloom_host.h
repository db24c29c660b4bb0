/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A host is a name, an IPv4 or an IPv6 address, and each is written in one way
 * only.
 *
 *     name   lower case; no dot at either end, no two dots in a row; labels
 *            with bytes above 0x7f in punycode, where they have one; bytes
 *            that no host has are escaped when it is written
 *     IPv4   four decimal numbers, whatever the address was written as: parts
 *            in decimal, octal (0...) or hexadecimal (0x...), one to four of
 *            them, the last one filling the rest (the URL Standard's "IPv4
 *            parser"); and where a name ends in a number, but is no address,
 *            there is no host
 *     IPv6   as RFC 5952 has it, without brackets and zone; the addresses that
 *            stand for an IPv4 address, ::ffff:0:0/96 (mapped) and
 *            64:ff9b::/96 (NAT64), are that one
 *
 * docs/key-forms.md says why.
 */

#ifndef BLOOM_HOST_H
#define BLOOM_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_HOST_MAX          253      /* bytes, as DNS has it */
#define BLOOM_HOST_EXPRESSIONS  30

/* Memory for a host that is written: each byte may become an escape. */
#define BLOOM_HOST_ROOM         (3 * BLOOM_HOST_MAX)

typedef enum {
    BLOOM_HOST_NAME = 0,
    BLOOM_HOST_IPV4,
    BLOOM_HOST_IPV6
} bloom_host_e;

typedef struct {
    bloom_host_e  kind;
    int           scanned;               /* by bloom_host_scan() */
    size_t        len;                   /* 1 to BLOOM_HOST_MAX */
    unsigned      dots;                  /* of a name, and where they are */
    uint8_t       dot[BLOOM_HOST_MAX / 2];
    uint8_t       text[BLOOM_HOST_MAX];
} bloom_host_t;


/*
 * Reads a host with or without a port, which is dropped.  NULL, or why there
 * is no host: a phrase to follow the key ("has no host").  An IPv6 address may
 * be in brackets; without them it has no port.
 *
 * The text of a name may have any bytes, for bloom_host_write() to escape or
 * for the caller to refuse: a label with bytes that no host has leaves the
 * labels behind it what they are.
 *
 * Time is linear in `len`, and libidn2 is given at most BLOOM_IDN_MAX bytes.
 */
const char *bloom_host_parse(bloom_host_t *host, const uint8_t *data,
    size_t len);

/*
 * Reads a host as bloom_host_parse() does, from a key of the form host, which
 * may look as a host does in a URL: without spaces and control characters
 * around it, tabs and line ends in it, and userinfo; and unescaped, unless it
 * is an IPv6 address.  What ends a host in a URL cannot be in it.  `copy` has
 * `len` bytes.
 */
const char *bloom_host_parse_key(bloom_host_t *host, const uint8_t *data,
    size_t len, uint8_t *copy);

/*
 * The short way for most names: reads one from `p` on, up to `end` or the first
 * byte that no DNS name has, and returns where it stopped.  NULL if it takes
 * more than lower case to have the name in its one way of writing, or if there
 * is none; bloom_host_parse() knows.  It goes this way itself.
 */
const uint8_t *bloom_host_scan(bloom_host_t *host, const uint8_t *p,
    const uint8_t *end);

/*
 * Writes a host as URLs have it, with what no host has as escapes and an IPv6
 * address in brackets, to `out`, which has BLOOM_HOST_ROOM bytes.  Returns
 * where it ends.  The offsets of its parents, which bloom_host_parents() has
 * found, become those in what is written.
 */
uint8_t *bloom_host_write(uint8_t *out, const bloom_host_t *host,
    size_t *offset, unsigned parents);

/*
 * Whether DNS could have it: letters, digits, "-", "_" and dots alone, or an
 * address.
 */
int bloom_host_is_plain(const bloom_host_t *host);

/*
 * Finds where the host and its parent domains begin, as offsets into its text:
 * itself, then the parents, the longest first, of at most `labels` labels and
 * at least two.  Returns their number, 1 to `labels`.  An address has no
 * parents.
 *
 * The top-level domain is no parent: a false positive there would be one for
 * all names below it.
 */
unsigned bloom_host_parents(size_t *offset, const bloom_host_t *host,
    unsigned labels);


#pragma GCC visibility pop

#endif /* BLOOM_HOST_H */
