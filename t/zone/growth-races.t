#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Processes are stopped or killed where they begin a layer.  No key is lost, each
# layer begins once, and no process begins a layer of a later generation.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $capacity = 1000;
my $workers = 3;

$t->build_image("image$_.bloom", [keys_of('id', 10)], '-n', $capacity,
                '-p', 0.02, '--seed', $_ + 1)
    for 0, 1;

sub begin {
    $t->stop;
    system 'rm', '-rf', "$dir/state";
    install_image($t, 'image0');
    configure($t, ["zone=seen capacity=$capacity fpr=0.02 max_keys=100k",
                   'zone=ids file=ids.bloom max_keys=100k'],
              api => 1, add => 1, workers => $workers);
    $t->run;
}

sub filter { return zone_state($t, $_[0])->{filter} }

sub layers { return filter($_[0])->{layers} }

sub absent {
    my ($zone, @keys) = @_;

    return scalar grep { $_ ne 'present' } lookup_keys($t, $zone, @keys);
}

# Sends keys, and does not wait for the response.

sub post {
    my ($zone, @keys) = @_;

    my $connection = $t->connect;

    $connection->send($t->request_text(POST => "/bloom/zones/$zone/keys",
                                       body => join "\n", @keys));

    return $connection;
}

# Adds keys until a worker acknowledges them: another one may be stopped, or may
# be killed by this.  Returns how often that took.

sub add_whoever {
    my ($zone, @keys) = @_;

    for my $time (1 .. 100) {
        my $response = eval {
            local $SIG{ALRM} = sub { die "no answer\n" };
            alarm 10;
            my $got = post($zone, @keys)->response;
            alarm 0;
            $got;
        };

        return $time if $response && $response->status == 200;
    }

    die "zone $zone: no worker adds keys";
}


$t->expect_log(qr/exited on signal 9/);

subtest 'a worker is killed when a layer begins' => sub {
    for my $place (qw(grow grown)) {
        begin();
        my $mark = $t->log_mark;
        my @added;

        for my $layer (0 .. 3) {
            my $deaths = 0;

            $faults->kill_at($place);

            while ($faults->pending && @added < 40 * $capacity) {
                my @keys = map { "k$_" } @added + 1 .. @added + 50;

                $deaths += add_whoever('seen', @keys) - 1;
                push @added, @keys;
            }

            ok(!$faults->pending, "$place: a worker is killed");
            cmp_ok($deaths, '>', 0, "$place: its client gets no response");
            wait_until(sub { $t->workers >= $workers });

            is(absent('seen', @added), 0, "$place: all keys are present");

            add_whoever('seen', map { "k$_" } @added + 1 .. @added + 50);
            push @added, map { "k$_" } @added + 1 .. @added + 50;
            is(layers('seen'), $layer + 1, "$place: one layer has begun");
        }

        $t->kill_all;
        $t->run;
        is(absent('seen', @added), 0,
           "$place: all keys are present after a start");
        $t->excuse_log($mark);
    }
};


# Fills the last part until a worker stops where the next one begins.  Returns
# the process, its connection, and the keys.

sub stopped_at {
    my ($zone, $place) = @_;

    my $stop = $faults->stop_at($place);

    for my $n (0 .. 1000) {
        my @keys = map { "s$_" } 10 * $n + 1 .. 10 * $n + 10;
        my $connection = post($zone, @keys);

        my $select = IO::Select->new($connection->{socket});

        wait_until(sub { !$faults->pending || $select->can_read(0) }, 60);

        return ($faults->stopped($stop), $connection, 10 * $n)
            if !$faults->pending;

        $connection->response->status == 200 or die "not added";
    }

    die "no worker stops at $place";
}


subtest 'a worker stops before a layer begins, and others begin it' => sub {
    begin();

    my ($pid, $connection, $n) = stopped_at('seen', 'grow');

    is(layers('seen'), 0, 'no layer has begun');

    my @more = keys_of('more', 500);

    add_whoever('seen', splice @more, 0, 20) while @more;
    is(layers('seen'), 1, 'another worker begins the layer');

    resume_process($pid);
    is($connection->response->status, 200, 'the worker acknowledges its keys');
    is(layers('seen'), 1, 'and does not begin another one');
    is(absent('seen', keys_of('s', $n + 10), keys_of('more', 500)), 0,
       'all keys are present');
};


subtest 'a stopped worker begins no layer of a later generation' => sub {
    for my $how (qw(clear load)) {
        begin();

        my $zone = $how eq 'clear' ? 'seen' : 'ids';

        # the part of the image that is loaded is not full

        my ($pid, $connection, $n) = stopped_at($zone, 'grow');

        for my $time (1, 2) {
            if ($how eq 'clear') {
                wait_until(sub {
                    my $r = eval { api($t, POST => "zones/$zone/clear") };
                    return $r && $r->status == 200;
                });

            } else {
                $t->build_image("wide$time.bloom", [keys_of('id', 10)],
                                '-n', 10 * $capacity, '-p', 0.02, '--seed',
                                $time + 10);
                install_image($t, "wide$time");
                wait_until(sub {
                    my $r = eval {
                        api($t, POST => "zones/$zone/reload")
                    };
                    return $r && $r->status == 200;
                });
            }
        }

        is(generation($t, $zone), 3, "$how: two more generations");
        is(layers($zone), 0, "$how: the filter that serves has no layers");

        resume_process($pid);
        is($connection->response->status, 200,
           "$how: the worker acknowledges its keys");
        is(layers($zone), 0, "$how: it begins no layer");
        is(absent($zone, map { "s$_" } $n + 1 .. $n + 10), 0,
           "$how: its keys are present");
        is(absent($zone, keys_of('s', $n)), 0,
           "$how: the keys from before are present")
            if $how eq 'load';
    }
};


subtest 'two instances add keys during an upgrade of nginx' => sub {
    begin();
    add_whoever('seen', map { "a$_" } 20 * $_ + 1 .. 20 * $_ + 20) for 0 .. 59;
    is(layers('seen'), 1, 'the first instance has grown');

    $t->upgrade_begin;

    # both masters' workers accept connections

    my @both = keys_of('b', 6000);

    add_whoever('seen', splice @both, 0, 20) while @both;

    is(absent('seen', keys_of('a', 1200), keys_of('b', 6000)), 0,
       'all keys are present while both instances serve')
        for 1 .. 8;

    $t->upgrade_finish;
    is(absent('seen', keys_of('a', 1200), keys_of('b', 6000)), 0,
       'all keys are present after the upgrade');
    is(layers('seen'), 3,
       'the second instance has grown as far as its keys need');
};


subtest 'a start is killed when its replay begins a layer' => sub {
    begin();
    add($t, 'seen', [map { "k$_" } 500 * $_ + 1 .. 500 * $_ + 500])
        for 0 .. 23;
    is(layers('seen'), 3, 'the zone has grown');

    for my $place (qw(grow grown)) {
        for my $time (1 .. 3) {
            $t->kill_all;
            my $mark = $t->log_mark;
            $faults->kill_at($place, $time);
            my $rc = $t->run_may_die;
            isnt($rc, 0, "$place: the start is killed at layer $time");
            $faults->withdraw;
            $t->run;
            $t->excuse_log($mark);
            is(absent('seen', keys_of('k', 12_000)), 0,
               "$place: all keys are present after the next start");
            is(layers('seen'), 3, "$place: all layers are there");
        }
    }
};


done_testing;
