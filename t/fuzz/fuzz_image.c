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
#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"
#include "bloom_image_reader.h"
#include "bloom_image_seal.h"

/* Offsets from docs/image-format.md. */
#define AT_FILE_SIZE     16
#define AT_PAYLOAD       24
#define AT_PAYLOAD_SIZE  32
#define AT_TABLE_CRC     44
#define AT_FLAGS         60
#define AT_BITS          64
#define AT_RESERVED      152
#define AT_SLICES        2048
#define AT_SLICES_END    2968
#define AT_PREFIXES      3504
#define AT_EXCEPTIONS    3584
#define AT_EXCEPTIONS_CRC  3600
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


/* Reads the exceptions.  Returns them, with their padding; NULL if there are
 * none or they are refused, which rc tells. */
static uint8_t *
load_exceptions(bloom_image_reader_t *reader, int *rc)
{
    size_t          at, size;
    uint8_t        *data;
    bloom_image_t  *image;

    image = &reader->image;
    size = bloom_image_exceptions_padded(image);
    data = malloc(size + 1);
    expect(data != NULL);

    for (at = 0; (*rc = bloom_image_next_exceptions(reader, data + at)) == 1;
         /* void */ )
    {
        at += reader->len;
        expect(at <= size);
    }

    if (*rc == 0 && size != 0) {
        expect(at == size);
        return data;
    }

    free(data);

    return NULL;
}


/* Checks that valid entries can be read and are written with the same bytes;
 * nothing is read beyond their end. */
static void
check_entries(const bloom_image_t *image, const uint8_t *data)
{
    uint8_t            *copy, *again, *end;
    uint64_t            n;
    const uint8_t      *p;
    bloom_exception_t   exception;

    copy = malloc(image->exceptions_size);
    again = malloc(image->exceptions_size);
    expect(copy != NULL && again != NULL);
    memcpy(copy, data, image->exceptions_size);

    if (bloom_exceptions_check(image, copy) == NULL) {
        p = copy;
        end = again;

        for (n = 0; bloom_exception_read(&p, copy + image->exceptions_size,
                                         &exception) == 1; n++)
        {
            expect(exception.key.len >= 1
                   && exception.key.len <= BLOOM_KEY_MAX);
            end = bloom_exception_write(&exception, end);
        }

        expect(n == image->exceptions);
        expect(end == again + image->exceptions_size);
        expect(memcmp(again, copy, image->exceptions_size) == 0);
    }

    free(copy);
    free(again);
}


/* Reads a whole file.  Returns its bits, and its exceptions in *exceptions;
 * NULL if the file is refused. */
static uint64_t *
load(bloom_image_reader_t *reader, file_t *file, uint8_t **exceptions)
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

    *exceptions = NULL;

    if (rc == 0) {
        expect(at == size);
        *exceptions = load_exceptions(reader, &rc);
    }

    if (rc != 0) {
        size = strnlen(reader->error, BLOOM_IMAGE_ERROR_LEN);
        expect(size != 0 && size < BLOOM_IMAGE_ERROR_LEN - 1);
        free(words);
        return NULL;
    }

    return (uint64_t *) words;
}


/* Checks that slices are as a ring can have them. */
static void
slices_in_range(const bloom_image_t *image, const bloom_image_ring_t *ring)
{
    uint32_t  i;

    expect((image->flags & BLOOM_IMAGE_IMPORTED) == 0);
    expect(image->geometry.layers == 0);
    expect(image->geometry.slices <= BLOOM_PARTS_MAX);
    expect(ring->open < image->geometry.slices);
    expect(ring->live >> image->geometry.slices == 0);
    expect(ring->live >> ring->open & 1);
    expect((ring->full & ~ring->live) == 0);
    expect((ring->full >> ring->open & 1) == 0);

    for (i = 0; i < BLOOM_PARTS_MAX; i++) {
        if (i == ring->open) {
            expect(ring->closed[i] == 0);

        } else if (ring->live >> i & 1) {
            expect(ring->closed[i] >= ring->opened[i]);

        } else {
            expect(ring->opened[i] == 0 && ring->closed[i] == 0);
        }
    }
}


