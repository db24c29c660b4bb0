#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# During an upgrade of the binary (USR2) the new master loads zones of its own,
# and the workers of both masters answer, each from its own zone.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');

# Returns each worker's answer, once all have answered.  Any worker may accept a
# connection.

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


install_image($t, 'one');
configure($t, ['zone=ids file=ids.bloom'], workers => 1);
$t->run;
is_deeply([answers($t->workers)], ["$all$none"],
          'nginx answers from image one before the upgrade');


subtest 'nginx is upgraded with another image' => sub {
    install_image($t, 'two');

    my $old = $t->master;
    my $new = $t->upgrade_begin;

    is_deeply([answers($t->workers($old), $t->workers($new))],
              ["$all$none", "$none$all"],
              'the old worker answers from image one, the new one from image'
              . ' two');
    $t->upgrade_finish;
    is_deeply([answers($t->workers)], ["$none$all"],
              'the new worker answers from image two when the old master has'
              . ' ended');
};


subtest 'the upgraded nginx reloads and replaces a worker' => sub {
    install_image($t, 'one');
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'a reload after an upgrade loads image one');
    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'a replaced worker answers from image one after an upgrade');
};


# The new master refuses to start, and the old one continues.

subtest 'nginx is upgraded with a damaged image' => sub {
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
       'the old master takes back the name of its pid file');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the old zone continues to serve');

    install_image($t, 'two');
    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the old master reloads with image two');
};


done_testing;
