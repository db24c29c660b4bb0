/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares what all files that read directives need: parameters and
 * errors.
 *
 * The parameters of a directive, such as "zone=ids", are rows of a table.  A
 * row says which function reads the value, where it stores it, and what a
 * message about an invalid value says.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_H_INCLUDED_

#include "ngx_bloom_declare.h"
#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Groups of directives, for the parameters that they take. */
#define NGX_HTTP_BLOOM_CONF_ZONE        0x01
#define NGX_HTTP_BLOOM_CONF_KEY         0x02
#define NGX_HTTP_BLOOM_CONF_REJECT      0x04
#define NGX_HTTP_BLOOM_CONF_ROUTE       0x08
#define NGX_HTTP_BLOOM_CONF_CHANGE      0x10
#define NGX_HTTP_BLOOM_CONF_RULE        0x20
#define NGX_HTTP_BLOOM_CONF_AUDIT       0x40
#define NGX_HTTP_BLOOM_CONF_FEEDBACK    0x80
#define NGX_HTTP_BLOOM_CONF_GUARD       0x100
#define NGX_HTTP_BLOOM_CONF_SOURCE      0x200
#define NGX_HTTP_BLOOM_CONF_ENDPOINT    0x400

/* A directive that takes the parameter must have it. */
#define NGX_HTTP_BLOOM_CONF_MUST        0x1000

/* A directive may have the parameter more than once. */
#define NGX_HTTP_BLOOM_CONF_MANY        0x8000

/* The parameter of bloom_zone goes with "file=" only, or with "capacity="
 * only. */
#define NGX_HTTP_BLOOM_CONF_FILE        0x2000
#define NGX_HTTP_BLOOM_CONF_CAPACITY    0x4000


typedef struct ngx_http_bloom_conf_param_s  ngx_http_bloom_conf_param_t;

/* A parameter of directives. */
struct ngx_http_bloom_conf_param_s {
    ngx_str_t    name;                   /* with "=", unless it is a flag */
    ngx_uint_t   where;                  /* the groups that take it, and
                                            NGX_HTTP_BLOOM_CONF_MUST, ... */

    /* Reads the value, which is null-terminated, and stores it in *field.
     * Returns NGX_OK; NGX_DECLINED if the value is invalid; NGX_ERROR if so,
     * and an error is logged.  NULL: the parameter is gone, and `want` says
     * what to write instead. */
    ngx_int_t  (*read)(ngx_conf_t *cf, const ngx_http_bloom_conf_param_t *param,
                       ngx_str_t *value, void *field);

    size_t       offset;                 /* of the field */
    const void  *post;                   /* what the function wants to know */
    const char  *want;                   /* what the value must be; NULL: one of
                                            the names in `post` */
};

/* The bounds of a number or a time. */
typedef struct {
    uint64_t     min;
    uint64_t     max;
    ngx_uint_t   off;                    /* 1: "off" is 0 */
    ngx_uint_t   seconds;                /* 1: a time is in seconds, not ms */
} ngx_http_bloom_conf_range_t;

/* What the value of "rate=" must be. */
#define NGX_HTTP_BLOOM_CONF_RATE                                              \
    "a number of keys from 1 to 1000000, such as \"10r/s\" or \"30r/m\""

#define ngx_http_bloom_conf_range(min, max, off)                              \
    (&(const ngx_http_bloom_conf_range_t) { min, max, off, 0 })

#define ngx_http_bloom_conf_seconds(min, max)                                 \
    (&(const ngx_http_bloom_conf_range_t) { min, max, 0, 1 })

/*
 * Each reads a value, as `read` of a parameter does.  What it stores:
 *
 * zone      an ngx_bloom_zone_t *, by its name
 * text      an ngx_str_t that is not empty, unless the row's `want` is NULL
 * path      an ngx_str_t: a name of a file, made absolute
 * count     a uint64_t; `post` is its range
 * time      a uint64_t, or another integer of this size; `post` is its range
 * interval  an ngx_uint_t: the microseconds between two events of a rate such
 *           as 10r/s
 * byte      a u_char
 * flag      an ngx_uint_t: 1
 * name      an ngx_uint_t: the value of a name; `post` is an ngx_conf_enum_t[]
 * filter    an ngx_http_complex_value_t *: a condition with a variable
 */
ngx_int_t ngx_http_bloom_conf_read_zone(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_text(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_path(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_count(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_time(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_interval(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_byte(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_flag(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_name(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);
ngx_int_t ngx_http_bloom_conf_read_filter(ngx_conf_t *cf,
    const ngx_http_bloom_conf_param_t *param, ngx_str_t *value, void *field);

/* "on" is 1, and "off" is 0. */
extern ngx_conf_enum_t  ngx_http_bloom_conf_on_off[];

/*
 * Reads a directive's parameters, from argument `first` on, into `conf`, where
 * the defaults are.  The directive takes the parameters of the groups in
 * `where`, each at most once unless the row has NGX_HTTP_BLOOM_CONF_MANY, from
 * a table that ends with an empty name.  Sets bit i of *given if row i is
 * given, unless it is NULL.  Returns NGX_CONF_OK or NGX_CONF_ERROR.
 */
char *ngx_http_bloom_conf_params(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_http_bloom_conf_param_t *table, ngx_uint_t where, void *conf,
    uint64_t *given);

/* Refuses a directive by its old name, and logs the new one, which is
 * cmd->post. */
char *ngx_http_bloom_conf_renamed(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Adds a variable of the module; `text` is "$name".  The variable is not
 * cached, since its value may change during a request, and since a subrequest
 * would share the cached value.  Returns NULL, with an error logged, if the
 * name is invalid or in use.
 */
ngx_http_variable_t *ngx_http_bloom_conf_add_variable(ngx_conf_t *cf,
    ngx_str_t *text);

/* Compiles a text with variables.  Returns NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_value(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_complex_value_t *value);

/*
 * Sets an ngx_uint_t to a value of cmd->post by its name, as nginx's own
 * ngx_conf_set_enum_slot() does.  The message about another name has the
 * directive and the choices.
 */
char *ngx_http_bloom_conf_enum(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/*
 * Makes the name of a file absolute: a relative name is below the directory of
 * nginx.conf if `conf_prefix` is 1, otherwise below nginx's prefix.  That
 * directory is relative itself with "nginx -p ./", and only the master is where
 * it counts from: "working_directory" moves the other processes.  The result is
 * null-terminated.
 */
ngx_int_t ngx_http_bloom_conf_full_name(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t conf_prefix);

/* Logs that the value of `name` is invalid and what it must be.  Returns
 * NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_invalid(ngx_conf_t *cf, char *name, ngx_str_t *value,
    char *want);

/* Logs so for the value of a parameter, whose name ends with "=". */
char *ngx_http_bloom_conf_invalid_value(ngx_conf_t *cf, const char *name,
    ngx_str_t *value, const char *want);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_H_INCLUDED_ */
