# SPDX-License-Identifier: BSD-2-Clause

package Chaos::History;

# Decides which answers about a key are allowed, from the operations on the key.
# Several clients add and remove the same keys at the same time, so an operation
# is known only as an interval: it took effect at some moment between its
# request and its answer.
#
# An answer is allowed if it is the value of an operation that may have been the
# last one when the zone answered.  An operation can no longer have been the
# last one if another operation began after it had ended, was acknowledged, and
# had ended before the answer was requested.
#
#   acknowledged   the operation took effect before its answer
#   cut            a kill or an error cut the operation: it took effect at any
#                  time, even after a restart, or never
#   nothing        the operation was refused and had no effect
#
# The answer "unknown" is always allowed.  While removals are in doubt,
# "present" is, too: one of two instances may not have followed the other yet, or records
# of the journal cannot be read.
#
# Clients write lines, each at once, and the driver reads them:
#
#   begin ID TIME WALL ZONE VALUE KEY...     VALUE: present, absent or any
#   end ID TIME acknowledged|cut|nothing
#   read ZONE FROM TO KEY=ANSWER...

use strict;
use warnings;

use Carp qw(croak);


# The option `ledger` is a Chaos::Ledger of this process to read from.

sub new {
    my ($class, $ledger) = @_;

    return bless { ledger => $ledger, keys => {}, open => {}, begun => {},
                   reads => [], files => {}, answers => 0, unknown => 0,
                 }, $class;
}


# ---- the client's side ----

sub write_line {
    my ($path, @words) = @_;

    open my $fh, '>>', $path or croak "$path: $!";
    syswrite $fh, "@words\n" or croak "$path: $!";
    close $fh;
}


# ---- the driver's side ----

# Reads what has been added to these files.

sub read_files {
    my ($self, @paths) = @_;

    for my $path (@paths) {
        my $file = $self->{files}{$path} //= { rest => '' };

        if (!$file->{in}) {
            open my $in, '<', $path or next;
            $file->{in} = $in;
        }

        while (sysread $file->{in}, $file->{rest}, 65536,
                       length $file->{rest})
        {
            while ($file->{rest} =~ s/^(.*)\n//) {
                $self->line(split ' ', $1);
            }
        }
    }
}


sub line {
    my ($self, $what, @words) = @_;

    if ($what eq 'begin') {
        my ($id, $time, $wall, $zone, $value, @keys) = @words;
        my $operation = { value => $value, begin => $time, wall => $wall };
        my ($client) = split /\./, $id;

        $self->{begun}{$client} = $time;

        $self->{open}{$id} = { operation => $operation, zone => $zone,
                               keys => \@keys };
        push @{ $self->{keys}{$zone}{$_} }, $operation for @keys;

    } elsif ($what eq 'end') {
        my ($id, $time, $how) = @words;
        my $open = delete $self->{open}{$id} or croak "no operation $id";

        @{ $open->{operation} }{qw(end how)} = ($time, $how);

    } else {
        my ($zone, $from, $to, @answers) = @words;
        push @{ $self->{reads} }, { zone => $zone, from => $from, to => $to,
                                    answers => [map { [split /=/] } @answers] };
    }
}


# Notes an operation on all keys of a zone, such as a clear.

sub on_all_keys {
    my ($self, $zone, $value, $from, $to) = @_;

    push @{ $self->{keys}{$zone}{''} },
        { value => $value, begin => $from, wall => time, end => $to,
          how => 'acknowledged' };
}


# Judges the answers that were read before a time.  Returns what is wrong.

sub judge {
    my ($self, $before) = @_;

    my (%answers, @wrong, @later);
    my $oldest = $before;

    $self->{ledger}->read;

    for my $read (@{ $self->{reads} }) {
        if ($read->{to} >= $before) {
            push @later, $read;
            $oldest = $read->{from} if $read->{from} < $oldest;
            next;
        }

        for (@{ $read->{answers} }) {
            my ($key, $answer) = @$_;

            $self->{answers}++;
            $self->{unknown}++ if $answer eq 'unknown';
            push @{ $answers{$read->{zone}}{$key} },
                { from => $read->{from}, to => $read->{to},
                  answer => $answer } if $answer ne 'unknown';
        }
    }

    for my $zone (sort keys %answers) {
        for my $key (sort keys %{ $answers{$zone} }) {
            push @wrong, map {
                ($_->{answer} eq 'absent' ? 'lost' : 'returned')
                . ": zone $zone, key $key: answered $_->{answer}"
                . sprintf(' between %.6f and %.6f', @$_{qw(from to)})
                . ' after ' . $self->_told($zone, $key)
            } $self->_not_allowed($zone, $key, @{ $answers{$zone}{$key} });
        }
    }

    $self->{reads} = \@later;
    $self->_forget_before($oldest) if !@wrong;

    return @wrong;
}


