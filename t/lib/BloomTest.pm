# SPDX-License-Identifier: BSD-2-Clause

package BloomTest;

# BloomTest runs nginx with the bloom module for a test, in a temporary
# directory and on the test's own ports.  t/README.md shows how to write a test.
# Four files provide what a test can do:
#
#   BloomTest.pm           files, ports, the log, the tool, checks at the end
#   BloomTest/Nginx.pm     start, reload, upgrade, kill, stop
#   BloomTest/Client.pm    requests (Connection.pm: byte by byte)
#   BloomTest/Backend.pm   a server behind nginx
#
# A test loads other files in BloomTest/ itself.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp;
use JSON::PP ();
use Test::More import => ['!done_testing'];

use parent qw(Exporter BloomTest::Nginx BloomTest::Client);

use BloomTest::Backend;
use BloomTest::Port qw(reserve_port reserve_udp_port);
use BloomTest::Process qw(wait_until run_command leftovers title);

# exports all of Test::More to the test

our @EXPORT = ((grep { $_ ne 'done_testing' } @Test::More::EXPORT),
               'done_testing');

my $checkout = abs_path(dirname(__FILE__) . '/../..');

# log lines that fail a test unless it announced them

my $severe = qr/\[(?:alert|emerg)\]
               |exited\ on\ signal
               |exited\ with\ (?:fatal\ )?code\ [1-9]/x;

my $sanitizer = qr/(?:ERROR|SUMMARY):\ \w+Sanitizer
                  |:\ runtime\ error:
                  |ERROR:\ Can't\ open\ file/x;

my $script = $$;
my $finished;    # the checks at the end have run
my $failed;      # a check failed when it was too late for Test::More
my @tests;

$SIG{$_} = sub { exit 130 } for qw(INT TERM HUP);


# Creates a test.  Options: module => 0 runs nginx without the module; user =>
# NAME runs the workers as this user if the test runs as root (default: root);
# log_level (default: info), prefix (default: the test's directory; a relative one
# counts from the directory in which nginx is started).

sub new {
    my ($class, %option) = @_;

    my $self = bless {
        module => 1, user => 'root', log_level => 'info', %option,
        expected => [], excused => {}, ports => {},
    }, $class;

    $self->{binary} = $ENV{TEST_NGINX_BINARY} // '/usr/sbin/nginx';
    -x $self->{binary} && -f _
        or croak "no nginx to test: TEST_NGINX_BINARY=$self->{binary} is not"
                 . ' a program; install nginx or set it';

    if ($self->{module}) {
        $self->{module} = $ENV{TEST_NGINX_MODULE}
                          // "$checkout/build/ngx_http_bloom_module.so";
        $self->{module} eq '' || -f $self->{module}
            or croak "no module to test: TEST_NGINX_MODULE=$self->{module}"
                     . ' does not exist; run make or set it (to nothing if'
                     . ' nginx has the module built in)';
    }

    $self->{tempdir} = File::Temp->newdir(
        'bloom-test-XXXXXX', TMPDIR => 1, CLEANUP => !$ENV{TEST_NGINX_LEAVE});
    $self->{dir} = abs_path($self->{tempdir}->dirname);
    chmod 0755, $self->{dir} if $self->{user} ne 'root';
    diag("$0: test directory: $self->{dir}") if $ENV{TEST_NGINX_LEAVE};

    $self->{env} = {
        ASAN_OPTIONS => join(':', $ENV{ASAN_OPTIONS}
                                  // 'detect_odr_violation=0:detect_leaks=0',
                                  "log_path=$self->{dir}/asan"),
        UBSAN_OPTIONS => join(':', $ENV{UBSAN_OPTIONS}
                                   // 'print_stacktrace=1:halt_on_error=1',
                                   "log_path=$self->{dir}/ubsan"),
    } if $ENV{TEST_NGINX_SANITIZED};

    push @tests, $self;

    return $self;
}


