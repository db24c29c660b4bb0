/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions convert a host's characters before the host is read, as
 * Chromium does.  The URL Standard looks for an IPv6 address first, and refuses
 * escapes that conversion gives, but Chromium fetches
 *
 *     [2001:db8::U+FF11]       2001:db8::1
 *     ev U+FF05 69l.example    evil.example
 */

#ifndef BLOOM_HOST_CONVERT_H
#define BLOOM_HOST_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* The most bytes of a host whose characters are converted one by one.  A name
 * of DNS has at most 239 characters besides its dots, each of which may have
 * been composed from four characters of four bytes. */
#define BLOOM_HOST_CONVERTED  4096


/* Returns 1 if a host has "%" in another character than ASCII's, or "[" and
 * characters that are not ASCII. */
int bloom_host_needs_conversion(const uint8_t *p, size_t len);

/*
 * Replaces each character that stands for ASCII characters by these, drops
 * those that stand for none, and unescapes the result.  Returns its length; -1
 * for what Chromium refuses and would be read otherwise a second time: escapes
 * of characters that are not ASCII or end a host, and a host that is not UTF-8;
 * -2 if the host is too long.
 */
int bloom_host_convert(uint8_t text[BLOOM_HOST_CONVERTED], const uint8_t *p,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HOST_CONVERT_H */
