#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A start replays the whole journal.  No valid record is dropped, and absent
# keys are unknown if records may be missing.  power-loss.t tests torn tails and
# gaps.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my @ids = keys_of('id', 10);

$t->build_image('ids.bloom', \@ids, '-p', '1e-9', '-n', '50k');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2);


sub segments { return files("$state/journal.*") }


subtest 'added keys survive restarts' => sub {
    $t->run;
    add($t, 'ids', [map { "a$_" } 1 .. 2000]);
    add($t, 'ids', [map { "d$_" } 1 .. 1000], durable => 1);
    $t->get("/add/ids?k=b$_") for 1 .. 50;

    my @keys = ((map { "a$_" } 1 .. 2000), (map { "d$_" } 1 .. 1000),
                map { "b$_" } 1 .. 50);

    my ($exit, $out) = $t->run_tool('journal', '--keys', segments());
    is($exit, 0, 'ngx-bloom reads the journal of a zone that serves');
    is(join("\n", sort split /\n/, $out), join("\n", sort @keys),
       'the journal has the added keys and no other');

    for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
        my ($method, $how) = @$_;

        $t->$method;
        $t->run;
        is(ask_until_known($t, 'ids', @ids, @keys), '1' x (10 + @keys),
           "all keys are present after $how");
        is(ask_until_known($t, 'ids', map { "no$_" } 1 .. 500), '0' x 500,
           "keys that were never added are absent after $how");
    }

    is_added(api($t, POST => 'zones/ids/keys', body => join "\n", @keys),
             scalar @keys, 0, scalar @keys, undef,
             'keys from the journal are already present');
    add($t, 'ids', ['later']);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'later', @keys), '1' x (1 + @keys),
       'a key that is added after a replay is present after a restart');
    $t->stop;

    ($exit, my @segments) = read_journal($t, segments());
    is($exit, 0, 'ngx-bloom accepts the journal');
    is(scalar(grep { $_->{broken} || $_->{torn} || $_->{missing} } @segments),
       0, 'nothing in the journal is broken, torn or missing');
};


subtest 'a journal has several segments' => sub {
    begin_state($t, 'ids');
    $t->run;

    my @batches = map { my $n = $_; [map { "long-key-$n-$_" . 'x' x 80 }
                                         1 .. 5000] } 1 .. 8;
    add($t, 'ids', $_) for @batches;
    cmp_ok(scalar segments(), '>', 1, 'the journal has more than one segment');

    $t->kill_all;
    $t->run;

    my @answers = lookup_keys($t, 'ids', map { @$_ } @batches);
    is(scalar(grep { $_ eq 'present' } @answers), 40_000,
       'the keys of all segments are present after a restart');
    $t->stop;

    my ($exit, @segments) = read_journal($t, segments());
    is($exit, 0, 'ngx-bloom accepts all segments');
    my $keys = 0;
    $keys += $_->{keys} for @segments;
    cmp_ok($keys, '>=', 40_000, 'the segments have all keys');
};


subtest 'another program has written the segments' => sub {
    my $first = BloomTest::Journal->new(created => 1_600_000_000_000);
    $first->append(['w1', 'w2']);
    $first->append(["any\xff", 'x' x 65535]);
    my $second = $first->next_segment(created => 1_600_000_100_000);
    $second->append(['w3']);

    begin_state($t, 'ids', $first, $second);
    $t->run;
    is(ask_until_known($t, 'ids', @ids, qw(w1 w2 w3 w4 any%ff)), '1' x 13 . '0' . '0',
       'the keys of another program are present');
    is(api($t, GET => 'zones/ids/keys?key=any%ff')->json->{answer}, 'present',
       'a key with a byte that is not ASCII is present');

    add($t, 'ids', ['w4']);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(w1 w2 w3 w4 w5)), '11110',
       'a key that is added behind those of another program is present');
    $t->stop;

    my ($exit, @segments) = read_journal($t, segments());
    is($exit, 0, 'ngx-bloom accepts the continued journal');
    is($segments[-1]{missing} + $segments[-1]{broken}, 0,
       'the continued journal has no gap');
};


# state-files.t tests damage of every kind.  Only an as_of can show that an
# image has the keys that were lost.

subtest 'a journal is damaged' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

    my $journal = BloomTest::Journal->new(
        created => (time - 5 * 3600) * 1000);
    my @at = map { $journal->append(["r$_", "s$_"]) } 1 .. 3;
    my $content = $journal->segment;
    substr($content, $at[1] + BloomTest::Journal::RECORD + 1, 1) ^= "\1";
    begin_state($t, 'ids', $content);

    my $mark = $t->log_mark;
    $t->run;
    is(ask($t, 'ids', qw(id1 r1 s1 r3 s3 r2 no)), '11111??',
       'keys of valid records are present, and no key is absent');
    like($t->wait_for_log(qr/has lost added keys/, $mark), qr/\[alert\]/,
         'the log says that keys are lost');
    is(zone_state($t, 'ids')->{state}, 'damaged', 'the zone is damaged');

    $t->build_image('new.bloom', [@ids, 'r2'], '-p', '1e-9', '-n', '50k');
    is(upload_image($t, 'ids', 'new')->status, 200,
       'an image without as_of is uploaded');
    is(ask($t, 'ids', qw(r2 no)), '1?',
       'keys are unknown in an image without as_of');

    $t->build_image('new.bloom', \@ids, '-p', '1e-9', '-n', '50k', '--as-of',
                    rfc3339(time));
    is(upload_image($t, 'ids', 'new')->status, 200,
       'an image as of now is uploaded');
    is(ask_until_known($t, 'ids', qw(id1 no)), '10',
       'no key is unknown in the image as of now');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(id1 no)), '10',
       'no key is unknown after a restart with the image as of now');
    $t->stop;
};


subtest 'a journal has another version' => sub {
    for ([4, 'a newer program'], [2, 'the program that wrote it']) {
        my ($version, $program) = @$_;
        my $other = BloomTest::Journal->new(version => $version);
        $other->append(['n1']);
        begin_state($t, 'ids', $other);

        my $content = $t->read_file('state/ids/journal.0000000000000000');
        my $refused = qr/journal\.0{16}" has version $version, .*use $program/;
        my $log = $t->run_fails;
        like($log, qr/\[emerg\].*$refused/,
             "the refused start names the segment of version $version");
        my ($exit, $output) = $t->test_config;
        is($exit, 1, "nginx -t refuses a journal of version $version");
        like($output, $refused, 'nginx -t says which program reads it');
        ok($content eq $t->read_file('state/ids/journal.0000000000000000'),
           "the segment of version $version is not changed");
    }

    # the next start has an empty state directory

    begin_state($t, 'ids');
    $t->run;
    add($t, 'ids', ['x1']);
    is(ask($t, 'ids', 'x1', 'no'), '10',
       'an added key is present when a newer journal is removed');
    $t->stop;
};


done_testing;
