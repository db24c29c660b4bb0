#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests changes between two positions that come in parts: the zone moves with the
# last one, each follows the one before, and all of them outlive reloads, crashes
# and images as the changes of one request do.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('at10.bloom', ['base', 'old'], '-p', '1e-9', '-n', '10k',
                '--source', 's=10');
install_image($t, 'at10');
configure($t, ['zone=live capacity=10k fpr=1e-9;'
               . ' bloom_source zone=live name=s max_lag=off',
               'zone=small capacity=10k fpr=1e-9;'
               . ' bloom_source zone=small name=s max_lag=off',
               'zone=ids file=ids.bloom;'
               . ' bloom_source zone=ids name=s max_lag=off'],
          api => 1, workers => 2);
$t->run;

sub answers { return join '', ask_until_known($t, @_) }

sub is_part {
    my ($response, $position, $offset, $applied, $name) = @_;

    my $json = eval { $response->json } // {};

    is_deeply([$response->status, @$json{qw(position offset)},
               $json->{applied} ? 1 : 0],
              [200, $position, $offset, $applied], $name)
        or diag($response);
}

sub is_elsewhere {
    my ($response, $position, $offset, $name) = @_;

    is_error($response, 409, qr/\w/, $name);
    is_deeply([@{ $response->json }{qw(position offset)}],
              [$position, $offset], "$name: the response says where it is");
}

subtest 'changes may come in parts' => sub {
    my $from = position($t, 'live');
    my $to = $from + 1;
    my $digest = zone_state($t, 'live')->{source}{digest};

    is_part(part($t, 'live', $from, $to, 0, 1, '+p1', '-p2'), $from, 2, 1,
            'the first part');
    is(position($t, 'live'), $from, 'the zone stays');
    is(zone_state($t, 'live')->{source}{digest}, $digest,
       'and its digest stays');
    is(answers('live', 'p1'), '1', 'the changes hold');

    is_part(part($t, 'live', $from, $to, 0, 1, '+p1', '-p2'), $from, 2, 0,
            'a part that the zone has is not applied again');
    is_part(part($t, 'live', $from, $to, 0, 1, '+p1'), $from, 2, 0,
            'nor is the beginning of one');
    is_elsewhere(part($t, 'live', $from, $to, 1, 1, '-p2', '+p3'), $from, 2,
                 'a part that begins before its end');
    is_elsewhere(part($t, 'live', $from, $to, 3, 1, '+p3'), $from, 2,
                 'a part that begins after its end');
    is_elsewhere(part($t, 'live', $from, $to + 1, 2, 1, '+p3'), $from, undef,
                 'a part of other changes');
    is(answers('live', 'p3'), '0', 'none of them is applied');

    is_part(part($t, 'live', $from, $to, 2, 1, '-p1', '+p2', '-p3'), $from, 5, 1,
            'the second part');
    is(answers('live', qw(p1 p2 p3)), '010', 'its changes hold');
    is_part(part($t, 'live', $from, $to, 5, 0, '+p3', '+p4'), $to, undef, 1,
            'the last part');
    is(answers('live', qw(p1 p2 p3 p4)), '0111', 'all changes hold');

    # The same changes at once, in a zone that has got all others

    gap($t, $_, $from) for 'small', 'live';
    is_applied(changes($t, 'small', $from, $to, '+p1', '-p2', '-p1', '+p2', '-p3',
                       '+p3', '+p4'), $to, 'the same changes at once');
    is_part(part($t, 'live', $from, $to, 0, 1, '+p1', '-p2', '-p1'), $from, 3, 1,
            'and in other parts');
    is_part(part($t, 'live', $from, $to, 3, 0, '+p2', '-p3', '+p3', '+p4'), $to,
            undef, 1, 'up to the end');
    is(zone_state($t, 'live')->{source}{digest},
       zone_state($t, 'small')->{source}{digest}, 'have the same digest');

    # From the beginning again

    ($from, $to) = ($to, $to + 1);
    is_part(part($t, 'live', $from, $to, 0, 1, '+q1', '+q2'), $from, 2, 1, 'a part');
    is_part(part($t, 'live', $from, $to, 0, 1, '+q1', '+q2', '-q1'), $from, 3, 1,
            'a longer part from the beginning is applied');
    is_applied(changes($t, 'live', $from, $to, '+q1', '+q2', '-q1', '+q3'), $to,
               'and so are all changes at once');
    is(scalar ask($t, 'live', qw(q1 q2 q3)), '?11', 'they hold');
};

