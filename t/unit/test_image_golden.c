/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests make each image of t/golden/ byte for byte, and read it back with
 * all values of its golden vector.
 */

#include <ctype.h>
#include <glob.h>
#include <inttypes.h>

#include "unit.h"

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"
#include "bloom_image_reader.h"
#include "bloom_image_seal.h"

#define VECTORS   "t/golden/*.txt"
#define KEYS_MAX  64
#define DATA_MAX  4096


typedef struct {
    size_t   len;
    char    *data;
} blob_t;

typedef struct {
    const char     *file;
    bloom_image_t   image;
    blob_t          keys[KEYS_MAX];
    uint32_t        grown[KEYS_MAX];     /* layers when that key is added, or its
                                            slice */
    size_t          nkeys;
    blob_t          absent[KEYS_MAX];
    size_t          nabsent;
    uint8_t         origin[64];          /* header of an imported filter */
    bloom_image_ring_t  ring;            /* of slices */
    uint8_t         data[DATA_MAX];      /* exceptions, and zeros */
    uint64_t        size;
    uint8_t        *bytes;               /* the listing */
} vector_t;


/* Returns the number of a layout, whether native or imported. */
static uint32_t
parse_layout(const char *name)
{
    uint32_t     layout;
    const char  *found;

    for (layout = 1; layout < 20; layout++) {
        found = bloom_geometry_layout_name(layout);

        if (found != NULL && strcmp(found, name) == 0) {
            return layout;
        }
    }

    return 0;
}


static void
broken(const vector_t *v, const char *line)
{
    fail_msg("%s: cannot be understood: \"%s\"", v->file, line);
}


/* Reads a value of `len` bytes in hexadecimal, with or without blanks. */
static void
parse_hex(const vector_t *v, const char *text, uint8_t *dst, size_t len)
{
    int          n;
    size_t       i;
    const char  *p;

    for (p = text, i = 0; i < len; i++, p += n) {
        if (sscanf(p, " %2hhx%n", &dst[i], &n) != 1) {
            broken(v, text);
        }
    }

    if (p[strspn(p, " ")] != '\0') {
        broken(v, text);
    }
}


/* Decodes \xNN and \\ in place. */
static blob_t
parse_key(const vector_t *v, char *text)
{
    char    *d, *s;
    blob_t   key;

    for (d = s = text; *s != '\0'; s++) {
        if (*s != '\\') {
            *d++ = *s;

        } else if (s[1] == '\\') {
            *d++ = '\\';
            s++;

        } else if (s[1] == 'x' && isxdigit((unsigned char) s[2])
                   && isxdigit((unsigned char) s[3]))
        {
            sscanf(s + 2, "%2hhx", (unsigned char *) d++);
            s += 3;

        } else {
            broken(v, s);
        }
    }

    key.len = (size_t) (d - text);
    key.data = unit_alloc(key.len + 1);
    memcpy(key.data, text, key.len);

    return key;
}


/* Appends a layer, "BITS K LINES". */
static void
parse_layer(vector_t *v, const char *text)
{
    bloom_layer_t  *layer;

    assert_true(v->image.geometry.layers < BLOOM_LAYERS_MAX);

    layer = &v->image.geometry.layer[v->image.geometry.layers++];

    if (sscanf(text, "%" SCNu64 " %" SCNu32 " %" SCNu32, &layer->bits,
               &layer->k, &layer->lines)
        != 3)
    {
        broken(v, text);
    }
}


/* Appends an exception, "KINDS TIME KEY", to the vector's data. */
static void
parse_exception(vector_t *v, char *text)
{
    int                 n;
    blob_t              key;
    unsigned            kinds;
    uint64_t            time;
    bloom_exception_t   exception;

    if (sscanf(text, "%u %" SCNu64 " %n", &kinds, &time, &n) != 2) {
        broken(v, text);
    }

    key = parse_key(v, text + n);

    exception.kinds = kinds;
    exception.time = time;
    exception.key.data = (uint8_t *) key.data;
    exception.key.len = key.len;

    assert_true(v->image.exceptions_size + bloom_exception_size(&exception)
                <= DATA_MAX);

    (void) bloom_exception_write(&exception,
                                 v->data + v->image.exceptions_size);
    bloom_exception_count(&v->image, &exception);

    free(key.data);
}


