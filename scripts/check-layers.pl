#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# check-layers.pl checks that the folders of src/ are layers.
#
#   - A file includes only headers of its own layer or of those below it.
#   - No two files need each other, directly or in a longer circle.  X.c and
#     X.h count as one file.
#   - Both rules hold for the symbols of the compiled objects, too, which show a
#     call through a declaration in the wrong header.
#   - A function is declared in the header of the file that defines it, unless
#     the file is named after the function, as cmd_add.c.
#   - No file below src/http names anything of nginx's http or stream modules.
#   - No source file has more than 900 lines.
#   - `config` lists only files that exist, none of the tool's, and another file
#     needs each of them.
#
# Prints a line "ok ..." or "not ok ..." for each rule.  Run "make all" first.
# Then breaks the rules about the text of files in a copy, and checks that it
# notices.
#
# check-layers.pl --order prints the files of each layer from the ground up: a
# file needs only those above its line, and those of the layers below.

use strict;
use warnings;

use File::Basename qw/ basename dirname /;
use File::Copy qw/ copy /;
use File::Find;
use File::Path qw/ make_path /;
use File::Temp;

chdir dirname(__FILE__) . '/..' or die "cannot enter the checkout: $!\n";

# each layer, and the layers below that it may use

my %below = (
    'src/core'     => [],
    'src/interop'  => ['src/core'],
    'src/store'    => ['src/core'],
    'src/zone'     => ['src/store', 'src/core'],
    'src/change'   => ['src/zone', 'src/store', 'src/core'],
    'src/image'    => ['src/change', 'src/zone', 'src/store', 'src/core'],
    'src/process'  => ['src/image', 'src/change', 'src/zone', 'src/store',
                       'src/core'],
    'src/rules'    => ['src/process', 'src/image', 'src/change', 'src/zone',
                       'src/store', 'src/core'],
    'src/http'     => ['src/rules', 'src/process', 'src/image', 'src/change',
                       'src/zone', 'src/store', 'src/core'],
    'src/http/api' => ['src/http', 'src/rules', 'src/process', 'src/image',
                       'src/change', 'src/zone', 'src/store', 'src/core'],
    '.'            => ['src/http/api', 'src/http', 'src/rules', 'src/process',
                       'src/image', 'src/change', 'src/zone', 'src/store',
                       'src/core'],
);

# the folders of the tool, besides those below it

my %tool = (
    terminal => [],
    file     => ['terminal'],
    intake   => ['terminal'],
    keys     => ['intake', 'file', 'terminal'],
    image    => ['keys', 'intake', 'file', 'terminal'],
    journal  => ['intake', 'file', 'terminal'],
    remote   => ['terminal'],
    import   => ['remote', 'image', 'keys', 'intake', 'file', 'terminal'],
    status   => ['remote', 'terminal'],
    follow   => ['remote', 'terminal'],
    cmd      => ['import', 'follow', 'status', 'journal', 'remote', 'image',
                 'keys', 'intake', 'file', 'terminal'],
);

$below{"src/cli/$_"} = [(map { "src/cli/$_" } @{ $tool{$_} }), 'src/interop',
                        'src/core']
    for keys %tool;

my $longest = 900;

# As is usual in nginx, the files of a module refer to the module's structure.

my $module = qr/^ngx_http_bloom(?:_filter)?_module$/;

# The functions of this file are for other modules of nginx, as Lua.

my $exported = qr/_bloom_ffi\.c$/;

my $failed = 0;


# Prints the result of a rule: its violations, if there are any.
sub result {
    my ($rule, @violations) = @_;

    print @violations ? 'not ok' : 'ok', " - $rule\n";
    print "#   $_\n" for @violations;
    $failed = 1 if @violations;
}


# Returns the paths of all sources and headers below a directory.
sub files_of {
    my ($root) = @_;

    my @files = 'ngx_http_bloom_module.c';
    find({ no_chdir => 1, wanted => sub {
        push @files, s,^\Q$root\E/,,r if /\.[ch]$/;
    } }, "$root/src");

    return sort @files;
}


