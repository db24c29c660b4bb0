#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import and export of bitmaps in a real Redis: from the server, from
# a dump and in shards.  The test sets the bits with SETBIT and computes them from
# the published algorithms.  golden-foreign.t tests each scheme.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command);
use BloomTest::Redis qw(redis_server redis_stop);
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $password = 'p@ss/word:1';
my $server = redis_server($t, 8081, "requirepass $password",
                          'user reader on >reading ~* +@read +select');
my $port = $server->{port};
my @cli = ('redis-cli', '-p', $port, '--no-auth-warning', '-a', $password);

sub redis {
    my ($exit, $out, $err) = run_command([@cli, @_]);

    chomp $out;
    return $out;
}


# Sends commands to a database in the protocol of Redis.

sub pipe {
    my ($db, @commands) = @_;

    my $text = '';

    for my $command (['SELECT', $db], @commands) {
        $text .= '*' . @$command . "\r\n";
        $text .= '$' . length($_) . "\r\n$_\r\n" for @$command;
    }

    my ($exit, $out) = run_command([@cli, '--pipe'], stdin => $text);

    like($out, qr/errors: 0,/, "Redis accepts commands for database $db");

    return;
}


my %set;

# Makes a filter in Redis.

sub make {
    my ($db, $name, $keys, @scheme) = @_;

    $set{$name} = { map { $_ => 1 }
                    map { bits_of($scheme[0], $_, @scheme[1, 2]) }
                    @$keys };
    main::pipe($db, map { ['SETBIT', $name, $_, 1] } keys %{ $set{$name} });

    return;
}

# Returns what a reader of the filter must answer, as "0110...".

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


# The number of bits is a multiple neither of 64 nor of 8.

my %k = ('go-zero' => 14);

for my $scheme (qw(go-zero redisson double)) {
    my ($m, $k) = (12021, $k{$scheme} // 7);
    my $key = "filter of $scheme";

    make(3, $key, $in, $scheme, $m, $k);

    import_image($t, "$dir/image", '--from', 'bitmap', '--scheme', $scheme,
                 '--bits', $m, '--hashes', $k, "$url/3/$key");

    my $expected = expected($key, \@ask, $scheme, $m, $k);

    like($expected, qr/\A1{800}/,
         "a filter of scheme $scheme has its 800 members");
    same_answers(answers($t, "$dir/image", \@ask), $expected,
                 "an image of scheme $scheme from the server");

    # a dump, without the line end of redis-cli

    my (undef, $dump) = run_command([@cli, '-n', 3, '--raw', 'GET', $key]);
    chomp $dump;
    $t->write_file('dump', $dump);
    import_image($t, "$dir/dumped.bloom", '--from', 'bitmap', '--scheme',
                 $scheme, '--bits', $m, '--hashes', $k, "$dir/dump");
    same_answers(answers($t, "$dir/dumped.bloom", \@ask), $expected,
                 "an image of scheme $scheme from a dump");

    export_image($t, 'bitmap', "$dir/resp", "$dir/image", '--key', 'back');

    redis('DEL', 'back');
    (undef, my $out) = run_command(['sh', '-c', "exec \"\$@\" < $dir/resp",
                                    'sh', @cli, '--pipe']);
    like($out, qr/errors: 0,/,
         "Redis accepts the export of scheme $scheme");

    (undef, my $back) = run_command([@cli, '--raw', 'GET', 'back']);
    chomp $back;
    $t->write_file('back', $back);
    same_file("$dir/back", "$dir/dump",
              "the exported bitmap of scheme $scheme equals its source");
}

# The name of a library stands for its scheme.

import_image($t, "$dir/image", '--from', 'go-zero', '--bits', 12021,
             "$url/3/filter of go-zero");
same_answers(answers($t, "$dir/image", \@ask),
             expected('filter of go-zero', \@ask, 'go-zero', 12021, 14),
             'an image imported with --from go-zero');

for my $name ('filter of redisson', 'tagged {filter} of redisson') {

    make(0, $name, $in, 'redisson', 9585, 6);

    my $config = $name =~ /\{/ ? "$name:config" : "{$name}:config";
    redis('HSET', $config, 'size', 9585, 'hashIterations', 6,
          'expectedInsertions', 1000, 'falseProbability', '0.01');

    my ($out) = import_image($t, "$dir/image", '--from', 'redisson',
                             "$url/0/$name");
    like($out, qr/redisson, keys hashed as bytes, 9585 bits, k 6/,
         "the tool finds the configuration of '$name'");
    same_answers(answers($t, "$dir/image", \@ask),
                 expected($name, \@ask, 'redisson', 9585, 6),
                 "an image of '$name' with the bits of its configuration");
}

# With too few hashes, all keys are found, and others at the fill ratio.

{
    my $keys = $t->write_file('in.txt', join '', map { "$_\n" } @$in);
    my ($out) = import_image($t, "$dir/few", '--from', 'redisson', '--bits', 9585,
                             '--hashes', 1, '--json', '--check', $keys,
                             "$url/0/filter of redisson");
    my $json = JSON::PP::decode_json($out);

    is($json->{checked}, scalar @$in, 'an import with one hash finds all keys');
    cmp_ok($json->{fill_ratio}, '>', 0.3, 'the filter has many set bits');
    cmp_ok(abs($json->{measured_fpr} - $json->{fill_ratio}), '<', 0.01,
           'an import with one hash finds other keys at the fill ratio');
}

my $info = ($t->run_tool('info', '--json', "$dir/image"))[1];
like($info, qr/"capacity": 1000,/, 'info states the capacity of the source');
like($info, qr/"fpr": 0.01,/, 'info states the rate of the source');

{
    my ($out) = import_image($t, "$dir/image", '--from', 'redisson', '--json',
                             "$url/0/filter of redisson");
    my $json = JSON::PP::decode_json($out);

    cmp_ok(abs($json->{items} / @$in - 1), '<', 0.05,
           'import --json estimates the items from the bits');
    ok(0 < $json->{fill_ratio} && $json->{fill_ratio} < 0.6,
       'import --json has the fill ratio');
    cmp_ok(abs($json->{measured_fpr} - $json->{estimated_fpr}), '<', 0.005,
           'import --json measures about the rate that it estimates');
}


# Shards: a bitmap of 100000 bits is divided into keys of 32768 bits.  The third
# shard is empty.

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
                 expected('sharded', \@ask, 'double', $m, $k),
                 'an image of four shards');

    import_fails($t, 'a list that lacks a shard',
                 qr/3 sources of 32768 bits cannot make 100000 bits/,
                 @from, '--bits', $m, map { "$url/0/part:$_" } 0 .. 2);
    import_fails($t, 'a shard that is too long',
                 qr/has 40\d\d bytes, but the shard has 128/,
                 @from, '--shard', 1024, '--bits', 4000,
                 map { "$url/0/part:$_" } 0 .. 3);
}


