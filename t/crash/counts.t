#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The counts of a response add up on every way out of the write path (I20): a
# batch that waits and is tried again, one that waits in vain, one that the disk
# refuses in the middle of a request, and one that another batch has overtaken.
# What is acknowledged has happened.  t/api/counts.t has the ways out that need
# no fault.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process stop_process wait_until);
use BloomTest::Zones;

use constant {
    N => 4000,                       # keys of several records
    PREPARED => 36 * 1024 * 1024,    # bytes that are prepared behind the end
};

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $disk = BloomTest::Disk->new($t, 'state');

configure($t, ['zone=ids capacity=100k fpr=1e-9 removals=20k'], api => 1,
          workers => 2);
$t->run;

my $connection;

# Lets a worker stop with the lock of the zone, and returns its process id.

sub stopped {
    my $stop = $faults->stop_at('locked');

    $connection = $t->connect;
    $connection->send($t->request_text(POST => '/bloom/zones/ids/keys',
                                       body => 'stalled'));
    return $faults->stopped($stop);
}

sub sent {
    my ($zone, $path, @keys) = @_;

    my $c = $t->connect;
    $c->send($t->request_text(POST => "/bloom/zones/$zone/$path",
                              body => join '', map { "$_\n" } @keys));
    return $c;
}

# Tests the counts of a response, and returns it.

sub counts_are {
    my ($r, $status, $want, $name) = @_;

    is($r->status, $status, "$name: the status") or diag($r);

    my $got = $r->json;

    is_deeply({ map { $got->{$_} ? ($_ => $got->{$_}) : () }
                    qw(received added already_present removed absent
                       superseded invalid refused) },
              $want, "$name: the counts") or diag($r);

    return $got;
}

# A request that is refused is read no further.

sub is_refused {
    my ($r, $name) = @_;

    my $got = $r->json;

    cmp_ok($got->{received}, '>', 0, "$name: keys were received");
    counts_are($r, 503, { received => $got->{received},
                          refused => $got->{received} }, $name);
}

my @old = map { "old$_" } 1 .. N;
my @new = map { "new$_" } 1 .. N;

add($t, 'ids', \@old);


subtest 'a batch waits for the lock' => sub {
    my $pid = stopped();
    my @sent = (sent('ids', 'keys?durable=true', @new, @old[0 .. 9]),
                sent('ids', 'remove?durable=true', @old[100 .. N - 1], 'none'));

    # nothing of them has happened yet

    is(ask($t, 'ids', @old[100, 2000, N - 1]), '111', 'they wait');
    resume_process($pid);

    counts_are($sent[0]->response, 200,
               { received => N + 10, added => N, already_present => 10 },
               'additions that were tried again');
    counts_are($sent[1]->response, 200,
               { received => N - 99, removed => N - 100, absent => 1 },
               'removals that were tried again');
    is($connection->response->status, 200, 'the stopped worker answers');
    is(ask($t, 'ids', @new), '1' x N, 'all new keys are present');
    is(ask($t, 'ids', @old[100 .. N - 1]), '0' x (N - 100),
       'all removed keys are absent');
};


subtest 'a batch waits in vain' => sub {
    my $pid = stopped();
    my @sent = (sent('ids', 'keys', map { "vain$_" } 1 .. N),
                sent('ids', 'remove', @new));

    is_refused($sent[0]->response, 'additions');
    is_refused($sent[1]->response, 'removals');
    resume_process($pid);
    is($connection->response->status, 200, 'the stopped worker answers');
    is(ask_until_known($t, 'ids', 'vain1', 'vain' . N), '00',
       'refused additions have not happened');
    is(ask($t, 'ids', @new), '1' x N, 'nor have refused removals');
};


# Room for 16 MiB is prepared before the reserve, and the disk gives no more.

subtest 'the journal is full in the middle of a request' => sub {
    my @long = map { "long$_-" . 'x' x 60_000 } 1 .. 600;

    $disk->refuse('ENOSPC', 'grow');

    my $r = sent('ids', 'keys', @long)->response;
    my $got = $r->json;

    is($r->status, 503, 'the status') or diag($r);
    cmp_ok($got->{added}, '>', 0, 'some keys are added');
    cmp_ok($got->{refused}, '>', 0, 'some keys are refused');
    is($got->{added} + $got->{refused}, $got->{received},
       'the counts add up');

    my @answers = map { lookup_keys($t, 'ids', $_) } @long[0, $got->{added} - 1,
                                                           $got->{added}];
    is(join(' ', @answers), 'present present absent',
       'those that were added are present, and no others');
    $disk->allow;
};


subtest 'the disk refuses' => sub {
    $disk->refuse('EIO', 'write');
    is_refused(sent('ids', 'keys', map { "refused$_" } 1 .. N)->response, 'additions');
    is_refused(sent('ids', 'remove', @new)->response, 'removals');
    $disk->allow;
    is(ask($t, 'ids', 'refused1', 'refused' . N), '00',
       'refused additions have not happened');
    is(ask($t, 'ids', @new), '1' x N, 'nor have refused removals');
};

# Removals wait for the journal behind additions, and there is room for a part of
# them.  They are tried again as they came (I1).

subtest 'removals that have too little room wait for the journal' => sub {
    my @names = map { sprintf '%s%090d', 'gone', $_ } 1 .. 300;
    my $page = $t->testdir . '/state/few/control';

    $t->kill_all;
    configure($t, ['zone=few capacity=100k fpr=1e-9 removals=250'], api => 1,
              workers => 2);
    $t->run;
    add($t, 'few', \@names);
    ok(wait_until(sub {
        my $c = control($page);
        return $c->{synced} >= $c->{end}
               && $c->{prepared} >= $c->{end} + PREPARED;
    }), 'the helper has nothing to do');

    my ($helper) = $t->helpers;
    stop_process($helper);

    # until one of them waits, for longer than any other takes

    my ($n, $waits) = (0);

    while (!$waits && $n < 1000) {
        $n++;
        my $c = sent('few', 'keys', map { "long$n-$_-" . 'x' x 17_000 } 1 .. 5);
        $waits = $c if !IO::Select->new($c->{socket})->can_read(1);
    }

    ok($waits, 'additions wait for the journal');

    my $remove = sent('few', 'remove', @names);
    is(ask($t, 'few', @names), '1' x 300, 'the removals wait');
    resume_process($helper);

    is($waits->response->status, 200, 'the additions are made');

    my $r = $remove->response;
    my $removed = $r->json->{removed};

    cmp_ok($removed, '>', 0, 'some keys are removed');
    counts_are($r, 507, { received => 300, removed => $removed,
                          refused => 300 - $removed },
               'removals that were tried again');
    is(ask($t, 'few', @names), '0' x $removed . '1' x (300 - $removed),
       'those that were removed are absent, and no others');
};

done_testing;