/* Checks what bloom_image.h promises about an image that was opened. */
static void
is_in_range(const bloom_image_t *image)
{
    int  i;

    expect(bloom_geometry_valid(&image->geometry));
    expect(bloom_geometry_is_foreign(image->geometry.layout)
           || image->geometry.bits % BLOOM_LINE_BITS == 0);
    expect((image->exceptions != 0) == (image->exceptions_size != 0));
    expect(image->source.len <= BLOOM_SOURCE_NAME_MAX);
    expect(image->source.len == 0
           ? image->source.position.high == 0 && image->source.position.low == 0
           : bloom_source_name_valid(image->source.name, image->source.len));
    expect(image->geometry.layers <= BLOOM_LAYERS_MAX);
    expect(image->geometry.layers == 0
           || image->capacity <= BLOOM_CAPACITY_MAX);
    expect(image->exceptions_size <= BLOOM_IMAGE_EXCEPTIONS_MAX);
    expect((image->built != 0) == (image->built_size != 0));
    expect(image->built <= image->exceptions);
    expect(image->built_size <= image->exceptions_size);
    expect(bloom_hasher_name(image->hasher.kind) != NULL);
    expect(bloom_form_name(image->key_form) != NULL);
    expect((image->flags & ~(uint32_t) BLOOM_IMAGE_FLAGS) == 0);
    expect((image->flags & BLOOM_IMAGE_RING ? 1 : 0)
           == (image->geometry.slices != 0));
    expect(!bloom_image_is_copy(image)
           ? image->copy.sequence == 0
           : image->copy.sequence != 0 && image->copy.position % 8 == 0);
    expect(image->capacity >= 1);
    expect(image->geometry.layout != BLOOM_LAYOUT_FUSE
           || image->capacity
              == image->geometry.fuse.keys + image->geometry.fuse.room);
    expect(image->fpr > 0 && image->fpr < 1);

    for (i = 4; image->hasher.kind == BLOOM_HASH_MURMUR3
                && i < BLOOM_HASH_KEY_LEN; i++)
    {
        expect(image->hasher.key[i] == 0);
    }
}


