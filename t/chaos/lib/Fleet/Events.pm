# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Events;

# Has the servers of a fleet, which are nodes, a Redis, its replica and two
# followers, and the events that happen to them.

use strict;
use warnings;

use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop);
use BloomTest::Process qw(alive resume_process session_members stop_process
                          time_limit wait_until);
use BloomTest::Zones;

use Fleet::Ledger;

use constant {
    NODES  => 3,
    STREAM => 's',
    MARGIN => 5000,    # IDs are milliseconds
};

my @durable = ('appendonly yes', 'appendfsync always');

# Each event happens in turn; the order is drawn.

sub all {
    return qw(kill_follower kill_worker kill_helper kill_node kill_redis
              kill_replica stop_node reload upgrade load_file put_image
              trim_behind trim_beyond);
}


# Options: nodes (tests), keys, max_lag in seconds, ledger (a path), writing (a
# function that waits for a further entry and returns its ID).

sub new {
    my ($class, %option) = @_;

    return bless { %option }, $class;
}


sub start {
    my ($self) = @_;

    $self->start_redis;
    $self->start_replica;

    for my $node (@{ $self->{nodes} }) {
        $node->build_image('ids.bloom', ['base'], $self->shape,
                           '--source', 'ids=0');
        configure($node, ['zone=ids file=ids.bloom source=ids removals='
                          . 2 * $self->{keys} . " max_lag=$self->{max_lag}s"],
                  api => 1, workers => 2);
        $node->run;
    }

    $self->start_follower($_) for 0, 1;
}


sub shape {
    my ($self) = @_;

    return ('-p', '1e-9', '-n', 3 * $self->{keys});
}


sub start_redis {
    my ($self) = @_;

    $self->{redis} = redis_server($self->{nodes}[0], 6379, @durable);
}


sub start_replica {
    my ($self) = @_;

    $self->{replica} = redis_server($self->{nodes}[0], 6380,
                                    "replicaof 127.0.0.1 $self->{redis}{port}");
}


# The first follower reads the primary, and the second one its replica.

sub start_follower {
    my ($self, $number) = @_;

    my $server = $self->{$number ? 'replica' : 'redis'};

    my $follower = follow($self->{nodes}[0], '--from', 'beginning',
                          map({ ('--zone', $self->url($_)) }
                              @{ $self->{nodes} }), $server->{url});

    $self->{followers}[$number] = $follower;
    push @{ $self->{logs} }, $follower;
}


sub url {
    my ($self, $node) = @_;

    return 'http://127.0.0.1:' . $node->port(8080) . '/bloom/zones/ids';
}


