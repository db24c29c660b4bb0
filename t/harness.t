#!/usr/bin/perl

# The harness itself: what it offers works, what it waits for has happened,
# and each of its checks can fail.

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


subtest 'start and processes' => sub {
    is(scalar $t->workers, 2, 'all workers are there');
    ok(alive($t->master), 'the master is alive');

    my $other = BloomTest->new(module => 0);
    isnt($other->port(8080), $t->port(8080), 'two tests, two ports');
    isnt($other->port(8081), $other->port(8080), 'two numbers, two ports');
    is($other->port(8080), $other->port(8080), 'a number keeps its port');
    isnt($other->testdir, $t->testdir, 'two tests, two directories');

    ok(!eval { $t->write_file_expand('x', '%%NO_SUCH%%'); 1 },
       'an unknown token is refused');
    like($@, qr/unknown token %%NO_SUCH%% in x/, 'and named');
};


subtest 'requests' => sub {
    my $r = $t->get('/answer');
    is($r->status, 200, 'status');
    is($r->body, 'one', 'body');
    is($r->header('content-length'), 3, 'header');
    like($r, qr/200 OK.*one$/s, 'as a string');

    is($t->get('/none')->status, 404, 'another status');
    is($t->get('/echo', headers => { 'X-A' => 1, 'X-B' => 2 })->body,
       'GET 1 2', 'headers are sent');
    is($t->put('/echo', 'x')->body, 'PUT  ', 'method is sent');
    is($t->delete('/echo')->body, 'DELETE  ', 'another one');

    $r = $t->head('/long');
    is($r->status, 200, 'HEAD');
    cmp_ok($r->header('Content-Length'), '>', 100000, 'HEAD has a length');
    is($r->body, '', 'and no body');

    is($t->get('/long')->body, $t->read_file('html/long'), 'a long body');

    is($t->http("GET /answer HTTP/1.1\r\n$head", piece => 1, pause => 0.001)
         ->body, 'one', 'a request byte by byte');

    my @r = $t->pipeline('/answer', "HEAD /long HTTP/1.1\r\n$head", '/none',
                         '/long', '/answer');
    is("@{[map { $_->status } @r]}", '200 200 404 200 200',
       'pipelined requests are answered in order');
    is($r[4]->body, 'one', 'up to the last');
    is($r[3]->body, $t->read_file('html/long'), 'with their bodies');

    my $c = $t->connect;
    $c->send("GET /answer HTTP/1.1\r\n$head");
    is($c->response->body, 'one', 'keep-alive, first');
    $c->send("GET /answer HTTP/1.1\r\n$head");
    is($c->response->body, 'one', 'keep-alive, second');
    $c->send("GET /answer HTTP/1.0\r\n$head");
    is($c->response->status, 200, 'the last');
    is($c->rest, '', 'then the server closes');

    $c = $t->connect;
    $c->send("GET /answer HTTP/1.1\r\n$head");
    $c->end;
    is($c->response->body, 'one', 'who has ended sending still reads');

    $t->http_abort("GET /long HTTP/1.1\r\n$head", after => 9);
    is($t->get('/answer')->body, 'one', 'after an aborted request');
};


subtest 'backend' => sub {
    my $backend = $t->backend(8081, { paths => {
        '/proxy/text' => 'some text',
        '/proxy/made' => { status => 201, headers => ['X-New' => 'id'],
                           body => '{"a":[1,2]}' },
    } });

    is($t->get('/proxy/text')->body, 'some text', 'an answer');

    my $r = $t->post('/proxy/made', 'in', headers => ['X-A' => 7]);
    is($r->status, 201, 'its status');
    is($r->header('x-new'), 'id', 'its header');
    is_deeply($r->json, { a => [1, 2] }, 'its JSON');

    is($t->get('/proxy/none')->status, 404, 'no answer');
    is($t->request(POST => '/proxy/text', chunks => ['ab', 'cde'])->status,
       200, 'a chunked request');

    my @seen = $backend->requests;
    is(join(' ', map { "$_->{method}:$_->{uri}" } @seen),
       'GET:/proxy/text POST:/proxy/made GET:/proxy/none POST:/proxy/text',
       'the requests it saw');
    is($seen[1]{body}, 'in', 'their body');
    is($seen[1]{headers}{'x-a'}, 7, 'their headers');
    is($seen[3]{body}, 'abcde', 'their chunks');
};


