#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# No key is lost because a clock was wrong, whether on the machine that built an
# image or on the one that serves it.  The times of records never go back: after
# a clock was ahead, new records keep its time, no image covers them, and the
# log says so.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Image qw(patch_header);
use BloomTest::Journal;
use BloomTest::Process qw(wait_until stop_process resume_process);
use BloomTest::Zones;

use constant {
    HOUR => 3600,
    YEAR => 366 * 86400,
};

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my $now = time;

my $faults = BloomTest::Faults->new($t);
my $clock = BloomTest::Clock->new($t);

$t->build_image('plain.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k');

my $images = 0;

# Builds an image with an as_of, which may be in the future.

sub image {
    my ($name, $as_of) = @_;

    $t->write_file("$name.bloom", patch_header(
        $t->read_file('plain.bloom'), 128 => pack('Q<', $as_of * 1000),
        136 => sprintf 'build id %7d', $images++));
}

# Starts nginx with an image and a journal.  Each list is a segment: pairs of a
# key and its age in seconds.

sub begin_with {
    my ($image, @segments) = @_;

    my @journals;

    for my $pairs (@segments) {
        push @journals, @journals ? $journals[-1]->next_segment
                                  : BloomTest::Journal->new;
        $journals[-1]->append([$_->[0]], time => ($now - $_->[1]) * 1000)
            for @$pairs;
    }

    begin_state($t, 'ids', @journals);
    install_image($t, $image);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1,
              workers => 2);
    $t->run;
}

sub answers { return ask_until_known($t, 'ids', @_) }

sub restart {
    $t->kill_all;
    $t->run;
}

# After a start, the helper looks for segments to remove before it saves an
# image.

sub keeps_its_first_segment {
    is(api($t, GET => 'zones/ids/image')->status, 200,
       'the helper has looked for segments to remove');
    ok(-e "$state/journal.0000000000000000",
       'a segment with a time to come is not removed');
}

# Returns, for each record of the journal, its first key and how many seconds
# its time is ahead of the time at which this test began.

sub ahead_in_journal {
    my ($exit, $out) = $t->run_tool('journal', '--keys', '--json', $state);
    my %ahead;

    for (JSON::PP->new->incr_parse($out)) {
        my @part = $_->{time} =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)/;
        $ahead{$_->{key}} = timegm(@part[5, 4, 3, 2], $part[1] - 1, $part[0])
                            - $now;
    }

    return \%ahead;
}

use JSON::PP ();
use Time::Local qw(timegm);


# The as_of of the image is reached while nginx is down, or while it runs.

for my $ahead (50 * 60, 2 * HOUR, 30 * 86400) {
    subtest "an image is as of $ahead seconds to come" => sub {
        image('early', $now + $ahead);
        begin_with('early', [['day', 86400], ['minutes', 1800]]);
        add($t, 'ids', ['new']);
        my $first = answers('minutes', 'new', 'no');
        is($first, '110', 'keys of the last hour and new keys are present');

        restart();
        is(answers('minutes', 'new', 'no'), '110',
           'the keys are present after a start before that time');
        my $copy = api($t, GET => 'zones/ids/image')->body;
        add($t, 'ids', ['later']);

        $clock->ahead($ahead + 3 * HOUR);
        restart();
        is(answers('minutes', 'new', 'no'), '110',
           'the keys are present after a start after that time');

        is(api($t, PUT => 'zones/ids/image', body => $copy)->status, 200,
           'a copy of the zone is uploaded that was made before');
        is(answers('minutes', 'new', 'later', 'no'), '1110',
           'keys that are newer than the copy are present');

        is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
           'a checkpoint is written');
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           'the image is loaded again');
        is(answers('minutes', 'new', 'no'), '110',
           'the keys are present after a load after that time');

        $t->stop;
        $clock->right;
    };
}


subtest 'the image that serves is newer than the clock says' => sub {
    image('before', $now - 60);
    begin_with('before');
    $clock->ahead(-3 * HOUR);
    add($t, 'ids', ['behind']);
    $clock->right;
    restart();
    is(answers('behind', 'no'), '10',
       'a key that was added while the clock was behind is present');
    $t->stop;
};


# A machine without a battery has such a clock until it has asked a time server.

subtest 'the clock starts again from 1970' => sub {
    begin_with('plain', [['h2', 2 * HOUR], ['h1', 600]]);
    $clock->ahead(-$now + 1000);
    restart();
    add($t, 'ids', ['dark']);
    is(answers('h2', 'h1', 'dark', 'no'), '1110',
       'the zone serves and takes keys');

    $clock->right;
    image('right', $now);
    is(upload_image($t, 'ids', 'right')->status, 200,
       'an image is uploaded when the clock is right');
    is(answers('h2', 'h1', 'dark', 'no'), '0110',
       'a key that was added with the wrong clock is as new as those before');

    $clock->ahead(-$now + 1000);
    restart();
    is(answers('h1', 'dark', 'no'), '110',
       'the zone starts again with the wrong clock');
    $clock->ahead(3 * HOUR);
    restart();
    is(answers('h1', 'dark', 'no'), '110',
       'the image covers no more after that');
    $t->stop;
    $clock->right;
};


