
/*
 * ngx-bloom info: what an image is, from its header.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bloom_scheme.h"
#include "cli.h"
#include "json.h"
#include "image_read.h"
#include "units.h"


static void
usage(void)
{
    printf(
"Usage: ngx-bloom info [OPTION...] IMAGE...\n"
"\n"
"Shows what images are: layout, hash, how many keys they have and have room\n"
"for, when and up to when they were made.  Reads and checks their headers only;\n"
"\"ngx-bloom verify\" checks every byte.\n"
"\n"
"      --json          print JSON; with several images, an object a line\n"
"  -h, --help          show this\n"
"\n"
"Examples:\n"
"  ngx-bloom info ids.bloom\n"
"  ngx-bloom info --json ids.bloom | jq .items\n");
}


static void
print_json(const char *path, const bloom_image_t *image, int compact)
{
    int                      estimated;
    char                     time[UNITS_LEN];
    json_t                   json;
    const bloom_geometry_t  *g;

    g = &image->geometry;
    estimated = (image->flags & BLOOM_IMAGE_ESTIMATED) != 0;

    json_begin(&json, compact);

    json_text(&json, "file", path);
    json_count(&json, "bytes", bloom_image_file_size(image));
    json_count(&json, "version", BLOOM_IMAGE_VERSION);
    json_hex(&json, "build_id", image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    json_text(&json, "created", format_time(time, image->created));

    if (image->as_of != 0) {
        json_text(&json, "as_of", format_time(time, image->as_of));

    } else {
        json_null(&json, "as_of");
    }

    json_text(&json, "layout", bloom_geometry_layout_name(g->layout));
    json_count(&json, "bits", g->bits);
    json_count(&json, "k", g->k);
    json_count(&json, "lines", g->lines);

    json_text(&json, "hash", bloom_hasher_name(image->hasher.kind));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        json_null(&json, "seed");        /* a secret */

    } else {
        json_count(&json, "seed", bloom_hasher_seed(&image->hasher));
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        json_text(&json, "from", bloom_image_origin_name(image->origin));
        json_text(&json, "scheme",
                  bloom_scheme_name(g->layout, image->hasher.kind));
        json_text(&json, "funnel", bloom_hasher_funnel_name(
                                       bloom_hasher_funnel(&image->hasher)));

        if (g->layout == BLOOM_LAYOUT_LINKS) {
            json_count(&json, "links", g->links);
        }
    }

    json_text(&json, "key", bloom_form_name(image->key_form));
    json_count(&json, "capacity", image->capacity);
    json_number(&json, "fpr", image->fpr);
    json_count(&json, "items", image->items);
    json_bool(&json, "items_estimated", estimated);

    if (estimated) {
        json_number(&json, "items_error",
                    bloom_geometry_items_error(g, image->items));
    }

    json_number(&json, "bits_per_item",
                (double) g->bits / (double) (image->items ? image->items : 1));
    json_number(&json, "expected_fpr", bloom_geometry_fpr(g, image->items));

    json_end(&json);
}


static void
print_text(const char *path, const bloom_image_t *image)
{
    char                     text[UNITS_LEN];
    const bloom_geometry_t  *g;

    g = &image->geometry;

    printf("file            %s\n", path);
    printf("size            %s (%" PRIu64 " bytes)\n",
           format_bytes(text, bloom_image_file_size(image)),
           bloom_image_file_size(image));
    printf("format version  %d\n", BLOOM_IMAGE_VERSION);
    printf("build id        %s\n",
           format_hex(text, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN));
    printf("created         %s\n", format_time(text, image->created));
    printf("complete as of  %s\n", image->as_of != 0
                                   ? format_time(text, image->as_of)
                                   : "not stated");

    printf("layout          %s, %" PRIu64 " bits, k %" PRIu32,
           bloom_geometry_layout_name(g->layout), g->bits, g->k);

    if (g->lines != 0) {
        printf(", lines %" PRIu32, g->lines);
    }

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        printf(", links %" PRIu32, g->links);
    }

    printf("\nhash            %s, ", bloom_hasher_name(image->hasher.kind));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        printf("key secret\n");

    } else {
        printf("seed %" PRIu32 "\n", bloom_hasher_seed(&image->hasher));
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        printf("imported        from %s, scheme %s, keys hashed as %s\n",
               bloom_image_origin_name(image->origin),
               bloom_scheme_name(g->layout, image->hasher.kind),
               bloom_hasher_funnel_name(bloom_hasher_funnel(&image->hasher)));
    }

    printf("key form        %s\n", bloom_form_name(image->key_form));
    printf("capacity        %" PRIu64 " keys at a false-positive rate of %s\n",
           image->capacity, format_rate(text, image->fpr));
    printf("items           %" PRIu64, image->items);

    if (image->flags & BLOOM_IMAGE_ESTIMATED) {
        printf(", estimated, +- %.0f",
               ceil(bloom_geometry_items_error(g, image->items)));
    }

    printf("\nexpected rate   %s with these items\n",
           format_rate(text, bloom_geometry_fpr(g, image->items)));
}


int
cmd_info(int argc, char **argv)
{
    int       c, i, rc, status, json;
    loaded_t  loaded;

    enum { JSON = 256 };

    static const struct option  names[] = {
        { "json", no_argument, NULL, JSON },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    json = 0;

    while ((c = cli_option(argc, argv, ":h", names)) != -1) {

        switch (c) {

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

        if (rc != CLI_OK) {
            status = CLI_ERROR;
            continue;
        }

        if (json) {
            print_json(argv[i], &loaded.image, argc - optind > 1);

        } else {
            printf("%s", i > optind ? "\n" : "");
            print_text(argv[i], &loaded.image);
        }

        load_free(&loaded);
    }

    return status;
}
