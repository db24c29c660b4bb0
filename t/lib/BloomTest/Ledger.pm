# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Ledger;

# An HTTP server with a zone that takes changes from a source, as docs/api.md
# says, and keeps a ledger of them: each change in order, each sign of life and
# each gap.  The test can make it fail in many ways, and move it back as a restart
# of nginx would.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Time::HiRes qw(time);

use BloomTest::Process qw(spawn wait_until);

my $json = JSON::PP->new->utf8->canonical;


# Starts a server.  Its zone can be set as by set().

sub new {
    my ($class, $t, $port, %set) = @_;

    my $self = bless { t => $t, port => $t->port($port) }, $class;

    $self->start(%set);

    return $self;
}

sub start {
    my ($self, %set) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $self->{port}, Listen => 128,
        ReuseAddr => 1)
        or croak "ledger: cannot listen: $!";

    $self->{pid} = spawn(sub { _serve($listen) });
    close $listen;

    $self->set(%set);
}

# Kills the server: nothing listens any more.

sub kill {
    my ($self) = @_;

    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
}

sub url { return "http://127.0.0.1:$_[0]{port}/bloom/zones/ids" }


# Sets members of the zone, and returns all of them: position (text), source,
# as_of, max_body, really (the limit that it has instead), mode, changes (array
# of "+key" or "-key"), signs, gaps (array of positions), requests, refused (bodies
# that are too large), image (the position of the image, which closes a gap).

sub set {
    my ($self, %set) = @_;

    my $text = $json->encode(\%set);
    my $socket = IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 10)
        or croak "ledger: cannot connect: $!";

    print $socket "POST /control HTTP/1.0\r\nContent-Length: "
                  . length($text) . "\r\n\r\n$text";

    my $answer = do { local $/; <$socket> };
    $answer =~ s/\A.*?\r\n\r\n//s;

    return $json->decode($answer);
}

sub zone { return $_[0]->set }

# Returns the changes, joined.

sub changes { return join ' ', @{ $_[0]->zone->{changes} } }

# Waits until the zone is as a function, which gets it, says.

sub wait_for {
    my ($self, $condition, $seconds) = @_;

    return wait_until(sub { local $_ = $self->zone; $condition->($_) },
                      $seconds);
}

# Waits until the zone has so many changes.

sub wait_for_changes {
    my ($self, $n) = @_;

    return $self->wait_for(sub { @{ $_->{changes} } >= $n });
}


# The server

sub _compare {
    my ($one, $other) = map { [split /-/, "$_-0"] } @_;

    return $one->[0] <=> $other->[0] || $one->[1] <=> $other->[1];
}

sub _state {
    my ($zone) = @_;

    return { name => 'ids', state => 'serving',
             file => $zone->{empty} ? undef : '/etc/nginx/ids.bloom',
             image => { as_of => $zone->{as_of}, uploaded => JSON::PP::false },
             source => defined $zone->{source} ? {
                 name => $zone->{source}, position => $zone->{position},
                 state => $zone->{gap} ? 'gap' : 'current', lag_ms => 5,
                 max_lag_ms => 30000, max_body => $zone->{max_body} + 0,
             } : undef };
}

sub _error {
    my ($status, $code, %more) = @_;

    return ($status, { error => { code => $code, message => "it is $code" },
                       %more });
}

