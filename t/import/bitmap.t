#!/usr/bin/perl

# Bitmaps in a real Redis (Debian's redis-server), set with SETBIT by a script
# that computes each scheme from its published algorithm: go-zero, Redisson and
# all others; from the server, from a dump, and in shards.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $port = $t->port(8081);
my $password = 'p@ss/word:1';

$t->write_file('redis.conf', <<"CONF");
bind 127.0.0.1
port $port
dir $dir
save ""
appendonly no
daemonize no
requirepass $password
user reader on >reading ~* +\@read +select
CONF

my $server = spawn(['redis-server', "$dir/redis.conf"]);
my @cli = ('redis-cli', '-p', $port, '--no-auth-warning', '-a', $password);

sub redis {
    my ($exit, $out, $err) = run_command([@cli, @_]);

    chomp $out;
    return $out;
}

ok(wait_until(sub { redis('PING') eq 'PONG' }), 'Redis runs')
    or BAIL_OUT('no Redis to test with');
note redis('INFO', 'server') =~ /(redis_version:\S+)/;


# Commands in Redis' own protocol, to a database.

sub pipe {
    my ($db, @commands) = @_;

    my $text = '';

    for my $command (['SELECT', $db], @commands) {
        $text .= '*' . @$command . "\r\n";
        $text .= '$' . length($_) . "\r\n$_\r\n" for @$command;
    }

    my ($exit, $out) = run_command([@cli, '--pipe'], stdin => $text);

    like($out, qr/errors: 0,/, 'Redis takes all commands');

    return;
}


# A filter in Redis; and what a reader of it must answer.

my %set;

sub make {
    my ($db, $name, $keys, @scheme) = @_;

    $set{$name} = { map { $_ => 1 } map { bits_of($scheme[0], $_, @scheme[1, 2]) }
                    @$keys };
    main::pipe($db, map { ['SETBIT', $name, $_, 1] } keys %{ $set{$name} });

    return;
}

sub expected {
    my ($name, $keys, $scheme, $m, $k) = @_;

    return join '',
           map { my $bits = 0;
                 $bits += !!$set{$name}{$_} for bits_of($scheme, $_, $m, $k);
                 $bits == $k ? 1 : 0 } @$keys;
}

my ($in, $not) = (members(800), strangers(1500));
my @ask = (@$in, @$not);
my $url = "redis://:p%40ss%2Fword%3A1\@127.0.0.1:$port";


# Bits that are no whole number of words, nor of bytes.

my %k = ('go-zero' => 14);

