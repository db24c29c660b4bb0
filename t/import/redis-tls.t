#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests rediss:// with real servers: the certificate must be for the named host
# and from a trusted authority.  A tool that was built without TLS refuses
# rediss:// and says so.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command spawn wait_until);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;

my @from = ('--from', 'go-zero', '--bits', 1000);
my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
           '-nodes');

sub openssl {
    my ($exit, undef, $err) = run_command(['openssl', @_]);

    is($exit, 0, "'openssl $_[0]' succeeds for $_[3]") or diag $err;
}

openssl('req', '-x509', '-subj', '/CN=authority', '-days', 2, @key,
        '-keyout', "$dir/ca.key", '-out', "$dir/ca.pem");

my (%port, @servers);

sub start {
    my ($name, $subject, $names) = @_;

    openssl('req', '-x509', '-subj', "/CN=$subject", '-days', 2, @key,
            '-CA', "$dir/ca.pem", '-CAkey', "$dir/ca.key",
            '-addext', 'basicConstraints=critical,CA:FALSE',
            ($names ? ('-addext', "subjectAltName=$names") : ()),
            '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");

    $port{$name} = $t->port(8081 + 2 * @servers);
    my $plain = $port{"$name, without TLS"} = $t->port(8082 + 2 * @servers);

    $t->write_file("$name.conf", <<"CONF");
bind 127.0.0.1 127.0.0.2
port $plain
tls-port $port{$name}
tls-cert-file $dir/$name.pem
tls-key-file $dir/$name.key
tls-ca-cert-file $dir/ca.pem
tls-auth-clients @{[ $name eq 'strict' ? 'yes' : 'no' ]}
dir $dir
save ""
appendonly no
daemonize no
CONF

    push @servers, spawn(['redis-server', "$dir/$name.conf"]);

    ok(wait_until(sub {
        (run_command(['redis-cli', '-p', $plain, 'SET', 'ids', 'abc']))[1]
            =~ /OK/;
    }), "redis-server starts with certificate '$name'")
        or BAIL_OUT('no Redis to test with');
}

start('here', 'here', 'DNS:localhost,IP:127.0.0.1');
start('other', 'other.example', 'DNS:other.example,IP:127.0.0.2');
start('named', '127.0.0.1', 'DNS:127.0.0.1');
start('plain', 'localhost', '');
start('strict', 'strict', 'DNS:localhost,IP:127.0.0.1');

sub url {
    my ($name, $host) = @_;

    return "rediss://$host:$port{$name}/0/ids";
}

sub stop {
    kill 'TERM', @servers;
    wait_until(sub { !kill 0, @servers });
    done_testing;
    exit;
}


my ($exit, undef, $err) = $t->run_tool('import', '-o', "$dir/x", @from,
                                       url('here', 'localhost'),
                                       { env => { SSL_CERT_FILE
                                                      => "$dir/ca.pem" } });

if ($err =~ /has no TLS for Redis/) {
    note 'this ngx-bloom was built without TLS for Redis';
    import_fails($t, 'rediss:// by a tool without TLS',
                 qr/has no TLS for Redis, .*; use a tunnel/, @from,
                 url('here', 'localhost'));
    stop();
}


# The certificate is trusted and has the name or the address.

$t->environment(SSL_CERT_FILE => "$dir/ca.pem");

import_image($t, "$dir/plain.bloom", @from,
             "redis://127.0.0.1:$port{'here, without TLS'}/0/ids");
my ($bits) = unpack 'x8192 a*', $t->read_file('plain.bloom');

for (['here', 'localhost'], ['here', '127.0.0.1'], ['other', '127.0.0.2'],
     ['plain', 'localhost'])
{
    my ($name, $host) = @$_;

    import_image($t, "$dir/tls.bloom", @from, url($name, $host));
    ok($bits eq unpack('x8192 a*', $t->read_file('tls.bloom')),
       "an import from $host by TLS equals one without TLS: '$name'");
    unlink "$dir/tls.bloom";
}


# The certificate is trusted, but it is for another host.

for (['other', 'localhost'], ['other', '127.0.0.1'], ['here', '127.0.0.2'],
     ['named', '127.0.0.1'], ['named', 'localhost'], ['plain', '127.0.0.1'])
{
    my ($name, $host) = @$_;

    import_fails($t, "$host with certificate '$name' of another host",
                 qr/the server's certificate is not for \Q$host\E: (?:hostname|IP address) mismatch; use a name or an address that it is for/i,
                 @from, url($name, $host));
}


# The certificate is not trusted, or there is no TLS.

import_fails($t, 'a server that requires a certificate of the client',
             qr/(?:closed the connection during STRLEN|failed during STRLEN: (?:Connection reset by peer|Broken pipe))/,
             @from, url('strict', 'localhost'));

for (['closes the connection', ''], ['has no TLS', "-ERR Protocol error\r\n"]) {
    my ($what, $answer) = @$_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5)
        or die "cannot listen: $!";
    my $server = spawn(sub {
        while (my $client = $listen->accept) {
            print $client $answer;
            $client->flush;
            sysread $client, my $hello, 4096 if $answer;
            close $client;
        }
    });

    import_fails($t, "a server that $what",
                 qr/the TLS handshake failed: .+; check that the port is for TLS/,
                 @from, 'rediss://localhost:' . $listen->sockport . '/0/ids');
    kill 'TERM', $server;
}

$t->environment(SSL_CERT_FILE => "$dir/none.pem");
import_fails($t, 'a file of authorities that does not exist',
             qr/no certificate can be read from \S+none\.pem; correct the environment variable SSL_CERT_FILE/,
             @from, url('here', 'localhost'));

$t->environment(SSL_CERT_FILE => "$dir/other.pem");
import_fails($t, 'a certificate of an unknown authority',
             qr/the server's certificate is not trusted: .*certificate.*; if it should be, set SSL_CERT_FILE/,
             @from, url('here', 'localhost'));

stop();
