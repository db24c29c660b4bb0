#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A flood of false positives: many clients, each with false positives of its own,
# which the zone learns up to its share and its rate.  Nothing is written to the
# journal, and each request is answered as without learning.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Learning;
use BloomTest::Process qw(spawn alive wait_until now);
use BloomTest::Zones;

# LEARN_FLOOD=1 runs the flood with a hundred clients.

use constant { ROOM => 400, RATE => 20, BURST => 20 };

my ($clients, $each) = $ENV{LEARN_FLOOD} ? (100, 1000) : (10, 200);

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('ids.bloom', [keys_of('id', 20_000)], '-p', '1e-2', '--seed',
                1);

sub conf {
    my ($rate) = @_;

    configure($t, ['zone=ids file=ids.bloom removals=' . ROOM],
              api => 1, workers => 2, server => <<"CONF", http => <<'HTTP');
        keepalive_requests 100000;
        location /of/ids {
            bloom_reject absent \$arg_id zone=ids;
            bloom_feedback 404 learn=on learn_rate=$rate learn_after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        return 404 "no such row";
    }
HTTP
}

# The seed is known to attackers, so they find false positives offline.

my @false = false_positives($t, 'ids', $clients * $each + 1);

# Lets the clients ask at the same time.  Returns the statuses that they got and
# how often, and how long it took.

sub flood {
    my $begun = now();
    my @pids = map {
        my $client = $_;

        spawn(sub {
            my @keys = @false[map { $client + $clients * $_ } 0 .. $each - 1];
            my %got;

            while (my @some = splice @keys, 0, 100) {
                $got{$_->status}++
                    for $t->pipeline(map { "/of/ids?id=$_" } @some);
            }

            $t->write_file("client.$client",
                           join '', map { "$_ $got{$_}\n" } sort keys %got);
        })
    } 0 .. $clients - 1;

    wait_until(sub { !grep { alive($_) } @pids }, 300)
        or die 'the clients do not end';

    my %got;
    for my $client (0 .. $clients - 1) {
        my $text = $t->read_file("client.$client");
        $got{$1} += $2 while $text =~ /^(\d+) (\d+)$/mg;
    }

    return (join(' ', map { "$_: $got{$_}" } sort keys %got), now() - $begun);
}

sub journal { return join ' ', map { -s $_ } files("$dir/state/ids/journal.*") }

sub tail_of { return zone_state($t, 'ids')->{journal}{tail} // journal() }

my @image = keys_of('id', 20_000);
my $all = $clients * $each;

subtest 'the rate' => sub {
    conf(RATE . 'r/s');
    $t->run;
    await_learning($t, 'ids', '/of/ids?id=', $false[-1]);

    my $tail = tail_of();
    my ($got, $seconds) = flood();
    my $learned = learned($t, 'ids');

    is($got, "404: $all", 'each request is answered by the backend or rejected');
    cmp_ok($learned, '<=', 1 + BURST + RATE * ($seconds + 1),
           'no more keys are learned than the rate allows');
    cmp_ok($learned, '>=', 10, 'some are learned');
    is(tail_of(), $tail, 'the journal does not grow');
};

subtest 'the share' => sub {
    conf('1000000r/s');
    $t->reload;
    await_learning($t, 'ids', '/of/ids?id=', $false[-2]);

    my $tail = tail_of();
    my $mark = $t->log_mark;
    my ($got) = flood();

    is($got, "404: $all", 'each request is answered by the backend or rejected');
    is(learned($t, 'ids'), ROOM / 2, 'half of the room is for learned keys');
    is(tail_of(), $tail, 'the journal does not grow');
    is(api($t, POST => 'zones/ids/remove',
           body => join "\n", map { "gone$_" } 1 .. ROOM / 2)->status, 200,
       'the other half is for removed ones');
    unlike($t->log_since($mark), qr/\[(?:error|crit|alert)\]/,
           'nothing alarming is logged');
};

subtest 'the keys of the image' => sub {
    is(scalar ask($t, 'ids', @image[0 .. 1999]), '1' x 2000,
       'they are present');
};

done_testing;
