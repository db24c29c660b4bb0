#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Ways to run nginx: nginx -T, stub_status, master_process off,
# daemon off under a process manager, and worker_shutdown_timeout.  Each keeps
# all acknowledged keys.

use strict;
use warnings;

use Digest::MD5;
use File::Find;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(
    spawn run_command time_limit wait_until alive title children
    adopt_session session_members stop_process resume_process
);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my @zones = ('zone=ids file=ids.bloom', 'zone=seen capacity=100k fpr=1e-9');
my $calls = 0;

$t->build_image("$_.bloom", ['id1', $_], '-p', '1e-9', '-n', '20k')
    for qw(one two three);
install_image($t, 'one');


sub new_keys {
    my ($count) = @_;

    $calls++;

    return map { "new$calls-$_" } 1 .. $count;
}


# Adds keys in every way and returns them.  They are acknowledged.

sub add_keys {
    my ($what) = @_;

    my @keys = new_keys(30);

    is($t->get("/add/seen?k=$_")->status, 200, "bloom_add adds a key: $what")
        for $keys[0];
    is_added(api($t, POST => 'zones/seen/keys', body => join "\n", @keys), 30,
             29, 1, 0, "POST keys adds keys: $what");
    is_added(api($t, POST => 'zones/seen/keys?durable=true',
                 body => "$keys[1]-durable"), 1, 1, 0, 1,
             "a key is added durably: $what");

    return (@keys, "$keys[1]-durable");
}

sub all_present {
    my ($what, @keys) = @_;

    is(ask_until_known($t, 'seen', @keys), '1' x @keys,
       "all acknowledged keys are present: $what");
}


# Loads images by a request and by an upload.

sub load_images {
    my ($what) = @_;

    install_image($t, 'two');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       "the endpoint loads an image: $what");
    is(ask($t, 'ids', qw(id1 one two three)), '1010',
       "the loaded image serves: $what");
    is(upload_image($t, 'ids', 'three')->status, 200,
       "an image is uploaded: $what");
    is(ask($t, 'ids', qw(id1 one two three)), '1001',
       "the uploaded image serves: $what");
    install_image($t, 'one');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       "the first image is loaded again: $what");
}


# Returns each file in the state directory with its inode, size, owner, mode,
# time of change and digest.

sub state_files {
    my @files;

    find({ no_chdir => 1, wanted => sub {
        my @stat = lstat or return;
        my $digest = '';

        if (-f _) {
            open my $fh, '<:raw', $_ or die "$_: $!";
            $digest = Digest::MD5->new->addfile($fh)->hexdigest;
        }

        push @files, join ' ', $_, @stat[1, 2, 4, 7, 9], $digest;
    } }, "$dir/state");

    return [sort @files];
}


sub dump_config {
    my $mark = $t->log_mark;
    my ($exit, $out, $err) = run_command(
        [$t->{binary}, '-p', "$dir/", '-c', 'nginx.conf', '-e', 'error.log',
         '-T'], env => $t->{env});

    $t->excuse_log($mark);

    return ($exit, $out, $err);
}


subtest 'nginx -T shows and tests a configuration' => sub {
    configure($t, \@zones, api => 1, add => 1);
    $t->run;

    my @keys = add_keys('before nginx -T');
    ok(settled($t, 'seen', sub { !$_[0]{journal}{unsynced_bytes} }),
       'the journal is on disk');

    # the helper writes its time into the state directory

    my $helper = $t->helper;
    stop_process($helper);
    my $before = state_files();

    configure($t, [@zones, 'zone=more capacity=10k fpr=0.01'], api => 1);
    my ($exit, $out, $err) = dump_config();
    is($exit, 0, 'nginx -T accepts another configuration');
    like($out, qr/^bloom_zone zone=more /m, 'nginx -T shows its zones');
    like($err, qr/test is successful/, 'nginx -T reports success');

    replace_file($t, 'ids.bloom', 'no image');
    ($exit, $out, $err) = dump_config();
    is($exit, 1, 'nginx -T refuses a file that is no image');
    like($err, qr/\[emerg\].*image .*ids\.bloom/, 'nginx -T names the file');

    is_deeply(state_files(), $before,
              'nginx -T changes nothing in the state directory');
    resume_process($helper);
    all_present('after nginx -T', @keys);
    install_image($t, 'one');
    $t->stop;
};


