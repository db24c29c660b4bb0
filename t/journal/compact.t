#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A journal with many repeated keys or small records is compacted: it becomes
# shorter and keeps every key, the time of its last addition, and its order.

use strict;
use warnings;

use File::Path qw(remove_tree);
use List::Util qw(max min sum);

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(alive resume_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

# an nginx with injected faults compacts a smaller journal
my $faults = BloomTest::Faults->new($t);
my $enough = $faults->built_in ? 2_500_000 : 80_000_000;

use constant NEVER => 1 << 60;

my $became = qr/the journal was compacted from (\d+) to (\d+) bytes/;
my $now = int(time / 60) * 60;    # records of the same minute become one
my @ids = keys_of('id', 10);

# Configures nginx, before it is started, to compact a journal of that many
# bytes.

sub compact_from {
    my ($bytes) = @_;

    $t->environment(NGX_BLOOM_FAULT_COMPACT => $bytes);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
}

sub segments { return files("$state/journal.0*") }

# Returns the segments that compaction has not written yet.

sub unfinished { return files("$state/*compact.*.tmp") }

# Waits until the log says, behind a mark, that the journal has been compacted.

sub compacted {
    my ($mark) = @_;

    my $line = $t->wait_for_log($became, $mark);
    my ($before, $after) = $line =~ $became;

    return ($before, $after, $line);
}

# Adds the same keys repeatedly, that many bytes in all.

sub feed {
    my ($bytes, @keys) = @_;

    my $body = join "\n", @keys;

    for (my $sent = 0; $sent < $bytes; $sent += length $body) {
        api($t, POST => 'zones/ids/keys?durable=true', body => $body);
    }
}

# Returns for each key in the journal the times at which it was added.

sub times_of_keys {
    my (undef, $out) = $t->run_tool('journal', '--json', '--keys', $state);
    my %times;
    push @{ $times{$1} }, $2
        while $out =~ /"key": ?"([^"]*)".*?"time": ?"([^"]*)"/g;

    return %times;
}

# Tests that ngx-bloom finds no damage in the journal.  Returns an object for
# each segment, and for each key the times at which it was added.

sub verified {
    my ($name) = @_;

    return (verified_segments($name), { times_of_keys() });
}

sub verified_segments {
    my ($name) = @_;

    my ($exit, @segments) = read_journal($t, $state);
    is($exit, 0, "ngx-bloom accepts the journal $name");
    is(sum(map { $_->{missing} + $_->{broken} + $_->{torn} } @segments), 0,
       "the journal has no gap $name");

    return \@segments;
}

# Tests that these keys are present, and keys that were never added are absent.

sub all_present {
    my ($name, @keys) = @_;

    my @answers = lookup_keys($t, 'ids', @keys);
    my @lost = map { $keys[$_] } grep { $answers[$_] ne 'present' } 0 .. $#keys;
    is("@lost[0 .. ($#lost > 5 ? 5 : $#lost)]", '',
       "all keys are present $name");
    is(ask_until_known($t, 'ids', 'id1', map { "no$_" } 1 .. 20), '1' . '0' x 20,
       "keys that were never added are absent $name");
}

# Returns the most memory that a process has used so far.

sub peak_memory {
    my ($pid) = @_;

    open my $status, '<', "/proc/$pid/status" or die "no process $pid: $!";
    local $/;

    return 1024 * (<$status> =~ /^VmHWM:\s+(\d+) kB/m)[0];
}

sub without_checkpoints { unlink files("$state/checkpoint.*") }


for (['one', 1], ['two', 2]) {
    my ($name, $seed) = @$_;

    $t->build_image("$name.bloom", [@ids, $name], '-p', '1e-9', '-n', '100k',
                    '--seed', $seed);
}

install_image($t, 'one');

my @single = keys_of('single', 3000);
my @again = map { "again$_-" . 'x' x 180 }
            1 .. ($faults->built_in ? 500 : 5000);
my @keys = (@single, @again);


subtest 'a compacted journal is shorter and has all keys' => sub {
    compact_from(NEVER);
    $t->run;

    add($t, 'ids', \@single);

    my $mark = $t->log_mark;
    feed($enough, @again);

    if ($faults->built_in) {
        $t->stop;
        compact_from(1_000_000);
        $mark = $t->log_mark;
        $t->run;
    }

    my ($before, $after, $line) = compacted($mark);
    my $count = @keys;
    like($line, qr/\[notice\].*"ids".* keys, $count of them distinct/,
         'the log says how many keys are distinct');
    cmp_ok($after, '<', $before / 4,
           'the compacted journal has less than a quarter of its bytes');
    is(-s (segments())[0], $after,
       'the compacted segment is as long as the log says');
    ok(!-e "$state/journal.0000000000000000", 'the first segment is removed');
    is(scalar files("$state/compact.*"), 0, 'compaction leaves no files');
    is(scalar files("$state/*.tmp"), 0,
       'compaction leaves no temporary files');
    all_present('after compaction', @keys);

    my ($segments, $times) = verified('after compaction');
    is(scalar(grep { !$times->{$_} } @keys), 0,
       'the compacted journal has every key');
    is(scalar(keys %$times), scalar @keys,
       'the compacted journal has no other key');
    cmp_ok($segments->[0]{keys}, '<=', @keys,
           'the compacted segment has each key once');
    cmp_ok($segments->[0]{records}, '<', 30,
           'the compacted segment has a few records');

    # another image has other bits, so that its keys come from the journal

    install_image($t, 'two');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image is loaded');
    is(ask_until_known($t, 'ids', 'one', 'two'), '01', 'the other image serves');
    all_present('in the other image', @keys);

    for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
        my ($method, $how) = @$_;

        $t->$method;
        without_checkpoints();
        $t->run;
        all_present("after $how", @keys);
    }

    add($t, 'ids', ['later']);
    $t->kill_all;
    without_checkpoints();
    $t->run;
    all_present('after another addition', @keys, 'later');
    verified('after another addition');

    install_image($t, 'one');
    $t->reload;
    ok(wait_until(sub { ask_until_known($t, 'ids', 'one', 'two') eq '10' }),
       'a reload loads the first image again');
    all_present('in the first image again', @keys, 'later');
    $t->stop;
};


