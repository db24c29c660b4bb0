/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads bloom_api, and finds out which zones exist at an endpoint.
 */

#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_conf.h"


static char *ngx_http_bloom_endpoint_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_bloom_endpoint_t *endpoint);
static char *ngx_http_bloom_endpoint_zone(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_bloom_endpoint_t *endpoint);


char *
ngx_http_bloom_endpoint_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t                   *value, name;
    ngx_uint_t                   i;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_bloom_endpoint_t   *endpoint, **endpointp;
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
        return "must be in a prefix location, such as "
               "\"location /bloom/ { ... }\"";
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    endpoint = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_endpoint_t));
    endpointp = ngx_array_push(&bmcf->endpoints);

    if (endpoint == NULL || endpointp == NULL) {
        return NGX_CONF_ERROR;
    }

    name = clcf->name;

    if (name.len != 0 && name.data[name.len - 1] == '/') {
        name.len--;
    }

    endpoint->prefix = name;
    endpoint->write = NGX_CONF_UNSET;
    endpoint->image = NGX_CONF_UNSET;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_bloom_endpoint_param(cf, &value[i], endpoint)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    /* a client that may replace the image may also read it */

    ngx_conf_init_value(endpoint->write, 0);
    ngx_conf_init_value(endpoint->image, endpoint->write);

    blcf->endpoint = endpoint;
    *endpointp = endpoint;

    return NGX_CONF_OK;
}


static char *
ngx_http_bloom_endpoint_param(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_bloom_endpoint_t *endpoint)
{
    ngx_flag_t  *flag;

    if (ngx_strncmp(value->data, "zone=", 5) == 0) {
        return ngx_http_bloom_endpoint_zone(cf, value, endpoint);
    }

    flag = ngx_strncmp(value->data, "write=", 6) == 0 ? &endpoint->write
           : ngx_strncmp(value->data, "image=", 6) == 0 ? &endpoint->image
           : NULL;

    if (flag != NULL && *flag == NGX_CONF_UNSET) {

        if (ngx_strcmp(value->data + 6, "on") == 0) {
            *flag = 1;
            return NGX_CONF_OK;
        }

        if (ngx_strcmp(value->data + 6, "off") == 0) {
            *flag = 0;
            return NGX_CONF_OK;
        }
    }

    return ngx_http_bloom_conf_invalid(cf, "parameter", value,
                                       "\"write=on\", \"write=off\", "
                                       "\"image=on\" or \"image=off\", each "
                                       "once, or \"zone=NAME\"");
}


/* Reads "zone=".  The zone may be declared further below. */
static char *
ngx_http_bloom_endpoint_zone(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_bloom_endpoint_t *endpoint)
{
    ngx_str_t                    name;
    ngx_uint_t                   i;
    ngx_bloom_zone_t            *zone, **zonep;
    ngx_http_bloom_main_conf_t  *bmcf;

    name.data = value->data + 5;
    name.len = value->len - 5;

    if (name.len == 0 || ngx_strchr(name.data, ':') != NULL) {
        return ngx_http_bloom_conf_invalid(cf, "zone", &name,
                                           "the name of a zone");
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    zone = ngx_bloom_declare_get(cf, &bmcf->zones, &name);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (endpoint->zones == NULL) {
        endpoint->zones = ngx_array_create(cf->pool, 4,
                                           sizeof(ngx_bloom_zone_t *));
        if (endpoint->zones == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    zonep = endpoint->zones->elts;

    for (i = 0; i < endpoint->zones->nelts; i++) {
        if (zonep[i] == zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\"", value);
            return NGX_CONF_ERROR;
        }
    }

    zonep = ngx_array_push(endpoint->zones);
    if (zonep == NULL) {
        return NGX_CONF_ERROR;
    }

    *zonep = zone;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_bloom_endpoint_init(ngx_conf_t *cf, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t                   i, j;
    ngx_bloom_zone_t           **zone;
    ngx_http_bloom_endpoint_t  **endpoint;

    endpoint = bmcf->endpoints.elts;

    for (i = 0; i < bmcf->endpoints.nelts; i++) {

        endpoint[i]->all = (endpoint[i]->zones == NULL);

        if (endpoint[i]->all) {
            endpoint[i]->zones = &bmcf->zones;
        }

        endpoint[i]->has = ngx_pcalloc(cf->pool, bmcf->zones.nelts + 1);
        if (endpoint[i]->has == NULL) {
            return NGX_ERROR;
        }

        zone = endpoint[i]->zones->elts;

        for (j = 0; j < endpoint[i]->zones->nelts; j++) {
            endpoint[i]->has[zone[j]->number] = 1;

            if (endpoint[i]->write) {
                zone[j]->adds = 1;
            }
        }
    }

    return NGX_OK;
}


ngx_http_bloom_endpoint_t *
ngx_http_bloom_endpoint_get(ngx_http_request_t *r)
{
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    return blcf->endpoint;
}


void
ngx_http_bloom_endpoint_info(ngx_http_bloom_endpoint_t *endpoint,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    ngx_bloom_info_get(zone, info);

    if (zone->series == NGX_BLOOM_SERIES_OTHER && !endpoint->all) {
        ngx_memzero(info->counter, sizeof(info->counter));
        info->wrong_at = 0;
    }
}
