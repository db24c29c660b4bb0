#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_feedback with except=on on imported images of each scheme: a false
# positive is excepted, and a key that is added meanwhile is not.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Foreign;
use BloomTest::Feedback;
use BloomTest::Zones;

my $t = BloomTest->new;

my @schemes = qw(go-zero redisson guava64 guava32 double redisbloom dcso
                 bits-and-blooms spark1 spark2 libbloom);

import_scheme($t, $_, 509, 5, map { "in-$_" } 1 .. 60) for @schemes;

my %zone = map { $_ => tr/-/_/r } @schemes;

configure($t, [map { "zone=$zone{$_} file=$_.bloom" } @schemes],
          api => 1, add => 1, workers => 2,
          server => join '', map { <<"CONF" } @schemes);
        location /of/$zone{$_} {
            bloom_reject absent \$arg_id zone=$zone{$_};
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

feedback_backend($t, 8081);
$t->run;

for my $scheme (@schemes) {
    my ($first, $late, $next) = false_positives($t, $scheme, 3);
    my $zone = $zone{$scheme};
    my $path = "/of/$zone?id=";

    await_feedback($t, $zone, $path, $first);

    my $connection = answers_late($t, "$path$late", $zone);

    # other requests use the memory that had the key before

    add($t, $zone, [$late]);
    lookup_keys($t, $zone, keys_of('other', 50));
    let_answer($t, $connection, $zone);
    $t->get("$path$next");

    is(scalar ask($t, $zone, $first, $late, $next), '010',
       "$scheme: an added key is present, and excepted ones are not");
}

done_testing;
