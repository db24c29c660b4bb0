/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file checks images against the guards of a zone, and records which image
 * was accepted last.
 */

#include "ngx_bloom_guard.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "bloom_guard.h"
#include "bloom_not_keys.h"
#include "bloom_utf8.h"


/* Bytes of a key in a message, at most, and room for them. */
#define NGX_BLOOM_GUARD_SHOWN  64
#define NGX_BLOOM_GUARD_TEXT   (4 * NGX_BLOOM_GUARD_SHOWN + sizeof("..."))

/* How long to wait for the lock `keeper`, ms. */
#define NGX_BLOOM_GUARD_WAIT   1000


/* One file of keys while it is checked. */
typedef struct {
    ngx_bloom_guard_t  *guard;
    ngx_uint_t          which;           /* NGX_BLOOM_GUARD_HAVE, ... */
    ngx_str_t          *name;
    ngx_fd_t            fd;
    size_t              size;
    u_char             *data;            /* its contents */
    u_char             *buf;             /* for a key in its key form */
    uint64_t            line;            /* number of the last line */
} ngx_bloom_guard_file_t;


static ngx_int_t ngx_bloom_guard_check(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits);
static ngx_int_t ngx_bloom_guard_open(ngx_bloom_guard_file_t *file);
static ngx_int_t ngx_bloom_guard_read(ngx_bloom_guard_file_t *file);
static ngx_int_t ngx_bloom_guard_look(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits);
static ngx_int_t ngx_bloom_guard_look_at(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits, bloom_key_t *key);
static u_char *ngx_bloom_guard_show(u_char text[NGX_BLOOM_GUARD_TEXT],
    const bloom_key_t *key);
static ngx_int_t ngx_cdecl ngx_bloom_guard_refuse(ngx_bloom_guard_t *guard,
    ngx_err_t err, ngx_uint_t message, ...);
static ngx_int_t ngx_bloom_guard_useless(ngx_bloom_guard_file_t *file,
    ngx_err_t err, const char *what);
static ngx_uint_t ngx_bloom_guard_last_in_memory(ngx_bloom_shctx_t *sh,
    bloom_accepted_t *last);
static ngx_uint_t ngx_bloom_guard_push(bloom_base_t *base,
    const bloom_accepted_t *accepted);


/* the parameters, by number of the file */
static const char  *ngx_bloom_guard_names[] = { "must_have", "must_not_have" };


typedef enum {
    NGX_BLOOM_GUARD_LACKS = 0,
    NGX_BLOOM_GUARD_HAS,
    NGX_BLOOM_GUARD_FEW,
    NGX_BLOOM_GUARD_CHANGED,
    NGX_BLOOM_GUARD_CONTRADICTED,
    NGX_BLOOM_GUARD_USELESS,
    NGX_BLOOM_GUARD_INVALID
} ngx_bloom_guard_message_e;

/* What guards say about an image that they refuse.  The comments say what to
 * do, and docs/operations.md has them: see `make docs`. */
static const char  *ngx_bloom_guard_messages[] = {

    /* Check whether the list still has the key. If it does, the image was built
     * from another list or from a part of the list: build it again. If the list
     * rightly lacks the key, delete this line of the file. */
    "lacks the key \"%s\" of line %uL of \"must_have=%V\"; check the list that "
    "it was built from",

    /* Look for the key in the list, and for the part of it that the message
     * names. If the list has it, leave it out, for example with
     * [`--without`](key-forms.md#lists). If the list lacks it, the key is a
     * false positive: build the image again, which gives the image another
     * seed, or with [`--except`](key-forms.md#lists), which makes an exception
     * of it. */
    "has the key \"%s\"%s%s%s of line %uL of \"must_not_have=%V\"; take it out "
    "of the list that the image was built from or, if no list has it, build "
    "the image again, with another seed",

    /* Check the list and the query. If the number is right, lower `min_keys`
     * and reload nginx. */
    "has %uL key%s, and \"min_keys\" demands %uL; check the list that it was "
    "built from",

    /* Check the list and the query. If the change is right, send `POST
     * reload?force=true`, or upload the image with `?force=true`. If the change
     * stops a start, raise the parameter for this start. */
    "has %uL key%s, %s of the image that was accepted last, and \"%s\" allows "
    "%s; check the list that it was built from, or, if the change is right, "
    "load or upload it with \"?force=true\" or, to start with it, raise \"%s\"",

    /* The header of the image states another number of keys than its bits have:
     * it was not written as it is now. Build it again. */
    "states %uL key%s, and its bits are those of %s, about %uL, so \"%s\" "
    "cannot be checked; build it again",

    /* The file of keys is missing, cannot be read, is not a regular file, is
     * larger than 16 MiB, is no list of keys (such as UTF-16 or gzip data), or
     * has no key. The message says what to do. */
    "is not checked: \"%s=%V\" %s",

    /* The key of this line of the file is invalid: correct it. */
    "is not checked: \"%s\" %s; correct line %uL of \"%s=%V\""
};


