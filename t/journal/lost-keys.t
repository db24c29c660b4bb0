#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Keys of bloom_add that the journal cannot take are only in the filter that
# serves.  That filter answers as before.  Every later filter
# answers "unknown" instead of "absent", even if the disk is full, until an
# image is loaded whose as_of shows that it has the lost keys.  t/crash/deaths.t
# tests deaths of processes behind a loss.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $control = "$dir/state/ids/control";
my $base = "$dir/state/ids/base";
my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
$t->build_image('later.bloom', ['id1', 'later'], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time));

sub conf {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom removals=0"], api => 1,
              add => 1);
}

conf('');
$t->run;

use constant {
    COUNT => 20,
    ALL => qw(write grow rename),
};

my $round = 0;
my ($first, $last);

# Adds keys while the disk refuses writes.

sub lose_keys {
    my @keys = map { "$_-of-round-$round" } 1 .. COUNT;

    $round++;
    ($first, $last) = @keys[0, -1];

    my @responses = $t->pipeline(map { "/add/ids?k=$_" } @keys);
    is(scalar(grep { $_->status != 200 } @responses), 0,
       'bloom_add answers while the disk is full');

    return @keys;
}

sub state_of { return zone_state($t, 'ids')->{state} }

# Begins an upgrade; then returns the answers of the old and the new instance,
# sorted.

my %side;

sub upgrade_begun {
    my $old = $t->master;
    my $new = $t->upgrade_begin;

    %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);
}

sub answers {
    my (@keys) = @_;

    my %answers;
    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', @keys);
        $answers{$side{$by[0]}} = $answers;
        return keys %answers == 2;
    }) or die 'only one instance answers';

    return join ' ', sort values %answers;
}

# Changes the loss that both files record.  nginx is stopped.

sub set_loss {
    my (%field) = @_;

    set_base($base, %field);
    set_control($control, %field);
}

# Forgets the loss, for the next part of the test.

sub forget {
    $disk->allow;
    $t->stop if $t->master;
    set_loss(lost => 0, lost_keys => 0);
    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'no'), '10', 'the zone serves again');
}


$t->expect_log(qr/\[alert\].*"ids" could not write added keys/);
$t->expect_log(qr/\[alert\].*"ids" has lost added keys.*see the error log of that time/);


subtest 'keys are lost, but the generation that serves has them' => sub {
    $disk->refuse('ENOSPC', ALL);

    my @keys = lose_keys();

    is(zone_state($t, 'ids')->{journal}{lost_keys}, COUNT,
       'the zone counts the lost keys');
    is(ask($t, 'ids', @keys, 'no'), '1' x COUNT . '0',
       'all keys are present before the next load, and others absent');
    is(state_of(), 'serving', 'the zone is serving before the next load');
};


# Whatever happens while the disk is still full, and afterwards: every later
# filter answers "unknown" about the lost keys.

my %event = (
    'a load' => sub {
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           'the image is loaded again');
    },
    'two loads and another loss' => sub {
        api($t, POST => 'zones/ids/reload')->status == 200 or die 'no load'
            for 1 .. 2;
        my @before = ($first, $last);
        lose_keys();
        is(ask($t, 'ids', $last), '1', 'a key that is lost then is present');
        api($t, POST => 'zones/ids/reload');
        ($first, $last) = @before;
    },
    'kill -9 of all processes' => sub { $t->kill_all; $t->run },
    'a stop' => sub { $t->stop; $t->run },
    'a change of size' => sub { conf(':4m'); $t->reload; conf('') },
);

for my $name (sort keys %event) {
    subtest "$name while the disk is full" => sub {
        forget();
        $disk->refuse('ENOSPC', ALL);
        lose_keys();
        is(ask($t, 'ids', $last, 'no'), '10',
           'the lost key is present, and others absent');

        $event{$name}->();
        is(ask($t, 'ids', $first, 'id1', $last, 'no'), '?1??',
           'a lost key is unknown');
        is(state_of(), 'damaged', 'the zone is damaged');
        like(zone_state($t, 'ids')->{journal}{lost_at}, qr/^20\d\d-.*Z$/,
             'the state tells up to when keys may be lost');

        $disk->allow;
        $t->kill_all;
        $t->run;
        is(ask($t, 'ids', $first, 'id1', $last, 'no'), '?1??',
           'a lost key is unknown after another start');
    };
}


# Two instances share a control page.  The keys of one are in its filter.

