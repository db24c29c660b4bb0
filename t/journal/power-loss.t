#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The machine loses power during changes of zones.  The kernel may have written
# any part of what was not synchronised.  Durable changes are kept, and of all
# others a prefix: never a later change of a zone without an earlier one.  What
# a loss took away does not come back after another one.
#
# Each row of the table is run once, while everything that reaches the disk is
# recorded.  Then the directory is made as each loss leaves it, and nginx is
# started.  POWER_LOSS_SEED repeats the choices, POWER_LOSS_STATES is the number
# of random states of each row, and POWER_LOSS_ROWS is a pattern of names of
# rows.

use strict;
use warnings;

use List::Util qw(first);

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Clock;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Durable;
use BloomTest::Expiry;
use BloomTest::Journal;
use BloomTest::PowerLoss;
use BloomTest::Process qw(wait_until);

$ENV{TEST_NGINX_SANITIZED}
    and plan(skip_all => 'it starts nginx hundreds of times: run it without'
                         . ' sanitizers');

my $seed = $ENV{POWER_LOSS_SEED} // time ^ $$;
my $states = $ENV{POWER_LOSS_STATES} // 4;

diag("POWER_LOSS_SEED=$seed");
srand $seed;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'disk/state');
my $power = BloomTest::PowerLoss->new($t, 'disk');
my $clock = BloomTest::Clock->new($t);
my $zones = BloomTest::Durable->new($t, 'disk', disk => $power,
                                    mark => sub { $power->mark });


# The losses: each returns a function that chooses a version of each item.
# Power is lost at the end of the record; or, if numbers follow, at a random
# moment for each of them.