ngx_int_t
ngx_bloom_guard_header(ngx_bloom_guard_t *guard, ngx_bloom_zone_t *zone,
    const bloom_image_t *image, ngx_uint_t force)
{
    const char                        *name;
    ngx_bloom_guards_t                *guards;
    bloom_accepted_t                   last;
    bloom_guard_excess_t               excess;

    guards = &zone->guards;

    if (image->items < guards->min_keys) {
        return ngx_bloom_guard_refuse(guard, 0, NGX_BLOOM_GUARD_FEW,
                                      image->items,
                                      ngx_bloom_plural(image->items),
                                      guards->min_keys);
    }

    if (!bloom_guard_limited(&guards->max) || force) {
        return NGX_OK;
    }

    if (!ngx_bloom_guard_last(zone, &last)
        || !bloom_guard_exceeds(&guards->max, last.keys, image->items,
                                &excess))
    {
        return NGX_OK;
    }

    name = excess.loss ? "max_loss" : "max_growth";

    return ngx_bloom_guard_refuse(guard, 0, NGX_BLOOM_GUARD_CHANGED,
                                  image->items, ngx_bloom_plural(image->items),
                                  excess.change, name, excess.allowed, name);
}


ngx_int_t
ngx_bloom_guard_bits(ngx_bloom_guard_t *guard, ngx_bloom_zone_t *zone,
    const bloom_image_t *image, ngx_uint_t force, const uint64_t *bits_set)
{
    int                  differs;
    uint64_t             items;
    const char          *name;
    ngx_bloom_guards_t  *guards;

    guards = &zone->guards;

    if (guards->min_keys == 0
        && (!bloom_guard_limited(&guards->max) || force))
    {
        return NGX_OK;
    }

    differs = bloom_guard_contradicts(image, bits_set, &items);

    if (differs == 0) {
        return NGX_OK;
    }

    name = guards->min_keys != 0 ? "min_keys"
           : guards->max.loss.kind != BLOOM_GUARD_ANY ? "max_loss"
           : "max_growth";

    return ngx_bloom_guard_refuse(guard, 0, NGX_BLOOM_GUARD_CONTRADICTED,
                                  image->items,
                                  ngx_bloom_plural(image->items),
                                  differs < 0 ? "fewer" : "more", items,
                                  name);
}


ngx_int_t
ngx_bloom_guard_keys(ngx_bloom_guard_t *guard, ngx_bloom_zone_t *zone,
    const ngx_bloom_zone_bits_t *bits)
{
    ngx_int_t               rc;
    ngx_bloom_guard_file_t  file;

    rc = NGX_OK;
    file.guard = guard;

    for (file.which = 0;
         rc == NGX_OK && file.which < NGX_BLOOM_GUARD_FILES;
         file.which++)
    {
        file.name = &zone->guards.file[file.which];

        if (file.name->len == 0) {
            continue;
        }

        file.fd = NGX_INVALID_FILE;
        file.data = NULL;
        file.buf = malloc(bloom_form_room(bits->form, BLOOM_KEY_MAX) + 1);

        rc = ngx_bloom_guard_check(&file, bits);

        ngx_bloom_io_close(&file.fd);
        free(file.data);
        free(file.buf);
    }

    return rc;
}


