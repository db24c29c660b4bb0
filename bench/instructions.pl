#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section counts the instructions of a check: nginx runs as one process
# under valgrind's callgrind. Other work on the machine does not affect the
# count.

use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;

use Bench;
use BloomTest::Process qw(spawn wait_until run_command alive);

my $requests = quick() ? 100 : 1000;

my $known = '7f1c9a528b1e4f0e';
my $absent = '7f1c9a528b1e4f0f';
my $uuid = '7f1c9a52-8b1e-4f0e-9d43-a3f0cc12d97b';
my $host = 'www.evil.example';
my $url = 'http://evil.example/1/2/3/4.html?x=1';
my $link = 'https%3A%2F%2Fwww.shop.example%2Fcatalog%2Fshoes%2Fitem.html'
           . '%3Fid%3D7';
my $long = 'http://a.b.c.d.evil.example/1/2/3/4.html?x=1';

# nginx keeps what it has made of the last URL or host.  So each request has
# another one than the request before: every second one ends in another letter.

sub other { return $_[0] =~ s/(\w)(?=\W*$)/chr(ord($1) ^ 1)/er }

# Each has a server of its own, so that all requests have the same length: name,
# contents of the location, key, status.

my $gif = 'empty_gif;';

my @servers = (
    ['return', 'return 200 "";', $known, 200],
    ['gif', $gif, $known, 200],
    ['limit', "limit_req zone=l burst=1000000 nodelay; $gif", $known, 200],
    ['present', "bloom_reject absent \$arg_id zone=raw; $gif", $known, 200],
    ['feedback', "bloom_feedback 404; bloom_reject absent \$arg_id zone=raw;"
                 . " $gif", $known, 200],
    ['except', 'bloom_feedback 404 except=on;'
              . " bloom_reject absent \$arg_id zone=raw; $gif", $known, 200],
    ['arg', "bloom_reject absent \$id zone=raw; $gif", $known, 200],
    ['absent', "bloom_reject present \$arg_id zone=raw; $gif", $absent, 200],
    ['lines', "bloom_reject absent \$arg_id zone=lines; $gif", $known, 200],
    ['three', "bloom_reject absent \$arg_id zone=raw;"
              . ' bloom_reject absent $arg_id zone=lines;'
              . " bloom_reject present \$arg_id zone=lower; $gif",
     $known, 200],
    ['404', 'return 404;', $known, 404],
    ['rejected', "bloom_reject absent \$arg_id zone=raw; $gif", $absent, 404],
    ['feedback-404', "bloom_feedback 404;"
                     . " bloom_reject absent \$arg_id zone=raw; $gif",
     $absent, 404],
    ['except-404', 'bloom_feedback 404 except=on;'
                  . " bloom_reject absent \$arg_id zone=raw; $gif",
     $absent, 404],
    ['refused', 'bloom_reject present $binary_remote_addr zone=raw status=404;'
                . " $gif", $known, 404],
    ['uuid-gif', $gif, $uuid, 200],
    ['uuid', "bloom_reject absent \$arg_id zone=raw; $gif", $uuid, 200],
    ['address', "bloom_reject absent \$binary_remote_addr zone=raw; $gif",
     $known, 200],
    ['link-gif', $gif, $link, 200],
    ['link', "bloom_reject present \$id zone=url; $gif", $link, 200],
    ['links', join(' ', map { "bloom_reject present \$id zone=$_;" }
                            qw(url url2 url3)) . " $gif", $link, 200],
    ['seed', join(' ', map { "bloom_reject present \$id zone=$_;" }
                           qw(url url-seed)) . " $gif", $link, 200],
);

# Keys, with a description, a key form, and the target for the instructions of a
# lookup.

my @keys = (
    [$known, 'raw', 'raw'],
    [$uuid, 'raw', 'raw'],
    [$known, 'raw, in a zone with exceptions', 'excepted'],
    [uc $uuid, 'lower', 'lower', 300],
    [$uuid, 'lower, with nothing to fold', 'lower', 300],
    [$host, 'host, 2 names', 'host', 900],
    ['WWW.Evil.Example.:443', 'host, the previous name spelled differently',
     'host'],
    [$url, 'url, 6 expressions', 'url', 2500],
    [$long, 'url, 30 expressions', 'url', 7000],
    ['http://Evil.example:80/%31/2/../2/3//%34.html?x=1',
     'url, the previous 6 expressions spelled differently', 'url'],
    [$absent, 'raw, absent', 'raw'],
    [uc $uuid, 'lower, present', 'known-lower'],
    [$host, 'host, 2 names, present', 'known-host'],
    [$url, 'url, 6 expressions, present', 'known-url'],
);

