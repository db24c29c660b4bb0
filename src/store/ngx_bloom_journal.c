
#include "ngx_bloom_journal.h"
#include "ngx_bloom_io.h"

#include <dirent.h>
#include <sys/random.h>


#define NGX_BLOOM_WINDOW       (1024 * 1024)

/* The first segment is small: most zones are never added to. */
#define NGX_BLOOM_FIRST_SIZE   (1024 * 1024)


static ngx_int_t ngx_bloom_reader_segment(ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_reader_fill(ngx_bloom_reader_t *reader, size_t len);
static ngx_uint_t ngx_bloom_reader_unpromised(ngx_bloom_reader_t *reader);
static void ngx_bloom_reader_leave(ngx_bloom_reader_t *reader);
static void ngx_bloom_reader_damaged(ngx_bloom_reader_t *reader,
    const char *what);
static ngx_int_t ngx_bloom_reader_fails(ngx_bloom_reader_t *reader,
    const char *what, ngx_err_t err);
static u_char *ngx_bloom_segment_name(ngx_bloom_state_t *state, u_char *name,
    uint64_t base);
static ngx_fd_t ngx_bloom_segment_open(ngx_bloom_state_t *state,
    uint64_t base, int flags, bloom_segment_t *segment, char *error,
    bloom_segment_e *what);
static ngx_int_t ngx_bloom_segment_rewrite(ngx_fd_t fd, uint64_t size);
static ngx_int_t ngx_bloom_segment_cut(ngx_bloom_state_t *state,
    uint64_t base, uint64_t tail);
static ngx_int_t ngx_bloom_segment_leave(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);


static u_char *
ngx_bloom_segment_name(ngx_bloom_state_t *state, u_char *name, uint64_t base)
{
    return ngx_bloom_state_name(state, name, "journal.%016xL", base);
}


/*
 * Opens a segment and reads its header.  If that is no good, *what says so,
 * with `error` of BLOOM_RECORD_ERROR_LEN bytes; if it cannot be read,
 * NGX_INVALID_FILE with errno.
 */
static ngx_fd_t
ngx_bloom_segment_open(ngx_bloom_state_t *state, uint64_t base, int flags,
    bloom_segment_t *segment, char *error, bloom_segment_e *what)
{
    u_char           name[NGX_MAX_PATH], header[BLOOM_SEGMENT_HEADER];
    ngx_fd_t         fd;
    ngx_err_t        err;
    ngx_file_info_t  fi;

    fd = ngx_bloom_io_open(ngx_bloom_segment_name(state, name, base), flags);
    if (fd == NGX_INVALID_FILE) {
        return NGX_INVALID_FILE;
    }

    ngx_memzero(header, BLOOM_SEGMENT_HEADER);

    if (ngx_bloom_io_read(fd, header, BLOOM_SEGMENT_HEADER, 0) == NGX_ERROR
        || ngx_fd_info(fd, &fi) == NGX_FILE_ERROR)
    {
        err = ngx_errno;
        (void) ngx_close_file(fd);
        ngx_set_errno(err);
        return NGX_INVALID_FILE;
    }

    *what = bloom_segment_decode(segment, header,
                                 (uint64_t) ngx_file_size(&fi), error);

    if (*what == BLOOM_SEGMENT_OK && segment->base != base) {
        *what = BLOOM_SEGMENT_DAMAGED;
        (void) snprintf(error, BLOOM_RECORD_ERROR_LEN,
                        "was renamed: it is \"journal.%016lx\"",
                        (unsigned long) segment->base);
    }

    return fd;
}


ngx_int_t
ngx_bloom_journal_find(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base)
{
    DIR              *dir;
    char             *end, error[BLOOM_RECORD_ERROR_LEN];
    uint64_t          at, before, behind;
    ngx_fd_t          fd;
    ngx_uint_t        has_before, has_behind;
    struct dirent    *entry;
    bloom_segment_e   what;
    bloom_segment_t   segment;

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    has_before = 0;
    has_behind = 0;
    before = 0;
    behind = 0;

    while ((entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, "journal.", 8) != 0
            || strlen(entry->d_name) != 24)
        {
            continue;
        }

        at = strtoull(entry->d_name + 8, &end, 16);

        if (*end != '\0') {
            continue;
        }

        if (at <= position) {
            if (!has_before || at > before) {
                before = at;
                has_before = 1;
            }

        } else if (!has_behind || at < behind) {
            behind = at;
            has_behind = 1;
        }
    }

    (void) closedir(dir);

    if (has_before && before != position) {

        fd = ngx_bloom_segment_open(state, before, O_RDONLY, &segment, error,
                                    &what);
        if (fd == NGX_INVALID_FILE) {
            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what != BLOOM_SEGMENT_OK || position >= before + segment.size) {
            has_before = 0;
        }
    }

    if (has_before) {
        *base = before;
        return NGX_OK;
    }

    *base = behind;

    return has_behind ? NGX_OK : NGX_DONE;
}


