#!/usr/bin/perl

# Death of workers: the master goes on, the replacement answers right.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(spawn alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

install('one');
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=1k fpr=0.001'],
          workers => 2);
$t->run;

my $master = $t->master;


subtest 'killed again and again' => sub {
    for my $round (1 .. 10) {
        my @before = $t->workers;
        $t->kill_worker('KILL', $_) for @before;

        my ($answers, @workers) = ask($t, 'ids', @ids, @others);
        is($answers, "$all$none", "round $round: the answers are right");
        ok(!grep({ my $w = $_; grep { $_ == $w } @before } @workers),
           'of new workers');
        is(ask($t, 'seen', @ids), $none, 'and those of an empty zone');
    }

    ok(alive($master), 'the master lives');
};


subtest 'crashed' => sub {

    # the address sanitizer takes a SIGSEGV for an error of its own

    for my $signal ($ENV{TEST_NGINX_SANITIZED} ? () : 'SEGV', 'ABRT') {
        $t->kill_worker($signal);
        is(ask($t, 'ids', @ids, @others), "$all$none",
           "the answers are right after a SIG$signal");
    }

    ok(alive($master), 'the master lives');
};


subtest 'killed between reloads' => sub {
    for my $image (qw(two one two)) {
        install($image);
        $t->reload;
        $t->kill_worker;
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all",
           "the replacement answers from the image that serves");
    }

    $t->write_file('broken.bloom', 'x');
    rename "$dir/broken.bloom", "$dir/ids.bloom" or die "rename: $!";
    $t->reload_fails;
    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'and of the one that is left when the file is damaged');

    install('two');
};


# A worker dies with lookups under way: there is no lock that it could hold.

subtest 'killed under load' => sub {
    my @clients = map {
        my $name = "client-$_";
        spawn(sub {
            my ($good, @bad) = (0);

            until (-e "$dir/enough") {
                my $answers = eval { ask($t, 'ids', @ids, @others) } // next;
                $answers eq "$none$all" ? $good++ : push @bad, $answers;
                $t->write_file("$name.begun", '');
            }
            $t->write_file("$name.result", join "\n", $good, @bad);
        });
    } 1 .. 2;

    $t->waitforfile("client-$_.begun") for 1 .. 2;
    $t->kill_worker for 1 .. 10;
    $t->write_file('enough', '');
    wait_until(sub { !grep { alive($_) } @clients })
        or die 'the clients do not end';

    for (1 .. 2) {
        my ($good, @bad) = split /\n/, $t->read_file("client-$_.result");
        cmp_ok($good, '>', 0, "client $_ was answered");
        is(scalar @bad, 0, 'and never wrong') or diag("for one: $bad[0]");
    }

    ok(alive($master), 'the master lives');
};


subtest 'everything killed' => sub {
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$none$all", 'and started again');
};


done_testing;
