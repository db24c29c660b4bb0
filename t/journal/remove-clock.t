#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone that starts empty starts again while the clock is hours behind, so that
# the times of all records are in the future.  Removed keys are absent all the
# same, also those that a checkpoint has: no image knows better.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Zones;

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);

configure($t, ['zone=seen capacity=10k fpr=1e-9'], api => 1);
$t->run;
add($t, 'seen', ['before', 'after', 'left']);

sub remove {
    is(api($t, POST => 'zones/seen/remove', body => $_[0])->status, 200,
       "a key is removed: $_[0]");
}

remove('before');
is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
   'a checkpoint is written');
remove('after');

for my $hours (-3, 0, 3, 0) {
    $t->kill_all;
    $clock->ahead($hours * 3600);
    $t->run;
    is(ask_until_known($t, 'seen', 'before', 'after', 'left', 'no'), '0010',
       "removed keys are absent after a start with the clock $hours hours"
       . ' ahead');
}

done_testing;
