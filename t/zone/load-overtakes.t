#!/usr/bin/perl

# A key is added while another image comes to serve, at each moment that
# matters: whoever adds or loads is stopped there, and the other one goes on.
# Once a key is acknowledged, no worker finds it absent.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
    unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

my $dir = $t->testdir;

# of whoever stops: it removes the file
mkdir "$dir/faults" or die "mkdir: $!";
chmod 0777, "$dir/faults";
my $fault = "$dir/faults/next";

$t->environment(NGX_BLOOM_FAULT_FILE => $fault);

my $disk = BloomTest::Disk->new($t, 'state');

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2);
$t->run;


# The process that comes to a place next, or for the time-th time, stops there,
# or dies.

sub stop_at {
    my ($place, $time, $how) = @_;

    $t->write_file('fault.tmp',
                   join(' ', $place, $time // 1, $how // 'stop') . "\n");
    rename "$dir/fault.tmp", $fault or die "rename: $!";

    return { place => $place, mark => $t->log_mark };
}

# Waits until one has, and returns which.

sub stopped {
    my ($stop) = @_;

    my $line = $t->wait_for_log(qr/fault injected at "$stop->{place}"/,
                                $stop->{mark});
    my ($pid) = $line =~ / (\d+)#\d+: / or die "no process in: $line";

    wait_until(sub {
        open my $stat, '<', "/proc/$pid/stat" or die "process $pid: $!";
        return <$stat> =~ /\) T /;
    }) or die "process $pid does not stop";

    return $pid;
}

sub go_on {
    my ($pid) = @_;

    kill 'CONT', $pid or die "kill: $!";
}

# Something that is asked for and not waited for.

sub ask_for {
    my ($method, $uri, $body) = @_;

    my $c = $t->connect;
    $c->send($t->request_text($method, $uri, body => $body));

    return $c;
}

sub done {
    my ($c, $name) = @_;

    is($c->response->status, 200, $name);
}

my %add = (
    'the endpoint' => sub { ask_for(POST => '/bloom/zones/ids/keys', $_[0]) },
    'bloom_add' => sub { ask_for(GET => "/add/ids?k=$_[0]") },
);

sub reload { return ask_for(POST => '/bloom/zones/ids/reload') }


# Whoever adds has set its bits, and has asked, or not, which generation serves.

for my $place (qw(set append)) {
    for my $how (sort keys %add) {
        subtest "$how is overtaken at \"$place\"" => sub {
            my $before = generation($t, 'ids');
            my $key = "$place-$before";

            my $stop = stop_at($place);
            my $added = $add{$how}->($key);
            my $worker = stopped($stop);

            another_image($t);
            done(reload(), 'another image is loaded meanwhile');
            is(generation($t, 'ids'), $before + 1, 'and serves');

            go_on($worker);
            done($added, 'the key is acknowledged');
            is(ask($t, 'ids', $key, 'id1', 'no'), '110', 'and there');
        };
    }
}


# Whoever loads holds the journal: a key of bloom_add is kept, and the endpoint
# waits.

for my $place (qw(switch switched served)) {
    subtest "a load is overtaken at \"$place\"" => sub {
        my $before = generation($t, 'ids');
        my $stop = stop_at($place);
        another_image($t);
        my $reloaded = reload();
        my $helper = stopped($stop);

        done($add{bloom_add}->("kept-$place"), 'a key is kept');
        my $waits = $add{'the endpoint'}->("waits-$place");
        is(ask($t, 'ids', "kept-$place", 'id1', 'no'), '110', 'and there');

        if ($place eq 'switch') {
            $stop = stop_at('switched');
            go_on($helper);
            is(stopped($stop), $helper, 'the other image serves');
            is(ask($t, 'ids', "kept-$place", 'id1', 'no'), '110',
               'with the key that was kept');
        }

        go_on($helper);
        done($reloaded, 'the image is loaded');
        done($waits, 'another key is added then');
        is(generation($t, 'ids'), $before + 1, 'another generation');
        is(ask($t, 'ids', "kept-$place", "waits-$place", 'id1', 'no'), '1110',
           'with both keys');
    };
}

subtest 'a key that is kept is set in what serves by then' => sub {
    my $stop = stop_at('switch');
    another_image($t);
    my $reloaded = reload();
    my $helper = stopped($stop);

    # The load has looked at what was kept, and this comes after it.  It is set
    # once before the journal is found locked, and again when it is kept.

    $stop = stop_at('set', 2);
    my $added = $add{bloom_add}->('late');
    my $worker = stopped($stop);

    # now the other image serves, and what was kept is not looked at again yet

    $stop = stop_at('switched');
    go_on($helper);
    is(stopped($stop), $helper, 'the load is at its next step');
    go_on($worker);
    done($added, 'the key is acknowledged');
    is(ask($t, 'ids', 'late', 'id1', 'no'), '110', 'and there at once');

    go_on($helper);
    done($reloaded, 'the image is loaded');
    is(ask($t, 'ids', 'late', 'id1', 'no'), '110', 'and then');
};


subtest 'a key that was kept before' => sub {
    $disk->refuse('ENOSPC', qw(open write grow rename));
    done($add{bloom_add}->('before'), 'the disk is full: a key is kept');
    cmp_ok(zone_state($t, 'ids')->{journal}{pending_keys}, '>', 0, 'and waits');

    my $stop = stop_at('switched');
    another_image($t);
    my $reloaded = reload();
    my $helper = stopped($stop);
    is(ask($t, 'ids', 'before', 'id1', 'no'), '110',
       'it is in another image as soon as that serves');

    go_on($helper);
    done($reloaded, 'the image is loaded');
    $disk->allow;
};


# Who keeps a key and who lets another image serve do so one after the other.

subtest 'a load that finds what is kept locked' => sub {
    my $before = generation($t, 'ids');

    $disk->refuse('ENOSPC', qw(open write grow rename));
    my $stop = stop_at('keep');
    my $added = $add{bloom_add}->('locked');
    my $worker = stopped($stop);

    another_image($t);
    my $reloaded = reload()->response;
    is($reloaded->status, 503, 'cannot be');
    like($reloaded->body, qr/busy with additions; try again/, 'and says so');
    $t->expect_log(qr/busy with additions; try again/);
    is(generation($t, 'ids'), $before, 'what served goes on');

    go_on($worker);
    done($added, 'the key is acknowledged');
    done(reload(), 'now it can');
    is(ask($t, 'ids', 'locked', 'id1', 'no'), '110', 'and has the key');
    $disk->allow;
};


for my $place (qw(switch held turned switched)) {
    subtest "the death of who loads at \"$place\"" => sub {
        my $before = generation($t, 'ids');

        $disk->refuse('ENOSPC', qw(open write grow rename));
        my $stop = stop_at('switch');
        another_image($t);
        my $reloaded = reload();
        my $helper = stopped($stop);
        done($add{bloom_add}->("dies-$place"), 'a key is kept');

        if ($place eq 'switch') {
            kill 'KILL', $helper or die "kill: $!";

        } else {
            stop_at($place, 1, 'kill');
            go_on($helper);
        }

        $t->wait_for_log(qr/ $helper exited on signal 9/, $stop->{mark});
        is(ask($t, 'ids', "dies-$place", 'id1', 'no'), '110',
           'in whatever serves then');
        done($add{bloom_add}->("next-$place"), 'another key is kept');

        done($reloaded, 'the next loads the image');
        cmp_ok(generation($t, 'ids'), '>', $before, 'another generation');
        is(ask($t, 'ids', "dies-$place", "next-$place", 'id1', 'no'), '1110',
           'with both keys');
        $disk->allow;
    };
}

$t->expect_log(qr/exited on signal 9/);


subtest 'all of them, after the death of everything' => sub {
    my @keys = ('late', 'before', 'locked',
                (map { ("kept-$_", "waits-$_") } qw(switch switched served)),
                map { ("dies-$_", "next-$_") } qw(switch held turned switched));

    wait_until(sub { zone_state($t, 'ids')->{journal}{pending_keys} == 0 })
        or die 'what is kept does not come into the journal';
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', @keys, 'no'), '1' x @keys . '0', 'are there');
};


# Who loads is held up where others have to wait, for longer than they may.

subtest 'a key that cannot be kept during a switch' => sub {
    my $stop = stop_at('held');
    another_image($t);
    my $reloaded = reload();
    my $helper = stopped($stop);

    $t->expect_log(qr/\[alert\].*has no room left for keys/);
    done($add{bloom_add}->('gone'), 'is acknowledged');
    unlike(ask($t, 'ids', 'gone'), qr/0/, 'and not absent');

    $stop = stop_at('turned');
    go_on($helper);
    is(stopped($stop), $helper, 'the other image serves');
    is(ask($t, 'ids', 'gone', 'id1', 'no'), '?1?', 'and cannot tell');

    go_on($helper);
    done($reloaded, 'the image is loaded');
    is(ask($t, 'ids', 'gone', 'id1', 'no'), '?1?', 'it still cannot tell');
};


done_testing();
