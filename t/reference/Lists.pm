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

# options that leave a filter as wide as it is without them

my %always = map { $_ => 1 } qw(all doc document important);

my $label = qr/[a-z0-9_\x80-\xff](?:[a-z0-9_\x80-\xff-]*
               [a-z0-9_\x80-\xff])?/xi;
my $host = qr/$label(?:\.$label)+/;

my %reader = (adblock => \&adblock, hosts => \&hosts, dnsmasq => \&dnsmasq,
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
    my ($list, $line) = @_;

    return skip($list, 'comment') if $line =~ /^!|^\[Adblock|^#(?:\s|\z)/i;
    return skip($list, 'part of a page') if $line =~ /#[@?\$%]*#|\$\$/;

    my $allows = $line =~ s/^\@\@//;

    return skip($list, 'regular expression') if $line =~ m,^/.*/(?:\$|\z),;

    if ($line =~ s/\$([~\w-]+(?:=[^,]*)?(?:,[~\w-]+(?:=[^,]*)?)*)\z//) {
        my ($narrow) = grep { !$always{$_} } map { s/=.*//r } split /,/, $1;

        return skip($list, "\$$narrow") if defined $narrow;
    }

    my ($name, $path, $end) = parts($line) or return skip($list, 'pattern');

    if ($allows) {
        push @{ $list->{exceptions} }, $name . $path;
        return;
    }

    # a page with any query, which no expression of a directory says

    if ($path =~ s/\?\z// && $path =~ m,/\z,) {
        push @{ $list->{others} }, "http://$name${path}page";
        return skip($list, 'query of a directory');
    }

    return host($list, $name) if $path eq '' || $path eq '/';

    my $directory = $path =~ m,/\z, && $path !~ /\?/;

    return skip($list, 'deep directory')
        if $directory && $end eq '' && ($path =~ tr,/,,) > DIRECTORIES;
    return skip($list, 'beginning of a name')
        if $end eq '' && ($path =~ /[-._=&%~,;:]\z/ || $path =~ /\?[^=]+\z/);

    page($list, $name, $path, $end, $directory);
}


# A page blocks itself with any query; unless the filter ends there, also what
# is in the directory of that name.

sub page {
    my ($list, $name, $path, $end, $directory) = @_;

    my @keys = "$name$path";
    my @urls = map { "http://$_$path" } $name, below($name);

    push @keys, "$name$path/" if !$directory && $path !~ /\?/ && $end ne '|';

    if ($path !~ /\?/ && $end ne '|') {
        my $in = $path =~ s,/?\z,/,r;

        push @urls, "https://$name$path?q=1";
        push @urls, "https://$name$in" if $end eq '^';
        push @urls, "https://$name${in}page?q"
            if ($in =~ tr,/,,) <= DIRECTORIES && ($end eq '^' || $directory)
               && !($end eq '^' && $directory);
    }

    entry($list, \@keys, @urls);
}


# The host, the path and the end ("^", "|" or nothing) of a filter that begins
# with a host and has nothing variable in its middle; or nothing.

sub parts {
    my ($filter) = @_;

    return ($1, '', '^') if $filter =~ /^((?!_)$host)\z/;
    return ($1, $2 // '', $3)
        if $filter =~ m,^(?:\|\||\|https?://)($host)(?::\d+)?
                        (/[^*^|]*)?([\^|]?)\z,x;
    return;
}


1;
