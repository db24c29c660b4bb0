# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Schemes;

# Computes the bits of keys in other systems' filters from the published
# algorithms.  A filter that a test makes with these functions shares no line
# with the code under test.

use strict;
use warnings;
no warnings 'portable';

use Exporter 'import';

our @EXPORT_OK = qw(bits_of highway128 murmur64a murmur2 murmur3 fnv1
                    spark_murmur3 mul add);

my $all = 0xffffffffffffffff;


# Numbers of 64 bits wrap under "use integer", and "& $all" makes the result
# unsigned again.

sub mul { use integer; my $p = $_[0] * $_[1]; no integer; return $p & $all }
sub add { use integer; my $s = $_[0] + $_[1]; no integer; return $s & $all }
sub rotl { return ($_[0] << $_[1] | $_[0] >> (64 - $_[1])) & $all }
sub rotl32 {
    return $_[1] == 0 ? $_[0]
                      : ($_[0] << $_[1] | $_[0] >> (32 - $_[1])) & 0xffffffff;
}
sub signed32 { return unpack 'l', pack 'L', $_[0] & 0xffffffff }


sub fnv1 {
    my $h = 0xcbf29ce484222325;

    $h = mul($h, 0x100000001b3) ^ $_ for unpack 'C*', $_[0];

    return $h;
}


sub murmur64a {
    my ($key, $seed) = @_;

    my $m = 0xc6a4a7935bd1e995;
    my $h = $seed ^ mul(length $key, $m);
    my $whole = length($key) & ~7;

    for my $k (unpack 'Q<*', substr $key, 0, $whole) {
        $k = mul($k, $m);
        $k = mul($k ^ $k >> 47, $m);
        $h = mul($h ^ $k, $m);
    }

    if (length $key > $whole) {
        $h = mul($h ^ unpack('Q<', substr($key, $whole) . "\0" x 8), $m);
    }

    $h = mul($h ^ $h >> 47, $m);

    return $h ^ $h >> 47;
}


sub murmur2 {
    my ($key, $seed) = @_;

    my $m = 0x5bd1e995;
    my $h = $seed ^ length $key;
    my $whole = length($key) & ~3;

    for my $k (unpack 'L<*', substr $key, 0, $whole) {
        $k = $k * $m & 0xffffffff;
        $k = ($k ^ $k >> 24) * $m & 0xffffffff;
        $h = ($h * $m & 0xffffffff) ^ $k;
    }

    if (length $key > $whole) {
        $h = ($h ^ unpack 'L<', substr($key, $whole) . "\0" x 4) * $m
             & 0xffffffff;
    }

    $h = ($h ^ $h >> 13) * $m & 0xffffffff;

    return $h ^ $h >> 15;
}


sub fmix64 {
    my ($x) = @_;

    $x = mul($x ^ $x >> 33, 0xff51afd7ed558ccd);
    $x = mul($x ^ $x >> 33, 0xc4ceb9fe1a85ec53);

    return $x ^ $x >> 33;
}


# Returns MurmurHash3 x64 128 with seed 0, as two numbers.

sub murmur3 {
    my ($key) = @_;

    my ($c1, $c2) = (0x87c37b91114253d5, 0x4cf5ad432745937f);
    my ($h1, $h2) = (0, 0);
    my $whole = length($key) & ~15;
    my @words = unpack 'Q<*', substr $key, 0, $whole;

    while (my ($k1, $k2) = splice @words, 0, 2) {
        $h1 ^= mul(rotl(mul($k1, $c1), 31), $c2);
        $h1 = add(mul(add(rotl($h1, 27), $h2), 5), 0x52dce729);
        $h2 ^= mul(rotl(mul($k2, $c2), 33), $c1);
        $h2 = add(mul(add(rotl($h2, 31), $h1), 5), 0x38495ab5);
    }

    my ($k1, $k2) = unpack 'Q<2', substr($key, $whole) . "\0" x 16;

    $h2 ^= mul(rotl(mul($k2, $c2), 33), $c1);
    $h1 ^= mul(rotl(mul($k1, $c1), 31), $c2);

    ($h1, $h2) = ($h1 ^ length $key, $h2 ^ length $key);
    $h1 = add($h1, $h2);
    $h2 = add($h2, $h1);
    ($h1, $h2) = (fmix64($h1), fmix64($h2));
    $h1 = add($h1, $h2);

    return ($h1, add($h2, $h1));
}


# Returns Spark's murmur3_32, which takes each of the last bytes as a signed
# block.

sub spark_murmur3 {
    my ($key, $h) = @_;

    my $whole = length($key) & ~3;

    for my $k (unpack('L<*', substr $key, 0, $whole),
               map { $_ & 0xffffffff } unpack 'c*', substr $key, $whole)
    {
        $k = $k * 0xcc9e2d51 & 0xffffffff;
        $k = rotl32($k, 15) * 0x1b873593 & 0xffffffff;
        $h = rotl32($h ^ $k, 13) * 5 + 0xe6546b64 & 0xffffffff;
    }

    $h ^= length $key;
    $h = ($h ^ $h >> 16) * 0x85ebca6b & 0xffffffff;
    $h = ($h ^ $h >> 13) * 0xc2b2ae35 & 0xffffffff;

    return $h ^ $h >> 16;
}


# Returns HighwayHash-128, as two numbers.

