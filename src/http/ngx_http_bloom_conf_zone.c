/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the directives with zones: bloom_state_path, bloom_zone,
 * bloom_guard and bloom_source.
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


/* The parameters of bloom_zone. */
typedef struct {
    ngx_bloom_zone_t          *zone;     /* first: see ..._zone_name() */
    uint64_t                   size;     /* 0: not given, as below */
    ngx_str_t                  file;
    uint64_t                   capacity;
    double                     fpr;
    ngx_uint_t                 layout;
    ngx_uint_t                 hash;
    ngx_uint_t                 form;     /* -1: not given */
    uint64_t                   max_keys;
    uint64_t                   removals;
    uint64_t                   expire;   /* ms, and so are times below */
    uint64_t                   watch;
    uint64_t                   max_age;
    ngx_uint_t                 required;
    ngx_uint_t                 journal;
    ngx_str_t                  label;
} ngx_http_bloom_conf_zone_t;

/* The parameters of bloom_guard. */
typedef struct {
    ngx_bloom_zone_t          *zone;
    ngx_bloom_guards_t         guards;
} ngx_http_bloom_conf_guard_t;

/* The parameters of bloom_source. */
typedef struct {
    ngx_bloom_zone_t          *zone;
    ngx_str_t                  name;
    uint64_t                   max_lag;
} ngx_http_bloom_conf_source_t;


