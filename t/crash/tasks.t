#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# If a helper dies during a task, the task has failed, and no later helper
# repeats it.  A helper that nginx tells to exit hands its task on to the next
# one. deaths.t tests that the client is told, and that no file is left.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(alive children resume_process wait_until);
use BloomTest::Source qw(changes is_applied position);
use BloomTest::Writes;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $faults = BloomTest::Faults->new($t);
my $writes = BloomTest::Writes->new($t);
$faults->needed;

# bytes of the journal after which an unrequested checkpoint is written

$t->environment(NGX_BLOOM_FAULT_CHECKPOINT => 100_000);
$t->expect_log(qr/exited on signal 9/);

small_pages(1);

use constant KEYS => 3_000_000;    # an image has some chunks

for my $seed (1, 2) {
    $t->build_image("$seed.bloom", [keys_of('id', 10), "image$seed"],
                    '-p', '1e-9', '-n', KEYS, '--seed', $seed);
}

$t->build_image('other.bloom', ['other0']);

sub install { install_image($t, $_[0]) }

sub conf {
    my ($watch) = @_;

    configure($t, ["zone=ids file=ids.bloom$watch",
                   'zone=other file=other.bloom watch=50ms',
                   'zone=seen capacity=1k fpr=1e-3'],
              api => 1, workers => 2);
}

sub present { return ask_until_known($t, 'ids', qw(image1 image2 id1 no)) }

sub serves {
    my ($number, $name) = @_;

    is(present(), $number == 1 ? '1010' : '0110', $name);
}

sub deaths {
    my ($mark) = @_;

    return scalar(() = $t->log_since($mark) =~ /exited on signal 9/g);
}


# Returns when the helper has looked after both zones several times.  The image
# that it loads meanwhile takes few steps.

my $other = 0;

sub helper_goes_on {
    my ($name) = @_;

    for (1 .. 3) {
        my $key = 'other' . ++$other;
        $t->build_image('other.bloom', [$key]);
        wait_until(sub { scalar(ask($t, 'other', $key)) eq '1' })
            or return fail($name);
    }

    pass($name);
}

# Returns how much memory the zone, which has room for two images, uses.

sub zone_bytes {
    my $size = -s "$dir/1.bloom";
    my ($zone) = grep { $_->{size} > 2 * $size && $_->{size} < 3 * $size }
                      zone_memory($t->master);

    return $zone ? $zone->{resident} : undef;
}

sub left_over { return files("$state/*.tmp") }


install(1);
conf('');
$t->run;


subtest 'a helper dies while it loads file=' => sub {

    # the idle bank is empty then

    is(api($t, POST => 'zones/ids/reload')->status, 200, 'an image is loaded');
    my $bytes = zone_bytes();
    my $before = generation($t, 'ids');
    my $mark = $t->log_mark;

    install(2);
    $faults->kill_all_at('load', 14);
    is_error(api($t, POST => 'zones/ids/reload'), 503,
             qr/its file died on signal 9, .*memory was short: see the system's log/,
             'the endpoint says that the process died');

    helper_goes_on('the next helper does its other work');
    is(deaths($mark), 1, 'no other process dies');
    is(generation($t, 'ids'), $before, 'the image is not loaded again');
    serves(1, 'the old image serves on');
    like($t->log_since($mark),
         qr/\[error\].* died.*continues with generation $before\b/,
         'the log says what happened');

    my $load = zone_state($t, 'ids')->{load};
    is($load->{result}, 'failed', 'the state of the zone says so, too');
    ok(!$load->{in_progress}, 'no load is in progress');

    SKIP: {
        defined $bytes or skip 'not allowed to look into /proc/PID/map_files',
                               1;
        cmp_ok(zone_bytes(), '<', $bytes + 1_000_000,
               'the half-filled bank is given back');
    }

    $faults->withdraw;
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image is loaded at another request');
    serves(2, 'the new image serves then');
};


