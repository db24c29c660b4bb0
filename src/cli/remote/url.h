/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * URLs of servers: those of endpoints here, those of Redis in redis_url.h.
 * libcurl takes them apart.
 *
 * A URL may have a user and a password, which no message shows.
 */

#ifndef URL_H
#define URL_H


/* What url_is_http() wants, for messages. */
#define HTTP_URL  "an http:// or https:// URL"


/* Returns a copy of a URL without its user and password, for messages, even if
 * it is not valid; the caller frees it. */
char *url_shown(const char *url);

/* Returns 1 if a text is an absolute http:// or https:// URL with neither query
 * nor fragment, else 0. */
int url_is_http(const char *url);

/* Returns `base`, less the slashes at its end, with `rest` appended, such as
 * "/zones/ids"; the caller frees it. */
char *url_join(const char *base, const char *rest);

/* Returns a text as a part of a path, such as "a%2Fb"; the caller frees it. */
char *url_escape(const char *text);


#endif /* URL_H */
