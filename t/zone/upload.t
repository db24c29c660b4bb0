#!/usr/bin/perl

# An upload stays the base until file= is another image or a reload asks for
# file=; over restarts and reloads of nginx.

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

sub install {
    my ($image) = @_;

    unlink "$dir/new";
    link "$dir/$image.bloom", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/ids.bloom" or die "rename: $!";
}

sub upload {
    my ($image) = @_;

    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file("$image.bloom"))->status, 200,
       "$image is uploaded");
}

sub serves {
    my ($image, $when) = @_;

    my $want = join '', map { $_ eq $image ? 1 : 0 } qw(one two three);

    is(sure($t, 'ids', qw(one two three id1 added)), "${want}11",
       "$when: $image serves");
}

install('one');
configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
$t->run;
add($t, 'ids', ['added']);
serves('one', 'at start');


subtest 'stays' => sub {
    upload('two');
    serves('two', 'at once');

    $t->reload;
    serves('two', 'after HUP');
    $t->kill_worker;
    serves('two', 'after the death of a worker');
    $t->stop;
    $t->run;
    serves('two', 'after a restart');
    $t->kill_all;
    $t->run;
    serves('two', 'after the death of everything');
    $t->upgrade;
    serves('two', 'after an upgrade');

    # the same image in another file is the same image

    $t->write_file('copy', $t->read_file('one.bloom'));
    rename "$dir/copy", "$dir/ids.bloom" or die "rename: $!";
    $t->reload;
    serves('two', 'after file= was copied');

    upload('three');
    serves('three', 'another upload');
    $t->kill_all;
    $t->run;
    serves('three', 'after a restart');
};


subtest 'until file= is another image' => sub {
    install('two');
    $t->reload;
    ok(wait_until(sub { sure($t, 'ids', 'two', 'three') eq '10' }),
       'a reload of nginx loads that');
    serves('two', 'then');
    $t->kill_all;
    $t->run;
    serves('two', 'after a restart');

    # an upload in place of one image is not used for another, nor again

    install('one');
    $t->stop;
    $t->run;
    serves('one', 'the first image, after a restart');

    upload('three');
    $t->kill_all;
    install('two');
    $t->run;
    serves('two', 'an image that came while nginx was down');
};


subtest 'until a reload asks for file=' => sub {
    upload('three');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');
    serves('two', 'after it');
    $t->kill_all;
    $t->run;
    serves('two', 'after a restart');
};


subtest 'one that is damaged on disk' => sub {
    upload('three');
    $t->kill_all;
    my @files = glob "$dir/state/ids/upload.*.bloom";
    is(scalar @files, 1, 'it is kept once');
    flip($files[0], -1);
    my $mark = $t->log_mark;

    # it was acknowledged: what serves instead has to be said

    my $started = eval { $t->run; 1 };

    if ($started) {
        is(ask($t, 'ids', qw(two one three id1 added no)), '1??11?',
           'file= instead, which may lack what the upload had');
        $t->expect_log(qr/\[alert\].*upload.* is damaged/);
        like($t->log_since($mark), qr/\[(?:alert|error|warn|crit)\].*upload/,
             'with a message');

    } else {
        like($@, qr/\[emerg\].*upload/, 'a start that is refused, with what'
                                        . ' is wrong');
        $t->expect_log(qr/\[emerg\].*upload/);
        unlink $files[0];
        $t->run;
        serves('two', 'without it');
    }
};


# A zone that starts empty has no file= to go back to.

subtest 'to a zone without file=' => sub {
    $t->stop;
    configure($t, ['zone=seen:1m capacity=1k fpr=1e-9'], api => 1);
    $t->run;
    add($t, 'seen', ['s1']);
    is(api($t, PUT => 'zones/seen/image',
           body => $t->read_file('two.bloom'))->status, 200, 'an upload');
    is(sure($t, 'seen', 'two', 's1', 'one'), '110', 'serves');
    $t->reload;
    is(sure($t, 'seen', 'two', 's1', 'one'), '110', 'after HUP');
    $t->kill_all;
    $t->run;
    is(sure($t, 'seen', 'two', 's1', 'one'), '110', 'after a restart');
};


done_testing;
