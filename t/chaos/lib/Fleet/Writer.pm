# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Writer;

# Adds entries to a stream at a rate, with random additions and removals of a
# set of keys.  It chooses the IDs, and is the only writer: if a connection
# breaks, it sends the entries that are not acknowledged again, and the error
# that an ID is not greater than the last one says that Redis has the entry.

use strict;
use warnings;

use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use BloomTest::Process qw(now time_limit);
use Fleet::Ledger;

use constant {
    PIPELINE => 100,     # entries
    BATCHES  => 20,      # a second, if the rate needs more entries
    KEYS     => 20,      # in an entry
    LATE     => 10,      # seconds that are made up for
};


# Options: port, stream, ledger (a path), acks (a path: "TIME ID" of entries
# that are acknowledged), keys, rate (changes a second), lie (notes a key that
# it does not send), stop, hold (functions: whether to stop and to pause; hold
# also gets whether the writer pauses).

sub new {
    my ($class, %option) = @_;

    open my $acks, '>>:raw', $option{acks} or die "$option{acks}: $!";

    return bless { %option, ledger => Fleet::Ledger->new($option{ledger}),
                   acks => $acks, id => [0, 0] }, $class;
}


sub run {
    my ($self) = @_;

    my $due = now();
    my $most = $self->{rate} / BATCHES / (KEYS / 2) * 2;

    $most = PIPELINE if $most < PIPELINE;
    @$self{qw(changes down begun)} = (0, 0, $due);

    local $SIG{PIPE} = 'IGNORE';

    until ($self->{stop}->()) {
        if ($self->{hold}->(0)) {
            my $since = now();
            sleep 0.01 while $self->{hold}->(1) && !$self->{stop}->();
            $self->{down} += now() - $since;
            next;
        }

        my $burst = now() > $due + 0.5 ? 2 * $most : 1 + int rand $most;
        my $down = $self->{down};
        my @entries = map { $self->entry } 1 .. $burst;
        my $changes = 0;
        $changes += @$_ - 1 for @entries;

        $self->send_all(@entries);
        $self->{changes} += $changes;

        # what was missed is made up for, but not what was missed while Redis was
        # down

        $due += $changes / $self->{rate} + $self->{down} - $down;
        $due = now() - LATE if $due < now() - LATE;
        my $early = $due - now();
        sleep $early if $early > 0;
    }

    $self->{seconds} = now() - $self->{begun} - $self->{down};
}


# Draws an entry of random changes.

sub entry {
    my ($self, @changes) = @_;

    @changes = map { (rand() < 0.5 ? '+' : '-') . 'k' . int rand $self->{keys} }
               1 .. 1 + int rand KEYS
        unless @changes;

    my $ms = int(time() * 1000);
    my $id = $self->{id};
    $self->{id} = $ms > $id->[0] ? [$ms, 0] : [$id->[0], $id->[1] + 1];

    return [join('-', @{ $self->{id} }), @changes];
}


# Notes entries and sends them until Redis has acknowledged all.

sub send_all {
    my ($self, @entries) = @_;

    my $end = now() + time_limit(120);

    $self->{ledger}->note(@entries);

    if ($self->{lie}) {
        for (@entries) {
            my ($id, @changes) = @$_;
            @changes = grep { !/^.k\d*7$/ } @changes;
            $_ = [$id, @changes ? @changes : '+other'];
        }
    }

    my $last = $entries[-1][0];
    my $broken;

    while (@entries) {
        die "Redis acknowledges nothing\n" if now() > $end;
        eval { $self->send_some(\@entries); 1 } and last;
        delete $self->{socket};
        $broken //= now();
        sleep 0.05;
    }

    $self->{down} += now() - $broken if $broken;
    syswrite $self->{acks}, time() . " $last\n";
}


sub send_some {
    my ($self, $entries) = @_;

    $self->{socket} //= IO::Socket::INET->new(
        PeerAddr => "127.0.0.1:$self->{port}", Timeout => 5)
        or die "no connection\n";
    my $socket = $self->{socket};

    my $text = join '', map {
        my ($id, @changes) = @$_;
        my @words = ('XADD', $self->{stream}, $id,
                     map { (/^\+/ ? 'add' : 'remove', substr $_, 1) }
                         @changes);
        join '', '*' . @words . "\r\n",
                 map { '$' . length($_) . "\r\n$_\r\n" } @words;
    } @$entries;

    print $socket $text or die "the connection breaks\n";
    $socket->flush or die "the connection breaks\n";

    # An answer is "$LENGTH" and the ID, or an error.

    while (@$entries) {
        my $line = <$socket> // die "the connection breaks\n";

        if ($line =~ /^\$/) {
            $line = <$socket> // die "the connection breaks\n";
        } elsif ($line !~ /^-ERR The ID .* equal or smaller/) {
            die $line;
        }

        shift @$entries if $line =~ /\r\n\z/;
    }
}


1;
