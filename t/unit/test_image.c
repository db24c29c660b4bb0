
/*
 * Image files: what is written can be read, and whatever else one may find in
 * a file of that name is refused, each with its reason.
 *
 * Files are byte strings here.  Every read is checked to lie within the file,
 * and reads into memory of its own, so that sanitizers see any byte too many.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_image.h"

/* Offsets of the header's fields, from docs/image-format.md. */
#define MAGIC         0
#define VERSION       8
#define ORDER         12
#define FILE_SIZE     16
#define PAYLOAD       24
#define PAYLOAD_SIZE  32
#define CHUNK_SIZE    40
#define TABLE_CRC     44
#define LAYOUT        48
#define K             52
#define LINES         56
#define FLAGS         60
#define BITS          64
#define HASH          72
#define KEY_FORM      76
#define HASH_KEY      80
#define CAPACITY      96
#define ITEMS         104
#define FPR           112
#define CREATED       120
#define AS_OF         128
#define BUILD_ID      136
#define RESERVED      152
#define HEADER_CRC    4092


typedef struct {
    uint8_t  *bytes;
    size_t    size;
    int       reads;                     /* so far */
    int       fails;                     /* at this read; 0: never */
    uint64_t  failed;                    /* offset of that read */
} file_t;


static int
read_file(void *ctx, void *buf, size_t len, uint64_t offset)
{
    file_t  *file = ctx;

    assert_true(len > 0);
    assert_true(offset < file->size && len <= file->size - offset);

    if (++file->reads == file->fails) {
        memset(buf, 0xee, len);
        file->failed = offset;
        return -1;
    }

    memcpy(buf, file->bytes + offset, len);

    return 0;
}


static file_t
file_of(const bloom_image_t *given, const uint64_t *words)
{
    file_t         file;
    uint64_t       table;
    bloom_image_t  image;

    image = *given;
    table = bloom_image_table_size(&image);

    memset(&file, 0, sizeof(file));
    file.size = bloom_image_file_size(&image);
    file.bytes = malloc(file.size);
    assert_non_null(file.bytes);

    assert_int_equal(file.size, BLOOM_IMAGE_PAGE + table
                                + bloom_image_payload_size(&image));

    bloom_image_seal(&image, words, file.bytes + BLOOM_IMAGE_PAGE);
    bloom_image_encode(&image, file.bytes);
    memcpy(file.bytes + BLOOM_IMAGE_PAGE + table, words,
           bloom_image_payload_size(&image));

    return file;
}


/* An image with every field set, and some keys in it. */
static bloom_image_t
example(uint32_t layout, uint32_t k, uint32_t lines, uint64_t bits)
{
    uint32_t       i;
    bloom_image_t  image;

    memset(&image, 0, sizeof(image));

    image.geometry.layout = layout;
    image.geometry.k = k;
    image.geometry.lines = lines;
    image.geometry.bits = bits;
    image.key_form = BLOOM_FORM_RAW;
    image.flags = BLOOM_IMAGE_ESTIMATED;
    image.capacity = 0x1122334455667788;
    image.items = 0x0102030405060708;
    image.fpr = 0.0009765625;
    image.created = 1767225600123;
    image.as_of = 1767222000456;

    if (layout == BLOOM_LAYOUT_BLOCKED) {
        bloom_hasher_murmur3(&image.hasher, 0xdeadbeef);
    } else {
        image.hasher.kind = BLOOM_HASH_SIPHASH;
    }

    for (i = 0; i < 16; i++) {
        image.build_id[i] = (uint8_t) (0xf0 + i);

        if (image.hasher.kind == BLOOM_HASH_SIPHASH) {
            image.hasher.key[i] = (uint8_t) (0x80 + i);
        }
    }

    return image;
}


static uint64_t *
some_bits(const bloom_image_t *image)
{
    uint32_t      i;
    uint64_t     *words;
    bloom_hash_t  hash;

    words = calloc(1, bloom_image_payload_size(image));
    assert_non_null(words);

    for (i = 0; i < 40; i++) {
        hash = bloom_hash(&image->hasher, &i, sizeof(i));
        bloom_layout_add(&image->geometry, words, hash);
    }

    return words;
}


static file_t
example_file(const bloom_image_t *image)
{
    file_t     file;
    uint64_t  *words;

    words = some_bits(image);
    file = file_of(image, words);
    free(words);

    return file;
}


static bloom_image_t  blocked, classic;


