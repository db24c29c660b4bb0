#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# If a zone's state directory cannot be used, nginx -t and a start refuse the
# configuration, because added keys would be lost.  With required=off the zone
# answers unknown, and a stop logs that keys are lost.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Hostile;
use BloomTest::Zones;

my $user = $> == 0 ? hostile_user() : undef;
my $t = BloomTest->new($user ? (user => $user->{conf}) : ());
my $dir = $t->testdir;
my $state = "$dir/above/state";
my $disk = BloomTest::Disk->new($t, 'above/state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '1k');

sub conf {
    my ($required, %option) = @_;

    configure($t, ["zone=ids file=ids.bloom required=$required",
                   'zone=other file=ids.bloom journal=off'],
              api => 1, add => 1, %option);
    my $conf = $t->read_file('nginx.conf');
    $conf =~ s/bloom_state_path \S+;/bloom_state_path $state;/;
    $t->write_file('nginx.conf', $conf);
}


subtest 'the directory cannot be created' => sub {
    conf('on');
    like($t->run_fails,
         qr/\[emerg\] cannot create "\Q$state\E" \(2: No such file or directory\): create its parent directory, .*; bloom zone "ids" keeps added keys there/,
         'the start is refused without a state directory');

    $t->write_file('above', 'a file');
    like($t->run_fails, qr/\[emerg\].*\Q$state\E\b.*"ids"/,
         'the start is refused with a file in the place of a directory');
    unlink "$dir/above" or die "unlink: $!";

    conf('off');

    my $begun = $t->log_mark;

    $t->run;
    unlike($t->log_since($begun), qr/POST reload/,
           'only a reload of nginx can use a directory');
    $t->expect_log(qr/\[alert\] .*cannot create "\Q$state\E"/);
    $t->expect_log(qr/\[alert\] .*bloom zone "ids" is not loaded and answers "unknown"/);
    is(zone_state($t, 'ids')->{state}, 'not_loaded', 'the state says so');
    is(ask($t, 'ids', 'id1', 'no'), '??', 'the zone answers unknown');
    is(ask($t, 'other', 'id1', 'no'), '10', 'another zone serves');
    is(api($t, POST => 'zones/ids/keys', body => "added\n")->status, 503,
       'the endpoint refuses additions');
    is($t->get('/add/ids?k=id2')->status, 200, 'a request is answered');
    is(ask($t, 'ids', 'id2'), '?',
       'the key that this request added is unknown');

    my $mark = $t->log_mark;
    $t->expect_log(qr/\[alert\] .*"ids" loses added keys/);
    $t->expect_log(qr/\[alert\] .*"ids" could not write added keys/);
    $t->stop;
    like($t->log_since($mark),
         qr/\[alert\] .*bloom zone "ids" loses added keys, because its directory could not be used: add them again/,
         'a stop says that the key is lost');

    $t->run;
    mkdir "$dir/above" or die "mkdir: $!";
    $t->get('/add/ids?k=id3');
    $t->reload;
    $t->expect_log(qr/\[alert\] .*"ids" has lost added keys/);
    is(ask($t, 'ids', 'id1', 'id3', 'no'), '1??',
       'a reload makes the directory, and knows that a key was lost');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'id1', 'id3', 'no'), '1??', 'for good');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    is(ask($t, 'ids', 'id1', 'id3', 'no'), '100', 'and serves');
    $t->stop;
};


subtest 'the disk is full at the first start' => sub {
    conf('on');
    system('rm', '-rf', $state) == 0 or die 'rm';
    $disk->refuse('ENOSPC', qw(write grow));
    like($t->run_fails,
         qr/\[emerg\] .*cannot create "\Q$state\E\/ids\/control.tmp".*: free about 20 MiB on its disk/,
         'the start is refused, and the message says what to do');
    $disk->allow;
    $t->run;
    is(ask($t, 'ids', 'id1', 'no'), '10', 'nginx starts once there is room');
    $t->stop;
};


subtest 'nginx -t and a start refuse the same' => sub {
    plan(skip_all => 'only root can give files away') if $> != 0;

    for my $name (qw(control lock instance.0)) {
        my $file = "$state/ids/$name";
        my ($uid, $gid) = (stat $file)[4, 5];

        chown 0, 0, $file or die "chown: $!";
        chmod 0600, $file;

        my $why = qr/\[emerg\] .*cannot (?:open|lock) "\Q$file\E".*: the user that the workers run as cannot read and write it; make that user its owner, with mode 0600/;

        my ($exit, $output) = $t->test_config;
        is($exit, 1, "nginx -t refuses a $name file of root's");
        like($output, $why,
             "nginx -t says what to do about a $name file of root's");
        like($t->run_fails, $why,
             "a start refuses a $name file of root's and says the same");

        chown $uid, $gid, $file or die "chown: $!";
    }

    is(($t->test_config)[0], 0,
       'nginx -t succeeds when all files have their owner back');

    my ($uid, $gid) = (stat "$state/ids")[4, 5];
    system('rm', '-rf', "$state/ids") == 0 or die 'rm';
    mkdir "$state/ids", 0700 or die "mkdir: $!";
    is(($t->test_config)[0], 0,
       'nginx -t accepts an empty directory of root, which a start replaces');
    $t->run;
    is((stat "$state/ids")[4], $uid,
       "the start gives that directory to the workers' user");
    is(ask($t, 'ids', 'id1', 'no'), '10', 'nginx starts');
    $t->stop;
};


done_testing;
