#!/usr/bin/perl

# Loads while keys are added: by the endpoint, by watch=, by HUP and by upload,
# each keeps what was added before, meanwhile and after.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 100);

# images of several sizes and seeds, each with a key of its own, and with room
# for what is going to be added

my %size = (small => 50_000, large => 400_000, middle => 150_000);

for my $name (sort keys %size) {
    $t->build_image("$name.bloom", [@ids, "$name-own"], '-p', '1e-9', '-n',
                    $size{$name});
}

sub install {
    my ($image) = @_;

    unlink "$dir/new";
    link "$dir/$image.bloom", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/ids.bloom" or die "rename: $!";
}

sub serves {
    my ($image, $what) = @_;

    my @names = sort keys %size;
    my $want = join '', map { $_ eq $image ? 1 : 0 } @names;

    ok(wait_until(sub {
        return sure($t, 'ids', map { "$_-own" } @names) eq $want;
    }), "$what: $image serves");
}


install('small');
configure($t, ['zone=ids:8m file=ids.bloom watch=50ms'], api => 1, add => 1,
          workers => 2);
$t->run;


# What the zone answers about each key, on a connection each: a worker that
# ends does not take another request of one that it has.

sub known {
    return join '', map {
        my ($known) = $t->get("/ids?k=$_")->body =~ /^([01]?) of/
            or die "no answer about $_\n";
        length $known ? $known : '?';
    } @_;
}


# Adds keys one after another until it is told to stop; asks for each at once,
# for one of the others and for one of the image.  Reports what it has seen
# absent.

sub client {
    my ($name) = @_;

    open my $stderr, '>&', \*STDERR or die "stderr: $!";

    return spawn(sub {
        my (@added, @lost);
        my $unsure = 0;

        until (-e "$dir/enough") {
            my $n = @added + 1;
            my $key = "$name-$n";

            if ($n % 3) {
                add($t, 'ids', [$key], durable => $n % 3 == 1);
            } else {
                $t->get("/add/ids?k=$key");
            }
            push @added, $key;

            my $answers = known($key, $added[rand @added], 'id7');
            push @lost, "$key: $answers" if $answers =~ /0/;
            $unsure++ if $answers =~ /\?/;

            $t->write_file("$name.begun", '') if $n == 20;
        }

        my $answers = sure($t, 'ids', @added, @ids);
        push @lost, 'at the end' if $answers =~ /[^1]/;
        $t->write_file("$name.result",
                       join "\n", scalar(@added), $unsure, @lost);
    }, stderr => $stderr);
}

my @clients = map { client("client$_") } 1, 2;
$t->waitforfile("client$_.begun") for 1, 2;


subtest 'by the endpoint' => sub {
    for my $image (qw(large small middle)) {
        install($image);
        is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');
        serves($image, 'the endpoint');
    }
};

subtest 'by watch=' => sub {
    for my $image (qw(small large middle)) {
        install($image);
        serves($image, 'a file that was replaced');
    }

    # what is no good is reported once, and not loaded

    my $mark = $t->log_mark;
    $t->write_file('bad', 'no image');
    rename "$dir/bad", "$dir/ids.bloom" or die "rename: $!";
    $t->wait_for_log(qr/ids\.bloom.*is not a Bloom filter image/, $mark);
    serves('middle', 'a damaged file');
    my $count = () = $t->log_since($mark) =~ /is not a Bloom filter image/g;
    cmp_ok($count, '<=', 2, 'it is not reported for ever');

    unlink "$dir/ids.bloom";
    serves('middle', 'a missing file');
    install('large');
    serves('large', 'a good one after it');
};

subtest 'by HUP' => sub {
    for my $image (qw(small large middle)) {
        install($image);
        $t->reload;
        serves($image, 'HUP');
    }
};

subtest 'by upload' => sub {
    for my $image (qw(large middle small)) {
        is(api($t, PUT => 'zones/ids/image',
               body => $t->read_file("$image.bloom"))->status, 200, 'upload');
        serves($image, 'the upload');
    }
};

subtest 'with checkpoints and images in between' => sub {
    for my $image (qw(large small)) {
        is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'checkpoint');
        install($image);
        is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');
        is(api($t, GET => 'zones/ids/image')->status, 200, 'image');
        serves($image, 'the endpoint');
    }
};


subtest 'the clients' => sub {
    $t->write_file('enough', '');
    ok(wait_until(sub { !grep { alive($_) } @clients }, 60), 'end');

    for (1, 2) {
        my ($added, $unsure, @lost)
            = split /\n/, $t->read_file("client$_.result");
        cmp_ok($added, '>=', 20, "client $_ has added keys");
        is(scalar @lost, 0, 'and lost none') or diag("such as $lost[0]");
        is($unsure, 0, 'nor was the zone ever unsure');
    }
};


subtest 'when all is over' => sub {
    my @added = map {
        my $n = $_;
        my ($count) = split /\n/, $t->read_file("client$n.result");
        map { "client$n-$_" } 1 .. $count;
    } 1, 2;

    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', @ids, @added), '1' x (@ids + @added),
       'all are there after a restart');
};


done_testing;
