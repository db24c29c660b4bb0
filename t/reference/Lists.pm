# SPDX-License-Identifier: BSD-2-Clause

package Lists;

# A second reader of published lists, from docs/key-forms.md and the formats'
# own documents; README.md in this folder tells about it.  It is plain and slow.
#
#     my $list = Lists::read_list('adblock', $path);
#
# The result is a hash:
#
#     entries     one hash for each entry that expressions can name: line (its
#                 number), keys (hosts, or URLs without their scheme), urls
#                 (addresses that the entry blocks and that the keys find)
#     others      addresses that no line blocks, where a reader that takes a
#                 line for another blocks them
#     exceptions  the keys of the entries that allow
#     skipped     a hash: how many lines no expression names, by the reason
#
# Lists::beside($list) returns addresses that no entry blocks.
#
# The formats are adblock, hosts, dnsmasq, rpz, lines and csv:COLUMN.

use strict;
use warnings;

use KeyForms;

use constant DIRECTORIES => 4;           # of a URL, that are looked up

# names that hosts files give to the machine itself

my %own = map { $_ => 1 } qw(
    localhost localhost.localdomain local broadcasthost ip6-localhost
    ip6-loopback ip6-localnet ip6-mcastprefix ip6-allnodes ip6-allrouters
    ip6-allhosts 0.0.0.0
);

# options with types of requests, besides those of pages, and options that leave
# a filter as wide as it is without them

my %type = map { $_ => 1 } qw(
    stylesheet css image object object-subrequest script xmlhttprequest xhr
    subdocument frame font media websocket ping beacon other popup popunder
    generichide ghide specifichide shide elemhide ehide inline-font
    inline-script
);
my %page = map { $_ => 1 } qw(all document doc);
my %wide = map { $_ => 1 } qw(important badfilter _);

# conditions of !#if that hold in uBlock Origin in Chromium on a desktop

my %holds = map { $_ => 1 } qw(ext_ublock env_chromium cap_ipaddress
                               adguard_ext_chromium adguard_ext_opera);

my $label = qr/[a-z0-9_\x80-\xff](?:[a-z0-9_\x80-\xff-]*
               [a-z0-9_\x80-\xff])?/xi;
my $host = qr/$label(?:\.$label)+/;

my %reader = (hosts => \&hosts, dnsmasq => \&dnsmasq,
              rpz => \&rpz, lines => \&plain);


sub read_list {
    my ($format, $path) = @_;

    my $list = { entries => [], others => [], exceptions => [],
                 skipped => {} };

    open my $in, '<:raw', $path or die "$path: $!\n";

    if ($format =~ /^csv:(.+)/) {
        csv($list, $1, $in);
        return $list;
    }

    if ($format eq 'adblock') {
        adblock($list, $in);
        return $list;
    }

    my $reader = $reader{$format} or die "no format $format\n";

    while (my $line = <$in>) {
        $line =~ s/^\xef\xbb\xbf// if $. == 1;
        $line =~ s/^\s+|\s+\z//g;
        $reader->($list, $line) if $line ne '';
    }

    return $list;
}


# ---- what an entry blocks ----

sub skip {
    my ($list, $reason) = @_;

    $list->{skipped}{$reason}++;
}


sub entry {
    my ($list, $keys, @urls) = @_;

    push @{ $list->{entries} },
         { line => $., keys => ref $keys ? $keys : [$keys], urls => \@urls };
}


# A host blocks everything on it and below it.

sub host {
    my ($list, $name) = @_;

    entry($list, $name, "http://$name/", "https://$name/a/page?q",
          map { "https://$_/" } below($name));
}


# A host below another, unless that is an address or has so many labels that no
# expression names it.

