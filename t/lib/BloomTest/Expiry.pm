# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Expiry;

# Tests zones whose keys expire: lets injected time pass, and keeps a ledger that
# says until when each key is present for sure, and since when it is absent.
#
#   my $time = BloomTest::Expiry->new($t, $clock);    the configuration has a
#                                                     zone `tick`, with a journal
#   $time->passes(3600);                 the helper keeps up
#   my $ledger = $time->ledger('ids', life => 8 * 3600, slices => 8);
#   $ledger->add(['a', 'b']);            by the endpoint
#   $ledger->add(['c'], by => 'bloom_add');
#   $ledger->remove(['a']);
#   $ledger->check('after a restart');   an assertion
#   $ledger->change(life => 3600, slices => 4);
#   $ledger->prolong(600);               lives may be so much longer
#   $ledger->lead(600);                  the zone's clock gets so much further
#                                        ahead of the system's
#   $ledger->forget;                     the zone is empty now
#
# Times are seconds since the real machine was booted, plus the time that has
# passed by the injected clock.

use strict;
use warnings;

use Carp qw(croak);
use Test::More ();
use Time::HiRes qw(clock_gettime);

use BloomTest::Process qw(wait_until);
use BloomTest::Zones qw(ask);

use constant {
    CLOCK_BOOTTIME => 7,        # Linux

    # The helper looks after the zone in each step.  It closes a slice up to a
    # step late, and drops it up to a step late.  The rest is for a busy machine.
    STEP => 600,
    LATE => 2 * 600 + 300,

    # Nothing expires by a clock that is further ahead of the system's.  Then no
    # slice becomes ready, and the open one is closed late.
    LEAD => 3600,
};


sub new {
    my ($class, $t, $clock) = @_;

    return bless { t => $t, clock => $clock }, $class;
}


sub now {
    my ($self) = @_;

    return clock_gettime(CLOCK_BOOTTIME) + $self->{clock}{passed};
}


# Lets time pass in steps.  When the journal of the zone `tick` has been
# synchronised twice, the helper has looked after all zones in between.

sub passes {
    my ($self, $seconds) = @_;

    while ($seconds > 0) {
        my $step = $seconds < STEP ? $seconds : STEP;

        $self->{clock}->pass_all($step);
        $seconds -= $step;
        $self->settle;
    }
}


sub settle {
    my ($self) = @_;

    my $last;

    for (1 .. 2) {
        wait_until(sub {
            $last = $self->{t}->request(
                POST => '/bloom/zones/tick/keys?durable=true',
                body => "tick\n");
            return $last->status == 200;
        }) or croak "the helper does nothing: $last";
    }
}


sub ledger {
    my ($self, $zone, %option) = @_;

    return bless {
        t => $self->{t}, time => $self, zone => $zone, key => {}, lead => 0,
        %option,
    }, 'BloomTest::Expiry::Ledger';
}


package BloomTest::Expiry::Ledger;

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Zones qw(ask_until_known);


# Adds keys.  Each was added at some time between `from` and `to`.

sub add {
    my ($self, $keys, %option) = @_;

    my ($t, $zone) = @$self{qw(t zone)};
    my $from = $self->{time}->now;

    if (($option{by} // '') eq 'bloom_add') {
        my @bad = grep { $_->status != 200 }
                       $t->pipeline(map { "/add/$zone?k=$_" } @$keys);
        croak "bloom_add fails: $bad[0]" if @bad;

    } else {
        my $response = $t->request(
            POST => "/bloom/zones/$zone/keys"
                    . ($option{durable} ? '?durable=true' : ''),
            body => join '', map { "$_\n" } @$keys);
        croak "keys are not added: $response" if $response->status != 200;
    }

    my $to = $self->{time}->now;

    $self->{key}{$_} = { from => $from, to => $to, extra => 0,
                         must => $from + $self->{life} } for @$keys;
}


sub remove {
    my ($self, $keys) = @_;

    my $response = $self->{t}->request(
        POST => "/bloom/zones/$self->{zone}/remove", body => join "\n", @$keys);
    croak "keys are not removed: $response" if $response->status != 200;

    $self->{key}{$_}{removed} = 1 for @$keys;
}


sub known_keys {
    my ($self) = @_;

    my @keys = sort keys %{ $self->{key} };

    return @keys;
}


# Changes how long a key lives.  A key that has expired may come back.

sub change {
    my ($self, %option) = @_;

    my $now = $self->{time}->now;

    @$self{qw(life slices)} = @option{qw(life slices)};

    for (values %{ $self->{key} }) {
        next if $_->{removed};

        $_->{must} = $_->{must} > $now ? $_->{from} + $self->{life} : 0;
    }
}


sub prolong {
    my ($self, $seconds) = @_;

    $_->{extra} += $seconds for values %{ $self->{key} };
}


sub lead {
    my ($self, $seconds) = @_;

    $self->prolong($self->late);
    $self->{lead} += $seconds;
    $self->{since} = $self->{time}->now;
}


# Returns for how long the zone's clock has been too far ahead.

sub late {
    my ($self) = @_;

    return $self->{lead} > BloomTest::Expiry::LEAD
           ? $self->{time}->now - $self->{since} : 0;
}


sub forget {
    my ($self) = @_;

    @$self{qw(key lead)} = ({}, 0);
}


# Returns since when a key is absent.

sub absent_since {
    my ($self, $key) = @_;

    my $late = $self->late;

    $late += $self->{lead} - BloomTest::Expiry::LEAD if $late;

    return $key->{to} + $self->{life} * (1 + 1 / $self->{slices})
           + BloomTest::Expiry::LATE + $key->{extra} + $late;
}


# Tests the answers about all keys.  Returns whether they are right.

sub check {
    my ($self, $name) = @_;

    my @keys = $self->known_keys;
    my $before = $self->{time}->now;
    my @answers = split //, ask_until_known($self->{t}, $self->{zone}, @keys);
    my $after = $self->{time}->now;
    my %seen = (present => 0, absent => 0, removed => 0);
    my @wrong;

    for my $i (0 .. $#keys) {
        my $key = $self->{key}{$keys[$i]};
        my $wanted = $key->{removed} ? 'removed'
                     : $after < $key->{must} ? 'present'
                     : $before > $self->absent_since($key) ? 'absent' : next;

        $seen{$wanted}++;
        push @wrong, sprintf '%s: %s instead of %s, %d s after it was added',
                             $keys[$i], $answers[$i] // 'nothing', $wanted,
                             $before - $key->{to}
            if ($answers[$i] // '') ne ($wanted eq 'present' ? '1' : '0');
    }

    $self->{seen}{$_} += $seen{$_} for keys %seen;

    Test::More::is("@wrong[0 .. ($#wrong < 3 ? $#wrong : 3)]", '',
                   "zone $self->{zone}: each key lives as long as it should,"
                   . " $name");

    return !@wrong;
}


# Forgets keys that are absent for sure, so that asking stays quick.

sub prune {
    my ($self) = @_;

    my $now = $self->{time}->now;

    for ($self->known_keys) {
        my $key = $self->{key}{$_};

        delete $self->{key}{$_}
            if !$key->{removed} && $now > $self->absent_since($key) + 86400;
    }
}


1;
