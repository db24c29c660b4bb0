#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process dies at any step of a restoration of removed or of excepted keys, and
# nginx continues.  Either the journal has the restoration, and then all keys are
# restored, or none is.  Whatever the zone answers after the death, it answers
# after a start, and so does another instance of the zone.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Process qw(resume_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $disk = BloomTest::Disk->new($t, 'state');

# more steps than a restoration has
use constant STEPS => 60;

# The keys of both zones.  Those of the zone `excepted` are excepted keys of its
# image.

my @keys = keys_of('id', 40);
my ($all, $none) = ('1' x @keys, '0' x @keys);

$t->build_image('ids.bloom', [@keys], '-p', '1e-9', '-n', '20k',
                '--as-of', rfc3339(time - 600));
$t->write_file('excepted.bloom',
               with_exceptions($t->read_file('ids.bloom'),
                               [map { [4, 0, $_] } @keys]));

# a restoration takes five slices of so large a set

configure($t, [map { "zone=$_ file=$_.bloom removals=40000" } qw(ids excepted)],
          api => 1, add => 1);

$t->expect_log(qr/exited on signal 9/);


# Starts nginx with all keys removed or excepted.

sub begin {
    remove_tree($t->testdir . '/state');
    $t->run;
    removes();
}

sub removes {
    my $response = api($t, POST => 'zones/ids/remove',
                       body => join '', map { "$_\n" } @keys);

    $response->status == 200 or die "keys are not removed: $response";
}

sub serves {
    my ($zone) = @_;

    return wait_until(sub {
        my $state = eval { zone_state($t, $zone) };
        return $state && $state->{state} eq 'serving' && $t->helpers;
    });
}


for (['ids', 'removed'], ['excepted', 'excepted']) {
    my ($zone, $kind) = @$_;

    my $restore = sub {
        return eval { api($t, POST => "zones/$zone/clear?only=$kind") };
    };

    subtest "a process dies at each step of a restoration of $kind keys" => sub {
        my %seen;

        for my $step (1 .. STEPS) {
            begin();
            is(ask($t, $zone, @keys), $none, 'no key is present');

            my $mark = $t->log_mark;
            $faults->kill_at('any', $step);
            my $response = $restore->();

            # a process may die after the response

            if (!wait_until(sub { !$faults->pending }, 1)) {
                $faults->withdraw;
                is($response->status, 200, 'the restoration completes');
                is(ask($t, $zone, @keys), $all, 'all keys are restored');
                $t->stop;
                last;
            }

            $t->wait_for_log(qr/exited on signal 9/, $mark);
            ok(serves($zone), "the zone serves after a death at step $step");

            my $answers = ask_until_known($t, $zone, @keys);
            $seen{$answers}++;
            like($answers, qr/^(?:0+|1+)\z/,
                 "all keys are restored or none after a death at step $step");

            # this record is written over one that is in no journal yet

            add($t, $zone, ['later']);
            $t->kill_all;
            $t->run;
            is(ask_until_known($t, $zone, @keys, 'later'), $answers . '1',
               "a start answers the same after a death at step $step");
            $t->kill_all;
        }

        cmp_ok($seen{$none} // 0, '>=', 1, 'no key was restored sometimes');
        cmp_ok($seen{$all} // 0, '>=', 5, 'all keys were, more often');
    };


    subtest "two instances restore $kind keys" => sub {
        begin();

        my $old = $t->master;
        my $new = $t->upgrade_begin;
        my %side = sides($t, $old, $new);

        is(both($t, $zone, \%side, @keys), "new $none old $none",
           'no key is present in either');

        my $mark = $t->log_mark;
        $faults->kill_at('restored', 3);
        $restore->();
        ok(wait_until(sub { !$faults->pending }), 'a helper dies');
        $t->wait_for_log(qr/exited on signal 9/, $mark);

        is(both($t, $zone, \%side, @keys), "new $all old $all",
           'all keys are restored in both after a death');

        if ($kind eq 'removed') {
            removes();
            is(both($t, $zone, \%side, @keys), "new $none old $none",
               'the keys are removed again, in both');
            is($restore->()->status, 200, 'they are restored without a death');
            is(both($t, $zone, \%side, @keys), "new $all old $all",
               'they are present in both');
        }

        $t->upgrade_finish;
        $t->kill_all;
        $t->run;
        is(ask_until_known($t, $zone, @keys), $all,
           'they are present after a start');
        $t->stop;
    };
}


# While the helper restores keys, a key is removed, and added again while the disk
# is full: the journal has the removal, and not the addition.

subtest 'a pending key is present after a restoration' => sub {
    begin();

    my $stop = $faults->stop_at('restored');
    my $client = $t->connect;

    $client->send($t->request_text(POST => '/bloom/zones/ids/clear?only=removed'));
    my $helper = $faults->stopped($stop);

    is(api($t, POST => 'zones/ids/remove', body => $keys[0])->status, 200,
       'a key is removed meanwhile');
    $disk->refuse('ENOSPC', qw(write grow rename));
    is($t->get("/add/ids?k=$keys[0]")->status, 200, 'and added again');
    is(zone_state($t, 'ids')->{journal}{pending_keys}, 1, 'it is pending');

    resume_process($helper);
    is($client->response('POST')->status, 200, 'the restoration completes');
    is(ask_until_known($t, 'ids', $keys[0]), '1', 'the key is present');
    is(zone_state($t, 'ids')->{journal}{pending_keys}, 1, 'and still pending');

    $disk->allow;
    ok(wait_until(sub { !zone_state($t, 'ids')->{journal}{pending_keys} }),
       'the journal takes it');
    is(ask_until_known($t, 'ids', @keys), $all, 'all keys are present');
    $t->stop;
};

done_testing;
