#!/usr/bin/perl

# bloom_unavailable: a zone that has nothing to serve cannot tell.  By default
# the request passes; rejecting answers 503, never the rule's status.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;

plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
    unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

$ENV{NGX_BLOOM_FAULT_UNLOADED} = 'lost';

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
env NGX_BLOOM_FAULT_UNLOADED;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=lost file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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
            bloom_unavailable reject;

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
                bloom_unavailable pass;
                bloom_reject absent $arg_id zone=lost status=410;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        add_header X-Backend 1;
        location / { return 200 "backend"; }
    }
}
CONF

$t->run;


sub is_outcome {
    my ($path, $expected, $what) = @_;

    my $r = $t->get($path);

    is($r->status . ' ' . ($r->header('X-Bloom') // ''), $expected, $what);

    return $r;
}


sub logged {
    my ($path) = @_;

    my $mark = $t->log_mark;
    $t->get($path);

    return join '|', $t->log_since($mark)
        =~ /((?:rejecting|routing|passing) request.*? zone "\w+")/g;
}


subtest 'pass, the default' => sub {
    is_outcome("/pass/$_?id=one", '200 UNAVAILABLE lost', $_)
        for qw(reject reject-present route);
    is_outcome("/pass/$_?id=none", '200 UNAVAILABLE lost', "$_, another key")
        for qw(reject reject-present route);
    is_outcome('/pass/reject', '200 ', 'no key, no question');
};


subtest 'reject' => sub {
    is_outcome("/reject/$_?id=one", '503 UNAVAILABLE lost', $_)
        for qw(reject route pass page);
    is_outcome('/reject/reject', '200 ', 'no key, no question');
    is($t->get('/reject/page?id=none')->body, 'backend',
       'a page for it is not checked');
    is_outcome('/reject/not?id=one', '200 UNAVAILABLE lost',
               'a location may choose otherwise');
};


subtest 'beside zones that can tell' => sub {
    is_outcome('/pass/then?id=none', '411 REJECTED ids',
               'the next rule decides');
    is_outcome('/pass/then?id=one', '200 UNAVAILABLE lost',
               'and if it does not fire, the zone that is lost is named');
    is_outcome('/pass/before?id=one', '200 UNAVAILABLE lost',
               'in either order');
    is_outcome('/pass/before?id=none', '411 REJECTED ids',
               'a rule before it decides');
    is_outcome('/pass/allowed?id=none', '411 REJECTED ids',
               'an allow list that is lost allows nobody');
    is_outcome('/pass/routed?id=none', '200 ROUTED ids',
               'what was routed stays so');

    is_outcome('/reject/good?id=one', '200 PASSED ids', 'a good zone passes');
    is_outcome('/reject/good?id=none', '411 REJECTED ids', 'and rejects');
    is_outcome('/reject/before?id=none', '411 REJECTED ids',
               'a rule that fires comes first');
    is_outcome('/reject/before?id=one', '503 UNAVAILABLE lost',
               'one that does not leaves it to the next');
    is_outcome('/reject/allowed?id=one', '200 PASSED ids',
               'what is allowed asks no lost zone');
};


subtest 'dry run' => sub {
    is_outcome('/reject/dry?id=one', '200 UNAVAILABLE lost', 'passes');
};


subtest 'lookup' => sub {
    is($t->get('/lookup?id=one')->body, '<>', 'is empty');
    is($t->get('/if?id=none')->body, 'passed', 'and not 0');
};


subtest 'the log' => sub {
    my $line = 'key "one" undecided in bloom zone "lost"';

    is(logged('/pass/reject?id=one'), "passing request: $line", 'pass');
    is(logged('/reject/reject?id=one'), "rejecting request: $line", 'reject');
    is(logged('/reject/dry?id=one'), "rejecting request, dry run: $line",
       'dry run');
    is(logged('/lookup?id=one'), '', 'lookup');
};


done_testing;
