#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that a build shows its progress on a terminal, and nowhere else.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Tool qw(tool_path tool_test);
use IO::Handle;
use POSIX ();

my $t = tool_test();
my $dir = $t->testdir;
my $tool = tool_path();

plan(skip_all => 'script(1) is not installed')
    if system('command -v script > /dev/null') != 0;

POSIX::mkfifo("$dir/keys", 0600) or die "mkfifo: $!";


# script gives the tool a terminal, and records what it shows; there are keys
# until the progress line appears

alarm 300;          # a tool that never begins would keep the pipe from opening

my $pid = fork // die "fork: $!";

if ($pid == 0) {
    open STDIN, '<', '/dev/null' or POSIX::_exit(1);
    open STDOUT, '>', '/dev/null' or POSIX::_exit(1);
    exec('script', '-qefc', "'$tool' build -o '$dir/ids.bloom' '$dir/keys'",
         "$dir/terminal") or POSIX::_exit(1);
}

open my $keys, '>', "$dir/keys" or die "open: $!";
$keys->autoflush;

my $n = 0;

ok(wait_until(sub {
    print $keys map { "key$_\n" } $n .. $n + 99_999;
    $n += 100_000;
    return -e "$dir/terminal"
           && $t->read_file('terminal') =~ m{\d k?M? ?keys, [0-9.]+ k?M? ?keys/s};
}), 'a terminal is shown the number of keys and their rate')
    or diag($t->read_file('terminal'));

close $keys;
waitpid $pid, 0;

is($?, 0, 'a build that shows its progress succeeds');
like($t->read_file('terminal'), qr/\r\e\[K[^\r]*ids\.bloom: $n keys, $n distinct/,
     'the progress is taken away before the result, which has all keys');


my ($exit, $out, $err) = $t->run_tool('build', '-o', "$dir/ids.bloom",
    { stdin => join '', map { "key$_\n" } 1 .. 1_000_000 });

is($exit, 0, 'a build without a terminal succeeds');
is($err, '', 'a build without a terminal shows no progress');


done_testing;
