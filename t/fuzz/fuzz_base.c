/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the reader of the file "base".  The seeds are made by
 * t/golden/write_base.pl; t/tool/golden-base.t checks them.
 *
 * For any file, no byte outside it is read.  An entry that counts has the bytes
 * that the writer would have written for its values, and the same entry counts
 * if it is alone.  The other entry counts only if its number is greater.
 *
 * The checksum would make the reader refuse nearly every change at once.  So
 * most mutations also correct the checksums, as an attacker would do.
 */

#include "fuzz.h"

#include "bloom_base.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"

/* Offsets from docs/state.md. */
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_RESERVED      616
#define AT_CRC           4092


size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed);


/* Decodes `len` bytes, and checks what bloom_base.h promises about a result. */
static bloom_base_result_e
decode(bloom_base_t *base, unsigned *which, const uint8_t *data, size_t len)
{
    size_t               said;
    bloom_base_result_e  rc;

    static char  error[BLOOM_BASE_ERROR_LEN];

    memset(error, 'x', sizeof(error));
    *which = 7;

    rc = bloom_base_decode(base, which, data, len, error);

    if (rc == BLOOM_BASE_OK) {
        expect(*which <= 1);
        expect(bloom_base_check(base) == NULL);

    } else {
        said = strnlen(error, sizeof(error));
        expect(said != 0 && said < sizeof(error) - 1);
        expect(*which == 7);
    }

    return rc;
}


/* Returns 1 if an entry has another version, and a right checksum. */
static int
is_foreign(const uint8_t *entry)
{
    return memcmp(entry, "\x89" "BLMBAS\n", 8) == 0
           && bloom_get32(entry + AT_ORDER) == 0x01020304
           && bloom_get32(entry + AT_VERSION) != BLOOM_BASE_VERSION
           && bloom_get32(entry + AT_CRC) == bloom_crc32c(0, entry, AT_CRC);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t              *copy;
    unsigned              i, which, alone;
    bloom_base_t          base, single[2];
    bloom_base_result_e   rc, one[2];

    static uint8_t  file[BLOOM_BASE_SIZE], half[BLOOM_BASE_SIZE];
    static uint8_t  again[BLOOM_BASE_ENTRY];

    /* memory of exactly that size: sanitizers notice a read beyond */

    copy = malloc(size ? size : 1);
    expect(copy != NULL);

    memset(file, 0, sizeof(file));

    if (size != 0) {
        memcpy(copy, data, size);
        memcpy(file, data, size < sizeof(file) ? size : sizeof(file));
    }

    rc = decode(&base, &which, copy, size);
    free(copy);

    for (i = 0; i < 2; i++) {
        memset(half, 0, sizeof(half));
        memcpy(half + i * BLOOM_BASE_ENTRY, file + i * BLOOM_BASE_ENTRY,
               BLOOM_BASE_ENTRY);

        one[i] = decode(&single[i], &alone, half, sizeof(half));

        if (one[i] == BLOOM_BASE_OK) {
            expect(alone == i);

            bloom_base_encode(&single[i], again);
            expect(memcmp(again, file + i * BLOOM_BASE_ENTRY,
                          BLOOM_BASE_ENTRY) == 0);
        }
    }

    expect((rc == BLOOM_BASE_FOREIGN)
           == (is_foreign(file) || is_foreign(file + BLOOM_BASE_ENTRY)));

    if (rc == BLOOM_BASE_OK) {
        expect(one[which] == BLOOM_BASE_OK);
        expect(memcmp(&base, &single[which], sizeof(base)) == 0);

        if (one[1 - which] == BLOOM_BASE_OK) {
            expect(single[1 - which].number <= base.number);
            expect(memcmp(single[1 - which].journal, base.journal,
                          BLOOM_JOURNAL_ID_LEN) == 0);
        }

    } else if (rc == BLOOM_BASE_DAMAGED) {
        expect((one[0] == BLOOM_BASE_OK) == (one[1] == BLOOM_BASE_OK));
    }

    return 0;
}


/* Most mutations change the values of an entry in place, and nearly all of them
 * correct the checksums. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    size_t    at;
    uint8_t  *entry;

    if (seed % 8 != 0 && size >= BLOOM_BASE_ENTRY) {
        entry = data;

        if (seed & 8 && size >= BLOOM_BASE_SIZE) {
            entry += BLOOM_BASE_ENTRY;
        }

        LLVMFuzzerMutate(entry, AT_RESERVED, AT_RESERVED);

    } else {
        size = LLVMFuzzerMutate(data, size, max);
    }

    if ((seed >> 4) % 8 != 0) {
        for (at = 0; at + BLOOM_BASE_ENTRY <= size && at < BLOOM_BASE_SIZE;
             at += BLOOM_BASE_ENTRY)
        {
            bloom_put32(data + at + AT_CRC,
                        bloom_crc32c(0, data + at, AT_CRC));
        }
    }

    return size;
}
