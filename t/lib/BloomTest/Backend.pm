# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Backend;

# A small HTTP server behind nginx, which gives prepared answers and records
# requests.  It has a process for each connection and takes one request on each.

use strict;
use warnings;

use Carp qw(croak);
use Fcntl qw(O_WRONLY O_CREAT O_APPEND);
use IO::Socket::INET;
use JSON::PP ();

use BloomTest::Process qw(spawn alive wait_until session_members);


# An answer is a body, or a hash of status, headers (a list of pairs) and
# body, or a hash with a function `raw` that writes the whole response to the
# connection.  $answer is an answer, a hash reference {path => answer} under the
# key `paths`, or a function from the request to an answer.

sub new {
    my ($class, %self) = @_;    # port, record (a file), answer

    my $self = bless \%self, $class;

    my $listen = IO::Socket::INET->new(
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $self->{port},
        Listen => 128, ReuseAddr => 1)
        or croak "backend: cannot listen on 127.0.0.1:$self->{port}: $!";

    open my $stderr, '>&', \*STDERR;

    $self->{pid} = spawn(sub {
        $SIG{CHLD} = 'IGNORE';

        while (1) {
            my $client = $listen->accept or next;
            my $child = fork();

            if (!defined $child || $child == 0) {
                eval { $self->_serve($client); 1 } or syswrite STDERR, $@;
                close $client;
                POSIX::_exit(0) if defined $child;
            }
        }
    }, stderr => $stderr);

    return $self;
}


# Returns the requests so far: {method, uri, headers, body}.

sub requests {
    my ($self) = @_;

    open my $fh, '<:raw', $self->{record} or return;

    return map { JSON::PP::decode_json($_) } <$fh>;
}


sub stop {
    my ($self) = @_;

    my $pid = delete $self->{pid} or return;

    kill 'KILL', -$pid;
    wait_until(sub { !alive($pid) && !session_members($pid) })
        or croak "backend $pid does not end";
}


sub _serve {
    my ($self, $client) = @_;

    local $SIG{PIPE} = 'IGNORE';
    my $request = _read_request($client) or return;

    # recorded in one write before it is answered, so that a client that has the
    # answer finds the record

    sysopen my $record, $self->{record}, O_WRONLY | O_CREAT | O_APPEND
        or die "backend: cannot write $self->{record}: $!\n";
    syswrite $record, JSON::PP::encode_json($request) . "\n";

    my $answer = $self->{answer};
    $answer = $answer->{paths}{$request->{uri}} // { status => 404 }
        if ref $answer eq 'HASH' && $answer->{paths};
    $answer = $answer->($request) if ref $answer eq 'CODE';
    $answer = { body => $answer } unless ref $answer;

    return $answer->{raw}->($client) if $answer->{raw};

    my $body = $answer->{body} // '';
    my @headers = @{ $answer->{headers} || [] };

    unshift @headers, 'Content-Length' => length $body
        unless grep { lc eq 'content-length' } @headers;

    my $text = 'HTTP/1.1 ' . ($answer->{status} // 200) . " Backend\r\n"
               . "Connection: close\r\n";

    while (my ($name, $value) = splice @headers, 0, 2) {
        $text .= "$name: $value\r\n";
    }

    print $client "$text\r\n", $request->{method} eq 'HEAD' ? '' : $body;
}


sub _read_request {
    my ($client) = @_;

    my $line = <$client> // return;
    my ($method, $uri) = split ' ', $line;
    my %headers;

    while (defined($line = <$client>) && $line =~ /\S/) {
        $headers{lc $1} = $2 if $line =~ /^([^:\s]+):\s*(.*?)\s*$/;
    }

    my $body = '';

    if (lc($headers{'transfer-encoding'} // '') eq 'chunked') {
        while (my $size = hex((<$client> // '') =~ /^([0-9a-fA-F]+)/
                              ? $1 : 0))
        {
            read $client, $body, $size, length $body;
            <$client>;
        }
        <$client>;

    } elsif ($headers{'content-length'}) {
        read $client, $body, $headers{'content-length'};
    }

    return { method => $method, uri => $uri, headers => \%headers,
             body => $body };
}


1;