sub any_node { return $_[0]{nodes}[rand NODES] }
sub pause { sleep rand($_[1] // 1) }


sub kill_follower {
    my ($self) = @_;

    my $number = int rand 2;

    kill 'KILL', $self->{followers}[$number]{pid};
    ended($self->{followers}[$number]);
    $self->pause;
    $self->start_follower($number);
}


sub kill_worker {
    my ($self) = @_;

    my $node = $self->any_node;
    my @workers = $node->workers;

    $node->kill_worker(KILL => $workers[rand @workers]);
}


sub kill_helper { $_[0]->any_node->kill_helper }


# Kills a node's processes one after another, the master first, and starts it.

sub kill_node {
    my ($self) = @_;

    my $node = $self->any_node;

    $node->end_processes(KILL => $node->kill_master);
    $self->pause;
    $node->run;
}


sub kill_redis {
    my ($self) = @_;

    redis_stop($self->{redis});
    $self->pause(rand() < 0.3 ? 2 * $self->{max_lag} : 1);
    $self->start_redis;
}


sub kill_replica {
    my ($self) = @_;

    redis_stop($self->{replica});
    $self->pause;
    $self->start_replica;
}


sub stop_node {
    my ($self) = @_;

    my $node = $self->any_node;
    my @processes = session_members($node->{session});

    stop_process($_) for @processes;
    $self->pause(4);
    resume_process($_) for @processes;
}


sub reload { $_[0]->any_node->reload }
sub upgrade { $_[0]->any_node->upgrade }


# Builds an image of what the ledger has up to the end of the stream.  Returns
# the image's name and position.  The position is read first.

sub build {
    my ($self, $node) = @_;

    my ($position) = redis($self->{redis}, 'XINFO', 'STREAM', STREAM)
                     =~ /^last-generated-id\n([\d-]+)$/m
        or die "the stream has no end\n";

    my $ledger = $self->{ledger_view} //= Fleet::Ledger->new($self->{ledger});
    $ledger->read_until($position);

    $node->build_image('next.bloom', ['base', $ledger->keys_present],
                       $self->shape, '--source', "ids=$position");

    return $position;
}


sub load_file {
    my ($self, $node) = @_;

    $node //= $self->any_node;
    my $position = $self->build($node);
    install_image($node, 'next');

    loaded(api($node, POST => 'zones/ids/reload'), $position);
}


sub put_image {
    my ($self, $node) = @_;

    $node //= $self->any_node;
    my $position = $self->build($node);

    loaded(upload_image($node, 'ids', 'next'), $position);
}


sub loaded {
    my ($response, $position) = @_;

    $response->status == 200
        or die "the image at $position is not loaded:\n$response\n";
}


# Trims what all nodes have.  The margin leaves what a node might lose in a
# crash.

sub trim_behind {
    my ($self) = @_;

    my ($least) = sort { Fleet::Ledger::compare($a, $b) }
                  map { $self->state($_)->{source}{position} }
                      @{ $self->{nodes} };
    my ($ms) = $least =~ /^(\d+)/;

    redis($self->{redis}, 'XTRIM', STREAM, 'MINID', $ms - MARGIN)
        if $ms > MARGIN;
}


# Trims entries that one node does not have, and all others have, so that the
# followers must report a gap, which an image closes.

sub trim_beyond {
    my ($self) = @_;

    my $node = $self->any_node;
    my $position = $self->state($node)->{source}{position};

    $node->stop;

    my ($end) = map { $self->{writing}->() } 1 .. 3;

    for my $other (grep { $_ != $node } @{ $self->{nodes} }) {
        wait_until(sub {
            my $has = $self->state($other)->{source}{position};
            return Fleet::Ledger::compare($has, $end) >= 0;
        }, 60) or die "$other->{name} does not get to $end\n";
    }

    redis($self->{redis}, 'XTRIM', STREAM, 'MINID', $end);
    $node->run;

    wait_until(sub { $self->state($node)->{source}{state} eq 'gap' }, 60)
        or die "$node->{name}: no gap after $position is reported\n";

    my $by = rand() < 0.5 ? 'load_file' : 'put_image';
    $self->$by($node);

    wait_until(sub { $self->state($node)->{source}{state} ne 'gap' })
        or die "$node->{name}: an image does not close the gap\n";
}


sub state {
    my ($self, $node) = @_;

    my $state;

    wait_until(sub { $state = eval { zone_state($node, 'ids') } }, 60)
        or die "$node->{name} does not answer: $@\n";

    return $state;
}


# Waits until all nodes are current at a position.

sub quiesce {
    my ($self, $position) = @_;

    $position =~ s/-0$//;

    for my $node (@{ $self->{nodes} }) {
        my $state;

        wait_until(sub {
            $state = $self->state($node)->{source};
            return $state->{position} eq $position
                   && $state->{state} eq 'current';
        }, 120)
            or die "$node->{name} is $state->{state} at $state->{position},"
                   . " not current at $position\n";
    }
}


# Returns the gaps that the followers have reported.

sub gaps {
    my ($self) = @_;

    my @gaps = map { "$_->{event}: $_->{message}\n" }
               grep { $_->{event} =~ /^gap/ }
               map { log_of($_) } @{ $self->{logs} };

    return @gaps;
}


1;
