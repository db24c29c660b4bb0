/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom build` makes an image from keys.
 *
 * It first puts the hashes of all keys into the keystore.  The number of
 * distinct hashes determines the filter's size; then they are inserted.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli.h"
#include "command.h"
#include "fuse_build.h"
#include "good_keys.h"
#include "guards.h"
#include "image_json.h"
#include "image_read.h"
#include "image_write.h"
#include "key_options.h"
#include "key_report.h"
#include "progress.h"
#include "units.h"
#include "visible.h"

#define DEFAULT_FPR  0.001

#define NO_KEY_FORM  UINT32_MAX

/* Room in a fuse image that is small enough for a warning. */
#define ROOM_FEW     1000


/* The options; a member that is 0, NULL or NO_KEY_FORM was not given. */
typedef struct {
    const char         *output;
    double              fpr;
    uint64_t            capacity;
    uint32_t            layout;
    uint32_t            hash;
    uint32_t            key_form;
    const char         *seed;
    const char         *like;
    uint64_t            as_of;
    bloom_source_t      source;
    key_options_t       from;
    good_keys_t         good;
    guards_t            guards;
    int                 allow_empty;
    int                 json;

    uint64_t            fuse_memory;     /* bytes */
    bloom_image_t       image;           /* capacity 0: the number of keys */
} build_t;


static const option_t  options[] = {
    OPTIONS_IMAGE(build_t),
    OPTIONS_FPR(build_t,
      "the false-positive rate at capacity, from 1e-9 to 0.5, or in % "
      "(default: 0.001)"),
    OPTIONS_CAPACITY(build_t,
      "the number of keys that the image has room for at that rate, with k, m "
      "or g; if there are more keys, the image is written all the same, and a "
      "warning tells which rate to expect (default: the number of keys; in "
      "layout fuse an eighth more, and at least 1000, for keys that are added "
      "to the zone, which it is too if there are as many keys as -n or more)"),
    OPTIONS_LAYOUT(build_t,
      "the layout, which says where the bits of a key are (default: blocked)\n"
      "blocked: in one cache line, or in two or three for very low rates; a "
      "lookup takes one memory access for each line\n"
      "classic: anywhere in the filter, as in textbooks; the filter is 3 to "
      "9 % smaller, and a lookup takes one memory access for each bit\n"
      "fuse: in three places that are read at once; the filter is a quarter "
      "smaller than blocked ones, and takes no more keys: a zone puts those that "
      "are added into a layer, and images cannot be merged"),
    OPTIONS_HASH(build_t),
    OPTIONS_KEY_FORM(build_t,
      "the key form, which depends on what requests ask, not on what the list "
      "has (default: raw)\n"
      "raw: keys byte for byte\n"
      "lower: keys in lower case\n"
      "host: for rules whose keys are host names and IP addresses\n"
      "url: for rules whose keys are URLs, also if the list has hosts; URLs "
      "are read as in Safe Browsing"),
    { 0, "seed", "SEED", offsetof(build_t, seed), options_take_text,
      "the seed of the hash: for murmur3 a number below 2^32, for siphash 32 "
      "hexadecimal digits (default: random)" },
    { 0, "like", "IMAGE", offsetof(build_t, like), options_take_text,
      "take capacity, rate, layout, hash, seed and key form from that image, "
      "so that both images can be merged; the first 4096 bytes of the image are "
      "enough, as a file of their own, for builds on other machines" },
    OPTIONS_AS_OF(build_t,
      "state that the image has every key that existed at that time, "
      OPTIONS_TIME "; nginx then drops keys that were added to the zone more "
      "than an hour before (default: not stated)"),
    OPTIONS_SOURCE(build_t,
      "state that the image has all changes of that source up to the position: "
      "read the position before the keys; a zone of nginx with bloom_source "
      "then takes the later changes only (default: not stated)"),
    OPTIONS_GROUP(key_options, offsetof(build_t, from)),
    OPTIONS_GROUP(good_keys_options, offsetof(build_t, good)),
    { 0, "allow-empty", NULL, offsetof(build_t, allow_empty), options_take_flag,
      "write an image even if there are no keys" },
    OPTIONS_GROUP(guards_options, offsetof(build_t, guards)),
    OPTIONS_GROUP(guards_key_options, offsetof(build_t, guards)),
    OPTIONS_JSON(build_t),
    { 0 }
};


/* Copies from the --like image all that two images must share to be merged. */
static int
take_like(build_t *build)
{
    bloom_image_t   like, *image;

    image = &build->image;

    if (build->fpr != 0 || build->capacity != 0 || build->layout != 0
        || build->hash != 0 || build->seed != NULL)
    {
        return cli_misuse("--like takes rate, capacity, layout, hash and seed "
                          "from an image; leave out -p, -n, --layout, --hash "
                          "and --seed");
    }

    if (image_read_shape(&like, build->like) != CLI_OK) {
        return CLI_ERROR;
    }

    if (like.geometry.layout == BLOOM_LAYOUT_FUSE) {
        return cli_misuse("--like %s: images in layout fuse cannot be merged; "
                          "give -p, --layout, --hash, --seed and --form instead",
                          build->like);
    }

    if (build->key_form != NO_KEY_FORM
        && build->key_form != like.key_form)
    {
        return cli_misuse("--form \"%s\": --like takes the key form of %s, "
                          "which is %s; leave out --form",
                          bloom_form_name(build->key_form), build->like,
                          bloom_form_name(like.key_form));
    }

    /* a new image begins without layers, and can be merged with those that have
     * the same base */

    image->geometry = like.geometry;
    image->geometry.layers = 0;
    image->hasher = like.hasher;
    image->key_form = like.key_form;
    image->capacity = like.capacity;
    image->fpr = like.fpr;
    image->origin = like.origin;
    image->flags = like.flags & BLOOM_IMAGE_IMPORTED;

    return CLI_OK;
}


/*
 * Warns of a seed from 1 to 8.  If the seed is the length of a key, and that is
 * at most 8, the two halves of MurmurHash3 x64 128 depend on each other: the
 * second half starts at 0.
 */
static void
warn_weak_seed(const build_t *build)
{
    uint64_t  seed;

    if (build->image.hasher.kind != BLOOM_HASH_MURMUR3
        || build->layout != BLOOM_LAYOUT_CLASSIC)
    {
        return;
    }

    seed = bloom_hasher_seed(&build->image.hasher);

    if (seed >= 1 && seed <= 8) {
        cli_warn("--seed %s: with this seed, a classic filter takes absent "
                 "keys of %d byte%s for present more often than promised; use "
                 "a number above 8, or leave out --seed", build->seed,
                 (int) seed, CLI_S(seed));
    }
}


static int
take_seed(bloom_hasher_t *hasher, const char *text)
{
    uint64_t  seed;

    if (text == NULL) {
        cli_random(hasher->key, hasher->kind == BLOOM_HASH_MURMUR3
                                ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN);

    } else if (hasher->kind == BLOOM_HASH_SIPHASH) {
        if (parse_hex(text, hasher->key, BLOOM_HASH_KEY_LEN) != 0) {
            return cli_misuse("--seed \"%s\": must be 32 hexadecimal digits "
                              "for siphash", text);
        }

    } else {
        if (parse_count(text, &seed) != 0 || seed > UINT32_MAX) {
            return cli_misuse("--seed \"%s\": must be a number from 0 to %"
                              PRIu32 " for murmur3", text, UINT32_MAX);
        }

        bloom_hasher_murmur3(hasher, (uint32_t) seed);
    }

    return CLI_OK;
}


/* Fills the image's header from the options, except its size. */
static int
prepare(build_t *build)
{
    bloom_image_t  *image;

    image = &build->image;
    image->as_of = build->as_of;
    image->source = build->source;

    if (build->like != NULL) {
        return take_like(build);
    }

    if (build->layout == 0) {
        build->layout = BLOOM_LAYOUT_BLOCKED;
    }

    if (build->layout == BLOOM_LAYOUT_FUSE) {

        /* the keystore takes 7/8 of its memory; the rest is for fuse_build() */

        build->fuse_memory = build->from.intake.memory / 64 * 15;
        build->from.intake.memory -= build->from.intake.memory / 8;
        build->from.keep = KEYSTORE_H2;
    }

    image->fpr = build->fpr != 0 ? build->fpr : DEFAULT_FPR;
    image->capacity = build->capacity;
    image->key_form = build->key_form != NO_KEY_FORM ? build->key_form
                                                     : BLOOM_FORM_RAW;
    image->hasher.kind = build->hash != 0 ? build->hash : BLOOM_HASH_MURMUR3;

    if (take_seed(&image->hasher, build->seed) != CLI_OK) {
        return CLI_ERROR;
    }

    if (build->seed != NULL) {
        warn_weak_seed(build);
    }

    return CLI_OK;
}


/* Warns if -n leaves little room, or none, for keys that are added to a zone. */
static void
warn_room(const build_t *build)
{
    uint64_t  room;

    room = build->image.geometry.fuse.room;

    if (build->capacity <= build->image.items) {
        cli_warn("-n %" PRIu64 ": there are %" PRIu64 " keys, so the image gets "
                 "the usual room for %" PRIu64 " keys that are added to a zone; "
                 "give an -n above the number of keys, or leave out -n",
                 build->capacity, build->image.items, room);

    } else if (room < ROOM_FEW) {
        cli_warn("-n %" PRIu64 ": there are %" PRIu64 " keys, so a zone has "
                 "room for only %" PRIu64 " more; if more are added, the rate "
                 "of false positives rises soon; give a larger -n, or leave "
                 "out -n",
                 build->capacity, build->image.items, room);
    }
}


/*
 * Builds a fuse base, which has exactly the keys of the store.  Room for
 * additions to a zone is what -n has room for beyond these keys.
 */
static int
build_fuse(build_t *build, uint64_t **words)
{
    bloom_image_t  *image;
    key_options_t  *from;

    image = &build->image;
    from = &build->from;

    if (fuse_build(&image->geometry, words, from->to.store, image->items,
                   image->fpr, from->intake.threads, build->fuse_memory)
        != CLI_OK)
    {
        return CLI_ERROR;
    }

    if (build->capacity > image->items) {
        image->geometry.fuse.room = build->capacity - image->items;
    }

    if (build->capacity != 0 && !from->intake.quiet) {
        warn_room(build);
    }

    image->capacity = image->items + image->geometry.fuse.room;

    return CLI_OK;
}


/* Chooses the geometry for the image's items, unless --like has chosen it. */
static int
choose_size(build_t *build)
{
    bloom_image_t  *image;

    image = &build->image;

    if (image->capacity == 0) {
        image->capacity = image->items ? image->items : 1;
    }

    if (build->like == NULL
        && bloom_geometry_size(&image->geometry, build->layout,
                               image->capacity, image->fpr)
           != 0)
    {
        cli_error("a filter for %" PRIu64 " key%s at a rate of %g needs more "
                  "than 1 TiB; use a larger -p", image->capacity,
                  CLI_S(image->capacity), image->fpr);
        return CLI_ERROR;
    }

    if (!build->from.intake.quiet) {
        image_write_warn_full(image, bloom_image_fpr(image, image->items),
                              build->like
                              ? "rebuild the image that --like names, with an "
                                "-n for the keys of both"
                              : "use a larger -n, or leave out -n");
    }

    return CLI_OK;
}


/* Returns an estimate of how many of the received keys are distinct, from the
 * words. */
static uint64_t
estimate(bloom_image_t *image, const uint64_t *words, uint64_t received)
{
    uint64_t        items;
    bloom_census_t  census;

    image->flags |= BLOOM_IMAGE_ESTIMATED;

    census = image_read_census(image, words);
    items = bloom_census_items(&census);

    return items < received ? items : received;
}


/* Says why there are no keys.  Returns CLI_ERROR. */
static int
refuse_empty(const key_options_t *from, const store_counts_t *counts)
{
    const intake_counts_t  *read;

    read = &counts->read;

    if (counts->left_out != 0) {
        cli_error("--without leaves out all keys; use --allow-empty if an "
                  "empty image is intended");

    } else if (read->skipped != 0) {
        intake_complain(read, from->intake.split, 0);
        cli_error("the input has no keys, and %" PRIu64 " line%s skipped; "
                  "check --from and --form, or use --allow-empty if an empty "
                  "image is intended", read->skipped,
                  read->skipped == 1 ? " is" : "s are");

    } else {
        cli_error("the input has no keys; use --allow-empty if an empty image "
                  "is intended");
    }

    return CLI_ERROR;
}


/* Collects the keys and writes the image. */
static int
build_image(build_t *build, output_t *out, char **names, int n,
    store_counts_t *counts)
{
    int                 rc;
    uint64_t           *words;
    bloom_image_t      *image;
    key_options_t      *from;

    from = &build->from;
    image = &build->image;

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        from->to.words = fuse_build_map(bloom_geometry_bytes(&image->geometry));
    }

    rc = key_options_read(from, names, n, counts);

    if (rc != CLI_OK) {
        return rc;
    }

    if (counts->received == 0 && !build->allow_empty) {
        return refuse_empty(from, counts);
    }

    image->items = from->to.words != NULL
                   ? estimate(image, from->to.words, counts->received)
                   : keystore_count(from->to.store, from->intake.threads, NULL,
                                    NULL, NULL);

    rc = guards_check(&build->guards, out->name, image, from->intake.quiet);

    if (rc != CLI_OK) {
        return rc;
    }

    words = from->to.words;

    if (build->layout == BLOOM_LAYOUT_FUSE) {
        if (build_fuse(build, &words) != CLI_OK) {
            return CLI_ERROR;
        }

    } else if (choose_size(build) != CLI_OK) {
        return CLI_ERROR;

    } else if (words == NULL) {
        words = fuse_build_map(bloom_geometry_bytes(&image->geometry));
        keystore_insert(from->to.store, &image->geometry, words,
                        from->intake.threads);
    }

    rc = good_keys_find(&build->good, from, image, words, out->name, names, n);

    if (rc == CLI_OK) {
        rc = guards_check_keys(&build->guards, out->name, image, words,
                               &build->good.exceptions.set);
    }

    if (rc == CLI_OK) {
        rc = key_options_write_exceptions(from, counts);
    }

    if (rc == CLI_OK) {
        rc = image_write(out, image, words, NULL, &build->good.exceptions);
    }

    if (rc == CLI_OK && !from->intake.quiet) {
        image_write_warn_secret(image, out);
    }

    munmap(words, bloom_geometry_bytes(&image->geometry));

    return rc;
}


static void
report(const build_t *build, const store_counts_t *counts, double seconds)
{
    char                  bytes[UNITS_LEN], rate[IMAGE_WRITE_RATE_LEN];
    bloom_json_writer_t   json;
    exception_kinds_t     kinds;
    const bloom_image_t  *image;

    image = &build->image;

    if (build->json) {
        kinds = removed_keys_kinds(&build->good.exceptions);

        json_begin(&json, 0);
        image_json(&json, build->output, image, &kinds,
                   image_json_items_error(image),
                   bloom_image_fpr(image, image->items));
        bloom_json_put_count(&json, "duplicates",
                             counts->received - image->items);
        good_keys_json(&json, &build->good, image);
        key_report_json(&json, &build->from, counts, seconds);
        json_end(&json);
        return;
    }

    if (build->from.intake.quiet) {
        return;
    }

    visible_name(build->output);
    printf(": %" PRIu64 " key%s, %" PRIu64 " distinct, %s, %s, "
           "%.1f bits per key, %s\n",
           counts->received, CLI_S(counts->received), image->items,
           bloom_geometry_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)),
           image_json_bits_per_item(image),
           image_write_show_rate(rate, image,
                                 bloom_image_fpr(image, image->items)));

    key_report(&build->from, counts,
                       image->flags & BLOOM_IMAGE_ESTIMATED
                       ? 0 : counts->received - image->items, build->output);
    good_keys_report(&build->good, &build->from, image, build->output);
}


static int
run(char **operands, int n, void *values)
{
    int                rc;
    build_t           *build = values;
    output_t           out;
    progress_t         clock;
    store_counts_t   counts;

    if (key_options_check(&build->from) != CLI_OK
        || prepare(build) != CLI_OK
        || output_open(&out, build->output) != 0)
    {
        return CLI_ERROR;
    }

    memset(&counts, 0, sizeof(counts));
    progress_begin(&clock, 1);

    rc = key_options_begin(&build->from, &build->image, &out, &operands, &n);

    if (rc == CLI_OK) {
        rc = good_keys_begin(&build->good, &build->from, &build->image, &out,
                             operands, n);
    }

    if (rc == CLI_OK) {
        rc = build_image(build, &out, operands, n, &counts);
    }

    output_discard(&out);

    if (rc == CLI_OK) {
        rc = key_options_commit_exceptions(&counts, build->output);
    }

    if (rc == CLI_OK) {
        report(build, &counts, progress_end(&clock));
    }

    key_options_end(&build->from, &counts);
    good_keys_free(&build->good);

    return rc;
}


static build_t  values = {
    .from = KEY_OPTIONS_DEFAULTS(1),
    .key_form = NO_KEY_FORM
};

static const command_member_t  members[] = {
    { NULL, "all members that info has for an image, and:" },
    { "duplicates",
      "the number of keys that are repetitions: \"received\" minus \"items\"" },
    GOOD_KEYS_MEMBERS,
    KEY_REPORT_MEMBERS,
    { 0 }
};

const command_t  cmd_build = {
    .name = "build",
    .does = "make an image from keys",
    .synopsis = "-o FILE [OPTION...] [KEYFILE...]",
    .about =
        "Makes an image from keys. The keys come from files or, if no file is "
        "named or its name is \"-\", from standard input. Each line is a key; "
        "gzip, bzip2, xz and zstd are decompressed. Empty lines are skipped, "
        "and duplicates count once. A file that is no list of keys, such as an "
        "archive, UTF-16, a web page, JSON or a dump of a database, is "
        "refused.\n\n"
        "The number of keys need not be known in advance. The build needs the "
        "memory of the filter, and 16 bytes for each distinct key, in layout "
        "fuse 8, or up to four times that if there are many duplicates. Keys "
        "that exceed --memory go to a temporary file. In layout fuse, three "
        "quarters of --memory are for keys, and a quarter for solving the "
        "filter's equations; a build with too little for all threads uses "
        "fewer.\n\n"
        "Do not pipe a query into this command: if the query fails halfway, "
        "the image lacks the keys that the query did not print. Write the "
        "keys to a file, and build the image if that succeeded.\n\n"
        "--as-of start is right only if the keys are read from their source "
        "after this command began, as through a pipe. If a file has the keys, "
        "give the time before the file was written: keys that were created "
        "since then are not in it.",
    .options = options,
    .values = &values,
    .members = members,
    .status = GUARDS_KEY_STATUS,
    .examples =
        "ngx-bloom build -o ids.bloom -p 0.001 ids.txt\n"
        "psql -Atc 'select id from t' > ids.txt && ngx-bloom build -o "
        "ids.bloom ids.txt\n"
        "ngx-bloom build -o monday.bloom --like week.bloom monday.txt.gz\n"
        "ngx-bloom build -o bad.bloom --form host --from hosts "
        "/etc/hosts.block\n"
        "ngx-bloom build -o bad.bloom --form url --from csv:url feed.csv\n"
        "ngx-bloom build -o bad.bloom --form url --from auto a.txt b.txt\n"
        "ngx-bloom build -o ids.bloom --min-keys 1k --max-loss 1% "
        "ids.txt\n",
    .run = run
};
