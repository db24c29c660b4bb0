#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A start takes every removal that was acknowledged, however many there are: room
# is counted from the records, for all instances alike (I14).

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until stop_process resume_process);
use BloomTest::Zones;

use constant ROOM => 10;

my $t = BloomTest->new;
my @keys = map { "key$_" } 1 .. 60;

$t->build_image('ids.bloom', \@keys, '-p', '1e-9', '-n', '1k');

# `limit` is "removals=" of all zones.

sub conf {
    my ($limit) = @_;

    configure($t, ["zone=ids file=ids.bloom removals=$limit",
                   "zone=seen capacity=1k fpr=1e-9 removals=$limit",
                   "zone=live capacity=1k fpr=1e-9 removals=$limit expire=1h"],
              api => 1);
}

# Returns the answers for the keys from $from to $to, without repetition.

sub answers {
    my ($zone, $from, $to) = @_;

    my %seen = map { $_ => 1 }
               split //, ask_until_known($t, $zone, @keys[$from - 1 .. $to - 1]);

    return join '', sort keys %seen;
}

sub remove {
    my ($zone, $from, $to, $arguments) = @_;

    return api($t, POST => "zones/$zone/remove" . ($arguments // ''),
               body => join '', map { "$_\n" } @keys[$from - 1 .. $to - 1]);
}


# The journal has more removals than "removals" allows: a process that died
# before it had made its keys exceptions left the room to others.

for my $zone ('ids', 'seen', 'live') {
    subtest "$zone: the journal has more removals than there may be" => sub {
        my $journal = BloomTest::Journal->new(created => (time + 2) * 1000);

        $journal->append(\@keys) if $zone ne 'ids';
        $journal->append([@keys[$_ * 10 .. $_ * 10 + 9]], type => REMOVE)
            for 0 .. 3;

        conf(ROOM);
        begin_state($t, $zone, $journal);
        like($t->test_config, qr{test is successful}, 'nginx -t succeeds');
        $t->run;

        for my $life ('a start', 'a restart', 'a start with a checkpoint') {
            is(answers($zone, 1, 40), '0', "$life takes all removals");
            is(answers($zone, 41, 60), '1', 'and no others');
            is(zone_state($t, $zone)->{state}, 'serving', 'the zone serves');

            my $r = remove($zone, 41, 41);
            is($r->status, 507, 'another removal is refused');
            is($r->json->{refused}, 1, 'and counted');
            is(answers($zone, 41, 41), '1', 'and changes nothing');

            is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
               'a checkpoint is written')
                if $life ne 'a start';

            $t->kill_all;
            $t->run;
        }

        is(answers($zone, 1, 40), '0', 'and so does one after that');
        $t->stop;
    };
}


# While two instances live, the one with less room decides.

subtest 'an upgrade with less room' => sub {
    begin_state($t, 'ids');
    conf(ROOM);
    $t->run;
    is(remove('ids', 1, 8, '?durable=true')->status, 200, '8 keys are removed');

    conf(9);
    $t->upgrade_begin;
    my $r = remove('ids', 9, 12, '?durable=true');
    is($r->json->{removed} + $r->json->{refused}, 4, 'the counts add up');
    is($r->json->{removed}, 1, 'one more key fits');
    is($r->status, 507, 'and the others are refused');
    $t->upgrade_finish;
    is(answers('ids', 1, 9), '0', 'the new instance has all removals');
    is(answers('ids', 10, 60), '1', 'and no others');
    $t->kill_all;
    $t->run;
    is(answers('ids', 1, 9), '0', 'so has a restart');
    $t->stop;
};


# What the new instance, at port 8090, has not applied takes room there, too.

subtest 'an instance with less room follows late' => sub {
    begin_state($t, 'ids');
    conf(ROOM);
    $t->run;
    is(remove('ids', 1, 8)->status, 200, '8 keys are removed');
    conf(9);

    my $conf = $t->read_file('nginx.conf');
    my ($old, $new) = map { '127.0.0.1:' . $t->port($_) } 8080, 8090;

    $t->write_file('nginx.conf', $conf =~ s/\Q$old\E/$new/r);

    my $helper = $t->helper($t->upgrade_begin);

    stop_process($helper);
    is(remove('ids', 9, 9)->status, 200, 'the old instance removes one more');
    is(remove('ids', 10, 10)->status, 507,
       'it refuses another, although the new one has not applied the last');
    is(answers('ids', 10, 10), '1', 'which changes nothing');
    resume_process($helper);
    $t->kill_all;
};


subtest 'removals come and go' => sub {
    begin_state($t, 'ids');
    conf(ROOM);
    $t->run;

    for (1 .. 30) {
        is(remove('ids', 1, 10)->status, 200,
           "round $_: keys that were added again are removed");
        add($t, 'ids', [@keys[0 .. 9]]);
    }

    is(remove('ids', 11, 20)->status, 200, 'there is room for others');
    $t->kill_all;
    $t->run;
    is(answers('ids', 1, 10), '1', 'keys that were added again are present');
    is(answers('ids', 11, 20), '0', 'keys that were removed last are absent');
    my $mark = $t->log_mark;
    $t->reload;
    unlike($t->log_since($mark), qr/its memory is recreated/,
           'a reload keeps the memory');
    is(answers('ids', 11, 20), '0', 'and the removals');
    $t->stop;
};


# The entry of an hour later says that more was removed than the journal has.

subtest 'base is newer than the journal' => sub {
    begin_state($t, 'seen');
    conf(ROOM);
    $t->run;
    add($t, 'seen', [@keys[0 .. 9]]);
    is(remove('seen', 1, 5)->status, 200, 'keys are removed');
    $t->stop;

    my $file = $t->testdir . '/state/seen/base';
    my $from = read_base($file)->{from};

    set_base($file, from => { %$from, removals => 1000,
                              removed_bytes => 10_000 });
    my ($status) = $t->test_config;
    is($status, 0, 'nginx -t accepts the configuration');
    $t->run;
    is(answers('seen', 6, 10), '1', 'nginx starts, and has its keys');
    is(answers('seen', 1, 5), '0', 'and its removals');
    $t->stop;
};


done_testing;
