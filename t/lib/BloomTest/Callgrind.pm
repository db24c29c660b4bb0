# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Callgrind;

# Counts the instructions that an nginx without workers takes in functions of
# the module.  It runs under valgrind, so other work on the machine does not
# matter.

use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;

use BloomTest::Process qw(spawn wait_until run_command alive);


# Returns why instructions cannot be counted here, if so.

sub impossible {
    my ($class, $t) = @_;

    return 'valgrind is not installed; run: make deps'
        if !-x '/usr/bin/callgrind_control';
    return 'valgrind cannot run an nginx with sanitizers'
        if $t->nginx_build =~ /fsanitize/;
    return 'an nginx that counts what runs takes more instructions'
        if $t->nginx_build =~ /--coverage/;
    return;
}


# Starts nginx, and counts what these functions do.  Its nginx.conf has "daemon
# off" and "master_process off".

sub new {
    my ($class, $t, @functions) = @_;

    my $self = bless { profile => $t->testdir . '/callgrind', dumps => 0 },
                     $class;

    $self->{pid} = spawn(['valgrind', '--tool=callgrind',
                          (map { "--toggle-collect=$_" } @functions),
                          "--callgrind-out-file=$self->{profile}",
                          $t->_command]);

    wait_until(sub {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port(8080));
    }, 120) or croak 'nginx does not start under valgrind';

    return $self;
}


# Returns the file of what was counted since the last call.

sub counted {
    my ($self) = @_;

    my ($exit, undef, $err) = run_command(['callgrind_control', '-d',
                                           $self->{pid}]);
    $exit == 0 or croak "callgrind_control failed: $err";

    my $file = "$self->{profile}." . ++$self->{dumps};
    wait_until(sub { -s $file && `tail -n 1 \Q$file\E` =~ /^totals:/ }, 60)
        or croak "callgrind did not write $file";

    return $file;
}


# Returns all instructions in such a file.

sub instructions {
    my ($self, $file) = @_;

    return (`tail -n 1 \Q$file\E` =~ /^totals: (\d+)/)[0];
}


# Returns how often a function was called.  A name has a number, with which
# later lines replace it.

sub calls {
    my ($self, $file, $function) = @_;

    open my $lines, '<', $file or croak "$file: $!";
    my ($number, $called, $calls) = ('', '', 0);

    while (my $line = <$lines>) {
        $number = $1 if $line =~ /=\((\d+)\) \Q$function\E(?:\@|$)/;
        $called = $1 if $line =~ /^cfn=\((\d+)\)/;
        $calls += $1 if $line =~ /^calls=(\d+)/ && $called eq $number;
    }

    return $calls;
}


# Ends nginx, and says whether it did.

sub finish {
    my ($self) = @_;

    kill QUIT => $self->{pid};

    return wait_until(sub { !alive($self->{pid}) }, 60);
}


1;
