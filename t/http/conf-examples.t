#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that each file in conf-examples/ works as its first comment says.  The
# commands of that comment run in their order, in a directory that looks like
# the checkout.  The test replaces only the ports and the lines that name the
# module, the pid file and the log.

use strict;
use warnings;

use BloomTest;
use BloomTest::Connection;
use BloomTest::Examples;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones qw(replace_file);
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use JSON::PP ();

my $examples = abs_path(dirname(__FILE__) . '/../../conf-examples');
my %more = (
    'dry-run.conf' => \&dry_run, 'block-list.conf' => \&block_list,
    'endpoint.conf' => \&endpoint, 'shield-add.conf' => \&survives_crash,
    'leaked-passwords.conf' => \&leaked_passwords,
    'revoked-tokens.conf' => \&revoked_tokens, 'api-keys.conf' => \&api_keys,
    'redirect.conf' => \&redirect, 'host-list.conf' => \&host_list,
    'block-page.conf' => \&block_page, 'image-server.conf' => \&image_server,
    'revoked.conf' => \&revoked, 'idempotency.conf' => \&idempotency,
    'blocked-addresses.conf' => \&blocked_addresses,
);


my @names = example_names();

for my $name (@names) {
    subtest "$name works as its first comment says"
        => sub { example($name) };
}

# With a dead server in the upstream, $upstream_status has several statuses.

for my $name (grep { content($_) =~ /\bproxy_pass\b/ } @names) {
    subtest "$name works if nginx asks a dead server first"
        => sub { example($name, retries => 1) };
}

like(content('README.md'), qr/\Q($_)\E/, "README.md lists $_")
    for grep { $_ ne 'local.conf' }
        map { basename($_) } glob "$examples/*.conf";

done_testing();


sub example {
    my ($name, %option) = @_;

    my $t = BloomTest->new;
    my $text = content($name);

    my @commands = command_lines($name);
    my ($start) = grep { $commands[$_] eq start_command($name) }
                       0 .. $#commands;
    my $stop = pop @commands;

    ok(defined $start, "$name says how to start nginx") or return;
    is($stop, start_command($name) . ' -s stop',
       "$name says how to stop nginx");

    my @before = splice @commands, 0, $start;
    shift @commands;

    ok(scalar @before, "$name says how to build its images");
    ok(scalar(grep { /^curl -i / } @commands),
       "$name has requests to try");

    checkout($t);
    configure($t, $text, %option);

    command($t, $_) for @before;
    $t->run;
    command($t, $_) for @commands;

    $more{$name}->($t) if $more{$name};
    $t->stop;
}


# Runs a command of the comment.  A request is followed by "# STATUS, TEXT",
# which states its response.

