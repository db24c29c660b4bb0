/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file encrypts connections with OpenSSL.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "cli.h"
#include "tls.h"

#define ERROR_LEN  1024
#define ALERT_MAX  255


struct tls_s {
    SSL   *ssl;
    int    has_cert;
    int    asked;                        /* 1: for a certificate */
    int    received;                     /* 1: something, so that the server
                                            has accepted the client */
    int    alert;                        /* that the server sent, or 0 */
};

typedef struct {
    char    *text;
    size_t   size;
} message_t;


const option_t  tls_options[] = {
    { 0, "cacert", "FILE", offsetof(tls_settings_t, cacert), options_take_text,
      "the certificates, in PEM format, of authorities to trust for TLS, "
      "besides those of the system (default: the variable SSL_CERT_FILE)" },
    { 0, "cert", "FILE", offsetof(tls_settings_t, cert), options_take_text,
      "the certificate, in PEM format, for servers that ask for one by TLS, "
      "followed by those of its authorities, if any" },
    { 0, "cert-key", "FILE", offsetof(tls_settings_t, key), options_take_text,
      "the private key of --cert, in PEM format and without a password "
      "(default: in the file of --cert)" },
    { 0 }
};


static int say(message_t *error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns -1. */
static int
say(message_t *error, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(error->text, error->size, fmt, args);
    va_end(args);

    ERR_clear_error();

    return -1;
}


static int
check_readable(const char *file, const char *name, message_t *error)
{
    return access(file, R_OK) == 0 ? 0
           : say(error, "%s \"%s\": cannot be read: %s; correct the path or "
                 "its permissions", name, file, strerror(errno));
}


/* ---- authorities ---- */


static int
load_authorities(SSL_CTX *ctx, const tls_settings_t *settings, message_t *error)
{
    const char  *file, *name, *directory;

    file = settings->cacert;
    name = "--cacert";

    if (file == NULL) {
        file = getenv("SSL_CERT_FILE");
        name = "SSL_CERT_FILE";
    }

    directory = getenv("SSL_CERT_DIR");
    directory = directory ? directory : "/etc/ssl/certs";

    if (file != NULL && check_readable(file, name, error) != 0) {
        return -1;
    }

    if (SSL_CTX_load_verify_locations(ctx, file, directory) != 1) {
        return file == NULL
               ? say(error, "SSL_CERT_DIR \"%s\": cannot be used; name a "
                     "directory of certificates, or a file by --cacert",
                     directory)
               : say(error, "%s \"%s\": has no certificate in PEM format; "
                     "\"openssl x509 -inform der\" converts one in DER format",
                     name, file);
    }

    return 0;
}


/* ---- the client's certificate ---- */


/* Takes note that a key has a password, and gives none. */
static int
no_password(char *buf, int size, int writing, void *data)
{
    (void) buf;
    (void) size;
    (void) writing;

    *(int *) data = 1;

    return -1;
}


/* Checks that the certificate is valid today. */
static int
check_dates(SSL_CTX *ctx, const char *file, message_t *error)
{
    char              when[32];
    struct tm         tm;
    const X509       *cert;
    const ASN1_TIME  *time;

    cert = SSL_CTX_get0_certificate(ctx);

    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
        time = X509_get0_notAfter(cert);

    } else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        time = X509_get0_notBefore(cert);

    } else {
        return 0;
    }

    (void) ASN1_TIME_to_tm(time, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);

    return time == X509_get0_notAfter(cert)
           ? say(error, "--cert \"%s\": expired at %s; renew it", file, when)
           : say(error, "--cert \"%s\": is not valid before %s; check the "
                 "clock", file, when);
}


