/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a request's body while it arrives: as keys, in lines or in a
 * JSON array of strings, or as bytes.  The body may have any size: only what
 * nginx has just read is in memory.
 */

#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_header.h"
#include "bloom_idn.h"
#include "bloom_key.h"


/* Bytes to read in one turn: of keys, and of a body without keys.  Other
 * connections wait meanwhile: 0.3 ms for 3000 keys. */
#define NGX_HTTP_BLOOM_BODY_TURN   (32 * 1024)
#define NGX_HTTP_BLOOM_BODY_BYTES  (128 * 1024)

/* What libidn2 costs: each byte passed takes as long as so many bytes of other
 * keys. */
#define NGX_HTTP_BLOOM_BODY_IDN    10

/* What a line may have beside its key: a byte order mark, CR and LF. */
#define NGX_HTTP_BLOOM_BODY_BESIDE  (3 + 2)

/* The bytes of the longest escape, "%41". */
#define NGX_HTTP_BLOOM_BODY_ESCAPE  3


static ngx_int_t ngx_http_bloom_body_type(ngx_http_bloom_body_t *body);
static ngx_int_t ngx_http_bloom_body_next(ngx_http_bloom_body_t *body);
static ngx_int_t ngx_http_bloom_body_buffers(ngx_http_bloom_body_t *body);
static ngx_int_t ngx_http_bloom_body_broken(ngx_http_bloom_body_t *body,
    ngx_int_t rc);
static ngx_int_t ngx_http_bloom_body_slice(ngx_http_bloom_body_t *body,
    ngx_buf_t *file);
static ngx_int_t ngx_http_bloom_body_bytes(ngx_http_bloom_body_t *body,
    const u_char **pos, const u_char *end);
static ngx_int_t ngx_http_bloom_body_lines(ngx_http_bloom_body_t *body,
    const u_char **pos, const u_char *end);
static ngx_int_t ngx_http_bloom_body_join(ngx_http_bloom_body_t *body,
    const u_char **pos, const u_char *end);
static ngx_int_t ngx_http_bloom_body_joined(ngx_http_bloom_body_t *body);
static ngx_int_t ngx_http_bloom_body_strings(ngx_http_bloom_body_t *body,
    const u_char **pos, const u_char *end);
static ngx_int_t ngx_http_bloom_body_last(ngx_http_bloom_body_t *body);
static ngx_int_t ngx_http_bloom_body_bad_json(ngx_http_bloom_body_t *body);


typedef struct {
    ngx_str_t                   name;
    ngx_uint_t                  json;
} ngx_http_bloom_body_type_t;

static ngx_http_bloom_body_type_t  ngx_http_bloom_body_types[] = {
    { ngx_string("text/plain"), 0 },
    { ngx_string("application/x-www-form-urlencoded"), 0 },
    { ngx_string("application/octet-stream"), 0 },
    { ngx_string("application/json"), 1 },
    { ngx_null_string, 0 }
};


