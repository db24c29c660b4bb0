#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` and `ngx-bloom status` trust an https:// endpoint only if its
# certificate is for the host and from a trusted authority, and `follow` a
# rediss:// server likewise.  Both show a certificate to a server that asks for
# one.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(follow log_of redis redis_server redis_stop
                         stop_follow wait_for_event);
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
           '-nodes', '-days', 2);

sub openssl {
    my ($exit, undef, $err) = run_command(['openssl', @_]);
    $exit == 0 or die "openssl @_: $err";
}

# Certificates: of the host by the authority, of another host by it, and of the
# host by nobody.

openssl('req', '-x509', '-subj', '/CN=authority', @key,
        '-keyout', "$dir/ca.key", '-out', "$dir/ca.pem");

for (['right', 'DNS:localhost', 1], ['other', 'DNS:other.example', 1],
     ['unknown', 'DNS:localhost', 0], ['client', 'DNS:client.example', 1])
{
    my ($name, $names, $issued) = @$_;

    openssl('req', '-x509', '-subj', "/CN=$name", @key,
            ($issued ? ('-CA', "$dir/ca.pem", '-CAkey', "$dir/ca.key") : ()),
            '-addext', 'basicConstraints=critical,CA:FALSE',
            '-addext', "subjectAltName=$names",
            '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");
}

my %port = (right => 8443, other => 8444, unknown => 8445);
my $servers = join '', map { <<"CONF" } sort keys %port;
    server {
        listen 127.0.0.1:%%PORT_$port{$_}%% ssl;
        ssl_certificate $dir/$_.pem;
        ssl_certificate_key $dir/$_.key;
        location /bloom/ { bloom_api write=on; }
    }
CONF

$t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids capacity=10k fpr=1e-9;
    bloom_source zone=ids name=ids max_lag=10s;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        location = /ids { bloom_reject absent \$arg_k zone=ids; return 200; }
    }
$servers
    server {
        listen 127.0.0.1:%%PORT_8446%% ssl;
        ssl_certificate $dir/right.pem;
        ssl_certificate_key $dir/right.key;
        ssl_client_certificate $dir/ca.pem;
        ssl_verify_client on;
        location /bloom/ { bloom_api write=on; }
    }
}
CONF

$t->run;
$t->environment(SSL_CERT_FILE => "$dir/ca.pem");

my $redis = redis_server($t, 6379);

sub base { return "https://localhost:" . $t->port($port{$_[0]}) . '/bloom' }

