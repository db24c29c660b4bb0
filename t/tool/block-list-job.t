#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests conf-examples/block-list-job: the script that fetches a published list,
# from a web server that may be broken or hostile, and the rebuild that checks
# the list, builds an image from it and has nginx load it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Jobs qw(job_path text unsafe_directories);
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Zones;
use Cwd qw(abs_path);
use Digest::MD5 qw(md5_hex);
use File::Basename qw(dirname);
use IO::Compress::Gzip qw(gzip);
use POSIX qw(strftime);

my $examples = abs_path(dirname(__FILE__) . '/../../conf-examples');
my $fetch = "$examples/block-list-job/fetch-list.sh";
my $rebuild = "$examples/nightly/rebuild.sh";

plan skip_all => 'there is no curl'
    if (run_command(['sh', '-c', 'curl --version']))[0] != 0;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $programs = job_path($t);

mkdir "$dir/small" or die "mkdir: $!";


# ---- the publisher ----

my @urls = map { "http://evil$_.example/malware/$_.exe" } 1 .. 1000;
my @rules = map { s{^http://(.*)}{||$1^\$all}r } @urls;
my $html = "<html>\n<head><title>502 Bad Gateway</title></head>\n"
           . "<body>\n<center><h1>502 Bad Gateway</h1></center>\n"
           . "</body>\n</html>\n";

# Publishes a list that is so many seconds old, and returns its time.

sub publish {
    my ($age, @lines) = @_;

    my $time = time - $age;
    my $path = $t->write_file('published', text(@lines));
    utime $time, $time, $path or die "utime: $!";

    return $time;
}

sub http_date { return strftime('%a, %d %b %Y %T GMT', gmtime $_[0]) }

sub compressed {
    my ($text) = @_;

    gzip(\$text, \my $compressed) or die 'gzip fails';

    return $compressed;
}

# What other compressors make of a text.

my @compressors = qw(bzip2 xz zstd);

sub compressed_by {
    my ($command, $text) = @_;

    my ($exit, $compressed) = run_command([$command, '-c'], stdin => $text);

    $exit == 0 or die "$command fails";

    return $compressed;
}

# A response with a length, one in chunks, and one that ends with the
# connection.

sub raw { my @parts = @_; return { raw => sub { print {$_[0]} @parts } } }
sub chunk { return sprintf("%x\r\n", length $_[0]) . "$_[0]\r\n" }

my $ok = "HTTP/1.1 200 OK\r\n";
my $chunked = "${ok}Transfer-Encoding: chunked\r\n\r\n";

sub endless {
    my ($header, $part) = @_;

    return { raw => sub {
        my ($client) = @_;

        print $client $header;
        1 while print $client $part;
    } };
}

my %published = (
    '/empty' => '',
    '/ten' => text(@rules[0 .. 9]),
    '/google' => text(@rules, '||google.com^'),
    '/slash' => text(@urls, '/'),
    '/adblock-slash' => text(@rules, '/', '||*^', '||'),
    '/no-urls' => text(@rules, map { "www$_.example##.ad" } 1 .. 100),
    '/html' => $html,
    '/half-of-it' => text(@rules[0 .. 499]),
    '/cut-a-little' => text(@rules[0 .. 949]),
    '/long-line' => text(@rules, 'http://a.example/' . 'a' x 2_000_000),
    '/zip' => "PK\3\4\24\0\0\0\10\0" . join('', map { chr } 0 .. 255) x 20,

    '/truncated' => { headers => ['Content-Length', length text(@rules)],
                      body => text(@rules[0 .. 499]) },
    '/truncated-chunks' => raw($chunked, chunk(text(@rules[0 .. 499]))),
    '/no-length' => raw("$ok\r\n", text(@rules[0 .. 499])),
    '/no-header' => raw(text(@rules)),
    '/not-http' => raw("SSH-2.0-OpenSSH_9.2\r\n"),
    '/endless' => endless("$ok\r\n", "http://evil.example/\n" x 1000),
    '/endless-chunks' => endless($chunked, chunk("http://e.example/\n" x 1000)),
    '/endless-line' => endless("${ok}Content-Length: 1099511627776\r\n\r\n",
                               'a' x 65536),
    '/endless-header' => endless($ok, 'X-A: ' . 'a' x 1000 . "\r\n"),
    '/bomb' => compressed("a.example/\n" x 1_000_000),
    '/bomb-line' => compressed("\0" x 10_000_000),
    '/bomb-encoding' => { headers => ['Content-Encoding', 'gzip'],
                          body => compressed("a.example/\n" x 1_000_000) },
    (map { ("/bomb.$_" => compressed_by($_, "a.example/\n" x 1_000_000),
            "/truncated.$_" => substr(compressed_by($_, text(@rules)), 0, 900),
            "/plain.$_" => compressed_by($_, text(@rules))) } @compressors),
    '/truncated.gz' => substr(compressed(text(@rules)), 0, 2000),

    '/moved' => { status => 302, headers => ['Location', "/list\x1b[2J"] },
    '/missing' => { status => 404, body => text(@rules) },
    '/failed' => { status => 500, body => text(@rules) },
    '/partial' => { status => 206, body => text(@rules),
                    headers => ['Content-Range', 'bytes 0-9/10'] },
    '/no-content' => { status => 204 },
    '/last-year' => { headers => ['Last-Modified',
                                  http_date(time - 365 * 86400),
                                  'ETag', '"last year"'],
                      body => text(@rules) },
    '/tomorrow' => { headers => ['Last-Modified', http_date(time + 86400)],
                     body => text(@rules) },
    '/plain.gz' => compressed(text(@rules)),
    '/no-line-end' => join("\n", @rules),
    '/not-modified' => { status => 304 },
    '/silent' => { raw => sub { sleep 60 } },
    '/waits' => { raw => sub {
        my ($client) = @_;
        my $text = text(@rules);

        $client->autoflush;
        print $client "${ok}Content-Length: " . length($text) . "\r\n\r\n",
                      substr $text, 0, 20_000;
        wait_until(sub { -e "$dir/go" });
        print $client substr $text, 20_000;
    } },
    '/slow' => { raw => sub {
        my ($client) = @_;

        $client->autoflush;
        print $client "${ok}Content-Length: 1000\r\n\r\n";
        select undef, undef, undef, 0.1 while print $client 'a';
    } },
);

# GET /list is the list that is published at the moment.

sub list {
    my ($headers) = @_;

    my $text = $t->read_file('published');
    my $etag = '"' . md5_hex($text) . '"';

    return { status => 304, headers => ['ETag', $etag] }
        if ($headers->{'if-none-match'} // '') eq $etag;

    return { headers => ['Last-Modified',
                         http_date((stat "$dir/published")[9]),
                         'ETag', $etag],
             body => $text };
}

my $server = $t->backend(8081, sub {
    my ($request) = @_;

    return $request->{uri} eq '/list' ? list($request->{headers})
           : $published{$request->{uri}} // "the site\n";
});

sub url { return 'http://127.0.0.1:' . $t->port(8081) . $_[0] }


# ---- the job ----

$t->write_file('entries.txt', "http://listed.test/\n");
$t->write_file('exceptions.txt', text('# of a customer', "$urls[2]"));
$t->write_file('must-have.txt', text('# old', '', $urls[0], '  ', $urls[999],
                                     'listed.test/x'));
$t->write_file('must-not-have.txt', text('https://www.google.com/search?q=a',
                                         "  # \344\r", 'https://shop.example/',
                                         $urls[2]));

# The bounds of the example's settings.

my @bounds = do {
    open my $fh, '<', "$examples/block-list-job/urlhaus.env" or die "open: $!";
    map { /^(MAX_LOSS|MAX_GROWTH)=(.*)$/ ? ($1, $2) : () } <$fh>;
};

sub settings {
    my ($path, %more) = @_;

    my $list = "$dir/list.txt";
    my $url = $path =~ /:/ ? $path : url($path);
    my $site = 'http://127.0.0.1:' . $t->port(8080);

    return (
        PATH => $programs, TMPDIR => "$dir/tmp",
        MAX_SIZE => '1M', MAX_TIME => 20,
        SOURCE => "'$fetch' '$url' '$list' && cat '$list'",
        KEY_FILES => "$dir/entries.txt", EXCEPTIONS => "$dir/exceptions.txt",
        KEEP_KEYS => "$dir/kept",
        AS_OF => "date -r '$list' +%s", IMAGE => "$dir/bad.bloom",
        BUILD_OPTIONS => '--form url --from auto --max-skipped 5% -p 1e-7'
                         . ' -n 2k',
        ZONE_URL => "$site/bloom/zones/bad", NGINX_RELOAD => '',
        MIN_KEYS => 500, @bounds, MUST_HAVE => "$dir/must-have.txt",
        MUST_NOT_HAVE => "$dir/must-not-have.txt", WAIT => 20,
        CHECK => 'curl -s -o /dev/null -w %{http_code}'
                 . " '$site/go?url=http://listed.test/' | grep -qx 403",
        %more,
    );
}

# Runs the job and returns its exit status and what it prints.

sub job {
    my ($path, %more) = @_;

    my $limits = delete $more{limits} // [];
    my $again = delete $more{again} // [];
    my ($exit, $out, $err) = run_command([@$limits, $rebuild, @$again],
                                         env => { settings($path, %more) });

    return ($exit, "$out$err");
}

sub succeeds {
    my ($what, $path, %more) = @_;

    my ($exit, $said) = job($path, %more);

    is($exit, 0, "$what: the job succeeds") or diag($said);
    like($said, qr/nginx (?:serves|was told to load) \S+bad\.bloom with \d+ /,
         "$what: the job says what serves");
    no_rests($what);
}

# Tests that the job fails, says why, and that the old list serves on.

sub is_refused {
    my ($what, $path, $message, %more) = @_;

    my $image = $t->read_file('bad.bloom');
    my $build = build_id($t, 'bad');
    my ($exit, $said) = job($path, %more);

    is($exit, 1, "$what: the exit status is 1");
    like($said, $message, "$what: the job says why");
    like($said, qr/nothing was changed: \S+bad\.bloom, of [-\d]+T\S+Z, stays$/m,
         "$what: the job says which image stays");
    unlike($said, qr/[^\n\x20-\x7e]/, "$what: no control characters get out");
    ok($t->read_file('bad.bloom') eq $image, "$what: the image stays");
    is(build_id($t, 'bad'), $build, "$what: nginx serves the same image");
    is(join(' ', map { status($_) } $urls[0], $urls[999], $urls[2],
            'https://google.com/', 'http://listed.test/a'),
       '403 403 200 200 403', "$what: nginx decides as before");
    no_rests($what);
}

# A refused image may stay, as bad.bloom.new.

sub no_rests {
    my ($what) = @_;

    is_deeply([grep { !/\.bloom\.new$/ }
                    glob("$dir/tmp/* $dir/*.saved $dir/*.new $dir/*.tmp-*")],
              [], "$what: no temporary file is left");
}

sub status { return $t->get("/go?url=$_[0]")->status }

sub start {
    configure($t, ['zone=bad file=bad.bloom'], api => 1,
              http => 'bloom_arg url $url;', server => <<'CONF');
        location = /go {
            bloom_reject present $url zone=bad invalid=fire empty=fire;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
    $t->run;
}


my $published = publish(5000, @rules);

subtest 'the first image is built before nginx runs' => sub {
    my ($exit, $said) = job('/list', CHECK => '');
    is($exit, 0, 'the job succeeds') or diag($said);
    like($said, qr/is the first image: start or reload nginx/,
         'the job says what to do');
    no_rests('the first run');

    start();
    is(status($urls[0]), 403, 'nginx refuses a listed URL');
    is(status($urls[2]), 200, 'nginx passes an exception');
    is(status('http://listed.test/'), 403, 'nginx refuses an entry of my own');
    is(status('http://other.example/'), 200, 'nginx passes other URLs');
};


subtest 'an unchanged list is not fetched again' => sub {
    my $inode = (stat "$dir/list.txt")[1];
    succeeds('unchanged', '/list');

    my ($last) = grep { $_->{uri} eq '/list' } reverse $server->requests;
    is($last->{headers}{'if-modified-since'}, http_date($published),
       'the server is told the time of the list');
    is($last->{headers}{'if-none-match'}, '"' . md5_hex(text(@rules)) . '"',
       'the server is told the ETag of the list');
    is((stat "$dir/list.txt")[1], $inode, 'the file stays');
    is((stat "$dir/list.txt")[9], $published, 'the file has the time');

    $t->write_file('entries.txt', "http://listed.test/\nhttp://urgent.test/\n");
    succeeds('an urgent entry of my own', '/list');
    is(status('http://urgent.test/x'), 403, 'nginx refuses the urgent entry');
};


subtest 'a changed list replaces the old one' => sub {
    publish(4000, @rules, '||new.example^');
    succeeds('changed', '/list');
    is(status('http://new.example/'), 403, 'nginx refuses a new URL');
    is(status($urls[1]), 403, 'nginx refuses an old URL');

    my $previous = "$dir/bad.bloom.previous";
    is(($t->run_tool('test', $previous, $urls[0]))[0], 0,
       'the previous image stays in a file');
    is(($t->run_tool('test', $previous, 'http://new.example/'))[0], 1,
       'the previous image is the one before');

    publish(3000, @rules);
    succeeds('changed back', '/list');
    is(status('http://new.example/'), 200, 'nginx passes what is not listed');
};


my %refused = (
    'an empty list' => ['/empty', qr/the list is empty/],
    'a truncated list' => ['/truncated', qr/curl: \(18\)/],
    'truncated chunks' => ['/truncated-chunks', qr/curl: \(18\)/],
    'a list without a length' => ['/no-length', qr/has no Content-Length/],
    'a list without a header' => ['/no-header', qr/curl: \(1\)/],
    'a server of another protocol' => ['/not-http', qr/curl: \(1\)/],
    'an endless list' => ['/endless', qr/is larger than MAX_SIZE=1M/],
    'endless chunks' => ['/endless-chunks', qr/is larger than MAX_SIZE=1M/],
    'an endless line' => ['/endless-line', qr/is larger than MAX_SIZE=1M/],
    'an endless header' => ['/endless-header',
                            qr/cannot be (?:fetched|written)/],
    'a gzip bomb' => ['/bomb', qr/is larger than MAX_SIZE=1M/],
    'a gzip bomb of one line' => ['/bomb-line', qr/is larger than MAX_SIZE=1M/],
    'a gzip bomb as an encoding' => ['/bomb-encoding',
                                     qr/is larger than MAX_SIZE=1M/],
    'a truncated gzip' => ['/truncated.gz', qr/cannot be decompressed/],
    (map { ("a bomb of $_" => ["/bomb.$_", qr/is larger than MAX_SIZE=1M/],
            "a truncated list of $_" => ["/truncated.$_",
                                         qr/cannot be decompressed/]) }
         @compressors),
    'a redirect' => ['/moved', qr/redirects to ".*": if that is right/],
    'the status 404 with a list' => ['/missing',
                                     qr/the server answers 404, not 200/],
    'the status 500 with a list' => ['/failed',
                                     qr/the server answers 500, not 200/],
    'a part' => ['/partial', qr/the server answers 206, not 200/],
    'no content' => ['/no-content', qr/the server answers 204, not 200/],
    'a list of last year' => ['/last-year',
                              qr/the list is of .* and \S+list\.txt is of/],
    'a silent server' => ['/silent', qr/not complete after MAX_TIME=1/,
                          MAX_TIME => 1],
    'a slow server' => ['/slow', qr/not complete after MAX_TIME=1/,
                        MAX_TIME => 1],
    'no server' => ['http://127.0.0.1:1/', qr/curl: \(7\)/],
    'a server without TLS' => ['https://127.0.0.1:' . $t->port(8080) . '/list',
                               qr/curl: \(35\)/],
    'a file' => ["file://$dir/published", qr/curl: \(1\)/],
    'a wrong MAX_SIZE' => ['/list', qr/MAX_SIZE=much is not a size/,
                           MAX_SIZE => 'much'],
);

for my $what (sort keys %refused) {
    my ($path, $message, %more) = @{ $refused{$what} };

    subtest "$what is not fetched" => sub {
        my $inode = (stat "$dir/list.txt")[1];

        is_refused($what, $path, qr/$message.*SOURCE failed with status 1/s,
                   %more);
        is((stat "$dir/list.txt")[1], $inode, 'the fetched list stays');
    };
}

my %rejected = (
    'a list of ten entries' => ['/ten', qr/and --min-keys demands 500/],
    'half of the list' => ['/half-of-it', qr/--max-loss allows 20 %/],
    'a list without a sample' => [
        '/cut-a-little', qr/it lacks the key .* of --must-have .*refused/s],
    'a list with google.com' => [
        '/google', qr/, by "google\.com\/", of line .* --must-not-have .*refused/s],
    'a list with "/"' => ['/slash',
                          qr/line 1001: "\/" .*cannot be built/s],
    'a list that is about other things' => [
        '/no-urls', qr/--max-skipped.*cannot be built/s],
    'a page of HTML' => ['/html', qr/is a web page.*cannot be built/s],
    'a zip file' => ['/zip', qr/cannot be built/],
    'a long line' => ['/long-line', qr/cannot be built/, MAX_SIZE => '8M'],
);

for my $what (sort keys %rejected) {
    my ($path, $message, %more) = @{ $rejected{$what} };

    subtest "$what is fetched, and serves nobody" => sub {
        is_refused($what, $path, $message, %more);
    };
}

subtest 'a good list after bad ones is taken, although it is older' => sub {
    $published = publish(2900, @rules);
    succeeds('recovered', '/list');
    is((stat "$dir/list.txt")[9], $published, 'the file has its time');
};


subtest 'a list that is refused is refused again, if it is unchanged' => sub {
    publish(2800, @rules[0 .. 499]);
    is_refused($_, '/list', qr/--max-loss allows 20 %/)
        for 'fetched', 'not modified';

    publish(2700, @rules);
    succeeds('corrected', '/list');
};


subtest 'lists in other shapes are taken' => sub {
    succeeds("compressed by $_", "/plain.$_") for 'gz', @compressors;
    succeeds('without a last line end', '/no-line-end');
    is(status($urls[999]), 403, 'the last line is there');

    succeeds('with lines that would match everything', '/adblock-slash');
    is(status('http://other.example/'), 200, 'such lines match nothing');

    succeeds('with a time in the future', '/tomorrow');
    cmp_ok((stat "$dir/list.txt")[9], '<=', time, 'the file has no such time');
    is_refused('after that, an older list', '/last-year',
               qr/the older list is right, remove the file, .*CHANGE=1/);

    unlink "$dir/list.txt";
    publish(0, @rules);
    succeeds('after the file was removed', '/list', CHANGE => 1);
};


subtest 'a first request that gets 304 has no list' => sub {
    unlink "$dir/list.txt";
    is_refused('304 without a condition', '/not-modified',
               qr/304 to a first request; there is no \S+list\.txt/);
    publish(0, @rules);
    succeeds('afterwards', '/list');
};


subtest 'a disk that fills leaves everything as it was' => sub {
    my $limited = sub {
        return ['bash', '-c', "trap '' XFSZ; ulimit -f $_[0]; exec \"\$@\"",
                'bash'];
    };

    publish(0, @rules, '||new.example^');
    is_refused('no room for the list', '/list',
               qr/curl: \(23\).*the list cannot be written/s,
               limits => $limited->(10));
    is_refused('no room for the decompressed list', '/plain.gz',
               qr/gzip: .*the list cannot be decompressed/s,
               limits => $limited->(20));
    is_refused('no room for the image', '/list', qr/the image cannot be built/,
               limits => $limited->(100),
               BUILD_OPTIONS => '--form url --from auto -p 1e-7 -n 200k');

    SKIP: {
        my @small = ('unshare', $> == 0 ? '-m' : '-rm', 'sh', '-c',
                     "mount -t tmpfs -o size=20k,mode=0755 none '$dir/small'"
                     . ' && exec "$@"', 'sh');
        skip 'no file system can be mounted', 2
            if (run_command([@small, 'true']))[0] != 0;

        my $source = { settings('/list') }->{SOURCE};
        $source =~ s{/list\.txt}{/small/list.txt}g;

        is_refused('a full disk below TMPDIR', '/list',
                   qr/No space left.*SOURCE failed/s,
                   limits => \@small, TMPDIR => "$dir/small");
        is_refused('a full disk below the list', '/list',
                   qr/curl: \(23\).*the list cannot be written/s,
                   limits => \@small, SOURCE => $source);
    }

    succeeds('with room again', '/list');
    is(status('http://new.example/'), 403, 'nginx refuses the new URL');
};


subtest 'a server whose certificate is not trusted has no list' => sub {
    plan skip_all => 'there is no openssl'
        if (run_command(['sh', '-c', 'openssl version']))[0] != 0;

    my ($exit, undef, $err) = run_command(
        ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', 2,
         '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1',
         '-keyout', "$dir/server.key", '-out', "$dir/server.pem"]);
    is($exit, 0, 'there is a certificate') or diag($err);

    my $text = text(@rules);
    $t->write_file('tls/list', "${ok}Connection: close\r\nContent-Length: "
                               . length($text) . "\r\n\r\n$text");
    my $port = $t->port(8443);
    my $pid = spawn(['sh', '-c', "cd '$dir/tls' && exec openssl s_server -quiet"
                     . " -HTTP -cert ../server.pem -key ../server.key"
                     . " -accept 127.0.0.1:$port"]);
    my $url = "https://127.0.0.1:$port/list";

    wait_until(sub {
        (run_command(['curl', '-sk', $url]))[1] eq $text
    }) or die 'openssl does not serve';

    is_refused('a wrong certificate', $url,
               qr/curl: \(60\).*cannot be fetched/s);
    succeeds('a trusted certificate', $url,
             CURL_OPTIONS => "--cacert $dir/server.pem", CHANGE => 1);

    kill 'KILL', $pid;
    waitpid $pid, 0;
    publish(0, @rules);
};


# Runs fetch-list.sh alone.

sub fetch {
    my ($path, $file, %more) = @_;

    my ($exit, $out, $err)
        = run_command(['sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', $dir,
                       $fetch, url($path), $file],
                      env => { settings('/list'), %more });

    return ($exit, "$out$err");
}


subtest 'of two runs at once the second one waits' => sub {
    unlink "$dir/go";
    $t->write_file('twice.txt', "old\n");

    my $pid = spawn([$fetch, url('/waits'), "$dir/twice.txt"],
                    env => { settings('/list') });
    ok(wait_until(sub { -s "$dir/twice.txt.new/list" }),
       'the first run has half of the list');

    my ($exit, $said) = fetch('/list', 'twice.txt', MAX_TIME => 1);
    is($exit, 1, 'the second run ends with status 1 after MAX_TIME');
    like($said, qr/another run fetches the list; twice\.txt stays\n\z/,
         'the second run says why');
    is($t->read_file('twice.txt'), "old\n", 'the file is as it was');

    $t->write_file('go', '');
    waitpid $pid, 0;
    is($?, 0, 'the first run succeeds');
    ok($t->read_file('twice.txt') eq text(@rules), 'the list is whole');
};


subtest 'files with odd names' => sub {
    for my $name ('-f', "a  b\nc", 'x*', '$(id)', "'", '--') {
        my ($exit, $said) = fetch('/list', $name);
        is("$exit $said", '0 ', "the list is fetched into $name");
        ok($t->read_file($name) eq text(@rules), "$name has the list");
        is((fetch('/list', $name))[0], 0, "$name is not fetched again");
    }

    mkdir "$dir/directory" or die "mkdir: $!";
    my ($exit, $said) = fetch('/list', 'directory');
    is($exit, 1, 'a directory is refused');
    like($said, qr/directory is a directory; /, 'the script says so');

    # links that somebody else put beside the file

    $t->write_file('other', 'of somebody else');
    symlink "$dir/other", "$dir/linked$_" or die "symlink: $!"
        for '', '.header', '.new', '.lock';

    is((fetch('/list', 'linked'))[0], 0, 'links are no obstacle');
    ok($t->read_file('linked') eq text(@rules), 'the link becomes the list');
    is($t->read_file('other'), 'of somebody else',
       'the file that the links name stays');
};


subtest 'exceptions are keys of all lists, in any spelling' => sub {
    my @key_files = map { "$dir/$_" } qw(more.txt hosts.txt more.csv);

    $t->write_file('more.txt', text('# mine', 'http://mine1.test/'));
    $t->write_file('hosts.txt', text(map { "0.0.0.0 $_.test" }
                                         'hosts1', 'hosts2'));
    $t->write_file('more.csv', text('id,url',
        map { qq("$_","http://csv$_.test/x?y") } 1 .. 2));
    $t->write_file('ex.txt',
                   "# \344\n# a\0b\nHTTPS://Mine1.test:443\nhosts1.test\r\n"
                   . "csv1.test/x?y#z\n$urls[1]\n");

    my %more = (KEY_FILES => join(' ', "$dir/entries.txt", @key_files),
                EXCEPTIONS => "$dir/ex.txt", MUST_NOT_HAVE => '');

    publish(0, @rules);
    succeeds('exceptions', '/list', %more);
    is(join(' ', map { status($_) }
            'http://mine1.test/', 'http://hosts1.test/',
            'http://csv1.test/x?y', $urls[1]),
       '200 200 200 200', 'nginx passes the exceptions');
    is(join(' ', map { status($_) }
            'http://hosts2.test/', 'http://csv2.test/x?y', $urls[2],
            'http://listed.test/', @urls[998, 999]),
       '403 403 403 403 403 403', 'nginx refuses all others');

    succeeds('as before', '/list');
};


subtest 'files of entries without a key are left out' => sub {
    $t->write_file('mine.txt', '');
    $t->write_file('c.txt', "# \344\n\n! x\n  \r\n");
    succeeds("a file that $_->[0]", '/list', %{ $_->[1] }) for
        ['is empty', { KEY_FILES => "$dir/entries.txt $dir/mine.txt" }],
        ['has only comments', { KEY_FILES => "$dir/entries.txt $dir/c.txt" }];
    is_refused('a file that is missing', '/list', qr/cannot be built/,
               KEY_FILES => "$dir/missing.txt");
};


subtest 'a CHECK that fails' => sub {
    publish(0, @rules, '||check.example^');
    my ($exit, $said) = job('/list', CHECK => 'false', WAIT => 1);
    is($exit, 2, 'a CHECK that fails ends with status 2');
    like($said, qr/CHECK fails; the new image is in place/,
         'the job says what is in place');
    is(status('http://check.example/'), 403, 'the new image serves');
    no_rests('a CHECK that fails');

    # the way back that docs/block-list-job.md shows

    rename "$dir/bad.bloom.previous", "$dir/bad.bloom" or die "rename: $!";
    is(api($t, POST => 'zones/bad/reload')->status, 200,
       'nginx loads the previous image');
    is(status('http://check.example/'), 200, 'the previous image serves');
};


subtest 'again builds from the last keys and the entries of now' => sub {
    publish(600, @rules, '||again.example^');
    unlink "$dir/list.txt";
    succeeds('the list', '/list', CHANGE => 1);
    is((stat "$dir/kept")[2] & 07777, 0600,
       'only the user can read the kept keys');
    my $as_of = (stat "$dir/kept")[9];

    my @again = (again => ['again'], SOURCE => 'exit 3');
    $t->write_file('entries.txt', text('http://listed.test/',
                                       'http://now.test/'));
    $t->write_file('exceptions.txt', text($urls[2], 'again.example'));
    is_refused('the publisher is down', '/missing', qr/SOURCE failed/);
    is(status('http://now.test/'), 200, 'the new entry is not there');
    succeeds('again', '/list', @again);
    is(status('http://now.test/'), 403, 'again, the new entry is there');
    is(status('http://again.example/'), 200, 'and the exception holds');
    is((stat "$dir/kept")[9], $as_of, 'the kept keys stay as they are');

    # a list that is refused is not kept

    $t->write_file('exceptions.txt', text($urls[2]));
    is_refused('half of the list', '/half-of-it', qr/--max-loss/);
    is_refused('again without much', '/list', qr/--must-have/, @again,
               MUST_HAVE => "$dir/now-must.txt")
        if $t->write_file('now-must.txt', text('http://none.test/'));
    succeeds('again after a list that was refused', '/list', @again);
    is(status('http://again.example/'), 403, 'the last exception is gone');

    is_refused('nothing kept', '/list', qr/KEEP_KEYS=\S+ does not exist/,
               @again, KEEP_KEYS => "$dir/never");
    is_refused('again without the setting', '/list',
               qr/"again" needs the setting KEEP_KEYS/, @again,
               KEEP_KEYS => '');

    # nginx refuses an image: its keys are not kept

    is_refused('an image that nginx refuses', '/no-line-end', qr/404/,
               ZONE_URL => 'http://127.0.0.1:' . $t->port(8080)
                           . '/bloom/zones/other');
    is((stat "$dir/kept")[9], $as_of, 'its keys are not kept');

    is((job('/list', again => ['now']))[0], 1, 'another word is refused');
    $t->write_file('entries.txt', text('http://listed.test/'));
};


subtest 'an image that somebody else wrote is named' => sub {
    my $id = build_id($t, 'bad');
    my $good = $t->read_file('bad.bloom');
    my @build = ('build', '-q', '--form', 'url', '-p', '1e-7', '-n', '2k',
                 '--as-of', time - 9000, '-o');

    $t->write_file('foreign.txt', text(@urls[0 .. 99]));
    is(($t->run_tool(@build, "$dir/foreign", "$dir/foreign.txt"))[0], 0,
       'there is another image');
    $t->write_file('bad.bloom', $t->read_file('foreign'));

    publish(0, @rules);
    for my $more ([], [MAX_LOSS => 'off', MAX_GROWTH => 'off']) {
        my ($exit, $said) = job('/list', @$more);
        is($exit, 1, 'the job fails');
        like($said, qr/bad\.bloom\ is\ not\ the\ one\ that\ this\ job\ wrote
                       \ last\ \(build\ id\ \w+,\ not\ $id\):\ somebody
                       \ replaced\ it;\ put\ \S+previous\ back,\ or\ run
                       \ .*CHANGE=1;\ nothing\ was\ changed\n\z/x,
             'the last line says that somebody replaced the image');
        no_rests('a foreign image');
    }

    $t->write_file('bad.bloom', $good);
    succeeds('the image is back', '/list');

    $t->write_file('bad.bloom', $t->read_file('foreign'));
    rename "$dir/bad.bloom.previous", "$dir/bad.bloom" or die "rename: $!";
    succeeds('the previous image is back', '/list');

    $t->write_file('bad.bloom', $t->read_file('foreign'));
    succeeds('the foreign image is right', '/list', CHANGE => 1);
    succeeds('after that', '/list');

    # nginx refuses an image: the old one is that of the job

    is_refused('an image that nginx refuses', '/list', qr/404/,
               ZONE_URL => 'http://127.0.0.1:' . $t->port(8080)
                           . '/bloom/zones/other');
    rename "$dir/bad.bloom.previous", "$dir/bad.bloom" or die "rename: $!";
    succeeds('after that, the previous image is back', '/list');

    # a truncated image

    truncate "$dir/bad.bloom", 5000 or die "truncate: $!";
    my ($exit, $said) = job('/list');
    is($exit, 1, 'a truncated image is not compared');
    like($said, qr/the\ old\ image\ cannot\ be\ read:\ put\ \S+previous\ back;
                   \ or\ remove\ \S+bad\.bloom,/x, 'the job says what to do');
    unlink "$dir/bad.bloom";
    succeeds('the truncated image is removed', '/list');
};


subtest 'a list with many errors does not fill the log' => sub {
    my ($exit, $said) = job('/no-urls', KEY_FILES =>
                            join ' ', ("$dir/entries.txt") x 60);
    is($exit, 1, 'the list is refused');
    cmp_ok(scalar split(/\n/, $said), '<=', 33, 'few lines say so');
    like($said, qr/\n\.\.\. \d+ lines are left out\n.*--max-skipped/s,
         'one of them says how many are left out');
    succeeds('corrected', '/list');
};


subtest 'the directory of a run that was killed is removed' => sub {
    unlink "$dir/go";
    my $pid = spawn([$rebuild], env => { settings('/list',
        SOURCE => "touch '$dir/reads'; while [ ! -e '$dir/go' ];"
                  . ' do sleep 0.1; done') });
    ok(wait_until(sub { -e "$dir/reads" }), 'a run has begun');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    $t->write_file('go', '');
    is(scalar(() = glob "$dir/tmp/rebuild.*"), 1, 'it leaves a directory');
    wait_until(sub {
        (run_command(['flock', '-n', "$dir/bad.bloom.lock", 'true']))[0] == 0
    });
    succeeds('the next run', '/list');
};


subtest 'a directory where others can plant links is refused' => sub {
    unsafe_directories($t, sub {
        my ($what, $home) = @_;

        symlink "$dir/absent", "$home/list.lock" or die "symlink: $!";

        my ($exit, undef, $said) = run_command(
            [$fetch, url('/list'), "$home/list"],
            env => { PATH => $ENV{PATH}, MAX_TIME => 20 });

        is($exit, 1, "$what: the exit status is 1");
        like($said, qr/^fetch-list: \S+: other users can replace files in \Q$home\E: run this as the owner /,
             "$what: the script says why, and what to do");
        is_deeply([grep { -e } "$dir/absent", "$home/list"], [],
                  "$what: nothing is written");
    });
};

done_testing();
