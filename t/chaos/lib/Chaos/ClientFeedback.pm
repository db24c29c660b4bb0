# SPDX-License-Identifier: BSD-2-Clause

package Chaos::ClientFeedback;

# The part of Chaos::Client that makes zones except keys.  It looks for false
# positives of the filter as it is, asks the backend for them, and adds some of
# them before, while or after the backend answers.
#
# A zone with excepted keys may answer either for a key that is not acknowledged.
# It may never answer absent for an acknowledged key whose row the backend has,
# or gets soon enough: within less than `after` of the beginning of the
# addition.  If the client was too slow to write a row, it no longer takes the
# key for acknowledged.
#
# A client has few keys in these zones, and uses them again and again: a key is
# a false positive, then excepted, added, removed and a false positive again.

use strict;
use warnings;

use List::Util qw(shuffle);

use BloomTest::Process qw(now wait_until);

use Chaos::Rows;

use constant {
    NUMBERS => 6000,       # keys in each zone
    MOST => 2500,          # of which so many are added
    SCAN => 300,           # keys to look for false positives among
    ROW => 0.7,            # seconds in which an added key gets its row, below
                           # `after`
    LATE => 24,            # late responses to wait for at a time
};


sub begin_feedback {
    my ($self) = @_;

    for my $zone (@{ $self->{feedback_zones} }) {
        my $path = Chaos::Rows::path($self->{t}->testdir, $self->{number},
                                     $zone);

        open my $rows, '>:raw', $path or die "$path: $!";
        $self->{feedback}{$zone} = { rows => $rows, has => '', rowless => {},
                                     suspects => [], passed => {},
                                     excepted => {} };
    }

    $self->{late} = [];
}


# ---- rows of the backend ----

sub _set_row {
    my ($self, $zone, $number, $value) = @_;

    my $feedback = $self->{feedback}{$zone};

    return if vec($feedback->{has}, $number, 1) == $value;

    sysseek $feedback->{rows}, $number, 0;
    syswrite $feedback->{rows}, $value;
    vec($feedback->{has}, $number, 1) = $value;
}


# Writes the rows that are due, or all.  A key whose row comes too late may be
# excepted.

sub _write_rows {
    my ($self, $all) = @_;

    for my $zone (@{ $self->{feedback_zones} }) {
        my $rowless = $self->{feedback}{$zone}{rowless};
        my $now = now();

        for (grep { $all || $rowless->{$_}{due} <= $now } keys %$rowless) {
            $self->_set_row($zone, $_, 1);
            vec($self->{acked}{$zone}, $_, 1) = 0
                if $self->_row_is_late($zone, $_);
            delete $rowless->{$_};
        }
    }
}


sub _row_is_late {
    my ($self, $zone, $number) = @_;

    my $added = $self->{feedback}{$zone}{rowless}{$number};

    return $added && now() - $added->{begin} > ROW;
}


# Returns whether a zone may not answer absent for a key.

sub _is_promised {
    my ($self, $zone, $number) = @_;

    return $self->_acked($zone, $number)
           && !$self->_row_is_late($zone, $number);
}


# ---- false positives ----

# Returns up to so many numbers of keys that are not added: false positives,
# unless another image serves meanwhile, keys that were excepted, and a few that
# the filter does not have.

sub _suspects {
    my ($self, $zone, $count) = @_;

    my ($feedback, $removed)
        = ($self->{feedback}{$zone}, $self->{removed}{$zone});
    my $suspects = $feedback->{suspects};
    my %seen;

    $self->_scan($zone) if @$suspects < $count;

    my @numbers = splice @$suspects, 0, $count;
    push @numbers, grep { rand() < 0.05 } keys %{ $feedback->{excepted} };

    return grep {
        !$seen{$_}++ && !$removed->{$_} && !$self->_acked($zone, $_)
    } @numbers;
}


