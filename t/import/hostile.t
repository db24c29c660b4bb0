#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the tool refuses wrong and truncated filters, filters of another
# format and images with a wrong source header: it does not crash, allocates
# little and leaves no file.  It imports over-full filters with a warning.

use strict;
use warnings;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $tool = $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom';


# One good file of each format, of 128 bits.

my $words = "\x12\x34\x56\x78\x9a\xbc\xde\xf0" x 2;

my %good = (
    guava => pack('C C l>', 1, 7, 2) . $words,
    spark => pack('l> l> l>', 1, 7, 2) . $words,
    dcso => pack('Q< Q< d< Q< Q< Q<', 1, 10, 0.01, 7, 128, 3) . $words,
    'bits-and-blooms' => pack('Q> Q> Q>', 128, 7, 128) . $words,
    libbloom => 'libbloom2' . pack('S<', 64)
                . pack('L< x4 Q< Q< C x7 d< C C C x5 d< Q<', 1000, 128, 16, 7,
                       0.01, 1, 2, 0, 9.585, 0) . $words,
    redisbloom => pack('Q< L< L< L<', 3, 1, 5, 2)
                  . pack('Q< Q< Q< d< d< L< Q< C', 16, 128, 3, 0.01, 10, 7, 10,
                         0) . $words,
);

my %title = (
    guava => 'a Guava file', spark => 'a Spark filter',
    dcso => 'a DCSO filter', 'bits-and-blooms' => 'a bits-and-blooms filter',
    libbloom => 'a libbloom file', redisbloom => 'a RedisBloom dump',
);

for my $format (sort keys %good) {

    my $file = $t->write_file("good.$format", $good{$format});
    import_image($t, "$dir/image", '--from', $format, $file);

    # A shorter file is refused.  A longer one is refused except for DCSO, which
    # has data after the filter.

    my $size = length $good{$format};

    for my $cut (0 .. 8, $size - 9 .. $size - 1) {
        import_fails($t, "a $format filter truncated to $cut bytes",
                     qr/\Q$dir\E\/cut: is (?:truncated|not a )/, '--from', $format,
                     $t->write_file('cut', substr $good{$format}, 0, $cut));
    }

    my ($exit, undef, $err) = $t->run_tool('import', '-o', "$dir/image",
                                           '--from', $format, '-',
                                           { stdin => substr $good{$format}, 0,
                                                             $size - 1 });
    is($exit, 2, "a truncated $format filter on standard input is refused");
    like($err, qr/^ngx-bloom import: standard input: is truncated: /,
         "the refusal of a truncated $format filter names standard input");

    if ($format ne 'dcso') {
        import_fails($t, "a $format filter with another byte at its end",
                     qr/is longer than its header says/,
                     '--from', $format,
                     $t->write_file('long', "$good{$format}x"));
    }

    # A filter of another format is recognized.

    for my $other (sort keys %good) {
        next if $other eq $format;

        import_fails($t, "a $format filter imported as $other",
                     qr/it looks like \Q$title{$format}\E: try --from $format/,
                     '--from', $other, $file);
    }

    my $image = $t->write_file('image', $t->read_file('image'));
    import_fails($t, "an image imported as $format",
                 qr/image: is already an image of ngx-bloom; use it as it is/,
                 '--from', $format, $image);

    # A wrong byte of the header is refused or not, but never a crash.  t/fuzz
    # tests more of them.

    my @odd;

    for my $at (0 .. ($size - 17 < 60 ? $size - 17 : 60)) {
        my $text = $good{$format};
        substr $text, $at, 1, chr($at % 2 ? 0xff : 0x80);
        $t->write_file('bent', $text);

        my ($exit) = $t->run_tool('import', '-q', '-o', "$dir/bent.bloom",
                                  '--from', $format, "$dir/bent");

        push @odd, "byte $at: $exit" unless $exit == 0 || $exit == 2;
    }

    is("@odd", '',
       "a wrong byte in the header of a $format filter crashes nothing");
}


