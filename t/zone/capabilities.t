#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx is started by root with few capabilities, as containers start it.  A
# zone goes through its whole life with each set of capabilities with which
# nginx without the module does.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(run_command alive);
use BloomTest::Witness;
use BloomTest::Zones;

my $nobody = hostile_user();

(run_command(['setpriv', '--bounding-set=-all', 'true']))[0] == 0
    or plan(skip_all => 'setpriv of util-linux cannot take capabilities away');

my @zones = ('zone=ids:2m file=ids.bloom', 'zone=seen:2m capacity=1k fpr=1e-9');


# Returns a test whose nginx is started as root, or as another user, with these
# capabilities only.

sub with_capabilities {
    my ($user, @capabilities) = @_;

    return started_as('', $user, @capabilities);
}

sub started_as {
    my ($starter, $user, @capabilities) = @_;

    my $t = BloomTest->new(user => $user);
    my $sets = join ',', '-all', map { "+$_" } @capabilities;

    chown $nobody->{uid}, $nobody->{gid}, $t->testdir or die "chown: $!"
        if $starter;

    $t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');
    $t->write_file('nginx', "#!/bin/sh\nexec setpriv --bounding-set=$sets"
                            . " --inh-caps=-all $starter -- $t->{binary} \"\$\@\"\n");
    chmod 0755, $t->testdir . '/nginx' or die "chmod: $!";
    $t->{binary} = $t->testdir . '/nginx';
    set_up($t, @zones);

    return $t;
}

sub set_up {
    my ($t, @zones) = @_;

    configure($t, \@zones, api => 1, add => 1);
}

sub passes_test {
    my ($t, $when) = @_;

    my ($exit, $output) = $t->test_config;
    is($exit, 0, "nginx -t succeeds $when") or diag($output);
}


# Each row: what it is, the user of the workers, the capabilities, what nginx
# itself logs, and how setpriv becomes the user who starts nginx if that is not
# root.  Then the steps of a life, in this order.

my @container = qw(chown setuid setgid net_bind_service);

my @sets = (
    ['what a container needs', $nobody->{conf}, \@container],
    ['what a container needs, and kill', $nobody->{conf},
     [@container, 'kill']],
    ['what a container needs, and dac_override', $nobody->{conf},
     [@container, 'dac_override']],
    ['what a container needs, and dac_read_search', $nobody->{conf},
     [@container, 'dac_read_search']],
    ['all that Docker gives but dac_override, fowner and kill',
     $nobody->{conf},
     [@container, qw(fsetid setpcap net_raw sys_chroot mknod audit_write
                     setfcap)]],
    ['none, with "user root"', 'root', [], qr/initgroups\(root, 0\) failed/],
    ['all that a container needs but setgid, with "user root"', 'root',
     [qw(chown setuid net_bind_service)], qr/initgroups\(root, 0\) failed/],
    ['none, and it is not root', $nobody->{conf}, [], undef,
     "--reuid=$nobody->{uid} --regid=$nobody->{gid} --clear-groups"],
);

my @steps = (
    ['nginx -t before the first start', sub {
        passes_test($_[0], 'before the first start');
    }],
    ['the first start', sub { $_[0]->run }],
    ['nginx -t while nginx runs', sub {
        passes_test($_[0], 'while nginx runs');
    }],
    ['a checkpoint and an upload', sub {
        is(api($_[0], POST => 'zones/seen/checkpoint')->status, 200,
           'a checkpoint is written');
        is(upload_image($_[0], 'ids', 'ids')->status, 200,
           'an image is uploaded');
    }],
    ['a reload', sub { $_[0]->reload }],
    ['a reload with other sizes', sub {
        set_up($_[0], map { s/:2m/:3m/r } @zones);
        $_[0]->reload;
    }],
    ['a reload with a new zone', sub {
        set_up($_[0], (map { s/:2m/:3m/r } @zones),
               'zone=new capacity=1k fpr=1e-9');
        $_[0]->reload;
    }],
    ['the death of a worker and of the helper', sub {
        $_[0]->kill_worker;
        $_[0]->kill_helper;
    }],
    ['an upgrade', sub { $_[0]->upgrade }],
    ['"nginx -s stop", nginx -t and a start', sub {
        my ($t) = @_;

        my ($exit, undef, $err) = run_command([$t->_command, '-s', 'stop']);
        is($exit, 0, 'nginx -s stop succeeds') or diag($err);
        $t->stop(told => 1);
        passes_test($t, 'before a restart');
        $t->run;
    }],
    ['"nginx -s quit" and a start', sub {
        my ($t) = @_;

        my ($exit, undef, $err) = run_command([$t->_command, '-s', 'quit']);
        is($exit, 0, 'nginx -s quit succeeds') or diag($err);
        $t->stop(told => 1);
        $t->run;
    }],
);

