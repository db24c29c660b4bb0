# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Follow;

# Serves the tests of `ngx-bloom follow`: it runs followers and reads their logs.
# The functions of BloomTest::Redis are exported here as well.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use JSON::PP ();
use POSIX qw(:sys_wait_h);

use BloomTest::Process qw(now spawn wait_until);
use BloomTest::Redis qw(redis redis_server redis_stop);
use BloomTest::Tool qw(tool_path);

our @EXPORT_OK = qw(redis_server redis redis_stop resp_string resp_array
                    stream_answers follow log_of wait_for_event stop_follow
                    ended);

my $logs = 0;


# Returns values as a server sends them.

sub resp_string { return '$' . length($_[0]) . "\r\n$_[0]\r\n" }
sub resp_array { return '*' . @_ . "\r\n" . join '', @_ }

# Returns the answers of a server to the commands that read a stream: the text of
# INFO, an array of entries from the position on, and facts of XINFO STREAM:
# length, last (an ID), first and end (entries; end is first if not set).

sub stream_answers {
    my ($info, $entries, %facts) = @_;

    return resp_string($info) . $entries
        . resp_array(resp_string('length') => ":$facts{length}\r\n",
                     resp_string('last-generated-id')
                         => resp_string($facts{last}),
                     resp_string('first-entry') => $facts{first},
                     resp_string('last-entry')
                         => $facts{end} // $facts{first});
}


# Starts a follower.  Returns it as a hash: pid, log (a path).

sub follow {
    my ($t, @arguments) = @_;

    my %option = ref $arguments[-1] ? %{ pop @arguments } : ();
    my $path = $t->testdir . '/follow-' . ++$logs . '.log';
    open my $file, '>', $path or croak "$path: $!";

    return { log => $path,
             pid => spawn([tool_path(), 'follow', '--stream', 's', '--source',
                           'ids', @arguments],
                          stderr => $file,
                          env => { %{ $t->{env} || {} }, %option }) };
}

# Returns the events of a follower's log.

sub log_of {
    my ($follower) = @_;

    open my $file, '<', $follower->{log} or croak "$follower->{log}: $!";

    return map { eval { JSON::PP->new->utf8->decode($_) }
                 // { event => "no JSON: $_", message => '' } } <$file>;
}

# Waits for an event whose name and message match.  Returns it, or nothing.

sub wait_for_event {
    my ($follower, $event, $message) = @_;

    return wait_until(sub {
        my ($found) = grep { $_->{event} =~ /^(?:$event)$/
                             && (!defined $message
                                 || $_->{message} =~ $message) }
                           log_of($follower);
        return $found;
    });
}

# Waits until a follower ends.  Returns its exit status, or nothing.

sub ended {
    my ($follower) = @_;

    wait_until(sub { waitpid($follower->{pid}, WNOHANG) == $follower->{pid} })
        or return;

    return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}

# Sends SIGTERM.  Returns (exit status, seconds until the end).

sub stop_follow {
    my ($follower) = @_;

    my $begun = now();
    kill 'TERM', $follower->{pid};

    return (ended($follower), now() - $begun);
}


1;
