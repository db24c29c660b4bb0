/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A TLS session encrypts a connection to a server.
 *
 * The server's certificate must be for its host, and a trusted authority must
 * have issued it: one of the system's (SSL_CERT_DIR) or of the file of --cacert
 * or SSL_CERT_FILE.  A server that asks for a certificate gets that of --cert.
 * The files are read for each session, so that renewed ones are used.
 */

#ifndef TLS_H
#define TLS_H

#include <stddef.h>
#include <sys/types.h>

#include "options.h"


/* Files in PEM format; NULL: none. */
typedef struct {
    const char  *cacert;                 /* authorities */
    const char  *cert;                   /* the client's certificate */
    const char  *key;                    /* its key; NULL: it is in `cert` */
} tls_settings_t;

typedef struct tls_s  tls_t;


/* The options --cacert, --cert and --cert-key, whose values are a
 * tls_settings_t. */
extern const option_t  tls_options[];


/* Checks that the files can be used that options name.  Returns CLI_OK, or
 * CLI_ERROR after a message. */
int tls_check(const tls_settings_t *settings);

/* Begins a session over a connection, which stays the caller's.  Returns NULL
 * with the reason, and what to do, in `error`. */
tls_t *tls_open(const tls_settings_t *settings, int fd, const char *host,
    char *error, size_t size);
void tls_close(tls_t *tls);

/* Receives bytes.  Returns how many; 0 if the server closed the connection; or
 * -1 with errno. */
ssize_t tls_read(tls_t *tls, void *buf, size_t size);

/* Sends all bytes.  Returns their number, or -1 with errno. */
ssize_t tls_write(tls_t *tls, const void *buf, size_t size);

/* Says, after a failure, what the server has against the client's certificate.
 * Returns NULL if the failure has another reason. */
const char *tls_refusal(const tls_t *tls);


#endif /* TLS_H */
