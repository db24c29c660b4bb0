#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that bloom_add, bloom_remove and bloom_feedback ignore responses from a
# cache of nginx: they were true when the backend made them, and since then the
# keys may have changed.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new(log_level => 'debug');
my $dir = $t->testdir;

$t->build_image('shield.bloom', ['id'], '-p', '1e-9', '--seed', 1);

configure($t, ['zone=seen capacity=10k fpr=1e-9', 'zone=shield file=shield.bloom'],
          api => 1,
          http => 'proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;',
          server => <<'CONF');
    proxy_cache_key $uri;
    proxy_cache_valid any 1s;
    proxy_cache_bypass $arg_bypass;
    add_header X-Cache $upstream_cache_status always;

    bloom_add $upstream_http_x_new_id zone=seen;
    bloom_remove $upstream_http_x_gone_id zone=seen;
    bloom_feedback 404;

    location /short {
        bloom_reject absent $arg_id zone=shield;
        proxy_cache cache;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;

        location /short/long { proxy_cache_valid any 1h;
                               proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /short/fails { proxy_cache_use_stale http_500;
                                proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /short/held { proxy_cache_use_stale updating;
                               proxy_cache_background_update on;
                               proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /short/same { proxy_cache_revalidate on;
                               proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    }
    location /page {
        proxy_cache cache;
        proxy_cache_valid any 1h;
        proxy_intercept_errors on;
        error_page 404 = @gone;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location @gone {
        bloom_remove $arg_k zone=seen;
        return 410;
    }
    location /other {
        proxy_cache cache;
        proxy_cache_valid any 1h;
        proxy_intercept_errors on;
        error_page 404 = @other;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location @other {
        proxy_cache off;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location /accel {
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location /asks {
        auth_request /asked;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location = /asked {
        proxy_cache cache;
        proxy_cache_valid any 1h;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
CONF

$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));

# The backend fails while there is a file "fail", and waits while there is a file
# "hold".

$t->backend(8081, sub {
    my ($request) = @_;
    my ($uri, $headers) = @$request{qw(uri headers)};

    return { status => 500 } if -e "$dir/fail";
    wait_until(sub { !-e "$dir/hold" }) if -e "$dir/hold";
    return { status => 304 } if $headers->{'if-none-match'};
    return { headers => ['X-Accel-Redirect' => '/short/long-accel?id=id'] }
        if $uri =~ m{^/accel};

    return { status => $uri =~ m{^/(?:short/same|as)} ? 200 : 404,
             headers => ['X-New-Id' => 'new', 'X-Gone-Id' => 'gone',
                         ETag => '"1"'],
             body => 'b' };
});
$t->run;

api($t, POST => 'zones/seen/remove', body => "first\n")->status == 200
    or die 'zone seen takes no removals';


# Removes the key that the backend's responses add, and adds the key that they
# remove.

sub change_back {
    api($t, POST => 'zones/seen/remove', body => "new\n")->status == 200
        or die 'no removal';
    add($t, 'seen', ['gone']);
}


sub false_positives { zone_state($t, 'shield')->{feedback}{false_positives} }


# Makes requests until one has this status of the cache.  The connections stay
# open: a background update ends with its request.

my @open;

sub ask_cache {
    my ($path, $status) = @_;

    my $header;

    wait_until(sub {
        my $connection = $t->send_request(GET => $path, keepalive => 1);
        push @open, $connection;
        $header = $connection->response('GET')->header('X-Cache');
        return ($header // '-') eq $status;
    });

    is($header, $status, "a request gets a response of status $status");
}


my %file = ('/short/fails' => 'fail', '/short/held' => 'hold');

for (# status of the cache, path, whether the backend has just made the response
     ['HIT', '/short/long', 0], ['STALE', '/short/fails', 0],
     ['STALE', '/short/held', 0], ['UPDATING', '/short/held', 0],
     ['REVALIDATED', '/short/same', 0],
     ['EXPIRED', '/short', 1], ['BYPASS', '/short/long?bypass=1', 1])
{
    my ($status, $path, $fresh) = @$_;
    my ($name, $args) = split /\?/, $path;
    my $denies = $path !~ /same/;
    my $does = $fresh ? 'changes' : 'does not change';

    subtest "a response of status $status from $name $does zones" => sub {
        $path = "$name-" . lc($status) . '?id=id&' . ($args // '');

        my $before = false_positives();
        change_back();
        ask_cache($path =~ s/bypass=1//r, 'MISS');
        is(ask($t, 'seen', 'new', 'gone'), '10',
           'a response of status MISS adds and removes keys');
        is(false_positives() - $before, $denies ? 1 : 0,
           'a response of status MISS is measured');

        $t->write_file($file{$name}, '') if $file{$name};
        change_back();
        $before = false_positives();
        ask_cache($path, 'STALE') if $status eq 'UPDATING';
        ask_cache($path, $status);

        is(ask($t, 'seen', 'new', 'gone'), $fresh ? '10' : '01',
           "the response $does keys");
        is(false_positives() - $before, $fresh ? 1 : 0,
           'the response is ' . ($fresh ? '' : 'not ') . 'measured');

        if (unlink "$dir/hold") {
            $path = (split /\?/, $path)[0];
            ask_cache("$path?id=id", 'HIT');
            is(ask($t, 'seen', 'new', 'gone'), '01',
               'a background update changes nothing, as it is a subrequest');
        }
        unlink "$dir/fail";
        @open = ();
    };
}

subtest 'an error page for a cached response changes nothing' => sub {
    add($t, 'seen', ['page']);
    is($t->get('/page?k=page')->status, 410, 'an error page replaces a response');
    is(ask($t, 'seen', 'page'), '0', 'the error page removes its key');

    add($t, 'seen', ['page']);
    is($t->get('/page?k=page')->status, 410, 'and replaces a cached response');
    is(ask($t, 'seen', 'page'), '1', 'that error page removes nothing');
};

subtest 'the backend that is asked last decides' => sub {
    for (1 .. 2) {
        change_back();
        $t->get('/other');
        is(ask($t, 'seen', 'new', 'gone'), '10',
           "response $_ of another backend, asked by error_page, changes keys");
    }

    for (['MISS', '10'], ['HIT', '01']) {
        my ($status, $answers) = @$_;

        change_back();
        is($t->get('/accel')->header('X-Cache'), $status,
           "X-Accel-Redirect leads to a response of status $status");
        is(ask($t, 'seen', 'new', 'gone'), $answers,
           $status eq 'HIT' ? 'it changes nothing' : 'it changes keys');
    }
};

subtest 'a cached response to a subrequest does not matter' => sub {
    for (1 .. 2) {
        change_back();
        is($t->get('/asks')->status, 200, 'auth_request passes the request');
        is(ask($t, 'seen', 'new', 'gone'), '10', "response $_ changes keys");
    }
};

SKIP: {
    skip 'this nginx has no debug log', 1 if $t->nginx_build !~ /--with-debug/;

    my $mark = $t->log_mark;
    $t->get('/short/long-hit?id=id');
    like($t->log_since($mark), qr/\[debug\] .*bloom ignores a response from the cache/,
         'the debug log says that a cached response is ignored');
}

done_testing;
