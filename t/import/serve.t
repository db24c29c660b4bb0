#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests imported images of each scheme in nginx: a zone answers as the source
# does and takes keys.

use strict;
use warnings;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new;
my $dir = $t->testdir;

my @schemes = qw(go-zero redisson guava64 guava32 double redisbloom dcso
                 bits-and-blooms spark1 spark2 libbloom);
my @in = map { "in-$_" } 1 .. 60;
my @ask = (@in, map { "out-$_" } 1 .. 60);
my ($m, $k) = (509, 5);
my %set;

$set{$_} = { import_scheme($t, $_, $m, $k, @in) } for @schemes;

# The filter has three links with a key of its own in each.

my $header = pack 'Q< L< L< L<', 3, 3, 5, 2;
my $data = '';

for (0 .. 2) {
    my $bits = 320 + 64 * $_;
    my $link = "\0" x ($bits / 8);

    vec($link, $_, 1) = 1 for bits_of('redisbloom', "link-$_", $bits, 4 + $_);
    $header .= pack 'Q< Q< Q< d< d< L< Q< C', $bits / 8, $bits, 1, 0.01, 9,
                    4 + $_, 20, 0;
    $data .= $link;
}

import_image($t, "$dir/links.bloom", '--from', 'redisbloom',
             $t->write_file('links', $header . $data));

my $zones = join "\n",
            map { "    bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;" }
            @schemes, 'links';
my $locations = join "\n",
                map { "        location ~ ^/$_/(?<key>.+)\$ { bloom_reject "
                      . "absent \$key zone=$_; try_files /none =204; }" }
                @schemes, 'links';

$t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
$zones
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /api/ { bloom_api write=on; }
$locations
    }
}
CONF

$t->run;

sub served {
    my ($zone, @keys) = @_;

    return join '', map { $t->get("/$zone/$_")->status == 204 ? 1 : 0 } @keys;
}

for my $scheme (@schemes) {
    my $expected = join '', map {
        (grep { !$set{$scheme}{$_} } bits_of($scheme, $_, $m, $k)) ? 0 : 1
    } @ask;

    like($expected, qr/\A1{60}/,
         "the filter of scheme $scheme has its 60 members");
    is(served($scheme, @ask), $expected,
       "a zone with scheme $scheme answers as its source does");
}

is(served('links', 'link-0', 'link-1', 'link-2', 'no', 'nothing'), '11100',
   'a key in any of three links is present');

for my $zone (@schemes, 'links') {
    my $response = $t->post("/api/zones/$zone/keys", "new/1\nnew/2\n");

    is($response->status, 200, "zone $zone takes keys")
        or diag $response->body;
    is(served($zone, 'new/1', 'new/2'), '11',
       "zone $zone has the added keys");

    like($t->get("/api/zones/$zone/keys?key=new/1")->body, qr/"present"/,
         "the endpoint answers that zone $zone has an added key");
}

done_testing;