/* Sets the source, "NAME HIGH-LOW" or "NAME HIGH". */
static void
parse_source(vector_t *v, const char *text)
{
    bloom_source_t  source;

    memset(&source, 0, sizeof(source));
    source.len = (uint32_t) strcspn(text, " ");
    assert_in_range(source.len, 1, BLOOM_SOURCE_NAME_MAX);
    memcpy(source.name, text, source.len);

    if (sscanf(text + source.len, " %" SCNu64 "-%" SCNu64,
               &source.position.high, &source.position.low)
        < 1)
    {
        broken(v, text);
    }

    bloom_image_set_source(&v->image, &source);
}


/* Appends a slice, "STATE OPENED CLOSED". */
static void
parse_slice(vector_t *v, const char *text)
{
    char      state[8];
    uint32_t  i;
    uint64_t  bit;

    i = v->image.geometry.slices++;
    bit = (uint64_t) 1 << i;

    if (sscanf(text, "%7s %" SCNu64 " %" SCNu64, state, &v->ring.opened[i],
               &v->ring.closed[i])
        != 3)
    {
        broken(v, text);
    }

    v->ring.live |= strcmp(state, "empty") != 0 ? bit : 0;
    v->ring.full |= strcmp(state, "full") == 0 ? bit : 0;
    v->ring.open = strcmp(state, "open") == 0 ? i : v->ring.open;
}


/* Sets the copy, "JOURNAL POSITION SEQUENCE TIME REMOVED BYTES". */
static void
parse_copy(vector_t *v, char *text)
{
    bloom_image_copy_t  *copy;

    copy = &v->image.copy;

    if (strcspn(text, " ") != 2 * BLOOM_IMAGE_JOURNAL_LEN
        || sscanf(text + 2 * BLOOM_IMAGE_JOURNAL_LEN, "%" SCNu64 " %" SCNu64
                  " %" SCNu64 " %" SCNu64 " %" SCNu64, &copy->position,
                  &copy->sequence, &copy->time, &copy->removed,
                  &copy->removed_bytes)
           != 5)
    {
        broken(v, text);
    }

    text[2 * BLOOM_IMAGE_JOURNAL_LEN] = '\0';
    parse_hex(v, text, copy->journal, BLOOM_IMAGE_JOURNAL_LEN);
}


/* Fields that are a number, of 4 or of 8 bytes. */

#define field(member)                                                        \
    offsetof(bloom_image_t, member), sizeof(((bloom_image_t *) 0)->member)

static const struct {
    const char  *name;
    size_t       at;
    size_t       len;
} numbers[] = {
    { "k", field(geometry.k) },
    { "lines", field(geometry.lines) },
    { "bits", field(geometry.bits) },
    { "flags", field(flags) },
    { "capacity", field(capacity) },
    { "items", field(items) },
    { "created", field(created) },
    { "as-of", field(as_of) },
    { "origin", field(origin) },
    { "origin-items", field(origin_items) },
    { "base-keys", field(geometry.fuse.keys) },
    { "room", field(geometry.fuse.room) },
    { "wide-slots", field(geometry.fuse.wide) },
    { "segment-length", field(geometry.fuse.length) },
    { "segments", field(geometry.fuse.segments) },
    { "shard-bits", field(geometry.fuse.shard_bits) },
    { "slot-bits", field(geometry.fuse.width) },
};