sub entry { return redis($redis, 'XADD', 's', '*', @_) =~ s/-0$//r }

sub begin {
    my ($name, @server) = @_;

    return follow($t, '--from', 'beginning', '--zone', base($name) . '/zones/ids',
                  @server ? @server : $redis->{url});
}

sub position { return zone_state($t, 'ids')->{source}{position} }


my $position = entry('add', 'one');
my $follower = begin('right');

ok(wait_until(sub { position() eq $position }),
   'a follower trusts the right certificate') or diag explain [log_of($follower)];
ok(wait_until(sub { zone_state($t, 'ids')->{source}{state} eq 'current' }),
   'and gives signs of life');
my ($exit, $out, $err) = $t->run_tool('status', base('right') . '/');
is($exit, 0, 'status trusts the right certificate') or diag $out . $err;
stop_follow($follower);

for (['other', qr/certificate.*(?:match|not trusted)/i,
      'of another host'],
     ['unknown', qr/certificate is not trusted: .* by --cacert/i,
      'of an unknown authority'])
{
    my ($name, $message, $what) = @$_;

    entry('add', "behind $name");
    $follower = begin($name);
    ok(wait_for_event($follower, 'unreachable', $message),
       "a follower names a certificate $what")
        or diag explain [log_of($follower)];
    stop_follow($follower);

    ($exit, $out, $err) = $t->run_tool('status', base($name) . '/');
    is($exit, 1, "status fails at a certificate $what");
    like($out . $err, qr/certificate/i, "and names it: $what");
}

is(position(), $position, 'nothing was sent to a server that is not trusted');


# Redis by TLS

my %tls = (right => 6400, other => 6402, unknown => 6404);

sub secure_server {
    my ($number, $name, $clients) = @_;

    return redis_server($t, $number + 1, 'tls-port ' . $t->port($number),
                        "tls-cert-file $dir/$name.pem",
                        "tls-key-file $dir/$name.key",
                        "tls-ca-cert-file $dir/ca.pem",
                        "tls-auth-clients $clients");
}

for my $name (sort keys %tls) {
    my $secure = secure_server($tls{$name}, $name, 'no');
    my $id = redis($secure, 'XADD', 's', '*', 'add', $name) =~ s/-0$//r;

    $follower = begin('right', 'rediss://localhost:' . $t->port($tls{$name}));

    if ($name eq 'right') {
        ok(wait_until(sub { position() eq $id }),
           'a follower trusts the right certificate of Redis')
            or diag explain [log_of($follower)];
    } else {
        ok(wait_for_event($follower, 'redis_failed',
                          qr/certificate is not (?:for localhost|trusted)/),
           "a follower names the certificate '$name' of Redis")
            or diag explain [log_of($follower)];
    }

    stop_follow($follower);
    redis_stop($secure);
}


# A Redis and an nginx that ask for a certificate of the client

my $asking = secure_server(6406, 'right', 'yes');
my $asked = 'rediss://localhost:' . $t->port(6406);
my @client = ('--cert', "$dir/client.pem", '--cert-key', "$dir/client.key");
my $at_nginx = 'https://localhost:' . $t->port(8446) . '/bloom';

delete $t->{env}{SSL_CERT_FILE};
$position = redis($asking, 'XADD', 's', '*', 'add', 'two') =~ s/-0$//r;

$follower = begin('right', '--cacert', "$dir/ca.pem", $asked);
ok(wait_for_event($follower, 'redis_failed',
                  qr/requires a certificate of the client; give one by --cert/),
   'a follower without a certificate says what Redis requires')
    or diag explain [log_of($follower)];
stop_follow($follower);

$follower = follow($t, '--from', 'beginning', '--zone', "$at_nginx/zones/ids",
                   '--cacert', "$dir/ca.pem", @client, $asked);
ok(wait_until(sub { position() eq $position }),
   'a follower shows its certificate to Redis and to nginx')
    or diag explain [log_of($follower)];
stop_follow($follower);

($exit, $out, $err) = $t->run_tool('status', '--cacert', "$dir/ca.pem", @client,
                                   "$at_nginx/");
like($out, qr/^ids +localhost:\d+ +late/m,
     'status shows its certificate to nginx') or diag $out . $err;
($exit, $out, $err) = $t->run_tool('status', '--cacert', "$dir/ca.pem",
                                   "$at_nginx/");
unlike($out, qr/^ids /m, 'status gets nothing without a certificate that nginx '
                         . 'asks for');

for ('status', 'follow') {
    ($exit, $out, $err) = $t->run_tool(
        $_, '--cert', "$dir/none.pem", $_ eq 'status' ? "$at_nginx/"
        : ('--stream', 's', '--source', 'ids', '--zone', "$at_nginx/zones/ids",
           $asked));
    is($exit, 2, "$_ refuses a certificate that does not exist");
    like($err, qr/--cert "\S+none\.pem": cannot be read: No such file/,
         "$_ names the certificate that does not exist");
}

# A renewed certificate is used from the next connection on.

rename "$dir/client.pem", "$dir/kept.pem" or die;
$follower = follow($t, '--zone', base('right') . '/zones/ids',
                   '--cacert', "$dir/ca.pem", '--cert', "$dir/kept.pem",
                   '--cert-key', "$dir/client.key", $asked);
ok(wait_for_event($follower, 'connected'), 'a follower runs');
rename "$dir/kept.pem", "$dir/gone.pem" or die;
redis($asking, 'CLIENT', 'KILL', 'TYPE', 'normal');
ok(wait_for_event($follower, 'redis_failed', qr/--cert "\S+kept\.pem": cannot be read/),
   'a follower reads its certificate with each connection, and names one that '
   . 'is gone');
rename "$dir/gone.pem", "$dir/kept.pem" or die;
$position = redis($asking, 'XADD', 's', '*', 'add', 'three') =~ s/-0$//r;
ok(wait_until(sub { position() eq $position }),
   'a follower goes on when its certificate is back')
    or diag explain [log_of($follower)];
stop_follow($follower);

redis_stop($_) for $asking, $redis;
done_testing;
