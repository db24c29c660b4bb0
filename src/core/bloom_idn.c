/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A label is cut into pieces, libidn2 converts each piece, and the joined
 * result is encoded as punycode here.
 */

#include <string.h>

#include <idn2.h>

#include "bloom_ascii.h"
#include "bloom_idn.h"
#include "bloom_punycode.h"
#include "bloom_utf8.h"


/* The most characters of a converted label: a host cannot have more bytes. */
#define LABEL_MAX  253

/*
 * The longest piece, in bytes.  A DNS label has 63 bytes, each of which stands
 * for at most one character, which may have been composed from four characters
 * of four bytes.
 */
#define PIECE_MAX  1024

#define FLAGS  (IDN2_NFC_INPUT|IDN2_NO_ALABEL_ROUNDTRIP)

#define SHARP_S      0xdf
#define FINAL_SIGMA  0x3c2
#define ZWNJ         0x200c
#define ZWJ          0x200d


/* A text for libidn2: room for a digit in front of it, its bytes, and a zero
 * byte. */
typedef struct {
    int      ascii;                      /* it has only ASCII characters */
    size_t   len;
    uint8_t  text[1 + PIECE_MAX + 1];
} piece_t;

typedef struct {
    size_t    n;
    uint32_t  c[LABEL_MAX];
    size_t   *left;
} label_t;


