#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests golden images: t/golden/write_image.pl, which was written from the
# description of the format alone, makes each of them byte for byte.  Together
# they have everything that the format has.  The example in the description is
# right.

use strict;
use warnings;

use File::Basename qw(basename);
use FindBin;
use Test::More;

chdir("$FindBin::Bin/../..") or die "$FindBin::Bin/../..: $!\n";

require './t/golden/write_image.pl';

sub content_of {
    my ($file) = @_;

    open(my $in, '<:raw', $file) or die "$file: $!\n";
    local $/;
    return scalar <$in>;
}

# Returns the listing of an image from its vector.

sub listing_in { return content_of($_[0]) =~ /^(size .*)\z/ms ? $1 : '' }


# the writer's hashes and checksum agree with vectors that their authors
# published

is(crc32c('123456789'), 0xe3069283,
   'CRC-32C of the writer has its check value');

my $verification = join '', map {
    pack('Q< Q<', murmur3_x64_128(pack('C*', 0 .. $_ - 1), 256 - $_))
} 0 .. 255;

is((murmur3_x64_128($verification, 0))[0] & 0xffffffff, 0x6384ba69,
   'MurmurHash3_x64_128 of the writer has its verification value');


my %shown;

for my $file (glob 't/golden/*.txt') {
    my $name = basename($file, '.txt');
    my $v = read_vector($file);
    my $image = image_of($v);

    is(listing_of($image), listing_in($file),
       "the writer makes each byte of $name");

    my $payload = substr($image, unpack('x24 Q<', $image),
                         unpack('x32 Q<', $image));
    my @parts = parts_of($v, scalar @{ $v->{layers} });
    my $maybe_present = sub {
        return is_maybe_present(\$payload, $_[0], $v, @parts);
    };

    my %once = map { $_ => 1 } @{ $v->{keys} };

    is(scalar(grep { $maybe_present->($_) } keys %once), $v->{items},
       "each of the $v->{items} keys of $name is present");
    is(scalar(grep { $maybe_present->($_) } @{ $v->{absent} }), 0,
       "each absent key of $name is absent");

    my $seed = "t/fuzz/corpus/image/$name.bloom";

    if (-e $seed) {
        ok(content_of($seed) eq $image, "the fuzzer begins with $name");
    }

    $shown{"$v->{layout} $v->{hash}"}++;
    $shown{"$v->{layout} lines $v->{lines}"}++;
    $shown{'bits in a line ' . $v->{k} / $v->{lines}}++ if $v->{lines};
    $shown{"flags $v->{flags}"}++;
    $shown{'as of ' . ($v->{as_of} ? 'stated' : 'not stated')}++;
    $shown{'chunks ' . ($v->{bits} / 8 > 1048576 ? 'two' : 'one')}++;
    $shown{"key of $_ bytes"}++ for map { length } @{ $v->{keys} };
    $shown{'key with ' . (/\0/ ? 'NUL' : /[\x80-\xff]/ ? '8 bits' : 'ASCII')}++
        for @{ $v->{keys} };
    $shown{'no key'}++ if !@{ $v->{keys} };
    $shown{"layers of a $v->{layout} base"}++ if @{ $v->{layers} };

    if ($v->{layout} eq 'fuse') {
        my $slots = $v->{segments} * $v->{segment_length} << $v->{shard_bits};

        $shown{'fuse of ' . ($v->{shard_bits} ? 'shards' : 'one shard')}++;
        $shown{'fuse of ' . ($v->{segments} > 3 ? 'windows' : 'one window')}++;
        $shown{$v->{salts} =~ /[1-9]/ ? 'fuse with a salt'
                                      : 'fuse with no salt'}++;
        $shown{'fuse without keys'}++ if !$v->{base_keys};
        $shown{'fuse with wide slots'}++
            if $v->{wide_slots} && $v->{wide_slots} < $slots;
    }

    $shown{"lines $_->{lines} in a layer"}++ for @{ $v->{layers} };
    $shown{'layers ' . (@{ $v->{exceptions} } ? 'with' : 'without')
           . ' exceptions'}++ if @{ $v->{layers} };

    $shown{"$_->{state} slice"}++ for @{ $v->{slices} };
    $shown{'copy of a zone'}++ if $v->{copy}[0] ne '';

    my $source = $v->{source};
    my $others = @{ $v->{layers} } || @{ $v->{exceptions} };

    if (length $source) {
        $shown{'source ' . ($others ? 'with others' : 'alone')}++;
        $shown{'source of ' . length($source) . ' bytes'}++;
        $shown{'source with every kind of character'}++
            if join(' ', $source =~ tr/a-z//, $source =~ tr/A-Z//,
                    $source =~ tr/0-9//, map { $source =~ /\Q$_/ ? 1 : 0 }
                                         split //, '._:/-') !~ /\b0\b/;
        $shown{'position ' . (grep({ $_ } @{ $v->{position} })
                              ? 'after' : 'at') . ' the beginning'}++;
    }

    # a key goes to the open slice; or to the last part, unless a part has it
    # already

    for my $i (0 .. $#{ $v->{keys} }) {
        my @hash = hash_of($v, $v->{keys}[$i]);
        my @has = grep { is_set(\$payload, $parts[$_], @hash) } 0 .. $#parts;

        $shown{"key in part $_"}++ for @has;

        if (@{ $v->{slices} }) {
            $shown{'key in two slices'}++ if @has > 1;

        } else {
            $shown{'key that a part before the last has'}++
                if $has[0] < $v->{grown}[$i];
        }
    }

    $shown{'imported image'}++ if $v->{origin};

    my $size = 0;

    for my $exception (@{ $v->{exceptions} }) {
        my $len = length $exception->{key};

        $size += 9 + ($len < 128 ? 1 : 2) + $len;
        $shown{"exception of kinds $exception->{kinds}"}++;
        $shown{'exception with a length of ' . ($len < 128 ? 1 : 2)}++;
        $shown{'exception ' . ($exception->{time} ? 'with' : 'without')
               . ' a time'}++;
        $shown{'exception that is ' . ($maybe_present->($exception->{key})
                                       ? 'present' : 'absent')}++;
    }

    $shown{'exceptions ' . ($size % 64 ? 'with' : 'without') . ' padding'}++
        if $size;
}

for my $what ('blocked murmur3', 'blocked siphash', 'classic murmur3',
              'classic siphash', 'blocked lines 1', 'blocked lines 2',
              'blocked lines 3', 'classic lines 0',
              (map { "bits in a line $_" } 1, 2, 4, 8),
              'flags 0', 'flags 1', 'as of stated', 'as of not stated',
              'chunks one', 'chunks two', 'no key', 'key with NUL',
              'key with 8 bits', 'imported image', 'copy of a zone',
              (map { "$_ slice" } 'open', 'empty', 'closed', 'full'),
              'key in two slices',
              'layers of a classic base', 'layers of a blocked base',
              'layers of a fuse base', 'fuse murmur3', 'fuse siphash',
              'fuse of shards', 'fuse of one shard', 'fuse of windows',
              'fuse of one window', 'fuse with a salt', 'fuse with no salt',
              'fuse with wide slots', 'fuse without keys',
              'layers with exceptions', 'layers without exceptions',
              (map { "lines $_ in a layer" } 1, 2, 3),
              (map { "key in part $_" } 0 .. 3),
              'key that a part before the last has',
              'source alone', 'source with others', 'source of 255 bytes',
              'source with every kind of character',
              'position at the beginning', 'position after the beginning',
              'exceptions with padding', 'exceptions without padding',
              'exception with a time', 'exception without a time',
              'exception that is present', 'exception that is absent',
              (map { "exception of kinds $_" } 1, 2, 4, 7),
              (map { "exception with a length of $_" } 1, 2),
              (map { "key of $_ bytes" } 1, 7, 8, 9, 15, 16, 17, 300))
{
    ok($shown{$what}, "some vector has $what");
}


# docs/image-format.md, "An example"

my ($example) = content_of('docs/image-format.md')
                =~ /^## An example\n(.*?)(?=^## |\z)/ms;
my $v = read_vector('t/golden/blocked-1-line.txt');
my ($h1, $h2) = hash_of($v, 'one');
my @bits = bits_of($v, $h1, $h2);
my @rows = $example =~ /^    ([0-9a-f]{8}: (?:[0-9a-f]{4} ?){8})/mg;

s/ $// for @rows;

my $fuse = read_vector('t/golden/fuse.txt');
my $both = $v->{listing} . $fuse->{listing};

is(scalar(@rows), 23, 'the example shows 23 rows of the images');
is(scalar(grep { $both !~ /^\Q$_\E$/m } @rows), 0,
   'all rows of the example are in the images');

my ($slots, $print) = slots_of($fuse, $h1, $h2);
my $payload = substr(image_of($fuse), 8192);
my @values = map {
    my $slot = $_;
    oct '0b' . join '', map { vec($payload, slot_begin($fuse, $slot) + $_, 1) }
                            reverse 0 .. 6;
} @$slots;

my $text = "the slots $slots->[0], $slots->[1] and $slots->[2] with the values "
           . "$values[0], $values[1] and $values[2]. Their XOR is "
           . ($print & 127) . ', and so is its print, '
           . sprintf('0x%08x', $print) . ', mod 2^7.';

is(($values[0] ^ $values[1] ^ $values[2]), $print & 127,
   'the slots of the example have its fingerprint');
like($example =~ s/\n(?=\S)/ /gr, qr/\Q$text/,
     'the example has the slots of a key');

for my $line (sprintf('h1   = 0x%016x', $h1), sprintf('h2   = 0x%016x', $h2),
              'line = scale(h1, 24) = ' . scale($h1, 24) . ',',
              '= ' . join(', ', map { ($h2 >> 6 * $_) % 64 } 0 .. 7),
              'bits = ' . join(', ', @bits),
              sprintf('h1 = 0x%016x and h2 = 0x%016x',
                      hash_of(read_vector('t/golden/siphash.txt'),
                              'one')))
{
    like($example, qr/\Q$line\E$|\Q$line\E\W/m,
         "the example has the line: $line");
}

done_testing;
