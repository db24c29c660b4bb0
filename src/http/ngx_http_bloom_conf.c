/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads what directives have in common: parameters, keys, names of
 * variables.
 */

#include "ngx_http_bloom_conf.h"
#include "ngx_bloom_rate.h"


typedef struct {
    ngx_str_t                  name;     /* with "=", unless it is a flag */
    size_t                     offset;
    ngx_uint_t                 where;    /* the groups that take it */
} ngx_http_bloom_conf_param_t;


static char *ngx_http_bloom_conf_unknown(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t where);
static ngx_int_t ngx_http_bloom_conf_variable(ngx_conf_t *cf, ngx_str_t *text);


static ngx_conf_enum_t  ngx_http_bloom_conf_decodes[] = {
    { ngx_string("off"), BLOOM_DECODE_OFF },
    { ngx_string("uri"), BLOOM_DECODE_URI },
    { ngx_string("form"), BLOOM_DECODE_FORM },
    { ngx_null_string, 0 }
};


static ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_param[] = {

    { ngx_string("zone="), offsetof(ngx_http_bloom_conf_params_t, zone),
      NGX_HTTP_BLOOM_CONF_ZONE|NGX_HTTP_BLOOM_CONF_KEY },

    { ngx_string("file="), offsetof(ngx_http_bloom_conf_params_t, file),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("capacity="), offsetof(ngx_http_bloom_conf_params_t, capacity),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("fpr="), offsetof(ngx_http_bloom_conf_params_t, fpr),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("layout="), offsetof(ngx_http_bloom_conf_params_t, layout),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("hash="), offsetof(ngx_http_bloom_conf_params_t, hash),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("form="), offsetof(ngx_http_bloom_conf_params_t, form),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("journal="), offsetof(ngx_http_bloom_conf_params_t, journal),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("required="), offsetof(ngx_http_bloom_conf_params_t, required),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("watch="), offsetof(ngx_http_bloom_conf_params_t, watch),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("max_age="), offsetof(ngx_http_bloom_conf_params_t, max_age),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("must_have="),
      offsetof(ngx_http_bloom_conf_params_t, must_have),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("must_not_have="),
      offsetof(ngx_http_bloom_conf_params_t, must_not_have),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("min_keys="), offsetof(ngx_http_bloom_conf_params_t, min_keys),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("max_loss="), offsetof(ngx_http_bloom_conf_params_t, max_loss),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("max_growth="),
      offsetof(ngx_http_bloom_conf_params_t, max_growth),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("removals="), offsetof(ngx_http_bloom_conf_params_t, removals),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("max_keys="), offsetof(ngx_http_bloom_conf_params_t, max_keys),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("expire="), offsetof(ngx_http_bloom_conf_params_t, expire),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("source="), offsetof(ngx_http_bloom_conf_params_t, source),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("max_lag="), offsetof(ngx_http_bloom_conf_params_t, max_lag),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("label="), offsetof(ngx_http_bloom_conf_params_t, label),
      NGX_HTTP_BLOOM_CONF_ZONE },

    { ngx_string("decode="), offsetof(ngx_http_bloom_conf_params_t, decode),
      NGX_HTTP_BLOOM_CONF_KEY },

    { ngx_string("if="), offsetof(ngx_http_bloom_conf_params_t, condition),
      NGX_HTTP_BLOOM_CONF_CHANGE|NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("status="), offsetof(ngx_http_bloom_conf_params_t, status),
      NGX_HTTP_BLOOM_CONF_REJECT },

    { ngx_string("to="), offsetof(ngx_http_bloom_conf_params_t, to),
      NGX_HTTP_BLOOM_CONF_ROUTE },

    { ngx_string("split="), offsetof(ngx_http_bloom_conf_params_t, split),
      NGX_HTTP_BLOOM_CONF_CHANGE|NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("match="), offsetof(ngx_http_bloom_conf_params_t, match),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("invalid="), offsetof(ngx_http_bloom_conf_params_t, invalid),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("empty="), offsetof(ngx_http_bloom_conf_params_t, empty),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("exact"), offsetof(ngx_http_bloom_conf_params_t, exact),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("dry_run"), offsetof(ngx_http_bloom_conf_params_t, dry_run),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_string("name="), offsetof(ngx_http_bloom_conf_params_t, name),
      NGX_HTTP_BLOOM_CONF_RULE },

    { ngx_null_string, 0, 0 }
};


