/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the domains that a configuration of dnsmasq blocks.
 *
 *     address=/bad.example/            blocked, and so with # or an IPv4
 *                                      address that list_is_sink() knows after
 *                                      the last slash
 *     address=/x.example/::            skipped: blocks only IPv6
 *     address=/x.example/192.0.2.1     skipped: has an address
 *     local=/bad.example/              blocked
 *     server=/bad.example/             blocked
 *     server=/x.example/#              an exception
 *     server=/x.example/192.0.2.1      skipped: is forwarded
 *
 * A domain that has an address of its own, by address=, host-record= or cname=,
 * is not blocked.  Neither is one of local= or server= with such a name in it.
 */

#ifndef LIST_DNSMASQ_H
#define LIST_DNSMASQ_H

#include "list_reader.h"


extern const list_reader_t  list_dnsmasq;


#endif /* LIST_DNSMASQ_H */
