#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# After a power failure the control page of a zone with expire= may be older than
# the journal, so the zone's clock starts behind the last records.  Their keys
# live as long as they should all the same.

use strict;
use warnings;

use File::Copy qw(copy);

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Zones;

use constant HOUR => 3600;

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $control = $t->testdir . '/state/ids/control';

configure($t, ['zone=ids capacity=2k fpr=1e-9 expire=8h',
               'zone=tick capacity=8k fpr=0.001'], api => 1);
$t->run;

my $ledger = $time->ledger('ids', life => 8 * HOUR, slices => 8);

$ledger->add(['a']);
$time->passes(HOUR);
copy($control, "$control.old") or die "$control: $!";

# the page says that the clock has this time, and an hour less is the journal's

$time->passes(HOUR / 2);
$ledger->add(['b'], durable => 1);
$time->passes(HOUR / 4);
$ledger->add(['c'], durable => 1);
$t->kill_all;
rename "$control.old", $control or die "$control: $!";
$clock->reboot;
$t->run;

# the time between the page and the last record has not passed for the clock

$ledger->prolong(HOUR);
$ledger->check('after a power failure');

for my $hour (1 .. 7) {
    $time->passes(HOUR);
    $ledger->check("$hour hours later");
}

$time->passes(HOUR - 120);
$ledger->check('at the end of their lives');
$time->passes(4 * HOUR);
$ledger->check('after their lives');

done_testing;
