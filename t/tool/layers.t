#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the tool with images that have layers.  t/golden/write_image.pl, which
# shares no code with the tool, makes them as a zone that grows would.

use strict;
use warnings;

use List::Util qw(sum);

use BloomTest;
use BloomTest::Image qw(image_of);
use BloomTest::Tool qw(copy_with info json json_lines near
                       payload present tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my ($capacity, $fpr, $max_keys) = (200, 0.02, 3000);

my ($plan) = json_lines(tool(0, undef, 'size', '--json', '-n', $capacity, '-p',
                             $fpr, '--max-keys', $max_keys));
my ($base, @layers) = @{ $plan->{parts} };
my @room = map { $_->{capacity} } $base, @layers;

is_deeply(\@room, [200, 400, 800, 1600], 'each layer is twice as large');


# Writes the image of a zone to which these keys were added; returns its path.

sub grown {
    my ($name, $keys, %field) = @_;

    my @grown = map { ($_) x $room[$_] } 0 .. $#room;

    $#grown = $#$keys if @grown > @$keys;
    push @grown, ($#room) x (@$keys - @grown);

    return $t->write_file("$name.bloom", image_of({
        layout => 'blocked', k => $base->{k}, lines => $base->{lines},
        bits => $base->{bits}, flags => 1, hash => 'murmur3', seed => 42,
        form => 'raw', capacity => $capacity, items => scalar @$keys,
        fpr => $fpr, created => 1_700_000_000_000, as_of => 0,
        build_id => "\x11" x 16, exceptions => [], keys => $keys,
        slices => [], source => '', position => [0, 0],
        copy => ['', (0) x 5], grown => \@grown, layers => [@layers[0 .. $grown[-1] - 1]], %field,
    }));
}

# Returns the bytes of each part of an image.

sub parts {
    my ($path) = @_;

    my $info = info($path);
    my $payload = payload($path);

    return map { substr $payload, 0, $_->{bits} / 8, '' } @{ $info->{parts} };
}

# Returns the share of keys that were never added that an image has.

sub measured {
    my ($path) = @_;

    my (undef, $out) = $t->run_tool('test', '-c', $path, {
        stdin => join '', map { "no-$_\n" } 1 .. 50_000 });

    return ($out =~ /^(\d+) present/)[0] / 50_000;
}

my @keys = map { "key-$_" } 1 .. 2000;
my $grown = grown('grown', \@keys);
my $small = grown('small', [@keys[0 .. 499]]);


{
    my $info = info($grown);

    is($info->{layers}, 3, 'info --json has the number of layers');
    is($info->{capacity}, $capacity, 'info --json has the capacity of the base');
    is($info->{max_items}, $max_keys,
       'info --json has the number of keys that all parts have room for');
    cmp_ok(abs($info->{promised_fpr} / $fpr - 1), '<', 0.02,
           'info --json has the rate that all parts promise');
    is_deeply($info->{parts},
              [map { my $p = $_;
                     +{ map { $_ => $p->{$_} } qw(capacity bits k lines) }
                   } $base, @layers],
              'info --json describes each part');
    near($info->{bits_per_item},
         sum(map { $_->{bits} } $base, @layers) / @keys,
         'the bits of all parts count for each item');

    my $text = tool(0, undef, 'info', $grown);

    for my $i (1 .. 3) {
        my ($bits, $k, $lines) = @{ $layers[$i - 1] }{qw(bits k lines)};

        like($text, qr/^layer $i +$room[$i] keys, blocked, $bits bits, k $k, lines $lines$/m,
             "info prints layer $i");
    }
    like($text, qr/^with layers +3000 keys at a false-positive rate of [0-9.]+ %$/m,
         'info prints what all parts promise');
    unlike(tool(0, undef, 'info', $t->build_image('flat.bloom', ['a'])),
           qr/layer/, 'info prints no layers for an image without');
}

is(present($grown, @keys), @keys, 'test finds the keys of all parts');

for my $path ($small, $grown) {
    my $found = json(tool(0, undef, 'verify', '--json', $path));
    my $n = $path eq $small ? 500 : 2000;
    my $rate = measured($path);

    is($found->{result}, 'ok', 'verify accepts an image with layers');
    cmp_ok(abs($found->{estimated_items} - $n), '<',
           5 * $found->{estimated_items_error} + 5 + $n * $fpr,
           "verify counts the $n keys of all parts");
    cmp_ok(abs($found->{estimated_fpr} - $rate), '<',
           5 * sqrt($fpr / 50_000),
           "verify computes the rate of $n keys: $rate");
    near($found->{estimated_fpr},
         1 - exp(sum map { log(1 - $_->{estimated_fpr}) } @{ $found->{parts} }),
         'the rates of the parts make the rate of the image');

    # A key that the parts before seem to have is added to no part.

    my $left = $n;

    for (@{ $found->{parts} }) {
        my $wanted = $_->{capacity} < $left ? $_->{capacity} : $left;

        cmp_ok(abs($_->{estimated_items} - $wanted), '<',
               $wanted * 0.1 + $wanted * $fpr,
               "verify counts the $wanted keys of a part");
        $left -= $wanted;
    }
}

like(tool(0, undef, 'verify', $grown),
     qr/false-positive rate \S+ %, at most \S+ % with 3000 items in the base and 3 layers, /,
     'verify prints the rate now and the rate at capacity');

copy_with('grown.bloom', 'damaged.bloom', sub { substr($_[0], -1) ^= "\x01" });
tool(1, qr/is damaged: the checksum of bytes/, 'verify', "$dir/damaged.bloom");


# ---- add ----

for my $threads (1, 4) {
    my @new = map { "new-$_" } 1 .. 500;
    my $path = copy_with('grown.bloom', 'add.bloom', sub { });
    my $like = grown('wanted', [@keys, @new]);

    $t->write_file('new', join '', map { "$_\n" } @new);

    my $json = json(tool(0, undef, 'add', '--json', '--threads', $threads, $path,
                         "$dir/new"));

    is(present($path, @keys, @new), @keys + @new,
       "$threads threads: an image has the old and the new keys");
    ok(payload($path) eq payload($like),
       "$threads threads: the keys go to the last layer, unless a part has "
       . 'them');
    is($json->{layers}, 3, 'add adds no layer');
    cmp_ok(abs($json->{items} - 2500), '<', 5 * $json->{items_error},
           'add counts the keys');
    near($json->{estimated_fpr},
         json(tool(0, undef, 'verify', '--json', $path))->{estimated_fpr},
         'add computes the rate from the bits');
}

{
    my $path = copy_with('grown.bloom', 'add.bloom', sub { });
    my $before = payload($path);

    tool(0, undef, 'add', '-q', $path, { stdin => join "\n", @keys });
    ok(payload($path) eq $before,
       'a key that a part has already changes no bit');

    $t->write_file('many', join '', map { "many-$_\n" } 1 .. 4000);

    my (@before) = parts($path);
    my $out = tool(0, qr/distinct keys exceed the capacity of 3000: expect a false-positive rate of about \S+ %, not the promised \S+ %; rebuild the image from all keys, or load it into a zone with a larger max_keys=/,
                   'add', $path, "$dir/many");

    like($out, qr/ distinct, capacity 3000, false-positive rate now /,
         'add prints the capacity of all parts');

    my @after = parts($path);

    is_deeply([@after[0 .. 2]], [@before[0 .. 2]], 'only the last part has new bits');

    $path = copy_with('small.bloom', 'add.bloom', sub { });
    is(info($path)->{max_items}, 600, 'a smaller image has room for fewer keys');
    tool(0, qr/exceed the capacity of 600/, 'add', $path, "$dir/many");
}


# ---- merge ----

{
    my @other = map { "other-$_" } 1 .. 300;
    my $fewer = grown('fewer', \@other);
    my $merged = "$dir/merged.bloom";

    is(info($fewer)->{layers}, 1, 'the other image has one layer');

    my $flat = $t->build_image('like.bloom', ['flat-1', 'flat-2'], '--like',
                               $grown);
    my $info = info($flat);

    is($info->{layers}, 0, 'build --like takes the base of an image with layers');
    is($info->{$_}, info($grown)->{$_}, "build --like takes $_")
        for qw(layout bits k lines hash seed capacity fpr);

    for my $images ([$grown, $fewer, $flat], [$flat, $fewer, $grown],
                    [$fewer, $grown, $flat])
    {
        my $json = json(tool(0, qr/the base or a layer has more keys than it has room for: expect a false-positive rate of about \S+ %, not the promised/,
                             'merge', '--json', '-o', $merged, @$images));

        is($json->{layers}, 3, 'a merged image has the most layers');
        is($json->{max_items}, $max_keys, 'a merged image has room for as many');
        is(present($merged, @keys, @other, 'flat-1', 'flat-2'),
           @keys + @other + 2, 'a merged image has the keys of all');

        my ($one, $two, $three) = map { payload($_) } @$images;

        $_ .= "\0" x (length(payload($grown)) - length) for $one, $two, $three;
        ok(payload($merged) eq ($one | $two | $three),
           'a merged image has the bits of all, part by part');
        is(tool(0, undef, 'verify', '-q', $merged), '', 'verify accepts it');
        near($json->{estimated_fpr},
             json(tool(0, undef, 'verify', '--json', $merged))->{estimated_fpr},
             'merge computes the rate from the bits');
    }

    tool(0, undef, 'merge', '-q', '-o', $merged, $grown, $grown);
    ok(payload($merged) eq payload($grown),
       'an image with layers merged with itself has its own bits');

    $layers[1] = { %{ $layers[1] }, bits => $layers[1]{bits} + 512 };

    my $differs = grown('differs', \@keys);

    tool(2, qr/cannot be merged with \S+grown.bloom: they differ in layers;/,
         'merge', '-o', $merged, $grown, $differs);
    tool(2, qr/cannot be merged with \S+fewer.bloom: they differ in layers;/,
         'merge', '-o', $merged, $fewer, $grown, $differs);
    tool(0, undef, 'merge', '-q', '-o', $merged, $flat, $differs);
}

# No other system has layers.

tool(2, qr/cannot be written as guava, in which keys have other bits/, 'export', '--to', 'guava', '-o',
     "$dir/out", $grown);


# ---- guards compare the number of keys of all parts ----

tool(1, qr/has 2000 distinct keys/, 'verify', '--min-keys', '2001', $grown);
tool(0, undef, 'verify', '-q', '--min-keys', '2000', $grown);

done_testing;
