/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file passes the records of published lists to the readers of their
 * formats.
 */

#include "list_adblock.h"
#include "list_csv.h"
#include "list_dnsmasq.h"
#include "list_hosts.h"
#include "list_json.h"
#include "list_text.h"
#include "listformat.h"
#include "units.h"


static const struct {
    const char    *name;
    listformat_e   kind;
} formats[] = {
    { "auto", LISTFORMAT_AUTO },
    { "lines", LISTFORMAT_LINES },
    { "adblock", LISTFORMAT_ADBLOCK },
    { "hosts", LISTFORMAT_HOSTS },
    { "dnsmasq", LISTFORMAT_DNSMASQ },
    { "rpz", LISTFORMAT_RPZ },
    { "json", LISTFORMAT_JSON }
};


const char *
listformat_parse(listformat_t *list, const char *text)
{
    size_t    i;
    uint64_t  number;

    memset(list, 0, sizeof(*list));
    list->name = text;

    for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(text, formats[i].name) == 0) {
            list->kind = formats[i].kind;
            return NULL;
        }
    }

    if (strcmp(text, "adblock-domains") == 0) {
        return "is called adblock now, and reads rules with paths, too";
    }

    if (strncmp(text, "csv:", 4) != 0 || text[4] == '\0') {
        return "must be auto, lines, adblock, hosts, dnsmasq, rpz, csv:COLUMN "
               "or json";
    }

    list->kind = LISTFORMAT_CSV;
    list->column = text + 4;

    if (parse_count(list->column, &number) == 0 && number != 0) {
        list->column = NULL;
        list->index = number - 1;
    }

    return NULL;
}


int
listformat_header(listformat_t *list, const bloom_key_t *record, uint64_t line)
{
    int          rc;
    bloom_key_t  text;

    if (list->column == NULL) {
        return 1;
    }

    rc = list_csv_column(record, list->column, &list->index);

    if (rc == 1) {
        list->header = line;
    }

    /* the first record is a better header than a comment */

    if (rc == -1 && list->header != 0) {
        return 1;
    }

    text = *record;
    list_trim(&text);

    return rc == 1 && text.data[0] == '#' ? 0 : rc;
}


int
listformat_has_records(const listformat_t *list)
{
    return list->kind == LISTFORMAT_CSV || list->kind == LISTFORMAT_RPZ;
}


const uint8_t *
listformat_end(const listformat_t *list, const uint8_t *p, const uint8_t *end,
    int *open)
{
    return list->kind == LISTFORMAT_CSV ? list_csv_end(p, end, open)
                                        : list_rpz_end(p, end, open);
}


size_t
listformat_whole(const listformat_t *list, const uint8_t *data, size_t len,
    int *open)
{
    const uint8_t  *p, *end, *next;

    *open = 0;
    end = data + len;

    if (!listformat_has_records(list)) {
        next = len != 0 ? memrchr(data, '\n', len) : NULL;
        return next != NULL ? (size_t) (next + 1 - data) : 0;
    }

    for (p = data; p < end; p = next + 1) {
        next = listformat_end(list, p, end, open);

        if (next == end) {
            break;
        }
    }

    return (size_t) (p - data);
}


static list_result_e
next_of_keys(list_line_t *at)
{
    if (at->step++ != 0) {
        return LIST_END;
    }

    at->key = at->line;

    return at->key.len != 0 ? LIST_KEY : LIST_EMPTY;
}


list_result_e
listformat_next(const listformat_t *list, list_line_t *at, uint64_t number)
{
    switch (list->kind) {

    case LISTFORMAT_LINES:
        return list_text_next(at);

    case LISTFORMAT_ADBLOCK:
        return list_adblock_next(at);

    case LISTFORMAT_HOSTS:
        return list_hosts_next(at);

    case LISTFORMAT_DNSMASQ:
        return list_dnsmasq_next(at);

    case LISTFORMAT_RPZ:
        return list_rpz_next(at);

    case LISTFORMAT_CSV:
        if (number == list->header && at->step == 0) {
            at->step = 1;
            return LIST_COMMENT;
        }

        return list_csv_next(at, list->index);

    case LISTFORMAT_JSON:
        return list_json_next(at);

    default:
        return next_of_keys(at);
    }
}
