#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Layers, slices and exceptions cost absent keys nothing, and present keys hardly
# anything in zones that have none: a lookup takes as many instructions as before
# these existed, or a few more.  A lookup in a fuse base takes at most 60 more than
# in a blocked one.  Expressions of a URL share the hash of what they share, and a
# second rule on the same key does not make them again.  nginx runs under valgrind,
# which counts instructions, so other work on the machine does not matter.

use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;

use BloomTest;
use BloomTest::Callgrind;
use BloomTest::Process qw(run_command);

use constant REQUESTS => 50;

# What it takes to see whether a process owes keys, and whether workers without
# the journal, of another configuration, owe or have lost any.

use constant OWING => 15;

# What an allocation takes in nginx 1.22.1.  It is counted so in every program, as
# Angie's takes two more.

use constant ALLOCATION => 13;

my $t = BloomTest->new(log_level => 'error');

plan skip_all => $_ for BloomTest::Callgrind->impossible($t) // ();

# Name, location, keys that are asked about in turn, how many more instructions are
# allowed, and the instructions of a request's lookups.  Those of raw keys are from
# before there were exceptions, layers and slices: at commit 93a0f88, with gcc 12
# for x86-64 and nginx 1.22.1.  An absent key may not take one more than OWING,
# unless the base is fuse.  nginx keeps what it has made of the last host or URL, so two take turns.

my @lookups = (
    ['raw, absent', 'raw', ['7f1c9a528b1e4f0f'], 0, 191],
    ['raw, present', 'raw', ['7f1c9a528b1e4f0e'], 5, 191],
    ['lower, absent', 'lower', ['7F1C9A52-8B1E-4F0E-9D43-A3F0CC12D97B'], 0, 481],
    ['host, absent', 'host', ['www.evil.example', 'www.evil.examplf'], 0, 1010],
    ['url with 30 expressions, absent', 'url',
     [map { "http://a.b.c.d.evil.example/1/2/3/4.html?x=$_" } 1, 2], 0, 5420],
    ['url with 10 expressions, absent', 'url',
     [map { "http://www.shop.example/catalog/shoes/item.html?id=$_" } 7, 8], 0,
     2700],
    ['the same zone and URL again, absent', 'url-again',
     [map { "http://www.shop.example/catalog/shoes/item.html?id=$_" } 7, 8], 0,
     2700 + 800],
    ['another zone with the same URL, absent', 'url-other',
     [map { "http://www.shop.example/catalog/shoes/item.html?id=$_" } 7, 8], 0,
     2700 + 1730],
    ['fuse, absent', 'fuse', ['7f1c9a528b1e4f0f'], 60, 191],
    ['fuse, present', 'fuse', ['7f1c9a528b1e4f0e'], 67, 191],
);
my @zones = qw(raw lower host url other fuse);
my %zones = map { $_ => [$_] } @zones;
$zones{'url-again'} = ['url', 'url'];
$zones{'url-other'} = ['url', 'other'];

`cc -dumpversion` =~ /^12\b/ && `uname -m` =~ /x86_64/
    or plan(skip_all => 'the counts are for gcc 12 on x86-64');

$t->build_image("$_.bloom",
                [/raw|fuse/ ? '7f1c9a528b1e4f0e' : 'other.example'],
                $_ eq 'fuse' ? ('--layout', 'fuse')
                : ('--form', $_ eq 'other' ? 'url' : $_))
    for @zones;

$t->write_file_expand('nginx.conf', join "\n",
    '%%TEST_GLOBALS%%', 'daemon off;', 'master_process off;', 'events { }',
    'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
    (map { "bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;" } @zones),
    'server {', 'listen 127.0.0.1:%%PORT_8080%%;',
    (map {
        my $place = $_;
        "location = /$place { "
            . join(' ', map { "bloom_reject present \$arg_id zone=$_;" }
                            @{ $zones{$place} })
            . ' empty_gif; }'
     } sort keys %zones),
    '}', '}', '');

my $callgrind = BloomTest::Callgrind->new($t, 'ngx_bloom_lookup',
                                         'ngx_bloom_lookup_as');
my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port(8080))
    or die "cannot connect: $!";

sub request {
    my ($zone, $key) = @_;

    print $socket "GET /$zone?id=$key HTTP/1.1\r\nHost: localhost\r\n\r\n";

    my ($status) = (readline($socket) // '') =~ /^HTTP\S+ (\d+)/
        or croak "no answer for $key";
    my $length = 0;

    while ((my $line = readline $socket) ne "\r\n") {
        $length = $1 if $line =~ /^Content-Length: (\d+)/i;
    }

    read $socket, my $body, $length if $length;

    return $status;
}

# Returns the instructions of lookups since the last call.

sub counted {
    my $file = $callgrind->counted;
    my (undef, $text) = run_command(['callgrind_annotate', '--inclusive=yes',
                                     '--auto=no', '--threshold=100',
                                     '--show-percs=no', $file]);
    my ($one, $as, $allocating)
        = map { $text =~ /^\s*([\d,]+) .*:$_\b/m ? $1 =~ tr{,}{}dr : 0 }
              qw(ngx_bloom_lookup ngx_bloom_lookup_as ngx_pnalloc);

    return $one + $as - $allocating
           + ALLOCATION * $callgrind->calls($file, 'ngx_pnalloc');
}

for (@lookups) {
    my ($name, $zone, $keys, $more, $before) = @$_;

    request($zone, $keys->[$_ % @$keys]) for 1 .. 10;
    counted();

    my %status = map { request($zone, $keys->[$_ % @$keys]) => 1 } 1 .. REQUESTS;
    my $count = counted() / REQUESTS;

    is(join(' ', keys %status), $name =~ /present/ ? 403 : 200,
       "$name: the zone answers so");
    cmp_ok($count, '>', 0.8 * $before, "$name: the lookups are counted");
    cmp_ok($count, '<=', $before + $more + OWING,
           "$name: a lookup takes at most @{[$more + OWING]} instructions more than before");
    note("$name: $count instructions");
}

ok($callgrind->finish, 'nginx ends');

done_testing;
