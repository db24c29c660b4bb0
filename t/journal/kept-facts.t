#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A start keeps a few facts of the control page, each with a check.  If a
# process has died between a fact and its check, or one of both has changed,
# nothing that was promised is lost, and no loss is made up.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Control;
use BloomTest::Expiry;
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';
my $control = "$state/control";
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);

# Starts nginx with a zone that has durable keys, and ends it.

sub begin {
    my ($zone) = @_;

    system('rm', '-rf', $t->testdir . '/state');
    configure($t, ["zone=ids $zone", 'zone=tick capacity=8k fpr=0.001'],
              api => 1, add => 1);
    $t->run;
    add($t, 'ids', [$_], durable => 1) for qw(first last);
    $t->kill_all;
}

# Starts nginx.  Returns the zone's state and its answers about both keys and
# one that nobody added.

sub starts {
    $t->run;
    my $answers = ask($t, 'ids', qw(first last never));
    my $state = zone_state($t, 'ids')->{state};
    $t->kill_all;

    return "$state $answers";
}

# Cuts the last record from the first segment.

sub cut {
    my ($segment) = files("$state/journal.*");
    my $data = $t->read_file("state/ids/journal.0000000000000000");
    my $used = length $data =~ s/\0+\z//r;

    substr $data, $used - 40, 40, "\0" x 40;
    open my $fh, '+<:raw', $segment or die "$segment: $!";
    print $fh $data;
    close $fh or die "$segment: $!";
}


subtest 'one of both values of the synchronised position is wrong' => sub {
    for my $name (qw(synced synced_check)) {
        for my $bit (7, 40) {
            begin('capacity=1k fpr=1e-9');
            my $synced = control($control)->{synced};
            set_control($control, synced => $synced, synced_check => ~$synced,
                        $name => control($control)->{$name} ^ 1 << $bit);
            is(starts(), 'serving 110',
               "nothing is lost when bit $bit of $name is changed");
        }
    }

    begin('capacity=1k fpr=1e-9');
    my $synced = control($control)->{synced};
    cut();
    set_control($control, synced => $synced ^ 1 << 40,
                synced_check => ~$synced);
    is(starts(), 'damaged 1??',
       'the lost end of the journal is noticed although a bit is changed');
    $t->expect_log(qr/\[alert\].*has lost added keys/);
};


# What is before a checkpoint was on disk, whatever the page says.

subtest 'the synchronised position is older than a checkpoint' => sub {
    begin('capacity=1k fpr=1e-9');
    $t->run;

    for my $key ('behind', 'lost') {
        is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
           'a checkpoint is written');
        add($t, 'ids', [$key], durable => 1);
    }

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'and one that has all keys');
    $t->kill_all;
    flip((files("$state/checkpoint.*"))[-1], 6000);
    cut();
    set_control($control, synced => 0);
    is(starts(), 'damaged 11?', 'the lost end of the journal is noticed');
};


# A clear sets the time of the last loss to 0, and dies before its check.

subtest 'a process has died between the time of a loss and its check' => sub {
    $t->build_image('ids.bloom', ['id1'], '--as-of', rfc3339(time));
    begin('file=ids.bloom');

    my $lost = (time - 4 * 3600) * 1000;

    set_control($control, lost => 0, lost_check => ~$lost);
    is(starts(), 'serving 110', 'no later loss is made up');
    is(control($control)->{lost}, $lost, 'the loss is not forgotten');

    set_control($control, lost => $lost, lost_check => ~0);
    is(starts(), 'serving 110', 'nor is it when it has no check yet');
    is(control($control)->{lost}, $lost, 'and it stays');

    set_control($control, lost => $lost ^ 1 << 50, lost_check => ~$lost);
    like(starts(), qr/^damaged/, 'a loss at no possible time counts as new');
};


# Keys may live longer, but not for ever.

for (['the boot', clock => 3], ['the time', clock_time => 40],
     ['a saved time', clock_saved => 41])
{
    my ($what, $name, $bit) = @$_;

    subtest "a bit of $what of the clock of expiry is changed" => sub {
        my $hour = 3600;

        begin('capacity=1k fpr=1e-9 expire=8h');

        my $damaged = control($control)->{$name} ^ 1 << $bit;

        set_control($control, $name => $damaged);
        $clock->reboot if $name eq 'clock_saved';
        $t->run;
        is(zone_state($t, 'ids')->{state}, 'serving', 'no key is lost');

        my $ledger = $time->ledger('ids', life => 8 * $hour, slices => 8);

        $ledger->add(['later']);
        is(ask($t, 'ids', qw(first later never)), '110',
           'the keys are present');
        $time->passes(7.9 * $hour);
        $ledger->check('at the end of its life');
        $time->passes(2 * $hour);
        $ledger->check('after its life');
        is(ask($t, 'ids', qw(first)), '0', 'an earlier key has expired');
        $t->kill_all;
        $t->run;
        is(ask_until_known($t, 'ids', qw(first later)), '00',
           'a start has neither of them');
        $t->stop;
    };
}


done_testing;
