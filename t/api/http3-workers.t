#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# HTTP/3 with several workers, and through reloads.  nginx may drop a connection
# of QUIC: without "reuseport" any worker gets the packets of a connection, and
# during a reload the old and the new worker read the same socket.  Clients then
# connect again.  Each key that was acknowledged is present, no request has
# another outcome than a client expects, and no process crashes or stays.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Http3;
use BloomTest::Process qw(alive stop_process resume_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $keys_path = '/bloom/zones/seen/keys';
my $image_path = '/bloom/zones/ids/image';

plan skip_all => $_ for BloomTest::Http3->impossible($t) // ();

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '600k');

sub configured {
    my ($socket) = @_;

    my $listen = BloomTest::Http3->listen($t) =~ s/ quic;/ quic $socket;/r;

    # with the same key, all workers can tell a client that they do not know its
    # connection

    $t->write_file('host.key', '0123456789abcdef' x 2);
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=100k fpr=1e-9'],
              api => 1, workers => 2, server => "$listen\nquic_host_key "
                                             . $t->testdir . '/host.key;'
                                             . <<'CONF');

        lingering_timeout 1s;
        keepalive_timeout 5s;
        client_body_timeout 5s;
        location = /rule {
            bloom_reject absent $arg_id zone=ids;
            add_header X-Pid $pid;
            empty_gif;
        }
CONF
}


# Returns a new connection.  Tries again if it fails, because a packet of the
# handshake may reach another worker.

sub connection {
    my $c;

    wait_until(sub { $c = eval { BloomTest::Http3->new($t) } })
        or die 'no HTTP/3 connection';

    return $c;
}


# Returns the response on a stream, or nothing if the connection is lost: nginx
# has closed it, or has answered nothing for long.

sub response_on {
    my ($c, $stream) = @_;

    my $response = eval { $c->response($stream) };

    return $response if $response && $response->status;

    $c->vanish if !$c->{closed};
    return;
}


# Adds a key and asks for another by each of the connections.  Returns the keys
# that were acknowledged, and notes outcomes that no client expects.

my ($number, %unexpected, %pid) = (0);

sub use_connections {
    my (@connections) = @_;

    my @acknowledged;

    for my $c (@connections) {
        my $key = 'key' . ++$number;

        for (['a new key', 200, POST => $keys_path, body => $key],
             ['a present key', 200, GET => '/rule?id=id1'],
             ['an absent key', 404, GET => '/rule?id=none'])
        {
            my ($what, $status, @request) = @$_;
            my $r = response_on($c, $c->request(@request)) // last;

            $unexpected{"$what: " . $r->status}++ if $r->status != $status;
            push @acknowledged, $key if $what eq 'a new key';
            $pid{$_} = 1 for grep { defined } $r->header('X-Pid');
        }
    }

    return @acknowledged;
}

sub are_present {
    my ($what, @keys) = @_;

    is(scalar(grep { $_ eq 'present' } lookup_keys($t, 'seen', @keys)),
       scalar @keys, "all acknowledged keys are present: $what");
    is(join(', ', sort keys %unexpected), '', "no outcome is wrong: $what");
}

# Nothing is left of requests that were cut.

sub is_quiet {
    my ($what) = @_;

    ok(settled($t, 'seen', sub {
        my $journal = $_[0]{journal};
        return !$journal->{unsynced_bytes};
    }), "the journal is settled $what");
    ok(wait_until(sub { !files($t->testdir . '/state/ids/body.*') }),
       "no file of an upload is left $what");
}


for my $socket ('reuseport', '') {
    my $what = $socket || 'one socket';

    subtest "several workers, $what" => sub {
        my @keys;

        %pid = ();
        configured($socket);
        $t->run;

        # with "reuseport", the port of a client decides which worker has it

        for (1 .. 200) {
            push @keys, use_connections(map { connection() } 1 .. 4);
            last if (!$socket || keys %pid > 1) && @keys > 20;
        }

        cmp_ok(scalar @keys, '>', 20, "keys are acknowledged: $what");
        are_present($what, @keys);

        if ($socket) {
            cmp_ok(scalar keys %pid, '>', 1, 'several workers serve');

            my @open = map { connection() } 1 .. 8;

            is(scalar use_connections(@open), 8,
               'each connection stays with its worker');
        }

        $t->kill_all;
        $t->run;
        are_present("$what, after kill -9 and a start", @keys);
        is_quiet("with several workers: $what");
        $t->stop;
    };


    subtest "reloads, $what" => sub {
        my $image = $t->read_file('ids.bloom');
        my @keys;

        configured($socket);
        $t->run;

        for my $round (1, 2) {
            my @old = ($t->workers, $t->helpers);
            my %old = map { $_ => 1 } @old;
            my $helper = $t->helper;
            my ($idle, $body, $put, $wait) = map { connection() } 1 .. 4;
            my $name = "$what-$round" =~ s/\W//gr;

            push @keys, use_connections($idle);

            my $upload = $put->open(PUT => $image_path, headers => [
                'content-length' => length $image]);
            $put->data($upload, substr $image, 0, 65536);

            my $post = $body->open(POST => $keys_path);
            $body->data($post, "$name-a\n$name-b");

            stop_process($helper);
            my $durable = $wait->request(POST => "$keys_path?durable=true",
                                         body => "$name-durable");

            kill 'HUP', $t->master;
            ok(wait_until(sub { 2 == grep { !$old{$_} } $t->workers }),
               'new workers run');
            resume_process($helper);

            # the requests that had begun, then a new one by an old connection

            $body->data($post, "-end\n", end => 1);
            $put->data($upload, substr($image, 65536), end => 1);

            my $posted = response_on($body, $post);
            my $waited = response_on($wait, $durable);
            my $loaded = response_on($put, $upload);

            for (['a body', $posted], ['a durable request', $waited],
                 ['an upload', $loaded])
            {
                my ($request, $response) = @$_;
                is($response ? $response->status : 200, 200,
                   "$request succeeds, or its connection is lost");
            }

            push @keys, "$name-a", "$name-b-end" if $posted;
            push @keys, "$name-durable" if $waited;
            push @keys, use_connections($idle);

            $_->close for grep { !$_->{closed} } $idle, $body, $put, $wait;
            ok(wait_until(sub { !grep { alive($_) } @old }),
               'all old processes exit');
            push @keys, use_connections(map { connection() } 1 .. 3);
            are_present("$what, reload $round", @keys);
        }

        is_quiet("after reloads: $what");
        $t->kill_all;
        $t->run;
        are_present("$what, after kill -9 and a start", @keys);
        $t->stop;
    };
}


done_testing;
