#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An import reads a key by a Unix socket, and tries each address of a server's
# name.  It names what keeps it from a socket, and the server's limit that an answer exceeds.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(now run_command);
use BloomTest::Redis qw(redis redis_server redis_stop);
use BloomTest::Tool qw(content_of tool_path);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my @from = ('--from', 'go-zero', '--bits', 1000);
my $socket = "$dir/re\@d?is.sock";
my $written = $socket =~ s/\@/%40/r =~ s/\?/%3F/r;
my $server = redis_server($t, 6379, "unixsocket $socket", 'unixsocketperm 700',
                          'requirepass secret');

sub ask { return redis($server, '-a', 'secret', '--no-auth-warning', @_) }

ask('-n', $_->[0], 'SET', $_->[1], $_->[2])
    for [0, 'ids', 'abc'], [3, 'ids', 'xyz'], [3, 'a&b@c d', 'xyz'];

# Imports from a URL, and tests that the image has these bytes.

sub imports {
    my ($what, $url, $bytes, @options) = @_;

    my $image = "$dir/x.bloom";
    my ($exit, undef, $err) = $t->run_tool('import', '-o', $image, @from,
                                           @options, $url);

    is($exit, 0, "an import succeeds: $what") or diag $err;
    is(substr($t->read_file('x.bloom'), 8192, 3), reversed_bits($bytes),
       "the image has the bits: $what");
    unlink $image;
}

# Redis numbers the bits of a byte from the other end.

sub reversed_bits { return pack 'b*', unpack 'B*', $_[0] }


# A Unix socket

imports('a database and a key', "unix://:secret\@$written?db=3&key=ids", 'xyz');
imports('the key first', "UNIX://:secret\@$written?key=ids&db=3", 'xyz');
imports('database 0', "unix://secret\@$written?key=ids", 'abc');
imports('a key with other characters',
        "unix://:secret\@$written?db=3&key=a%26b%40c d", 'xyz');
$t->environment(REDISCLI_AUTH => 'secret');
imports('a password in the environment', "unix://$written?key=ids", 'abc');

