#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A client repeats one false positive, which reaches the backend once.  Then a
# flood of false positives: many clients, each with false positives of its own,
# which the zone excepts up to its share and its rate.  Nothing is written to the
# journal, and each request is answered as without except=on.  While another
# process holds the lock of the exceptions, a worker excepts no key and answers.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Feedback;
use BloomTest::Process qw(spawn alive resume_process wait_until now);
use BloomTest::Zones;

# FEEDBACK_FLOOD=1 repeats one false positive 10,000 times, lets a hundred clients
# have a thousand each, and prints figures.

use constant {
    ROOM => $ENV{FEEDBACK_FLOOD} ? 10_000 : 400,
    RATE => 20,
    BURST => 20,
};

my ($repeats, $clients, $each) = $ENV{FEEDBACK_FLOOD} ? (10_000, 100, 1000)
                                                  : (500, 10, 200);

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
my $dir = $t->testdir;

$t->build_image('ids.bloom', [keys_of('id', 20_000)], '-p',
                $ENV{FEEDBACK_FLOOD} ? '5e-2' : '1e-2', '--seed', 1);

sub conf {
    my ($rate) = @_;

    configure($t, ['zone=ids file=ids.bloom removals=' . ROOM],
              api => 1, workers => 2, server => <<"CONF", http => <<'HTTP');
        keepalive_requests 100000;
        location /of/ids {
            bloom_reject absent \$arg_id zone=ids;
            bloom_feedback 404 except=on rate=$rate after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        add_header X-Backend 1 always;
        return 404 "no such row";
    }
HTTP
}

# The seed is known to attackers, so they find false positives offline.  The
# last three are not those of the clients.

my @false = false_positives($t, 'ids', $clients * $each + 3);

sub figures { diag(@_) if $ENV{FEEDBACK_FLOOD} }

# Lets the clients ask at the same time.  Returns the statuses that they got and
# how often, how long it took, and how many requests the backend got.

sub flood {
    my ($what) = @_;

    my $begun = now();
    my @pids = map {
        my $client = $_;

        spawn(sub {
            my @keys = @false[map { $client + $clients * $_ } 0 .. $each - 1];
            my %got = (reached => 0);

            while (my @some = splice @keys, 0, 100) {
                for ($t->pipeline(map { "/of/ids?id=$_" } @some)) {
                    $got{$_->status}++;
                    $got{reached}++ if $_->header('X-Backend');
                }
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
        $got{$1} += $2 while $text =~ /^(\w+) (\d+)$/mg;
    }

    my $seconds = now() - $begun;
    my $reached = delete $got{reached};

    figures(sprintf '%s: %d clients with %d false positives each: %d of %d'
            . ' requests reached the backend, %d keys are excepted, %.1f s',
            $what, $clients, $each, $reached, $clients * $each,
            excepted($t, 'ids'), $seconds);

    return (join(' ', map { "$_: $got{$_}" } sort keys %got), $seconds,
            $reached);
}

# Returns where the journal ends.

sub tail_of { return control("$dir/state/ids/control")->{end} }

my @image = keys_of('id', 20_000);
my $all = $clients * $each;

subtest 'one false positive' => sub {
    conf(RATE . 'r/s');
    $t->run;
    await_feedback($t, 'ids', '/of/ids?id=', $false[-1]);

    # the first response is there before the next requests

    my $path = "/of/ids?id=$false[-3]";
    my $reached = grep { $_->header('X-Backend') } $t->get($path),
                       map { $t->pipeline(($path) x 100) } 1 .. $repeats / 100;

    is($reached, 1, 'the backend gets one of all requests for it');
    figures("one false positive, @{[ $repeats + 1 ]} requests: $reached reached"
            . ' the backend');
};

subtest 'the rate' => sub {
    my $tail = tail_of();
    my ($got, $seconds, $reached) = flood('the rate');
    my $excepted = excepted($t, 'ids');

    is($got, "404: $all", 'each request is answered by the backend or rejected');
    is($reached, $all, 'each reaches the backend once');
    cmp_ok($excepted, '<=', 2 + BURST + RATE * ($seconds + 1),
           'no more keys are excepted than the rate allows');
    cmp_ok($excepted, '>=', 10, 'some are excepted');
    is(tail_of(), $tail, 'the journal does not grow');
};

subtest 'the share' => sub {
    conf('1000000r/s');
    $t->reload;
    is(api($t, POST => 'zones/ids/clear?only=excepted')->status, 200,
       'the zone forgets what it has excepted');
    await_feedback($t, 'ids', '/of/ids?id=', $false[-2]);

    my $tail = tail_of();
    my $mark = $t->log_mark;
    my ($got, undef, $reached) = flood('the share');

    is($got, "404: $all", 'each request is answered by the backend or rejected');
    is($reached, $all, 'each reaches the backend once');
    is(excepted($t, 'ids'), ROOM / 2, 'half of the room is for excepted keys');
    (undef, undef, $reached) = flood('the share again');
    is($reached, $all - (ROOM / 2 - 1),
       'what is excepted does not reach the backend again');
    is(tail_of(), $tail, 'the journal does not grow');
    is(api($t, POST => 'zones/ids/remove',
           body => join "\n", map { "gone$_" } 1 .. ROOM / 2)->status, 200,
       'the other half is for removed ones');
    unlike($t->log_since($mark), qr/\[(?:error|crit|alert)\]/,
           'nothing alarming is logged');
};

# A worker stops while it removes a key, and the other one answers.

subtest 'another process holds the lock' => sub {
    $faults->needed;

    is(api($t, POST => "zones/ids/clear?only=$_")->status, 200,
       "the zone forgets $_ keys") for qw(excepted removed);
    await_feedback($t, 'ids', '/of/ids?id=', $false[-2]);

    my $stop = $faults->stop_at('put');
    my $remove = $t->send_request(POST => '/bloom/zones/ids/remove',
                                  body => 'gone1');
    my $holder = $faults->stopped($stop);
    my $before = zone_state($t, 'ids')->{feedback};
    my @got = map { $t->pipeline(map { "/of/ids?id=$_" } @$_) }
              map { [@false[100 * $_ .. 100 * $_ + 99]] } 0, 1;
    my $after = zone_state($t, 'ids')->{feedback};

    is(scalar(grep { $_->header('X-Backend') } @got), 200,
       'each request is answered by the backend, while the lock is held');
    is($after->{not_excepted_doubt} - $before->{not_excepted_doubt}, 200,
       'no key is excepted, and each is counted');
    is($after->{excepted}, $before->{excepted}, 'none counts as excepted');

    resume_process($holder);
    is($remove->response('POST')->status, 200, 'the key is removed');
    $t->pipeline(map { "/of/ids?id=$_" } @false[0 .. 99]);
    is(zone_state($t, 'ids')->{feedback}{excepted} - $after->{excepted}, 100,
       'keys are excepted once the lock is free');
};

subtest 'the keys of the image' => sub {
    is(scalar ask($t, 'ids', @image[0 .. 1999]), '1' x 2000,
       'they are present');
};

done_testing;
