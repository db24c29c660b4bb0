#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
#
# tables.pl: generates the tables of documents from the tables of the source
# (`make docs`)
#
#     scripts/tables.pl DOCUMENT
#
# It prints the document.  What stands between these two lines is replaced by
# the table of this name:
#
#     <!-- made by "make docs": NAME -->
#     <!-- end -->
#
# In the source, the comment before an element of a table describes it, in
# Markdown.  It fails if an element has no description, or is of another form
# than it knows, and if the document lacks a table.
#
# Tests that load this file read tables of the source by Tables::table().

package Tables;

use strict;
use warnings;

my $api = 'src/http/api/ngx_http_bloom';

# by document

my %documents = (
    'docs/api.md' => {
        members => \&members,
        states  => \&states,
        metrics => \&metrics,
        errors  => \&errors,
    },
    'docs/operations.md' => {
        guards => \&guards,
    },
);


# Reads the array NAME in a file.  Returns its elements: { comment, columns },
# where a column is a reference to a string, or else the text of an expression.

sub table {
    my ($file, $name) = @_;

    open my $in, '<', $file or die "$0: $file: $!\n";
    my $text = do { local $/; <$in> };

    $text =~ s/.*\b\Q$name\E\[\] = \{(.*?)^\};.*/$1/ms
        or die "$0: $file has no table $name\n";

    my ($depth, @elements) = (0);
    my $element = { columns => [] };
    my $column;

    my $end_column = sub {
        push @{ $element->{columns} }, $column if defined $column;
        undef $column;
    };

    my $end_element = sub {
        $end_column->();
        push @elements, $element if @{ $element->{columns} };
        $element = { columns => [] };
    };

    while ($text =~ /\G(?:\s+|(\/\*.*?\*\/)|"((?:[^"\\]|\\.)*)"|(\w+|.))/gs) {
        my ($said, $string, $code) = ($1, $2, $3);

        if (defined $said) {
            $said =~ s/^\/\*[\s*]*|\s*\*\/$//g;
            $said =~ s/\s*\n\s*\*?\s*/ /g;
            $element->{comment} = $said;

        } elsif (defined $string) {
            $string =~ s/\\(.)/$1/g;
            $column = \((ref $column ? $$column : '') . $string);

        } elsif (defined $code) {
            $depth-- if $code =~ /[)}]/;

            if ($code eq ',' && $depth <= 1) {
                $depth == 0 ? $end_element->() : $end_column->();

            } elsif ($code !~ /[{}]/) {
                $column = ref $column ? $column : ($column // '') . $code;
            }

            $depth++ if $code =~ /[({]/;
        }
    }

    $end_element->();

    return @elements;
}


# Returns the value of a column that is a string, or undef if it is NULL.

sub string {
    my ($column) = @_;

    return $$column if ref $column;
    return undef if $column eq 'NULL';
    die "$0: \"$column\" is no string\n";
}


# Returns the cell of a description: a text without the full stop at its end.

sub cell {
    my ($of, $text) = @_;

    die "$0: $of has no description\n" unless defined $text;

    $text =~ s/\.$//;
    $text =~ s/\|/\\|/g;

    return $text;
}


# Marks names in the help of a metric as code: words in parentheses, words with
# "_", "=" or "--", and the values of its label that it explains.

