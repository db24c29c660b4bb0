#!/usr/bin/perl

# Whoever asks the helper for something is told what came of that, and of
# nothing else, however late its worker comes to look: it stands still while
# others ask another worker for the same.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $faults = $t->nginx_build =~ /NGX_BLOOM_FAULTS/;
my $fault = "$dir/faults/next";

if ($faults) {

    # of whoever stops: it removes the file

    mkdir "$dir/faults" or die "mkdir: $!";
    chmod 0777, "$dir/faults";
    $t->environment(NGX_BLOOM_FAULT_FILE => $fault);
}

$t->build_image('good.bloom', ['one'], '-p', '1e-9');
my $good = $t->read_file('good.bloom');
flip("$dir/good.bloom", -1);
my $bad = $t->read_file('good.bloom');

sub install {
    my ($image) = @_;

    $t->write_file('new.bloom', $image);
    rename "$dir/new.bloom", "$dir/ids.bloom" or die "rename: $!";
}

install($good);
configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
$t->run;

my $prefix = '/bloom/zones/ids';
my ($helper) = $t->helpers;
my ($slow, $quick) = $t->workers;


sub stands_still {
    my ($pid) = @_;

    wait_until(sub {
        open my $stat, '<', "/proc/$pid/stat" or die "process $pid: $!";
        return <$stat> =~ /\) T /;
    }) or die "process $pid does not stop";
}

sub halt {
    my ($pid) = @_;

    kill 'STOP', $pid or die "kill: $!";
    stands_still($pid);
}

sub go_on {
    my ($pid) = @_;

    kill 'CONT', $pid or die "kill: $!";
}

# Asks the slow worker, and has the helper begin only when that stands still.
# Until then nobody else is there to answer; and whoever asks later is answered
# later.

sub ask_slow {
    my ($method, $path, $body) = @_;

    halt($helper);
    halt($quick);

    my $c = $t->connect;
    $c->send($t->request_text($method, "$prefix/$path", body => $body));

    $t->get('/ids?k=one') for 1 .. 2;
    is(request(PUT => 'image', $bad)->status, 409, 'it has been asked for');

    halt($slow);
    go_on($quick);
    go_on($helper);

    return $c;
}

sub request { return api($t, $_[0], "zones/ids/$_[1]", body => $_[2]) }

# An upload, once there is no other.

sub upload {
    my ($image) = @_;
    my $response;

    wait_until(sub {
        $response = request(PUT => 'image', $image);
        return $response->status != 409;
    }) or die 'an upload never ends';

    return $response;
}

sub slow_upload { return ask_slow(PUT => 'image', $_[0]) }


for my $case ([$bad, 422, $good, 200, 'a damaged one'],
              [$good, 200, $bad, 422, 'a good one'])
{
    my ($first, $its, $second, $other, $name) = @$case;

    subtest "an upload of $name" => sub {
        my $before = generation($t, 'ids');
        my $c = slow_upload($first);

        is(upload($second)->status, $other, 'the other image');
        go_on($slow);

        my $r = $c->response;
        is($r->status, $its, 'and this one');
        is($r->json->{generation}, $before + ($its == 200),
           'with its own generation');
        is(sure($t, 'ids', 'one', 'no'), '10', 'the good one serves');
    };
}


# Whoever asks while the first load runs may join it: the file is another one
# for sure when the first has ended.

subtest 'a reload' => sub {
    my $before = generation($t, 'ids');
    my $c = ask_slow(POST => 'reload');

    wait_until(sub { generation($t, 'ids') > $before })
        or die 'the first load never ends';

    install($bad);
    is(request(POST => 'reload')->status, 422, 'of another file');
    go_on($slow);
    is($c->response->status, 200, 'and of the one before');

    install($good);
    is(request(POST => 'reload')->status, 200, 'and of a good one again');
};


subtest 'of a few others' => sub {
    my $c = slow_upload($bad);

    is(upload($good)->status, 200, "the other $_") for 1 .. 6;
    go_on($slow);
    is($c->response->status, 422, 'it is known what came of the first');
};


subtest 'of many others' => sub {
    for my $image ($bad, $good) {
        my $c = slow_upload($image);

        is(upload($good)->status, 200, "the other $_") for 1 .. 20;
        go_on($slow);
        is_error($c->response, 503, qr/not known any more.*state/,
                 'nothing is known any more of the first, good or not');
    }
};


# The worker has found the result and not read it when it is written over.

subtest 'read while it is written' => sub {
    plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
        unless $faults;

    for my $others (1, 20) {
        my $mark = $t->log_mark;

        halt($quick);

        $t->write_file('fault.tmp', "result 1 stop\n");
        rename "$dir/fault.tmp", $fault or die "rename: $!";

        my $c = $t->connect;
        $c->send($t->request_text(PUT => "$prefix/image", body => $bad));
        $t->wait_for_log(qr/fault injected at "result"/, $mark);
        stands_still($slow);

        go_on($quick);
        is(upload($good)->status, 200, "the other $_") for 1 .. $others;
        go_on($slow);

        if ($others == 1) {
            is($c->response->status, 422, 'what came of the first');

        } else {
            is_error($c->response, 503, qr/not known any more/,
                     'it is not taken for what came of another');
        }
    }
};


done_testing;
