# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::HeldBackend;

# A backend in the process of the test.  It looks for the row of a key when nginx
# asks, and sends the answer when the test says so, in any order.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;

use BloomTest::Process qw(time_limit);


# The function `row` gets the key of a request, its argument "id", and returns
# the backend's status.

sub new {
    my ($class, $t, $port, $row) = @_;

    my $listen = IO::Socket::INET->new(
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $t->port($port),
        Listen => 128, ReuseAddr => 1)
        or croak "held backend: cannot listen: $!";

    return bless { t => $t, listen => $listen, row => $row }, $class;
}


# Makes a request to nginx for a path with a key.  Returns the status of nginx's
# response, or, if nginx asks the backend, the request as a hash: key, status
# (of the backend, not sent yet).

sub asks {
    my ($self, $path, $key) = @_;

    my $connection = $self->{t}->connect;

    $connection->send($self->{t}->request_text(GET => "$path?id=$key"));

    my ($ready) = IO::Select->new($self->{listen}, $connection->{socket})
                            ->can_read(time_limit());

    croak "neither an answer nor a request to the backend: $key" if !$ready;

    return $connection->response('GET')->status if $ready != $self->{listen};

    my $socket = $self->{listen}->accept or croak "accept: $!";
    my $request = '';

    while ($request !~ /\r\n\r\n/) {
        sysread $socket, $request, 4096, length $request
            or croak "the request for $key is not complete";
    }

    $request =~ /^GET \S*[?&]id=\Q$key\E /
        or croak "another request than for $key:\n$request";

    return { key => $key, status => $self->{row}->($key), socket => $socket,
             connection => $connection };
}


# Sends the backend's answer, and does not wait for nginx.

sub lets_out {
    my ($self, $held) = @_;

    local $SIG{PIPE} = 'IGNORE';    # a worker may have been killed

    syswrite $held->{socket}, "HTTP/1.1 $held->{status} Backend\r\n"
                              . "Content-Length: 0\r\n\r\n";
    close $held->{socket};
}


# Returns the status that the client gets; 0 if its worker was killed.

sub status_of { return $_[1]{connection}->response('GET')->status }


1;
