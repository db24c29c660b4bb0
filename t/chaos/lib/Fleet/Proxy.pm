# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Proxy;

# Carries TCP connections to a server, in a process of its own, until it is cut
# off: then it closes all connections, and new ones at once.  It can be pointed
# at another server.  On purpose, it can answer `POST gap` itself, so that a node
# never learns of a gap.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;

use BloomTest::Process qw(spawn);


# Options: listen, to (ports), dir (a directory of the test, for files that tell
# the process what to do), swallow (1: answer POST gap).

sub new {
    my ($class, %option) = @_;

    my $self = bless { %option, file => "$option{dir}/proxy-$option{listen}" },
                     $class;

    $self->point_at($option{to});

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $option{listen}, Listen => 128,
        ReuseAddr => 1)
        or die "a proxy cannot listen at $option{listen}: $!\n";

    $self->{pid} = spawn(sub { $self->serve($listen) });

    return $self;
}


# Points further connections at another port.

sub point_at {
    my ($self, $port) = @_;

    open my $file, '>', "$self->{file}.new" or die "$self->{file}: $!\n";
    print $file $port;
    close $file or die "$self->{file}: $!\n";
    rename "$self->{file}.new", $self->{file} or die "$self->{file}: $!\n";
}


sub cut {
    my ($self) = @_;

    open my $file, '>', "$self->{file}.cut" or die "$self->{file}: $!\n";
}


sub mend { unlink "$_[0]{file}.cut" }


sub stop {
    my ($self) = @_;

    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
}


sub serve {
    my ($self, $listen) = @_;

    my $select = IO::Select->new($listen);
    my %other;

    local $SIG{PIPE} = 'IGNORE';

    my $end = sub {
        for my $socket (@_) {
            $select->remove($socket);
            delete $other{$socket};
            close $socket;
        }
    };

    while (1) {
        my @ready = $select->can_read(0.1);
        my $cut = -e "$self->{file}.cut";

        $end->(grep { $_ != $listen } $select->handles) if $cut;

        for my $socket (@ready) {
            if ($socket == $listen) {
                my $client = $listen->accept or next;
                my $server = !$cut && $self->server;

                if (!$server) {
                    close $client;
                    next;
                }

                $other{$client} = $server;
                $other{$server} = $client;
                $select->add($client, $server);
                next;
            }

            my $other = $other{$socket} or next;

            if (!sysread $socket, my $bytes, 1 << 18) {
                $end->($socket, $other);

            } elsif ($self->{swallow}
                     && $bytes =~ m{\APOST \S+/gap\?\S*position=([\d-]+)})
            {
                my $body = qq({"position":"$1"});
                pass($socket, "HTTP/1.1 200 OK\r\nContent-Type: application/json"
                              . "\r\nContent-Length: " . length($body)
                              . "\r\n\r\n$body");

            } elsif (!pass($other, $bytes)) {
                $end->($socket, $other);
            }
        }
    }
}


sub server {
    my ($self) = @_;

    open my $file, '<', $self->{file} or return;
    my $port = <$file> // return;

    return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 5);
}


# Sends bytes.  Returns 0 if the connection is broken.

sub pass {
    my ($to, $bytes) = @_;

    while (length $bytes) {
        my $sent = syswrite $to, $bytes or return 0;
        substr $bytes, 0, $sent, '';
    }

    return 1;
}


1;
