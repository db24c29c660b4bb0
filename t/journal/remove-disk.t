#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# While the disk refuses to write, removals get 503 and their keys stay present,
# and so does a key of bloom_remove, which is counted and logged.  What was
# added and removed before holds.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time - 600));
configure($t, ['zone=ids file=ids.bloom removals=1000'],
          api => 1, add => 1, remove => 1, workers => 2);
$t->run;

sub remove {
    my ($query, @keys) = @_;

    return api($t, POST => "zones/ids/remove$query", body => join "\n", @keys);
}

# Waits until the disk is no reason to refuse any more.

sub recovered {
    my ($name) = @_;

    ok(wait_until(sub {
        return remove('?durable=true', 'nobody')->status == 200;
    }), "removals are possible again $name");
}


for (['ENOSPC', qr/No space left/], ['EROFS', qr/Read-only/],
     ['EIO', qr/Input\/output/])
{
    my ($error, $text) = @$_;

    subtest "writing fails with $error" => sub {
        my ($left, $again, $before) = map { "$_-$error" }
            qw(left again before);

        add($t, 'ids', [$left, $again, $before]);
        is(remove('', $before)->status, 200,
           "a key is removed before $error");
        $disk->refuse($error, qw(open write grow rename));

        is_error(remove('', 'id1', $left), 503, $text,
                 "a removal is refused with $error");
        is_error(remove('?durable=true', 'id2'), 503, $text,
                 "a durable removal is refused with $error");
        is_error(api($t, DELETE => 'zones/ids/keys?key=id3'), 503, $text,
                 "DELETE is refused with $error");

        my $refused = zone_state($t, 'ids')->{counters}{removals_refused};
        my $mark = $t->log_mark;
        is($t->get('/remove/ids?k=id4')->status, 200,
           "a request with bloom_remove is answered with $error");
        is(zone_state($t, 'ids')->{counters}{removals_refused}, $refused + 1,
           "a key that bloom_remove could not remove is counted with $error");
        like($t->wait_for_log(qr/bloom_remove could not remove/, $mark), $text,
             "the log says why bloom_remove could not remove a key: $error");

        is(ask($t, 'ids', keys_of('id', 4), $left, $again, $before),
           '1111110', "keys are as they were with $error");

        $disk->allow;
        recovered("after $error");
        is(ask($t, 'ids', keys_of('id', 4), $left, $again, $before),
           '1111110', "no refused removal is made up for after $error");

        is(remove('', 'id1', $left)->status, 200,
           "keys are removed after $error");

        for my $when ('', ' and kill -9 of all processes') {
            is(ask_until_known($t, 'ids', 'id1', $left, $before),
               '000', "removed keys are absent after $error$when");
            is(ask($t, 'ids', 'id2', 'id3', 'id4', $again), '1111',
               "other keys are present after $error$when");
            next if $when;
            $t->kill_all;
            $t->run;
        }

        add($t, 'ids', ['id1']);
    };
}


# A durable removal that the disk does not confirm may hold or not, but nothing
# else changes.

subtest 'synchronising fails' => sub {
    add($t, 'ids', ['sync1', 'sync2']);
    $disk->refuse('EIO', 'sync');

    is(remove('?durable=true', 'sync1')->status, 503,
       'a durable removal is refused if the disk does not synchronise');
    like(ask($t, 'ids', 'sync1'), qr/^[01]$/, 'its key is present or absent');
    is(ask($t, 'ids', 'sync2', 'id2'), '11', 'other keys are present');

    $disk->allow;
    recovered('when the disk synchronises again');
    is(remove('?durable=true', 'sync1')->status, 200,
       'the removal is possible when the disk synchronises again');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'sync1', 'sync2', 'id2'), '011',
       'the removal holds after kill -9 of all processes');
};


# The first change of a zone is a removal, whose segment may exist already.  The
# answer has the disk's reason, and not that the helper has made no room in some
# time.

subtest 'the first removal needs a file that cannot be written' => sub {
    configure($t, ['zone=late file=ids.bloom removals=10'], api => 1);
    $t->reload;
    $disk->refuse('ENOSPC', qw(open write grow rename));

    for (1, 2) {
        is_error(api($t, DELETE => 'zones/late/keys?key=id1'), 503,
                 qr/the journal (?:has no room|cannot be written).*No space left/,
                 'a removal is refused, and the answer says why');
    }
    is(ask($t, 'late', 'id1'), '1', 'the key is present');

    $disk->allow;
    ok(wait_until(sub {
        return api($t, DELETE => 'zones/late/keys?key=id1')->status == 200;
    }), 'the removal is possible again');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'late', 'id1', 'id2'), '01',
       'the first change is kept, although all processes died');
};

done_testing;
