#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone keeps its size as long as images fit, and grows when they do not.  A
# reload adds, removes and changes zones.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

sub image {
    my ($capacity, $name) = @_;

    $t->build_image($name // 'ids.bloom', \@ids, '-p', '1e-6',
                    '-n', $capacity);
}

# Reloads and returns what the log says of zones.

sub reload {
    my (@zones) = @_;

    configure($t, \@zones) if @zones;

    my $mark = $t->log_mark;
    $t->reload;

    return join "\n", $t->log_since($mark) =~ /^(.* bloom zone .*)$/mg;
}

sub serves_ids {
    my ($what) = @_;

    is(ask($t, 'ids', @ids, @others), "$all$none", $what);
}


image(100_000);
configure($t, ['zone=ids file=ids.bloom removals=0']);
$t->run;
serves_ids('an image serves');


subtest 'a zone is sized by its file' => sub {
    my $changes = qr/\[notice\].* bloom zone "ids" changes from (\d+)k to (\d+)k: its memory is recreated/;

    image(110_000);
    my $log = reload();
    unlike($log, $changes, 'an image for a tenth more keys fits');
    like($log, qr/serves generation 2/,
         'an image that fits becomes the next generation');
    serves_ids('the image for a tenth more keys serves');

    image(50_000);
    unlike(reload(), $changes, 'a smaller image does not change the size');
    serves_ids('the smaller image serves');

    image(110_000);
    unlike(reload(), $changes, 'a larger image fits after a smaller one');
    serves_ids('the larger image serves after the smaller one');

    image(300_000);
    $log = reload();
    like($log, $changes,
         'the log says that the size changes for three times as many keys');
    my ($from, $to) = $log =~ $changes;
    cmp_ok($to, '>', 2 * $from, 'the zone becomes more than twice as large');
    unlike($log, qr/starts empty/, 'the larger zone does not start empty');
    serves_ids('the image for three times as many keys serves');

    image(290_000);
    unlike(reload(), $changes,
           'the larger zone keeps its size for a smaller image');
    serves_ids('the smaller image serves in the larger zone');
};


subtest 'a zone has a given size' => sub {
    image(100_000);
    my $log = reload('zone=ids:1500k file=ids.bloom removals=0');

    # the memory of recent additions is beside the given size

    my ($k) = $log =~ /changes from \d+k to (\d+)k/;
    cmp_ok($k // 0, '>=', 1500 + 256,
           'a reload gives the zone the size that is given');
    cmp_ok($k // 0, '<', 1500 + 300, 'and little beside it');
    serves_ids('the image serves in a zone of the given size');

    image(200_000);
    $log = $t->reload_fails;
    my ($needs) = $log =~ /\[emerg\].*\ bloom\ zone\ "ids"\ is\ too\ small:
                           \ it\ needs\ \d+k\ .*write\ "zone=ids:(\d+k)"/x;
    ok(defined $needs, 'the refusal of a large image names the size needed')
        or diag($log);
    serves_ids('the old image continues to serve');

    my $less = ($needs =~ /(\d+)/)[0] - 1;
    configure($t, ["zone=ids:${less}k file=ids.bloom removals=0"]);
    like($t->reload_fails, qr/is too small/,
         'a size that is smaller by 1k is refused');

    reload("zone=ids:$needs file=ids.bloom removals=0");
    serves_ids('the large image serves in a zone of the size needed');

    image(200_000);
    $log = reload();
    like($log, qr/serves generation 2/,
         'the size needed is enough for two images side by side');
    unlike($log, qr/changes from/,
           'another large image is loaded into the same memory');
    serves_ids('the other large image serves');
};


subtest 'zones are added and removed' => sub {
    reload('zone=ids file=ids.bloom removals=0',
           'zone=more file=ids.bloom removals=0');
    is(ask($t, 'more', @ids, @others), "$all$none", 'an added zone serves');
    serves_ids('the zone that was there continues to serve');

    reload('zone=more file=ids.bloom removals=0');
    is(ask($t, 'more', @ids, @others), "$all$none",
       'the added zone serves when the first is removed');

    reload('zone=ids file=ids.bloom removals=0',
           'zone=more file=ids.bloom removals=0');
    serves_ids('the first zone serves when it is back');

    image(200_000, 'more.bloom');
    reload('zone=ids file=ids.bloom removals=0',
           'zone=more file=more.bloom removals=0');
    my $log = reload('zone=ids file=more.bloom removals=0',
           'zone=more file=ids.bloom removals=0');
    is(scalar(() = $log =~ /serves generation/g), 2,
       'two zones that trade their files load them');
    serves_ids('a zone that has traded its file serves');
};


subtest 'a zone with a file becomes one that starts empty' => sub {
    reload('zone=ids file=ids.bloom removals=0');

    my $log = reload('zone=ids capacity=100k fpr=0.001 removals=0');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'a warning says that a zone without its file starts empty');
    is(ask($t, 'ids', @ids), $none, 'the zone without its file is empty');

    $log = reload();
    is($log, '',
       'a reload without a change says nothing of the zone without its file');

    $log = reload('zone=ids capacity=100k fpr=0.01 removals=0');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'a warning says that a zone with another fpr starts empty');

    $log = reload('zone=ids capacity=200k fpr=0.01 removals=0');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'a warning says that a zone with another capacity starts empty');

    reload('zone=ids file=ids.bloom removals=0');
    serves_ids('the zone serves when its file is back');

    # now the memory is kept, and the empty filter has the geometry of the image

    image(100_000);
    reload('zone=ids:2m file=ids.bloom removals=0');
    $log = reload('zone=ids:2m capacity=100k fpr=1e-6 removals=0');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'a warning says that a zone in the same memory starts empty');
    unlike($log, qr/changes from/,
           'a zone that starts empty in the same memory keeps its size');
    is(ask($t, 'ids', @ids), $none, 'the zone in the same memory is empty');
    is(reload(), '', 'a reload without a change says nothing of an empty zone');

    for ('capacity=90k fpr=0.001', 'capacity=90k fpr=0.002',
         'capacity=90k fpr=0.002 layout=classic',
         'capacity=90k fpr=0.002 layout=classic hash=siphash')
    {
        like(reload("zone=ids:2m $_"),
             qr/\[warn\].*bloom zone "ids" starts empty again/,
             "a warning says that the zone starts empty again with $_");
        is(reload(), '', "a reload without a change keeps the zone with $_");
    }

    reload('zone=ids:2m file=ids.bloom removals=0');
    serves_ids('the zone of a given size serves when its file is back');
};


done_testing;
