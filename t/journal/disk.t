#!/usr/bin/perl

# A state directory that refuses: additions get 503 and the filter serves on;
# what bloom_add could not write is kept, and written when that can be done
# again.

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
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=1m fpr=1e-9'],
          api => 1, add => 1, workers => 2);
$t->run;

sub post {
    my ($zone, @keys) = @_;

    return api($t, POST => "zones/$zone/keys", body => join "\n", @keys);
}

# Waits until additions work again.

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
        is_error($r, 503, $text, 'additions are refused with the reason');
        is_added($r, 5, 0, 0, undef, 'and none is in')
            if defined $r->json->{received};
        is(ask($t, 'ids', 'id1', "before-$error", 'no'), '110',
           'the filter serves on');
        like(ask($t, 'ids', map { "$error$_" } 1 .. 5), qr/^[01]{5}$/,
             'and may be asked for them');
        is(post('ids', "before-$error")->status, 503,
           'known keys are refused as well')
            if post('ids', "before-$error")->status != 200;

        my $state = zone_state($t, 'ids')->{journal};
        like(join(' ', map { $_ // '' } values %$state), $text,
             'the state has the reason');

        # a directive cannot be refused

        is($t->get("/add/ids?k=kept-$error-$_")->status, 200, 'bloom_add')
            for 1 .. 20;
        is(ask($t, 'ids', map { "kept-$error-$_" } 1 .. 20), '1' x 20,
           'its keys are in all the same');
        cmp_ok(zone_state($t, 'ids')->{journal}{pending_keys}, '>=', 20,
               'the state says that they wait');
        my $in = journal_keys('ids');
        is(scalar(grep { $in->{"kept-$error-$_"} } 1 .. 20), 0,
           'they are not in the journal');

        # while it lasts the zone outlives its processes

        $t->kill_worker('KILL', $_) for $t->workers;
        is(ask($t, 'ids', map { "kept-$error-$_" } 1 .. 20), '1' x 20,
           'they outlive workers');
        $t->kill_helper;

        $disk->allow;
        ok(recovered('ids'), 'later it works again');
        ok(settled($t, 'ids', sub { !$_[0]{journal}{pending_keys} }),
           'nothing waits any more');
        $in = journal_keys('ids');
        is(scalar(grep { $in->{"kept-$error-$_"} } 1 .. 20), 20,
           'all that was kept is in the journal');

        $t->kill_all;
        $t->run;
        is(sure($t, 'ids', 'id1', "before-$error",
                map { "kept-$error-$_" } 1 .. 20), '1' x 22,
           'and there after the death of everything');
        $state = zone_state($t, 'ids')->{journal};
        unlike(join(' ', map { $_ // '' } values %$state), $text,
               'the reason is gone');
    };
}


# A disk with no room takes what lies in a segment that it has, and then no
# more.

subtest 'no room for another segment' => sub {
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

    cmp_ok(scalar @taken, '>', 0, 'some are taken');
    is_error($refused // $t->get('/'), 503, qr/No space left/,
             'then they are refused');
    is(ask($t, 'seen', @taken), '1' x @taken, 'what was taken is in');

    $disk->allow;
    ok(recovered('seen'), 'with room it works again');
    $t->kill_all;
    $t->run;
    is(sure($t, 'seen', @taken), '1' x @taken, 'all that was taken is there');
};


subtest 'synchronising fails' => sub {
    $disk->refuse('EIO', 'sync');
    my $r = api($t, POST => 'zones/seen/keys?durable=true', body => "sync1\n");
    is_error($r, 503, qr/Input\/output/, 'durable is not promised then');
    $disk->allow;
    ok(wait_until(sub {
        my $r = api($t, POST => 'zones/seen/keys?durable=true',
                    body => "sync2\n");
        return $r->status == 200 && $r->json->{durable};
    }), 'until it works again');
    $t->kill_all;
    $t->run;
    is(sure($t, 'seen', 'sync2', 'no'), '10', 'what was promised is there');
};


# The client of a key that is kept has its answer.

subtest 'durable, while keys wait' => sub {
    $disk->refuse('ENOSPC', qw(open write grow rename));
    $t->get('/add/seen?k=waits');
    is(ask($t, 'seen', 'waits'), '1', 'a key is in');

    my $r = api($t, POST => 'zones/seen/keys?durable=true', body => "\n");
    is_error($r, 503, qr/No space left/, 'and not on disk');
    is_added($r, 0, 0, 0, 0, 'as is said');

    $disk->allow;
    ok(wait_until(sub {
        my $r = api($t, POST => 'zones/seen/keys?durable=true', body => "\n");
        return $r->status == 200 && $r->json->{durable};
    }), 'until it is there');
    ok(journal_keys('seen')->{waits}, 'and in the journal');
};


# Where it failed, all is written again before the next time: the system may
# think to be on disk what is not.

subtest 'synchronising fails for some time' => sub {
    add($t, 'seen', [map { "again$_-" . 'x' x 500 } 1 .. 4000]);
    $disk->refuse('EIO', 'sync');

    my $durable = sub {
        return api($t, POST => 'zones/seen/keys?durable=true', body => 'd');
    };
    is($durable->()->status, 503, 'it fails');

    # not more often than twice a second, a segment of 16 MiB at most, however
    # long this takes

    my ($helper) = $t->helpers;
    my $began = time;
    my $before = bytes_read($helper);
    select undef, undef, undef, 2;
    is($durable->()->status, 503, 'and fails on');
    my $read = bytes_read($helper) - $before;
    cmp_ok($read, '<=', (2 * (time - $began) + 4) * 16 * 1024 * 1024,
           'it is not tried again without a pause');

    $t->kill_all;
    $disk->allow;
    $t->run;
    ok(wait_until(sub { $durable->()->status == 200 }),
       'a start with a disk that works');
    cmp_ok(bytes_read($t->helpers), '>', 2_000_000, 'writes it again, too');
};


# Two instances of a zone, and a disk that refuses: what one keeps in its
# memory the other cannot read in the journal, so it cannot tell.

subtest 'while nginx is upgraded' => sub {
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
    is(join(' ', sort keys %answers), 'new old', 'both sides are asked');
    unlike($answers{$_}, qr/0/, "the $_ one does not say absent")
        for sort keys %answers;

    $disk->allow;
    is(sure($t, 'ids', @keys), '1' x 50, 'they are told when the disk allows')
        for 1 .. 10;
    recovered('ids');
    $t->upgrade_finish;
    is(sure($t, 'ids', @keys), '1' x 50, 'and none is lost');
};


subtest 'tasks' => sub {
    add($t, 'ids', ['task1']);
    my $generation = generation($t, 'ids');

    $disk->refuse('ENOSPC', qw(open write grow));
    is_error(api($t, POST => 'zones/ids/checkpoint'), 503, qr/No space left/,
             'a checkpoint');
    is_error(api($t, GET => 'zones/ids/image'), 503, qr/No space left/,
             'an image');
    is_error(api($t, PUT => 'zones/ids/image',
                 body => $t->read_file('ids.bloom')), 503, qr/No space left/,
             'an upload');
    is(generation($t, 'ids'), $generation, 'nothing is changed');
    is(sure($t, 'ids', 'id1', 'task1', 'no'), '110', 'and the zone answers');
    $disk->allow;

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'then it works');
    is(api($t, GET => 'zones/ids/image')->status, 200, 'all');
    is(scalar files("$dir/state/ids/*.tmp"), 0,
       'and nothing is left unfinished');
};


# At start there is nobody who could be served yet.

subtest 'at start' => sub {
    $t->stop;
    $disk->refuse('EROFS', qw(open write grow rename));
    my $log = $t->run_fails;
    like($log, qr{\[emerg\].*state/}, 'a start is refused, and says where');
    $disk->allow;
    $t->run;
    is(sure($t, 'ids', 'id1', 'task1', 'no'), '110', 'then it starts');
};


subtest 'a segment is removed by somebody' => sub {
    $t->stop;
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 1);
    $t->run;
    add($t, 'ids', ['open'], durable => 1);
    unlink files("$dir/state/ids/journal.*");
    is_error(api($t, POST => 'zones/ids/keys?durable=true', body => 'gone'),
             503, qr/synchronised.*No such file|No such file.*synchronised/,
             'nothing is promised to be in it');
    $t->stop;
};


