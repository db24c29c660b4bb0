/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names that a configuration of unbound blocks.
 *
 *     local-zone: "bad.example" always_nxdomain    blocked, and so with the
 *                                                  types always_refuse,
 *                                                  always_nodata, always_deny
 *                                                  and always_null
 *     local-zone: bad.example. redirect            blocked, and so with refuse,
 *                                                  deny, inform_deny and
 *                                                  inform_redirect, unless
 *                                                  local-data gives the name an
 *                                                  address that is no sink
 *     local-zone: bad.example. static              blocked, unless local-data
 *                                                  gives one to any name in it
 *     local-zone: "x.example" always_transparent   an exception
 *     local-zone: "x.example" transparent          an exception, and so with
 *                                                  typetransparent and inform,
 *                                                  unless it has blocked names
 *                                                  in it
 *     local-zone: "x.example" nodefault            skipped, as other types
 *     local-data: "bad.example A 0.0.0.0"          blocked
 *     local-data: 'bad.example. 60 IN AAAA ::'     blocked
 *     local-data: "x.example A 192.0.2.1"          skipped
 *
 * Values may be in quotes of either kind, an option and its values are on one
 * line, and # begins a comment.  Options of a view are skipped, since they are
 * for some clients only.
 */

#ifndef LIST_UNBOUND_H
#define LIST_UNBOUND_H

#include "list_reader.h"


extern const list_reader_t  list_unbound;


#endif /* LIST_UNBOUND_H */
