
/*
 * ngx-bloom size: of items, rate and memory, two give the third.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_geometry.h"
#include "cli.h"
#include "json.h"
#include "options.h"
#include "units.h"


/* What is asked for; 0: not given, so what is to be found. */
typedef struct {
    uint64_t  items;
    double    fpr;
    uint64_t  bytes;
} plan_t;

typedef struct {
    bloom_geometry_t  geometry;
    uint64_t          items;
    double            fpr;               /* at that many items */
} answer_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom size [OPTION...] (two of -n, -p and -m)\n"
"\n"
"Of the number of keys, the false-positive rate and the memory of a filter, two\n"
"give the third: the least memory, the most keys, or the least rate.\n"
"\n"
"  -n, --items N       so many keys, with k, m or g (decimal)\n"
"  -p, --fpr RATE      false-positive rate, 1e-9 to 0.5, or in %%\n"
"  -m, --memory SIZE   memory of the filter in bytes, or with k, m or g (binary)\n"
"      --layout L      only this layout: blocked or classic (both)\n"
"      --json          print JSON; with both layouts, an object a line\n"
"  -h, --help          show this\n"
"\n"
"An image file is a few KiB larger than the filter.  A zone of nginx takes room\n"
"for two images and a quarter more, unless its size is given.\n"
"\n"
"Examples:\n"
"  ngx-bloom size -n 10m -p 0.001\n"
"  ngx-bloom size -n 10m -m 16m\n"
"  ngx-bloom size -p 1e-6 -m 1g --layout blocked\n");
}


/* Fills what is missing in one layout; CLI_OK, or CLI_ERROR with a message. */
static int
solve(const plan_t *plan, uint32_t layout, answer_t *answer)
{
    char               bytes[UNITS_LEN];
    const char        *name;
    bloom_geometry_t  *g;

    g = &answer->geometry;
    name = bloom_geometry_layout_name(layout);

    answer->items = plan->items;

    if (plan->bytes == 0) {
        if (bloom_geometry_size(g, layout, plan->items, plan->fpr) != 0) {
            cli_error("%" PRIu64 " items at a rate of %g need more than 1 TiB "
                      "in layout %s; take fewer or a higher rate",
                      plan->items, plan->fpr, name);
            return CLI_ERROR;
        }

    } else if (plan->items == 0) {
        answer->items = bloom_geometry_size_capacity(g, layout, plan->bytes,
                                                     plan->fpr);

        if (answer->items == 0) {
            cli_error("%s is too little for even one item at a rate of %g in "
                      "layout %s; give more memory or a higher rate",
                      format_bytes(bytes, plan->bytes), plan->fpr, name);
            return CLI_ERROR;
        }

    } else if (bloom_geometry_size_fpr(g, layout, plan->bytes,
                                       plan->items) == 0) {
        cli_error("%s is too little for %" PRIu64 " items in layout %s, even "
                  "at a rate of %g; give more memory",
                  format_bytes(bytes, plan->bytes), plan->items, name,
                  BLOOM_FPR_MAX);
        return CLI_ERROR;
    }

    answer->fpr = bloom_geometry_fpr(g, answer->items);

    return CLI_OK;
}


static void
print_json(const answer_t *answer, int compact)
{
    json_t                   json;
    const bloom_geometry_t  *g;

    g = &answer->geometry;

    json_begin(&json, compact);
    json_text(&json, "layout", bloom_geometry_layout_name(g->layout));
    json_count(&json, "items", answer->items);
    json_number(&json, "fpr", answer->fpr);
    json_count(&json, "bytes", bloom_geometry_bytes(g));
    json_number(&json, "bits_per_item",
                (double) g->bits / (double) answer->items);
    json_count(&json, "bits", g->bits);
    json_count(&json, "k", g->k);
    json_count(&json, "lines", g->lines);
    json_end(&json);
}


static void
print_row(const answer_t *answer)
{
    char                     rate[UNITS_LEN], bytes[UNITS_LEN], lines[16];
    const bloom_geometry_t  *g;

    g = &answer->geometry;

    snprintf(lines, sizeof(lines), g->lines ? "%" PRIu32 : "-", g->lines);

    printf("%-8s %14" PRIu64 " %12s %11s %10.2f %4" PRIu32 " %6s\n",
           bloom_geometry_layout_name(g->layout), answer->items,
           format_rate(rate, answer->fpr),
           format_bytes(bytes, bloom_geometry_bytes(g)),
           (double) g->bits / (double) answer->items, g->k, lines);
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(int argc, char **argv, plan_t *plan, uint32_t *layout, int *json)
{
    int  c;

    enum { LAYOUT = 256, JSON };

    static const struct option  names[] = {
        { "items",  required_argument, NULL, 'n' },
        { "fpr",    required_argument, NULL, 'p' },
        { "memory", required_argument, NULL, 'm' },
        { "layout", required_argument, NULL, LAYOUT },
        { "json",   no_argument,       NULL, JSON },
        { "help",   no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    while ((c = cli_option(argc, argv, ":n:p:m:h", names)) != -1) {

        switch (c) {

        case 'n':
            if (option_capacity(optarg, &plan->items) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case 'p':
            if (option_fpr(optarg, &plan->fpr) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case 'm':
            if (parse_bytes(optarg, &plan->bytes) != 0 || plan->bytes == 0
                || plan->bytes > BLOOM_BITS_MAX / 8)
            {
                return cli_misuse("-m \"%s\": memory is in bytes, or with k, "
                                  "m or g, up to 1024g", optarg);
            }

            break;

        case LAYOUT:
            if (option_layout(optarg, layout) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case JSON:
            *json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            return CLI_ERROR;
        }
    }

    if (optind != argc) {
        return cli_misuse("\"%s\" is no option", argv[optind]);
    }

    if ((plan->items != 0) + (plan->fpr != 0) + (plan->bytes != 0) != 2) {
        return cli_misuse("give two of -n (items), -p (rate) and -m (memory); "
                          "the third is found");
    }

    return CLI_OK;
}


int
cmd_size(int argc, char **argv)
{
    int       i, n, rc, json;
    plan_t    plan;
    answer_t  answers[2];
    uint32_t  layout;

    memset(&plan, 0, sizeof(plan));
    layout = 0;
    json = 0;

    rc = parse_options(argc, argv, &plan, &layout, &json);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    n = layout ? 1 : 2;

    for (i = 0; i < n; i++) {

        /* both layouts are 1 and 2 */

        if (solve(&plan, layout ? layout : (uint32_t) i + 1, &answers[i])
            != CLI_OK)
        {
            return CLI_ERROR;
        }
    }

    if (!json) {
        printf("layout            items         rate      memory  bits/item"
               "    k  lines\n");
    }

    for (i = 0; i < n; i++) {
        if (json) {
            print_json(&answers[i], n > 1);

        } else {
            print_row(&answers[i]);
        }
    }

    return CLI_OK;
}
