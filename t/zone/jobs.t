#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A job is done in a child of the helper, which goes on with the journals of all
# zones meanwhile.  A job that dies has failed, and nothing else has; one whose
# nginx exits ends with it.

use strict;
use warnings;

use IO::Select;
use List::Util qw(sum);

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(alive children resume_process title wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

use constant KEYS => 1_000_000;    # an image has some chunks

for my $seed (1, 2) {
    $t->build_image("$seed.bloom", ["image$seed"], '-p', '1e-6', '-n', KEYS,
                    '--seed', $seed);
}

my @zones = ('zone=ids file=ids.bloom', 'zone=seen capacity=1k fpr=1e-3',
             'zone=memory capacity=1k fpr=1e-3 journal=off');

sub begin {
    my ($main) = @_;

    $t->stop if $t->master;
    install_image($t, 1);
    configure($t, \@zones, api => 1, main => $main // '');
    $t->run;
}

# Sends a request and stops its job at a place.  Returns the connection and the
# process.

sub stopped_job {
    my ($path, $place, $time) = @_;

    my $stop = $faults->stop_at($place, $time // 1);
    my $c = $t->connect;

    $c->send($t->request_text(POST => "/bloom/zones/$path"));

    return ($c, $faults->stopped($stop));
}

sub contents {
    open my $file, '<', $_[0] or die "$_[0]: $!";
    return join '', <$file>;
}

sub jobs { return grep { title($_) =~ /bloom job/ } map { children($_) } @_ }


begin();

subtest 'while a job is stopped, everything else goes on' => sub {
    install_image($t, 2);

    my $before = generation($t, 'ids');
    my ($c, $job) = stopped_job('ids/reload', 'load', 2);

    is_deeply([jobs($t->helper)], [$job], 'the job is a child of the helper');
    is(contents("/proc/$job/oom_score_adj"), "1000\n",
       'it dies before any other process when memory is short');
    kill $_ => $job for qw(HUP INT QUIT TERM USR1 USR2 WINCH);
    ok(zone_state($t, 'ids')->{load}{in_progress}, 'the state says that it runs');

    add($t, 'ids', ["during$_"], durable => 1) for 1 .. 3;
    add($t, 'seen', ['during'], durable => 1);
    is(api($t, POST => 'zones/ids/remove?durable=true',
           body => "during3\n")->status, 200,
       'its zone takes durable additions and removals');
    is(scalar(ask($t, 'ids', qw(image1 during1 during3 no))), '1100',
       'lookups answer from the image before');

    my $waits = $t->connect;
    $waits->send($t->request_text(POST => '/bloom/zones/seen/checkpoint'));
    ok(!IO::Select->new($waits->{socket})->can_read(0.3),
       'a job of another zone waits for its end');

    resume_process($job);
    is($c->response->status, 200, 'the load ends, whatever nginx is told');
    is($waits->response->status, 200, 'and then the other job');
    is(generation($t, 'ids'), $before + 1, 'the image serves');
    is(scalar(ask($t, 'ids', qw(image2 during1 during3 no))), '1100',
       'it has the keys that were added meanwhile');
};


subtest 'a job is killed' => sub {
    my $helper = $t->helper;
    my $mark = $t->log_mark;

    for (['ids/reload', 'load', 'loading its file'],
         ['ids/checkpoint', 'saving', 'writing a checkpoint'],
         ['ids/clear?only=removed', 'restoring', 'restoring removed keys'],
         ['memory/clear', 'held', 'clearing the zone'])
    {
        my ($path, $place, $what) = @$_;
        my ($c, $job) = stopped_job($path, $place);

        kill KILL => $job;
        is_error($c->response, 503,
                 qr/was \Q$what\E died on signal 9, .* system's log/,
                 "$path: the client is told the signal");
    }

    $t->expect_log(qr/did a job for bloom zone "\w+" exited on signal 9/);
    is($t->helper, $helper, 'the helper lives');
    ok(wait_until(sub { !files("$dir/state/*/*.tmp") }), 'no file is left');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'the next load ends');
    is(zone_state($t, 'ids')->{state}, 'serving', 'the zone serves');
};


subtest 'a load dies that has taken memory' => sub {
    my $half = (-s "$dir/ids.bloom") / 2;
    my $resident = sub { sum map { $_->{resident} } zone_memory($t->master) };
    my $before = $resident->()
        or plan(skip_all => 'the memory of zones cannot be seen');
    my ($c, $job) = stopped_job('ids/reload', 'switch');

    cmp_ok($resident->(), '>', $before + $half, 'it has taken another bank');
    kill KILL => $job;
    ok(wait_until(sub { $resident->() < $before + $half }), 'it is given back');
    is_error($c->response, 503, qr/died on signal 9/, 'the client is told');
    $t->expect_log(qr/did a job for bloom zone "ids" exited on signal 9/);
};


subtest 'nginx exits during a job' => sub {
    my ($c, $job) = stopped_job('ids/reload', 'load', 2);

    ok($t->stop, 'nginx stops');
    ok(wait_until(sub { !alive($job) }), 'the job has ended');
    is_error($c->response, 503, qr/nginx exits, and the zone's helper process/,
             'the client is told');

    begin();
    is(zone_state($t, 'ids')->{state}, 'serving', 'the next start serves');
};


subtest 'the helper is killed during a job' => sub {
    my ($c, $job) = stopped_job('ids/reload', 'load', 2);

    $t->kill_helper;
    ok(wait_until(sub { !alive($job) }), 'the job dies with it');
    is_error($c->response, 503, qr/was loading its file died/,
             'the client is told');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the next helper has jobs of its own');
};


subtest 'a reload takes place during a job' => sub {
    install_image($t, 2);

    my ($c, $job) = stopped_job('ids/reload', 'load', 2);

    $t->reload(keep_old => 1);
    ok(wait_until(sub { !alive($job) }), 'the job ends with its helper');
    is($c->response->status, 200, 'the next helper does it again');
    is(scalar(ask($t, 'ids', 'image2')), '1', 'the image serves');
};


subtest 'nginx is upgraded during a job' => sub {
    my (undef, $job) = stopped_job('ids/reload', 'load', 2);

    ok($t->upgrade, 'the upgrade ends');
    ok(wait_until(sub { !alive($job) }), 'the job ends with the old helper');
    is(scalar(ask_until_known($t, 'ids', 'image2', 'during1')), '11',
       'the new instance has the image and the keys');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'it does jobs of its own');
};


# Done again, it would drop what was added in between.

subtest 'a reload takes place when a clear has happened' => sub {
    my $before = generation($t, 'ids');
    my ($c, $job) = stopped_job('ids/clear', 'served');

    $t->reload(keep_old => 1);
    ok(wait_until(sub { !alive($job) }), 'the job ends with its helper');
    add($t, 'ids', ['since'], durable => 1);
    is_error($c->response, 503, qr/was clearing the zone ended, because nginx/,
             'the client is told');
    is(generation($t, 'ids'), $before + 1, 'the zone is cleared once');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(image2 since during1)), '110',
       'what was added since is kept, and what was before is not');
};


