/* SPDX-License-Identifier: BSD-2-Clause */

/* LDLIBS: -lngtcp2 -lngtcp2_crypto_gnutls -lnghttp3 -lgnutls */

/*
 * h3client PORT [WINDOW]
 *
 * Opens an HTTP/3 connection to 127.0.0.1:PORT for BloomTest/Http3.pm, which
 * tells it on stdin what to send, byte by byte: the frames of a request are
 * made there.  QUIC itself is the work of libngtcp2.  WINDOW is the number of
 * bytes of a response that the server may send ahead (default: 1 MiB).
 *
 * Input, a line each:
 *
 *     send STREAM END LENGTH      then LENGTH bytes; END is 1 if the stream ends
 *     reset STREAM CODE           RESET_STREAM and STOP_SENDING
 *     stop STREAM CODE            STOP_SENDING
 *     close                       CONNECTION_CLOSE; the program exits
 *
 * Streams are numbered 0, 4, 8 ... in the order of their first "send".
 *
 * Output, a line each:
 *
 *     ready                       the handshake is complete
 *     headers STREAM LENGTH       then LENGTH bytes: lines "name: value"
 *     data STREAM LENGTH          then LENGTH bytes of the response's body
 *     end STREAM
 *     reset STREAM CODE           the server has reset the stream
 *     stopped STREAM CODE         the server reads no more of the stream
 *     goaway
 *     closed CODE                 the server has closed the connection
 *
 * Nothing that is sent is freed, because QUIC may have to send it again.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>


#define STREAMS    1024     /* a connection has no more than these */
#define PACKET     1200     /* bytes of UDP payload */

/* frames of HTTP/3 */
#define FRAME_DATA     0
#define FRAME_HEADERS  1
#define FRAME_GOAWAY   7


typedef struct {
    int64_t   id;
    uint8_t  *out;          /* what has to be sent, as far as it is known */
    size_t    out_len;
    size_t    out_sent;
    int       out_end;      /* the stream ends after it */
    int       out_done;     /* the end, or a reset, was sent */
    uint8_t  *in;           /* bytes of a frame that is not complete */
    size_t    in_len;
    uint64_t  data_left;    /* bytes of a DATA frame that have not arrived */
} stream_t;


static ngtcp2_conn            *conn;
static nghttp3_qpack_decoder  *decoder;
static int                     fd;
static int                     ready;
static struct sockaddr_in      local_addr, remote_addr;
static ngtcp2_path             path;

static stream_t  streams[STREAMS];
static int       nstreams;
static stream_t  control;        /* of this client, one direction */
static stream_t  peer_control;


static void
fail(const char *what)
{
    fprintf(stderr, "h3client: %s\n", what);
    exit(1);
}


static uint64_t
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * NGTCP2_SECONDS + (uint64_t) ts.tv_nsec;
}


static void
random_bytes(uint8_t *dest, size_t len, const ngtcp2_rand_ctx *ctx)
{
    (void) ctx;

    if (getrandom(dest, len, 0) != (ssize_t) len) {
        fail("no random bytes");
    }
}


static int
new_connection_id(ngtcp2_conn *c, ngtcp2_cid *cid, uint8_t *token, size_t len,
    void *data)
{
    (void) c;
    (void) data;

    random_bytes(cid->data, len, NULL);
    cid->datalen = len;
    random_bytes(token, NGTCP2_STATELESS_RESET_TOKENLEN, NULL);

    return 0;
}


static ngtcp2_conn *
get_conn(ngtcp2_crypto_conn_ref *ref)
{
    (void) ref;

    return conn;
}


/* Returns the stream of a number, or NULL. */
static stream_t *
find(int64_t id)
{
    if (id % 4 == 3) {
        return &peer_control;
    }

    return id % 4 == 0 && id / 4 < nstreams ? &streams[id / 4] : NULL;
}


