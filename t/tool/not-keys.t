#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that each command that reads keys refuses a file that is no list of keys,
# names what the file is and what to do, and changes nothing; and that unusual
# keys are read.  The files are written by the programs that people use.

use strict;
use warnings;

use IO::Compress::Zip qw(zip $ZipError);

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(content_of tool tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my @keys = map { "id$_.example" } 1 .. 200;
my $ids = join '', map { "$_\n" } @keys;
my $list = $t->write_file('ids.txt', $ids);
my $good = $t->write_file('good.txt', "good.example\n");
my $image = $t->build_image('add.bloom', ['good.example']);
my $before = content_of($image);


# Returns the standard output of a program.

sub output_of {
    my ($command, $input) = @_;

    my ($exit, $out, $err) = run_command($command, stdin => $input // '');
    $exit == 0 or die "@$command: $err";

    return $out;
}

sub iconv { return output_of(['iconv', '-f', 'UTF-8', '-t', @_], $ids) }


# ---- files of each kind ----

my $zip;
zip(\$ids => \$zip, Name => 'ids.txt') or die $ZipError;

output_of(['sqlite3', "$dir/gravity.db", 'CREATE TABLE gravity (domain TEXT);'
           . " INSERT INTO gravity VALUES ('a.example'), ('b.example');"]);

my $psql = <<'SQL';
--
-- PostgreSQL database dump
--

SET client_encoding = 'UTF8';
SET row_security = off;

--
-- Data for Name: urls; Type: TABLE DATA; Schema: public; Owner: shop
--

COPY public.urls (id, url) FROM stdin;
1	https://bad1.example/x
2	\N
\.
SQL

my $mysql = <<'SQL';
-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `urls`;
CREATE TABLE `urls` (
  `id` int NOT NULL
);
INSERT INTO `urls` VALUES (1,'https://bad1.example/x'),(2,NULL);
SQL

# as a server of the feed answers when the feed is not there

my $page = <<'HTML';

<!DOCTYPE html>
<html>
<head><title>503 Service Unavailable</title></head>
<body>
bad.example
</body>
</html>
HTML

my $not = 'not a list of keys; ';

# The second group is recognized by its text, and so not with -0.

my @magic = (
    ['UTF-16 with a mark', "\xff\xfe" . iconv('UTF-16LE'),
     qr/is UTF-16, $not"iconv -f UTF-16LE -t UTF-8 FILE" converts it/],
    ['big-endian UTF-16 with a mark', "\xfe\xff" . iconv('UTF-16BE'),
     qr/is UTF-16, $not"iconv -f UTF-16BE/],
    ['UTF-32 with a mark', "\xff\xfe\0\0" . iconv('UTF-32LE'),
     qr/is UTF-32, $not"iconv -f UTF-32LE/],
    ['a zip archive', $zip, qr/is a zip archive.*"unzip -p FILE"/],
    ['an archive of the program zip',
     output_of(['zip', '-q', '-j', '-', $list]), qr/is a zip archive/],
    ['a tar archive', output_of(['tar', '-cf', '-', '-C', $dir, 'ids.txt']),
     qr/is a tar archive, $not"tar -xOf FILE"/],
    ['a compressed tar archive',
     output_of(['tar', '-czf', '-', '-C', $dir, 'ids.txt']),
     qr/its gzip data is a tar archive/],
    ['lz4 data', output_of(['lz4', '-c'], $ids),
     qr/is compressed by lz4, $not"lz4 -dc FILE"/],
    ['lzma data', output_of(['xz', '--format=lzma'], $ids),
     qr/is compressed by lzma/],
    ['a 7z archive', "7z\xbc\xaf\x27\x1c\0\4" . "\x8f\n" x 200,
     qr/is a 7z archive/],
    ['a PDF', "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
     qr/is a PDF, $not"pdftotext FILE -"/],
    ['an SQLite database', content_of("$dir/gravity.db"),
     qr/is an SQLite database, $not"sqlite3 FILE 'SELECT domain FROM gravity'"/],
    ['a dump for pg_restore', "PGDMP\1\x0e\0\4\x08\1\1\1\0" . "\0" x 100,
     qr/is a dump that pg_restore reads, .*psql -Atc/],
    ['an image', $before, qr/is an image, $not.*merge/],
    ['an image in xz', output_of(['xz'], $before),
     qr/its xz data is an image/],
    ['gzip within gzip', output_of(['gzip'], output_of(['gzip'], $ids)),
     qr/its gzip data is compressed by gzip, $not"gunzip -c FILE" decompresses it; "gunzip -c" decompresses the file first/],
    ['gzip within xz', output_of(['xz'], output_of(['gzip'], $ids)),
     qr/its xz data is compressed by gzip, .*; "xz -dc" decompresses the file first/],
    ['zstd within bzip2', output_of(['bzip2'], output_of(['zstd', '-q'], $ids)),
     qr/its bzip2 data is compressed by zstd, .*; "bunzip2 -c" decompresses the file first/],
);

my @texts = (
    ['UTF-16', iconv('UTF-16LE'), qr/is UTF-16, $not"iconv -f UTF-16LE/],
    ['big-endian UTF-16', iconv('UTF-16BE'),
     qr/is UTF-16, $not"iconv -f UTF-16BE/],
    ['UTF-32', iconv('UTF-32LE'), qr/is binary data, $not/],
    ['UTF-16 in gzip', output_of(['gzip'], iconv('UTF-16LE')),
     qr/its gzip data is UTF-16/],
    ['random bytes', join('', map { chr((7 * $_ * $_ + ($_ >> 3)) % 256) }
                                  1 .. 9999),
     qr/is binary data, $not/],
    ['a web page', $page, qr/is a web page or XML, $not/],
    ['a web page with a mark', "\xef\xbb\xbf<HTML>\n", qr/is a web page/],
    ['XML', qq{<?xml version="1.0"?>\n<rss>\n}, qr/is a web page or XML/],
    ['JSON', qq{{\n  "urls": [\n    "a.example"\n  ]\n}\n},
     qr/is JSON, $not"jq -r /],
    ['an array of JSON', '["a.example","b.example"]', qr/is JSON/],
    ['what sqlite3 prints as JSON',
     output_of(['sqlite3', '-json', "$dir/gravity.db",
                'SELECT * FROM gravity']), qr/is JSON/],
    ['a dump of PostgreSQL', $psql,
     qr/is a dump of a database, $not.*psql -Atc "SELECT name FROM table"/],
    ['a part of a dump', ("SET x = 1;\n" x 100) . ($psql =~ s/^--.*//mgr),
     qr/is a dump/],
    ['a dump of MySQL', $mysql, qr/is a dump .*mysql -NBe "SELECT/],
    ['a dump of SQLite', output_of(['sqlite3', "$dir/gravity.db", '.dump']),
     qr/is a dump/],
);

# Runs a command that must fail with this message.

sub refused {
    my ($what, $message, @command) = @_;

    my ($exit, $out, $err) = $t->run_tool(@command);

    is($exit, 2, "$command[0] refuses $what") or diag("@command");
    like($err, qr/^ngx-bloom $command[0]: [^\n]*$message/m,
         "$command[0] says what $what is");
    ok(!-e "$dir/out.bloom", "$command[0] writes no image of $what");
}

# Tries a file with all commands that read keys.

sub refused_everywhere {
    my ($what, $content, $message) = @_;

    my $file = $t->write_file('file', $content);
    my @build = ('build', '-o', "$dir/out.bloom");
    my $named = qr/\Q$dir\E\/file: $message/;

    refused("$what ($_->[0] $_->[1])", $named, @build, @$_, $file)
        for ['--form', 'raw'], ['--form', 'host'], ['--form', 'url'],
            map { ['--form', 'url', '--from', $_] }
                qw(lines auto csv:1 csv:url hosts adblock dnsmasq rpz json);

    refused("$what from standard input", qr/standard input: $message/, @build,
            { stdin => $content });
    refused("$what beside a good list", $named, @build, $good, $file);
    refused("$what (--$_)", $named, @build, "--$_", $file, $good)
        for 'except', 'without', 'must-have', 'must-not-have';

    refused($what, $named, 'add', $image, $file);
    refused($what, $named, 'verify', '--must-have', $file, $image);
    refused($what, $named, 'test', $image, '-f', $file);
    is(content_of($image), $before, "the image is unchanged after $what");
}

refused_everywhere(@$_) for @magic, @texts;

for (@magic) {
    my ($what, $content, $message) = @$_;

    refused("$what (-0)", $message, 'build', '-o', "$dir/out.bloom", '-0',
            $t->write_file('file', $content));
}


# ---- a CSV with quotes, read as lines ----

{
    my $csv = join '', map { qq{"$_"\r\n} } @keys;
    my $file = $t->write_file('file', $csv);
    my $message = qr/has nearly all lines in double quotes, .*"--from csv:1"/;
    my @build = ('build', '-o', "$dir/out.bloom");

    refused('a quoted CSV', $message, @build, @$_)
        for [$file], ['--from', 'lines', $file], ['--form', 'url', $file],
            [$t->write_file('header', "id\n$csv")],
            [$t->write_file('two', qq{"1001"\n"1002"\n})],
            ['--except', $file, $good], ['--without', $file, $good],
            ['--must-not-have', $file, $good], [{ stdin => $csv }];
    refused('a quoted CSV', $message, 'add', $image, $file);

    tool_ok('build', '-q', '-o', "$dir/quoted.bloom", '--from', 'csv:1', $file);
    is(tool_ok('test', '-c', "$dir/quoted.bloom", '-f', $list),
       @keys . " present, 0 absent\n", '--from csv:1 reads a quoted CSV');
}


# ---- keys that only look like something else ----

for (["a\0b\nsecond\n", 'a zero byte in a key'],
     ["user\0item1\nuser\0item2\n", 'a zero byte in each key'],
     ["[::1]\n[2001:db8::1]\n", 'addresses in brackets'],
     ["[1]\n[2]\n", 'numbers in brackets'],
     ["{user}\n{\"user\"}\n", 'braces'],
     ["<user>\n<htm>\n", 'angle brackets'],
     ["\"a\"\nb\n\"c\"\nd\n", 'quotes around half of the keys'],
     ["\"a\nb\"\n", 'quotes at one end'],
     ["BZh9\nPK\n7z\nRar!\n%PDF\n", 'names of formats'],
     ["\xe4\xf6\xfc\n\xff\n", 'bytes that are not UTF-8'],
     ["COPY shop\ncreate table\ninsert into x\n", 'words of SQL'])
{
    my ($text, $what) = @$_;
    my $n = $text =~ tr/\n//;

    tool_ok('build', '-q', '-p', '1e-9', '-o', "$dir/keys.bloom",
            { stdin => $text });
    is(tool_ok('test', '-c', "$dir/keys.bloom", { stdin => $text }),
       "$n present, 0 absent\n", "keys are read: $what");
}

# With -0, what looks like another kind of text is a key.

for (qq{"1"\0"2"\0"3"\0}, qq{{"id":1}\0{"id":2}\0}, "<html>\0<body>\0",
     "COPY x FROM stdin;\0")
{
    my $n = tr/\0//;

    tool_ok('build', '-q', '-0', '-p', '1e-9', '-o', "$dir/keys.bloom",
            { stdin => $_ });
    is(tool_ok('test', '-c', '-0', "$dir/keys.bloom", { stdin => $_ }),
       "$n present, 0 absent\n", 'with -0, keys that look like text are read');
}

# Keys that end with CR alone, or with a zero byte, and no -0.

refused('CR in place of line ends', qr/has CR .*"tr '\\r' '\\n' < FILE"/,
        'build', '-o', "$dir/out.bloom", { stdin => $ids =~ tr/\n/\r/r });

refused('zero bytes in place of line ends', qr/has zero bytes .*use -0/,
        'build', '-o', "$dir/out.bloom", { stdin => $ids =~ tr/\n/\0/r });


# ---- NULL in a file of guards ----

for ('\N', '\.') {
    my $null = $t->write_file('null', "good.example\n$_\n");

    refused("a line $_", qr/"\Q$_\E" [^\n]*; correct line 2 of --must-not-have/,
            'build', '-o', "$dir/out.bloom", '--must-not-have', $null, $list);
}

done_testing;
