#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx loads every zone before it answers the first request.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 50);
my @others = keys_of('other', 50);
my ($all, $none) = ('1' x 50, '0' x 50);

my $image = $t->build_image('ids.bloom', \@ids, '-p', '1e-6');
$t->build_image('other.bloom', \@others, '-p', '1e-6', '--layout', 'classic');


subtest 'zones are loaded before the first request' => sub {
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=other:1m file=other.bloom',
                   'zone=twin file=ids.bloom'], workers => 2);
    $t->run;

    is(ask($t, 'ids', $ids[0]), '1',
       'the very first request gets an answer from the image');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'a zone that is sized by its file answers');
    is(ask($t, 'other', @ids, @others), "$none$all",
       'a zone of a given size answers');
    is(ask($t, 'twin', @ids, @others), "$all$none",
       'a second zone with the same file answers');

    my $log = $t->log_since(0);
    unlike($log, qr/\[warn\]/, 'the start gives no warning');
    unlike($log, qr/serves generation/,
           'no other generation is loaded after the start');

    my @open = grep { defined && /\.bloom/ }
               map { readlink } map { glob "/proc/$_/fd/*" }
                   $t->master, $t->workers;
    is("@open", '', 'no process keeps an image open');
    $t->stop;
};


subtest 'an image takes a while to load' => sub {
    $t->build_image('large.bloom', \@ids, '-p', '1e-6', '-n', 10_000_000);
    configure($t, ['zone=ids file=large.bloom']);
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the first requests get answers from a large image');
    $t->stop;
};


subtest 'zones start empty' => sub {
    configure($t, ['zone=a capacity=1k fpr=0.001',
                   'zone=b:1m capacity=100k fpr=0.01 layout=classic',
                   'zone=c capacity=10k fpr=1e-6 hash=siphash']);
    $t->run;
    is(ask($t, $_, @ids), $none, "every key is absent in the empty zone $_")
        for qw(a b c);
    $t->stop;
};


subtest 'image files have various names' => sub {
    mkdir "$dir/conf" or die "mkdir: $!";
    configure($t, ['zone=ids file=here.bloom']);
    rename "$dir/nginx.conf", "$dir/conf/nginx.conf" or die "rename: $!";

    my @test = ($t->{binary}, '-t', '-p', "$dir/", '-c', 'conf/nginx.conf',
                '-e', 'error.log');

    link $image, "$dir/here.bloom" or die "link: $!";
    my ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    is($exit, 1, 'a file name relative to the prefix is not found');
    like($err, qr{"\Q$dir\E/conf/here\.bloom" .* cannot be opened},
         'a relative file name belongs to the directory of nginx.conf');
    $t->expect_log(qr{conf/here\.bloom" .* cannot be opened});

    link $image, "$dir/conf/here.bloom" or die "link: $!";
    ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    is($exit, 0,
       'a file name relative to the directory of nginx.conf is found')
       or diag($err);

    mkdir "$dir/with space" or die "mkdir: $!";
    link $image, "$dir/with space/\xc3\xbc.bloom" or die "link: $!";
    symlink "$dir/with space/\xc3\xbc.bloom", "$dir/link" or die "symlink: $!";
    configure($t, ["zone=ids 'file=$dir/with space/\xc3\xbc.bloom'",
                   'zone=linked file=link']);
    $t->run;
    is(ask($t, 'ids', @ids), $all,
       'a file whose name has a space and an umlaut is loaded');
    is(ask($t, 'linked', @ids), $all,
       'a file that is a symbolic link is loaded');
    $t->stop;
};


done_testing;
