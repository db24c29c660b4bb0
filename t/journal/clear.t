#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A clear takes place as a whole or not at all, also on a full disk.  Keys that
# were added before an acknowledged clear never come back, and keys that were
# added after it are never lost.  All instances of a zone are cleared, and a
# damaged zone is repaired.  t/crash tests deaths of processes, and power-loss.t
# a loss of power.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $disk = BloomTest::Disk->new($t, 'state');
my $faults = BloomTest::Faults->new($t);

$t->expect_log(qr/exited on signal 9/) if $faults->built_in;

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '20k');
$t->build_image('pushed.bloom', ['id1', 'wrong'], '-p', '1e-9', '-n', '20k');

sub conf {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom"], api => 1, add => 1);
}

sub clear { return api($t, POST => 'zones/ids/clear', @_) }

# Starts with a pushed image and added keys, most of them in a checkpoint.

sub begin {
    remove_tree("$dir/state");
    $t->run;
    upload_image($t, 'ids', 'pushed')->status == 200 or die 'no upload';
    add($t, 'ids', ['old1']);
    api($t, POST => 'zones/ids/checkpoint')->status == 200
        or die 'no checkpoint';
    add($t, 'ids', ['old2'], durable => 1);
}

my @keys = qw(id1 id2 wrong old1 old2);

use constant {
    BEFORE => '10111',
    AFTER => '11000',
};

# The zone is as before the clear, or as after it.

sub is_whole {
    my ($when, $wanted) = @_;

    my $answers = ask_until_known($t, 'ids', @keys);

    if (defined $wanted) {
        is($answers, $wanted, "the zone is cleared as a whole $when");
    } else {
        ok($answers eq BEFORE || $answers eq AFTER,
           "the zone is as before or as after a clear $when")
            or diag($answers);
    }

    is(zone_state($t, 'ids')->{state}, 'serving', "the zone is serving $when");

    return $answers;
}

sub left_over {
    return files("$state/{upload.*,checkpoint.*,*.tmp}");
}

# What was decided stays, and keys that are added then stay, too.

sub stays {
    my ($when) = @_;

    my $answers = is_whole($when);
    my $new = 'new-' . $when =~ tr/ /-/r;

    add($t, 'ids', [$new]);
    $t->kill_all;
    $t->run;
    is_whole("$when, and after kill -9", $answers);
    is(ask_until_known($t, 'ids', $new), '1',
       "a key that was added $when is present after kill -9");

    if ($answers eq AFTER) {
        ok(wait_until(sub { !left_over() }), "nothing is left $when")
            or diag(join ' ', left_over());
    }

    return $answers;
}


conf('');


# The clear record was written and not published.  It must not count later.

subtest 'a clear that did not happen never does' => sub {
    $faults->needed;

    begin();
    my $mark = $t->log_mark;
    $faults->kill_at('clear');
    is_error(clear(), 503, qr/was clearing the zone died/,
             'the clear fails when the helper dies');
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    is_whole('after the failure', BEFORE);
    is(api($t, GET => 'zones/ids/image')->status, 200,
       'the next helper works');

    $t->kill_all;
    $t->run;
    is_whole('after a restart', BEFORE);
    is(read_base("$state/base")->{from}{position}, 0,
       'the journal begins where it did');
    $t->stop;
};


subtest 'the disk is full' => sub {
    begin();
    my $before = generation($t, 'ids');

    $disk->refuse('ENOSPC', qw(write grow rename));
    my $response = clear();
    like($response->status, qr/^50[37]$/, 'the clear is refused');
    like($response->json->{error}{message}, qr/cannot be cleared.*free space/,
         'the message says why');
    is(generation($t, 'ids'), $before, 'nothing has changed');
    is_whole('on a full disk', BEFORE);

    $disk->allow;
    is(clear()->status, 200, 'the clear succeeds when there is room');
    is_whole('when there is room', AFTER);
    is(stays('when there is room'), AFTER, 'the clear stays');
    $t->stop;
};


