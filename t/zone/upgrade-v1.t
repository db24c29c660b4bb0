#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The first nginx that uses a state directory of the previous version alone
# converts its control page from version 1.  It keeps the keys of the journal,
# the checkpoint and the uploaded image, the pending keys, the position up to
# which the journal was synchronised, and the record of lost keys.

use strict;
use warnings;

use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::ControlPage;
use BloomTest::Disk;
use BloomTest::Image qw(patch_header);
use BloomTest::Journal;
use BloomTest::Process qw(spawn wait_until alive);
use BloomTest::Zones;

has_page_v1() or plan(skip_all => 'control pages of version 1 are described'
                                  . ' with the locks of x86-64');

my $t = BloomTest->new;
my $dir = $t->testdir;
my $ids = "$dir/state/ids";

my @made = ('-p', '1e-9', '-n', '10k', '--seed', 1);

$t->build_image('ids.bloom', ['id1'], @made);
$t->build_image('upload.bloom', ['id1', 'up1'], @made);
$t->build_image('checkpoint.bloom', ['id1', 'check1'], @made);

# Bytes 136 to 151 of an image are its build id.

sub build_of { return substr $t->read_file("$_[0].bloom"), 136, 16 }

configure($t, ['zone=ids:2m file=ids.bloom'], api => 1, add => 1);


# Creates the directories, the control page and the journal as that version left
# them; `page` overrides fields of the page.  The journal has the keys j1 to j4,
# ten minutes old, in two segments.

my $added = (time - 600) * 1000;

sub version_1 {
    my (%page) = @_;

    my $first = BloomTest::Journal->new(created => $added);
    $first->append(['j1', 'j2']);
    my $second = $first->next_segment(created => $added);
    $second->append(['j3']);
    $second->append(['j4']);

    remove_tree("$dir/state");
    begin_state($t, 'ids', $first, $second);

    my $end = $second->{base} + $second->{used};
    my $limit = $second->{base} + $second->{size};

    $t->write_file('state/ids/control', control_page_v1(
        which => 1, tail => $end, base => $second->{base}, limit => $limit,
        sequence => $second->{next}, time => $added, prepared => $limit,
        synced => $end, instances => 1, %page));
    $t->write_file("state/ids/$_", '') for 'lock', 'instance.0';

    return ($end, $second);
}

sub all_keys_of_the_journal {
    my ($what) = @_;

    is(ask_until_known($t, 'ids', 'id1', 'j1', 'j2', 'j3', 'j4', 'no'),
       '111110', "the keys of the journal are present with $what");
}

sub taken_over {
    is(page_version("$ids/control"), 2, 'the control page is of version 2');
}

# Tests a start, with or without a warning about lost keys.

sub starts {
    my ($damaged) = @_;

    $t->run;
    is(zone_state($t, 'ids')->{state}, $damaged ? 'damaged' : 'serving',
       $damaged ? 'the zone knows that keys were lost' : 'the zone serves');
    taken_over();
}

sub ends {
    $t->stop;
    $t->run;
}


subtest 'a journal and its page' => sub {
    version_1();
    my ($exit, $output) = $t->test_config;
    is($exit, 0, 'nginx -t accepts a directory of version 1')
        or diag($output);
    is(page_version("$ids/control"), 266_624,
       'nginx -t leaves the page as it is');

    starts(0);
    all_keys_of_the_journal('a page of version 1');
    add($t, 'ids', ['new'], durable => 1);
    ends();
    all_keys_of_the_journal('a page that was taken over');
    is(ask($t, 'ids', 'new'), '1', 'a key that was added since is present');
    $t->stop;
};


subtest 'pending keys' => sub {
    for (['from the beginning', 0], ['behind some that were appended', 9000]) {
        my ($where, $begin) = @$_;

        version_1(pending => ['p1', "p2\0\xff", 'x' x 4000],
                  pending_begin => $begin);
        starts(0);
        all_keys_of_the_journal('pending keys');
        is(ask($t, 'ids', 'p1', 'p2%00%FF', 'x' x 4000, 'p'),
           '1' . ask($t, 'ids', 'p2%00%FF') . '10',
           "the pending keys are present, $where");

        ok(settled($t, 'ids', sub { !$_[0]{journal}{pending_keys} }),
           "no key is pending any more, $where");
        my ($exit, $out) = $t->run_tool('journal', '--keys', $ids);
        like($out, qr/^$_$/m, "a pending key is in the journal, $where")
            for 'p1', 'x' x 4000;

        ends();
        is(ask_until_known($t, 'ids', 'p1', 'x' x 4000, 'no'), '110',
           "the pending keys are present after another start, $where");
        $t->stop;
    }
};


