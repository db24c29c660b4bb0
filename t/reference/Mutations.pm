# SPDX-License-Identifier: BSD-2-Clause

package Mutations;

# Changes keys at random, into spellings of attackers and into nonsense.  The
# same keys and the same number give the same changes.
#
#     my $mutations = Mutations->new($number, @keys);
#     my $key = $mutations->next;

use strict;
use warnings;

my @pieces = (
    # what has a meaning in a URL, plain and escaped, once and twice
    (map { my $c = $_; ($c, map { sprintf $_, ord $c } '%%%02x', '%%25%02X') }
         split //, "/\\?#\@:.[]%&=;~+ \t\r\n\x01\x1f\x7f"),
    '//', '///', '/./', '/../', '/..', '/.', '..', '/..%2f', '%2e%2e/', '\\..\\',
    '/%252e%252e/', '/.%252E', '/x%2f/../', '/x%3F/%2e%2e/', '%5c..%5c',
    '%00', '%25%30%30', '%%32%35', '%2', '%', '%%', '%zz', '%u0041', '%4', '1%',
    '?', '?a=b', '??', '?%', '#', '?#', ';p', '/?', '/#', '@', '@@', 'user@',
    'user:pass@', 'a%40b@', ':@', ':', ':80', ':080', ':99999999999', ':x', '::',

    # schemes
    'http:', 'http:/', 'http://', 'http:///', 'HTTPS:\\\\', 'ftp://', 'ws:',
    'wss:/', 'foo://', 'foo:/', 'foo:', 'mailto:', 'a+b.c-1://', '1a://', '//',
    'http%3a%2F%2f', 'http:%2f/', 'javascript:',

    # addresses
    '127.0.0.1', '0x7f.1', '017700000001', '2130706433', '0x', '0x7f000001',
    '1.2.3', '1.2.65536', '256', '08', '1.2.3.4.5', '0300.0xa8.0.1', '4294967296',
    '[::1]', '[1:2:3:4:5:6:7:8]', '[::ffff:1.2.3.4]', '[64:ff9b::102:304]',
    '[2001:DB8:0:0:1::1]', '[fe80::1%25eth0]', '[::1', '::1]', '[v1.x]',
    '[::1.2.3]', '::ffff:0:0', '1::', '[0:0:1:0:0:0:1:0]', '[::01.2.3.4]', '[::ffff:0300.0X0.2.1]',

    # beyond ASCII: ss, dots of other scripts, full width, a symbol, marks that
    # join and that do not, right to left, what is no UTF-8
    "\xc3\x9f", "\xe3\x80\x82", "\xef\xbc\x8e", "\xef\xbd\xa1", "\xef\xbc\x91",
    "\xef\xbc\xa1", "\xe2\x98\x83", "\xe2\x80\x8d", "\xc2\xad", "\xcc\x88",
    "\xd7\x90", "\xce\xa3", "\xcf\x82", "\xc4\xb0", "\xef\xac\x80", "\xff", "\x80",
    "\xc3", "\xed\xa0\x80", "\xf0\x9f\x98\x80", "\xe2\x85\xa8", "%c3%bc", "\xc0\xaf",
    "\xef\xbc\x8f", "\xef\xbc\x9f", "\xef\xbc\x85", "\xef\xb9\xaa", "\xef\xbc\x9a", "\xc2\xaa", "b\xc3\xbccher",
    "xn--bcher-kva", "xn--", "xn--a", "XN--FSQ", "a--b", "-a", "a-", "_",

    # lengths that matter
    'a.b.c.d.e.f.', '/1/2/3/4/5/6', 'a' x 63, 'b' x 64, 'abc.' x 40, '.' x 9,
    'com', 'co.uk', 'EXAMPLE', '.example',
);

my @schemes = ('', '', 'http://', 'https://', 'HTTP://', 'http:/', 'http:',
               'http:\\\\', '//', '\\\\', '/', 'ftp://', 'ws://', 'foo://', 'foo:',
               'mailto:', 'http%3A%2F%2F', ' http://', "ht\ttp://", '1http://',
               'http:////');


sub new {
    my ($class, $number, @keys) = @_;

    my $self = bless { keys => \@keys }, $class;

    # a generator of our own: Perl's may differ from one version to the next

    $self->{state} = ($number * 2654435761 + 12345) & 0xffffffff;
    $self->{state} ||= 1;

    return $self;
}


# 0 .. $n - 1: xorshift, Marsaglia 2003

sub below {
    my ($self, $n) = @_;

    my $x = $self->{state};

    $x ^= ($x << 13) & 0xffffffff;
    $x ^= $x >> 17;
    $x ^= ($x << 5) & 0xffffffff;

    $self->{state} = $x;

    return int(($x >> 3) % $n);
}


sub one_of {
    my ($self, $of) = @_;

    return $of->[$self->below(scalar @$of)];
}


sub next {
    my ($self) = @_;

    my $key = $self->one_of($self->{keys});
    my $changes = 1 + $self->below(1 + $self->below(6));

    for (1 .. $changes) {
        $key = $self->changed($key);
        $key = 'a.example' if $key eq '';
    }

    return $key;
}


sub changed {
    my ($self, $key) = @_;

    my $length = length $key;
    my $at = $self->below($length + 1);
    my $some = 1 + $self->below(8);
    my $how = $self->below(11);

    # mostly where the host is: there is the most to get wrong

    $at = $self->below($length < 30 ? $length + 1 : 30) if $self->below(2);

    if ($how <= 2) {
        substr $key, $at, 0, $self->one_of(\@pieces);

    } elsif ($how == 3) {
        substr $key, $at, $some, '';

    } elsif ($how == 4) {
        substr $key, $at, 0, substr $key, $at, $some;

    } elsif ($how == 5) {
        my $format = $self->one_of(['%%%02x', '%%%02X', '%%25%02x']);
        my $text = substr $key, $at, $some;

        substr $key, $at, $some, $text =~ s/(.)/sprintf $format, ord $1/gers;

    } elsif ($how == 6) {
        substr $key, $at, $some, uc substr $key, $at, $some;

    } elsif ($how == 7) {
        $key =~ s{^\s*(?:[A-Za-z][\w+.-]*:)?[/\\]*}{};
        $key = $self->one_of(\@schemes) . $key;

    } elsif ($how == 8) {
        my $piece = $self->one_of(\@pieces);

        $key =~ s{^([^/]*//)?[^/?#]*}{($1 // '') . $piece}e;

    } elsif ($how == 9) {
        my $other = $self->one_of($self->{keys});

        $key = substr($key, 0, $at)
               . substr $other, $self->below(length($other) + 1);

    } else {
        substr $key, $at, 1, chr $self->below(256);
    }

    return length $key > 3000 ? substr $key, 0, 200 : $key;
}


1;
