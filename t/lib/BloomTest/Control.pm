# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Control;

# Reads and changes the control page of a state directory, as docs/state.md
# describes it for x86-64.  Stop nginx before you change a page.
#
#   control($path)                      returns all fields, as a hash:
#                                       {synced => 4096, ...}
#   set_control($path, lost => 0)       changes some fields
#   write_control_v1($path, lost_keys => 3, keys => ['one', 'two'])
#                                       writes a page of version 1
#
# set_control() always writes `synced` with its complement.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

use BloomTest::ControlPage;

our @EXPORT = qw(control set_control write_control_v1);

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


sub write_control_v1 {
    my ($path, %field) = @_;

    my %name = (keys => 'pending', lost_keys => 'pending_lost',
                pending_keys => 'pending_count');
    my $page = control_page_v1(map { ($name{$_} // $_ => $field{$_}) }
                                   keys %field);

    # a new file, because the earlier page has another size

    unlink $path;
    open my $fh, '>:raw', $path or croak "cannot make $path: $!";
    print $fh $page;
    close $fh or croak "cannot write $path: $!";
    chmod 0600, $path;
}


1;
