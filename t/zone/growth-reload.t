#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload adds, raises, lowers or removes max_keys, and images with layers,
# other capacities or of other systems are loaded into zones that grow.  No key
# in a journal is lost, and the log says what is lost and what cannot grow.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Foreign;
use BloomTest::Schemes qw(bits_of);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $capacity = 2000;
my $fpr = 0.02;

my @image = keys_of('id', $capacity);
my @new = keys_of('new', 10_000);

$t->build_image('ids.bloom', \@image, '-n', $capacity, '-p', $fpr);

# The zones of a configuration.  All have the same max_keys.

sub configured {
    my ($max_keys) = @_;

    my $grow = $max_keys ? " max_keys=$max_keys" : '';

    configure($t, ["zone=ids file=ids.bloom$grow",
                   "zone=seen capacity=$capacity fpr=$fpr$grow",
                   "zone=memory capacity=$capacity fpr=$fpr journal=off$grow"],
              api => 1, add => 1);
}

sub filter { return zone_state($t, $_[0])->{filter} }

sub layers { return filter($_[0])->{layers} }

sub absent {
    my ($zone, @keys) = @_;

    return scalar grep { $_ ne 'present' } lookup_keys($t, $zone, @keys);
}

sub have_all {
    my ($when, @zones) = @_;

    is(absent($_, @new, $_ eq 'ids' ? @image : ()), 0,
       "all keys of zone $_ are present $when")
        for @zones;
}

sub add_all {
    for my $zone (@_) {
        my @keys = @new;
        add($t, $zone, [splice @keys, 0, 1000]) while @keys;
    }
}

# The share of keys that were never added that the zone takes for present.

sub measured {
    my ($zone) = @_;

    return 1 - absent($zone, map { "no$_" } 1 .. 50_000) / 50_000;
}

sub keeps_promise {
    my ($zone, $promised, $when) = @_;

    my $rate = measured($zone);

    # three standard errors of a share of 50,000

    cmp_ok($rate, '<', $promised + 3 * sqrt($promised / 50_000),
           "the rate of zone $zone is at most $promised $when: $rate");
}


configured('');
$t->run;
add_all('ids', 'seen', 'memory');
is(layers($_), 0, "zone $_ does not grow without max_keys")
    for 'ids', 'seen', 'memory';

my $starts_empty = qr/"memory" starts empty again/;

# [max_keys, layers of "seen" and "ids" with all keys, promised rates of both]

for (['', 0], ['20k', 3, 1, 2], ['60k', 2, 1, 2], ['200k', 2, 1, 2],
     ['20k', 3, 1, 2], ['', 0], ['20k', 3, 1, 2])
{
    my ($max_keys, $grows, @promised) = @$_;
    my $called = $max_keys ? "with max_keys=$max_keys" : 'without max_keys';

    subtest "the reload $called" => sub {
        my $was = filter('memory')->{bits_set};
        my $mark = $t->log_mark;

        configured($max_keys);
        $t->reload;

        have_all("after a reload $called", 'ids', 'seen');
        my $log = $t->log_since($mark);

        if ($_->[0] eq '' && $grows == 0 && $was && $log !~ $starts_empty) {
            is(filter('memory')->{bits_set}, $was,
               'a reload without a change keeps a zone without a journal');

        } else {
            like($log, $starts_empty,
                 'the log says that the zone without a journal starts empty');
            is(filter('memory')->{bits_set}, 0, 'it starts empty');
            add_all('memory');
        }

        unlike($log, qr/starts without that checkpoint/,
               'no checkpoint is complained of');

        if (@promised) {
            cmp_ok(layers($_), '>=', 2, "zone $_ has layers") for 'ids', 'seen';
            keeps_promise($_->[0], $_->[1] * $fpr, "after a reload $called")
                for ['seen', $promised[0]], ['memory', $promised[0]],
                    ['ids', $promised[1]];
            cmp_ok(filter($_->[0])->{promised_fpr}, '<=', $_->[1] * $fpr * 1.05,
                   "zone $_->[0] promises that")
                for ['seen', $promised[0]], ['ids', $promised[1]];

            # what is saved has the layers of this configuration

            is(api($t, POST => "zones/$_/checkpoint")->status, 200,
               "zone $_ writes a checkpoint")
                for 'ids', 'seen';

        } else {
            is(layers($_), 0, "zone $_ has no layers") for 'ids', 'seen';
        }
    };
}

