#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The file "base" has entries that a start can use, whatever happens to the
# files that they name.

use strict;
use warnings;

use List::Util qw(uniq);

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Writes;
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $writes = BloomTest::Writes->new($t);
my $state = $t->testdir . '/state/ids';

sub base { return read_base("$state/base") }
sub checkpoints { return files("$state/checkpoint.*") }

# Adds so many KiB of keys that nobody asks for.

sub fill {
    my ($name, $kib) = @_;

    add($t, 'ids', [map { "$name-$_-" . 'x' x 16_000 } 1 .. $kib / 16]);
}

sub checkpoint {
    my ($what) = @_;

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       "$what is written");
}

# Returns when the helper has removed what nobody needs.

sub helper_cleans {
    my $name = 'checkpoint.' . '0' x 32 . '.' . '0' x 15 . '8.bloom';

    $t->write_file("state/ids/$name", '');
    $t->reload;
    ok(wait_until(sub { !-e "$state/$name" }), 'the helper looks at the files');
    add($t, 'ids', ['later'], durable => 1);
}

# Writes a new directory, and starts nginx with a zone.

sub begin {
    my (@zones) = @_;

    $t->stop if $t->master;
    system('rm', '-rf', $t->testdir . '/state');
    configure($t, \@zones, api => 1, add => 1);
    $t->run;
}


# It knows nothing of the upload, and no segment has been made since.

subtest 'the file base is older than an upload' => sub {
    $t->build_image('ids.bloom', ['id1']);
    $t->build_image('up.bloom', ['id1', 'up']);
    begin('zone=ids file=ids.bloom');
    add($t, 'ids', ['added'], durable => 1);

    my $before = $t->read_file('state/ids/base');

    is(upload_image($t, 'ids', 'up')->status, 200, 'an image is uploaded');
    $t->kill_all;
    is(base()->{kind}, 2, 'the zone stands on it');
    $t->write_file('state/ids/base', $before);

    my $mark = $t->log_mark;

    $t->run;
    is(ask($t, 'ids', qw(id1 added up never)), '11??',
       'no key is absent after a start');
    like($t->log_since($mark), qr/\[alert\].*"base" is older .*damaged/,
         'the log says why');
    $t->excuse_log($mark);
    $mark = $t->log_mark;
    $t->kill_all;
    $t->run;
    unlike($t->log_since($mark), qr/"base"/, 'the next start has no doubt');
    $t->excuse_log($mark);
};


# What is written to disk when a zone is changed, in words, and where entries of
# the file "base" are written.

my %called = ('syncfs ids.bloom' => 'image', 'write journal' => 'record',
              'sync journal' => 'journal', 'rename checkpoint' => 'checkpoint',
              'write base' => 'entry', 'sync base' => 'base',
              'remove journal' => 'removal', 'remove checkpoint' => 'removal');
my @places;

sub written {
    my ($change) = @_;

    $writes->begin;
    $change->();

    my @calls = $writes->calls;

    $writes->end;
    push @places, map { $_->{at} }
                      grep { $_->{what} eq 'write' && $_->{path} =~ /base$/ }
                           @calls;

    return join ' ', uniq map {
        my ($name) = $_->{path} =~ m{([^/]*)$};
        $called{"$_->{what} " . $name =~ s/^(journal|checkpoint)\..*/$1/r}
            // ();
    } @calls;
}

# The journal goes, which has what the image before lacks.  Nobody but nginx has
# synchronised the new one.

subtest 'a zone is cleared' => sub {
    begin('zone=ids file=ids.bloom');
    add($t, 'ids', ['added'], durable => 1);
    ok(wait_until(sub { base()->{kind} == 1 }),
       'the zone stands on the image');
    checkpoint('a checkpoint');

    like(written(sub {
        add($t, 'ids', ['later']);
        checkpoint('another checkpoint');
    }), qr/record .*journal .*checkpoint entry base/,
         'the record and the checkpoint are on disk before the entry');
    is(written(sub {
        is(api($t, POST => 'zones/ids/clear')->status, 200, 'it is cleared');
    }), 'image record journal entry base removal',
       'the image and its name are on disk before the record, the record before'
       . ' the entry, and the entry before the journal goes');
    is(scalar(grep { $places[$_] == $places[$_ - 1] } 1 .. $#places), 0,
       'no entry is written in the place of the one that counts')
        or diag("@places");
};


# Makes a directory of a zone that stood on an image.  The image covers the
# first segment.

sub stood_on_image {
    my (%field) = @_;

    my $now = time * 1000;
    my $old = BloomTest::Journal->new(created => $now - 7200_000);

    $old->append(['old'], time => $now - 7200_000);
    my $new = $old->next_segment(created => $now);
    $new->append(['new'], time => $now);

    $t->stop if $t->master;
    begin_state($t, 'ids', $old, $new);
    set_base("$state/base", kind => 1, build_id => 'aa' x 16, floor => $now,
             accepted => { build_id => 'aa' x 16, keys => 1, as_of => $now,
                           loaded => $now }, %field);
    configure($t, ['zone=ids capacity=1k fpr=1e-9'], api => 1, add => 1);
}

subtest 'a zone has no file= any more' => sub {
    stood_on_image();
    $t->run;
    is(ask_until_known($t, 'ids', qw(old new never)), '110',
       'the zone has the keys of its journal');
    helper_cleans();
    ok(-e "$state/journal.0000000000000000",
       'the segment that the image covers is kept');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(old new later never)), '1110',
       'a start has all keys');
    checkpoint('a checkpoint of the empty filter');
    is(base()->{kind}, 0, 'the zone stands on an empty filter');
};


