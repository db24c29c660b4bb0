# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Nginx;

# The part of BloomTest that controls nginx: start, reload, upgrade, kill, stop.
# Each method waits until nginx has done it, and dies with the end of the error
# log if nginx does not.

use strict;
use warnings;

use Carp qw(croak);
use Config;
use IO::Select;
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Test::More ();

use BloomTest::Process qw(
    wait_until alive title children spawn run_command
    adopt_session session_members
);


# A line that says that nginx refuses its configuration.  A worker that cannot
# change its groups logs [emerg], too, and goes on.

my $refusal = qr/\[emerg\](?!.* initgroups\()/;


# Returns the output of `nginx -V`.

sub nginx_build {
    my ($self) = @_;

    return $self->{build} //= do {
        my ($exit, $out, $err) = run_command([$self->{binary}, '-V']);
        croak "$self->{binary} -V failed ($exit): $err" if $exit != 0;
        $out . $err;
    };
}


sub nginx_version {
    my ($self) = @_;

    return ($self->nginx_build =~ m{nginx version: \S+/([\d.]+)})[0];
}


# Returns the directives of a server that speaks HTTP/2 without TLS at an
# address.  From 1.25.1 on, the parameter "http2" of "listen" is deprecated.

sub http2 {
    my ($self, $address) = @_;

    my @version = split /\./, $self->nginx_version;
    my $number = $version[0] * 1000000 + $version[1] * 1000 + $version[2];

    return $number >= 1025001 ? "listen $address;\nhttp2 on;"
                              : "listen $address http2;";
}


# Starts nginx.  Returns when all workers run and accept connections.

sub run {
    my ($self) = @_;

    croak 'nginx already runs' if $self->{master};

    $self->_read_config;
    unlink "$self->{dir}/nginx.pid";

    my $mark = $self->log_mark;
    open my $stderr, '>', "$self->{dir}/stderr"
        or croak "cannot write $self->{dir}/stderr: $!";

    my $child = spawn([$self->_command], env => $self->{env},
                      stdout => $stderr, stderr => $stderr);
    my $exit;

    my $started = wait_until(sub {
        $exit = $? if !defined $exit && waitpid($child, WNOHANG) == $child;
        return 'failed' if $exit;

        my $master = $self->_pid_in_file or return;
        return unless alive($master);

        # a daemon ignores SIGUSR2 as long as the process that started it exists
        return unless defined $exit || $master == $child;

        return $self->_complete($master) && $self->_accepts && $master;
    });

    if (!$started || $started eq 'failed') {
        my $master = $self->_pid_in_file;
        $self->_started($master) if $master && alive($master);
        $self->_die($mark, 'nginx does not start');
    }

    $self->_started($started);

    return $self;
}


# Starts nginx although it, or the process that loads a zone, may be killed
# during the start.  The test object does not know its processes.  Returns 0 if
# nginx runs.

sub run_may_die {
    my ($self) = @_;

    my $pid = fork // croak "cannot fork: $!";

    if ($pid == 0) {
        open STDERR, '>', "$self->{dir}/stderr";
        %ENV = (%ENV, %{ $self->{env} || {} });
        exec $self->_command;
        die "exec: $!";
    }

    waitpid $pid, 0;

    return $?;
}


# Starts nginx and expects a refusal.  Returns the output on stderr and in the
# log.

sub run_fails {
    my ($self) = @_;

    croak 'nginx already runs' if $self->{master};

    unlink "$self->{dir}/nginx.pid";
    my $mark = $self->log_mark;

    my ($exit, $out, $err)
        = run_command([$self->_command], env => $self->{env});

    Test::More::ok($exit != 0, 'nginx refuses to start');

    if ($exit == 0) {
        $self->_read_config;
        $self->_started(wait_until(sub {
            my $master = $self->_pid_in_file;
            return $master && $self->_complete($master) && $self->_accepts
                   && $master;
        }) || $self->_die($mark, 'nginx starts, but not wholly'));
        $self->stop;
        return '';
    }

    $self->_excuse($mark);

    return $out . $err . $self->log_since($mark);
}


# Starts nginx if the outcome is open.  Returns "starts", "refused", "hangs" (it
# did not end within `limit` seconds and was killed), "crashes" or "does not
# serve", and the output on stderr and in the log.  Lines in the log do not fail
# the test.

