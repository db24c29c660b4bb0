#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the tool with images that only nginx writes.  A copy of a zone is an image
# like any other, but what the tool makes of it is no copy any more.  A checkpoint
# of a zone whose keys expire is refused.  t/golden/write_image.pl makes both.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Image qw(image_of read_vector);
use BloomTest::Tool qw(content_of info present tool tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub golden {
    my ($name) = @_;

    return $t->write_file("$name.bloom", image_of(
        read_vector("$FindBin::Bin/../golden/$name.txt")));
}

# Returns what an image says about the zone that it is a copy of.

sub copied { return unpack 'x3504 a80', content_of($_[0]) }


my $copy = golden('copy');

like(copied($copy), qr/[^\0]/, 'the copy of a zone says so');
tool_ok('verify', $copy);
is(present($copy, qw(one two three)), 2, 'its keys are present');
is(info($copy)->{removed}, 1, 'its removed keys are known');

tool_ok('merge', '-o', "$dir/merged.bloom", $copy, $copy);
is(copied("$dir/merged.bloom"), "\0" x 80, 'a merged image is no copy');
is(present("$dir/merged.bloom", qw(one two three)), 2,
   'the merged image has its keys');

tool_ok('add', $copy, { stdin => "four\n" });
is(copied($copy), "\0" x 80, 'an image to which keys were added is no copy');
is(present($copy, qw(one two three four)), 3, 'it has the added key');


my $ring = golden('slices');
my $plain = $t->build_image('plain.bloom', ['one']);
my $bytes = content_of($ring);

for (['info'], ['info', '--exceptions'], ['verify'],
     ['verify', '--not-older-than', undef, $plain], ['test', undef, 'one'],
     ['add'], ['merge', '-o', "$dir/no", $plain],
     ['merge', '-o', "$dir/no", undef, $plain],
     ['build', '-o', "$dir/no", '--like'],
     ['build', '-o', "$dir/no", '--max-loss', '1%', '--replaces', undef],
     ['export', '--to', 'bitmap', '--key', 'k', '-o', "$dir/no"])
{
    my ($command, @rest) = @$_;
    my @operands = map { $_ // $ring } @rest;

    push @operands, $ring if !grep { $_ eq $ring } @operands;

    tool(2, qr/\Q$ring\E: is a checkpoint of a zone whose keys expire, and only that zone can load it; use another image$/m,
         $command, @operands, { stdin => "one\n" });
    ok(!-e "$dir/no", "$command writes no file");
}

ok(content_of($ring) eq $bytes, 'the checkpoint is unchanged');

done_testing;
