# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Image;

# Changes images, for tests that nginx and the tool refuse them.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);

our @EXPORT_OK = qw(crc32c patch_header);

# crc32c() comes from the second writer, which shares no line with the tested
# code.

require(abs_path(dirname(__FILE__) . '/../../golden/write_image.pl'));


# Returns an image whose header has other bytes at some offsets, and the right
# checksum for them.

sub patch_header {
    my ($image, %bytes) = @_;

    my ($header, $rest) = unpack 'a4092 x4 a*', $image;

    substr $header, $_, length $bytes{$_}, $bytes{$_} for keys %bytes;

    return $header . pack('L<', crc32c($header)) . $rest;
}


1;
