#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# No image is made of a zone that has lost keys: another zone would take it for
# whole.  Checkpoints are written, because only this zone loads them, and they
# do not hide the loss.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state';
my $faults = BloomTest::Faults->new($t);
my @zones = qw(ids seen);

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
$t->build_image('later.bloom', ['id1', 'later'], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time));

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=50k fpr=1e-9',
               'zone=copy capacity=50k fpr=1e-9'], api => 1, add => 1,
          workers => 2);
$t->run;

$t->expect_log(qr/\[alert\].*has lost added keys/);

sub state_of { return zone_state($t, $_[0])->{state} }
sub image { return api($t, GET => "zones/$_[0]/image") }

sub checkpoint {
    my ($zone) = @_;

    is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
       "a checkpoint of zone $zone is written");
}

sub has_no_copy {
    my ($zone, $when) = @_;
    my $mark = $t->log_mark;

    is(state_of($zone), 'damaged', "zone $zone is damaged $when");

    my $r = is_error(image($zone), 409, qr/damaged.*"lost_at"/,
                     "no image is made of zone $zone $when");
    is($r->json->{error}{code}, 'damaged', 'the refusal has its code');
    like($t->log_since($mark), qr/\[error\].*"$zone".*damaged zone/,
         'the log says why');
    is($t->head("/bloom/zones/$zone/image")->status, 409,
       'HEAD is refused as well');
    is(files("$state/$zone/snapshot.*"), 0, 'no file is written');
}

sub restart {
    my (@lost) = @_;

    $t->stop;
    set_control("$state/$_/control", @lost) for @zones;
    $t->run;
}

for my $zone (@zones) {
    add($t, $zone, ['id1', 'before']);
    is(image($zone)->status, 200, "an image is made of zone $zone");
}


# The loss is a fact of the control page alone; the journal has no trace of it.

subtest 'keys are lost' => sub {
    unlink files("$state/$_/snapshot.*") for @zones;
    restart(lost => 1000 * (time - 7200));

    for my $zone (@zones) {
        has_no_copy($zone, 'after the loss');
        add($t, $zone, ['behind']);
        checkpoint($zone);
    }

    $t->kill_all;
    $t->run;

    for my $zone (@zones) {
        cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 20,
               "zone $zone starts from its checkpoint");
        is(ask($t, $zone, 'before', 'behind', 'no'), '11?',
           "zone $zone still does not know which keys are absent");
        has_no_copy($zone, 'after a start from its checkpoint');
    }
};


subtest 'a damaged zone writes checkpoints without a request' => sub {
    my $position = sub {
        return join ' ', map { /\.([0-9a-f]{16})\.bloom$/ }
                             files("$state/seen/checkpoint.*");
    };
    my $before = $position->();

    for my $n (1 .. 17) {
        my $body = join '', map { "$n-$_-" . 'x' x 60_000 . "\n" } 1 .. 70;

        is(api($t, POST => 'zones/seen/keys', body => $body)->status, 200,
           "keys are added ($n)");
    }

    ok(wait_until(sub { $position->() gt $before }),
       'the helper writes a checkpoint');
    is(state_of('seen'), 'damaged', 'the zone is still damaged');
};


subtest 'an image is made again once the zone is repaired' => sub {
    is(upload_image($t, 'ids', 'later')->status, 200,
       'an image is uploaded that has the lost keys');
    is(state_of('ids'), 'serving', 'the zone is repaired');

    my $image = image('ids');
    is($image->status, 200, 'an image is made');
    is(api($t, PUT => 'zones/copy/image', body => $image->body)->status, 200,
       'another zone takes it');
    is(ask($t, 'copy', 'id1', 'later', 'behind', 'no'), '1110',
       'the image is whole');

    is(api($t, POST => 'zones/seen/clear')->status, 200,
       'the other zone is cleared');
    is(image('seen')->status, 200, 'an image is made of it');
};


# The control page has no loss: the zone lacks the keys of the upload.

subtest 'an upload cannot be loaded' => sub {
    $t->stop;
    truncate $_, 5000 for files("$state/ids/upload.*.bloom");
    $t->expect_log(qr/\[alert\].*upload\.\w+\.bloom".*is truncated/);
    $t->run;

    is(control("$state/ids/control")->{lost} / 1000 < time - 3600, 1,
       'no new loss is recorded');
    has_no_copy('ids', 'without its upload');

    is(upload_image($t, 'ids', 'later')->status, 200,
       'the image is uploaded again');
    is(image('ids')->status, 200, 'an image is made again');
};


# A start finds the damage, and records the loss before a checkpoint hides it.

subtest 'the journal is damaged' => sub {
    add($t, 'seen', ['first']);
    add($t, 'seen', ['second']);
    $t->stop;

    my ($segment) = files("$state/seen/journal.*");
    my $journal = $t->read_file($segment =~ s{.*/state/}{state/}r);
    my $at = rindex($journal, 'first');

    cmp_ok($at, '>', 0, 'the record of a key is found');
    flip($segment, $at);
    $t->run;
    has_no_copy('seen', 'with a damaged journal');
    is(ask($t, 'seen', 'first', 'second'), '?1', 'the damaged key is unknown');

    checkpoint('seen');
    $t->kill_all;
    $t->run;
    is(ask($t, 'seen', 'first', 'second'), '?1',
       'the damaged key is unknown after a start from a checkpoint');
    has_no_copy('seen', 'after a start from a checkpoint');

    is(api($t, POST => 'zones/seen/clear')->status, 200, 'the zone is cleared');
};


# Each instance has written an image lately.  Then a process that is stopped
# holds the lock of one of them, which owes a key.

subtest 'another instance owes a key' => sub {
    $faults->needed;

    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %token;

    ok(wait_until(sub {
        my $r = image('ids');
        $token{$r->header('ETag')}++ if $r->status == 200;
        return keys %token == 2;
    }), 'both instances make images');

    my $stop = $faults->stop_at('locked');
    my $c = $t->connect;
    $c->send($t->request_text(GET => '/add/ids?k=stopped'));
    my $worker = $faults->stopped($stop);

    my $owed = 0;
    wait_until(sub {
        $t->get('/add/ids?k=owed' . $owed++);
        return zone_state($t, 'ids')->{journal}{owing_workers};
    }) or die 'no worker owes a key';

    my %status;
    $status{image('ids')->status}++ for 1 .. 20;
    is_deeply([sort keys %status], [503],
              'no instance sends an image without the key');

    resume_process($worker);
    ok(wait_until(sub { !zone_state($t, 'ids')->{journal}{owing_workers} }),
       'the key is written when the process goes on');
    ok(wait_until(sub {
        my $r = image('ids');
        return 0 if $r->status != 200;
        $token{$r->header('ETag')}++;
        return !grep { $token{$_} < 2 } keys %token;
    }), 'both instances make images again');

    $t->upgrade_finish;
};

done_testing;