sub unit_of { return basename($_[0]) =~ s/\.[cho]$//r }


sub slurp {
    my ($file) = @_;

    open my $fh, '<', $file or die "cannot read $file: $!\n";
    local $/;
    return <$fh>;
}


# Returns a circle in a graph { unit => { unit => reason } }, as a list of units
# that begins and ends with the same one, or nothing.
sub circle {
    my ($graph) = @_;
    my (%seen, $visit);

    $visit = sub {
        my ($unit, @path) = @_;

        for my $i (0 .. $#path) {
            return @path[$i .. $#path], $unit if $path[$i] eq $unit;
        }
        return if $seen{$unit}++;

        for my $next (sort keys %{ $graph->{$unit} || {} }) {
            my @circle = $visit->($next, @path, $unit);
            return @circle if @circle;
        }
        return;
    };

    for my $unit (sort keys %$graph) {
        my @circle = $visit->($unit);
        return @circle if @circle;
    }

    return;
}


sub describe {
    my ($graph, @circle) = @_;

    return map { "$circle[$_] needs $circle[$_ + 1] for "
                 . $graph->{ $circle[$_] }{ $circle[$_ + 1] } }
           0 .. $#circle - 1;
}


# Returns whether a layer may use another one.
sub may_use {
    my ($from, $to) = @_;

    return $from eq $to || grep { $_ eq $to } @{ $below{$from} };
}


# Returns the violations of the rules about includes: references to a list of
# includes that point the wrong way, and to a circle.
sub includes {
    my ($root) = @_;
    my @files = files_of($root);
    my %path = map { basename($_) => $_ } @files;
    my (@wrong, %graph);

    push @wrong, "the name of $_ stands for two files"
        for grep { $path{ basename($_) } ne $_ } @files;

    for my $file (@files) {
        my $layer = dirname($file);

        if (!$below{$layer}) {
            push @wrong, "$file is in no layer";
            next;
        }

        my $line = 0;
        for (split /\n/, slurp("$root/$file")) {
            $line++;
            my ($header) = /^\s*#\s*include\s+"([^"]+)"/ or next;
            my $target = $path{ basename($header) };

            if ($header =~ m,/, || !$target) {
                push @wrong, "$file:$line includes \"$header\", which is not "
                             . 'the bare name of a header below src/';
                next;
            }

            push @wrong, "$file:$line includes $target, which is not below it"
                unless may_use($layer, dirname($target));

            $graph{ unit_of($file) }{ unit_of($target) } //= $header
                if unit_of($file) ne unit_of($target);
        }
    }

    return \@wrong, [ describe(\%graph, circle(\%graph)) ], \%graph;
}


# Returns the lines below src/http that name a type, a function or a header of
# nginx's http or stream modules.  Both kinds of module use those layers.
sub protocols {
    my ($root) = @_;
    my @named;

    for my $file (grep { m,^src/(?:core|store|zone|change|image|process|rules)/, } files_of($root)) {
        my $line = 0;
        for (split /\n/, slurp("$root/$file")) {
            $line++;
            push @named, "$file:$line names $1"
                if /\b(ngx_(?:http|stream)(?:_\w+|\.h))/;
        }
    }

    return @named;
}


# Checks which symbols the compiled objects need from each other.
sub symbols {
    my (%source, %defined, %needs, %used);

    for (grep { /\.c$/ } files_of('.')) {
        $source{ unit_of($_) } = $_;
    }

    my @objects = (
        glob('build/obj/{core,interop,cli/*}/*.o'),
        glob('build/nginx-installed-dynamic/objs/addon/*/ngx_*.o'));
    die "no objects below build/: run make all\n" unless @objects;

    my %seen;
    for my $object (@objects) {
        my $unit = unit_of($object);
        next if !$source{$unit} || $seen{$unit}++;

        open my $nm, '-|', 'nm', $object or die "cannot run nm: $!\n";
        while (<$nm>) {
            my ($kind, $symbol) = /([A-Z]) (\S+)$/ or next;
            if ($symbol =~ $module) {
                $used{$unit} = 1 if $kind ne 'U';
            } elsif ($kind eq 'U') {
                $needs{$unit}{$symbol} = 1;
            } else {
                $defined{$symbol} = $unit;
            }
        }
        close $nm
            or die "nm cannot read $object: run make all, and wait for it\n";
    }

    my @missing = grep { !$seen{$_} } sort keys %source;

    my (%graph, @wrong);
    for my $unit (sort keys %needs) {
        for my $symbol (sort keys %{ $needs{$unit} }) {
            my $from = $defined{$symbol} // next;
            next if $from eq $unit;

            $graph{$unit}{$from} //= $symbol;
            $used{$from} = 1;
            push @wrong, "$source{$unit} needs $symbol of $source{$from}"
                unless may_use(dirname($source{$unit}),
                               dirname($source{$from}));
        }
    }

    # the kinds of operations stand in one header, since only api.c uses them

    my $kinds = 'src/http/api/ngx_http_bloom_operation.h';

    my @undeclared;
    for my $symbol (sort keys %defined) {
        my $file = $source{ $defined{$symbol} };
        my $header = $file =~ s/\.c$/.h/r;
        next if $symbol eq 'main' || $symbol eq $defined{$symbol};
        push @undeclared, "$header does not declare $symbol"
            unless grep { -e && slurp($_) =~ /\b\Q$symbol\E\b/ }
                        $header, $kinds;
    }

    return {
        missing => [map { "$source{$_} has no object" } @missing],
        wrong => \@wrong,
        circle => [describe(\%graph, circle(\%graph))],
        undeclared => \@undeclared,
        used => \%used,
        graph => \%graph,
    };
}


# Prints each layer's files by the longest way down from each within its layer.
# The graphs have no circle.
sub print_order {
    my @graphs = @_;
    my (%layer, %height, $height);

    $layer{ unit_of($_) } = dirname($_) for files_of('.');

    $height = sub {
        my ($unit) = @_;

        return $height{$unit} //= do {
            my $most = 0;
            for my $below (map { keys %{ $_->{$unit} || {} } } @graphs) {
                next if $layer{$below} ne $layer{$unit};
                my $steps = 1 + $height->($below);
                $most = $steps if $steps > $most;
            }
            $most;
        };
    };

    for my $layer ('src/core', 'src/interop', 'src/store', 'src/zone',
                   'src/change', 'src/image', 'src/process', 'src/rules',
                   'src/http', 'src/http/api',
                   map { "src/cli/$_" } qw(terminal file intake keys image
                                           journal remote import status follow
                                           cmd))
    {
        my @rows;
        push @{ $rows[ $height->($_) ] }, s/^(?:ngx_http|ngx)?_?bloom_//r
            for sort grep { $layer{$_} eq $layer } keys %layer;

        print "$layer\n";
        print '    ', join(', ', @$_), "\n" for @rows;
        print "\n";
    }
}


# Returns what is wrong with the files that config lists.
sub listed {
    my ($used) = @_;
    my ($list) = slurp('config') =~ /^ngx_bloom_files="\n(.*?)^"/ms
        or return 'config has no list ngx_bloom_files';
    my @files = split ' ', $list;
    my @wrong;

    push @wrong, "config lists $_, which does not exist"
        for grep { !-e } @files;
    push @wrong, "config lists $_, which is the tool's"
        for grep { m,^src/(?:interop|cli)/, } @files;
    push @wrong, "config lists $_, which no other file needs"
        for grep { /\.c$/ && !/$exported/ && !$used->{ unit_of($_) } } @files;

    my %listed = map { $_ => 1 } @files;
    push @wrong, "config does not list $_"
        for grep { m,^src/(?:store|zone|change|image|process|rules|http)/, && !$listed{$_} }
            files_of('.');

    return @wrong;
}


# Adds a line to a file of a copy of the sources, and returns what a check of the
# copy notices.
sub broken {
    my ($file, $line, $check) = @_;
    my $copy = File::Temp->newdir;

    for my $source (files_of('.')) {
        make_path("$copy/" . dirname($source));
        copy($source, "$copy/$source") or die "cannot copy $source: $!\n";
    }

    open my $fh, '>>', "$copy/$file" or die "cannot write $file: $!\n";
    print $fh "$line\n";
    close $fh;

    return $check->("$copy");
}


my ($wrong, $circle, $included) = includes('.');
my $symbols = symbols();

if (@ARGV) {
    if ("@ARGV" ne '--order') {
        print STDERR "usage: $0 [--order]\n";
        exit 2;
    }
    die "there is a circle: run $0\n" if @$circle || @{ $symbols->{circle} };
    print_order($included, $symbols->{graph});
    exit;
}

result('every #include points to the same layer or to one below', @$wrong);
result('no files include each other in a circle', @$circle);

result('no file below src/http names http or stream', protocols('.'));

result("no source file has more than $longest lines",
       map { my $n = () = slurp($_) =~ /\n/g;
             $n > $longest ? "$_ has $n lines" : () }
       files_of('.'));

result('every source file is compiled', @{ $symbols->{missing} });
result('every file calls only its own layer or those below',
       @{ $symbols->{wrong} });
result('no files call each other in a circle',
       @{ $symbols->{circle} });
result('every function is declared in the header of its file',
       @{ $symbols->{undeclared} });
result('config lists the files of the module, and each is needed',
       listed($symbols->{used}));

my ($more) = broken('src/core/bloom_crc.h', '#include "ngx_bloom_io.h"',
                    \&includes);
result('an include that points the wrong way is noticed',
       @$more == @$wrong + 1 ? () : 'it was not found');

(undef, $circle) = broken('src/core/bloom_bytes.h', '#include "bloom_image.h"',
                          \&includes);
result('a circle of includes is noticed', @$circle ? () : 'none was found');

my @named = broken('src/rules/ngx_bloom_rule.h', '#include <ngx_http.h>',
                   \&protocols);
result('an http header in src/rules is noticed',
       @named == 1 ? () : 'it was not found');

exit $failed;
