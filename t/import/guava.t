#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import of filters that Guava itself writes (Debian's libguava-java):
# the image answers as Guava does, and the export equals the file of Guava.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $jar = '/usr/share/java/guava.jar';

mkdir "$dir/classes";

# The compiler is javac, or else the smaller ecj.

my $javac = grep({ -x "$_/javac" } split /:/, $ENV{PATH}) ? 'javac' : 'ecj';
my ($exit, $out, $err) = run_command(
    [$javac, ($javac eq 'ecj' ? ('-11', '-nowarn', '-proc:none') : ()),
     '-cp', $jar, '-d', "$dir/classes",
     "$FindBin::Bin/../producers/Guava.java"], limit => 120);

is($exit, 0, "$javac compiles the producer")
    or BAIL_OUT("no Guava to test with: $out$err");


sub guava {
    my ($keys, @arguments) = @_;

    my ($exit, $out, $err) = run_command(
        ['java', '-cp', "$jar:$dir/classes", 'Guava', @arguments],
        stdin => join('', map { "$_\n" } @$keys), limit => 120);

    is($exit, 0, shown($t, 'Guava', @arguments) . ' succeeds')
        or diag $err;
    chomp $out;

    return $out;
}

# Returns members and strangers, without the empty key.

sub keys_of {
    my ($funnel, $n) = @_;

    return $funnel =~ /long|int/ ? (numbers($n, 0), numbers($n, 1))
                                 : (members($n), strangers($n));
}


for my $strategy (64, 32) {
    for my $funnel (qw(string bytes utf16 long int)) {
        for my $size ([10, 0.03], [3000, 0.01], [3000, 0.0001], [50000, 0.2]) {

            next if $size->[0] == 50000 && $funnel !~ /string|long/;

            my ($n, $fpp) = @$size;
            my $what = "the filter of MITZ_$strategy with $n keys of funnel"
                       . " $funnel at $fpp";
            my $ours = $funnel eq 'string' ? 'bytes' : $funnel;
            my ($in, $not) = keys_of($funnel, $n);
            my @ask = (@$in, @$not);

            guava($in, 'write', $strategy, $funnel, $n, $fpp, "$dir/guava");

            import_image($t, "$dir/image", '--from', 'guava', '--funnel',
                         $ours, "$dir/guava");

            my $guava = guava(\@ask, 'check', $funnel, "$dir/guava");

            like($guava, qr/\A1{$n}/, "Guava has the members of $what");
            same_answers(answers($t, "$dir/image", \@ask), $guava,
                         "the image of $what");

            export_image($t, 'guava', "$dir/back", "$dir/image");
            same_file("$dir/back", "$dir/guava",
                      "the export of $what equals its source");
        }
    }
}


# The images of two filters, for tests of what is not possible with them.

my ($in, $not) = keys_of('utf16', 2000);

guava($in, 'write', 64, 'utf16', 2000, 0.01, "$dir/old");
import_image($t, "$dir/old.bloom", '--from', 'guava', '--funnel', 'utf16',
             "$dir/old");

# A filter in gzip is imported.

run_command(['gzip', '-k', "$dir/old"]);
import_image($t, "$dir/gz.bloom", '--from', 'guava', '--funnel', 'utf16',
             "$dir/old.gz");
same_answers(answers($t, "$dir/gz.bloom", [@$in, @$not]),
             guava([@$in, @$not], 'check', 'utf16', "$dir/old"),
             'the image of a filter in gzip');


# Filters of different kinds are not merged.

guava($in, 'write', 32, 'utf16', 2000, 0.01, "$dir/32");
guava($in, 'write', 64, 'utf16', 2000, 0.001, "$dir/other");
import_image($t, "$dir/32.bloom", '--from', 'guava', '--funnel', 'utf16',
             "$dir/32");
import_image($t, "$dir/other.bloom", '--from', 'guava', '--funnel', 'utf16',
             "$dir/other");
import_image($t, "$dir/funnel.bloom", '--from', 'guava', "$dir/old");
import_image($t, "$dir/long.bloom", '--from', 'guava', '--funnel', 'long',
             "$dir/old");

for (['32', 'layout'], ['other', 'bits'], ['funnel', 'hash'],
     ['long', 'funnel'])
{
    my ($name, $differs) = @$_;

    ($exit, $out, $err) = $t->run_tool('merge', '-o', "$dir/x.bloom",
                                       "$dir/old.bloom", "$dir/$name.bloom");
    is($exit, 2, "an image that differs in $differs is not merged");
    like($err, qr/: they differ in $differs;/,
         "the refusal to merge says that the images differ in $differs");
}

# A filter of Guava is not exported to another format.

($exit, $out, $err) = $t->run_tool('export', '--to', 'dcso', '-o', "$dir/x",
                                   "$dir/old.bloom");
is($exit, 2, 'a Guava filter is not exported as DCSO');
like($err, qr/cannot be written as dcso.*scheme is guava64/,
     'the refusal to export a Guava filter as DCSO gives the reason');
ok(!-e "$dir/x", 'the refusal to export leaves no file');

($exit, $out) = $t->run_tool('info', "$dir/old.bloom");
like($out, qr/^imported +from guava, scheme guava64, keys hashed as utf16$/m,
     'info states the source, the scheme and the funnel');

done_testing;
