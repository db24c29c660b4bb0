#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures lookups in the filter itself, without nginx.  First it
# compares a lookup with fetching a random cache line of the same memory
# (build/bench/lookups), by layout, size and share of keys that are found.  Then
# it compares whole lookups, hashing included, with other implementations.  A
# plot shows how the times grow with the size.

use strict;
use warnings;

use IPC::Open2 qw(open2);
use List::Util qw(min max);

use Bench;

my $rounds = rounds(9);
my $lookups = quick() ? 20_000 : 1_000_000;
my $large = quick() ? '16m' : '1g';

system('scripts/install-deps.sh', 'bench');     # the report says what failed


# Measures once, alone on a processor.

sub measure { return lookups([second_on], '-n', $lookups, '-r', $rounds, @_) }


sub ratio_of {
    my ($got) = @_;

    return sprintf '%.2f (%.2f to %.2f)',
           @$got{qw(ratio ratio_min ratio_max)};
}


sub verdict_of {
    my ($got, $target) = @_;

    return $target ? "$target: " . verdict($got->{ratio} <= $target) : '';
}


my %layout = (
    '1 line'   => ['-p', '1e-3'],
    '2 lines'  => ['-p', '1e-5'],
    '3 lines'  => ['-p', '1e-7'],
    'classic'  => ['-p', '1e-3', '--layout', 'classic'],
    'fuse'     => ['-p', '1e-3', '--layout', 'fuse'],
    'imported' => ['-p', '1e-3', '--layout', 'double'],
);

my %title = (
    '1 line'   => 'blocked, 1e-3: one line',
    '2 lines'  => 'blocked, 1e-5: two lines',
    '3 lines'  => 'blocked, 1e-7: three lines',
    'classic'  => 'classic, 1e-3: k = 10',
    'fuse'     => 'fuse, 1e-3: three slots',
    'imported' => 'imported (RedisBloom, libbloom), 1e-3: k = 10',
);

my @layouts = ('1 line', '2 lines', '3 lines', 'classic', 'fuse', 'imported');

# A lookup of one line or of three slots is compared with a target: one at a time,
# and in a batch.

my %target = ('1 line' => [1.15, 1.5], 'fuse' => [1.35, 4.2]);


# ---- layouts, hits, ways ----

section('Lookups compared with random accesses to the same memory');

my $what = quick() ? '16 MiB' : '1 GiB';

