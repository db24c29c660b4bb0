#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone takes the memory of one image, and of a second one only during a load.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

small_pages(1);

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to fill all shared memory at start');

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6', '-n', 2_000_000);
$t->build_image('two.bloom', \@others, '-p', '1e-6', '-n', 1_900_000);

my %size = map { $_ => -s "$dir/$_.bloom" } qw(one two);

# Tests that a zone uses the memory of one image.  The slab allocator's
# descriptors and the control block take at most 1 % of a zone.

sub one_image {
    my ($image, $what) = @_;

    # not the memory of the counters, which has room for a thousand processes
    # and is mostly never touched

    my ($zone) = grep { $_->{size} > 2 * $size{$image}
                        && $_->{size} < 3 * $size{$image} }
                      zone_memory($t->master);
    ok($zone, "the zone has room for two of image $image") or return;

    my $percent = 100 * $zone->{resident} / $size{$image};

    ok($percent > 98 && $percent < 104, $what)
        or diag("$percent % of the image's size are resident");
}


install_image($t, 'one');
configure($t, ["zone=ids file=ids.bloom removals=0"], workers => 2);
$t->run;
zone_memory($t->master)
    or plan(skip_all => 'not allowed to look into /proc/PID/map_files; run as'
                        . ' root');

is(ask($t, 'ids', @ids, @others), "$all$none", 'image one serves');
one_image('one', 'the zone has one image in memory after the start');

$t->reload;
one_image('one',
          'the zone has one image in memory after a reload without a change');

for my $image (qw(two one two)) {
    install_image($t, $image);
    $t->reload;
    one_image($image,
              "the zone has one image in memory after a reload with image"
              . " $image");
}

is(ask($t, 'ids', @ids, @others), "$none$all", 'the last image serves');


subtest 'a reload is refused' => sub {
    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', $t->read_file('one.bloom'));
    flip("$dir/ids.bloom", -1);
    $t->reload_fails;
    one_image('two', 'the zone keeps no memory of a damaged image');

    install_image($t, 'one');
    configure($t, ["zone=ids file=ids.bloom removals=0"],
              http => "server { listen unix:$dir/none/socket; }");
    like($t->reload_fails, qr/bind\(\)/,
         'a reload is refused after the image was loaded');
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the old image continues to serve');

    install_image($t, 'two');
    configure($t, ["zone=ids file=ids.bloom removals=0"]);
    $t->reload;
    one_image('two',
              'the next reload gives back the memory of the image that never'
              . ' served');
};


subtest 'a zone starts empty' => sub {
    configure($t, ["zone=seen capacity=2m fpr=1e-6 removals=0"]);
    $t->stop;
    $t->run;

    my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);
    cmp_ok($zone->{resident}, '<', $zone->{size} / 50,
           'an empty zone takes no memory before a key is added');
};


done_testing;
