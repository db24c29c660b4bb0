#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A message about a file with a very long name is cut off at the end of its
# buffer, within the name or within the system's reason behind it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('image.bloom', ['id1']);

# names so long that the buffer ends before, in and behind the system's reason

my $deep = $dir;
for my $length (200, 380) {
    $deep .= '/' . 'd' x ($length - length($deep) - 1);
    mkdir $deep or die "mkdir $deep: $!";
}

my @lengths = (400, 430, 435, 462 .. 469, 490);
my %file = map { $_ => "$deep/" . 'f' x ($_ - length("$deep/")) } @lengths;

for (values %file) {
    link "$dir/image.bloom", $_ or die "link $_: $!";
}

my @zones = map { "zone=z$_ file=$file{$_}" } @lengths;

configure($t, \@zones, api => 1);
$t->run;

for my $length (@lengths) {
    unlink $file{$length} or die "unlink: $!";

    my $r = api($t, POST => "zones/z$length/reload");
    my ($message) = ($r->json->{error} // {})->{message} // $r->body;

    like($message, qr/^image "\Q$file{$length}\E/,
         "the message names the missing file with a path of $length bytes");
    cmp_ok(length $message, '<', 512,
           "the message about a path of $length bytes is cut off");
    is(ask($t, "z$length", 'id1', 'no'), '10',
       "the image whose path has $length bytes continues to serve");

    like($message, qr/ cannot be opened; put .* \(2: No such file or directory\)$/,
         'the message ends with the reason if that fits') if $length == 400;
}

$t->expect_log(qr/image ".*" of bloom zone "z4\d\d"/);

$t->stop;


subtest 'a start finds an unusable checkpoint with a long path' => sub {
    my $state = "$deep/" . 's' x 100;

    configure($t, ['zone=seen capacity=1k fpr=1e-6'], api => 1, add => 1,
              http => "bloom_state_path $state;");
    $t->run;
    add($t, 'seen', ['added']);
    is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
       'a checkpoint is written');
    $t->stop;

    my ($checkpoint) = files("$state/seen/checkpoint.*");
    unlink $checkpoint or die "unlink: $!";
    symlink "$dir/nowhere", $checkpoint or die "symlink: $!";

    $t->expect_log(qr/\[warn\] .*checkpoint "\Q$state\E/);
    $t->run;
    is(ask($t, 'seen', 'id1', 'added'), '01',
       'nginx starts without an unusable checkpoint that has a long path');
};


done_testing;