sub testdir { return $_[0]{dir} }


# Sets variables in the environment of nginx.  Call it before nginx.conf is
# written.  Calls with LD_PRELOAD add libraries.

sub environment {
    my ($self, %variable) = @_;

    $variable{LD_PRELOAD} .= ":$self->{env}{LD_PRELOAD}"
        if $variable{LD_PRELOAD} && $self->{env}{LD_PRELOAD};

    %{ $self->{env} } = (%{ $self->{env} || {} }, %variable);

    # the sanitizer would report libraries that are loaded before its own

    $self->{env}{ASAN_OPTIONS} .= ':verify_asan_link_order=0'
        if $variable{LD_PRELOAD} && $self->{env}{ASAN_OPTIONS}
           && $self->{env}{ASAN_OPTIONS} !~ /verify_asan_link_order/;
}


# Compiles a library, which is loaded into nginx before the system's, and sets
# variables for it.

sub preload {
    my ($self, $name, $source, %variable) = @_;

    my $code = $self->write_file("$name.c", $source);
    my $library = "$self->{dir}/$name.so";
    my ($exit, undef, $err) = run_command(
        [$ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-o', $library, $code,
         '-ldl']);
    croak "$name.c does not compile: $err" if $exit != 0;

    $self->environment(%variable, LD_PRELOAD => $library);
}


# Returns the port that stands for a number.  Each number gets its own port,
# which stays reserved until the script ends.

sub port {
    my ($self, $number) = @_;

    my $port = $self->{ports}{$number} //= [reserve_port()];

    return $port->[0];
}


# Returns the UDP port that stands for a number, which is another port than the
# TCP port of the number.

sub udp_port {
    my ($self, $number) = @_;

    my $port = $self->{udp_ports}{$number} //= [reserve_udp_port()];

    return $port->[0];
}


sub write_file {
    my ($self, $name, $content) = @_;

    my $path = "$self->{dir}/$name";
    make_path(dirname($path));

    open my $fh, '>:raw', $path or croak "cannot write $path: $!";
    print $fh $content;
    close $fh or croak "cannot write $path: $!";

    return $path;
}


sub read_file {
    my ($self, $name) = @_;

    open my $fh, '<:raw', "$self->{dir}/$name"
        or croak "cannot read $self->{dir}/$name: $!";
    local $/;

    return <$fh> // '';
}


# Replaces %%TESTDIR%%, %%PORT_n%%, %%TEST_GLOBALS%% (for the top of
# nginx.conf) and %%TEST_GLOBALS_HTTP%% (for its http block).

