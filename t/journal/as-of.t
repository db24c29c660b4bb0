#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A new image drops no key of the journal unless it has an as_of, the time up to
# which it is complete.  It then drops keys that are more than an hour older.
# Their segments are removed when the image before it covers them, too: so that
# one can always be loaded again.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Image qw(patch_header);
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Prometheus;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my @ids = keys_of('id', 10);
my $now = time;

my $faults = BloomTest::Faults->new($t);
my $disk = BloomTest::Disk->new($t, 'state');

# Builds an image of @ids and of a key that equals the image's name.

sub image {
    my ($name, $as_of) = @_;

    $t->build_image("$name.bloom", [@ids, $name], '-p', '1e-9',
                    defined $as_of ? ('--as-of', rfc3339($as_of)) : ());
}

# Starts nginx with an image and with a journal that has a segment for each of
# the last hours, in which a key such as h3 was added that many hours ago.

my @hours = (6, 5, 4, 3, 2);

sub begin_with_hours {
    my ($name) = @_;

    my @journals;

    for my $hours (@hours) {
        my @created = (created => ($now - $hours * 3600) * 1000);

        push @journals, @journals ? $journals[-1]->next_segment(@created)
                                  : BloomTest::Journal->new(@created);
        $journals[-1]->append(["h$hours"], time => $created[1]);
    }

    begin_state($t, 'ids', @journals);
    install_image($t, $name);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
    $t->run;
}

my @names = map { "h$_" } @hours;

sub hours { return ask_until_known($t, 'ids', @names) }

sub segments { return scalar files("$state/journal.*") }

# Waits until the zone stands on the image that serves, and the helper has
# looked for segments to remove.

sub synchronised {
    wait_until(sub { read_base("$state/base")->{build_id}
                     eq zone_state($t, 'ids')->{image}{build_id} })
        or die 'the image does not become the base';
    $t->expect_log(qr/exited on signal 9/);
    $t->kill_helper;
    api($t, GET => 'zones/ids/image')->status == 200 or die 'no helper';
}


image('plain');
image('ancient', $now - 10 * 3600);
image('before', $now - 5 * 3600 - 1800);
image('between', $now - 2 * 3600 - 1800);
image('between2', $now - 2 * 3600 - 1800);
image('recent', $now);


subtest 'an image without as_of drops nothing' => sub {
    begin_with_hours('plain');
    is(hours(), '11111', 'a start with an image without as_of drops no key');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image without as_of is loaded again');
    is(hours(), '11111', 'a load of an image without as_of drops no key');
    cmp_ok(segments(), '>=', 5, 'an image without as_of removes no segment');
    $t->stop;
};


subtest 'an image with as_of drops keys older by more than an hour' => sub {
    begin_with_hours('plain');
    add($t, 'ids', ['new']);
    install_image($t, 'between');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image as of 2.5 hours ago is loaded');

    # keys from more than 3.5 hours ago are dropped: h6, h5 and h4

    is(hours(), '00011', 'an image as of 2.5 hours ago drops h6, h5 and h4');
    is(ask_until_known($t, 'ids', 'new', 'between', 'plain', 'id1'), '1101',
       'a new key and the keys of the new image are present');

    # the image before can be loaded again: it finds all that it lacks

    synchronised();
    cmp_ok(segments(), '>=', 5,
           'no segment that the image before lacks is removed');
    install_image($t, 'plain');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image before is loaded again');
    is(ask_until_known($t, 'ids', @names, 'new', 'between', 'plain'),
       '11111101',
       'the image before finds all keys in the journal');

    # two images that cover the same keys

    for my $name ('between', 'between2') {
        install_image($t, $name);
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           "image $name is loaded");
    }

    ok(wait_until(sub {
        return !-e "$state/journal.0000000000000000";
    }), 'a segment that both images cover is removed');
    cmp_ok(segments(), '>=', 2, 'segments of other keys are not removed');

    $t->kill_all;
    $t->run;
    is(hours(), '00011', 'dropped keys are absent after a restart');
    is(ask_until_known($t, 'ids', 'new'), '1',
       'the new key is present after a restart');

    # an older image lacks the keys of the removed segments

    my $generation = generation($t, 'ids');
    is_error(upload_image($t, 'ids', $_), 422, qr/too old.*--as-of/,
             "the older image $_ is refused when segments are removed")
        for 'ancient', 'before';
    is(generation($t, 'ids'), $generation,
       'the generation before the refused images continues to serve');
    is(hours(), '00011', 'keys are present as before the refused images');

    # an image without as_of may lack those keys

    is_error(upload_image($t, 'ids', 'plain'), 422, qr/too old.*--as-of/,
             'an image without as_of is refused when segments are removed');
    is(ask_until_known($t, 'ids', @names[3, 4], 'new'), '111',
       'keys are present after a refused image without as_of');

    is(upload_image($t, 'ids', 'recent')->status, 200,
       'a more recent image is uploaded');
    is(ask_until_known($t, 'ids', 'h3', 'h2', 'new', 'recent'), '0011',
       'the more recent image drops h3 and h2');
    $t->stop;
};


