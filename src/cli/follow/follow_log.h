/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The log of `ngx-bloom follow`: lines and a progress line on a terminal, a
 * JSON object per line otherwise, on standard error.
 *
 * Any thread may log.  Text from servers is escaped.
 */

#ifndef FOLLOW_LOG_H
#define FOLLOW_LOG_H

#include "bloom_source.h"


typedef enum {
    FOLLOW_INFO,
    FOLLOW_WARNING,
    FOLLOW_ERROR
} follow_level_t;

/* What a zone logged last, to leave out repetitions. */
typedef struct {
    char      event[32];
    uint32_t  message;                   /* its checksum */
    double    time;
    uint64_t  left_out;
} follow_log_t;


/* Chooses the form of the log; with `quiet`, only warnings and errors. */
void follow_log_begin(int quiet);

/*
 * Logs an event of a zone, whose URL has no password (NULL: of all).  The text
 * says what to do if anything is to be done.  An event that repeats the last
 * one of `log` is logged once a minute; `log` may be NULL.
 */
void follow_log(follow_log_t *log, const char *zone, follow_level_t level,
    const char *event, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Draws the progress line if there is a terminal. */
void follow_log_progress(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* Sends the state to systemd, if it wants to know: "READY=1". */
void follow_log_notify(const char *state);


#endif /* FOLLOW_LOG_H */
