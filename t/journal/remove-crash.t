#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process dies at any step of a removal, or of anything else while keys are
# removed, and nginx continues.  Each acknowledged removal holds, each
# acknowledged addition holds, and a removal that was not acknowledged has
# removed its key or has not.  Each operation is repeated, and dies one step
# later each time, until it completes.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

# more steps than any operation has
use constant STEPS => 80;

# images that are complete up to a time before the test, so that they cover no
# removal

$t->build_image("image$_.bloom", [keys_of('id', 10)], '-p', '1e-9',
                '-n', '20k', '--seed', $_, '--as-of', rfc3339(time - 600))
    for 1 .. 2;

install_image($t, 'image1');
configure($t, ['zone=ids file=ids.bloom removals=1000'],
          api => 1, add => 1, remove => 1);
$t->run;


# What each key has to be: present, absent, or any if its last operation was not
# acknowledged.

my %must = map { $_ => 'present' } keys_of('id', 10);
my $next = 0;

sub make_keys {
    my @keys = map { 'key' . $next++ } 1 .. 3;

    add($t, 'ids', \@keys);
    @must{@keys} = ('present') x @keys;

    return @keys;
}


# Makes a request that is to make keys present or absent.

sub change {
    my ($to, $keys, $request) = @_;

    @must{@$keys} = ('any') x @$keys;
    my $response = eval { $request->() };


    # a request without an answer may have been made

    return if !$response || !$response->complete || !$response->status;

    $response->status == 200 or die "a change is refused: $response";
    @must{@$keys} = ($to) x @$keys;
}


sub all_answer {
    my ($name) = @_;

    my @keys = sort keys %must;
    my %answer;
    @answer{@keys} = lookup_keys($t, 'ids', @keys);

    is(join(' ', map { "$_ $answer{$_}" }
                     grep { $must{$_} ne 'any' && $answer{$_} ne $must{$_} }
                          @keys), '', $name);

    # a key of an operation that was cut keeps its answer until the next load,
    # which may find the record of the operation
}


sub dies_at_each_step {
    my ($name, $prepare, $operation) = @_;

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        my @keys = $prepare->();

        $faults->kill_at('any', $step);
        my $mark = $t->log_mark;
        $operation->(@keys);

        # a process may die after the response, in work that the operation
        # caused

        if (!wait_until(sub { !$faults->pending }, 1)) {
            $faults->withdraw;
            ok($deaths > 0, "$name completes after deaths at $deaths steps");
            all_answer("each key is as acknowledged after $name");
            return;
        }

        $deaths++;
        $t->wait_for_log(qr/exited on signal 9/, $mark);
        wait_until(sub {
            my $state = eval { zone_state($t, 'ids') };
            return $state && $state->{state} eq 'serving' && $t->helpers;
        }) or diag('nginx does not serve: ' . $t->log_since($mark));

        all_answer("each key is as acknowledged after a death at step $step of"
                   . " $name");
    }

    fail("$name completes");
}

$t->expect_log(qr/exited on signal 9/);

sub body { return join '', map { "$_\n" } @_ }

for (['a removal', 'zones/ids/remove'],
     ['a durable removal', 'zones/ids/remove?durable=true'])
{
    my ($name, $path) = @$_;

    dies_at_each_step($name, \&make_keys, sub {
        my @keys = @_;
        change('absent', \@keys,
               sub { api($t, POST => $path, body => body(@keys)) });
    });
}

dies_at_each_step('DELETE', \&make_keys, sub {
    my ($key) = @_;
    change('absent', [$key],
           sub { api($t, DELETE => "zones/ids/keys?key=$key") });
});

# bloom_remove does not say whether it has removed the key

dies_at_each_step('bloom_remove', \&make_keys, sub {
    my ($key) = @_;
    $must{$key} = 'any';
    eval { $t->get("/remove/ids?k=$key") };
});


# Additions of keys that were removed before

sub make_removed {
    my @keys = make_keys();

    my $response = api($t, POST => 'zones/ids/remove', body => body(@keys));
    $response->status == 200 or die "keys are not removed: $response";
    @must{@keys} = ('absent') x @keys;

    return @keys;
}

dies_at_each_step('an addition of removed keys', \&make_removed, sub {
    my @keys = @_;
    change('present', \@keys,
           sub { api($t, POST => 'zones/ids/keys', body => body(@keys)) });
});

dies_at_each_step('bloom_add of a removed key', \&make_removed, sub {
    my ($key) = @_;
    change('present', [$key], sub { $t->get("/add/ids?k=$key") });
});


# Loads and checkpoints with removed keys in the journal

my $image = 0;

sub some_of_both { make_removed(); make_keys(); return }

dies_at_each_step('a reload', \&some_of_both, sub {
    install_image($t, 'image' . (1 + $image++ % 2));
    eval { api($t, POST => 'zones/ids/reload') };
});

dies_at_each_step('a checkpoint', \&some_of_both, sub {
    eval { api($t, POST => 'zones/ids/checkpoint') };
});

dies_at_each_step('a snapshot', \&some_of_both, sub {
    eval { api($t, GET => 'zones/ids/image') };
});


$t->kill_all;
$t->run;
all_answer('each key is as acknowledged after kill -9 of all processes');

done_testing;
