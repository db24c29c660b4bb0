# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Upgrades;

# Adds and removes keys of zones before, during and after an upgrade of nginx,
# and tests that no acknowledged change is lost.
#
#   my $keys = BloomTest::Upgrades->new($t, ids => ['id1'], seen => []);
#   $keys->change;                      adds keys to each zone, and removes some
#   $keys->none_is_absent('while both run');
#   $keys->all_is_known('after the upgrade');

use strict;
use warnings;

use Carp qw(croak);
use Test::More ();

use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $next = 0;


# The zones have these keys at first.

sub new {
    my ($class, $t, %keys) = @_;

    return bless { t => $t, in => { %keys },
                   out => { map { $_ => [] } keys %keys } }, $class;
}


sub zones { return sort keys %{ $_[0]{in} } }


sub add_some {
    my ($self) = @_;

    for my $zone ($self->zones) {
        my @keys = map { 'key' . $next++ } 1 .. 20;

        add($self->{t}, $zone, \@keys);
        push @{ $self->{in}{$zone} }, @keys;
    }
}


# Removes a key of the image or an early one, and one that was just added.

sub remove_some {
    my ($self) = @_;

    for my $zone ($self->zones) {
        my $in = $self->{in}{$zone};
        my @keys = (shift @$in, pop @$in);
        my $response;

        # just after a start, the journal may have no room for removals yet

        wait_until(sub {
            $response = api($self->{t}, POST => "zones/$zone/remove",
                            body => join "\n", @keys);
            return $response->status == 200;
        }) or croak "keys are not removed: $response";

        push @{ $self->{out}{$zone} }, @keys;
    }
}


sub change {
    my ($self) = @_;

    $self->add_some;
    $self->remove_some;
}


# Both nginxes may answer: each connection may reach either.

sub none_is_absent {
    my ($self, $name) = @_;

    for my $zone ($self->zones) {
        my $answers = join '', map {
            scalar ask($self->{t}, $zone, @{ $self->{in}{$zone} })
        } 1 .. 6;

        Test::More::unlike($answers, qr/0/,
                           "no key of zone $zone is absent $name");
    }
}


# A removed key may be present until the instance that answers has applied the
# removals of the other one.

sub all_is_known {
    my ($self, $name) = @_;

    for my $zone ($self->zones) {
        my ($in, $out) = ($self->{in}{$zone}, $self->{out}{$zone});
        my $wanted = '1' x @$in . '0' x @$out;
        my $answers;

        wait_until(sub {
            $answers = ask($self->{t}, $zone, @$in, @$out);
            return $answers eq $wanted;
        });

        Test::More::is(
            $answers, $wanted,
            "zone $zone has the added keys and lacks the removed ones $name");
    }
}


1;
