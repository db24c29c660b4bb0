# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Control;

# Makes, reads and changes the control page of a state directory, as
# docs/state.md describes it for x86-64.  Stop nginx before you change a page.
#
#   control($path)                      returns all fields, as a hash:
#                                       {synced => 4096, ...}
#   set_control($path, lost => 0)       changes some fields
#   all_applied($path)                  returns whether each instance has applied
#                                       the whole journal; nginx may run
#   new_control($path, journal => $id)  makes a page as it is kept over a start,
#                                       with these fields
#
# `synced` and `lost` are always written with their complements.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

our @EXPORT = qw(control new_control set_control);
our @EXPORT_OK = qw(all_applied);

use constant {
    SIZE => 20480,
    VERSION => 4,
    END_SIZE => 56,
    INSTANCES => 4096,
    INSTANCE_SIZE => 64,
};

# where fields of 8 bytes are, and one of 16: `journal`

my %place = (
    magic => 0, version => 8, size => 16, journal => 24,
    append => 40, keeper => 80,
    which => 120, end => 128, based => 240, prepared => 1448,
    synced => 1456, synced_check => 1464, durable => 1472, wanted => 1480,
    err => 1488, failed => 1496, rewrite => 1504, instances => 1528,
    clock => 1568, clock_time => 1592, clock_saved => 1608,
    lost_keys => 8192, lost => 8200, lost_check => 8208, owing => 8216,
);

# Returns the offset of a field.

sub place { return $place{$_[0]} // croak "a control page has no $_[0]" }


sub control {
    my ($path) = @_;

    open my $fh, '<:raw', $path or croak "cannot read $path: $!";
    read $fh, my $page, SIZE or croak "cannot read $path: $!";

    my %field = map {
        my $at = $place{$_};
        ($_ => unpack "x$at Q<", $page)
    } grep { !/^(?:append|keeper|journal)$/ } keys %place;

    $field{journal} = substr $page, $place{journal}, 16;

    # the first field of an end is the journal's end; one of the two is valid

    my $at = $place{end} + END_SIZE * ($field{which} & 1);
    $field{end} = unpack "x$at Q<", $page;

    # what each instance has applied, by its number

    $field{applied} = { map {
        my $at = INSTANCES + INSTANCE_SIZE * $_ + 8;
        $field{instances} >> $_ & 1 ? ($_ => unpack "x$at Q<", $page) : ();
    } 0 .. 63 };

    return \%field;
}


sub all_applied {
    my ($path) = @_;

    my $control = control($path);

    return !grep { $_ < $control->{end} } values %{ $control->{applied} };
}


sub set_control {
    my ($path, %field) = @_;

    for (qw(synced lost)) {
        $field{$_ . '_check'} //= ~$field{$_} if exists $field{$_};
    }

    open my $fh, '+<:raw', $path or croak "cannot change $path: $!";

    for my $name (keys %field) {
        seek $fh, place($name), 0 or croak "cannot seek in $path: $!";
        print $fh $name eq 'journal' ? $field{$name} : pack 'Q<', $field{$name};
    }

    close $fh or croak "cannot write $path: $!";
}


sub new_control {
    my ($path, %field) = @_;

    open my $fh, '>:raw', $path or croak "cannot create $path: $!";
    truncate $fh, SIZE or croak "cannot write $path: $!";
    close $fh;

    set_control($path, magic => unpack('Q<', 'BLOOMCTL'), version => VERSION,
                size => SIZE, synced => 0, lost => 0, %field);
}


1;
