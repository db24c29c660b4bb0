/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The segments of a journal follow one another without a gap, so the directory
 * is searched only where one is missing.
 */

#include "ngx_bloom_journal_survey.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_reader.h"


/* The bytes of a record that clears the zone. */
#define NGX_BLOOM_SURVEY_CLEAR  (BLOOM_RECORD_HEADER + 8)


/* A survey, and the segment that it looks at. */
typedef struct {
    ngx_bloom_state_t   *state;
    uint64_t             next;           /* where the next segment begins */
    uint64_t             last;           /* base of the last segment that
                                            counts */
    uint64_t             base;
    bloom_segment_e      what;
    bloom_segment_t      segment;        /* if `what` is OK */
    ngx_uint_t           clears;         /* its first record clears the zone */
} ngx_bloom_survey_t;


static ngx_uint_t ngx_bloom_survey_begin(ngx_bloom_survey_t *survey,
    ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_survey_next(ngx_bloom_survey_t *survey);
static ngx_int_t ngx_bloom_survey_look(ngx_bloom_survey_t *survey,
    ngx_fd_t fd);
static ngx_int_t ngx_bloom_survey_read(ngx_bloom_state_t *state,
    uint64_t *base);


ngx_int_t
ngx_bloom_journal_first_v2(ngx_bloom_state_t *state, uint64_t *base)
{
    ngx_int_t           rc;
    ngx_bloom_survey_t  survey;

    (void) ngx_bloom_survey_begin(&survey, state);

    do {
        rc = ngx_bloom_survey_next(&survey);

        /* a reader will say of a segment of version 3 that it is newer */

        if (rc == NGX_OK
            && (survey.what == BLOOM_SEGMENT_NEWER
                || (survey.what == BLOOM_SEGMENT_OK
                    && survey.segment.version >= 2)))
        {
            *base = survey.base;
            return NGX_OK;
        }
    } while (rc == NGX_OK);

    return rc;
}


ngx_int_t
ngx_bloom_journal_cleared(ngx_bloom_state_t *state, uint64_t *base)
{
    ngx_int_t           rc;
    ngx_uint_t          ends, found;
    ngx_bloom_survey_t  survey;

    ends = ngx_bloom_survey_begin(&survey, state);
    found = 0;

    while ((rc = ngx_bloom_survey_next(&survey)) == NGX_OK) {
        if (survey.clears) {
            *base = survey.base;
            found = 1;
        }
    }

    if (rc != NGX_DONE || !found) {
        return rc;
    }

    /*
     * As long as the end of the journal is not known, a record in a later
     * segment may be one that was never published.  Only its number tells, and
     * a reader knows the number that it must have.
     */

    return ends ? NGX_OK : ngx_bloom_survey_read(state, base);
}


/* Returns 1 if the end of the journal is known, else 0. */
static ngx_uint_t
ngx_bloom_survey_begin(ngx_bloom_survey_t *survey, ngx_bloom_state_t *state)
{
    ngx_bloom_end_t  end;

    end = ngx_bloom_state_end(state);

    survey->state = state;
    survey->next = state->control->begin;

    /* the segment of the end has a record, unless there is no record at all */

    survey->last = (end.limit != 0) ? end.base : UINT64_MAX;

    return end.limit != 0;
}


/* Looks at the next segment.  Returns NGX_OK, NGX_DONE after the last one, or
 * NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_survey_next(ngx_bloom_survey_t *survey)
{
    char        error[BLOOM_RECORD_ERROR_LEN];
    ngx_fd_t    fd;
    ngx_err_t   err;
    ngx_int_t   rc;

    survey->base = survey->next;

    while (survey->base <= survey->last) {

        fd = ngx_bloom_segment_open(survey->state, survey->base, O_RDONLY,
                                    &survey->segment, error, &survey->what);

        if (fd != NGX_INVALID_FILE) {
            rc = ngx_bloom_survey_look(survey, fd);

            err = ngx_errno;
            (void) ngx_close_file(fd);
            ngx_set_errno(err);

            return rc;
        }

        if (ngx_errno != NGX_ENOENT) {
            return NGX_ERROR;
        }

        rc = ngx_bloom_segment_find(survey->state, survey->next,
                                    &survey->base);
        if (rc != NGX_OK) {
            return rc;
        }

        survey->next = survey->base;
    }

    return NGX_DONE;
}


/* Looks at an open segment.  Returns NGX_OK, or NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_survey_look(ngx_bloom_survey_t *survey, ngx_fd_t fd)
{
    u_char          buf[NGX_BLOOM_SURVEY_CLEAR];
    ssize_t         n;
    bloom_record_t  record;

    survey->clears = 0;

    if (survey->what != BLOOM_SEGMENT_OK) {
        survey->next = survey->base + 1;         /* its size is not known */
        return NGX_OK;
    }

    survey->next = survey->base + survey->segment.size;

    n = ngx_bloom_io_read(fd, buf, sizeof(buf), BLOOM_SEGMENT_HEADER);

    if (n == NGX_ERROR) {
        return NGX_ERROR;
    }

    survey->clears = bloom_record_read(&record, &survey->segment,
                                       survey->base + BLOOM_SEGMENT_HEADER, 0,
                                       buf, n)
                     == BLOOM_RECORD_OK
                     && record.type == BLOOM_RECORD_CLEAR;
    return NGX_OK;
}


/* Finds the last record that clears the zone by reading the journal to its end,
 * as a start does.  Returns what ngx_bloom_journal_cleared() returns. */
static ngx_int_t
ngx_bloom_survey_read(ngx_bloom_state_t *state, uint64_t *base)
{
    ngx_int_t           rc;
    ngx_uint_t          found;
    bloom_record_t      record;
    ngx_bloom_reader_t  reader;

    if (ngx_bloom_reader_open(&reader, state, state->control->begin,
                              NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (state->control->begin == 0) {
        reader.sequence = 1;
    }

    found = 0;

    while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {
        if (record.type == BLOOM_RECORD_CLEAR) {
            *base = reader.segment.base;
            found = 1;
        }
    }

    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        ngx_set_errno(reader.err);
        return NGX_ERROR;
    }

    return found ? NGX_OK : NGX_DONE;
}
