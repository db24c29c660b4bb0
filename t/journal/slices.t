#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Images are synchronised in slices, so that durable additions never wait for a
# whole image.  No segment of the journal is removed because of an image that is
# not on disk, with its name.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Writes;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my $writes = BloomTest::Writes->new($t);

use constant MIB => 1024 * 1024;

my $now = time;

for my $name (qw(one two)) {
    $t->build_image("$name.bloom", [keys_of('id', 10), $name], '-p', '1e-9',
                    '-n', '4m', '--as-of', rfc3339($now));
}

my $size = -s "$dir/one.bloom";

sub slices { return int(($size + 4 * MIB - 1) / (4 * MIB)) }


# Tests that a file was synchronised after every 4 MiB at the latest, not
# counting the header and the table of an image.

sub in_slices {
    my ($pattern, $what) = @_;

    my ($file, $written, $unsynced, $most) = ('', 0, 0, 0);

    for my $call ($writes->calls) {
        next if $call->{path} !~ $pattern;

        if ($call->{what} eq 'write') {
            $file = $call->{path};
            $written += $call->{bytes};
            $unsynced += $call->{bytes};
            $most = $unsynced if $unsynced > $most;

        } elsif ($call->{what} eq 'sync') {
            $unsynced = 0;
        }
    }

    is($written, $size, "$what was written to a file of its own");
    is($unsynced, 0, "$what was synchronised at its end");
    cmp_ok($most, '<', 4.1 * MIB,
           "$what was synchronised every 4 MiB at the latest");

    return $file;
}


install_image($t, 'one');
configure($t, ['zone=ids:100m file=ids.bloom'], api => 1, workers => 2);
$t->run;


subtest 'images are written' => sub {
    # the helper may create a segment of the journal meanwhile

    my $tmp = qr/\/save\.[^\/]*\.tmp$/;

    $writes->begin;
    is(api($t, GET => 'zones/ids/image')->status, 200, 'an image is sent');
    in_slices($tmp, 'an image');

    $writes->begin;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    in_slices($tmp, 'a checkpoint');

    $writes->begin;
    is(upload_image($t, 'ids', 'two')->status, 200, 'an image is uploaded');

    # body.I.R.tmp is written by a worker, which never synchronises, and then
    # synchronised and renamed by the helper

    my @calls = grep {
        ($_->{from} || $_->{path}) =~ m{/body\.[^/]*\.tmp$}
            && $_->{what} !~ /^(?:create|write)$/
    } $writes->calls;

    is(join(' ', map { $_->{what} } @calls),
       join(' ', ('slice') x slices(), 'sync', 'rename'),
       'an upload is synchronised in slices before it is renamed');
    like($calls[-1]{path}, qr{/upload\.[^/]*\.bloom$},
         'an upload has its name at last');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'file= serves again');
    $t->stop;
};


# The program that wrote file= may have left it unsynchronised.  After a power
# failure the file may lack what it had when it was loaded.

sub begin_with_segments {
    my $old = BloomTest::Journal->new(created => ($now - 7200) * 1000);
    $old->append(['old'], time => ($now - 7200) * 1000);

    my $new = $old->next_segment(created => $now * 1000);
    $new->append(['new'], time => $now * 1000);

    begin_state($t, 'ids', $old, $new);
}

# Tests that the file was synchronised in slices, with its file system, and then
# a segment removed.

sub synchronised_first {
    my ($when) = @_;

    my @calls;

    ok(wait_until(sub {
        @calls = grep {
            $_->{path} eq ($_->{what} eq 'remove'
                           ? "$state/journal.0000000000000000"
                           : "$dir/ids.bloom");
        } $writes->calls;

        return grep { $_->{what} eq 'remove' } @calls;
    }), "a segment that the image covers is removed $when");

    my @what = map { $_->{what} } @calls;

    is("@what", join(' ', ('slice') x slices(), 'sync', 'syncfs', 'remove'),
       "the file of file= is synchronised in slices before that $when");
    is(scalar(grep { $_->{what} eq 'slice' && $_->{bytes} > 4 * MIB } @calls),
       0, "no slice has more than 4 MiB $when");
}

sub load {
    my ($name) = @_;

    $writes->begin;
    install_image($t, $name);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       "image $name is loaded");
}

# Waits until the image of file= is on disk.

sub is_synchronised {
    my ($what) = @_;

    ok(wait_until(sub {
        grep { $_->{what} eq 'syncfs' && $_->{path} eq "$dir/ids.bloom" }
            $writes->calls;
    }), "$what is synchronised");
}

subtest 'file= is loaded at a start' => sub {
    begin_with_segments();
    install_image($t, 'one');
    $writes->begin;
    $t->run;
    synchronised_first('after a start');
    is(ask_until_known($t, 'ids', 'old', 'new', 'one'), '011',
       'the image and the rest of the journal serve');
    $t->stop;
};


subtest 'file= is loaded while nginx runs' => sub {
    $t->build_image('plain.bloom', ['plain'], '-p', '1e-9');
    install_image($t, 'plain');
    begin_with_segments();
    $writes->begin;
    $t->run;

    # the helper synchronises this image, too, and one that covers the segment;
    # it goes when the image before covers it as well

    is_synchronised('the first image');
    load('one');
    is_synchronised('the second image');
    ok(-e "$state/journal.0000000000000000",
       'a segment that the first image lacks is not removed');

    load('two');
    synchronised_first('after a load');
    $t->stop;
};


# A damaged upload replaces file=: a start would try to load it again.

subtest 'a damaged upload stands in the place of file=' => sub {
    install_image($t, 'one');
    $t->run;
    is(upload_image($t, 'ids', 'two')->status, 200, 'an image is uploaded');
    $t->stop;

    my ($upload) = files("$state/upload.*");
    my $bytes = $t->read_file($upload =~ s{^\Q$dir/}{}r);
    my $base = read_base("$state/base");
    begin_with_segments();
    $t->write_file($upload =~ s{^\Q$dir/}{}r, $bytes);
    set_base("$state/base", map { $_ => $base->{$_} }
                                qw(kind build_id replaced accepted));
    flip($upload, -1);

    $t->expect_log(qr/\[alert\].*is damaged/);
    $t->run;
    is(ask($t, 'ids', 'one', 'two'), '1?', 'the image of file= serves');
    add($t, 'ids', ['later'], durable => 1);

    # the helper looks for segments to remove before it saves a checkpoint

    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/is not the one that a start would load/,
             'no checkpoint is made of the image of file=');
    ok(-e "$state/journal.0000000000000000",
       'no segment is removed for the image of file=');

    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'one', 'two'), '1?', 'nor is the upload forgotten');
    $t->stop;
    ok(-e $upload, 'its file stays for a repair');
};


done_testing;
