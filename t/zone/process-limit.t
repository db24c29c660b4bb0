#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# If the system refuses another process, a job fails and says why, and everything
# else goes on.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

$> == 0 or plan(skip_all => 'only root can run workers as another user');

my ($nobody, $group) = (getpwnam 'nobody')[2, 3];
defined $nobody or plan(skip_all => 'there is no user nobody');

# The limit counts the processes of a user, and root has none.

if (!$ENV{PROCESS_LIMIT}) {
    $ENV{PROCESS_LIMIT} = 1;
    exec 'prlimit', '--nproc=1', $^X, (map { "-I$_" } @INC), $0
        or plan(skip_all => "prlimit: $!");
}

my $t = BloomTest->new(user => 'nobody ' . getgrgid $group);

$t->build_image('ids.bloom', ['id1']);
configure($t, ['zone=ids file=ids.bloom',
               'zone=memory capacity=1k fpr=1e-3 journal=off'], api => 1);
$t->run;
ask_until_known($t, 'ids', 'id1');

my $mark = $t->log_mark;

is_error(api($t, POST => "zones/$_"), 503,
         qr/fork\(\) failed for a job .*raise the limit of processes/,
         "$_ says why it fails")
    for qw(ids/reload ids/checkpoint memory/clear);
$t->wait_for_log(qr/\[error\] .*fork\(\) failed for a job/, $mark);

add($t, 'ids', ['poor'], durable => 1);
is(scalar(ask($t, 'ids', qw(id1 poor no))), '110', 'the zone serves');

done_testing;
