#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the import and export of filters that other systems wrote themselves
# (t/golden/foreign): the image has every key, and gives the system's own answer
# for every other key; an export is the system's file, byte for byte.  Also
# compares BloomTest::Schemes, which other tests rely on, with these filters.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Foreign;
use BloomTest::Schemes qw(bits_of);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $golden = "$FindBin::Bin/../golden/foreign";


# A row has the name of a filter, its keys, the options of the import, and the
# scheme of its bits.  The name of a row begins with the system's, which is the
# format unless `from` says otherwise.

my %rows = (
    'guava/bytes-64' => ['bytes', 'guava64'],
    'guava/string-64' => ['text', 'guava64'],
    'guava/utf16-64' => ['text', '', '--funnel', 'utf16'],
    'guava/long-64' => ['longs', '', '--funnel', 'long'],
    'guava/int-64' => ['ints', '', '--funnel', 'int'],
    'guava/bytes-32' => ['bytes', 'guava32'],
    'guava/string-32' => ['text', 'guava32'],
    'guava/utf16-32' => ['text', '', '--funnel', 'utf16'],
    'guava/long-32' => ['longs', '', '--funnel', 'long'],
    'guava/int-32' => ['ints', '', '--funnel', 'int'],

    'redisbloom/one' => ['bytes', 'redisbloom'],
    'redisbloom/fixed' => ['bytes', 'redisbloom'],
    'redisbloom/scaled' => ['bytes', ''],
    'redisbloom/of-1.0' => ['bytes', ''],
    'redisbloom/of-1.1' => ['bytes', ''],

    'go-zero/filter' => ['bytes', 'go-zero', '--bits', 699],
    'redisson/filter' => ['text', 'redisson', '--bits', 498, '--hashes', 4],

    'dcso/plain' => ['bytes', 'dcso'],
    'dcso/gzip' => ['bytes', 'dcso'],
    'dcso/data' => ['bytes', 'dcso'],

    'bits-and-blooms/binary' => ['bytes', 'bits-and-blooms'],
    'bits-and-blooms/little' => ['bytes', 'bits-and-blooms'],
    'bits-and-blooms/words' => ['bytes', 'bits-and-blooms'],
    'bits-and-blooms/json' => ['bytes', 'bits-and-blooms'],
    'bits-and-blooms/std' => ['bytes', 'bits-and-blooms'],

    'spark/v1-binary' => ['bytes', 'spark1'],
    'spark/v1-string' => ['text', 'spark1'],
    'spark/v1-long' => ['longs', '', '--funnel', 'long'],
    'spark/v2-binary' => ['bytes', 'spark2'],
    'spark/v2-string' => ['text', 'spark2'],
    'spark/v2-long' => ['longs', '', '--funnel', 'long'],
    'spark/v2-binary-seeded' => ['bytes', ''],
    'spark/v2-long-seeded' => ['longs', '', '--funnel', 'long'],
    'spark/script-string' => ['spark-strings', 'spark2'],
    'spark/script-string-seeded' => ['spark-strings', ''],
    'spark/script-long' => ['spark-longs', '', '--funnel', 'long'],

    'libbloom/filter' => ['bytes', 'libbloom'],
);

# What an export equals if it is not the imported file.

my %exported = (
    'dcso/gzip' => 'dcso/plain',
    'bits-and-blooms/json' => 'bits-and-blooms/binary',
    'bits-and-blooms/std' => 'bits-and-blooms/binary',
);


sub content {
    my ($file) = @_;

    open my $fh, '<:raw', $file or BAIL_OUT("cannot read $file: $!");
    local $/;

    return scalar <$fh>;
}

sub keys_of { return split /\n/, content("$golden/keys/$_[0]") }

sub files_of {
    my ($name) = @_;

    my @files = grep { /\.(?:bin|\d+)\z/ } glob "$golden/$name.*";

    return sort @files;
}

# Returns the file or string of Redis that an export makes.

sub export {
    my ($format, $image) = @_;

    my @key = $format =~ /bitmap|redisbloom/ ? ('--key', 'k') : ();

    export_image($t, $format, "$dir/export", $image, @key);

    my $text = content("$dir/export");

    return $text if !@key;

    my $value = '';

    for (resp_commands($text)) {
        my ($verb, undef, $at, $data) = @$_;

        if ($verb eq 'SETRANGE') {
            $value .= "\0" x ($at - length $value);
            substr $value, $at, length $data, $data;

        } elsif ($verb eq 'BF.LOADCHUNK') {
            $value .= $data;
        }
    }

    return $value;
}

sub check_answers {
    my ($image, $name, $keys, $what) = @_;

    my @in = keys_of("$keys.in");
    my $expected = content("$golden/$name.answers");
    chomp $expected;

    same_answers(answers($t, $image, [@in, keys_of("$keys.out")]),
                 '1' x @in . $expected, $what);

    return;
}


