/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Entry N is at the place N & 1 of the file.
 */

#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_segment.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


#define NGX_BLOOM_BASE_FILE       "base"


/* What the segments of a directory say. */
typedef struct {
    ngx_uint_t           exist;
    bloom_segment_t      first;          /* the first valid one; size 0: none */
    uint64_t             entry;          /* the greatest one that a segment of
                                            this journal, or the control page,
                                            names */
    ngx_uint_t           older;          /* 1: the control page is older than
                                            the entry */
} ngx_bloom_base_survey_t;


static ngx_int_t ngx_bloom_base_file_decode(ngx_bloom_state_t *state,
    bloom_base_t *base, ngx_bloom_failure_t *failure);
static ngx_int_t ngx_bloom_base_file_survey(ngx_bloom_state_t *state,
    ngx_bloom_base_survey_t *survey, ngx_bloom_failure_t *failure);
static void ngx_bloom_base_file_known(ngx_bloom_state_t *state,
    const bloom_base_t *base, ngx_bloom_base_survey_t *survey);
static ngx_int_t ngx_bloom_base_file_create(ngx_bloom_state_t *state,
    bloom_base_t *base, ngx_bloom_base_survey_t *survey);
static ngx_int_t ngx_bloom_base_file_name(ngx_bloom_state_t *state,
    const bloom_base_t *base, ngx_bloom_failure_t *failure);
static const char *ngx_bloom_base_file_doubt(ngx_bloom_state_t *state,
    ngx_bloom_control_e found, ngx_int_t *rc, const bloom_base_t *base,
    ngx_bloom_base_survey_t *survey);
static ngx_uint_t ngx_bloom_base_file_agrees(const uint8_t *journal,
    const uint8_t *other);
static ngx_int_t ngx_bloom_base_file_renew(ngx_bloom_state_t *state,
    bloom_base_t *base, ngx_bloom_base_survey_t *survey);
static ngx_int_t ngx_bloom_base_file_make(ngx_bloom_state_t *state,
    bloom_base_t *base);
static void ngx_bloom_base_file_publish(ngx_bloom_state_t *state,
    const bloom_base_t *base);


