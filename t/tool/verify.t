#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom verify" checks every byte of images, and how verify,
# info, test and merge refuse images that are damaged, extreme or cannot be
# read.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Tool qw(copy_with copy_with_header count_bits example_image
                       header json json_lines near rate_of_bits text_line tool
                       tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my $ids = example_image('ids');
my $classic = example_image('classic');

for my $path ($ids, $classic) {
    my $header = header($path);
    my $found = json(tool(0, undef, 'verify', '--json', $path));
    my ($bits, $k) = @$header{qw(bits k)};
    my $set = count_bits($header->{payload});
    my $items = -$bits / $k * log(1 - $set / $bits);
    my $load = $k * $found->{estimated_items} / $bits;

    is($found->{file}, $path, 'verify --json names the file');
    is($found->{result}, 'ok', 'verify --json says that a good image is ok');
    is($found->{items}, 1000, 'verify --json has the items of the header');
    near($found->{fill_ratio}, $set / $bits,
         'verify --json has the share of bits that are set');
    if ($path eq $ids) {
        near($found->{estimated_fpr}, rate_of_bits($header),
             'verify --json estimates the rate of exactly these bits of a'
             . ' blocked image');

    } else {
        my $independent = ($set / $bits) ** $k;

        # the positions of double hashing are not quite independent: add some

        ok($found->{estimated_fpr} >= $independent
           && $found->{estimated_fpr} < 1.3 * $independent,
           'verify --json estimates the rate of exactly these bits of a'
           . ' classic image');
    }

    is($found->{estimated_items}, int($items + 0.5),
       'verify --json estimates the items from the bits');
    near($found->{estimated_items_error},
         sqrt($bits * (exp($load) - 1 - $load)) / $k,
         'verify --json has the standard error of the estimated items');
    ok(abs($found->{estimated_items} - 1000)
       < 6 * $found->{estimated_items_error},
       'the items that verify estimates are about right');

    like(tool(0, undef, 'verify', $path),
         text_line("$path: ok, 1000 items, %% % of the bits set, false-positive"
              . " rate %% %, $found->{estimated_items} +- %% items estimated"
              . ' from the bits'),
         'verify prints its figures as a line of text');
    is(tool(0, undef, 'verify', '-q', $path), '',
       'verify -q prints nothing of a good image');
}

tool(2, qr/no image is named/, 'verify');

# verify reports each kind of damage; info reports it, too, unless it is in the
# payload; and test and merge refuse the image.

my @damages = (
    [empty => qr/is empty; /, sub { $_[0] = '' }],
    [text => qr/is not a Bloom filter image; build/, sub { $_[0] = "key\n" x 5000 }],
    [bit => qr/is not a Bloom filter image; build/, sub { substr($_[0], 3) = '' }],
    [piece => qr/is truncated: it has 100 bytes/,
     sub { substr($_[0], 100) = '' }],
    [magic => qr/is not a Bloom filter image; build/,
     sub { substr($_[0], 0, 1) = "\x09" }],
    [newer => qr/has version 4, but this program reads version 3; use a newer program/,
     sub { substr($_[0], 8, 1) = "\4" }],
    (map {
        my $version = $_;

        ["version$_" => qr/has version $_, but this program reads version 3; build it again/,
         sub { substr($_[0], 8, 1) = chr $version }];
    } 0 .. 2),
    [swapped => qr/was written in big-endian byte order/,
     sub { substr($_[0], 12, 4) = "\1\2\3\4" }],
    [header => qr/is damaged: the checksum of its header /,
     sub { substr($_[0], 100, 1) ^= "\x80" }],
    [reserved => qr/is damaged: the checksum of its header /,
     sub { substr($_[0], 4000, 1) ^= "\1" }],
    [cut => qr/is truncated: /, sub { chop $_[0] }],
    [header_only => qr/is truncated: /, sub { substr($_[0], 4096) = '' }],
    [longer => qr/is too long: /, sub { $_[0] .= "\0" }],
    [table => qr/is damaged: the checksum of its table/,
     sub { substr($_[0], 4099, 1) ^= "\1" }],
    [padding => qr/is damaged: the checksum of its table/,
     sub { substr($_[0], 8191, 1) ^= "\1" }],
    [first => qr/is damaged: the checksum of bytes 8192 to /,
     sub { substr($_[0], 8192, 1) ^= "\1" }, 'payload'],
    [last => qr/is damaged: the checksum of bytes 8192 to /,
     sub { substr($_[0], -1) ^= "\x80" }, 'payload'],
);