ngx_int_t
ngx_http_bloom_body_init(ngx_http_bloom_body_t *body, ngx_http_request_t *r,
    ngx_uint_t bytes, ngx_http_bloom_body_take_pt take, void *data,
    ngx_http_bloom_error_t *error)
{
    body->request = r;
    body->take = take;
    body->data = data;
    body->error = error;

    if (ngx_http_bloom_header_in(r, "content-encoding") != NULL) {
        return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_TYPE,
                                    "a body with \"Content-Encoding\" cannot "
                                    "be read; send it uncompressed");
    }

    if (bytes) {
        body->turn = NGX_HTTP_BLOOM_BODY_BYTES;
        body->split = ngx_http_bloom_body_bytes;
        return NGX_OK;
    }

    body->turn = NGX_HTTP_BLOOM_BODY_TURN;
    body->split = ngx_http_bloom_body_lines;

    body->line = NGX_HTTP_BLOOM_BODY_KEY;

    if (body->encoded) {
        body->line *= NGX_HTTP_BLOOM_BODY_ESCAPE;
        body->decoded = ngx_palloc(r->pool, body->line);

        if (body->decoded == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_bloom_body_type(body);
}


/* Finds out how the keys are written.  Returns what ngx_http_bloom_body_init()
 * returns. */
static ngx_int_t
ngx_http_bloom_body_type(ngx_http_bloom_body_t *body)
{
    ngx_str_t                   *type;
    ngx_http_request_t          *r;
    ngx_http_bloom_body_type_t  *t;

    r = body->request;

    if (r->headers_in.content_type == NULL) {
        return NGX_OK;
    }

    type = &r->headers_in.content_type->value;

    for (t = ngx_http_bloom_body_types; t->name.len != 0; t++) {
        if (type->len >= t->name.len
            && ngx_strncasecmp(t->name.data, type->data, t->name.len) == 0
            && (type->len == t->name.len || type->data[t->name.len] == ';'
                || type->data[t->name.len] == ' '))
        {
            break;
        }
    }

    if (t->name.len == 0) {
        return ngx_http_bloom_error(body->error, NGX_HTTP_BLOOM_E_TYPE,
                                    "a body of type \"%V\" cannot be read; "
                                    "send one key per line as text/plain, or "
                                    "an array of strings as application/json",
                                    type);
    }

    if (!t->json) {
        return NGX_OK;
    }

    body->split = ngx_http_bloom_body_strings;
    body->json = ngx_palloc(r->pool, sizeof(bloom_json_t));

    if (body->json != NULL) {
        bloom_json_begin(body->json, ngx_palloc(r->pool, body->line),
                         body->line);
    }

    return (body->json != NULL && body->json->buf != NULL) ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_bloom_body_start(ngx_http_bloom_body_t *body,
    void (*run)(ngx_http_request_t *r))
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = body->request;

    if (r->request_body != NULL && !r->reading_body) {

        /* another module has read the body, as "mirror" does, and sends its
         * buffers later */

        body->shared = 1;
        body->in = r->request_body->bufs;
    }

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, run);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {

        /* a part of the body may have arrived */

        body->failed = rc;

        r->main->count++;
        r->keepalive = 0;
        r->lingering_close = 1;

        run(r);
    }

    return NGX_DONE;
}


ngx_int_t
ngx_http_bloom_body_read(ngx_http_bloom_body_t *body)
{
    ngx_int_t      rc;
    const u_char  *pos, *end;

    body->left = body->turn;

    for ( ;; ) {

        if (body->pending.data != NULL) {
            rc = body->take(body->data, &body->pending);

            if (rc != NGX_OK) {
                return rc == NGX_AGAIN ? NGX_AGAIN : NGX_ERROR;
            }

            body->pending.data = NULL;
        }

        rc = ngx_http_bloom_body_next(body);

        if (rc == NGX_DONE) {
            return ngx_http_bloom_body_last(body);
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (body->left <= 0) {
            return NGX_DONE;
        }

        pos = body->pos;
        end = pos + ngx_min(body->last - pos, body->left);

        rc = body->split(body, &body->pos, end);

        body->left -= body->pos - pos;

        if (rc != NGX_OK) {
            return rc;
        }
    }
}


/*
 * Makes sure that there are bytes to read.  Returns NGX_OK; NGX_DONE at the end
 * of the body; NGX_AGAIN if the client has not sent more yet; NGX_ERROR if it
 * cannot be read.
 */
static ngx_int_t
ngx_http_bloom_body_next(ngx_http_bloom_body_t *body)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = body->request;

    for ( ;; ) {

        rc = ngx_http_bloom_body_buffers(body);

        if (rc != NGX_DONE) {
            return rc;
        }

        if (body->shared || r->request_body == NULL
            || r->request_body->bufs == NULL)
        {
            if (body->failed) {
                return ngx_http_bloom_body_broken(body, body->failed);
            }

            if (body->shared || !r->reading_body) {
                return NGX_DONE;
            }

            rc = ngx_http_read_unbuffered_request_body(r);

            if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
                body->failed = rc;

            } else if (r->request_body->bufs == NULL && r->reading_body) {
                return NGX_AGAIN;
            }
        }

        body->in = r->request_body->bufs;
        r->request_body->bufs = NULL;
    }
}


/*
 * Finds bytes in the buffers.  Returns NGX_OK; NGX_DONE if they are all read;
 * NGX_ERROR if a file cannot be read.  nginx uses its buffers again when it
 * reads more, which is when they are all read here; those that are shared stay
 * as they are.
 */
