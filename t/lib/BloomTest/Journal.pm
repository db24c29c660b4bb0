# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Journal;

# Makes segments of a journal, from docs/journal-format.md alone and on purpose
# without any of the project's other code.
#
#   my $journal = BloomTest::Journal->new(base => 0, sequence => 1);
#   $journal->append(['one', 'two'], time => 1700000000123);
#   $journal->append(['two'], type => REMOVE);
#   $journal->append_changes('ids', '1-5', '2', ['gone'], ['one'])
#   $journal->append_clear      before any other record
#   $journal->segment           returns the bytes of the file, `size` of them
#   $journal->next_segment      returns an empty segment that follows it
#
# Fields that are not given to new() have the values below.  Fields that are
# given to append() replace those of the record, right or wrong.  A segment gets
# version 2 with its first record that needs it, unless its version was given.

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(make_path remove_tree);
use JSON::PP ();
use Test::More ();

use BloomTest::Image qw(crc32c);

our @EXPORT = qw(begin_state write_segments read_journal records_of
                 change_types ADD REMOVE RESTORE CLEAR CHANGES);

use constant {
    HEADER => 128,
    RECORD => 32,

    # the types of records
    ADD => 0,
    REMOVE => 1,
    RESTORE => 2,
    CLEAR => 3,
    CHANGES => 5,
};

sub new {
    my ($class, %field) = @_;

    my $self = bless {
        version => 1, order => 0x01020304, size => 262144, base => 0,
        sequence => 1, created => 1700000000000,
        salt => pack('H*', '00112233445566778899aabbccddeeff'),
        reserved => '', records => [], given => $field{version}, %field,
    }, $class;

    $self->{used} = HEADER;
    $self->{next} = $self->{sequence};
    $self->{data} = $self->header;

    return $self;
}


sub header {
    my ($self) = @_;

    my $header = pack('a8 L< L< Q< Q< Q< Q< a16 a60', "\x89BLMJNL\n",
                      @$self{qw(version order size base sequence created salt
                                reserved)});

    return $header . pack('L<', crc32c($header));
}


# Encodes the length of a key: seven bits in each byte, the lowest first.

sub leb128 {
    my ($n) = @_;
    my $bytes = '';

    for ( ; $n > 127; $n >>= 7) {
        $bytes .= chr($n & 127 | 128);
    }

    return $bytes . chr $n;
}


# Returns where in the segment the record begins.  `head` is what the body has
# before the keys.

sub append {
    my ($self, $keys, %field) = @_;

    my $at = $self->{used};
    my $body = join '', $field{head} // '',
                    map { leb128(length $_) . $_ } @$keys;

    $body .= "\0" x (-length($body) % 8);

    my %record = (
        position => $self->{base} + $at, size => RECORD + length $body,
        sequence => $self->{next}, time => $self->{created} + $self->{next},
        count => scalar @$keys, type => ADD, body => $body, %field,
    );

    if ($record{type} != ADD && !$self->{given}) {
        $self->{version} = 2;
        substr($self->{data}, 0, HEADER) = $self->header;
    }

    my $size = pack('L<', $record{size});
    my $rest = pack('Q< Q< L< L<', @record{qw(sequence time)},
                    $record{count} | $record{type} << 24,
                    crc32c($record{body}));
    my $checksum = crc32c($self->{salt} . pack('Q<', $record{position})
                                . $size . $rest);

    $self->{data} .= $size . pack('L<', $checksum) . $rest . $record{body};
    $self->{used} = length $self->{data};
    $self->{next} = $record{sequence} + 1;

    return $at;
}


# The keys were removed and added by a source, whose position was "HIGH-LOW", or
# "HIGH", before and after that.  The digest of the changes and the position since
# which it counts may be given; and the number of removals, to be wrong.