static void
queue(stream_t *s, const uint8_t *data, size_t len, int end)
{
    uint8_t  *out;

    /* a new block, since QUIC may still need what the old one has */

    out = malloc(s->out_len - s->out_sent + len + 1);
    if (out == NULL) {
        fail("no memory");
    }

    memcpy(out, s->out + s->out_sent, s->out_len - s->out_sent);
    memcpy(out + s->out_len - s->out_sent, data, len);

    s->out = out;
    s->out_len = s->out_len - s->out_sent + len;
    s->out_sent = 0;
    s->out_end = end;
}


/* Reads a QUIC integer.  Returns its length, or 0 if it is not complete. */
static size_t
integer(uint64_t *value, const uint8_t *p, size_t len)
{
    size_t  i, n;

    if (len == 0 || len < (n = (size_t) 1 << (p[0] >> 6))) {
        return 0;
    }

    *value = p[0] & 0x3f;

    for (i = 1; i < n; i++) {
        *value = *value << 8 | p[i];
    }

    return n;
}


static void
show_headers(stream_t *s, const uint8_t *p, size_t len)
{
    char                           text[65536];
    size_t                         n;
    uint8_t                        flags;
    nghttp3_vec                    name, value;
    nghttp3_ssize                  used;
    nghttp3_qpack_nv               nv;
    nghttp3_qpack_stream_context  *context;

    if (nghttp3_qpack_stream_context_new(&context, s->id,
                                         nghttp3_mem_default()) != 0)
    {
        fail("no memory");
    }

    n = 0;

    do {
        flags = 0;
        used = nghttp3_qpack_decoder_read_request(decoder, context, &nv,
                                                  &flags, p, len, 1);
        if (used < 0) {
            fail("malformed headers");
        }

        p += used;
        len -= (size_t) used;

        if (flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT) {
            name = nghttp3_rcbuf_get_buf(nv.name);
            value = nghttp3_rcbuf_get_buf(nv.value);

            n += (size_t) snprintf(text + n, sizeof(text) - n, "%.*s: %.*s\n",
                                   (int) name.len, name.base,
                                   (int) value.len, value.base);
            if (n >= sizeof(text)) {
                fail("headers are too long");
            }

            nghttp3_rcbuf_decref(nv.name);
            nghttp3_rcbuf_decref(nv.value);
        }

    } while (!(flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL));

    nghttp3_qpack_stream_context_del(context);

    printf("headers %lld %zu\n", (long long) s->id, n);
    fwrite(text, 1, n, stdout);
}


/* Takes the frames apart that have arrived on a stream. */
static void
take_frames(stream_t *s)
{
    size_t    a, b, n, pos;
    uint64_t  type, len;

    pos = 0;

    while (pos < s->in_len) {

        if (s->data_left != 0) {
            n = s->in_len - pos;
            n = n < s->data_left ? n : (size_t) s->data_left;

            printf("data %lld %zu\n", (long long) s->id, n);
            fwrite(s->in + pos, 1, n, stdout);

            pos += n;
            s->data_left -= n;
            continue;
        }

        a = integer(&type, s->in + pos, s->in_len - pos);
        b = a ? integer(&len, s->in + pos + a, s->in_len - pos - a) : 0;

        if (b == 0) {
            break;
        }

        if (type == FRAME_DATA) {
            s->data_left = len;
            pos += a + b;
            continue;
        }

        if (s->in_len - pos - a - b < len) {
            break;
        }

        pos += a + b;

        if (type == FRAME_HEADERS) {
            show_headers(s, s->in + pos, (size_t) len);

        } else if (type == FRAME_GOAWAY) {
            puts("goaway");
        }

        pos += (size_t) len;
    }

    memmove(s->in, s->in + pos, s->in_len - pos);
    s->in_len -= pos;
}


