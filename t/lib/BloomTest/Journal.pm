package BloomTest::Journal;

# Segments of a journal, made from docs/journal-format.md alone and on purpose
# without any of the project's other code.
#
#   my $journal = BloomTest::Journal->new(base => 0, sequence => 1);
#   $journal->append(['one', 'two'], time => 1700000000123);
#   $journal->segment           the bytes of the file, `size` of them
#
# Fields that are not given to new() have the values below; what is given to
# append() overrules what the record would have, right or wrong.

use strict;
use warnings;

use BloomTest::Image qw(crc32c);

use constant {
    HEADER => 128,
    RECORD => 32,
};

sub new {
    my ($class, %field) = @_;

    my $self = bless {
        version => 1, order => 0x01020304, size => 262144, base => 0,
        sequence => 1, created => 1700000000000,
        salt => pack('H*', '00112233445566778899aabbccddeeff'),
        reserved => '', records => [], %field,
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


# A key's length, seven bits in a byte, the lowest first

sub leb128 {
    my ($n) = @_;
    my $bytes = '';

    for ( ; $n > 127; $n >>= 7) {
        $bytes .= chr($n & 127 | 128);
    }

    return $bytes . chr $n;
}


# Returns where in the segment the record begins.

sub append {
    my ($self, $keys, %field) = @_;

    my $at = $self->{used};
    my $body = join '', map { leb128(length $_) . $_ } @$keys;

    $body .= "\0" x (-length($body) % 8);

    my %record = (
        position => $self->{base} + $at, size => RECORD + length $body,
        sequence => $self->{next}, time => $self->{created} + $self->{next},
        count => scalar @$keys, body => $body, %field,
    );

    my $size = pack('L<', $record{size});
    my $rest = pack('Q< Q< L< L<', @record{qw(sequence time count)},
                    crc32c($record{body}));
    my $checksum = crc32c($self->{salt} . pack('Q<', $record{position})
                                . $size . $rest);

    $self->{data} .= $size . pack('L<', $checksum) . $rest . $record{body};
    $self->{used} = length $self->{data};
    $self->{next} = $record{sequence} + 1;

    return $at;
}


sub segment {
    my ($self) = @_;

    return $self->{data} . "\0" x ($self->{size} - $self->{used});
}


1;
