#!/usr/bin/perl

# Start: a zone is loaded before the first request can be answered, or nginx
# does not start.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 50);
my @others = keys_of('other', 50);
my ($all, $none) = ('1' x 50, '0' x 50);

my $image = $t->build_image('ids.bloom', \@ids, '-p', '1e-6');
$t->build_image('other.bloom', \@others, '-p', '1e-6', '--layout', 'classic');


subtest 'zones are full at the first request' => sub {
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=other:1m file=other.bloom',
                   'zone=twin file=ids.bloom'], workers => 2);
    $t->run;

    is(ask($t, 'ids', $ids[0]), '1', 'the very first request is decided');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'a zone sized by its file');
    is(ask($t, 'other', @ids, @others), "$none$all", 'a zone of a given size');
    is(ask($t, 'twin', @ids, @others), "$all$none",
       'another zone of the same file');

    my $log = $t->log_since(0);
    unlike($log, qr/\[warn\]/, 'nothing to warn of');
    unlike($log, qr/serves generation/, 'nothing is loaded after the start');

    my @open = grep { defined && /\.bloom/ }
               map { readlink } map { glob "/proc/$_/fd/*" }
                   $t->master, $t->workers;
    is("@open", '', 'no process keeps an image open');
    $t->stop;
};


subtest 'an image large enough to take its time' => sub {
    $t->build_image('large.bloom', \@ids, '-p', '1e-6', '-n', 10_000_000);
    configure($t, ['zone=ids file=large.bloom']);
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the first requests are decided');
    $t->stop;
};


subtest 'without a master' => sub {
    configure($t, ['zone=ids file=ids.bloom'], main => 'master_process off;');
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'the zone is loaded');
    $t->stop;
};


subtest 'zones that start empty' => sub {
    configure($t, ['zone=a capacity=1k fpr=0.001',
                   'zone=b:1m capacity=100k fpr=0.01 layout=classic',
                   'zone=c capacity=10k fpr=1e-6 hash=siphash']);
    $t->run;
    is(ask($t, $_, @ids), $none, "everything is absent in zone $_")
        for qw(a b c);
    $t->stop;
};


subtest 'names of files' => sub {
    mkdir "$dir/conf" or die "mkdir: $!";
    configure($t, ['zone=ids file=here.bloom']);
    rename "$dir/nginx.conf", "$dir/conf/nginx.conf" or die "rename: $!";

    my @test = ($t->{binary}, '-t', '-p', "$dir/", '-c', 'conf/nginx.conf',
                '-e', 'error.log');

    link $image, "$dir/here.bloom" or die "link: $!";
    my ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    is($exit, 1, 'a relative name is not looked up in the prefix');
    like($err, qr{"\Q$dir\E/conf/here\.bloom" .* cannot be opened},
         'but in the directory of nginx.conf');
    $t->expect_log(qr{conf/here\.bloom" .* cannot be opened});

    link $image, "$dir/conf/here.bloom" or die "link: $!";
    ($exit, $out, $err) = run_command(\@test, env => $t->{env});
    is($exit, 0, 'where it is found') or diag($err);

    mkdir "$dir/with space" or die "mkdir: $!";
    link $image, "$dir/with space/\xc3\xbc.bloom" or die "link: $!";
    symlink "$dir/with space/\xc3\xbc.bloom", "$dir/link" or die "symlink: $!";
    configure($t, ["zone=ids 'file=$dir/with space/\xc3\xbc.bloom'",
                   'zone=linked file=link']);
    $t->run;
    is(ask($t, 'ids', @ids), $all, 'a name with a space and an umlaut');
    is(ask($t, 'linked', @ids), $all, 'a symbolic link');
    $t->stop;
};


subtest 'no start with an image that is not whole' => sub {
    configure($t, ['zone=good file=ids.bloom', 'zone=ids file=bad.bloom']);

    like($t->run_fails,
         qr{\[emerg\]\ .*image\ "\Q$dir\E/bad\.bloom"\ of\ bloom\ zone\ "ids"
            \ cannot\ be\ opened\ \(2:.*\ in\ .*/nginx\.conf:\d+}x,
         'missing: file, zone, reason and line are named');

    my $good = $t->read_file('ids.bloom');
    (my $flipped = $good) =~ s/(.)\z/chr(ord($1) ^ 1)/es;

    for (['payload', $flipped, qr/is damaged: the checksum of bytes \d+ to/],
         ['truncated', substr($good, 0, -1), qr/is truncated/],
         ['empty', '', qr/is empty/],
         ['text', "id1\nid2\n", qr/is not a Bloom filter image/])
    {
        my ($name, $content, $reason) = @$_;

        $t->write_file('bad.bloom', $content);
        like($t->run_fails,
             qr{\[emerg\]\ .*image\ "\Q$dir\E/bad\.bloom"
                \ of\ bloom\ zone\ "ids"\ $reason}x,
             "$name: file, zone and reason are named");
    }

    $t->write_file('bad.bloom', $good);
    $t->run;
    is(ask($t, 'ids', @ids), $all, 'with the whole image it starts');
};


subtest 'again' => sub {
    $t->stop;
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'after a stop');

    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'after the death of everything');

    $t->stop;
    $t->build_image('bad.bloom', \@others);
    $t->run;
    is(ask($t, 'ids', @others), $all, 'with another image');
};


done_testing;