static ngx_int_t
ngx_bloom_guard_check(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits)
{
    return (ngx_bloom_guard_open(file) == NGX_OK
            && ngx_bloom_guard_read(file) == NGX_OK)
           ? ngx_bloom_guard_look(file, bits) : NGX_ERROR;
}


static ngx_int_t
ngx_bloom_guard_open(ngx_bloom_guard_file_t *file)
{
    ngx_file_info_t  fi;

    /* non-blocking: a FIFO must not hold up this process */

    file->fd = ngx_open_file(file->name->data,
                             NGX_FILE_RDONLY|NGX_FILE_NONBLOCK|O_CLOEXEC
                             |O_NOCTTY,
                             NGX_FILE_OPEN, 0);

    if (file->fd == NGX_INVALID_FILE) {
        return ngx_bloom_guard_useless(file, ngx_errno, "cannot be opened; put "
                                       "a file there that the workers' user "
                                       "may read");
    }

    if (ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_bloom_guard_useless(file, ngx_errno, "cannot be examined");
    }

    if (!ngx_is_file(&fi)) {
        return ngx_bloom_guard_useless(file, 0, "is not a regular file; put a "
                                       "file there that has one key on each "
                                       "line");
    }

    if (ngx_file_size(&fi) > BLOOM_GUARD_FILE_MAX) {
        return ngx_bloom_guard_useless(file, 0, "has more than 16 MiB; keep "
                                       "only samples in it");
    }

    file->size = (size_t) ngx_file_size(&fi);
    file->data = malloc(file->size + 1);

    return file->data != NULL && file->buf != NULL
           ? NGX_OK : ngx_bloom_guard_useless(file, ENOMEM, "cannot be read");
}


/* Reads the file, and one byte more than it had when it was opened. */
static ngx_int_t
ngx_bloom_guard_read(ngx_bloom_guard_file_t *file)
{
    ssize_t      n;
    const char  *what;

    n = ngx_bloom_io_read(file->fd, file->data, file->size + 1, 0);

    if (n == NGX_ERROR) {
        return ngx_bloom_guard_useless(file, ngx_errno, "cannot be read");
    }

    if ((size_t) n != file->size) {
        return ngx_bloom_guard_useless(file, 0, "changed while it was read; "
                                       "replace it by a rename, and try again");
    }

    what = bloom_not_keys(file->data, file->size,
                          BLOOM_NOT_KEYS_LINES|BLOOM_NOT_KEYS_WHOLE);

    return what == NULL ? NGX_OK : ngx_bloom_guard_useless(file, 0, what);
}


