#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how an image is made of partitions of its keys, as on a
# cluster: conf-examples/cluster/build-part.sh builds an image of each partition,
# and "ngx-bloom merge" joins them.  The bits must be those of one build.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use JSON::PP ();
use List::Util qw(max sum);

use BloomTest::Process qw(now);

use Bench;

my $keys = $ENV{BENCH_KEYS} // (quick() ? 1e6 : 1e8);
my $tool = abs_path($ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom');
my $part = abs_path('conf-examples/cluster/build-part.sh');
my $program = abs_path(($ENV{BENCH_PROGRAMS} // 'build/bench') . '/keys');
my $processors = () = `cat /proc/cpuinfo` =~ /^processor\s/mg;

# BENCH_KEYS=100000000 needs 23 GB of disk, most of it for the images of a
# hundred partitions

my $dir = tempdir('bench-cluster-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my @rows;

$ENV{PATH} = dirname($tool) . ":$ENV{PATH}";
$ENV{TMPDIR} = $dir;


sub gib { return sprintf '%.2f', $_[0] / 2**30 }
sub mib { return $_[0] ? sprintf('%.0f', $_[0] / 2**20) : '' }

# Runs a command; returns its seconds, seconds of a processor, and memory.

sub run {
    return (client([], 'keys', '-x', 'sh', '-c', 'exec "$@" > /dev/null', 'sh',
                   @_))[0];
}


# Divides the keys into $n files of whole lines.

sub divide {
    my ($n) = @_;

    mkdir "$dir/$_-$n" or die "mkdir: $!" for 'keys', 'images';
    system('split', '-n', "l/$n", '-a', 3, '-d', "$dir/keys.txt",
           "$dir/keys-$n/") == 0 or die 'split';

    return glob "$dir/keys-$n/*";
}


# Builds an image of each file, `at_once` of them at a time, with the keys on
# standard input.  Returns the seconds, the seconds of processors, the most
# memory of one, and the paths of the images.

sub build_parts {
    my ($at_once, $n, @files) = @_;

    my (%runs, @ran, @images);
    my $next = 0;
    my $began = now();

    # each child writes what the run took and the name that the script printed

    my $start = sub {
        my ($file) = @_;
        my $out = "$dir/ran-" . $next++;
        my $pid = fork // die "fork: $!";

        if ($pid == 0) {
            open STDIN, '<', $file or die "$file: $!";
            open STDOUT, '>', $out or die "$out: $!";
            exec $program, '-x', 'sh', '-c', 'cat | "$@"', 'sh', $part,
                 "$dir/shape", "$dir/images-$n"
                or die "exec: $!";
        }

        $runs{$pid} = $out;
    };

    while (@files || %runs) {
        $start->(shift @files) while @files && keys %runs < $at_once;

        my $pid = wait;
        $? == 0 or die "build-part.sh failed ($?)\n";
        my $out = delete $runs{$pid};

        open my $fh, '<', $out or die "$out: $!";
        chomp(my @lines = <$fh>);
        unlink $out;

        push @images, "$dir/images-$n/" . (grep { /\.bloom$/ } @lines)[0];
        push @ran, JSON::PP::decode_json((grep { /^\{/ } @lines)[0]);
    }

    return (now() - $began, sum(map { $_->{cpu} } @ran),
            max(map { $_->{memory} } @ran), @images);
}


# Merges images and compares the bits with those of the one build.

sub merge {
    my (@images) = @_;

    my $ran = run($tool, 'merge', '-q', '-o', "$dir/merged", @images);

    # all but the first page, which has the times, the build id and the count

    my $same = system('cmp', '-s', '-i', 4096, "$dir/merged", "$dir/one") == 0;

    return ($ran, $same ? 'the same' : 'DIFFERENT');
}


sub row {
    my ($what, $seconds, $cpu, $memory, $read, $written, $bits) = @_;

    push @rows, [$what, number($seconds), $cpu ? number($cpu) : '', mib($memory),
                 gib($read), gib($written), $bits // ''];
}


section('An image of partitions, as on a cluster');

client([], 'keys', '-w', $keys, "$dir/keys.txt");
run('sh', '-c', '"$1" build -q --allow-empty -n "$2" --hash siphash -o "$3"'
    . ' < /dev/null && head -c 4096 "$3" > "$4"', 'sh', $tool, $keys,
    "$dir/empty", "$dir/shape");

my $bytes = -s "$dir/empty";
unlink "$dir/empty";

my $one = run($tool, 'build', '-q', '--like', "$dir/shape", '-o', "$dir/one",
              "$dir/keys.txt");
row('one build', @$one{qw(seconds cpu memory)}, -s "$dir/keys.txt", $bytes);

for my $n (8, 100) {
    my @files = divide($n);
    my $at_once = $n == 8 ? 8 : $processors;
    my ($seconds, $cpu, $memory, @images) = build_parts($at_once, $n, @files);

    @images == $n or die "there are not $n images\n";
    row("$n partitions, $at_once processes at a time", $seconds, $cpu, $memory,
        -s "$dir/keys.txt", $n * $bytes);
    unlink @files;

    my ($ran, $bits) = merge(@images);
    row("`merge` of $n images", @$ran{qw(seconds cpu memory)}, $n * $bytes,
        $bytes, $bits);

    next if $n == 8;

    run('sh', '-c', 'gzip -1 < "$1" > "$2"', 'sh', $images[0], "$dir/packed");

    # on each of ten machines first, then the ten results

    my (@seconds, @results);

    for my $machine (0 .. 9) {
        push @results, "$dir/machine-$machine";
        push @seconds, run($tool, 'merge', '-q', '-o', $results[-1],
                           splice @images, 0, 10)->{seconds};
    }

    unlink glob "$dir/images-$n/*";
    ($ran, $bits) = merge(@results);
    row('`merge` of ten images on each of ten machines, the slowest',
        max(@seconds), 0, 0, 10 * $bytes, $bytes);
    row('then `merge` of the ten results', @$ran{qw(seconds cpu memory)},
        10 * $bytes, $bytes, $bits);}

table(['', 'seconds', 'seconds of a processor', 'most memory of a process, MiB',
       'read, GiB', 'written, GiB', 'bits'], @rows);

line(number($keys) . ' keys of 16 bytes, and a filter for as many at a rate of'
     . ' 0.1 %, with siphash. Keys come through a pipe, and all files are on'
     . ' the disk and in the page cache if it has room. "Read" is the size of'
     . ' the files that a step reads, and "written" that of the images that it'
     . ' makes: build-part.sh writes each image twice. "Bits" compares the result with that of'
     . ' the one build. An image of one partition of 100 has '
     . mib($bytes) . ' MiB, and ' . mib(-s "$dir/packed")
     . ' MiB after `gzip -1`.');
line('');