sub command {
    my ($t, $line) = @_;

    my ($command, $status, $text) =
        $line =~ /^(.*?)(?:\s+\# (\d+), (\S.*))?$/;

    if (!defined $status) {
        unlike($command, qr/^curl -i/,
               "a command without a stated response is no request: $line");

        # nginx writes its logs a moment after its response

        my ($exit, $out, $err);

        wait_until(sub {
            ($exit, $out, $err) = run_at_top($t, $command);
            return $exit == 0;
        });

        is($exit, 0, "the command succeeds: $line") or diag($err);
        return;
    }

    # nginx loads a watched file after a moment, so a request that changes
    # nothing is repeated

    my $once = $command =~ / -(?:d|X) /;
    my $response;

    my $matches = wait_until(sub {
        $response = run_at_top($t, "$command -sS");
        return matches($response, $status, $text) ? 'yes' : $once && 'no';
    });

    is($matches, 'yes', "the response is as stated: $line") or diag($response);

    my ($path) = $command =~ m{http://[^/]+(/(?:item|go|news|old)\b[^\s']*)};

    return if !$path || $once;

    if ($status == 200) {
        # an argument may have been encoded again

        my ($uri) = $path =~ /^([^?]*)/;

        like($response, qr/ answers \Q$uri\E(?:\?.*)?$/m,
             "a request for $path reaches the server behind nginx");
    } else {
        unlike($response, qr/ answers /,
               "a request for $path does not reach the server behind nginx");
    }
}


# Says whether a response has the status and the text.  A text that begins with
# a quote is part of the body, one with a colon is a header, and any other is
# the value of X-Bloom-Status or X-Cache-Status, or "-" if neither is there.

sub matches {
    my ($response, $status, $text) = @_;

    $response =~ s/\r//g;
    my ($head, $body) = split /\n\n/, $response, 2;

    return if ($head // '') !~ m{^HTTP/1\.1 $status\b};
    return index($body, $text) >= 0 if $text =~ /^"/;
    return $head =~ /^\Q$text\E$/mi if $text =~ /: /;

    my ($value) = $head =~ /^X-(?:Bloom|Cache)-Status: (.*)$/mi;

    return ($value // '-') eq $text;
}


sub dry_run {
    my ($t) = @_;

    my $log = wait_until(sub {
        my $text = $t->read_file('rejected.log');
        return $text =~ /\n.*\n/ && $text;
    });

    is(() = $log =~ /\n/g, 2, 'rejected.log has two lines');
    my $backend = qr/backend (?:502, )?/;    # with a dead server, or without

    like($log, qr{"GET /item/9999 .* 404 ${backend}404 REJECTED_DRY_RUN by ids },
         'rejected.log has the request for an item that does not exist');
    like($log, qr{"GET /item/1004 .* 200 ${backend}200 REJECTED_DRY_RUN by ids },
         'rejected.log has the request for an item whose key is missing');
    is($t->get('/item/old-hat')->status, 301, 'a redirect passes');
    ok(wait_until(sub {
        $t->read_file('rejected.log')
            =~ m{"GET /item/old-hat .* 301 ${backend}301 REJECTED_DRY_RUN }
    }), 'rejected.log has the redirect, whose key is missing, too');
    like($t->log_since(0), qr/rejecting request, dry run: key "9999" absent/,
         'the error log says which key would have been rejected');
}


sub block_list {
    my ($t) = @_;

    is($t->get('/go/malware.example')->status, 403,
       'a request for the other listed site is rejected');
    is($t->get('/confirm')->status, 404,
       'a client cannot reach the confirming service');
    is($t->get("/go/$_")->status, 403, "the spelling $_ is rejected")
        for 'EVIL.example', 'evil.example.', 'evil%2Eexample', 'a.evil.example',
            'evil%E3%80%82example', 'evil.example:80';
    is($t->get("/go/$_")->status, 404, "$_ is no site")
        for qw(evil.example%3F evil.example%23 evil.example%5C evil.example%5Cx
               good.evil.example%23@evil.example evil.example%0a x/y);
    is($t->get("/go/$_")->status, 403, "the invalid site $_ is not confirmed")
        for qw(evil.example:x evil.example::);
    is($t->get("/go/$_")->status, 200, "the allowed spelling $_ is passed")
        for 'good.evil.example', 'GOOD.evil.example.';
}


sub image_server {
    my ($t) = @_;

    $t->expect_log(qr/pulled\.bloom" of bloom zone "ids" cannot be opened/);
    $t->expect_log(qr/bloom zone "ids" is not loaded and answers "unknown"/);
    is($t->get('/images.key', port => 8081)->status, 404,
       'the web server shows only images and signatures');
}


# Tests that whatever a client sends, and whatever is found, the page stays the
# page, the JSON stays JSON, and the log has the entry.

sub block_page {
    my ($t) = @_;

    my @pages = ('?"><script>alert(1)</script>', '?a=1&b=2&lt;', "?it's",
                 '?\\"\\', '<!--%23%20echo%20var="remote_addr"%20-->',
                 '?$request_id', '%E2%80%AEgpj.exe', '%0D%0ASet-Cookie:x=1',
                 'a' x 2000);
    my @urls = map { "x.example/$_" } @pages;

    $t->build_image('bad.bloom', \@urls, '-p', '1e-9', '--form', 'url');
    replace_file($t, 'urls-bad.bloom', $t->read_file('bad.bloom'));
    $t->reload;

    my $ask = sub {
        my ($url, @accept) = @_;
        my $k = $url =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ger;
        return $t->get("/go?url=$k", headers => { Accept => "@accept" });
    };
    my $tags = sub { join ' ', $_[0]->body =~ /<[^>]*>/g };
    my $page = $ask->("http://$urls[1]");

    is($page->status, 403, 'the page has the status of a refusal');
    like($page->body, qr{<dd>URLhaus</dd>.*<dd>x\.example/\?a=1&amp;b=2&amp;lt;
                         </dd>.*<dd>[0-9a-f]{32}</dd>}xs,
         'the page has the list, the entry and the number of the request');
    like($page->header('Content-Security-Policy'), qr/default-src 'none'/,
         'the page allows no script');

    for my $url (@urls) {
        my $name = substr($url, 0, 40);
        my $html = $ask->("http://$url");

        is($tags->($html), $tags->($page), "the page has no tag of $name");
        is($html->header('Set-Cookie'), undef, "no header of $name");

        my $json = $ask->("http://$url", 'application/json')->json;
        my $safe = length $url <= 500 && $url !~ /["\\]/;

        is_deeply([sort keys %$json], [qw(contact entry error list request)],
                  "the JSON has no member of $name");
        is($json->{entry}, $safe ? $url : '', "the entry of $name in JSON");

        my $line = wait_until(sub {
            my ($found) = grep { /"$json->{request}"/ }
                              split /\n/, $t->read_file('refused.log');
            return $found;
        });
        is(JSON::PP->new->decode($line)->{entry}, $url,
           "the log has the entry $name");
    }

    my $invalid = $ask->('http:///');
    like($invalid->body, qr/cannot read its address/, 'an invalid URL');
    unlike($invalid->body, qr/Entry/, 'an invalid URL has no entry');

    my ($number) = $invalid->body =~ m{<dd>([0-9a-f]{32})</dd>};
    ok(wait_until(sub { $t->read_file('refused.log') =~ /"$number"/ }),
       'the log has the refusal of an invalid URL');
    is($t->get("/block-page.$_")->status, 404,
       "a client cannot ask for the $_ page") for qw(html json);
}


# Tests that no spelling of the host bypasses the list: neither in the request
# line nor in the Host header.

sub host_list {
    my ($t) = @_;

    my $ask = sub {
        my ($line, $host) = @_;
        my $c = BloomTest::Connection->new($t->port(8080));
        $c->send("GET $line HTTP/1.1\r\nHost: $host\r\n"
                 . "Connection: close\r\n\r\n");
        return $c->response->status;
    };

    is($ask->('http://ads.example/', 'www.example'), 403,
       'a host in the request line is checked');
    is($ask->('http://www.example/', 'ads.example'), 200,
       'the Host header beside a host in the request line is ignored');
    is($ask->('/', "ADS.example.:80"), 403, 'a dot and a port change nothing');

    # nginx itself refuses such a host since version 1.29.4, and so does Angie

    like($ask->('/', $_), qr/^40[03]$/, "a host \"$_\" is refused")
        for 'ads.example?', 'ads.example#';

    is($t->get("/image/$_")->status, 404, "/image/$_ is not found")
        for 'ads.example%0d%0aX-Y:1/a', 'www.example%0d%0aX-Y:1/a',
            'www.example/a%0d%0aX-Y:1', 'ads.example%3Fx/a', 'ads.example/a%0ab',
            'ads.example%23/a', 'ads.example%5C/a', 'ads.example',
            'www.example/a%0a', 'ads%252eexample/a', 'www.example/%252e%252e/a',
            'www.example/a%2523';
    is($t->get("/image/$_")->status, 403, "/image/$_ is rejected")
        for 'ads.example/', 'ads.example:x/a', 'ADS.example./a';
}


sub endpoint {
    my ($t) = @_;

    is($t->get('/bloom/zones', port => 8082)->status, 200,
       'the read-only endpoint answers');

    for my $port (8080, 8082) {
        my $c = BloomTest::Connection->new($t->port($port));
        $c->send("GET /bloom/zones HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        is($c->rest, '', "a request for another host at port $port gets nothing");
    }

    my ($exit) = $t->run_tool('test', $t->testdir . '/backup.bloom', '1004');
    is($exit, 0, 'the backup has an added key');

    survives_crash($t);
}


# Tests that added keys survive a kill -9 of all processes.

sub survives_crash {
    my ($t) = @_;

    my $id = $t->read_file('nginx.conf') =~ /bloom_add/ ? 1009 : 1004;

    $t->kill_all;
    $t->run;
    is($t->get("/item/$id")->status, 200,
       "added key $id is present after a crash");
}


# Tests that the image has all hashes of the list, without their counts, and
# that the service gets the hash that was checked.

sub leaked_passwords {
    my ($t) = @_;

    my @hashes = content('keys/leaked-sha1.txt') =~ /^([0-9A-F]{40}):\d+$/mg;

    is(scalar @hashes, 4, 'the list has four hashes with counts');
    is($t->get("/leaked/$_")->header('X-Bloom-Status'), 'PASSED',
       "hash $_ is present") for @hashes;

    my ($leaked, $absent) = ($hashes[0], '0' x 40);

    is($t->get($_)->status, 400, "$_ is no hash")
        for "/leaked/$leaked%0A", "/leaked/$leaked/", "/leaked/$leaked%00",
            "/leaked/$leaked%2F..%2F", "/leaked/0$leaked", "/leaked/";
    is($t->get("/leaked/$absent/..%2F$leaked?$absent")->body,
       "the exact list answers /leaked/$leaked\n",
       'the service gets the checked path');
    is($t->get("/leaked/$leaked/../$absent")->status, 404,
       'the hash of another spelling is checked');
}


sub revoked_tokens {
    my ($t) = @_;

    my $ask = sub {
        $t->get('/api/', headers => [Authorization => $_[0]])->status;
    };

    is($ask->($_ . '8a20c95d-revoked '), 401,
       'a revoked token is rejected however Bearer is spelled')
        for 'bearer  ', 'BEARER ', "Bearer\t", "Bearer \t ";
    is($ask->($_), 401, "the header \"$_\" is not passed")
        for 'Bearer 8a20c95d-revoked x', 'Bearer "8a20c95d-revoked"',
            'Bearer 8a20c95d-revoked,', 'Bearer: 8a20c95d-revoked',
            "Bearer\x0b8a20c95d-revoked", 'Bearer Bearer 8a20c95d-revoked';
    is($ask->("Bearer 8a20c95d-revoked\t"), 401,
       'a tab behind a revoked token changes nothing');
    is($ask->('Basic 8a20c95d-revoked'), 200,
       'a request with another scheme is passed');
    is($t->get('/introspect')->status, 404, 'a client cannot reach the issuer');

    several_tokens($t, '8a20c95d-revoked');
}


sub revoked {
    my ($t) = @_;

    my $token = '9c1d7e44';

    is($t->post('/bloom/zones/revoked/keys', $token, port => 8082)->status, 200,
       'a token is revoked');
    several_tokens($t, $token);
}


# Tests that a revoked token does not pass beside another token.

sub several_tokens {
    my ($t, $revoked) = @_;

    my @values = ('Bearer 51b7e2aa', "Bearer $revoked", 'Basic 51b7e2aa');

    # nginx itself refuses several headers Authorization

    like($t->get('/api/', headers => [map { (Authorization => $values[$_]) }
                                          @$_])->status,
         qr/^40[01]$/, "a request with the tokens @$_ is refused")
        for [0, 1], [1, 0], [2, 1], [1, 2];

    is($t->get('/api/', headers => [Authorization => $_])->status, 401,
       'no control character hides a revoked token')
        for "\x0bBearer $revoked", "Bearer\x0b$revoked", "Bearer $revoked\x1f",
            "\xa0Bearer $revoked";
    is($t->get('/api/', headers => [Authorization => "\t$values[1]\t"])->status,
       401, 'tabs around a revoked token change nothing');
}


# Tests that a client cannot repeat an order by another spelling of its key.

sub idempotency {
    my ($t) = @_;

    my $order = sub {
        my $response = $t->post('/orders', '', headers => [
            map { ('Idempotency-Key' => $_) } @_]);
        return $response->status . ' ' . $response->body;
    };
    my $accepted = qr/^201 the order attack-0001 is accepted$/;

    like($order->("\tattack-0001 "), $accepted,
         'the backend gets the key without blanks');
    like($order->($_), qr/^409 /, 'a repeated order is refused')
        for 'attack-0001', "attack-0001\t", "\t attack-0001";
    like($order->('attack-0001', 'attack-0001'), qr/^409 /,
         'an equal key that is sent twice is one key');
    like($order->(@$_), qr/^400 /, "a request with the keys @$_ is refused")
        for ['attack-0001', 'attack-0002'], ['attack-0002', 'attack-0001'],
            ['attack-0001,attack-0002'], ['attack-0001', ''],
            ["attack-0001\x0b"], ['attack%2D0001'];
    like($t->post('/orders', '', headers => ['Idempotency_Key' => 'attack-0001'])
           ->status, qr/^400$/, 'a key in another header is no key');
}


# Tests that another site cannot get its visitors blocked, and that no spelling
# of a page gets a blocked client in.

sub blocked_addresses {
    my ($t) = @_;

    $t->get('/wp-login.php', headers => ['Sec-Fetch-Site' => $_])
        for qw(cross-site same-site);
    is($t->get('/')->status, 200,
       'a visitor whom another site sends into the trap is not blocked');

    $t->get('/%77p-login.php', headers => ['Sec-Fetch-Site' => 'none']);
    is($t->get($_, headers => ['X-Forwarded-For' => '192.0.2.1'])->status, 403,
       "a blocked client does not get $_")
        for '/', '//', '/a/../', '/wp-login.php/', '/WP-LOGIN.php';
    is($t->get('/bloom/zones')->status, 403,
       'a blocked client cannot reach the endpoint to unblock itself');
}


# Tests that a revoked API key does not reach the backend however it is sent,
# also while the zone answers unknown.

sub api_keys {
    my ($t) = @_;

    my ($revoked, undef, $reinstated) =
        content('keys/api-keys-revoked.txt') =~ /^(\S+)$/mg;
    my $valid = '0' x 64;

    my $ask = sub { $t->get('/api/', headers => [@_]) };
    my $check = sub {
        my ($state, $status) = @_;

        is($ask->('X-Api-Key' => $valid)->status, 200,
           "$state: a valid key is passed");
        is($ask->('X-Api-Key' => $valid)->header('X-Bloom-Status'), $status,
           "$state: the decision about a valid key is $status");
        is($ask->('X-Api-Key' => $reinstated)->status, 200,
           "$state: a key that the service clears is passed");

        for my $headers (['X-Api-Key' => $revoked],
                         ['X-Api-Key' => uc $revoked],
                         ['x-api-key' => ucfirst $revoked],
                         ['X-Api-Key' => "\t$revoked\t"],
                         ['X-Api-Key' => $revoked, 'x-api-key' => $revoked],
                         [Authorization => "Bearer $revoked"],
                         [Authorization => "BEARER   \U$revoked"])
        {
            my $response = $ask->(@$headers);

            is($response->status, 403, "$state: \"@$headers\" is refused");
            is($response->body, qq({"error":"api_key_revoked"}\n),
               "$state: the body has the reason");
            is($response->header('Content-Type'), 'application/json',
               "$state: the body is JSON");
        }
    };

    $check->('serving', 'PASSED');

    is($ask->(@$_)->status, 401, "\"@$_\" is no key")
        for ['X-Api-Key' => "$revoked\x0b"], ['X-Api-Key' => "$revoked \t$valid"],
            ['X-Api-Key' => "$valid,$revoked"],
            ['X-Api-Key' => $valid, 'X-Api-Key' => $revoked],
            ['X-Api-Key' => $revoked, 'X-Api-Key' => $valid],
            ['X-Api-Key' => $revoked, 'X-Api-Key' => ''],
            ['X-Api-Key' => "$valid, $revoked"],
            ['X-Api-Key' => substr($revoked, 1)],
            ['X-Api-Key' => "0$revoked"], ['X-Api-Key' => "$revoked|"],
            ['X-Api-Key' => ''], ['X_Api_Key' => $revoked],
            [Authorization => "Basic $revoked"], [Authorization => $revoked],
            [Authorization => "Bearer\t$revoked"],
            [Authorization => "Bearer $revoked,"],
            [Authorization => "Bearer Bearer $revoked"],
            ['X-Api-Key' => $valid, Authorization => "Bearer $revoked"],
            ['X-Api-Key' => $revoked, Authorization => "Bearer $valid"],
            ['X-Api-Key' => $valid, Authorization => "Basic $revoked"];

    is($t->get('/confirm')->status, 404, 'a client cannot reach the service');

    my $log = wait_until(sub {
        my $text = $t->read_file('refused.log');
        return $text =~ / 401 key - -: no key$/m && $text;
    });

    like($log, qr/ 403 key \Q${\ substr($revoked, 0, 8)}\E ROUTED: revoked$/m,
         'the log has the reason and the beginning of the key');
    unlike($log, qr/$revoked/i, 'the log has no whole key');

    # all at once: one after the other, slow ones would be within the limit

    my @connections = map { $t->connect } 1 .. 100;

    $_->send($t->request_text(GET => '/api/',
                              headers => ['X-Api-Key' => $revoked]))
        for @connections;

    ok((grep { $_->response->status == 429 } @connections),
       'a revoked key that is repeated is not confirmed');
    is($ask->('X-Api-Key' => $reinstated)->status, 200,
       'another key is confirmed meanwhile');

    $t->stop;
    unlink $t->testdir . '/api-keys.bloom' or die "unlink: $!";

    my $mark = $t->log_mark;

    $t->run;
    $t->excuse_log($mark);
    $check->('not loaded', 'UNKNOWN');

    one_key_reaches_backend($t, $valid, $revoked);
}


# Tests that the backend gets the checked key alone, whichever of two header
# lines nginx takes: before version 1.23 it takes the first.

sub one_key_reaches_backend {
    my ($t, $valid, $revoked) = @_;

    my $conf = $t->read_file('nginx.conf');
    my ($from, $to) = map { '127.0.0.1:' . $t->port($_) } 8081, 8083;
    my $mark = $t->log_mark;

    $conf =~ s{(proxy_pass\s+)http://(?:\Q$from\E|backend_8081);}{$1http://$to;}g;

    $t->stop;
    $t->write_file('nginx.conf', $conf);
    $t->backend(8083, sub {
        my $headers = $_[0]{headers};
        return join '', map { "$_: $headers->{$_}\n" } sort keys %$headers;
    });
    $t->run;
    $t->excuse_log($mark);

    my $seen = $t->get('/api/', headers => ['X-Api-Key' => $valid,
                                            'X_Api_Key' => $revoked])->body;

    is_deeply([$seen =~ /^(.*\b[0-9a-f]{64})$/mg], ["x-api-key: $valid"],
              'the backend gets a valid key');

    for my $two (['X-Api-Key' => $valid, 'X-Api-Key' => $revoked],
                 ['X-Api-Key' => $revoked, 'X-Api-Key' => $valid],
                 [Authorization => "Bearer $valid",
                  Authorization => "Bearer $revoked"])
    {
        unlike($t->get('/api/', headers => $two)->body, qr/$revoked/,
               "the backend gets no revoked key: \"@$two\"");
    }
}


# Tests that no spelling makes a listed URL pass as one on an allowed host, and
# that confirm.pl looks a URL up by the same expressions as the tool.

sub redirect {
    my ($t) = @_;

    my $go = sub {
        my $url = $_[0] =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ger;
        my $response = $t->get("/go?url=$url");
        return $response->status . ' ' . $response->header('X-Bloom-Status');
    };

    is($go->($_), '200 PASSED', "the allowed URL $_ passes")
        for 'http://code.evil.example', 'HTTPS://CODE.evil.example.:8443/x',
            'http://a.code.evil.example/', 'http://code.evil.example:/?x=1';
    my @listed = (
        "\thttp://evil.example/", ' http://evil.example', '//evil.example/',
        'http:evil.example', "http://code.evil.example\n.evil.example/",
        map({ my $host = $_;
              map { "$host${_}evil.example/" }
                  '@', '%40@', ':@', '.', "\t.", "\0@" }
            'http://code.evil.example', 'http://code.evil.example:80'),
        map({ "http://code.evil.example$_" }
            '/mallory/setup.exe', '//x/..//mallory/setup%2eexe',
            '\\mallory/setup.exe#x', ":99/\n/mallory/./setup.exe?x=/y"),
    );

    # Redis is down by now, so nothing is confirmed

    like($go->($_), qr/^(?:403|500) (?:ROUTED|INVALID)$/,
         'the listed URL ' . s/[^ -~]/./gr . ' does not pass')
        for @listed;

    is($t->get($_)->status, 404, "a client cannot reach $_")
        for '/valid', '/confirm';

    my $script = content('confirm.pl');
    my ($sub) = $script =~ /^(sub expressions \{.*?^\})/ms;

    ok(defined $sub && eval "no warnings 'redefine'; $sub; 1",
       'confirm.pl defines the function expressions')
        or return diag($@);

    for my $url ('http://a.b.c/1/2.html?param=1', 'http://a.b.c.d.e.f.g/1.html',
                 'http://1.2.3.4/1/', 'http://example.co.uk/1', 'http://a.b/?',
                 'http://a.b/1/2/3/4/5/6.html?x=/y', 'http://[2001:db8::1]/a/')
    {
        my ($exit, $out) = $t->run_tool('expand', $url);
        my ($canonical, @want) = split /\n/, $out;

        is_deeply([sort(expressions($want[0]))], [sort @want],
                  "confirm.pl and the tool look up equal expressions for $url");
    }
}