for ("unix://$written", "unix://$written?db=3", "unix://$written?key=",
     "unix://$written?key=ids&key=ids", "unix://$written?key=ids&db=-1",
     'unix://host?key=ids', 'unix:ids')
{
    import_fails($t, $_, qr{: is not the address of a Redis key; write redis://host:port/database/key or unix:///path\?db=database&key=key, },
                 @from, $_);
}

import_fails($t, 'a password with a slash, and a socket',
             qr{^ngx-bloom import: unix:///y\?key=ids: is not the address},
             @from, 'unix://:sec/ret@/y?key=ids');
import_fails($t, 'a socket that does not exist',
             qr/unix:\S+: cannot connect: No such file or directory; check the path/,
             @from, "unix://$dir/none?key=ids");

import_fails($t, 'a path that is a file',
             qr/cannot connect: \S.*; it is not a socket; use the path in the server's unixsocket/,
             @from, "unix://$dir/redis-6379.conf?key=ids");
import_fails($t, 'a path that is too long',
             qr/cannot connect: the path of the socket has more than 107 bytes; use a shorter one/,
             @from, 'unix:///' . 'x' x 200 . '?key=ids');

SKIP: {
    skip 'only root can be another user', 1 if $> != 0;

    my $copy = $t->write_file('tool', content_of(tool_path()));
    chmod 0755, $copy, $dir;
    chmod 0600, $socket;
    mkdir "$dir/nobody";
    chmod 0777, "$dir/nobody";

    my (undef, undef, $err) = run_command(
        ['setpriv', '--reuid', 65534, '--regid', 65534, '--clear-groups', $copy,
         'import', '-o', "$dir/nobody/x", @from, "unix://$written?key=ids"]);
    like($err, qr/cannot connect: Permission denied; the user needs write access to the socket, which the server's unixsocketperm gives, /,
         'the message about a socket without permission names unixsocketperm');
}


# A name with several addresses: one refuses, one never answers, one has the
# server.

my $code = $t->write_file('names.c', <<'CODE');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Gives redis.example the addresses in the variable ADDRESSES. */
int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
    struct addrinfo **result)
{
    int               rc;
    char             *list, *address, *rest;
    struct addrinfo **end;
    int             (*real)(const char *, const char *, const struct addrinfo *,
                            struct addrinfo **);

    real = (__typeof__(real)) dlsym(RTLD_NEXT, "getaddrinfo");

    if (strcmp(node, "redis.example") != 0) {
        return real(node, service, hints, result);
    }

    list = strdup(getenv("ADDRESSES"));
    end = result;

    for (address = strtok_r(list, " ", &rest); address != NULL;
         address = strtok_r(NULL, " ", &rest))
    {
        rc = real(address, service, hints, end);

        if (rc != 0) {
            return rc;
        }

        while (*end != NULL) {
            end = &(*end)->ai_next;
        }
    }

    free(list);

    return 0;
}
CODE

my ($exit, undef, $said) = run_command([$ENV{CC} // 'cc', '-shared', '-fPIC',
                                        '-o', "$dir/names.so", $code, '-ldl']);
is($exit, 0, 'the compiler builds a library that knows redis.example')
    or diag $said;
$t->environment(LD_PRELOAD => "$dir/names.so");

my $url = "redis://redis.example:$server->{port}/0/ids";

# A listener whose queue is full answers nobody.

my $full = IO::Socket::INET->new(LocalAddr => '127.0.0.3',
                                 LocalPort => $server->{port}, Listen => 1)
    or die "cannot listen: $!";
my @waiting = map {
    IO::Socket::INET->new(PeerAddr => '127.0.0.3', PeerPort => $server->{port},
                          Blocking => 0)
} 1 .. 4;

for (['the first one', '127.0.0.1 127.0.0.2'],
     ['the second one, after one that refuses', '127.0.0.2 127.0.0.1'],
     ['one of IPv4, after one of IPv6', '::1 127.0.0.1'],
     ['the last one, after one that never answers',
      '127.0.0.2 127.0.0.3 127.0.0.1'])
{
    my ($what, $addresses) = @$_;

    $t->environment(ADDRESSES => $addresses);
    imports("$what of a name's addresses", $url, 'abc', '--timeout', 6);
}

$t->environment(ADDRESSES => '127.0.0.2 ::1');
import_fails($t, 'a name of which no address accepts',
             qr/cannot connect: 127\.0\.0\.2: Connection refused, ::1: [^,]+; check the address, and that the server is running/,
             @from, $url);

$t->environment(ADDRESSES => '127.0.0.3 127.0.0.3');
my $begun = now();
import_fails($t, 'a name of which no address answers',
             qr/cannot connect: 127\.0\.0\.3: Connection timed out, 127\.0\.0\.3: Connection timed out; /,
             @from, '--timeout', 2, $url);
cmp_ok(now() - $begun, '<', 20,
       'all addresses together have the time of --timeout');

$t->environment(LD_PRELOAD => '', ADDRESSES => '');
import_fails($t, 'a name without an address',
             qr/cannot connect: .*; check the name of the server/,
             @from, 'redis://redis.invalid/0/ids');


# A limit for a client's output

ask('SETRANGE', 'large', 9_000_000, 'x');
ask('CONFIG', 'SET', 'client-output-buffer-limit', 'normal 1000000 0 0');
import_fails($t, 'an answer that exceeds the limit of the server',
             qr/closed the connection during GETRANGE; look at its log, and if that speaks of output buffer limits, raise client-output-buffer-limit for normal clients/,
             '--from', 'go-zero', '--bits', 80_000_000,
             "redis://127.0.0.1:$server->{port}/0/large");
redis_stop($server);

done_testing;