# An empty bitmap is what redis-cli prints of a key that does not exist, without
# its line end.  It is a filter, but hardly the one that was meant.

for my $bytes (0, 100) {
    my (undef, $err) = import_image($t, "$dir/nothing.bloom", '--from',
                                    'go-zero', '--bits', 1000,
                                    $t->write_file('nothing', "\0" x $bytes));
    like($err, qr/nothing\.bloom: is empty: no bit of the source is set/,
         "the import warns of a bitmap of $bytes zero bytes");
}

# Six bytes declare a filter of 17 GB, and Guava's own reader allocates it.  The
# tool refuses them in a process whose memory is limited to 300 MB.

my $six = $t->write_file('six', pack 'C C l>', 1, 7, 0x7fffffff);

for my $source ($six, '-') {
    my ($exit, $out, $err) = run_command(
        ['sh', '-c', ($ENV{TEST_NGINX_SANITIZED} ? '' : 'ulimit -v 300000; ')
         . 'exec "$0" import --from guava -o "$1" "$2" < "$3"',
         $tool, "$dir/six.bloom", $source, $six]);

    is($exit, 2,
       "six bytes that declare 17 GB are refused from $source");
    like($err, qr/is truncated: 0 of the filter's 17179869176|has 6 bytes, but its header says 17179869182/,
         "the refusal of six bytes from $source gives the reason");
}

run_command(['gzip', '-kf', $six]);
import_fails($t, 'a filter of six bytes in gzip',
             qr/is truncated/, '--from', 'guava',
             "$six.gz");


# Numbers out of range in the header of each format are refused.

sub lie {
    my ($what, $complaint, $format, $at, $bytes) = @_;

    my $text = $good{$format};

    substr $text, $at, length $bytes, $bytes;
    import_fails($t, "a $format filter with $what",
                 $complaint, '--from', $format,
                 $t->write_file('lie', $text));

    return;
}

lie('an unknown strategy', qr/strategy 2/, 'guava', 0, "\2");
lie('k 0', qr/0 hashes/, 'guava', 1, "\0");
lie('0 words', qr/0 words/, 'guava', 2, pack 'l>', 0);
lie('-1 words', qr/-1 words/, 'guava', 2, pack 'l>', -1);
lie('an unknown version', qr/begin with version 1 or 2/, 'spark', 0,
    pack 'l>', 3);
lie('k 0', qr/has 0 bits for each key/, 'spark', 4, pack 'l>', 0);
lie('k -1', qr/bits for each key/, 'spark', 4, pack 'l>', -1);
lie('k 256', qr/has 256 bits for each key/, 'spark', 4, pack 'l>', 256);
lie('-2 words', qr/-2 words/, 'spark', 8, pack 'l>', -2);
lie('an unknown version', qr/its version is 2/, 'dcso', 0, "\2");
lie('a rate of 0', qr/at a rate of 0/, 'dcso', 16, pack 'd<', 0);
lie('a rate of NaN', qr/at a rate of -?nan/, 'dcso', 16, "\xff" x 8);
lie('0 bits', qr/has 0 bits/, 'dcso', 32, pack 'Q<', 0);
lie('2^62 bits', qr/has 4611686018427387904 bits/, 'dcso', 32,
    pack 'Q<', 2 ** 62);
lie('2^64 - 1 bits', qr/has 18446744073709551615 bits/, 'dcso', 32,
    pack 'Q<', ~0);
lie('2^64 - 1 hashes', qr/has 18446744073709551615 bits for each key/, 'dcso',
    24, pack 'Q<', ~0);
lie('a set of 2^64 - 1 bits', qr/in a bit set of 18446744073709551615/,
    'bits-and-blooms', 16, pack 'Q>', ~0);
lie('a set that is too small', qr/bits in a bit set of 127/, 'bits-and-blooms', 16,
    pack 'Q>', 127);