sub _changes {
    my ($zone, $query, $body) = @_;

    my ($from, $to) = @$query{qw(after position)};

    return _error(400, 'bad_query') if !defined $from || !defined $to;
    if (length $body > ($zone->{really} // $zone->{max_body})) {
        $zone->{refused}++;
        return _error(413, 'too_large');
    }

    my @changes = split /\n/, $body;

    return _error(400, 'bad_line') if grep { !/^[-+]/ || /no-400/ } @changes;

    s/%([0-9A-F]{2})/chr hex $1/ge for @changes;

    if ($from eq $to && $to eq $zone->{position} && $body eq '') {
        $zone->{signs}++;
        $zone->{sign_at} = time;
        return (200, { applied => JSON::PP::false, position => $to });
    }

    return (200, { applied => JSON::PP::false,
                   position => $zone->{position} })
        if _compare($zone->{position}, $to) >= 0;

    my $has = ($zone->{part} // '') eq "$from $to" ? $zone->{offset} : 0;
    my $offset = $query->{offset} // 0;
    my $more = ($query->{more} // '') eq 'true';

    return _error(409, 'wrong_position', position => $zone->{position},
                  offset => $has)
        if $from ne $zone->{position} || ($offset != $has && $offset != 0);

    return (200, { applied => JSON::PP::false, position => $from,
                   offset => $has })
        if $more && $offset + @changes <= $has;

    my ($first) = grep { $changes[$_] =~ /invalid/ } 0 .. $#changes;
    my $invalid = grep { /invalid/ } @changes;
    push @{ $zone->{changes} }, @changes;
    $zone->{position} = $to if !$more;
    $zone->{offset} = $more ? $offset + @changes : 0;
    $zone->{part} = "$from $to";
    $zone->{bodies}++;

    return (200, { applied => JSON::PP::true, position => $zone->{position},
                   offset => $zone->{offset},
                   received => scalar @changes, added => scalar @changes,
                   removed => 0, invalid => $invalid,
                   defined $first ? (first_invalid => {
                       number => $first + 1, reason => 'is invalid' }) : () });
}

sub _answer {
    my ($zone, $method, $path, $query, $body) = @_;

    return (200, _state($zone)) if $method eq 'GET';

    return _error(409, 'wrong_source')
        if $query->{source} ne $zone->{source};

    return _changes($zone, $query, $body) if $path =~ m{/changes$};

    if ($path =~ m{/gap$}) {
        push @{ $zone->{gaps} }, $query->{position};
        $zone->{position} = $query->{position};
        $zone->{gap} = $query->{position} ne ($zone->{image} // '');
        return (200, { position => $query->{position} });
    }

    return _error(404, 'not_found');
}

sub _endless {
    my ($socket, $begin, $again) = @_;

    print $socket $begin;
    1 while syswrite $socket, $again x 1000;
}

# Answers a request as the zone's mode says.  Returns 1 to keep the connection.

sub _misbehave {
    my ($zone, $socket) = @_;

    my $mode = $zone->{mode};
    my $head = "HTTP/1.1 200 OK\r\n";

    if ($mode =~ /^(\d+)(?: (\w+))?/) {
        _send($socket, _error($1, $2 // 'failed'));
        return 1;
    }

    return 1 if $mode eq 'hang';
    return if $mode eq 'close';

    if ($mode eq 'reset') {
        setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'II', 1, 0;
        return;
    }

    if ($mode eq 'redirect') {
        print $socket "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n"
                      . "Content-Length: 0\r\n\r\n";
        return 1;
    }

    if (my ($text) = $mode =~ /^body (.*)/s) {
        print $socket "$head" . "Content-Length: " . length($text)
                      . "\r\n\r\n$text";
        return 1;
    }

    _endless($socket, $head, "X-Header: again\r\n") if $mode eq 'header';
    _endless($socket, "${head}X: ", 'x') if $mode eq 'line';
    _endless($socket, "$head\r\n", '{"a":[[[') if $mode eq 'endless';

    if ($mode eq 'slow') {
        print $socket $head;
        $socket->flush;

        for (1 .. 100) {
            print $socket "X-A: b\r\n" or return;
            $socket->flush;
            select undef, undef, undef, 0.2;
        }
    }

    return;
}

sub _send {
    my ($socket, $status, $answer) = @_;

    my $text = $json->encode($answer);

    print $socket "HTTP/1.1 $status X\r\nContent-Type: application/json\r\n"
                  . 'Content-Length: ' . length($text) . "\r\n\r\n$text";
    $socket->flush;
}

sub _serve {
    my ($listen) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $zone = { position => '0', source => 'ids', max_body => 65000,
                 as_of => undef, mode => '', changes => [], signs => 0,
                 gaps => [], requests => 0, bodies => 0, gap => 0 };
    my $select = IO::Select->new($listen);
    my %input;

    while (1) {
        for my $socket ($select->can_read) {

            if ($socket == $listen) {
                my $client = $listen->accept or next;
                $select->add($client);
                $input{$client} = '';
                next;
            }

            if (!sysread $socket, $input{$socket}, 1 << 20,
                         length $input{$socket})
            {
                $select->remove($socket);
                delete $input{$socket};
                close $socket;
                next;
            }

            $input{$socket} =~ /\A(\w+) (\S+) HTTP.*?\r\n\r\n/s or next;
            my ($method, $target, $head) = ($1, $2, $&);
            my ($length) = $head =~ /^Content-Length: (\d+)/mi;
            next if length $input{$socket} < length($head) + ($length // 0);

            my $body = substr $input{$socket}, length $head, $length // 0;
            $input{$socket} = '';

            my ($path, $arguments) = split /\?/, $target;
            my %query = map { split /=/, $_, 2 } split /&/, $arguments // '';
            my $keep = 0;

            if ($path eq '/control') {
                %$zone = (%$zone, %{ $json->decode($body) });
                _send($socket, 200, $zone);

            } elsif (++$zone->{requests} && $zone->{mode} ne ''
                     && ($zone->{where} // '') ne $method)
            {
                $keep = _misbehave($zone, $socket);

            } else {
                _send($socket, _answer($zone, $method, $path, \%query, $body));
                $keep = 1;
            }

            if (!$keep) {
                $select->remove($socket);
                delete $input{$socket};
                close $socket;
            }
        }
    }
}


1;
