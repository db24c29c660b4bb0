#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests golden entries of the file "base": t/golden/write_base.pl, which was
# written from docs/state.md alone, makes each of them byte for byte.  Together
# they have everything that an entry has.  The fuzzer begins with files of them.

use strict;
use warnings;

use File::Basename qw(basename);
use FindBin;
use Test::More;

chdir("$FindBin::Bin/../..") or die "$FindBin::Bin/../..: $!\n";

require './t/golden/write_base.pl';

sub content_of {
    my ($file) = @_;

    open(my $in, '<:raw', $file) or die "$file: $!\n";
    local $/;
    return scalar <$in>;
}


is(base_crc32c('123456789'), 0xe3069283,
   'CRC-32C of the writer has its check value');


my (%vector, %shown);

for my $file (glob 't/golden/base/*.txt') {
    my $name = basename($file, '.txt');
    my $v = $vector{$name} = read_base_vector($file);

    my ($listing) = content_of($file) =~ /^(entry\n.*)\z/ms;

    is(base_listing(entry_of($v)), $listing,
       "the writer makes each byte of $name");

    $shown{"kind $v->{kind}"}++;
    $shown{"all of $_"}++ for keys %$v;
    $shown{'checkpoints: ' . grep { $v->{$_} } qw(older newer)}++;
}

for my $what ((map { "kind $_" } qw(empty file upload checkpoint)),
              (map { "all of $_" }
                   qw(number journal kind build_id replaced dropped floor lost
                      lost_keys from from_place older older_place newer
                      newer_place accepted accepted_before
                      older_checksum newer_checksum)),
              (map { "checkpoints: $_" } 0 .. 2))
{
    ok($shown{$what}, "some vector has $what");
}


# a corpus file has the name of its vectors

for my $file (glob 't/fuzz/corpus/base/*') {
    my $name = basename($file);
    my @v = map { $_ eq 'none' ? undef
                               : $vector{$_} // die "$file: no $_.txt\n" }
                split /-/, $name;

    ok(content_of($file) eq base_of(@v),
       "the fuzzer of base begins with $name");
}


# the tables of docs/state.md leave out no byte

my $document = content_of('docs/state.md');

for my $table (['An entry', 4096], ['A point', 128],
               ['An accepted image', 56])
{
    my ($title, $size) = @$table;
    my ($text) = $document =~ /^### \Q$title\E\n(.*?)^##/ms;
    my $at = 0;

    while ($text =~ /^\| (\d+) \| (\d+) \| ([a-z ]+) \|/mg) {
        is($1, $at, "the field \"$3\" follows the field before it");
        $at = $1 + $2;
    }

    is($at, $size, "the table \"$title\" has $size bytes");
}

done_testing;
