# SPDX-License-Identifier: BSD-2-Clause

package Chaos::SharedKeys;

# The part of Chaos::Client that adds and removes keys that other clients add
# and remove at the same time, and looks them up.  It judges nothing: it writes
# what it did to the file client.N.history, and History.pm says which answers
# were allowed.

use strict;
use warnings;

use List::Util qw(shuffle);

use BloomTest::Process qw(now);

use Chaos::History;

# few keys, so that clients meet
use constant KEYS => 12;


sub _some_shared {
    my ($self, $zone, $count) = @_;

    return map { "x" . substr($zone, 0, 1) . int rand KEYS } 1 .. $count;
}


sub _note {
    my ($self, @words) = @_;

    Chaos::History::write_line(
        $self->{t}->testdir . "/client.$self->{number}.history", @words);
}


# Sends operations on shared keys and lookups of them at the same time, on a
# connection each; afterwards looks the keys up once more.  With `calm`, uses
# neither bloom_add nor bloom_remove.

sub _shared_round {
    my ($self, $zone, $calm) = @_;

    my @operations = map { $self->_shared_operation($zone, $calm) }
                         1 .. 1 + rand 5;
    my @lookups = map { $self->_shared_lookup($zone, $_) }
                      $self->_some_shared($zone, int rand 4);

    $self->_count_refused($zone, @operations);

    for (@operations) {
        $_->{id} = "$self->{number}." . ++$self->{operations};

        # nginx's clock may be behind

        my $clock = $self->{ledger}{clock};

        $self->_note('begin', $_->{id}, sprintf('%.6f', now()),
                     time + ($clock < 0 ? $clock : 0), $zone,
                     $_->{value}, @{ $_->{keys} });
    }

    $self->_exchange(shuffle(@operations, @lookups));

    for (@operations) {
        my $outcome = $_->{value} eq 'absent' ? $self->_outcome($zone, $_)
                                              : $self->_shared_added($_);

        $self->_wrong(failed => "$_->{path}: $_->{response}")
            if $outcome eq 'failed';
        $self->_note('end', $_->{id}, sprintf('%.6f', $_->{end} // now()),
                     $outcome eq 'failed' ? 'cut' : $outcome);
    }

    push @{ $self->{idle} }, shift @{ $self->{idle} } if @{ $self->{idle} };

    my %touched = map { $_ => 1 } map { @{ $_->{keys} } } @operations;
    my @again = map { $self->_shared_lookup($zone, $_) }
                    $self->_some_shared($zone, 2), sort keys %touched;

    $self->_exchange(@again);
    $self->_shared_answered($zone, $_) for @lookups, @again;
}


sub _shared_operation {
    my ($self, $zone, $calm) = @_;

    my $count = rand() < 0.6 ? 1 : 1 + int rand 6;
    my @keys = $self->_some_shared($zone, $count);
    my $durable = rand() < 0.2 ? 'durable=true' : '';
    my $query = $durable ? "?$durable" : '';
    my $body = join '', map { "$_\n" } @keys;
    my $zones = "/bloom/zones/$zone";
    my $single = $count == 1 && !$calm && rand() < 0.3;

    my $delete = "$zones/keys?key=$keys[0]" . ($durable ? "&$durable" : '');
    my %common = (keys => \@keys, durable => $durable ne '');

    return $single
        ? { %common, method => 'GET', path => "/add/$zone?k=$keys[0]",
            by => 'add', value => 'present' }
        : { %common, method => 'POST', path => "$zones/keys$query",
            body => $body, by => 'keys', value => 'present' }
        if rand() < 0.5;

    return { %common, method => 'GET', path => "/remove/$zone?k=$keys[0]",
             by => 'bloom_remove', value => 'absent' } if $single;

    return { %common, method => 'DELETE', by => 'remove', value => 'absent',
             path => $delete }
        if $count == 1 && rand() < 0.5;

    return { %common, method => 'POST', path => "$zones/remove$query",
             body => $body, by => 'remove', value => 'absent' };
}


# Returns how an addition ended, as _outcome() does.

sub _shared_added {
    my ($self, $request) = @_;

    my $response = $request->{response} or return 'cut';

    return 'acknowledged' if $response->status == 200;

    # the bits of a refused addition may be set

    return 'cut' if $response->status == 503 && $request->{by} eq 'keys'
                    && $self->{ledger}->full(@$request{qw(start end)});

    return 'failed';
}


sub _shared_lookup {
    my ($self, $zone, $key) = @_;

    return { method => 'GET', path => "/$zone?k=$key", key => $key };
}


sub _shared_answered {
    my ($self, $zone, $request) = @_;

    my $known = $self->_known($request) // return;

    $self->{count}{asked}++;
    $self->{count}{unknown}++ if $known eq '';

    my $answer = $known eq '' ? 'unknown' : $known ? 'present' : 'absent';

    $self->_note('read', $zone,
                 map({ sprintf '%.6f', $_ } @$request{qw(start end)}),
                 "$request->{key}=$answer");
}


1;