char *
ngx_http_bloom_conf_params(ngx_conf_t *cf, ngx_uint_t first, ngx_uint_t where,
    ngx_http_bloom_conf_params_t *params)
{
    u_char                       *colon;
    ngx_str_t                    *value, *field;
    ngx_uint_t                    i;
    ngx_http_bloom_conf_param_t  *param;

    ngx_memzero(params, sizeof(ngx_http_bloom_conf_params_t));

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {

        for (param = ngx_http_bloom_conf_param; param->name.len; param++) {
            if ((param->where & where)
                && ngx_strncmp(value[i].data, param->name.data,
                               param->name.len)
                   == 0
                && (param->name.data[param->name.len - 1] == '='
                    || value[i].len == param->name.len))
            {
                break;
            }
        }

        if (param->name.len == 0) {
            return ngx_http_bloom_conf_unknown(cf, &value[i], where);
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
        return ngx_http_bloom_conf_invalid(cf, "zone", &params->zone, "a name");
    }

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_old_name(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t where)
{
    ngx_uint_t  i;

    static struct {
        ngx_uint_t  where;
        ngx_str_t   old;
        char       *instead;
    } gone[] = {
        { NGX_HTTP_BLOOM_CONF_ZONE, ngx_string("key="),
          "its name is \"form=\"" },
        { NGX_HTTP_BLOOM_CONF_ZONE, ngx_string("max_change="),
          "its name is \"max_loss=\" and \"max_growth=\"" },
        { NGX_HTTP_BLOOM_CONF_ZONE, ngx_string("slices="),
          "the zone chooses the number of slices itself; leave it out" },
        { NGX_HTTP_BLOOM_CONF_AUDIT, ngx_string("learn="),
          "its name is \"add=\"" },
        { NGX_HTTP_BLOOM_CONF_FEEDBACK, ngx_string("learn="),
          "its name is \"except=\"" },
        { NGX_HTTP_BLOOM_CONF_AUDIT|NGX_HTTP_BLOOM_CONF_FEEDBACK,
          ngx_string("learn_rate="), "its name is \"rate=\"" },
        { NGX_HTTP_BLOOM_CONF_FEEDBACK, ngx_string("learn_after="),
          "its name is \"after=\"" },
        { 0, ngx_null_string, NULL }
    };

    for (i = 0; gone[i].instead != NULL; i++) {

        if ((gone[i].where & where)
            && value->len >= gone[i].old.len
            && ngx_strncmp(value->data, gone[i].old.data, gone[i].old.len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": %s",
                               value, gone[i].instead);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* Logs what the name of a parameter is now, or which ones the directive takes.
 * Returns NGX_CONF_ERROR. */
static char *
ngx_http_bloom_conf_unknown(ngx_conf_t *cf, ngx_str_t *value, ngx_uint_t where)
{
    u_char                       *p, *last, takes[NGX_MAX_CONF_ERRSTR / 2];
    ngx_str_t                    *directive;
    ngx_http_bloom_conf_param_t  *param;

    if (ngx_http_bloom_conf_old_name(cf, value, where) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    directive = cf->args->elts;

    p = takes;
    last = takes + sizeof(takes);

    for (param = ngx_http_bloom_conf_param; param->name.len; param++) {
        if (param->where & where) {
            p = ngx_slprintf(p, last, "%s\"%V\"", p == takes ? "" : ", ",
                             &param->name);
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\": \"%V\" takes %*s",
                       value, directive, (size_t) (p - takes), takes);

    return NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_renamed(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown directive \"%V\": its name is \"%s\"",
                       &cmd->name, (char *) cmd->post);

    return NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_key(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_bloom_conf_params_t *params, ngx_http_bloom_key_t *key)
{
    ngx_conf_enum_t             *decode;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (ngx_http_bloom_conf_value(cf, text, &key->value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    key->index = ngx_http_bloom_conf_variable(cf, text);

    if (key->value.lengths == NULL) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "the key \"%V\" has no variable, so every request "
                           "has the same key", text);
    }

    if (params->size.data != NULL) {
        return ngx_http_bloom_conf_invalid(cf, "zone", &params->zone,
                                           "a name without a size, which only "
                                           "\"bloom_zone\" takes");
    }

    key->decode = BLOOM_DECODE_OFF;

    if (params->decode.data != NULL) {

        for (decode = ngx_http_bloom_conf_decodes; decode->name.len; decode++) {
            if (ngx_strcmp(decode->name.data, params->decode.data) == 0) {
                break;
            }
        }

        if (decode->name.len == 0) {
            return ngx_http_bloom_conf_invalid(cf, "decode", &params->decode,
                                               "\"uri\", \"form\" or \"off\"");
        }

        key->decode = decode->value;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    key->zone = ngx_bloom_declare_get(cf, &bmcf->zones, &params->zone);

    return key->zone ? NGX_CONF_OK : NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_split(ngx_conf_t *cf, ngx_http_bloom_conf_params_t *params,
    u_char *split)
{
    *split = '\0';

    if (params->split.data == NULL) {
        return NGX_CONF_OK;
    }

    if (params->split.len != 1) {
        return ngx_http_bloom_conf_invalid(cf, "split", &params->split,
                                           "one byte, such as split=,");
    }

    *split = params->split.data[0];

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_condition(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_http_complex_value_t **filter)
{
    *filter = NULL;

    if (params->condition.data == NULL) {
        return NGX_CONF_OK;
    }

    *filter = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));

    if (*filter == NULL
        || ngx_http_bloom_conf_value(cf, &params->condition, *filter)
           != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if ((*filter)->lengths == NULL) {
        return ngx_http_bloom_conf_invalid(cf, "if", &params->condition,
                                           "a condition with a variable, such "
                                           "as if=$variable");
    }

    return NGX_CONF_OK;
}


/*
 * Returns the index of the variable if the text is a single one ("$name"), or
 * NGX_ERROR.
 */
static ngx_int_t
ngx_http_bloom_conf_variable(ngx_conf_t *cf, ngx_str_t *text)
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


ngx_http_variable_t *
ngx_http_bloom_conf_add_variable(ngx_conf_t *cf, ngx_str_t *text)
{
    ngx_str_t             name;
    ngx_http_variable_t  *var;

    if (text->len < 2 || text->data[0] != '$') {
        (void) ngx_http_bloom_conf_invalid(cf, "variable name", text,
                                           "a name with \"$\" before it");
        return NULL;
    }

    name.data = text->data + 1;
    name.len = text->len - 1;

    var = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);

    if (var != NULL && var->get_handler != NULL) {

        /* ngx_http_add_variable() returns a variable of "map", "set" and
         * others, which may be defined twice */

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the duplicate \"%V\" variable", &name);
        return NULL;
    }

    return var;
}


char *
ngx_http_bloom_conf_value(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_complex_value_t *value)
{
    ngx_http_compile_complex_value_t  ccv;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = text;
    ccv.complex_value = value;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK ? NGX_CONF_OK
                                                          : NGX_CONF_ERROR;
}


ngx_int_t
ngx_http_bloom_conf_full_name(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t conf_prefix)
{
    u_char  *p, *relative, directory[NGX_MAX_PATH];

    if (ngx_conf_full_name(cf->cycle, name, conf_prefix) != NGX_OK) {
        return NGX_ERROR;
    }

    if (name->data[0] == '/') {
        return NGX_OK;
    }

    if (ngx_getcwd(directory, NGX_MAX_PATH) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_getcwd_n " failed, and \"%V\" is relative to "
                           "that directory: give \"nginx -p\" an absolute "
                           "path, or start nginx in a directory that exists",
                           name);
        return NGX_ERROR;
    }

    relative = name->data;

    while (relative[0] == '.' && relative[1] == '/') {
        relative += 2;
    }

    p = ngx_pnalloc(cf->pool, ngx_strlen(directory) + 1 + name->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    name->len = ngx_sprintf(p, "%s/%s%Z", directory, relative) - p - 1;
    name->data = p;

    return NGX_OK;
}


char *
ngx_http_bloom_conf_invalid(ngx_conf_t *cf, char *name, ngx_str_t *value,
    char *want)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid %s \"%V\": it must be %s",
                       name, value, want);

    return NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char           *p, *last, choices[NGX_MAX_CONF_ERRSTR / 2];
    ngx_str_t        *value;
    ngx_uint_t       *field;
    ngx_conf_enum_t  *e, *choice;

    field = (ngx_uint_t *) ((u_char *) conf + cmd->offset);

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    choice = cmd->post;

    for (e = choice; e->name.len; e++) {
        if (value[1].len == e->name.len
            && ngx_strcasecmp(value[1].data, e->name.data) == 0)
        {
            *field = e->value;
            return NGX_CONF_OK;
        }
    }

    p = choices;
    last = choices + sizeof(choices);

    for (e = choice; e->name.len; e++) {
        p = ngx_slprintf(p, last, "%s\"%V\"",
                         e == choice ? "" : e[1].name.len ? ", " : " or ",
                         &e->name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, it must be "
                       "%*s", &value[1], &cmd->name, (size_t) (p - choices),
                       choices);

    return NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_rate(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t *interval)
{
    u_char      *p;
    size_t       len;
    ngx_int_t    n;
    ngx_uint_t   period;

    p = value->data + sizeof("rate=") - 1;
    len = value->data + value->len - p;
    period = 0;
    n = 0;

    if (len >= sizeof("1r/s") - 1) {
        len -= 3;
        n = ngx_atoi(p, len);

        if (ngx_strcmp(p + len, "r/s") == 0) {
            period = 1000000;

        } else if (ngx_strcmp(p + len, "r/m") == 0) {
            period = 60000000;
        }
    }

    if (period == 0 || n < 1 || n > NGX_BLOOM_RATE_MAX) {
        return ngx_http_bloom_conf_invalid(cf, "rate", value,
                                           "\"rate=\" and a number of "
                                           "keys from 1 to 1000000, such as "
                                           "\"10r/s\" or \"30r/m\"");
    }

    *interval = period / n;

    return NGX_CONF_OK;
}
