#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A checkpoint shortens the replay of the journal and does nothing else: no
# segment is removed because of it, and no other image uses it.

use strict;
use warnings;

use IPC::Open2;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Process qw(wait_until run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my @ids = keys_of('id', 10);

$t->build_image('one.bloom', \@ids, '-p', '1e-9', '-n', '500k');
$t->build_image('two.bloom', [@ids, 'two'], '-p', '1e-9', '-n', '400k');

sub checkpoint {
    my ($zone) = @_;

    is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
       "a checkpoint of zone $zone is written");
}

sub segments {
    my ($zone) = @_;

    return map { m{/(journal\.[^/]*)$} } sort glob "$dir/state/$zone/journal.*";
}

# Tests that the keys k1 to k100000 are present.

sub all_present {
    my ($zone, $name) = @_;

    my @answers = lookup_keys($t, $zone, keys_of('k', 100_000));
    is(scalar(grep { $_ eq 'present' } @answers), 100_000, $name);
}


install_image($t, 'one');
configure($t, ['zone=ids file=ids.bloom',
               'zone=seen capacity=500k fpr=1e-9'], api => 1, workers => 2);
$t->run;


subtest 'a checkpoint shortens the replay' => sub {
    my $count = 100_000;
    my $body = join '', map { "k$_\n" } 1 .. $count;

    for my $zone ('ids', 'seen') {
        api($t, POST => "zones/$zone/keys?durable=true", body => $body);
        my @before = segments($zone);
        my $bytes = zone_state($t, $zone)->{journal}{replay_bytes};

        cmp_ok($bytes, '>', 6 * $count,
               "zone $zone has much to replay before a checkpoint");
        checkpoint($zone);
        cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 1000,
               "zone $zone has almost nothing to replay after a checkpoint");
        my %after = map { $_ => 1 } segments($zone);
        is(scalar(grep { !$after{$_} } @before), 0,
           "no segment of zone $zone is removed for a checkpoint");
        add($t, $zone, ['behind']);
    }

    # replay_bytes shows how much of the journal a start has read

    for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
        my ($method, $how) = @$_;

        $t->$method;
        $t->run;
        for my $zone ('ids', 'seen') {
            all_present($zone,
                        "all keys of zone $zone are present after $how");
            is(ask_until_known($t, $zone, 'behind', 'no'), '10',
               "the key behind the checkpoint of $zone is present after $how");
            cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 100_000,
                   "most keys of zone $zone are not replayed after $how");
        }
    }
};


subtest 'a checkpoint is not used with another image' => sub {
    checkpoint('ids');
    $t->stop;
    install_image($t, 'two');
    $t->run;
    all_present('ids', 'all added keys are present in the other image');
    is(ask_until_known($t, 'ids', 'two', 'behind', 'no'), '110',
       'the other image serves after a start');

    # key "two" is in the second image alone, and in its checkpoint

    checkpoint('ids');
    install_image($t, 'one');
    $t->reload;
    ok(wait_until(sub { ask_until_known($t, 'ids', 'two') eq '0' }),
       'a key of the second image is absent when the first one serves');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'two', 'behind', 'id1'), '011',
       'a key of the second image is absent after a start with the first');
    all_present('ids', 'all added keys are present in the first image');
};


subtest 'checkpoints are damaged' => sub {
    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;

    for my $zone ('ids', 'seen') {
        my @files = glob "$dir/state/$zone/checkpoint.*.bloom";
        ok(scalar @files, "zone $zone has a checkpoint");
        flip($_, -1) for @files;
    }

    my $mark = $t->log_mark;
    $t->run;
    for my $zone ('ids', 'seen') {
        all_present($zone, "all keys of zone $zone are present without its"
                           . ' damaged checkpoint');
        is(ask_until_known($t, $zone, 'behind', 'no'), '10',
           "the last key of zone $zone is present without its checkpoint");
    }
    like($t->log_since($mark), qr/checkpoint/,
         'the log reports a damaged checkpoint');

    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;
    for my $file (map { glob "$dir/state/$_/checkpoint.*.bloom" }
                      'ids', 'seen')
    {
        truncate $file, (-s $file) - 1;
    }
    $t->run;
    all_present($_, "all keys of zone $_ are present without its truncated"
                    . ' checkpoint') for 'ids', 'seen';
    $t->stop;
};


subtest 'a checkpoint has the geometry of an earlier configuration' => sub {
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=800k fpr=1e-6'],
              api => 1, workers => 2);
    $t->run;
    all_present('seen',
                'all keys are present in the zone of another capacity');
    is(ask_until_known($t, 'seen', 'behind', 'no'), '10',
       'the last key is present in the zone of another capacity');
};


# The helper writes a checkpoint once the replay would be long.

subtest 'the helper writes a checkpoint without a request' => sub {
    my $sent = 0;
    my $position = sub {
        return join ' ', map { /\.([0-9a-f]{16})\.bloom$/ }
                             files("$dir/state/seen/checkpoint.*");
    };
    my $before = $position->();

    wait_until(sub {
        my $body = join '', map { "itself-$sent-$_-" . 'x' x 200 . "\n" }
                                1 .. 20_000;
        api($t, POST => 'zones/seen/keys', body => $body)->status == 200
            or return 'refused';
        $sent++;
        return $position->() ne $before || $sent >= 80;
    }, 120);

    ok(wait_until(sub { $position->() gt $before }),
       "the helper has written a checkpoint after $sent times 20,000 keys");
};


# Another process holds the lock for synchronising journals, as it does while a
# slow disk keeps it waiting.

subtest 'another process synchronises the journal' => sub {
    my $code = $t->write_file('keeper.c', <<'C');
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    char              c;
    char             *page;
    pthread_mutex_t  *keeper;

    page = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED,
                open(argv[1], O_RDWR), 0);
    if (page == MAP_FAILED) {
        return 1;
    }

    keeper = (pthread_mutex_t *) (page + atoi(argv[2]));

    if (pthread_mutex_lock(keeper) != 0 || write(1, "x", 1) != 1) {
        return 1;
    }

    (void) !read(0, &c, 1);

    return pthread_mutex_unlock(keeper);
}
C

    my ($exit, undef, $err) = run_command(
        [$ENV{CC} // 'cc', '-O1', '-pthread', '-o', "$dir/keeper", $code]);
    is($exit, 0, 'the program that holds the lock is compiled') or die $err;

    my $other = open2(my $out, my $in, "$dir/keeper", "$state/control",
                      BloomTest::Control::place('keeper'));
    read $out, my $locked, 1;

    add($t, 'ids', ['unsynchronised']);

    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/is being synchronised by another process[^(]*$/,
             'no checkpoint is written of records that are not on disk');

    close $in;
    waitpid $other, 0;
    is($?, 0, 'the other process releases the lock');
    checkpoint('ids');
};


done_testing;
