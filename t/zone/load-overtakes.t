#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An acknowledged key is never absent, at whichever step an addition and a load
# overtake each other.  The test stops the process that adds or loads at a step,
# lets the other one finish, and then resumes the first.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $disk = BloomTest::Disk->new($t, 'state');

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2);
$t->run;


sub is_done {
    my ($c, $name) = @_;

    is($c->response->status, 200, $name);
}

my %add = (
    'the endpoint' => sub {
        $t->send_request(POST => '/bloom/zones/ids/keys', body => $_[0]);
    },
    'bloom_add' => sub { $t->send_request(GET => "/add/ids?k=$_[0]") },
);

sub reload { return $t->send_request(POST => '/bloom/zones/ids/reload') }


# The process that adds has set the key's bits.  At "append" it has also checked
# which generation serves; at "set" it has not yet.

for my $place (qw(set append)) {
    for my $how (sort keys %add) {
        subtest "a load overtakes $how at \"$place\"" => sub {
            my $before = generation($t, 'ids');
            my $key = "$place-$before";

            my $stop = $faults->stop_at($place);
            my $added = $add{$how}->($key);
            my $worker = $faults->stopped($stop);

            another_image($t);
            is_done(reload(), "another image is loaded while $how adds a key");
            is(generation($t, 'ids'), $before + 1, 'the other image serves');

            resume_process($worker);
            is_done($added, "$how acknowledges the key after the load");
            is(ask($t, 'ids', $key, 'id1', 'no'), '110',
               'the acknowledged key is present in the other image');
        };
    }
}


# The process that loads holds the journal's lock: a key of bloom_add becomes a
# pending key, and the endpoint waits.

for my $place (qw(switch switched served)) {
    subtest "additions overtake a load at \"$place\"" => sub {
        my $before = generation($t, 'ids');
        my $stop = $faults->stop_at($place);
        another_image($t);
        my $reloaded = reload();
        my $helper = $faults->stopped($stop);

        is_done($add{bloom_add}->("pending-$place"),
                'bloom_add adds a pending key during a load');
        my $waits = $add{'the endpoint'}->("waits-$place");
        is(ask($t, 'ids', "pending-$place", 'id1', 'no'), '110',
           'the pending key is present during the load');

        if ($place eq 'switch') {
            $stop = $faults->stop_at('switched');
            resume_process($helper);
            is($faults->stopped($stop), $helper,
               'the load reaches "switched"');
            is(ask($t, 'ids', "pending-$place", 'id1', 'no'), '110',
               'the pending key is present as soon as the other image serves');
        }

        resume_process($helper);
        is_done($reloaded, 'the other image is loaded');
        is_done($waits, 'the endpoint adds its key after the load');
        is(generation($t, 'ids'), $before + 1, 'the next generation serves');
        is(ask($t, 'ids', "pending-$place", "waits-$place", 'id1', 'no'),
           '1110',
           'the keys of bloom_add and of the endpoint are present');
    };
}

subtest 'a key becomes pending just before a load switches' => sub {
    my $stop = $faults->stop_at('switch');
    another_image($t);
    my $reloaded = reload();
    my $helper = $faults->stopped($stop);

    # The load has read the pending keys, and this key comes after them.  Its
    # bits are set once before the journal is found locked, and again when the
    # key becomes pending.

    $stop = $faults->stop_at('set', 2);
    my $added = $add{bloom_add}->('late');
    my $worker = $faults->stopped($stop);

    # now the other image serves, and the load has not read the pending keys
    # again

    $stop = $faults->stop_at('switched');
    resume_process($helper);
    is($faults->stopped($stop), $helper, 'the load reaches "switched"');
    resume_process($worker);
    is_done($added, 'the late key is acknowledged');
    is(ask($t, 'ids', 'late', 'id1', 'no'), '110',
       'the late key is present as soon as it is acknowledged');

    resume_process($helper);
    is_done($reloaded, 'the other image is loaded');
    is(ask($t, 'ids', 'late', 'id1', 'no'), '110',
       'the late key is present after the load');
};


subtest 'a key is pending before a load' => sub {
    $disk->refuse('ENOSPC', qw(open write grow rename));
    is_done($add{bloom_add}->('before'),
            'bloom_add adds a key while the disk is full');
    cmp_ok(zone_state($t, 'ids')->{journal}{pending_keys}, '>', 0,
           'the key that is not on disk is pending');

    my $stop = $faults->stop_at('switched');
    another_image($t);
    my $reloaded = reload();
    my $helper = $faults->stopped($stop);
    is(ask($t, 'ids', 'before', 'id1', 'no'), '110',
       'the pending key is present as soon as the other image serves');

    resume_process($helper);
    is_done($reloaded, 'the other image is loaded');
    $disk->allow;
};


