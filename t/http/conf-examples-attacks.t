#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that no file in conf-examples/, and neither configuration of README.md,
# leaves a door open.  Each has a table of requests by which an attacker would
# get past it, and a backend that records what it gets.

use strict;
use warnings;

use BloomTest;
use BloomTest::Connection;
use BloomTest::Examples;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Rules;
use File::Basename qw(basename dirname);
use IO::Socket::INET;
use IO::Socket::UNIX;

# What the backend of an example must get of a request: a target, '' for
# nothing, or '*' for whatever the client sent.

my $form = ['Content-Type' => 'application/x-www-form-urlencoded'];

my %example = (
    'block-list-job.conf' => {
        attacks => [urls('http://evil.example/')], alone => 1,
    },
    'block-page.conf' => {
        attacks => [urls('http://pages.example/~mallory/'),
                    ['/block-page.html', ''], ['/block-page.json', '']],
        alone => 1,
    },
    'enforce.conf' => {
        attacks => [urls('http://evil.example/')], alone => 1,
    },
    'redirect.conf' => {
        attacks => [urls('http://evil.example/'),
                    map({ ["/$_", ''], ["/$_?url=http://other.example/", ''] }
                        'valid', 'confirm', 'go/dry'),
                    ['/go?url=http://evil.example/', '',
                     headers => ['X-Key' => 'other.example/']],
                    ['/go?url=http://evil.example/', '',
                     headers => ['X-Lists' => 'urls']]],
        alone => 1, after => 1, more => \&redirect,
    },
    'block-list.conf' => { attacks => [sites()], alone => 1 },
    'shield.conf' => {
        attacks => [paths(), writes(), ids('/item', 1001, 9999)],
    },
    'empty-result.conf' => { attacks => [ids('/search', 1001, 9999)] },
    'dry-run.conf' => { attacks => [grep { $_->[1] ne '' } paths(), writes()] },
    'endpoint.conf' => { attacks => [paths(), writes()] },
    'grow.conf' => {
        attacks => [paths(), writes()],
        before => 'seq 1 5000 | curl -fsS --data-binary @- '
                  . 'http://127.0.0.1:8082/bloom/zones/ids/keys',
    },
    'image-server.conf' => {
        attacks => [paths(), writes()], backend => 8082, more => \&image_server,
        before => 'build/ngx-bloom-pull http://127.0.0.1:8081/ids.bloom '
                  . 'conf-examples/pulled.bloom '
                  . '--public-key conf-examples/images.pub',
        excuse => qr/pulled\.bloom" of bloom zone|"ids" is not loaded/,
    },
    'feedback.conf' => { attacks => [paths(), writes()], more => \&except },
    'lua.conf' => { attacks => [paths(), writes()] },
    'njs.conf' => {
        attacks => [paths('id-'), refused_writes('id-'), title(), ['/backend/title', ''],
                    ['/backend/../backend/x', '']],
    },
    'shield-add.conf' => { attacks => [paths(), writes()] },
    'watch.conf' => { attacks => [paths(), writes()] },
    'revoked-tokens.conf' => { attacks => [tokens()], more => \&tokens_once },
    'cache-admission.conf' => { attacks => [], more => \&cache },
    'link-check.conf' => { attacks => [], more => \&link_check },
);

# The keys of the other examples are headers, addresses and hashes; the test of
# what their first comments say tries to get past them.

is_deeply([grep { !$example{$_} } example_names()],
          [qw(api-keys.conf blocked-addresses.conf host-list.conf
              idempotency.conf leaked-passwords.conf revoked.conf)],
          'each other example has a table of attacks');

for my $name (sort keys %example) {
    next if !grep { $_ eq $name } example_names();

    subtest "$name leaves no door open" => sub { attack($name) };
}

subtest 'README.md: the shield' => sub { readme_shield() };
subtest 'README.md: the block list' => sub { readme_block_list() };

