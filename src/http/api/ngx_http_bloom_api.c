/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file routes requests to the endpoint: it finds the function that answers
 * a request and checks whether the request is allowed.
 */

#include "ngx_http_bloom_api.h"
#include "ngx_http_bloom.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_explain.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_metrics.h"
#include "ngx_http_bloom_operation.h"
#include "ngx_http_bloom_page.h"
#include "ngx_http_bloom_rates.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_token.h"
#include "ngx_http_bloom_turns.h"
#include "bloom_version.h"


/* What a request needs to be allowed. */
typedef enum {
    NGX_HTTP_BLOOM_READ = 0,             /* nothing */
    NGX_HTTP_BLOOM_IMAGE,                /* image=on */
    NGX_HTTP_BLOOM_WRITE                 /* write=on */
} ngx_http_bloom_api_need_e;

/* A kind of request to the endpoint. */
typedef struct {
    ngx_uint_t                  method;
    ngx_str_t                   name;    /* of the method */
    ngx_uint_t                  zone;    /* the path begins "zones/NAME" */
    ngx_str_t                   path;    /* the rest of it */
    ngx_http_bloom_api_need_e   needs;

    /* one of them answers the request */

    const ngx_http_bloom_kind_t  *kind;
    ngx_int_t                 (*handler)(ngx_http_request_t *r,
                                         ngx_bloom_zone_t *zone);

    char                       *does;    /* for the index */
} ngx_http_bloom_api_route_t;


static ngx_int_t ngx_http_bloom_api_find(ngx_http_request_t *r,
    ngx_str_t *path);
static ngx_uint_t ngx_http_bloom_api_on_path(ngx_http_request_t *r,
    ngx_http_bloom_api_route_t *route, ngx_str_t *path,
    ngx_bloom_zone_t **zone);
static ngx_bloom_zone_t *ngx_http_bloom_api_zone_named(ngx_http_request_t *r,
    ngx_str_t *name);
static ngx_int_t ngx_http_bloom_api_no_route(ngx_http_request_t *r,
    ngx_str_t *path);
static const char *ngx_http_bloom_api_hint(ngx_http_request_t *r,
    ngx_str_t *path);