# The table of a run has room for a million keys.  A journal with more keys is
# walked once for each share of them, unless the first share shows that
# compaction would not pay.

subtest 'a journal of distinct keys is not compacted' => sub {
    my $pad = 'y' x ($faults->built_in ? 0 : 30);
    my $unique = 1_000_000;

    remove_tree("$dir/state");
    compact_from(NEVER);
    $t->run;
    my $mark = $t->log_mark;
    my $helper = $t->helper;

    for (1 .. 13) {
        my $body = join "\n", map { "u$_$pad" } $unique .. $unique + 199_999;
        api($t, POST => 'zones/ids/keys?durable=true', body => $body);
        $unique += 200_000;
    }

    if ($faults->built_in) {
        $t->stop;
        compact_from(1_000_000);
        $mark = $t->log_mark;
        $t->run;
        $helper = $t->helper;
    }

    like($t->wait_for_log(qr/is not compacted/, $mark),
         qr/would not become much shorter/,
         'the log says that the journal would not become much shorter');
    cmp_ok(bytes_read($helper), '<',
           2.5 * ($faults->built_in ? 17 : 65) * (1 << 20),
           'the run is given up after the first share of the keys');
    verified_segments('with distinct keys');
    $t->stop;
    unlike($t->log_since($mark), $became,
           'a journal of distinct keys is not compacted later');
};


