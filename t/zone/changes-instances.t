#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests a zone with bloom_source while it has two instances, as during an upgrade.
# Each takes changes at the position that both know, and applies what the other
# one got.  An instance whose image is too old for the position says "unknown".  A
# sign of life reaches both, whichever got it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(now wait_until);
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('at0.bloom', ['base', 'gone'], '-p', '1e-9', '-n', '10k',
                '--source', 's=0');
$t->build_image('at50.bloom', ['base', 'fresh'], '-p', '1e-9', '-n', '10k',
                '--source', 's=50');
install_image($t, 'at0');
configure($t, ['zone=ids file=ids.bloom;'
               . ' bloom_source zone=ids name=s max_lag=off',
               'zone=lag capacity=10k fpr=1e-9;'
               . ' bloom_source zone=lag name=s max_lag=2s'], api => 1,
          server => 'location = /pid { return 200 $pid; }');
$t->run;

# The answers of the worker of each master, as soon as they are these.

sub is_answered {
    my ($workers, $want, $name, @keys) = @_;

    my %answers;

    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', @keys);
        $answers{$by[0]} = $answers if @by == 1;
        return !grep { ($answers{$workers->[$_]} // '') ne $want->[$_] }
                     0 .. $#$workers;
    });

    is_deeply([map { $answers{$_} } @$workers], $want, $name);
}

my @keys = qw(base gone fresh a b c);

is_applied(changes($t, 'ids', 0, 10, '+a', '-gone'), 10, 'changes');

my $old = $t->master;
my $new = $t->upgrade_begin;
my @workers = ($t->workers($old), $t->workers($new));

is(@workers, 2, 'two workers');
is_answered(\@workers, ['100100', '100100'], 'both have the changes', @keys);

# whichever accepts it

for my $position (11 .. 30) {
    my $key = $position % 2 ? 'b' : 'c';
    my $other = $position % 2 ? 'c' : 'b';

    is_applied(changes($t, 'ids', $position - 1, $position, "+$key",
                       "-$other"), $position,
               "changes up to $position are applied by one of them");
}

is_answered(\@workers, ['100101', '100101'], 'both have all changes', @keys);
is(position($t, 'ids'), 30, 'and know the position');

$t->upgrade_finish;
is(ask_until_known($t, 'ids', @keys), '100101', 'the new one goes on');
is(position($t, 'ids'), 30, 'from there');


# the new instance has an image at a later position, so nobody sends the old one
# the changes before it

install_image($t, 'at50');
$old = $t->master;
$new = $t->upgrade_begin;
@workers = ($t->workers($old), $t->workers($new));

is_answered(\@workers, ['1??1?1', '101000'],
            'the old instance does not say "absent" any more', @keys);
is(position($t, 'ids'), 50, 'the position is that of the image');
is_applied(changes($t, 'ids', 50, 51, '+b'), 51, 'changes after it');
is_answered(\@workers, ['1??111', '101010'], 'reach both', @keys);

$t->upgrade_finish;
is(ask_until_known($t, 'ids', @keys), '101010', 'the new one goes on');
is(position($t, 'ids'), 51, 'from there');


# a follower keeps its connection to one worker

my ($follower, $signed);

sub signs {
    $signed = now();
    $follower->send("POST /bloom/zones/lag/changes?source=s&after=0&position=0"
                    . " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");

    return $follower->response('POST')->status;
}

is(ask($t, 'lag', 'x'), '?', 'no sign of life yet');

$follower = $t->connect;
is(signs(), 200, 'a sign of life');
$old = $t->master;
$new = $t->upgrade_begin;
@workers = ($t->workers($old), $t->workers($new));

my $end = now() + 6;
my %answers;

while (now() < $end || keys %answers < 2) {
    signs() == 200 or die 'no sign of life';

    # nginx closes a connection after a thousand requests

    select undef, undef, undef, 0.02;

    my ($answers, @by) = ask($t, 'lag', 'x');

    # this process may have been stopped for longer than max_lag

    $answers{$by[0]}{$answers} = 1 if @by == 1 && now() - $signed < 1.5;
}

is_deeply(\%answers, { map { $_ => { 0 => 1 } } @workers },
          'both instances stay current by signs of life to one of them');

$t->upgrade_finish;
$t->kill_all;
$t->run;
is(ask($t, 'lag', 'x'), '?', 'a start that is alone waits for a sign of life');
$follower = $t->connect;
is(signs(), 200, 'a sign of life');
is(ask_until_known($t, 'lag', 'x'), '0', 'ends that');

done_testing;
