#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom verify --not-older-than" refuses an image that is older
# than another one, by its time, by the position of its source or by the time
# when it was written.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(copy_with copy_with_header info json json_lines
                       lines_of tool tool_ok tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $created = 120;    # its place in the header

sub build {
    my ($name, @options) = @_;

    my $image = "$dir/$name.bloom";
    tool_ok('build', '-q', '-o', $image, @options, '--allow-empty',
            { stdin => lines_of('one') });

    return $image;
}

my $second = 1769947200_000;    # 2026-02-01T12:00:00Z, in ms

# Builds an image that was written so many ms after that second.

sub build_at {
    my ($ms, $name, @options) = @_;

    build("$name-now", @options);

    return copy_with_header("$name-now.bloom", "$name.bloom",
                            $created => pack 'Q<', $second + $ms);
}

# The image without --as-of is of 2026-02-01T12:00:00.5Z.

my @noon = ('--as-of', '2026-02-01T12:00:00Z');
my %image = (
    noon => build_at(7000, 'noon', @noon),
    again => build_at(7000, 'again', @noon),
    before => build_at(6999, 'before', @noon),
    after => build_at(7001, 'after', @noon),
    later => build_at(1000, 'later', '--as-of', '2026-02-01T12:00:01Z'),
    plain => build_at(500, 'plain'),
    map { my ($name, $option, $ms) = @$_;
          $name => build_at($ms, $name, @noon, '--source', $option) }
        ['ids5', 'ids=5', 7010], ['ids5-1', 'ids=5-1', 7011],
        ['ids10', 'ids=10', 7012], ['urls3', 'urls=3', 7010],
);

sub verify {
    my ($status, $message, $new, $old) = @_;

    return tool($status, $message, 'verify', '-q', '--not-older-than',
                $image{$old} // $old, $image{$new} // $new);
}

sub older {
    my ($new, $old, $why) = @_;

    verify(1, qr/\Angx-bloom verify: \Q$image{$new}\E: refused: $why; get a newer image, or leave out --not-older-than if the older image is right\n\z/,
           $new, $old);
}

is(info($image{plain})->{created}, '2026-02-01T12:00:00.500Z',
   'the image without --as-of has the time that the test gave it');

verify(0, undef, @$_)
    for ['later', 'noon'], ['noon', 'noon'], ['after', 'noon'],
        ['noon', 'before'], ['plain', 'noon'], ['later', 'plain'],
        ['plain', 'plain'], ['ids10', 'ids5'], ['ids5-1', 'ids5'],
        ['ids5', 'ids5'], ['ids10', 'urls3'], ['ids5', 'noon'],
        ['later', 'ids10'];

older('noon', 'later',
      qr/it is of 2026-02-01T12:00:00\.000Z, earlier than \Q$image{later}\E, which is of 2026-02-01T12:00:01\.000Z/);
older('noon', 'plain',
      qr/it is of 2026-02-01T12:00:00\.000Z, earlier than \S+, which is of 2026-02-01T12:00:00\.500Z/);
older('plain', 'later', qr/it is of 2026-02-01T12:00:00\.500Z, .*/);
# The lists had not changed, an exception or an own entry had.

older('before', 'noon',
      qr/it is of 2026-02-01T12:00:00\.000Z, as \Q$image{noon}\E is, and was written at 2026-02-01T12:00:06\.999Z, not later than that image, which was written at 2026-02-01T12:00:07\.000Z/);
older('again', 'noon', qr/it is of .*, as .* is, and was written at .*/);
older('noon', 'again', qr/it is of .*, as .* is, and was written at .*/);
older('noon', 'ids10', qr/it is of .*, as .* is, and was written at .*/);
older('urls3', 'ids5', qr/it is of .*, as .* is, and was written at .*/);

older('ids5', 'ids10',
      qr/it has the changes of source ids up to position 5, and \Q$image{ids10}\E has them up to 10/);
older('ids5', 'ids5-1', qr/it has .* up to position 5, and .* up to 5-1/);


# JSON, several images, and the order of what is checked

{
    my $found = json(tool(1, qr/refused: it is of/, 'verify', '--json',
                          '--not-older-than', $image{later}, $image{noon}));

    is($found->{result}, 'refused', '--json says that an older image is refused');
    like($found->{error}, qr/^refused: it is of .*, earlier than /,
         '--json says why an older image is refused');

    my @found = json_lines(
        tool(1, qr/noon\.bloom: refused/, 'verify', '--json',
             '--not-older-than', $image{later}, @image{qw(noon later)}));
    is_deeply([map { $_->{result} } @found], [qw(refused ok)],
              'each of several images is compared');
}

my $damaged = copy_with('noon.bloom', 'damaged.bloom',
                        sub { substr($_[0], -1) ^= "\x80" });

verify(1, qr/damaged\.bloom: is damaged: the checksum of bytes/, $damaged,
       'later');
tool(1, qr/refused: it is of .*earlier/, 'verify', '-q', '--min-keys', '1',
     '--not-older-than', $image{later}, $image{noon});
tool(1, qr/refused: it has 1 distinct key/, 'verify', '-q', '--min-keys', '2',
     '--not-older-than', $image{noon}, $image{later});


# An image that cannot be compared with is an error, so that a wrong name does
# not switch the check off.

my $text = $t->write_file('text.bloom', 'no image');

for ([$text => qr/is not a Bloom filter image/],
     ["$dir/missing.bloom" => qr/cannot be opened: No such file/])
{
    my ($old, $why) = @$_;

    verify(2, qr/\Q$old\E: $why.*\n.*later\.bloom: refused: --not-older-than cannot compare it with \Q$old\E; name an image that exists and is good, or leave out the option\n\z/,
           'later', $old);
}

tool(2, qr/option --not-older-than needs a value/, 'verify', $image{noon},
     '--not-older-than');
tool(2, qr/unknown option "--not-older-than"/, 'build', '-o', "$dir/x.bloom",
     '--not-older-than', $image{noon}, '-');

done_testing;