static ngx_uint_t ngx_http_bloom_api_is_of_keys(ngx_str_t *path);
static ngx_int_t ngx_http_bloom_api_call(ngx_http_request_t *r,
    ngx_http_bloom_api_route_t *route, ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_http_bloom_api_is_cross_site(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_api_index(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_api_zones(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_api_zones_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_api_zones_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_api_zone(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#define NGX_HTTP_BLOOM_GET                                                    \
    NGX_HTTP_GET|NGX_HTTP_HEAD, ngx_string("GET, HEAD")
#define NGX_HTTP_BLOOM_POST    NGX_HTTP_POST, ngx_string("POST")
#define NGX_HTTP_BLOOM_PUT     NGX_HTTP_PUT, ngx_string("PUT")
#define NGX_HTTP_BLOOM_DELETE  NGX_HTTP_DELETE, ngx_string("DELETE")

static ngx_http_bloom_api_route_t  ngx_http_bloom_api_routes[] = {

    { NGX_HTTP_BLOOM_GET, 0, ngx_string(""), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_api_index,
      "returns this index" },

    { NGX_HTTP_BLOOM_GET, 0, ngx_string("zones"), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_api_zones,
      "returns the state of all zones" },

    { NGX_HTTP_BLOOM_GET, 0, ngx_string("keys"), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_explain_get,
      "looks up the key K of ?key=K in all zones and says what the rules do "
      "about it" },

    { NGX_HTTP_BLOOM_GET, 0, ngx_string("metrics"), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_metrics_get,
      "returns metrics for Prometheus" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string(""), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_api_zone,
      "returns the state of a zone" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/keys"), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_lookup_get,
      "looks up the key K of ?key=K and explains the answer" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/keys"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_keys, NULL,
      "adds the keys in the body; ?durable=true waits until they are on disk" },

    { NGX_HTTP_BLOOM_DELETE, 1, ngx_string("/keys"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_delete_keys, NULL,
      "removes the key K of ?key=K" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/remove"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_remove, NULL,
      "removes the keys in the body; ?durable=true waits until the removal is "
      "on disk" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/removed"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_get_removed, NULL,
      "lists the removed keys; ?kind=excepted lists the excepted keys" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/changes"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_changes, NULL,
      "adds and removes the keys in the body, +KEY and -KEY, which the source "
      "of the zone has changed between ?after= and position=" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/gap"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_gap, NULL,
      "moves the zone to ?position= of its source, although changes before it "
      "are missing" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/test"), NGX_HTTP_BLOOM_READ,
      &ngx_http_bloom_post_test, NULL,
      "looks up the keys in the body" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/rates"), NGX_HTTP_BLOOM_READ,
      NULL, ngx_http_bloom_rates_get,
      "returns the estimated false-positive rate by number of keys" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/reload"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_reload, NULL,
      "loads the image in file= again; ?force=true ignores max_loss and "
      "max_growth" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/checkpoint"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_checkpoint, NULL,
      "saves the filter, so that the next start has less to replay" },

    { NGX_HTTP_BLOOM_POST, 1, ngx_string("/clear"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_post_clear, NULL,
      "drops added keys, removed keys and uploads; ?only=removed restores the "
      "removed keys, and ?only=excepted forgets the excepted keys" },

    { NGX_HTTP_BLOOM_GET, 1, ngx_string("/image"), NGX_HTTP_BLOOM_IMAGE,
      &ngx_http_bloom_get_image, NULL,
      "returns the zone as an image file; needs image=on" },

    { NGX_HTTP_BLOOM_PUT, 1, ngx_string("/image"), NGX_HTTP_BLOOM_WRITE,
      &ngx_http_bloom_put_image, NULL,
      "replaces the zone's image with the image file in the body; ?force=true "
      "ignores max_loss and max_growth" },
};

#define NGX_HTTP_BLOOM_API_ROUTES                                             \
    (sizeof(ngx_http_bloom_api_routes) / sizeof(ngx_http_bloom_api_route_t))


ngx_int_t
ngx_http_bloom_api_handler(ngx_http_request_t *r)
{
    ngx_str_t                   path;
    ngx_http_bloom_loc_conf_t  *blcf;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"bloom_api\" does not answer subrequests");
        return NGX_HTTP_NOT_FOUND;
    }

    /* nginx would check conditions against the response, after the change */

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
            return ngx_http_bloom_api_no_route(r, &path);
        }

        path.data++;
        path.len--;
    }

    if (path.len != 0 && path.data[path.len - 1] == '/') {
        path.len--;
    }

    return ngx_http_bloom_api_find(r, &path);
}


static ngx_int_t
ngx_http_bloom_api_find(ngx_http_request_t *r, ngx_str_t *path)
{
    ngx_str_t                    allow;
    ngx_uint_t                   i;
    ngx_bloom_zone_t            *zone;
    ngx_http_bloom_text_t        text;
    ngx_http_bloom_api_route_t  *route;

    ngx_http_bloom_text_init(&text, r->pool);

    for (i = 0; i < NGX_HTTP_BLOOM_API_ROUTES; i++) {

        route = &ngx_http_bloom_api_routes[i];

        if (!ngx_http_bloom_api_on_path(r, route, path, &zone)) {
            continue;
        }

        if (r->method & route->method) {
            return ngx_http_bloom_api_call(r, route, zone);
        }

        ngx_http_bloom_text_printf(&text, "%s%V",
                                   text.pos == text.start ? "" : ", ",
                                   &route->name);
    }

    if (text.pos == text.start) {
        return ngx_http_bloom_api_no_route(r, path);
    }

    allow.data = text.start;
    allow.len = text.pos - text.start;

    if (text.failed || ngx_http_bloom_header_out(r, "Allow",
                                                 &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_METHOD,
                                          "\"%V\" does not take %V requests; "
                                          "use %V%s",
                                          &r->uri, &r->method_name, &allow,
                                          ngx_http_bloom_api_hint(r, path));
}


/* Returns 1 if a path is that of the route, and then sets *zone.  The name of a
 * zone is decoded already and may contain slashes. */
static ngx_uint_t
ngx_http_bloom_api_on_path(ngx_http_request_t *r,
    ngx_http_bloom_api_route_t *route, ngx_str_t *path,
    ngx_bloom_zone_t **zone)
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

    *zone = ngx_http_bloom_api_zone_named(r, &name);

    return *zone != NULL;
}


static ngx_bloom_zone_t *
ngx_http_bloom_api_zone_named(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t          i;
    ngx_array_t        *zones;
    ngx_bloom_zone_t  **zone;

    zones = ngx_http_bloom_endpoint_get(r)->zones;
    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (zone[i]->name.len == name->len
            && ngx_strncmp(zone[i]->name.data, name->data, name->len) == 0)
        {
            return zone[i];
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_bloom_api_no_route(ngx_http_request_t *r, ngx_str_t *path)
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

        if (ngx_http_bloom_api_zone_named(r, &name) == NULL) {
            return ngx_http_bloom_response_refuse(r,
                                                  NGX_HTTP_BLOOM_E_UNKNOWN_ZONE,
                                                  "there is no zone \"%V\"; "
                                                  "GET %V/zones lists the "
                                                  "zones",
                                                  &name,
                                                  &blcf->endpoint->prefix);
        }
    }

    return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_NOT_FOUND,
                                          "there is nothing at \"%V\"; GET "
                                          "%V/ lists the requests%s", &r->uri,
                                          &blcf->endpoint->prefix,
                                          ngx_http_bloom_api_hint(r, path));
}


/*
 * Returns what to do instead of a request that is meant to remove or send keys:
 * a phrase to follow an error message, or an empty one.
 */
static const char *
ngx_http_bloom_api_hint(ngx_http_request_t *r, ngx_str_t *path)
{
    if (!ngx_http_bloom_api_is_of_keys(path)) {
        return "";
    }

    switch (r->method) {

    case NGX_HTTP_DELETE:
        return ": remove a key by DELETE zones/NAME/keys?key=K, and many keys "
               "by POST zones/NAME/remove";

    case NGX_HTTP_PUT:
        return ": send keys by POST, the keys of a file by \"curl "
               "--data-binary @FILE URL\"";

    default:
        return "";
    }
}


/* Returns 1 if a part of a path is "keys" or "remove", not only the last one:
 * "curl -T FILE URL/" appends the name of the file. */
static ngx_uint_t
ngx_http_bloom_api_is_of_keys(ngx_str_t *path)
{
    size_t   len;
    u_char  *p, *slash, *end;

    end = path->data + path->len;

    for (p = path->data; p < end; p += len + 1) {

        slash = ngx_strlchr(p, end, '/');

        len = (slash != NULL ? slash : end) - p;

        if ((len == 4 && ngx_strncmp(p, "keys", 4) == 0)
            || (len == 6 && ngx_strncmp(p, "remove", 6) == 0))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_bloom_api_call(ngx_http_request_t *r,
    ngx_http_bloom_api_route_t *route, ngx_bloom_zone_t *zone)
{
    ngx_int_t                   rc;
    ngx_http_bloom_error_t      error;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_bloom_loc_conf_t  *blcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (route->needs == NGX_HTTP_BLOOM_IMAGE && !blcf->endpoint->image) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_NO_IMAGE,
                                              "this endpoint does not send "
                                              "images, since an image contains "
                                              "the seed or the secret of its "
                                              "filter; write \"bloom_api "
                                              "image=on\" in location \"%V\" "
                                              "to allow it", &clcf->name);
    }

    if (route->needs == NGX_HTTP_BLOOM_WRITE && !blcf->endpoint->write) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_READ_ONLY,
                                              "this endpoint takes no "
                                              "changes; write \"bloom_api "
                                              "write=on\" in location \"%V\" "
                                              "to allow them", &clcf->name);
    }

    if (route->needs != NGX_HTTP_BLOOM_READ
        && ngx_http_bloom_api_is_cross_site(r))
    {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_CROSS_SITE,
                                              "a page of another site must not "
                                              "make changes, list removed "
                                              "keys or get an image; see the "
                                              "headers \"Sec-Fetch-Site\" and "
                                              "\"Origin\" of the request");
    }

    if (zone != NULL && ngx_http_bloom_token_match(r, zone, &error) != NGX_OK)
    {
        return ngx_http_bloom_response_refuse_error(r, &error);
    }

    if (route->kind != NULL) {
        return ngx_http_bloom_operation(r, zone, route->kind);
    }

    rc = ngx_http_discard_request_body(r);

    return rc == NGX_OK ? route->handler(r, zone) : rc;
}


