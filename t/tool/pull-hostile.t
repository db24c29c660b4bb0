#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that ngx-bloom-pull leaves the old file whole whatever a server sends,
# that the next pull from a healthy server brings the new image, and that links
# that another user has planted lead nowhere.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Pull;

my $t = pull_test(BloomTest->new(module => 0));
my $dir = $t->testdir;
my $key = public_key('first');
my $before = image(1, 19_999);    # with the lists of $old, written earlier
my ($old, $new) = (image(1, 20_000), image(2, 20_000));
my $half = int(length($new) / 2);
my $sig = signed('ids.bloom', $new, 'first');
my $damaged = substr($new, 0, -1) . chr(ord(substr $new, -1) ^ 1);
my $error_page = "<html><body><h1>502 Bad Gateway</h1></body></html>\n";
my $url = 'http://127.0.0.1:' . $t->port(8081) . '/ids.bloom';

# Returns the signature of an image.

sub signed {
    publish(@_);

    return content("$dir/www/$_[0].minisig");
}

# Responses are functions that get the connection and the request.  `whole` is
# that of a healthy server.

sub whole { return { headers => ['ETag', '"new"'], body => $new } }

sub raw {
    my ($header, @parts) = @_;

    return { raw => sub {
        my ($client) = @_;
        print $client "HTTP/1.1 $header\r\n\r\n", @parts;
    } };
}

sub endless {
    my ($header, $part) = @_;

    return { raw => sub {
        my ($client) = @_;
        print $client "HTTP/1.1 200 OK\r\n$header";
        1 while print $client $part;
    } };
}

sub chunk { return sprintf("%x\r\n", length $_[0]) . "$_[0]\r\n" }

my $chunked = "Transfer-Encoding: chunked\r\n\r\n";

# name => [the line, the response to GET image, to GET image.minisig]

my @cases = (
    ['half a file' => qr/transfer closed with \d+ bytes remaining/,
     raw('200 OK' . "\r\nContent-Length: " . length $new,
         substr $new, 0, $half)],
    ['half a file in chunks' => qr/error: /,
     raw("200 OK\r\nTransfer-Encoding: chunked",
         chunk(substr $new, 0, $half))],
    ['half a file that ends with the connection' => qr/its signature is by/,
     raw('200 OK', substr $new, 0, $half)],
    ['one changed bit' => qr/its signature is by another key, or of another/,
     { body => substr($new, 0, $half) . chr(ord(substr $new, $half) ^ 1)
               . substr $new, $half + 1 }],
    ['an empty file' => qr/refused: .*empty/, { body => '' }],
    ['200 with an error page' => qr/its signature is by/,
     { body => $error_page }, { body => $error_page }],
    ['another file' => qr/its signature is of the file "urls\.bloom"/,
     { body => image(3, 10) }, signed('urls.bloom', image(3, 10), 'first')],
    ['a signed file that is no image' => qr/is not a Bloom filter image/,
     { body => $error_page }, signed('ids.bloom', $error_page, 'first')],
    ['a signed image that is damaged' => qr/is damaged: /,
     { body => $damaged }, signed('ids.bloom', $damaged, 'first')],
    ['an older image' => qr/earlier than/,
     { body => image(0, 10) }, signed('ids.bloom', image(0, 10), 'first')],
    ['an image of before the last exception' => qr/was written at .*, not later/,
     { body => $before }, signed('ids.bloom', $before, 'first')],
    ['the signature of another file' => qr/its signature is by another key, or/,
     whole(), signed('ids.bloom', $old, 'first')],
    ['a missing signature' => qr/refused: .*its signature: .*404/, whole(),
     { status => 404, body => $sig }],
    ['a signature by another key' => qr/its signature is by another key/,
     whole(), signed('ids.bloom', $new, 'second')],
    ['an endless signature' => qr/error: .*\.minisig: /, whole(),
     endless("\r\n", 'untrusted comment: ' x 1000)],
    ['an endless file' => qr/larger than --max-size/,
     endless("\r\n", 'a' x 65536)],
    ['an endless file in chunks' => qr/larger than --max-size/,
     endless($chunked, chunk('a' x 65536))],
    ['a huge file' => qr/larger than --max-size/,
     endless("Content-Length: 1099511627776\r\n\r\n", 'a' x 65536)],
    ['endless headers' => qr/error: /, endless('', "X-A: a\r\n" x 1000)],
    ['a silent server' => qr/error: .*timed out/,
     { raw => sub { sleep 60 } }],
    ['a slow server' => qr/error: .*timed out/,
     { raw => sub {
         my ($client) = @_;
         $client->autoflush;
         print $client "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
         select undef, undef, undef, 0.2 while print $client 'a';
     } }],
    ['redirects in a circle' => qr/Maximum \(5\) redirects followed/,
     { status => 302, headers => ['Location', '/ids.bloom'] }],
    ['a redirect to a file of this machine' => qr/Protocol "file" not supported/,
     { status => 302, headers => ['Location', 'file:///etc/hostname'] }],
    ['an answer 404' => qr/error: .*404/, { status => 404, body => $new }],
    ['an answer 500' => qr/error: .*500/, { status => 500, body => $new }],
    ['an answer 206' => qr/the server answers 206/,
     { status => 206, body => $new }],
    ['an answer 304' => qr/the server answers 304 although/,
     { status => 304 }],
    ['a compressed file' => qr/its signature is by/,
     { headers => ['Content-Encoding', 'gzip'], body => "\x1f\x8b" . $new }],
    ['another protocol' => qr/error: /, { raw => sub {
        my ($client) = @_;
        print $client "SSH-2.0-OpenSSH_9.2\r\n";
    } }],
);

my %case = map { $$_[0] => $_ } @cases;

# The case is a file, because the server is another process.