static int
make_examples(void **state)
{
    (void) state;

    blocked = example(BLOOM_LAYOUT_BLOCKED, 16, 2, 3 * 512);
    classic = example(BLOOM_LAYOUT_CLASSIC, 7, 0, 5 * 512);

    return 0;
}


/*
 * Reads a file whole.  NULL, with the payload if that is asked for; or the
 * reason, after which nothing more may be read.
 */
static const char *
refused(file_t *file, uint64_t *payload)
{
    int                          rc;
    size_t                       len;
    uint8_t                     *dst;
    uint64_t                     chunk;
    static bloom_image_reader_t  reader;

    memset(&reader, 0xa5, sizeof(reader));
    file->reads = 0;

    if (bloom_image_open(&reader, read_file, file, file->size) != 0) {
        assert_true(reader.error[0] != '\0');
        assert_true(strlen(reader.error) < BLOOM_IMAGE_ERROR_LEN - 1);
        return reader.error;
    }

    assert_string_equal(reader.error, "");
    assert_true(bloom_geometry_valid(&reader.image.geometry));
    assert_int_equal(bloom_image_file_size(&reader.image), file->size);

    for (chunk = 0; /* void */ ; chunk++) {
        assert_int_equal(reader.next, chunk);

        if (chunk == bloom_image_chunks(&reader.image)) {
            break;
        }

        len = bloom_image_chunk_size(&reader.image, chunk);
        assert_in_range(len, 1, BLOOM_IMAGE_CHUNK);

        dst = malloc(len);
        assert_non_null(dst);

        rc = bloom_image_next(&reader, dst);

        if (rc == 1 && payload != NULL) {
            memcpy((uint8_t *) payload + chunk * BLOOM_IMAGE_CHUNK, dst, len);
        }

        free(dst);

        if (rc == -1) {
            assert_int_equal(reader.next, chunk);
            assert_true(reader.error[0] != '\0');
            return reader.error;
        }

        assert_int_equal(rc, 1);
    }

    /* the end stays the end, and reads nothing */

    rc = file->reads;
    assert_int_equal(bloom_image_next(&reader, NULL), 0);
    assert_int_equal(bloom_image_next(&reader, NULL), 0);
    assert_int_equal(file->reads, rc);

    return NULL;
}


static void
assert_refused(file_t *file, const char *reason)
{
    const char  *error;

    error = refused(file, NULL);

    if (error == NULL) {
        fail_msg("accepted, expected \"%s\"", reason);
    }

    if (strstr(error, reason) == NULL) {
        fail_msg("refused as \"%s\", expected \"%s\"", error, reason);
    }
}


static void
remake_header_crc(file_t *file)
{
    bloom_put32(file->bytes + HEADER_CRC,
                bloom_crc32c(0, file->bytes, HEADER_CRC));
}


/* ---- written and read ---- */

static void
check_round_trip(const bloom_image_t *image)
{
    file_t                       file;
    uint64_t                    *words, *read;
    bloom_image_t                again;
    static bloom_image_reader_t  reader;

    words = some_bits(image);
    file = file_of(image, words);

    read = calloc(1, bloom_image_payload_size(image));
    assert_non_null(read);

    assert_null(refused(&file, read));
    assert_memory_equal(read, words, bloom_image_payload_size(image));

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

    /* all fields, the table's checksum besides */

    again = reader.image;
    assert_int_equal(again.table_crc, bloom_get32(file.bytes + TABLE_CRC));
    again.table_crc = image->table_crc;

    assert_true(bloom_geometry_equal(&again.geometry, &image->geometry));
    assert_null(bloom_image_differs(&again, image));
    assert_int_equal(again.flags, image->flags);
    assert_int_equal(again.capacity, image->capacity);
    assert_int_equal(again.items, image->items);
    assert_true(again.fpr == image->fpr);
    assert_int_equal(again.created, image->created);
    assert_int_equal(again.as_of, image->as_of);
    assert_memory_equal(again.build_id, image->build_id,
                        BLOOM_IMAGE_BUILD_ID_LEN);

    free(file.bytes);
    free(words);
    free(read);
}


