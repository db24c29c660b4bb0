#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how fast a filter of each format is imported and
# exported, compared with a synchronised copy of the same file.

use strict;
use warnings;

use File::Temp ();

use Bench;
use BloomTest::Process qw(now);

my $rounds = rounds(5);
my $size = (quick() ? 16 : 256) << 20;      # bytes of bits
my $bits = 8 * $size;
my ($n, $k, $p) = (int($bits / 14.4), 10, 0.001);

my $dir = File::Temp->newdir('bloom-bench-XXXXXX', TMPDIR => 1);
my $tool = $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom';

# Half of the bits are set, as in a filter that is filled to its capacity.

sub run {
    system({ $_[0] } @_) == 0 or die "@_ failed\n";
}

sub file {
    my ($name, $header) = @_;

    open my $out, '>:raw', "$dir/$name" or die "cannot write $dir/$name: $!\n";
    print $out $header;
    close $out or die "cannot write $dir/$name: $!\n";
    run('sh', '-c', "cat '$dir/bits' >> '$dir/$name'");

    return "$dir/$name";
}

run('sh', '-c', "head -c $size /dev/urandom > '$dir/bits'");

# name, header, arguments, and --to if the format can be exported

my @formats = (
    ['guava', pack('C C L>', 1, $k, $size / 8), [], 'guava'],
    ['redisbloom', pack('Q< L< L< L< Q< Q< Q< d< d< L< Q< C', $n, 1, 13, 2,
                        $size, $bits, $n, $p, $k / log(2), $k, $n, 0),
     [], 'redisbloom'],
    ['bitmap', '', ['--scheme', 'redisson', '--bits', $bits, '--hashes', $k],
     'bitmap'],
    ['dcso', pack('Q< Q< d< Q< Q< Q<', 1, $n, $p, $k, $bits, $n), [], 'dcso'],
    ['bits-and-blooms', pack('Q> Q> Q>', $bits, $k, $bits), [],
     'bits-and-blooms'],
    ['spark', pack('L> L> L> L>', 2, $k, 0, $size / 8), [], 'spark'],
    ['libbloom', 'libbloom2' . pack('S< L< x4 Q< Q< C x7 d< C C C x5 d< Q<', 64,
                                    $n, $bits, $size, $k, $p, 1, 2, 0, 14.4, 0),
     []],
);

my (%wall, %cpu);

sub measured {
    my ($name, @command) = @_;

    my @before = (now(), times);
    run(@command);
    my @after = (now(), times);

    push @{ $wall{$name} }, $after[0] - $before[0];
    push @{ $cpu{$name} }, $after[3] + $after[4] - $before[3] - $before[4];
}

sub rate { return number($size / median(@{ $_[0]{$_[1]} }) / 1e6) }
sub ratio { return sprintf '%.2f (%.2f to %.2f)', ratios(@_) }


section(sprintf 'Import of a filter of %d MiB', $size >> 20);

my @rows;

for my $format (@formats) {
    my ($name, $header, $arguments, $to) = @$format;

    my $source = file($name, $header);
    my $back = "back to $name";

    for (1 .. $rounds) {
        measured("copy $name", 'sh', '-c', 'cp "$1" "$2" && sync "$2"', 'sh',
                 $source, "$dir/copy");
        unlink "$dir/copy";

        # hide the warning that this is a bad size for DCSO's scheme
        measured($name, 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', $tool,
                 'import', '-q', '--from', $name, @$arguments, '-o',
                 "$dir/image", $source);

        if (defined $to) {
            measured($back, $tool, 'export', '-q', '--to', $to,
                     ($to =~ /redis|bitmap/ ? ('--key', 'k') : ()), '-o',
                     "$dir/back", "$dir/image");
            unlink "$dir/back";
        }

        unlink "$dir/image";
    }

    unlink $source;

    my $least = $size / median(@{ $wall{$name} }) / 1e6;

    push @rows, [$name, rate(\%wall, $name), rate(\%cpu, $name),
                 ratio($wall{"copy $name"}, $wall{$name}),
                 '200: ' . verdict($least >= 200),
                 defined $to ? (rate(\%wall, $back), rate(\%cpu, $back))
                             : ('', '')];
}

my @copies = map { @{ $wall{"copy $_->[0]"} } } @formats;

table(['format', 'MB/s', 'MB/s of a processor', 'ratio to a copy', 'target',
       'export, MB/s', 'of a processor'], @rows);

line('From a file in the page cache to an image on the disk. An import reads'
     . ' the filter, converts it, counts its bits, looks up a million random'
     . ' keys, computes checksums and synchronises the image. The copy is `cp`'
     . ' and `sync` of the same file, in turns with the imports: '
     . number($size / median(@copies) / 1e6) . ' MB/s.');
line('');
