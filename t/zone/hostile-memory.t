#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An attacker who has taken over a worker can write anything into the shared
# memory of a zone.  The master does not trust that memory: during a reload it
# neither crashes nor hangs, opens no file of the zone and takes no shared lock.
# nginx can still be stopped, and the next start serves what was acknowledged.

use strict;
use warnings;

use Carp qw(croak);

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(alive wait_until);
use BloomTest::Witness;
use BloomTest::Zones;

my $user = hostile_user();

use constant { IDS => 3 * 1024 * 1024, SEEN => 4 * 1024 * 1024,
               RING => 6 * 1024 * 1024 };

my @forgeries = ('zeros', 'ones', 'noise', 'pointers', 'swapped');

# The reloads that the master is told to do after the memory has been forged.

my @reloads = (
    ['a reload of the same configuration', ''],
    ['a reload that changes the kind of a filter', 'capacity'],
    ['a reload that changes a size', 'size'],
);

my $t = BloomTest->new(user => $user->{conf});
my $dir = $t->testdir;
my $witness = BloomTest::Witness->new($t, 'state');
my $canary = make_outside($t);

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');
$t->build_image('upload.bloom', ['id1', 'up1'], '-p', '1e-9', '-n', '10k');

sub set_up {
    my ($change) = @_;

    my $capacity = $change eq 'capacity' ? '2k' : '1k';
    my $size = $change eq 'size' ? '5m' : '4m';

    configure($t, ['zone=ids:3m file=ids.bloom removals=0 max_keys=50k',
                   "zone=seen:$size capacity=$capacity fpr=1e-9 removals=0"
                   . ' max_keys=20k',
                   "zone=ring:6m capacity=$capacity fpr=1e-9 removals=0"
                   . ' expire=8h'],
              api => 1, add => 1);
}


# A link that the workers' user could create.  A master that opened a path named
# in shared memory, or followed a link, would read what only root may read.

set_up('');
$t->run;
upload_image($t, 'ids', 'upload')->status == 200 or die 'no upload';
add($t, $_, ['key1'], durable => 1) for 'ids', 'seen', 'ring';

# the filters have grown: the numbers of layers are forged, too

add($t, 'seen', [map { "k$_" } 1 .. 4000]);
add($t, 'ids', [map { "k$_" } 1 .. 15_000]);
cmp_ok(zone_state($t, $_)->{filter}{layers}, '>', 0, "zone $_ has layers")
    for 'ids', 'seen';
$t->stop;
system('cp', '-a', "$dir/state", "$dir/saved") == 0 or die 'cp';

sub begin_again {
    system("rm -rf '$dir/state' && cp -a '$dir/saved' '$dir/state'") == 0
        or die 'cp';
    set_up('');
}


# Returns the memory of a process and where the ring that serves begins in it.
# It is found by its first words: the generation, the ready slices, and an open
# slice 0; then the live slices.

sub find_ring {
    my ($pid, $size) = @_;

    my ($from, $to) = shared_memory($pid, $size);

    open my $memory, '+<:raw', "/proc/$pid/mem" or croak "/proc/$pid/mem: $!";
    sysseek $memory, $from, 0;
    sysread $memory, my $bytes, 256 * 1024;

    my @word = unpack 'Q<*', $bytes;
    my ($at) = grep { $word[$_] >> 48 == 1 && ($word[$_] & 0x3f) == 0
                      && ($word[$_] >> 6 & 0x3ff) == 0x3fe
                      && $word[$_ + 1] == 1 } 0 .. $#word - 1;

    defined $at or croak 'the ring is not found';

    return ($memory, $from + 8 * $at);
}

# Writes a number into `turn`, `live`, and the rest of the ring that serves.

sub forge_words {
    my ($pid, $size, $value) = @_;

    my ($memory, $at) = find_ring($pid, $size);

    sysseek $memory, $at, 0;
    syswrite $memory, pack 'Q<*', ($value) x 100;
}

# Writes a number into the times of a zone's clock.

sub forge_clock {
    my ($file, $value) = @_;

    open my $boot, '<', '/proc/sys/kernel/random/boot_id' or die "boot_id: $!";
    my $id = pack 'H*', <$boot> =~ s/\W//gr;

    open my $control, '+<:raw', $file or croak "$file: $!";
    read $control, my $page, 4096;
    my $at = index $page, $id;

    $at >= 0 or croak 'the clock is not found';
    seek $control, $at + 16, 0;
    print $control pack 'Q<*', ($value) x 4;
    close $control or croak "$file: $!";
}


# Stops nginx; kills its remaining processes if the master has died.

sub end_all {
    return $t->stop if alive($t->master);

    $t->kill_all;
    return 0;
}


# The test finds the shared memory and can write to it.

subtest 'the memory of a zone is forged' => sub {
    begin_again();
    $t->run;
    is(ask($t, 'seen', 'key1', 'no'), '10', 'the zone has a key');

    my $mark = $t->log_mark;
    forge(($t->workers)[0], SEEN, 'zeros');
    isnt(eval { ask($t, 'seen', 'key1', 'no') } // '', '10',
         'the zone does not answer as before');
    is(ask($t, 'ids', 'id1', 'up1', 'key1', 'no'), '1110',
       'another zone answers as before');
    $t->stop;
    $t->excuse_log($mark);
};


