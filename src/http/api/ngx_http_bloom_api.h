
/*
 * The endpoint: what its files have of each other.
 *
 *     api      which request is it, and may it be made
 *     body     keys out of a request's body, as it comes
 *     keys     POST keys: added
 *     test     POST test and GET keys: asked for
 *     rates    GET rates: the expected false-positive rate
 *     task     POST reload and checkpoint, and waiting for the helper
 *     upload   PUT image
 *     image    GET image
 *     view     what is shown of a zone
 *     render   that in JSON
 *     metrics  GET metrics: that, and rules, for Prometheus
 *     page     GET / for a browser
 *     answer   answers and errors, and the JSON they are made of
 *     pause    going on later
 */

#ifndef _NGX_HTTP_BLOOM_API_H_INCLUDED_
#define _NGX_HTTP_BLOOM_API_H_INCLUDED_

#include "ngx_http_bloom_ctx.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_lookup.h"
#include "bloom_json.h"

#pragma GCC visibility push(hidden)


/* ---- answer ---- */

/* Text that grows in a request's pool; `failed` once memory is short. */
typedef struct {
    ngx_pool_t                 *pool;
    u_char                     *start;
    u_char                     *pos;
    u_char                     *end;
    ngx_uint_t                  failed;
} ngx_http_bloom_text_t;

void ngx_http_bloom_text_init(ngx_http_bloom_text_t *text, ngx_pool_t *pool);

/* At least `size` bytes at text->pos, or NULL. */
u_char *ngx_http_bloom_text_room(ngx_http_bloom_text_t *text, size_t size);

/* Formats as ngx_sprintf() does; up to 1024 bytes. */
void ngx_cdecl ngx_http_bloom_printf(ngx_http_bloom_text_t *text,
    const char *fmt, ...);

/* A string of JSON, in quotes, whatever the bytes are. */
void ngx_http_bloom_quote(ngx_http_bloom_text_t *text, u_char *data,
    size_t len);


/* What can be wrong: each has a status and a code, in a table of answer.c. */
typedef enum {
    NGX_HTTP_BLOOM_E_NONE = 0,
    NGX_HTTP_BLOOM_E_BAD_QUERY,
    NGX_HTTP_BLOOM_E_BAD_KEY,
    NGX_HTTP_BLOOM_E_BAD_JSON,
    NGX_HTTP_BLOOM_E_BAD_BODY,
    NGX_HTTP_BLOOM_E_READ_ONLY,
    NGX_HTTP_BLOOM_E_CROSS_SITE,
    NGX_HTTP_BLOOM_E_NOT_FOUND,
    NGX_HTTP_BLOOM_E_UNKNOWN_ZONE,
    NGX_HTTP_BLOOM_E_METHOD,
    NGX_HTTP_BLOOM_E_LOADING,
    NGX_HTTP_BLOOM_E_NO_ADDITIONS,
    NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
    NGX_HTTP_BLOOM_E_GENERATION,
    NGX_HTTP_BLOOM_E_TOO_LARGE,
    NGX_HTTP_BLOOM_E_TYPE,
    NGX_HTTP_BLOOM_E_REFUSED,
    NGX_HTTP_BLOOM_E_JOURNAL,
    NGX_HTTP_BLOOM_E_FAILED,
    NGX_HTTP_BLOOM_E_NO_ROOM
} ngx_http_bloom_error_e;

#define NGX_HTTP_BLOOM_MESSAGE_LEN  640

typedef struct {
    ngx_http_bloom_error_e      error;   /* NGX_HTTP_BLOOM_E_NONE: none */
    size_t                      len;
    u_char                      message[NGX_HTTP_BLOOM_MESSAGE_LEN];
} ngx_http_bloom_fault_t;

/* Notes what is wrong; formats as ngx_sprintf() does. */
void ngx_cdecl ngx_http_bloom_fault(ngx_http_bloom_fault_t *fault,
    ngx_http_bloom_error_e error, const char *fmt, ...);

/* The member "error" of an answer's object. */
void ngx_http_bloom_put_fault(ngx_http_bloom_text_t *text,
    ngx_http_bloom_fault_t *fault);
ngx_uint_t ngx_http_bloom_fault_status(ngx_http_bloom_fault_t *fault);

/*
 * Send an answer: what they return is for a content handler to return, or for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_bloom_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_bloom_text_t *text);
ngx_int_t ngx_http_bloom_answer_as(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_http_bloom_text_t *text);     /* any but JSON */
ngx_int_t ngx_http_bloom_answer_fault(ngx_http_request_t *r,
    ngx_http_bloom_fault_t *fault);

/* The same for requests that are refused before their body is read. */
ngx_int_t ngx_http_bloom_refuse_fault(ngx_http_request_t *r,
    ngx_http_bloom_fault_t *fault);
ngx_int_t ngx_cdecl ngx_http_bloom_refuse(ngx_http_request_t *r,
    ngx_http_bloom_error_e error, const char *fmt, ...);

/* A header of an answer that is about to be sent. */
ngx_int_t ngx_http_bloom_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);


/* ---- pause ---- */

typedef struct {
    ngx_event_t                 event;   /* the first */
    ngx_http_request_t         *request;
    void                      (*resume)(ngx_http_request_t *r);
} ngx_http_bloom_pause_t;

/* The request may end at any time: then nothing is resumed any more. */
ngx_int_t ngx_http_bloom_pause_init(ngx_http_bloom_pause_t *pause,
    ngx_http_request_t *r, void (*resume)(ngx_http_request_t *r));

/* In so many ms; or when other connections have had their turn. */
void ngx_http_bloom_sleep(ngx_http_bloom_pause_t *pause, ngx_msec_t ms);
void ngx_http_bloom_yield(ngx_http_bloom_pause_t *pause);

