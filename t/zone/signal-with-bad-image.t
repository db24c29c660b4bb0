#!/usr/bin/perl

# nginx -s reads the configuration only to find the pid: at night it must work
# whatever state the image is in.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process;
use BloomTest::Zones;

my $t = BloomTest->new;
my $path = $t->testdir . '/ids.bloom';

$t->build_image('ids.bloom', ['a']);
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=10 fpr=0.01']);
$t->run;

for (['damaged', sub { flip($path, -1); flip($path, 100) }],
     ['missing', sub { unlink $path }])
{
    my ($state, $spoil) = @$_;

    $spoil->();

    my $mark = $t->log_mark;
    my ($exit, $out, $err)
        = BloomTest::Process::run_command([$t->_command, '-s', 'reopen'],
                                          env => $t->{env});

    is($exit, 0, "$state: nginx -s succeeds") or diag($out, $err);
    $t->wait_for_log(qr/reopening logs/, $mark);
    is(ask($t, 'ids', 'a', 'b'), '10', "$state: the old image serves on");
}

done_testing;
