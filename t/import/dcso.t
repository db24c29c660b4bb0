#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import of plain and gzip filters that DCSO's own bloom makes
# (Debian's golang-github-dcso-bloom-cli), and their export.

use strict;
use warnings;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;


sub bloom {
    my ($keys, @arguments) = @_;

    my ($exit, $out, $err) = run_command(
        ['bloom', @arguments], limit => 120,
        stdin => join('', map { "$_\n" } @$keys));

    is($exit, 0, shown($t, 'bloom', @arguments) . ' succeeds')
        or diag $err;

    return $out;
}

# Returns what bloom answers to each key, as "0110...".  It prints the keys that
# are present.

sub bloom_answers {
    my ($file, $keys, @gzip) = @_;

    my %has = map { $_ => 1 } split /\n/, bloom($keys, @gzip, 'check', $file);

    return join '', map { $has{$_} ? 1 : 0 } @$keys;
}


for my $size ([5, 0.1], [1000, 0.01], [1000, 1e-6], [20000, 0.0005],
              [70000, 0.3])
{
    for my $gzip (0, 1) {

        my ($n, $p) = @$size;
        my $what = "the filter of $n keys at $p"
                   . ($gzip ? ' in gzip' : '');
        my @gzip = $gzip ? '--gzip' : ();
        my @ask = (@{ members($n) }, @{ strangers($n + 100) });

        unlink "$dir/dcso";
        bloom([], @gzip, 'create', '-p', $p, '-n', $n, "$dir/dcso");
        bloom(members($n), @gzip, 'insert', "$dir/dcso");

        run_command(['sh', '-c', 'gzip -dc < "$0" > "$1"', "$dir/dcso",
                     "$dir/plain"]) if $gzip;

        my ($out) = import_image($t, "$dir/image", '--from', 'dcso',
                                 "$dir/dcso");
        my ($claimed) = $out =~ /the source says (\d+)/;
        is($claimed, unpack('x40 Q<', $t->read_file($gzip ? 'plain' : 'dcso')),
           "the import states the number of keys of $what");

        my $theirs = bloom_answers("$dir/dcso", \@ask, @gzip);

        like($theirs, qr/\A1{$n}/, "bloom has the members of $what")
            if $n < 32000;
        same_answers(answers($t, "$dir/image", \@ask), $theirs,
                     "the image of $what");

        export_image($t, 'dcso', "$dir/back", "$dir/image");
        same_file("$dir/back", $gzip ? "$dir/plain" : "$dir/dcso",
                  "the export of $what equals its source");
    }
}

# Data after the filter is exported again.

my ($in, $not) = (members(300), strangers(3000));

unlink "$dir/data";
bloom([], 'create', '-p', 0.01, '-n', 600, "$dir/data");
bloom($in, 'insert', "$dir/data");
bloom(['{"about": "what was added to it"}'], 'set-data', "$dir/data");
like($t->read_file('data'), qr/about/, 'bloom writes data after the filter');

import_image($t, "$dir/data.bloom", '--from', 'dcso', "$dir/data");
$t->run_tool('export', '--to', 'dcso', '-o', "$dir/data.back",
             "$dir/data.bloom");
same_file("$dir/data.back", "$dir/data",
          'the export of a filter with data equals its source');

my $file = $t->write_file('much', $t->read_file('data') . 'x' x 5000);
my (undef, $err) = import_image($t, "$dir/much.bloom", '--from', 'dcso',
                                $file);
like($err, qr/more than \d+ bytes of other data follow the filter; they are left/,
     'the import says that it leaves out data that is too long');


# The filter counts the keys that the tool adds.

my $more = strangers(300);
my $keys = $t->write_file('new.txt', join '', map { "$_\n" } @$more);

$t->run_tool('build', '-o', "$dir/new.bloom", '--like', "$dir/data.bloom",
             $keys);
$t->run_tool('merge', '-o', "$dir/merged.bloom", "$dir/data.bloom",
             "$dir/new.bloom");
$t->run_tool('export', '--to', 'dcso', '-o', "$dir/merged",
             "$dir/merged.bloom");

my $n = unpack 'x40 Q<', $t->read_file('merged');
cmp_ok(abs($n - 600), '<', 40, 'the filter counts about 600 keys');


# The generator of DCSO's bloom is broken for a number of bits that is a power
# of two, which its own files never have.  This filter has 2^24 bits and 12
# hashes.

{
    my $m = 2 ** 24;
    $t->write_file('power', pack('Q< Q< d< Q< Q< Q<', 1, 1e6, 3e-4, 12, $m, 0)
                            . "\0" x ($m / 8));
    import_image($t, "$dir/power.bloom", '--from', 'dcso', "$dir/power");

    $keys = $t->write_file('many.txt', join '', map { "key $_\n" } 1 .. 1e6);
    $t->run_tool('build', '-o', "$dir/full.bloom", '--like',
                 "$dir/power.bloom", $keys);
    $t->run_tool('export', '--to', 'dcso', '-o', "$dir/power",
                 "$dir/full.bloom");

    my (undef, $err) = import_image($t, "$dir/power.bloom", '--from', 'dcso',
                                    "$dir/power");

    like($err, qr/: (?:1\d(?:\.\d)?|2\d(?:\.\d)?) % of 1000000 random keys are present, but the fill ratio predicts 0\.\d+ %/,
         'the import finds a broken scheme by probing');
    like($err, qr/are present, but the source promised 0\.03 %/,
         'the import says that the filter misses the promised rate');
}

done_testing;
