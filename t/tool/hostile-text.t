#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that text from outside (keys, names of files, answers of servers) cannot
# control a terminal, in messages, in reports and in keys that are printed to a
# terminal.  A pipe or a file gets keys byte for byte.  No message shows the
# password of a Redis URL.

use strict;
use warnings;

use BloomTest;
use BloomTest::FakeServer qw(answering fake_server);
use BloomTest::Journal;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(json tool_ok tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $has_script = system('command -v script > /dev/null') == 0;


# Text that a terminal might obey, and what is shown instead: control
# characters, among them the line end; C1 controls as bytes and in UTF-8; line
# separators; characters that change the direction of text.

my %hostile = (
    (map { chr $_ => sprintf '\x%02x', $_ } 1 .. 0x1f, 0x7f .. 0x9f),
    (map {
        my $bytes = pack 'U', $_;
        utf8::encode($bytes);
        $bytes => $bytes =~ s/(.)/sprintf '\x%02x', ord $1/sger;
    } 0x80 .. 0x9f, 0x61c, 0x200e, 0x200f, 0x2028 .. 0x202e, 0x2066 .. 0x2069),
    "\xff" => '\xff', "\xe2\x80" => '\xe2\x80',
);

# All other characters are shown unchanged.

my @harmless = (' ', '~', '\\', "\xc2\xa0", "\xd8\x9b", "\xd8\x9d",
                "\xe2\x80\x8d", "\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xaf",
                "\xe2\x81\xa5", "\xe2\x81\xaa", "\xc3\xa4", "\xf0\x9f\x8c\xb8");

sub is_visible {
    my ($text, $what) = @_;

    my @bad = grep { $_ ne "\n" && index($text, $_) >= 0 }
                   grep { length $_ > 1 || ord $_ < 0x80 } keys %hostile;

    # bytes outside ASCII are part of a character

    (my $rest = $text) =~ s/[\xc2-\xf4][\x80-\xbf]+//g;
    push @bad, $rest =~ /([\x80-\xff])/g;

    ok(!@bad, "$what has nothing that a terminal obeys")
        or diag(join ' ', map { unpack 'H*', $_ } @bad);

    return;
}


# ---- messages ----

# The message about an unknown command shows its whole name.

for my $what (sort keys %hostile) {
    my (undef, undef, $err) = $t->run_tool("a${what}b");
    my $name = unpack 'H*', $what;

    ok(index($err, "unknown command \"a$hostile{$what}b\"; the") >= 0,
       "a message shows $name escaped") or diag($err);
}

for my $what (@harmless) {
    my (undef, undef, $err) = $t->run_tool("a${what}b");

    ok(index($err, "unknown command \"a${what}b\";") >= 0,
       'a message shows ' . unpack('H*', $what) . ' as it is') or diag($err);
}

my $attack = "\e]0;owned\a\x9b2J\xc2\x9b1A\xe2\x80\xae\x7f\rx";
my $escaped = '\x1b]0;owned\x07\x9b2J\xc2\x9b1A\xe2\x80\xae\x7f\x0dx';

sub complains {
    my ($what, @arguments) = @_;

    my ($exit, $out, $err) = $t->run_tool(@arguments);

    isnt($exit, 0, "$what is refused");
    like($err, qr/\Q$escaped/, "$what is shown escaped");
    is_visible("$out$err", "the refusal of $what");

    return;
}

my $keys = $t->write_file('keys', "a\n");
my $named = $t->write_file("n$attack", "a\nb\n");
my $hosts = $t->write_file('hosts', "$attack:b\n");

complains('an unknown option', 'build', "--$attack");
complains('the value of an option', 'build', '-o', "$dir/x", '-p', $attack);
complains('a layout', 'build', '-o', "$dir/x", '--layout', $attack);
complains('a seed', 'build', '-o', "$dir/x", '--seed', $attack, $keys);
complains('a list format', 'build', '-o', "$dir/x", '--from', $attack, $keys);
complains('an output', 'build', '-o', "$dir/no$attack/x", $keys);
complains('a file of keys that does not exist', 'build', '-o', "$dir/x",
          "$dir/no$attack");
mkdir "$dir/d$attack";
complains('a directory of keys', 'build', '-o', "$dir/x", "$dir/d$attack");
complains('a key that is no host', 'build', '-o', "$dir/x", '--form', 'host',
          $hosts);
complains('a header of a csv', 'build', '-o', "$dir/x", '--from', 'csv:u',
          $t->write_file('hostile.csv', "\"$attack\"\n"));
complains('a key to expand', 'expand', "$attack:b");
complains('a file that is no image', $_, $named)
    for qw(info verify test journal);
complains('a file that is no image to add to', 'add', $named, $keys);
complains('a file that is no image to merge', 'merge', '-o', "$dir/x", $named,
          $named);
complains('a file that is no image to export', 'export', '--to', 'guava', '-o',
          "$dir/x", $named);
complains('another kind of file', 'import', '--from', 'guava', '-o', "$dir/x",
          $named);
complains('a source that does not exist', 'import', '--from', 'guava', '-o',
          "$dir/x", "$dir/no$attack");


# ---- answers of servers ----

# Returns what an import says of a server that answers each command with a text.

sub says {
    my ($answer, @url) = @_;

    my ($pid, $port) = fake_server(answering($answer));
    my @result = $t->run_tool('import', '--from', 'go-zero', '--bits', 1000,
                              '-o', "$dir/x", map { s/PORT/$port/r } @url);
    kill 'TERM', $pid;

    return @result;
}

for ('-ERR ', '$-1', "\x1b") {
    my ($exit, undef, $err) = says("$_$attack\r\n",
                                   'redis://127.0.0.1:PORT/0/k');

    is($exit, 2, 'an answer of a hostile server is refused');
    is_visible($err, 'what a hostile server says');
}

{
    my (undef, undef, $err) = says("-ERR ${\($attack =~ s/\r//r)}\r\n",
                                   'redis://127.0.0.1:PORT/0/k');

    ok(index($err, 'answered STRLEN with an error: ERR '
                   . $escaped =~ s/\\x0d//r) >= 0,
       'an error of a server is shown escaped') or diag($err);

    (undef, undef, $err) = says('-ERR ' . 'x' x 100_000 . "\r\n",
                                'redis://127.0.0.1:PORT/0/k');
    cmp_ok(length $err, '<', 1000, 'a long error of a server is cut');
}


# ---- reports and JSON ----

# JSON allows C1 controls and direction characters, but they are escaped.

my $file = "$dir/i$attack";
my @about = map { [$_, tool_ok(@$_)] } (
    ['build', '-o', $file, $keys],
    ['add', $file, $named], ['merge', '-o', $file, $file, $file],
    ['info', $file], ['verify', $file],
);
my $guava = $t->write_file("g$attack", pack('C C N Q>*', 1, 5, 2, 1, 2));

push @about, [['import'], tool_ok('import', '--from', 'guava', '-q', '--json',
                                  '-o', "$file.guava", $guava)],
    [['import'], tool_ok('import', '--from', 'guava', '-o', "$file.guava",
                         $guava)],
    [['export'], tool_ok('export', '--to', 'guava', '-o', "$dir/e$attack",
                         "$file.guava")];

my $segment = BloomTest::Journal->new;
$segment->append(['one']);
mkdir "$dir/s$attack";
$t->write_file("s$attack/j", $segment->segment);
push @about, [['journal'], tool_ok('journal', "$dir/s$attack")];

for (@about) {
    my ($command, $out) = @$_;

    like($out, $command->[0] eq 'import' && $out =~ /^\{/ ? qr/owned/
               : qr/\Q$escaped/, "the report of $command->[0] has the name");
    is_visible($out, "the report of $command->[0]");
}

for (['info', $file], ['verify', $file],
     ['build', '-o', $file, $keys], ['add', $file, $named],
     ['merge', '-o', $file, $file, $file], ['journal', "$dir/s$attack/j"])
{
    my ($command, @arguments) = @$_;
    my $out = tool_ok($command, '--json', @arguments);

    is_visible($out, "$command --json");
    like(json($out)->{file}, qr/owned\a\x{fffd}2J\x{9b}1A\x{202e}\x7f\rx/,
         "$command --json has the name");
}

{
    my $key = join '', grep { length $_ > 1 && $_ ne "\xe2\x80" }
                       sort keys %hostile;
    my ($exit, $out) = $t->run_tool('test', '--json', $file, $key);
    my $decoded = $key;

    utf8::decode($decoded);
    is_visible($out, 'test --json');
    is(json($out)->{key}, $decoded, 'test --json has the key');

    ($exit, $out) = $t->run_tool('expand', '--json', '--form', 'raw', $key);
    is_visible($out, 'expand --json');
    is_deeply(json($out), { canonical => $decoded, expressions => [$decoded] },
              'expand --json has the key');
}


# ---- keys ----

# A pipe gets keys unchanged, a terminal gets them escaped.

my $raw = $attack =~ s/\r//r;
my $shown = $escaped =~ s/\\x0d//r;
my $journal = BloomTest::Journal->new;
$journal->append([$raw]);
$segment = $t->write_file('attack.journal', $journal->segment);

for (['expand', '--form', 'raw', $raw], ['test', $file, $raw],
     ['journal', '--keys', $segment], ['journal', '--keys', '-0', $segment])
{
    my $command = $_->[0];
    my (undef, $out) = $t->run_tool(@$_);

    ok(index($out, $raw) >= 0, "$command prints a key to a pipe as it is");

    SKIP: {
        skip 'script(1) is not installed', 2 if !$has_script;

        my $line = join ' ', map { s/'/'\\''/gr =~ s/(.*)/'$1'/sr }
                             tool_path(), @$_;
        (undef, $out) = run_command(['script', '-qec', $line, '/dev/null'],
                                    env => { SHELL => '/bin/sh' });

        ok(index($out, $shown) >= 0, "$command escapes a key on a terminal")
            or diag($out);
        is_visible($out =~ s/\r\n|\0/\n/gr, "a key of $command on a terminal");
    }
}


# ---- passwords ----

# No message shows the password of a URL, in any place and with any error.

my $secret = 'sesame';
my @import = ('import', '--from', 'go-zero', '--bits', 1000, '-o', "$dir/x");

sub keeps_secret {
    my ($what, $want, $exit, $out, $err) = @_;

    is($exit, 2, "$what is refused");
    unlike("$out$err", qr/sesame|se.same/s, "$what is refused without its secret");
    like($err, $want, "$what is refused with the reason");

    return;
}

keeps_secret('an address without its scheme', qr/cannot be opened/,
             $t->run_tool(@import, ":$secret\@host/0/k"));

for my $scheme (qw(redis rediss Redis REDISS rEdIs)) {
    my $url = "$scheme://me:$secret\@127.0.0.1:1/0/k";
    my $no_key = qr/not the address of a Redis key/;
    my $slash = qr/ in a password %2F for a \//;

    for (['nobody listens', qr/cannot connect/, @import, $url],
         ['two sources', qr/name one/, @import, $url, $keys],
         ['two chunks', qr/must be the only source/, 'import', '--from',
          'redisbloom', '-o', "$dir/x", $url, $keys],
         ['no host', $no_key, @import, "$scheme://me:$secret\@/0/k"],
         ['a wrong port', $no_key, @import, "$scheme://me:$secret\@host:x/0/k"],
         ['no key', $no_key, @import, "$scheme://me:$secret\@host"],
         ['no slashes', $no_key, @import, "$scheme:me:$secret\@host/0/k"],
         ['one slash', $no_key, @import, "$scheme:/me:$secret\@host/0/k"],
         ['no colon', qr/cannot be opened/, @import,
          "$scheme//:$secret\@host/0/k"],
         ['a / in the password', $slash, @import,
          "$scheme://me:se/same\@host/0/k"],
         ['a password that looks like a database', $slash, @import,
          "$scheme://127.0.0.1:1/0/$secret\@host/0/k"],
         ['an @ in the password', qr/cannot connect/, @import,
          "$scheme://me:se\@same\@127.0.0.1:1/0/k"],
         ['a file of keys', qr/cannot be opened/, 'build', '-o', "$dir/x", $url],
         ['-f', qr/cannot be opened/, 'test', $file, '-f', $url],
         ['an image', qr/cannot be opened/, 'info', $url],
         ['a journal', qr/cannot be opened/, 'journal', $url],
         ['an output', qr/cannot be written/, 'build', '-o', $url, $keys],
         ['a format', qr/must be guava/, 'import', '-o', "$dir/x", '--from',
          $url],
         ['a command', qr/unknown command/, $url])
    {
        my ($what, $want, @command) = @$_;

        keeps_secret("a URL of $scheme ($what)", $want, $t->run_tool(@command));
    }
}

for my $scheme (qw(unix UNIX)) {
    for (['nobody listens', qr/cannot connect/, '://me:sesame@/none?key=k'],
         ['no key', qr/not the address of a Redis key/, '://me:sesame@/none'],
         ['a / in the password', qr/ in a password %2F for a \//,
          '://me:se/same@/none?key=k'],
         ['no slashes', qr/not the address of a Redis key/,
          ':me:sesame@/none?key=k'],
         ['no colon', qr/cannot be opened/, '//:sesame@/none?key=k'])
    {
        my ($what, $want, $rest) = @$_;

        keeps_secret("a URL of $scheme ($what)", $want,
                     $t->run_tool(@import, $scheme . $rest));
    }
}

keeps_secret('a list of shards without a scheme',
             qr{redis://localhost:7/0/a: has no header},
             $t->run_tool('import', '--from', 'bitmap', '--shard', '8k',
                          '--bits', '16k', '-o', "$dir/x",
                          map { "redis://me:$secret\@localhost:7/0/$_" }
                              'a', 'b'));

keeps_secret('an unknown scheme',
             qr/is neither a file nor an address of a Redis key/,
             $t->run_tool(@import, $_))
    for "http://me:$secret\@host/0/k", "reddis://me:$secret\@host/0/k",
        " redis://me:$secret\@host/0/k", "redis+tls://me:se/same\@host/0/k";

for (['no password is set',
      "-ERR Client sent AUTH, but no password is set\r\n",
      qr/answered AUTH with an error: ERR Client sent AUTH, but/],
     ['the password is wrong', "-WRONGPASS invalid username-password pair\r\n",
      qr/answered AUTH with an error: WRONGPASS invalid/],
     ['AUTH is unknown',
      sub { "-ERR unknown command 'AUTH', with args beginning with: '"
            . join("' '", grep { !/^[*\$]/ } split /\r\n/, $_[0]) . "'\r\n" },
      qr/repeats the password/])
{
    my ($what, $answer, $want) = @$_;

    keeps_secret("a server where $what", $want,
                 says($answer, "Redis://me:$secret\@127.0.0.1:PORT/0/k"));
}

is(scalar(glob "$dir/x*"), undef, 'no refused command leaves a file');

done_testing;
