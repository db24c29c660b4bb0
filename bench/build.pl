#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how images of the layouts blocked and fuse are built from
# a text file, on one processor and on two, and how images are verified and
# merged, and loaded when nginx starts.

use strict;
use warnings;

use File::Temp qw(tempdir);
use List::Util qw(max min);

use Bench;

my $rounds = rounds(5);
my $tool = $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom';

# The largest number of keys: BENCH_KEYS=1000000000 needs 17 GB for the file,
# 16 GB for the temporary file, and some minutes.

my $most = $ENV{BENCH_KEYS} // (quick() ? 1e6 : 1e8);
my @sizes = grep { $_ <= $most } (quick() ? 1e5 : ()), 1e6, 1e7, 1e8, 1e9;

# Layouts and values of --memory: with the default, 100 million keys spill in
# layout blocked; with 4g they do not.

my @ways = (['blocked', '1g'], ['fuse', '1g']);
my %ways = (1e8 => [['blocked', '1g'], ['blocked', '4g'], ['fuse', '1g']]);

# Says what is to be reached, and whether it is: rates in million keys a second
# on one processor and on two, or how many times as fast two are as one.

sub verdicts {
    my ($layout, $n, $one, $two, $ratio) = @_;

    return join ', ', '25 M: ' . verdict($one >= 25e6),
                      '40 M: ' . verdict($two >= 40e6) if $layout eq 'blocked';

    my $least = $n <= 1e7 ? 12 : 10;

    return sprintf '%d M: %s, 1.7 x: %s (%.2f)', $least,
                   verdict($one >= $least * 1e6), verdict($ratio >= 1.7),
                   $ratio;
}

# Keys and temporary files are on the disk, and images in memory if possible.

my $disk = tempdir('bench-build-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $shm = -w '/dev/shm' ? tempdir('bench-build-XXXXXX', DIR => '/dev/shm',
                                  CLEANUP => 1) : $disk;


sub run { return (client([], 'keys', '-x', @_))[0] }

sub gib { return sprintf '%.2f', $_[0] / 2**30 }


# -------------------------------------------------------------------- building

section('Building from a text file');

my (@rows, @plot);

