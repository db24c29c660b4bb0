/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * CRC-32C (Castagnoli; RFC 3720, B.4) is the checksum of images, journals and
 * the file "base".
 *
 * It always detects a change confined to 32 consecutive bits, and any other
 * change with probability 1 - 2^-32.  The CRC of "123456789" is 0xe3069283.
 */

#ifndef BLOOM_CRC_H
#define BLOOM_CRC_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Returns the CRC of a message that is passed in one or more pieces.  `crc` is
 * 0 for the first piece, then the result of the call before.  The processor's
 * CRC instruction is used if there is one.
 */
uint32_t bloom_crc32c(uint32_t crc, const void *data, size_t len);

/* Computes the same CRC from tables, on any processor.  It is public so that
 * tests can compare the two. */
uint32_t bloom_crc32c_portable(uint32_t crc, const void *data, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_CRC_H */
