#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests which keys "ngx-bloom build" takes from lists as they are published, and
# what it skips for which reason.  NAME.list in t/lists/extracts is a list, and
# NAME.want beside it says, in any order,
#
#     options --from hosts --form host    how it is built; the first line
#     comments 3                          how many lines are comments
#     key bad.example                     a canonical key of the image
#     exception good.example              a key for --exceptions
#     skipped 2 has a wildcard            how many entries, and the reason
#
# A format is added to this test by two such files.

use strict;
use warnings;

use File::Basename qw(basename);

use BloomTest;
use BloomTest::Tool qw(content_of json tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;

for my $list (sort glob 't/lists/extracts/*.list') {
    my $name = basename($list, '.list');
    my @want = split /\n/, content_of($list =~ s/list$/want/r);
    my ($options) = shift(@want) =~ /^options (.*)/;
    my @options = split ' ', $options;

    my %want;
    for (@want) {
        my ($what, $value) = split / /, $_, 2;
        push @{ $want{$what} }, $value;
    }

    my $out = tool_ok('build', '-o', "$dir/$name", @options, '-p', '1e-9', '-n',
                      1000, '--exceptions', "$dir/exceptions", '--json', $list);
    my $json = json($out);
    my @keys = @{ $want{key} };

    (undef, $out) = $t->run_tool('test', "$dir/$name", '--', @keys);
    is($out, join('', map { "present $_\n" } @keys), "$name: these are keys");
    is($json->{items}, scalar @keys, "$name: nothing else is a key");
    is($json->{comments}, ($want{comments} // [0])->[0],
       "$name: comments are counted");
    is_deeply([sort map { "$_->{count} $_->{reason}" }
                        @{ $json->{skipped_by_reason} }],
              [sort @{ $want{skipped} // [] }], "$name: these are skipped");
    is(content_of("$dir/exceptions"),
       join('', map { "$_\n" } @{ $want{exception} // [] }),
       "$name: these are exceptions");
}

done_testing();
