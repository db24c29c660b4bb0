#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what docs/cluster.md says about keys that lie on a cluster: processes
# that know only one partition build images of it, and a merge of these images
# has the bits of one build.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(content_of header json tool tool_memory tool_ok tool_path
                       tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $script = abs_path(dirname(__FILE__)
                      . '/../../conf-examples/cluster/build-part.sh');

mkdir "$dir/$_" or die "mkdir: $!" for qw(bin tmp parts);
symlink tool_path(), "$dir/bin/ngx-bloom" or die "symlink: $!";

# A hadoop that knows only "fs -put FILE URL".

$t->write_file('bin/hadoop', <<"SH");
#!/bin/sh
[ "\$#" = 4 ] && [ "\$1 \$2" = 'fs -put' ] || exit 2
echo 'hadoop prints this'
cp "\$3" "\${4#hdfs://}"
SH
chmod 0755, "$dir/bin/hadoop";

my %env = (%{ $t->{env} // {} }, PATH => "$dir/bin:$ENV{PATH}",
           TMPDIR => "$dir/tmp");

# Eight partitions: the sixth is empty, and the seventh has keys of the first.

my @partitions = map { my $p = $_; [map { "key-$p-$_" } 1 .. 2500] } 0 .. 7;
$partitions[5] = [];
$partitions[6] = [@{ $partitions[0] }[0 .. 999], "caf\xc3\xa9", 'a,b "c"'];

my %distinct = map { $_ => 1 } map { @$_ } @partitions;
my $distinct = keys %distinct;

sub text { return join '', map { "$_\n" } @_ }

sub script {
    my ($keys, @arguments) = @_;

    return run_command([$script, @arguments], env => \%env,
                       stdin => text(@$keys));
}


# ------------------------------------------------------------------- the shape

# All that the machines need to know is in the first 4096 bytes of an image.

my %shape;

for my $kind (['murmur3'], ['siphash', '--hash', 'siphash'],
              ['lower', '--form', 'lower', '--layout', 'classic'])
{
    my ($name, @options) = @$kind;
    my $empty = $t->build_image("$name.empty", [], '--allow-empty', '-n', '20k',
                                @options);

    $t->write_file("$name.shape", substr content_of($empty), 0, 4096);
    $shape{$name} = "$dir/$name.shape";

    my @keys = map { "Key-$_" } 1 .. 300;
    my @both = map {
        $t->build_image("$name.$_->[0]", \@keys, '--like', $_->[1])
    } ['like-image', $empty], ['like-shape', $shape{$name}];
    my @same = qw(layout k lines flags bits hash form seed capacity fpr items
                  payload);

    is_deeply([@{ header($both[0]) }{@same}], [@{ header($both[1]) }{@same}],
              "--like reads all of it from the first 4096 bytes of an image"
              . " ($name)");
}

my $shape = $shape{siphash};

{
    $t->write_file('short', substr content_of($shape), 0, 4095);
    $t->write_file('torn', substr(content_of($shape), 0, 100) . "\1" x 3996);
    $t->write_file('nothing', '');

    for (['short', qr/short: is truncated: it has 4095 bytes, but its header says \d+; copy/],
         ['nothing', qr/nothing: is not a Bloom filter image/],
         ['torn', qr/torn: is damaged: the checksum of its header differs/],
         ['bin/hadoop', qr/hadoop: is not a Bloom filter image/])
    {
        my ($file, $message) = @$_;
        tool(2, $message, 'build', '-o', "$dir/none", '--like', "$dir/$file",
             { stdin => "key\n" });
    }

    tool(2, qr/is truncated: it has 4096 bytes/, 'merge', '-o', "$dir/none",
         "$dir/siphash.empty", $shape);
    ok(!-e "$dir/none", 'a header alone is no image to merge');
}


# -------------------------------------------- eight processes at the same time

my $as_of = 1_700_000_000;
my (@pids, @images);

{
    my @pipes;

    for my $p (0 .. 7) {
        pipe my $reader, my $writer or die "pipe: $!";
        open my $out, '>', "$dir/out-$p" or die "out-$p: $!";
        open my $err, '>', "$dir/err-$p" or die "err-$p: $!";

        push @pids, spawn([$script, $shape, "$dir/parts", '--as-of',
                           $as_of + $p], stdin => $reader, stdout => $out,
                          stderr => $err, env => \%env);
        push @pipes, $writer;
    }

    # all of them run before the first one has all its keys

    for my $half (0, 1) {
        for my $p (0 .. 7) {
            my @keys = @{ $partitions[$p] };
            my $middle = @keys / 2;

            syswrite $pipes[$p], text($half ? @keys[$middle .. $#keys]
                                            : @keys[0 .. $middle - 1]);
            close $pipes[$p] if $half;
        }
    }
}

for my $p (0 .. 7) {
    waitpid $pids[$p], 0;
    is($?, 0, "the process for partition $p succeeds")
        or diag($t->read_file("err-$p"));
    is($t->read_file("err-$p"), '',
       "the process for partition $p prints no message");

    my $out = $t->read_file("out-$p");
    like($out, qr/\A[0-9a-f-]{36}\.bloom\n\z/,
         "the only line that the process for partition $p prints is a name of an"
         . ' image');
    chomp $out;
    push @images, "$dir/parts/$out";

    is(header($images[-1])->{items}, scalar @{ $partitions[$p] },
       "the image of partition $p has its number of keys");
}

is(join(' ', glob "$dir/tmp/*"), '', 'nothing is left in TMPDIR');

my $one = $t->build_image('one.bloom', [map { @$_ } @partitions], '--like',
                          $shape, '--as-of', $as_of);
my $merged = "$dir/merged.bloom";

{
    my $result = json(tool(0, undef, 'merge', '--json', '-o', $merged, @images));

    ok(header($merged)->{payload} eq header($one)->{payload},
       'the merged image has the bits of one build of all keys');

    my %one = %{ header($one) };
    my %merged = %{ header($merged) };

    is(join(' ', sort grep { $one{$_} ne $merged{$_} } keys %one),
       'build_id created flags items',
       'the header differs in the build id, the time, and the count of keys,'
       . ' which is an estimate');

    is($merged{as_of}, 1000 * $as_of,
       'the merged image is complete as of the earliest time of all');
    is($result->{images}, 8, 'merge --json has the number of images');
    cmp_ok(abs($result->{items} - $distinct), '<',
           6 * $result->{items_error} + 1,
           'the estimate counts keys of two partitions once')
        or diag("$result->{items}, not $distinct");
    is(tool_ok('test', '-c', $merged, { stdin => text(sort keys %distinct) }),
       "$distinct present, 0 absent\n",
       'each key of each partition is present');

    # in another order, and in two steps

    tool_ok('merge', '-q', '-o', "$dir/a", @images[0 .. 3]);
    tool_ok('merge', '-q', '-o', "$dir/b", @images[4 .. 7]);
    tool_ok('merge', '-q', '-o', "$dir/c", "$dir/b", "$dir/a");
    ok(header("$dir/c")->{payload} eq header($one)->{payload},
       'merging in two steps gives the same bits');
}


# ------------------------------------------------------------- what goes wrong

{
    my @keys = @{ $partitions[1] };
    my @before = glob "$dir/parts/*";

    # a partition whose keys are invalid, as with a wrong --from

    my ($exit, $out, $err) = script(['not a host'], $shape{lower}, "$dir/parts",
                                    '--from', 'csv:none');
    isnt($exit, 0, 'the script fails if the build fails');
    is($out, '', 'the script prints no name if the build fails');
    like($err, qr/^ngx-bloom build: /,
         'the script prints the message of a build that fails');

    ($exit, $out, $err) = script(\@keys, "$dir/missing", "$dir/parts");
    isnt($exit, 0, 'the script fails without the file of the shape');
    like($err, qr/missing: cannot be opened/,
         'the script names the missing file of the shape');

    ($exit, $out, $err) = script(\@keys, $shape, "$dir/nowhere");
    isnt($exit, 0, 'the script fails if the image cannot be copied');
    is($out, '', 'the script prints no name if the image cannot be copied');

    ($exit, $out, $err) = script(\@keys, $shape);
    is($exit, 2, 'the script wants a directory');
    like($err, qr/^usage: build-part\.sh SHAPE DIRECTORY/,
         'the script prints its usage');

    is(join(' ', glob "$dir/parts/*"), "@before",
       'a failed run leaves no image');
    is(join(' ', glob "$dir/tmp/*"), '', 'a failed run leaves nothing in TMPDIR');

    # a run that the cluster stops

    pipe my $reader, my $writer or die "pipe: $!";
    open my $stdout, '>', "$dir/stopped" or die "stopped: $!";
    my $pid = spawn([$script, $shape, "$dir/parts"], stdin => $reader,
                    stdout => $stdout, env => \%env);
    close $reader;
    syswrite $writer, text(@keys);
    wait_until(sub { my @made = glob "$dir/tmp/*"; @made });
    kill TERM => $pid;
    close $writer;
    waitpid $pid, 0;

    isnt($?, 0, 'a run that is stopped fails');
    is($t->read_file('stopped'), '', 'a run that is stopped prints no name');
    is(join(' ', glob "$dir/parts/*"), "@before",
       'a run that is stopped leaves no image');
}

# With a URL, "hadoop fs -put" copies the image, and its output is no line of the
# result.

{
    my ($exit, $out, $err) = script($partitions[1], $shape,
                                    "hdfs://$dir/parts");
    is($exit, 0, 'the script stores an image by "hadoop fs -put"');
    like($out, qr/\A[0-9a-f-]{36}\.bloom\n\z/,
         'a run that uses hadoop prints only the name of the image');
    like($err, qr/^hadoop prints this$/, 'what hadoop prints goes to standard error');
    chomp $out;
    ok(header("$dir/parts/$out")->{payload} eq header($images[1])->{payload},
       'the stored image has the bits of the partition');
}

# A partition that was built without --like is not merged.

{
    my $other = $t->build_image('other.bloom', $partitions[1], '-n', '20k');

    tool(2, qr/other\.bloom: cannot be merged .*; rebuild it with "--like \S+"$/,
         'merge', '-o', $merged, @images[0, 2 .. 7], $other);
    ok(header($merged)->{payload} eq header($one)->{payload},
       'a failed merge leaves the image that was there');
}

# A partition that nobody noticed is missing: the guards of merge compare the
# number of keys.

{
    my @most = @images[0 .. 6];

    like((run_command([tool_path(), 'merge', '-o', $merged, '--min-keys',
                       '15000', @most], env => $t->{env}))[2],
         qr/it would have \d+ distinct keys, and --min-keys demands 15000/,
         '--min-keys refuses the image without a partition');
    ok(header($merged)->{payload} eq header($one)->{payload},
       'a refused image leaves the image of yesterday');
}


# ------------------------------------------------------------- many partitions

# Merging a hundred images takes as much memory as merging two.  All of them are
# open at the same time.

{
    my $empty = $t->build_image('large.bloom', [], '--allow-empty', '-n', '5m',
                                '--seed', 9);
    my @parts = map {
        $t->build_image("large-$_", ["key-$_"], '--like', $empty)
    } 1 .. 3;

    my $two = (tool_memory({}, 'merge', '-q', '-o', "$dir/two",
                           @parts[0, 1]))[3];
    my ($exit, undef, $err, $many)
        = tool_memory({}, 'merge', '-q', '-o', "$dir/many",
                      (@parts) x 33, $empty);

    is($exit, 0, 'a hundred images are merged') or diag($err);
    cmp_ok($many, '<', $two + (4 << 20),
           'merging a hundred images takes at most 4 MiB more than two');
    is(tool_ok('test', '-c', "$dir/many", map { "key-$_" } 1 .. 3),
       "3 present, 0 absent\n", 'the keys of a hundred images are present');

    my $merge = sub {
        my ($limit, @images) = @_;
        return run_command(['sh', '-c', "ulimit $limit && exec \"\$\@\"", 'sh',
                            tool_path(), 'merge', '-q', '-o', "$dir/many",
                            @images], env => $t->{env});
    };

    is(($merge->('-Sn 32', (@parts) x 33))[0], 0,
       'merge raises a soft limit of 32 open files');
    like(($merge->('-n 32', (@parts) x 33))[2],
         qr/cannot be opened: Too many open files; raise the limit that "ulimit -n" shows$/,
         'merge says that a hard limit of 32 open files is too low');
}

done_testing;
