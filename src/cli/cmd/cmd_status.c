/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom status` asks the endpoints of several nodes for the states of
 * their zones, and says what is wrong and in what they disagree.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"
#include "compare.h"
#include "given_keys.h"
#include "node.h"
#include "status_print.h"

#define TIMEOUT  5                       /* seconds */
#define PAUSE    1                       /* seconds until nodes are asked
                                            again */
#define SAMPLE_MAX   10000               /* keys */
#define SAMPLE_BYTES (1 << 20)


typedef struct {
    http_settings_t  http;
    unsigned         timeout;            /* seconds */
    const char      *sample;             /* a file; NULL: none */
    int              json;
} status_t;

typedef struct {
    node_sample_t  *sample;
    char           *body;
    int             too_many;
} reading_t;


static const option_t  options[] = {
    { 0, "timeout", "SECONDS", offsetof(status_t, timeout),
      options_take_number,
      "how long each response of a node may take (default: 5)",
      .is = "a number of seconds", 1, 3600 },
    { 0, "sample", "FILE", offsetof(status_t, sample), options_take_text,
      "ask each zone about the keys in FILE (-: standard input), one on each "
      "line, at most 10000, and compare the answers" },
    OPTIONS_GROUP(http_options, offsetof(status_t, http)),
    OPTIONS_JSON(status_t),
    { 0 }
};


static void
take_key(const bloom_key_t *key, void *data)
{
    char           *copy;
    reading_t      *reading = data;
    node_sample_t  *sample;

    sample = reading->sample;

    if (key->len == 0) {
        return;
    }

    if (sample->n == SAMPLE_MAX || key->len >= SAMPLE_BYTES - sample->len) {
        reading->too_many = 1;
        return;
    }

    copy = strndup((const char *) key->data, key->len);

    if (copy == NULL) {
        cli_no_memory(key->len);
    }

    sample->keys[sample->n++] = copy;
    memcpy(reading->body + sample->len, key->data, key->len);
    sample->len += key->len;
    reading->body[sample->len++] = '\n';
}


static void
free_sample(node_sample_t *sample)
{
    if (sample != NULL) {

        while (sample->n != 0) {
            free(sample->keys[--sample->n]);
        }

        free((char *) sample->body);
        free(sample->keys);
        free(sample);
    }
}


/* Reads the sample of a file.  Returns it, or NULL after a message. */
static node_sample_t *
read_sample(const char *file)
{
    int           rc;
    reading_t     reading;
    given_keys_t  given;

    memset(&given, 0, sizeof(given));
    given.file = file;

    reading.too_many = 0;
    reading.body = cli_alloc(SAMPLE_BYTES);
    reading.sample = cli_alloc(sizeof(node_sample_t));
    reading.sample->body = reading.body;
    reading.sample->len = 0;
    reading.sample->keys = cli_alloc(SAMPLE_MAX * sizeof(char *));
    reading.sample->n = 0;

    rc = given_keys_each(&given, NULL, 0, take_key, &reading);

    if (rc == CLI_OK && (reading.sample->n == 0 || reading.too_many)) {
        cli_error("%s: a sample has 1 to %d keys, and less than %d KiB; take "
                  "some of the keys, for example with \"shuf -n 1000\"",
                  file, SAMPLE_MAX, SAMPLE_BYTES / 1024);
        rc = CLI_ERROR;
    }

    if (rc != CLI_OK) {
        free_sample(reading.sample);
        return NULL;
    }

    return reading.sample;
}


/* Returns CLI_OK, or CLI_ERROR after a message. */
static int
check_urls(char **urls, int n)
{
    int    i;
    char  *shown;

    if (n < 1) {
        return cli_misuse("no URL is given");
    }

    if (n > NODE_MAX) {
        return cli_misuse("there are %d URLs; give at most %d", n,
                          NODE_MAX);
    }

    for (i = 0; i < n; i++) {
        if (!url_is_http(urls[i])) {
            shown = url_shown(urls[i]);
            (void) cli_misuse("%s: must be %s", shown, HTTP_URL);
            free(shown);
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


static int
run(char **urls, int n, void *data)
{
    size_t          count;
    node_t         *nodes, *before;
    status_t       *status = data;
    findings_t      found;
    node_sample_t  *sample;

    if (check_urls(urls, n) != CLI_OK
        || tls_check(&status->http.tls) != CLI_OK)
    {
        return CLI_ERROR;
    }

    sample = status->sample != NULL ? read_sample(status->sample) : NULL;

    if (status->sample != NULL && sample == NULL) {
        return CLI_ERROR;
    }

    status->http.timeout = 1000 * status->timeout;
    count = (size_t) n;

    nodes = node_ask(urls, count, &status->http, sample);
    compare_nodes(&found, nodes, count, sample);

    if (found.moving) {

        /* changes may have been on their way */

        findings_free(&found);
        before = nodes;

        (void) sleep(PAUSE);

        nodes = node_ask(urls, count, &status->http, sample);
        node_asked_before(nodes, before, count);
        compare_nodes(&found, nodes, count, sample);

        node_free(before, count);
    }

    if (status->json) {
        status_print_json(&found, nodes, count);

    } else {
        status_print(&found, count);
    }

    n = found.n == 0 ? CLI_OK : CLI_NO;

    findings_free(&found);
    node_free(nodes, count);
    free_sample(sample);

    return n;
}


static status_t  values = { .timeout = TIMEOUT };

static const command_member_t  members[] = {
    { "ok", "true if nothing is wrong and the nodes agree" },
    { "nodes",
      "an array of the nodes in the order of their URLs; each has url (without "
      "its password), version (of the module; null if unknown) and error (why "
      "it has no state, or null)" },
    { "zones",
      "an array of the zones of each node, ordered by name; each has node (a "
      "URL), name, state, generation, build_id, form, as_of, created, items, "
      "estimated_items, max_items, fill_ratio, bits_set, removed, excepted, "
      "source, source_state, position, digest, digest_since, lag_ms, "
      "journal_error, lost_keys, as the endpoint has them, and "
      "helper_silence_ms (the time since the helper's last sign of life); a "
      "value that the node does not tell is null" },
    { "sampled",
      "an array with zone, keys (how many of the sample at least two nodes "
      "know) and differ, for each name of a zone; empty without --sample" },
    { "problems",
      "an array of what is wrong or disagrees; each has what (a word, such as "
      "no_answer, state or build_id), zone (null: all zones) and message" },
    { 0 }
};

const command_t  cmd_status = {
    .name = "status",
    .does = "compare the zones of several nodes",
    .synopsis = "[OPTION...] URL...",
    .about =
        "Asks the endpoints (bloom_api) of up to 256 nodes for the states of "
        "their zones, all at the same time, and prints a table. A mark * "
        "follows each value that is wrong or in which zones of the same name "
        "disagree. Below, a sentence for each problem says what to do. URL is "
        "that of an endpoint, such as http://10.0.0.1:8080/bloom/, or of one "
        "zone, such as http://10.0.0.1:8080/bloom/zones/ids.\n\n"
        "Wrong are: a node that does not answer, a state other than serving, "
        "lost keys, a journal that fails, a failed load, a helper that is "
        "silent for more than 10 seconds by the clock of its node, and a "
        "source that is not current. Nodes disagree if their versions, key "
        "forms, sizes or settings differ, or the numbers of bits set or of "
        "removed keys. If only such a number differs, the nodes are asked "
        "again after a second, because changes may have been on their "
        "way.\n\n"
        "Nodes may build their images themselves, from the same database. Then "
        "the images (build ids) differ, and nodes disagree if the times of "
        "their images (as_of, or else created) are more than an hour apart, "
        "or if the numbers of keys differ: by anything if the times are the "
        "same, else by more than 1 %. With --sample, the zones are asked about "
        "the same keys, and disagree if one has a key that another one lacks. "
        "A key that is in no database may be a false positive of one filter "
        "alone.\n\n"
        "Zones with a source are compared by the digest of its changes "
        "instead, if they are at the same position and began to count at the "
        "same one.\n\n"
        "Equal numbers of bits do not prove that the filters are equal. "
        "Filters that started empty or have layers are compared by their "
        "estimated numbers of keys, and only large differences count. Excepted "
        "keys and keys that expire are not compared.",
    .options = options,
    .values = &values,
    .status = "0 nothing is wrong and the nodes agree; 1 something is wrong, "
              "or the nodes disagree; 2 an error.",
    .members = members,
    .examples =
        "ngx-bloom status http://10.0.0.1:8080/bloom/ "
        "http://10.0.0.2:8080/bloom/\n"
        "ngx-bloom status --json http://127.0.0.1:8080/bloom/zones/ids\n",
    .run = run
};
