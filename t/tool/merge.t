#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom merge" makes one image that has the keys of several.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(copy_with copy_with_header count_bits example_image
                       example_keys header json near payload text_line
                       tool tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my $ids = example_image('ids');
my $siphash = example_image('siphash');
my $damaged = copy_with('ids.bloom', 'damaged-last',
                        sub { substr($_[0], -1) ^= "\x80" });


# Builds an image of the keys $from to $to that can be merged with ids.bloom.

sub like_ids {
    my ($name, $from, $to, @options) = @_;

    return $t->build_image($name, [map { "key-$_" } $from .. $to], '--like',
                           $ids, @options);
}

{
    my $more = like_ids('more.bloom', 501, 1500);
    my $both = like_ids('both.bloom', 1, 1500);
    my $merged = "$dir/merged.bloom";

    my $out = tool(0, undef, 'merge', '-o', $merged, $ids, $more);
    my $header = header($merged);

    ok($header->{payload} eq (payload($ids) | payload($more)),
       'a merged image has the bits of both images');
    ok($header->{payload} eq payload($both),
       'a merged image has the bits of an image of all keys');
    is(tool(0, undef, 'verify', '-q', $merged), '',
       'verify finds a merged image good');
    is(tool(0, undef, 'test', '-c', $merged,
            { stdin => join "\n", map { "key-$_" } 1 .. 1500 }),
       "1500 present, 0 absent\n",
       'all keys of both images are present in the merged one');

    is($header->{$_}, header($ids)->{$_},
       "a merged image has the $_ of the first one")
        for qw(layout bits k lines hash seed capacity fpr);
    isnt($header->{build_id}, header($_)->{build_id},
         'a merged image has a build id of its own')
        for $ids, $more;
    is($header->{flags}, 1,
       'the items of a merged image are marked as estimated');
    is($header->{as_of}, 0,
       'a merged image states no as_of where one image does not state it');

    my $info = json(tool(0, undef, 'info', '--json', $merged));
    ok($info->{items_estimated},
       'info --json says that the items of a merged image are estimated');
    ok(abs($info->{items} - 1500) < 6 * $info->{items_error},
       'the estimate of the items of a merged image is about'
       . ' right') or diag($info->{items});
    like($out, text_line("$merged: 2 images, $info->{items} +- %% distinct,"
                         . ' blocked, %% KiB, false-positive rate now %% %,'
                         . ' at capacity 0.1 %'),
         'merge prints the number of images, the items and the rate');
    like(tool(0, undef, 'info', $merged),
         qr/^items +$info->{items}, estimated, \+- \d+$/m,
         'info prints the items of a merged image as an estimate');

    my $result = json(tool(0, undef, 'merge', '--json', '--output',
                           "$dir/again.bloom", $more, $ids));
    is($result->{items}, $info->{items},
       'merge counts the same items in another order of the images');
    is($result->{file}, "$dir/again.bloom", 'merge --json names the file');
    is($result->{size_bytes}, -s $merged,
       'merge --json states the size of the file');
    is($result->{images}, 2, 'merge --json has the number of images');
    is($result->{build_id}, header("$dir/again.bloom")->{build_id},
       'merge --json has the build id');
    ok(payload("$dir/again.bloom") eq $header->{payload},
       'the order of the images makes no difference to the bits');

    # an image merged with itself, or with a part of it, is unchanged

    is(tool(0, undef, 'merge', '-q', '-o', "$dir/again.bloom", $ids, $ids), '',
       'merge -q prints nothing');
    ok(payload("$dir/again.bloom") eq payload($ids),
       'an image merged with itself has its own bits');

    # the output is one of the images

    my $own = copy_with('more.bloom', 'own.bloom', sub { });
    tool(0, undef, 'merge', '-o', $own, $own, $ids);
    ok(payload($own) eq $header->{payload},
       'merge may replace one of its images');

    # the bits are the OR of the bits of all images

    my @parts = map { like_ids("part-$_", 100 * $_ + 1, 100 * $_ + 100) }
                    0 .. 14;
    like(tool(0, undef, 'merge', '-o', "$dir/again.bloom", @parts),
         qr/: 15 images, /, 'merge says that it has merged fifteen images');
    ok(payload("$dir/again.bloom") eq $header->{payload},
       'fifteen parts merged have the bits of the whole');
}

