#!/usr/bin/perl

# A worker dies when it has written a record and not published it.  The next
# addition does not fit behind it any more, gets the same number in another
# segment, and is acknowledged: every reader has to find that one.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
    unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

my $dir = $t->testdir;
my $state = "$dir/state/ids";

# of whoever dies: it removes the file
mkdir "$dir/faults" or die "mkdir: $!";
chmod 0777, "$dir/faults";
my $fault = "$dir/faults/next";

# more steps than an addition has
use constant STEPS => 20;

$t->environment(NGX_BLOOM_FAULT_FILE => $fault);
$t->expect_log(qr/exited on signal 9/);

# Keys of a record of some 122 KB: eight of them fit into the first segment.

sub long {
    my ($name) = @_;

    return map { "$name-$_-" . 'x' x 600 } 1 .. 200;
}

sub try_long {
    my ($name) = @_;

    return eval {
        api($t, POST => 'zones/ids/keys?durable=true',
            body => join "\n", long($name));
    };
}

sub inject {
    my ($place, $time) = @_;

    $t->write_file('fault.tmp', "$place $time\n");
    rename "$dir/fault.tmp", $fault or die "rename: $!";
}

sub serves {
    return wait_until(sub {
        my $zone = eval { zone_state($t, 'ids') };
        return $zone && $zone->{state} eq 'serving' && $t->helpers;
    });
}

# Its record stays behind the end.

sub dies_with {
    my ($key) = @_;

    inject('publish', 1);
    my $mark = $t->log_mark;
    eval { $t->get("/add/ids?k=$key") };
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    ok(serves(), 'a worker dies before it publishes a record');
}

# A segment that is nearly full, and such a record in it.

sub begin_with {
    my ($prefix, @main) = @_;

    remove_tree("$dir/state");
    another_image($t);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1,
              main => join "\n", 'env NGX_BLOOM_FAULT_FILE;', @main);
    $t->run;

    for my $n (1 .. 8) {
        my $r = try_long($prefix->($n));
        is($r->status, 200, 'an addition') if $r->status != 200;
    }

    dies_with('unpublished');
}

sub different { return "long$_[0]" }

# The first and the last of each, and another key.

sub all_there {
    my ($name, @long) = @_;

    my @keys = map { (long($_))[0, 199] } @long;

    is(sure($t, 'ids', @keys, 'after', 'no'), '1' x @keys . '10', $name);
}

# What nobody reads again hides nothing: after another image, and a restart.

sub all_found {
    my (@long) = @_;

    is($t->get('/add/ids?k=after')->status, 200, 'another addition');
    all_there('all of them are in what serves', @long);

    my ($exit, $out) = $t->run_tool('journal', '--keys', $state);
    is($exit, 0, 'the journal is whole');
    my %in = map { $_ => 1 } split /\n/, $out;
    is(scalar(grep { !$in{$_} } 'after', map { long($_) } @long), 0,
       'with all of them');

    another_image($t);
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'another image');
    all_there('they are in what is read then', @long);

    $t->kill_all;
    $t->run;
    all_there('and at a start', @long);
    is(zone_state($t, 'ids')->{state}, 'serving', 'which finds nothing wrong');
}


subtest 'the next one goes to another segment' => sub {
    begin_with(\&different);
    is(try_long('next')->status, 200, 'it is acknowledged');
    all_found('long8', 'next');
    $t->stop;
};


subtest 'its writer dies as well' => sub {
    my $deaths = 0;

    for my $step (1 .. STEPS) {
        begin_with(\&different);

        inject('any', $step);
        my $mark = $t->log_mark;
        my $response = try_long('dies');

        # the helper synchronises it, and may be the one that dies

        my $died = $response && $response->complete
                   && $response->status == 200
                   ? wait_until(sub { !-e $fault }, 1) : 1;

        unlink $fault;

        if ($died) {
            $deaths++;
            $t->wait_for_log(qr/exited on signal 9/, $mark);
            ok(serves(), "a death at step $step");
        }

        is(try_long('next')->status, 200, 'the next one is acknowledged');
        all_found('long8', 'next');
        $t->kill_all;

        last if !$died;
    }

    # the end of the segment that is left, and the record, are two writes

    cmp_ok($deaths, '>=', 6, "$deaths deaths, and then it gets through");
};


subtest 'the segment that is left cannot be written' => sub {
    begin_with(\&different);

    my ($segment) = files("$state/journal.*");
    rename $segment, "$dir/away" or die "rename: $!";
    mkdir $segment or die "mkdir: $!";
    is_error(try_long('next'), 503, qr/cannot be written/,
             'the addition is refused');
    rmdir $segment or die "rmdir: $!";
    rename "$dir/away", $segment or die "rename: $!";

    is(try_long('next')->status, 200, 'later it is not');
    all_found('long8', 'next');
    $t->stop;
};


subtest 'another instance follows' => sub {
    begin_with(\&different);

    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);

    is(try_long('next')->status, 200, 'it is acknowledged');

    my %answers;
    wait_until(sub {
        my ($answers, @by) = ask($t, 'ids', (long('next'))[0, 199]);
        $answers{$side{$by[0]}} = $answers if $answers !~ /\?/;
        return keys %answers == 2;
    });
    is_deeply(\%answers, { old => '11', new => '11' }, 'both have it');
    $t->upgrade_finish;
    all_found('long8', 'next');
    $t->stop;
};


subtest 'the segment is compacted' => sub {
    $t->environment(NGX_BLOOM_FAULT_COMPACT => 500_000);
    my $mark = $t->log_mark;
    begin_with(sub { 'same' }, 'env NGX_BLOOM_FAULT_COMPACT;');
    is(try_long('next')->status, 200, 'it is acknowledged');
    like($t->wait_for_log(qr/bytes of the journal became/, $mark),
         qr/\[notice\]/, 'and what is before it compacted');
    all_found('same', 'next');
    $t->stop;
};


done_testing;
