#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx is upgraded by USR2 from this module to itself.  Keys are added and removed
# before, between and after: no acknowledged key is absent, and removed keys are
# absent in the end.  A module that writes other files into the state directory
# cannot take over, nor can this one take over from it: the new one refuses in
# plain words, and the old one goes on.
#
# TEST_NGINX_OLD_MODULE names such a module, built for the same nginx by
# scripts/build-old-module.sh.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Upgrades;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %module = (this => $t->{module}, earlier => $ENV{TEST_NGINX_OLD_MODULE});

$t->{module} or plan(skip_all => 'the module is linked into nginx');


# A zone that both modules know

my @plain = ('zone=seen capacity=50k fpr=1e-9');

# Zones that only this module knows

my @new = ('zone=grows capacity=100 fpr=1e-9 max_keys=5k',
           'zone=lives capacity=5k fpr=1e-9 expire=24h',
           'zone=follows capacity=5k fpr=1e-9;'
           . ' bloom_source zone=follows name=s max_lag=off');

# Loads a module at the next start, reload or upgrade.

sub with {
    my ($which, @zones) = @_;

    $t->{module} = $module{$which};
    configure($t, \@zones, api => 1);
}

sub begin {
    my ($which, @zones) = @_;

    $t->stop;
    remove_tree("$dir/state");
    with($which, @zones);
    $t->run;
}

sub loaded {
    my ($which, $master) = @_;

    open my $maps, '<', "/proc/$master/maps" or die "maps of $master: $!";
    my $found = grep { m{ \Q$module{$which}\E$} } <$maps>;

    ok($found, "the master has $which module");
}


my $keys;    # of the zones

# The zone that both modules know has no keys.

sub forget { $keys = BloomTest::Upgrades->new($t, seen => []) }


# Upgrades to a module that refuses the files of the other one.

sub refuses {
    my ($which, $says) = @_;

    my $mark = $t->log_mark;

    with($which, @plain);
    kill 'USR2', $t->master;
    like($t->wait_for_log(qr/\[emerg\].*\/control"/, $mark), $says,
         "the new master with $which module says why it does not start");
    ok(wait_until(sub { !-e "$dir/nginx.pid.oldbin" }), 'the new master ends');
    $t->excuse_log($mark);

    $keys->change;
    $keys->all_is_known('in the old master, which goes on');
}


# Starts with a module that refuses the files of the other one.

sub does_not_start {
    my ($which, $says) = @_;

    with($which, @plain);
    like($t->run_fails, $says, "nginx does not start with $which module");
}


subtest 'between a module with other files and this one' => sub {
    my $why = dirname($module{earlier} // '') . '/reason';

    plan skip_all => 'TEST_NGINX_OLD_MODULE names no earlier module'
        if !$module{earlier};

    if (!-e $module{earlier}) {
        open my $reason, '<', $why or die "$module{earlier} does not exist";
        chomp(my $text = <$reason>);
        plan skip_all => $text;
    }

    # what either says about the files of the other

    my $advice = qr/has created it; start nginx with that version/;
    my %says = (this => qr/another version of the module $advice/,
                earlier => qr/a newer version of the module $advice/);

    for my $which ('earlier', 'this') {
        my ($other) = grep { $_ ne $which } keys %says;

        subtest "$which module runs" => sub {
            forget();
            begin($which, @plain);
            loaded($which, $t->master);
            $keys->change;

            refuses($other, $says{$other});

            $t->stop;
            does_not_start($other, $says{$other});

            with($which, @plain);
            $t->run;
            $keys->all_is_known("after a start with $which module");
        };
    }
};


subtest 'from this module to itself' => sub {
    my $position = 0;

    # Sends changes, as the source of the zone does.

    my $follows = sub {
        my ($changes) = @_;

        my $after = $position;
        $position += 10;

        my $response = api($t, POST => "zones/follows/changes?source=s"
                                       . "&after=$after&position=$position",
                           body => join "\n", @$changes);
        is($response->status, 200, "changes up to position $position are applied")
            or diag $response;
    };

    my $parts = sub { zone_state($t, 'grows')->{filter}{layers} };

    $keys = BloomTest::Upgrades->new($t, grows => [], lives => []);
    begin('this', @new);
    $keys->add_some for 1 .. 10;
    $follows->(['+one', '+two', '+three']);
    cmp_ok($parts->(), '>', 0, 'the zone with max_keys= has grown');
    $keys->remove_some;
    $keys->all_is_known('before the upgrade');

    loaded('this', $t->upgrade_begin);

    for (1 .. 3) {
        $keys->change;
        $keys->none_is_absent('while both run');
    }

    $follows->(['-two', '+four']);
    unlike(ask($t, 'follows', 'one', 'three', 'four'), qr/0/,
           'no key of the source is absent while both run');
    $t->upgrade_finish;

    $keys->all_is_known('after the upgrade');
    cmp_ok($parts->(), '>', 0, 'the zone has layers after the upgrade');
    $follows->(['-three', '+five']);
    is(ask_until_known($t, 'follows', qw(one two three four five)), '10011',
       'the zone with source= goes on at its position');
    is(zone_state($t, 'lives')->{expire}{slices}, 8,
       'the zone with expire= has its slices');

    $t->kill_all;
    $t->run;
    $keys->all_is_known('after kill -9 of all processes');
    is(ask_until_known($t, 'follows', qw(one two three four five)), '10011',
       'the zone with source= has all changes after kill -9');
};


done_testing;
