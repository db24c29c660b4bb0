#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom test" looks keys up in an image.

use strict;
use warnings;

use IO::Compress::Gzip qw(gzip);

use BloomTest;
use BloomTest::Process qw(spawn time_limit);
use BloomTest::Tool qw(example_image json json_lines tool tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my $ids = example_image('ids');
my $siphash = example_image('siphash');


is(tool(0, undef, 'test', $ids, 'key-1', 'key-1000'),
   "present key-1\npresent key-1000\n", 'test says that keys are present');
is(tool(1, undef, 'test', $siphash, 'key-1', 'nothing', 'key-2'),
   "present key-1\nabsent nothing\npresent key-2\n",
   'test says which of several keys is absent');
is(tool(1, undef, 'test', '-q', $siphash, 'nothing'), '',
   'test -q prints nothing if a key is absent');
is(tool(0, undef, 'test', '-q', $siphash, 'key-1'), '',
   'test -q prints nothing if a key is present');
is(tool(1, undef, 'test', $siphash, '--', '-4711', '--json'),
   "absent -4711\nabsent --json\n", 'test takes what follows -- for keys');
tool(2, qr/unknown option "-4"/, 'test', $siphash, '-4711');

# Keys come from the command line, a file or standard input.

{
    my $present = "present key-1\npresent key-2\n";
    my $file = $t->write_file('some', "key-1\nkey-2");
    my $gz = '';

    gzip(\"key-1\r\n", \$gz);
    gzip(\"\r\nkey-2\n", \$gz, Append => 1);
    $t->write_file('some.gz', $gz);
    $t->write_file('cut.gz', substr $gz, 0, -1);

    is(tool(0, undef, 'test', $ids, '-f', $file), $present,
       'test -f reads keys from a file');
    is(tool(0, undef, 'test', '-f', "$file.gz", $ids), $present,
       'test reads gzip of two members, with CR LF and an empty line');
    is(tool(0, undef, 'test', $ids, '--file', '-', { stdin => "key-1\nkey-2" }),
       $present, 'test -f - reads keys from standard input');
    is(tool(0, undef, 'test', $ids, { stdin => $gz }), $present,
       'test reads gzip from a pipe');
    is(tool(0, undef, 'test', $ids,
            { stdin => "\xef\xbb\xbfkey-1\r\n\nkey-2\n" }), $present,
       'test leaves out a byte order mark');

    tool(2, qr/^ngx-bloom test: \Q$dir\E\/cut\.gz: byte \d+: /, 'test', $ids,
         '-f', "$dir/cut.gz");
    tool(2, qr/^ngx-bloom test: \Q$dir\E\/missing: cannot be opened: /, 'test',
         $ids, '-f', "$dir/missing");
    tool(2, qr/is a directory/, 'test', $ids, '-f', $dir);
    tool(2, qr/-f \Q$file\E cannot be used together with keys on the command line/,
         'test',
         $ids, '-f', $file, 'key-1');
    tool(2, qr/no image is named/, 'test');

    tool(2, qr/no keys to look up: the input is empty/, 'test', $ids);
    tool(2, qr/no keys to look up: all keys are empty/, 'test', $ids, '');
    tool(2, qr/no keys to look up: all keys are empty/, 'test', $ids,
         { stdin => "\n\r\n\n" });
    is(tool(2, qr/no keys/, 'test', '-c', $ids, { stdin => "\n" }),
       "0 present, 0 absent, 1 empty key was skipped\n",
       'test -c counts empty keys');
}

# Keys may have any byte, be long, and contain line ends.

{
    my $long = join '', map { chr(33 + $_ % 90) } 1 .. 65_535;
    my $bytes = join '', map { chr } grep { $_ != 10 && $_ != 13 } 1 .. 255;
    my $image = $t->build_image('odd-keys.bloom', [$long, $bytes]);

    is(tool(0, undef, 'test', $image, { stdin => "$long\n$bytes\n" }),
       "present $long\npresent $bytes\n",
       'test finds the longest key and one of all bytes');
    is(tool(1, undef, 'test', '-c', $image, { stdin => "${long}x\n$bytes" }),
       "1 present, 0 absent, 1 invalid\n",
       'a key that is one byte longer is invalid, as at the endpoint');
    is(tool(0, undef, 'test', $image, $bytes), "present $bytes\n",
       'test takes a key of any bytes as an argument');

    $image = $t->build_image('lines.bloom', ["two\nlines", "end\r\n", 'one']);

    is(tool(1, undef, 'test', '-0', $image,
            { stdin => "two\nlines\0one\0\0end\r\n\0end" }),
       "present two\nlines\0present one\0present end\r\n\0absent end\0",
       'test -0 reads and prints keys that end with a zero byte');
    is(tool(0, undef, 'test', '--null', '--count', $image,
            { stdin => "two\nlines\0\0" }),
       "1 present, 0 absent, 1 empty key was skipped\n",
       'test -0 -c counts keys that end with a zero byte');
}

{
    my @asked = ('key-1', qq{a"b\\c\t}, "\xc3\xa9", "\xe9!", "\xed\xa0\x80",
                 "\xe0\x80\x80", "\xc0\x80", "\xf4\x90\x80\x80",
                 "\xf0\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98\x80");
    my $out = tool(1, undef, 'test', '--json', $siphash,
                   { stdin => join "\n", @asked });
    my @answers = json_lines($out);

    is($answers[0]{key}, 'key-1', 'test --json has the key');
    is($answers[0]{answer}, 'present', 'test --json has the answer');
    is($answers[1]{key}, $asked[1],
       'test --json keeps quotes, a backslash and a tab in a key');
    is($answers[1]{answer}, 'absent', 'test --json says that a key is absent');
    is($answers[2]{key}, "\x{e9}", 'test --json keeps a key that is UTF-8');
    ok(!exists $answers[2]{key_hex},
       'test --json has no key_hex for a key that is UTF-8');
    is($answers[3]{key}, "\x{fffd}!",
       'test --json shows a byte that is not UTF-8 as U+FFFD');
    is($answers[3]{key_hex}, 'e921',
       'test --json has key_hex for a key that is not UTF-8');
    is($answers[4]{key_hex}, 'eda080',
       'test --json has key_hex for a surrogate');
    ok(exists $answers[$_]{key_hex},
       'test --json has key_hex for the bytes ' . unpack 'H*', $asked[$_])
        for 5 .. 9;
    is($answers[10]{key}, "\x{1f600}",
       'test --json keeps a character of four bytes');

    my $count = json(tool(1, undef, 'test', '--json', '-c', $siphash,
                          { stdin => "key-1\n\nx\n" }));
    is(join(' ', @$count{qw(present absent empty)}), '1 1 1',
       'test -c --json counts present, absent and empty keys');
}

# Each key is answered at once, without waiting for more input.

{
    pipe my $reader, my $questions or die $!;
    pipe my $answers, my $writer or die $!;

    my $pid = spawn([tool_path(), 'test', $siphash],
                    stdin => $reader, stdout => $writer);
    close $_ for $reader, $writer;

    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { die "no answer\n" };
    $questions->autoflush;

    for (['key-1', 'present'], ['nothing', 'absent']) {
        my ($key, $result) = @$_;

        print $questions "$key\n";
        alarm time_limit();
        is(eval { scalar <$answers> }, "$result $key\n",
           "test answers for $key before it gets more input");
        alarm 0;
    }

    close $questions;
    waitpid $pid, 0;
    is($? >> 8, 1, 'the exit status of test is that of all its answers');
}

done_testing;
