#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build" with more keys than --memory holds makes the same
# image, with a temporary file of which nothing is left.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(json tool_ok tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $tool = tool_path();

# --memory 16m has room for 0.9 million hashes

my $n = 1_500_000;

my $keys = $t->write_file('keys', join '', map { "key$_\n" } 1 .. $n);
my $backwards = $t->write_file('backwards',
                               join '', map { "key$_\n" } reverse 1 .. $n);


sub build {
    my ($name, @arguments) = @_;

    return json(scalar tool_ok('build', '--json', '--seed', 7, '-o',
                               "$dir/$name", @arguments));
}


# Returns an image without the header, which has its time and id.

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
    is($whole->{temporary_bytes}, 0,
       "a $name build without --memory keeps all keys in memory");
    is($whole->{items}, $n, "a $name build without --memory counts all keys");

    for ([1, $keys], [2, $keys], [3, $backwards]) {
        my ($threads, $file) = @$_;

        my $spilled = build("$name.spilled", @how, '--memory', '16m', '-j',
                            $threads, $file);

        cmp_ok($spilled->{temporary_bytes}, '>', $n * 8,
               "a $name build with $threads threads spills most hashes");
        is($spilled->{items}, $n,
           "a $name build with $threads threads that spills counts all keys");
        ok(bits("$name.spilled") eq bits("$name.whole"),
           "a $name build with $threads threads that spills makes the same"
           . " bits");
    }
}


# ------------------------------------------------------------------ duplicates

{
    # each key twice: a key in the temporary file counts once

    my $twice = build('twice', '--memory', '16m', $keys, $backwards);

    is($twice->{received}, 2 * $n,
       'keys that are given twice are received twice');
    is($twice->{items}, $n, 'keys that are given twice count once');
    cmp_ok($twice->{temporary_bytes}, '>', $n * 8,
           'keys that are given twice go through the temporary file');
    ok(bits('twice') eq bits('blocked.whole'),
       'keys that are given twice make the same bits');

    # few keys, repeated many times, fit into the memory

    my $few = $t->write_file('few', join '', map { "key$_\n" } 1 .. 200_000);
    my $often = build('often', '--memory', '16m', ($few) x 12);

    is($often->{received}, 2_400_000,
       'a few keys given often are all received');
    is($often->{items}, 200_000, 'a few keys given often count once');
    is($often->{temporary_bytes}, 0,
       'a few keys given often need no temporary file');

    # nearly all keys are the same

    my $one = $t->write_file('one', "key1\n" x 3_000_000);
    my $flood = build('flood', '--memory', '16m', $keys, $one, $backwards);

    is($flood->{items}, $n, 'one key 3 million times among others counts once');
    cmp_ok($flood->{temporary_bytes}, '<', 16 * 2 * $n + 1e6,
           'one key 3 million times does not fill the temporary file');
    ok(bits('flood') eq bits('blocked.whole'),
       'one key 3 million times makes the same bits');
}


# ---------------------------------------------------------- the temporary file

# Starts a build that has a temporary file and waits for more keys.

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

    is($? & 127, 2, 'SIGINT ends a build that has spilled');
    is_deeply([glob "$dir/{out,temp}/{*,.[!.]*}"], [],
              'a build that SIGINT ends leaves nothing behind');
}

{
    my ($pid, $writer) = begin_build();

    kill 'KILL', $pid;
    waitpid $pid, 0;

    is_deeply([grep { !/x\.bloom\.tmp-/ } glob "$dir/out/*"], [],
              'a build ended by SIGKILL leaves nothing but the beginning of'
              . ' the image');
    unlink glob "$dir/out/*";
}


# ---------------------------------------------------------------------- errors

for ([2000, 1], [20000, 2]) {
    my ($limit, $threads) = @$_;

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -f "$1" && shift && exec "$@"', 'sh', $limit,
         $tool, 'build', '-j', $threads, '-o', "$dir/out/x.bloom", '--memory',
         '16m', $keys], env => $t->{env});

    is($exit, 2,
       "a build without room for its temporary file fails with $threads"
       . " threads");
    like($err, qr{\Angx-bloom\ build:\ \Q$dir\E/out:\ a\ temporary\ file\ there
                  \ cannot\ be\ written:\ File\ too\ large;\ it\ has\ [\d.]+\ .iB:
                  \ use\ --temp\ [^\n]*\ or\ use\ a\ larger\ --memory\n\z}x,
         "a build with $threads threads says where its temporary file has no"
         . ' room and what to do');
    is_deeply([glob "$dir/out/{*,.[!.]*}"], [],
              'a build without room for its temporary file leaves nothing'
              . ' behind');
}

{
    my ($exit, $out, $err)
        = $t->run_tool('build', '-o', "$dir/out/x.bloom", '--memory', '16m',
                       '--temp', "$dir/nowhere", $keys);
    is($exit, 2, 'a build with a --temp that does not exist fails');
    like($err,
         qr{nowhere: a temporary file there cannot be created: No such file.*; use --temp with a directory that you may write to},
         'a build with a --temp that does not exist gives the reason');
}

for my $size (qw(1m 15m 2000g x 0)) {
    my ($exit, undef, $err)
        = $t->run_tool('build', '-o', "$dir/out/x.bloom", '--memory', $size,
                       $keys);
    is($exit, 2, "build --memory $size is refused");
    like($err, qr/--memory "$size": must be a size from 16m to 1024g/,
         "build --memory $size is refused with the range");
}

done_testing;