# One lock protects the pending keys from the switch to another image.

subtest 'a load finds the pending keys locked' => sub {
    my $before = generation($t, 'ids');

    $disk->refuse('ENOSPC', qw(open write grow rename));
    my $stop = $faults->stop_at('pending');
    my $added = $add{bloom_add}->('locked');
    my $worker = $faults->stopped($stop);

    another_image($t);
    my $reloaded = reload()->response;
    is($reloaded->status, 503,
       'a load is refused while the pending keys are locked');
    like($reloaded->body, qr/busy with additions; try again/,
         'the refusal of the load says that additions are the reason');
    $t->expect_log(qr/busy with additions; try again/);
    is(generation($t, 'ids'), $before,
       'the previous generation continues to serve');

    resume_process($worker);
    is_done($added, 'the key is acknowledged');
    is_done(reload(), 'a load succeeds when the pending keys are unlocked');
    is(ask($t, 'ids', 'locked', 'id1', 'no'), '110',
       'the key is present after the load');
    $disk->allow;
};


for my $place (qw(switch held turned switched)) {
    subtest "the helper dies during a load at \"$place\"" => sub {
        my $before = generation($t, 'ids');

        $disk->refuse('ENOSPC', qw(open write grow rename));
        my $stop = $faults->stop_at('switch');
        another_image($t);
        my $reloaded = reload();
        my $helper = $faults->stopped($stop);
        is_done($add{bloom_add}->("dies-$place"),
                'bloom_add adds a pending key during the load');

        if ($place eq 'switch') {
            kill 'KILL', $helper or die "kill: $!";

        } else {
            $faults->kill_at($place);
            resume_process($helper);
        }

        $t->wait_for_log(qr/ $helper exited on signal 9/, $stop->{mark});
        is(ask($t, 'ids', "dies-$place", 'id1', 'no'), '110',
           'the pending key is present after the death of the helper');
        is_done($add{bloom_add}->("next-$place"),
                'bloom_add adds another pending key');

        # the generation depends on whether the load had switched

        my $serves = $before + ($place =~ /turned|switched/ ? 1 : 0);

        is_error($reloaded->response, 503, qr/was loading its file died/,
                 'the load has failed');
        is(generation($t, 'ids'), $serves,
           "generation $serves serves after the death of the helper");
        is(ask($t, 'ids', "dies-$place", "next-$place", 'id1', 'no'), '1110',
           'both pending keys are present after the death of the helper');

        is_done(reload(), 'the image is loaded at another request');
        is(generation($t, 'ids'), $serves + 1, 'the next generation serves');
        is(ask($t, 'ids', "dies-$place", "next-$place", 'id1', 'no'), '1110',
           'both pending keys are present after the load');
        $disk->allow;
    };
}

$t->expect_log(qr/exited on signal 9/);


subtest 'nginx is killed and started again' => sub {
    my @keys = ('late', 'before', 'locked',
                (map { ("pending-$_", "waits-$_") } qw(switch switched served)),
                map { ("dies-$_", "next-$_") } qw(switch held turned switched));

    wait_until(sub { zone_state($t, 'ids')->{journal}{pending_keys} == 0 })
        or die 'the pending keys are not written to the journal';
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'all acknowledged keys are present after kill -9 of all processes');
};


# The load is stopped while it holds the lock of the pending keys, for longer
# than an addition waits.

subtest 'a key cannot become pending during a switch' => sub {
    my $stop = $faults->stop_at('held');
    another_image($t);
    my $reloaded = reload();
    my $helper = $faults->stopped($stop);

    $t->expect_log(qr/\[alert\].*has no room left for keys/);
    $t->expect_log(qr/\[alert\].*has lost added keys/);
    is_done($add{bloom_add}->('gone'),
            'bloom_add answers although the key cannot become pending');
    unlike(ask($t, 'ids', 'gone'), qr/0/, 'the lost key is not absent');

    $stop = $faults->stop_at('turned');
    resume_process($helper);
    is($faults->stopped($stop), $helper, 'the load reaches "turned"');
    is(ask($t, 'ids', 'gone', 'id1', 'no'), '?1?',
       'the lost key is unknown when the other image serves');

    resume_process($helper);
    is_done($reloaded, 'the other image is loaded');
    is(ask($t, 'ids', 'gone', 'id1', 'no'), '?1?',
       'the lost key is unknown after the load');
};


done_testing();
