#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A checkpoint shortens the replay of the journal, and no other image uses it.
# In a zone that starts empty, the older one of two checkpoints becomes what the
# zone stands on, and what the journal has before it is removed.

use strict;
use warnings;

use File::Path qw(remove_tree);
use IPC::Open2;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $faults = BloomTest::Faults->new($t);
$t->expect_log(qr/exited on signal 9/);

my @ids = keys_of('id', 10);

$t->build_image('one.bloom', \@ids, '-p', '1e-9', '-n', '500k');
$t->build_image('two.bloom', [@ids, 'two'], '-p', '1e-9', '-n', '400k');

sub checkpoint {
    my ($zone) = @_;

    is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
       "a checkpoint of zone $zone is written");
}

sub segments {
    my ($zone) = @_;

    return map { m{/(journal\.[^/]*)$} } sort glob "$dir/state/$zone/journal.*";
}

# Tests that the keys k1 to k100000 are present.

sub all_present {
    my ($zone, $name) = @_;

    my @answers = lookup_keys($t, $zone, keys_of('k', 100_000));
    is(scalar(grep { $_ eq 'present' } @answers), 100_000, $name);
}


install_image($t, 'one');
configure($t, ['zone=ids file=ids.bloom',
               'zone=seen capacity=500k fpr=1e-9'], api => 1, workers => 2);
$t->run;


subtest 'a checkpoint shortens the replay' => sub {
    my $count = 100_000;
    my $body = join '', map { "k$_\n" } 1 .. $count;

    for my $zone ('ids', 'seen') {
        api($t, POST => "zones/$zone/keys?durable=true", body => $body);
        my @before = segments($zone);
        my $bytes = zone_state($t, $zone)->{journal}{replay_bytes};

        cmp_ok($bytes, '>', 6 * $count,
               "zone $zone has much to replay before a checkpoint");
        checkpoint($zone);
        cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 1000,
               "zone $zone has almost nothing to replay after a checkpoint");
        my %after = map { $_ => 1 } segments($zone);
        is(scalar(grep { !$after{$_} } @before), 0,
           "no segment of zone $zone is removed for a checkpoint");
        add($t, $zone, ['behind']);
    }

    # replay_bytes shows how much of the journal a start has read

    for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
        my ($method, $how) = @$_;

        $t->$method;
        $t->run;
        for my $zone ('ids', 'seen') {
            all_present($zone,
                        "all keys of zone $zone are present after $how");
            is(ask_until_known($t, $zone, 'behind', 'no'), '10',
               "the key behind the checkpoint of $zone is present after $how");
            cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 100_000,
                   "most keys of zone $zone are not replayed after $how");
        }
    }
};


subtest 'a checkpoint is not used with another image' => sub {
    checkpoint('ids');
    $t->stop;
    install_image($t, 'two');
    $t->run;
    all_present('ids', 'all added keys are present in the other image');
    is(ask_until_known($t, 'ids', 'two', 'behind', 'no'), '110',
       'the other image serves after a start');

    # key "two" is in the second image alone, and in its checkpoint

    checkpoint('ids');
    install_image($t, 'one');
    $t->reload;
    ok(wait_until(sub { ask_until_known($t, 'ids', 'two') eq '0' }),
       'a key of the second image is absent when the first one serves');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'two', 'behind', 'id1'), '011',
       'a key of the second image is absent after a start with the first');
    all_present('ids', 'all added keys are present in the first image');
};


subtest 'checkpoints are damaged' => sub {
    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;

    for my $zone ('ids', 'seen') {
        my @files = glob "$dir/state/$zone/checkpoint.*.bloom";
        ok(scalar @files, "zone $zone has a checkpoint");
        flip($_, -1) for @files;
    }

    my $mark = $t->log_mark;
    $t->run;
    for my $zone ('ids', 'seen') {
        all_present($zone, "all keys of zone $zone are present without its"
                           . ' damaged checkpoint');
        is(ask_until_known($t, $zone, 'behind', 'no'), '10',
           "the last key of zone $zone is present without its checkpoint");
    }
    like($t->log_since($mark), qr/checkpoint/,
         'the log reports a damaged checkpoint');

    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;
    for my $file (map { glob "$dir/state/$_/checkpoint.*.bloom" }
                      'ids', 'seen')
    {
        truncate $file, (-s $file) - 1;
    }
    $t->run;
    all_present($_, "all keys of zone $_ are present without its truncated"
                    . ' checkpoint') for 'ids', 'seen';
    $t->stop;
};


# As long as the journal has all keys, a checkpoint is never needed.

