/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the hosts and URLs that an Adblock-style list blocks for
 * every site and every request.
 *
 *     ||bad.example^               the host and its subdomains
 *     ||bad.example/page^          two keys: bad.example/page and
 *                                  bad.example/page/
 *     ||bad.example/directory/     all that is in the directory
 *     |https://bad.example/page    like ||bad.example/page
 *     bad.example                  like ||bad.example^
 *     0.0.0.0 bad.example          a line of a hosts file
 *     @@||good.example^            an exception
 *
 * A rule may end in * or |, and may have the options all, document, doc and
 * important.  All other rules are skipped, each with its reason.
 */

#ifndef LIST_ADBLOCK_H
#define LIST_ADBLOCK_H

#include "list_reader.h"


extern const list_reader_t  list_adblock;

#endif /* LIST_ADBLOCK_H */
