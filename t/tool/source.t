#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests sources and positions that images state: "build", "add" and "merge" write
# them, "info" shows them, other commands keep them, and the second writer makes
# the same bytes.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Image qw(image_of patch_header read_vector);
use BloomTest::Tool qw(content_of info json lines_of present tool tool_ok
                       tool_test);

my $t = tool_test();
my $dir = $t->testdir;

use constant MAX => '18446744073709551615';

sub build {
    my ($name, $keys, @options) = @_;

    my $image = "$dir/$name.bloom";
    tool_ok('build', '-q', '-o', $image, @options, '--allow-empty',
            { stdin => lines_of(@$keys) });

    return $image;
}

sub add {
    my ($image, $keys, @options) = @_;

    return json(scalar tool_ok('add', '--json', @options, $image,
                               { stdin => lines_of(@$keys) }));
}

# Returns the source and the position that info shows.

sub stated {
    my ($image) = @_;

    return [@{ info($image) }{qw(source source_position)}];
}


# ------------------------------------------------------------------- build

for (['ids=5', 'ids', '5'],
     ['ids=1700000000000-3', 'ids', '1700000000000-3'],
     ['ids=0', 'ids', '0'],
     ['ids=7-0', 'ids', '7'],
     ['a=' . MAX . '-' . MAX, 'a', MAX . '-' . MAX],
     ['redis:6379/Ids_1.a-b=1', 'redis:6379/Ids_1.a-b', '1'],
     ['n' x 255 . '=1', 'n' x 255, '1'])
{
    my ($option, @expected) = @$_;
    my $image = build('built', ['one'], '--source', $option);

    is_deeply(stated($image), \@expected,
              "info --json has the source of --source " . substr $option, 0, 40);
    is(present($image, 'one'), 1, 'its key is present');

    my $text = tool_ok('info', $image);
    like($text, qr/^source +\Q$expected[0]\E, up to position \Q$expected[1]\E$/m,
         'info shows the source and the position');
}

{
    my $image = build('plain', ['one']);

    is_deeply(stated($image), [undef, undef],
              'without --source, both members are null');
    unlike(scalar tool_ok('info', $image), qr/^source/m,
           'without --source, info has no line of it');
}

for ('', 'ids', '=5', 'ids=', 'ids=-1', 'ids=1-', 'ids=1-2-3', 'ids= 1',
     'ids=1 ', 'ids=+1', 'ids=0x1', 'ids=18446744073709551616',
     'ids=1-18446744073709551616', 'i ds=1', 'i=ds=1', "i\nds=1",
     "\xc3\xa4=1", 'n' x 256 . '=1')
{
    tool(2, qr/--source.*must be the name of a source and a position/s,
         'build', '-o', "$dir/refused.bloom", '--source', $_,
         { stdin => "one\n" });
    ok(!-e "$dir/refused.bloom", 'a refused --source leaves no image');
}

{
    my $like = build('like', ['one'], '--source', 'ids=5');

    is_deeply(stated(build('new', ['two'], '--like', $like)), [undef, undef],
              'a new image like another one does not have its source');
    is_deeply(stated(build('new', ['two'], '--like', $like, '--source',
                           'other=6')),
              ['other', '6'], 'it has the source of --source');
}


# --------------------------------------------------------------------- add

