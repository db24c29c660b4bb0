#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
#
# coverage.pl --clear
# coverage.pl
#
# Reports which lines, functions and branches of src/ ran, from the counts that
# programs of `make coverage` have written beside their objects.
#
# It prints a table with a row for each folder, in Markdown as docs/testing.md
# has it. build/coverage/report.txt has that table and, for each file, the
# functions and the lines that never ran. A line counts as run if it ran in any
# program: files of the core are compiled for the tool and for the module.
#
# --clear forgets the counts of earlier runs, and lets every user write new ones.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find qw(find);

my $top = abs_path(dirname(__FILE__) . '/..');
my $report = "$top/build/coverage/report.txt";
my $errors = "$top/build/coverage/errors.log";
my @objects = ("$top/build/coverage",
               glob "$top/build/nginx-*-coverage/objs/addon");

# What ran: $count{FILE}{lines}{NUMBER}, $count{FILE}{functions}{NAME} and
# $count{FILE}{branches}{"NUMBER N"}, the N-th branch of a line

my %count;


# Returns the notes that gcc wrote beside the objects. Each lists what an object
# has to count.

sub notes {
    my @notes;

    find(sub { push @notes, $File::Find::name if /\.gcno$/ },
         grep { -d } @objects);

    die "$0: build/ has nothing that was compiled for coverage;"
        . " run: make coverage\n" if !@notes;

    return sort @notes;
}


# Makes an empty file of counts for each object. A process that runs as another
# user can write to such a file, but cannot make it.

sub clear {
    umask 0;

    for my $file ($errors, map { s/gcno$/gcda/r } notes()) {
        unlink $file;
        open my $fh, '>', $file or die "$0: $file: $!\n";
    }
}


# Adds the counts of one object, which gcov prints beside the source:
#
#             -:    0:Source:src/core/bloom_crc.c
#     function bloom_crc called 8 returned 100% blocks executed 100%
#             8:   41:    for (i = 0; i < len; i++) {
#     branch  0 taken 7 (fallthrough)
#     branch  1 never executed
#         #####:   47:    return 0;

sub add {
    my ($dir, $note) = @_;

    # nginx's build has the checkout at "bloom", and other files in its own src/

    my $ours = $dir eq $top ? qr{(src/.*)} : qr{bloom/(src/.*)};
    my ($seen, $renamed, $line, $n);

    # a unit test that includes a file may give its functions other names

    open my $gcov, '-|', 'sh', '-c', 'cd "$1" && exec gcov -b -c -t "$2" 2>&1',
         'sh', $dir, $note
        or die "$0: gcov: $!\n";

    while (<$gcov>) {
        if (/^ +-: +0:Source:(.*)/) {
            $seen = $1 =~ /^$ours$/ ? $count{$1} //= {} : undef;
            $renamed = $note =~ m{/unit/} && /\.c$/;

        } elsif (!$seen) {
            next;

        } elsif (/^function (\S+) called (\d+)/) {
            $seen->{functions}{$1} += $2 if !$renamed;

        } elsif (/^ *(\d+|#####)\*?: +(\d+):/) {
            ($line, $n) = ($2, 0);
            $seen->{lines}{$line} += $1 eq '#####' ? 0 : $1;

        } elsif (/^branch +\d+ (?:taken (\d+)|never executed)/) {
            $seen->{branches}{"$line " . $n++} += $1 // 0;
        }
    }

    close $gcov or die "$0: gcov failed for $note\n";
}


# Runs gcov on all notes. An object without counts has not run.

sub measure {
    for my $note (notes()) {
        my $counts = $note =~ s/gcno$/gcda/r;
        my ($dir) = $note =~ m{^(.*/build/nginx[^/]*)/};

        unlink $counts if -z $counts;
        add($dir // $top, $note);
    }
}


# Returns the cells "NUMBER | SHARE" of what is to run and has run.

sub cells {
    my @counts = @_;

    my $ran = grep { $_ } @counts;

    return sprintf '%d | %s', scalar @counts,
                   @counts ? sprintf('%.1f %%', 100 * $ran / @counts) : '-';
}


# Returns the row of a table for some files.

sub row {
    my ($name, @files) = @_;

    return "| $name | " . join(' | ', map {
        my $kind = $_;
        cells(map { values %{ $count{$_}{$kind} } } @files);
    } qw(lines functions branches)) . " |\n";
}


sub table {
    my %files;
    push @{ $files{dirname($_)} }, $_ for sort keys %count;

    return join '',
        "| folder | lines | ran | functions | ran | branches | ran |\n",
        "|---|---:|---:|---:|---:|---:|---:|\n",
        (map { row("`$_`", @{ $files{$_} }) } sort keys %files),
        row('all', keys %count);
}


# Returns ranges of numbers as text: "3-5, 9".

sub ranges {
    my @ranges;

    for my $number (sort { $a <=> $b } @_) {
        if (@ranges && $ranges[-1][1] == $number - 1) {
            $ranges[-1][1] = $number;
        } else {
            push @ranges, [$number, $number];
        }
    }

    return join ', ',
           map { $_->[0] == $_->[1] ? $_->[0] : "$_->[0]-$_->[1]" } @ranges;
}


# Returns what never ran in a file, or nothing if all of it ran.

sub missed {
    my ($file) = @_;

    my ($lines, $functions) = @{ $count{$file} }{qw(lines functions)};
    my @functions = sort grep { !$functions->{$_} } keys %$functions;
    my @lines = grep { !$lines->{$_} } keys %$lines;

    return '' if !@lines && !@functions;

    return join '', "\n$file\n", (map { "    $_()\n" } @functions),
                @lines ? '    lines ' . ranges(@lines) . "\n" : '';
}


if ("@ARGV" eq '--clear') {
    clear();
    exit;
}

die "usage: $0 [--clear]\n" if @ARGV;

measure();

open my $out, '>', $report or die "$0: $report: $!\n";
print $out table(), "\nThese functions and lines never ran:\n",
           map { missed($_) } sort keys %count;
close $out or die "$0: $report: $!\n";

print table(), "\nbuild/coverage/report.txt lists what never ran.\n",
      -s $errors ? "Some counts were lost; see build/coverage/errors.log.\n" : '';
