/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom size` computes the items, rate or memory of a filter from the
 * other two.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_geometry.h"
#include "cli.h"
#include "command.h"
#include "json.h"
#include "units.h"


/* What is asked for; 0: not given, so what is to be found. */
typedef struct {
    uint64_t  items;
    double    fpr;
    uint64_t  memory;                    /* bytes */
    uint32_t  layout;                    /* 0: both */
    int       json;
} plan_t;

typedef struct {
    bloom_geometry_t  geometry;
    uint64_t          items;
    double            fpr;               /* at that many items */
} answer_t;


static const option_t  options[] = {
    { 'n', "items", "N", offsetof(plan_t, items), options_take_count,
      "the number of keys, with k, m or g (decimal)",
      .is = "a number of keys is a count", 1, BLOOM_CAPACITY_MAX },
    OPTIONS_FPR(plan_t, "the false-positive rate, from 1e-9 to 0.5, or in %"),
    { 'm', "memory", "SIZE", offsetof(plan_t, memory), options_take_bytes,
      "the filter's memory in bytes, or with k, m or g (binary); an image file "
      "is a few KiB larger",
      .is = "memory is", 1, BLOOM_BITS_MAX / 8 },
    OPTIONS_LAYOUT(plan_t,
      "only this layout, blocked or classic (default: both)"),
    { 0, "json", NULL, offsetof(plan_t, json), options_take_flag,
      "print JSON; with both layouts, an object a line" },
    { 0 }
};


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

    if (plan->memory == 0) {
        if (bloom_geometry_size(g, layout, plan->items, plan->fpr) != 0) {
            cli_error("%" PRIu64 " items at a rate of %g need more than 1 TiB "
                      "in layout %s; take fewer or a higher rate",
                      plan->items, plan->fpr, name);
            return CLI_ERROR;
        }

    } else if (plan->items == 0) {
        answer->items = bloom_geometry_size_capacity(g, layout, plan->memory,
                                                     plan->fpr);

        if (answer->items == 0) {
            cli_error("%s is too little for even one item at a rate of %g in "
                      "layout %s; give more memory or a higher rate",
                      format_bytes(bytes, plan->memory), plan->fpr, name);
            return CLI_ERROR;
        }

    } else if (bloom_geometry_size_fpr(g, layout, plan->memory, plan->items)
               == 0)
    {
        cli_error("%s is too little for %" PRIu64 " items in layout %s, even "
                  "at a rate of %g; give more memory",
                  format_bytes(bytes, plan->memory), plan->items, name,
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
    json_count(&json, "filter_bytes", bloom_geometry_bytes(g));
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


static int
run(char **operands, int n, void *values)
{
    int        i;
    plan_t    *plan = values;
    answer_t   answers[2];

    if (n != 0) {
        return cli_misuse("unexpected argument \"%s\"", operands[0]);
    }

    if ((plan->items != 0) + (plan->fpr != 0) + (plan->memory != 0) != 2) {
        return cli_misuse("give two of -n (items), -p (rate) and -m (memory); "
                          "the third is found");
    }

    n = plan->layout ? 1 : 2;

    for (i = 0; i < n; i++) {

        /* both layouts are 1 and 2 */

        if (solve(plan, plan->layout ? plan->layout : (uint32_t) i + 1,
                  &answers[i])
            != CLI_OK)
        {
            return CLI_ERROR;
        }
    }

    if (!plan->json) {
        printf("layout            items         rate      memory  bits/item"
               "    k  lines\n");
    }

    for (i = 0; i < n; i++) {
        if (plan->json) {
            print_json(&answers[i], n > 1);

        } else {
            print_row(&answers[i]);
        }
    }

    return CLI_OK;
}


static plan_t  values;

const command_t  cmd_size = {
    .name = "size",
    .does = "compute items, rate or memory from the other two",
    .synopsis = "[OPTION...] (two of -n, -p and -m)",
    .about =
        "Computes the number of keys, the false-positive rate or the memory "
        "of a filter from the other two: the least memory, the most keys, or "
        "the lowest rate. A zone of nginx has room for two images and a "
        "quarter more, unless its size is configured.",
    .options = options,
    .values = &values,
    .examples = "ngx-bloom size -n 10m -p 0.001\n"
                "ngx-bloom size -n 10m -m 16m\n"
                "ngx-bloom size -p 1e-6 -m 1g --layout blocked\n",
    .run = run
};
