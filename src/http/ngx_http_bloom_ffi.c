/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements the C interface.  Every function checks first whether it
 * may be called; only then does it use anything of the process.
 */

#include "ngx_http_bloom_ffi.h"
#include "ngx_http_bloom_ffi_zone.h"
#include "ngx_bloom_add_key.h"
#include "ngx_bloom_explain.h"
#include "ngx_bloom_info.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_lookup_list.h"
#include "ngx_bloom_remove.h"


/* How many keys are looked up in one generation. */
#define NGX_HTTP_BLOOM_FFI_GROUP  32

/* How many bytes of a zone's name a reason shows. */
#define NGX_HTTP_BLOOM_FFI_NAME  64

/* The longest reason, with an end of 1 byte. */
#define NGX_HTTP_BLOOM_FFI_REASON  512


typedef ngx_int_t (*ngx_http_bloom_ffi_change_pt)(ngx_bloom_zone_t *zone,
    ngx_str_t *key, ngx_bloom_batch_t *batch);


static int ngx_http_bloom_ffi_zone(const char *name, size_t name_len,
    ngx_bloom_zone_t **zone);
static int ngx_http_bloom_ffi_keys_valid(const ngx_http_bloom_ffi_key_t *keys,
    size_t n, unsigned char *answers);
static void ngx_http_bloom_ffi_look_up(ngx_bloom_zone_t *zone,
    const ngx_http_bloom_ffi_key_t *keys, size_t n, unsigned char *answers,
    ngx_pool_t *pool);
static void ngx_http_bloom_ffi_no_answer(ngx_bloom_zone_t *zone,
    const ngx_http_bloom_ffi_key_t *key, ngx_uint_t answer, ngx_pool_t *pool);
static int ngx_http_bloom_ffi_change(const char *name, size_t name_len,
    const char *key, size_t len, ngx_http_bloom_ffi_change_pt change,
    int failed);
static ngx_pool_t *ngx_http_bloom_ffi_pool(void);
static int ngx_http_bloom_ffi_not_valid(const char *why);
static int ngx_http_bloom_ffi_refuse(int code, ngx_bloom_batch_t *batch);
static int ngx_http_bloom_ffi_fail(int code, const char *reason);


/* Memory for the canonical form of keys, which is freed after each call. */
static ngx_pool_t  *ngx_http_bloom_ffi_scratch;

/* Why the last call had no answer or failed. */
static const char  *ngx_http_bloom_ffi_text = "no call has failed";
static u_char       ngx_http_bloom_ffi_buf[NGX_HTTP_BLOOM_FFI_REASON];


/* by ngx_bloom_condition_e */
static const char  *ngx_http_bloom_ffi_conditions[] = {
    "the zone has just got another filter; try again",
    "the zone is not loaded; load an image",
    "the zone's image is older than \"max_age\"; load a new one",
    ("the zone may lack changes of its source; find out whether the "
     "follower runs, or load a newer image"),
    "the zone has not applied yet what another instance of nginx has added",
    ("the zone has lost added keys, so it cannot tell that a key is absent; "
     "load an image that has them")
};


int
ngx_http_bloom_ffi_version(void)
{
    return NGX_HTTP_BLOOM_FFI_VERSION;
}


int
ngx_http_bloom_ffi_test(const char *name, size_t name_len, const char *key,
    size_t len)
{
    int                       rc;
    unsigned char             answer;
    ngx_http_bloom_ffi_key_t  one;

    one.data = key;
    one.len = len;

    rc = ngx_http_bloom_ffi_test_many(name, name_len, &one, 1, &answer);

    return rc == 0 ? answer : rc;
}


int
ngx_http_bloom_ffi_test_many(const char *name, size_t name_len,
    const ngx_http_bloom_ffi_key_t *keys, size_t n, unsigned char *answers)
{
    int                rc;
    size_t             i;
    uint64_t           count[NGX_HTTP_BLOOM_FFI_EMPTY + 1];
    ngx_pool_t        *pool;
    ngx_bloom_zone_t  *zone;

    rc = ngx_http_bloom_ffi_zone(name, name_len, &zone);

    if (rc == 0) {
        rc = ngx_http_bloom_ffi_keys_valid(keys, n, answers);
    }

    if (rc != 0) {
        return rc;
    }

    pool = ngx_http_bloom_ffi_pool();

    if (pool == NULL) {
        ngx_memset(answers, NGX_HTTP_BLOOM_FFI_UNKNOWN, n);
        (void) ngx_http_bloom_ffi_fail(0, "nginx has no memory");
        return 0;
    }

    for (i = 0; i < n; i += NGX_HTTP_BLOOM_FFI_GROUP) {
        ngx_http_bloom_ffi_look_up(zone, &keys[i],
                                   ngx_min(n - i, NGX_HTTP_BLOOM_FFI_GROUP),
                                   &answers[i], pool);
        ngx_reset_pool(pool);
    }

    ngx_memzero(count, sizeof(count));

    for (i = 0; i < n; i++) {
        if (count[answers[i]]++ == 0 && answers[i] > NGX_BLOOM_PRESENT) {
            ngx_http_bloom_ffi_no_answer(zone, &keys[i], answers[i], pool);
        }
    }

    for (i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        ngx_bloom_count(zone, (ngx_bloom_counter_e) i, count[i]);
    }

    ngx_reset_pool(pool);

    return 0;
}