static void
test_a_written_image_is_read_back(void **state)
{
    bloom_image_t  image;

    (void) state;

    check_round_trip(&blocked);
    check_round_trip(&classic);

    /* as little as a field may hold, and as much */

    image = blocked;
    image.flags = 0;
    image.capacity = 1;
    image.items = 0;
    image.fpr = 1e-300;
    image.created = 0;
    image.as_of = 0;
    memset(image.build_id, 0, sizeof(image.build_id));
    bloom_hasher_murmur3(&image.hasher, 0);
    check_round_trip(&image);

    image.capacity = UINT64_MAX;
    image.items = UINT64_MAX;
    image.fpr = nextafter(1, 0);
    image.created = UINT64_MAX;
    image.as_of = UINT64_MAX;
    bloom_hasher_murmur3(&image.hasher, UINT32_MAX);
    check_round_trip(&image);

    /* one line; one chunk, a bit less and a bit more; many */

    image = classic;
    image.geometry.bits = 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 - 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 + 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 5 - 1024;
    check_round_trip(&image);
}


/* A little-endian number, byte by byte. */
static uint64_t
number(const file_t *file, size_t at, size_t len)
{
    uint64_t  v;

    for (v = 0; len-- > 0; /* void */ ) {
        v = v << 8 | file->bytes[at + len];
    }

    return v;
}


