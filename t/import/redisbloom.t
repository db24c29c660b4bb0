#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import of RedisBloom filters from a server and from saved chunks,
# their export, and that wrong answers of a server are refused.  Debian has no
# RedisBloom: a small server of this test speaks its commands, with filters that
# BloomTest::Schemes computes.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;

# ---- filters: links, oldest first ----

my %filters;

sub make {
    my ($name, $scheme, @links) = @_;    # [bits, k, n2, keys]

    my ($header, $data, @sets) = ('', '');

    for my $link (@links) {
        my ($bits, $k, $n2, $keys) = @$link;
        my $bytes = int(($bits + 63) / 64) * 8;
        my $string = "\0" x $bytes;
        my %set;

        for my $key (@$keys) {
            for my $bit (bits_of($scheme, $key, $bits, $k)) {
                vec($string, $bit, 1) = 1;
                $set{$bit} = 1;
            }
        }

        push @sets, [$bits, $k, \%set];
        $header .= pack 'Q< Q< Q< d< d< L< Q< C', $bytes, $bits,
                        scalar @$keys, 0.01, $k / log 2, $k, @$keys + 10, $n2;
        $data .= $string;
    }

    my $size = 0;
    $size += @{ $_->[3] } for @links;

    $header = pack('Q< L< L< L<', $size, scalar @links,
                   $scheme eq 'old' ? 0 : 5, 2) . $header;

    $filters{$name} = { header => $header, data => $data, sets => \@sets,
                        scheme => $scheme, links => \@links };

    return;
}

sub expected {
    my ($name, $keys) = @_;

    my $filter = $filters{$name};

    return join '', map {
        my $key = $_;
        (grep {
            my ($bits, $k, $set) = @$_;
            !grep { !$set->{$_} } bits_of($filter->{scheme}, $key, $bits, $k);
        } @{ $filter->{sets} }) ? 1 : 0;
    } @$keys;
}

my @in = @{ members(900) };
my @ask = (@in, @{ strangers(1500) });

make('example', 'redisbloom', [64, 5, 0, ['item1']]);
make('one', 'redisbloom', [9600, 7, 0, \@in]);
make('three', 'redisbloom', [960, 7, 0, [@in[0 .. 99]]],
     [2112, 8, 0, [@in[100 .. 299]]], [7040, 9, 0, [@in[300 .. 899]]]);
make('many', 'redisbloom',
     map { [128 + 64 * $_, 5, 0, [@in[16 * $_ .. 16 * $_ + 15]]] } 0 .. 46);
make('most', 'redisbloom',
     map { [128 + 64 * $_, 5, 0, [@in[16 * $_ .. 16 * $_ + 15]]] } 0 .. 55);
make('no room', 'redisbloom', @{ $filters{most}{links} }[0 .. 47]);
make('old', 'old', [8192, 6, 13, \@in]);
make('old links', 'old', [1024, 6, 10, [@in[0 .. 99]]],
     [16384, 7, 14, [@in[100 .. 899]]]);
make('short', 'redisbloom', [9590, 7, 0, \@in]);
make('too many', 'redisbloom', map { [64, 5, 0, ["$_"]] } 1 .. 57);

# The example is that of redis.io.

is(unpack('H*', $filters{example}{data}), '0108008000042000',
   'the bits of this test equal those of the example of BF.SCANDUMP');
is(length $filters{example}{header}, 73,
   'the header of this test is as long as that of the example');


# ---- the server ----

# The key decides what the server answers to BF.SCANDUMP: slices of 1000 bytes
# of one link at a time, as RedisBloom does, or a wrong answer.

my $slice = 1000;

sub chunks {
    my ($name) = @_;

    my $filter = $filters{$name};
    my @chunks = ($filter->{header});
    my $at = 0;

    for my $link (@{ $filter->{links} }) {
        my $bytes = int(($link->[0] + 63) / 64) * 8;

        for (my $done = 0; $done < $bytes; $done += $slice) {
            my $n = $bytes - $done < $slice ? $bytes - $done : $slice;
            push @chunks, substr $filter->{data}, $at, $n;
            $at += $n;
        }
    }

    return @chunks;
}

sub scandump {
    my ($name, $iter) = @_;

    my $at = 0;

    for my $chunk (chunks($name)) {
        my $next = $at == 0 ? 1 : $at + length $chunk;

        return "*2\r\n:$next\r\n\$" . length($chunk) . "\r\n$chunk\r\n"
            if $at == $iter;
        $at = $next;
    }

    return "*2\r\n:0\r\n\$0\r\n\r\n";
}

