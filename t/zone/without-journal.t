#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Zones without a journal keep added keys in memory only and write nothing to
# disk.  The state directory is created for zones that need it, and belongs to
# the workers' user.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-6');


for (['journal=off', '', 'journal=off'],
     ['bloom_state_path off', 'bloom_state_path off;', ''])
{
    my ($what, $http, $journal) = @$_;

    subtest "additions with $what" => sub {
        configure($t, ["zone=seen capacity=10k fpr=1e-9 $journal",
                       "zone=ids file=ids.bloom $journal"],
                  api => 1, add => 0, workers => 2, http => $http,
                  server => 'location = /add/seen {
                                 bloom_add $arg_k zone=seen; return 200; }');
        $t->run;

        my @keys = keys_of('key', 100);
        my $r = api($t, POST => 'zones/seen/keys?durable=true',
                    body => join "\n", @keys);
        is_added($r, 100, 100, 0, 0,
                 "keys are added with $what, and are not durable");
        $t->get("/add/seen?k=add$_") for 1 .. 20;
        is(ask($t, 'seen', @keys, map { "add$_" } 1 .. 20), '1' x 120,
           "all added keys are present with $what");

        is_error(api($t, POST => 'zones/ids/keys', body => "id2\n"), 409,
                 qr/./, "a zone with a file refuses keys with $what");
        is(ask($t, 'ids', 'id1', 'id2'), '10',
           "a refused key is absent with $what");

        my $state = zone_state($t, 'seen');
        ok(!$state->{journal}{enabled},
           "the zone's state has no journal with $what")
            if exists $state->{journal}{enabled};

        my $image = api($t, GET => 'zones/seen/image');
        if ($image->status == 200) {
            my $file = $t->write_file('got.bloom', $image->body);
            my ($exit) = $t->run_tool('test', '-q', $file, {
                stdin => join '', map { "$_\n" } @keys });
            is($exit, 0, "the zone's image has all added keys with $what");
        } else {
            is_error($image, 409, qr/state/,
                     "the zone's image cannot be downloaded with $what");
        }

        $t->kill_worker('KILL', $_) for $t->workers;
        is(ask($t, 'seen', @keys), '1' x 100,
           "added keys survive the death of the workers with $what");
        $t->reload;
        is(ask($t, 'seen', @keys), '1' x 100,
           "added keys survive a reload with $what");

        ok(!-e "$dir/state/seen",
           "a zone that starts empty has no directory with $what");
        ok(!-e "$dir/state/ids",
           "a zone with a file has no directory with $what");

        $t->stop;
        $t->run;
        is(ask($t, 'seen', @keys), '0' x 100,
           "added keys are absent after a restart with $what");
        $t->stop;
    };
}


# The state directory is created when a zone needs it, for the workers' user
# alone.

subtest 'the state directory is created' => sub {
    my ($owner, $group) = $> == 0 ? (getpwnam 'nobody')[2, 3] : ($>);
    my $other = BloomTest->new(
        user => $> == 0 ? 'nobody ' . getgrgid $group : 'root');
    my $testdir = $other->testdir;
    my @zones = ('zone=seen capacity=1k fpr=0.01',
                 'zone=off capacity=1k fpr=0.01 journal=off');

    configure($other, \@zones, http => 'bloom_state_path where/it/is;');
    $other->write_file('where/it/x', '');
    chmod 0755, "$testdir/where", "$testdir/where/it";
    $other->run;
    ok(!-e "$testdir/where/it/is",
       'no directory is created for zones without additions');
    $other->stop;

    configure($other, \@zones, api => 1,
              http => 'bloom_state_path where/it/is;');
    $other->test_config;
    ok(!-e "$testdir/where/it/is", 'nginx -t creates no directory');

    $other->run;
    my @stat = stat "$testdir/where/it/is";
    is($stat[2] & 07777, 0711, 'the directory has mode 0711');
    is($stat[4], $<, 'the directory belongs to the user who started nginx');
    ok(-d "$testdir/where/it/is/seen",
       'a zone with a journal has a directory in it');
    @stat = stat "$testdir/where/it/is/seen";
    is($stat[2] & 07777, 0700, "the zone's directory has mode 0700");
    is($stat[4], $owner, "the zone's directory belongs to the workers' user");
    ok(!-e "$testdir/where/it/is/off",
       'a zone without a journal has no directory in it');

    add($other, 'seen', ['a'], durable => 1);

    # the helper renames a new segment

    for my $file (grep { !/\.tmp\z/ } glob "$testdir/where/it/is/seen/*") {
        is((stat $file)[2] & 0077, 0, "no other user may access $file");
        is((stat $file)[4], $stat[4], "the workers' user owns $file");
    }

    $other->kill_all;
    $other->run;
    is(ask_until_known($other, 'seen', 'a', 'b'), '10',
       'a durable key is present after kill -9 of all processes');

    # a zone's name that is not a file name

    $other->stop;
    configure($other, ['zone=a capacity=1k fpr=0.01'],
              http => 'bloom_zone zone=../up capacity=1k fpr=0.01;'
                      . ' bloom_state_path where/it/is;',
              server => 'location = /up {
                             bloom_add $arg_k zone=../up; return 200; }');
    $other->run;
    is($other->get('/up?k=a')->status, 200,
       'a zone with dots and a slash in its name takes keys');
    ok(!-e "$testdir/where/it/up",
       'a zone named ../up writes nothing outside the state directory');
    is(scalar files("$testdir/where/it/is/*up"), 1,
       'a zone named ../up has a directory of another name');
    $other->stop;
};


done_testing;
