#!/usr/bin/perl

# A file that is not a whole image refuses the reload, wherever it is damaged:
# the old image serves on, and a good file is accepted afterwards.

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
         "$what: file, zone and reason are named");
    unlike($log, qr/serves generation/, 'nothing else serves');
    is(ask($t, 'ids', @old, @new), "$all$none", 'the old image serves on');
}


install($image{old});
configure($t, ['zone=ids file=ids.bloom']);
$t->run;
is(ask($t, 'ids', @old, @new), "$all$none", 'the old image serves');

my $sum = qr/is damaged: the checksum of/;

for my $which (qw(new old)) {
    my $good = $image{$which};
    my $size = length $good;

    for (['first byte', flipped($good, 0),
          qr/is not a Bloom filter image/],
         ['version', substr($good, 0, 8) . "\2\0\0\0" . substr($good, 12),
          qr/is of version 2 and this program reads up to version 1/],
         ['header', flipped($good, 140), qr/$sum its header/],
         ['reserved bytes of the header', flipped($good, 3000),
          qr/$sum its header/],
         ['table', flipped($good, 4096), qr/$sum its table/],
         ['padding of the table', flipped($good, 8191), qr/$sum its table/],
         ['first byte of the payload', flipped($good, 8192),
          qr/$sum bytes 8192 to 1056767\b/],
         ['second chunk of the payload', flipped($good, 8192 + 1_500_000),
          qr/$sum bytes 1056768 to 2105343\b/],
         ['last byte of the payload', flipped($good, $size - 1),
          qr/$sum bytes \d+ to @{[$size - 1]}\b/],
         ['last byte missing', substr($good, 0, -1),
          qr/is truncated: it has @{[$size - 1]} bytes .* $size/],
         ['half of it missing', substr($good, 0, $size / 2),
          qr/is truncated/],
         ['a piece of the header', substr($good, 0, 100), qr/is truncated/],
         ['a byte too many', "$good\0", qr/is longer than it says/],
         ['a foreign page in the middle',
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
refused('a text', qr/is not a Bloom filter image/);

install("\0" x 10_000);
refused('zeros', qr/is not a Bloom filter image/);

install(undef);
refused('a missing file', qr/cannot be opened \(2: /);

mkdir $path or die "mkdir: $!";
refused('a directory', qr/is not a regular file/);

install(undef);
POSIX::mkfifo($path, 0600) or die "mkfifo: $!";
refused('a FIFO', qr/is not a regular file/);

install(undef);
symlink "$dir/nowhere", $path or die "symlink: $!";
refused('a dangling link', qr/cannot be opened \(2: /);


# a file damaged where it lies, after it was accepted

install($image{old});
$t->reload;
flip($path, -1);
refused('an image damaged in place', qr/$sum bytes/);
flip($path, -1);
$t->reload;
is(ask($t, 'ids', @old, @new), "$all$none", 'mended in place it is accepted');

install($image{new});
$t->reload;
is(ask($t, 'ids', @old, @new), "$none$all", 'a good image is accepted');


done_testing;
