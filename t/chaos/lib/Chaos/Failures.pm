# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Failures;

# Events: failures.  The disk is full while nginx is reloaded, stopped or
# upgraded; keys are lost because of it; a load needs more memory than there is;
# the clock jumps.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Process qw(now wait_until alive children title);
use BloomTest::Zones;

use Chaos::Feedback;

use constant { HOUR => 3600, ZONES => ['shield', 'empty'],
               HELPER_NEEDS => 3 << 20 };


# ---- commands that nginx may refuse ----

# Reloads.  If nginx refuses, the earlier configuration serves on.

sub _try_hup {
    my ($self, $size) = @_;

    my $t = $self->{t};
    my $before = $self->{size};
    my @old = $t->workers;
    my $outcome;

    $self->_in_doubt if $size;
    $self->{size} = $size if $size;
    $self->set_up;
    $self->_quit(sub {
        ($outcome) = $t->try_reload(limit => 90);
        wait_until(sub { !grep { alive($_) } @old }, 60)
            or die "workers do not end after a reload: @old\n"
            if $outcome eq 'reloads';
    }, @old);

    $self->{note}->($outcome);
    $outcome =~ /^(?:reloads|refused)$/
        or die "a reload of nginx: the master $outcome\n";

    if ($outcome eq 'refused') {
        $self->{size} = $before;
        $self->set_up;
    }
}


sub _other_size {
    my ($self) = @_;

    my @sizes = grep { $_ ne $self->{size} } @{ $self->{sizes} };

    return $sizes[rand @sizes];
}


# Starts nginx.  If it refuses, repairs the cause; then it must start.

sub _try_start {
    my ($self, $repair) = @_;

    my $t = $self->{t};
    my ($outcome, $log) = $t->try_run(limit => 90);

    return if $outcome eq 'starts';

    $self->{note}->($outcome);
    $outcome eq 'refused' or die "a start of nginx: it $outcome\n$log\n";
    $repair->();
    $t->run;
}


# Upgrades nginx.  The new master may refuse to start.

sub _try_upgrade {
    my ($self) = @_;

    my $t = $self->{t};
    my $mark = $t->log_mark;

    $self->_in_doubt;
    my $number = $self->{ledger}->begin('anew');
    if (eval { $t->upgrade_begin }) {
        $self->{command}->('verify unknown');
        $self->_quit(sub { $t->upgrade_finish }, $t->workers);
        $self->{ledger}->end($number);
        return;
    }

    die $@ if $t->log_since($mark) !~ /\[emerg\]/;

    $self->{note}->('refused');
    wait_until(sub {
        !-e $t->testdir . '/nginx.pid.oldbin'
        && !grep { title($_) =~ /^nginx: master/ } children($t->master);
    }) or die "the old master is not alone after a refused upgrade:\n"
              . substr($t->log_since($mark), -3000) . "\n";
    $self->{ledger}->end($number);
}


# Does one of the things that make nginx read or leave its state.

sub _across {
    my ($self, $repair) = @_;

    my $t = $self->{t};
    my $how = (qw(stop hup hup_size upgrade kill_all))[rand 5];
    my $mark = $t->log_mark;

    $self->{note}->($how);

    if ($how eq 'hup') {
        $self->_try_hup;

    } elsif ($how eq 'hup_size') {
        $self->_try_hup($self->_other_size);

    } elsif ($how eq 'upgrade') {
        $self->_try_upgrade;

    } else {
        $self->_kill(sub {
            $how eq 'stop' ? $t->stop : $t->kill_all;
            $self->_try_start($repair);
        }, '*');
    }

    $t->excuse_log($mark);
}


# ---- the disk ----

# A full disk does not take what is prepared.

sub _fill {
    my ($self) = @_;

    my @what = rand() < 0.5 ? ('grow') : qw(grow rename);

    $self->{note}->("@what");
    $self->{disk}->refuse('ENOSPC', @what);
}


# Tests that both zones take additions and have all keys once there is room
# again.

