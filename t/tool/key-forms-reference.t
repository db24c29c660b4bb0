#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the key forms against an implementation by a second author, which
# t/reference/README.md describes.

use strict;
use warnings;

use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../reference';

use BloomTest;
use KeyForms;

my $t = BloomTest->new(module => 0);
my $here = dirname(__FILE__) . '/..';
my $dir = $t->testdir;

$ENV{TEST_BLOOM_TOOL} //= "$here/../build/ngx-bloom";


sub unescape {
    my ($text) = @_;

    return $text =~ s/\\(?:x([0-9a-f]{2})|\\)/defined $1 ? chr hex $1 : '\\'/ger;
}


# Returns the golden vectors: [key], or [key, canonical, expressions].

sub golden {
    my ($form) = @_;

    my $file = "$here/golden/key-forms/$form.txt";
    my @vectors;

    open my $in, '<:raw', $file or die "$file: $!\n";

    while (<$in>) {
        my ($name, $value) = /^(key|canonical|expression)\s+(.+)$/ or next;

        push @vectors, [] if $name eq 'key';
        push @{ $vectors[-1] }, unescape($value);
    }

    return @vectors;
}


# Returns the exit status and the last line of the output.

sub compare {
    my (@arguments) = @_;

    my $command = join ' ', map { "'$_'" } $^X, "$here/reference/compare.pl",
                                           @arguments;
    my $out = qx($command);
    my $status = $? >> 8;

    return ($status, $out, $out =~ /([^\n]*)\n\z/);
}


# ---- the reference agrees with the golden vectors ----

for my $form (qw(host url)) {
    my @vectors = golden($form);

    cmp_ok(scalar @vectors, '>', 30,
           "there are more than 30 golden vectors of the key form $form");

    is_deeply([$_->[0], KeyForms::expand($form, $_->[0])], $_,
              "the reference expands this key as its vector has it ($form: "
              . ($_->[0] =~ s/[^ -~]/?/gr) . ')')
        for @vectors;

    # the seeds are the keys without a line end

    $t->write_file("golden-$form.txt",
                   join '', map { "$_->[0]\n" }
                            grep { $_->[0] !~ /[\r\n\0]/ } @vectors);
}


# ---- the tool agrees with the reference ----

for (['url', 'urls.txt', 40000], ['host', 'hosts.txt', 30000]) {
    my ($form, $list, $count) = @$_;
    my ($status, $out, $last) = compare('--form', $form, '--count', $count,
                                        "$here/reference/$list",
                                        "$dir/golden-$form.txt");

    is($status, 0,
       "tool and reference agree on the key form $form") or diag($out);

    my ($compared, $invalid) = $last =~ /^(\d+) .*, (\d+) invalid/;

    cmp_ok($compared, '>', $count,
           "all mutations of keys of the form $form were compared");
    cmp_ok($invalid, '>', $compared / 20,
           "some mutations of keys of the form $form are invalid");
    cmp_ok($invalid, '<', $compared * 9 / 10,
           "some mutations of keys of the form $form are valid");
}


# ---- the comparison notices a difference ----

for (['an expression', 's,"b\.example/","c.example/",'],
     ['what is valid', 's,^.*mailto.*$,{"canonical":null\\,"expressions":[]},'],
     ['what is not', 's,^{"canonical":null.*,{"canonical":"x"},'])
{
    my ($what, $change) = @$_;

    $t->write_file('tool', "#!/bin/sh\n'$ENV{TEST_BLOOM_TOOL}' \"\$\@\" | "
                           . "sed '$change'\n");
    chmod 0755, "$dir/tool";
    $t->write_file('keys', "http://a.b.example/\nhttp://mailto/\nmailto:x\n");

    my ($status, $out, $last) = compare('--form', 'url', '--tool', "$dir/tool",
                                        "$dir/keys");

    is($status, 1, "the comparison notices a difference in $what");
    is($last, '3 keys compared, 1 invalid, 1 differ',
       "the comparison counts a difference in $what");
}

done_testing();
