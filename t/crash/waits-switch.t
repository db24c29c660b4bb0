#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload switches the journal of a zone on or off while a worker of the
# configuration before owes keys: both configurations use the same memory, but
# only one of them the control page of the state directory.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(alive resume_process stop_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

sub conf {
    my ($journal) = @_;

    configure($t, ["zone=seen:8m capacity=20k fpr=1e-9 journal=$journal"],
              api => 1, add => 1, workers => 2);
}


# Lets one of two workers stop with the lock, and the other owe a key, and
# reloads with another journal=.  Returns both workers, and a connection to the
# other one, which keeps it alive.

sub owe_and_reload {
    my ($key, $to) = @_;

    conf($to);

    my $stop = $faults->stop_at('locked');
    my $c = $t->connect;
    $c->send($t->request_text(GET => "/add/seen?k=stalled-$key"));
    my $stopped = $faults->stopped($stop);
    my ($other) = grep { $_ != $stopped } $t->workers;

    my $open = $t->connect;
    $open->send("POST /bloom/zones/seen/keys HTTP/1.1\r\nHost: a\r\n"
                . "Content-Length: 100\r\n\r\nopen-$key\n");

    is($t->get("/add/seen?k=$key")->status, 200, "$key is added");
    is(ask($t, 'seen', 'no'), '?', 'the zone is unknown meanwhile');

    $t->reload(keep_old => 1, stopped => $stopped);

    return ($stopped, $other, $open);
}

# Lets a process go on, which then exits.  Before it does, it may accept a
# connection, and close it.

sub goes_on {
    my ($pid) = @_;

    resume_process($pid);
    wait_until(sub { !alive($pid) }) or die "process $pid stays";
}

conf('off');
$t->run;
add($t, 'seen', ['before']);


for (['off', 'on'], ['on', 'off']) {
    my ($from, $to) = @$_;

    subtest "the key of a worker with journal=$from is added" => sub {
        my ($stopped, $other, $open) = owe_and_reload("owed-$from", $to);

        is(ask($t, 'seen', "owed-$from", 'no', 'before'), '??1',
           "the workers with journal=$to do not say that it is absent");

        if ($to eq 'on') {
            is($t->get('/add/seen?k=new')->status, 200, 'one of them adds a key');
            is(zone_state($t, 'seen')->{journal}{owing_workers}, 2,
               'and owes it, because the lock is the same');
        }

        goes_on($stopped);
        is(ask_until_known($t, 'seen', "owed-$from", 'no', 'before'), '101',
           'it is present in the end');
    };
}


for (['off', 'on'], ['on', 'off']) {
    my ($from, $to) = @$_;

    subtest "a worker with journal=$from dies" => sub {
        my ($stopped, $other, $open) = owe_and_reload("lost-$from", $to);

        $t->expect_log(qr/exited on signal 9/);
        $t->expect_log(qr/\[alert\].*"seen" has lost keys of bloom_add/);
        $t->expect_log(qr/\[alert\].*"seen" has lost added keys/);
        kill 'KILL', $other;
        ok(settled($t, 'seen', sub { !$_[0]{journal}{owing_workers} }),
           'nobody owes keys any more');
        goes_on($stopped);
        is(ask($t, 'seen', "lost-$from", 'no', 'before'), '??1',
           "workers with journal=$to do not say that its key is absent");

        conf($from);
        $t->reload;
        is(ask($t, 'seen', "lost-$from", 'no', 'before'), '??1',
           "nor do workers with journal=$from again");

        is(api($t, POST => 'zones/seen/clear')->status, 200,
           'the zone is cleared');
        add($t, 'seen', ['before']);
        is(ask_until_known($t, 'seen', "lost-$from", 'no', 'before'), '001',
           'and is known again');

        # without a journal, a clear does not change the state directory

        conf($to);
        $t->reload;
        is(ask($t, 'seen', 'no'), $to eq 'on' ? '?' : '0',
           "and with journal=$to " . ($to eq 'on' ? 'unknown again' : 'as well'));
    };
}


# The last process that has the control page of the state directory tells workers
# that do not have it what is lost (I10).

subtest 'a worker with journal=on exits that owes a key' => sub {
    conf('on');
    $t->reload;

    my ($stopped, $other, $open) = owe_and_reload('left', 'off');

    kill 'TERM', $other;
    ok(wait_until(sub { !alive($other) }), 'it exits without the lock');
    is(ask($t, 'seen', 'left', 'no', 'before'), '??1',
       'workers with journal=off do not say that its key is absent');
    goes_on($stopped);
    is(ask($t, 'seen', 'left', 'no', 'before'), '??1', 'nor later');
};


# The helper of the configuration before is about to let an image serve that it
# has loaded, without the journal.

subtest 'a load does not drop keys that a new journal has' => sub {
    my $conf = sub {
        configure($t, ["zone=ids file=ids.bloom journal=$_[0]"], api => 1,
                  add => 1);
    };

    $t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '1k');
    $conf->('off');
    $t->reload;

    my $stop = $faults->stop_at('switch');
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/reload'));
    my $job = $faults->stopped($stop);
    my $helper = $t->helper;

    # the helper would end its job before it exits

    stop_process($helper);

    $conf->('on');
    $t->reload(keep_old => 1, stopped => $helper);
    is(add($t, 'ids', ['key'])->{added}, 1, 'a new worker adds a key');
    $t->expect_log(qr/zone "ids" has been changed by workers of another/);
    goes_on($job);
    goes_on($helper);
    $c->response;
    is(ask_until_known($t, 'ids', 'id1', 'key', 'no'), '110',
       'the key is present after the load');
};

done_testing;