subtest 'a start refuses an older image' => sub {
    begin_with_hours('between');
    is(hours(), '00011',
       'a start with the image "between" drops h6, h5 and h4');
    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'a segment of dropped keys is removed after the start');

    install_image($t, 'ancient');
    my $log = $t->reload_fails;
    like($log, qr/too old.*--as-of/,
         'a reload refuses an older image with the reason');
    is(hours(), '00011', 'image between continues to serve');
    is_error(api($t, POST => 'zones/ids/reload'), 422, qr/too old.*--as-of/,
             'the endpoint refuses an older image with the reason');

    $t->stop;
    like($t->run_fails, qr/\[emerg\].*too old.*--as-of/,
         'a start refuses an older image with the reason');

    install_image($t, 'recent');
    $t->run;
    is(ask_until_known($t, 'ids', 'recent', 'id1', 'no'), '110',
       'a start accepts a more recent image');
    $t->stop;
};


subtest 'no image drops keys of the last hour' => sub {
    begin_with_hours('plain');
    add($t, 'ids', [keys_of('fresh', 50)]);

    image('later', time);

    for my $name (qw(between recent later)) {
        is(upload_image($t, 'ids', $name)->status, 200,
           "image $name is uploaded");
        is(ask_until_known($t, 'ids', keys_of('fresh', 50)), '1' x 50,
           "fresh keys are present in image $name");
    }

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', keys_of('fresh', 50)), '1' x 50,
       'fresh keys are present after a restart');
};


# ngx-bloom does not write such an image, but a wrong clock or another program
# may.

subtest 'an image as of a future time drops nothing' => sub {
    $t->stop;

    $t->write_file('tomorrow.bloom', patch_header(
        $t->read_file('recent.bloom'),
        128 => pack('Q<', ($now + 90 * 86400) * 1000),
        136 => 'another build id'));

    begin_with_hours('plain');
    add($t, 'ids', [keys_of('fresh', 50)]);

    # while nginx runs, another image serves already

    my $ahead = qr/states an as_of that is more than an hour ahead.*--as-of/;
    my $generation = generation($t, 'ids');

    is_error(upload_image($t, 'ids', 'tomorrow'), 422, $ahead,
             'an upload of an image as of a future time is refused');
    install_image($t, 'tomorrow');
    like($t->reload_fails, $ahead, 'a reload of nginx is refused as well');
    is_error(api($t, POST => 'zones/ids/reload'), 422, $ahead,
             'a load of an image as of a future time is refused');
    is(generation($t, 'ids'), $generation, 'the image before serves on');

    # a start has no other image

    my $mark = $t->log_mark;
    $t->kill_all;
    $t->run;
    like($t->log_since($mark),
         qr/\[warn\].* complete, as of .* UTC, which was in the future .*clock/,
         'a warning says that the time of the image is in the future');
    is(ask_until_known($t, 'ids', keys_of('fresh', 50)), '1' x 50,
       'an image as of a future time drops no fresh key');
    is(hours(), '11111', 'an image as of a future time drops no older key');
    is(ask_until_known($t, 'ids', 'recent', 'id1', 'plain'), '110',
       'the image as of a future time serves');

    add($t, 'ids', [keys_of('later', 50)]);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', keys_of('fresh', 50), keys_of('later', 50)),
       '1' x 100, 'fresh and later keys are present after a restart');
    is(hours(), '11111', 'older keys are present after a restart');

    # it covers nothing also when it is the image before

    install_image($t, 'between');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image as of a past time is loaded');
    synchronised();
    cmp_ok(segments(), '>=', 5, 'no segment is removed');

    install_image($t, 'between2');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image as of a past time is loaded');
    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'a segment that both images cover is removed');

    # nor may it lack what was removed

    $t->stop;
    install_image($t, 'tomorrow');
    like($t->run_fails, qr/\[emerg\].*too old.*--as-of/,
         'a start with the image of a future time is refused');
};


# Until a start would use the uploaded image that serves, the journal keeps the
# segments that the previous image needs.

subtest 'an uploaded image cannot be stored' => sub {
    begin_with_hours('plain');

    $disk->refuse('EIO', 'rename');
    is_error(upload_image($t, 'ids', 'between'), 503,
             qr/serves, but a restart brings the previous image back/,
             'the endpoint says that the image serves until a restart');
    $disk->allow;
    is(hours(), '00011', 'the image that is not stored serves');

    # a new helper removes segments that are not needed before it saves an
    # image

    $t->expect_log(qr/exited on signal 9/);
    $t->kill_helper;
    is(api($t, GET => 'zones/ids/image')->status, 200, 'a new helper works');
    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/is not the one that a start would load/,
             'no checkpoint is made of an image that is not stored');
    cmp_ok(segments(), '>=', 5,
           'an image that is not stored removes no segment');

    $t->kill_all;
    $t->run;
    is(hours(), '11111', 'all keys are present after a restart');
    is(ask_until_known($t, 'ids', 'plain', 'between'), '10',
       'the image before the upload serves after a restart');

    for my $name ('between', 'between2') {
        is(upload_image($t, 'ids', $name)->status, 200,
           "image $name is uploaded and stored");
    }

    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'a segment of dropped keys is removed after the upload');
    $t->stop;
};