static void
parse_field(vector_t *v, const char *name, char *value)
{
    int             form;
    size_t          i;
    uint64_t        number;
    bloom_image_t  *im;

    im = &v->image;
    number = strtoull(value, NULL, 0);

    for (i = 0; i < array_len(numbers); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            memcpy((uint8_t *) im + numbers[i].at, &number, numbers[i].len);
            return;
        }
    }

    if (strcmp(name, "size") == 0) {
        v->size = number;

    } else if (strcmp(name, "seed") == 0) {
        bloom_hasher_murmur3(&im->hasher, (uint32_t) number);

    } else if (strcmp(name, "fpr") == 0) {
        im->fpr = strtod(value, NULL);

    } else if (strcmp(name, "layout") == 0) {
        im->geometry.layout = parse_layout(value);

    } else if (strcmp(name, "hash") == 0) {
        im->hasher.kind = bloom_hasher_parse(value, strlen(value));

    } else if (strcmp(name, "form") == 0) {
        form = bloom_form_parse(value, strlen(value));
        assert_int_not_equal(form, -1);
        im->key_form = (uint32_t) form;

    } else if (strcmp(name, "hash-key") == 0) {
        parse_hex(v, value, im->hasher.key, BLOOM_HASH_KEY_LEN);

    } else if (strcmp(name, "build-id") == 0) {
        parse_hex(v, value, im->build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    } else if (strcmp(name, "source-header") == 0) {
        im->origin_len = (uint32_t) strlen(value) / 2;
        assert_in_range(im->origin_len, 1, sizeof(v->origin));
        parse_hex(v, value, v->origin, im->origin_len);

    } else if (strcmp(name, "layer") == 0) {
        parse_layer(v, value);

    } else if (strcmp(name, "slice") == 0) {
        parse_slice(v, value);

    } else if (strcmp(name, "copy") == 0) {
        parse_copy(v, value);

    } else if (strcmp(name, "salts") == 0) {
        /* of a fuse base, whose bytes are taken from the vector */

    } else if (strcmp(name, "source") == 0) {
        parse_source(v, value);

    } else if (strcmp(name, "exception") == 0) {
        parse_exception(v, value);

    } else if (strcmp(name, "key") == 0 && v->nkeys < KEYS_MAX) {
        v->grown[v->nkeys] = im->geometry.slices != 0
                             ? im->geometry.slices - 1u : im->geometry.layers;
        v->keys[v->nkeys++] = parse_key(v, value);

    } else if (strcmp(name, "absent") == 0 && v->nabsent < KEYS_MAX) {
        v->absent[v->nabsent++] = parse_key(v, value);

    } else {
        broken(v, name);
    }
}


/* Reads a line "offset: hexadecimal"; bytes that are not listed are zero. */
static void
parse_row(vector_t *v, const char *line)
{
    int       n;
    uint64_t  offset;

    if (sscanf(line, "%" SCNx64 ":%n", &offset, &n) != 1
        || offset >= v->size)
    {
        broken(v, line);
    }

    parse_hex(v, line + n, v->bytes + offset,
              v->size - offset < 16 ? v->size - offset : 16);
}


static void
read_vector(vector_t *v, const char *file)
{
    int     image;
    char    line[4096], *value;
    FILE   *f;
    size_t  len;

    memset(v, 0, sizeof(*v));
    v->file = file;

    f = fopen(file, "r");
    assert_non_null(f);

    for (image = 0; fgets(line, sizeof(line), f) != NULL; /* void */ ) {
        len = strcspn(line, "\n");

        if (line[len] != '\n') {
            broken(v, line);
        }

        line[len] = '\0';

        if (image) {
            parse_row(v, line);

        } else if (strcmp(line, "image") == 0) {
            image = 1;
            v->bytes = unit_zeros(v->size);

        } else if (len != 0 && line[0] != '#') {
            value = line + strcspn(line, " ");

            if (*value != '\0') {
                *value++ = '\0';
            }

            parse_field(v, line, value + strspn(value, " "));
        }
    }

    fclose(f);

    assert_true(image);
}


static void
free_vector(vector_t *v)
{
    size_t  i;

    for (i = 0; i < v->nkeys; i++) {
        free(v->keys[i].data);
    }

    for (i = 0; i < v->nabsent; i++) {
        free(v->absent[i].data);
    }

    free(v->bytes);
}


static bloom_hash_t
hash(const vector_t *v, const blob_t *key)
{
    return bloom_hash(&v->image.hasher, key->data, key->len);
}


/*
 * Makes a whole file from the vector's parameters and keys.  The equations of a
 * fuse base have many solutions: the one of the vector is taken.
 */
