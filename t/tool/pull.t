#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests ngx-bloom-pull with nginx as the origin: which images it takes, what it
# keeps of the file before, when it asks without a transfer, how it resumes, and
# what it tells nginx, Prometheus and people.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Prometheus;
use BloomTest::Pull;

my $t = pull_test(BloomTest->new);
my $dir = $t->testdir;

# A file www/slow makes the origin slow.

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format pull '$request_method $request_uri $status $body_bytes_sent'
                    ' "$http_range" "$http_if_none_match" "$http_x_test"';
    access_log pull.log pull;
    bloom_zone zone=ids file=node/zone.bloom;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root www;
        location / {
            if (-f $document_root/slow) { set $limit_rate 100k; }
        }
        location /bloom/ { bloom_api write=on; }
    }
}
CONF

my $origin = 'http://127.0.0.1:' . $t->port(8080);
my $url = "$origin/ids.bloom";
my $key = public_key('first');
my @signed = ('--public-key', $key);
my ($old, $new, $newer) = map { image($_, 1000) } 1 .. 3;

install('zone.bloom', $old);
$t->run;

# Returns the requests since the last call, as the origin's log has them.

my $seen = 0;

sub requests {
    my $log = content("$dir/pull.log") // '';
    my $since = substr $log, $seen;
    $seen = length $log;

    return $since;
}

# nginx writes a line after the response

sub asked {
    my ($pattern, $what) = @_;

    my $log = '';
    ok(wait_until(sub { ($log .= requests()) =~ $pattern }), $what)
        or diag($log);
}

sub inode { return (stat "$dir/node/$_[0]")[1] }


subtest 'the first image, an unchanged one and a new one' => sub {
    publish('ids.bloom', $old, 'first');
    pull_is(0, qr{new: \Q$dir\E/node/a is the image at \Q$url\E, signed with the comment "timestamp:\d+ file:ids\.bloom hashed"$},
            'the first pull', $url, 'a', @signed);
    asked(qr{\AGET /ids\.bloom 200 [^\n]+\nGET /ids\.bloom\.minisig 200 [^\n]+\n\z},
          'an image and its signature are transferred once');
    file_is('a', $old, 'a first file has the mode of the umask',
            0666 & ~umask);
    is((stat "$dir/node/.a.pull")[2] & 07777, 0700,
       'the directory beside the file is private');

    requests();
    my $inode = inode('a');
    pull_is(1, qr/unchanged: \S+ is the image at/, 'a second pull', $url, 'a',
            @signed);
    asked(qr{\AGET /ids\.bloom 304 0 "-" [^\n]+\n\z},
          'the origin gets one request, and answers it without a body');
    is(inode('a'), $inode, 'an unchanged file is not replaced');

    chmod 0640, "$dir/node/a";
    chown 0, 12, "$dir/node/a" if $> == 0;
    my @before = (stat "$dir/node/a")[4, 5];
    publish('ids.bloom', $new, 'first');
    pull_is(0, qr/new: /, 'a new image', $url, 'a', @signed);
    file_is('a', $new, 'the new image is in place', 0640);
    is_deeply([(stat "$dir/node/a")[4, 5]], \@before,
              'the file has the owner and the group of the one before');
    is_deeply([grep { !m{/\.a\.pull$} } glob "$dir/node/{a,.a}*"],
              ["$dir/node/a"], 'no other file is left');
};


subtest 'a saved ETag counts only for the file that it came with' => sub {
    requests();
    install('a', $old);
    pull_is(0, qr/new: /, 'a file that was changed', $url, 'a', @signed);
    file_is('a', $new, 'a file that was changed is replaced');

    unlink "$dir/node/a";
    pull_is(0, qr/new: /, 'a file that is gone', $url, 'a', @signed);
    file_is('a', $new, 'a file that is gone is fetched');

    chmod 0600, "$dir/node/a";
    pull_is(1, qr/unchanged: /, 'the same image after a change of mode', $url,
            'a', @signed);
    file_is('a', $new, 'the mode stays', 0600);
    pull_is(1, qr/unchanged: /, 'another guard', $url, 'a', @signed, '--',
            '--min-keys', 10);
    is(() = requests() =~ /\.bloom 200 /g, 4, 'each of them is fetched');

    pull_is(2, qr/refused: .*it has 1000 distinct keys, and --min-keys demands/,
            'a new guard is tried on the same image', $url, 'a', @signed, '--',
            '--min-keys', 5000);
};


