#!/usr/bin/perl

# What a zone costs: one image in memory, and a second only while it is
# loaded.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

# A huge page is taken whole, if the system gives any: here each byte counts.

my $small = 'huge_pages=off';

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to fill all shared memory at start');

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6', '-n', 2_000_000);
$t->build_image('two.bloom', \@others, '-p', '1e-6', '-n', 1_900_000);

my %size = map { $_ => -s "$dir/$_.bloom" } qw(one two);

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

# The slab allocator's descriptors and the control block take 1 % of a zone
# at most.

sub one_image {
    my ($image, $what) = @_;

    # the zone's, not that of the counters, which is made for a thousand
    # processes and mostly never touched

    my ($zone) = grep { $_->{size} > 2 * $size{$image}
                        && $_->{size} < 3 * $size{$image} }
                      zone_memory($t->master);
    ok($zone, 'there is a zone for two of the image') or return;

    my $percent = 100 * $zone->{resident} / $size{$image};

    ok($percent > 98 && $percent < 104, $what)
        or diag("$percent % of the image's size are resident");
}


install('one');
configure($t, ["zone=ids file=ids.bloom $small"], workers => 2);
$t->run;
zone_memory($t->master)
    or plan(skip_all => 'not allowed to look into /proc/PID/map_files; run as'
                        . ' root');

is(ask($t, 'ids', @ids, @others), "$all$none", 'an image serves');
one_image('one', 'one image is in memory after the start');

$t->reload;
one_image('one', 'and after a reload');

for my $image (qw(two one two)) {
    install($image);
    $t->reload;
    one_image($image, 'one image after a reload with another');
}

is(ask($t, 'ids', @ids, @others), "$none$all", 'which serves');


subtest 'a refused reload' => sub {
    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', $t->read_file('one.bloom'));
    flip("$dir/ids.bloom", -1);
    $t->reload_fails;
    one_image('two', 'leaves nothing of a damaged image');

    install('one');
    configure($t, ["zone=ids file=ids.bloom $small"],
              http => "server { listen unix:$dir/none/socket; }");
    like($t->reload_fails, qr/bind\(\)/, 'after the image was loaded');
    is(ask($t, 'ids', @ids, @others), "$none$all", 'the old one serves');

    install('two');
    configure($t, ["zone=ids file=ids.bloom $small"]);
    $t->reload;
    one_image('two', 'what was loaded in vain is gone after the next reload');
};


subtest 'zones that start empty' => sub {
    configure($t, ["zone=seen capacity=2m fpr=1e-6 $small"]);
    $t->stop;
    $t->run;

    my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);
    cmp_ok($zone->{resident}, '<', $zone->{size} / 50,
           'take no memory before they are written');
};


done_testing;