my %present = map { $_ => 1 } 0 .. 2, $#keys - 2 .. $#keys;

push @servers, ["key-$_", "bloom_reject present \$arg_id zone=$keys[$_][2];"
                          . " $gif", $keys[$_][0], $present{$_} ? 403 : 200]
    for 0 .. $#keys;

my $t = BloomTest->new(log_level => 'error');

$t->build_image('raw.bloom', [$known, $uuid, "\x7f\0\0\1"]);
$t->build_image('lines.bloom', [$known], '-p', '1e-5');
$t->write_file('good.txt', join '', map { "good$_\n" } 1 .. 10_000);
$t->build_image('excepted.bloom', [$known, 1 .. 1000], '-p', '1e-2', '--except',
                $t->testdir . '/good.txt');
$t->build_image("$_.bloom", ["other.example"], '--form', $_ =~ s/\d//r,
                $_ eq 'url' ? ('--seed', 77) : ())
    for qw(lower host url url2 url3);
$t->build_image('url-seed.bloom', ['third.example'], '--form', 'url',
                '--seed', 77);
$t->build_image("known-$_->[0].bloom", [$_->[1], other($_->[1])],
                '--form', $_->[0])
    for ['lower', $uuid], ['host', $host], ['url', $url];

my %port = map { $servers[$_][0] => 8080 + $_ } 0 .. $#servers;

$t->write_file_expand('nginx.conf', join "\n",
    '%%TEST_GLOBALS%%', 'daemon off;', 'master_process off;', 'events { }',
    'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
    'keepalive_requests 1000000000;',
    (map { "bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;" }
         qw(raw excepted lines lower host url url2 url3 url-seed known-lower
            known-host known-url)),
    'bloom_arg id $id;',
    'limit_req_zone $binary_remote_addr zone=l:1m rate=1000000r/s;',
    (map { "server { listen 127.0.0.1:%%PORT_$port{$_->[0]}%%;"
           . " location / { $_->[1] } }" } @servers),
    '}', '');

my $profile = $t->testdir . '/callgrind';
my $pid = spawn(['valgrind', '--tool=callgrind',
                 "--callgrind-out-file=$profile", $t->_command]);


sub connected {
    my ($name) = @_;

    return IO::Socket::INET->new(PeerAddr => '127.0.0.1:'
                                             . $t->port($port{$name}));
}


# Sends one request. Returns its status.

