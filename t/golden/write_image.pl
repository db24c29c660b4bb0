#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# write_image.pl [--list] VECTOR
#
# Writes the image that a golden vector (README.md) describes to standard
# output. With --list, it prints the size and the bytes in hexadecimal instead,
# as a vector contains them.
#
# It was made from docs/image-format.md alone and on purpose without any of the
# project's other code, so an error would have to be made twice to stay unseen.
# It is slow and plain.

use strict;
use warnings;
no warnings 'portable';         # numbers of 64 bits are meant

die "this perl has no 64-bit integers\n" if ~0 != 18446744073709551615;

use constant {
    PAGE  => 4096,
    CHUNK => 1048576,
    LINE  => 512,
    PHI   => 0x9e3779b97f4a7c15,
};


# Numbers of 64 bits, which wrap: perl's own turn into floating point.

sub signed_add { use integer; return $_[0] + $_[1] }
sub signed_mul { use integer; return $_[0] * $_[1] }

sub add { return signed_add(@_) & ~0 }
sub mul { return signed_mul(@_) & ~0 }
sub rotl { return $_[0] << $_[1] | $_[0] >> 64 - $_[1] }

# x * n / 2^64, rounded down, by halves of 32 bits

sub scale {
    my ($x, $n) = @_;
    my ($x1, $x0) = ($x >> 32, $x & 0xffffffff);
    my ($n1, $n0) = ($n >> 32, $n & 0xffffffff);
    my $low = ($x0 * $n0 >> 32) + ($x1 * $n0 & 0xffffffff)
              + ($x0 * $n1 & 0xffffffff);

    return $x1 * $n1 + ($x1 * $n0 >> 32) + ($x0 * $n1 >> 32) + ($low >> 32);
}

sub mix {
    my ($x) = @_;

    $x = mul($x ^ ($x >> 33), 0xff51afd7ed558ccd);
    $x = mul($x ^ ($x >> 33), 0xc4ceb9fe1a85ec53);

    return $x ^ ($x >> 33);
}


# Hashes: (h1, h2) of a key

sub murmur3_x64_128 {
    my ($key, $seed) = @_;
    my ($c1, $c2) = (0x87c37b91114253d5, 0x4cf5ad432745937f);
    my $blocks = int(length($key) / 16);
    my ($h1, $h2) = ($seed, $seed);

    for my $i (0 .. $blocks) {
        # the last block is not whole: zeros behind it change nothing
        my ($k1, $k2) = unpack('Q< Q<', substr($key, $i * 16, 16) . "\0" x 16);

        $h1 ^= mul(rotl(mul($k1, $c1), 31), $c2);
        $h1 = add(mul(add(rotl($h1, 27), $h2), 5), 0x52dce729)
            if $i < $blocks;

        $h2 ^= mul(rotl(mul($k2, $c2), 33), $c1);
        $h2 = add(mul(add(rotl($h2, 31), $h1), 5), 0x38495ab5)
            if $i < $blocks;
    }

    $h1 ^= length $key;
    $h2 ^= length $key;
    $h1 = add($h1, $h2);
    $h2 = add($h2, $h1);
    ($h1, $h2) = (mix($h1), mix($h2));
    $h1 = add($h1, $h2);
    $h2 = add($h2, $h1);

    return ($h1, $h2);
}

sub siphash_1_3_128 {
    my ($key, $secret) = @_;
    my ($k0, $k1) = unpack('Q< Q<', $secret);
    my ($a, $b, $c, $d) = unpack('Q> Q> Q> Q>',
                                 'somepseudorandomlygeneratedbytes');

    $a ^= $k0;
    $b ^= $k1 ^ 0xee;
    $c ^= $k0;
    $d ^= $k1;

    my $round = sub {
        $a = add($a, $b);  $b = rotl($b, 13) ^ $a;  $a = rotl($a, 32);
        $c = add($c, $d);  $d = rotl($d, 16) ^ $c;
        $a = add($a, $d);  $d = rotl($d, 21) ^ $a;
        $c = add($c, $b);  $b = rotl($b, 17) ^ $c;  $c = rotl($c, 32);
    };

    # zeros up to one byte less than a block, then the length's lowest byte

    my $pad = "\0" x (7 - length($key) % 8) . chr(length($key) & 0xff);

    for my $m (unpack('(Q<)*', $key . $pad)) {
        $d ^= $m;
        $round->();
        $a ^= $m;
    }

    $c ^= 0xee;
    $round->() for 1 .. 3;
    my $h1 = $a ^ $b ^ $c ^ $d;

    $b ^= 0xdd;
    $round->() for 1 .. 3;

    return ($h1, $a ^ $b ^ $c ^ $d);
}

