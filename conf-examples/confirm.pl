#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# confirm.pl ADDRESS:PORT SOCKET
#
# Confirms a filter's matches by exact lists in Redis, which listens at SOCKET:
# the set "bad" has the canonical keys of all listed URLs, the set "good" those
# of the allow list.  A request has a canonical key in X-Key.  The answer is 403
# if an expression of the key is in "bad" and none is in "good", or if it is no
# canonical key; 500 if Redis cannot be asked; else 204.
#
# The program goes into the background when it listens, and writes its process
# id to confirm.pid beside it.

use strict;
use warnings;

use File::Basename qw(dirname);
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($address, $socket) = @ARGV;
die "usage: $0 ADDRESS:PORT SOCKET\n" if @ARGV != 2;

my $server = IO::Socket::INET->new(LocalAddr => $address, Listen => 128,
                                   ReuseAddr => 1)
    or die "$0: cannot listen on $address: $!\n";

my $pid = fork // die "$0: cannot fork: $!\n";

if ($pid) {
    open my $file, '>', dirname($0) . '/confirm.pid' or die "$0: $!\n";
    print $file "$pid\n";
    exit;
}

open $_->[0], $_->[1], '/dev/null'
    for [\*STDIN, '<'], [\*STDOUT, '>'], [\*STDERR, '>'];

$SIG{PIPE} = 'IGNORE';

while (1) {
    my $client = $server->accept or next;
    my $key = '';

    while (defined(my $line = <$client>)) {
        $key = $1 if $line =~ /^X-Key: (\S+)/i;
        last if $line =~ /^\r?$/;
    }

    my @keys = expressions($key);
    my $status = eval {
        !@keys || has('bad', @keys) && !has('good', @keys) ? 403 : 204;
    } // 500;

    print $client "HTTP/1.0 $status -\r\nContent-Length: 0\r\n\r\n";
}


# What a canonical URL is looked up by, as docs/key-forms.md has it.

sub expressions {
    my ($key) = @_;

    my ($host, $path, $query) = $key =~ m{^([^/]+)(/[^?]*)(\?.*)?$} or return;
    my @hosts = ($host);
    my @paths = (defined $query ? $path . $query : (), $path);

    if ($host !~ /^\[|^[\d.]+$/) {
        my @labels = split /\./, $host;

        push @hosts, map { join '.', @labels[-$_ .. -1] }
                     grep { $_ < @labels } 5, 4, 3, 2;
    }

    my $directory = '';
    my @parts = $path =~ m{([^/]*/)}g;

    for my $part (splice @parts, 0, 4) {
        $directory .= $part;
        push @paths, $directory if $directory ne $path;
    }

    return map { my $host = $_; map { $host . $_ } @paths } @hosts;
}


# Whether a set in Redis has one of them.

sub has {
    my @command = ('SMISMEMBER', @_);

    return 0 if @_ == 1;

    my $redis = IO::Socket::UNIX->new(Peer => $socket) or die "no Redis: $!\n";

    print $redis join '', '*' . @command . "\r\n",
                      map { '$' . length($_) . "\r\n$_\r\n" } @command;

    my $first = <$redis> // '';
    $first =~ /^\*(\d+)/ or die "no answer: $first\n";

    return scalar grep { <$redis> =~ /^:1/ } 1 .. $1;
}
