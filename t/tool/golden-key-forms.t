#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests golden vectors of key forms: the tool converts each key to the canonical
# form and the expressions of its vector.  This test computes again, from
# docs/key-forms.md alone, whether a list can have the key.  The canonical form of a
# canonical key, and of each expression, is the key itself.  key-forms-reference.t
# computes the expressions again.

use strict;
use warnings;

use File::Basename qw(dirname);
use JSON::PP qw(decode_json);

use BloomTest;

my $t = BloomTest->new(module => 0);
my $golden = dirname(__FILE__) . '/../golden/key-forms';


sub unescape {
    my ($text) = @_;

    $text =~ s/\\(?:x([0-9a-f]{2})|\\)/defined $1 ? chr hex $1 : '\\'/ge;

    return $text;
}


# Returns [key, canonical, expressions], or [key] for an invalid key.

sub vectors {
    my ($form) = @_;

    open my $in, '<:raw', "$golden/$form.txt" or die "$form.txt: $!\n";
    my @vectors;

    while (<$in>) {
        next if /^#|^$|^form /;

        if (/^key\s+(.+)$/) {
            push @vectors, [unescape($1)];
        } elsif (/^canonical\s+(.+)$/) {
            push @{ $vectors[-1] }, unescape($1);
        } elsif (/^expression\s+(.+)$/) {
            push @{ $vectors[-1] }, unescape($1);
        } else {
            /^invalid$|^second / or die "$form.txt line $.: not understood\n";
        }
    }

    return @vectors;
}


# Returns what the tool makes of a key, in the same form.

sub expanded {
    my ($form, $key) = @_;

    my (undef, $out) = $t->run_tool('expand', '--json', '--form', $form,
                                    $key =~ /\0/ ? () : '-0', '-f', '-',
                                    { stdin => $key });
    my $got = JSON::PP->new->decode($out);

    return [$key] if !defined $got->{canonical};
    return [$key, $got->{canonical}, @{ $got->{expressions} }];
}


# Returns 1 if a list can have the key.

sub can_be_added {
    my ($form, $key, $canonical) = @_;

    return 1 if $form eq 'lower';
    return 0 if $key =~ /[^\0- ][\0- ]*[\t\r\n][\0- ]*[^\0- ]/;
    return $canonical =~ /^[a-z0-9._:-]+$/ && $key !~ /@/ ? 1 : 0
        if $form eq 'host';

    return 0 if $key =~ m{^[\0- ]*+(?![a-z][a-z0-9+.-]*:)[^/\\?]*://}i;

    my ($host) = $canonical =~ m{^[a-z][a-z0-9+.-]*://([^/]*)};

    return $host =~ /[%<>^|]/ ? 0 : 1;
}


# Returns 1 if a list can have the key, by the tool, and what the tool prints.
# Each key is a list of its own: of many invalid lines, only the first few with
# the same reason are printed.

sub added {
    my ($form, $key) = @_;

    my ($exit, undef, $err)
        = $t->run_tool('build', '-q', '-0', '--form', $form, '-o',
                       $t->testdir . '/image.bloom', { stdin => "$key\0" });

    return ($exit == 0 ? 1 : 0, $err);
}


for my $form (qw(lower host url)) {
    my @vectors = vectors($form);

    for my $vector (grep { $_->[0] !~ /\0/ } @vectors) {
        my ($key, $canonical) = @$vector;
        my $wanted = defined $canonical
                     && can_be_added($form, $key, $canonical) ? 1 : 0;
        my ($can, $err) = added($form, $key);

        is($can, $wanted,
           'a list can' . ($wanted ? '' : 'not') . " have this key ($form: "
           . $key =~ s/([^ -~])/sprintf '\x%02x', ord $1/ger . ')')
            or diag($err);
    }

    cmp_ok(scalar @vectors, '>=', 5,
           "there are five vectors of the key form $form or more");
    ok(scalar(grep { @$_ == 1 } @vectors),
       "some vectors of the key form $form are invalid keys")
        if $form ne 'lower';

    for my $vector (@vectors) {
        my ($key, $canonical, @expressions) = @$vector;
        my $name = "$form: " . $key =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger;

        is_deeply(expanded($form, $key), $vector,
                  "the tool expands this key as its vector has it ($name)");
        next if !defined $canonical;

        for my $again ($canonical, @expressions) {
            my (undef, $shown, $first) = @{ expanded($form, $again) };

            is($again eq $canonical ? $shown : $first, $again,
               "$again is its own canonical form ($name)");
        }
    }
}

done_testing();
