#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the harness in t/lib: its functions work, they return when what they
# wait for has happened, and each of its checks can fail.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp;
use IO::Socket::INET;

use BloomTest;
use BloomTest::Disk;
use BloomTest::Port qw(reserve_port);
use BloomTest::Process qw(run_command spawn wait_until alive);

my $lib = abs_path(dirname(__FILE__) . '/lib');

my $config = <<'CONF';
%%TEST_GLOBALS%%
worker_processes 2;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    include %%TESTDIR%%/answer.conf;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location / { root %%TESTDIR%%/html; }
        location /answer { return 200 $answer; }
        location /echo { return 200 "$request_method $http_x_a $http_x_b"; }
        location /proxy/ { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /held { proxy_pass http://127.0.0.1:%%PORT_8082%%; }
    }
}
CONF

sub answer { return "map \$uri \$answer { default $_[0]; }\n" }


my $t = BloomTest->new(module => 0);

$t->write_file_expand('nginx.conf', $config);
$t->write_file('answer.conf', answer('one'));
$t->write_file('html/long', join '', map { "line $_\n" } 1 .. 20000);
$t->run;

my $head = "Host: localhost\r\n\r\n";


subtest 'run starts nginx and each test has its own ports' => sub {
    is(scalar $t->workers, 2, 'run returns when all workers run');
    ok(alive($t->master), 'master returns the process of a running master');

    my $other = BloomTest->new(module => 0);
    isnt($other->port(8080), $t->port(8080),
         'two tests have different ports for a number');
    isnt($other->port(8081), $other->port(8080),
         'two numbers have different ports');
    is($other->port(8080), $other->port(8080),
       'a number keeps its port');
    isnt($other->testdir, $t->testdir,
         'two tests have different directories');

    ok(!eval { $t->write_file_expand('x', '%%NO_SUCH%%'); 1 },
       'write_file_expand refuses an unknown token');
    like($@, qr/unknown token %%NO_SUCH%% in x/,
         'the refusal names the unknown token');
};


subtest 'requests are sent and responses are read' => sub {
    my $r = $t->get('/answer');
    is($r->status, 200, 'a response has status 200');
    is($r->body, 'one', 'a response has its body');
    is($r->header('content-length'), 3, 'a response has its headers');
    like($r, qr/200 OK.*one$/s, 'a response is its text as a string');

    is($t->get('/none')->status, 404, 'a response has status 404');
    is($t->get('/echo', headers => { 'X-A' => 1, 'X-B' => 2 })->body,
       'GET 1 2', 'get sends its headers');
    is($t->put('/echo', 'x')->body, 'PUT  ', 'put sends its method');
    is($t->delete('/echo')->body, 'DELETE  ', 'delete sends its method');

    $r = $t->head('/long');
    is($r->status, 200, 'a response to HEAD has its status');
    cmp_ok($r->header('Content-Length'), '>', 100000,
           'a response to HEAD has its length');
    is($r->body, '', 'a response to HEAD has no body');

    is($t->get('/long')->body, $t->read_file('html/long'),
       'a long response has its whole body');

    is($t->http("GET /answer HTTP/1.1\r\n$head", piece => 1, pause => 0.001)
         ->body, 'one', 'http sends a request byte by byte');

    my @r = $t->pipeline('/answer', "HEAD /long HTTP/1.1\r\n$head", '/none',
                         '/long', '/answer');
    is("@{[map { $_->status } @r]}", '200 200 404 200 200',
       'pipelined requests are answered in order');
    is($r[4]->body, 'one', 'the last pipelined request has its response');
    is($r[3]->body, $t->read_file('html/long'),
       'a long pipelined response has its whole body');

    my $c = $t->connect;
    $c->send("GET /answer HTTP/1.1\r\n$head");
    is($c->response->body, 'one',
       'the first request of a connection has its response');
    $c->send("GET /answer HTTP/1.1\r\n$head");
    is($c->response->body, 'one',
       'the second request of a connection has its response');
    $c->send("GET /answer HTTP/1.0\r\n$head");
    is($c->response->status, 200,
       'the last request of a connection has its response');
    is($c->rest, '', 'rest is empty when the server closes the connection');

    $c = $t->connect;
    $c->send("GET /answer HTTP/1.1\r\n$head");
    $c->end;
    is($c->response->body, 'one',
       'a connection that has ended sending has its response');

    $t->http_abort("GET /long HTTP/1.1\r\n$head", after => 9);
    is($t->get('/answer')->body, 'one',
       'a request after an aborted one has its response');
};


