# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Promises;

# A ledger of what a zone was told and has promised.  After a failure the zone
# may answer as after any prefix of its changes that has all durable ones.
#
#   my $ledger = BloomTest::Promises->new(file => ['id1'], keys => ['other']);
#   my $change = $ledger->begin(add => ['a', 'b']);
#   $change->{done} = $moment;               it was acknowledged
#   $ledger->durable($moment);               all that was acknowledged is
#   my @outcomes = $ledger->outcomes($moment);
#   $ledger->settle($outcome);               this is what is left
#
# `file` is what the image of file= has, `keys` are keys that are asked although
# nobody adds them, and `position` is that of a source.  Changes:
#
#   add, remove     keys
#   restore         all removed keys
#   clear           everything but file=
#   changes         [POSITION, '+KEY', '-KEY' ...] of the source
#   file, upload    the keys of an image, which replaces the one before
#
# Images are files of their own.  So all changes of images are a second order,
# and any prefix of it may come with any prefix of the others.
#
# Moments are numbers that grow.  A change was told at the moment `told`,
# acknowledged at `done`, and durable from `durable` on.  An outcome has the
# answers about all keys, as a string of 0 and 1, and the position of a source.

use strict;
use warnings;

my %is_image = (file => 1, upload => 1);


sub new {
    my ($class, %option) = @_;

    return bless { file => [], keys => [], changes => [], %option }, $class;
}


sub begin {
    my ($self, $what, $value, $told) = @_;

    push @{ $self->{changes} }, { what => $what, value => $value,
                                  told => $told };

    return $self->{changes}[-1];
}


# All changes that were acknowledged are durable at this moment.

sub durable {
    my ($self, $moment) = @_;

    for (@{ $self->{changes} }) {
        $_->{durable} //= $moment if defined $_->{done};
    }
}


# Replaces the numbers of moments by what a function returns for them.

sub moments {
    my ($self, $moment) = @_;

    for my $change (grep { !$_->{settled} } @{ $self->{changes} }) {
        for (grep { defined } @$change{qw(told done durable)}) {
            $_ = $moment->($_);
        }
    }
}


# Returns the keys that the answers are about.

sub keys {
    my ($self) = @_;

    my %seen;

    return grep { !$seen{$_}++ } @{ $self->{file} }, @{ $self->{keys} },
        map {
            my $value = $_->{value};
            $_->{what} eq 'changes' ? map { substr $_, 1 }
                                          @$value[1 .. $#$value]
                                    : ref $value ? @$value : ();
        } @{ $self->{changes} };
}


# Returns what the zone may answer if everything stopped at a moment.

sub outcomes {
    my ($self, $moment) = @_;

    my @all = grep { $_->{told} <= $moment } @{ $self->{changes} };
    my @ranges = map {
        my @some = @$_;
        my ($least) = grep {
            ($some[$_ - 1]{durable} // $moment + 1) <= $moment
        } reverse 1 .. @some;

        [map { [@some[0 .. $_ - 1]] } ($least // 0) .. @some];
    } [grep { !$is_image{$_->{what}} } @all],
      [grep { $is_image{$_->{what}} } @all];

    my (@outcomes, %seen);

    for my $changes (reverse @{ $ranges[0] }) {
        for my $images (reverse @{ $ranges[1] }) {
            my %has = map { $_ => 1 } @$changes, @$images;
            my $outcome = $self->_outcome(grep { $has{$_} } @all);

            push @outcomes, $outcome
                if !$seen{"$outcome->{answers} $outcome->{position}"}++;
        }
    }

    return @outcomes;
}


# Returns the outcome of these changes.

sub _outcome {
    my ($self, @changes) = @_;

    my (%file, %upload, %changed, %added, $uploaded);
    my $position = $self->{position} // '';

    $file{$_} = 1 for @{ $self->{file} };

    for (@changes) {
        my ($what, $value) = @$_{qw(what value)};

        if ($what eq 'changes') {
            ($position, my @some) = @$value;
            $changed{substr $_, 1} = /^\+/ ? 1 : 0 for @some;

        } elsif ($what eq 'file') {
            %file = map { $_ => 1 } @$value;
            $uploaded = 0;

        } elsif ($what eq 'upload') {
            %upload = map { $_ => 1 } @$value;
            $uploaded = 1;

        } elsif ($what eq 'clear') {
            %changed = %added = ();
            $uploaded = 0;

        } elsif ($what eq 'restore') {
            %changed = %added;

        } elsif ($what eq 'remove') {
            $changed{$_} = 0 for @$value;

        } else {
            $changed{$_} = $added{$_} = 1 for @$value;
        }
    }

    my $image = $uploaded ? \%upload : \%file;
    my $answers = join '', map {
        ($changed{$_} // $image->{$_}) ? 1 : 0;
    } $self->keys;

    return { answers => $answers, position => $position,
             changes => \@changes };
}


# An outcome is what the disk has: the other changes never happened, but their
# keys are still asked.  Without an outcome, the disk has everything.

sub settle {
    my ($self, $outcome) = @_;

    $outcome //= $self;

    $self->{keys} = [$self->keys];
    $self->{changes} = [map { { %$_, settled => 1, told => 0, done => 0,
                              durable => 0 } }
                            @{ $outcome->{changes} }];
}


1;
