# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Removals;

# Events of the driver that remove: keys that all images have, so many keys that
# there is no room for further ones, and everything that was added to a zone.
#
# The driver knows for each key of all images whether it was removed, and when.
# An image that was complete after the removal has the key again.

use strict;
use warnings;

use BloomTest::Api;
use BloomTest::Process qw(now wait_until);

use constant {
    REMOVABLE => 100,      # of the keys of all images, base0 to base99
    MARGIN => 3,           # seconds by which times may be wrong
};


# Removes some of the keys that all images have, or adds them again.

sub remove_base {
    my ($self) = @_;

    my $t = $self->{t};
    my @removed = grep { defined $self->{base}{$_}{removed} }
                       sort keys %{ $self->{base} };
    my $again = @removed && rand() < 0.4;
    my @keys = $again ? @removed[map { rand @removed } 1 .. 5]
                      : map { 'base' . int rand REMOVABLE }
                            1 .. 1 + rand(rand() < 0.5 ? 1 : 20);
    my $query = rand() < 0.3 ? '?durable=true' : '';
    my $from = time;
    my $response = $again || @keys > 1 || rand() < 0.5
        ? api($t, POST => 'zones/shield/' . ($again ? 'keys' : 'remove')
                          . $query, body => join '', map { "$_\n" } @keys)
        : api($t, DELETE => "zones/shield/keys?key=$keys[0]");

    $response->status == 200 or die "base keys are not removed: $response\n";

    for (@keys) {
        $self->{base}{$_} = $again ? { added => 1 }
            : { removed => $from, until => time, sure => !$self->{offset} };
    }

    $self->{note}->($again ? 'added' : scalar @keys);
}


# Removes keys until there is no room for more, then adds them again.

sub crowd {
    my ($self) = @_;

    my $t = $self->{t};
    my $zone = rand() < 0.5 ? 'shield' : 'empty';
    my $room = 2 * $self->{removals};      # short keys take half of the room
    my @keys = map { "crowd$_" } 1 .. $room + 10;
    my $body = join '', map { "$_\n" } @keys;
    my $number = $self->{ledger}->begin('crowded');

    my $response = api($t, POST => "zones/$zone/remove", body => $body);
    $response->status == 507 or die "there is room for everything: $response\n";

    my $answer = $response->json;
    my $removed = ($answer->{removed} // 0) + ($answer->{absent} // 0);
    $removed > 0 && $removed <= $room
        or die "without room, $removed keys are removed: $response\n";

    select undef, undef, undef, 0.1;

    # an addition lifts a removal, and so gives room

    $response = api($t, POST => "zones/$zone/keys", body => $body);
    $response->status == 200 or die "crowding keys are not added: $response\n";
    $response = api($t, POST => "zones/$zone/remove", body => "$keys[0]\n");
    $response->status == 200 or die "there is no room again: $response\n";
    $response = api($t, POST => "zones/$zone/test",
                    body => join "\n", @keys[0, 1, $#keys]);

    my @answers = @{ $response->json->{answers} };
    "@answers" eq 'absent present present'
        or die "lost: zone $zone, crowding keys are @answers\n";

    $response = api($t, POST => "zones/$zone/keys", body => "$keys[0]\n");
    $response->status == 200 or die "a crowding key is not added: $response\n";
    $self->{ledger}->end($number);
}


# Notes that earlier removals may be forgotten, because a clock was wrong.

sub forget_removals {
    my ($self) = @_;

    my $from = now();

    $self->{command}->('restore shield');
    $self->{history}->on_all_keys('shield', 'any', $from, now());
    $_->{sure} = 0 for values %{ $self->{base} };
}


# Clears a zone: what was added and removed is forgotten, or only what was
# removed.  Clients forget their own keys afterwards; keys that they share are
# absent, unless they were added meanwhile.

sub clear {
    my ($self) = @_;

    my $t = $self->{t};
    my $zone = rand() < 0.5 ? 'shield' : 'empty';
    my $removed = rand() < 0.4;
    my @marks = map { "mark$self->{count}{events}-$_" } 1, 2;

    $self->{note}->($removed ? "$zone removed" : $zone);

    for (['keys', @marks], ['remove', $marks[1]]) {
        my ($what, @keys) = @$_;
        api($t, POST => "zones/$zone/$what", body => join "\n", @keys)
            ->status == 200 or die "no $what before a clear\n";
    }

    # until the clients have forgotten their keys

    my $number = $self->{ledger}->begin('cleared');
    my $from = now();
    my $response = api($t, POST => "zones/$zone/clear"
                                   . ($removed ? '?only=removed' : ''));
    my $to = now();

    $response->status == 200 or die "a clear of $zone: $response\n";

    # an image has no shared keys, and a removed key may have had its bits set

    $self->{history}->on_all_keys($zone, $removed ? 'any' : 'absent',
                                  $from, $to);
    $self->{command}->("forget $zone");
    $self->{ledger}->end($number);

    my $answers = join ' ', @{ api($t, POST => "zones/$zone/test",
                                   body => join "\n", @marks)
                               ->json->{answers} };

    $answers eq ($removed ? 'present present' : 'absent absent')
        or die "lost: zone $zone, after a clear keys are $answers\n";
    return if $zone ne 'shield';

    $self->{base} = {};
    $self->{forgot}{shield} = 1 if !$removed;
}


# ---- what the driver knows of the keys that all images have ----

# Notes when an image was complete: between two times.  Without `as_of` that is
# when it was built, and never later than its first load.

sub note_truth {
    my ($self, $image) = @_;

    my $now = time;

    $image->{truth} = !defined $image->{as_of} ? $image->{made}
                      : $image->{as_of} <= $now ? [($image->{as_of}) x 2]
                                                : [$now, $now + 120];
    $image->{sure} = !$self->{offset};
    $self->{truths}{$image->{number}} = $image;
}


# Returns the image that serves, if exactly one of the latest does.

sub _image_that_serves {
    my ($self) = @_;

    my @serving = grep {
        $self->{t}->get("/pair?a=pair${_}a&b=pair${_}b")->body eq '1,1,1'
    } grep { $_ > 0 } $self->{image} - 6 .. $self->{image};

    return @serving == 1 ? $self->{truths}{$serving[0]} : undef;
}


# Returns what a key of all images has to be: present, absent, or undef if it
# may be both.

sub base_must_be {
    my ($self, $key, $image) = @_;

    my $what = $self->{base}{$key} or return 'present';
    return 'present' if $what->{added};
    return unless $image && $image->{sure} && $what->{sure} && !$self->{ahead};

    my ($from, $to) = @{ $image->{truth} };

    return 'absent' if $what->{removed} > $to + MARGIN;
    return 'present' if $what->{until} < $from - MARGIN;
    return;
}


# Tests the keys that all images have.

sub check_base {
    my ($self, $count) = @_;

    my $image = $self->_image_that_serves;
    my @keys = map { "base$_" } 0 .. $count - 1;
    my $results = api($self->{t}, POST => 'zones/shield/test',
                      body => join "\n", @keys)->json->{answers};

    for (0 .. $#keys) {
        my $must = $self->base_must_be($keys[$_], $image) // next;
        next if $results->[$_] eq $must;

        my $what = $must eq 'present' ? 'lost' : 'returned';

        $self->{count}{$what}++;
        die "$what: zone shield, key $keys[$_]: of an image, is"
            . " $results->[$_]\n";
    }
}


1;