ngx_int_t
ngx_bloom_reader_open(ngx_bloom_reader_t *reader, ngx_bloom_state_t *state,
    uint64_t position, uint64_t limit)
{
    ngx_memzero(reader, sizeof(ngx_bloom_reader_t));

    reader->state = state;
    reader->position = position;
    reader->next = position;
    reader->limit = limit;
    reader->fd = NGX_INVALID_FILE;
    reader->room = NGX_BLOOM_WINDOW;
    reader->window = malloc(reader->room);

    return reader->window != NULL ? NGX_OK : NGX_ERROR;
}


void
ngx_bloom_reader_close(ngx_bloom_reader_t *reader)
{
    ngx_bloom_reader_leave(reader);

    free(reader->window);
    reader->window = NULL;
}


ngx_int_t
ngx_bloom_reader_next(ngx_bloom_reader_t *reader, bloom_record_t *record)
{
    u_char    *p;
    size_t     rest, found;
    uint64_t   end;
    ngx_int_t  rc;

    for ( ;; ) {

        if (reader->position >= reader->limit) {
            return NGX_DONE;
        }

        if (reader->fd == NGX_INVALID_FILE) {
            rc = ngx_bloom_reader_segment(reader);

            if (rc == NGX_DONE && reader->broken) {
                reader->lost = UINT64_MAX;
                reader->damaged = reader->position;
            }

            if (rc != NGX_OK) {
                return rc;
            }

            continue;
        }

        end = ngx_min(reader->next, reader->limit);

        /* the window has the longest of records, or all there is */

        if (reader->start + reader->len
            < ngx_min(reader->position + BLOOM_RECORD_MAX, end)
            && ngx_bloom_reader_fill(reader,
                                     ngx_min(NGX_BLOOM_WINDOW,
                                             end - reader->position))
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        p = reader->window + (reader->position - reader->start);
        rest = reader->start + reader->len - reader->position;
        found = 0;

        if (bloom_record_read(record, &reader->segment, reader->position,
                              reader->sequence, p, rest)
            != BLOOM_RECORD_OK)
        {
            /* only the rest of the segment can tell what this is */

            if (ngx_bloom_reader_fill(reader, end - reader->position)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            found = bloom_record_find(record, &reader->segment,
                                      reader->position, reader->sequence,
                                      reader->window, reader->len);

            if (found == reader->len) {

                ngx_bloom_reader_leave(reader);

                if (end == reader->limit) {
                    ngx_bloom_reader_damaged(reader, "has lost its end");
                    reader->lost = UINT64_MAX;
                    reader->damaged = reader->position;
                    return NGX_DONE;
                }

                continue;
            }
        }

        /* numbers without a gap prove that nothing is missing */

        if (reader->sequence != 0 ? record->sequence != reader->sequence
                                  : (found != 0 || reader->broken))
        {
            if (ngx_bloom_reader_unpromised(reader)) {
                reader->gap = reader->gap ? reader->gap : reader->position;

            } else {
                ngx_bloom_reader_damaged(reader, "has lost records");
                reader->lost = ngx_max(reader->lost, record->time);
            }
        }

        reader->broken = 0;
        reader->position += found + record->size;
        reader->sequence = record->sequence + 1;
        reader->time = record->time;

        reader->end.tail = reader->position;
        reader->end.base = reader->segment.base;
        reader->end.limit = reader->next;
        reader->end.sequence = reader->sequence;
        reader->end.time = reader->time;

        return NGX_OK;
    }
}


/*
 * Whether what is missing here was never said to be on disk: a machine that
 * lost its power may have written what came later and not what came first.
 */
static ngx_uint_t
ngx_bloom_reader_unpromised(ngx_bloom_reader_t *reader)
{
    uint64_t  synced;

    synced = reader->state->control->synced;

    return reader->limit == NGX_BLOOM_TO_THE_END && synced != 0
           && reader->position >= synced;
}


/* Opens the segment that is next, or the first behind it. */
static ngx_int_t
ngx_bloom_reader_segment(ngx_bloom_reader_t *reader)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    uint64_t         base;
    ngx_int_t        rc;
    bloom_segment_e  what;

    for ( ;; ) {

        if (reader->next < reader->state->control->begin) {

            /* removed: all that was read is covered by an image */

            reader->next = reader->state->control->begin;
            reader->sequence = 0;
        }

        rc = ngx_bloom_journal_find(reader->state, reader->next, &base);

        if (rc == NGX_ERROR) {
            return ngx_bloom_reader_fails(reader, "cannot be read", ngx_errno);
        }

        if (rc == NGX_DONE && reader->limit == NGX_BLOOM_TO_THE_END) {
            return NGX_DONE;
        }

        if (rc == NGX_DONE || base > reader->next) {
            ngx_bloom_reader_damaged(reader, "lacks a segment");
            reader->broken = 1;
        }

        if (rc == NGX_DONE || base >= reader->limit) {
            return NGX_DONE;
        }

        reader->fd = ngx_bloom_segment_open(reader->state, base, O_RDONLY,
                                            &reader->segment, error, &what);

        if (reader->fd == NGX_INVALID_FILE) {

            if (ngx_errno == NGX_ENOENT) {
                continue;                        /* removed meanwhile */
            }

            return ngx_bloom_reader_fails(reader, "cannot be opened",
                                          ngx_errno);
        }

        if (what == BLOOM_SEGMENT_OK) {
            break;
        }

        ngx_bloom_reader_leave(reader);

        if (what == BLOOM_SEGMENT_NEWER) {
            ngx_bloom_print(reader->error, sizeof(reader->error),
                                "\"%V/journal.%016xL\" %s",
                                &reader->state->path, base, error);
            return NGX_ERROR;
        }

        ngx_bloom_reader_damaged(reader, error);
        reader->broken = 1;
        reader->next = base + 1;
    }

    reader->next = reader->segment.base + reader->segment.size;
    reader->position = ngx_max(reader->position, reader->segment.base
                                                 + BLOOM_SEGMENT_HEADER);
    reader->start = reader->position;
    reader->len = 0;

    return NGX_OK;
}


/* Reads `len` bytes from the position on; what a short file lacks is zero. */
static ngx_int_t
ngx_bloom_reader_fill(ngx_bloom_reader_t *reader, size_t len)
{
    u_char   *p;
    ssize_t   n;

    if (len > reader->room) {
        p = realloc(reader->window, len);

        if (p == NULL) {
            return ngx_bloom_reader_fails(reader, "cannot be read",
                                          ngx_errno);
        }

        reader->window = p;
        reader->room = len;
    }

    n = ngx_bloom_io_read(reader->fd, reader->window, len,
                          reader->position - reader->segment.base);

    if (n == NGX_ERROR) {
        return ngx_bloom_reader_fails(reader, "cannot be read", ngx_errno);
    }

    ngx_memzero(reader->window + n, len - n);

    reader->start = reader->position;
    reader->len = len;

    return NGX_OK;
}


static void
ngx_bloom_reader_leave(ngx_bloom_reader_t *reader)
{
    if (reader->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(reader->fd);
        reader->fd = NGX_INVALID_FILE;
    }
}


/* Notes the first damage for the log. */
static void
ngx_bloom_reader_damaged(ngx_bloom_reader_t *reader, const char *what)
{
    if (reader->damage[0] == '\0') {
        reader->damaged = reader->position;

        ngx_bloom_print(reader->damage, sizeof(reader->damage),
                            "the journal in \"%V\" %s, near position %uL",
                            &reader->state->path, what, reader->position);
    }
}


static ngx_int_t
ngx_bloom_reader_fails(ngx_bloom_reader_t *reader, const char *what,
    ngx_err_t err)
{
    reader->err = err;

    ngx_bloom_print(reader->error, sizeof(reader->error),
                        "the journal in \"%V\" %s", &reader->state->path,
                        what);
    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_journal_recover(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader, uint64_t least)
{
    uint64_t              base;
    ngx_fd_t              fd;
    ngx_int_t             rc;
    ngx_uint_t            none;
    ngx_bloom_end_t      *end;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_control_t  *control;
    char                  error[BLOOM_RECORD_ERROR_LEN];

    control = state->control;
    end = &control->end[0];

    *end = reader->end;
    control->which = 0;

    rc = ngx_bloom_journal_find(state, control->begin, &base);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    none = (rc == NGX_DONE);

    if (none) {
        least = ngx_max(least, control->begin);

    } else {
        control->begin = base;
    }

    if (end->limit == 0 && !none) {

        /* segments, and no record in them */

        fd = ngx_bloom_segment_open(state, control->begin, O_RDONLY, &segment,
                                    error, &what);
        if (fd == NGX_INVALID_FILE) {
            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what == BLOOM_SEGMENT_OK) {
            end->base = segment.base;
            end->tail = segment.base + BLOOM_SEGMENT_HEADER;
            end->limit = segment.base + segment.size;
            end->sequence = segment.sequence;
        }
    }

    if (end->sequence == 0) {
        end->sequence = 1;
    }

    /* segments from the end on, without a gap, wait for records */

    control->prepared = end->limit;

    for (base = end->base; end->limit != 0; base = control->prepared) {

        fd = ngx_bloom_segment_open(state, base, O_RDONLY, &segment, error,
                                    &what);

        if (fd == NGX_INVALID_FILE) {
            if (ngx_errno == NGX_ENOENT) {
                break;
            }

            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what != BLOOM_SEGMENT_OK) {
            break;
        }

        if (ngx_bloom_segment_cut(state, base, end->tail) != NGX_OK) {
            return NGX_ERROR;
        }

        control->prepared = segment.base + segment.size;
    }

    if (end->tail < least || reader->broken) {

        /* on with a segment of its own, where nothing was ever written */

        least = ngx_max(least, control->prepared);

        for ( ;; ) {
            rc = ngx_bloom_journal_find(state, least, &base);

            if (rc == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (rc == NGX_DONE) {
                break;
            }

            least = ngx_max(least, base) + BLOOM_SEGMENT_MAX;
        }

        least = (least + 7) & ~(uint64_t) 7;

        end->tail = least;
        end->base = least;
        end->limit = least;
        control->prepared = least;
    }

    if (none) {
        control->begin = end->base;
    }

    if (control->synced > end->tail) {
        ngx_bloom_reader_damaged(reader, "has lost its end");
        reader->lost = UINT64_MAX;
        reader->damaged = end->tail;
    }

    control->synced = ngx_min(control->synced, end->tail);
    control->synced_check = ~control->synced;

    return NGX_OK;
}


/* Overwrites with zeros whatever is in a segment behind the end. */
static ngx_int_t
ngx_bloom_segment_cut(ngx_bloom_state_t *state, uint64_t base, uint64_t tail)
{
    u_char           *buf, name[NGX_MAX_PATH];
    size_t            dirty;
    ssize_t           n;
    uint64_t          offset;
    ngx_fd_t          fd;
    ngx_err_t         err;
    ngx_int_t         rc;
    ngx_uint_t        cut;

    rc = NGX_ERROR;
    cut = 0;

    buf = malloc(NGX_BLOOM_WINDOW);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    fd = ngx_bloom_io_open(ngx_bloom_segment_name(state, name, base), O_RDWR);
    if (fd == NGX_INVALID_FILE) {
        goto done;
    }

    offset = (tail > base + BLOOM_SEGMENT_HEADER) ? tail - base
                                                  : BLOOM_SEGMENT_HEADER;

    for ( /* void */ ; ; offset += n) {

        n = ngx_bloom_io_read(fd, buf, NGX_BLOOM_WINDOW, offset);

        if (n == NGX_ERROR) {
            goto done;
        }

        if (n == 0) {
            break;
        }

        dirty = bloom_record_tail(buf, n);

        if (dirty != 0) {
            ngx_memzero(buf, dirty);
            cut = 1;

            if (ngx_bloom_io_write(fd, buf, dirty, offset) != NGX_OK) {
                goto done;
            }
        }
    }

    if (!cut || ngx_bloom_io_sync(fd) == NGX_OK) {
        rc = NGX_OK;
    }

done:

    err = ngx_errno;

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
    }

    free(buf);
    ngx_set_errno(err);

    return rc;
}


/*
 * No record follows in this segment.  Who died before it published one has
 * left it behind the end, with the number that the next one gets elsewhere:
 * readers would take that for the older of the two.
 */
static ngx_int_t
ngx_bloom_segment_leave(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    u_char     name[NGX_MAX_PATH], zeros[BLOOM_RECORD_HEADER];
    ngx_fd_t   fd;
    ngx_err_t  err;
    ngx_int_t  rc;

    if (end->limit - end->tail <= BLOOM_RECORD_HEADER) {
        return NGX_OK;
    }

    fd = ngx_bloom_io_open(ngx_bloom_segment_name(state, name, end->base),
                           O_RDWR);

    if (fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT ? NGX_OK : NGX_ERROR;
    }

    ngx_memzero(zeros, BLOOM_RECORD_HEADER);

    rc = ngx_bloom_io_write(fd, zeros, BLOOM_RECORD_HEADER,
                            end->tail - end->base);

    err = ngx_errno;
    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return rc;
}


ngx_int_t
ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_bloom_end_t *end)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    size_t                size;
    uint64_t              now;
    bloom_segment_e       what;
    ngx_bloom_control_t  *control;

    control = state->control;

    *end = control->end[control->which & 1];

    size = (maker->len + 7) & ~(size_t) 7;

    if (end->tail + size > end->limit) {

        if (__atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE)
            <= end->limit)
        {
            return NGX_AGAIN;
        }

        if (ngx_bloom_segment_leave(state, end) != NGX_OK) {
            ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE, ngx_errno);
            return NGX_ERROR;
        }

        end->base = end->limit;
        end->tail = end->base + BLOOM_SEGMENT_HEADER;
        end->limit = 0;
    }

    if (state->segment_fd == NGX_INVALID_FILE
        || state->segment.base != end->base)
    {
        if (state->segment_fd != NGX_INVALID_FILE) {
            (void) ngx_close_file(state->segment_fd);
        }

        what = BLOOM_SEGMENT_DAMAGED;
        state->segment_fd = ngx_bloom_segment_open(state, end->base, O_RDWR,
                                                   &state->segment, error,
                                                   &what);

        if (what != BLOOM_SEGMENT_OK) {
            ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE,
                                 state->segment_fd == NGX_INVALID_FILE
                                 ? ngx_errno : NGX_EINVAL);

            if (state->segment_fd != NGX_INVALID_FILE) {
                (void) ngx_close_file(state->segment_fd);
                state->segment_fd = NGX_INVALID_FILE;
            }

            return NGX_ERROR;
        }
    }

    end->limit = end->base + state->segment.size;

    /* the clock may go back, the journal's time does not */

    now = ngx_bloom_time();
    end->time = ngx_max(end->time, now);

    (void) bloom_record_seal(maker, &state->segment, end->tail, end->sequence,
                             end->time);

    if (ngx_bloom_io_write(state->segment_fd, maker->buf, size,
                           end->tail - end->base)
        != NGX_OK)
    {
        ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE, ngx_errno);
        return NGX_ERROR;
    }

    if (control->failed == NGX_BLOOM_CANNOT_WRITE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    end->tail += size;
    end->sequence++;

    return NGX_OK;
}