lie('2^60 bits', qr/has 1152921504606846976 bits/, 'bits-and-blooms', 0,
    pack 'Q> Q> Q>', 2 ** 60, 7, 2 ** 60);
lie('bytes that do not match its bits',
    qr/128 bits in 17 bytes/, 'libbloom', 27,
    pack 'Q<', 17);
lie('a struct of 52 bytes', qr/struct has 52 bytes and version 2/, 'libbloom', 9,
    "\x34");
lie('struct version 1',
    qr/struct has 64 bytes and version 1/, 'libbloom', 52, "\1");


# Over-full filters are imported with a warning.

my (undef, $err) = import_image($t, "$dir/image", '--from', 'guava',
                                $t->write_file('full', pack('C C l>', 1, 7,
                                                            100)
                                                       . "\xff" x 780
                                                       . "\x0f" x 20));
like($err, qr/warning: \S+: is over-full: it has about \d+ keys, but has bits for 633, and 98\.\d % of its bits are set/,
     'the import warns of an over-full filter');

(undef, $err) = import_image($t, "$dir/image", '--from', 'guava', '-n', 10,
                             '-p', '0.001',
                             $t->write_file('x', pack('C C l>', 1, 7, 100)
                                                 . "\xf0" x 800));
like($err, qr/: \S+ % of 1000000 random keys are present, but the source promised 0\.1 %/,
     'the import warns of a filter that misses the promised rate');
like($err, qr/about \d+ keys, but was made for 10,/,
     'the import warns of more keys than the filter was made for');

# Spark's version 1 reaches only the first 2^31 bits.  This file of 384 MiB has all
# keys in two thirds of its bits.

if ($ENV{TEST_NGINX_LARGE}) {
    my $file = "$dir/large";
    open my $fh, '>:raw', $file or die "cannot write $file: $!";
    print $fh pack 'l> l> l>', 1, 4, 3 << 24;
    print $fh "\x55" x (1 << 20) for 1 .. 256;
    print $fh "\0" x (1 << 20) for 1 .. 128;
    close $fh or die "cannot write $file: $!";

    (undef, $err) = import_image($t, "$dir/large.bloom", '--from', 'spark', $file);
    like($err, qr/random keys are present, but the fill ratio predicts/,
         'the import warns of a filter of Spark with more than 2^31 bits');
    unlink $file, "$dir/large.bloom";
}

import_image($t, "$dir/image", '--from', 'guava',
             $t->write_file('empty', pack('C C l>', 1, 7, 100) . "\0" x 800));


# Wrong arguments are refused.

for (['an import without arguments', qr/-o FILE is missing/],
     ['an import without a format',
      qr/--from FORMAT is missing/, '-o', 'x', 'y'],
     ['an import without a source',
      qr/no source is named/, '-o', 'x', '--from', 'guava'],
     ['an import of an unknown format',
      qr/--from "java": must be guava/, '--from', 'java'],
     ['an unknown funnel', qr/must be bytes, utf16, long or int/, '--funnel',
      'kryo'],
     ['a funnel that does not fit', qr/cannot have the funnel "utf16"/, '-o',
      "$dir/x", '--from', 'dcso', '--funnel', 'utf16', "$dir/good.dcso"],
     ['--bits for a filter with a header',
      qr/leave them out, as a guava source has these values in its header/,
      '-o', 'x',
      '--from', 'guava', '--bits', 5, 'y'],
     ['an import of two sources',
      qr/name one source/, '-o', 'x', '--from', 'guava', 'y', 'z'],
     ['a shard of 7 bits', qr/a multiple of 8/, '--shard', 7],
     ['a file that does not exist',
      qr/cannot be opened: No such file/, '-o', "$dir/x",
      '--from', 'guava', "$dir/absent"])
{
    my ($what, $complaint, @arguments) = @$_;
    my ($exit, undef, $err) = $t->run_tool('import', @arguments);

    is($exit, 2, "$what is refused");
    like($err, $complaint, "the refusal of $what gives the reason");
}

