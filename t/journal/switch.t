#!/usr/bin/perl

# A journal that is switched on and off at a reload: what was added without one
# is in the filter as long as that is in memory.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(alive spawn wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $kept = qr/bloom zone "seen" has a journal from now on: keys that were added before are not in it/;
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


subtest 'switched on' => sub {
    conf('off');
    $t->run;

    unlike(reloaded('on'), qr/\[warn\]/, 'nothing to say of an empty filter');
    reloaded('off');

    add($t, 'seen', ['memory1']);
    $t->get('/add/seen?k=memory2');
    my $generation = generation($t, 'seen');

    like(reloaded('on'), $kept, 'a warning of keys that are not in it');
    is(ask($t, 'seen', qw(memory1 memory2 no)), '110', 'they are there');
    is(generation($t, 'seen'), $generation, 'in the same filter');

    is(add($t, 'seen', ['journal1'], durable => 1)->{durable}, JSON::PP::true,
       'a key that is to be durable');
    is(ask($t, 'seen', qw(memory1 memory2 journal1 no)), '1110', 'is there');
    unlike(reloaded('on'), qr/\[warn\]/, 'another reload');
    is(ask($t, 'seen', qw(memory1 memory2 journal1 no)), '1110', 'keeps all');
};


subtest 'a journal with keys of an earlier time' => sub {
    $t->stop;
    conf('off');
    $t->run;
    is(ask($t, 'seen', qw(memory1 journal1)), '00', 'a start without it');

    add($t, 'seen', ['memory3']);
    my $ones = zone_state($t, 'seen')->{filter}{bits_set};

    my $log = reloaded('on');
    like($log, $kept, 'switched on again');
    like($log, qr/has 1 keys of 1 records of its journal/, 'it is read');
    is(ask($t, 'seen', qw(memory3 journal1 no)), '110', 'both are there');
    cmp_ok(zone_state($t, 'seen')->{filter}{bits_set}, '>', $ones,
           'and its bits are counted');

    $t->stop;
    $t->run;
    is(sure($t, 'seen', qw(journal1 memory3)), '10',
       'a start has what is in the journal');
};


subtest 'a reload that is refused' => sub {
    reloaded('off');
    $t->stop;
    conf('off');
    $t->run;
    add($t, 'seen', ['memory4']);

    conf('on', undef, http => "server { listen unix:$dir/none/socket; }");
    like($t->reload_fails, qr/bind\(\)/, 'for another reason');
    is(ask($t, 'seen', qw(memory4 journal1)), '10', 'nothing has changed');

    reloaded('on');
    is(ask($t, 'seen', qw(memory4 journal1)), '11', 'then it is accepted');
};


subtest 'another capacity at the same time' => sub {
    reloaded('off');
    add($t, 'seen', ['memory5']);

    like(reloaded('on', 'capacity=10k fpr=1e-9'), $lost, 'a warning');
    is(ask($t, 'seen', qw(memory4 memory5 journal1)), '001',
       'the journal has what it has');

    reloaded('off', 'capacity=10k fpr=1e-9');
    add($t, 'seen', ['memory6']);
    like(reloaded('on', ':5m capacity=10k fpr=1e-9'), $lost, 'another size');
    is(ask($t, 'seen', qw(memory6 journal1)), '01', 'the same');
};


# Whichever way a key is added, it must be there from its answer on.

subtest 'while keys are added' => sub {
    reloaded('on', 'capacity=200k fpr=1e-9');

    my @clients = map {
        my $name = "client-$_";
        spawn(sub {
            my ($n, @bad) = (0);

            until (-e "$dir/enough") {
                my $key = "$name-" . $n++;
                my $added = eval {
                    $n % 2 ? $t->get("/add/seen?k=$key")->status == 200
                           : add($t, 'seen', [$key]);
                };
                push @bad, $key
                    if $added && ask($t, 'seen', $key) eq '0';
                $t->write_file("$name.begun", '') if $n == 1;
                $t->write_file("$name.last", $key) if $added;
            }
            $t->write_file("$name.result", join "\n", $n, @bad);
        });
    } 1 .. 2;

    $t->waitforfile("client-$_.begun") for 1 .. 2;

    reloaded($_ % 2 ? 'off' : 'on', 'capacity=200k fpr=1e-9') for 1 .. 12;

    $t->write_file('enough', '');
    wait_until(sub { !grep { alive($_) } @clients })
        or die 'the clients do not end';

    for (1 .. 2) {
        my ($n, @bad) = split /\n/, $t->read_file("client-$_.result");
        is(scalar @bad, 0, "$n keys of client $_ were there at once")
            or diag("not $bad[0]");
        is(ask($t, 'seen', $t->read_file("client-$_.last")), '1', 'and stay');
    }
};


done_testing;
