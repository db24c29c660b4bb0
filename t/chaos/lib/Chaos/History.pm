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
#   pending        an acknowledged addition that may not be in the journal yet,
#                  so that its record may follow that of a later removal; it
#                  ends when the driver has seen that no key is pending
#   nothing        the operation was refused and had no effect
#
# The answer "unknown" is always allowed.  While removals are in doubt, "present"
# is, too: one of two instances may not have followed the other yet, or records
# of the journal cannot be read.
#
# Clients write lines, each at once, and the driver reads them:
#
#   begin ID TIME WALL ZONE VALUE KEY...     VALUE: present, absent or any
#   end ID TIME acknowledged|pending|cut|nothing
#   read ZONE FROM TO KEY=ANSWER...

use strict;
use warnings;

use Carp qw(croak);


# The option `ledger` is a Chaos::Ledger of this process to read from.

sub new {
    my ($class, $ledger) = @_;

    return bless { ledger => $ledger, keys => {}, open => {}, reads => [],
                   files => {}, answers => 0, unknown => 0 }, $class;
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

    my (@wrong, @later);
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
            $self->{unknown}++, next if $answer eq 'unknown';
            next if $self->allows($read->{zone}, $key, $answer,
                                  @$read{qw(from to)});

            push @wrong, ($answer eq 'absent' ? 'lost' : 'returned')
                         . ": zone $read->{zone}, key $key: answered $answer"
                         . sprintf(' between %.6f and %.6f',
                                   @$read{qw(from to)})
                         . ' after ' . $self->_told($read->{zone}, $key);
        }
    }

    $self->{reads} = \@later;
    $self->_forget_before($oldest - 60) if !@wrong;

    return @wrong;
}


sub allows {
    my ($self, $zone, $key, $answer, $from, $to) = @_;

    return 1 if $answer eq 'unknown';

    for ($self->_last_ones($zone, $key, $from)) {
        next if $_->{begin} > $to;
        return 1 if $_->{value} eq $answer || $_->{value} eq 'any';

        # a newer image may have dropped an addition

        return 1 if $answer eq 'absent'
                    && $_->{wall} < $self->{ledger}{horizon};
    }

    return $answer eq 'present' && $self->{ledger}->doubt($from, $to);
}


sub _operations {
    my ($self, $zone, $key) = @_;

    my $keys = $self->{keys}{$zone};

    # nobody has added a key before the first operation

    return ({ value => 'absent', begin => -1, end => -1, wall => 2 ** 40,
              how => 'acknowledged' },
            @{ $keys->{''} // [] }, @{ $keys->{$key} // [] });
}


# Returns the operations that may have been the last one on a key at a time, or
# after it.

sub _last_ones {
    my ($self, $zone, $key, $time) = @_;

    my @operations = $self->_operations($zone, $key);
    my $overtaken = -1;       # what ended earlier is overtaken

    for (@operations) {
        $overtaken = $_->{begin}
            if $_->{begin} > $overtaken && defined $_->{end}
               && $_->{end} < $time
               && ($_->{how} eq 'acknowledged' || $_->{how} eq 'pending');
    }

    return grep {
        my $end = $_->{end};

        if (defined $end && $_->{how} eq 'pending') {
            $end = $_->{settled} //= $self->{ledger}->settled($zone, $end);
        }

        !(defined $_->{end} && $_->{how} eq 'nothing')
            && (!defined $end || $end >= $overtaken);
    } @operations;
}


# Forgets operations that no answer after this time can be due to.

sub _forget_before {
    my ($self, $time) = @_;

    for my $zone (keys %{ $self->{keys} }) {
        my $keys = $self->{keys}{$zone};

        for my $key (grep { $_ ne '' } keys %$keys) {
            my %may = map { $_ => 1 } $self->_last_ones($zone, $key, $time);
            my @left = grep { $may{$_} } @{ $keys->{$key} };

            # an operation that overtakes nothing any more stays, because it is
            # the last one

            $keys->{$key} = \@left if @left && @left < @{ $keys->{$key} };
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
