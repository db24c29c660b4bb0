#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom analyze" measures the expected rates and prints them as
# a table, CSV and JSON, and that scripts/analyze.gnuplot draws them.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(json json_lines tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $script = "$FindBin::Bin/../../scripts/analyze.gnuplot";

my @columns = qw(items estimated_fpr measured_fpr deviation lowest highest
                 fill_ratio estimated_items);


sub rows {
    my ($csv) = @_;

    my ($header, @rows) = split /\n/, $csv;

    is($header, join(',', @columns), 'the header of the CSV names the columns');

    return map { my %row; @row{@columns} = split /,/; \%row } @rows;
}


# ---- the measured figures are the expected ones, in each layout ----

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
              "analyze ($name) goes in steps to one and a half times the"
              . " capacity");

    my $size = json(tool(0, undef, 'size', '--json', '--layout', $layout,
                                '-n', '20k', @size));

    cmp_ok(abs($rows[3]{estimated_fpr} / $size->{fpr} - 1), '<', 1e-5,
           "analyze ($name) estimates at capacity the rate that size gives");

    for my $row (@rows) {
        my ($p, $n) = ($row->{estimated_fpr}, $runs * $asked);
        my $at = "$name, $row->{items} items";

        # the rates of the filters scatter, too, but less than the answers

        cmp_ok(abs($row->{measured_fpr} - $p), '<=', 5 * sqrt(2 * $p / $n) + 1 / $n,
               "the measured rate is about the estimated one ($at)");
        cmp_ok(abs($row->{measured_fpr} * $n
                   - int($row->{measured_fpr} * $n + 0.5)), '<', 0.05,
               "the measured rate is that of a whole number of keys ($at)");
        ok($row->{lowest} <= $row->{measured_fpr}
           && $row->{measured_fpr} <= $row->{highest},
           "the mean is between the lowest and the highest rate ($at)");
        cmp_ok($row->{deviation}, '<=',
               ($row->{highest} - $row->{lowest}) * 1.0001,
               "the deviation is no more than lowest and highest allow ($at)");
        cmp_ok(abs($row->{estimated_items} / $row->{items} - 1), '<', 0.02,
               "the bits say how many keys there are ($at)");
        ok(0 < $row->{fill_ratio} && $row->{fill_ratio} < 1,
           "a share of the bits between 0 and 1 is set ($at)");
    }

    cmp_ok($rows[5]{measured_fpr}, '>', 3 * $rows[3]{measured_fpr},
           "an over-full filter errs much more often ($name)");
    ok($rows[3]{deviation} > 0, "the runs differ from each other ($name)");
}


# ---- the same options give the same figures ----

{
    my @small = ('analyze', '-q', '-n', '1k', '-p', '0.05', '--runs', '5',
                 '--steps', '3', '--asked', '1k');
    my $csv = tool(0, undef, @small, '--csv', '-j', '1');

    is(tool(0, undef, @small, '--csv', '-j', '3'), $csv,
       'the figures of analyze do not depend on -j');
    is(tool(0, undef, @small, '--csv', '--seed', '1'), $csv,
       'the default of analyze --seed is 1');
    isnt(tool(0, undef, @small, '--csv', '--seed', '2'), $csv,
         'another --seed gives other figures');
    is(scalar rows($csv), 4,
       'three steps make four rows, one beyond the capacity');

    my @json = json_lines(tool(0, undef, @small, '--json'));
    my @rows = rows($csv);

    is_deeply([map { join ' ', sort keys %$_ } @json],
              [map { join ' ', sort @columns } @rows],
              'analyze --json has the columns of the CSV');

    for my $i (0 .. $#rows) {
        cmp_ok(abs($json[$i]{$_} - $rows[$i]{$_}), '<=',
               1e-5 * abs $rows[$i]{$_},
               "analyze --json has $_ as the CSV has it") for @columns;
    }

    my $table = tool(0, undef, @small);
    my (undef, $heading, @table) = split /\n/, $table;

    is($heading =~ s/ +/ /gr,
       ' items fpr, % fpr, % % % % ratio, % items',
       'the table of analyze has a heading');
    is_deeply([grep { length != length $heading } split /\n/, $table], [],
              'the columns of the table are aligned');
    cmp_ok(length $heading, '<=', 80,
           'the table fits a terminal of 80 columns');
    is(scalar @table, scalar @rows, 'the table has as many rows as the CSV');

    for my $i (0 .. $#rows) {
        my %cell;
        @cell{@columns} = split ' ', $table[$i];

        $cell{$_} /= 100 for grep { !/items/ } @columns;

        cmp_ok(abs($cell{$_} - $rows[$i]{$_}), '<=', 0.006 * abs $rows[$i]{$_},
               "the table has $_ as the CSV has it") for @columns;
    }
}