for my $name (sort keys %rows) {

    my ($keys, $scheme, @options) = @{ $rows{$name} };
    my ($format) = $name =~ m{^([^/]+)/};
    my @files = files_of($name);
    my $to = $format =~ /^(?:go-zero|redisson)\z/ ? 'bitmap' : $format;

    import_image($t, "$dir/image", '--from', $format, @options, @files);
    check_answers("$dir/image", $name, $keys, "the image of $name");

    if (@files > 1) {
        $t->write_file('whole', join '', map { content($_) } @files);
        import_image($t, "$dir/whole.bloom", '--from', $format, @options,
                     "$dir/whole");
        check_answers("$dir/whole.bloom", $name, $keys,
                      "the image of $name as one file");
    }

    # the bits as a bitmap, whose scheme is named

    if ($scheme ne '') {
        my $info = ($t->run_tool('info', '--json', "$dir/image"))[1];
        my ($bits) = $info =~ /"bits": (\d+)/;
        my ($k) = $info =~ /"k": (\d+)/;

        my $bitmap = export('bitmap', "$dir/image");
        my $mine = "\0" x length $bitmap;

        $t->write_file('bitmap', $bitmap);
        import_image($t, "$dir/bitmap.bloom", '--from', 'bitmap', '--scheme',
                     $scheme, '--bits', $bits, '--hashes', $k, "$dir/bitmap");
        check_answers("$dir/bitmap.bloom", $name, $keys,
                      "the bitmap of $name in scheme $scheme");

        # vec() numbers the bits of a byte from the lowest one

        for my $key (keys_of("$keys.in"), $format eq 'libbloom' ? 1 .. 900 : ())
        {
            vec($mine, $_ ^ 7, 1) = 1 for bits_of($scheme, $key, $bits, $k);
        }

        ok($mine eq $bitmap, "BloomTest::Schemes has the bits of $name");
    }

    if ($format ne 'libbloom') {
        my $source = join '', map { content($_) }
                              files_of($exported{$name} // $name);

        ok(export($to, "$dir/image") eq $source,
           "the export of $name equals its source");
    }

    # RedisBloom divides the keys among several links as they come, and the
    # filter of libbloom has more keys

    next if @files > 2 || $format eq 'libbloom';

    my @in = keys_of("$keys.in");
    my @parts = ([@in[0 .. 9]], [@in[10 .. $#in]]);

    for (0, 1) {
        $t->write_file("part-$_", join '', map { "$_\n" } @{ $parts[$_] });
        $t->run_tool('build', '-o', "$dir/part-$_.bloom", '--like', "$dir/image",
                     "$dir/part-$_");
    }

    my ($exit, undef, $err) = $t->run_tool('merge', '-o', "$dir/merged",
                                           map { "$dir/part-$_.bloom" } 0, 1);
    is($exit, 0, "two images of keys of $name are merged") or diag $err;
    ok(export('bitmap', "$dir/merged") eq export('bitmap', "$dir/image"),
       "the tool adds and merges the keys of $name as its source did");
}

# Files that are no filters are named, whatever they are imported as.  A Redis
# bitmap may have any bytes, so --from bitmap takes some of them.

my %refused = (
    'guava.ser' => ['a serialised Java object', 1],
    'redis.rdb' => ['an RDB file of Redis', 1],
    'redisbloom-dump' => ['the result of DUMP for a filter of RedisBloom', 1],
    'bitmap-dump' => ['the result of DUMP for a string of Redis', 1],
    'bitmap-dump-lzf' => ['the result of DUMP for a string of Redis', 1],
    'bits-and-blooms.gob' => ['a Go gob'],
    'struct.gob' => ['a Go gob'],
    'redisbloom.pickle' => ['a Python pickle'],
    'redisbloom-1.1' => ['a dump of RedisBloom 1 or 2.0'],
    'redis-cli' => ['what redis-cli prints of a chunk'],
);

my @refused = map { s{.*/}{}r } glob "$golden/refused/*";

is("@refused", join(' ', sort keys %refused),
   'this test knows each file of t/golden/foreign/refused');

for my $file (sort keys %refused) {
    my ($title, $never_bits) = @{ $refused{$file} };

    for my $format ('guava', 'redisbloom', 'dcso', 'bits-and-blooms', 'spark',
                    'libbloom', $never_bits ? 'go-zero' : ())
    {
        import_fails($t, "$file, imported as $format",
                     qr/\Q$file\E: is \Q$title\E; \w+ /, '--from', $format,
                     ($format eq 'go-zero' ? ('--bits', 20000) : ()),
                     "$golden/refused/$file");
    }
}


# The README says how each filter was made.

my @found = map { s{^\Q$golden/}{}r =~ s{\.answers\z}{}r }
            glob "$golden/*/*.answers";
my $readme = content("$golden/README.md");
my %systems = map { m{^([^/]+)/} => 1 } @found;

is("@{[ sort @found ]}", join(' ', sort keys %rows),
   'this test knows each filter of t/golden/foreign');

for my $system (sort keys %systems) {
    like($readme, qr/^\| `\Q$system\E\/` \|/m,
         "the README of t/golden/foreign says how the filters of $system were"
         . ' made');
}

done_testing;