for my $forgery (@forgeries) {
    for (@reloads) {
        my ($what, $change) = @$_;

        subtest "$what, with forged memory: $forgery" => sub {
            begin_again();
            $t->run;

            my $mark = $t->log_mark;
            my $master = $t->master;
            my $worker = ($t->workers)[0];

            $witness->forget;
            forge($worker, IDS, $forgery);
            forge($worker, SEEN, $forgery);
            forge($worker, RING, $forgery);

            for my $time (1, 2) {
                set_up($change);
                my ($outcome, $log) = $t->try_reload(limit => PATIENCE);
                unlike($outcome, qr/dies|hangs/,
                       "$what does no harm to the master (time $time)")
                    or diag($log), last;
                last if !alive($master);
            }

            my %seen = map { s{^\d+ |\Q$dir\E/|\n}{}gr => 1 } $witness->seen;
            is(join("\n", sort keys %seen), '',
               'root opens no file of a zone and takes no shared lock');
            is_untouched($canary, 'files of root are left alone');

            ok(end_all(), 'nginx can be stopped');
            $t->excuse_log($mark);
        };
    }
}


# The words of a ring are forged one kind at a time, so that the rest of the zone
# looks right: the helper looks after the slices that they name.

subtest 'the ring of a zone and its clock are forged' => sub {
    for my $value (0, 1, 63, 2 ** 40 - 1, 1 << 63, ~0) {
        begin_again();
        $t->run;

        my $mark = $t->log_mark;
        my $worker = ($t->workers)[0];

        forge_words($worker, RING, $value);
        forge_clock("$dir/state/ring/control", $value);
        kill 'IO', $t->helpers;
        eval { ask($t, 'ring', 'key1', 'no') } for 1 .. 3;
        eval { add($t, 'ring', ['key2']) };

        set_up('size');

        my ($outcome, $log) = $t->try_reload(limit => PATIENCE);
        unlike($outcome, qr/dies|hangs/,
               "$value: a reload does no harm to the master") or diag($log);
        ok(end_all(), "$value: nginx can be stopped");
        $t->excuse_log($mark);
    }
};


# A ring has 17 slices here, and its words could name 64.  The others would be
# in the unused part of the bank.  The generation stays, so nothing else keeps a
# worker from using them.

subtest 'slices that a ring does not have are forged' => sub {
    system("rm -rf '$dir/state'") == 0 or die 'rm';
    configure($t, ['zone=ring:6m capacity=30k fpr=1e-9 removals=0 expire=8h'],
              api => 1, add => 1);
    $t->run;
    add($t, 'ring', ['key1']);

    my $slice = zone_state($t, 'ring')->{filter}{parts}[0]{bits};
    my $mark = $t->log_mark;
    my ($worker) = $t->workers;
    my ($memory, $ring) = find_ring($worker, RING);
    my ($from, $to) = shared_memory($worker, RING);
    my ($unused, $length) = ($to - 2_400_000, 2_200_000);

    my $write = sub {
        my ($at, $bytes) = @_;

        sysseek $memory, $at, 0;
        (syswrite($memory, $bytes) // 0) == length $bytes or die "write: $!";
    };

    $write->($unused, "\xff" x $length);
    $write->($ring + 8, pack 'Q<', ~0);
    is(ask($t, 'ring', 'key1', 'no'), '10',
       'a lookup does not test slices that a ring does not have');
    is(join(' ', lookup_keys($t, 'ring', 'key1', 'no')), 'present absent',
       'nor does a lookup of many keys');

    $write->($ring, pack 'Q<', 1 << 48 | 63);
    my $bits = api($t, GET => 'zones/ring/keys?key=no')->json->{bits};
    ok(@$bits && !(grep { $_ >= 17 * $slice } @$bits),
       'the endpoint shows the bits of no such slice');

    $write->($unused, "\0" x $length);
    eval { add($t, 'ring', ['key2']) };
    $t->get('/add/ring?k=key3');
    sysseek $memory, $unused, 0;
    sysread($memory, (my $bytes), $length) == $length or die "read: $!";
    is($bytes =~ tr/\0//c, 0, 'an addition writes to no such slice');
    is(join(' ', $t->workers), $worker, 'the worker lives');
    ok(end_all(), 'nginx can be stopped');
    $t->excuse_log($mark);
};


# What was acknowledged is on disk.  A process with forged memory may damage the
# journal, which an attacker could have done directly.  So only the master of
# nginx runs while the memory is forged.

subtest 'nginx starts again after memory was forged' => sub {
    for my $forgery (@forgeries) {
        begin_again();
        $t->run;

        my $mark = $t->log_mark;
        my $worker = ($t->workers)[0];

        kill 'STOP', $t->workers, $t->helpers;
        forge($worker, $_, $forgery) for IDS, RING;
        $t->kill_all;
        $t->excuse_log($mark);

        $t->run;
        is(ask_until_known($t, 'ids', 'id1', 'up1', 'key1', 'no'), '1110',
           "all keys are present at the next start: $forgery");
        is(ask_until_known($t, 'ring', 'key1', 'no'), '10',
           "a key that expires is present at the next start: $forgery");
        $t->stop;
    }
};


# At a stop, the master's child that synchronises journals meets the forged
# memory.  It may fail, but the stop must not.

subtest 'nginx is stopped with forged memory' => sub {
    for my $forgery (@forgeries) {
        begin_again();
        $t->run;
        add($t, 'ids', ['key2']);

        my $mark = $t->log_mark;
        my $worker = ($t->workers)[0];

        kill 'STOP', $t->workers, $t->helpers;
        forge($worker, $_, $forgery) for IDS, SEEN, RING;
        kill 'KILL', $t->workers, $t->helpers;
        ok(end_all(), "nginx can be stopped: $forgery");
        $t->excuse_log($mark);
    }
};


done_testing;
