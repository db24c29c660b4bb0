package BloomTest::Foreign;

# What the tests of import and export share: keys, asking an image about many
# of them, and counting how often it differs from what the source answers.

use strict;
use warnings;

use Exporter 'import';
use Test::More;

use BloomTest::Process qw(run_command);

our @EXPORT = qw(members strangers numbers answers import_image import_fails
                 same_answers same_file tally);

my %tally = (filters => 0, keys => 0, wrong => 0, files => 0);


# Keys of many lengths, in part not ASCII; those of members() and strangers()
# are never the same.

sub _keys {
    my ($kind, $n) = @_;

    my @odd = ('', "\xc3\xa9", "\xf0\x9f\x98\x80", ' with blanks ', '%41+');

    return [map { "/$kind/" . 'x' x ($_ % 37) . $odd[$_ % @odd] . "/$_" }
            1 .. $n];
}

sub members { return _keys('member', @_) }
sub strangers { return _keys('stranger', @_) }

# Numbers of up to 32 bits, even ones for members and odd ones for strangers.

sub numbers {
    my ($n, $odd) = @_;

    return [map { ($_ % 2 ? -1 : 1) * (2 * $_ * 429 + $odd) } 1 .. $n];
}


# "0110...": what ngx-bloom test says of each key.

sub answers {
    my ($t, $image, $keys) = @_;

    my $file = $t->write_file('asked', join '', map { "$_\n" } @$keys);
    my ($exit, $out, $err) = $t->run_tool('test', $image, '-f', $file);

    return "ngx-bloom test failed: $err" if $exit == 2;

    return join '', map { /^present/ ? 1 : 0 } split /\n/, $out;
}


sub import_image {
    my ($t, $image, @arguments) = @_;

    my ($exit, $out, $err) = $t->run_tool('import', '-o', $image, @arguments);

    is($exit, 0, "import @arguments[0, 1]")
        or diag $err;

    $tally{filters}++;

    return ($out, $err);
}


# Refused, with a message that is like this; and nothing is left behind.

sub import_fails {
    my ($t, $what, $complaint, @arguments) = @_;

    my $image = $t->testdir . '/refused.bloom';
    unlink $image;

    my ($exit, $out, $err) = $t->run_tool('import', '-o', $image, @arguments);

    is($exit, 2, "$what is refused");
    like($err, $complaint, "$what: it says why");
    unlike($err, qr/^[^\n]+\n./s, "$what: in one line");
    ok(!-e $image && !glob("$image.tmp-*"), "$what: nothing is left");

    return;
}


sub same_answers {
    my ($got, $expected, $what) = @_;

    my $wrong = length $got != length $expected
                ? length $expected
                : ($got ^ $expected) =~ tr/\0//c;

    $tally{keys} += length $expected;
    $tally{wrong} += $wrong;

    my $present = ($expected =~ tr/1//);

    ok(length $expected > 0 && $present > 0 && $present < length $expected,
       "$what: the source has answers of both kinds")
        or diag substr $expected, 0, 200;
    is($wrong, 0, "$what: all " . length($expected) . ' answers agree')
        or diag substr $got, 0, 200;

    return;
}


sub same_file {
    my ($got, $expected, $what) = @_;

    $tally{files}++;

    my ($exit, $out, $err) = run_command(['cmp', $got, $expected]);

    is($exit, 0, "$what: byte for byte the same")
        or diag "$out$err";

    return;
}


# For the table of what was tried; shown by prove -v.

sub tally {
    my ($what) = @_;

    note "$what: $tally{filters} filters imported, $tally{keys} keys asked, "
         . "$tally{wrong} wrong answers, $tally{files} files equal";

    return;
}


1;
