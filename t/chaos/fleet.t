#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The checker of a fleet finds nothing wrong in a short run in which each event
# happens, and reports each promise that is broken on purpose.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);

my $t = BloomTest->new(module => 0);

sub command {
    return ($^X, map({ "-I$_" } @INC), "$FindBin::Bin/fleet.pl", '--seed', 7,
            @_);
}

my ($exit, $out, $err) = run_command(
    [command('--time', '30s', '--rate', 2000)], env => $t->{env}, limit => 600);

is($exit, 0, 'a fleet keeps its promises') or diag("$out$err");
diag(join '', "$out$err" =~ /^# (?:changes|checks).*\n/mg);


# These wait for most of the time, so they run side by side.

my %break = (
    ledger => ['--only', 'kill_follower',
               qr/^# node \d: k\d*7 is \w+ at \S+, but .k\d*7 is at/m],
    gap => ['--only', 'trim_beyond',
            qr/^# node \d: no gap after \S+ is reported/m],
    lateness => ['--only', 'cut_off',
                 qr/^# node \d(?: is current, though it was cut off for|: current at \S+, but \S+ was acknowledged long ago)/m],
    removal => ['--rate', 200, '--only', 'load_file',
                qr/^# node \d: k\d*7 is present at \S+, but -k\d*7 is at/m],
);

for my $what (sort keys %break) {
    my (@arguments) = @{ $break{$what} };
    pop @arguments;

    open my $log, '>', $t->testdir . "/$what.log" or die "log: $!";
    spawn(sub {
        my ($exit, $out, $err) = run_command(
            [command('--time', '60s', '--rate', 1000, '--break', $what,
                     @arguments)],
            env => $t->{env}, limit => 300);
        print $log "$out$err\nexit $exit\n";
        close $log;
    });
}

for my $what (sort keys %break) {
    my $log;

    wait_until(sub {
        $log = $t->read_file("$what.log");
        return $log =~ /^exit /m;
    }, 300);

    like($log, qr/^exit [^0]/m, "the checker fails if it breaks: $what")
        or diag($log);
    like($log, $break{$what}[-1], "and says what is wrong: $what")
        or diag($log);
}

done_testing;
