# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Crash::Operations;

# The operations of the crash tests.

use strict;
use warnings;

use Exporter qw(import);
use Test::More ();

use BloomTest::Api;

our @EXPORT = qw(prepare adds removes LIFE SLICE);

use constant { LIFE => 8 * 3600, SLICE => 3600 };


# Each function prepares an operation of a zone (BloomTest::Crash::Zone), and
# returns it:
#
#   request    method, path and body; a path without a slash at its beginning is
#              below the zone's endpoint
#   act        a function to call instead of a request
#   next       a function that returns the next request, if the response asks
#              for one
#   to         what keys are after it, or a function that returns it when the
#              request is sent: { KEY => 1 for present, 0 for absent, or undef }
#   whole      true if all keys are as before, or all as after
#   task       true if the helper does it
#   status     the status of success, if it is not 200
#   refused    other statuses that the operation may have, besides 503
#   after      a function to call when the operation was acknowledged
#   over       tells when `act` is over, if that is later

my $refused = [409, 412];

sub adds {
    my ($query, @keys) = @_;

    return { request => [POST => "keys$query", join "\n", @keys],
             to => { map { $_ => 1 } @keys } };
}

sub removes {
    my ($query, @keys) = @_;

    return { request => [POST => "remove$query", join "\n", @keys],
             to => { map { $_ => 0 } @keys } };
}

sub bloom_adds {
    my ($key) = @_;

    return { request => [GET => "/add/ids?k=$key"], to => { $key => 1 } };
}

# A lookup of a key that is present

sub finds {
    my ($key) = @_;

    return { request => [GET => "/ids?k=$key"], to => {},
             after => sub {
                 Test::More::like($_[0]->body, qr/^1 of/,
                                  "the lookup finds $key");
             } };
}

# An exception of a key that the backend lacks, which may be made or not

sub excepts {
    my ($key) = @_;

    return { request => [GET => "/of/ids?id=$key"], to => {},
             refused => [404] };
}

sub passes {
    my ($zone, $times, $seconds) = @_;

    return { act => sub { $zone->let_pass($seconds) for 1 .. $times },
             to => {} };
}

sub task { return { request => [@_], to => {}, task => 1,
                    refused => $refused } }

my %operation;

