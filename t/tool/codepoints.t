#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that hosts with characters that an older libidn2 does not know are read
# as today's browsers read them, and that the table of these characters is what
# its generator prints.  "make codepoints" compares all code points.

use strict;
use warnings;
use utf8;

use Encode qw(encode_utf8);
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


# ---- with the tool: what is ignored, and what is mapped ----

my @ignored = map { chr } 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180e,
                          0x2061 .. 0x2063, 0x206a .. 0x206f, 0x3164, 0xffa0,
                          0x1d173 .. 0x1d17a;
my @outlined = map { chr(0x1ccd6 + ord($_) - ord('a')) } 'a' .. 'z';

# U+1E030 to U+1E06D, and the letters that UTS #46 makes of them

my $superscript = join '', map { chr } 0x1e030 .. 0x1e06d;
my $cyrillic = 'абвгдежзиклмопрстуфхцчшыэюꚉәіјө'
               . 'үӏабвгдежзиклопсуфхцчшъыґіѕџҫꙑұ';

is(length $superscript, length $cyrillic, 'each letter has its counterpart');

$t->build_image('hosts.bloom',
                ['evil.example', map { encode_utf8("$_$_.example") }
                                     split //, $cyrillic], '--form', 'host');
$t->build_image('urls.bloom',
                ['evil.example', map { encode_utf8("$_$_.example") }
                                     split //, $cyrillic], '--form', 'url');

sub answers {
    my ($image, @keys) = @_;

    my ($status, $out, $err) = run_command(
        [$tool, 'test', $t->testdir . "/$image", map { encode_utf8($_) } @keys]);

    return join "\n", map { /^(\w+) / } split /\n/, $out;
}

sub escaped { return join '', map { sprintf '%%%02X', $_ }
                              unpack 'C*', encode_utf8($_[0]) }

sub all_present {
    my ($what, @hosts) = @_;

    my $expected = join "\n", ('present') x @hosts;

    is(answers('hosts.bloom', @hosts), $expected, "$what, in the form host");
    is(answers('urls.bloom', map { "https://$_/" } @hosts), $expected,
       "$what, in the form url");
    is(answers('urls.bloom', map { 'https://' . escaped($_) . '/' } @hosts),
       $expected, "$what, escaped, in the form url");
}

all_present('what browsers ignore', map { "ev${_}il.example" } @ignored);
all_present('outlined letters',
            join('', @outlined[4, 21, 8, 11]) . '.example',
            "$outlined[4]vil.example", "EV$outlined[8]L.example");
all_present('small Cyrillic letters',
            map { substr($superscript, $_, 1) . uc(substr $cyrillic, $_, 1)
                  . '.example' } 0 .. length($cyrillic) - 1);


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
