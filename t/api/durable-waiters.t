#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that requests with durable=true wait in a queue of their worker: a
# thousand waiting requests cost the worker and the helper as much as one.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(alive stop_process wait_until);
use BloomTest::Zones;
use Time::HiRes qw(sleep);

use constant WAITERS => 1000;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'state');

configure($t, ['zone=seen:8m capacity=100k fpr=1e-6'], api => 1,
          main => 'worker_rlimit_nofile 4096;');

my $conf = $t->read_file('nginx.conf');
$conf =~ s/events \{ \}/events { worker_connections 3000; }/;
$t->write_file('nginx.conf', $conf);
$t->run;

add($t, 'seen', ['first'], durable => 1);


# Sends so many requests with durable=true and returns when the worker has read all
# of them: their keys are present.

my $number = 0;

sub waiters {
    my ($count) = @_;

    my @keys = map { 'key' . ++$number } 1 .. $count;
    my @clients = map {
        my $c = $t->connect;
        $c->send($t->request_text(POST => '/bloom/zones/seen/keys?durable=true',
                                  body => $_, keepalive => 1));
        $c;
    } @keys;

    wait_until(sub { ask($t, 'seen', @keys[-50 .. -1]) eq '1' x 50 })
        or die 'not all requests are read';

    return (\@keys, @clients);
}

sub answers {
    my (@clients) = @_;

    my %count;
    $count{$_->response->status}++ for @clients;

    return join ' ', map { "$_:$count{$_}" } sort keys %count;
}

sub writes {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/io" or die "/proc/$pid/io: $!";
    my ($count) = join('', <$fh>) =~ /^syscw: (\d+)/m;

    return $count;
}


subtest 'waiting requests make no system calls' => sub {
    my ($worker) = $t->workers;
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(WAITERS);

    my $before = writes($worker);
    sleep 0.3;
    cmp_ok(writes($worker) - $before, '<', 50,
           'a worker does not wake the helper repeatedly');

    kill 'CONT', $helper;
    is(answers(@clients), '200:' . WAITERS, 'all requests are answered');
    is(ask($t, 'seen', @$keys), '1' x WAITERS, 'all keys are present');
};


subtest 'clients disconnect while they wait' => sub {
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(300);
    $_->abort for @clients[grep { $_ % 3 == 0 } 0 .. $#clients];
    my @rest = @clients[grep { $_ % 3 } 0 .. $#clients];
    kill 'CONT', $helper;

    is(answers(@rest), '200:' . @rest, 'the other clients are answered');
    is(ask($t, 'seen', @$keys), '1' x 300,
       'keys of clients that disconnected are present');
};


subtest 'the disk fails while requests wait' => sub {
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(WAITERS);
    $disk->refuse('EIO', qw(sync));
    kill 'CONT', $helper;

    is(answers(@clients), '503:' . WAITERS,
       'all responses say that a loss of power may undo the additions');

    $disk->allow;
    ok(settled($t, 'seen', sub { !$_[0]{journal}{error} }),
       'the journal works again when the disk does');
    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => 'after'),
             1, 1, 0, 1, 'later keys are durable');
};


subtest 'nginx is reloaded while requests wait' => sub {
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(300);
    kill 'HUP', $t->master;
    ok(wait_until(sub { grep { $_ != $helper } $t->helpers }),
       'another helper runs after the reload');
    is(answers(@clients), '200:300',
       'the old worker answers when the next helper has synchronised');
    kill 'CONT', $helper;
    ok(wait_until(sub { !alive($helper) }), 'the old helper exits');
};


subtest 'the worker dies while requests wait' => sub {
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(300);
    $t->kill_worker;
    kill 'CONT', $helper;

    is(answers(@clients), '0:300',
       'no client is told that its keys are durable');
    is(ask($t, 'seen', @$keys), '1' x 300, 'the keys are present');
    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => 'last'),
             1, 1, 0, 1, 'later keys are durable');
};


subtest 'the helper dies while requests wait' => sub {
    my $helper = $t->helper;

    stop_process($helper);
    my ($keys, @clients) = waiters(300);
    $t->kill_helper;

    is(answers(@clients), '200:300',
       'all requests are answered when the next helper has synchronised');
};


done_testing;
