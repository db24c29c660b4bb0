#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the example of a follower, conf-examples/follow/follow-file.sh: it sends
# what a file has, what is appended, and signs of life; it goes on after a crash
# of nginx; and it reports that the file was replaced.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Source;
use BloomTest::Zones;

my $script = abs_path(dirname(__FILE__)
                      . '/../../conf-examples/follow/follow-file.sh');
my $t = BloomTest->new;
my $log = $t->testdir . '/changes.log';

configure($t, ['zone=ids capacity=10k fpr=1e-9;'
               . ' bloom_source zone=ids name=s max_lag=10s'],
          api => 1);
$t->run;

sub append {
    open my $fh, '>>', $log or die "$log: $!";
    print $fh map { "$_\n" } @_;
    close $fh or die "$log: $!";
}

sub at {
    my ($position, $state) = @_;

    return wait_until(sub {
        my $source = eval { zone_state($t, 'ids')->{source} };
        return $source && $source->{position} eq $position
               && $source->{state} eq $state;
    });
}

append(map { "+id$_" } 1 .. 2500);
append('-id7');

my $url = 'http://127.0.0.1:' . $t->port(8080) . '/bloom/zones/ids';
my $pid = spawn(['sh', $script, $log, 's', $url]);

ok(at(2501, 'current'), 'the zone gets all lines');
is(ask($t, 'ids', qw(id1 id7 id2500 none)), '1010', 'the keys are right');

append('+late', '-id1');
ok(at(2503, 'current'), 'the zone gets lines that are appended');
is(ask($t, 'ids', qw(id1 late)), '01', 'the keys are right');

$t->kill_all;
append('+after');
$t->run;
ok(at(2504, 'current'), 'the follower goes on after a crash of nginx');
is(ask($t, 'ids', qw(id1 late after none)), '0110', 'the keys are right');

$t->write_file('changes.log', "+other\n");
ok(at(1, 'gap'), 'a file that was replaced is a gap');
is(ask($t, 'ids', qw(late none)), '1?', '"absent" is unknown');

kill 'KILL', -$pid;
waitpid $pid, 0;

done_testing;
