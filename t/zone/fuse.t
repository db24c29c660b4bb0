#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone serves images of layout fuse: no key can be added to their base, so all
# additions go to layers, and no key is lost at a load of another image, a
# start, a kill, a checkpoint or a copy.

use strict;
use warnings;

use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $items = 20_000;
my $room = $items / 8;
my $fpr = 2 ** -7;    # a base of so few keys has slots of one width

my @base = keys_of('id', $items);
my @others = keys_of('no', 50_000);
my @added;

sub build {
    my ($name, $keys, @options) = @_;

    unshift @options, '-p', $fpr unless grep { $_ eq '-p' } @options;

    return $t->build_image("$name.bloom", $keys, '--layout', 'fuse', @options);
}

sub info {
    my ($name) = @_;

    return decode_json(($t->run_tool('info', '--json', "$dir/$name.bloom"))[1]);
}

sub present {
    my ($zone, @asked) = @_;

    return scalar grep { $_ eq 'present' } lookup_keys($t, $zone, @asked);
}

sub add_all {
    my ($zone, @all) = @_;

    push @added, @all if $zone eq 'ids';
    add($t, $zone, [splice @all, 0, 1000]) while @all;
}

# All keys of the image and all that were added are present.

sub have_all {
    my ($when) = @_;

    is(present('ids', @base), $items, "the keys of the image are present $when");
    is(present('ids', @added), @added, "the added keys are present $when");
}

sub filter { return zone_state($t, $_[0])->{filter} }

# Loads the file of zone ids again and tests the outcome.

sub load {
    my ($what) = @_;

    my $was = generation($t, 'ids');
    my $answer = api($t, POST => 'zones/ids/reload');

    is($answer->status, 200, "$what is loaded") or diag($answer);
    is(generation($t, 'ids'), $was + 1, "$what serves");
}


build('ids', \@base);
build('small', [keys_of('s', 500)], '-n', 600);
$t->build_image('blocked.bloom', \@base, '-n', $items + $room, '-p', $fpr);
build('seen', [], '--allow-empty');

configure($t, ['zone=ids:4m file=ids.bloom',
               'zone=grows file=small.bloom max_keys=50k',
               'zone=seen:4m file=seen.bloom'],
          api => 1, add => 1, remove => 1, workers => 2);

subtest 'nginx -t accepts the images' => sub {
    my ($exit, $output) = $t->test_config;

    is($exit, 0, 'nginx -t succeeds') or diag($output);
    unlike($output, qr/\[warn\].*room/, 'there is room for additions');
};

$t->run;


subtest 'the keys of the image are present, few others are' => sub {
    have_all('after a start');
    is(ask($t, 'ids', @base[0 .. 999]), '1' x 1000,
       'keys are present if asked for one at a time');

    my $rate = present('ids', @others) / @others;

    cmp_ok($rate, '<', $fpr + 4 * sqrt($fpr / @others), "the rate is $rate");
    cmp_ok($rate, '>', $fpr / 2, 'the rate is that of the image');
    is(present('seen', @others[0 .. 999]), 0, 'an image without keys has none');
};