subtest 'the clock was ahead once' => sub {
    my $mark = $t->log_mark;

    begin_with('plain', [['h3', 3 * HOUR]]);
    add($t, 'ids', ['before']);
    $clock->ahead(YEAR);
    add($t, 'ids', ['wrong']);
    unlike($t->log_since($mark), qr/the clock was ahead once/,
           'the journal is not ahead of the clock');
    $clock->right;
    like($t->wait_for_log(qr/the clock was ahead once/, $mark),
         qr/\[warn\].*"ids".* has times up to \d{4}-\d\d-\d\dT.*; until then new records get that time/,
         'the log says what follows when the clock is right again');
    add($t, 'ids', ['after']);
    $mark = $t->log_mark;
    restart();
    $t->wait_for_log(qr/the clock was ahead once/, $mark);
    add($t, 'ids', ['later']);
    $clock->ahead(-1200);
    add($t, 'ids', ['back']);
    $clock->right;

    is(answers('h3', 'before', 'wrong', 'after', 'later', 'back', 'no'),
       '1111110', 'all keys are present');

    my $ahead = ahead_in_journal();
    cmp_ok($ahead->{before}, '<', HOUR,
           'a key has the time of the clock that was right');
    cmp_ok($ahead->{wrong}, '>', YEAR - 60,
           'a key has the time of the clock that was ahead');
    is($ahead->{$_}, $ahead->{wrong}, "key $_, which was added later, has that"
                                      . ' time, too')
        for qw(after later back);

    # images that are an hour newer than the keys before that

    $clock->ahead(3 * HOUR);

    for my $name ('newer', 'newer2') {
        image($name, $now + 2 * HOUR);
        is(upload_image($t, 'ids', $name)->status, 200,
           "image $name of two hours later is uploaded");
    }

    is(answers('h3', 'before', 'wrong', 'after', 'later', 'back', 'no'),
       '0011110', 'it covers what was added before the clock was ahead, and'
                  . ' nothing else');
    restart();
    is(answers('h3', 'before', 'wrong', 'after', 'later', 'back', 'no'),
       '0011110', 'the keys are present after a start');
    keeps_its_first_segment();

    # a zone is cleared, and its new records keep the time

    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    add($t, 'ids', ['new']);
    is(ahead_in_journal()->{new}, $ahead->{wrong},
       'a clear does not take the time back');
    $clock->right;
    $t->stop;
};


# The record with the time is not on disk, but an entry of base that was written
# later is.

subtest 'the clock was ahead before power was lost' => sub {
    my $segment = 'state/ids/journal.0000000000000000';

    begin_with('plain', [['h3', 3 * HOUR]]);

    my $before = $t->read_file($segment);

    $clock->ahead(YEAR);
    add($t, 'ids', ['wrong']);
    $clock->right;
    image('then', $now - 60);
    is(upload_image($t, 'ids', 'then')->status, 200, 'an image is uploaded');
    $t->kill_all;
    $t->write_file($segment, $before);
    set_control("$state/control", synced => 0, rewrite => 0);
    $t->run;
    is(answers('wrong', 'no'), '00', 'the record is gone');
    add($t, 'ids', ['after']);
    cmp_ok(ahead_in_journal()->{after}, '>', YEAR - 60,
           'a later key has no earlier time than that one had');
    $t->stop;
};


# Such a journal was written by another program: a time that is ahead holds for
# all records behind it.

subtest 'times of the journal go back' => sub {
    begin_with('plain', [['h6', 6 * HOUR], ['wrong', -YEAR]],
               [['h5', 5 * HOUR]], [['h4', 4 * HOUR], ['wrong2', -YEAR]],
               [['h2', 2 * HOUR]]);
    is(answers('h6', 'wrong', 'h5', 'h4', 'wrong2', 'h2', 'no'), '1111110',
       'all keys are present');

    for my $name ('between', 'between2') {
        image($name, $now - 3 * HOUR + 60);
        is(upload_image($t, 'ids', $name)->status, 200,
           "image $name of three hours ago is uploaded");
    }

    is(answers('h6', 'wrong', 'h5', 'h4', 'wrong2', 'h2', 'no'), '0111110',
       'the image covers only what is before the first time to come');
    restart();
    keeps_its_first_segment();
    $t->stop;
};


subtest 'the clock jumps while a lock is waited for' => sub {
    $faults->needed;

    begin_with('plain');

    my $stop = $faults->stop_at('required');
    my $c = $t->connect;
    $c->send($t->request_text(GET => '/add/ids?k=first'));
    my $worker = $faults->stopped($stop);

    # the other worker waits for milliseconds, whatever the clock says, and owes
    # the key

    $clock->ahead(YEAR);
    is($t->get('/add/ids?k=second')->status, 200,
       'bloom_add does not wait for as long as the clock is ahead');
    is(ask($t, 'ids', 'second'), '?', 'the key is not absent');
    $clock->right;

    resume_process($worker);
    is(answers('first', 'second', 'no'), '110',
       'both keys are present when the lock is free');
    $t->stop;
};


subtest 'the clock jumps while an image is uploaded' => sub {
    begin_state($t, 'ids');
    install_image($t, 'plain');
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 1);
    $t->run;

    my $helper = $t->helper;
    stop_process($helper);

    my $c = $t->connect;
    $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                              body => $t->read_file('plain.bloom')));

    # the worker has the new time, and asks several times for the result

    $clock->ahead(YEAR);
    my $year = (gmtime($now + YEAR))[5] + 1900;
    ok(wait_until(sub { $t->get('/')->header('Date') =~ /$year/ }),
       'nginx has the new time');
    sleep 1;

    resume_process($helper);
    is($c->response->status, 200,
       'the helper is known to run, although the clock jumped by a year');
    my $beat = api($t, GET => 'zones/ids')->json->{helper}{heartbeat};
    like($beat, qr/^$year-/, 'its last sign of life is told by that clock');
    $t->stop;
    $clock->right;
};


done_testing;
