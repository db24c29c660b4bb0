/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends HTTP requests with libcurl.
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "bloom_version.h"
#include "cli.h"
#include "http_client.h"
#include "visible.h"

#define HEADERS_MAX  (64 * 1024)         /* bytes of a response's headers */
#define BODY_FIRST   4096
#define IDLE         60                  /* seconds after which a connection is
                                            not used again */


struct http_client_s {
    const http_settings_t  *settings;
    CURL                   *curl;
    char                    why[CURL_ERROR_SIZE];

    http_response_t        *response;    /* of the request in flight */
    size_t                  size;        /* of its body's memory */
    size_t                  headers;     /* bytes received */
    int                     too_long;    /* 1: the headers, 2: the body */
};


const option_t  http_options[] = {
    { 0, "netrc", "FILE", offsetof(http_settings_t, netrc), options_take_text,
      "a file with the names and passwords for HTTP, as curl reads it: "
      "machine HOST login USER password PASSWORD" },
    { 0, "proxy", "URL", offsetof(http_settings_t, proxy), options_take_text,
      "the proxy for HTTP requests; variables such as http_proxy have no "
      "effect (default: none)" },
    OPTIONS_GROUP(tls_options, offsetof(http_settings_t, tls)),
    { 0 }
};


static void
initialize(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        cli_error("cannot initialize libcurl; check how it is installed");
        exit(CLI_ERROR);
    }
}


/* Receives a line of the headers; returns its length, or 0 to end the
 * request. */
static size_t
on_header(char *line, size_t one, size_t len, void *data)
{
    char             date[64];
    http_client_t   *client = data;

    (void) one;

    client->headers += len;

    if (client->headers > HEADERS_MAX) {
        client->too_long = 1;
        return 0;
    }

    if (len > 5 && len < sizeof(date) && strncasecmp(line, "date:", 5) == 0) {
        snprintf(date, sizeof(date), "%.*s", (int) (len - 5), line + 5);
        client->response->date = curl_getdate(date, NULL);
    }

    return len;
}


/* Receives a part of the body; returns its length, or 0 to end the request. */
static size_t
on_body(char *part, size_t one, size_t len, void *data)
{
    size_t            size;
    http_client_t    *client = data;
    http_response_t  *response;

    (void) one;

    response = client->response;

    if (len > client->settings->body_max - response->len) {
        client->too_long = 2;
        return 0;
    }

    if (response->len + len >= client->size) {
        size = client->size != 0 ? client->size : BODY_FIRST;

        while (response->len + len >= size) {
            size *= 2;
        }

        response->body = cli_realloc(response->body, size);
        client->size = size;
    }

    memcpy(response->body + response->len, part, len);
    response->len += len;
    response->body[response->len] = '\0';

    return len;
}


http_client_t *
http_client_create(const http_settings_t *settings)
{
    CURL           *curl;
    http_client_t  *client;
    const char     *file, *directory;

    static pthread_once_t  once = PTHREAD_ONCE_INIT;

    (void) pthread_once(&once, initialize);

    client = cli_alloc(sizeof(*client));
    memset(client, 0, sizeof(*client));

    client->settings = settings;
    client->curl = curl_easy_init();

    if (client->curl == NULL) {
        cli_no_memory(0);
    }

    curl = client->curl;
    file = settings->tls.cacert;
    file = file != NULL ? file : getenv("SSL_CERT_FILE");
    directory = getenv("SSL_CERT_DIR");

#if LIBCURL_VERSION_NUM >= 0x075500
    (void) curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    (void) curl_easy_setopt(curl, CURLOPT_PROTOCOLS,
                            (long) (CURLPROTO_HTTP|CURLPROTO_HTTPS));
#endif

    (void) curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->why);
    (void) curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 1L);
    (void) curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void) curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                            (long) CURL_HTTP_VERSION_1_1);
    (void) curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    (void) curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long) IDLE);
    (void) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                            (long) settings->timeout);
    (void) curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                            (long) settings->timeout);
    (void) curl_easy_setopt(curl, CURLOPT_USERAGENT,
                            "ngx-bloom/" BLOOM_VERSION);
    (void) curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    (void) curl_easy_setopt(curl, CURLOPT_HEADERDATA, client);
    (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);

    /* an empty name keeps libcurl from reading the environment */

    (void) curl_easy_setopt(curl, CURLOPT_PROXY,
                            settings->proxy ? settings->proxy : "");

    if (settings->netrc != NULL) {
        (void) curl_easy_setopt(curl, CURLOPT_NETRC,
                                (long) CURL_NETRC_OPTIONAL);
        (void) curl_easy_setopt(curl, CURLOPT_NETRC_FILE, settings->netrc);
    }

    if (file != NULL) {
        (void) curl_easy_setopt(curl, CURLOPT_CAINFO, file);
    }

    if (directory != NULL) {
        (void) curl_easy_setopt(curl, CURLOPT_CAPATH, directory);
    }

    /* an empty password keeps the TLS library from asking for one */

    if (settings->tls.cert != NULL) {
        (void) curl_easy_setopt(curl, CURLOPT_SSLCERT, settings->tls.cert);
        (void) curl_easy_setopt(curl, CURLOPT_SSLKEY,
                                settings->tls.key ? settings->tls.key
                                                  : settings->tls.cert);
        (void) curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "");
    }

    return client;
}


