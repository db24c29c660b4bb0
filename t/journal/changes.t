#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests a zone with bloom_source against an exact ledger: changes come in random
# batches, some of them twice, and in parts from two followers at once, while
# nginx is reloaded, killed, upgraded, loads images at earlier and later
# positions, and is cleared.  After each event the zone has exactly the keys that
# the ledger has at the zone's position, and goes on from there.  CHANGES_SEED
# repeats a run.

use strict;
use warnings;

use List::Util qw(max);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Source;
use BloomTest::Zones;

use constant { KEYS => 300, EVENTS => 60 };

my $seed = $ENV{CHANGES_SEED} // time ^ $$;
srand $seed;
diag("CHANGES_SEED=$seed");

my $t = BloomTest->new;

# the source: each entry has a position, and the keys after it

my @log = ({ position => 0, keys => {} });
my $images = 0;

sub extend {
    my ($count) = @_;

    for (1 .. $count) {
        my %keys = %{ $log[-1]{keys} };
        my @changes;

        for (1 .. 1 + rand 20) {
            my $key = 'key' . int rand KEYS;

            if (rand() < 0.5) {
                $keys{$key} = 1;
                push @changes, "+$key";

            } else {
                delete $keys{$key};
                push @changes, "-$key";
            }
        }

        my $position = $log[-1]{position} + 1 + int rand 3;
        push @log, { position => $position, keys => \%keys,
                     changes => \@changes };
    }
}

# The number of the entry at a position.

sub entry_at {
    my ($position) = @_;

    my ($n) = grep { $log[$_]{position} == $position } 0 .. $#log;

    return $n;
}

# Builds an image from what the ledger has after an entry.

sub image_of {
    my ($entry) = @_;

    my $name = 'image' . $images++;

    $t->build_image("$name.bloom",
                    ['base', sort keys %{ $log[$entry]{keys} }],
                    '-p', '1e-9', '-n', '10k',
                    '--source', "s=$log[$entry]{position}",
                    rand() < 0.5 ? ('--as-of', time - int rand 7200) : ());

    return $name;
}

# By position: how many of the next changes came in parts.  A zone that goes back
# to the position replays them, and they are in force until they are sent again.

my %begun;

# The greatest position before a clear, that after the last one, and the first
# one again if a start has forgotten since that nothing is missing.

my ($before, $cleared, $due) = (0, 0, 0);

sub start {
    $t->run;
    $due = $before;
}

# Sends the changes of an entry in parts, as several followers would that know of
# each other only from nginx's answers, while nginx is reloaded and dies.  They
# may give up, if the zone goes elsewhere.

