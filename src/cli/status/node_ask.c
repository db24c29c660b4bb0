/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file asks each node in a thread of its own.
 *
 * A response is parsed and freed before the thread ends.  Only one thread
 * parses at a time, since tokens take much more memory than the text.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "node_ask.h"

#define BODY_MAX   (16 << 20)            /* bytes of a response */
#define TOTAL_MAX  (128 << 20)           /* bytes of all responses */
#define STATE_MIN  1024                  /* a state is never shorter */


typedef struct {
    pthread_t              thread;
    node_t                *node;
    const http_settings_t *settings;
    http_client_t         *client;
} asking_t;


static pthread_mutex_t  parsing = PTHREAD_MUTEX_INITIALIZER;


static void fail(node_t *node, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


/* Keeps the reason why a node has no state. */
static void
fail(node_t *node, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    if (vasprintf(&node->error, fmt, args) == -1) {
        cli_no_memory(0);
    }

    va_end(args);
}


/* Keeps what is wrong with a response whose status is not 200. */
static void
refused(node_t *node, const http_response_t *response)
{
    char         message[HTTP_ERROR_LEN];
    json_doc_t   doc;
    const char  *advice;

    message[0] = '\0';

    if (json_read(&doc, response->body, response->len) == 0) {
        (void) json_read_text(&doc, json_read_member(&doc, doc.tokens,
                                                     "error.message"),
                              message, sizeof(message));
    }

    json_read_free(&doc);

    switch (response->status) {

    case 401:
    case 407:
        advice = "the server asks for a password; see --netrc";
        break;

    case 403:
        advice = "the server refuses this machine; see \"allow\" and \"deny\" "
                 "of the endpoint's location";
        break;

    case 404:
        advice = "there is no endpoint and no zone at this URL; check its path";
        break;

    case 503:
        advice = "try again";
        break;

    default:
        advice = "check that it is the URL of an endpoint or of a zone";
    }

    if (message[0] != '\0') {
        fail(node, "the status of the response is %d (%s): %s",
             response->status, message, advice);
        return;
    }

    fail(node, "the status of the response is %d: %s", response->status,
         advice);
}


/* Returns 1 if a document is the endpoint's index, which names its zones. */
static int
is_index(const json_doc_t *doc)
{
    const json_token_t  *list;

    list = json_read_member(doc, doc->tokens, "zones");

    return list != NULL && list->kind == JSON_READ_ARRAY
           && json_read_member(doc, doc->tokens, "version") != NULL;
}


static void
take_version(node_t *node, const json_doc_t *doc)
{
    char  version[64];

    if (json_read_text(doc, json_read_member(doc, doc->tokens, "version"),
                       version, sizeof(version)) == 0)
    {
        free(node->version);
        node->version = strdup(version);
    }
}


/* Takes a response.  Returns 1 if it is the endpoint's index, else 0. */
static int
take(asking_t *asking, const http_response_t *response)
{
    int          index;
    node_t      *node;
    json_doc_t   doc;
    const char  *why;

    node = asking->node;
    node->date = response->date;
    index = 0;

    if (response->status != 200) {
        refused(node, response);
        return 0;
    }

    if (json_read(&doc, response->body, response->len) != 0) {
        fail(node, "the response is not JSON; check that it is the URL of an "
             "endpoint or of a zone");

    } else if (is_index(&doc)) {
        take_version(node, &doc);
        index = 1;

    } else {
        why = node_state_take(node, &doc,
                              asking->settings->body_max / STATE_MIN);

        if (why != NULL) {
            node_state_free(node);
            fail(node, "the response %s; check that it is the URL of an "
                 "endpoint or of a zone", why);
        }
    }

    json_read_free(&doc);

    return index;
}


/* Requests base + rest and takes the response.  Returns what take() does. */
static int
ask(asking_t *asking, const char *rest)
{
    int              index;
    char            *url;
    http_response_t  response;

    url = http_url_join(asking->node->url, rest);
    index = 0;

    if (http_get(asking->client, url, &response) == 0) {
        (void) pthread_mutex_lock(&parsing);
        index = take(asking, &response);
        (void) pthread_mutex_unlock(&parsing);

    } else {
        fail(asking->node, "%s", response.error);
    }

    http_response_free(&response);
    free(url);

    return index;
}


/* Asks the endpoint above a zone for its version, which may remain unknown. */
static void
ask_version(asking_t *asking)
{
    char            *url;
    json_doc_t       doc;
    http_response_t  response;

    /* libcurl removes the dots */

    url = http_url_join(asking->node->url,
                        asking->node->whole ? "/../" : "/../../");

    if (http_get(asking->client, url, &response) == 0
        && response.status == 200)
    {
        (void) pthread_mutex_lock(&parsing);

        if (json_read(&doc, response.body, response.len) == 0
            && is_index(&doc))
        {
            take_version(asking->node, &doc);
        }

        json_read_free(&doc);
        (void) pthread_mutex_unlock(&parsing);
    }

    http_response_free(&response);
    free(url);
}


static void *
run(void *data)
{
    node_t    *node;
    asking_t  *asking = data;

    node = asking->node;
    asking->client = http_client_create(asking->settings);

    if (ask(asking, "/") && ask(asking, "/zones")) {
        fail(node, "the response has no state of a zone; check that it is the "
             "URL of an endpoint or of a zone");
    }

    if (node->error == NULL && node->version == NULL) {
        ask_version(asking);
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


void
node_ask(node_t *nodes, size_t n, http_settings_t *settings)
{
    size_t     i;
    asking_t  *asking;

    settings->body_max = TOTAL_MAX / n < BODY_MAX ? TOTAL_MAX / n : BODY_MAX;
    asking = cli_alloc(n * sizeof(asking_t));

    for (i = 0; i < n; i++) {
        nodes[i].shown = http_url_shown(nodes[i].url);
        nodes[i].date = -1;
        asking[i].node = &nodes[i];
        asking[i].settings = settings;
    }

    name_nodes(nodes, n);

    for (i = 0; i < n; i++) {
        cli_thread(&asking[i].thread, run, &asking[i]);
    }

    for (i = 0; i < n; i++) {
        (void) pthread_join(asking[i].thread, NULL);
    }

    free(asking);
}


void
node_ask_free(node_t *nodes, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        node_state_free(&nodes[i]);
        free(nodes[i].shown);
        free(nodes[i].error);
        free(nodes[i].version);
    }
}
