#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Internationalised hosts, which cost most of all keys, take a worker about a
# millisecond at a time: a list in a header takes a bounded number of
# instructions, and a request that tests many of them looks at the clock after
# each.  nginx runs under valgrind, which counts, so other work on the machine
# does not matter.

use strict;
use warnings;

use BloomTest;
use BloomTest::Callgrind;
use BloomTest::Rules;

# A little more than what a processor of today does in a millisecond.  Without a
# bound, the lists below took up to 200 million.

use constant MOST => 20_000_000;

use constant HEADER => 8000;                 # bytes of a list
use constant KEYS => 5000;

my $t = BloomTest->new(log_level => 'error');

plan skip_all => $_ for BloomTest::Callgrind->impossible($t) // ();

$t->build_image('hosts.bloom', ['evil.example'], '--form', 'host');

configure_rules($t, {}, <<'CONF', main => 'daemon off; master_process off;');
    access_log off;
    large_client_header_buffers 4 16k;

    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=new capacity=1k fpr=0.01 form=host;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location / {
            bloom_reject present $http_x_hosts zone=hosts split=,
                         invalid=pass;
            empty_gif;
        }
        location /bloom/ { bloom_api write=on; }
    }
CONF

my $callgrind = BloomTest::Callgrind->new(
    $t, 'ngx_bloom_lookup_list_parts', 'ngx_http_bloom_body_read');

sub instructions { return $callgrind->instructions($callgrind->counted) }


# ---- lists ----

my %lists = (
    'U+FDFA, which becomes 18 characters' => "\xef\xb7\xba",
    'four of them'                        => "\xef\xb7\xba" x 4,
    'U+3316, which becomes six'           => "\xe3\x8c\x96",
    'nine of them'                        => "\xe3\x8c\x96" x 9,
    'twenty of them, too many'            => "\xe3\x8c\x96" x 20,
    'umlauts'                             => "\xc3\xbc",
    'long labels in upper case'           => "\xc3\x9c" x 40,
    'snowmen'                             => "\xe2\x98\x83" x 50,
    'joiners'      => "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe2\x98\x83" x 10,
);

$t->get('/', headers => ['X-Hosts' => "\xc3\xbc,evil.example"]);
cmp_ok(instructions(), '>', 5000, 'the work of a list is counted');

for my $what (sort keys %lists) {
    my $list = substr "$lists{$what}," x HEADER, 0, HEADER;

    is($t->get('/', headers => ['X-Hosts' => $list])->status, 200,
       "$what: a request is served");

    my $count = instructions();

    cmp_ok($count, '>', 20_000, "$what: the work is counted");
    cmp_ok($count, '<', MOST, "$what: the work of a list is bounded");
    note("$what: $count instructions");
}


# ---- a request with many keys ----

for (['internationalised', 'hosts/test', "\xc3\xbc.example"],
     ['long', 'hosts/test', "\xef\xb7\xba" x 4 . '.example'],
     ['snowmen', 'hosts/test', "\xe2\x98\x83" x 20 . '.example'],
     ['escaped', 'hosts/test', '%C3%BC.example'],
     ['added', 'new/keys', "\xc3\xbc.example"],
     ['other', 'hosts/test', 'u.example'])
{
    my ($what, $uri, $key) = @$_;

    is($t->request(POST => "/bloom/zones/$uri", body => "$key\n" x KEYS,
                   headers => ['Content-Type' => 'text/plain'])->status, 200,
       "$what keys: a request is served");

    my $file = $callgrind->counted;
    my $turns = $callgrind->calls($file, 'ngx_http_bloom_body_read');
    my $turn = $callgrind->instructions($file) / ($turns || 1);

    cmp_ok($turns, '>', $what eq 'other' ? 0 : 1,
           "$what keys: other requests have their turns");
    cmp_ok($turn, '<', MOST / 2, "$what keys: the work of a turn is bounded");
    note("$what keys: $turns turns of $turn instructions");
}

ok($callgrind->finish, 'nginx ends');

done_testing();
