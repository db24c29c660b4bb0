#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Requests that wait until their keys are on disk wait in a queue of their
# worker: a thousand that wait cost the worker and the helper what one costs.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(alive wait_until);
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


# So many requests for durability, all of which the worker has read: it has
# answered another one since, and there are their keys.

my $number = 0;

sub waiters {
    my ($count) = @_;

    my @keys = map { 'key' . ++$number } 1 .. $count;
    my @clients = map {
        my $c = $t->connect;
        $c->send($t->request_text(POST => '/bloom/zones/seen/keys?durable=1',
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


# How long a process has run, in seconds.

sub ran {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/schedstat" or die "/proc/$pid/schedstat: $!";

    return (split ' ', <$fh>)[0] / 1e9;
}


subtest 'requests wait and make no system calls' => sub {
    my ($worker) = $t->workers;
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(WAITERS);

    my ($before, $ran) = (writes($worker), ran($worker));
    sleep 0.3;
    cmp_ok(writes($worker) - $before, '<', 50,
           'a worker does not write to the pipe of the helper again and again');

    # one that asked for each would run all the time, and one that another
    # process keeps from running runs less

    cmp_ok(ran($worker) - $ran, '<', 0.1, 'nor does it ask for all of them');

    kill 'CONT', $helper;
    is(answers(@clients), '200:' . WAITERS, 'all requests are answered');
    is(ask($t, 'seen', @$keys), '1' x WAITERS, 'all keys are present');
};


subtest 'clients go away while they wait' => sub {
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(300);
    $_->abort for @clients[grep { $_ % 3 == 0 } 0 .. $#clients];
    my @rest = @clients[grep { $_ % 3 } 0 .. $#clients];
    kill 'CONT', $helper;

    is(answers(@rest), '200:' . @rest, 'the others are answered');
    is(ask($t, 'seen', @$keys), '1' x 300,
       'keys of clients that went away are present');
};


subtest 'the disk fails while requests wait' => sub {
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(WAITERS);
    $disk->refuse('EIO', qw(sync));
    kill 'CONT', $helper;

    is(answers(@clients), '503:' . WAITERS,
       'all requests are told that their keys may not outlive a loss of power');

    $disk->allow;
    ok(settled($t, 'seen', sub { !$_[0]{journal}{error} }),
       'the journal works when the disk allows');
    is_added(api($t, POST => 'zones/seen/keys?durable=1', body => 'after'),
             1, 1, 0, 1, 'later keys are durable');
};


subtest 'nginx is reloaded while requests wait' => sub {
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(300);
    kill 'HUP', $t->master;
    ok(wait_until(sub { grep { $_ != $helper } $t->helpers }),
       'there is another helper');
    is(answers(@clients), '200:300',
       'the old worker answers them when the next helper has synchronised');
    kill 'CONT', $helper;
    ok(wait_until(sub { !alive($helper) }), 'the old helper exits');
};


subtest 'the worker dies while requests wait' => sub {
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(300);
    $t->kill_worker;
    kill 'CONT', $helper;

    is(answers(@clients), '0:300', 'nobody is told that keys are durable');
    is(ask($t, 'seen', @$keys), '1' x 300, 'the keys are present');
    is_added(api($t, POST => 'zones/seen/keys?durable=1', body => 'last'),
             1, 1, 0, 1, 'later keys are durable');
};


subtest 'the helper dies while requests wait' => sub {
    my ($helper) = $t->helpers;

    kill 'STOP', $helper;
    my ($keys, @clients) = waiters(300);
    $t->kill_helper;

    is(answers(@clients), '200:300',
       'they are answered when the next helper has synchronised');
};


done_testing;
