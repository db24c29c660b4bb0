#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A worker dies after it has written a record to the journal and before it has
# published it.  The next record does not fit into the segment, and gets the
# same sequence number in another segment.  Every reader of the journal has to
# find the second record.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $dir = $t->testdir;
my $state = "$dir/state/ids";

# more steps than an addition has
use constant STEPS => 20;

$t->expect_log(qr/exited on signal 9/);

# Keys for a record of about 122 KB.  The first segment has room for eight
# records.

sub long {
    my ($name) = @_;

    return map { "$name-$_-" . 'x' x 600 } 1 .. 200;
}

sub try_long {
    my ($name) = @_;

    return eval {
        api($t, POST => 'zones/ids/keys?durable=true',
            body => join "\n", long($name));
    };
}

sub serves {
    return wait_until(sub {
        my $zone = eval { zone_state($t, 'ids') };
        return $zone && $zone->{state} eq 'serving' && $t->helpers;
    });
}

# A worker dies, and its record stays behind the published end of the journal.

sub dies_with {
    my ($key) = @_;

    $faults->kill_at('publish');
    my $mark = $t->log_mark;
    eval { $t->get("/add/ids?k=$key") };
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    ok(serves(),
       'nginx serves when a worker has died before it publishes a record');
}

# Starts nginx with a segment that is nearly full and has such a record.

sub begin_with {
    my ($prefix) = @_;

    remove_tree("$dir/state");
    another_image($t);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
    $t->run;

    for my $n (1 .. 8) {
        my $r = try_long($prefix->($n));
        is($r->status, 200,
           'keys are added to the first segment') if $r->status != 200;
    }

    dies_with('unpublished');
}

sub different { return "long$_[0]" }

# Tests the first and the last key of each record, and another key.

sub all_present {
    my ($name, @long) = @_;

    my @keys = map { (long($_))[0, 199] } @long;

    is(ask_until_known($t, 'ids', @keys, 'after', 'no'), '1' x @keys . '10', $name);
}

# The unpublished record hides no key from the tool, a load and a start, which
# read the journal again.

sub every_reader_finds {
    my (@long) = @_;

    is($t->get('/add/ids?k=after')->status, 200, 'bloom_add adds a key');
    all_present('all keys are present in the generation that serves', @long);

    my ($exit, $out) = $t->run_tool('journal', '--keys', $state);
    is($exit, 0, 'ngx-bloom finds no damage in the journal');
    my %in = map { $_ => 1 } split /\n/, $out;
    is(scalar(grep { !$in{$_} } 'after', map { long($_) } @long), 0,
       'ngx-bloom finds all keys in the journal');

    another_image($t);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image is loaded');
    all_present('all keys are present in the other image', @long);

    $t->kill_all;
    $t->run;
    all_present('all keys are present after kill -9 of all processes', @long);
    is(zone_state($t, 'ids')->{state}, 'serving', 'the zone is serving');
}


subtest 'the next record goes to another segment' => sub {
    begin_with(\&different);
    is(try_long('next')->status, 200, 'the next record is acknowledged');
    every_reader_finds('long8', 'next');
    $t->stop;
};


subtest 'the writer of the next record dies' => sub {
    my $deaths = 0;

    for my $step (1 .. STEPS) {
        begin_with(\&different);

        $faults->kill_at('any', $step);
        my $mark = $t->log_mark;
        my $response = try_long('dies');

        # the helper synchronises the record, and may be the process that dies

        my $died = $response && $response->complete
                   && $response->status == 200
                   ? wait_until(sub { !$faults->pending }, 1) : 1;

        $faults->withdraw;

        if ($died) {
            $deaths++;
            $t->wait_for_log(qr/exited on signal 9/, $mark);
            ok(serves(), "nginx serves after a death at step $step");
        }

        is(try_long('next')->status, 200,
           "the next record is acknowledged after step $step");
        every_reader_finds('long8', 'next');
        $t->kill_all;

        last if !$died;
    }

    # the end of the old segment and the record are two writes

    cmp_ok($deaths, '>=', 6,
           "the addition completes after deaths at $deaths steps");
};


subtest 'the end of the old segment cannot be written' => sub {
    begin_with(\&different);

    my ($segment) = files("$state/journal.*");
    rename $segment, "$dir/away" or die "rename: $!";
    mkdir $segment or die "mkdir: $!";
    is_error(try_long('next'), 503, qr/cannot be written/,
             'the addition is refused while the segment cannot be written');
    rmdir $segment or die "rmdir: $!";
    rename "$dir/away", $segment or die "rename: $!";

    is(try_long('next')->status, 200,
       'the next record is acknowledged when the segment can be written');
    every_reader_finds('long8', 'next');
    $t->stop;
};


subtest 'another instance reads the journal' => sub {
    begin_with(\&different);

    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);

    is(try_long('next')->status, 200, 'the next record is acknowledged');

    my %answers;
    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', (long('next'))[0, 199]);
        $answers{$side{$by[0]}} = $answers if $answers !~ /\?/;
        return keys %answers == 2;
    });
    is_deeply(\%answers, { old => '11', new => '11' },
              'the keys of the next record are present in both instances');
    $t->upgrade_finish;
    every_reader_finds('long8', 'next');
    $t->stop;
};


subtest 'the segment is compacted' => sub {
    $t->environment(NGX_BLOOM_FAULT_COMPACT => 500_000);
    my $mark = $t->log_mark;
    begin_with(sub { 'same' });
    is(try_long('next')->status, 200, 'the next record is acknowledged');
    like($t->wait_for_log(qr/the journal was compacted from/, $mark),
         qr/\[notice\]/, 'the segment before the next record is compacted');
    every_reader_finds('same', 'next');
    $t->stop;
};


done_testing;
