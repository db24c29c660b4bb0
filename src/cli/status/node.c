/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file asks each node in a thread of its own.
 *
 * Only one thread parses at a time, since a document takes more memory than its
 * text while it is parsed.
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "document.h"
#include "fields.h"
#include "node.h"

#define BODY_MAX   (16 << 20)            /* bytes of a response */
#define TOTAL_MAX  (128 << 20)           /* bytes of all responses */
#define STATE_MIN  1024                  /* a state is never shorter */


typedef struct {
    pthread_t              thread;
    node_t                *node;
    const http_settings_t *settings;
    const node_sample_t   *sample;
    http_client_t         *client;
    const char            *zones;        /* before a zone's name in URLs; NULL:
                                            the URL is that of a zone */
} asking_t;


static pthread_mutex_t  parsing = PTHREAD_MUTEX_INITIALIZER;


static void
free_zones(node_t *node)
{
    size_t  i;

    for (i = 0; i < node->n; i++) {
        json_decref(node->zones[i].values);
        free(node->zones[i].answers);
        free(node->zones[i].error);
    }

    free(node->zones);
    node->zones = NULL;
    node->n = 0;
}


static void fail(char **error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Keeps the reason why a node has no state, or a zone no answers. */
static void
fail(char **error, const char *fmt, ...)
{
    va_list  args;

    free(*error);
    va_start(args, fmt);

    if (vasprintf(error, fmt, args) == -1) {
        cli_no_memory(0);
    }

    va_end(args);
}


/* Keeps what is wrong with a response whose status is not 200. */
static void
refused(char **error, const http_response_t *response)
{
    size_t       i;
    json_t      *doc;
    const char  *message;

    static const struct {
        int          status;
        const char  *advice;
    } known[] = {
        { 401, "the server asks for a password; see --netrc" },
        { 407, "the server asks for a password; see --netrc" },
        { 403, "the server refuses this machine; see \"allow\" and \"deny\" of "
               "the endpoint's location" },
        { 404, "there is no endpoint and no zone at this URL; check its path" },
        { 503, "try again" },
        { 0, "check that it is the URL of an endpoint or of a zone" }
    };

    for (i = 0; known[i].status != 0; i++) {
        if (known[i].status == response->status) {
            break;
        }
    }

    doc = document_parse(response->body, response->len);
    message = document_text(doc, "error.message");

    fail(error, "the status of the response is %d%s%.*s%s: %s",
         response->status, message != NULL ? " (" : "", HTTP_ERROR_LEN - 1,
         message != NULL ? message : "", message != NULL ? ")" : "",
         known[i].advice);

    json_decref(doc);
}


/* Sends a GET request, or a POST request with the sample, and parses what
 * comes.  Returns NULL if there is no document; *error is why, unless `error`
 * is NULL. */
static json_t *
request(asking_t *asking, const char *rest, int posts, char **error)
{
    int              rc;
    char            *url;
    json_t          *doc;
    node_t          *node;
    http_response_t  response;

    node = asking->node;
    url = url_join(node->url, rest);
    rc = posts ? http_post(asking->client, url, "text/plain",
                           asking->sample->body, asking->sample->len, &response)
               : http_get(asking->client, url, &response);
    doc = NULL;

    if (rc == 0 && response.status == 200) {
        (void) pthread_mutex_lock(&parsing);
        doc = document_parse(response.body, response.len);
        (void) pthread_mutex_unlock(&parsing);
    }

    node->date = rc == 0 ? response.date : node->date;

    if (error != NULL) {

        if (rc != 0) {
            fail(error, "%s", response.error);

        } else if (response.status != 200) {
            refused(error, &response);

        } else if (doc == NULL) {
            fail(error, "the response is not JSON; check that it is the URL of "
                 "an endpoint or of a zone");
        }
    }

    http_response_free(&response);
    free(url);

    return doc;
}


/* Takes the version if the document is the endpoint's index, which names its
 * zones.  Returns 1 if it is one, else 0. */
static int
take_index(node_t *node, const json_t *doc)
{
    if (!json_is_array(document_member(doc, "zones"))
        || document_member(doc, "version") == NULL)
    {
        return 0;
    }

    if (node->version == NULL && document_text(doc, "version") != NULL) {
        node->version = strdup(document_text(doc, "version"));
    }

    return 1;
}


/* Takes the states of a document: the state of one zone, or a list of states.
 * Returns NULL, or the reason why it is neither. */
static const char *
take_states(asking_t *asking, const json_t *doc)
{
    size_t         i, n;
    node_t        *node;
    node_zone_t   *zone;
    const json_t  *list;

    node = asking->node;
    list = document_member(doc, "zones");
    node->whole = json_is_array(list);
    n = node->whole ? json_array_size(list) : 1;

    if (n > asking->settings->body_max / STATE_MIN) {
        return "has too many zones; give the URLs of zones";
    }

    node->zones = cli_alloc((n + 1) * sizeof(node_zone_t));
    memset(node->zones, 0, (n + 1) * sizeof(node_zone_t));

    for (i = 0; i < n; i++) {
        zone = &node->zones[node->n++];
        zone->values = fields_take(node->whole ? json_array_get(list, i) : doc);
        zone->name = field_text(zone->values, "name");

        if (zone->name == NULL || field_text(zone->values, "state") == NULL) {
            return "has no state of a zone";
        }
    }

    return NULL;
}


/* Asks a zone about the keys of the sample. */
static void
ask_sample(asking_t *asking, node_zone_t *zone)
{
    char        *path, *name;
    size_t       i;
    json_t      *doc, *answers;
    const char  *answer;

    name = url_escape(zone->name);

    if (asprintf(&path, "%s%s/test", asking->zones ? asking->zones : "",
                 asking->zones ? name : "")
        == -1)
    {
        cli_no_memory(0);
    }

    doc = request(asking, path, 1, &zone->error);
    answers = document_member(doc, "answers");

    if (doc != NULL && json_array_size(answers) != asking->sample->n) {
        fail(&zone->error, "the response has not as many answers as --sample "
             "has keys; check the version of the module");

    } else if (doc != NULL) {
        zone->answers = cli_alloc(asking->sample->n);

        for (i = 0; i < asking->sample->n; i++) {
            answer = json_string_value(json_array_get(answers, i));
            zone->answers[i] = answer != NULL ? answer[0] : '\0';
        }
    }

    json_decref(doc);
    free(path);
    free(name);
}


static void *
run(void *data)
{
    size_t       i;
    json_t      *doc;
    node_t      *node;
    asking_t    *asking = data;
    const char  *why;

    node = asking->node;
    asking->client = http_client_create(asking->settings);
    doc = request(asking, "/", 0, &node->error);
    asking->zones = json_is_array(document_member(doc, "zones")) ? "/" : NULL;

    if (take_index(node, doc)) {
        asking->zones = "/zones/";
        json_decref(doc);
        doc = request(asking, "/zones", 0, &node->error);
    }

    why = doc == NULL ? NULL
          : take_index(node, doc) ? "has no state of a zone"
          : take_states(asking, doc);
    json_decref(doc);

    if (why != NULL) {
        free_zones(node);
        fail(&node->error, "the response %s; check that it is the URL of an "
             "endpoint or of a zone", why);
    }

    for (i = 0; i < node->n && asking->sample && node->error == NULL; i++) {
        ask_sample(asking, &node->zones[i]);
    }

    if (node->error == NULL && node->version == NULL) {

        /* the endpoint above; libcurl removes the dots */

        doc = request(asking, node->whole ? "/../" : "/../../", 0, NULL);
        (void) take_index(node, doc);
        json_decref(doc);
    }

    if (node->error != NULL) {
        free_zones(node);
    }

    for (i = 0; i < node->n; i++) {
        fields_derive(node->zones[i].values, node->version, node->date);
    }

    http_client_destroy(asking->client);

    return NULL;
}


/* Gives each node the shortest name that tells it from the others: its host and
 * port, or its whole URL. */
static void
name_nodes(node_t *nodes, size_t n)
{
    int      hosts;
    char    *host;
    size_t   i, j;

    hosts = 1;

    for (i = 0; i < n; i++) {
        host = strstr(nodes[i].shown, "//");
        nodes[i].name = host ? host + 2 : nodes[i].shown;
        nodes[i].name_len = (int) strcspn(nodes[i].name, "/");

        for (j = 0; j < i; j++) {
            if (nodes[j].name_len == nodes[i].name_len
                && strncmp(nodes[j].name, nodes[i].name,
                           (size_t) nodes[i].name_len) == 0)
            {
                hosts = 0;
            }
        }
    }

    for (i = 0; i < n && !hosts; i++) {
        nodes[i].name_len = (int) strlen(nodes[i].name);
    }
}


node_t *
node_ask(char **urls, size_t n, http_settings_t *settings,
    const node_sample_t *sample)
{
    size_t     i;
    node_t    *nodes;
    asking_t  *asking;

    settings->body_max = TOTAL_MAX / n < BODY_MAX ? TOTAL_MAX / n : BODY_MAX;
    nodes = cli_alloc(n * sizeof(node_t));
    memset(nodes, 0, n * sizeof(node_t));
    asking = cli_alloc(n * sizeof(asking_t));

    for (i = 0; i < n; i++) {
        nodes[i].url = urls[i];
        nodes[i].shown = url_shown(urls[i]);
        nodes[i].date = -1;
        asking[i].node = &nodes[i];
        asking[i].settings = settings;
        asking[i].sample = sample;
    }

    name_nodes(nodes, n);

    for (i = 0; i < n; i++) {
        cli_thread(&asking[i].thread, run, &asking[i]);
    }

    for (i = 0; i < n; i++) {
        (void) pthread_join(asking[i].thread, NULL);
    }

    free(asking);

    return nodes;
}


void
node_asked_before(node_t *nodes, const node_t *before, size_t n)
{
    size_t              i, j;
    node_zone_t        *zone;
    const node_zone_t  *old;

    for (i = 0; i < n; i++) {
        for (j = 0; j < nodes[i].n && j < before[i].n; j++) {

            zone = &nodes[i].zones[j];
            old = &before[i].zones[j];

            /* another generation begins with other numbers */

            if (strcmp(zone->name, old->name) == 0
                && field_count(zone->values, "generation")
                   == field_count(old->values, "generation"))
            {
                zone->before = old->values;
            }
        }
    }
}


void
node_free(node_t *nodes, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        free_zones(&nodes[i]);
        free(nodes[i].shown);
        free(nodes[i].error);
        free(nodes[i].version);
    }

    free(nodes);
}
