#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from auto" finds in lists of each format what a
# second reader of these formats finds there (t/reference/Lists.pm), and nothing
# beside it.

use strict;
use warnings;

use lib 't/reference';

use BloomTest;
use BloomTest::Tool qw(tool_test);
use Lists;

my $t = tool_test();

my %lists = (
    adblock => <<'LIST',
[Adblock Plus 2.0]
! Title: bad addresses
||evil.example^
||a.b.c.d.e.evil.test^$all
||192.0.2.1^$document
||files.example/page.html^$all
||files.example/deep/1/2/3/4/page.html^
||files.example/dir/
||files.example/1/2/3/4/
||files.example/exact|
||files.example/search?q=1^
||files.example/open?
||files.example/query/?
||files.example/1/2/3/4/5/^
||files.example/name-
|https://one.example/page^$important
@@||good.example^
||ads.example^$third-party
||ads.example/banner^$image,domain=shop.example
/banner/*
/[a-z]+\.example/
shop.example##.banner
plain.example
198.51.100.7
LIST
    hosts => <<'LIST',
# hosts
127.0.0.1 localhost
::1 ip6-localhost
0.0.0.0 evil.example www.evil.test # two names
0.0.0.0 other.example
LIST
    dnsmasq => <<'LIST',
# dnsmasq
address=/evil.example/0.0.0.0
address=/evil.test/other.test/
local=/local.example/
server=/good.example/#
LIST
    rpz => <<'LIST',
$TTL 30
@ IN SOA localhost. root.localhost. 1 86400 3600 604800 30
 NS localhost.
evil.example CNAME .
*.evil.example CNAME .
other.example 300 IN CNAME .
good.example CNAME rpz-passthru.
LIST
    lines => <<'LIST',
# hosts and addresses
evil.example
*.wild.example
http://192.0.2.1:8080/bins/x86
https://files.example:8443/a/b.zip?v=1
LIST
    'csv:url' => <<'LIST',
# a feed
"id","url","note"
"1","http://files.example:8080/a.exe","a note
of two lines"
"2","https://evil.example/","he said ""no"""
LIST
);

for my $format (sort keys %lists) {
    my $path = $t->write_file("list", $lists{$format});
    my $list = Lists::read_list($format, $path);
    my $image = $t->testdir . '/image';

    my ($exit, undef, $err) = $t->run_tool(
        'build', '-q', '-o', $image, '--form', 'url', '-p', '1e-9', '--seed', 1,
        '--from', 'auto', $path);

    is($exit, 0, "a list of the format $format is built with --from auto")
        or diag($err);

    my @blocked = map { @{ $_->{urls} } } @{ $list->{entries} };
    my @beside = (Lists::beside($list),
                  map { "http://$_/" } @{ $list->{exceptions} });

    my (undef, $out) = $t->run_tool('test', $image, '--', @blocked, @beside);

    is($out, join('', map({ "present $_\n" } @blocked),
                  map { "absent $_\n" } @beside),
       "the image of the format $format finds what a second reader finds");
}

done_testing();
