# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Events;

# Events that happen to nginx while clients use it.  Each event is a method that
# returns when nginx is well again, or dies with what is not.  The list has the
# name and the frequency of each event.  Some events need root and are not drawn
# without.
#
# Removals.pm has the events that remove keys, Feedback.pm those of zones that
# except, Expiring.pm those of zones whose keys expire, Failures.pm the failures
# of disks, memory and clocks, and Attacks.pm what an attacker who has taken over
# a worker does.

use strict;
use warnings;

use parent qw(-norequire Chaos::Removals Chaos::Feedback Chaos::Expiring
              Chaos::Failures Chaos::Attacks);

use BloomTest::Api;
use BloomTest::Image qw(patch_header);
use BloomTest::Journal;
use BloomTest::Process qw(now wait_until alive run_command);
use BloomTest::Zones;

use Chaos::Attacks;
use Chaos::Expiring;
use Chaos::Failures;
use Chaos::Feedback;
use Chaos::Removals;

my @weights = (
    reload => 4, upload => 3, upload_back => 1, checkpoint => 2, image => 2,
    future => 1, remove_base => 3, crowd => 1,
    load_goods => 4, forget_excepted => 2,
    clear => 1, hup => 2, hup_file => 2, hup_size => 3, upgrade => 2,
    kill_worker => 3, kill_helper => 3, kill_master => 2, kill_all => 3,
    disk => 2, disk_across => 3, lose_keys => 1,
    memory => 2, clock => 3, tamper => 4, forge => 2,
    hup_expire => 3, reboot => 2, flood => 1, rest => 1,
);

my %needs = (memory => 'memory', tamper => 'user', forge => 'user');

use constant { HOUR => 3600, BASE => 1000, OLD => 200,
               ZONES => ['shield', 'empty'] };


# The options `user`, `witness` and `memory` may be undef.

sub new {
    my ($class, %self) = @_;    # t, ledger, history, disk, keys, removals,
                                # workers, command, note, user, witness, memory,
                                # clock, skip

    # room for more than two of the largest images

    my $room = 8 + int $self{keys} / 30_000;
    my @sizes = map { ':' . $_ * $room . 'm' } 1 .. 3;

    return bless {
        %self, image => 0, sizes => \@sizes, size => $sizes[0],
        newest => 0, offset => 0, base => {}, truths => {},
        count => { kills => 0, reloads => 0 },
    }, $class;
}


# Creates everything that nginx needs to start.

sub prepare {
    my ($self) = @_;

    # keys that were added three hours before the run, which a newer image may
    # drop

    my $t = $self->{t};
    my $time = (time - 3 * HOUR) * 1000;
    my $journal = BloomTest::Journal->new(created => $time);

    my $state = $t->testdir . '/state';

    $journal->append([map { "old$_" } 1 .. OLD], time => $time);
    mkdir "$state", 0711;
    mkdir "$state/shield", 0700;
    write_state($t, 'shield', $journal);
    BloomTest::Hostile::hand_over("$state/shield", $self->{user})
        if $self->{user};

    $self->install($self->make_image('none'));
    $self->prepare_feedback;
    $self->prepare_expiring;
    $self->set_up;
}


sub set_up {
    my ($self) = @_;

    my ($n, $size) = @$self{qw(keys size)};
    my $removals = "removals=$self->{removals}";
    my $small = 1 + int $n / 64;

    configure($self->{t},
        ["zone=shield$size file=shield.bloom $removals",
         "zone=empty$size capacity=$small max_keys=$n fpr=1e-9 $removals",
         $self->feedback_zones, $self->expiring_zones],
        api => 1, add => 1, remove => 1, workers => $self->{workers},
        http => join("\n", map { "bloom_lookup \$arg_$_->[0] \$pair_$_->[1]"
                                 . ' zone=shield;' }
                               ['a', 'a'], ['b', 'b'], ['a', 'again']),
        server => join "\n", 'add_header X-Worker $pid always;',
                            'location = /pair {',
                            'return 200 "$pair_a,$pair_b,$pair_again"; }',
                            $self->feedback_locations);
}