# ---- the deviation of two runs follows from the lowest and the highest ----

for my $row (rows(tool(0, undef, 'analyze', '-q', '-n', '1k', '-p', '0.05',
                       '--runs', '2', '--steps', '3', '--asked', '1k',
                       '--csv')))
{
    cmp_ok(abs($row->{deviation} - ($row->{highest} - $row->{lowest}) / sqrt 2),
           '<', 1e-6,
           "the deviation of two runs is that of a sample ($row->{items}"
           . " items)");
}


# ---- the picture ----

my @quick = ('analyze', '-n', '1k', '-p', '0.05', '--runs', '2', '--steps', '2',
             '--asked', '1k');
my @files;

for my $layout ('blocked', 'classic') {
    my $csv = tool(0, qr/^$layout: false-positive rate at the capacity of 1000 keys: measured [\d.]+ % \(standard dev.*target 5 %$/,
                   @quick, '--layout', $layout, '--csv');

    like($csv, qr/\A\w+(?:,\w+){7}\n(?:\d+(?:,[\d.e-]+){7}\n){3}\z/,
         'analyze prints rows alone to standard output, and not its summary');
    push @files, $t->write_file("$layout.csv", $csv);
}

{
    my ($exit, $svg, $err)
        = run_command(['gnuplot', '-c', $script, 1000, 0.05, @files]);

    is($exit, 0, 'gnuplot draws the CSV of two filters') or diag($err);
    is($err, '', 'gnuplot does not complain about them');
    like($svg, qr/\A<\?xml .*<\/svg>\s*\z/s, 'the picture is a whole SVG');
    like($svg, qr/>Filters made for 1000 keys at 5 %</,
         'the picture has a title');
    like($svg, qr/>$_</, "the picture shows \"$_\"")
        for 'target', map { ("$_, estimated", "$_, measured: mean of the runs",
                             "$_, a run: standard deviation") } 'blocked',
                                                                'classic';

    # gnuplot writes each point as a <use> of its shape

    is(() = $svg =~ /<use xlink:href='#gpPt$_'/g, 3 + 1,
       'the picture has a point for each row of a filter, and one in the key')
        for 4, 6;
}

for (['of no arguments'],
     ['of no file', 1000, 0.05, $files[0], "$dir/none.csv"],
     ['of a file without rows', 1000, 0.05, $script, $files[0]])
{
    my ($name, @arguments) = @$_;
    my ($exit, $svg) = run_command(['gnuplot', '-c', $script, @arguments]);

    isnt($exit, 0, "a picture $name is an error");
    unlike($svg, qr/<svg/, "a picture $name is not drawn");
}


# ---- wrong options are refused ----

tool(2, $$_[0], 'analyze', @$_[1 .. $#$_]) for
    [qr/--csv and --json cannot be used together/, '--json', '--csv'],
    [qr/unknown option "-o"/, '-o', 'a.svg'],
    [qr/--layout "x": must be blocked or classic/, '--layout', 'x'],
    [qr/--runs "1": must be a number from 2 to 1000/, '--runs', '1'],
    [qr/--steps "1001": must be a number from 2 to 1000/, '--steps', '1001'],
    [qr/--asked "0": must be a number of keys from 1 to/, '--asked', '0'],
    [qr/-n 10 is less than --steps 20; use more keys/, '-n', '10'],
    [qr/a filter in layout blocked .* needs more than 1 TiB/,
     '-n', '4000g', '-p', '1e-9'],
    [qr/unexpected argument "keys\.txt"/, 'keys.txt'];

done_testing();
