#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# confirm.pl ADDRESS:PORT SOCKET
# confirm.pl fill SOCKET LIST
#
# The exact service behind the filters of redirect.conf.  Redis, which listens
# at SOCKET, has a set for each list, with the canonical keys of all that is
# listed.  "fill" reads the output of `ngx-bloom expand -f` from the standard
# input and adds its keys to a list.
#
# A request has its canonical key in the header X-Key, that of a second reading
# of its URL in X-Second-Key, if there is one, and the names of the lists that
# apply to it in X-Lists, separated by commas.
#
#     204   no list has a key or an expression of it
#     403   a list has one of them, or the key is missing or not canonical, or
#           no list is named
#     500   Redis cannot be asked
#
# The program goes into the background once it listens, and writes its process
# id to confirm.pid beside it.

use strict;
use warnings;

use File::Basename qw(dirname);
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($address, $socket, $list) = @ARGV;

if (@ARGV == 3 && $address eq 'fill') {
    fill($list);
    exit;
}

die "usage: $0 ADDRESS:PORT SOCKET, or $0 fill SOCKET LIST\n" if @ARGV != 2;

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
    my ($key, @second, @lists) = '';

    while (defined(my $line = <$client>)) {
        $key = $1 if $line =~ /^X-Key: (\S+)/i;
        @second = $1 if $line =~ /^X-Second-Key: (\S+)/i;
        @lists = split /,/, $1 if $line =~ /^X-Lists: (\S+)/i;
        last if $line =~ /^\r?$/;
    }

    my @keys = map { expressions($_) } $key, @second;
    my $status = eval {
        !expressions($key) || !@lists || grep({ has($_, @keys) } @lists) ? 403 : 204;
    } // 500;

    print $client "HTTP/1.0 $status -\r\nContent-Length: 0\r\n\r\n";
}


# Returns the expressions of a canonical URL: see docs/key-forms.md.

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


# Adds the first expression of each paragraph of the standard input to a set in
# Redis.

sub fill {
    my ($list) = @_;

    local $/ = '';

    while (my $paragraph = <STDIN>) {
        my (undef, $key) = split /\n/, $paragraph;

        defined $key or die "not of `ngx-bloom expand -f`: $paragraph\n";
        redis('SADD', $list, $key);
    }
}


# Returns whether a set in Redis has one of the keys.

sub has {
    my ($list, @keys) = @_;

    return scalar grep { $_ } redis('SMISMEMBER', $list, @keys);
}


# Returns the numbers that Redis answers to a command.  Each argument has its
# length, so nothing in it is interpreted.  Dies unless the answer is whole.

sub redis {
    my @command = @_;

    my $redis = IO::Socket::UNIX->new(Peer => $socket) or die "no Redis: $!\n";

    print $redis join '', '*' . @command . "\r\n",
                      map { '$' . length($_) . "\r\n$_\r\n" } @command;

    local $/ = "\n";

    my $answer = sub {
        (<$redis> // '') =~ /^([*:])(\d+)\r\n\z/ or die "no answer\n";
        return ($1, $2);
    };
    my ($type, $number) = $answer->();

    return $number if $type eq ':';

    return map { ($answer->())[1] } 1 .. $number;
}
