/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares the states that nodes have told.
 *
 * Nodes are not asked at the same instant, so numbers that change all the time
 * are compared as ranges: from the value at the first question to the value at
 * the second.  Ranges that have no value in common differ for sure.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "node_check.h"
#include "node_compare.h"

#define NAMES_MAX    3                   /* nodes that a message lists */
#define ANSWERS_MAX  16                  /* values that are told apart */
#define VALUES_MAX   4                   /* values that a message lists */
#define VALUE_LEN    160


/* Writes a zone's value; returns 0 if it is unknown and not to be compared. */
typedef int (*value_t)(const node_row_t *row, char value[VALUE_LEN]);

typedef struct {
    const char  *what;
    const char  *name;                   /* for people */
    unsigned     mark;
    value_t      value;
    const char  *advice;
} trait_t;

/* A zone's rows. */
typedef struct {
    node_findings_t  *found;
    node_row_t       *rows;
    size_t            n;
} group_t;


/* ---- values that must be equal ---- */


static int
text_value(const char *text, char value[VALUE_LEN])
{
    if (text == NULL) {
        return 0;
    }

    snprintf(value, VALUE_LEN, "%s", text);

    return 1;
}


static int
count_value(uint64_t count, char value[VALUE_LEN])
{
    if (count == NODE_UNKNOWN) {
        return 0;
    }

    snprintf(value, VALUE_LEN, "%" PRIu64, count);

    return 1;
}


static int
build_id_of(const node_row_t *row, char value[VALUE_LEN])
{
    return text_value(row->zone->build_id, value);
}


static int
key_form_of(const node_row_t *row, char value[VALUE_LEN])
{
    return text_value(row->zone->key_form, value);
}


static int
geometry_of(const node_row_t *row, char value[VALUE_LEN])
{
    const node_zone_t  *zone;

    zone = row->zone;

    if (zone->layout == NULL || zone->hash == NULL
        || zone->bits == NODE_UNKNOWN)
    {
        return 0;
    }

    snprintf(value, VALUE_LEN, "%.16s, %" PRIu64 " bits, k %" PRIu64 ", lines %"
             PRIu64 ", %.16s", zone->layout, zone->bits, zone->k, zone->lines,
             zone->hash);

    return 1;
}


static int
items_of(const node_row_t *row, char value[VALUE_LEN])
{
    return count_value(row->zone->items, value);
}


static int
max_items_of(const node_row_t *row, char value[VALUE_LEN])
{
    return count_value(row->zone->max_items, value);
}


static int
expire_of(const node_row_t *row, char value[VALUE_LEN])
{
    if (row->zone->build_id == NULL) {
        return 0;
    }

    if (row->zone->expire == NODE_UNKNOWN) {
        return text_value("no expire", value);
    }

    snprintf(value, VALUE_LEN, "%" PRIu64 " s in %" PRIu64 " slices",
             row->zone->expire, row->zone->slices);

    return 1;
}


static int
removals_limit_of(const node_row_t *row, char value[VALUE_LEN])
{
    return count_value(row->zone->removals_limit, value);
}


static int
journal_of(const node_row_t *row, char value[VALUE_LEN])
{
    return row->zone->journal == NODE_UNKNOWN
           ? 0 : text_value(row->zone->journal ? "on" : "off", value);
}


static int
source_of(const node_row_t *row, char value[VALUE_LEN])
{
    return text_value(row->zone->source ? row->zone->source : "none", value);
}


static int
digest_of(const node_row_t *row, char value[VALUE_LEN])
{
    return text_value(row->zone->digest, value);
}


static int
version_of(const node_row_t *row, char value[VALUE_LEN])
{
    return text_value(row->node->version, value);
}


#define CONFIGURE  "configure the zone alike on all nodes"

static const trait_t  build_id = {
    "build_id", "the build id of the image", NODE_MARK_IMAGE, build_id_of,
    "load the same image on all nodes"
};