%operation = (
    'an addition' => sub { adds('', $_[0]->new_keys(3)) },
    'a durable addition' => sub { adds('?durable=true', $_[0]->new_keys(3)) },
    'bloom_add' => sub { bloom_adds($_[0]->new_keys(1)) },
    'an addition of removed keys' => sub { adds('', $_[0]->removed_keys(3)) },
    'bloom_add of a removed key' => sub { bloom_adds($_[0]->removed_keys(1)) },
    'an addition of the same keys' => sub { adds('', @{ $_[0]{keys} }) },
    'bloom_add of the same key' => sub { bloom_adds(@{ $_[0]{keys} }) },

    # of a fresh zone, behind records that leave less than 60 KB of the first
    # segment, which has room for 2 MiB

    'an addition to the next segment' => sub {
        my ($zone) = @_;

        $zone->insist(adds('', ($zone->new_keys(1))[0] . 'x' x 60_000))
            for 1 .. 34;

        return adds('', map { $_ . 'x' x 20_000 } $zone->new_keys(5));
    },

    # the next part of the filter begins

    'an addition that begins a layer' => sub {
        my ($zone) = @_;

        $zone->insist($zone->operation('a clear'));
        $zone->fill($zone->{kind}{part} - 5) if $zone->{kind}{part};

        return adds('', $zone->new_keys(20));
    },
    'an addition that opens a slice' => sub {
        my ($zone) = @_;

        $zone->fill($zone->{kind}{part} - 5);

        return adds('', $zone->new_keys(20));
    },

    'a removal' => sub { removes('', $_[0]->old_keys(3)) },
    'a durable removal' => sub { removes('?durable=true', $_[0]->old_keys(3)) },
    'DELETE' => sub {
        my ($key) = $_[0]->old_keys(1);
        return { request => [DELETE => "keys?key=$key"], to => { $key => 0 } };
    },

    # bloom_remove does not say whether it has removed the key

    'bloom_remove' => sub {
        my ($key) = $_[0]->old_keys(1);
        return { request => [GET => "/remove/ids?k=$key"],
                 to => { $key => undef } };
    },
    'a restoration of removed keys' => sub {
        my ($zone) = @_;

        $zone->removed_keys(3);

        return { request => [POST => 'clear?only=removed'], whole => 1,
                 to => sub { +{ map { $_ => 1 } $zone->{account}->removed } },
                 task => 1, refused => $refused };
    },
    'a restoration of excepted keys' => sub {
        my ($zone) = @_;

        # the image that excepts them is loaded again

        my @keys = @{ $zone->{kind}{excepted} };

        $zone->insist($zone->operation('a load'));
        $zone->{account}->set(map { $_ => 0 } @keys);

        return { request => [POST => 'clear?only=excepted'], whole => 1,
                 to => { map { $_ => 1 } @keys }, task => 1,
                 refused => $refused };
    },

    'a load' => sub { $_[0]->next_image; task(POST => 'reload') },
    'an upload' => sub { task(PUT => 'image', $_[0]->other_image) },
    'a checkpoint' => sub { task(POST => 'checkpoint') },
    'a snapshot' => sub { task(GET => 'image') },
    'a clear' => sub {
        my ($zone) = @_;

        my $account = $zone->{account};

        return { request => [POST => 'clear'], whole => 1, task => 1,
                 refused => $refused,
                 to => sub { +{ (map { $_ => 0 } $account->all),
                                %{ $zone->{base} } } },
                 after => sub { $account->forget_removals } };
    },

    'a lookup' => sub {
        finds($_[0]{kind}{image} ? $_[0]->base_key : $_[0]->old_keys(1));
    },

    # its slice is among the last ones to expire, and others are open since

    'a lookup of an old key' => sub {
        my ($zone) = @_;

        my @keys = $zone->old_keys(1);

        for (1 .. 2 * (LIFE - 2 * SLICE) / SLICE) {
            $zone->let_pass(SLICE / 2);
            $zone->fill(1);
        }

        $zone->{keys} = \@keys;
        return finds(@keys);
    },
    'a lookup by rules' => sub {
        my ($key) = $_[0]->base_key;
        return { request => [GET => "/rules?k=$key"], to => {},
                 status => 204 };
    },

    # Changes of a source.  Its follower sends them until they are acknowledged.

    'changes' => sub {
        my ($zone) = @_;

        my @new = $zone->new_keys(2);
        my ($old) = $zone->{last} // 'id9';
        $zone->{last} = $new[0];
        my $from = $zone->{position};
        my $to = $from + 1;

        return $zone->{changes} = {
            request => [POST => "changes?source=s&after=$from&position=$to",
                        "+$new[0]\n+stays\n-stays\n+stays\n-$old\n"
                        . "-$new[1]\n"],
            to => { $new[0] => 1, stays => 1, $old => 0, $new[1] => 0 },
            again => 1,
            after => sub { $zone->{position} = $to },
        };
    },
    'the same changes' => sub { return { %{ $_[0]{changes} } } },
    'changes in parts' => sub {
        my ($zone) = @_;

        my @new = $zone->new_keys(3);
        my ($from, $to) = ($zone->{position}, $zone->{position} + 1);
        my @changes = ("+$new[0]", '-stays', '+stays', "+$new[1]", "-$new[0]",
                       "+$new[2]", "+$new[0]");

        my $part = sub {
            my ($offset) = @_;
            my $last = $offset + 2 < @changes ? $offset + 1 : $#changes;
            my $more = $last < $#changes ? 'true' : 'false';

            return [POST => "changes?source=s&after=$from&position=$to"
                            . "&offset=$offset&more=$more",
                    join "\n", @changes[$offset .. $last]];
        };

        return { request => $part->(0), again => 1,
                 to => { (map { $_ => 1 } @new), stays => 1 },
                 next => sub {
                     my ($json) = eval { $_[0]->json } or return;
                     return if ($json->{position} // '') eq $to;
                     return $part->($json->{offset} // 0);
                 },
                 after => sub { $zone->{position} = $to } };
    },
    'a gap' => sub {
        my ($zone) = @_;

        my $to = $zone->{position} + 5;

        return { request => [POST => "gap?source=s&position=$to"], to => {},
                 again => 1,
                 after => sub {
                     $zone->{position} = $to;
                     $zone->next_image($zone->{account}->present);
                     $zone->insist({ name => 'a load', to => {},
                                      request => [POST => 'reload'] });
                 } };
    },
    'an image at a later position' => sub {
        my ($zone) = @_;

        $zone->insist($zone->operation('changes'));
        $zone->next_image($zone->{account}->present);

        return task(POST => 'reload');
    },

    # A false positive is excepted.  The backend knows no key, so whether one is
    # excepted is open.

    'an exception' => sub {
        my ($zone) = @_;

        my ($key) = $zone->false_keys(1);

        return { %{ excepts($key) }, to => { $key => undef } };
    },
    'an exception of the same key' => sub { excepts($_[0]{keys}[0]) },
    'an addition of a false positive' => sub {
        adds('', $_[0]->false_keys(1));
    },
    'bloom_add of a false positive' => sub { bloom_adds($_[0]->false_keys(1)) },

    # Keys of bloom_add are written to what was prepared.

    'a load on a full disk' => sub {
        my ($zone) = @_;

        $zone->fill_disk;
        $zone->next_image;

        return task(POST => 'reload');
    },
    'a load after a loss' => sub {
        my ($zone) = @_;

        $zone->lose_keys;
        $zone->next_image;

        return task(POST => 'reload');
    },
    'bloom_add after a loss' => sub {
        my ($zone) = @_;

        $zone->lose_keys;

        return $operation{'bloom_add'}->($zone);
    },

    # While another worker is stopped with the lock of the zone, a worker owes a
    # key, and adds it when the other one goes on.

    'a key that is owed' => sub {
        my ($zone) = @_;

        my $goes_on = $zone->stop_with_lock;
        my $owed = bloom_adds($zone->new_keys(1));

        return { to => {}, act => sub {
            $zone->perform($owed);
            $goes_on->();
        } };
    },

    # Slices are closed, dropped and cleared by the helper.

    'time that passes' => sub {
        my ($zone) = @_;

        $zone->fill($zone->{kind}{part} + 5);

        return passes($zone, 3, SLICE / 2);
    },
    'slices that pass' => sub { passes($_[0], 3, SLICE / 2) },
    'half a life that passes' => sub { passes($_[0], 2, LIFE / 4 + SLICE / 2) },

    # The new helper lets the zone stand on the older of two checkpoints, and
    # removes the first segment, which has room for 2 MiB.

    'HUP behind two checkpoints' => sub {
        my ($zone) = @_;

        for my $n (1, 2) {
            $zone->insist(adds('', map { $_ . 'x' x 16_000 }
                                       $zone->new_keys($n == 1 ? 140 : 1)));
            $zone->insist($zone->operation('a checkpoint'));
        }

        return $operation{HUP}->($zone);
    },

    # nginx is reloaded; a process that is stopped keeps its part of it waiting.

    'HUP' => sub {
        my ($zone) = @_;

        # the helper that exits has something to synchronise

        $zone->old_keys(1);

        my $t = $zone->{t};
        my %old = map { $_ => 1 } $t->workers;

        return { act => sub { kill 'HUP', $t->master }, to => {},
                 over => sub {
                     my @new = $t->workers;
                     return @new >= $zone->{workers} && !grep { $old{$_} } @new;
                 } };
    },
);


# Prepares an operation of a zone (BloomTest::Crash::Zone), and returns it.

sub prepare {
    my ($zone, $name) = @_;

    my $function = $operation{$name} // die "no operation '$name'";

    return { name => $name, %{ $function->($zone) } };
}


1;
