#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The journal of a zone with expire=: segments are removed when all of their keys
# have expired and not before, the last record of a key decides how long it lives,
# damage is forgotten a life later, and so are lost keys.

use strict;
use warnings;

use List::Util qw(max sum);

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Disk;
use BloomTest::Expiry;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600 };

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';
my $disk = BloomTest::Disk->new($t, 'state/ids');
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);

$t->expect_log(qr/has lost added keys/);

configure($t, ['zone=ids capacity=40k fpr=1e-9 removals=100 expire=8h',
               'zone=tick capacity=8k fpr=0.001'],
          api => 1, add => 1);

sub segments { return files("$state/journal.0*") }

# Makes a journal with a segment for each list of records: hours before now, and
# keys.  Returns the time of now, in ms.

sub begin_with {
    my (@segments) = @_;

    my $now = int((time + ($clock->{ahead} // 0)) * 1000);
    my ($journal, @written);

    for (@segments) {
        $journal = $journal ? $journal->next_segment
                            : BloomTest::Journal->new;

        for (@$_) {
            my ($hours, @keys) = @$_;
            my $type = ref $keys[0] ? ${ shift @keys } : ADD;

            $journal->append(\@keys, type => $type,
                             time => int($now - $hours * HOUR * 1000));
        }

        push @written, $journal;
    }

    begin_state($t, 'ids', @written);

    return $now;
}

sub present { return ask_until_known($t, 'ids', @_) }


subtest 'a segment is removed when its keys have expired' => sub {
    begin_with([[20, 'a']], [[12, 'b'], [6, 'c']], [[5, 'd']], [[2, 'e']],
               [[0, 'f']]);
    $t->run;
    $time->settle;
    is(present('a' .. 'g'), '0011110', 'keys live from the times of records');
    ok(wait_until(sub { segments() <= 5 + 2 && !-e "$state/journal."
                                                  . '0' x 16 }),
       'the segment of the expired key is removed');

    my @left = segments();
    $time->passes(1.8 * HOUR);
    is(present('a' .. 'g'), '0011110', 'keys are present until they expire');
    ok(-e $left[0], 'a segment with a key that lives is not removed');

    # a clean-up happens every few seconds of the injected time

    $time->passes(0.5 * HOUR);
    ok(wait_until(sub { !-e $left[0] }),
       'a segment is removed when its last key has expired');
    ok(-e $left[1], 'the next segment is not removed');
    $t->kill_all;
    $t->run;
    like(present('a' .. 'g'), qr/^00.1110$/,
         'keys that live are present after a restart');
    $time->passes(5.5 * HOUR);
    is(present('a' .. 'g'), '0000010', 'the other keys expire, too');
    ok(wait_until(sub { !grep { -e } @left[0 .. 2] }),
       'all segments of expired keys are removed');
    $time->passes(4 * HOUR);
    is(present('a' .. 'g'), '0000000', 'all keys expire');
    $t->stop;
};


subtest 'the journal is as long as what lives' => sub {
    begin_with([[0, 'begin']]);
    $t->run;

    # 2000 keys that come again each hour, and 150 long ones that never do

    my @keys = map { "again$_-" . 'x' x 200 } 1 .. 2000;
    my ($most, $written) = (0, 0);

    for my $hour (1 .. 100) {
        my @once = map { "once$hour-$_-" . 'x' x 20_000 } 1 .. 150;

        add($t, 'ids', [@keys, @once], durable => 1);
        $written += length "@keys @once ";
        $time->passes(HOUR);
        $most = max($most, sum(map { -s } segments()));
    }

    # a key lives for nine hours at most; a segment is removed when its last key
    # has expired, and two are made before they are needed

    my $limit = 9 / 100 * $written + 4 * (16 << 20);

    cmp_ok($written, '>=', 3 * $limit,
           "the keys that are written, $written bytes, are three times what the"
           . ' journal may have');
    cmp_ok($most, '<=', $limit, 'the journal has what lives');
    my $absent = () = present(@keys) =~ /0/g;
    is($absent, 0, 'all keys that are added again and again are present');
    $t->kill_all;
    $t->run;
    $absent = () = present(@keys) =~ /0/g;
    is($absent, 0, 'they are present after a restart');
    ok(!-e "$state/journal." . '0' x 16, 'old segments are removed');
    $time->passes(LIFE + 2 * HOUR);
    my $left = () = present(@keys) =~ /1/g;
    is($left, 0, 'they expire when they are not added any more');
    $t->stop;
};


for my $when ('damaged', 'missing') {
    subtest "a segment is $when" => sub {
        begin_with([[7, 'old']], [[6, 'lost']], [[3, 'later']], [[0, 'last']]);

        my @segments = segments();
        $when eq 'damaged' ? flip($segments[1], BloomTest::Journal::HEADER
                                               + BloomTest::Journal::RECORD + 2)
                           : unlink $segments[1];
        $t->run;
        is(ask($t, 'ids', qw(old lost later last no)), '1?11?',
           'a key that may be lost is unknown');
        $time->passes(4.5 * HOUR);
        is(ask($t, 'ids', qw(lost later last no)), '?11?',
           'a key that may be lost is unknown until it has expired');
        $t->kill_all;
        $t->run;
        like(ask($t, 'ids', qw(lost later last no)), qr/^\?[1?]1\?$/,
             'a key that may be lost is unknown after a restart');

        # the lost key is older than the next record

        $time->passes(2 * HOUR);
        ok(wait_until(sub { ask($t, 'ids', qw(lost no)) eq '00' }),
           'the zone knows again when all lost keys have expired');
        is(zone_state($t, 'ids')->{state}, 'serving', 'the zone serves again');
        $t->kill_all;
        $t->run;
        is(ask($t, 'ids', qw(lost last no)), '010',
           'the zone knows after another restart');
        $t->stop;
    };
}


subtest 'the end of the journal is lost' => sub {
    begin_with([[0, 'first']]);
    $t->run;
    add($t, 'ids', ['second'], durable => 1);
    $time->passes(3 * HOUR);
    add($t, 'ids', ['third'], durable => 1);
    $t->kill_all;

    my $file = (segments())[0];
    my $data = $t->read_file('state/ids/' . ($file =~ m{([^/]+)$})[0]);
    my $at = rindex $data, 'third';
    flip($file, $at);
    $t->run;
    is(ask($t, 'ids', qw(second third no)), '1??',
       'a key of the lost end is unknown');
    $time->passes(LIFE - 600);
    is(ask($t, 'ids', qw(third no)), '??',
       'it is unknown until it has expired');
    $time->passes(1800);
    ok(wait_until(sub { ask($t, 'ids', qw(third no)) eq '00' }),
       'the zone knows again a life later');
    $t->stop;
};


# A clock that was wrong has left records of the next days.  A time that is
# ahead by hours counts as being ahead by one at most.

subtest 'records are ahead of the clock' => sub {
    begin_with([[1, 'before']], [map { [-2 * $_, "ahead$_"] } 1 .. 30],
               [[0, 'after']]);
    $t->run;
    $time->settle;
    is(present(qw(before ahead1 ahead30 after no)), '11110',
       'all keys are present');
    cmp_ok(zone_state($t, 'ids')->{expire}{live}, '<', 6,
           'these records take no slices for themselves');
    $time->passes(LIFE - 600);
    is(present(qw(ahead1 ahead30 after)), '111', 'their keys live for a life');
    $time->passes(600 + HOUR + 1500);
    is(present(qw(before ahead1 ahead30 after)), '0000',
       'they live at most a slice longer');
    $t->stop;
};


subtest 'keys are lost while the disk is full' => sub {
    begin_with([[0, 'first']]);
    $t->run;
    $time->settle;
    $disk->refuse('ENOSPC', qw(write grow rename));
    $t->expect_log(qr/could not write added keys/);

    is($t->get('/add/ids?k=lost')->status, 200, 'bloom_add adds a key');
    is(zone_state($t, 'ids')->{journal}{lost_keys}, 1, 'the key is lost');
    $time->passes(LIFE - 600);
    is(ask($t, 'ids', 'lost'), '1', 'a lost key is present for a life');
    $disk->allow;
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'lost'), '?', 'it is unknown after a restart');
    $time->passes(2 * HOUR);
    is(present('lost'), '0', 'until it would have expired');
    $t->stop;
};


# The last record of a key decides how long it lives, also after restarts.

subtest 'keys are added again and removed' => sub {
    my @filler = map { "filler$_" } 1 .. 200;

    for my $how ('memory', 'a restart') {
        begin_with([[20, 'gone', @filler],
                    [7, 'old', 'again', 'undone', @filler]],
                   [[6, \REMOVE, 'undone'], [5, 'middle', 'removed', @filler]],
                   [[4.5, \REMOVE, 'removed'], [4, @filler]],
                   [[3, 'again', @filler]],
                   [[2, 'undone', @filler]], [[0, 'end']]);
        $t->run;

        my $restart = sub {
            return if $how eq 'memory';
            $t->kill_all;
            $t->run;
        };
        my @keys = qw(gone old again middle undone removed end);

        $restart->();
        is(present(@keys), '0111101', "keys of the journal, with $how");
        $time->passes(0.8 * HOUR);
        $restart->();
        is(present(@keys), '0111101', "none dies early, with $how");
        $time->passes(1.7 * HOUR);
        $restart->();
        is(present(@keys), '0011101',
           "a key lives from its addition, with $how");
        $time->passes(2 * HOUR);
        $restart->();
        is(present(@keys), '0010101',
           "a key of the middle expires, with $how");
        $time->passes(2 * HOUR);
        $restart->();
        like(present(@keys), qr/^0000[01]01$/,
             "keys that were added again expire later, with $how");
        $time->passes(LIFE);
        is(present(@keys), '0000000', "all expire, with $how");
        $t->stop;
    }
};

done_testing;