sub hash_of {
    my ($v, $key) = @_;

    return $v->{hash} eq 'murmur3' ? murmur3_x64_128($key, $v->{seed})
                                   : siphash_1_3_128($key, $v->{hash_key});
}


# The parts of a filter with so many layers, each with its first bit: the base,
# then the layers; or all slices.

sub parts_of {
    my ($v, $layers) = @_;
    my @parts = ({ %$v, from => 0 });

    push @parts, { %$v, from => $_ * $v->{bits} } for 1 .. $#{ $v->{slices} };

    for my $layer (@{ $v->{layers} }[0 .. $layers - 1]) {
        push @parts, { layout => 'blocked', %$layer,
                       from => $parts[-1]{from} + $parts[-1]{bits} };
    }

    return @parts;
}

# The bits of a key with that hash in a part

sub bits_of {
    my ($v, $h1, $h2) = @_;

    if ($v->{layout} eq 'classic') {
        return map { scale(add($h1, mul($_, $h2)), $v->{bits}) }
                   0 .. $v->{k} - 1;
    }

    if ($v->{layout} eq 'double63') {
        return map { (add($h1, mul($_, $h2)) & ~0 >> 1) % $v->{bits} }
                   0 .. $v->{k} - 1;
    }

    my $r = $v->{k} / $v->{lines};
    my $shift = { 1 => 9, 2 => 8, 4 => 7, 8 => 6 }->{$r};
    my $sector = 1 << $shift;
    my @bits;

    for my $j (0 .. $v->{lines} - 1) {
        my ($a, $c) = ($h1, $h2);

        ($a, $c) = map { mix(add($_, mul($j, PHI))) } $a, $c if $j > 0;

        my $line = scale($a, $v->{bits} / LINE);

        push @bits, map { $line * LINE + $_ * $sector
                          + ($c >> $_ * $shift) % $sector } 0 .. $r - 1;
    }

    return @bits;
}


# A fuse base: where a key with that hash is looked up, its three slots, its
# fingerprint, and in how many bits they are compared

sub slots_of {
    my ($v, $h1, $h2) = @_;
    my $shard = $v->{shard_bits} ? $h1 >> 64 - $v->{shard_bits} : 0;
    my $x = rotl($h2, salts_of($v)->[$shard] % 64);
    my $windows = $v->{segments} - 2;
    my $length = $v->{segment_length};
    my $begin = $shard * $v->{segments} * $length
                + scale($x, $windows) * $length;

    return ([ $begin + scale(mul($x, $windows), $length),
              $begin + $length + scale(rotl($x, 25), $length),
              $begin + 2 * $length + scale(rotl($x, 43), $length) ],
            mul($x ^ $x >> 32, PHI) >> 32,
            $v->{slot_bits} + ($begin + 3 * $length <= $v->{wide_slots}));
}

# The salt of each shard

sub salts_of { return [split ' ', $_[0]{salts}] }

sub slot_begin {
    my ($v, $slot) = @_;

    return $slot * $v->{slot_bits}
           + ($slot < $v->{wide_slots} ? $slot : $v->{wide_slots});
}

sub is_in_base {
    my ($payload, $v, $h1, $h2) = @_;
    my ($slots, $print, $width) = slots_of($v, $h1, $h2);

    return 0 if $v->{base_keys} == 0;

    for my $i (0 .. $width - 1) {
        my $bit = $print >> $i & 1;

        $bit ^= vec($$payload, slot_begin($v, $_) + $i, 1) for @$slots;
        return 0 if $bit;
    }

    return 1;
}

