/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decompresses gzip, bzip2, xz and zstd with their libraries.
 */

#include <zstd_errors.h>

#include "cli.h"
#include "decoder.h"


#define XZ_MEMORY    ((DECODER_WINDOW + 16) * UINT64_C(1024 * 1024))
#define ZSTD_WINDOW  27                  /* log2 of its bytes */

/* So many bytes of a magic are enough in a file that ends within it. */
#define SURE         4


/* ---- gzip (RFC 1952) ---- */

static int
gzip_begin(decoder_t *decoder)
{
    return inflateInit2(&decoder->library.gzip, 16 + MAX_WBITS) == Z_OK;
}


static decoder_result_e
gzip_decode(decoder_t *decoder)
{
    int        rc;
    z_stream  *z;

    z = &decoder->library.gzip;

    z->next_in = (Bytef *) decoder->in;
    z->avail_in = (uInt) decoder->in_len;
    z->next_out = decoder->out;
    z->avail_out = (uInt) decoder->out_len;

    rc = inflate(z, Z_NO_FLUSH);

    decoder->in = z->next_in;
    decoder->in_len = z->avail_in;
    decoder->out = z->next_out;
    decoder->out_len = z->avail_out;

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
    (void) inflateEnd(&decoder->library.gzip);
}


/* ---- bzip2 ---- */

static int
bzip2_begin(decoder_t *decoder)
{
    return BZ2_bzDecompressInit(&decoder->library.bzip2, 0, 0) == BZ_OK;
}


static decoder_result_e
bzip2_decode(decoder_t *decoder)
{
    int         rc;
    bz_stream  *bz;

    bz = &decoder->library.bzip2;

    bz->next_in = (char *) decoder->in;
    bz->avail_in = (unsigned) decoder->in_len;
    bz->next_out = (char *) decoder->out;
    bz->avail_out = (unsigned) decoder->out_len;

    rc = BZ2_bzDecompress(bz);

    decoder->in = (uint8_t *) bz->next_in;
    decoder->in_len = bz->avail_in;
    decoder->out = (uint8_t *) bz->next_out;
    decoder->out_len = bz->avail_out;

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
    (void) BZ2_bzDecompressEnd(&decoder->library.bzip2);
}


/* ---- xz ---- */

static int
xz_begin(decoder_t *decoder)
{
    return lzma_stream_decoder(&decoder->library.xz, XZ_MEMORY,
                               LZMA_TELL_UNSUPPORTED_CHECK)
           == LZMA_OK;
}


static decoder_result_e
xz_decode(decoder_t *decoder)
{
    lzma_ret      rc;
    lzma_stream  *xz;

    xz = &decoder->library.xz;

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
    lzma_end(&decoder->library.xz);
}


/* ---- zstd (RFC 8878) ---- */

static int
zstd_begin(decoder_t *decoder)
{
    decoder->library.zstd = ZSTD_createDCtx();

    return decoder->library.zstd != NULL
           && !ZSTD_isError(ZSTD_DCtx_setParameter(decoder->library.zstd,
                                                   ZSTD_d_windowLogMax,
                                                   ZSTD_WINDOW));
}


static decoder_result_e
zstd_decode(decoder_t *decoder)
{
    size_t           rc;
    ZSTD_inBuffer    in = { decoder->in, decoder->in_len, 0 };
    ZSTD_outBuffer   out = { decoder->out, decoder->out_len, 0 };

    rc = ZSTD_decompressStream(decoder->library.zstd, &out, &in);

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

    default:
        decoder->why = ZSTD_getErrorName(rc);
        return DECODER_DAMAGED;
    }
}


static void
zstd_end(decoder_t *decoder)
{
    (void) ZSTD_freeDCtx(decoder->library.zstd);
}


/* "BZh9" alone may be a key: a block follows, or the end of the stream.  zstd
 * may have a frame to skip, as pzstd writes it first. */
static const decoder_format_t  formats[] = {
    { "gzip", "gunzip -c", { "\x1f\x8b" },
      gzip_begin, gzip_decode, gzip_end },
    { "bzip2", "bunzip2 -c", { "BZh?1AY&SY", "BZh?\x17rE8P\x90" },
      bzip2_begin, bzip2_decode, bzip2_end },
    { "xz", "xz -dc", { "\xfd" "7zXZ" },
      xz_begin, xz_decode, xz_end },
    { "zstd", "zstd -dc --long=31", { "\x28\xb5\x2f\xfd", "?*M\x18" },
      zstd_begin, zstd_decode, zstd_end }
};

#define FORMATS  (sizeof(formats) / sizeof(formats[0]))


static int
is(const char *magic, const uint8_t *data, size_t len, int last)
{
    size_t  i;

    for (i = 0; magic[i] != '\0' && i < len; i++) {
        if (magic[i] != '?' && data[i] != (uint8_t) magic[i]) {
            return 0;
        }
    }

    return magic[i] == '\0' || !last || i >= SURE;
}


const decoder_format_t *
decoder_find(const uint8_t *data, size_t len, int last)
{
    size_t  i, j;

    for (i = 0; i < FORMATS; i++) {
        for (j = 0; j < 2 && formats[i].magic[j] != NULL; j++) {
            if (is(formats[i].magic[j], data, len, last)) {
                return &formats[i];
            }
        }
    }

    return NULL;
}
