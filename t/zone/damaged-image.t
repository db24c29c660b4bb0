#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload is refused if the file of a zone is not a complete, undamaged image.
# The old image continues to serve, and a good file is accepted later.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;
use POSIX ();

my $t = BloomTest->new;
my $dir = $t->testdir;
my $path = "$dir/ids.bloom";

my @old = keys_of('old', 30);
my @new = keys_of('new', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

# large enough for several chunks

$t->build_image('old.bloom', \@old, '-p', '1e-6', '-n', 600_000);
$t->build_image('new.bloom', \@new, '-p', '1e-6', '-n', 700_000);

my %image = map { $_ => $t->read_file("$_.bloom") } qw(old new);

sub install {
    my ($content) = @_;

    -d $path ? rmdir $path : unlink $path;
    $t->write_file('ids.bloom', $content) if defined $content;
}

sub flipped {
    my ($content, $offset) = @_;

    substr($content, $offset, 1) ^= "\1";

    return $content;
}

sub refused {
    my ($what, $reason) = @_;

    my $log = $t->reload_fails;
    like($log, qr{\[emerg\]\ .*image\ "\Q$path\E"\ of\ bloom\ zone\ "ids"
                  \ $reason}x,
         "the message about $what names file, zone and reason");
    unlike($log, qr/serves generation/,
           "no other generation serves after $what");
    is(ask($t, 'ids', @old, @new), "$all$none",
       "the old image continues to serve after $what");
}


install($image{old});
configure($t, ['zone=ids file=ids.bloom']);
$t->run;
is(ask($t, 'ids', @old, @new), "$all$none",
   'the old image serves after the start');

my $sum = qr/is damaged: the checksum of/;

for my $which (qw(new old)) {
    my $good = $image{$which};
    my $size = length $good;

    for (['a flipped first byte', flipped($good, 0),
          qr/is not a Bloom filter image/],
         ['an unsupported version',
          substr($good, 0, 8) . "\3\0\0\0" . substr($good, 12),
          qr/has version 3, but this program reads versions up to 2/],
         ['a flipped bit in the header', flipped($good, 140),
          qr/$sum its header/],
         ['a flipped bit in reserved bytes of the header', flipped($good, 3000),
          qr/$sum its header/],
         ['a flipped bit in the table', flipped($good, 4096),
          qr/$sum its table/],
         ['a flipped bit in the padding of the table', flipped($good, 8191),
          qr/$sum its table/],
         ['a flipped first byte of the payload', flipped($good, 8192),
          qr/$sum bytes 8192 to 1056767\b/],
         ['a flipped bit in the second chunk of the payload',
          flipped($good, 8192 + 1_500_000),
          qr/$sum bytes 1056768 to 2105343\b/],
         ['a flipped last byte of the payload', flipped($good, $size - 1),
          qr/$sum bytes \d+ to @{[$size - 1]}\b/],
         ['a missing last byte', substr($good, 0, -1),
          qr/is truncated: it has @{[$size - 1]} bytes, .* says $size/],
         ['a missing second half', substr($good, 0, $size / 2),
          qr/is truncated/],
         ['a truncated header', substr($good, 0, 100), qr/is truncated/],
         ['an additional last byte', "$good\0", qr/is too long/],
         ['foreign bytes in the middle',
          substr($good, 0, 1_000_000) . "\xaa" x 4096
              . substr($good, 1_004_096), qr/$sum bytes/])
    {
        my ($what, $content, $reason) = @$_;

        install($content);
        refused("$what of the $which image", $reason);
    }
}


install('');
refused('an empty file', qr/is empty/);

install("new1\nnew2\n");
refused('a text file', qr/is not a Bloom filter image/);

install("\0" x 10_000);
refused('a file of zeros', qr/is not a Bloom filter image/);

install(undef);
refused('a missing file', qr/cannot be opened \(2: /);

mkdir $path or die "mkdir: $!";
refused('a directory', qr/is not a regular file/);

install(undef);
POSIX::mkfifo($path, 0600) or die "mkfifo: $!";
refused('a FIFO', qr/is not a regular file/);

install(undef);
symlink "$dir/nowhere", $path or die "symlink: $!";
refused('a dangling symbolic link', qr/cannot be opened \(2: /);


# the file is damaged in place after it was accepted

install($image{old});
$t->reload;
flip($path, -1);
refused('an image damaged in place', qr/$sum bytes/);
flip($path, -1);
$t->reload;
is(ask($t, 'ids', @old, @new), "$all$none",
   'an image that is repaired in place is accepted');

install($image{new});
$t->reload;
is(ask($t, 'ids', @old, @new), "$none$all", 'a good new image is accepted');


done_testing;
