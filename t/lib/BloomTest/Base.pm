# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Base;

# Makes and reads the file "base" of a state directory, from docs/state.md
# alone.
#
#   write_base($path, journal => $id, from => { position => 4096 })
#                               writes a file with one entry
#   read_base($path)            returns the entry that counts, as a hash;
#                               undef if there is none
#   set_base($path, lost => 0)  changes fields of the entry that counts, and
#                               writes it alone; nginx is stopped
#   base_problems($path)        returns what is wrong with the values of entries
#                               whose checksum is right
#
# Fields that are not given to write_base() are zeros, but number and sequence
# are 1.  Build ids are in hexadecimal.  The points `from`, `older` and `newer`
# and the images `accepted` and `accepted_before` are hashes.  Positions in a
# source are "HIGH-LOW".

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

use BloomTest::Image qw(crc32c);

our @EXPORT = qw(base_problems read_base set_base write_base);

use constant {
    ENTRY => 4096,
    HEAD => 20,                           # bytes before the kind
    MAGIC => "\x89BLMBAS\n",

    # kinds: what the zone stands on
    EMPTY => 0,
    FILE => 1,
    UPLOAD => 2,
    CHECKPOINT => 3,
};

# Fields and their formats, in their order.  A format "2" is a position in a
# source.

my @head = (kind => 'L<', number => 'Q<', journal => 'a16',
            build_id => 'H32', replaced => 'H32', dropped => 'Q<',
            floor => 'Q<', lost => 'Q<', lost_keys => 'Q<');

my @point = (position => 'Q<', sequence => 'Q<', time => 'Q<',
             removals => 'Q<', removed_bytes => 'Q<', source => 'Q<',
             reached => 2, gap => 2, gap_lost => 'Q<', digest => 'Q<',
             since => 2, due => 2);

my @image = (build_id => 'H32', keys => 'Q<', as_of => 'Q<', loaded => 'Q<',
             position => 2);

my @tail = (older_checksum => 'L<', newer_checksum => 'L<');

my @parts = (from => \@point, older => \@point, newer => \@point,
             accepted => \@image, accepted_before => \@image);


sub encode {
    my ($fields, %value) = @_;
    my ($bytes, @fields) = ('', @$fields);

    while (my ($name, $format) = splice @fields, 0, 2) {
        my $value = delete $value{$name};

        if ($format eq '2') {
            $bytes .= pack 'Q<2', split /-/, $value // '0-0';

        } else {
            $bytes .= pack $format, $value // ($format =~ /Q|L/ ? 0 : '');
        }
    }

    croak "an entry has no ", keys %value if %value;

    return $bytes;
}


# Removes the fields from the beginning of the bytes.

sub decode {
    my ($fields, $bytes) = @_;
    my (%value, @fields);

    @fields = @$fields;

    while (my ($name, $format) = splice @fields, 0, 2) {
        my @values = unpack(($format eq '2' ? 'Q<2' : $format) . ' a*',
                            $$bytes);

        $$bytes = pop @values;
        $value{$name} = join '-', @values;
    }

    return \%value;
}


sub write_base {
    my ($path, %field) = @_;

    $field{number} //= 1;
    $field{from}{sequence} //= 1;

    my ($points, @parts) = ('', @parts);
    my $tail = encode(\@tail, map { $_ => delete $field{$_} }
                                  qw(older_checksum newer_checksum));

    while (my ($name, $fields) = splice @parts, 0, 2) {
        $points .= encode($fields, %{ delete $field{$name} // {} });
    }

    my $entry = MAGIC . pack('L<3', 1, 0x01020304, ENTRY)
                . encode(\@head, %field) . $points . $tail;

    $entry .= "\0" x (ENTRY - 4 - length $entry);
    $entry .= pack 'L<', crc32c($entry);

    open my $fh, '>:raw', $path or croak "cannot create $path: $!";
    print $fh $field{number} & 1 ? "\0" x ENTRY . $entry
                                 : $entry . "\0" x ENTRY;
    close $fh or croak "cannot write $path: $!";
}


# Returns all entries whose checksum is right.

sub entries {
    my ($path) = @_;

    open my $fh, '<:raw', $path or croak "cannot read $path: $!";
    my $file = do { local $/; <$fh> };
    my @found;

    for my $entry (unpack '(a4096)2', $file) {
        next if length $entry < ENTRY
                || crc32c(substr $entry, 0, ENTRY - 4)
                   != unpack 'L<', substr $entry, ENTRY - 4;

        $entry = substr $entry, HEAD;
        my $field = decode(\@head, \$entry);

        my @parts = @parts;
        while (my ($name, $fields) = splice @parts, 0, 2) {
            $field->{$name} = decode($fields, \$entry);
        }

        %$field = (%$field, %{ decode(\@tail, \$entry) });

        push @found, $field;
    }

    return @found;
}


sub read_base {
    my ($path) = @_;

    return (sort { $b->{number} <=> $a->{number} } entries($path))[0];
}


sub base_problems {
    my ($path) = @_;

    return map {
        my $entry = $_;
        map { "entry $entry->{number} $_" } problems($entry);
    } entries($path);
}

sub problems {
    my ($entry) = @_;

    my ($from, $older, $newer, $accepted, $before)
        = @$entry{qw(from older newer accepted accepted_before)};
    my @points = grep { $_ == $from || $_->{position} } $from, $older, $newer;
    my @problems;

    push @problems, 'has a time after its floor'
        if grep { $_ > $entry->{floor} } $entry->{dropped},
                                         map { $_->{time} } @points;
    push @problems, 'has lost keys without the time of a loss'
        if $entry->{lost_keys} && !$entry->{lost};
    push @problems, 'lacks the checkpoint that it stands on'
        if $entry->{kind} == CHECKPOINT && !$older->{position};
    push @problems, 'has no newer checkpoint, but an older one'
        if $older->{position} && !$newer->{position};
    push @problems, 'has an accepted image before none'
        if $before->{loaded} && !$accepted->{loaded};

    for my $n (1 .. $#points) {
        push @problems, map { "has $_ out of order" }
                            grep { $points[$n - 1]{$_} > $points[$n]{$_} }
                            qw(position sequence removals removed_bytes);
    }

    return @problems;
}


sub set_base {
    my ($path, %field) = @_;
    my $base = read_base($path) or croak "$path has no entry";

    write_base($path, %$base, %field);
}


1;
