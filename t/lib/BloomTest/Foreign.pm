# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Foreign;

# Serves the tests of import and export: it makes keys, looks many of them up in
# an image, and compares the answers with those of the source system.

use strict;
use warnings;

use Exporter 'import';
use Test::More;

use BloomTest::Process qw(run_command);
use BloomTest::Schemes qw(bits_of);

our @EXPORT = qw(members strangers numbers answers shown import_image
                 import_scheme export_image import_fails same_answers same_file
                 resp_commands);


# Return keys of many lengths, in part not ASCII.  No key of members() is one of
# strangers().

sub _keys {
    my ($kind, $n) = @_;

    my @odd = ('', "\xc3\xa9", "\xf0\x9f\x98\x80", ' with blanks ', '%41+');

    return [map { "/$kind/" . 'x' x ($_ % 37) . $odd[$_ % @odd] . "/$_" }
            1 .. $n];
}

sub members { return _keys('member', @_) }
sub strangers { return _keys('stranger', @_) }

# Returns numbers of up to 32 bits: even ones are for members, odd ones for
# strangers.

sub numbers {
    my ($n, $odd) = @_;

    return [map { ($_ % 2 ? -1 : 1) * (2 * $_ * 429 + $odd) } 1 .. $n];
}


# Returns what ngx-bloom test answers to each key, as "0110...".

sub answers {
    my ($t, $image, $keys) = @_;

    my $file = $t->write_file('asked', join '', map { "$_\n" } @$keys);
    my ($exit, $out, $err) = $t->run_tool('test', $image, '-f', $file);

    return "ngx-bloom test failed: $err" if $exit == 2;

    return join '', map { /^present/ ? 1 : 0 } split /\n/, $out;
}


# Returns a command for the name of a test, without the test's directory and
# ports.

sub shown {
    my ($t, @words) = @_;

    my $dir = $t->testdir;
    my $text = join(' ', @words) =~ s{\Q$dir\E/}{}gr
               =~ s{\b(127\.0\.0\.\d|localhost):\d+}{$1}gr;

    return "'$text'";
}


sub import_image {
    my ($t, $image, @arguments) = @_;

    my ($exit, $out, $err) = $t->run_tool('import', '-o', $image, @arguments);

    is($exit, 0, shown($t, 'ngx-bloom import', @arguments) . ' succeeds')
        or diag $err;

    return ($out, $err);
}


# Imports a bitmap of m bits with these keys as SCHEME.bloom.  Returns the bits.

sub import_scheme {
    my ($t, $scheme, $m, $k, @keys) = @_;

    my $bitmap = "\0" x (($m + 7) / 8);
    my %set = map { $_ => 1 } map { bits_of($scheme, $_, $m, $k) } @keys;

    # Redis numbers the bits of a byte from the highest one

    vec($bitmap, $_ ^ 7, 1) = 1 for keys %set;

    import_image($t, $t->testdir . "/$scheme.bloom", '--from', 'bitmap',
                 '--scheme', $scheme, '--bits', $m, '--hashes', $k,
                 $t->write_file("$scheme.bitmap", $bitmap));

    return %set;
}


sub export_image {
    my ($t, $format, $file, $image, @options) = @_;

    my @arguments = ('--to', $format, @options, '-o', $file, $image);
    my ($exit, undef, $err) = $t->run_tool('export', @arguments);

    is($exit, 0, shown($t, 'ngx-bloom export', @arguments) . ' succeeds')
        or diag $err;

    return;
}


# Tests that an import is refused with a matching message and leaves no file.

sub import_fails {
    my ($t, $what, $complaint, @arguments) = @_;

    my $image = $t->testdir . '/refused.bloom';
    unlink $image;

    my ($exit, $out, $err) = $t->run_tool('import', '-o', $image, @arguments);

    is($exit, 2, "$what is refused");
    like($err, $complaint, "the refusal of $what gives the reason");
    unlike($err, qr/^[^\n]+\n./s, "the refusal of $what is one line");
    ok(!-e $image && !glob("$image.tmp-*"),
       "the refusal of $what leaves no file");

    return;
}


# Tests that an image gives the same answers as its source.

sub same_answers {
    my ($got, $expected, $what) = @_;

    my $wrong = length $got != length $expected
                ? length $expected
                : ($got ^ $expected) =~ tr/\0//c;

    my $present = ($expected =~ tr/1//);

    ok(length $expected > 0 && $present > 0 && $present < length $expected,
       "the source of $what has present and absent keys")
        or diag substr $expected, 0, 200;
    is($wrong, 0, "$what gives all " . length($expected)
                  . ' answers of its source')
        or diag substr $got, 0, 200;

    return;
}


sub same_file {
    my ($got, $expected, $name) = @_;

    my ($exit, $out, $err) = run_command(['cmp', $got, $expected]);

    is($exit, 0, $name)
        or diag "$out$err";

    return;
}


# Returns the words of each command of a text in RESP.

sub resp_commands {
    my ($text) = @_;

    my @commands;

    while ($text =~ /\G\*(\d+)\r\n/gc) {
        push @commands, [];

        for (1 .. $1) {
            $text =~ /\G\$(\d+)\r\n/gc or die 'not RESP';
            push @{ $commands[-1] }, substr $text, pos $text, $1;
            pos($text) += $1 + 2;
        }
    }

    die 'more behind' if (pos($text) // 0) < length $text;

    return @commands;
}


1;