static const trait_t  key_form = {
    "form", "the key form", NODE_MARK_IMAGE, key_form_of,
    "the nodes answer differently for the same key: load the same image on all "
    "nodes"
};

/* The traits of one filter, which differ anyway if the images do. */
static const trait_t  filter_traits[] = {
    { "geometry", "the geometry of the filter", NODE_MARK_IMAGE, geometry_of,
      CONFIGURE },
    { "items", "the number of keys of the image", NODE_MARK_ITEMS, items_of,
      "load the same image on all nodes" },
    { "max_items", "the number of keys that the filter has room for",
      NODE_MARK_ITEMS, max_items_of, CONFIGURE },
    { NULL }
};

static const trait_t  zone_traits[] = {
    { "expire", "the life of keys", NODE_MARK_ITEMS, expire_of, CONFIGURE },
    { "removals_limit", "the room for removed keys", NODE_MARK_REMOVED,
      removals_limit_of, CONFIGURE },
    { "journal", "the journal", NODE_MARK_JOURNAL, journal_of, CONFIGURE },
    { "source", "the source", NODE_MARK_SOURCE, source_of, CONFIGURE },
    { NULL }
};

static const trait_t  digest = {
    "digest", "the digest of the source's changes", NODE_MARK_DIGEST,
    digest_of,
    "the nodes got different changes: see whether their followers read the same "
    "stream, and load a newer image on all nodes"
};

static const trait_t  version = {
    "version", "the version of the module", NODE_MARK_VERSION, version_of,
    "install the same version on all nodes"
};


/* A value, and how many rows have it. */
typedef struct {
    char      value[VALUE_LEN];
    size_t    rows;
    unsigned  nodes;                     /* of them, listed in `text` */
    char     *text;
    size_t    len;
} answer_t;


static void
append(answer_t *answer, const char *fmt, const char *text, int len)
{
    char   *more;
    int     n;

    n = asprintf(&more, fmt, len, text);

    if (n == -1) {
        cli_no_memory(0);
    }

    answer->text = cli_realloc(answer->text, answer->len + (size_t) n + 1);
    memcpy(answer->text + answer->len, more, (size_t) n + 1);
    answer->len += (size_t) n;
    free(more);
}


static void
append_node(answer_t *answer, const node_t *node)
{
    answer->rows++;

    if (answer->nodes == NAMES_MAX) {
        return;
    }

    append(answer, answer->nodes++ == 0 ? "%.*s" : ", %.*s", node->name,
           node->name_len);
}


static answer_t *
find_answer(answer_t *answers, size_t n, const char *value)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(answers[i].value, value) == 0) {
            return &answers[i];
        }
    }

    return NULL;
}


/* Says which nodes have which value, and marks those of the minority. */
static void
report(group_t *group, const trait_t *trait, answer_t *answers, size_t n,
    const char *zone)
{
    char       value[VALUE_LEN];
    size_t     i, most, ties;
    answer_t   text, *answer;

    for (most = 0, ties = 0, i = 0; i < n; i++) {
        if (answers[i].rows > most) {
            most = answers[i].rows;
            ties = 1;

        } else if (answers[i].rows == most) {
            ties++;
        }
    }

    for (i = 0; i < group->n; i++) {
        if (trait->value(&group->rows[i], value)) {
            answer = find_answer(answers, n, value);

            if (answer == NULL || answer->rows < most || ties > 1) {
                group->rows[i].zone->marks |= trait->mark;
            }
        }
    }

    memset(&text, 0, sizeof(text));

    for (i = 0; i < n && i < VALUES_MAX; i++) {
        append(&text, i == 0 ? "%.*s" : "; %.*s", answers[i].value, VALUE_LEN);
        append(&text, " on %.*s", answers[i].text, (int) answers[i].len);

        if (answers[i].rows > answers[i].nodes) {
            snprintf(value, sizeof(value), " and %zu more",
                     answers[i].rows - answers[i].nodes);
            append(&text, "%.*s", value, VALUE_LEN);
        }
    }

    if (n > VALUES_MAX) {
        append(&text, "; %.*s", "other values elsewhere", VALUE_LEN);
    }

    node_findings_add(group->found, trait->what, zone,
        "%s differs: %s; %s", trait->name,
        text.text, trait->advice);

    free(text.text);
}


