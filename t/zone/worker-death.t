#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# When workers are killed or crash, the master survives and the workers that
# replace them answer correctly.

use strict;
use warnings;

use BloomTest;
use BloomTest::Clients;
use BloomTest::Process qw(alive);
use BloomTest::Zones;

my $t = BloomTest->new;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');

install_image($t, 'one');
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=1k fpr=0.001'],
          workers => 2);
$t->run;

my $master = $t->master;


subtest 'all workers are killed ten times' => sub {
    for my $round (1 .. 10) {
        my @before = $t->workers;
        $t->kill_worker('KILL', $_) for @before;

        my ($answers, @workers) = ask($t, 'ids', @ids, @others);
        is($answers, "$all$none",
           "the new workers answer correctly in round $round");
        ok(!grep({ my $w = $_; grep { $_ == $w } @before } @workers),
           "no killed worker answers in round $round");
        is(ask($t, 'seen', @ids), $none,
           "keys are absent in an empty zone in round $round");
    }

    ok(alive($master), 'the master survives the deaths of its workers');
};


subtest 'a worker crashes' => sub {

    # the address sanitizer reports a SIGSEGV as an error

    for my $signal ($ENV{TEST_NGINX_SANITIZED} ? () : 'SEGV', 'ABRT') {
        $t->kill_worker($signal);
        is(ask($t, 'ids', @ids, @others), "$all$none",
           "the new worker answers correctly after a SIG$signal");
    }

    ok(alive($master), 'the master survives the crashes');
};


subtest 'a worker is killed between reloads' => sub {
    for my $image (qw(two one two)) {
        install_image($t, $image);
        $t->reload;
        $t->kill_worker;
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all",
           "the new worker answers from image $image, which serves");
    }

    replace_file($t, 'ids.bloom', 'x');
    $t->reload_fails;
    $t->kill_worker;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the new worker answers from the old image when the file is damaged');

    install_image($t, 'two');
};


# A worker dies during lookups.  It can leave no lock behind, since lookups take
# none.

subtest 'workers are killed during lookups' => sub {
    my $clients = BloomTest::Clients->new($t, 2, sub {
        my $answers = eval { ask($t, 'ids', @ids, @others) } // return;
        return $answers eq "$none$all" ? '' : $answers;
    });

    $t->kill_worker for 1 .. 10;

    for ($clients->finish) {
        my ($client, $wrong) = ($_->{client}, $_->{wrong});

        cmp_ok($_->{right}, '>', 0, "client $client is answered");
        is(scalar @$wrong, 0, "client $client gets no wrong answer")
            or diag("for example $wrong->[0]");
    }

    ok(alive($master), 'the master survives the deaths of its workers');
};


subtest 'the master and all workers are killed' => sub {
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'nginx answers correctly after a restart');
};


done_testing;
