#!/usr/bin/perl

# Keys that were added again and again, and records of a key or two, do not
# make a journal longer for ever: it is compacted, and nobody can tell but by
# its length.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP ();
use List::Util qw(sum);

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

# with injected faults it is less that a journal has to grow
my $faults = $t->nginx_build =~ /NGX_BLOOM_FAULTS/;
my $enough = $faults ? 2_500_000 : 80_000_000;

use constant NEVER => 1 << 60;

mkdir "$dir/faults" or die "mkdir: $!";
my $fault = "$dir/faults/next";
$t->environment(NGX_BLOOM_FAULT_FILE => $fault);

my $became = qr/(\d+) bytes of the journal became (\d+)/;
my $now = time;
my @ids = keys_of('id', 10);

sub rfc {
    my @time = gmtime $_[0];

    return sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $time[5] + 1900,
                   $time[4] + 1, @time[3, 2, 1, 0];
}

sub install {
    my ($name) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$name.bloom", "$dir/ids.bloom" or die "link: $!";
}

# From how many bytes on, of an nginx that is started then

sub compact_from {
    my ($bytes) = @_;

    $t->environment(NGX_BLOOM_FAULT_COMPACT => $bytes);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
}

sub segments { return files("$state/journal.0*") }

# Waits until it has been compacted since a point in the log.

sub compacted {
    my ($mark) = @_;

    my $line = $t->wait_for_log($became, $mark);
    my ($before, $after) = $line =~ $became;

    return ($before, $after, $line);
}

# What ngx-bloom says of the journal, whose every record is to be good: an
# object for each segment, and for each key the times it has

sub verified {
    my ($name) = @_;

    my ($exit, $out, $err) = $t->run_tool('journal', '--json', $state);
    is($exit, 0, "$name: the journal is whole") or diag($err);
    my @segments = JSON::PP->new->incr_parse($out);
    is(sum(map { $_->{missing} + $_->{broken} + $_->{torn} } @segments), 0,
       "$name: without a gap");

    (my $status, $out) = $t->run_tool('journal', '--json', '--keys', $state);
    my %times;
    push @{ $times{$1} }, $2
        while $out =~ /"key": ?"([^"]*)".*?"time": ?"([^"]*)"/g;

    return (\@segments, \%times);
}

# All of these keys are there, and what was never added is not.

sub all_there {
    my ($name, @keys) = @_;

    my @results;
    wait_until(sub {
        my $r = api($t, POST => 'zones/ids/test', body => join "\n", @keys);
        @results = @{ $r->json->{answers} };
        return !grep { $_ eq 'unknown' } @results;
    });
    my @lost = map { $keys[$_] } grep { $results[$_] ne 'present' } 0 .. $#keys;
    is("@lost[0 .. ($#lost > 5 ? 5 : $#lost)]", '', "$name: all are there");
    is(sure($t, 'ids', 'id1', map { "no$_" } 1 .. 20), '1' . '0' x 20,
       "$name: and nothing else");
}

sub without_checkpoints { unlink files("$state/checkpoint.*") }


for (['one', 1], ['two', 2]) {
    my ($name, $seed) = @$_;

    $t->build_image("$name.bloom", [@ids, $name], '-p', '1e-9', '-n', '100k',
                    '--seed', $seed);
}

install('one');

my @single = keys_of('single', 3000);
my @again = map { "again$_-" . 'x' x 180 } 1 .. ($faults ? 500 : 5000);
my @keys = (@single, @again);


subtest 'nobody can tell but by its length' => sub {
    compact_from(NEVER);
    $t->run;

    add($t, 'ids', \@single);
    my $body = join "\n", @again;
    my $sent = 0;

    my $mark = $t->log_mark;
    for ( ; $sent < $enough; $sent += length $body) {
        api($t, POST => 'zones/ids/keys?durable=true', body => $body);
    }

    if ($faults) {
        $t->stop;
        compact_from(1_000_000);
        $mark = $t->log_mark;
        $t->run;
    }

    my ($before, $after, $line) = compacted($mark);
    my $count = @keys;
    like($line, qr/\[notice\].*"ids".* keys $count were different/,
         'the log says what it did');
    cmp_ok($after, '<', $before / 4, 'it is shorter');
    is(-s (segments())[0], $after, 'by so much');
    ok(!-e "$state/journal.0000000000000000", 'the first segment is gone');
    is(scalar files("$state/compact.*"), 0, 'nothing is left of the work');
    is(scalar files("$state/*.tmp"), 0, 'nor are temporary files');
    all_there('then', @keys);

    my ($segments, $times) = verified('then');
    is(scalar(grep { !$times->{$_} } @keys), 0, 'it has every key');
    is(scalar(keys %$times), scalar @keys, 'and no other');
    cmp_ok($segments->[0]{keys}, '<=', @keys, 'the first segment, each once');
    cmp_ok($segments->[0]{records}, '<', 30, 'in a few records');

    # a later image has other bits: only the journal knows the keys

    install('two');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'another image');
    is(sure($t, 'ids', 'one', 'two'), '01', 'serves');
    all_there('with it', @keys);

    for my $how ('kill_all', 'stop') {
        $t->$how;
        without_checkpoints();
        $t->run;
        all_there("after $how", @keys);
    }

    add($t, 'ids', ['later']);
    $t->kill_all;
    without_checkpoints();
    $t->run;
    all_there('written on', @keys, 'later');
    verified('written on');

    install('one');
    $t->reload;
    ok(wait_until(sub { sure($t, 'ids', 'one', 'two') eq '10' }),
       'the first image again');
    all_there('with that', @keys, 'later');
    $t->stop;
};


