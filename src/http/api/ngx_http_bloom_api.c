
/*
 * The endpoint: which request is it, and may it be made.
 */

#include "ngx_http_bloom_api.h"


/* "GENERATION-BUILD" with its quotes: 20 digits, 16 of 32 hexadecimal ones. */
#define NGX_HTTP_BLOOM_ETAG_LEN  (NGX_INT64_LEN + 20)


/*
 * A request: its path is "", "zones", or, where it is about a zone,
 * "zones/NAME" and `path`.
 */
typedef struct {
    ngx_uint_t                  method;
    ngx_str_t                   name;    /* of the method */
    ngx_uint_t                  zone;    /* it is about one */
    ngx_str_t                   path;
    ngx_uint_t                  write;   /* it needs write=on */
    ngx_int_t                 (*handler)(ngx_http_request_t *r,
                                         ngx_bloom_zone_t *zone);
    char                       *does;
} ngx_http_bloom_route_t;


static ngx_int_t ngx_http_bloom_find(ngx_http_request_t *r, ngx_str_t *path);
static ngx_uint_t ngx_http_bloom_on_path(ngx_http_request_t *r,
    ngx_http_bloom_route_t *route, ngx_str_t *path, ngx_bloom_zone_t **zone);
static ngx_bloom_zone_t *ngx_http_bloom_named(ngx_http_request_t *r,
    ngx_str_t *name);
static ngx_int_t ngx_http_bloom_no_route(ngx_http_request_t *r,
    ngx_str_t *path);
