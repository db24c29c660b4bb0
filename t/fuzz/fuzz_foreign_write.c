/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the export of filters to other systems.  The input is the header of an
 * imported image without the zeros at its end.  The fuzzer corrects checksum
 * and lengths, as an attacker would.  Each format is asked to write the image,
 * with the header that the image keeps of its source, which may be nonsense.
 *
 * Either the format gives a reason why it cannot, or it writes a file of
 * exactly this filter and needs no byte that the image lacks.
 */

#include "fuzz.h"

#include "bloom_bytes.h"
#include "bloom_foreign_formats.h"
#include "bloom_image_decode.h"

/* As in docs/image-format.md */
#define AT_FILE_SIZE     16
#define AT_PAYLOAD       24
#define AT_PAYLOAD_SIZE  32
#define AT_CHUNK_SIZE    40
#define AT_LAYOUT        48
#define AT_FLAGS         60
#define AT_BITS          64
#define AT_HEADER_CRC    4092


/* Makes a header of the input; 0 if it is accepted as one. */
static int
decode(bloom_image_t *image, uint8_t page[BLOOM_IMAGE_PAGE],
    const uint8_t *data, size_t size)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    size_t         used;
    bloom_image_t  like;

    memset(&like, 0, sizeof(like));
    bloom_image_encode(&like, page);

    if (size > AT_FILE_SIZE) {
        memcpy(page + AT_FILE_SIZE, data + AT_FILE_SIZE,
               (size < AT_HEADER_CRC ? size : AT_HEADER_CRC) - AT_FILE_SIZE);
    }

    like.geometry.layout = bloom_get32(page + AT_LAYOUT);
    like.geometry.bits = bloom_get64(page + AT_BITS);

    bloom_put64(page + AT_FILE_SIZE, bloom_image_file_size(&like));
    bloom_put64(page + AT_PAYLOAD,
                BLOOM_IMAGE_PAGE + bloom_image_table_size(&like));
    bloom_put64(page + AT_PAYLOAD_SIZE, bloom_image_payload_size(&like));
    bloom_put32(page + AT_CHUNK_SIZE, BLOOM_IMAGE_CHUNK);
    bloom_put32(page + AT_FLAGS, BLOOM_IMAGE_IMPORTED);
    bloom_image_encode_again(page);

    if (bloom_image_decode(image, page, bloom_image_file_size(&like), error)
        == 0)
    {
        return 0;
    }

    /* what is behind the origin has to be zeros */

    if (strstr(error, "reserved bytes") == NULL) {
        return -1;
    }

    used = bloom_image_origin_at(image) + image->origin_len;

    memset(page + used, 0, AT_HEADER_CRC - used);
    bloom_image_encode_again(page);

    return bloom_image_decode(image, page, bloom_image_file_size(&like),
                              error);
}


/* What is written makes the same filter. */
static void
comes_back(const bloom_foreign_format_t *format, const bloom_image_t *image,
    const bloom_foreign_out_t *out, uint64_t size)
{
    uint32_t         i;
    bloom_foreign_t  f;

    memset(&f, 0, sizeof(f));

    f.funnel = bloom_hasher_funnel(&image->hasher);

    if (format == &bloom_foreign_bitmap) {
        f.layout = image->geometry.layout;
        f.hash = image->hasher.kind;
        f.bits = image->geometry.bits;
        f.k = image->geometry.k;

        /* a name stands for the hash of bytes, whatever the funnel */

        if (f.hash == BLOOM_HASH_FUNNEL) {
            f.hash = BLOOM_HASH_MURMUR3;
        }
    }

    expect(format->parse(&f, out->head, out->head_len, size) == 0);
    expect(bloom_geometry_equal(&f.image.geometry, &image->geometry));

    /* no format has the key form; import has an option for it */

    f.image.key_form = image->key_form;

    /* a bitmap does not say how its keys are hashed */

    expect(bloom_image_differs(&f.image, image) == NULL
           || format == &bloom_foreign_bitmap);
    expect(f.payload == out->head_len);
    expect(f.order == out->order);

    for (i = 0; i < bloom_foreign_links(&image->geometry); i++) {
        expect(f.link_bytes[i] == out->link_bytes[i]);
    }
}


static void
write_as(const bloom_foreign_format_t *format, const bloom_image_t *image,
    const uint8_t *origin)
{
    uint32_t             i;
    uint64_t             bytes, offset, size;
    bloom_link_t         link;
    bloom_foreign_out_t  out;

    memset(&out, 0, sizeof(out));

    out.items = image->items;

    if (format->write(&out, image, origin) != 0) {
        expect(out.error[0] != '\0');
        expect(strlen(out.error) < BLOOM_FOREIGN_ERROR_LEN - 1);
        return;
    }

    expect(out.head_len <= BLOOM_FOREIGN_HEAD);
    expect(out.tail_len <= image->origin_len);
    expect(out.tail_len == 0
           || (out.tail >= origin
               && out.tail + out.tail_len <= origin + image->origin_len));

    size = out.head_len + out.tail_len;

    for (i = 0; i < bloom_foreign_links(&image->geometry); i++) {
        link = bloom_foreign_link(&image->geometry, i, &offset);
        bytes = out.link_bytes[i];

        expect(bytes >= (link.bits + 7) / 8);
        expect(bytes <= bloom_geometry_whole_lines(link.bits) / 8);
        expect(offset + bytes <= bloom_image_payload_size(image));
        expect(out.order != BLOOM_ORDER_BE || bytes % 8 == 0);

        size += bytes;
    }

    comes_back(format, image, &out, size);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned                       i;
    uint8_t                       *origin;
    bloom_image_t                  image;
    const bloom_foreign_format_t  *format;

    static uint8_t  page[BLOOM_IMAGE_PAGE];

    if (decode(&image, page, data, size) != 0) {
        return 0;
    }

    /* exactly as large, so that a byte too far is seen */

    origin = malloc(image.origin_len);
    memcpy(origin, page + bloom_image_origin_at(&image), image.origin_len);

    for (i = 0; (format = bloom_foreign_formats_list(i)) != NULL; i++) {
        if (format->write != NULL) {
            write_as(format, &image, origin);
        }
    }

    free(origin);

    return 0;
}
