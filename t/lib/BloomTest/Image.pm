# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Image;

# Changes images, for tests that nginx and the tool refuse them, and reads images,
# for tests of what they have.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);

our @EXPORT_OK = qw(crc32c image_of patch_header read_vector
                    with_exceptions parsed bits_set exceptions_in);

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


# Returns the data of exceptions: [kinds, time in milliseconds, key].

sub _entries {
    return join '', map { pack('C Q<', @$_) . leb128(length $_->[2])
                          . $_->[2] } @_;
}


# Returns an image without exceptions as one with exceptions. The numbers and the
# sizes may be given, to be wrong.

sub with_exceptions {
    my ($image, $exceptions, %header) = @_;

    my @built = grep { $_->[0] & 1 } @$exceptions;
    my $data = _entries(@$exceptions);
    my $padded = padded($data, 64);
    my $table = table_of($padded);

    return patch_header(
        $image . $table . $padded,
        16 => pack('Q<', length($image) + length($table) + length $padded),
        3584 => pack('Q< Q< L<', $header{n} // scalar @$exceptions,
                     $header{size} // length $data, crc32c($table)),
        3616 => pack('Q< Q<', $header{built} // scalar @built,
                     $header{built_size} // length _entries(@built)));
}


# Returns what a lookup in an image needs: the fields of a vector, and the
# payload.

sub parsed {
    my ($image) = @_;

    my %v;

    @v{qw(at size layout k lines bits hash key)}
        = unpack 'x24 Q< Q< x8 L< L< L< x4 Q< L< x4 a16', $image;

    $v{layout} = { 1 => 'blocked', 2 => 'classic', 13 => 'fuse' }->{
        $v{layout} };
    $v{hash} = { 1 => 'murmur3', 2 => 'siphash' }->{ $v{hash} };
    $v{seed} = unpack 'L<', $v{key};
    @v{qw(base_keys room wide_slots segment_length segments shard_bits
          slot_bits)} = unpack 'x152 Q< Q< Q< L< L< L< L<', $image;
    $v{hash_key} = $v{key};
    $v{payload} = substr $image, $v{at}, $v{size};

    # the salts of the shards, from the end of the base

    if ($v{layout} eq 'fuse') {
        my $shards = 1 << $v{shard_bits};

        $v{salts} = join ' ', reverse unpack 'C*', substr $v{payload},
                                  $v{bits} / 8 - $shards, $shards;
    }

    return \%v;
}


# Returns 1 if all bits of an expression are set, else 0; in layout fuse, if its
# slots have its fingerprint.

sub bits_set {
    my ($parsed, $expression) = @_;

    return is_in_base(\$parsed->{payload}, $parsed,
                      hash_of($parsed, $expression))
        if $parsed->{layout} eq 'fuse';

    for (bits_of($parsed, hash_of($parsed, $expression))) {
        return 0 if !vec $parsed->{payload}, $_, 1;
    }

    return 1;
}


# Returns the exceptions of an image: [kinds, time in milliseconds, key].

sub exceptions_in {
    my ($image) = @_;

    my ($at, $payload) = unpack 'x24 Q< Q<', $image;
    my ($n, $size) = unpack 'x3584 Q< Q<', $image;
    my @exceptions;

    return if $n == 0;

    for (unpack "x$at x$payload x4096 a$size", $image) {
        while (/\G(.)(.{8})([\x80-\xff]*[\0-\x7f])/gcs) {
            my ($kinds, $time, @bytes) = (ord $1, unpack('Q<', $2),
                                          unpack 'C*', $3);
            my $length = 0;

            $length += ($bytes[$_] & 0x7f) << 7 * $_ for 0 .. $#bytes;
            push @exceptions, [$kinds, $time, substr $_, pos, $length];
            pos($_) += $length;
        }

        die "an exception is not valid\n" if (pos($_) // 0) != $size;
    }

    die "the number of exceptions is wrong\n" if $n != @exceptions;

    return @exceptions;
}


1;