# The same on a file system that is really full, where one may be made.

my $mounted;

END { system 'umount', '-l', $mounted if $mounted }

subtest 'a full file system' => sub {
    mkdir "$dir/small" or die "mkdir: $!";
    my ($exit) = run_command(['mount', '-t', 'tmpfs', '-o',
                              'size=6m,mode=0755', 'tmpfs', "$dir/small"]);
    plan skip_all => 'may not mount a file system' if $exit != 0;

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
    is_error($refused // $small->get('/'), 503, qr/No space left/, 'is full');
    is(ask($small, 'ids', 'id1', @taken, 'no'), '1' x (1 + @taken) . '0',
       'what was taken is in');
    $small->get("/add/ids?k=late$_") for 1 .. 10;
    is(ask($small, 'ids', keys_of('late', 10)), '1' x 10, 'bloom_add adds');

    ($exit) = run_command(['mount', '-o', 'remount,size=64m', "$dir/small"]);
    is($exit, 0, 'it gets room');
    ok(settled($small, 'ids', sub { !$_[0]{journal}{pending_keys} }),
       'what waited is written');
    $small->kill_all;
    $small->run;
    is(sure($small, 'ids', @taken, keys_of('late', 10), 'no'),
       '1' x (@taken + 10) . '0', 'and nothing is lost');
    $small->stop;
    ($exit) = run_command(['umount', $mounted]);
    is($exit, 0, 'nobody uses it any more');
    undef $mounted if $exit == 0;
};


done_testing;
