#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_lookup: its variable is 0 for an absent key, 1 for a present key
# and empty without a key, wherever nginx evaluates it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

configure_rules($t, { ids => ['one', 'a b'] }, <<'CONF');
    log_format known '$request_uri [$known]';

    bloom_lookup $arg_id $known zone=ids decode=form;
    bloom_lookup $key $key_known zone=ids;
    bloom_lookup "$arg_a$arg_b" $composed_known zone=ids;
    bloom_lookup one $always zone=ids;

    map $known $word { 0 absent; 1 present; default none; }

    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        access_log %%TESTDIR%%/known.log known;
        root %%TESTDIR%%/html;

        location /return { return 200 "<$known>"; }
        location /map { return 200 $word; }
        location /composed { return 200 "<$composed_known$always>"; }

        location /if {
            if ($known = 0) { return 404; }
            return 200 "passed";
        }
        location /bare-if {
            if ($known) { return 200 "present"; }
            return 200 "not";
        }
        location /changes {
            set $key one;
            set $first $key_known;
            set $key none;
            set $then $key_known;
            set $key "";
            return 200 "<$first><$then><$key_known>";
        }
        location /redirected {
            set $key one;
            if ($key_known = 0) { return 500; }
            try_files /none /redirected-to;
        }
        location /redirected-to {
            set $key none;
            return 200 "<$key_known>";
        }
        location /ssi/ { ssi on; add_header X-Known "$known"; }
        location /rules {
            bloom_reject absent $arg_id zone=ids;
            add_header X-Known "$known $bloom_status" always;
            try_files /none /return?$args;
        }

        location /cached {
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
            proxy_cache cache;
            proxy_cache_valid 1h;
            proxy_no_cache $not_known;
            proxy_cache_bypass $not_known;
            add_header X-Cache $upstream_cache_status;
        }
    }

    map $known $not_known { 0 1; default ""; }
CONF

$t->write_file('html/ssi/page.html',
    '<!--# include virtual="/return?id=none" -->'
    . '<!--# include virtual="/return?id=one" -->'
    . '<!--# include virtual="/return" -->');

my $backend = $t->backend(8081, sub { "backend $_[0]{uri}" });

$t->run;

sub body { return $t->get(@_)->body }


subtest 'the variable says whether its key is present' => sub {
    outcomes_are($t, <<'END');
    /return?id=one       "<1>"   a present key
    /return?id=none      "<0>"   an absent key
    /return?id=a+b       "<1>"   a key that is present after decoding
    /return?id=          "<>"    an empty key
    /return              "<>"    no key
    /composed?a=o&b=ne   "<11>"  a key of two variables that is present
    /composed?a=o&b=n    "<01>"  a key of two variables that is absent
    /composed            "<1>"   a key of two empty variables
END
};


subtest 'the variable serves where nginx evaluates variables' => sub {
    outcomes_are($t, <<'END');
    /map?id=one          "present"  a map sees 1
    /map?id=none         "absent"   a map sees 0
    /map                 "none"     a map sees the empty text
    /if?id=one           "passed"   "if ($known = 0)" skips a present key
    /if?id=none          404        "if ($known = 0)" selects an absent key
    /if                  "passed"   "if ($known = 0)" skips no key
    /bare-if?id=one      "present"  "if ($known)" selects a present key
    /bare-if?id=none     "not"      "if ($known)" skips an absent key
END

    my $r = $t->get('/rules?id=one');
    is($r->body, '<1>', 'a request that a rule passes has the variable');
    is($t->get('/rules?id=none')->header('X-Known'), '0 REJECTED',
       'a request that a rule rejects has the variable');

    my %lines;
    my @uris = qw(/return?id=one /return?id=none /return);
    ok(wait_until(sub {
        %lines = map { /^(\S+) \[(.*)\]$/ }
                     split /\n/, $t->read_file('known.log');
        return exists $lines{'/rules?id=none'};
    }), 'the access log is written');
    is(join(' ', map { "<$_>" } @lines{@uris}), '<1> <0> <>',
       'the access log has the variable of each request');
};


subtest 'the variable follows its key' => sub {
    is(body('/changes'), '<1><0><>',
       'the variable changes with the variable that is its key');
    is(body('/redirected'), '<0>',
       'the variable changes with its key after a redirect');

    my $r = $t->get('/ssi/page.html?id=one');
    is($r->body, '<0><1><>', 'each subrequest has the variable of its own key');
    is($r->header('X-Known'), 1,
       'a request with subrequests has the variable of its own key');
    is(body('/ssi/page.html?id=none'), '<0><1><>',
       'the key of the request does not change the variable of subrequests');

    my @r = $t->pipeline(map { "/return?id=$_" } qw(one none one none));
    is(join('', map { $_->body } @r), '<1><0><1><0>',
       'each pipelined request has the variable of its own key');
};


subtest 'the variable admits responses to a cache' => sub {
    my $cache = sub { $t->get("/cached?id=$_[0]")->header('X-Cache') };

    is($cache->('one'), 'MISS',
       'the first request for a present key misses the cache');
    is($cache->('one'), 'HIT',
       'the second request for a present key hits the cache');
    is($cache->('none'), 'BYPASS',
       'the first request for an absent key bypasses the cache');
    is($cache->('none'), 'BYPASS',
       'the second request for an absent key bypasses the cache');

    my @asked = map { $_->{uri} } $backend->requests;
    is("@asked", '/cached?id=one /cached?id=none /cached?id=none',
       'the backend sees each request that the cache does not answer');

    my @files = glob $t->testdir . '/cache/*';
    is(scalar @files, 1, 'the cache has only the response for a present key');
};


done_testing;