for (['an export to a format that is only imported',
      qr/--to "libbloom": must be/, '--to', 'libbloom'],
     ['an export without a key',
      qr/--key KEY is missing/, '--to', 'bitmap', '-o', 'x', 'y'],
     ['an export without an image',
      qr/name one image/, '--to', 'guava', '-o', 'x'])
{
    my ($what, $complaint, @arguments) = @$_;
    my ($exit, undef, $err) = $t->run_tool('export', @arguments);

    is($exit, 2, "$what is refused");
    like($err, $complaint, "the refusal of $what gives the reason");
}

# A time in the future is refused.

import_fails($t, '--as-of in milliseconds',
             qr/--as-of "1769860800000": .* is in the future/,
             '--from', 'guava', '--as-of', '1769860800000', "$dir/good.guava");

$t->build_image('ours.bloom', ['one']);

for my $format (qw(guava redisbloom bitmap dcso bits-and-blooms spark)) {
    my ($exit, undef, $err) = $t->run_tool('export', '--to', $format, '--key',
                                           'k', '-o', "$dir/x.out",
                                           "$dir/ours.bloom");

    is($exit, 2, "an image that is not imported is not exported as $format");
    like($err, qr/cannot be written as .*blocked/,
         "the refusal to export as $format gives the reason");
    ok(!-e "$dir/x.out", "the refusal to export as $format leaves no file");
}


# An image contains the header of its source.  These images have that of another
# filter and right checksums: the tool reads as many bytes as the image has, not
# as many as its header says.

sub bent {
    my ($format, $at, $bytes, $len) = @_;

    return $t->write_file('bent.bloom',
        patch_header($t->read_file("imported.$format.bloom"),
                     176 + $at => $bytes,
                     defined $len ? (156 => pack 'L<', $len) : ()));
}

sub export {
    my ($format, $image) = @_;

    return $t->run_tool('export', '-q', '--to', $format, '--key', 'k', '-o',
                        "$dir/bent.out", $image);
}

for my $format (qw(redisbloom bits-and-blooms dcso)) {
    import_image($t, "$dir/imported.$format.bloom", '--from', $format,
                 "$dir/good.$format");

    my ($exit, undef, $err) = export($format, bent($format, 0, ''));
    is($exit, 0, "an image with its own $format header is exported")
        or diag $err;

    # nginx makes such copies of images without the header

    ($exit, undef, $err)
        = export($format, bent($format, 0, "\0" x 73,
                               $format eq 'redisbloom' ? 73 : 24));
    is($exit, 0, "an image without its $format header is exported")
        or diag $err;
    unlink "$dir/bent.out";
}

