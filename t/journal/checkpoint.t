#!/usr/bin/perl

# Checkpoints: they shorten the replay and are nothing else.  No segment is
# removed for one, and none is used for another image than its own.

use strict;
use warnings;

use IPC::Open2;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my @ids = keys_of('id', 10);

$t->build_image('one.bloom', \@ids, '-p', '1e-9', '-n', '500k');
$t->build_image('two.bloom', [@ids, 'two'], '-p', '1e-9', '-n', '400k');

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

sub checkpoint {
    my ($zone) = @_;

    is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
       "a checkpoint of $zone");
}

sub segments {
    my ($zone) = @_;

    return map { m{/(journal\.[^/]*)$} } sort glob "$dir/state/$zone/journal.*";
}

# All of `$prefix`1 to `$prefix`count, asked for at once

sub all_in {
    my ($zone, $prefix, $count, $name) = @_;

    my ($present, $unknown);
    wait_until(sub {
        my $r = api($t, POST => "zones/$zone/test",
                    body => join "\n", keys_of($prefix, $count));
        my ($results) = $r->body =~ /"answers":\[(.*?)\]/;
        $present = () = $results =~ /"present"/g;
        $unknown = () = $results =~ /"unknown"/g;
        return !$unknown;
    });
    is($present, $count, $name);
}


install('one');
configure($t, ['zone=ids file=ids.bloom',
               'zone=seen capacity=500k fpr=1e-9'], api => 1, workers => 2);
$t->run;


subtest 'shortens the replay' => sub {
    my $count = 100_000;
    my $body = join '', map { "k$_\n" } 1 .. $count;

    for my $zone ('ids', 'seen') {
        api($t, POST => "zones/$zone/keys?durable=true", body => $body);
        my @before = segments($zone);
        my $bytes = zone_state($t, $zone)->{journal}{replay_bytes};

        cmp_ok($bytes, '>', 6 * $count, "$zone: there is much to replay");
        checkpoint($zone);
        cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 1000,
               'and then nothing');
        my %after = map { $_ => 1 } segments($zone);
        is(scalar(grep { !$after{$_} } @before), 0,
           'no segment is removed for it');
        add($t, $zone, ['behind']);
    }

    # what a start reads of the journal tells

    for my $how ('kill_all', 'stop') {
        $t->$how;
        $t->run;
        for my $zone ('ids', 'seen') {
            all_in($zone, 'k', $count, "$zone: all are there after $how");
            is(sure($t, $zone, 'behind', 'no'), '10', 'with what came later');
            cmp_ok(zone_state($t, $zone)->{journal}{replay_bytes}, '<', 100_000,
                   'most of it not from the journal');
        }
    }
};


subtest 'is not used for another image' => sub {
    checkpoint('ids');
    $t->stop;
    install('two');
    $t->run;
    all_in('ids', 'k', 100_000, 'what was added is in the other one');
    is(sure($t, 'ids', 'two', 'behind', 'no'), '110', 'which serves');

    # a checkpoint with something in it that no other place has would show

    checkpoint('ids');
    install('one');
    $t->reload;
    ok(wait_until(sub { sure($t, 'ids', 'two') eq '0' }),
       'the first one again, without what was in the second');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', 'two', 'behind', 'id1'), '011', 'at start as well');
    all_in('ids', 'k', 100_000, 'with all that was added');
};


subtest 'one that is damaged' => sub {
    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;

    for my $zone ('ids', 'seen') {
        my @files = glob "$dir/state/$zone/checkpoint.*.bloom";
        ok(scalar @files, "$zone has one");
        flip($_, -1) for @files;
    }

    my $mark = $t->log_mark;
    $t->run;
    for my $zone ('ids', 'seen') {
        all_in($zone, 'k', 100_000, "$zone: all come from the journal then");
        is(sure($t, $zone, 'behind', 'no'), '10', 'all of it');
    }
    like($t->log_since($mark), qr/checkpoint/, 'the log says so');

    checkpoint($_) for 'ids', 'seen';
    $t->kill_all;
    for my $file (map { glob "$dir/state/$_/checkpoint.*.bloom" }
                      'ids', 'seen')
    {
        truncate $file, (-s $file) - 1;
    }
    $t->run;
    all_in($_, 'k', 100_000, "$_: truncated") for 'ids', 'seen';
    $t->stop;
};


subtest 'one of a geometry that is gone' => sub {
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=800k fpr=1e-6'],
              api => 1, workers => 2);
    $t->run;
    all_in('seen', 'k', 100_000, 'all are in the zone of another capacity');
    is(sure($t, 'seen', 'behind', 'no'), '10', 'and answer');
};


# Without anybody's asking, once the replay would be long.

subtest 'by itself' => sub {
    my $sent = 0;
    my $position = sub {
        return join ' ', map { /\.([0-9a-f]{16})\.bloom$/ }
                             files("$dir/state/seen/checkpoint.*");
    };
    my $before = $position->();

    wait_until(sub {
        my $body = join '', map { "itself-$sent-$_-" . 'x' x 200 . "\n" }
                                1 .. 20_000;
        api($t, POST => 'zones/seen/keys', body => $body)->status == 200
            or return 'refused';
        $sent++;
        return $position->() ne $before || $sent >= 80;
    }, 120);

    ok(wait_until(sub { $position->() gt $before }),
       "there is another one after some time ($sent times 20,000 keys)");
};


# Another process has the lock under which journals are synchronised, as one
# does whose disk is slow: docs/state.md says where it is.

subtest 'while another process synchronises' => sub {
    my $code = $t->write_file('keeper.c', <<'C');
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    char              c;
    char             *page;
    pthread_mutex_t  *keeper;

    page = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED,
                open(argv[1], O_RDWR), 0);
    if (page == MAP_FAILED) {
        return 1;
    }

    keeper = (pthread_mutex_t *) (page + 56);

    if (pthread_mutex_lock(keeper) != 0 || write(1, "x", 1) != 1) {
        return 1;
    }

    (void) !read(0, &c, 1);

    return pthread_mutex_unlock(keeper);
}
C

    my ($exit, undef, $err) = run_command(
        [$ENV{CC} // 'cc', '-O1', '-pthread', '-o', "$dir/keeper", $code]);
    is($exit, 0, 'compiled') or die $err;

    my $other = open2(my $out, my $in, "$dir/keeper", "$state/control");
    read $out, my $locked, 1;

    add($t, 'ids', ['unsynchronised']);

    is_error(api($t, POST => 'zones/ids/checkpoint'), 503,
             qr/is being synchronised by another process[^(]*$/,
             'no checkpoint of what is not on disk');

    close $in;
    waitpid $other, 0;
    is($?, 0, 'then it is done');
    checkpoint('ids');
};


done_testing;
