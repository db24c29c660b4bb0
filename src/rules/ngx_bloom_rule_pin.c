/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks keys up for the variables of bloom_lookup, and keeps the
 * answers.
 */

#include "ngx_bloom_rule_pin.h"
#include "ngx_bloom_rule_log.h"


static ngx_bloom_rule_pin_t *ngx_bloom_rule_pin_of(ngx_bloom_rule_pin_t **pins,
    const void *directive, ngx_pool_t *pool);
static ngx_int_t ngx_bloom_rule_pin_keep(ngx_bloom_rule_pin_t *pin,
    ngx_str_t *key, ngx_pool_t *pool);


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

    pin = ngx_bloom_rule_pin_of(pins, directive, pool);
    if (pin == NULL) {
        return NULL;
    }

    if (pin->text.data == NULL
        || pin->text.len != key->len
        || ngx_memcmp(pin->text.data, key->data, key->len) != 0)
    {
        if (ngx_bloom_rule_pin_keep(pin, key, pool) != NGX_OK) {
            return NULL;
        }

        text = *key;

        pin->answer = (text.len != 0) ? ngx_bloom_lookup(zone, &text, pool)
                                      : NGX_BLOOM_INVALID;

        ngx_bloom_count(zone, (ngx_bloom_counter_e) pin->answer, 1);
        ngx_bloom_rule_debug_key(pool->log, "lookup of", zone, &text,
                                 pin->answer);
    }

    return &ngx_bloom_rule_pin_values[pin->answer];
}


/* Returns the pin of a directive, which it creates without a text if the
 * directive has no pin yet; NULL if memory is short. */
static ngx_bloom_rule_pin_t *
ngx_bloom_rule_pin_of(ngx_bloom_rule_pin_t **pins, const void *directive,
    ngx_pool_t *pool)
{
    ngx_bloom_rule_pin_t  *pin;

    for (pin = *pins; pin != NULL; pin = pin->next) {
        if (pin->directive == directive) {
            return pin;
        }
    }

    pin = ngx_pcalloc(pool, sizeof(ngx_bloom_rule_pin_t));
    if (pin == NULL) {
        return NULL;
    }

    pin->directive = directive;
    pin->next = *pins;
    *pins = pin;

    return pin;
}


/*
 * Copies a key into a pin, since the memory that the key's variable refers to
 * may change.  Allocates twice the need, so that a request with many keys does
 * not allocate for each.
 */
static ngx_int_t
ngx_bloom_rule_pin_keep(ngx_bloom_rule_pin_t *pin, ngx_str_t *key,
    ngx_pool_t *pool)
{
    if (pin->text.data == NULL || key->len > pin->room) {
        pin->room = 2 * key->len;

        pin->text.data = ngx_pnalloc(pool, pin->room);
        if (pin->text.data == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memcpy(pin->text.data, key->data, key->len);
    pin->text.len = key->len;

    return NGX_OK;
}