for my $scheme (qw(go-zero redisson guava64 guava32 double redisbloom dcso
                   bits-and-blooms spark1 spark2 libbloom))
{
    my ($m, $k) = (12021, $k{$scheme} // 7);
    my $key = "filter of $scheme";

    make(3, $key, $in, $scheme, $m, $k);

    import_image($t, "$dir/image", '--from', 'bitmap', '--scheme', $scheme,
                 '--bits', $m, '--hashes', $k, "$url/3/$key");

    my $expected = expected($key, \@ask, $scheme, $m, $k);

    like($expected, qr/\A1{800}/, "$scheme: members are there");
    same_answers(answers($t, "$dir/image", \@ask), $expected, $scheme);

    # a dump, from which redis-cli's line end is cut

    my (undef, $dump) = run_command([@cli, '-n', 3, '--raw', 'GET', $key]);
    chomp $dump;
    $t->write_file('dump', $dump);
    import_image($t, "$dir/dumped.bloom", '--from', 'bitmap', '--scheme',
                 $scheme, '--bits', $m, '--hashes', $k, "$dir/dump");
    same_answers(answers($t, "$dir/dumped.bloom", \@ask), $expected,
                 "$scheme, a dump");

    # and back

    my ($exit, undef, $err) = $t->run_tool('export', '--to', 'bitmap', '--key',
                                           'back', '-o', "$dir/resp",
                                           "$dir/image");
    is($exit, 0, "$scheme: is exported") or diag $err;

    redis('DEL', 'back');
    (undef, my $out) = run_command(['sh', '-c', "exec \"\$@\" < $dir/resp",
                                    'sh', @cli, '--pipe']);
    like($out, qr/errors: 0,/, "$scheme: Redis takes it");

    (undef, my $back) = run_command([@cli, '--raw', 'GET', 'back']);
    chomp $back;
    $t->write_file('back', $back);
    same_file("$dir/back", "$dir/dump", $scheme);
}

tally('Redis 7.0.15');


# The names of libraries.

import_image($t, "$dir/image", '--from', 'go-zero', '--bits', 12021,
             "$url/3/filter of go-zero");
same_answers(answers($t, "$dir/image", \@ask),
             expected('filter of go-zero', \@ask, 'go-zero', 12021, 14),
             'go-zero by its name');

for my $name ('filter of redisson', 'tagged {filter} of redisson') {

    make(0, $name, $in, 'redisson', 9585, 6);

    my $config = $name =~ /\{/ ? "$name:config" : "{$name}:config";
    redis('HSET', $config, 'size', 9585, 'hashIterations', 6,
          'expectedInsertions', 1000, 'falseProbability', '0.01');

    my ($out) = import_image($t, "$dir/image", '--from', 'redisson',
                             "$url/0/$name");
    like($out, qr/redisson, keys hashed as bytes, 9585 bits, k 6/,
         "$name: its configuration is found");
    same_answers(answers($t, "$dir/image", \@ask),
                 expected($name, \@ask, 'redisson', 9585, 6),
                 "$name, by itself");
}

my $info = ($t->run_tool('info', '--json', "$dir/image"))[1];
like($info, qr/"capacity": 1000,/, 'the capacity is the source\'s');
like($info, qr/"fpr": 0.01,/, 'and the rate');

{
    my ($out) = import_image($t, "$dir/image", '--from', 'redisson', '--json',
                             "$url/0/filter of redisson");
    my $json = JSON::PP::decode_json($out);

    is(join(' ', sort keys %$json),
       'bits build_id bytes capacity estimated_fpr file fill_ratio fpr from'
       . ' funnel items items_claimed k links measured_fpr promised scheme',
       'JSON: its members');
    cmp_ok(abs($json->{items} / @$in - 1), '<', 0.05, 'JSON: items');
    ok(0 < $json->{fill_ratio} && $json->{fill_ratio} < 0.6,
       'JSON: fill_ratio');
    cmp_ok(abs($json->{measured_fpr} - $json->{estimated_fpr}), '<', 0.005,
           'JSON: the rate is measured about as it is estimated');
}


# Shards: one bitmap of 100000 bits, 32768 in a key; the third is empty.

{
    my ($m, $k, $shard) = (100000, 3, 32768);
    my %bits = map { $_ => 1 }
               grep { $_ < 2 * $shard || $_ >= 3 * $shard }
               map { bits_of('double', $_, $m, $k) } @$in;

    $set{sharded} = \%bits;
    main::pipe(0, ['SET', 'part:2', "\0"],
               map { ['SETBIT', 'part:' . int($_ / $shard), $_ % $shard, 1] }
               keys %bits);

    my @from = ('--from', 'bitmap', '--scheme', 'double', '--hashes', $k,
                '--shard', $shard);

    import_image($t, "$dir/image", @from, '--bits', $m,
                 map { "$url/0/part:$_" } 0 .. 3);
    same_answers(answers($t, "$dir/image", \@ask),
                 expected('sharded', \@ask, 'double', $m, $k), 'shards');

    import_fails($t, 'a shard too few', qr/3 sources of 32768 bits are no/,
                 @from, '--bits', $m, map { "$url/0/part:$_" } 0 .. 2);
    import_fails($t, 'a shard too long', qr/has 40\d\d bytes, and a shard 128/,
                 @from, '--shard', 1024, '--bits', 4000,
                 map { "$url/0/part:$_" } 0 .. 3);
}


# Logging in.

my @from = ('--from', 'go-zero', '--bits', 12021);

($ENV{REDISCLI_AUTH}) = $password;
import_image($t, "$dir/image", @from,
             "redis://127.0.0.1:$port/3/filter of go-zero");
delete $ENV{REDISCLI_AUTH};

import_image($t, "$dir/image", @from,
             "redis://reader:reading\@127.0.0.1:$port/3/filter of go-zero");

import_fails($t, 'a wrong password', qr/the server says, at AUTH: WRONGPASS/,
             @from, "redis://:secret\@127.0.0.1:$port/3/filter of go-zero");
import_fails($t, 'no password', qr/the server says, at SELECT: NOAUTH/,
             @from, "redis://127.0.0.1:$port/3/filter of go-zero");

for my $message (($t->run_tool('import', '-o', "$dir/x", @from,
                               "redis://:secret\@127.0.0.1:$port/3/f"))[2])
{
    unlike($message, qr/secret/, 'a password is not shown');
}


# What cannot be.

import_fails($t, 'no such key', qr/there is no such key/, @from, "$url/0/no");
import_fails($t, 'no such database', qr/at SELECT: ERR DB index/, @from,
             "$url/99/x");
redis('LPUSH', 'list', 'x');
import_fails($t, 'another type', qr/at STRLEN: WRONGTYPE/, @from,
             "$url/0/list");
import_fails($t, 'too few bits', qr/are more than 1000 bits/, '--from',
             'go-zero', '--bits', 1000, "$url/3/filter of go-zero");
import_fails($t, 'a bit too few', qr/behind the filter's last one are set/,
             '--from', 'go-zero', '--bits', 12020 - (12020 % 8 ? 1 : 2),
             $t->write_file('ff', "\xff" x 1503));
import_fails($t, 'no bits given', qr/has no header: give --bits --hashes$/m,
             '--from', 'redisson', $t->write_file('x', 'x'));
import_fails($t, 'the rest is known', qr/has no header: give --bits$/m,
             '--from', 'go-zero', "$url/3/filter of go-zero");
import_fails($t, 'nothing given',
             qr/has no header: give --scheme --bits --hashes$/m,
             '--from', 'bitmap', "$url/3/filter of go-zero");
import_fails($t, 'not RedisBloom', qr/unknown command .BF.SCANDUMP/,
             '--from', 'redisbloom', "$url/0/list");
import_fails($t, 'no configuration', qr/no configuration of Redisson beside/,
             '--from', 'redisson', "$url/3/filter of redisson");
import_fails($t, 'nobody listens', qr/cannot connect: Connection refused/,
             @from, 'redis://127.0.0.1:' . $t->port(8099) . '/0/x');

for my $bad ('redis://127.0.0.1', 'redis://127.0.0.1/x', 'redis://:6379/0/x',
             'redis://127.0.0.1:70000/0/x', 'redis://127.0.0.1/0/',
             'redis://[::1/0/x', 'redis://u:p@/0/x')
{
    import_fails($t, $bad, qr/is no address of a key; write redis:/, @from,
                 $bad);
}

kill 'TERM', $server;
wait_until(sub { !kill 0, $server });

done_testing;