subtest 'a helper dies after the switch to another image' => sub {
    my $before = generation($t, 'ids');
    my $mark = $t->log_mark;

    $faults->kill_at('switched');
    is_error(upload_image($t, 'ids', '2'), 503,
             qr/died.*the image serves, but a restart may bring the previous image back/,
             'the endpoint says that the image serves until a restart');
    helper_goes_on('the next helper does its other work');
    is(deaths($mark), 1, 'no other process dies');
    is(generation($t, 'ids'), $before + 1, 'the next generation serves');
    serves(2, 'the image serves that the helper had loaded');

    is(upload_image($t, 'ids', '2')->status, 200,
       'the same image is uploaded again');
    $t->kill_all;
    $t->run;
    serves(2, 'the image serves after a restart');
};


# The journal was synchronised before the addition.

subtest 'a key is added when a checkpoint begins' => sub {
    add($t, 'seen', ['before'], durable => 1);
    $writes->begin;

    my $stop = $faults->stop_at('prepared');
    my $c = $t->connect;

    $c->send($t->request_text(POST => '/bloom/zones/seen/checkpoint'));

    my $helper = $faults->stopped($stop);

    add($t, 'seen', ['during']);
    resume_process($helper);
    is($c->response->status, 200, 'the checkpoint is written');

    my $order = join ' ', map {
        my ($file) = $_->{path} =~ m{/seen/(journal|base)};
        $file && $_->{what} =~ /^(?:write|sync)$/ ? "$file:$_->{what}" : ();
    } $writes->calls;

    $writes->end;
    like($order, qr/journal:write journal:sync (?:.* )?base:write base:sync/,
         'its record is on disk before the checkpoint counts');
};


# The entry of base is on disk, and does not count yet.  The next helper removes
# files that the entry before it does not name.

subtest 'a helper dies before an upload counts' => sub {
    $t->build_image('up.bloom', ['up']);
    is(upload_image($t, 'seen', 'up')->status, 200, 'an image is uploaded');
    is(api($t, POST => 'zones/seen/clear')->status, 200, 'the zone is cleared');

    my $mark = $t->log_mark;

    $faults->kill_at('slot');
    is_error(upload_image($t, 'seen', 'up'), 503, qr/died/,
             'the endpoint says that the process died');
    ok(!$faults->pending, 'the entry was written');
    helper_goes_on('the next helper does its other work');
    is(deaths($mark), 1, 'no other process dies');
    $t->kill_all;
    $t->run;
    is(zone_state($t, 'seen')->{state}, 'serving', 'a start misses no image');
    is(scalar(ask($t, 'seen', 'up')), '0', 'the zone is as before the upload');
};


subtest 'a helper dies at an unrequested checkpoint' => sub {
    my $mark = $t->log_mark;

    $faults->kill_at('rename');
    add($t, 'seen', [map { "$_-" . 'x' x 200 } 1 .. 600]);
    ok(wait_until(sub { !$faults->pending }), 'a checkpoint begins');
    $t->wait_for_log(qr/exited on signal 9/, $mark);

    helper_goes_on('the next helper does its other work');
    is(deaths($mark), 1, 'no other process dies');
    is(scalar files("$dir/state/seen/*.tmp"), 0,
       'no part of the checkpoint is left');
    is(scalar files("$dir/state/seen/checkpoint.*"), 0,
       'the checkpoint is not repeated at once');
    is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
       'a checkpoint is written on request');
};


subtest 'a helper dies while it loads a watched file' => sub {
    $t->stop;
    install(1);
    conf(' watch=50ms');
    $t->run;

    my $mark = $t->log_mark;

    $faults->kill_all_at('load', 14);
    install(2);
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    helper_goes_on('the next helper looks at the files');
    is(deaths($mark), 1, 'no other process dies of the file');
    is(generation($t, 'ids'), 1, 'the file is not loaded again');
    serves(1, 'the old image serves on');

    $faults->withdraw;
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the file is loaded on request');
    serves(2, 'the new image serves then');

    $faults->kill_at('load', 3);
    $mark = $t->log_mark;
    install(1);
    $t->wait_for_log(qr/was loading its file died/, $mark);
    helper_goes_on('the next helper looks at the files');

    replace_file($t, 'ids.bloom', $t->read_file('1.bloom'));
    ok(wait_until(sub { present() eq '1010' }),
       'the file is loaded when it has changed');
};


