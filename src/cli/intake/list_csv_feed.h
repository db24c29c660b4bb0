/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions say what the columns of known feeds mean.
 *
 * Columns of keys, the best one first:
 *
 *     url                             URLhaus, PhishTank, Citizen Lab
 *     ioc_value, value, indicator...  ThreatFox, MISP, OTX; beside a column of
 *                                     types, which says what each value is
 *     host, hostname, domain, fqdn    hosts
 *     dst_ip, ip...                   addresses
 *
 * A status says whether a feed's own reader enforces an entry: PhishTank's
 * `verified` and `online`, MISP's `to_ids`.
 */

#ifndef LIST_CSV_FEED_H
#define LIST_CSV_FEED_H

#include "list_line.h"


typedef struct {
    const char  *name;
    const char  *format;                 /* "csv:" and the name */
    int          typed;                  /* needs a column of types */
    int          whole;                  /* has whole URLs */
} list_csv_column_t;

/* The columns of keys, the best one first.  The last one has no name. */
extern const list_csv_column_t  list_csv_columns[];

/* The names of these columns, for messages. */
#define LIST_CSV_KNOWN  \
    "url, host, hostname, domain, fqdn or ip, or ioc_value, value or "         \
    "indicator beside a column of types"


/* The names of columns of types.  The last one is NULL. */
extern const char *const  list_csv_types[];


typedef enum {
    LIST_CSV_PLACE = 0,                  /* a host, a URL or an address */
    LIST_CSV_URI,                        /* a URL, or the path of one */
    LIST_CSV_PAIR,                       /* a host, | and an address */
    LIST_CSV_OTHER
} list_csv_kind_e;

typedef struct {
    const char       *name;
    int               begins;            /* the name is only a beginning */
    list_csv_kind_e   kind;
    const char       *why;               /* LIST_CSV_OTHER: why it is no key */
} list_csv_type_t;

/* Returns what a type means, or NULL for an unknown one. */
const list_csv_type_t *list_csv_type(const bloom_key_t *type);


#define LIST_CSV_STATUSES  3

typedef struct {
    const char  *column;                 /* of the keys */
    const char  *beside;                 /* another column, which tells that
                                            this is the feed */
    const char  *name;                   /* of the column of the status */
    const char  *why;                    /* why entries without it do not
                                            count */
} list_csv_status_t;

extern const list_csv_status_t  list_csv_statuses[LIST_CSV_STATUSES];


#endif /* LIST_CSV_FEED_H */
