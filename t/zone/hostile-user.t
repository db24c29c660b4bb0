#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Root trusts nothing that the workers' user can write.  In the whole life of a
# zone no process of root opens, maps, locks or changes anything in the zone's
# directory, or takes a lock in shared memory.  A child that has dropped root
# does this, and the master does not hang if somebody stops that child.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(wait_until children title alive);
use BloomTest::Witness;
use BloomTest::Zones;

my $user = hostile_user();
my $t = BloomTest->new(user => $user->{conf});
my $dir = $t->testdir;
my $ids = "$dir/state/ids";
my $witness = BloomTest::Witness->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');
$t->build_image('upload.bloom', ['id1', 'up1'], '-p', '1e-9', '-n', '10k');

my @zones = ('zone=ids:2m file=ids.bloom', 'zone=seen:2m capacity=1k fpr=1e-9',
             'zone=memory:2m capacity=1k fpr=1e-9 journal=off');

sub set_up {
    configure($t, [@_], api => 1, add => 1);
}


# Tests that no process of root has done any of that since the last call.

sub root_did_nothing {
    my ($when) = @_;

    my %seen = map { s{^\d+ |\Q$dir\E/|\n}{}gr => 1 }
                   map { s/instance\.\d+/instance.N/r } $witness->seen;

    is(join("\n", sort keys %seen), '',
       "root does nothing in a zone's directory or to a shared lock $when");
    $witness->forget;
}


# The test notices a process of root that does all of that.

subtest 'the test sees the system calls of root' => sub {
    my $victim = $t->write_file('state/ids/victim', 'bytes');
    my $script = 'open my $f, "+<", $ARGV[0]; flock $f, 2; sysread $f, my $b, 1;'
                 . ' chown 0, 0, $ARGV[0]; rename $ARGV[0], "$ARGV[0].2";'
                 . ' opendir my $d, $ARGV[1]; unlink "$ARGV[0].2"';
    my ($exit) = BloomTest::Process::run_command(
        [$^X, '-e', $script, $victim, $ids], env => $t->{env});

    my $seen = join ' ', map { (split)[1] } $witness->seen;
    is($exit, 0, 'the process succeeds');
    like($seen, qr/$_/, "the call to $_ is seen")
        for qw(open lock read chown rename list remove);

    $witness->forget;
    rmdir $ids or die "$ids: $!";
    rmdir "$dir/state" or die "state: $!";
};


subtest 'root looks into no directory of a zone' => sub {
    set_up(@zones);

    $t->test_config;
    root_did_nothing('under nginx -t before the first start');

    $t->run;
    root_did_nothing('at the first start');

    add($t, $_, ['key1'], durable => 1) for 'ids', 'seen';
    add($t, 'memory', ['key1']);
    is(upload_image($t, 'ids', 'upload')->status, 200, 'an image is uploaded');
    is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
       'a checkpoint is written');
    root_did_nothing('while keys are added');

    $t->test_config;
    root_did_nothing('under nginx -t while nginx runs');
    $t->reload;
    root_did_nothing('at a reload');

    set_up(map { s/:2m/:3m/r } @zones);
    $t->reload;
    root_did_nothing('at a reload that changes the sizes');

    set_up(map { s/capacity=1k/capacity=2k/r } @zones);
    $t->reload;
    root_did_nothing('at a reload that changes the kind of filters');

    set_up(map { s/ journal=off//r } @zones);
    $t->reload;
    root_did_nothing('at a reload that switches a journal on');

    set_up(map { s/(?: journal=off)?$/ journal=off/r } @zones);
    $t->reload;
    root_did_nothing('at a reload that switches the journals off');

    set_up(@zones);
    $t->reload;
    $t->kill_worker;
    $t->kill_helper;
    root_did_nothing('when a worker and the helper are killed');

    $t->upgrade;
    root_did_nothing('at an upgrade');

    add($t, 'ids', ['key2']);
    $t->stop;
    root_did_nothing('at a stop');

    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'up1', 'key1', 'key2', 'no'), '11110',
       'all keys are present after that life');
    root_did_nothing('at another start');
};


subtest 'root has nothing of a zone' => sub {
    my $master = $t->master;

    is_deeply([mapped_files($master, "$dir/state")], [],
              'the master has no file of a zone mapped');
    is_deeply([locks_of($master, $ids)], [],
              'the master has taken no lock on a file of a zone');

    my @workers = mapped_files(($t->workers)[0], "$dir/state");
    ok(scalar(grep { m{/ids/control$} } @workers),
       'the workers have the control page mapped');

    my $owners = owners($ids);
    is_deeply([keys %$owners], [$user->{uid}],
              "all files of a zone belong to the workers' user");

    $t->reload;
    is_deeply([mapped_files($master, "$dir/state")], [],
              'the master has no file of a zone mapped after a reload');
    $t->stop;
};


# Any process of the workers' user may stop the loader.  Here the loader stops
# itself when it opens the control page.

subtest 'the process that loads is stopped' => sub {
    $witness->stop_at('state/ids/control');

    my $mark = $t->log_mark;
    my ($exit) = test_config_within($t);
    ok(defined $exit, 'nginx -t ends');

    my ($outcome, $log) = $t->try_run(limit => PATIENCE);
    is($outcome, 'refused', 'nginx refuses to start');
    like($log, qr/\[(?:emerg|alert)\].*\bstopped\b/,
         'the refusal says that a process was stopped');
    $t->stop;

    $witness->go_on;
    $t->run;

    my $master = $t->master;
    my @others = children($master);

    set_up(map { s/:2m/:3m/r } @zones);
    $witness->stop_at('state/ids/control');
    ($outcome, $log) = $t->try_reload(limit => PATIENCE);
    is($outcome, 'refused', 'a reload with another size is refused');
    is($t->master, $master, 'the master goes on');
    is(ask_until_known($t, 'ids', 'id1', 'key1', 'no'), '110',
       'the zone goes on after the refused reload');

    my %known = map { $_ => 1 } @others;
    ok(wait_until(sub { !grep { !$known{$_} } children($master) }),
       'the stopped process does not stay');

    $witness->go_on;
    $t->reload;
    is(ask_until_known($t, 'ids', 'id1', 'key1', 'no'), '110',
       'the reload is made when nobody stops the process');

    # a stop forks such a process, too, if there is something to synchronise

    add($t, 'ids', ['key3']);
    $t->stop;
    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'key1', 'key3', 'no'), '1110',
       'keys that were added before the stop are present');
    $t->stop;
    $t->excuse_log($mark);
};


done_testing;