# Images need not fit into memory.

SKIP: {
    skip 'the sanitizers need more address space than that', 2
        if $ENV{TEST_NGINX_SANITIZED};

    my $large = $t->build_image('large', ['a'], '-n', '60m');
    my $more = $t->build_image('large-more', ['b'], '--like', $large);

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -v 98304 && exec "$@"', 'sh', tool_path(),
         'merge', '-q', '-o', "$dir/large-both", $large, $more]);
    is($exit, 0, 'merge joins two images of 112 MiB with 96 MiB of memory')
        or diag($err);
    is(tool(0, undef, 'test', '-c', "$dir/large-both", 'a', 'b'),
       "2 present, 0 absent\n",
       'all keys are present in the image merged with little memory');

    unlink $large, $more, "$dir/large-both";
}

# Images of several chunks.

{
    my @numbers = map { $t->build_image("$_.numbers", [$_ .. $_ + 999], '-n',
                                        '1500k', '--seed', '1') } 1000, 5000;
    my $both = $t->build_image('both.numbers', [1000 .. 1999, 5000 .. 5999],
                               '--like', $numbers[0]);
    my $merged = "$dir/merged.numbers";

    cmp_ok(-s $both, '>', 2 << 20, 'the image that is merged has three chunks');

    tool(0, undef, 'merge', '-q', '-o', $merged, @numbers);
    ok(payload($merged) eq payload($both), 'merge joins images chunk by chunk');
    is(tool(0, undef, 'test', '-c', $merged,
            { stdin => join "\n", 1000 .. 1999, 5000 .. 5999 }),
       "2000 present, 0 absent\n",
       'test finds the keys of every chunk of a merged image');

    my $found = json(tool(0, undef, 'verify', '--json', $merged));
    near($found->{fill_ratio},
         count_bits(payload($both)) / header($both)->{bits},
         'verify counts the bits of every chunk of a merged image');

    my $size = -s $merged;
    my $damaged = copy_with('merged.numbers', 'damaged.numbers',
                            sub { substr($_[0], -1) ^= "\1" });
    my $message = text_line("ngx-bloom verify: $damaged: is damaged: the"
                            . ' checksum of bytes ' . (8192 + (2 << 20))
                            . ' to ' . ($size - 1)
                            . ' differs; copy or build it again');
    tool(1, $message, 'verify', $damaged);
    is(tool(2, qr/is damaged/, 'test', $damaged, '1000'), '',
       'test gives no answer if the last chunk is damaged');
}

# The number of items is at most the sum of the items of all images.

{
    my @one = map { like_ids("one-$_.bloom", $_, $_) } 1, 2;
    my $empty = like_ids('empty.bloom', 1, 0, '--allow-empty');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", @one);
    ok(header("$dir/few.bloom")->{items} =~ /^[12]$/,
       'a merged image has no more items than its images together');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $one[0], $empty,
         $empty);
    my $header = header("$dir/few.bloom");
    is($header->{items}, 1, 'an image merged with empty ones keeps its items');
    is($header->{flags}, 0,
       'the items of an image merged with empty ones are exact');

    unlike(tool(0, undef, 'merge', '-o', "$dir/few.bloom", $one[0], $empty),
           qr/\+-/, 'merge prints no error for items that are no estimate');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $empty,
         "$dir/merged.bloom");
    is(header("$dir/few.bloom")->{flags}, 1,
       'items remain an estimate when an empty image is merged');

    # the result has at least the items of the image that has most

    my $more = copy_with_header('ids.bloom', 'claims.bloom',
                                104 => pack 'Q<', 1200);

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $ids, $more);
    is(header("$dir/few.bloom")->{items}, 1200,
       'a merged image has no fewer items than one of its images');
}