static uint8_t *
make(const vector_t *v)
{
    size_t          i;
    uint8_t        *file, *table, *p;
    uint64_t       *words;
    bloom_image_t   image;

    image = v->image;

    assert_true(bloom_geometry_valid(&image.geometry));
    assert_int_equal(bloom_image_file_size(&image), v->size);

    words = unit_zeros(bloom_image_payload_size(&image));
    file = unit_alloc(v->size);

    if (image.geometry.layout == BLOOM_LAYOUT_FUSE) {
        memcpy(words, v->bytes + bloom_image_payload_part(&image).data,
               image.geometry.bits / 8);
    }

    for (i = 0; i < v->nkeys; i++) {
        if (image.geometry.slices != 0) {
            image.geometry.open = v->grown[i];

        } else {
            image.geometry.layers = v->grown[i];
        }

        bloom_layout_add(&image.geometry, words, hash(v, &v->keys[i]));
    }

    image.geometry = v->image.geometry;

    table = file + BLOOM_IMAGE_PAGE;

    bloom_image_seal(&image, words, table);
    p = table + bloom_image_table_size(&image);
    memcpy(p, words, bloom_image_payload_size(&image));

    table = p + bloom_image_payload_size(&image);
    bloom_image_seal_exceptions(&image, v->data, table);
    p = table + bloom_image_exceptions_table_size(&image);
    memcpy(p, v->data, bloom_image_exceptions_padded(&image));

    bloom_image_encode(&image, file);

    memcpy(file + bloom_image_origin_at(&image), v->origin, image.origin_len);
    bloom_image_encode_again(file);

    if (image.flags & BLOOM_IMAGE_RING) {
        bloom_image_put_ring(&image, &v->ring, file);
    }

    free(words);

    return file;
}


static void
check_made(const char *name)
{
    vector_t   v;
    uint8_t   *file;
    uint64_t   i;

    read_vector(&v, name);
    file = make(&v);

    for (i = 0; i < v.size; i++) {
        if (file[i] != v.bytes[i]) {
            fail_msg("%s: byte %" PRIu64 " is made as 0x%02x, and it is 0x%02x"
                     " there", v.file, i, file[i], v.bytes[i]);
        }
    }

    free(file);
    free_vector(&v);
}


static int
read_listing(void *ctx, void *buf, size_t len, uint64_t offset)
{
    vector_t  *v = ctx;

    assert_true(offset <= v->size && len <= v->size - offset);
    memcpy(buf, v->bytes + offset, len);

    return 0;
}


static void
check_read(const char *name)
{
    int                    rc;
    size_t                 i;
    vector_t               v;
    uint64_t              *words;
    uint8_t               *p, data[DATA_MAX];
    bloom_image_t         *got;
    bloom_image_reader_t  *reader;

    read_vector(&v, name);

    reader = unit_alloc(sizeof(*reader));

    if (bloom_image_open(reader, read_listing, &v, v.size) != 0) {
        fail_msg("%s %s", v.file, reader->error);
    }

    got = &reader->image;

    v.image.table_crc = got->table_crc;
    v.image.exceptions_crc = got->exceptions_crc;
    assert_memory_equal(got, &v.image, sizeof(*got));
    assert_true(bloom_geometry_equal(&got->geometry, &v.image.geometry));

    if (got->flags & BLOOM_IMAGE_RING) {
        assert_memory_equal(&reader->ring, &v.ring, sizeof(v.ring));
        got->geometry.live = v.ring.live;
    }

    words = unit_alloc(bloom_image_payload_size(got));

    for (p = (uint8_t *) words; (rc = bloom_image_next(reader, p)) == 1;
         /* void */ )
    {
        p += bloom_image_chunk_size(got, reader->next - 1);
    }

    if (rc != 0) {
        fail_msg("%s %s", v.file, reader->error);
    }

    assert_int_equal(p - (uint8_t *) words, bloom_image_payload_size(got));

    if (got->exceptions != 0) {
        assert_int_equal(bloom_image_next_exceptions(reader, data), 1);
        assert_memory_equal(data, v.data, got->exceptions_size);
        assert_null(bloom_exceptions_check(got, data));
    }

    assert_int_equal(bloom_image_next_exceptions(reader, data), 0);

    for (i = 0; i < v.nkeys; i++) {
        assert_true(bloom_layout_test(&got->geometry, words,
                                      hash(&v, &v.keys[i])));
    }

    for (i = 0; i < v.nabsent; i++) {
        assert_false(bloom_layout_test(&got->geometry, words,
                                       hash(&v, &v.absent[i])));
    }

    free(words);
    free(reader);
    free_vector(&v);
}


static void
each_vector(void (*check)(const char *name))
{
    glob_t  found;
    size_t  i;

    if (glob(VECTORS, 0, NULL, &found) != 0) {
        fail_msg("no " VECTORS " here; run it from the top directory of the "
                 "checkout");
    }

    for (i = 0; i < found.gl_pathc; i++) {
        check(found.gl_pathv[i]);
    }

    globfree(&found);
}


TEST(the_core_makes_the_golden_images)
{
    each_vector(check_made);
}


TEST(the_core_reads_the_golden_images)
{
    each_vector(check_read);
}
