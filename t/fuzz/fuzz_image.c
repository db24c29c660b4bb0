/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the image reader.  The input is a file.  The seeds are the images of
 * t/golden/; t/tool/golden-images.t checks that.
 *
 * For any file, the reader reads nothing outside it.  It either states a
 * reason, or returns an image that the writer would have written from the same
 * values, and whose bits can be used.
 *
 * Checksums would make the reader refuse nearly every changed file at once.  So
 * most mutations also correct the checksums, as an attacker would do.
 */

#include "fuzz.h"

#include "bloom_bytes.h"
#include "bloom_census.h"
#include "bloom_crc.h"
#include "bloom_image_reader.h"

/* Offsets from docs/image-format.md. */
#define AT_FILE_SIZE     16
#define AT_PAYLOAD       24
#define AT_PAYLOAD_SIZE  32
#define AT_TABLE_CRC     44
#define AT_BITS          64
#define AT_RESERVED      152
#define AT_HEADER_CRC    4092


typedef struct {
    const uint8_t  *data;
    size_t          size;
    unsigned        calls;
    unsigned        fail_at;             /* number of the call that fails; 0:
                                            none does */
} file_t;


size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed);


static int
read_file(void *ctx, void *buf, size_t len, uint64_t offset)
{
    file_t  *file = ctx;

    expect(len != 0 && offset <= file->size && len <= file->size - offset);

    if (++file->calls == file->fail_at) {
        return -1;
    }

    memcpy(buf, file->data + offset, len);

    return 0;
}


/* Reads a whole file.  Returns its bits; NULL if the file is refused. */
static uint64_t *
load(bloom_image_reader_t *reader, file_t *file)
{
    int       rc;
    uint8_t  *words;
    size_t    size, at;

    file->calls = 0;

    /* nothing of the last file must be left, such as its error */

    memset(reader, 'x', sizeof(*reader));

    if (bloom_image_open(reader, read_file, file, file->size) != 0) {
        size = strnlen(reader->error, BLOOM_IMAGE_ERROR_LEN);
        expect(size != 0 && size < BLOOM_IMAGE_ERROR_LEN - 1);
        return NULL;
    }

    size = bloom_image_payload_size(&reader->image);
    expect(size < file->size);

    words = malloc(size);
    expect(words != NULL);

    for (at = 0; (rc = bloom_image_next(reader, words + at)) == 1; /* void */)
    {
        at += bloom_image_chunk_size(&reader->image, reader->next - 1);
        expect(at <= size);
    }

    if (rc != 0) {
        size = strnlen(reader->error, BLOOM_IMAGE_ERROR_LEN);
        expect(size != 0 && size < BLOOM_IMAGE_ERROR_LEN - 1);
        free(words);
        return NULL;
    }

    expect(at == size);

    return (uint64_t *) words;
}


/* Checks what bloom_image.h promises about an image that was opened. */
static void
is_in_range(const bloom_image_t *image)
{
    int  i;

    expect(bloom_geometry_valid(&image->geometry));
    expect(image->geometry.bits % BLOOM_LINE_BITS == 0);
    expect(bloom_hasher_name(image->hasher.kind) != NULL);
    expect(bloom_form_name(image->key_form) != NULL);
    expect((image->flags & ~(uint32_t) BLOOM_IMAGE_FLAGS) == 0);
    expect(image->capacity >= 1);
    expect(image->fpr > 0 && image->fpr < 1);

    for (i = 4; image->hasher.kind == BLOOM_HASH_MURMUR3
                && i < BLOOM_HASH_KEY_LEN; i++)
    {
        expect(image->hasher.key[i] == 0);
    }
}


/* Checks that header, checksums and lengths are as the writer makes them. */
static void
is_canonical(const bloom_image_t *image, const uint64_t *words,
    const file_t *file)
{
    size_t          size;
    uint8_t        *table;
    bloom_image_t   again;

    static uint8_t  header[BLOOM_IMAGE_PAGE];

    expect(bloom_image_file_size(image) == file->size);

    bloom_image_encode(image, header);
    expect(memcmp(header, file->data, BLOOM_IMAGE_PAGE) == 0);

    size = bloom_image_table_size(image);
    expect(bloom_crc32c(0, file->data + BLOOM_IMAGE_PAGE, size)
           == image->table_crc);

    table = malloc(size);
    expect(table != NULL);

    /* the padding of the table may be anything: compare only the checksums */

    again = *image;
    bloom_image_seal(&again, words, table);
    expect(memcmp(table, file->data + BLOOM_IMAGE_PAGE,
                  4 * bloom_image_chunks(image)) == 0);

    free(table);

    expect(bloom_image_differs(image, &again) == NULL);
}