static ngx_int_t ngx_http_bloom_call(ngx_http_request_t *r,
    ngx_http_bloom_route_t *route, ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_http_bloom_is_cross_site(ngx_http_request_t *r);
static u_char *ngx_http_bloom_etag_text(u_char *p, ngx_bloom_info_t *info);
static ngx_int_t ngx_http_bloom_get_index(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_get_zones(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_get_zone(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#define NGX_HTTP_BLOOM_GET   NGX_HTTP_GET|NGX_HTTP_HEAD, ngx_string("GET, HEAD")
#define NGX_HTTP_BLOOM_POST  NGX_HTTP_POST, ngx_string("POST")
#define NGX_HTTP_BLOOM_PUT   NGX_HTTP_PUT, ngx_string("PUT")

static ngx_http_bloom_route_t  ngx_http_bloom_route_table[] = {

    { NGX_HTTP_BLOOM_GET, 0, ngx_string(""), 0,
      ngx_http_bloom_get_index, "this index" },

    { NGX_HTTP_BLOOM_GET, 0, ngx_string("zones"), 0,
      ngx_http_bloom_get_zones, "the state of all zones" },

    { NGX_HTTP_BLOOM_GET, 0, ngx_string("metrics"), 0,
      ngx_http_bloom_get_metrics, "metrics for Prometheus" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string(""), 0,
      ngx_http_bloom_get_zone, "the state of a zone" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/keys"), 0,
      ngx_http_bloom_get_key, "?key=K: tests a key" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/keys"), 1,
      ngx_http_bloom_post_keys, "adds the body's keys; ?durable=true waits "
                                "for the disk" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/test"), 0,
      ngx_http_bloom_post_test, "tests the body's keys" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/rates"), 0,
      ngx_http_bloom_get_rates, "the expected false-positive rate by keys" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/reload"), 1,
      ngx_http_bloom_post_reload, "loads the zone's file again" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/checkpoint"), 1,
      ngx_http_bloom_post_checkpoint, "folds the journal into a checkpoint" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/image"), 0,
      ngx_http_bloom_get_image, "the zone as an image file" },

    { NGX_HTTP_BLOOM_PUT, 1, ngx_string("/image"), 1,
      ngx_http_bloom_put_image, "replaces the zone's image by the body" },
};

#define NGX_HTTP_BLOOM_ROUTES                                                 \
    (sizeof(ngx_http_bloom_route_table) / sizeof(ngx_http_bloom_route_t))


ngx_int_t
ngx_http_bloom_api_handler(ngx_http_request_t *r)
{
    ngx_str_t                   path;
    ngx_http_bloom_loc_conf_t  *blcf;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"bloom_api\" answers no subrequests");
        return NGX_HTTP_NOT_FOUND;
    }

    /* the core would evaluate If-Match on the answer, when all is done */

    r->disable_not_modified = 1;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    path = r->uri;

    if (path.len < blcf->endpoint->prefix.len) {
        return NGX_HTTP_NOT_FOUND;
    }

    path.data += blcf->endpoint->prefix.len;
    path.len -= blcf->endpoint->prefix.len;

    if (path.len != 0) {

        if (path.data[0] != '/') {
            return ngx_http_bloom_no_route(r, &path);
        }

        path.data++;
        path.len--;
    }

    if (path.len != 0 && path.data[path.len - 1] == '/') {
        path.len--;
    }

    return ngx_http_bloom_find(r, &path);
}


static ngx_int_t
ngx_http_bloom_find(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_str_t                allow;
    ngx_uint_t               i;
    ngx_bloom_zone_t        *zone;
    ngx_http_bloom_text_t    text;
    ngx_http_bloom_route_t  *route;

    ngx_http_bloom_text_init(&text, r->pool);

    for (i = 0; i < NGX_HTTP_BLOOM_ROUTES; i++) {

        route = &ngx_http_bloom_route_table[i];

        if (!ngx_http_bloom_on_path(r, route, path, &zone)) {
            continue;
        }

        if (r->method & route->method) {
            return ngx_http_bloom_call(r, route, zone);
        }

        ngx_http_bloom_printf(&text, "%s%V",
                              text.pos == text.start ? "" : ", ",
                              &route->name);
    }

    if (text.pos == text.start) {
        return ngx_http_bloom_no_route(r, path);
    }

    allow.data = text.start;
    allow.len = text.pos - text.start;

    if (text.failed || ngx_http_bloom_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_METHOD,
                                 "\"%V\" takes no %V request, but %V", &r->uri,
                                 &r->method_name, &allow);
}


/* The names of zones are decoded already, and may have slashes of their own. */
static ngx_uint_t
ngx_http_bloom_on_path(ngx_http_request_t *r, ngx_http_bloom_route_t *route,
    ngx_str_t *path, ngx_bloom_zone_t **zone)
{
    ngx_str_t  name;

    *zone = NULL;

    if (!route->zone) {
        return path->len == route->path.len
               && ngx_strncmp(path->data, route->path.data, path->len) == 0;
    }

    if (path->len <= sizeof("zones/") - 1 + route->path.len
        || ngx_strncmp(path->data, "zones/", sizeof("zones/") - 1) != 0
        || ngx_strncmp(path->data + path->len - route->path.len,
                       route->path.data, route->path.len)
           != 0)
    {
        return 0;
    }

    name.data = path->data + sizeof("zones/") - 1;
    name.len = path->len - (sizeof("zones/") - 1) - route->path.len;

    *zone = ngx_http_bloom_named(r, &name);

    return *zone != NULL;
}


static ngx_bloom_zone_t *
ngx_http_bloom_named(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t                   i;
    ngx_bloom_zone_t           **zone;
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    zone = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        if (zone[i]->name.len == name->len
            && ngx_strncmp(zone[i]->name.data, name->data, name->len) == 0)
        {
            return zone[i];
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_bloom_no_route(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char                     *slash;
    ngx_str_t                   name;
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (path->len > sizeof("zones/") - 1
        && ngx_strncmp(path->data, "zones/", sizeof("zones/") - 1) == 0)
    {
        name.data = path->data + sizeof("zones/") - 1;
        name.len = path->len - (sizeof("zones/") - 1);

        slash = ngx_strlchr(name.data, name.data + name.len, '/');

        if (slash != NULL) {
            name.len = slash - name.data;
        }

        if (ngx_http_bloom_named(r, &name) == NULL) {
            return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_UNKNOWN_ZONE,
                                         "no zone is named \"%V\"; "
                                         "GET %V/zones lists those there are",
                                         &name, &blcf->endpoint->prefix);
        }
    }

    return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_NOT_FOUND,
                                 "there is nothing at \"%V\"; GET %V/ lists "
                                 "the requests", &r->uri,
                                 &blcf->endpoint->prefix);
}


static ngx_int_t
ngx_http_bloom_call(ngx_http_request_t *r, ngx_http_bloom_route_t *route,
    ngx_bloom_zone_t *zone)
{
    ngx_http_bloom_fault_t      fault;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_bloom_loc_conf_t  *blcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (route->write && !blcf->endpoint->write) {
        return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_READ_ONLY,
                                     "this endpoint takes no changes; "
                                     "\"bloom_api write=on\" in location "
                                     "\"%V\" allows them", &clcf->name);
    }

    if (route->write && ngx_http_bloom_is_cross_site(r)) {
        return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_CROSS_SITE,
                                     "a page of another site may not make "
                                     "changes; see the request's "
                                     "\"Sec-Fetch-Site\" and \"Origin\"");
    }

    if (zone != NULL && ngx_http_bloom_match(r, zone, &fault) != NGX_OK) {
        return ngx_http_bloom_refuse_fault(r, &fault);
    }

    return route->handler(r, zone);
}