static int
load_key(SSL_CTX *ctx, const tls_settings_t *settings, message_t *error)
{
    int          locked;
    const char  *file, *name;

    file = settings->key;
    name = "--cert-key";

    if (file == NULL) {
        file = settings->cert;
        name = "--cert";
    }

    if (check_readable(file, name, error) != 0) {
        return -1;
    }

    locked = 0;
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &locked);

    if (SSL_CTX_use_PrivateKey_file(ctx, file, SSL_FILETYPE_PEM) == 1) {

        /* a key of another type is kept beside the certificate */

        return SSL_CTX_check_private_key(ctx) == 1 ? 0
               : say(error, "%s \"%s\": is not the key of the certificate in "
                     "--cert", name, file);
    }

    if (locked) {
        return say(error, "%s \"%s\": the key has a password, which is not "
                   "supported; \"openssl pkey\" writes a key without one", name,
                   file);
    }

    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
        return say(error, "%s \"%s\": is not the key of the certificate in "
                   "--cert", name, file);
    }

    return say(error, "%s \"%s\": has no private key in PEM format%s", name,
               file, settings->key == NULL
                     ? "; name the file of the key by --cert-key" : "");
}


static int
load_cert(SSL_CTX *ctx, const tls_settings_t *settings, message_t *error)
{
    if (settings->cert == NULL) {
        return settings->key == NULL ? 0
               : say(error, "--cert-key is for the certificate of --cert, "
                     "which is missing");
    }

    if (check_readable(settings->cert, "--cert", error) != 0) {
        return -1;
    }

    if (SSL_CTX_use_certificate_chain_file(ctx, settings->cert) != 1) {
        return say(error, "--cert \"%s\": has no certificate in PEM format; "
                   "\"openssl x509 -inform der\" converts one in DER format",
                   settings->cert);
    }

    return check_dates(ctx, settings->cert, error) != 0
           || load_key(ctx, settings, error) != 0 ? -1 : 0;
}


/* Reads the files.  Returns NULL with an error. */
static SSL_CTX *
create_context(const tls_settings_t *settings, message_t *error)
{
    SSL_CTX  *ctx;

    ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL) {
        cli_no_memory(0);
    }

    ERR_clear_error();

    if (load_authorities(ctx, settings, error) != 0
        || load_cert(ctx, settings, error) != 0)
    {
        SSL_CTX_free(ctx);
        return NULL;
    }

    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);

#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif

    return ctx;
}


int
tls_check(const tls_settings_t *settings)
{
    char      text[ERROR_LEN];
    message_t  error = { text, sizeof(text) };
    SSL_CTX  *ctx;

    if (settings->cacert == NULL && settings->cert == NULL
        && settings->key == NULL)
    {
        return CLI_OK;
    }

    ctx = create_context(settings, &error);

    if (ctx == NULL) {
        cli_error("%s", text);
        return CLI_ERROR;
    }

    SSL_CTX_free(ctx);

    return CLI_OK;
}


/* ---- a session ---- */


/* Takes note that the server asks for a certificate. */
static int
on_asked(SSL *ssl, void *data)
{
    tls_t  *tls = data;

    (void) ssl;

    tls->asked = 1;

    return 1;
}


/* Requires a certificate for this host.  OpenSSL itself checks the authority
 * only, so anyone with a certificate could pose as the server. */
static int
require_host(SSL *ssl, const char *host, message_t *error)
{
    /* a certificate has addresses and names apart; SNI is for names only */

    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1) {
        return 0;
    }

    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    if (SSL_set1_host(ssl, host) != 1
        || SSL_set_tlsext_host_name(ssl, host) != 1)
    {
        return say(error, "\"%s\" is not a valid host name for TLS; use "
                   "another name of the server", host);
    }

    return 0;
}


/* Takes note of an alert of the server that is in OpenSSL's errors.  Returns
 * the text of the error, or NULL. */
static const char *
note_alert(tls_t *tls)
{
    int            reason;
    unsigned long  code;

    code = ERR_peek_error();
    reason = code != 0 && ERR_GET_LIB(code) == ERR_LIB_SSL
             ? ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET : 0;

    if (reason > 0 && reason <= ALERT_MAX) {
        tls->alert = reason;
    }

    return ERR_reason_error_string(code);
}