subtest 'no configuration leaves a door open that a look at it finds' => sub {
    for my $name (example_names()) {
        look_at($name, content($name));
        unlike(join("\n", command_lines($name)),
               qr/\b(?:xargs|eval|sh -c)\b/,
               "$name: no command interprets what another one prints");
    }

    my $found = 0;

    for my $document ('README.md', map { "docs/$_" } documents()) {
        for my $block (blocks($document)) {
            look_at($document, $block);
            $found++;
        }
    }

    cmp_ok($found, '>', 30, 'the documents have blocks of configuration');
};

done_testing();


# ---- the configurations of README.md ----

# Serves the configuration of README.md that has a zone, as it stands: only the
# port is set, and the upstream.  The image is built by the command of README.md
# from keys.  $change changes the text.  Returns nginx and the backend.

sub readme {
    my ($zone, $keys, $change) = @_;

    my ($text) = grep { /^bloom_zone zone=$zone / } blocks('README.md');
    my ($command) = content('../README.md')
                    =~ /^(ngx-bloom build -o \S*\b$zone\.bloom .*)$/m;
    my $t = BloomTest->new;
    my $dir = $t->testdir;

    $text =~ s/^server \{$/$&\n    listen 127.0.0.1:%%PORT_8080%%;/m
        or die 'README.md has no server';

    if ($change) {
        $change->() for $text;
    }

    configure_rules($t, {}, <<"CONF");
    upstream backend { server 127.0.0.1:%%PORT_8091%%; }
$text
CONF

    if ($keys) {
        my ($file) = $command =~ /(\S+\.txt)/;
        my @arguments = split ' ', $command =~ s{/etc/nginx/}{}r =~ s/#.*//r;

        $t->write_file($file, join '', map { "$_\n" } @$keys);
        s{^(?=\Q$file\E$|\w+\.bloom$)}{$dir/} for @arguments;
        shift @arguments;
        is(($t->run_tool(@arguments))[0], 0, "README.md builds: $command");
    }

    my $backend = $t->backend(8091, sub { { body => "yes\n" } });

    $t->run;

    return ($t, $backend);
}


# A shield: no key that exists is turned away, however a client writes it, and
# no key that does not exist reaches the backend.

sub readme_shield {
    my @odd = ('a b', "\xc3\xa9", '%41', 'A1', 'a?b', 'a#b', 'a;b=c', '..a',
               '~', '"\'\\', "a\tb", '+', 'x' x 1000, '%', '&id=9999');
    my ($t, $backend) = readme('ids', [1001 .. 1010, @odd]);

    attempt($t, $backend, 0, @$_) for paths(), writes();
    attempt($t, $backend, 0, @$_)
        for map({ ["/item/9999$_", ''] } '', '?', '?id=1001',
                '?id=1001&id=1001', '%00', '.', '%E3%80%82'),
            map({ [$_, ''] } '/item/', '/item', '/item/1001/9999',
                '/item/9999/', '/ITEM/9999', '/item/a1', '/item/%2541%2541'),
            ['/item/9999', '', headers => ['X-HTTP-Method-Override' => 'PUT']],
            ['/item/1001', '/item/1001', method => 'OPTIONS'];

    for my $id (@odd) {
        for my $path ($id =~ s/([^\w~])/sprintf '%%%02X', ord $1/ger,
                      $id =~ s/(.)/sprintf '%%%02x', ord $1/gesr)
        {
            is(send_to($t, "/item/$path")->status, 200,
               'a key that exists passes: ' . substr $path, 0, 40);
            is(send_to($t, "/item/$path", method => $_)->status, 200,
               "by $_, too") for qw(HEAD POST OPTIONS);
        }
    }

    $t->stop;

    # what cannot be decided passes, and access lists hold

    ($t, $backend) = readme('ids', undef, sub {
        s/(bloom_zone zone=ids [^;]*)/$1 required=off/
    });
    $t->expect_log(qr/ids\.bloom"|zone "ids" is not loaded/);
    attempt($t, $backend, 0, "/item/$_", "/item/$_") for 1001, 9999;
    attempt($t, $backend, 0, '/item/9999', '/item/9999', method => 'HEAD');
    $t->stop;

    ($t, $backend) = readme('ids', [1001 .. 1010], sub {
        s/^( *)bloom_reject/$1deny all;\n$&/m
    });
    attempt($t, $backend, 0, $_->[0], '', @$_[2 .. $#$_]) for paths(), writes();
    $t->stop;
}


# A block list: no spelling of a listed URL reaches the backend, which gets
# nothing but the URL that was checked.

sub readme_block_list {
    my $listed = 'http://pages.example/~mallory/';
    my @keys = ($listed, 'http://site.example/');
    my ($t, $backend) = readme('bad', \@keys);
    my @more = map { ["/go?url=$_", ''] }
               'http://pages.example/~mallory/deep/page?q=1',
               'http://PAGES.example/%7emallory/',
               'https://pages.example/~mallory/',
               'HTTP://pages.example:80/~mallory/',
               'http://pages.example/x/../~mallory/',
               'http://u:p@pages.example/~mallory/',
               'http://pages.example./~mallory/',
               'http://pages.example/./~mallory//',
               'http://pages.example/%257Emallory/',
               'http://www.site.example/any', 'http://site.example',
               'http:site.example/', 'http:///site.example/',
               'ht%09tp://site.example/',
               'http://', 'http://%5B::1/';

    attempt($t, $backend, 1, @$_) for urls($listed), @more;
    attempt($t, $backend, 1, "/go?url=$listed", '', method => $_) for methods();
    $t->stop;

    # until there is an image everything passes, unless "bloom_unknown reject"
    # says otherwise; and access lists hold

    ($t, $backend) = readme('bad', undef, sub {
        s/(bloom_zone zone=bad [^;]*)/$1 required=off/
    });
    $t->expect_log(qr/bad\.bloom"|zone "bad" is not loaded/);
    attempt($t, $backend, 1, "/go?url=$listed", '/go?url=' . escaped($listed));
    $t->stop;

    ($t, $backend) = readme('bad', undef, sub {
        s/(bloom_zone zone=bad [^;]*;)/$1 bloom_unknown reject;/;
        s/(bloom_zone zone=bad [^;]*)/$1 required=off/;
    });
    $t->expect_log(qr/bad\.bloom"|zone "bad" is not loaded/);
    attempt($t, $backend, 1, $_->[0], '', @$_[2 .. $#$_]) for urls($listed);
    $t->stop;

    ($t, $backend) = readme('bad', \@keys, sub {
        s/^( *)bloom_reject/$1deny all;\n$&/m
    });
    attempt($t, $backend, 1, $_->[0], '', @$_[2 .. $#$_]) for urls($listed);
    $t->stop;
}


# ---- the attacks ----

# Requests for a path in which the item 1001 exists, and the item 9999 does not.

sub paths {
    my ($prefix) = @_;

    my ($yes, $no) = map { ($prefix // '') . $_ } 1001, 9999;

    return map({ [$_, "/item/$yes"] }
               "/item/$yes", "//item//$yes", "/x/../item/./$yes",
               "/item/$no/../$yes", "/item/$no/%2e%2e/$yes",
               "/%69tem/$yes", '/item/%' . unpack('H2', $yes) . substr($yes, 1),
               "/item/$yes#$no", "/item/$no%2F..%2f$yes"),
           map({ [$_, ''] }
               "/item/$no", "/item/$yes/../$no", "//item//$no",
               "/item/%" . unpack('H2', $no) . substr($no, 1),
               "/item/$yes%0a", "/item/$yes%3Fid=$no", "/item/$yes;$no",
               "/item/$yes%2F..%2F$no", "/item/$yes%20", "/item/$no?id=$yes",
               "/item/$no#/../$yes", "http://localhost/item/$no",
               "http://localhost//item/$no?$yes"),
           ["/item/$no", '', method => 'HEAD'];
}


# Requests by other methods for an unknown id, which a shield for requests that
# read lets through, and which another shield refuses.

sub writes { return map { ['/item/9999', '/item/9999', method => $_] } methods() }

sub refused_writes {
    my ($prefix) = @_;

    return map { ["/item/${prefix}9999", '', method => $_] } methods();
}

sub methods { return qw(POST PUT DELETE OPTIONS PROPFIND) }


# Requests with an argument "id", one of which is known and another is not.

sub ids {
    my ($path, $yes, $no) = @_;

    my $good = "$path?id=$yes";

    return map({ [$_, $good] }
               $good, "$path?ID=$no&id=$yes", "$path?x=%0d%0ay&id=$yes",
               "$path?id=$yes&id=$yes", "$path?%69d=$yes", "/%2e/$good",
               "http://localhost$good#$no"),
           map({ [$good, $good, @$_] }
               [method => 'POST', body => "id=$no", headers => $form],
               [body => "id=$no", headers => $form],
               [method => 'PUT', body => qq({"id":$no})]),
           map({ [$_, ''] }
               "$path?id=$no", "$path?id=$yes&id=$no", "$path?id=$no&id=$yes",
               "$path?ID=$yes&id=$no", "$path?i%64=$no", "$path?id=$yes%26$no",
               "$path?id=$yes;id=$no", "$path?id=$yes&%69%64=$no",
               "http://localhost$path?id=$no"),
           map({ ["$path?id=$no", '', @$_] }
               [method => 'POST', body => "id=$yes", headers => $form],
               [method => 'HEAD']);
}


# Requests with a URL, of which one is listed.

sub urls {
    my ($listed) = @_;

    my $other = 'http://other.example/';
    my $good = "/go?url=$other";
    my $seen = '/go?url=' . escaped($other);

    return map({ [$_, $seen] }
               $good, "$good&next=$listed", "/go?URL=$listed&url=$other",
               "$good&url=$other", "$good#$listed", $seen),
           map({ [$good, $seen, @$_] }
               [method => 'POST', body => "url=$listed", headers => $form],
               [body => "url=$listed", headers => $form],
               [method => 'PUT', body => qq({"url":"$listed"})],
               map { [headers => $_] }
                   ['X-Original-URL' => "/go?url=$listed"],
                   ['X-Rewrite-URL' => "/go?url=$listed"],
                   [Cookie => "url=$listed"], [Referer => $listed],
                   [url => $listed]),
           map({ [$_, ''] }
               map({ "/go?url=$_" }
                   $listed, escaped($listed), "%20$listed",
                   $listed =~ s/p/%70/r, $listed =~ s{//}{/%09/}r,
                   $listed =~ s{//}{\\\\}r, "$listed&url=$other",
                   "$other&url=$listed", "$other&%75rl=$listed",
                   "$listed&URL=$other", "$listed%0d%0aX-Url:%20x",
                   "$listed#$other", 'javascript:alert(1)',
                   'javascript://other.example/%250aalert(1)',
                   'data:text/html,x', 'http%0a://', '', '%00', 'x'),
               '/go', '/go?', "/go?$listed", "/go;url=$other?url=$listed",
               "/go/?url=$listed", "/go/dry?url=$listed",
               "/GO?url=$listed", "//go?url=$listed", "/x/../go?url=$listed",
               "/%67o?url=$listed", "http://localhost/go?url=$listed"),
           ['/go', '', method => 'POST', body => "url=$listed",
            headers => $form],
           ["/go?url=$listed", '', method => 'POST', body => "url=$other",
            headers => $form],
           ["/go?url=$listed", '', method => 'HEAD'];
}


# Requests for a site as a part of the path.

sub sites {
    my $bad = 'evil.example';
    my $good = '/go/example.com';

    return map({ [$_, $good] }
               $good, "/go/$bad/../example.com", "/go/$bad/%2e%2e/example.com",
               "/go/$bad%2F..%2Fexample.com", '//go//example.com',
               '/go/%65xample.com', "$good?site=$bad", "$good#$bad",
               "/x/$bad/../../go/example.com"),
           ['/go/recovered.example', '/go/recovered.example'],
           ["/go/$bad/../recovered.example?$bad", '/go/recovered.example'],
           map({ [$good, $good, @$_] }
               [method => 'POST', body => "site=$bad", headers => $form],
               [body => "site=$bad"], [headers => ['X-Site' => $bad]],
               [headers => [Cookie => "site=$bad"]]),
           map({ [$_, ''] }
               map({ "/go/$_" }
                   $bad, 'EVIL.example', "$bad.", "a.$bad", "$bad:80",
                   'evil%2Eexample', 'evil%252Eexample', '%65vil.example',
                   "x\@$bad", "x%40$bad", "$bad%0a", "$bad%23",
                   "example.com/../$bad", "example.com%2F..%2F$bad", "$bad/",
                   ''),
               "/go?site=$bad", '/go', '/confirm', "http://localhost/go/$bad"),
           map({ ["/go/$bad", '', @$_] }
               [method => 'POST'], [method => 'HEAD'],
               [headers => ['X-Site' => 'example.com']],
               [headers => ['X_Site' => 'example.com']]);
}


# Requests for the title of an item.

sub title {
    return map({ [$_, '/title?id=1001'] }
               '/title?id=1001', '/title?ID=9999&id=1001&x=9999'),
           ['/title?id=1001', '/title?id=1001', method => 'POST',
            body => 'id=9999', headers => $form],
           map({ [$_, ''] }
               '/title?id=9999', '/title?id=1001&id=9999', '/title?%69d=9999',
               '/title?id=9999&id=1001', '/title', '/title?id=',
               '/title?id=1001%26id=9999');
}


# Requests with tokens.

sub tokens {
    my ($good, $bad) = map { "Bearer $_" } '51b7e2aa-valid', '3f6c1f0e-revoked';

    return ['/api/items', '*', headers => [Authorization => $good]],
           map({ ['/api/items', '', headers => $_] }
               [Authorization => $bad], [AUTHORIZATION => $bad],
               [Authorization => $bad, 'X-Token' => '51b7e2aa-valid'],
               [Authorization => $bad, 'X_Token' => '51b7e2aa-valid']),
           map({ [$_, '', headers => [Authorization => $bad]] }
               '/x/../api/items', '//api/items', '/%61pi/items',
               '/api/../api/items', 'http://localhost/api/items', '/introspect',
               '/API/items'),
           map({ ['/api/items', '', headers => [Authorization => $bad],
                  method => $_] } qw(HEAD POST OPTIONS));
}


# ---- what is tested ----

sub attack {
    my ($name) = @_;

    my $what = $example{$name};
    my $t = BloomTest->new;
    my @commands = command_lines($name);
    my ($start) = grep { $commands[$_] eq start_command($name) }
                       0 .. $#commands;
    my @after = grep { !/^curl|^nginx/ } @commands[$start .. $#commands];

    checkout($t);
    configure($t, content($name));
    commands_succeed($t, @commands[0 .. $start - 1]);

    # the backend that records stands for the one of the example

    my $conf = $t->read_file('nginx.conf');
    my $from = $t->port($what->{backend} // 8081);
    my $to = $t->port(8091);

    $conf =~ s{(proxy_pass\s+http://127\.0\.0\.1:)$from\b}{$1$to}g;
    $t->write_file('nginx.conf', $conf);

    my $backend = $t->backend(8091, sub { { body => "yes\n" } });

    $t->run;
    $t->expect_log($what->{excuse}) if $what->{excuse};

    if ($what->{before}) {
        commands_succeed($t, $what->{before});
        wait_until(sub {
            $t->get('/item/1001')->status == 200
            && $t->get('/item/9999')->status == 404
        });
    }

    attempt($t, $backend, $what->{alone}, @$_) for @{ $what->{attacks} };
    endpoints($t, $conf);
    $what->{more}->($t, $backend) if $what->{more};

    commands_succeed($t, @after) if $what->{after};
    $t->stop;
}


sub commands_succeed {
    my ($t, @commands) = @_;

    for (@commands) {
        my ($exit, $err);

        wait_until(sub {
            ($exit, undef, $err) = run_at_top($t, $_);
            return $exit == 0;
        });
        is($exit, 0, "the command succeeds: $_") or diag($err);
    }
}


# Sends a request, and tests what the backend gets of it.  If it is to get what
# was checked alone, it gets no body, and no header of the client.

sub attempt {
    my ($t, $backend, $alone, $target, $seen, %option) = @_;

    my $method = $option{method} // 'GET';
    my @headers = @{ $option{headers} // [] };
    my $body = $option{body} // '';
    my $name = join ' ', $method, $target, @headers, $body;
    my $before = () = $backend->requests;

    my $response = send_to($t, $target, %option);
    my @got = $backend->requests;

    splice @got, 0, $before;

    if ($seen eq '') {
        is("@{[ map { $_->{uri} } @got ]}", '', "nothing gets through: $name")
            or diag($response);
        return;
    }

    is(scalar @got, 1, "a request gets through: $name")
        or return diag($response);

    is($got[0]{uri}, $seen, "what was checked gets through: $name")
        if $seen ne '*';

    return if !$alone && !length $body;

    is($got[0]{body}, '', "no body gets through: $name");
    ok(!$got[0]{headers}{'content-length'},
       "no length of a body gets through: $name");

    is_deeply([sort keys %{ $got[0]{headers} }],
              ['connection', 'content-length', 'host'],
              "no header of the client gets through: $name") if $alone;
}


sub send_to {
    my ($t, $target, %option) = @_;

    my $method = $option{method} // 'GET';
    my @headers = (@{ $option{headers} // [] },
                   length $option{body} // ''
                   ? ('Content-Length' => length $option{body}) : ());
    my $c = BloomTest::Connection->new($t->port(8080));
    my $text = "$method $target HTTP/1.1\r\nHost: localhost\r\n"
               . "Connection: close\r\n";

    while (my ($header, $value) = splice @headers, 0, 2) {
        $text .= "$header: $value\r\n";
    }

    return $c->send("$text\r\n" . ($option{body} // ''))->response($method);
}


# Tests that an endpoint answers neither another machine nor a page of a website
# whose name points to this machine.

sub endpoints {
    my ($t, $conf) = @_;

    my @servers = grep { /\bbloom_api\b/ } split /^    server \{/m, $conf;

    for my $port (map { /listen 127\.0\.0\.1:(\d+)/ } @servers) {
        for my $host ('evil.example', 'localhost.evil.example', '') {
            my $c = BloomTest::Connection->new($port);

            $c->send("GET /bloom/zones HTTP/1.1\r\nHost: $host\r\n"
                     . "Connection: close\r\n\r\n");
            unlike($c->rest, qr/200 OK/,
                   "the endpoint does not answer for the host \"$host\"");
        }

        like(from_elsewhere($port, '/bloom/zones'), qr{^HTTP/1\.1 403 },
             'the endpoint refuses another address');
    }
}


# Returns the response to a request from another address.

sub from_elsewhere {
    my ($port, $target) = @_;

    my $socket = IO::Socket::INET->new(
        LocalAddr => '127.0.0.2', PeerAddr => '127.0.0.1', PeerPort => $port)
        or die "cannot connect: $!";

    print $socket "GET $target HTTP/1.1\r\nHost: localhost\r\n"
                  . "X-Forwarded-For: 127.0.0.1\r\n"
                  . "X-Real-IP: 127.0.0.1\r\nConnection: close\r\n\r\n";

    return join '', <$socket>;
}


# Tests by its text that a configuration has no door that a request cannot show:
# a location that only nginx itself should lead to, an endpoint that is open, a
# captured path or a body that a backend gets as the client wrote it.

sub look_at {
    my ($name, $text) = @_;

    my $conf = $text =~ s/^\s*#.*\n//gmr;
    my %location;

    $location{$2} = $3
        while $conf =~ /^( *)location ([^\n]*?) \{\n(.*?)^\1\}/msg;

    for my $target ($conf =~ m{\b(?:auth_request|mirror) (/\S+);}g) {
        my $block = $location{"= $target"} // $location{$target} // next;

        like($block, qr/^\s+internal;/m,
             "$name: a client cannot ask for $target");
    }

    for (sort keys %location) {
        my $block = $location{$_};

        like($block, qr/^\s+deny +all;/m,
             "$name: not everybody can use the endpoint $_")
            if $block =~ /\bbloom_api\b/;
        like($block, qr/rewrite +\^ \$uri\??\s+break;/,
             "$name: the backend gets the checked path of $_")
            if /\(\?</ && $block =~ m{proxy_pass +http://[^/;\$]+;};
        like($block, qr/proxy_pass_request_body +off;|proxy_set_body "";/,
             "$name: the backend gets no body beside the argument of $_")
            if $block =~ /proxy_pass .*_escaped;/;
    }
}


# Returns the names of the documents.

sub documents {
    return map { basename($_) }
           sort glob dirname(__FILE__) . '/../../docs/*.md';
}


# Returns the blocks of configuration in a document.

sub blocks {
    my ($document) = @_;

    return content("../$document") =~ /^```nginx\n(.*?)^```/msg;
}


sub escaped { $_[0] =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ger }


# ---- single examples ----

# Tests that a hostile entry of a list gets into Redis as it is, and that an
# answer of Redis that is cut confirms nothing.

sub redirect {
    my ($t, $backend) = @_;

    my @entries = map { "http://quotes.example/$_" }
        q(it's), q(a"b), 'a\\\\b', '$(touch x)', '`x`', ';x', '-x', 'a b',
        'a|b', '%00', '%0d%0aFLUSHALL';

    my $size = sub {
        run_at_top($t, 'redis-cli -s conf-examples/redis.sock scard urls')
    };
    my $before = $size->();

    $t->write_file('hostile.txt', join '', map { "$_\n" } @entries);
    commands_succeed($t, map {
        s{keys/urls-bad\.txt}{hostile.txt}r
    } grep { /urls-bad\.txt >|fill \S+ urls / } command_lines('redirect.conf'));
    $t->build_image('urls-bad.bloom', \@entries, '-p', '1e-9', '--form', 'url');
    $t->reload;

    for (@entries) {
        my ($exit, $out) = $t->run_tool('test', $t->testdir . '/urls-bad.bloom',
                                        $_);
        is($exit, 0, "the filter has $_");
        attempt($t, $backend, 1, '/go?url=' . escaped($_), '');
    }

    is($size->() - $before, scalar @entries, 'each entry is in Redis once');

    my $socket = $t->testdir . '/cut.sock';
    my ($confirm) = grep { /confirm\.pl 127/ } command_lines('redirect.conf');

    # a Redis that ends early: the third of its numbers would be 1

    my $redis = IO::Socket::UNIX->new(Local => $socket, Listen => 8)
        or die "cannot listen: $!";
    my $pid = spawn(sub {
        while (my $client = $redis->accept) {
            sysread $client, my $command, 65536;
            syswrite $client, "*3\r\n:0\r\n:0\r\n";
            close $client;
        }
    });

    my $first = $t->read_file('confirm.pid');

    commands_succeed($t, $confirm =~ s/8082/8092/r =~ s/redis\.sock/cut.sock/r);

    my $second = $t->read_file('confirm.pid');
    my $c = BloomTest::Connection->new($t->port(8092));

    $c->send("GET / HTTP/1.0\r\nX-Key: evil.example/\r\nX-Lists: urls\r\n\r\n");
    is($c->response->status, 500, 'an answer that is cut confirms nothing');

    kill 'KILL', $pid, $second;
    waitpid $pid, 0;
    $t->write_file('confirm.pid', $first);
}


sub image_server {
    my ($t) = @_;

    like($t->get($_, port => 8081)->status, qr/^40[04]$/,
         "the web server hides $_")
        for '/', '/images.key', '/../images.key', '/%2e%2e/images.key',
            '/ids.bloom/', '/ids.bloom~', '/../images.pub';
    is($t->request($_, '/ids.bloom', port => 8081)->status, 405,
       "the web server refuses $_") for qw(PUT POST DELETE);
    like(from_elsewhere($t->port(8081), '/ids.bloom'), qr{^HTTP/1\.1 403 },
         'the web server refuses another address');
}


# Tests that no spelling of a path makes an item absent.

sub except {
    my ($t, $backend) = @_;

    my $conf = $t->read_file('nginx.conf');
    my $raw = $t->port(8093);
    my ($recording) = $t->port(8091);

    # this backend neither decodes nor resolves a path

    $t->backend(8093, sub {
        return { status => $_[0]{uri} =~ m{^/item/1\d{3}$} ? 200 : 404,
                 body => 'b' };
    });
    $t->write_file('nginx.conf',
                   $conf =~ s{(proxy_pass\s+\S+:)$recording}{$1$raw}r);
    $t->reload;

    ok(wait_until(sub {
        $t->get('/item/2512')->header('X-Bloom-Status') eq 'REJECTED'
    }), 'the zone excepts a false positive');

    for my $path (map { $_->[0] } grep { $_->[1] ne '' } paths()) {
        send_to($t, $path);
        is($t->get('/item/1001')->status, 200,
           "item 1001 is there after a request for $path");
    }

    send_to($t, '/item/%32513') for 1 .. 2;
}


# Tests that a token of a second header does not reach the backend.

sub tokens_once {
    my ($t, $backend) = @_;

    my @two = map { "Bearer $_" } '51b7e2aa-valid', '3f6c1f0e-revoked';

    for my $headers ([Authorization => $two[0], Authorization => $two[1]],
                     [Authorization => $two[1], Authorization => $two[0]],
                     [Authorization => $two[0], authorization => $two[1]])
    {
        my $before = () = $backend->requests;

        send_to($t, '/api/items', headers => $headers);

        my @got = $backend->requests;

        splice @got, 0, $before;
        unlike(join(' ', map { %{ $_->{headers} } } @got), qr/revoked/,
               "no revoked token reaches the backend: @$headers");
    }
}


# Tests that a client cannot fill the cache with copies of popular pages.

sub cache {
    my ($t, $backend) = @_;

    my @spellings = ('/news', '//news', '/./news', '/x/../news', '/%6eews',
                     '/news#1');

    send_to($t, $_) for @spellings, map({ "/news?$_" } 1 .. 5, 1 .. 5),
                        map { "/x$_/../news?$_" } 1 .. 5;

    my @stored = grep { -f } glob $t->testdir . '/cache/*';

    is(scalar @stored, 1, 'the cache has one copy of a page');
    is(send_to($t, $_)->header('X-Cache-Status'), 'HIT',
       "the page comes from the cache: $_") for @spellings;
}


# Tests that no spelling of a listed URL gets "no" as an answer.

sub link_check {
    my ($t) = @_;

    my $listed = 'http://www.evil.example/download/new/a.exe';
    my @attacks = grep { $_->[1] eq '' && $_->[0] =~ m{[/?=]http}
                         && ($_->[2] // '') ne 'method' } urls($listed);

    cmp_ok(scalar @attacks, '>', 10, 'the table has requests');

    for (map { s/\bgo\b/check/r } map { $_->[0] } @attacks) {
        unlike(send_to($t, $_), qr/"no"/, "the answer is not \"no\": $_");
    }

    unlike(send_to($t, "/check?url=$listed", method => 'POST',
                   body => 'url=http://other.example/', headers => $form),
           qr/"no"/, 'a body does not count');
    unlike($t->request(POST => '/bloom/zones/feed/keys', body => 'x')->status,
           qr/^2/, 'nobody can add a key');
    unlike($t->get('/bloom/zones/feed/image')->status, qr/^2/,
           'nobody gets the image');
}
