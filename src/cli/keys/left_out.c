/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the keys that are left out of an image, and looks them up.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "intake.h"
#include "left_out.h"

#define EXAMPLES  3


static const char *
take(void *own, const bloom_key_t *key, size_t n, const place_t *place)
{
    size_t       index;
    left_out_t  *left_out = own;

    (void) n;                            /* 1, as the sink does not take many */
    (void) key_set_add(&left_out->keys, key, place, &index);

    return NULL;
}


int
left_out_read(left_out_t *left_out, const char *name, uint32_t form)
{
    int              rc;
    intake_t         intake;
    intake_sink_t    sink;
    intake_counts_t  counts;

    left_out->name = name;
    key_set_create(&left_out->keys);

    memset(&intake, 0, sizeof(intake));
    intake.format = list_format_lines;
    intake.key_form = form;
    intake.threads = 1;
    intake.quiet = 1;
    intake.strict = 1;

    memset(&sink, 0, sizeof(sink));
    sink.take = take;
    sink.data = left_out;

    memset(&counts, 0, sizeof(counts));
    rc = intake_read(&intake, &sink, (char **) &name, 1, &counts);

    if (rc == CLI_OK) {
        rc = intake_refuse(&counts, "correct the file of --without");
    }

    intake_free(&counts);

    return rc;
}


void
left_out_free(left_out_t *left_out)
{
    key_set_free(&left_out->keys);
    memset(left_out, 0, sizeof(*left_out));
}


int
left_out_has(left_out_t *left_out, const bloom_key_t *canonical)
{
    key_set_key_t  *key;

    key = key_set_find(&left_out->keys, canonical);

    if (key == NULL) {
        return 0;
    }

    if (!__atomic_load_n(&key->found, __ATOMIC_RELAXED)) {
        __atomic_store_n(&key->found, 1, __ATOMIC_RELAXED);
    }

    return 1;
}


size_t
left_out_unmatched(const left_out_t *left_out)
{
    size_t  i, n;

    for (i = 0, n = 0; i < left_out->keys.n; i++) {
        n += !left_out->keys.key[i].found;
    }

    return n;
}


void
left_out_warn(const left_out_t *left_out)
{
    char                  shown[KEYFORM_SHOWN];
    size_t                i, n, unmatched;
    bloom_key_t           text;
    const key_set_key_t  *key;

    unmatched = left_out_unmatched(left_out);

    if (unmatched == 0) {
        return;
    }

    cli_warn("%s: no list has %zu of its %zu key%s; correct or remove %s",
             left_out->name, unmatched, left_out->keys.n,
             CLI_S(left_out->keys.n),
             unmatched == 1 ? "it" : "them");

    for (i = 0, n = 0; i < left_out->keys.n && n < EXAMPLES; i++) {
        key = &left_out->keys.key[i];

        if (!key->found) {
            text = key_set_text(&left_out->keys, key);
            n++;

            cli_warn("%s: line %" PRIu64 ": no list has \"%s\"",
                     left_out->name, key->place.line, keyform_show(shown, &text));
        }
    }
}
