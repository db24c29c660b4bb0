
/*
 * ngx-bloom verify: every byte of images against its checksum, and what their
 * bits say about themselves.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_census.h"
#include "cli.h"
#include "json.h"
#include "image_read.h"
#include "units.h"


typedef struct {
    double    fill;                      /* share of bits that are set */
    double    fpr;                       /* of exactly these bits */
    uint64_t  items;                     /* estimated from the bits */
    double    items_error;               /* standard error of that */
} findings_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom verify [OPTION...] IMAGE...\n"
"\n"
"Reads images and checks every byte.  For a good one it prints what the bits\n"
"themselves say: the share of them that is set, the false-positive rate of\n"
"exactly these bits, and an estimate of the number of keys.\n"
"\n"
"  -q, --quiet         print nothing but errors\n"
"      --json          print JSON; with several images, an object a line\n"
"  -h, --help          show this\n"
"\n"
"Exit status: 0 all are good; 1 some is damaged, or no image; 2 some could not\n"
"be read.\n"
"\n"
"Examples:\n"
"  ngx-bloom verify ids.bloom\n"
"  ngx-bloom verify -q ids.bloom.new && mv ids.bloom.new ids.bloom\n");
}


/* Reads the chunks of an image whose header is good. */
static int
examine(loaded_t *loaded, findings_t *findings)
{
    int                      rc;
    void                    *chunk;
    uint64_t                 i;
    bloom_census_t           census;
    const bloom_geometry_t  *g;

    g = &loaded->image.geometry;
    chunk = cli_alloc(BLOOM_IMAGE_CHUNK);

    memset(&census, 0, sizeof(census));
    rc = CLI_OK;

    for (i = 0; i < bloom_image_chunks(&loaded->image); i++) {
        rc = load_chunk(loaded, chunk);

        if (rc != CLI_OK) {
            break;
        }

        bloom_census(&census, g, chunk,
                     bloom_image_chunk_size(&loaded->image, i)
                     / sizeof(uint64_t));
    }

    free(chunk);

    findings->fill = bloom_census_fill(&census);
    findings->fpr = bloom_census_fpr(&census, g);
    findings->items = bloom_census_items(&census, g);
    findings->items_error = bloom_geometry_items_error(g, findings->items);

    return rc;
}


static void
print_json(const loaded_t *loaded, int rc, const findings_t *findings,
    int compact)
{
    json_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, compact);

    json_text(&json, "file", loaded->path);
    json_text(&json, "result", results[rc]);

    if (rc != CLI_OK) {
        json_text(&json, "error", loaded->error);

    } else {
        json_count(&json, "items", loaded->image.items);
        json_count(&json, "estimated_items", findings->items);
        json_number(&json, "estimated_items_error", findings->items_error);
        json_number(&json, "fill", findings->fill);
        json_number(&json, "fpr", findings->fpr);
    }

    json_end(&json);
}


static void
print_text(const loaded_t *loaded, const findings_t *findings)
{
    char  fill[UNITS_LEN], rate[UNITS_LEN];

    printf("%s: ok, %" PRIu64 " items, %s of the bits set, false-positive "
           "rate %s, %" PRIu64 " +- %.0f items estimated from the bits\n",
           loaded->path, loaded->image.items,
           format_rate(fill, findings->fill),
           format_rate(rate, findings->fpr),
           findings->items, ceil(findings->items_error));
}


int
cmd_verify(int argc, char **argv)
{
    int         c, i, rc, status, quiet, json;
    loaded_t    loaded;
    findings_t  findings;

    enum { JSON = 256 };

    static const struct option  names[] = {
        { "quiet", no_argument, NULL, 'q' },
        { "json",  no_argument, NULL, JSON },
        { "help",  no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    quiet = 0;
    json = 0;

    while ((c = cli_option(argc, argv, ":qh", names)) != -1) {

        switch (c) {

        case 'q':
            quiet = 1;
            break;

        case JSON:
            json = 1;
            break;

        case 'h':
            usage();
            return CLI_OK;

        default:
            return CLI_ERROR;
        }
    }

    if (optind == argc) {
        return cli_misuse("no image is named");
    }

    status = CLI_OK;

    for (i = optind; i < argc; i++) {

        rc = load_header(argv[i], &loaded);

        if (rc == CLI_OK) {
            rc = examine(&loaded, &findings);
            load_free(&loaded);
        }

        if (json) {
            print_json(&loaded, rc, &findings, argc - optind > 1);

        } else if (rc == CLI_OK && !quiet) {
            print_text(&loaded, &findings);
        }

        status = rc > status ? rc : status;
    }

    return status;
}
