#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section compares a lookup in Lua with what Lua has otherwise: resty.bloom,
# a shared dictionary, Redis over a Unix socket, beside the module's own rule and
# a location without a lookup.  All have the same keys and get the same request.
# Requests per second come from turns of all ways in one nginx; instructions from
# valgrind's callgrind, which sees nginx alone, and neither Redis nor the kernel.

use strict;
use warnings;

use IO::Socket::INET;

use Bench;
use BloomTest ();
use BloomTest::Modules qw(lua_path);
use BloomTest::Process qw(now spawn wait_until run_command alive);

my $rounds = rounds(15);
my $requests = quick() ? 500 : 5000;          # of each way in a round
my $counted = quick() ? 100 : 1000;           # under callgrind
my $keys = quick() ? 1000 : 100_000;
my $known = 'key7';

my $t = BloomTest->new(log_level => 'error');
my $dir = $t->testdir;
my ($modules) = $t->nginx_build =~ /--modules-path=(\S+)/;
my $redis;

END {
    my $status = $?;
    kill TERM => $redis if $redis;
    $? = $status;
}

section('Lookups in Lua');

if (!-e "$modules/ngx_http_lua_module.so") {
    line('Not measured: libnginx-mod-http-lua is not installed.');
    exit 0;
}

chmod 0755, $dir;

my $has_redis = `sh -c 'command -v redis-server'`
                && -e '/usr/share/lua/5.1/nginx/redis.lua';

# name, what it is, the location; paths have the same length

my @ways = (
    ['empty', 'no lookup', 'empty_gif;'],
    ['rules', '`bloom_reject`', 'bloom_reject absent $arg_id zone=ids;'
                                . ' empty_gif;'],
    ['noops', 'an empty `access_by_lua_block`',
     'access_by_lua_block { local id = ngx.var.arg_id } empty_gif;'],
    ['bloom', '`resty.bloom`', 'access_by_lua_block {
        local bloom = require "resty.bloom"
        if bloom.test("ids", ngx.var.arg_id) == false then
            return ngx.exit(404)
        end } empty_gif;'],
    ['dicts', '`lua_shared_dict`', 'access_by_lua_block {
        if not ngx.shared.known:get(ngx.var.arg_id) then
            return ngx.exit(404)
        end } empty_gif;'],
    !$has_redis ? () :
    ['redis', 'Redis `SISMEMBER`, Unix socket', "access_by_lua_block {
        local r = require('nginx.redis'):new()
        local ok = r:connect('unix:$dir/redis')
        if not ok then return ngx.exit(500) end
        local known = r:sismember('ids', ngx.var.arg_id)
        r:set_keepalive(600000, 4)
        if known == 0 then return ngx.exit(404) end } empty_gif;"],
);

if ($has_redis) {
    $redis = spawn(['redis-server', '--unixsocket', "$dir/redis",
                    '--unixsocketperm', '777', '--port', 0, '--save', '',
                    '--appendonly', 'no', '--dir', $dir,
                    '--logfile', "$dir/redis.log"]);
    wait_until(sub { -S "$dir/redis" }) or die "redis-server does not start\n";

    open my $pipe, '|-', "redis-cli -s $dir/redis --pipe > /dev/null"
        or die "redis-cli: $!\n";
    print $pipe "SADD ids key$_\r\n" for 1 .. $keys;
    close $pipe or die "redis-cli: $?\n";
}

$t->build_image('ids.bloom', [map { "key$_" } 1 .. $keys]);


# Writes the configuration, with more lines for its top, and returns the command.

sub write_conf {
    my ($more) = @_;

    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%', $more,
        (map { "load_module $modules/$_.so;" }
             qw(ndk_http_module ngx_http_lua_module)),
        'events { }', 'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
        'keepalive_requests 1000000000;', lua_path(),
        'bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;',
        'lua_shared_dict known 64m;',
        'init_by_lua_block {',
        "for i = 1, $keys do ngx.shared.known:set(\"key\" .. i, true) end", '}',
        'server {', 'listen 127.0.0.1:%%PORT_8080%%;',
        (map { "location = /$_->[0] { $_->[2] }" } @ways),
        '}', '}', '');
}