sub is_control { return $_[0]{file} && $_[0]{file}{name} =~ /^control/ }
sub is_page { return $_[0]{kind} eq 'page' && !is_control($_[0]) }
sub newest { return $#{ $_[0]{versions} } }
sub some { return int rand @{ $_[0]{versions} } }
sub only { my ($what) = @_; return sub { $what->($_[0]) ? newest(@_) : 0 } }
sub all_but { my ($what) = @_; return sub { $what->($_[0]) ? 0 : newest(@_) } }

sub one {
    my (@items) = grep { is_page($_) } @_;
    my $item = $items[rand @items];

    return sub { $item && $_[0] == $item };
}

my @losses = (
    ['nothing is written that was not synchronised', sub { sub { 0 } }],
    ['everything is written', sub { \&newest }],
    ['all but names are written', sub { all_but(sub { !$_[0]{file} }) }],
    ['all but sizes are written',
     sub { all_but(sub { $_[0]{kind} eq 'size' }) }],
    ['all but the control page is written', sub { all_but(\&is_control) }],
    ['only the control page is written', sub { only(\&is_control) }],
    ['all but the first page of data is written', sub {
        my $first = first { is_page($_) } @_;
        all_but(sub { $first && $_[0] == $first });
    }],
    ['of all data only the last page is written', sub {
        my ($last) = grep { is_page($_) } reverse @_;
        all_but(sub { is_page($_[0]) && $_[0] != $last });
    }],
    ['all but one page of data is written', sub { all_but(one(@_)) }, 1, 2],
    ['one page of data is torn', sub {
        my $torn = one(@_);
        sub {
            $torn->($_[0]) ? [0, newest(@_), undef, int rand 4096]
                           : newest(@_);
        };
    }, 1, 2],
    ['any part is written', sub {
        my $tears = int rand 2;
        sub {
            my $choice = (0, newest(@_), some(@_))[rand 3];

            $tears && $_[0]{kind} eq 'page' && rand() < 0.5
                ? [$choice, some(@_), int rand 256] : $choice;
        };
    }, 1 .. $states],
);


# The disk may also lose what it said that it has: pages of the journal.  The
# control page is there, and says what was synchronised.  The disk may be full
# when nginx notices that.

my @lies = (
    ['the last page of the journal that was synchronised is gone', sub {
        my ($last) = grep { is_page($_) } reverse @_;
        all_but(sub { $last && $_[0] == $last });
    }, 1, 2],
    ['a page of the journal that was synchronised is gone',
     sub { all_but(one(@_)) }, 1, 2],
    ['nothing of the journal that was synchronised is there',
     sub { all_but(\&is_page) }, 1, 2],
    ['pages of the journal that were synchronised are older',
     sub { sub { is_page($_[0]) ? some(@_) : newest(@_) } }, 1 .. $states],
);


# Puts the directory in the place of the one that a loss at a moment leaves, and
# checks it.  Returns the problems, with what was lost.

my $count = 0;

sub lose {
    my ($moment, $loss, %option) = @_;

    my $state = $power->at($moment, lies => $option{lies});
    my $lost = $state->restore($loss->($state->items));

    $clock->reboot;
    $power->begin if $option{runs};
    $disk->refuse('ENOSPC', @{ $option{full} }) if $option{full};
    my @problems = $zones->check($moment, once => $count++ % 3, %option,
                                  lies => $option{lies} || $option{refused},
                                  started => sub { $disk->allow });

    $t->kill_all if $t->master && (@problems || !$option{runs});

    return map { "moment $moment, lost: $lost\n$_" } @problems;
}

# Returns a moment of the last record, more often a late one, and none before
# the mark $since.

my $since;

sub moment {
    my $all = $power->moments;
    my $some = $all - (defined $since ? $power->moment($since) : 0);

    return $all - int rand(rand() < 0.5 ? $some : $some / 4);
}


# Runs the changes, and ends the record with a loss of power.

sub record {
    my (@changes) = @_;

    for (@changes) {
        ref eq 'CODE' ? $_->() : $zones->run(@$_);
    }

    $power->mark;
    $t->kill_all;
    $power->end;
    $zones->moments(sub { $power->moment($_[0]) });
}


# A row is: a name, the kinds of zones, the changes, and options: `then`, the
# changes between a first and a second loss; `at`, the moment of losses that
# are not at random moments; `losses` and `lies`, further losses; `prepare`,
# what the zones have before; `fresh`, they have no durable key before;
# `refused`, the disk refuses a key, which is a loss that no start forgets.

my %lies = map { $_ => \@lies } 'durable additions', 'a checkpoint',
                                'further segments';

my @rows = (
    map({ [@$_, lies => $lies{$_->[0]}] } sequences()),

    ['the first changes of a zone', ['image'],
     [[add => 'a'], [add => long('b')], [add => long('c')], [add => 'd']],
     fresh => 1],

    ['the creation of a zone', ['empty'],
     [[durable => 'a'], [add => 'b']], fresh => 1,
     prepare => sub { rmdir $t->testdir . '/disk/state/empty' }],

    ['the loads of images that mv has brought', ['image'],
     [[move => 'id1', 'image1'], [move => 'id1', 'image2'],
      \&segment_is_removed, [add => 'a']],
     at => sub { $_[0]{what} eq 'remove' && $_[0]{path} =~ /journal/ },
     prepare => \&old_segment],

    ['a clear behind an image that mv has brought', ['image'],
     [[durable => 'a'], [move => 'id1', 'image1'], [clear => ],
      sub { $since = $power->mark }, [add => 'b'], [durable => 'c']]],

    ['an upload behind an image that mv has brought', ['image'],
     [[durable => 'a'], [move => 'id1', 'image1'], [upload => 'id1', 'image2'],
      sub { $since = $power->mark }, [add => 'b'], [durable => 'c']],
     at => sub { $_[0]{what} eq 'mark' && $_[0]{at} == $since }],

    ['a key for which the disk has no room', ['empty'],
     [[durable => 'a'], sub { $disk->refuse('ENOSPC', qw(grow rename)) },
      [bloom_add => 'b'], sub { $disk->allow }, [durable_remove => 'b'],
      [durable => 'c']]],

    ['a key that the disk refuses', ['empty'],
     [[durable => 'a'], sub { $disk->refuse('EIO', 'write') },
      [bloom_add => 'b'], sub { $disk->allow }, [durable_remove => 'b'],
      [durable => 'c']],
     refused => 1],

    ['a synchronisation', ['empty'],
     [[add => 'a'], [add => long('b', 'c')], [add => 'd'], [synchronised => ]],
     at => sub { $_[0]{what} eq 'begin' && $_[0]{path} =~ /journal/ }],
);


my $names = $ENV{POWER_LOSS_ROWS} // '';

for my $row (grep { $_->[0] =~ /$names/ } @rows) {
    my ($name, $kinds, $changes, %option) = @$row;

    subtest "power is lost during $name" => sub {

        $t->expect_log(qr/\[alert\].*could not write added keys/)
            if $option{refused};

        $zones->begin(@$kinds);
        $since = undef;
        $option{prepare}->() if $option{prepare};
        $zones->first_keys if !$option{fresh};
        $power->begin;
        $t->run;
        record(@$changes);

        my $at = $option{at} ? $power->last_moment($option{at})
                             : $power->moments;

        for (@losses, @{ $option{losses} // [] }) {
            my ($what, $loss, @times) = @$_;

            is(join("\n", map { lose($_, $loss, %option) }
                              @times ? map { moment() } @times : $at), '',
               "all promises are kept when $what");
        }

        # a start that lowers the position of a checkpoint renames it

        my $full = $name =~ /checkpoint/ ? ['grow'] : ['grow', 'rename'];

        for (@{ $option{lies} // [] }) {
            my ($what, $loss, @times) = @$_;

            is(join("\n", map {
                lose(moment(), $loss, %option, lies => qr/^journal/,
                     $_ % 2 ? (full => $full) : ());
            } @times), '', "nothing that is lost is absent when $what");
        }

        says_that_it_ends() if $name eq 'additions';

        is(join("\n", lose_again(%option)), '',
           'nothing that was lost comes back after a second loss');
    };
}


# Loses the first one of two pages of a journal that were not synchronised, at
# the last moment at which the second one has a record.

sub says_that_it_ends {
    for my $moment (reverse 1 .. $power->moments) {
        my $before = first_of_two($power->at($moment)->items) or next;

        lose($moment, sub {
            all_but(sub { is_page($_[0])
                          && called($_[0]) eq called($before) });
        });
        last if $zones->{log} =~ /\[notice\].*lacks additions/;
    }

    like($zones->{log}, qr/\[notice\].*lacks additions that were not on disk/,
         'the log says that the journal ends before a gap');
}

sub called { return "$_[0]{file}{zone} $_[0]{file}{name} $_[0]{page}" }

sub first_of_two {
    my @pages = grep { is_page($_) } @_;

    return first {
        my $page = $_;
        grep { $_->{file} == $page->{file} && $_->{page} > $page->{page} }
             @pages;
    } @pages;
}


# The first image covers nothing, and the others cover a segment, which may go
# when both are on disk.  Nobody but nginx has synchronised them.  Before it
# has, a start may find a damaged image.

sub old_segment {
    my $now = time;
    my $dir = $t->testdir . '/disk/state/image';
    my $old = BloomTest::Journal->new(created => ($now - 7200) * 1000);

    $old->append(['old'], time => ($now - 7200) * 1000);
    my $new = $old->next_segment(created => $now * 1000);
    $new->append(['new'], time => $now * 1000);
    $zones->{as_of} = $now;

    for ($old, $new) {
        my $name = sprintf 'disk/state/image/journal.%016x', $_->{base};

        $t->write_file($name, $_->segment);
    }

    write_base("$dir/base", journal => $old->{journal});
    new_control("$dir/control", journal => $old->{journal});
}

sub segment_is_removed {
    my $segment = $t->testdir . '/disk/state/image/journal.' . '0' x 16;

    wait_until(sub { !-e $segment })
        or die 'no segment is removed';
    delete $zones->{as_of};
    $since = $power->mark;
}

# Loses power twice, with other changes in between.  Returns the problems.

sub lose_again {
    my (%option) = @_;

    my $changes = $option{then} // [[durable => 'second1'], [add => 'second2'],
                                    [durable => 'second3'], [add => 'second4']];
    my @problems = lose(moment(), $losses[-1][1], %option, once => 1,
                        runs => 1);

    return "first loss: @problems" if @problems;

    $zones->settle;
    $since = undef;
    record(@$changes);

    return map { lose(moment(), $_->[1], %option) } @losses[0, 4, 5, -1, -1];
}


# The control page, with the clock of the zone, is older than the journal.

subtest 'keys live as long as they should after a loss of power' => sub {
    my $hour = 3600;
    my $time = BloomTest::Expiry->new($t, $clock);

    $zones->begin('expiring', 'tick');
    $zones->first_keys;
    $power->begin;
    $t->run;

    my $ledger = $time->ledger('expiring', life => 8 * $hour, slices => 8);

    $ledger->add(['a']);
    $time->passes($hour / 2);
    $ledger->add(['b'], durable => 1);
    $time->passes($hour / 4);
    $ledger->add(['c'], durable => 1);
    record();

    my $state = $power->at($power->moments);
    $state->restore(all_but(\&is_control));
    $clock->reboot;
    $t->run;

    # the time since the page was written has not passed for the clock

    $ledger->prolong($hour);
    $ledger->check('after the start');

    for (1 .. 7) {
        $time->passes($hour);
        $ledger->check("$_ hours later");
    }

    $time->passes($hour - 120);
    $ledger->check('at the end of their lives');
    $time->passes(4 * $hour);
    $ledger->check('after their lives');
    $t->stop;
};


done_testing;
