# SPDX-License-Identifier: BSD-2-Clause

package Chaos::ClientRemovals;

# The part of Chaos::Client that removes the client's own keys, and adds removed
# keys again.

use strict;
use warnings;

use BloomTest::Process qw(now);


# Returns requests that remove keys, and requests that add removed keys again.
# No key is in two of them.  Keys in doubt are removed or not, because nobody
# knows how their last request ended: they may take room, too.

sub _removals {
    my ($self, $zone) = @_;

    my $removed = $self->{removed}{$zone};
    my $in_doubt = $self->{in_doubt}{$zone} //= {};
    my @again = (keys %$removed, keys %$in_doubt);
    my $room = $self->{removals} - @again;
    my (%seen, @requests);

    splice @again, 0, 0, splice @again, int rand @again;
    splice @again, 100 if @again > 100;

    my @present = $room < 60 ? () : grep {
        !$seen{$_}++
    } $self->_some_acked($zone, 60);

    # removing a removed key again is allowed, too

    push @present, grep { $removed->{$_} } splice @again, 0, 3
        if rand() < 0.2;

    while (@present) {
        my @numbers = splice @present, 0, rand() < 0.5 ? 1 : 1 + rand 50;
        my $durable = rand() < 0.25 ? '?durable=true' : '';
        my $how = @numbers == 1 ? rand : 0;
        my $name = $self->_name($zone, $numbers[0]);

        # their answers are read below

        vec($self->{acked}{$zone}, $_, 1) = 0 for @numbers;
        my %was = map { $_ => delete $removed->{$_} } @numbers;
        @$in_doubt{@numbers} = (1) x @numbers;

        push @requests,
            $how < 0.4
            ? $self->_batch($zone, 'remove', $durable, @numbers)
            : $how < 0.8 || $self->{calm}
            ? { method => 'DELETE', path => "/bloom/zones/$zone/keys?key=$name"
                                            . ($durable ? '&durable=true' : ''),
                numbers => \@numbers, by => 'remove',
                durable => $durable ne '' }
            : { method => 'GET', path => "/remove/$zone?k=$name",
                numbers => \@numbers, by => 'bloom_remove' };

        $requests[-1]{was} = \%was;
        last if @requests >= 8;
    }

    push @requests, $self->_batch($zone, 'keys', rand() < 0.5 ? ''
                                                 : '?durable=true',
                                  splice @again, 0, 1 + rand 30)
        if @again && ($room < 60 || rand() < 0.6);

    for (map { @{ $_->{numbers} } } grep { $_->{by} eq 'keys' } @requests) {
        delete $removed->{$_};
        $in_doubt->{$_} = 1;
    }

    $self->_count_refused($zone, @requests);

    return @requests;
}


# A removal by bloom_remove that is not possible is only counted.  Notes the
# count of the zone, to see afterwards whether any was.

sub _count_refused {
    my ($self, $zone, @requests) = @_;

    my @unsure = grep { $_->{by} eq 'bloom_remove' } @requests or return;
    my $count = $self->_refused($zone);

    $_->{refused} = $count for @unsure;
}


sub _refused {
    my ($self, $zone) = @_;

    my %request = (method => 'GET', path => "/bloom/zones/$zone");
    $self->_exchange(\%request);

    my $response = $request{response} or return;
    my ($count) = $response->body =~ /"removals_refused":(\d+)/;

    $self->_wrong(failed => "$request{path}: $response") if !defined $count;

    return $count;
}


# Returns how a removal ended: acknowledged, cut or nothing, as in History.pm;
# or failed.

sub _outcome {
    my ($self, $zone, $request) = @_;

    my $response = $request->{response} or return 'cut';
    my $status = $response->status;
    my ($from, $to) = @$request{qw(start end)};

    if ($request->{by} eq 'bloom_remove') {
        return 'failed' if $status != 200;

        my $count = $self->_refused($zone);

        # counts begin again when nginx does

        return defined $count && defined $request->{refused}
               && $count == $request->{refused}
               && !$self->{ledger}->killed($from, now())
               ? 'acknowledged' : 'cut';
    }

    if ($status == 200) {
        my %of = $response->body =~ /"(received|removed|absent)":(\d+)/g;
        my ($durable) = $response->body =~ /"durable":(true|false)/;

        return 'acknowledged'
            if ($of{received} // -1) == @{ $request->{keys}
                                           || $request->{numbers} }
               && ($of{removed} // -1) + ($of{absent} // -1) == $of{received}
               && ($durable // '') eq ($request->{durable} ? 'true' : 'false');

    } elsif ($status == 503 && $self->{ledger}->full($from, $to)) {
        $self->{count}{refused}++;
        return $request->{durable} ? 'cut' : 'nothing';

    } elsif ($status == 507
             && ($self->{ledger}->crowded($from, $to)
                 || $self->{ledger}->flooded($zone, $from, $to)))
    {
        $self->{count}{refused}++;
        return 'cut';
    }

    return 'failed';
}


# Reads the answer to a removal.  Returns the numbers that are removed.

sub _gone {
    my ($self, $zone, $request) = @_;

    my $outcome = $self->_outcome($zone, $request);
    my @numbers = @{ $request->{numbers} };

    delete @{ $self->{in_doubt}{$zone} }{@numbers}
        if $outcome eq 'acknowledged' || $outcome eq 'nothing';

    if ($outcome eq 'acknowledged') {
        $self->{count}{removed} += @numbers;
        @{ $self->{removed}{$zone} }{@numbers} = (1) x @numbers;
        return @numbers;
    }

    # a refused removal leaves the key as it was

    for ($outcome eq 'nothing' ? @numbers : ()) {
        if ($request->{was}{$_}) {
            $self->{removed}{$zone}{$_} = 1;
        } else {
            vec($self->{acked}{$zone}, $_, 1) = 1;
        }
    }

    $self->_wrong(failed => "$request->{path}: $request->{response}")
        if $outcome eq 'failed';

    return;
}


1;