subtest 'the disk becomes full during a clear' => sub {
    $faults->needed;

    begin();
    my $stop = $faults->stop_at('published');
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/clear'));
    my $helper = $faults->stopped($stop);
    $disk->refuse('ENOSPC', qw(write grow rename));
    resume_process($helper);

    is_error($c->response, 503,
             qr/the zone is cleared, but .* cannot be written/,
             'the answer says that the zone is cleared, but not on disk');
    is_whole('on the disk that became full', AFTER);
    is_error(upload_image($t, 'ids', 'pushed'), 503, qr/./,
             'no upload is stored meanwhile');

    $disk->allow;
    ok(wait_until(sub { !left_over() }),
       'the helper completes the clear when there is room');
    $t->kill_all;
    $t->run;
    is_whole('after the disk was full', AFTER);
    $t->stop;
};


subtest 'a damaged zone is repaired' => sub {
    begin();
    $t->stop;
    set_control("$state/control", lost => time * 1000, lost_keys => 3);
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);
    $t->run;
    is(zone_state($t, 'ids')->{state}, 'damaged', 'the zone is damaged');

    is(clear()->status, 200, 'it is cleared');
    is_whole('with lost keys', AFTER);
    is(zone_state($t, 'ids')->{journal}{lost_keys}, 0, 'no lost key is left');

    $t->kill_all;
    my $mark = $t->log_mark;
    $t->run;
    is_whole('with lost keys and after a restart', AFTER);
    unlike($t->log_since($mark), qr/lost added keys/,
           'the loss is forgotten on disk');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'the file is loaded');
    is_whole('with lost keys and after a load', AFTER);
    $t->stop;
};


subtest 'two instances of a zone are cleared' => sub {
    begin();
    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = sides($t, $old, $new);

    is(both($t, 'ids', \%side, @keys), 'new ' . BEFORE . ' old ' . BEFORE,
       'both instances serve the pushed image');
    is(clear()->status, 200, 'one of them is cleared');
    is(both($t, 'ids', \%side, @keys), 'new ' . AFTER . ' old ' . AFTER,
       'both are cleared');

    for my $n (1 .. 10) {
        add($t, 'ids', ["both$n"]);
        clear() if $n == 5;
    }

    is(both($t, 'ids', \%side, map { "both$_" } 1 .. 10),
       'new 0000011111 old 0000011111',
       'both have the keys that were added after the last clear');

    $t->upgrade_finish;
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', map { "both$_" } 1 .. 10), '0000011111',
       'a restart has them, too');
    $t->stop;
};


subtest 'the size of a zone changes before and after a clear' => sub {
    begin();
    conf(':2m');
    $t->reload;
    is(clear()->status, 200, 'the larger zone is cleared');
    is_whole('in a larger zone', AFTER);
    add($t, 'ids', ['larger1']);
    conf(':3m');
    $t->reload;
    is_whole('in an even larger zone', AFTER);
    is(ask_until_known($t, 'ids', 'larger1'), '1',
       'a key that was added between is present');
    conf('');
    $t->stop;
};


# Another instance clears the zone while this one loads an image.

subtest 'another instance clears the zone during a load' => sub {
    $faults->needed;

    for my $how ('reload', 'upload') {
        begin();
        my $old = $t->master;
        my $old_helper = $t->helper;
        my $new = $t->upgrade_begin;
        my %side = sides($t, $old, $new);
        is(both($t, 'ids', \%side, 'old2'), 'new 1 old 1',
           'both instances have the key');

        # the first helper that loads stops just before its switch

        my $stop = $faults->stop_at('replayed');
        my $c = $t->connect;
        $c->send($how eq 'reload'
                 ? $t->request_text(POST => '/bloom/zones/ids/reload')
                 : $t->request_text(PUT => '/bloom/zones/ids/image',
                                    body => $t->read_file('pushed.bloom')));
        my $helper = $faults->stopped($stop);

        # ask until the other instance takes the request

        my ($by, $response);
        for (1 .. 50) {
            my (undef, $pid) = ask($t, 'ids', 'id1');
            $by = $side{$pid};
            last;
        }
        my $cleared = $t->connect;
        $cleared->send($t->request_text(POST => '/bloom/zones/ids/clear'));
        select undef, undef, undef, 0.5;
        resume_process($helper);

        $response = $c->response;
        my $other = $cleared->response;
        ok($other->status == 200 || $other->status == 409,
           "the clear is answered during a $how") or diag($other);
        is($response->status, 200, "the $how succeeds") or diag($response);
        clear() if $other->status == 409;

        my $answers = both($t, 'ids', \%side, qw(old1 old2));
        is($answers, 'new 00 old 00',
           "no added key comes back with the $how");
        $t->upgrade_finish;
        $t->kill_all;
    }
};