subtest 'keys' => sub {
    my $second = public_key('second');
    my ($text) = content($second) =~ /^(RW\S+)$/m;

    publish('ids.bloom', $old, 'second');
    pull_is(2, qr/its signature is by another key, or of another file$/m,
            'another key', $url, 'keys', @signed);
    pull_is(0, qr/new: /, 'the second of two keys', $url, 'keys', @signed,
            '--public-key', $second);
    pull_is(1, qr/unchanged: /, 'a key as text', $url, 'keys', '--public-key',
            $text);

    publish('ids.bloom', $new, 'first');
    pull_is(2, qr/its signature is by another key/,
            'the key that was left out', $url, 'keys', '--public-key', $text);
    pull_is(0, qr/new: /, 'the first of two keys', $url, 'keys', @signed,
            '--public-key', $text);
    file_is('keys', $new, 'rotation: the image by the other key is in place');

    for ('', 'RWQ', "$dir/keys/first.key", 'x' x 57) {
        my ($exit, undef, $err) = pull($url, 'keys', '--public-key', $_);
        is($exit, 2, "\"$_\" is no key");
        like($err, qr/--public-key needs a key of minisign, or a file with one;|--public-key is unknown, or needs a value/,
             'a wrong key never means that no signature is checked');
    }
};


subtest 'a signature says for which file it is' => sub {
    publish('urls.bloom', $newer, 'first');

    for my $end ('', '.minisig') {
        rename "$dir/www/urls.bloom$end", "$dir/www/ids.bloom$end" or die $!;
    }
    pull_is(2, qr/refused: .*its signature is of the file "urls\.bloom"/,
            'the signed image of another file', $url, 'keys', @signed);
    file_is('keys', $new, 'the file stays');

    publish('ids.bloom', $newer, 'first', '-t', 'version 7');
    pull_is(0, qr/signed with the comment "version 7"/,
            'a comment that names no file', $url, 'keys', @signed);
    publish('ids.bloom', $newer, 'first', '-t', '');
    unlink "$dir/node/keys";
    pull_is(0, qr/new: /, 'an empty comment', $url, 'keys', @signed);

    publish('ids.bloom', $newer, 'first');
    my $secret = $url =~ s{//}{//user:secret@}r . '?token=secret';
    my ($exit, $out, $err) = pull($secret, 'query', @signed);
    is($exit, 0, 'a URL with a query: its signature is found')
        or diag("$out$err");
    unlike("$out$err", qr/secret/, 'a password or a token is not printed');
};


subtest 'an older image is refused' => sub {
    publish('ids.bloom', $old, 'first');
    pull_is(2, qr/refused: \S+: it is of 2026-01-01T00:00:01\.000Z, earlier than .*; \S+ stays/,
            'an older image', $url, 'keys', @signed);
    file_is('keys', $newer, 'the newer file stays');
    pull_is(2, qr/earlier than/, 'a guard that names an older image', $url,
            'keys', @signed, '--', '--not-older-than', "$dir/node/zone.bloom");
    pull_is(0, qr/new: /, '--allow-older', $url, 'keys', @signed,
            '--allow-older');
    file_is('keys', $old, '--allow-older takes the older image');

    install('source', image(1, 10, '--source=s=9'));
    publish('ids.bloom', image(2, 10, '--source=s=8'), 'first');
    pull_is(2, qr/position 8, and .* has them up to 9/,
            'an earlier position of the source', $url, 'source', @signed);
};


subtest 'guards' => sub {
    my $must = $t->write_file('must.txt', "key1000\n");

    install('guards', $old);
    publish('ids.bloom', image(5, 500), 'first');
    pull_is(2, qr/500 fewer \(50 %\) than the 1000 .* --max-loss allows 20 %/, '--max-loss', $url, 'guards',
            @signed, '--', '--max-loss', '20%');
    pull_is(2, qr/it lacks the key "key1000"/, '--must-have', $url, 'guards',
            @signed, '--', '--must-have', $must);
    pull_is(2, qr/unknown option "--nonsense"/, 'a guard that does not exist',
            $url, 'guards', @signed, '--', '--nonsense');
    file_is('guards', $old, 'a refused image leaves the file');

    # verify shows its help then, and checks nothing

    publish('junk.bloom', 'junk', 'first');
    (my $junk = $url) =~ s/ids\.bloom/junk.bloom/;
    pull_is(2, qr/an option after "--" is no guard/, 'help instead of a check',
            $junk, 'guards', @signed, '--', '--help');
    file_is('guards', $old, 'what was not checked leaves the file');

    pull_is(0, qr/new: /, 'a guard that passes', $url, 'guards', @signed, '--',
            '--max-loss', '60%');
};


subtest 'a pull resumes the same image, and never mixes two' => sub {
    my ($large, $other) = map { image($_, 200_000) } 10, 11;
    my $part = "$dir/node/.large.pull/image";

    is(length $large, length $other, 'two images have the same size');
    publish('large.bloom', $large, 'first');

    my @pull = ("$origin/large.bloom", 'large', @signed);
    my $cut = sub {
        my ($what) = @_;

        $t->write_file('www/slow', '');
        pull_is(2, qr/error: .*timed out/, $what, @pull, '--max-time', 1);
        unlink "$dir/www/slow" or die $!;
        ok(-s $part && -s $part < length $large, "$what: a part is kept");
        requests();
        return -s $part;
    };

    my $size = $cut->('a transfer that takes too long');
    pull_is(0, qr/new: /, 'the next pull', @pull);
    file_is('large', $large, 'the image is whole');
    my $rest = length($large) - $size;
    asked(qr{^GET /large\.bloom 206 $rest "bytes=$size-" }m,
          'only the rest was transferred');

    publish('large.bloom', $other, 'first');
    $size = $cut->('another transfer that takes too long');
    publish('large.bloom', image(12, 200_000), 'first');
    pull_is(0, qr/new: /, 'the image has changed since', @pull);
    file_is('large', image(12, 200_000), 'the image is of one piece');
    asked(qr{^GET /large\.bloom 200 \d+ "bytes=$size-" .*^GET /large\.bloom 200 \d+ "-" }ms,
          'the changed image was transferred from its beginning');

    publish('large.bloom', image(13, 200_000), 'first');
    $cut->('a third transfer that takes too long');
    unlink "$dir/node/.large.pull/header" or die $!;
    pull_is(0, qr/new: /, 'a part without an ETag is not resumed', @pull);
    file_is('large', image(13, 200_000), 'the image is whole');
};


subtest 'nginx loads the image, and a reload that failed is repeated' => sub {
    my @pull = ($url, 'zone.bloom', @signed, '--reload',
                "$origin/bloom/zones/ids/reload");
    my $items = sub { $t->get('/bloom/zones/ids')->json->{image}{items} };

    publish('ids.bloom', image(20, 1500), 'first');
    pull_is(0, qr/new: /, 'a pull with --reload', @pull);
    is($items->(), 1500, 'nginx serves the new image');

    requests();
    pull_is(1, qr/unchanged: /, 'an unchanged image', @pull);
    unlike(requests(), qr/POST/, 'nginx is not told of an unchanged image');

    publish('ids.bloom', image(21, 1600), 'first');
    pull_is(2, qr/error: \S+ is the image at .*, and its reload failed: .*404; the next pull tries that again/,
            'a reload that fails', @pull[0 .. 4],
            "$origin/bloom/zones/none/reload");
    file_is('zone.bloom', image(21, 1600), 'the file is replaced all the same');
    is($items->(), 1500, 'nginx serves the old image');
    pull_is(1, qr/unchanged: /, 'the next pull', @pull);
    is($items->(), 1600, 'the next pull has nginx load the image');
    requests();
    pull_is(1, qr/unchanged: /, 'the pull after that', @pull);
    unlike(requests(), qr/POST/, 'a reload that succeeded is not repeated');
};


subtest 'metrics' => sub {
    my $prom = "$dir/pull.prom";
    my @pull = ($url, 'zone.bloom', @signed, '--metrics', $prom);
    my $began = time;

    pull_is(1, qr/unchanged: /, 'a pull with --metrics', @pull);
    my %sample = samples_of($prom);
    cmp_ok($sample{last_success_timestamp_seconds}, '>=', $began,
           'the time of a success');
    is($sample{image_timestamp_seconds}, 1767225600 + 21, 'that of the image');
    is("@sample{qw(refusals_total errors_total)}", '0 0', 'the counters');
    is((stat $prom)[2] & 07777, 0644, 'node_exporter can read the file');

    my ($exit, $said) = promtool('check', 'metrics', { stdin => content($prom) });
    is($exit, 0, 'promtool accepts the metrics') or diag($said);

    publish('ids.bloom', $old, 'first');
    pull_is(2, qr/refused: /, 'a refusal', @pull) for 1, 2;
    pull_is(2, qr/error: /, 'an error', "$origin/none", @pull[1 .. $#pull]);
    is_deeply({ samples_of($prom) },
              { %sample, refusals_total => 2, errors_total => 1 },
              'refusals and errors are counted, and the success stays');

    pull_is(2, qr{error: .*; \S+/none/x\.prom cannot be written}, 'a wrong name',
            @pull[0 .. 4], "$dir/none/x.prom");
};


subtest 'one pull at a time' => sub {
    publish('large.bloom', image(30, 200_000), 'first');
    $t->write_file('www/slow', '');

    my @pull = ("$origin/large.bloom", 'large', @signed);
    my ($command, %option) = pull_command(@pull);
    my $pid = spawn($command, %option);

    ok(wait_until(sub { -s "$dir/node/.large.pull/image" }), 'a pull runs');
    pull_is(2, qr/error: another pull of it is running; /, 'a second pull',
            @pull);
    unlink "$dir/www/slow" or die $!;
    kill 'KILL', -$pid;
    waitpid $pid, 0;
    file_is('large', image(13, 200_000), 'a pull that was killed changed nothing');
    pull_is(0, qr/new: /, 'the next pull', @pull);
    file_is('large', image(30, 200_000), 'the next pull brings the image');
};


subtest 'settings of curl, and files that cannot be replaced' => sub {
    $t->write_file('home/.curlrc', "header = \"X-Test: from curlrc\"\n");
    requests();
    pull_is(0, qr/new: /, 'a pull without a signature', $url, 'curlrc');
    asked(qr/"from curlrc"/, 'curl reads ~/.curlrc');
    unlink "$dir/home/.curlrc";

    symlink 'curlrc', "$dir/node/link" or die $!;
    mkdir "$dir/node/directory" or die $!;
    pull_is(2, qr/error: \S+$_ is a link, or is not a regular file: name the file/,
            "a $_", $url, $_)
        for 'link', 'directory';
    pull_is(2, qr/cannot be created/, 'a directory that does not exist', $url,
            'none/ids.bloom');

    SKIP: {
        skip 'needs another user than root', 1 if $> == 0;
        chmod 0500, "$dir/node";
        pull_is(2, qr/cannot be created/, 'no permission', $url, 'private');
        chmod 0700, "$dir/node";
    }
};


subtest 'the command line, and the script itself' => sub {
    my ($exit, $help) = run_command([pull_path(), '--help']);

    is($exit, 0, '--help succeeds');
    like($help, qr/\AUsage: ngx-bloom-pull URL FILE .*Exit status: [^\n]*\n\z/s,
         '--help has the synopsis and the exit status');
    is(join('', grep { length > 81 } split /^/, $help), '',
       '--help has no line of more than 80 columns');

    my $man = content(pull_path() =~ s{src/cli/}{docs/}r . '.1') =~ s/\\-/-/gr;
    like($man, qr{^\.B[IR]? .*\Q$_\E}m, "the man page has $_")
        for $help =~ /(--[a-z-]+) .* {2}/g;

    for ([[] => qr/URL and FILE are missing/],
         [[$url] => qr/FILE is missing/], [[$url, 'x/'] => qr/FILE is missing/],
         [['ftp://x/y', 'z'] => qr/URL must begin with https/],
         [[$url, 'a', 'b'] => qr/"b" is one argument too many/],
         [[$url, 'a', '--nonsense'] => qr/option --nonsense is unknown, or/],
         [[$url, 'a', '--reload'] => qr/option --reload is unknown, or needs/],
         [[$url, 'a', '--metrics', 'm.txt'] => qr/--metrics needs a file NAME\.prom/],
         [[$url, 'a', '--max-size', 'x'] => qr/--max-size must be a size/])
    {
        my ($arguments, $message) = @$_;
        my ($status, undef, $err) = run_command([pull_path(), @$arguments]);

        is($status, 2, "\"@$arguments\" is an error");
        like($err, qr/\Angx-bloom-pull: $message.*; see "ngx-bloom-pull --help"\n\z/,
             'the message says what is wrong');
    }

    for my $check (['dash', '-n'], ['shellcheck']) {
        SKIP: {
            skip "there is no $$check[0]", 1
                if (run_command(['sh', '-c', "command -v $$check[0]"]))[0];
            is((run_command([@$check, pull_path()]))[1], '',
               "$$check[0] finds nothing wrong");
        }
    }
};

done_testing;
