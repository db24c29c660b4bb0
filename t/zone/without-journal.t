#!/usr/bin/perl

# Memory only: no state directory, or no journal.  What is added lives as long
# as the zone, says so, and leaves nothing behind on disk.

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

    subtest $what => sub {
        configure($t, ["zone=seen capacity=10k fpr=1e-9 $journal",
                       "zone=ids file=ids.bloom $journal"],
                  api => 1, add => 0, workers => 2, http => $http,
                  server => 'location = /add/seen {
                                 bloom_add $arg_k zone=seen; return 200; }');
        $t->run;

        my @keys = keys_of('key', 100);
        my $r = api($t, POST => 'zones/seen/keys?durable=true',
                    body => join "\n", @keys);
        is_added($r, 100, 100, 0, 0, 'keys are taken, and not durable');
        $t->get("/add/seen?k=add$_") for 1 .. 20;
        is(ask($t, 'seen', @keys, map { "add$_" } 1 .. 20), '1' x 120,
           'they are in');

        is_error(api($t, POST => 'zones/ids/keys', body => "id2\n"), 409,
                 qr/./, 'a zone with a file refuses them');
        is(ask($t, 'ids', 'id1', 'id2'), '10', 'and has none');

        my $state = zone_state($t, 'seen');
        ok(!$state->{journal}{enabled}, 'the state says that there is no'
                                        . ' journal')
            if exists $state->{journal}{enabled};

        my $image = api($t, GET => 'zones/seen/image');
        if ($image->status == 200) {
            my $file = $t->write_file('got.bloom', $image->body);
            my ($exit) = $t->run_tool('test', '-q', $file, {
                stdin => join '', map { "$_\n" } @keys });
            is($exit, 0, 'it can be had as an image');
        } else {
            is_error($image, 409, qr/state/, 'without a place for it, it'
                                             . ' cannot be had as an image');
        }

        $t->kill_worker('KILL', $_) for $t->workers;
        is(ask($t, 'seen', @keys), '1' x 100, 'they survive workers');
        $t->reload;
        is(ask($t, 'seen', @keys), '1' x 100, 'and a reload');

        ok(!-e "$dir/state/seen", 'nothing is on disk');
        ok(!-e "$dir/state/ids", 'of neither zone');

        $t->stop;
        $t->run;
        is(ask($t, 'seen', @keys), '0' x 100, 'a restart begins anew');
        $t->stop;
    };
}


# The directory is made when a zone needs it, for the workers' user alone.

subtest 'the directory' => sub {
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
    ok(!-e "$testdir/where/it/is", 'nothing adds: there is none');
    $other->stop;

    configure($other, \@zones, api => 1,
              http => 'bloom_state_path where/it/is;');
    $other->test_config;
    ok(!-e "$testdir/where/it/is", 'nginx -t makes none');

    $other->run;
    my @stat = stat "$testdir/where/it/is";
    is($stat[2] & 07777, 0700, 'its mode');
    is($stat[4], $owner, 'its owner');
    ok(-d "$testdir/where/it/is/seen", 'a zone has its own');
    ok(!-e "$testdir/where/it/is/off", 'one without a journal has none');

    add($other, 'seen', ['a'], durable => 1);

    for my $file (glob "$testdir/where/it/is/seen/*") {
        is((stat $file)[2] & 0077, 0, "$file is nobody else's");
        is((stat $file)[4], $stat[4], 'and of the same owner');
    }

    $other->kill_all;
    $other->run;
    is(sure($other, 'seen', 'a', 'b'), '10', 'and is read again');

    # a name that is no name of a file

    $other->stop;
    configure($other, ['zone=a capacity=1k fpr=0.01'],
              http => 'bloom_zone zone=../up capacity=1k fpr=0.01;'
                      . ' bloom_state_path where/it/is;',
              server => 'location = /up {
                             bloom_add $arg_k zone=../up; return 200; }');
    $other->run;
    is($other->get('/up?k=a')->status, 200,
       'a zone with dots and a slash in its name');
    ok(!-e "$testdir/where/it/up", 'stays in its place');
    is(scalar files("$testdir/where/it/is/*up"), 1, 'under another name');
    $other->stop;
};


# Without a master there is no helper either.

subtest 'master_process off' => sub {
    configure($t, ['zone=seen capacity=10k fpr=1e-9', 'zone=ids file=ids.bloom'],
              api => 1, add => 1, main => 'master_process off;');
    $t->run;

    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => "m1\n"),
             1, 1, 0, 1, 'durable additions');
    $t->get('/add/ids?k=id2');
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'a checkpoint');

    $t->build_image('ids.bloom', ['id1', 'id3'], '-p', '1e-6');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a reload');
    is(sure($t, 'ids', 'id1', 'id2', 'id3', 'id4'), '1110', 'keeps what was'
                                                            . ' added');
    is(api($t, GET => 'zones/ids/image')->status, 200, 'an image');
    is(api($t, PUT => 'zones/seen/image',
           body => $t->read_file('ids.bloom'))->status, 200, 'an upload');

    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', 'id1', 'id2', 'id3', 'id4'), '1110', 'all is there');
    is(sure($t, 'seen', 'm1', 'id1'), '11', 'again');
};


done_testing;