/* Each field at its offset, little-endian; all else is zero. */
static void
test_the_header_is_as_documented(void **state)
{
    size_t    i;
    double    fpr;
    file_t    file;
    uint64_t  bits;

    (void) state;

    file = example_file(&classic);

    assert_memory_equal(file.bytes, "\x89" "BLOOM\r\n", 8);
    assert_int_equal(number(&file, VERSION, 4), 1);
    assert_int_equal(number(&file, ORDER, 4), 0x01020304);
    assert_int_equal(number(&file, FILE_SIZE, 8), file.size);
    assert_int_equal(number(&file, PAYLOAD, 8), 8192);
    assert_int_equal(number(&file, PAYLOAD_SIZE, 8), 5 * 64);
    assert_int_equal(number(&file, CHUNK_SIZE, 4), 1048576);
    assert_int_equal(number(&file, TABLE_CRC, 4),
                     bloom_crc32c_portable(0, file.bytes + 4096, 4096));
    assert_int_equal(number(&file, LAYOUT, 4), 2);
    assert_int_equal(number(&file, K, 4), 7);
    assert_int_equal(number(&file, LINES, 4), 0);
    assert_int_equal(number(&file, FLAGS, 4), 1);
    assert_int_equal(number(&file, BITS, 8), 5 * 512);
    assert_int_equal(number(&file, HASH, 4), 2);
    assert_int_equal(number(&file, KEY_FORM, 4), 0);
    assert_int_equal(number(&file, CAPACITY, 8), 0x1122334455667788);
    assert_int_equal(number(&file, ITEMS, 8), 0x0102030405060708);
    assert_int_equal(number(&file, CREATED, 8), 1767225600123);
    assert_int_equal(number(&file, AS_OF, 8), 1767222000456);
    assert_int_equal(number(&file, HEADER_CRC, 4),
                     bloom_crc32c_portable(0, file.bytes, HEADER_CRC));

    bits = number(&file, FPR, 8);
    memcpy(&fpr, &bits, sizeof(fpr));
    assert_true(fpr == 0.0009765625);

    for (i = 0; i < 16; i++) {
        assert_int_equal(file.bytes[HASH_KEY + i], 0x80 + i);
        assert_int_equal(file.bytes[BUILD_ID + i], 0xf0 + i);
    }

    for (i = RESERVED; i < HEADER_CRC; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    /* the table: one sum, then zeros */

    assert_int_equal(number(&file, 4096, 4),
                     bloom_crc32c_portable(0, file.bytes + 8192, 5 * 64));

    for (i = 4100; i < 8192; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    free(file.bytes);
}


/* A file too large to be held twice: head and payload stay where they are. */
typedef struct {
    uint8_t   head[4096 + 8192];
    uint8_t  *payload;
    size_t    size;
    int       reads;
} large_t;


static int
read_large(void *ctx, void *buf, size_t len, uint64_t offset)
{
    large_t  *large = ctx;

    assert_true(offset < large->size && len <= large->size - offset);
    large->reads++;

    if (offset < sizeof(large->head)) {
        assert_true(len <= sizeof(large->head) - offset);
        memcpy(buf, large->head + offset, len);

    } else {
        memcpy(buf, large->payload + offset - sizeof(large->head), len);
    }

    return 0;
}


/* A table of more than one page: 1025 chunks. */
static void
test_a_table_of_several_pages_is_read_back(void **state)
{
    int                          rc, round;
    uint8_t                     *dst;
    uint64_t                     chunk;
    bloom_image_t                image;
    static large_t               large;
    static bloom_image_reader_t  reader;

    (void) state;

    image = blocked;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 1024 + 512;

    assert_int_equal(bloom_image_chunks(&image), 1025);
    assert_int_equal(bloom_image_table_size(&image), 8192);
    assert_int_equal(bloom_image_chunk_size(&image, 1023), BLOOM_IMAGE_CHUNK);
    assert_int_equal(bloom_image_chunk_size(&image, 1024), 64);

    large.size = bloom_image_file_size(&image);
    assert_int_equal(large.size, 4096 + 8192 + ((uint64_t) 1 << 30) + 64);

    large.payload = (uint8_t *) some_bits(&image);
    bloom_image_seal(&image, large.payload, large.head + 4096);
    bloom_image_encode(&image, large.head);

    dst = malloc(BLOOM_IMAGE_CHUNK);
    assert_non_null(dst);

    for (round = 0; round < 2; round++) {
        large.reads = 0;

        assert_int_equal(bloom_image_open(&reader, read_large, &large,
                                          large.size), 0);

        for (chunk = 0; (rc = bloom_image_next(&reader, dst)) == 1; chunk++) {
            if (memcmp(dst, large.payload + chunk * BLOOM_IMAGE_CHUNK,
                       bloom_image_chunk_size(&image, chunk)) != 0)
            {
                fail_msg("chunk %u differs", (unsigned) chunk);
            }
        }

        if (round == 0) {
            assert_int_equal(rc, 0);
            assert_int_equal(chunk, 1025);

            /* header, two pages of the table; again each page, the chunks */

            assert_int_equal(large.reads, 1 + 2 + 2 + 1025);

        } else {
            assert_int_equal(rc, -1);
            assert_int_equal(chunk, 1024);
            assert_non_null(strstr(reader.error, "checksum of bytes "
                                                 "1073754112 to 1073754175"));
        }

        large.payload[large.size - sizeof(large.head) - 1] ^= 1;
    }

    free(dst);
    free(large.payload);
}


/* ---- damage ---- */

/* Every byte: each other value in the header, several elsewhere. */
static unsigned
corrupt_every_byte(const bloom_image_t *image)
{
    size_t    i, v, values;
    file_t    file;
    uint8_t   was;
    unsigned  count;

    static const uint8_t  flips[] = { 0x01, 0x10, 0x80, 0xff, 0x55 };

    count = 0;
    file = example_file(image);
    assert_null(refused(&file, NULL));

    for (i = 0; i < file.size; i++) {
        was = file.bytes[i];
        values = i < BLOOM_IMAGE_PAGE ? 255 : array_len(flips);

        for (v = 0; v < values; v++) {
            file.bytes[i] ^= i < BLOOM_IMAGE_PAGE ? v + 1 : flips[v];

            if (refused(&file, NULL) == NULL) {
                fail_msg("byte %zu may be 0x%02x", i, file.bytes[i]);
            }

            file.bytes[i] = was;
            count++;
        }
    }

    assert_null(refused(&file, NULL));
    print_message("%u corruptions of %zu bytes refused (%s)\n", count,
                  file.size,
                  bloom_geometry_layout_name(image->geometry.layout));

    free(file.bytes);

    return count;
}


static void
test_every_damaged_byte_is_detected(void **state)
{
    (void) state;

    assert_int_equal(corrupt_every_byte(&blocked),
                     4096 * 255 + (4096 + 3 * 64) * 5);
    assert_int_equal(corrupt_every_byte(&classic),
                     4096 * 255 + (4096 + 5 * 64) * 5);
}


/* Every length but the right one, in memory of just that length. */
static void
check_lengths(const bloom_image_t *image)
{
    size_t    len;
    file_t    whole, part;
    unsigned  shorter, longer;

    shorter = 0;
    longer = 0;
    whole = example_file(image);

    memset(&part, 0, sizeof(part));

    for (len = 0; len < whole.size + 5000; len++) {
        if (len == whole.size) {
            continue;
        }

        part.size = len;
        part.bytes = calloc(1, len ? len : 1);
        assert_non_null(part.bytes);
        memcpy(part.bytes, whole.bytes, len < whole.size ? len : whole.size);

        if (len == 0) {
            assert_refused(&part, "is empty");
            shorter++;

        } else if (len < 8) {
            assert_refused(&part, "is not a Bloom filter image");
            shorter++;

        } else if (len < 24) {
            assert_non_null(refused(&part, NULL));
            shorter++;

        } else if (len < whole.size) {
            assert_refused(&part, "is truncated");
            shorter++;

        } else {
            assert_refused(&part, "is longer than it says");
            longer++;
        }

        free(part.bytes);
    }

    assert_int_equal(shorter, whole.size);
    assert_int_equal(longer, 4999);

    print_message("%u truncations and %u longer files refused (%s)\n", shorter,
                  longer, bloom_geometry_layout_name(image->geometry.layout));

    free(whole.bytes);
}


static void
test_files_of_a_wrong_length_are_refused(void **state)
{
    (void) state;

    check_lengths(&blocked);
    check_lengths(&classic);
}


/* ---- a good checksum over what cannot be ---- */

/* Puts a value of 4 or 8 bytes into the header and makes its sum again. */
static void
assert_value_refused(const bloom_image_t *image, size_t at, size_t len,
    uint64_t value, const char *reason)
{
    file_t  file;

    file = example_file(image);

    if (len == 4) {
        bloom_put32(file.bytes + at, (uint32_t) value);
    } else {
        bloom_put64(file.bytes + at, value);
    }

    remake_header_crc(&file);
    assert_refused(&file, reason);

    free(file.bytes);
}


static void
test_another_kind_of_file_is_refused(void **state)
{
    size_t  i;
    file_t  file;

    static const char *const  others[] = {
        "\x1f\x8b\x08", "one\ntwo\n", "\x89PNG\r\n\x1a\n", "BLOOM\r\n",
        "\x89" "BLOOM\n", "\x89" "BLOOM\n\n", "\x09" "BLOOM\r\n"
    };

    (void) state;

    for (i = 0; i < array_len(others); i++) {
        file = example_file(&blocked);
        memset(file.bytes, 0, 8);
        memcpy(file.bytes, others[i], strlen(others[i]));
        remake_header_crc(&file);
        assert_refused(&file, "is not a Bloom filter image");
        free(file.bytes);
    }
}


static void
test_other_versions_and_byte_orders_are_refused(void **state)
{
    size_t   i;
    file_t   file;
    uint8_t  was;

    (void) state;

    assert_value_refused(&blocked, VERSION, 4, 2, "is of version 2 and this "
                         "program reads up to version 1; use a newer program");
    assert_value_refused(&blocked, VERSION, 4, UINT32_MAX,
                         "is of version 4294967295");
    assert_value_refused(&blocked, VERSION, 4, 0, "version 0 never was");

    assert_value_refused(&blocked, ORDER, 4, 0x04030201, "big-endian");
    assert_value_refused(&blocked, ORDER, 4, 0,
                         "byte order mark is 0x00000000 and not 0x01020304");

    /* as a big-endian machine would write it: each number turned round */

    file = example_file(&blocked);

    for (i = 0; i < 2; i++) {
        was = file.bytes[VERSION + i];
        file.bytes[VERSION + i] = file.bytes[VERSION + 3 - i];
        file.bytes[VERSION + 3 - i] = was;

        was = file.bytes[ORDER + i];
        file.bytes[ORDER + i] = file.bytes[ORDER + 3 - i];
        file.bytes[ORDER + 3 - i] = was;
    }

    assert_refused(&file, "big-endian");
    free(file.bytes);

    /* what a later version's header holds is not guessed at */

    file = example_file(&blocked);
    bloom_put32(file.bytes + VERSION, 2);
    bloom_put32(file.bytes + LAYOUT, 77);
    bloom_put64(file.bytes + FILE_SIZE, 1);
    assert_refused(&file, "is of version 2");
    free(file.bytes);
}


static void
test_impossible_lengths_are_refused(void **state)
{
    size_t  i;

    static const uint64_t  lengths[] = {
        0, 1, 63, 4096, 8192 + 64, (uint64_t) 1 << 32, (uint64_t) 1 << 43,
        (uint64_t) 1 << 63, ((uint64_t) 1 << 63) + 8, UINT64_MAX - 4095,
        UINT64_MAX
    };

    (void) state;

    for (i = 0; i < array_len(lengths); i++) {
        assert_value_refused(&blocked, FILE_SIZE, 8, lengths[i],
                             lengths[i] < 8384 ? "is longer than it says"
                                               : "is truncated");
        assert_value_refused(&blocked, PAYLOAD, 8, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, PAYLOAD_SIZE, 8, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, CHUNK_SIZE, 4, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, BITS, 8, lengths[i],
                             "is impossible");
    }

    /* in range, but of another size than the file */

    assert_value_refused(&blocked, BITS, 8, 512, "512 bits do not make 192 "
                         "bytes of payload at 8192 in a file of 8384");
    assert_value_refused(&blocked, BITS, 8, 2048, "2048 bits do not make");
    assert_value_refused(&blocked, BITS, 8, BLOOM_BITS_MAX, "do not make");
    assert_value_refused(&blocked, BITS, 8, BLOOM_BITS_MAX + 512,
                         "is impossible: layout blocked, 8796093022720 bits");
    assert_value_refused(&blocked, BITS, 8, 1024 + 64,
                         "is impossible: layout blocked, 1088 bits");
}


/* A file whose lengths agree with each other, but not with its bits. */
static void
test_lengths_that_do_not_fit_the_bits_are_refused(void **state)
{
    file_t  file;

    (void) state;

    file = example_file(&blocked);
    file.size += 64;
    file.bytes = realloc(file.bytes, file.size);
    assert_non_null(file.bytes);
    memset(file.bytes + file.size - 64, 0, 64);
    bloom_put64(file.bytes + FILE_SIZE, file.size);
    remake_header_crc(&file);
    assert_refused(&file, "1536 bits do not make 192 bytes of payload at 8192 "
                   "in a file of 8448");
    free(file.bytes);

    file = example_file(&blocked);
    bloom_put64(file.bytes + PAYLOAD_SIZE, 128);
    bloom_put64(file.bytes + FILE_SIZE, file.size - 64);
    remake_header_crc(&file);

    file.size -= 64;
    assert_refused(&file, "1536 bits do not make 128 bytes");

    /* the bits too: then it is another image, whose chunk is damaged */

    bloom_put64(file.bytes + BITS, 1024);
    remake_header_crc(&file);
    assert_refused(&file, "checksum of bytes 8192 to 8319 differs");

    free(file.bytes);
}


static void
test_values_out_of_range_are_refused(void **state)
{
    size_t    i;
    file_t    file;
    double    fpr;
    uint64_t  bits;

    static const double  rates[] = {
        0, -0.0, -0.001, 1, 1.5, 1e300, INFINITY, -INFINITY, NAN, -NAN
    };

    (void) state;

    assert_value_refused(&blocked, LAYOUT, 4, 0, "has layout 0");
    assert_value_refused(&blocked, LAYOUT, 4, 3, "has layout 3");
    assert_value_refused(&blocked, LAYOUT, 4, UINT32_MAX, "has layout");
    assert_value_refused(&blocked, LAYOUT, 4, BLOOM_LAYOUT_CLASSIC,
                         "is impossible: layout classic");
    assert_value_refused(&classic, LAYOUT, 4, BLOOM_LAYOUT_BLOCKED,
                         "is impossible: layout blocked");

    assert_value_refused(&blocked, HASH, 4, 0, "has hash 0");
    assert_value_refused(&blocked, HASH, 4, 11, "has hash 11");
    assert_value_refused(&blocked, HASH, 4, 3, "layout blocked and hash");
    assert_value_refused(&blocked, KEY_FORM, 4, 4, "has key form 4");
    assert_value_refused(&blocked, FLAGS, 4, 4, "has flags 0x4");
    assert_value_refused(&blocked, FLAGS, 4, 0x80000001, "has flags");

    assert_value_refused(&blocked, K, 4, 0, "k 0, lines 2");
    assert_value_refused(&blocked, K, 4, 15, "k 15, lines 2");
    assert_value_refused(&blocked, K, 4, 6, "k 6, lines 2");
    assert_value_refused(&blocked, K, 4, 32, "k 32, lines 2");
    assert_value_refused(&blocked, K, 4, UINT32_MAX, "k 4294967295");
    assert_value_refused(&blocked, LINES, 4, 0, "k 16, lines 0");
    assert_value_refused(&blocked, LINES, 4, 1, "k 16, lines 1");
    assert_value_refused(&blocked, LINES, 4, 3, "k 16, lines 3");
    assert_value_refused(&blocked, LINES, 4, 4, "k 16, lines 4");
    assert_value_refused(&blocked, LINES, 4, UINT32_MAX, "lines 4294967295");
    assert_value_refused(&classic, K, 4, 0, "k 0, lines 0");
    assert_value_refused(&classic, K, 4, 65, "k 65, lines 0");
    assert_value_refused(&classic, LINES, 4, 1, "k 7, lines 1");

    assert_value_refused(&blocked, CAPACITY, 8, 0, "capacity 0");

    for (i = 0; i < array_len(rates); i++) {
        fpr = rates[i];
        memcpy(&bits, &fpr, sizeof(bits));
        assert_value_refused(&blocked, FPR, 8, bits, "false-positive rate");
    }

    /* a murmur3 seed has 32 bits; siphash's key may be anything */

    assert_value_refused(&blocked, HASH_KEY + 4, 4, 1, "murmur3 seed");
    assert_value_refused(&blocked, HASH_KEY + 12, 4, 0x80000000,
                         "murmur3 seed");
    assert_value_refused(&classic, HASH, 4, BLOOM_HASH_MURMUR3,
                         "murmur3 seed");

    for (i = RESERVED; i < HEADER_CRC; i++) {
        file = example_file(&blocked);
        file.bytes[i] = 1;
        remake_header_crc(&file);
        assert_refused(&file, "reserved bytes of its header");
        free(file.bytes);
    }
}


/*
 * What a reader cannot judge: hash key, capacity, items, rate, times, build id.
 * Of the rate, the highest byte would make it greater than 1.
 */
static int
may_differ(size_t at)
{
    return (at >= HASH_KEY && at < FPR + 7) || (at >= CREATED && at < RESERVED);
}


static void
test_only_free_header_fields_may_change(void **state)
{
    size_t  at;
    file_t  file;

    (void) state;

    file = example_file(&classic);

    for (at = 0; at < HEADER_CRC; at++) {
        file.bytes[at] ^= 0x40;
        remake_header_crc(&file);

        if ((refused(&file, NULL) == NULL) != may_differ(at)) {
            fail_msg("byte %zu may %sdiffer", at, may_differ(at) ? "" : "not ");
        }

        file.bytes[at] ^= 0x40;
    }

    free(file.bytes);
}


static void
test_damage_is_located(void **state)
{
    file_t         file;
    bloom_image_t  image;

    (void) state;

    file = example_file(&blocked);
    file.bytes[BUILD_ID] ^= 1;
    assert_refused(&file, "is damaged: the checksum of its header differs");
    file.bytes[BUILD_ID] ^= 1;

    file.bytes[4096 + 4095] ^= 1;
    assert_refused(&file, "checksum of its table, bytes 4096 to 8191, differs");
    file.bytes[4096 + 4095] ^= 1;

    file.bytes[8192 + 100] ^= 1;
    assert_refused(&file, "checksum of bytes 8192 to 8383 differs");
    free(file.bytes);

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;
    file = example_file(&image);

    file.bytes[8192 + 1048576] ^= 1;
    assert_refused(&file, "checksum of bytes 1056768 to 2105343 differs");
    file.bytes[8192 + 1048576] ^= 1;

    file.bytes[file.size - 1] ^= 1;
    assert_refused(&file, "checksum of bytes 2105344 to 3153855 differs");
    free(file.bytes);
}


/* ---- a disk that fails ---- */

static void
test_a_failure_of_any_read_is_reported(void **state)
{
    int            reads;
    char           reason[64];
    file_t         file;
    uint64_t      *payload;
    bloom_image_t  image;

    (void) state;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;

    file = example_file(&image);
    payload = malloc(bloom_image_payload_size(&image));
    assert_non_null(payload);

    assert_null(refused(&file, NULL));
    reads = file.reads;

    /* the header, the table twice, three chunks */

    assert_int_equal(reads, 1 + 1 + 1 + 3);

    for (file.fails = 1; file.fails <= reads; file.fails++) {
        memset(payload, 0x77, bloom_image_payload_size(&image));

        /* what is refused was read no further */

        assert_non_null(refused(&file, payload));
        assert_int_equal(file.reads, file.fails);

        sprintf(reason, "cannot be read at byte %u", (unsigned) file.failed);
        assert_refused(&file, reason);
    }

    file.fails = 0;
    assert_null(refused(&file, payload));

    free(payload);
    free(file.bytes);
}


/* A chunk that failed can be asked for again. */
static void
test_reading_continues_after_a_failed_chunk(void **state)
{
    file_t                       file;
    uint8_t                     *dst;
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    (void) state;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 2;

    file = example_file(&image);
    dst = malloc(BLOOM_IMAGE_CHUNK);
    assert_non_null(dst);

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

    /* the table's page was read before the chunk, and is again */

    file.fails = file.reads + 2;
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_int_equal(bloom_image_next(&reader, dst), 1);
    assert_memory_equal(dst, file.bytes + 8192, BLOOM_IMAGE_CHUNK);

    file.fails = file.reads + 1;
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_int_equal(bloom_image_next(&reader, dst), 1);
    assert_memory_equal(dst, file.bytes + 8192 + BLOOM_IMAGE_CHUNK,
                        BLOOM_IMAGE_CHUNK);
    assert_int_equal(bloom_image_next(&reader, dst), 0);

    free(dst);
    free(file.bytes);
}


/*
 * Another image is written over the file after its header was read.  Its bits
 * are good, but for another seed: with this header keys would be absent.
 */
static void
test_an_image_overwritten_while_it_is_read_is_refused(void **state)
{
    file_t                       file, other;
    uint8_t                      dst[3 * 64];
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    (void) state;

    image = blocked;
    bloom_hasher_murmur3(&image.hasher, 1);

    file = example_file(&blocked);
    other = example_file(&image);
    assert_int_equal(file.size, other.size);

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

    memcpy(file.bytes, other.bytes, file.size);
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_non_null(strstr(reader.error, "changed while it was read"));
    assert_int_equal(reader.next, 0);

    free(file.bytes);
    free(other.bytes);
}


/* ---- the header alone, comparing, names ---- */

static void
test_a_header_is_decoded_alone(void **state)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t       *header;
    bloom_image_t  image;

    (void) state;

    header = malloc(BLOOM_IMAGE_PAGE);
    assert_non_null(header);

    bloom_image_encode(&blocked, header);

    assert_int_equal(bloom_image_decode(&image, header, 8384, error), 0);
    assert_null(bloom_image_differs(&image, &blocked));

    assert_int_equal(bloom_image_decode(&image, header, 8383, error), -1);
    assert_string_equal(error, "is truncated: it has 8383 bytes and says it "
                        "should have 8384; copy or build it again");

    assert_int_equal(bloom_image_decode(&image, header, 8385, error), -1);
    assert_string_equal(error, "is longer than it says: it has 8385 bytes and "
                        "says it should have 8384; copy or build it again");

    free(header);
}


static void
test_images_that_cannot_be_merged_differ(void **state)
{
    bloom_image_t  other;

    (void) state;

    /* what does not matter for merging */

    other = blocked;
    other.capacity++;
    other.items = 0;
    other.fpr = 0.5;
    other.flags = 0;
    other.created = 0;
    other.as_of = 0;
    other.build_id[3] = 0;
    other.table_crc++;
    assert_null(bloom_image_differs(&blocked, &other));

    assert_string_equal(bloom_image_differs(&blocked, &classic), "layout");

    other = blocked;
    other.geometry.bits += 512;
    assert_string_equal(bloom_image_differs(&blocked, &other), "bits");

    other = blocked;
    other.geometry.k = 8;
    assert_string_equal(bloom_image_differs(&blocked, &other), "k");

    other = blocked;
    other.hasher.kind = BLOOM_HASH_SIPHASH;
    assert_string_equal(bloom_image_differs(&blocked, &other), "hash");

    other = blocked;
    other.hasher.key[3] ^= 1;
    assert_string_equal(bloom_image_differs(&blocked, &other), "seed");

    other = classic;
    other.hasher.key[15] ^= 1;
    assert_string_equal(bloom_image_differs(&classic, &other), "seed");

    other = blocked;
    other.key_form = BLOOM_FORM_LOWER;
    assert_string_equal(bloom_image_differs(&blocked, &other), "key form");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_a_written_image_is_read_back),
        cmocka_unit_test(test_the_header_is_as_documented),
        cmocka_unit_test(test_a_table_of_several_pages_is_read_back),
        cmocka_unit_test(test_every_damaged_byte_is_detected),
        cmocka_unit_test(test_files_of_a_wrong_length_are_refused),
        cmocka_unit_test(test_another_kind_of_file_is_refused),
        cmocka_unit_test(test_other_versions_and_byte_orders_are_refused),
        cmocka_unit_test(test_impossible_lengths_are_refused),
        cmocka_unit_test(test_lengths_that_do_not_fit_the_bits_are_refused),
        cmocka_unit_test(test_values_out_of_range_are_refused),
        cmocka_unit_test(test_only_free_header_fields_may_change),
        cmocka_unit_test(test_damage_is_located),
        cmocka_unit_test(test_a_failure_of_any_read_is_reported),
        cmocka_unit_test(test_reading_continues_after_a_failed_chunk),
        cmocka_unit_test(test_an_image_overwritten_while_it_is_read_is_refused),
        cmocka_unit_test(test_a_header_is_decoded_alone),
        cmocka_unit_test(test_images_that_cannot_be_merged_differ),
    };

    return cmocka_run_group_tests_name("image", tests, make_examples, NULL);
}