subtest 'a start with another max_keys' => sub {
    for my $max_keys ('', '200k', '20k') {
        configured($max_keys);
        $t->stop;
        $t->run;
        have_all("after a start with max_keys=$max_keys", 'ids', 'seen');

        if ($max_keys) {
            add_all('memory');
            keeps_promise('seen', $fpr, "with max_keys=$max_keys");
            keeps_promise('ids', 2 * $fpr, "with max_keys=$max_keys");
        }
    }
};


# An image with layers is a base like another one.

my $copy = $t->get('/bloom/zones/seen/image');
is($copy->status, 200, 'GET image');
$t->write_file('copy.bloom', $copy->body);

subtest 'an image with layers in a zone without max_keys' => sub {
    my $layers = layers('seen');

    configure($t, ['zone=plain file=copy.bloom'], api => 1, add => 1);
    $t->stop;
    $t->run;

    my $filter = filter('plain');

    is($filter->{layers}, $layers, 'the zone has the layers of the image');
    is($filter->{max_items}, $capacity * (2 ** ($layers + 1) - 1),
       'max_items counts these layers');
    is(absent('plain', @new), 0, 'all keys of the image are present');

    add($t, 'plain', [keys_of('late', 500)]);
    is(absent('plain', keys_of('late', 500)), 0, 'added keys are present');

    $t->stop;
    $t->run;
    is(absent('plain', @new, keys_of('late', 500)), 0,
       'all keys are present after a start');
    is(layers('plain'), $layers, 'it does not grow');

    # it serves as an upload elsewhere, too

    configure($t, ['zone=plain file=copy.bloom',
                   'zone=other:2m capacity=1k fpr=0.01 max_keys=100k'],
              api => 1, add => 1);
    $t->reload;
    add($t, 'other', [keys_of('mine', 3000)]);
    is(upload_image($t, 'other', 'copy')->status, 200,
       'an image with layers is uploaded');
    is(absent('other', @new, keys_of('mine', 3000)), 0,
       'all keys are present after the upload');
    cmp_ok(layers('other'), '>=', $layers, 'it has the layers of the upload');

    my @more = keys_of('more', 20_000);
    add($t, 'other', [splice @more, 0, 1000]) while @more;
    cmp_ok(layers('other'), '>', $layers, 'it grows behind the upload');
    $t->stop;
    $t->run;
    is(absent('other', @new, keys_of('mine', 3000), keys_of('more', 20_000)), 0,
       'all keys are present after a start from the upload');

    is(api($t, POST => 'zones/other/clear')->status, 200,
       'the zone is cleared');
    is(layers('other'), 0, 'a clear removes all layers');
    is(filter('other')->{bits_set}, 0, 'a clear removes all keys');
    add($t, 'other', [keys_of('after', 3000)]);
    is(absent('other', keys_of('after', 3000)), 0,
       'a cleared zone takes keys');
    cmp_ok(layers('other'), '>', 0, 'a cleared zone grows');
};


subtest 'a bank with less room than max_keys wants' => sub {
    my $only = qr/"tight" can grow to (\d+) keys only, and .* wants 100000/;

    # an image of a small capacity and a low rate needs more bits for each key

    $t->build_image('wide.bloom', [keys_of('w', 10)], '-n', 20_000, '-p', 0.05);
    $t->build_image('narrow.bloom', [keys_of('w', 10)], '-n', 2000, '-p', 1e-6);
    install_image($t, 'wide', 'tight');
    configure($t, ['zone=tight file=tight.bloom max_keys=100k'], api => 1,
              add => 1);
    $t->stop;

    my $mark = $t->log_mark;

    $t->run;
    unlike($t->log_since($mark), qr/can grow to/, 'there is room at the start');

    install_image($t, 'narrow', 'tight');
    is(api($t, POST => 'zones/tight/reload')->status, 200,
       'another image is loaded');

    my $line = $t->wait_for_log($only, $mark) // '';
    my ($keys) = $line =~ $only;

    is($keys, filter('tight')->{max_items}, 'the warning states max_items');
    cmp_ok($keys, '<', 100_000, 'it is less than max_keys');
    is((() = $t->log_since($mark) =~ /$only/g), 1, 'there is one warning');

    add_all('tight');
    is(absent('tight', @new), 0, 'added keys are present');
    $t->reload;
    $t->stop;
    $t->run;
    is(absent('tight', @new), 0, 'added keys are present after a start');
    is(filter('tight')->{max_items} >= 100_000, 1,
       'a start gives the zone room for max_keys');
};