for my $pages ('small', 'huge') {
    my (@rows, $limit, $batch_limit, $share);

    for my $layout (@layouts) {

        # no key can be added to a fuse filter

        for my $hits ($layout eq 'fuse' ? (0) : (0, 0.5, 1)) {
            my @how = ('-m', $large, '--pages', $pages, '--hits', $hits,
                       @{$layout{$layout}});
            my %got = map { $_ => measure(@how, '--way', $_) }
                      qw(alone loop batch);

            my $first = $layout eq '1 line' && $hits == 0;
            if ($first) {
                $limit = $got{alone}{limit_ns};
                $batch_limit = $got{batch}{limit_ns};
                $share = $got{alone}{huge};
            }

            my ($alone, $batch) = @{$target{$layout} // []};

            push @rows, [
                $title{$layout}, $hits,
                ratio_of($got{alone}), verdict_of($got{alone}, $alone),
                ratio_of($got{loop}), ratio_of($got{batch}),
                verdict_of($got{batch}, $batch),
            ];
        }
    }

    table(["$what, $pages pages", 'share found', 'one at a time', 'target',
           'in a loop', 'batch of 64', 'target'], @rows);

    line(sprintf('Ratios to a random line of the same memory, which takes %s ns'
                 . ' one at a time and %s ns with many at once; %.0f %% of the'
                 . ' memory is on huge pages. Loops and batches are compared'
                 . ' with many at once. Hashing and making the keys are left'
                 . ' out.',
                 number($limit), number($batch_limit), 100 * $share));
    line('Huge pages were requested, but the system provided too few.')
        if $pages eq 'huge' && $share < 0.5;
    line('');
}


# ---- vector instructions ----

my @rows;

for my $vector (qw(avx512 avx2 portable)) {
    my @row = ($vector);

    for my $size ('256k', '8m', $large) {
        my $got = eval {
            measure('-m', $size, '--way', 'batch', '--vector', $vector);
        };

        push @row, $got ? number(max(0, $got->{lookup_ns})) . ' ns'
                        : 'not on this processor';
    }

    push @rows, \@row;
}

table(['batches of 64, one line', '256 KiB', '8 MiB', $what], @rows);


# ---- sizes ----

sub bytes {
    my ($number, $unit) = $_[0] =~ /^(\d+)([kmg]?)$/
        or die "BENCH_MEMORY is a size such as 512m or 8g, not \"$_[0]\"\n";

    return $number * { '' => 1, k => 2 ** 10, m => 2 ** 20, g => 2 ** 30 }
                     ->{$unit};
}

my @sizes = quick() ? qw(256k 4m 16m)
                    : qw(32k 256k 1m 4m 16m 64m 256m 1g 4g);

# add the largest size that memory allows

if ($ENV{BENCH_MEMORY}) {
    @sizes = grep { bytes($_) < bytes($ENV{BENCH_MEMORY}) } @sizes;
    push @sizes, $ENV{BENCH_MEMORY};

} elsif (!quick()) {
    open my $fh, '<', '/proc/meminfo' or die "cannot read /proc/meminfo: $!\n";
    my ($kib) = join('', <$fh>) =~ /^MemAvailable: +(\d+)/m;
    my $gib = int($kib / 1024 / 1024 * 2 / 3);
    push @sizes, "${gib}g" if $gib > 4;
}

my (@plot, @table);

for my $size (@sizes) {
    my @point = ($size);

    for my $how ([], ['-p', '1e-5'], ['--layout', 'classic'],
                 ['--layout', 'fuse'])
    {
        for my $way ('alone', 'batch') {
            push @point, measure('-m', $size, '--way', $way, @$how);
        }
    }

    push @plot, [$point[1]{bytes},
                 [(map { max(0, $_->{limit_ns}) } @point[1, 2]),
                  (map { max(0, $_->{lookup_ns}) } @point[1 .. 8])]];
    push @table, [$size, number(max(0, $point[1]{limit_ns})),
                  (map { number(max(0, $_->{lookup_ns})) } @point[1, 3, 5, 7]),
                  number(max(0, $point[2]{limit_ns})),
                  (map { number(max(0, $_->{lookup_ns})) } @point[2, 4, 6, 8])];
}

table(['filter', 'random line, one at a time', 'one line', 'two lines',
       'classic', 'fuse', 'random line, many at once', 'one line', 'two lines',
       'classic', 'fuse'], @table);

line('Nanoseconds per absent key, on small pages: first for one lookup at a'
     . ' time, then for batches of 64. A time smaller than the noise of making'
     . ' keys is shown as 0.');
line('');

for my $way ([0, 'alone', 'One lookup at a time', 'a random line'],
             [1, 'batch', 'A lookup in a batch of 64', 'a random line'])
{
    my ($at, $name, $title, $line) = @$way;

    plot("lookups-$name", $title, 'bytes of the filter; nanoseconds',
         [$line, 'one line', 'two lines', 'classic', 'fuse'],
         map { [$_->[0], @{$_->[1]}[$at, map { 2 * $_ + $at } 1 .. 4]] } @plot);
}


# ---- other implementations ----

my $out = 'build/bench';
my $java = `command -v javac 2>/dev/null` ? 'javac' : 'ecj';
my $jar = '/usr/share/java/guava.jar';
my $go = '/usr/share/gocode';

my @others = (
    ['this module, one by one', "$out/filter", '', 'true'],
    ['this module, batches of 64', "$out/filter", ' batch', 'true'],
    ['libbloom', "$out/libbloom", '',
     "cc -O2 -o $out/libbloom bench/others/libbloom.c -lbloom -lm"],
    ['Go, bits-and-blooms', "$out/bits_and_blooms", '',
     "GO111MODULE=off GOPATH=$go GOCACHE=\$PWD/$out/go go build"
     . " -o $out/bits_and_blooms bench/others/bits_and_blooms.go"],
    ['Guava', "java -Xmx4g -cp $jar:$out Guava", '',
     "$java -nowarn -cp $jar -d $out bench/others/Guava.java"],
);

my @missing;

for my $n (quick() ? (100_000) : (1_000_000, 100_000_000)) {
    my (@running, %ns, %bits, %found);

    for my $other (@others) {
        my ($name, $command, $more, $build) = @$other;

        if (system("($build) > $out/build.log 2>&1") != 0) {
            push @missing, $name if !grep { $_ eq $name } @missing;
            next;
        }

        my $pid = open2(my $from, my $to,
                        join(' ', second_on, $command, $n, '0.001'));
        my $bits = <$from>;

        if (!defined $bits) {
            waitpid $pid, 0;
            push @missing, "$name at $n keys";
            next;
        }

        $bits{$name} = $bits / $n;
        push @running, [$name, $pid, $from, $to, $more];
    }

    # in the first turns Java compiles the code

    for my $round (-2 .. $rounds - 1) {
        for my $hits (0, 1) {
            for my $running (@running) {
                my ($name, $pid, $from, $to, $more) = @$running;

                print $to "$hits $lookups$more\n";
                $to->flush;
                my ($ns, $found) = split ' ', <$from> // die "$name ended\n";

                next if $round < 0;

                push @{$ns{$name}{$hits}}, $ns;
                $found{$name}{$hits} += $found / $lookups / $rounds;
            }
        }
    }

    for my $running (@running) {
        close $running->[3];
        waitpid $running->[1], 0;
    }

    my $base = $running[0][0];

    table([number($n) . ' keys at 0.1 %', 'bits per key', 'absent, ns', 'ratio',
           'present, ns', 'ratio', 'false positives', 'found'],
          map {
              my ($name) = @$_;
              [$name, number($bits{$name}),
               (map {
                   (number(median(@{$ns{$name}{$_}})),
                    sprintf '%.2f (%.2f to %.2f)',
                            ratios($ns{$name}{$_}, $ns{$base}{$_}))
               } 0, 1),
               sprintf('%.3f %%', 100 * $found{$name}{0}),
               sprintf('%.0f %%', 100 * $found{$name}{1})];
          } @running);
}

line('Keys have 16 bytes and are in memory. A lookup is everything that the'
     . ' library does for a key, in a loop, on the allocator\'s small pages.'
     . ' Ratios are to the first row of the same turn.');
line('');

line('Not measured, because it could not be built or run here: '
     . join(', ', @missing) . '.') if @missing;

my $policy = '/usr/include/rocksdb/filter_policy.h';

if (!-e $policy) {
    line('Not measured: RocksDB, whose headers are not installed.');

} elsif (system("grep -q 'class FilterBitsReader *{' $policy") != 0) {
    line('Not measured: RocksDB. Its public interface provides a filter policy'
         . ' for a table, but its installed headers only declare the classes'
         . ' that build and query a filter (FilterBitsBuilder,'
         . ' FilterBitsReader), so only a whole table can be queried.');
}

line('');
