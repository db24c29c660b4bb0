#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the tool takes bounded memory for compressed data that becomes a lot,
# and for long lines.  Each command that reads keys or lists refuses a line that
# is longer than the limit; the number of lines is not limited.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(tool_memory tool_test);
use IO::Compress::Gzip qw(gzip $GzipError);

my $t = tool_test();
my $dir = $t->testdir;

use constant LIMIT => 1024 * 1024;       # a line is shorter, with its end
use constant GIB => 1024 * LIMIT;

my $bound = $ENV{TEST_NGINX_SANITIZED} ? 600 * LIMIT : 64 * LIMIT;
my @few = ('-j', 2, '--memory', '16m');


sub gz {
    my ($bytes) = @_;

    gzip(\$bytes, \my $member) or die $GzipError;

    return $member;
}

# Returns what a program of another format makes of bytes.

sub packed {
    my ($bytes, @command) = @_;

    my ($exit, $packed, $err) = run_command([@command], stdin => $bytes);
    $exit == 0 or die "@command: $err";

    return $packed;
}

# A gzip file may have many members, whose bytes follow each other.

my $gib = gz('a' x (16 * LIMIT)) x 64;
my $line = $t->write_file('line.gz', $gib);
my $lines = gz("key\n" x LIMIT) x 16;
my $image = $t->build_image('ids.bloom', ['key']);

cmp_ok(-s $line, '<', 6 * LIMIT, 'a line of 1 GiB is less than 6 MiB of gzip');

# A sparse file of zero bytes, which takes no room on the disk.  Its first block
# tells that it is binary data.

open my $sparse, '>', "$dir/sparse" or die "open: $!";
truncate $sparse, GIB or die "truncate: $!";
close $sparse;

# The same line in the other formats.

my @packed = map {
    $t->write_file("line.$_->[0]",
                   packed('a' x (16 * LIMIT), @{ $_->[1] }) x 64)
} ['bz2', ['bzip2', '-9']], ['xz', ['xz', '-6']], ['zst', ['zstd', '-q', '-19']];

# A JSON key that does not end.

my $json = $t->write_file('json.gz', gz('{"key":"') . $gib);

for (
    ['build', $line], ['build', '-0', $line],
    (map { ['build', '--from', $_, $line] }
         'lines', 'hosts', 'adblock', 'csv:1', 'csv:url', 'json'),
    ['build', '--from', 'json', $json],
    (map { ['build', '--form', $_, $line] } 'lower', 'host', 'url'),
    ['build', '--max-errors', '1m', $line],
    (map { ['build', $_], ['build', '-0', $_], ['test', '-f', $_] } @packed),
    ['add', $line], ['add', '-0', $line],
    ['test', '-f', $line], ['test', '-0', '-f', $line],
    (map { ['expand', '--form', $_, '-f', $line] }
         'raw', 'lower', 'host', 'url'),
    ['expand', '-0', '-f', $line],
) {
    my ($command, @arguments) = @$_;
    my @before = $command eq 'build' ? ('-o', "$dir/out.bloom", @few)
                 : $command eq 'add' ? (@few, $image)
                 : $command eq 'test' ? ($image) : ();
    my ($exit, $out, $err, $peak)
        = tool_memory({}, $command, @before, @arguments);
    my $what = join(' ', $command, @arguments) =~ s/\Q$dir\E\///gr;

    is($exit, 2, "$what is refused");
    like($err, qr/\A[^\n]*: byte \d+(?: of the (?:gzip|bzip2|xz|zstd) data: a (?:key|line) reaches 1 MiB here|: a (?:key|line) of 1 MiB or more begins here); .*-0[^\n]*\n\z/,
         "$what says what is wrong") or diag(substr $err, 0, 500);
    cmp_ok($peak, '<', $bound, "$what takes little memory");
}

for (['build', '-o', "$dir/out.bloom", @few, "$dir/sparse"],
     ['add', @few, $image, "$dir/sparse"],
     ['test', $image, '-f', "$dir/sparse"])
{
    my ($exit, $out, $err, $peak) = tool_memory({}, @$_);

    is($exit, 2, "$_->[0] refuses a gigabyte of zero bytes");
    like($err, qr/sparse: is binary data, not a list of keys/,
         "$_->[0] says that they are no keys");
    cmp_ok($peak, '<', $bound, "$_->[0] takes little memory for them");
}

# A window that would take much memory: the header of the data demands it.

for (['zstd', 'zstd -dc --long=31', 'zstd', '-q', '--long=31'],
     ['xz', 'xz -dc', 'xz', '--lzma2=dict=1GiB'])
{
    my ($format, $program, @command) = @$_;
    my $file = $t->write_file("window.$format", packed("key\n", @command));
    my ($exit, undef, $err, $peak)
        = tool_memory({}, 'build', '-o', "$dir/out.bloom", @few, $file);

    is($exit, 2, "a window of 1 GiB is refused ($format)");
    like($err, qr/\A[^\n]*: byte \d+: the $format data has a window of more than 128 MiB; use "$program FILE \| ngx-bloom build \.\.\. -", or [^\n]*\n\z/,
         "the message says what to do ($format)");
    cmp_ok($peak, '<', $bound, "no memory is taken for the window ($format)");
}

# Quotes and parentheses that do not end.

