/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file says what the columns of known feeds mean.
 */

#include "list_csv_feed.h"


#define COLUMN(name, typed, whole)  { name, "csv:" name, typed, whole }

const list_csv_column_t  list_csv_columns[] = {
    COLUMN("url", 0, 1),
    COLUMN("ioc_value", 1, 1),
    COLUMN("value", 1, 1),
    COLUMN("indicator", 1, 1),
    COLUMN("ioc", 1, 1),
    COLUMN("observable", 1, 1),
    COLUMN("host", 0, 0),
    COLUMN("hostname", 0, 0),
    COLUMN("domain", 0, 0),
    COLUMN("fqdn", 0, 0),
    COLUMN("dst_ip", 0, 0),
    COLUMN("dstip", 0, 0),
    COLUMN("ip", 0, 0),
    COLUMN("ip_address", 0, 0),
    { NULL }
};


const char *const  list_csv_types[] = {
    "ioc_type", "type", "indicator type", "indicator_type", "ioc type",
    "observable_type", NULL
};


#define KEY(name)          { name, 0, LIST_CSV_PLACE, NULL }
#define OTHER(name, why)   { name, 0, LIST_CSV_OTHER, why }
#define BEGINS(name, why)  { name, 1, LIST_CSV_OTHER, why }

#define HASH  "is the hash of a file"
#define FILE  "is the name of a file"
#define PORT  "is an address with a port, which has no key of its own"

static const list_csv_type_t  types[] = {
    KEY("url"),
    KEY("domain"),
    KEY("hostname"),
    KEY("host"),
    KEY("fqdn"),
    KEY("ip"),
    KEY("ipv4"),
    KEY("ipv6"),
    KEY("ip-src"),
    KEY("ip-dst"),
    KEY("cidr"),
    { "domain|ip", 0, LIST_CSV_PAIR, NULL },
    { "uri", 0, LIST_CSV_URI, NULL },
    OTHER("ip:port", PORT),
    OTHER("ip-src|port", PORT),
    OTHER("ip-dst|port", PORT),
    OTHER("hostname|port",
          "is a host with a port, which has no key of its own"),
    OTHER("link", "is a link to a report"),
    BEGINS("md5", HASH),
    BEGINS("sha", HASH),
    BEGINS("filehash", HASH),
    BEGINS("filename|", HASH),
    OTHER("ssdeep", HASH),
    OTHER("imphash", HASH),
    OTHER("tlsh", HASH),
    BEGINS("filename", FILE),
    OTHER("filepath", FILE),
    BEGINS("email", "is about e-mail"),
    OTHER("mutex", "is the name of a mutex"),
    BEGINS("regkey", "is a key of the registry"),
    OTHER("yara", "is a rule for files"),
    OTHER("cve", "is the number of a vulnerability"),
    OTHER("vulnerability", "is the number of a vulnerability"),
    OTHER("as", "is the number of a network"),
    OTHER("user-agent", "is the name of a program")
};


const list_csv_type_t *
list_csv_type(const bloom_key_t *type)
{
    size_t       i, len;
    bloom_key_t  begin;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        begin = *type;
        len = strlen(types[i].name);

        if (types[i].begins && begin.len > len) {
            begin.len = len;
        }

        if (list_equals(&begin, types[i].name)) {
            return &types[i];
        }
    }

    return NULL;
}


const list_csv_status_t  list_csv_statuses[LIST_CSV_STATUSES] = {
    { "url", "phish_id", "verified", "is not verified as phishing" },
    { "url", "phish_id", "online", "is not online any more" },
    { "value", "type", "to_ids", "is not for detection (to_ids)" }
};