# Sends requests to a way on a connection; each must have the status.

sub ask {
    my ($socket, $way, $n, $key, $want) = @_;

    for (1 .. $n) {
        print $socket "GET /$way?id=$key HTTP/1.1\r\nHost: localhost\r\n\r\n";

        my ($status) = (readline($socket) // '') =~ /^HTTP\S+ (\d+)/
            or die "$way: no answer\n";
        my $length = 0;

        while ((my $line = readline $socket) ne "\r\n") {
            $length = $1 if $line =~ /^Content-Length: (\d+)/i;
        }

        read $socket, my $body, $length if $length;
        $status == $want or die "$way: $status, not $want\n";
    }
}

sub connected {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port(8080));
}


# ---- requests per second, with a client that takes the same time for all ----

my (%rate, %time, %instructions);

write_conf('worker_processes 1;');
$t->run;

my ($worker) = $t->workers;
my $socket = connected() or die "nginx does not listen\n";

for my $way (@ways) {
    ask($socket, $way->[0], 200, $known, 200);
    ask($socket, $way->[0], 1, 'absent', $way->[0] =~ /^(?:empty|noops)$/
                                         ? 200 : 404);
}

for (1 .. $rounds) {
    for my $way (@ways) {
        my $name = $way->[0];
        my ($begun, $used) = (now(), Bench::processor_time($worker));

        ask($socket, $name, $requests, $known, 200);

        push @{ $rate{$name} }, $requests / (now() - $begun);
        push @{ $time{$name} },
            (Bench::processor_time($worker) - $used) / $requests;
    }
}

close $socket;
$t->stop;


# ---- instructions ----

if (`sh -c 'command -v valgrind'`) {
    write_conf("daemon off;\nmaster_process off;");

    my $profile = "$dir/callgrind";
    my $pid = spawn(['valgrind', '--tool=callgrind',
                     "--callgrind-out-file=$profile", $t->_command]);
    wait_until(sub { $socket = connected() }, 240)
        or die "nginx does not start under valgrind\n";

    my $dumps = 0;
    my $total = sub {
        my ($exit, undef, $err) = run_command(['callgrind_control', '-d',
                                               $pid]);
        $exit == 0 or die "callgrind_control: $err\n";
        my $file = "$profile." . ++$dumps;
        my $last;
        wait_until(sub { -s $file
                         && (($last) = `tail -n 1 $file` =~ /^totals: (\d+)/) },
                   60) or die "callgrind did not write $file\n";
        return $last;
    };

    for my $way (@ways) {
        ask($socket, $way->[0], 200, $known, 200);
        $total->();
        ask($socket, $way->[0], $counted, $known, 200);
        $instructions{ $way->[0] } = $total->() / $counted;
    }

    kill QUIT => $pid;
    wait_until(sub { !alive($pid) }, 60);
} else {
    line('Instructions are not counted: valgrind is not installed.');
    line('');
}

my $base = $instructions{empty};

table(['a request with', 'requests/s', 'of `bloom_reject`', 'us of the worker',
       'instructions', 'more than without a lookup'],
      map {
          my $name = $_->[0];
          my $n = $instructions{$name};
          [$_->[1], sprintf('%.0f', median(@{ $rate{$name} })),
           sprintf('%.2f', median(@{ $rate{$name} })
                           / median(@{ $rate{rules} })),
           sprintf('%.1f', 1e6 * median(@{ $time{$name} })),
           $n ? sprintf('%.0f', $n) : '', $n ? sprintf('%.0f', $n - $base) : '']
      } @ways);

line("$keys keys; $rounds turns of $requests requests for a present key, one at a"
     . ' time on one connection. The client is a Perl program that takes most of'
     . ' the time of a request, the same for all: compare microseconds of the'
     . ' worker and instructions. The time and instructions of Redis itself are'
     . ' not in them.');
line('Redis is left out: redis-server or lua-nginx-redis is not installed.')
    if !$has_redis;
line('');