sub _has_room {
    my ($self) = @_;

    my $t = $self->{t};

    for my $zone (@{ +ZONES }, @{ +Chaos::Feedback::FEEDBACK }, 'visits') {
        wait_until(sub {
            return api($t, POST => "zones/$zone/keys?durable=true",
                       body => "room\n")->status == 200;
        }) or die "zone $zone takes no additions with room on the disk\n";

        # during an upgrade two masters have workers; several requests likely
        # reach both

        my $lost;
        wait_until(sub {
            my @journals = map { zone_state($t, $zone)->{journal} } 1 .. 8;
            ($lost) = grep { $_ } map { $_->{lost_keys} } @journals;
            return !grep { $_->{owing_workers} } @journals;
        }) or die "zone $zone still keeps keys with room on the disk\n";
        die "zone $zone had no room for all keys: $lost lost\n" if $lost;
    }
}


sub disk {
    my ($self) = @_;

    my ($t, $disk) = @$self{qw(t disk)};
    my $number = $self->{ledger}->begin('full');

    my $verify = $t->{new_master} ? 'verify unknown' : 'verify some';

    $self->_fill;
    $self->{command}->($verify);
    $self->kill_worker if rand() < 0.3;
    $self->kill_helper_alone if rand() < 0.3;
    $self->{command}->($verify);

    if (!$t->{new_master} && rand() < 0.3) {
        $self->{note}->('kill_all');
        $self->_kill(sub { $t->kill_all; $disk->allow; $t->run }, '*');
    }

    $disk->allow;
    $self->_has_room;
    $self->{ledger}->end($number);
}


# Fills the disk across a stop, a reload, a change of size or an upgrade.

sub disk_across {
    my ($self) = @_;

    my $disk = $self->{disk};
    my $number = $self->{ledger}->begin('full');
    my $allow = sub { $disk->allow };

    $self->_fill;
    $self->{command}->('verify unknown');
    $self->_across($allow);
    $self->{command}->('verify unknown');
    $self->_across($allow) if rand() < 0.3;
    $self->{command}->('verify unknown');

    $disk->allow;
    $self->_has_room;
    $self->{ledger}->end($number);
}


# Lets the disk refuse every write until a key of bloom_add is lost.  From then on
# the zone may answer unknown but never absent, whatever happens, until it is
# recreated.

sub lose_keys {
    my ($self) = @_;

    my ($t, $disk) = @$self{qw(t disk)};
    my $zone = ZONES->[rand 2];
    my $number = $self->{ledger}->begin('full');
    my $mark = $t->log_mark;
    my $prefix = 'long' . ++$self->{losses} . '-';
    my @long;

    $self->{note}->($zone);
    $disk->refuse('ENOSPC', qw(open write grow rename), "/$zone/");

    until (zone_state($t, $zone)->{journal}{lost_keys}) {
        my @some = map { "$prefix$_-" . 'x' x 4000 }
                       @long + 1 .. @long + 40;
        $_->status == 200 or die "bloom_add with a full disk: $_\n"
            for map { $t->get("/add/$zone?k=$_") } @some;
        push @long, @some;
        @long < 2000 or die "zone $zone has room for " . @long . " keys\n";
    }

    $self->{command}->('verify unknown');
    $self->_across(sub { $disk->allow });
    $self->_none_is_absent($zone, @long);
    $self->{command}->('verify unknown');

    $disk->allow;
    $self->_none_is_absent($zone, @long);

    # again, as the last step before the zone is recreated

    $self->_kill(sub {
        $t->kill_all;
        $self->_forget_the_loss($zone) if $self->{break} eq 'lost';
        $t->run;
    }, '*');
    my $lost = $self->_none_is_absent($zone, @long);
    my $state = zone_state($t, $zone)->{state};

    die "zone $zone has lost $lost keys, and its state is $state\n"
        if $lost && $state ne 'damaged';

    $t->excuse_log($mark);
    $self->begin_anew($zone);
    $self->_has_room;
    $self->{ledger}->end($number);
}


# Looks up acknowledged keys that may be lost, and dies if one is absent.
# Returns how many are unknown.

sub _none_is_absent {
    my ($self, $zone, @keys) = @_;

    # each instance, if there are two

    my $answers = join '', map { scalar ask($self->{t}, $zone, @keys) } 1 .. 3;
    my ($absent) = grep { substr($answers, $_, 1) eq '0' }
                        0 .. length($answers) - 1;

    if (defined $absent) {
        $self->{count}{lost}++;
        die "lost: zone $zone, key "
            . substr($keys[$absent % @keys], 0, 12) . "...: it may say"
            . " unknown, and says absent\n";
    }

    return $answers =~ tr/?// / 3;
}


