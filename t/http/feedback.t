#!/usr/bin/perl

# bloom_feedback: keys that a shield let pass, and of which the backend says
# that there is no such thing, are counted; nothing else is.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;

my $t = BloomTest->new;

# The filter has "gone", and the backend no more.

$t->build_image('ids.bloom', ['one', 'gone'], '-p', '1e-9', '--seed', 1);
$t->build_image('other.bloom', ['one', 'gone'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=other file=%%TESTDIR%%/other.bloom;
    bloom_feedback 404 410;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        proxy_set_header X-Status $arg_status;

        location /bloom/ { bloom_api; }

        location / {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /off {
            bloom_feedback off;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /own {
            bloom_reject absent $arg_id zone=ids;
        }
        location /down {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 410;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
            error_page 502 =404 /own/page;
        }
        location /page {
            bloom_reject absent $arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 =200 @sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @sorry { return 200 "sorry"; }
        location /fallback {
            bloom_reject absent $arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 = @fallback;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @fallback {
            proxy_set_header X-Status 404;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /two {
            bloom_reject absent $arg_id zone=ids;
            bloom_reject absent $arg_id zone=other;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry-two {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            bloom_reject absent $arg_other zone=other;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /audit-two {
            bloom_audit 100%;
            bloom_reject absent $arg_other zone=other;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-two {
            bloom_reject absent $arg_id zone=ids;
            bloom_route absent $arg_other zone=other to=@fallback;
        }
        location /block {
            bloom_reject present $arg_id zone=ids;
            bloom_pass absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /cached-page {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_valid any 1h;
            proxy_intercept_errors on;
            error_page 404 403 =200 @sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /cached {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_valid any 1h;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
}
CONF

$t->backend(8081, sub {
    my ($request) = @_;

    return { status => $request->{headers}{'x-status'} || 200, body => 'b' };
});
$t->run;


# What a request adds to "absent" and "false_positives".

sub counts {
    my ($path, %option) = @_;

    my $zone = $option{zone} // 'ids';
    my $before = zone_state($t, $zone)->{feedback};
    $t->request($option{method} // 'GET', $path);
    my $after = zone_state($t, $zone)->{feedback};

    return join ' ', map { $after->{$_} - $before->{$_} }
                         qw(absent false_positives);
}


is(zone_state($t, 'ids')->{feedback}{measured_fpr}, undef,
   'nothing is measured yet');

subtest 'a shield' => sub {
    is(counts('/?id=one'), '0 0', 'the backend has it');
    is(counts('/?id=gone&status=404'), '0 1', 'the backend has it not');
    is(counts('/?id=gone&status=410'), '0 1', 'any status that was given');
    is(counts('/?id=gone&status=403'), '0 0', 'no other');
    is(counts('/?id=gone&status=500'), '0 0', 'nor a failure');
    is(counts('/?id=none'), '1 0', 'a key that was turned away');
    is(counts('/'), '0 0', 'no key');
    is(counts('/?id=gone&status=404', method => 'HEAD'), '0 1', 'HEAD');
    is(counts('/route?id=none'), '1 0', 'routing away');
    is(counts('/route?id=gone&status=404'), '0 1', 'or not');
    is(counts('/dry?id=none&status=404'), '1 0', 'dry run: absent');
    is(counts('/dry?id=gone&status=404'), '0 1', 'dry run: false positive');
};

subtest 'whose answer' => sub {
    is(counts('/off?id=gone&status=404'), '0 0', 'off');
    is(counts('/off?id=none'), '0 0', 'off, and absent');
    is(counts('/own?id=gone'), '0 0', 'a 404 of nginx');
    is(counts('/down?id=gone'), '0 0', 'no backend, and an error page of 404');
    is($t->get('/page?id=gone&status=404')->status, 200, 'an error page');
    is(counts('/page?id=gone&status=404'), '0 1',
       'in place of what the backend said');
    is(counts('/fallback?id=gone&status=404'), '0 0', 'two backends');
    is(counts('/two?id=gone&status=404'), '0 0', 'two zones: neither the one');
    is(counts('/two?id=gone&status=404', zone => 'other'), '0 0',
       'nor the other');
    is(counts("/$_-two?id=gone&other=none&status=404"), '0 0',
       "two zones, and the other says absent: $_")
        for qw(dry audit route);
    is(counts('/dry-two?id=gone&status=404'), '0 1', 'no key for the other');
    is(counts('/block?id=gone&status=404'), '0 0', 'a block list');
    is(counts('/block?id=none&status=404'), '0 0', 'and an allow list');
    is(counts('/cached?id=gone&status=404'), '0 1', 'an answer not in the cache');
    is(counts('/cached?id=gone&status=404'), '0 1', 'and in the cache');
    is(counts('/cached-page?id=gone&status=404'), '0 1',
       'an error page for one that is not');
    is(counts('/cached-page?id=gone&status=404'), '0 1', 'and for one that is');
    is(counts('/cached-page?id=gone&status=403'), '0 0', 'of another status')
        for 1 .. 2;
};

subtest 'the rate' => sub {
    my $feedback = zone_state($t, 'ids')->{feedback};
    my ($absent, $false) = @$feedback{qw(absent false_positives)};

    cmp_ok(abs($feedback->{measured_fpr} - $false / ($false + $absent)), '<',
           1e-5, 'the share of those that were not turned away');
};

done_testing;
