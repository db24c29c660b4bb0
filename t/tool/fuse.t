#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --layout fuse" makes an image that a second reader
# of the format understands, with each option and any number of keys; and that
# all other commands work with such an image or refuse it with what to do.

use strict;
use warnings;

use FindBin;
use List::Util qw(shuffle);

use BloomTest;
use BloomTest::Collision qw(crafted key_of_hash);
use BloomTest::Image qw(bits_set exceptions_in parsed);
use BloomTest::Tool qw(content_of info json members_are tool tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $n = 0;

sub file { return $t->write_file($_[0], join '', map { "$_\n" } @{ $_[1] }) }

# Builds a fuse image of keys.  Returns its path, and what --json prints.

sub build {
    my ($keys, @options) = @_;

    my $image = "$dir/image" . ++$n;

    return ($image, json(scalar tool_ok('build', '--json', '--layout', 'fuse',
                                        '-o', $image, @options,
                                        file("keys$n", $keys))));
}

# Returns how many of the keys the tool finds.

sub found {
    my ($image, $keys) = @_;

    my ($exit, $out, $err) = $t->run_tool('test', '--count', $image, '-f',
                                          file('asked', $keys));

    return $out =~ /^(\d+) present/ ? $1 : "exit $exit: $err";
}

# Returns how many of the keys the second reader finds.

sub understood {
    my ($image, $keys) = @_;

    my $parsed = parsed(content_of($image));

    return scalar grep { bits_set($parsed, $_) } @$keys;
}

sub payload { return substr content_of($_[0]), 4096 }


# ---------------------------------------------------- any number of keys

my @absent = map { "absent-$_" } 1 .. 3000;

for my $case ([1], [2], [3], [10], [100, '-p', '0.3'], [999, '-p', '1e-9'],
              [1000, '-p', '0.007'], [4000, '-j', 1], [4000, '--hash', 'siphash'],
              [40_000, '-p', '0.01', '-j', 2])
{
    my ($items, @options) = @$case;
    my @keys = map { "key-$_" } 1 .. $items;
    my ($image, $built) = build(\@keys, @options);
    my $name = "the image of $items keys @options";
    my $p = "@options" =~ /-p (\S+)/ ? $1 : 0.001;

    my $room = $items > 8000 ? int $items / 8 : 1000;

    members_are("$name has its keys and room for additions", $built,
                layout => 'fuse', items => $items, room => $room,
                capacity => $items + $room);
    cmp_ok($built->{estimated_fpr}, '<=', $p * 1.0000001,
           "$name keeps the rate");
    cmp_ok($built->{estimated_fpr}, '>=', $p * 0.49, "$name has a near rate");

    is(found($image, \@keys), $items, "all keys of $name are present");

    my @some = @keys > 1000 ? @keys[0 .. 999] : @keys;

    is(understood($image, \@some), scalar @some,
       "the second reader finds the keys of $name");
    is(understood($image, \@absent), found($image, \@absent),
       "the second reader and the tool agree about absent keys of $name");

    my $expected = @absent * $built->{estimated_fpr};

    cmp_ok(abs(found($image, \@absent) - $expected), '<=',
           5 * sqrt($expected) + 2, "absent keys of $name have its rate");

    my $verified = json(tool(0, undef, 'verify', '--json', $image));

    members_are("$name is verified", $verified, result => 'ok',
                fill_ratio => undef, estimated_items => $items);
    is(info($image)->{slots}, $built->{slots}, "info knows $name");
}


# ------------------------------------------------------------- the same keys

my @keys = map { "key-$_" } 1 .. 50_000;
my ($image) = build(\@keys, '--seed', 7);
my ($other) = build([shuffle(@keys)], '--seed', 7, '-j', 2);

ok(payload($image) eq payload($other),
   'the order of the keys and the threads do not matter');

($other, my $built) = build([@keys, reverse(@keys), @keys], '--seed', 7);

ok(payload($image) eq payload($other), 'duplicates count once');
is($built->{duplicates}, 100_000, 'duplicates are counted');

# --memory 16m has room for 1.6 million keys

my $distinct = 2_200_000;
my $many = $t->write_file('many', join '', map { "key$_\n" } 1 .. $distinct);
my $again = $t->write_file('again',
                           join '', map { "key$_\n" } reverse 1 .. $distinct);

for ([1, 0, '-j', 1, $many], [2, 1, '-j', 2, '--memory', '16m', $many],
     [3, 1, '-j', 1, '--memory', '16m', $again, $many])
{
    my ($name, $spilled, @how) = @$_;
    my $json = json(scalar tool_ok('build', '--json', '--layout', 'fuse', '-p',
                                   '0.01', '--seed', 7, '-o', "$dir/many$name",
                                   @how));

    is($json->{items}, $distinct, "build $name counts all keys");
    cmp_ok($json->{bits}, '<', 1.14 * $distinct * log(100) / log(2),
           "build $name takes at most 1.14 times the bound");
    is($json->{temporary_bytes} > 0, $spilled == 1,
       "build $name spills keys or not");
}

ok(payload("$dir/many1") eq payload("$dir/many2"),
   'keys that are spilled make the same image');
ok(payload("$dir/many1") eq payload("$dir/many3"),
   'keys that are given twice and spilled make the same image');


# ------------------------------------------------------- keys that collide

# Returns a key with this h2 and the seed 7.  A line of a file can have it.

sub key_of_h2 {
    my ($h2) = @_;

    for my $h1 (1 .. 1000) {
        my $key = key_of_hash($h1, $h2, 7);

        return $key if $key =~ /\A[^\0-\x20#!"]+\z/;
    }

    die "there is no such key\n";
}

# keys with one hash count once

my @same = map { ($_, crafted($_)) }
           grep { crafted($_) =~ /\A[^\0-\x20#!"]+\z/ }
           map { "$_-a-key-of-at-least-24-bytes" } 1 .. 200;

($image, $built) = build([@same, @keys[0 .. 99]]);

cmp_ok(scalar(@same), '>=', 2, 'there are keys with the hash of another key');
is($built->{duplicates}, @same / 2, 'two keys with one hash count once');
is(found($image, \@same), scalar @same, 'keys with one hash are present');

# The bits of these h2 are those of their rotations, so that no salt makes more
# of the slots differ.

my $near = file('near', [map { key_of_h2($_) } 0, map { 1 << $_ } 0 .. 63]);

tool(2, qr/no filter in layout fuse was found: the hashes of the 65 keys in shard 1 of 1 collide with each of 64 salts, .*; use another --seed, --hash siphash with a secret one, or --layout blocked$/,
     'build', '--layout', 'fuse', '--seed', 7, '-o', "$dir/refused", $near);
ok(!-e "$dir/refused", 'no image is written if keys collide');

tool(0, undef, 'build', '-q', @$_, '-o', "$dir/far", $near)
    for ['--layout', 'fuse', '--seed', 8],
        ['--layout', 'fuse', '--seed', '07' x 16, '--hash', 'siphash'],
        ['--layout', 'blocked', '--seed', 7];


# ------------------------------------------------------- keys of good lists

# The keystore of a fuse build keeps a part of each hash.  It suffices to tell
# false positives from keys that both lists have.

my $listed = file('listed', [map { "bad-$_" } 1 .. 5000]);
my @good = map { "good-$_" } 1 .. 500;

tool(2, qr/bad-7\b/, 'build', '--layout', 'fuse', '-p', '0.3', '-o',
     "$dir/refused", '--except', file('both', [@good, 'bad-7']), $listed);
ok(!-e "$dir/refused", 'no image is written if both lists have a key');

my $excepted = json(scalar tool_ok(
    'build', '--json', '--layout', 'fuse', '-p', '0.3', '-o',
    "$dir/excepted", '--except', file('good', \@good), $listed));

cmp_ok($excepted->{good_keys_matched}, '>', 50, 'good keys are matched');
is(found("$dir/excepted", \@good), 0, 'no good key is present');
is(found("$dir/excepted", [map { "bad-$_" } 1 .. 5000]), 5000,
   'all keys of the list are present');


# --------------------------------------------------------------- the options

(undef, $built) = build(['a' .. 'z'], '-n', '30');
is($built->{room}, 4, '-n gives the room');
is($built->{capacity}, 30, '-n gives the capacity');

(undef, $built) = build(['a' .. 'z'], '-n', '26');
is($built->{room}, 1000, '-n without room gives the default');

tool(0, qr/-n 30: there are 26 keys, so a zone has room for only 4 more/,
     'build', '--layout', 'fuse', '-n', '30', '-o', "$dir/few",
     file('letters', ['a' .. 'z']));
tool(0, qr/-n 26: there are 26 keys, so the image gets the usual room for 1000/,
     'build', '--layout', 'fuse', '-n', '26', '-o', "$dir/few",
     file('letters', ['a' .. 'z']));
tool(0, undef, 'build', '--layout', 'fuse', '-n', '1026', '-o', "$dir/few",
     file('letters', ['a' .. 'z']));

($image, $built) = build([], '--allow-empty');
is($built->{items}, 0, 'an image may be empty');
is(found($image, \@absent), 0, 'nothing is in an empty image');
is(understood($image, \@absent), 0, 'the second reader finds nothing either');
is(json(tool(0, undef, 'verify', '--json', $image))->{estimated_fpr}, 0,
   'an empty image has no false positives');
tool(2, qr/the input has no keys; use --allow-empty/, 'build', '--layout',
     'fuse', '-o', "$dir/refused", file('none', []));

($image) = build(['EXAMPLE.com', 'evil.test'], '--form', 'host');
is(found($image, ['a.b.example.com', 'evil.test', 'good.test']), 2,
   'a key form works');

($image, $built) = build([map { "key-$_" } 1 .. 5000], '-p', '0.1', '--except',
                         file('good', [@absent, 'other']), '--without',
                         file('without', ['key-1', 'key-2']));

my @exceptions = map { $_->[2] } exceptions_in(content_of($image));

is($built->{items}, 4998, '--without leaves keys out');
cmp_ok(scalar(@exceptions), '>', 100, 'false positives become exceptions');
is(understood($image, \@exceptions), scalar @exceptions,
   'the exceptions are those that the base has');
is(found($image, [@absent, 'other']), 0, 'no good key is found');
is(found($image, [map { "key-$_" } 3 .. 5000]), 4998, 'each key is found');

tool(1, qr/keys?.*--min-keys/, 'build', '--layout', 'fuse', '--min-keys', '9',
     '-o', "$dir/refused", file('few', ['a']));
tool(1, qr/must.have/i, 'build', '--layout', 'fuse', '--must-have',
     file('must', ['zebra']), '-p', '1e-9', '-o', "$dir/refused",
     file('few', ['a']));

($image, $built) = build(['a'], '--source', 'ids=5-1', '--as-of',
                         '2026-01-31T12:00:00Z');
is($built->{source_position}, '5-1', '--source works');
is($built->{as_of}, '2026-01-31T12:00:00.000Z', '--as-of works');
is(found($image, ['a']), 1, 'an image with a source is read');


# ------------------------------------------------------ what is not possible

($image) = build(['a' .. 'z']);

my $before = content_of($image);
my $blocked = $t->build_image('blocked.bloom', ['a']);

tool(2, qr/\Q$image\E: has layout fuse, which takes no more keys; build it again from all keys, or add/,
     'add', $image, file('more', ['b']));
tool(2, qr/\Q$image\E: has layout fuse, and such images cannot be merged; build one image from all/,
     'merge', '-o', "$dir/merged", @$_)
    for [$image, $image], [$image, $blocked], [$blocked, $image];
tool(2, qr/images in layout fuse cannot be merged; give -p, --layout/,
     'build', '--like', $image, '-o', "$dir/like", file('more', ['b']));
tool(2, qr/./, 'export', '--to', 'guava', '-o', "$dir/exported", $image);
tool(2, qr/--layout "fuse": such a filter does not fill/, 'analyze',
     '--layout', 'fuse');
ok(content_of($image) eq $before, 'the image did not change');
ok(!-e "$dir/$_", "no $_ is written") for qw(merged like exported);


# ------------------------------------------------------------- other commands

like(tool(0, undef, 'info', $image), qr/^layout +fuse, 1024 bits, k 3, \d+ slots of 10 bits$/m,
     'info shows the slots');
like(tool(0, undef, 'info', $image), qr/^room +1000 keys, added to a zone/m,
     'info shows the room');
like(tool(0, undef, 'verify', $image),
     qr/: ok, 26 items, false-positive rate 0\.0977 %$/,
     'verify shows the rate');

my $golden = "$FindBin::Bin/../fuzz/corpus/image/fuse-layers.bloom";

like(tool(0, undef, 'info', $golden), qr/^layer 2 +4 keys, blocked, 1024 bits/m,
     'info shows the room of a layer behind a fuse base');
is(found($golden, [qw(one eleven thirteen fourteen)]), 4,
   'keys of the base and of layers are present');
is(found($golden, [qw(two fifteen)]), 0,
   'an exception is absent, and so is any other key');
is(join(' ', map { $_->{capacity} } @{ info($golden)->{parts} }), '11 2 4',
   'the parts have the room that the base states');
is(json(tool(0, undef, 'verify', '--json', $golden))->{parts}[0]{fill_ratio},
   undef, 'the base has no fill ratio');

# a damaged image

my $damaged = content_of($image);

substr($damaged, 8192, 1) ^= "\1";
$t->write_file('damaged', $damaged);
tool(1, qr/is damaged/, 'verify', "$dir/damaged");

done_testing;
