#!/usr/bin/perl

# build/bench/lookups: what it looked up, and that every knob turns something. How
# long anything took is no matter here.

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

    is($exit, 0, "@_: exits with 0");
    is($err, '', "@_: does not complain");

    return JSON::PP::decode_json($out);
}


sub refused {
    my ($what, @arguments) = @_;

    my ($exit, $out, $err) = run_command([$lookups, @arguments]);

    is($exit, 2, "@arguments: refused");
    like($err, qr/^lookups: .*$what.*; see "lookups --help"$/,
         "@arguments: says what");
}


my $plain = bench();

is_deeply([@$plain{qw(layout k lines pages way batch key_length hash hits
                      lookups rounds)}],
          ['blocked', 8, 1, 'small', 'alone', 1, 0, 'murmur3', 0, 20000, 3],
          'what is the default');
cmp_ok($plain->{bytes}, '<=', 1 << 20, 'no more memory than given');
cmp_ok($plain->{bytes}, '>', 1e6, 'and hardly less');
ok($plain->{ratio_min} <= $plain->{ratio}
   && $plain->{ratio} <= $plain->{ratio_max}, 'the ratio is a median');


# what is found is what was asked for: all, none but false positives, or a part

for my $layout (qw(blocked classic double double63 double31)) {
    for my $way (qw(alone loop batch)) {
        my @how = ('--layout', $layout, '--way', $way);

        is(bench(@how, '--hits', 1)->{present}, 1, 'all keys are found');

        my $none = bench(@how)->{present};
        cmp_ok($none, '<', 0.003, 'none but false positives');
        cmp_ok($none, '>', 0, 'and those are there');

        my $half = bench(@how, '--hits', 0.5)->{present};
        ok($half > 0.48 && $half < 0.52, 'half of them') or diag($half);
    }
}

for (['1e-5', 16, 2], ['1e-7', 24, 3]) {
    my ($rate, $k, $lines) = @$_;
    my $got = bench('-p', $rate, '--hits', 1, '--way', 'batch');

    is_deeply([@$got{qw(k lines present)}], [$k, $lines, 1],
              "a rate of $rate: $lines lines");
}

is(bench('--way', 'batch', '--vector', 'portable')->{vector}, 'portable',
   'the portable way is always there');
is(bench('--way', 'batch', '--batch', 7)->{batch}, 7, 'batches of seven');

for my $hash (qw(murmur3 siphash)) {
    my $got = bench('--hash', $hash, '--key-length', 21, '--hits', 1);

    is_deeply([@$got{qw(hash key_length present)}], [$hash, 21, 1],
              "keys of 21 bytes, $hash");
}

my $working = bench('--work', 100, '--way', 'batch', '--hits', 1);

is_deeply([@$working{qw(work_ns present)}], [100, 1],
          'other work takes no key away');
is($plain->{work_ns}, 0, 'and there is none by itself');

is(bench('--pages', 'huge')->{pages}, 'huge', 'huge pages are asked for');

my ($exit, $out) = run_command([$lookups, '-n', 1000, '-r', 1, '-m', '64k']);

is($exit, 0, 'without --json');
like($out, qr/^filter   blocked, k 8 in 1 line, [0-9.]+ KiB on small pages/m,
     'says what was looked up');
unlike($out, qr/ns of other work/, 'says nothing of work that was not done');
like($out, qr/^ratio    -?[0-9.]+ \(-?[0-9.]+ to -?[0-9.]+\)$/m,
     'says what came out');

($exit, $out) = run_command([$lookups, '-n', 1000, '-r', 1, '-m', '64k',
                             '--work', 80]);

is($exit, 0, 'with work between lookups');
like($out, qr/^lookups  .*, 80 ns of other work a key$/m, 'says so');

($exit, $out) = run_command([$lookups, '-n', 1000, '-r', 1, '-m', '64k',
                             '--way', 'batch', '--batch', 8, '--vector',
                             'portable']);

is($exit, 0, 'in batches');
like($out, qr/^lookups  .*, batch of 8, portable, hash at hand$/m,
     'says of how many, and by what');


refused(qr/-m "1k"/, '-m', '1k');
refused(qr/-p "0"/, '-p', '0');
refused(qr/-n "5"/, '-n', '5');
refused(qr/-r "0"/, '-r', '0');
refused(qr/--layout "links"/, '--layout', 'links');
refused(qr/--hits "2"/, '--hits', '2');
refused(qr/--way "all"/, '--way', 'all');
refused(qr/--batch "65"/, '--batch', '65');
refused(qr/--vector "mmx": there are avx512, avx2 and portable/, '--vector',
        'mmx');
refused(qr/--vector is for batches/, '--vector', 'portable');
refused(qr/--batch is for batches/, '--batch', 7, '--way', 'loop');
refused(qr/--key-length "7"/, '--key-length', '7');
refused(qr/--hash "md5"/, '--hash', 'md5');
refused(qr/--hash is for keys that are made/, '--hash', 'siphash');
refused(qr/--work "-1"/, '--work', '-1');
refused(qr/--work "100001"/, '--work', '100001');
refused(qr/--pages "large"/, '--pages', 'large');
refused(qr/"more" is no option/, 'more');
refused(qr/unknown option "--nonsense"/, '--nonsense');
refused(qr/option -m wants a value/, '-m');


# the help

my $help = '';

for my $option ('--help', '-h') {
    ($exit, $out, my $err) = run_command([$lookups, $option]);

    is($exit, 0, "$option: exits with 0");
    is($err, '', "$option: does not complain");
    like($out, qr/\AUsage: build\/bench\/lookups \[OPTION/, "$option: usage");
    is($out, $help, '-h is the same') if $option eq '-h';

    $help = $out;
}

like($help, qr/^Examples:\n(?:  build\/bench\/lookups -.*\n)+\z/m,
     'has examples');
is(join('', grep { length > 81 } split /^/, $help), '',
   'help has no line of more than 80 columns');

done_testing;
