#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A reload switches the journal of a zone on or off.  Keys that were added
# without a journal are present as long as the filter stays in memory.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clients;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $earlier = qr/bloom zone "seen" has a journal from now on: keys that were added before are not in it/;
my $lost = qr/bloom zone "seen" starts again from its journal: keys .* are lost/;


sub conf {
    my ($journal, $kind, %option) = @_;

    $kind //= 'capacity=20k fpr=1e-9';
    $kind = ":4m $kind" unless $kind =~ /^:/;
    configure($t, ["zone=seen$kind journal=$journal"], api => 1, add => 1,
              workers => 2, %option);
}

sub reloaded {
    my $mark = $t->log_mark;

    conf(@_);
    $t->reload;

    return $t->log_since($mark);
}


subtest 'the journal is switched on' => sub {
    conf('off');
    $t->run;

    unlike(reloaded('on'), qr/\[warn\]/,
           'switching on with an empty filter gives no warning');
    reloaded('off');

    add($t, 'seen', ['memory1']);
    $t->get('/add/seen?k=memory2');
    my $generation = generation($t, 'seen');

    like(reloaded('on'), $earlier,
         'a warning says that earlier keys are not in the journal');
    is(ask($t, 'seen', qw(memory1 memory2 no)), '110',
       'keys added without a journal are present when it is switched on');
    is(generation($t, 'seen'), $generation,
       'switching on does not change the generation');

    is(add($t, 'seen', ['journal1'], durable => 1)->{durable}, JSON::PP::true,
       'a key is added durably to the new journal');
    is(ask($t, 'seen', qw(memory1 memory2 journal1 no)), '1110',
       'the durable key and the earlier keys are present');
    unlike(reloaded('on'), qr/\[warn\]/, 'another reload gives no warning');
    is(ask($t, 'seen', qw(memory1 memory2 journal1 no)), '1110',
       'all keys are present after another reload');
};


subtest 'the journal has keys of an earlier time' => sub {
    $t->stop;
    conf('off');
    $t->run;
    is(ask($t, 'seen', qw(memory1 journal1)), '00',
       'no key is present after a start without the journal');

    add($t, 'seen', ['memory3']);
    my $bits = zone_state($t, 'seen')->{filter}{bits_set};

    my $log = reloaded('on');
    like($log, $earlier,
         'a warning says that later keys are not in the old journal');
    is(ask_until_known($t, 'seen', qw(memory3 journal1 no)), '110',
       'the key of the old journal and the later key are present');
    cmp_ok(zone_state($t, 'seen')->{filter}{bits_set}, '>', $bits,
           'the bits of the key from the journal are counted');

    $t->stop;
    $t->run;
    is(ask_until_known($t, 'seen', qw(journal1 memory3)), '10',
       'only the key of the journal is present after a start');
};


subtest 'a reload that switches the journal on is refused' => sub {
    reloaded('off');
    $t->stop;
    conf('off');
    $t->run;
    add($t, 'seen', ['memory4']);

    conf('on', undef, http => "server { listen unix:$dir/none/socket; }");
    like($t->reload_fails, qr/bind\(\)/,
         'the reload is refused for a socket that cannot be opened');
    is(ask($t, 'seen', qw(memory4 journal1)), '10',
       'a refused reload does not read the journal');

    reloaded('on');
    is(ask($t, 'seen', qw(memory4 journal1)), '11',
       'an accepted reload reads the journal');
};


subtest 'the journal is switched on with another capacity' => sub {
    reloaded('off');
    add($t, 'seen', ['memory5']);

    like(reloaded('on', 'capacity=10k fpr=1e-9'), $lost,
         'a warning says that another capacity loses keys');
    is(ask($t, 'seen', qw(memory4 memory5 journal1)), '001',
       'only the key of the journal is present with another capacity');

    reloaded('off', 'capacity=10k fpr=1e-9');
    add($t, 'seen', ['memory6']);
    like(reloaded('on', ':5m capacity=10k fpr=1e-9'), $lost,
         'a warning says that another size loses keys');
    is(ask($t, 'seen', qw(memory6 journal1)), '01',
       'only the key of the journal is present with another size');
};


# A key must be present as soon as its addition is acknowledged.

subtest 'the journal is switched while keys are added' => sub {
    reloaded('on', 'capacity=200k fpr=1e-9');

    my $clients = BloomTest::Clients->new($t, 2, sub {
        my ($client, $round) = @_;

        my $key = "client-$client-$round";
        my $added = eval {
            $round % 2 ? $t->get("/add/seen?k=$key")->status == 200
                       : add($t, 'seen', [$key]);
        } or return;

        $t->write_file("client-$client.last", $key);

        return ask($t, 'seen', $key) eq '0' ? $key : '';
    });

    reloaded($_ % 2 ? 'off' : 'on', 'capacity=200k fpr=1e-9') for 1 .. 12;

    for ($clients->finish) {
        my ($client, $wrong) = ($_->{client}, $_->{wrong});

        is(scalar @$wrong, 0,
           "client $client finds no acknowledged key absent, of $_->{right}")
            or diag("for example $wrong->[0]");
        is(ask($t, 'seen', $t->read_file("client-$client.last")), '1',
           "the last key of client $client is present after the reloads");
    }
};


done_testing;
