#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The clock of a zone with expire=: where it starts when a zone gets expire=, or
# when its control page is lost, and what becomes of keys, removed keys and
# images if it is behind the system's.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { HOUR => 3600, DAY => 86400 };

my $t = BloomTest->new;
my $dir = $t->testdir;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $expires = ' expire=8h';

# Starts or reloads with the zones; the first one is plain if $more is empty.

sub conf {
    my ($name, $more) = @_;

    configure($t, ["zone=$name capacity=2k fpr=1e-9 removals=100$more",
                   'zone=tick capacity=8k fpr=0.001'],
              api => 1, add => 1);
}

sub begin {
    my ($name, $more) = @_;

    $t->stop;
    conf($name, $more);
    $t->run;
}

sub ledger { return $time->ledger($_[0], life => 8 * HOUR, slices => 8) }

# Tests one key over a life and a slice, by the ledger.

sub lives {
    my ($zone, $key, $when) = @_;

    my $ledger = ledger($zone);

    $ledger->add([$key]);
    $time->passes(8 * HOUR - 60);
    $ledger->check("before the end of a life $when");
    $time->passes(2 * HOUR);
    $ledger->check("after a life $when");
}


subtest 'a zone that was idle for days gets expire=' => sub {
    begin('idle', '');
    add($t, 'idle', ['old']);
    $time->passes(10 * DAY);
    conf('idle', $expires);
    $t->reload;
    is(ask_until_known($t, 'idle', 'old'), '1', 'an earlier key is present');
    lives('idle', 'new', 'in a zone that got expire=');
    is(ask($t, 'idle', 'old'), '0', 'the earlier key has expired');
    add($t, 'idle', ['again']);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'idle', 'new', 'old', 'again'), '001',
       'keys that have expired are absent after a restart');
    lives('idle', 'third', 'after the restart');
};


subtest 'a reload takes the journal of a zone away and gives it back' => sub {
    begin('switch', $expires);

    my $ledger = ledger('switch');

    $ledger->add(['first']);
    $time->passes(4 * HOUR);

    my $mark = $t->log_mark;

    conf('switch', "$expires journal=off");
    $t->reload;
    ok($t->wait_for_log(qr/"switch" has no journal any more: added keys are lost at the next start or load/,
                        $mark), 'a warning says what the journal was for');
    is(ask_until_known($t, 'switch', 'first'), '1', 'no key is lost');
    $ledger->add(['second']);
    $time->passes(3 * HOUR);
    $ledger->check('before the end of a life without a journal');
    $time->passes(3 * HOUR);
    $ledger->check('after a life without a journal');
    is(ask($t, 'switch', 'first', 'second'), '01', 'only the later key lives');

    $mark = $t->log_mark;
    conf('switch', $expires);
    $t->reload;
    ok($t->wait_for_log(qr/"switch" starts again from its journal: keys that were added while it had none are lost/,
                        $mark), 'a warning says which keys are lost');
    is(ask_until_known($t, 'switch', 'first', 'second'), '00',
       'the journal has no key that lives');
    lives('switch', 'third', 'with a journal again');
};


# A flood must leave ready slices: without one, the open slice is not closed in
# time, and its keys live for another life.

subtest 'keys that are added after a flood expire in time' => sub {
    begin('flood', $expires);

    my $ledger = ledger('flood');

    $ledger->add([map { "flood$_" } 1000 * $_ .. 1000 * $_ + 999]) for 0 .. 9;
    $ledger->add(['last']);
    $time->passes(8 * HOUR - 60);
    $ledger->check('before the end of a life');
    $time->passes(2 * HOUR);
    $ledger->check('after a life');
};


# A clock that followed the system's would give keys that are added meanwhile an
# earlier time, and would take their lives when it is right again.  In doubt keys
# live longer: nothing expires by a time that is far ahead of the system's.

subtest 'the system clock is set back for ten hours' => sub {
    begin('back', $expires);

    my $ledger = ledger('back');

    $ledger->add(['before']);
    $clock->ahead($clock->{ahead} - DAY);
    $time->passes(7 * HOUR);
    $ledger->check('while the clock is behind');
    $time->passes(3 * HOUR);
    is(ask_until_known($t, 'back', 'before'), '1',
       'nothing expires while the clock is so far behind');
    $ledger->add(['meanwhile']);
    $clock->ahead($clock->{ahead} + DAY);
    $time->settle;
    $ledger->check('when the clock is right again');
    $t->stop;
    $t->run;
    $time->passes(8 * HOUR - 60);
    $ledger->check('before the end of a life after a restart');
    $time->passes(2 * HOUR);
    $ledger->check('a life after the clock was right again');
};


# Without its control page, a zone does not know what was on disk.