/*
 * Not any more: to be called before the answer, as a request that has been
 * answered may be there for a while.
 */
void ngx_http_bloom_stop(ngx_http_bloom_pause_t *pause);


/* ---- body ---- */

/*
 * Takes a key, of 1 to BLOOM_JOURNAL_KEY_MAX bytes, or empty if it is an empty
 * string of an array.  NGX_OK; NGX_AGAIN: not yet, it is offered once more;
 * NGX_ERROR: no more keys are wanted.
 */
typedef ngx_int_t (*ngx_http_bloom_take_pt)(void *data, ngx_str_t *key);

typedef struct {
    ngx_http_bloom_fault_t      fault;   /* of the body, if any */
    ngx_uint_t                  gone;    /* nobody waits for an answer */

    /* ---- */

    ngx_http_request_t         *request;
    ngx_http_bloom_take_pt      take;
    void                       *data;

    ngx_uint_t                  shared;  /* it was there before, whole, and
                                            is not ours alone */
    ngx_int_t                   failed;  /* status, if no more will come */
    ngx_chain_t                *in;      /* what has come and is not read */
    ngx_str_t                   pending; /* the key to be offered once more;
                                            data NULL: none */
    uint64_t                    lines;   /* read so far */
    u_char                     *joined;  /* a line of several pieces */
    size_t                      joined_len;
    bloom_json_t               *json;    /* NULL: lines */
    ngx_buf_t                  *slice;   /* of a body in a file */
} ngx_http_bloom_body_t;

/* Which key it is that is taken, from 1 on: its line, or string of an array. */
#define ngx_http_bloom_body_number(body)                                      \
    ((body)->json ? (body)->json->strings : (body)->lines)

/* NGX_OK; NGX_DECLINED with body->fault: not of a type that can be read. */
ngx_int_t ngx_http_bloom_body_init(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r, ngx_http_bloom_take_pt take, void *data);

/* Has `run` called when the body begins to come, or cannot; NGX_DONE. */
ngx_int_t ngx_http_bloom_body_start(ngx_http_bloom_body_t *body,
    void (*run)(ngx_http_request_t *r));

/*
 * Reads what has come.  NGX_OK: that was all.  NGX_AGAIN: the client has not
 * sent more; NGX_BUSY: take() said NGX_AGAIN; NGX_DONE: it is the others' turn;
 * NGX_ABORT: take() said NGX_ERROR; NGX_ERROR: body->fault.
 */
ngx_int_t ngx_http_bloom_body_read(ngx_http_bloom_body_t *body);

/*
 * Why nginx could not read a body, in *fault, by the status that it gave; 1 if
 * nobody waits for an answer.
 */
ngx_uint_t ngx_http_bloom_body_broken(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_bloom_fault_t *fault);


/* ---- task ---- */

typedef struct ngx_http_bloom_job_s  ngx_http_bloom_job_t;

struct ngx_http_bloom_job_s {
    ngx_http_bloom_pause_t      pause;
    ngx_bloom_zone_t           *zone;
    ngx_bloom_task_e            kind;
    uint64_t                    ticket;
    ngx_msec_t                  exiting;               /* since when, or 0 */
    ngx_bloom_result_t          result;

    /* when it is done; what it returns ends the request */
    ngx_int_t                 (*done)(ngx_http_request_t *r,
                                      ngx_http_bloom_job_t *job);
};

/*
 * Asks the helper for a task.  NGX_OK: the request waits for it, and job->done
 * answers.  NGX_DECLINED with *fault.  NGX_ERROR.
 */
ngx_int_t ngx_http_bloom_job_start(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind, u_char *path,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_job_t *job),
    ngx_http_bloom_fault_t *fault);

/* A content handler's whole way to a task without a body. */
ngx_int_t ngx_http_bloom_job_run(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_job_t *job));

/* Answers with what a task did, or why it did not. */
ngx_int_t ngx_http_bloom_job_answer(ngx_http_request_t *r,
    ngx_http_bloom_job_t *job);


/* ---- render ---- */

/* An object with all there is to know about a zone. */
void ngx_http_bloom_render_zone(ngx_http_bloom_text_t *text,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);


/* ---- page ---- */

/*
 * Built from dashboard/ into page_html.c: a document of so many bytes, the
 * Content-Security-Policy that allows what is in it, and its tag.
 */
extern const char    ngx_http_bloom_page_html[];
extern const size_t  ngx_http_bloom_page_size;
extern const char    ngx_http_bloom_page_csp[];
extern const char    ngx_http_bloom_page_etag[];

/* 1 if the request prefers HTML to JSON, as browsers say and others do not. */
ngx_uint_t ngx_http_bloom_wants_page(ngx_http_request_t *r);

/* Answers with the page. */
ngx_int_t ngx_http_bloom_page(ngx_http_request_t *r);


/* ---- api ---- */

ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);

/* The value of a request's first header of that name, in lower case; NULL. */
ngx_str_t *ngx_http_bloom_request_header(ngx_http_request_t *r,
    const char *name);

/* The header that tells the generation that serves, if any. */
ngx_int_t ngx_http_bloom_etag(ngx_http_request_t *r, ngx_bloom_info_t *info);

/*
 * Whether that is the one which a request's If-Match names, or the request has
 * none.  NGX_OK, or NGX_DECLINED with *fault.
 */
ngx_int_t ngx_http_bloom_match(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_http_bloom_fault_t *fault);


/* ---- requests: content handlers, for a route of api.c each ---- */

ngx_int_t ngx_http_bloom_get_metrics(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_post_keys(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_get_key(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_get_rates(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_post_test(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_post_reload(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_post_checkpoint(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_get_image(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_put_image(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_API_H_INCLUDED_ */
