#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests rediss:// with real servers: the server's certificate must be for the
# named host and from a trusted authority, and a server that asks for a
# certificate of the client gets one.

use strict;
use warnings;

use BloomTest;
use BloomTest::FakeServer qw(fake_server);
use BloomTest::Foreign;
use BloomTest::Process qw(run_command);
use BloomTest::Redis qw(redis redis_server redis_stop);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;

my @from = ('--from', 'go-zero', '--bits', 1000);
my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
           '-nodes');

sub openssl {
    my ($exit, undef, $err) = run_command(['openssl', @_]);

    is($exit, 0, "'openssl $_[0]' succeeds for $_[3]") or diag $err;
}

# Makes an authority.

sub authority {
    my ($name) = @_;

    openssl('req', '-x509', '-subj', "/CN=$name", '-days', 2, @key,
            '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");
}

# Makes a certificate of an authority.

sub certify {
    my ($authority, $name, $subject, $names) = @_;

    openssl('req', '-x509', '-subj', "/CN=$subject", '-days', 2, @key,
            '-CA', "$dir/$authority.pem", '-CAkey', "$dir/$authority.key",
            '-addext', 'basicConstraints=critical,CA:FALSE',
            ($names ? ('-addext', "subjectAltName=$names") : ()),
            '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");
}

my (%port, @servers);

sub start {
    my ($name, $subject, $names, @more) = @_;

    my $number = 8081 + 2 * @servers;

    certify('ca', $name, $subject, $names);
    $port{$name} = $t->port($number);

    my $server = redis_server($t, $number + 1, 'bind 127.0.0.1 127.0.0.2',
                              "tls-port $port{$name}",
                              "tls-cert-file $dir/$name.pem",
                              "tls-key-file $dir/$name.key",
                              "tls-ca-cert-file $dir/ca.pem",
                              @more ? @more : 'tls-auth-clients no');

    is(redis($server, 'SET', 'ids', 'abc'), 'OK',
       "a server runs with certificate '$name'");
    push @servers, $server;
    $port{"$name, without TLS"} = $server->{port};
}

authority('ca');
start('here', 'here', 'DNS:localhost,IP:127.0.0.1');
start('other', 'other.example', 'DNS:other.example,IP:127.0.0.2');
start('named', '127.0.0.1', 'DNS:127.0.0.1');
start('plain', 'localhost', '');
start('strict', 'strict', 'DNS:localhost,IP:127.0.0.1', 'tls-auth-clients yes');
start('older', 'older', 'DNS:localhost', 'tls-auth-clients yes',
      'tls-protocols TLSv1.2');

sub url {
    my ($name, $host) = @_;

    return "rediss://$host:$port{$name}/0/ids";
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


# A server that asks for a certificate of the client

certify('ca', 'client', 'client', '');
authority('stranger');
certify('stranger', 'strange', 'strange', '');
openssl('req', '-new', '-subj', '/CN=late', @key, '-keyout', "$dir/late.key",
        '-out', "$dir/late.csr");
openssl('x509', '-req', '-in', "$dir/late.csr", '-CA', "$dir/ca.pem", '-CAkey',
        "$dir/ca.key", '-days', -1, '-out', "$dir/late.pem");
openssl('pkey', '-in', "$dir/client.key", '-aes256', '-passout', 'pass:secret',
        '-out', "$dir/locked.key");
openssl('x509', '-in', "$dir/client.pem", '-outform', 'der', '-out',
        "$dir/client.der");
openssl('genrsa', '-out', "$dir/rsa.key", '2048');
$t->write_file('both.pem', join '', map { $t->read_file($_) } 'client.pem',
                                                              'client.key');

my @client = ('--cert', "$dir/client.pem", '--cert-key', "$dir/client.key");

for my $server ('strict', 'older') {
    for ([@client], ['--cert', "$dir/both.pem"]) {
        import_image($t, "$dir/tls.bloom", @from, @$_, '--cacert',
                     "$dir/ca.pem", url($server, 'localhost'));
        ok($bits eq unpack('x8192 a*', $t->read_file('tls.bloom')),
           "server '$server' accepts the certificate of the client");
        unlink "$dir/tls.bloom";
    }

    import_fails($t, "no certificate for server '$server'",
                 qr/the server requires a certificate of the client; give one by --cert and --cert-key/,
                 @from, url($server, 'localhost'));

    import_fails($t, "a certificate that server '$server' does not trust",
                 qr/the server does not trust the authority that issued the certificate of --cert; /,
                 @from, '--cert', "$dir/strange.pem", '--cert-key',
                 "$dir/strange.key", url($server, 'localhost'));
}

for (['cert that does not exist', ['--cert', "$dir/none.pem"],
      qr/--cert "\S+none\.pem": cannot be read: No such file or directory; /],
     ['key that does not exist',
      ['--cert', "$dir/client.pem", '--cert-key', "$dir/none.key"],
      qr/--cert-key "\S+none\.key": cannot be read: No such file or directory; /],
     ['authority that does not exist', ['--cacert', "$dir/none.pem"],
      qr/--cacert "\S+none\.pem": cannot be read: No such file or directory; /],
     ['cert in DER format', ['--cert', "$dir/client.der"],
      qr/--cert "\S+": has no certificate in PEM format/],
     ['authority in DER format', ['--cacert', "$dir/client.der"],
      qr/--cacert "\S+": has no certificate in PEM format; "openssl x509 -inform der" converts/],
     ['cert without a key', ['--cert', "$dir/client.pem"],
      qr/--cert "\S+": has no private key in PEM format; name the file of the key by --cert-key/],
     ['key without a cert', ['--cert-key', "$dir/client.key"],
      qr/--cert-key is for the certificate of --cert, which is missing/],
     ['key that is a certificate',
      ['--cert', "$dir/client.pem", '--cert-key', "$dir/client.pem"],
      qr/--cert-key "\S+": has no private key in PEM format$/],
     ['key of another certificate',
      ['--cert', "$dir/client.pem", '--cert-key', "$dir/strange.key"],
      qr/--cert-key "\S+": is not the key of the certificate in --cert/],
     ['key of another type',
      ['--cert', "$dir/client.pem", '--cert-key', "$dir/rsa.key"],
      qr/--cert-key "\S+": is not the key of the certificate in --cert/],
     ['key with a password',
      ['--cert', "$dir/client.pem", '--cert-key', "$dir/locked.key"],
      qr/--cert-key "\S+": the key has a password, which is not supported; "openssl pkey" writes/],
     ['cert that expired',
      ['--cert', "$dir/late.pem", '--cert-key', "$dir/late.key"],
      qr/--cert "\S+": expired at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; renew it/])
{
    my ($what, $options, $message) = @$_;

    import_fails($t, "a $what", $message, @from, @$options,
                 url('strict', 'localhost'));
}


# The certificate is not trusted, or there is no TLS.

for (['closes the connection', ''], ['has no TLS', "-ERR Protocol error\r\n"]) {
    my ($what, $answer) = @$_;

    my ($server, $port) = fake_server(sub {
        my ($client) = @_;

        syswrite $client, $answer;
        sysread $client, my $hello, 4096 if $answer;
    });

    import_fails($t, "a server that $what",
                 qr/the TLS handshake failed: .+; check that the port is for TLS/,
                 @from, "rediss://localhost:$port/0/ids");
    kill 'TERM', $server;
}

$t->environment(SSL_CERT_FILE => "$dir/none.pem");
import_fails($t, 'a file of authorities that does not exist',
             qr/SSL_CERT_FILE "\S+none\.pem": cannot be read: No such file or directory; /,
             @from, url('here', 'localhost'));

$t->environment(SSL_CERT_FILE => "$dir/other.pem");
import_fails($t, 'a certificate of an unknown authority',
             qr/the server's certificate is not trusted: .*certificate.*; if it should be, name the certificate of its authority by --cacert/,
             @from, url('here', 'localhost'));

redis_stop($_) for @servers;
done_testing;
