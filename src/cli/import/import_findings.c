/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file measures an imported filter, and warns if it is empty, over-full or
 * has a higher false-positive rate than it should.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_murmur3.h"
#include "bloom_scheme.h"
#include "cli.h"
#include "image_json.h"
#include "image_read.h"
#include "import_findings.h"
#include "units.h"
#include "visible.h"


/* Looks up random keys in the form of the source's keys.  Returns how many are
 * present. */
static uint64_t
probe(const bloom_image_t *image, const uint64_t *words)
{
    int       len;
    char      key[40];
    uint32_t  funnel;
    uint64_t  i, x, seed, found;

    funnel = bloom_hasher_funnel(&image->hasher);
    cli_random(&seed, sizeof(seed));

    for (found = 0, i = 0; i < IMPORT_FINDINGS_PROBES; i++) {

        x = bloom_murmur3_mix(seed + i * 0x9e3779b97f4a7c15);

        if (funnel == BLOOM_FUNNEL_INT) {
            len = sprintf(key, "%" PRId32, (int32_t) x);

        } else if (funnel == BLOOM_FUNNEL_LONG) {
            len = sprintf(key, "%" PRId64, (int64_t) x);

        } else {
            len = sprintf(key, "%016" PRIx64, x);
        }

        found += (uint64_t) bloom_layout_test(&image->geometry, words,
                                              bloom_hash(&image->hasher, key,
                                                         (size_t) len));
    }

    return found;
}


void
import_findings_measure(import_findings_t *findings, bloom_foreign_t *f,
    const uint64_t *words)
{
    bloom_image_t   *image;
    bloom_census_t   census;

    image = &f->image;

    census = image_read_census(image, words);

    image->items = bloom_census_items(&census);
    image->origin_items = image->items;

    findings->fill_ratio = bloom_census_fill(&census);
    findings->estimated_fpr = bloom_census_fpr(&census);
    findings->found = probe(image, words);
    findings->measured_fpr = (double) findings->found / IMPORT_FINDINGS_PROBES;
}


/* Returns 1 if more keys were found than are likely at twice the rate, else
 * 0. */
static int
more_than_twice(uint64_t found, double rate)
{
    double  twice;

    twice = 2 * rate * IMPORT_FINDINGS_PROBES;

    return (double) found > twice + 4 + 2 * twice / (1 + twice / 16);
}


void
import_findings_warn(const import_findings_t *findings,
    const bloom_foreign_t *f, const char *output)
{
    char                  a[UNITS_LEN], b[UNITS_LEN];
    const bloom_image_t  *image;

    image = &f->image;

    if (f->lost_len != 0) {
        cli_warn("%s: cannot be exported again: the source's header has %zu "
                 "bytes, and an image of %" PRIu32 " links has room for %"
                 PRIu32 "; keep the source", output, f->lost_len,
                 bloom_foreign_links(&image->geometry),
                 bloom_image_origin_room(image));
    }

    if (findings->fill_ratio <= 0) {
        cli_warn("%s: is empty: no bit of the source is set, so every key is "
                 "absent; check that it is the right source, and that all of "
                 "it was copied", output);
    }

    if (more_than_twice(findings->found, findings->estimated_fpr)) {
        cli_warn("%s: %s of %d random keys are present, but the fill ratio "
                 "predicts %s: the source's hash spreads keys badly over this "
                 "number of bits (known causes: very few bits; DCSO with a "
                 "power of two; 32-bit hashes with more than 2^31 bits); "
                 "build an image from the keys instead",
                 output, format_rate(a, findings->measured_fpr),
                 IMPORT_FINDINGS_PROBES,
                 format_rate(b, findings->estimated_fpr));
    }

    if (f->promised && more_than_twice(findings->found, image->fpr)) {
        cli_warn("%s: %s of %d random keys are present, but the source "
                 "promised %s; expect that many false positives",
                 output, format_rate(a, findings->measured_fpr),
                 IMPORT_FINDINGS_PROBES, format_rate(b, image->fpr));
    }

    if (findings->fill_ratio > 0.6
        || (image->items > image->capacity + image->capacity / 10
            && findings->estimated_fpr > 1.5 * image->fpr))
    {
        cli_warn("%s: is over-full: it has about %" PRIu64 " key%s, but %s %"
                 PRIu64 ", and %s of its bits are set; build a larger filter",
                 output, image->items, CLI_S(image->items),
                 f->promised ? "was made for" : "has bits for",
                 image->capacity, format_rate(a, findings->fill_ratio));
    }
}


void
import_findings_json(const import_findings_t *findings,
    const import_check_t *check, const bloom_foreign_t *f, const char *output)
{
    bloom_json_writer_t  json;

    json_begin(&json, 0);
    image_json(&json, output, &f->image, NULL,
               image_json_items_error(&f->image),
               bloom_image_fpr(&f->image, f->image.items));

    if (f->claimed != BLOOM_FOREIGN_UNKNOWN) {
        bloom_json_put_count(&json, "items_claimed", f->claimed);

    } else {
        bloom_json_put_null(&json, "items_claimed");
    }

    bloom_json_put_bool(&json, "promised", f->promised);
    bloom_json_put_number(&json, "fill_ratio", findings->fill_ratio);
    bloom_json_put_number(&json, "measured_fpr", findings->measured_fpr);

    if (check->keys != 0) {
        bloom_json_put_count(&json, "checked", check->keys);

    } else {
        bloom_json_put_null(&json, "checked");
    }

    json_end(&json);
}


void
import_findings_print(const import_findings_t *findings,
    const import_check_t *check, const bloom_foreign_t *f, const char *output)
{
    char                  a[UNITS_LEN], b[UNITS_LEN], c[UNITS_LEN];
    const bloom_image_t  *image;

    image = &f->image;

    visible_name(output);
    printf(": %s, keys hashed as %s, %" PRIu64 " bits, k %" PRIu32,
           bloom_scheme_name(image->geometry.layout, image->hasher.kind),
           bloom_hasher_funnel_name(bloom_hasher_funnel(&image->hasher)),
           image->geometry.bits, image->geometry.k);

    if (image->geometry.layout == BLOOM_LAYOUT_LINKS) {
        printf(", %" PRIu32 " links", image->geometry.links);
    }

    putchar('\n');
    visible_name(output);
    printf(": about %" PRIu64 " key%s", image->items, CLI_S(image->items));

    if (f->claimed != BLOOM_FOREIGN_UNKNOWN) {
        printf(" (the source says %" PRIu64 ")", f->claimed);
    }

    printf(", fill ratio %s, false-positive rate %s estimated, %s measured\n",
           format_rate(a, findings->fill_ratio),
           format_rate(b, findings->estimated_fpr),
           format_rate(c, findings->measured_fpr));

    visible_name(output);

    if (check->keys != 0) {
        printf(": finds all %" PRIu64 " key%s of --check\n", check->keys,
               CLI_S(check->keys));

    } else {
        printf(": not checked: name a file of keys that the source has with "
               "--check\n");
    }

    visible_name(output);
    printf(": its hash has no secret: people who choose keys can find keys "
           "that pass\n");
}
