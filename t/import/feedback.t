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
use BloomTest::Process qw(wait_until);
use BloomTest::Schemes qw(bits_of);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @schemes = qw(go-zero redisson guava64 guava32 double redisbloom dcso
                 bits-and-blooms spark1 spark2 libbloom);
my ($m, $k) = (509, 5);

for my $scheme (@schemes) {
    my $bitmap = "\0" x 64;

    for my $bit (map { bits_of($scheme, "in-$_", $m, $k) } 1 .. 60) {
        substr($bitmap, $bit >> 3, 1) |= chr(0x80 >> ($bit & 7));
    }

    import_image($t, "$dir/$scheme.bloom", '--from', 'bitmap', '--scheme',
                 $scheme, '--bits', $m, '--hashes', $k,
                 $t->write_file("$scheme.bitmap", $bitmap));
}

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