$t->expect_log(qr/the file "control" is missing or empty: keys .* may be lost/);
$t->expect_log(qr/answers "unknown" instead of "absent" for one life, 28800 s/);

for my $jump (-DAY, 0, DAY) {
    my $zone = 'lost' . ($jump + DAY);

    subtest "the control page is lost, the clock jumps by $jump s" => sub {
        begin($zone, $expires);
        my $ledger = ledger($zone);
        $ledger->add(['a']);
        $time->passes(3 * HOUR);
        $ledger->add(['b']);
        $time->passes(HOUR);
        $t->stop;
        unlink "$dir/state/$zone/control" or die;
        $clock->pass_all(2 * DAY);
        $clock->ahead($clock->{ahead} + $jump - 2 * DAY) if $jump < 0;
        $t->run;

        $ledger->{key}{$_}{must} = $time->now + 4 * HOUR for qw(a b);
        $ledger->prolong(3 * DAY);
        $ledger->check('when the control page was lost');
        is(ask($t, $zone, 'never'), '?',
           'a key that was never added is unknown');
        $time->passes(3 * HOUR);
        $ledger->check('three hours later');
        lives($zone, 'c', 'when the control page was lost');
        $t->kill_all;
        $t->run;
        lives($zone, 'd', 'after the next restart');
    };
}


# The journal has times that are ahead of the zone's clock.

subtest 'a key is removed while its time is ahead' => sub {
    begin('ahead', $expires);
    add($t, 'ahead', ['removed', 'kept']);
    $t->stop;
    unlink "$dir/state/ahead/control" or die;
    $clock->ahead($clock->{ahead} - DAY);
    $t->run;
    is(ask_until_known($t, 'ahead', 'removed', 'kept'), '11',
       'keys are present when the control page was lost');
    is(api($t, POST => 'zones/ahead/remove', body => 'removed')->status, 200,
       'a key is removed');

    for (1 .. 12) {
        $time->passes(HOUR);
        add($t, 'ahead', ["other$_"]);
    }

    is(ask($t, 'ahead', 'removed'), '0',
       'a removed key is absent when older keys have expired');
    $t->kill_all;
    $t->run;
    $time->settle;
    is(ask_until_known($t, 'ahead', 'removed'), '0',
       'a removed key is absent after a restart');
    $time->passes(2 * DAY);
    is(ask($t, 'ahead', 'removed', 'kept'), '00', 'all have expired at last');
    $clock->ahead($clock->{ahead} + DAY);
};


subtest 'a zone with a clock that is behind loses expire=' => sub {
    begin('behind', $expires);
    $time->passes(HOUR);
    add($t, 'behind', ['before']);
    $time->settle;
    $t->stop;
    $clock->pass_all(3 * DAY);
    $clock->reboot;
    $t->run;
    add($t, 'behind', ['after']);
    $time->passes(HOUR);
    add($t, 'behind', ['last']);
    $time->settle;

    # the image was built two days ago, and so before these keys were added

    my $built = time + $clock->{ahead} - 2 * DAY;
    $t->build_image('behind.bloom', ['base'], '-p', '1e-9', '-n', '2k',
                    '--as-of', rfc3339($built));
    $t->stop;
    configure($t, ["zone=behind file=$dir/behind.bloom",
                   'zone=tick capacity=8k fpr=0.001'], api => 1, add => 1);
    $t->run;
    is(ask_until_known($t, 'behind', 'base', 'after', 'last'), '111',
       'an image that is older than the additions does not cover them');
};


# A zone of ten days' keys gets expire=: its slices have room for a life's keys.

subtest 'a full zone gets expire=' => sub {
    configure($t, ['zone=full capacity=40k fpr=0.01',
                   'zone=tick capacity=8k fpr=0.001'], api => 1);
    $t->stop;
    $t->run;

    my $number = 0;

    for (1 .. 80) {
        add($t, 'full', [map { 'f' . $number++ } 1 .. 500]);
        $time->passes(3 * HOUR);
    }

    configure($t, ['zone=full capacity=2k fpr=0.01 expire=8h',
                   'zone=tick capacity=8k fpr=0.001'], api => 1);
    $t->reload;
    $time->settle;
    add($t, 'full', [map { 'f' . $number++ } 1 .. 500]);

    my @last = map { 'f' . ($number - $_) } 1 .. 1000;
    my $present = () = ask_until_known($t, 'full', @last) =~ /1/g;
    is($present, 1000, 'the last keys are present');

    my $wrong = () = ask_until_known($t, 'full', keys_of('never', 20000))
                     =~ /1/g;
    cmp_ok($wrong, '<', 200 + 5 * sqrt 200,
           'the false-positive rate is what is promised');
};

done_testing;