sub marked {
    my ($help, @values) = @_;

    $help =~ s/\(([a-z]+)\)/(`$1`)/g;
    $help =~ s/((?:--)?\b[a-z]\w*(?:_\w+|=\w*)|--[a-z]+)/`$1`/g;

    for my $value (@values) {
        $help =~ s/(?<![`\w])(\Q$value\E)(?=:)/`$1`/g;
    }

    return $help;
}


# Returns rows of cells in Markdown.

sub rows {
    return join '', map { '| ' . join(' | ', @$_) . " |\n" } @_;
}


# Returns the elements that name the states of a metric.

sub names {
    my ($metric) = @_;

    return grep { ref $_->{columns}[0] }
           table("${api}_stats.c", "ngx_http_bloom_stats_${metric}_names");
}


# Returns the fields of the table of stats.

sub fields {
    my @fields;

    for my $element (table("${api}_stats_table.c",
                           'ngx_http_bloom_stats_fields'))
    {
        my ($place, $type, @rest) = @{ $element->{columns} };

        last if $type eq 'NGX_HTTP_BLOOM_STATS_END';

        my $needs = shift @rest;
        my ($metric, $labels, $help)
            = "@rest" eq 'MEMBER' ? () : map { string($_) } @rest;

        push @fields, { place => string($place), type => $type,
                        metric => $metric, labels => $labels, help => $help,
                        comment => $element->{comment} };
    }

    return @fields;
}


# Returns the description of a member.

sub described {
    my ($field) = @_;

    my $text = $field->{comment};
    my $help = $field->{help};

    if (defined $help) {
        $help = marked($help);
        $help =~ s/^Unix time/Time/;
    }

    return $help unless defined $text;

    if ($text =~ s/^\.\.\. //) {
        die "$0: $field->{place}: its metric has no help\n"
            unless defined $help;
        return "$help $text";
    }

    return $text;
}


# The members of a zone's state, in the order of its JSON.

sub members {
    my @fields = grep { defined $_->{place} } fields();
    my @rows;

    my $add;
    $add = sub {
        my ($object) = @_;

        for my $field (@fields) {
            my $place = $field->{place};

            next unless $place =~ /^\Q$object\E[a-z_]+$/;

            push @rows, [ "`$place`", cell($place, described($field)) ];
            $add->("$place.") if $field->{type} eq 'OBJECT';
        }
    };

    $add->('');

    die "$0: a member is in no object\n" if @rows != @fields;

    return "| member | meaning |\n|---|---|\n" . rows(@rows);
}


sub states {
    return "| `state` | meaning |\n|---|---|\n"
        . rows(map { my $name = string($_->{columns}[0]);
                     [ "`$name`", cell("state $name", $_->{comment}) ] }
                   names('state'));
}


sub errors {
    my @rows;

    for my $element (table("${api}_error.c", 'ngx_http_bloom_errors')) {
        my ($status, $code) = @{ $element->{columns} };

        next if $status == 200;

        my ($when, $remedy) = split / Remedy: /, $element->{comment} // '';

        die "$0: error $$code lacks a description or a remedy\n"
            unless defined $remedy;

        push @rows, [ $status, "`$$code`", $when, ucfirst $remedy ];
    }

    return "| status | code | when | what to do |\n|---:|---|---|---|\n"
        . rows(@rows);
}


# The metrics of zones, of rules and of the module.

sub metrics {
    my (@names, %metric);

    my @samples = (
        (grep { defined $_->{metric} } fields()),
        map { my ($name, $labels, undef, $help) = @{ $_->{columns} };
              { metric => string($name), labels => string($labels),
                help => string($help) } }
            grep { $_->{columns}[0] ne 'NULL' }
            table("${api}_metrics.c", 'ngx_http_bloom_metrics_counters'));

    for my $sample (@samples) {
        my $m = $metric{ $sample->{metric} };

        if (!$m) {
            push @names, $sample->{metric};
            $m = $metric{ $sample->{metric} } = { values => [] };
            $m->{help} = $sample->{help};
        }

        if (($sample->{type} // '') =~ /^STATE/) {
            $m->{label} = 'state';
            $m->{values} = [ map { string($_->{columns}[0]) }
                             names($sample->{metric}) ];

        } elsif (($sample->{labels} // '') =~ /^([a-z_]+)="([a-z_]+)"$/) {
            $m->{label} = $1;
            push @{ $m->{values} }, $2;
        }
    }

    return "| metric | type | further labels | help |\n|---|---|---|---|\n"
        . rows(map {
            my $m = $metric{$_};
            my @values = @{ $m->{values} };

            [ "`nginx_bloom_$_`", /_total$/ ? 'counter' : 'gauge',
              @values ? "`$m->{label}`: " . join(', ', @values) : '',
              cell($_, defined $m->{help} ? marked($m->{help}, @values)
                                          : undef) ]
        } @names);
}


# The messages of guards.  A value in a message is shown as N, if it is a number,
# or as "...".

sub guards {
    my @rows;

    for my $element (table('src/image/ngx_bloom_guard.c',
                           'ngx_bloom_guard_messages'))
    {
        my $message = string($element->{columns}[0]);

        $message =~ s/;.*//;
        $message =~ s/key%s/keys/;
        $message =~ s/%uL/N/g;
        $message =~ s/(?:%[sV])+/.../g;

        push @rows, [ "`$message`", $element->{comment}
                                    // die "$0: $message has no comment\n" ];
    }

    return "| message | what to do |\n|---|---|\n" . rows(@rows);
}


return 1 if caller;

die "usage: $0 DOCUMENT\n" if @ARGV != 1;

my %tables = %{ $documents{ $ARGV[0] } // die "$0: no tables in $ARGV[0]\n" };

open my $in, '<', $ARGV[0] or die "$0: $ARGV[0]: $!\n";
my $document = do { local $/; <$in> };

$document =~ s{^(<!--\ made\ by\ "make\ docs":\ (\w+)\ -->\n).*?
               ^(<!--\ end\ -->\n)}
              {
                  my ($begin, $name, $end) = ($1, $2, $3);

                  die "$0: unknown or second table $name\n"
                      unless $tables{$name};

                  $begin . "\n" . delete($tables{$name})->() . "\n" . $end;
              }gmsex;

die "$0: $ARGV[0] lacks the table $_\n" for sort keys %tables;

print $document;
