#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The checkpoints of a zone with expire= have its slices with their times, so
# that the journal before the older one can go: no key lives less or more than it
# should.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600 };

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);

sub conf {
    my (%option) = @_;

    my $capacity = $option{capacity} // '40k';
    my $expire = $option{expire} // 'expire=8h';
    my $more = $option{more} // '';

    configure($t, ["zone=ids capacity=$capacity fpr=1e-7 removals=100 $expire"
                   . " $more", 'zone=tick capacity=8k fpr=0.001'],
              api => 1, add => 1);
}

sub checkpoint {
    my ($what) = @_;

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, $what);
}

sub checkpoints { return files("$state/checkpoint.*") }
sub segments { return files("$state/journal.0*") }

# Adds keys and writes two checkpoints, so that the journal begins behind `key`.

sub keep_in_checkpoints {
    my ($key) = @_;
    my ($first) = segments();

    add($t, 'ids', [$key]);

    for (1, 2) {
        fill("$key-$_", 20);
        checkpoint("checkpoint $_ with $key is written");
    }

    ok(wait_until(sub { $time->passes(10); !-e $first }),
       "the journal before them is removed, with $key");
}

# Adds so many MiB of keys that nobody asks for.

sub fill {
    my ($name, $mib) = @_;

    add($t, 'ids', [map { "$name-$_-" . 'x' x 16_000 } 1 .. $mib * 64]);
}

conf();
$t->run;


subtest 'keys live as long after restarts with checkpoints' => sub {
    my $ledger = $time->ledger('ids', life => LIFE, slices => 8);
    my $n = 0;

    srand 43;

    for my $round (1 .. 12) {
        for (1 .. 3) {
            $ledger->add([map { 'key' . $n++ } 1 .. 5]);
            $ledger->add(["key" . int rand $n]);
            $ledger->remove(["key" . int rand $n]) if $n > 20;
            $time->passes(HOUR * rand 0.9);
        }

        checkpoint("round $round: a checkpoint is written") if rand() < 0.7;
        $ledger->add(["after$round"]);
        $time->passes(HOUR * rand 0.5);

        $t->kill_all;
        $t->run;
        $time->settle;
        $ledger->check("round $round: after a restart");
    }

    my @files = checkpoints();
    is(scalar @files, 2, 'two checkpoints are kept');
};


subtest 'the journal before the older checkpoint is removed' => sub {
    my ($first) = segments();

    fill('a', 20);
    add($t, 'ids', ['young']);
    checkpoint('the first checkpoint is written');
    fill('b', 20);
    checkpoint('the second checkpoint is written');
    ok(wait_until(sub { $time->passes(10); !-e $first }),
       'the first segment is removed while its keys live');
    is(ask_until_known($t, 'ids', 'young', 'old'), '10', 'its keys are present');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'young', 'old'), '10',
       'they are present after a restart');
};


subtest 'a checkpoint is damaged' => sub {
    my ($older, $newer) = checkpoints();

    $t->stop;
    flip($newer, 6000);
    $t->run;
    is(ask_until_known($t, 'ids', 'young', 'old'), '10',
       'a start goes on from the older one');
    like($t->read_file('error.log'), qr/checkpoint.*starts without/,
         'the log names the damaged one');
    $t->stop;
    flip($older, 6000);
    $t->expect_log(qr/has lost the keys of its checkpoints/);
    $t->expect_log(qr/has lost added keys/);
    $t->run;
    is(ask($t, 'ids', 'young', 'old'), '??', 'no key is absent without both');
    is(zone_state($t, 'ids')->{state}, 'damaged', 'the zone is damaged');
    $t->stop;
    flip($_, 6000) for $older, $newer;
    $t->run;
    is(ask($t, 'ids', 'young'), '1', 'with both restored, the keys are present');
    is(ask($t, 'ids', 'old'), '?', 'and the loss is not forgotten');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    is(ask_until_known($t, 'ids', 'young'), '0', 'nothing is left');
    my @files = checkpoints();
    is_deeply(\@files, [], 'no checkpoint is left');
};


subtest 'the capacity changes' => sub {
    keep_in_checkpoints('before');

    for (['80k', ''], ['40k', 'max_keys=80k']) {
        my ($capacity, $more) = @$_;
        my $mark = $t->log_mark;

        conf(capacity => $capacity, more => $more);
        $t->reload;
        like($t->wait_for_log(qr/keeps the capacity of its checkpoint, 40000/,
                              $mark), qr/POST clear/,
             "capacity=$capacity $more: the log says that nothing changes, and"
             . ' how it would');
        is(ask_until_known($t, 'ids', 'before', 'other'), '10',
           'keys are present');
    }

    $t->stop;
    conf(more => 'form=lower');
    like($t->run_fails,
         qr/cannot change its form: its keys are in ".*checkpoint/,
         'another form is refused, and the log says why');
    conf();
    $t->run;
    is(ask_until_known($t, 'ids', 'before', 'other'), '10',
       'the keys are present with the form as before');
};


# A filter with times cannot become one without them, nor the other way round,
# once its journal is gone.

subtest 'the zone loses expire=, or gets it' => sub {
    $t->build_image('other.bloom', ['another']);

    my $image = 'file=' . $t->testdir . '/other.bloom';

    $t->stop;
    conf(expire => '');
    like($t->run_fails,
         qr/cannot change its expire: its keys are in ".*checkpoint/,
         'a start without expire= is refused');
    configure($t, ["zone=ids removals=100 $image",
                   'zone=tick capacity=8k fpr=0.001'], api => 1, add => 1);
    like($t->run_fails, qr/is too old: keys that it may lack/,
         'and so is an image in place of the checkpoints');
    conf();
    $t->run;
    is(ask_until_known($t, 'ids', 'before', 'other'), '10',
       'with expire= the keys are present');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    conf(expire => '');
    $t->reload;
    is(ask_until_known($t, 'ids', 'before', 'other'), '00',
       'a zone that was cleared can lose expire=');

    add($t, 'ids', ['for-ever']);
    is(upload_image($t, 'ids', 'other')->status, 200, 'an image is uploaded');
    $t->stop;
    conf();
    like($t->run_fails, qr/cannot change its expire: its keys are in ".*upload/,
         'a zone that stands on an uploaded image cannot get expire=');
    conf(expire => '');
    $t->run;
    is(ask_until_known($t, 'ids', 'for-ever', 'another', 'other'), '110',
       'without it all keys are present');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');

    keep_in_checkpoints('for-ever');
    conf();
    like($t->reload_fails,
         qr/cannot change its expire: its keys are in ".*checkpoint/,
         'a reload that gives expire= to a zone with checkpoints is refused');
    is(ask_until_known($t, 'ids', 'for-ever', 'another'), '10',
       'the zone goes on without expire=');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    conf();
    $t->reload;
    keep_in_checkpoints('again');
};


subtest 'nothing else reads such a checkpoint' => sub {
    my ($file) = checkpoints();

    for my $command ('info', 'verify') {
        my ($exit, undef, $err) = $t->run_tool($command, $file);
        is($exit, 2, "ngx-bloom $command refuses it");
        like($err, qr/is a checkpoint of a zone whose keys expire/,
             'and says what it is');
    }
};


$t->stop;
done_testing;
