#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that lists in gzip, bzip2, xz and zstd give the keys that the plain list
# has, as soon as their bytes have come, and that damaged ones are refused.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(content_of tool_ok tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;

# Each format with its program and its name in messages.

my @formats = (
    { name => 'gzip', program => ['gzip', '-c'] },
    { name => 'bzip2', program => ['bzip2', '-c'] },
    { name => 'xz', program => ['xz', '-c'] },
    { name => 'zstd', program => ['zstd', '-q', '-c'] },
);

# Keys that do not compress well, so that a file has many bytes to damage.

my $state = 1;
my @keys = map {
    $state = ($state * 1_103_515_245 + 12_345) % 2**31;
    sprintf 'key-%x-%d', $state, $_;
} 1 .. 20_000;
my $text = join '', map { "$_\n" } @keys;
my $inside = 3 + index $text, "\n", length($text) / 2;    # of a key
my $plain = $t->write_file('plain', $text);


sub packed {
    my ($format, @texts) = @_;

    return join '', map {
        my ($exit, $out, $err) = run_command($format->{program}, stdin => $_);
        $exit == 0 or die "@{ $format->{program} }: $err";
        $out;
    } @texts;
}

# Builds an image of a file, and returns what images of the same keys have in
# common.

sub bits {
    my @arguments = @_;

    tool_ok('build', '-q', '--seed', 42, '-o', "$dir/image", @arguments);

    my $bytes = content_of("$dir/image");

    return substr($bytes, 0, 120) . substr $bytes, 4096;
}

sub refused {
    my ($what, $message, $content) = @_;

    my $file = $t->write_file('broken', $content);

    for (['a file', "$dir/broken", $file],
         ['standard input', 'standard input', { stdin => $content }])
    {
        my ($how, $name, @input) = @$_;
        my ($exit, $out, $err)
            = $t->run_tool('build', '-o', "$dir/none", @input);

        is($exit, 2, "$what is refused from $how");
        like($err, qr/\Angx-bloom build: \Q$name\E: $message\n\z/,
             "the message says what $what is, from $how");
        ok(!-e "$dir/none", "no image is written of $what from $how");
    }
}

my $same = bits($plain);

for my $format (@formats) {
    my $name = $format->{name};
    my $whole = packed($format, $text);
    my @halves = (substr($text, 0, $inside), substr $text, $inside);
    my $size = length $whole;

    my %files = (
        'a file' => $whole,
        'two members, the first of which ends in a key'
            => packed($format, @halves),
        'an empty member first, in the middle and last'
            => packed($format, '', $halves[0], '', $halves[1], ''),
        'many members' => packed($format, $text =~ /(.{1,20000})/gs),
    );

    if ($name eq 'zstd') {
        my $skipped = pack('V V', 0x184d2a53, 5) . 'words';
        $files{'frames to skip'}
            = join $skipped, '', packed($format, $halves[0]),
                   packed($format, $halves[1]), '';
    }

    for (sort keys %files) {
        ok(bits($t->write_file("list.$name", $files{$_})) eq $same,
           "the keys of a plain list are read from $name: $_");
        ok(bits({ stdin => $files{$_} }) eq $same,
           "they are read from standard input: $name, $_");
    }

    is(tool_ok('test', '-c', "$dir/image", { stdin => $whole }),
       "20000 present, 0 absent\n", "test reads $name");
    is(tool_ok('test', '-c', "$dir/image", '-0',
               { stdin => packed($format, $text =~ tr/\n/\0/r) }),
       "20000 present, 0 absent\n", "test -0 reads $name");

    # truncated: in the magic, in the header, in the data, in the sum at the end

    my $truncated = "the $name data is truncated; copy the file again";

    refused("$name cut at byte $_", qr/byte $_: $truncated/,
            substr $whole, 0, $_)
        for 4, 11, 20, int $size / 2, $size - 1;

    my $cut = $size + 11;
    refused("a second member of $name that is cut", qr/byte $cut: $truncated/,
            $whole . substr $whole, 0, 11);

    # trailing bytes

    refused("$name with $_->[0] behind it", qr/byte $size: the $name data ends here, and what follows is not $name; cut the file off here, or copy it again/,
            $whole . $_->[1])
        for ['a line', "key\n"], ['zero bytes', "\0" x 8], ['a byte', 'x'];

    # damaged, in the data and in the sum

    for my $at (int $size / 3, int $size / 2, $size - 6) {
        my $bytes = $whole;
        substr($bytes, $at, 4) ^= "\xff\xff\xff\xff";

        refused("$name damaged at byte $at",
                qr/byte \d+: the $name data is damaged(?:: [^\n]+)?; copy the file again/,
                $bytes);
    }

    # A key is answered when its bytes have come: the pipe stays open.

    pipe my $in, my $to or die "pipe: $!";
    pipe my $from, my $out or die "pipe: $!";
    $to->autoflush(1);
    $from->blocking(0);

    my $pid = spawn([tool_path(), 'test', "$dir/image"], stdin => $in,
                    stdout => $out, env => $t->{env});
    close $in;
    close $out;

    my $answers = '';
    my $answered = sub {
        my ($wanted) = @_;
        return wait_until(sub {
            sysread $from, $answers, 65536, length $answers;
            return $answers eq $wanted;
        });
    };

    my $all = "present $keys[0]\n";

    syswrite $to, packed($format, "$keys[0]\n");
    ok($answered->($all),
       "a key of a first member is answered before there is more: $name");

    syswrite $to, packed($format, "$keys[1]\nother\n");
    $all .= "present $keys[1]\nabsent other\n";
    ok($answered->($all), "keys of a second member are answered, too: $name");

    # One block of bzip2 becomes more than the tool decompresses at once.  It is
    # sent without the end of the member, which has ten bytes.

    if ($name eq 'bzip2') {
        my $member = packed($format, "$keys[2]\n" x 40_000);

        syswrite $to, substr $member, 0, -10, '';
        $all .= "present $keys[2]\n" x 40_000;
        ok($answered->($all), 'all keys of a block are answered before its end');
        syswrite $to, $member;
    }

    close $to;
    close $from if $answers ne $all;     # or the tool would wait for a reader
    waitpid $pid, 0;
    is($?, 1 << 8, "the end of the pipe is the end of the keys: $name");
}

done_testing;
