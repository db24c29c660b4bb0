/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom follow` carries the changes of a Redis stream to zones of any
 * number of nginxes.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"
#include "follow_zone.h"
#include "units.h"

#define ANSWER_TIMEOUT  10               /* seconds */
#define ONCE_TIMEOUT    60
#define TIMEOUT_MAX     86400
#define RESPONSE_MAX    (1024 * 1024)    /* bytes of a zone's state */
#define LOOK            50               /* ms between looks at the followers */
#define PROGRESS        0.2              /* seconds between progress lines */
#define STATUS          5.0              /* seconds between states of systemd */
#define GRACE           500              /* ms to finish a request at the end */


typedef struct {
    const char          *stream;
    const char          *source;
    const char         **zones;
    int                  n;
    follow_origin_t      origin;
    int                  empty;
    int                  once;
    unsigned             timeout;
    unsigned             answer_timeout;
    http_settings_t      http;
    int                  quiet;
} follow_t;


static int
take_zone(const option_t *option, const char *text, void *to)
{
    int        rc;
    char      *shown;
    follow_t  *follow = to;

    if (!url_is_http(text)) {

        /* the text may have a password */

        shown = url_shown(text);
        rc = options_wrong(option, shown, "must be the URL of a zone, such as "
                           "http://10.0.0.1:8080/bloom/zones/ids");
        free(shown);

        return rc;
    }

    follow->zones = cli_realloc(follow->zones,
                                (size_t) (follow->n + 1)
                                * sizeof(follow->zones[0]));
    follow->zones[follow->n++] = text;

    return CLI_OK;
}


static int
take_source(const option_t *option, const char *text, void *to)
{
    if (!bloom_source_name_valid(text, strlen(text))) {
        return options_wrong(option, text, "must be 1 to %d letters, digits "
                             "and characters of \"._:/-\"",
                             BLOOM_SOURCE_NAME_MAX);
    }

    *(const char **) to = text;

    return CLI_OK;
}


static int
take_from(const option_t *option, const char *text, void *to)
{
    follow_t  *follow = to;

    if (strcmp(text, "beginning") == 0) {
        follow->origin.from = FOLLOW_FROM_BEGINNING;

    } else if (strcmp(text, "now") == 0) {
        follow->origin.from = FOLLOW_FROM_NOW;

    } else if (bloom_position_parse(&follow->origin.id, text, strlen(text))
               == 0)
    {
        follow->origin.from = FOLLOW_FROM_ID;

    } else {
        return options_wrong(option, text, "must be beginning, now or the ID "
                             "of an entry, such as 1700000000000-0");
    }

    return CLI_OK;
}


static const option_t  options[] = {
    { 0, "stream", "KEY", offsetof(follow_t, stream), options_take_text,
      "the key of the stream; its entries have fields add and remove, any "
      "number of each, whose values are keys of the zones",
      .needed = "the key of the stream" },
    { 0, "source", "NAME", offsetof(follow_t, source), take_source,
      "the source of the zones: the name in their bloom_source",
      .needed = "the source" },
    { 0, "zone", "URL", 0, take_zone,
      "a zone at the endpoint of an nginx, such as "
      "http://10.0.0.1:8080/bloom/zones/ids; it may have a user and a "
      "password; give the option once for each zone",
      .needed = "a zone" },
    { 0, "from", "WHERE", 0, take_from,
      "where a zone begins that has no changes yet: beginning (a gap if the "
      "stream was trimmed), now, or after the entry of this ID (default: an "
      "hour before the as_of of its image, if IDs of the stream are times; "
      "the beginning, if it started empty)" },
    { 0, "empty", NULL, offsetof(follow_t, empty), options_take_flag,
      "the stream is new: a zone without changes is up to date although the "
      "stream does not exist yet (otherwise that is taken for a wrong name or "
      "database)" },
    { 0, "once", NULL, offsetof(follow_t, once), options_take_flag,
      "send what the stream has when the command begins, then exit" },
    { 0, "timeout", "SECONDS", offsetof(follow_t, timeout),
      options_take_number,
      "with --once: give up after that long (default: 60)",
      .is = "a number of seconds", 1, TIMEOUT_MAX },
    { 0, "answer-timeout", "SECONDS", offsetof(follow_t, answer_timeout),
      options_take_number,
      "how long Redis and nginx may take to accept a connection, and for an "
      "answer (default: 10)",
      .is = "a number of seconds", 1, 3600 },
    OPTIONS_GROUP(http_options, offsetof(follow_t, http)),
    OPTIONS_QUIET(follow_t),
    { 0 }
};


static const command_member_t  members[] = {
    { NULL, "in the log, without --json, unless it goes to a terminal:" },
    { "time", "the time of the event" },
    { "level", "info, warning or error" },
    { "event", "what happened, in a word, such as gap_trimmed" },
    { "zone", "the URL of the zone, unless the event is about all zones" },
    { "message", "what happened, and what to do" },
    { "repeated",
      "how often the same event was left out since the last line, if it was" },
    { NULL }
};


static int
check_server(char **operands, int n)
{
    int          rc;
    redis_url_t  url;

    if (n != 1) {
        return cli_misuse("name one Redis server, such as "
                          "redis://127.0.0.1:6379");
    }

    if (!redis_url_is(operands[0])) {
        return cli_misuse("the server must be a redis://, rediss:// or "
                          "unix:// URL, such as redis://127.0.0.1:6379");
    }

    rc = redis_url_parse_server(&url, operands[0]);

    if (rc != 0) {
        cli_error("%s: is not the address of a Redis server; write "
                  "redis://host:port/database or unix:///path?db=database, and "
                  "in a password %%40 for an @ and %%2F for a /", url.shown);
    }

    redis_url_free(&url);

    return rc == 0 ? CLI_OK : CLI_ERROR;
}


/* Counts the followers in a phase. */
static int
in_phase(follow_zone_t **zones, int n, follow_phase_t phase)
{
    int            i, found;
    follow_view_t  view;

    for (found = 0, i = 0; i < n; i++) {
        follow_zone_view(zones[i], &view);
        found += view.phase == phase;
    }

    return found;
}


static void
show_progress(follow_zone_t **zones, int n, double begun)
{
    int            i;
    char           count[UNITS_LEN], invalid[UNITS_LEN], rate[UNITS_LEN];
    double         seconds;
    uint64_t       changes, left_out;
    follow_view_t  view;

    for (changes = 0, left_out = 0, i = 0; i < n; i++) {
        follow_zone_view(zones[i], &view);
        changes += view.changes;
        left_out += view.invalid;
    }

    seconds = cli_now() - begun;
    format_count(count, (double) changes);
    format_count(invalid, (double) left_out);
    format_count(rate, seconds > 0 ? (double) changes / seconds : 0);

    follow_log_progress("%d of %d zone%s up to date, %d failing, %s changes "
                        "sent, %s invalid, %s/s",
                        in_phase(zones, n, FOLLOW_CURRENT), n, CLI_S(n),
                        in_phase(zones, n, FOLLOW_FAILING), count, invalid,
                        rate);
}


static void
tell_systemd(follow_zone_t **zones, int n)
{
    char  text[128];

    snprintf(text, sizeof(text), "STATUS=%d of %d zone%s up to date, %d "
             "failing", in_phase(zones, n, FOLLOW_CURRENT), n, CLI_S(n),
             in_phase(zones, n, FOLLOW_FAILING));
    follow_log_notify(text);
}


/* Waits for a signal; or, with --once, until all followers have ended or the
 * time has passed.  Returns 1 after a signal, else 0. */
static int
watch(const follow_t *follow, follow_zone_t **zones, const sigset_t *signals)
{
    int              ended;
    double           begun, now, progress, status;
    struct timespec  look = { 0, LOOK * 1000000 };

    begun = cli_now();
    progress = begun + PROGRESS;
    status = begun;

    for ( ;; ) {

        if (sigtimedwait(signals, NULL, &look) > 0) {
            return 1;
        }

        now = cli_now();
        ended = in_phase(zones, follow->n, FOLLOW_DONE)
                + in_phase(zones, follow->n, FOLLOW_GAVE_UP);

        if (follow->once
            && (ended == follow->n || now - begun >= follow->timeout))
        {
            return 0;
        }

        if (now >= progress) {
            progress = now + PROGRESS;
            show_progress(zones, follow->n, begun);
        }

        if (now >= status) {
            status = now + STATUS;
            tell_systemd(zones, follow->n);
        }
    }
}


/* Stops the followers.  Returns 0, or -1 if some still wait for an answer. */
static int
stop(follow_settings_t *settings, follow_zone_t **zones, int n)
{
    int              i, rc;
    struct timespec  until;

    pthread_mutex_lock(&settings->lock);
    settings->stop = 1;
    pthread_cond_broadcast(&settings->wake);
    pthread_mutex_unlock(&settings->lock);

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GRACE * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;

    for (rc = 0, i = 0; i < n; i++) {
        rc |= follow_zone_join(zones[i], &until);
    }

    return rc;
}


/* Names the zones that --once could not bring up to date.  Returns the exit
 * status. */
static int
report(const follow_t *follow, follow_zone_t **zones)
{
    int            i, status;
    follow_view_t  view;

    for (status = CLI_OK, i = 0; i < follow->n; i++) {

        follow_zone_view(zones[i], &view);

        if (view.phase != FOLLOW_DONE) {
            status = CLI_NO;
            follow_log(NULL, follow_zone_name(zones[i]), FOLLOW_ERROR,
                       "not_up_to_date", "the zone could not be brought up to "
                       "date%s",
                       view.phase == FOLLOW_GAVE_UP ? ""
                       : "; see above, or use a larger --timeout");

        } else if (view.gaps) {
            status = CLI_NO;
        }
    }

    return status;
}


static int
run(char **operands, int n, void *values)
{
    int                  i, status;
    sigset_t             signals;
    follow_t            *follow = values;
    follow_zone_t      **zones;
    follow_settings_t    settings;
    pthread_condattr_t   attributes;

    if (check_server(operands, n) != CLI_OK
        || tls_check(&follow->http.tls) != CLI_OK)
    {
        return CLI_ERROR;
    }

    if (follow->timeout != 0 && !follow->once) {
        return cli_misuse("--timeout is for --once; --answer-timeout limits "
                          "the wait for an answer");
    }

    if (follow->empty && follow->origin.from == FOLLOW_FROM_NOW) {
        return cli_misuse("--empty says that the stream has no entries yet, so "
                          "use it with --from beginning, not with --from now");
    }

    follow->timeout = follow->timeout ? follow->timeout : ONCE_TIMEOUT;

    memset(&settings, 0, sizeof(settings));
    settings.redis = operands[0];
    settings.stream = follow->stream;
    settings.source = follow->source;
    settings.origin = follow->origin;
    settings.empty = follow->empty;
    settings.once = follow->once;
    settings.answer_timeout = follow->answer_timeout ? follow->answer_timeout
                                                     : ANSWER_TIMEOUT;
    settings.http = follow->http;
    settings.http.timeout = settings.answer_timeout * 1000;
    settings.http.body_max = RESPONSE_MAX;

    pthread_mutex_init(&settings.lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&settings.wake, &attributes);

    /* the followers inherit the mask, so this thread alone gets the signals */

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    follow_log_begin(follow->quiet);

    zones = cli_alloc((size_t) follow->n * sizeof(zones[0]));

    for (i = 0; i < follow->n; i++) {
        zones[i] = follow_zone_start(&settings, follow->zones[i]);
    }

    follow_log_notify("READY=1");

    status = watch(follow, zones, &signals) ? CLI_OK : report(follow, zones);

    follow_log(NULL, NULL, FOLLOW_INFO, "stopping", "stopping");
    follow_log_notify("STOPPING=1");
    follow_log_progress("%s", "");

    if (stop(&settings, zones, follow->n) != 0) {

        /* a request in flight is abandoned: the zone has it as a whole or not
         * at all */

        _exit(status);
    }

    free(zones);
    free(follow->zones);

    return status;
}


static follow_t  values;

const command_t  cmd_follow = {
    .name = "follow",
    .does = "carry changes from a Redis stream to zones",
    .synopsis = "[OPTION...] --stream KEY --source NAME --zone URL REDIS",
    .about =
        "REDIS is redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], rediss:// for "
        "TLS, or unix://[[USER:]PASSWORD@]/PATH[?db=DB] for a Unix socket.\n\n"
        "Reads a stream of Redis 5 or later, or of Valkey, and sends the keys "
        "to add and to remove to zones that take their changes from this "
        "source. It runs until SIGTERM or SIGINT ends it.\n\n"
        "Each zone has its own position and its own connections, so a dead "
        "nginx holds up no other. A zone that is up to date gets a sign of "
        "life at least once a second. If changes are or may be missing, as the "
        "stream was trimmed, recreated or lost its end, the zone is told so, "
        "and answers unknown until a newer image serves.\n\n"
        "The log goes to standard error: lines and a progress line on a "
        "terminal, otherwise a JSON object per line. The password of Redis may "
        "be in the environment variable REDISCLI_AUTH (for a user: "
        "redis://user:@host), and --netrc has those for HTTP. For TLS, write "
        "rediss:// and https://; --cacert, --cert and --cert-key are for "
        "both.",
    .options = options,
    .values = &values,
    .status =
        "0 ended by a signal, or --once sent everything; 1 --once could not "
        "bring some zone up to date, or changes are missing; 2 an error.",
    .members = members,
    .examples =
        "ngx-bloom follow --stream ids --source ids --zone \\\n"
        "    http://10.0.0.1:8080/bloom/zones/ids redis://10.0.0.9\n"
        "ngx-bloom follow --once --stream ids --source ids --zone \\\n"
        "    http://127.0.0.1/bloom/zones/ids redis://127.0.0.1/1\n",
    .run = run
};
