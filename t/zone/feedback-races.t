#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A false positive is excepted while the same key is added, by this instance or
# another: processes are stopped or killed at each step.  An added key is
# present whoever is first.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until stop_process resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', [keys_of('id', 1000)], '-p', '1e-2', '--seed', 1);

my @false = false_positives($t, 'ids', 200);
my %excepted;

sub begin {
    my (%option) = @_;

    my $removals = $option{removals} // 1000;

    $t->stop;
    system 'rm', '-rf', "$dir/state";

    configure($t, ["zone=ids file=ids.bloom removals=$removals"],
              api => 1, add => 1, workers => 3, server => <<'CONF');
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

    $t->run;
    await_feedback($t, 'ids', '/of/ids?id=', $false[0]);
}

feedback_backend($t, 8081);

# Sends a request and returns its connection.

sub begun {
    my ($method, $path, %option) = @_;

    my $connection = $t->connect($option{port});
    $connection->send($t->request_text($method, $path, %option));

    return $connection;
}

sub post {
    my ($key, %option) = @_;

    return begun(POST => '/bloom/zones/ids/keys', body => "$key\n", %option);
}

sub except { return begun(GET => "/of/ids?id=$_[0]", @_[1 .. $#_]) }

# Sends a request until a worker answers that is not stopped.  Returns whether
# its response has a status.

sub answered {
    my ($status, $request) = @_;

    my $response = response($request);

    return $response && $response->status == $status;
}

# Returns that response, or undef.

sub response {
    my ($request) = @_;

    for (1 .. 20) {
        my $response = eval {
            local $SIG{ALRM} = sub { die "no answer\n" };
            alarm 2;
            my $got = $request->()->response('GET');
            alarm 0;
            $got;
        };

        return $response if $response && $response->status;
    }

    return;
}

# Returns the answer of a worker that is not stopped.

sub answer {
    my ($key) = @_;

    my $response = response(sub { begun(GET => "/ids?k=$key") }) or return '?';

    return $response->body =~ /^([01])/ ? $1 : '?';
}

# Returns the answers of an instance, by its port, as soon as they are known.

sub known {
    my ($port, @keys) = @_;

    my $answers;

    wait_until(sub {
        $answers = join '', map {
            $t->request(GET => "/ids?k=$_", port => $port)->body =~ /^([01])/
                ? $1 : '?'
        } @keys;
        return $answers !~ /\?/;
    });

    return $answers;
}

sub is_present {
    my ($name, @keys) = @_;

    is(join(' ', map { known(8080, @keys) } 1 .. 6),
       join(' ', ('1' x @keys) x 6), $name);
}

$t->expect_log(qr/exited on signal 9/);

subtest 'a worker stops or dies while it excepts' => sub {
    begin();

    for my $how (qw(stop kill)) {
        my ($posted, $added, $later, $removed) = splice @false, 1, 4;
        my $pid;

        if ($how eq 'stop') {
            my $stop = $faults->stop_at('adapt');
            my $excepter = except($posted);
            $pid = $faults->stopped($stop);

        } else {
            $faults->kill_at('adapt');
            is(except($posted)->response('GET')->status, 0, 'a worker is killed');
            wait_until(sub { $t->workers >= 3 });
        }

        # another worker has to answer

        for my $key ($posted, $added) {
            my $path = $key eq $posted ? undef : "/add/ids?k=$key";

            ok(answered(200, sub { $path ? begun(GET => $path) : post($key) }),
               "$how: a key is added");
        }

        resume_process($pid) if $pid;

        is_present("$how: the keys are present", $posted, $added);

        ok(wait_until(sub {
            $t->get("/of/ids?id=$later");
            return known(8080, $later) eq '0';
        }), "$how: excepting goes on");

        is(api($t, POST => 'zones/ids/remove', body => $posted)->status, 200,
           "$how: a key can be removed");
        is(known(8080, $posted), '0', "$how: and is absent");
    }
};

# At the first two places the key is not remembered yet, so it is excepted, and
# the addition has to end that.  At the others it is remembered.

subtest 'a worker stops while it adds' => sub {
    begin();

    my %excepts = (puts => 1, remember => 1, set => 0, append => 0, lifted => 0);

    for my $place (qw(puts remember set append lifted)) {
        for my $end (qw(resume kill)) {
            my ($key) = splice @false, 1, 1;

            my $stop = $faults->stop_at($place);
            my $adder = post($key);
            my $pid = $faults->stopped($stop);

            ok(answered(404, sub { except($key) }),
               "$place: the backend does not know the key");
            is(answer($key), $excepts{$place} ? '0' : '1',
               "$place: it is " . ($excepts{$place} ? '' : 'not ') . 'excepted');

            if ($end eq 'resume') {
                resume_process($pid);
                is($adder->response('POST')->status, 200,
                   "$place: the key is added");

            } else {
                kill 'KILL', $pid;
                wait_until(sub { $t->workers >= 3
                                 && !grep { $_ == $pid } $t->workers });
                add($t, 'ids', [$key]);
            }

            is_present("$place, $end: the key is present", $key);
        }
    }
};

# The journal's lock is held, so the worker sets the bits, tries the lock, and
# sets them again when the key is pending.  Or the disk is full, so the key is
# pending first.

subtest 'a worker stops while its key becomes pending' => sub {
    my %excepts = (lock => { puts => 1, remember => 1, pending => 0 },
                  disk => { pending => 1, puts => 1, remember => 1, set => 0 });

    for my $why (sort keys %excepts) {
        begin();

        for my $place (sort keys %{ $excepts{$why} }) {
            my ($key, $late, $other) = splice @false, 1, 3;
            my ($holder, $posted);
            my $excepts = $excepts{$why}{$place};

            if ($why eq 'lock') {
                my $stop = $faults->stop_at('lifted');
                $posted = post($other);
                $holder = $faults->stopped($stop);

            } else {
                $disk->refuse('ENOSPC', qw(write grow allocate));
                ok(wait_until(sub { !answered(200, sub { post($other) }) }),
                   "$why, $place: the journal takes no key");
            }

            my $stop = $faults->stop_at($place);
            my $adder = begun(GET => "/add/ids?k=$key");
            my $pid = $faults->stopped($stop);

            ok(answered(404, sub { except($key) }),
               "$why, $place: the backend does not know the key");
            is(answer($key), $excepts ? '0' : '1',
               "$why, $place: it is " . ($excepts ? '' : 'not ') . 'excepted');
            resume_process($pid);
            is($adder->response('GET')->status, 200,
               "$why, $place: the key is pending");
            is(answer($key), '1', "$why, $place: it is present");

            if ($why eq 'disk') {
                my $connection = answers_late($t, "/of/ids?id=$late", $place);

                $t->get("/add/ids?k=$late");
                let_answer($t, $connection, $place);
                is(known(8080, $late), '1',
                   "$place: a pending key is present after a late response");
                $disk->allow;

            } else {
                resume_process($holder);
                is($posted->response('POST')->status, 200,
                   "$why, $place: the journal is free again");
            }

            ok(wait_until(sub {
                $t->request(POST => '/bloom/zones/ids/keys?durable=true',
                            body => "$other\n")->status == 200
            }), "$why, $place: the journal has the keys");
            is_present("$why, $place: the key is present", $key);
        }
    }

    # the worker dies, so only the helper, which appends the key, remembers it

    my ($key, $other) = splice @false, 1, 2;

    $disk->refuse('ENOSPC', qw(write grow allocate));
    ok(wait_until(sub { !answered(200, sub { post($other) }) }),
       'the journal takes no key');
    $faults->kill_at('puts');
    is(begun(GET => "/add/ids?k=$key")->response('GET')->status, 0,
       'a worker is killed when its key is pending');
    $disk->allow;
    ok(wait_until(sub {
        $t->request(POST => '/bloom/zones/ids/keys?durable=true',
                    body => "$other\n")->status == 200
    }), 'the journal has the key');
    is(except($key)->response('GET')->status, 404,
       'the backend does not know the key');
    is_present('the key is present', $key);
};


# Two instances: after upgrade_begin, the old one at port 8080 and the new one at
# port 8090.

sub begin_two {
    begin(@_);

    my $conf = $t->read_file('nginx.conf');
    my ($old, $new) = map { $t->port($_) } 8080, 8090;

    $t->write_file('nginx.conf', $conf =~ s/127.0.0.1:$old/127.0.0.1:$new/r);

    my $master = $t->master;
    my $helper = $t->helper($master);

    my $second = $t->upgrade_begin;

    wait_until(sub {
        $t->get("/of/ids?id=$false[1]", port => 8090);
        return $t->request(GET => '/bloom/zones/ids', port => 8090)
                 ->json->{removals}{count};
    });

    return ($helper, $t->helper($second));
}

sub end_two { $t->upgrade_back; $t->kill_all; }

subtest 'a helper stops while it applies a key of another instance' => sub {
    for my $place (qw(remember caught)) {
        begin_two();

        my ($key, $late) = splice @false, 2, 2;
        my $connection = answers_late($t, "/of/ids?id=$late", "apply$place");

        # the worker that adds the key gets to "remember", too

        my $stop = $faults->stop_at($place);
        my $adder = post($key, port => 8090);

        if ($place eq 'remember') {
            my $worker = $faults->stopped($stop);
            $stop = $faults->stop_at($place);
            resume_process($worker);
        }

        is($adder->response('POST')->status, 200,
           "$place: another instance adds a key");
        my $helper = $faults->stopped($stop);

        is(except($key)->response('GET')->status, 404,
           "$place: the backend does not know the key");
        resume_process($helper);
        is_present("$place: the key is present", $key);

        is(post($late, port => 8090)->response('POST')->status, 200,
           "$place: another instance adds a key during a request");
        is_present("$place: it is present", $late);
        let_answer($t, $connection, "apply$place");
        is_present("$place: also after a late response", $late);

        end_two();
    }
};

subtest 'a load keeps no key that another instance has added' => sub {
    begin_two();

    my ($key, $kept) = splice @false, 2, 2;

    $t->get("/of/ids?id=$_") for $key, $kept;
    is(known(8080, $key, $kept), '00', 'two keys are excepted');

    my $stop = $faults->stop_at('load');
    my $loads = begun(POST => '/bloom/zones/ids/reload');
    my $helper = $faults->stopped($stop);

    is(post($key, port => 8090)->response('POST')->status, 200,
       'another instance adds a key during the load');
    resume_process($helper);
    is($loads->response('POST')->status, 200, 'the load ends');
    is(known(8080, $kept), '0', 'the other key is kept');
    is_present('the added key is present', $key);

    end_two();
};

# The load stops before it copies the first excepted keys, when it has copied
# some, and when it has copied all.  At the last place it holds the journal's
# lock.

subtest 'keys are added while a load keeps excepted ones' => sub {
    begin_two(removals => 30_000);

    my @own = splice @false, 2, 6;
    my @other = splice @false, 2, 6;
    my ($pending, $kept) = splice @false, 2, 2;
    my @all = (@own, @other, $pending, $kept);

    $t->pipeline(map { "/of/ids?id=$_" } @all);
    is(known(8080, @all), '0' x @all, 'keys are excepted');

    my $stop = $faults->stop_at('keep');
    my $loads = begun(POST => '/bloom/zones/ids/reload');

    for my $step (1 .. 3) {
        my $helper = $faults->stopped($stop);
        my @added = (splice(@own, 0, 2), splice(@other, 0, 2));

        is(post("$added[0]\n$added[1]")->response('POST')->status, 200,
           "step $step: this instance adds keys");
        is(known(8080, @added[0, 1]), '11', "step $step: they are present");
        is(post("$added[2]\n$added[3]", port => 8090)
           ->response('POST')->status, 200,
           "step $step: the other instance adds keys");

        $stop = $faults->stop_at($step < 3 ? 'keep' : 'switch');
        resume_process($helper);
    }

    my $helper = $faults->stopped($stop);
    is(begun(GET => "/add/ids?k=$pending")->response('GET')->status, 200,
       'a key becomes pending');
    is(known(8080, $pending), '1', 'it is present');
    resume_process($helper);

    is($loads->response('POST')->status, 200, 'the load ends');
    is(known(8080, $kept), '0', 'a key that nobody added is kept');
    is_present('the added keys are present', @all[0 .. $#all - 1]);

    end_two();
};

subtest 'a helper appends a pending key of another instance' => sub {
    my (undef, $second) = begin_two();
    my ($key, $other) = splice @false, 2, 2;

    my $connection = answers_late($t, "/of/ids?id=$key", 'pending');

    stop_process($second);

    my $stop = $faults->stop_at('lifted');
    my $adder = post($other);
    my $pid = $faults->stopped($stop);

    is(begun(GET => "/add/ids?k=$key", port => 8090)->response('GET')->status,
       200, 'a key is pending');

    resume_process($pid);
    is($adder->response('POST')->status, 200, 'another key is added');
    is_present('both are present', $key, $other);

    let_answer($t, $connection, 'pending');
    is_present('also after a late response', $key, $other);

    resume_process($second);
    end_two();
};

subtest 'removed keys of another instance get the room of excepted ones' => sub {
    begin_two(removals => 20);

    $t->pipeline(map { "/of/ids?id=$_" } @false[2 .. 30]);
    is(excepted($t, 'ids'), 10, 'one instance excepts keys');

    my $mark = $t->log_mark;
    my @gone = keys_of('id', 19);

    is(begun(POST => '/bloom/zones/ids/remove', port => 8090,
             body => join "\n", @gone)->response('POST')->status, 200,
       'the other one removes keys');
    ok(wait_until(sub { known(8080, @gone) eq '0' x 19 }),
       'they become absent from both');
    unlike($t->log_since($mark), qr/\[alert\]/, 'nothing alarming is logged');

    end_two();
};

done_testing;