subtest 'a backend answers and records requests' => sub {
    my $backend = $t->backend(8081, { paths => {
        '/proxy/text' => 'some text',
        '/proxy/made' => { status => 201, headers => ['X-New' => 'id'],
                           body => '{"a":[1,2]}' },
    } });

    is($t->get('/proxy/text')->body, 'some text',
       'a backend answers with a text');

    my $r = $t->post('/proxy/made', 'in', headers => ['X-A' => 7]);
    is($r->status, 201, 'a backend answers with a status');
    is($r->header('x-new'), 'id', 'a backend answers with a header');
    is_deeply($r->json, { a => [1, 2] }, 'a response has its body as JSON');

    is($t->get('/proxy/none')->status, 404,
       'a backend answers 404 to an unknown path');
    is($t->request(POST => '/proxy/text', chunks => ['ab', 'cde'])->status,
       200, 'a backend answers a chunked request');

    my @seen = $backend->requests;
    is(join(' ', map { "$_->{method}:$_->{uri}" } @seen),
       'GET:/proxy/text POST:/proxy/made GET:/proxy/none POST:/proxy/text',
       'a backend records the requests that it saw');
    is($seen[1]{body}, 'in', 'a backend records the body of a request');
    is($seen[1]{headers}{'x-a'}, 7,
       'a backend records the headers of a request');
    is($seen[3]{body}, 'abcde',
       'a backend records the body of a chunked request');
};


# Reads a response that nginx never sends, from a server that sends it verbatim.
# Returns the response and what follows it.

sub verbatim {
    my ($answer, @request) = @_;

    my ($port, $lock) = reserve_port();
    my $listen = IO::Socket::INET->new(
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $port,
        Listen => 1, ReuseAddr => 1) or die "listen: $!";

    my $pid = spawn(sub {
        my $client = $listen->accept;
        print $client $answer;
        $client->shutdown(1);
        1 while <$client>;
    });
    close $listen;

    my $c = BloomTest::Connection->new($port);
    $c->send("GET / HTTP/1.1\r\n$head");
    my $r = $c->response;
    my $rest = $c->rest;
    $c->close;
    wait_until(sub { !alive($pid) }) or die 'the server does not end';

    return ($r, $rest);
}