static void
explain(tls_t *tls, const char *host, message_t *error)
{
    int          err;
    long         result;
    const char  *text, *refusal, *why;

    err = errno;
    why = note_alert(tls);
    refusal = tls_refusal(tls);
    result = SSL_get_verify_result(tls->ssl);
    text = X509_verify_cert_error_string(result);

    if (result == X509_V_ERR_HOSTNAME_MISMATCH
        || result == X509_V_ERR_IP_ADDRESS_MISMATCH)
    {
        say(error, "the server's certificate is not for %s: %s; use a name or "
            "an address that it is for", host, text);

    } else if (result != X509_V_OK) {
        say(error, "the server's certificate is not trusted: %s; if it should "
            "be, name the certificate of its authority by --cacert", text);

    } else if (refusal != NULL) {
        say(error, "%s", refusal);

    } else {
        say(error, "the TLS handshake failed: %s; check that the port is for "
            "TLS", why != NULL ? why : err != 0 ? strerror(err)
            : "the server closed the connection");
    }
}


tls_t *
tls_open(const tls_settings_t *settings, int fd, const char *host, char *text,
    size_t size)
{
    tls_t    *tls;
    SSL_CTX  *ctx;
    message_t  error = { text, size };

    ctx = create_context(settings, &error);

    if (ctx == NULL) {
        return NULL;
    }

    tls = cli_alloc(sizeof(*tls));
    memset(tls, 0, sizeof(*tls));
    tls->has_cert = settings->cert != NULL;

    SSL_CTX_set_cert_cb(ctx, on_asked, tls);
    tls->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);

    if (tls->ssl == NULL || SSL_set_fd(tls->ssl, fd) != 1) {
        cli_no_memory(0);
    }

    if (require_host(tls->ssl, host, &error) != 0) {
        tls_close(tls);
        return NULL;
    }

    errno = 0;

    if (SSL_connect(tls->ssl) != 1) {
        explain(tls, host, &error);
        tls_close(tls);
        return NULL;
    }

    return tls;
}


void
tls_close(tls_t *tls)
{
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}


/* Finds out why SSL_read_ex() or SSL_write_ex() failed.  Returns 1 to try
 * again; 0 if the connection is closed; or -1 with errno. */
static int
take_failure(tls_t *tls)
{
    switch (SSL_get_error(tls->ssl, 0)) {

    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 1;

    case SSL_ERROR_ZERO_RETURN:
        return 0;

    case SSL_ERROR_SYSCALL:
        return errno == 0 ? 0 : -1;

    default:
        (void) note_alert(tls);
        errno = EPROTO;
        return -1;
    }
}


ssize_t
tls_read(tls_t *tls, void *buf, size_t size)
{
    int     rc;
    size_t  n;

    for ( ;; ) {
        ERR_clear_error();
        errno = 0;

        if (SSL_read_ex(tls->ssl, buf, size, &n) == 1) {
            tls->received = 1;
            return (ssize_t) n;
        }

        rc = take_failure(tls);

        if (rc != 1) {
            return rc;
        }
    }
}


ssize_t
tls_write(tls_t *tls, const void *buf, size_t size)
{
    int     rc;
    size_t  n;

    for ( ;; ) {
        ERR_clear_error();
        errno = 0;

        if (SSL_write_ex(tls->ssl, buf, size, &n) == 1) {
            return (ssize_t) n;
        }

        rc = take_failure(tls);

        if (rc != 1) {
            errno = rc == 0 ? EPIPE : errno;
            return -1;
        }
    }
}


const char *
tls_refusal(const tls_t *tls)
{
    if (!tls->asked || tls->received) {
        return NULL;
    }

    /* the alert may be lost if the server closes the connection while the
     * client still sends */

    if (!tls->has_cert) {
        return tls->alert != 0
               ? "the server requires a certificate of the client; give one "
                 "by --cert and --cert-key"
               : "the server closed the connection, and it asks clients for a "
                 "certificate; give one by --cert and --cert-key";
    }

    switch (tls->alert) {

    case 0:
        return "the server closed the connection before its first answer; look "
               "at its log: it may refuse the certificate of --cert";

    case SSL_AD_CERTIFICATE_EXPIRED:
        return "the server refuses the certificate of --cert as expired; renew "
               "it";

    case SSL_AD_UNKNOWN_CA:
        return "the server does not trust the authority that issued the "
               "certificate of --cert; use another one, or name the authority "
               "in the server's tls-ca-cert-file";

    default:
        return "the server refuses the certificate of --cert; its log says "
               "why";
    }
}