subtest 'a journal has more than a million distinct keys' => sub {
    my $many = 1_200_000;

    remove_tree("$dir/state");
    compact_from(NEVER);
    $t->run;
    my $helper = $t->helper;
    my $peak = peak_memory($helper);
    my $mark = $t->log_mark;
    feed(max($enough, 35_000_000), map { "k$_" } 1 .. $many);

    if ($faults->built_in) {
        $t->stop;
        compact_from(1_000_000);
        $mark = $t->log_mark;
        $t->run;
    }

    my ($before, $after, $line) = compacted($mark);
    like($line, qr/ keys, $many of them distinct/,
         'the log says how many keys of two shares are distinct');

    if (!$faults->built_in) {
        cmp_ok(peak_memory($helper) - $peak, '<', 50_000_000,
               'compaction of more than a million keys takes less than 50 MB');
    }

    verified_segments('with keys of two shares');

    my (undef, $out) = $t->run_tool('journal', '--keys', (segments())[0]);
    my ($seen, $keys) = ('', 0);

    while ($out =~ /^k(\d+)$/mg) {
        vec($seen, $1, 1) = 1;
        $keys++;
    }

    is(unpack('%32b*', $seen), $many,
       'the compacted segment has every key of two shares');
    is($keys, $many, 'the compacted segment has each key of two shares once');
    $t->stop;
};


subtest 'the same keys are added again and again' => sub {
    remove_tree("$dir/state");
    compact_from(1_000_000);
    $t->run;

    # a run begins when a segment of 16 MiB is full

    my $bytes = max($enough, 20_000_000);
    my @became;

    for (1 .. 3) {
        my $mark = $t->log_mark;
        feed($bytes, @keys);
        push @became, (compacted($mark))[1];
    }

    cmp_ok(max(@became), '<', 1.1 * min(@became),
           'the journal becomes as short each time that it is compacted');
    my $segments = verified_segments('after three compactions');
    cmp_ok(sum(map { $_->{used} } @$segments), '<', 3 * $bytes / 2,
           'the journal has less than half of what was added');
    all_present('after three compactions', @keys);
    $t->stop;
};


subtest 'a load precedes compaction' => sub {
    plan skip_all => 'the journal is small with injected faults'
        if $faults->built_in;

    # enough repeated keys for a compaction that takes a second

    remove_tree("$dir/state");
    $t->run;
    my $body = join "\n", @again;
    my $sent = 0;
    my $mark = $t->log_mark;
    for ( ; $sent < $enough; $sent += length $body) {
        api($t, POST => 'zones/ids/keys', body => $body);
    }

    # compaction has begun or is about to begin

    install_image($t, 'two');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image is loaded');
    my ($last) = $t->log_since($mark) =~ /.*(serves generation|$became)/s;
    is($last, 'serves generation',
       'the other image serves before the journal is compacted');
    compacted($mark);
    all_present('after a load and a compaction', @again, 'two');
    $t->stop;
};


# A subtest with a small journal, which only an nginx with injected faults
# compacts.

sub with_faults {
    my ($name, $code) = @_;

    subtest $name => sub {
        $faults->needed;

        remove_tree("$dir/state");
        install_image($t, 'one');
        $code->();
    };
}

# Creates a journal of segments, each a list of records [age in s, keys...],
# with the type of the record as \TYPE before its keys.  The last segment is not
# compacted, since nginx appends to it.

sub begin_with {
    my (@segments) = @_;

    my @created = (created => ($now - 7 * 3600) * 1000);
    my @journals;

    for my $records (@segments) {
        push @journals, @journals ? $journals[-1]->next_segment(@created)
                                  : BloomTest::Journal->new(@created);

        for (@$records) {
            my ($ago, @keys) = @$_;
            my @time = (time => ($now - $ago) * 1000);
            my $type = ref $keys[0] ? ${ shift @keys } : ADD;

            if ($type == CLEAR) {
                $journals[-1]->append_clear(@time);
            } elsif ($type == RESTORE) {
                $journals[-1]->append_restoration(@time);
            } else {
                $journals[-1]->append(\@keys, type => $type, @time);
            }
        }
    }

    begin_state($t, 'ids', @journals);
}


