#!/usr/bin/perl

# A request for a reload or an upload is answered with its own result, however
# late its worker reads it.  The test stops that worker while other requests go
# to another worker.

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
my ($helper) = $t->helpers;
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


for my $case ([$bad, 422, $good, 200, 'damaged', 'good'],
              [$good, 200, $bad, 422, 'good', 'damaged'])
{
    my ($first, $its, $second, $other, $name, $other_name) = @$case;

    subtest "a $name image is uploaded before a $other_name one" => sub {
        my $before = generation($t, 'ids');
        my $c = slow_upload($first);

        is(upload($second)->status, $other,
           "the later upload of a $other_name image gets status $other");
        resume_process($slow);

        my $r = $c->response;
        is($r->status, $its,
           "the first upload, of a $name image, gets status $its");
        is($r->json->{generation}, $before + ($its == 200),
           'the first upload is answered with its own generation');
        is(ask_until_known($t, 'ids', 'one', 'no'), '10', 'the good image serves');
    };
}


# A request for a reload during another one may join that: the file is replaced
# when the first load has ended.

subtest 'a file is reloaded before a damaged one' => sub {
    my $before = generation($t, 'ids');
    my $c = ask_slow(POST => 'reload');

    wait_until(sub { generation($t, 'ids') > $before })
        or die 'the first load never ends';

    install($bad);
    is(request(POST => 'reload')->status, 422,
       'a later reload of a damaged file is refused');
    resume_process($slow);
    is($c->response->status, 200,
       'the first reload, of a good file, succeeds');

    install($good);
    is(request(POST => 'reload')->status, 200,
       'a third reload, of a good file, succeeds');
};


subtest 'a few images are uploaded later' => sub {
    my $c = slow_upload($bad);

    is(upload($good)->status, 200, "later upload $_ succeeds") for 1 .. 6;
    resume_process($slow);
    is($c->response->status, 422,
       'the first upload is answered with its own result after 6 others');
};


subtest 'many images are uploaded later' => sub {
    for my $image ($bad, $good) {
        my $c = slow_upload($image);

        is(upload($good)->status, 200, "later upload $_ succeeds")
            for 1 .. 20;
        resume_process($slow);
        is_error($c->response, 503, qr/not known any more.*state/,
                 'the result of the first upload is gone after 20 others');
    }
};


# The worker has found its result, and has not read it when later ones overwrite
# it.

subtest 'a result is overwritten while it is read' => sub {
    $faults->needed;

    for my $others (1, 20) {
        stop_process($quick);

        my $stop = $faults->stop_at('result');
        my $c = $t->connect;
        $c->send($t->request_text(PUT => "$prefix/image", body => $bad));
        $faults->stopped($stop);

        resume_process($quick);
        is(upload($good)->status, 200, "later upload $_ of $others succeeds")
            for 1 .. $others;
        resume_process($slow);

        if ($others == 1) {
            is($c->response->status, 422,
               'the first upload gets its own result after 1 other');

        } else {
            is_error($c->response, 503, qr/not known any more/,
                     'an overwritten result is not taken for another one');
        }
    }
};


done_testing;