# The result is complete as of the earliest time, if all images state one.

{
    my @dated = map { like_ids("dated-$_.bloom", 1, 9, '--as-of', $_) }
                    1_600_000_000, 1_500_000_000, 1_550_000_000;

    tool(0, undef, 'merge', '-q', '-o', "$dir/dated.bloom", @dated);
    is(header("$dir/dated.bloom")->{as_of}, 1_500_000_000_000,
       'a merged image is complete as of the earliest as_of');

    tool(0, undef, 'merge', '-q', '-o', "$dir/dated.bloom", @dated,
         "$dir/empty.bloom");
    is(header("$dir/dated.bloom")->{as_of}, 0,
       'an empty image that states no as_of leaves the merged one without');
}

# More keys than the capacity.

{
    my $full = like_ids('full.bloom', 1001, 2400, '-q');

    like(tool(0, text_line('ngx-bloom merge: warning: %% distinct keys'
                           . ' exceed the capacity of 2000: expect a'
                           . ' false-positive rate of about %% %, not the'
                           . ' promised 0.1 %; rebuild the first image with an'
                           . ' -n for all keys, and the others with --like'),
              'merge', '-o', "$dir/over.bloom", $ids, $full),
         qr/^\Q$dir\E\/over\.bloom: 2 images, /,
         'merge makes an image of more keys than it has room for');
    tool(0, undef, 'merge', '-q', '-o', "$dir/over.bloom", $ids, $full);
}

# Images that cannot be merged: nothing is left behind.

{
    my $old = $t->write_file('old.bloom', 'as it was');

    for ([layout => '--layout', 'classic', '-n', '2k', '--seed', '4294967295'],
         [bits => '-n', '4k', '--seed', '4294967295'],
         [seed => '-n', '2k', '--seed', '4294967294'],
         [hash => '-n', '2k', '--hash', 'siphash'])
    {
        my ($what, @options) = @$_;
        my $other = $t->build_image("other-$what.bloom", ['key'], @options);

        tool(2, text_line("ngx-bloom merge: $other: cannot be merged with $ids:"
                          . " they differ in $what; rebuild it"
                          . " with \"--like $ids\""),
             'merge', '-o', $old, $ids, $other);
    }

    my $other = $t->build_image('other-sip.bloom', [example_keys()],
                                '--hash', 'siphash', '-p', '1e-6');
    tool(2, qr/they differ in seed/, 'merge', '-o', $old, $siphash, $other);
    tool(2, qr/damaged-last: is damaged/, 'merge', '-o', $old, $ids,
         "$dir/damaged-last");
    is($t->read_file('old.bloom'), 'as it was',
       'merge leaves an old file unchanged when it fails');

    tool(0, undef, 'merge', '-o', "$dir/one.bloom", $siphash);
    is(payload("$dir/one.bloom"), payload($siphash),
       'a merge of one image has its bits');

    my $twin = $t->build_image('twin.bloom', ['key'], '--like', $siphash);
    tool(0, undef, 'merge', '-o', "$dir/sip.bloom", $siphash, $twin);

    tool(2, qr/-o FILE is missing/, 'merge', $ids, $ids);
    tool(2, qr/name the images/, 'merge', '-o', $old);
    tool(2, qr/^ngx-bloom merge: \Q$dir\E\/no\/x: /, 'merge', '-o',
         "$dir/no/x", $ids, $ids);
    tool(2, qr/^ngx-bloom merge: \Q$dir\E: is a directory/, 'merge',
         '-o', $dir, $ids, $ids);

    is(join(' ', glob "$dir/*tmp-*"), '',
       'merge leaves no temporary file');
}

done_testing;
