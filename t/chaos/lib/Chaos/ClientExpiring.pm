# SPDX-License-Identifier: BSD-2-Clause

package Chaos::ClientExpiring;

# The part of Chaos::Client that uses zones whose keys expire.  For each key the
# client knows between which times it was last added:
#
#   from     before the request for the last acknowledged addition
#   until    after its answer
#
# A key is present from then on until from + life, and absent after until + life
# + slice and an allowance for faults.  Between these times either answer is
# right.  Nothing is known of a key whose last operation was cut.
#
# A client adds so few keys within any life that the zone has room for them, and
# many of them at once, so that slices become full.

use strict;
use warnings;

use List::Util qw(shuffle);

use BloomTest::Process qw(now);

use constant {
    WINDOW => 17,          # seconds, more than the longest life
    ALLOWANCE => 3,        # seconds without faults
    FAULT => 5,            # seconds more with faults, besides their length
    SLOW => 0.5,           # a request that takes longer shows a slow machine
    REMOVED => 150,        # removed keys to remember in each zone
};


sub begin_expiring {
    my ($self) = @_;

    for my $zone (@{ $self->{expiring_zones} }) {
        $self->{acked}{$zone} = '';
        $self->{removed}{$zone} = {};
        $self->{next}{$zone} = 1;
        $self->{expiring}{$zone} = { keys => {}, sent => [], expired => [],
                                     stabbed => 0 };
    }

    $self->{slow} = [];
}


# ---- one round ----

sub _expiring_round {
    my ($self, $careful) = @_;

    my $zone = $self->{expiring_zones}[rand @{ $self->{expiring_zones} }];
    my $what = rand;
    my @fresh;

    if ($what < 0.15) {
        $self->_expiring_removal($zone);

    } elsif ($what < 0.8) {
        @fresh = $self->_expiring_additions($zone, $careful);
    }

    push @{ $self->{idle} }, splice @{ $self->{idle} }, 0,
        int rand 1 + @{ $self->{idle} };

    splice @fresh, 3 if @fresh > 3;
    $self->_ask_expiring($zone, @fresh);
}


# Returns how many keys the client may add to a zone now.

sub _expiring_room {
    my ($self, $zone) = @_;

    my $sent = $self->{expiring}{$zone}{sent};
    my $room = $self->{expiring_limit};

    shift @$sent while @$sent && $sent->[0][0] < now() - WINDOW;
    $room -= $_->[1] for @$sent;

    return $room;
}


# Adds new keys, keys that are present, and keys that have expired.  Returns the
# numbers of those that are acknowledged.

sub _expiring_additions {
    my ($self, $zone, $careful) = @_;

    my $ring = $self->{expiring}{$zone};
    my $room = $self->_expiring_room($zone);
    my $chance = rand($self->{calm} ? 0.8 : 1);
    my $single = $chance >= 0.8;
    my $count = $single ? ($careful ? 1 : 1 + int rand 8)
                : rand() < 0.2 ? $room : 1 + int rand 200;

    $count = $room if $count > $room;
    return if $count <= 0;

    my @known = shuffle(keys %{ $ring->{keys} });
    splice @known, $count / 4 if @known > $count / 4;
    my @again = splice @{ $ring->{expired} }, 0, $count / 8;
    my $new = $count - @known - @again;
    my $next = $self->{next}{$zone};

    $self->{next}{$zone} += $new;

    my %seen;
    my @numbers = shuffle(grep { !$seen{$_}++ }
                               @known, @again, $next .. $next + $new - 1);
    my $durable = rand() < 0.2 && $zone ne 'tickets' ? '?durable=true' : '';
    my @requests;

    if ($single) {
        @requests = map { +{ method => 'GET', by => 'add', numbers => [$_],
                             path => "/add/$zone?k="
                                     . $self->_name($zone, $_) } } @numbers;
    } else {
        push @requests, $self->_batch($zone, 'keys', $durable,
                                      splice @numbers, 0, 1 + @numbers / 2)
            while @numbers;
    }

    $self->_exchange(@requests);
    push @{ $ring->{sent} }, [now(), $count];

    return map { $self->_expiring_added($zone, $_) } @requests;
}


# Reads the answer to an addition.  A refused or cut addition may have set bits.

