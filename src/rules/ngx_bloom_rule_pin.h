/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares pins: the answers that the variables of bloom_lookup
 * have given in a request or a connection.  nginx may evaluate a variable twice
 * to compose a text, first for its length and then for its bytes, and a load or
 * an addition between the two must not change the answer.
 */

#ifndef _NGX_BLOOM_RULE_PIN_H_INCLUDED_
#define _NGX_BLOOM_RULE_PIN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_rule_pin_s  ngx_bloom_rule_pin_t;

struct ngx_bloom_rule_pin_s {
    const void                *directive;
    ngx_str_t                  text;     /* of the key, decoded */
    size_t                     room;     /* for text, in bytes */
    ngx_uint_t                 answer;
    ngx_bloom_rule_pin_t      *next;     /* belongs to another directive */
};

/*
 * Returns the value of the variable of a directive for a key: "1" if the key is
 * maybe present, "0" if it is absent, otherwise an empty text; NULL if memory
 * is short.  An empty key stands for an invalid one.
 *
 * Looks the key up and counts the answer, unless the directive had the same key
 * before: then the answer stays the same.  `*pins` is NULL at first.
 */
ngx_str_t *ngx_bloom_rule_pin_value(ngx_bloom_rule_pin_t **pins,
    const void *directive, ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_PIN_H_INCLUDED_ */
