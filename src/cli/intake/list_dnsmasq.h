/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the domains that a configuration of dnsmasq blocks.
 *
 *     address=/bad.example/            blocked, and so with 0.0.0.0, 127.0.0.1,
 *                                      ::, ::1 or # after the last slash
 *     address=/x.example/192.0.2.1     skipped: has an address
 *     local=/bad.example/              blocked
 *     server=/bad.example/             blocked
 *     server=/x.example/#              an exception
 *     server=/x.example/192.0.2.1      skipped: is forwarded
 */

#ifndef LIST_DNSMASQ_H
#define LIST_DNSMASQ_H

#include "list_reader.h"


extern const list_reader_t  list_dnsmasq;


#endif /* LIST_DNSMASQ_H */
