# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Http3;

# A connection of HTTP/3, to a `listen` of this module.  It sends each frame as
# the test wants it, through t/reference/h3client.c, which speaks QUIC.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Select;
use Socket;

use parent 'BloomTest::Streams';

use BloomTest::Process qw(spawn time_limit alive wait_until run_command);

use constant { DATA => 0, HEADERS => 1, CANCELLED => 0x10c };

my $program = abs_path(dirname(__FILE__) . '/../../..')
              . '/build/reference/h3client';


# Returns why this protocol cannot be tested, or nothing.

sub impossible {
    my ($class, $t) = @_;

    return 'nginx has no HTTP/3'
        if $t->nginx_build !~ /--with-http_v3_module/;

    -x $program or croak "$program does not exist; run make";

    return;
}


# Returns lines for a server block.  Writes a key and a certificate.

sub listen {
    my ($class, $t, $number) = (@_, 8082);

    my $dir = $t->testdir;

    if (!-e "$dir/server.crt") {
        my ($exit, $out, $err) = run_command(
            ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
             'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1', '-subj',
             '/CN=localhost', '-keyout', "$dir/server.key", '-out',
             "$dir/server.crt"]);
        croak "openssl failed ($exit): $err" if $exit != 0;
    }

    # the harness holds the UDP port of a number as a lock, and lets it go here

    my $port = $t->udp_port($number);

    return "listen 127.0.0.1:$port quic;\n"
           . "ssl_certificate $dir/server.crt;\n"
           . "ssl_certificate_key $dir/server.key;";
}


sub name { return 'HTTP/3' }
sub scheme { return 'https' }


sub new {
    my ($class, $t, %option) = @_;

    my $port = $t->udp_port($option{port} // 8082);

    socketpair my $socket, my $child, AF_UNIX, SOCK_STREAM, PF_UNSPEC
        or croak "socketpair: $!";
    open my $stderr, '>>', $t->testdir . '/h3client.stderr'
        or croak "cannot write: $!";

    my $pid = spawn([$program, $port, $option{window} // ()],
                    stdin => $child, stdout => $child, stderr => $stderr);
    CORE::close $child;

    my $self = bless {
        socket => $socket, pid => $pid, port => $port, in => '', streams => {},
        next => 0, stderr => $t->testdir . '/h3client.stderr',
    }, $class;

    $self->step until $self->{ready} || $self->{closed};
    croak "no HTTP/3 connection:\n" . $self->_stderr if !$self->{ready};

    return $self;
}


sub next_stream {
    my ($self) = @_;

    my $stream = $self->{next};
    $self->{next} += 4;

    return $stream;
}


# Encodes headers by QPACK, each as a literal name and value.

sub send_headers {
    my ($self, $stream, $headers, $end) = @_;

    my @headers = @$headers;
    my $block = "\0\0";

    while (my ($name, $value) = splice @headers, 0, 2) {
        $block .= BloomTest::Streams::integer(0x20, 3, length $name) . $name
                  . BloomTest::Streams::integer(0, 7, length $value) . $value;
    }

    $self->_send($stream, _frame(HEADERS, $block), $end);
}


# Sends one DATA frame.  HTTP/3 has no padding.

sub data {
    my ($self, $stream, $bytes, %option) = @_;

    $self->_send($stream, _frame(DATA, $bytes), $option{end});
}


# Resets a stream, in both directions.

sub reset {
    my ($self, $stream) = @_;

    $self->{streams}{$stream}{reset} = 1;
    $self->_command("reset $stream " . CANCELLED . "\n");
}


# Reads no more of a response, but sends on.

sub stop_sending {
    my ($self, $stream) = @_;

    $self->_command("stop $stream " . CANCELLED . "\n");
}


# Closes the connection and tells nginx so, as happens to a connection that the
# test forgets.

sub close {
    my ($self) = @_;

    $self->_command("close\n");
    $self->_gone;
}


# Ends the client without a word: nginx waits for its packets in vain.

sub vanish {
    my ($self) = @_;

    kill 'KILL', $self->{pid};
    $self->_gone;
}


# Waits for a message of the client and handles it.

sub step {
    my ($self) = @_;

    my $line = $self->_line // return;
    my ($what, $stream, $number) = split ' ', $line;
    my $s = defined $stream ? $self->{streams}{$stream} : undef;

    if ($what eq 'data') {
        $s->{body} .= $self->_take($number) // return;

    } elsif ($what eq 'headers') {
        my $text = $self->_take($number) // return;
        $s->{headers} //= [map { [split /: /, $_, 2] } split /\n/, $text];

    } elsif ($what eq 'end') {
        $s->{ended} = 1;

    } elsif ($what eq 'reset') {
        $s->{reset} = $number if !$s->{ended};

    } elsif ($what eq 'closed') {
        $self->{closed} = 1;

    } else {
        $self->{$what} = 1;    # ready, goaway, stopped
    }
}


sub _frame {
    my ($type, $payload) = @_;

    return chr($type) . _varint(length $payload) . $payload;
}


sub _varint {
    my ($n) = @_;

    return $n < 64 ? chr $n : $n < 16384 ? pack('n', $n | 0x4000)
           : pack 'N', $n | 0x80000000;
}


sub _send {
    my ($self, $stream, $bytes, $end) = @_;

    $self->_command("send $stream " . ($end ? 1 : 0) . ' ' . length($bytes)
                    . "\n$bytes");
}


sub _command {
    my ($self, $text) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $text && !$self->{closed} && !$self->{closing}) {
        my ($readers, $writers) = IO::Select->select(
            IO::Select->new($self->{socket}), IO::Select->new($self->{socket}),
            undef, time_limit());

        $readers || $writers or croak 'h3client neither reads nor writes';

        $self->_fill if @$readers;
        @$writers && !$self->{closing} or next;

        $self->{socket}->blocking(0);
        my $n = syswrite $self->{socket}, $text;
        $self->{socket}->blocking(1);

        return if !defined $n && !$!{EAGAIN};
        substr $text, 0, $n // 0, '';
    }
}


sub _line {
    my ($self) = @_;

    my $end;

    while (($end = index $self->{in}, "\n") < 0) {
        $self->_more or return;
    }

    return substr $self->{in}, 0, $end + 1, '';
}


sub _take {
    my ($self, $length) = @_;

    while (length $self->{in} < $length) {
        $self->_more or return;
    }

    return substr $self->{in}, 0, $length, '';
}


sub _more {
    my ($self) = @_;

    if ($self->{closing}) {
        $self->{closed} = 1;
        return;
    }

    IO::Select->new($self->{socket})->can_read(time_limit())
        or croak "127.0.0.1:$self->{port} sent nothing\n" . $self->_stderr;
    $self->_fill;

    return 1;
}


sub _fill {
    my ($self) = @_;

    sysread $self->{socket}, $self->{in}, 65536, length $self->{in}
        or $self->{closing} = 1;
}


sub _gone {
    my ($self) = @_;

    $self->{closed} = 1;
    wait_until(sub { !alive($self->{pid}) }) or croak 'h3client does not end';
}


sub _stderr {
    my ($self) = @_;

    open my $fh, '<', $self->{stderr} or return '';
    local $/;

    return <$fh> // '';
}


sub DESTROY {
    my ($self) = @_;

    local ($?, $!, $@);

    # at the end of its input, the client tells nginx that it closes

    CORE::close $self->{socket};
    wait_until(sub { !alive($self->{pid}) }) or kill 'KILL', $self->{pid};
}


1;
