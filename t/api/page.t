#!/usr/bin/perl

# GET / of the endpoint: the page to a browser, the index in JSON to anything
# else; its headers, and that it is whole.  What it does in a browser is tested
# by dashboard.t.

use strict;
use warnings;

use Digest::SHA qw(sha256_base64);

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
    location /small/ { gzip on; bloom_api; }
CONF
$t->run;


sub page {
    my ($path, %headers) = @_;

    return $t->request('GET', $path,
                       headers => { Accept => $browser, %headers });
}


subtest 'who gets what' => sub {
    my %html = (
        $browser => 1,
        'text/html' => 1,
        'TEXT/HTML;q=0.5' => 1,
        'text/html, application/json;q=0.9' => 1,
        'application/json;q=0.2, text/html;q=0.3' => 1,
        'text/html, */*' => 1,
        '*/*' => 0,
        'application/json' => 0,
        'text/html, application/json' => 0,
        'text/html;q=0.5, application/json' => 0,
        'text/html;q=0' => 0,
        'text/html;q=0.0, */*' => 0,
        'text/html;q=0.5, */*' => 0,
        'text/html;q=0.5, application/*;q=0.6' => 0,
        'text/htmlx' => 0,
        'application/json, */*;q=0.1' => 0,
        'text/plain' => 0,
        '' => 0,
        ',;q=,' => 0,
    );

    for my $accept (sort keys %html) {
        my $r = page('/bloom/', Accept => $accept);
        my $type = $html{$accept} ? 'text/html; charset=utf-8'
                                  : 'application/json';

        is($r->status, 200, "Accept: $accept");
        is($r->header('Content-Type'), $type, "gets $type");
        is($r->header('Vary'), 'Accept', 'and so it varies');
    }

    like($t->get('/bloom/')->header('Content-Type'), qr{^application/json},
         'no Accept');
    like(page('/bloom/zones')->header('Content-Type'), qr{^application/json},
         'any other path has no page');
};


subtest 'the index says whether it may be written' => sub {
    is(!!$t->get('/bloom/')->json->{write}, !!1, 'write=on');
    is(!!$t->get('/reading/')->json->{write}, !!0, 'not');
};


subtest 'headers' => sub {
    my $r = page('/bloom/');
    my $csp = $r->header('Content-Security-Policy') // '';

    is($r->header('X-Content-Type-Options'), 'nosniff', 'no sniffing');
    is($r->header('Referrer-Policy'), 'same-origin', 'tells others nothing');
    is($r->header('Cache-Control'), 'no-cache', 'is asked for again');

    for my $directive ("default-src 'none'", "connect-src 'self'",
                       "frame-ancestors 'none'", "base-uri 'none'",
                       "form-action 'none'", 'img-src data:')
    {
        like($csp, qr/(?:^|; )\Q$directive\E(?:;|$)/, $directive);
    }

    unlike($csp, qr/unsafe/, 'nothing unsafe');

    # the hashes are those of what is in the page

    for my $tag ('script', 'style') {
        my @texts = $r->body =~ m{<$tag>(.*?)</$tag>}gs;
        my @opened = $r->body =~ m{<$tag\b}g;

        is(scalar @opened, 1, "one $tag");
        is(scalar @texts, 1, 'as a whole');
        like($csp, qr/$tag-src 'sha256-\Q@{[sha256_base64($texts[0])]}\E='/,
             'with its hash');
    }
};


subtest 'the page' => sub {
    my $r = page('/bloom/');

    ok($r->complete, 'complete');
    is(length $r->body, $r->header('Content-Length'), 'its length');
    like($r->body, qr{^<!doctype html>.*</html>\n\z}s, 'a document');
    unlike($r->body, qr/\b(?:src|href|url\()\s*=?\s*["']?(?:https?:)?\/\//,
           'that names nothing elsewhere');
    like($r->body, qr/uPlot is in this page:.*MIT License.*Copyright/s,
         'what it is made with is named');

    is(page($_)->body, $r->body, "$_: the same")
        for '/reading/', '/bare', '/bare/';

    my $head = $t->request('HEAD', '/bloom/', headers => { Accept => $browser });
    is($head->status, 200, 'HEAD');
    is($head->body, '', 'without a body');
    is($head->header('Content-Length'), length $r->body, 'with its length');

    is($t->request('POST', '/bloom/', headers => { Accept => $browser },
                   body => '')->status, 405, 'POST');
};


subtest 'ETag' => sub {
    my $etag = page('/bloom/')->header('ETag') // '';

    like($etag, qr/^"[0-9a-f]{32}"$/, 'a strong one');

    my $again = page('/bloom/', 'If-None-Match' => $etag);
    is($again->status, 304, 'the same page is not sent again');
    is($again->body, '', 'nothing of it');
    is($again->header('ETag'), $etag, 'its tag is');

    is(page('/bloom/', 'If-None-Match' => '"other"')->status, 200,
       'another one is');
    is(page('/bloom/', Accept => '*/*', 'If-None-Match' => $etag)->status, 200,
       'the index never is the same');

    SKIP: {
        skip 'nginx has no gzip', 3 if $t->nginx_build =~ /without-http_gzip/;

        my $small = page('/small/', 'Accept-Encoding' => 'gzip');
        is($small->header('Content-Encoding'), 'gzip',
           'nginx compresses it where it is told to');
        is($small->header('ETag'), "W/$etag", 'which weakens the tag');
        is(page('/small/', 'Accept-Encoding' => 'gzip',
                'If-None-Match' => "W/$etag")->status, 304,
           'that is still good for this');
    }
};


subtest 'rates' => sub {
    my $empty = api($t, GET => 'zones/seen/rates');
    is($empty->status, 200, 'of an empty zone');
    like($empty->header('ETag') // '', qr/^"[^"]+"$/, 'with the tag');

    my @rates = @{ $empty->json->{rates} };
    is($rates[0][0], 0, 'from no key');
    is($rates[0][1], 0, 'without a false positive');
    is($rates[-1][0], 1500, 'to half as many again as its capacity');

    my ($at) = grep { $_->[0] == 1000 } @rates;
    cmp_ok($at->[1], '<=', 1e-3, 'the rate at its capacity');
    cmp_ok($at->[1], '>', 5e-4, 'is not far from what it was made for');
    is(scalar(grep { $rates[$_][1] < $rates[$_ - 1][1] } 1 .. $#rates), 0,
       'it never falls');

    add($t, 'seen', [map { "k$_" } 1 .. 2000]);

    my $state = zone_state($t, 'seen')->{filter};
    my $full = api($t, GET => 'zones/seen/rates')->json->{rates};
    cmp_ok(abs($full->[-1][0] - 1.5 * $state->{estimated_items}), '<', 2,
           'of an over-full zone: further');

    # the numbers of keys are whole: one more or less is a thousandth

    my ($now) = grep { abs($_->[0] - $state->{estimated_items}) < 2 } @$full;
    cmp_ok(abs($now->[1] / $state->{estimated_fpr} - 1), '<', 0.01,
           'the present rate lies on it');
};


done_testing;
