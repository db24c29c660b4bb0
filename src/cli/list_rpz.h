/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names that a response policy zone (RPZ) of DNS blocks.
 *
 *     bad.example     CNAME .               blocked, and so with *. and
 *                                           rpz-drop., and with the address
 *                                           0.0.0.0, 127.0.0.1, :: or ::1
 *     *.bad.example   CNAME .               like bad.example
 *     good.example    CNAME rpz-passthru.   an exception
 *     24.0.2.0.192.rpz-ip  CNAME .          skipped: is about an address
 *     x.example       CNAME other.example.  skipped: has another answer
 *
 * It is a zone file (RFC 1035): a record may have several lines, in
 * parentheses; names may be absolute, or relative to $ORIGIN; and a record
 * without a name has that of the record before.
 */

#ifndef LIST_RPZ_H
#define LIST_RPZ_H

#include "list_line.h"


#define LIST_RPZ_NAME_MAX  255

/* A name without a dot at its end. */
typedef struct {
    uint16_t  len;
    uint8_t   text[LIST_RPZ_NAME_MAX];
} list_rpz_name_t;

/* What a record depends on: the records before it.  At first all 0. */
typedef struct {
    list_rpz_name_t  zone;               /* the name of the zone, which is not
                                            part of the names that it blocks */
    list_rpz_name_t  origin;
    list_rpz_name_t  owner;              /* of the last record */
    int              has_origin;         /* $ORIGIN was read */
    int              has_zone;           /* $ORIGIN or SOA was read */
    int              has_owner;
    int              soa;                /* SOA was read */
} list_rpz_t;


/* Reads a record, which changes the list_rpz_t at->zone. */
list_result_e list_rpz_next(list_line_t *at);

/* Brings a list_rpz_t from the beginning of these records to their end. */
void list_rpz_pass(list_rpz_t *zone, const uint8_t *data, size_t len);

/* Finds the end of the record that begins at p: a line end that is not within
 * parentheses, or `end`.  *open becomes 1 if parentheses are open at the
 * end. */
const uint8_t *list_rpz_end(const uint8_t *p, const uint8_t *end, int *open);


#endif /* LIST_RPZ_H */
