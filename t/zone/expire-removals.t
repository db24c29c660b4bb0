#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Removed keys of zones with expire= are absent until they expire or are added
# again, and the room for them comes back when they have expired.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600, ROOM => 50 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $zone = 'capacity=2k fpr=1e-9 expire=8h removals=' . ROOM;

configure($t, ["zone=ids $zone", "zone=memory $zone journal=off",
               'zone=many capacity=20k fpr=1e-6 expire=8h removals=20k'
               . ' journal=off', 'zone=tick capacity=8k fpr=0.001'],
          api => 1, add => 1, remove => 1, workers => 2);
$t->run;

sub change {
    my ($name, $what, @keys) = @_;

    return api($t, POST => "zones/$name/$what", body => join "\n", @keys)
           ->status;
}

sub removed { return zone_state($t, $_[0])->{removals}{count} }


for my $name ('ids', 'memory') {

    my $restart = sub {
        return if $name eq 'memory';
        $t->kill_all;
        $t->run;
    };

    subtest "zone $name: removed keys stay absent" => sub {
        add($t, $name, [keys_of('r', 30), 'back', 'stays']);
        is(change($name, 'remove', keys_of('r', 30), 'back'), 200,
           'keys are removed');
        is(change($name, 'keys', 'back'), 200, 'a removed key is added again');

        for my $hour (1 .. 7) {
            $time->passes(HOUR);
            add($t, $name, ["other$hour"]);
            $restart->() if $hour % 3 == 0;
            my $answers = ask_until_known($t, $name, keys_of('r', 30), 'back',
                                          'stays');
            is($answers, '0' x 30 . '11',
               "removed keys are absent after $hour hours");
        }

        is(removed($name), 30, 'the zone remembers them as long as they live');
        $time->passes(2.5 * HOUR);
        is(ask_until_known($t, $name, keys_of('r', 30), 'back', 'stays'),
           '0' x 32, 'all of them expire');
        ok(wait_until(sub { removed($name) == 0 }),
           'the room for removals is given back');
        $restart->();
        is(removed($name), 0, 'the room is free after a restart');
    };


    subtest "zone $name: the room for removals is used for days" => sub {
        my ($number, $refused) = (0, 0);

        # in a life and a slice, and a slice by which they begin, fewer keys
        # are removed than there is room for

        for my $hour (1 .. 48) {
            my @new = map { 'n' . $number++ } 1 .. 4;

            add($t, $name, [@new, "keep$hour"]);
            $refused++ if change($name, 'remove', @new) != 200;
            $time->passes(HOUR);
            $restart->() if $hour % 17 == 0;
        }

        is($refused, 0, 'there is always room for removals');
        my $present = () = ask_until_known($t, $name,
                                           map { "n$_" } 0 .. $number - 1)
                           =~ /1/g;
        is($present, 0, 'each removed key is absent');
        is(ask_until_known($t, $name, map { "keep$_" } 42 .. 48), '1111111',
           'the others are present');
    };


    subtest "zone $name: full room" => sub {
        $time->passes(LIFE + 2 * HOUR);
        add($t, $name, [keys_of('f', ROOM + 1)]);
        is(change($name, 'remove', keys_of('f', ROOM)), 200,
           'as many keys are removed as there is room for');
        is(change($name, 'remove', 'f' . (ROOM + 1)), 507,
           'another removal is refused');
        $time->passes(6 * HOUR);
        add($t, $name, ['f1']);
        is(ask_until_known($t, $name, 'f1', 'f2', 'f' . (ROOM + 1)), '101',
           'a key that is added again gives room');
        is(change($name, 'remove', 'f' . (ROOM + 1)), 200, 'for another one');
        $time->passes(4 * HOUR);
        is(ask_until_known($t, $name, 'f1', 'f2', 'f' . (ROOM + 1)), '100',
           'the key that was added again outlives the others');
        is(removed($name), 1, 'older removals have ended');
        $time->passes(6 * HOUR);
        is(ask_until_known($t, $name, 'f1'), '0', 'it expires, too');
        ok(wait_until(sub { removed($name) == 0 }),
           'the last removal ends a life and a slice after it');
    };


    subtest "zone $name: bloom_remove and bloom_add" => sub {
        for (1 .. 3) {
            $t->get("/add/$name?k=x");
            is(ask_until_known($t, $name, 'x'), '1', 'bloom_add adds the key');
            $time->passes(3 * HOUR);
            $t->get("/remove/$name?k=x");
            is(ask_until_known($t, $name, 'x'), '0', 'bloom_remove removes it');
            $time->passes(3 * HOUR);
            is(ask_until_known($t, $name, 'x'), '0', 'it is absent later');
            $restart->();
        }
    };
}


# The helper looks at a part of a large set of removals at a time.

subtest 'the room for many removals is given back' => sub {
    my @keys = keys_of('m', 8_000);
    my @parts = map { [splice @{ [@keys] }, 1000 * $_, 1000] } 0 .. 7;

    add($t, 'many', $_) for @parts;
    is(scalar(grep { change('many', 'remove', @$_) != 200 } @parts), 0,
       'keys are removed');
    is(removed('many'), 8000, 'the zone remembers them');
    $time->passes(LIFE - HOUR / 2);
    is(removed('many'), 8000, 'it remembers them as long as they live');
    $time->passes(3 * HOUR);
    ok(wait_until(sub { removed('many') == 0 }),
       'the room for all of them is given back') or diag(removed('many'));
};

done_testing;
