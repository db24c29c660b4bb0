#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx is upgraded by USR2 across versions of the module: from an earlier module
# to this one, back to the earlier one, and from this one to itself.  Keys are
# added and removed before, between and after: no acknowledged key is absent, and
# removed keys are absent in the end.  What only this module knows, such as
# changes of a source, the earlier module refuses in plain words.
#
# TEST_NGINX_OLD_MODULE names the earlier module, built for the same nginx by
# scripts/build-old-module.sh.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Upgrades;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %module = (this => $t->{module}, earlier => $ENV{TEST_NGINX_OLD_MODULE});

$t->{module} or plan(skip_all => 'the module is linked into nginx');

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time - 600));


# Both modules know these zones.

my @plain = ('zone=ids file=ids.bloom', 'zone=seen capacity=50k fpr=1e-9');

# Only this module knows these.

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

# The zones that both modules know have the keys of the image, and no others.

sub forget {
    $keys = BloomTest::Upgrades->new($t, ids => [keys_of('id', 10)],
                                     seen => []);
}


# Upgrades nginx to a module while keys are added and removed.

sub upgrade_to {
    my ($which, @zones) = @_;

    $keys->change;
    with($which, @zones);
    loaded($which, $t->upgrade_begin);

    for (1 .. 3) {
        $keys->change;
        $keys->none_is_absent("while both run, in an upgrade to $which module");
    }

    $t->upgrade_finish;
    $keys->all_is_known("after the upgrade to $which module");
}


subtest 'between the earlier module and this one' => sub {
    my $why = dirname($module{earlier} // '') . '/reason';

    plan skip_all => 'TEST_NGINX_OLD_MODULE names no earlier module'
        if !$module{earlier};

    if (!-e $module{earlier}) {
        open my $reason, '<', $why or die "$module{earlier} does not exist";
        chomp(my $text = <$reason>);
        plan skip_all => $text;
    }

    subtest 'an upgrade to this module' => sub {
        forget();
        begin('earlier', @plain);
        loaded('earlier', $t->master);
        upgrade_to('this', @plain);
        $keys->change;
        $keys->all_is_known('when this module has changed it');

        $t->kill_all;
        $t->run;
        $keys->all_is_known('after kill -9 of all processes');
    };

    subtest 'a new master with this module that is sent away' => sub {
        forget();
        begin('earlier', @plain);
        $keys->add_some;
        with('this', @plain);
        $t->upgrade_begin;
        $keys->change;
        $t->upgrade_back;
        loaded('earlier', $t->master);
        $keys->add_some;
        $keys->all_is_known('in the earlier module, which goes on');
    };

    subtest 'an upgrade back to the earlier module' => sub {
        forget();
        begin('this', @plain);
        $keys->change;
        is(api($t, POST => "zones/$_/checkpoint")->status, 200,
           "a checkpoint of zone $_ is written") for qw(ids seen);
        upgrade_to('earlier', @plain);

        $t->kill_all;
        $t->run;
        $keys->all_is_known('when the earlier module starts with it');
    };

    # The names of zones stay, and the earlier configuration lacks the parameter.
    # Then its outcome, and what it says.

    my %back = (
        grows => ['starts', qr/has layers, .*; use a newer program; .*300 keys/s],
        lives => ['starts', qr/300 keys of its journal/],
        follows => ['refused', qr/has a record of type 5 .*; use a newer program/],
    );
    my @without = map { s/ (?:max_keys|expire)=.*|;.*//r } @new;
    my @keys = keys_of('key', 300);

    for my $i (0 .. $#new) {
        my ($zone) = $new[$i] =~ /zone=(\w+)/;

        subtest "a zone that only this module knows: $zone" => sub {
            begin('this', $new[$i]);

            if ($zone eq 'follows') {
                api($t, POST => "zones/$zone/changes?source=s&after=0"
                                . '&position=7',
                    body => join '', map { "+$_\n" } @keys)->status == 200
                    or die 'changes are not applied';
            } else {
                add($t, $zone, \@keys);
            }

            is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
               'a checkpoint has the layers') if $zone eq 'grows';
            is(ask_until_known($t, $zone, @keys), '1' x @keys,
               'this module has the keys');

            # the parameter itself

            $t->stop;
            with('earlier', $new[$i]);
            like($t->run_fails, qr/invalid parameter "\w+=|unknown directive "/,
                 'the earlier module names what it does not know');

            # and what this module has written

            with('earlier', $without[$i]);
            my ($outcome, $log) = $t->try_run;
            my ($expected, $says) = @{ $back{$zone} };

            is($outcome, $expected, "the earlier module without it: $expected");
            like($log, $says, 'the log says what it does not know, and whether'
                              . ' it has the keys');
            is(ask_until_known($t, $zone, @keys), '1' x @keys,
               'the earlier module has all keys, from the journal')
                if $outcome eq 'starts';

            $t->stop;
            with('this', $new[$i]);
            $t->run;
            is(ask_until_known($t, $zone, @keys), '1' x @keys,
               'this module has the keys again');
        };
    }
};


# This module to itself, with the zones that the earlier one does not know

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
