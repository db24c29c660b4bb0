/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has what the fuzzers of other systems' filters share.  There is
 * one fuzzer for each format, fuzz_foreign_FORMAT.c, whose input is a file of
 * that format.  If a file is accepted, every value is in range, the header of
 * its image is accepted, a key that is added is present, and the export gives
 * the same file.
 */

#ifndef BLOOM_FUZZ_FOREIGN_H
#define BLOOM_FUZZ_FOREIGN_H

#include "fuzz.h"

#include "bloom_bytes.h"
#include "bloom_census.h"
#include "bloom_foreign_formats.h"
#include "bloom_foreign_unread.h"
#include "bloom_scheme.h"
#include "bloom_image_decode.h"

#define SIZE_MAX_HERE  (1024 * 1024)


/* Checks that the header of the image is accepted and has the origin. */
static void
header(const bloom_image_t *image, const uint8_t *origin)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        page[BLOOM_IMAGE_PAGE];
    bloom_image_t  again;

    bloom_image_encode(image, page);
    expect(image->origin_len <= bloom_image_origin_room(image));
    memcpy(page + bloom_image_origin_at(image), origin, image->origin_len);
    bloom_image_encode_again(page);

    expect(bloom_image_decode(&again, page, bloom_image_file_size(image),
                              error) == 0);
    expect(bloom_image_differs(image, &again) == NULL);
    expect(again.origin == image->origin
           && again.origin_len == image->origin_len);
    expect(memcmp(page + bloom_image_origin_at(&again), origin,
                  image->origin_len) == 0);
}


/* Returns the bits in the order of an image; NULL if there are too many. */
static uint64_t *
bits(const bloom_foreign_t *f, const uint8_t *data, size_t size)
{
    uint32_t   i;
    uint64_t   offset, at, n;
    uint64_t  *words;

    if (bloom_image_payload_size(&f->image) > SIZE_MAX_HERE) {
        return NULL;
    }

    words = calloc(1, bloom_image_payload_size(&f->image));
    at = f->payload;

    for (i = 0; i < bloom_foreign_links(&f->image.geometry); i++) {

        (void) bloom_foreign_link(&f->image.geometry, i, &offset);
        n = f->link_bytes[i];

        expect(offset + n <= bloom_image_payload_size(&f->image));

        if (n > size - at) {
            expect(f->may_be_short);
            n = size - at;
        }

        memcpy((uint8_t *) words + offset, data + at, n);
        bloom_foreign_order(f->order, (uint8_t *) words + offset, n);
        at += n;
    }

    return words;
}


static void
use(const bloom_foreign_t *f, uint64_t *words)
{
    size_t            i;
    bloom_hash_t      hash;
    bloom_census_t    census;

    static const char *const  keys[] = {
        "", "a", "-12", "99999999999999999999", "\xc3\xa9\xff\xf0\x9f\x98\x80",
        "a key that has more than two blocks of sixteen"
    };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        hash = bloom_hash(&f->image.hasher, keys[i], strlen(keys[i]));
        (void) bloom_layout_add_atomic(&f->image.geometry, words, hash);
        expect(bloom_layout_test(&f->image.geometry, words, hash));
        expect(bloom_layout_add(&f->image.geometry, words, hash) == 0);
    }

    expect(bloom_foreign_padded(&f->image.geometry, words));

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &f->image.geometry, words,
                 bloom_image_payload_size(&f->image) / 8);
    expect(bloom_census_fill(&census) > 0 && bloom_census_fill(&census) <= 1);
    expect(bloom_census_fpr(&census) >= 0
           && bloom_census_fpr(&census) <= 1);
}


static void
write_back(const bloom_foreign_format_t *format, const bloom_foreign_t *f,
    const uint8_t *data)
{
    uint32_t             i;
    bloom_foreign_out_t  out;

    if (format->write == NULL) {
        return;
    }

    memset(&out, 0, sizeof(out));

    expect(format->write(&out, &f->image, data) == 0);
    expect(out.head_len == f->payload);
    expect(memcmp(out.head, data, out.head_len) == 0);
    expect(out.order == f->order);
    expect(out.tail_len == 0);

    for (i = 0; i < bloom_foreign_links(&f->image.geometry); i++) {
        expect(out.link_bytes[i] == f->link_bytes[i]);
    }
}


/*
 * Tests a file with a known size, and as from a pipe, with an unknown size.
 * `said` has what the user states.
 */
static void
fuzz_foreign(const bloom_foreign_format_t *format, const bloom_foreign_t *said,
    const uint8_t *data, size_t size)
{
    int              rc;
    size_t           len;
    uint8_t         *copy;
    uint64_t        *words;
    bloom_foreign_t  f, piped;

    /* memory of exactly that size: sanitizers notice a read beyond */

    copy = malloc(size);
    memcpy(copy, data, size);

    f = *said;
    piped = *said;
    len = size < BLOOM_FOREIGN_HEAD ? size : BLOOM_FOREIGN_HEAD;

    (void) bloom_foreign_formats_guess(copy, len, size);
    (void) bloom_foreign_unread(copy, len, size);
    (void) bloom_foreign_unread(copy, len, BLOOM_FOREIGN_UNKNOWN);

    rc = format->parse(&f, copy, len, size);

    if (format->parse(&piped, copy, len, BLOOM_FOREIGN_UNKNOWN) != 0) {
        expect(rc != 0);
        expect(piped.error[0] != '\0'
               && memchr(piped.error, '\0', sizeof(piped.error)) != NULL);

    } else if (rc == 0) {
        expect(memcmp(&piped, &f, sizeof(f)) == 0);
    }

    if (rc != 0) {
        expect(f.error[0] != '\0'
               && memchr(f.error, '\0', sizeof(f.error)) != NULL);
        free(copy);
        return;
    }

    expect(bloom_geometry_valid(&f.image.geometry));
    expect(bloom_hasher_valid(&f.image.hasher));
    expect(bloom_scheme_valid(f.image.geometry.layout, f.image.hasher.kind));
    expect(f.image.origin_len <= size);
    expect(f.may_be_short || f.payload + f.bytes <= size);
    expect(f.may_be_long || f.payload + f.bytes >= size);

    header(&f.image, copy);
    write_back(format, &f, copy);

    words = bits(&f, copy, size);

    if (words != NULL && bloom_foreign_padded(&f.image.geometry, words)) {
        use(&f, words);
    }

    free(words);
    free(copy);
}


/* Tests a file with each funnel that the user may state. */
static inline void
fuzz_foreign_funnels(const bloom_foreign_format_t *format, const uint8_t *data,
    size_t size)
{
    bloom_foreign_t  said;

    memset(&said, 0, sizeof(said));

    while (bloom_hasher_funnel_name(said.funnel) != NULL) {
        fuzz_foreign(format, &said, data, size);
        said.funnel++;
    }
}


#endif /* BLOOM_FUZZ_FOREIGN_H */