static ngx_int_t
ngx_http_bloom_body_buffers(ngx_http_bloom_body_t *body)
{
    ngx_buf_t    *b;
    ngx_int_t     rc;
    ngx_chain_t  *cl;

    while (body->pos == body->last) {

        if (body->in == NULL) {
            return NGX_DONE;
        }

        b = body->in->buf;

        if (ngx_buf_in_memory(b)) {
            body->pos = b->pos;
            body->last = b->last;

            if (!body->shared) {
                b->pos = b->last;
            }

        } else if (b->in_file) {
            rc = ngx_http_bloom_body_slice(body, b);

            if (rc == NGX_OK) {
                continue;
            }

            if (rc != NGX_DONE) {
                return NGX_ERROR;
            }
        }

        cl = body->in;
        body->in = cl->next;

        if (!body->shared) {
            ngx_free_chain(body->request->pool, cl);
        }
    }

    return NGX_OK;
}


/*
 * Sets the error: the reason why nginx could not read the body; `rc` is the
 * status that nginx gave.  Returns NGX_ERROR.
 *
 * nginx treats a connection that the client has closed for writing as gone.
 * Such a client may still read, so it is told how much of its body was read.
 */
static ngx_int_t
ngx_http_bloom_body_broken(ngx_http_bloom_body_t *body, ngx_int_t rc)
{
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_bloom_error_t  *error;

    r = body->request;
    error = body->error;
    c = r->connection;

    switch (rc) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                                    "the body is larger than "
                                    "\"client_max_body_size\" allows; send "
                                    "less, or set \"client_max_body_size 0\" "
                                    "in the endpoint's location");

    case NGX_HTTP_REQUEST_TIME_OUT:
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             "the body did not arrive in time; send it again");
        body->gone = 1;
        return NGX_ERROR;

    case NGX_HTTP_BAD_REQUEST:
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             c->error ? "the connection ended before the body "
                                        "was complete; send it again"
                                      : "the chunks of the body are malformed");

        if (c->error && c->read->eof && !c->read->error && r->stream == NULL) {
            c->error = 0;
            r->keepalive = 0;
        }

        break;

    default:
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_FAILED,
                             "the body could not be read; see the error log");
    }

    body->gone = c->error;

    return NGX_ERROR;
}


/* Reads the next bytes of a buffer in a file.  Returns NGX_OK; NGX_DONE at the
 * end of the buffer; NGX_ERROR if they cannot be read. */
static ngx_int_t
ngx_http_bloom_body_slice(ngx_http_bloom_body_t *body, ngx_buf_t *b)
{
    off_t    pos;
    size_t   size;
    ssize_t  n;

    if (body->slice == NULL) {
        body->slice = ngx_pnalloc(body->request->pool,
                                  NGX_HTTP_BLOOM_BODY_TURN);
        if (body->slice == NULL) {
            return NGX_ERROR;
        }
    }

    pos = b->file_pos + body->offset;
    size = (size_t) ngx_min(b->file_last - pos, NGX_HTTP_BLOOM_BODY_TURN);

    if (size == 0) {
        body->offset = 0;
        return NGX_DONE;
    }

    n = ngx_read_file(b->file, body->slice, size, pos);

    if (n <= 0) {
        return ngx_http_bloom_error(body->error, NGX_HTTP_BLOOM_E_FAILED,
                                    "the body could not be read from \"%V\"; "
                                    "see the error log", &b->file->name);
    }

    body->offset += n;

    body->pos = body->slice;
    body->last = body->slice + n;

    return NGX_OK;
}


/*
 * Offers a key to take().  Returns NGX_OK; NGX_DONE if the key is taken and the
 * turn is over; NGX_AGAIN if the next read offers it again; NGX_ERROR if take()
 * wants no more keys.
 */
static ngx_inline ngx_int_t
ngx_http_bloom_body_offer(ngx_http_bloom_body_t *body, bloom_key_t *key)
{
    uint64_t   spent;
    ngx_int_t  rc;
    ngx_str_t  text;

    text.data = (u_char *) key->data;
    text.len = ngx_min(key->len, body->line);

    if (body->decoded != NULL && memchr(text.data, '%', text.len) != NULL) {
        text.len = bloom_key_decode(body->decoded, text.data, text.len,
                                    BLOOM_DECODE_URI);
        text.data = body->decoded;
    }

    text.len = ngx_min(text.len, NGX_HTTP_BLOOM_BODY_KEY);

    spent = bloom_idn_spent();

    rc = body->take(body->data, &text);

    body->left -= (ssize_t) (bloom_idn_spent() - spent)
                  * NGX_HTTP_BLOOM_BODY_IDN;

    if (rc == NGX_OK) {
        return body->left > 0 ? NGX_OK : NGX_DONE;
    }

    if (rc == NGX_AGAIN) {
        body->pending = text;
        return NGX_AGAIN;
    }

    return NGX_ERROR;
}


