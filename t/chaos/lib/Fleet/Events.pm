# SPDX-License-Identifier: BSD-2-Clause

package Fleet::Events;

# Has the servers of a fleet, which are nodes, a Redis, its replica and two
# followers, and the events that happen to them.  The followers reach each server
# through a proxy, which can cut it off, and which keeps its address when the
# replica becomes the primary.

use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(remove_tree);
use JSON::PP qw(encode_json);
use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop);
use BloomTest::Process qw(now resume_process session_members stop_process
                          time_limit wait_until);
use BloomTest::Zones;

use Fleet::Ledger;
use Fleet::Proxy;

use constant {
    NODES  => 3,
    STREAM => 's',
    KEPT   => 5000,    # milliseconds of the stream that stay when it is trimmed
    MARGIN => 5,       # seconds that a sign of life may be on its way
};

my @durable = ('appendonly yes', 'appendfsync always');

# Each event happens in turn; the order is drawn.

sub all {
    return qw(kill_follower kill_worker kill_helper kill_node kill_redis
              kill_replica stop_node cut_off reload upgrade load_file put_image
              trim_behind trim_beyond failover);
}


# After these events, and no others, changes are missing.

sub makes_gap { return $_[1] eq 'trim_beyond' || $_[1] eq 'failover' }


# Options: nodes (tests), keys, max_lag in seconds, ledger (a path), writing (a
# function that waits for a further entry and returns its ID), hold (a function
# that makes the writer pause if it gets 1, and go on if it gets 0), break (what
# to break on purpose).

sub new {
    my ($class, %option) = @_;

    return bless { %option }, $class;
}


