#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Zones of several gigabytes start, answer and reload.  TEST_NGINX_LARGE=1 adds
# an image of more than a gigabyte, which takes three gigabytes of disk and of
# memory, and a minute.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

# the sanitizer build fills shared memory when it allocates it

plan(skip_all => 'all of a zone would be in memory')
    if $t->nginx_build =~ /NGX_DEBUG_MALLOC/;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

sub serves_both {
    my ($what) = @_;

    install_image($t, 'one');
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       "$what answers after the start");

    for my $image (qw(two one)) {
        my $mark = $t->log_mark;
        install_image($t, $image);
        $t->reload;
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all",
           "$what answers from image $image after a reload");
        unlike($t->log_since($mark), qr/changes from/,
               "$what keeps its memory at a reload");
    }

    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       "$what answers after the death of a worker");
}


# The second bank of a zone of 12 gigabytes lies beyond what 32 bits can
# address.  Linux refuses a zone that is larger than all memory and swap.

open my $meminfo, '<', '/proc/meminfo' or die "cannot read /proc/meminfo: $!";
my %kilobytes = map { /^(\w+):\s+(\d+) kB/ } <$meminfo>;
my $has = $kilobytes{MemTotal} + $kilobytes{SwapTotal};

for my $size ('4g', '12g') {
    subtest "a zone has $size" => sub {
        plan(skip_all => "this machine has less memory than $size")
            if ($size =~ /(\d+)/)[0] << 20 > $has;

        $t->build_image('one.bloom', \@ids, '-p', '1e-6');
        $t->build_image('two.bloom', \@others, '-p', '1e-6');
        configure($t, ["zone=ids:$size file=ids.bloom removals=0"]);
        serves_both("a zone of $size");

        my ($zone) = sort { $b->{size} <=> $a->{size} }
                          zone_memory($t->master);

      SKIP: {
            skip('the system does not show the memory of the zone', 3)
                unless $zone;

            my $beside = $zone->{size} - (($size =~ /(\d+)/)[0] << 30);

            cmp_ok($beside, '>=', 0, "a zone of $size has a mapping of that size");
            cmp_ok($beside, '<', 300 * 1024,
                   'and of little more, for its memory of added keys');
            cmp_ok($zone->{resident}, '<', $zone->{size} / 50,
                   "a zone of $size takes only the memory its image needs");
        }

        $t->stop;
    };
}


subtest 'an image has more than a gigabyte' => sub {
    plan(skip_all => 'TEST_NGINX_LARGE=1 runs it') if !$ENV{TEST_NGINX_LARGE};

    $t->build_image('one.bloom', \@ids, '-n', '700m');
    $t->build_image('two.bloom', \@others, '-n', '690m');
    cmp_ok(-s "$dir/one.bloom", '>', 1 << 30,
           'the image has more than a gigabyte');
    configure($t, ['zone=ids file=ids.bloom']);
    serves_both('a zone with a large image');
};


done_testing;