ngx_int_t
ngx_bloom_base_file_start(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure)
{
    ngx_int_t                 rc;
    bloom_base_t              base;
    ngx_bloom_control_t      *control;
    ngx_bloom_base_survey_t   survey;

    control = state->control;

    rc = ngx_bloom_base_file_decode(state, &base, failure);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_bloom_base_file_survey(state, &survey, failure) != NGX_OK) {
        return NGX_ERROR;
    }

    if (rc == NGX_OK
        && ngx_bloom_base_file_agrees(control->journal, base.journal))
    {
        ngx_bloom_base_file_known(state, &base, &survey);
    }

    state->doubt = ngx_bloom_base_file_doubt(state, state->found, &rc, &base,
                                             &survey);

    if (state->doubt != NULL) {

        /* on disk before anything that would hide the doubt */

        failure->what = "write into";
        ngx_bloom_state_name(failure->name, "control");

        if (ngx_bloom_state_lose(state, ngx_bloom_time()) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    failure->what = "create";
    ngx_bloom_state_name(failure->name, NGX_BLOOM_BASE_FILE);

    if (rc != NGX_OK
        && ngx_bloom_base_file_create(state, &base, &survey) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* a control page from before the entry may not know what was lost */

    ngx_bloom_control_lose(&control->loss, base.lost);
    control->loss.lost_keys = ngx_max(control->loss.lost_keys,
                                         base.lost_keys);

    if (!ngx_bloom_base_file_agrees(control->journal, base.journal)
        && ngx_bloom_base_file_name(state, &base, failure) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (survey.entry > base.number) {

        /* the next start must not find the same doubt; the next entry takes the
         * place of the one that does not count */

        base.number = survey.entry + ((survey.entry ^ base.number) & 1);
    }

    ngx_bloom_base_file_publish(state, &base);

    if (state->doubt == NULL || rc != NGX_OK) {
        return NGX_OK;
    }

    failure->what = "write";

    return ngx_bloom_base_file_put(state, &base);
}


/* Adds to the survey what the control page, which is of the same journal as the
 * file's entry, knows about the last entry. */
static void
ngx_bloom_base_file_known(ngx_bloom_state_t *state, const bloom_base_t *base,
    ngx_bloom_base_survey_t *survey)
{
    bloom_base_t  known;

    /* the last processes published no entry that was not on disk */

    ngx_bloom_base_file_get(state, &known);
    survey->entry = ngx_max(survey->entry, known.number);

    /* nor did they write one without a note, which a loss of power may have
     * taken away */

    survey->older = state->fresh
                    && base->number > ngx_max(known.number,
                                              state->control->begun);
}


/* Creates the file for a directory without a valid one.  Returns NGX_OK, or
 * NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_base_file_create(ngx_bloom_state_t *state, bloom_base_t *base,
    ngx_bloom_base_survey_t *survey)
{
    if (ngx_bloom_base_file_renew(state, base, survey) != NGX_OK) {
        return NGX_ERROR;
    }

    __atomic_store_n(&state->control->begun, base->number, __ATOMIC_SEQ_CST);

    return ngx_bloom_base_file_make(state, base);
}


/*
 * Writes the journal's id into the control page, which has no id in a new
 * directory.  The name of a new directory may not be on disk yet: nothing else
 * synchronises its parent.  Returns NGX_OK, or NGX_ERROR with errno and
 * *failure.
 */
static ngx_int_t
ngx_bloom_base_file_name(ngx_bloom_state_t *state, const bloom_base_t *base,
    ngx_bloom_failure_t *failure)
{
    failure->what = "synchronise";

    if (ngx_bloom_io_sync_all(state->fd) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memcpy(state->control->journal, base->journal, BLOOM_JOURNAL_ID_LEN);

    return ngx_bloom_io_sync(state->fd);
}


ngx_int_t
ngx_bloom_base_file_read(ngx_bloom_state_t *state, bloom_base_t *base,
    ngx_bloom_failure_t *failure)
{
    ngx_int_t  rc;

    ngx_memzero(failure, sizeof(ngx_bloom_failure_t));

    rc = ngx_bloom_base_file_decode(state, base, failure);

    if (rc == NGX_ERROR) {
        failure->err = ngx_errno;
    }

    return (rc == NGX_OK || rc == NGX_ERROR) ? rc : NGX_DECLINED;
}


/*
 * Reads the file.  Returns NGX_OK; NGX_DONE if there is no file; NGX_DECLINED
 * if it is damaged; NGX_ERROR with errno and *failure.
 */
static ngx_int_t
ngx_bloom_base_file_decode(ngx_bloom_state_t *state, bloom_base_t *base,
    ngx_bloom_failure_t *failure)
{
    char                  error[BLOOM_BASE_ERROR_LEN];
    u_char                data[BLOOM_BASE_SIZE];
    ssize_t               n;
    ngx_fd_t              fd;
    ngx_err_t             err;
    unsigned              which;
    bloom_base_result_e   result;

    failure->what = "read";
    ngx_bloom_state_name(failure->name, NGX_BLOOM_BASE_FILE);

    fd = ngx_bloom_io_open(state->dir, failure->name, O_RDONLY);

    if (fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT ? NGX_DONE : NGX_ERROR;
    }

    n = ngx_bloom_io_read(fd, data, sizeof(data), 0);
    err = ngx_errno;

    (void) ngx_close_file(fd);

    if (n == NGX_ERROR) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    result = bloom_base_decode(base, &which, data, n, error);

    if (result == BLOOM_BASE_FOREIGN) {
        failure->what = "use";
        failure->then = "another version of the module has created it; start "
                        "nginx with that version, or move the zone's "
                        "directory away and start without its keys";
        ngx_set_errno(0);
        return NGX_ERROR;
    }

    return (result == BLOOM_BASE_OK) ? NGX_OK : NGX_DECLINED;
}


/* Looks at the headers of all segments.  Returns NGX_OK, or NGX_ERROR with
 * errno and *failure. */
static ngx_int_t
ngx_bloom_base_file_survey(ngx_bloom_state_t *state,
    ngx_bloom_base_survey_t *survey, ngx_bloom_failure_t *failure)
{
    char              error[BLOOM_RECORD_ERROR_LEN];
    uint64_t          base;
    ngx_fd_t          fd;
    ngx_int_t         rc;
    bloom_segment_e   what;
    bloom_segment_t   segment;

    ngx_memzero(survey, sizeof(ngx_bloom_base_survey_t));

    for (base = 0; /* void */ ; base++) {

        rc = ngx_bloom_segment_find(state, base, &base);

        if (rc == NGX_DONE) {
            return NGX_OK;
        }

        failure->what = "read";
        ngx_bloom_segment_name(failure->name, base);

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        survey->exist = 1;

        fd = ngx_bloom_segment_open(state, base, O_RDONLY, &segment, error,
                                    &what);
        if (fd == NGX_INVALID_FILE) {
            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what != BLOOM_SEGMENT_OK) {
            continue;
        }

        if (survey->first.size == 0) {
            survey->first = segment;
        }

        if (ngx_bloom_base_file_agrees(segment.journal,
                                       survey->first.journal))
        {
            survey->entry = ngx_max(survey->entry, segment.entry);
        }

        base = segment.base + segment.size - 1;
    }
}


/*
 * Compares the files.  *rc is what ngx_bloom_base_file_decode() returned; it
 * becomes NGX_DECLINED if the entry is not that of the other files.  Returns
 * why keys may be lost, a sentence for the log, or NULL.
 */
static const char *
ngx_bloom_base_file_doubt(ngx_bloom_state_t *state, ngx_bloom_control_e found,
    ngx_int_t *rc, const bloom_base_t *base, ngx_bloom_base_survey_t *survey)
{
    ngx_uint_t            named, journal, control;

    static const uint8_t  none[BLOOM_JOURNAL_ID_LEN];

    if (*rc == NGX_DECLINED) {
        return "the file \"base\" is damaged";
    }

    named = !ngx_bloom_base_file_agrees(state->control->journal, none);

    if (*rc == NGX_DONE) {

        if (!named && found != NGX_BLOOM_CONTROL_BROKEN && !survey->exist
            && ngx_bloom_state_files_images(state) == 0)
        {
            return NULL;                 /* a new directory */
        }

        return "the file \"base\" is missing";
    }

    if (found != NGX_BLOOM_CONTROL_OK) {
        return found == NGX_BLOOM_CONTROL_BROKEN
               ? "the file \"control\" was truncated, or is no control page"
               : "the file \"control\" is missing or empty";
    }

    if (!named && !survey->exist && base->number == 1
        && ngx_bloom_state_files_images(state) == 0)
    {
        return NULL;                     /* the first start has died */
    }

    control = ngx_bloom_base_file_agrees(base->journal,
                                         state->control->journal);
    journal = survey->first.size == 0
              || ngx_bloom_base_file_agrees(base->journal,
                                            survey->first.journal);

    if (!control && !journal) {
        *rc = NGX_DECLINED;
        return "the file \"base\" is that of another zone";
    }

    if (!control) {
        return "the file \"control\" is that of another zone";
    }

    if (!journal) {
        return "the files \"journal.*\" are those of another zone";
    }

    if (survey->older) {
        return "the file \"control\" is older than the file \"base\"";
    }

    if (survey->entry > base->number) {
        return "the file \"base\" is older than the journal, or its newer "
               "entry is damaged";
    }

    return NULL;
}


static ngx_uint_t
ngx_bloom_base_file_agrees(const uint8_t *journal, const uint8_t *other)
{
    return ngx_memcmp(journal, other, BLOOM_JOURNAL_ID_LEN) == 0;
}


/*
 * Makes an entry for a directory without a valid one.  The segments that there
 * are belong to it; images are moved aside, since nothing says which of them
 * the zone stands on.  Returns NGX_OK, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_base_file_renew(ngx_bloom_state_t *state, bloom_base_t *base,
    ngx_bloom_base_survey_t *survey)
{
    ngx_memzero(base, sizeof(bloom_base_t));

    base->number = 1;
    base->from.sequence = 1;

    if (survey->first.size != 0) {
        base->number = survey->entry + 1;
        base->from.position = survey->first.base;
        base->from.sequence = survey->first.sequence;
        ngx_memcpy(base->journal, survey->first.journal, BLOOM_JOURNAL_ID_LEN);

    } else if (getrandom(base->journal, BLOOM_JOURNAL_ID_LEN, 0) == -1) {
        return NGX_ERROR;
    }

    return ngx_bloom_state_files_aside(state);
}


/* Creates the file.  Returns NGX_OK, or NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_base_file_make(ngx_bloom_state_t *state, bloom_base_t *base)
{
    int         err;
    u_char      entry[BLOOM_BASE_ENTRY];
    ngx_fd_t    fd;
    ngx_int_t   rc;

    static u_char  from[] = "base.tmp";
    static u_char  to[] = NGX_BLOOM_BASE_FILE;

    fd = ngx_bloom_io_open(state->dir, from, O_RDWR|O_CREAT|O_TRUNC);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    ngx_bloom_io_overwrite(fd);

    do {
        err = posix_fallocate(fd, 0, BLOOM_BASE_SIZE);
    } while (err == NGX_EINTR);

    rc = NGX_ERROR;
    bloom_base_encode(base, entry);

    if (err != 0) {
        ngx_set_errno(err);

    } else if (ngx_bloom_io_write(fd, entry, BLOOM_BASE_ENTRY,
                                  (base->number & 1) * BLOOM_BASE_ENTRY)
               == NGX_OK
               && ngx_bloom_io_sync(fd) == NGX_OK)
    {
        rc = ngx_bloom_io_rename(state->dir, from, to);
    }

    err = ngx_errno;
    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return rc;
}


void
ngx_bloom_base_file_get(ngx_bloom_state_t *state, bloom_base_t *base)
{
    uint64_t              based;
    ngx_bloom_control_t  *control;

    control = state->control;

    do {
        based = __atomic_load_n(&control->based, __ATOMIC_ACQUIRE);
        *base = control->base[based & 1];

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&control->based, __ATOMIC_RELAXED) != based);
}


ngx_int_t
ngx_bloom_base_file_put(ngx_bloom_state_t *state, bloom_base_t *base)
{
    u_char                entry[BLOOM_BASE_ENTRY];
    uint64_t              lost;
    ngx_fd_t              fd;
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_uint_t            i;
    bloom_base_t          now;
    ngx_bloom_control_t  *control;

    static u_char         name[] = NGX_BLOOM_BASE_FILE;

    control = state->control;

    ngx_bloom_base_file_get(state, &now);

    lost = __atomic_load_n(&control->loss.lost, __ATOMIC_SEQ_CST);

    base->number = now.number + 1;
    base->floor = ngx_max(base->floor, ngx_bloom_state_end(state).time);
    base->floor = ngx_max(base->floor, base->from.time);
    base->floor = ngx_max(base->floor, base->dropped);

    for (i = 0; i < 2; i++) {
        base->floor = ngx_max(base->floor, base->checkpoint[i].time);
    }

    base->lost = ngx_max(base->lost, lost);

    /* a process counts the keys that it loses before it stores the time */

    base->lost_keys = base->lost != 0
                      ? ngx_max(base->lost_keys, control->loss.lost_keys)
                      : 0;

    /* an entry that a start would refuse is not written */

    if (bloom_base_check(base) != NULL) {
        ngx_set_errno(NGX_EINVAL);
        return NGX_ERROR;
    }

    bloom_base_encode(base, entry);

    fd = ngx_bloom_io_open(state->dir, name, O_RDWR);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    __atomic_store_n(&control->begun, base->number, __ATOMIC_SEQ_CST);

    rc = ngx_bloom_io_write(fd, entry, BLOOM_BASE_ENTRY,
                            (base->number & 1) * BLOOM_BASE_ENTRY);

    if (rc == NGX_OK) {
        rc = ngx_bloom_io_sync(fd);
    }

    err = ngx_errno;
    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    ngx_bloom_fault("slot");

    if (rc == NGX_OK) {
        ngx_bloom_base_file_publish(state, base);
    }

    return rc;
}


ngx_int_t
ngx_bloom_base_file_settle(ngx_bloom_state_t *state)
{
    ngx_int_t            rc;
    bloom_base_t         base, file;
    ngx_bloom_failure_t  failure;

    ngx_bloom_base_file_get(state, &base);

    rc = ngx_bloom_base_file_decode(state, &file, &failure);

    if (rc == NGX_OK && file.number == base.number
        && base.lost >= __atomic_load_n(&state->control->loss.lost,
                                        __ATOMIC_SEQ_CST))
    {
        return NGX_OK;
    }

    switch (rc) {

    case NGX_ERROR:
        return NGX_ERROR;

    case NGX_DONE:
        return ngx_bloom_base_file_make(state, &base);

    default:
        return ngx_bloom_base_file_put(state, &base);
    }
}


static void
ngx_bloom_base_file_publish(ngx_bloom_state_t *state, const bloom_base_t *base)
{
    uint64_t              based;
    ngx_bloom_control_t  *control;

    control = state->control;
    based = control->based + 1;

    control->base[based & 1] = *base;

    __atomic_store_n(&control->based, based, __ATOMIC_SEQ_CST);
}