sub ask {
    my ($socket, $key) = @_;

    print $socket "GET /?id=$key HTTP/1.1\r\nHost: localhost\r\n\r\n";

    my ($status) = (readline($socket) // '') =~ /^HTTP\S+ (\d+)/
        or croak "no answer for $key";
    my $length = 0;

    while ((my $line = readline $socket) ne "\r\n") {
        $length = $1 if $line =~ /^Content-Length: (\d+)/i;
    }

    read $socket, my $body, $length if $length;

    return $status;
}


# Returns what was counted since the last call, for functions including those
# that they call.

my $dumps = 0;

sub counted {
    my ($exit, undef, $err) = run_command(['callgrind_control', '-d', $pid]);
    $exit == 0 or croak "callgrind_control failed: $err";

    my $file = "$profile." . ++$dumps;
    wait_until(sub { -s $file && `tail -n 1 \Q$file\E` =~ /^totals:/ }, 60)
        or croak "callgrind did not write $file";

    my (undef, $text) = run_command(['callgrind_annotate', '--inclusive=yes',
                                     '--auto=no', '--threshold=100',
                                     '--show-percs=no', $file]);

    return map {
        my ($count) = $text =~ /^\s*([\d,]+) .*\b$_\b/m;
        ($count // 0) =~ tr/,//dr;
    } @_;
}


# Returns the instructions of a request to a server: the same request is
# repeated, after some to warm up.

sub measure {
    my ($name, @functions) = @_;

    my ($server) = grep { $_->[0] eq $name } @servers;
    my (undef, undef, $key, $status) = @$server;
    my $socket = connected($name) or croak "$name does not listen";

    my @keys = ($key, $key =~ /\./ ? other($key) : $key);

    ask($socket, $keys[$_ % 2]) for 1 .. 20;
    counted();

    for (1 .. $requests) {
        my $got = ask($socket, $keys[$_ % 2]);
        $got == $status or croak "$name: $got, not $status";
    }

    return map { $_ / $requests } counted(@functions);
}


wait_until(sub { connected('return') }, 120)
    or croak 'nginx does not start under valgrind';

section('Instructions');

my %of = map {
    my ($name) = @$_;
    $name =~ /^key-/ ? () : ($name => [measure($name, 'PROGRAM TOTALS',
                                          'ngx_http_get_flushed_variable')]);
} @servers;

sub whole { return $_[0] ? sprintf '%.0f', $_[0] : '' }

sub row {
    my ($what, $name, $without, $limit) = @_;

    my ($all, $variable) = @{ $of{$name} };
    my $more = defined $without ? $all - $of{$without}[0] : 0;

    return [$what, whole($all), whole($more), whole($variable),
            defined $limit ? "$limit: " . verdict($more <= $limit) : ''];
}

table(['a request', 'instructions', 'more than without',
       'of these, for the variable', 'target'],
      row('`return 200 ""`', 'return'),
      row('`empty_gif`', 'gif'),
      row('`empty_gif` with `limit_req`', 'limit', 'gif'),
      row('`bloom_reject absent $binary_remote_addr`, passing', 'address',
          'gif', 450),
      row('`bloom_reject absent $arg_id`, passing', 'present', 'gif', 450),
      row('this rule with `bloom_feedback 404`', 'feedback', 'gif'),
      row('this rule with `bloom_feedback 404 except=on`', 'except', 'gif'),
      row('`bloom_reject absent $id`, `bloom_arg id $id`, passing', 'arg',
          'gif'),
      row('`bloom_reject present $arg_id`, passing', 'absent', 'gif', 450),
      row('`bloom_reject absent $arg_id`, passing, with two lines', 'lines',
          'gif', 450),
      row('three rules', 'three', 'gif'),
      row('`empty_gif`, with 36 bytes', 'uuid-gif'),
      row('`bloom_reject absent $arg_id`, passing, with 36 bytes', 'uuid',
          'uuid-gif', 450),
      row('`empty_gif`, with a URL of 60 bytes', 'link-gif'),
      row('`bloom_reject present $id` of the form `url`, 10 expressions',
          'link', 'link-gif', 2500),
      row('two of these rules, whose images have the same seed', 'seed',
          'link-gif', 2500 + 900),
      row('three of these rules', 'links', 'link-gif', 2500 + 2 * 900),
      row('`return 404`', '404'),
      row('`bloom_reject present $binary_remote_addr`, rejecting', 'refused',
          '404', 450),
      row('`bloom_reject absent $arg_id`, rejecting', 'rejected', '404', 450),
      row('this rule with `bloom_feedback 404`, rejecting', 'feedback-404',
          '404'),
      row('this rule with `bloom_feedback 404 except=on`, rejecting',
          'except-404', '404'));

line('nginx evaluates the variable: it searches all arguments for `$arg_id`;'
     . ' `$binary_remote_addr` is available at once, as it is for'
     . ' `limit_req`.');
line('');

my @rows;

for (0 .. $#keys) {
    my ($key, $what, undef, $limit) = @{ $keys[$_] };
    my ($n) = measure("key-$_", 'ngx_bloom_lookup');

    $n or croak 'ngx_bloom_lookup() has not been called';

    push @rows, [$what, length $key, whole($n),
                 defined $limit ? "$limit: " . verdict($n <= $limit) : ''];
}

table(['a lookup', 'bytes of the key', 'instructions', 'target'], @rows);

line("$requests requests of each kind on one connection to nginx as one"
     . ' process. The key has 16 bytes unless stated otherwise. Instructions of'
     . ' the kernel are not counted.');
line('');

kill QUIT => $pid;
wait_until(sub { !alive($pid) }, 60) or croak 'nginx does not stop';
