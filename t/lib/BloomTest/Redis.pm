# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Redis;

# Runs servers of Redis, or of another program that speaks its protocol, such as
# Valkey, and sends them commands.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

use BloomTest::Process qw(run_command spawn wait_until);

our @EXPORT_OK = qw(redis_program redis_server redis redis_stop);


# Returns the server to test with: TEST_REDIS_SERVER, or else Redis.

sub redis_program { return $ENV{TEST_REDIS_SERVER} || 'redis-server' }

# Starts a server at a port of the test, with lines of a configuration.  Returns
# it as a hash: port, pid, url.

sub redis_server {
    my ($t, $number, @lines) = @_;

    my $port = $t->port($number);
    my $dir = $t->testdir . "/redis-$number";
    mkdir $dir;

    $t->write_file("redis-$number.conf", join "\n", "port $port",
                   'bind 127.0.0.1', "dir $dir", 'save ""', 'daemonize no',
                   'repl-diskless-sync-delay 0', 'repl-timeout 5', @lines, '');

    my $server = { port => $port, url => "redis://127.0.0.1:$port",
                   pid => spawn([redis_program(), $t->testdir
                                                  . "/redis-$number.conf"]) };

    wait_until(sub {
        (run_command(['redis-cli', '-p', $port, 'PING']))[1]
            =~ /PONG|NOAUTH|WRONGPASS/;
    }) or croak redis_program() . ' does not start';

    return $server;
}

sub redis_stop {
    my ($server) = @_;

    kill 'KILL', $server->{pid};
    waitpid $server->{pid}, 0;
}

# Runs a command of Redis.  Returns its answer.

sub redis {
    my ($server, @command) = @_;

    my (undef, $out, $err) = run_command(['redis-cli', '--raw', '-p',
                                          $server->{port}, @command]);
    chomp $out;

    return $out;
}


1;
