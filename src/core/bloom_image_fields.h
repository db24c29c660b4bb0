/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Where the fields of an image's header are, as docs/image-format.md has it.
 * Only the encoder and the decoder include this.
 */

#ifndef BLOOM_IMAGE_FIELDS_H
#define BLOOM_IMAGE_FIELDS_H

/* The first byte is not ASCII and the last two are CR LF, so that a transfer in
 * text mode damages the magic number visibly. */
#define BLOOM_IMAGE_MAGIC      "\x89" "BLOOM\r\n"
#define BLOOM_IMAGE_MAGIC_LEN  8

#define ORDER_MARK       0x01020304
#define SUMS_IN_A_PAGE   (BLOOM_IMAGE_PAGE / 4)

/* Offsets of the header's fields, in the order of docs/image-format.md. */
#define AT_MAGIC         0
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_FILE_SIZE     16
#define AT_PAYLOAD       24
#define AT_PAYLOAD_SIZE  32
#define AT_CHUNK_SIZE    40
#define AT_TABLE_CRC     44
#define AT_LAYOUT        48
#define AT_K             52
#define AT_LINES         56
#define AT_FLAGS         60
#define AT_BITS          64
#define AT_HASH          72
#define AT_KEY_FORM      76
#define AT_HASH_KEY      80
#define AT_CAPACITY      96
#define AT_ITEMS         104
#define AT_FPR           112
#define AT_CREATED       120
#define AT_AS_OF         128
#define AT_BUILD_ID      136
#define AT_RESERVED      152
#define AT_ORIGIN        152             /* from here on: if imported */
#define AT_ORIGIN_LEN    156
#define AT_LINKS         160
#define AT_ORIGIN_ITEMS  168
#define AT_LINK_TABLE    176
#define AT_FUSE_KEYS     152             /* from here on: if fuse */
#define AT_FUSE_ROOM     160
#define AT_FUSE_WIDE     168
#define AT_FUSE_LENGTH   176
#define AT_FUSE_SEGMENTS 180
#define AT_FUSE_SHARDS   184
#define AT_FUSE_WIDTH    188
#define AT_FUSE_END      192
#define AT_SLICES        2048            /* of a ring, and what they are */
#define AT_OPEN          2052
#define AT_LIVE          2056
#define AT_FULL          2064
#define AT_OPENED        2072
#define AT_CLOSED        (AT_OPENED + 8 * BLOOM_PARTS_MAX)
#define AT_RING_END      (AT_CLOSED + 8 * BLOOM_PARTS_MAX)
#define AT_PREFIXES      3504            /* reserved for lengths of prefixes of
                                            addresses */
#define AT_COPY          3520            /* of a zone, at this point of its
                                            journal */
#define AT_COPY_END      3576
#define AT_EXCEPTIONS    3584
#define AT_EXCEPTIONS_SIZE  3592
#define AT_EXCEPTIONS_CRC   3600
#define AT_LAYERS        3608
#define AT_BUILT         3616
#define AT_BUILT_SIZE    3624
#define AT_SOURCE        3632
#define AT_SOURCE_LEN    3648
#define AT_SOURCE_NAME   3652
#define AT_LAYER_BITS    3912
#define AT_LAYER_K       4040
#define AT_LAYER_LINES   4056
#define AT_LAYERS_END    4072
#define AT_HEADER_CRC    (BLOOM_IMAGE_PAGE - 4)

/* The fewest and the most bytes of an exception: its kinds, its time, its
 * length and its key. */
#define EXCEPTION_MIN    (1 + 8 + 1 + 1)
#define EXCEPTION_MAX    (1 + 8 + 3 + BLOOM_KEY_MAX)


#endif /* BLOOM_IMAGE_FIELDS_H */
