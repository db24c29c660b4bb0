#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A load of an image has room for the keys that the journal has removed in the
# end, even if there were more of them at times.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant ROOM => 100;

my $t = BloomTest->new;
my $now = time;
my @ids = keys_of('id', 10);

$t->build_image('old.bloom', \@ids, '-p', '1e-9', '-n', '1k',
                '--as-of', $now - 7200);
configure($t, ['zone=ids file=old.bloom removals=' . ROOM], api => 1);
$t->run;

sub change {
    my ($what, @keys) = @_;
    my $response = api($t, POST => "zones/ids/$what", body => join "\n", @keys);
    $response->status == 200 or die "$what: $response";
}

sub load {
    my ($image) = @_;
    return api($t, PUT => 'zones/ids/image', body => $t->read_file($image));
}

sub removed { zone_state($t, 'ids')->{removals}{count} }

my @gone = map { "gone$_" } 1 .. 80;
my @back = map { "back$_" } 1 .. 80;

# all of these removals are older than the new image, which has none of the keys

change('remove', @gone);
is(removed(), 80, 'keys are removed');

$t->build_image('new.bloom', \@ids, '-p', '1e-9', '-n', '1k', '--as-of',
                time + 2);
is(load('new.bloom')->status, 200, 'a new image is loaded');
is(removed(), 0, 'it covers the removals');

select undef, undef, undef, 2.1;
change('remove', @back);
change('keys', @back[1 .. 79]);
is(removed(), 1, 'keys are removed and added again');

# for the old image, 160 keys were removed at a time, and 81 in the end

is(load('old.bloom')->status, 200,
   'the old image is loaded again, and there is room');
is(removed(), 81, 'the keys are removed that were in the end');
is(ask_until_known($t, 'ids', @gone[0, 79], @back[0, 1, 79], 'id1'), '000111',
   'each answers by the last change');

change('remove', @back[1 .. 19]);
is(removed(), ROOM, 'there is room for further ones');
is(api($t, POST => 'zones/ids/remove', body => $back[20])->status, 507,
   'and no more than there was');

is(load('old.bloom')->status, 200, 'a full zone can be loaded');
is(ask_until_known($t, 'ids', @gone[0, 79], @back[0, 19, 20], 'id1'), '000011',
   'and its keys stay as they were');

# 100 keys since the new image, and 80 before

is(load('new.bloom')->status, 200, 'the new image is loaded again');
change('remove', map { "more$_" } 1 .. ROOM - removed());

my $response = load('old.bloom');
is($response->status, 507, 'an image that lacks too many removals is refused');
is($response->json->{error}{code}, 'no_room', 'for want of room');
is(removed(), ROOM, 'and the zone keeps its removed keys');


# An image that is newer than removals is the truth about their keys.

change('clear?only=removed');
change('remove', @ids[0 .. 2], 'other');
$t->build_image('newer.bloom', [@ids, 'other2'], '-p', '1e-9', '-n', '1k',
                '--as-of', time + 2);
select undef, undef, undef, 2.1;

my $mark = $t->log_mark;
is(load('newer.bloom')->status, 200, 'an image is loaded that has removed keys');
is(ask_until_known($t, 'ids', @ids[0 .. 2], 'other'), '1110',
   'they are present again');
like($t->wait_for_log(qr/present again/, $mark),
     qr/\[warn\].*zone "ids": 3 removed keys are present again, because the image is newer than the removals; if this is wrong, take the keys out of the list/,
     'the log says how many, and what to do');

change('remove', $ids[0]);
$mark = $t->log_mark;
is(load('newer.bloom')->status, 200, 'it is loaded again');
change('clear?only=removed');
unlike($t->log_since($mark), qr/present again/,
       'no key comes back with an image that is older than its removal');


# A zone has room for what its journal has removed, whatever removals= says.  The
# memory for 5 removed keys and for 3 has the same number of pages.

sub few {
    my ($removals) = @_;

    configure($t, ["zone=few capacity=1k fpr=1e-9 removals=$removals"],
              api => 1);
}

sub limit { zone_state($t, 'few')->{removals}{limit} }