void
ngx_bloom_journal_publish(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    uint64_t              which, instances, old, *required;
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    control = state->control;

    /* others are told first: they must not miss a key that counts */

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);
    instances &= ~((uint64_t) 1 << state->instance);

    for (i = 0; instances != 0; i++, instances >>= 1) {

        if ((instances & 1) == 0) {
            continue;
        }

        required = &control->instance[i].required;
        old = __atomic_load_n(required, __ATOMIC_SEQ_CST);

        while (old < end->tail
               && !__atomic_compare_exchange_n(required, &old, end->tail, 0,
                                               __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST))
        {
            /* void */
        }
    }

    ngx_bloom_fault("publish");

    which = control->which + 1;
    control->end[which & 1] = *end;

    __atomic_store_n(&control->which, which, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("published");
}


ngx_int_t
ngx_bloom_journal_make(ngx_bloom_state_t *state,
    const bloom_segment_t *segment, const u_char *data, size_t len)
{
    int         err;
    u_char      name[NGX_MAX_PATH], from[NGX_MAX_PATH];
    ngx_fd_t    fd;
    ngx_int_t   rc;

    ngx_bloom_state_name(state, from, "segment.tmp");
    ngx_bloom_segment_name(state, name, segment->base);

    fd = ngx_bloom_io_open(from, O_RDWR|O_CREAT|O_TRUNC);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    ngx_bloom_state_own(state, fd);

    do {
        err = posix_fallocate(fd, 0, segment->size);
    } while (err == NGX_EINTR);

    if (err != 0) {
        ngx_set_errno(err);

    } else if (ngx_bloom_io_write(fd, data, len, 0) == NGX_OK
               && ngx_bloom_io_sync(fd) == NGX_OK
               && ngx_bloom_io_rename(state->path.data, from, name) == NGX_OK)
    {
        rc = NGX_OK;
    }

    err = ngx_errno;

    (void) ngx_close_file(fd);

    if (rc != NGX_OK) {
        (void) ngx_bloom_io_remove(from);
    }

    ngx_set_errno(err);

    return rc;
}