# Solves the equations of these keys, one bit of the slots after the other.
# Slots that are free stay zero.

sub fill_base {
    my ($payload, $v, @keys) = @_;
    my %once = map { $_ => 1 } @keys;
    my @places = map { [ slots_of($v, hash_of($v, $_)) ] } sort keys %once;

    for my $i (0 .. $v->{slot_bits}) {
        my @solved;                     # [slot, other slots, right side]

        for my $place (@places) {
            my ($slots, $print, $width) = @$place;

            next if $i >= $width;

            my %in;
            my $right = $print >> $i & 1;

            $in{$_} ^= 1 for @$slots;

            for my $row (@solved) {
                next if !$in{ $row->[0] };

                $in{$_} ^= 1 for keys %{ $row->[1] };
                $right ^= $row->[2];
            }

            my ($slot) = sort { $a <=> $b } grep { $in{$_} } keys %in;

            if (!defined $slot) {
                die "the equations have no solution: use other salts\n"
                    if $right;
                next;
            }

            push @solved, [ $slot, { map { $_ => 1 } grep { $in{$_} }
                                                          keys %in }, $right ];
        }

        # a row has no slots that rows before it solve

        my %value;

        for my $row (reverse @solved) {
            my ($slot, $in, $right) = @$row;

            $right ^= $value{$_} // 0 for grep { $_ != $slot } keys %$in;
            $value{$slot} = $right;
            vec($$payload, slot_begin($v, $slot) + $i, 1) = $right;
        }
    }
}


# CRC-32C

my @crc_of_byte = map {
    my $crc = $_;

    $crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
    $crc;
} 0 .. 255;

sub crc32c {
    my $crc = 0xffffffff;

    $crc = ($crc >> 8) ^ $crc_of_byte[($crc ^ $_) & 0xff]
        for unpack('C*', $_[0]);

    return $crc ^ 0xffffffff;
}


# Adding a key, and looking it up

sub is_set {
    my ($payload, $part, $h1, $h2) = @_;

    return is_in_base($payload, $part, $h1, $h2) if $part->{layout} eq 'fuse';

    return !grep { !vec($$payload, $part->{from} + $_, 1) }
                 bits_of($part, $h1, $h2);
}

sub is_maybe_present {
    my ($payload, $key, $v, @parts) = @_;
    my @hash = hash_of($v, $key);

    return scalar grep { is_set($payload, $_, @hash) } @parts;
}

sub add_key {
    my ($payload, $key, $v, @parts) = @_;

    return if is_maybe_present($payload, $key, $v, @parts);

    vec($$payload, $parts[-1]{from} + $_, 1) = 1
        for bits_of($parts[-1], hash_of($v, $key));
}


# The parts of an image

sub padded { return $_[0] . "\0" x (-length($_[0]) % $_[1]) }

sub table_of {
    return padded(pack('(L<)*', map { crc32c($_) }
                                unpack('(a' . CHUNK . ')*', $_[0])), PAGE);
}

# The further fields of an imported filter, from byte 152 on

sub origin_of {
    my ($v) = @_;

    return '' if !$v->{origin};
    return pack('L< L< L< L< Q<', $v->{origin}, length $v->{source_header}, 0,
                0, $v->{origin_items}) . $v->{source_header};
}

# The further fields of a fuse base, from byte 152 on

sub fuse_of {
    my ($v) = @_;

    return '' if $v->{layout} ne 'fuse';
    return pack('Q< Q< Q< L< L< L< L<', $v->{base_keys}, $v->{room},
                $v->{wide_slots}, $v->{segment_length}, $v->{segments},
                $v->{shard_bits}, $v->{slot_bits});
}

# The further fields of slices, from byte 152 on

