#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that changes of a source are compared with an image by their position
# alone: changes after its position are applied even if they are hours older than
# its as_of, and changes before it are left out even if they are newer.  Changes
# of another source are compared by their time, as all other records.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;
my $hour = 3600 * 1000;
my $now = time * 1000;

my $journal = BloomTest::Journal->new(created => $now - 9 * $hour);

$journal->append_changes('s', 0, 5, ['base'], ['old'],
                         time => $now - 8 * $hour);
$journal->append_changes('s', 5, 9, [], ['later'], time => $now - 7 * $hour);
$journal->append_changes('other', 3, 4, [], ['strange'],
                         time => $now - 6 * $hour);

sub image {
    my ($position, $as_of) = @_;

    $t->build_image('ids.bloom', ['base'], '-p', '1e-9', '-n', '10k',
                    '--source', "s=$position", '--as-of', $as_of);
}

my @keys = qw(base old later strange none);

begin_state($t, 'ids', $journal);
image(0, time);
configure($t, ['zone=ids file=ids.bloom;'
               . ' bloom_source zone=ids name=s max_lag=off'], api => 1);
$t->run;
is(ask_until_known($t, 'ids', @keys), '01100',
   'a newer image at an earlier position gets all changes after it');
is(position($t, 'ids'), 9, 'the position is that of the last');
$t->stop;

begin_state($t, 'ids', $journal);
image(5, time - 9 * 3600);
$t->run;
is(ask_until_known($t, 'ids', @keys), '10110',
   'an older image at a later position gets only those after it');
is(position($t, 'ids'), 9, 'the position is that of the last');
$t->stop;

begin_state($t, 'ids', $journal);
image(20, time - 9 * 3600);
$t->run;
is(ask_until_known($t, 'ids', @keys), '10010',
   'an image at a later position than all gets none');
is(position($t, 'ids'), 20, 'the position is that of the image');

done_testing;
