#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that readers cannot exhaust a worker: responses about many zones, rules
# or keys are written in turns, and a worker's memory for responses is bounded.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(stop_process resume_process wait_until);
use BloomTest::Zones;

use constant {
    ZONES => 200,
    RULES => 10,                      # in each of as many locations as zones
};

my $t = BloomTest->new;
my @zones = map { "z$_" } 1 .. ZONES;
my @all = (@zones, 'hosts', 'urls');

$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-6', '--form', 'host');
$t->build_image('urls.bloom', ['http://evil.example/'], '-p', '1e-6',
                '--form', 'url');
configure($t, [(map { "zone=$_ capacity=1k fpr=1e-6 journal=off" } @zones),
               'zone=hosts file=hosts.bloom', 'zone=urls file=urls.bloom'],
          api => 1, server => join "\n",
          'large_client_header_buffers 4 256k;',
          'access_log ' . $t->testdir . '/order.log;',
          map({ my $i = $_;
                ("location /l$i {",
                 map({ "bloom_reject present \$arg_k$_ zone="
                       . ($_ % 2 ? 'urls;' : "z$i;") } 1 .. RULES), '}')
              } 1 .. ZONES));
$t->run;

# Tests that a request is answered while a longer one that came before it is not
# finished yet.  The only worker stands still until both have come.  nginx logs a
# request when it is finished, perhaps a little after its response; the longer one
# has no long response, for which it would wait.

sub is_overtaken {
    my ($what, $method, $path, %option) = @_;

    my ($long, $short) = map {
        my $c = $t->connect;
        $c->send($t->request_text(GET => '/z1?k=x', keepalive => 1));
        $c->response;
        $c;
    } 1, 2;
    my ($worker) = $t->workers;
    my $from = length $t->read_file('order.log');

    stop_process($worker);
    $long->send($t->request_text($method, "/bloom/$path", keepalive => 1,
                                 %option));
    $short->send($t->request_text(GET => '/z1?k=short', keepalive => 1));
    resume_process($worker);

    is($_->[0]->response($_->[1])->status, 200, "$what: a request is answered")
        for [$short, 'GET'], [$long, $method];

    my @order;

    wait_until(sub {
        @order = substr($t->read_file('order.log'), $from)
                 =~ m{"(\w+) /(?:bloom/|z1\?k=short)}g;
        return @order >= 2;
    });
    is("@order[-2, -1]", "GET $method",
       "$what: the later request overtakes it");
}


subtest 'responses about many zones are complete and written in turns' => sub {
    my $r = $t->get('/bloom/zones');
    is($r->status, 200, 'GET zones answers');
    is_deeply([map { $_->{name} } @{ $r->json->{zones} }], \@all,
              'GET zones has each zone once');

    $r = $t->get('/bloom/metrics');
    is($r->status, 200, 'GET metrics answers');
    my @bytes = $r->body =~ /^nginx_bloom_zone_bytes\{zone="(\w+)"\} \d+$/mg;
    is_deeply(\@bytes, \@all, 'each metric has each zone once');
    my @heads = $r->body =~ /^# TYPE (\w+)/mg;
    my %heads = map { $_ => 1 } @heads;
    is(scalar @heads, scalar keys %heads,
       'all samples of a metric stand together');

    is_overtaken($_, HEAD => $_) for 'zones', 'metrics';
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
    my $path = 'keys?key=http://a.evil.example/b/c?d';
    my $r = $t->get("/bloom/$path");
    my $answer = $r->json;

    is($r->status, 200, 'GET keys answers');
    is_deeply([map { $_->{name} } @{ $answer->{zones} }],
              \@all, 'GET keys has each zone once');
    is(scalar(map { @{ $_->{rules} } } @{ $answer->{lists} }), ZONES * RULES,
       'GET keys has each rule once');
    is(scalar(grep { $_->{effect} eq 'fires' }
                  map { @{ $_->{rules} } } @{ $answer->{lists} }),
       ZONES * RULES / 2, 'half of the rules fire');

    my $long = join '/', map { "$_" x 1000 } 'a' .. 'h';

    is_overtaken('GET keys', HEAD => $path);
    is_overtaken('GET keys with a key of 8,000 bytes',
                 HEAD => "keys?key=http://a.b.c.d.evil.example/$long?q");

    $r = $t->get('/bloom/keys?key=' . 'x' x 65535);
    is($r->status, 503, 'an answer that would take too much memory is refused');
    is($r->json->{error}{code}, 'busy', 'the refusal has the reason');

    is_error($t->get("/bloom/$_?key=" . 'a' x 65536), 400, qr/65535 bytes/,
             "a key over 65535 bytes is refused by $_")
        for 'keys', 'zones/z1/keys';
    is(length $t->get('/bloom/zones/z1/keys?key=' . 'a' x 65535)->json->{key},
       65535, 'a key of 65535 bytes is looked up');

    $t->http_abort($t->request_text(GET => '/bloom/keys?key=x'));
    is($t->get('/bloom/zones/z1')->status, 200,
       'the worker answers after a client has disconnected');
};


subtest 'many keys that take a long time are looked up in turns' => sub {
    my $body = join "\n", map { "\xc3\xa4.\xc3\xb6$_.\xc3\xbc.\xc3\xa9" }
                              1 .. 2000;

    is(scalar @{ api($t, POST => 'zones/hosts/test', body => $body)
                     ->json->{answers} }, 2000, 'all keys are answered');
    is_overtaken('internationalised hosts', POST => 'zones/hosts/test',
                 body => $body);
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
