#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process dies at any step of changes from a source, of a gap, of a sign of
# life, or of what a helper does meanwhile, and nginx continues.  The follower
# sends the changes again from the position that the zone names: each is applied
# once and in order, no change is lost or undone, and no key is ever absent in
# between that is present before and after.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until);
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

# more steps than any operation has
use constant STEPS => 80;

$t->build_image('ids.bloom', ['base'], '-p', '1e-9', '-n', '20k',
                '--source', 's=0');
configure($t, ['zone=ids file=ids.bloom removals=1000;'
               . ' bloom_source zone=ids name=s max_lag=off'],
          api => 1, workers => 2);
$t->run;
$t->expect_log(qr/exited on signal 9/);

my %present = (base => 1);
my $position = 0;
my $next = 0;

sub serves {
    wait_until(sub {
        my $state = eval { zone_state($t, 'ids') };
        return $state && $state->{generation} && $state->{state} ne 'behind'
               && $t->helpers;
    });
}

sub all_answer {
    my ($name) = @_;

    my @keys = sort keys %present;

    is(ask_until_known($t, 'ids', @keys), join('', @present{@keys}), $name)
        or diag(api($t, GET => 'zones/ids')->body);
}

# Sends changes until they are acknowledged, as a follower does.

sub deliver {
    my (@changes) = @_;

    my $to = $position + 1;

    wait_until(sub {
        my $r = eval { changes($t, 'ids', $position, $to, @changes) };

        # a process may die after the acknowledgement

        return $r && $r->complete && $r->status == 200;
    }) or die 'the changes are not acknowledged';

    $position = $to;

    for (@changes) {
        my ($sign, $key) = /^(.)(.*)$/;
        $present{$key} = $sign eq '+' ? 1 : 0;
    }
}

sub dies_at_each_step {
    my ($name, $operation) = @_;

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        $faults->kill_at('any', $step);
        my $mark = $t->log_mark;
        $operation->();

        if (!wait_until(sub { !$faults->pending }, 1)) {
            $faults->withdraw;
            ok($deaths > 0, "$name completes after deaths at $deaths steps");
            all_answer("each key is right after $name");
            return;
        }

        $deaths++;
        $t->wait_for_log(qr/exited on signal 9/, $mark);
        serves() or diag('nginx does not serve: ' . $t->log_since($mark));

        is(position($t, 'ids'), $position,
           "the position after a death at step $step of $name");
        all_answer("each key is right after a death at step $step of $name");
    }

    fail("$name completes");
}


# keys that stay, keys that come, and keys that go

dies_at_each_step('changes', sub {
    my $n = $next++;

    deliver("+new$n", '+stays', '-stays', '+stays',
            $n ? ('-new' . ($n - 1)) : (), '-never');
});

dies_at_each_step('changes of a key that flips', sub {
    deliver($next++ % 2 ? '+flips' : '-flips', '+stays');
});

dies_at_each_step('changes in parts', sub {
    my $n = $next++;
    my $to = $position + 1;
    my @changes = ('+stays', "+part$n", '-flips', '-stays',
                   $n ? ('-part' . ($n - 1)) : (), '+flips', '+stays');
    my $offset = 0;

    wait_until(sub {
        my $end = $offset + 2 < @changes ? $offset + 2 : @changes;
        my $r = eval { part($t, 'ids', $position, $to, $offset,
                            $end < @changes,
                            @changes[$offset .. $end - 1]) };

        return if !$r || !$r->complete || !eval { $r->json };

        $offset = $r->json->{offset} // 0;

        return $r->status == 200 && $r->json->{position} == $to;
    }) or die 'the changes are not acknowledged';

    $position = $to;
    $present{substr $_, 1} = /^\+/ ? 1 : 0 for @changes;
});

dies_at_each_step('an image that the zone loads', sub {
    deliver('+again', '-base');

    my $name = 'image' . $next++;
    $t->build_image("$name.bloom", [grep { $present{$_} } sort keys %present],
                    '-p', '1e-9', '-n', '20k', '--source', "s=$position");
    install_image($t, $name);

    deliver('-again', '+base');
    eval { api($t, POST => 'zones/ids/reload') };
});

dies_at_each_step('a gap', sub {
    my $to = $position + 5;

    wait_until(sub {
        my $r = eval { gap($t, 'ids', $to) };
        return $r && $r->complete && $r->status == 200;
    }) or die 'the gap is not acknowledged';

    $position = $to;
    serves();
    is(source_state($t, 'ids'), 'gap', 'the gap is known');

    my $name = 'image' . $next++;
    $t->build_image("$name.bloom", [grep { $present{$_} } sort keys %present],
                    '-p', '1e-9', '-n', '20k', '--source', "s=$position");
    install_image($t, $name);

    wait_until(sub {
        my $r = eval { api($t, POST => 'zones/ids/reload') };
        return $r && $r->complete && $r->status == 200;
    }) or die 'the image is not loaded';
});

$t->kill_all;
$t->run;
is(position($t, 'ids'), $position, 'the position after a crash of all');
all_answer('each key is right after a crash of all');

done_testing;