for (['csv:url', 'quotes', "url,b\n\""],
     ['rpz', 'parentheses', "a. SOA b. c.\nx CNAME ("])
{
    my ($format, $what, $begin) = @$_;
    my $list = $t->write_file('open.gz',
                              gz($begin) . gz("a,b\n" x LIMIT) x 256);
    my ($exit, undef, $err, $peak)
        = tool_memory({}, 'build', '--form', 'url', '-o', "$dir/out.bloom", @few,
                      '--from', $format, $list);

    is($exit, 2, "open $what are refused ($format)");
    like($err, qr/^[^\n]*: line 2: $what begin here and do not end within 1 MiB; correct the file\n\z/m,
         "the line with the open $what is named ($format)");
    cmp_ok($peak, '<', $bound, "open $what take little memory ($format)");
}


# The time for a record is linear in its length: this one has a million fields
# and its line end in the last one.

{
    my $record = 'k.example' . ',' x 1_000_000 . "\"\n\"\n";
    my $list = $t->write_file('fields.csv', "url,b\n" . $record x 8);
    my $before = (times)[2];
    my ($exit, undef, $err)
        = $t->run_tool('build', '-q', '-o', "$dir/out.bloom", '--form', 'url',
                       '--from', 'csv:url', $list);

    is("$exit $err", '0 ', 'records of a million fields are read');
    cmp_ok((times)[2] - $before, '<', 20,
           'the time for a record is linear in the number of its fields');
}


# So is the time for a name, whatever it has.

for (['dnsmasq', 'address=/own.example/192.0.2.1', 'host-record=x%s'],
     ['unbound', 'local-data: "own.example A 192.0.2.1"',
      'local-data: "%s A 0.0.0.0"'])
{
    my ($format, $own, $record) = @$_;
    my $list = $t->write_file("dots.$format",
                              "$own\n" . sprintf("$record\n", '.' x 1_000_000));
    my $before = (times)[2];
    my ($exit, undef, $err)
        = $t->run_tool('build', '-q', '-o', "$dir/out.bloom", '--form', 'host',
                       '--allow-empty', '--from', $format, $list);

    is("$exit $err", '0 ', "a name of a million dots is read ($format)");
    cmp_ok((times)[2] - $before, '<', 20,
           "the time for a name is linear in its length ($format)");
}


# What a list says about other lines takes memory, too, and more than the lines.

for (['adblock', join '', map { "||h$_.example^\$badfilter\n" } 1 .. 900_000],
     ['dnsmasq',
      join '', map { 'host-record=' . 'a.' x 120 . "h$_.example\n" } 1 .. 8_000])
{
    my ($format, $lines) = @$_;
    my $list = $t->write_file("others.$format", $lines);
    my ($exit, undef, $err, $peak)
        = tool_memory({}, 'build', '--form', 'host', '-o', "$dir/out.bloom",
                      '-j', 2, '--memory', '64m', '--from', $format, $list);

    cmp_ok(length $lines, '<', 32 * LIMIT, "the list is small ($format)");
    is($exit, 2, "a list that is about very many names is refused ($format)");
    like($err, qr/^[^\n]*: lists in which a line can take back others are kept until all of them are read, and take more than 64\.0 MiB; use a larger --memory\n\z/m,
         "the message says what to do ($format)");
    cmp_ok($peak, '<', 192 * LIMIT + $bound,
           "it takes little more memory than that ($format)");
}


for (['build', '-o', "$dir/out.bloom", @few],
     ['build', '-o', "$dir/out.bloom", @few, '--from', 'lines'],
     ['add', @few, $image], ['test', '-q', $image])
{
    my ($exit, $out, $err, $peak)
        = tool_memory({ stdin => $lines }, @$_);

    is("$exit $err", '0 ', "$_->[0] reads 16 million lines");
    cmp_ok($peak, '<', $bound, "$_->[0] reads 16 million lines in little memory");
}


# The limit is exact, for a line with its end and for a last line without one.  A
# line within it is read, and is an invalid key.

for my $how ([], ['-0']) {
    my $end = @$how ? "\0" : "\n";

    for ([LIMIT - 1, 1, $end, 'the longest line'],
         [LIMIT, 0, $end, 'a longer line'],
         [LIMIT - 1, 1, '', 'the longest last line'],
         [LIMIT, 0, '', 'a longer last line'],
         @$how ? () : ([LIMIT - 2, 1, "\r\n", 'the longest line with CR LF'],
                       [LIMIT - 1, 0, "\r\n", 'a longer line with CR LF']))
    {
        my ($length, $read, $line_end, $what) = @$_;

        for my $before ('', "a$end", ('b' x 700_000) . $end) {
            my ($exit, undef, $err) = $t->run_tool(
                'build', @$how, '--max-errors', 2, '--allow-empty', '-o',
                "$dir/edge.bloom",
                { stdin => $before . 'k' x $length . $line_end });

            is($exit, $read ? 0 : 2, "build @$how: $what, after "
                                     . length($before) . ' bytes')
                or diag($err);

            if ($read) {
                like($err, qr/"k{10,}\.\.\." is longer than 65535 bytes/,
                     "build @$how reads $what as an invalid key");
                next;
            }

            my $byte = length $before;
            my $kind = @$how ? 'key' : 'line';
            like($err, qr/: byte $byte: a $kind of 1 MiB or more begins here;/,
                 "build @$how says where $what begins");
        }
    }
}

done_testing;
