#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` and `ngx-bloom status` trust an https:// endpoint only if its
# certificate is for the host and from a trusted authority, and `follow` a
# rediss:// server likewise.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(ended follow log_of redis redis_server stop_follow
                         wait_for_event);
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
     ['unknown', 'DNS:localhost', 0])
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
    bloom_zone zone=ids capacity=10k fpr=1e-9 source=ids max_lag=10s;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        location = /ids { bloom_reject absent \$arg_k zone=ids; return 200; }
    }
$servers
}
CONF

$t->run;
$t->environment(SSL_CERT_FILE => "$dir/ca.pem");

my $redis = redis_server($t, 6379);

sub base { return "https://localhost:" . $t->port($port{$_[0]}) . '/bloom' }

sub entry { return redis($redis, 'XADD', 's', '*', @_) =~ s/-0$//r }

sub begin {
    my ($name, $server) = @_;

    return follow($t, '--from', 'beginning', '--zone', base($name) . '/zones/ids',
                  $server // $redis->{url});
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
     ['unknown', qr/certificate is not trusted: .*set SSL_CERT_FILE/i,
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

subtest 'a follower of a rediss:// server' => sub {
    my (undef, undef, $said) = $t->run_tool(
        'import', '-o', "$dir/x", '--from', 'go-zero', '--bits', 1000,
        "rediss://127.0.0.1:$redis->{port}/0/ids");
    plan skip_all => 'this ngx-bloom was built with a hiredis without TLS'
        if $said =~ /has no TLS for Redis/;

    my %tls = (right => 6400, other => 6402, unknown => 6404);

    for my $name (sort keys %tls) {
        my $secure = redis_server($t, $tls{$name} + 1,
                                  'tls-port ' . $t->port($tls{$name}),
                                  "tls-cert-file $dir/$name.pem",
                                  "tls-key-file $dir/$name.key",
                                  "tls-ca-cert-file $dir/ca.pem",
                                  'tls-auth-clients no');
        my $id = redis($secure, 'XADD', 's', '*', 'add', $name) =~ s/-0$//r;

        $follower = begin('right',
                          'rediss://localhost:' . $t->port($tls{$name}));

        if ($name eq 'right') {
            ok(wait_until(sub { position() eq $id }),
               'a follower trusts the right certificate')
                or diag explain [log_of($follower)];
        } else {
            ok(wait_for_event($follower, 'redis_failed',
                              qr/certificate is not (?:for localhost|trusted)/),
               "a follower names the certificate '$name'")
                or diag explain [log_of($follower)];
        }

        stop_follow($follower);
        kill 'KILL', $secure->{pid};
    }
};

kill 'KILL', $redis->{pid};
done_testing;
