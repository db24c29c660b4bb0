
/*
 * ngx_http_bloom_module: Bloom filters in shared memory decide about requests.
 *
 * This file is the module's face: its directives, their configuration and its
 * registration.  Requests are decided in src/ngx_http_bloom_rules.c, the
 * endpoint is in src/ngx_http_bloom_api.c, filters live in
 * src/ngx_bloom_zone.c; docs/architecture.md has the picture.
 */

#include "src/ngx_http_bloom.h"
#include "src/ngx_bloom_helper.h"
#include "src/bloom_units.h"


/* A directive's parameters, each once. */
typedef struct {
    ngx_str_t                  zone;
    ngx_str_t                  size;
    ngx_str_t                  file;
    ngx_str_t                  capacity;
    ngx_str_t                  fpr;
    ngx_str_t                  layout;
    ngx_str_t                  hash;
    ngx_str_t                  key;
    ngx_str_t                  journal;
    ngx_str_t                  watch;
    ngx_str_t                  max_age;
    ngx_str_t                  decode;
    ngx_str_t                  condition;
    ngx_str_t                  status;
    ngx_str_t                  to;
    ngx_str_t                  split;
    ngx_str_t                  match;
} ngx_http_bloom_params_t;

typedef struct {
    ngx_str_t                  name;     /* with "=" */
    size_t                     offset;
    ngx_uint_t                 where;    /* directives that take it */
} ngx_http_bloom_param_t;

#define NGX_HTTP_BLOOM_OF_ZONE    0x01
#define NGX_HTTP_BLOOM_OF_KEY     0x02
#define NGX_HTTP_BLOOM_OF_REJECT  0x04
#define NGX_HTTP_BLOOM_OF_ROUTE   0x08
#define NGX_HTTP_BLOOM_OF_ADD     0x10
#define NGX_HTTP_BLOOM_OF_RULE    0x20


static ngx_int_t ngx_http_bloom_add_handlers(ngx_conf_t *cf);
static void ngx_http_bloom_init_zones(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);
static ngx_int_t ngx_http_bloom_check_routes(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);
static ngx_int_t ngx_http_bloom_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_bloom_init_process(ngx_cycle_t *cycle);
static void *ngx_http_bloom_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_bloom_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_bloom_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_bloom_state_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_file_zone(ngx_conf_t *cf,
    ngx_http_bloom_params_t *params, ngx_bloom_zone_t *zone);
static char *ngx_http_bloom_empty_zone(ngx_conf_t *cf,
    ngx_http_bloom_params_t *params, bloom_image_t *image);
