# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Ledger;

# The driver writes down what it does to nginx before it does it.  The ledger is
# a file of lines that the driver appends to and the clients read, and it
# decides which failures of a request are excused.  All processes take times
# from one clock, so the result does not depend on which process is faster.
#
#   kill N TIME PIDS      the driver will kill these processes (*: all)
#   quit N TIME PIDS      the driver will ask these processes to exit
#   full N TIME           the disk will refuse
#   cleared N TIME        a zone will be cleared
#   crowded N TIME        there will be no room for further removed keys
#   doubt N TIME          removed keys may be present: zones will have two
#                         instances, or files that cannot be read
#   ahead N TIME          removals of zone shield may be forgotten from now on:
#                         images and records may have times in the future
#   flood N TIME ZONE      a zone will have more keys than it has room for, or
#                         its keys will not expire
#   anew N TIME           zones without a journal may begin empty
#   end N TIME            event N is over
#   lives ZONE TIME LIFE SLICE
#                         from now on keys of the zone may live for LIFE
#                         seconds, in slices of SLICE seconds
#   lived ZONE TIME LIFE SLICE
#                         from now on no key has this life any more
#   image N               from now on an image with the keys of number N may
#                         serve
#   horizon TIME          from now on an image may drop keys that were
#                         acknowledged before TIME
#   clock SECONDS         from now on the clock of nginx is ahead by this

use strict;
use warnings;

use Carp qw(croak);
use List::Util qw(min max);

use BloomTest::Process qw(now);

# the kinds of events that take a while
my @kinds = qw(kill quit full crowded doubt ahead cleared anew flood);


sub new {
    my ($class, $path) = @_;

    return bless { path => $path, images => [], horizon => 0,
                   (map { $_ => {} } @kinds), next => 1,
                   lives => {}, clock => 0, lowest => 0 },
                 $class;
}


# ---- the driver's side ----

sub write {
    my ($self, @words) = @_;

    open my $fh, '>>', $self->{path} or croak "$self->{path}: $!";
    syswrite $fh, "@words\n" or croak "$self->{path}: $!";
    close $fh;
}


# Returns the number to give to end().

sub begin {
    my ($self, $what, @pids) = @_;

    my $number = $self->{next}++;
    $self->write($what, $number, sprintf('%.6f', now()),
                 join(',', @pids) || '-');

    return $number;
}


sub end {
    my ($self, $number) = @_;

    $self->write('end', $number, sprintf '%.6f', now());
}


# ---- the clients' side ----

sub read {
    my ($self) = @_;

    if (!$self->{in}) {
        open my $in, '<', $self->{path} or return;
        @$self{qw(in rest)} = ($in, '');
    }

    while (sysread $self->{in}, $self->{rest}, 65536, length $self->{rest}) {
        while ($self->{rest} =~ s/^(.*)\n//) {
            $self->_line(split ' ', $1);
        }
    }
}


sub _line {
    my ($self, $what, @words) = @_;

    if ($what eq 'image') {
        push @{ $self->{images} }, $words[0];

    } elsif ($what eq 'horizon') {
        $self->{horizon} = $words[0] if $words[0] > $self->{horizon};

    } elsif ($what eq 'clock') {
        $self->{clock} = $words[0];
        $self->{lowest} = $words[0] if $words[0] < $self->{lowest};

    } elsif ($what eq 'lives') {
        my ($zone, $time, $life, $slice) = @words;
        push @{ $self->{lives}{$zone} },
            { begin => $time, life => $life, slice => $slice };

    } elsif ($what eq 'lived') {
        my ($zone, $time, $life, $slice) = @words;
        my ($ended) = grep { !defined $_->{end} && $_->{life} == $life
                             && $_->{slice} == $slice }
                           @{ $self->{lives}{$zone} };
        $ended->{end} = $time;

    } elsif ($what eq 'end') {
        my ($number, $time) = @words;
        exists $self->{$_}{$number} and $self->{$_}{$number}{end} = $time
            for @kinds;

    } else {
        my ($number, $time, $pids) = @words;
        $self->{$what}{$number}
            = { begin => $time, all => $pids eq '*',
                pids => { map { $_ => 1 } split /,/, $pids } };
    }
}