sub try_run {
    my ($self, %option) = @_;

    croak 'nginx already runs' if $self->{master};

    $self->_read_config;
    unlink "$self->{dir}/nginx.pid";

    my $mark = $self->log_mark;
    my ($exit, $out, $err) = eval {
        run_command([$self->_command], env => $self->{env},
                    limit => $option{limit} // 30);
    };
    my $text = ($out // '') . ($err // '');
    my $outcome = !defined $exit ? 'hangs' : $exit > 128 ? 'crashes'
                  : $exit ? 'refused' : 'starts';

    if ($outcome eq 'starts') {
        my $master = wait_until(sub {
            my $pid = $self->_pid_in_file;
            return $pid && alive($pid) && $pid;
        });

        # only a master with workers is sure to have its own session

        $outcome = 'does not serve'
            unless $master && wait_until(sub {
                return $self->_complete($master) && $self->_accepts;
            });
        $self->_started($master) if $master;
    }

    $self->_excuse($mark);

    return ($outcome, $text . $self->log_since($mark));
}


# Runs `nginx -t`.  Returns (exit status, output).

sub test_config {
    my ($self) = @_;

    my $mark = $self->log_mark;

    my ($exit, $out, $err)
        = run_command([$self->_command, '-t'], env => $self->{env});

    $self->_excuse($mark);

    return ($exit, $out . $err);
}


sub master { return $_[0]{master} }


# Returns the workers that accept connections, without those that are shutting
# down.

sub workers {
    my ($self, $master) = @_;

    $master //= $self->{master} // croak 'nginx does not run';

    return grep { title($_) eq 'nginx: worker process' } children($master);
}


# Returns the helper process, which exists if the configuration needs it.

sub helpers {
    my ($self, $master) = @_;

    $master //= $self->{master} // croak 'nginx does not run';

    return grep { title($_) eq 'nginx: cache manager process' }
                children($master);
}


# Returns the helper process as soon as there is one.

sub helper {
    my ($self, $master) = @_;

    my $helper = wait_until(sub { ($self->helpers($master))[0] })
        or croak 'there is no helper';

    return $helper;
}


# Reloads the configuration.  Returns when the new workers accept connections
# and the old processes have exited.  With keep_old => 1 the old ones may still
# be busy with requests, but no longer accept connections.  within => SECONDS
# allows more time.

sub reload {
    my ($self, %option) = @_;

    my $master = $self->_reloadable;
    my $mark = $self->log_mark;
    my @old = $self->_processes($master);

    $self->_read_config;
    kill 'HUP', $master;

    my $reloaded = wait_until(sub {
        my $log = $self->log_since($mark);

        return 'refused' if $log =~ $refusal;
        return unless $self->_complete($master, @old);

        # the helper has loaded or refused what it was told to load

        my $told = () = $log =~ / is going to load /g;
        my $done = () = $log =~ / (?:serves|continues with) generation /g;
        return if $told > $done;

        my @left = grep { alive($_) } @old;
        @left = grep { title($_) !~ /shutting down/ } @left
            if $option{keep_old};
        @left = grep { $_ != $option{stopped} } @left if $option{stopped};

        return !@left && $self->_accepts;
    }, $option{within});

    $self->_die($mark, 'nginx refuses to reload')
        if $reloaded && $reloaded eq 'refused';
    $self->_die($mark, "nginx does not reload (old processes: @old)")
        if !$reloaded;
}


# Reloads and expects a refusal.  Returns the log of it.  Then lets nginx reopen
# the log: the master does one thing after another, so once it has reopened the
# log, the reload is over.

sub reload_fails {
    my ($self) = @_;

    my $master = $self->_reloadable;
    my $mark = $self->log_mark;
    my @old = $self->workers;

    kill 'HUP', $master;

    wait_until(sub {
        return 1 if $self->log_since($mark) =~ /\[emerg\]/;
        return $self->_complete($master, @old);
    }) or $self->_die($mark, 'nginx neither reloads nor refuses to');

    kill 'USR1', $master;

    wait_until(sub { $self->log_since($mark) =~ /\breopening logs/ })
        or $self->_die($mark, 'nginx does not go on after a refused reload');

    my $log = $self->log_since($mark);
    $self->_excuse($mark);

    my @new = $self->workers;
    Test::More::ok($log =~ /\[emerg\]/ && "@new" eq "@old",
                   'nginx refuses to reload and keeps its workers')
        or Test::More::diag("workers before: @old, after: @new\n$log");

    wait_until(sub { $self->_accepts })
        or $self->_die($mark, 'nginx no longer answers');

    return $log;
}


# Reloads if the outcome is open.  Returns "reloads", "refused", "crashes" (the
# new workers die), "hangs" (the master does nothing any more) or "dies", and
# the log. Lines in the log do not fail the test.

sub try_reload {
    my ($self, %option) = @_;

    my $master = $self->_reloadable;
    my $mark = $self->log_mark;
    my $limit = $option{limit} // 30;
    my @old = $self->workers;

    $self->_read_config;

    # the master does one thing after another: once it has reopened its log, the
    # reload is over, and if it was accepted, the new workers have started

    my $obeys = sub {
        my ($signal, $word) = @_;

        kill $signal, $master;

        return wait_until(sub {
            return 1 if $self->log_since($mark)
                        =~ / \Q$master\E#\d+: $word/;
            return !alive($master);
        }, $limit);
    };

    my $done = $obeys->('HUP', 'reconfiguring')
               && $obeys->('USR1', 'reopening logs');

    my $outcome = !alive($master) ? 'dies'
        : !$done ? 'hangs'
        : $self->log_since($mark) !~ / start worker processes$/m ? 'refused'
        : wait_until(sub { $self->_complete($master, @old) && $self->_accepts })
            ? 'reloads' : 'crashes';

    $self->_excuse($mark);

    return ($outcome, $self->log_since($mark));
}


# Kills a worker (default: the first one, by SIGKILL) and waits for its
# replacement.

sub kill_worker {
    my ($self, $signal, $worker) = @_;

    $signal //= 'KILL';
    $worker //= ($self->workers)[0] // croak 'there is no worker to kill';

    return $self->_kill($signal, $worker, sub {
        return $self->_complete($self->{master}, $worker) && $self->_accepts;
    });
}


# Kills the helper process and waits for its replacement.

sub kill_helper {
    my ($self) = @_;

    my $helper = $self->helper;

    return $self->_kill('KILL', $helper, sub { $self->helpers });
}


# Kills only the master.  Returns the processes that keep running without it,
# which end_processes() ends.

sub kill_master {
    my ($self) = @_;

    my ($master, $session) = @$self{qw(master session)};

    kill 'KILL', $master;
    wait_until(sub { !alive($master) })
        or croak "master $master survives SIGKILL";
    $self->_forget;

    return session_members($session);
}


sub end_processes {
    my ($self, $signal, @processes) = @_;

    kill $signal, @processes;
    wait_until(sub { !grep { alive($_) } @processes })
        or croak "not all of @processes end by $signal";
}


# Kills all processes of nginx at once, as if the machine had crashed.

sub kill_all {
    my ($self) = @_;

    my $session = $self->{session};

    # the master first, because it would log the death of a worker and replace
    # it

    kill 'KILL', $self->{master};

    wait_until(sub {
        my @left = session_members($session);
        kill 'KILL', @left;
        return !@left;
    })
        or croak "processes of session $session survive SIGKILL";

    $self->_forget;
}


# Upgrades the binary in two steps: starts a second master next to the first
# one, then ends the first one.

sub upgrade_begin {
    my ($self) = @_;

    my $old = $self->{master} // croak 'nginx does not run';
    my $mark = $self->log_mark;

    kill 'USR2', $old;

    my $new = wait_until(sub {
        return 'failed' if $self->log_since($mark) =~ $refusal;

        my $pid = $self->_pid_in_file or return;
        return $pid != $old && -e "$self->{dir}/nginx.pid.oldbin"
               && alive($pid) && $self->_complete($pid) && $pid;
    });

    $self->_die($mark, 'the new master does not start')
        if !$new || $new eq 'failed';

    return $self->{new_master} = $new;
}


sub upgrade_finish {
    my ($self) = @_;

    my $old = $self->{master};
    my $mark = $self->log_mark;
    my @old = ($old, $self->_processes($old));

    kill 'QUIT', $old;

    wait_until(sub { !grep { alive($_) } @old })
        or $self->_die($mark, "the old master $old does not quit");

    $self->{master} = delete $self->{new_master};

    wait_until(sub { $self->_accepts })
        or $self->_die($mark, 'the new master does not serve');
}


# Ends the second master instead; the old one keeps running.

sub upgrade_back {
    my ($self) = @_;

    my $mark = $self->log_mark;
    my $new = delete $self->{new_master};
    my @new = ($new, $self->_processes($new));

    kill 'QUIT', $new;

    wait_until(sub {
        return !grep({ alive($_) } @new) && !-e "$self->{dir}/nginx.pid.oldbin";
    })
        or $self->_die($mark, "the new master $new does not quit");
}


sub upgrade {
    my ($self) = @_;

    $self->upgrade_begin;
    $self->upgrade_finish;
}


# Stops nginx gracefully.  The test fails if that needs force, or if the master
# has died before.  With told => 1 the test has already told nginx to stop, and
# nginx may have stopped.

sub stop {
    my ($self, %option) = @_;

    my $master = $self->{master} or return 1;
    my $session = $self->{session};
    my $mark = $self->log_mark;
    my $failure;

    if (!alive($master) && !$option{told}) {
        $failure = "nginx: master $master died";

    } else {
        kill 'QUIT', grep { defined } $master, $self->{new_master}
            unless $option{told};

        for (['TERM', 20], ['KILL', 5]) {
            my ($force, $limit) = @$_;

            last if wait_until(sub {
                !grep { alive($_) }
                    grep { defined } $master, $self->{new_master};
            }, $limit);

            $failure = "nginx stops only by $force";
            kill $force, $force eq 'KILL' ? session_members($session)
                                          : $master;
        }
    }

    $self->_forget;
    return 1 unless $failure;

    Test::More::diag($self->log_since($mark));
    $self->_failure($failure);
    return 0;
}


# Notes the master and its session.  A master with workers has its own session,
# but its pid file may exist earlier: some versions write it before the daemon
# calls setsid().

sub _started {
    my ($self, $master) = @_;

    $self->{master} = $master;
    $self->{session} = adopt_session($master);
}


# Refuses a reload without a master: nginx cannot do it, and would serve no more
# connections.

sub _reloadable {
    my ($self) = @_;

    croak 'nginx does not reload with master_process off' if $self->{single};

    return $self->{master} // croak 'nginx does not run';
}


sub _kill {
    my ($self, $signal, $process, $replaced) = @_;

    my $mark = $self->log_mark;
    my %number;
    @number{split ' ', $Config{sig_name}} = split ' ', $Config{sig_num};

    my $line = "process $process exited on signal $number{$signal}";

    $self->expect_log(qr/$line\b/)
        unless grep { $line =~ $_ } @{ $self->{expected} };
    kill $signal, $process or croak "cannot kill process $process: $!";

    wait_until(sub { !alive($process) && $replaced->() })
        or $self->_die($mark, "process $process is not replaced");

    return $process;
}


sub _forget {
    my ($self) = @_;

    delete @$self{qw(master new_master session)};
}


sub _command {
    my ($self) = @_;

    return ($self->{binary}, '-p', $self->{prefix} // "$self->{dir}/", '-c',
            'nginx.conf', '-e', 'error.log');
}


sub _pid_in_file {
    my ($self) = @_;

    open my $fh, '<', "$self->{dir}/nginx.pid" or return;

    return ((<$fh> // '') =~ /^(\d+)\s/)[0];
}


# Reads from the configuration what the waits need: the TCP addresses and the
# number of workers.

sub _read_config {
    my ($self) = @_;

    my $text = $self->_config_text('nginx.conf');

    my %listen;
    while ($text =~ /\blisten\s+(?:([\d.]+|\*|localhost):)?(\d+)\b([^;]*);/g)
    {
        my ($address, $port, $more) = ($1 // '*', $2, $3);

        next if $more =~ /\b(?:udp|quic)\b/;

        $address = '127.0.0.1' if $address !~ /^127\./;
        $listen{"$address:$port"} = 1;
    }

    $self->{listen} = [sort keys %listen];
    $self->{single} = $text =~ /^\s*master_process\s+off\s*;/m;
    $self->{worker_count} = $text =~ /^\s*worker_processes\s+(\d+)\s*;/m
                            ? $1 : 1;
}


sub _config_text {
    my ($self, $name) = @_;

    my $path = $name =~ m{^/} ? $name : "$self->{dir}/$name";
    my $text = join '', map {
        open my $fh, '<', $_ or croak "cannot read $_: $!";
        local $/;
        <$fh>;
    } $path =~ /[*?\[]/ ? glob $path : $path;

    $text =~ s/(?:^|(?<=\s))#.*//mg;
    $text =~ s/\binclude\s+([^\s;]+)\s*;/$self->_config_text($1)/ge;

    return $text;
}


sub _processes {
    my ($self, $master) = @_;

    return grep { title($_) !~ /^nginx: master/ } children($master);
}


# Returns whether a master has all its workers, not counting those in @except.

sub _complete {
    my ($self, $master, @except) = @_;

    return 1 if $self->{single};

    my %except = map { $_ => 1 } @except;

    return (grep { !$except{$_} } $self->workers($master))
           >= $self->{worker_count};
}


# Returns whether every address is served.  A worker closes a connection that
# sends nothing once it has accepted it, and neither counts nor logs a request.

sub _accepts {
    my ($self) = @_;

    for my $address (@{ $self->{listen} }) {
        my $socket = IO::Socket::INET->new(
            Proto => 'tcp', PeerAddr => $address, Timeout => 1)
            or return 0;

        shutdown $socket, 1;

        IO::Select->new($socket)->can_read(1) or return 0;
        defined sysread $socket, my $data, 1 or return 0;
    }

    return 1;
}


sub _die {
    my ($self, $mark, $what) = @_;

    open my $fh, '<', "$self->{dir}/stderr";
    my $stderr = $fh ? do { local $/; <$fh> } // '' : '';

    croak "$what; stderr:\n$stderr\nlog:\n"
          . substr($self->log_since($mark), -4000) . "\n";
}


1;
