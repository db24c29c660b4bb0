#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_unknown to=, which routes requests when a zone answers
# unknown: after the access checks of their location, as bloom_route does.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# The zone "lost" has no image, so it answers unknown.

configure_rules($t, { ids => ['one'] }, <<'CONF', backend => 8090);
    bloom_zone zone=lost:1m file=%%TESTDIR%%/none.bloom required=off;

    add_header X-Bloom "$bloom_status $bloom_zone" always;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        bloom_unknown to=@exact;

        location /route {
            bloom_route present $arg_id zone=lost to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /pass {
            bloom_pass present $arg_id zone=lost;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /denied {
            deny all;
            bloom_reject absent $arg_id zone=lost;
        }
        location /uri {
            bloom_unknown to=/exact/$arg_id;
            bloom_reject absent $arg_id zone=lost;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=lost;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /trial {
            bloom_reject absent $arg_id zone=lost dry_run;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /good {
            bloom_reject absent $arg_id zone=ids status=411;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /skip {
            bloom_unknown pass;
            bloom_reject absent $arg_id zone=lost;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /listed {
            bloom_unknown to=@rules;
            bloom_reject absent $arg_id zone=lost;
        }
        location @rules {
            bloom_reject absent $arg_id zone=ids status=412;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location @routed { return 200 "routed"; }
        location @exact { return 200 "exact"; }
        location /exact/ { return 200 $uri; }
    }
CONF

$t->expect_log(qr/none\.bloom" of bloom zone "lost" cannot be opened/);
$t->expect_log(qr/bloom zone "lost" is not loaded/);
$t->run;


sub is_outcome {
    my ($path, $expected, $name) = @_;

    is(outcome($t, $path), $expected, $name);
}


is_outcome('/route?id=one', '200 UNKNOWN lost',
           'a request is routed when the zone answers unknown');
is($t->get('/route?id=one')->body, 'exact',
   'a named location answers a request with an unknown key');
is($t->get('/pass?id=one')->body, 'exact',
   'bloom_pass routes a request with an unknown key, too');
is($t->get('/uri?id=one')->body, '/exact/one',
   'a URI with variables answers a request with an unknown key');
is_outcome('/uri?id=..', '400 UNKNOWN lost', 'an unsafe target is refused');
is_outcome('/denied?id=one', '403 UNKNOWN lost',
           'a request is routed only after the access checks');
is($t->get('/dry?id=one')->body, 'backend /dry?id=one',
   'a dry run does not route a request with an unknown key');
is($t->get('/trial?id=one')->body, 'backend /trial?id=one',
   'a rule on trial does not route a request with an unknown key');
is($t->get('/skip?id=one')->body, 'backend /skip?id=one',
   'an inner location overrides bloom_unknown to=');
is_outcome('/good?id=none', '411 REJECTED ids',
           'a zone that serves decides by itself');
is_outcome('/listed?id=none', '412 REJECTED ids',
           'the rules of the target run');
is_outcome('/listed?id=one', '200 UNKNOWN lost',
           'a request that the rules of the target pass stays unknown');
is(decisions_logged($t, '/route?id=one'),
   'routing request: key "one" unknown in bloom zone "lost"',
   'the error log has a routed request');

done_testing;
