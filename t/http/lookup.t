#!/usr/bin/perl

# bloom_lookup: a variable that is 0 for a key that is absent, 1 for one that
# may be present, and empty without a key.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one', 'a b'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format known '$request_uri [$known]';

    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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
            set $second $key_known;
            set $key "";
            return 200 "<$first><$second><$key_known>";
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
}
CONF

$t->write_file('html/ssi/page.html',
    '<!--# include virtual="/return?id=none" -->'
    . '<!--# include virtual="/return?id=one" -->'
    . '<!--# include virtual="/return" -->');

my $backend = $t->backend(8081, sub { "backend $_[0]{uri}" });

$t->run;

sub body { return $t->get(@_)->body }


subtest 'its values' => sub {
    is(body('/return?id=one'), '<1>', 'present');
    is(body('/return?id=none'), '<0>', 'absent');
    is(body('/return?id=a+b'), '<1>', 'decoded');
    is(body('/return?id='), '<>', 'empty key');
    is(body('/return'), '<>', 'no key');
    is(body('/composed?a=o&b=ne'), '<11>', 'of two variables');
    is(body('/composed?a=o&b=n'), '<01>', 'or parts of them');
    is(body('/composed'), '<1>', 'or none of them');
};


subtest 'where it serves' => sub {
    is(body('/map?id=one'), 'present', 'map, 1');
    is(body('/map?id=none'), 'absent', 'map, 0');
    is(body('/map'), 'none', 'map, empty');
    is(body('/if?id=one'), 'passed', 'if, 1');
    is($t->get('/if?id=none')->status, 404, 'if, 0');
    is(body('/if'), 'passed', 'if, empty');
    is(body('/bare-if?id=one'), 'present', 'if ($known), 1');
    is(body('/bare-if?id=none'), 'not', 'if ($known), 0');

    my $r = $t->get('/rules?id=one');
    is($r->body, '<1>', 'beside a rule');
    is($t->get('/rules?id=none')->header('X-Known'), '0 REJECTED',
       'beside a rule that rejects');

    my %lines;
    my @uris = qw(/return?id=one /return?id=none /return);
    ok(wait_until(sub {
        %lines = map { /^(\S+) \[(.*)\]$/ }
                     split /\n/, $t->read_file('known.log');
        return exists $lines{'/rules?id=none'};
    }), 'the access log is written');
    is(join(' ', map { "<$_>" } @lines{@uris}), '<1> <0> <>', 'and has it');
};


subtest 'it follows its key' => sub {
    is(body('/changes'), '<1><0><>', 'which changes');
    is(body('/redirected'), '<0>', 'after a redirect');

    my $r = $t->get('/ssi/page.html?id=one');
    is($r->body, '<0><1><>', 'subrequests have theirs');
    is($r->header('X-Known'), 1, 'and the request its own');
    is(body('/ssi/page.html?id=none'), '<0><1><>',
       'whatever the key of the request');

    my @r = $t->pipeline(map { "/return?id=$_" } qw(one none one none));
    is(join('', map { $_->body } @r), '<1><0><1><0>', 'pipelined requests');
};


subtest 'admission to a cache' => sub {
    my $cache = sub { $t->get("/cached?id=$_[0]")->header('X-Cache') };

    is($cache->('one'), 'MISS', 'known, at first');
    is($cache->('one'), 'HIT', 'known, then from the cache');
    is($cache->('none'), 'BYPASS', 'unknown, at first');
    is($cache->('none'), 'BYPASS', 'unknown, and never from the cache');

    my @asked = map { $_->{uri} } $backend->requests;
    is("@asked", '/cached?id=one /cached?id=none /cached?id=none',
       'what the backend was asked');

    my @files = glob $t->testdir . '/cache/*';
    is(scalar @files, 1, 'what is kept');
};


done_testing;