subtest 'a zone has no file=, and its journal lacks what the image had' => sub {
    stood_on_image(dropped => (time - 10_000) * 1000);

    my $mark = $t->log_mark;

    $t->run;
    is(ask($t, 'ids', qw(old new never)), '11?', 'no key is absent');
    like($t->log_since($mark), qr/\[alert\].*has no image any more.*POST clear/,
         'the log says why, and what to do');
    $t->excuse_log($mark);
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
    is(ask_until_known($t, 'ids', qw(old new never)), '000', 'it is empty');
};


# The new instance is at port 8090.  The old one has not got the image.

subtest 'another instance stands on checkpoints of an upload' => sub {
    my $zone = 'zone=ids capacity=9k fpr=1e-9';

    sub at_8090 {
        my ($method, $path, $body) = @_;
        return $t->request($method, "/bloom/zones/ids/$path", port => 8090,
                           body => $body);
    }

    begin($zone);
    add($t, 'ids', ['first']);

    my $conf = $t->read_file('nginx.conf');
    my ($old, $new) = map { '127.0.0.1:' . $t->port($_) } 8080, 8090;

    $t->write_file('nginx.conf', $conf =~ s/\Q$old\E/$new/r);
    $t->upgrade_begin;
    $t->build_image('up.bloom', ['up'], '-p', '1e-9', '-n', '9k');
    is(at_8090(PUT => 'image', $t->read_file('up.bloom'))->status, 200,
       'the new instance gets an image');

    for (1, 2) {
        fill("more$_", 4096);
        ok(wait_until(sub {
            at_8090(POST => 'checkpoint')->status == 200;
        }), "and writes checkpoint $_");
    }

    ok(wait_until(sub { base()->{kind} == 3 }, 30),
       'it stands on the older one');
    is(api($t, POST => 'zones/ids/checkpoint')->status, 503,
       'the old instance writes no checkpoint');
    $t->kill_all;
    $t->run;
    is(join(' ', map { at_8090(GET => "keys?key=$_")->json->{answer} }
                     qw(first up never)), 'present present absent',
       'a start has the image and the keys');
    $t->kill_all;
};


# The segment that has the checkpoints' positions is removed.

subtest 'the keys of both checkpoints have expired' => sub {
    begin('zone=ids capacity=40k fpr=1e-9 expire=8h',
          'zone=tick capacity=8k fpr=0.001');
    fill('a', 3 * 1024);
    checkpoint('the first checkpoint');
    fill('b', 400);
    checkpoint('the second checkpoint');
    fill('c', 17 * 1024);
    ok(wait_until(sub { $time->passes(10); base()->{kind} == 3 }),
       'the zone stands on the older one');

    $time->passes(2 * HOUR) for 1 .. 5;
    add($t, 'ids', ['young']);
    my $at = base()->{newer}{position};
    ok(wait_until(sub { $time->passes(10); base()->{from}{position} > $at }),
       'the journal begins behind both of them');

    my $base = base();

    is_deeply([base_problems("$state/base")], [], 'each entry is valid');
    is("$base->{kind} $base->{older}{position} $base->{newer}{position}",
       '0 0 0', 'the zone stands on an empty filter');
    ok(wait_until(sub { $time->passes(10); !checkpoints() }),
       'the checkpoints are removed');
    is(ask_until_known($t, 'ids', 'young'), '1', 'a later key is present');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'young', 'other'), '10',
       'it is present after a start');
};


$t->stop;
done_testing;