{
    my $image = build('added', ['one'], '--source', 'ids=5-1');

    add($image, ['two']);
    is_deeply(stated($image), ['ids', '5-1'], 'an addition keeps the source');

    my $result = add($image, ['three'], '--source', 'ids=5-2');
    is_deeply([@$result{qw(source source_position)}], ['ids', '5-2'],
              'add --source states a later position in its JSON');
    is_deeply(stated($image), ['ids', '5-2'],
              'add --source states a later position in the image');
    is(present($image, qw(one two three)), 3, 'all keys are present');

    my $bytes = content_of($image);

    $result = add($image, [], '--source', 'ids=5-2');
    ok(!$result->{written} && content_of($image) eq $bytes,
       'the same position without keys leaves the image unchanged');

    for ('ids=5-1', 'ids=5', 'ids=4-9', 'other=6', 'id=6', 'ids2=6') {
        tool(2, qr/added\.bloom: already has the changes of ids up to position 5-2, which is later than --source, or of another source; leave out --source/,
             'add', '--source', $_, $image, { stdin => "four\n" });
        ok(content_of($image) eq $bytes,
           "add --source $_ leaves the image unchanged");
    }

    $result = add($image, [], '--source', 'ids=6');
    ok($result->{written}, 'a later position without keys is written');
    is_deeply(stated($image), ['ids', '6'], 'the image states it');

    my $plain = build('plain', ['one']);
    add($plain, [], '--source', 'ids=0');
    is_deeply(stated($plain), ['ids', '0'],
              'add --source states the source of an image without one');
    is(present($plain, 'one'), 1, 'its key is still present');
}


# ------------------------------------------------------------------- merge

{
    my %image = map {
        my ($name, $source) = @$_;
        $name => build($name, [$name], '-n', 1000, '--seed', 1,
                       $source ? ('--source', $source) : ());
    } ['five', 'ids=5-7'], ['six', 'ids=6-0'], ['more', 'ids=5-10'],
      ['other', 'other=5'], ['none'];

    for (['five six', 'ids', '5-7'], ['six five', 'ids', '5-7'],
         ['six more five', 'ids', '5-7'], ['six more', 'ids', '5-10'],
         ['five five', 'ids', '5-7'], ['five other', undef, undef],
         ['other five', undef, undef], ['five none', undef, undef],
         ['none five', undef, undef], ['five other six', undef, undef],
         ['five none five', undef, undef])
    {
        my ($names, @expected) = @$_;
        my @names = split ' ', $names;
        my $result = json(scalar tool_ok('merge', '--json', '-o',
                                         "$dir/merged.bloom",
                                         @image{@names}));

        is_deeply([@$result{qw(source source_position)}], \@expected,
                  "merge --json has what the images $names have in common");
        is_deeply(stated("$dir/merged.bloom"), \@expected,
                  "the merged image of $names states it");
        is(present("$dir/merged.bloom", @names), scalar @names,
           "the merged image of $names has their keys");
    }
}


# ---------------------------------------------------- the second writer

for my $name (qw(source source-longest)) {
    my $v = read_vector("$FindBin::Bin/../golden/$name.txt");
    my $image = $t->write_file("$name.bloom", image_of($v));
    my $position = join '-', $v->{position}[1] ? @{ $v->{position} }
                                               : $v->{position}[0];

    is_deeply(stated($image), [$v->{source}, $position],
              "the tool reads the source of the golden image $name");
    tool_ok('verify', $image);

    add($image, ['added.example']);
    is_deeply(stated($image), [$v->{source}, $position],
              "an addition keeps the source of $name");
    is(present($image, 'added.example'), 1, "the added key of $name is present");
}

# a header's bytes are hostile

{
    my $good = content_of("$dir/source.bloom");

    for (['other characters', 3652, "\e[2J"],
         ['has 4294967295 bytes', 3648, "\xff" x 4],
         ['bytes after the name', 3652 + 200, 'x'],
         ['position of a source without a name', 3648, "\0" x 259])
    {
        my ($what, $at, $bytes) = @$_;
        my $bad = $t->write_file('bad.bloom', patch_header($good, $at, $bytes));

        my ($exit, $out, $err) = $t->run_tool('info', $bad);
        is($exit, 2, "an image whose header has $what is refused");
        like($err, qr/bad\.bloom is invalid: .*\Q$what\E|bad\.bloom: is invalid.*\Q$what\E/s,
             'the message says so');
        unlike($out . $err, qr/\e/, 'nothing of it reaches the terminal');
    }
}

done_testing;
