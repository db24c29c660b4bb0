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


static ngx_bloom_zone_t *ngx_http_bloom_conf_zone_read(ngx_conf_t *cf,
    ngx_uint_t where, uint64_t *given);
static ngx_bloom_zone_t *ngx_http_bloom_conf_zone_find(ngx_conf_t *cf,
    ngx_uint_t where);
static char *ngx_http_bloom_conf_zone_go_together(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, uint64_t given);
static char *ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_conf_zone_check(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static void ngx_http_bloom_conf_zone_warn(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_conf_zone_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_layout(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_hash(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_fpr(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_label(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *text, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_limit(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
static ngx_int_t ngx_http_bloom_conf_zone_source_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);


static ngx_conf_enum_t  ngx_http_bloom_conf_forms[] = {
    { ngx_string("raw"), BLOOM_FORM_RAW },
    { ngx_string("lower"), BLOOM_FORM_LOWER },
    { ngx_string("host"), BLOOM_FORM_HOST },
    { ngx_string("url"), BLOOM_FORM_URL },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_required[] = {
    { ngx_string("on"), 0 },
    { ngx_string("off"), 1 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_journals[] = {
    { ngx_string("auto"), NGX_BLOOM_JOURNAL_AUTO },
    { ngx_string("on"), NGX_BLOOM_JOURNAL_ON },
    { ngx_string("off"), NGX_BLOOM_JOURNAL_OFF },
    { ngx_null_string, 0 }
};


/* The parameters of bloom_zone, and whether they go with "file=" or with
 * "capacity=" only; and those of bloom_guard and bloom_source. */

#define FIELD(field)  offsetof(ngx_bloom_zone_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_zone_table[] = {

    { ngx_string("zone="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_GUARD
      |NGX_HTTP_BLOOM_CONF_SOURCE,
      ngx_http_bloom_conf_zone_name, 0, NULL, NULL },

    { ngx_string("file="), NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_FILE,
      ngx_http_bloom_conf_read_path, FIELD(file.name), NULL,
      "the path of an image" },

    { ngx_string("capacity="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_read_count, FIELD(image.capacity),
      ngx_http_bloom_conf_range(1, BLOOM_CAPACITY_MAX, 0),
      "a count such as 10m, up to 4398g" },

    { ngx_string("fpr="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_zone_fpr, FIELD(image.fpr), NULL,
      "a rate from 1e-9 to 0.5" },

    { ngx_string("layout="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_zone_layout, FIELD(image.geometry.layout), NULL,
      "\"blocked\" or \"classic\"; a filter in layout fuse is an image, which "
      "\"file=\" names" },

    { ngx_string("hash="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_CAPACITY,
      ngx_http_bloom_conf_zone_hash, FIELD(image.hasher.kind), NULL,
      "\"murmur3\" or \"siphash\"" },

    { ngx_string("form="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(key_form), ngx_http_bloom_conf_forms,
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
      ngx_http_bloom_conf_seconds(1, NGX_MAX_INT_T_VALUE),
      "a time over 0, such as 2d" },

    { ngx_string("required="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(optional),
      ngx_http_bloom_conf_required, NULL },

    { ngx_string("journal="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_read_name, FIELD(journal),
      ngx_http_bloom_conf_journals, NULL },

    { ngx_string("label="), NGX_HTTP_BLOOM_CONF_ZONE,
      ngx_http_bloom_conf_zone_label, FIELD(label), NULL,
      "1 to 100 bytes of printable UTF-8 without any of \"'<>&\\; write a "
      "label with spaces as \"label=A list\"" },

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

    { ngx_string("name="), NGX_HTTP_BLOOM_CONF_SOURCE|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_zone_source_name, FIELD(source), NULL,
      "1 to 255 letters, digits and characters of \"._:/-\"" },

    { ngx_string("max_lag="), NGX_HTTP_BLOOM_CONF_SOURCE,
      ngx_http_bloom_conf_read_time, FIELD(max_lag),
      ngx_http_bloom_conf_range(1000, NGX_MAX_INT_T_VALUE, 1),
      "a time of at least 1s, such as 30s, or \"off\"" },

    /* gone */

    { ngx_string("key="), NGX_HTTP_BLOOM_CONF_ZONE, NULL, 0, NULL,
      "its name is \"form=\"" },

    { ngx_string("slices="), NGX_HTTP_BLOOM_CONF_ZONE, NULL, 0, NULL,
      "the zone chooses the number of slices itself; leave it out" },

    { ngx_string("max_change="),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_GUARD, NULL, 0, NULL,
      "write \"max_loss=\" and \"max_growth=\" of \"bloom_guard\"" },

    { ngx_string("source="), NGX_HTTP_BLOOM_CONF_ZONE, NULL, 0, NULL,
      "write \"name=\" of \"bloom_source\"" },

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
    uint64_t           given;
    ngx_bloom_zone_t  *zone;

    zone = ngx_http_bloom_conf_zone_read(cf, NGX_HTTP_BLOOM_CONF_ZONE, &given);

    if (zone == NULL
        || ngx_http_bloom_conf_zone_go_together(cf, zone, given) != NGX_CONF_OK
        || (zone->file.name.len == 0
            && ngx_http_bloom_conf_zone_empty(cf, zone) != NGX_CONF_OK)
        || ngx_bloom_declare_zone(cf, zone, zone->size, &ngx_http_bloom_module)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_zone_guard(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    if (ngx_http_bloom_conf_zone_read(cf, NGX_HTTP_BLOOM_CONF_GUARD, NULL)
        == NULL)
    {
        return NGX_CONF_ERROR;
    }

    return cf->args->nelts > 2 ? NGX_CONF_OK
           : "must have a guard, such as \"max_loss=1%\"";
}


char *
ngx_http_bloom_conf_zone_source(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_bloom_zone_t  *zone;

    zone = ngx_http_bloom_conf_zone_read(cf, NGX_HTTP_BLOOM_CONF_SOURCE, NULL);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->source_id = ngx_bloom_source_id(&zone->source);

    return NGX_CONF_OK;
}


/* Reads the parameters of a directive into the zone that it names, which has no
 * such directive yet.  `given` is that of ngx_http_bloom_conf_params().
 * Returns NULL after an error. */
static ngx_bloom_zone_t *
ngx_http_bloom_conf_zone_read(ngx_conf_t *cf, ngx_uint_t where,
    uint64_t *given)
{
    ngx_str_t            *directive;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_conf_at_t  *at;

    zone = ngx_http_bloom_conf_zone_find(cf, where);
    if (zone == NULL) {
        return NULL;
    }

    at = where == NGX_HTTP_BLOOM_CONF_ZONE ? &zone->zone_at
         : where == NGX_HTTP_BLOOM_CONF_GUARD ? &zone->guard_at
         : &zone->source_at;

    if (at->file != NULL) {
        directive = cf->args->elts;

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has a \"%V\" already, in %s:%ui; "
                           "write all parameters there",
                           &zone->name, directive, at->file, at->line);
        return NULL;
    }

    at->file = cf->conf_file->file.name.data;
    at->line = cf->conf_file->line;

    return ngx_http_bloom_conf_params(cf, 1, ngx_http_bloom_conf_zone_table,
                                      where, zone, given)
           == NGX_CONF_OK ? zone : NULL;
}


/* Finds the zone that a directive names, and reads its size.  Returns NULL
 * after an error. */
static ngx_bloom_zone_t *
ngx_http_bloom_conf_zone_find(ngx_conf_t *cf, ngx_uint_t where)
{
    u_char                      *colon;
    uint64_t                     bytes;
    ngx_str_t                   *value, name, size;
    ngx_uint_t                   i;
    ngx_bloom_zone_t            *zone;
    ngx_http_bloom_main_conf_t  *bmcf;

    value = cf->args->elts;
    bytes = 0;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_strncmp(value[i].data, "zone=", 5) == 0) {
            break;
        }
    }

    if (i == cf->args->nelts) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" directive must have the \"zone=\" "
                           "parameter", value);
        return NULL;
    }

    name.data = value[i].data + 5;
    name.len = value[i].len - 5;

    colon = where == NGX_HTTP_BLOOM_CONF_ZONE
            ? (u_char *) ngx_strchr(name.data, ':') : NULL;

    if (colon != NULL) {
        size.data = colon + 1;
        size.len = name.data + name.len - size.data;
        name.len = colon - name.data;

        if (bloom_units_bytes((char *) size.data, size.len, &bytes) != 0
            || bytes == 0 || bytes > NGX_MAX_SIZE_T_VALUE)
        {
            (void) ngx_http_bloom_conf_invalid(cf, "zone size", &size,
                                               "a size such as 64m");
            return NULL;
        }
    }

    if (name.len == 0
        || (colon == NULL && ngx_strchr(name.data, ':') != NULL))
    {
        (void) ngx_http_bloom_conf_invalid_value(cf, "zone=", &name,
                                                 "the name of a zone");
        return NULL;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    zone = ngx_bloom_declare_get(cf, &bmcf->zones, &name);

    if (zone != NULL && bytes != 0) {
        zone->size = (size_t) bytes;
    }

    return zone;
}


/* Checks that a zone has either an image or a capacity, and only parameters
 * that go with it. */
static char *
ngx_http_bloom_conf_zone_go_together(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    uint64_t given)
{
    ngx_uint_t                          file;
    const ngx_http_bloom_conf_param_t  *param;

    file = (zone->file.name.len != 0);

    if (file == (zone->image.capacity != 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" must have either \"file=\", "
                           "or \"capacity=\" and \"fpr=\"; it has %s",
                           &zone->name,
                           file ? "both: leave out one of them" : "neither");
        return NGX_CONF_ERROR;
    }

    for (param = ngx_http_bloom_conf_zone_table;
         param->name.len;
         param++, given >>= 1)
    {
        if ((given & 1)
            && (param->where & (file ? NGX_HTTP_BLOOM_CONF_CAPACITY
                                     : NGX_HTTP_BLOOM_CONF_FILE)))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "bloom zone \"%V\" has \"%s\" and \"%V\", "
                               "which goes with \"%s\" only: leave out one of "
                               "them", &zone->name,
                               file ? "file=" : "capacity=", &param->name,
                               file ? "capacity=" : "file=");
            return NGX_CONF_ERROR;
        }
    }

    if (!file && zone->image.fpr == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"capacity=\" without "
                           "\"fpr=\": add one, such as \"fpr=0.001\"",
                           &zone->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Describes the filter of a zone that starts empty: an image without keys. */
static char *
ngx_http_bloom_conf_zone_empty(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone)
{
    int             rc;
    double          fpr;
    uint32_t        layout;
    uint64_t        most;
    bloom_image_t  *image;

    image = &zone->image;
    layout = image->geometry.layout ? image->geometry.layout
                                    : BLOOM_LAYOUT_BLOCKED;

    if (image->hasher.kind == 0) {
        image->hasher.kind = BLOOM_HASH_MURMUR3;
    }

    if (zone->key_form != -1) {
        image->key_form = (uint32_t) zone->key_form;
    }

    if (zone->expire == 0) {
        most = image->capacity * ((2 << BLOOM_LAYERS_MAX) - 1);

    } else if (layout == BLOOM_LAYOUT_BLOCKED) {
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

        rc = bloom_geometry_size(&image->geometry, layout, image->capacity,
                                 fpr);
    }

    if (rc != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"capacity=%uL\" of bloom zone \"%V\" is too "
                           "large: the filter would exceed 1 TiB",
                           image->capacity, &zone->name);
        return NGX_CONF_ERROR;
    }

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
    char                 *directive, *reason, changed[NGX_MAX_CONF_ERRSTR / 4];
    ngx_uint_t            off;
    ngx_bloom_conf_at_t  *at;

    off = (zone->state_path.len == 0);
    directive = "bloom_source";
    at = &zone->source_at;

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
        directive = "bloom_guard";
        at = &zone->guard_at;
        reason = "has \"expire=\" and loads no image; remove one of them";

    } else if (zone->source_at.file == NULL) {
        return NGX_OK;

    } else if (zone->expire != 0) {
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

    } else {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "\"%s\" in %s:%ui names bloom zone \"%V\", which %s",
                  directive, at->file, at->line, &zone->name, reason);

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

    if (zone->adapts && zone->shm_zone != NULL
        && zone->removals < NGX_BLOOM_ADAPT_SHARE)
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui excepts no key for "
                      "\"except=on\" of \"bloom_feedback\", because it has "
                      "\"removals=%ui\": excepted keys use up to half of that "
                      "room; set it to 2 or more",
                      &zone->name, zone->conf_file, zone->conf_line,
                      zone->removals);
    }
}


/* The zone has been read before: ngx_http_bloom_conf_zone_find(). */
static ngx_int_t
ngx_http_bloom_conf_zone_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_conf_zone_layout(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    uint32_t  *layout = field;

    *layout = bloom_geometry_layout_parse((char *) value->data, value->len);

    return *layout == BLOOM_LAYOUT_BLOCKED || *layout == BLOOM_LAYOUT_CLASSIC
           ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_bloom_conf_zone_hash(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    uint32_t  *hash = field;

    *hash = bloom_hasher_parse((char *) value->data, value->len);

    return *hash != 0 ? NGX_OK : NGX_DECLINED;
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
 * Reads a label.  It has no character that would have to be escaped in HTML,
 * JSON or a header, since labels are put into error pages.
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
