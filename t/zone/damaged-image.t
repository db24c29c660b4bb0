#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload is refused if the file of a zone is not a complete, undamaged image.
# The old image continues to serve, and a good file is accepted later.

use strict;
use warnings;

use FindBin;
use POSIX ();

use BloomTest;
use BloomTest::Image qw(image_of read_vector);
use BloomTest::Zones;

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
    $reason //= '';
    like($log, qr{\[emerg\] .*image "\Q$path\E" of bloom zone "ids" .*$reason},
         "the message about $what names file and zone");
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

for my $which (qw(new old)) {
    my $good = $image{$which};
    my $size = length $good;

    # t/http/conf-errors.t has the reasons

    for (['a flipped first byte', flipped($good, 0)],
         (map { ["version $_", substr($good, 0, 8) . pack('L<', $_)
                               . substr($good, 12),
                 "has version $_, but this program reads version 3; "
                 . ($_ > 3 ? 'use a newer program' : 'build it again')] }
              1, 2, 4),
         ['a flipped bit in the header', flipped($good, 140)],
         ['a flipped bit in reserved bytes of the header',
          flipped($good, 3000)],
         ['a flipped bit in the table', flipped($good, 4096)],
         ['a flipped bit in the padding of the table', flipped($good, 8191)],
         ['a flipped first byte of the payload', flipped($good, 8192)],
         ['a flipped bit in the second chunk of the payload',
          flipped($good, 8192 + 1_500_000), '1056768 to 2105343'],
         ['a flipped last byte of the payload', flipped($good, $size - 1)],
         ['a missing last byte', substr($good, 0, -1)],
         ['a missing second half', substr($good, 0, $size / 2)],
         ['a truncated header', substr($good, 0, 100)],
         ['an additional last byte', "$good\0"],
         ['foreign bytes in the middle',
          substr($good, 0, 1_000_000) . "\xaa" x 4096
              . substr($good, 1_004_096)])
    {
        my ($what, $content, $reason) = @$_;

        install($content);
        refused("$what of the $which image", $reason);
    }
}


install('');
refused('an empty file');

install("new1\nnew2\n");
refused('a text file');

install("\0" x 10_000);
refused('a file of zeros');

install(image_of(read_vector("$FindBin::Bin/../golden/slices.txt")));
refused('a checkpoint of a zone whose keys expire',
        'is a checkpoint of a zone whose keys expire, and only that zone can '
        . 'load it; use another image');

install(undef);
refused('a missing file');

mkdir $path or die "mkdir: $!";
refused('a directory');

install(undef);
POSIX::mkfifo($path, 0600) or die "mkfifo: $!";
refused('a FIFO');

install(undef);
symlink "$dir/nowhere", $path or die "symlink: $!";
refused('a dangling symbolic link');


# the file is damaged in place after it was accepted

install($image{old});
$t->reload;
flip($path, -1);
refused('an image damaged in place');
flip($path, -1);
$t->reload;
is(ask($t, 'ids', @old, @new), "$all$none",
   'an image that is repaired in place is accepted');

install($image{new});
$t->reload;
is(ask($t, 'ids', @old, @new), "$none$all", 'a good new image is accepted');


done_testing;
