# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Crash;

# Lets processes of nginx die or stop at every step of an operation, and tests
# that the zone keeps its promises.  It needs an nginx with fault points.
#
#   crash_tests('dies',
#       ['file grow', 'an addition'],
#       ['file', 'a load', meanwhile => ['an addition', 'bloom_add']]);
#
# The first argument is what happens at each step:
#
#   dies          the process is killed, and nginx goes on
#   all_die       all processes are killed, and nginx is started
#   stops         the process is stopped, other operations take place meanwhile,
#                 and the process goes on
#   start_dies    all processes are killed behind the operation, the start that
#                 follows is killed at the step, and another start follows
#
# Each row has kinds of zones, an operation, and options:
#
#   meanwhile   the operations that take place while a process is stopped
#   lossy       the zone may lose keys if it says so: from then on it answers
#               "unknown" instead of "absent"
#   at          the fault point at which all processes die before the start that
#               dies
#   torn        the journal ends with a part of a record then
#   every       the number of steps from one fault to the next, if it is not 1
#   fresh       each fault has a fresh zone, whose first change this is
#
# The environment variable CRASH_ROWS is a pattern of the titles of the rows
# that are run.
#
# A kind may end with "/memory", for a zone without a journal, or "/two": an
# upgrade of nginx has begun, and operations are sent to the old one of two
# instances.
#
# An operation is repeated, one step later each time, until it completes.  A new
# operation is an entry of BloomTest::Crash::Operations, and a new kind of zone
# one of BloomTest::Crash::Zone.  A fault point in the source needs no line
# here: it is a step of every operation that passes it.
#
# What must hold is in an account of the keys (BloomTest::Account): every key
# that was acknowledged is present, every removal holds, and what is done as a
# whole is done as a whole, while a process is stopped, after a death, and after
# kill -9 of all processes.  Besides, one death causes no other, a task whose
# process dies has failed and is not repeated, and no file is left.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use IO::Select;
use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Clock;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Feedback;
use BloomTest::Journal;
use BloomTest::Process qw(alive now resume_process wait_until);
use BloomTest::Zones;

use parent 'BloomTest::Crash::Zone';

our @EXPORT = qw(crash_tests);

use constant {
    STEPS => 200,    # more than any operation has

    # How long to wait, in seconds, for a step behind the answer, and for the
    # answer of a worker that may be waiting for the process that is stopped.
    # Both decide only which steps are reached, and never whether a test passes.
    QUIET => 1,
    MEANWHILE => 0.3,
};


# Tests rows of a table, each on a fresh zone.  Each row ends with kill -9 of
# all processes and a start.

