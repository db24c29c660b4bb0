#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx refuses a state directory that is a link or has the wrong owner.  The
# workers' user could otherwise make root change the owner of any file, or write
# into any directory.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Zones;

my $user = hostile_user();
my $third = third_user();

my $t = BloomTest->new(user => $user->{conf});
my $dir = $t->testdir;
my $state = "$dir/state";

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');

my @zones = ('zone=ids file=ids.bloom', 'zone=other capacity=1k fpr=1e-9');

sub set_up {
    my (%option) = @_;

    configure($t, [@zones], api => 1, add => 1, %option);
}

# Returns the owner and the mode of a path.

sub of {
    my ($path) = @_;

    my @stat = lstat $path or return 'there is none';

    return sprintf '%s:%s %o', (getpwuid $stat[4])[0] // $stat[4],
                   (getgrgid $stat[5])[0] // $stat[5], $stat[2] & 07777;
}

my ($theirs) = map { "$user->{name}:" . getgrgid $_->{gid} } $user;


subtest 'the directories are made' => sub {
    set_up();
    $t->run;
    add($t, 'ids', ['key1'], durable => 1);

    is(of($state), 'root:root 711',
       'the state root belongs to root, and others may only pass through it');
    is(of("$state/ids"), "$theirs 700",
       "a zone's directory belongs to the workers' user alone");
    my $owners = owners("$state/ids");
    is_deeply([keys %$owners], [$user->{uid}],
              "all files of a zone belong to the workers' user");
    is_deeply([grep { (stat)[2] & 0177 } glob "$state/ids/*"], [],
              "nobody but the workers' user may read the files of a zone");

    ok(!as_user($user, sub {
           rename("$state/ids", "$state/elsewhere")
           || mkdir("$state/more") || symlink('/etc', "$state/more")
           || rmdir("$state/other");
       }), "the workers' user can neither replace nor add directories");

    $t->reload;
    $t->stop;
    is(of($state), 'root:root 711',
       'the state root belongs to root after a reload and a stop');
};


# Everything that the previous version created belongs to the workers' user.

subtest 'the directories of the previous version are taken over' => sub {
    my $ids = $user->{uid} . ':' . $user->{gid};

    chmod 0700, $state or die "chmod: $!";
    hand_over($state, $user);
    is(of($state), "$theirs 700", 'the state root is as that version made it');

    my ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx -t accepts the state root of that version')
        or diag($output);

    $t->run;
    is(ask($t, 'ids', 'id1', 'key1', 'no'), '110',
       'keys that were added with that version are present');
    is(of($state), 'root:root 711', 'the state root belongs to root');
    is(of("$state/ids"), "$theirs 700",
       "the zone's directory belongs to the workers' user as before");

    add($t, 'ids', ['key2'], durable => 1);
    $t->stop;
    $t->run;
    is(ask($t, 'ids', 'id1', 'key1', 'key2', 'no'), '1110',
       'keys that were added before and after are present');
    $t->stop;
};


# While the state root belonged to the workers' user, that user could replace a
# zone's directory by a link.  The previous version gave /etc away like this.

for my $whose ("the version before's", "root's") {
    subtest "a zone's directory is a link, in a state root of $whose" => sub {
        my $etc = make_outside($t);

        for my $target ($etc->{path}, "$etc->{path}/cron.d") {
            prepare_state($t, $user, 'ids');
            put_in_place($user, "$state/ids", 'symbolic link', $target);

            if ($whose eq "root's") {
                chown 0, 0, $state or die "chown: $!";
                chmod 0711, $state or die "chmod: $!";
            }

            my ($exit, $output) = test_config_within($t);
            isnt($exit, 0, 'nginx -t refuses a link in place of a directory');
            is_untouched($etc, 'nginx -t leaves what the link leads to alone');

            my ($outcome, $log) = $t->try_run;
            is($outcome, 'refused',
               'nginx refuses to start with a link in place of a directory');
            says_what_to_do($log, "$state/ids",
                'the refusal names the link, and says what to do');
            is_untouched($etc, 'the start leaves what the link leads to alone');
            $t->stop;
        }
    };
}


subtest 'something else is in place of a directory' => sub {
    my $etc = make_outside($t);

    for my $kind ('FIFO', 'socket', 'hard link') {
        prepare_state($t, $user, 'ids');
        put_in_place($user, "$state/ids", $kind, "$etc->{path}/passwd");

        my ($outcome, $log) = $t->try_run(limit => PATIENCE);
        is($outcome, 'refused',
           "nginx refuses to start with a $kind in place of a directory");
        says_what_to_do($log, "$state/ids",
            "the refusal names the $kind, and says what to do");
        is_untouched($etc, "the start with a $kind leaves other files alone");
        $t->stop;
    }
};


subtest 'a directory belongs to a third user' => sub {
    for (['the state root', $state], ["the zone's directory", "$state/ids"]) {
        my ($what, $path) = @$_;

        prepare_state($t, $user, 'ids');
        chown $third->{uid}, $third->{gid}, $path or die "chown: $!";
        my $before = of($path);

        my ($outcome, $log) = $t->try_run;
        is($outcome, 'refused',
           "nginx refuses to start if $what belongs to a third user");
        says_what_to_do($log, $path,
            "the refusal names the path, and says what to do if $what belongs"
            . ' to a third user');
        like($log, qr/belongs to user $third->{uid} \($third->{name}\)/,
             "the refusal names the third user to whom $what belongs");
        is(of($path), $before, "$what is not given to anybody else");
        $t->stop;
    }
};


# In a state root that everybody may write to, anybody can replace a zone's
# directory.

subtest 'everybody may write to the state root' => sub {
    remove_tree($state);
    make_path("$state/ids");
    hand_over("$state/ids", $user, 0700);
    chmod 0777, $state or die "chmod: $!";

    my ($outcome, $log) = $t->try_run;
    my $mode = (stat $state)[2] & 022;
    ok($outcome eq 'refused' || $mode == 0,
       'nginx does not serve from a state root that all may write to');
    says_what_to_do($log, $state,
        'the refusal names the state root, and says what to do')
        if $outcome eq 'refused';
    $t->stop;
};


# A reload refuses the same directories, and the running nginx continues.

subtest 'a reload brings a zone whose directory is a link' => sub {
    my $etc = make_outside($t);

    prepare_state($t, $user, 'ids');
    set_up();
    $t->run;
    add($t, 'ids', ['key1']);

    symlink $etc->{path}, "$state/more" or die "symlink: $!";
    push @zones, 'zone=more capacity=1k fpr=1e-9';
    set_up();

    my ($outcome, $log) = $t->try_reload;
    is($outcome, 'refused',
       'a reload that meets a link in place of a directory is refused');
    says_what_to_do($log, "$state/more",
        'the refused reload names the link, and says what to do');
    is_untouched($etc, 'the reload leaves what the link leads to alone');
    is(ask($t, 'ids', 'id1', 'key1', 'no'), '110',
       'the old zones continue to serve after the refused reload');

    unlink "$state/more" or die "unlink: $!";
    $t->reload;
    add($t, 'more', ['key2']);
    is(ask($t, 'more', 'key2', 'no'), '10',
       'the new zone serves when the link has been removed');
    $t->stop;
};


done_testing;