for my $n (@sizes) {
    my $keys = "$disk/keys";
    my @these = @{ $ways{$n} // \@ways };
    client([], 'keys', '-w', $n, $keys);

    # a file larger than memory is not in the page cache: measure one round

    my $turns = $n > 1e8 ? 1 : $rounds;
    my (@lines, %ran, %image);

    for my $round (1 .. $turns) {
        my ($lines) = client([first_on], 'keys', '-l', $keys);
        $lines->{result} == $n or die "there are not $n keys\n";
        push @lines, $lines->{seconds};

        for my $way (@these) {
            my ($layout, $memory) = @$way;

            for my $threads (1, 2) {
                push @{ $ran{$way}[$threads] },
                    run(($threads == 1 ? first_on : ()), $tool, 'build', '-q',
                        '-o', "$shm/image", '--temp', $disk, '-j', $threads,
                        '--layout', $layout, '--memory', $memory, '--seed', 7,
                        $keys);
            }

            $image{$way} = -s "$shm/image";
        }
    }

    my @point = ($n);

    for my $way (@these) {
        my ($layout, $memory) = @$way;
        my (undef, @ran) = @{ $ran{$way} };
        my @seconds = map { [map { $_->{seconds} } @$_] } @ran;
        my @rates = map { $n / median(@$_) } @seconds;
        my ($ratio) = ratios($seconds[0], \@lines);
        my ($times) = ratios($seconds[0], $seconds[1]);

        push @point, map { $_ / 1e6 } @rates if $memory eq $ways[0][1];
        push @rows, [
            number($n), $layout, $memory, (map { number($_) } @rates),
            (map { number($n / min(@$_)) } @seconds),
            number($n / median(map { $_->{cpu} } @{ $ran[0] })),
            sprintf('%.1f', $ratio), gib($image{$way}),
            gib(max(map { $_->{memory} } map { @$_ } @ran) - $image{$way}),
            verdicts($layout, $n, @rates, $times)];
    }

    push @plot, \@point;
    unlink $keys, "$shm/image";
}

table(['keys of 16 bytes', 'layout', '--memory', 'keys/s, -j 1', '-j 2',
       'best round, -j 1', '-j 2',
       'keys per second of a processor', 'time / time to count lines',
       'image, GiB', 'other memory, GiB', 'target'], @rows);

line('The text is in the page cache (except for 10^9), and the image is written'
     . ' to' . ($shm eq $disk ? ' the disk' : ' memory, /dev/shm')
     . '. Lines are counted with read() and memchr(). With -j 1 the command has'
     . ' one processor. The seconds are those of the whole command. Keys that'
     . ' exceed --memory, whose default is 1g, go to a temporary file on the'
     . ' disk: from 60 million keys on. The target for memory, with the'
     . ' default, is 1 GiB besides the image.');
line('');

plot('build', 'Building: million keys per second', 'keys',
     ['blocked, one processor', 'blocked, two processors',
      'fuse, one processor', 'fuse, two processors'], @plot);


# ------------------------------------------------------- merging and checking

section('Merging and verifying images');

{
    my $capacity = quick() ? '5m' : 546_273_466;    # 1 GiB
    my $keys = "$disk/keys";
    client([], 'keys', '-w', 100_000, $keys);

    run($tool, 'build', '-q', '-o', "$shm/one", '-n', $capacity, $keys);
    run($tool, 'build', '-q', '-o', "$shm/other", '--like', "$shm/one", $keys);

    my $bytes = -s "$shm/one";
    my (%seconds, %cpu);

    for my $round (1 .. $rounds) {
        my %ran = (
            copy => (client([first_on], 'keys', '-c', 2 * $bytes))[0],
            read => (client([first_on], 'keys', '-r', "$shm/one"))[0],
            cp => run(first_on, 'cp', "$shm/one", "$shm/copy"),
            merge => run(first_on, $tool, 'merge', '-q', '-o', "$shm/merged",
                         "$shm/one", "$shm/other"),
            verify => run(first_on, $tool, 'verify', '-q', "$shm/one"));

        push @{ $seconds{$_} }, $ran{$_}{seconds} for keys %ran;
        push @{ $cpu{$_} }, $ran{$_}{cpu} for keys %ran;
        unlink "$shm/copy", "$shm/merged";
    }

    my ($merge, $least_merge, $most_merge)
        = ratios($seconds{copy}, $seconds{merge});
    my ($cp) = ratios($seconds{copy}, $seconds{cp});

    table(['', 'bytes', 'seconds', 'GiB/s', 'seconds of a processor'],
          (map {
              my ($name, $what, $n) = @$_;
              my $s = median(@{ $seconds{$name} });
              [$what, number($n), number($s), gib($n / $s),
               $name =~ /copy|read/ ? '' : number(median(@{ $cpu{$name} }))]
          } ['copy', 'memcpy()', 2 * $bytes],
            ['read', 'read() of one image', $bytes],
            ['cp', '`cp` of one image', $bytes],
            ['merge', '`merge` of two', 2 * $bytes],
            ['verify', '`verify` of one', $bytes]));

    line(sprintf 'The speed of merging is %.2f of that of memcpy() of as many'
         . ' bytes (rounds %.2f to %.2f; target 0.5: %s). The speed of `cp` of'
         . ' one image, which creates as many new pages and reads half as much,'
         . ' is %.2f of it.', $merge,
         $least_merge, $most_merge, verdict($merge >= 0.5), $cp);
    line('');


    # ------------------------------------------------------------- starting

    section('Start with an image of ' . gib($bytes) . ' GiB');

    my $t = Bench::server(["zone=ids file=$shm/one"], '');
    $t->stop;

    my $none = Bench::server([], '');
    $none->stop;

    my (@with, @without, @with_cpu, @fill, @fill_cpu);

    for my $round (1 .. $rounds) {
        my ($seconds, $used) = started($t);
        stop_started($t);
        push @with, $seconds;
        push @with_cpu, $used;

        ($seconds) = started($none);
        stop_started($none);
        push @without, $seconds;

        my ($fill) = client([], 'read_shm', "$shm/one");
        push @fill, $fill->{seconds};
        push @fill_cpu, $fill->{cpu};
    }

    my @load = map { $with[$_] - $without[$_] } 0 .. $#with;
    my ($ratio, $least, $greatest) = ratios(\@fill, \@load);

    table(['', 'seconds', 'best round', 'seconds of a processor'],
          ['start with the image', number(median(@with)), number(min(@with)),
           number(median(@with_cpu))],
          ['start without the image', number(median(@without)),
           number(min(@without)),
           ''],
          ['read() into fresh shared memory', number(median(@fill)),
           number(min(@fill)), '']);

    line(sprintf 'Start in less than a second: %s. Time of read() divided by'
         . ' the time that the image adds to the start: %.2f (rounds %.2f to'
         . ' %.2f; target 0.8: %s).',
         verdict(median(@with) < 1), $ratio, $least, $greatest,
         verdict($ratio >= 0.8));
    line('');
}