subtest 'what is not worth it is left alone' => sub {
    remove_tree("$dir/state");
    compact_from(1_000_000);
    my $mark = $t->log_mark;
    $t->run;

    my $sent = 0;
    for (my $i = 0; $sent < $enough; $i++) {
        my $body = join "\n", map { "unique-$i-$_-" . 'y' x 180 } 1 .. 5000;
        api($t, POST => 'zones/ids/keys?durable=true', body => $body);
        $sent += length $body;
    }

    like($t->wait_for_log(qr/is not compacted/, $mark),
         qr/would not get much shorter/, 'the log says so');
    verified('different keys');
    $t->stop;
    unlike($t->log_since($mark), $became, 'not later either');
};


subtest 'a load comes first' => sub {
    plan skip_all => 'the journal is small with injected faults' if $faults;

    # enough of the same for a run that takes a second

    remove_tree("$dir/state");
    $t->run;
    my $body = join "\n", @again;
    my $sent = 0;
    my $mark = $t->log_mark;
    for ( ; $sent < $enough; $sent += length $body) {
        api($t, POST => 'zones/ids/keys', body => $body);
    }

    # it has begun, or is about to

    install('two');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');
    my ($last) = $t->log_since($mark) =~ /.*(serves generation|$became)/s;
    is($last, 'serves generation', 'serves before the work is done');
    compacted($mark);
    all_there('both done', @again, 'two');
    $t->stop;
};


sub small {
    my ($name, $code) = @_;

    subtest $name => sub {
        plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
            unless $faults;

        remove_tree("$dir/state");
        install('one');
        $code->();
    };
}

# A journal of segments, each a list of [seconds ago, keys...]; the last one is
# not compacted, since it is written on.

sub begin_with {
    my (@segments) = @_;

    remove_tree("$dir/state");
    make_path($state, { mode => 0700 });
    chmod 0700, "$dir/state";

    my ($base, $sequence) = (0, 1);

    for my $records (@segments) {
        my $segment = BloomTest::Journal->new(base => $base,
            sequence => $sequence, created => ($now - 7 * 3600) * 1000);

        for (@$records) {
            my ($ago, @keys) = @$_;
            $segment->append(\@keys, time => ($now - $ago) * 1000);
        }

        $t->write_file(sprintf('state/ids/journal.%016x', $base),
                       $segment->segment);
        $base += $segment->{size};
        $sequence = $segment->{next};
    }
}


