/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decompresses gzip, bzip2, xz and zstd with their libraries.
 */

#include <stdlib.h>
#include <string.h>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "cli.h"
#include "decoder.h"


#define XZ_MEMORY    ((DECODER_WINDOW + 16) * UINT64_C(1024 * 1024))
#define ZSTD_WINDOW  27                  /* log2 of its bytes */

#define fits(len)  ((unsigned) ((len) < 0x40000000 ? (len) : 0x40000000))


/* Compares the beginning of a stream with magic bytes. */
static decoder_magic_e
compare(const uint8_t *data, size_t len, const char *magic, size_t size)
{
    if (memcmp(data, magic, len < size ? len : size) != 0) {
        return DECODER_NO;
    }

    return len < size ? DECODER_MAYBE : DECODER_YES;
}


/* Allocates the state of a library, which is 0 at first. */
static void *
allocate(size_t size)
{
    return memset(cli_alloc(size), 0, size);
}


/* ---- gzip (RFC 1952) ---- */

static decoder_magic_e
gzip_is(const uint8_t *data, size_t len)
{
    return compare(data, len, "\x1f\x8b", 2);
}


static void
gzip_begin(decoder_t *decoder)
{
    if (decoder->library != NULL) {
        (void) inflateReset(decoder->library);
        return;
    }

    decoder->library = allocate(sizeof(z_stream));

    if (inflateInit2((z_stream *) decoder->library, 16 + MAX_WBITS) != Z_OK) {
        cli_no_memory(0);
    }
}


static decoder_result_e
gzip_decode(decoder_t *decoder)
{
    int        rc;
    unsigned   in, out;
    z_stream  *z;

    z = decoder->library;
    in = fits(decoder->in_len);
    out = fits(decoder->out_len);

    z->next_in = (Bytef *) decoder->in;
    z->avail_in = in;
    z->next_out = decoder->out;
    z->avail_out = out;

    rc = inflate(z, Z_NO_FLUSH);

    decoder->in += in - z->avail_in;
    decoder->in_len -= in - z->avail_in;
    decoder->out += out - z->avail_out;
    decoder->out_len -= out - z->avail_out;

    switch (rc) {

    case Z_OK:
    case Z_BUF_ERROR:
        return DECODER_OK;

    case Z_STREAM_END:
        return DECODER_END;

    case Z_MEM_ERROR:
        cli_no_memory(0);

    default:
        decoder->why = z->msg;
        return DECODER_DAMAGED;
    }
}


static void
gzip_end(decoder_t *decoder)
{
    (void) inflateEnd(decoder->library);
}


/* ---- bzip2 ---- */

/* After the header, a block or the end of the stream begins.  "BZh9" alone may
 * be a key. */
static decoder_magic_e
bzip2_is(const uint8_t *data, size_t len)
{
    decoder_magic_e  block, last;

    if (len < 4) {
        return compare(data, len, "BZh", 3) != DECODER_NO ? DECODER_MAYBE
               : DECODER_NO;
    }

    if (memcmp(data, "BZh", 3) != 0 || data[3] < '1' || data[3] > '9') {
        return DECODER_NO;
    }

    block = compare(data + 4, len - 4, "\x31\x41\x59\x26\x53\x59", 6);
    last = compare(data + 4, len - 4, "\x17\x72\x45\x38\x50\x90", 6);

    return block > last ? block : last;
}


static void
bzip2_begin(decoder_t *decoder)
{
    if (decoder->library != NULL) {
        (void) BZ2_bzDecompressEnd(decoder->library);

    } else {
        decoder->library = allocate(sizeof(bz_stream));
    }

    memset(decoder->library, 0, sizeof(bz_stream));

    if (BZ2_bzDecompressInit(decoder->library, 0, 0) != BZ_OK) {
        cli_no_memory(0);
    }
}


static decoder_result_e
bzip2_decode(decoder_t *decoder)
{
    int         rc;
    unsigned    in, out;
    bz_stream  *bz;

    bz = decoder->library;
    in = fits(decoder->in_len);
    out = fits(decoder->out_len);

    bz->next_in = (char *) decoder->in;
    bz->avail_in = in;
    bz->next_out = (char *) decoder->out;
    bz->avail_out = out;

    rc = BZ2_bzDecompress(bz);

    decoder->in += in - bz->avail_in;
    decoder->in_len -= in - bz->avail_in;
    decoder->out += out - bz->avail_out;
    decoder->out_len -= out - bz->avail_out;

    switch (rc) {

    case BZ_OK:
        return DECODER_OK;

    case BZ_STREAM_END:
        return DECODER_END;

    case BZ_MEM_ERROR:
        cli_no_memory(0);

    default:
        return DECODER_DAMAGED;
    }
}


static void
bzip2_end(decoder_t *decoder)
{
    (void) BZ2_bzDecompressEnd(decoder->library);
}


/* ---- xz ---- */

static decoder_magic_e
xz_is(const uint8_t *data, size_t len)
{
    return compare(data, len, "\xfd" "7zXZ", 6);
}