subtest 'the helper dies before an uploaded image is stored' => sub {
    $faults->needed;

    begin_with_hours('plain');

    my $stop = $faults->stop_at('switched');
    my $c = $t->connect;
    $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                              body => $t->read_file('between.bloom')));
    my $helper = $faults->stopped($stop);
    is(hours(), '00011', 'the uploaded image serves before it is stored');

    # the next helper removes segments that are not needed before it answers,
    # and before it saves an image

    kill 'KILL', $helper or die "kill: $!";
    is_error($c->response, 503,
             qr/died.*serves, but a restart may bring the previous image back/,
             'the upload is told that the process died');
    is(api($t, GET => 'zones/ids/image')->status, 200,
       'the next helper does its work');
    is(hours(), '00011', 'the uploaded image serves on');
    cmp_ok(segments(), '>=', 5,
           'the next helper removes no segment for an image that is not stored');

    $t->kill_all;
    $t->run;
    is(hours(), '11111', 'all keys are present after a restart');
    is(ask_until_known($t, 'ids', 'plain', 'between'), '10',
       'the image before the upload serves after a restart');
};


# Without as_of, nothing is ever removed from the journal.

subtest 'a journal grows because of its images' => sub {
    my $log = qr/bloom zone "ids": the journal is more than ten times as large/;
    my $mark = $t->log_mark;

    my $grows = sub {
        my $warning = zone_state($t, 'ids')->{journal}{warning};

        is(samples($t)->{'journal_grows{zone="ids"}'}, defined $warning ? 1 : 0,
           'the metric is that of the state');
        return $warning;
    };

    # so many MiB of keys

    my $fill = sub {
        my ($name, $mib) = @_;
        add($t, 'ids', [map { "$name-$_-" . 'x' x 16_000 } 1 .. $mib * 64]);
    };

    $t->stop;
    remove_tree("$dir/state");
    install_image($t, 'plain');
    configure($t, ['zone=ids file=ids.bloom', 'zone=empty capacity=1k fpr=0.01'],
              api => 1, add => 1);
    $t->run;

    $fill->('first', 60);
    is($grows->(), undef, 'a journal of less than 64 MiB does not matter');
    unlike($t->log_since($mark), $log, 'the log says nothing of it');
    $fill->('second', 8);
    like($grows->(), qr/without bound, because one of the last two images states no as_of; build the next two with --as-of/,
         'the state says why a larger one grows, and what to do');
    $t->wait_for_log(qr/$log.*--as-of/, $mark);

    install_image($t, 'recent');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image with as_of is loaded');
    like($grows->(), qr/one of the last two images states no as_of/,
         'the one before it still has none');
    image('later', $now + 1);
    install_image($t, 'later');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image with as_of is loaded');
    like($grows->(), qr/load images that are built with a later --as-of/,
         'the state says that both are too old');
    ok(wait_until(sub { 3 == (() = $t->log_since($mark) =~ /$log/g) }),
       'the log says so once for each image');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    is($grows->(), undef, 'the journal is small again');
};


subtest 'a zone has max_age=' => sub {
    $t->stop;
    remove_tree("$dir/state");
    install_image($t, 'between');

    configure($t, ['zone=ids file=ids.bloom max_age=2h'], api => 1);
    $t->run;
    is(ask($t, 'ids', 'id1', 'no'), '??',
       'every key is unknown in an image older than max_age=');
    like(api($t, GET => 'zones/ids')->body, qr/stale/,
         'a zone with an image older than max_age= is stale');

    install_image($t, 'recent');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'a more recent image is loaded');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the more recent image answers');

    install_image($t, 'plain');
    is_error(api($t, POST => 'zones/ids/reload'), 422, qr/as.of/,
             'a zone with max_age= refuses an image without as_of');
    is(ask($t, 'ids', 'id1', 'no'), '10',
       'the more recent image continues to serve');
    $t->stop;

    # this image becomes too old while it serves

    image('growing', time - 7195);
    install_image($t, 'growing');
    configure($t, ['zone=ids file=ids.bloom max_age=2h'], api => 1);
    $t->run;
    ok(wait_until(sub { ask($t, 'ids', 'id1', 'no') eq '??' }),
       'every key becomes unknown when an image reaches max_age=');
};


done_testing;
