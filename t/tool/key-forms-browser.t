#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that each spelling of a URL that a browser fetches from a listed host, as a
# listed page or below a listed directory is present, in the key forms url and host;
# that a spelling of an allowed page leads there; and that a URL can be added if a
# browser fetches it.  t/reference/browser.mjs generates the spellings; Node's URL
# and Chromium parse them.

use strict;
use warnings;

use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $here = dirname(__FILE__) . '/../reference';
my $program = dirname($ENV{TEST_BLOOM_TOOL} // "$here/../../build/ngx-bloom")
              . '/reference/expressions';


my $tool = $ENV{TEST_BLOOM_TOOL} // "$here/../../build/ngx-bloom";
my @kinds = ('url, hosts', 'url, pages', 'url, directories', 'host, hosts');


# Returns the exit status, the output, and the counts of each kind.

sub compare {
    my (@options) = @_;

    my ($status, $out, $err) = run_command(['node', "$here/browser.mjs",
                                            @options]);
    my %count;

    for my $line ($out =~ /^((?:url|host), \w+: \d+ generated.*)/gm) {
        my ($kind) = $line =~ /^([^:]+)/;
        my %of = reverse $line =~ /(\d+)[ ](generated|to[ ]a[ ]listed|as[ ]listed
                                            |found|missed|added|wrong|allowed
                                            |opened)/gx;

        $count{$kind} = \%of;
    }

    return ($status, $out . $err, \%count);
}


# ---- 100,000 spellings, and as many of them for Chromium as a second allows ----

my $chromium = -d "$here/../../dashboard/node_modules/playwright-core"
               && grep({ -x "/usr/bin/$_" }
                       qw(chromium chromium-browser google-chrome));

for my $parser ('node', 'chromium') {
  SKIP: {
    skip 'Chromium or the packages of dashboard/ are not installed', 1
        if $parser eq 'chromium' && !$chromium;

    my $number = $parser eq 'node' ? 100_000 : 20_000;
    my ($status, $out, $count) = compare('--program', $program,
                                         '--tool', $tool,
                                         '--parser', $parser,
                                         '--count', $number);

    is($status, 0, "all spellings that lead to what is listed are found ($parser)")
        or diag($out);
    diag(join "\n", $out =~ /^((?:url|host), \w+: \d+ generated.*)/gm);

    my $sum = 0;

    $sum += $_->{generated} for values %$count;
    is($sum, $number, "all spellings were generated ($parser)");
    is(join('; ', sort keys %$count), join('; ', sort @kinds),
       "all kinds of spellings were generated ($parser)");

    for my $kind (@kinds) {
        my $of = $count->{$kind};
        my $what = "$kind; $parser";

        is($of->{missed}, 0, "no spelling passes ($what)");
        is($of->{wrong}, 0, "what browsers refuse is what cannot be added ($what)");
        is($of->{opened}, 0, "what is allowed is an allowed page ($what)");
        is($of->{found}, $of->{'to a listed'},
           "all that lead to what is listed are found ($what)");
        cmp_ok($of->{'to a listed'}, '>', $of->{generated} / 3,
               "a third of the spellings lead to what is listed ($what)");
        cmp_ok($of->{'to a listed'}, '<', $of->{generated} * 9 / 10,
               "some spellings lead to nothing that is listed ($what)");
    }

    for my $kind ('url, pages', 'url, directories') {
        my $of = $count->{$kind};

        cmp_ok($of->{'as listed'}, '>', $of->{generated} / 4,
               "a browser fetches many pages exactly as listed ($kind; $parser)");
    }

    cmp_ok($count->{'url, pages'}{allowed}, '>', $number / 100,
           "many spellings are those of an allowed page ($parser)");
  }
}


# ---- the comparison notices a miss ----

# Writes a program that changes the output of another one; returns its name.

sub changing {
    my ($other, $change) = @_;

    $t->write_file('program',
                   "#!/bin/sh\n'$other' \"\$@\" | LC_ALL=C sed '$change'\n");
    chmod 0755, $t->testdir . '/program';

    return $t->testdir . '/program';
}

for (['missed', 'an expression is another', 's,[.]example,.example.org,g', @kinds],
     ['missed', 'parents are missing', 's, .* \(.* .*\), \1,', @kinds],
     ['missed', 'keys are invalid',
      's,^[^ ]*[.]\(evil\|hosting\|odd\|xn--[a-z0-9-]*\)[.]example.*,! has no host,',
      @kinds],
     ['missed', 'a path is another', '/^www/s,/[^/ ],/x,g', 'url, pages'],
     ['wrong', 'junk can be added', 's, -$, +,', 'url, hosts'],
     ['wrong', 'a URL is refused', '/^www/s, [+]$, -,', 'url, pages'],
     ['opened', 'a key is that of an allowed page',
      's,^hosting[.]example/mallory/[^ ]\+ .*,hosting.example/good 0 -,',
      'url, directories'])
{
    my ($counted, $what, $change, @for) = @$_;
    my ($status, $out, $count)
        = compare('--count', 4000, '--program', changing($program, $change));

    is($status, 1, "the comparison fails when $what");
    cmp_ok($count->{$_}{$counted} // 0, '>', 10,
           "the comparison counts it ($_, $what)") or diag($out)
        for @for;
}

{
    my $change = 's,"answer":"present","answer":"absent",';
    my ($status, undef, $count)
        = compare('--count', 4000, '--program', $program,
                  '--tool', changing($tool, $change));

    is($status, 1, 'the comparison fails when the image lacks the entries');
    cmp_ok($count->{'url, directories'}{missed}, '>', 100,
           'the comparison counts what the tool does not find');
}


done_testing();