/* Returns 0 if the arguments are valid, else the result. */
static int
ngx_http_bloom_ffi_keys_valid(const ngx_http_bloom_ffi_key_t *keys, size_t n,
    unsigned char *answers)
{
    size_t  i;

    if (n > NGX_HTTP_BLOOM_FFI_KEYS_MAX) {
        return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_E_ARGUMENT,
                                       "there are more than 1024 keys");
    }

    for (i = 0; i < n; i++) {
        if (keys == NULL || answers == NULL
            || (keys[i].data == NULL && keys[i].len != 0))
        {
            return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_E_ARGUMENT,
                                           "a pointer is NULL");
        }
    }

    return 0;
}


/* Looks up a group of keys in one generation. */
static void
ngx_http_bloom_ffi_look_up(ngx_bloom_zone_t *zone,
    const ngx_http_bloom_ffi_key_t *keys, size_t n, unsigned char *answers,
    ngx_pool_t *pool)
{
    size_t     i;
    ngx_str_t  key[NGX_HTTP_BLOOM_FFI_GROUP];

    ngx_memzero(key, sizeof(key));

    for (i = 0; i < n; i++) {
        key[i].data = (u_char *) keys[i].data;
        key[i].len = keys[i].len <= BLOOM_KEY_MAX ? keys[i].len : 0;
    }

    ngx_bloom_lookup_list(zone, key, n, answers, pool);

    for (i = 0; i < n; i++) {
        if (key[i].len == 0) {
            answers[i] = keys[i].len == 0 ? NGX_HTTP_BLOOM_FFI_EMPTY
                                          : NGX_HTTP_BLOOM_FFI_INVALID;
        }
    }
}


/* Notes why a key is neither absent nor present. */
static void
ngx_http_bloom_ffi_no_answer(ngx_bloom_zone_t *zone,
    const ngx_http_bloom_ffi_key_t *key, ngx_uint_t answer, ngx_pool_t *pool)
{
    const char           *why;
    ngx_str_t             text;
    ngx_bloom_explain_t   lookup;

    if (answer == NGX_HTTP_BLOOM_FFI_UNKNOWN) {
        why = ngx_http_bloom_ffi_conditions[ngx_bloom_info_condition(zone)];

        (void) ngx_http_bloom_ffi_fail(0, why);
        return;
    }

    if (answer == NGX_HTTP_BLOOM_FFI_EMPTY) {
        (void) ngx_http_bloom_ffi_not_valid("is empty");
        return;
    }

    why = BLOOM_KEY_TOO_LONG;

    if (key->len <= BLOOM_KEY_MAX) {
        text.data = (u_char *) key->data;
        text.len = key->len;

        (void) ngx_bloom_explain(zone, &text, &lookup, pool);

        why = lookup.why != NULL ? lookup.why : "is invalid";
    }

    (void) ngx_http_bloom_ffi_not_valid(why);
}


int
ngx_http_bloom_ffi_add(const char *name, size_t name_len, const char *key,
    size_t len)
{
    return ngx_http_bloom_ffi_change(name, name_len, key, len,
                                     ngx_bloom_add_one,
                                     NGX_HTTP_BLOOM_FFI_E_NOT_SAVED);
}


int
ngx_http_bloom_ffi_remove(const char *name, size_t name_len, const char *key,
    size_t len)
{
    return ngx_http_bloom_ffi_change(name, name_len, key, len,
                                     ngx_bloom_remove_one,
                                     NGX_HTTP_BLOOM_FFI_E_NOT_NOW);
}


