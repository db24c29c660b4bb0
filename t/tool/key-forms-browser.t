#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that each spelling of a URL that a browser fetches from a listed host is
# present, in the key forms url and host, and that a URL can be added if a
# browser fetches it.  t/reference/browser.mjs generates the spellings; Node's
# URL parses them as browsers do.

use strict;
use warnings;

use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $here = dirname(__FILE__) . '/../reference';
my $program = dirname($ENV{TEST_BLOOM_TOOL} // "$here/../../build/ngx-bloom")
              . '/reference/expressions';


# Returns the exit status, the output, and the counts of each form.

sub compare {
    my (@options) = @_;

    my ($status, $out, $err) = run_command(['node', "$here/browser.mjs",
                                            @options]);
    my %count;

    for my $line ($out =~ /^((?:url|host): \d+ generated.*)/gm) {
        my ($form) = $line =~ /^(\w+)/;
        my %of = reverse $line
            =~ /(\d+) (generated|to a listed|found|missed|added|wrong)/g;

        $count{$form} = \%of;
    }

    return ($status, $out . $err, \%count);
}


# ---- 100,000 spellings ----

{
    my ($status, $out, $count) = compare('--program', $program,
                                         '--count', 100_000);

    is($status, 0, 'all spellings that lead to a listed host are found')
        or diag($out);
    diag(join "\n", $out =~ /^((?:url|host): \d+ generated.*)/gm);

    is($count->{url}{generated} + $count->{host}{generated}, 100_000,
       '100,000 spellings were generated');

    for my $form (qw(url host)) {
        my $of = $count->{$form};

        is($of->{missed}, 0, "no spelling passes the key form $form");
        is($of->{wrong}, 0,
           "what browsers refuse is what cannot be added ($form)");
        is($of->{found}, $of->{'to a listed'},
           "all that lead to a listed host are found by the key form $form");
        cmp_ok($of->{'to a listed'}, '>', $of->{generated} / 3,
               "a third of the spellings lead to a listed host ($form)");
        cmp_ok($of->{'to a listed'}, '<', $of->{generated} * 9 / 10,
               "some spellings lead to no listed host ($form)");
    }
}


# ---- the comparison notices a miss ----

for (['an expression is another', 's,[.]example,.example.org,g'],
     ['parents are missing', 's, .*,,'],
     ['keys are invalid', 's,.*xn--.*,! has no host,'])
{
    my ($what, $change) = @$_;

    $t->write_file('program', "#!/bin/sh\n'$program' | LC_ALL=C sed '$change'\n");
    chmod 0755, $t->testdir . '/program';

    my ($status, undef, $count) = compare('--count', 2000, '--program',
                                          $t->testdir . '/program');

    is($status, 1, "the comparison fails when $what");
    cmp_ok($count->{$_}{missed}, '>', 10,
           "the comparison counts what is missed ($_, $what)")
        for qw(url host);
}


for (['junk can be added', 's, -$, +,'], ['a URL is refused', 's, [+]$, -,']) {
    my ($what, $change) = @$_;

    $t->write_file('program',
                   "#!/bin/sh\n'$program' | LC_ALL=C sed '$change'\n");
    chmod 0755, $t->testdir . '/program';

    my ($status, undef, $count) = compare('--count', 2000, '--program',
                                          $t->testdir . '/program');

    is($status, 1, "the comparison fails when $what");
    cmp_ok($count->{url}{wrong}, '>', 10, "the comparison counts it ($what)");
}


# ---- the same seed generates the same spellings ----

{
    my $keys = sub {
        my ($name, $seed) = @_;

        my $file = $t->testdir . "/$name";
        $t->write_file("keep-$name", "#!/bin/sh\ntee -a '$file' | '$program'\n");
        chmod 0755, $t->testdir . "/keep-$name";

        compare('--count', 400, '--seed', $seed, '--program',
                $t->testdir . "/keep-$name");

        return $t->read_file($name);
    };

    my $keys_of_7 = $keys->('a', 7);

    cmp_ok(length $keys_of_7, '>', 1000, 'the program is given keys');
    is($keys->('b', 7), $keys_of_7, 'the same seed makes the same spellings');
    isnt($keys->('c', 8), $keys_of_7, 'another seed makes other spellings');
}

done_testing();
