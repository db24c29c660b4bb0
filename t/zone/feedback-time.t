#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# How long an added key is remembered, so that it is not excepted, and how late a
# response of the backend may be.  The clock jumps.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Faults;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

# NGX_BLOOM_RECENT_MS and NGX_BLOOM_ADAPT_LATE, in seconds

use constant { REMEMBERED => 16 * 60, LATE => 5 * 60 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $faults = BloomTest::Faults->new($t);

$t->build_image('ids.bloom', [keys_of('id', 1000)], '-p', '1e-2', '--seed', 1);

my @false = false_positives($t, 'ids', 20);

configure($t, ['zone=ids file=ids.bloom'], api => 1, server => <<'CONF');
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_read_timeout 1h;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

feedback_backend($t, 8081);
$t->run;
await_feedback($t, 'ids', '/of/ids?id=', shift @false);

sub known { return scalar ask($t, 'ids', @_) }

# Waits until the helper has looked after the zone: it waits for the disk, then
# for the next time, and then for that after it.

sub helped {
    for (1 .. 3) {
        wait_until(sub {
            $t->request(POST => '/bloom/zones/ids/keys?durable=true',
                        body => "other\n")->status == 200
        }) or die 'the helper does nothing';
    }
}

sub asked {
    my ($key) = @_;

    $t->get("/of/ids?id=$key");

    return known($key);
}

subtest 'an added key is remembered for 16 minutes' => sub {
    my ($key) = shift @false;

    add($t, 'ids', [$key]);

    for my $n (1 .. 2) {
        $clock->pass(REMEMBERED / 2 - 5);
        helped();
        is(asked($key), '1', "it is not excepted $n times 8 minutes later");
    }

    ok(wait_until(sub {
        $clock->pass(REMEMBERED / 2 - 5);
        helped();
        return asked($key) eq '0';
    }), 'it is forgotten at last');
};

subtest 'the helper stops while it forgets' => sub {
    $faults->needed;

    my ($key) = shift @false;

    my $stop = $faults->stop_at('turn');
    $clock->pass(REMEMBERED + 5);
    my $helper = $faults->stopped($stop);

    $clock->pass(REMEMBERED + 5);
    add($t, 'ids', [$key]);
    resume_process($helper);
    helped();
    is(asked($key), '1', 'a key that is added meanwhile is remembered');
};

subtest 'a response is late' => sub {
    my ($soon, $late) = splice @false, 0, 2;

    my $connection = answers_late($t, "/of/ids?id=$soon", 'soon');
    $clock->pass(LATE - 60);
    let_answer($t, $connection, 'soon');
    is(known($soon), '0', 'a key is excepted when it is not too late');

    $connection = answers_late($t, "/of/ids?id=$late", 'late');
    $clock->pass(LATE);
    let_answer($t, $connection, 'late');
    is(known($late), '1', 'a key is not excepted from a response that is');
};

done_testing;