static char *ngx_http_bloom_lookup(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_rule(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_rule_split(ngx_conf_t *cf,
    ngx_http_bloom_params_t *params, ngx_http_bloom_rule_t *rule);
static char *ngx_http_bloom_rule_to(ngx_conf_t *cf, ngx_str_t *to,
    ngx_http_bloom_rule_t *rule);
static char *ngx_http_bloom_rules(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_add(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_api(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_bloom_key(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_bloom_params_t *params, ngx_http_bloom_key_t *key);
static ngx_int_t ngx_http_bloom_variable(ngx_conf_t *cf, ngx_str_t *text);
static char *ngx_http_bloom_params(ngx_conf_t *cf, ngx_uint_t first,
    ngx_uint_t where, ngx_http_bloom_params_t *params);
static char *ngx_http_bloom_invalid(ngx_conf_t *cf, char *name,
    ngx_str_t *value, char *want);


static ngx_conf_enum_t  ngx_http_bloom_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_bloom_unavailable[] = {
    { ngx_string("pass"), NGX_HTTP_BLOOM_UNAVAILABLE_PASS },
    { ngx_string("reject"), NGX_HTTP_BLOOM_UNAVAILABLE_REJECT },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_bloom_decodes[] = {
    { ngx_string("off"), BLOOM_DECODE_OFF },
    { ngx_string("uri"), BLOOM_DECODE_URI },
    { ngx_string("form"), BLOOM_DECODE_FORM },
    { ngx_null_string, 0 }
};


static ngx_http_bloom_param_t  ngx_http_bloom_param[] = {

    { ngx_string("zone="), offsetof(ngx_http_bloom_params_t, zone),
      NGX_HTTP_BLOOM_OF_ZONE|NGX_HTTP_BLOOM_OF_KEY },

    { ngx_string("file="), offsetof(ngx_http_bloom_params_t, file),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("capacity="), offsetof(ngx_http_bloom_params_t, capacity),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("fpr="), offsetof(ngx_http_bloom_params_t, fpr),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("layout="), offsetof(ngx_http_bloom_params_t, layout),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("hash="), offsetof(ngx_http_bloom_params_t, hash),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("key="), offsetof(ngx_http_bloom_params_t, key),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("journal="), offsetof(ngx_http_bloom_params_t, journal),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("watch="), offsetof(ngx_http_bloom_params_t, watch),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("max_age="), offsetof(ngx_http_bloom_params_t, max_age),
      NGX_HTTP_BLOOM_OF_ZONE },

    { ngx_string("decode="), offsetof(ngx_http_bloom_params_t, decode),
      NGX_HTTP_BLOOM_OF_KEY },

    { ngx_string("if="), offsetof(ngx_http_bloom_params_t, condition),
      NGX_HTTP_BLOOM_OF_ADD },

    { ngx_string("status="), offsetof(ngx_http_bloom_params_t, status),
      NGX_HTTP_BLOOM_OF_REJECT },

    { ngx_string("to="), offsetof(ngx_http_bloom_params_t, to),
      NGX_HTTP_BLOOM_OF_ROUTE },

    { ngx_string("split="), offsetof(ngx_http_bloom_params_t, split),
      NGX_HTTP_BLOOM_OF_RULE },

    { ngx_string("match="), offsetof(ngx_http_bloom_params_t, match),
      NGX_HTTP_BLOOM_OF_RULE },

    { ngx_null_string, 0, 0 }
};


static ngx_command_t  ngx_http_bloom_commands[] = {

    { ngx_string("bloom_state_path"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_state_path,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_lookup"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_lookup,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_HTTP_BLOOM_PASS,
      NULL },

    { ngx_string("bloom_reject"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_HTTP_BLOOM_REJECT,
      NULL },

    { ngx_string("bloom_route"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_HTTP_BLOOM_ROUTE,
      NULL },

    { ngx_string("bloom_rules"),
      NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_rules,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_add"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_add,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_bloom_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_dry_run"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, dry_run),
      NULL },

    { ngx_string("bloom_unavailable"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, unavailable),
      &ngx_http_bloom_unavailable },

    { ngx_string("bloom_log_level"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, log_level),
      &ngx_http_bloom_log_levels },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_bloom_module_ctx = {
    ngx_http_bloom_add_variables,          /* preconfiguration */
    ngx_http_bloom_add_handlers,           /* postconfiguration */

    ngx_http_bloom_create_main_conf,       /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_bloom_create_loc_conf,        /* create location configuration */
    ngx_http_bloom_merge_loc_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_bloom_module = {
    NGX_MODULE_V1,
    &ngx_http_bloom_module_ctx,            /* module context */
    ngx_http_bloom_commands,               /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_bloom_init_module,            /* init module */
    ngx_http_bloom_init_process,           /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_bloom_add_handlers(ngx_conf_t *cf)
{
    ngx_http_handler_pt         *h;
    ngx_http_core_main_conf_t   *cmcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    if (bmcf->state_path.data == NULL) {
        ngx_str_set(&bmcf->state_path, NGX_BLOOM_STATE_PATH);

        if (ngx_conf_full_name(cf->cycle, &bmcf->state_path, 0) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ngx_http_bloom_init_zones(cf, bmcf);

    if (ngx_bloom_zones_check(cf, &bmcf->zones) != NGX_OK
        || ngx_http_bloom_check_routes(cf, bmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_bloom_rules_handler;

    return NGX_OK;
}


/* What only the whole configuration says of its zones. */
static void
ngx_http_bloom_init_zones(ngx_conf_t *cf, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        zone[i]->state_path = bmcf->state_path;

        if (zone[i]->adds && zone[i]->file.name.len != 0
            && (bmcf->state_path.len == 0 || !zone[i]->journal))
        {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "\"bloom_add\" adds nothing to bloom zone \"%V\" "
                          "of %s:%ui: a zone with \"file\" takes keys only "
                          "with a journal, and it has %s",
                          &zone[i]->name, zone[i]->conf_file,
                          zone[i]->conf_line,
                          zone[i]->journal ? "\"bloom_state_path off\""
                                           : "\"journal=off\"");
        }

        if (bmcf->writes) {
            zone[i]->adds = 1;
        }
    }
}


/* An unknown named location would be found only by the request routed to it. */
static ngx_int_t
ngx_http_bloom_check_routes(ngx_conf_t *cf, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_str_t                  *to;
    ngx_uint_t                  i, j;
    ngx_http_bloom_rule_t      *rule;
    ngx_http_bloom_routes_t    *routes;
    ngx_http_core_loc_conf_t  **location;

    routes = bmcf->routes.elts;

    for (i = 0; i < bmcf->routes.nelts; i++) {

        rule = routes[i].rules->elts;

        for (j = 0; j < routes[i].rules->nelts; j++) {

            if (!rule[j].named) {
                continue;
            }

            to = &rule[j].to.value;
            location = routes[i].server->named_locations;

            for ( /* void */ ; location != NULL && *location; location++) {
                if (to->len == (*location)->name.len
                    && ngx_strncmp(to->data, (*location)->name.data, to->len)
                       == 0)
                {
                    break;
                }
            }

            if (location == NULL || *location == NULL) {
                ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                              "unknown location \"%V\" for \"bloom_route\" "
                              "in %s:%ui: the server in %s:%ui, where the "
                              "rule applies, has no \"location %V\"",
                              to, rule[j].conf_file, rule[j].conf_line,
                              routes[i].server->file_name,
                              routes[i].server->line, to);
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_init_module(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    if (bmcf != NULL) {
        ngx_bloom_zones_commit(cycle, &bmcf->zones);
        (void) ngx_bloom_helper_init(cycle, &bmcf->zones);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_init_process(ngx_cycle_t *cycle)
{
    return ngx_bloom_helper_process(cycle);
}


static void *
ngx_http_bloom_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_main_conf_t));
    if (bmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&bmcf->zones, cf->pool, 4, sizeof(ngx_bloom_zone_t *))
        != NGX_OK
        || ngx_array_init(&bmcf->routes, cf->pool, 4,
                          sizeof(ngx_http_bloom_routes_t))
           != NGX_OK)
    {
        return NULL;
    }

    return bmcf;
}


static void *
ngx_http_bloom_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_loc_conf_t));
    if (blcf == NULL) {
        return NULL;
    }

    blcf->rules = NGX_CONF_UNSET_PTR;
    blcf->adds = NGX_CONF_UNSET_PTR;
    blcf->dry_run = NGX_CONF_UNSET;
    blcf->unavailable = NGX_CONF_UNSET_UINT;
    blcf->log_level = NGX_CONF_UNSET_UINT;

    return blcf;
}


static char *
ngx_http_bloom_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_bloom_loc_conf_t *prev = parent;
    ngx_http_bloom_loc_conf_t *conf = child;

    ngx_http_bloom_routes_t     *routes;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    ngx_conf_merge_ptr_value(conf->rules, prev->rules, NULL);
    ngx_conf_merge_ptr_value(conf->adds, prev->adds, NULL);
    ngx_conf_merge_value(conf->dry_run, prev->dry_run, 0);
    ngx_conf_merge_uint_value(conf->unavailable, prev->unavailable,
                              NGX_HTTP_BLOOM_UNAVAILABLE_PASS);
    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_INFO);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && conf->endpoint == NULL) {

        /* "if" and "limit_except" are part of their location */

        conf->endpoint = prev->endpoint;

        if (clcf->handler == NULL && conf->endpoint != NULL) {
            clcf->handler = ngx_http_bloom_api_handler;
        }
    }

    if (conf->rules == NULL) {
        return NGX_CONF_OK;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    routes = ngx_array_push(&bmcf->routes);
    if (routes == NULL) {
        return NGX_CONF_ERROR;
    }

    routes->rules = conf->rules;
    routes->server = ngx_http_conf_get_module_srv_conf(cf,
                                                       ngx_http_core_module);

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_state_path(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
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
        return ngx_http_bloom_invalid(cf, "path", &value[1],
                                      "a directory, or \"off\"");
    }

    bmcf->state_path = value[1];

    if (ngx_conf_full_name(cf->cycle, &bmcf->state_path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_main_conf_t *bmcf = conf;

    char                     *rc;
    uint64_t                  size;
    ngx_bloom_zone_t         *zone;
    ngx_http_bloom_params_t   params;

    rc = ngx_http_bloom_params(cf, 1, NGX_HTTP_BLOOM_OF_ZONE, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    size = 0;

    if (params.size.data != NULL
        && (bloom_parse_bytes((char *) params.size.data, params.size.len,
                              &size)
            != 0
            || size == 0 || size > NGX_MAX_SIZE_T_VALUE))
    {
        return ngx_http_bloom_invalid(cf, "zone size", &params.size,
                                      "a number with k, m or g");
    }

    zone = ngx_bloom_zone_get(cf, &bmcf->zones, &params.zone);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (zone->shm_zone == NULL) {

        zone->journal = 1;

        if (params.journal.data != NULL) {
            zone->journal = (ngx_strcmp(params.journal.data, "on") == 0);

            if (!zone->journal && ngx_strcmp(params.journal.data, "off") != 0)
            {
                return ngx_http_bloom_invalid(cf, "journal", &params.journal,
                                              "\"on\" or \"off\"");
            }
        }

        if ((params.file.len != 0) == (params.capacity.len != 0)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "bloom zone \"%V\" must have either \"file\" "
                               "or \"capacity\" and \"fpr\"", &params.zone);
            return NGX_CONF_ERROR;
        }

        if (params.file.len != 0) {
            rc = ngx_http_bloom_file_zone(cf, &params, zone);

        } else {
            rc = ngx_http_bloom_empty_zone(cf, &params, &zone->image);
        }

        if (rc != NGX_CONF_OK) {
            return rc;
        }
    }

    if (ngx_bloom_zone_declare(cf, zone, (size_t) size,
                               &ngx_http_bloom_module)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* What a zone with an image's file is to be. */
static char *
ngx_http_bloom_file_zone(ngx_conf_t *cf, ngx_http_bloom_params_t *params,
    ngx_bloom_zone_t *zone)
{
    ngx_int_t  watch;

    if (params->capacity.data || params->fpr.data || params->layout.data
        || params->hash.data || params->key.data)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has \"file\": its image says "
                           "\"capacity\", \"fpr\", \"layout\", \"hash\" and "
                           "\"key\"; leave them out", &params->zone);
        return NGX_CONF_ERROR;
    }

    if (params->watch.data != NULL) {
        watch = ngx_parse_time(&params->watch, 0);

        if (watch == NGX_ERROR || watch == 0) {
            return ngx_http_bloom_invalid(cf, "watch", &params->watch,
                                          "a time over 0, as 10s");
        }

        zone->watch = (ngx_msec_t) watch;
    }

    if (params->max_age.data != NULL) {
        zone->max_age = ngx_parse_time(&params->max_age, 1);

        if (zone->max_age == (time_t) NGX_ERROR || zone->max_age == 0) {
            return ngx_http_bloom_invalid(cf, "max_age", &params->max_age,
                                          "a time over 0, as 2d");
        }
    }

    zone->file.name = params->file;

    if (ngx_conf_full_name(cf->cycle, &zone->file.name, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* What a zone that starts empty is to be, as an image without keys. */
static char *
ngx_http_bloom_empty_zone(ngx_conf_t *cf, ngx_http_bloom_params_t *params,
    bloom_image_t *image)
{
    int       form;
    uint32_t  layout;

    layout = BLOOM_LAYOUT_BLOCKED;
    image->hasher.kind = BLOOM_HASH_MURMUR3;

    if (params->watch.data != NULL || params->max_age.data != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" has no \"file\" that \"watch\" "
                           "or \"max_age\" could be about; leave them out",
                           &params->zone);
        return NGX_CONF_ERROR;
    }

    if (bloom_parse_count((char *) params->capacity.data, params->capacity.len,
                          &image->capacity)
        != 0
        || image->capacity == 0 || image->capacity > BLOOM_CAPACITY_MAX)
    {
        return ngx_http_bloom_invalid(cf, "capacity", &params->capacity,
                                      "a count with k, m or g, up to 4398g");
    }

    if (params->fpr.data == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" must have \"fpr\" beside "
                           "\"capacity\"", &params->zone);
        return NGX_CONF_ERROR;
    }

    if (bloom_parse_rate((char *) params->fpr.data, params->fpr.len,
                         &image->fpr)
        != 0
        || image->fpr < BLOOM_FPR_MIN || image->fpr > BLOOM_FPR_MAX)
    {
        return ngx_http_bloom_invalid(cf, "fpr", &params->fpr,
                                      "a rate from 1e-9 to 0.5");
    }

    if (params->layout.data != NULL) {
        layout = bloom_layout_parse((char *) params->layout.data,
                                    params->layout.len);
        if (layout == 0) {
            return ngx_http_bloom_invalid(cf, "layout", &params->layout,
                                          "\"blocked\" or \"classic\"");
        }
    }

    if (params->hash.data != NULL) {
        image->hasher.kind = bloom_hash_parse((char *) params->hash.data,
                                              params->hash.len);
        if (image->hasher.kind == 0) {
            return ngx_http_bloom_invalid(cf, "hash", &params->hash,
                                          "\"murmur3\" or \"siphash\"");
        }
    }

    if (params->key.data != NULL) {
        form = bloom_key_form_parse((char *) params->key.data,
                                    params->key.len);
        if (form == -1) {
            return ngx_http_bloom_invalid(cf, "key", &params->key,
                                          "\"raw\", \"lower\", \"host\" or "
                                          "\"url\"");
        }

        image->key_form = (uint32_t) form;
    }

    if (bloom_size(&image->geometry, layout, image->capacity, image->fpr)
        != 0)
    {
        return ngx_http_bloom_invalid(cf, "capacity", &params->capacity,
                                      "less: the filter would be over 1 TiB");
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_lookup(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                     *rc;
    ngx_str_t                *value, name;
    ngx_http_bloom_key_t     *key;
    ngx_http_bloom_params_t   params;

    value = cf->args->elts;

    name = value[2];

    if (name.len < 2 || name.data[0] != '$') {
        return ngx_http_bloom_invalid(cf, "variable name", &name,
                                      "a name with \"$\" before it");
    }

    name.data++;
    name.len--;

    rc = ngx_http_bloom_params(cf, 3, NGX_HTTP_BLOOM_OF_KEY, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    key = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_key_t));
    if (key == NULL) {
        return NGX_CONF_ERROR;
    }

    rc = ngx_http_bloom_key(cf, &value[1], &params, key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    if (ngx_http_bloom_add_lookup(cf, &name, key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    char                     *rc;
    ngx_int_t                 status;
    ngx_str_t                *value;
    ngx_uint_t                where;
    ngx_http_bloom_rule_t    *rule;
    ngx_http_bloom_params_t   params;

    if (blcf->rules == NULL) {
        return "is in one level with \"bloom_rules off\"";
    }

    if (blcf->rules == NGX_CONF_UNSET_PTR) {
        blcf->rules = ngx_array_create(cf->pool, 2,
                                       sizeof(ngx_http_bloom_rule_t));
        if (blcf->rules == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    rule = ngx_array_push(blcf->rules);
    if (rule == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(rule, sizeof(ngx_http_bloom_rule_t));

    rule->action = cmd->offset;
    rule->conf_file = cf->conf_file->file.name.data;
    rule->conf_line = cf->conf_file->line;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "absent") == 0) {
        rule->fires = NGX_BLOOM_ABSENT;
        rule->status = NGX_HTTP_NOT_FOUND;

    } else if (ngx_strcmp(value[1].data, "present") == 0) {
        rule->fires = NGX_BLOOM_PRESENT;
        rule->status = NGX_HTTP_FORBIDDEN;

    } else {
        return ngx_http_bloom_invalid(cf, "condition", &value[1],
                                      "\"absent\" or \"present\"");
    }

    where = NGX_HTTP_BLOOM_OF_KEY|NGX_HTTP_BLOOM_OF_RULE;

    if (rule->action == NGX_HTTP_BLOOM_REJECT) {
        where |= NGX_HTTP_BLOOM_OF_REJECT;

    } else if (rule->action == NGX_HTTP_BLOOM_ROUTE) {
        where |= NGX_HTTP_BLOOM_OF_ROUTE;
    }

    rc = ngx_http_bloom_params(cf, 3, where, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_key(cf, &value[2], &params, &rule->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_rule_split(cf, &params, rule);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    if (params.status.data != NULL) {
        status = ngx_atoi(params.status.data, params.status.len);

        if (status < 400 || status > 599) {
            return ngx_http_bloom_invalid(cf, "status", &params.status,
                                          "a code from 400 to 599");
        }

        rule->status = (ngx_uint_t) status;
    }

    if (rule->action == NGX_HTTP_BLOOM_ROUTE) {
        return ngx_http_bloom_rule_to(cf, &params.to, rule);
    }

    return NGX_CONF_OK;
}


/*
 * A list of keys.  Where one part is enough to reject a request, all parts are
 * needed to let it pass.
 */
static char *
ngx_http_bloom_rule_split(ngx_conf_t *cf, ngx_http_bloom_params_t *params,
    ngx_http_bloom_rule_t *rule)
{
    rule->all = (rule->action == NGX_HTTP_BLOOM_PASS);

    if (params->split.data == NULL) {
        return params->match.data ? "has \"match\" without \"split\""
                                  : NGX_CONF_OK;
    }

    if (params->split.len != 1) {
        return ngx_http_bloom_invalid(cf, "split", &params->split,
                                      "one byte, as split=,");
    }

    rule->split = params->split.data[0];

    if (params->match.data == NULL) {
        return NGX_CONF_OK;
    }

    rule->all = (ngx_strcmp(params->match.data, "all") == 0);

    if (!rule->all && ngx_strcmp(params->match.data, "any") != 0) {
        return ngx_http_bloom_invalid(cf, "match", &params->match,
                                      "\"any\" or \"all\"");
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_rule_to(ngx_conf_t *cf, ngx_str_t *to,
    ngx_http_bloom_rule_t *rule)
{
    ngx_http_compile_complex_value_t  ccv;

    if (to->data == NULL) {
        return "must have the \"to\" parameter";
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = to;
    ccv.complex_value = &rule->to;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (to->len > 1 && to->data[0] == '@' && rule->to.lengths == NULL) {
        rule->named = 1;
        return NGX_CONF_OK;
    }

    if (to->len == 0 || to->data[0] != '/') {
        return ngx_http_bloom_invalid(cf, "to", to,
                                      "\"@name\" without variables, or a URI "
                                      "that begins with \"/\"");
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_rules(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") != 0) {
        return ngx_http_bloom_invalid(cf, "value", &value[1], "\"off\"");
    }

    if (blcf->rules == NULL) {
        return "is duplicate";
    }

    if (blcf->rules != NGX_CONF_UNSET_PTR) {
        return "is in one level with rules: leave it out, since a level that "
               "has rules inherits none";
    }

    blcf->rules = NULL;

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_add(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    char                              *rc;
    ngx_str_t                         *value;
    ngx_http_bloom_params_t            params;
    ngx_http_bloom_addition_t         *addition;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {

        if (blcf->adds == NULL) {
            return "is duplicate";
        }

        if (blcf->adds != NGX_CONF_UNSET_PTR) {
            return "is in one level with keys to add: leave it out, since a "
                   "level that has keys inherits none";
        }

        blcf->adds = NULL;

        return NGX_CONF_OK;
    }

    if (blcf->adds == NULL) {
        return "is in one level with \"bloom_add off\"";
    }

    rc = ngx_http_bloom_params(cf, 2,
                               NGX_HTTP_BLOOM_OF_KEY|NGX_HTTP_BLOOM_OF_ADD,
                               &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    if (blcf->adds == NGX_CONF_UNSET_PTR) {
        blcf->adds = ngx_array_create(cf->pool, 2,
                                      sizeof(ngx_http_bloom_addition_t));
        if (blcf->adds == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    addition = ngx_array_push(blcf->adds);
    if (addition == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(addition, sizeof(ngx_http_bloom_addition_t));

    rc = ngx_http_bloom_key(cf, &value[1], &params, &addition->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    addition->key.zone->adds = 1;

    if (params.condition.data == NULL) {
        return NGX_CONF_OK;
    }

    if (params.condition.len == 0) {
        return ngx_http_bloom_invalid(cf, "if", &params.condition,
                                      "a condition, as if=$variable");
    }

    addition->filter = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (addition->filter == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &params.condition;
    ccv.complex_value = addition->filter;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t                   *value, name;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_bloom_endpoint_t   *endpoint;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (blcf->endpoint != NULL) {
        return "is duplicate";
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->named
#if (NGX_PCRE)
        || clcf->regex != NULL
#endif
       )
    {
        return "must be in a location that is a prefix, as "
               "\"location /bloom/ { ... }\"";
    }

    endpoint = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_endpoint_t));
    if (endpoint == NULL) {
        return NGX_CONF_ERROR;
    }

    name = clcf->name;

    if (name.len != 0 && name.data[name.len - 1] == '/') {
        name.len--;
    }

    endpoint->prefix = name;

    value = cf->args->elts;

    if (cf->args->nelts == 2) {

        if (ngx_strcmp(value[1].data, "write=on") == 0) {
            endpoint->write = 1;

        } else if (ngx_strcmp(value[1].data, "write=off") != 0) {
            return ngx_http_bloom_invalid(cf, "parameter", &value[1],
                                          "\"write=on\" or \"write=off\"");
        }
    }

    if (endpoint->write) {
        bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
        bmcf->writes = 1;
    }

    blcf->endpoint = endpoint;
    clcf->handler = ngx_http_bloom_api_handler;

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_key(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_bloom_params_t *params, ngx_http_bloom_key_t *key)
{
    ngx_conf_enum_t                   *decode;
    ngx_http_bloom_main_conf_t        *bmcf;
    ngx_http_compile_complex_value_t   ccv;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = text;
    ccv.complex_value = &key->value;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    key->index = ngx_http_bloom_variable(cf, text);

    if (key->value.lengths == NULL) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "the key \"%V\" has no variable: every request "
                           "has the same key", text);
    }

    if (params->size.data != NULL) {
        return ngx_http_bloom_invalid(cf, "zone", &params->zone,
                                      "a name without a size: that belongs to "
                                      "\"bloom_zone\"");
    }

    key->decode = BLOOM_DECODE_OFF;

    if (params->decode.data != NULL) {

        for (decode = ngx_http_bloom_decodes; decode->name.len; decode++) {
            if (ngx_strcmp(decode->name.data, params->decode.data) == 0) {
                break;
            }
        }

        if (decode->name.len == 0) {
            return ngx_http_bloom_invalid(cf, "decode", &params->decode,
                                          "\"uri\", \"form\" or \"off\"");
        }

        key->decode = decode->value;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    key->zone = ngx_bloom_zone_get(cf, &bmcf->zones, &params->zone);

    return key->zone ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* The index of a variable where a text is that variable alone: "$name". */
static ngx_int_t
ngx_http_bloom_variable(ngx_conf_t *cf, ngx_str_t *text)
{
    u_char      c;
    size_t      i;
    ngx_str_t   name;

    if (text->len < 2 || text->data[0] != '$') {
        return NGX_ERROR;
    }

    name.data = text->data + 1;
    name.len = text->len - 1;

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '_'
            && (i == 0 || c < '0' || c > '9'))
        {
            return NGX_ERROR;
        }
    }

    return ngx_http_get_variable_index(cf, &name);
}


/* Takes the parameters from argument `first` on; "zone" is always needed. */
static char *
ngx_http_bloom_params(ngx_conf_t *cf, ngx_uint_t first, ngx_uint_t where,
    ngx_http_bloom_params_t *params)
{
    u_char                  *colon;
    ngx_str_t               *value, *field;
    ngx_uint_t               i;
    ngx_http_bloom_param_t  *param;

    ngx_memzero(params, sizeof(ngx_http_bloom_params_t));

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {

        for (param = ngx_http_bloom_param; param->name.len; param++) {
            if ((param->where & where)
                && ngx_strncmp(value[i].data, param->name.data,
                               param->name.len)
                   == 0)
            {
                break;
            }
        }

        if (param->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        field = (ngx_str_t *) ((u_char *) params + param->offset);

        if (field->data != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        field->data = value[i].data + param->name.len;
        field->len = value[i].len - param->name.len;
    }

    if (params->zone.data == NULL) {
        return "must have the \"zone\" parameter";
    }

    colon = (u_char *) ngx_strchr(params->zone.data, ':');

    if (colon != NULL) {
        params->size.data = colon + 1;
        params->size.len = params->zone.data + params->zone.len - colon - 1;
        params->zone.len = colon - params->zone.data;
    }

    if (params->zone.len == 0) {
        return ngx_http_bloom_invalid(cf, "zone", &params->zone, "a name");
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_invalid(ngx_conf_t *cf, char *name, ngx_str_t *value,
    char *want)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid %s \"%V\": it must be %s",
                       name, value, want);

    return NGX_CONF_ERROR;
}
