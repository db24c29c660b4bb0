# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Streams;

# A connection of HTTP/2 or HTTP/3 that a test drives frame by frame.  Http2.pm
# and Http3.pm have what differs; a test that gets the class as an argument runs
# over both.
#
#   my $c = $class->new($t);                   options: port (default: 8082), window
#   my $id = $c->open(POST => $path);          sends the headers
#   $c->data($id, 'one');                      sends one frame
#   $c->data($id, '', end => 1);
#   my $response = $c->response($id);
#
# Streams are independent: a test may open many before it asks for a response.
# `window` is how many bytes of a response nginx may send ahead.

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Response;


# Sends the headers of a request and returns its stream.  Options: headers (a
# list of pairs), end => 1 if the request has no body.

sub open {
    my ($self, $method, $path, %option) = @_;

    my $stream = $self->next_stream;
    my @headers = (':method' => $method, ':scheme' => $self->scheme,
                   ':path' => $path, ':authority' => 'localhost',
                   @{ $option{headers} || [] });

    $self->{streams}{$stream} = { method => $method, body => '' };
    $self->send_headers($stream, \@headers, $option{end});

    return $stream;
}


# Ends a request's body with trailers, given as pairs.

sub trailers {
    my ($self, $stream, @headers) = @_;

    $self->send_headers($stream, \@headers, 1);
}


# Sends a request and returns its stream.  Options: headers; body; piece (the
# size of a frame of the body, default 16384) or pieces (a list of the sizes of
# all frames); padding (for HTTP/2, bytes for each frame); unsized => 1 leaves
# out Content-Length; empty_end => 1 ends the body with an empty frame; trailers
# (pairs).

sub request {
    my ($self, $method, $path, %option) = @_;

    my @headers = @{ $option{headers} || [] };
    my $body = $option{body};

    return $self->open($method, $path, headers => \@headers, end => 1)
        if !defined $body;

    push @headers, 'content-length' => length $body if !$option{unsized};

    my $stream = $self->open($method, $path, headers => \@headers);
    my $piece = $option{piece} // 16384;
    my @pieces = $option{pieces} ? @{ $option{pieces} }
                 : (($piece) x int(length($body) / $piece),
                    length($body) % $piece || ());
    my $later = $option{empty_end} || $option{trailers} || !@pieces;

    for (my $i = 0; @pieces; ) {
        my $n = shift @pieces;

        $self->data($stream, substr($body, $i, $n),
                    padding => $option{padding}, end => !$later && !@pieces);
        $i += $n;
    }

    $option{trailers} ? $self->trailers($stream, @{ $option{trailers} })
        : $later ? $self->data($stream, '', end => 1) : 0;

    return $stream;
}


# Waits for the response on a stream.  It has status 0 if there was none, and is
# not complete if the stream was reset or the connection was closed before its
# end.

sub response {
    my ($self, $stream) = @_;

    my $s = $self->{streams}{$stream} // croak "no stream $stream";

    $self->step until $s->{ended} || $s->{reset} || $self->{closed};

    return $self->_response($s);
}


# Sends a request and returns the response.

sub ask {
    my ($self, @request) = @_;

    return $self->response($self->request(@request));
}


# Waits until bytes of a response have arrived.

sub wait_for_body {
    my ($self, $stream, $bytes) = @_;

    my $s = $self->{streams}{$stream};

    $self->step until length $s->{body} >= $bytes || $s->{ended}
                      || $s->{reset} || $self->{closed};

    return length $s->{body};
}


# Waits until nginx says that it takes no more requests, and returns true, or
# until the connection is closed.

sub goaway {
    my ($self) = @_;

    $self->step until $self->{goaway} || $self->{closed};

    return $self->{goaway};
}


# Waits until the connection is closed.

sub ends {
    my ($self) = @_;

    $self->step until $self->{closed};

    return 1;
}


sub _response {
    my ($self, $s) = @_;

    my @lines;

    for (@{ $s->{headers} || [] }) {
        my ($name, $value) = @$_;
        push @lines, $name eq ':status' ? "HTTP/2 $value" : "$name: $value";
    }

    return BloomTest::Response->new(
        head => join('', map { "$_\r\n" } @lines, ''), body => $s->{body},
        complete => $s->{ended} ? 1 : 0, @lines ? () : (status => 0));
}


# Encodes an integer of HPACK and QPACK whose first byte has some bits in use.

sub integer {
    my ($first, $bits, $n) = @_;

    my $limit = (1 << $bits) - 1;

    return chr($first | $n) if $n < $limit;

    my $text = chr($first | $limit);

    for ($n -= $limit; $n >= 128; $n >>= 7) {
        $text .= chr($n & 127 | 128);
    }

    return $text . chr $n;
}


1;
