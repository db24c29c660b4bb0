/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One table says all about the values of a zone: where its node's endpoint
 * tells them, how they are printed, and how those of several nodes are compared.
 *
 * A zone has its values in an object, by the names of the table; those that are
 * unknown are missing.
 */

#ifndef FIELDS_H
#define FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>


#define FIELD_UNKNOWN  UINT64_MAX        /* a number that the state lacks */

/* The longest silence of a helper, which gives a sign of life every second, and
 * the longest lag of a zone without max_lag=, ms. */
#define FIELD_SILENCE_MAX  10000
#define FIELD_LAG_MAX      30000


typedef enum {
    FIELD_TEXT,
    FIELD_ID,                            /* a text of which a table shows the
                                            first digits */
    FIELD_COUNT,
    FIELD_SPAN,                          /* a count of ms */
    FIELD_RATE,                          /* a number from 0 to 1 */
    FIELD_FLAG
} field_kind_t;

/* When zones of several nodes are compared by a value. */
typedef enum {
    FIELD_NEVER,
    FIELD_ALWAYS,
    FIELD_FORM,                          /* always; if they differ, nothing else
                                            of the filter is compared */
    FIELD_IF_ALIKE,                      /* if they started empty, or have the
                                            same image */
    FIELD_IF_CHANGES                     /* if they have the same changes of
                                            their source */
} field_scope_t;

typedef struct {
    const char    *name;                 /* a member of --json, and the word for
                                            a finding */
    const char    *path;                 /* in the state that an endpoint tells;
                                            NULL: from other values */
    field_kind_t   kind;
    int            hidden;               /* 1: no member of --json */

    const char    *title;                /* of its column; NULL: it has none */
    int            right;                /* numbers are aligned at the right */
    int            source;               /* shown only if a zone has a source */
    const char    *mark;                 /* whose column is marked, if not its
                                            own */

    field_scope_t  compared;
    const char    *missing;              /* stands for the value of a node that
                                            tells none; NULL: such a node is not
                                            compared */
    const char    *words;                /* for people */
    const char    *advice;
} field_t;

extern const field_t  fields[];
extern const size_t   fields_n;


/* Returns the values of a zone from its state; the caller frees them with
 * json_decref(). */
json_t *fields_take(const json_t *state);

/* Adds the values that depend on others, on the node's version (or NULL) and on
 * its time in seconds since 1970 (-1: unknown). */
void fields_derive(json_t *values, const char *version, int64_t date);

/* Returns a text, or NULL. */
const char *field_text(const json_t *values, const char *name);

/* Returns a count, or FIELD_UNKNOWN. */
uint64_t field_count(const json_t *values, const char *name);

/* Returns the bit of the column that is marked if a value is wrong. */
uint64_t field_mark(const char *name);


#endif /* FIELDS_H */
