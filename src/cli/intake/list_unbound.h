/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names that a configuration of unbound blocks.
 *
 *     local-zone: "bad.example" always_nxdomain    blocked, and so with the
 *                                                  types always_refuse,
 *                                                  always_nodata, always_deny
 *                                                  and always_null
 *     local-zone: bad.example. static              blocked, and so with refuse,
 *                                                  deny, redirect, inform_deny
 *                                                  and inform_redirect, unless
 *                                                  local-data has addresses in
 *                                                  the zone that are no sinks
 *     local-zone: "x.example" always_transparent   an exception
 *     local-zone: "x.example" transparent          skipped, as other types
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