/* Compares a trait.  Returns 1 if it differs, else 0. */
static int
differs(group_t *group, const trait_t *trait, const char *zone)
{
    char       value[VALUE_LEN];
    size_t     i, n;
    answer_t   answers[ANSWERS_MAX], *answer;

    for (n = 0, i = 0; i < group->n; i++) {

        if (!trait->value(&group->rows[i], value)) {
            continue;
        }

        answer = find_answer(answers, n, value);

        if (answer == NULL && n == ANSWERS_MAX) {
            continue;
        }

        if (answer == NULL) {
            answer = &answers[n++];
            memset(answer, 0, sizeof(*answer));
            memcpy(answer->value, value, strlen(value) + 1);
        }

        append_node(answer, group->rows[i].node);
    }

    if (n > 1) {
        report(group, trait, answers, n, zone);
    }

    for (i = 0; i < n; i++) {
        free(answers[i].text);
    }

    return n > 1;
}


/* ---- values that move ---- */


typedef struct {
    const char  *what;
    const char  *name;
    unsigned     mark;
    size_t       now;
    size_t       before;
    const char  *advice;
} moving_t;

#define MOVING(what, name, mark, member, earlier, advice)                    \
    { what, name, mark, offsetof(node_zone_t, member),                       \
      offsetof(node_zone_t, earlier), advice }

static const moving_t  moving_bits = MOVING("bits_set",
    "the number of bits that are set", NODE_MARK_BITS, bits_set,
    bits_set_before,
    "some nodes lack added keys: send all changes to all nodes, or load an "
    "image that has them");

static const moving_t  moving_items = MOVING("estimated_items",
    "the estimated number of keys", NODE_MARK_ITEMS, estimated_items,
    estimated_before,
    "some nodes lack added keys: send all changes to all nodes, or load an "
    "image that has them");

static const moving_t  moving_removed = MOVING("removed",
    "the number of removed keys", NODE_MARK_REMOVED, removed, removed_before,
    "send all removals to all nodes");


static uint64_t
number_at(const node_zone_t *zone, size_t offset)
{
    return *(const uint64_t *) ((const char *) zone + offset);
}


/* Compares a number that changes all the time; `error` is the error of an
 * estimate in units of the root of the number. */
static void
compare_moving(group_t *group, const moving_t *moving, double error)
{
    size_t       i;
    uint64_t     now, before, least, most, low, high;
    node_row_t  *fewest, *biggest;

    fewest = NULL;
    biggest = NULL;
    least = UINT64_MAX;
    most = 0;

    for (i = 0; i < group->n; i++) {
        now = number_at(group->rows[i].zone, moving->now);
        before = number_at(group->rows[i].zone, moving->before);

        if (now == NODE_UNKNOWN) {
            continue;
        }

        before = before == NODE_UNKNOWN ? now : before;
        low = now < before ? now : before;
        high = now < before ? before : now;

        if (fewest == NULL || high < least) {
            least = high;
            fewest = &group->rows[i];
        }

        if (biggest == NULL || low > most) {
            most = low;
            biggest = &group->rows[i];
        }
    }

    if (fewest == NULL || most <= least
        || (double) (most - least) <= error * sqrt((double) most))
    {
        return;
    }

    for (i = 0; i < group->n; i++) {
        if (number_at(group->rows[i].zone, moving->now) != most
            || group->n == 2)
        {
            group->rows[i].zone->marks |= moving->mark;
        }
    }

    group->found->moving = 1;

    node_findings_add(group->found, moving->what, fewest->zone->name,
        "%s differs: %" PRIu64 " on %.*s, %" PRIu64 " on %.*s; %s",
        moving->name, number_at(fewest->zone, moving->now),
        fewest->node->name_len, fewest->node->name,
        number_at(biggest->zone, moving->now), biggest->node->name_len,
        biggest->node->name, moving->advice);
}


