# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Memory;

# Limits the memory of processes by a control group, of version 1 or 2.
#
#   my $memory = BloomTest::Memory->new or plan(skip_all => ...);
#   $memory->take($pid, ...);         takes processes and their later children
#   $memory->take_all(sub { ... });   takes the processes that the function
#                                     returns, now and until give_back()
#   $memory->limit($memory->used + $more);
#   $memory->give_back;               returns the processes to their own group,
#                                     without a limit
#
# Memory counts for the group of the process that touched it first.  So memory
# that a process touched before it was taken does not count.

use strict;
use warnings;

use Carp qw(croak);

use Time::HiRes qw(sleep);

use BloomTest::Process qw(alive spawn wait_until);

my $made = 0;


# Returns nothing if it cannot create a control group.

sub new {
    my ($class) = @_;

    return if $> != 0;

    my $name = "bloom-test-$$-" . ++$made;

    for (['/sys/fs/cgroup/memory', 'memory.limit_in_bytes',
          'memory.usage_in_bytes', '-1'],
         ['/sys/fs/cgroup', 'memory.max', 'memory.current', 'max'])
    {
        my ($top, $limit, $used, $none) = @$_;
        my $path = "$top/$name";

        next unless -e "$top/cgroup.procs" && mkdir $path;

        # the files exist only if the system counts memory

        if (!-e "$path/$limit") {
            rmdir $path;
            next;
        }

        return bless { path => $path, top => $top, limit => $limit,
                       used => $used, none => $none, script => $$ }, $class;
    }

    return;
}


sub take {
    my ($self, @pids) = @_;

    _write("$self->{path}/cgroup.procs", $_) for @pids;
}


# Takes processes again and again, because a process that replaces a killed one
# may have a parent that was not taken.

sub take_all {
    my ($self, $find) = @_;

    $self->take($find->());
    $self->{keeper} = spawn(sub {
        while (1) {
            eval { $self->take($_) } for $find->();
            sleep 0.005;
        }
    });
}


sub used {
    my ($self) = @_;

    open my $fh, '<', "$self->{path}/$self->{used}"
        or croak "$self->{path}/$self->{used}: $!";

    return 0 + <$fh>;
}


sub limit {
    my ($self, $bytes) = @_;

    _write("$self->{path}/$self->{limit}", $bytes);
}


sub _unlimit {
    my ($self) = @_;

    _write("$self->{path}/$self->{limit}", $self->{none});
}


sub give_back {
    my ($self) = @_;

    if (my $keeper = delete $self->{keeper}) {
        kill 'KILL', $keeper;
        wait_until(sub { !alive($keeper) });
    }

    $self->_unlimit;

    wait_until(sub {
        open my $fh, '<', "$self->{path}/cgroup.procs" or return 1;
        my @pids = <$fh>;
        chomp @pids;

        # a process that has ended meanwhile cannot be moved

        eval { _write("$self->{top}/cgroup.procs", $_) } for @pids;
        return !@pids;
    });
}


sub _write {
    my ($path, $text) = @_;

    open my $fh, '>', $path or croak "$path: $!";
    (syswrite($fh, $text) // 0) == length $text or croak "$path: $text: $!";
}


sub DESTROY {
    my ($self) = @_;

    return if $self->{script} != $$;

    $self->give_back;
    wait_until(sub { rmdir $self->{path} }, 2);
}


1;