with_faults('keys keep the time of their last addition' => sub {
    my @filler = map { "filler$_" } 1 .. 40;
    my $hour = 3600;

    begin_with(
        [[6 * $hour, 'again', 'old'], [6 * $hour - 20, 'near'],
         [6 * $hour - 100, 'far'], [5 * $hour, 'middle', 'any-' . 'z' x 65000]],
        (map { [[5 * $hour, @filler]] } 1 .. 5),
        [[2 * $hour, 'again', @filler]],
        [[1, 'end']]);
    my @all = (qw(again old near far middle end), @filler);

    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    my ($before, $after) = compacted($mark);
    cmp_ok($after, '<', $before / 4,
           'a journal of several hours becomes much shorter');
    all_present('after compaction', @all);

    my ($segments, $times) = verified('after compaction');
    my %ago = (again => 2 * $hour, old => 6 * $hour - 20,
               near => 6 * $hour - 20, far => 6 * $hour - 100,
               middle => 5 * $hour, end => 1,
               map { $_ => 2 * $hour } @filler);
    is($times->{$_}[0], rfc3339($now - $ago{$_}) =~ s/Z/.000Z/r,
       "key $_ has its last time or one that is later by less than a minute")
        for sort keys %ago;
    is(scalar(grep { @$_ != 1 } values %$times), 0,
       'the compacted journal has each key once');
    is($segments->[0]{records}, 4,
       'records of the same minute become one record');
    is($segments->[1]{first_sequence}, $segments->[0]{last_sequence} + 1,
       'sequence numbers have no gap behind the compacted segment');

    # an image with as_of drops the same keys as before the compaction

    $t->build_image('between.bloom', [@ids], '-p', '1e-9', '--as-of',
                    rfc3339($now - 3 * $hour));
    is(upload_image($t, 'ids', 'between')->status, 200,
       'an image as of 3 hours ago is uploaded');
    is(ask_until_known($t, 'ids', qw(again old near far middle end), @filler),
       '100001' . '1' x 40,
       'the image drops keys that were added last 4 hours ago');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(again old near far middle end), @filler),
       '100001' . '1' x 40, 'the dropped keys are absent after a restart');

    $t->build_image('recent.bloom', [@ids], '-p', '1e-9', '--as-of',
                    rfc3339($now));
    my ($first) = segments();
    is(upload_image($t, 'ids', 'recent')->status, 200,
       'an image that covers the compacted segment is uploaded');
    ok(wait_until(sub { !-e $first }), 'the compacted segment is removed');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'again', 'end', 'id1'), '011',
       'keys of the removed segment are absent after a restart');
    $t->stop;
});


# Removals keep their times: a later one would apply to an image that is newer.
# A removed key keeps its addition: if it is restored, the filter alone decides
# about it.

with_faults('records of all types are compacted' => sub {
    my @filler = map { "filler$_" } 1 .. 40;
    my $then = 6 * 3600;

    begin_with(
        [[$then, \CLEAR],
         [$then, qw(plain removed again restored twice)],
         [$then - 1, \REMOVE, qw(again restored twice never)],
         [$then - 2, \RESTORE],
         [$then - 3, \REMOVE, qw(removed twice)],
         [$then - 4, 'again'],
         [$then - 5, 'any-' . 'z' x 65000]],
        (map { [[$then - 3600, @filler]] } 1 .. 5),
        [[1, 'end']]);
    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    all_present('after compaction of removals',
                qw(plain again restored end), @filler);

    my ($segments, $times) = verified('after compaction of removals');
    is_deeply([@{ $segments->[0] }{qw(version records added removed restorations
                                      cleared)}],
              [2, 6, 6 + 40, 4, 1, JSON::PP::false],
              'the compacted segment has the last records of each key');
    is($segments->[1]{first_sequence}, $segments->[0]{last_sequence} + 1,
       'sequence numbers have no gap behind removals');
    is_deeply([sort keys %$times],
              [sort qw(plain again restored end), @filler,
                    'any-' . 'z' x 65000],
              'the added keys stay, and the removed ones go');

    my (undef, $out) = $t->run_tool('journal', '--json', '--removed', $state);
    is_deeply([$out =~ /"key": ?"([^"]*)".*?"time": ?"([^"]*)"/g],
              [removed => rfc3339($now - $then + 3) =~ s/Z/.000Z/r,
               twice => rfc3339($now - $then + 3) =~ s/Z/.000Z/r],
              'the removed keys keep the times of their removals');
    $t->stop;

    # without removals the segment has version 1

    begin_with([[$then, \CLEAR], [$then, \REMOVE, 'again'], [$then, 'again'],
                [$then, 'any-' . 'z' x 65000]],
               (map { [[$then, @filler]] } 1 .. 5), [[1, 'end']]);
    $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    ($segments) = verified('after compaction of undone removals');
    is_deeply([@{ $segments->[0] }{qw(version removed cleared)}],
              [1, 0, JSON::PP::false],
              'a compacted segment of additions has version 1');
    $t->stop;
});