subtest 'stub_status stands beside rules and the endpoint' => sub {
    configure($t, \@zones, api => 1, add => 1, server => <<'CONF');
        location = /status {
            bloom_reject absent $arg_id zone=ids;
            bloom_add $arg_new zone=seen;
            stub_status;
        }
CONF
    $t->run;

    my $requests = sub {
        my $text = $t->get('/status?id=one')->body;
        return ($text =~ /^ \d+ (\d+) (\d+) /m)[1] // die $text;
    };

    my $before = $requests->();
    is($t->get('/status?id=none')->status, 404,
       'a rule rejects a request for stub_status');
    is(api($t, GET => 'zones')->status, 200, 'the endpoint answers');
    is($t->get('/status?id=one&new=counted')->status, 200,
       'a rule passes a request for stub_status');
    is($requests->() - $before, 4, 'stub_status counts each request once');
    is(ask($t, 'seen', 'counted'), '1', 'bloom_add adds a key');

    # the client of a request that waits for the disk counts as writing

    my $helper = $t->helper;
    stop_process($helper);
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/seen/keys?durable=true',
                              body => 'waits'));
    ok(wait_until(sub { ask($t, 'seen', 'waits') eq '1' }),
       'a request waits for the disk');
    like($t->get('/status?id=one')->body, qr/^Reading: 0 Writing: 2 /m,
         'stub_status counts a request that waits');
    $c->abort;
    resume_process($helper);
    ok(wait_until(sub {
        $t->get('/status?id=one')->body =~ /Reading: 0 Writing: 1 Waiting: 0/;
    }), 'stub_status does not count the request when it has ended');

    $t->stop;
};


subtest 'nginx runs without a master process' => sub {
    configure($t, \@zones, api => 1, add => 1,
              main => "master_process off;\ndaemon off;");
    $t->run;

    my @keys = add_keys('without a master');
    load_images('without a master');
    all_present('after loads', @keys);
    is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
       'a checkpoint is written without a master');
    is(api($t, GET => 'zones/ids/image')->status, 200,
       'the image of a zone is downloaded without a master');
    push @keys, add_keys('after a checkpoint');
    $t->get('/add/ids?k=added');
    is(upload_image($t, 'ids', 'three')->status, 200,
       'another image is uploaded without a master');

    $t->kill_all;
    $t->run;
    all_present('after kill -9 and a start without a master', @keys);
    is(ask_until_known($t, 'ids', qw(id1 one three added)), '1011',
       'the upload and an added key are present, too');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the first image is loaded again');
    push @keys, add_keys('after a start');

    $t->stop;
    $t->run;
    all_present('after a stop and a start without a master', @keys);
    $t->stop;

    configure($t, \@zones, api => 1, add => 1, workers => 2);
    $t->run;
    all_present('after a start with a master', @keys);
    $t->stop;
};


# Starts nginx in the foreground as a process manager does, and returns its
# master.

sub managed {
    unlink "$dir/nginx.pid";

    my $master = spawn([$t->{binary}, '-p', "$dir/", '-c', 'nginx.conf', '-e',
                        'error.log'], env => $t->{env});

    wait_until(sub {
        return eval { $t->get('/ids?k=id1')->status == 200 };
    }) or die 'nginx does not start';

    return $master;
}


# Waits for a process that this one has started, and returns its status.

sub status_of {
    my ($pid) = @_;

    local $SIG{ALRM} = sub { die "process $pid does not end\n" };
    alarm time_limit();
    waitpid $pid, 0;
    alarm 0;

    return $?;
}


subtest 'a process manager runs nginx in the foreground' => sub {
    my @keys;

    for my $mode ('daemon off;', "daemon off;\nmaster_process off;") {
        my $shown = $mode =~ tr/\n/ /r;
        configure($t, \@zones, api => 1, add => 1, main => $mode);

        for my $signal (qw(QUIT TERM INT)) {
            my $master = managed();

            is(title($master) =~ /^nginx: master/ ? 1 : 0,
               $mode =~ /master/ ? 0 : 1, "the manager has the process: $shown");
            push @keys, add_keys("$shown $signal");
            my @left = session_members($master);
            kill $signal, $master;
            is(status_of($master), 0, "nginx exits with status 0: $shown"
                                      . " $signal");
            ok(wait_until(sub { !grep { alive($_) } @left }),
               "no process is left: $shown $signal");
        }

        # the manager kills all processes, as systemd does with a service that
        # does not stop

        my $master = managed();
        push @keys, add_keys("$shown KILL");
        kill 'KILL', $master, session_members($master);
        is(status_of($master) & 127, 9, "all processes are killed: $shown");
        wait_until(sub { !session_members($master) });

        $master = managed();
        all_present("after each signal: $shown", @keys);

        # QUIT waits for a request, but not without a master process

        my ($body) = new_keys(1);
        my $c = $t->connect;
        $c->send("POST /bloom/zones/seen/keys?durable=true HTTP/1.1\r\n"
                 . "Host: localhost\r\nConnection: close\r\n"
                 . 'Content-Length: ' . length($body) . "\r\n\r\n");
        ask($t, 'ids', 'id1');
        kill 'QUIT', $master;
        wait_until(sub { !eval { $t->get('/ids?k=id1'); 1 } });
        $c->send($body);
        my $response = $c->response;
        $c->close;

        if ($mode =~ /master/) {
            is($response->status, 0, "a request is cut: $shown");

        } else {
            is_added($response, 1, 1, 0, 1,
                     "a request is answered while nginx stops: $shown");
            push @keys, $body;
        }

        is(status_of($master), 0, "nginx stops after the request: $shown");

        $master = managed();
        all_present("after a request during the stop: $shown", @keys);
        kill 'TERM', $master;
        status_of($master);
    }
};


