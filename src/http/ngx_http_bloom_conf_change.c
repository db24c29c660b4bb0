/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads bloom_add and bloom_remove.
 */

#include "ngx_http_bloom_conf_change.h"
#include "ngx_http_bloom_conf_key.h"


static char *ngx_http_bloom_conf_change_read(ngx_conf_t *cf,
    ngx_http_bloom_change_t *change);
static void ngx_http_bloom_conf_change_headers(ngx_conf_t *cf,
    ngx_http_bloom_change_t *change);


char *
ngx_http_bloom_conf_change(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rc;
    ngx_str_t                 *value;
    ngx_uint_t                 off;
    ngx_array_t              **changes;
    ngx_http_bloom_change_t   *change;

    changes = (ngx_array_t **) ((u_char *) conf + cmd->offset);
    value = cf->args->elts;

    off = (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0);

    if (off ? *changes != NGX_CONF_UNSET_PTR : *changes == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V off\" cannot be used together with another "
                           "\"%V\", because a level with keys of its own "
                           "inherits none anyway: remove it",
                           &cmd->name, &cmd->name);
        return NGX_CONF_ERROR;
    }

    if (off) {
        *changes = NULL;
        return NGX_CONF_OK;
    }

    if (*changes == NGX_CONF_UNSET_PTR) {
        *changes = ngx_array_create(cf->pool, 2,
                                    sizeof(ngx_http_bloom_change_t));
        if (*changes == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    change = ngx_array_push(*changes);
    if (change == NULL) {
        return NGX_CONF_ERROR;
    }

    rc = ngx_http_bloom_conf_change_read(cf, change);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    change->key.zone->adds = 1;
    change->key.zone->changed_by = "\"bloom_add\"";

    if (cmd->offset == offsetof(ngx_http_bloom_loc_conf_t, removes)) {
        change->key.zone->removes = 1;
        change->key.zone->changed_by = "\"bloom_remove\"";
    }

    return NGX_CONF_OK;
}


/* Reads the key and the parameters of a directive. */
static char *
ngx_http_bloom_conf_change_read(ngx_conf_t *cf, ngx_http_bloom_change_t *change)
{
    char                          *rc;
    ngx_str_t                     *value;
    ngx_http_bloom_conf_params_t   params;

    ngx_memzero(change, sizeof(ngx_http_bloom_change_t));
    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_params_t));

    value = cf->args->elts;

    rc = ngx_http_bloom_conf_key(cf, &value[1], 2, NGX_HTTP_BLOOM_CONF_CHANGE,
                                 &params, &change->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    change->conf_file = cf->conf_file->file.name.data;
    change->conf_line = cf->conf_file->line;
    change->split = params.split;
    change->filter = params.filter;

    ngx_http_bloom_conf_change_headers(cf, change);

    return NGX_CONF_OK;
}


/* Finds the response's headers in the value of a directive. */
static void
ngx_http_bloom_conf_change_headers(ngx_conf_t *cf,
    ngx_http_bloom_change_t *change)
{
    size_t                      len;
    ngx_str_t                  *name;
    ngx_uint_t                  i, *index;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    static const ngx_str_t  prefix[] = {
        ngx_string("upstream_http_"), ngx_string("sent_http_")
    };

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    v = cmcf->variables.elts;

    index = change->key.value.flushes;

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {

        name = &v[*index].name;

        for (i = 0; i < 2; i++) {
            len = prefix[i].len;

            if (name->len <= len
                || ngx_strncmp(name->data, prefix[i].data, len) != 0)
            {
                continue;
            }

            change->lists = 1;

            if (change->key.index != NGX_ERROR) {
                change->sent = i;
                change->header.data = name->data + len;
                change->header.len = name->len - len;
            }
        }
    }
}
