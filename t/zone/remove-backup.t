#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone takes an image of its own back, and so does a fresh zone with the same
# configuration, however many keys were removed and however long these are.  The
# removed keys of an image take the room of removed keys, and the exceptions
# that its builder chose have room of their own.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(exceptions_in);
use BloomTest::Zones;

use constant {
    ROOM => 10_000,             # the default of removals=
    USUAL => 108,               # bytes of a key that there is room for
};

my $t = BloomTest->new;
my @ids = keys_of('id', 1000);

# The smallest size of a zone with these parameters, as nginx -t says it

sub smallest {
    my ($parameters) = @_;

    configure($t, ["zone=small:64k $parameters"]);

    my ($exit, $out) = $t->test_config;

    return $out =~ /write "zone=small(:\d+k)"/ ? $1 : die "nginx -t: $out";
}

# Zones, the sizes of their removed keys, and their parameters.  With 158 bytes
# the memory for removed keys is full before their number is.  The builder of
# built.bloom chose exceptions.  Each zone has a fresh one with the same
# configuration.

my %zones = (
    file     => [60, 'file=file.bloom'],
    short    => [7, 'file=short.bloom'],
    full     => [158, 'file=full.bloom'],
    built    => [60, 'file=built.bloom'],
    capacity => [60, 'capacity=1k fpr=1e-6'],
    longest  => [158, 'capacity=1k fpr=1e-6'],
    sized    => [60, 'capacity=1k fpr=1e-6', smallest('capacity=1k fpr=1e-6')],
    growing  => [60, 'capacity=1k fpr=1e-6 max_keys=8k'],
    few      => [60, 'capacity=1k fpr=1e-6 removals=20'],
);
my @names = sort keys %zones;

sub zone {
    my ($name, $like) = @_;
    my ($parameters, $size) = @{ $zones{$like} }[1, 2];

    return "zone=$name" . ($size // '') . " $parameters";
}

$t->build_image("$_.bloom", \@ids, '-p', '1e-6') for qw(file short full);
$t->build_image('built.bloom', \@ids, '-p', '0.1', '--except',
                $t->write_file('good.txt', join '', map { "good$_\n" }
                                                        1 .. 3000));

configure($t, ['zone=roomy:8m capacity=1k fpr=1e-6 removals=20',
               'zone=wide capacity=1k fpr=1e-6 removals=20k',
           'zone=empty capacity=1k fpr=1e-6',
               map { (zone($_, $_), zone("fresh_$_", $_)) } @names], api => 1);
$t->run;

sub key_of {
    my ($number, $size) = @_;

    return substr "$number-" . 'k' x $size, 0, $size;
}

sub removals { return zone_state($t, $_[0])->{removals} }

sub put {
    my ($zone, $image) = @_;

    return api($t, PUT => "zones/$zone/image", body => $image);
}

sub remove {
    my ($zone, @keys) = @_;

    return api($t, POST => "zones/$zone/remove", body => join "\n", @keys);
}

# How many keys were removed from each zone.

my %removed;

# Tests that a zone has the removed keys of another one.

sub remembers {
    my ($zone, $like, $when, $started) = @_;
    my ($size, $n) = ($zones{$like}[0], $removed{$like});

    is(removals($zone)->{count}, $n, "zone $zone has $n removed keys $when");
    is(ask_until_known($t, $zone, 'id1', key_of(1, $size), key_of($n, $size)),
       '100', "the removed keys of $zone are absent $when");
}

# Tests that a zone has them, and no room.

sub is_full {
    my ($zone, $like, $when) = @_;

    remembers($zone, $like, $when);
    is(remove($zone, key_of(0, $zones{$like}[0]))->status, 507,
       "zone $zone has no room for another one $when");
}

for my $zone (@names) {
    subtest "an image of zone $zone" => sub {
        my $size = $zones{$zone}[0];

        add($t, $zone, [@ids]) if $zones{$zone}[1] =~ /capacity/;

        is(remove($zone, map { key_of($_, $size) } 1 .. ROOM + 1)->status, 507,
           'keys are removed until there is no room');
        $removed{$zone} = removals($zone)->{count};
        cmp_ok($removed{$zone}, '>=', 0.99 * removals($zone)->{limit},
               'nearly as many keys are removed as removals= says');

        my $image = api($t, GET => "zones/$zone/image")->body;

        for my $to ($zone, $zone, "fresh_$zone") {
            my $response = put($to, $image);

            is($response->status, 200, "zone $to takes it")
                or diag($response->body);
            is_full($to, $zone, 'then');
        }

        my $again = api($t, GET => "zones/fresh_$zone/image")->body;

        is(put($zone, $again)->status, 200,
           'an image of the fresh zone is taken, too');
        is_deeply([sort map { "$_->[0] $_->[2]" } exceptions_in($again)],
                  [sort map { "$_->[0] $_->[2]" } exceptions_in($image)],
                  'the fresh zone has the same exceptions');
    };
}

my $many = api($t, GET => 'zones/capacity/image')->body;

subtest 'an image is put in place of file=' => sub {
    my $image = api($t, GET => 'zones/file/image')->body;

    replace_file($t, 'file.bloom', $image);
    is(api($t, POST => 'zones/file/reload')->status, 200,
       'the image is loaded by POST reload');
    is_full('file', 'file', 'then');
};

# A start gives the zone memory for what the journal has removed, so that longer
# keys leave room again, up to their number.

subtest 'a start loads these images' => sub {
    $t->kill_all;
    $t->run;

    for my $like (@names) {
        for my $zone ($like, "fresh_$like") {
            $removed{$like} == removals($zone)->{limit}
                ? is_full($zone, $like, 'after a start')
                : remembers($zone, $like, 'after a start');
        }
    }
};

subtest 'an image has more removed keys than a zone takes' => sub {
    is_error(put('few', $many), 413, qr/room for images of up to/,
             'a zone without room refuses it');
    is(put('roomy', $many)->status, 200, 'a zone with room takes it');
    is_deeply([@{ removals('roomy') }{qw(limit count)}], [ROOM, ROOM],
              'the state says that there is no room for more than it has');
    is(remove('roomy', 'another')->status, 507, 'no other key is removed');
    is(ask_until_known($t, 'roomy', 'id1', key_of(ROOM, 60)), '10',
       'the removed keys are absent');
};

subtest 'the removed keys of an image are too long for a zone' => sub {
    is(remove('wide', map { key_of($_, 200) } 1 .. ROOM)->status, 200,
       'a zone with more room takes them');

    my $image = api($t, GET => 'zones/wide/image')->body;

    is_error(put('empty', $image), 507,
             qr/no room for the 10000 removed keys.*raise "removals"/,
             'the other zone refuses the image, and says what to do');
    is(removals('empty')->{count}, 0, 'and stays as it was');
};

done_testing;
