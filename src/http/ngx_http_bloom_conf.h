
/*
 * Directives: what the files that read them have of each other.
 *
 *     conf          what they share: parameters and keys
 *     conf_zone     bloom_state_path and bloom_zone
 *     conf_rules    rules, bloom_lookup and bloom_add
 *
 * The directives themselves, and those of one value, are in
 * ngx_http_bloom_module.c.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_H_INCLUDED_

#include "ngx_bloom_declare.h"
#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* A directive's parameters, each once. */
typedef struct {
    ngx_str_t                  zone;
    ngx_str_t                  size;
    ngx_str_t                  file;
    ngx_str_t                  capacity;
    ngx_str_t                  fpr;
    ngx_str_t                  layout;
    ngx_str_t                  hash;
    ngx_str_t                  key;
    ngx_str_t                  journal;
    ngx_str_t                  watch;
    ngx_str_t                  max_age;
    ngx_str_t                  huge_pages;
    ngx_str_t                  decode;
    ngx_str_t                  condition;
    ngx_str_t                  status;
    ngx_str_t                  to;
    ngx_str_t                  split;
    ngx_str_t                  match;
    ngx_str_t                  name;
} ngx_http_bloom_params_t;


/* Directives that take a parameter. */
#define NGX_HTTP_BLOOM_OF_ZONE    0x01
#define NGX_HTTP_BLOOM_OF_KEY     0x02
#define NGX_HTTP_BLOOM_OF_REJECT  0x04
#define NGX_HTTP_BLOOM_OF_ROUTE   0x08
#define NGX_HTTP_BLOOM_OF_ADD     0x10
#define NGX_HTTP_BLOOM_OF_RULE    0x20

/*
 * Takes the parameters from argument `first` on that directives `where` take;
 * "zone" is always needed.  Null-terminated, as arguments are.
 */
char *ngx_http_bloom_params(ngx_conf_t *cf, ngx_uint_t first, ngx_uint_t where,
    ngx_http_bloom_params_t *params);

/* A key as `text` writes it, in the zone that the parameters name. */
char *ngx_http_bloom_key(ngx_conf_t *cf, ngx_str_t *text,
    ngx_http_bloom_params_t *params, ngx_http_bloom_key_t *key);

/* Logs what a value must be; returns NGX_CONF_ERROR. */
char *ngx_http_bloom_invalid(ngx_conf_t *cf, char *name, ngx_str_t *value,
    char *want);


/* ---- conf_zone ---- */

char *ngx_http_bloom_state_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* What only the whole configuration says of its zones. */
void ngx_http_bloom_init_zones(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);


/* ---- conf_rules ---- */

char *ngx_http_bloom_lookup(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_bloom_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_bloom_rules(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_bloom_add(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* An unknown named location would be found only by the request routed to it. */
ngx_int_t ngx_http_bloom_check_routes(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_H_INCLUDED_ */
