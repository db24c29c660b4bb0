#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# In a zone with a fuse base, false positives are excepted by bloom_feedback,
# wrong absents by bloom_audit, and the exceptions of the image's builder are
# absent.  Keys of several expressions are found in the base and in its layers.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 5000);
my @fuse = ('--layout', 'fuse');

$t->build_image('ids.bloom', \@ids, @fuse, '-p', '0.02', '--seed', 1);
$t->build_image('good.bloom', \@ids, @fuse, '-p', '0.02', '--seed', 1,
                '--except', $t->write_file('good', join '', map { "no$_\n" }
                                                                1 .. 2000));
$t->build_image('hosts.bloom', [map { "d$_.example" } 1 .. 2000], @fuse,
                '--form', 'host', '-p', '1e-6');
$t->build_image('urls.bloom', [map { "d$_.example/path/" } 1 .. 2000], @fuse,
                '--form', 'url', '-p', '1e-6');

my @false = false_positives($t, 'ids', 40);

feedback_backend($t, 8081);
configure($t, ['zone=ids file=ids.bloom removals=400', 'zone=good file=good.bloom',
               'zone=hosts file=hosts.bloom', 'zone=urls file=urls.bloom'],
          api => 1, add => 1, workers => 2, server => <<'CONF');
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /audit/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_audit 100% add=on rate=1000r/s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
$t->run;

sub present {
    my ($zone, @asked) = @_;

    return scalar grep { $_ eq 'present' } lookup_keys($t, $zone, @asked);
}


subtest 'false positives of the base are excepted' => sub {
    has_row($t, @ids[0 .. 99]);
    await_feedback($t, 'ids', '/of/ids?id=', $false[0]);
    $t->get("/of/ids?id=$_") for @false[1 .. 20];
    ok(wait_until(sub { present('ids', @false[0 .. 20]) == 0 }),
       'each of them is excepted');
    is(present('ids', @false[21 .. 39]), 19, 'others are not');
    is(present('ids', @ids), @ids, 'no key of the image is');
    is($t->get("/of/ids?id=$ids[7]")->status, 200, 'keys pass');
    has_row($t, $false[3]);
    is($t->get("/of/ids?id=$false[3]")->status, 404, 'an excepted key does not');

    add($t, 'ids', [@false[0 .. 4]]);
    is(present('ids', @false[0 .. 4]), 5, 'excepted keys that are added are present');
    is(present('ids', @false[5 .. 20]), 0, 'the others stay absent');
    $t->reload;
    is(present('ids', @false[5 .. 20]), 0, 'after a reload, too');
};


subtest 'wrong absents are excepted' => sub {
    my $mark = $t->log_mark;
    my @rows = map { "row$_" } 1 .. 200;

    has_row($t, @rows);

    my @absent = do {
        my @answers = lookup_keys($t, 'ids', @rows);
        map { $rows[$_] } grep { $answers[$_] eq 'absent' } 0 .. $#rows;
    };

    cmp_ok(scalar @absent, '>', 150, 'keys are missing');
    $t->pipeline(map { "/audit/ids?id=$_" } @absent[0 .. 49]);
    ok(wait_until(sub { present('ids', @absent[0 .. 49]) == 50 }),
       'each of them is added to a layer');
    is(zone_state($t, 'ids')->{filter}{layers}, 1, 'the layer is in use');

    $t->kill_all;
    $t->run;
    is(present('ids', @absent[0 .. 49], @ids), 50 + @ids,
       'they are present after kill -9 and a start');
    $t->excuse_log($mark);
};


subtest 'exceptions of the builder' => sub {
    my $state = zone_state($t, 'good');

    cmp_ok($state->{image}{excepted}, '>', 10, 'the image has exceptions');
    is(present('good', map { "no$_" } 1 .. 2000), 0, 'they are absent');
    is(present('good', @ids), @ids, 'the keys of the image are present');
    add($t, 'good', ['no5', 'no6']);
    is(present('good', 'no5', 'no6', 'no7'), 2, 'two of them are added');
};


subtest 'keys of several expressions' => sub {
    my @hosts = map { "d$_.example" } 1 .. 2000, 5001 .. 5300;
    my @urls = map { "http://d$_.example/path/" } 1 .. 2000, 5001 .. 5300;

    add($t, 'hosts', [@hosts[2000 .. $#hosts]]);
    add($t, 'urls', [@urls[2000 .. $#urls]]);

    is(present('hosts', map { "www.$_" } @hosts), @hosts,
       'a name below each name is present, in a batch');
    is(present('urls', map { "${_}file.html?x=1" } @urls), @urls,
       'a URL below each URL is present, in a batch');

    my @some = (0 .. 49, 2000 .. 2049);

    is(ask($t, 'hosts', map { "www.$_" } @hosts[@some]), '1' x 100,
       'names are present, one at a time');
    is(ask($t, 'urls', map { s{http://}{}r } @urls[@some]), '1' x 100,
       'URLs are present, one at a time');
    is(present('hosts', map { "www.no$_.example" } 1 .. 1000), 0,
       'other names are absent');
};

done_testing;