sub draw {
    my ($self) = @_;

    my @names;

    for (my $i = 0; $i < @weights; $i += 2) {
        my ($name, $weight) = @weights[$i, $i + 1];
        my $needed = $needs{$name};

        push @names, ($name) x $weight
            if !$self->{skip}{$name} && (!defined $needed || $self->{$needed});
    }

    return $names[rand @names];
}


# Returns the events that cannot happen on this machine, and why.

sub not_drawn {
    my ($self) = @_;

    my %why = (user => 'it needs root, and the users nobody and daemon',
               memory => 'it needs root, and a cgroup');

    return map { "$_, since $why{$needs{$_}}" }
           grep { !$self->{$needs{$_}} } sort keys %needs;
}


# ---- images ----

# Most images have the layout that is usual.

sub random_layout { return (qw(blocked blocked fuse classic))[rand 4] }


# Builds an image with the keys that all images have, and its own pair.  $age is
# the as_of: none, new (now), old (some hours ago) or future.  $factor
# multiplies the number of keys that the image is made for.

sub make_image {
    my ($self, $age, $factor) = @_;

    my $number = ++$self->{image};
    my $from = time;
    my $as_of = $age eq 'none' ? undef
                : time - ($age eq 'old' ? HOUR * (2 + rand 6) : 0);
    my @time = defined $as_of ? gmtime $as_of : ();
    my @keys = ((map { "base$_" } 0 .. BASE - 1), "pair${number}a",
                $self->{break} eq 'pair' && $number > 1 ? ()
                                                        : "pair${number}b");

    shift @keys if $self->{break} eq 'base' && $number > 1;

    $self->{t}->build_image("$number.bloom", \@keys, '-p', '1e-9',
        '-n', int($self->{keys} * ($factor // 1 + rand 0.3)),
        '--layout', $self->random_layout,
        @time ? ('--as-of', sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ',
                     $time[5] + 1900, $time[4] + 1, @time[3, 2, 1, 0]) : ());

    if ($age eq 'future') {
        $as_of += 2 * HOUR;
        my $made = $self->{t}->read_file("$number.bloom");
        $self->{t}->write_file("$number.bloom", patch_header(
            $made, 128 => pack 'Q<', $as_of * 1000));
    }

    unlink $self->{t}->testdir . "/$number.bloom.keys";
    unlink $self->{t}->testdir . '/' . ($number - 4) . '.bloom'
        if $number > 4;

    return { number => $number, as_of => $as_of, age => $age,
             made => [$from, time], name => "$number.bloom" };
}


sub install {
    my ($self, $image) = @_;

    $self->_place($image);
    $self->{installed} = $image;
    $self->_announce($image);
}


# Makes an image the file of zone shield.

sub _place {
    my ($self, $image) = @_;

    my $dir = $self->{t}->testdir;

    unlink "$dir/new";
    link "$dir/$image->{name}", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/shield.bloom" or die "rename: $!";
}


# Notes in the ledger that the image may serve from now on and may drop the keys
# that were acknowledged more than an hour before its as_of, or before its first
# load, whichever is earlier.

sub _announce {
    my ($self, $image) = @_;

    $self->{ledger}->write(image => $image->{number});
    $self->note_truth($image);

    my $as_of = $image->{as_of} // return;
    my $now = time + $self->{offset};
    my $end = $as_of < $now ? $as_of : $now;

    # the load may come later

    $self->{ledger}->write(horizon => ($as_of < $now + 120 ? $as_of
                                                           : $now + 120) - HOUR);
    $self->{newest} = $end if $end > $self->{newest};
}


sub _random_image {
    my ($self, @ages) = @_;

    return $self->make_image($ages[rand @ages]);
}


# Builds an image that cannot be refused.

sub _good_image {
    my ($self) = @_;

    return $self->_random_image($self->{newest} ? 'new' : 'none', 'new');
}


# Returns whether an image may be refused because a newer one let records go.

sub _too_old {
    my ($self, $image) = @_;

    return ($image->{as_of} // 0) < $self->{newest};
}


# Tests that this image and no other serves after the answer to its load.

sub _serves {
    my ($self, $image) = @_;

    my $t = $self->{t};
    my $number = $image->{number};
    my $other = $number - 1;

    for (1 .. 4) {
        my $pair = $t->get("/pair?a=pair${number}a&b=pair${number}b")->body;
        $pair =~ /^1?,1?,1?$/
            or die "image $number was loaded, its pair is $pair\n";
    }
    my $pair = $t->get("/pair?a=pair${other}a&b=pair${other}b")->body;
    $pair =~ /^0?,0?,0?$/
        or die "image $number was loaded, the pair of $other is $pair\n";
}


# Reads the answer to a load.

sub _loaded {
    my ($self, $image, $response, $before) = @_;

    if ($response->status == 200) {
        $self->{count}{reloads}++;
        $self->_serves($image);
        return 1;
    }

    if ($response->status == 422 && $self->_too_old($image)) {
        generation($self->{t}, 'shield') == $before
            or die "a refused image has changed the generation\n";
        return 0;
    }

    die "image $image->{number} ($image->{age}): $response\n";
}


# ---- loads ----

sub reload {
    my ($self) = @_;

    my $before = generation($self->{t}, 'shield');
    my $last = $self->{installed};
    my $image = $self->_random_image(qw(none old new));

    $self->install($image);

    my $response = api($self->{t}, POST => 'zones/shield/reload');
    $self->_loaded($image, $response, $before) or $self->install($last);
}


sub upload {
    my ($self) = @_;

    my $before = generation($self->{t}, 'shield');
    my $image = $self->_random_image(qw(none old new));

    $self->_announce($image);
    $self->_loaded($image, api($self->{t}, PUT => 'zones/shield/image',
                               body => $self->{t}->read_file($image->{name})),
                   $before);
}


# Tests that an image is refused that claims to be complete up to a time in the
# future.

sub future {
    my ($self) = @_;

    return $self->reload if $self->{offset};

    my $t = $self->{t};
    my $file = $t->testdir . '/shield.bloom';
    my $before = generation($t, 'shield');

    # the image under its own name may be gone

    unlink "$file.before";
    link $file, "$file.before" or die "link: $!";

    my $image = $self->make_image('future');

    $self->_place($image);

    my $response = rand() < 0.5
                   ? api($t, POST => 'zones/shield/reload')
                   : api($t, PUT => 'zones/shield/image',
                         body => $t->read_file($image->{name}));

    rename "$file.before", $file or die "rename: $!";

    $response->status == 422
        && $response->body =~ /more than an hour ahead/
        or die "image $image->{number} of the future: $response\n";
    generation($t, 'shield') == $before
        or die "a refused image has changed the generation\n";
}


# Downloads the zone as an image and uploads it again, as a backup.

sub upload_back {
    my ($self) = @_;

    # the image would have a time in the future

    return $self->reload if $self->{offset};

    my $got = api($self->{t}, GET => 'zones/shield/image');
    $got->status == 200 or die "no image: $got->{head}\n";

    my $put = api($self->{t}, PUT => 'zones/shield/image',
                  body => $got->body);
    $put->status == 200 or die "an image of the zone is refused: $put\n";
    $self->{count}{reloads}++;
}


sub checkpoint {
    my ($self) = @_;

    my $zone = rand() < 0.5 ? 'shield' : 'empty';
    my $response = api($self->{t}, POST => "zones/$zone/checkpoint");

    $response->status == 200 or die "checkpoint of $zone: $response\n";
}


sub image {
    my ($self) = @_;

    my @zones = (@{ +ZONES }, @{ $self->FEEDBACK });

    $self->{command}->('image ' . $zones[rand @zones]);
}


# ---- nginx ----

sub _quit {
    my ($self, $code, @processes) = @_;

    my $number = $self->{ledger}->begin('quit', @processes);
    $code->();
    $self->{ledger}->end($number);
    $self->{count}{reloads}++;
}


# Notes that removals are in doubt: zones have two instances, or their files
# cannot be read.  It ends when check() sees that one instance is left and knows
# everything.

sub _in_doubt {
    my ($self) = @_;

    $self->{doubt} //= $self->{ledger}->begin('doubt');
}


sub hup {
    my ($self) = @_;

    $self->_quit(sub { $self->{t}->reload }, $self->{t}->workers);
}


sub hup_file {
    my ($self) = @_;

    my $image = $self->_good_image;

    $self->install($image);
    $self->hup;
    wait_until(sub { eval { $self->_serves($image); 1 } })
        or die "image $image->{number} does not serve after HUP: $@";
}


sub hup_size {
    my ($self) = @_;

    my @sizes = grep { $_ ne $self->{size} } @{ $self->{sizes} };

    $self->{size} = $sizes[rand @sizes];
    $self->set_up;
    $self->_in_doubt;
    $self->hup;
}


sub upgrade {
    my ($self) = @_;

    my $t = $self->{t};

    $self->_in_doubt;
    my $number = $self->{ledger}->begin('anew');
    my $new = $t->upgrade_begin;

    $self->{command}->('verify some');

    my @meanwhile = ('', qw(kill_worker kill_helper_alone disk checkpoint
                            image));
    my $meanwhile = $meanwhile[rand @meanwhile];
    if ($meanwhile) {
        $self->{note}->($meanwhile);
        $self->$meanwhile;
        $self->{command}->('verify some');
    }

    if (rand() < 0.3) {
        $self->{note}->('back');
        $self->_quit(sub { $t->upgrade_back }, $t->workers($new));

    } else {
        $self->_quit(sub { $t->upgrade_finish }, $t->workers);
    }

    $self->{ledger}->end($number);
}


sub _kill {
    my ($self, $code, @processes) = @_;

    my $number = $self->{ledger}->begin('kill', @processes);
    $code->();
    $self->{ledger}->end($number)
        unless $self->{break} eq 'ledger';
    $self->{count}{kills}++;
}


# Announces deaths of processes in the log, once for all of them.

sub _expect_deaths {
    my ($self) = @_;

    $self->{t}->expect_log(qr/process \d+ exited on signal 9/)
        unless $self->{deaths}++;
}


sub kill_worker {
    my ($self) = @_;

    my @workers = $self->{t}->workers;
    my $worker = $workers[rand @workers];

    $self->_expect_deaths;
    $self->_kill(sub { $self->{t}->kill_worker('KILL', $worker) }, $worker);
}


# Kills the helper while it has something to do, if possible.

sub kill_helper {
    my ($self) = @_;

    my $t = $self->{t};
    my $c = $t->connect;
    my $image = $self->_good_image;
    my $busy = rand() < 0.7;

    if ($busy) {
        $self->{note}->('busy');
        $self->install($image);
        $c->send($t->request_text(POST => '/bloom/zones/shield/reload'));
        select undef, undef, undef, rand 0.03;
    }

    $self->kill_helper_alone;

    if ($busy) {
        my $response = $c->response;

        # the load ended earlier, or died with its helper

        if ($response->status == 503 && $response->body =~ /process .* died/) {
            $self->{note}->('died');
            $response = api($t, POST => 'zones/shield/reload');
        }

        $response->status == 200
            or die "a reload after its helper was killed: $response\n";
        $self->_serves($image);
        $self->{count}{reloads}++;
    }
}


sub kill_master {
    my ($self) = @_;

    my @left;

    $self->_kill(sub { @left = $self->{t}->kill_master }, 0);
    $self->{command}->('verify some');
    $self->_kill(sub {
        $self->{t}->end_processes('KILL', @left);
        $self->{t}->run;
    }, '*');
}


sub kill_all {
    my ($self) = @_;

    $self->_kill(sub { $self->{t}->kill_all; $self->{t}->run }, '*');
}


# Kills the helper, which serves no client.

sub kill_helper_alone {
    my ($self) = @_;

    $self->_expect_deaths;
    $self->_kill(sub { $self->{t}->kill_helper }, 0);
}


# ---- checks of the driver after each event ----

sub check {
    my ($self) = @_;

    my $t = $self->{t};

    alive($t->master) or die "the master is dead\n";

    if ($self->{witness}) {
        my ($seen) = $self->{witness}->seen;
        die "root did what it should not: $seen\n" if defined $seen;
    }

    # waits until no answer is unknown

    for my $zone (@{ +ZONES }) {
        my $answer = ask_until_known($t, $zone, map { "nobody$_" } 1 .. 20);
        $answer =~ tr/0// >= 15
            or die "zone $zone, of keys that were never added: $answer\n";
    }

    # one instance is left, and knows what the other one knew

    if (defined $self->{doubt} && !$self->{offset}) {
        $self->{ledger}->end($self->{doubt});
        $self->{doubt} = undef;
    }

    for my $zone (@{ +ZONES }, @{ $self->FEEDBACK }, 'visits') {
        my $state = zone_state($t, $zone);
        my $layers = $state->{filter}{layers} // 0;
        $self->{layers} = $layers if $layers > ($self->{layers} // 0);
    }

    $self->check_feedback;
    $self->check_expiring;

    # the keys that all images have, and those of three hours ago unless a newer
    # image may have dropped them

    $self->check_base(BASE);

    my @old = $self->{newest} || $self->{forgot}{shield}
              ? () : map { "old$_" } 1 .. OLD;
    my $results = api($t, POST => 'zones/shield/test',
                      body => join "\n", @old, 'base999')->json->{answers};
    my @absent = grep { $results->[$_] eq 'absent' } 0 .. $#old;

    $self->{count}{lost} += @absent;
    die map { "lost: zone shield, key $old[$_]: of three hours ago\n" } @absent
        if @absent;
}


# ---- breaking each promise by hand, to prove that the checker fails ----

# Removes the journal without a line in the ledger.

sub break_journal {
    my ($self) = @_;

    my $t = $self->{t};

    $self->_kill(sub {
        $t->kill_all;
        system 'rm', '-rf', $t->testdir . '/state/empty';
        $t->run;
    }, '*');
}


# Kills a worker without a line in the ledger.

sub break_ledger {
    my ($self) = @_;

    my ($worker) = $self->{t}->workers;

    $self->_expect_deaths;
    $self->{t}->kill_worker('KILL', $worker);
}


# Loses keys, and the record of the loss.

sub break_lost { $_[0]->lose_keys }


# Lets a process of root look into the directory of a zone.

sub break_root {
    my ($self) = @_;

    my $t = $self->{t};

    run_command([$^X, '-e', 'open my $f, "<", $ARGV[0]',
                 $t->testdir . '/state/empty/control'], env => $t->{env});
}


# Lets the journal forget that keys were removed: the record of each removal
# becomes one that adds the keys.

sub break_removal {
    my ($self) = @_;

    my $t = $self->{t};

    $self->_kill(sub {
        $t->kill_all;
        change_types($_, REMOVE, ADD)
            for glob $t->testdir . '/state/empty/journal.*';
        $t->run;
    }, '*');
}


# Removes keys that were added, as if their additions had not lifted earlier
# removals; adds keys that were removed.

sub _break_shared {
    my ($self, $by) = @_;

    for (1 .. 100) {
        for my $zone (@{ +ZONES }) {
            api($self->{t}, POST => "zones/$zone/$by", body => join "\n",
                map { 'x' . substr($zone, 0, 1) . $_ } 0 .. 11);
        }
    }
}


sub break_lift { $_[0]->_break_shared('remove') }
sub break_return { $_[0]->_break_shared('keys') }


# Takes a key of all images for removed.

sub break_image {
    my ($self) = @_;

    $self->{base}{base0} = { removed => time + 60, until => time + 60,
                             sure => 1 };
}


sub break_pair { $_[0]->reload for 1 .. 2 }
sub break_base { $_[0]->reload for 1 .. 2 }
sub break_acknowledged { $_[0]{command}->('pretend empty') }


1;
