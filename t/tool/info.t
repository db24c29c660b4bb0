#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom info" shows the headers of images.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Tool qw(copy_with example_image header json json_lines members_are near
                       tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my $ids = example_image('ids');
my $classic = example_image('classic');
my $siphash = example_image('siphash');

{
    my $header = header($ids);
    my $info = json(tool(0, undef, 'info', '--json', $ids));

    members_are('info --json has the numbers of the header', $info,
                map { $_ => $header->{$_} }
                    qw(version bits k lines seed capacity fpr items build_id));
    members_are('info --json has what the build was told', $info,
                file => $ids, size_bytes => -s $ids, capacity => 2000,
                items => 1000, seed => 4294967295, layout => 'blocked',
                hash => 'murmur3', form => 'raw',
                as_of => '2020-01-31T12:00:00.250Z');
    is($header->{as_of}, 1580472000250, 'the header has as_of in milliseconds');
    is($info->{created},
       POSIX::strftime('%Y-%m-%dT%H:%M:%S', gmtime($header->{created} / 1000))
       . sprintf('.%03dZ', $header->{created} % 1000),
       'info --json shows when the image was created');
    ok(!$info->{items_estimated},
       'info --json says that the items of a build are not estimated');
    near($info->{bits_per_item}, $header->{bits} / 1000,
         'info --json has the bits for each item');
    ok($info->{estimated_fpr} > 0 && $info->{estimated_fpr} < 1e-4,
       'a half full image is estimated to err much less than promised');

    my $text = tool(0, undef, 'info', $ids);

    for ([file => $ids], [size => qr/\S+ KiB \($info->{size_bytes} bytes\)/],
         ['format version' => 3], ['build id' => $info->{build_id}],
         [created => $info->{created}], ['complete as of' => $info->{as_of}],
         [layout => "blocked, $info->{bits} bits, k $info->{k}, lines 1"],
         [hash => 'murmur3, seed 4294967295'], ['key form' => 'raw'],
         [capacity => '2000 keys at a false-positive rate of 0.1 %'],
         [items => '1000'],
         ['estimated rate' => qr/0\.\S+ % with these items/])
    {
        my ($name, $value) = @$_;
        $value = quotemeta $value unless ref $value;
        like($text, qr/^$name +$value$/m, "info prints \"$name\" as text");
    }
}

{
    my $info = json(tool(0, undef, 'info', '--json', $classic));

    members_are('info --json describes a classic image', $info,
                layout => 'classic', lines => 0, as_of => undef);

    my $text = tool(0, undef, 'info', $classic);

    like($text, qr/^complete as of +not stated$/m,
         'info says "not stated" where as_of is not');
    like($text, qr/^layout +classic, \d+ bits, k \d+$/m,
         'info prints no lines of a classic image');
}

{
    my $json = tool(0, undef, 'info', '--json', $siphash);
    my $text = tool(0, undef, 'info', $siphash);

    members_are('info --json has no secret key of siphash', json($json),
                hash => 'siphash', seed => undef, lines => 2);
    like($text, qr/^hash +siphash, key secret$/m,
         'info says that the key of siphash is a secret');
    # the seed of this example begins with 00112233

    unlike($json . $text, qr/00112233|1100|3322/,
           'the key of siphash is nowhere in the output of info');
}

{
    my @info = json_lines(tool(0, undef, 'info', '--json', $ids, $classic));

    is(join(' ', map { $_->{file} } @info), "$ids $classic",
       'info --json prints an object a line for several images');

    my $out = tool(2, qr/^ngx-bloom info: \Q$dir\E\/missing: /, 'info',
                   "$dir/missing", $ids);
    like($out, qr/^items +1000$/m,
         'info continues after an image that is missing');

    copy_with('ids.bloom', 'payload.bloom', sub { substr($_[0], -1) ^= "\1" });
    tool(0, undef, 'info', "$dir/payload.bloom");

    my $name = "$dir/a\"b\xff.bloom";
    rename copy_with('ids.bloom', 'odd.bloom', sub { }), $name;
    is(json(tool(0, undef, 'info', '--json', $name))->{file},
       "$dir/a\"b\x{fffd}.bloom",
       'info --json makes a file name that is not UTF-8 valid');

    tool(2, qr/no image is named/, 'info');
}

done_testing;
