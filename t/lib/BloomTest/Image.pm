# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Image;

# Changes images, for tests that nginx and the tool refuse them.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);

our @EXPORT_OK = qw(crc32c image_of patch_header read_vector
                    with_exceptions);

# crc32c() and others come from the second writer, which shares no line with the
# tested code.

require(abs_path(dirname(__FILE__) . '/../../golden/write_image.pl'));


# Returns an image whose header has other bytes at some offsets, and the right
# checksum for them.

sub patch_header {
    my ($image, %bytes) = @_;

    my ($header, $rest) = unpack 'a4092 x4 a*', $image;

    substr $header, $_, length $bytes{$_}, $bytes{$_} for keys %bytes;

    return $header . pack('L<', crc32c($header)) . $rest;
}


# Returns an image of version 1 as one of version 2 with exceptions: [kinds,
# time in milliseconds, key]. The number and the size may be given, to be wrong.

sub with_exceptions {
    my ($image, $exceptions, %header) = @_;

    my $data = join '', map { pack('C Q<', @$_) . leb128(length $_->[2])
                              . $_->[2] } @$exceptions;
    my $padded = padded($data, 64);
    my $table = table_of($padded);

    return patch_header(
        $image . $table . $padded,
        8 => pack('L<', 2),
        16 => pack('Q<', length($image) + length($table) + length $padded),
        3584 => pack('Q< Q< L<', $header{n} // scalar @$exceptions,
                     $header{size} // length $data, crc32c($table)));
}


1;
