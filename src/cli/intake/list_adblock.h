/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the hosts and URLs of an Adblock-style list that uBlock
 * Origin blocks as pages, from every site.
 *
 *     ||bad.example^               the host and its subdomains
 *     ||bad.example/page^          two keys: bad.example/page and
 *                                  bad.example/page/
 *     ||bad.example/directory/     all that is in the directory
 *     bad.example                  like ||bad.example^
 *     0.0.0.0 bad.example          a line of a hosts file
 *     @@||good.example^            an exception
 *
 * A rule may have options with types of requests if `document` is among them
 * (list_adblock_options.h).  A rule that a $badfilter rule cancels, and what is
 * between !#if and !#endif and does not apply (list_adblock_if.h), is skipped.
 * So are all other rules, each with its reason.
 */

#ifndef LIST_ADBLOCK_H
#define LIST_ADBLOCK_H

#include "list_reader.h"


extern const list_reader_t  list_adblock;

#endif /* LIST_ADBLOCK_H */
