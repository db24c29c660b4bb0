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
# given to append() replace those of the record, right or wrong.  A record says
# that all records before it were on disk, or those up to `durable` of new().
# It has counted the removed keys of the segments before, too: `removals` and
# `removed_bytes`.

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(make_path remove_tree);
use JSON::PP ();
use List::Util qw(max min);
use Test::More ();

use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Image qw(crc32c);

our @EXPORT = qw(begin_state write_state write_segments read_journal
                 records_of change_types ADD REMOVE RESTORE CLEAR CHANGES);

use constant {
    HEADER => 128,
    RECORD => 56,

    # the types of records
    ADD => 0,
    REMOVE => 1,
    RESTORE => 2,
    CLEAR => 3,
    CHANGES => 4,
};

sub new {
    my ($class, %field) = @_;

    my $self = bless {
        version => 3, order => 0x01020304, size => 262144, base => 0,
        sequence => 1, created => 1700000000000,
        salt => pack('H*', '00112233445566778899aabbccddeeff'),
        journal => pack('H*', 'c0c1c2c3c4c5c6c7c8c9cacbcccdcecf'), entry => 0,
        reserved => '', removals => 0, removed_bytes => 0, %field,
    }, $class;

    $self->{begun} = [@$self{qw(removals removed_bytes)}];
    $self->{used} = HEADER;
    $self->{next} = $self->{sequence};
    $self->{data} = $self->header;

    return $self;
}


sub header {
    my ($self) = @_;

    my $header = pack('a8 L< L< Q< Q< Q< Q< a16 a16 Q< a36', "\x89BLMJNL\n",
                      @$self{qw(version order size base sequence created salt
                                journal entry reserved)});

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
# before the keys, and `gone` are the keys that it removes.

sub append {
    my ($self, $keys, %field) = @_;

    my $at = $self->{used};
    my $type = $field{type} // ADD;
    my $gone = $field{gone} // ($type == REMOVE ? $keys : []);
    my $body = join '', $field{head} // '',
                    map { leb128(length $_) . $_ } @$keys;

    $body .= "\0" x (-length($body) % 8);

    my $sequence = $field{sequence} // $self->{next};
    my %record = (
        position => $self->{base} + $at, size => RECORD + length $body,
        sequence => $sequence, time => $self->{created} + $self->{next},
        count => scalar @$keys, type => $type, body => $body,
        durable => min($sequence - 1, $self->{durable} // $sequence),
        removals => $self->{removals} + @$gone,
        removed_bytes => $self->{removed_bytes} + length join('', @$gone),
        %field,
    );

    my $size = pack('L<', $record{size});
    my $rest = pack('Q< Q< L< L< Q< Q< Q<', @record{qw(sequence time)},
                    $record{count} | $record{type} << 24,
                    crc32c($record{body}),
                    @record{qw(durable removals removed_bytes)});
    my $checksum = crc32c($self->{salt} . pack('Q<', $record{position})
                                . $size . $rest);

    $self->{data} .= $size . pack('L<', $checksum) . $rest . $record{body};
    $self->{used} = length $self->{data};
    $self->{next} = $record{sequence} + 1;
    @$self{qw(removals removed_bytes)} = @record{qw(removals removed_bytes)};

    return $at;
}


# The keys were removed and added by a source, whose position was "HIGH-LOW", or
# "HIGH", before and after that.  The digest of the changes and the position
# since which it counts may be given; and the number of the record's keys that
# were removed, `first`, to be wrong.

sub append_changes {
    my ($self, $source, $before, $after, $removed, $added, %field) = @_;

    my @positions = map { my ($high, $low) = split /-/; ($high, $low // 0) }
                        $before, $after, $field{since} // $before;

    return $self->append(
        [@$removed, @$added], type => CHANGES, gone => $removed, %field,
        head => pack('Q<4 Q< Q<2 L< C/a*', @positions[0 .. 3],
                     $field{digest} // 0, @positions[4, 5],
                     ($field{first} // scalar @$removed)
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
        map({ $_ => $self->{$_} }
            qw(journal entry durable removals removed_bytes)),
        %field);
}


# Creates a state directory that has only these segments of a zone, and the
# files "base" and "control" that belong to them; without segments, it is new.

sub begin_state {
    my ($t, $zone, @segments) = @_;

    my $state = $t->testdir . '/state';

    remove_tree($state);
    make_path("$state/$zone", { mode => 0700 });
    chmod 0700, $state;

    write_state($t, $zone, @segments) if @segments;
}


# Writes segments into a zone's directory, and new files "base" and "control":
# the zone stands on an empty filter, and its journal begins with the first
# segment.  Nothing is known to be on disk but what the records say.

sub write_state {
    my ($t, $zone, @segments) = @_;

    my $state = $t->testdir . "/state/$zone";
    my $first = ref $segments[0] ? $segments[0] : BloomTest::Journal->new;
    my $id = $first->{journal};

    write_segments($t, $zone, @segments);
    write_base("$state/base", journal => $id,
               number => 1 + max(map { ref ? $_->{entry} : 0 } @segments),
               from => { position => $first->{base},
                         sequence => $first->{sequence},
                         removals => $first->{begun}[0],
                         removed_bytes => $first->{begun}[1] });
    new_control("$state/control", journal => $id);
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


# Returns the header of the record at a place of a segment: its size, sequence,
# time, count with type, durable, removals and removed bytes.  Returns nothing
# if there is no valid one.

sub header_of {
    my ($data, $at) = @_;

    return if $at + RECORD > length $data;

    my ($size, $check, $number, $time, $count, $sum, @more)
        = unpack "x$at L< L< Q< Q< L< L< Q<3", $data;

    return if $size < RECORD || $at + $size > length $data
              || $sum != crc32c(substr $data, $at + RECORD, $size - RECORD)
              || $check != crc32c(
                     substr($data, 48, 16)
                     . pack('Q<', $at + unpack 'x24 Q<', $data)
                     . substr($data, $at, 4) . substr $data, $at + 8,
                                                      RECORD - 8);

    return ($size, $number, $time, $count, @more);
}


# Returns the records of a zone's journal in order, without a torn tail: a list
# of { type, sequence, time, durable, removals, removed_bytes, keys }.  A record
# of changes also has { source, before, after, digest, since, removed, added }.

sub records_of {
    my ($t, $zone) = @_;

    my ($sequence, @records) = (0);

    my @segments = map {
        open my $fh, '<:raw', $_ or die "$_: $!";
        local $/;
        <$fh>;
    } sort glob $t->testdir . "/state/$zone/journal.*";

    while (@segments) {
        my $data = shift @segments;

        # a record that the next segment begins with does not count here

        my (undef, $end) = @segments ? header_of($segments[0], HEADER) : ();

        for (my $at = HEADER; ; ) {
            my ($size, $number, $time, $count, $durable, $removals, $bytes)
                = header_of($data, $at) or last;

            last if $number <= $sequence || (defined $end && $number >= $end);

            my ($p, %changes) = ($at + RECORD);

            if ($count >> 24 == CHANGES) {
                my ($h1, $l1, $h2, $l2, $digest, $h3, $l3, $first, $name)
                    = unpack "x$p Q<7 L< C/a*", $data;

                %changes = (source => $name, first => $first & 0xffffff,
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
                my $first = delete $changes{first};

                $changes{removed} = [@keys[0 .. $first - 1]];
                $changes{added} = [@keys[$first .. $#keys]];
            }

            push @records, { type => $count >> 24, sequence => $number,
                             time => $time, durable => $durable,
                             removals => $removals, removed_bytes => $bytes,
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
