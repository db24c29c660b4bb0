# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Collision;

# Makes keys with the MurmurHash3_x64_128 of another key, whatever the seed.

use strict;
use warnings;
no warnings 'portable';         # numbers of 64 bits are meant

use Exporter qw(import);

our @EXPORT_OK = qw(crafted);

my ($c1, $c2) = (0x87c37b91114253d5, 0x4cf5ad432745937f);

sub product { use integer; return $_[0] * $_[1] }
sub rotated { return $_[0] << $_[1] | $_[0] >> 64 - $_[1] }

# The number whose product with an odd number is 1, modulo 2^64

sub inverse {
    use integer;
    my $x = $_[0];
    $x = $x * (2 - $_[0] * $x) for 1 .. 6;
    return $x;
}

# Changes a word of a key so that these bits change where the hash mixes it in:
# the word is multiplied by $c, rotated, and multiplied by $d.

sub changed {
    my ($word, $c, $rotation, $d, $bits) = @_;

    my $mixed = product(rotated(product($word, $c), $rotation), $d);

    return product(rotated(product($mixed ^ $bits, inverse($d)),
                               64 - $rotation), inverse($c));
}

# The first block changes bit 63 of the first half of the state, and nothing of
# the second half; the next word changes that bit back.

# Returns another key with the hash of a key of 24 bytes or more.

sub crafted {
    my @word = unpack 'Q<3', $_[0];

    return pack('Q<3', changed($word[0], $c1, 31, $c2, 1 << 36),
                changed($word[1], $c2, 33, $c1, 1 << 32),
                changed($word[2], $c1, 31, $c2, 1 << 63))
           . substr $_[0], 24;
}


1;