sub append_changes {
    my ($self, $source, $before, $after, $removed, $added, %field) = @_;

    my @positions = map { my ($high, $low) = split /-/; ($high, $low // 0) }
                        $before, $after, $field{since} // $before;

    return $self->append(
        [@$removed, @$added], type => CHANGES, %field,
        head => pack('Q<4 Q< Q<2 L< C/a*', @positions[0 .. 3],
                     $field{digest} // 0, @positions[4, 5],
                     ($field{removals} // scalar @$removed)
                     | ($field{part} // 0) << 24, $source));
}


sub append_clear {
    my ($self, %field) = @_;

    return $self->append([], type => CLEAR, body => "\0" x 8, %field,
                         size => RECORD + 8);
}


# All keys removed so far are restored, or those that were excepted: `kinds`.

sub append_restoration {
    my ($self, %field) = @_;

    return $self->append([], type => RESTORE, %field, size => RECORD + 8,
                         body => pack('Cx7', $field{kinds} // 2));
}


sub segment {
    my ($self) = @_;

    return $self->{data} . "\0" x ($self->{size} - $self->{used});
}


sub next_segment {
    my ($self, %field) = @_;

    return BloomTest::Journal->new(
        base => $self->{base} + $self->{size}, sequence => $self->{next},
        %field);
}


# Creates a state directory that has only these segments of a zone.

sub begin_state {
    my ($t, $zone, @segments) = @_;

    my $state = $t->testdir . '/state';

    remove_tree($state);
    make_path("$state/$zone", { mode => 0700 });
    chmod 0700, $state;

    write_segments($t, $zone, @segments);
}


# Writes segments into a zone's directory.  They are journals, or the bytes of
# the first segment.

sub write_segments {
    my ($t, $zone, @segments) = @_;

    for (@segments) {
        my ($base, $bytes) = ref ? ($_->{base}, $_->segment) : (0, $_);

        $t->write_file(sprintf("state/$zone/journal.%016x", $base), $bytes);
    }
}


# Returns the records of a zone's journal in order, without those that a torn tail
# or a later writer made void: a list of { type, time, keys }.  A record of changes
# also has { source, before, after, digest, since, removed, added }.

sub records_of {
    my ($t, $zone) = @_;

    my ($sequence, @records) = (0);

    for my $path (sort glob $t->testdir . "/state/$zone/journal.*") {
        open my $fh, '<:raw', $path or die "$path: $!";
        my $data = do { local $/; <$fh> };
        my $base = unpack 'x24 Q<', $data;
        my $salt = substr $data, 48, 16;

        for (my $at = HEADER; $at + RECORD <= length $data; ) {
            my ($size, $check, $number, $time, $count, $sum)
                = unpack "x$at L< L< Q< Q< L< L<", $data;

            last if $size < RECORD || $at + $size > length $data
                    || $number <= $sequence
                    || $sum != crc32c(substr $data, $at + RECORD,
                                      $size - RECORD)
                    || $check != crc32c(
                           $salt . pack('Q<', $base + $at)
                           . substr($data, $at, 4) . substr $data, $at + 8,
                                                            RECORD - 8);

            my ($p, %changes) = ($at + RECORD);

            if ($count >> 24 == CHANGES) {
                my ($h1, $l1, $h2, $l2, $digest, $h3, $l3, $removals, $name)
                    = unpack "x$p Q<7 L< C/a*", $data;

                %changes = (source => $name, removals => $removals,
                            before => "$h1-$l1", after => "$h2-$l2",
                            digest => sprintf('%016x', $digest),
                            since => "$h3-$l3");
                $p += 61 + length $name;
            }

            my @keys = map {
                my ($length, $shift, $byte) = (0, 0);

                do {
                    $byte = ord substr $data, $p++, 1;
                    $length |= ($byte & 127) << $shift;
                    $shift += 7;
                } while ($byte & 128);

                $p += $length;
                substr $data, $p - $length, $length;
            } 1 .. ($count & 0xffffff);

            if (%changes) {
                my $removals = delete $changes{removals};

                $changes{removed} = [@keys[0 .. $removals - 1]];
                $changes{added} = [@keys[$removals .. $#keys]];
            }

            push @records, { type => $count >> 24, time => $time,
                             keys => \@keys, %changes };
            $sequence = $number;
            $at += $size;
        }
    }

    return @records;
}


# Changes the type of each record in a segment's file that has the type $from.

sub change_types {
    my ($path, $from, $to) = @_;

    open my $fh, '+<:raw', $path or die "$path: $!";
    my $data = do { local $/; <$fh> };
    my ($base) = unpack 'x24 Q<', $data;
    my $salt = substr $data, 48, 16;

    for (my $at = HEADER; $at + RECORD <= length $data; ) {
        my $length = unpack 'L<', substr $data, $at, 4;
        last if $length < RECORD;

        if (ord(substr $data, $at + 27, 1) == $from) {
            substr($data, $at + 27, 1) = chr $to;
            substr($data, $at + 4, 4) = pack 'L<', crc32c(
                $salt . pack('Q<', $base + $at) . substr($data, $at, 4)
                . substr $data, $at + 8, RECORD - 8);
        }

        $at += $length;
    }

    seek $fh, 0, 0;
    print $fh $data;
    close $fh or die "$path: $!";
}


# Runs `ngx-bloom journal` on a directory or on segments.  Returns its exit
# status and an object for each segment.

sub read_journal {
    my ($t, @paths) = @_;

    my ($exit, $out, $err) = $t->run_tool('journal', '--json', @paths);
    Test::More::diag($err) if $exit != 0;

    return ($exit, JSON::PP->new->incr_parse($out));
}


1;
