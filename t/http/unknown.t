#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_unknown, which decides about requests when a zone answers
# unknown: they are passed by default, or rejected with status 503.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

plan skip_all => 'nginx has no injected faults (-DNGX_BLOOM_FAULTS)'
    unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

$ENV{NGX_BLOOM_FAULT_UNLOADED} = 'lost';

# Zone "lost" has no generation, so it answers unknown.

configure_rules($t, { ids => ['one'] }, <<'CONF',
    bloom_zone zone=lost file=%%TESTDIR%%/ids.bloom;

    bloom_lookup $arg_id $known zone=lost;

    add_header X-Bloom "$bloom_status $bloom_zone" always;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location @routed { return 200 "routed"; }
        location /lookup { return 200 "<$known>"; }
        location /if {
            if ($known = 0) { return 404; }
            return 200 "passed";
        }

        location /pass/ {
            location /pass/reject {
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/reject-present {
                bloom_reject present $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/route {
                bloom_route absent $arg_id zone=lost to=@routed;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/then {
                bloom_reject absent $arg_id zone=lost status=410;
                bloom_reject absent $arg_id zone=ids status=411;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/before {
                bloom_reject absent $arg_id zone=ids status=411;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/allowed {
                bloom_pass present $arg_id zone=lost;
                bloom_reject absent $arg_id zone=ids status=411;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /pass/routed {
                bloom_route absent $arg_id zone=ids to=@then;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
        }
        location @then {
            bloom_reject absent $arg_id zone=lost status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }

        location /reject/ {
            bloom_unknown reject;

            location /reject/reject {
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/route {
                bloom_route present $arg_id zone=lost to=@routed;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/pass {
                bloom_pass present $arg_id zone=lost;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/good {
                bloom_reject absent $arg_id zone=ids status=411;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/before {
                bloom_reject absent $arg_id zone=ids status=411;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/allowed {
                bloom_pass present $arg_id zone=ids;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/dry {
                bloom_dry_run on;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/page {
                bloom_reject absent $arg_id zone=lost status=410;
                error_page 503 /reject/reject-page?$args;
            }
            location /reject/reject-page {
                bloom_reject absent $arg_id zone=ids status=411;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /reject/not {
                bloom_unknown pass;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
        }
    }
CONF
                main => 'env NGX_BLOOM_FAULT_UNLOADED;', backend => 8081);

$t->run;


sub is_outcome {
    my ($path, $expected, $name) = @_;

    is(outcome($t, $path), $expected, $name);
}


subtest 'bloom_unknown pass is the default' => sub {
    for (qw(reject reject-present route)) {
        is_outcome("/pass/$_?id=one", '200 UNKNOWN lost',
                   "/pass/$_ passes a key of the image");
        is_outcome("/pass/$_?id=none", '200 UNKNOWN lost',
                   "/pass/$_ passes a key that the image does not have");
    }

    is_outcome('/pass/reject', '200 ',
               'a request without a key has no outcome by default');
};


subtest 'bloom_unknown reject rejects with status 503' => sub {
    is_outcome("/reject/$_?id=one", '503 UNKNOWN lost',
               "/reject/$_ rejects a request with status 503")
        for qw(reject route pass page);
    is_outcome('/reject/reject', '200 ',
               'a request without a key is passed under reject');
    is($t->get('/reject/page?id=none')->body,
       'backend /reject/reject-page?id=none',
         'the error page of status 503 is not checked');
    is_outcome('/reject/not?id=one', '200 UNKNOWN lost',
               'a location overrides bloom_unknown reject');
};


subtest 'rules of other zones still decide' => sub {
    is_outcome('/pass/then?id=none', '411 REJECTED ids',
               'a later rule that fires rejects a request');
    is_outcome('/pass/then?id=one', '200 UNKNOWN lost',
               'the answer is unknown when a later rule does not fire');
    is_outcome('/pass/before?id=one', '200 UNKNOWN lost',
               'the answer is unknown when an earlier rule does not fire');
    is_outcome('/pass/before?id=none', '411 REJECTED ids',
               'an earlier rule that fires rejects a request');
    is_outcome('/pass/allowed?id=none', '411 REJECTED ids',
               'bloom_pass does not fire when its zone answers unknown');
    is_outcome('/pass/routed?id=none', '200 ROUTED ids',
               'a request stays routed when the target zone answers unknown');

    is_outcome('/reject/good?id=one', '200 PASSED ids',
               'a zone that serves passes a present key under reject');
    is_outcome('/reject/good?id=none', '411 REJECTED ids',
               'a zone that serves rejects an absent key by its own status');
    is_outcome('/reject/before?id=none', '411 REJECTED ids',
               'an earlier rule that fires decides the status of a rejection');
    is_outcome('/reject/before?id=one', '503 UNKNOWN lost',
               'a request is rejected when an earlier rule does not fire');
    is_outcome('/reject/allowed?id=one', '200 PASSED ids',
               'an earlier bloom_pass that fires passes a request');
};


subtest 'a dry run passes under bloom_unknown reject' => sub {
    is_outcome('/reject/dry?id=one', '200 UNKNOWN lost',
               'a dry run passes a request when the zone answers unknown');
};


subtest 'bloom_lookup has an empty value' => sub {
    is($t->get('/lookup?id=one')->body, '<>',
       'the variable of bloom_lookup is empty when the zone answers unknown');
    is($t->get('/if?id=none')->body, 'passed',
       'the variable of bloom_lookup is not 0 when the zone answers unknown');
};


subtest 'the error log says that a key is unknown' => sub {
    my $line = 'key "one" unknown in bloom zone "lost"';

    is(decisions_logged($t, '/pass/reject?id=one'), "passing request: $line",
       'the error log has a passed request');
    is(decisions_logged($t, '/reject/reject?id=one'),
       "rejecting request: $line", 'the error log has a rejected request');
    is(decisions_logged($t, '/reject/dry?id=one'),
       "rejecting request, dry run: $line", 'the error log has a dry run');
    is(decisions_logged($t, '/lookup?id=one'), '',
       'the error log does not have a lookup');
};


done_testing;
