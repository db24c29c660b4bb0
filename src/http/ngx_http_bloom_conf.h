/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares what all files that read directives need: parameters,
 * keys and errors.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_H_INCLUDED_

#include "ngx_bloom_declare.h"
#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* The values of a directive's parameters; data NULL: not given. */
typedef struct {
    ngx_str_t                  zone;
    ngx_str_t                  size;
    ngx_str_t                  file;
    ngx_str_t                  capacity;
    ngx_str_t                  fpr;
    ngx_str_t                  layout;
    ngx_str_t                  hash;
    ngx_str_t                  form;
    ngx_str_t                  journal;
    ngx_str_t                  required;
    ngx_str_t                  watch;
    ngx_str_t                  max_age;
    ngx_str_t                  must_have;
    ngx_str_t                  must_not_have;
    ngx_str_t                  min_keys;
    ngx_str_t                  max_loss;
    ngx_str_t                  max_growth;
    ngx_str_t                  removals;
    ngx_str_t                  max_keys;
    ngx_str_t                  expire;
    ngx_str_t                  source;
    ngx_str_t                  max_lag;
    ngx_str_t                  label;
    ngx_str_t                  decode;
    ngx_str_t                  condition;
    ngx_str_t                  status;
    ngx_str_t                  to;
    ngx_str_t                  split;
    ngx_str_t                  match;
    ngx_str_t                  invalid;
    ngx_str_t                  empty;
    ngx_str_t                  exact;    /* flags: their values are empty */
    ngx_str_t                  dry_run;
    ngx_str_t                  name;
} ngx_http_bloom_conf_params_t;


/* Groups of directives, for the parameters that they take. */
#define NGX_HTTP_BLOOM_CONF_ZONE        0x01
#define NGX_HTTP_BLOOM_CONF_KEY         0x02
#define NGX_HTTP_BLOOM_CONF_REJECT      0x04
#define NGX_HTTP_BLOOM_CONF_ROUTE       0x08
#define NGX_HTTP_BLOOM_CONF_CHANGE      0x10
#define NGX_HTTP_BLOOM_CONF_RULE        0x20
#define NGX_HTTP_BLOOM_CONF_AUDIT       0x40
#define NGX_HTTP_BLOOM_CONF_FEEDBACK    0x80

/*
 * Reads a directive's parameters, from argument `first` on.  It takes the
 * parameters of the groups in `where`, each at most once, and must have "zone".
 * Values are null-terminated, as arguments are.  Returns NGX_CONF_OK, or an
 * error.
 */
char *ngx_http_bloom_conf_params(ngx_conf_t *cf, ngx_uint_t first,
    ngx_uint_t where, ngx_http_bloom_conf_params_t *params);

/* Reads the key `text`, for the zone that the parameters name.  Returns
 * NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_key(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_bloom_conf_params_t *params, ngx_http_bloom_key_t *key);

/* Logs what to write instead of a parameter that is gone.  Returns NGX_CONF_OK
 * for any other parameter, else NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_old_name(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t where);

/* Refuses a directive by its old name, and logs the new one, which is
 * cmd->post. */
char *ngx_http_bloom_conf_renamed(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Reads "split=": *split becomes its byte, or 0 without the parameter.  Returns
 * NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_split(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, u_char *split);

/* Reads "if=": *filter becomes its condition, or NULL without the parameter.
 * Returns NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_condition(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_http_complex_value_t **filter);

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

/* Reads "rate=10r/s" or "rate=30r/m"; sets the microseconds for
 * each key.  Returns NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_rate(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t *interval);

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


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_H_INCLUDED_ */
