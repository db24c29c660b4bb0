#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone with max_keys grows by layers: it keeps its promised rate at any number
# of keys up to that, and loses no key at a reload, a start, a kill, a checkpoint
# or a copy.

use strict;
use warnings;

use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

sub info {
    my ($t, $name) = @_;

    return decode_json(($t->run_tool('info', '--json', $t->testdir
                                                       . "/$name.bloom"))[1]);
}

my $t = BloomTest->new;
my $dir = $t->testdir;

my $capacity = 5000;
my $fpr = 0.02;

sub keys_from { my ($from, $n) = @_; return map { "k$_" } $from .. $from + $n - 1 }

# The share of keys that were never added that the zone takes for present.

sub measured {
    my ($zone) = @_;
    my @answers = lookup_keys($t, $zone, map { "no$_" } 1 .. 50_000);

    return grep(/present/, @answers) / @answers;
}

configure($t, ["zone=ids capacity=$capacity fpr=$fpr max_keys=80k"], api => 1,
          add => 1, workers => 2);
$t->run;

my @added;

sub have_all {
    my ($when, $zone) = @_;
    my @answers = lookup_keys($t, $zone // 'ids', @added);

    is(scalar(grep { $_ ne 'present' } @answers), 0,
       "all @{[scalar @added]} keys are present $when");
}

subtest 'the rate is as promised while the zone grows' => sub {
    my $layers = 0;

    for my $times (1, 2, 4, 8, 16) {
        my @new = keys_from(@added + 1, $times * $capacity - @added);

        add($t, 'ids', [splice @new, 0, 1000]) while @new;
        push @added, keys_from(@added + 1, $times * $capacity - @added);

        my $state = zone_state($t, 'ids');
        my $rate = measured('ids');

        # three standard errors of a share of 50,000

        cmp_ok($rate, '<', $fpr + 3 * sqrt($fpr / 50_000),
               "the rate is as promised at $times times the capacity: $rate");
        cmp_ok(abs($state->{filter}{estimated_items} - @added), '<',
               @added * 0.02, 'the number of keys is estimated');
        cmp_ok(abs($state->{filter}{estimated_fpr} - $rate), '<',
               5 * sqrt($fpr / 50_000), 'the rate is estimated');
        have_all("at $times times the capacity");
        cmp_ok($state->{filter}{layers}, '>=', $layers, 'layers only become more');
        $layers = $state->{filter}{layers};
    }

    is($layers, 4, 'four layers hold 16 times the capacity');
};

subtest 'the state says how far the zone can grow' => sub {
    my $state = zone_state($t, 'ids');

    is($state->{filter}{max_items}, 31 * $capacity, 'max_items');
    cmp_ok(abs($state->{filter}{promised_fpr} / $fpr - 1), '<', 0.05, 'promised_fpr');
    is(scalar @{ $state->{filter}{parts} }, 5, 'parts');
};

subtest 'a checkpoint and a start keep all keys and layers' => sub {
    my $answer = api($t, POST => 'zones/ids/checkpoint');

    is($answer->status, 200, 'a checkpoint of a zone with layers');
    $t->stop;
    $t->run;
    have_all('after a start from a checkpoint');
    is(zone_state($t, 'ids')->{filter}{layers}, 4, 'layers after a start');
    cmp_ok(measured('ids'), '<', $fpr * 1.1, 'the rate after a start');
};

subtest 'a copy of the zone is an image with layers' => sub {
    my $answer = $t->get('/bloom/zones/ids/image');

    is($answer->status, 200, 'GET image of a zone with layers');
    $t->write_file('copy.bloom', $answer->body);

    my (undef, $out) = $t->run_tool('test', '-f', '-', "$dir/copy.bloom",
                                    { stdin => join '', map { "$_\n" } @added });
    is(scalar(() = $out =~ /^present/mg), @added, 'the image has all keys');
    is(($t->run_tool('verify', "$dir/copy.bloom"))[0], 0, 'verify accepts it');

    configure($t, ['zone=copy file=copy.bloom'], api => 1, add => 1);

    my ($exit, $output) = $t->test_config;

    is($exit, 0, 'nginx -t accepts the copy');
    unlike($output, qr/room/, 'nginx -t knows the room in its layers');
};


# Behind an image, layers have the image's rate together.

subtest 'behind an image, additions past its capacity go to layers' => sub {
    my @image = map { "i$_" } 1 .. $capacity;

    $t->build_image('img.bloom', \@image, '-n', $capacity, '-p', $fpr);
    configure($t, ['zone=img file=img.bloom max_keys=80k'], api => 1, add => 1,
              workers => 2);
    $t->stop;
    $t->run;

    is(zone_state($t, 'img')->{filter}{layers}, 0, 'the zone begins without layers');

    # all layers together have the rate of the image, each a share in proportion
    # to its room; at 7 and 15 times the capacity all of them are full

    my @new = @added;
    my $n = @image;
    my $state;

    for my $times (1, 2, 4, 7, 8, 15, 16) {
        for ( ; $n < $times * $capacity; $n += 1000) {
            add($t, 'img', [splice @new, 0, 1000]);
        }

        $state = zone_state($t, 'img')->{filter};

        my $rate = measured('img');
        my $room = 1;

        $room = 2 * $room + 1 while $room < $times;

        my $promised = $fpr * (1 + ($room - 1) / 30);

        cmp_ok($rate, '<', $promised + 4 * sqrt($promised / 50_000),
               "the rate is as promised at $times times the capacity of the"
               . " image: $rate");
        cmp_ok(abs($state->{estimated_fpr} - $rate), '<',
               5 * sqrt($promised / 50_000), 'the rate is estimated');
        cmp_ok($rate, '>', $fpr / 2, 'the filter has false positives to measure');
    }

    cmp_ok(abs($state->{promised_fpr} / $fpr - 2), '<', 0.1,
           'twice the rate of the image is promised');
    add($t, 'img', [splice @new, 0, 1000]) while @new;

    $state = zone_state($t, 'img')->{filter};

    is($state->{layers}, 4, 'the zone grows');

    push @added, @image;
    have_all('behind an image', 'img');

    my $was = generation($t, 'img');

    api($t, POST => 'zones/img/reload');
    cmp_ok(generation($t, 'img'), '>', $was, 'the image was loaded again');
    have_all('after a load', 'img');
    is(zone_state($t, 'img')->{filter}{layers}, $state->{layers},
       'the layers are there after a load');

    # an image with another capacity

    $t->build_image('img.bloom', [@image, 'one'], '-n', 3 * $capacity, '-p', $fpr);
    api($t, POST => 'zones/img/reload');
    is(build_id($t, 'img'), info($t, 'img')->{build_id}, 'the other image serves');
    have_all('after a load of another image', 'img');
    is(zone_state($t, 'img')->{filter}{max_items}, 21 * $capacity,
       'it can grow as far');
};

done_testing;

