#!/usr/bin/perl

# Keys of bloom_add that the journal could not take, and for which there was no
# room to wait: they are in the filter until the next load.  From then on the
# zone cannot tell, until an image states that it has them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $disk = BloomTest::Disk->new($t, 'state');

sub rfc {
    my @time = gmtime $_[0];

    return sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $time[5] + 1900,
                   $time[4] + 1, @time[3, 2, 1, 0];
}

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
$t->build_image('later.bloom', ['id1', 'later'], '-p', '1e-9',
                '--as-of', rfc(time));
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
$t->run;

# some twenty more than there is room for

my @keys = map { "long$_-" . 'x' x 4000 } 1 .. 85;
my ($first, $last) = @keys[0, -1];

sub state_of { return zone_state($t, 'ids')->{state} }


subtest 'while the generation serves that has them' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has no room left for keys/);
    $disk->refuse('ENOSPC', qw(open write grow rename));

    is($t->get("/add/ids?k=$_")->status, 200, 'bloom_add') for @keys;

    cmp_ok(zone_state($t, 'ids')->{journal}{lost_keys}, '>', 10,
           'there is no room for all');
    is(ask($t, 'ids', @keys, 'no'), '1' x 85 . '0', 'all are in');
    is(state_of(), 'serving', 'and nothing is in doubt');
};


subtest 'from the next load on' => sub {
    $t->expect_log(qr/\[alert\].*has lost added keys.*no room for them/);
    $t->expect_log(qr/\[alert\].*lost" cannot be written/);

    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a load');
    is(ask($t, 'ids', $first, 'id1', $last, 'no'), '11??', 'it cannot tell');
    is(state_of(), 'damaged', 'and says so');

    is(api($t, POST => 'zones/ids/reload')->status, 200, 'another');
    is(ask($t, 'ids', $first, $last, 'no'), '1??', 'changes nothing');
};


subtest 'and after a start' => sub {
    $t->expect_log(qr/\[alert\].*has lost added keys.*at an earlier start/);
    $disk->allow;
    ok(wait_until(sub { -e "$dir/state/ids/lost" }),
       'it is noted when there is room');
    ok(wait_until(sub { !zone_state($t, 'ids')->{journal}{pending_keys} }),
       'and what waited is written');

    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', $first, 'id1', $last, 'no'), '11??', 'it cannot tell');
    is(state_of(), 'damaged', 'and says so');
};


subtest 'until an image states that it has them' => sub {
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('later.bloom'))->status, 200,
       'one of less than an hour later');
    is(ask($t, 'ids', $last, 'later', 'no'), '?1?', 'does not');

    # as if it had been two hours ago

    my ($time, $position)
        = $t->read_file('state/ids/lost') =~ /^(\d+) (\d+)\n\z/;
    $t->stop;
    $t->write_file('state/ids/lost', ($time - 7200_000) . " $position\n");
    $t->run;
    is(ask($t, 'ids', $last, 'later', 'no'), '010', 'one of more than that');
    is(state_of(), 'serving', 'all is well');
};


done_testing;
