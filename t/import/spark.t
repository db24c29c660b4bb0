#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import of Spark filters of both versions and of libbloom files.  The
# test makes their bytes from the published algorithms.

use strict;
use warnings;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Schemes qw(bits_of spark_murmur3);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;

# The number is the result of SELECT hash('Spark') in Spark SQL.

is(unpack('l', pack 'L', spark_murmur3('Spark', 42)), 228093765,
   'the hash of this test equals that of Spark');


# Returns little-endian words of 64 bits, and the set of bits that are 1.

sub filter {
    my ($keys, $scheme, $m, @rest) = @_;

    my $words = "\0" x (int(($m + 63) / 64) * 8);
    my %set;

    for my $key (@$keys) {
        for my $bit (bits_of($scheme, $key, $m, @rest)) {
            vec($words, $bit, 1) = 1;
            $set{$bit} = 1;
        }
    }

    return ($words, \%set);
}

sub expected {
    my ($set, $keys, @scheme) = @_;

    my $bytes_of = ref $scheme[-1] ? pop @scheme : sub { $_[0] };

    return join '', map {
        my $key = $bytes_of->($_);
        (grep { !$set->{$_} } bits_of($scheme[0], $key, @scheme[1 .. $#scheme]))
            ? 0 : 1;
    } @$keys;
}

sub big_endian { return pack 'Q>*', unpack 'Q<*', $_[0] }
sub long { return pack 'q<', $_[0] }


for my $version (1, 2) {
    for my $funnel (qw(bytes long)) {
        for my $size ([64, 5, 8], [9600, 7, 900], [64000, 30, 700]) {

            my ($m, $k, $n) = @$size;
            my $seed = $version == 2 ? 0xdeadbeef - $m : 0;
            my $bytes_of = $funnel eq 'long' ? \&long : sub { $_[0] };
            my ($in, $not) = $funnel eq 'long'
                             ? (numbers($n, 0), numbers($n + 900, 1))
                             : (members($n), strangers($n + 900));
            my $what = "the Spark $version filter of $m bits with $funnel";
            my @scheme = ("spark$version", $m, $k, $seed);

            my ($words, $set) = filter([map { $bytes_of->($_) } @$in],
                                       @scheme);
            my $file = $t->write_file(
                'spark',
                pack('l> l>', $version, $k)
                . ($version == 2 ? pack 'L>', $seed : '')
                . pack('l>', $m / 64) . big_endian($words));

            import_image($t, "$dir/image", '--from', 'spark', '--funnel',
                         $funnel, $file);

            my @ask = (@$in, @$not);
            my $expected = expected($set, \@ask, @scheme, $bytes_of);

            like($expected, qr/\A1{$n}/, "$what has its members");
            same_answers(answers($t, "$dir/image", \@ask), $expected,
                         "the image of $what");

            export_image($t, 'spark', "$dir/back", "$dir/image");
            same_file("$dir/back", $file,
                      "the export of $what equals its source");
        }
    }
}

tally('Spark, by script');


# libbloom 2.0, as on x86-64

for my $size ([9585, 6, 900], [64, 3, 10], [19171, 13, 900]) {

    my ($m, $k, $n) = @$size;
    my @ask = (@{ members($n) }, @{ strangers(1500) });
    my ($words, $set) = filter(members($n), 'libbloom', $m, $k);
    my $bytes = int(($m + 7) / 8);

    my $file = $t->write_file(
        'libbloom',
        'libbloom2' . pack('S<', 64)
        . pack('L< x4 Q< Q< C x7 d< C C C x5 d< Q<', 1000, $m, $bytes, $k,
               0.01, 1, 2, 0, 9.585, 2 ** 46 + 123)
        . substr $words, 0, $bytes);

    my ($out) = import_image($t, "$dir/image", '--from', 'libbloom', $file);
    like($out, qr/^\S+: libbloom, keys hashed as bytes, $m bits, k $k$/m,
         "the import describes the libbloom filter of $m bits");

    my $expected = expected($set, \@ask, 'libbloom', $m, $k);

    like($expected, qr/\A1{$n}/,
         "the libbloom filter of $m bits has its members");
    same_answers(answers($t, "$dir/image", \@ask), $expected,
                 "the image of the libbloom filter of $m bits");

    import_fails($t, "a libbloom filter of $m bits with an unknown layout",
                 qr/was not written by libbloom 2.x/,
                 '--from', 'libbloom',
                 $t->write_file('32', $t->read_file('libbloom')
                                      =~ s/\Alibbloom2\K@/\x34/r));
}

done_testing;
