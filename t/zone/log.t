#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The log says once, with numbers, that a zone has started, that another image
# serves or was refused, that a zone is stale or over-full, and that a watched
# file is missing.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('ids.bloom', ['one', 'two'], '-p', '1e-3', '-n', 10,
                '--as-of', '2020-01-02T03:04:05Z');
$t->build_image('next.bloom', ['one', 'two', 'three'], '-p', '1e-3');
$t->build_image('aged.bloom', ['one'], '--as-of', '2020-01-02T03:04:05Z');
$t->build_image('watched.bloom', ['one']);

configure_rules($t, {}, <<'CONF');
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=aged file=%%TESTDIR%%/aged.bloom max_age=1h;
    bloom_zone zone=watched file=%%TESTDIR%%/watched.bloom watch=50ms;
    bloom_zone zone=seen capacity=1000 fpr=0.001;
    bloom_zone zone=rare capacity=1000 fpr=1e-9;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { client_max_body_size 0; bloom_api write=on; }
        location / { bloom_reject absent $arg_id zone=aged; }
    }
CONF
$t->run;


sub lines {
    my ($pattern, $mark) = @_;

    return grep { /$pattern/ } split /\n/, $t->log_since($mark // 0);
}

# Returns when the helper has checked every zone twice.

sub helper_checks {
    for (1 .. 2) {
        my $before = zone_state($t, 'seen')->{helper}{heartbeat};
        wait_until(sub {
            zone_state($t, 'seen')->{helper}{heartbeat} gt $before;
        }) or die 'no helper';
    }
}


subtest 'zones start' => sub {
    my @lines = lines(qr/starts with generation/);

    is(scalar @lines, 5, 'the log has a line for the start of each zone');
    like($lines[0], qr{\[notice\] .*bloom zone "ids" starts with generation 1: \Q$dir\E/ids\.bloom with 2 keys, capacity 10, as of 2020-01-02 03:04:05 UTC, and 0 keys of its journal, loaded in \d+ ms$},
         'the line about a zone with a file has its numbers of keys');
    like($lines[3], qr/bloom zone "seen" starts with generation 1: a filter that starts empty with 0 keys, capacity 1000, and 0 keys of its journal, loaded/,
         'the line about a zone that starts empty has its numbers of keys');
};


subtest 'another image is loaded' => sub {
    my $mark = $t->log_mark;
    add($t, 'ids', ['four']);
    rename "$dir/next.bloom", "$dir/ids.bloom" or die "rename: $!";
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the endpoint loads another image');

    my $line = $t->wait_for_log(qr/serves generation/, $mark);
    like($line, qr{\[notice\] .*bloom zone "ids" serves generation 2: \Q$dir\E/ids\.bloom with 3 keys, capacity 3, and 1 key of its journal, loaded in \d+ ms$},
         'the line about another image has its numbers of keys');
    is(scalar lines(qr/serves generation/, $mark), 1,
       'the log has one line about the other image');
};


subtest 'an invalid image is refused' => sub {
    my $mark = $t->log_mark;
    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', 'x' x 5000);
    is(api($t, POST => 'zones/ids/reload')->status, 422,
       'the endpoint refuses an invalid image');

    my $line = $t->wait_for_log(qr/continues with/, $mark);
    like($line, qr{\[error\] .*image "\Q$dir\E/ids\.bloom" of bloom zone "ids" is not a Bloom filter image; .*; bloom zone "ids" continues with generation 2$},
         'the line about the invalid image has the reason');
    is(scalar lines(qr/continues with/, $mark), 1,
       'the log has one line about the invalid image');
};


subtest 'a zone is stale' => sub {
    $t->get('/?id=one') for 1 .. 20;
    helper_checks();

    my @lines = lines(qr/is stale/);
    is(scalar @lines, 1,
       'the log has one line about a stale zone after 20 requests');
    like($lines[0], qr/\[warn\] .*bloom zone "aged" is stale: its image, as of 2020-01-02 03:04:05 UTC, is \d+ s old, and "max_age" is 3600 s; it answers "unknown" until a newer image is loaded$/,
         'the line about a stale zone has the age of its image');

    $t->kill_helper;
    helper_checks();
    is(scalar lines(qr/is stale/), 1,
       'a new helper does not repeat that a zone is stale');

    my $mark = $t->log_mark;
    $t->build_image('aged.bloom', ['two'], '--as-of', '2021-01-01T00:00:00Z');
    is(api($t, POST => 'zones/aged/reload')->status, 200,
       'the endpoint loads another image that is too old');
    like($t->wait_for_log(qr/is stale/, $mark), qr/as of 2021-01-01/,
         'the log says that the zone is stale with the other image');
};


subtest 'a watched file is missing' => sub {
    my $missing = qr/its file .* is missing/;

    for my $time (1, 2) {
        my $mark = $t->log_mark;
        rename "$dir/watched.bloom", "$dir/away.bloom" or die "rename: $!";

        my $line = $t->wait_for_log($missing, $mark);
        like($line, qr{\[warn\] .*bloom zone "watched": its file "\Q$dir\E/watched\.bloom" is missing; the image loaded from it still serves: put the file back, or nginx refuses to start next time \(2: No such file or directory\)$},
             "the line about a missing file says what to do (time $time)");
        $t->kill_helper;
        helper_checks();
        is(scalar lines($missing, $mark), 1,
           "a new helper does not repeat that the file is missing"
           . " (time $time)");
        is(generation($t, 'watched'), $time,
           "generation $time continues to serve without its file");

        rename "$dir/away.bloom", "$dir/watched.bloom" or die "rename: $!";
        ok(wait_until(sub { generation($t, 'watched') == $time + 1 }),
           "the file is loaded when it is back (time $time)");
        is(scalar lines($missing, $mark), 1,
           "the log does not repeat that the file was missing (time $time)");
    }
};


# The number of keys is an estimate.  With a random hash key the estimate for a
# full filter exceeds, once in 740 times, the three standard errors that the
# message waits for.  The test therefore sets the hash key.

my $over = qr/and was made for/;

# Adds keys while the helper does not look.

sub add_unseen {
    my $helper = $t->helper;

    kill 'STOP', $helper;
    add($t, @_);
    kill 'CONT', $helper;
}

subtest 'a zone is over-full' => sub {
    $t->build_image('full.bloom', [], '-p', '1e-3', '-n', 1000, '--seed', 1,
                    '--allow-empty');
    is(upload_image($t, 'seen', 'full')->status, 200,
       'a filter with a given hash key is uploaded');

    my $mark = $t->log_mark;
    my $line;

    add($t, 'seen', [map { "k$_" } 1 .. 1000]);
    helper_checks();
    is(scalar lines($over, $mark), 0,
       'the log says nothing about a zone that is just full');

    for (['1.5', 1150, qr/0\.(1[5-9]|[2-9])\d* %, [1-9]\.\d/],
         ['10', 2000, qr/[1-9]\.\d* %, \d\d\.\d/],
         ['100', 5000, qr/[1-9]\d(?:\.\d)? %, \d{3}\.\d/])
    {
        my ($level, $keys, $rates) = @$_;
        my $before = $t->log_mark;

        add_unseen('seen', [map { "k$_" } 1 .. $keys]);
        $line = $t->wait_for_log($over, $before);
        like($line, qr/\[warn\] .*bloom zone "seen" has about (\d+) keys and was made for 1000: its false-positive rate is about $rates times the 0\.1 % that it was made for; build its next image with "-n" greater than \1$/,
             "the log warns of a zone at $level times its rate, with figures");

        my ($about) = $line =~ /about (\d+) keys/;
        cmp_ok(abs($about - $keys), '<', 0.1 * $keys,
               'with its number of keys');

        add($t, 'seen', [map { "k$_" } 1 .. $keys + 30]);
        helper_checks();
        is(scalar lines($over, $before), 1,
           "the log warns once of a zone at $level times its rate");
    }

    $t->kill_helper;
    add($t, 'seen', [map { "k$_" } 1 .. 6000]);
    helper_checks();
    is(scalar lines($over, $mark), 3,
       'a new helper does not repeat that a zone is over-full');

    $mark = $t->log_mark;
    is(upload_image($t, 'seen', 'full')->status, 200,
       'another image is uploaded to the over-full zone');
    add($t, 'seen', [map { "x$_" } 1 .. 1200]);
    ok($t->wait_for_log($over, $mark),
       'the log warns of the zone with the other image');
};


subtest 'a zone of a low rate is over-full' => sub {
    my $mark = $t->log_mark;
    add_unseen('rare', [map { "k$_" } 1 .. 8000]);

    my $line = $t->wait_for_log($over, $mark);
    like($line, qr/bloom zone "rare" has about (\d+) keys and was made for 1000: its false-positive rate is about \d[\d.e-]* %, \d+\.\d times the 1e-07 % that it was made for; raise its "capacity" above \1$/,
         'the log shows a low rate, and names the remedy for "capacity"');
    unlike($line, qr/ 0\.?0* %/, 'no rate reads as 0 %');
    helper_checks();
    is(scalar lines($over, $mark), 1,
       'one line is enough for a zone that passes three levels at once');
};


done_testing;