with_faults('times of the journal go back' => sub {
    my @filler = map { "filler$_" } 1 .. 40;

    begin_with([[-7200, 'ahead'], [7200 - 40, 'up'], [7200 - 20, 'down'],
                [7200, 'behind', @filler], [7200 - 120, 'later']],
               (map { [[7200 - 120, @filler]] } 1 .. 5), [[1, 'end']]);
    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    compacted($mark);

    my %times = times_of_keys();
    my %ago = (ahead => -7200, up => 7200 - 40, down => 7200 - 20,
               behind => 7200, later => 7200 - 120, end => 1,
               map { $_ => 7200 - 120 } @filler);
    my @wrong = grep { ($times{$_}[0] // '')
                       ne rfc3339($now - $ago{$_}) =~ s/Z/.000Z/r }
                sort keys %ago;
    is("@wrong", '', 'each key keeps its own time when times go back');
    $t->stop;
});


with_faults('a checkpoint has a position that was compacted' => sub {
    compact_from(NEVER);
    $t->run;

    my $body = join "\n", @again;
    add($t, 'ids', \@single);
    api($t, POST => 'zones/ids/keys', body => $body) for 1 .. 5;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    my @behind = keys_of('behind', 100);
    add($t, 'ids', \@behind);
    api($t, POST => 'zones/ids/keys', body => $body) for 1 .. 16;
    is(api($t, POST => 'zones/ids/keys?durable=true', body => 'last')->status,
       200, 'keys are added behind the checkpoint');
    $t->kill_all;

    my ($checkpoint) = files("$state/checkpoint.*");
    my ($position) = $checkpoint =~ /\.([0-9a-f]{16})\.bloom$/;

    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    my ($segments) = verified('after compaction');
    my ($first) = segments();
    cmp_ok(hex $position, '<', $segments->[0]{base} + $segments->[0]{size},
           'the position of the checkpoint is not behind the compacted'
           . ' segment');
    all_present('after compaction', @keys, @behind, 'last');

    $t->kill_all;
    ok(-e $checkpoint, 'the checkpoint is not removed');
    $mark = $t->log_mark;
    $t->run;
    like($t->log_since($mark), qr/after a checkpoint/,
         'the next start uses the checkpoint');
    all_present('after a start with the checkpoint', @keys, @behind, 'last');
    $t->stop;
});


with_faults('a segment is damaged or missing' => sub {
    my @segments = map { [[3600, 'lost', keys_of('found', 20)]] } 1 .. 6;
    begin_with(@segments, [[1, 'end']]);

    my ($first) = segments();
    flip($first, 128 + 34);

    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    like($t->wait_for_log(qr/is not compacted/, $mark), qr/damaged/,
         'the log says that a damaged journal is not compacted');
    ok(-e $first, 'the damaged segment is not removed');
    is(ask($t, 'ids', 'found1', 'end', 'no'), '11?',
       'keys that were not added are unknown in a damaged journal');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'found1', 'end', 'no'), '11?',
       'keys that were not added are unknown after a restart');
    $t->stop;

    # now the compacted segment is missing

    begin_with(@segments, [[1, 'end']]);
    $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    all_present('after compaction', 'lost', keys_of('found', 20), 'end');
    $t->kill_all;
    unlink +(segments())[0];
    $t->run;
    is(ask($t, 'ids', 'end', 'no'), '1?',
       'keys are unknown when the compacted segment is missing');
    $t->stop;
});