subtest 'a checkpoint has the geometry of an earlier configuration' => sub {
    $t->run;
    checkpoint('seen');
    $t->stop;
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=800k fpr=1e-6'],
              api => 1, workers => 2);
    my $mark = $t->log_mark;
    $t->run;
    all_present('seen',
                'all keys are present with another capacity and rate');
    is(ask_until_known($t, 'seen', 'behind', 'no'), '10',
       'the last key is present in the zone of another capacity');
    like($t->log_since($mark), qr/"seen" replays its whole journal/,
         'the log says that the checkpoint is not used');
};


# The helper writes a checkpoint once the replay would be long.

subtest 'the helper writes a checkpoint without a request' => sub {
    my $sent = 0;
    my $position = sub {
        return join ' ', map { /\.([0-9a-f]{16})\.bloom$/ }
                             files("$dir/state/seen/checkpoint.*");
    };
    my $before = $position->();

    wait_until(sub {
        my $body = join '', map { "itself-$sent-$_-" . 'x' x 200 . "\n" }
                                1 .. 20_000;
        api($t, POST => 'zones/seen/keys', body => $body)->status == 200
            or return 'refused';
        $sent++;
        return $position->() ne $before || $sent >= 80;
    }, 120);

    ok(wait_until(sub { $position->() gt $before }),
       "the helper has written a checkpoint after $sent times 20,000 keys");
};


# Another process holds the lock for synchronising journals, as it does while a
# slow disk keeps it waiting.