/* Browsers tell where a request comes from; other clients are left alone. */
static ngx_uint_t
ngx_http_bloom_is_cross_site(ngx_http_request_t *r)
{
    u_char     *p;
    ngx_str_t  *site, *origin, *host;

    site = ngx_http_bloom_request_header(r, "sec-fetch-site");

    if (site != NULL) {
        return !(site->len == 11
                 && ngx_strncasecmp(site->data, (u_char *) "same-origin", 11)
                    == 0)
               && !(site->len == 4
                    && ngx_strncasecmp(site->data, (u_char *) "none", 4) == 0);
    }

    origin = ngx_http_bloom_request_header(r, "origin");

    if (origin == NULL) {
        return 0;
    }

    if (r->headers_in.host == NULL) {
        return 1;
    }

    host = &r->headers_in.host->value;

    p = ngx_strlcasestrn(origin->data, origin->data + origin->len,
                         (u_char *) "://", sizeof("://") - 2);
    if (p == NULL) {
        return 1;
    }

    p += sizeof("://") - 1;

    return (size_t) (origin->data + origin->len - p) != host->len
           || ngx_strncasecmp(p, host->data, host->len) != 0;
}


ngx_str_t *
ngx_http_bloom_request_header(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    len = ngx_strlen(name);
    part = &r->headers_in.headers.part;

    for ( /* void */ ; part != NULL; part = part->next) {

        header = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (header[i].key.len == len
                && ngx_strncmp(header[i].lowcase_key, name, len) == 0)
            {
                return &header[i].value;
            }
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_bloom_match(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_http_bloom_fault_t *fault)
{
    u_char            *p, *end, *last;
    size_t             len;
    u_char             etag[NGX_HTTP_BLOOM_ETAG_LEN];
    ngx_table_elt_t   *h;
    ngx_bloom_info_t   info;

    h = r->headers_in.if_match;

    if (h == NULL) {
        return NGX_OK;
    }

    ngx_bloom_info_get(zone, &info);

    if (info.generation == 0) {
        ngx_http_bloom_fault(fault, NGX_HTTP_BLOOM_E_GENERATION,
                             "zone \"%V\" has no generation that serves, so "
                             "\"If-Match\" names none; nothing was changed",
                             &zone->name);
        return NGX_DECLINED;
    }

    len = ngx_http_bloom_etag_text(etag, &info) - etag;

    while (h != NULL) {

        p = h->value.data;
        end = p + h->value.len;

        while (p < end) {

            while (p < end && (*p == ' ' || *p == '\t' || *p == ',')) {
                p++;
            }

            for (last = p; last < end && *last != ','; last++) { /* void */ }

            while (last > p && (last[-1] == ' ' || last[-1] == '\t')) {
                last--;
            }

            if ((last - p == 1 && *p == '*')
                || ((size_t) (last - p) == len
                    && ngx_strncmp(p, etag, len) == 0))
            {
                return NGX_OK;
            }

            p = last;

            while (p < end && *p != ',') {
                p++;
            }
        }

#if (nginx_version >= 1023000)
        h = h->next;
#else
        h = NULL;
#endif
    }

    ngx_http_bloom_fault(fault, NGX_HTTP_BLOOM_E_GENERATION,
                         "zone \"%V\" serves generation %*s, which "
                         "\"If-Match\" does not name; nothing was changed: "
                         "look at the zone's state and ask again",
                         &zone->name, len, etag);

    return NGX_DECLINED;
}


/*
 * The generation, and whose: a zone in other memory, after a restart, counts
 * its generations anew.
 */
static u_char *
ngx_http_bloom_etag_text(u_char *p, ngx_bloom_info_t *info)
{
    return ngx_sprintf(p, "\"%uL-%016xL\"", info->generation,
                       info->instance);
}


/*
 * The core does not come to know of it: where it compresses an answer, it would
 * weaken the tag, and If-Match needs a strong one.
 */
ngx_int_t
ngx_http_bloom_etag(ngx_http_request_t *r, ngx_bloom_info_t *info)
{
    ngx_str_t  value;

    if (info->generation == 0) {
        return NGX_OK;
    }

    value.data = ngx_pnalloc(r->pool, NGX_HTTP_BLOOM_ETAG_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_http_bloom_etag_text(value.data, info) - value.data;

    return ngx_http_bloom_header(r, "ETag", &value);
}


static ngx_int_t
ngx_http_bloom_get_index(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                    rc;
    ngx_str_t                    vary;
    ngx_uint_t                   i;
    ngx_bloom_zone_t           **zones;
    ngx_http_bloom_text_t        text;
    ngx_http_bloom_route_t      *route;
    ngx_http_bloom_loc_conf_t   *blcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (ngx_http_bloom_wants_page(r)) {
        return ngx_http_bloom_page(r);
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_str_set(&vary, "Accept");

    if (ngx_http_bloom_header(r, "Vary", &vary) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_printf(&text, "{\"zones\":[");

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    zones = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        ngx_http_bloom_printf(&text, i == 0 ? "" : ",");
        ngx_http_bloom_quote(&text, zones[i]->name.data, zones[i]->name.len);
    }

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    ngx_http_bloom_printf(&text, "],\"write\":%s,\"requests\":[",
                          blcf->endpoint->write ? "true" : "false");

    for (i = 0; i < NGX_HTTP_BLOOM_ROUTES; i++) {
        route = &ngx_http_bloom_route_table[i];

        ngx_http_bloom_printf(&text, "%s{\"request\":\"%V %s%V\","
                              "\"write\":%s,\"does\":\"%s\"}",
                              i == 0 ? "" : ",", &route->name,
                              route->zone ? "/zones/NAME" : "/", &route->path,
                              route->write ? "true" : "false", route->does);
    }

    ngx_http_bloom_printf(&text, "]}");

    return ngx_http_bloom_answer(r, NGX_HTTP_OK, &text);
}


static ngx_int_t
ngx_http_bloom_get_zones(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_bloom_info_t             info;
    ngx_bloom_zone_t           **zones;
    ngx_http_bloom_text_t        text;
    ngx_http_bloom_main_conf_t  *bmcf;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_printf(&text, "{\"zones\":[");

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    zones = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        ngx_bloom_info_get(zones[i], &info);

        ngx_http_bloom_printf(&text, i == 0 ? "" : ",");
        ngx_http_bloom_render_zone(&text, zones[i], &info);
    }

    ngx_http_bloom_printf(&text, "]}");

    return ngx_http_bloom_answer(r, NGX_HTTP_OK, &text);
}


static ngx_int_t
ngx_http_bloom_get_zone(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t              rc;
    ngx_bloom_info_t       info;
    ngx_http_bloom_text_t  text;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_info_get(zone, &info);

    if (ngx_http_bloom_etag(r, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&text, r->pool);
    ngx_http_bloom_render_zone(&text, zone, &info);

    return ngx_http_bloom_answer(r, NGX_HTTP_OK, &text);
}