# Repeated keys fill the first segment, which is compacted once records are
# written to the second segment, which exists already.

my @full = map { "full$_-" . 'x' x 100 } 1 .. 400;
my @big = map { "big$_-" . 'x' x 200 } 1 .. 300;

sub begin_with_a_full_segment {
    begin_with([map { [3600, @full] } 1 .. 5]);
    compact_from(1000);
    $t->run;
    wait_until(sub { segments() >= 3 }) or die 'no segments are made';
}


# Begins with a journal of five segments, most of whose keys repeat, and a sixth
# to which nginx appends.  Later segments exist already, so that the next write
# to a file belongs to compaction.

sub begin_ready {
    my (@keys) = @_;

    begin_with([[7200, 'once', @keys], [7200, @full]],
               (map { [[3600, @full]] } 1 .. 4), [[1, 'end']]);
    compact_from(NEVER);
    $t->run;
    add($t, 'ids', ['before'], durable => 1);
    $t->kill_all;
    compact_from(1000);
}

my @ready = ('once', @full, 'end', 'before');


with_faults('the helper dies of compaction' => sub {
    begin_ready();
    my $mark = $t->log_mark;
    $faults->kill_at('write');
    $t->run;
    $t->wait_for_log(qr/fault injected/, $mark);
    ok(!wait_until(sub { $t->log_since($mark) =~ $became }, 2),
       'the next helper does not begin again');

    feed(20_000_000, @again);
    ok(compacted($mark), 'another run begins when the journal has doubled');
    all_present('when the journal has doubled', @ready, @again);
    verified('when the journal has doubled');
    $t->kill_all;
});


with_faults('a run that does not pay is put off' => sub {
    my $unique = 0;
    my @filled = map { [map { [3600, map { $unique++ . 'u' x 100 } 1 .. 1200] }
                        1, 2] } 1 .. 4;

    begin_with(@filled, [[1, 'end']]);
    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    like($t->wait_for_log(qr/is not compacted/, $mark),
         qr/would not become much shorter/,
         'a journal of distinct keys is not compacted');

    $mark = $t->log_mark;
    feed(300_000, @full);
    ok(!wait_until(sub { $t->log_since($mark) =~ /compacted|$became/ }, 2),
       'no run begins while the journal has not doubled');

    feed(20_000_000, @full);
    ok(compacted($mark), 'another run begins when the journal has doubled');
    all_present('when the journal has doubled', @full, 'end',
                map { $_ . 'u' x 100 } 0 .. $unique - 1);
    $t->stop;
});


with_faults('nginx is reloaded while the helper compacts' => sub {

    # records for several steps, each of which ends before the helper exits

    my @some = map { "some$_-" . 'x' x 200 } 1 .. 600;

    begin_ready(@some);
    my $mark = $t->log_mark;
    my $stop = $faults->stop_at('write');
    $t->run;
    my $helper = $faults->stopped($stop);
    is(scalar unfinished(), 1, 'a segment is being written');

    my @workers = $t->workers;
    kill 'HUP', $t->master;
    wait_until(sub { !grep { alive($_) } @workers }) or die 'no reload';
    resume_process($helper);
    ok(compacted($mark), 'the next helper compacts the journal at once');
    ok(wait_until(sub { !files("$state/*.tmp") }),
       'no file of the first run is left');
    all_present('after the reload', @ready, @some);
    verified('after the reload');
    $t->stop;
});


with_faults('another instance appears while the helper compacts' => sub {

    # a write of a record, or of the header, after which the segments are
    # replaced

    for my $write (1, 3) {
        begin_ready();
        my $mark = $t->log_mark;
        my $stop = $faults->stop_at('write', $write);
        $t->run;
        my $helper = $faults->stopped($stop);

        $t->upgrade_begin;
        resume_process($helper);
        ok(wait_until(sub { !unfinished() }),
           "the run ends when another instance has appeared at write $write");
        ok(!wait_until(sub {
               $t->log_since($mark) =~ $became
               || grep { !/\.tmp$/ } files("$state/compact.*")
           }, 2), 'no segment is replaced under another instance');
        ok(-e "$state/journal.0000000000000000",
           'the first segment is not removed under another instance');

        $t->upgrade_finish;
        ok(compacted($mark),
           'the instance that is left compacts the journal at once');
        all_present('after the upgrade', @ready);
        verified('after the upgrade');
        $t->stop;
    }
});


