/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A label is cut into pieces, libidn2 converts each piece, and the joined
 * result is encoded as punycode here.
 */

#include <string.h>

#include <idn2.h>

#include "bloom_ascii.h"
#include "bloom_idn.h"
#include "bloom_idn_table.h"
#include "bloom_punycode.h"
#include "bloom_utf8.h"


/*
 * The longest piece, in bytes.  A label has at most BLOOM_IDN_LABEL characters,
 * each of which may have been composed from four characters of four bytes.
 */
#define PIECE_MAX  (BLOOM_IDN_LABEL * 4 * 4)

/* What a call of libidn2 costs, in bytes passed, and what a result costs that
 * is too long for a label. */
#define CALL      8
#define TOO_LONG  (BLOOM_IDN_LABEL * 4)

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
    uint32_t  c[BLOOM_IDN_LABEL];
} label_t;


/* What libidn2 may still be passed, and whether names share it. */
static _Thread_local size_t    left;
static _Thread_local int       shared;
static _Thread_local uint64_t  spent;


void
bloom_idn_begin_name(void)
{
    if (!shared) {
        left = BLOOM_IDN_MAX;
    }
}


void
bloom_idn_begin_list(void)
{
    shared = 1;
    left = BLOOM_IDN_MAX;
}


void
bloom_idn_end_list(void)
{
    shared = 0;
}


uint64_t
bloom_idn_spent(void)
{
    return spent;
}


static void
spend(size_t cost)
{
    spent += cost;
    left -= cost < left ? cost : left;
}


/* Returns the range of the table that has a character, or NULL. */
static const bloom_idn_range_t *
find(uint32_t c)
{
    unsigned  low, high, middle;

    low = 0;
    high = bloom_idn_ranges;

    while (low < high) {
        middle = (low + high) / 2;

        if (c > bloom_idn_range[middle].last) {
            low = middle + 1;

        } else if (c < bloom_idn_range[middle].first) {
            high = middle;

        } else {
            return &bloom_idn_range[middle];
        }
    }

    return NULL;
}


