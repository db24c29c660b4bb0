/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "cli.h"
#include "url.h"


/* Parses a URL.  Returns NULL if it is not valid. */
static CURLU *
parse(const char *url)
{
    CURLU  *parts;

    parts = curl_url();

    if (parts == NULL) {
        cli_no_memory(0);
    }

    if (curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)
        != CURLUE_OK)
    {
        curl_url_cleanup(parts);
        return NULL;
    }

    return parts;
}


char *
url_shown(const char *url)
{
    char        *text, *shown;
    size_t       scheme;
    CURLU       *parts;
    const char  *at, *host;

    /* libcurl does not know a Unix socket, or a password with a / */

    parts = strncasecmp(url, "http", 4) == 0 ? parse(url) : NULL;
    text = NULL;

    if (parts != NULL
        && curl_url_set(parts, CURLUPART_USER, NULL, 0) == CURLUE_OK
        && curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK)
    {
        (void) curl_url_get(parts, CURLUPART_URL, &text, 0);
    }

    curl_url_cleanup(parts);

    if (text != NULL) {
        shown = strdup(text);
        curl_free(text);

    } else {

        /* the password may have any character: leave out all before an @ */

        host = url + strcspn(url, ":");
        host += *host != '\0' ? 1 : 0;
        host += strspn(host, "/");
        scheme = (size_t) (host - url);
        at = strrchr(host, '@');
        host = at ? at + 1 : host;

        shown = cli_alloc(scheme + strlen(host) + 1);
        memcpy(shown, url, scheme);
        strcpy(shown + scheme, host);
    }

    if (shown == NULL) {
        cli_no_memory(strlen(url));
    }

    return shown;
}


int
url_is_http(const char *url)
{
    int     valid;
    char   *part;
    CURLU  *parts;

    if ((strncasecmp(url, "http://", 7) != 0
         && strncasecmp(url, "https://", 8) != 0)
        || strpbrk(url, "?# \t\r\n") != NULL)
    {
        return 0;
    }

    parts = parse(url);
    part = NULL;

    valid = parts != NULL
            && curl_url_get(parts, CURLUPART_HOST, &part, 0) == CURLUE_OK
            && part[0] != '\0';

    curl_free(part);
    curl_url_cleanup(parts);

    return valid;
}


char *
url_join(const char *base, const char *rest)
{
    char    *url;
    size_t   len;

    len = strlen(base);

    while (len != 0 && base[len - 1] == '/') {
        len--;
    }

    url = cli_alloc(len + strlen(rest) + 1);
    memcpy(url, base, len);
    strcpy(url + len, rest);

    return url;
}


char *
url_escape(const char *text)
{
    char  *part, *escaped;

    part = curl_easy_escape(NULL, text, 0);
    escaped = part != NULL ? strdup(part) : NULL;

    if (escaped == NULL) {
        cli_no_memory(0);
    }

    curl_free(part);

    return escaped;
}
