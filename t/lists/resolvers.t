#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that an image blocks what the resolver blocks that its list is written
# for: dnsmasq, unbound, and BIND with a response policy zone.  The resolver and
# the image are asked for every name in t/lists/extracts/FORMAT.list, for a name
# below each, and for names beside them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Resolver qw(blocks resolver resolver_stop);
use BloomTest::Tool qw(content_of tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;

# A key stands for a host and all names below it.  So these differ, as
# docs/lists.md says, and only these.  The second element is 1 if the image
# blocks what the resolver does not.

my %differences = (
    dnsmasq => {
        'a wildcard stands for the domain, too' => [qr/^wild\.example$/, 1],
        'a wildcard within a label is skipped' => [qr/ends\.example$/, 0],
        'a name below a blocked one is answered otherwise'
            => [qr/^(?:below\.)?(?:own|elsewhere)\.wide\.example$/, 1],
        'a domain with addresses of its own in it is skipped'
            => [qr/^(?:below\.(?:\w+\.)?|x-\w+\.)?
                    (?:lan|office|shop)\.example$/x, 0],
    },
    unbound => {
        'local-data stands for names below it, too'
            => [qr/^below\.(?:alone|alone4|alone6)\.example$
                   |^below\.alone\.clear\.example$/x, 1],
        'a name below a blocked one is answered otherwise'
            => [qr/^own\.partly\.example$/, 1],
        'a domain with addresses of its own in it is skipped'
            => [qr/^(?:below\.|x-nas\.|below\.nas\.)?lan\.example$/, 0],
    },
    rpz => {
        'a name stands for those below it, too'
            => [qr/^below\.(?:alone|alone6)\.example$/, 1],
        'a wildcard stands for the domain, too' => [qr/^wild\.example$/, 1],
        'a name below a blocked one is answered otherwise'
            => [qr/^(?:below\.)?(?:own|garden)\.bad\.example$/, 1],
        'a name with data of its own is skipped' => [qr/^text\.example$/, 0],
    },
);

# Returns the names in a list, the names below them and the names beside them.

sub names {
    my ($list) = @_;

    # names of a zone file are relative

    $list =~ s/\.rpz\.test\b//g;
    my ($before, $origin, $after)
        = split /^\$ORIGIN (\S+\.example)\.\n/m, $list;
    $list = $before . ($after // '') =~ s/^((?:\*\.)?\w+)/$1.$origin/gmr;

    my %names;
    for my $name (map { lc } $list =~ /([a-z0-9][a-z0-9.-]*\.example)\b/gi) {
        my $beside = $name =~ s/^[^.]+/x-$&/r;
        @names{$name, "below.$name", $beside} = ();
    }

    return sort keys %names;
}

for my $format (sort keys %differences) {
    my $list = content_of("t/lists/extracts/$format.list");
    my @names = names($list);

    my $resolver = resolver($t, $format, $list);
    my $blocks = blocks($resolver, @names);
    resolver_stop($resolver);

    tool_ok('build', '-q', '-o', "$dir/$format", '--from', $format, '--form',
            'host', '-p', '1e-9', '-n', 1000, '--exceptions', "$dir/exceptions",
            "t/lists/extracts/$format.list");
    tool_ok('build', '-q', '-o', "$dir/except", '--form', 'host', '-p', '1e-9',
            '-n', 1000, '--allow-empty', "$dir/exceptions");

    my %present;
    for my $image ($format, 'except') {
        my (undef, $out) = $t->run_tool('test', "$dir/$image", '--', @names);
        $present{$image}{$_} = 1 for $out =~ /^present (.*)$/mg;
    }

    my (@wrong, %seen);
    for my $name (@names) {
        my $ours = $present{$format}{$name} && !$present{except}{$name} ? 1 : 0;
        my $theirs = $blocks->{$name} ? 1 : 0;
        next if $ours == $theirs;

        my ($kind) = grep {
            my ($pattern, $more) = @{ $differences{$format}{$_} };
            $name =~ $pattern && $ours == $more;
        } sort keys %{ $differences{$format} };

        push @wrong, "$name: the resolver "
                     . ($theirs ? 'blocks it' : 'answers') if !defined $kind;
        $seen{$kind}++ if defined $kind;
    }

    cmp_ok(scalar(grep { $blocks->{$_} } @names), '>', 20,
           "$format: the resolver blocks names of the list");
    cmp_ok(scalar(grep { !$blocks->{$_} } @names), '>', 20,
           "$format: the resolver answers for other names");
    is_deeply(\@wrong, [],
              "$format: the image blocks what the resolver blocks")
        or diag(join "\n", @wrong);
    is_deeply([sort keys %seen], [sort keys %{ $differences{$format} }],
              "$format: each kind of difference is seen");
}

done_testing();
