#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An attacker who has taken over a worker can replace a zone's files by
# anything, while nginx is stopped or while it runs: links, FIFOs, truncated
# files.  Nothing outside the zone's directory changes, no start, reload, stop
# or nginx -t hangs, and no acknowledged key is answered absent.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Zones;

my $user = hostile_user();
my $t = BloomTest->new(user => $user->{conf});

# a process that has a truncated file mapped dies of SIGBUS: that is no finding

$t->environment(ASAN_OPTIONS => "$t->{env}{ASAN_OPTIONS}:handle_sigbus=0")
    if $t->{env}{ASAN_OPTIONS};
my $dir = $t->testdir;
my $ids = "$dir/state/ids";
my $etc;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '10k');
$t->build_image('upload.bloom', ['id1', 'up1'], '-p', '1e-9', '-n', '10k');

sub set_up {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom",
                   'zone=other capacity=1k fpr=1e-9'],
              api => 1, add => 1);
}


# Acknowledged keys: in the image of file=, in an uploaded image, in a
# checkpoint, and in the journal behind the checkpoint.

my @acknowledged = ('id1', 'up1', 'key1', 'key2');

set_up(':2m');
$t->run;
upload_image($t, 'ids', 'upload')->status == 200 or die 'no upload';
add($t, 'ids', ['key1'], durable => 1);
api($t, POST => 'zones/ids/checkpoint')->status == 200 or die 'no checkpoint';
add($t, 'ids', ['key2'], durable => 1);
add($t, 'other', ['key3'], durable => 1);
$t->stop;

system('cp', '-a', "$dir/state", "$dir/saved") == 0 or die 'cp';

sub begin_again {
    remove_tree("$dir/state");
    system('cp', '-a', "$dir/saved", "$dir/state") == 0 or die 'cp';
    $etc = make_outside($t);
}

# The files of a zone, by the names that assertions give them.

my %file = map { my ($name) = /(\w+)[^\/]*$/; $name => s{.*/}{}r }
           glob "$ids/{base,control,lock,instance.0,journal.*,upload.*,"
                . 'checkpoint.*}';

is(join(' ', sort keys %file),
   'base checkpoint control instance journal lock upload',
   'a zone has all the files whose places are to be taken');


# Tests that the zone serves what it must, whatever has happened.

sub answers_well {
    my ($what) = @_;

    unlike(ask($t, 'ids', @acknowledged), qr/0/,
           "no acknowledged key is absent with $what");
    is(ask_until_known($t, 'other', 'key3', 'no'), '10',
       "another zone continues with $what");
}


for my $kind ('symbolic link', 'hard link', 'FIFO', 'directory', 'socket') {
    for my $name (sort keys %file) {
        for my $target ($kind =~ /link/ ? ('passwd', 'shadow') : '') {
            my $what = "a $kind" . ($target && " to $target")
                       . " in place of $name";

            subtest $what => sub {
                begin_again();
                put_in_place($user, "$ids/$file{$name}", $kind,
                             "$etc->{path}/$target");

                my ($exit) = test_config_within($t);
                ok(defined $exit, "nginx -t ends with $what");

                my ($outcome, $log) = $t->try_run(limit => PATIENCE);
                like($outcome, qr/^(?:starts|refused)$/,
                     "nginx starts or refuses to with $what");

                if ($outcome eq 'refused') {
                    says_what_to_do($log, "$ids/$file{$name}",
                        "the refusal says what to do about $what");

                } elsif ($outcome eq 'starts') {
                    answers_well($what);
                }

                $t->stop;
                is_untouched($etc, "other files are left alone with $what");
            };
        }
    }
}


# While nginx runs, a reload that changes the size has to read all files again.