sub in_parts {
    my ($from, $to, @changes) = @_;

    my @offsets = (0, 0);

    while (1) {
        my $follower = int rand 2;
        my $offset = $offsets[$follower];
        my $end = $offset + 1 + int rand 9;
        my $more = $end < @changes;

        $end = @changes if !$more;

        my $r = part($t, 'ids', $from, $to, $offset, $more,
                     @changes[$offset .. $end - 1]);
        my $json = $r->json;

        $r->status == 200 || $r->status == 409
            or die "a part of the changes after $from is refused: $r";

        return if $json->{position} != $from;

        $offsets[$follower] = $json->{offset} // 0;
        $begun{$from} = $offsets[$follower]
            if $offsets[$follower] > ($begun{$from} // 0);

        my $event = rand();

        if ($event < 0.02) {
            $t->kill_all;
            start();

        } elsif ($event < 0.04) {
            $t->reload;

        } elsif ($event < 0.06) {
            my $name = image_of(int rand @log);
            my $upload = upload_image($t, 'ids', $name);

            $upload->status == 200 || $upload->status == 422
                or die "an upload: $upload";
        }
    }
}

# Sends the entries after the zone's position, in batches of some entries.

sub follow {
    my ($upto) = @_;

    my $from = entry_at(position($t, 'ids'));

    while ($from < $upto) {
        my $to = $from + 1 + int rand 4;
        $to = $upto if $to > $upto;

        my @changes = map { @{ $log[$_]{changes} } } $from + 1 .. $to;

        if (rand() < 0.5) {
            in_parts(map({ $log[$_]{position} } $from, $from + 1),
                     @{ $log[$from + 1]{changes} });
            $from = entry_at(position($t, 'ids'));
            next;
        }

        for (1 .. (rand() < 0.2 ? 2 : 1)) {
            my $r = changes($t, 'ids', $log[$from]{position},
                            $log[$to]{position}, @changes);

            $r->status == 200
                or die "changes $from to $to are refused: $r";
        }

        $from = $to;
    }
}

# A new helper may load an image that waits in the file, so the position may
# change between two requests.  Only a zone that went back behind the position
# of a clear, which dropped the changes, is late: until its source goes on, or
# says that nothing is missing, which a start forgets.

sub is_exact {
    my ($name) = @_;

    my @keys = ('base', map { "key$_" } 0 .. KEYS - 1);
    my ($position, $answers);

    wait_until(sub {
        $position = position($t, 'ids');
        alive($t, 'ids', $position)
            if ($position < $cleared || $position < $due)
               && zone_state($t, 'ids')->{state} eq 'late';
        $answers = ask($t, 'ids', @keys);

        return $answers !~ /\?/ && $position == position($t, 'ids');
    });

    my $entry = entry_at($position);

    if (!defined $entry) {
        fail("$name: the zone is at a position of the source");
        return;
    }

    my %has = %{ $log[$entry]{keys} };
    my @begun = $begun{$position} ? @{ $log[$entry + 1]{changes} } : ();
    my @want;

    for my $change (undef, splice @begun, 0, $begun{$position} // 0) {
        $has{ substr $change, 1 } = $change =~ /^\+/ if defined $change;
        push @want, join '', 1, map { $has{$_} ? 1 : 0 } @keys[1 .. KEYS];
    }

    my ($want) = grep { $answers eq $_ } @want;

    is($answers, $want // $want[0],
       "$name: exactly the keys of entry $entry");
}

my %events = (
    changes => sub { follow(@log - 1) },
    some => sub {
        my $entry = entry_at(position($t, 'ids'));
        follow($entry + int rand(@log - $entry));
    },
    reload => sub { $t->reload },
    kill => sub { $t->kill_all; start() },
    stop => sub { $t->stop; start() },
    upgrade => sub { $t->upgrade },
    helper => sub { $t->kill_helper },
    checkpoint => sub {
        api($t, POST => 'zones/ids/checkpoint')->status == 200
            or die 'a checkpoint is refused';
    },

    # an image of any position from the oldest that the zone may load

    upload => sub {
        my $r = upload_image($t, 'ids', image_of(int rand @log));

        $r->status == 200 || $r->status == 422 or die "an upload: $r";
    },
    own => sub {
        my $r = api($t, GET => 'zones/ids/image');
        $r->status == 200 or die "an image: $r";
        $r = $t->request(PUT => '/bloom/zones/ids/image', body => $r->body);
        $r->status == 200 or die "the zone's own image: $r";
    },
    file => sub {
        install_image($t, image_of(int rand @log));
        my $r = api($t, POST => 'zones/ids/reload');
        $r->status == 200 || $r->status == 422 or die "a reload: $r";

        # nginx would refuse to start with an image that was refused

        install_image($t, image_of(@log - 1)) if $r->status == 422;
    },
    clear => sub {
        install_image($t, image_of(int rand @log));
        $before = max($before, position($t, 'ids'));
        my $r = api($t, POST => 'zones/ids/clear');
        $r->status == 200 or die "a clear: $r";
        $due = 0;

        # the source goes on, or says that there is no more

        my $alive = rand() < 0.5;
        alive($t, 'ids', position($t, 'ids')) if $alive;
        $cleared = position($t, 'ids');
        follow(@log - 1) if !$alive;
    },
);

install_image($t, image_of(0));
configure($t, ['zone=ids file=ids.bloom removals=20k;'
               . ' bloom_source zone=ids name=s max_lag=off'],
          api => 1, workers => 2);
$t->run;
$t->expect_log(qr/exited on signal 9/);

for my $number (1 .. EVENTS) {
    extend(1 + int rand 8);

    my @names = sort keys %events;
    my $event = $number % 3 ? $names[rand @names]
              : rand() < 0.5 ? 'some' : 'changes';

    $events{$event}->();
    is_exact("event $number, $event");
}

$events{helper}->();
follow(@log - 1);
is_exact('at the end');

done_testing;
