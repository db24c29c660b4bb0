#!/usr/bin/perl

# Reload: an unchanged image costs nothing, a changed one is served as a
# whole and only once the whole configuration is accepted.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(spawn alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @both = keys_of('both', 40);
my @one = keys_of('one', 40);
my @two = keys_of('two', 40);
my ($all, $none) = ('1' x 40, '0' x 40);

# two images that differ in everything, and a third of the size of the first

$t->build_image('one.bloom', [@both, @one], '-p', '1e-7', '-n', 200_000);
$t->build_image('two.bloom', [@both, @two], '-p', '1e-6', '-n', 100_000,
                '--layout', 'classic', '--hash', 'siphash');

my $serves = qr/bloom zone "ids" serves generation (\d+)/;


# Puts a copy of an image in the place of the one that is configured, as one
# would: by rename.

sub install {
    my ($image, $name) = @_;

    $name //= 'ids.bloom';
    $t->write_file("$name.new", $t->read_file($image));
    rename "$dir/$name.new", "$dir/$name" or die "cannot rename: $!";
}

sub serves {
    my ($image, $what) = @_;

    is(ask($t, 'ids', @both, @one, @two),
       $all . ($image eq 'one' ? "$all$none" : "$none$all"), $what);
}


install('one.bloom');
configure($t, ['zone=ids file=ids.bloom'], workers => 2);
$t->run;
serves('one', 'the first image');


subtest 'an unchanged image' => sub {
    my $size = -s "$dir/ids.bloom";
    cmp_ok($size, '>', 800_000, 'is large enough to be seen');

    my $mark = $t->log_mark;
    my $before = bytes_read($t->master);
    $t->reload;
    my $read = bytes_read($t->master) - $before;

    cmp_ok($read, '<', $size / 10, 'is not read again');
    unlike($t->log_since($mark), qr/bloom zone/, 'nothing to tell');
    serves('one', 'it serves on');

    utime 1, 1, "$dir/ids.bloom" or die "cannot touch: $!";
    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '>=', $size,
           'once touched, it is verified');

    install('one.bloom');
    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '>=', $size,
           'and so is the same image in another file');

    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '<', $size / 10, 'once');

    unlike($t->log_since($mark), qr/bloom zone/, 'the zone is kept');
    serves('one', 'and serves on');
};


subtest 'a changed image' => sub {
    for my $generation (2 .. 5) {
        my $image = $generation % 2 ? 'one' : 'two';
        my $mark = $t->log_mark;

        install("$image.bloom");
        serves($image eq 'one' ? 'two' : 'one', 'is not served by itself');
        $t->reload;
        serves($image, 'serves after a reload');

        is(($t->log_since($mark) =~ $serves)[0], $generation,
           'and the log says so');
        unlike($t->log_since($mark), qr/changes from|\[warn\]/,
               'the memory is kept');
    }
};


subtest 'a busy worker of the old configuration' => sub {
    my @old = $t->workers;
    my $connection = $t->connect;
    $connection->send("GET /ids?k=one1 HTTP/1.1\r\n");

    # the worker has accepted when it has answered another request on the
    # same event loop; both do, so that it does not matter which it is

    my %seen;
    wait_until(sub {
        $seen{$_} = 1 for (ask($t, 'ids', 'one1'))[1 .. 1];
        return keys %seen == 2;
    }) or die 'not all workers answer';

    install('two.bloom');
    $t->reload(keep_old => 1);
    $connection->send("Host: localhost\r\nConnection: close\r\n\r\n");

    my ($known, $worker) = $connection->response->body =~ /^(.*) of (\d+)/;
    ok(scalar(grep { $_ == $worker } @old), 'answers still');
    is($known, '0', 'from the new image');
    serves('two', 'as do the new ones');
    ok(wait_until(sub { !grep { alive($_) } @old }), 'and goes');
};


subtest 'a configuration that is refused for another reason' => sub {
    install('two.bloom');
    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->reload;
    serves('two', 'before');
    install('one.bloom');

    # in the order in which nginx comes to them: as it is parsed, in a zone
    # behind ours, when it listens

    my %reason = (
        'a directive' =>
            [[], 'no_such_directive;', qr/unknown directive/],
        'another zone' =>
            [['zone=zz file=bad.bloom'], '', qr/checksum of bytes/],
        'a socket' =>
            [[], "server { listen unix:$dir/none/socket; }", qr/bind\(\)/],
    );

    $t->write_file('bad.bloom', $t->read_file('two.bloom'));
    flip("$dir/bad.bloom", -1);

    for (sort keys %reason) {
        my ($zones, $http, $message) = @{ $reason{$_} };

        my $mark = $t->log_mark;
        configure($t, ['zone=ids file=ids.bloom', @$zones], workers => 2,
                  http => $http);
        like($t->reload_fails, $message, "$_ is refused");
        serves('two', 'the old image serves on');
        unlike($t->log_since($mark), $serves, 'and no other');
    }

    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->reload;
    serves('one', 'the new image, once all is well');
};


# The keys of both images must never be absent, whichever serves when they are
# looked up.  Long keys make lookups so slow that images change under them.

subtest 'under load, from one whole image or the other' => sub {
    my ($long, $times) = ('x' x 1000, 400);
    my @long = map { $long x $times . $_ } 1 .. 4;

    $t->build_image("$_.long", [@long, keys_of($_, 40)], '-p', '1e-7',
                    '-n', $_ eq 'one' ? 200_000 : 100_000)
        for qw(one two);

    my $lookups = join '', map {
        "bloom_lookup '" . ('${long}' x $times) . "$_' \$long$_ zone=ids;\n"
    } 1 .. 4;

    $t->write_file('long.conf', <<"CONF");
map '' \$long { default $long; }
$lookups
server {
    listen 127.0.0.1:@{[$t->port(8081)]};
    location / { return 200 "@{[join ' ', map { "\$long$_" } (1 .. 4) x 4]}"; }
}
CONF

    install('one.long');
    configure($t, ['zone=ids file=ids.bloom'], workers => 2,
              http => "include $dir/long.conf;");
    $t->reload;
    is($t->get('/', port => 8081)->body, join(' ', (1) x 16), 'before');

    my @clients = map {
        my $name = "client-$_";
        spawn(sub {
            my ($good, @bad) = (0);

            until (-e "$dir/enough") {
                my $body = eval { $t->get('/', port => 8081)->body } // $@;
                $body =~ /^1(?: 1){15}$/ ? $good++ : push @bad, $body;
                $t->write_file("$name.begun", '');
            }
            $t->write_file("$name.result", join "\n", $good, @bad);
        });
    } 1 .. 3;

    $t->waitforfile("client-$_.begun") for 1 .. 3;
    my $mark = $t->log_mark;

    for (1 .. 10) {
        install($_ % 2 ? 'two.long' : 'one.long');
        $t->reload;
    }

    $t->write_file('enough', '');
    wait_until(sub { !grep { alive($_) } @clients })
        or die 'the clients do not end';

    is(scalar(() = $t->log_since($mark) =~ /$serves/g), 10,
       'ten images have served');

    for (1 .. 3) {
        my ($good, @bad) = split /\n/, $t->read_file("client-$_.result");
        cmp_ok($good, '>', 0, "client $_ was answered");
        is(scalar @bad, 0, 'and always right') or diag("for one: $bad[0]");
    }
};


done_testing;