/* Returns 1 for a valid character that libidn2 may not know. */
static int
is_new(uint32_t c)
{
    const bloom_idn_range_t  *range;

    range = find(c);

    return range != NULL && range->to == range->first;
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


/* Returns the length of a character that is written to p as UTF-8. */
static size_t
put_character(uint8_t *p, uint32_t c)
{
    size_t  i, len;

    len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (i = len - 1; i > 0; i--, c >>= 6) {
        p[i] = (uint8_t) (0x80 | (c & 0x3f));
    }

    p[0] = (uint8_t) (len == 1 ? c : (0xf00 >> len & 0xff) | c);

    return len;
}


/* Adds a character, and composes those that libidn2 may not know. */
static int
add(label_t *label, uint32_t c)
{
    int                      rc;
    const bloom_idn_pair_t  *pair, *end;

    end = bloom_idn_pair + bloom_idn_pairs;

    for (pair = c < 0x80 ? end : bloom_idn_pair; pair < end; pair++) {

        if (pair->composed == c) {
            rc = add(label, pair->first);
            return rc != 0 ? rc : add(label, pair->second);
        }

        if (pair->second == c && label->n != 0
            && pair->first == label->c[label->n - 1])
        {
            label->c[label->n - 1] = pair->composed;
            return 0;
        }
    }

    if (label->n == BLOOM_IDN_LABEL) {
        return BLOOM_IDN_REFUSED;
    }

    label->c[label->n++] = c;

    return 0;
}


/* Returns 1 if libidn2 has found that the result is longer than a label. */
static int
is_long(int rc)
{
    return rc == IDN2_TOO_BIG_LABEL || rc == IDN2_TOO_BIG_DOMAIN
           || rc == IDN2_PUNYCODE_BIG_OUTPUT;
}


/*
 * Converts a piece with libidn2, which skips IDNA2008's rules if `flags` are
 * transitional.  On success, sets *ascii to the result, which the caller
 * releases.  Returns 0; 1 if libidn2 refuses the piece; BLOOM_IDN_REFUSED if
 * the result is too long for a label; BLOOM_IDN_SPENT if the budget is used up.
 *
 * A piece may begin with a combining mark, because it need not be the beginning
 * of the label, but libidn2 refuses such a text.  It is converted again after a
 * digit, with which nothing composes.  *skip is set to the number of characters
 * in front of the result that do not belong to it.
 */
static int
convert(piece_t *piece, int flags, uint8_t **ascii, size_t *skip)
{
    int       rc;
    size_t    cost;
    uint8_t  *text;

    piece->text[1 + piece->len] = '\0';

    for (text = piece->text + 1; /* void */ ; text = piece->text) {

        cost = piece->len + CALL;

        if (cost > left) {
            left = 0;
            return BLOOM_IDN_SPENT;
        }

        *ascii = NULL;
        rc = idn2_lookup_u8(text, ascii, FLAGS|flags);

        if (rc == IDN2_OK) {
            cost += strlen((char *) *ascii);

        } else if (is_long(rc)) {
            cost += TOO_LONG;
        }

        spend(cost);

        if (rc != IDN2_LEADING_COMBINING || text == piece->text) {
            break;
        }

        piece->text[0] = '0';
    }

    *skip = text == piece->text;

    return rc == IDN2_OK ? 0 : is_long(rc) ? BLOOM_IDN_REFUSED : 1;
}


static int
add_converted(label_t *label, uint8_t *ascii, size_t skip)
{
    int       rc;
    size_t    i, n;
    uint32_t  c[1 + BLOOM_IDN_LABEL];

    n = strlen((char *) ascii);

    if (n > 4 && memcmp(ascii, "xn--", 4) == 0) {
        rc = bloom_punycode_decode(c, 1 + BLOOM_IDN_LABEL, ascii + 4, n - 4);

        if (rc == -1) {
            return BLOOM_IDN_REFUSED;
        }

        n = (size_t) rc;

    } else {

        for (i = 0; i < n && i < 1 + BLOOM_IDN_LABEL; i++) {
            c[i] = ascii[i];
        }

        n = i;
    }

    for (i = skip; i < n; i++) {
        rc = add(label, c[i]);

        if (rc != 0) {
            return rc;
        }
    }

    return 0;
}


static int
add_as_it_is(label_t *label, const piece_t *piece)
{
    const uint8_t  *p, *end;

    end = piece->text + 1 + piece->len;

    for (p = piece->text + 1; p < end; p += character_len(p)) {
        if (add(label, character(p)) != 0) {
            return BLOOM_IDN_REFUSED;
        }
    }

    return 0;
}


/* Adds a piece as libidn2 converts it.  Returns what convert() does. */
static int
add_if_converted(label_t *label, piece_t *piece, int flags)
{
    int       rc;
    size_t    skip;
    uint8_t  *ascii;

    rc = convert(piece, flags, &ascii, &skip);

    if (rc == 0) {
        rc = add_converted(label, ascii, skip);
        idn2_free(ascii);
    }

    return rc;
}


/* Adds a piece as libidn2 converts it, or as it is if libidn2 refuses it. */
static int
add_piece(label_t *label, piece_t *piece)
{
    int  rc;

    rc = piece->ascii ? 1 : add_if_converted(label, piece, IDN2_TRANSITIONAL);

    return rc == 1 ? add_as_it_is(label, piece) : rc;
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
 * accepts it together with both of its neighbours, or with the one before it,
 * or may not know one of them.  Returns 0 elsewhere: browsers refuse the label,
 * and other programs drop the joiner, as transitional processing does.  Returns
 * BLOOM_IDN_SPENT if the budget is used up.
 */
static int
joins(const uint8_t *start, const uint8_t *p, const uint8_t *end)
{
    int             rc;
    size_t          skip;
    piece_t         between;
    uint8_t        *ascii;
    const uint8_t  *before, *joiner_end, *behind;

    joiner_end = p + 3;
    behind = joiner_end;

    if (behind < end) {

        if (is_new(character(behind))) {
            return 1;
        }

        behind += character_len(behind);
    }

    for (before = p; before > start && (*--before & 0xc0) == 0x80; ) {
        /* void */
    }

    if (before < p && is_new(character(before))) {
        return 1;
    }

    for ( ;; ) {
        begin(&between);
        gather(&between, before, (size_t) (behind - before));

        rc = convert(&between, IDN2_NONTRANSITIONAL, &ascii, &skip);

        if (rc == 0) {
            idn2_free(ascii);
            return 1;
        }

        if (rc == BLOOM_IDN_SPENT) {
            return rc;
        }

        if (behind == joiner_end) {
            return 0;
        }

        behind = joiner_end;
    }
}


/* Adds a piece that IDNA2008 refuses: it is cut at its deviation characters and
 * its new ones, which are kept. */
static int
add_cut(label_t *label, const piece_t *piece)
{
    int             rc;
    size_t          len;
    piece_t         part;
    uint32_t        c;
    const uint8_t  *p, *start, *end;

    begin(&part);
    start = piece->text + 1;
    end = start + piece->len;

    for (p = start; p < end; p += len) {
        len = character_len(p);
        c = character(p);

        if (!is_deviation(c) && !is_new(c)) {
            gather(&part, p, len);
            continue;
        }

        if (c == ZWJ || c == ZWNJ) {
            rc = joins(start, p, end);

            if (rc < 0) {
                return rc;
            }

            if (rc == 0) {
                continue;
            }
        }

        rc = add_piece(label, &part);

        if (rc == 0) {
            rc = add(label, c);
        }

        if (rc != 0) {
            return rc;
        }

        begin(&part);
    }

    return add_piece(label, &part);
}


/* Adds a piece without hyphens, and begins the next one. */
static int
flush(label_t *label, piece_t *piece)
{
    int  rc;

    if (piece->ascii) {
        rc = add_as_it_is(label, piece);

    } else {
        rc = add_if_converted(label, piece, IDN2_NONTRANSITIONAL);

        if (rc == 1) {
            rc = add_cut(label, piece);
        }
    }

    begin(piece);

    return rc;
}


/* Takes a character that is not ignored. */
static int
take(label_t *label, piece_t *piece, uint32_t c)
{
    int      rc;
    size_t   len;
    uint8_t  text[4];

    /* "<" and ">" may compose with a stroke that follows */

    if (is_forbidden(c) && c != '<' && c != '>') {
        return BLOOM_IDN_REFUSED;
    }

    if (is_hyphen(c)) {
        rc = flush(label, piece);
        return rc != 0 ? rc : add(label, '-');
    }

    if (c < 0x80) {
        c = bloom_lower((uint8_t) c);
    }

    len = put_character(text, c);

    if (piece->len + len > PIECE_MAX) {
        return BLOOM_IDN_REFUSED;
    }

    gather(piece, text, len);

    return 0;
}


static int
put_label(uint8_t *out, const label_t *label)
{
    int     n, ascii;
    size_t  i;

    for (i = 0, ascii = 1; i < label->n; i++) {

        if (is_forbidden(label->c[i])) {
            return BLOOM_IDN_REFUSED;
        }

        ascii &= label->c[i] < 0x80;
    }

    if (!ascii) {

        memcpy(out, "xn--", 4);
        n = bloom_punycode_encode(out + 4, BLOOM_IDN_LABEL - 4, label->c,
                                  label->n);

        return n == -1 ? BLOOM_IDN_REFUSED : n + 4;
    }

    for (i = 0; i < label->n; i++) {
        out[i] = (uint8_t) label->c[i];
    }

    return (int) label->n;
}


int
bloom_idn_label(uint8_t *out, const uint8_t *text, size_t len)
{
    int                       rc;
    size_t                    n;
    label_t                   label;
    piece_t                   piece;
    uint32_t                  c;
    const uint8_t            *p, *end;
    const bloom_idn_range_t  *range;

    label.n = 0;
    begin(&piece);

    for (p = text, end = text + len; p < end; p += n) {
        n = bloom_utf8_len(p, (size_t) (end - p));

        if (n == 0) {
            return BLOOM_IDN_REFUSED;
        }

        c = character(p);
        range = find(c);

        if (range == NULL) {
            rc = take(&label, &piece, c);

        } else if (range->to == 0) {
            continue;

        } else {
            rc = take(&label, &piece, range->to + c - range->first);

            if (rc == 0 && range->then != 0) {
                rc = take(&label, &piece, range->then);
            }
        }

        if (rc != 0) {
            return rc;
        }
    }

    rc = flush(&label, &piece);

    if (rc != 0) {
        return rc;
    }

    return put_label(out, &label);
}