my $header = $filters{one}{header};

my %nonsense = (
    'error' => "-ERR not found\r\n",
    'huge string' => "*2\r\n:1\r\n\$4611686018427387904\r\nxxxx",
    'huger string' => "*2\r\n:1\r\n\$18446744073709551615\r\nxxxx",
    'endless string' => "*2\r\n:1\r\n\$4611686018427387904\r\n"
                        . 'x' x (80 * 1024 * 1024),
    'huge array' => "*2147483647\r\n:1\r\n",
    'huger array' => "*4611686018427387904\r\n:1\r\n",
    'deep array' => "*1\r\n" x 100,
    'string' => "\$2\r\nhi\r\n",
    'three members' => "*3\r\n:1\r\n:2\r\n:3\r\n",
    'two strings' => "*2\r\n\$1\r\n1\r\n\$1\r\n1\r\n",
    'back' => "*2\r\n:-5\r\n\$1\r\nx\r\n",
    'still' => "*2\r\n:1\r\n\$0\r\n\r\n",
    'http' => "HTTP/1.1 400 Bad Request\r\n\r\n",
    'closed' => '',
    'half' => substr("*2\r\n:1\r\n\$73\r\n$header", 0, 40),
    'ends' => "*2\r\n:0\r\n\$0\r\n\r\n",
);

sub serve {
    my ($listen) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (my $client = $listen->accept) {
        my $dumps = 0;

        while (defined(my $line = <$client>)) {
            my ($n) = $line =~ /^\*(\d+)/ or last;
            my @words;

            for (1 .. $n) {
                my ($len) = <$client> =~ /^\$(\d+)/;
                read $client, my $word, $len + 2;
                push @words, substr $word, 0, $len;
            }

            if ($words[0] eq 'BF.SCANDUMP' && $filters{ $words[1] }) {
                print $client scandump(@words[1, 2]);

            } elsif ($words[1] eq 'grows' || $words[1] eq 'stops') {

                # the key is replaced by a larger one while it is read, or
                # the server closes the connection

                if ($words[1] eq 'stops' && $dumps > 1) {
                    last;
                }

                my $answer = scandump('one', $words[2]);
                $answer = scandump('three', $words[2]) if $dumps > 0;
                print $client $answer;
                $dumps++;

            } elsif ($words[1] eq 'short header') {

                # the header of Dragonfly: version 1, and a growth factor

                print $client $words[2] == 0
                    ? "*2\r\n:1\r\n\$12\r\n" . pack('L< d<', 1, 2) . "\r\n"
                    : "*2\r\n:0\r\n\$0\r\n\r\n";

            } elsif ($words[1] eq 'loops') {
                print $client $words[2] == 0 ? scandump('one', 0)
                              : "*2\r\n:1\r\n\$1\r\nx\r\n";

            } else {
                print $client $nonsense{ $words[1] } // "+OK\r\n";
                last if exists $nonsense{ $words[1] };
            }

            $client->flush;
        }

        close $client;
    }

    return;
}

my $port = $t->port(8081);
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', ReuseAddr => 1,
                                   LocalPort => $port, Listen => 20)
    or die "cannot listen: $!";
my $server = spawn(sub { serve($listen); exit 0 });
close $listen;

my $url = "redis://127.0.0.1:$port/0";


# ---- importing ----

