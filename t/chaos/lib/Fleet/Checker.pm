# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Checker;

# Asks the nodes about keys all the time, and compares the answers with the
# ledger.  One connection carries the state, a test of keys and the state again,
# so that one worker answers all three.

use strict;
use warnings;

use Time::HiRes qw(sleep time);

use BloomTest::Process qw(wait_until);
use Fleet::Events;
use Fleet::Ledger;

use constant ASKED => 500;    # keys in a test


# Options: nodes (tests), ledger, acks (paths), max_lag in seconds, patience.

sub new {
    my ($class, %option) = @_;

    open my $acks, '<:raw', $option{acks} or die "$option{acks}: $!";

    return bless { %option, file => $acks, acked => [], count => {},
                   ledger => Fleet::Ledger->new($option{ledger}) }, $class;
}


# Checks random keys of each node until it is told to stop.

sub run {
    my ($self) = @_;

    until ($self->{stop}->()) {
        for (@{ $self->{nodes} }) {
            my $wrong = $self->check($_) or next;
            $self->{wrong}->($wrong);
        }

        sleep 0.02;
    }
}


# Checks some keys of a node.  Returns what is wrong, or nothing.

sub check {
    my ($self, $node) = @_;

    my $ledger = $self->{ledger};
    $ledger->read_until;
    $self->read_acks;

    my @keys = keys %{ $ledger->{last} } or return;
    @keys = map { $keys[rand @keys] } 1 .. ASKED;
    my %before = map { $_ => $ledger->{last}{$_} } @keys;
    my $asked = time;

    my ($first, $answers, $second) = ask($node, @keys);
    return $self->count('no_answer') unless $second;

    my ($from, $to) = map { $_->{source}{position} } $first, $second;
    my $gap = grep { $_->{source}{state} eq 'gap' } $first, $second;

    $self->count("state_$first->{source}{state}");
    my $stale = $self->stale($first, $asked);
    return "$node->{name}: $stale" if $stale;

    return $self->count('moved')
        if $first->{generation} != $second->{generation}
           || Fleet::Ledger::compare($from, $to) > 0;

    $ledger->read_until;

    for my $i (0 .. $#keys) {
        my ($key, $answer) = ($keys[$i], $answers->[$i]);
        my ($id, $sign) = @{ $before{$key} };

        $self->count("answer_$answer");

        next if $ledger->{last}{$key} != $before{$key}
                || Fleet::Ledger::compare($id, $from) > 0;

        $self->count('judged');

        my $bad = $sign eq '+' ? $answer eq 'absent'
                  : $answer eq 'present' && !$gap
                    && $self->stays_present($node, $key, $first->{state});

        return "$node->{name}: $key is $answer at $from, but $sign$key is at"
               . " $id; $first->{state}, then $second->{state}, at $to" if $bad;
    }

    return;
}


# Returns whether a removed key stays present.  Two instances of a zone, as
# there are during an upgrade, share their position, and one of them may apply
# removals a little later.

sub stays_present {
    my ($self, $node, $key, $state) = @_;

    my $ledger = $self->{ledger};
    my $change = $ledger->{last}{$key};

    $self->count("removed_later_$state");

    return !wait_until(sub {
        my (undef, $answers) = ask($node, $key);
        $ledger->read_until;
        return $answers && $answers->[0] ne 'present'
               || $ledger->{last}{$key} != $change;
    });
}


# Returns what is wrong if a zone that is current lacks an entry which was
# acknowledged long ago.

sub stale {
    my ($self, $state, $asked) = @_;

    return unless $state->{source}{state} eq 'current';

    my $old = $asked - $self->{max_lag}
              - Fleet::Events->MARGIN * $self->{patience};
    my $acked = $self->{acked};

    $self->{oldest} = (shift @$acked)->[1]
        while @$acked && $acked->[0][0] <= $old;

    return unless defined $self->{oldest};
    $self->count('fresh');

    return if Fleet::Ledger::compare($state->{source}{position},
                                     $self->{oldest}) >= 0;
    return "current at $state->{source}{position}, but $self->{oldest} was"
           . ' acknowledged long ago';
}


sub read_acks {
    my ($self) = @_;

    seek $self->{file}, 0, 1;

    while (defined(my $line = readline $self->{file})) {
        $self->{partial} .= $line;
        next unless $line =~ /\n\z/;
        push @{ $self->{acked} }, [split ' ', $self->{partial}];
        $self->{partial} = '';
    }
}


sub count {
    my ($self, $what) = @_;

    $self->{count}{$what}++;

    return;
}


# Returns a zone's state, its answers about keys, and its state again; or
# nothing if the node does not answer.

sub ask {
    my ($node, @keys) = @_;

    my $state = $node->request_text(GET => '/bloom/zones/ids', keepalive => 1);
    my $test = $node->request_text(POST => '/bloom/zones/ids/test',
                                   body => join("\n", @keys), keepalive => 1);
    my @responses = eval { $node->pipeline($state, $test, $state) } or return;

    return if grep { $_->status != 200 || !$_->complete } @responses;

    my ($list) = $responses[1]->body =~ /"answers":\[(.*?)\]/;

    return ($responses[0]->json, [$list =~ /"(\w+)"/g], $responses[2]->json);
}


1;
