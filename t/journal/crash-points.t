#!/usr/bin/perl

# A process that dies at any write, synchronisation, rename, removal, switch or
# publication: whatever was acknowledged before is there after it, and nginx
# goes on.  Each operation is done again and again, and dies a step later each
# time, until it gets through.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;

plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
    unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

my $dir = $t->testdir;

# of whoever dies: it removes the file
mkdir "$dir/faults" or die "mkdir: $!";
chmod 0777, "$dir/faults";
my $fault = "$dir/faults/next";

# more steps than any operation has: then it would not end
use constant STEPS => 60;

$ENV{NGX_BLOOM_FAULT_FILE} = $fault;

$t->build_image("image$_.bloom", [map { "id$_" } 1 .. 10], '-p', '1e-9',
                '-n', '20k', '--seed', $_)
    for 1 .. 2;

sub install {
    my ($number) = @_;

    $t->write_file('new.bloom', $t->read_file("image$number.bloom"));
    rename "$dir/new.bloom", "$dir/ids.bloom" or die "rename: $!";
}

sub write_conf {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom", 'zone=seen capacity=20k fpr=1e-9'],
              api => 1, add => 1, main => 'env NGX_BLOOM_FAULT_FILE;');
}

install(1);
write_conf('');
$t->run;

my %acknowledged = (ids => [map { "id$_" } 1 .. 10], seen => []);
my $next = 0;


# Adds keys; they count when nginx says so.

sub try_add {
    my ($zone, %option) = @_;

    my @keys = map { 'key' . $next++ } 1 .. 5;
    my $response = eval {
        api($t, POST => "zones/$zone/keys" . ($option{durable} ? '?durable=1'
                                                               : ''),
            body => join "\n", @keys);
    };

    push @{ $acknowledged{$zone} }, @keys
        if $response && $response->complete && $response->status == 200;
}

sub try_bloom_add {
    my $key = 'key' . $next++;
    my $response = eval { $t->get("/add/ids?k=$key") };

    push @{ $acknowledged{ids} }, $key
        if $response && $response->complete && $response->status == 200;
}

sub all_there {
    my ($name) = @_;

    my @lost;

    for my $zone (qw(ids seen)) {
        my @keys = @{ $acknowledged{$zone} };
        my $response = api($t, POST => "zones/$zone/test",
                           body => join "\n", @keys);
        my @results = @{ $response->json->{answers} };

        push @lost, map { $keys[$_] } grep { $results[$_] =~ /absent/ }
                                      0 .. $#keys;
        push @lost, "answers for $zone" if @results != @keys;
    }

    is("@lost", '', $name);
}


sub inject {
    my ($step) = @_;

    $t->write_file('fault.tmp', "any $step\n");
    rename "$dir/fault.tmp", $fault or die "rename: $!";
}


# Operation by operation.  It dies in some process; nginx replaces that.

sub dies_at_each_step {
    my ($name, $operation) = @_;

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        inject($step);

        my $mark = $t->log_mark;
        $operation->();

        # what an operation sets off may die later than it is answered

        my $died = wait_until(sub { !-e $fault }, 1);

        if (!$died) {
            unlink $fault;
            ok($deaths > 0, "$name: died at $deaths steps and got through");
            all_there("$name: nothing is lost");
            return;
        }

        $deaths++;
        $t->wait_for_log(qr/exited on signal 9/, $mark);
        wait_until(sub {
            my $state = eval { zone_state($t, 'ids') };
            return $state && $state->{state} eq 'serving' && $t->helpers;
        }) or diag('nginx does not serve: ' . $t->log_since($mark));

        all_there("$name: a death at step $step");
    }

    fail("$name: gets through");
}

$t->expect_log(qr/exited on signal 9/);

my $image = 0;

dies_at_each_step('additions' => sub { try_add('seen') });
dies_at_each_step('durable additions' => sub { try_add('ids', durable => 1) });
dies_at_each_step('bloom_add' => \&try_bloom_add);

dies_at_each_step('a reload' => sub {
    install(1 + $image++ % 2);
    eval { api($t, POST => 'zones/ids/reload') };
});

dies_at_each_step('an upload' => sub {
    eval { api($t, PUT => 'zones/ids/image',
               body => $t->read_file('image' . (1 + $image++ % 2)
                                     . '.bloom')) };
});

dies_at_each_step('a checkpoint' => sub {
    eval { api($t, POST => 'zones/ids/checkpoint') };
});

dies_at_each_step('a snapshot' => sub {
    eval { api($t, GET => 'zones/ids/image') };
});


# The same after a restart: what is on disk is what the processes had.

$t->kill_all;
$t->run;
all_there('after all of them are killed and started again');


# The start itself: the master dies, and the next one gets through.

for my $what ('a start', 'a start with a torn tail') {
    my $deaths = 0;

    for my $step (1 .. STEPS) {
        try_add('ids');
        $t->kill_all;

        if ($what =~ /torn/) {
            my ($segment) = files("$dir/state/ids/journal.*");
            my $bytes = $t->read_file($segment =~ s{^\Q$dir/}{}r);
            my $used = length($bytes =~ s/\0+\z//r);
            $used += 8 - $used % 8;
            substr($bytes, $used, 40) = 'torn' x 10;
            $t->write_file($segment =~ s{^\Q$dir/}{}r, $bytes);
        }

        inject($step);

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        all_there("$what: a death at step $step");
    }

    # the last one lives, outside of what the harness knows

    unlink $fault;
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");

    $t->run;
    all_there("$what: $deaths deaths, and then it gets through");
}

done_testing;
