#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures what it costs to look up a request's key among many
# keys, with this module and with the usual alternatives.  Each gets the same
# requests, in turns.  The answer is 404 if the key is absent, and an empty GIF
# otherwise.

use strict;
use warnings;

use List::Util qw(sum);

use IO::Socket::INET;

use Bench;
use BloomTest::Port qw(reserve_port);
use BloomTest::Process qw(now wait_until alive spawn);

my $rounds = rounds(7);
my $requests = quick() ? 2000 : 30_000;          # of each kind in a round
my $first = 1_000_000_000;                       # keys are numbers from it on
my @bloom = quick() ? (10_000, 100_000, 300_000)
                    : (1_000_000, 100_000_000, 500_000_000);
my @others = quick() ? (10_000, 30_000) : (1_000_000, 10_000_000);
my $patience = quick() ? 30 : 240;               # seconds, for a start

# for images, lists and sockets; nginx's workers run as nobody
my $files = BloomTest->new;
my $dir = $files->testdir;
chmod 0755, $dir;
my @running;                                     # to be ended by their ids

END {
    my $status = $?;
    kill TERM => $_ for @running;
    waitpid $_, 0 for @running;
    $? = $status;
}


# ---- the programs that are measured ----

# Each has a name, keys and a port; `pids`, whose processor time and memory are
# measured; `start` and `reload` in seconds, undef if it has none.

sub nginx_of {
    my ($name, $keys, $main, $http, $location, %more) = @_;

    my $t = BloomTest->new(log_level => 'warn');
    my @globals = $name =~ /module/ ? '%%TEST_GLOBALS%%'
                : ('daemon on;', 'pid ' . $t->testdir . '/nginx.pid;',
                   $> == 0 ? 'user nobody nogroup;' : ());

    chmod 0755, $t->testdir;
    $t->write_file_expand('nginx.conf', join "\n",
        @globals, $main, 'worker_processes 1;',
        first_on() ? 'worker_cpu_affinity 01;' : (), 'events { }', 'http {',
        '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
        'keepalive_requests 1000000000;', $http, 'server {',
        'listen 127.0.0.1:%%PORT_8080%%;',
        "location ~ ^/is/(?<id>[0-9]+)\$ { $location empty_gif; }",
        'location = /nothing/ { return 404; }', '}', '}', '');

    # as BloomTest's run() does, but with more patience

    my $begun = now();
    my $command = spawn([$t->_command]);
    my $pid = wait_until(sub {
        my $master = $t->_pid_in_file or return;
        return alive($master) && connects($t->port(8080)) && $master;
    }, $patience);

    if (!$pid) {
        kill TERM => $command;
        return missing($name, $keys, "nginx has not started in $patience s");
    }

    my $start = now() - $begun;
    $t->_read_config;
    $t->_started($pid);

    return {
        name => $name, keys => $keys, port => $t->port(8080), t => $t,
        start => $start,
        pids => sub { ($pid, $t->_processes($pid)) },
        %more,
    };
}

my @missing;

sub missing {
    my ($name, $keys, $why) = @_;

    push @missing, "$name, " . number($keys) . " keys: $why";

    return;
}


sub list {
    my ($keys, $format) = @_;
    my $file = "$dir/$format->[0].$keys";

    return $file if -e $file;

    open my $fh, '>', $file or die "cannot write $file: $!";
    printf $fh $format->[1], $_ for $first .. $first + $keys - 1;
    close $fh or die "cannot write $file: $!";

    return $file;
}

my $lines = ['lines', "%d\n"];
my $pairs = ['map', "%d 1;\n"];


sub bloom {
    my ($keys) = @_;
    my $image = "$dir/$keys.bloom";
    my $last = $first + $keys - 1;

    system("seq $first $last | $ENV{TEST_BLOOM_TOOL} build -q -o $image"
           . " -n $keys -p 0.001 -") == 0
        or return missing('this module', $keys, 'the image cannot be built');
    chmod 0644, $image;

    return nginx_of('this module', $keys, '',
                    "bloom_zone zone=ids file=$image;",
                    'bloom_reject absent $id zone=ids;');
}


sub map_of {
    my ($keys) = @_;
    my $file = list($keys, $pairs);
    my $buckets = 2 * $keys;

    return nginx_of('nginx map', $keys, '',
                    "map_hash_max_size $buckets; map_hash_bucket_size 128;"
                    . " map \$id \$known { default 0; include $file; }",
                    'if ($known = 0) { return 404; }');
}


