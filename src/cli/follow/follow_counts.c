/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads, sums up and logs the counts of changes that a zone received.
 */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "follow_counts.h"
#include "follow_log.h"

#define COUNT(name, words)                                                     \
    { #name, words, offsetof(follow_counts_t, name) }


/* The counts: the member of the response, and how the log says it. */
static const struct {
    const char  *member;
    const char  *words;
    size_t       offset;
} table[] = {
    COUNT(received,        NULL),
    COUNT(added,           "added"),
    COUNT(already_present, "already present"),
    COUNT(removed,         "removed"),
    COUNT(absent,          "absent"),
    COUNT(superseded,      "superseded"),
    COUNT(invalid,         "invalid")
};

#define COUNTS  (sizeof(table) / sizeof(table[0]))


static uint64_t *
count_at(follow_counts_t *counts, size_t i)
{
    return (uint64_t *) ((char *) counts + table[i].offset);
}


void
follow_counts_read(follow_counts_t *counts, const json_t *doc)
{
    size_t  i;

    memset(counts, 0, sizeof(*counts));

    for (i = 0; i < COUNTS; i++) {
        (void) document_count(doc, table[i].member, count_at(counts, i));
    }
}


void
follow_counts_add(follow_counts_t *sum, const follow_counts_t *counts)
{
    size_t           i;
    follow_counts_t  more;

    more = *counts;

    for (i = 0; i < COUNTS; i++) {
        *count_at(sum, i) += *count_at(&more, i);
    }
}


void
follow_counts_say(const follow_counts_t *counts, const char *zone)
{
    char             text[256];
    size_t           i, len;
    follow_counts_t  said;

    said = *counts;

    if (said.received == 0) {
        return;
    }

    for (len = 0, i = 1; i < COUNTS; i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%llu %s",
                                 i == 1 ? "" : ", ",
                                 (unsigned long long) *count_at(&said, i),
                                 table[i].words);
    }

    follow_log(NULL, zone, FOLLOW_INFO, "received",
               "the zone received %llu change%s: %s",
               (unsigned long long) said.received, CLI_S(said.received), text);
}