static void
can_be_used(const bloom_image_t *image, uint64_t *words)
{
    int                      i, before;
    double                   fpr;
    uint64_t                 n;
    bloom_hash_t             hash;
    bloom_census_t           census;
    const bloom_geometry_t  *g;

    static const bloom_hash_t  corners[] = {
        { 0, 0 }, { UINT64_MAX, UINT64_MAX }, { 0, UINT64_MAX },
        { UINT64_MAX, 0 }, { 1, UINT64_MAX / 2 }
    };

    g = &image->geometry;
    n = bloom_image_payload_size(image) / sizeof(uint64_t);

    memset(&census, 0, sizeof(census));
    bloom_census(&census, g, words, n);

    expect(census.words == n && census.bits_set <= g->bits);

    fpr = bloom_census_fpr(&census, g);
    expect(fpr >= 0 && fpr <= 1 + 1e-9);
    expect(bloom_geometry_items(g, census.bits_set) <= 64 * g->bits);

    fpr = bloom_geometry_fpr(g, image->items);
    expect(fpr >= 0 && fpr <= 1 + 1e-9);
    expect(bloom_geometry_items_error(g, image->items) >= 0);

    for (i = 0; i < 8; i++) {
        hash = i < 5 ? corners[i] : bloom_hash(&image->hasher, &i, sizeof(i));

        bloom_layout_prefetch(g, words, hash);
        before = bloom_layout_test(g, words, hash);

        expect(bloom_layout_add(g, words, hash) == !before);
        expect(bloom_layout_test(g, words, hash));
        expect(bloom_layout_add_atomic(g, words, hash) == 0);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    file_t     file;
    unsigned   calls;
    uint64_t  *words;

    static bloom_image_reader_t  reader, failing;

    file.data = data;
    file.size = size;
    file.fail_at = 0;

    words = load(&reader, &file);

    if (words != NULL) {
        is_in_range(&reader.image);
        is_canonical(&reader.image, words, &file);
        can_be_used(&reader.image, words);
        free(words);
    }

    /* a disk that fails at any of the calls */

    for (calls = file.calls, file.fail_at = 1; file.fail_at <= calls;
         file.fail_at++)
    {
        expect(load(&failing, &file) == NULL);
        expect(file.calls == file.fail_at);
        expect(strncmp(failing.error, "cannot be read at byte ", 23) == 0);
    }

    return 0;
}


/* Corrects the checksums, as far as the file has room for them. */
static void
make_checksums(uint8_t *data, size_t size)
{
    size_t    at, len;
    uint64_t  payload;
    uint8_t  *sum;

    if (size < BLOOM_IMAGE_PAGE) {
        return;
    }

    payload = bloom_get64(data + AT_PAYLOAD);

    if (payload > BLOOM_IMAGE_PAGE && payload < size
        && payload % BLOOM_IMAGE_PAGE == 0)
    {
        sum = data + BLOOM_IMAGE_PAGE;

        for (at = payload; at < size && sum + 4 <= data + payload;
             at += len, sum += 4)
        {
            len = size - at < BLOOM_IMAGE_CHUNK ? size - at
                                                : BLOOM_IMAGE_CHUNK;
            bloom_put32(sum, bloom_crc32c(0, data + at, len));
        }

        bloom_put32(data + AT_TABLE_CRC,
                    bloom_crc32c(0, data + BLOOM_IMAGE_PAGE,
                                 payload - BLOOM_IMAGE_PAGE));
    }

    bloom_put32(data + AT_HEADER_CRC, bloom_crc32c(0, data, AT_HEADER_CRC));
}


/*
 * Half of the mutations change only the fields of the header, because most of a
 * file is zeros and bits.  Seven of eight correct the checksums.  Half of these
 * set the file size before, and half of those all lengths, to a payload that
 * begins after a table of one page.
 */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    uint64_t  payload;

    if (seed & 1 && size >= AT_RESERVED) {
        LLVMFuzzerMutate(data, AT_RESERVED, AT_RESERVED);

    } else {
        size = LLVMFuzzerMutate(data, size, max);
    }

    if ((seed >> 1) % 8 != 0) {

        if (seed & 0x10 && size >= BLOOM_IMAGE_PAGE) {
            bloom_put64(data + AT_FILE_SIZE, size);

            if (seed & 0x20 && size > 2 * BLOOM_IMAGE_PAGE) {
                payload = size - 2 * BLOOM_IMAGE_PAGE;

                bloom_put64(data + AT_PAYLOAD, 2 * BLOOM_IMAGE_PAGE);
                bloom_put64(data + AT_PAYLOAD_SIZE, payload);
                bloom_put64(data + AT_BITS, 8 * payload);
            }
        }

        make_checksums(data, size);
    }

    return size;
}