static int
on_data(ngtcp2_conn *c, uint32_t flags, int64_t id, uint64_t offset,
    const uint8_t *data, size_t len, void *user, void *stream_user)
{
    stream_t  *s;

    (void) user;
    (void) stream_user;

    ngtcp2_conn_extend_max_offset(c, len);
    ngtcp2_conn_extend_max_stream_offset(c, id, len);

    s = find(id);

    /* a stream of the server begins with its type: 0 if it has the frames of
     * the connection, such as GOAWAY */

    if (s == NULL || (s == &peer_control && s->id != id && offset != 0)) {
        return 0;
    }

    if (s == &peer_control && offset == 0) {
        if (len == 0 || data[0] != 0) {
            return 0;
        }

        s->id = id;
        data++;
        len--;
    }

    s->in = realloc(s->in, s->in_len + len + 1);
    if (s->in == NULL) {
        fail("no memory");
    }

    memcpy(s->in + s->in_len, data, len);
    s->in_len += len;

    take_frames(s);

    if ((flags & NGTCP2_STREAM_DATA_FLAG_FIN) && s != &peer_control) {
        printf("end %lld\n", (long long) id);
    }

    return 0;
}


static int
on_reset(ngtcp2_conn *c, int64_t id, uint64_t size, uint64_t code, void *user,
    void *stream_user)
{
    (void) c;
    (void) size;
    (void) user;
    (void) stream_user;

    printf("reset %lld %llu\n", (long long) id, (unsigned long long) code);

    return 0;
}


static int
on_stop(ngtcp2_conn *c, int64_t id, uint64_t code, void *user,
    void *stream_user)
{
    (void) c;
    (void) user;
    (void) stream_user;

    printf("stopped %lld %llu\n", (long long) id, (unsigned long long) code);

    return 0;
}


static int
on_handshake(ngtcp2_conn *c, void *user)
{
    static const uint8_t  settings[] = { 0, 4, 0 };

    (void) user;

    if (ngtcp2_conn_open_uni_stream(c, &control.id, NULL) != 0) {
        fail("no control stream");
    }

    queue(&control, settings, sizeof(settings), 0);

    ready = 1;
    puts("ready");

    return 0;
}


static void
transmit(const uint8_t *packet, ngtcp2_ssize len)
{
    if (len > 0 && send(fd, packet, (size_t) len, 0) == -1
        && errno != ECONNREFUSED && errno != EAGAIN)
    {
        fail("cannot send");
    }
}


/* Sends one packet of a stream, or of none.  Returns 1 if there may be more. */
static int
send_packet(stream_t *s)
{
    int           end;
    uint8_t       packet[PACKET];
    uint32_t      flags;
    ngtcp2_vec    vec;
    ngtcp2_ssize  n, used;

    used = -1;
    vec.base = s ? s->out + s->out_sent : NULL;
    vec.len = s ? s->out_len - s->out_sent : 0;
    flags = s && s->out_end ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0;

    n = ngtcp2_conn_writev_stream(conn, NULL, NULL, packet, sizeof(packet),
                                  &used, flags, s ? s->id : -1,
                                  s ? &vec : NULL, s ? 1 : 0, now());

    if (n == NGTCP2_ERR_STREAM_SHUT_WR || n == NGTCP2_ERR_STREAM_NOT_FOUND) {
        s->out_done = 1;
        s->out_sent = s->out_len;
        return 0;
    }

    if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
        return 0;
    }

    if (n < 0) {
        fail(ngtcp2_strerror((int) n));
    }

    if (s != NULL && used >= 0) {
        s->out_sent += (size_t) used;
        end = s->out_sent == s->out_len;

        if (end && s->out_end) {
            s->out_done = 1;
        }
    }

    transmit(packet, n);

    return n > 0;
}


static void
send_streams(void)
{
    int        i;
    stream_t  *s;

    for (i = -1; ready && i < nstreams; i++) {
        s = i == -1 ? &control : &streams[i];

        while (!s->out_done && (s->out_sent < s->out_len || s->out_end)) {
            if (!send_packet(s)) {
                break;
            }
        }
    }

    while (send_packet(NULL)) { /* void */ }

    ngtcp2_conn_update_pkt_tx_time(conn, now());
}


static void
finish(void)
{
    uint8_t                        packet[PACKET];
    ngtcp2_connection_close_error  error;

    ngtcp2_connection_close_error_default(&error);

    transmit(packet, ngtcp2_conn_write_connection_close(conn, NULL, NULL,
                                                        packet, sizeof(packet),
                                                        &error, now()));
    exit(0);
}


