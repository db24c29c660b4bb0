# SPDX-License-Identifier: BSD-2-Clause

package KeyForms;

# A second implementation of the key forms "host" and "url", from
# docs/key-forms.md; README.md in this folder tells about it.  It is plain and
# slow.
#
#     my ($canonical, @expressions) = KeyForms::expand('url', $key);
#
# Strings are bytes.  The list is empty if the key is invalid.  The canonical
# form of "url" has a scheme, and its expressions have none.

use strict;
use warnings;

use Encode qw(FB_CROAK LEAVE_SRC decode encode_utf8);
use Net::LibIDN2 qw(idn2_lookup_u8);
use Unicode::Normalize qw(NFKC);
use Socket qw(AF_INET6 inet_pton);

use constant LONGEST => 65535;
use constant LONGEST_NAME => 253;
use constant LONGEST_LABEL => 63;

my %special = map { $_ => 1 } qw(http https ftp ws wss);


sub expand {
    my ($form, $key) = @_;

    return if length $key > LONGEST;

    if ($form eq 'host') {
        my ($host, $is_address) = in_a_url($key) or return;

        return (written($host, $is_address),
                parents(written($host, $is_address), $is_address, 30));
    }

    my ($scheme, $host, $is_address, @readings) = url($key) or return;
    my @hosts = parents($host, $is_address, 5);
    my %seen;

    return ("$scheme://$host" . join('', @{ $readings[0] }),
            grep { !$seen{$_}++ }
            map { my @paths = prefixes(@$_);
                  map { my $h = $_; map { $h . $_ } @paths } @hosts }
                @readings);
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

# (scheme, host, whether it is an address, a reading or two), or nothing.  A
# reading is [path, query with its "?"]; these and the host are escaped.  The first
# one is the browser's, and the other one that of a server that unescapes what the
# browser sends.  Of a URL that browsers refuse, there is one, that of Safe Browsing.

sub url {
    my ($url) = @_;

    $url =~ s/^[\x00-\x20]+//;
    $url =~ s/[\x00-\x20]+\z//;
    $url =~ tr/\t\r\n//d;
    $url =~ s/#.*//s;

    my ($scheme, $rest, $begun) = without_scheme($url) or return;

    $rest = without_userinfo($rest);

    my ($written, $raw_path, $raw_query) = split_url($rest);

    $rest = unescaped($rest);

    my $moved = 0;

    if (!$begun) {
        ($scheme, $rest, $moved) = without_scheme($rest) or return;
    }

    my ($authority, $path, $query)
        = split_url(without_userinfo(slashes($rest)));

    my ($host, $is_address) = host($authority) or return;

    $host = $host =~ /:/ && $is_address ? "[$host]"
            : written($host, $is_address);

    my @first = ($scheme // 'http', $host, $is_address);

    # escapes that browsers do not undo have moved the host or its end

    return (@first, server($path . $query))
        if $moved || unescaped($written) ne $authority;

    my $sent = fetched($raw_path);
    my $browser = [kept(unescaped($sent)), escaped(unescaped($raw_query))];
    my $server = server(resolved(merged(unescaped($sent) =~ tr{\\}{/}r))
                        . unescaped($raw_query));

    return (@first, $browser,
            join("\n", @$server) eq join("\n", @$browser) ? () : $server);
}


# What a server makes of a path with a query that is not escaped.

sub server {
    my ($path, $query) = $_[0] =~ m{^([^?]*)(.*)\z}s;

    return [escaped(merged(resolved($path))), escaped($query)];
}


# (host with its port, path, query with its "?")

sub split_url { return $_[0] =~ m{^([^/?]*)([^?]*)(.*)\z}s }


# (scheme or undef, what is behind it, whether a scheme or slashes were there),
# or nothing where there is no host.

sub without_scheme {
    my ($url) = @_;

    $url = slashes($url);

    if ($url =~ m{^([A-Za-z][A-Za-z0-9+.-]*):(.*)\z}s) {
        my ($scheme, $rest) = (lc $1, $2);

        return ($scheme, $rest =~ s{^/*}{}r, 1) if $special{$scheme};
        return ($scheme, $1, 1) if $rest =~ m{^//(.*)\z}s;

        # a host with a port, or a scheme without slashes

        return if $rest !~ m{^[0-9]*(?:[/?]|\z)};
    }

    return (undef, $1, 1) if $url =~ m{^//+(.*)\z}s;
    return if $url =~ m{^/};
    return (undef, $url, 0);
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


# RFC 3986, 5.2.4, has what dots mean.

sub resolved { return without_dots($_[0], qr/\./, qr/\.\./) }


# As the URL Standard resolves the dots of a path, which may be escaped once.

sub fetched {
    my $dot = qr/\.|%2e/i;

    return without_dots($_[0], $dot, qr/$dot$dot/);
}


sub without_dots {
    my ($path, $here, $above) = @_;

    my ($root, @steps) = split m{/}, $path, -1;
    my @kept;

    for my $i (0 .. $#steps) {
        if ($steps[$i] =~ /^(?:$above)\z/) {
            pop @kept;
        } elsif ($steps[$i] !~ /^(?:$here)\z/) {
            push @kept, $steps[$i];
            next;
        }

        push @kept, '' if $i == $#steps;
    }

    return '/' . join '/', @kept;
}


sub merged { return $_[0] =~ s{/+}{/}gr }


# A path that a browser fetches, unescaped, is written so that it stays one path
# and its dots stay where they are.

sub kept {
    my ($path) = @_;

    return join '/', map { /^\.\.?\z/ ? s/\./%252E/gr : escaped($_) =~ s/\?/%3F/gr }
                         split m{/}, merged($path =~ tr{\\}{/}r), -1;
}


# ---- hosts ----

# A key of the form host, taken from where it stands in a URL.

sub in_a_url {
    my ($key) = @_;

    $key =~ s/^[\x00-\x20]+//;
    $key =~ s/[\x00-\x20]+\z//;

    return if $key =~ m{[/\\?#]};

    $key =~ tr/\t\r\n//d;
    $key =~ s/^.*\@//s;
    $key = unescaped($key) =~ s/^.*\@//sr
        if ($key =~ tr/://) < 2 || $key =~ /\[/;

    return host($key);
}


# (host, whether it is an address), or nothing.

sub host {
    my ($host) = @_;

    if ($host =~ /\xef(?:\xbc\x85|\xb9\xaa)/
        || ($host =~ /\[/ && $host =~ /[\x80-\xff]/))
    {
        my $text = converted($host) // return;

        $host = unescaped($text);

        return if $host =~ tr{\x80-\xff/\\?@}{} != $text =~ tr{\x80-\xff/\\?@}{};
    }

    if (($host =~ tr/://) > 1) {
        return $host !~ /^\[/ ? ipv6($host)
               : $host =~ /^\[([^\]]*)\](?::[0-9]*)?\z/s ? ipv6($1) : ();
    }

    if ($host =~ s/:(.*)\z//s) {
        return if $1 !~ /^[0-9]*\z/;
    }

    my @labels = grep { $_ ne '' } map { ascii_label($_) }
                 split /\.|\xe3\x80\x82|\xef\xbc\x8e|\xef\xbd\xa1/, $host, -1;
    my $name = lc_ascii(join '.', @labels);

    return if $name eq '' || length $name > LONGEST_NAME;

    my ($last) = $name =~ /([^.]*)\z/;

    return ipv4($name) if $last =~ /^(?:[0-9]+|0x[0-9a-f]*)\z/;
    return ($name, 0);
}


# Each character as the ASCII characters for which it stands, as Chromium reads
# them, if there are any; or nothing, if that changes a host that is not UTF-8.

sub converted {
    my ($host) = @_;

    my $valid = defined eval { decode('UTF-8', $host, FB_CROAK | LEAVE_SRC) };
    my $text = $host =~ s{([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}
                           |[\xf0-\xf4][\x80-\xbf]{3})}{alone($1)}xger;

    return $valid || $text eq $host ? $text : undef;
}


sub alone {
    my ($bytes) = @_;

    my $c = eval { decode('UTF-8', $bytes, FB_CROAK | LEAVE_SRC) } // return $bytes;

    return '%' if $c =~ /[\x{ff05}\x{fe6a}]/;
    return ':' if $c =~ /[\x{ff1a}\x{fe55}\x{fe13}]/;
    return $bytes if $c =~ /[\x{200c}\x{200d}\x{3002}\x{ff0e}\x{ff61}]/;

    my $label = ascii_label($bytes);

    return $label =~ /^xn--./ || $label =~ /[\x80-\xff]/ ? $bytes : $label;
}


# What no host has as escapes.

sub written {
    my ($host, $is_address) = @_;

    return $host if $is_address;
    return escaped($host) =~ s/([\/\\?\@:\[\]])/sprintf '%%%02X', ord $1/ger;
}


sub lc_ascii { return $_[0] =~ tr/A-Z/a-z/r }


# ---- labels beyond ASCII ----

my $ignored = qr/[\x{ad}\x{34f}\x{180b}-\x{180d}\x{180f}\x{200b}\x{2060}]
                |[\x{2064}\x{fe00}-\x{fe0f}\x{feff}\x{1bca0}-\x{1bca3}]
                |[\x{e0100}-\x{e01ef}]/x;


my $forbidden = qr{[\x00-\x20\x7f#%./:<>?\@\[\\\]^|]};

# As what stands for one of them, unless it may compose or is not mapped.

my $stands_for = qr{[\x00-\x20\x7f#%/:?\@\[\\\]^|]};


# As it came where no browser goes.

sub ascii_label {
    my ($label) = @_;

    return $label if $label !~ /[\x80-\xff]/;

    my $text = eval { decode('UTF-8', $label, FB_CROAK | LEAVE_SRC) };

    return $label if !defined $text || NFKC($text) =~ $stands_for;

    $text =~ s/$ignored//g;

    $text = join '-', map { without_hyphens($_) }
                      split /[-\x{fe63}\x{ff0d}]/, lc_ascii($text), -1;

    return $label if $text =~ $forbidden;

    my $ascii = $text =~ /[^\x00-\x7f]/ ? 'xn--' . punycode($text) : $text;

    return length $ascii > LONGEST_LABEL ? $label : $ascii;
}


# libidn2 takes it as it is, or piece by piece.

sub without_hyphens {
    my ($text) = @_;

    return $text if $text !~ /[^\x00-\x7f]/;

    my $whole = mapped($text, Net::LibIDN2::IDN2_NONTRANSITIONAL());

    return $whole if defined $whole;

    $text =~ s/([\x{200c}\x{200d}])/joins($`, $1, $') ? $1 : ''/ge;

    return join '', map { !/[^\x00-\x7f]/ || /^[\x{df}\x{3c2}\x{200c}\x{200d}]\z/
                          ? $_
                          : mapped($_, Net::LibIDN2::IDN2_TRANSITIONAL()) // $_ }
                    split /([\x{df}\x{3c2}\x{200c}\x{200d}])/, $text;
}


sub joins {
    my ($before, $joiner, $behind) = @_;

    my $how = Net::LibIDN2::IDN2_NONTRANSITIONAL();

    $before = substr $before, -1 if $before ne '';

    return defined mapped($before . $joiner . substr($behind, 0, 1), $how)
           || defined mapped($before . $joiner, $how);
}


# The characters that libidn2 makes of these, or undef.

sub mapped {
    my ($text, $how) = @_;

    $how |= Net::LibIDN2::IDN2_NFC_INPUT()
            | Net::LibIDN2::IDN2_NO_ALABEL_ROUNDTRIP();

    my ($skip, $rc) = (0, 0);
    my $ascii = idn2_lookup_u8(encode_utf8($text), $how, $rc);

    if ($rc == Net::LibIDN2::IDN2_LEADING_COMBINING()) {
        $skip = 1;
        $ascii = idn2_lookup_u8(encode_utf8("0$text"), $how, $rc);
    }

    return if $rc != Net::LibIDN2::IDN2_OK();
    return substr $ascii =~ /^xn--(.+)/s ? from_punycode($1) : $ascii, $skip;
}


# RFC 3492, section 6

sub adapted {
    my ($delta, $points, $first) = @_;

    $delta = int($delta / ($first ? 700 : 2));
    $delta += int($delta / $points);

    my $k = 0;

    while ($delta > 455) {
        $delta = int($delta / 35);
        $k += 36;
    }

    return $k + int(36 * $delta / ($delta + 38));
}


sub threshold {
    my ($k, $bias) = @_;

    return $k <= $bias ? 1 : $k >= $bias + 26 ? 26 : $k - $bias;
}


sub punycode {
    my ($text) = @_;

    my @points = map { ord } split //, $text;
    my $out = $text =~ s/[^\x00-\x7f]//gr;
    my $done = length $out;
    my ($code, $delta, $bias, $first) = (0x80, 0, 72, 1);

    $out .= '-' if $done;

    while ($done < @points) {
        my ($next) = sort { $a <=> $b } grep { $_ >= $code } @points;

        $delta += ($next - $code) * ($done + 1);
        $code = $next;

        for my $point (@points) {
            $delta++ if $point < $code;

            next if $point != $code;

            my $q = $delta;

            for (my $k = 36; ; $k += 36) {
                my $t = threshold($k, $bias);
                my $digit = $q < $t ? $q : $t + ($q - $t) % (36 - $t);

                $out .= ('a' .. 'z', 0 .. 9)[$digit];

                last if $q < $t;
                $q = int(($q - $t) / (36 - $t));
            }

            $bias = adapted($delta, ++$done, $first);
            $delta = 0;
            $first = 0;
        }

        $delta++;
        $code++;
    }

    return $out;
}


sub from_punycode {
    my ($text) = @_;

    my ($basic, $rest) = $text =~ /^(?:(.*)-)?([^-]*)\z/s;
    my @points = map { ord } split //, $basic // '';
    my ($code, $i, $bias, $first) = (0x80, 0, 72, 1);

    while ($rest ne '') {
        my ($before, $weight) = ($i, 1);

        for (my $k = 36; ; $k += 36) {
            my $digit = index 'abcdefghijklmnopqrstuvwxyz0123456789',
                              substr $rest, 0, 1, '';
            my $t = threshold($k, $bias);

            $i += $digit * $weight;

            last if $digit < $t;
            $weight *= 36 - $t;
        }

        $bias = adapted($i - $before, @points + 1, $first);
        $code += int($i / (@points + 1));
        $i %= @points + 1;
        $first = 0;

        splice @points, $i++, 0, $code;
    }

    return join '', map { chr } @points;
}


# ---- addresses ----

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

    # Chromium accepts octal and hexadecimal numbers at the end

    if ($text =~ s/:([^:]*\.[^:]*)\z/:/) {
        my @numbers = map { number(lc_ascii($_)) // return } split /\./, $1, -1;

        return if @numbers != 4 || grep { $_ > 255 } @numbers;

        $text .= join '.', @numbers;
    }

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
