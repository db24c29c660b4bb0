# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Faults;

# Kills or stops an nginx process at a named place in its code.  It needs an
# nginx that is built with -DNGX_BLOOM_FAULTS, as for make test-sanitize-nginx;
# src/store/ngx_bloom_io.h describes the places.
#
#   my $faults = BloomTest::Faults->new($t);    before $t->run
#   $faults->needed;                        skips the test without fault points
#   $faults->kill_at('any', 3);             kills a process at the third place
#   $faults->kill_all_at('load', 3);        kills each process there
#   $faults->withdraw;                      kills no more
#   my $stop = $faults->stop_at('switch');  stops a process at "switch"
#   my $pid = $faults->stopped($stop);      waits until a process has stopped
#   resume_process($pid);                   from BloomTest::Process

use strict;
use warnings;

use Carp qw(croak);
use Test::More ();

use BloomTest::Process qw(wait_until wait_until_stopped);


sub new {
    my ($class, $t) = @_;

    my $dir = $t->testdir . '/faults';
    my $self = bless { t => $t, file => "$dir/next" }, $class;

    # the process that dies or stops removes the file, and may be a worker of
    # another user

    mkdir $dir or croak "cannot make $dir: $!";
    chmod 0777, $dir or croak "cannot open $dir to all: $!";

    $t->environment(NGX_BLOOM_FAULT_FILE => $self->{file});

    return $self;
}


sub built_in { return $_[0]{t}->nginx_build =~ /NGX_BLOOM_FAULTS/ }


# Skips the test or the subtest if nginx has no fault points.

sub needed {
    my ($self) = @_;

    Test::More::plan(skip_all => 'nginx without injected faults'
                                 . ' (-DNGX_BLOOM_FAULTS)')
        unless $self->built_in;
}


# Kills the first process that reaches the place for its own n-th time.  "any"
# counts every place.

sub kill_at {
    my ($self, $place, $time) = @_;

    $self->_inject($place, $time // 1);
}


# Kills each process that reaches the place for the n-th time.

sub kill_all_at {
    my ($self, $place, $time) = @_;

    $self->_inject($place, $time // 1, 'all');
}


# Stops the process there instead.  Returns the argument for stopped().

sub stop_at {
    my ($self, $place, $time) = @_;

    my $mark = $self->{t}->log_mark;

    $self->_inject($place, $time // 1, 'stop');

    return { place => $place, mark => $mark };
}


# Waits until a process has stopped, and returns its id.

sub stopped {
    my ($self, $stop) = @_;

    my $place = $stop->{place} eq 'any' ? qr/\w+/ : $stop->{place};
    my $line = $self->{t}->wait_for_log(qr/fault injected at "$place"/,
                                        $stop->{mark});
    my ($pid) = $line =~ / (\d+)#\d+: / or croak "no process in: $line";

    wait_until_stopped($pid);

    return $pid;
}


# Returns whether a process is still to be killed or stopped.

sub pending { return -e $_[0]{file} }


sub withdraw { unlink $_[0]{file} }


sub _inject {
    my ($self, @words) = @_;

    open my $fh, '>', "$self->{file}.new" or croak "$self->{file}: $!";
    print $fh "@words\n";
    close $fh or croak "$self->{file}: $!";
    rename "$self->{file}.new", $self->{file} or croak "$self->{file}: $!";
}


1;
