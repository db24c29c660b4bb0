#!/usr/bin/perl

# ngx-bloom build with more keys than --memory holds: the same image, by a
# temporary file of which nothing is left.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(json tool_ok tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $tool = tool_path();

# --memory 16m has room for 0.9 million

my $n = 1_500_000;

my $keys = $t->write_file('keys', join '', map { "key$_\n" } 1 .. $n);
my $backwards = $t->write_file('backwards',
                               join '', map { "key$_\n" } reverse 1 .. $n);


sub build {
    my ($name, @arguments) = @_;

    return json(scalar tool_ok('build', '--json', '--seed', 7, '-o',
                               "$dir/$name", @arguments));
}


# All but the header, where time and id are.

sub bits {
    my ($name) = @_;

    my $file = $t->read_file($name);

    return substr($file, 4096);
}


# ------------------------------------------------------------- the same image

for ([blocked => '-p', '0.001'],            # a line a key
     [rare => '-p', '0.00001'],             # two lines
     [classic => '--layout', 'classic'])
{
    my ($name, @how) = @$_;

    my $whole = build("$name.whole", @how, $keys);
    is($whole->{temporary_bytes}, 0, "$name: all keys fit into the memory");
    is($whole->{items}, $n, "$name: items");

    for ([1, $keys], [2, $keys], [3, $backwards]) {
        my ($threads, $file) = @$_;

        my $spilled = build("$name.spilled", @how, '--memory', '16m', '-j',
                            $threads, $file);

        cmp_ok($spilled->{temporary_bytes}, '>', $n * 8,
               "$name, $threads threads: most hashes were in the file");
        is($spilled->{items}, $n, "$name, $threads threads: items");
        ok(bits("$name.spilled") eq bits("$name.whole"),
           "$name, $threads threads: the same bits");
    }
}


# ------------------------------------------------------------------ duplicates

{
    # twice the same: what is in the file is counted once

    my $twice = build('twice', '--memory', '16m', $keys, $backwards);

    is($twice->{received}, 2 * $n, 'all keys twice: received');
    is($twice->{items}, $n, 'items');
    cmp_ok($twice->{temporary_bytes}, '>', $n * 8, 'by a temporary file');
    ok(bits('twice') eq bits('blocked.whole'), 'the same bits');

    # few, again and again, fit into the memory

    my $few = $t->write_file('few', join '', map { "key$_\n" } 1 .. 200_000);
    my $often = build('often', '--memory', '16m', ($few) x 12);

    is($often->{received}, 2_400_000, 'a few keys often: received');
    is($often->{items}, 200_000, 'items');
    is($often->{temporary_bytes}, 0, 'and no temporary file');

    # nearly all are one

    my $one = $t->write_file('one', "key1\n" x 3_000_000);
    my $flood = build('flood', '--memory', '16m', $keys, $one, $backwards);

    is($flood->{items}, $n, 'one key 3 million times among others: items');
    cmp_ok($flood->{temporary_bytes}, '<', 16 * 2 * $n + 1e6,
           'does not fill the temporary file');
    ok(bits('flood') eq bits('blocked.whole'), 'the same bits');
}


# ---------------------------------------------------------- the temporary file

# A build that has spilled and waits for more keys.

sub begin_build {
    my @arguments = @_;

    pipe my $reader, my $writer or die "cannot make a pipe: $!";

    my $pid = spawn([$tool, 'build', '-o', "$dir/out/x.bloom", '--memory',
                     '16m', @arguments, $keys, '-'],
                    stdin => $reader, env => $t->{env});
    close $reader;

    my $file;
    wait_until(sub {
        ($file) = grep { defined && m,/(?:#|ngx-bloom-),}
                  map { readlink } glob "/proc/$pid/fd/*";
        return defined $file;
    });

    return ($pid, $writer, $file // '');
}


mkdir "$dir/$_" or die $! for qw(out temp);

for ([out => []], [temp => ['--temp', "$dir/temp"]]) {
    my ($where, $arguments) = @$_;

    my ($pid, $writer, $file) = begin_build(@$arguments);

    like($file, qr,^\Q$dir/$where/\E.* \(deleted\)$,,
         "the temporary file is in $where and has no name");

    kill 'INT', $pid;
    wait_until(sub { waitpid($pid, POSIX::WNOHANG) == $pid })
        or kill 'KILL', $pid;

    is($? & 127, 2, 'SIGINT ends the build');
    is_deeply([glob "$dir/{out,temp}/{*,.[!.]*}"], [], 'nothing is left');
}

{
    my ($pid, $writer) = begin_build();

    kill 'KILL', $pid;
    waitpid $pid, 0;

    is_deeply([grep { !/x\.bloom\.tmp-/ } glob "$dir/out/*"], [],
              'nor by SIGKILL, but for the beginning of the image');
    unlink glob "$dir/out/*";
}


# ---------------------------------------------------------------------- errors

for ([2000, 1], [20000, 2]) {
    my ($limit, $threads) = @$_;

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -f "$1" && shift && exec "$@"', 'sh', $limit,
         $tool, 'build', '-j', $threads, '-o', "$dir/out/x.bloom", '--memory',
         '16m', $keys], env => $t->{env});

    is($exit, 2, "no room for the temporary file, $threads threads");
    like($err, qr{\Angx-bloom\ build:\ \Q$dir\E/out:\ a\ temporary\ file\ there
                  \ cannot\ be\ written:\ File\ too\ large;\ it\ has\ [\d.]+\ .iB:
                  \ give\ --temp\ [^\n]*\ or\ a\ greater\ --memory\n\z}x,
         'where, why, what to do');
    is_deeply([glob "$dir/out/{*,.[!.]*}"], [], 'nothing is left');
}

{
    my ($exit, $out, $err)
        = $t->run_tool('build', '-o', "$dir/out/x.bloom", '--memory', '16m',
                       '--temp', "$dir/nowhere", $keys);
    is($exit, 2, 'a --temp that is not there');
    like($err,
         qr{nowhere: a temporary file there cannot be made: No such file.*; give --temp a directory that you may write to},
         'is said so');
}

for my $size (qw(1m 15m 2000g x 0)) {
    my ($exit, undef, $err)
        = $t->run_tool('build', '-o', "$dir/out/x.bloom", '--memory', $size,
                       $keys);
    is($exit, 2, "--memory $size is refused");
    like($err, qr/--memory "$size": a size is from 16m to 1024g/, 'and says so');
}

done_testing;
