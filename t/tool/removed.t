#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the tool reads and writes images with removed keys: each command
# takes them as absent, lists them or refuses them, and none loses a key.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Image qw(image_of patch_header read_vector with_exceptions);
use BloomTest::Tool qw(content_of info json json_lines lines_of tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $time = 1767225600000;

# Makes an image of keys, and of removed ones; returns its path.

sub image_with {
    my ($name, $keys, $removed, @options) = @_;

    my $image = $t->build_image("$name.plain", $keys, @options);

    return $t->write_file($name, with_exceptions(content_of($image),
                          [map { [2, $time, $_] } @$removed]));
}

sub removed_in { return join ' ', sort split /\n/,
                        tool(0, undef, 'info', '--removed', $_[0]) }

sub copied { return $t->write_file($_[1], content_of($_[0])) }

my $image = image_with('removed.bloom', [qw(a b c d)], [qw(c d)], '-n', 100);


{
    my $info = info($image);

    is($info->{removed}, 2, 'info --json states the number of removed keys');
    is($info->{items}, 4, 'the items include the removed keys');
    is($info->{size_bytes}, -s $image, 'the size includes the removed keys');

    like(tool(0, undef, 'info', $image), qr/^removed         2 keys$/m,
         'info shows the number of removed keys');

    my $none = info($t->build_image('none.bloom', ['a']));

    is($none->{removed}, 0, 'an image without removed keys has 0');

    is(removed_in($image), 'c d', 'info --removed lists the removed keys');
    is(tool(0, undef, 'info', '--removed', '-0', $image), "c\0d\0",
       'info --removed -0 ends each key with a zero byte');

    my @keys = json_lines(tool(0, undef, 'info', '--removed', '--json',
                               $image));

    is_deeply([map { "$_->{key} $_->{time}" } @keys],
              ['c 2026-01-01T00:00:00.000Z', 'd 2026-01-01T00:00:00.000Z'],
              'info --removed --json has an object for each key');
    is(tool(0, undef, 'info', '--removed', "$dir/none.bloom"), '',
       'info --removed prints nothing for an image without removed keys');

    tool(2, qr/use it with --removed or/, 'info', '-0', $image);
    tool(2, qr/leave one out/, 'info', '--removed', '-0', '--json', $image);
}

# keys that a line cannot hold

for (["a\nb", '', qr/the removed key "a\\x0ab" contains a line end/],
     ["a\r", '', qr/the removed key "a\\x0d" contains a line end/],
     ["a\0b", '-0', qr/the removed key "a\\x00b" contains a zero byte/])
{
    my ($key, $option, $why) = @$_;
    my $odd = image_with('odd.bloom', ['x'], ['fine', $key]);

    is(tool(2, $why, 'info', '--removed', $option || (), $image, $odd), '',
       'info prints no key if one cannot be printed');
    is((json_lines(tool(0, undef, 'info', '--removed', '--json', $odd)))[1]
       ->{key}, $key, 'info --json prints any key');
}

is(tool(0, undef, 'info', '--removed',
        image_with('gzip.bloom', ['x'], ["\x1f\x8bx"])), "\n\x1f\x8bx\n",
   'an empty key precedes a key that looks like gzip');


# ---- test and verify ----

is(tool(1, undef, 'test', $image, qw(a b c d)),
   "present a\npresent b\nabsent c\nabsent d\n",
   'test answers that a removed key is absent');

{
    my $url = image_with('url.bloom', ['http://a.b.example/x', 'b.example/'],
                         ['a.b.example/x'], '--form', 'url');

    is(tool(0, undef, 'test', '--json', $url, 'http://a.b.example/x')
       =~ /"expression":"([^"]*)"/ && $1, 'b.example/',
       'test finds another expression of a removed key');
    is(tool(1, undef, 'test', image_with('all.bloom',
                ['http://a.b.example/x', 'b.example/'],
                ['a.b.example/x', 'b.example/'], '--form', 'url'),
            'http://a.b.example/x'), "absent http://a.b.example/x\n",
       'test answers absent if all expressions are removed');

    my $lower = image_with('lower.bloom', ['Ab'], ['ab'], '--form', 'lower');

    is(tool(1, undef, 'test', $lower, 'AB'), "absent AB\n",
       'test compares the canonical key with the removed ones');
}

like(tool(0, undef, 'verify', $image), qr/, 2 removed keys$/,
     'verify states the number of removed keys');
is(json(tool(0, undef, 'verify', '--json', $image))->{removed}, 2,
   'verify --json states the number of removed keys');

{
    my $plain = content_of("$dir/removed.bloom.plain");
    my @two = ([2, 1, 'c'], [2, 1, 'd']);

    for (['a key twice', qr/has a removed key twice/,
          with_exceptions($plain, [@two, [2, 5, 'c']])],
         ['kinds of 0', qr/not valid/, with_exceptions($plain, [[0, 1, 'c']])],
         ['kinds of 8', qr/not valid/, with_exceptions($plain, [[8, 1, 'c']])],
         ['an empty key', qr/not valid/,
          with_exceptions($plain, [[2, 1, ''], [2, 1, 'cc']])],
         ['a wrong number', qr/more or fewer/,
          with_exceptions($plain, [@two, [2, 1, 'x' x 20]], n => 2)],
         ['a size that cuts an entry off', qr/not valid|not zero/,
          with_exceptions($plain, \@two, size => 22 - 1, n => 1)],
         ['a size that exceeds the entries', qr/not valid/,
          with_exceptions($plain, \@two, size => 22 + 5)],
         ['a wrong number of built exceptions', qr/more or fewer/,
          with_exceptions($plain, \@two, built => 1, built_size => 11)],
         ['a wrong size of built exceptions', qr/more or fewer/,
          with_exceptions($plain, [[1, 1, 'c'], [2, 1, 'dd']],
                          built_size => 12)],
         ['a number alone', qr/1 exceptions in 0 bytes/,
          patch_header($plain, 3584 => pack 'Q<', 1)],
         ['layers', qr/or these layers/,
          patch_header(with_exceptions($plain, \@two), 3608 => "\1")],
         ['a source without a name', qr/the name of its source/,
          patch_header(with_exceptions($plain, \@two), 3648 => "\1")],
         ['a version of 2', qr/has version 2, but this program reads version 3/,
          patch_header(with_exceptions($plain, \@two), 8 => "\2")])
    {
        my ($what, $why, $content) = @$_;
        my $file = $t->write_file('bad.bloom', $content);

        tool(1, $why, 'verify', $file);
        tool(2, $why, 'test', $file, 'a');
    }
}