for my $set (@sets) {
    my ($what, $user, $capabilities, $logs, $starter) = @$set;

    subtest "the master has these capabilities: $what" => sub {
        my $t = started_as($starter // '', $user, @$capabilities);
        my @added;

        $t->expect_log($logs) if defined $logs;

        for my $step (@steps) {
            my ($when, $code) = @$step;

            if (!eval { $code->($t); 1 }) {
                fail("nginx survives $when") or diag($@);
                last;
            }

            next unless defined $t->master;

            is(ask_until_known($t, 'seen', @added, 'no'), '1' x @added . '0',
               "all added keys are present after $when");
            is(ask_until_known($t, 'ids', 'id1', 'no'), '10',
               "the image serves after $when");

            push @added, 'key' . @added;
            add($t, 'seen', [$added[-1]], durable => 1);
        }

        $t->stop;

        my $owner = $user eq 'root' ? 0 : $nobody->{uid};
        is_deeply([map { (stat)[4] } $t->testdir . '/state',
                   $t->testdir . '/state/seen'],
                  [$starter ? $owner : 0, $owner],
                  'the directories have the owners that docs/state.md names');
    };
}


# An earlier version gave the state root to the workers' user.  Root cannot
# enter it before it has taken it over.

subtest 'a state root of an earlier version, without dac_override' => sub {
    my $t = with_capabilities($nobody->{conf}, @container);
    my $state = $t->testdir . '/state';

    $t->run;
    add($t, 'seen', ['key1'], durable => 1);
    $t->stop;

    hand_over($state, $nobody, 0700);
    $t->run;
    is(ask_until_known($t, 'seen', 'key1', 'no'), '10',
       'its keys are present');
    is(sprintf('%o', (stat $state)[2] & 07777) . ' ' . (stat _)[4], '711 0',
       'root owns the state root');
    $t->stop;
};


# A master died between two steps of making a zone's directory.

subtest 'an empty directory of root, without dac_override' => sub {
    my $t = with_capabilities($nobody->{conf}, @container);
    my $state = $t->testdir . '/state';

    make_path("$state/seen");
    chmod 0700, "$state/seen" or die "chmod: $!";
    passes_test($t, 'with an empty directory of root');
    $t->run;
    is((stat "$state/seen")[4], $nobody->{uid},
       "the workers' user owns the directory after a start");
    $t->stop;
};


# Any process of the workers' user may stop the loader, and without CAP_KILL
# root may not kill the processes of other users.

subtest 'a stopped loader does not stop the master, without kill' => sub {
    my $t = with_capabilities($nobody->{conf}, @container);
    my $witness = BloomTest::Witness->new($t, 'state');

    $t->run;
    $t->stop;

    $witness->stop_at('state/seen/control');

    my ($exit, $output) = test_config_within($t);
    ok(defined $exit && $exit != 0, 'nginx -t ends, and fails');
    like($output, qr/was stopped by a signal and is killed/,
         'nginx -t says that the loader was stopped');
    my ($pid) = $output =~ /, (\d+), was stopped/;
    ok(defined $pid && !alive($pid), 'the stopped loader has been killed');

    $witness->go_on;
    $t->run;
    is(ask_until_known($t, 'seen', 'no'), '0',
       'nginx starts when nobody stops the loader');
    $t->stop;
};


# What cannot work says what is missing.

subtest 'a start without setuid and setgid says what is missing' => sub {
    for (['setuid', qw(chown setgid)], ['setgid', qw(chown setuid)]) {
        my ($missing, @capabilities) = @$_;
        my $t = with_capabilities($nobody->{conf}, @capabilities);

        like($t->run_fails,
             qr/cannot\ become\ user\ $nobody->{uid}\ and\ group\ \d+,\ .*
                CAP_SETUID\ and\ CAP_SETGID/x,
             "without $missing, the refusal names the user and the"
             . ' capabilities');
    }
};

subtest 'a start without chown says what to do, and that works' => sub {
    my $t = with_capabilities($nobody->{conf}, qw(setuid setgid));
    my $dir = $t->testdir;

    # nginx itself creates these at its first start, and gives them away

    for (qw(client_body proxy fastcgi uwsgi scgi)) {
        mkdir "$dir/${_}_temp", 0700;
        hand_over("$dir/${_}_temp", $nobody, 0700);
    }

    my $log = $t->run_fails;
    my ($command) = $log =~ m{cannot\ change\ the\ owner\ of\ "\Q$dir\E/state/
                              \w+".*\ run\ "(install\ [^"]+)"}x
        or return fail('the refusal names a command') || diag($log);

    for my $zone ('ids', 'seen') {
        is(system($command =~ s{/state/\K\w+}{$zone}r), 0,
           "the command creates the directory of $zone");
    }

    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'no'), '10',
       'nginx starts after the command');
    $t->stop;
};


done_testing;