/* Looks up the keys of the file. */
static ngx_int_t
ngx_bloom_guard_look(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits)
{
    uint64_t        keys;
    bloom_key_t     key;
    const uint8_t  *pos, *end;

    pos = file->data + bloom_key_mark(file->data, file->size);
    end = file->data + file->size;

    file->line = 0;
    keys = 0;

    while (bloom_guard_next(&key, &pos, end, &file->line)) {

        if (key.len == 0) {
            continue;
        }

        keys++;

        if (ngx_bloom_guard_look_at(file, bits, &key) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return keys != 0
           ? NGX_OK
           : ngx_bloom_guard_useless(file, 0, "has no key; write one into it, "
                                     "or remove the parameter");
}


/* Checks that the image has, or lacks, a key. */
static ngx_int_t
ngx_bloom_guard_look_at(ngx_bloom_guard_file_t *file,
    const ngx_bloom_zone_bits_t *bits, bloom_key_t *key)
{
    u_char         text[NGX_BLOOM_GUARD_TEXT], found[NGX_BLOOM_GUARD_TEXT];
    unsigned       i;
    ngx_str_t     *name;
    const char    *why, *what;
    bloom_key_t    canonical;
    bloom_form_t   form;

    name = file->name;
    what = ngx_bloom_guard_names[file->which];

    why = (key->len > BLOOM_KEY_MAX) ? BLOOM_KEY_TOO_LONG : bloom_not_key(key);

    /* a line of another format would be looked up, and never be found */

    if (why == NULL) {
        why = bloom_form_accept(bits->form, &canonical, key, file->buf);
    }

    if (why == NULL) {
        why = bloom_form_expand(bits->form, &form, key, file->buf);
    }

    if (why != NULL) {
        return ngx_bloom_guard_refuse(file->guard, 0, NGX_BLOOM_GUARD_INVALID,
                                      ngx_bloom_guard_show(text, key), why,
                                      file->line, what, name);
    }

    for (i = 0; i < form.n; i++) {
        if (ngx_bloom_zone_has(bits, &form.expression[i])) {
            break;
        }
    }

    if (file->which == NGX_BLOOM_GUARD_HAVE && i == form.n) {
        return ngx_bloom_guard_refuse(file->guard, 0, NGX_BLOOM_GUARD_LACKS,
                                      ngx_bloom_guard_show(text, key),
                                      file->line, name);
    }

    if (file->which == NGX_BLOOM_GUARD_HAVE_NOT && i < form.n) {
        ngx_bloom_guard_show(found, &form.expression[i]);

        return ngx_bloom_guard_refuse(file->guard, 0, NGX_BLOOM_GUARD_HAS,
                                      ngx_bloom_guard_show(text, key),
                                      form.n > 1 ? ", by \"" : "",
                                      form.n > 1 ? (char *) found : "",
                                      form.n > 1 ? "\"," : "",
                                      file->line, name);
    }

    return NGX_OK;
}


/* Writes the beginning of a key for a message, null-terminated.  Bytes that are
 * not visible become \xNN.  Returns the text. */
static u_char *
ngx_bloom_guard_show(u_char text[NGX_BLOOM_GUARD_TEXT], const bloom_key_t *key)
{
    size_t          len;
    u_char         *to;
    const uint8_t  *p, *end;

    to = text;
    end = key->data + ngx_min(key->len, NGX_BLOOM_GUARD_SHOWN);

    for (p = key->data; p < end; /* void */ ) {
        len = bloom_utf8_len(p, end - p);

        if (len == 0 || bloom_utf8_is_hidden(p, len)) {
            to = ngx_sprintf(to, "\\x%02xi", (ngx_int_t) *p++);
            continue;
        }

        to = ngx_cpymem(to, p, len);
        p += len;
    }

    (void) ngx_sprintf(to, "%s%Z", p < key->data + key->len ? "..." : "");

    return text;
}


static ngx_int_t ngx_cdecl
ngx_bloom_guard_refuse(ngx_bloom_guard_t *guard, ngx_err_t err,
    ngx_uint_t message, ...)
{
    u_char   *p;
    va_list   args;

    guard->err = err;

    va_start(args, message);
    p = ngx_vslprintf((u_char *) guard->error,
                      (u_char *) guard->error + sizeof(guard->error) - 1,
                      ngx_bloom_guard_messages[message], args);
    va_end(args);

    *p = '\0';

    return NGX_ERROR;
}


/* Refuses an image because its keys cannot be checked. */
static ngx_int_t
ngx_bloom_guard_useless(ngx_bloom_guard_file_t *file, ngx_err_t err,
    const char *what)
{
    return ngx_bloom_guard_refuse(file->guard, err, NGX_BLOOM_GUARD_USELESS,
                                  ngx_bloom_guard_names[file->which],
                                  file->name, what);
}


ngx_uint_t
ngx_bloom_guard_last(ngx_bloom_zone_t *zone, bloom_accepted_t *last)
{
    bloom_base_t  base;

    if (zone->state != NULL && zone->state->control != NULL) {
        ngx_bloom_base_file_get(zone->state, &base);
        *last = base.accepted[0];

        if (last->loaded != 0) {
            return 1;
        }
    }

    /* the directory of a zone whose journal is new, and memory that was
     * recreated, do not have it yet */

    return ngx_bloom_guard_last_in_memory(zone->sh, last)
           || (zone->before != NULL
               && ngx_bloom_guard_last_in_memory(zone->before->sh, last));
}


static ngx_uint_t
ngx_bloom_guard_last_in_memory(ngx_bloom_shctx_t *sh, bloom_accepted_t *last)
{
    uint64_t  number;

    number = (sh != NULL) ? __atomic_load_n(&sh->accepts, __ATOMIC_ACQUIRE)
                          : 0;

    if (number != 0) {
        *last = sh->accepted[number & 1];
    }

    return number != 0;
}


void
ngx_bloom_guard_accept(ngx_bloom_zone_t *zone, const bloom_image_t *image,
    uint64_t loaded)
{
    ngx_int_t           rc;
    bloom_base_t        base;
    bloom_accepted_t    accepted;
    ngx_bloom_state_t  *state;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    state = zone->state;

    ngx_memzero(&accepted, sizeof(bloom_accepted_t));

    ngx_memcpy(accepted.build_id, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    accepted.keys = image->items;
    accepted.as_of = image->as_of;
    accepted.loaded = ngx_max(loaded, 1);
    accepted.position = ngx_bloom_zone_position(zone, image);

    if (state == NULL) {
        sh->accepted[(sh->accepts + 1) & 1] = accepted;

        /* a process that dies before the number changes changes nothing */

        ngx_bloom_fault("accept");

        __atomic_store_n(&sh->accepts, sh->accepts + 1, __ATOMIC_SEQ_CST);
        return;
    }

    if (ngx_bloom_lock(&state->control->keeper, NGX_BLOOM_GUARD_WAIT)
        != NGX_OK)
    {
        ngx_set_errno(NGX_EBUSY);
        rc = NGX_ERROR;

    } else {
        ngx_bloom_fault("accept");

        ngx_bloom_base_file_get(state, &base);

        rc = ngx_bloom_guard_push(&base, &accepted)
             ? ngx_bloom_base_file_put(state, &base) : NGX_OK;

        ngx_bloom_unlock(&state->control->keeper);
    }

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, zone->shm_zone->shm.log, ngx_errno,
                      "bloom zone \"%V\" could not record in \"%V/base\" that "
                      "its image was accepted: \"max_loss\" and \"max_growth\" "
                      "compare the next one with the image before",
                      &zone->name, &state->path);
    }
}


/* Makes an image the last accepted one of an entry.  Returns 1; or 0 if it is
 * that already. */
static ngx_uint_t
ngx_bloom_guard_push(bloom_base_t *base, const bloom_accepted_t *accepted)
{
    ngx_uint_t         i;
    bloom_accepted_t   found;

    for (i = 0; i < 2; i++) {
        if (base->accepted[i].loaded != 0
            && ngx_memcmp(base->accepted[i].build_id, accepted->build_id,
                          BLOOM_IMAGE_BUILD_ID_LEN)
               == 0)
        {
            break;
        }
    }

    if (i == 0) {
        return 0;
    }

    /* the time of its first load stays */

    found = (i == 1) ? base->accepted[1] : *accepted;

    base->accepted[1] = base->accepted[0];
    base->accepted[0] = found;

    return 1;
}


ngx_int_t
ngx_bloom_guard_form(ngx_bloom_zone_t *zone, const bloom_image_t *image,
    char error[BLOOM_IMAGE_ERROR_LEN])
{
    const char  *wants;

    if (zone->source.len != 0 && image->source.len != 0
        && !bloom_source_is(&image->source, zone->source.data,
                            zone->source.len))
    {
        snprintf(error, BLOOM_IMAGE_ERROR_LEN,
                 "has changes of the source \"%.*s\", and the zone takes its "
                 "changes from another one (\"bloom_source\"): build it with "
                 "\"ngx-bloom build --source\" for that source",
                 (int) image->source.len, image->source.name);

        return NGX_ERROR;
    }

    if (zone->key_form == -1 || image->key_form == (uint32_t) zone->key_form) {
        return NGX_OK;
    }

    wants = bloom_form_name((uint32_t) zone->key_form);

    snprintf(error, BLOOM_IMAGE_ERROR_LEN,
             "has the key form \"%s\", and the zone wants \"%s\" "
             "(\"form=%s\"): build it with \"ngx-bloom build --form %s\"",
             bloom_form_name(image->key_form), wants, wants, wants);

    return NGX_ERROR;
}
