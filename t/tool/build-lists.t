#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from" reads lists as they are published, and
# reports invalid lines.

use strict;
use warnings;

use IO::Compress::Gzip qw(gzip);

use BloomTest;
use BloomTest::Tool qw(build_text tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub build { return build_text(@_) }

sub has {
    my ($image, $name, @keys) = @_;

    my ($exit, $out) = $t->run_tool('test', $image, '--', @keys);

    is($out, join('', map { "present $_\n" } @keys),
       "the keys of this list are in the image: $name");
}

sub counts {
    my ($json, $name, %expected) = @_;

    is_deeply({ map { $_ => $json->{$_} } keys %expected }, \%expected,
              "build --json counts the lines of this list: $name");
}

sub refused {
    my ($text, $complaint, @options) = @_;

    my ($exit, $out, $err)
        = $t->run_tool('build', '-o', "$dir/none", @options,
                       { stdin => $text });

    is($exit, 2, "build @options is refused");
    like($err, $complaint, "build @options says which line or option is wrong");
    ok(!-e "$dir/none",
       "build @options leaves nothing behind when it is refused");
}


# ---- by default, every line is a key ----

{
    my ($image, $json) = build("# a\n! b\n c \n\n");

    has($image, 'no list', '# a', '! b', ' c ');
    counts($json, 'no list', received => 3, empty => 1, comments => 0,
           skipped => 0, errors => 0);
}


# ---- lines ----

{
    my $text = "# list\n!more\n\n  \n one \r\ntwo # the second\n\tthree\t#\n"
               . "fo#ur\nfive #\n  # indented\nthree";
    my ($image, $json) = build($text, '--from', 'lines');

    has($image, 'lines', 'one', 'two', 'three', 'fo#ur', 'five');
    counts($json, 'lines', received => 6, items => 5, duplicates => 1,
           empty => 2, comments => 3, skipped => 0, errors => 0);

    my ($urls) = build("http://a.b/#x\n# c.d\n", '--from', 'lines', '--form',
                       'url');
    has($urls, 'lines of URLs', 'a.b');
}


# ---- json ----

{
    my $text = <<'JSON' . '{"key":"last"}';
{"key":"one","sequence":1,"time":"2026-01-01T00:00:00.000Z","position":128}

  {"key":"t\"w\\o\u000a\u00e9\ud83d\ude00"}  
{"key":"\ufffdx","key_hex":"ff78","sequence":2}
{"key":"","sequence":3}
{"key":"a}"}
{"key":"key_hex","n":1}
JSON
    my ($image, $json) = build($text, '--from', 'json');

    has($image, 'JSON', 'one', "t\"w\\o\n\xc3\xa9\xf0\x9f\x98\x80", "\xffx", 'a}',
        'key_hex', 'last');
    counts($json, 'JSON', received => 6, items => 6, empty => 2, comments => 0,
           skipped => 0, errors => 0);

    my ($hosts) = build('{"key":"One.Example."}', '--from', 'json', '--form',
                        'host');
    has($hosts, 'JSON of hosts', 'one.example');

    for ('one', '"one"', '["one"]', '{"key":"one"', '{"key":"one}', '{"key":}',
         '{"key":1}', '{"key":"one"x}', '{"key":"one" }', '{ "key":"one"}',
         '{"name":"x","key":"one"}', '{"key":"\\x"}', "{\"key\":\"\xff\"}",
         '{"key":"\\ud800"}',
         '{"key":"\\ufffd","key_hex":"f"}', '{"key":"\\ufffd","key_hex":"fg"}',
         '{"key":"\\ufffd","key_hex":"ff}', '{"key":"\\ufffd","key_hex":ff}',
         '{"key":"\\ufffd","key_hex":"ff"x}', '{"key":"\\ufffd","key_hex":"',
         '{"key":"\\ufffd","sequence":2,"key_hex":"ff"}')
    {
        refused("{\"key\":\"good\"}\n$_\n", qr/line 2: ".*" is not a line that "ngx-bloom journal --keys --json" prints/,
                '--from', 'json');
    }

    refused('{"key":"' . 'x' x 65536 . '"}' . "\n",
            qr/line 1: ".*" is longer than 65535 bytes/, '--from', 'json');
}


# ---- hosts ----

refused("0.0.0.0 a.b\nc.d\n", qr/line 2: "c.d" does not begin with an/,
        '--from', 'hosts');
refused("0.0.0.0\n", qr/line 1: "0.0.0.0" has an address but no name/,
        '--from', 'hosts');
refused("0.0.0.0 # a.b\n", qr/line 1: .* has an address but no name/,
        '--from', 'hosts');
refused("0.0.0.0 a.b c:d\n", qr/line 1: "c:d" has a byte that a host cannot have/,
        '--from', 'hosts', '--form', 'host');


# ---- csv ----

{
    # a stray quote is an error of its record, not the end of other records

    my ($image, $json) = build("a,b,c\n1,x,\"q\n2,y,\"r\n3,z,s\n", '--from',
                               'csv:b', '--max-errors', '1');
    has($image, 'csv: a stray quote', 'z');
    is($json->{received}, 1, 'a csv record that a stray quote joins is left out');

    my $wide = join ',', map { "column$_" } 1 .. 400;
    my $text = "$wide,b\n" . '1,' x 400 . '2';

    gzip(\$text, \my $zipped);

    for ($text, $zipped) {
        ($image, $json) = build($_, '--from', 'csv:b');
        has($image, 'csv: a long header, also in gzip', '2');
        is($json->{received}, 1, 'a long csv header is no key');
    }

    $t->write_file('first.csv', "a,b\n1,2\n");
    $t->write_file('second.csv', "b,a\n3,4\n");
    ($image, $json) = build('', '--from', 'csv:b', "$dir/first.csv",
                            "$dir/second.csv");
    has($image, 'csv: each file has its header', '2', '3');
    is($json->{received}, 2,
       'the keys of two csv files with their own headers are counted');

    $t->write_file('none.csv', "3,4\n");
    refused('', qr{/none.csv: line 1 is taken for the header, and has no column "b" but "3", "4"},
            '--from', 'csv:b', "$dir/first.csv", "$dir/none.csv");
}


# ---- invalid lines ----

{
    my $text = join '', map { $_ % 1000 ? "h$_.example\n" : "bad $_\n" }
                            1 .. 300_000;
    my @options = ('--form', 'host', '-j', '4');

    my ($image, $json, $err) = build($text, @options, '--max-errors', '300');

    counts($json, 'max-errors', received => 299_700, errors => 300,
           lines_read => 300_000);
    is($err, join('', map({ "ngx-bloom build: standard input: line "
                            . 1000 * $_ . ": \"bad " . 1000 * $_
                            . "\" has a byte that a host cannot have\n" } 1 .. 3),
                  "ngx-bloom build: 297 more lines: has a byte that a host"
                  . " cannot have\n"),
       'the first invalid lines are reported, in order, with their numbers,'
       . ' the reason and how many more there are');

    refused($text, qr/there are more invalid lines than --max-errors allows \(299\); 300 of 300000 are invalid/,
            @options, '--max-errors', '299');

    build($text, @options, '--max-errors', '0.1%');
    refused($text, qr/than --max-errors allows \(0.09%\); 300 of 300000 are/,
            @options, '--max-errors', '0.09%');

    # line numbers in later blocks

    my $many = 'x' x 30 . "\n" . "h.example\n" x 400_000;

    for ([$many . "bad 1\n", 'line 400002', '--form', 'host'],
         [$many =~ tr/\n/\0/r . "bad 1\0", 'key 400002', '--form', 'host', '-0'],
         [$many =~ s/h\.example/"h.example\n"/gr . "bad 1\n", 'line 800002',
          '--form', 'host', '--from', 'csv:1'],
         [$many =~ s/.*\n/h.example CNAME (\n.\n)\n/gr . "a\n", 'line 1200004',
          '--form', 'host', '--from', 'rpz'])
    {
        my ($big, $where, @form) = @$_;
        my ($exit, undef, $complaint)
            = $t->run_tool('build', '-o', "$dir/none", '-j', 4, @form,
                           { stdin => $big });
        like($complaint, qr/: \Q$where\E: "/,
             "an invalid line of a later block has its number: @form");
    }

    $t->write_file('good', "a.b\n");
    $t->write_file('bad', "\n# x\n/\n");
    my ($exit, undef, $where) = $t->run_tool(
        'build', '-o', "$dir/none", '--form', 'url', '--from', 'lines',
        "$dir/good", "$dir/bad");
    is($exit, 2, 'a build fails if one of two files has an invalid line');
    like($where, qr{^ngx-bloom build: \Q$dir\E/bad: line 3: "/" has no host\n},
         'the file, the line and the reason are named');

    my ($text_image) = "$dir/text";
    my ($status, $out) = $t->run_tool(
        'build', '-o', $text_image, '--form', 'url', '--from', 'hosts',
        '--max-errors', '2',
        { stdin => "# x\n\n0 a.b\n0 localhost\nx\ny\n" });
    is($status, 0, 'a build with --max-errors leaves invalid lines out');
    like($out, qr/: 1 empty line, 1 comment, 1 other line, 2 invalid lines were skipped\n/,
         'a build says how many lines of each kind it left out');
}

refused("a\n", qr/--from "urls": must be auto, lines, adblock, hosts, dnsmasq, unbound, rpz, csv:COLUMN or json;/,
        '--from', 'urls');
refused("a\n", qr/--from "csv:": must be/, '--from', 'csv:');
refused("a\n", qr/--from and -0 cannot be used together/, '--from', 'lines',
        '-0');
refused("a\n", qr/--max-errors "$_": must be a number of lines, such as 10, or a percentage, such as 5%/,
        '--max-errors', $_)
    for 'x', '', '-1', '%', '101%', '5%%', '1.5', 'nan%', '1e1%';
refused("a\n", qr/--from "adblock-domains": is called adblock now, and reads rules with paths, too/,
        '--from', 'adblock-domains');

done_testing;