subtest 'parts outlive reloads and crashes' => sub {
    my $step = 0;

    for (['a reload', sub { $t->reload }, 2],
         ['a crash', sub { $t->kill_all; $t->run }, undef],
         ['an upgrade', sub { $t->upgrade }, 2],
         ['a checkpoint and a crash', sub {
             api($t, POST => 'zones/ids/checkpoint')->status == 200
                 or fail('a checkpoint');
             $t->kill_all;
             $t->run;
         }, undef],
         ['an image before it', sub {
             upload_image($t, 'ids', 'at10')->status == 200
                 or fail('an upload');
         }, undef])
    {
        my ($name, $do, $has) = @$_;
        my $from = position($t, 'ids');
        my $to = $from + 10;
        my ($x, $y) = ('x' . ++$step, "y$step");

        is_part(part($t, 'ids', $from, $to, 0, 1, "+$x", '-base'), $from, 2, 1,
                "a part before $name");
        $do->();
        is(position($t, 'ids'), $from, "$name leaves the zone where it is");
        is(answers('ids', $x, 'base'), '10', "$name keeps the part");

        if (defined $has) {
            is_part(part($t, 'ids', $from, $to, 2, 0, "-$x", "+$y"), $to, undef, 1,
                    "the rest is applied after $name");
        } else {
            is_elsewhere(part($t, 'ids', $from, $to, 2, 0, "-$x"), $from, undef,
                         "the rest alone is refused after $name");
            is_part(part($t, 'ids', $from, $to, 0, 1, "+$x"), $from, 1, 1,
                    "the part is applied again after $name");
            is_part(part($t, 'ids', $from, $to, 1, 0, '-base', "-$x", "+$y"), $to,
                    undef, 1, "and the rest after $name");
        }
        is(answers('ids', $x, $y, 'base'), '010', "all changes hold: $name");
    }
};

subtest 'an image has a part if it has all of the changes' => sub {
    my $from = position($t, 'ids');
    my $to = $from + 10;

    is_part(part($t, 'ids', $from, $to, 0, 1, '+early', '-base'), $from, 2, 1,
            'a part');

    $t->build_image('between.bloom', ['base', 'other'], '-p', '1e-9', '-n',
                    '10k', '--source', 's=' . ($from + 5));
    is(upload_image($t, 'ids', 'between')->status, 200,
       'an image between its positions');
    is(position($t, 'ids'), $from + 5, 'moves the zone');
    is(answers('ids', qw(early base other)), '101', 'and keeps the part');
    is_elsewhere(part($t, 'ids', $from, $to, 2, 0, '+late'), $from + 5, undef,
                 'the rest');

    $t->build_image('at.bloom', ['base', 'other'], '-p', '1e-9', '-n', '10k',
                    '--source', "s=$to");
    is(upload_image($t, 'ids', 'at')->status, 200, 'an image at the end');
    is(position($t, 'ids'), $to, 'moves the zone there');
    is(answers('ids', qw(early base other)), '011', 'and replaces the part');

    is(api($t, POST => 'zones/ids/clear')->status, 200, 'a clear');
    my $start = position($t, 'ids');
    is_part(part($t, 'ids', $start, $start + 1, 0, 1, '+c1'), $start, 1, 1, 'a part');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'another clear');
    is_elsewhere(part($t, 'ids', $start, $start + 1, 1, 0, '+c2'), $start, undef,
                 'the rest alone');
    is_applied(changes($t, 'ids', $start, $start + 1, '+c1', '+c2'), $start + 1,
               'all changes');
    is(answers('ids', qw(c1 c2)), '11', 'hold');
};

done_testing;