sub below {
    my ($name) = @_;

    return if $name =~ /^[0-9.]+\z|:/ || ($name =~ tr/.//) > 4;
    return "www.$name";
}


# Addresses beside the entries, which no entry blocks: pages beside a page, the
# host above it, and hosts that differ in a label.

sub beside {
    my ($list) = @_;

    my @entries = @{ $list->{entries} };
    my %listed = map { my (undef, $key) = KeyForms::expand('url', $_);
                       defined $key ? ($key => 1) : () }
                     map { @{ $_->{keys} } } @entries;
    my @urls = @{ $list->{others} };

    for (@entries) {
        my ($host, $path) = $_->{keys}[0] =~ m,^([^/:]+)(?::\d+)?(.*),;

        push @urls, "http://$host.example/";
        push @urls, "http://not-$host/" if $host !~ /^[0-9.]+\z/;
        push @urls, 'http://' . $host =~ s/^[^.]+\.//r . '/'
            if $host =~ /\..*\./ && $host !~ /^[0-9.]+\z/;
        push @urls, "http://$host/", "http://$host${path}-beside"
            if length $path > 1;
    }

    return grep {
        my (undef, @expressions) = KeyForms::expand('url', $_);
        !grep { $listed{$_} } @expressions;
    } @urls;
}


# ---- formats ----

sub plain {
    my ($list, $line) = @_;

    return skip($list, 'comment') if $line =~ /^[#!;]/;

    $line =~ s/\s+#.*//;

    return host($list, $1) if $line =~ /^(?:\*?\.)?($host)\z/;
    return entry($list, $line =~ s,^\w+://,,r, $line)
        if $line =~ m,^https?://$host\.?(?::\d+)?(?:[/?]|\z),i;

    skip($list, 'not a host and not a URL');
}


sub hosts {
    my ($list, $line) = @_;

    my ($address, @names) = split ' ', $line =~ s/#.*//r;

    return skip($list, 'comment') if !defined $address;
    return skip($list, 'no address')
        if $address !~ /^[0-9.]+\z|^[0-9a-f:]*:[0-9a-f:]*(?:%\w+)?\z/i;

    for my $name (@names) {
        $own{lc $name} ? skip($list, "the machine's own name")
                       : host($list, $name);
    }
}


sub dnsmasq {
    my ($list, $line) = @_;

    return skip($list, 'comment') if $line =~ /^#/;

    my ($directive, $names, $to)
        = $line =~ m,^(address|server|local)\s*=\s*/(.+)/([^/]*)\z,
        or return skip($list, 'another directive');

    return skip($list, 'another server')
        if $directive ne 'address' && $to !~ /^#?\z/;

    for my $name (map { s/^\*?\.//r } split m,/,, $names) {
        if ($to eq '#') {
            push @{ $list->{exceptions} }, $name;
        } else {
            host($list, $name);
        }
    }
}


sub rpz {
    my ($list, $line) = @_;

    $line =~ s/;.*//;

    return skip($list, 'comment') if $line eq '';
    return skip($list, 'directive') if $line =~ /^\$/;

    my ($name, $type, $value)
        = $line =~ /^(\S+)\s+(?:\d+\w*\s+)?(?:IN\s+)?
                    (CNAME|A|AAAA|SOA|NS|TXT)\s+(\S+)/xi
        or return skip($list, 'another record');

    return skip($list, uc $type) if $type !~ /^(?:CNAME|A|AAAA)\z/i;
    return skip($list, 'trigger') if $name =~ /\.rpz-/i;

    $name =~ s/^\*\.//;

    if ($value =~ /^rpz-passthru/i) {
        push @{ $list->{exceptions} }, $name;
        return;
    }

    host($list, $name);
}


# Quotes may enclose line ends.  Comments stand before the header.

sub csv {
    my ($list, $column, $in) = @_;

    my $text = do { local $/; <$in> };
    my $at;

    $text =~ s/^\xef\xbb\xbf//;
    $text =~ s/^(?:#[^\n]*\n)+//;
    $at = $column - 1 if $column =~ /^\d+\z/;

    while ($text =~ /\G((?:[^"\n]|"(?:[^"]|"")*")*)(?:\n|\z)/g) {
        my $record = $1 =~ s/\r\z//r;

        last if $record eq '' && pos $text == length $text;
        next if $record eq '';

        my @fields;

        while ($record =~ /\G(?:"((?:[^"]|"")*)"|([^",]*))(?:,|\z)/g) {
            push @fields, defined $1 ? $1 =~ s/""/"/gr : $2;
            last if pos $record == length $record;
        }

        if (!defined $at) {
            ($at) = grep { $fields[$_] eq $column } 0 .. $#fields;
            die "no column $column\n" if !defined $at;
            next;
        }

        plain($list, $fields[$at] // '');
    }
}


# ---- Adblock-style filters ----

sub adblock {
    my ($list, $in) = @_;

    my (@filters, @blocks, %cancelled);

    while (my $line = <$in>) {
        $line =~ s/^\xef\xbb\xbf// if $. == 1;
        $line =~ s/\s+\z//;

        next if condition(\@blocks, $line);

        $line =~ s/^\s+//;

        next if $line eq '';

        if ($line =~ /^!|^\[Adblock|^#(?:\s|\z)|^####/i) {
            skip($list, 'comment');

        } elsif (grep { !$_ } @blocks) {
            skip($list, 'condition');

        } elsif ($line =~ /#[@?\$%]*#|\$\$/) {
            skip($list, 'part of a page');

        } else {
            push @filters, [$., filter($line =~ s/\s+#.*//r)];
        }
    }

    for (map { $_->[1] } @filters) {
        $cancelled{$_} = 1 for $_->{cancels} ? @{ $_->{parts} } : ();
    }

    for (@filters) {
        my ($number, $filter) = @$_;
        my @parts = grep { !$cancelled{$_} } @{ $filter->{parts} };

        local $. = $number;

        defined $filter->{skip} ? skip($list, $filter->{skip})
        : !@parts ? skip($list, '$badfilter')
                  : pattern($list, $filter);
    }
}


# Takes !#if and the like.  Each open block has an element: whether it holds.

sub condition {
    my ($blocks, $line) = @_;

    if ($line =~ /^!#if\b\s*(.*)/) {
        my $says = $1 =~ s/(\w+)/$holds{$1} ? 1 : 0/ger;

        die "condition $1\n" if $says !~ /^[01!&|() ]+\z/;
        push @$blocks, eval($says) ? 1 : 0;

    } elsif ($line =~ /^!#else\b/) {
        $blocks->[-1] = !$blocks->[-1] if @$blocks;

    } elsif ($line =~ /^!#endif\b/) {
        pop @$blocks;

    } else {
        return 0;
    }

    return 1;
}


# Divides a filter.  Its parts are what a $badfilter filter takes away: the one
# for pages, and the one for requests of any type.

sub filter {
    my ($line) = @_;

    my $allows = $line =~ s/^\@\@// ? 1 : 0;
    my @options;

    if ($line =~ m,^(.*)\$(?![/|)])(.+)\z, && substr($1, -1) ne '\\') {
        ($line, @options) = ($1, split /,/, $2);
    }

    return { skip => 'regular expression' } if $line =~ m,^/.+/\z,;

    my %has = map { $_ => 1 } @options;
    my ($narrow) = grep { !$type{ s/^~//r } && !$page{$_} && !$wide{$_} }
                        @options;

    return { skip => '$' . $narrow =~ s/=.*//r } if defined $narrow;

    my @types = grep { $type{$_} || $page{$_} } @options;
    my @not = sort grep { /^~/ } @options;
    my $rest = "$allows,@not," . ($has{important} ? 1 : 0) . ",$line";
    my @parts = ((grep { $page{$_} } @types) ? "page,$rest" : (),
                 (!@not && (!@types || $has{all})) ? "any,$rest" : ());

    return { skip => '$badfilter', parts => \@parts, cancels => 1 }
        if $has{badfilter};
    return { skip => 'not for pages' } if !@parts;
    return { pattern => $line, allows => $allows, parts => \@parts };
}


sub pattern {
    my ($list, $filter) = @_;

    my ($name, $path, $end) = parts($filter->{pattern})
        or return skip($list, 'pattern');
    my $directory = $path =~ m,/\z, && $path !~ /\?/;

    # what a key says of more URLs than the filter

    push @{ $list->{others} }, "http://$name${path}page"
        if $directory && $end eq '^';

    return skip($list, 'exact page or any query')
        if ($end eq '|' && $path !~ /\?/) || ($directory && $end eq '^')
           || $path =~ m,\?\z|//\z,;

    if ($filter->{allows}) {
        push @{ $list->{exceptions} }, $name . $path;
        return;
    }

    return host($list, $name) if $path eq '' || $path eq '/';
    return skip($list, 'deep directory')
        if $directory && ($path =~ tr,/,,) > DIRECTORIES;
    return skip($list, 'beginning of a name')
        if $end eq '' && ($path =~ /[-._=&%~,;:]\z/ || $path =~ /\?[^=]+\z/);

    page($list, $name, $path, $end, $directory);
}


# A page blocks itself with any query; unless the filter has a query, also what
# is in the directory of that name.

sub page {
    my ($list, $name, $path, $end, $directory) = @_;

    my @keys = "$name$path";
    my @urls = map { "http://$_$path" } $name, below($name);

    push @keys, "$name$path/" if !$directory && $path !~ /\?/;

    if ($path !~ /\?/) {
        my $in = $path =~ s,/?\z,/,r;

        push @urls, "https://$name$path?q=1";
        push @urls, "https://$name$in" if $end eq '^';
        push @urls, "https://$name${in}page?q"
            if ($in =~ tr,/,,) <= DIRECTORIES && ($end eq '^' || $directory);
    }

    entry($list, \@keys, @urls);
}


# The host, the path and the end ("^", "|" or nothing) of a filter that begins
# with a host and has nothing variable in its middle; or nothing.

sub parts {
    my ($filter) = @_;

    return ($1, '', '^') if $filter =~ /^(?:[0-9.:a-f]+\s+)?((?!_)$host)\z/;
    return ($1, $2 // '', $3)
        if $filter =~ m,^\|\|($host)(/[^*^|]*?)?\**([\^|]?)\**\z,x;
    return;
}


1;
