#!/usr/bin/perl

# What an error says of a file may be longer than there is room for, with the
# system's reason behind it: it is cut off, wherever the room ends.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('image.bloom', ['id1']);

# names so long that the message ends before, in and behind the last bytes

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
         "a name of $length bytes is not there");
    cmp_ok(length $message, '<', 512, 'the message has an end');
    is(ask($t, "z$length", 'id1', 'no'), '10', 'the image serves on');

    like($message, qr/ cannot be opened \(2: No such file or directory\)$/,
         'with the reason') if $length == 400;
}

$t->expect_log(qr/image ".*" of bloom zone "z4\d\d"/);

$t->stop;


subtest 'at a start' => sub {
    my $state = "$deep/" . 's' x 100;
    my $checkpoint = "$state/seen/checkpoint." . '0' x 32 . '.'
                     . '0' x 15 . '1.bloom';

    mkdir $_ or die "mkdir $_: $!" for $state, "$state/seen";
    symlink "$dir/nowhere", $checkpoint or die "symlink: $!";

    configure($t, ['zone=seen capacity=1k fpr=1e-6'], add => 1,
              http => "bloom_state_path $state;");
    $t->expect_log(qr/\[warn\] .*image "\Q$state\E/);
    $t->run;
    is(ask($t, 'seen', 'id1'), '0', 'an unusable checkpoint is left out');
};


done_testing;
