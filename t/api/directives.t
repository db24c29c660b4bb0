#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that nginx accepts the directives of the endpoint, of additions and of
# the journal where they are allowed, and refuses them elsewhere with a reason.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['id1'], '--as-of', '2026-01-02T03:04:05Z');

my $zone = 'bloom_zone zone=ids file=ids.bloom;';
my $seen = 'bloom_zone zone=seen capacity=1k fpr=0.01;';

sub configured {
    my ($http, $server) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    $http
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        $server
    }
}
CONF
    return $t->test_config;
}

my @good = (
    ['bloom_state_path off;', 'location /b/ { bloom_api write=on; }'],
    ['bloom_state_path state;', 'location /b { bloom_api; }'],
    ["bloom_state_path %%TESTDIR%%/none;", ''],
    ["$zone $seen", 'location ^~ /b { bloom_api write=off; }'],
    ['bloom_zone zone=a capacity=1k fpr=0.1 journal=on;', ''],
    ['bloom_zone zone=a capacity=1k fpr=0.1 journal=off;', ''],
    ['bloom_zone zone=a file=ids.bloom watch=10s max_age=1d;', ''],
    ['bloom_zone zone=a file=ids.bloom journal=off watch=500ms;', ''],
    ["$seen bloom_add \$arg_k zone=seen;", 'bloom_add off;'],
    [$seen, 'bloom_add $arg_k zone=seen; bloom_add x$uri zone=seen if=$arg_i;'],
    [$seen, 'bloom_add $arg_k zone=seen decode=form if=$arg_i;'],
    [$seen, 'location /a { bloom_add $arg_k zone=seen; }'],
    ["$seen bloom_remove \$arg_k zone=seen;", 'bloom_remove off;'],
    [$seen, 'bloom_remove $arg_k zone=seen decode=uri if=$arg_i;'],
);

for (@good) {
    my ($http, $server) = @$_;
    my ($exit, $output) = configured($http, $server);
    is($exit, 0, "nginx accepts: $http $server") or diag($output);
}

ok(!-e $t->testdir . '/state', 'nginx -t creates no state directory');

my @bad = (
    [$zone, 'location ~ /b { bloom_api; }', qr/"bloom_api"/],
    [$zone, 'location @b { bloom_api; }', qr/"bloom_api"/],
    [$zone, 'bloom_api;', qr/"bloom_api" directive is not allowed here/],
    ['bloom_api;', '', qr/"bloom_api" directive is not allowed here/],
    [$zone, 'location /b/ { bloom_api image=maybe; }',
     qr/invalid value "maybe" of "image="/],
    [$zone, 'location /b/ { bloom_api image=on image=off; }',
     qr/duplicate parameter "image=off"/],
    [$zone, 'location /b/ { bloom_api images=on; }',
     qr/invalid parameter "images=on"/],
    [$zone, 'location /b/ { bloom_api write=maybe; }',
     qr/invalid value "maybe" of "write="/],
    [$zone, 'location /b/ { bloom_api on; }', qr/invalid parameter "on"/],
    [$zone, 'location /b/ { bloom_api; bloom_api; }',
     qr/"bloom_api" directive is duplicate/],
    ['bloom_state_path a; bloom_state_path b;', '',
     qr/"bloom_state_path" directive is duplicate/],
    ['bloom_state_path;', '', qr/invalid number of arguments/],
    ['', 'bloom_state_path a;',
     qr/"bloom_state_path" directive is not allowed here/],
    ['bloom_zone zone=a capacity=1k fpr=0.1 journal=maybe;', '',
     qr/invalid value "maybe" of "journal="/],
    ['bloom_zone zone=a capacity=1k fpr=0.1 watch=1s;', '', qr/"?watch/],
    ['bloom_zone zone=a capacity=1k fpr=0.1 max_age=1s;', '', qr/"?max_age/],
    ['bloom_zone zone=a file=ids.bloom watch=soon;', '',
     qr/invalid value "soon" of "watch="/],
    ['bloom_zone zone=a file=ids.bloom max_age=-1;', '',
     qr/invalid value "-1" of "max_age="/],
    ['bloom_zone zone=a file=ids.bloom watch=0;', '', qr/invalid value "0" of "watch="/],
    [$seen, 'bloom_add $arg_k zone=none;', qr/"none"/],
    [$seen, 'bloom_add $arg_k;', qr/./],
    [$seen, 'bloom_add $arg_k zone=seen nonsense;',
     qr/invalid parameter "nonsense"/],
    [$seen, 'bloom_add $arg_k zone=seen if=;', qr/if=/],
    [$seen,
     'bloom_add $arg_k zone=seen decode=json;', qr/invalid value "json" of "decode="/],
    [$seen, 'bloom_add off on;', qr/./],
);

for (@bad) {
    my ($http, $server, $message) = @$_;
    my ($exit, $output) = configured($http, $server);
    is($exit, 1, "nginx refuses: $http $server");
    like($output, qr/\[emerg\].*$message/,
         "nginx says what is wrong with: $http $server");
}


# A bloom_add for a zone that cannot take keys is a mistake.

for (['bloom_zone zone=a file=ids.bloom journal=off;',
      'bloom_add $arg_k zone=a;'],
     ['bloom_state_path off; bloom_zone zone=a file=ids.bloom;',
      'bloom_add $arg_k zone=a;'])
{
    my ($http, $server) = @$_;
    my ($exit, $output) = configured($http, $server);
    like($output, qr/\[(?:emerg|warn)\].*"a"/,
         "nginx says that keys cannot be added: $http $server");
}


done_testing;