/* ---- digests ---- */


/* Returns 1 if the digests of two zones are about the same changes: if the
 * zones have the same source, are at the same position there, and began to
 * count at the same one. */
static int
digests_comparable(const node_zone_t *a, const node_zone_t *b)
{
    return a->digest != NULL && b->digest != NULL
           && a->source != NULL && b->source != NULL
           && strcmp(a->source, b->source) == 0
           && a->position != NULL && b->position != NULL
           && strcmp(a->position, b->position) == 0
           && a->digest_since != NULL && b->digest_since != NULL
           && strcmp(a->digest_since, b->digest_since) == 0;
}


/* Compares digests among those zones that can be compared. */
static void
compare_digests(group_t *group)
{
    char     *done;
    size_t    i, j;
    group_t   alike;

    alike.found = group->found;
    alike.rows = cli_alloc(group->n * sizeof(node_row_t));
    done = cli_alloc(group->n);
    memset(done, 0, group->n);

    for (i = 0; i < group->n; i++) {
        alike.n = 0;

        for (j = i; j < group->n && !done[i]; j++) {
            if (!done[j] && digests_comparable(group->rows[i].zone,
                                               group->rows[j].zone))
            {
                alike.rows[alike.n++] = group->rows[j];
                done[j] = (j != i);
            }
        }

        (void) differs(&alike, &digest, group->rows[0].zone->name);
    }

    free(done);
    free(alike.rows);
}


/* ---- zones ---- */


/* Returns 1 if the zone's filter comes from an image, 0 if the zone started
 * empty: then each node has another build id and another seed. */
static int
has_image(const node_zone_t *zone)
{
    return zone->file != NULL || zone->uploaded == 1;
}


static void
compare_filters(group_t *group)
{
    int             images, same, excepted, grown, expires, sources;
    size_t          i;
    const trait_t  *trait;
    node_zone_t    *zone;

    images = 0;
    excepted = 0;
    grown = 0;
    expires = 0;
    sources = 0;

    for (i = 0; i < group->n; i++) {
        zone = group->rows[i].zone;

        images |= has_image(zone);
        excepted |= zone->excepted != 0;
        grown |= zone->layers != 0 && zone->layers != NODE_UNKNOWN;
        expires |= zone->expire != NODE_UNKNOWN;
        sources |= zone->source != NULL;
    }

    same = !differs(group, &key_form, group->rows[0].zone->name);

    if (images && differs(group, &build_id, group->rows[0].zone->name)) {
        same = 0;
    }

    for (trait = filter_traits; same && trait->what != NULL; trait++) {
        same = !differs(group, trait, group->rows[0].zone->name);
    }

    /* bits and removed keys depend on how a source's changes were batched */

    if (!same || sources) {
        return;
    }

    /* excepted keys are each node's own, and slices close at other times */

    if (images && !grown && !expires) {
        compare_moving(group, &moving_bits, 0);

    } else if (!expires) {
        compare_moving(group, &moving_items, 5);
    }

    if (!excepted) {
        compare_moving(group, &moving_removed, 0);
    }
}


/* Names the endpoints that lack a zone that others have. */
static void
find_missing(group_t *group, node_t *nodes, size_t n)
{
    size_t       i, j;
    const char  *name;

    name = group->rows[0].zone->name;

    for (i = 0; i < n; i++) {

        if (!nodes[i].whole || nodes[i].error != NULL) {
            continue;
        }

        for (j = 0; j < group->n; j++) {
            if (group->rows[j].node == &nodes[i]) {
                break;
            }
        }

        if (j == group->n) {
            node_findings_add(group->found, "missing", name,
                "%.*s has no such zone; %s",
                nodes[i].name_len, nodes[i].name, CONFIGURE);
        }
    }
}


