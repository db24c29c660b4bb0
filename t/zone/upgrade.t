#!/usr/bin/perl

# Upgrade of the binary (USR2): the new master loads zones of its own, and old
# and new processes answer side by side, each from their own.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

# What each worker answers, as soon as all have answered; a connection is
# served by one worker, whichever is first.

sub answers {
    my (@workers) = @_;

    my %answers;

    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', @ids, @others);
        $answers{$by[0]}{$answers} = 1 if @by == 1;
        return @workers == grep { $answers{$_} } @workers;
    }) or die "not all of @workers answer";

    return map { join ' or ', sort keys %{ $answers{$_} } } @workers;
}


install('one');
configure($t, ['zone=ids file=ids.bloom'], workers => 1);
$t->run;
is_deeply([answers($t->workers)], ["$all$none"], 'the old one answers');


subtest 'with the same image' => sub {
    my $old = $t->master;
    my $new = $t->upgrade_begin;

    is_deeply([answers($t->workers($old), $t->workers($new))],
              [("$all$none") x 2], 'both answer alike');
    $t->upgrade_finish;
    is_deeply([answers($t->workers)], ["$all$none"], 'the new one goes on');
};


subtest 'with another image' => sub {
    install('two');

    my $old = $t->master;
    my $new = $t->upgrade_begin;

    is_deeply([answers($t->workers($old), $t->workers($new))],
              ["$all$none", "$none$all"], 'each from its own zone');
    $t->upgrade_finish;
    is_deeply([answers($t->workers)], ["$none$all"], 'the new one goes on');
};


subtest 'afterwards' => sub {
    install('one');
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'a reload works');
    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'and the death of a worker');
};


# The new master refuses to start: the old one goes on as if nothing had been.

subtest 'with a damaged image' => sub {
    my $old = $t->master;
    my $mark = $t->log_mark;

    $t->expect_log(qr/\[emerg\].*ids\.bloom" .* is not a Bloom filter image/);
    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', 'no image at all');

    kill 'USR2', $old;
    $t->wait_for_log(qr/\[emerg\].*is not a Bloom filter image/, $mark);
    $t->wait_for_log(qr/new binary process \d+ exited with code 1/, $mark);
    $t->expect_log(qr/new binary process \d+ exited with code 1/);

    ok(wait_until(sub { !-e "$dir/nginx.pid.oldbin" }),
       'the pid file has its name again');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'the old zone serves on');

    install('two');
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$none$all", 'and reloads');
};


done_testing;