sub allows {
    my ($self, $zone, $key, $answer, $from, $to) = @_;

    return $answer eq 'unknown' || !$self->_not_allowed(
        $zone, $key, { answer => $answer, from => $from, to => $to });
}


# Returns the answers about a key that are not allowed.

sub _not_allowed {
    my ($self, $zone, $key, @answers) = @_;

    my @wrong;

    $self->_last_ones($zone, $key, sub {
        my ($read, @operations) = @_;
        my $answer = $read->{answer};

        for (@operations) {
            return if $_->{value} eq $answer || $_->{value} eq 'any';

            # a newer image may have dropped an addition

            return if $answer eq 'absent'
                      && $_->{wall} < $self->{ledger}{horizon};
        }

        push @wrong, $read
            unless $answer eq 'present'
                   && $self->{ledger}->doubt($zone, @$read{qw(from to)});
    }, sort { $a->{from} <=> $b->{from} } @answers);

    return @wrong;
}


# Calls a function for each answer, in the order of the times at which they were
# requested, with the operations that may have been the last one.

sub _last_ones {
    my ($self, $zone, $key, $visit, @answers) = @_;

    my @operations = sort { $a->{begin} <=> $b->{begin} }
                          $self->_operations($zone, $key);
    my @done = sort { $a->{end} <=> $b->{end} } grep {
        defined $_->{end} && $_->{how} eq 'acknowledged'
    } @operations;
    my ($overtaken, @may) = (-1);    # what ended earlier is overtaken

    for my $answer (@answers) {
        while (@done && $done[0]{end} < $answer->{from}) {
            my $begin = (shift @done)->{begin};
            $overtaken = $begin if $begin > $overtaken;
        }

        push @may, shift @operations
            while @operations && $operations[0]{begin} <= $answer->{to};
        @may = grep { $self->_lasts($_) >= $overtaken } @may;

        $visit->($answer, grep { $_->{begin} <= $answer->{to} } @may);
    }
}


# Returns the time up to which an operation may take effect.

sub _lasts {
    my ($self, $operation) = @_;

    my $end = $operation->{end};

    return 'inf' if !defined $end;
    return $operation->{how} eq 'nothing' ? -2 : $end;
}


sub _operations {
    my ($self, $zone, $key) = @_;

    my $keys = $self->{keys}{$zone};

    # nobody has added a key before the first operation

    return ({ value => 'absent', begin => -1, end => -1, wall => 2 ** 40,
              how => 'acknowledged' },
            @{ $keys->{''} // [] }, @{ $keys->{$key} // [] });
}


# Forgets operations that no answer can be due to that was requested after this
# time.  A client may not have written such an answer yet.  It writes the
# beginning of its operations before it requests answers.

sub _forget_before {
    my ($self, $time) = @_;

    for (values %{ $self->{begun} }) {
        $time = $_ if $_ < $time;
    }

    for my $zone (keys %{ $self->{keys} }) {
        my $keys = $self->{keys}{$zone};

        for my $key (grep { $_ ne '' } keys %$keys) {
            my %may;

            $self->_last_ones($zone, $key, sub { $may{$_} = 1 for @_ },
                              { from => $time, to => 'inf' });
            my @left = grep { $may{$_} } @{ $keys->{$key} };

            # one stays, since without any the key would be one that nobody has
            # added

            $keys->{$key} = \@left if @left;
        }
    }
}


# Returns the last operations on a key, for a message.

sub _told {
    my ($self, $zone, $key) = @_;

    my @last = sort { $a->{begin} <=> $b->{begin} }
                    grep { $_->{begin} >= 0 } $self->_operations($zone, $key);

    splice @last, 0, @last - 6 if @last > 6;

    return join ', ', map {
        sprintf '%s from %.6f to %s (%s)', @$_{qw(value begin)},
                defined $_->{end} ? sprintf '%.6f', $_->{end} : '?',
                $_->{how} // 'in flight'
    } @last;
}


1;
