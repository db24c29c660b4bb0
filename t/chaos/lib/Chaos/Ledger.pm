# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Ledger;

# What the driver does to nginx, written down before it does it: a file of
# lines that the driver appends to and the clients read.  It decides which
# failures of a request are excused.  Times are those of one clock for all
# processes, so nothing depends on who is faster.
#
#   kill N TIME PIDS      these processes (* is all) will be killed
#   quit N TIME PIDS      these will be asked to end
#   full N TIME           the disk will refuse
#   end N TIME            of the above: from now on all is well
#   image N               an image with the keys of number N may serve from now
#   horizon TIME          keys acknowledged before TIME may be dropped from now
#   clock SECONDS         the clock of nginx is so much ahead of the true one
#                         from now on

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Process qw(now);


sub new {
    my ($class, $path) = @_;

    return bless { path => $path, begun => [], images => [], horizon => 0,
                   kill => {}, quit => {}, full => {}, next => 1,
                   clock => 0, lowest => 0 }, $class;
}


# ---- the driver's side ----

sub write {
    my ($self, @words) = @_;

    open my $fh, '>>', $self->{path} or croak "$self->{path}: $!";
    syswrite $fh, "@words\n" or croak "$self->{path}: $!";
    close $fh;
}


# Returns the number that end() takes.

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

    } elsif ($what eq 'end') {
        my ($number, $time) = @words;
        exists $self->{$_}{$number} and $self->{$_}{$number}{end} = $time
            for qw(kill quit full);

    } else {
        my ($number, $time, $pids) = @words;
        $self->{$what}{$number}
            = { begin => $time, all => $pids eq '*',
                pids => { map { $_ => 1 } split /,/, $pids } };
    }
}


# Whether anything of that kind lay between two times; with a pid, whether it
# was that process at any time, or all then.

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


# The lowest that the clock of nginx has been since this was asked last; 0 where
# it was ahead of the true one.

sub lowest_clock {
    my ($self) = @_;

    $self->read;
    my $lowest = $self->{lowest};
    $self->{lowest} = $self->{clock} < 0 ? $self->{clock} : 0;

    return $lowest;
}


# What becomes of a request that got no whole answer:
#
#   cut      a kill cut its connection: nothing can be said of it
#   again    a worker that ends has closed an idle connection, as HTTP lets it;
#            the request has to succeed on another one
#   failed   nobody but nginx is to blame
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


# Whether an addition could be refused then, for the disk.

sub full {
    my ($self, $from, $to) = @_;

    $self->read;

    return $self->_between('full', $from, $to);
}


1;
