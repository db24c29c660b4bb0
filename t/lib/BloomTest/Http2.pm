# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Http2;

# A connection of HTTP/2 without TLS, to a `listen` of Nginx.pm's http2().  It
# sends each frame as the test wants it.  Debian's libprotocol-http2-perl decodes
# the headers of responses.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;

use parent 'BloomTest::Streams';

use BloomTest::Process qw(time_limit);

use constant {
    DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6,
    GOAWAY => 7, WINDOW_UPDATE => 8, CONTINUATION => 9,
    END_STREAM => 1, ACK => 1, END_HEADERS => 4, PADDED => 8,
    HEADER_TABLE_SIZE => 1, INITIAL_WINDOW_SIZE => 4,
};


# Returns why this protocol cannot be tested, or nothing.

sub impossible {
    my ($class, $t) = @_;

    return 'nginx has no HTTP/2'
        if $t->nginx_build !~ /--with-http_v2_module/;
    return 'Perl has no Protocol::HTTP2'
        if !eval { require Protocol::HTTP2::HeaderCompression; 1 };
    return;
}


# Returns lines for a server block.

sub listen {
    my ($class, $t, $number) = (@_, 8082);

    return $t->http2("127.0.0.1:%%PORT_$number%%");
}


sub name { return 'HTTP/2' }
sub scheme { return 'http' }


sub new {
    my ($class, $t, %option) = @_;

    require Protocol::HTTP2::HeaderCompression;

    my $port = $t->port($option{port} // 8082);
    my $socket = IO::Socket::INET->new(
        Proto => 'tcp', PeerAddr => '127.0.0.1', PeerPort => $port)
        or croak "cannot connect to 127.0.0.1:$port: $!";

    my $self = bless {
        socket => $socket, port => $port, in => '', streams => {}, next => 1,
        credit => 65535, initial => 65535, window => $option{window},
        table => { header_table => [], ht_size => 0, max_ht_size => 4096,
                   settings => { HEADER_TABLE_SIZE, 4096 } },
    }, $class;

    # the window of the connection is large, so that only the streams' counts

    my $window = $option{window} // 2 ** 24;

    $self->_send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                 . _frame(SETTINGS, 0, 0,
                          pack 'nN', INITIAL_WINDOW_SIZE, $window)
                 . _frame(WINDOW_UPDATE, 0, 0, pack 'N', 2 ** 30));

    # nginx allows 65535 bytes of a body until its settings say otherwise

    $self->step until $self->{settled} || $self->{closed};

    return $self;
}


sub next_stream {
    my ($self) = @_;

    my $stream = $self->{next};
    $self->{next} += 2;

    return $stream;
}


sub send_headers {
    my ($self, $stream, $headers, $end) = @_;

    my @headers = @$headers;
    my $block = '';

    while (my ($name, $value) = splice @headers, 0, 2) {
        $block .= "\0" . BloomTest::Streams::integer(0, 7, length $name) . $name
                  . BloomTest::Streams::integer(0, 7, length $value) . $value;
    }

    $self->{streams}{$stream}{credit} //= $self->{initial};
    $self->_send(_frame(HEADERS, END_HEADERS | ($end ? END_STREAM : 0),
                        $stream, $block));
}


# Sends one DATA frame.  Options: end, padding (0 to 255 bytes).  Waits until
# nginx allows that many bytes.  Sends nothing if the response is complete.

sub data {
    my ($self, $stream, $bytes, %option) = @_;

    my $s = $self->{streams}{$stream};
    my $flags = $option{end} ? END_STREAM : 0;
    my $payload = $bytes;

    if (defined $option{padding}) {
        $flags |= PADDED;
        $payload = chr($option{padding}) . $bytes . "\0" x $option{padding};
    }

    my $n = length $payload;

    while ($n > 0 && ($self->{credit} < $n || $s->{credit} < $n)) {
        return if $s->{ended} || $s->{reset} || $self->{closed};
        $self->step;
    }

    $self->{credit} -= $n;
    $s->{credit} -= $n;

    $self->_send(_frame(DATA, $flags, $stream, $payload));
}


# Resets a stream.  The code 8 is CANCEL.

