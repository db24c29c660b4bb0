#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the bounds of bloom_audit's add=on: a backend that says 200 to
# everything does not saturate a zone.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant {
    CAPACITY => 1000,
    RATE => 0.01,
    BURST => 10,
};

my $t = BloomTest->new;

configure($t, [map { "zone=$_ capacity=" . CAPACITY . ' fpr=' . RATE }
                   qw(small slow other)],
          api => 1, workers => 2, server => <<'CONF');
        location /of/small {
            bloom_reject absent $arg_id zone=small;
            bloom_audit 100% add=on rate=1000000r/s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /of/slow {
            bloom_reject absent $arg_id zone=slow;
            bloom_audit 100% add=on rate=1r/m;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /of/other {
            bloom_reject absent $arg_id zone=other;
            bloom_audit 100% rate=1r/s add=on;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

$t->backend(8081, sub { return { body => 'there' } });
$t->run;

# Requests keys and returns the state's "audit" once all requests have ended.

sub audit {
    my ($zone, @keys) = @_;

    while (my @some = splice @keys, 0, 200) {
        $t->pipeline(map { "/of/$zone?id=$_" } @some);
    }

    my $audit;
    wait_until(sub {
        $audit = zone_state($t, $zone)->{audit};
        return $audit->{audited} == $audit->{confirmed}
                                    + $audit->{wrong_absent}
                                    + $audit->{unanswered};
    });

    return $audit;
}


subtest 'a zone adds up to its capacity' => sub {
    my $mark = $t->log_mark;
    my $audit = audit('small', map { $_ . 'abc' } 1 .. 5000);
    my $filter = zone_state($t, 'small')->{filter};

    cmp_ok($audit->{added}, '>=', CAPACITY,
           'a zone adds as many keys as its capacity');
    cmp_ok($audit->{added}, '<', 1.2 * CAPACITY,
           'a zone adds few keys past its capacity');
    is($audit->{added} + $audit->{not_added}, $audit->{wrong_absent},
       'each of the others is counted as not added');
    cmp_ok($filter->{estimated_fpr}, '<', 2 * RATE,
           'the false-positive rate stays near the promised one');
    like($t->log_since($mark),
         qr/wrong absent: .* it was not added, since the zone holds as many keys as its capacity; load an image that has the key and more capacity;/,
         'the error log says why a key was not added');
};


subtest 'a zone adds no faster than rate' => sub {
    my $mark = $t->log_mark;
    my $audit = audit('slow', 1 .. 200);

    cmp_ok($audit->{added}, '>=', BURST,
           'a burst of keys is added at once');

    # the test would have to take half an hour to fail

    cmp_ok($audit->{added}, '<=', BURST + 30,
           'after the burst, a key a minute is added');
    is($audit->{added} + $audit->{not_added}, $audit->{wrong_absent},
       'each of the others is counted as not added');
    like($t->log_since($mark),
         qr/wrong absent: .* it was not added, since "rate=" is used up; load an image that has all such keys;/,
         'the error log says why a key was not added');

    $t->reload;
    is(audit('slow', 1001 .. 1050)->{added} - $audit->{added} > 1, '',
       'a reload does not allow another burst');
};


subtest 'each zone has a rate of its own' => sub {
    cmp_ok(audit('other', 1 .. BURST)->{added}, '>=', BURST,
           'another zone adds a burst of its own');
};

done_testing;
