# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Feedback;

# Events of the driver that concern zones with excepted keys: their images are
# loaded, and excepted keys are forgotten.
#
# Zone goods has an image, and zone items starts empty.  Both have as many keys
# as make many false positives: the "stock", which the image of goods has, and
# which the driver adds to items.

use strict;
use warnings;

use BloomTest::Api;
use BloomTest::Process qw(wait_until);

use Chaos::Rows;

use constant { STOCK => 15_000, CAPACITY => 25_000, FEEDBACK_REMOVALS => 2000,
               PORT => 8081 };
use constant FEEDBACK => ['goods', 'items'];


sub prepare_feedback {
    my ($self) = @_;

    my $t = $self->{t};

    push @{ $t->{backends} }, Chaos::Rows->new(
        dir => $t->testdir, port => $t->port(PORT), zones => FEEDBACK);
    $self->{excepted} = { map { $_ => { now => 0, sum => 0 } } @{ +FEEDBACK } };
    $self->_install_goods($self->_make_goods);
}


# Returns the zones, as parameters of bloom_zone.

sub feedback_zones {
    my $removals = 'removals=' . FEEDBACK_REMOVALS;

    # the image of a zone that is loaded back may have many removed keys, for
    # which a zone of the default size has no room

    return ("zone=goods:4m file=goods.bloom $removals",
            'zone=items capacity=' . CAPACITY . " fpr=0.1 $removals");
}


# Returns the locations in front of the backend.

sub feedback_locations {
    return map { my $port = PORT; <<"CONF" } @{ +FEEDBACK };
        location = /of/$_ {
            bloom_reject absent \$arg_k zone=$_;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_$port%%;
        }
CONF
}


# Adds the stock to zone items.

sub add_stock {
    my ($self) = @_;

    my $response = api($self->{t}, POST => 'zones/items/keys',
                       body => join '', map { "stock$_\n" } 1 .. STOCK);

    $response->status == 200 or die "stock is not added: $response\n";
}


sub _make_goods {
    my ($self) = @_;

    my $name = 'goods' . ++$self->{goods} . '.bloom';
    my $last = $self->{t}->testdir . '/goods' . ($self->{goods} - 2) . '.bloom';

    $self->{t}->build_image($name, [map { "stock$_" } 1 .. STOCK], '-p', 0.1,
        '-n', CAPACITY, '--layout', $self->random_layout);
    unlink $self->{t}->testdir . "/$name.keys", $last;

    return $name;
}


sub _install_goods {
    my ($self, $name) = @_;

    my $dir = $self->{t}->testdir;

    unlink "$dir/new";
    link "$dir/$name", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/goods.bloom" or die "rename: $!";
}


# Loads the image of zone goods again, another one, or the zone's own.

sub load_goods {
    my ($self) = @_;

    my $t = $self->{t};
    my $how = (qw(again again other other upload back checkpoint hup start))
              [rand 9];

    # the image would have a time in the future

    $how = 'other' if $how eq 'back' && $self->{offset};
    $self->{note}->($how);
    $self->_install_goods($self->_make_goods) if $how =~ /^(?:other|hup|start)/;

    return $self->hup if $how eq 'hup';
    return $self->kill_all if $how eq 'start';

    my $name = $how eq 'upload' ? $self->_make_goods : '';
    my $got = $how eq 'back' ? api($t, GET => 'zones/goods/image') : undef;

    my $zone = FEEDBACK->[rand 2];
    my $response
        = $how eq 'upload' ? api($t, PUT => 'zones/goods/image',
                                 body => $t->read_file($name))
        : $how eq 'back' ? api($t, PUT => 'zones/goods/image',
                               body => $got->body)
        : $how eq 'checkpoint' ? api($t, POST => "zones/$zone/checkpoint")
        : api($t, POST => 'zones/goods/reload');

    $response->status == 200 or die "goods, $how: $response\n";
    $self->{count}{reloads}++ if $how ne 'checkpoint';
}


# Forgets excepted keys, or removed ones, or all that was added, too.  Clients
# forget their keys only in the last two cases.

sub forget_excepted {
    my ($self) = @_;

    my $zone = FEEDBACK->[rand 2];
    my $what = (('?only=excepted') x 6, '?only=removed', '')[rand 8];

    $self->{note}->("$zone$what");
    $self->_forget($zone, $what);
}


sub _forget {
    my ($self, $zone, $what) = @_;

    my $t = $self->{t};
    my $number = $what eq '?only=excepted' ? undef
                                          : $self->{ledger}->begin('cleared');
    my $response = api($t, POST => "zones/$zone/clear$what");

    $response->status == 200 or die "a clear of $zone: $response\n";
    return if !defined $number;

    $self->{command}->("forget $zone");
    $self->add_stock if $zone eq 'items';
    $self->{ledger}->end($number);
}


# Tests that the zones know everything again and have their stock, and counts
# excepted keys.  The counter of a zone begins again when nginx starts.  Restores
# removed keys before they need all the room: the images of goods have no as_of,
# so that no load makes room.

sub check_feedback {
    my ($self) = @_;

    my $t = $self->{t};
    my @keys = map { 'stock' . (1 + int rand STOCK) } 1 .. 300;

    for my $zone (@{ +FEEDBACK }) {
        my @answers;

        wait_until(sub {
            @answers = @{ api($t, POST => "zones/$zone/test",
                              body => join "\n", @keys)->json->{answers} };
            return !grep { $_ eq 'unknown' } @answers;
        }) or die "zone $zone stays unknown\n";

        my ($lost) = grep { $answers[$_] eq 'absent' } 0 .. $#keys;

        if (defined $lost) {
            $self->{count}{lost}++;
            die "lost: zone $zone, key $keys[$lost]: is absent\n";
        }

        $self->_count_excepted($zone);

        my $room = zone_state($t, $zone)->{removals};

        $self->_forget($zone, '?only=removed')
            if $room->{count} - $room->{excepted} > $room->{limit} / 4;
    }
}


sub _count_excepted {
    my ($self, $zone) = @_;

    my $excepted = $self->{excepted}{$zone};
    my $count = zone_state($self->{t}, $zone)->{feedback}{excepted};

    $excepted->{sum} += $count < $excepted->{now} ? $count
                                                : $count - $excepted->{now};
    $excepted->{now} = $count;
}


# Returns how many keys the zones have excepted.

sub excepted {
    my ($self) = @_;

    my $sum = 0;
    $sum += $_->{sum} for values %{ $self->{excepted} };

    return $sum;
}


# Waits until each zone has excepted a key.

sub await_feedback {
    my ($self) = @_;

    for my $zone (@{ +FEEDBACK }) {
        wait_until(sub {
            $self->_count_excepted($zone);
            return $self->{excepted}{$zone}{sum} > 0;
        }) or die "zone $zone excepts no key\n";
    }
}


# ---- for the checker's own test ----

# Takes all rows from the backend, and the memory of recent additions from the
# zones.

sub break_rows {
    my ($self) = @_;

    truncate $_, 0 or die "$_: $!\n"
        for glob $self->{t}->testdir . '/client.*.rows.*';
    $self->kill_all;

    # clients ask until a command dies of what was lost

    wait_until(sub {
        $self->{command}->('ask_all');
        $self->{command}->('verify all');
        return 0;
    });
}


sub break_excepted { $_[0]{command}->('mistake goods') }


1;
