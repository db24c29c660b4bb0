#!/usr/bin/perl

# ngx-bloom analyze: rates measured while a filter fills, as CSV and pictures.

use strict;
use warnings;

use FindBin;
use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $tool = $ENV{TEST_BLOOM_TOOL} // "$FindBin::Bin/../../build/ngx-bloom";

my @columns = qw(items expected mean deviation lowest highest fill estimate);


# Exit status and standard error as expected; standard output.

sub tool {
    my ($status, $complaint, @arguments) = @_;

    my ($exit, $out, $err) = $t->run_tool(@arguments);
    my $shown = join ' ', grep { !ref } @arguments;
    $shown =~ s/\Q$dir\E\///g;

    is($exit, $status, "$shown: exits with $status") or diag($err);

    if (defined $complaint) {
        like($err, $complaint, "$shown: complains");
    } else {
        is($err, '', "$shown: does not complain");
    }

    return $out;
}


sub rows {
    my ($csv) = @_;

    my ($header, @rows) = split /\n/, $csv;

    is($header, join(',', @columns), 'the columns');

    return map { my %row; @row{@columns} = split /,/; \%row } @rows;
}


# ---- figures: what is measured is what is expected, in each layout ----

for my $how (['blocked'], ['classic'], ['blocked', '--hash', 'siphash'],
             ['blocked', '-p', '1e-4'])
{
    my ($layout, @options) = @$how;
    my @size = ('-p', '0.01', grep { !/hash/ } @options);
    my ($runs, $asked) = (6, 20000);
    my $name = "@$how";

    my @rows = rows(tool(0, undef, 'analyze', '-q', '-n', '20k', '-p', '0.01',
                         '--layout', $layout, @options, '--runs', $runs,
                         '--steps', '4', '--asked', '20k'));

    is_deeply([map { $_->{items} } @rows],
              [5000, 10000, 15000, 20000, 25000, 30000],
              "$name: steps to one and a half times the capacity");

    my $size = decode_json(tool(0, undef, 'size', '--json', '--layout', $layout,
                                '-n', '20k', @size));

    cmp_ok(abs($rows[3]{expected} / $size->{fpr} - 1), '<', 1e-5,
           "$name: at its capacity what sizing expects");

    for my $row (@rows) {
        my ($p, $n) = ($row->{expected}, $runs * $asked);
        my $at = "$name, $row->{items} items";

        # a filter's own rate scatters, too, and less than the answers do

        cmp_ok(abs($row->{mean} - $p), '<=', 5 * sqrt(2 * $p / $n) + 1 / $n,
               "$at: measured about as expected");
        cmp_ok(abs($row->{mean} * $n - int($row->{mean} * $n + 0.5)), '<', 0.05,
               "$at: a number of keys was found");
        ok($row->{lowest} <= $row->{mean} && $row->{mean} <= $row->{highest},
           "$at: the mean is between the lowest and the highest");
        cmp_ok($row->{deviation}, '<=',
               ($row->{highest} - $row->{lowest}) * 1.0001,
               "$at: the deviation is within them, too");
        cmp_ok(abs($row->{estimate} / $row->{items} - 1), '<', 0.02,
               "$at: the bits say how many keys there are");
        ok(0 < $row->{fill} && $row->{fill} < 1, "$at: a share of bits is set");
    }

    cmp_ok($rows[5]{mean}, '>', 3 * $rows[3]{mean}, "$name: overfull, it errs");
    ok($rows[3]{deviation} > 0, "$name: runs differ");
}


# ---- the same options, the same figures ----

{
    my @small = ('analyze', '-q', '-n', '1k', '-p', '0.05', '--runs', '5',
                 '--steps', '3', '--asked', '1k');
    my $csv = tool(0, undef, @small, '-j', '1');

    is(tool(0, undef, @small, '-j', '3'), $csv, 'whatever the threads');
    is(tool(0, undef, @small, '--seed', '1'), $csv, 'the seed is 1');
    isnt(tool(0, undef, @small, '--seed', '2'), $csv, 'another gives others');
    is(scalar rows($csv), 4, 'of three steps, one more is beyond the capacity');

    is(tool(0, undef, @small, '-o', "$dir/a.csv"), '', 'a file: no output');
    is($t->read_file('a.csv'), $csv, 'and the same in the file');
    is(tool(0, undef, @small, '-o', '-'), $csv, 'standard output by name');

    my @json = map { decode_json($_) }
               split /\n/, tool(0, undef, @small, '--json');
    my @rows = rows($csv);

    is_deeply([map { join ' ', sort keys %$_ } @json],
              [map { join ' ', sort @columns } @rows], 'JSON: the same columns');

    for my $i (0 .. $#rows) {
        cmp_ok(abs($json[$i]{$_} - $rows[$i]{$_}), '<=',
               1e-5 * abs $rows[$i]{$_}, "JSON: $_ is the same") for @columns;
    }
}


# ---- the deviation of two runs is known from the lowest and the highest ----

for my $row (rows(tool(0, undef, 'analyze', '-q', '-n', '1k', '-p', '0.05',
                       '--runs', '2', '--steps', '3', '--asked', '1k')))
{
    cmp_ok(abs($row->{deviation} - ($row->{highest} - $row->{lowest}) / sqrt 2),
           '<', 1e-6, "$row->{items} items: standard deviation of a sample");
}


