#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# compare.pl --form url|host [--seed N] [--count N] [--show N] [--tool TOOL]
#            [FILE...]
#
# Compares the output of `ngx-bloom expand` with that of KeyForms.pm, for each
# line of the files and for --count random changes of these lines
# (Mutations.pm).  Prints the first differences (--show, 20) and, as its last
# line, "N keys compared, N invalid, N differ".  Exits with 1 if any differs.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use Getopt::Long qw(GetOptions);

use lib dirname(__FILE__);
use KeyForms;
use Mutations;

use constant BATCH => 20000;

my %with = (seed => 1, count => 0, show => 20,
            tool => $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom');

GetOptions(\%with, 'form=s', 'seed=i', 'count=i', 'show=i', 'tool=s')
    && ($with{form} // '') =~ /^(?:url|host)\z/
    or die "usage: $0 --form url|host [--seed N] [--count N] [--show N]"
           . " [--tool TOOL] [FILE...]\n";

my ($compared, $invalid, $differ) = (0, 0, 0);


sub shown { return $_[0] =~ s/([^ -~]|\\)/sprintf '\\x%02x', ord $1/ger }

sub string { return '"' . $_[0] =~ s/(["\\])/\\$1/gr . '"' }


# As the tool's --json has it, but for the reason why not.  Canonical forms are
# ASCII without control characters.

sub expected {
    my ($key) = @_;

    my ($canonical, @expressions) = KeyForms::expand($with{form}, $key);

    return '{"canonical":null,"expressions":[]' if !defined $canonical;
    return '{"canonical":' . string($canonical) . ',"expressions":['
           . join(',', map { string($_) } @expressions) . ']}';
}


# Those that a line cannot hold go to the tool with -0, those with a zero byte
# as lines, those with both not at all.

sub compare {
    my (@keys) = @_;

    my @with_zeros = grep { /\0/ && !/[\r\n]/ } @keys;

    compare_split("\n", @with_zeros);
    compare_split("\0", grep { !/\0/ && length } @keys);
}


sub compare_split {
    my ($end, @keys) = @_;

    return if !@keys;

    my ($file, $name) = tempfile(UNLINK => 1);

    binmode $file;
    print {$file} map { $_ . $end } @keys or die "$name: $!\n";
    close $file or die "$name: $!\n";

    my @command = ($with{tool}, 'expand', '--json', '--form', $with{form},
                   $end eq "\0" ? '-0' : (), '-f', $name);

    open my $out, '-|', @command or die "$with{tool}: $!\n";

    for my $key (@keys) {
        my $got = <$out> // die "$with{tool}: fewer answers than keys\n";
        my $expected = expected($key);

        chomp $got;
        $compared++;
        $invalid++ if $expected =~ /^\{"canonical":null/;

        my $same = $expected =~ /^\{"canonical":null/
                   ? index($got, $expected) == 0 : $got eq $expected;

        next if $same;

        if ($differ++ < $with{show}) {
            print "key       ", shown($key), "\nexpected  $expected\n",
                  "got       ", shown($got), "\n\n";
        }
    }

    die "$with{tool}: more answers than keys\n" if defined <$out>;
    close $out;
    die "$with{tool}: exits with ", $? >> 8, "\n" if $? != 0 && $? != 256;

    unlink $name;
}


my @keys;

while (<<>>) {
    s/\r?\n\z//;
    push @keys, $_ if length;
}

die "$0: no keys\n" if !@keys;

for (my $i = 0; $i < @keys; $i += BATCH) {
    compare(@keys[$i .. ($i + BATCH > @keys ? $#keys : $i + BATCH - 1)]);
}

my $mutations = Mutations->new($with{seed}, @keys);

for (my $left = $with{count}; $left > 0; $left -= BATCH) {
    compare(map { $mutations->next } 1 .. ($left > BATCH ? BATCH : $left));
}

print "$compared keys compared, $invalid invalid, $differ differ\n";

exit($differ ? 1 : 0);