sub _scan {
    my ($self, $zone) = @_;

    my $from = $self->{next}{$zone};
    my @numbers = grep {
        !$self->_acked($zone, $_) && !$self->{removed}{$zone}{$_}
    } $from + SCAN <= NUMBERS ? $from .. $from + SCAN - 1
                              : map { 1 + int rand($from - 1) } 1 .. SCAN;

    $self->{next}{$zone} = $from + SCAN if $from + SCAN <= NUMBERS;
    $self->_set_row($zone, $_, 0) for @numbers;

    return if !@numbers;

    my (undef, @answers) = $self->_test_keys(
        $zone, map { $self->_name($zone, $_) } @numbers) or return;
    my @absent = grep { $answers[$_] ne 'present' } 0 .. $#numbers;

    splice @absent, 3 if @absent > 3;
    push @{ $self->{feedback}{$zone}{suspects} }, shuffle @numbers[
        @absent, grep { $answers[$_] eq 'present' } 0 .. $#numbers];
}


# ---- one round ----

sub _feedback_round {
    my ($self, $careful) = @_;

    my $zone = $self->{feedback_zones}[rand @{ $self->{feedback_zones} }];

    $self->_write_rows;
    $self->_read_late;

    if (rand() < 0.15) {
        $self->_feedback_removals($zone);
        return;
    }

    my (@asked, @lagging, @with_row);
    my $full = unpack('%32b*', $self->{acked}{$zone}) >= MOST;

    for ($self->_suspects($zone, 1 + int rand 8)) {
        my $what = $full ? 0 : rand;

        push @asked, $_ if $what < 0.6;
        push @lagging, $_ if $what >= 0.4 && $what < 0.85;
        push @with_row, $_ if $what >= 0.85;
    }

    # lookups and additions at the same time

    my @late = grep { rand() < 0.4 } @asked;
    my %late = map { $_ => 1 } @late;
    my @lookups = map { $self->_backend_lookup($zone, $_) }
                      grep { !$late{$_} } @asked;
    my @additions = $self->_feedback_additions($zone, $careful, \@lagging,
                                               \@with_row);
    my $first = rand() < 0.7;

    $self->_ask_late($zone, @late) if $first;
    $self->_exchange(shuffle(@lookups, @additions));
    $self->_ask_late($zone, @late) if !$first;

    my @fresh = $self->_feedback_added($zone, @additions);

    $self->_backend_answered($zone, $_) for @lookups;

    # the backend may not have the rows of added keys yet

    my @passed = keys %{ $self->{feedback}{$zone}{passed} };
    my @again = (@fresh, $self->_some_acked($zone, 3),
                 map { $passed[rand @passed] } @passed ? (1, 2) : ());

    $self->_ask_late($zone, grep { rand() < 0.2 } @fresh);
    push @{ $self->{idle} }, shift @{ $self->{idle} } if @{ $self->{idle} };

    splice @again, 12 if @again > 12;
    my @requests = map { $self->_backend_lookup($zone, $_) } @again;
    $self->_exchange(@requests);
    $self->_backend_answered($zone, $_) for @requests;

    $self->_ask($zone, \@fresh, []);
}


sub _feedback_additions {
    my ($self, $zone, $careful, $lagging, $with_row) = @_;

    my @numbers = (@$lagging, @$with_row) or return;
    my $chance = rand($self->{calm} || $careful ? 0.6 : 1);
    my $query = rand() < 0.3 ? '?durable=true' : '';
    my $now = now();

    $self->_set_row($zone, $_, 1) for @$with_row;
    $self->{feedback}{$zone}{rowless}{$_}
        = { begin => $now, due => $now + rand(ROW - 0.1) } for @$lagging;

    return $self->_batch($zone, 'keys', $query, @numbers) if $chance < 0.3;
    return map { $self->_batch($zone, 'keys', $query, $_) } @numbers
        if $chance < 0.6;

    return map { +{ method => 'GET', by => 'add', numbers => [$_],
                    path => "/add/$zone?k=" . $self->_name($zone, $_) } }
               @numbers;
}


# Reads the answers to additions.  Returns the numbers that are acknowledged.

sub _feedback_added {
    my ($self, $zone, @additions) = @_;

    my $feedback = $self->{feedback}{$zone};
    my @fresh;

    for (@additions) {
        my @acked = $self->_added($zone, $_);

        delete @{ $feedback->{rowless} }{ @{ $_->{numbers} } } unless @acked;
        push @fresh, @acked;
    }

    for (@fresh) {
        $self->{count}{revived}++ if delete $feedback->{excepted}{$_};
        delete $feedback->{passed}{$_};
    }

    return @fresh;
}


# Removes some keys and adds removed ones again.  A removed key loses its row.

sub _feedback_removals {
    my ($self, $zone) = @_;

    local $self->{removals} = $self->{feedback_removals};

    my @requests = $self->_removals($zone);
    my (@fresh, @gone);

    for my $request (grep { $_->{by} eq 'keys' } @requests) {
        $self->_set_row($zone, $_, 1) for @{ $request->{numbers} };
    }

    $self->_exchange(@requests);

    for (@requests) {
        $_->{by} eq 'keys' ? push @fresh, $self->_feedback_added($zone, $_)
                           : push @gone, $self->_gone($zone, $_);
    }

    $self->_ask($zone, \@fresh, \@gone);

    for (@gone) {
        delete $self->{feedback}{$zone}{rowless}{$_};
        $self->_set_row($zone, $_, 0);
    }
}


# ---- requests that pass if the zone takes a key for present ----

sub _backend_lookup {
    my ($self, $zone, $number) = @_;

    my $name = $self->_name($zone, $number);

    return { method => 'GET', path => "/of/$zone?k=$name", key => $name,
             number => $number,
             promised => $self->_is_promised($zone, $number) };
}


sub _backend_answered {
    my ($self, $zone, $request) = @_;

    my $response = $request->{response} or return;
    my ($feedback, $number) = ($self->{feedback}{$zone}, $request->{number});
    my ($status, $body) = ($response->status, $response->body);

    if ($status == 200 && $body eq 'row') {
        $self->{count}{rows}++;

    } elsif ($status == 404 && $body eq 'no row') {
        $self->{count}{passed}++;
        $feedback->{passed}{$number} = 1 unless $self->_acked($zone, $number);

    } elsif ($status != 404) {
        $self->_wrong(failed => "$request->{path}: $response");

    } elsif ($request->{promised}) {
        $self->_lost($zone, $request->{key}, $number, 'rejected')
            if !$self->{ledger}->cleared(@$request{qw(start end)});

    } else {
        $self->{count}{rejected}++;
        $feedback->{excepted}{$number} = 1
            if delete $feedback->{passed}{$number};
    }
}


# Asks for keys, and leaves the answers for later rounds.

sub _ask_late {
    my ($self, $zone, @numbers) = @_;

    for (@numbers) {
        last if @{ $self->{late} } >= LATE;

        my $request = $self->_backend_lookup($zone, $_);
        my $seconds = rand() < 0.1 ? 0.5 + rand 1.5 : 0.01 + rand 0.3;

        $request->{zone} = $zone;
        $request->{path} .= sprintf '&late=%.3f', $seconds;
        $request->{promised} = 0;        # it may be removed meanwhile
        $request->{start} = now();
        $request->{connection} = eval { $self->{t}->connect } or next;
        $request->{connection}->send($self->{t}->request_text(
            GET => $request->{path}));
        push @{ $self->{late} }, $request;
    }
}


# Reads the late answers that have come, and looks up the keys that were added
# meanwhile.

sub _read_late {
    my ($self) = @_;

    my (@left, @come, $bits);

    $bits = '';
    vec($bits, fileno $_->{connection}{socket}, 1) = 1
        for @{ $self->{late} };
    return if !@{ $self->{late} } || select($bits, undef, undef, 0) <= 0;

    for my $request (@{ $self->{late} }) {
        if (!vec($bits, fileno $request->{connection}{socket}, 1)) {
            push @left, $request;
            next;
        }

        my $response = eval { $request->{connection}->response('GET') };
        $self->{count}{requests}++;

        if ($response && $response->complete && $response->status) {
            @$request{qw(response end)} = ($response, now());
            push @come, $request;
            next;
        }

        my $verdict = $self->{ledger}->verdict(
            $request->{start}, now(), undef,
            $response && "$response" ne '');

        $verdict eq 'failed'
            ? $self->_wrong(failed => "GET $request->{path}: late: answered '"
                            . substr($response // '', 0, 200) . "'")
            : $self->{count}{$verdict}++;
    }

    $self->{late} = \@left;
    $self->{count}{late} += @come;
    $self->_backend_answered($_->{zone}, $_) for @come;

    my @requests = map {
        my $path = "/$_->{zone}?k=$_->{key}";
        +{ method => 'GET', path => $path, key => $_->{key},
           number => $_->{number}, zone => $_->{zone} };
    } grep { $self->_acked(@$_{qw(zone number)}) } @come;

    $self->_exchange(@requests);
    $self->_answered($_->{zone}, $_) for @requests;
}


# ---- for the checker's own test ----

# Asks the backend for all acknowledged keys.

sub _ask_all {
    my ($self) = @_;

    for my $zone (@{ $self->{feedback_zones} }) {
        my @requests = map { $self->_backend_lookup($zone, $_) }
                           $self->_all_acked($zone);

        while (my @some = splice @requests, 0, 12) {
            $self->_exchange(@some);
            $self->_backend_answered($zone, $_) for @some;
        }
    }
}


# Takes an excepted key for acknowledged that is not.

sub _mistake {
    my ($self, $zone) = @_;

    my $excepted = $self->{feedback}{$zone}{excepted};
    my $number;

    wait_until(sub {
        $self->_feedback_round(1);
        ($number) = keys %$excepted;
        return defined $number;
    }) or die "client $self->{number}: zone $zone excepts no key\n";

    $self->_acknowledge($zone, $number);
}


1;