# ---- pictures ----

my @quick = ('analyze', '-n', '1k', '-p', '0.05', '--runs', '2', '--steps', '2',
             '--asked', '1k');

like(tool(0, qr/^classic: with 1000 keys, .* measured [\d.]+ % \(dev.*target 5 %$/,
          @quick, '--layout', 'classic', '-o', "$dir/a.svg"), qr/\A\z/,
     'a summary on standard error');

{
    my $svg = $t->read_file('a.svg');

    like($svg, qr/\A<\?xml .*<\/svg>\s*\z/s, 'SVG, whole');
    like($svg, qr/>classic filter with murmur3, made for 1000 keys at 5 %</,
         'its title');
    like($svg, qr/>$_</, "it shows: $_")
        for 'expected', 'measured: 2 runs, 1000 absent keys each', 'target',
            'a run: standard deviation';
}

tool(0, undef, @quick, '-q', '-o', "$dir/a.png");
like($t->read_file('a.png'), qr/\A\x89PNG\r\n/, 'PNG');


# ---- gnuplot is missing, or fails ----

mkdir "$dir/bin" or die "mkdir: $!";
$t->write_file('old.svg', 'old');

tool(2, qr/^ngx-bloom analyze: pictures are drawn by gnuplot, which is not found: \Qinstall it (Debian: gnuplot-nox), or have CSV (-o FILE.csv)\E\n\z/,
     @quick, '-o', "$dir/old.svg", { env => { PATH => "$dir/bin" } });
is($t->read_file('old.svg'), 'old', 'the old picture is as it was');

$t->write_file('bin/gnuplot', "#!/bin/sh\n[ \"\$1\" = --version ] || exit 3\n");
chmod 0755, "$dir/bin/gnuplot";

tool(2, qr/^ngx-bloom analyze: gnuplot failed with 3; the same figures as CSV: -o FILE.csv\n\z/,
     @quick, '-o', "$dir/old.svg",
     { env => { PATH => "$dir/bin:$ENV{PATH}" } });
is($t->read_file('old.svg'), 'old', 'nor does it go when gnuplot fails');

$t->write_file('bin/gnuplot',
               "#!/bin/sh\n[ \"\$1\" = --version ] || kill -TERM \$\$\n");

tool(2, qr/^ngx-bloom analyze: gnuplot was ended by signal 15\n\z/, @quick,
     '-o', "$dir/old.svg", { env => { PATH => "$dir/bin:$ENV{PATH}" } });
is_deeply([glob "$dir/*.tmp-*"], [], 'and nothing is left');

# It does not notice itself that what it draws cannot be written.

$t->write_file('bin/gnuplot', "#!/bin/sh\ntrap '' XFSZ\n"
               . "[ \"\$1\" = --version ] || head -c 100000 /dev/zero\nexit 0\n");

{
    my ($exit, undef, $err) = run_command(
        ['sh', '-c', 'ulimit -f 8 && exec "$@"', 'sh', $tool, @quick, '-o',
         "$dir/old.svg"], env => { PATH => "$dir/bin:$ENV{PATH}" });

    is($exit, 2, 'a picture that cannot be written whole is an error');
    like($err, qr/old\.svg: cannot be written: File too large; the old file is/,
         'which is said');
    is($t->read_file('old.svg'), 'old', 'and does not replace the old one');
    is_deeply([glob "$dir/*.tmp-*"], [], 'and nothing is left');
}


# ---- what is refused ----

tool(2, $$_[0], 'analyze', @$_[1 .. $#$_]) for
    [qr/-o "a\.jpg": what it will be is told by its end: \.csv, \.svg or \.png/,
     '-o', 'a.jpg'],
    [qr/-o "svg": what/, '-o', 'svg'],
    [qr/--json prints to standard output: leave -o a\.csv out/, '--json',
     '-o', 'a.csv'],
    [qr/-n "0": a number of keys is a count from 1/, '-n', '0'],
    [qr/-p "1": a rate is from 1e-9 to 0\.5/, '-p', '1'],
    [qr/--layout "x": there are blocked and classic/, '--layout', 'x'],
    [qr/--hash "x": there are murmur3 and siphash/, '--hash', 'x'],
    [qr/--seed "4294967296": a count from 0 to 4294967295/,
     '--seed', '4294967296'],
    [qr/--runs "1": a count from 2 to 1000/, '--runs', '1'],
    [qr/--steps "1001": a count from 2 to 1000/, '--steps', '1001'],
    [qr/--asked "0": a count from 1 to/, '--asked', '0'],
    [qr/-j "0": threads are from 1 to 256/, '-j', '0'],
    [qr/-n 10 --steps 20: there are fewer keys than steps/, '-n', '10'],
    [qr/need more than 1 TiB in layout blocked/, '-n', '4000g', '-p', '1e-9'],
    [qr/"keys\.txt" is no option; a file is named by -o/, 'keys.txt'];

like(tool(0, undef, 'analyze', '--help'), qr/^Usage: ngx-bloom analyze/, 'help');

done_testing();