# An old worker that has been told to exit closes its connections after the
# time, whatever they do.

subtest 'worker_shutdown_timeout ends requests' => sub {
    configure($t, \@zones, api => 1, add => 1,
              main => 'worker_shutdown_timeout 1s;');
    $t->run;

    my @keys = add_keys('before the reload');
    my $image = $t->read_file('two.bloom');
    my ($old) = $t->workers;

    my $upload = $t->connect;
    $upload->send("PUT /bloom/zones/ids/image HTTP/1.1\r\nHost: localhost\r\n"
                  . 'Content-Length: ' . length($image) . "\r\n\r\n"
                  . substr $image, 0, 8192);
    my $post = $t->connect;

    # more than a batch, so that it is added before the body ends

    my $begun = "whole\n" . "more\n" x 60_000 . 'cut';
    $post->send("POST /bloom/zones/seen/keys HTTP/1.1\r\nHost: localhost\r\n"
                . 'Content-Length: ' . (length($begun) + 100)
                . "\r\n\r\n$begun");
    ok(wait_until(sub { files("$dir/state/ids/body.*")
                        && ask($t, 'seen', 'whole') eq '1' }),
       'an upload and an addition have begun');

    $t->reload;
    ok(!alive($old), 'the old worker exits although requests are open');
    is($_->response->status, 0, 'the client of a request that was cut has no'
                                . ' response') for $upload, $post;
    ok(wait_until(sub { !files("$dir/state/ids/body.*") }),
       'no file of the upload is left');
    is(ask($t, 'ids', qw(id1 one two)), '110', 'the cut image is not loaded');
    is(join(' ', lookup_keys($t, 'seen', 'cut')), 'absent',
       'a key that was cut is not added');
    all_present('after requests that were cut', @keys, 'whole');
    push @keys, add_keys('after requests that were cut'), 'whole';

    # the helper does not synchronise, so the request waits, until the worker
    # exits, which may synchronise

    my $helper = $t->helper;
    ($old) = $t->workers;
    stop_process($helper);
    my $wait = $t->connect;
    $wait->send($t->request_text(POST => '/bloom/zones/seen/keys?durable=true',
                                 body => 'waits-for-disk'));
    ok(wait_until(sub { ask($t, 'seen', 'waits-for-disk') eq '1' }),
       'a request waits for the disk');
    kill 'QUIT', $t->master;
    ok(wait_until(sub { !alive($old) }),
       'the worker exits although the request waits');
    like($wait->response->status, qr/^(?:0|200)$/,
         'the request that waited is answered, or its connection is closed');
    resume_process($helper);
    ok($t->stop(told => 1), 'nginx stops');

    $t->run;
    all_present('after the stop', @keys, 'waits-for-disk');

    # a durable request during a reload

    $helper = $t->helper;
    ($old) = $t->workers;
    stop_process($helper);
    $wait = $t->connect;
    $wait->send($t->request_text(POST => '/bloom/zones/seen/keys?durable=true',
                                 body => 'waits-at-reload'));
    ok(wait_until(sub { ask($t, 'seen', 'waits-at-reload') eq '1' }),
       'a request waits for the disk again');
    kill 'HUP', $t->master;
    ok(wait_until(sub { !alive($old) }), 'the old worker exits');
    like($wait->response->status, qr/^(?:0|200)$/,
         'the next helper may have synchronised for the request');
    resume_process($helper);
    ok(wait_until(sub { !alive($helper) }), 'the old helper exits');
    all_present('after the reload', @keys, 'waits-at-reload');
    $t->kill_all;
    $t->run;
    all_present('after kill -9 and a start', @keys, 'waits-at-reload');
    $t->stop;
};


done_testing;
