/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads what directives have in common: parameters, and names of
 * variables and files.
 */

#include "ngx_http_bloom_conf.h"
#include "ngx_bloom_rate.h"
#include "bloom_units.h"


static const ngx_http_bloom_conf_param_t *ngx_http_bloom_conf_row(
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where,
    ngx_str_t *value);
static char *ngx_http_bloom_conf_read(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *conf);
static char *ngx_http_bloom_conf_missing(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where,
    uint64_t given);
static char *ngx_http_bloom_conf_unknown(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where,
    ngx_str_t *value);
static ngx_int_t ngx_http_bloom_conf_find(const ngx_conf_enum_t *e,
    ngx_str_t *name, ngx_uint_t *field);
static void ngx_http_bloom_conf_choices(u_char *p, size_t len,
    const ngx_conf_enum_t *choice);


ngx_conf_enum_t  ngx_http_bloom_conf_on_off[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


char *
ngx_http_bloom_conf_params(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where, void *conf,
    uint64_t *given)
{
    uint64_t                            seen, bit;
    ngx_str_t                          *value;
    ngx_uint_t                          i;
    const ngx_http_bloom_conf_param_t  *param;

    value = cf->args->elts;
    seen = 0;

    for (i = first; i < cf->args->nelts; i++) {

        param = ngx_http_bloom_conf_row(table, where, &value[i]);
        if (param == NULL) {
            return ngx_http_bloom_conf_unknown(cf, table, where, &value[i]);
        }

        if (param->read == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": %s", &value[i],
                               param->want);
            return NGX_CONF_ERROR;
        }

        bit = (uint64_t) 1 << (param - table);

        if ((seen & bit) && !(param->where & NGX_HTTP_BLOOM_CONF_MANY)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        seen |= bit;

        if (ngx_http_bloom_conf_read(cf, param, &value[i], conf)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (given != NULL) {
        *given = seen;
    }

    return ngx_http_bloom_conf_missing(cf, table, where, seen);
}


/* Returns the parameter with the name of this argument; NULL: the directive
 * does not take it. */
static const ngx_http_bloom_conf_param_t *
ngx_http_bloom_conf_row(const ngx_http_bloom_conf_param_t *table,
    ngx_uint_t where, ngx_str_t *value)
{
    const ngx_http_bloom_conf_param_t  *param;

    for (param = table; param->name.len; param++) {
        if ((param->where & where)
            && ngx_strncmp(value->data, param->name.data, param->name.len) == 0
            && (param->name.data[param->name.len - 1] == '='
                || value->len == param->name.len))
        {
            return param;
        }
    }

    return NULL;
}


/* Reads the value of an argument. */
static char *
ngx_http_bloom_conf_read(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *conf)
{
    u_char     choices[NGX_MAX_CONF_ERRSTR / 2];
    ngx_int_t  rc;
    ngx_str_t  text;

    text.data = value->data + param->name.len;
    text.len = value->len - param->name.len;

    rc = param->read(cf, param, &text, (u_char *) conf + param->offset);

    if (rc != NGX_DECLINED) {
        return rc == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
    }

    if (param->want != NULL) {
        return ngx_http_bloom_conf_invalid_value(cf, (char *) param->name.data,
                                                 &text, param->want);
    }

    ngx_http_bloom_conf_choices(choices, sizeof(choices), param->post);

    return ngx_http_bloom_conf_invalid_value(cf, (char *) param->name.data,
                                             &text, (char *) choices);
}


/* Refuses a directive that lacks a parameter. */
static char *
ngx_http_bloom_conf_missing(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where, uint64_t given)
{
    ngx_str_t                          *directive;
    const ngx_http_bloom_conf_param_t  *param;

    directive = cf->args->elts;

    for (param = table; param->name.len; param++) {
        if ((param->where & where)
            && (param->where & NGX_HTTP_BLOOM_CONF_MUST)
            && (given & ((uint64_t) 1 << (param - table))) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" directive must have the \"%V\" "
                               "parameter", directive, &param->name);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* Logs which directive takes a parameter, or which parameters this one
 * takes.  Returns NGX_CONF_ERROR. */
static char *
ngx_http_bloom_conf_unknown(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where,
    ngx_str_t *value)
{
    u_char                             *p, *last,
                                        takes[NGX_MAX_CONF_ERRSTR / 2];
    ngx_str_t                          *directive;
    ngx_uint_t                          i;
    const ngx_http_bloom_conf_param_t  *param;

    static const struct {
        ngx_uint_t   where;
        char        *directive;
    } owners[] = {
        { NGX_HTTP_BLOOM_CONF_ZONE, "bloom_zone" },
        { NGX_HTTP_BLOOM_CONF_GUARD, "bloom_guard" },
        { NGX_HTTP_BLOOM_CONF_SOURCE, "bloom_source" }
    };

    directive = cf->args->elts;

    for (i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        param = ngx_http_bloom_conf_row(table, owners[i].where, value);

        if (param != NULL && param->read != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": it is a parameter of "
                               "\"%s\"", value, owners[i].directive);
            return NGX_CONF_ERROR;
        }
    }

    p = takes;
    last = takes + sizeof(takes);

    for (param = table; param->name.len; param++) {
        if ((param->where & where) && param->read != NULL) {
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


ngx_int_t
ngx_http_bloom_conf_read_zone(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    ngx_bloom_zone_t           **zone = field;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (value->len == 0 || ngx_strchr(value->data, ':') != NULL) {
        return NGX_DECLINED;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    *zone = ngx_bloom_declare_get(cf, &bmcf->zones, value);

    return *zone != NULL ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_bloom_conf_read_text(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    *(ngx_str_t *) field = *value;

    return value->len != 0 || param->want == NULL ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_conf_read_path(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    *(ngx_str_t *) field = *value;

    return value->len == 0 ? NGX_DECLINED
                           : ngx_http_bloom_conf_full_name(cf, field, 1);
}


ngx_int_t
ngx_http_bloom_conf_read_count(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    uint64_t                           *n = field;
    const ngx_http_bloom_conf_range_t  *range = param->post;

    return bloom_units_count((char *) value->data, value->len, n) == 0
           && *n >= range->min && *n <= range->max ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_conf_read_time(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    uint64_t                           *time = field;
    ngx_int_t                           n;
    const ngx_http_bloom_conf_range_t  *range = param->post;

    if (range->off && ngx_strcmp(value->data, "off") == 0) {
        *time = 0;
        return NGX_OK;
    }

    n = ngx_parse_time(value, range->seconds);
    *time = (uint64_t) n;

    return n != NGX_ERROR && *time >= range->min && *time <= range->max
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_conf_read_interval(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    u_char     *unit;
    ngx_int_t   n;

    if (value->len < sizeof("1r/s") - 1) {
        return NGX_DECLINED;
    }

    unit = value->data + value->len - 3;
    n = ngx_atoi(value->data, value->len - 3);

    if (n < 1 || n > NGX_BLOOM_RATE_MAX
        || (ngx_strcmp(unit, "r/s") != 0 && ngx_strcmp(unit, "r/m") != 0))
    {
        return NGX_DECLINED;
    }

    *(ngx_uint_t *) field = (unit[2] == 's' ? 1000000 : 60000000) / n;

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_conf_read_byte(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    *(u_char *) field = value->data[0];

    return value->len == 1 ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_conf_read_flag(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    *(ngx_uint_t *) field = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_conf_read_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    return ngx_http_bloom_conf_find(param->post, value, field);
}


/* Stores the value of a name.  Returns NGX_OK, or NGX_DECLINED for another
 * name. */
static ngx_int_t
ngx_http_bloom_conf_find(const ngx_conf_enum_t *e, ngx_str_t *name,
    ngx_uint_t *field)
{
    for ( /* void */ ; e->name.len; e++) {
        if (ngx_strcmp(name->data, e->name.data) == 0) {
            *field = e->value;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/* Writes the names to choose from, and a null. */
static void
ngx_http_bloom_conf_choices(u_char *p, size_t len,
    const ngx_conf_enum_t *choice)
{
    u_char                 *last;
    const ngx_conf_enum_t  *e;

    last = p + len - 1;                  /* room for a null */

    for (e = choice; e->name.len; e++) {
        p = ngx_slprintf(p, last, "%s\"%V\"",
                         e == choice ? "" : e[1].name.len ? ", " : " or ",
                         &e->name);
    }

    *p = '\0';
}


ngx_int_t
ngx_http_bloom_conf_read_filter(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field)
{
    ngx_http_complex_value_t  **filter = field;

    *filter = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));

    if (*filter == NULL
        || ngx_http_bloom_conf_value(cf, value, *filter) != NGX_CONF_OK)
    {
        return NGX_ERROR;
    }

    return (*filter)->lengths != NULL ? NGX_OK : NGX_DECLINED;
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
ngx_http_bloom_conf_invalid_value(ngx_conf_t *cf, const char *name,
    ngx_str_t *value, const char *want)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" of \"%s\": it must be %s",
                       value, name, want);

    return NGX_CONF_ERROR;
}


char *
ngx_http_bloom_conf_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char       choices[NGX_MAX_CONF_ERRSTR / 2];
    ngx_str_t   *value;
    ngx_uint_t  *field;

    field = (ngx_uint_t *) ((u_char *) conf + cmd->offset);

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_bloom_conf_find(cmd->post, &value[1], field) == NGX_OK) {
        return NGX_CONF_OK;
    }

    ngx_http_bloom_conf_choices(choices, sizeof(choices), cmd->post);

    return ngx_http_bloom_conf_invalid_value(cf, (char *) cmd->name.data,
                                             &value[1], (char *) choices);
}
