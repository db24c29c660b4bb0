#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that hosts with characters that an older libidn2 does not know are read
# as today's browsers read them, and that the table of these characters is what
# its generator prints.  t/reference/expressions is the core that the tool has.
# "make codepoints" compares all code points.

use strict;
use warnings;

use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $root = dirname(__FILE__) . '/../..';
my $tool = $ENV{TEST_BLOOM_TOOL} // "$root/build/ngx-bloom";
my $program = dirname($tool) . '/reference/expressions';

-d "$root/dashboard/node_modules/tr46"
    or plan(skip_all => 'tr46 is not installed; run: make dashboard-packages');


# Returns the exit status, the output, and how many names were missed.

sub compare {
    my ($status, $out, $err) = run_command(
        ['node', "$root/t/reference/codepoints.mjs", '--every', 64, @_]);
    my ($missed) = $out =~ /, (\d+) missed$/m;

    return ($status, $out . $err, $missed);
}


# ---- one code point of 64, and those in the table ----

{
    my ($status, $out, $missed) = compare('--program', $program);

    is($status, 0, 'all names that lead to a host are looked up by it')
        or diag($out);
    is($missed, 0, 'no name is missed');

    my ($points, $taken) = $out
        =~ /^(\d+) code points in \d+ names: (\d+) taken by tr46/m;

    cmp_ok($points, '>', 17_000, 'thousands of code points were compared');
    cmp_ok($taken, '>', 30_000, 'tens of thousands of names lead to a host');

    if (-e '/usr/bin/chromium') {
        like($out, qr/, \d{5,} by Chromium \d/, 'Chromium was asked, too');
    }
}


# ---- the comparison notices a miss ----

$t->write_file('program', "#!/bin/sh\n'$program' | sed 's,[.]example,.exampel,g'\n");
chmod 0755, $t->testdir . '/program';

{
    my ($status, undef, $missed)
        = compare('--no-browser', '--program', $t->testdir . '/program');

    is($status, 1, 'the comparison fails if a name is looked up by another');
    cmp_ok($missed, '>', 20, 'the comparison counts the names that are missed');
}


# ---- the table is what its generator prints ----

SKIP: {
    my (undef, $unicode) = run_command(['node', '-p',
                                        'process.versions.unicode']);

    $unicode >= 17 or skip('Node has an older Unicode', 1);

    my ($status, $out, $err)
        = run_command(['node', "$root/scripts/idn-table.mjs"]);

    is($out . $err, do {
           local (@ARGV, $/) = "$root/src/core/bloom_idn_table.c";
           <>;
       },
       'scripts/idn-table.mjs prints src/core/bloom_idn_table.c');
}

done_testing();
