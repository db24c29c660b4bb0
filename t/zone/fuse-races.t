#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Processes are stopped or killed where they add the first key behind a fuse
# base, and where loads overtake them.  No key is lost: nobody sets bits in a
# bank that has been filled with a fuse base meanwhile.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

# one shard of few slots: a bit that is set in it by mistake makes keys absent

my @base = keys_of('id', 3000);

$t->build_image('blocked.bloom', \@base, '-n', 4000);
$t->build_image("fuse$_.bloom", \@base, '--layout', 'fuse', '--seed', $_)
    for 1 .. 3;

install_image($t, 'blocked');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2);
$t->run;

sub post {
    return $t->send_request(POST => '/bloom/zones/ids/keys',
                            body => join "\n", @_);
}

sub load {
    my ($name) = @_;

    install_image($t, $name);

    return $t->send_request(POST => '/bloom/zones/ids/reload')->response;
}

my @added;

sub have_all {
    my ($when) = @_;

    is(scalar(grep { $_ ne 'present' } lookup_keys($t, 'ids', @base, @added)), 0,
       "all keys are present $when");
}


subtest 'a load waits for a process that adds keys to its bank' => sub {
    my @keys = keys_of('slow', 500);
    my $stop = $faults->stop_at('puts');
    my $adds = post(@keys);
    my $worker = $faults->stopped($stop);

    is(load('blocked')->status, 200, 'the first load takes the other bank');

    my $was = generation($t, 'ids');
    my $mark = $t->log_mark;
    my $answer = load('fuse1');

    is($answer->status, 503, 'a load to the bank of the stopped process fails')
        or diag($answer);
    like($answer->json->{error}{message},
         qr/layout fuse while the stopped process $worker adds keys/,
         'the message has the process');
    is(generation($t, 'ids'), $was, 'the image before serves on');
    have_all('after the load failed');

    is(load('blocked')->status, 200, 'an image of another layout is loaded');
    is(load('blocked')->status, 200, 'and another one');

    resume_process($worker);
    is($adds->response->status, 200, 'the stopped process adds its keys');
    push @added, @keys;
    have_all('after it was resumed');

    is(load('fuse1')->status, 200, 'the image is loaded then');
    is(load('fuse2')->status, 200, 'and into the other bank');
    have_all('with the fuse images');
    $t->excuse_log($mark);
};


subtest 'a load does not wait for a process that has died' => sub {
    my $mark = $t->log_mark;

    $faults->kill_at('puts');
    post('dies')->response;
    ok(wait_until(sub { !$faults->pending }), 'a worker was killed');
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    $t->excuse_log($mark);
    ok(wait_until(sub { $t->workers == 2 }), 'nginx has replaced it');

    is(load("fuse$_")->status, 200, "image $_ is loaded") for 1 .. 3;
    have_all('after that');
};


# A killed process leaves the layer begun, or not.

for my $place (qw(grow grown set append)) {
    subtest "a worker is killed at \"$place\"" => sub {
        my $mark = $t->log_mark;

        is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
        @added = ();
        is(zone_state($t, 'ids')->{filter}{layers}, 0, 'there is no layer');

        $faults->kill_at($place);
        post("dies-$place")->response;
        ok(wait_until(sub { !$faults->pending }), 'a worker was killed');
        $t->wait_for_log(qr/exited on signal 9/, $mark);
        $t->excuse_log($mark);
        ok(wait_until(sub { $t->workers == 2 }), 'nginx has replaced it');

        add($t, 'ids', [keys_of("$place-", 300)]);
        push @added, keys_of("$place-", 300);
        have_all('after further additions');
        is(zone_state($t, 'ids')->{filter}{layers}, 1, 'there is one layer');

        $t->kill_all;
        $t->run;
        have_all('after kill -9 and a start');
    };
}


# Two processes begin the first layer at the same time.

subtest 'a process is stopped at "grow"' => sub {
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    @added = ();

    my $stop = $faults->stop_at('grow');
    my $adds = post(keys_of('first', 100));
    my $worker = $faults->stopped($stop);

    add($t, 'ids', [keys_of('second', 100)]);
    push @added, keys_of('second', 100);
    have_all('while one process is about to begin the layer');

    resume_process($worker);
    is($adds->response->status, 200, 'it adds its keys');
    push @added, keys_of('first', 100);
    have_all('after that');
    is(zone_state($t, 'ids')->{filter}{layers}, 1, 'there is one layer');
};

done_testing;