ngx_int_t
ngx_bloom_journal_prepare(ngx_bloom_state_t *state)
{
    u_char                header[BLOOM_SEGMENT_HEADER];
    ngx_err_t             err;
    bloom_segment_t       segment;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    /* one is enough until it is filled by a quarter, then two are ahead */

    if (control->prepared >= end.limit + 2 * (uint64_t) BLOOM_SEGMENT_SIZE
        || (control->prepared > end.tail
            && end.tail - end.base <= (end.limit - end.base) / 4))
    {
        return NGX_OK;
    }

    segment.base = control->prepared;
    segment.size = (segment.base == control->begin) ? NGX_BLOOM_FIRST_SIZE
                                                    : BLOOM_SEGMENT_SIZE;
    segment.sequence = end.sequence;
    segment.created = ngx_bloom_time();

    if (getrandom(segment.salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1) {
        goto failed;
    }

    bloom_segment_encode(&segment, header);

    if (ngx_bloom_journal_make(state, &segment, header, BLOOM_SEGMENT_HEADER)
        != NGX_OK)
    {
        goto failed;
    }

    __atomic_store_n(&control->prepared, segment.base + segment.size,
                     __ATOMIC_SEQ_CST);

    if (control->failed == NGX_BLOOM_CANNOT_PREPARE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;

failed:

    err = ngx_errno;

    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_PREPARE, err);
    ngx_set_errno(err);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_journal_sync(ngx_bloom_state_t *state)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    uint64_t              at, tail, base;
    ngx_fd_t              fd;
    ngx_err_t             err;
    ngx_int_t             rc;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);
    tail = end.tail;

    for (at = control->synced; at < tail; at = segment.base + segment.size) {

        rc = ngx_bloom_journal_find(state, at, &base);

        if (rc == NGX_DONE || (rc == NGX_OK && base > end.base)) {

            if (tail <= end.base) {
                break;                           /* nothing is in it yet */
            }

            ngx_set_errno(NGX_ENOENT);           /* somebody has removed it */
            goto failed;
        }

        fd = (rc == NGX_OK)
             ? ngx_bloom_segment_open(state, base, O_RDWR, &segment, error,
                                      &what)
             : NGX_INVALID_FILE;

        if (fd == NGX_INVALID_FILE) {
            goto failed;
        }

        if (what != BLOOM_SEGMENT_OK) {
            segment.base = base;
            segment.size = 8;
        }

        /*
         * Where a synchronisation failed, the system may think what it could
         * not write to be on disk; so it is written again.
         */

        rc = control->rewrite
             ? ngx_bloom_segment_rewrite(fd, ngx_min(segment.size,
                                                     tail - base))
             : NGX_OK;

        if (rc == NGX_OK) {
            rc = ngx_bloom_io_sync(fd);
        }

        err = ngx_errno;
        (void) ngx_close_file(fd);
        ngx_set_errno(err);

        if (rc != NGX_OK) {
            goto failed;
        }
    }

    __atomic_store_n(&control->synced, tail, __ATOMIC_SEQ_CST);
    control->synced_check = ~tail;
    control->rewrite = 0;

    if (control->failed == NGX_BLOOM_CANNOT_SYNC) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;

failed:

    err = ngx_errno;
    control->rewrite = 1;
    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_SYNC, err);
    ngx_set_errno(err);

    return NGX_ERROR;
}


