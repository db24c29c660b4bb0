# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Hostile;

# Does what an attacker who has taken over a worker can do, which is all that
# the workers' user may do.  It needs root and the users nobody (for the
# workers) and daemon (for another user).
#
#   my $user = hostile_user();             skips the test without root
#   my $t = BloomTest->new(user => $user->{conf});
#   my $etc = make_outside($t);            creates a directory like /etc
#   as_user($user, sub { ... });           runs in a process of that user
#   put_in_place($user, $path, 'fifo');    puts something in place of a file
#   is_untouched($etc, 'a sentence');      tests that nothing changed there

use strict;
use warnings;

use Carp qw(croak);
use Digest::MD5;
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);
use IO::Socket::UNIX;
use JSON::PP ();
use POSIX ();
use Socket qw(SOCK_STREAM);
use Test::More ();

use BloomTest::Process qw(spawn run_command wait_until alive);

our @EXPORT = qw(PATIENCE hostile_user third_user as_user make_outside is_untouched
                 put_in_place hold_lock release_lock shared_memory forge
                 says_what_to_do owners locks_of mapped_files hand_over
                 prepare_state test_config_within);

# The seconds that a start, a reload or a test of the configuration may take
# when something could block it: far longer than the module waits for anything.

use constant PATIENCE => 60;


sub hostile_user {
    $> == 0 or Test::More::plan(
        skip_all => 'only root can run workers as another user');

    return _user('nobody');
}


sub third_user { return _user('daemon') }


sub _user {
    my ($name) = @_;

    my ($uid, $gid) = (getpwnam $name)[2, 3];
    defined $uid
        or Test::More::plan(skip_all => "there is no user $name");

    return { name => $name, uid => $uid, gid => $gid,
             conf => "$name " . getgrgid $gid };
}


# Calls a function in a process of the user.  Returns the function's result, a
# scalar that JSON can represent; dies with the function's error.

sub as_user {
    my ($user, $code) = @_;

    pipe my $out, my $in or croak "pipe: $!";

    my $pid = fork // croak "fork: $!";

    if ($pid == 0) {
        my $result = eval {
            become($user);
            { value => scalar $code->() };
        } // { error => "$@" };

        syswrite $in, JSON::PP->new->allow_nonref->encode($result);
        POSIX::_exit(0);
    }

    close $in;
    my $text = do { local $/; <$out> };
    waitpid $pid, 0;

    my $result = JSON::PP->new->decode($text);
    croak $result->{error} if exists $result->{error};

    return $result->{value};
}


sub become {
    my ($user) = @_;

    $) = "$user->{gid} $user->{gid}";
    POSIX::setgid($user->{gid}) or die "setgid: $!\n";
    POSIX::setuid($user->{uid}) or die "setuid: $!\n";
}


# Gives a directory and its contents to a user.

sub hand_over {
    my ($path, $user, $mode) = @_;

    system('chown', '-Rh', "$user->{uid}:$user->{gid}", $path) == 0
        or croak "chown $path";
    chmod $mode, $path or croak "chmod $path: $!" if defined $mode;
}


# Creates the directories of a zone's state as an earlier version left them:
# both belong to the user.  Returns the zone's directory.

sub prepare_state {
    my ($t, $user, $zone) = @_;

    my $state = $t->testdir . '/state';

    remove_tree($state);
    make_path("$state/$zone");
    chmod 0700, $state, "$state/$zone" or croak "chmod: $!";
    hand_over($state, $user);

    return "$state/$zone";
}


# Runs `nginx -t`, which may hang.  Returns its exit status, or nothing if it
# had to be killed, and its output.

