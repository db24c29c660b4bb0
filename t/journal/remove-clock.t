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
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(wait_until);
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

# Keys are removed while the clock is ahead, and restored when it is right
# again.  The records after that keep the time of the clock that was ahead:
# their order decides, and an image that is newer by the right clock knows
# nothing of them.

$t->stop;
$t->build_image('ids.bloom', ['kept', 'gone'], '--as-of', time - 7200);
configure($t, ['zone=ids file=ids.bloom'], api => 1);
$t->run;

$clock->ahead(7200);
is(api($t, POST => 'zones/ids/remove', body => "kept\ngone")->status, 200,
   'keys are removed with the clock two hours ahead');
$clock->ahead(0);
is(api($t, POST => 'zones/ids/clear?only=removed')->status, 200,
   'they are restored when the clock is right');
is(api($t, POST => 'zones/ids/remove', body => 'gone')->status, 200,
   'one is removed again');

# Loads an image as of two seconds to come, by the clock that is right or ahead.

sub load_newer {
    my ($ahead) = @_;

    my $then = time + $ahead + 2;
    $t->build_image('ids.bloom', ['kept', 'gone'], '--as-of', time);
    $t->write_file('ids.bloom', patch_header($t->read_file('ids.bloom'),
                                             128 => pack 'Q<', $then * 1000));
    $clock->ahead($ahead);
    wait_until(sub { time + $ahead > $then });

    is(api($t, POST => 'zones/ids/reload')->status, 200,
       "a newer image is loaded with the clock $ahead seconds ahead");
}

load_newer(0);
is(ask_until_known($t, 'ids', 'kept', 'gone'), '10',
   'a newer image restores no key that was removed behind a clock ahead, and'
   . ' takes no restored key for removed');

load_newer(7200);
is(ask_until_known($t, 'ids', 'kept', 'gone'), '11',
   'an image that is newer than the clock that was ahead restores it');

done_testing;
