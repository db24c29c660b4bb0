# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Collision;

# Makes keys with the MurmurHash3_x64_128 of another key, whatever the seed, and
# keys with any such hash for one seed.

use strict;
use warnings;
no warnings 'portable';         # numbers of 64 bits are meant

use Exporter qw(import);

our @EXPORT_OK = qw(crafted key_of_hash);

my ($c1, $c2) = (0x87c37b91114253d5, 0x4cf5ad432745937f);

sub product { use integer; return $_[0] * $_[1] }
sub difference { use integer; return $_[0] - $_[1] }
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

# The number that the last step of the hash turns into this one

sub unmixed {
    my ($x) = @_;

    $x = product($x ^ $x >> 33, inverse(0xc4ceb9fe1a85ec53));
    $x = product($x ^ $x >> 33, inverse(0xff51afd7ed558ccd));

    return $x ^ $x >> 33;
}

# Returns the key of 16 bytes that has this hash, (h1, h2), with this seed.

sub key_of_hash {
    my ($h1, $h2, $seed) = @_;

    # what follows the only block, backwards

    $h2 = difference($h2, $h1);
    $h1 = difference($h1, $h2);
    ($h1, $h2) = (unmixed($h1), unmixed($h2));
    $h2 = difference($h2, $h1);
    $h1 = difference($h1, $h2);
    ($h1, $h2) = ($h1 ^ 16, $h2 ^ 16);

    # the block

    my $to1 = product(difference($h1, 0x52dce729), inverse(5));
    my $to2 = product(difference($h2, 0x38495ab5), inverse(5));
    my $mixed1 = rotated(difference($to1, $seed), 64 - 27) ^ $seed;
    my $mixed2 = rotated(difference($to2, $h1), 64 - 31) ^ $seed;

    return pack 'Q<2',
        product(rotated(product($mixed1, inverse($c2)), 64 - 31), inverse($c1)),
        product(rotated(product($mixed2, inverse($c1)), 64 - 33), inverse($c2));
}


1;