# The record is where the journal begins, and nothing before it counts.

subtest 'the file base begins with the clear record' => sub {
    begin();
    my $upload = read_base("$state/base");
    is($upload->{kind}, BloomTest::Base::UPLOAD,
       'the zone stands on an upload');
    is(clear()->status, 200, 'the zone is cleared');

    my $base = read_base("$state/base");
    is_deeply([@$base{qw(kind build_id replaced dropped)}],
              [BloomTest::Base::FILE, build_id($t, 'ids'), '0' x 32, 0],
              'it stands on the image of file=');
    is_deeply([map { $base->{$_}{position} } qw(older newer)], [0, 0],
              'it has no checkpoint');

    my ($record) = records_of($t, 'ids');
    is_deeply([$record->{type}, $record->{sequence}],
              [CLEAR, $base->{from}{sequence}],
              'the journal begins with the record');
    ok(wait_until(sub { !left_over() }), 'files from before it are removed');
    $t->stop;
};


# No start uses a file that the entry does not name.

subtest 'a file that a clear dropped cannot be removed' => sub {
    begin();
    mkdir "$state/upload.left.bloom" or die "mkdir: $!";

    my $mark = $t->log_mark;
    is(clear()->status, 200, 'the zone is cleared');
    like($t->log_since($mark), qr/upload\.left\.bloom" cannot be removed/,
         'the log names the file');

    $t->kill_all;
    $t->run;
    is_whole('beside the file', AFTER);
    rmdir "$state/upload.left.bloom" or die "rmdir: $!";
    ok(wait_until(sub { !left_over() }), 'the other files are removed');
    $t->stop;
};


# The keys of such a zone are in its checkpoints alone.

subtest 'a zone that stands on its checkpoints is cleared' => sub {
    my @big = map { "big$_-" . 'x' x 900 } 1 .. 500;

    remove_tree("$dir/state");
    configure($t, ['zone=ids capacity=20k fpr=1e-9'], api => 1);
    $t->run;

    for (1, 2) {
        add($t, 'ids', \@big) for 1 .. 6;
        api($t, POST => 'zones/ids/checkpoint')->status == 200
            or die 'no checkpoint';
    }

    # a helper that begins looks for segments to remove

    $t->expect_log(qr/exited on signal 9/);
    $t->kill_helper;
    ok(wait_until(sub {
        read_base("$state/base")->{kind} == BloomTest::Base::CHECKPOINT
    }), 'the zone stands on its older checkpoint');
    add($t, 'ids', ['behind']);

    for my $when ('', ' again') {
        is(clear()->status, 200, "the zone is cleared$when");
        is(ask_until_known($t, 'ids', @big[0, 499], 'behind'), '000',
           "no key is left$when");
        is(read_base("$state/base")->{kind}, BloomTest::Base::EMPTY,
           "the zone stands on an empty filter$when");

        add($t, 'ids', ['new']);
        $t->kill_all;
        $t->run;
        is(ask_until_known($t, 'ids', @big[0, 499], 'behind', 'new'), '0001',
           "after a restart only a later key is present$when");
        ok(wait_until(sub { !left_over() }), "no checkpoint is left$when");
        api($t, POST => 'zones/ids/checkpoint') for 1, 2;
    }

    $t->stop;
};


done_testing;
