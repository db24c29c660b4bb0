# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Process;

# Starts processes and waits.  Every wait of the harness polls a condition here,
# with so generous a limit that reaching it means that something is broken.
#
# Every program starts in its own session, so that the processes it leaves can
# be found by their session even after their parent has exited.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use File::Temp;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);

our @EXPORT_OK = qw(
    time_limit wait_until now alive title children
    spawn run_command adopt_session session_members leftovers
    stop_process wait_until_stopped resume_process
);

my %sessions;    # the sessions that this script started and that may run


sub now { return clock_gettime(CLOCK_MONOTONIC) }


# Returns after how many seconds a process counts as stuck.  TEST_PATIENCE is a
# factor for machines that are busy.

sub time_limit {
    my ($seconds) = @_;

    return ($seconds // 20)
           * ($ENV{TEST_PATIENCE} // ($ENV{TEST_NGINX_SANITIZED} ? 5 : 1));
}


# Waits for a condition.  Returns its value as soon as that is true, or nothing
# when the limit has passed.  It tries the condition once more after the limit.

sub wait_until {
    my ($condition, $seconds) = @_;

    my $end = now() + time_limit($seconds);

    while (1) {
        my $late = now() >= $end;
        my $value = $condition->();

        return $value if $value;
        return if $late;

        sleep 0.01;
    }
}


# Returns (parent, session) of a process, or nothing if the process does not
# exist or has ended.

sub _stat {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/stat" or return;
    my $text = do { local $/; <$fh> } // '';

    return $text =~ /^\d+ \(.*\) [^ZX] (\d+) \d+ (\d+) /s;
}


sub _find {
    my ($wanted) = @_;

    opendir my $proc, '/proc' or croak "cannot read /proc: $!";

    my @found = sort { $a <=> $b } grep {
        my ($parent, $session) = _stat($_);
        defined $parent && $wanted->($parent, $session);
    } grep { /^\d+$/ } readdir $proc;

    return @found;
}


sub alive {
    my ($pid) = @_;

    waitpid $pid, WNOHANG;

    return scalar(() = _stat($pid)) > 0;
}


# Returns the title of a process, which is its command line if it has set none.
# The titles of Angie begin with its own name, and those of its workers end with
# a number of the configuration: "angie: worker process #2".  They are returned
# as nginx would have them.

sub title {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/cmdline" or return '';
    my $text = do { local $/; <$fh> } // '';
    $text =~ s/\0+$//;
    $text =~ tr/\0/ /;
    $text =~ s/ #\d+$// if $text =~ s/^angie: /nginx: /;

    return $text;
}


sub children {
    my ($pid) = @_;

    return _find(sub { $_[0] == $pid });
}


sub adopt_session {
    my ($pid) = @_;

    my (undef, $session) = _stat($pid);
    $sessions{$session} = 1 if defined $session;

    return $session;
}


sub session_members {
    my ($session) = @_;

    return _find(sub { $_[1] == $session });
}


# Returns the processes that are left of all that were started.  Forgets
# sessions that ended, because the kernel may give their numbers to others.

sub leftovers {
    my %members;

    my @left = _find(sub {
        return $sessions{$_[1]} && ($members{$_[1]} = 1);
    });
    %sessions = %members;

    return @left;
}


# A process that is stopped does nothing until it is resumed.

sub stop_process {
    my ($pid) = @_;

    kill 'STOP', $pid or croak "cannot stop process $pid: $!";
    wait_until_stopped($pid);
}


sub wait_until_stopped {
    my ($pid) = @_;

    wait_until(sub {
        open my $stat, '<', "/proc/$pid/stat" or croak "process $pid: $!";
        return <$stat> =~ /\) T /;
    }) or croak "process $pid does not stop";
}


sub resume_process {
    my ($pid) = @_;

    kill 'CONT', $pid or croak "cannot resume process $pid: $!";
}


# Starts a program (a list of words) or a function, in its own session.
# Options: stdin, stdout, stderr (file handles; default: /dev/null), env.

sub spawn {
    my ($what, %option) = @_;

    my $pid = fork() // croak "cannot fork: $!";

    if ($pid == 0) {
        POSIX::setsid();
        @SIG{qw(INT TERM HUP PIPE CHLD)} = ('DEFAULT') x 5;
        %ENV = (%ENV, %{ $option{env} || {} });

        for ([\*STDIN, '<', $option{stdin}], [\*STDOUT, '>', $option{stdout}],
             [\*STDERR, '>', $option{stderr}])
        {
            my ($handle, $mode, $target) = @$_;
            $target ? open($handle, "$mode&", $target)
                    : open($handle, $mode, '/dev/null')
                or POSIX::_exit(126);
        }

        if (ref $what eq 'CODE') {
            eval { $what->(); 1 } or syswrite STDERR, $@;
            POSIX::_exit(0);
        }

        no warnings 'exec';
        exec { $what->[0] } @$what
            or syswrite STDERR, "cannot run $what->[0]: $!\n";
        POSIX::_exit(127);
    }

    # wait until the child has called setsid(), so that its session is known

    wait_until(sub {
        my (undef, $session) = _stat($pid);
        return !defined $session || $session == $pid;
    });

    $sessions{$pid} = 1;

    return $pid;
}


# Runs a command to its end.  Returns (exit status, stdout, stderr); the status
# of a command that died of a signal is 128 plus its number.  Options: stdin
# (text, sent through a pipe; default: empty), env, limit in seconds.

sub run_command {
    my ($command, %option) = @_;

    my $out = File::Temp->new;
    my $err = File::Temp->new;

    pipe my $reader, my $writer or croak "cannot make a pipe: $!";
    $writer->blocking(0);

    my $pid = spawn($command, stdin => $reader, stdout => $out,
                    stderr => $err, env => $option{env});
    close $reader;

    local $SIG{PIPE} = 'IGNORE';
    my $input = $option{stdin} // '';
    my $sent = 0;
    my $end = now() + time_limit($option{limit} // 60);
    my $status;

    while (waitpid($pid, WNOHANG) != $pid) {

        if (now() > $end) {
            kill 'KILL', -$pid;
            waitpid $pid, 0;
            croak "@$command: did not end within its limit, killed";
        }

        if (!$writer) {
            sleep 0.005;
            next;
        }

        my $n = $sent < length $input
                ? syswrite($writer, $input, 65536, $sent) : 0;

        if ($n) {
            $sent += $n;

        } elsif (defined $n || !$!{EAGAIN}) {
            undef $writer;

        } else {
            my $bits = '';
            vec($bits, fileno $writer, 1) = 1;
            select undef, $bits, undef, 0.01;
        }
    }

    $status = $?;
    leftovers();

    return ($status & 127 ? 128 + ($status & 127) : $status >> 8,
            map { local $/; open my $fh, '<:raw', $_->filename; <$fh> // '' }
                $out, $err);
}


1;
