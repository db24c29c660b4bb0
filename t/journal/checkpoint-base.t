#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone without file= stands on its checkpoints: the journal before the older
# one is removed, and the zone keeps its keys whatever changes in its
# configuration.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/seen';
my @keys = map { "key$_" } 1 .. 500;

sub conf {
    my ($what) = @_;

    configure($t, ["zone=seen $what"], api => 1);
}

sub checkpoint {
    is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
       'a checkpoint is written');
}

sub checkpoints { return files("$state/checkpoint.*") }
sub segments { return files("$state/journal.0*") }

# Adds so many MiB of keys that nobody asks for.

sub fill {
    my ($name, $mib) = @_;

    add($t, 'seen', [map { "$name-$_-" . 'x' x 16_000 } 1 .. $mib * 64]);
}

# Returns the answers for all keys, without repetition, and for another one.

sub answers {
    my %seen = map { $_ => 1 } split //, ask_until_known($t, 'seen', @keys);

    return join('', sort keys %seen) . ask_until_known($t, 'seen', 'other');
}


conf('capacity=8k fpr=1e-9');
$t->run;


subtest 'the journal before the older checkpoint is removed' => sub {
    add($t, 'seen', \@keys);
    my ($first) = segments();
    api($t, POST => 'zones/seen/remove', body => "gone\n");
    fill('a', 18);
    checkpoint();
    fill('b', 18);
    checkpoint();
    ok(wait_until(sub { !-e $first }, 30), 'the first segment is removed');
    my @files = checkpoints();
    is(scalar @files, 2, 'two checkpoints are kept');

    for my $life (1 .. 2) {
        $t->kill_all;
        $t->run;
        is(answers(), '10', 'all keys are present after a restart');
    }
};


subtest 'an image that lacks what was removed is refused' => sub {
    $t->build_image('new.bloom', ['one'], '-p', '1e-9', '-n', '8k');
    my $r = upload_image($t, 'seen', 'new');
    is($r->status, 422, 'an image without as_of is refused');
    like($r->body, qr/too old/, 'the response says why');
    is(answers(), '10', 'all keys are present');

    $r = api($t, GET => 'zones/seen/image');
    is($r->status, 200, 'a backup is sent');
    is(api($t, PUT => 'zones/seen/image', body => $r->body)->status, 200,
       'and taken again');
    is(answers(), '10', 'all keys are present');
    $t->kill_all;
    $t->run;
    is(answers(), '10', 'and after a restart');
    fill('c', 18);
    checkpoint();
    fill('d', 18);
    checkpoint();
    $t->kill_all;
    $t->run;
    is(answers(), '10', 'and after one with checkpoints of the backup');
};


subtest 'a zone is cleared' => sub {
    is(api($t, POST => 'zones/seen/clear')->status, 200, 'it is cleared');
    is(ask_until_known($t, 'seen', 'key1'), '0', 'no key is left');
    my @files = checkpoints();
    is_deeply(\@files, [], 'no checkpoint is left');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', 'key1'), '0', 'nor after a restart');

    add($t, 'seen', \@keys);
    fill('e', 18);
    checkpoint();
    fill('f', 18);
    checkpoint();
    my ($first) = segments();
    ok(wait_until(sub { !-e $first }, 30), 'the journal begins later again');
};


subtest 'the capacity changes' => sub {
    for my $capacity ('20k', '1k', '100k') {
        conf("capacity=$capacity fpr=1e-9");
        $t->reload;
        is(answers(), '10', "all keys are present with capacity=$capacity");
        $t->kill_all;
        $t->run;
        is(answers(), '10', 'and after a restart');
        add($t, 'seen', ["with$capacity"]);
        push @keys, "with$capacity";
    }

    is(zone_state($t, 'seen')->{state}, 'serving', 'the zone serves');
    cmp_ok(zone_state($t, 'seen')->{filter}{max_items}, '>=', 100_000,
           'the filter has room for the new capacity');
};


for (['form', 'capacity=8k fpr=1e-9 form=lower'],
     ['hash', 'capacity=8k fpr=1e-9 hash=siphash'],
     ['rate', 'capacity=8k fpr=1e-6'],
     ['layout', 'capacity=8k fpr=1e-9 layout=classic'])
{
    my ($what, $conf) = @$_;

    subtest "the $what changes" => sub {
        $t->stop;
        conf($conf);
        like($t->run_fails,
             qr/cannot change its $what: its keys are in ".*checkpoint.*"/,
             'the log says why nginx refuses to start');
        conf('capacity=8k fpr=1e-9');
        $t->run;
        is(answers(), '10', 'all keys are present as before');
    };
}


subtest 'checkpoints are damaged' => sub {
    my ($older, $newer) = checkpoints();

    # the newer one cannot be opened, and the zone has a larger filter than the
    # configuration says

    conf('capacity=1k fpr=1e-9');
    $t->stop;
    flip($newer, 100);
    $t->run;
    is(answers(), '10', 'a start has room for the older one');
    $t->stop;
    flip($newer, 100);

    flip($newer, 6000);
    $t->run;
    is(answers(), '10', 'a start goes on from the older one');
    $t->stop;
    flip($older, 6000);
    $t->expect_log(qr/has lost the keys of its checkpoints/);
    $t->expect_log(qr/has lost added keys/);
    $t->run;
    is(ask($t, 'seen', 'key1', 'other'), '??', 'no key is absent without both');
    is(zone_state($t, 'seen')->{state}, 'damaged', 'the zone is damaged');
    $t->stop;
    flip($_, 6000) for $older, $newer;
    $t->run;
    is(ask($t, 'seen', 'key1', 'other'), '1?',
       'with both restored the keys are present, and the loss is not forgotten');
};


$t->stop;
done_testing;
