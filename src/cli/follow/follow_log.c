/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints the log of `ngx-bloom follow`, and tells systemd.
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bloom_crc.h"
#include "cli.h"
#include "follow_log.h"
#include "json.h"
#include "units.h"
#include "visible.h"

#define MESSAGE_MAX  2048
#define AGAIN        60                  /* seconds until a repeated event is
                                            logged again */


static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static int              terminal;
static int              silent;
static int              drawn;           /* 1: the progress line is there */


void
follow_log_begin(int quiet)
{
    terminal = isatty(STDERR_FILENO);
    silent = quiet;
}


/* Writes a text that may come from a server: what a terminal obeys is escaped in
 * the text itself, so that it stays escaped in whatever a reader of the log
 * decodes. */
static void
put_visible(bloom_json_writer_t *json, const char *name, const char *text)
{
    char            shown[VISIBLE_MAX * MESSAGE_MAX];
    size_t          n, used, rest;
    const uint8_t  *p;

    p = (const uint8_t *) text;
    rest = strnlen(text, MESSAGE_MAX);

    for (n = 0; rest != 0; p += used, rest -= used) {
        n += visible_next(shown + n, p, rest, &used);
    }

    bloom_json_put_bytes(json, name, shown, n);
}


static void
print_json(const char *zone, follow_level_t level, const char *event,
    const char *message, uint64_t left_out)
{
    struct timespec      now;
    bloom_json_writer_t  json;

    static const char  *levels[] = { "info", "warning", "error" };

    clock_gettime(CLOCK_REALTIME, &now);

    bloom_json_writer_init(&json, json_sink, stderr);

    bloom_json_put_object(&json, NULL);
    bloom_json_put_time(&json, "time", (uint64_t) now.tv_sec * 1000
                                       + (uint64_t) now.tv_nsec / 1000000);
    bloom_json_put_text(&json, "level", levels[level]);
    bloom_json_put_text(&json, "event", event);

    if (zone != NULL) {
        put_visible(&json, "zone", zone);
    }

    put_visible(&json, "message", message);

    if (left_out != 0) {
        bloom_json_put_count(&json, "repeated", left_out);
    }

    bloom_json_put_end(&json);
    putc('\n', stderr);
}


static void
print_line(const char *zone, follow_level_t level, const char *message)
{
    if (drawn) {
        fputs("\r\033[K", stderr);
        drawn = 0;
    }

    fprintf(stderr, "ngx-bloom follow: %s",
            level == FOLLOW_WARNING ? "warning: " : "");

    if (zone != NULL) {
        visible_print(stderr, zone, strlen(zone));
        fputs(": ", stderr);
    }

    visible_print(stderr, message, strlen(message));
    putc('\n', stderr);
}


/* Returns 1 if the event repeats the last one, else 0; *left_out gets how many
 * have been left out so far. */
static int
repeats(follow_log_t *log, const char *event, const char *message,
    uint64_t *left_out)
{
    double    now;
    uint32_t  sum;

    now = cli_now();
    sum = bloom_crc32c(0, message, strlen(message));
    *left_out = 0;

    if (strcmp(log->event, event) == 0 && log->message == sum) {

        if (now - log->time < AGAIN) {
            log->left_out++;
            return 1;
        }

        *left_out = log->left_out;
    }

    snprintf(log->event, sizeof(log->event), "%s", event);
    log->message = sum;
    log->time = now;
    log->left_out = 0;

    return 0;
}


void
follow_log(follow_log_t *log, const char *zone, follow_level_t level,
    const char *event, const char *fmt, ...)
{
    char      message[MESSAGE_MAX];
    va_list   args;
    uint64_t  left_out;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);

    left_out = 0;

    if ((log != NULL && repeats(log, event, message, &left_out))
        || (silent && level == FOLLOW_INFO))
    {
        return;
    }

    pthread_mutex_lock(&lock);
    flockfile(stderr);

    if (terminal) {
        print_line(zone, level, message);

    } else {
        print_json(zone, level, event, message, left_out);
    }

    fflush(stderr);
    funlockfile(stderr);
    pthread_mutex_unlock(&lock);
}


void
follow_log_progress(const char *fmt, ...)
{
    va_list  args;

    if (!terminal || silent) {
        return;
    }

    pthread_mutex_lock(&lock);

    fputc('\r', stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputs("\033[K", stderr);
    fflush(stderr);

    drawn = fmt[0] != '\0';

    pthread_mutex_unlock(&lock);
}


void
follow_log_notify(const char *state)
{
    int                  fd;
    size_t               len;
    const char          *path;
    struct sockaddr_un   address;

    path = getenv("NOTIFY_SOCKET");
    len = path != NULL ? strlen(path) : 0;

    if (len < 2 || len >= sizeof(address.sun_path)
        || (path[0] != '/' && path[0] != '@'))
    {
        return;
    }

    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, len);

    if (path[0] == '@') {
        address.sun_path[0] = '\0';      /* an abstract name */
    }

    fd = socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC, 0);

    if (fd != -1) {
        (void) sendto(fd, state, strlen(state), MSG_NOSIGNAL|MSG_DONTWAIT,
                      (struct sockaddr *) &address,
                      (socklen_t) (offsetof(struct sockaddr_un, sun_path)
                                   + len));
        (void) close(fd);
    }
}
