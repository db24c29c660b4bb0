# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Control;

# Reads and changes the control page of a state directory, as docs/state.md
# describes it for x86-64.  Stop nginx before you change a page.
#
#   control($path)                      returns all fields, as a hash:
#                                       {synced => 4096, ...}
#   set_control($path, lost => 0)       changes some fields
#
# set_control() always writes `synced` with its complement.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

our @EXPORT = qw(control set_control);

use constant {
    SIZE => 12288 + 2 * 1024 * 1024,
    KEYS => 12288,
};

my %place = (
    magic => 0, version => 8, size => 16,
    append => 24, keeper => 64, history => 104,
    which => 144, end => 152, begin => 232, compacted => 240, prepared => 248,
    synced => 256, synced_check => 264, wanted => 272, dropped => 280,
    err => 288, failed => 296, rewrite => 304, instances => 312,
    pending_begin => 8232, pending_end => 8240, pending_keys => 8248,
    lost_keys => 8256, lost => 8264,
);

# Returns the offset of a field.

sub place { return $place{$_[0]} // croak "a control page has no $_[0]" }


sub control {
    my ($path) = @_;

    open my $fh, '<:raw', $path or croak "cannot read $path: $!";
    read $fh, my $page, KEYS or croak "cannot read $path: $!";

    my %field = map {
        my $at = $place{$_};
        ($_ => unpack "x$at Q<", $page)
    } grep { !/^(?:append|keeper|history)$/ } keys %place;

    # the first field of an end is the journal's end; one of the two is valid

    my $at = $place{end} + 40 * ($field{which} & 1);
    $field{end} = unpack "x$at Q<", $page;

    return \%field;
}


sub set_control {
    my ($path, %field) = @_;

    $field{synced_check} = ~$field{synced} if exists $field{synced};

    open my $fh, '+<:raw', $path or croak "cannot change $path: $!";

    for my $name (keys %field) {
        seek $fh, place($name), 0 or croak "cannot seek in $path: $!";
        print $fh pack 'Q<', $field{$name};
    }

    close $fh or croak "cannot write $path: $!";
}


1;