few(5);
$t->reload;
is(api($t, POST => 'zones/few/remove', body => join "\n", keys_of('x', 4))
       ->status, 200, 'a zone with room for 5 removed keys has 4');

for my $removals (3, 4) {
    few($removals);
    $t->reload;
    ok(wait_until(sub { limit() == 4 }),
       "a reload with removals=$removals has room for 4: as many as there are");
    is(zone_state($t, 'few')->{removals}{count}, 4,
       'and the zone keeps its removed keys');
    is_error(api($t, POST => 'zones/few/remove', body => 'x5'), 507,
             qr/no room for more removed keys/, 'but takes no other one');
}

$t->kill_all;
few(3);
$t->run;
is(limit() . ask_until_known($t, 'few', 'x4'), '40',
   'a start has room for 4, too');

few(6);
$t->reload;
ok(wait_until(sub { limit() == 6 }), 'a reload makes room for 6');
is(api($t, POST => 'zones/few/remove', body => "x5\nx6")->status, 200,
   'and they fit');


# New memory is filled from the journal, which has more removals than there may be
# removed keys: they were added again.

subtest 'removals go on while another instance is loaded' => sub {
    my $conf = sub {
        configure($t, ["zone=busy:$_[0] capacity=400k fpr=1e-3 removals=5k"],
                  api => 1);
    };

    $conf->('8m');
    $t->reload;
    add($t, 'busy', [map { "many$_" } 50_000 * $_ .. 50_000 * $_ + 49_999])
        for 0 .. 7;

    my $changes = sub {
        my $keys = join "\n", keys_of('few', $_[0]);

        return join ' ', map { api($t, POST => "zones/busy/$_", body => $keys)
                                   ->status }
                             'remove', 'keys';
    };

    $changes->(1000) for 1 .. 6;
    $conf->('16m');

    my %seen;
    my $mark = $t->log_mark;

    kill HUP => $t->master;

    $seen{$changes->(2)}++ until $t->log_since($mark) =~ /"busy" starts with/;
    is(join(', ', sort keys %seen), '200 200', 'each change succeeds');
    note("$seen{'200 200'} pairs of changes");
};


# The helper looks for such instances every ten seconds.

subtest 'an instance that has ended takes no room' => sub {
    my @keys = keys_of('few', 4000);

    $t->upgrade;

    for my $round (1 .. 2) {
        is(api($t, POST => 'zones/busy/remove', body => join "\n", @keys)
               ->status, 200, "keys are removed, round $round");
        add($t, 'busy', \@keys);
    }
};


# Keys that another instance removes get the room of those that this one has
# excepted.  The new instance is at port 8090.

sub two {
    my ($port) = @_;

    configure($t, ['zone=two file=two.bloom removals=20'], api => 1,
              server => <<'CONF');
        location /of/two {
            bloom_reject absent $arg_id zone=two;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

    my $conf = $t->read_file('nginx.conf');
    my ($from, $to) = map { 'listen 127.0.0.1:' . $t->port($_) } 8080, $port;
    $t->write_file('nginx.conf', $conf =~ s/\Q$from\E/$to/r);
}

subtest 'another instance removes keys where some are excepted' => sub {
    my @many = keys_of('id', 1000);
    my @gone = @many[1 .. 19];

    $t->stop;
    feedback_backend($t, 8081);
    $t->build_image('two.bloom', \@many, '-p', '1e-2');
    my @false = false_positives($t, 'two', 40);
    two(8080);
    $t->run;
    await_feedback($t, 'two', '/of/two?id=', $false[0]);
    $t->pipeline(map { "/of/two?id=$_" } @false);
    is(excepted($t, 'two'), 10, 'half of the room is for excepted keys');

    two(8090);
    $t->upgrade_begin;
    my $mark = $t->log_mark;

    is($t->request(POST => '/bloom/zones/two/remove', port => 8090,
                   body => join "\n", @gone)->status, 200,
       'the new instance removes keys');
    ok(wait_until(sub { ask($t, 'two', @gone) eq '0' x @gone }),
       'the keys are absent in the old instance, too');
    unlike($t->log_since($mark), qr/\[alert\]/, 'the log reports no alert');
    $t->upgrade_back;
};

done_testing;
