#!/usr/bin/perl

# Keys that bloom_add could write neither to the journal nor to the pending keys
# are present until the next load.  From then on, keys that are not found are
# unknown, until an image is loaded whose as_of says that it has the lost keys.

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

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
$t->build_image('later.bloom', ['id1', 'later'], '-p', '1e-9',
                '--as-of', rfc3339(time));
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
$t->run;

# some twenty keys more than the pending keys have room for

my @keys = map { "long$_-" . 'x' x 4000 } 1 .. 85;
my ($first, $last) = @keys[0, -1];

sub state_of { return zone_state($t, 'ids')->{state} }


subtest 'keys are lost that the generation has' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has no room left for keys/);
    $disk->refuse('ENOSPC', qw(open write grow rename));

    is($t->get("/add/ids?k=$_")->status, 200,
       'bloom_add answers while the disk is full') for @keys;

    cmp_ok(zone_state($t, 'ids')->{journal}{lost_keys}, '>', 10,
           'the zone has lost keys for which there was no room');
    is(ask($t, 'ids', @keys, 'no'), '1' x 85 . '0',
       'all keys are present before the next load');
    is(state_of(), 'serving', 'the zone is serving before the next load');
};


subtest 'a load leaves the lost keys behind' => sub {
    $t->expect_log(qr/\[alert\].*has lost added keys.*no room for them/);
    $t->expect_log(qr/\[alert\].*lost" cannot be written/);

    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image is loaded again');
    is(ask($t, 'ids', $first, 'id1', $last, 'no'), '11??',
       'a lost key is unknown after the load');
    is(state_of(), 'damaged', 'the zone is damaged after the load');

    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image is loaded a third time');
    is(ask($t, 'ids', $first, $last, 'no'), '1??',
       'a lost key is unknown after another load');
};


subtest 'nginx is started again' => sub {
    $t->expect_log(qr/\[alert\].*has lost added keys.*at an earlier start/);
    $disk->allow;
    ok(wait_until(sub { -e "$dir/state/ids/lost" }),
       'a file records the loss when the disk has room');
    ok(wait_until(sub { !zone_state($t, 'ids')->{journal}{pending_keys} }),
       'the pending keys are written when the disk has room');

    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', $first, 'id1', $last, 'no'), '11??',
       'a lost key is unknown after a start');
    is(state_of(), 'damaged', 'the zone is damaged after a start');
};


subtest 'an image has the lost keys' => sub {
    is(upload_image($t, 'ids', 'later')->status, 200,
       'an image as of less than an hour after the loss is uploaded');
    is(ask($t, 'ids', $last, 'later', 'no'), '?1?',
       'a lost key is unknown with an image of less than an hour later');

    # change the recorded time of the loss to two hours earlier

    my ($time, $position)
        = $t->read_file('state/ids/lost') =~ /^(\d+) (\d+)\n\z/;
    $t->stop;
    $t->write_file('state/ids/lost', ($time - 7200_000) . " $position\n");
    $t->run;
    is(ask($t, 'ids', $last, 'later', 'no'), '010',
       'a lost key is absent with an image of more than an hour later');
    is(state_of(), 'serving',
       'the zone is serving with an image of more than an hour later');
};


done_testing;