sub test_config_within {
    my ($t, $seconds) = @_;

    my $mark = $t->log_mark;
    my ($exit, $out, $err) = eval {
        run_command([$t->_command, '-t'], env => $t->{env},
                    limit => $seconds // PATIENCE);
    };

    $t->excuse_log($mark);

    return ($exit, ($out // '') . ($err // ''));
}


# Creates a directory of root that resembles /etc.  It has the two kinds of
# files that a link can lead to: one that all may read, and one that only root
# may read.

sub make_outside {
    my ($t, $name) = @_;

    my $dir = $t->testdir . '/' . ($name // 'etc');

    remove_tree($dir);
    make_path("$dir/cron.d");
    $t->write_file(($name // 'etc') . '/passwd', "root:x:0:0\n");
    $t->write_file(($name // 'etc') . '/shadow', "root:secret\n");
    chmod 0600, "$dir/shadow" or croak "chmod: $!";

    return { path => $dir, as_made => _tree($dir) };
}


# Returns the entries of a directory, with owner, mode, size, times and
# contents.

sub _tree {
    my ($dir) = @_;

    my %tree;

    for my $path ($dir, sort(glob "$dir/* $dir/.[!.]*")) {
        my @stat = lstat $path or next;
        my $kind = $stat[2] & 0170000;

        $tree{$path} = sprintf 'mode %o, owner %d:%d', @stat[2, 4, 5];

        if ($kind == 0100000) {
            open my $fh, '<:raw', $path or croak "$path: $!";
            $tree{$path} .= ", $stat[7] bytes, changed $stat[9], "
                            . Digest::MD5->new->addfile($fh)->hexdigest;
        }

        %tree = (%tree, %{ _tree($path) })
            if $kind == 0040000 && $path ne $dir;
    }

    return \%tree;
}


sub is_untouched {
    my ($outside, $name) = @_;

    return Test::More::is_deeply(_tree($outside->{path}), $outside->{as_made},
                                 $name);
}


# Puts something in the place of a file.  If the user may not do this on this
# system, root does it for the user: other systems let everybody link to any
# file, and a directory may have been prepared when the user was allowed to.
# Links lead to `target`.

sub put_in_place {
    my ($user, $path, $kind, $target) = @_;

    remove_tree($path);

    my $put = sub {
        $kind eq 'symbolic link' ? symlink $target, $path
        : $kind eq 'hard link' ? link $target, $path
        : $kind eq 'FIFO' ? POSIX::mkfifo($path, 0666)
        : $kind eq 'directory' ? mkdir $path
        : $kind eq 'socket' ? !!IO::Socket::UNIX->new(
                                  Type => SOCK_STREAM, Local => $path,
                                  Listen => 1)
        : croak "there is no $kind";
    };

    return 1 if as_user($user, sub { $put->() ? 1 : 0 });

    $put->() or croak "cannot make the $kind $path: $!";
    lchown_to($user, $path) unless $kind eq 'hard link';

    return 1;
}


sub lchown_to {
    my ($user, $path) = @_;

    system('chown', '-h', "$user->{uid}:$user->{gid}", $path) == 0
        or croak "chown $path";
}


# Starts a process of the user that locks a file until release_lock().

sub hold_lock {
    my ($user, $path) = @_;

    pipe my $ready, my $readied or croak "pipe: $!";

    my $pid = spawn(sub {
        become($user);
        open my $fh, '+>>', $path or die "$path: $!\n";
        flock $fh, LOCK_EX or die "lock: $!\n";
        syswrite $readied, 'x';
        close $readied;
        sleep 1000 while 1;
    });

    close $readied;
    sysread $ready, my $byte, 1 or croak "$path cannot be locked";

    return $pid;
}


sub release_lock {
    my ($pid) = @_;

    kill 'KILL', $pid;
    wait_until(sub { !alive($pid) }) or croak "process $pid survives SIGKILL";
}


# Returns where a process has the shared memory of a zone of this size: (begin,
# end).  The room for removed keys comes on top of the size.  A test gives each
# of its zones a very different size.

sub shared_memory {
    my ($pid, $size) = @_;

    no warnings 'portable';    # of numbers over 32 bits

    open my $maps, '<', "/proc/$pid/maps" or croak "/proc/$pid/maps: $!";
    my (%from, %to);

    # the advice about huge pages splits the mapping

    while (defined(my $line = <$maps>)) {
        my ($from, $to, $inode) = $line =~
            m{^([0-9a-f]+)-([0-9a-f]+) rw-s \S+ \S+ (\d+) +/dev/zero}
            or next;
        $from{$inode} //= hex $from;
        $to{$inode} = hex $to;
    }

    my ($found) = sort { $to{$a} - $from{$a} <=> $to{$b} - $from{$b} }
                       grep { $to{$_} - $from{$_} >= $size } keys %from
        or croak "process $pid has no shared memory of $size bytes";

    return ($from{$found}, $to{$found});
}


# Overwrites a zone's shared memory, as an attacker in a worker could, except
# for nginx's own header at its beginning.  Kinds:
#
#   zeros       no generation, no file, no bank
#   ones        the largest numbers
#   noise       random numbers
#   pointers    addresses in that memory, where locks could be forged
#   swapped     each word with one bit inverted, so that values look plausible

sub forge {
    my ($pid, $size, $what) = @_;

    my ($from, $to) = shared_memory($pid, $size);

    open my $memory, '+<:raw', "/proc/$pid/mem" or croak "/proc/$pid/mem: $!";

    # behind the structures that nginx uses: its pool begins where that says

    my $header = _at($memory, $from, 4096);
    my $start = unpack 'x88 Q<', $header;

    croak 'the pool of nginx does not begin where it should'
        if $start < $from || $start >= $to;

    # from the second page on: the module needs none of nginx's lists of pages

    for (my $at = $from + 4096; $at < $to; $at += 65536) {
        my $len = $to - $at < 65536 ? $to - $at : 65536;
        my $bytes = $what eq 'zeros' ? "\0" x $len
                    : $what eq 'ones' ? "\xff" x $len
                    : $what eq 'noise' ? _noise($len)
                    : $what eq 'pointers' ? pack('Q<', $from + 8192) x ($len / 8)
                    : _at($memory, $at, $len) ^ "\1\0\0\0\0\0\0\x10" x ($len / 8);

        sysseek $memory, $at, 0 or croak "seek: $!";
        (syswrite($memory, $bytes) // 0) == $len
            or croak "/proc/$pid/mem cannot be written: $!";
    }
}


sub _at {
    my ($memory, $at, $len) = @_;

    sysseek $memory, $at, 0 or croak "seek: $!";
    (sysread($memory, my $bytes, $len) // 0) == $len
        or croak "memory cannot be read: $!";

    return $bytes;
}


# Returns random bytes that are the same in each run, so that failures repeat.

sub _noise {
    my ($len) = @_;

    my $random = 1;
    my $noise = pack 'L<*', map {
        $random = ($random * 1664525 + 1013904223) & 0xffffffff
    } 1 .. 16384;

    return substr $noise, 0, $len;
}


# Tests that a refusal names a file and says what to do about it.

sub says_what_to_do {
    my ($text, $file, $name) = @_;

    my @lines = grep { /\[(?:emerg|alert)\]/ && /\Q$file\E/ } split /\n/, $text;
    my $todo = qr/\b(?:remove|restore|put|repair|correct|chown|chmod|stop|end
                     |look|see|move|find|give|wait|kill|make|replace|delete
                     |try|rename|restart)\b/x;

    return Test::More::ok(scalar(grep { /$todo/ } @lines), $name)
           || Test::More::diag("wanted: a line [emerg] or [alert] about $file"
                               . " that says what to do, in:\n",
                               grep { !/\[(?:notice|info)\]/ }
                                    $text =~ /^.*\n?/mg);
}


# Returns the files of a directory by the user that they belong to.

sub owners {
    my ($dir) = @_;

    my %files;

    for my $path (glob "$dir/* $dir/.[!.]*") {
        my @stat = lstat $path or next;
        push @{ $files{$stat[4]} }, $path =~ s{.*/}{}r;
    }

    return \%files;
}


# Locks (flock) on files of a directory that are held by a process's own call.

sub locks_of {
    my ($pid, $dir) = @_;

    my %file = map { (stat $_)[1] // 0 => $_ } glob "$dir/*";

    open my $locks, '<', '/proc/locks' or croak "/proc/locks: $!";

    return map { $file{$_} } grep { $file{$_} }
           map { /FLOCK .* \Q$pid\E [0-9a-f:]+:(\d+) / ? $1 : () } <$locks>;
}


# Files below a directory that a process has mapped.

sub mapped_files {
    my ($pid, $dir) = @_;

    open my $maps, '<', "/proc/$pid/maps" or croak "/proc/$pid/maps: $!";

    return map { m{ (\Q$dir\E/.*)$} ? $1 : () } <$maps>;
}


1;
