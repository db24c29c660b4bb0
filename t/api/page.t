#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that GET / of the endpoint sends the page to a browser and the index in
# JSON to any other client.  page-browser.t tests the page in a browser.

use strict;
use warnings;

use Digest::SHA qw(sha256_base64);
use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,'
              . 'image/avif,image/webp,*/*;q=0.8';

my $t = BloomTest->new;

configure($t, ['zone=seen capacity=1k fpr=1e-3'], api => 1,
          server => <<'CONF');
    location /reading/ { bloom_api; }
    location /bare { bloom_api write=on; }
CONF
$t->run;


sub page {
    my ($path, %headers) = @_;

    return $t->request('GET', $path,
                       headers => { Accept => $browser, %headers });
}


sub committed {
    open my $fh, '<:raw', dirname(__FILE__) . '/../../dashboard/page.html'
        or die "page.html: $!";
    local $/;
    return scalar <$fh>;
}


subtest 'Accept decides between the page and the index' => sub {
    my %html = (
        $browser => 1,
        'text/html' => 1,
        'TEXT/HTML;q=0.5' => 1,
        'text/html, */*' => 1,
        '*/*' => 0,
        'application/json' => 0,
        'text/html, application/json' => 0,
        'text/html;q=0.5, application/json' => 0,
        'application/json, */*;q=0.1' => 0,
        'text/plain' => 0,
        '' => 0,
        ',;q=,' => 0,
    );

    for my $accept (sort keys %html) {
        my $r = page('/bloom/', Accept => $accept);
        my $type = $html{$accept} ? 'text/html; charset=utf-8'
                                  : 'application/json';

        is($r->status, 200, "GET / with Accept: $accept answers with 200");
        is($r->header('Content-Type'), $type,
           "GET / with Accept: $accept gets $type");
        is($r->header('Vary'), 'Accept',
           "the response to Accept: $accept has Vary: Accept");
    }

    like($t->get('/bloom/')->header('Content-Type'), qr{^application/json},
         'GET / without Accept gets JSON');
    like(page('/bloom/zones')->header('Content-Type'), qr{^application/json},
         'another path sends JSON to a browser');
};


subtest 'the index says whether the endpoint takes changes' => sub {
    is(!!$t->get('/bloom/')->json->{write}, !!1,
       'the index says that the endpoint takes changes');
    is(!!$t->get('/reading/')->json->{write}, !!0,
       'the index says that the endpoint takes no changes');
};


subtest 'the headers of the page isolate it from other sites' => sub {
    my $r = page('/bloom/');
    my ($before, $csp) = $r->body =~ m{^(.*?)<meta\ http-equiv=
        "Content-Security-Policy"\ content="([^"]*)">}sx;

    unlike($before, qr/<(?:script|style|link|body)/,
           'the policy stands before all that it is for');
    is($r->header('Content-Security-Policy'), "frame-ancestors 'none'",
       'no site can show the page in a frame');
    is($r->header('X-Content-Type-Options'), 'nosniff',
       'a browser must not guess the type of the page');
    is($r->header('Referrer-Policy'), 'same-origin',
       'the page sends no referrer to other sites');
    is($r->header('Cache-Control'), 'no-cache',
       'a browser asks for the page each time');

    for my $directive ("default-src 'none'", "connect-src 'self'",
                       "base-uri 'none'", "form-action 'none'", 'img-src data:',
                       "require-trusted-types-for 'script'")
    {
        like($csp, qr/(?:^|; )\Q$directive\E(?:;|$)/,
             "the policy of the page has $directive");
    }

    unlike($csp, qr/unsafe/, 'the policy of the page allows nothing unsafe');

    # the hashes match the script and the style in the page

    for my $tag ('script', 'style') {
        my @texts = $r->body =~ m{<$tag>(.*?)</$tag>}gs;
        my @opened = $r->body =~ m{<$tag\b}g;

        is(scalar @opened, 1, "the page has one $tag");
        is(scalar @texts, 1, "the $tag of the page is complete");
        like($csp, qr/$tag-src 'sha256-\Q@{[sha256_base64($texts[0])]}\E='/,
             "the policy of the page has the hash of its $tag");
    }
};


subtest 'the page is complete and needs nothing else' => sub {
    my $r = page('/bloom/');

    ok($r->complete, 'the page is complete');
    is(length $r->body, $r->header('Content-Length'),
       'the page has a Content-Length');
    ok($r->body eq committed(), 'the page is dashboard/page.html');
    like($r->body, qr{^<!doctype html>.*</html>\n\z}s,
         'the page is an HTML document');
    unlike($r->body, qr/\b(?:src|href|url\()\s*=?\s*["']?(?:https?:)?\/\//,
           'the page refers to no other site');
    like($r->body, qr/uPlot is in this page:.*MIT License.*Copyright/s,
         'the page has the license of uPlot');

    is(page($_)->body, $r->body, "the page at $_ equals the page at /bloom/")
        for '/reading/', '/bare', '/bare/';

    my $head = $t->request('HEAD',
                           '/bloom/', headers => { Accept => $browser });
    is($head->status, 200, 'HEAD of the page answers with 200');
    is($head->body, '', 'HEAD of the page has no body');
    is($head->header('Content-Length'), length $r->body,
       'HEAD of the page has the length of the page');

    is($t->request('POST', '/bloom/', headers => { Accept => $browser },
                   body => '')->status, 405, 'POST to the page is refused');
};


subtest 'GET rates has the curve of false positives' => sub {
    my $empty = api($t, GET => 'zones/seen/rates');
    is($empty->status, 200, 'GET rates of an empty zone answers with 200');

    my @rates = @{ $empty->json->{rates} };
    is($rates[0][0], 0, 'the rates begin at 0 keys');
    is($rates[0][1], 0, 'the rate with 0 keys is 0');
    is($rates[-1][0], 1500,
       'the rates go to 1.5 times the capacity');

    my ($at) = grep { $_->[0] == 1000 } @rates;
    cmp_ok($at->[1], '<=', 1e-3,
           'the rate at the capacity is at most the requested rate');
    cmp_ok($at->[1], '>', 5e-4,
           'the rate at the capacity is near the requested rate');
    is(scalar(grep { $rates[$_][1] < $rates[$_ - 1][1] } 1 .. $#rates), 0,
       'the rates never decrease');

    add($t, 'seen', [map { "k$_" } 1 .. 2000]);

    my $state = zone_state($t, 'seen')->{filter};
    my $full = api($t, GET => 'zones/seen/rates')->json->{rates};
    cmp_ok(abs($full->[-1][0] - 1.5 * $state->{estimated_items}), '<', 2,
           'the rates of an over-full zone go to 1.5 times its keys');

    # numbers of keys are rounded: one key more or less is a thousandth

    my ($now) = grep { abs($_->[0] - $state->{estimated_items}) < 2 } @$full;
    cmp_ok(abs($now->[1] / $state->{estimated_fpr} - 1), '<', 0.01,
           'the current rate of an over-full zone is on the curve');
};


done_testing;