my ($modules) = `$ENV{TEST_NGINX_BINARY} -V 2>&1`
                =~ /--modules-path=(\S+)/;
my $lua = join ' ', map { "load_module $modules/$_;" }
                    qw(ndk_http_module.so ngx_http_lua_module.so);

sub has_lua { return -e "$modules/ngx_http_lua_module.so" }


sub lua_of {
    my ($keys) = @_;

    has_lua() or return missing('Lua shared dictionary', $keys,
                                'libnginx-mod-http-lua is not installed');

    my $file = list($keys, $lines);
    my $size = int($keys * 160 / 2 ** 20) + 16;

    return nginx_of('Lua shared dictionary', $keys, $lua, <<"CONF",
        lua_shared_dict ids ${size}m;
        init_by_lua_block {
            local ids = ngx.shared.ids
            for line in io.lines("$file") do
                local ok, err = ids:safe_set(line, true)
                if not ok then error(err) end
            end
        }
CONF
        <<'CONF');
        access_by_lua_block {
            if not ngx.shared.ids:get(ngx.var.id) then
                return ngx.exit(404)
            end
        }
CONF
}


sub redis_of {
    my ($keys) = @_;

    has_lua() or return missing('Lua and Redis', $keys,
                                'libnginx-mod-http-lua is not installed');
    `sh -c 'command -v redis-server'`
        or return missing('Lua and Redis', $keys,
                          'redis-server is not installed');

    my $socket = "$dir/redis.$keys";
    my $begun = now();
    my $pid = run_beside('redis-server', '--unixsocket', $socket,
                         '--unixsocketperm', '777', '--port', 0, '--save', '',
                         '--appendonly', 'no', '--dir', $dir);

    wait_until(sub { -S $socket }) or die "redis-server does not start\n";

    open my $pipe, '|-', "redis-cli -s $socket --pipe > /dev/null"
        or die "redis-cli: $!";
    for (my $key = $first; $key < $first + $keys; $key += 1000) {
        my $end = $key + 999;
        $end = $first + $keys - 1 if $end > $first + $keys - 1;
        print $pipe 'SADD ids ', join(' ', $key .. $end), "\r\n";
    }
    close $pipe or die "redis-cli: $?";

    chomp(my $has = `redis-cli -s $socket SCARD ids`);
    $has == $keys or die "Redis has $has keys of $keys\n";

    my $filled = now() - $begun;
    my $thing = nginx_of('Lua and Redis', $keys, $lua, '', <<"CONF") or return;
        access_by_lua_block {
            local redis = require "nginx.redis"
            local r = redis:new()
            local ok, err = r:connect("unix:$socket")
            if not ok then return ngx.exit(500) end
            local known = r:sismember("ids", ngx.var.id)
            r:set_keepalive(60000, 16)
            if known == 0 then return ngx.exit(404) end
        }
CONF
    my $pids = $thing->{pids};

    $thing->{pids} = sub { ($pid, $pids->()) };
    $thing->{start} += $filled;

    return $thing;
}


sub haproxy_of {
    my ($keys) = @_;

    my ($program) = grep { -x } map { "$_/haproxy" }
                    split(/:/, $ENV{PATH}), '/usr/sbin';
    $program or return missing('HAProxy ACL file', $keys,
                               'haproxy is not installed');

    my $file = list($keys, $lines);
    my ($port, $lock) = reserve_port();
    my $begun = now();

    $files->write_file("haproxy.$keys", <<"CONF");
global
    nbthread 1
defaults
    mode http
    timeout client 600s
    timeout connect 1s
    timeout server 1s
frontend ids
    bind 127.0.0.1:$port
    http-request return status 404 content-type text/html string "<html>not found</html>" unless { path,field(3,/) -m str -f $file }
    http-request return status 200 content-type image/gif string "GIF89a, so to speak, of fourty-three bytes"
CONF
    my $pid = run_beside((first_on()), $program, '-q', '-db', '-f',
                         "$dir/haproxy.$keys");

    wait_until(sub { !alive($pid) || connects($port) }, $patience);
    alive($pid) or die "haproxy does not start\n";

    return { name => 'HAProxy ACL file', keys => $keys, port => $port,
             start => now() - $begun, pids => sub { $pid } };
}


