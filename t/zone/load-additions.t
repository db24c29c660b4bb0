#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A load keeps all keys that are added before it, during it and after it,
# whether the endpoint, watch=, HUP or an upload has caused it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 100);

# images of several sizes and hash keys, each with a key of its own, and with
# room for the keys that are going to be added

my %size = (small => 50_000, large => 400_000, middle => 150_000);

for my $name (sort keys %size) {
    $t->build_image("$name.bloom", [@ids, "$name-own"], '-p', '1e-9', '-n',
                    $size{$name});
}

sub serves {
    my ($image, $when) = @_;

    my @names = sort keys %size;
    my $want = join '', map { $_ eq $image ? 1 : 0 } @names;

    ok(wait_until(sub {
        return ask_until_known($t, 'ids', map { "$_-own" } @names) eq $want;
    }), "image $image serves $when");
}


install_image($t, 'small');
configure($t, ['zone=ids:8m file=ids.bloom watch=50ms'], api => 1, add => 1,
          workers => 2);
$t->run;


# What the zone answers about each key, each on a connection of its own: a
# worker that shuts down takes no further request on a connection that it has.

sub answers {
    return join '', map {
        my ($known) = $t->get("/ids?k=$_")->body =~ /^([01]?) of/
            or die "no answer about $_\n";
        length $known ? $known : '?';
    } @_;
}


# Adds keys one after another until it is told to stop.  After each it looks up
# that key, another added key and a key of the image, and reports those that
# were absent.

sub client {
    my ($name) = @_;

    open my $stderr, '>&', \*STDERR or die "stderr: $!";

    return spawn(sub {
        my (@added, @lost);
        my $unknown = 0;

        until (-e "$dir/enough") {
            my $n = @added + 1;
            my $key = "$name-$n";

            if ($n % 3) {
                add($t, 'ids', [$key], durable => $n % 3 == 1);
            } else {
                $t->get("/add/ids?k=$key");
            }
            push @added, $key;

            my $answers = answers($key, $added[rand @added], 'id7');
            push @lost, "$key: $answers" if $answers =~ /0/;
            $unknown++ if $answers =~ /\?/;

            $t->write_file("$name.begun", '') if $n == 20;
        }

        my $answers = ask_until_known($t, 'ids', @added, @ids);
        push @lost, 'at the end' if $answers =~ /[^1]/;
        $t->write_file("$name.result",
                       join "\n", scalar(@added), $unknown, @lost);
    }, stderr => $stderr);
}

my @clients = map { client("client$_") } 1, 2;
$t->waitforfile("client$_.begun") for 1, 2;


subtest 'the endpoint loads images' => sub {
    for my $image (qw(large small middle)) {
        install_image($t, $image);
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           "the endpoint loads image $image");
        serves($image, 'after a load by the endpoint');
    }
};

subtest 'the helper loads a watched file' => sub {
    for my $image (qw(small large middle)) {
        install_image($t, $image);
        serves($image, 'after the watched file was replaced');
    }

    # an invalid file is reported once and is not loaded

    my $mark = $t->log_mark;
    replace_file($t, 'ids.bloom', 'no image');
    $t->wait_for_log(qr/ids\.bloom.*is not a Bloom filter image/, $mark);
    serves('middle', 'while the watched file is damaged');
    my $count = () = $t->log_since($mark) =~ /is not a Bloom filter image/g;
    cmp_ok($count, '<=', 2,
           'a damaged watched file is not reported again and again');

    unlink "$dir/ids.bloom";
    serves('middle', 'while the watched file is missing');
    install_image($t, 'large');
    serves('large', 'after a good file has come back');
};

subtest 'a reload of nginx loads images' => sub {
    for my $image (qw(small large middle)) {
        install_image($t, $image);
        $t->reload;
        serves($image, 'after HUP');
    }
};

subtest 'images are uploaded' => sub {
    for my $image (qw(large middle small)) {
        is(upload_image($t, 'ids', $image)->status, 200,
           "image $image is uploaded");
        serves($image, 'after its upload');
    }
};

subtest 'images are loaded between checkpoints and downloads' => sub {
    for my $image (qw(large small)) {
        is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
           'a checkpoint is written');
        install_image($t, $image);
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           "image $image is loaded after a checkpoint");
        is(api($t, GET => 'zones/ids/image')->status, 200,
           'the image of the zone is downloaded');
        serves($image, 'after a checkpoint and a download');
    }
};


subtest 'the clients have found no key absent' => sub {
    $t->write_file('enough', '');
    ok(wait_until(sub { !grep { alive($_) } @clients }, 60),
       'the clients end');

    for (1, 2) {
        my ($added, $unknown, @lost)
            = split /\n/, $t->read_file("client$_.result");
        cmp_ok($added, '>=', 20, "client $_ has added at least 20 keys");
        is(scalar @lost, 0, "client $_ never found a key absent")
            or diag("for example $lost[0]");
        is($unknown, 0, "client $_ never got the answer unknown");
    }
};


subtest 'nginx is killed and started again' => sub {
    my @added = map {
        my $n = $_;
        my ($count) = split /\n/, $t->read_file("client$n.result");
        map { "client$n-$_" } 1 .. $count;
    } 1, 2;

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', @ids, @added), '1' x (@ids + @added),
       'all added keys are present after kill -9 of all processes');
};


done_testing;