/* Only what is before the end: behind it others may be writing. */
static ngx_int_t
ngx_bloom_segment_rewrite(ngx_fd_t fd, uint64_t size)
{
    u_char     *buf;
    ssize_t     n;
    uint64_t    offset;
    ngx_int_t   rc;

    buf = malloc(NGX_BLOOM_WINDOW);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (offset = 0; rc == NGX_OK && offset < size; offset += n) {

        n = ngx_bloom_io_read(fd, buf, ngx_min(NGX_BLOOM_WINDOW, size - offset),
                              offset);

        if (n <= 0) {
            rc = (n == 0) ? NGX_OK : NGX_ERROR;
            break;
        }

        rc = ngx_bloom_io_write(fd, buf, n, offset);
    }

    free(buf);

    return rc;
}


ngx_int_t
ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time)
{
    u_char                name[NGX_MAX_PATH];
    uint64_t              base, behind, newest, lost, unused, instances;
    ngx_uint_t            damaged;
    ngx_int_t             rc;
    ngx_uint_t            i;
    bloom_record_t        record;
    ngx_bloom_reader_t    reader;
    ngx_bloom_control_t  *control;

    control = state->control;
    newest = 0;

    if (ngx_bloom_journal_find(state, 0, &base) != NGX_OK) {
        return NGX_ERROR;
    }

    if (base >= ngx_bloom_state_end(state).base
        || (base == state->oldest && state->newest >= time))
    {
        return NGX_DECLINED;
    }

    if (ngx_bloom_reader_open(&reader, state, base, NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    do {
        rc = ngx_bloom_reader_next(&reader, &record);

        if (rc != NGX_OK || reader.segment.base != base) {
            break;
        }

        newest = ngx_max(newest, record.time);
    } while (newest < time);

    behind = (reader.segment.base == base) ? reader.next
                                           : reader.segment.base;
    damaged = (reader.damage[0] != '\0');
    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (newest >= time) {
        state->oldest = base;
        state->newest = newest;
        return NGX_DECLINED;
    }

    if (behind > ngx_bloom_state_end(state).base) {
        return NGX_DECLINED;
    }

    /* what cannot be read has its time in the mark */

    if (damaged
        && (ngx_bloom_state_read_mark(state, "lost", &lost, &unused) != NGX_OK
            || lost == 0 || lost >= time))
    {
        return NGX_DECLINED;
    }

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {
        if ((instances & ((uint64_t) 1 << i))
            && __atomic_load_n(&control->instance[i].applied,
                               __ATOMIC_SEQ_CST)
               < behind)
        {
            return NGX_DECLINED;
        }
    }

    /* first what is true either way, then the segment */

    if (base >= control->begin) {
        newest = ngx_max(newest, control->dropped);

        if (ngx_bloom_state_write_mark(state, "dropped", newest, behind)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        control->dropped = newest;
        control->begin = behind;
    }

    if (ngx_bloom_io_remove(ngx_bloom_segment_name(state, name, base))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
