#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A load reads a damaged journal as it reads an undamaged one: it continues
# behind the damage, and reads almost everything while keys can still be added.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $faults = BloomTest::Faults->new($t);
$faults->needed;

$t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

# Starts nginx with a journal that has a damaged record, and two segments.

sub begin {
    my $journal = BloomTest::Journal->new;
    my @at = map { $journal->append(["k$_"]) } 1 .. 3;
    substr($journal->{data}, $at[1] + BloomTest::Journal::RECORD + 2, 1) ^= "\1";

    begin_state($t, 'ids', $journal);
    another_image($t);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
    $t->run;
    add($t, 'ids', [map { "first-$_-" . 'x' x 1000 } 1 .. 100]);
    ok(wait_until(sub { files("$state/journal.*") >= 2 }),
       'there is a segment for what is added next');
}

# Loads another image, and adds keys when the load has the whole present journal
# to read.  Returns the response and the last keys.

sub load_and_add {
    my ($before, @batches) = @_;

    another_image($t);
    my $stop = $faults->stop_at('replayed');
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/reload'));
    my $helper = $faults->stopped($stop);

    add($t, 'ids', $_) for @batches;
    $before->();
    resume_process($helper);

    return $c->response;
}


# A record has about 120 KB.  At most 256 KB are read while additions are
# blocked.

subtest 'many keys are added during a load' => sub {
    begin();

    my @batches = map { my $n = $_; [map { "b$n-$_-" . 'x' x 1100 } 1 .. 100] }
                      1 .. 40;
    my $response = load_and_add(sub { $faults->kill_at('rest', 10) },
                                @batches);
    is($response->status, 200, 'the image is loaded');
    ok($faults->pending,
       'only a few records are read while additions are blocked');
    $faults->withdraw;
    is(ask($t, 'ids', 'k1', 'k3', 'k2', 'no'), '11??',
       'keys are unknown since a record is damaged');
    is(join('', lookup_keys_once(map { $$_[0], $$_[-1] } @batches)), '1' x 80,
       'the keys that were added during the load are present');
    $t->stop;
};

sub lookup_keys_once {
    my $response = api($t, POST => 'zones/ids/test', body => join "\n", @_);

    return map { $_ eq 'present' ? 1 : 0 } @{ $response->json->{answers} };
}


subtest 'the end of the journal is lost while nginx runs' => sub {
    begin();
    add($t, 'ids', ['last'], durable => 1);

    my ($segment) = files("$state/journal.*");
    my $content = do { local (@ARGV, $/) = $segment; <> };
    my $at = index($content, "\4last") - BloomTest::Journal::RECORD;
    open my $fh, '+<:raw', $segment or die "$segment: $!";
    seek $fh, $at, 0;
    print $fh "\0" x 64;
    close $fh or die "$segment: $!";

    my $response = load_and_add(sub { }, ['later1'], ['later2']);
    is($response->status, 200, 'the image is loaded');
    is(ask($t, 'ids', 'k1', 'later1', 'later2', 'last'), '111?',
       'keys that are added behind a lost end are in the next generation');

    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'k1', 'later1', 'later2', 'last'), '111?',
       'the keys added behind a lost end are present after a restart');
    $t->stop;
};


done_testing;
