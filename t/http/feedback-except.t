#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# bloom_feedback with except=on: a false positive that the backend does not know
# passes once, and is absent from then on.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $except = 'except=on rate=1000r/s after=1s';

$t->build_image('one.bloom', [keys_of('id', 1000)], '-p', '1e-2', '--seed', 1);
install_image($t, 'one');

$t->build_image("$_.bloom",
                ['www.example.com', map { "n$_.example.org" } 1 .. 99],
                '--form', $_, '-p', '0.1', '--seed', 1) for qw(lower host url);

my @false = false_positives($t, 'one', 300);

sub proxy { return 'proxy_pass http://127.0.0.1:%%PORT_8081%%;' }

sub conf {
    my (%option) = @_;

    my $removals = $option{removals} // 1000;

    configure($t, ["zone=ids file=ids.bloom removals=$removals",
                   'zone=other file=one.bloom',
                   map { "zone=$_ file=$_.bloom form=$_" } qw(lower host url)],
              api => 1, add => 1, workers => 2, http => <<'CONF',
    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
CONF
              server => <<"CONF" =~ s/PROXY/proxy()/ger);
        bloom_feedback 404 $except;
        location /of/ids { bloom_reject absent \$arg_id zone=ids; PROXY }
        location /of/off {
            bloom_feedback 404;
            bloom_reject absent \$arg_id zone=ids; PROXY
        }
        location /of/10m {
            bloom_feedback 404 except=on after=10m;
            bloom_reject absent \$arg_id zone=ids; PROXY
        }
        location /of/two {
            bloom_reject absent \$arg_id zone=ids;
            bloom_reject absent \$arg_id zone=other; PROXY
        }
        location /of/split {
            bloom_reject absent \$arg_id zone=ids split=,; PROXY
        }
        location /of/trial {
            bloom_reject absent \$arg_id zone=ids dry_run; PROXY
        }
        location /of/dry {
            bloom_dry_run on;
            bloom_reject absent \$arg_id zone=ids; PROXY
        }
        location /of/cached {
            bloom_reject absent \$arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_key \$arg_id;
            proxy_cache_valid any 1h; PROXY
        }
        location /of/fill {
            proxy_cache cache;
            proxy_cache_key \$arg_id;
            proxy_cache_valid any 1h; PROXY
        }
        location /of/page {
            bloom_reject absent \$arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 =200 \@sorry; PROXY
        }
        location \@sorry { return 200 "sorry"; }
        location /of/fallback {
            bloom_reject absent \$arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 = \@fallback; PROXY
        }
        location \@fallback { PROXY }
        location /of/own { bloom_reject absent \$arg_id zone=ids; }
        location /of/down {
            bloom_reject absent \$arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
            error_page 502 =404 /own/page;
        }
        location /of/sub {
            auth_request /of/ids;
            auth_request_set \$whatever 1;
            error_page 500 =404 /own/page; PROXY
        }
        location /of/lower { bloom_reject absent \$arg_id zone=lower; PROXY }
        location /of/host { bloom_reject absent \$arg_id zone=host; PROXY }
        location /of/url { bloom_reject absent \$arg_id zone=url; PROXY }
CONF
}

conf();

my $backend = feedback_backend($t, 8081);

