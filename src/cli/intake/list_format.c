/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the formats of lists.
 */

#include "list_adblock.h"
#include "list_csv.h"
#include "list_dnsmasq.h"
#include "list_format.h"
#include "list_hosts.h"
#include "list_json.h"
#include "list_rpz.h"
#include "list_text.h"
#include "list_unbound.h"


const list_format_t  list_format_keys = { &list_keys, NULL, NULL };
const list_format_t  list_format_lines = { &list_text, "lines", NULL };

const list_reader_t *const  list_readers[LIST_READERS] = {
    &list_json, &list_dnsmasq, &list_unbound, &list_hosts, &list_adblock,
    &list_rpz, &list_text
};


const char *
list_format_parse(list_format_t *format, const char *text)
{
    size_t  i;

    memset(format, 0, sizeof(*format));
    format->name = text;

    if (strcmp(text, "auto") == 0) {
        return NULL;
    }

    for (i = 0; i < LIST_READERS; i++) {
        if (strcmp(text, list_readers[i]->name) == 0) {
            format->reader = list_readers[i];
            return NULL;
        }
    }

    if (strcmp(text, "adblock-domains") == 0) {
        return "is called adblock now, and reads rules with paths, too";
    }

    if (strncmp(text, "csv:", 4) != 0 || text[4] == '\0') {
        return "must be auto, lines, adblock, hosts, dnsmasq, unbound, rpz, "
               "csv:COLUMN or json";
    }

    format->reader = &list_csv;
    format->column = text + 4;

    return NULL;
}


unsigned
list_format_how(const list_format_t *format, bloom_split_e split)
{
    if (split == BLOOM_SPLIT_NUL) {
        return BLOOM_NOT_KEYS_NUL;
    }

    return format->reader == &list_keys || format->reader == &list_text
           ? BLOOM_NOT_KEYS_LINES : 0;
}