for my $kind ('symbolic link', 'FIFO') {
    for my $name (sort keys %file) {
        my $what = "a $kind in place of $name while nginx runs";

        subtest $what => sub {
            begin_again();
            set_up(':2m');
            $t->run;

            # some checkpoints and segments have other names by now

            my ($path) = glob "$ids/" . ($file{$name} =~ s/\..*//r) . '*';
            put_in_place($user, $path // "$ids/$file{$name}", $kind,
                         "$etc->{path}/passwd");
            my $mark = $t->log_mark;

            for (['a reload', ':2m'], ['a reload with another size', ':3m']) {
                my ($which, $size) = @$_;

                set_up($size);
                my ($outcome) = $t->try_reload(limit => PATIENCE);
                like($outcome, qr/^(?:reloads|refused)$/,
                     "$which is made or refused with $what");
            }

            answers_well($what);
            $t->stop;
            is_untouched($etc, "other files are left alone with $what");
            $t->excuse_log($mark);
        };
    }
}


for my $size (0, 100) {
    subtest "the control page is cut to $size bytes while nginx is stopped"
        => sub
    {
        begin_again();
        set_up(':2m');
        as_user($user, sub { truncate "$ids/control", $size })
            or die "truncate: $!";

        my ($exit, $output) = test_config_within($t);
        is($exit, 0, 'nginx -t accepts a control page that was cut')
            or diag($output);

        my ($outcome, $log) = $t->try_run(limit => PATIENCE);
        is($outcome, 'starts', 'nginx starts with a control page that was cut')
            or diag($log);
        like(ask($t, 'ids', @acknowledged, 'no'), qr/^1111[0?]$/,
             'all acknowledged keys are present after the start');
        $t->stop;
    };


    # Workers, which have the page mapped, die of it.  That is acceptable: the
    # process that truncated the page could have killed them.

    subtest "the control page is cut to $size bytes while nginx runs" => sub {
        begin_again();
        set_up(':2m');
        $t->run;

        my $mark = $t->log_mark;
        my $master = $t->master;

        as_user($user, sub { truncate "$ids/control", $size })
            or die "truncate: $!";

        my ($exit) = test_config_within($t);
        ok(defined $exit, 'nginx -t ends');

        for (['a reload', ':2m'], ['a reload with another size', ':3m']) {
            my ($which, $zone_size) = @$_;

            set_up($zone_size);
            my ($outcome, $log) = $t->try_reload(limit => PATIENCE);
            like($outcome, qr/^(?:reloads|refused)$/,
                 "$which is made or refused");
        }

        ok(wait_until(sub {
               (eval { ask($t, 'other', 'key3', 'no') } // '') eq '10';
           }), 'another zone goes on');
        unlike(eval { ask($t, 'ids', @acknowledged) } // '', qr/0/,
               'no acknowledged key is absent');
        is($t->master, $master, 'the master is the same');
        $t->stop;

        # the next start creates a new page, so that what the old page said
        # about the journal is gone

        set_up(':2m');
        my ($outcome) = $t->try_run(limit => PATIENCE);
        is($outcome, 'starts', 'nginx starts again');
        unlike(ask($t, 'ids', @acknowledged), qr/0/,
               'no acknowledged key is absent after another start');
        $t->stop;
        $t->excuse_log($mark);
    };
}


# The locks in the page are forged: they look as if a process held them for
# ever, or they hold random bytes.  So is the end of the journal, behind them.

for my $forged ('held', 'ones', 'zeros', 'ones up to the end',
                'zeros up to the end')
{
    subtest "the locks of the control page are forged: $forged" => sub {
        begin_again();
        set_up(':2m');
        $t->run;

        my $holder = spawn(sub { sleep 1000 while 1 });
        my $mark = $t->log_mark;
        my $bytes = $forged eq 'held' ? pack('L<', $holder) x 20
                    : ($forged =~ /ones/ ? "\xff" : "\0")
                      x ($forged =~ /end/ ? 200 : 80);

        as_user($user, sub {
            open my $page, '+<:raw', "$ids/control" or die "control: $!\n";
            sysseek $page, 40, 0;
            syswrite $page, $bytes;
        });

        for (['a reload', ':2m'], ['a reload with another size', ':3m']) {
            my ($which, $size) = @$_;

            set_up($size);
            my ($outcome) = $t->try_reload(limit => PATIENCE);
            like($outcome, qr/^(?:reloads|refused)$/,
                 "$which is made or refused");
        }

        $t->stop;
        $t->excuse_log($mark);
        release_lock($holder);
    };
}


subtest 'the file lock is held while nginx starts' => sub {
    begin_again();
    set_up(':2m');

    my $holder = hold_lock($user, "$ids/lock");

    my ($exit) = test_config_within($t);
    ok(defined $exit, 'nginx -t ends');

    my ($outcome, $log) = $t->try_run(limit => PATIENCE);
    is($outcome, 'refused', 'nginx refuses to start');
    like($log, qr/\[emerg\].*\Q$ids\E\/lock.*\b$holder\b/,
         'the refusal names the file and the process that holds it');
    says_what_to_do($log, "$ids/lock", 'the refusal says what to do');
    $t->stop;

    release_lock($holder);
    $t->run;
    is(ask_until_known($t, 'ids', @acknowledged, 'no'), '11110',
       'nginx starts when nobody holds the lock');
    $t->stop;
};


subtest 'the file lock is held while nginx runs' => sub {
    begin_again();
    set_up(':2m');
    $t->run;

    my $holder = hold_lock($user, "$ids/lock");

    my ($outcome) = $t->try_reload(limit => PATIENCE);
    is($outcome, 'reloads', 'a reload that changes nothing needs no lock');

    set_up(':3m');
    ($outcome, my $log) = $t->try_reload(limit => PATIENCE);
    is($outcome, 'refused', 'a reload with another size is refused');
    like($log, qr/\[emerg\].*\Q$ids\E\/lock.*\b$holder\b/,
         'the refused reload names the file and the process that holds it');
    is(ask_until_known($t, 'ids', @acknowledged, 'no'), '11110',
       'the zone goes on after the refused reload');

    release_lock($holder);
    $t->reload;
    is(ask_until_known($t, 'ids', @acknowledged, 'no'), '11110',
       'a reload with another size is made when nobody holds the lock');
    $t->stop;
};


# The lock files of all possible instances are locked.

subtest 'every instance seems to be alive' => sub {
    begin_again();
    set_up(':2m');

    my @holders = map { hold_lock($user, "$ids/instance.$_") } 0 .. 63;

    my ($outcome, $log) = $t->try_run(limit => PATIENCE);
    is($outcome, 'refused', 'nginx refuses to start');
    says_what_to_do($log, "$ids/instance",
        'the refusal names a file, and says what to do');
    $t->stop;

    release_lock($_) for @holders;
    $t->run;
    is(ask_until_known($t, 'ids', @acknowledged, 'no'), '11110',
       'nginx starts when nobody holds the locks');
    $t->stop;
};


done_testing;
