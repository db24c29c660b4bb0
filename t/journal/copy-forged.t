#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A copy of a zone says up to which record it has the zone's changes.  A copy
# that says what is not so is refused, and no key is lost by it.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(patch_header);
use BloomTest::Zones;

# The fields of a copy in the header of an image.

use constant {
    AT_POSITION => 3536,
    AT_SEQUENCE => 3544,
    AT_TIME => 3552,
    AT_REMOVED => 3560,
    AT_REMOVED_BYTES => 3568,
};

my $t = BloomTest->new;
my @keys = map { "key$_" } 1 .. 100;

my $copy;


# Makes changes, and a copy in the middle of them.

sub changes {
    add($t, 'seen', [@keys[0 .. 49]]);
    api($t, POST => 'zones/seen/remove', body => "gone\n");
    $copy = api($t, GET => 'zones/seen/image')->body;
    add($t, 'seen', [@keys[50 .. 99]]);
}

sub answers {
    my %seen = map { $_ => 1 } split //, ask_until_known($t, 'seen', @keys);

    return join('', sort keys %seen) . ask_until_known($t, 'seen', 'gone');
}

# Returns the copy with other values in some fields.

sub with {
    my (%field) = @_;

    return patch_header($copy, map { $_ => pack('Q<', $field{$_}) }
                               keys %field);
}

# Returns what is forged: its name, a field and its value.

sub forged {
    my %is = map { $_ => unpack('Q<', substr $copy, $_, 8) }
             AT_POSITION, AT_SEQUENCE;

    return (
        ['between two records', AT_POSITION, $is{+AT_POSITION} + 8],
        ['at no multiple of 8', AT_POSITION, $is{+AT_POSITION} + 100],
        ['of an earlier record', AT_SEQUENCE, $is{+AT_SEQUENCE} - 1],
        ['of a later record', AT_SEQUENCE, $is{+AT_SEQUENCE} + 1],
        ['behind all records', AT_SEQUENCE, 2 ** 62],
        ['at position 1', AT_POSITION, 1],
        ['behind the end', AT_POSITION, 2 ** 62],
        ['with fewer removals', AT_REMOVED, 0],
        ['with many removals', AT_REMOVED, 2 ** 40],
        ['with many bytes of removals', AT_REMOVED_BYTES, 2 ** 40],
        ['at another time', AT_TIME, 2 ** 62],
        ['at no time', AT_TIME, 0],
    );
}


configure($t, ['zone=seen capacity=8k fpr=1e-9'], api => 1);
$t->run;
changes();
is(answers(), '10', 'all keys are present, and the removed one is absent');

for (forged()) {
    my ($what, %field) = @$_;

    my $r = api($t, PUT => 'zones/seen/image', body => with(%field));

    like($r->status, qr/^(200|422)$/, "a copy $what is an image, or refused");
    is(answers(), '10', "nothing changes after a copy $what");
}

my $r = api($t, PUT => 'zones/seen/image', body => $copy);
is($r->status, 200, 'the copy itself is loaded');
is(answers(), '10', 'all keys are present');

$t->kill_all;
$t->run;
is(answers(), '10', 'all keys are present after a restart');


# A start knows where its journal ends only when it has read it.

my $state = $t->testdir . '/state';

$t->stop;
remove_tree("$state/seen");
$t->build_image('seen.bloom', ['other'], '-p', '1e-9', '-n', '8k');
configure($t, ['zone=seen file=seen.bloom'], api => 1);
$t->run;
changes();
$t->stop;
system('cp', '-a', "$state/seen", "$state/before") == 0 or die "cp: $?";

for (['as it is'], grep { $_->[1] != AT_POSITION || $_->[2] % 8 == 0 } forged()) {
    my ($what, %field) = @$_;

    remove_tree("$state/seen");
    system('cp', '-a', "$state/before", "$state/seen") == 0 or die "cp: $?";
    $t->write_file('seen.bloom', with(%field));

    for my $life (1, 2) {
        $t->run;
        is(answers(), '10', "a start with a copy $what loses nothing");
        add($t, 'seen', ["life$life"]);
        $t->stop;
    }

    $t->run;
    is(ask_until_known($t, 'seen', 'life1', 'life2'), '11',
       'nor does the next one');
    $t->stop;
}

done_testing();
