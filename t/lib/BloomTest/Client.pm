# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Client;

# The part of BloomTest that makes requests.  All functions take `port`, the
# number of a %%PORT_n%% token (default: 8080).

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Connection;
use BloomTest::Process qw(run_command time_limit);
use BloomTest::Response;


sub connect {
    my ($self, $port) = @_;

    return BloomTest::Connection->new($self->port($port // 8080));
}


# Sends text as it is and returns the response.  Options: port; piece and pause,
# to send slowly.

sub http {
    my ($self, $text, %option) = @_;

    my $connection = $self->connect($option{port});
    $connection->send($text, %option);

    my $response = $connection->response($text =~ /^(\S+)/);

    if (lc($response->header('Connection') // '') eq 'close') {
        my $rest = $connection->rest;
        croak "bytes after the response to '" . ($text =~ /^([^\r\n]*)/)[0]
              . "': '$rest'"
            if length $rest;
    }

    return $response;
}


# Sends the first `after` bytes (default: all) and resets the connection.

sub http_abort {
    my ($self, $text, %option) = @_;

    my $connection = $self->connect($option{port});
    $connection->send(substr($text, 0, $option{after} // length $text),
                      %option);
    $connection->abort;
}


# Sends all requests at once over one connection, and returns their
# responses in order.  A request is text, or a path to GET.

sub pipeline {
    my ($self, @requests) = @_;

    my %option = ref $requests[-1] ? %{ pop @requests } : ();

    @requests = map {
        m{^/} ? $self->request_text(GET => $_, keepalive => 1) : $_
    } @requests;

    my $connection = $self->connect($option{port});
    $connection->send(join('', @requests), %option);

    return map { $connection->response(/^(\S+)/) } @requests;
}


# Returns the text of a request.  Options: headers (a hash, or a list of pairs
# if names repeat), body, chunks (a list: the body in chunks), host, keepalive.

sub request_text {
    my ($self, $method, $path, %option) = @_;

    my $headers = $option{headers} || [];
    my @headers = ref $headers eq 'HASH' ? %$headers : @$headers;
    my $body = $option{body};

    if ($option{chunks}) {
        $body = join '', map { sprintf "%x\r\n%s\r\n", length, $_ }
                         grep { length } @{ $option{chunks} };
        $body .= "0\r\n\r\n";
        push @headers, 'Transfer-Encoding' => 'chunked';

    } elsif (defined $body) {
        push @headers, 'Content-Length' => length $body;
    }

    push @headers, Connection => 'close' unless $option{keepalive};

    my $text = "$method $path HTTP/1.1\r\n"
               . 'Host: ' . ($option{host} // 'localhost') . "\r\n";

    while (my ($name, $value) = splice @headers, 0, 2) {
        $text .= "$name: $value\r\n";
    }

    return "$text\r\n" . ($body // '');
}


sub request {
    my ($self, $method, $path, %option) = @_;

    return $self->http($self->request_text($method, $path, %option), %option);
}


# Sends a request and does not wait for its response.  Returns the connection.

sub send_request {
    my ($self, $method, $path, %option) = @_;

    my $connection = $self->connect($option{port});
    $connection->send($self->request_text($method, $path, %option));

    return $connection;
}


sub get {
    my ($self, $path, %option) = @_;

    return $self->request(GET => $path, %option);
}


sub head {
    my ($self, $path, %option) = @_;

    return $self->request(HEAD => $path, %option);
}


sub post {
    my ($self, $path, $body, %option) = @_;

    return $self->request(POST => $path, body => $body, %option);
}


sub put {
    my ($self, $path, $body, %option) = @_;

    return $self->request(PUT => $path, body => $body, %option);
}


sub delete {
    my ($self, $path, %option) = @_;

    return $self->request(DELETE => $path, %option);
}


# Makes a request by HTTP/2 without TLS, through curl, to a `listen ... http2`.
# It sends `body` as it is; give curl a long body as the file `body_file`.

sub has_http2 {
    my ($self) = @_;

    my (undef, $curl) = eval { run_command(['curl', '--version']) };

    return ($curl // '') =~ /\bHTTP2\b/
           && $self->nginx_build =~ /--with-http_v2_module/;
}


sub get_http2 {
    my ($self, $path, %option) = @_;

    return $self->request_http2(defined $option{body} ? 'POST' : 'GET',
                                $path, %option);
}


sub request_http2 {
    my ($self, $method, $path, %option) = @_;

    my $headers = $option{headers} || [];
    my @headers = ref $headers eq 'HASH' ? %$headers : @$headers;
    my @curl = ('curl', '-sSiq', '--http2-prior-knowledge', '--path-as-is',
                '--globoff', '--noproxy', '*', '--max-time', time_limit());

    while (my ($name, $value) = splice @headers, 0, 2) {
        push @curl, '-H', "$name: $value";
    }

    my $file = $option{body_file} // (defined $option{body} ? '-' : undef);

    push @curl, '--data-binary', "\@$file" if defined $file;
    push @curl, '-X', $method
        if $method ne (defined $file ? 'POST' : 'GET');
    push @curl, 'http://127.0.0.1:' . $self->port($option{port} // 8080)
                . $path;

    my ($exit, $out, $err) = run_command(\@curl, stdin => $option{body});
    croak "curl failed ($exit) for $path: $err" if $exit != 0;

    my ($head, $body) = $out =~ /^(.*?\r\n\r\n)(.*)$/s
        or croak "curl gave no response head for $path: '$out'";

    return BloomTest::Response->new(head => $head, body => $body,
                                    complete => 1);
}


1;
