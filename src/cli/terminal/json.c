/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file connects the core's JSON writer to standard output.
 */

#include <stdio.h>

#include "bloom_utf8.h"
#include "json.h"


void
json_sink(void *file, const void *bytes, size_t len)
{
    fwrite(bytes, 1, len, file);
}


void
json_begin(bloom_json_writer_t *json, int compact)
{
    bloom_json_writer_init(json, json_sink, stdout);
    json->lines = !compact;

    bloom_json_put_object(json, NULL);
}


void
json_end(bloom_json_writer_t *json)
{
    bloom_json_put_end(json);
    putchar('\n');
}


void
json_key(bloom_json_writer_t *json, const bloom_key_t *key)
{
    bloom_json_put_bytes(json, "key", key->data, key->len);

    if (!bloom_utf8_valid(key->data, key->len)) {
        bloom_json_put_hex(json, "key_hex", key->data, key->len);
    }
}
