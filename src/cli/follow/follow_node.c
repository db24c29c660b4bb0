/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends requests about a zone to an nginx.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "follow_node.h"
#include "units.h"

#define BODY_LEAST  64
#define BODY_MOST   (16 * 1024 * 1024)
#define CODE_MAX    63
#define TEXT_MAX    300


void
follow_node_open(follow_node_t *node, const char *url, const char *source,
    const http_settings_t *settings)
{
    memset(node, 0, sizeof(*node));
    node->http = http_client_create(settings);
    node->url = url_join(url, "");
    node->source = source;
}


void
follow_node_close(follow_node_t *node)
{
    http_client_destroy(node->http);
    free(node->url);
}


static follow_answer_t says(follow_node_t *node, follow_answer_t answer,
    const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Keeps what an answer means.  Returns it. */
static follow_answer_t
says(follow_node_t *node, follow_answer_t answer, const char *event,
    const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(node->error, sizeof(node->error), fmt, args);
    va_end(args);

    node->event = event;

    return answer;
}


static follow_answer_t
not_nginx(follow_node_t *node)
{
    return says(node, FOLLOW_NODE_FAILED, "bad_answer", "the answer is not one "
                "of nginx's endpoint; check that the URL is that of a zone, "
                "such as http://127.0.0.1:8080/bloom/zones/ids");
}


static int
read_position(const json_t *doc, const char *path, bloom_position_t *position)
{
    const char  *text;

    text = document_text(doc, path);

    return text != NULL ? bloom_position_parse(position, text, strlen(text))
                        : -1;
}


/* Says what a status other than 200 means. */
static follow_answer_t
refused(follow_node_t *node, const http_response_t *response,
    const json_t *doc)
{
    int          status;
    const char  *code, *message, *colon;

    status = response->status;
    code = document_text(doc, "error.code");
    message = document_text(doc, "error.message");
    colon = message != NULL ? ": " : "";
    code = code != NULL ? code : "";
    message = message != NULL ? message : "";

    if (status == 413) {
        return says(node, FOLLOW_NODE_LARGE, "too_large", "a request with this "
                    "change alone is too large%s%.*s; set client_max_body_size "
                    "0 in the location of the endpoint, and raise the limits "
                    "of proxies in between", colon, TEXT_MAX, message);
    }

    if (status == 409 && strcmp(code, "wrong_position") == 0) {
        return says(node, FOLLOW_NODE_ELSEWHERE, "wrong_position", "the zone "
                    "is at another position");
    }

    if (status == 409 && strcmp(code, "wrong_source") == 0) {
        return says(node, FOLLOW_NODE_REFUSED, "wrong_source", "the zone has "
                    "another source than \"%s\"; correct --source, or the "
                    "zone's bloom_source", node->source);
    }

    if (status == 507) {
        return says(node, FOLLOW_NODE_UNFIT, "no_room", "the zone has no "
                    "room for more removed keys; load an image that was built "
                    "with a newer --source %s=POSITION, or raise the zone's "
                    "removals=", node->source);
    }

    if (status >= 500) {
        return says(node, FOLLOW_NODE_FAILED, "nginx_failed", "nginx answered "
                    "%d %.*s%s%.*s; look at its error log if this goes on",
                    status, CODE_MAX, code, colon, TEXT_MAX, message);
    }

    if (status >= 300 && status < 400) {
        return says(node, FOLLOW_NODE_REFUSED, "redirect", "nginx answered %d, "
                    "a redirect, which is not followed; use the URL of the "
                    "endpoint itself", status);
    }

    return says(node, status == 400 ? FOLLOW_NODE_UNFIT : FOLLOW_NODE_REFUSED,
                "refused", "nginx answered %d %.*s%s%.*s; %s", status,
                CODE_MAX, code, colon, TEXT_MAX, message,
                status == 401 ? "use --netrc, or user:password@ in the URL"
                : status == 403 ? "the zone needs write=on, and this address "
                                  "must be allowed"
                : status == 404 ? "check the URL of the zone"
                : status == 409 ? "the zone needs a bloom_source and an image "
                                  "that serves"
                : "check the versions of ngx-bloom and of the module");
}


/* Takes a response.  Returns FOLLOW_NODE_OK if its status is 200, and *doc is
 * what it says, or NULL. */
static follow_answer_t
take(follow_node_t *node, int rc, const http_response_t *response,
    json_t **doc)
{
    *doc = NULL;

    if (rc != 0) {
        return says(node, FOLLOW_NODE_FAILED, "unreachable", "%s",
                    response->error);
    }

    *doc = document_parse(response->body, response->len);

    if (response->status != 200) {
        return refused(node, response, *doc);
    }

    return *doc != NULL ? FOLLOW_NODE_OK : not_nginx(node);
}


/* Returns 1 if a zone started empty and has got no image since, else 0. */
static int
read_empty(const json_t *doc)
{
    return json_is_null(document_member(doc, "file"))
           && document_flag(doc, "image.uploaded") == 0;
}


static follow_answer_t
read_state(follow_node_t *node, const json_t *doc, follow_state_t *state)
{
    uint64_t      max_body;
    const char   *name, *word, *as_of;
    const json_t *source;

    source = document_member(doc, "source");

    if (source == NULL || json_is_null(source)) {
        return says(node, FOLLOW_NODE_REFUSED, "no_source", "the zone has no "
                    "source; add a bloom_source with name=%s, and check that "
                    "the URL is that of a zone", node->source);
    }

    name = document_text(source, "name");

    if (name == NULL) {
        return not_nginx(node);
    }

    if (strcmp(name, node->source) != 0) {
        return says(node, FOLLOW_NODE_REFUSED, "wrong_source", "the source of "
                    "the zone is \"%.*s\", not \"%s\"; correct --source, or "
                    "the zone's bloom_source", BLOOM_SOURCE_NAME_MAX, name,
                    node->source);
    }

    word = document_text(source, "state");

    if (word == NULL
        || read_position(source, "position", &state->position) != 0
        || document_count(source, "max_body", &max_body) != 0)
    {
        return not_nginx(node);
    }

    state->gap = strcmp(word, "gap") == 0;
    state->max_body = max_body < BODY_LEAST ? BODY_LEAST
                      : max_body > BODY_MOST ? BODY_MOST : (size_t) max_body;
    state->as_of = 0;
    state->empty = read_empty(doc);

    as_of = document_text(doc, "image.as_of");

    if (as_of != NULL) {
        (void) parse_time(as_of, &state->as_of);
    }

    return FOLLOW_NODE_OK;
}


follow_answer_t
follow_node_state(follow_node_t *node, follow_state_t *state)
{
    json_t          *doc;
    follow_answer_t  answer;
    http_response_t  response;

    answer = take(node, http_get(node->http, node->url, &response), &response,
                  &doc);

    if (answer == FOLLOW_NODE_OK) {
        answer = read_state(node, doc, state);
    }

    json_decref(doc);
    http_response_free(&response);

    return answer;
}


/* Reads the answer to a batch of changes.  Returns 0, or -1 if nginx does not
 * answer so. */
static int
read_result(const json_t *doc, bloom_position_t after,
    const change_batch_t *batch, follow_result_t *result)
{
    int               order, applied;
    const char       *reason;
    bloom_position_t  expected;

    memset(result, 0, sizeof(*result));
    expected = batch->more ? after : batch->position;

    applied = document_flag(doc, "applied");

    if (applied == -1
        || read_position(doc, "position", &result->position) != 0)
    {
        return -1;
    }

    (void) document_count(doc, "offset", &result->offset);
    follow_counts_read(&result->counts, doc);
    (void) document_count(doc, "first_invalid.number", &result->number);
    reason = document_text(doc, "first_invalid.reason");
    snprintf(result->reason, sizeof(result->reason), "%s",
             reason != NULL ? reason : "");

    order = bloom_position_cmp(result->position, expected);

    if (order < 0 || (applied && order != 0)) {
        return -1;
    }

    /* a zone that has a part has all of it */

    return batch->more && order == 0
           && result->offset < batch->offset + batch->changes ? -1 : 0;
}


follow_answer_t
follow_node_changes(follow_node_t *node, bloom_position_t after,
    const change_batch_t *batch, follow_result_t *result)
{
    int               n;
    char             *url, query[BLOOM_SOURCE_NAME_MAX + 192];
    char              from[BLOOM_POSITION_TEXT_MAX];
    char              to[BLOOM_POSITION_TEXT_MAX];
    json_t           *doc;
    follow_answer_t   answer;
    http_response_t   response;

    (void) bloom_position_write(after, from);
    (void) bloom_position_write(batch->position, to);

    n = snprintf(query, sizeof(query), "/changes?source=%s&after=%s&position=%s"
                 "&decode=uri", node->source, from, to);

    if (batch->offset != 0 || batch->more) {
        snprintf(query + n, sizeof(query) - (size_t) n,
                 "&offset=%llu&more=%s", (unsigned long long) batch->offset,
                 batch->more ? "true" : "false");
    }

    url = url_join(node->url, query);
    answer = take(node, http_post(node->http, url, "text/plain", batch->body,
                                  batch->len, &response),
                  &response, &doc);
    free(url);

    if (answer == FOLLOW_NODE_OK
        && read_result(doc, after, batch, result) != 0)
    {
        answer = not_nginx(node);
    }

    json_decref(doc);
    http_response_free(&response);

    return answer;
}


follow_answer_t
follow_node_gap(follow_node_t *node, bloom_position_t position)
{
    char             *url, query[BLOOM_SOURCE_NAME_MAX + 128];
    char              text[BLOOM_POSITION_TEXT_MAX];
    json_t           *doc;
    follow_answer_t   answer;
    http_response_t   response;
    bloom_position_t  got;

    (void) bloom_position_write(position, text);
    snprintf(query, sizeof(query), "/gap?source=%s&position=%s", node->source,
             text);

    url = url_join(node->url, query);
    answer = take(node, http_post(node->http, url, "text/plain", NULL, 0,
                                  &response),
                  &response, &doc);
    free(url);

    if (answer == FOLLOW_NODE_OK
        && (read_position(doc, "position", &got) != 0
            || bloom_position_cmp(got, position) != 0))
    {
        answer = not_nginx(node);
    }

    json_decref(doc);
    http_response_free(&response);

    return answer;
}