sub write_file_expand {
    my ($self, $name, $content) = @_;

    my %token = (
        TESTDIR => sub { $self->{dir} },
        TEST_GLOBALS => sub { $self->_globals($content) },
        TEST_GLOBALS_HTTP => sub { $self->_globals_http($content) },
    );

    (my $text = $content) =~ s{%%(?:PORT_(\d+)|(\w+))%%}{
        defined $1 ? $self->port($1)
                   : ($token{$2} // croak "unknown token %%$2%% in $name")->()
    }ge;

    return $self->write_file($name, $text);
}


# Waits for a file to exist.

sub waitforfile {
    my ($self, $name) = @_;

    return wait_until(sub { -e "$self->{dir}/$name" })
           || croak "$self->{dir}/$name does not appear";
}


# Returns the present end of the error log.  log_since() returns what the log
# has since such a mark, and wait_for_log() searches it.

sub log_mark {
    my ($self) = @_;

    return -s "$self->{dir}/error.log" // 0;
}


sub log_since {
    my ($self, $mark) = @_;

    open my $fh, '<:raw', "$self->{dir}/error.log" or return '';
    seek $fh, $mark, 0;
    local $/;

    return <$fh> // '';
}


# Waits for a complete line that matches, and returns it.

sub wait_for_log {
    my ($self, $pattern, $mark) = @_;

    $mark //= 0;

    my $found = wait_until(sub {
        my ($line) = grep { /$pattern/ }
                          $self->log_since($mark) =~ /^(.*)\n/mg;
        return defined $line && \$line;
    }) or croak "no $pattern in the log:\n"
                . substr($self->log_since($mark), -4000) . "\n";

    return $$found;
}


# Announces that the log will have lines which match.  They do not fail the
# test; their absence does.

sub expect_log {
    my ($self, $pattern) = @_;

    push @{ $self->{expected} }, $pattern;
}


# Excuses everything in the log since the mark, because the test may have killed
# an unknown number of processes.

sub excuse_log {
    my ($self, $mark) = @_;

    $self->_excuse($mark);
}


# Returns what the sanitizers have reported, by line.

sub reports {
    my ($self) = @_;

    return grep { /$sanitizer/ } map { split /\n/, $self->_unexcused($_) }
                glob "$self->{dir}/{*san.*,stderr*,error*.log}";
}


# Excuses what they have reported, because the test has written to memory.  Check
# before that there is nothing to report.

sub excuse_reports {
    my ($self) = @_;

    unlink glob "$self->{dir}/*san.*";

    # by length: a report that could not be opened ends without a newline

    $self->{reported}{$_} = -s $_
        for glob "$self->{dir}/{stderr*,error*.log}";
}


sub _unexcused {
    my ($self, $path) = @_;

    my $content = $self->_content($path);
    my $reported = $self->{reported}{$path} // 0;

    return $reported <= length $content ? substr $content, $reported
                                        : $content;
}


# Starts a server behind nginx and returns it.  $port is the number of a
# %%PORT_n%% token.  The answer is as in BloomTest/Backend.pm; by default the
# server answers with the request that it got.

sub backend {
    my ($self, $port, $answer) = @_;

    $answer //= sub { "backend: $_[0]{method} $_[0]{uri}\n" };

    my $backend = BloomTest::Backend->new(
        port => $self->port($port), answer => $answer,
        record => "$self->{dir}/backend-$port.requests");
    push @{ $self->{backends} }, $backend;

    return $backend;
}


# Runs ngx-bloom and returns (exit status, stdout, stderr).  After the
# arguments, a hash may give stdin, env and limit.

sub run_tool {
    my ($self, @arguments) = @_;

    my %option = ref $arguments[-1] ? %{ pop @arguments } : ();
    my $tool = $ENV{TEST_BLOOM_TOOL} // "$checkout/build/ngx-bloom";

    -x $tool && -f _
        or croak "no tool to test: TEST_BLOOM_TOOL=$tool is not a program;"
                 . ' run make or set it';

    $option{env} = { %{ $self->{env} || {} }, %{ $option{env} || {} } };

    return run_command([$tool, @arguments], %option);
}


# Builds an image from keys, with -p 0.001 unless the options have another rate,
# and returns its path.

sub build_image {
    my ($self, $name, $keys, @options) = @_;

    unshift @options, '-p', '0.001'
        unless grep { /^(?:-p|--fpr|--like)/ } @options;
    push @options, '-0' if grep { /\n/ } @$keys;

    my $end = (grep { $_ eq '-0' } @options) ? "\0" : "\n";
    my $file = $self->write_file("$name.keys",
                                 join '', map { "$_$end" } @$keys);
    my $image = "$self->{dir}/$name";

    my ($exit, $out, $err)
        = $self->run_tool('build', '-o', $image, @options, $file);
    croak "ngx-bloom build failed ($exit): $err" if $exit != 0;

    return $image;
}


# Stops everything, runs the checks at the end, and ends the plan.

sub done_testing {
    _finish();
    Test::More::done_testing(@_);
}


sub _globals {
    my ($self, $config) = @_;

    # A worker of freenginx 1.27.2 that exits uses its rate of messages in memory
    # that it has freed; and tests need all messages.

    my $all = $self->nginx_build =~ m{version: freenginx/} ? 'rate=0 ' : '';

    my @lines = ("pid $self->{dir}/nginx.pid;",
                 "error_log $self->{dir}/error.log $all$self->{log_level};");

    push @lines, "load_module $self->{module};" if $self->{module};
    push @lines, 'daemon on;' unless $config =~ /^\s*daemon\s/m;
    push @lines, "user $self->{user};"
        if $> == 0 && $config !~ /^\s*user\s/m;
    push @lines, map { "env $_;" } sort keys %{ $self->{env} || {} };

    return join "\n", @lines;
}


sub _globals_http {
    my ($self, $config) = @_;

    # keeps a test away from the system's own state directory

    my @state = $config =~ /\bbloom_zone\b/
                && $config !~ /\bbloom_state_path\b/
                ? "bloom_state_path $self->{dir}/state;" : ();

    my @temporary = grep {
        $self->nginx_build !~ /--without-http_${_}_module/
    } qw(proxy fastcgi uwsgi scgi);

    return join "\n", "access_log $self->{dir}/access.log;", @state,
        map { "${_}_temp_path $self->{dir}/${_}_temp;" }
            'client_body', @temporary;
}


# Excuses the lines that an expected refusal has logged since the mark.

sub _excuse {
    my ($self, $mark) = @_;

    $self->{excused}{$_} = 1
        for grep { /$severe/ } split /\n/, $self->log_since($mark);
}


# Makes a check.  While Test::More counts tests, a check is a test; later it is
# a message and the script's exit status.

sub _check {
    my ($ok, $name, @detail) = @_;

    if ($finished) {
        return 1 if $ok;
        $failed = 1;
        diag("FAILED at exit: $name");

    } else {
        ok($ok, $name);
    }

    diag(@detail) unless $ok;

    return $ok;
}


sub _failure {
    my ($self, $name) = @_;

    return _check(0, $name);
}


sub _finish {
    for my $test (@tests) {
        $test->stop;
        $_->stop for @{ $test->{backends} || [] };
    }

    _check_leftovers();

    for my $test (@tests) {
        $test->_check_reports;
        $test->_check_logs;
    }

    $finished = 1;
    @tests = ();
}


sub _check_leftovers {
    my @left;

    wait_until(sub { !(@left = leftovers()) }, 3);

    my @titles = map { "$_ " . title($_) } @left;
    kill 'KILL', @left;
    wait_until(sub { !leftovers() }, 5) if @left;

    _check(!@left, 'the test leaves no process behind', join "\n", @titles);
}


sub _check_reports {
    my ($self) = @_;

    my @reports = $self->reports;

    _check(!@reports, 'the sanitizers report nothing', join("\n", @reports),
           map { $self->_content($_) } glob "$self->{dir}/*san.*");
}


sub _content {
    my ($self, $path) = @_;

    open my $fh, '<:raw', $path or croak "cannot read $path: $!";
    local $/;

    return <$fh> // '';
}


sub _check_logs {
    my ($self) = @_;

    my @lines = map { split /\n/, $self->_content($_) }
                    glob "$self->{dir}/error*.log";
    my @expected = @{ $self->{expected} };

    my @bad = grep {
        my $line = $_;
        $line =~ /$severe/ && !$self->{excused}{$line}
            && !grep { $line =~ $_ } @expected;
    } @lines;

    _check(!@bad,
           'the error log has no unexpected [alert], [emerg] or death',
           join "\n", @bad);

    for my $pattern (@expected) {
        _check(scalar(grep { /$pattern/ } @lines),
               "the error log has an expected line: $pattern");
    }
}


END {
    if ($$ == $script && !$finished) {
        my $status = $?;

        $finished = 1;
        _finish();

        $? = $status || ($failed ? 1 : 0);
    }
}


1;
