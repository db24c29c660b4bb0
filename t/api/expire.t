#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what operators see of a zone whose keys expire: the state, the times of a
# key, the metrics, the log, and what such a zone refuses.  The time is injected.

use strict;
use warnings;

use Time::Local qw(timegm);

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Process qw(wait_until);
use BloomTest::Prometheus;
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);

configure($t, [
    'zone=ids capacity=8k fpr=0.001 expire=8h',
    'zone=urls capacity=8k fpr=1e-6 expire=8h form=url',
    'zone=many capacity=4k fpr=0.01 expire=8h max_keys=8k',
    'zone=most capacity=4k fpr=0.01 expire=8h max_keys=16500',
    'zone=few capacity=1k fpr=0.01 expire=8h journal=off',
    'zone=brief capacity=1k fpr=1e-9 expire=10s',
    'zone=adapts capacity=1k fpr=1e-6 expire=8h journal=off',
    'zone=late capacity=8k fpr=0.001 expire=8h journal=off',
    'zone=plain capacity=1k fpr=0.001',
], api => 1, server => <<'CONF', http => <<'CONF');
    location /except {
        bloom_feedback 404 except=on after=1s;
        bloom_reject absent $arg_id zone=adapts;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location /audit {
        bloom_audit 100% add=on;
        bloom_reject absent $arg_id zone=adapts;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
CONF
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location / {
            if ($arg_id ~ ^row) { return 204; }
            return 404;
        }
    }
CONF
$t->run;


# Waits until the helper has looked after all zones: it synchronises the journal
# of the last one in the same turn.

sub helped {
    for (1 .. 2) {
        wait_until(sub {
            $t->request(POST => '/bloom/zones/plain/keys?durable=true',
                        body => "other\n")->status == 200
        }) or die 'the helper does nothing';
    }
}


# Lets time pass, in steps of a quarter of an hour, since a helper that sleeps
# over a jump prolongs lives.

sub passes {
    my ($seconds) = @_;

    while ($seconds > 0) {
        my $step = $seconds < HOUR / 4 ? $seconds : HOUR / 4;

        $clock->pass_all($step);
        $seconds -= $step;
        helped();
    }
}


# Returns the time that nginx has.

sub wall { return time + ($clock->{ahead} // 0) }


# Returns a time of the endpoint in seconds since 1970.

sub seconds {
    my ($text) = @_;

    my ($y, $m, $d, $h, $min, $s, $ms) =
        $text =~ /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z$/
        or die "no time: $text";

    return timegm($s, $min, $h, $d, $m - 1, $y) + $ms / 1000;
}


# Tests that a time is this many seconds from now.  The test takes a while.

sub is_from_now {
    my ($text, $seconds, $name) = @_;

    my $error = defined $text ? abs(seconds($text) - wall() - $seconds) : 1e9;

    cmp_ok($error, '<', 300, $name) or diag($text // 'no time');
}


# Estimates of some hundred keys have a standard error of 3 keys at most: the
# seed of a filter is random.

use constant ERROR => 25;

sub near {
    my ($got, $wanted, $error, $name) = @_;

    cmp_ok(abs($got - $wanted), '<=', $error, $name) or diag("got $got");
}


sub expires {
    my ($zone, $key) = @_;

    return api($t, GET => "zones/$zone/keys?key=$key")->json->{expires};
}


sub parts { return @{ zone_state($t, $_[0])->{filter}{parts} } }


subtest 'a zone whose keys do not expire' => sub {
    add($t, 'plain', ['a']);

    my $state = zone_state($t, 'plain');

    ok(exists $state->{expire}, 'its state says whether keys expire');
    is($state->{expire}, undef, 'they do not');
    ok(!exists $state->{filter}{parts}[0]{$_}, "its part has no $_")
        for qw(open opened_at closed_at expires_at);
    ok(!exists api($t, GET => 'zones/plain/keys?key=a')->json->{expires},
       'its keys have no times');
    ok(!exists samples($t)->{"$_\{zone=\"plain\"}"}, "it has no metric $_")
        for qw(expire_seconds live_slices ready_slices clock_behind_seconds);
};


subtest 'an empty ring' => sub {
    my $state = zone_state($t, 'ids');

    is_deeply($state->{expire}, {
        seconds => LIFE, slices => 8, slice_seconds => HOUR,
        slice_capacity => 1000, live => 1, ready => 16,
        clock_behind_seconds => 0,
    }, 'the state describes the ring');

    my $filter = $state->{filter};
    my $slice = $state->{image}{bits};

    is($filter->{max_items}, 8000, 'it has room for its capacity');
    is($filter->{promised_fpr}, 0.001, 'it promises its rate');
    is($filter->{estimated_items}, 0, 'it has no key');
    is($filter->{estimated_fpr}, 0, 'it has no false positive');
    is($filter->{layers}, 0, 'it has no layers');
    is($state->{memory}{filter_bytes}, 17 * $slice / 8,
       'its memory is that of all slices');
    is(scalar @{ $filter->{parts} }, 1, 'it has one live slice');

    my $part = $filter->{parts}[0];

    ok($part->{open}, 'which is open');
    is($part->{capacity}, 1000, 'and has its capacity');
    is($part->{bits}, $slice, 'and its bits');
    is($part->{$_}, undef, "it has no $_ yet")
        for qw(opened_at closed_at expires_at);

    is(zone_state($t, 'many')->{filter}{max_items}, 8000,
       'a zone with max_keys= has room for so many');
    is(zone_state($t, 'many')->{expire}{ready}, 8 + 1 + 16 - 1,
       'and slices for them');

    my $brief = zone_state($t, 'brief');

    is($brief->{expire}{slice_seconds}, 1.25, 'a slice may have part of a second');
    near($brief->{filter}{promised_fpr}, 17e-9, 1e-12,
         'a rate that slices cannot have is not promised');
    is($brief->{image}{fpr}, $brief->{filter}{promised_fpr},
       'nor is it that of the image');
};


subtest 'the slices and their keys' => sub {
    my $begun = wall();

    add($t, 'ids', [keys_of('a', 300)]);
    add($t, 'urls', ['http://evil.example/', 'http://other.example/dir/x',
                     'http://third.example/']);
    passes(HOUR + 600);

    my ($old, $open) = parts('ids');

    ok(!$old->{open}, 'a slice is closed when its time has passed');
    near($old->{estimated_items}, 300, ERROR, 'it has the keys that were added');
    near(seconds($old->{opened_at}), $begun, 60,
         'it was opened when its first key came');
    near(seconds($old->{closed_at}), $begun + HOUR + 300, 400,
         'it was closed an hour later');
    near(seconds($old->{expires_at}) - seconds($old->{closed_at}), LIFE, 0.002,
         'it expires a life after that');
    is($open->{opened_at}, undef, 'the next slice waits for its first key');

    add($t, 'ids', [keys_of('b', 500)]);
    add($t, 'urls', ['http://evil.example/dir/', 'http://other.example/',
                     'http://third.example/dir/x']);

    my $state = zone_state($t, 'ids');
    my $filter = $state->{filter};

    is($state->{expire}{live}, 2, 'two slices are live');
    is($state->{expire}{ready}, 15, 'the others are ready');
    ($old, $open) = @{ $filter->{parts} };
    is(scalar @{ $filter->{parts} }, 2, 'both are listed');
    ok($open->{open}, 'the open one is the last');
    near($open->{estimated_items}, 500, ERROR, 'it has the keys since then');
    is_from_now($open->{opened_at}, 0, 'it was opened now');
    is($open->{$_}, undef, "it has no $_ while it is open")
        for qw(closed_at expires_at);
    is($filter->{estimated_items},
       $old->{estimated_items} + $open->{estimated_items},
       'the filter has the keys of both');
    near($filter->{fill_ratio}, ($old->{fill_ratio} + $open->{fill_ratio}) / 2,
         1e-5, 'its fill is that of both');
    near($filter->{bits_set}, $open->{bits} * 2 * $filter->{fill_ratio}, 2,
         'and so are its bits');
    cmp_ok($filter->{estimated_fpr}, '>', 0, 'it has a rate');
    cmp_ok($filter->{estimated_fpr}, '<', 0.0002, 'which is below the promised');

    # keys

    my $a = expires('ids', 'a1');

    # two responses do not read the clocks in the same millisecond

    near(seconds($a->{from}), seconds($old->{expires_at}), 60,
         'a key of a closed slice expires with it');
    is($a->{until}, $a->{from}, 'and not later');

    my $b = expires('ids', 'b1');

    is_from_now($b->{from}, LIFE, 'a key of the open slice lives for a life');
    is_from_now($b->{until}, LIFE + HOUR, 'and a slice longer at most');
    is(expires('ids', 'c1'), undef, 'an absent key does not expire');

    add($t, 'ids', ['a1']);
    is_from_now(expires('ids', 'a1')->{from}, LIFE,
                'a key that is added again lives longer');

    my ($all) = grep { $_->{name} eq 'ids' }
                     @{ api($t, GET => 'keys?key=b1')->json->{zones} };
    is_from_now($all->{expires}{until}, LIFE + HOUR,
                'GET keys has the times, too');

    # the later of two additions is the first expression, or another one

    is_from_now(expires('urls', 'http://other.example/dir/x')->{from}, LIFE,
                'a URL whose host was added later lives as long as that');

    is_from_now(expires('urls', 'http://third.example/dir/x')->{from}, LIFE,
                'and so does one that was itself added later');

    my $url = 'http://evil.example/dir/x';

    is_from_now(expires('urls', $url)->{from}, LIFE,
                'a URL lives as long as the latest of its expressions');
    api($t, DELETE => 'zones/urls/keys?key=http://evil.example/dir/')->status
        == 200 or die 'not removed';
    is_from_now(expires('urls', $url)->{from}, LIFE - 600,
                'without that, as long as the earlier one');
    is(expires('urls', 'http://good.example/'), undef,
       'an absent URL does not expire');

    my ($removed) = @{ api($t, GET => 'zones/urls/removed')->json->{keys} };
    is_from_now($removed->{time}, 0, 'the removal has the time of now');
};


subtest 'the system has another time' => sub {
    my ($before) = parts('ids');

    $clock->ahead($clock->{ahead} + 7200);
    helped();

    my $state = zone_state($t, 'ids');
    my ($after) = @{ $state->{filter}{parts} };

    near($state->{expire}{clock_behind_seconds}, 7200, 60,
         'the state says by how much the clock is behind');
    near(samples($t)->{'clock_behind_seconds{zone="ids"}'}, 7200, 60,
         'and so do the metrics');
    near(seconds($after->{$_}) - seconds($before->{$_}), 7200, 60,
         "$_ is a time of the system") for qw(opened_at closed_at expires_at);
    is_from_now(expires('ids', 'b1')->{from}, LIFE,
                'the times of a key are those of the system');

    my ($removed) = @{ api($t, GET => 'zones/urls/removed')->json->{keys} };
    is_from_now($removed->{time}, 0, 'that of a removal is, too');
    is_from_now($state->{image}{created}, -HOUR - 600,
                'and that of the empty filter');

    $clock->ahead($clock->{ahead} - 10800);
    helped();
    is(zone_state($t, 'ids')->{expire}{clock_behind_seconds}, 0,
       'a clock that is ahead is not behind');
    is_from_now(expires('ids', 'b1')->{from}, LIFE,
                'its times are those of the system, too');
    $clock->ahead($clock->{ahead} + 3600);
};


subtest 'the bits of a key are those in the open slice' => sub {
    # the helper opens the next slice, and the worker has added nothing since

    add($t, 'ids', ['turned']);
    passes(HOUR + 600);

    my $turned = api($t, GET => 'zones/ids/keys?key=turned')->json;

    is($turned->{answer}, 'present', 'a key of the slice before is present');
    ok(scalar(grep { !$_ } @{ $turned->{set} }),
       'its bits are not set in the slice that is open now');

    add($t, 'ids', ['bits']);

    my $bits = api($t, GET => 'zones/ids/keys?key=bits')->json;

    is(scalar(grep { $_ } @{ $bits->{set} }), scalar @{ $bits->{bits} },
       'all bits of a key that was added are set');

    my $old = api($t, GET => 'zones/ids/keys?key=a2')->json;

    is($old->{answer}, 'present', 'an older key is present');
    ok(scalar(grep { !$_ } @{ $old->{set} }),
       'though its bits are not set there');
};


subtest 'what such a zone refuses' => sub {
    $t->build_image('other.bloom', ['x']);

    # "few" has no journal

    my $set = qr/set bloom_state_path, and remove "journal=off"$/;
    my %keep = (ids => qr/keep its state directory$/, few => $set);

    for my $zone ('ids', 'few') {
        is_error(api($t, GET => "zones/$zone/image"), 409,
                 qr/^zone "$zone": its keys expire, and an image does not say when; to keep the keys, $keep{$zone}/,
                 "GET image of zone $zone");
        is(api($t, HEAD => "zones/$zone/image")->status, 409,
           "HEAD image of zone $zone");
        is_error(upload_image($t, $zone, 'other'), 409,
                 qr/its keys expire, and those of an image do not; send the keys by POST keys/,
                 "PUT image of zone $zone");
        is_error(api($t, POST => "zones/$zone/reload"), 409,
                 qr/the zone has no file= to load again; to drop its keys, send "POST clear"$/,
                 "POST reload of zone $zone");
    }

    is_error(api($t, POST => 'zones/few/checkpoint'), 409,
             qr/^zone "few": the zone has no state directory: $set/,
             'POST checkpoint of zone few');
    is((lookup_keys($t, 'ids', 'a1'))[0], 'present',
       'a refused request changes nothing');
};


subtest 'metrics' => sub {
    my $s = samples($t);
    my $state = zone_state($t, 'ids');

    is($s->{'expire_seconds{zone="ids"}'}, '28800.000', 'how long a key lives');
    is($s->{'expire_seconds{zone="brief"}'}, '10.000', 'in another zone');
    is($s->{'live_slices{zone="ids"}'}, $state->{expire}{live}, 'live slices');
    is($s->{'ready_slices{zone="ids"}'}, $state->{expire}{ready},
       'ready slices');
    is($s->{'clock_behind_seconds{zone="ids"}'}, 0, 'the clock');
    is($s->{'max_items{zone="many"}'}, 8000, 'what the zone has room for');
    is($s->{'estimated_items{zone="ids"}'},
       $state->{filter}{estimated_items}, 'its keys');
    is($s->{'layers{zone="ids"}'}, 0, 'no layers');
    near($s->{'estimated_fpr{zone="ids"}'}, $state->{filter}{estimated_fpr},
         1e-9, 'its rate');

    my ($exit, $said) = promtool('check', 'metrics',
                                 { stdin => $t->get('/bloom/metrics')->body });
    is("$exit $said", '0 ', 'promtool accepts the metrics');
};


subtest 'GET rates fills one slice after the other' => sub {
    my $rates = api($t, GET => 'zones/ids/rates')->json->{rates};
    my ($at) = grep { $_->[0] == 8000 } @$rates;

    is($rates->[-1][0], 12000, 'the numbers go to 1.5 times the capacity');
    my $share = $at->[1] / (0.001 * 8 / 17);

    # small slices have room to spare, since they have whole lines

    ok($share > 0.6 && $share <= 1,
       'the rate at the capacity is that of as many full slices')
        or diag("it is $share of that");
    is(scalar(grep { $rates->[$_][1] < $rates->[$_ - 1][1] } 1 .. $#$rates), 0,
       'the rates never decrease');

    add($t, 'late', [keys_of('burst', 5500)]);
    $rates = api($t, GET => 'zones/late/rates')->json->{rates};

    my $filter = zone_state($t, 'late')->{filter};
    my ($now) = sort { abs($a->[0] - $filter->{estimated_items})
                       <=> abs($b->[0] - $filter->{estimated_items}) } @$rates;

    is(scalar @{ $filter->{parts} }, 6, 'keys that come at once fill slices');
    # slices are closed some keys late, which counts with a high power

    near($now->[1] / $filter->{estimated_fpr}, 1, 0.5,
         'their rate is on the curve');
    is(api($t, POST => 'zones/late/clear')->status, 200, 'the zone is cleared');
};


my $over = qr/"(?:many|most|few)" has about \d+ keys that have not expired/;

sub warned {
    my ($mark) = @_;

    return scalar(() = $t->log_since($mark) =~ /$over/g);
}

subtest 'a zone gets more keys than it is made for' => sub {
    my $mark = $t->log_mark;

    $t->expect_log($over);
    add($t, 'many', [keys_of('c', 10_000)]);

    my $line = $t->wait_for_log($over, $mark);

    like($line, qr/and was made for 8000: its false-positive rate is about [\d.]+ %, [\d.]+ times the 1 % that it was made for; raise its "max_keys" above \d+/,
         'the log says what to do');
    helped();
    is(warned($mark), 1, 'once');

    my $filter = zone_state($t, 'many')->{filter};

    cmp_ok($filter->{estimated_fpr}, '>', 1.5 * $filter->{promised_fpr},
           'the state has the rate');
    is(zone_state($t, 'many')->{expire}{live}, 17,
       'sixteen slices are full, and one is open');

    for my $zone ('most', 'few') {
        $mark = $t->log_mark;
        add($t, $zone, [keys_of('e', $zone eq 'few' ? 6000 : 24_000)]);
        my $empties = $zone eq 'few'
            ? qr/ \(without a journal, the zone starts empty then\)/ : '';
        like($t->wait_for_log($over, $mark),
             qr/raise its "capacity" above \d+$empties$/,
             $zone eq 'few'
             ? 'a zone without max_keys= needs a larger capacity'
             : 'so does one whose max_keys= is the greatest there is');
    }
};


subtest 'excepted keys' => sub {
    add($t, 'adapts', ['gone', 'row1']);

    # nginx remembers an addition for two turns, each of 16 minutes or a step more

    passes(2 * HOUR);

    ok(wait_until(sub { $t->get('/except?id=gone')->status == 404
                        && zone_state($t, 'adapts')->{removals}{excepted} }),
       'a key that the backend does not know is excepted');
    is((lookup_keys($t, 'adapts', 'gone'))[0], 'absent', 'and is absent then');
    is(expires('adapts', 'gone'), undef, 'so it has no times');

    $t->expect_log(qr/wrong absent: bloom zone "adapts" lacks key "row2"/);
    $t->get('/audit?id=row2');
    is((lookup_keys($t, 'adapts', 'row2'))[0], 'present',
       'a key that the audit finds missing is added');
    is_from_now(expires('adapts', 'row2')->{from}, LIFE,
                'it lives as long as any key that is added');

    passes(LIFE - 2 * HOUR);
    is(zone_state($t, 'adapts')->{removals}{excepted}, 1,
       'an excepted key is one as long as the key might live');
    passes(3 * HOUR);
    is(zone_state($t, 'adapts')->{removals}{excepted}, 0, 'and then no longer');
    is((lookup_keys($t, 'adapts', 'gone'))[0], 'absent',
       'since the key has expired');
};


subtest 'lives end' => sub {
    is((parts('ids'))[0]{open}, JSON::PP::true(),
       'slices are dropped when their keys have expired');
    is(zone_state($t, 'ids')->{expire}{ready}, 16, 'and are ready again');
    is(expires('ids', 'b1'), undef, 'their keys have no times');
    is(zone_state($t, 'many')->{filter}{estimated_items}, 0,
       'the over-full zone is empty');

    my $mark = $t->log_mark;

    add($t, 'many', [keys_of('c', 10_000)]);
    like($t->wait_for_log($over, $mark), qr/"many"/,
         'when it is over-full again, the log says so again');
};


subtest 'POST clear' => sub {
    add($t, 'ids', ['cleared']);

    my $response = api($t, POST => 'zones/ids/clear');

    is($response->status, 200, 'the zone is cleared') or diag($response);
    is($response->json->{zone}{expire}{live}, 1, 'one slice is live');
    is((lookup_keys($t, 'ids', 'cleared'))[0], 'absent', 'its keys are gone');
    add($t, 'ids', ['cleared']);
    is_from_now(expires('ids', 'cleared')->{from}, LIFE,
                'keys that are added now live for a life');
};


done_testing;