# If a process dies during the conversion, the next one still finds everything.

subtest 'the disk has no room for a larger page' => sub {
    my $full = BloomTest->new;
    my $disk = BloomTest::Disk->new($full, 'state');

    version_1(pending => ['p1']);
    system('cp', '-a', "$dir/state", $full->testdir . '/state') == 0
        or die 'cp';
    system('cp', "$dir/ids.bloom", $full->testdir) == 0 or die 'cp';
    configure($full, ['zone=ids:2m file=ids.bloom'], api => 1, add => 1);

    $disk->refuse('ENOSPC', 'grow');
    my ($outcome) = $full->try_run;
    $full->stop;
    $disk->allow;

    like($outcome, qr/^(?:refused|starts)$/,
         'nginx starts or refuses to with a full disk');
    $full->run;
    is(ask_until_known($full, 'ids', 'id1', 'j1', 'j4', 'p1', 'no'), '11110',
       'all keys are present when the disk has room');
    is(page_version($full->testdir . '/state/ids/control'), 2,
       'the control page is of version 2 when the disk has room');
    $full->stop;
};


subtest 'the journal has lost its end' => sub {
    my $lost = qr/\[alert\].*"ids".*lost/;

    # behind the last record there was another one that was synchronised

    my ($end) = version_1();
    version_1(synced => $end + 64, tail => $end + 64);
    starts(1);
    $t->expect_log($lost);
    is(ask($t, 'ids', 'id1', 'j1', 'j4', 'no'), '111?',
       'keys that are not found are unknown');
    ends();
    is(ask($t, 'ids', 'id1', 'j1', 'j4', 'no'), '111?',
       'keys that are not found are unknown after another start');
    $t->stop;

    # a page whose two copies differ was being written: nothing is known

    version_1(synced => $end + 64, synced_check => 1);
    starts(0);
    all_keys_of_the_journal('an unknown end');
    $t->stop;
};


# In version 1 a file records up to when keys were lost.

subtest 'keys were lost' => sub {
    my $time = time;
    my $write = sub { $t->write_file('state/ids/lost',
                                     sprintf "%d000 %s\n", @_) };

    version_1();
    $write->($time, '9223372036854775807');
    starts(1);
    is(ask($t, 'ids', 'id1', 'j1', 'j4', 'no'), '111?',
       'keys that are not found are unknown');
    $t->stop;

    # from then on the page records it, and the file is not needed

    unlink "$ids/lost";
    starts(1);
    is(ask($t, 'ids', 'id1', 'j1', 'j4', 'no'), '111?',
       'keys that are not found are unknown without the file');
    $t->kill_all;
    starts(1);
    is(ask($t, 'ids', 'no'), '?',
       'keys that are not found are unknown after kill -9 of all processes');

    # an image that may lack the keys changes nothing; one with a later as_of
    # ends it

    $t->build_image('same.bloom', ['id1', 'j1', 'j2', 'j3', 'j4'], @made,
                    '--as-of', rfc3339($time));
    install_image($t, 'same');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image of the time of the loss is loaded');
    is(ask($t, 'ids', 'no'), '?',
       'keys that are not found are unknown with that image');
    $t->stop;
    $t->build_image('ids.bloom', ['id1'], @made);

    version_1();
    $write->($time - 7200, '128');
    $t->build_image('later.bloom', ['id1'], @made,
                    '--as-of', rfc3339($time - 3000));
    install_image($t, 'later');
    starts(0);
    all_keys_of_the_journal('an image that has the lost keys');
    $t->stop;
    $t->build_image('ids.bloom', ['id1'], @made);

    # a damaged file says nothing

    version_1();
    $t->write_file('state/ids/lost', "yesterday\n");
    my ($outcome, $log) = $t->try_run;
    if ($outcome eq 'refused') {
        like($log, qr{\[emerg\].*/ids/lost}, 'the refusal names the file');
    } else {
        is(ask($t, 'ids', 'no'), '?', 'keys that are not found are unknown');
    }
    $t->stop;
};


