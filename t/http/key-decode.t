#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests decode=uri, decode=form and decode=off.  nginx leaves $arg_*,
# $request_uri and $cookie_* as the client sent them, and decodes $uri and
# captures from it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

my $url = 'http://example.com/a b?x=1&y=+';

my @keys = ('plain', 'a b', 'a+b', 'x y', 'p+q', "caf\xc3\xa9", '100%', '%zz',
            '%4', 'a%20b', 'a%', '/uri/a b', "nul\0", $url);

my %rules = (
    '~ ^/item/(?<item>.+)$'   => 'bloom_reject absent $item zone=ids',
    '~ ^/twice/(?<twice>.+)$' => 'bloom_reject absent $twice zone=ids
                                  decode=uri',
    'rule/none' => 'bloom_reject absent $arg_id zone=ids',
    'rule/off'  => 'bloom_reject absent $arg_id zone=ids decode=off',
    'rule/uri'  => 'bloom_reject absent $arg_id zone=ids decode=uri',
    'rule/form' => 'bloom_reject absent $arg_id zone=ids decode=form',
    route       => 'bloom_route present $arg_id zone=ids decode=form
                    to=@routed',
);

configure_rules($t, { ids => \@keys },
                <<'CONF' . locations(\%rules, 8081) . '}', backend => 8081);
    bloom_lookup $arg_id $none zone=ids;
    bloom_lookup $arg_id $off zone=ids decode=off;
    bloom_lookup $arg_id $uri_ zone=ids decode=uri;
    bloom_lookup $arg_id $form zone=ids decode=form;

    bloom_lookup $request_uri $request_off zone=ids;
    bloom_lookup $request_uri $request_uri_ zone=ids decode=uri;
    bloom_lookup $uri $path_off zone=ids;
    bloom_lookup $cookie_id $cookie zone=ids decode=uri;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location /arg { return 200 "$none$off$uri_$form"; }
        location /uri { return 200 "$request_off$request_uri_$path_off"; }
        location /cookie { return 200 "$cookie"; }

        location @routed { return 200 "routed $bloom_key of $bloom_zone"; }
CONF

$t->run;


subtest 'decode= decides which key an argument is' => sub {
    my @expected = (
        # argument       none, off, uri, form
        ['plain',        '1111', 'a present key without escapes'],
        ['none',         '0000', 'an absent key without escapes'],
        ['%70lai%6e',    '0011', 'a key with escaped letters'],
        ['a%20b',        '1111', 'a key that is present raw and decoded'],
        ['a%2520b',      '0011', 'a key that is escaped twice'],
        ['a+b',          '1111', 'a key that is present with plus and space'],
        ['x+y',          '0001', 'a key that is present with a space'],
        ['p+q',          '1110', 'a key that is present with a plus'],
        ['a%2Bb',        '0011', 'a key with an escaped plus'],
        ['a%2bb',        '0011', 'a key with a plus escaped in lower case'],
        ['caf%C3%A9',    '0011', 'a key of escaped UTF-8'],
        ['caf%c3%a9',    '0011', 'a key of UTF-8 escaped in lower case'],
        ["caf\xc3\xa9",  '1111', 'a key of unescaped UTF-8'],
        ['caf%c3%a',     '0000', 'a key with a truncated escape'],
        ['100%25',       '0011', 'a key with an escaped percent sign'],
        ['100%',         '1111', 'a key that ends with a percent sign'],
        ['%zz',          '1111', 'a key with an invalid escape'],
        ['%4',           '1111', 'a key that is half an escape'],
        ['%25%7a%7A',    '0011', 'a key that is an escaped invalid escape'],
        ['nul%00',       '0011', 'a key with an escaped NUL'],
        ['nul',          '0000', 'a key without the NUL of a present key'],
    );

    for (@expected) {
        my ($id, $bits, $what) = @$_;

        is($t->get("/arg?id=$id")->body, $bits,
           "bloom_lookup handles $what: $id");

        my @got = map { $t->get("/rule/$_?id=$id")->status }
                      qw(none off uri form);
        is("@got", join(' ', map { $_ ? 200 : 404 } split //, $bits),
           "bloom_reject handles $what: $id");
    }

    (my $sent = $url) =~ s/([^A-Za-z0-9.])/sprintf '%%%02X', ord $1/ge;
    is($t->get("/arg?id=$sent")->body, '0011',
       'bloom_lookup decodes a URL within a URL');
    is($t->get("/route?id=$sent")->body, "routed $url of ids",
       'bloom_route with decode= sets $bloom_key to the decoded key');
};


subtest 'nginx decodes $uri and its captures itself' => sub {
    is($t->get('/uri/a%20b')->body, '011',
       '$request_uri is escaped unless decode=uri is given, $uri is not');
    is($t->get('/uri/./x/../a%20%62')->body, '001', '$uri is normalized');

    outcomes_are($t, <<'END');
    /item/a%20b        200  a capture is decoded
    /item/pl%61in      200  an escaped letter in a capture is decoded
    /item/a%2520b      200  a capture is decoded only once
    /item/a+b          200  a plus in a capture stays a plus
    /twice/%2570lain   200  decode=uri decodes a capture a second time
    /item/%2570lain    404  a capture is decoded once without decode=uri
END
};


subtest 'decode=uri decodes cookies' => sub {
    my $r = $t->get('/cookie', headers => { Cookie => 'id=a%20b' });
    is($r->body, 1, 'an escaped key in a cookie is present');
    $r = $t->get('/cookie', headers => { Cookie => 'id=b%20a' });
    is($r->body, 0, 'another escaped key in a cookie is absent');
};


done_testing;