subtest 'nginx is upgraded while the disk is full' => sub {
    forget();
    $disk->refuse('ENOSPC', ALL);
    lose_keys();

    upgrade_begun();

    is(answers($last, 'no'), '10 ??',
       'the instance that has the lost keys answers, and the other one does'
       . ' not know');

    # the instance that adds the key has it; the other one cannot know

    my $key = 'one-more';
    my $lost = control($control)->{lost};
    is($t->get("/add/ids?k=$key")->status, 200,
       'bloom_add answers in one of the instances');
    cmp_ok(control($control)->{lost}, '>', $lost,
           'the key added by bloom_add is lost, too');
    unlike(answers($key), qr/0/,
           'the lost key is absent in neither of the instances');

    $t->upgrade_finish;
    is(ask($t, 'ids', 'id1', $last, 'no'), '1??',
       'a lost key is unknown after the upgrade');
};


# A zone that has lost keys loses keys again after another load.

subtest 'an instance answers "unknown" as soon as another one loses keys' =>
    sub
{
    forget();

    upgrade_begun();
    ok(wait_until(sub { answers('no') eq '0 0' }),
       'both instances serve during an upgrade');

    $disk->refuse('ENOSPC', ALL);

    # all on one connection, and so in one worker

    lose_keys();

    is(answers($last, 'no'), '10 ??',
       'the instance that has the lost keys answers, and the other one does'
       . ' not know');

    $disk->allow;
    is($t->get('/add/ids?k=after')->status, 200, 'another key is added');
    ok(wait_until(sub { answers('after') eq '1 1' }),
       'both instances have a key that is added when the disk has room');
    ok(wait_until(sub { answers($last, 'no') eq '10 ??' }),
       'the other instance does not know when it has followed, either');
    $t->upgrade_finish;
};


# A process counts a key that it loses first, and then stores the time; the file
# "base" may be written in between.

subtest 'a lost key was counted, and the time is not stored yet' => sub {
    forget();
    $t->stop;
    set_control($control, lost_keys => 1);
    my $number = read_base($base)->{number};
    $t->run;
    is(upload_image($t, 'ids', 'later')->status, 200, 'an image is uploaded');
    $t->kill_all;
    cmp_ok(read_base($base)->{number}, '>', $number, 'base has a new entry');
    $t->run;
    is(ask($t, 'ids', 'id1', 'later', 'no'), '110',
       'a start believes the entry that was written in between');
};


subtest 'an image has the lost keys' => sub {
    forget();
    $disk->refuse('ENOSPC', ALL);
    lose_keys();
    $disk->allow;

    is(upload_image($t, 'ids', 'later')->status, 200,
       'an image as of less than an hour after the loss is uploaded');
    is(ask($t, 'ids', $last, 'later', 'no'), '?1?',
       'a lost key is unknown with an image of less than an hour later');

    # change the time of the loss to two hours earlier

    my $lost = control($control)->{lost};
    cmp_ok(abs($lost / 1000 - time), '<', 60,
           'the control page has the time of the loss');
    $t->stop;
    set_loss(lost => $lost - 7200_000);
    $t->run;
    is(ask($t, 'ids', $last, 'later', 'no'), '010',
       'a lost key is absent with an image of more than an hour later');
    is(state_of(), 'serving',
       'the zone is serving with an image of more than an hour later');
};


# A file that is older than the others is noticed once: later starts know the
# loss from the files.

subtest 'the file base is older than the journal' => sub {
    for my $number (3, 4) {
        $t->stop;
        my $journal = BloomTest::Journal->new(entry => 7);
        $journal->append(['old']);
        begin_state($t, 'ids', $journal);
        set_base($base, number => $number);

        $t->expect_log(qr/\[alert\].*"base" is older than the journal/);
        $t->run;
        is(ask($t, 'ids', 'old', 'id1', 'no'), '11?',
           "what may be lost is unknown if base has entry $number of 7");
        my $lost = zone_state($t, 'ids')->{journal}{lost_at};
        cmp_ok(read_base($base)->{number}, '>', 7,
               'the entry that counts is a new one');

        my $mark = $t->log_mark;
        $t->kill_all;
        $t->run;
        is(zone_state($t, 'ids')->{journal}{lost_at}, $lost,
           'the next start finds the same loss');
        unlike($t->log_since($mark), qr/older than the journal/,
               'and no other');
    }
};


done_testing;