sub _expiring_added {
    my ($self, $zone, $request) = @_;

    my $keys = $self->{expiring}{$zone}{keys};
    my @numbers = @{ $request->{numbers} };

    delete @{ $self->{removed}{$zone} }{@numbers};

    if (!$self->_added($zone, $request)) {
        delete @$keys{@numbers};
        return;
    }

    $self->_note_slow($request);
    $keys->{$_} = { from => $request->{start}, until => $request->{end} }
        for @numbers;

    return @numbers;
}


# Removes keys that are present, or were until a moment ago.

sub _expiring_removal {
    my ($self, $zone) = @_;

    my ($keys, $removed) = ($self->{expiring}{$zone}{keys},
                            $self->{removed}{$zone});
    my @old = sort { $removed->{$a} <=> $removed->{$b} } keys %$removed;

    delete @$removed{splice @old, 0, @old - REMOVED} if @old > REMOVED;

    my @numbers = shuffle(keys %$keys);
    splice @numbers, 1 + rand 10 if @numbers > 10;
    return if !@numbers;

    my $durable = rand() < 0.2 && $zone ne 'tickets' ? '?durable=true' : '';
    my $request = $self->_batch($zone, 'remove', $durable, @numbers);

    $self->_exchange($request);

    my $outcome = $self->_outcome($zone, $request);

    # while two instances serve, each has a zone without a journal of its own, and
    # the other one may still have the key

    $outcome = 'cut' if $outcome eq 'acknowledged' && $zone eq 'tickets'
                        && $self->{ledger}->emptied(@$request{qw(start end)});

    delete @$keys{@numbers} if $outcome ne 'nothing';

    if ($outcome eq 'acknowledged') {
        $self->{count}{removed} += @numbers;
        $removed->{$_} = $request->{end} for @numbers;
    }

    $self->_wrong(failed => "$request->{path}: $request->{response}")
        if $outcome eq 'failed';
}


# ---- lookups ----

# Looks up keys whose life is about to end, or has just ended, and some others:
# a few on connections of their own, the others by the endpoint.

sub _ask_expiring {
    my ($self, $zone, @fresh) = @_;

    my $keys = $self->{expiring}{$zone}{keys};
    my $now = now();
    my ($life, $slice) = $self->{ledger}->life($zone, $now);
    my (@edge, @over, @other);

    for (keys %$keys) {
        my $age = $now - $keys->{$_}{from};

        push @{ abs($age - $life) < 0.3 ? \@edge
                : $age > $life + $slice ? \@over : \@other }, $_;
    }

    my $some = sub {
        my ($count, @numbers) = @_;
        @numbers = shuffle(@numbers);
        splice @numbers, $count if @numbers > $count;
        return @numbers;
    };
    my @single = (@fresh, $some->(2, @edge), $some->(2, @other));
    my @removed = $some->(10, keys %{ $self->{removed}{$zone} });
    my $never = "never$self->{number}-" . int rand 1e9;

    my @requests = map { +{ method => 'GET', number => $_,
                            path => "/$zone?k=" . $self->_name($zone, $_) } }
                       @single;

    $self->_exchange(@requests);

    for (@requests) {
        my $known = $self->_known($_) // next;

        $self->_judge_expiring($zone, $_->{number},
                               $known eq '' ? 'unknown'
                               : $known ? 'present' : 'absent', $_);
    }

    $self->_test_expiring($zone, $some->(100, @edge), $some->(60, @over),
                          $some->(60, @other));
    $self->_test_removed($zone, $never, @removed);
}


sub _test_expiring {
    my ($self, $zone, @numbers) = @_;

    while (my @some = splice @numbers, 0, 5000) {
        my ($request, @answers) = $self->_test_keys(
            $zone, map { $self->_name($zone, $_) } @some) or next;

        $self->_judge_expiring($zone, $some[$_], $answers[$_], $request)
            for 0 .. $#some;
    }
}


# Tests removed keys, and one that was never added.

sub _test_removed {
    my ($self, $zone, $never, @numbers) = @_;

    my ($request, @answers) = $self->_test_keys(
        $zone, $never, map { $self->_name($zone, $_) } @numbers) or return;
    my @times = @$request{qw(start end)};
    my $ledger = $self->{ledger};

    $self->{count}{asked} += @answers;
    $self->{count}{unknown} += grep { $_ eq 'unknown' } @answers;

    my $answer = shift @answers;

    return if $ledger->flooded($zone, @times);

    $self->{count}{$answer eq 'present' ? 'false' : 'absent'}++
        if $answer ne 'unknown';

    for (grep { $answers[$_] eq 'present' } 0 .. $#answers) {
        $self->_returned($zone, $self->_name($zone, $numbers[$_]), 'removed')
            unless $ledger->doubt($zone, @times);
    }
}


