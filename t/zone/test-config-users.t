#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx -t is run by another user than the one who starts nginx, or after owners
# and modes have changed: it says what, where and what to do.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(run_command);
use BloomTest::Zones;

my $nobody = hostile_user();
my $daemon = third_user();
my $root = { name => 'root', uid => 0, gid => 0 };

my $t = BloomTest->new(user => $nobody->{conf});
my $dir = $t->testdir;
my $ids = "$dir/state/ids";

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);

$t->run;
add($t, 'ids', ['key1'], durable => 1);
$t->stop;

# others may write the logs and the pid file

chmod 01777, $dir or die "chmod: $!";
chmod 0666, "$dir/error.log", "$dir/access.log" or die "chmod: $!";


sub test_config_as {
    my ($user) = @_;

    my $mark = $t->log_mark;
    my ($exit, $out, $err) = run_command(
        ['setpriv', "--reuid=$user->{uid}", "--regid=$user->{gid}",
         '--clear-groups', '--', $t->_command, '-t']);

    $t->excuse_log($mark);
    unlink "$dir/nginx.pid";

    return ($exit, $out . $err);
}


# Each row: what is done, the functions that do and undo it, the user who runs
# nginx -t, and what it says, or undef if it succeeds.

my $called = sub { "$_[0]{uid} ($_[0]{name})" };
my $nothing = sub { };

my @cases = (
    ['nothing has changed', $nothing, $nothing, $root, undef],
    ['nothing has changed', $nothing, $nothing, $nobody, undef],
    ['nothing has changed', $nothing, $nothing, $daemon,
     "\"$ids\" belongs to user " . $called->($nobody) . ', and nginx runs as'
     . ' user ' . $called->($daemon) . ', who is not root: start nginx as root,'
     . ' or as user ' . $called->($nobody)],
    ['the directory of all zones is closed to others',
     sub { chmod 0700, "$dir/state" }, sub { chmod 0711, "$dir/state" },
     $nobody, "cannot open \"$ids\" (13: Permission denied): start nginx as a"
              . ' user who may do that, or correct the modes of the directory'
              . ' and of its parents'],
    ['the directory of all zones belongs to another user',
     sub { chown $daemon->{uid}, $daemon->{gid}, "$dir/state" },
     sub { chown 0, 0, "$dir/state" }, $root,
     "\"$dir/state\" belongs to user " . $called->($daemon) . ', who could'
     . ' replace the directories of zones in it: check that its contents are'
     . " yours, and run \"chown root $dir/state\""],
    ['others may write to the directory of all zones',
     sub { chmod 0777, "$dir/state" }, sub { chmod 0711, "$dir/state" }, $root,
     "users other than root may write to \"$dir/state\", which has the"
     . ' directories of zones: name a directory of its own in'
     . ' "bloom_state_path" or, if this is one, run'
     . " \"chmod 0711 $dir/state\""],
    ["the zone's directory is read-only",
     sub { chmod 0500, $ids }, sub { chmod 0700, $ids }, $root,
     "cannot write into \"$ids/\" in the state directory of bloom zone \"ids\":"
     . ' the user that the workers run as cannot read and write it; make that'
     . ' user its owner, with mode 0700'],
    ['the control page belongs to root',
     sub { chown 0, 0, "$ids/control" },
     sub { chown $nobody->{uid}, $nobody->{gid}, "$ids/control" }, $root,
     "cannot open \"$ids/control\" in the state directory of bloom zone"
     . ' "ids": the user that the workers run as cannot read and write it; make'
     . ' that user its owner, with mode 0600'],
    ["the zone's directory belongs to another user",
     sub { hand_over($ids, $daemon) }, sub { hand_over($ids, $nobody) }, $root,
     "\"$ids\" belongs to user " . $called->($daemon) . ', but the workers run'
     . ' as user ' . $called->($nobody) . ': check that its contents are yours,'
     . " and run \"chown -R $nobody->{uid} $ids\""],
);

for (@cases) {
    my ($what, $do, $undo, $user, $says) = @$_;

    $do->();
    my ($exit, $output) = test_config_as($user);
    $undo->();

    if (!defined $says) {
        is($exit, 0, "nginx -t by $user->{name} succeeds ($what)")
            or diag($output);
        next;
    }

    is($exit, 1, "nginx -t by $user->{name} fails ($what)");
    like($output, qr/\[emerg\] \Q$says\E/,
         "nginx -t by $user->{name} says what to do ($what)");
}

$t->run;
is(ask_until_known($t, 'ids', 'id1', 'key1', 'no'), '110',
   'nginx -t has changed nothing');
$t->stop;


done_testing;
