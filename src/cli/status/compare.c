/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Nodes are not asked at the same instant, so numbers that change all the time
 * are compared as ranges: from the value at the first question to the value at
 * the second.  Ranges that have no value in common differ for sure.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cli.h"
#include "compare.h"
#include "fields.h"
#include "units.h"

#define NAMES_MAX    3                   /* nodes that a message lists */
#define ANSWERS_MAX  16                  /* values that are told apart */
#define VALUES_MAX   4                   /* values that a message lists */
#define VALUE_LEN    160
#define ESTIMATE     5                   /* error of an estimated number of
                                            keys, in roots of the number */


/* A zone's rows. */
typedef struct {
    findings_t  *found;
    node_row_t  *rows;
    size_t       n;
} group_t;

/* A number that changes all the time. */
typedef struct {
    const char  *field;
    const char  *words;
    const char  *advice;
    double       roots;                  /* how far numbers may be apart: in
                                            roots of the number, */
    double       share;                  /* and as a share of it */
} moving_t;


/* ---- values that must be equal ---- */


/* Writes a zone's value; returns 0 if it is unknown and not to be compared. */
static int
value_of(const node_row_t *row, const field_t *field, char text[VALUE_LEN])
{
    const char    *string;
    const json_t  *value;

    value = json_object_get(row->zone->values, field->name);

    if (json_is_integer(value)) {
        snprintf(text, VALUE_LEN, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        return 1;
    }

    string = json_is_string(value) ? json_string_value(value) : field->missing;

    if (string == NULL) {
        return 0;
    }

    snprintf(text, VALUE_LEN, "%s", string);

    return 1;
}


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


/* Marks the rows whose value is not that of the majority, or all if there is
 * none. */
static void
mark_minority(group_t *group, const field_t *field, answer_t *answers, size_t n)
{
    char       value[VALUE_LEN];
    size_t     i, most, ties;
    answer_t  *answer;

    for (most = 0, ties = 0, i = 0; i < n; i++) {
        if (answers[i].rows > most) {
            most = answers[i].rows;
            ties = 1;

        } else if (answers[i].rows == most) {
            ties++;
        }
    }

    for (i = 0; i < group->n; i++) {
        if (value_of(&group->rows[i], field, value)) {
            answer = find_answer(answers, n, value);

            if (answer == NULL || answer->rows < most || ties > 1) {
                group->rows[i].zone->marks |= field_mark(field->name);
            }
        }
    }
}


/* Says which nodes have which value. */
static void
report(group_t *group, const field_t *field, answer_t *answers, size_t n,
    const char *zone)
{
    char      more[VALUE_LEN];
    size_t    i;
    answer_t  text;

    memset(&text, 0, sizeof(text));

    for (i = 0; i < n && i < VALUES_MAX; i++) {
        append(&text, i == 0 ? "%.*s" : "; %.*s", answers[i].value, VALUE_LEN);
        append(&text, " on %.*s", answers[i].text, (int) answers[i].len);

        if (answers[i].rows > answers[i].nodes) {
            snprintf(more, sizeof(more), " and %zu more",
                     answers[i].rows - answers[i].nodes);
            append(&text, "%.*s", more, VALUE_LEN);
        }
    }

    if (n > VALUES_MAX) {
        append(&text, "; %.*s", "other values elsewhere", VALUE_LEN);
    }

    findings_add(group->found, field->name, zone, "%s differs: %s; %s",
                 field->words, text.text, field->advice);

    free(text.text);
}


/* Compares a value.  Returns 1 if it differs, else 0.  `says`: 1 to say so. */
static int
differs(group_t *group, const field_t *field, const char *zone, int says)
{
    char       value[VALUE_LEN];
    size_t     i, n;
    answer_t   answers[ANSWERS_MAX], *answer;

    for (n = 0, i = 0; i < group->n; i++) {

        if (!value_of(&group->rows[i], field, value)) {
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

    if (n > 1 && says) {
        mark_minority(group, field, answers, n);
        report(group, field, answers, n, zone);
    }

    for (i = 0; i < n; i++) {
        free(answers[i].text);
    }

    return n > 1;
}


static const field_t *
field_of(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(fields[i].name, name) != 0; i++) {
        /* void */
    }

    return &fields[i];
}


/* Compares the fields of a scope.  Returns 1 if one differs, else 0. */
static int
differ_in_scope(group_t *group, field_scope_t scope)
{
    int     differ;
    size_t  i;

    for (differ = 0, i = 0; i < fields_n; i++) {
        if (fields[i].compared == scope) {
            differ |= differs(group, &fields[i], group->rows[0].zone->name, 1);
        }
    }

    return differ;
}


/* ---- values that move ---- */


/* Reads the range of a number.  Returns 1, or 0 if it is unknown. */
static int
range_of(const node_row_t *row, const char *field, uint64_t *low,
    uint64_t *high)
{
    uint64_t  now, before;

    now = field_count(row->zone->values, field);
    before = row->zone->before != NULL
             ? field_count(row->zone->before, field) : FIELD_UNKNOWN;
    before = before == FIELD_UNKNOWN ? now : before;

    *low = now < before ? now : before;
    *high = now < before ? before : now;

    return now != FIELD_UNKNOWN;
}


static void
compare_moving(group_t *group, const moving_t *moving)
{
    size_t       i;
    uint64_t     least, most, low, high;
    node_row_t  *row, *fewest, *biggest;

    fewest = NULL;
    biggest = NULL;
    least = UINT64_MAX;
    most = 0;

    for (i = 0; i < group->n; i++) {
        row = &group->rows[i];

        if (!range_of(row, moving->field, &low, &high)) {
            continue;
        }

        if (fewest == NULL || high < least) {
            least = high;
            fewest = row;
        }

        if (biggest == NULL || low > most) {
            most = low;
            biggest = row;
        }
    }

    if (fewest == NULL || most <= least
        || (double) (most - least) <= moving->roots * sqrt((double) most)
                                      + moving->share * (double) most)
    {
        return;
    }

    for (i = 0; i < group->n; i++) {
        if (field_count(group->rows[i].zone->values, moving->field) != most
            || group->n == 2)
        {
            group->rows[i].zone->marks |= field_mark(moving->field);
        }
    }

    group->found->moving = 1;

    findings_add(group->found, moving->field, fewest->zone->name,
        "%s differs: %" PRIu64 " on %.*s, %" PRIu64 " on %.*s; %s",
        moving->words, field_count(fewest->zone->values, moving->field),
        fewest->node->name_len, fewest->node->name,
        field_count(biggest->zone->values, moving->field),
        biggest->node->name_len, biggest->node->name, moving->advice);
}


/* ---- images ---- */


/* Returns the time of a zone's image in ms, and the field that has it; 0 if it
 * is unknown. */
static uint64_t
time_of(const node_row_t *row, const char **field)
{
    size_t       i;
    uint64_t     time;
    const char  *text;

    static const char  *names[] = { "as_of", "created" };

    for (i = 0; i < 2; i++) {
        *field = names[i];
        text = field_text(row->zone->values, names[i]);

        if (text != NULL && parse_time(text, &time) == 0) {
            return time;
        }
    }

    return 0;
}


/* Compares images that the nodes have built themselves.  Returns 1 if they may
 * have the same keys, else 0. */
static int
compare_builds(group_t *group)
{
    int          may;
    size_t       i;
    uint64_t     time, first, last;
    node_row_t  *oldest, *newest;
    const char  *field, *name;
    moving_t     items = {
        "items", "the number of keys of the image",
        "build the images from the same keys, at about the same time, or load "
        "the same image on all nodes", 0, 0
    };

    oldest = newest = NULL;
    first = last = 0;
    field = name = NULL;

    for (i = 0; i < group->n; i++) {
        time = time_of(&group->rows[i], &name);

        if (time != 0 && (oldest == NULL || time < first)) {
            oldest = &group->rows[i];
            first = time;
            field = name;
        }

        if (time != 0 && (newest == NULL || time > last)) {
            newest = &group->rows[i];
            last = time;
        }
    }

    may = last - first <= COMPARE_TIME;

    if (!may) {
        oldest->zone->marks |= field_mark("build_id");

        findings_add(group->found, "build_id", oldest->zone->name,
            "the images are of other times: %s on %.*s, %s on %.*s; build or "
            "load a newer one on %.*s",
            field_text(oldest->zone->values, field),
            oldest->node->name_len, oldest->node->name,
            field_text(newest->zone->values, name), newest->node->name_len,
            newest->node->name, oldest->node->name_len, oldest->node->name);
    }

    items.share = first != last ? COMPARE_SHARE : 0;

    for (i = 0; i < group->n; i++) {
        if (json_is_true(json_object_get(group->rows[i].zone->values,
                                         "items_estimated")))
        {
            items.roots = ESTIMATE;
        }
    }

    if (may) {
        compare_moving(group, &items);
    }

    return may;
}


/* ---- digests ---- */


static int
same_text(const node_row_t *a, const node_row_t *b, const char *field)
{
    const char  *x, *y;

    x = field_text(a->zone->values, field);
    y = field_text(b->zone->values, field);

    return x != NULL && y != NULL && strcmp(x, y) == 0;
}


/* Compares digests among those zones whose digests are about the same changes:
 * that have the same source, are at the same position there, and began to count
 * at the same one. */
static void
compare_digests(group_t *group)
{
    char        *done;
    size_t       i, j;
    group_t      alike;
    node_row_t  *a, *b;

    alike.found = group->found;
    alike.rows = cli_alloc(group->n * sizeof(node_row_t));
    done = cli_alloc(group->n);
    memset(done, 0, group->n);

    for (i = 0; i < group->n; i++) {
        alike.n = 0;
        a = &group->rows[i];

        for (j = i; j < group->n && !done[i]; j++) {
            b = &group->rows[j];

            if (!done[j] && same_text(a, b, "source")
                && same_text(a, b, "position")
                && same_text(a, b, "digest_since"))
            {
                alike.rows[alike.n++] = *b;
                done[j] = (j != i);
            }
        }

        if (alike.n > 1) {
            (void) differ_in_scope(&alike, FIELD_IF_CHANGES);
        }
    }

    free(done);
    free(alike.rows);
}


/* ---- samples ---- */


static const char *
answer_name(char letter)
{
    return letter == 'p' ? "present" : letter == 'a' ? "absent" : "invalid";
}


/* Finds two zones whose answers about a key differ.  An unknown answer is no
 * difference: the state says why it is unknown.  Returns 1 if two differ, 0 if
 * all agree, -1 if fewer than two know. */
static int
answers_differ(group_t *group, size_t key, node_row_t **one, node_row_t **other)
{
    size_t       i, n;
    node_row_t  *row;

    *one = NULL;

    for (n = 0, i = 0; i < group->n; i++) {
        row = &group->rows[i];

        if (row->zone->answers == NULL || row->zone->answers[key] == 'u') {
            continue;
        }

        *one = n++ == 0 ? row : *one;

        if (row->zone->answers[key] != (*one)->zone->answers[key]) {
            *other = row;
            return 1;
        }
    }

    return n > 1 ? 0 : -1;
}


/* Compares what zones have answered about the keys of the sample. */
static void
compare_answers(group_t *group, sampled_t *sampled)
{
    int          rc;
    size_t       i, key, shown;
    node_row_t  *row, *one, *other, *a, *b;

    sampled->zone = group->rows[0].zone->name;
    shown = 0;
    one = other = NULL;

    for (i = 0; i < group->n; i++) {
        row = &group->rows[i];

        if (row->zone->error != NULL) {
            findings_add(group->found, "sample", sampled->zone,
                         "%.*s has no answers about the sampled keys: %s",
                         row->node->name_len, row->node->name,
                         row->zone->error);
        }
    }

    for (key = 0; key < group->found->sample->n; key++) {
        rc = answers_differ(group, key, &a, &b);
        sampled->keys += rc != -1;

        if (rc == 1 && sampled->differ++ == 0) {
            shown = key;
            one = a;
            other = b;
        }
    }

    if (sampled->differ != 0) {
        findings_add(group->found, "sample", sampled->zone,
            "the same keys are expected: %zu of %zu sampled keys differ; %s is "
            "%s on %.*s, %s on %.*s; load images of the same keys, and send "
            "all changes to all nodes",
            sampled->differ, sampled->keys, group->found->sample->keys[shown],
            answer_name(one->zone->answers[shown]), one->node->name_len,
            one->node->name, answer_name(other->zone->answers[shown]),
            other->node->name_len, other->node->name);
    }
}


/* ---- zones ---- */


/* Returns 1 if the zone's filter comes from an image, 0 if the zone started
 * empty: then each node has another build id and another seed. */
static int
has_image(const json_t *values)
{
    return field_text(values, "file") != NULL
           || json_is_true(json_object_get(values, "uploaded"));
}


#define ADDED  "some nodes lack added keys: send all changes to all nodes, "   \
               "or load an image that has them"

static const moving_t  moving_bits = {
    "bits_set", "the number of bits that are set", ADDED, 0, 0
};

static const moving_t  moving_items = {
    "estimated_items", "the estimated number of keys", ADDED, ESTIMATE, 0
};

static const moving_t  moving_removed = {
    "removed", "the number of removed keys",
    "send all removals to all nodes", 0, 0
};


static void
compare_filters(group_t *group)
{
    int           images, builds, excepted, grown, expires, sources;
    size_t        i;
    uint64_t      layers;
    const json_t *values;

    images = excepted = grown = expires = sources = 0;

    for (i = 0; i < group->n; i++) {
        values = group->rows[i].zone->values;
        layers = field_count(values, "layers");

        images += has_image(values);
        excepted |= field_count(values, "excepted") != 0;
        grown |= layers != 0 && layers != FIELD_UNKNOWN;
        expires |= field_count(values, "expire_seconds") != FIELD_UNKNOWN;
        sources |= field_text(values, "source") != NULL;
    }

    builds = images != 0
             && differs(group, field_of("build_id"), NULL, 0);

    if (builds) {
        (void) compare_builds(group);
        return;
    }

    /* bits and removed keys depend on how a source's changes were batched */

    if (differ_in_scope(group, FIELD_IF_ALIKE) || sources) {
        return;
    }

    /* excepted keys are each node's own, and slices close at other times */

    if (images && !grown && !expires) {
        compare_moving(group, &moving_bits);

    } else if (!expires) {
        compare_moving(group, &moving_items);
    }

    if (!excepted) {
        compare_moving(group, &moving_removed);
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
            findings_add(group->found, "missing", name,
                "%.*s has no such zone; configure the zone alike on all nodes",
                nodes[i].name_len, nodes[i].name);
        }
    }
}


static void
compare_group(group_t *group, node_t *nodes, size_t n)
{
    size_t  i;

    for (i = 0; i < group->n; i++) {
        check_zone(group->found, &group->rows[i]);
    }

    find_missing(group, nodes, n);

    if (!differ_in_scope(group, FIELD_FORM)) {
        compare_filters(group);
    }

    compare_digests(group);
    (void) differ_in_scope(group, FIELD_ALWAYS);

    if (group->found->sample != NULL) {
        compare_answers(group, &group->found->sampled[group->found->zones]);
    }

    group->found->zones++;
}


/* Compares the versions, with one row for each node. */
static void
compare_versions(findings_t *found, node_t *nodes, size_t n)
{
    size_t    i, j;
    group_t   group;
    uint64_t  mark;

    memset(&group, 0, sizeof(group));
    group.found = found;
    group.rows = cli_alloc(n * sizeof(node_row_t));

    for (i = 0; i < n; i++) {
        if (nodes[i].n != 0) {
            group.rows[group.n].node = &nodes[i];
            group.rows[group.n++].zone = &nodes[i].zones[0];
        }
    }

    (void) differs(&group, field_of("version"), NULL, 1);
    mark = field_mark("version");

    for (i = 0; i < group.n; i++) {
        for (j = 1; j < group.rows[i].node->n; j++) {
            group.rows[i].node->zones[j].marks |= group.rows[i].zone->marks
                                                  & mark;
        }
    }

    free(group.rows);
}


static int
compare_rows(const void *a, const void *b)
{
    int                rc;
    const node_row_t  *x = a, *y = b;

    rc = strcmp(x->zone->name, y->zone->name);

    return rc != 0 ? rc : x->node < y->node ? -1 : x->node > y->node;
}


/* Lists the zones of all nodes. */
static void
list_rows(findings_t *found, node_t *nodes, size_t n)
{
    size_t  i, j;

    for (i = 0; i < n; i++) {
        found->rows_n += nodes[i].n;

        if (nodes[i].error != NULL) {
            findings_add(found, "no_answer", NULL, "%.*s: %s",
                         nodes[i].name_len, nodes[i].name, nodes[i].error);
        }
    }

    found->rows = cli_alloc((found->rows_n + 1) * sizeof(node_row_t));
    found->sampled = cli_alloc((found->rows_n + 1) * sizeof(sampled_t));
    memset(found->sampled, 0, (found->rows_n + 1) * sizeof(sampled_t));
    found->rows_n = 0;

    for (i = 0; i < n; i++) {
        for (j = 0; j < nodes[i].n; j++) {
            nodes[i].zones[j].marks = 0;
            found->rows[found->rows_n].node = &nodes[i];
            found->rows[found->rows_n++].zone = &nodes[i].zones[j];
        }
    }

    qsort(found->rows, found->rows_n, sizeof(node_row_t), compare_rows);
}


void
compare_nodes(findings_t *found, node_t *nodes, size_t n,
    const node_sample_t *sample)
{
    size_t   i, j;
    group_t  group;

    memset(found, 0, sizeof(*found));
    found->sample = sample;

    list_rows(found, nodes, n);
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
        compare_group(&group, nodes, n);
    }
}