/* Returns 1 for a character that UTS #46 ignores. */
static int
is_ignored(uint32_t c)
{
    return c == 0xad || c == 0x34f
           || (c >= 0x180b && c <= 0x180f && c != 0x180e)
           || c == 0x200b || c == 0x2060 || c == 0x2064
           || (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff
           || (c >= 0x1bca0 && c <= 0x1bca3) || (c >= 0xe0100 && c <= 0xe01ef);
}


/* Returns 1 for a hyphen and for a character that is mapped to one. */
static int
is_hyphen(uint32_t c)
{
    return c == '-' || c == 0xfe63 || c == 0xff0d;
}


/* Returns 1 for a character that nontransitional processing keeps, and that
 * transitional processing drops or replaces. */
static int
is_deviation(uint32_t c)
{
    return c == SHARP_S || c == FINAL_SIGMA || c == ZWNJ || c == ZWJ;
}


/* Returns 1 for the URL Standard's "forbidden domain code points", and for a
 * dot. */
static int
is_forbidden(uint32_t c)
{
    return c <= ' ' || c == 0x7f
           || (c < 0x7f && strchr("#%./:<>?@[\\]^|", (int) c) != NULL);
}


/* Returns the length of the character at p, which is known to be valid. */
static size_t
character_len(const uint8_t *p)
{
    uint8_t  from, to;

    return bloom_utf8_begin(*p, &from, &to);
}


static uint32_t
character(const uint8_t *p)
{
    size_t    len;
    uint32_t  c;

    len = character_len(p);

    if (len == 1) {
        return *p;
    }

    for (c = *p++ & (0xff >> (len + 1)); --len != 0; p++) {
        c = c << 6 | (*p & 0x3f);
    }

    return c;
}


static int
add(label_t *label, uint32_t c)
{
    if (label->n == LABEL_MAX) {
        return -2;
    }

    label->c[label->n++] = c;

    return 0;
}


/*
 * Converts a piece with libidn2, which skips IDNA2008's rules if `flags` are
 * transitional.  Returns the result, which the caller releases; or NULL if
 * libidn2 refuses the piece or the budget is used up, in which case
 * *label->left is 0.
 *
 * A piece may begin with a combining mark, because it need not be the beginning
 * of the label, but libidn2 refuses such a text.  It is converted again after a
 * digit, with which nothing composes.  *skip is set to the number of characters
 * in front of the result that do not belong to it.
 */
static uint8_t *
convert(label_t *label, piece_t *piece, int flags, size_t *skip)
{
    int       rc;
    size_t    cost;
    uint8_t  *ascii;

    ascii = NULL;
    cost = piece->len + BLOOM_IDN_CALL;
    piece->text[0] = '0';
    piece->text[1 + piece->len] = '\0';

    if (*label->left < 2 * cost) {
        *label->left = 0;
        return NULL;
    }

    *label->left -= cost;
    *skip = 0;

    rc = idn2_lookup_u8(piece->text + 1, &ascii, FLAGS|flags);

    if (rc == IDN2_LEADING_COMBINING) {
        *label->left -= cost;
        *skip = 1;

        rc = idn2_lookup_u8(piece->text, &ascii, FLAGS|flags);
    }

    return rc == IDN2_OK ? ascii : NULL;
}


static int
add_converted(label_t *label, uint8_t *ascii, size_t skip)
{
    int       n;
    size_t    i, len;
    uint32_t  c[LABEL_MAX];

    len = strlen((char *) ascii);

    if (len > 4 && memcmp(ascii, "xn--", 4) == 0) {
        n = bloom_punycode_decode(c, LABEL_MAX, ascii + 4, len - 4);

        if (n == -1) {
            return -2;
        }

        len = (size_t) n;

    } else {

        for (i = 0; i < len && i < LABEL_MAX; i++) {
            c[i] = ascii[i];
        }
    }

    if (len < skip || len - skip > LABEL_MAX - label->n) {
        return -2;
    }

    memcpy(label->c + label->n, c + skip, (len - skip) * sizeof(*c));
    label->n += len - skip;

    return 0;
}


static int
add_as_it_is(label_t *label, const piece_t *piece)
{
    const uint8_t  *p, *end;

    end = piece->text + 1 + piece->len;

    for (p = piece->text + 1; p < end; p += character_len(p)) {
        if (add(label, character(p)) != 0) {
            return -2;
        }
    }

    return 0;
}


/* Adds a piece as libidn2 converts it, or as it is if libidn2 refuses it. */
static int
add_piece(label_t *label, piece_t *piece, int flags)
{
    int       rc;
    size_t    skip;
    uint8_t  *ascii;

    if (piece->ascii) {
        return add_as_it_is(label, piece);
    }

    ascii = convert(label, piece, flags, &skip);

    if (ascii == NULL) {
        return *label->left == 0 ? -2 : add_as_it_is(label, piece);
    }

    rc = add_converted(label, ascii, skip);
    idn2_free(ascii);

    return rc;
}


static void
gather(piece_t *piece, const uint8_t *p, size_t len)
{
    memcpy(piece->text + 1 + piece->len, p, len);
    piece->len += len;
    piece->ascii &= len == 1;
}


static void
begin(piece_t *piece)
{
    piece->len = 0;
    piece->ascii = 1;
}


/*
 * Returns 1 if browsers keep the ZERO WIDTH (NON-)JOINER at p: if libidn2
 * accepts it together with both of its neighbours, or with the one before it.
 * Elsewhere browsers refuse the label, and other programs drop the joiner, as
 * transitional processing does.
 */
static int
joins(label_t *label, const uint8_t *start, const uint8_t *p,
    const uint8_t *end)
{
    size_t          skip;
    piece_t         between;
    uint8_t        *ascii;
    const uint8_t  *before, *joiner_end, *behind;

    joiner_end = p + 3;
    behind = joiner_end;

    if (behind < end) {
        behind += character_len(behind);
    }

    for (before = p; before > start && (*--before & 0xc0) == 0x80; ) {
        /* void */
    }

    for ( ;; ) {
        begin(&between);
        gather(&between, before, (size_t) (behind - before));

        ascii = convert(label, &between, IDN2_NONTRANSITIONAL, &skip);

        if (ascii != NULL) {
            idn2_free(ascii);
            return 1;
        }

        if (behind == joiner_end) {
            return 0;
        }

        behind = joiner_end;
    }
}


/* Adds a piece that IDNA2008 refuses: it is cut at its deviation characters,
 * which are kept. */
static int
add_cut(label_t *label, const piece_t *piece)
{
    int             rc;
    size_t          len;
    piece_t         part;
    uint32_t        c;
    const uint8_t  *p, *start, *end;

    begin(&part);
    rc = 0;
    start = piece->text + 1;
    end = start + piece->len;

    for (p = start; p < end && rc == 0; p += len) {
        len = character_len(p);
        c = character(p);

        if (!is_deviation(c)) {
            gather(&part, p, len);
            continue;
        }

        if ((c == ZWJ || c == ZWNJ) && !joins(label, start, p, end)) {
            continue;
        }

        rc = add_piece(label, &part, IDN2_TRANSITIONAL);

        if (rc == 0) {
            rc = add(label, c);
        }

        begin(&part);
    }

    return rc != 0 ? rc : add_piece(label, &part, IDN2_TRANSITIONAL);
}


/* Adds a piece without hyphens, and begins the next one. */
static int
flush(label_t *label, piece_t *piece)
{
    int       rc;
    size_t    skip;
    uint8_t  *ascii;

    if (piece->ascii) {
        rc = add_as_it_is(label, piece);
        begin(piece);
        return rc;
    }

    ascii = convert(label, piece, IDN2_NONTRANSITIONAL, &skip);

    if (ascii != NULL) {
        rc = add_converted(label, ascii, skip);
        idn2_free(ascii);

    } else {
        rc = *label->left == 0 ? -2 : add_cut(label, piece);
    }

    begin(piece);

    return rc;
}


static int
put_label(uint8_t *out, size_t room, const label_t *label)
{
    int     n, ascii;
    size_t  i;

    for (i = 0, ascii = 1; i < label->n; i++) {

        if (is_forbidden(label->c[i])) {
            return -1;
        }

        ascii &= label->c[i] < 0x80;
    }

    if (!ascii) {

        if (room < 4) {
            return -2;
        }

        memcpy(out, "xn--", 4);
        n = bloom_punycode_encode(out + 4, room - 4, label->c, label->n);

        return n == -1 ? -2 : n + 4;
    }

    if (label->n > room) {
        return -2;
    }

    for (i = 0; i < label->n; i++) {
        out[i] = (uint8_t) label->c[i];
    }

    return (int) label->n;
}


int
bloom_idn_label(uint8_t *out, size_t room, const uint8_t *text, size_t len,
    size_t *left)
{
    int             rc;
    size_t          n;
    uint8_t         lower;
    label_t         label;
    piece_t         piece;
    uint32_t        c;
    const uint8_t  *p, *end;

    label.n = 0;
    label.left = left;
    begin(&piece);

    for (p = text, end = text + len; p < end; p += n) {
        n = bloom_utf8_len(p, (size_t) (end - p));
        c = n == 0 ? 0 : character(p);

        if (c == 0) {
            return -1;
        }

        if (is_ignored(c)) {
            continue;
        }

        if (is_hyphen(c)) {
            rc = flush(&label, &piece);

            if (rc == 0) {
                rc = add(&label, '-');
            }

            if (rc != 0) {
                return rc;
            }

            continue;
        }

        if (piece.len + n > PIECE_MAX) {
            return -2;
        }

        lower = bloom_lower(*p);
        gather(&piece, n == 1 ? &lower : p, n);
    }

    rc = flush(&label, &piece);

    if (rc == 0 && *left == 0) {
        rc = -2;
    }

    return rc != 0 ? rc : put_label(out, room, &label);
}