subtest 'another process synchronises the journal' => sub {
    my $code = $t->write_file('keeper.c', <<'C');
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    char              c;
    char             *page;
    pthread_mutex_t  *keeper;

    page = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED,
                open(argv[1], O_RDWR), 0);
    if (page == MAP_FAILED) {
        return 1;
    }

    keeper = (pthread_mutex_t *) (page + atoi(argv[2]));

    if (pthread_mutex_lock(keeper) != 0 || write(1, "x", 1) != 1) {
        return 1;
    }

    (void) !read(0, &c, 1);

    return pthread_mutex_unlock(keeper);
}
C

    my ($exit, undef, $err) = run_command(
        [$ENV{CC} // 'cc', '-O1', '-pthread', '-o', "$dir/keeper", $code]);
    is($exit, 0, 'the program that holds the lock is compiled') or die $err;

    my $other = open2(my $out, my $in, "$dir/keeper", "$state/control",
                      BloomTest::Control::place('keeper'));
    read $out, my $locked, 1;

    add($t, 'ids', ['unsynchronised']);

    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/is being synchronised by another process[^(]*$/,
             'no checkpoint is written of records that are not on disk');

    close $in;
    waitpid $other, 0;
    is($?, 0, 'the other process releases the lock');
    checkpoint('ids');
};


# A zone with so many keys that the first segment of the journal, of 2 MiB, ends
# before its first checkpoint.  A helper that begins looks for segments to
# remove before it saves an image.

my @first = map { "first$_-" . 'x' x 100 } 1 .. 24_000;
my $many = "$dir/state/many";

sub conf_many {
    my ($parameters) = @_;

    configure($t, ["zone=many $parameters"], api => 1, workers => 2);
}

sub files_of_many { return map { m{([^/]*)$} } files("$many/checkpoint.*") }

# Returns the names of the checkpoints that an entry of the file base has.

sub names_in {
    my ($base) = @_;

    return map { sprintf 'checkpoint.%s.%016x.bloom', $base->{build_id},
                         $base->{$_}{position} } qw(older newer);
}

# Tests that the zone has all keys, and those.

sub is_whole {
    my ($when, @more) = @_;

    my @answers = lookup_keys($t, 'many', @first);
    is(scalar(grep { $_ eq 'present' } @answers), @first,
       "all keys from before the checkpoints are present $when");
    is(ask_until_known($t, 'many', qw(kept removed restored no), @more),
       '1010' . '1' x @more, "removals and later keys hold $when");
}

sub look_for_segments {
    $t->kill_helper;
    api($t, GET => 'zones/many/image')->status == 200 or die 'no helper';
}

# Begins with a checkpoint, or with two and keys between and behind them.

sub begin_with_one {
    $t->stop if $t->master;
    remove_tree($many);
    conf_many('capacity=50k fpr=1e-9');
    $t->run;

    add($t, 'many', [qw(kept removed restored), @first], durable => 1);

    for ('restored', 'removed') {
        api($t, POST => 'zones/many/remove', body => $_)->status == 200
            or die 'not removed';
        api($t, POST => 'zones/many/clear?only=removed')->status == 200
            or die 'not restored' if $_ eq 'restored';
    }

    checkpoint('many');
    add($t, 'many', ['between'], durable => 1);
}

sub begin_with_two {
    begin_with_one();
    checkpoint('many');
    add($t, 'many', ['behind'], durable => 1);
}

subtest 'the older one of two checkpoints becomes the base' => sub {
    begin_with_two();

    my $base = read_base("$many/base");
    my @files = files_of_many();
    is_deeply(\@files, [names_in($base)],
              'the file base names both checkpoints');

    look_for_segments();
    my $now = read_base("$many/base");
    is_deeply([@$now{qw(kind from)}],
              [BloomTest::Base::CHECKPOINT, $base->{older}],
              'the zone stands on the older one');
    my ($segment) = segments('many');
    isnt($segment, 'journal.' . '0' x 16, 'the first segment is removed');
    is_whole('while nginx runs', 'between', 'behind');

    for my $how ('kill_all', 'stop') {
        $t->$how;
        $t->run;
        is_whole("after $how", 'between', 'behind');
        is_deeply([files_of_many()], \@files, "both are kept after $how");
    }

    my ($exit, @segments) = read_journal($t, $many);
    is($exit, 0, 'ngx-bloom accepts the rest of the journal');

    # a third one takes the place of the oldest

    add($t, 'many', ['third']);
    checkpoint('many');
    my @later = files_of_many();
    is_deeply([$later[0], scalar @later], [$files[1], 2],
              'the last two are kept');
    $t->kill_all;
    $t->run;
    is_whole('with three checkpoints', 'between', 'behind', 'third');
};


# The same keys, again and again: no more is left of the journal than what the
# two checkpoints do not have.

subtest 'the journal of a zone that starts empty does not grow' => sub {
    begin_with_two();

    my @sizes;

    for my $round (1 .. 4) {
        add($t, 'many', \@first) for 1 .. 15;
        checkpoint('many');
        look_for_segments();
        push @sizes, zone_state($t, 'many')->{journal}{bytes};
    }

    cmp_ok($sizes[3], '<=', $sizes[1] + 16 * 1024 * 1024,
           'the journal has no more segments after four rounds than after two')
        or diag("@sizes");
    is_whole('after these rounds', 'between', 'behind');
};


# Both have all keys, or the zone says that it does not.

subtest 'the checkpoints that a zone stands on are damaged' => sub {
    my %harm = (
        damaged => sub { flip($_[0], -1) },
        'cut off' => sub { truncate $_[0], (-s $_[0]) - 1 },
        missing => sub { unlink $_[0] },
    );

    begin_with_two();
    look_for_segments();

    for my $how (sort keys %harm) {
        $t->kill_all;
        my ($older, $newer) = map { "$many/$_" } files_of_many();
        $harm{$how}->($newer);

        my $mark = $t->log_mark;
        $t->run;
        like($t->log_since($mark),
             qr/\[warn\].*\Q$newer\E.*starts without that checkpoint/,
             "the log names the newer checkpoint if it is $how");
        is_whole("if the newer checkpoint is $how", 'between', 'behind');

        # two good ones

        for (1, 2) {
            add($t, 'many', ["more-$how-$_"]);
            checkpoint('many');
        }
    }

    add($t, 'many', ['last'], durable => 1);
    $t->kill_all;
    my @both = map { "$many/$_" } files_of_many();
    flip($_, -1) for @both;

    $t->expect_log(qr/\[alert\].*"many" has lost the keys of its checkpoints/);
    $t->expect_log(qr/\[alert\].*"many" has lost added keys/);
    my $mark = $t->log_mark;
    $t->run;
    like($t->log_since($mark), qr/\[warn\].*\Q$_\E.*starts without that/,
         'the log names both') for @both;
    is(ask($t, 'many', 'last', $first[0], 'removed', 'no'), '1???',
       'what the journal has is present, and nothing is absent');
    is(zone_state($t, 'many')->{state}, 'damaged', 'the zone is damaged');
    $t->kill_all;
    $t->run;
    is(ask($t, 'many', 'last', 'no'), '1?', 'nor is it absent after a start');

    is(api($t, POST => 'zones/many/clear')->status, 200, 'the zone is cleared');
    add($t, 'many', ['new']);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'many', 'new', 'last', $first[0]), '100',
       'a clear repairs it');
};


# A start finds neither of them, and the journal still has all keys: it must
# keep them, as long as no checkpoint is known to be good.

