#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from auto" reads extracts of published lists,
# from a file and from standard input.  Each file in t/lists/extracts has the
# shape of such a list, and the file of that name with .want has what must come
# of it, in lines such as
#
#     from csv:url                 the format, as the build must name it
#     named lines                  instead: the format that --from names, where
#                                  auto would choose another one
#     url http://evil.example/     a key in the form url
#     host evil.example            a key in the form host; and so for raw
#     exception good.example       a key for --exceptions
#     comments 3                   how many lines are comments
#     skipped 3 is not online      how many entries are skipped, and the reason
#
# The image has these keys and no others.  A form is tested if it has keys.
# Exceptions, comments and skipped entries are those of the form url, or of
# host if url has no keys.  Two such files are a new test.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(build_text content_of json lines_of tool_test);

my $t = tool_test();
my ($folder) = __FILE__ =~ m{^(.*)/};
my @lists = grep { !/\.want\z/ } glob "$folder/extracts/*";

cmp_ok(scalar @lists, '>', 10, 'there are extracts of lists');

for my $path (@lists) {
    my ($name) = $path =~ m{([^/]+)\z};

    subtest $name => sub { read_list($name, $path) };
}

done_testing();


sub read_list {
    my ($name, $path) = @_;

    my (%keys, %skipped, @exceptions, $from, $named, $comments);

    for (split /\n/, content_of("$path.want")) {
        if (/^from (.+)/) {
            $from = $1;
        } elsif (/^named (.+)/) {
            $named = $1;
        } elsif (/^comments (\d+)/) {
            $comments = $1;
        } elsif (/^exception (.+)/) {
            push @exceptions, $1;
        } elsif (/^skipped (\d+) (.+)/) {
            $skipped{$2} = $1;
        } elsif (/^(url|host|raw|lower) (.+)/) {
            push @{ $keys{$1} }, $2;
        } else {
            die "$path.want: $_\n";
        }
    }

    my $main = $keys{url} ? 'url' : 'host';

    ok($keys{$main}, "$name has keys in the form $main");

    for my $form (sort keys %keys) {
        my @options = ('--from', $named // 'auto', '--form', $form, '-p',
                       '1e-9', '--seed', 1, '--max-skipped', '100%',
                       '--exceptions', $t->testdir . '/exceptions');
        my @keys = @{ $keys{$form} };
        my ($image, $json, $err) = build_text('', @options, $path);

        is($err, defined $named ? ''
                 : "ngx-bloom build: $path: is read with --from $from\n",
           "the build says in the form $form how it reads the file");
        is($json->{items}, scalar @keys,
           "the list has so many keys in the form $form");
        is($json->{errors}, 0, "the list has no invalid line in the form $form");

        my (undef, $out) = $t->run_tool('test', $image,
                                        { stdin => lines_of(@keys) });
        is($out, lines_of(map { "present $_" } @keys),
           "the image has the keys in the form $form");

        if ($form eq $main) {
            is(content_of($t->testdir . '/exceptions'), lines_of(@exceptions),
               'these keys are exceptions');
            is($json->{comments}, $comments, 'comments are counted')
                if defined $comments;
            is_deeply({ map { $_->{reason} => $_->{count} }
                        @{ $json->{skipped_by_reason} } },
                      \%skipped, 'the other lines are skipped for this reason');
        }

        my (undef, $piped) = build_text(content_of($path), @options);
        is_deeply([@$piped{qw(received skipped items)}],
                  [@$json{qw(received skipped items)}],
                  "standard input gives the same in the form $form");
    }

    return;
}
