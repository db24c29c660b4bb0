#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# After a failed synchronisation the system may drop pages that it could not
# write, and count them as written. nginx reports no lost key as durable, and
# does not forget the loss.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';
my $faults = BloomTest::Faults->new($t);
my $disk = BloomTest::Disk->new($t, 'state');

$t->expect_log(qr/\[alert\].*has lost records that the disk could not write/);
$t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

# Starts nginx with a durable key, adds the keys, and waits until their
# synchronisation has failed.

sub begin {
    my (@keys) = @_;

    begin_state($t, 'ids');
    another_image($t);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1,
              workers => 2);
    $t->run;
    add($t, 'ids', ['durable'], durable => 1);
    $disk->refuse('EIO', 'sync');
    add($t, 'ids', [$_]) for @keys;
}

sub journal { return zone_state($t, 'ids')->{journal} }

sub synchronisation_fails {
    ok(wait_until(sub { (journal()->{error} // '') =~ /synchronised/ }),
       'the synchronisation fails');
}

# Overwrites the record of one key with zeros, as if its page had been read from
# the disk again.

sub drop {
    my ($key) = @_;

    for my $path (files("$state/journal.*")) {
        my $content = $t->read_file($path =~ s{.*/(?=state/)}{}r);
        my $at = index $content, chr(length $key) . $key;
        next if $at < 0;

        my $size = BloomTest::Journal::RECORD + 1 + length $key;
        open my $fh, '+<:raw', $path or die "$path: $!";
        seek $fh, $at - BloomTest::Journal::RECORD, 0;
        print $fh "\0" x ($size + -$size % 8);
        close $fh or die "$path: $!";
        return;
    }

    die "no record of $key";
}

# Lets the disk synchronise again, and tests what the log says since a mark.

sub recovers {
    my ($lost, $mark) = @_;

    $mark //= $t->log_mark;
    $disk->allow;
    ok(wait_until(sub { journal()->{unsynced_bytes} == 0 }),
       'the remaining records are synchronised');

    if ($lost) {
        like($t->wait_for_log(qr/has lost records/, $mark),
             qr/\[alert\].*could not write.*add again/,
             'the log says that records are lost, and what to do');

    } else {
        unlike($t->log_since($mark), qr/has lost records/,
               'the log reports no loss');
    }
}


# Each row: the keys that are added, whether "dropped" is dropped, and whether
# all processes die before the disk synchronises again.

for (['a record is dropped while another follows', [qw(before dropped behind)],
      1, 0],
     ['the last record is dropped', [qw(before dropped)], 1, 0],
     ['all processes die before the disk synchronises again',
      [qw(before dropped behind)], 1, 1],
     ['the system drops no record', [qw(before dropped behind)], 0, 0])
{
    my ($what, $keys, $drops, $dies) = @$_;

    subtest $what => sub {
        begin(@$keys);
        synchronisation_fails();
        $t->kill_all if $dies;
        drop('dropped') if $drops;

        if ($dies) {
            $disk->allow;

        } else {
            my $mark = $t->log_mark;
            recovers($drops);
            add($t, 'ids', ['later'], durable => 1);
            is(scalar(() = $t->log_since($mark) =~ /has lost records/g),
               $drops, 'a loss is logged once, and nothing else');
            is(ask($t, 'ids', 'durable', @$keys, 'no'),
               '1' . '1' x @$keys . '0',
               'all keys are present in the filter that serves');
            is(api($t, POST => 'zones/ids/reload')->status, 200,
               'an image is loaded');
            is(ask($t, 'ids', 'durable', @$keys, 'no'), answers($drops, @$keys),
               'a lost key is unknown after a load');
            $t->kill_all;
        }

        $t->run;
        is(ask($t, 'ids', 'durable', @$keys, 'no'), answers($drops, @$keys),
           'a lost key is unknown after a restart, and the others are present');
        $t->stop;
    };
}

sub answers {
    my ($drops, @keys) = @_;

    return join '', 1, map({ $drops && $_ eq 'dropped' ? '?' : 1 } @keys),
                $drops ? '?' : 0;
}


# A worker waits until its record is on disk, and checks again only after the
# disk synchronises again.

subtest 'a request waits for durability meanwhile' => sub {
    $faults->needed;

    begin();
    $disk->allow;

    my $stop = $faults->stop_at('unlocked');
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/keys?durable=true',
                              body => 'dropped'));
    my $worker = $faults->stopped($stop);

    $disk->refuse('EIO', 'sync');
    synchronisation_fails();
    drop('dropped');
    recovers(1);

    resume_process($worker);
    is_error($c->response, 503, qr/lost keys.*check the disk/,
             'a lost key is not reported as durable');

    ok(add($t, 'ids', ['dropped'], durable => 1)->{durable},
       'the lost key is durable when it has been sent again');
    $t->stop;
};


# The system reports a failure only once, and the process that learns of it may
# die before it has recorded it.

subtest 'the helper dies as soon as a synchronisation has failed' => sub {
    $faults->needed;

    begin();
    my $stop = $faults->stop_at('synced');
    add($t, 'ids', [$_]) for qw(dropped behind);
    my $helper = $faults->stopped($stop);
    drop('dropped');
    $disk->allow;

    my $mark = $t->log_mark;
    $t->expect_log(qr/exited on signal 9/);
    kill 'KILL', $helper or die "kill: $!";
    recovers(1, $mark);
    $t->stop;
};


done_testing;
