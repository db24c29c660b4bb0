#!/usr/bin/perl

# decode=uri|form|off: nginx leaves $arg_* and $request_uri as they were sent,
# and decodes $uri and what is captured from it.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;

my $url = 'http://example.com/a b?x=1&y=+';

$t->build_image('ids.bloom',
    ['plain', 'a b', 'a+b', 'x y', 'p+q', "caf\xc3\xa9", '100%', '%zz', '%4', 'a%20b', 'a%',
     '/uri/a b', "nul\0", $url], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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

        location ~ ^/item/(?<item>.+)$ {
            bloom_reject absent $item zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location ~ ^/twice/(?<twice>.+)$ {
            bloom_reject absent $twice zone=ids decode=uri;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }

        location /rule/none {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /rule/off {
            bloom_reject absent $arg_id zone=ids decode=off;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /rule/uri {
            bloom_reject absent $arg_id zone=ids decode=uri;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /rule/form {
            bloom_reject absent $arg_id zone=ids decode=form;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route present $arg_id zone=ids decode=form to=@routed;
        }
        location @routed { return 200 "routed $bloom_key of $bloom_zone"; }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location / { return 200 "backend $request_uri"; }
    }
}
CONF

$t->run;


subtest 'arguments' => sub {
    my @expected = (
        # argument       none, off, uri, form
        ['plain',        '1111', 'nothing to decode'],
        ['none',         '0000', 'nothing to decode, absent'],
        ['%70lai%6e',    '0011', 'letters that need no encoding'],
        ['a%20b',        '1111', 'present as it is and decoded'],
        ['a%2520b',      '0011', 'decoded once and not twice'],
        ['a+b',          '1111', 'present with plus and with space'],
        ['x+y',          '0001', 'plus is a space in forms'],
        ['p+q',          '1110', 'and elsewhere it is itself'],
        ['a%2Bb',        '0011', 'an encoded plus is none'],
        ['a%2bb',        '0011', 'in lower case, too'],
        ['caf%C3%A9',    '0011', 'UTF-8'],
        ['caf%c3%a9',    '0011', 'UTF-8 in lower case'],
        ["caf\xc3\xa9",  '1111', 'UTF-8 as it is'],
        ['caf%c3%a',     '0000', 'an escape cut short is no letter'],
        ['100%25',       '0011', 'an encoded percent sign'],
        ['100%',         '1111', 'a percent sign at the end is itself'],
        ['%zz',          '1111', 'what is no escape is itself'],
        ['%4',           '1111', 'nor is half of one'],
        ['%25%7a%7A',    '0011', 'and the same encoded'],
        ['nul%00',       '0011', 'NUL'],
        ['nul',          '0000', 'without NUL'],
    );

    for (@expected) {
        my ($id, $bits, $what) = @$_;

        is($t->get("/arg?id=$id")->body, $bits, "$what: $id");

        my @got = map { $t->get("/rule/$_?id=$id")->status }
                      qw(none off uri form);
        is("@got", join(' ', map { $_ ? 200 : 404 } split //, $bits),
           "$what, by rules");
    }

    (my $sent = $url) =~ s/([^A-Za-z0-9.])/sprintf '%%%02X', ord $1/ge;
    is($t->get("/arg?id=$sent")->body, '0011', 'a URL within a URL');
    is($t->get("/route?id=$sent")->body, "routed $url of ids",
       'a route with decode, and the key as it was looked up');
};


subtest 'the trap' => sub {
    is($t->get('/rule/none?id=plain')->status, 200,
       'without decode a key passes as it is');
    is($t->get('/rule/none?id=%70lain')->status, 404,
       'encoded, the same key is turned away');
    is($t->get('/rule/uri?id=%70lain')->status, 200, 'unless it is decoded');
};


subtest 'URIs' => sub {
    is($t->get('/uri/a%20b')->body, '011',
       '$request_uri as it was sent, then decoded; $uri is decoded');
    is($t->get('/uri/./x/../a%20%62')->body, '001', '$uri is normalised');

    is($t->get('/item/a%20b')->status, 200, 'a capture is decoded');
    is($t->get('/item/pl%61in')->status, 200, 'letters, too');
    is($t->get('/item/a%2520b')->status, 200, 'once');
    is($t->get('/item/a+b')->status, 200, 'a plus stays one');
    is($t->get('/twice/%2570lain')->status, 200,
       'decode on a capture is once more');
    is($t->get('/item/%2570lain')->status, 404, 'which it should not be');
};


subtest 'cookies' => sub {
    my $r = $t->get('/cookie', headers => { Cookie => 'id=a%20b' });
    is($r->body, 1, 'are as they were sent');
    $r = $t->get('/cookie', headers => { Cookie => 'id=b%20a' });
    is($r->body, 0, 'absent');
};


done_testing;