sub slices_of {
    my ($v) = @_;
    my @slices = @{ $v->{slices} };
    my $bitmap = sub {
        my ($states) = @_;
        my $bits = 0;

        $slices[$_]{state} =~ $states and $bits |= 1 << $_ for 0 .. $#slices;
        return $bits;
    };

    return '' if !@slices;

    my ($open) = grep { $slices[$_]{state} eq 'open' } 0 .. $#slices;

    return pack('x1896 L< L< Q< Q< a448 a448', scalar @slices, $open,
                $bitmap->(qr/^(open|closed|full)$/), $bitmap->(qr/^full$/),
                pack('(Q<)*', map { $_->{opened} } @slices),
                pack('(Q<)*', map { $_->{closed} } @slices));
}

# The fields of any image from byte 3504 on, up to the checksum

sub end_of {
    my ($v, $data, $table) = @_;
    my @layers = @{ $v->{layers} };
    my @built = grep { $_->{kinds} & 1 } @{ $v->{exceptions} };

    return pack('x16 a16 Q< Q< Q< Q< Q< x8', @{ $v->{copy} })
           . pack('Q< Q< L< x4 Q< Q< Q< Q< Q< L< a255 x5 a128 a16 a16 x20',
                  scalar @{ $v->{exceptions} }, length $data,
                  length $data ? crc32c($table) : 0,
                  scalar @layers, scalar @built, length entries_of(@built),
                  @{ $v->{position} }, length $v->{source}, $v->{source},
                  join('', map { pack('Q<', $_->{bits}) } @layers),
                  join('', map { chr $_->{k} } @layers),
                  join('', map { chr $_->{lines} } @layers));
}

sub leb128 {
    my ($n) = @_;

    return $n < 128 ? chr $n : chr($n % 128 + 128) . leb128($n >> 7);
}

# The data of these exceptions

sub entries_of {
    return join '', map { pack('C Q<', $_->{kinds}, $_->{time})
                          . leb128(length $_->{key}) . $_->{key} } @_;
}

