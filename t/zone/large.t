#!/usr/bin/perl

# Zones of several gigabytes: they start, answer and reload.  With
# TEST_NGINX_LARGE=1 also an image of more than a gigabyte, which takes three
# gigabytes of disk and of memory, and a minute.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

# the sanitizer's build fills shared memory when it makes it

plan(skip_all => 'all of a zone would be in memory')
    if $t->nginx_build =~ /NGX_DEBUG_MALLOC/;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

sub serves_both {
    install('one');
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'it answers');

    for my $image (qw(two one)) {
        my $mark = $t->log_mark;
        install($image);
        $t->reload;
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all",
           'and after a reload');
        unlike($t->log_since($mark), qr/changes from/, 'in the same memory');
    }

    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'and after the death of a worker');
}


# The second bank of a zone of 12 gigabytes lies beyond what 32 bits can tell;
# Linux gives no one more than it has.

open my $meminfo, '<', '/proc/meminfo' or die "cannot read /proc/meminfo: $!";
my %kilobytes = map { /^(\w+):\s+(\d+) kB/ } <$meminfo>;
my $has = $kilobytes{MemTotal} + $kilobytes{SwapTotal};

for my $size ('4g', '12g') {
    subtest "a zone of $size" => sub {
        plan(skip_all => "this machine has less memory than $size")
            if ($size =~ /(\d+)/)[0] << 20 > $has;

        $t->build_image('one.bloom', \@ids, '-p', '1e-6');
        $t->build_image('two.bloom', \@others, '-p', '1e-6');
        configure($t, ["zone=ids:$size file=ids.bloom"]);
        serves_both();

        my ($zone) = sort { $b->{size} <=> $a->{size} }
                          zone_memory($t->master);

      SKIP: {
            skip('the system does not show the memory', 2) unless $zone;

            is($zone->{size}, ($size =~ /(\d+)/)[0] << 30,
               'it is as large as it says');
            cmp_ok($zone->{resident}, '<', $zone->{size} / 50,
                   'and takes no more memory than its image needs');
        }

        $t->stop;
    };
}


subtest 'an image of more than a gigabyte' => sub {
    plan(skip_all => 'TEST_NGINX_LARGE=1 runs it') if !$ENV{TEST_NGINX_LARGE};

    $t->build_image('one.bloom', \@ids, '-n', '700m');
    $t->build_image('two.bloom', \@others, '-n', '690m');
    cmp_ok(-s "$dir/one.bloom", '>', 1 << 30, 'is built');
    configure($t, ['zone=ids file=ids.bloom']);
    serves_both();
};


done_testing;
