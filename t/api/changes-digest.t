#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the digest of a source's changes: it is the same for the same changes, in
# whatever batches they come, and outlives crashes, reloads and upgrades; it
# begins again where changes are skipped; and "ngx-bloom status" compares it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Digest;
use BloomTest::Journal;
use BloomTest::Source;
use BloomTest::Tool qw(json);
use BloomTest::Zones;

my $one = BloomTest->new;
my $two = BloomTest->new;

for my $t ($one, $two) {
    configure($t, ['zone=ids file=ids.bloom removals=1000;'
                   . ' bloom_source zone=ids name=s max_lag=off'], api => 1, workers => 2);
}

$one->build_image('ids.bloom', ['base'], '-p', '1e-9', '-n', '1k', '--source',
                  's=0');
$two->write_file('ids.bloom', $one->read_file('ids.bloom'));
$_->run for $one, $two;

my @urls = map { 'http://127.0.0.1:' . $_->port(8080) . '/bloom/' } $one, $two;

# Tests what the zone says about its digest.

sub is_digest {
    my ($t, $since, $changes, $name) = @_;

    my $source = zone_state($t, 'ids')->{source};

    is("$source->{digest} since $source->{digest_since}",
       digest(@$changes) . " since $since", $name);
}

# Tests the exit status of "status" and what it finds.

sub status_is {
    my ($problems, $name) = @_;

    alive($_, 'ids', position($_, 'ids')) for $one, $two;

    my ($exit, $out) = $one->run_tool('status', '--json', @urls);
    my $found = json($out);

    is_deeply([map { $_->{what} } @{ $found->{problems} }], $problems, $name)
        or diag($out);
    is($exit, @$problems ? 1 : 0, "exit status: $name");

    return $found;
}

my @changes = qw(+a -a +b +c -b +b -d +d -d +e);

is_digest($one, 0, [], 'the digest of no changes');

is_applied(changes($one, 'ids', 0, 10, @changes), 10, 'one batch');
is_applied(changes($two, 'ids', $_, $_ + 1, $changes[$_]), $_ + 1,
           "a batch of change $_") for 0 .. $#changes;

is_digest($_, 0, \@changes, 'the digest does not depend on batches')
    for $one, $two;

isnt(zone_state($one, 'ids')->{filter}{bits_set},
     zone_state($two, 'ids')->{filter}{bits_set},
     'the bits that are set depend on batches');

{
    my $found = status_is([], 'the nodes agree');

    is($found->{zones}[1]{digest}, digest(@changes), 'JSON has the digest');
    is($found->{zones}[1]{digest_since}, 0, 'and where it begins');
    like(($one->run_tool('status', @urls))[1],
         qr/ digest .*\n.* \Q${\substr digest(@changes), 0, 8}\E /,
         'the table has its first digits');
}

is((records_of($one, 'ids'))[-1]{digest}, digest(@changes),
   'the journal has the digest');

is(changes($one, 'ids', 0, 10, @changes)->status, 200, 'the batch again');
is_digest($one, 0, \@changes, 'does not count again');
is(changes($one, 'ids', 10, 11, '+f', 'g')->status, 400, 'a refused batch');
is_digest($one, 0, \@changes, 'does not count');
alive($one, 'ids', 10);
is_digest($one, 0, \@changes, 'nor does a sign of life');

for (['a reload', sub { $one->reload }],
     ['a crash', sub { $one->kill_all; $one->run }],
     ['a start', sub { $one->stop; $one->run }],
     ['an upgrade', sub { $one->upgrade }],
     ['a crash after a checkpoint', sub {
          api($one, POST => 'zones/ids/checkpoint')->status == 200
              or fail('a checkpoint');
          $one->kill_all;
          $one->run;
      }])
{
    my ($name, $event) = @$_;
    my $position = position($one, 'ids');

    $event->();
    is_digest($one, 0, \@changes, "the digest after $name");

    push @changes, "+after$position";
    is_applied(changes($_, 'ids', $position, $position + 1, $changes[-1]),
               $position + 1, "a change after $name") for $one, $two;
    is_digest($one, 0, \@changes, "counts after $name");
}

status_is([], 'the nodes agree after all of this');


# one change is another one

my $position = position($one, 'ids');

is_applied(changes($one, 'ids', $position, $position + 1, '+x', '+y'),
           $position + 1, 'changes');
status_is([], 'a node that is further is not compared');
is_applied(changes($two, 'ids', $position, $position + 1, '+x', '+z'),
           $position + 1, 'with one altered');

like(status_is(['digest'], 'the digests differ')->{problems}[0]{message},
     qr/^the digest of the source's changes differs: [0-9a-f]{16} on /,
     'the message says so');


# where it begins again

$one->build_image('at50.bloom', ['base', 'x'], '-p', '1e-9', '-n', '1k',
                  '--source', 's=50');
$two->write_file('at50.bloom', $one->read_file('at50.bloom'));

for my $t ($one, $two) {
    is(upload_image($t, 'ids', 'at50')->status, 200, 'a later image');
    is_digest($t, 50, [], 'begins another digest');
}

status_is([], 'the nodes that load it agree');

is_applied(changes($_, 'ids', 50, 55, '+later'), 55, 'changes') for $one, $two;
is(upload_image($one, 'ids', 'at50')->status, 200, 'the same image again');
is_digest($one, 50, ['+later'], 'goes on with the digest');
$one->kill_all;
$one->run;
is_digest($one, 50, ['+later'], 'after a crash, too');
status_is([], 'the nodes agree');

gap($one, 'ids', 60);
is_digest($one, 60, [], 'a gap begins another digest');
$one->kill_all;
$one->run;
is_digest($one, 60, [], 'after a crash, too');

is(api($one, POST => 'zones/ids/clear')->status, 200, 'a clear');
is_digest($one, 0, [], 'begins another digest at the image');

done_testing;
