#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An uploaded image serves through restarts and reloads of nginx, until file= is
# another image or a client reloads file= by the endpoint.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image("$_.bloom", ['id1', $_], '-p', '1e-9')
    for qw(one two three);

sub upload {
    my ($image) = @_;

    is(upload_image($t, 'ids', $image)->status, 200,
       "image $image is uploaded");
}

sub serves {
    my ($image, $when) = @_;

    my $want = join '', map { $_ eq $image ? 1 : 0 } qw(one two three);

    is(ask_until_known($t, 'ids', qw(one two three id1 added)), "${want}11",
       "image $image serves $when");
}

install_image($t, 'one');
configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
$t->run;
add($t, 'ids', ['added']);
serves('one', 'after the start');


subtest 'an uploaded image stays' => sub {
    upload('two');
    serves('two', 'as soon as it is uploaded');

    $t->reload;
    serves('two', 'after HUP');
    $t->kill_worker;
    serves('two', 'after the death of a worker');
    $t->stop;
    $t->run;
    serves('two', 'after a restart');
    $t->kill_all;
    $t->run;
    serves('two', 'after kill -9 of all processes');
    $t->upgrade;
    serves('two', 'after an upgrade');

    # a copy of a file is the same image

    replace_file($t, 'ids.bloom', $t->read_file('one.bloom'));
    $t->reload;
    serves('two', 'after file= was replaced by a copy of itself');

    upload('three');
    serves('three', 'in place of an earlier upload');
    $t->kill_all;
    $t->run;
    serves('three', 'after kill -9 of all processes');
};


subtest 'file= becomes another image' => sub {
    install_image($t, 'two');
    $t->reload;
    ok(wait_until(sub { ask_until_known($t, 'ids', 'two', 'three') eq '10' }),
       'a reload of nginx loads the new file=');
    serves('two', 'after the reload of nginx');
    $t->kill_all;
    $t->run;
    serves('two', 'after a restart');

    # an upload that replaced one image of file= does not replace another one,
    # and does not come back for the first

    install_image($t, 'one');
    $t->stop;
    $t->run;
    serves('one', 'after a restart with the first file= again');

    upload('three');
    $t->kill_all;
    install_image($t, 'two');
    $t->run;
    serves('two', 'if it became file= while nginx was down');
};


subtest 'the endpoint is asked to reload file=' => sub {
    upload('three');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the endpoint reloads file=');
    serves('two', 'after the reload by the endpoint');
    $t->kill_all;
    $t->run;
    serves('two', 'after a restart');
};


subtest 'an uploaded image is damaged on disk' => sub {
    upload('three');
    $t->kill_all;
    my @files = glob "$dir/state/ids/upload.*.bloom";
    is(scalar @files, 1, 'the state directory has one uploaded image');
    flip($files[0], -1);
    my $mark = $t->log_mark;

    # the upload was acknowledged, so nginx has to say what serves instead

    my $started = eval { $t->run; 1 };

    if ($started) {
        is(ask($t, 'ids', qw(two one three id1 added no)), '1??11?',
           'file= serves without the damaged upload, other keys are unknown');
        $t->expect_log(qr/\[alert\].*upload.* is damaged/);
        like($t->log_since($mark), qr/\[(?:alert|error|warn|crit)\].*upload/,
             'the log reports the damaged upload');

    } else {
        like($@, qr/\[emerg\].*upload/,
             'the refused start names the damaged upload');
        $t->expect_log(qr/\[emerg\].*upload/);
        unlink $files[0];
        $t->run;
        serves('two', 'without the damaged upload');
    }
};


# A zone that starts empty has no file= to fall back to.

subtest 'an image is uploaded to a zone without file=' => sub {
    $t->stop;
    configure($t, ['zone=seen:1m capacity=1k fpr=1e-9'], api => 1);
    $t->run;
    add($t, 'seen', ['s1']);
    is(upload_image($t, 'seen', 'two')->status, 200,
       'an image is uploaded to a zone without file=');
    is(ask_until_known($t, 'seen', 'two', 's1', 'one'), '110',
       'the uploaded image serves with the key added before');
    $t->reload;
    is(ask_until_known($t, 'seen', 'two', 's1', 'one'), '110',
       'the uploaded image serves after HUP');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', 'two', 's1', 'one'), '110',
       'the uploaded image serves after kill -9 of all processes');
};


done_testing;
