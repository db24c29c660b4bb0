#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests how locations inherit rules and bloom_dry_run from server and http: a
# level that has rules inherits none, and "bloom_rules off" cancels them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

configure_rules($t, { ids => ['one', 'UP'] }, <<'CONF', backend => 8090);
    bloom_zone zone=empty capacity=10 fpr=0.1;

    add_header X-Bloom "$bloom_status $bloom_zone" always;

    bloom_reject absent $arg_id zone=ids status=410;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location / { proxy_pass http://127.0.0.1:%%PORT_8090%%; }
        location /own {
            bloom_reject absent $arg_id zone=ids status=411;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /pass {
            bloom_pass absent $arg_id zone=empty;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /off {
            bloom_rules off;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;

            location /off/inner {
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
            location /off/on {
                bloom_reject absent $arg_id zone=ids status=412;
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
        }
        location /dry {
            bloom_dry_run on;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;

            location /dry/inner {
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
            location /dry/wet {
                bloom_dry_run off;
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;

        bloom_reject absent $arg_id zone=ids status=420;

        location / {
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /nested {
            bloom_reject absent $arg_id zone=ids status=421;

            location /nested/same {
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
            location /nested/own {
                bloom_reject absent $arg_id zone=ids status=422;
                proxy_pass http://127.0.0.1:%%PORT_8090%%;

                location /nested/own/off {
                    bloom_rules off;
                    proxy_pass http://127.0.0.1:%%PORT_8090%%;
                }
            }
        }
        location /if {
            if ($arg_case = other) {
                set $x 1;
                proxy_pass http://127.0.0.1:%%PORT_8090%%;
            }
            bloom_reject absent $arg_id zone=ids status=423;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /limit {
            bloom_reject absent $arg_id zone=ids status=424;
            limit_except GET { allow 127.0.0.1; }
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location ~ ^/item/(?<id>[^/]+)/(.+)$ {
            bloom_reject absent $id zone=ids status=425;
            bloom_reject absent $2 zone=ids status=426;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /rewritten {
            rewrite ^ /nested/own?id=none? last;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8082%%;

        bloom_rules off;
        bloom_dry_run on;

        location / { proxy_pass http://127.0.0.1:%%PORT_8090%%; }
        location /again {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /wet {
            bloom_dry_run off;
            bloom_reject absent $arg_id zone=ids;
        }
    }
CONF

$t->run;


sub is_outcome {
    my ($port, $path, $expected, $name) = @_;

    is(outcome($t, $path, port => $port), $expected, $name);
}


subtest 'locations inherit the rules of http' => sub {
    is_outcome(8080, '/?id=none', '410 REJECTED ids',
               'an inherited rule of http rejects a request');
    is_outcome(8080, '/?id=one', '200 PASSED ids',
               'an inherited rule of http passes a request');
    is_outcome(8080, '/own?id=none', '411 REJECTED ids',
               'a location with its own bloom_reject inherits no rules');
    is_outcome(8080, '/pass?id=none', '200 PASSED empty',
               'a location with its own bloom_pass inherits no bloom_reject');
    is_outcome(8080, '/off?id=none', '200 ',
               'a location with bloom_rules off inherits no rules');
    is_outcome(8080, '/off/inner?id=none', '200 ',
               'a nested location inherits bloom_rules off');
    is_outcome(8080, '/off/on?id=none', '412 REJECTED ids',
               'a nested location has rules within one with bloom_rules off');
};


subtest 'locations inherit the rules of server' => sub {
    is_outcome(8081, '/?id=none', '420 REJECTED ids',
               'a server with its own rules inherits no rules of http');
    is_outcome(8082, '/?id=none', '200 ',
               'a server with bloom_rules off inherits no rules of http');
    is_outcome(8082, '/again?id=none', '200 REJECTED_DRY_RUN ids',
               'a location has rules within a server with bloom_rules off');
};


subtest 'locations inherit the rules of an outer location' => sub {
    is_outcome(8081, '/nested/same?id=none', '421 REJECTED ids',
               'a nested location inherits the rules of the outer location');
    is_outcome(8081, '/nested/own?id=none', '422 REJECTED ids',
               'a nested location with its own rules inherits none');
    is_outcome(8081, '/nested/own/off?id=none', '200 ',
               'a nested location with bloom_rules off inherits no rules');
    is_outcome(8081, '/if?id=none', '423 REJECTED ids',
               'a location with an "if" that is false has its rules');
    is_outcome(8081, '/if?id=none&case=other', '423 REJECTED ids',
               'an "if" inherits a rule that rejects a request');
    is_outcome(8081, '/if?id=one&case=other', '200 PASSED ids',
               'an "if" inherits a rule that passes a request');
    is_outcome(8081, '/rewritten?id=one', '422 REJECTED ids',
               'a rewritten request meets the rules of its new location');
};


subtest 'limit_except inherits the rules of its location' => sub {
    is_outcome(8081, '/limit?id=none', '424 REJECTED ids',
               'a request outside of limit_except is rejected');
    is($t->post('/limit?id=none', 'x', port => 8081)->status, 424,
       'a request within limit_except is rejected');
    is($t->post('/limit?id=one', 'x', port => 8081)->status, 200,
       'a request within limit_except is passed');
};


subtest 'captures of a location are keys' => sub {
    is_outcome(8081, '/item/one/UP', '200 PASSED ids',
               'a request whose two captures are present is passed');
    is_outcome(8081, '/item/none/UP', '425 REJECTED ids',
               'a request whose named capture is absent is rejected');
    is_outcome(8081, '/item/one/down', '426 REJECTED ids',
               'a request whose numbered capture is absent is rejected');
    is_outcome(8081, '/item/%6fn%65/UP', '200 PASSED ids',
               'a request whose capture is present after decoding is passed');
    is_outcome(8081, '/item/one?id=none', '420 REJECTED ids',
               'a URI without the captures meets the rules of its server');
};


subtest 'locations inherit bloom_dry_run' => sub {
    is_outcome(8080, '/dry?id=none', '200 REJECTED_DRY_RUN ids',
               'bloom_dry_run of a location applies to rules of http');
    is_outcome(8080, '/dry/inner?id=none', '200 REJECTED_DRY_RUN ids',
               'a nested location inherits bloom_dry_run on');
    is_outcome(8080, '/dry/wet?id=none', '410 REJECTED ids',
               'a nested location overrides bloom_dry_run on');
    is_outcome(8082, '/again?id=none', '200 REJECTED_DRY_RUN ids',
               'a location inherits bloom_dry_run on from its server');
    is_outcome(8082, '/wet?id=none', '404 REJECTED ids',
               'a location overrides bloom_dry_run on of its server');
};


done_testing;