# The helper is told to exit while its job is stopped in the middle of a load.

subtest 'a helper exits while it loads' => sub {
    my $before = generation($t, 'ids');
    my $stop = $faults->stop_at('load', 3);
    my $c = $t->connect;
    $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                              body => $t->read_file('2.bloom')));
    my $job = $faults->stopped($stop);
    my $helper = $t->helper;

    kill 'QUIT', $helper or die "kill: $!";
    ok(wait_until(sub { !alive($helper) }), 'the helper exits when it is told');
    ok(wait_until(sub { !alive($job) }), 'its job ends with it');

    is($c->response->status, 200, 'the request succeeds');
    is(generation($t, 'ids'), $before + 1, 'the image is loaded once');
    serves(2, 'the image serves');

    my ($line) = $t->log_since($stop->{mark})
                 =~ /^(.* serves generation .*)$/m;
    unlike($line, qr/ $job#/, 'another helper has loaded it');
    ok(wait_until(sub { !left_over() }), 'no part of the image is left');
};


# The helper of the new instance, at port 8090, has read the journal up to its
# end when the zone is cleared again.

subtest 'another instance applies a clear when the next one comes' => sub {
    my ($old, $new) = map { '127.0.0.1:' . $t->port($_) } 8080, 8090;
    my $conf = $t->read_file('nginx.conf');

    add($t, 'seen', ['before']);
    $t->write_file('nginx.conf', $conf =~ s/\Q$old\E/$new/r);

    my $master = $t->upgrade_begin;
    my $stop = $faults->stop_at('replayed');

    is(api($t, POST => 'zones/seen/clear')->status, 200, 'the zone is cleared');

    my $job = $faults->stopped($stop);

    is(join(' ', map { children($_) } $t->helpers($master)), $job,
       'a job of the new instance applies the clear');
    add($t, 'seen', ['between']);
    is(api($t, POST => 'zones/seen/clear')->status, 200,
       'the zone is cleared again');
    add($t, 'seen', ['after']);
    resume_process($job);

    my $expected = 'absent absent present';
    my $answers;

    wait_until(sub {
        $answers = join ' ', map {
            $t->request(GET => "/bloom/zones/seen/keys?key=$_", port => 8090)
                ->json->{answer};
        } qw(before between after);
        return $answers eq $expected;
    });
    is($answers, $expected,
       'the new instance has what was added since');
    $t->kill_all;
};


# Until the source has sent its changes again, the zone lacks them.

subtest 'a start completes the clear of a zone with a source' => sub {
    $t->kill_all if $t->master;
    $t->build_image('src.bloom', ['src0'], '--source', 's=1');
    configure($t, ['zone=src file=src.bloom;'
                   . ' bloom_source zone=src name=s max_lag=off'], api => 1);
    $t->run;
    is_applied(changes($t, 'src', 1, 2, '+added'), 2, 'a change is applied');

    my $stop = $faults->stop_at('published');
    my $c = $t->connect;

    $c->send($t->request_text(POST => '/bloom/zones/src/clear'));
    $faults->stopped($stop);
    $t->kill_all;
    $t->run;
    is(position($t, 'src'), 1, 'the zone is where its image is');
    is(ask($t, 'src', qw(src0 added)), '1?', 'no key is absent that it lacks');
    $t->kill_all;
    $t->run;
    is(ask($t, 'src', qw(src0 added)), '1?', 'nor after another start');
    is_applied(changes($t, 'src', 1, 2, '+added'), 2,
               'the change is applied again');
    is(ask_until_known($t, 'src', qw(src0 added never)), '110',
       'the zone knows all keys then');
};


done_testing;
