#!/usr/bin/perl

# How rules and their settings go from http to server to location: a level
# with rules of its own inherits none, "bloom_rules off" empties the list.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one', 'UP'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
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

    server {
        listen 127.0.0.1:%%PORT_8090%%;
        add_header X-Backend 1;
        bloom_rules off;
        location / { return 200 "backend"; }
    }
}
CONF

$t->run;


sub is_outcome {
    my ($port, $path, $expected, $what) = @_;

    my $r = $t->get($path, port => $port);
    my $got = $r->status . ' ' . ($r->header('X-Bloom') // '');

    is($got, $expected, $what);
}


subtest 'from http' => sub {
    is_outcome(8080, '/?id=none', '410 REJECTED ids', 'to a location');
    is_outcome(8080, '/?id=one', '200 PASSED ids', 'which it lets pass');
    is_outcome(8080, '/own?id=none', '411 REJECTED ids',
               'but one with its own');
    is_outcome(8080, '/pass?id=none', '200 PASSED empty',
               'even if they are of another kind');
    is_outcome(8080, '/off?id=none', '200 ', 'or off');
    is_outcome(8080, '/off/inner?id=none', '200 ', 'which is inherited');
    is_outcome(8080, '/off/on?id=none', '412 REJECTED ids',
               'until others come');
};


subtest 'from server' => sub {
    is_outcome(8081, '/?id=none', '420 REJECTED ids', 'hides those of http');
    is_outcome(8082, '/?id=none', '200 ', 'off hides them, too');
    is_outcome(8082, '/again?id=none', '200 REJECTED_DRY_RUN ids',
               'a location may have its own');
};


subtest 'from location' => sub {
    is_outcome(8081, '/nested/same?id=none', '421 REJECTED ids',
               'to one in it');
    is_outcome(8081, '/nested/own?id=none', '422 REJECTED ids',
               'which may have its own');
    is_outcome(8081, '/nested/own/off?id=none', '200 ', 'or none');
    is_outcome(8081, '/if?id=none', '423 REJECTED ids', 'without "if"');
    is_outcome(8081, '/if?id=none&case=other', '423 REJECTED ids', 'into "if"');
    is_outcome(8081, '/if?id=one&case=other', '200 PASSED ids',
               'into "if", passing');
    is_outcome(8081, '/rewritten?id=one', '422 REJECTED ids',
               'a rewrite brings the rules of where it leads');
};


subtest 'limit_except' => sub {
    is_outcome(8081, '/limit?id=none', '424 REJECTED ids', 'outside');
    is($t->post('/limit?id=none', 'x', port => 8081)->status, 424, 'inside');
    is($t->post('/limit?id=one', 'x', port => 8081)->status, 200, 'passing');
};


subtest 'captures' => sub {
    is_outcome(8081, '/item/one/UP', '200 PASSED ids', 'both are there');
    is_outcome(8081, '/item/none/UP', '425 REJECTED ids', 'by name');
    is_outcome(8081, '/item/one/down', '426 REJECTED ids', 'by number');
    is_outcome(8081, '/item/%6fn%65/UP', '200 PASSED ids', 'decoded by nginx');
    is_outcome(8081, '/item/one?id=none', '420 REJECTED ids',
               'an URI that does not match is not captured');
};


subtest 'dry run' => sub {
    is_outcome(8080, '/dry?id=none', '200 REJECTED_DRY_RUN ids',
               'with rules of http');
    is_outcome(8080, '/dry/inner?id=none', '200 REJECTED_DRY_RUN ids',
               'is inherited');
    is_outcome(8080, '/dry/wet?id=none', '410 REJECTED ids', 'or ended');
    is_outcome(8082, '/again?id=none', '200 REJECTED_DRY_RUN ids',
               'from server');
    is_outcome(8082, '/wet?id=none', '404 REJECTED ids', 'or ended there');
};


done_testing;
