#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import of binary and JSON filters that bits-and-blooms itself writes
# (Debian's golang-github-willf-bloom-dev), and their export.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;

my ($exit, $out, $err) = run_command(
    ['go', 'build', '-o', "$dir/producer",
     "$FindBin::Bin/../producers/bits_and_blooms.go"], limit => 600,
    env => { GO111MODULE => 'off', GOPATH => '/usr/share/gocode',
             GOCACHE => "$dir/cache", GOFLAGS => '-buildvcs=false' });

is($exit, 0, 'go compiles the producer')
    or BAIL_OUT("no bits-and-blooms to test with: $out$err");

run_command(['rm', '-rf', "$dir/cache"]);


sub producer {
    my ($keys, @arguments) = @_;

    my ($exit, $out, $err) = run_command(
        ["$dir/producer", @arguments],
        stdin => join('', map { "$_\n" } @$keys), limit => 120);

    is($exit, 0, shown($t, 'producer', @arguments) . ' succeeds')
        or diag $err;
    chomp $out;

    return $out;
}


for my $form (qw(binary little words json std)) {

    # m, k and number of keys: filters of one word, of part of a word, and large
    # ones

    for my $size ([64, 3, 5], [1000, 4, 100], [1, 1, 1], [95851, 7, 10000],
                  [1 << 20, 10, 60000], [2000003, 20, 30000])
    {
        my ($m, $k, $n) = @$size;
        my $what = "the $form filter of $m bits with k $k";
        my @ask = (@{ members($n) }, @{ strangers($n + 50) });

        next if $form eq 'words' && $m % 64 == 0;
        next if $form =~ /little|std/ && $m > 1e6;

        producer(members($n), 'write', $form, $m, $k, "$dir/go");

        import_image($t, "$dir/image", '--from', 'bits-and-blooms',
                     "$dir/go");

        my $go = producer(\@ask, 'check', $form, "$dir/go");

        like($go, qr/\A1{$n}/, "bits-and-blooms has the members of $what")
            if $n < 32000;
        $m == 1 ? is(answers($t, "$dir/image", \@ask), $go,
                     "the image of $what gives all answers of its source")
                : same_answers(answers($t, "$dir/image", \@ask), $go,
                               "the image of $what");

        export_image($t, 'bits-and-blooms', "$dir/back", "$dir/image");

        if ($form =~ /json|std/) {
            producer(members($n), 'write', 'binary', $m, $k, "$dir/go");
        }

        same_file("$dir/back", "$dir/go",
                  "the export of $what equals its source");
    }
}

# JSON that is refused.

my $json = qr/is not a bits-and-blooms filter in JSON/;
my @from = ('--from', 'bits-and-blooms');

producer(['one'], 'write', 'json', 100, 3, "$dir/json");
my $good = $t->read_file('json');

for (['JSON of another kind', '{"k":4}'],
     ['truncated JSON', substr $good, 0, 30],
     ['JSON without its end', substr $good, 0, -2],
     ['JSON with another byte at its end', "${good}x"],
     ['JSON with a number that is too large',
      $good =~ s/100/99999999999999999999999/r],
     ['JSON with a wrong character in its bits', $good =~ s/A/*/r])
{
    my ($what, $text) = @$_;
    import_fails($t, $what, $json, @from, $t->write_file('bad', $text));
}

import_fails($t, 'JSON with another number of bits',
             qr/bits in a bit set of/, @from,
             $t->write_file('bad', $good =~ s/100/200/r));
import_image($t, "$dir/x.bloom", @from,
             $t->write_file('spaces', $good =~ s/([,:{}])/ \n$1 /gr));

done_testing;
