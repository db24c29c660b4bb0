#!/usr/bin/perl

# The size of a zone: kept as long as images fit, grown when they do not;
# zones that come, go and change what they are.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

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

sub full {
    my ($what) = @_;

    is(ask($t, 'ids', @ids, @others), "$all$none", $what);
}


image(100_000);
configure($t, ['zone=ids file=ids.bloom']);
$t->run;
full('an image');


subtest 'sized by the file' => sub {
    my $changes = qr/\[notice\].* bloom zone "ids" changes from (\d+)k to (\d+)k: its memory is made anew/;

    image(110_000);
    my $log = reload();
    unlike($log, $changes, 'a tenth more fits');
    like($log, qr/serves generation 2/, 'and is loaded beside');
    full('and serves');

    image(50_000);
    unlike(reload(), $changes, 'a smaller one leaves the size as it is');
    full('and serves');

    image(110_000);
    unlike(reload(), $changes, 'so that the larger one fits again');
    full('and serves');

    image(300_000);
    $log = reload();
    like($log, $changes, 'three times as many do not fit: there is a notice');
    my ($from, $to) = $log =~ $changes;
    cmp_ok($to, '>', 2 * $from, 'the zone is larger');
    unlike($log, qr/starts empty/, 'and not empty');
    full('and full');

    image(290_000);
    unlike(reload(), $changes, 'the new size is kept then');
    full('and the zone serves');
};


subtest 'a given size' => sub {
    image(100_000);
    my $log = reload('zone=ids:1500k file=ids.bloom');
    like($log, qr/changes from \d+k to 1500k/, 'a size is given');
    full('and the zone is full');

    image(200_000);
    $log = $t->reload_fails;
    my ($needs) = $log =~ /\[emerg\].*\ bloom\ zone\ "ids"\ is\ too\ small:
                           \ it\ needs\ \d+k\ .*write\ "zone=ids:(\d+k)"/x;
    ok(defined $needs, 'a large image is refused, and the size needed is told')
        or diag($log);
    full('the old image serves on');

    my $less = ($needs =~ /(\d+)/)[0] - 1;
    configure($t, ["zone=ids:${less}k file=ids.bloom"]);
    like($t->reload_fails, qr/is too small/, 'less than that is refused');

    reload("zone=ids:$needs file=ids.bloom");
    full('that size is enough');

    image(200_000);
    $log = reload();
    like($log, qr/serves generation 2/, 'for two images side by side');
    unlike($log, qr/changes from/, 'in the same memory');
    full('and the zone serves');
};


subtest 'zones that come and go' => sub {
    reload('zone=ids file=ids.bloom', 'zone=more file=ids.bloom');
    is(ask($t, 'more', @ids, @others), "$all$none", 'a zone comes');
    full('beside another');

    reload('zone=more file=ids.bloom');
    is(ask($t, 'more', @ids, @others), "$all$none", 'a zone stays');

    reload('zone=ids file=ids.bloom', 'zone=more file=ids.bloom');
    full('the other is back');

    image(200_000, 'more.bloom');
    reload('zone=ids file=ids.bloom', 'zone=more file=more.bloom');
    my $log = reload('zone=ids file=more.bloom', 'zone=more file=ids.bloom');
    is(scalar(() = $log =~ /serves generation/g), 2, 'two trade their files');
    full('and serve');
};


subtest 'from a file to empty and back' => sub {
    reload('zone=ids file=ids.bloom');

    my $log = reload('zone=ids capacity=100k fpr=0.001');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'a zone that starts empty takes its place, with a warning');
    is(ask($t, 'ids', @ids), $none, 'and is empty');

    $log = reload();
    is($log, '', 'it is kept');

    $log = reload('zone=ids capacity=100k fpr=0.01');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'another rate is warned of');

    $log = reload('zone=ids capacity=200k fpr=0.01');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'another capacity is warned of');

    reload('zone=ids file=ids.bloom');
    full('the file is back');

    # the same where the memory is kept, and the empty zone is of the same
    # kind as the image

    image(100_000);
    reload('zone=ids:2m file=ids.bloom');
    $log = reload('zone=ids:2m capacity=100k fpr=1e-6');
    like($log, qr/\[warn\].*bloom zone "ids" .*starts empty/,
         'in the same memory: a warning');
    unlike($log, qr/changes from/, 'about nothing else');
    is(ask($t, 'ids', @ids), $none, 'and empty');
    is(reload(), '', 'and kept');

    for ('capacity=90k fpr=0.001', 'capacity=90k fpr=0.002',
         'capacity=90k fpr=0.002 layout=classic',
         'capacity=90k fpr=0.002 layout=classic hash=siphash')
    {
        like(reload("zone=ids:2m $_"),
             qr/\[warn\].*bloom zone "ids" starts empty again/,
             "now $_: a warning");
        is(reload(), '', 'and kept');
    }

    reload('zone=ids:2m file=ids.bloom');
    full('the file is back');
};


done_testing;
