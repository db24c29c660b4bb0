#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that readers cannot exhaust a worker: responses about many zones, rules
# or keys are written in turns, and a worker's memory for responses is bounded.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant {
    ZONES => 200,
    RULES => 10,                      # in each of as many locations as zones
};

my $t = BloomTest->new(log_level => 'debug');
my @zones = map { "z$_" } 1 .. ZONES;
my @all = (@zones, 'hosts', 'urls');

$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-6', '--form', 'host');
$t->build_image('urls.bloom', ['http://evil.example/'], '-p', '1e-6',
                '--form', 'url');
configure($t, [(map { "zone=$_ capacity=1k fpr=1e-6 journal=off" } @zones),
               'zone=hosts file=hosts.bloom', 'zone=urls file=urls.bloom'],
          api => 1, server => join "\n",
          'large_client_header_buffers 4 256k;',
          map({ my $i = $_;
                ("location /l$i {",
                 map({ "bloom_reject present \$arg_k$_ zone="
                       . ($_ % 2 ? 'urls;' : "z$i;") } 1 .. RULES), '}')
              } 1 .. ZONES));
$t->run;

my $debug = $t->nginx_build =~ /--with-debug/;


# Counts turns: a request that lets others have their turn sets a timer of 1000
# ms.

sub turns {
    my ($mark) = @_;

    return scalar(() = $t->log_since($mark)
                       =~ /event timer add: \d+: 1000:/g);
}


subtest 'responses about many zones are complete and written in turns' => sub {
    my $mark = $t->log_mark;
    my $r = $t->get('/bloom/zones');
    is($r->status, 200, 'GET zones answers');
    is_deeply([map { $_->{name} } @{ $r->json->{zones} }], \@all,
              'GET zones has each zone once');
    cmp_ok(turns($mark), '>=', 3,
           'GET zones lets other requests have their turn')
        if $debug;

    $mark = $t->log_mark;
    $r = $t->get('/bloom/metrics');
    is($r->status, 200, 'GET metrics answers');
    my @bytes = $r->body =~ /^nginx_bloom_zone_bytes\{zone="(\w+)"\} \d+$/mg;
    is_deeply(\@bytes, \@all, 'each metric has each zone once');
    my @heads = $r->body =~ /^# TYPE (\w+)/mg;
    my %heads = map { $_ => 1 } @heads;
    is(scalar @heads, scalar keys %heads,
       'all samples of a metric stand together');
    cmp_ok(turns($mark), '>=', 3,
           'GET metrics lets other requests have their turn')
        if $debug;

    is($t->head('/bloom/zones')->body, '', 'HEAD has no body');

    my @r = $t->pipeline(('/bloom/zones', '/bloom/metrics') x 2);
    is(join(' ', map { $_->status } @r), '200 200 200 200',
       'such requests can follow each other on a connection');

    for my $path ('zones', 'metrics') {
        $t->http_abort($t->request_text(GET => "/bloom/$path"));
    }
    is($t->get('/bloom/zones/z1')->status, 200,
       'the worker answers after clients have disconnected');
};


subtest 'GET keys asks all zones and considers all rules in turns' => sub {
    my $mark = $t->log_mark;
    my $r = $t->get('/bloom/keys?key=http://a.evil.example/b/c?d');
    my $answer = $r->json;

    is($r->status, 200, 'GET keys answers');
    is_deeply([map { $_->{name} } @{ $answer->{zones} }],
              \@all, 'GET keys has each zone once');
    is(scalar(map { @{ $_->{rules} } } @{ $answer->{lists} }), ZONES * RULES,
       'GET keys has each rule once');
    is(scalar(grep { $_->{effect} eq 'fires' }
                  map { @{ $_->{rules} } } @{ $answer->{lists} }),
       ZONES * RULES / 2, 'half of the rules fire');
    my $turns = turns($mark);

    # a busy machine takes turns from a request, so the fewest of some count

    for (1 .. 4) {
        $mark = $t->log_mark;
        $t->get('/bloom/keys?key=http://a.evil.example/b/c?d');
        my $again = turns($mark);
        $turns = $again if $again < $turns;
    }

    cmp_ok($turns, '>=', ZONES * RULES / 32,
           'GET keys lets other requests have their turn')
        if $debug;

    # a turn is a millisecond, so one about a long key takes more turns

    $mark = $t->log_mark;
    my $path = join '/', map { "$_" x 1000 } 'a' .. 'h';
    $r = $t->get("/bloom/keys?key=http://a.b.c.d.evil.example/$path?q");
    is($r->status, 200, 'GET keys takes a key of 8,000 bytes')
        or diag(substr $r->body, 0, 300);
    cmp_ok(turns($mark), '>=', $turns + ZONES / 3,
           'GET keys with a long key takes more turns')
        if $debug;

    $r = $t->get('/bloom/keys?key=' . 'x' x 65535);
    is($r->status, 503, 'an answer that would take too much memory is refused');
    is($r->json->{error}{code}, 'busy', 'the refusal has the reason');

    is_error($t->get('/bloom/keys?key=' . 'a' x 65536), 400, qr/65535 bytes/,
             'a key over 65535 bytes is refused');
    is_error($t->get('/bloom/zones/z1/keys?key=' . 'a' x 65536), 400,
             qr/65535 bytes/,
             'a key over 65535 bytes is refused for one zone, too');
    is(length $t->get('/bloom/zones/z1/keys?key=' . 'a' x 65535)->json->{key},
       65535, 'a key of 65535 bytes is looked up');

    $t->http_abort($t->request_text(GET => '/bloom/keys?key=x'));
    is($t->get('/bloom/zones/z1')->status, 200,
       'the worker answers after a client has disconnected');
};


subtest 'many keys that take a long time are looked up in turns' => sub {
    my @keys = map { "\xc3\xa4.\xc3\xb6$_.\xc3\xbc.\xc3\xa9" } 1 .. 2000;
    my $mark = $t->log_mark;

    my $r = api($t, POST => 'zones/hosts/test', body => join "\n", @keys);
    is(scalar @{ $r->json->{answers} }, 2000, 'all keys are answered');
    cmp_ok(turns($mark), '>=', 5,
           'internationalised hosts let other requests have their turn')
        if $debug;
};


# The client reads nothing, so the answer stays in the worker's memory.

subtest 'the memory of a worker for responses is bounded' => sub {
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

    cmp_ok(scalar @slow, '>', 1,
           'a worker keeps several large responses at a time');
    like($refused // '', qr{^HTTP/1.1 503 .*"busy"}s,
         'one more large response is refused with the reason');
    is(api($t, GET => 'zones/z1')->status, 200,
       'a small response is still sent');

    $_->abort for @slow;
    ok(wait_until(sub {
        api($t, POST => 'zones/z1/test', body => $body)->status == 200
    }), 'large responses are sent again after clients have disconnected');
};


done_testing;