# ---- what is allowed ----

sub _note_slow {
    my ($self, $request) = @_;

    my ($start, $end) = @$request{qw(start end)};

    return if $end - $start < SLOW;

    push @{ $self->{slow} }, [$start, $end];
    shift @{ $self->{slow} } if @{ $self->{slow} } > 200;
}


# Judges an answer about a key.

sub _judge_expiring {
    my ($self, $zone, $number, $answer, $request) = @_;

    my ($ring, $ledger, $count) = (@$self{qw(expiring ledger count)});
    my $keys = $ring->{$zone}{keys};
    my $key = $keys->{$number} or return;
    my ($start, $end) = @$request{qw(start end)};
    my ($from, $until) = @$key{qw(from until)};

    $self->_note_slow($request);
    $count->{asked}++;

    if ($answer eq 'unknown') {
        $count->{unknown}++;
        return;
    }

    my ($least, $most) = $ledger->lives($zone, $from, $end);
    my $age = sprintf '%.3f', $answer eq 'absent' ? $end - $from
                                                  : $start - $until;

    if ($answer eq 'present') {
        my ($allowed, $faults) = $self->_allowance($zone, $from, $end);

        # in a zone with too many keys it may be a false positive

        return if $ledger->flooded($zone, $from, $end);

        $self->_most(greatest => $age);
        $self->_most(greatest_calm => $age) if !$faults;
        $self->_most(excess => sprintf '%.3f', $age - $most - $faults)
            if $faults;

        $self->_wrong(outlived => "zone $zone, key "
                      . $self->_name($zone, $number)
                      . ": present $age s after its addition, of at most"
                      . " $most s and an allowance of $allowed s")
            if $age > $most + $allowed
               && !$self->{wrong}{"$zone $number"}++;
        return;
    }

    # a zone without a journal loses its keys when nginx starts again

    if ($zone eq 'tickets' && $ledger->emptied($from, $end)) {
        delete $keys->{$number};
        return;
    }

    if ($age < $least) {
        $self->_wrong(lost => "zone $zone, key " . $self->_name($zone, $number)
                      . ": absent $age s after its addition, of at least"
                      . " $least s")
            if !$self->{wrong}{"$zone $number"}++;
        return;
    }

    $self->_least(least => $age);
    $self->_count_turn($ring->{$zone}, $from, $end - $least);

    return if $start - $until <= $most + ALLOWANCE;

    # it is known to be absent; some of these keys are added again

    $count->{expired}++;
    delete $keys->{$number};
    push @{ $ring->{$zone}{expired} }, $number;
    shift @{ $ring->{$zone}{expired} } if @{ $ring->{$zone}{expired} } > 200;
}


# Returns for how many seconds more than the life and a slice a key that was
# added at `from` may have been present at `to`, and whether faults happened.

sub _allowance {
    my ($self, $zone, $from, $to) = @_;

    my $faults = $self->{ledger}->faults($from, $to);
    my $slow = 0;

    for (@{ $self->{slow} }) {
        $slow += $_->[1] - $_->[0] if $_->[1] >= $from && $_->[0] <= $to;
    }

    return (ALLOWANCE + $slow + ($faults ? FAULT + $faults : 0), $faults);
}


# Counts a turn of the ring that must have happened between two times: after a
# key was added, and a life before it was seen to be absent.  Turns that may be
# the same one count once.

sub _count_turn {
    my ($self, $ring, $from, $to) = @_;

    return if $from < $ring->{stabbed};

    $ring->{stabbed} = $to;
    $self->{count}{turns}++;
}


sub _least {
    my ($self, $what, $value) = @_;

    $self->{extreme}{$what} = $value
        if $value < ($self->{extreme}{$what} // 9 ** 9);
}


sub _most {
    my ($self, $what, $value) = @_;

    $self->{extreme}{$what} = $value
        if $value > ($self->{extreme}{$what} // -9 ** 9);
}


# Looks up all keys; the answers may be unknown.

sub _verify_expiring {
    my ($self) = @_;

    for my $zone (@{ $self->{expiring_zones} }) {
        $self->_test_expiring($zone, keys %{ $self->{expiring}{$zone}{keys} });
        $self->_test_removed($zone, "never$self->{number}-" . int(rand 1e9),
                             keys %{ $self->{removed}{$zone} });
    }
}


1;