small('times' => sub {
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
    cmp_ok($after, '<', $before / 4, 'compacted');
    all_there('then', @all);

    my ($segments, $times) = verified('then');
    my %ago = (again => 2 * $hour, old => 6 * $hour - 20,
               near => 6 * $hour - 20, far => 6 * $hour - 100,
               middle => 5 * $hour, end => 1,
               map { $_ => 2 * $hour } @filler);
    is($times->{$_}[0], rfc($now - $ago{$_}) =~ s/Z/.000Z/r,
       "$_: its last time, or within a minute") for sort keys %ago;
    is(scalar(grep { @$_ != 1 } values %$times), 0, 'each once');
    is($segments->[0]{records}, 4, 'records near each other become one');
    is($segments->[1]{first_sequence}, $segments->[0]{last_sequence} + 1,
       'numbered without a gap');

    # now what as_of says is what it said before

    $t->build_image('between.bloom', [@ids], '-p', '1e-9', '--as-of',
                    rfc($now - 3 * $hour));
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('between.bloom'))->status, 200,
       'an image as of 3 hours ago');
    is(sure($t, 'ids', qw(again old near far middle end), @filler),
       '100001' . '1' x 40, 'drops what was added last 4 hours ago');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', qw(again old near far middle end), @filler),
       '100001' . '1' x 40, 'after a restart, too');

    $t->build_image('recent.bloom', [@ids], '-p', '1e-9', '--as-of',
                    rfc($now));
    my ($first) = segments();
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('recent.bloom'))->status, 200,
       'one that covers it all');
    ok(wait_until(sub { !-e $first }), 'removes the segment');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', 'again', 'end', 'id1'), '011', 'for good');
    $t->stop;
});


small('a checkpoint of a position that is no more' => sub {
    compact_from(NEVER);
    $t->run;

    my $body = join "\n", @again;
    add($t, 'ids', \@single);
    api($t, POST => 'zones/ids/keys', body => $body) for 1 .. 5;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'a checkpoint');
    my @behind = keys_of('behind', 100);
    add($t, 'ids', \@behind);
    api($t, POST => 'zones/ids/keys', body => $body) for 1 .. 16;
    is(api($t, POST => 'zones/ids/keys?durable=true', body => 'last')->status,
       200, 'more');
    $t->kill_all;

    my ($checkpoint) = files("$state/checkpoint.*");
    my ($position) = $checkpoint =~ /\.([0-9a-f]{16})\.bloom$/;

    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    my ($segments) = verified('then');
    my ($first) = segments();
    cmp_ok(hex $position, '<', $segments->[0]{base} + $segments->[0]{size},
           'its position lies in what was compacted, or before');
    all_there('then', @keys, @behind, 'last');

    $t->kill_all;
    ok(-e $checkpoint, 'it is still there');
    $mark = $t->log_mark;
    $t->run;
    like($t->log_since($mark), qr/behind a checkpoint/, 'and used');
    all_there('after it', @keys, @behind, 'last');
    $t->stop;
});


small('damage' => sub {
    my @segments = map { [[3600, 'lost', keys_of('kept', 20)]] } 1 .. 6;
    begin_with(@segments, [[1, 'end']]);

    my ($first) = segments();
    flip($first, 128 + 34);

    compact_from(1000);
    my $mark = $t->log_mark;
    $t->run;
    like($t->wait_for_log(qr/is not compacted/, $mark), qr/damaged/,
         'is left as it is');
    ok(-e $first, 'with its segment');
    is(ask($t, 'ids', 'kept1', 'end', 'no'), '11?', 'and is not forgotten');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'kept1', 'end', 'no'), '11?', 'after a restart, too');
    $t->stop;

    # a segment that is gone

    begin_with(@segments, [[1, 'end']]);
    $mark = $t->log_mark;
    $t->run;
    compacted($mark);
    all_there('compacted', 'lost', keys_of('kept', 20), 'end');
    $t->kill_all;
    unlink +(segments())[0];
    $t->run;
    is(ask($t, 'ids', 'end', 'no'), '1?', 'the compacted segment is missed');
    $t->stop;
});


