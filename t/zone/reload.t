#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload of nginx does not read an unchanged image.  A changed image serves as
# a whole, and only when the whole configuration is accepted.

use strict;
use warnings;

use BloomTest;
use BloomTest::Clients;
use BloomTest::Process qw(alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @both = keys_of('both', 40);
my @one = keys_of('one', 40);
my @two = keys_of('two', 40);
my ($all, $none) = ('1' x 40, '0' x 40);

# two images that differ in size, layout, hash function and half of their keys

$t->build_image('one.bloom', [@both, @one], '-p', '1e-7', '-n', 1_000_000);
$t->build_image('two.bloom', [@both, @two], '-p', '1e-6', '-n', 100_000,
                '--layout', 'classic', '--hash', 'siphash');

my $serves = qr/bloom zone "ids" serves generation (\d+)/;


# Replaces the zone's file with a copy of an image.

sub install {
    my ($image) = @_;

    replace_file($t, 'ids.bloom', $t->read_file($image));
}

sub serves {
    my ($image, $what) = @_;

    is(ask($t, 'ids', @both, @one, @two),
       $all . ($image eq 'one' ? "$all$none" : "$none$all"), $what);
}


install('one.bloom');
configure($t, ['zone=ids file=ids.bloom'], workers => 2);
$t->run;
serves('one', 'the first image serves');


# An nginx that counts what runs reads its counts, too.

my $share = $t->nginx_build =~ /--coverage/ ? 2 : 10;

subtest 'the image is unchanged' => sub {
    my $size = -s "$dir/ids.bloom";
    cmp_ok($size, '>', 4_000_000,
           'the image is large enough to be seen in the number of bytes read');

    # What processes that have ended read counts for the master, too.  A reload
    # that reads the image reads all of it.

    my $mark = $t->log_mark;
    my $before = bytes_read($t->master);
    $t->reload;
    my $read = bytes_read($t->master) - $before;

    cmp_ok($read, '<', $size / $share, 'an unchanged image is not read again');
    unlike($t->log_since($mark), qr/bloom zone/,
           'the log says nothing about an unchanged image');
    serves('one', 'an unchanged image continues to serve');

    utime 1, 1, "$dir/ids.bloom" or die "cannot touch: $!";
    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '>=', $size,
           'an image whose file has another time is read again');

    install('one.bloom');
    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '>=', $size,
           'the same image in another file is read again');

    $before = bytes_read($t->master);
    $t->reload;
    cmp_ok(bytes_read($t->master) - $before, '<', $size / $share,
           'the same image in another file is read only once');

    unlike($t->log_since($mark), qr/bloom zone/,
           'the log says nothing about the same image in another file');
    serves('one', 'the same image in another file continues to serve');
};


subtest 'the image is another one' => sub {
    for my $generation (2 .. 5) {
        my $image = $generation % 2 ? 'one' : 'two';
        my $mark = $t->log_mark;

        install("$image.bloom");
        serves($image eq 'one' ? 'two' : 'one',
               "image $image does not serve before a reload");
        $t->reload;
        serves($image, "image $image serves after a reload");

        is(($t->log_since($mark) =~ $serves)[0], $generation,
           "the log says that generation $generation serves");
        unlike($t->log_since($mark), qr/changes from|\[warn\]/,
               "the zone keeps its memory for generation $generation");
    }
};


subtest 'a worker of the old configuration is busy' => sub {
    my @old = $t->workers;
    my $connection = $t->connect;
    $connection->send("GET /ids?k=one1 HTTP/1.1\r\n");

    # either worker may accept the connection; it has done so once it has
    # answered another request

    my %seen;
    wait_until(sub {
        $seen{$_} = 1 for (ask($t, 'ids', 'one1'))[1 .. 1];
        return keys %seen == 2;
    }) or die 'not all workers answer';

    install('two.bloom');
    $t->reload(keep_old => 1);
    $connection->send("Host: localhost\r\nConnection: close\r\n\r\n");

    my ($known, $worker) = $connection->response->body =~ /^(.*) of (\d+)/;
    ok(scalar(grep { $_ == $worker } @old),
       'the old worker answers its last request');
    is($known, '0', 'the old worker answers from the new image');
    serves('two', 'the new workers answer from the new image');
    ok(wait_until(sub { !grep { alive($_) } @old }),
       'the old workers exit after the last request');
};