/* Adds or removes a key by `change`, whose result NGX_ERROR means `failed`. */
static int
ngx_http_bloom_ffi_change(const char *name, size_t name_len, const char *key,
    size_t len, ngx_http_bloom_ffi_change_pt change, int failed)
{
    int                     rc;
    ngx_str_t               text;
    ngx_bloom_zone_t       *zone;
    ngx_bloom_batch_t   batch;

    rc = ngx_http_bloom_ffi_zone(name, name_len, &zone);
    if (rc != 0) {
        return rc;
    }

    if (len == 0) {
        (void) ngx_http_bloom_ffi_not_valid("is empty");
        return NGX_HTTP_BLOOM_FFI_EMPTY;
    }

    if (key == NULL) {
        return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_E_ARGUMENT,
                                       "a pointer is NULL");
    }

    text.data = (u_char *) key;
    text.len = len;

    switch (change(zone, &text, &batch)) {

    case NGX_OK:
        return batch.added ? NGX_HTTP_BLOOM_FFI_ADDED
               : batch.removed ? NGX_HTTP_BLOOM_FFI_REMOVED
               : batch.already_present ? NGX_HTTP_BLOOM_FFI_PRESENT
                                       : NGX_HTTP_BLOOM_FFI_ABSENT;

    case NGX_ABORT:
        return ngx_http_bloom_ffi_not_valid(batch.error);

    case NGX_DECLINED:
        return ngx_http_bloom_ffi_refuse(NGX_HTTP_BLOOM_FFI_E_NEVER, &batch);

    case NGX_DONE:
        return ngx_http_bloom_ffi_refuse(NGX_HTTP_BLOOM_FFI_E_NO_ROOM, &batch);

    default: /* NGX_ERROR */
        return ngx_http_bloom_ffi_refuse(failed, &batch);
    }
}


const char *
ngx_http_bloom_ffi_reason(void)
{
    if (!ngx_http_bloom_ffi_zone_may()) {
        return "this process or thread serves no requests: call it in a "
               "worker, and not in init_by_lua, a thread, the privileged agent "
               "or an exiting worker";
    }

    return ngx_http_bloom_ffi_text;
}


/* Finds the zone of a call.  Returns 0, or the result of the call. */
static int
ngx_http_bloom_ffi_zone(const char *name, size_t name_len,
    ngx_bloom_zone_t **zone)
{
    ngx_str_t  text;

    if (!ngx_http_bloom_ffi_zone_may()) {
        return NGX_HTTP_BLOOM_FFI_E_PROCESS;
    }

    if (name == NULL) {
        return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_E_ARGUMENT,
                                       "a pointer is NULL");
    }

    text.data = (u_char *) name;
    text.len = name_len;

    *zone = ngx_http_bloom_ffi_zone_find(&text);

    if (*zone != NULL) {
        return 0;
    }

    ngx_bloom_print(ngx_http_bloom_ffi_buf, NGX_HTTP_BLOOM_FFI_REASON,
                    "the configuration has no bloom_zone \"%*s\"",
                    ngx_min(name_len, NGX_HTTP_BLOOM_FFI_NAME), name);

    return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_E_ZONE,
                                   (char *) ngx_http_bloom_ffi_buf);
}


/* Returns the pool for canonical keys, or NULL if memory is short. */
static ngx_pool_t *
ngx_http_bloom_ffi_pool(void)
{
    if (ngx_http_bloom_ffi_scratch == NULL) {
        ngx_http_bloom_ffi_scratch = ngx_create_pool(NGX_DEFAULT_POOL_SIZE,
                                                     ngx_cycle->log);
        if (ngx_http_bloom_ffi_scratch == NULL) {
            return NULL;
        }
    }

    /* with "master_process off", a reload frees the log of the last cycle */

    ngx_http_bloom_ffi_scratch->log = ngx_cycle->log;

    return ngx_http_bloom_ffi_scratch;
}


/* Notes why a key is invalid: `why` is a phrase that follows the key. */
static int
ngx_http_bloom_ffi_not_valid(const char *why)
{
    ngx_bloom_print(ngx_http_bloom_ffi_buf, NGX_HTTP_BLOOM_FFI_REASON,
                    "the key %s", why);

    return ngx_http_bloom_ffi_fail(NGX_HTTP_BLOOM_FFI_INVALID,
                                   (char *) ngx_http_bloom_ffi_buf);
}


/* Notes why a batch was refused.  Returns `code`. */
static int
ngx_http_bloom_ffi_refuse(int code, ngx_bloom_batch_t *batch)
{
    const char  *error;

    error = (batch->error != NULL) ? batch->error : "try again later";

    if (batch->err != 0) {
        ngx_bloom_print(ngx_http_bloom_ffi_buf, NGX_HTTP_BLOOM_FFI_REASON,
                        "bloom_zone \"%V\": %s (%d: %s)", &batch->zone->name,
                        error, batch->err, strerror(batch->err));
    } else {
        ngx_bloom_print(ngx_http_bloom_ffi_buf, NGX_HTTP_BLOOM_FFI_REASON,
                        "bloom_zone \"%V\": %s", &batch->zone->name, error);
    }

    return ngx_http_bloom_ffi_fail(code, (char *) ngx_http_bloom_ffi_buf);
}


/* Notes why a call fails.  `reason` is kept until the next call.  Returns
 * `code`. */
static int
ngx_http_bloom_ffi_fail(int code, const char *reason)
{
    ngx_http_bloom_ffi_text = reason;

    return code;
}