sub case { $t->write_file('case', $_[0]) }

my $server = $t->backend(8081, sub {
    my ($request) = @_;

    my $case = $case{content("$dir/case")} // [];
    my $signature = $request->{uri} =~ /minisig$/;

    return $signature ? $$case[3] // $sig : $$case[2] // whole();
});

my @pull = ($url, 'ids.bloom', '--public-key', $key, '--max-time', 2,
            '--max-size', '1M');

for my $case (@cases) {
    my ($name, $line) = @$case;

    install('ids.bloom', $old, 0640);
    case($name);
    pull_is(2, $line, $name, @pull);
    file_is('ids.bloom', $old, "$name: the old file is whole", 0640);

    my $largest = 0;
    -s > $largest and $largest = -s _ for glob "$dir/node/.ids.bloom.pull/*";
    cmp_ok($largest, '<=', 2**20 + 1024, "$name: no file is larger than allowed");

    case('');
    my ($exit, $out, $err) = pull(@pull[0 .. 3]);
    is($exit, 0, "$name: the next pull succeeds") or diag("$out$err");
    file_is('ids.bloom', $new, "$name: the next pull brings the image", 0640);
}


# Links and directories of other users

{
    case('');

    my $victim = $t->write_file('victim', 'mine');
    my $work = "$dir/node/.ids.bloom.pull";
    my $made = sub {    # how the work directory and the file's directory are
        my ($mode, $above) = @_;

        (run_command(['rm', '-rf', $work]))[0] == 0 or die 'rm';
        mkdir $work or die "mkdir: $!";
        chmod $mode, $work or die "chmod: $!";
        chmod $above // 0755, "$dir/node" or die "chmod: $!";
        install('ids.bloom', $old, 0640);
    };
    my $plant = sub {
        for (qw(minisig said image header etag of reload)) {
            unlink "$work/$_";
            symlink $victim, "$work/$_" or die "symlink: $!";
        }
    };
    my $harmless = sub {
        my ($what) = @_;

        is(content($victim), 'mine', "$what: the target of the links stays");
        ok(!-e "$dir/absent", "$what: no target is created");
    };
    my $refused = sub {
        my ($why, $what) = @_;

        pull_is(2, $why, $what, @pull);
        $harmless->($what);
        file_is('ids.bloom', $old, "$what: the old file is whole", 0640);
    };

    $made->(0700);
    $plant->();
    unlink "$work/lock", "$work/header";
    symlink "$dir/absent", "$work/$_" or die "symlink: $!" for 'lock', 'header';
    pull_is(0, qr/new: /, 'planted links', @pull);
    $harmless->('planted links');
    file_is('ids.bloom', $new, 'planted links: the image is in place', 0640);

    $made->(0700);
    link $victim, "$work/$_" or die "link: $!" for 'minisig', 'said';
    pull_is(0, qr/new: /, 'planted hard links', @pull);
    $harmless->('planted hard links');

    $made->(0700);
    rename $work, "$dir/elsewhere" or die "rename: $!";
    symlink "$dir/elsewhere", $work or die "symlink: $!";
    $refused->(qr/error: .*ids\.bloom\.pull is a link, or belongs to another user, or others can write there: remove it/,
               'a work directory that is a link');
    unlink $work;
    is_deeply([glob "$dir/elsewhere/*"], [], 'nothing is written behind the link');

    for my $mode (0770, 0707, 0777) {
        my $what = sprintf 'a work directory of mode %o', $mode;

        $made->($mode);
        $plant->();
        $refused->(qr/others can write there: remove it/, $what);
    }

    for my $mode (0757, 01777) {
        my $what = sprintf 'a file in a directory of mode %o', $mode;

        $made->(0700, $mode);
        $refused->(qr/other users can replace files in \S+: run this as the owner/,
                   $what);
    }

    SKIP: {
        skip 'only root can make directories of other users', 1 if $> != 0;

        my $nobody = getpwnam 'nobody';

        $made->(0700);
        $plant->();
        chown $nobody, 0, $work or die "chown: $!";
        $refused->(qr/belongs to another user/, 'a work directory of a user');

        $made->(0700);
        chown $nobody, 0, "$dir/node" or die "chown: $!";
        $refused->(qr/other users can replace files in/,
                   'a file in a directory of a user');
        chown 0, 0, "$dir/node" or die "chown: $!";
    }

    $made->(0700);

    my $prom = "$dir/node/pull.prom";
    symlink $victim, "$prom.new" or die "symlink: $!";
    pull_is(0, qr/new: /, 'a link in place of the metrics', @pull, '--metrics',
            $prom);
    $harmless->('a link in place of the metrics');
    is(sprintf('%o', (stat $victim)[2] & 07777), sprintf('%o', 0666 & ~umask),
       'the target of the link keeps its mode');
    like(content($prom), qr/last_success/, 'the metrics are written');
}


# A disk that is full, if the test may mount a small one: it has room for a part
# of the image, or for all of it and not for the signature.

for my $size ('40k', '60k') {
    my $disk = "$dir/node/$size";

    SKIP: {
        mkdir $disk or die "mkdir: $!";
        skip 'cannot mount a file system', 1
            if $> != 0 || (run_command(['mount', '-t', 'tmpfs', '-o',
                                        "size=$size,mode=0755", 'tmpfs',
                                  $disk]))[0] != 0;

        my $small = image(1, 10);

        install("$size/ids.bloom", $small);
        pull_is(2, qr/error: .*(?:cannot be written|\.minisig: )/,
                "a full disk of $size", $url, "$size/ids.bloom", @pull[2, 3]);
        file_is("$size/ids.bloom", $small, 'a full disk: the old file is whole');

        (run_command(['umount', $disk]))[0] == 0 or die "umount $disk";
    }
}

done_testing;