sub image_of {
    my ($v) = @_;
    my $bits = $v->{bits} * (@{ $v->{slices} } || 1);

    $bits += $_->{bits} for @{ $v->{layers} };

    my $payload = padded("\0" x (($bits + 7) / 8), LINE / 8);

    if ($v->{layout} eq 'fuse') {
        fill_base(\$payload, $v, map { $v->{keys}[$_] }
                                 grep { !$v->{grown}[$_] }
                                      0 .. $#{ $v->{keys} });

        my $end = $v->{bits} / 8;

        substr($payload, --$end, 1) = chr for @{ salts_of($v) };
    }

    for my $i (0 .. $#{ $v->{keys} }) {
        next if $v->{layout} eq 'fuse' && !$v->{grown}[$i];

        my @parts = parts_of($v, @{ $v->{slices} } ? 0 : $v->{grown}[$i]);

        # a key goes to the open slice, whatever the other slices have

        @parts = $parts[$v->{grown}[$i]] if @{ $v->{slices} };

        add_key(\$payload, $v->{keys}[$i], $v, @parts);
    }

    my $table = table_of($payload);
    my $data = entries_of(@{ $v->{exceptions} });
    my $exceptions = padded($data, LINE / 8);
    my $second = table_of($exceptions);

    my $header = pack('a8 L< L< Q< Q< Q< L< L<',
                      "\x89BLOOM\r\n", 3, 0x01020304,
                      PAGE + length($table) + length($payload)
                      + length($second) + length($exceptions),
                      PAGE + length($table), length($payload), CHUNK,
                      crc32c($table))
               . pack('L< L< L< L< Q< L< L< a16',
                      { blocked => 1, classic => 2, double63 => 5, fuse => 13 }->{
                          $v->{layout} },
                      $v->{k}, $v->{lines}, $v->{flags}, $v->{bits},
                      { murmur3 => 1, siphash => 2 }->{ $v->{hash} },
                      { raw => 0, lower => 1, host => 2, url => 3 }->{
                          $v->{form} },
                      $v->{hash} eq 'murmur3' ? pack('L<', $v->{seed})
                                              : $v->{hash_key})
               . pack('Q< Q< d< Q< Q< a16',
                      $v->{capacity}, $v->{items}, $v->{fpr}, $v->{created},
                      $v->{as_of}, $v->{build_id});

    $header .= origin_of($v) . fuse_of($v) . slices_of($v);
    $header .= "\0" x (3504 - length $header);
    $header .= end_of($v, $data, $second);
    $header .= pack('L<', crc32c($header));

    return $header . $table . $payload . $second . $exceptions;
}

sub listing_of {
    my ($image) = @_;
    my $listing = sprintf("size      %d\n\nimage\n", length $image);

    for (my $at = 0; $at < length $image; $at += 16) {
        my $row = substr($image, $at, 16);

        if ($row =~ /[^\0]/ || $at + 16 >= length $image) {
            $listing .= sprintf("%08x: %s\n", $at,
                                join ' ', unpack('(H4)*', $row));
        }
    }

    return $listing;
}


# Vectors

sub unescape {
    my ($text) = @_;

    $text =~ s/\\(?:x([0-9a-fA-F]{2})|(\\)|(.?))/
               defined $3 ? die "\"\\$3\" in a key: write \\\\ or \\xNN\n"
                          : defined $1 ? chr hex $1 : $2/gex;

    return $text;
}

sub read_vector {
    my ($file) = @_;
    my %v = (keys => [], grown => [], absent => [], exceptions => [],
             layers => [], slices => [], source => '', position => [0, 0],
             copy => ['', (0) x 5], listing => '');

    open(my $in, '<:raw', $file) or die "$file: $!\n";

    while (<$in>) {
        chomp;
        next if /^#|^\s*$/;

        if ($_ eq 'image') {
            local $/;
            $v{listing} = <$in>;
            last;
        }

        my ($name, $value) = /^(\S+)\s+(.*)$/
            or die "$file line $.: a name and a value were expected\n";

        $name =~ tr/-/_/;
        $value = unescape($value) if $name =~ /^(key|absent)$/;
        $value = pack('H*', $value)
            if $name =~ /^(hash_key|build_id|source_header)$/;
        $value = oct $value if $value =~ /^0x/;

        if ($name eq 'exception') {
            my ($kinds, $time, $key) = split ' ', $value, 3;

            push @{ $v{exceptions} },
                 { kinds => $kinds, time => $time, key => unescape($key) };

        } elsif ($name eq 'layer') {
            my ($bits, $k, $lines) = split ' ', $value;

            push @{ $v{layers} }, { bits => $bits, k => $k, lines => $lines };

        } elsif ($name eq 'slice') {
            my ($state, $opened, $closed) = split ' ', $value;

            push @{ $v{slices} },
                 { state => $state, opened => $opened, closed => $closed };

        } elsif ($name eq 'copy') {
            my ($journal, @numbers) = split ' ', $value;

            $v{copy} = [pack('H*', $journal), @numbers];

        } elsif ($name eq 'source') {
            my ($source, $position) = split ' ', $value;
            my ($high, $low) = split /-/, $position;

            $v{source} = $source;
            $v{position} = [$high, $low // 0];

        } elsif ($name eq 'key') {
            push @{ $v{keys} }, $value;
            push @{ $v{grown} }, @{ $v{slices} } ? $#{ $v{slices} }
                                                 : scalar @{ $v{layers} };

        } elsif ($name eq 'absent') {
            push @{ $v{absent} }, $value;

        } else {
            $v{$name} = $value;
        }
    }

    for (qw(layout k lines bits flags hash form capacity items fpr created
            as_of build_id))
    {
        die "$file: \"$_\" is missing\n" if !defined $v{$_};
    }

    for (qw(base_keys room wide_slots segment_length segments shard_bits
            slot_bits salts))
    {
        die "$file: \"$_\" is missing\n"
            if $v{layout} eq 'fuse' && !defined $v{$_};
    }

    return \%v;
}


# As a program; t/tool/golden-images.t uses the functions alone.

if (!caller) {
    my $list = @ARGV && $ARGV[0] eq '--list' && shift @ARGV;

    die "usage: write_image.pl [--list] VECTOR\n" if @ARGV != 1;

    binmode(STDOUT);
    my $image = image_of(read_vector($ARGV[0]));
    print $list ? listing_of($image) : $image;
    close(STDOUT) or die "standard output: $!\n";
}

1;
