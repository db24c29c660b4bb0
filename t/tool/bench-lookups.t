#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that build/bench/lookups looks up the right keys and that each option
# has an effect.  The times that it measures are not tested.

use strict;
use warnings;

use FindBin;
use JSON::PP ();

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $lookups = ($ENV{BENCH_PROGRAMS} // "$FindBin::Bin/../../build/bench")
              . '/lookups';

-x $lookups or die "$lookups is missing; run make build/bench/lookups\n";

my @quick = ('-n', '20k', '-r', '3', '-m', '1m', '--json');


sub bench {
    my ($exit, $out, $err) = run_command([$lookups, @quick, @_]);

    is($exit, 0, "lookups @_ exits with 0");
    is($err, '', "lookups @_ prints no message");

    return JSON::PP::decode_json($out);
}


my $plain = bench();

is_deeply([@$plain{qw(layout k lines pages way batch key_length hash hits
                      lookups rounds)}],
          ['blocked', 8, 1, 'small', 'alone', 1, 0, 'murmur3', 0, 20000, 3],
          'lookups uses its defaults and reports them');
cmp_ok($plain->{bytes}, '<=', 1 << 20,
       'the filter takes no more memory than given');
cmp_ok($plain->{bytes}, '>', 1e6,
       'the filter takes nearly all the memory given');
ok($plain->{ratio_min} <= $plain->{ratio}
   && $plain->{ratio} <= $plain->{ratio_max},
   'the ratio is between its minimum and its maximum');


# the keys that are found: all, only false positives, or a part

for my $layout (qw(blocked classic double double63 double31)) {
    for my $way (qw(alone loop batch)) {
        my @how = ('--layout', $layout, '--way', $way);

        is(bench(@how, '--hits', 1)->{present}, 1,
           'lookups with --hits 1 find all keys');

        my $none = bench(@how)->{present};
        cmp_ok($none, '<', 0.003,
               'lookups find no more absent keys than the rate allows');
        cmp_ok($none, '>', 0,
               'lookups find some absent keys, which are false positives');

        my $half = bench(@how, '--hits', 0.5)->{present};
        ok($half > 0.48 && $half < 0.52,
           'lookups with --hits 0.5 find half of the keys') or diag($half);
    }
}

for my $way (qw(alone loop batch)) {
    my $got = bench('--layout', 'fuse', '--way', $way);

    is_deeply([@$got{qw(layout k lines)}], ['fuse', 3, 0],
              '--layout fuse has three slots');
    ok($got->{present} > 0 && $got->{present} < 0.003,
       'lookups in layout fuse find as many absent keys as the rate allows');
}

for (['1e-5', 16, 2], ['1e-7', 24, 3]) {
    my ($rate, $k, $lines) = @$_;
    my $got = bench('-p', $rate, '--hits', 1, '--way', 'batch');

    is_deeply([@$got{qw(k lines present)}], [$k, $lines, 1],
              "a rate of $rate takes $lines lines");
}

is(bench('--way', 'batch', '--vector', 'portable')->{vector}, 'portable',
   '--vector portable is available on every processor');
is(bench('--way', 'batch', '--batch', 7)->{batch}, 7,
   '--batch 7 makes batches of seven');

for my $hash (qw(murmur3 siphash)) {
    my $got = bench('--hash', $hash, '--key-length', 21, '--hits', 1);

    is_deeply([@$got{qw(hash key_length present)}], [$hash, 21, 1],
              "--key-length makes keys of 21 bytes and hashes them with $hash");
}

my $working = bench('--work', 100, '--way', 'batch', '--hits', 1);

is_deeply([@$working{qw(work_ns present)}], [100, 1],
          'other work between lookups loses no key');
is($plain->{work_ns}, 0, 'there is no other work by default');

is(bench('--pages', 'huge')->{pages}, 'huge',
   '--pages huge is reported');

my ($exit, $out) = run_command([$lookups, '-n', 1000, '-r', 1, '-m', '64k']);

is($exit, 0, 'lookups without --json exits with 0');
like($out, qr/^filter   blocked, k 8 in 1 line, [0-9.]+ KiB on small pages/m,
     'lookups without --json names the filter');
like($out, qr/^ratio    -?[0-9.]+ \(-?[0-9.]+ to -?[0-9.]+\)$/m,
     'lookups without --json prints the ratio and its range');


# options that would measure something else than what was asked for

for (['--hits', '--layout', 'fuse', '--hits', '0.5'],
     ['--vector', '--vector', 'portable'],
     ['--batch', '--batch', 7, '--way', 'loop'],
     ['--hash', '--hash', 'siphash'], ['--nonsense', '--nonsense'])
{
    my ($what, @arguments) = @$_;
    my ($status, undef, $err) = run_command([$lookups, @arguments]);

    is($status, 2, "lookups @arguments is refused");
    like($err, qr/^lookups: .*$what/, "lookups @arguments says what is wrong");
}

done_testing;