# Enough of the same to be compacted, once something is written behind it: into
# the second segment, which is there by then

my @full = map { "full$_-" . 'x' x 100 } 1 .. 400;
my @big = map { "big$_-" . 'x' x 200 } 1 .. 300;

sub begin_with_a_full_segment {
    begin_with([map { [3600, @full] } 1 .. 5]);
    compact_from(1000);
    $t->run;
    wait_until(sub { segments() >= 3 }) or die 'no segments are made';
}


small('not while there are two instances' => sub {
    begin_with_a_full_segment();
    $t->upgrade_begin;

    my $mark = $t->log_mark;
    add($t, 'ids', \@big, durable => 1);
    ok(!wait_until(sub { $t->log_since($mark) =~ $became }, 2),
       'nothing is compacted');
    ok(-e "$state/journal.0000000000000000", 'all segments are there');

    # the one that is left does it

    $t->upgrade_finish;
    compacted($mark);
    all_there('then', @full, @big);
    $t->stop;
});


small('a full disk' => sub {
    my $disk = BloomTest::Disk->new($t, 'state');

    for my $what ('grow', 'rename') {
        begin_with_a_full_segment();
        $disk->refuse('ENOSPC', $what);
        my $mark = $t->log_mark;
        add($t, 'ids', \@big);
        like($t->wait_for_log(qr/is not compacted/, $mark),
             qr/\[error\].*segment.*No space left/, "$what: the log says so");
        all_there($what, @full, @big);
        ok(-e "$state/journal.0000000000000000", 'all segments are there');
        is(scalar files("$state/save.compact*"), 0, 'and nothing else');

        $disk->allow;
        $t->kill_all;
        $mark = $t->log_mark;
        $t->run;
        compacted($mark);
        all_there("$what: later", @full, @big);
        verified($what);
        $t->stop;
    }
});


# The helper dies at every step in turn, and the next helper, or the next start,
# finds what it left.

small('a death at any step' => sub {
    my @keys = (keys_of('once', 20), keys_of('dies', 200), 'end');

    for my $how ('the next helper', 'the next start') {
        my $deaths = 0;
        my $left = 0;

        for my $step (1 .. 60) {
            begin_with([[7200, keys_of('once', 20)]],
                       (map { [[3600, keys_of('dies', 200)]] } 1 .. 3),
                       [[1, 'end']]);

            # segments are made before, and steps for them are none of its own

            compact_from(NEVER);
            $t->run;
            add($t, 'ids', ['before'], durable => 1);
            $t->kill_all;

            compact_from(1000);
            $t->write_file('fault.tmp', "any $step\n");
            my $mark = $t->log_mark;
            rename "$dir/fault.tmp", $fault or die "rename: $!";
            $t->run;

            my $line = $t->wait_for_log(qr/$became|fault injected/, $mark);
            last if $line =~ $became;

            $deaths++;
            my ($where) = $line =~ /injected at "(\w+)"/;
            wait_until(sub { !-e $fault });

            if ($how eq 'the next start') {
                $t->kill_all;
                $left++ if files("$state/compact.*");
                compact_from(NEVER);
                $t->run;
            }

            all_there("$how: step $step, $where", @keys, 'before');
            ok(wait_until(sub { !files("$state/compact.*") }),
               'nothing is left of it');
            $t->kill_all;
            verified("$how: step $step");
        }

        unlink $fault;
        cmp_ok($deaths, '>', 10, "$how: died at $deaths steps");
        cmp_ok($deaths, '<', 60, 'and got through');
        cmp_ok($left, '>', 3, "$left of them left segments to replace")
            if $how eq 'the next start';
        $t->kill_all;
    }
});

if ($faults) {
    $t->expect_log(qr/exited on signal 9/);
    $t->expect_log(qr/has lost added keys/);
}


done_testing;
