#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process that dies before it publishes a record leaves it behind the end of
# the journal.  The next record has its number.  If that one is longer, it is
# in the next segment, and the record that was left does not count: not at a
# start, not later, and not for ngx-bloom journal.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';

configure($t, ['zone=ids capacity=1k fpr=1e-9 removals=10'], api => 1,
          add => 1);

# Makes a journal whose first segment ends with a record that was left.

sub begin {
    my ($keys, %left) = @_;

    my $first = BloomTest::Journal->new;

    $first->append(['first']);
    $first->append($keys, %left);

    my $second = $first->next_segment(sequence => 2, removals => 0,
                                      removed_bytes => 0);

    $second->append(['second']);
    $second->append(['third']);
    begin_state($t, 'ids', $first, $second);
}

sub has {
    my ($when) = @_;

    is(ask_until_known($t, 'ids', qw(first second third left never)), '11100',
       "only what counts is there $when");
    is(zone_state($t, 'ids')->{state}, 'serving', "nothing is lost $when");
}


for (['a removal', ['first'], type => REMOVE], ['an addition', ['left']]) {
    my ($what, $keys, %left) = @$_;

    subtest "a dead process has left $what" => sub {
        begin($keys, %left);
        $t->run;
        has('after a start');
        is(zone_state($t, 'ids')->{removals}{count}, 0, 'no key is removed');
        add($t, 'ids', ['later'], durable => 1);
        $t->kill_all;
        $t->run;
        has('after another start');
        is(ask($t, 'ids', 'later'), '1', 'the journal goes on');

        my ($exit, $out) = $t->run_tool('journal', $state);

        is($exit, 0, 'ngx-bloom finds no damage in the journal') or diag($out);
        $t->kill_all;
    };
}


done_testing;
