#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# write_base.pl [--list] VECTOR [VECTOR]
#
# Writes a file "base" with the entries that one or two golden vectors
# (README.md) describe to standard output; "-" in place of a vector stands for
# an entry of zeros. With --list, it prints the bytes of one entry in
# hexadecimal instead, as a vector contains them.
#
# It was made from docs/state.md alone and on purpose without any of the
# project's other code, so an error would have to be made twice to stay unseen.

use strict;
use warnings;

die "this perl has no 64-bit integers\n" if ~0 != 18446744073709551615;

use constant ENTRY => 4096;

my %kind = (empty => 0, file => 1, upload => 2, checkpoint => 3);

# what must be in a vector, and what zeros stand for otherwise

my @needed = qw(number journal kind floor from);
my $no_image = '00' x 16;


# CRC-32C, bit by bit

sub base_crc32c {
    my $crc = 0xffffffff;

    for my $byte (unpack('C*', $_[0])) {
        $crc ^= $byte;
        $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}


# A position in a source, "HIGH-LOW" or "HIGH"

sub source_position {
    my ($high, $low) = split /-/, $_[0];

    return pack('Q< Q<', $high, $low // 0);
}

# A point: "POSITION SEQUENCE TIME KEYS BYTES", and the place in the source,
# "SOURCE REACHED GAP LOST DIGEST SINCE DUE"

sub point {
    my ($point, $place) = @_;
    my @place = split ' ', $place // '0 0 0 0 0 0 0';

    return pack('(Q<)5', split ' ', $point // '0 0 0 0 0')
           . pack('Q<', $place[0])
           . source_position($place[1]) . source_position($place[2])
           . pack('Q<', $place[3]) . pack('Q<', $place[4])
           . source_position($place[5]) . source_position($place[6]);
}

# An accepted image: "BUILD-ID KEYS AS-OF LOADED POSITION"

sub accepted {
    my ($id, $keys, $as_of, $loaded, $position)
        = split ' ', $_[0] // "$no_image 0 0 0 0";

    return pack('H32 (Q<)3', $id, $keys, $as_of, $loaded)
           . source_position($position);
}

sub entry_of {
    my ($v) = @_;

    my $entry = "\x89BLMBAS\n"
        . pack('L< L< L< L< Q<', 1, 0x01020304, ENTRY, $kind{ $v->{kind} },
               $v->{number})
        . pack('H32 H32 H32', $v->{journal}, $v->{build_id} // $no_image,
               $v->{replaced} // $no_image)
        . pack('Q< Q< Q< Q<', $v->{dropped} // 0, $v->{floor}, $v->{lost} // 0,
               $v->{lost_keys} // 0)
        . point($v->{from}, $v->{from_place})
        . point($v->{older}, $v->{older_place})
        . point($v->{newer}, $v->{newer_place})
        . accepted($v->{accepted})
        . accepted($v->{accepted_before})
        . pack('L< L<', map { hex($v->{$_} // 0) }
                            qw(older_checksum newer_checksum));

    $entry .= "\0" x (ENTRY - 4 - length $entry);

    return $entry . pack('L<', base_crc32c($entry));
}

# Returns a file with the entries of these vectors; undef is an entry of zeros.

sub base_of {
    return join '', map { defined $_ ? entry_of($_) : "\0" x ENTRY }
                        @_[0, 1];
}

sub base_listing {
    my ($entry) = @_;
    my $listing = "entry\n";

    for (my $at = 0; $at < length $entry; $at += 16) {
        my $row = substr($entry, $at, 16);

        $listing .= sprintf("%08x: %s\n", $at, join ' ', unpack('(H4)*', $row))
            if $row =~ /[^\0]/;
    }

    return $listing;
}

# Reads the part of a vector above its bytes.

sub read_base_vector {
    my ($file) = @_;
    my %v;

    open(my $in, '<:raw', $file) or die "$file: $!\n";

    while (<$in>) {
        chomp;
        next if /^#|^\s*$/;
        last if $_ eq 'entry';

        my ($name, $value) = /^(\S+)\s+(.*)$/
            or die "$file line $.: a name and a value were expected\n";

        $name =~ tr/-/_/;
        $v{$name} = $value;
    }

    for (@needed) {
        die "$file: \"$_\" is missing\n" if !defined $v{$_};
    }

    die "$file: there is no kind \"$v{kind}\"\n" if !defined $kind{ $v{kind} };

    return \%v;
}


# As a program; t/tool/golden-base.t uses the functions alone.

if (!caller) {
    my $list = @ARGV && $ARGV[0] eq '--list' && shift @ARGV;

    die "usage: write_base.pl [--list] VECTOR [VECTOR]\n"
        if @ARGV < 1 || @ARGV > 2 || ($list && @ARGV != 1);

    binmode(STDOUT);
    my @v = map { $_ eq '-' ? undef : read_base_vector($_) } @ARGV;
    print $list ? base_listing(entry_of($v[0])) : base_of(@v);
    close(STDOUT) or die "standard output: $!\n";
}

1;
