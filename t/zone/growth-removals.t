#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# In a zone that has grown, exceptions are behind all layers: keys are removed,
# added again, restored and excepted in every part, and no other key is affected.
# Lookups of several expressions find keys of any part.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $capacity = 1000;
my @keys = keys_of('k', 12 * $capacity);

# a key of each part, and others

my @removed = @keys[map { 97 * $_ } 0 .. 120];
my %removed = map { $_ => 1 } @removed;
my @left = grep { !$removed{$_} } @keys;

$t->build_image('ids.bloom', [keys_of('id', $capacity)], '-n', $capacity, '-p',
                '0.02', '--seed', 1);

feedback_backend($t, 8081);
configure($t, ["zone=seen capacity=$capacity fpr=0.001 max_keys=100k"
               . ' removals=400',
               'zone=ids file=ids.bloom max_keys=100k removals=4000',
               "zone=hosts capacity=$capacity fpr=0.001 max_keys=100k form=host",
               "zone=urls capacity=$capacity fpr=0.001 max_keys=100k form=url"],
          api => 1, add => 1, workers => 2, server => <<'CONF');
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
$t->run;

sub add_all {
    my ($zone, @all) = @_;

    add($t, $zone, [splice @all, 0, 200]) while @all;
}

sub layers { return zone_state($t, $_[0])->{filter}{layers} }

sub present {
    my ($zone, @asked) = @_;

    return scalar grep { $_ eq 'present' } lookup_keys($t, $zone, @asked);
}

# A key that was removed may be present in none of the parts.

sub is_as_removed {
    my ($zone, $when) = @_;

    is(present($zone, @removed), 0,
       "removed keys of zone $zone are absent $when");
    is(present($zone, @left), @left,
       "all other keys of zone $zone are present $when");
}


for my $zone ('seen', 'ids') {
    subtest "removals in zone $zone" => sub {
        add_all($zone, @keys);
        cmp_ok(layers($zone), '>=', 3, 'the zone has grown');

        my $answer = api($t, POST => "zones/$zone/remove",
                         body => join "\n", @removed);

        is($answer->status, 200, 'keys of all parts are removed')
            or diag($answer);
        is_as_removed($zone, 'at once');

        # more layers begin behind the removal

        my $before = layers($zone);

        add_all($zone, keys_of('more', 10_000));
        cmp_ok(layers($zone), '>', $before, 'another layer begins');
        is_as_removed($zone, 'after another layer began');
        is(present($zone, keys_of('more', 10_000)), 10_000,
           'the keys of that layer are present');

        $t->reload;
        is_as_removed($zone, 'after a reload');
        is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
           'a checkpoint is written');
        $t->kill_all;
        $t->run;
        is_as_removed($zone, 'after kill -9 and a start from a checkpoint');

        add($t, $zone, [@removed[0 .. 59]]);
        is(present($zone, @removed[0 .. 59]), 60,
           'removed keys that are added again are present');
        is(present($zone, @removed[60 .. $#removed]), 0,
           'the other removed keys stay absent');
    };
}


subtest 'a zone that has grown excepts false positives of its layers' => sub {
    $t->excuse_log(0);

    my @false = do {
        my @asked = keys_of('no', 20_000);
        my @answers = lookup_keys($t, 'ids', @asked);
        grep { defined } map { $answers[$_] eq 'present' ? $asked[$_] : undef }
                             0 .. $#asked;
    };

    cmp_ok(scalar @false, '>', 20, 'there are false positives');
    await_feedback($t, 'ids', '/of/ids?id=', $false[0]);

    my @excepted = @false[1 .. 10];

    for my $key (@excepted) {
        ok(wait_until(sub {
               $t->get("/of/ids?id=$key");
               return present('ids', $key) == 0;
           }), "a false positive is excepted: $key");
    }

    is(present('ids', grep { !$removed{$_} } @keys), @left,
       'added keys stay present');
    add($t, 'ids', [@excepted[0 .. 4]]);
    is(present('ids', @excepted[0 .. 4]), 5,
       'excepted keys that are added are present');
    is(present('ids', @excepted[5 .. 9]), 0, 'other excepted keys stay absent');
    add_all('ids', keys_of('again', 20_000));
    is(present('ids', @excepted[0 .. 4]), 5,
       'they are present after another layer began');
};


subtest 'keys of several expressions' => sub {
    my @hosts = map { "d$_.example" } 1 .. 5000;
    my @urls = map { "http://d$_.example/path/" } 1 .. 5000;

    add_all('hosts', @hosts);
    add_all('urls', @urls);
    cmp_ok(layers($_), '>=', 2, "zone $_ has grown") for 'hosts', 'urls';

    is(present('hosts', map { "www.$_" } @hosts), @hosts,
       'a name below each added name is present, in a batch');
    is(present('urls', map { "${_}file.html?x=1" } @urls), @urls,
       'a URL below each added URL is present, in a batch');

    # by a variable, one at a time

    my @some = @hosts[map { 99 * $_ } 0 .. 49];

    is(ask($t, 'hosts', map { "www.$_" } @some), '1' x 50,
       'names of every part are present, one at a time');
    is(ask($t, 'urls', map { s{http://}{}r } @urls[map { 99 * $_ } 0 .. 49]),
       '1' x 50, 'URLs of every part are present, one at a time');

    my $absent = 1000 - present('hosts', map { "www.no$_.example" } 1 .. 1000);

    cmp_ok($absent, '>', 900, 'names that were not added are absent');
};

done_testing;