subtest 'the checkpoints are damaged before the zone stands on them' => sub {
    # the helper may have removed it since

    my $first = "$many/journal." . '0' x 16;

    begin_with_one();
    link $first, "$dir/aside" or die "link: $!";
    my $base = read_base("$many/base");
    checkpoint('many');
    add($t, 'many', ['behind'], durable => 1);
    $t->kill_all;
    link "$dir/aside", $first or die "link: $!" if !-e $first;
    set_base("$many/base", map { $_ => $base->{$_} } qw(kind from dropped));

    flip("$many/$_", -1) for files_of_many();
    $t->run;
    is_whole('without its checkpoints', 'between', 'behind');
    look_for_segments();
    is((segments('many'))[0], 'journal.' . '0' x 16,
       'nothing is removed from the journal');

    checkpoint('many');
    look_for_segments();
    is((segments('many'))[0], 'journal.' . '0' x 16,
       'nor is it with one good checkpoint');
    $t->kill_all;
    $t->run;
    is_whole('with one good checkpoint', 'between', 'behind');

    add($t, 'many', ['more']);
    checkpoint('many');
    look_for_segments();
    isnt((segments('many'))[0], 'journal.' . '0' x 16,
         'with two good ones the first segment is removed');
    is_whole('with two good checkpoints', 'between', 'behind', 'more');
};


# The keys are in the checkpoints alone, so a start with another kind of filter
# would lose them.

subtest 'a zone that stands on its checkpoints is configured otherwise' => sub {
    begin_with_two();
    look_for_segments();
    $t->stop;

    for (['fpr=1e-6', 'rate'], ['fpr=1e-9 layout=classic', 'layout'],
         ['fpr=1e-9 hash=siphash', 'hash'], ['fpr=1e-9 form=host', 'form'])
    {
        my ($parameters, $what) = @$_;

        conf_many("capacity=50k $parameters");
        like($t->run_fails,
             qr/\[emerg\].*"many" cannot change its $what: its keys are in ".*checkpoint\.[^"]*" alone.*undo the change/,
             "a start with another $what is refused");
    }

    # another capacity is that of the next filter

    conf_many('capacity=80k fpr=1e-9');
    $t->run;
    is_whole('with another capacity', 'between', 'behind');
    add($t, 'many', ['later']);
    $t->kill_all;
    $t->run;
    is_whole('after that', 'between', 'behind', 'later');
    $t->stop;
};


# The helper dies at each step of the second checkpoint, or of what follows it:
# the entry that begins with the older one, and the removal of the segment.  The
# next helper, or the next start, goes on.

sub dies_at_each_step {
    my ($what, $how, $begin, $done) = @_;

    my $deaths = 0;

    for my $step (1 .. 60) {
        remove_tree($many);
        system('cp', '-a', "$dir/template", $many) == 0 or die 'cp';
        $t->run;
        $begin->();
        redo if !-e "$many/journal." . '0' x 16;    # it took too long

        $faults->kill_at('any', $step);
        $done->();
        last if $faults->pending;

        $deaths++;

        if ($how eq 'the next start') {
            $t->kill_all;
            $t->run;
        }

        my $when = "with $how after a death at step $step of $what";
        is_whole($when, 'between');
        checkpoint('many');
        my $base = read_base("$many/base");
        is_deeply([files_of_many()], [names_in($base)],
                  "no other checkpoint is left $when");
        look_for_segments();
        ok(!-e "$many/journal." . '0' x 16, "the segment is removed $when");
        $t->kill_all;
        $t->run;
        is_whole("$when and another start", 'between');
        $t->kill_all;
    }

    $faults->withdraw;
    $t->kill_all;
    cmp_ok($deaths, '>', 3, "the helper dies at $deaths steps of $what");
    cmp_ok($deaths, '<', 60, "$what is completed with $how");
}

subtest 'the helper dies while a checkpoint becomes the base' => sub {
    $faults->needed;

    begin_with_one();
    $t->stop;
    rename $many, "$dir/template" or die "rename: $!";

    for my $how ('the next helper', 'the next start') {
        dies_at_each_step('a checkpoint', $how, sub {},
                          sub { api($t, POST => 'zones/many/checkpoint') });

        # a helper that begins looks for segments first

        my $next = sub {
            kill 'KILL', $t->helper or die "kill: $!";
            wait_until(sub {
                !$faults->pending || !-e "$many/journal." . '0' x 16;
            });
        };

        dies_at_each_step('what follows', $how, sub { checkpoint('many') },
                          $next);
    }
};


done_testing;