# Removes the record of the loss.

sub _forget_the_loss {
    my ($self, $zone) = @_;

    my $state = $self->{t}->testdir . "/state/$zone";
    my $base = read_base("$state/base");

    write_base("$state/base", %$base, lost => 0, lost_keys => 0);
    set_control("$state/control", lost => 0, lost_keys => 0);
}


# Recreates the zone in an empty directory, as an operator would after a loss.

sub begin_anew {
    my ($self, $zone) = @_;

    my $t = $self->{t};
    my $from = now();

    $self->_kill(sub {
        $t->stop;
        $self->{command}->("forget $zone");
        remove_tree($t->testdir . "/state/$zone");
        $self->{forgot}{$zone} = 1;
        $self->{base} = {} if $zone eq 'shield';
        $self->{history}->on_all_keys($zone, 'any', $from, now());
        $t->run;
    }, '*');
}


# ---- memory ----

# Starts a load that needs more memory than the processes may take.  nginx
# refuses it, or the system kills its process.  Nothing else dies, and the zone
# serves on.

sub memory {
    my ($self) = @_;

    my ($t, $memory) = @$self{qw(t memory)};
    my $before = generation($t, 'shield');
    my $last = $self->{installed};
    my $image = $self->make_image('new', 2);
    my $size = -s $t->testdir . "/$image->{name}";
    my $mark = $t->log_mark;

    # memory that was touched before does not count; the limit does not apply to
    # workers and the master.  A helper needs some to begin, and to read journals

    my $spare = $size - HELPER_NEEDS;

    return $self->{note}->('small') if $spare < HELPER_NEEDS;

    $memory->take_all(sub { $t->helpers });
    $memory->limit($memory->used + HELPER_NEEDS + int($spare * rand 0.7));

    $self->install($image);
    my $response = api($t, POST => 'zones/shield/reload');
    $self->{note}->($response->status);

    if ($response->status == 200) {
        $self->_serves($image);

    } else {
        length($response->json->{error}{message} // '') > 20
            or die "a load without memory gives no reason: $response\n";
        generation($t, 'shield') == $before
            or die "a load without memory has changed the generation\n";
    }

    # a load that is repeated would kill one process after another

    select undef, undef, undef, 1;
    my @deaths = $t->log_since($mark) =~ /^.*exited on signal 9.*\n/mg;
    @deaths <= 2 or die "processes died of one load:\n", @deaths;
    alive($t->master) or die "the master died of a load\n";

    $memory->give_back;
    $t->excuse_log($mark);

    wait_until(sub { $t->helpers }) or die "there is no helper\n";
    $response = api($t, POST => 'zones/shield/reload');
    $self->_loaded($image, $response, $before) or $self->install($last);
}


# ---- the clock ----

# Makes the clock jump ahead for some events, or back for this one.

sub clock {
    my ($self) = @_;

    if ($self->{offset}) {
        $self->_set_clock(0);
        return;
    }

    if (rand() < 0.5) {
        $self->_set_clock(rand() < 0.5 ? 2 * HOUR : 24 * HOUR);
        return;
    }

    # a start may be refused: an image that was never loaded seems to be older
    # than the records that were removed

    $self->_set_clock(rand() < 0.5 ? -HOUR / 2 : -3 * HOUR);
    $self->{command}->('verify some');
    $self->_across(sub { $self->_set_clock(0) }) if rand() < 0.7;
    $self->{command}->('verify unknown');
    $self->checkpoint if rand() < 0.3;
    $self->_set_clock(0);
}


sub _set_clock {
    my ($self, $offset) = @_;

    # a load forgets removals whose times are ahead of the clock, and those of
    # images with a later time

    $self->_in_doubt if $offset;
    $self->{ahead} //= $self->{ledger}->begin('ahead') if $offset > 0;

    # before it can count, and no longer than it may

    $self->{ledger}->write(clock => $offset) if $offset < $self->{offset};
    $self->stand_still($offset);
    $self->{note}->($offset);
    $self->{clock}->ahead($offset);
    $self->{ledger}->write(clock => $offset);
    $self->{offset} = $offset;
    $self->forget_removals if !$offset;
}


1;