/* Checks that header, checksums and lengths are as the writer makes them. */
static void
is_canonical(const bloom_image_t *image, const bloom_image_ring_t *ring,
    const uint64_t *words, const uint8_t *exceptions, const file_t *file)
{
    size_t          size;
    uint8_t        *table;
    uint32_t        at;
    bloom_image_t   again;

    static uint8_t  header[BLOOM_IMAGE_PAGE];

    expect(bloom_image_file_size(image) == file->size);

    bloom_image_encode(image, header);
    expect(image->origin_len <= bloom_image_origin_room(image));
    at = bloom_image_origin_at(image);
    memcpy(header + at, file->data + at, image->origin_len);
    bloom_image_encode_again(header);

    if (image->flags & BLOOM_IMAGE_RING) {
        bloom_image_put_ring(image, ring, header);
    }

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

    if (exceptions != NULL) {
        table = malloc(bloom_image_exceptions_table_size(image));
        expect(table != NULL);
        bloom_image_seal_exceptions(&again, exceptions, table);
        expect(memcmp(table, file->data
                             + bloom_image_exceptions_part(image).table,
                      4 * bloom_image_exceptions_chunks(image)) == 0);
        free(table);

        check_entries(image, exceptions);
    }
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

    expect(census.words == n && census.bits_set <= 64 * n);

    fpr = bloom_census_fpr(&census);
    expect(fpr >= 0 && fpr <= 1 + 1e-9);
    expect(census.parts == bloom_geometry_parts(g));
    expect(bloom_census_items(&census) <= 64 * 64 * n);

    fpr = bloom_image_fpr(image, image->items);
    expect(fpr >= 0 && fpr <= 1 + 1e-9);
    fpr = bloom_image_promised(image);
    expect(fpr >= image->fpr && fpr <= 1 + 1e-9);
    expect(bloom_image_capacity(image) >= image->capacity);
    expect(bloom_image_items_error(image) >= 0);

    for (i = 0; i < 8; i++) {
        hash = i < 5 ? corners[i] : bloom_hash(&image->hasher, &i, sizeof(i));

        bloom_layout_prefetch(g, words, hash);
        before = bloom_layout_test(g, words, hash);
        expect(bloom_layout_test_batch(g, words, &hash, 1)
               == (uint64_t) before);

        if (g->layout == BLOOM_LAYOUT_FUSE && g->layers == 0) {
            expect(bloom_layout_add(g, words, hash) == 0);
            expect(bloom_layout_test(g, words, hash) == before);
            continue;
        }

        expect(bloom_layout_add(g, words, hash) == !before);
        expect(bloom_layout_test(g, words, hash));
        expect(bloom_layout_add_atomic(g, words, hash) == 0);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    file_t     file;
    uint8_t   *exceptions;
    unsigned   calls;
    uint64_t  *words;

    static bloom_image_reader_t  reader, failing;

    file.data = data;
    file.size = size;
    file.fail_at = 0;

    words = load(&reader, &file, &exceptions);

    if (words != NULL) {
        is_in_range(&reader.image);
        is_canonical(&reader.image, &reader.ring, words, exceptions, &file);

        if (reader.image.flags & BLOOM_IMAGE_RING) {
            slices_in_range(&reader.image, &reader.ring);
            reader.image.geometry.open = reader.ring.open;
            reader.image.geometry.live = reader.ring.live;
        }

        can_be_used(&reader.image, words);
        free(words);
        free(exceptions);
    }

    /* a disk that fails at any of the calls */

    for (calls = file.calls, file.fail_at = 1; file.fail_at <= calls;
         file.fail_at++)
    {
        expect(load(&failing, &file, &exceptions) == NULL);
        expect(file.calls == file.fail_at);
        expect(strncmp(failing.error, "cannot be read at byte ", 23) == 0);
    }

    return 0;
}


/* Corrects the checksums of a table for the data from `at` to `end`. */
static void
make_table(uint8_t *data, size_t table, size_t at, size_t end, size_t crc)
{
    size_t  len, sum, begin;

    begin = at;

    for (sum = table; at < end && sum + 4 <= begin; at += len, sum += 4) {
        len = end - at < BLOOM_IMAGE_CHUNK ? end - at : BLOOM_IMAGE_CHUNK;
        bloom_put32(data + sum, bloom_crc32c(0, data + at, len));
    }

    bloom_put32(data + crc, bloom_crc32c(0, data + table, begin - table));
}


/* Corrects the checksums, as far as the file has room for them. */
static void
make_checksums(uint8_t *data, size_t size)
{
    size_t    end;
    uint64_t  payload, bytes;

    if (size < BLOOM_IMAGE_PAGE) {
        return;
    }

    payload = bloom_get64(data + AT_PAYLOAD);

    if (payload > BLOOM_IMAGE_PAGE && payload < size
        && payload % BLOOM_IMAGE_PAGE == 0)
    {
        end = size;
        bytes = bloom_get64(data + AT_PAYLOAD_SIZE);

        if (bloom_get64(data + AT_EXCEPTIONS) != 0
            && bytes < size - payload
            && size - payload - bytes > BLOOM_IMAGE_PAGE)
        {
            end = (size_t) (payload + bytes);
            make_table(data, end, end + BLOOM_IMAGE_PAGE, size,
                       AT_EXCEPTIONS_CRC);
        }

        make_table(data, BLOOM_IMAGE_PAGE, (size_t) payload, end,
                   AT_TABLE_CRC);
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

    if (seed & 1 && size >= BLOOM_IMAGE_PAGE && seed & 0x200
        && bloom_get32(data + AT_FLAGS) & BLOOM_IMAGE_RING)
    {
        LLVMFuzzerMutate(data + AT_SLICES, AT_SLICES_END - AT_SLICES,
                         AT_SLICES_END - AT_SLICES);

    } else if (seed & 1 && size >= BLOOM_IMAGE_PAGE && seed & 0x100) {
        LLVMFuzzerMutate(data + AT_PREFIXES, AT_HEADER_CRC - AT_PREFIXES,
                         AT_HEADER_CRC - AT_PREFIXES);

    } else if (seed & 1 && size >= AT_RESERVED) {
        LLVMFuzzerMutate(data, AT_RESERVED, AT_RESERVED);

    } else {
        size = LLVMFuzzerMutate(data, size, max);
    }

    if ((seed >> 1) % 8 != 0) {

        if (seed & 0x10 && size >= BLOOM_IMAGE_PAGE) {
            bloom_put64(data + AT_FILE_SIZE, size);

            if (seed & 0x20 && size > 2 * BLOOM_IMAGE_PAGE
                && bloom_get64(data + AT_EXCEPTIONS) == 0)
            {
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