/* Receives all packets that have arrived. */
static void
receive(void)
{
    int                            rc;
    uint8_t                        packet[65536];
    ssize_t                        n;
    ngtcp2_connection_close_error  error;

    for ( ;; ) {
        n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

        if (n == -1) {
            return;
        }

        rc = ngtcp2_conn_read_pkt(conn, &path, NULL, packet, (size_t) n,
                                  now());

        if (rc == NGTCP2_ERR_DRAINING) {
            ngtcp2_conn_get_connection_close_error(conn, &error);
            printf("closed %llu\n", (unsigned long long) error.error_code);
            exit(0);
        }

        if (rc != 0) {
            fail(ngtcp2_strerror(rc));
        }
    }
}


/* Runs a command.  Returns its length, or 0 if it is not complete. */
static size_t
command(uint8_t *p, size_t len)
{
    char                *line;
    size_t               n;
    uint8_t             *end;
    long long            id;
    stream_t            *s;
    unsigned long long   number, last;

    end = memchr(p, '\n', len);

    if (end == NULL) {
        return 0;
    }

    *end = '\0';
    line = (char *) p;
    n = (size_t) (end - p) + 1;

    if (sscanf(line, "send %lld %llu %llu", &id, &last, &number) == 3) {

        if (len - n < number) {
            *end = '\n';
            return 0;
        }

        if (id == 4 * nstreams && nstreams < STREAMS) {
            s = &streams[nstreams++];

            if (ngtcp2_conn_open_bidi_stream(conn, &s->id, NULL) != 0
                || s->id != id)
            {
                fail("the server allows no more streams");
            }
        }

        s = find(id);
        if (s == NULL) {
            fail("no such stream");
        }

        queue(s, p + n, (size_t) number, last != 0);

        return n + (size_t) number;
    }

    if (sscanf(line, "reset %lld %llu", &id, &number) == 2) {
        ngtcp2_conn_shutdown_stream(conn, id, number);
        return n;
    }

    if (sscanf(line, "stop %lld %llu", &id, &number) == 2) {
        ngtcp2_conn_shutdown_stream_read(conn, id, number);
        return n;
    }

    if (strcmp(line, "close") == 0) {
        finish();
    }

    fail("unknown command");

    return 0;
}


/* Reads commands.  The end of stdin closes the connection. */
static void
take_commands(void)
{
    size_t          pos, used;
    ssize_t         n;
    static size_t   len, size;
    static uint8_t  *in;

    if (size - len < 65536) {
        size = 2 * size + 65536;
        in = realloc(in, size);

        if (in == NULL) {
            fail("no memory");
        }
    }

    n = read(0, in + len, size - len);

    if (n <= 0) {
        finish();
    }

    len += (size_t) n;

    for (pos = 0; pos < len; pos += used) {
        used = command(in + pos, len - pos);

        if (used == 0) {
            break;
        }
    }

    memmove(in, in + pos, len - pos);
    len -= pos;
}


