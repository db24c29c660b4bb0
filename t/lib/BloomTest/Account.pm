# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Account;

# Keeps an account of the keys of a zone: what each must answer after the
# changes that were acknowledged, and which may answer either because a change
# was not.
#
#   my $account = BloomTest::Account->new(life => 28800);   seconds; or none
#   $account->set(id1 => 1);                 1 for present, 0 for absent
#   $account->begin($change, $now);          a change is sent
#   $account->acknowledge($change, $now);    its response is 200
#   $account->close($change);                it has got no such response
#   my $wrong = $account->wrong($now, \%answers, $unknown);
#
# A change is a hash: `to` has what its keys are after it (undef: either), and
# `whole` is true if all of them are as before it, or all as after it.
#
# A change that was not acknowledged has happened or not.  Which of both it is
# does not change any more once the zone has answered, unless keys expire: no
# start finds a change that was forgotten, or forgets one.

use strict;
use warnings;


sub new {
    my ($class, %option) = @_;

    return bless { %option, must => {}, since => {}, removed => {},
                   flying => [], whole => undef, loose => {} }, $class;
}


sub set {
    my ($self, %must) = @_;

    $self->{must}{$_} = $must{$_} for CORE::keys %must;
}


# A key that is changed answers either, unless it is already as after the
# change. Two changes of a key in different directions at the same time leave it
# open.

sub begin {
    my ($self, $change, $now) = @_;

    my ($must, $to) = ($self->{must}, $change->{to});

    $change->{began} = $now;
    $change->{open} = 1;
    $change->{contended} = {};

    for my $other (@{ $self->{flying} }) {
        $self->_contend($change, $other);
        $self->_contend($other, $change);
    }

    push @{ $self->{flying} }, $change;

    if ($change->{whole}) {
        $change->{before} = { map { $_ => $must->{$_} } CORE::keys %$to };
        $self->{whole} = $change;
        return;
    }

    for my $key (CORE::keys %$to) {
        $self->_set($key, undef) if !_same($must->{$key}, $to->{$key});
        $self->{removed}{$key} = 1 if !$to->{$key};
    }
}


sub acknowledge {
    my ($self, $change, $now) = @_;

    delete $self->{last};

    for my $key (CORE::keys %{ $change->{to} }) {
        my $to = $change->{contended}{$key} ? undef : $change->{to}{$key};

        $self->_set($key, $to);
        $self->{since}{$key} = $change->{began};
        delete $self->{removed}{$key} if $to;
    }

    $change->{open} = 0;
    $self->{whole} = undef if $change->{whole};
    $self->close($change);
}


# Sets what a key must answer, also as before a whole change that is under way.

sub _set {
    my ($self, $key, $must) = @_;

    my $before = $self->{whole} ? $self->{whole}{before} : {};

    $self->{must}{$key} = $must;
    delete $self->{loose}{$key};
    $before->{$key} = $must if exists $before->{$key};
}


sub close {
    my ($self, $change) = @_;

    $self->{flying} = [grep { $_ != $change } @{ $self->{flying} }];

    return if !$change->{open} || $change->{whole} || $self->{life};

    $self->{last} = $change;

    for my $key (CORE::keys %{ $change->{to} }) {
        $self->{loose}{$key} = 1 if defined $change->{to}{$key}
                                    && !defined $self->{must}{$key};
    }
}


# All processes have died: no change is under way.  If the last one was not
# acknowledged, the start may find it, even if the zone has answered as before
# it.

sub all_died {
    my ($self) = @_;

    $self->close($_) for @{ $self->{flying} };

    for my $key (grep { defined $self->{last}{to}{$_} }
                      CORE::keys %{ $self->{last} && $self->{last}{to} || {} })
    {
        $self->{must}{$key} = undef
            if !_same($self->{must}{$key}, $self->{last}{to}{$key});
        $self->{loose}{$key} = 1 if !defined $self->{must}{$key};
    }
}


# Everything is lost that was in memory only, but for keys that are given.

