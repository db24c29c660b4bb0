#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The first removal makes the journal continue in a segment of version 2, and a
# segment of version 1 stays readable for older programs as long as nothing is
# removed.  t/crash/deaths.t tests deaths of processes during a first removal.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);


sub removal {
    my ($key) = @_;

    return api($t, POST => 'zones/ids/remove?durable=true', body => $key);
}

sub removes {
    my ($key) = @_;

    my $r = removal($key);
    is($r->status, 200, "key $key is removed") or diag($r);
}

# Returns the version and the number of records of each segment.

sub segments {
    my ($exit, @segments) = read_journal($t, $state);
    is($exit, 0, 'ngx-bloom accepts the journal');

    return join ' ', map { "$_->{version}:$_->{records}" } @segments;
}

sub starts_with {
    my (@segments) = @_;

    begin_state($t, 'ids', @segments);
    another_image($t);
    $t->run;
}


subtest 'the first removal begins a segment of version 2' => sub {
    starts_with();
    add($t, 'ids', ["a$_"]) for 1 .. 3;
    is(segments(), '1:3', 'additions are in a segment of version 1');

    removes('a1');
    like(segments(), qr/^1:3 2:1( 2:0)*$/,
         'the next segment has version 2 and the removal');

    add($t, 'ids', ['a4']);
    removes('a2');
    like(segments(), qr/^1:3 2:3( 2:0)*$/,
         'further additions and removals are in the same segment');
    is(ask($t, 'ids', qw(a1 a2 a3 a4)), '0011', 'the removed keys are absent');

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(a1 a2 a3 a4)), '0011',
       'the removed keys are absent after kill -9 of all processes');
    removes('a3');
    like(segments(), qr/^1:3 2:4( 2:0)*$/,
         'the journal continues in the segment after a restart');
    $t->stop;
};


subtest 'the first change of a zone is a removal' => sub {
    starts_with();
    removes('id1');
    is(segments(), '2:1', 'the first segment has version 2');
    is(ask($t, 'ids', 'id1', 'id2'), '01', 'the removed key is absent');
    $t->stop;
};


subtest 'segments after one of version 2 have version 2' => sub {
    my $filled = BloomTest::Journal->new(version => 2);
    $filled->append(["k$_-" . 'x' x 60000]) for 1 .. 4;
    my $prepared = $filled->next_segment(size => 16 * 1024 * 1024);

    starts_with($filled, $prepared);
    like(segments(), qr/^2:4 1:0( 2:0)*$/,
         'the next segment has version 1 as yet');
    add($t, 'ids', ['long-' . 'y' x 60000]);
    like(segments(), qr/^2:4 2:1( \d:0)*$/,
         'an addition to the next segment gives it version 2');
    removes('k1-' . 'x' x 60000);
    like(segments(), qr/^2:4 2:2( \d:0)*$/,
         'a removal needs no further segment');
    $t->stop;
};


subtest 'a removal finds the next segment prepared with version 1' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['a1', 'a2']);

    starts_with($first, $first->next_segment(size => 16 * 1024 * 1024));
    removes('a1');
    like(segments(), qr/^1:1 2:1( \d:0)*$/,
         'the segment that was prepared has version 2');
    is(ask($t, 'ids', 'a1', 'a2'), '01', 'the removed key is absent');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'a1', 'a2'), '01',
       'the removed key is absent after a restart');
    $t->stop;
};


subtest 'the header of the next segment cannot be written' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['a1', 'a2']);

    starts_with($first, $first->next_segment(size => 16 * 1024 * 1024));

    my $next = sprintf '%s/journal.%016x', $state, 262144;
    rename $next, "$dir/away" or die "rename: $!";
    mkdir $next or die "mkdir: $!";
    is_error(removal('a1'), 503, qr/cannot be written/,
             'the removal is refused while its segment cannot be opened');
    add($t, 'ids', ['a3']);
    rmdir $next or die "rmdir: $!";
    rename "$dir/away", $next or die "rename: $!";

    removes('a1');
    like(segments(), qr/^1:2 2:1( \d:0)*$/,
         'the removal succeeds when the segment can be written');
    is(ask($t, 'ids', qw(a1 a2 a3)), '011', 'only the removed key is absent');
    $t->stop;
};


done_testing;
