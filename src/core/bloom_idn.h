
/*
 * This file converts internationalised names to ASCII, and is the only user of
 * libidn2.
 *
 * libidn2 allocates memory while it converts and has released it all when it
 * returns; nothing else of the core allocates.  So it is called only for what
 * has a byte above 0x7f in it, and how much it is given is bounded
 * (bloom_host.c).
 */

#ifndef BLOOM_IDN_H
#define BLOOM_IDN_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* The longest text that is converted, in bytes. */
#define BLOOM_IDN_MAX  8192

/*
 * Converts UTF-8 without a zero byte to ASCII in lower case, as UTS #46 has
 * it: nontransitional, as browsers do; and where IDNA2008 has no place for a
 * label, such as one with a symbol, transitional.
 *
 * The length of the result, which is in `out` and has letters, digits, "-",
 * "_" and "." only; it may be 0, and it may have several dots, as other
 * characters stand for dots, too.  -1 if there is none, or it is longer than
 * `room`.
 */
int bloom_idn_ascii(uint8_t *out, size_t room, const uint8_t *text,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_IDN_H */
