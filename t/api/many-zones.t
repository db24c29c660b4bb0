#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Readers exhaust no worker: what answers a request about many zones or many keys
# is cut into turns, and the answers that a worker has in memory are bounded.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant ZONES => 200;

my $t = BloomTest->new(log_level => 'debug');
my @zones = map { "z$_" } 1 .. ZONES;

$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-6', '--key', 'host');
configure($t, [(map { "zone=$_ capacity=1k fpr=1e-6 journal=off" } @zones),
               'zone=hosts file=hosts.bloom'], api => 1);
$t->run;

my $debug = $t->nginx_build =~ /--with-debug/;


# A request that lets others have their turn has a timer of 1000 ms meanwhile.

sub turns {
    my ($mark) = @_;

    return scalar(() = $t->log_since($mark)
                       =~ /event timer add: \d+: 1000:/g);
}


subtest 'answers about many zones are whole, and written in turns' => sub {
    my $mark = $t->log_mark;
    my $r = $t->get('/bloom/zones');
    is($r->status, 200, 'GET zones answers');
    is_deeply([map { $_->{name} } @{ $r->json->{zones} }], [@zones, 'hosts'],
              'it has each zone once');
    cmp_ok(turns($mark), '>=', 3, 'it lets other requests have their turn')
        if $debug;

    $mark = $t->log_mark;
    $r = $t->get('/bloom/metrics');
    is($r->status, 200, 'GET metrics answers');
    my @bytes = $r->body =~ /^nginx_bloom_zone_bytes\{zone="(\w+)"\} \d+$/mg;
    is_deeply(\@bytes, [@zones, 'hosts'], 'each metric has each zone once');
    my @heads = $r->body =~ /^# TYPE (\w+)/mg;
    my %heads = map { $_ => 1 } @heads;
    is(scalar @heads, scalar keys %heads, 'each metric stands in one place');
    cmp_ok(turns($mark), '>=', 3, 'it lets other requests have their turn')
        if $debug;

    is($t->head('/bloom/zones')->body, '', 'HEAD has no body');

    my @r = $t->pipeline(('/bloom/zones', '/bloom/metrics') x 2);
    is(join(' ', map { $_->status } @r), '200 200 200 200',
       'such requests may follow each other on a connection');

    for my $path ('zones', 'metrics') {
        $t->http_abort($t->request_text(GET => "/bloom/$path"));
    }
    is($t->get('/bloom/zones/z1')->status, 200,
       'the worker answers when clients have gone');
};


subtest 'many keys that take long are looked up in turns' => sub {
    my @keys = map { "\xc3\xa4.\xc3\xb6$_.\xc3\xbc.\xc3\xa9" } 1 .. 2000;
    my $mark = $t->log_mark;

    my $r = api($t, POST => 'zones/hosts/test', body => join "\n", @keys);
    is(scalar @{ $r->json->{answers} }, 2000, 'all keys are answered');
    cmp_ok(turns($mark), '>=', 5,
           'internationalised hosts let other requests have their turn')
        if $debug;
};


# The client reads nothing, so the answer stays in the worker's memory.

subtest 'the answers that a worker keeps are bounded' => sub {
    my $body = "a\n" x 1_000_000;
    my @slow;
    my $refused;

    for (1 .. 12) {
        my $c = $t->connect;
        $c->send($t->request_text(POST => '/bloom/zones/z1/test',
                                  body => $body));
        my $head = $c->_until("\r\n\r\n");

        if ($head !~ m{^HTTP/1.1 200}) {
            $refused = $head . $c->rest;
            last;
        }
        push @slow, $c;
    }

    cmp_ok(scalar @slow, '>', 1, 'some large answers are there at a time');
    like($refused // '', qr{^HTTP/1.1 503 .*"busy"}s,
         'one more is refused, with the reason');
    is(api($t, GET => 'zones/z1')->status, 200, 'small answers are given');

    $_->abort for @slow;
    ok(wait_until(sub {
        api($t, POST => 'zones/z1/test', body => $body)->status == 200
    }), 'large answers are given when clients have gone');
};


done_testing;