sub request { return $t->request($_[2] // 'GET', "/of/$_[0]?id=$_[1]")->status }

# Returns how often the backend was asked for a key.

sub asked {
    my ($key) = @_;

    return scalar grep { $_->{uri} =~ /[?&]id=\Q$key\E(?:&|$)/ }
                       $backend->requests;
}

sub known { return scalar ask($t, 'ids', @_) }

# Tests whether a request for a new false positive is excepted.

sub is_excepted {
    my ($wanted, $name, $location, $method) = @_;

    my $key = shift @false;

    request($location, $key, $method);
    is(known($key), $wanted ? '0' : '1', $name);
}

$t->run;

subtest 'a key is not excepted before the image has served for a second' => sub {
    is_excepted(0, 'after=10m', '10m');
    await_feedback($t, 'ids', '/of/ids?id=', shift @false);
};

subtest 'a false positive passes once' => sub {
    my $key = shift @false;

    is(known($key), 1, 'the filter takes it for present');
    is(request('ids', $key), 404, 'the backend does not know it');
    is(known($key), 0, 'it is absent from then on');

    for (1 .. 50) {
        my @got = map { $_->status } $t->pipeline(("/of/ids?id=$key") x 200);
        is(scalar(grep { $_ == 404 } @got), 200, 'all requests get 404') or last;
    }

    is(asked($key), 1, 'the backend sees one of 10,000 requests');
    is(excepted($t, 'other'), 0, 'another zone with this image excepts no key');
};

subtest 'a hundred false positives' => sub {
    my @keys = splice @false, 0, 100;
    my $before = excepted($t, 'ids');

    $t->pipeline(map { "/of/ids?id=$_" } @keys);
    is(excepted($t, 'ids') - $before, 100, 'all are excepted');
    is(known(@keys), '0' x 100, 'all are absent');
    is(known(keys_of('id', 1000)), '1' x 1000, 'all keys are present');
};

subtest 'which requests are believed' => sub {
    is_excepted(1, 'HEAD', 'ids', 'HEAD');
    is_excepted(0, $_, 'ids', $_) for qw(POST PUT DELETE PATCH OPTIONS);
    is_excepted(0, 'except=on is not given', 'off');
    is_excepted(0, 'after= is longer than the image serves', '10m');
    is_excepted(0, 'two rules let the request pass', 'two');
    is_excepted(0, 'a rule has a list of keys', 'split');
    is_excepted(0, 'a rule is on trial', 'trial');
    is_excepted(1, 'bloom_dry_run', 'dry');
    is_excepted(1, 'an error page instead of the backend\'s', 'page');
    is_excepted(0, 'a second backend', 'fallback');
    is_excepted(0, 'a status of nginx itself', 'own');
    is_excepted(0, 'a backend that is down', 'down');
    is_excepted(0, 'a subrequest', 'sub');
    is_excepted(1, 'a response that is put into the cache', 'cached');

    my $key = shift @false;
    request('fill', $key);
    request('cached', $key) for 1 .. 3;
    is(known($key), 1, 'a cached response');
    is(asked($key), 1, 'it was a cached one');

    $key = shift @false;
    has_row($t, $key);
    is(request('ids', $key), 200, 'the backend has a key of which the image '
       . 'does not know');
    is(known($key), 1, 'another status');
};

subtest 'key forms' => sub {
    for my $form (qw(lower host url)) {
        my ($key) = false_positives($t, $form, 1, prefix => 'x',
                                    suffix => '.example.net');
        my $asked = $form eq 'url' ? "http://$key/" : uc $key;
        my $path = "/of/$form?id=$asked";

        wait_until(sub { $t->get($path); excepted($t, $form) });

        is(excepted($t, $form), 1, "$form: one key is excepted");
        is(scalar ask($t, $form, $asked, $key, 'www.example.com'), '001',
           "$form: it is absent however it is written");
    }

    # a parent that is present makes its names present, so their own bits do not
    # matter

    my $before = excepted($t, 'host');
    my @names = map { "x$_.www.example.com" } 1 .. 50;

    $t->pipeline(map { "/of/host?id=$_" } @names);

    is(scalar ask($t, 'host', @names, 'www.example.com'), '1' x 51,
       'host: names below a present name stay present');
};

subtest 'an added key is never excepted' => sub {
    for my $how ('POST', 'bloom_add') {
        my $add = sub {
            my ($key) = @_;

            return $how eq 'POST' ? add($t, 'ids', [$key])
                                  : $t->get("/add/ids?k=$key");
        };

        my $key = shift @false;
        $add->($key);
        request('ids', $key) for 1 .. 3;
        is(known($key), 1, "$how: a key that was added before the request");

        $key = shift @false;
        my $connection = answers_late($t, "/of/ids?id=$key", "late$how");
        $add->($key);
        is(let_answer($t, $connection, "late$how")->status, 404,
           "$how: a response of the backend is late");
        is(known($key), 1, "$how: a key that was added during the request");

        $key = shift @false;
        request('ids', $key);
        is(known($key), 0, "$how: an excepted key is absent");
        $add->($key);
        is(known($key), 1, "$how: and present once it is added");
        has_row($t, $key);
        is(request('ids', $key), 200, "$how: it passes");
    }
};

# t/http/feedback-temporary.t has what becomes of excepted keys at a load.

subtest 'loads' => sub {
    my ($late, $added) = splice @false, 0, 2;

    $t->get("/of/ids?id=$added");
    is(known($added), '0', 'excepted');
    add($t, 'ids', [$added]);

    my $connection = answers_late($t, "/of/ids?id=$late", 'load');

    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a load of the image');
    is(known($added), '1', 'a key that was added is present');
    let_answer($t, $connection, 'load');
    is(known($late), '1', 'a response from before the load is not believed');
};

subtest 'long excepted keys leave room for removed ones' => sub {
    conf(removals => 100);
    $t->stop;
    system 'rm', '-rf', "$dir/state";
    $t->run;

    my @long = false_positives($t, 'one', 60, suffix => 'x' x 950);

    await_feedback($t, 'ids', '/of/ids?id=', $long[0]);
    $t->pipeline(map { "/of/ids?id=$_" } @long);

    cmp_ok(excepted($t, 'ids'), '<', 20, 'some long keys are excepted');
    cmp_ok(excepted($t, 'ids'), '>=', 5, 'but not too few');

    for my $n (1 .. 50) {
        my $status = api($t, POST => 'zones/ids/remove',
                         body => "gone$n" . 'y' x 90)->status;
        is($status, 200, "removal $n has room") or last;
    }
};

done_testing;