sub highway128 {
    my ($message, @key) = @_;

    my @mul0 = (0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
                0x243f6a8885a308d3);
    my @mul1 = (0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c,
                0x452821e638d01377);
    my @v0 = map { $mul0[$_] ^ $key[$_] } 0 .. 3;
    my @v1 = map { $mul1[$_] ^ rotl($key[$_], 32) } 0 .. 3;

    # the sixteen bytes of two lanes in another order

    my $zip = sub {
        my ($dst, $src, $i) = @_;

        my @b = unpack 'C16', pack 'Q<2', @$src[$i, $i + 1];
        my @sum = unpack 'Q<2', pack 'C16',
                  @b[3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7];

        $dst->[$i + $_] = add($dst->[$i + $_], $sum[$_]) for 0, 1;
    };

    my $update = sub {
        for (0 .. 3) {
            $v1[$_] = add($v1[$_], add($mul0[$_], $_[$_]));
            $mul0[$_] ^= mul($v1[$_] & 0xffffffff, $v0[$_] >> 32);
            $v0[$_] = add($v0[$_], $mul1[$_]);
            $mul1[$_] ^= mul($v0[$_] & 0xffffffff, $v1[$_] >> 32);
        }

        $zip->(\@v0, \@v1, $_) for 0, 2;
        $zip->(\@v1, \@v0, $_) for 0, 2;
    };

    while (length $message >= 32) {
        $update->(unpack 'Q<4', substr $message, 0, 32, '');
    }

    if (my $n = length $message) {
        my $packet = substr($message, 0, $n & ~3) . "\0" x 32;

        for (0 .. 3) {
            $v0[$_] = add($v0[$_], ($n << 32) + $n);
            $v1[$_] = rotl32($v1[$_] >> 32, $n) << 32
                      | rotl32($v1[$_] & 0xffffffff, $n);
        }

        if ($n & 16) {
            substr $packet, 28, 4, substr $message, $n - 4, 4;

        } elsif ($n & 3) {
            my $rest = substr $message, $n & ~3;
            substr $packet, 16, 3, join '', map { substr $rest, $_, 1 }
                                            0, ($n & 3) >> 1, ($n & 3) - 1;
        }

        $update->(unpack 'Q<4', substr $packet, 0, 32);
    }

    $update->(map { rotl($v0[$_], 32) } 2, 3, 0, 1) for 1 .. 6;

    return map { add(add($v0[$_], $mul0[$_]), add($v1[$_ + 2], $mul1[$_ + 2])) }
           0, 1;
}


my @redisson = (0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251,
                0xf86c6a11d0c18e95);
my $max = 0x7fffffffffffffff;

my %bits_of = (

    'go-zero' => sub {
        my ($key, $m, $k) = @_;
        return map { (murmur3($key . chr $_))[0] % $m } 0 .. $k - 1;
    },

    redisson => sub {
        my ($key, $m, $k) = @_;
        my @h = highway128($key, @redisson);
        my $h = $h[0];
        my @bits;

        for (0 .. $k - 1) {
            push @bits, ($h & $max) % $m;
            $h = add($h, $_ % 2 ? $h[0] : $h[1]);
        }

        return @bits;
    },

    guava64 => sub {
        my ($key, $m, $k) = @_;
        my ($a, $b) = murmur3($key);
        return map { (add($a, mul($_, $b)) & $max) % $m } 0 .. $k - 1;
    },

    guava32 => sub {
        my ($key, $m, $k) = @_;
        my ($h) = murmur3($key);
        my ($a, $b) = ($h & 0xffffffff, $h >> 32);
        return map { my $c = signed32($a + $_ * $b);
                     ($c < 0 ? -$c - 1 : $c) % $m } 1 .. $k;
    },

    double => sub {
        my ($key, $m, $k) = @_;
        my ($a, $b) = murmur3($key);
        return map { add($a, mul($_, $b)) % $m } 0 .. $k - 1;
    },

    redisbloom => sub {
        my ($key, $m, $k) = @_;
        my $a = murmur64a($key, 0xc6a4a7935bd1e995);
        my $b = murmur64a($key, $a);
        return map { add($a, mul($_, $b)) % $m } 0 .. $k - 1;
    },

    libbloom => sub {
        my ($key, $m, $k) = @_;
        my $a = murmur2($key, 0x9747b28c);
        my $b = murmur2($key, $a);
        return map { ($a + $b * $_) % $m } 0 .. $k - 1;
    },

    # as early versions of RedisBloom: sums of 32 bits, a power of two

    old => sub {
        my ($key, $m, $k) = @_;
        my $a = murmur2($key, 0x9747b28c);
        my $b = murmur2($key, $a);
        return map { ($a + $b * $_ & 0xffffffff) % $m } 0 .. $k - 1;
    },

    dcso => sub {
        my ($key, $m, $k) = @_;
        my $h = fnv1($key) % 18446744073709551557;
        return map { $h = mul($h, 18446744073709550147) % 18446744073709551557;
                     $h % $m } 1 .. $k;
    },

    'bits-and-blooms' => sub {
        my ($key, $m, $k) = @_;
        my @h = (murmur3($key), murmur3("$key\x01"));
        return map { add($h[$_ % 2],
                         mul($_, $h[2 + ($_ + $_ % 2) % 4 / 2])) % $m }
               0 .. $k - 1;
    },

    spark1 => sub {
        my ($key, $m, $k) = @_;
        my $a = spark_murmur3($key, 0);
        my $b = spark_murmur3($key, $a);
        return map { my $c = signed32($a + $_ * $b);
                     ($c < 0 ? -$c - 1 : $c) % $m } 1 .. $k;
    },

    spark2 => sub {
        my ($key, $m, $k, $seed) = @_;
        my $a = spark_murmur3($key, $seed // 0);
        my $b = spark_murmur3($key, $a);
        return map { my $c = signed32($a) * 0x7fffffff + $_ * signed32($b);
                     ($c < 0 ? -$c - 1 : $c) % $m } 1 .. $k;
    },
);


# Returns the $k bits of a key in a filter of $m bits.

sub bits_of {
    my ($scheme, @arguments) = @_;

    return $bits_of{$scheme}->(@arguments);
}


1;
