# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Rows;

# The backend behind zones that except keys.  It answers 200 "row" for a key that
# it has a row for, and 404 "no row" for others.  It looks for the row at once, and
# answers after the seconds in the argument `late`.
#
# Each client writes its rows to a file, client.N.rows.ZONE: the byte at the
# position of a key's number is 1 if the key has a row.  A key that the driver
# has added has always a row.

use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;

use BloomTest::Process qw(spawn now alive wait_until);


sub new {
    my ($class, %self) = @_;    # dir, port, zones

    my $listen = IO::Socket::INET->new(
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $self{port},
        Listen => 511, ReuseAddr => 1)
        or croak "cannot listen on 127.0.0.1:$self{port}: $!";

    open my $stderr, '>&', \*STDERR or croak "stderr: $!";

    my $self = bless { %self, asking => {}, waiting => [], files => {} },
                     $class;
    $self->{pid} = spawn(sub {
        $SIG{PIPE} = 'IGNORE';
        $self->_step($listen) while 1;
    }, stderr => $stderr);
    close $listen;

    return $self;
}


sub stop {
    my ($self) = @_;

    my $pid = delete $self->{pid} or return;

    kill 'KILL', $pid;
    wait_until(sub { !alive($pid) }) or croak "backend $pid does not end";
}


# Returns the file of a client's rows.

sub path {
    my ($dir, $client, $zone) = @_;

    return "$dir/client.$client.rows.$zone";
}


# Takes connections, reads requests, and sends the answers that are due.

sub _step {
    my ($self, $listen) = @_;

    my ($bits, $asking, $waiting) = ('', @$self{qw(asking waiting)});

    vec($bits, $_, 1) = 1 for fileno $listen, keys %$asking;

    my $wait = @$waiting ? $waiting->[0]{due} - now() : 10;
    my $n = select $bits, undef, undef, $wait > 0 ? $wait : 0;

    if ($n > 0) {
        if (vec($bits, fileno $listen, 1)) {
            my $client = $listen->accept;
            $asking->{fileno $client} = { client => $client, text => '' }
                if $client;
        }

        for (grep { vec($bits, $_, 1) } keys %$asking) {
            my $asked = $asking->{$_};
            my $read = sysread $asked->{client}, $asked->{text}, 65536,
                               length $asked->{text};

            next if $read && $asked->{text} !~ /\r\n\r\n/;
            delete $asking->{$_};
            $self->_asked(@$asked{qw(client text)}) if $read;
        }
    }

    while (@$waiting && $waiting->[0]{due} <= now()) {
        my $answer = shift @$waiting;
        syswrite $answer->{client}, $answer->{text};
    }
}


sub _asked {
    my ($self, $client, $text) = @_;

    my ($key) = $text =~ /^GET \S*[?&]k=(\w+)/;
    my ($late) = $text =~ /^GET \S*[?&]late=([\d.]+)/;
    my $row = defined $key && $self->_has_row($key);
    my $body = $row ? 'row' : 'no row';

    my $answer = { client => $client, due => now() + ($late // 0),
                   text => 'HTTP/1.0 ' . ($row ? 200 : 404) . " Row\r\n"
                           . 'Content-Length: ' . length($body)
                           . "\r\n\r\n$body" };

    @{ $self->{waiting} } = sort { $a->{due} <=> $b->{due} }
                                 @{ $self->{waiting} }, $answer;
}


sub _has_row {
    my ($self, $key) = @_;

    my ($number, $letter, $of) = $key =~ /^(\d+)([a-z])(\d+)$/ or return 1;
    my ($zone) = grep { /^$letter/ } @{ $self->{zones} };
    my $file = $self->{files}{"$number$letter"};

    if (!$file) {
        open $file, '<:raw', path($self->{dir}, $number, $zone) or return 0;
        $self->{files}{"$number$letter"} = $file;
    }

    my $byte;

    sysseek $file, $of, 0;

    return sysread($file, $byte, 1) && $byte eq '1';
}


1;
