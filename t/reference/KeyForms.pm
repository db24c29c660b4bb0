package KeyForms;

# The key forms "host" and "url" once more, from docs/key-forms.md; see README.md
# beside this file.  Plain steps over plain strings: nothing here is fast.
#
#     my ($canonical, @expressions) = KeyForms::expand('url', $key);
#
# Strings are bytes.  An empty list: the key is invalid.  For "url" the
# canonical form has its scheme, and the expressions have none.

use strict;
use warnings;

use Net::LibIDN2 qw(idn2_lookup_u8);
use Socket qw(AF_INET6 inet_pton);

use constant LONGEST => 65535;
use constant LONGEST_NAME => 253;

my %special = map { $_ => 1 } qw(http https ftp ws wss);


sub expand {
    my ($form, $key) = @_;

    return if length $key > LONGEST;

    if ($form eq 'host') {
        my ($host, $is_address)
            = host($key =~ s/^[ \t]+|[ \t]+\z//gr, qr/[a-z0-9_.-]/);

        return if !defined $host;
        return ($host, parents($host, $is_address, 30));
    }

    my ($scheme, $host, $is_address, $path, $query) = url($key) or return;

    return ("$scheme://$host$path$query",
            map { my $h = $_; map { $h . $_ } prefixes($path, $query) }
                parents($host, $is_address, 5));
}


# ---- what is looked up ----

# Of the last $most labels, one after another taken off, down to two.

sub parents {
    my ($host, $is_address, $most) = @_;

    return $host if $is_address;

    my @labels = split /\./, $host, -1;
    my @parents = grep { @$_ < @labels }
                  map { [@labels[@labels - $_ .. $#labels]] }
                  grep { $_ <= @labels } reverse 2 .. $most;

    return ($host, map { join '.', @$_ } @parents);
}


# With the query, without it, and the first four directories, each once.

sub prefixes {
    my ($path, $query) = @_;

    my @directories;
    my $at = '';

    for my $step ($path =~ m{([^/]*/)}g) {
        push @directories, $at .= $step if @directories < 4;
    }

    my %seen;

    return grep { !$seen{$_}++ } "$path$query", $path, @directories;
}


# ---- URLs ----

# (scheme, host, whether it is an address, path, query with its "?"), the last
# three escaped; or nothing.

sub url {
    my ($url) = @_;

    return if $url =~ /\0/;

    $url =~ s/^[\x01-\x20]+//;
    $url =~ s/[\x01-\x20]+\z//;
    $url =~ tr/\t\r\n//d;
    $url =~ s/#.*//s;

    my ($scheme, $rest) = without_scheme($url) or return;

    $rest = unescaped(without_userinfo($rest));

    if (!defined $scheme) {
        ($scheme, $rest) = without_scheme($rest) or return;
    }

    $rest = without_userinfo(slashes($rest));

    my ($authority, $path, $query) = $rest =~ m{^([^/?]*)([^?]*)(.*)\z}s;

    return if $authority =~ /[\@\0]/;

    my ($host, $is_address) = host($authority, qr/[^\/?@\[\]\0]/);

    return if !defined $host;

    $host = "[$host]" if $host =~ /:/;

    return ($scheme // 'http', $host =~ /^\[/ ? $host : escaped($host),
            $is_address, escaped(resolved($path)), escaped($query));
}


# (scheme or undef, what is behind it), or nothing where there is no host.

sub without_scheme {
    my ($url) = @_;

    $url = slashes($url);

    if ($url =~ m{^([A-Za-z][A-Za-z0-9+.-]*):(.*)\z}s) {
        my ($scheme, $rest) = (lc $1, $2);

        return ($scheme, $rest =~ s{^/*}{}r) if $special{$scheme};
        return ($scheme, $1) if $rest =~ m{^//(.*)\z}s;

        # a host with a port, or a scheme without slashes

        return if $rest !~ m{^[0-9]+(?:[/?]|\z)};
    }

    return (undef, $1) if $url =~ m{^//+(.*)\z}s;
    return if $url =~ m{^/};
    return (undef, $url);
}


sub without_userinfo {
    my ($rest) = @_;

    my ($authority, $behind) = $rest =~ m{^([^/?]*)(.*)\z}s;

    return ($authority =~ s/^.*\@//sr) . $behind;
}


# Backslashes before the query.

sub slashes {
    my ($text) = @_;

    my ($before, $query) = $text =~ m{^([^?]*)(.*)\z}s;

    return ($before =~ tr{\\}{/}r) . $query;
}


sub unescaped {
    my ($text) = @_;

    1 while $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;

    return $text;
}


sub escaped {
    my ($text) = @_;

    return $text =~ s/([\x00-\x20\x7f-\xff#%])/sprintf '%%%02X', ord $1/ger;
}


# Dots first, slashes then; RFC 3986, 5.2.4 has what the dots mean.

sub resolved {
    my ($path) = @_;

    my ($root, @steps) = split m{/}, $path, -1;
    my @kept;

    for my $i (0 .. $#steps) {
        if ($steps[$i] eq '..') {
            pop @kept;
        } elsif ($steps[$i] ne '.') {
            push @kept, $steps[$i];
            next;
        }

        push @kept, '' if $i == $#steps;
    }

    return ('/' . join '/', @kept) =~ s{/+}{/}gr;
}


# ---- hosts ----

# (canonical host, whether it is an address), or nothing.  $allowed: the bytes
# that a name may have.

sub host {
    my ($host, $allowed) = @_;

    if ($host =~ /^\[(.*)\](?::[0-9]*)?\z/s) {
        return ipv6($1);
    }

    if (($host =~ tr/://) > 1) {
        return ipv6($host);
    }

    if ($host =~ s/:(.*)\z//s) {
        return if $1 !~ /^[0-9]*\z/;
    }

    my $name = lc_ascii(join '.', map { ascii_label($_) } split /\./, $host, -1);

    $name =~ s/\.\.+/./g;
    $name =~ s/^\.|\.\z//g;

    return if $name eq '' || length $name > LONGEST_NAME;
    return if $name !~ /^$allowed+\z/;

    my ($last) = $name =~ /([^.]*)\z/;

    return ipv4($name) if $last =~ /^(?:[0-9]+|0x[0-9a-f]*)\z/;
    return ($name, 0);
}


sub lc_ascii { return $_[0] =~ tr/A-Z/a-z/r }


# As it came where libidn2 has no other for it.

sub ascii_label {
    my ($label) = @_;

    return $label if $label !~ /[\x80-\xff]/;

    for my $how (Net::LibIDN2::IDN2_NONTRANSITIONAL(),
                 Net::LibIDN2::IDN2_TRANSITIONAL())
    {
        next if $label =~ /\0/;

        my $ascii = idn2_lookup_u8($label, $how);

        return $ascii if defined $ascii && $ascii =~ /^[A-Za-z0-9._-]*\z/;
    }

    return $label;
}


sub ipv4 {
    my ($name) = @_;

    my @parts = split /\./, $name, -1;
    my $address = 0;

    return if @parts > 4;

    for my $i (0 .. $#parts) {
        my $number = number($parts[$i]) // return;
        my $room = $i == $#parts ? 4 - $i : 1;

        return if $number >= 256 ** $room;

        $address = $address * 256 ** $room + $number;
    }

    return (join('.', unpack 'C4', pack 'N', $address), 1);
}


# Beyond 32 bits it does not matter how much.

sub number {
    my ($text) = @_;

    my ($base, $digits) = $text =~ /^0x(.*)\z/ ? (16, $1)
                          : $text =~ /^0(.+)\z/ ? (8, $1)
                          : (10, $text);

    return if $digits !~ ($base == 16 ? qr/^[0-9a-f]*\z/
                          : $base == 8 ? qr/^[0-7]+\z/ : qr/^[0-9]+\z/);

    my $number = 0;

    for my $digit (split //, $digits) {
        $number = $number * $base + hex $digit;
        $number = 2 ** 32 if $number > 2 ** 32;
    }

    return $number;
}


# RFC 5952: no leading zeros, the first of the longest runs of two zeros and
# more as "::".

sub ipv6 {
    my ($text) = @_;

    return if $text =~ /%.*[\/\\?\@\[\]\0]/s;

    $text =~ s/%.*//s;

    my $packed = $text =~ /^[0-9A-Fa-f:.]+\z/ ? inet_pton(AF_INET6, $text)
                                               : undef;

    return if !defined $packed;

    for my $prefix ("\0" x 10 . "\xff\xff", "\0\x64\xff\x9b" . "\0" x 8) {
        return (join('.', unpack 'x12 C4', $packed), 1)
            if substr($packed, 0, 12) eq $prefix;
    }

    my @groups = map { sprintf '%x', $_ } unpack 'n8', $packed;
    my $zeros = 0;
    my $at;

    for my $i (0 .. 7) {
        my $n = 0;

        $n++ while $i + $n < 8 && $groups[$i + $n] eq '0';
        ($zeros, $at) = ($n, $i) if $n > $zeros;
    }

    return (join(':', @groups), 1) if $zeros < 2;

    return (join(':', @groups[0 .. $at - 1]) . '::'
            . join(':', @groups[$at + $zeros .. 7]), 1);
}


1;