sub connects {
    my ($port) = @_;

    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
}


sub run_beside {
    my @command = @_;

    my $pid = spawn(\@command);

    push @running, $pid;

    return $pid;
}


# ---- measuring ----

sub memory {
    my ($thing) = @_;

    return 1024 * sum(map {
        my $pss = 0;
        if (open my $fh, '<', "/proc/$_/smaps_rollup") {
            local $/;
            ($pss) = <$fh> =~ /^Pss:\s+(\d+)/m;
        }
        $pss // 0;
    } $thing->{pids}->());
}

sub used { return sum(map { processor_time($_) } $_[0]{pids}->()) }

sub measure {
    my ($thing, $kind, $uri, $status) = @_;

    my $before = used($thing);
    my ($line) = client([second_on], 'send', '-p', $thing->{port}, '-f', 1,
                        "$kind,GET,$uri,$requests,0,$status");

    $line->{failed} <= 0.01 * $requests
        or die "$thing->{name}: $line->{failed} of $requests requests of kind"
               . " $kind were not answered $status\n";

    push @{ $thing->{$kind} }, (used($thing) - $before) / $requests * 1e6;
}


section('Requests whose key is looked up among many');

my $bare = nginx_of('nginx alone', 1, '', '', '');
my @things = grep { defined } $bare, (map { bloom($_) } @bloom),
    map { my $keys = $_;
          map { $_->($keys) } \&map_of, \&lua_of, \&redis_of, \&haproxy_of }
        @others;

for my $round (1 .. $rounds) {
    for my $thing (@things) {
        my $last = $first + $thing->{keys} - 1;

        measure($thing, 'present', "/is/{$first-$last}", 200);
        measure($thing, 'absent', $thing == $bare ? '/nothing/'
                                  : '/is/{5000000000-8999999999}', 404);
    }
}

for my $thing (@things) {
    $thing->{memory} = memory($thing);

    if ($thing->{t}) {
        my $begun = now();
        $thing->{t}->reload(within => $patience);
        $thing->{reload} = now() - $begun;
    }
}

table(['', 'keys', 'absent, us of a processor', 'ratio to nginx alone',
       'present, us of a processor', 'ratio to nginx alone', 'memory, MiB',
       'start, s', 'reload, s'],
      map {
          my $thing = $_;
          [$thing->{name}, $thing == $bare ? '' : number($thing->{keys}),
           (map {
               sprintf('%.2f', median(@{ $thing->{$_} })),
               sprintf('%.2f (%.2f to %.2f)',
                       ratios($thing->{$_}, $bare->{$_}));
           } qw(absent present)),
           sprintf('%.0f', $thing->{memory} / 2 ** 20),
           number($thing->{start}),
           defined $thing->{reload} ? number($thing->{reload}) : '-'];
      } @things);

line("Time on a processor of all processes, Redis included, per request:"
     . " $requests requests, one after the other on one connection; medians of"
     . ' the rounds. The answer is 404 for an absent key, and 200 with a GIF'
     . ' for a present one; nginx alone gives these answers without a lookup.'
     . ' Memory is the PSS of all processes before the reload. "Start" is the'
     . ' time from the command until it serves, including filling. "Reload" is'
     . ' the time from a HUP without changes until the old worker has exited:'
     . ' this module keeps its memory, the others fill theirs again, and'
     . ' HAProxy would have to be restarted. Keys are numbers of ten digits.');
line('');
line("Not measured: $_.") for @missing;
line('') if @missing;


# ---- how it grows with the number of keys ----

my (%of, %keys);

for (grep { $_ != $bare } @things) {
    $of{$_->{name}}{$_->{keys}} = $_;
    $keys{$_->{keys}} = 1;
}

my @names = sort keys %of;

growth('cpu', 'A present key: microseconds of a processor',
       sub { median(@{ $_[0]{present} }) });
growth('start', 'Start: seconds', sub { $_[0]{start} });
growth('memory', 'Memory: MiB', sub { $_[0]{memory} / 2 ** 20 });

sub growth {
    my ($name, $title, $value) = @_;

    plot("requests-$name", $title, 'keys', \@names, map {
        my $keys = $_;
        [$keys, map { $of{$_}{$keys} ? $value->($of{$_}{$keys}) : '?' } @names];
    } sort { $a <=> $b } keys %keys);
}