void
http_client_destroy(http_client_t *client)
{
    if (client != NULL) {
        curl_easy_cleanup(client->curl);
        free(client);
    }
}


static void say(http_response_t *response, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


/* Writes the reason why there is no response, escaped for terminals. */
static void
say(http_response_t *response, const char *fmt, ...)
{
    char     text[HTTP_ERROR_LEN], shown[VISIBLE_MAX], *end;
    size_t   i, len, n, used;
    va_list  args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    end = response->error;
    len = strlen(text);

    for (i = 0; i < len; i += used) {
        n = visible_next(shown, (uint8_t *) text + i, len - i, &used);

        if (n >= (size_t) (response->error + HTTP_ERROR_LEN - end)) {
            break;
        }

        memcpy(end, shown, n);
        end += n;
    }

    *end = '\0';
}


static void
explain(http_client_t *client, CURLcode rc, http_response_t *response)
{
    long         err;
    const char  *why;

    why = client->why[0] != '\0' ? client->why : curl_easy_strerror(rc);

    if (client->too_long == 1) {
        say(response, "the headers of the response are longer than %d KiB; "
            "check that it is the address of nginx's endpoint",
            HEADERS_MAX / 1024);
        return;
    }

    if (client->too_long == 2) {
        say(response, "the body of the response is longer than %zu bytes; "
            "check that it is the address of nginx's endpoint",
            client->settings->body_max);
        return;
    }

    switch (rc) {

    case CURLE_OUT_OF_MEMORY:

        /* libcurl also returns this for a line that is too long */

        say(response, "a line of the response's headers is too long, or there "
            "is too little memory; check that it is the address of nginx's "
            "endpoint");
        return;

    case CURLE_OPERATION_TIMEDOUT:
        response->timed_out = 1;
        say(response, "no whole response came within %u ms; check that the "
            "server is running and not overloaded, or allow more time",
            client->settings->timeout);
        return;

    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        say(response, "the host's address is not known: %s; check its name",
            why);
        return;

    case CURLE_COULDNT_CONNECT:

        /* libcurl's text has a time, which would make each failure another */

        err = 0;
        (void) curl_easy_getinfo(client->curl, CURLINFO_OS_ERRNO, &err);
        why = err != 0 ? strerror((int) err) : curl_easy_strerror(rc);

        say(response, "cannot connect: %s; check the address, and that the "
            "server is running", why);
        return;

    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        say(response, "the server closed the connection before the end of its "
            "response: %s; look at its log", why);
        return;

    case CURLE_PEER_FAILED_VERIFICATION:
        say(response, "the server's certificate is not trusted: %s; if it "
            "should be, name the certificate of its authority by --cacert",
            why);
        return;

    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        say(response, "a certificate cannot be used: %s; correct the files of "
            "--cert, --cert-key and --cacert, or SSL_CERT_FILE", why);
        return;

    default:
        say(response, "the request failed: %s; check that it is the address "
            "of nginx's endpoint", why);
    }
}


static int
perform(http_client_t *client, const char *url, struct curl_slist *headers,
    http_response_t *response)
{
    long       status;
    CURLcode   rc;

    memset(response, 0, sizeof(*response));
    response->date = -1;

    client->response = response;
    client->size = 0;
    client->headers = 0;
    client->too_long = 0;
    client->why[0] = '\0';

    (void) curl_easy_setopt(client->curl, CURLOPT_URL, url);
    (void) curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);

    rc = curl_easy_perform(client->curl);

    (void) curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);

    if (rc != CURLE_OK) {
        explain(client, rc, response);
        return -1;
    }

    if (response->body == NULL) {
        response->body = cli_alloc(1);
        response->body[0] = '\0';
    }

    (void) curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    response->status = (int) status;

    return 0;
}


int
http_get(http_client_t *client, const char *url, http_response_t *response)
{
    (void) curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);

    return perform(client, url, NULL, response);
}


int
http_post(http_client_t *client, const char *url, const char *type,
    const void *body, size_t len, http_response_t *response)
{
    char                header[128];
    struct curl_slist  *headers, *more;

    snprintf(header, sizeof(header), "Content-Type: %s", type);

    /* libcurl would wait a second for a server's consent to a long body */

    headers = curl_slist_append(NULL, "Expect:");
    more = headers ? curl_slist_append(headers, header) : NULL;

    if (more == NULL) {
        cli_no_memory(0);
    }

    (void) curl_easy_setopt(client->curl, CURLOPT_POST, 1L);
    (void) curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS,
                            len != 0 ? body : "");
    (void) curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                            (curl_off_t) len);

    return perform(client, url, more, response);
}


void
http_response_free(http_response_t *response)
{
    free(response->body);
    response->body = NULL;
    response->len = 0;
}
