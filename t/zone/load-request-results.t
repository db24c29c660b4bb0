#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The answer to an upload is the result of that very upload, or that the result
# is unknown.  The answer to a reload is the result of a load that began after
# the request, however late the worker reads it.  The test stops the worker
# while another worker serves other requests.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(wait_until stop_process resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $faults = BloomTest::Faults->new($t);

$t->build_image('good.bloom', ['one'], '-p', '1e-9');
my $good = $t->read_file('good.bloom');
flip("$dir/good.bloom", -1);
my $bad = $t->read_file('good.bloom');

sub install {
    my ($image) = @_;

    replace_file($t, 'ids.bloom', $image);
}

install($good);
configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
$t->run;

my $prefix = '/bloom/zones/ids';
my $helper = $t->helper;
my ($slow, $quick) = $t->workers;


# Sends a request to the slow worker, and lets the helper begin only when that
# worker is stopped.  Until then no other worker runs.  The worker has read the
# request when it has answered later ones.

sub ask_slow {
    my ($method, $path, $body) = @_;

    stop_process($helper);
    stop_process($quick);

    my $c = $t->connect;
    $c->send($t->request_text($method, "$prefix/$path", body => $body));

    $t->get('/ids?k=one') for 1 .. 2;
    is(request(PUT => 'image', $bad)->status, 409,
       'another upload is refused while a request is under way');

    stop_process($slow);
    resume_process($quick);
    resume_process($helper);

    return $c;
}

sub request { return api($t, $_[0], "zones/ids/$_[1]", body => $_[2]) }

# Uploads an image, once no other upload is under way.

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


for my $case ([$bad, 422, 'a damaged image'], [$good, 200, 'a good image']) {
    my ($image, $its, $name) = @$case;

    subtest "$name is uploaded by a slow worker" => sub {
        my $before = generation($t, 'ids');
        my $c = slow_upload($image);

        wait_until(sub { request(POST => 'reload')->status == 200 })
            or die 'the upload never ends';
        is(request(POST => 'checkpoint')->status, 200,
           'a checkpoint later succeeds');
        resume_process($slow);

        my $r = $c->response;
        is($r->status, $its, "the upload of $name gets status $its");
        is($r->json->{generation}, $before + ($its == 200),
           'the upload is answered with its own generation');
    };
}


# Two uploads are two images: the result of the second says nothing about the
# first.

for my $case ([$bad, 'damaged', $good, 200, 'good'],
              [$good, 'good', $bad, 422, 'damaged'])
{
    my ($first, $name, $second, $other, $other_name) = @$case;

    subtest "a $name image is uploaded before a $other_name one" => sub {
        my $c = slow_upload($first);

        is(upload($second)->status, $other,
           "the later upload of a $other_name image gets status $other");
        resume_process($slow);

        is_error($c->response, 503, qr/no longer known.*state/,
                 "the upload of a $name image is not answered with the result"
                 . " of a $other_name one");
        is(ask_until_known($t, 'ids', 'one', 'no'), '10',
           'the good image serves');
    };
}


# A reload loads the file as it is when the load begins, so any load that began
# later answers the request.

subtest 'a file is reloaded before a damaged one' => sub {
    my $before = generation($t, 'ids');
    my $c = ask_slow(POST => 'reload');

    wait_until(sub { generation($t, 'ids') > $before })
        or die 'the first load never ends';

    install($bad);
    is(request(POST => 'reload')->status, 422,
       'a later reload of a damaged file is refused');
    resume_process($slow);
    is($c->response->status, 422,
       'the first reload is answered with the last load, which was refused');

    install($good);
    $c = ask_slow(POST => 'reload');
    is(request(POST => 'reload')->status, 200,
       'a reload of a good file succeeds');
    resume_process($slow);
    is($c->response->status, 200,
       'a reload by a slow worker gets the result of a load that began later');
};


# A worker holds a lock while it reads a result.

subtest 'a worker stops while it reads a result' => sub {
    $faults->needed;

    stop_process($quick);

    my $stop = $faults->stop_at('result');
    my $c = $t->connect;
    $c->send($t->request_text(PUT => "$prefix/image", body => $bad));
    is($faults->stopped($stop), $slow, 'a worker stops at "result"');
    resume_process($quick);

    is_error(request(PUT => 'image', $good), 409, qr/being loaded/,
             'another upload is refused meanwhile');
    is(request(POST => 'keys?durable=true', "two\n")->status, 200,
       'the helper synchronises the journal meanwhile');

    resume_process($slow);
    is($c->response->status, 422, 'the upload gets its own result');
    is(upload($good)->status, 200, 'the next upload succeeds');
};


done_testing;
