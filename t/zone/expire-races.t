#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Processes are stopped or killed at each step of adding keys that expire, and
# of opening, dropping and clearing slices; some for longer than a life.  No key
# is absent before its life ends, and no slice stays in use for ever.  The time
# is injected.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

use constant { LIFE => 8 * 3600, SLICE => 3600, STEP => 1800 };

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $clock = BloomTest::Clock->new($t);

my $zone = 'zone=ids capacity=800 fpr=1e-6 expire=8h';
my $keys_of_slice = 100;
my ($now, %added, $fillers) = (0);

sub begin {
    my (%option) = @_;

    $t->stop;
    system 'rm', '-rf', $t->testdir . '/state';
    configure($t, [$option{zone} // $zone], api => 1, workers => 3);
    $t->run;
    %added = ();
}

sub sent {
    my ($method, $path, $body) = @_;

    my $connection = $t->connect;
    $connection->send($t->request_text($method => "/bloom/zones/ids/$path",
                                       body => $body));

    return $connection;
}

sub post { return sent(POST => 'keys', join "\n", @_) }

# Sends a request until a worker answers it: one may be stopped or killed.

sub answered {
    my (@request) = @_;

    for (1 .. 60) {
        my $response = eval {
            local $SIG{ALRM} = sub { die "no answer\n" };
            alarm 3;
            my $got = sent(@request)->response;
            alarm 0;
            $got;
        };
        alarm 0;

        return $response if $response && $response->status == 200;
    }

    die "no worker answers\n";
}

sub add_keys {
    my (@keys) = @_;

    my $time = $now;

    answered(POST => 'keys', join "\n", @keys);
    $added{$_} = $time for @keys;
}

sub fill {
    my ($n) = @_;

    add_keys(map { 'f' . ++$fillers } 1 .. ($n < 50 ? $n : 50)), $n -= 50
        while $n > 0;
}

sub answers {
    my (@keys) = @_;

    my ($list) = answered(POST => 'test', join "\n", @keys)->body
                 =~ /"answers":\[(.*?)\]/ or die 'no answers';

    return $list =~ /"(\w+)"/g;
}

# Tests that all keys are present that must be, whoever answers.

sub lost {
    my @keys = grep { $now < $added{$_} + LIFE - 5 } sort keys %added;

    @keys or return '';

    my @answers = answers(@keys);

    return join ' ', map { $keys[$_] }
                     grep { $answers[$_] ne 'present' } 0 .. $#keys;
}

# Tests that all keys are absent that must be.

sub left {
    my ($late) = @_;

    my @keys = grep { $now > $added{$_} + LIFE + SLICE + $late }
               sort keys %added;

    @keys or return '';

    my @answers = answers(@keys);

    return join ' ', map { $keys[$_] }
                     grep { $answers[$_] ne 'absent' } 0 .. $#keys;
}

# The helper saves the zone's clock whenever it looks after the ring: behind the
# id of the machine's boot, the times when it began, and that time then.

sub saved {
    open my $control, '<:raw', $t->testdir . '/state/ids/control'
        or return 0;
    read $control, my $page, 4096;
    open my $boot, '<', '/proc/sys/kernel/random/boot_id' or die "boot_id: $!";
    my $id = pack 'H*', <$boot> =~ s/\W//gr;
    my $at = index $page, $id;

    return $at < 0 ? 0 : unpack 'Q<', substr $page, $at + 32, 8;
}

# Waits until the helper has looked after the ring from beginning to end: it
# does so every second, and a signal that it ignores wakes it.

sub helper_looks {
    for (1 .. 2) {
        my $before = saved();

        $clock->pass_all(2);
        $now += 2;

        wait_until(sub {
            kill 'IO', $t->helpers;
            return saved() != $before;
        }, 60) or die 'the helper does nothing';
    }
}

# Lets time pass in steps, with a few keys in each slice, and tests that nothing
# is lost.  `still` leaves out the helper.

sub passes {
    my ($seconds, %option) = @_;

    my ($lost, $steps) = ('', 0);

    for (my $to = $now + $seconds; $now < $to; $steps++) {
        my $step = $to - $now < STEP ? $to - $now : STEP;

        $clock->pass_all($step);
        $now += $step;
        helper_looks() if !$option{still};
        add_keys('p' . ++$fillers) if $option{keys} && $steps % 2;
        $lost ||= lost() if $steps % 4 == 0;
    }

    return $lost || lost();
}

# Sends keys until a worker stops.  Returns it, its connection and these keys.

sub worker_at {
    my ($place, $n) = @_;

    my $stop = $faults->stop_at($place, 1);

    for (1 .. 40) {
        my @keys = map { 's' . ++$fillers } 1 .. $n;
        my $connection = post(@keys);
        my $select = IO::Select->new($connection->{socket});

        wait_until(sub { !$faults->pending || $select->can_read(0) }, 60);

        return ($faults->stopped($stop), $connection, @keys)
            if !$faults->pending;

        $connection->response->status == 200 or die 'not added';
        $added{$_} = $now for @keys;
    }

    die "no worker stops at $place";
}

# Lets time pass, with a few keys, until the helper comes to the fault point.

sub until_faulted {
    for (1 .. 100) {
        last if !$faults->pending;
        fill(1);

        my $before = saved();

        $clock->pass_all(STEP);
        $now += STEP;

        for my $look (1, 2) {
            wait_until(sub {
                kill 'IO', $t->helpers;
                return !$faults->pending || saved() != $before;
            }) or last;
            $before = saved();
            $clock->pass_all(2);
            $now += 2;
        }
    }
}

sub helper_at {
    my ($place, $nth) = @_;

    my $stop = $faults->stop_at($place, $nth // 1);

    until_faulted();

    return $faults->stopped($stop);
}

$t->expect_log(qr/exited on signal 9/);


subtest 'a worker stops while it adds keys' => sub {
    for my $place (qw(put set append keep publish turn opened closed)) {
        begin();
        fill($keys_of_slice - 10) if $place =~ /turn|opened|closed/;

        # no other worker goes on while this one holds the journal's lock

        my $alone = $place =~ /keep|publish/;
        my ($pid, $connection, @keys) = worker_at($place, 10);

        if (!$alone) {
            fill(2.5 * $keys_of_slice);
            is(lost(), '', "$place: other workers add keys");
            is(passes(LIFE + 2.5 * SLICE, keys => 1), '',
               "$place: no key is lost meanwhile");
            is(left(2 * STEP), '', "$place: keys expire meanwhile");
            fill(1.5 * $keys_of_slice);

        } else {
            is(passes(LIFE + 2 * SLICE), '',
               "$place: no key is lost meanwhile");
        }

        resume_process($pid);
        is($connection->response->status, 200,
           "$place: the worker acknowledges its keys");
        $added{$_} = $now for @keys;
        is(lost(), '', "$place: its keys are present");
        is(passes(LIFE + 3 * SLICE, keys => 1), '',
           "$place: all keys live as long as they should");
        is(left(2 * STEP + LIFE), '', "$place: no slice stays in use");
    }
};


# It stamps the slice's next use.  When that is closed, its keys live on even if
# the process that closes it is killed before it stamps it.

subtest 'a stopped worker stamps a slice that is open again' => sub {
    begin();
    fill($keys_of_slice - 10);

    my ($pid, $connection, @keys) = worker_at('closed', 10);

    is(passes(LIFE + SLICE / 4), '', 'nothing is lost');

    # the first slice is opened again

    fill($keys_of_slice);
    is(passes(SLICE + SLICE / 4), '', 'nothing is lost');
    add_keys('early');
    is(passes(SLICE / 4), '', 'nothing is lost');
    resume_process($pid);
    is($connection->response->status, 200, 'the worker goes on');
    is(passes(SLICE / 4), '', 'nothing is lost');
    add_keys('late');

    my $mark = $t->log_mark;
    $faults->kill_at('opened');
    $clock->pass_all(SLICE);
    $now += SLICE;
    wait_until(sub { kill 'IO', $t->helpers; return !$faults->pending })
        or die 'no helper closes the slice';
    wait_until(sub { $t->helpers == 1 });

    # the time of the stamp is a quarter of a slice before the last key

    is(passes(LIFE - SLICE - 600), '', 'the last key lives as long as it should');
    is(passes(2.5 * SLICE), '', 'all keys live as long as they should');
    is(left(2 * STEP), '', 'and expire');
};


subtest 'a lookup stops while its key moves to another slice' => sub {
    begin();
    add_keys('moves');
    is(passes(LIFE - 2 * SLICE, keys => 1), '', 'nothing is lost');

    my $stop = $faults->stop_at('followed');
    my $connection = sent(POST => 'test', 'moves');
    my $pid = $faults->stopped($stop);

    is(passes(1.5 * SLICE, keys => 1), '', 'nothing is lost');
    add_keys('moves');
    is(passes(3 * SLICE, keys => 1), '', 'nothing is lost');
    resume_process($pid);
    like($connection->response->body, qr/"answers":\["present"\]/,
         'the key is present although it left the slices that the lookup'
         . ' began with');
};


subtest 'a worker is killed while it adds keys' => sub {
    for my $place (qw(put set append keep publish turn opened closed)) {
        begin();

        my $mark = $t->log_mark;
        my $deaths = 0;

        fill($keys_of_slice - 10);
        $faults->kill_at($place);
        fill(10), $deaths++ while $faults->pending && $deaths < 40;
        ok(!$faults->pending, "$place: a worker is killed");
        wait_until(sub { $t->workers == 3 });
        fill(1.5 * $keys_of_slice);
        is(lost(), '', "$place: all keys are present");
        is(passes(LIFE + 2 * SLICE, keys => 1), '',
           "$place: all keys live as long as they should");
        is(left(2 * STEP), '', "$place: keys expire");

        $t->kill_all;
        $t->run;
        is(lost(), '', "$place: and after a start");
        $t->excuse_log($mark);
    }
};


# Adds keys, and does not ask again, until a worker dies that has opened a slice.

sub opener_dies {
    fill($keys_of_slice - 10);
    $faults->kill_at('opened');

    for (1 .. 100) {
        last if !$faults->pending;

        my $key = 'x' . ++$fillers;
        my $response = eval { post($key)->response };

        $added{$key} = $now if $response && $response->status == 200;
    }

    ok(!$faults->pending, 'a worker dies when it has opened a slice');
    wait_until(sub { $t->workers == 3 });
}

subtest 'a worker stops or dies before a slice is live' => sub {
    for my $how (qw(stop kill)) {
        begin();

        my $mark = $t->log_mark;

        opener_dies();

        if ($how eq 'stop') {
            my ($pid, $connection, @more) = worker_at('enliven', 5);

            fill(2.5 * $keys_of_slice);
            is(passes(LIFE + 3 * SLICE, keys => 1), '',
               'no key is lost while it is stopped');
            resume_process($pid);
            is($connection->response->status, 200, 'it goes on');
            $added{$_} = $now for @more;

        } else {
            $faults->kill_at('enliven');
            fill(5);
            ok(!$faults->pending, 'a worker dies before the slice is live');
            wait_until(sub { $t->workers == 3 });
        }

        is(passes(LIFE + 3 * SLICE, keys => 1), '',
           "$how: all keys live as long as they should");
        is(left(LIFE), '', "$how: no slice stays in use");
        $t->excuse_log($mark);
    }
};


subtest 'the helper stops or dies while it drops slices' => sub {
    for my $place (qw(turn opened closed stamped drop zero ready)) {
        begin();
        fill(2.5 * $keys_of_slice);

        my $pid = helper_at($place);

        # slices are closed when they are full

        fill(2.5 * $keys_of_slice);
        is(passes(2.5 * SLICE, still => 1), '', "$place: no key is lost");
        fill($keys_of_slice);
        is(passes(LIFE, still => 1), '', "$place: no key is lost");
        fill($keys_of_slice);
        resume_process($pid);
        helper_looks();
        is(passes(LIFE + 3 * SLICE, keys => 1), '',
           "$place: all keys live as long as they should");
        is(left(2 * STEP + LIFE + 2.5 * SLICE), '',
           "$place: keys expire after the helper goes on");

        my $mark = $t->log_mark;

        for my $time (1, 2) {
            my @helpers = $t->helpers;

            $faults->kill_at($place);

            until_faulted();
            ok(!$faults->pending, "$place: the helper is killed");
            wait_until(sub { "@{[$t->helpers]}" ne "@helpers" && $t->helpers });
        }

        is(passes(LIFE + 3 * SLICE, keys => 1), '',
           "$place: nothing is lost after it died");
        is(left(3 * STEP + SLICE), '', "$place: keys expire after it died");
        $t->excuse_log($mark);
    }
};


# A slice of 8 MiB is cleared in pieces.

subtest 'the helper stops or dies between the pieces of a slice' => sub {
    begin(zone => 'zone=ids:400m capacity=16m fpr=1e-5 expire=8h');

    for my $how (qw(stop kill)) {
        my @keys = map { "$how$_" } 1 .. 2000;

        add_keys(@keys);

        my $pid;
        my $mark = $t->log_mark;

        if ($how eq 'stop') {
            $pid = helper_at('zero', 2);
            fill(10);
            is(passes(STEP, still => 1), '', 'stop: nothing is lost');
            resume_process($pid);

        } else {
            $faults->kill_at('zero', 2);
            helper_dies();
        }

        helper_looks();
        is(passes(2 * LIFE, keys => 1), '', "$how: nothing is lost");
        is(scalar(grep { $_ ne 'absent' } answers(@keys)), 0,
           "$how: all of the slice is cleared");
        $t->excuse_log($mark);
    }
};

sub helper_dies {
    until_faulted();
    ok(!$faults->pending, 'the helper dies');
    wait_until(sub { $t->helpers == 1 });
}


subtest 'a stopped worker meets a later generation' => sub {
    for my $place (qw(put turn opened closed enliven keep)) {
        begin();
        fill($keys_of_slice - 10);

        next if $place eq 'enliven';

        my ($pid, $connection, @keys) = worker_at($place, 10);

        if ($place ne 'keep') {
            answered(POST => 'clear') for 1, 2;
            %added = ();
            fill(2.5 * $keys_of_slice);
        }

        resume_process($pid);
        is($connection->response->status, 200,
           "$place: the worker acknowledges its keys");
        $added{$_} = $now for @keys;
        is(lost(), '', "$place: its keys are present");
        is(passes(LIFE + 2 * SLICE, keys => 1), '',
           "$place: all keys live as long as they should");
    }
};


# Reloads while a worker is stopped: it cannot say that it is shutting down.

sub reload_around {
    my ($stopped) = @_;

    my %old = map { $_ => 1 } $t->workers, $t->helpers;

    kill 'HUP', $t->master;

    wait_until(sub {
        my @new = grep { !$old{$_} } $t->workers, $t->helpers;
        my @left = grep { $old{$_} && $_ != $stopped } $t->workers, $t->helpers;

        return @new == 4 && !@left;
    }) or die 'nginx does not reload';
}

subtest 'nginx is reloaded while a worker is stopped' => sub {
    for my $place (qw(put turn opened closed)) {
        begin();
        fill($keys_of_slice - 10);

        my ($pid, $connection, @keys) = worker_at($place, 10);

        fill($keys_of_slice);
        reload_around($pid);
        is(passes(2 * SLICE, keys => 1), '', "$place: no key is lost");
        resume_process($pid);
        is($connection->response->status, 200,
           "$place: the old worker acknowledges its keys");
        $added{$_} = $now for @keys;
        is(passes(LIFE + 2 * SLICE, keys => 1), '',
           "$place: all keys live as long as they should");
        is(left(2 * STEP), '', "$place: keys expire");
    }
};


subtest 'two instances add keys, and one is stopped' => sub {
    begin();
    fill(1.5 * $keys_of_slice);
    $t->upgrade_begin;

    my ($pid, $connection, @keys) = worker_at('put', 10);

    fill(2.5 * $keys_of_slice);
    is(passes(2 * SLICE, keys => 1), '', 'no key is lost');
    resume_process($pid);
    is($connection->response->status, 200, 'the worker goes on');
    $added{$_} = $now for @keys;
    is(passes(LIFE, keys => 1), '', 'all keys live as long as they should');
    $t->upgrade_finish;
    is(lost(), '', 'all keys are present after the upgrade');
    is(passes(LIFE + 2 * SLICE), '', 'all keys live as long as they should');
    is(left(4 * STEP), '', 'and expire');
};


subtest 'a start is killed when its replay opens a slice' => sub {
    begin();
    fill(2.5 * $keys_of_slice);
    is(passes(3.5 * SLICE, keys => 1), '', 'nothing is lost');

    for my $place (qw(turn opened closed)) {
        for my $time (1 .. 3) {
            $t->kill_all;
            my $mark = $t->log_mark;
            $faults->kill_at($place, $time);
            isnt($t->run_may_die, 0, "$place: the start is killed ($time)");
            $faults->withdraw;
            $t->run;
            $t->excuse_log($mark);
            is(lost(), '', "$place: all keys are present after the next start");
        }
    }

    is(passes(LIFE + 2 * SLICE, keys => 1), '',
       'all keys live as long as they should');
    is(left(2 * STEP), '', 'and expire');
};


done_testing;
