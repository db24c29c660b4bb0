#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Clients add and remove the same keys at the same time, on two and four
# workers, while nothing else happens, and while nginx is reloaded, upgraded,
# resized, or loads images.  In the end the journal decides: a key is present if
# its last record adds it, and absent if its last record removes it, in each
# instance and after a restart.  Keys that nobody removes are present all the
# time.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Process qw(spawn alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

use constant { CLIENTS => 4, ROUNDS => 60 };

my @shared = keys_of('shared', 8);
my $zone = 'ids';

# images of id1 to id10, complete up to a time before the test

$t->build_image("image$_.bloom", [keys_of('id', 10)], '-p', '1e-9',
                '-n', '20k', '--seed', $_, '--as-of', rfc3339(time - 600))
    for 1 .. 2;

sub configured {
    my ($workers, $size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom removals=1000"],
              api => 1, add => 1, remove => 1, workers => $workers);
}


# Runs the clients while nginx does something.  Each makes a number of requests
# on several keys; connections that a reload closes are opened again.

sub clients_run {
    my ($name, $meanwhile) = @_;

    my @clients = map {
        my $client = $_;

        spawn(sub {
            srand $client;
            my @wrong;

            for my $round (1 .. ROUNDS) {
                my @requests = map { request($client, $round) } 1 .. 4;
                my @own = ("own-" . $name =~ tr{ }{_}r . "-$client-$round");

                # the last request adds a key that nobody removes

                push @requests, [POST => '/bloom/zones/ids/keys', "@own\n"];

                my @responses = eval {
                    local $SIG{ALRM} = sub { die "no answer\n" };
                    $t->pipeline(map {
                        $t->request_text($_->[0], $_->[1], keepalive => 1,
                                         defined $_->[2]
                                         ? (body => $_->[2]) : ())
                    } @requests);
                } or next;

                push @wrong, map { "$_" } grep { $_->complete
                                                 && $_->status != 200 }
                                               @responses;
                next if !$responses[-1]->complete;

                my $answers = eval { ask($t, 'ids', @own, 'id1') } // next;
                push @wrong, "@own: $answers" if $answers =~ /0/;
                $t->write_file("own-$client.$round", "@own\n");
            }

            $t->write_file("client-$client.wrong", join "\n", @wrong);
        })
    } 1 .. CLIENTS;

    $meanwhile->() if $meanwhile;
    wait_until(sub { !grep { alive($_) } @clients }, 60)
        or die 'the clients do not end';

    is(join('', map { $t->read_file("client-$_.wrong") } 1 .. CLIENTS), '',
       "no request fails and no added key is absent $name");
}


# Returns a random request of a client: method, path, body.

sub request {
    my ($client, $round) = @_;

    my @keys = map { $shared[rand @shared] } 1 .. 1 + int rand 3;
    my $body = join '', map { "$_\n" } @keys;

    return @{ [
        [GET => "/add/ids?k=$keys[0]"],
        [GET => "/remove/ids?k=$keys[0]"],
        [POST => '/bloom/zones/ids/keys', $body],
        [POST => '/bloom/zones/ids/keys?durable=true', $body],
        [POST => '/bloom/zones/ids/remove', $body],
        [POST => '/bloom/zones/ids/remove?durable=true', $body],
        [DELETE => "/bloom/zones/ids/keys?key=$keys[0]"],
    ] }[rand 7];
}


# Returns the answers that the journal demands about the shared keys.

sub by_the_journal {
    my %last = map { $_ => 0 } @shared;

    for my $record (records_of($t, $zone)) {
        exists $last{$_} and $last{$_} = $record->{type} == ADD ? 1 : 0
            for @{ $record->{keys} };
    }

    return join '', map { $last{$_} } @shared;
}


sub the_journal_decides {
    my ($name) = @_;

    ok(wait_until(sub { !zone_state($t, $zone)->{journal}{pending_keys} }),
       "no key is pending $name");

    my $wanted = by_the_journal();
    my @own = map { split /\n/, $t->read_file($_ =~ s{^\Q$dir/}{}r) }
                  glob "$dir/own-*";

    is(ask_until_known($t, $zone, @shared), $wanted,
       "the last record of each shared key decides $name");

    # another worker may answer the next connection

    is(join(' ', map { scalar ask_until_known($t, $zone, @shared) } 1 .. 6),
       join(' ', ($wanted) x 6), "all workers agree $name");
    is(ask_until_known($t, $zone, @own, 'id1', 'no'), '1' x @own . '10',
       "keys that nobody removed are present $name");
}


my %event = (
    'of one configuration' => undef,
    'across reloads' => sub { $t->reload for 1 .. 2 },
    'across loads of images' => sub {
        for my $n (2, 1, 2, 1) {
            install_image($t, "image$n");
            my $response = api($t, POST => 'zones/ids/reload');
            $response->status == 200 or die "no load: $response";
        }
    },
    'across an upgrade' => sub {
        $t->upgrade_begin;
        select undef, undef, undef, 0.2;
        $t->upgrade_finish;
    },
    'across a reverted upgrade' => sub {
        $t->upgrade_begin;
        select undef, undef, undef, 0.2;
        $t->upgrade_back;
    },
    'across a change of size' => sub {
        configured(4, ':4m');
        $t->reload;
    },
    'across deaths of workers' => sub { $t->kill_worker for 1 .. 2 },
);

$t->expect_log(qr/exited on signal 9/);

for my $workers (2, 4) {
    for my $event (sort keys %event) {
        subtest "$workers workers, $event" => sub {
            system('rm', '-rf', "$dir/state");
            unlink glob "$dir/own-*";
            install_image($t, 'image1');
            configured($workers, ':3m');
            $t->run;

            clients_run($event, $event{$event});
            the_journal_decides($event);

            $t->kill_all;
            $t->run;
            the_journal_decides("$event and after kill -9 of all processes");
            $t->stop;
        };
    }
}

done_testing;
