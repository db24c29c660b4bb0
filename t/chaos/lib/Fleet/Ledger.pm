# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Ledger;

# The ledger knows what the writer has sent: for each key, its last change and
# the ID of its entry.  The writer notes an entry, "ID +KEY -KEY ...", before it
# sends it, and sends it with this ID until Redis has it.  So a zone at a
# position has exactly the entries of the ledger up to there.

use strict;
use warnings;


sub new {
    my ($class, $path) = @_;

    open my $file, '+>>:raw', $path or die "$path: $!";
    seek $file, 0, 0;

    return bless { file => $file, rest => '', waiting => [], last => {} },
                 $class;
}


# Notes entries: [ID, CHANGE...].

sub note {
    my ($self, @entries) = @_;

    my $text = join '', map { "@$_\n" } @entries;

    (syswrite($self->{file}, $text) // 0) == length $text
        or die "the ledger cannot be written: $!\n";
}


# Reads what was noted, up to a position if one is given.

sub read_until {
    my ($self, $position) = @_;

    my $waiting = $self->{waiting};

    while (sysread $self->{file}, $self->{rest}, 1 << 20,
                   length $self->{rest})
    {
        my $end = rindex $self->{rest}, "\n";
        push @$waiting, split /\n/, substr $self->{rest}, 0, $end + 1, ''
            if $end >= 0;
    }

    while (@$waiting) {
        my ($id, @changes) = split / /, $waiting->[0];

        return if defined $position && compare($id, $position) > 0;

        $self->{last}{substr $_, 1} = [$id, substr $_, 0, 1] for @changes;
        shift @$waiting;
    }
}


sub keys_present {
    my ($self) = @_;

    return grep { $self->{last}{$_}[1] eq '+' } keys %{ $self->{last} };
}


# Compares two positions.

sub compare {
    my @a = split /-/, $_[0];
    my @b = split /-/, $_[1];

    return $a[0] <=> $b[0] || ($a[1] // 0) <=> ($b[1] // 0);
}


1;