# ---- add ----

{
    my $copy = copied($image, 'add.bloom');
    my $out = json(tool(0, undef, 'add', '--json', $copy,
                        { stdin => lines_of(qw(a c c e)) }));

    is($out->{lifted}, 1, 'add states how many keys are no longer removed');
    is($out->{added}, 2, 'a removed key that is added counts as added');
    is($out->{already_present}, 2, 'the other keys were present');
    is($out->{removed}, 1, 'the image has one removed key less');
    is(removed_in($copy), 'd', 'the other removed key stays removed');
    is(tool(1, undef, 'test', $copy, qw(c d e)),
       "present c\nabsent d\npresent e\n", 'an added key is present again');

    like(tool(0, undef, 'add', $copy, { stdin => "d\n" }),
         qr/: 1 key, 1 added \(of which 1 had been removed\), /,
         'add says how many keys had been removed');
    is(-s $copy, -s "$dir/removed.bloom.plain",
       'an image without removed keys has no section for them');

    like(tool(0, undef, 'add', $image, { stdin => "a\n" }), qr/: 1 key, 0 added/,
         'add of a present key adds none');
    is(removed_in($image), 'c d', 'the removed keys remain then');

    my $left = copied($image, 'without.bloom');

    $t->write_file('left-out.txt', "c\n");
    tool(0, undef, 'add', '--without', "$dir/left-out.txt", $left,
         { stdin => lines_of(qw(c d)) });
    is(removed_in($left), 'c', 'a key that add leaves out stays removed');
}


# ---- merge ----

{
    my @like = ('--like', "$dir/removed.bloom.plain");
    my $has_c = $t->build_image('has-c.bloom', ['c', 'x'], @like);
    my $other = $t->build_image('other.bloom', ['y'], @like);
    my $same = image_with('same.bloom', ['c', 'd', 'z'], ['d'], @like);

    my $merged = sub {
        my @images = @_;
        my $out = json(tool(0, undef, 'merge', '--json', '-o',
                            "$dir/merged.bloom", @images));

        return "$out->{removed} $out->{lifted}: "
               . removed_in("$dir/merged.bloom");
    };

    is($merged->($image, $other), '2 0: c d',
       'merge keeps keys that other images do not have removed');
    is($merged->($other, $image), '2 0: c d',
       'merge keeps the removed keys of any image');
    is($merged->($image, $has_c), '1 1: d',
       'a key that another image has is no longer removed');
    is($merged->($has_c, $image), '1 1: d',
       'the order of the images does not matter');
    is($merged->($image, $same), '1 1: d',
       'a key that is removed in both images stays removed');
    is(tool(1, undef, 'test', "$dir/merged.bloom", qw(a b c d z)),
       "present a\npresent b\npresent c\nabsent d\npresent z\n",
       'the merged image has each key that is present in some image');
    is($merged->($image, $t->build_image('cd.bloom', ['c', 'd'], @like)),
       '0 2: ', 'all removed keys may be present in another image');
    is(-s "$dir/merged.bloom", -s "$dir/removed.bloom.plain",
       'a merged image without removed keys has no section for them');

    like(tool(0, undef, 'merge', '-o', "$dir/merged.bloom", $image, $has_c),
         qr/, 1 key removed, 1 no longer removed as another image has it$/,
         'merge says how many keys are and are not removed');
}


# ---- other commands ----

{
    my $golden = "$dir/imported.bloom";

    $t->write_file('imported.bloom', image_of(read_vector(
                       "$FindBin::Bin/../golden/exceptions-imported.txt")));

    tool(2, qr/has 3 exceptions, such as removed keys, which the format guava cannot/,
         'export', '--to', 'guava', '-o', "$dir/x.guava", $golden);
    ok(!-e "$dir/x.guava", 'export of removed keys writes nothing');

    $t->write_file('keys', tool(0, undef, 'info', '--exceptions', '--json',
                                $golden));
    is(json(tool(0, undef, 'add', '--from', 'json', '--json', $golden,
                 "$dir/keys"))
       ->{lifted}, 2, 'the removed keys can be added as export advises');
    tool(0, undef, 'export', '--to', 'guava', '-o', "$dir/x.guava", $golden);
    ok(-s "$dir/x.guava", 'export works without removed keys');

    is(info($t->build_image('like.bloom', ['a'], '--like', $image))->{removed},
       0, 'an image built like another one has no removed keys');
    tool(1, qr/--max-loss allows/, 'build', '-q', '-o', "$dir/new.bloom",
         '--max-loss', '20%', '--replaces', $image, { stdin => "a\n" });
}

done_testing;