subtest 'a configuration is refused for another reason' => sub {
    install('two.bloom');
    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->reload;
    serves('two', 'the old image serves before the refused reloads');
    install('one.bloom');

    # nginx refuses these while it parses, when it sets up a later zone, and
    # when it opens sockets

    my %reason = (
        'an unknown directive' =>
            [[], 'no_such_directive;', qr/unknown directive/],
        'a damaged image of another zone' =>
            [['zone=zz file=bad.bloom'], '', qr/checksum of bytes/],
        'a socket that cannot be opened' =>
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
        serves('two', "the old image continues to serve after $_");
        unlike($t->log_since($mark), $serves,
               "no other generation serves after $_");
    }

    configure($t, ['zone=ids file=ids.bloom'], workers => 2);
    $t->reload;
    serves('one', 'the new image serves when the configuration is accepted');
};


subtest 'a reload says why it loads a file' => sub {
    my $image = $t->read_file('ids.bloom');

    replace_file($t, 'renamed.bloom',
                 $t->read_file($image eq $t->read_file('one.bloom')
                               ? 'two.bloom' : 'one.bloom'));

    for my $file ('renamed.bloom', 'ids.bloom') {
        my $mark = $t->log_mark;

        configure($t, ["zone=ids file=$file"], workers => 2);
        $t->reload;
        like($t->log_since($mark),
             qr{\[notice\] .*bloom zone "ids" is going to load "\Q$dir\E/$file", which "file" names now$}m,
             "the log says that file= names $file now");
    }

    my $mark = $t->log_mark;

    install('renamed.bloom');
    $t->reload;
    like($t->log_since($mark),
         qr{\[notice\] .*bloom zone "ids" is going to load "\Q$dir\E/ids\.bloom", which changed$}m,
         'the log says that the file changed');
};


# Keys that both images have must never be absent, whichever image serves.  Long
# keys make lookups so slow that the image changes during a lookup.

subtest 'images change during lookups' => sub {
    my ($long, $times, $n) = ('x' x 1000, 65, 25);
    my @long = map { $long x $times . $_ } 1 .. $n;

    $t->build_image("$_.long", [@long, keys_of($_, 40)], '-p', '1e-7',
                    '-n', $_ eq 'one' ? 200_000 : 100_000)
        for qw(one two);

    my $lookups = join '', map {
        "bloom_lookup '" . ('${long}' x $times) . "$_' \$long$_ zone=ids;\n"
    } 1 .. $n;

    $t->write_file('long.conf', <<"CONF");
map '' \$long { default $long; }
$lookups
server {
    listen 127.0.0.1:@{[$t->port(8081)]};
    location / { return 200 "@{[join ' ', map { "\$long$_" } (1 .. $n) x 4]}"; }
}
CONF

    install('one.long');
    configure($t, ['zone=ids file=ids.bloom'], workers => 2,
              http => "include $dir/long.conf;");
    $t->reload;
    my $all = join ' ', (1) x (4 * $n);
    is($t->get('/', port => 8081)->body, $all,
       'keys of both images are present before the reloads');

    my $clients = BloomTest::Clients->new($t, 3, sub {
        my $body = eval { $t->get('/', port => 8081)->body } // $@;
        return $body eq $all ? '' : $body;
    });
    my $mark = $t->log_mark;

    my $served = sub { scalar(() = $t->log_since($mark) =~ /$serves/g) };

    for my $n (1 .. 10) {
        install($n % 2 ? 'two.long' : 'one.long');
        $t->reload;
        wait_until(sub { $served->() >= $n });
    }

    my @results = $clients->finish;

    is($served->(), 10, 'ten more generations have served');

    for (@results) {
        my ($client, $wrong) = ($_->{client}, $_->{wrong});

        cmp_ok($_->{right}, '>', 0, "client $client is answered");
        is(scalar @$wrong, 0, "client $client finds no key absent")
            or diag("for example $wrong->[0]");
    }
};


done_testing;
