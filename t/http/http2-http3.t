#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the directives under HTTP/2 and HTTP/3: rules, bloom_lookup, bloom_add,
# bloom_remove and bloom_feedback.  Each stream of a connection is decided once
# and independently of the others.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Protocols;
use BloomTest::Rules;

my $t = BloomTest->new;
my $listen = listen_for_all($t);

configure_rules($t, { ids => ['one', 'a b', 'gone'], bad => ['evil'] },
                <<'CONF' . "$listen\n}\n");
    bloom_lookup $arg_id $known zone=ids;
    bloom_zone zone=seen capacity=10k fpr=1e-9;
    bloom_lookup $arg_id $seen zone=seen;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        add_header X-Protocol $server_protocol always;
        lingering_timeout 1s;

        location / {
            bloom_reject absent $arg_id zone=ids decode=form;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@listed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /denied {
            deny all;
            bloom_route absent $arg_id zone=ids to=@listed;
        }
        location @listed {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /page {
            bloom_reject absent $arg_id zone=ids;
            error_page 404 = /listed?id=evil;
        }
        location /listed {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /feedback {
            bloom_feedback 404;
            bloom_reject absent $arg_id zone=ids;
            proxy_set_header X-Status 404;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location ~ ^/audit/(?<id>.+)\z {
            bloom_audit 100% add=on rate=1000r/s;
            bloom_reject absent $id zone=seen;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /new {
            bloom_add $upstream_http_x_new_id zone=seen;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /old {
            bloom_remove $upstream_http_x_new_id zone=seen;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /lookup { return 200 "<$known>"; }
        location /seen { return 200 "<$seen>"; }
        location /bloom/ { bloom_api; }
CONF

# the backend names the argument "new" as the new ID

$t->backend(8081, sub {
    my ($request) = @_;

    my ($id) = $request->{uri} =~ /\bnew=(\w+)/;

    return { status => $request->{headers}{'x-status'} || 200,
             headers => defined $id ? ['X-New-Id' => $id] : [],
             body => "backend $request->{method} $request->{body}" };
});

$t->run;


sub test_protocol {
    my ($class) = @_;

    my $c = $class->new($t);

    my $is_outcome = sub {
        my ($path, $expected, $what, %option) = @_;

        my $r = $c->ask($option{method} // 'GET', $path, %option);

        is($r->status . ' ' . ($r->header('X-Bloom') // ''), $expected, $what);

        return $r;
    };

    subtest 'rules decide' => sub {
        my $r = $is_outcome->('/?id=one', '200 PASSED ids',
                              'a request for a present key is passed');
        like($r->header('X-Protocol'), qr{^\Q@{[$class->name]}\E},
             'nginx names the protocol');
        is($r->body, 'backend GET ', 'the response has its body');

        $is_outcome->('/?id=a+b', '200 PASSED ids',
                      'a request for a present key is passed after decoding');
        $is_outcome->('/?id=none', '404 REJECTED ids',
                      'a request for an absent key is rejected');
        $is_outcome->('/', '200 ', 'a request without a key has no outcome');
        $is_outcome->('/route?id=one', '200 PASSED ids',
                      'a request for a present key is not routed');
        $is_outcome->('/route?id=none', '200 ROUTED ids',
                      'a request for an absent key is routed');
        $is_outcome->('/denied?id=none', '403 ROUTED ids',
                      'an access check comes before a route');
        $is_outcome->('/route?id=evil', '403 REJECTED bad',
                      'a routed request is rejected by a rule of its target');
        $is_outcome->('/dry?id=none', '200 REJECTED_DRY_RUN ids',
                      'a rule on trial rejects nothing');
        is($c->ask(GET => '/lookup?id=one')->body, '<1>',
           'the variable of bloom_lookup is 1 for a present key');

        my $mark = $t->log_mark;
        $is_outcome->('/page?id=none', '200 REJECTED ids',
                      'a rejected request is answered with its error page');
        is(scalar(() = $t->log_since($mark) =~ /rejecting request/g), 1,
           'a rejected request is not checked again for its error page');
    };

    subtest 'a routed request keeps its body' => sub {
        my $r = $is_outcome->('/route?id=none', '200 ROUTED ids',
                              'a POST request for an absent key is routed',
                              method => 'POST', body => 'x=1', piece => 1);
        is($r->body, 'backend POST x=1', 'a routed POST request keeps its body');

        my $large = 'abcdefg' x 20_000;

        $r = $is_outcome->('/route?id=none', '200 ROUTED ids',
                           'a request with a large body is routed',
                           method => 'POST', body => $large, unsized => 1);
        is($r->body, "backend POST $large", 'a large body arrives whole');
    };

    my $seen = sub { $c->ask(GET => "/seen?id=$_[0]")->body };

    subtest 'responses of the backend change a zone' => sub {
        is($seen->('new1'), '<0>', 'a key is absent before its addition');
        is($c->ask(GET => '/new?new=new1')->status, 200,
           'a response names a new key');
        is($seen->('new1'), '<1>', 'bloom_add adds the key');
        is($c->ask(POST => '/new?new=new2', body => 'abc', piece => 1)->status,
           200, 'the response to a body names a new key');
        is($seen->('new2'), '<1>', 'bloom_add adds the second key');

        # bloom_remove leaves a key if another process uses the journal

        for my $key (qw(new1 new2)) {
            ok(wait_until(sub {
                $c->ask(GET => "/old?new=$key");
                return $seen->($key) eq '<0>';
            }), "bloom_remove removes key $key");
        }

        my $before = zone_state($t, 'ids')->{feedback}{false_positives};
        is($c->ask(GET => '/feedback?id=gone')->status, 404,
           'the backend lacks a key');
        is(zone_state($t, 'ids')->{feedback}{false_positives} - $before, 1,
           'bloom_feedback counts a false positive');
    };

    subtest 'no key is added from a path that the backend may read in '
            . 'another way' => sub
    {
        my $not = sub { zone_state($t, 'seen')->{audit}{not_added} };
        my $name = $class->name =~ s/\W//gr;
        my $before = $not->();

        $is_outcome->($_, '200 AUDITED seen', "$_ is audited")
            for "/%61udit/$name", "//audit/$name", "/x/../audit/$name",
                "/audit/./$name";
        is($not->() - $before, 4, 'none of them is added');

        $is_outcome->("/audit/$name", '200 AUDITED seen',
                      'the path is audited in its plain spelling');
        $is_outcome->("/%61udit/$name", '200 PASSED seen',
                      'and its key is added');
    };

    subtest 'each stream of a connection is decided alone' => sub {
        my $name = $class->name =~ s/\W//gr;
        my @paths = map { ("/?id=none$_", '/lookup', '/?id=one',
                           "/new?new=$name$_", '/route?id=evil') } 1 .. 20;
        my @streams = map { $c->request(GET => $_) } @paths;
        my @got = map { $c->response($_)->status } @streams;

        is("@got", join(' ', map { /none/ ? 404 : /evil/ ? 403 : 200 } @paths),
           'each of 100 streams gets the response to its own key');
        is(join('', map { $seen->("$name$_") } 1 .. 20), '<1>' x 20,
           'each stream has added its key');
    };
}


over_each($t, \&test_protocol);


done_testing;