static void
xz_begin(decoder_t *decoder)
{
    if (decoder->library == NULL) {
        decoder->library = allocate(sizeof(lzma_stream));
    }

    if (lzma_stream_decoder(decoder->library, XZ_MEMORY,
                            LZMA_TELL_UNSUPPORTED_CHECK)
        != LZMA_OK)
    {
        cli_no_memory(0);
    }
}


static decoder_result_e
xz_decode(decoder_t *decoder)
{
    lzma_ret      rc;
    lzma_stream  *xz;

    xz = decoder->library;

    xz->next_in = decoder->in;
    xz->avail_in = decoder->in_len;
    xz->next_out = decoder->out;
    xz->avail_out = decoder->out_len;

    rc = lzma_code(xz, LZMA_RUN);

    decoder->in = xz->next_in;
    decoder->in_len = xz->avail_in;
    decoder->out = xz->next_out;
    decoder->out_len = xz->avail_out;

    switch (rc) {

    case LZMA_OK:
    case LZMA_BUF_ERROR:
        return DECODER_OK;

    case LZMA_STREAM_END:
        return DECODER_END;

    case LZMA_MEMLIMIT_ERROR:
        return DECODER_TOO_LARGE;

    case LZMA_MEM_ERROR:
        cli_no_memory(0);

    case LZMA_UNSUPPORTED_CHECK:
    case LZMA_OPTIONS_ERROR:
        decoder->why = "it uses an option that liblzma does not know";
        return DECODER_DAMAGED;

    default:
        return DECODER_DAMAGED;
    }
}


static void
xz_end(decoder_t *decoder)
{
    lzma_end(decoder->library);
}


/* ---- zstd (RFC 8878) ---- */

/* A skippable frame may come first, as pzstd writes it. */
static decoder_magic_e
zstd_is(const uint8_t *data, size_t len)
{
    if (len != 0 && (data[0] & 0xf0) == 0x50) {
        return compare(data + 1, len - 1, "\x2a\x4d\x18", 3);
    }

    return compare(data, len, "\x28\xb5\x2f\xfd", 4);
}


static void
zstd_begin(decoder_t *decoder)
{
    if (decoder->library == NULL) {
        decoder->library = ZSTD_createDCtx();

        if (decoder->library == NULL) {
            cli_no_memory(0);
        }

        (void) ZSTD_DCtx_setParameter(decoder->library, ZSTD_d_windowLogMax,
                                      ZSTD_WINDOW);
    }

    (void) ZSTD_DCtx_reset(decoder->library, ZSTD_reset_session_only);
}


static decoder_result_e
zstd_decode(decoder_t *decoder)
{
    size_t           rc;
    ZSTD_inBuffer    in;
    ZSTD_outBuffer   out;

    in.src = decoder->in;
    in.size = decoder->in_len;
    in.pos = 0;
    out.dst = decoder->out;
    out.size = decoder->out_len;
    out.pos = 0;

    rc = ZSTD_decompressStream(decoder->library, &out, &in);

    decoder->in += in.pos;
    decoder->in_len -= in.pos;
    decoder->out += out.pos;
    decoder->out_len -= out.pos;

    if (!ZSTD_isError(rc)) {
        return rc == 0 ? DECODER_END : DECODER_OK;
    }

    switch (ZSTD_getErrorCode(rc)) {

    case ZSTD_error_frameParameter_windowTooLarge:
        return DECODER_TOO_LARGE;

    case ZSTD_error_memory_allocation:
        cli_no_memory(0);

    case ZSTD_error_dictionary_wrong:
        decoder->why = "it needs a dictionary";
        return DECODER_DAMAGED;

    default:
        decoder->why = ZSTD_getErrorName(rc);
        return DECODER_DAMAGED;
    }
}


static void
zstd_end(decoder_t *decoder)
{
    (void) ZSTD_freeDCtx(decoder->library);
    decoder->library = NULL;
}


static const decoder_format_t  formats[] = {
    { "gzip", "gunzip -c", "gunzip -c", 2, 0,
      gzip_is, gzip_begin, gzip_decode, gzip_end },
    { "bzip2", "bunzip2 -c", "bunzip2 -c", 4, 0,
      bzip2_is, bzip2_begin, bzip2_decode, bzip2_end },
    { "xz", "xz -dc", "xz -dc", 2, 4,
      xz_is, xz_begin, xz_decode, xz_end },
    { "zstd", "zstd -dc", "zstd -dc --long=31", 3, 0,
      zstd_is, zstd_begin, zstd_decode, zstd_end }
};

#define FORMATS  (sizeof(formats) / sizeof(formats[0]))


const decoder_format_t *
decoder_find(const uint8_t *data, size_t len, int *more)
{
    size_t           i;
    decoder_magic_e  is;

    *more = 0;

    for (i = 0; i < FORMATS; i++) {
        is = formats[i].is(data, len);

        if (is == DECODER_YES) {
            return &formats[i];
        }

        *more |= is == DECODER_MAYBE;
    }

    return NULL;
}


const decoder_format_t *
decoder_find_last(const uint8_t *data, size_t len)
{
    size_t  i;

    for (i = 0; i < FORMATS; i++) {
        if (len >= formats[i].sure
            && formats[i].is(data, len) != DECODER_NO)
        {
            return &formats[i];
        }
    }

    return NULL;
}
