#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the harness in t/lib: each of its checks can fail.  Of its functions, this
# tests those whose faults would let other tests pass: functions return when what
# they wait for has happened, kill what they say, and take no truncated response
# for a complete one.

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
        location /held { proxy_pass http://127.0.0.1:%%PORT_8082%%; }
    }
}
CONF

sub answer { return "map \$uri \$answer { default $_[0]; }\n" }


my $t = BloomTest->new(module => 0);

$t->write_file_expand('nginx.conf', $config);
$t->write_file('answer.conf', answer('one'));
$t->run;

my $head = "Host: localhost\r\n\r\n";


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
    is($t->get('/answer')->body, 'six',
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
        is($t->get('/answer')->body, 'six',
           "requests are answered after upgrade $n");
    }

    $t->reload;
    is($t->get('/answer')->body, 'six',
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


subtest 'kill_all waits for the end of all processes' => sub {
    my @all = ($t->master, $t->workers);
    $t->kill_all;
    is(scalar(grep { alive($_) } @all), 0,
       'kill_all kills all processes');
    ok(!eval { $t->get('/answer'); 1 }, 'get dies if nobody listens');
};


subtest 'run_tool runs a command' => sub {
    local $ENV{TEST_BLOOM_TOOL} = $^X;
    is_deeply([$t->run_tool('-e', 'print "out"; warn "err\n"; exit 3')],
              [3, 'out', "err\n"],
              'run_tool returns the exit status and the output');
    is_deeply([$t->run_tool('-e', 'kill 9, $$')], [137, '', ''],
              'run_tool returns the signal that kills a command');
    ok(!eval { $t->run_tool('-e', 'sleep 1 while 1', { limit => 0.2 }); 1 },
       'run_tool dies when a command does not end');
    like($@, qr/did not end/, 'run_tool says that the command did not end');
};


subtest 'build_image dies when the tool fails' => sub {
    my $tool = $t->write_file('tool', "#!/bin/sh\necho no good >&2; exit 2\n");
    chmod 0755, $tool;
    local $ENV{TEST_BLOOM_TOOL} = $tool;

    ok(!eval { $t->build_image('a.bloom', ['x']); 1 },
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