static void
connect_to(int port, uint64_t window)
{
    socklen_t                 len;
    ngtcp2_cid                dcid, scid;
    gnutls_session_t          tls;
    ngtcp2_settings           settings;
    ngtcp2_callbacks          callbacks;
    gnutls_datum_t            protocol = { (unsigned char *) "h3", 2 };
    ngtcp2_transport_params   params;
    gnutls_certificate_credentials_t  credentials;

    static ngtcp2_crypto_conn_ref  ref = { get_conn, NULL };

    fd = socket(AF_INET, SOCK_DGRAM, 0);
    remote_addr.sin_family = AF_INET;
    remote_addr.sin_port = htons((uint16_t) port);
    remote_addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(local_addr);

    if (fd == -1
        || connect(fd, (struct sockaddr *) &remote_addr, sizeof(remote_addr))
        || getsockname(fd, (struct sockaddr *) &local_addr, &len))
    {
        fail("cannot connect");
    }

    path.local.addr = (ngtcp2_sockaddr *) &local_addr;
    path.local.addrlen = sizeof(local_addr);
    path.remote.addr = (ngtcp2_sockaddr *) &remote_addr;
    path.remote.addrlen = sizeof(remote_addr);

    memset(&callbacks, 0, sizeof(callbacks));
    callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
    callbacks.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb;
    callbacks.encrypt = ngtcp2_crypto_encrypt_cb;
    callbacks.decrypt = ngtcp2_crypto_decrypt_cb;
    callbacks.hp_mask = ngtcp2_crypto_hp_mask_cb;
    callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
    callbacks.update_key = ngtcp2_crypto_update_key_cb;
    callbacks.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb;
    callbacks.delete_crypto_cipher_ctx
        = ngtcp2_crypto_delete_crypto_cipher_ctx_cb;
    callbacks.get_path_challenge_data
        = ngtcp2_crypto_get_path_challenge_data_cb;
    callbacks.version_negotiation = ngtcp2_crypto_version_negotiation_cb;
    callbacks.rand = random_bytes;
    callbacks.get_new_connection_id = new_connection_id;
    callbacks.handshake_completed = on_handshake;
    callbacks.recv_stream_data = on_data;
    callbacks.stream_reset = on_reset;
    callbacks.stream_stop_sending = on_stop;

    ngtcp2_settings_default(&settings);
    settings.initial_ts = now();
    settings.max_tx_udp_payload_size = PACKET;

    ngtcp2_transport_params_default(&params);
    params.initial_max_streams_uni = 3;
    params.initial_max_stream_data_bidi_local = window;
    params.initial_max_stream_data_uni = 65536;
    params.initial_max_data = window + 65536;
    params.max_idle_timeout = 300 * NGTCP2_SECONDS;

    new_connection_id(NULL, &dcid, params.stateless_reset_token, 18, NULL);
    new_connection_id(NULL, &scid, params.stateless_reset_token, 17, NULL);

    if (ngtcp2_conn_client_new(&conn, &dcid, &scid, &path,
                               NGTCP2_PROTO_VER_V1, &callbacks, &settings,
                               &params, NULL, NULL)
        != 0)
    {
        fail("no connection");
    }

    if (gnutls_certificate_allocate_credentials(&credentials)
        || gnutls_init(&tls, GNUTLS_CLIENT)
        || gnutls_priority_set_direct(tls, "NORMAL:-VERS-ALL:+VERS-TLS1.3:"
                                      "%DISABLE_TLS13_COMPAT_MODE", NULL)
        || ngtcp2_crypto_gnutls_configure_client_session(tls)
        || gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, credentials)
        || gnutls_alpn_set_protocols(tls, &protocol, 1, 0))
    {
        fail("no TLS");
    }

    gnutls_session_set_ptr(tls, &ref);
    ngtcp2_conn_set_tls_native_handle(conn, tls);

    if (nghttp3_qpack_decoder_new(&decoder, 0, 0, nghttp3_mem_default()) != 0)
    {
        fail("no memory");
    }
}


int
main(int argc, char **argv)
{
    int            wait, rc;
    uint64_t       expiry, time;
    struct pollfd  fds[2];

    if (argc < 2) {
        fprintf(stderr, "usage: h3client PORT [WINDOW]\n");
        return 2;
    }

    peer_control.id = -1;
    connect_to(atoi(argv[1]),
               argc > 2 ? strtoull(argv[2], NULL, 10) : 1024 * 1024);

    for ( ;; ) {
        send_streams();
        fflush(stdout);

        expiry = ngtcp2_conn_get_expiry(conn);
        time = now();
        wait = expiry == UINT64_MAX ? -1
               : expiry <= time ? 0
               : (int) ((expiry - time) / NGTCP2_MILLISECONDS) + 1;

        fds[0].fd = fd;
        fds[0].events = POLLIN;
        fds[1].fd = ready ? 0 : -1;
        fds[1].events = POLLIN;

        if (poll(fds, 2, wait) == -1) {
            fail("poll");
        }

        if (fds[0].revents) {
            receive();
        }

        if (fds[1].fd == 0 && fds[1].revents) {
            take_commands();
        }

        if (now() >= ngtcp2_conn_get_expiry(conn)) {
            rc = ngtcp2_conn_handle_expiry(conn, now());

            if (rc != 0) {
                fail(ngtcp2_strerror(rc));
            }
        }
    }
}
