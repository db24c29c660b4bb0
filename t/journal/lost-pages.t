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
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $faults = BloomTest::Faults->new($t);
my $disk = BloomTest::Disk->new($t, 'state');

$t->expect_log(qr/\[alert\].*has lost records that the disk could not write/);

sub begin {
    begin_state($t, 'ids');
    another_image($t);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1,
              workers => 2);
    $t->run;
    add($t, 'ids', ['durable'], durable => 1);
}

# Overwrites the record of one key with zeros, as if its page had been read from
# the disk again.

sub drop {
    my ($key) = @_;

    for my $path (files("$state/journal.*")) {
        open my $fh, '+<:raw', $path or die "$path: $!";
        my $content = do { local $/; <$fh> };

        my $at = index $content, chr(length $key) . $key;
        next if $at < 0;

        my $size = 32 + 1 + length $key;
        seek $fh, $at - 32, 0;
        print $fh "\0" x ($size + -$size % 8);
        close $fh or die "$path: $!";
        return;
    }

    die "no record of $key";
}

sub journal { return zone_state($t, 'ids')->{journal} }

sub fails { return wait_until(sub { journal()->{error} }) }
sub synced { return wait_until(sub { journal()->{unsynced_bytes} == 0 }) }

sub in_journal {
    my ($exit, $out) = $t->run_tool('journal', '--keys', $state);
    return { map { $_ => 1 } split /\n/, $out };
}


subtest 'a record is dropped while another follows' => sub {
    begin();
    $disk->refuse('EIO', 'sync');
    add($t, 'ids', [$_]) for qw(before dropped behind);
    ok(fails(), 'the synchronisation fails');
    drop('dropped');

    my $mark = $t->log_mark;
    $disk->allow;
    like($t->wait_for_log(qr/has lost records/, $mark),
         qr/\[alert\].*could not write.*add again/,
         'the log says that records are lost, and what to do');
    ok(synced(), 'the remaining records are synchronised');
    is(ask($t, 'ids', qw(durable before dropped behind no)), '11110',
       'all keys are present in the filter that serves');

    add($t, 'ids', ['later'], durable => 1);
    is(scalar(() = $t->log_since($mark) =~ /has lost records/g), 1,
       'a loss is logged once');

    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', qw(durable before behind later dropped no)), '1111??',
       'the lost key is unknown after a restart');
    my $in = in_journal();
    is(join(' ', map { $in->{$_} ? 1 : 0 }
                     qw(durable before dropped behind later)), '1 1 0 1 1',
       'all other keys are in the journal');
    $t->stop;
};


subtest 'the last record is dropped' => sub {
    begin();
    $disk->refuse('EIO', 'sync');
    add($t, 'ids', [$_]) for qw(before dropped);
    ok(fails(), 'the synchronisation fails');
    drop('dropped');

    my $mark = $t->log_mark;
    $disk->allow;
    $t->wait_for_log(qr/has lost records/, $mark);
    ok(synced(), 'the remaining records are synchronised');

    # the next record is on other pages

    add($t, 'ids', ['later'], durable => 1);
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'an image is loaded');
    is(ask($t, 'ids', qw(before later dropped no)), '11??',
       'the lost key is unknown after a load');
    $t->stop;
};


subtest 'all processes die before the disk synchronises again' => sub {
    begin();
    $disk->refuse('EIO', 'sync');
    add($t, 'ids', [$_]) for qw(before dropped behind);
    ok(fails(), 'the synchronisation fails');
    $t->kill_all;
    drop('dropped');
    $disk->allow;
    $t->run;
    is(ask($t, 'ids', qw(durable before behind dropped no)), '111??',
       'the lost key is unknown after a start');
    $t->stop;
};


subtest 'the system drops no record' => sub {
    begin();
    $disk->refuse('EIO', 'sync');
    add($t, 'ids', [$_]) for qw(before behind);
    ok(fails(), 'the synchronisation fails');

    my $mark = $t->log_mark;
    $disk->allow;
    ok(synced(), 'all records are synchronised when the disk allows');
    unlike($t->log_since($mark), qr/has lost records/,
           'the log reports no loss');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', qw(durable before behind no)), '1110',
       'all keys are present after a restart, and others absent');
    $t->stop;
};


# A worker waits until its record is on disk, and checks again only after the
# disk synchronises again.

subtest 'a request waits for durability meanwhile' => sub {
    $faults->needed;

    begin();

    my $stop = $faults->stop_at('published');
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/keys?durable=true',
                              body => 'dropped'));
    my $worker = $faults->stopped($stop);

    $disk->refuse('EIO', 'sync');
    ok(fails(), 'the synchronisation fails');
    drop('dropped');

    my $mark = $t->log_mark;
    $disk->allow;
    $t->wait_for_log(qr/has lost records/, $mark);
    ok(synced(), 'the remaining records are synchronised');

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
    $disk->refuse('EIO', 'sync');

    my $stop = $faults->stop_at('synced');
    add($t, 'ids', [$_]) for qw(dropped behind);
    my $helper = $faults->stopped($stop);
    drop('dropped');
    $disk->allow;

    my $mark = $t->log_mark;
    $t->expect_log(qr/exited on signal 9/);
    kill 'KILL', $helper or die "kill: $!";
    like($t->wait_for_log(qr/has lost records/, $mark), qr/\[alert\]/,
         'the next helper finds that records are lost');
    ok(synced(), 'the remaining records are synchronised');
    $t->stop;
};


done_testing;
