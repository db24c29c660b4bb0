/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks keys up for the variables of bloom_lookup, and keeps the
 * answers.
 */

#include "ngx_bloom_rule_pin.h"
#include "ngx_bloom_lookup.h"


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID */
static ngx_str_t  ngx_bloom_rule_pin_values[] = {
    ngx_string("0"),
    ngx_string("1"),
    ngx_null_string,
    ngx_null_string
};


ngx_str_t *
ngx_bloom_rule_pin_value(ngx_bloom_rule_pin_t **pins, const void *directive,
    ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    ngx_str_t              text;
    ngx_bloom_rule_pin_t  *pin;

    for (pin = *pins; pin != NULL && pin->directive != directive; ) {
        pin = pin->next;
    }

    if (pin == NULL) {
        pin = ngx_pcalloc(pool, sizeof(ngx_bloom_rule_pin_t));
        if (pin == NULL) {
            return NULL;
        }

        pin->directive = directive;
        pin->next = *pins;
        *pins = pin;
    }

    if (pin->text.data != NULL
        && pin->text.len == key->len
        && ngx_memcmp(pin->text.data, key->data, key->len) == 0)
    {
        return &ngx_bloom_rule_pin_values[pin->answer];
    }

    /* copied, since the memory of the key's variable may change; twice the
     * need, so that a request with many keys does not allocate for each */

    if (pin->text.data == NULL || key->len > pin->room) {
        pin->text.data = ngx_pnalloc(pool, 2 * key->len);
        if (pin->text.data == NULL) {
            return NULL;
        }

        pin->room = 2 * key->len;
    }

    ngx_memcpy(pin->text.data, key->data, key->len);
    pin->text.len = key->len;

    text = *key;

    pin->answer = (text.len != 0) ? ngx_bloom_lookup(zone, &text, pool)
                                  : NGX_BLOOM_INVALID;

    ngx_bloom_count(zone, (ngx_bloom_counter_e) pin->answer, 1);

    return &ngx_bloom_rule_pin_values[pin->answer];
}
