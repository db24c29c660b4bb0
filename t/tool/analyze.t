#!/usr/bin/perl

# ngx-bloom analyze: rates measured while a filter fills, as a table, CSV and
# JSON; and the script that draws them, scripts/analyze.gnuplot.

use strict;
use warnings;

use FindBin;
use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $script = "$FindBin::Bin/../../scripts/analyze.gnuplot";

my @columns = qw(items estimated_fpr measured_fpr deviation lowest highest
                 fill_ratio estimated_items);


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
                         '--steps', '4', '--asked', '20k', '--csv'));

    is_deeply([map { $_->{items} } @rows],
              [5000, 10000, 15000, 20000, 25000, 30000],
              "$name: steps to one and a half times the capacity");

    my $size = decode_json(tool(0, undef, 'size', '--json', '--layout', $layout,
                                '-n', '20k', @size));

    cmp_ok(abs($rows[3]{estimated_fpr} / $size->{fpr} - 1), '<', 1e-5,
           "$name: at its capacity what sizing expects");

    for my $row (@rows) {
        my ($p, $n) = ($row->{estimated_fpr}, $runs * $asked);
        my $at = "$name, $row->{items} items";

        # a filter's own rate scatters, too, and less than the answers do

        cmp_ok(abs($row->{measured_fpr} - $p), '<=', 5 * sqrt(2 * $p / $n) + 1 / $n,
               "$at: measured about as expected");
        cmp_ok(abs($row->{measured_fpr} * $n
                   - int($row->{measured_fpr} * $n + 0.5)), '<', 0.05,
               "$at: a number of keys was found");
        ok($row->{lowest} <= $row->{measured_fpr}
           && $row->{measured_fpr} <= $row->{highest},
           "$at: the mean is between the lowest and the highest");
        cmp_ok($row->{deviation}, '<=',
               ($row->{highest} - $row->{lowest}) * 1.0001,
               "$at: the deviation is within them, too");
        cmp_ok(abs($row->{estimated_items} / $row->{items} - 1), '<', 0.02,
               "$at: the bits say how many keys there are");
        ok(0 < $row->{fill_ratio} && $row->{fill_ratio} < 1,
           "$at: a share of bits is set");
    }

    cmp_ok($rows[5]{measured_fpr}, '>', 3 * $rows[3]{measured_fpr},
           "$name: overfull, it errs");
    ok($rows[3]{deviation} > 0, "$name: runs differ");
}


# ---- the same options, the same figures ----

{
    my @small = ('analyze', '-q', '-n', '1k', '-p', '0.05', '--runs', '5',
                 '--steps', '3', '--asked', '1k');
    my $csv = tool(0, undef, @small, '--csv', '-j', '1');

    is(tool(0, undef, @small, '--csv', '-j', '3'), $csv, 'whatever the threads');
    is(tool(0, undef, @small, '--csv', '--seed', '1'), $csv, 'the seed is 1');
    isnt(tool(0, undef, @small, '--csv', '--seed', '2'), $csv,
         'another gives others');
    is(scalar rows($csv), 4, 'of three steps, one more is beyond the capacity');

    my @json = map { decode_json($_) }
               split /\n/, tool(0, undef, @small, '--json');
    my @rows = rows($csv);

    is_deeply([map { join ' ', sort keys %$_ } @json],
              [map { join ' ', sort @columns } @rows], 'JSON: the same columns');

    for my $i (0 .. $#rows) {
        cmp_ok(abs($json[$i]{$_} - $rows[$i]{$_}), '<=',
               1e-5 * abs $rows[$i]{$_}, "JSON: $_ is the same") for @columns;
    }

    my $table = tool(0, undef, @small);
    my (undef, $heading, @table) = split /\n/, $table;

    is($heading =~ s/ +/ /gr,
       ' items fpr, % fpr, % % % % ratio, % items', 'the table: its heading');
    is_deeply([grep { length != length $heading } split /\n/, $table], [],
              'the table: its columns are aligned');
    cmp_ok(length $heading, '<=', 80, 'the table: fits a terminal');
    is(scalar @table, scalar @rows, 'the table: the same rows');

    for my $i (0 .. $#rows) {
        my %cell;
        @cell{@columns} = split ' ', $table[$i];

        $cell{$_} /= 100 for grep { !/items/ } @columns;

        cmp_ok(abs($cell{$_} - $rows[$i]{$_}), '<=', 0.006 * abs $rows[$i]{$_},
               "the table: $_ is the same") for @columns;
    }
}


# ---- the deviation of two runs is known from the lowest and the highest ----

for my $row (rows(tool(0, undef, 'analyze', '-q', '-n', '1k', '-p', '0.05',
                       '--runs', '2', '--steps', '3', '--asked', '1k',
                       '--csv')))
{
    cmp_ok(abs($row->{deviation} - ($row->{highest} - $row->{lowest}) / sqrt 2),
           '<', 1e-6, "$row->{items} items: standard deviation of a sample");
}


# ---- a picture of it ----

my @quick = ('analyze', '-n', '1k', '-p', '0.05', '--runs', '2', '--steps', '2',
             '--asked', '1k');

for my $layout ('blocked', 'classic') {
    my $csv = tool(0, qr/^$layout: with 1000 keys, .* measured [\d.]+ % \(dev.*target 5 %$/,
                   @quick, '--layout', $layout, '--csv');

    like($csv, qr/\A\w+(?:,\w+){7}\n(?:\d+(?:,[\d.e-]+){7}\n){3}\z/,
         'the summary is on standard error');

    my $file = $t->write_file("$layout.csv", $csv);
    my ($exit, $svg, $err) = run_command(
        ['gnuplot', '-c', $script, $file, "$layout filter", 1000, 0.05]);

    is($exit, 0, "$layout: gnuplot draws it") or diag($err);
    is($err, '', "$layout: and does not complain");
    like($svg, qr/\A<\?xml .*<\/svg>\s*\z/s, "$layout: SVG, whole");
    like($svg, qr/>$layout filter, made for 1000 keys at 5 %</,
         "$layout: its title");
    like($svg, qr/>$_</, "$layout: it shows: $_")
        for 'estimated', 'measured: mean of the runs', 'target',
            'a run: standard deviation';

    # gnuplot draws a point as a use of its shape

    is(() = $svg =~ /<use xlink:href='#gpPt6'/g, 3 + 1,
       "$layout: a point for each row, and one in the key");
}

for (['of no arguments'], ['of no file', "$dir/none.csv", 'x', 1000, 0.05]) {
    my ($name, @arguments) = @$_;
    my ($exit, $svg) = run_command(['gnuplot', '-c', $script, @arguments]);

    isnt($exit, 0, "a picture $name is an error");
    unlike($svg, qr/<svg/, "a picture $name: none is drawn");
}


# ---- what is refused ----

tool(2, $$_[0], 'analyze', @$_[1 .. $#$_]) for
    [qr/--csv and --json exclude each other/, '--json', '--csv'],
    [qr/unknown option "-o"/, '-o', 'a.svg'],
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
    [qr/"keys\.txt" is no option/, 'keys.txt'];

like(tool(0, undef, 'analyze', '--help'), qr/^Usage: ngx-bloom analyze/, 'help');

done_testing();