# Returns whether an event of this kind lay between two times.  With a pid,
# returns whether it hit that process at any time, or all processes then.

sub _between {
    my ($self, $what, $from, $to, $pid) = @_;

    for my $entry (values %{ $self->{$what} }) {
        return 1 if defined $pid && $entry->{pids}{$pid};
        next if defined $pid && !$entry->{all};
        return 1 if $entry->{begin} <= $to
                    && (!defined $entry->{end} || $entry->{end} >= $from);
    }

    return 0;
}


# Returns the lowest value of nginx's clock since the last call, or 0 if the
# clock was never behind.

sub lowest_clock {
    my ($self) = @_;

    $self->read;
    my $lowest = $self->{lowest};
    $self->{lowest} = $self->{clock} < 0 ? $self->{clock} : 0;

    return $lowest;
}


# Judges a request that got no complete answer.  Returns
#
#   cut      if a kill has cut its connection, so that its result is unknown
#   again    if an exiting worker has closed an idle connection, as HTTP allows;
#            the request has to succeed on another connection
#   failed   if nginx is to blame
#
# $worker is the pid that served the connection before, or undef; $bytes is
# whether any of the answer came.

sub verdict {
    my ($self, $from, $to, $worker, $bytes) = @_;

    $self->read;

    return 'cut' if $self->_between('kill', $from, $to, $worker);
    return 'again' if !$bytes
                      && $self->_between('quit', $from, $to, $worker);
    return 'failed';
}


# Each returns whether it was so at some time between these: the disk could
# refuse additions and removals; there was no room for a removed key; removals
# were in doubt; a zone was cleared; processes were being killed.

sub full { return $_[0]->_during('full', @_[1, 2]) }
sub crowded { return $_[0]->_during('crowded', @_[1, 2]) }
sub cleared { return $_[0]->_during('cleared', @_[1, 2]) }
sub killed { return $_[0]->_during('kill', @_[1, 2]) }


sub doubt {
    my ($self, $zone, $from, $to) = @_;

    return $self->_during('doubt', $from, $to)
           || $zone eq 'shield' && $self->_during('ahead', $from, $to);
}


sub _during {
    my ($self, $what, $from, $to) = @_;

    $self->read;

    return $self->_between($what, $from, $to);
}


# Returns the least life that a key had between two times, and the greatest life
# and slice together.

sub lives {
    my ($self, $zone, $from, $to) = @_;

    $self->read;

    my @lives = grep { $_->{begin} <= $to
                       && (!defined $_->{end} || $_->{end} >= $from) }
                     @{ $self->{lives}{$zone} };

    return (min(map { $_->{life} } @lives),
            max(map { $_->{life} + $_->{slice} } @lives));
}


# Returns the life of a key that was added last, and the length of a slice.

sub life {
    my ($self, $zone) = @_;

    return @{ $self->{lives}{$zone}[-1] }{qw(life slice)};
}


# Returns whether a zone had more keys than it has room for at some time between
# these.

sub flooded {
    my ($self, $zone, $from, $to) = @_;

    $self->read;

    return grep { $_->{pids}{$zone} && $_->{begin} <= $to
                  && ($_->{end} // $to) >= $from }
                values %{ $self->{flood} };
}


# Returns whether a zone without a journal may have lost its keys between two
# times.

sub emptied {
    my ($self, $from, $to) = @_;

    return $self->_during('anew', $from, $to)
           || grep { $_->{all} && $_->{begin} <= $to
                     && ($_->{end} // $to) >= $from }
                   values %{ $self->{kill} };
}


# Returns for how many seconds between two times something happened that may
# keep the helper from its work; 0 if nothing did.  A kill of workers does not.

sub faults {
    my ($self, $from, $to) = @_;

    my $sum = 0;

    $self->read;

    for my $what (qw(kill quit full doubt)) {
        for (values %{ $self->{$what} }) {
            my $end = $_->{end} // $to;

            next if $_->{begin} > $to || $end < $from
                    || $what eq 'kill' && !$_->{all} && !$_->{pids}{0};

            $sum += min($end, $to) - max($_->{begin}, $from) + 0.001;
        }
    }

    return $sum;
}


1;
