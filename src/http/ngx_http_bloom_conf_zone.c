/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the directives with zones: bloom_state_path and bloom_zone.
 */

#include "ngx_http_bloom_conf_zone.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_bloom_source.h"
#include "bloom_growth.h"
#include "bloom_guard.h"
#include "bloom_ring.h"
#include "bloom_units.h"
#include "bloom_utf8.h"


/* The longest label of a zone, in bytes. */
#define NGX_HTTP_BLOOM_CONF_ZONE_LABEL  100

/* How old the last sign of life of a source may be unless "max_lag=" says
 * otherwise, ms. */
#define NGX_HTTP_BLOOM_CONF_MAX_LAG     60000


static char *ngx_http_bloom_conf_zone_removals(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_http_bloom_conf_zone_is_label(ngx_str_t *text);
static char *ngx_http_bloom_conf_zone_guards(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_guards_t *guards);
static char *ngx_http_bloom_conf_zone_source(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_conf_zone_check_source(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static void ngx_http_bloom_conf_zone_warn(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static char *ngx_http_bloom_conf_zone_file(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone);
static char *ngx_http_bloom_conf_zone_expire(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, uint32_t layout,
    ngx_bloom_zone_t *zone);
static char *ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone);


char *
ngx_http_bloom_conf_zone_state_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_bloom_main_conf_t *bmcf = conf;

    ngx_str_t  *value;

    if (bmcf->state_path.data != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        ngx_str_set(&bmcf->state_path, "");
        return NGX_CONF_OK;
    }

    if (value[1].len == 0) {
        return ngx_http_bloom_conf_invalid(cf, "path", &value[1],
                                           "a directory, or \"off\"");
    }

    bmcf->state_path = value[1];

    if (ngx_http_bloom_conf_full_name(cf, &bmcf->state_path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_main_conf_t *bmcf = conf;

    char                          *rc;
    uint64_t                       size;
    ngx_bloom_zone_t              *zone;
    ngx_http_bloom_conf_params_t   params;

    rc = ngx_http_bloom_conf_params(cf, 1, NGX_HTTP_BLOOM_CONF_ZONE, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    size = 0;

    if (params.size.data != NULL
        && (bloom_units_bytes((char *) params.size.data, params.size.len,
                              &size)
            != 0
            || size == 0 || size > NGX_MAX_SIZE_T_VALUE))
    {
        return ngx_http_bloom_conf_invalid(cf, "zone size", &params.size,
                                           "a size such as 64m");
    }

    zone = ngx_bloom_declare_get(cf, &bmcf->zones, &params.zone);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (zone->shm_zone == NULL) {

        zone->journal = 1;

        if (params.journal.data != NULL) {
            zone->journal = (ngx_strcmp(params.journal.data, "on") == 0);

            if (!zone->journal && ngx_strcmp(params.journal.data, "off") != 0)
            {
                return ngx_http_bloom_conf_invalid(cf, "journal",
                                                   &params.journal,
                                                   "\"on\" or \"off\"");
            }
        }

        if (params.required.data != NULL) {
            zone->optional = (ngx_strcmp(params.required.data, "off") == 0);

            if (!zone->optional && ngx_strcmp(params.required.data, "on") != 0)
            {
                return ngx_http_bloom_conf_invalid(cf, "required",
                                                   &params.required,
                                                   "\"on\" or \"off\"");
            }
        }

        rc = ngx_http_bloom_conf_zone_removals(cf, &params, zone);
        if (rc != NGX_CONF_OK) {
            return rc;
        }

        if (params.journal.data != NULL && zone->journal) {

            /* written out, it announces keys that no directive names, as those
             * of Lua */

            zone->adds = 1;
            zone->removes |= (zone->removals != 0);
        }

        rc = ngx_http_bloom_conf_zone_source(cf, &params, zone);
        if (rc != NGX_CONF_OK) {
            return rc;
        }

        if (params.label.data != NULL) {

            if (!ngx_http_bloom_conf_zone_is_label(&params.label)) {
                return ngx_http_bloom_conf_invalid(cf, "label", &params.label,
                                                   "1 to 100 bytes of "
                                                   "printable UTF-8 without "
                                                   "any of \"'<>&\\; write a "
                                                   "label with spaces as "
                                                   "\"label=A list\"");
            }

            zone->label = params.label;
        }

        if (params.form.data != NULL) {
            zone->key_form = bloom_form_parse((char *) params.form.data,
                                              params.form.len);
            if (zone->key_form == -1) {
                return ngx_http_bloom_conf_invalid(cf, "form", &params.form,
                                                   "\"raw\", \"lower\", "
                                                   "\"host\" or \"url\"");
            }
        }

        if (params.max_keys.data != NULL
            && (bloom_units_count((char *) params.max_keys.data,
                                  params.max_keys.len, &zone->max_keys)
                != 0
                || zone->max_keys == 0
                || zone->max_keys > BLOOM_CAPACITY_MAX))
        {
            return ngx_http_bloom_conf_invalid(cf, "max_keys",
                                               &params.max_keys,
                                               "a count such as 10m, up to "
                                               "4398g; leave it out if the "
                                               "filter must not grow");
        }

        if ((params.file.len != 0) == (params.capacity.len != 0)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "bloom zone \"%V\" must have either \"file=\", "
                               "or \"capacity=\" and \"fpr=\"", &params.zone);
            return NGX_CONF_ERROR;
        }

        if (params.file.len != 0) {
            rc = ngx_http_bloom_conf_zone_file(cf, &params, zone);

        } else {
            rc = ngx_http_bloom_conf_zone_empty(cf, &params, zone);

            if (zone->key_form != -1) {
                zone->image.key_form = (uint32_t) zone->key_form;
            }
        }

        if (rc == NGX_CONF_OK) {
            rc = ngx_http_bloom_conf_zone_guards(cf, &params, &zone->guards);
        }

        if (rc != NGX_CONF_OK) {
            return rc;
        }
    }

    if (ngx_bloom_declare_zone(cf, zone, (size_t) size,
                               &ngx_http_bloom_module)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_conf_zone_removals(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone)
{
    uint64_t  n;

    if (params->removals.data == NULL) {
        return NGX_CONF_OK;
    }

    if (bloom_units_count((char *) params->removals.data,
                          params->removals.len, &n)
        != 0
        || n > NGX_BLOOM_REMOVALS_MAX)
    {
        return ngx_http_bloom_conf_invalid(cf, "removals", &params->removals,
                                           "a count such as 10k, up to 10m, or "
                                           "0");
    }

    zone->removals = (ngx_uint_t) n;

    return NGX_CONF_OK;
}


/* Reads where the changes of a zone come from. */
static char *
ngx_http_bloom_conf_zone_source(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone)
{
    ngx_int_t  lag;

    if (params->source.data == NULL) {

        if (params->max_lag.data != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "bloom zone \"%V\" has \"max_lag=\" without "
                               "\"source=\": say where its changes come from, "
                               "such as \"source=ids\"", &params->zone);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    if (!bloom_source_name_valid(params->source.data, params->source.len)) {
        return ngx_http_bloom_conf_invalid(cf, "source", &params->source,
                                           "1 to 255 letters, digits and "
                                           "characters of \"._:/-\"");
    }

    if (params->expire.data != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"source=\" and "
                           "\"expire=\": the keys of a source do not expire; "
                           "leave out one of them", &params->zone);
        return NGX_CONF_ERROR;
    }

    if (!zone->journal) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"source=\" and "
                           "\"journal=off\": the journal keeps the changes of "
                           "the source; leave out one of them",
                           &params->zone);
        return NGX_CONF_ERROR;
    }

    zone->source = params->source;
    zone->source_id = ngx_bloom_source_id(&zone->source);
    zone->max_lag = NGX_HTTP_BLOOM_CONF_MAX_LAG;
    zone->adds = 1;
    zone->removes |= (zone->removals != 0);

    if (params->max_lag.data == NULL) {
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(params->max_lag.data, "off") == 0) {
        zone->max_lag = 0;
        return NGX_CONF_OK;
    }

    lag = ngx_parse_time(&params->max_lag, 0);

    if (lag == NGX_ERROR || lag < 1000) {
        return ngx_http_bloom_conf_invalid(cf, "max_lag", &params->max_lag,
                                           "a time of at least 1s, such as "
                                           "30s, or \"off\"");
    }

    zone->max_lag = (ngx_msec_t) lag;

    return NGX_CONF_OK;
}


/*
 * Returns 1 if a text may be a label.  It has no character that would have to
 * be escaped in HTML, JSON or a header, since labels are put into error pages.
 */
static ngx_uint_t
ngx_http_bloom_conf_zone_is_label(ngx_str_t *text)
{
    size_t   len;
    u_char  *p, *end;

    if (text->len == 0 || text->len > NGX_HTTP_BLOOM_CONF_ZONE_LABEL) {
        return 0;
    }

    end = text->data + text->len;

    for (p = text->data; p < end; p += len) {
        len = bloom_utf8_len(p, end - p);

        if (len == 0 || bloom_utf8_is_hidden(p, len)
            || ngx_strchr("\"'<>&\\", *p) != NULL)
        {
            return 0;
        }
    }

    return 1;
}


/* Reads what an image has to be like to be accepted. */
static char *
ngx_http_bloom_conf_zone_guards(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_guards_t *guards)
{
    ngx_str_t   *value, *file;
    ngx_uint_t   i;

    value = &params->min_keys;

    if (value->data != NULL
        && (bloom_units_count((char *) value->data, value->len,
                              &guards->min_keys)
            != 0
            || guards->min_keys == 0 || guards->min_keys > BLOOM_CAPACITY_MAX))
    {
        return ngx_http_bloom_conf_invalid(cf, "min_keys", value,
                                           "a count such as 10m, up to 4398g");
    }

    value = &params->max_loss;

    if (value->data != NULL
        && bloom_guard_limit_parse(&guards->max.loss, (char *) value->data,
                                   value->len, BLOOM_GUARD_LOSS_MAX)
           != 0)
    {
        return ngx_http_bloom_conf_invalid(cf, "max_loss", value,
                                           "a percentage such as 1%, up to "
                                           "100%, or a number of keys such as "
                                           "500");
    }

    value = &params->max_growth;

    if (value->data != NULL
        && bloom_guard_limit_parse(&guards->max.growth, (char *) value->data,
                                   value->len, BLOOM_GUARD_GROWTH_MAX)
           != 0)
    {
        return ngx_http_bloom_conf_invalid(cf, "max_growth", value,
                                           "a percentage such as 50%, or a "
                                           "number of keys such as 10k");
    }

    file = guards->file;
    file[NGX_BLOOM_GUARD_HAVE] = params->must_have;
    file[NGX_BLOOM_GUARD_HAVE_NOT] = params->must_not_have;

    for (i = 0; i < NGX_BLOOM_GUARD_FILES; i++) {

        if (file[i].data == NULL) {
            continue;
        }

        if (file[i].len == 0) {
            return ngx_http_bloom_conf_invalid(cf, i == NGX_BLOOM_GUARD_HAVE
                                                   ? "must_have"
                                                   : "must_not_have",
                                               &file[i], "a file of keys");
        }

        if (ngx_http_bloom_conf_full_name(cf, &file[i], 1) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* Reads the parameters of a zone with "file=". */
static char *
ngx_http_bloom_conf_zone_file(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone)
{
    ngx_int_t  watch;

    if (params->capacity.data || params->fpr.data || params->layout.data
        || params->hash.data)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"file=\", whose image "
                           "states \"capacity\", \"fpr\", \"layout\" and "
                           "\"hash\": leave these out", &params->zone);
        return NGX_CONF_ERROR;
    }

    if (params->expire.data != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"file=\", and the keys of "
                           "an image do not expire: leave out \"expire=\", or "
                           "\"file=\"", &params->zone);
        return NGX_CONF_ERROR;
    }

    if (params->watch.data != NULL) {
        watch = ngx_parse_time(&params->watch, 0);

        if (watch == NGX_ERROR || watch == 0) {
            return ngx_http_bloom_conf_invalid(cf, "watch", &params->watch,
                                               "a time over 0, such as 10s");
        }

        zone->watch = (ngx_msec_t) watch;
    }

    if (params->max_age.data != NULL) {
        zone->max_age = ngx_parse_time(&params->max_age, 1);

        if (zone->max_age == (time_t) NGX_ERROR || zone->max_age == 0) {
            return ngx_http_bloom_conf_invalid(cf, "max_age", &params->max_age,
                                               "a time over 0, such as 2d");
        }
    }

    zone->file.name = params->file;

    if (ngx_http_bloom_conf_full_name(cf, &zone->file.name, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Reads the parameters of a zone that starts empty into an image without
 * keys. */
static char *
ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_zone_t *zone)
{
    double          fpr;
    uint32_t        layout;
    bloom_image_t  *image;

    image = &zone->image;
    layout = BLOOM_LAYOUT_BLOCKED;
    image->hasher.kind = BLOOM_HASH_MURMUR3;

    if (params->watch.data != NULL || params->max_age.data != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has no \"file=\", which "
                           "\"watch=\" and \"max_age=\" need: leave them out",
                           &params->zone);
        return NGX_CONF_ERROR;
    }

    if (bloom_units_count((char *) params->capacity.data, params->capacity.len,
                          &image->capacity)
        != 0
        || image->capacity == 0 || image->capacity > BLOOM_CAPACITY_MAX)
    {
        return ngx_http_bloom_conf_invalid(cf, "capacity", &params->capacity,
                                           "a count such as 10m, up to 4398g");
    }

    if (params->fpr.data == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"capacity=\" without "
                           "\"fpr=\": add one, such as \"fpr=0.001\"",
                           &params->zone);
        return NGX_CONF_ERROR;
    }

    if (bloom_units_rate((char *) params->fpr.data, params->fpr.len,
                         &image->fpr)
        != 0
        || image->fpr < BLOOM_FPR_MIN || image->fpr > BLOOM_FPR_MAX)
    {
        return ngx_http_bloom_conf_invalid(cf, "fpr", &params->fpr,
                                           "a rate from 1e-9 to 0.5");
    }

    if (params->layout.data != NULL) {
        layout = bloom_geometry_layout_parse((char *) params->layout.data,
                                             params->layout.len);
        if (layout == BLOOM_LAYOUT_FUSE) {
            return ngx_http_bloom_conf_invalid(cf, "layout", &params->layout,
                                               "\"blocked\" or \"classic\"; a "
                                               "filter in layout fuse is an "
                                               "image, which \"file=\" names");
        }

        if (layout == 0) {
            return ngx_http_bloom_conf_invalid(cf, "layout", &params->layout,
                                               "\"blocked\" or \"classic\"");
        }
    }

    if (params->hash.data != NULL) {
        image->hasher.kind = bloom_hasher_parse((char *) params->hash.data,
                                                params->hash.len);
        if (image->hasher.kind == 0) {
            return ngx_http_bloom_conf_invalid(cf, "hash", &params->hash,
                                               "\"murmur3\" or \"siphash\"");
        }
    }

    if (params->expire.data != NULL) {
        return ngx_http_bloom_conf_zone_expire(cf, params, layout, zone);
    }

    fpr = image->fpr;

    if (zone->max_keys != 0) {

        if (zone->max_keys <= image->capacity
            || bloom_growth_layers(&image->geometry, image->capacity,
                                   zone->max_keys)
               > BLOOM_LAYERS_MAX)
        {
            return ngx_http_bloom_conf_invalid(cf, "max_keys",
                                               &params->max_keys,
                                               "greater than \"capacity\", "
                                               "and at most 131071 times as "
                                               "much");
        }

        /* the layers have the other half: see bloom_growth.h */

        fpr = ngx_max(fpr / 2, BLOOM_FPR_MIN);
    }

    if (bloom_geometry_size(&image->geometry, layout, image->capacity, fpr)
        != 0)
    {
        return ngx_http_bloom_conf_invalid(cf, "capacity", &params->capacity,
                                           "smaller: the filter would exceed "
                                           "1 TiB");
    }

    return NGX_CONF_OK;
}


/* Sets up a zone whose keys expire. */
static char *
ngx_http_bloom_conf_zone_expire(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, uint32_t layout,
    ngx_bloom_zone_t *zone)
{
    ngx_int_t       n;
    uint64_t        most;
    bloom_image_t  *image;

    image = &zone->image;

    if (params->must_have.data != NULL || params->must_not_have.data != NULL
        || params->min_keys.data != NULL || params->max_loss.data != NULL
        || params->max_growth.data != NULL)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"expire=\", and loads no "
                           "image that \"must_have=\", \"must_not_have=\", "
                           "\"min_keys=\", \"max_loss=\" or "
                           "\"max_growth=\" could check: leave them out",
                           &params->zone);
        return NGX_CONF_ERROR;
    }

    if (layout != BLOOM_LAYOUT_BLOCKED) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"expire=\" and the layout "
                           "classic: keys expire in the layout blocked only; "
                           "leave out \"layout=\"", &params->zone);
        return NGX_CONF_ERROR;
    }

    n = ngx_parse_time(&params->expire, 0);

    if (n < (ngx_int_t) BLOOM_RING_LIFE_MIN
        || n > (ngx_int_t) BLOOM_RING_LIFE_MAX)
    {
        return ngx_http_bloom_conf_invalid(cf, "expire", &params->expire,
                                           "a time such as 24h, from 2s to "
                                           "3650d");
    }

    zone->expire = n;
    zone->slices = bloom_ring_slices(zone->expire);
    most = bloom_ring_max_keys(image->capacity, zone->slices);

    if (zone->max_keys != 0
        && (zone->max_keys <= image->capacity || zone->max_keys > most))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid max_keys \"%V\" of bloom zone \"%V\": "
                           "with %uD slices it must be greater than "
                           "\"capacity\" and at most %uL", &params->max_keys,
                           &params->zone, zone->slices, most);
        return NGX_CONF_ERROR;
    }

    if (bloom_ring_size(&image->geometry, &zone->slice_capacity,
                        image->capacity, image->fpr, zone->slices,
                        zone->max_keys)
        != 0)
    {
        return ngx_http_bloom_conf_invalid(cf, "capacity", &params->capacity,
                                           "smaller: the filter would exceed "
                                           "1 TiB");
    }

    /* a slice has no lower rate */

    image->fpr = ngx_max(image->fpr, image->geometry.slices * BLOOM_FPR_MIN);

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_bloom_conf_zone_init(ngx_conf_t *cf, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        zone[i]->state_path = bmcf->state_path;

        if (ngx_http_bloom_conf_zone_check_source(cf, zone[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_bloom_conf_zone_warn(cf, zone[i]);
    }

    return NGX_OK;
}


/* Checks that nothing but the source changes a zone that has one. */
static ngx_int_t
ngx_http_bloom_conf_zone_check_source(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    if (zone->source.len == 0) {
        return NGX_OK;
    }

    if (zone->state_path.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui has \"source=\", and "
                      "\"bloom_state_path\" is off: the journal keeps the "
                      "changes of the source; set a path", &zone->name,
                      zone->conf_file, zone->conf_line);
        return NGX_ERROR;
    }

    if (zone->changed_by != NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui takes its changes from the "
                      "source \"%V\" alone, but %s changes it, too; remove "
                      "that, or \"source=\", or use another zone",
                      &zone->name, zone->conf_file, zone->conf_line,
                      &zone->source, zone->changed_by);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Warns of directives whose keys the zone cannot take. */
static void
ngx_http_bloom_conf_zone_warn(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    if (zone->adds && zone->file.name.len != 0
        && (zone->state_path.len == 0 || !zone->journal))
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui takes none of the keys of "
                      "\"bloom_add\", \"bloom_remove\" or \"add=on\": a "
                      "zone with \"file=\" needs a journal for them, but it "
                      "has %s",
                      &zone->name, zone->conf_file, zone->conf_line,
                      zone->journal ? "\"bloom_state_path off\""
                                    : "\"journal=off\"");
    }

    if (zone->removes && zone->shm_zone != NULL && zone->removals == 0) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui takes none of the keys of "
                      "\"bloom_remove\", because it has \"removals=0\": give "
                      "it room for as many removed keys as there may be before "
                      "the next image",
                      &zone->name, zone->conf_file, zone->conf_line);
    }
}