sub reset {
    my ($self, $stream) = @_;

    $self->{streams}{$stream}{reset} = 1;
    $self->_send(_frame(RST_STREAM, 0, $stream, pack 'N', 8));
}


# Closes the connection without a word.

sub vanish {
    my ($self) = @_;

    $self->{closed} = 1;
    CORE::close $self->{socket};
}


# Waits for a frame and handles it.

sub step {
    my ($self) = @_;

    my $head = $self->_take(9) // return;
    my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN', $head;
    my $payload = $self->_take($high << 16 | $low) // return;
    my $s = $self->{streams}{$stream};

    if ($type == DATA) {
        $s->{body} .= $payload;
        $s->{ended} = 1 if $flags & END_STREAM;

        $self->_send(_frame(WINDOW_UPDATE, 0, $stream,
                            pack 'N', length $payload))
            if $self->{window} && length $payload && !$s->{ended}
               && !$s->{reset};

    } elsif ($type == HEADERS) {
        $flags & END_HEADERS or croak 'headers in several frames';
        my $headers = $self->_decode($payload);
        $s->{headers} //= $headers;
        $s->{ended} = 1 if $flags & END_STREAM;

    } elsif ($type == RST_STREAM) {
        $s->{reset} = unpack('N', $payload) || 'no error';

        # nginx does so behind a complete response

        delete $s->{reset} if $s->{ended};

    } elsif ($type == SETTINGS && !($flags & ACK)) {
        my %setting = unpack '(nN)*', $payload;
        my $window = $setting{INITIAL_WINDOW_SIZE()};

        if (defined $window) {
            $_->{credit} += $window - $self->{initial}
                for values %{ $self->{streams} };
            $self->{initial} = $window;
        }

        $self->{settled} = 1;
        $self->_send(_frame(SETTINGS, ACK, 0, ''));

    } elsif ($type == PING && !($flags & ACK)) {
        $self->_send(_frame(PING, ACK, 0, $payload));

    } elsif ($type == WINDOW_UPDATE) {
        my $more = unpack 'N', $payload;
        $stream ? $s->{credit} += $more : ($self->{credit} += $more);

    } elsif ($type == GOAWAY) {
        $self->{goaway} = 1;
    }
}


sub _decode {
    my ($self, $block) = @_;

    my $table = $self->{table};
    $table->{emitted_headers} = [];

    my $decoder = bless { table => $table }, 'BloomTest::Http2::Decoder';
    Protocol::HTTP2::HeaderCompression::headers_decode(
        $decoder, \$block, 0, length $block, 0) // croak 'malformed headers';

    my @flat = @{ $table->{emitted_headers} };
    my @headers;

    while (my ($name, $value) = splice @flat, 0, 2) {
        push @headers, [$name, $value];
    }

    return \@headers;
}


sub _frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


# Sends all of the text, while it reads, so that neither side waits for the
# other.

sub _send {
    my ($self, $text) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $text && !$self->{closed}) {
        my ($readers, $writers) = IO::Select->select(
            IO::Select->new($self->{socket}), IO::Select->new($self->{socket}),
            undef, time_limit());

        $readers || $writers or croak 'nginx neither reads nor sends';

        $self->_fill if @$readers;
        @$writers && !$self->{closed} or next;

        $self->{socket}->blocking(0);
        my $n = syswrite $self->{socket}, $text;
        $self->{socket}->blocking(1);

        if (defined $n) {
            substr $text, 0, $n, '';
        } elsif (!$!{EAGAIN}) {
            return;    # what nginx sent before is still to be read
        }
    }
}


sub _take {
    my ($self, $length) = @_;

    while (length $self->{in} < $length) {
        if ($self->{closing}) {
            $self->{closed} = 1;
            return;
        }

        IO::Select->new($self->{socket})->can_read(time_limit())
            or croak "127.0.0.1:$self->{port} sent nothing";
        $self->_fill;
    }

    return substr $self->{in}, 0, $length, '';
}


sub _fill {
    my ($self) = @_;

    sysread $self->{socket}, $self->{in}, 65536, length $self->{in}
        or $self->{closing} = 1;
}


# What Protocol::HTTP2::HeaderCompression wants of a connection.

package BloomTest::Http2::Decoder;

sub decode_context { return $_[0]{table} }
sub error { return }
sub stream_error { return }


1;