sub start {
    my ($self) = @_;

    my $break = $self->{break};

    $self->{number} = { redis => 6379, replica => 6380 };

    for my $name ('redis', 'replica') {
        my $start = "start_$name";

        $self->$start;
        $self->{proxy}{$name} = $self->proxy($self->{nodes}[0],
                                             $name eq 'redis' ? 6001 : 6002,
                                             $self->{$name}{port});
    }

    # nodes that wait longer than the checker believes

    my $max_lag = $break eq 'lateness' ? 300 : $self->{max_lag};

    for my $node (@{ $self->{nodes} }) {
        $self->{proxy}{$node} = $self->proxy($node, 8090, $node->port(8080),
                                             swallow => $break eq 'gap');
        $node->build_image('ids.bloom', ['base'], $self->shape,
                           '--source', 'ids=0');
        configure($node, ['zone=ids file=ids.bloom removals='
                          . 2 * $self->{keys}
                          . "; bloom_source zone=ids name=ids"
                          . " max_lag=${max_lag}s"],
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

    $self->{redis} = redis_server($self->{nodes}[0], $self->{number}{redis},
                                  @durable);
}


sub start_replica {
    my ($self) = @_;

    $self->{replica} = redis_server($self->{nodes}[0], $self->{number}{replica},
                                    @durable, "replicaof 127.0.0.1"
                                              . " $self->{redis}{port}");
}


sub proxy {
    my ($self, $node, $number, $to, %option) = @_;

    return Fleet::Proxy->new(listen => $node->port($number), to => $to,
                             dir => $node->testdir, %option);
}


# Ends all processes but the nodes.

sub stop {
    my ($self) = @_;

    kill 'KILL', map { $_->{pid} } $self->{redis}, $self->{replica},
                                   values %{ $self->{proxy} },
                                   @{ $self->{followers} };
}


# The first follower reads the primary, and the second one its replica.

sub start_follower {
    my ($self, $number) = @_;

    my $server = $self->{proxy}{$number ? 'replica' : 'redis'};

    my $follower = follow($self->{nodes}[0], '--from', 'beginning', '--empty',
                          map({ ('--zone', $self->url($_)) }
                              @{ $self->{nodes} }),
                          "redis://127.0.0.1:$server->{listen}");

    $self->{followers}[$number] = $follower;
    push @{ $self->{logs} }, $follower;
}


sub url {
    my ($self, $node) = @_;

    return "http://127.0.0.1:$self->{proxy}{$node}{listen}/bloom/zones/ids";
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


# Cuts a node off from the followers for longer than max_lag.  It must say so in
# time, and recover.

sub cut_off {
    my ($self) = @_;

    my $node = $self->any_node;
    my $limit = $self->{max_lag} + MARGIN * time_limit(1);
    my $begun = now();
    my $late;

    $self->{proxy}{$node}->cut;

    until ($late) {
        my $asked = now();

        $late = $self->state($node)->{source}{state} ne 'current';
        last if $asked - $begun > $limit;
        sleep 0.05;
    }

    my $rest = $begun + $limit + 5 - now();
    sleep $rest if $rest > 0;
    $self->{proxy}{$node}->mend;

    $late or die "$node->{name} is current, though it was cut off for $limit"
                 . " seconds\n";

    wait_until(sub { $self->state($node)->{source}{state} eq 'current' }, 60)
        or die "$node->{name} does not recover from being cut off\n";
}


# Promotes a replica that lacks the end of the stream, which all nodes have.  All
# followers must report a gap, which an image of the ledger closes.

sub failover {
    my ($self) = @_;

    my ($old, $new) = @$self{qw(redis replica)};

    redis($new, 'REPLICAOF', '127.0.0.1', $self->{nodes}[0]->port(6003));

    $self->{writing}->() for 1 .. 3;

    # An entry that is on its way would be sent again, to the new primary, and
    # nodes that had it would rightly see no gap.

    my $end = $self->{hold}->(1);
    $self->reach($_, $end) for @{ $self->{nodes} };

    redis_stop($old);
    redis($new, 'REPLICAOF', 'NO', 'ONE');
    $self->{redis} = $new;
    @{ $self->{number} }{qw(redis replica)}
        = @{ $self->{number} }{qw(replica redis)};
    $self->{proxy}{redis}->point_at($new->{port});

    remove_tree($self->{nodes}[0]->testdir
                . "/redis-$self->{number}{replica}/appendonlydir");
    $self->start_replica;
    $self->{proxy}{replica}->point_at($self->{replica}{port});
    $self->{proxy}{replica}->cut;
    sleep 0.3;
    $self->{proxy}{replica}->mend;

    $self->{hold}->(0);
    $self->{writing}->() for 1 .. 3;

    for my $node (@{ $self->{nodes} }) {
        wait_until(sub { $self->state($node)->{source}{state} eq 'gap' },
                   $self->gap_limit)
            or die "$node->{name}: no gap after a failover is reported\n";
        $self->close_gap($node);
    }
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

    # removed keys that return

    my @undone = $self->{break} eq 'removal'
                 ? grep { /7$/ } keys %{ $ledger->{last} } : ();

    $node->build_image('next.bloom', ['base', $ledger->keys_present, @undone],
                       $self->shape, '--source', "ids=$position");

    return $position;
}


sub load_file {
    my ($self, $node) = @_;

    $node //= $self->any_node;
    my $position = $self->build($node);
    my $dir = $node->testdir;

    # a link to the next image would change when that is built, and nginx would
    # take it for another image

    rename "$dir/next.bloom", "$dir/ids.bloom" or die "rename: $!\n";
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

    redis($self->{redis}, 'XTRIM', STREAM, 'MINID', $ms - KEPT)
        if $ms > KEPT;
}


# Waits until a node is at a position or later.

sub reach {
    my ($self, $node, $position) = @_;

    wait_until(sub {
        my $has = $self->state($node)->{source}{position};
        return Fleet::Ledger::compare($has, $position) >= 0;
    }, 60) or die "$node->{name} does not get to $position\n";
}


# A test that breaks something does not wait for long.

sub gap_limit { return $_[0]{break} ? 10 : 60 }


# Loads an image, which must close a node's gap.

sub close_gap {
    my ($self, $node) = @_;

    my $by = rand() < 0.5 ? 'load_file' : 'put_image';
    $self->$by($node);

    wait_until(sub { $self->state($node)->{source}{state} ne 'gap' })
        or die "$node->{name}: an image does not close the gap\n";
}


# Trims entries that one node does not have, and all others have, so that the
# followers must report a gap, which an image closes.  The node starts when the
# replica has trimmed them, too: one that lags behind still has them, and its
# follower may carry them to the node, without a gap.

sub trim_beyond {
    my ($self) = @_;

    my $node = $self->any_node;
    my $position = $self->state($node)->{source}{position};

    $node->stop;

    my $end = (map { $self->{writing}->() } 1 .. 3)[-1];

    $self->reach($_, $end) for grep { $_ != $node } @{ $self->{nodes} };

    redis($self->{redis}, 'XTRIM', STREAM, 'MINID', $end);

    wait_until(sub {
        my ($first) = redis($self->{replica}, 'XRANGE', STREAM, '-', '+', 'COUNT',
                            1) =~ /^(\d+-\d+)/;
        return defined $first && Fleet::Ledger::compare($first, $end) >= 0;
    }, 60) or die "the replica does not trim the stream\n";

    $node->run;

    wait_until(sub { $self->state($node)->{source}{state} eq 'gap' },
               $self->gap_limit)
        or die "$node->{name}: no gap after $position is reported, but "
               . encode_json($self->state($node)->{source}) . "\n";

    $self->close_gap($node);
}


# Loads one image on all nodes, and compares the nodes by `ngx-bloom status`.

sub compare_nodes {
    my ($self) = @_;

    my ($first, @others) = @{ $self->{nodes} };
    my $position = $self->build($first);

    copy($first->testdir . '/next.bloom', $_->testdir . '/next.bloom')
        or die "copy: $!\n" for @others;

    for my $node ($first, @others) {
        install_image($node, 'next');
        loaded(api($node, POST => 'zones/ids/reload'), $position);
    }

    $self->quiesce($position);

    my ($exit, $out, $err) = $first->run_tool(
        'status', map { 'http://127.0.0.1:' . $_->port(8080) . '/bloom/' }
                      $first, @others);

    $exit == 0 or die "ngx-bloom status exits with $exit:\n$out$err";
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
