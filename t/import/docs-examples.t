#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the examples of docs/interop.md work as they are written, from the
# command of the source system to the curl that shows the decision of nginx.
#
# The blocks of each section run in their order.  Programs in Java and Go are
# completed and compiled.  Programs in Scala, and in C for a library that Debian
# does not have, cannot run here; this test does what they do.  Commands run in
# one directory, with other ports and without /etc/nginx.  The test fails for a
# section that it does not know.
#
# The section about RedisBloom runs if TEST_REDIS_MODULE names a RedisBloom that
# Redis can load.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Redis qw(redis_server redis_stop);
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new;
my $dir = $t->testdir;
my $doc = "$FindBin::Bin/../../docs/interop.md";
my $guava = '/usr/share/java/guava.jar';
my ($work, $etc) = ("$dir/work", "$dir/etc");
my $redis_port = $t->port(8082);

my @ids = (4711, 4712, 1000 .. 1999);
my $stranger = 'nonsense';

mkdir $_ for $work, $etc, "$dir/bin";


# ---- the sections of the document, with the lines of each block ----

my (@sections, $block);

push @sections, { title => 'the server', blocks => [] };

open my $fh, '<', $doc or BAIL_OUT("cannot open $doc: $!");

while (my $line = <$fh>) {

    if ($line =~ /^```/) {
        $block = $block ? undef
                        : { line => $. + 1, text => '' };
        push @{ $sections[-1]{blocks} }, $block if $block;

    } elsif ($block) {
        $block->{text} .= $line;

    } elsif ($line =~ /^## (.*)/) {
        push @sections, { title => $1, blocks => [] };
    }
}

close $fh;

sub is_shell { return $_[0]{text} =~ /^\$ / }

# Returns [line, command, output] for each command of a block.

sub commands {
    my ($block) = @_;

    my @commands;
    my $line = $block->{line} - 1;
    my $open = 0;

    for my $text (split /\n/, $block->{text}) {
        $line++;

        if ($text =~ s/^\$ // || $open) {
            push @commands, [$line, '', ''] if !$open;
            $open = $text =~ s/ \\$//;
            $commands[-1][1] .= $text;

        } else {
            $commands[-1][2] .= "$text\n";
        }
    }

    return @commands;
}


# ---- the programs that the commands call ----

sub script {
    my ($name, $text) = @_;

    $t->write_file("bin/$name", "#!/bin/sh\n$text\n");
    chmod 0755, "$dir/bin/$name";

    return;
}

sub real {
    my ($name) = @_;

    my ($path) = grep { -x } map { "$_/$name" } split /:/, $ENV{PATH};

    return $path // BAIL_OUT("$name is missing; run `make deps`");
}

my $tool = $ENV{TEST_BLOOM_TOOL} // "$FindBin::Bin/../../build/ngx-bloom";

script('ngx-bloom', "exec $tool \"\$@\"");
script('redis-cli', 'exec ' . real('redis-cli') . " -p $redis_port \"\$@\"");
script('sudo', 'exec "$@"');

my $path = "$dir/bin:$ENV{PATH}";

# Runs a command of the document.  A curl is repeated until its output is right,
# since a reload takes a moment.

sub run_documented {
    my ($line, $command, $expected) = @_;

    my $text = $command;
    my ($http) = $t->port(8080);
    my ($exit, $out, $err);

    $text =~ s{/etc/nginx\b}{$etc}g;
    $text =~ s{\blocalhost:8080\b}{127.0.0.1:$http}g;
    $text =~ s{redis://localhost(:6379)?/}{redis://127.0.0.1:$redis_port/}g;

    my $pattern = quotemeta $expected;
    $pattern =~ s/\\\.\\\.\\\.\\\n/.*/g;
    $pattern = '.*' if $expected eq '';

    my $once = sub {
        ($exit, $out, $err) = run_command(
            ['sh', '-c', "cd $work && $text"], env => { PATH => $path },
            limit => 120);
        $out =~ s/\r//g;
        $out .= "\n" if $out ne '' && $out !~ /\n\z/;

        return $exit == 0 && $out =~ /\A$pattern\z/s;
    };

    ok($command =~ /^curl/ ? wait_until($once) : $once->(),
       "line $line of docs/interop.md works as written: $command")
        or diag "exit $exit: $out$err";

    return;
}


# ---- the server ----

my $server = shift @sections;
my ($conf) = grep { $_->{text} =~ /^bloom_zone / } @{ $server->{blocks} };
my ($install, @asking) = map { commands($_) }
                         grep { is_shell($_) } @{ $server->{blocks} };

ok($conf && $install && @asking == 2,
   'docs/interop.md has a server and two requests to it')
    or BAIL_OUT('docs/interop.md has another server');

my $http_block = $conf->{text} =~ s{/etc/nginx}{$etc}r
                 =~ s{listen 8080;}{listen 127.0.0.1:%%PORT_8080%%;}r;

$t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    upstream backend { server 127.0.0.1:%%PORT_8081%%; }
    server { listen 127.0.0.1:%%PORT_8081%%; return 200 "an item\\n"; }
    $http_block
}
CONF

$t->build_image('empty.bloom', ['no key that anybody asks for']);
install_empty();
$t->run;
script('nginx', 'test "$*" = "-s reload" && exec kill -HUP ' . $t->master);


# By rename, since the image before may still be being loaded.

sub install_empty {
    run_command(['cp', "$dir/empty.bloom", "$etc/ids.bloom.new"]);
    rename "$etc/ids.bloom.new", "$etc/ids.bloom" or die "rename: $!";

    return;
}


# ---- sources ----

my $redis = redis_server($t, 8082, $ENV{TEST_REDIS_MODULE}
                                   ? "loadmodule $ENV{TEST_REDIS_MODULE}" : ());

sub redis { return BloomTest::Redis::redis($redis, @_) }

# Sets the bits of keys in Redis.  With the size of a shard, it sets them in
# several keys of Redis.

sub set_bits {
    my ($key, $keys, $shard, @scheme) = @_;

    my $text = join '', map {
        my @words = ('SETBIT', $shard ? "$key:" . int($_ / $shard) : $key,
                     $shard ? $_ % $shard : $_, 1);
        '*' . @words . "\r\n"
            . join '', map { '$' . length($_) . "\r\n$_\r\n" } @words;
    } map { bits_of($scheme[0], $_, @scheme[1, 2]) } @$keys;

    my ($exit, $out) = run_command(["$dir/bin/redis-cli", '--pipe'],
                                   stdin => $text);
    like($out, qr/errors: 0,/, "Redis sets the bits of $key");

    return;
}

sub filter_bits {
    my ($size, $keys, @scheme) = @_;

    my $bits = "\0" x $size;

    for my $key (@$keys) {
        vec($bits, $_, 1) = 1 for bits_of($scheme[0], $key, @scheme[1 .. 3]);
    }

    return $bits;
}

sub succeeds {
    my ($what, @command) = @_;

    my ($exit, $out, $err) = run_command(['sh', '-c', "cd $work && \"\$@\"",
                                          'sh', @command], limit => 600,
        env => { GO111MODULE => 'off', GOPATH => '/usr/share/gocode',
                 GOCACHE => "$dir/cache", GOFLAGS => '-buildvcs=false' });

    is($exit, 0, $what) or diag "$out$err";

    return;
}

my %source = (

    'Guava' => sub {
        my ($program) = @_;
        my $list = join ', ', map { "new Item(${_}L)" } @ids;

        $t->write_file('work/Ids.java', <<"JAVA");
import com.google.common.hash.*;
import java.io.*;
import java.nio.file.*;
import java.util.*;

public class Ids {
    static class Item {
        private final long id;
        Item(long id) { this.id = id; }
        long id() { return id; }
    }

    public static void main(String[] args) throws IOException {
        List<Item> items = Arrays.asList($list);
        $program
    }
}
JAVA

        my @javac = grep({ -x "$_/javac" } split /:/, $ENV{PATH})
                    ? 'javac' : qw(ecj -11 -nowarn -proc:none);

        succeeds('the program for Guava compiles', @javac, '-cp', $guava,
                 'Ids.java');
        succeeds('the program for Guava runs', 'java', '-cp', "$guava:.",
                 'Ids');
    },

    'RedisBloom and Redis 8' => sub { },

    'go-zero' => sub {
        my ($program) = @_;
        my ($key, $bits) = $program =~ /, "(\w+)", (\d+\*\d+)\)/
            or return fail('the program for go-zero names its filter');

        set_bits($key, \@ids, 0, 'go-zero', eval $bits, 14);
    },

    'Redisson' => sub {
        my ($program) = @_;
        my ($key) = $program =~ /getBloomFilter\("(\w+)"/;
        my ($n, $p) = $program =~ /tryInit\(([\d_]+), ([\d.]+)\)/
            or return fail('the program for Redisson names its filter');

        $n =~ tr/_//d;
        my $m = int(-$n * log($p) / log(2) ** 2);
        my $k = int($m / $n * log(2) + 0.5);

        set_bits($key, \@ids, 0, 'redisson', $m, $k);
        redis('HSET', "{$key}:config", size => $m, hashIterations => $k,
              expectedInsertions => $n, falseProbability => $p);
    },

    'bits-and-blooms' => sub {
        my ($program) = @_;

        $t->write_file('work/ids.go', <<"GO");
package main

import (
    "os"
    bloom "github.com/willf/bloom"
)

func main() {
    file, err := os.Create("ids.filter")
    if err != nil {
        panic(err)
    }
    $program
}
GO
        succeeds('the program for bits-and-blooms runs', 'go', 'run', 'ids.go');
        run_command(['rm', '-rf', "$dir/cache"]);
    },

    'Spark' => sub {
        my ($program) = @_;
        my ($n, $p) = $program =~ /bloomFilter\("id", (\d+)L, ([\d.]+)\)/
            or return fail('the program for Spark names its filter');

        my $m = 64 * int((int(-$n * log($p) / log(2) ** 2) + 63) / 64);
        my $k = int($m / $n * log(2) + 0.5);
        my @longs = map { pack 'q<', $_ } @ids;

        $t->write_file('work/ids.spark',
            pack('l> l> l>', 1, $k, $m / 64)
            . pack 'Q>*', unpack 'Q<*', filter_bits($m / 8, \@longs, 'spark1',
                                                    $m, $k, 0));
    },

    'libbloom' => sub {
        my ($program) = @_;
        my ($n, $p) = $program =~ /bloom_init2\(&ids, (\d+), ([\d.]+)\)/
            or return fail('the program for libbloom names its filter');

        my $bpe = -log($p) / log(2) ** 2;
        my $m = int($n * $bpe);
        my $k = int(log(2) * $bpe) + 1;
        my $bytes = int(($m + 7) / 8);

        $t->write_file('work/ids.libbloom',
            'libbloom2' . pack('S<', 64)
            . pack('L< x4 Q< Q< C x7 d< C C C x5 d< Q<', $n, $m, $bytes, $k,
                   $p, 1, 2, 0, $bpe, 0)
            . filter_bits($bytes, \@ids, 'libbloom', $m, $k));
    },
);

# Makes what a command needs and the document does not make before it.

sub prepare {
    my ($command) = @_;

    if ($command =~ /^bloom insert \S+ < (\S+)/) {
        $t->write_file("work/$1", join '', map { "$_\n" } @ids);
    }

    if ($command =~ /import --from bitmap --scheme (\S+) --bits (\S+)/) {
        my ($scheme, $bits) = ($1, number($2));
        my ($k) = $command =~ /--hashes (\d+)/;
        my ($shard) = $command =~ /--shard (\S+)/;
        my ($key) = $command =~ m{/0/(\w+)};

        set_bits($key, \@ids, number($shard // 0), $scheme, $bits, $k);

    }

    if ($command =~ /import --from redisbloom.* (chunk\.0 .*)/) {
        my @files = split ' ', $1;

        succeeds('a client saves the chunks of a RedisBloom filter', 'perl',
                 '-e', <<'PERL', $redis_port,
use IO::Socket::INET;
my $s = IO::Socket::INET->new("127.0.0.1:" . shift) or die $!;
my $i = 0;
while (1) {
    print $s "BF.SCANDUMP ids $i\r\n";
    <$s>;
    ($i) = <$s> =~ /^:(\d+)/ or die;
    my ($n) = <$s> =~ /^\$(\d+)/ or die;
    read $s, my $data, $n + 2;
    last if $i == 0;
    open my $fh, ">:raw", shift // "/dev/null" or die $!;
    print $fh substr $data, 0, $n;
}
PERL
                 @files);

        # this filter has fewer chunks
        $t->write_file("work/$_", '') for grep { !-e "$work/$_" } @files;
    }

    return;
}

sub number {
    my ($text) = @_;

    return $text =~ /^(\d+)m$/ ? $1 * 1000000 : $text;
}


# ---- sections ----

my %run;

for my $section (@sections) {

    my ($title, @blocks) = ($section->{title}, @{ $section->{blocks} });

    next if !grep { is_shell($_) } @blocks;

    if ($title =~ /RedisBloom/ && !$ENV{TEST_REDIS_MODULE}) {
        note "the section '$title' is skipped without TEST_REDIS_MODULE";
        next;
    }

    # an empty image, so that later answers are those of the new one

    install_empty();
    $t->reload;
    is($t->get('/item/4711')->status, 404,
       "a request is rejected before the section '$title' runs");
    unlink glob "$work/ids.*";
    redis('FLUSHALL');
    $run{$title} = 1;

    for my $block (@blocks) {

        if (!is_shell($block)) {
            ok($source{$title},
               "this test knows the program of the section '$title'")
                or next;
            $source{$title}->($block->{text});
            next;
        }

        for my $command (commands($block)) {
            prepare($command->[1]);
            run_documented(@$install) if $command->[1] =~ /^curl/;
            run_documented(@$command);
        }
    }

    if ($title =~ /RedisBloom/) {
        redis('ACL', 'SETUSER', 'reader', 'on', '>secret', '~ids', '+bf.scandump',
              '+select');
        succeeds('the permissions in the document are enough for an import',
                 "$dir/bin/ngx-bloom", 'import', '-q', '--from', 'redisbloom', '-o',
                 'reader.bloom', "redis://reader:secret\@127.0.0.1:$redis_port/0/ids");
        is(redis('BF.EXISTS', 'ids2', 4711), 1,
           "RedisBloom has an exported key");
        is(redis('BF.EXISTS', 'ids2', $stranger), 0,
           "RedisBloom does not have another key");
    }

    # the image of the last block serves, too

    run_documented(@$install) if -e "$work/ids.bloom";
    run_documented(@$_) for @asking;
}

for my $title ('Guava', 'go-zero', 'Redisson', 'Other bitmaps in Redis',
               'DCSO bloom', 'bits-and-blooms', 'Spark', 'libbloom')
{
    ok($run{$title}, "the section '$title' has run");
}

redis_stop($redis);

done_testing;