subtest 'a size that is too small for max_keys' => sub {
    configure($t, ["zone=small:100k capacity=$capacity fpr=$fpr max_keys=100k"],
              api => 1, add => 1);

    my ($exit, $output) = $t->test_config;

    isnt($exit, 0, 'nginx -t refuses the size');
    my ($size) = $output =~ /"small" is too small: .* write "zone=small:(\d+k)"/
        or diag($output);
    ok($size, 'nginx -t names the size');

    configure($t, ["zone=small:$size capacity=$capacity fpr=$fpr"
                   . ' max_keys=100k'], api => 1, add => 1);
    $t->stop;
    $t->run;
    cmp_ok(filter('small')->{max_items}, '>=', 100_000,
           'this size suffices for max_keys');
    add_all('small');
    is(absent('small', @new), 0, 'added keys are present');
};


subtest 'a zone that grows gets its first image later' => sub {
    configure($t, ['zone=later file=later.bloom required=off max_keys=50k'],
              api => 1, add => 1);
    $t->stop;

    my $mark = $t->log_mark;

    $t->run;
    is(ask($t, 'later', 'id1'), '?', 'nothing serves yet');
    $t->excuse_log($mark);

    install_image($t, 'ids', 'later');
    $t->reload;
    is(absent('later', @image), 0, 'the image serves after a reload');
    add_all('later');
    is(absent('later', @image, @new), 0, 'added keys are present');
    cmp_ok(layers('later'), '>', 0, 'the zone has grown');
    cmp_ok(filter('later')->{max_items}, '>=', 50_000,
           'it has room for max_keys');
};


subtest 'a start makes room for the layers of an uploaded image' => sub {
    my $limit = qr/zone "up" can grow to 190000 keys only/;

    configure($t, ["zone=up capacity=10k fpr=$fpr max_keys=200k"], api => 1,
              add => 1);
    $t->stop;
    $t->run;

    my $mark = $t->log_mark;

    $t->build_image('large.bloom', \@image, '-n', '190k', '-p', $fpr);
    is(upload_image($t, 'up', 'large')->status, 200,
       'an image of another capacity is uploaded');
    like($t->log_since($mark), $limit,
         'the memory of the zone has no room for its layers');
    add_all('up');

    $t->stop;
    $mark = $t->log_mark;
    $t->run;
    unlike($t->log_since($mark), $limit, 'after a start it has');
    is(filter('up')->{max_items}, 570_000, 'it can grow as max_keys says');
    is(absent('up', @image, @new), 0, 'all keys are present');
};


subtest 'an imported image does not grow' => sub {
    my $bitmap = "\0" x 64;
    my $mark = $t->log_mark;

    for my $key (keys_of('in', 20)) {
        vec($bitmap, $_ >> 3, 8) |= 0x80 >> ($_ & 7)
            for bits_of('libbloom', $key, 509, 5);
    }

    import_image($t, "$dir/imported.bloom", '--from', 'bitmap', '--scheme',
                 'libbloom', '--bits', 509, '--hashes', 5,
                 $t->write_file('bitmap', $bitmap));
    configure($t, ['zone=imported file=imported.bloom max_keys=100k'],
              api => 1, add => 1);
    $t->stop;
    $t->run;
    like($t->log_since($mark),
         qr/"imported" can grow to .* imported images do not grow/,
         'the log says that the zone does not grow');
    add($t, 'imported', [keys_of('new', 1000)]);
    is(absent('imported', keys_of('in', 20), keys_of('new', 1000)), 0,
       'its keys and added keys are present');
    is(layers('imported'), 0, 'it has no layers');
};


done_testing;