static void
compare_group(group_t *group, node_t *nodes, size_t n)
{
    size_t          i;
    const trait_t  *trait;

    for (i = 0; i < group->n; i++) {
        node_check(group->found, &group->rows[i]);
    }

    find_missing(group, nodes, n);
    compare_filters(group);
    compare_digests(group);

    for (trait = zone_traits; trait->what != NULL; trait++) {
        (void) differs(group, trait, group->rows[0].zone->name);
    }
}


/* Compares the versions, with one row for each node. */
static void
compare_versions(node_findings_t *found, node_t *nodes, size_t n)
{
    size_t       i, j;
    group_t      group;
    node_row_t  *rows;

    rows = cli_alloc(n * sizeof(node_row_t));
    memset(&group, 0, sizeof(group));
    group.found = found;
    group.rows = rows;

    for (i = 0; i < n; i++) {
        if (nodes[i].n != 0) {
            rows[group.n].node = &nodes[i];
            rows[group.n++].zone = &nodes[i].zones[0];
        }
    }

    (void) differs(&group, &version, NULL);

    for (i = 0; i < group.n; i++) {
        for (j = 1; j < rows[i].node->n; j++) {
            rows[i].node->zones[j].marks |= rows[i].zone->marks
                                            & NODE_MARK_VERSION;
        }
    }

    free(rows);
}


static int
compare_rows(const void *a, const void *b)
{
    int                rc;
    const node_row_t  *x = a, *y = b;

    rc = strcmp(x->zone->name, y->zone->name);

    return rc != 0 ? rc : x->node < y->node ? -1 : x->node > y->node;
}


void
node_compare(node_findings_t *found, node_t *nodes, size_t n)
{
    size_t   i, j;
    group_t  group;

    memset(found, 0, sizeof(*found));

    for (i = 0; i < n; i++) {
        found->rows_n += nodes[i].n;

        if (nodes[i].error != NULL) {
            node_findings_add(found, "no_answer", NULL,
                "%.*s: %s", nodes[i].name_len,
                nodes[i].name, nodes[i].error);
        }
    }

    found->rows = cli_alloc((found->rows_n + 1) * sizeof(node_row_t));
    found->rows_n = 0;

    for (i = 0; i < n; i++) {
        for (j = 0; j < nodes[i].n; j++) {
            nodes[i].zones[j].marks = 0;
            found->rows[found->rows_n].node = &nodes[i];
            found->rows[found->rows_n++].zone = &nodes[i].zones[j];
        }
    }

    qsort(found->rows, found->rows_n, sizeof(node_row_t), compare_rows);

    compare_versions(found, nodes, n);

    for (i = 0; i < found->rows_n; i += group.n) {
        group.found = found;
        group.rows = &found->rows[i];

        for (j = i + 1; j < found->rows_n
                        && strcmp(found->rows[j].zone->name,
                                  found->rows[i].zone->name) == 0; j++)
        {
            /* void */
        }

        group.n = j - i;
        found->zones++;

        compare_group(&group, nodes, n);
    }
}


void
node_compare_before(node_t *nodes, const node_t *before, size_t n)
{
    size_t              i, j;
    node_zone_t        *zone;
    const node_zone_t  *old;

    for (i = 0; i < n; i++) {
        for (j = 0; j < nodes[i].n && j < before[i].n; j++) {

            zone = &nodes[i].zones[j];
            old = &before[i].zones[j];

            /* another generation begins with other numbers */

            if (strcmp(zone->name, old->name) == 0
                && zone->generation == old->generation)
            {
                zone->bits_set_before = old->bits_set;
                zone->estimated_before = old->estimated_items;
                zone->removed_before = old->removed;
            }
        }
    }
}
