#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx -s works while the image of a zone is damaged or missing, so that logs
# can be rotated.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $path = $t->testdir . '/ids.bloom';

$t->build_image('ids.bloom', ['a']);
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=10 fpr=0.01']);
$t->run;

for (['a damaged image', sub { flip($path, -1); flip($path, 100) }],
     ['a missing image', sub { unlink $path }])
{
    my ($state, $spoil) = @$_;

    $spoil->();

    my $mark = $t->log_mark;
    my ($exit, $out, $err) = run_command([$t->_command, '-s', 'reopen'],
                                         env => $t->{env});

    is($exit, 0, "nginx -s reopen succeeds with $state")
        or diag($out, $err);
    $t->wait_for_log(qr/reopening logs/, $mark);
    is(ask($t, 'ids', 'a', 'b'), '10',
       "the old image continues to serve with $state");
}

done_testing;