for (@damages) {
    my ($name, $message, $damage, $in_payload) = @$_;
    my $path = copy_with('ids.bloom', "damaged-$name", $damage);
    my $says = qr/: \Q$path\E: $message/;

    is(tool(1, qr/^ngx-bloom verify$says/, 'verify', $path), '',
       "verify prints nothing of an image whose damage is \"$name\"");

    my $found = json(tool(1, $says, 'verify', '--json', $path));
    is($found->{result}, 'damaged',
       "verify --json calls an image damaged whose damage is \"$name\"");
    like($found->{error}, qr/^$message/,
         "verify --json says what is wrong where the damage is \"$name\"");

    $in_payload ? tool(0, undef, 'info', $path)
                : is(tool(2, $says, 'info', $path), '',
                     "info prints nothing where the damage is \"$name\"");
    is(tool(2, $says, 'test', $path, 'key-1'), '',
       "test answers nothing where the damage is \"$name\"");
    tool(2, $says, 'merge', '-o', "$dir/none.bloom", $ids, $path);
    tool(2, $says, 'merge', '-o', "$dir/none.bloom", $path, $ids);
}

ok(!-e "$dir/none.bloom", 'merge makes no image of a damaged one');

# A flipped bit in each byte of the header that has a meaning is noticed, one in
# many of the other bytes, and truncation at as many places.  Many files are
# verified at a time.

for (['ids.bloom', 0 .. 151, 4092 .. 4095], ['with-exceptions'])
{
    my ($name, @places) = @$_;

    $t->write_file($name, with_exceptions($t->read_file('ids.bloom'),
                                          [[2, 1, 'key-1'], [1, 0, 'key-2']]))
        if $name ne 'ids.bloom';

    my $content = $t->read_file($name);
    my @many = map { $_ * 61 } 0 .. (length($content) - 1) / 61;
    my @paths;

    for my $at (@places, @many) {
        my $copy = $content;
        substr($copy, $at, 1) ^= chr(1 << $at % 8);
        push @paths, $t->write_file("flip/$at", $copy);
    }

    push @paths, map { $t->write_file("cut/$_", substr $content, 0, $_) } @many;

    my ($exit, $out, $err) = $t->run_tool('verify', '--json', @paths);
    my @found = json_lines($out);

    is($exit, 1, "verify finds damage in images with a flipped bit or cut off:"
                 . " $name");
    is(scalar @found, scalar @paths,
       "verify --json answers for every one of many damaged images: $name");
    is(join(' ', grep { $_->{result} ne 'damaged' } @found), '',
       "verify finds damage in each of many images: $name");
    is(() = $err =~ /^ngx-bloom verify: \Q$dir\E\/(?:flip|cut)\/\d+: /mg,
       scalar @paths, "verify reports each damaged image on a line: $name");
}

# Extreme numbers are accepted if they are allowed, and refused otherwise.

{
    my $most = "\xff" x 8;
    my $path = copy_with_header('ids.bloom', 'extreme.bloom', 60 => "\1",
                                96 => $most, 104 => $most, 120 => $most,
                                128 => $most);

    my $info = json(tool(0, undef, 'info', '--json', $path));
    is($info->{items}, '18446744073709551615',
       'info --json prints the greatest number of items there is');
    is($info->{estimated_fpr}, 1,
       'info --json estimates a rate of 1 for the greatest number of items');
    like(tool(0, undef, 'info', $path), qr/^items +18446744073709551615, /m,
         'info prints the greatest number of items as text');
    like(tool(0, undef, 'verify', $path), qr/: ok, 18446744073709551615 items/,
         'verify finds an image good whatever numbers its header has');
    tool(0, undef, 'merge', '-o', "$dir/extreme-2.bloom", $path, $path, $ids);
    is(header("$dir/extreme-2.bloom")->{items}, '18446744073709551615',
       'merge adds up numbers of items without an overflow');
}

# A file that cannot be read is an error, whose status outweighs damage.

my @unreadable = (
    ["$dir/missing" => qr/cannot be opened: No such file.*; check the name/],
    [$dir => qr/is a directory; name an image/],
    ["$dir/fifo" => qr/is not a regular file; name an image/],
);

POSIX::mkfifo("$dir/fifo", 0600) or die $!;

if ($> != 0) {
    copy_with('ids.bloom', 'private.bloom', sub { });
    chmod 0, "$dir/private.bloom";
    push @unreadable, ["$dir/private.bloom"
                       => qr/cannot be opened: Permission denied/];
}

for (@unreadable) {
    my ($path, $message) = @$_;

    for ([verify => $path], [info => $path], [test => $path, 'key'],
         [merge => '-o', "$dir/none.bloom", $ids, $path])
    {
        tool(2, qr/^ngx-bloom $$_[0]: \Q$path\E: $message/, @$_);
    }
}

{
    my @found = json_lines(tool(2, qr/missing: .*damaged-cut: /s, 'verify',
                                '--json', "$dir/missing",
                                "$dir/damaged-cut", $ids));

    is(join(' ', map { $_->{result} } @found), 'unreadable damaged ok',
       'verify --json has a result for each of several images');
}

done_testing;
