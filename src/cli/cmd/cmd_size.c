/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom size` computes the number of keys, the rate or the memory of a
 * filter from the other two.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bloom_growth.h"
#include "bloom_image.h"
#include "bloom_ring.h"
#include "cli.h"
#include "command.h"
#include "fuse_build.h"
#include "json.h"
#include "units.h"


/* The options; 0 is the number to compute. */
typedef struct {
    uint64_t  items;
    double    fpr;
    uint64_t  memory;                    /* bytes */
    uint32_t  layout;                    /* 0: all */
    uint64_t  max_keys;                  /* 0: the filter does not grow */
    uint64_t  expire;                    /* ms; 0: keys do not expire */
    uint32_t  slices;                    /* of a life */
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
      .is = "a number of keys", 1, BLOOM_CAPACITY_MAX },
    OPTIONS_FPR(plan_t, "the false-positive rate, from 1e-9 to 0.5, or in %"),
    { 'm', "memory", "SIZE", offsetof(plan_t, memory), options_take_bytes,
      "the filter's memory in bytes, or with k, m or g (binary); an image file "
      "is a few KiB larger",
      .is = "a size", 1, BLOOM_BITS_MAX / 8 },
    OPTIONS_LAYOUT(plan_t,
      "only this layout, blocked, classic or fuse (default: all; with "
      "--max-keys blocked)"),
    { 0, "max-keys", "N", offsetof(plan_t, max_keys), options_take_count,
      "with -n and -p: the filter grows by layers until it has room for N "
      "keys, with k, m or g (decimal), as that of a zone with max_keys=",
      .is = "a number of keys", 1, BLOOM_CAPACITY_MAX },
    { 0, "expire", "TIME", offsetof(plan_t, expire), options_take_span,
      "with -n and -p: keys expire after this time, such as 24h, 30m or 7d, as "
      "those of a zone with expire=; -n is the number of keys that are added "
      "within this time, and --max-keys the most that may be added",
      .is = "a time" },
    { 0, "json", NULL, offsetof(plan_t, json), options_take_flag,
      "print JSON; with several layouts, an object per line" },
    { 0 }
};


/* Computes the missing number for one layout.  Returns CLI_OK; or CLI_ERROR
 * after a message. */
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
            cli_error("a filter in layout %s for %" PRIu64 " key%s at a rate "
                      "of %g needs more than 1 TiB; use a smaller -n or a "
                      "larger -p", name, plan->items, CLI_S(plan->items),
                      plan->fpr);
            return CLI_ERROR;
        }

    } else if (plan->items == 0) {
        answer->items = bloom_geometry_size_capacity(g, layout, plan->memory,
                                                     plan->fpr);

        if (answer->items == 0) {
            cli_error("%s is too little for one key at a rate of %g in layout "
                      "%s; use a larger -m or a larger -p",
                      format_bytes(bytes, plan->memory), plan->fpr, name);
            return CLI_ERROR;
        }

    } else if (bloom_geometry_size_fpr(g, layout, plan->memory, plan->items)
               == 0)
    {
        cli_error("%s is too little for %" PRIu64 " key%s in layout %s, even "
                  "at a rate of %g; use a larger -m",
                  format_bytes(bytes, plan->memory), plan->items,
                  CLI_S(plan->items), name, BLOOM_FPR_MAX);
        return CLI_ERROR;
    }

    answer->fpr = bloom_geometry_fpr(g, answer->items);

    return CLI_OK;
}


static void
print_json(const answer_t *answer, int compact)
{
    bloom_json_writer_t      json;
    const bloom_geometry_t  *g;

    g = &answer->geometry;

    json_begin(&json, compact);
    bloom_json_put_text(&json, "layout", bloom_geometry_layout_name(g->layout));
    bloom_json_put_count(&json, "items", answer->items);
    bloom_json_put_number(&json, "fpr", answer->fpr);
    bloom_json_put_count(&json, "filter_bytes", bloom_geometry_bytes(g));
    bloom_json_put_number(&json, "bits_per_item",
                          (double) g->bits / (double) answer->items);
    bloom_json_put_count(&json, "bits", g->bits);
    bloom_json_put_count(&json, "k", g->k);
    bloom_json_put_count(&json, "lines", g->lines);
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


/* Computes a filter with layers behind a base of the rate `fpr`. */
static int
grow(const plan_t *plan, double fpr, bloom_image_t *image)
{
    uint32_t  layout;

    layout = plan->layout ? plan->layout : BLOOM_LAYOUT_BLOCKED;

    memset(image, 0, sizeof(*image));
    image->capacity = plan->items;

    if (bloom_geometry_size(&image->geometry, layout, plan->items, fpr) == 0) {

        if (layout == BLOOM_LAYOUT_FUSE) {
            image->capacity += image->geometry.fuse.room;
        }

        if (bloom_growth_extend(&image->geometry, image->capacity,
                                bloom_growth_layers(&image->geometry,
                                                    image->capacity,
                                                    plan->max_keys))
            == 0)
        {
            return CLI_OK;
        }
    }

    cli_error("a filter that grows from %" PRIu64 " to %" PRIu64 " key%s at a "
              "rate of %g needs more than 1 TiB; use a smaller --max-keys or a "
              "larger -p", plan->items, plan->max_keys, CLI_S(plan->max_keys),
              fpr);

    return CLI_ERROR;
}


static void
print_grown_json(const bloom_image_t *image, int behind)
{
    bloom_json_writer_t      json;
    uint32_t                 i;
    uint64_t                 max_items, room;
    bloom_geometry_t         part;
    const bloom_geometry_t  *g;

    g = &image->geometry;
    max_items = bloom_image_capacity(image);

    json_begin(&json, 1);
    bloom_json_put_text(&json, "zone", behind ? "image" : "empty");
    bloom_json_put_text(&json, "layout", bloom_geometry_layout_name(g->layout));
    bloom_json_put_count(&json, "items",
                         bloom_growth_room(g, image->capacity, 0));
    bloom_json_put_count(&json, "max_items", max_items);
    bloom_json_put_number(&json, "fpr", bloom_image_fpr(image, max_items));
    bloom_json_put_count(&json, "filter_bytes", bloom_geometry_bytes(g));
    bloom_json_put_number(&json, "bits_per_item",
                          8 * (double) bloom_geometry_bytes(g)
                          / (double) max_items);
    bloom_json_put_count(&json, "layers", g->layers);
    bloom_json_put_array(&json, "parts");

    for (i = 0; i <= g->layers; i++) {
        part = bloom_geometry_part(g, i);
        room = bloom_growth_room(g, image->capacity, i);

        bloom_json_put_object(&json, NULL);
        bloom_json_put_count(&json, "capacity", room);
        bloom_json_put_count(&json, "bits", part.bits);
        bloom_json_put_count(&json, "k", part.k);
        bloom_json_put_count(&json, "lines", part.lines);
        bloom_json_put_count(&json, "filter_bytes",
                             bloom_geometry_bytes(&part));
        bloom_json_put_number(&json, "fpr", bloom_geometry_fpr(&part, room));
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    json_end(&json);
}


static void
print_grown(const bloom_image_t *image)
{
    char              name[16], rate[UNITS_LEN], bytes[UNITS_LEN], lines[16];
    uint32_t          i;
    uint64_t          n;
    bloom_geometry_t  part;

    printf("part              items         rate      memory  bits/item    k"
           "  lines\n");

    for (i = 0; i <= image->geometry.layers; i++) {
        part = bloom_geometry_part(&image->geometry, i);
        n = bloom_growth_room(&image->geometry, image->capacity, i);

        snprintf(name, sizeof(name), i == 0 ? "base" : "layer %" PRIu32, i);
        snprintf(lines, sizeof(lines), part.lines ? "%" PRIu32 : "-",
                 part.lines);

        printf("%-8s %14" PRIu64 " %12s %11s %10.2f %4" PRIu32 " %6s\n", name,
               n, format_rate(rate, bloom_geometry_fpr(&part, n)),
               format_bytes(bytes, bloom_geometry_bytes(&part)),
               (double) part.bits / (double) n, part.k, lines);
    }

    printf("%-8s %14" PRIu64 " %12s %11s %10.2f\n", "all",
           bloom_image_capacity(image),
           format_rate(rate, bloom_image_fpr(image,
                                             bloom_image_capacity(image))),
           format_bytes(bytes, bloom_geometry_bytes(&image->geometry)),
           8 * (double) bloom_geometry_bytes(&image->geometry)
           / (double) bloom_image_capacity(image));
}


/* Prints the filters of two zones: one that starts empty, whose base and layers
 * have half of the rate each; and one behind an image with that rate, whose
 * layers have the same rate again. */
static int
run_grown(const plan_t *plan)
{
    int            fuse;
    bloom_image_t  empty, image;

    if (plan->items == 0 || plan->fpr == 0) {
        return cli_misuse("--max-keys needs -n (keys that the filter begins "
                          "with room for) and -p (rate)");
    }

    memset(&empty, 0, sizeof(empty));

    if (plan->max_keys <= plan->items
        || bloom_growth_layers(&empty.geometry, plan->items, plan->max_keys)
           > BLOOM_LAYERS_MAX)
    {
        return cli_misuse("--max-keys \"%" PRIu64 "\": must be more than -n, "
                          "%" PRIu64 ", and at most %d times as much",
                          plan->max_keys, plan->items, BLOOM_GROWTH_MAX);
    }

    fuse = plan->layout == BLOOM_LAYOUT_FUSE;

    if ((!fuse && grow(plan, fmax(plan->fpr / 2, BLOOM_FPR_MIN), &empty)
                  != CLI_OK)
        || grow(plan, plan->fpr, &image) != CLI_OK)
    {
        return CLI_ERROR;
    }

    if (plan->json) {
        if (!fuse) {
            print_grown_json(&empty, 0);
        }

        print_grown_json(&image, 1);
        return CLI_OK;
    }

    if (fuse) {
        printf("a zone with max_keys=%" PRIu64 " and an image in layout fuse, "
               "built with -p %g\n", plan->max_keys, plan->fpr);
        print_grown(&image);
        return CLI_OK;
    }

    printf("a zone that starts empty, with capacity=%" PRIu64 " fpr=%g "
           "max_keys=%" PRIu64 "\n", plan->items, plan->fpr, plan->max_keys);
    print_grown(&empty);
    printf("\na zone with max_keys=%" PRIu64 " and an image built with -n %"
           PRIu64 " -p %g\n", plan->max_keys, plan->items, plan->fpr);
    print_grown(&image);

    return CLI_OK;
}


/* Returns how long a key lives at most, in milliseconds: until its slice is
 * closed, and the time to live after that. */
static uint64_t
longest_life(const plan_t *plan)
{
    return plan->expire + (plan->expire + plan->slices - 1) / plan->slices;
}


static void
print_ring_json(const plan_t *plan, const bloom_geometry_t *g, uint64_t room,
    double fpr, uint64_t even)
{
    bloom_json_writer_t  json;

    json_begin(&json, 0);
    bloom_json_put_text(&json, "layout", bloom_geometry_layout_name(g->layout));
    bloom_json_put_count(&json, "items", plan->items);
    bloom_json_put_count(&json, "max_items", plan->max_keys);
    bloom_json_put_number(&json, "fpr", fpr);
    bloom_json_put_count(&json, "filter_bytes", bloom_geometry_bytes(g));
    bloom_json_put_number(&json, "bits_per_item",
                          8 * (double) even / (double) plan->items);
    bloom_json_put_count(&json, "even_bytes", even);
    bloom_json_put_count(&json, "slices", g->slices);
    bloom_json_put_count(&json, "slices_per_life", plan->slices);
    bloom_json_put_count(&json, "slice_items", room);
    bloom_json_put_count(&json, "slice_bytes", g->bits / 8);
    bloom_json_put_count(&json, "bits", g->bits);
    bloom_json_put_count(&json, "k", g->k);
    bloom_json_put_count(&json, "lines", g->lines);
    bloom_json_put_count(&json, "least_life_ms", plan->expire);
    bloom_json_put_count(&json, "longest_life_ms", longest_life(plan));
    json_end(&json);
}


static void
print_ring(const plan_t *plan, const bloom_geometry_t *g, uint64_t room,
    double fpr, uint64_t even)
{
    char  rate[UNITS_LEN], bytes[UNITS_LEN], least[UNITS_LEN],
          longest[UNITS_LEN];

    printf("a key lives        at least %s, at most %s\n",
           format_span(least, plan->expire),
           format_span(longest, longest_life(plan)));
    printf("slices             %u\n", (unsigned) g->slices);
    printf("a slice has        %" PRIu64 " key%s, %s, k %" PRIu32 ", %" PRIu32
           " line%s\n", room, CLI_S(room), format_bytes(bytes, g->bits / 8),
           g->k, g->lines, CLI_S(g->lines));
    printf("rate               %s if all slices are full\n",
           format_rate(rate, fpr));
    printf("memory used        %s while %" PRIu64 " key%s arrive%s evenly "
           "within %s\n", format_bytes(bytes, even), plan->items,
           CLI_S(plan->items), plan->items == 1 ? "s" : "", least);
    printf("memory reserved    %s, for %" PRIu64 " key%s within %s\n",
           format_bytes(bytes, bloom_geometry_bytes(g)), plan->max_keys,
           CLI_S(plan->max_keys), least);
}


/* Prints the ring of slices of a zone whose keys expire.  Completes the
 * plan. */
static int
run_ring(plan_t *plan)
{
    double            fpr;
    uint32_t          i;
    uint64_t          room, even, most, items[BLOOM_PARTS_MAX];
    bloom_geometry_t  g;

    if (plan->items == 0 || plan->fpr == 0) {
        return cli_misuse("--expire needs -n (keys that are added within this "
                          "time) and -p (rate)");
    }

    if (plan->layout > BLOOM_LAYOUT_BLOCKED) {
        return cli_misuse("--expire cannot be used with --layout %s: keys "
                          "expire in the layout blocked only",
                          bloom_geometry_layout_name(plan->layout));
    }

    if (plan->expire < BLOOM_RING_LIFE_MIN
        || plan->expire > BLOOM_RING_LIFE_MAX)
    {
        return cli_misuse("--expire must be from 2s to 3650d");
    }

    plan->slices = bloom_ring_slices(plan->expire);
    most = bloom_ring_max_keys(plan->items, plan->slices);

    if (plan->max_keys != 0
        && (plan->max_keys <= plan->items || plan->max_keys > most))
    {
        return cli_misuse("--max-keys \"%" PRIu64 "\": with %u slices it must "
                          "be more than -n, %" PRIu64 ", and at most %" PRIu64,
                          plan->max_keys, plan->slices, plan->items, most);
    }

    plan->max_keys = plan->max_keys ? plan->max_keys : plan->items;

    if (bloom_ring_size(&g, &room, plan->items, plan->fpr, plan->slices,
                        plan->max_keys)
        != 0)
    {
        cli_error("a filter for %" PRIu64 " key%s that expire%s, at a rate of "
                  "%g, needs more than 1 TiB; use a smaller -n or a larger -p",
                  plan->max_keys, CLI_S(plan->max_keys),
                  plan->max_keys == 1 ? "s" : "", plan->fpr);
        return CLI_ERROR;
    }

    for (i = 0; i < g.slices; i++) {
        g.live |= (uint64_t) 1 << i;
        items[i] = room;
    }

    fpr = bloom_ring_fpr(&g, items);
    even = (plan->slices + 1) * (g.bits / 8);

    if (plan->json) {
        print_ring_json(plan, &g, room, fpr, even);

    } else {
        print_ring(plan, &g, room, fpr, even);
    }

    return CLI_OK;
}


static int
run(char **operands, int n, void *values)
{
    int        i;
    plan_t    *plan = values;
    answer_t   answers[3];

    static const uint32_t  layouts[] = {
        BLOOM_LAYOUT_BLOCKED, BLOOM_LAYOUT_CLASSIC, BLOOM_LAYOUT_FUSE
    };

    if (n != 0) {
        return cli_misuse("unexpected argument \"%s\"", operands[0]);
    }

    if ((plan->items != 0) + (plan->fpr != 0) + (plan->memory != 0) != 2) {
        return cli_misuse("use two of -n (keys), -p (rate) and -m (memory); "
                          "the third is computed");
    }

    if (plan->expire != 0) {
        return run_ring(plan);
    }

    if (plan->max_keys != 0) {
        return run_grown(plan);
    }

    n = plan->layout ? 1 : 3;

    for (i = 0; i < n; i++) {
        if (solve(plan, plan->layout ? plan->layout : layouts[i], &answers[i])
            != CLI_OK)
        {
            return CLI_ERROR;
        }

        if (answers[i].geometry.layout == BLOOM_LAYOUT_FUSE
            && answers[i].items > FUSE_BUILD_KEYS_MAX)
        {
            if (plan->layout != 0) {
                cli_error("layout fuse has room for %" PRIu64 " keys there, "
                          "but is built for at most 34g; use a smaller -n or "
                          "-m, or another --layout", answers[i].items);
                return CLI_ERROR;
            }

            n--;                         /* it is the last row */
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

static const command_member_t  members[] = {
    { NULL, "for each layout, an object:" },
    { "layout", "the layout: blocked, classic or fuse" },
    { "items", "the number of keys" },
    { "fpr", "the false-positive rate with this number of keys" },
    { "filter_bytes", "the memory of the filter in bytes" },
    { "bits_per_item", "\"bits\" divided by \"items\"" },
    { "bits", "the number of bits in the filter" },
    { "k",
      "the number of bits that a key sets; layout fuse: the number of slots "
      "that a key has" },
    { "lines",
      "layout blocked: the number of cache lines that a key's bits are in; 0 "
      "in other layouts" },
    { NULL, "with --max-keys, for each zone, an object with these members, of "
            "the whole filter, but not bits, k and lines, and:" },
    { "zone",
      "empty for a zone that starts empty, image for a zone with an image" },
    { "max_items",
      "the number of keys that the filter has room for when it has all its "
      "layers; \"fpr\" is the rate with this number of keys, and \"items\" the "
      "number of keys that the base has room for" },
    { "layers", "the number of layers that the filter may get" },
    { "parts",
      "an array of the base and each layer; each has capacity (the number of "
      "keys it has room for), bits, k, lines, filter_bytes, and fpr, its rate "
      "with this number of keys" },
    { NULL, "with --expire, an object with these members, where bits, k and "
            "lines are those of one slice, bits_per_item is that of "
            "\"even_bytes\", and fpr is the rate if all slices are full; and "
            "also:" },
    { "max_items", "the number of keys that may be added within the time" },
    { "slices", "the number of slices that the zone has" },
    { "slices_per_life",
      "the number of slices into which the time is divided" },
    { "slice_items", "the number of keys that one slice has room for" },
    { "slice_bytes", "the memory of one slice in bytes" },
    { "even_bytes",
      "the memory in use while at most \"items\" keys are added within the "
      "time, evenly; the rest of \"filter_bytes\" is only reserved" },
    { "least_life_ms", "the shortest time that a key lives, in milliseconds" },
    { "longest_life_ms", "the longest time that a key lives, in milliseconds" },
    { 0 }
};

const command_t  cmd_size = {
    .name = "size",
    .does = "compute keys, rate or memory from the other two",
    .synopsis = "[OPTION...] (two of -n, -p and -m)",
    .about =
        "Computes one of three numbers from the other two: the lowest memory "
        "of a filter, the highest number of keys, or the lowest "
        "false-positive rate. Unless its size is configured, a zone of nginx "
        "is about 2.25 times as large as its filter, so that a new image fits "
        "beside the old one.\n\n"
        "With --max-keys, it shows how a zone with max_keys= grows: the base "
        "has room for -n keys, and each layer for twice as many as the part "
        "before. In a zone that starts empty, base and layers have half of the "
        "rate -p each, so that the rate holds at any number of keys. Behind an "
        "image with the rate -p, the layers have that rate together, so twice "
        "-p holds. Memory of layers is used only when the zone has grown. For "
        "an image in layout fuse, -n is the number of its keys, which is not "
        "what -n of build is, and the first layer has room for an eighth as "
        "many.\n\n"
        "With --expire, it shows the ring of slices of a zone with expire=: "
        "keys are added to one slice after the other, and a slice is dropped "
        "when all its keys have lived for the time, which has eight slices (or "
        "as many as it has seconds, if it is shorter). The rate -p holds as long "
        "as no more than -n keys, or --max-keys keys, are added within the "
        "time. Memory of slices is used only when they have had keys.",
    .options = options,
    .values = &values,
    .members = members,
    .examples = "ngx-bloom size -n 10m -p 0.001\n"
                "ngx-bloom size -n 10m -m 16m\n"
                "ngx-bloom size -p 1e-6 -m 1g --layout blocked\n"
                "ngx-bloom size -n 1m -p 0.001 --max-keys 20m\n"
                "ngx-bloom size -n 1m -p 0.001 --expire 24h\n",
    .run = run
};