# A server that speaks its answer verbatim, to read what nginx never sends.

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


subtest 'responses' => sub {
    my ($r, $rest) = verbatim(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        . "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nmore");
    is($r->body, 'abc0123456789', 'chunks');
    ok($r->complete, 'complete');
    is($rest, 'more', 'and nothing beyond');

    ($r) = verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    . "3\r\nabc\r\n9\r\n01");
    ok(!$r->complete, 'a chunk cut short');

    ($r) = verbatim("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    is($r->body, 'abc', 'a body cut short');
    ok(!$r->complete, 'is not complete');

    ($r) = verbatim("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                    . "A: 1\r\nA: 2\r\n\r\nuntil the end");
    is($r->body, 'until the end', 'a body without a length');
    is(join(' ', $r->interim), '100', 'an interim response');
    is($r->header('A'), '1, 2', 'a repeated header');

    ($r) = verbatim('');
    is($r->status, 0, 'no response at all');
};


subtest 'reload' => sub {
    for my $answer ('two', 'three', 'four') {
        my @old = $t->workers;
        $t->write_file('answer.conf', answer($answer));
        $t->reload;

        is($t->get('/answer')->body, $answer, "new workers answer $answer");
        is(scalar(grep { alive($_) } @old), 0, 'old workers are gone');
    }

    # a request that keeps an old worker busy until the file is there

    my $release = $t->testdir . '/release';
    my $backend = $t->backend(8082, sub {
        wait_until(sub { -e $release });
        return 'released';
    });

    my $c = $t->connect;
    $c->send("GET /held HTTP/1.1\r\n$head");
    ok(wait_until(sub { $backend->requests }), 'a worker is busy');
    my @old = $t->workers;

    $t->write_file('answer.conf', answer('five'));
    $t->reload(keep_old => 1);
    is($t->get('/answer')->body, 'five', 'new workers answer beside it');
    ok(wait_until(sub { 1 == grep { alive($_) } @old }),
       'it alone is still there, once the idle one has ended');

    $t->write_file('release', '');
    is($c->response->body, 'released', 'it ends its request');
    $c->close;
    ok(wait_until(sub { !grep { alive($_) } @old }), 'then it goes');

    # the same again, for a reload that waits: the file comes only after a
    # new worker has answered

    unlink $release;
    $c = $t->connect;
    $c->send("GET /held HTTP/1.1\r\n$head");
    ok(wait_until(sub { $backend->requests == 2 }), 'a worker is busy again');
    @old = $t->workers;

    my $pid = spawn(sub {
        wait_until(sub { $t->get('/answer')->body eq 'six' });
        sleep 1;
        $t->write_file('release', '');
    });

    $t->write_file('answer.conf', answer('six'));
    $t->reload;
    ok(-e $release, 'reload waits for the busy worker');
    is(scalar(grep { alive($_) } @old), 0, 'which is gone');
    is($c->response->body, 'released', 'having ended its request');
    ok(wait_until(sub { !alive($pid) }), 'its helper is done');
};


subtest 'a refused reload' => sub {
    my @old = $t->workers;

    $t->write_file('answer.conf', "no_such_directive;\n");
    like($t->reload_fails, qr/\[emerg\].*unknown directive "no_such_directive"/,
         'says why');
    is("@{[$t->workers]}", "@old", 'the workers stay');
    is($t->get('/answer')->body, 'six', 'and answer');

    my ($exit, $output) = $t->test_config;
    is($exit, 1, 'nginx -t fails');
    like($output, qr/unknown directive "no_such_directive"/, 'and says why');

    ok(!eval { $t->reload; 1 }, 'reload dies');
    like($@, qr/refuses to reload.*no_such_directive/s, 'and says why');
    $t->expect_log(qr/unknown directive "no_such_directive"/);

    $t->write_file('answer.conf', answer('seven'));
    ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx -t passes');
    like($output, qr/test is successful/, 'and says so');
    $t->reload;
    is($t->get('/answer')->body, 'seven', 'all is well again');
};


subtest 'the log' => sub {
    my $mark = $t->log_mark;
    is($t->log_since($mark), '', 'nothing since now');
    $t->get('/first-missing');
    my $second = $t->log_mark;
    $t->get('/second-missing');
    like($t->wait_for_log(qr/second-missing/, $mark),
         qr/^\S+ \S+ \[error\].*second-missing/, 'a line since the mark');
    unlike($t->log_since($second), qr/first-missing/,
           'not what was before it');
};


subtest 'the death of a worker' => sub {
    my $worker = $t->kill_worker;
    my @now = $t->workers;
    ok(!grep({ $_ == $worker } @now), 'a worker is killed');
    is(scalar @now, 2, 'it is replaced');
    is($t->get('/answer')->body, 'seven', 'requests are answered');
};


subtest 'upgrade' => sub {
    for (1 .. 2) {
        my $old = $t->master;
        my $new = $t->upgrade_begin;
        isnt($new, $old, 'a new master');
        ok(alive($old), 'beside the old one');
        is(scalar $t->workers($new), 2, 'with its workers');
        is(scalar $t->workers($old), 2, 'beside those of the old one');

        $t->upgrade_finish;
        is($t->master, $new, 'the new master serves');
        ok(!alive($old), 'the old one is gone');
        is($t->get('/answer')->body, 'seven', 'requests are answered');
    }

    $t->reload;
    is($t->get('/answer')->body, 'seven', 'and a reload works');
};


subtest 'the helper, and a master that dies' => sub {
    my $cached = BloomTest->new(module => 0);
    (my $special = $config) =~ s/(http \{)/$1
        proxy_cache_path cache keys_zone=cache:1m;/;
    $cached->write_file_expand('nginx.conf', $special);
    $cached->write_file('answer.conf', answer('cached'));
    $cached->run;
    wait_until(sub { $cached->helpers }) or die 'no helper';

    my $helper = $cached->kill_helper;
    my @now = $cached->helpers;
    is(scalar @now, 1, 'the helper is replaced');
    isnt($now[0], $helper, 'by another one');

    my ($master, @workers) = ($cached->master, $cached->workers);
    my @left = $cached->kill_master;
    ok(!alive($master), 'the master is killed');
    my %left = map { $_ => 1 } @left;
    is(scalar(grep { $left{$_} } @workers, @now), 3, 'what is left is known');
    is($cached->get('/answer')->body, 'cached', 'and goes on');

    $cached->end_processes('KILL', @left);
    ok(!grep({ alive($_) } @left), 'until it is ended');
    $cached->run;
    is($cached->get('/answer')->body, 'cached', 'nginx starts again');
    ok($cached->stop, 'and stops');
};


# The library is for any program, so another one shows what it does.

subtest 'a disk that refuses' => sub {
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

    is($try->($_), 'ok', "nothing is refused: $_")
        for $make, $grow, $write, $sync, $rename;

    for (['ENOSPC', 28, 'grow', $grow, $write], ['EIO', 5, 'write', $write, $make],
         ['EROFS', 30, 'open', $make, $rename], ['EIO', 5, 'sync', $sync, $write],
         ['EACCES', 13, 'rename', $rename, $sync])
    {
        my ($name, $number, $what, $refused, $allowed) = @$_;

        $disk->refuse($name, $what);
        is($try->($refused), $number, "$what is refused with $name");
        is($try->($allowed), 'ok', 'and nothing else');
        is($try->($elsewhere), 'ok', 'nor elsewhere');

        $disk->allow;
        is($try->($refused), 'ok', 'until it is allowed again');
    }
};


subtest 'stop, start, death of everything' => sub {
    my $master = $t->master;
    ok($t->stop, 'stopped');
    ok(!alive($master), 'the master is gone');
    ok(!eval { $t->get('/answer'); 1 }, 'nobody answers');
    like($@, qr/cannot connect/, 'and the client says so');

    $t->run;
    is($t->get('/answer')->body, 'seven', 'started again');
    my @all = ($t->master, $t->workers);
    $t->kill_all;
    is(scalar(grep { alive($_) } @all), 0, 'killed');

    $t->run;
    is($t->get('/answer')->body, 'seven', 'started over the old pid file');
    $t->stop;

    $t->write_file('answer.conf', "no_such_directive;\n");
    like($t->run_fails, qr/unknown directive "no_such_directive"/,
         'a start that is refused');
    ok(!eval { $t->run; 1 }, 'run dies of it');
    like($@, qr/does not start.*no_such_directive/s, 'and says why');
    $t->write_file('answer.conf', answer('eight'));
};


subtest 'other kinds of process' => sub {
    for my $mode ('daemon off;', "master_process off;",
                  "daemon off;\nmaster_process off;")
    {
        (my $special = $config) =~ s/worker_processes 2;/$mode/;
        $t->write_file_expand('nginx.conf', $special);
        $t->write_file('answer.conf', answer('eight'));
        $t->run;
        is($t->get('/answer')->body, 'eight', "runs with $mode");

        if ($mode =~ /master/) {
            ok(!eval { $t->reload; 1 }, 'does not reload');
            like($@, qr/does not reload with master_process off/, 'says so');

        } else {
            $t->write_file('answer.conf', answer('nine'));
            $t->reload;
            is($t->get('/answer')->body, 'nine', 'reloads');
        }

        ok($t->stop, 'stops');
    }
};


subtest 'HTTP/2' => sub {
    plan skip_all => 'curl or nginx without HTTP/2' unless $t->has_http2;

    my $h2 = BloomTest->new(module => 0);
    (my $special = $config) =~ s/(listen [^;]+)/$1 http2/;
    $h2->write_file_expand('nginx.conf', $special);
    $h2->write_file('answer.conf', answer('two'));
    $h2->run;

    my $r = $h2->get_http2('/answer');
    is($r->status, 200, 'status');
    is($r->body, 'two', 'body');
    is($h2->get_http2('/echo', headers => { 'X-A' => 'b' })->body,
       'GET b ', 'headers are sent');
    is($h2->get_http2('/none')->status, 404, 'another status');
    ok($h2->stop, 'stops');
};


subtest 'commands' => sub {
    local $ENV{TEST_BLOOM_TOOL} = $^X;
    my $much = "0123456789\n" x 100000;

    is_deeply([$t->run_tool('-e', 'print <STDIN>', { stdin => $much })],
              [0, $much, ''], 'a megabyte through a command');
    is_deeply([$t->run_tool('-e', 'print "out"; warn "err\n"; exit 3')],
              [3, 'out', "err\n"], 'status and output');
    is_deeply([$t->run_tool('-e', 'exit 0', { stdin => $much })],
              [0, '', ''], 'a command that does not read');
    is_deeply([$t->run_tool('-e', 'kill 9, $$')], [137, '', ''],
              'death by a signal');
    is_deeply([$t->run_tool('-e', 'print $ENV{A}', { env => { A => 5 } })],
              [0, '5', ''], 'environment');

    ok(!eval { $t->run_tool('-e', 'sleep 1 while 1', { limit => 0.2 }); 1 },
       'a command that does not end');
    like($@, qr/did not end/, 'is killed');
};


subtest 'building an image' => sub {
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
    is($image, $t->testdir . '/a.bloom', 'its path');
    is($t->read_file('a.bloom'), "build -o -p 0.001|x\ny\n", 'keys by line');

    $t->build_image('b.bloom', ["x\n", 'y'], '-p', '0.1');
    is($t->read_file('b.bloom'), "build -o -p 0.1 -0|x\n\0y\0",
       'keys with a newline');

    ok(!eval { $t->build_image('c.bloom', [], 'bad'); 1 }, 'a failure');
    like($@, qr/ngx-bloom build failed \(2\): no good/, 'says why');
};


subtest 'ports' => sub {
    my ($port, $lock) = reserve_port();
    my ($next, $other) = reserve_port($port);
    isnt($next, $port, 'a reserved port is not given again');

    my $used = IO::Socket::INET->new(ReuseAddr => 1,
        Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $port,
        Listen => 1);
    ok($used, 'a server can listen on it');
    undef $lock;
    ($next) = reserve_port($port);
    isnt($next, $port, 'nor one that a server listens on');

    # scripts side by side, all starting to look at the same number

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

    is(scalar keys %count, 160, 'and no two get the same port');
    ok(wait_until(sub { !grep { alive($_) } @pids }), 'they end');
};


# Runs a script that uses the harness; returns its exit status and output.

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


my @failures = (

    ['an alert in the log',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       pass('x'); done_testing;},
     qr/^not ok \d+ - no unexpected \[alert\].*^# \S+ \[alert\] 1#1: oops/ms],

    ['an emerg in the log',
     q{$t->run; append('error.log', '2020/01/01 [emerg] 1#1: oops');
       pass('x'); done_testing;},
     qr/^not ok \d+ - no unexpected \[alert\].*\[emerg\] 1#1: oops/ms],

    ['an expected line that does not come',
     q{$t->run; $t->expect_log(qr/never there/); pass('x'); done_testing;},
     qr/^not ok \d+ - expected in the error log: .*never there/m],

    ['a report of the address sanitizer',
     q{$t->run; append('asan.123', '==123==ERROR: AddressSanitizer: heap');
       pass('x'); done_testing;},
     qr/^not ok \d+ - no sanitizer report.*AddressSanitizer: heap/ms],

    ['a report of the undefined behaviour sanitizer',
     q{$t->run; append('error.log', 'a.c:1:2: runtime error: shift');
       pass('x'); done_testing;},
     qr/^not ok \d+ - no sanitizer report.*runtime error: shift/ms],

    ['a worker that crashes',
     q{$t->run; my ($worker) = $t->workers; kill 'SEGV', $worker;
       BloomTest::Process::wait_until(sub {
           !BloomTest::Process::alive($worker) });
       pass('x'); done_testing;},
     qr/^not\ ok\ \d+\ -\ no\ (?:unexpected\ \[alert\].*exited\ on\ signal\ 11
                               |sanitizer\ report.*SEGV)/msx],

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
     qr/^not ok \d+ - no process left behind.*^# \d+ .*sleep 1 while 1/ms],

    ['workers left behind by their master',
     q{$t->run; my $master = $t->master; my @workers = $t->workers;
       kill 'STOP', @workers; kill 'KILL', $master;
       BloomTest::Process::wait_until(sub {
           !BloomTest::Process::alive($master) });
       pass('x'); done_testing;},
     qr/^not ok \d+ - no process left behind.*^# \d+ nginx: worker/ms],

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

    ['a script that dies',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       die 'in the middle';},
     qr/in the middle.*^# FAILED at exit: no unexpected \[alert\]/ms],

    ['an alert that Test::More ends the plan before',
     q{$t->run; append('error.log', '2020/01/01 [alert] 1#1: oops');
       pass('x'); Test::More::done_testing();},
     qr/^# FAILED at exit: no unexpected \[alert\]/m],
);

subtest 'what passes' => sub {
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
    is($exit, 0, 'status') or diag($output);
    unlike($output, qr/^not ok/m, 'no failure');
    like($output, qr/^ok 2 - no process left behind\nok 3 - no sanitizer/m,
         'the checks are tests');
    my ($dir) = $output =~ /^# directory: (.*)/m;
    ok(defined $dir && !-e $dir, 'the directory is removed');

    ($exit, $output) = child(q{pass('x'); done_testing;},
                             TEST_NGINX_LEAVE => 1);
    ($dir) = $output =~ /test directory: (.*)/;
    ok(defined $dir && -e "$dir/nginx.conf", 'or left when asked to');
    run_command(['rm', '-r', $dir]) if $dir;
};

for (@failures) {
    my ($name, $code, $message) = @$_;

    subtest "what fails: $name" => sub {
        my ($exit, $output) = child($code);
        isnt($exit, 0, 'status');
        like($output, $message, 'message');
    };
}

subtest 'what is missing' => sub {
    my ($exit, $output) = child('done_testing;',
                                TEST_NGINX_BINARY => '/no/such/nginx');
    isnt($exit, 0, 'nginx');
    like($output, qr{TEST_NGINX_BINARY=/no/such/nginx is not a program},
         'is named');
    unlike($output, qr/skip/i, 'and does not skip the test');

    ($exit, $output) = child('BloomTest->new; done_testing;',
                             TEST_NGINX_MODULE => '/no/such/module.so');
    isnt($exit, 0, 'the module');
    like($output, qr{TEST_NGINX_MODULE=/no/such/module.so does not exist},
         'is named');

    ($exit, $output) = child('$t->run_tool; done_testing;',
                             TEST_BLOOM_TOOL => '/no/such/tool');
    isnt($exit, 0, 'the tool');
    like($output, qr{TEST_BLOOM_TOOL=/no/such/tool is not a program},
         'is named');
};


done_testing;
