#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section streams good keys (--except) through a pipe into the build of an
# image, and measures the peak memory and the time beside a build without them.

use strict;
use warnings;

use File::Temp qw(tempdir);
use List::Util qw(max);
use POSIX qw(mkfifo);

use JSON::PP ();

use Bench;
use BloomTest::Process qw(spawn);

my $rounds = rounds(3);
my $tool = $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom';

# The largest number of good keys: BENCH_KEYS=1000000000 takes some minutes, and
# no room on the disk.

my $most = $ENV{BENCH_KEYS} // (quick() ? 1e6 : 1e8);
my @sizes = grep { $_ <= $most } (quick() ? (1e5, 1e6) : (1e7, 1e8, 1e9));
my $listed = quick() ? 1e5 : 1e7;

my $dir = tempdir('bench-except-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($keys, $fifo, $image) = map { "$dir/$_" } qw(keys good image);

system("seq 1 $listed > \Q$keys\E") == 0 or die "no keys\n";
mkfifo($fifo, 0600) or die "$fifo: $!\n";


# Builds an image, with so many good keys that the list does not have.

sub build {
    my ($rate, $n) = @_;

    my @good = $n == 0 ? () : ('--except', $fifo);
    my $writer = $n == 0 ? undef : spawn(sub {
        open STDOUT, '>', $fifo or die "$fifo: $!\n";
        exec 'seq', $listed + 1, $listed + $n;
    });

    my ($ran) = client([], 'keys', '-x', $tool, 'build', '-q', '-o', $image,
                       '-p', $rate, '--seed', 7, '-j', 2, @good, $keys);

    waitpid $writer, 0 if $writer;

    my $info = JSON::PP::decode_json(
        join '', `\Q$tool\E info --json \Q$image\E`);

    return { %$ran, excepted => $info->{excepted},
             bytes => -s $image };
}


section('Good keys');

my @rows;

for my $rate ('1e-2', '1e-4') {

    # a billion good keys at 1e-2 would be ten million exceptions

    for my $n (0, grep { $_ * $rate <= 1e6 } @sizes) {
        my @ran = map { build($rate, $n) } 1 .. ($n > 1e8 ? 1 : $rounds);

        push @rows, [
            $rate, $n ? number($n) : 'none',
            (map { my $of = $_; number(median(map { $_->{$of} } @ran)) }
                 qw(seconds cpu)),
            sprintf('%.0f', max(map { $_->{memory} } @ran) / 2**20),
            $ran[0]{excepted}, $ran[0]{bytes}];
    }
}

table(['-p', 'good keys', 'seconds', "processor's seconds", 'memory, MiB',
       'exceptions', 'bytes of the image'], @rows);

line('The image is built from ' . number($listed) . ' keys with -j 2. `seq`'
     . ' writes the good keys into a named pipe, on the same machine, so the'
     . ' seconds include it. The memory is the most that the command had at a'
     . ' time, with the image.');
line('');
