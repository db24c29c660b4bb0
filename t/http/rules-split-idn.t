#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests split= with many internationalised hosts, which the client writes and
# which cost a worker much more than others: the parts for which the budget of
# the list does not suffice are invalid.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

my $evil = "b\xc3\xb6se.example";            # xn--bse-sna.example
my $other = "\xc3\xbc.b";
my @filler = ($other) x 1000;

$t->write_file('except', "evil.example\n");
$t->build_image('hosts.bloom', ['evil.example', $evil], '-p', '1e-9',
                '--seed', 1, '--form', 'host');
$t->build_image('except.bloom', ['evil.example', $evil], '-p', '1e-9',
                '--seed', 1, '--form', 'host', '--except-wins',
                '--except', $t->testdir . '/except');

configure_rules($t, {}, <<'CONF');
    access_log off;
    large_client_header_buffers 4 32k;

    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=except file=%%TESTDIR%%/except.bloom;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Status $bloom_status always;

        location = /block {
            bloom_reject present $http_x_hosts zone=hosts split=,;
            empty_gif;
        }

        location = /open {
            bloom_reject present $http_x_hosts zone=hosts split=, invalid=pass;
            empty_gif;
        }

        location = /shield {
            bloom_reject absent $http_x_hosts zone=hosts split=,;
            empty_gif;
        }

        location = /except {
            bloom_reject present $http_x_hosts zone=except split=,
                         match=all invalid=pass;
            empty_gif;
        }
    }
CONF

$t->run;

for (# location, what, parts, status, X-Status
     ['block', 'a listed host behind too many others', [@filler, $evil],
      403, 'INVALID'],
     ['block', 'few hosts', [@filler[1 .. 100]], 200, 'PASSED'],
     ['block', 'a listed host among few', [@filler[1 .. 100], $evil],
      403, 'REJECTED'],
     ['open', 'a listed host behind too many others', [@filler, $evil],
      200, 'INVALID'],
     ['open', 'a listed host before many others', [$evil, @filler],
      403, 'REJECTED'],
     ['open', 'a listed host in ASCII behind too many others',
      [@filler, 'evil.example'], 403, 'REJECTED'],
     ['open', 'a listed host in punycode behind too many others',
      [@filler, 'xn--bse-sna.example'], 403, 'REJECTED'],
     ['open', 'a listed host alone, afterwards', [$evil], 403, 'REJECTED'],
     ['shield', 'few hosts that exist', [($evil) x 100], 200, 'PASSED'],
     ['shield', 'too many hosts that exist', [($evil) x 1000], 200, 'INVALID'],
     ['shield', 'a host that does not exist, behind too many',
      [($evil) x 1000, 'none.example'], 404, 'REJECTED'],
     ['except', 'many listed hosts, with exceptions', [($evil) x 150],
      403, 'REJECTED'],
     ['except', 'too many listed hosts, with exceptions', [($evil) x 1000],
      200, 'INVALID'])
{
    my ($location, $what, $parts, $status, $shown) = @$_;
    my $r = $t->get("/$location", headers => ['X-Hosts' => join ',', @$parts]);

    is($r->status, $status, "$location: $what: the status");
    is($r->header('X-Status'), $shown, "$location: $what: \$bloom_status");
}

done_testing();
