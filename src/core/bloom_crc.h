/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * CRC-32C (Castagnoli; RFC 3720, B.4) is the checksum of images and journals.
 *
 * Any change within 32 consecutive bits is detected for sure, any other with
 * probability 1 - 2^-32.  The check value of "123456789" is 0xe3069283.
 */

#ifndef BLOOM_CRC_H
#define BLOOM_CRC_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * The CRC of a message given piece by piece: `crc` is 0 at first, then the
 * result for what came before.  Uses the processor's instruction if it has
 * one.
 */
uint32_t bloom_crc32c(uint32_t crc, const void *data, size_t len);

/* The same by tables alone, for any processor; public to be tested. */
uint32_t bloom_crc32c_portable(uint32_t crc, const void *data, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_CRC_H */
