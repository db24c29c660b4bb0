#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The checker of a fleet finds nothing wrong in a short run in which each event
# happens, and fails if the ledger has changes that were never sent.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);

# Runs the checker and returns its exit status and its output.

sub fleet {
    my (@arguments) = @_;

    my ($exit, $out, $err) = run_command(
        [$^X, map({ "-I$_" } @INC), "$FindBin::Bin/fleet.pl", '--seed', 7,
         @arguments], env => $t->{env}, limit => 600);

    return ($exit, "$out$err");
}

my ($exit, $out) = fleet('--time', '20s', '--rate', 2000);
is($exit, 0, 'a fleet keeps its promises') or diag($out);

($exit, $out) = fleet('--time', '60s', '--only', 'kill_follower', '--break');
isnt($exit, 0, 'the checker fails if changes are not sent');
like($out, qr/^# node \d: k\d+7 is \w+ at \S+, but .k\d+7 is at/m,
     'and names a key') or diag($out);

done_testing;