static char *ngx_http_bloom_conf_zone_apply(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params, uint64_t given);
static char *ngx_http_bloom_conf_zone_go_together(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params, uint64_t given);
static char *ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params);
static char *ngx_http_bloom_conf_zone_once(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, ngx_bloom_conf_at_t *at);
static ngx_int_t ngx_http_bloom_conf_zone_check(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_conf_zone_refuse(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, char *directive, ngx_bloom_conf_at_t *at,
    char *which);
static void ngx_http_bloom_conf_zone_warn(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_conf_zone_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_fpr(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_label(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *text, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_limit(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_source_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);


static ngx_conf_enum_t  ngx_http_bloom_conf_layouts[] = {
    { ngx_string("blocked"), BLOOM_LAYOUT_BLOCKED },
    { ngx_string("classic"), BLOOM_LAYOUT_CLASSIC },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_hashes[] = {
    { ngx_string("murmur3"), BLOOM_HASH_MURMUR3 },
    { ngx_string("siphash"), BLOOM_HASH_SIPHASH },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_forms[] = {
    { ngx_string("raw"), BLOOM_FORM_RAW },
    { ngx_string("lower"), BLOOM_FORM_LOWER },
    { ngx_string("host"), BLOOM_FORM_HOST },
    { ngx_string("url"), BLOOM_FORM_URL },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_journals[] = {
    { ngx_string("auto"), NGX_BLOOM_JOURNAL_AUTO },
    { ngx_string("on"), NGX_BLOOM_JOURNAL_ON },
    { ngx_string("off"), NGX_BLOOM_JOURNAL_OFF },
    { ngx_null_string, 0 }
};


/* The parameters of bloom_zone, and whether they go with "file=" or with
 * "capacity=" only. */

#define FIELD(field)  offsetof(ngx_http_bloom_conf_zone_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_zone_table[] = {

    { ngx_string("zone="), NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_zone_name, FIELD(zone), NULL,
      "a name, or a name and a size such as ids:64m" },

    { ngx_string("file="), NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_FILE,
      ngx_http_bloom_conf_read_path, FIELD(file), NULL,
      "the path of an image" },

    { ngx_string("capacity="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_read_count, FIELD(capacity),
      ngx_http_bloom_conf_range(1, BLOOM_CAPACITY_MAX, 0),
      "a count such as 10m, up to 4398g" },

    { ngx_string("fpr="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_zone_fpr, FIELD(fpr), NULL,
      "a rate from 1e-9 to 0.5" },

    { ngx_string("layout="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_read_name, FIELD(layout),
      ngx_http_bloom_conf_layouts,
      "\"blocked\" or \"classic\"; a filter in layout fuse is an image, which "
      "\"file=\" names" },

    { ngx_string("hash="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_read_name, FIELD(hash), ngx_http_bloom_conf_hashes,
      NULL },

    { ngx_string("form="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(form), ngx_http_bloom_conf_forms,
      NULL },

    { ngx_string("max_keys="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_count, FIELD(max_keys),
      ngx_http_bloom_conf_range(1, BLOOM_CAPACITY_MAX, 0),
      "a count such as 10m, up to 4398g; leave it out if the filter must not "
      "grow" },

    { ngx_string("removals="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_count, FIELD(removals),
      ngx_http_bloom_conf_range(0, NGX_BLOOM_REMOVALS_MAX, 0),
      "a count such as 10k, up to 10m, or 0" },

    { ngx_string("expire="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_read_time, FIELD(expire),
      ngx_http_bloom_conf_range(BLOOM_RING_LIFE_MIN, BLOOM_RING_LIFE_MAX, 0),
      "a time such as 24h, from 2s to 3650d" },

    { ngx_string("watch="), NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_FILE,
      ngx_http_bloom_conf_read_time, FIELD(watch),
      ngx_http_bloom_conf_range(1, NGX_MAX_INT_T_VALUE, 0),
      "a time over 0, such as 10s" },

    { ngx_string("max_age="), NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_FILE,
      ngx_http_bloom_conf_read_time, FIELD(max_age),
      ngx_http_bloom_conf_range(1000, NGX_MAX_INT_T_VALUE, 0),
      "a time of at least 1s, such as 2d" },

    { ngx_string("required="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(required),
      ngx_http_bloom_conf_on_off, NULL },

    { ngx_string("journal="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(journal),
      ngx_http_bloom_conf_journals, NULL },

    { ngx_string("label="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_zone_label, FIELD(label), NULL,
      "1 to 100 bytes of printable UTF-8 without any of \"'<>&\\; write a label "
      "with spaces as \"label=A list\"" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};

#undef FIELD


#define FIELD(field)  offsetof(ngx_http_bloom_conf_guard_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_guard_table[] = {

    { ngx_string("zone="), NGX_HTTP_BLOOM_CONF_GUARD|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_read_zone, FIELD(zone), NULL, "the name of a zone" },

    { ngx_string("must_have="), NGX_HTTP_BLOOM_CONF_GUARD,
      ngx_http_bloom_conf_read_path, FIELD(guards.file[NGX_BLOOM_GUARD_HAVE]),
      NULL, "a file of keys" },

    { ngx_string("must_not_have="), NGX_HTTP_BLOOM_CONF_GUARD,
      ngx_http_bloom_conf_read_path,
      FIELD(guards.file[NGX_BLOOM_GUARD_HAVE_NOT]), NULL, "a file of keys" },

    { ngx_string("min_keys="), NGX_HTTP_BLOOM_CONF_GUARD,
      ngx_http_bloom_conf_read_count, FIELD(guards.min_keys),
      ngx_http_bloom_conf_range(1, BLOOM_CAPACITY_MAX, 0),
      "a count such as 10m, up to 4398g" },

    { ngx_string("max_loss="), NGX_HTTP_BLOOM_CONF_GUARD,
      ngx_http_bloom_conf_zone_limit, FIELD(guards.max.loss),
      ngx_http_bloom_conf_range(0, BLOOM_GUARD_LOSS_MAX, 0),
      "a percentage such as 1%, up to 100%, or a number of keys such as 500" },

    { ngx_string("max_growth="), NGX_HTTP_BLOOM_CONF_GUARD,
      ngx_http_bloom_conf_zone_limit, FIELD(guards.max.growth),
      ngx_http_bloom_conf_range(0, BLOOM_GUARD_GROWTH_MAX, 0),
      "a percentage such as 50%, or a number of keys such as 10k" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};

#undef FIELD


#define FIELD(field)  offsetof(ngx_http_bloom_conf_source_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_source_table[] = {

    { ngx_string("zone="), NGX_HTTP_BLOOM_CONF_SOURCE|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_read_zone, FIELD(zone), NULL, "the name of a zone" },

    { ngx_string("name="), NGX_HTTP_BLOOM_CONF_SOURCE|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_zone_source_name, FIELD(name), NULL,
      "1 to 255 letters, digits and characters of \"._:/-\"" },

    { ngx_string("max_lag="), NGX_HTTP_BLOOM_CONF_SOURCE,
      ngx_http_bloom_conf_read_time, FIELD(max_lag),
      ngx_http_bloom_conf_range(1000, NGX_MAX_INT_T_VALUE, 1),
      "a time of at least 1s, such as 30s, or \"off\"" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};

#undef FIELD


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
    uint64_t                     given;
    ngx_http_bloom_conf_zone_t   params;

    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_zone_t));

    params.layout = BLOOM_LAYOUT_BLOCKED;
    params.hash = BLOOM_HASH_MURMUR3;
    params.form = (ngx_uint_t) -1;
    params.removals = NGX_BLOOM_REMOVALS;
    params.required = 1;
    params.journal = NGX_BLOOM_JOURNAL_AUTO;

    if (ngx_http_bloom_conf_params(cf, 1, ngx_http_bloom_conf_zone_table,
                                   NGX_HTTP_BLOOM_CONF_ZONE, &params, &given)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* a second declaration must not change the first one */

    if (params.zone->shm_zone == NULL
        && ngx_http_bloom_conf_zone_apply(cf, &params, given) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_bloom_declare_zone(cf, params.zone, (size_t) params.size,
                               &ngx_http_bloom_module)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Sets the parameters of a zone. */
static char *
ngx_http_bloom_conf_zone_apply(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params, uint64_t given)
{
    ngx_bloom_zone_t  *zone;

    if (ngx_http_bloom_conf_zone_go_together(cf, params, given)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    zone = params->zone;

    zone->file.name = params->file;
    zone->key_form = (ngx_int_t) params->form;
    zone->max_keys = params->max_keys;
    zone->removals = (ngx_uint_t) params->removals;
    zone->watch = (ngx_msec_t) params->watch;
    zone->max_age = (time_t) (params->max_age / 1000);
    zone->optional = !params->required;
    zone->journal = params->journal;
    zone->label = params->label;

    if (params->file.len != 0) {
        return NGX_CONF_OK;
    }

    return ngx_http_bloom_conf_zone_empty(cf, params);
}


/* Checks that a zone has either an image or a capacity, and only parameters that
 * go with it. */
static char *
ngx_http_bloom_conf_zone_go_together(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params, uint64_t given)
{
    char                               *has, *other;
    ngx_uint_t                          with;
    const ngx_http_bloom_conf_param_t  *param;

    if ((params->file.len != 0) == (params->capacity != 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" must have either \"file=\", "
                           "or \"capacity=\" and \"fpr=\"",
                           &params->zone->name);
        return NGX_CONF_ERROR;
    }

    with = NGX_HTTP_BLOOM_CONF_CAPACITY;
    has = "file=";
    other = "capacity=";

    if (params->file.len == 0) {
        with = NGX_HTTP_BLOOM_CONF_FILE;
        has = "capacity=";
        other = "file=";
    }

    for (param = ngx_http_bloom_conf_zone_table; param->name.len; param++) {

        if ((param->where & with)
            && (given & ((uint64_t) 1 << (param
                                          - ngx_http_bloom_conf_zone_table))))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "bloom zone \"%V\" has \"%s\" and \"%V\", "
                               "which goes with \"%s\" only: leave out one of "
                               "them", &params->zone->name, has, &param->name,
                               other);
            return NGX_CONF_ERROR;
        }
    }

    if (params->file.len == 0 && params->fpr == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"capacity=\" without "
                           "\"fpr=\": add one, such as \"fpr=0.001\"",
                           &params->zone->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Describes the filter of a zone that starts empty: an image without keys. */
static char *
ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_http_bloom_conf_zone_t *params)
{
    int                rc;
    double             fpr;
    uint64_t           most;
    bloom_image_t     *image;
    ngx_bloom_zone_t  *zone;

    zone = params->zone;
    image = &zone->image;

    image->capacity = params->capacity;
    image->fpr = params->fpr;
    image->hasher.kind = (uint32_t) params->hash;

    if (zone->key_form != -1) {
        image->key_form = (uint32_t) zone->key_form;
    }

    if (params->expire == 0) {
        most = image->capacity * ((2 << BLOOM_LAYERS_MAX) - 1);

    } else if (params->layout == BLOOM_LAYOUT_BLOCKED) {
        zone->expire = params->expire;
        zone->slices = bloom_ring_slices(zone->expire);
        most = bloom_ring_max_keys(image->capacity, zone->slices);

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"expire=\" and the layout "
                           "classic: keys expire in the layout blocked only; "
                           "leave out \"layout=\"", &zone->name);
        return NGX_CONF_ERROR;
    }

    if (zone->max_keys != 0
        && (zone->max_keys <= image->capacity || zone->max_keys > most))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"max_keys=%uL\" of bloom zone \"%V\": "
                           "with \"capacity=%uL\" it must be from %uL to %uL",
                           zone->max_keys, &zone->name, image->capacity,
                           image->capacity + 1, most);
        return NGX_CONF_ERROR;
    }

    if (zone->expire != 0) {
        rc = bloom_ring_size(&image->geometry, &zone->slice_capacity,
                             image->capacity, image->fpr, zone->slices,
                             zone->max_keys);

        /* a slice has no lower rate */

        image->fpr = ngx_max(image->fpr,
                             image->geometry.slices * BLOOM_FPR_MIN);

    } else {

        /* the layers have the other half: see bloom_growth.h */

        fpr = zone->max_keys ? ngx_max(image->fpr / 2, BLOOM_FPR_MIN)
                             : image->fpr;

        rc = bloom_geometry_size(&image->geometry, (uint32_t) params->layout,
                                 image->capacity, fpr);
    }

    if (rc != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"capacity=%uL\" of bloom zone \"%V\" is too "
                           "large: the filter would exceed 1 TiB",
                           params->capacity, &zone->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_zone_guard(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    uint64_t                      given;
    ngx_http_bloom_conf_guard_t   params;

    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_guard_t));

    if (ngx_http_bloom_conf_params(cf, 1, ngx_http_bloom_conf_guard_table,
                                   NGX_HTTP_BLOOM_CONF_GUARD, &params, &given)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if ((given & (given - 1)) == 0) {

        /* nothing but "zone=" */

        return "must have a guard, such as \"max_loss=1%\"";
    }

    params.zone->guards = params.guards;

    return ngx_http_bloom_conf_zone_once(cf, params.zone,
                                         &params.zone->guard_at);
}


char *
ngx_http_bloom_conf_zone_source(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_bloom_zone_t              *zone;
    ngx_http_bloom_conf_source_t   params;

    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_source_t));

    params.max_lag = NGX_HTTP_BLOOM_CONF_MAX_LAG;

    if (ngx_http_bloom_conf_params(cf, 1, ngx_http_bloom_conf_source_table,
                                   NGX_HTTP_BLOOM_CONF_SOURCE, &params, NULL)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    zone = params.zone;

    zone->source = params.name;
    zone->source_id = ngx_bloom_source_id(&zone->source);
    zone->max_lag = (ngx_msec_t) params.max_lag;

    return ngx_http_bloom_conf_zone_once(cf, zone, &zone->source_at);
}


/* Notes where the directive is that sets something of a zone, and refuses a
 * second one. */
static char *
ngx_http_bloom_conf_zone_once(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    ngx_bloom_conf_at_t *at)
{
    ngx_str_t  *directive;

    directive = cf->args->elts;

    if (at->file != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has a \"%V\" already, in %s:%ui; "
                           "write all parameters there",
                           &zone->name, directive, at->file, at->line);
        return NGX_CONF_ERROR;
    }

    at->file = cf->conf_file->file.name.data;
    at->line = cf->conf_file->line;

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

        if (ngx_http_bloom_conf_zone_check(cf, zone[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        if (zone[i]->journal == NGX_BLOOM_JOURNAL_ON
            || zone[i]->source.len != 0)
        {
            /* announces changes that no directive names, as those of Lua */

            zone[i]->adds = 1;
            zone[i]->removes |= (zone[i]->removals != 0);
        }

        ngx_http_bloom_conf_zone_warn(cf, zone[i]);
    }

    return NGX_OK;
}


/* Refuses directives that contradict one another, whatever their order is. */
static ngx_int_t
ngx_http_bloom_conf_zone_check(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    char        *reason, changed[NGX_MAX_CONF_ERRSTR / 4];
    ngx_uint_t   off;

    off = (zone->state_path.len == 0);
    reason = NULL;

    if (zone->shm_zone == NULL) {
        return NGX_OK;                   /* ngx_bloom_declare_check() says so */
    }

    if (zone->journal == NGX_BLOOM_JOURNAL_ON && off) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui has \"journal=on\", but "
                      "\"bloom_state_path\" is off: set a path, or leave out "
                      "\"journal=on\"", &zone->name, zone->conf_file,
                      zone->conf_line);
        return NGX_ERROR;
    }

    if (zone->guard_at.file != NULL && zone->expire != 0) {
        return ngx_http_bloom_conf_zone_refuse(cf, zone, "bloom_guard",
                                               &zone->guard_at,
                                               "has \"expire=\" and loads no "
                                               "image; remove one of them");
    }

    if (zone->source_at.file == NULL) {
        return NGX_OK;
    }

    if (zone->expire != 0) {
        reason = "has \"expire=\", and the keys of a source do not expire; "
                 "remove one of them";

    } else if (zone->journal == NGX_BLOOM_JOURNAL_OFF) {
        reason = "has \"journal=off\", and the journal keeps the changes of "
                 "the source; remove one of them";

    } else if (off) {
        reason = "has no journal, which keeps the changes of the source, since "
                 "\"bloom_state_path\" is off; set a path";

    } else if (zone->changed_by != NULL) {
        ngx_snprintf((u_char *) changed, sizeof(changed),
                     "takes changes from %s, too; remove that or "
                     "\"bloom_source\", or use another zone%Z",
                     zone->changed_by);
        reason = changed;
    }

    return reason == NULL ? NGX_OK
           : ngx_http_bloom_conf_zone_refuse(cf, zone, "bloom_source",
                                             &zone->source_at, reason);
}


/* Logs that a zone is not for a directive.  Returns NGX_ERROR. */
static ngx_int_t
ngx_http_bloom_conf_zone_refuse(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    char *directive, ngx_bloom_conf_at_t *at, char *which)
{
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "\"%s\" in %s:%ui names bloom zone \"%V\", which %s",
                  directive, at->file, at->line, &zone->name, which);

    return NGX_ERROR;
}


/* Warns of directives whose keys the zone cannot take. */
static void
ngx_http_bloom_conf_zone_warn(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    if (zone->adds && zone->file.name.len != 0
        && (zone->state_path.len == 0
            || zone->journal == NGX_BLOOM_JOURNAL_OFF))
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui takes none of the keys of "
                      "\"bloom_add\", \"bloom_remove\" or \"add=on\": a "
                      "zone with \"file=\" needs a journal for them, but it "
                      "has %s",
                      &zone->name, zone->conf_file, zone->conf_line,
                      zone->journal == NGX_BLOOM_JOURNAL_OFF
                      ? "\"journal=off\"" : "\"bloom_state_path off\"");
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


/* Reads the name of the zone that is declared, and its size. */
static ngx_int_t
ngx_http_bloom_conf_zone_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    u_char                      *colon;
    ngx_str_t                    name, size;
    ngx_http_bloom_conf_zone_t  *params = field;
    ngx_http_bloom_main_conf_t  *bmcf;

    name = *value;
    colon = (u_char *) ngx_strchr(name.data, ':');

    if (colon != NULL) {
        size.data = colon + 1;
        size.len = name.data + name.len - size.data;
        name.len = colon - name.data;

        if (bloom_units_bytes((char *) size.data, size.len, &params->size) != 0
            || params->size == 0 || params->size > NGX_MAX_SIZE_T_VALUE)
        {
            (void) ngx_http_bloom_conf_invalid(cf, "zone size", &size,
                                               "a size such as 64m");
            return NGX_ERROR;
        }
    }

    if (name.len == 0) {
        return NGX_DECLINED;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    params->zone = ngx_bloom_declare_get(cf, &bmcf->zones, &name);

    return params->zone != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_bloom_conf_zone_fpr(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    double  *fpr = field;

    return bloom_units_rate((char *) value->data, value->len, fpr) == 0
           && *fpr >= BLOOM_FPR_MIN && *fpr <= BLOOM_FPR_MAX ? NGX_OK
                                                             : NGX_DECLINED;
}


/*
 * Reads a label.  It has no character that would have to be escaped in HTML, JSON
 * or a header, since labels are put into error pages.
 */
static ngx_int_t
ngx_http_bloom_conf_zone_label(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *text, void *field)
{
    size_t   len;
    u_char  *p, *end;

    if (text->len == 0 || text->len > NGX_HTTP_BLOOM_CONF_ZONE_LABEL) {
        return NGX_DECLINED;
    }

    end = text->data + text->len;

    for (p = text->data; p < end; p += len) {
        len = bloom_utf8_len(p, end - p);

        if (len == 0 || bloom_utf8_is_hidden(p, len)
            || ngx_strchr("\"'<>&\\", *p) != NULL)
        {
            return NGX_DECLINED;
        }
    }

    *(ngx_str_t *) field = *text;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_conf_zone_limit(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    const ngx_http_bloom_conf_range_t  *range = param->post;

    return bloom_guard_limit_parse(field, (char *) value->data, value->len,
                                   (double) range->max)
           == 0 ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_bloom_conf_zone_source_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    *(ngx_str_t *) field = *value;

    return bloom_source_name_valid(value->data, value->len) ? NGX_OK
                                                            : NGX_DECLINED;
}
