# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Failures;

# Events: what fails.  A disk that is full, whatever nginx is told meanwhile;
# keys that are lost for it; a load that needs more memory than there is; a
# clock that jumps.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest::Api;
use BloomTest::Process qw(wait_until alive children title);
use BloomTest::Zones;

use constant { HOUR => 3600, ZONES => ['shield', 'empty'] };


# ---- what nginx is told, where it may refuse ----

# A reload.  One that is refused leaves the configuration before.

sub _try_hup {
    my ($self, $size) = @_;

    my $t = $self->{t};
    my $before = $self->{size};
    my @old = $t->workers;
    my $outcome;

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


# A start.  What made it fail is repaired, and then it must not.

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


# An upgrade: the new master may refuse to start.

sub _try_upgrade {
    my ($self) = @_;

    my $t = $self->{t};
    my $mark = $t->log_mark;

    if (eval { $t->upgrade_begin }) {
        $self->{command}->('verify unknown');
        $self->_quit(sub { $t->upgrade_finish }, $t->workers);
        return;
    }

    die $@ if $t->log_since($mark) !~ /\[emerg\]/;

    $self->{note}->('refused');
    wait_until(sub {
        !-e $t->testdir . '/nginx.pid.oldbin'
        && !grep { title($_) =~ /^nginx: master/ } children($t->master);
    }) or die "the old master is not alone after a refused upgrade:\n"
              . substr($t->log_since($mark), -3000) . "\n";
}


# One of all that makes nginx read or leave its state.

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

sub _fill {
    my ($self) = @_;

    my @what = rand() < 0.5 ? ('grow') : qw(open write grow rename);

    $self->{note}->("@what");
    $self->{disk}->refuse('ENOSPC', @what);
}


# There is room again: both zones take additions, and have all keys.

sub _has_room {
    my ($self) = @_;

    my $t = $self->{t};

    for my $zone (@{ +ZONES }) {
        wait_until(sub {
            return api($t, POST => "zones/$zone/keys?durable=true",
                       body => "room\n")->status == 200;
        }) or die "zone $zone takes no additions with room on the disk\n";

        # while nginx is upgraded there are two of it: each is asked, likely

        my $lost;
        wait_until(sub {
            my @journals = map { zone_state($t, $zone)->{journal} } 1 .. 8;
            ($lost) = grep { $_ } map { $_->{lost_keys} } @journals;
            return !grep { $_->{pending_keys} } @journals;
        }) or die "zone $zone still keeps keys with room on the disk\n";
        die "zone $zone had no room for all keys: $lost lost\n" if $lost;
    }
}


sub disk {
    my ($self) = @_;

    my ($t, $disk) = @$self{qw(t disk)};
    my $number = $self->{ledger}->begin('full');

    # what one of two instances keeps until the disk allows, the other cannot
    # know

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


# It is full across a stop, a reload, a change of the size or an upgrade.

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


# The disk is full until there is no room for the keys of bloom_add that wait
# for it.  From then on the zone may say unknown, and never absent: through all
# that can happen, until it is begun anew.

sub lose_keys {
    my ($self) = @_;

    my ($t, $disk) = @$self{qw(t disk)};
    my $zone = ZONES->[rand 2];
    my $number = $self->{ledger}->begin('full');
    my $mark = $t->log_mark;
    my $prefix = 'long' . ++$self->{losses} . '-';
    my @long;

    $self->{note}->($zone);
    $disk->refuse('ENOSPC', qw(open write grow rename));

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
    wait_until(sub { !zone_state($t, $zone)->{journal}{pending_keys} })
        or die "zone $zone still keeps keys with room on the disk\n";
    $self->_none_is_absent($zone, @long);

    # again, and as the last thing before it is begun anew

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


# Keys that were acknowledged and may be lost; returns how many of them are.

sub _none_is_absent {
    my ($self, $zone, @keys) = @_;

    # each instance, where there are two

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


# The time that says so is in the control page, in the file "lost" before there
# was that.

sub _forget_the_loss {
    my ($self, $zone) = @_;

    unlink map { $self->{t}->testdir . "/state/$zone/$_" } 'control', 'lost';
}


# What an operator does whose zone has lost keys: an empty directory.

sub begin_anew {
    my ($self, $zone) = @_;

    my $t = $self->{t};

    $self->_kill(sub {
        $t->stop;
        $self->{command}->("forget $zone");
        remove_tree($t->testdir . "/state/$zone");
        $self->{forgot}{$zone} = 1;
        $t->run;
    }, '*');
}


# ---- memory ----

# A load that needs more than the processes may take is refused, or its process
# is killed; nothing else dies, and what served serves on.

sub memory {
    my ($self) = @_;

    my ($t, $memory) = @$self{qw(t memory)};
    my $before = generation($t, 'shield');
    my $last = $self->{installed};
    my $image = $self->make_image('new', 2);
    my $size = -s $t->testdir . "/$image->{name}";
    my $mark = $t->log_mark;

    # what has been touched already does not count; workers and the master take
    # no part

    $memory->take_all(sub { $t->helpers });
    $memory->limit($memory->used + int($size * (0.1 + rand 0.7)));

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

    # whoever tries again and again kills one process after another

    select undef, undef, undef, 1;
    my $deaths = () = $t->log_since($mark) =~ /exited on signal 9/g;
    $deaths <= 2 or die "$deaths processes died of one load\n";
    alive($t->master) or die "the master died of a load\n";

    $memory->give_back;
    $t->excuse_log($mark);

    wait_until(sub { $t->helpers }) or die "there is no helper\n";
    $response = api($t, POST => 'zones/shield/reload');
    $self->_loaded($image, $response, $before) or $self->install($last);
}


# ---- the clock ----

# It jumps ahead and stays so for some events, or back, for the length of this
# one.

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

    # a start may be refused: an image that has not been loaded before seems to
    # be older than what was removed for it

    $self->_set_clock(rand() < 0.5 ? -HOUR / 2 : -3 * HOUR);
    $self->{command}->('verify some');
    $self->_across(sub { $self->_set_clock(0) }) if rand() < 0.7;
    $self->{command}->('verify unknown');
    $self->checkpoint if rand() < 0.3;
    $self->_set_clock(0);
}


sub _set_clock {
    my ($self, $offset) = @_;

    # before it can count, and no longer than it may

    $self->{ledger}->write(clock => $offset) if $offset < $self->{offset};
    $self->{note}->($offset);
    $self->{clock}->ahead($offset);
    $self->{ledger}->write(clock => $offset);
    $self->{offset} = $offset;
}


1;