subtest 'an uploaded image' => sub {
    version_1();
    my $name = 'upload.' . unpack('H*', build_of('ids')) . '.bloom';
    $t->write_file("state/ids/$name", $t->read_file('upload.bloom'));

    starts(0);
    is(ask_until_known($t, 'ids', 'id1', 'up1', 'j1', 'j4', 'no'), '11110',
       'the uploaded image serves');
    ends();
    is(ask_until_known($t, 'ids', 'id1', 'up1', 'j1', 'j4', 'no'), '11110',
       'the uploaded image serves after another start');
    $t->stop;
};


subtest 'a checkpoint' => sub {
    my ($end, $second) = version_1();
    my $build = build_of('ids');
    my $name = sprintf 'checkpoint.%s.%016x.bloom', unpack('H*', $build),
                       $second->{base} + 128;
    $t->write_file("state/ids/$name",
                   patch_header($t->read_file('checkpoint.bloom'),
                                136 => $build));

    starts(0);
    is(ask_until_known($t, 'ids', 'id1', 'check1', 'j3', 'j4', 'no'), '11110',
       'the checkpoint serves, and the journal behind it');
    $t->stop;
};


subtest 'records were removed from the journal' => sub {
    version_1();
    $t->write_file('state/ids/dropped', sprintf "%d 0\n", (time - 300) * 1000);
    $t->build_image('old.bloom', ['id1', 'old'], @made,
                    '--as-of', rfc3339(time - 86400));

    install_image($t, 'old');
    my ($outcome, $log) = $t->try_run;
    is($outcome, 'refused',
       'an image that lacks removed records is refused');
    $t->stop;
    $t->build_image('ids.bloom', ['id1'], @made);
};


# An nginx of the previous version still uses the directory.

subtest 'the previous version still runs' => sub {
    version_1(pending => ['p1']);
    my $before = $t->read_file('state/ids/control');

    pipe my $ready, my $readied or die "pipe: $!";
    my $holder = spawn(sub {
        open my $fh, '+<', "$ids/instance.0" or die "instance.0: $!\n";
        flock $fh, LOCK_EX or die "lock: $!\n";
        syswrite $readied, 'x';
        sleep 1000 while 1;
    });
    close $readied;
    sysread($ready, my $byte, 1) or die 'instance.0 is not locked';

    my ($outcome, $log) = $t->try_run;
    is($outcome, 'refused', 'nginx refuses to start beside it');
    like($log, qr/\[emerg\].*\Q$ids\E.*version.*\b(?:stop|restart)\b/,
         'the refusal names the directory, and says what to do');
    $t->stop;
    is($t->read_file('state/ids/control'), $before,
       'the control page is left as it is');

    kill 'KILL', $holder;
    wait_until(sub { !alive($holder) });
    starts(0);
    all_keys_of_the_journal('a directory that the previous version has left');
    is(ask($t, 'ids', 'p1'), '1', 'the pending key is present');
    $t->stop;
};


# The number of a page's version is where version 1 had its size.

subtest 'a newer version has created the page' => sub {
    version_1(size => 4711);
    my $before = $t->read_file('state/ids/control');

    my ($outcome, $log) = $t->try_run;
    is($outcome, 'refused', 'nginx refuses to start');
    like($log, qr/\[emerg\].*\Q$ids\E\/control.*newer version/,
         'the refusal names the page and the reason');
    is($t->read_file('state/ids/control'), $before,
       'the control page is left as it is');
    $t->stop;
};


# A damaged page is recreated from the journal.

subtest 'the page is damaged' => sub {
    my %page = (
        'cut' => substr(control_page_v1(pending => ['p1']), 0, 5000),
        'of another program' => "\x7fELF" . 'x' x 300_000,
        'of zeros' => "\0" x 266_624,
        'of pending keys without an end'
            => control_page_v1(pending_end => 1 << 40),
        'of pending keys that end before they begin'
            => control_page_v1(pending_begin => 100, pending_end => 50),
        'of pending keys that are cut'
            => control_page_v1(pending_end => 262_144, pending_count => 9),
        'of the highest numbers' => "BLOOMCTL" . pack('Q<', 266_624)
                                    . "\xff" x 266_608,
    );

    for my $what (sort keys %page) {
        version_1();
        $t->write_file('state/ids/control', $page{$what});

        my ($outcome, $log) = $t->try_run;
        is($outcome, 'starts', "nginx starts with a page $what") or diag($log);
        is(ask($t, 'ids', 'id1', 'j1', 'j2', 'j3', 'j4'), '11111',
           "the keys of the journal are present with a page $what")
            if $outcome eq 'starts';
        $t->stop;
    }
};


done_testing;
