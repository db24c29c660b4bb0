# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Expiring;

# Events of the driver that concern zones whose keys expire: another life,
# a reboot of the machine, more keys than there is room for, and a time without
# faults.  It also knows when a zone's clock is so far ahead of the system's that
# nothing expires.
#
# Zone visits has a journal.  Zone tickets has none, and may lose its keys
# whenever nginx starts again.

use strict;
use warnings;

use List::Util qw(max shuffle);

use BloomTest::Api;
use BloomTest::Process qw(now wait_until);
use BloomTest::Zones;

# CAPACITY is for the longest life
use constant { EXPIRING_CAPACITY => 6000, EXPIRING_REMOVALS => 4000,
               FLOOD => 5, GONE => 60, HOUR => 3600, MARGIN => 5 };
use constant EXPIRING => ['visits', 'tickets'];

# expire=
my @lives = (8, 6, 12, 16);
my $longest = max(map { $_ + slice($_) } @lives);
my %wrong = (early => 4, outlived => 3600);

# Returns how long a slice is open: an eighth of a life, and a second at least.

sub slice { return $_[0] / ($_[0] < 8 ? $_[0] : 8) }


sub prepare_expiring {
    my ($self) = @_;

    $self->{lives} = { map { $_ => $lives[0] } @{ +EXPIRING } };
    $self->_note_life('lives', $_) for @{ +EXPIRING };
}


sub _note_life {
    my ($self, $what, $zone) = @_;

    my $expire = $self->{lives}{$zone};

    $self->{ledger}->write($what => $zone, sprintf('%.6f', now()), $expire,
                           slice($expire));
}


# Returns the zones, as parameters of bloom_zone.

sub expiring_zones {
    my ($self) = @_;

    return map {
        my $expire = $wrong{$self->{break}} // $self->{lives}{$_};

        "zone=$_ capacity=" . EXPIRING_CAPACITY . ' fpr=1e-9'
            . " expire=${expire}s removals=" . EXPIRING_REMOVALS
            . ($_ eq 'tickets' ? ' journal=off' : '');
    } @{ +EXPIRING };
}


# Reloads nginx with another life of zone visits.  Both lives may be in effect
# meanwhile.

sub hup_expire {
    my ($self) = @_;

    my $old = $self->{lives}{visits};
    my @others = grep { $_ != $old } @lives;
    my $new = $others[rand @others];

    $self->{note}->("${new}s");
    $self->_in_doubt;
    $self->{lives}{visits} = $new;
    $self->_note_life('lives', 'visits');
    $self->set_up;
    $self->hup;

    $self->{ledger}->write(lived => 'visits', sprintf('%.6f', now()), $old,
                           slice($old));
}


# Kills all processes and starts nginx as if the machine had been booted again.

sub reboot {
    my ($self) = @_;

    my $t = $self->{t};

    $self->_kill(sub {
        $t->kill_all;
        $self->{clock}->reboot;
        $t->run;
    }, '*');
}


# Adds many more keys than there is room for.  They live as long as any, and the
# zone may take other keys for present as long as it has them.

sub flood {
    my ($self) = @_;

    my $t = $self->{t};
    my ($zone) = grep { !$self->{floods}{$_} } shuffle(@{ +EXPIRING });

    return $self->rest if !defined $zone;

    my @keys = map { "flood$self->{count}{events}-$_" }
                   1 .. FLOOD * EXPIRING_CAPACITY;

    $self->{note}->($zone);

    my $number = $self->{ledger}->begin('flood', $zone);
    my $from = now();
    my $response = api($t, POST => "zones/$zone/keys",
                       body => join "\n", @keys);

    $response->status == 200 or die "a flood of keys: $response\n";
    $self->{floods}{$zone} = { from => $from, until => now(), keys => \@keys,
                               number => $number };
    $self->_check_flood($zone);
}


# Tests that no key of a flood expires too early.  The flood is over when its
# keys have expired for the longest life as well: a reload may bring them back
# until then.

