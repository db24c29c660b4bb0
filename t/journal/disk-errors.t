#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# While the disk refuses to write, additions by the endpoint get 503 and the
# filter continues to serve.  Keys of bloom_add are lost: only the filter that
# serves has them.  What was prepared before the disk was full takes them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
$t->expect_log(qr/\[alert\].*"ids" could not write added keys/);
$t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=1m fpr=1e-9'],
          api => 1, add => 1, workers => 2);
$t->run;

sub post {
    my ($zone, @keys) = @_;

    return api($t, POST => "zones/$zone/keys", body => join "\n", @keys);
}

# Waits until the endpoint adds keys again.

sub recovered {
    my ($zone) = @_;

    my $n = 0;
    return wait_until(sub {
        return post($zone, 'again' . $n++)->status == 200;
    });
}

sub journal_keys {
    my ($zone) = @_;

    my ($exit, $out) = $t->run_tool('journal', '--keys',
                                    glob "$dir/state/$zone/journal.*");
    return { map { $_ => 1 } split /\n/, $out };
}


for (['ENOSPC', qr/No space left/], ['EROFS', qr/Read-only/],
     ['EIO', qr/Input\/output/], ['EACCES', qr/Permission denied/])
{
    my ($error, $text) = @$_;

    subtest "writing fails with $error" => sub {
        add($t, 'ids', ["before-$error"]);
        $disk->refuse($error, qw(open write grow rename));

        my $r = post('ids', map { "$error$_" } 1 .. 5);
        is_error($r, 503, $text, "additions are refused with $error");
        is_added($r, 5, 0, 0, undef, "no key is added with $error")
            if defined $r->json->{received};
        is(ask($t, 'ids', 'id1', "before-$error", 'no'), '110',
           "the filter continues to serve with $error");
        like(ask($t, 'ids', map { "$error$_" } 1 .. 5), qr/^[01]{5}$/,
             "refused keys are not unknown with $error");
        is(post('ids', "before-$error")->status, 503,
           "keys that are present are refused with $error")
            if post('ids', "before-$error")->status != 200;

        my $state = zone_state($t, 'ids')->{journal};
        like(join(' ', map { $_ // '' } values %$state), $text,
             "the zone's state has the reason for $error");

        # bloom_add has no way to refuse: its keys are lost to the next load

        is($t->get("/add/ids?k=lost-$error-$_")->status, 200,
           "bloom_add adds a key with $error")
            for 1 .. 20;
        is(ask($t, 'ids', map { "lost-$error-$_" } 1 .. 20), '1' x 20,
           "the keys of bloom_add are present with $error");
        is(zone_state($t, 'ids')->{journal}{lost_keys}, 20,
           "the zone's state counts the lost keys with $error");
        is(ask($t, 'ids', 'no'), '0',
           "the filter that serves has all keys with $error");

        $t->kill_worker('KILL', $_) for $t->workers;
        is(ask($t, 'ids', map { "lost-$error-$_" } 1 .. 20), '1' x 20,
           "they survive the death of the workers with $error");
        $t->kill_helper;

        $disk->allow;
        ok(recovered('ids'), "additions succeed after $error");
        my $in = journal_keys('ids');
        is(scalar(grep { $in->{"lost-$error-$_"} } 1 .. 20), 0,
           "no lost key is in the journal after $error");

        $t->kill_all;
        $t->run;
        is(ask($t, 'ids', 'id1', "before-$error"), '11',
           "acknowledged keys are present after $error and kill -9 of all"
           . ' processes');
        is(ask($t, 'ids', map { "lost-$error-$_" } 1 .. 20), '?' x 20,
           "lost keys are unknown after $error and kill -9 of all processes");
        $state = zone_state($t, 'ids')->{journal};
        unlike(join(' ', map { $_ // '' } values %$state), $text,
               "the zone's state no longer has the reason for $error");
        is(api($t, POST => 'zones/ids/clear')->status, 200,
           "the zone is cleared after $error");
        is(ask($t, 'ids', 'id1', 'no'), '10', "and knows its keys again");
    };
}


# On a full disk, records still fit into an existing segment, and then no more.

subtest 'the disk has no room for another segment' => sub {
    $disk->refuse('ENOSPC', 'grow');

    my (@taken, $refused);
    for my $n (1 .. 2000) {
        my @keys = map { "room-$n-$_-" . 'x' x 500 } 1 .. 100;
        my $r = post('seen', @keys);

        if ($r->status != 200) {
            $refused = $r;
            last;
        }
        push @taken, $keys[0], $keys[-1];
    }

    cmp_ok(scalar @taken, '>', 0,
           'keys are added while the segments have room');
    is_error($refused // $t->get('/'), 503, qr/No space left/,
             'keys are refused when the segments are full');
    is(ask($t, 'seen', @taken), '1' x @taken,
       'keys that were added before the refusal are present');

    $disk->allow;
    ok(recovered('seen'), 'additions succeed when the disk has room');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', @taken), '1' x @taken,
       'keys that were added are present after kill -9 of all processes');
};


subtest 'the disk refuses to synchronise' => sub {
    $disk->refuse('EIO', 'sync');
    my $r = api($t, POST => 'zones/seen/keys?durable=true', body => "sync1\n");
    is_error($r, 503, qr/Input\/output/,
             'a durable addition is refused when the disk does not'
             . ' synchronise');
    $disk->allow;
    ok(wait_until(sub {
        my $r = api($t, POST => 'zones/seen/keys?durable=true',
                    body => "sync2\n");
        return $r->status == 200 && $r->json->{durable};
    }), 'a durable addition succeeds when the disk synchronises');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', 'sync2', 'no'), '10',
       'a durable key is present after kill -9 of all processes');
};


# After a failed synchronisation all records are written again before the next
# attempt, because the system may count pages as clean that are not on disk.

subtest 'the disk refuses to synchronise for some time' => sub {
    add($t, 'seen', [map { "again$_-" . 'x' x 500 } 1 .. 4000]);
    $disk->refuse('EIO', 'sync');

    my $durable = sub {
        return api($t, POST => 'zones/seen/keys?durable=true', body => 'd');
    };
    is($durable->()->status, 503,
       'a durable addition is refused when the disk does not synchronise');

    # each attempt, twice a second at most, reads a segment of at most 16 MiB

    my $helper = $t->helper;
    my $began = time;
    my $before = bytes_read($helper);
    select undef, undef, undef, 2;
    is($durable->()->status, 503,
       'a durable addition is refused two seconds later');
    my $read = bytes_read($helper) - $before;
    cmp_ok($read, '<=', (2 * (time - $began) + 4) * 16 * 1024 * 1024,
           'the helper pauses between its attempts to synchronise');

    $t->kill_all;
    $disk->allow;
    $t->run;
    ok(wait_until(sub { $durable->()->status == 200 }),
       'a durable addition succeeds after a start with a good disk');
    cmp_ok(bytes_read($t->helper), '>', 2_000_000,
           'the new helper writes all records again');
};


# The lost keys of one instance are not in the journal, so the other instance
# cannot read them and answers unknown.

subtest 'the disk refuses while nginx is upgraded' => sub {
    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);

    $disk->refuse('ENOSPC', qw(open write grow rename));

    my @keys = map { "two$_" } 1 .. 50;
    $t->get("/add/ids?k=$_") for @keys;

    my %answers;
    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', @keys);
        $answers{$side{$by[0]}} .= $answers;
        return keys %answers == 2;
    });
    is(join(' ', sort keys %answers), 'new old',
       'the old and the new instance are asked');
    unlike($answers{$_}, qr/0/,
           "no lost key is absent in the $_ instance")
        for sort keys %answers;

    $disk->allow;
    recovered('ids');
    $t->upgrade_finish;
    unlike(ask($t, 'ids', @keys), qr/0/,
           'no lost key is absent after the upgrade');
    is(api($t, POST => 'zones/ids/clear')->status, 200, 'the zone is cleared');
};


