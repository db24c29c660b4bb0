/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds texts that no key of the forms host and url can be,
 * although the forms would take some of them: ranges of addresses, element
 * rules, and lines of dnsmasq and of CSV.  It judges the keys of every format
 * of lists, and plain keys.
 *
 *     range of addresses   192.0.2.0/24, 2001:db8::/32,
 *                          192.0.2.0/255.255.255.0, 192.0.2.1-192.0.2.9,
 *                          192.0.2.1 - 192.0.2.9; a comment may follow, as in
 *                          192.0.2.0/24 ; SBL1
 *     element rule         shop.example##.ad, a.example,b.example#@#.ad,
 *                          shop.example#?#.ad:has(b), shop.example$$script
 *     line of dnsmasq      address=/bad.example/0.0.0.0, local=/bad.example/
 *     line of CSV          1,bad.example and bad.example;phishing
 *
 * A URL with a fragment is a URL: https://x.example/#/route, x.example/##top.
 */

#ifndef LIST_NO_KEY_H
#define LIST_NO_KEY_H

#include "list_line.h"


/* Returns NULL, or the reason why a text is no key: a constant phrase that
 * follows the text in a message.  It ends with LIST_USE_FROM and a format if
 * the text is a line of a list in that format. */
const char *list_no_key(list_keys_e keys, const bloom_key_t *key);


#endif /* LIST_NO_KEY_H */