sub crash_tests {
    my ($fault, @rows) = @_;

    my $how = { dies => 'a process dies', all_die => 'all processes die',
                stops => 'a process stops', start_dies => 'a start dies' };
    my $rows = $ENV{CRASH_ROWS} // '';
    my $t = BloomTest->new;
    my $self = bless {
        t => $t, workers => 2,
        disk => BloomTest::Disk->new($t, 'state'),
        clock => BloomTest::Clock->new($t),
        faults => BloomTest::Faults->new($t),
    };

    $self->{faults}->needed;
    feedback_backend($t, 8081);
    $t->expect_log(qr/exited on signal 9/) if $fault eq 'dies';
    $t->expect_log(qr/that loads a bloom zone, \d+, died of signal 9/)
        if $fault eq 'start_dies';

    for my $row (@rows) {
        my ($kinds, $name, %option) = @$row;

        for my $kind (split ' ', $kinds) {
            my $title = "zone $kind: $how->{$fault} at each step of "
                        . join ', meanwhile ', $name,
                               @{ $option{meanwhile} // [] };

            next if $title !~ /$rows/;

            subtest $title => sub {
                local @$self{qw(meanwhile lossy at torn every fresh)}
                    = @option{qw(meanwhile lossy at torn every fresh)};
                my ($began, $mark) = (now(), $t->log_mark);

                $self->become($kind);
                $self->begin;
                $self->$fault($name);
                $self->end;
                $t->excuse_log($mark) if $option{lossy};
                note(sprintf '%.1f seconds', now() - $began);
            };
        }
    }

    done_testing;
}


sub dies {
    my ($self, $name) = @_;

    my ($t, $faults) = @$self{qw(t faults)};

    $self->_each_step($name, sub {
        my ($operation, $step) = @_;

        my $mark = $t->log_mark;
        $faults->kill_at('any', $step);

        my $response = $self->perform($operation);

        return 0 if !$self->_reached;

        my $when = "after a death at step $step of $name";

        $t->wait_for_log(qr/exited on signal 9/, $mark);
        $self->serves;
        $self->deliver($operation);
        $self->check($when);
        $self->_failed_once($operation, $response, $mark, $when)
            if $operation->{task};

        return 1;
    });
}


sub all_die {
    my ($self, $name) = @_;

    my ($t, $faults) = @$self{qw(t faults)};

    $self->_each_step($name, sub {
        my ($operation, $step) = @_;

        my $stop = $faults->stop_at('any', $step);
        my $sent = $self->send($operation);

        return $self->complete($operation, $sent), 0
            if !$self->_reached($sent);

        $faults->stopped($stop);
        $self->restart("after a death of all at step $step of $name");
        $self->deliver($operation);

        return 1;
    });
}


sub stops {
    my ($self, $name) = @_;

    my ($t, $faults) = @$self{qw(t faults)};

    $self->_each_step($name, sub {
        my ($operation, $step) = @_;

        my @others = map { $self->operation($_) } @{ $self->{meanwhile} };
        my $stop = $faults->stop_at('any', $step);
        my $sent = $self->send($operation);

        return $self->complete($operation, $sent), 0
            if !$self->_reached($sent);

        my $pid = $faults->stopped($stop);
        my @sent = map { [$_, $self->send($_)] } @others;

        $_->[2] = $self->_answered_soon(@$_) for @sent;
        $self->check("while a process is stopped at step $step of $name", 1);

        resume_process($pid);
        $self->complete($operation, $sent);
        $self->complete(@$_[0, 1]) for grep { !$_->[2] } @sent;
        $self->serves;
        $self->deliver($_) for $operation, @others;
        $self->check("after a stop at step $step of $name");

        return 1;
    });
}


sub start_dies {
    my ($self, $name) = @_;

    my ($t, $faults) = @$self{qw(t faults)};
    my $state = $t->testdir . '/state';

    my $operation = $self->operation($name);
    my $stop = $self->{at} && $faults->stop_at($self->{at});
    my $sent = $self->send($operation);

    $stop ? $faults->stopped($stop) : $self->complete($operation, $sent);
    $t->kill_all;
    $self->all_died;
    $self->_tear if $self->{torn};

    # each start finds the same

    system('cp', '-a', $state, "$state.before") == 0 or die 'cp';

    $self->_each_step("a start behind $name", sub {
        my (undef, $step) = @_;

        $t->kill_all if $t->master;
        system("rm -rf $state && cp -a $state.before $state") == 0 or die 'cp';
        my $mark = $t->log_mark;
        $faults->kill_at('any', $step);

        if (!$t->run_may_die) {
            $faults->withdraw;
            $self->_end_unknown;
            $t->excuse_log($mark);
            $t->run;
            return 0;
        }

        $t->run;
        $self->check("after a start that died at step $step, behind $name");

        return 1;
    }, sub { {} });

    system('rm', '-rf', "$state.before");
}


# Calls a function with the operation, and with the number of each step, until
# it returns false: the operation has completed without a fault.

sub _each_step {
    my ($self, $name, $fault, $prepare) = @_;

    my $every = $self->{every} // 1;
    my $steps = 0;

    for my $step (map { 1 + $_ * $every } 0 .. (STEPS - 1) / $every) {
        my $operation = $prepare ? $prepare->() : $self->operation($name);

        last if !$fault->($operation, $step);
        $steps++;

        if ($self->{account}->damaged || $self->{fresh}) {
            $self->end;
            $self->begin;
        }
    }

    $self->{faults}->withdraw;
    $self->serves;
    cmp_ok($steps, '>', 0, "$name completes after faults at $steps steps");
    cmp_ok($steps, '<', int(STEPS / $every), "$name completes");
    $self->check("after $name");
}


# Returns whether a process has come to the fault.  A connection may have an
# answer before that, if the step is in work that the operation has caused.

sub _reached {
    my ($self, $connection) = @_;

    my $faults = $self->{faults};
    my $select = $connection && IO::Select->new($connection->{socket});

    # until there is an answer

    wait_until(sub { !$faults->pending || $select->can_read(0) }, 60)
        if $select;

    my $end = now() + QUIET;
    sleep 0.01 while $faults->pending && now() < $end;

    my $reached = !$faults->pending;
    $faults->withdraw;

    return $reached;
}


sub _answered_soon {
    my ($self, $operation, $connection) = @_;

    $connection or return $operation->{act};

    my $select = IO::Select->new($connection->{socket});

    return $select->can_read(MEANWHILE)
           && ($self->complete($operation, $connection), 1);
}


# A task whose process has died has failed.  Its client is told, nobody else
# dies of it, and no file is left.

sub _failed_once {
    my ($self, $operation, $response, $mark, $when) = @_;

    my $t = $self->{t};
    my $log = $t->log_since($mark);
    my $failed = $log =~ /process that was .* died/;

    # a worker that dies answers nobody

    my $answers = $log !~ /worker process \d+ exited on signal 9/;

    is($response && $response->status || 'none',
       !$answers ? 'none' : $failed ? 503 : 200,
       "the request is answered $when")
        or diag($log, $response // '');
    is(scalar(() = $log =~ /exited on signal 9/g), 1,
       "nobody else dies $when");

    # the body of an upload stays for up to ten seconds

    ok(wait_until(sub {
        !files($t->testdir . '/state/ids/{save,upload}.*.tmp');
    }), "no temporary file is left $when");
}


# Leaves a part of a record behind the end of the journal.

sub _tear {
    my ($self) = @_;

    for my $segment (reverse files($self->{t}->testdir
                                   . '/state/ids/journal.*'))
    {
        open my $fh, '+<:raw', $segment or croak "$segment: $!";
        my $used = length(do { local $/; <$fh> } =~ s/\0+\z//r);

        next if $used <= BloomTest::Journal::HEADER;
        seek $fh, $used + 8 - $used % 8, 0;
        print $fh 'torn' x 10;
        return close $fh || croak "$segment: $!";
    }

    croak 'no segment has a record';
}


# Ends a master whose start the harness does not know to have succeeded.

sub _end_unknown {
    my ($self) = @_;

    my ($pid) = $self->{t}->read_file('nginx.pid') =~ /(\d+)/;

    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");
}


1;