subtest 'the state before anything was added' => sub {
    my $state = zone_state($t, 'ids');
    my $filter = $state->{filter};

    is($state->{image}{layout}, 'fuse', 'layout');
    is($state->{image}{k}, 3, 'k: slots of a key');
    is($state->{image}{lines}, 0, 'lines');
    is($state->{image}{items}, $items, 'items');
    is($state->{image}{capacity}, $items + $room, 'capacity');
    is($filter->{layers}, 0, 'no layer is in use');
    is($filter->{estimated_items}, $items, 'the number of keys is exact');
    is($filter->{max_items}, $items + $room, 'there is room without max_keys');
    is($filter->{fill_ratio}, undef, 'there is no fill ratio');
    is($filter->{parts}[0]{fill_ratio}, undef, 'the base has none either');
    is($filter->{parts}[0]{capacity}, $items, 'the base has its keys');
    cmp_ok(abs($filter->{estimated_fpr} / $fpr - 1), '<', 0.02, 'estimated_fpr');
    cmp_ok(abs($filter->{promised_fpr} / $fpr - 2), '<', 0.05,
           'base and layer have the rate together');

    my $metrics = api($t, GET => 'metrics')->body;

    like($metrics, qr/^nginx_bloom_image_info\{.*zone="ids".*layout="fuse"/m,
         'the metrics have the layout');
    unlike($metrics, qr/^nginx_bloom_fill_ratio\{zone="ids"/m,
           'the metrics have no fill ratio');
    like($metrics, qr/^nginx_bloom_estimated_items\{zone="ids"\} $items$/m,
         'the metrics have the number of keys');

    my $rates = $t->get('/bloom/zones/ids/rates')->json->{rates};

    cmp_ok(abs($rates->[1][1] / $fpr - 1), '<', 0.02,
           'the curve begins with the rate of the base');
    is(api($t, GET => 'zones/ids/keys?key=id1&image=on')->json->{answer},
       'present', 'a key is explained');
};


subtest 'added keys are in a layer' => sub {
    my $before = filter('ids');

    add_all('ids', keys_of('add', 1500));

    my $filter = filter('ids');

    is($filter->{layers}, 1, 'the first layer is in use');
    is(scalar @{ $filter->{parts} }, 2, 'there are two parts');
    is($filter->{parts}[1]{capacity}, $room, 'the layer has the room');
    is($filter->{parts}[0]{estimated_items}, $items, 'the base is as it was');
    cmp_ok(abs($filter->{estimated_items} - $items - @added), '<', 100,
           'the number of keys is estimated');
    is($filter->{max_items}, $before->{max_items}, 'max_items is the same');
    cmp_ok($filter->{parts}[1]{fill_ratio}, '>', 0, 'the layer fills');
    have_all('after additions');
    is(ask($t, 'ids', @added[0 .. 199]), '1' x 200,
       'added keys are present if asked for one at a time');

    $t->get('/add/ids?k=by-directive');
    push @added, 'by-directive';
    ok(wait_until(sub { present('ids', 'by-directive') == 1 }),
       'bloom_add adds a key');

    my $again = add($t, 'ids', [@base[0 .. 9], @added[0 .. 9]]);

    is($again->{already_present}, 20, 'keys that are there are not added again');

    add_all('seen', keys_of('s', 900));
    is(present('seen', keys_of('s', 900)), 900,
       'keys are added behind a base without keys');
};


subtest 'removals' => sub {
    my @removed = (@base[0 .. 49], @added[0 .. 49]);
    my $answer = api($t, POST => 'zones/ids/remove', body => join "\n", @removed);

    is($answer->json->{removed}, 100, 'keys of both parts are removed');
    is(present('ids', @removed), 0, 'they are absent');
    is(present('ids', @base[50 .. $#base]), $items - 50, 'others of the image '
       . 'are present');
    is(present('ids', @added[50 .. $#added]), @added - 50,
       'other added keys are present');
    $t->get("/remove/ids?k=$base[50]");
    ok(wait_until(sub { present('ids', $base[50]) == 0 }),
       'bloom_remove removes a key of the image');

    $t->reload;
    is(present('ids', @removed, $base[50]), 0, 'they are absent after a reload');

    add($t, 'ids', [@removed, $base[50]]);
    have_all('after the removed keys were added again');
};


subtest 'starts, kills and checkpoints' => sub {
    $t->stop;
    $t->run;
    have_all('after a stop and a start from the journal');

    $t->kill_all;
    $t->run;
    have_all('after kill -9 and a start from the journal');

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    add_all('ids', keys_of('late', 100));
    $t->kill_all;
    $t->run;
    have_all('after kill -9 and a start from a checkpoint');
    is(filter('ids')->{layers}, 1, 'the checkpoint has the layer');

    $t->kill_worker;
    add_all('ids', keys_of('later', 100));
    have_all('after kill -9 of a worker');
};


subtest 'a copy of the zone' => sub {
    my $answer = $t->get('/bloom/zones/ids/image');

    is($answer->status, 200, 'GET image');
    $t->write_file('copy.bloom', $answer->body);
    is(($t->run_tool('verify', "$dir/copy.bloom"))[0], 0, 'verify accepts it');

    my $info = info('copy');

    is($info->{layout}, 'fuse', 'the copy has the layout');
    is($info->{layers}, 1, 'the copy has the layer');
    cmp_ok(abs($info->{items} - $items - @added), '<', 100,
           'the copy has the number of keys');

    my (undef, $out) = $t->run_tool('test', '-f', '-', "$dir/copy.bloom",
                                    { stdin => join '', map { "$_\n" } @base,
                                                            @added });
    is(scalar(() = $out =~ /^present/mg), @base + @added,
       'the copy has all keys');

    $t->write_file('plain.bloom',
                   $t->get('/bloom/zones/grows/image')->body);
    is(info('plain')->{items}, 500, 'a copy without a layer has its keys');

    # it is loaded where another image served

    is(upload_image($t, 'seen', 'copy')->status, 200, 'the copy is uploaded');
    is(present('seen', @base, @added), @base + @added, 'it serves');
    is(present('seen', keys_of('s', 900)), 900, 'and so do keys of the journal');
    add_all('seen', keys_of('further', 50));
    $t->stop;
    $t->run;
    is(present('seen', @base, @added, keys_of('further', 50)),
       @base + @added + 50, 'after a start, too');
};


subtest 'images of other layouts, and back' => sub {
    install_image($t, 'blocked');
    load('an image of layout blocked');
    is(zone_state($t, 'ids')->{image}{layout}, 'blocked', 'its layout');
    have_all('with that image');
    add_all('ids', keys_of('between', 200));

    for my $seed (7, 8, 9) {
        build("fuse$seed", [@base, "only$seed"], '--seed', $seed);
        install_image($t, "fuse$seed");
        load("the image of layout fuse with seed $seed");
        is(zone_state($t, 'ids')->{image}{layout}, 'fuse', 'its layout');
        is(present('ids', "only$seed"), 1, 'its own key is present');
        is(filter('ids')->{layers}, 1, 'the journal is replayed to a layer');
        have_all("with the image of seed $seed");
        add_all('ids', keys_of("with$seed-", 50));
    }

    $t->reload;
    have_all('after a reload');
    $t->kill_all;
    $t->run;
    have_all('after kill -9 and a start');
};


subtest 'a damaged image' => sub {
    my $size = -s "$dir/fuse7.bloom";

    for my $case (['header', 200], ['slots', $size - 3000], ['table', 4097]) {
        my ($what, $at) = @$case;

        $t->write_file("bad.bloom", $t->read_file('fuse7.bloom'));
        flip("$dir/bad.bloom", $at);

        my $was = generation($t, 'ids');

        is_error(upload_image($t, 'ids', 'bad'), 422, qr/damaged|invalid/,
                 "an image with a damaged $what is refused");
        is(generation($t, 'ids'), $was, 'the old one serves on');
    }

    have_all('after the refusals');
    is(upload_image($t, 'ids', 'fuse7')->status, 200, 'the undamaged is loaded');
    have_all('with the uploaded image');
};


subtest 'growth behind a fuse base' => sub {
    my @keys;
    my $n = 0;
    my $state = filter('grows');

    # 100, 200, 400 ... keys

    is($state->{max_items}, 500 + 100 * 511, 'nine layers are planned');
    is($state->{layers}, 0, 'none is in use');

    for my $layers (1 .. 7) {
        my @new = map { 'g' . $n++ } 1 .. 100 * 2 ** ($layers - 1);

        add_all('grows', @new);
        push @keys, @new;
    }

    $state = filter('grows');
    cmp_ok($state->{layers}, '>=', 7, 'the layers follow each other');
    cmp_ok($state->{layers}, '<=', 8, 'each has the room that it is made for');
    is(present('grows', @keys), @keys, 'all keys are present');
    is(present('grows', keys_of('s', 500)), 500, 'the keys of the image, too');

    my $rate = present('grows', @others) / @others;

    cmp_ok(abs($state->{estimated_fpr} - $rate), '<',
           5 * sqrt($rate / @others), "the rate is estimated: $rate");
    cmp_ok($rate, '<', $state->{promised_fpr}, 'it is below the promised one');

    $t->kill_all;
    $t->run;
    is(present('grows', @keys), @keys, 'all keys are present after kill -9');
    is(filter('grows')->{layers}, $state->{layers}, 'the layers are there');
};


subtest 'past the room, keys are added, and the log warns' => sub {
    my $mark = $t->log_mark;
    my @many = keys_of('many', 4000);

    add_all('seen', @many);
    is(present('seen', @many), @many, 'no key is refused or lost');
    like($t->wait_for_log(qr/"seen" has about/, $mark),
         qr/\[warn\] .*was made for .* build its next image with "-n" greater/,
         'the log warns of the rate');
    is(filter('seen')->{layers}, 1, 'there is no second layer');
};


# The first layer needs memory, which is not touched before a key is added.

subtest 'a zone that is too small for the first layer' => sub {
    build('large', [keys_of('l', 300_000)], '-p', '1e-6');
    install_image($t, 'large');

    my $config = sub {
        configure($t, ["zone=ids:$_[0]k file=ids.bloom removals=0"],
                  api => 1, add => 1);
        return $t->test_config;
    };

    my ($exit, $output) = $config->(1024);

    isnt($exit, 0, 'an image that does not fit is refused');
    like($output, qr/bloom zone "ids" is too small: it needs \d+k for two images/,
         'the message says how large the zone has to be');

    my ($needs) = $output =~ /"zone=ids:(\d+)k"/;

    is(($config->($needs))[0], 0, 'a zone of that size is accepted');
    isnt(($config->($needs - 200))[0], 0, 'it needs room for the layer');

    # while nginx runs

    $t->stop;
    install_image($t, 'fuse9');
    is(($config->($needs - 200))[0], 0, 'an image that fits is accepted');
    $t->run;
    is_error(upload_image($t, 'ids', 'large'), 507, qr/too small/,
             'an upload without room is refused');
    have_all('after the refusal');

    # a body that is refused before it is read

    build('larger', [keys_of('l', 600_000)], '-p', '1e-6');

    my $answer = is_error(upload_image($t, 'ids', 'larger'), 413,
                          qr/--layout fuse/, 'a body without room is refused');
    my ($enough) = $answer->json->{error}{message}
                   =~ /"zone=ids:(\d+)k" if .*"--layout fuse" and without "-n"/;

    $t->stop;
    is(($config->($enough))[0], 0, 'the size that the message has is accepted');
    $t->run;
    is(upload_image($t, 'ids', 'larger')->status, 200, 'it is large enough');
    add_all('ids', 'behind-larger');
    is(filter('ids')->{layers}, 1, 'it has room for the layer');
    is(present('ids', keys_of('l', 1000), @added), 1000 + @added,
       'the keys of the image and the added keys are present');
};


done_testing;
