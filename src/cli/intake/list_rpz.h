/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names that a response policy zone (RPZ) of DNS blocks.
 *
 *     bad.example     CNAME .               blocked, and so with *. and
 *                                           rpz-drop., and with an address
 *                                           that list_is_sink() knows
 *     *.bad.example   CNAME .               like bad.example
 *     good.example    CNAME rpz-passthru.   an exception, and so with
 *                                           good.example.
 *     24.0.2.0.192.rpz-ip  CNAME .          skipped: is about an address
 *     x.example       CNAME other.example.  skipped: has another answer
 *
 * It is a zone file (RFC 1035): a record may have several lines, in
 * parentheses; names may be absolute, or relative to $ORIGIN; and a record
 * without a name has that of the record before.
 */

#ifndef LIST_RPZ_H
#define LIST_RPZ_H

#include "list_reader.h"


extern const list_reader_t  list_rpz;


#endif /* LIST_RPZ_H */