subtest 'a reload takes away what a job needs' => sub {
    my ($c, $job) = stopped_job('seen/checkpoint', 'prepared');

    configure($t, [$zones[0], "$zones[1] journal=off", $zones[2]], api => 1);
    $t->reload(keep_old => 1);
    ok(wait_until(sub { !alive($job) }), 'the job ends with its helper');
    is_error($c->response, 503, qr/"seen": the zone has no state directory/,
             'the client is told why it is not done');
    is(api($t, POST => 'zones/seen/clear')->status, 200,
       'the zone has other jobs');
};


subtest 'the only process forks, too' => sub {
    begin('master_process off;');

    my ($c, $job) = stopped_job('ids/reload', 'load', 2);

    is_deeply([jobs($t->master)], [$job], 'the job is its child');
    add($t, 'ids', ['single'], durable => 1);
    is(scalar(ask($t, 'ids', 'single')), '1', 'it answers requests meanwhile');

    my @files = grep { defined } map { readlink } glob "/proc/$job/fd/*";
    ok(scalar @files, 'the files of the job can be seen');
    is(scalar(grep { /socket/ } @files), 0,
       'none is a connection of a client');

    resume_process($job);
    is($c->response->status, 200, 'the load ends');
    $t->stop;
};


subtest 'a job takes too long' => sub {
    $t->environment(NGX_BLOOM_FAULT_LIMIT => 1000);
    begin();

    my ($c) = stopped_job('ids/reload', 'load', 2);

    is_error($c->response, 503, qr/died after 1 s, .* check the disk/,
             'it is killed, and the client is told');
    $t->environment(NGX_BLOOM_FAULT_LIMIT => undef);
};

done_testing;