/* Returns 1 if a browser says that a page of another site makes the request. */
static ngx_uint_t
ngx_http_bloom_api_is_cross_site(ngx_http_request_t *r)
{
    u_char     *p;
    ngx_str_t  *site, *origin, *host;

    site = ngx_http_bloom_header_in(r, "sec-fetch-site");

    if (site != NULL) {
        return !(site->len == 11
                 && ngx_strncasecmp(site->data, (u_char *) "same-origin", 11)
                    == 0)
               && !(site->len == 4
                    && ngx_strncasecmp(site->data, (u_char *) "none", 4) == 0);
    }

    origin = ngx_http_bloom_header_in(r, "origin");

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


static ngx_int_t
ngx_http_bloom_api_index(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    u_char                       *p, request[64];
    ngx_str_t                     vary;
    ngx_uint_t                    i;
    ngx_bloom_zone_t            **zones;
    bloom_json_writer_t          *json;
    ngx_http_bloom_text_t         text;
    ngx_http_bloom_endpoint_t    *endpoint;
    ngx_http_bloom_api_route_t   *route;

    if (ngx_http_bloom_page_wanted(r)) {
        return ngx_http_bloom_page_respond(r);
    }

    ngx_str_set(&vary, "Accept");

    if (ngx_http_bloom_header_out(r, "Vary", &vary) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&text, r->pool);
    json = &text.json;

    bloom_json_put_object(json, NULL);
    bloom_json_put_text(json, "version", BLOOM_VERSION);
    bloom_json_put_array(json, "zones");

    endpoint = ngx_http_bloom_endpoint_get(r);

    zones = endpoint->zones->elts;

    for (i = 0; i < endpoint->zones->nelts; i++) {
        bloom_json_put_bytes(json, NULL, zones[i]->name.data,
                             zones[i]->name.len);
    }

    bloom_json_put_end(json);
    bloom_json_put_bool(json, "write", endpoint->write);
    bloom_json_put_bool(json, "image", endpoint->image);
    bloom_json_put_array(json, "requests");

    for (i = 0; i < NGX_HTTP_BLOOM_API_ROUTES; i++) {
        route = &ngx_http_bloom_api_routes[i];

        p = ngx_snprintf(request, sizeof(request), "%V %s%V", &route->name,
                         route->zone ? "/zones/NAME" : "/", &route->path);

        bloom_json_put_object(json, NULL);
        bloom_json_put_bytes(json, "request", request, p - request);
        bloom_json_put_bool(json, "write",
                            route->needs == NGX_HTTP_BLOOM_WRITE);
        bloom_json_put_text(json, "does", route->does);
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
    bloom_json_put_end(json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &text);
}


static ngx_int_t
ngx_http_bloom_api_zones(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_http_bloom_turns_t  *turns;

    turns = ngx_http_bloom_turns_create(r, ngx_http_bloom_api_zones_step,
                                        ngx_http_bloom_api_zones_done);
    if (turns == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    bloom_json_put_object(&turns->text.json, NULL);
    bloom_json_put_array(&turns->text.json, "zones");

    return ngx_http_bloom_turns_run(r, turns);
}


static ngx_int_t
ngx_http_bloom_api_zones_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_bloom_info_t            info;
    ngx_bloom_zone_t          **zones;
    ngx_http_bloom_endpoint_t  *endpoint;

    endpoint = ngx_http_bloom_endpoint_get(r);

    if (turns->next == endpoint->zones->nelts) {
        return NGX_OK;
    }

    zones = endpoint->zones->elts;

    ngx_http_bloom_endpoint_info(endpoint, zones[turns->next], &info);

    ngx_http_bloom_json_put_zone(&turns->text, NULL, zones[turns->next], &info);

    turns->next++;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_bloom_api_zones_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    bloom_json_put_end(&turns->text.json);
    bloom_json_put_end(&turns->text.json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &turns->text);
}


static ngx_int_t
ngx_http_bloom_api_zone(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_bloom_info_t       info;
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_endpoint_info(ngx_http_bloom_endpoint_get(r), zone, &info);

    ngx_http_bloom_text_init(&text, r->pool);
    ngx_http_bloom_json_put_zone(&text, NULL, zone, &info);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &text);
}