# Users and passwords.

my @from = ('--from', 'go-zero', '--bits', 12021);

($ENV{REDISCLI_AUTH}) = $password;
import_image($t, "$dir/image", @from,
             "redis://127.0.0.1:$port/3/filter of go-zero");
delete $ENV{REDISCLI_AUTH};

import_image($t, "$dir/image", @from,
             "redis://reader:reading\@127.0.0.1:$port/3/filter of go-zero");

import_fails($t, 'a wrong password',
             qr/the server answered AUTH with an error: WRONGPASS/,
             @from, "redis://:secret\@127.0.0.1:$port/3/filter of go-zero");
import_fails($t, 'a missing password',
             qr/the server answered SELECT with an error: NOAUTH/,
             @from, "redis://127.0.0.1:$port/3/filter of go-zero");


# Sources that are refused.

import_fails($t, 'a key that does not exist',
             qr/there is no such key/, @from, "$url/0/no");
import_fails($t, 'a database that does not exist',
             qr/answered SELECT with an error: ERR DB index/, @from,
             "$url/99/x");
redis('LPUSH', 'list', 'x');
import_fails($t, 'a key of another type',
             qr/answered STRLEN with an error: WRONGTYPE/, @from,
             "$url/0/list");
import_fails($t, 'a number of bits that is much too low',
             qr/is more than 1000 bits/, '--from',
             'go-zero', '--bits', 1000, "$url/3/filter of go-zero");
import_fails($t, 'a number of bits that is too low by one',
             qr/bits after the filter's last one are set/,
             '--from', 'go-zero', '--bits', 12020 - (12020 % 8 ? 1 : 2),
             $t->write_file('ff', "\xff" x 1503));
import_fails($t, 'a bitmap without --bits and --hashes',
             qr/has no header; add --bits --hashes$/m,
             '--from', 'redisson', $t->write_file('x', 'x'));
import_fails($t, 'a go-zero bitmap without --bits',
             qr/has no header; add --bits$/m,
             '--from', 'go-zero', "$url/3/filter of go-zero");
import_fails($t, 'a bitmap without any option',
             qr/has no header; add --scheme --bits --hashes$/m,
             '--from', 'bitmap', "$url/3/filter of go-zero");
import_fails($t, 'a server without RedisBloom',
             qr/unknown command .BF.SCANDUMP/,
             '--from', 'redisbloom', "$url/0/list");
import_fails($t, 'a Redisson filter without a configuration',
             qr/no configuration of Redisson for this key/,
             '--from', 'redisson', "$url/3/filter of redisson");
import_fails($t, 'a port that nobody listens on',
             qr/cannot connect: 127\.0\.0\.1: Connection refused/,
             @from, 'redis://127.0.0.1:' . $t->port(8099) . '/0/x');

for my $bad ('redis://127.0.0.1', 'redis://127.0.0.1/x', 'redis://:6379/0/x',
             'redis://127.0.0.1:70000/0/x', 'redis://127.0.0.1/0/',
             'redis://[::1/0/x', 'redis://u:p@/0/x')
{
    import_fails($t, "the address '$bad'",
                 qr/is not the address of a Redis key; write redis:/, @from,
                 $bad);
}

redis_stop($server);

done_testing;
