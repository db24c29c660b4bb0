# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::ControlPage;

# Makes control pages of version 1, from the description in docs/state.md of
# that time and on purpose without any of the project's other code.
#
#   control_page_v1(synced => $position, pending => ['one', 'two'])
#
# Fields that are not given have the values of a page that was never used.  A
# page of version 1 has its own size where later pages have their version:
# 266624 bytes with the locks of x86-64.

use strict;
use warnings;

use Config;
use Exporter qw(import);

our @EXPORT = qw(control_page_v1 page_version has_page_v1);

use constant {
    SIZE => 266_624,
    INSTANCES => 64,
    PENDING => 262_144,
    LOCK => 40,
};


# Returns whether locks on this machine have the size that the page assumes.

sub has_page_v1 { return $Config{archname} =~ /^x86_64/ }


sub control_page_v1 {
    my (%field) = @_;

    %field = (
        magic => 'BLOOMCTL', size => SIZE, which => 0, tail => 0, base => 0,
        limit => 0, sequence => 1, time => 0, begin => 0, compacted => 0,
        prepared => 0, synced => 0, wanted => 0, dropped => 0, err => 0,
        failed => 0, rewrite => 0, instances => 0, pending => [],
        pending_begin => 0, pending_lost => 0, %field,
    );

    my $locks = ("\0" x LOCK) x 3;
    my $end = pack 'Q<5', @field{qw(tail base limit sequence time)};
    my $keys = join '', map { pack('S<', length) . $_ } @{ $field{pending} };

    # the keys before `begin` were appended to the journal

    $keys = "\0" x $field{pending_begin} . $keys;

    return pack('a8 Q<', @field{qw(magic size)}) . $locks
           . pack('Q<', $field{which}) . $end x 2
           . pack('Q<11', @field{qw(begin compacted prepared synced)},
                  $field{synced_check} // ~$field{synced},
                  @field{qw(wanted dropped err failed rewrite instances)})
           . "\0" x (64 * INSTANCES)
           . "\0" x LOCK
           . pack('Q<4', $field{pending_begin},
                  $field{pending_end} // length $keys,
                  $field{pending_count} // scalar @{ $field{pending} },
                  $field{pending_lost})
           . $keys . "\0" x (PENDING - length $keys);
}


# Returns the version in a page; in a page of version 1 this is the page's size.

sub page_version {
    my ($path) = @_;

    open my $fh, '<:raw', $path or die "$path: $!";
    (read($fh, my $head, 16) // 0) == 16 or return;

    my ($magic, $version) = unpack 'a8 L<', $head;

    return $magic eq 'BLOOMCTL' ? $version : undef;
}


1;