subtest 'unusual responses are read' => sub {
    my ($r, $rest) = verbatim(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        . "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nmore");
    is($r->body, 'abc0123456789', 'a chunked response has its body');
    ok($r->complete, 'a chunked response is complete');
    is($rest, 'more', 'a chunked response does not have the bytes after it');

    ($r) = verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    . "3\r\nabc\r\n9\r\n01");
    ok(!$r->complete, 'a response with a truncated chunk is not complete');

    ($r) = verbatim("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    is($r->body, 'abc', 'a truncated response has the bytes that came');
    ok(!$r->complete, 'a truncated response is not complete');

    ($r) = verbatim("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                    . "A: 1\r\nA: 2\r\n\r\nuntil the end");
    is($r->body, 'until the end',
       'a response without a length has its whole body');
    is(join(' ', $r->interim), '100', 'a response has its interim statuses');
    is($r->header('A'), '1, 2', 'a response joins a repeated header');

    ($r) = verbatim('');
    is($r->status, 0, 'a missing response has status 0');
};


subtest 'reload waits for new workers and the end of old ones' => sub {
    for my $answer ('two', 'three', 'four') {
        my @old = $t->workers;
        $t->write_file('answer.conf', answer($answer));
        $t->reload;

        is($t->get('/answer')->body, $answer,
           "new workers answer $answer after a reload");
        is(scalar(grep { alive($_) } @old), 0,
           "old workers have exited when new ones answer $answer");
    }

    # a request keeps an old worker busy until the file exists

    my $release = $t->testdir . '/release';
    my $backend = $t->backend(8082, sub {
        wait_until(sub { -e $release });
        return 'released';
    });

    my $c = $t->connect;
    $c->send("GET /held HTTP/1.1\r\n$head");
    ok(wait_until(sub { $backend->requests }),
       'a worker is busy with a request');
    my @old = $t->workers;

    $t->write_file('answer.conf', answer('five'));
    $t->reload(keep_old => 1);
    is($t->get('/answer')->body, 'five',
       'new workers answer while an old one is busy');
    ok(wait_until(sub { 1 == grep { alive($_) } @old }),
       'only the busy old worker still runs after the idle one has exited');

    $t->write_file('release', '');
    is($c->response->body, 'released', 'the busy old worker ends its request');
    $c->close;
    ok(wait_until(sub { !grep { alive($_) } @old }),
       'the busy old worker exits after its request');

    # a reload that waits for a busy worker: the file is written only after a
    # new worker has answered

    unlink $release;
    $c = $t->connect;
    $c->send("GET /held HTTP/1.1\r\n$head");
    ok(wait_until(sub { $backend->requests == 2 }),
       'a worker is busy with another request');
    @old = $t->workers;

    my $pid = spawn(sub {
        wait_until(sub { $t->get('/answer')->body eq 'six' });
        sleep 1;
        $t->write_file('release', '');
    });

    $t->write_file('answer.conf', answer('six'));
    $t->reload;
    ok(-e $release, 'reload waits for the busy worker');
    is(scalar(grep { alive($_) } @old), 0,
       'the busy worker has exited after the reload');
    is($c->response->body, 'released',
       'the busy worker has ended its request before the reload returns');
    ok(wait_until(sub { !alive($pid) }),
       'the process that releases the worker exits');
};


subtest 'a reload of a wrong configuration is refused' => sub {
    my @old = $t->workers;

    $t->write_file('answer.conf', "no_such_directive;\n");
    like($t->reload_fails, qr/\[emerg\].*unknown directive "no_such_directive"/,
         'reload_fails returns the log with the reason');
    is("@{[$t->workers]}", "@old", 'the workers stay after a refused reload');
    is($t->get('/answer')->body, 'six',
       'the workers answer after a refused reload');

    my ($exit, $output) = $t->test_config;
    is($exit, 1, 'nginx -t fails for a wrong configuration');
    like($output, qr/unknown directive "no_such_directive"/,
         'nginx -t gives the reason why it fails');

    ok(!eval { $t->reload; 1 }, 'reload dies of a wrong configuration');
    like($@, qr/refuses to reload.*no_such_directive/s,
         'reload dies with the reason');
    $t->expect_log(qr/unknown directive "no_such_directive"/);

    $t->write_file('answer.conf', answer('seven'));
    ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx -t succeeds for a right configuration');
    like($output, qr/test is successful/,
         'test_config returns the output of nginx -t');
    $t->reload;
    is($t->get('/answer')->body, 'seven',
       'a reload succeeds after a refused one');
};


subtest 'the log is read from a mark' => sub {
    my $mark = $t->log_mark;
    is($t->log_since($mark), '', 'log_since is empty at the end of the log');
    $t->get('/first-missing');
    my $second = $t->log_mark;
    $t->get('/second-missing');
    like($t->wait_for_log(qr/second-missing/, $mark),
         qr/^\S+ \S+ \[error\].*second-missing/,
         'wait_for_log returns a line after the mark');
    unlike($t->log_since($second), qr/first-missing/,
           'log_since leaves out lines before the mark');
};


subtest 'kill_worker waits for another worker' => sub {
    my $worker = $t->kill_worker;
    my @now = $t->workers;
    ok(!grep({ $_ == $worker } @now), 'kill_worker kills a worker');
    is(scalar @now, 2, 'kill_worker returns when the worker is replaced');
    is($t->get('/answer')->body, 'seven',
       'requests are answered after kill_worker');
};


subtest 'an upgrade replaces the master' => sub {
    for my $n (1 .. 2) {
        my $old = $t->master;
        my $new = $t->upgrade_begin;
        isnt($new, $old, "upgrade $n begins with a new master");
        ok(alive($old), "upgrade $n begins while the old master runs");
        is(scalar $t->workers($new), 2,
           "the new master of upgrade $n has its workers");
        is(scalar $t->workers($old), 2,
           "the old master of upgrade $n has its workers");

        $t->upgrade_finish;
        is($t->master, $new, "the new master serves after upgrade $n");
        ok(!alive($old), "the old master has exited after upgrade $n");
        is($t->get('/answer')->body, 'seven',
           "requests are answered after upgrade $n");
    }

    $t->reload;
    is($t->get('/answer')->body, 'seven',
       'requests are answered after a reload that follows upgrades');
};


subtest 'the helper and the master are killed' => sub {
    my $cached = BloomTest->new(module => 0);
    (my $special = $config) =~ s/(http \{)/$1
        proxy_cache_path cache keys_zone=cache:1m;/;
    $cached->write_file_expand('nginx.conf', $special);
    $cached->write_file('answer.conf', answer('cached'));
    $cached->run;

    my $helper = $cached->kill_helper;
    my @now = $cached->helpers;
    is(scalar @now, 1, 'kill_helper returns when there is a helper');
    isnt($now[0], $helper, 'kill_helper waits for another helper');

    my ($master, @workers) = ($cached->master, $cached->workers);
    my @left = $cached->kill_master;
    ok(!alive($master), 'kill_master kills the master');
    my %left = map { $_ => 1 } @left;
    is(scalar(grep { $left{$_} } @workers, @now), 3,
       'kill_master returns the processes that still run');
    is($cached->get('/answer')->body, 'cached',
       'workers answer without their master');

    $cached->end_processes('KILL', @left);
    ok(!grep({ alive($_) } @left), 'end_processes ends the processes');
    $cached->run;
    is($cached->get('/answer')->body, 'cached',
       'nginx starts after the death of its master');
    ok($cached->stop, 'nginx stops after the death of an earlier master');
};


# The library works in any program, so Perl shows what it does.

subtest 'BloomTest::Disk refuses calls in a directory' => sub {
    local $t->{env} = { %{ $t->{env} || {} } };
    my $disk = BloomTest::Disk->new($t, 'state');
    my $dir = $t->testdir;
    my %env = %{ $t->{env} };
    mkdir "$dir/state";

    my $try = sub {
        my ($code) = @_;
        my ($exit, $out, $err) = run_command(
            [$^X, '-MIO::Handle', '-MErrno', '-e',
             q{sub told { print $_[0] ? 'ok' : 0 + $! } }
             . $code, $dir], env => \%env);
        return "$out$err";
    };
    my $write = q{open my $f, '+<', "$ARGV[0]/state/f"; told(syswrite $f, 'x')};
    my $grow = q{open my $f, '>>', "$ARGV[0]/state/f"; told(syswrite $f, 'x')};
    my $make = q{told(open my $f, '>', "$ARGV[0]/state/f")};
    my $sync = q{open my $f, '+<', "$ARGV[0]/state/f"; told($f->sync)};
    my $rename = q{told(rename "$ARGV[0]/state/f", "$ARGV[0]/state/f")};
    my $elsewhere = q{open my $f, '>', "$ARGV[0]/f"; told(syswrite $f, 'x')};

    is($try->($_), 'ok', "a call succeeds before a refusal: $_")
        for $make, $grow, $write, $sync, $rename;

    for (['ENOSPC', 28, 'grow', $grow, $write],
         ['EIO', 5, 'write', $write, $make],
         ['EROFS', 30, 'open', $make, $rename],
         ['EIO', 5, 'sync', $sync, $write],
         ['EACCES', 13, 'rename', $rename, $sync])
    {
        my ($name, $number, $what, $refused, $allowed) = @$_;

        $disk->refuse($name, $what);
        is($try->($refused), $number,
           "$what fails with $name when the disk refuses it");
        is($try->($allowed), 'ok',
           "another call succeeds when the disk refuses $what");
        is($try->($elsewhere), 'ok',
           "another directory is not affected when the disk refuses $what");

        $disk->allow;
        is($try->($refused), 'ok', "$what succeeds when the disk allows it");
    }
};


subtest 'nginx stops, starts and is killed' => sub {
    my $master = $t->master;
    ok($t->stop, 'stop succeeds');
    ok(!alive($master), 'the master has exited after stop');
    ok(!eval { $t->get('/answer'); 1 }, 'get dies after stop');
    like($@, qr/cannot connect/, 'get dies with the reason');

    $t->run;
    is($t->get('/answer')->body, 'seven',
       'requests are answered after stop and run');
    my @all = ($t->master, $t->workers);
    $t->kill_all;
    is(scalar(grep { alive($_) } @all), 0,
       'kill_all kills all processes');

    $t->run;
    is($t->get('/answer')->body, 'seven',
       'nginx starts with the pid file of a killed master');
    $t->stop;

    $t->write_file('answer.conf', "no_such_directive;\n");
    like($t->run_fails, qr/unknown directive "no_such_directive"/,
         'run_fails returns the reason');
    ok(!eval { $t->run; 1 }, 'run dies of a wrong configuration');
    like($@, qr/does not start.*no_such_directive/s,
         'run dies with the reason');
    $t->write_file('answer.conf', answer('eight'));
};


subtest 'nginx runs without a daemon or a master' => sub {
    for my $mode ('daemon off;', "master_process off;",
                  "daemon off;\nmaster_process off;")
    {
        (my $special = $config) =~ s/worker_processes 2;/$mode/;
        $t->write_file_expand('nginx.conf', $special);
        $t->write_file('answer.conf', answer('eight'));
        $t->run;
        my $shown = $mode =~ tr/\n/ /r;
        is($t->get('/answer')->body, 'eight', "nginx runs with '$shown'");

        if ($mode =~ /master/) {
            ok(!eval { $t->reload; 1 }, "reload dies with '$shown'");
            like($@, qr/does not reload with master_process off/,
                 "reload gives the reason why it dies with '$shown'");

        } else {
            $t->write_file('answer.conf', answer('nine'));
            $t->reload;
            is($t->get('/answer')->body, 'nine',
               "nginx reloads with '$shown'");
        }

        ok($t->stop, "nginx stops with '$shown'");
    }
};


subtest 'requests are sent over HTTP/2' => sub {
    plan skip_all => 'curl or nginx has no HTTP/2' unless $t->has_http2;

    my $h2 = BloomTest->new(module => 0);
    (my $special = $config) =~ s/listen ([^;]+);/$h2->http2($1)/e;
    $h2->write_file_expand('nginx.conf', $special);
    $h2->write_file('answer.conf', answer('two'));
    $h2->run;

    my $r = $h2->get_http2('/answer');
    is($r->status, 200, 'a response over HTTP/2 has status 200');
    is($r->body, 'two', 'a response over HTTP/2 has its body');
    is($h2->get_http2('/echo', headers => { 'X-A' => 'b' })->body,
       'GET b ', 'get_http2 sends its headers');
    is($h2->get_http2('/none')->status, 404,
       'a response over HTTP/2 has status 404');
    ok($h2->stop, 'nginx stops after requests over HTTP/2');
};


subtest 'run_tool runs a command' => sub {
    local $ENV{TEST_BLOOM_TOOL} = $^X;
    my $much = "0123456789\n" x 100000;

    is_deeply([$t->run_tool('-e', 'print <STDIN>', { stdin => $much })],
              [0, $much, ''], 'run_tool passes a megabyte through a command');
    is_deeply([$t->run_tool('-e', 'print "out"; warn "err\n"; exit 3')],
              [3, 'out', "err\n"],
              'run_tool returns the exit status and the output');
    is_deeply([$t->run_tool('-e', 'exit 0', { stdin => $much })],
              [0, '', ''],
              'run_tool runs a command that does not read its input');
    is_deeply([$t->run_tool('-e', 'kill 9, $$')], [137, '', ''],
              'run_tool returns the signal that kills a command');
    is_deeply([$t->run_tool('-e', 'print $ENV{A}', { env => { A => 5 } })],
              [0, '5', ''], 'run_tool sets the environment');

    ok(!eval { $t->run_tool('-e', 'sleep 1 while 1', { limit => 0.2 }); 1 },
       'run_tool dies when a command does not end');
    like($@, qr/did not end/, 'run_tool says that the command did not end');
};


subtest 'build_image runs ngx-bloom build' => sub {
    my $tool = $t->write_file('tool', <<"TOOL");
#!$^X
print STDERR "no good\\n" and exit 2 if grep { \$_ eq 'bad' } \@ARGV;
open my \$in, '<', \$ARGV[-1] or die;
open my \$out, '>', \$ARGV[2] or die;
print \$out "\@ARGV[0, 1, 3 .. \$#ARGV - 1]|", <\$in>;
TOOL
    chmod 0755, $tool;
    local $ENV{TEST_BLOOM_TOOL} = $tool;

    my $image = $t->build_image('a.bloom', ['x', 'y']);
    is($image, $t->testdir . '/a.bloom',
       'build_image returns the path of the image');
    is($t->read_file('a.bloom'), "build -o -p 0.001|x\ny\n",
       'build_image writes keys as lines');

    $t->build_image('b.bloom', ["x\n", 'y'], '-p', '0.1');
    is($t->read_file('b.bloom'), "build -o -p 0.1 -0|x\n\0y\0",
       'build_image writes keys with a newline separated by NUL');

    ok(!eval { $t->build_image('c.bloom', [], 'bad'); 1 },
       'build_image dies when the tool fails');
    like($@, qr/ngx-bloom build failed \(2\): no good/,
         'build_image dies with the reason');
};


subtest 'reserve_port gives each port once' => sub {
    my ($port, $lock) = reserve_port();
    my ($next, $other) = reserve_port($port);
    isnt($next, $port, 'a reserved port is not given to another caller');

    my $used = IO::Socket::INET->new(ReuseAddr => 1,
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $port,
        Listen => 1);
    ok($used, 'a server listens on a reserved port');
    undef $lock;
    ($next) = reserve_port($port);
    isnt($next, $port, 'a port that a server listens on is not given');

    # processes that search from one number at the same time

    my $dir = File::Temp->newdir;
    pipe my $wait, my $go or die "pipe: $!";

    my @pids = map {
        my $file = "$dir/$_";
        spawn(sub {
            close $go;
            my @reserved = map { [reserve_port($port)] } 1 .. 20;
            open my $out, '>', "$file.tmp" or die "$file.tmp: $!";
            print $out map { "$_->[0]\n" } @reserved;
            close $out;
            rename "$file.tmp", $file;
            <$wait>;
        });
    } 1 .. 8;

    ok(wait_until(sub { 8 == grep { -e "$dir/$_" } 1 .. 8 }),
       'eight processes reserve at once');
    close $go;

    my %count;
    for my $file (map { "$dir/$_" } 1 .. 8) {
        open my $in, '<', $file or die "$file: $!";
        $count{$_}++ for <$in>;
    }

    is(scalar keys %count, 160, 'each of 160 reserved ports is given once');
    ok(wait_until(sub { !grep { alive($_) } @pids }),
       'the processes that reserve ports exit');
};


# Runs a script that uses the harness and returns its exit status and output.

sub child {
    my ($code, %env) = @_;

    my $script = File::Temp->new(SUFFIX => '.t');
    print $script <<"SCRIPT";
use strict;
use warnings;
use BloomTest;
use BloomTest::Process;

my \$t = BloomTest->new(module => 0);
\$t->write_file_expand('nginx.conf', <<'CONF');
$config
CONF
\$t->write_file('answer.conf', "map \\\$uri \\\$answer { default x; }");
sub append {
    my (\$name, \$text) = \@_;
    open my \$fh, '>>', \$t->testdir . "/\$name" or die;
    print \$fh "\$text\\n";
}

$code
SCRIPT
    close $script;

    my ($exit, $out, $err) = run_command(
        [$^X, "-I$lib", $script->filename],
        env => { TEST_NGINX_LEAVE => '', %env });

    return ($exit, "$out$err");
}


my $no_alert = qr/the error log has no unexpected \[alert\]/;
my $no_process = qr/the test leaves no process behind/;

my @failures = (

    ['an alert in the log',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       pass('x'); done_testing;},
     qr/^not ok \d+ - $no_alert.*^# \S+ \[alert\] 1#1: oops/ms],

    ['an emerg in the log',
     q{$t->run; append('error.log', '2020/01/01 [emerg] 1#1: oops');
       pass('x'); done_testing;},
     qr/^not ok \d+ - $no_alert.*\[emerg\] 1#1: oops/ms],

    ['an expected line that does not come',
     q{$t->run; $t->expect_log(qr/never there/); pass('x'); done_testing;},
     qr/^not ok \d+ - the error log has an expected line: .*never there/m],

    ['a report of the address sanitizer',
     q{$t->run; append('asan.123', '==123==ERROR: AddressSanitizer: heap');
       pass('x'); done_testing;},
     qr/^not ok \d+ - the sanitizers report nothing.*AddressSanitizer: heap/ms],

    ['a report of the undefined behaviour sanitizer',
     q{$t->run; append('error.log', 'a.c:1:2: runtime error: shift');
       pass('x'); done_testing;},
     qr/^not ok \d+ - the sanitizers report nothing.*runtime error: shift/ms],

    ['a worker that crashes',
     q{$t->run; my ($worker) = $t->workers; kill 'SEGV', $worker;
       BloomTest::Process::wait_until(sub {
           !BloomTest::Process::alive($worker) });
       pass('x'); done_testing;},
     qr/^not\ ok\ \d+\ -\ the\ (?:error\ log\ has.*exited\ on\ signal\ 11
                                |sanitizers\ report.*SEGV)/msx],

    ['a master that dies',
     q{$t->run; my $master = $t->master; my @workers = $t->workers;
       kill 'KILL', $master;
       BloomTest::Process::wait_until(sub {
           !BloomTest::Process::alive($master) });
       kill 'KILL', @workers;
       pass('x'); done_testing;},
     qr/^not ok \d+ - nginx: master \d+ died/m],

    ['a process left behind by a command',
     q{BloomTest::Process::run_command(
           [$^X, '-e', 'fork and exit; sleep 1 while 1']);
       pass('x'); done_testing;},
     qr/^not ok \d+ - $no_process.*^# \d+ .*sleep 1 while 1/ms],

    ['workers left behind by their master',
     q{$t->run; my $master = $t->master; my @workers = $t->workers;
       kill 'STOP', @workers; kill 'KILL', $master;
       BloomTest::Process::wait_until(sub {
           !BloomTest::Process::alive($master) });
       pass('x'); done_testing;},
     qr/^not ok \d+ - $no_process.*^# \d+ nginx: worker/ms],

    ['a refusal to start that does not come',
     q{$t->run_fails; done_testing;},
     qr/^not ok 1 - nginx refuses to start/m],

    ['a refusal to reload that does not come',
     q{$t->run; $t->reload_fails; done_testing;},
     qr/^not ok 1 - nginx refuses to reload and keeps its workers/m],

    ['bytes after a response',
     q{$t->backend(8083, sub { +{ headers => ['Content-Length' => 1],
                                 body => 'ab' } });
       $t->get('/', port => 8083); done_testing;},
     qr{^bytes after the response to 'GET / HTTP/1.1': 'b'}m],

    ['an exception',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       die 'in the middle';},
     qr/in the middle.*^# FAILED at exit: $no_alert/ms],

    ['an alert after Test::More has ended the plan',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       pass('x'); Test::More::done_testing();},
     qr/^# FAILED at exit: $no_alert/m],
);

subtest 'a script without failures passes' => sub {
    my ($exit, $output) = child(q{
        $t->run;
        is($t->get('/answer')->body, 'x', 'an answer');
        append('error.log', '2020/01/01 [alert] 1#1: oops');
        append('error.log', '2020/01/01 [crit] 1#1: well');
        $t->expect_log(qr/oops/);
        $t->kill_worker;
        diag('directory: ' . $t->testdir);
        done_testing;
    });
    is($exit, 0, 'a script without failures exits with 0') or diag($output);
    unlike($output, qr/^not ok/m, 'a script without failures reports none');
    like($output, qr/^ok 2 - the test leaves no .*\nok 3 - the sanitizers /m,
         'the checks at the end are tests');
    my ($dir) = $output =~ /^# directory: (.*)/m;
    ok(defined $dir && !-e $dir, 'the directory of a script is removed');

    ($exit, $output) = child(q{pass('x'); done_testing;},
                             TEST_NGINX_LEAVE => 1);
    ($dir) = $output =~ /test directory: (.*)/;
    ok(defined $dir && -e "$dir/nginx.conf",
       'the directory of a script is left with TEST_NGINX_LEAVE');
    run_command(['rm', '-r', $dir]) if $dir;
};

for (@failures) {
    my ($name, $code, $message) = @$_;

    subtest "a script with $name fails" => sub {
        my ($exit, $output) = child($code);
        isnt($exit, 0, "the exit status reports $name");
        like($output, $message, "the output reports $name");
    };
}

subtest 'a script fails without nginx, the module or the tool' => sub {
    my ($exit, $output) = child('done_testing;',
                                TEST_NGINX_BINARY => '/no/such/nginx');
    isnt($exit, 0, 'a script fails without nginx');
    like($output, qr{TEST_NGINX_BINARY=/no/such/nginx is not a program},
         'a script says which nginx is missing');
    unlike($output, qr/skip/i, 'a script is not skipped without nginx');

    ($exit, $output) = child('BloomTest->new; done_testing;',
                             TEST_NGINX_MODULE => '/no/such/module.so');
    isnt($exit, 0, 'a script fails without the module');
    like($output, qr{TEST_NGINX_MODULE=/no/such/module.so does not exist},
         'a script says which module is missing');

    ($exit, $output) = child('$t->run_tool; done_testing;',
                             TEST_BLOOM_TOOL => '/no/such/tool');
    isnt($exit, 0, 'a script fails without the tool');
    like($output, qr{TEST_BLOOM_TOOL=/no/such/tool is not a program},
         'a script says which tool is missing');
};


done_testing;
