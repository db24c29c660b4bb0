#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` carries every entry of a real Redis stream to a real nginx,
# whatever it has: keys that can never be applied are left out and named, keys may
# have any bytes, and an entry may have any number of keys.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(follow log_of redis redis_server redis_stop
                         stop_follow wait_for_event);
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $redis = redis_server($t, 6379);
my @zones = qw(both one urls);
my $long = 'x' x 65535;
my ($follower, $other);

configure($t, ['zone=few capacity=10k fpr=1e-9 removals=2;'
               . ' bloom_source zone=few name=ids max_lag=off',
               map { "zone=$_ capacity=1m fpr=1e-9 removals=50k"
                     . ($_ eq 'urls' ? ' form=url' : '')
                     . "; bloom_source zone=$_ name=ids max_lag=off" }
               qw(both one urls)],
          api => 1, workers => 2);
$t->run;

# Adds an entry, which may be too large for the arguments of a command.  Returns
# its ID.

sub entry {
    my @command = ('XADD', 's', '*', @_);

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                       PeerPort => $redis->{port})
        or die "redis: $!";
    print $socket '*' . @command . "\r\n"
                  . join '', map { '$' . length($_) . "\r\n$_\r\n" } @command;
    $socket->flush;
    readline $socket;
    my $id = readline $socket // die 'redis: no answer';

    return $id =~ s/-0\r\n$|\r\n$//r;
}

sub adds { return map { ('add', $_) } @_ }
sub numbered { my ($name, $n) = @_; return map { "$name-$_" } 1 .. $n }

sub start_follow {
    return follow($t, '--from', 'beginning',
                  (map { ('--zone', 'http://127.0.0.1:' . $t->port(8080)
                                    . "/bloom/zones/$_") } @_),
                  $redis->{url});
}

# Waits until zones are current at a position.

sub arrives {
    my ($position, $name, @zones) = @_;

    for my $zone (@zones) {
        ok(settled($t, $zone, sub {
            return $_[0]{source}{position} eq $position
                   && $_[0]{source}{state} eq 'current';
        }), "$name: zone $zone is current") or diag explain [zone_state($t, $zone)->{source},
                         map { $_->{message} } log_of($follower)];
    }
}

# Returns how many of the keys a zone has.

sub present {
    my ($zone, @keys) = @_;

    return api($t, POST => "zones/$zone/test?decode=uri",
               body => join "\n",
                       map { s/([^\w])/sprintf '%%%02x', ord $1/ger } @keys)
           ->json->{present};
}

sub digest { return zone_state($t, $_[0])->{source}{digest} }

# Waits until the log says that a zone has left out the key of an entry.

sub is_named {
    my ($zone, $count, $number, $id, $reason) = @_;

    my $message = "change $number of the entry $id, and $reason; correct";

    ok(wait_until(sub {
        grep { $_->{event} eq 'invalid_keys' && $_->{zone} =~ m{/$zone$}
               && $_->{message} =~ /^left out \Q$count\E: .*\Q$message\E/ }
             log_of($follower)
    }), "the log names the key: $reason, entry $id, zone $zone")
        or diag explain [map { $_->{message} } log_of($follower)];
}

$follower = start_follow(@zones);
$other = start_follow('both');