with_faults('no instance compacts while there are two' => sub {
    begin_with_a_full_segment();
    $t->upgrade_begin;

    my $mark = $t->log_mark;
    add($t, 'ids', \@big, durable => 1);
    ok(!wait_until(sub { $t->log_since($mark) =~ $became }, 2),
       'the journal is not compacted while two instances run');
    ok(-e "$state/journal.0000000000000000",
       'the first segment is not removed while two instances run');

    # the remaining instance compacts

    $t->upgrade_finish;
    compacted($mark);
    all_present('after the upgrade', @full, @big);
    $t->stop;
});


with_faults('the disk is full' => sub {
    my $disk = BloomTest::Disk->new($t, 'state');

    for my $what ('grow', 'rename') {
        begin_with_a_full_segment();
        $disk->refuse('ENOSPC', $what);
        my $mark = $t->log_mark;
        add($t, 'ids', \@big);
        like($t->wait_for_log(qr/is not compacted/, $mark),
             qr/\[error\].*segment.*No space left/,
             "the log says that the disk is full when $what is refused");
        all_present("when $what is refused", @full, @big);
        ok(-e "$state/journal.0000000000000000",
           "the first segment is not removed when $what is refused");
        is(scalar unfinished(), 0,
           "no unfinished file is left when $what is refused");

        $disk->allow;
        $t->kill_all;
        $mark = $t->log_mark;
        $t->run;
        compacted($mark);
        all_present("when $what is allowed again", @full, @big);
        verified("when $what is allowed again");
        $t->stop;
    }
});


# The helper dies at every step in turn.  The next helper, or the next start,
# finds the files that it left behind.

with_faults('the helper dies at each step' => sub {
    my @keys = (keys_of('once', 20), keys_of('dies', 200), 'end');

    for my $how ('the next helper', 'the next start') {
        my $deaths = 0;
        my $left = 0;

        for my $step (1 .. 60) {
            begin_with([[7200, keys_of('once', 20)]],
                       (map { [[3600, keys_of('dies', 200)]] } 1 .. 3),
                       [[1, 'end']]);

            # segments exist already, so that every step belongs to compaction

            compact_from(NEVER);
            $t->run;
            add($t, 'ids', ['before'], durable => 1);
            $t->kill_all;

            compact_from(1000);
            my $mark = $t->log_mark;
            $faults->kill_at('any', $step);
            $t->run;

            my $line = $t->wait_for_log(qr/$became|fault injected/, $mark);
            last if $line =~ $became;

            $deaths++;
            my ($where) = $line =~ /injected at "(\w+)"/;
            wait_until(sub { !$faults->pending });

            if ($how eq 'the next start') {
                $t->kill_all;
                $left++ if grep { !/\.tmp$/ } files("$state/compact.*");
                compact_from(NEVER);
                $t->run;
            }

            my $when = "with $how after a death at step $step ($where)";
            all_present($when, @keys, 'before');
            ok(wait_until(sub { !files("$state/compact.*") }),
               "no unfinished file is left $when");
            unlike($t->log_since($mark), $became,
                   "compaction does not start again $when");
            $t->kill_all;
            verified($when);
        }

        $faults->withdraw;
        cmp_ok($deaths, '>', 10, "compaction has died at $deaths steps");
        cmp_ok($deaths, '<', 60,
               "compaction completes after $deaths deaths with $how");
        cmp_ok($left, '>', 3, "$left deaths left segments for $how to replace")
            if $how eq 'the next start';
        $t->kill_all;
    }
});

if ($faults->built_in) {
    $t->expect_log(qr/exited on signal 9/);
    $t->expect_log(qr/has lost added keys/);
}


done_testing;