/* Offers a line as a key, unless it is empty, without the byte order mark of
 * the first line. */
static ngx_inline ngx_int_t
ngx_http_bloom_body_line(ngx_http_bloom_body_t *body, bloom_key_t *key)
{
    size_t  mark;

    if (body->lines++ == 0) {
        mark = bloom_key_mark(key->data, key->len);
        key->data += mark;
        key->len -= mark;
    }

    return key->len != 0 ? ngx_http_bloom_body_offer(body, key) : NGX_OK;
}


static ngx_int_t
ngx_http_bloom_body_bytes(ngx_http_bloom_body_t *body, const u_char **pos,
    const u_char *end)
{
    ngx_str_t  bytes;

    bytes.data = (u_char *) *pos;
    bytes.len = end - *pos;

    *pos = end;

    return body->take(body->data, &bytes);
}


static ngx_int_t
ngx_http_bloom_body_lines(ngx_http_bloom_body_t *body, const u_char **pos,
    const u_char *end)
{
    ngx_int_t    rc;
    bloom_key_t  key;

    if (body->joined_len != 0) {
        rc = ngx_http_bloom_body_join(body, pos, end);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    while (bloom_key_next(&key, pos, end, BLOOM_SPLIT_LINES, 0)) {
        rc = ngx_http_bloom_body_line(body, &key);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return *pos == end ? NGX_OK : ngx_http_bloom_body_join(body, pos, end);
}


/* Appends bytes to a line that began in an earlier buffer.  Offers the line if
 * they end it. */
static ngx_int_t
ngx_http_bloom_body_join(ngx_http_bloom_body_t *body, const u_char **pos,
    const u_char *end)
{
    size_t         n, fit, room;
    const u_char  *stop;

    room = body->line + NGX_HTTP_BLOOM_BODY_BESIDE;

    if (body->joined == NULL) {
        body->joined = ngx_palloc(body->request->pool, room);

        if (body->joined == NULL) {
            return NGX_ERROR;
        }
    }

    stop = memchr(*pos, '\n', end - *pos);

    n = (stop != NULL ? stop + 1 : end) - *pos;
    fit = ngx_min(n, room - body->joined_len);

    ngx_memcpy(body->joined + body->joined_len, *pos, fit);
    body->joined_len += fit;
    body->cut |= (fit < n);
    *pos += n;

    return stop != NULL ? ngx_http_bloom_body_joined(body) : NGX_OK;
}


/* Offers the line that came in several buffers. */
static ngx_int_t
ngx_http_bloom_body_joined(ngx_http_bloom_body_t *body)
{
    bloom_key_t    key;
    const u_char  *joined;

    joined = body->joined;
    key.data = joined;
    key.len = body->joined_len;

    if (!body->cut) {
        (void) bloom_key_next(&key, &joined, joined + body->joined_len,
                              BLOOM_SPLIT_LINES, 1);
    }

    body->joined_len = 0;
    body->cut = 0;

    return ngx_http_bloom_body_line(body, &key);
}


static ngx_int_t
ngx_http_bloom_body_strings(ngx_http_bloom_body_t *body, const u_char **pos,
    const u_char *end)
{
    int          found;
    ngx_int_t    rc;
    bloom_key_t  key;

    for ( ;; ) {
        found = bloom_json_next(body->json, &key, pos, end);

        if (found == 0) {
            return NGX_OK;
        }

        if (found == -1) {
            return ngx_http_bloom_body_bad_json(body);
        }

        rc = ngx_http_bloom_body_offer(body, &key);

        if (rc != NGX_OK) {
            return rc;
        }
    }
}


/* Reads what is left at the end of the body.  May be called again. */
static ngx_int_t
ngx_http_bloom_body_last(ngx_http_bloom_body_t *body)
{
    if (body->json != NULL) {
        return bloom_json_end(body->json) == 0
               ? NGX_OK : ngx_http_bloom_body_bad_json(body);
    }

    return body->joined_len != 0 ? ngx_http_bloom_body_joined(body) : NGX_OK;
}


/* Sets the error.  Bytes are counted from 1, as lines are. */
static ngx_int_t
ngx_http_bloom_body_bad_json(ngx_http_bloom_body_t *body)
{
    return ngx_http_bloom_error(body->error, NGX_HTTP_BLOOM_E_BAD_JSON,
                                "byte %uL: %s", body->json->offset + 1,
                                body->json->error);
}