sub forget {
    my ($self, %must) = @_;

    $self->{whole} = undef;
    $self->{removed} = {};
    $self->{loose} = {};
    $_ = undef for values %{ $self->{must} };
    $self->set(%must);
}


sub forget_removals { $_[0]{removed} = {} }

# Keys were lost, and the zone has said so: it may answer "unknown".

sub lose { $_[0]{damaged} = 1 }
sub damaged { return $_[0]{damaged} }


sub all { return sort(CORE::keys %{ $_[0]{must} }) }

sub removed { return sort(CORE::keys %{ $_[0]{removed} }) }

sub present {
    my ($self) = @_;

    return grep { $self->{must}{$_} } $self->all;
}


# Returns the keys whose answers are known at a time, or are going to be.

sub keys {
    my ($self, $now) = @_;

    my $to = $self->{whole} ? $self->{whole}{to} : {};

    return grep { defined $self->_must($_, $now) || exists $to->{$_}
                  || $self->{loose}{$_} }
                $self->all;
}


# Returns the keys with a wrong answer, as text.  An answer is 1, 0 or "?", for
# unknown, which is right only with $unknown.  A change that is done as a whole
# and is no longer under way is from now on as the answers are.

sub wrong {
    my ($self, $now, $answers, $unknown) = @_;

    my @open = grep {
        my $answer = $answers->{$_} // 'none';
        $answer !~ ($unknown ? qr/^[01?]$/ : qr/^[01]$/);
    } $self->keys($now);

    return join ' ', map { "$_ " . ($answers->{$_} // 'none') } @open if @open;

    my $whole = $self->{whole};

    if ($whole) {
        my ($before, $after) = map {
            $self->_unlike($answers, $whole, $_)
        } $whole->{before}, $whole->{to};

        return "neither as before ($before) nor as after ($after)"
            if length $before && length $after;

        if (!grep { $_ == $whole } @{ $self->{flying} }) {
            my $now_is = length $before ? $whole->{to} : $whole->{before};

            $self->set(map { $_ => $whole->{contended}{$_} ? undef
                                                           : $now_is->{$_} }
                           CORE::keys %$now_is);
            $self->{whole} = undef;
            $self->{removed} = {} if length $before;
        }
    }

    $self->_hold($answers) if !$unknown;

    my @wrong = grep {
        my $must = $self->_must($_, $now);
        defined $must && !($whole && exists $whole->{to}{$_})
            && $answers->{$_} ne '?' && $answers->{$_} ne $must;
    } CORE::keys %$answers;

    return join ' ', map { "$_ $answers->{$_}" } sort @wrong;
}


# Changes that were not acknowledged are from now on as the answers are, unless
# another one of the same key is under way.

sub _hold {
    my ($self, $answers) = @_;

    my %flying = map { %{ $_->{to} } } @{ $self->{flying} };

    for my $key (grep { !exists $flying{$_} } CORE::keys %{ $self->{loose} }) {
        $self->_set($key, $answers->{$key});
    }
}


sub _must {
    my ($self, $key, $now) = @_;

    my $must = $self->{must}{$key};

    return if $must && $self->{life} && defined $self->{since}{$key}
              && $now > $self->{since}{$key} + $self->{life} - 5;

    return $must;
}


sub _unlike {
    my ($self, $answers, $whole, $must) = @_;

    return join ' ', map { "$_ $answers->{$_}" } grep {
        defined $must->{$_} && !$whole->{contended}{$_}
            && ($answers->{$_} // '?') ne '?' && $answers->{$_} ne $must->{$_};
    } sort CORE::keys %$must;
}


# Marks the keys of a change that another one changes otherwise at the same
# time. A change that is done as a whole takes all keys.

sub _contend {
    my ($self, $change, $other) = @_;

    for my $key (CORE::keys %{ $change->{to} }) {
        $change->{contended}{$key} = 1
            if exists $other->{to}{$key}
               ? !_same($other->{to}{$key}, $change->{to}{$key})
               : $other->{whole};
    }
}


sub _same {
    my ($one, $other) = @_;

    return defined $one && defined $other && $one == $other;
}


1;
