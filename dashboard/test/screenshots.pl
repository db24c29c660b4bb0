#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# screenshots.pl DIRECTORY: takes the screenshots of `make screenshots`.  They
# show the page with the nginx and the zones of the tests: light, dark, on a
# phone, and on a bad day.  pngquant makes them smaller.

use strict;
use warnings;

use Test::Builder;
use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Scene;

my ($directory) = @ARGV or die "usage: $0 DIRECTORY\n";

Test::Builder->new->no_ending(1);

for my $day ('good', 'bad') {
    my $t = BloomTest->new;

    scene($t, $day eq 'bad' ? bad_day($t) : ());
    $t->run;
    worsen($t) if $day eq 'bad';

    my $status = browse($t, 'screenshots.mjs', sub { print "$_[0]\n"; return },
                        $directory, $day);

    $t->stop;
    die "screenshots.mjs ended with status $status\n" if $status != 0;
}

for my $picture (glob "$directory/*.png") {
    my ($exit, $out, $err) =
        run_command(['pngquant', '--force', '--strip', '--ext', '.png', '64',
                     $picture]);
    die "pngquant failed on $picture ($exit): $err" if $exit != 0;
}
