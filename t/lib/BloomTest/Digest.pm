# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Digest;

# Computes the digest of a source's changes, from docs/journal-format.md alone and
# on purpose without any of the project's other code.
#
#   digest('+one', '-two')           16 hexadecimal digits

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(digest);


# Numbers have 64 bits and wrap around.

sub _rotate {
    my ($x, $n) = @_;

    return $x << $n | $x >> 64 - $n;
}


sub _add { use integer; return $_[0] + $_[1] }
sub _multiply { use integer; return $_[0] * $_[1] }


sub _rounds {
    my ($v, $n) = @_;

    for (1 .. $n) {
        $v->[0] = _add($v->[0], $v->[1]);
        $v->[2] = _add($v->[2], $v->[3]);
        $v->[1] = _rotate($v->[1], 13) ^ $v->[0];
        $v->[3] = _rotate($v->[3], 16) ^ $v->[2];
        $v->[0] = _rotate($v->[0], 32);
        $v->[2] = _add($v->[2], $v->[1]);
        $v->[0] = _add($v->[0], $v->[3]);
        $v->[1] = _rotate($v->[1], 17) ^ $v->[2];
        $v->[3] = _rotate($v->[3], 21) ^ $v->[0];
        $v->[2] = _rotate($v->[2], 32);
    }
}


# Returns both halves of a SipHash-1-3 with 128 bits of output.

sub _siphash {
    my ($secret, $data) = @_;

    my @key = unpack 'Q<2', $secret;
    my @v = map { unpack('Q>', $_) } qw(somepseu dorandom lygenera tedbytes);

    $v[$_] ^= $key[$_ % 2] for 0 .. 3;
    $v[1] ^= 0xee;

    my $length = length $data;
    $data .= "\0" x (7 - $length % 8) . chr $length % 256;

    for my $word (unpack 'Q<*', $data) {
        $v[3] ^= $word;
        _rounds(\@v, 1);
        $v[0] ^= $word;
    }

    $v[2] ^= 0xee;
    _rounds(\@v, 3);
    my $first = $v[0] ^ $v[1] ^ $v[2] ^ $v[3];

    $v[1] ^= 0xdd;
    _rounds(\@v, 3);

    return $first, $v[0] ^ $v[1] ^ $v[2] ^ $v[3];
}


sub digest {
    my (@changes) = @_;

    my $digest = 0;

    for (@changes) {
        my ($sign, $key) = /^([+-])(.*)$/s or die "no change: $_";
        my ($added, $removed) = _siphash('ngx-bloom digest', $key);

        no warnings 'portable';
        $digest = _add(_multiply($digest, 0x9e3779b97f4a7c15),
                       $sign eq '+' ? $added : $removed);
    }

    return sprintf '%016x', $digest;
}


1;