sub _check_flood {
    my ($self, $zone) = @_;

    my $flood = $self->{floods}{$zone} or return;
    my ($from, $until) = @$flood{qw(from until)};
    my $ledger = $self->{history}{ledger};
    my $start = now();
    my $response = api($self->{t}, POST => "zones/$zone/test",
                       body => join "\n", @{ $flood->{keys} });
    my $to = now();
    my ($list) = $response->body =~ /"answers":\s*\[(.*?)\]/s;
    my @answers = ($list // '') =~ /"(\w+)"/g;
    my ($least, $most) = $ledger->lives($zone, $from, $to);
    my $age = $start - $until - $ledger->faults($from, $to);
    my @absent = grep { $answers[$_] eq 'absent' } 0 .. $#answers;

    @answers == @{ $flood->{keys} }
        or die "zone $zone, of a flood of keys: $response\n";

    if (@absent && $to - $from < $least
        && !($zone eq 'tickets' && $ledger->emptied($from, $to)))
    {
        $self->{count}{lost}++;
        die "lost: zone $zone, key $flood->{keys}[$absent[0]]: absent ",
            sprintf('%.3f', $to - $from), " s after its addition\n";
    }

    # all but false positives are absent

    if (@absent > 0.9 * @answers) {
        if ($age > $longest) {
            $self->{ledger}->end($flood->{number});
            delete $self->{floods}{$zone};
        }

    } elsif ($age > $most + GONE && !$self->{standing}{$zone}) {
        $self->{count}{outlived}++;
        die "outlived: zone $zone, key $flood->{keys}[0]: of a flood\n";
    }
}


# ---- zones in which nothing expires ----

# Returns whether nothing expires in a zone with this offset of the system's
# clock: the zone has a journal, and its own clock, which has started when the
# system's was right, is more than an hour ahead.

sub _stands {
    my ($zone, $offset) = @_;

    return $zone eq 'visits' && $offset < -HOUR;
}


# Notes before the system's clock jumps that keys will not expire, and so a zone
# will have more of them than it has room for.

sub stand_still {
    my ($self, $offset) = @_;

    for my $zone (grep { _stands($_, $offset) } @{ +EXPIRING }) {
        my $standing = $self->{standing}{$zone} //= {
            number => $self->{ledger}->begin('flood', $zone) };

        delete $standing->{since};
    }
}


# Notes when nothing has stood still for so long that the keys of that time have
# expired, also those of slices that were closed late.

sub _check_standing {
    my ($self, $zone, $absent) = @_;

    my $standing = $self->{standing}{$zone};

    return if !$standing || _stands($zone, $self->{offset});

    my $now = now();
    my $since = $standing->{since} //= $now;
    my $age = $now - $since - $self->{history}{ledger}->faults($since, $now);

    if ($absent && $age > $longest + MARGIN) {
        $self->{ledger}->end($standing->{number});
        delete $self->{standing}{$zone};

    } elsif ($age > $longest + GONE) {
        $self->{count}{outlived}++;
        die "outlived: zone $zone takes keys for present that were never added,"
            . " $age s after its clock was right again\n";
    }
}


# Lets more than the longest life of a key pass without faults.

sub rest {
    my ($self) = @_;

    my ($wait) = sort { $b <=> $a } map {
        $self->{lives}{$_} + slice($self->{lives}{$_});
    } @{ +EXPIRING };

    select undef, undef, undef, $wait + 5;
}


# Tests that the zones know everything, and that they take no key for present
# that was never added.

sub check_expiring {
    my ($self) = @_;

    my $t = $self->{t};

    for my $zone (@{ +EXPIRING }) {
        my $time = now();
        my $answer = ask_until_known($t, $zone, map { "nobody$_" } 1 .. 20);

        $answer =~ tr/0// >= 15
            || $self->{history}{ledger}->flooded($zone, $time, now())
            or die "zone $zone, of keys that were never added: $answer\n";

        $self->_check_standing($zone, $answer !~ /1/);
    }

    $self->_check_flood($_) for @{ +EXPIRING };
}


# ---- for the checker's own test ----

# Keys live for four seconds or an hour, and the checker does not know it.

sub break_early {
    my ($self) = @_;

    # until a command dies of what a client finds

    wait_until(sub {
        $self->{command}->('verify all');
        select undef, undef, undef, 0.2;
        return 0;
    }, 40);
}


sub break_outlived { $_[0]->break_early }


1;