for (['redisbloom', '2^40 bytes', 20, pack 'Q<', 2 ** 40],
     ['redisbloom', '4096 bytes', 20, pack 'Q<', 4096],
     ['redisbloom', 'a byte more than the image has', 20, pack 'Q<', 65],
     ['redisbloom', 'a byte less than the filter needs', 20, pack 'Q<', 15],
     ['redisbloom', 'another number of bits', 28, pack 'Q<', 127],
     ['redisbloom', 'another k', 60, pack 'L<', 8],
     ['redisbloom', 'hashes of 32 bits', 12,
      pack 'L< L< Q< Q< Q< d< d< L< Q< C', 0, 2, 16, 128, 3, 0.01, 10, 7, 10,
           7],
     ['redisbloom', 'two links', 8, pack 'L<', 2],
     ['redisbloom', '2^32 - 1 links', 8, pack 'L<', 0xffffffff],
     ['redisbloom', 'another byte at the end', 0, '', 74],
     ['redisbloom', 'a missing byte', 72, "\0", 72],
     ['redisbloom', 'only bytes 0xff', 0, "\xff" x 73],
     ['bits-and-blooms', 'a set of 2^40 bits', 16, pack 'Q<', 2 ** 40],
     ['bits-and-blooms', 'a set of 1024 bits', 16, pack 'Q<', 1024],
     ['bits-and-blooms', 'a set of 127 bits', 16, pack 'Q<', 127],
     ['bits-and-blooms', 'another number of bits', 0, pack 'Q>', 127],
     ['bits-and-blooms', 'another k', 8, pack 'Q>', 8],
     ['bits-and-blooms', 'only bytes 0xff', 0, "\xff" x 24],
     ['dcso', 'another version', 0, "\2"],
     ['dcso', 'another number of bits', 32, pack 'Q<', 2 ** 40],
     ['dcso', 'another k', 24, pack 'Q<', 8],
     ['dcso', 'a rate of NaN', 16, "\xff" x 8],
     ['dcso', 'a missing byte', 47, "\0", 47],
     ['dcso', 'only bytes 0xff', 0, "\xff" x 48])
{
    my ($format, $what, @bend) = @$_;
    my $image = bent($format, @bend);
    my $last = 175 + unpack 'L<', substr $t->read_file('bent.bloom'), 156, 4;

    is(($t->run_tool('verify', $image))[0], 0,
       "the checksums of an image with $what in its $format header are right");

    my ($exit, $out, $err) = export($format, $image);

    is($exit, 2, "an image with $what in its $format header is not exported");
    is($out . $err, "ngx-bloom export: $image: cannot be written as $format: "
                    . 'the source\'s header that it keeps, bytes 176 to '
                    . "$last, belongs to another filter; import it again\n",
       "the refusal of $what in a $format header gives the reason");
    ok(!-e "$dir/bent.out" && !glob("$dir/bent.out.tmp-*"),
       "the refusal of $what in a $format header leaves no file");
}


# Whichever read of an image fails, nothing is written.

my $code = $t->write_file('again.c', <<'CODE');
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Fails at the call whose number is in the variable FAILS. */
ssize_t
pread(int fd, void *buf, size_t n, off_t at)
{
    static int  calls;

    ssize_t   (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");

    if (++calls == atoi(getenv("FAILS"))) {
        errno = EIO;
        return -1;
    }

    return real(fd, buf, n, at);
}
CODE

my ($exit, undef, $said) = run_command([$ENV{CC} // 'cc', '-shared', '-fPIC',
                                        '-o', "$dir/again.so", $code, '-ldl']);
is($exit, 0, 'the compiler builds a library whose pread() fails')
    or diag $said;

my $imported = "$dir/imported.redisbloom.bloom";
my $before = $t->read_file('imported.redisbloom.bloom');

for (['export', '--to', 'redisbloom', '--key', 'k', '-o', "$dir/again.out",
      $imported],
     ['merge', '-o', "$dir/again.out", $imported, $imported],
     ['add', $imported])
{
    my ($command) = @$_;

    for (my $n = 1; $n < 100; $n++) {
        $t->environment(LD_PRELOAD => "$dir/again.so", FAILS => $n);

        my ($exit, $out, $err) = $t->run_tool(@$_, { stdin => "key\n" });

        if ($exit == 0) {
            cmp_ok($n, '>', 2, "'ngx-bloom $command' reads several times");
            last;
        }

        is($exit, 2, "'ngx-bloom $command' fails if read $n fails");
        like($out . $err, qr/^ngx-bloom $command: \Q$imported\E: cannot be read.*Input\/output error/,
             "'ngx-bloom $command' says that read $n fails");
        ok(!-e "$dir/again.out" && !glob("$dir/{again.out,*.bloom}.tmp-*"),
           "'ngx-bloom $command' leaves no file if read $n fails");
        ok($t->read_file('imported.redisbloom.bloom') eq $before,
           "the image is unchanged if read $n fails");
    }

    unlink "$dir/again.out";
}

done_testing;
