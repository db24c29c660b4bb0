/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads bloom_api, and finds out which zones exist at an endpoint.
 */

#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_conf.h"


static ngx_int_t ngx_http_bloom_endpoint_zone(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);


#define FIELD(field)  offsetof(ngx_http_bloom_endpoint_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_endpoint_table[] = {

    { ngx_string("write="), NGX_HTTP_BLOOM_CONF_ENDPOINT,
      ngx_http_bloom_conf_read_name, FIELD(write), ngx_http_bloom_conf_on_off,
      NULL },

    { ngx_string("image="), NGX_HTTP_BLOOM_CONF_ENDPOINT,
      ngx_http_bloom_conf_read_name, FIELD(image), ngx_http_bloom_conf_on_off,
      NULL },

    { ngx_string("zone="),
      NGX_HTTP_BLOOM_CONF_ENDPOINT|NGX_HTTP_BLOOM_CONF_MANY,
      ngx_http_bloom_endpoint_zone, FIELD(zones), NULL, "the name of a zone" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};


char *
ngx_http_bloom_endpoint_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t                    name;
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
    endpoint->image = NGX_CONF_UNSET_UINT;

    if (ngx_http_bloom_conf_params(cf, 1, ngx_http_bloom_endpoint_table,
                                   NGX_HTTP_BLOOM_CONF_ENDPOINT, endpoint,
                                   NULL)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* a client that may replace the image may also read it */

    ngx_conf_init_uint_value(endpoint->image, endpoint->write);

    blcf->endpoint = endpoint;
    *endpointp = endpoint;

    return NGX_CONF_OK;
}


/* Reads "zone=".  The zone may be declared further below. */
static ngx_int_t
ngx_http_bloom_endpoint_zone(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_array_t       **zones = field;
    ngx_bloom_zone_t   *zone, **zonep;

    rc = ngx_http_bloom_conf_read_zone(cf, param, value, &zone);

    if (rc != NGX_OK) {
        return rc;
    }

    if (*zones == NULL) {
        *zones = ngx_array_create(cf->pool, 4, sizeof(ngx_bloom_zone_t *));
        if (*zones == NULL) {
            return NGX_ERROR;
        }
    }

    zonep = (*zones)->elts;

    for (i = 0; i < (*zones)->nelts; i++) {
        if (zonep[i] == zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V%V\"", &param->name,
                               value);
            return NGX_ERROR;
        }
    }

    zonep = ngx_array_push(*zones);
    if (zonep == NULL) {
        return NGX_ERROR;
    }

    *zonep = zone;

    return NGX_OK;
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
