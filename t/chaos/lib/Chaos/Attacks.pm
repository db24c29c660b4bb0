# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Attacks;

# Events: what an attacker who has taken over a worker can do.  None of it makes
# the master hang, die, or do anything as root.  Once the files are restored, no
# acknowledged key is absent.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest::Api;
use BloomTest::Hostile qw(as_user hold_lock release_lock put_in_place
                          test_config_within);
use BloomTest::Process qw(wait_until alive);

use constant ZONES => ['shield', 'empty'];

my @tricks = ('symbolic link', 'hard link', 'FIFO', 'directory', 'socket',
              'cut', 'locked');


# Replaces, cuts or locks files of a zone, while nginx runs or is stopped.

sub tamper {
    my ($self) = @_;

    my $t = $self->{t};
    my $zone = ZONES->[rand 2];
    my $trick = $tricks[rand @tricks];
    my $stopped = rand() < 0.3;
    my $mark = $t->log_mark;

    $self->_in_doubt;

    # an addition of bloom_add cannot be refused, so clients make none
    # meanwhile, and all added keys are in the journal

    $self->{command}->('calm');
    $self->_has_room;

    my $kill = $self->{ledger}->begin('kill', '*');
    my $full = $self->{ledger}->begin('full');

    # an instance that cannot start yet counts all removals of the journal

    my $crowded = $self->{ledger}->begin('crowded');

    if ($stopped) {
        $self->{note}->('stopped');
        $t->stop;
    }

    my $path = $self->_victim($zone, $trick);
    my $repair = $self->_trick($path, $trick);

    $self->{note}->($trick . ' ' . $path =~ s{.*/}{}r);

    if ($stopped) {
        $self->_try_start($repair);

    } else {
        for (1 .. 1 + rand 2) {
            my $how = (qw(hup hup_size checkpoint test helper))[rand 5];

            $self->{note}->($how);
            $how eq 'hup' ? $self->_try_hup
            : $how eq 'hup_size' ? $self->_try_hup($self->_other_size)
            : $how eq 'checkpoint' ? eval { api($t, POST =>
                                                "zones/$zone/checkpoint") }
            : $how eq 'test' ? (defined((test_config_within($t, 90))[0])
                                or die "nginx -t hangs\n")
            : $trick eq 'cut' ? eval { $self->kill_helper_alone }
            : $self->kill_helper_alone;
        }
    }

    alive($t->master) or die "the master died of a file\n";
    $self->{command}->('verify unknown');

    # a stop must not hang either; then the files are restored.  If the page was
    # cut, a helper may die before the test kills it.

    $t->stop or die "nginx does not stop with a $trick\n";
    $repair->();
    $t->run;

    $self->{ledger}->end($_) for $kill, $full, $crowded;
    $self->{command}->('lively');

    # a process that could not read a file has logged it

    for (@{ +ZONES }) {
        next if zone_state($t, $_)->{state} ne 'damaged';

        $self->{note}->("$_ damaged");
        $self->{command}->('verify unknown');
        $self->begin_anew($_);
    }

    $t->excuse_log($mark);
}


sub _victim {
    my ($self, $zone, $trick) = @_;

    my $dir = $self->{t}->testdir . "/state/$zone";

    return "$dir/lock" if $trick eq 'locked';
    return "$dir/control" if $trick eq 'cut';

    my @files = glob "$dir/{base,control,lock,instance.*,journal.*,"
                     . 'upload.*.bloom,checkpoint.*.bloom}';
    @files = grep { -f } @files;

    return $files[rand @files];
}


# Replaces, cuts or locks a file.  Returns a function that undoes it.

sub _trick {
    my ($self, $path, $trick) = @_;

    my ($t, $user) = @$self{qw(t user)};

    if ($trick eq 'locked') {
        my $holder = hold_lock($user, $path);
        my $held = 1;

        return sub { release_lock($holder) if $held; $held = 0 };
    }

    if ($trick eq 'cut') {
        my $size = rand() < 0.5 ? 0 : 100;

        as_user($user, sub { truncate $path, $size }) or die "$path: $!\n";
        return sub { };
    }

    # restores the same file, because processes have it open

    my $kept = $t->testdir . '/kept';
    my $outside = $t->testdir . '/etc/passwd';

    rename $path, $kept or die "$path: $!\n";
    $t->write_file('etc/passwd', "root:x:0:0\n") unless -e $outside;
    put_in_place($user, $path, $trick, $outside);

    return sub {
        return unless -e $kept;
        remove_tree($path) if -d $path && !-l $path;
        unlink $path;
        rename $kept, $path or die "$path: $!\n";
    };
}


# Overwrites the shared memory of a zone.  What processes then do to files, the
# attacker could do directly, so the files are restored afterwards.

sub forge {
    my ($self) = @_;

    my $t = $self->{t};
    my $dir = $t->testdir;
    my $forgery = (qw(zeros ones noise pointers swapped))[rand 5];
    my ($megabytes) = $self->{size} =~ /(\d+)m/;
    my $kill = $self->{ledger}->begin('kill', '*');

    $self->{note}->($forgery);
    $self->{command}->('pause');

    $t->stop;
    remove_tree("$dir/saved");
    system('cp', '-a', "$dir/state", "$dir/saved") == 0 or die "cp\n";
    $t->run;

    die "the sanitizers have reported something\n" if $t->reports;

    my $mark = $t->log_mark;

    BloomTest::Hostile::forge(($t->workers)[0], $megabytes * 1024 * 1024,
                              $forgery);

    for (1 .. 1 + rand 2) {
        my $size = rand() < 0.5 ? $self->_other_size : undef;
        $self->_try_hup_forged($size);
    }

    alive($t->master) or die "the master died of forged memory\n";

    if (rand() < 0.5) {
        $t->stop or die "nginx does not stop with forged memory\n";
    } else {
        $t->kill_all;
    }

    $t->excuse_log($mark);
    $t->excuse_reports;
    remove_tree("$dir/state");
    rename "$dir/saved", "$dir/state" or die "saved: $!\n";
    $t->run;

    $self->{ledger}->end($kill);
    $self->{command}->('resume');
}


# Workers with forged memory may die as fast as they start.  Only the master
# must live.

sub _try_hup_forged {
    my ($self, $size) = @_;

    my $t = $self->{t};

    $self->{size} = $size if $size;
    $self->set_up;

    my ($outcome) = $t->try_reload(limit => 90);

    $self->{note}->($outcome);
    $outcome eq 'dies' and die "the master died of forged memory\n";
    $outcome eq 'hangs' and die "the master hangs with forged memory\n";
}


1;
