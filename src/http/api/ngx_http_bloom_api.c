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
static ngx_bloom_zone_t *ngx_http_bloom_api_zone_in(ngx_http_request_t *r,
    ngx_str_t *path);
static ngx_int_t ngx_http_bloom_api_no_route(ngx_http_request_t *r,
    ngx_str_t *path, ngx_bloom_zone_t *zone);
static const char *ngx_http_bloom_api_hint(ngx_http_request_t *r);
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
    ngx_str_t  path, *prefix;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"bloom_api\" does not answer subrequests");
        return NGX_HTTP_NOT_FOUND;
    }

    /* nginx would check conditions against the response, after the change */

    r->disable_not_modified = 1;

    prefix = &ngx_http_bloom_endpoint_get(r)->prefix;

    path = r->uri;

    if (path.len < prefix->len) {
        return NGX_HTTP_NOT_FOUND;
    }

    path.data += prefix->len;
    path.len -= prefix->len;

    if (path.len != 0) {

        if (path.data[0] != '/') {
            return ngx_http_bloom_api_no_route(r, &path, NULL);
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
    ngx_http_bloom_error_t       error;
    ngx_http_bloom_api_route_t  *route;

    ngx_http_bloom_text_init(&text, r->pool);

    zone = ngx_http_bloom_api_zone_in(r, path);

    for (i = 0; i < NGX_HTTP_BLOOM_API_ROUTES; i++) {

        route = &ngx_http_bloom_api_routes[i];

        if (route->zone != (zone != NULL) || route->path.len != path->len
            || ngx_strncmp(route->path.data, path->data, path->len) != 0)
        {
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
        return ngx_http_bloom_api_no_route(r, path, zone);
    }

    allow.data = text.start;
    allow.len = text.pos - text.start;

    if (text.failed || ngx_http_bloom_header_out(r, "Allow",
                                                 &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_METHOD,
                         "\"%V\" does not take %V requests; use %V%s",
                         &r->uri, &r->method_name, &allow,
                         ngx_http_bloom_api_hint(r));

    return ngx_http_bloom_response_refuse(r, &error);
}


/* Returns the zone of a path that begins "zones/NAME", and takes this from the
 * path; NULL: it names no zone.  The name is decoded already and may contain
 * slashes: the longest name counts. */
static ngx_bloom_zone_t *
ngx_http_bloom_api_zone_in(ngx_http_request_t *r, ngx_str_t *path)
{
    size_t              len;
    u_char             *p;
    ngx_str_t          *name;
    ngx_uint_t          i;
    ngx_array_t        *zones;
    ngx_bloom_zone_t  **zone, *found;

    if (path->len < sizeof("zones/") - 1
        || ngx_strncmp(path->data, "zones/", sizeof("zones/") - 1) != 0)
    {
        return NULL;
    }

    p = path->data + sizeof("zones/") - 1;
    len = path->len - (sizeof("zones/") - 1);

    zones = ngx_http_bloom_endpoint_get(r)->zones;
    zone = zones->elts;
    found = NULL;

    for (i = 0; i < zones->nelts; i++) {
        name = &zone[i]->name;

        if (name->len <= len && ngx_strncmp(p, name->data, name->len) == 0
            && (name->len == len || p[name->len] == '/')
            && (found == NULL || name->len > found->name.len))
        {
            found = zone[i];
        }
    }

    if (found != NULL) {
        path->data = p + found->name.len;
        path->len = len - found->name.len;
    }

    return found;
}


static ngx_int_t
ngx_http_bloom_api_no_route(ngx_http_request_t *r, ngx_str_t *path,
    ngx_bloom_zone_t *zone)
{
    u_char                  *p, *end, *slash;
    ngx_str_t               *prefix;
    ngx_http_bloom_error_t   error;

    prefix = &ngx_http_bloom_endpoint_get(r)->prefix;

    p = path->data + sizeof("zones/") - 1;
    end = path->data + path->len;

    if (zone == NULL && p < end
        && ngx_strncmp(path->data, "zones/", sizeof("zones/") - 1) == 0)
    {
        slash = ngx_strlchr(p, end, '/');

        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_UNKNOWN_ZONE,
                             "there is no zone \"%*s\"; GET %V/zones lists "
                             "the zones",
                             (size_t) ((slash != NULL ? slash : end) - p), p,
                             prefix);

    } else {
        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_NOT_FOUND,
                             "there is nothing at \"%V\"; GET %V/ lists the "
                             "requests%s", &r->uri, prefix,
                             ngx_http_bloom_api_hint(r));
    }

    return ngx_http_bloom_response_refuse(r, &error);
}


/*
 * Returns what to do instead of a request that is meant to remove or send keys:
 * a phrase to follow an error message, or an empty one.  "curl -T FILE URL/"
 * appends the name of the file to the path.
 */
static const char *
ngx_http_bloom_api_hint(ngx_http_request_t *r)
{
    u_char  *end;

    end = r->uri.data + r->uri.len;

    if (ngx_strlcasestrn(r->uri.data, end, (u_char *) "/keys", 4) == NULL
        && ngx_strlcasestrn(r->uri.data, end, (u_char *) "/remove", 6) == NULL)
    {
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


static ngx_int_t
ngx_http_bloom_api_call(ngx_http_request_t *r,
    ngx_http_bloom_api_route_t *route, ngx_bloom_zone_t *zone)
{
    ngx_int_t                   rc;
    ngx_http_bloom_error_t      error;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_bloom_endpoint_t  *endpoint;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    endpoint = ngx_http_bloom_endpoint_get(r);

    if (route->needs == NGX_HTTP_BLOOM_IMAGE && !endpoint->image) {
        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_NO_IMAGE,
                             "this endpoint does not send images, since an "
                             "image contains the seed or the secret of its "
                             "filter; write \"bloom_api image=on\" in location "
                             "\"%V\" to allow it", &clcf->name);

    } else if (route->needs == NGX_HTTP_BLOOM_WRITE && !endpoint->write) {
        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_READ_ONLY,
                             "this endpoint takes no changes; write "
                             "\"bloom_api write=on\" in location \"%V\" to "
                             "allow them", &clcf->name);

    } else if (route->needs != NGX_HTTP_BLOOM_READ
               && ngx_http_bloom_api_is_cross_site(r))
    {
        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_CROSS_SITE,
                             "a page of another site must not make changes, "
                             "list removed keys or get an image; see the "
                             "headers \"Sec-Fetch-Site\" and \"Origin\" of the "
                             "request");

    } else if (zone == NULL
               || ngx_http_bloom_token_match(r, zone, &error) == NGX_OK)
    {
        error.code = NGX_HTTP_BLOOM_E_NONE;
    }

    if (error.code != NGX_HTTP_BLOOM_E_NONE) {
        return ngx_http_bloom_response_refuse(r, &error);
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
