#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what becomes of old changes of a source: segments of the journal are
# removed by the positions of the last two images, whatever the times; an image
# that lacks changes which are gone is refused; and changes that the source has
# lost in a failover are not replayed onto an image that is later.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Source;
use BloomTest::Zones;

# keys of a batch, of 100 bytes each, and batches that fill the first segment of
# the journal, which has 2 MiB
use constant { KEYS => 1000, BATCHES => 30 };

my $t = BloomTest->new;
my $filler = 'x' x 90;
my $state = $t->testdir . '/state/ids';

sub image {
    my ($name, $position, @keys) = @_;

    $t->build_image("$name.bloom", \@keys, '-p', '1e-9', '-n', '50k',
                    '--source', "s=$position");
}

sub segments { return map { m{journal\.(\w+)$} } files("$state/journal.*") }

image('at0', 0, 'base');
image('at5', 5, 'base', map { my $b = $_; map { "b$b-$_$filler" } 1 .. KEYS }
                            1 .. 5);

for my $name ('late', 'later') {
    image($name, BATCHES, 'base',
          map { my $b = $_; map { "b$b-$_$filler" } 1 .. KEYS } 1 .. BATCHES);
}

install_image($t, 'at0');
configure($t, ['zone=ids file=ids.bloom;'
               . ' bloom_source zone=ids name=s max_lag=off'],
          api => 1, workers => 2);
$t->run;

for my $batch (1 .. BATCHES) {
    my $r = changes($t, 'ids', $batch - 1, $batch,
                    map { "+b$batch-$_$filler" } 1 .. KEYS);
    $r->status == 200 or die $r;
}

my @sample = map { "b$_-7$filler" } 1 .. BATCHES;

is(ask_until_known($t, 'ids', 'base', @sample), '1' x (1 + BATCHES),
   'all changes hold');
cmp_ok(scalar(segments()), '>=', 2, 'the journal has several segments');

# an image at position 5 does not cover all of the first segment

install_image($t, 'at5');
is(api($t, POST => 'zones/ids/reload')->status, 200, 'an image at 5');
select undef, undef, undef, 3;
is((segments())[0], '0' x 16, 'keeps the first segment');
is(position($t, 'ids'), BATCHES, 'and the position');

# nor may the image before that lack what is removed: it can be loaded again

for my $name ('late', 'at5', 'late') {
    install_image($t, $name);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       "image $name is loaded");
}

select undef, undef, undef, 3;
is((segments())[0], '0' x 16,
   'one image at the end does not let the first segment be removed');

install_image($t, 'later');
is(api($t, POST => 'zones/ids/reload')->status, 200,
   'another image at the end is loaded');
ok(wait_until(sub { (segments())[0] ne '0' x 16 }, 60),
   'two of them let the first segment be removed');
is(ask_until_known($t, 'ids', 'base', @sample), '1' x (1 + BATCHES),
   'no change is lost');

# images that need what was removed

is(upload_image($t, 'ids', 'at5')->status, 422,
   'an image before the removed changes is refused');
like(api($t, GET => 'zones/ids')->json->{load}{message},
     qr/is too old: changes that it may lack were dropped from the journal/,
     'for that reason');
is(upload_image($t, 'ids', 'late')->status, 200, 'a later one is loaded');

$t->kill_all;
$t->run;
is(position($t, 'ids'), BATCHES, 'the position after a crash');
is(ask_until_known($t, 'ids', 'base', @sample), '1' x (1 + BATCHES),
   'and the keys');

# without the image that covers them, a start says so

$t->stop;
install_image($t, 'at5');
unlink files("$state/upload.*"), files("$state/checkpoint.*");
$t->run_fails(qr/is too old: changes that it may lack were dropped/);
install_image($t, 'late');
$t->run;
is(ask_until_known($t, 'ids', 'base', @sample), '1' x (1 + BATCHES),
   'with a later image it starts');


# ---- a failover that has lost the end of the stream ----

changes($t, 'ids', 30, 35, '+kept', '-base')->status == 200 or die;
changes($t, 'ids', 35, 45, '+lost', '-kept')->status == 200 or die;
is(gap($t, 'ids', 35)->status, 200, 'the source goes back');
is(position($t, 'ids'), 35, 'and so does the zone');
is(source_state($t, 'ids'), 'gap', 'it knows that it is not sure');
is_applied(changes($t, 'ids', 35, 39, '+other'), 39, 'the source goes on');

# an image from between may have been built from what was lost

image('at37', 37, 'kept', 'base2');
is(upload_image($t, 'ids', 'at37')->status, 200,
   'an image from before the loss is loaded');
is(source_state($t, 'ids'), 'gap', 'and does not close the gap');
is(scalar ask($t, 'ids', qw(kept nothing)) =~ tr/?//, 2,
   'nothing is certain');

changes($t, 'ids', position($t, 'ids'), 55, '+more', '-other')->status == 200
    or die;

image('at50', 50, 'kept', 'base2');
is(upload_image($t, 'ids', 'at50')->status, 200, 'an image of the new past');
isnt(source_state($t, 'ids'), 'gap', 'closes the gap');
is(ask_until_known($t, 'ids', qw(kept base2 more other lost base)), '111000',
   'what the source has lost is not replayed');
is(position($t, 'ids'), 55, 'the position is that of the new past');

$t->kill_all;
$t->run;
is(ask_until_known($t, 'ids', qw(kept base2 more other lost base)), '111000',
   'nor is it after a crash');
is(position($t, 'ids'), 55, 'which keeps the position');
isnt(source_state($t, 'ids'), 'gap', 'the gap stays closed');


# ---- a stream that was deleted ----

is(gap($t, 'ids', 0)->status, 200, 'the source begins again');
is(source_state($t, 'ids'), 'gap', 'nothing is certain');
alive($t, 'ids', 0);
is(source_state($t, 'ids'), 'gap', 'a sign of life does not help');
is_applied(changes($t, 'ids', 0, 3, '+young'), 3, 'it goes on');

for ('a reload', 'a crash') {
    if ($_ eq 'a reload') { api($t, POST => 'zones/ids/reload') }
    else { $t->kill_all; $t->run }

    is(source_state($t, 'ids'), 'gap', "$_ does not forget the gap");
    is(scalar ask($t, 'ids', qw(nothing)), '?', '"absent" is unknown');
}

# a checkpoint from after the gap has what was before it: a start goes on from
# there, and finds nothing missing

is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'a checkpoint');
is_applied(changes($t, 'ids', 3, 6, '+older', '-young'), 6, 'and more changes');
my $mark = $t->log_mark;
$t->kill_all;
$t->run;
is(position($t, 'ids'), 6, 'the next start is at the last of them');
is(ask_until_known($t, 'ids', 'older'), '1', 'which it has');
unlike($t->log_since($mark), qr/too old/, 'the checkpoint is loaded');

done_testing;