subtest 'keys that can never be applied are left out' => sub {
    entry(adds('before'));
    my $empty = entry('add', 'http://a.example/', 'other', 'field', 'add', '',
                      'remove', '');
    arrives(entry(adds('between')), 'an empty key', @zones);
    is_named('one', '2 invalid keys', 2, $empty, 'is empty');
    is(present($_, 'before', 'http://a.example/', 'between'), 3,
       "the entries before and after it, and its other keys, are applied: $_")
        for @zones;

    my $over = entry(adds($long, "${long}y", 'beside'));
    arrives(entry(adds('then')), 'a key over the limit', @zones);
    is_named('one', '1 invalid key', 2, $over, 'is longer than 65535 bytes');
    is(present($_, $long, 'beside', 'then'), 3, "a key at the limit: $_")
        for qw(both one);

    my $huge = entry(adds('left', 'z' x 3_000_000, 'right'));
    arrives(entry(adds('next')), 'a key of three million bytes', @zones);
    is_named('one', '1 invalid key', 2, $huge, 'is longer than 65535 bytes');
    is(present($_, 'left', 'right', 'next'), 3, "the keys beside it: $_")
        for @zones;

    my $form = entry(adds('http://b.example/', 'javascript:alert(1)'));
    arrives(entry(adds('last')), 'a key that is invalid in the form', @zones);
    is_named('urls', '1 invalid key', 2, $form, 'has no host');
    is(present('urls', 'http://b.example/', 'last'), 2, 'the others are added');
    is(present('one', 'javascript:alert(1)'), 1, 'and where it is valid, it, too');

    is(zone_state($t, 'one')->{counters}{invalid}, 4, 'nginx counts them');
    is(scalar(grep { $_->{event} eq 'invalid_keys'
                     && $_->{message} =~ /entry \Q$empty\E/
                     && ($_->{zone} // q()) =~ m{/one$} } log_of($follower)), 1,
       'a zone\'s log names an entry once');
};

subtest 'keys may have any bytes, and entries no keys' => sub {
    my @odd = ("\n", "\r", "a\nb", "\xff\n\xfe\r", "c\r", '%', '%41', '+', '-+',
               "\x00", " \t", "\xef\xbb\xbf", map { chr } 1 .. 9);

    entry('other', 'field');
    entry(adds(@odd), 'remove', "gone\n\xff");
    arrives(entry('remove', 'last'), 'odd keys', @zones);
    is(present($_, @odd), @odd, "all are present: $_") for qw(both one);
    is(present($_, 'last', "gone\n\xff"), 0, "removed keys are not: $_")
        for qw(both one);
};

subtest 'an entry may have any number of keys' => sub {
    for my $n (20_000, 200_000) {
        my @keys = numbered("n$n", $n);

        entry(adds("before-$n"));
        arrives(entry((map { ('add', $_, 'remove', "$_-gone") } @keys[0 .. 9999]),
                      adds(@keys[10_000 .. $n - 1]),
                      'remove', $keys[0], 'remove', $keys[1], 'add', $keys[0]),
                "$n keys", @zones);
        arrives(entry(adds("after-$n")), "the entry after $n keys", @zones);
        is(present($_, @keys, "before-$n", "after-$n"), $n + 1,
           "all of them are present but one that was removed: $_") for @zones;
        is(present($_, $keys[0], $keys[1]), 1, "the last change counts: $_")
            for @zones;
    }

    is(digest('both'), digest('one'),
       'two followers at once bring the same changes as one, in order');
};

# An entry of which only the beginning arrived, because the follower died, or
# because nginx died, too

stop_follow($_) for $follower, $other;

sub begin_entry {
    my ($zone, $id, $n, @keys) = @_;

    my $position = zone_state($t, $zone)->{source}{position};
    my $r = api($t, POST => "zones/$zone/changes?source=ids&after=$position"
                            . "&position=$id&more=true",
                body => join '', map { "+$_\n" } @keys[0 .. $n - 1]);

    is($r->json->{offset}, $n, "$n changes of the entry have come: zone $zone");
}

subtest 'another follower completes an entry' => sub {
    my @keys = numbered('half', 30_000);
    my $id = entry(adds(@keys), 'remove', $keys[-1]);

    begin_entry('both', $id, 9000, @keys);
    begin_entry('one', $id, 10, @keys);
    $follower = start_follow(@zones);
    arrives($id, 'half an entry', @zones);
    is(present($_, @keys), 29_999, "it has all keys: $_") for @zones;
    is(digest($_), digest('urls'), "and the same digest: $_") for qw(both one);
    stop_follow($follower);
};

subtest 'nginx dies in the middle of an entry' => sub {
    my @keys = numbered('kill', 30_000);
    my $id = entry(adds(@keys), 'remove', $keys[-1]);

    begin_entry($_, $id, 9000, @keys) for qw(both one);
    $t->kill_all;
    $t->run;
    is(present('both', @keys[0 .. 8999]), 9000, 'the part is kept');
    $follower = start_follow(@zones);
    $other = start_follow('both');
    arrives(entry(adds('after-kill')), 'an entry after kill -9', @zones);
    is(present($_, @keys, 'after-kill'), 30_000, "it has all keys: $_") for @zones;
    is(digest($_), digest('urls'), "and the same digest: $_") for qw(both one);
    stop_follow($_) for $follower, $other;

    $t->kill_all;
    $t->run;
    is(present($_, @keys, 'after-kill'), 30_000, "after another kill -9: $_")
        for @zones;
};

subtest 'an entry that has no room is named, and those before it are applied' => sub {
    redis($redis, 'DEL', 's');

    entry(adds(map { "few-$_" } 1 .. 9));
    my @ids = map { entry('remove', "few-$_", 'add', "beside-$_") } 1 .. 4;

    $follower = start_follow('few');
    ok(wait_for_event($follower, 'no_room',
                      qr/^the entry \Q$ids[2]\E of the stream: the zone has no room/),
       'the first entry without room is named')
        or diag explain [map { $_->{message} } log_of($follower)];
    is(zone_state($t, 'few')->{source}{position}, $ids[1],
       'the entries before it are applied');
    is(scalar ask($t, 'few', map { ("few-$_", "beside-$_") } 1 .. 4), '01011010',
       'and nothing of it');
    stop_follow($follower);
};

redis_stop($redis);

done_testing;
