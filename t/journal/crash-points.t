#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Every acknowledged key is present after a process has died at any write,
# synchronisation, rename, removal, switch or publication, and nginx continues.
# Each operation is repeated, and dies one step later each time, until it
# completes.  If the helper dies, its task has failed, and no other process dies
# of it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;

my $dir = $t->testdir;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

# more steps than any operation has
use constant STEPS => 60;

$t->build_image("image$_.bloom", [map { "id$_" } 1 .. 10], '-p', '1e-9',
                '-n', '20k', '--seed', $_)
    for 1 .. 2;

sub install {
    my ($number) = @_;

    replace_file($t, 'ids.bloom', $t->read_file("image$number.bloom"));
}

sub write_conf {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom",
                   'zone=seen capacity=20k fpr=1e-9'],
              api => 1, add => 1);
}

install(1);
write_conf('');
$t->run;

my %acknowledged = (ids => [map { "id$_" } 1 .. 10], seen => []);
my $next = 0;


# Adds keys, which must be present from the acknowledgement on.

sub try_add {
    my ($zone, %option) = @_;

    my @keys = map { 'key' . $next++ } 1 .. 5;
    my $response = eval {
        api($t, POST => "zones/$zone/keys" . ($option{durable} ? '?durable=true'
                                                               : ''),
            body => join "\n", @keys);
    };

    push @{ $acknowledged{$zone} }, @keys
        if $response && $response->complete && $response->status == 200;
}

sub try_bloom_add {
    my $key = 'key' . $next++;
    my $response = eval { $t->get("/add/ids?k=$key") };

    push @{ $acknowledged{ids} }, $key
        if $response && $response->complete && $response->status == 200;
}

sub all_present {
    my ($name) = @_;

    my @lost;

    for my $zone (qw(ids seen)) {
        my @keys = @{ $acknowledged{$zone} };
        my $response = api($t, POST => "zones/$zone/test",
                           body => join "\n", @keys);
        my @results = @{ $response->json->{answers} };

        push @lost, map { $keys[$_] } grep { $results[$_] =~ /absent/ }
                                      0 .. $#keys;
        push @lost, "answers for $zone" if @results != @keys;
    }

    is("@lost", '', $name);
}


# Repeats an operation in which a process dies at its first step, then at its
# second one, and so on.  nginx replaces the process.

sub dies_at_each_step {
    my ($name, $operation) = @_;

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        $faults->kill_at('any', $step);

        my $mark = $t->log_mark;
        my $response = $operation->();

        # a process may die after the response, in work that the operation
        # caused

        my $died = wait_until(sub { !$faults->pending }, 1);

        if (!$died) {
            $faults->withdraw;
            ok($deaths > 0, "$name completes after deaths at $deaths steps");
            all_present("every acknowledged key is present after $name");
            return;
        }

        $deaths++;
        $t->wait_for_log(qr/exited on signal 9/, $mark);
        wait_until(sub {
            my $state = eval { zone_state($t, 'ids') };
            return $state && $state->{state} eq 'serving' && $t->helpers;
        }) or diag('nginx does not serve: ' . $t->log_since($mark));

        all_present("every acknowledged key is present after a death at step"
                    . " $step of $name");

        # the helper may die at other work, before or after the task

        my $failed = $t->log_since($mark) =~ /process that was .* died/;
        next if $name !~ /reload|upload|checkpoint|snapshot/;

        # a worker that dies while it writes an upload answers nobody

        my $answers = $t->log_since($mark)
                      !~ /worker process \d+ exited on signal 9/;

        is($response && $response->status || 'none',
           !$answers ? 'none' : $failed ? 503 : 200,
           "the request is answered after a death at step $step of $name");
        is(scalar(() = $t->log_since($mark) =~ /exited on signal 9/g), 1,
           "nobody else dies at step $step of $name");
    }

    fail("$name completes");
}

$t->expect_log(qr/exited on signal 9/);

my $image = 0;

dies_at_each_step('an addition' => sub { try_add('seen') });
dies_at_each_step('a durable addition' => sub { try_add('ids', durable => 1) });
dies_at_each_step('bloom_add' => \&try_bloom_add);

dies_at_each_step('a reload' => sub {
    install(1 + $image++ % 2);
    eval { api($t, POST => 'zones/ids/reload') };
});

dies_at_each_step('an upload' => sub {
    eval { upload_image($t, 'ids', 'image' . (1 + $image++ % 2)) };
});

dies_at_each_step('a checkpoint' => sub {
    eval { api($t, POST => 'zones/ids/checkpoint') };
});

dies_at_each_step('a snapshot' => sub {
    eval { api($t, GET => 'zones/ids/image') };
});


# The files have everything that the processes had.

$t->kill_all;
$t->run;
all_present('every acknowledged key is present after kill -9 of all processes');


# The loader dies while nginx starts, so that this start is refused.  The next
# start completes what it began.

$t->expect_log(qr/the process that loads a bloom zone, \d+, died of signal 9/);

for my $what ('a start', 'a start with a torn tail') {
    my $deaths = 0;

    for my $step (1 .. STEPS) {
        try_add('ids');
        $t->kill_all;

        if ($what =~ /torn/) {
            my ($segment) = files("$dir/state/ids/journal.*");
            my $bytes = $t->read_file($segment =~ s{^\Q$dir/}{}r);
            my $used = length($bytes =~ s/\0+\z//r);
            $used += 8 - $used % 8;
            substr($bytes, $used, 40) = 'torn' x 10;
            $t->write_file($segment =~ s{^\Q$dir/}{}r, $bytes);
        }

        $faults->kill_at('any', $step);

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        all_present("every acknowledged key is present after a death at step"
                    . " $step of $what");
    }

    # the last master has completed its start, unknown to the harness

    $faults->withdraw;
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");

    $t->run;
    all_present("every acknowledged key is present when $what completes after"
                . " $deaths deaths");
}

done_testing;