for my $name ('one', 'three', 'many', 'old', 'old links', 'short') {

    my $filter = $filters{$name};

    import_image($t, "$dir/image", '--from', 'redisbloom', "$url/$name");

    my $expected = expected($name, \@ask);
    my $members = $name eq 'many' ? 752 : 900;

    like($expected, qr/\A1{$members}/, "filter '$name' has its members");
    same_answers(answers($t, "$dir/image", \@ask), $expected,
                 "the image of filter '$name' from the server");

    my $i = 0;
    my @files = map { $t->write_file('chunk' . $i++, $_) } chunks($name);

    import_image($t, "$dir/saved.bloom", '--from', 'redisbloom', @files);
    same_answers(answers($t, "$dir/saved.bloom", \@ask), $expected,
                 "the image of filter '$name' from saved chunks");

    my $file = $t->write_file('all', $filter->{header} . $filter->{data});
    import_image($t, "$dir/saved.bloom", '--from', 'redisbloom', $file);
    same_answers(answers($t, "$dir/saved.bloom", \@ask), $expected,
                 "the image of filter '$name' from one file");

    export_image($t, 'redisbloom', "$dir/resp", "$dir/image", '--key',
                 'a key');

    my ($iter, $got, $good) = (1, '', 1);

    for my $command (resp_commands($t->read_file('resp'))) {
        my ($verb, $key, $at, $data) = @$command;

        $iter += length $data if $got ne '';
        $good &&= @$command == 4 && $verb eq 'BF.LOADCHUNK'
                  && $key eq 'a key' && $at == $iter;
        $got .= $data;
    }

    ok($good,
       "the export of filter '$name' has LOADCHUNK commands in order");
    $t->write_file('loaded', $got);
    same_file("$dir/loaded", "$dir/all",
              "the export of filter '$name' equals its source");
}

# A filter with more links has all its answers, but an image has no room for its
# header.

for (['no room', 48, 2564, 2560], ['most', 56, 2988, 2432]) {
    my ($name, $links, $has, $room) = @$_;
    my ($out, $err) = import_image($t, "$dir/large", '--from', 'redisbloom',
                                   "$url/$name");

    same_answers(answers($t, "$dir/large", \@ask), expected($name, \@ask),
                 "the image of a filter with $links links");
    is($err, "ngx-bloom import: warning: $dir/large: cannot be exported again: "
             . "the source's header has $has bytes, and an image of $links links "
             . "has room for $room; keep the source\n",
       "the import of $links links warns that there is no way back");

    my ($exit, undef, $why)
        = $t->run_tool('export', '--to', 'redisbloom', '--key', 'k',
                       '-o', "$dir/none", "$dir/large");

    is($exit, 2, "an image of $links links is not exported");
    like($why, qr/: cannot be written as redisbloom: it has $links links and does not have the header of its source; copy the source instead$/,
         'the refusal to export it gives the reason');
    ok(!-e "$dir/none", 'the refusal to export it leaves no file');
}

my ($exit, $out, $err) = $t->run_tool('info', '--json', "$dir/image");
like($out, qr/"from": "redisbloom",\s+"scheme": "redisbloom"/,
     'info --json states the source and the scheme');

import_image($t, "$dir/three", '--from', 'redisbloom', "$url/three");
($exit, $out) = $t->run_tool('info', "$dir/three");
like($out, qr/^layout +links, 10752 bits, k 9, links 3$/m,
     'info states the links of a filter');
is(($t->run_tool('verify', "$dir/three"))[0], 0,
   'an image with links is verified');

# Links of other sizes are not merged.

make('other', 'redisbloom', [1024, 7, 0, ['a']], [2560, 8, 0, ['b']],
     [7040, 9, 0, ['c']]);
import_image($t, "$dir/other", '--from', 'redisbloom',
             $t->write_file('other.dump', $filters{other}{header}
                                          . $filters{other}{data}));
($exit, $out, $err) = $t->run_tool('merge', '-o', "$dir/x", "$dir/three",
                                   "$dir/other");
is($exit, 2, 'images with links of other sizes are not merged');
like($err, qr/they differ in links/,
     'the refusal to merge says that the links differ');

# Added keys go to the last link.

my $more = strangers(200);
my $keys = $t->write_file('more.txt', join '', map { "$_\n" } @$more);

$t->run_tool('build', '-o', "$dir/new", '--like', "$dir/three", $keys);
$t->run_tool('merge', '-o', "$dir/merged", "$dir/three", "$dir/new");
$t->run_tool('export', '--to', 'redisbloom', '--key', 'k', '-o', "$dir/resp",
             "$dir/merged");
my @commands = resp_commands($t->read_file('resp'));
my ($size, $last) = (unpack('Q<', $commands[0][3]),
                     unpack('x142 Q<', $commands[0][3]));
is($commands[1][3], substr($filters{three}{data}, 0, 120),
   'a merge does not change the first link');
isnt($commands[3][3], substr($filters{three}{data}, 384),
     'a merge changes the last link');
cmp_ok(abs($size - 1100), '<', 30, 'a merge increases the number of keys');
cmp_ok(abs($last - 800), '<', 30,
       'a merge increases the number of keys of the last link');
is(answers($t, "$dir/merged", [@in, @$more]), '1' x 1100,
   'a merged image has the keys of both images');