subtest 'the disk refuses tasks of the helper' => sub {
    add($t, 'ids', ['task1']);
    my $generation = generation($t, 'ids');

    $disk->refuse('ENOSPC', qw(open write grow));
    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/No space left on device\); free space on its disk, and try again/,
             'a checkpoint is refused while the disk is full');
    is_error(api($t, GET => 'zones/ids/image'), 503, qr/No space left/,
             'a download of the image is refused while the disk is full');
    is_error(upload_image($t, 'ids', 'ids'), 503, qr/No space left/,
             'an upload is refused while the disk is full');
    is(generation($t, 'ids'), $generation,
       'a refused upload does not change the generation');
    is(ask_until_known($t, 'ids', 'id1', 'task1', 'no'), '110',
       'the zone answers after refused tasks');
    $disk->allow;

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written when the disk has room');
    is(api($t, GET => 'zones/ids/image')->status, 200,
       'the image is downloaded when the disk has room');
    is(scalar files("$dir/state/ids/*.tmp"), 0,
       'refused tasks leave no temporary files');
};


# Nothing is served yet, so that nginx can refuse to start.

subtest 'the disk refuses at the start' => sub {
    $t->stop;
    $disk->refuse('EROFS', qw(open write grow rename));
    my $log = $t->run_fails;
    like($log, qr{\[emerg\].*state/},
         'the refused start names the state directory');
    $disk->allow;
    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'task1', 'no'), '110',
       'nginx starts when the disk allows');
};


