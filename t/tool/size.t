#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom size" computes keys, rate or memory from the other two.

use strict;
use warnings;

use List::Util qw(sum);

use BloomTest;
use BloomTest::Tool qw(header json json_lines near tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;


# Returns the answers for both layouts, or for the one that is named.

sub size {
    my $out = tool(0, undef, 'size', '--json', @_);

    return grep({ $_ eq '--layout' } @_) ? json($out) : json_lines($out);
}

for (['10m', '0.001'], ['1k', '0.1'], ['1m', '1%'], ['3', '1e-6'],
     ['1g', '1e-9'], ['1', '0.5'])
{
    my ($n, $p) = @$_;
    my ($blocked, $textbook, $fuse) = size('-n', $n, '-p', $p);
    my $items = $n =~ s/k$/000/r =~ s/m$/000000/r =~ s/g$/000000000/r;
    my $rate = $p eq '1%' ? 0.01 : $p;

    is($blocked->{layout}, 'blocked', "size -n $n -p $p has blocked first");
    is($textbook->{layout}, 'classic', "size -n $n -p $p has classic second");

    is($fuse->{layout}, 'fuse', "size -n $n -p $p has fuse third");

    for ($blocked, $textbook, $fuse) {
        is($_->{filter_bytes} * 8, $_->{bits},
           "filter_bytes of size -n $n -p $p ($_->{layout}) are its bits");
        is($_->{bits} % 512, 0,
           "size -n $n -p $p ($_->{layout}) gives whole lines");
        ok($_->{fpr} > 0 && $_->{fpr} <= $rate,
           "size -n $n -p $p ($_->{layout}) keeps the rate");
        is($_->{items}, $items,
           "size -n $n -p $p ($_->{layout}) repeats the items");
        near($_->{bits_per_item}, $_->{bits} / $items,
             "size -n $n -p $p ($_->{layout}) has the bits for each item");
    }

    next if $items < 1000;

    # -n ln p / (ln 2)^2 as in textbooks, and a little more as k is an integer

    my $least = -$items * log($rate) / log(2) ** 2;

    ok($textbook->{bits} > 0.999 * $least
       && $textbook->{bits} < 1.03 * $least + 1024,
       "a classic filter of size -n $n -p $p is as large as the textbook says");
    ok($blocked->{bits} > $least && $blocked->{bits} < 1.3 * $least + 1024,
       "a blocked filter of size -n $n -p $p is somewhat larger");

    # at most 1.14 times the information bound; for fewer keys 1.25 or, up to
    # 1 %, 1.45 times and whole lines

    ok($fuse->{bits} < ($items < 32768 ? ($rate > 0.01 ? 1.6 : 1.45)
                        : $items < 1e6 ? 1.25 : 1.14)
                       * -$items * log($rate) / log(2)
                       + ($items < 1e6 ? 640 : 0),
       "a fuse filter of size -n $n -p $p is near the information bound");
}

for my $layout (qw(blocked classic fuse)) {
    my ($most) = size('-p', '1e-4', '-m', '1m', '--layout', $layout);

    cmp_ok($most->{filter_bytes}, '<=', 1 << 20,
           "size -p -m finds a $layout filter that fits the memory");
    cmp_ok($most->{fpr}, '<=', 1e-4,
           "size -p -m finds a $layout filter that keeps the rate");

    my ($back) = size('-n', $most->{items}, '-p', '1e-4', '--layout', $layout);
    is($back->{bits}, $most->{bits},
       "the items that size -p -m found need the same $layout filter");

    my ($over) = size('-n', $most->{items} + 1, '-p', '1e-4', '--layout',
                      $layout);
    cmp_ok($over->{filter_bytes}, '>', 1 << 20,
           "one item more than size -p -m found is too much for a $layout"
           . " filter");

    my ($least) = size('-n', '100k', '-m', '200k', '--layout', $layout);

    cmp_ok($least->{filter_bytes}, '<=', 200 << 10,
           "size -n -m finds a $layout filter that fits the memory");
    is($least->{items}, 100_000,
       "size -n -m repeats the items of a $layout filter");
    ok($least->{fpr} > 0 && $least->{fpr} < 1e-3,
       "size -n -m finds a plausible rate of a $layout filter");

    my ($better) = size('-n', '100k', '-p', $least->{fpr} * 0.98, '--layout',
                        $layout);
    cmp_ok($better->{filter_bytes}, '>', 200 << 10,
           "a better rate than size -n -m found is too much for a $layout"
           . " filter");

    next if $layout eq 'fuse';          # it has as many slots as keys

    my $image = $t->build_image('sized.bloom', ['key'], '--layout', $layout,
                                '-n', '100k', '-p', '1e-5');
    my ($sized) = size('--items', '100k', '--fpr', '1e-5', '--layout', $layout);
    is(header($image)->{$_}, $sized->{$_},
       "size has $_ of a $layout filter as build makes it")
        for qw(bits k lines);
}

like(tool(0, undef, 'size', '-n', '10m', '-p', '0.1%'),
     qr{\A
        layout  [ ]+ items    [ ]+ rate     [ ]+ memory        [ ]+ bits/item
                [ ]+ k  [ ]+ lines \n
        blocked [ ]+ 10000000 [ ]+ 0\.1[ ]% [ ]+ 18\.\d[ ]MiB [ ]+ 15\.\d+
                [ ]+ 8  [ ]+ 1 \n
        classic [ ]+ 10000000 [ ]+ 0\.1[ ]% [ ]+ 17\.\d[ ]MiB [ ]+ 14\.\d+
                [ ]+ 10 [ ]+ - \n
        fuse    [ ]+ 10000000 [ ]+ 0\.\d+[ ]% [ ]+ 13\.\d[ ]MiB
                [ ]+ 11\.\d+ [ ]+ 3 [ ]+ - \n\z}x,
     'size prints a table of all layouts');
is(() = tool(0, undef, 'size', '--memory', '1m', '-p', '0.01', '--layout',
             'classic') =~ /^(?:classic|blocked|fuse)/mg, 1,
   'size --layout prints one layout');

tool(2, qr/use two of -n \(keys\), -p \(rate\) and -m \(memory\)/, 'size',
     @$_)
    for [], ['-n', '1'], ['-p', '0.1'], ['-m', '1k'],
        ['-n', '1', '-p', '0.1', '-m', '1k'];

tool(2, qr/-n "\Q$_\E": must be a number of keys from 1/,
     'size', '-n', $_, '-p',
     '0.1')
    for '0', 'x', '', '1x', '-1', '1.5', '5000g', '99999999999999999999';
tool(2, qr/-p "\Q$_\E": must be a rate from 1e-9 to 0\.5/,
     'size', '-n', '1', '-p',
     $_)
    for '0', '1', '0.6', 'x', '', '1e-10', '-0.1', 'nan', '51%';
tool(2, qr/-m "\Q$_\E": must be a size from 1 to 1024g, in bytes/, 'size', '-n',
     '1', '-m', $_)
    for '0', 'x', '', '1kk', '1025g';
tool(2, qr/--layout "x": must be blocked, classic or fuse/, 'size', '-n', '1',
     '-p', '0.1', '--layout', 'x');
tool(2, qr/unexpected argument "4711"/, 'size', '-n', '1', '-p', '0.1', '4711');
tool(2, qr/: 1 byte is too little for 1 key in layout blocked,/,
     'size', '-m', '1', '-n', '1');
tool(2, qr/too little for one key/, 'size', '-m', '63', '-p', '0.1');
tool(2, qr/too little for 10000000 keys/, 'size', '-m', '1k', '-n', '10m');
tool(2, qr/needs more than 1 TiB/, 'size', '-n', '4000g', '-p', '1e-9');
tool(2, qr/room for 35000000000 keys there, but is built for at most 34g/,
     'size', '-n', '35g', '-p', '0.001', '--layout', 'fuse');
unlike(scalar tool(0, undef, 'size', '-n', '35g', '-p', '0.001'), qr/fuse/,
       'layout fuse is left out for more keys than it is built for');
like(scalar tool(0, undef, 'size', '-n', '34g', '-p', '0.001'), qr/^fuse/m,
     'layout fuse is shown for as many keys as it is built for');


# ---- --max-keys ----

for (['1m', 1e6, '0.001', '20m', 4], ['1000', 1000, '1%', '1001', 1],
     ['10', 10, '0.5', '1310710', 16])
{
    my ($n, $items, $p, $max, $layers) = @$_;
    my $rate = $p eq '1%' ? 0.01 : $p;
    my $name = "size -n $n -p $p --max-keys $max";
    my ($empty, $image) = json_lines(tool(0, undef, 'size', '--json', '-n', $n,
                                          '-p', $p, '--max-keys', $max));

    is($empty->{zone}, 'empty', "$name has a zone that starts empty");
    is($image->{zone}, 'image', "$name has a zone with an image");

    for ([$empty, $rate], [$image, 2 * $rate]) {
        my ($got, $promised) = @$_;
        my @parts = @{ $got->{parts} };

        is($got->{items}, $items, "$name begins with the items");
        is($got->{layers}, $layers, "$name needs $layers layers");
        is($got->{max_items}, $items * (2 ** ($layers + 1) - 1),
           "$name has room for the items of all parts");
        is($got->{filter_bytes}, sum(map { $_->{filter_bytes} } @parts),
           "$name has the bytes of all parts");
        cmp_ok($got->{fpr}, '<=', $promised, "$name keeps the promise");
    }
}

{
    my ($empty) = json_lines(tool(0, undef, 'size', '--json', '-n', '1m', '-p',
                                  '0.01', '--max-keys', '3m', '--layout',
                                  'classic'));

    is($empty->{parts}[0]{lines}, 0, 'size --max-keys --layout makes the base');
    cmp_ok($empty->{parts}[1]{lines}, '>', 0,
           'a layer is blocked behind any base');
}

# a fuse base has no room, and is the base of an image only

for my $max (1, 1.125, 5) {
    my ($grown, @more) = json_lines(tool(0, undef, 'size', '--json', '-n', '1m',
                                         '-p', '0.01', '--max-keys',
                                         1e6 * $max + ($max == 1), '--layout',
                                         'fuse'));

    is(scalar(@more), 0, 'a zone does not begin with an empty fuse base');
    is($grown->{zone}, 'image', 'a fuse base is of an image');
    is(join(' ', map { $_->{capacity} } @{ $grown->{parts} }),
       join(' ', 1e6, map { 125000 * 2 ** $_ } 0 .. ($max < 2 ? 0 : 5)),
       'its layers begin with room for an eighth of its keys');
}

my $text = tool(0, undef, 'size', '-n', '1m', '-p', '0.001', '--max-keys',
                '3m');

like($text, qr/^a[ ]zone[ ]that[ ]starts[ ]empty,[ ]with[ ]capacity=1000000
                [ ]fpr=0\.001[ ]max_keys=3000000\n
               part[ ]+items[ ].*\n
               base[ ]+1000000[ ]+0\.05[ ]%.*\n
               layer[ ]1[ ]+2000000[ ]+0\.05[ ]%.*\n
               all[ ]+3000000[ ]+0\.1[ ]%.*\n\n
               a[ ]zone[ ]with[ ]max_keys=3000000[ ]and[ ]an[ ]image[ ].*\n
               part[ ].*\n
               base[ ].*[ ]0\.1[ ]%.*\n
               layer[ ]1[ ].*\n
               all[ ]+3000000[ ]+0\.2[ ]%/x,
     'size --max-keys prints the parts of both zones');

tool(2, qr/--max-keys needs -n .* and -p/, 'size', '--max-keys', '1m', @$_)
    for ['-n', '1k', '-m', '1m'], ['-p', '0.1', '-m', '1m'];
tool(2, qr/--max-keys "$_": must be more than -n, 1000, and at most 131071 times/,
     'size', '-n', '1k', '-p', '0.1', '--max-keys', $_)
    for 999, 1000, 131071001;
tool(0, undef, 'size', '-n', '1k', '-p', '0.1', '--max-keys', '131071000');
tool(2, qr/grows from 1000000000 to 4000000000000 keys .* needs more than 1 TiB/,
     'size', '-n', '1g', '-p', '0.1', '--max-keys', '4000g');


# ---- --expire ----

for ([1e6, '0.001', 8, '24h', 86_400_000, 97_200_000],
     [1e6, '0.001', 2, '2s', 2000, 3000],
     [1000, '0.01', 7, '7s 999ms', 7999, 9142],
     [1000, '0.01', 8, '1d 12h', 129_600_000, 145_800_000],
     [1e6, '1e-6', 8, '10s', 10_000, 11_250, '2m', 2e6],
     [7, '0.5', 8, '90', 90_000, 101_250])
{
    my ($n, $p, $slices, $time, $least, $longest, @max) = @$_;
    my $name = "size -n $n -p $p --expire \"$time\" @max";
    my $max_items = $max[1] // $n;
    my ($got) = json(tool(0, undef, 'size', '--json', '-n', $n, '-p', $p,
                          '--expire', $time,
                          @max ? ('--max-keys', $max[0]) : ()));
    my $room = int(($n + $slices - 1) / $slices);
    my $all = $slices + 1 + int(($max_items + $room - 1) / $room);
    my ($one) = json(tool(0, undef, 'size', '--json', '-n', $room, '-p',
                          $p / $all, '--layout', 'blocked'));

    is($got->{items}, $n, "$name repeats the items");
    is($got->{max_items}, $max_items, "$name has the most items");
    is($got->{slices_per_life}, $slices, "$name has $slices slices of a life");
    is($got->{slices}, $all, "$name reserves $all slices");
    is($got->{slice_items}, $room, "$name has room for $room keys in a slice");
    is($got->{$_}, $one->{$_}, "a slice of $name has $_ of such a filter")
        for qw(layout k lines);
    is($got->{bits}, ($one->{bits} / 512 | 1) * 512,
       "a slice of $name has the bits of such a filter, with odd lines");
    is($got->{even_bytes}, ($slices + 1) * $got->{slice_bytes},
       "$name uses a slice more than a life has");
    is($got->{filter_bytes}, $all * $got->{slice_bytes},
       "$name has the bytes of all slices");
    near($got->{bits_per_item}, 8 * $got->{even_bytes} / $n,
         "$name has the bits for each item");
    cmp_ok($got->{fpr}, '<=', $p, "$name keeps the rate");
    is($got->{least_life_ms}, $least, "a key of $name lives that long");
    is($got->{longest_life_ms}, $longest,
       "a key of $name lives a slice's time longer at most");
}

like(tool(0, undef, 'size', '-n', '1m', '-p', '0.001', '--expire', '24h'),
     qr{\A
        a[ ]key[ ]lives     [ ]+ at[ ]least[ ]24h,[ ]at[ ]most[ ]27h \n
        slices              [ ]+ 17 \n
        a[ ]slice[ ]has     [ ]+ 125000[ ]keys,[ ][\d.]+[ ]KiB,
                            [ ]k[ ]\d+,[ ]\d[ ]lines? \n
        rate                [ ]+ 0\.0?99\d*[ ]%[ ]if[ ]all[ ]slices[ ].*\n
        memory[ ]used       [ ]+ [\d.]+[ ]MiB[ ]while[ ]1000000[ ]keys[ ]arrive
                            [ ]evenly[ ]within[ ]24h \n
        memory[ ]reserved   [ ]+ [\d.]+[ ]MiB,[ ]for[ ]1000000[ ]keys[ ]within
                            [ ]24h \n\z}x,
     'size --expire prints the slices');

for (['7d', '7d', '7d 21h'], ['30m', '30m', '33m 45s'],
     ['1w1d2h3m4s', '8d 2h 3m 4s', '9d 2h 18m 27s'],
     ['8s500ms', '8s 500ms', '9s 563ms'], ['47h', '47h', '2d 4h 52m 30s'],
     ['3600', '1h', '1h 7m 30s'])
{
    my ($time, $least, $longest) = @$_;

    like(tool(0, undef, 'size', '-n', '1k', '-p', '0.01', '--expire', $time),
         qr/at least $least, at most $longest\n/,
         "size --expire $time is a time as nginx has it");
}

tool(2, qr/--expire "\Q$_\E": must be a time such as 24h/, 'size', '-n', '1k',
     '-p', '0.1', '--expire', $_)
    for '', '0', '0h', 'x', '-1h', '1.5h', '1h1h', '1m1h', '1s1', '1y', '1M',
        '1h ,', ' 1h', '99999999999999999999', '99999999999999999w',
        '9223372036854775808ms';
tool(2, qr/unknown option "--slices.*"; leave it out: --expire decides the number of slices/,
     'size', '-n', '1k', '-p', '0.1', '--expire', '24h', @$_)
    for ['--slices', '8'], ['--slices=8'];
tool(2, qr/--expire needs -n .* and -p/, 'size', '--expire', '1h', @$_)
    for ['-n', '1k', '-m', '1m'], ['-p', '0.1', '-m', '1m'];
tool(2, qr/--expire cannot be used with --layout $_/, 'size', '-n', '1k',
     '-p', '0.1', '--expire', '1h', '--layout', $_)
    for qw(classic fuse);
tool(0, undef, 'size', '-n', '1k', '-p', '0.1', '--expire', '1h', '--layout',
     'blocked');
tool(2, qr/--expire must be from 2s to 3650d/,
     'size', '-n', '1k', '-p', '0.1', '--expire', $_)
    for '1999ms', '3651d';
tool(0, undef, 'size', '-n', '1k', '-p', '0.1', '--expire', $_)
    for '2s', '3650d';
tool(2, qr/--max-keys "$_": with 8 slices it must be more than -n, 1000, and at most 4125/,
     'size', '-n', '1k', '-p', '0.1', '--expire', '1h', '--max-keys', $_)
    for 999, 1000, 4126;
is(json(tool(0, undef, 'size', '--json', '-n', '1k', '-p', '0.1', '--expire',
             '1h', '--max-keys', '4125'))->{slices}, 42,
   'the greatest --max-keys with --expire is accepted');
tool(2, qr/a filter for 400000000000 keys that expire, at .* needs more than 1 TiB/,
     'size', '-n', '400g', '-p', '0.01', '--expire', '1h');

done_testing;
