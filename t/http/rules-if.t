#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests if= of bloom_pass, bloom_reject and bloom_route: a rule whose condition
# is empty or "0" looks nothing up, counts nothing and does not fire.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

$t->build_image('cold.bloom', ['one'], '-p', '1e-9', '--seed', 1, '--as-of',
                '2020-01-01T00:00:00Z');

configure_rules($t, { ids => ['one', 'both'], bad => ['bad', 'both'] },
                <<'CONF', backend => 8081);
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;
    bloom_zone zone=feedback file=%%TESTDIR%%/ids.bloom;
    bloom_state_path %%TESTDIR%%/state;

    map $request_method $reads { GET 1; HEAD 1; }
    map $arg_if $negated { 0 1; "" 1; default 0; }
    bloom_arg id $id;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;

        location /bloom/ { bloom_api; }

        location = /item {
            bloom_reject absent $id zone=ids invalid=fire empty=fire
                         if=$reads name=item;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /value {
            bloom_reject absent $id zone=ids if=$arg_if;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /text {
            bloom_reject absent $id zone=ids "if=${arg_if}${arg_and}";
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /pass {
            bloom_pass present $id zone=ids if=$arg_if;
            bloom_reject present $id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /route {
            bloom_route present $id zone=bad if=$arg_if to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @routed { bloom_rules off; return 200 "routed"; }
        location = /cold {
            bloom_unknown reject;
            bloom_reject absent $id zone=cold if=$arg_if;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /list {
            bloom_reject absent $id zone=ids if=$arg_if split=,;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /dry {
            bloom_reject absent $id zone=ids if=$arg_if dry_run;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /feedback {
            bloom_feedback 404;
            bloom_reject absent $id zone=feedback if=$reads;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
        }

        # rules before, between and after a rule that may be skipped

        location = /first {
            bloom_reject present $id zone=bad status=481 if=$arg_if;
            bloom_reject present $arg_a zone=bad status=482;
            bloom_reject present $arg_b zone=bad status=483;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /middle {
            bloom_reject present $arg_a zone=bad status=482;
            bloom_reject present $arg_b zone=bad status=483;
            bloom_reject present $id zone=bad status=481 if=$arg_if;
            bloom_reject present $arg_c zone=bad status=484;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /either {
            bloom_reject present $id zone=bad status=481 if=$arg_if;
            bloom_reject present $id zone=bad status=482 if=$negated;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /before-map {
            bloom_reject absent $id zone=ids if=$arg_if status=481;
            bloom_reject present $bloom_status zone=bad status=482;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
    server {
        listen 127.0.0.1:%%PORT_8082%%;
        location / { bloom_rules off; return 404; }
    }
CONF

$t->run;


sub is_outcome {
    my ($path, $expected, $name) = @_;

    is(outcome($t, $path), $expected, $name);
}


# Returns the outcome of a request with a method.

sub outcome_of {
    my ($method, $path) = @_;

    my $response = $t->request($method, $path);
    return $response->status . ' ' . ($response->header('X-Bloom') // '');
}


# Returns what a zone and a rule have counted, in one text.

sub counted {
    my ($zone, $rule) = @_;

    my $counters = zone_state($t, $zone)->{counters};
    my $text = api($t, GET => 'metrics')->body;
    my %count = $text =~ /^nginx_bloom_rule_\w+\{rule="\Q$rule\E".*?
                          (?:answer|decision)="(\w+)"\}\ (\d+)$/gmx;

    return join ' ', (map { "$_ $counters->{$_}" }
                          qw(checks absent present invalid rejected)),
                     map { $count{$_} ? "$_ $count{$_}" : () }
                         sort keys %count;
}


subtest 'a shield for reads lets other methods through' => sub {
    my $before = counted('ids', 'item');

    for my $method (qw(POST PUT OPTIONS DELETE PATCH)) {
        is(outcome_of($method, '/item?id=new'), '200 ',
           "$method reaches the backend, and \$bloom_status is empty");
    }

    is(outcome_of('PUT', '/item?id=a&id=b'), '200 ',
       'invalid=fire does not apply to a rule that is skipped');
    is(outcome_of('PUT', '/item'), '200 ',
       'empty=fire does not apply to a rule that is skipped');
    is(counted('ids', 'item'), $before,
       'a rule that is skipped looks nothing up and counts nothing');

    is(outcome_of($_, '/item?id=new'), '404 REJECTED ids', "$_ is rejected")
        for qw(GET HEAD);
    is_outcome('/item?id=one', '200 PASSED ids', 'a present key passes');
    is_outcome('/item?id=a&id=b', '404 INVALID ids', 'invalid=fire applies');
    is_outcome('/item', '404 REJECTED ids', 'empty=fire applies');
    is(counted('ids', 'item'),
       'checks 3 absent 2 present 1 invalid 1 rejected 4'
       . ' absent 2 empty 1 fired 4 invalid 1 present 1',
       'a rule that runs counts');
};


subtest 'a condition holds unless it is empty or 0' => sub {
    for (['', '200 '], ['&if=', '200 '], ['&if=0', '200 '],
         ['&if=1', '404 REJECTED ids'], ['&if=00', '404 REJECTED ids'],
         ['&if=off', '404 REJECTED ids'], ['&if=%30', '404 REJECTED ids'])
    {
        my ($query, $expected) = @$_;
        is_outcome("/value?id=new$query", $expected,
                   "the outcome for the condition '$query' is $expected");
    }

    for (['', '200 '], ['&if=0', '200 '], ['&and=0', '200 '],
         ['&if=0&and=0', '404 REJECTED ids'], ['&and=x', '404 REJECTED ids'])
    {
        my ($query, $expected) = @$_;
        is_outcome("/text?id=new$query", $expected,
                   "the outcome for the text '$query' is $expected");
    }
};


subtest 'each action takes a condition' => sub {
    is_outcome('/pass?id=both&if=1', '200 PASSED ids', 'bloom_pass passes');
    is_outcome('/pass?id=both', '403 REJECTED bad',
               'without its condition bloom_pass does not pass');
    is($t->get('/route?id=bad&if=1')->body, 'routed', 'bloom_route routes');
    is_outcome('/route?id=bad', '200 ',
               'without its condition bloom_route does not route');
    is_outcome('/cold?id=one&if=1', '503 UNKNOWN cold',
               'bloom_unknown applies to a rule that runs');
    is_outcome('/cold?id=one', '200 ',
               'bloom_unknown does not apply to a rule that is skipped');
    is_outcome('/list?id=one,new&if=1', '404 REJECTED ids',
               'a rule with split= runs');
    is_outcome('/list?id=one,new', '200 ', 'a rule with split= is skipped');
    is_outcome('/dry?id=new&if=1', '200 REJECTED_DRY_RUN ids',
               'a rule on trial runs');
    is_outcome('/dry?id=new', '200 ', 'a rule on trial is skipped');
};


subtest 'a rule that is skipped is not blamed by bloom_feedback' => sub {
    my $said = sub { zone_state($t, 'feedback')->{feedback}{false_positives} };

    is(outcome_of('POST', '/feedback?id=one'), '404 ',
       'POST reaches the backend');
    is($said->(), 0, 'a 404 for POST is no false positive');
    $t->get('/feedback?id=one');
    is($said->(), 1, 'a 404 for GET is a false positive');
};


subtest 'each rule of a list has its own key, whichever are skipped' => sub {
    for (# path, outcome
         ['first?id=bad&if=1', '481 REJECTED bad'],
         ['first?id=bad', '200 '],
         ['first?id=bad&a=bad', '482 REJECTED bad'],
         ['first?id=none&if=1&a=bad', '482 REJECTED bad'],
         ['first?b=bad', '483 REJECTED bad'],
         ['first?b=none', '200 PASSED bad'],
         ['middle?id=bad&if=1', '481 REJECTED bad'],
         ['middle?id=bad&if=1&b=bad', '483 REJECTED bad'],
         ['middle?id=bad&if=0&c=bad', '484 REJECTED bad'],
         ['middle?id=bad', '200 '],
         ['either?id=bad&if=1', '481 REJECTED bad'],
         ['either?id=bad&if=0', '482 REJECTED bad'],
         ['either?id=none', '200 PASSED bad'],
         ['before-map?id=new&if=1', '481 REJECTED ids'],
         ['before-map?id=one&if=1', '200 PASSED bad'],
         ['before-map?id=new', '200 '])
    {
        my ($path, $expected) = @$_;

        # a request before it has other keys

        $t->get('/middle?a=bad&b=bad&c=bad&id=bad&if=1');
        is_outcome("/$path", $expected, "the outcome of $path is $expected");
    }
};


done_testing;