subtest 'another program removes the segments' => sub {
    $t->stop;
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 1);
    $t->run;
    add($t, 'ids', ['open'], durable => 1);
    unlink files("$dir/state/ids/journal.*");
    is_error(api($t, POST => 'zones/ids/keys?durable=true', body => 'gone'),
             503, qr/synchronised.*No such file|No such file.*synchronised/,
             'a durable addition to a removed segment is refused');
    $t->stop;
};


# A real file system is full, if the test may mount one.

my $mounted;

END { system 'umount', '-l', $mounted if $mounted }

subtest 'a file system is full' => sub {
    mkdir "$dir/small" or die "mkdir: $!";
    my ($exit) = run_command(['mount', '-t', 'tmpfs', '-o',
                              'size=6m,mode=0755', 'tmpfs', "$dir/small"]);
    plan skip_all => 'the test cannot mount a file system' if $exit != 0;

    $mounted = "$dir/small";

    my $small = BloomTest->new;
    $small->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
    configure($small, ['zone=ids file=ids.bloom'], api => 1, add => 1,
              http => "bloom_state_path $dir/small/state;");
    $small->run;

    my (@taken, $refused);
    for my $n (1 .. 500) {
        my @keys = map { "full-$n-$_-" . 'x' x 500 } 1 .. 100;
        my $r = api($small, POST => 'zones/ids/keys',
                    body => join "\n", @keys);
        if ($r->status != 200) {
            $refused = $r;
            last;
        }
        push @taken, $keys[0], $keys[-1];
    }
    is_error($refused // $small->get('/'), 503, qr/No space left/,
             'additions are refused when the file system is full');
    is(ask($small, 'ids', 'id1', @taken, 'no'), '1' x (1 + @taken) . '0',
       'keys that were added before the refusal are present');
    $small->get("/add/ids?k=late$_") for 1 .. 10;
    is(ask($small, 'ids', keys_of('late', 10)), '1' x 10,
       'the keys of bloom_add are present on a full file system');
    is(zone_state($small, 'ids')->{journal}{lost_keys}, 0,
       'none is lost, since the reserve takes them');

    ($exit) = run_command(['mount', '-o', 'remount,size=64m', "$dir/small"]);
    is($exit, 0, 'the file system is enlarged');
    $small->kill_all;
    $small->run;
    is(ask_until_known($small, 'ids', @taken, keys_of('late', 10), 'no'),
       '1' x (@taken + 10) . '0',
       'all keys are present after kill -9 of all processes');
    $small->stop;
    ($exit) = run_command(['umount', $mounted]);
    is($exit, 0, 'no process uses the file system after the stop');
    undef $mounted if $exit == 0;
};


done_testing;