# ---- filters and servers that are refused ----

my @from = ('--from', 'redisbloom');

import_fails($t, 'a filter with too many links',
             qr/has 57 links, but at most 56 can be imported/,
             @from, "$url/too many");

my %says = (
    'error' => qr/the server answered BF.SCANDUMP with an error: ERR not found/,
    'endless string' => qr/the answer to BF.SCANDUMP is longer than 64 MiB/,
    'half' => qr/closed the connection during BF.SCANDUMP/,
    'closed' => qr/closed the connection during BF.SCANDUMP/,
    'huge string' => qr/closed the connection|is not valid/,
    'http' => qr/answer to BF.SCANDUMP is not valid .*check that it is the/,
    'ends' => qr/is not a RedisBloom dump: it has 0 bytes/,
    'back' => qr/its iterator does not advance/,
    'still' => qr/its iterator does not advance/,
    'string' => qr/gave an unexpected answer to BF.SCANDUMP/,
);

for my $name (sort keys %nonsense) {
    import_fails($t, "the server answer '$name'",
                 $says{$name} // qr/(?:unexpected|answer|closed)\b.* BF.SCANDUMP/,
                 @from,
                 "$url/$name");
}

import_fails($t, 'a filter of Dragonfly',
             qr/is a dump of Dragonfly, which has filters of another kind; build/,
             @from, "$url/short header");
import_fails($t, 'a server that closes the connection',
             qr/closed the connection/, @from,
             "$url/stops");
import_fails($t, 'a key that grows',
             qr/longer than its header says: it changed while it was read/,
             @from, "$url/grows");
import_fails($t, 'an iterator that does not advance',
             qr/its iterator does not advance/, @from,
             "$url/loops");


# Wrong headers in a file are refused.

sub lie {
    my ($what, $complaint, $at, $bytes, $name) = @_;

    my $filter = $filters{ $name // 'three' };
    my $text = $filter->{header} . $filter->{data};

    substr $text, $at, length $bytes, $bytes;

    import_fails($t, "a file with $what", $complaint, @from,
                 $t->write_file('lie', $text));

    return;
}

my $no = qr/is not a RedisBloom dump/;

lie('no links', $no, 8, pack('L<', 0));
lie('2^32 - 1 links', qr/has 4294967295 links/, 8, pack('L<', 0xffffffff));
lie('one link too many in its header',
    qr/a filter must have 1 to/, 8, pack('L<', 4));
lie('unknown options', $no, 12, pack('L<', 0x100));
lie('2^62 bytes in a link', $no, 20, pack('Q<', 2 ** 62));
lie('a link of no bits', qr/has 0 bits/, 28, pack('Q<', 0));
lie('2^62 bits in a link', qr/has 4611686018427387904 bits/, 28,
    pack('Q<', 2 ** 62));
lie('a number of bits near 2^64', qr/has 18446744073709551615 bits/, 28,
    pack('Q<', ~0));
lie('k 0', qr/has 0 bits for each key/, 60, pack('L<', 0));
lie('k of 2^31', qr/has 2147483648 bits for each key/, 60, pack('L<', 2 ** 31));
lie('n2 of 255', qr/bits, but a filter must have/, 72, chr 255);
lie('32-bit hashes and bits that are no power of two',
    qr/is not a power of two/, 12, pack('L<', 1));
lie('a size that is too large', qr/is truncated/, 28 + 53 * 2 - 8,
    pack('Q< Q<', 8 * 1024, 65536));

import_fails($t, 'a file truncated in its header',
             qr/is not a RedisBloom dump|truncated/,
             @from, $t->write_file('cut', substr $filters{three}{header}, 0,
                                                  100));
import_fails($t, 'a file truncated in its bits', qr/is truncated/, @from,
             $t->write_file('cut', $filters{three}{header} . 'x'));
import_fails($t, 'a file with another byte at its end',
             qr/is longer than its header says: 1 bytes follow/, @from,
             $t->write_file('long', $filters{one}{header}
                                    . "$filters{one}{data}\n"));
import_fails($t, 'a file with bits after the last one',
             qr/bits after the filter's last one/,
             @from, $t->write_file('over', $filters{short}{header}
                                   . substr($filters{short}{data}, 0, -1)
                                   . "\xff"));

kill 'TERM', $server;
wait_until(sub { !kill 0, $server });

done_testing;
