/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the endpoint's errors, with codes and statuses,
 * and writes errors in JSON.
 */

#include "ngx_http_bloom_error.h"


typedef struct {
    ngx_uint_t                  status;
    const char                 *code;
} ngx_http_bloom_error_entry_t;


/* By ngx_http_bloom_error_code_e.  docs/api.md has the comments, which say when
 * an error occurs, and what to do. */
static ngx_http_bloom_error_entry_t  ngx_http_bloom_errors[] = {

    { 200, "none" },

    /* The query of a request that changes a zone, of `POST test` or of `GET
     * removed` has an unknown argument, one twice, or one with an invalid value;
     * the key of `GET keys` or `DELETE keys`, or an argument of `POST changes` or
     * `gap`, is missing; or `position=` is before `after=`.
     * Remedy: correct the query: the message names the argument, and what it must
     * be. */
    { 400, "bad_query" },

    /* The key in the query has more than 65,535 bytes. In a body, such a key is
     * [invalid](#bodies-with-keys), and no error.
     * Remedy: send a shorter key. */
    { 400, "bad_key" },

    /* The body is not an array of strings. The message has the position of the
     * wrong byte, counted from 1.
     * Remedy: send an array of strings, or lines with another
     * `Content-Type`. */
    { 400, "bad_json" },

    /* The body ends too early, is wrongly chunked, is empty instead of an
     * image, or is only a part of an image; a `DELETE` or `POST clear` has a
     * body; or a line of `POST changes` begins with neither `+` nor `-`.
     * Remedy: send the whole body again; the message says what is wrong with
     * it. */
    { 400, "bad_body" },

    /* The location has no `write=on`.
     * Remedy: write `bloom_api write=on` in the location. */
    { 403, "read_only" },

    /* The location has neither `image=on` nor `write=on`.
     * Remedy: write `bloom_api image=on` in the location. */
    { 403, "no_image" },

    /* A page of another site asks for a change or an image.
     * Remedy: send the request from the page of the endpoint, or from a
     * program. */
    { 403, "cross_site" },

    /* There is no such path.
     * Remedy: `GET /` lists the requests. */
    { 404, "not_found" },

    /* There is no such zone.
     * Remedy: `GET /zones` lists the zones. */
    { 404, "unknown_zone" },

    /* The path takes other methods.
     * Remedy: use a method in `Allow`. The message about `DELETE` and `PUT` of
     * keys says what to do instead. */
    { 405, "method_not_allowed" },

    /* Another image is being loaded.
     * Remedy: send the request again when that load has ended. */
    { 409, "load_in_progress" },

    /* The zone has `file=` and no journal, or it has a source.
     * Remedy: give the zone a journal, or send the change to its source. */
    { 409, "no_additions" },

    /* The zone has `file=` and no journal, or it has a source.
     * Remedy: give the zone a journal, or send the change to its source. */
    { 409, "no_removals" },

    /* `changes` and `gap` need `bloom_source`, and `clear?only=` must not have
     * it; `reload` needs `file=`; images and checkpoints need a state directory;
     * a zone whose keys expire sends and takes no images.
     * Remedy: the message says what the zone lacks. */
    { 409, "not_possible" },

    /* The zone is [damaged](operations.md#lost-keys): an image of it would lack
     * added keys, and another zone that loads it would answer "absent" for
     * them.
     * Remedy: repair the zone, and get the image again. */
    { 409, "damaged" },

    /* The zone has another source.
     * Remedy: send the changes to the zones of their source. */
    { 409, "wrong_source" },

    /* The zone is at another position of its source, which the member
     * `position` names.
     * Remedy: continue from `position`, and from `offset` if it is there. */
    { 409, "wrong_position" },

    /* `serving=`, or `from=` of `GET removed`, names another generation; or a
     * change has `If-Match`.
     * Remedy: get the zone's state, and decide again. */
    { 412, "generation_changed" },

    /* The chunks of a body exceed `client_max_body_size`; an upload is larger
     * than any image that the zone has room for (the message has the zone size
     * to configure); a test has more than 1,000,000 keys; or the changes do not
     * fit into a record of the journal: those of `source.max_body` bytes do,
     * unless keys grow in the zone's key form.
     * Remedy: send less at a time, or configure the limit that the message
     * has. */
    { 413, "too_large" },

    /* The body has another `Content-Type` than [those
     * above](#bodies-with-keys), or a `Content-Encoding`.
     * Remedy: send the body with such a type, and not encoded. */
    { 415, "unsupported_type" },

    /* The image cannot be read by the workers' user (the message has its owner
     * and mode), is damaged, is not an image, has another key form than the
     * zone's `form=` (the message has both), lacks the `as_of` that `max_age`
     * needs, has an `as_of` more than an hour in the future, has changes of
     * another source, may lack keys that were already dropped from the journal,
     * is a checkpoint of a zone whose keys expire, or is refused by a
     * [guard](directives.md#bloom_guard) of the zone (the message has the guard,
     * and the key or both numbers of keys).
     * Remedy: correct the image or its build. The old image keeps serving. */
    { 422, "image_refused" },

    /* The journal cannot be written or synchronised, another process has held
     * the lock of the zone for ten seconds, or the zone is not loaded: the
     * message says which. The last keys of the body were refused, as many as
     * `refused` says.
     * Remedy: free or repair the [disk](operations.md#a-full-disk), or look for
     * the [process](operations.md#a-stopped-process), and send these keys
     * again. */
    { 503, "journal_unavailable" },

    /* A system call failed; the process that did the work died; the helper
     * process has given no sign of life for a minute; or the result of the
     * request is no longer known. The message says which.
     * Remedy: send the request again. */
    { 503, "failed" },

    /* Other responses, which clients have not read yet, take the memory: see
     * [bounds](#bounds).
     * Remedy: send the request again later, or ask for less at a time. */
    { 503, "busy" },

    /* The image does not fit the zone (the message has the zone size to
     * configure), or there is not enough memory, or not enough disk space for
     * `GET image` (the message has the bytes needed and left), or the zone has
     * no room for more removed keys (`removals=`), and of `POST changes`
     * nothing was applied.
     * Remedy: raise the limit that the message has, or free memory or disk
     * space. */
    { 507, "no_room" }
};


ngx_int_t ngx_cdecl
ngx_http_bloom_error(ngx_http_bloom_error_t *error,
    ngx_http_bloom_error_code_e code, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    va_start(args, fmt);
    p = ngx_vslprintf(error->message,
                      error->message + NGX_HTTP_BLOOM_ERROR_LEN, fmt, args);
    va_end(args);

    error->code = code;
    error->len = p - error->message;

    return NGX_DECLINED;
}


void
ngx_http_bloom_error_busy(ngx_http_bloom_error_t *error)
{
    ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BUSY,
                         "this worker's %d bytes for responses are in use, "
                         "since clients have not read theirs yet; try again "
                         "later, or ask for less at a time",
                         NGX_HTTP_BLOOM_TEXT_MAX);
}


void
ngx_http_bloom_error_put(ngx_http_bloom_text_t *text,
    ngx_http_bloom_error_t *error)
{
    bloom_json_put_object(&text->json, "error");
    bloom_json_put_text(&text->json, "code",
                        ngx_http_bloom_errors[error->code].code);
    bloom_json_put_bytes(&text->json, "message", error->message, error->len);
    bloom_json_put_end(&text->json);
}


ngx_uint_t
ngx_http_bloom_error_status(ngx_http_bloom_error_t *error)
{
    return ngx_http_bloom_errors[error->code].status;
}
