#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests "ngx-bloom journal" with segments that BloomTest::Journal makes from
# docs/journal-format.md: its lists and keys, torn tails, damage, gaps, and
# files that are not a journal.  The example in the description is right, and
# the fuzzer's corpus has segments of that writer.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Image qw(crc32c);
use BloomTest::Digest;
use BloomTest::Journal;
use BloomTest::Tool qw(content_of json json_lines tool
                       tool_path tool_redirected tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $checkout = "$FindBin::Bin/../..";

use constant {
    SIZE => 262144,
    RECORD => BloomTest::Journal::RECORD,
};


sub journal {
    my ($status, $complaint, @arguments) = @_;

    return tool($status, $complaint, 'journal', @arguments);
}

sub flipped {
    my ($content, $offset) = @_;

    substr($content, $offset, 1) ^= "\x10";

    return $content;
}


# Returns how many keys an image has, as "test -c" prints it.

sub count_present {
    my ($image, @keys) = @_;

    my (undef, $out) = $t->run_tool('test', '-c', $image, @keys);

    return $out =~ s/, \d+ empty.*//sr;
}


# Returns a segment of three records with seven keys, and the positions of the
# records.

sub three_records {
    my $journal = BloomTest::Journal->new(@_);

    my @at = (
        $journal->append(['one', 'two', 'three']),
        $journal->append(['four']),
        $journal->append(['five', 'six', 'nine']),
    );

    return ($journal, @at);
}

my @three = qw(one two three four five six nine);
my ($journal, @at) = three_records();
my $whole = $journal->segment;


# ---- docs/journal-format.md, "An example", "An example of other types" and "An
# example of changes" ----

# Returns the text of an example, after a check that it shows these bytes.

sub shows_bytes {
    my ($title, $data) = @_;

    my ($example) = content_of("$checkout/docs/journal-format.md")
                    =~ /^## \Q$title\E\n(.*?)(?=^## |\z)/ms;
    my %row;

    while ($example =~ /^    ([0-9a-f]{8}): ((?:[0-9a-f]{4} ){1,8})/mg) {
        my ($at, $bytes) = (hex $1, $2);
        $row{$at} = $bytes =~ s/ //gr;
    }

    my $rows = 0;

    for (my $i = 0; $i < length $data; $i += 16) {
        my $bytes = substr($data, $i, 16);
        next if $bytes !~ /[^\0]/;
        is($row{$i}, unpack('H*', $bytes),
           sprintf('the row at %08x of "%s" is right', $i, $title));
        $rows++;
    }

    is(scalar(keys %row), $rows, "\"$title\" has no other rows");

    return $example;
}

{
    my $shown = BloomTest::Journal->new(
        base => 2 * 2 ** 24, size => 2 ** 24, sequence => 42, entry => 1);
    $shown->append(['one', "\x00\xff"], time => 1700000000123, durable => 40);

    my $data = $shown->{data};
    my $example = shows_bytes('An example', $data);

    my ($message) = $example =~ /^    (0011 2233.*\n    4000.*\n    2800.*)\n/m;
    $message =~ s/\s//g;
    is(sprintf('%08x', crc32c(pack 'H*', $message)),
       unpack('H8', reverse substr($data, 132, 4)),
       'the bytes that the example shows have the checksum it shows');

    my $file = $t->write_file('example', $shown->segment);
    is_deeply([map { $_->{key_hex} // $_->{key} }
                   json_lines(journal(0, undef, '--keys', '--json', $file))],
              ['one', '00ff'], 'journal --keys reads the example');

    my $second = $shown->next_segment(
        created => 1700000000200, size => 2 ** 24, entry => 1,
        salt => pack('H*', 'ffeeddccbbaa99887766554433221100'));
    $second->append_clear(time => 1700000000300, durable => 42);
    $second->append(['two', 'three'], time => 1700000000323, durable => 42);
    $second->append(['two'], type => REMOVE, time => 1700000000456,
                    durable => 43);
    $second->append_restoration(time => 1700000000500, durable => 44);

    shows_bytes('An example of other types', $second->{data});

    my $third = $second->next_segment(
        created => 1700000000600, size => 2 ** 24, entry => 2,
        salt => pack('H*', '0123456789abcdef0123456789abcdef'));
    $third->append_changes('ids', '1700000000000-2', '1700000000650', ['two'],
                           ['four'], time => 1700000000700, durable => 46,
                           digest => unpack 'Q>', pack 'H16',
                           digest('-two', '+four'));
    $third->append_changes('ids', '1700000000900-1', '1700000000900-1', [], [],
                           time => 1700000000950, durable => 47);

    shows_bytes('An example of changes', $third->{data});

    $t->write_file("examples/$_->[0]", $_->[1]->segment)
        for ['1', $shown], ['2', $second], ['3', $third];
    like(journal(0, undef, "$dir/examples"),
         qr/: ok, 3 segments, 7 records, 7 keys \(cleared at the beginning, 5 added, 2 removed,/,
         'journal accepts the examples');
}


# ---- lists ----

my $file = $t->write_file('whole', $whole);
my $used = $journal->{used};

is(journal(0, undef, $file),
   "$file: ok, position 0, $used of 262144 bytes used, 3 records, 7 keys,"
   . " sequence 1 to 3, 2023-11-14T22:13:20.001Z to 2023-11-14T22:13:20.003Z\n",
   'journal prints a line about a segment');

is_deeply(json(journal(0, undef, '--json', $file)), {
    file => $file, result => 'ok', base => 0, size => SIZE,
    created => '2023-11-14T22:13:20.000Z', entry => 0,
    journal => 'c0c1c2c3c4c5c6c7c8c9cacbcccdcecf', used => $used,
    torn => 0, broken => 0, missing => 0, records => 3, keys => 7, added => 7,
    removed => 0, restorations => 0, cleared => JSON::PP::false,
    first_sequence => 1, last_sequence => 3, durable_sequence => 2,
    first_time => '2023-11-14T22:13:20.001Z',
    last_time => '2023-11-14T22:13:20.003Z',
    removed_so_far => 0, removed_bytes_so_far => 0,
}, 'journal --json prints an object about a segment');

is(journal(0, undef, '-q', $file), '',
   'journal -q prints nothing of a good segment');
is(journal(0, undef, '--keys', $file), join('', map { "$_\n" } @three),
   'journal --keys prints the keys in their order');
is(journal(0, undef, '--keys', '-0', $file), join('', map { "$_\0" } @three),
   'journal --keys -0 ends keys with zero bytes');

{
    my $empty = BloomTest::Journal->new(base => 2 ** 40, sequence => 7);
    my $path = $t->write_file('empty-segment', $empty->segment);

    is(journal(0, undef, $path), "$path: ok, position 1099511627776, 128 of"
       . " 262144 bytes used, 0 records, 0 keys\n",
       'journal prints a line of an empty segment');
    is(journal(0, undef, '--keys', $path), '',
       'journal --keys prints nothing of an empty segment');

    # a file may be cut off after its records: missing bytes count as zeros

    $path = $t->write_file('cut', $journal->{data});
    like(journal(0, undef, $path), qr/: ok, .* 3 records, 7 keys/,
         'a segment that is cut down to its records is good');
    $path = $t->write_file('cut-in-padding',
                           substr($journal->{data}, 0, $used - 2));
    is(substr($journal->{data}, -2), "\0\0",
       'the last record has two bytes of padding');
    like(journal(0, undef, $path), qr/: ok, .* 3 records, 7 keys/,
         'a segment that is cut off within padding is good');
}

{
    my @keys = ("\xff\n", 'x' x 300, 'y' x 65535, "\x{c3}\x{a9}\"");
    my $any = BloomTest::Journal->new;
    my @at = map { $any->append([$_]) } @keys;

    my $path = $t->write_file('any', $any->segment);
    is(journal(0, undef, '--keys', '-0', $path),
       join('', map { "$_\0" } @keys),
       'journal --keys -0 prints keys of any bytes and lengths');

    my @objects = json_lines(journal(0, undef, '--keys', '--json', $path));

    is(scalar(@objects), 4,
       'journal --keys --json prints an object a line for each key');
    is_deeply($objects[0], {
        key => "\x{fffd}\n", key_hex => 'ff0a', sequence => 1,
        time => '2023-11-14T22:13:20.001Z', position => $at[0],
    }, 'journal --keys --json has key_hex for a key that is not UTF-8');
    is_deeply($objects[3], {
        key => "\x{e9}\"", sequence => 4, time => '2023-11-14T22:13:20.004Z',
        position => $at[3],
    }, 'journal --keys --json has no key_hex for a key that is UTF-8');
}


# ---- keys that would be read as other keys ----

# If a key cannot be printed, no key is printed, as a reader of a pipe does not
# see the exit status.

for (["a\nb", [], 'LF in it'], ["\n", [], 'only LF'], ["a\r", [], 'CR at its end'],
     ["a\r\n", [], 'CR LF at its end'], ["a\0b", ['-0'], 'a zero byte in it'])
{
    my ($key, $options, $what) = @$_;
    my ($segment, @at) = three_records();
    my $at = $segment->append(['seven', $key, 'eight']);
    my $path = $t->write_file('refused', $segment->segment);
    my $others = $t->write_file('whole', $whole);
    my $shown = $key =~ s/([\0-\x1f])/sprintf '\x%02x', ord $1/egr;
    my $why = @$options ? 'contains a zero byte, .*; use --json instead of -0'
                        : 'contains a line end, .*; use -0 or --json';

    is(journal(2, qr/\A[^\n]*: \Q$path\E: position $at: the key "\Q$shown\E" $why\n\z/,
               '--keys', @$options, $others, $path), '',
       "journal --keys @$options prints no key if one has $what");

    my @keys = map { $_->{key} }
                   json_lines(journal(0, undef, '--keys', '--json', $path));
    is_deeply(\@keys, [@three, 'seven', $key, 'eight'],
              "journal --keys --json prints a key with $what");

    if (!@$options) {
        is(journal(0, undef, '--keys', '-0', $path),
           join('', map { "$_\0" } @three, 'seven', $key, 'eight'),
           "journal --keys -0 prints a key with $what");
    }
}

# These keys are read like any line, also as the first key.

for my $first ("a\rb", "\ra", "a\0b", "\x1f\x8b", "\x1f\x8b\x08rest", "\x1f",
               "\xfd7zXZ", "BZh91AY&SY", "\x28\xb5\x2f\xfd", "PK\3\4", "!<arch>",
               "\xff\xfea", "%PDF-1", '{"id":1}', '["a"]', '{"key":"a"}', '"a"',
               "\xef\xbb\xbf", "\xef\xbb\xbfkey", "\xef\xbb",
               substr(content_of($t->build_image('some.bloom', ['a'])), 0, 8))
{
    my $name = unpack 'H*', $first;
    my $segment = BloomTest::Journal->new;

    $segment->append([$first, 'second']);
    my $path = $t->write_file('first', $segment->segment);
    my $end = $first =~ /\0/ ? "\n" : "\0";
    my $question = $t->write_file('question', "$end$first${end}second$end");

    for my $how ('', '-0', '--json') {
        next if $how eq '-0' && $first =~ /\0/ || $how eq '' && $first =~ /\n/;

        my ($exit, undef, $err) = tool_redirected(
            ($how ? "$how '$path'" : "'$path'")
            . " | '@{[ tool_path() ]}' build -q -p 1e-9 -o '$dir/first.bloom'"
            . ($how eq '--json' ? ' --from json' : " $how"),
            'journal', '--keys');

        is("$exit $err", '0 ', "build reads what journal --keys $how prints of $name");
        is(count_present("$dir/first.bloom", $end eq "\0" ? '-0' : (), '-f',
                         $question), '2 present, 0 absent',
           "what journal --keys $how prints first keeps the bytes $name");
    }
}


# ---- torn tails ----

for my $cut ($at[2] + 1, $at[2] + RECORD - 1, $at[2] + RECORD + 1, $used - 3) {
    my $left = length(substr($whole, $at[2], $cut - $at[2]) =~ s/\0+\z//r);
    my $s = $left == 1 ? '' : 's';
    my $torn = substr($whole, 0, $cut) . "\0" x (SIZE - $cut);
    my $path = $t->write_file('torn', $torn);

    like(journal(0, undef, $path),
         qr/: ok, .* 2 records, 4 keys, .*, then a torn tail of $left byte$s$/,
         'journal tells how long a torn tail is');
    is(journal(0, qr/warning: \S+: a torn tail of $left byte$s is left out: its keys were never promised to be on disk$/,
               '--keys', $path),
       join('', map { "$_\n" } @three[0 .. 3]),
       'journal --keys does not print the keys of a torn tail');
    is(journal(0, undef, '--keys', '-q', $path),
       join('', map { "$_\n" } @three[0 .. 3]),
       'journal --keys -q does not warn of a torn tail');
    is(json(journal(0, undef, '--json', $path))->{torn}, $left,
       'journal --json tells how long a torn tail is');
}


# ---- damage ----

for my $hit (0, 1) {
    my $length = $at[$hit + 1] - $at[$hit];
    my @left = $hit ? @three[0 .. 2, 4 .. 6] : @three[3 .. 6];
    my %damaged = (
        'a size' => flipped($whole, $at[$hit]),
        'a checksum' => flipped($whole, $at[$hit] + 4),
        'a key' => flipped($whole, $at[$hit] + RECORD + 1),
    );

    $damaged{'a record of zeros'} = $whole;
    substr($damaged{'a record of zeros'}, $at[$hit], $length)
        = "\0" x $length;

    for my $what (sort keys %damaged) {
        my $path = $t->write_file('damaged', $damaged{$what});

        # what comes before the first record that is read is known by its number

        my $missing = $hit || $what eq 'a key'
                      ? '1 record before it or in it is missing; '
                      : 'load an image';
        my $complaint = qr/\Q$path\E:\ is\ damaged:\ $length\ bytes\ from
                           \ position\ $at[$hit]\ on\ contain\ no\ valid
                           \ record;\ \Q$missing\E/x;

        is(journal(1, $complaint, '--keys', $path),
           join('', map { "$_\n" } @left),
           "journal --keys prints the keys before and after damage to $what");

        my ($object) = json(journal(1, $complaint, '--json', $path));

        is($object->{result}, 'damaged',
           "journal --json calls a segment damaged where $what is");
        is($object->{broken}, $length,
           'journal --json tells how many bytes are damaged');
        is($object->{records}, 2,
           'journal --json counts the records that are left');

        like(journal(1, $complaint, $path), qr/: damaged, .* 2 records/,
             "the line of a segment says that it is damaged where $what is");
        is(journal(1, $complaint, '-q', $path), '',
           'journal -q prints nothing of a damaged segment');
    }
}

{
    my $path = $t->write_file('header', flipped($whole, 20));

    is(journal(1, qr/: is damaged: the checksum of its header differs$/,
               $path), '',
       'journal prints no line of a segment with a damaged header');
    my ($object) = json(journal(1, qr/header/, '--json', $path));
    is_deeply($object, {
        file => $path, result => 'damaged',
        error => 'is damaged: the checksum of its header differs',
    }, 'journal --json says that a header is damaged, and nothing else');

    $path = $t->write_file('short', substr($whole, 0, 100));
    journal(1, qr/: is truncated: it has 100 bytes/, $path);

    $path = $t->write_file('long', "$whole\0");
    journal(1, qr/is too long: it has 262145 bytes, but its header says 262144/, $path);
}

# numbers and times

{
    my $gap = BloomTest::Journal->new;
    $gap->append(['one']);
    $gap->append(['five'], sequence => 5);

    my $path = $t->write_file('gap', $gap->segment);
    is(journal(1, qr/is damaged: 3 records before it or in it are missing;/,
               '--keys', $path),
       "one\nfive\n",
       'journal --keys prints the keys around a gap in the numbers');

    my $old = BloomTest::Journal->new;
    $old->append(['nine'], sequence => 9);
    $old->append(['three'], sequence => 3);
    $old->append(['ten'], sequence => 10);
    $old->append(['eleven']);

    $path = $t->write_file('old', $old->segment);
    is(journal(1, qr/64 bytes from position 192 on contain no valid record/,
               '--keys', $path), "nine\nten\neleven\n",
       'journal --keys leaves out an old record between new ones');

    my $back = BloomTest::Journal->new;
    $back->append(['one']);
    $back->append(['two'], time => 1600000000000);

    $path = $t->write_file('back', $back->segment);
    is(journal(0, qr/^$/, '--keys', $path), "one\ntwo\n",
       'a time that goes back is not damage: a clock was wrong');

    my $elsewhere = BloomTest::Journal->new;
    $elsewhere->append(['one'], position => 8);

    $path = $t->write_file('elsewhere', $elsewhere->segment);
    is(journal(0, qr/torn tail/, '--keys', $path), '',
       'a record that belongs to another place is taken for a torn tail');
}


# ---- files that are not a journal or cannot be read ----

{
    my $none = $t->write_file('none', "one\ntwo\n");
    my $nothing = $t->write_file('nothing', '');

    journal(2, qr/none: is not a segment of a journal/, $none);
    journal(2, qr/nothing: is empty$/, $nothing);

    for (4, 2, 1, 0) {
        my $other = $t->write_file('other', BloomTest::Journal
                                            ->new(version => $_)->segment);
        my $program = $_ > 3 ? 'a newer program' : 'the program that wrote it';

        journal(2, qr/other: has version $_, but this program reads version 3; use $program, or move the file away and lose its keys$/,
                $other);
    }

    journal(2, qr/missing: cannot be opened: No such file/, "$dir/missing");
    journal(2, qr/null: is not a regular file/, '/dev/null');
    is(json(journal(2, qr/./, '--json', $none))->{result}, 'unreadable',
       'journal --json calls a file unreadable that is no journal');

    # the worst status is the exit status, and the other files are shown

    my $damaged = $t->write_file('damaged', flipped($whole, $at[0]));
    my @lines = split /\n/, journal(2, qr/none: .*\n.*damaged: /, $none,
                                    $damaged, $file);
    is(scalar(@lines), 2,
       'journal prints the segments that it can read beside one that it'
       . ' cannot');

    journal(2, qr/^ngx-bloom journal: no segment or directory/);
    journal(2, qr/-0 needs --keys or --removed, and cannot be used with --json/,
            '-0', $file);
    journal(2, qr/-0 needs --keys or --removed, and cannot be used with --json/,
            '-0', '--keys', '--json', $file);
}


# ---- directories ----

# three segments, whose names sort differently from their positions

my ($first) = three_records(base => SIZE);
my ($second) = three_records(base => 2 * SIZE, sequence => 4);
my ($third) = three_records(base => 3 * SIZE, sequence => 7);

sub directory {
    my ($name, %content) = @_;

    $t->write_file("$name/$_", $content{$_}) for keys %content;
    mkdir "$dir/$name/sub";

    return "$dir/$name";
}

{
    my $path = directory('good', c => $first->segment, a => $second->segment,
                         b => $third->segment, other => "one\n", empty => '');
    my @lines = split /\n/, journal(0, undef, $path);

    is(scalar(@lines), 4,
       'journal prints a line for each segment of a directory, and one for'
       . ' all');
    is(join(' ', map { m{/(\w+): ok, } } @lines[0 .. 2]), 'c a b',
       'journal lists the segments of a directory by position');
    is($lines[3], "$path: ok, 3 segments, 9 records, 21 keys",
       'the last line of a directory adds up its segments');

    is(journal(0, undef, '--keys', "$path/"),
       join('', map { "$_\n" } (@three) x 3),
       'journal --keys prints all keys of a directory in their order');

    my @objects = json_lines(journal(0, undef, '--json', $path));
    is(join(' ', map { $_->{base} / SIZE } @objects), '1 2 3',
       'journal --json prints an object a line for a directory');

    is(journal(0, undef, '-q', $path), '',
       'journal -q prints nothing of a good directory');
}

my ($over) = three_records(base => 2 * SIZE - 8, sequence => 4);
my ($other) = three_records(base => 2 * SIZE, sequence => 4,
                            journal => "\xff" x 16);
my $unknown = BloomTest::Journal->new(version => 4)->segment;
my $torn = $first->segment;
substr($torn, $first->{used}, 5) = 'torn!';

# Each row has what a directory is, its files, the exit status, the message and
# what is printed of it.

for (
    ['an incomplete file is passed over',
     { 'journal.1' => $first->segment, 'segment.tmp' => $second->segment },
     0, undef, qr/: ok, 1 segment, 3 records, 7 keys$/],
    ['a segment that nginx put aside at its start is passed over',
     { 'journal.1' => $first->segment,
       sprintf('damaged.%016x', 2 * SIZE) => flipped($second->segment, 20) },
     0, undef, qr/: ok, 1 segment, 3 records, 7 keys$/],
    ['a torn tail between segments is no damage',
     { a => $torn, b => $second->segment },
     0, undef, qr/then a torn tail of 5 bytes\n.*: ok, /],
    ['a missing segment makes a directory damaged',
     { a => $first->segment, b => $third->segment },
     1, qr{/b:\ is\ damaged:\ the\ segment\ from\ position\ 524288\ to\ 786432,
           \ which\ comes\ before\ it,\ is\ missing;\ 3\ records\ before\ it\ or
           \ in\ it\ are\ missing;}x,
     qr/: damaged, 2 segments, 6 records, 14 keys$/],
    ['a record that is missing at the end of a segment is damage',
     { a => substr($first->segment, 0, $at[2]), b => $second->segment },
     1, qr{/b: is damaged: 1 record before it or in it is missing;}, qr/damaged/],
    ['segments that overlap are damage',
     { a => $first->segment, b => $over->segment },
     1, qr/begins\ at\ position\ 524280,\ but\ the\ segment\ before\ it\ ends
           \ at\ 524288;\ move\ the\ wrong\ one\ away/x,
     qr/: damaged, 2 segments/],
    ['a segment of another journal is damage',
     { a => $first->segment, b => $other->segment, c => $third->segment },
     1, qr{/b:\ is\ damaged:\ it\ belongs\ to\ another\ journal\ than\ \S+/a;
           \ move\ it\ away\n
           .*/c:\ is\ damaged:\ the\ segment\ from}x,
     qr{/a: ok, .*\n.*/c: damaged, .*\n.*: damaged, 3 segments, 6 records}],
    ['a damaged header makes a directory damaged',
     { a => $first->segment, b => flipped($second->segment, 20),
       c => $third->segment },
     1, qr{/c: is damaged: the segment from.*\n.*/b: is damaged: the checksum},
     qr/: damaged, 3 segments, 6 records/],
    ['a segment of a newer version is an error',
     { a => $first->segment, b => $unknown },
     2, qr{/b: has version 4}, qr/^/],
    ['a directory without a segment is an error', { a => "one\n" },
     2, qr/: contains no segment of a journal/, qr/^\z/])
{
    my ($what, $files, $status, $complaint, $printed) = @$_;
    my $path = directory($what =~ tr/ /-/r, %$files);

    like(journal($status, $complaint, $path), $printed, $what);

    # the keys around a gap are printed all the same

    is(journal(1, $complaint, '--keys', $path),
       join('', map { "$_\n" } (@three) x 2),
       "journal --keys prints the keys where $what")
        if $what =~ /missing segment|overlap|another journal/;
}

# The first record of a journal is broken.  If it was never acknowledged, the
# record after it has the same sequence.

for my $acknowledged (0, 1) {
    my $broken = BloomTest::Journal->new;
    $broken->append(['one']);
    my $next = $broken->next_segment(sequence => 1);
    $next->append(['two'], sequence => 1 + $acknowledged);

    my $path = directory("broken-$acknowledged", b => $next->segment,
                         a => flipped($broken->segment, $broken->{used} - 8));
    if ($acknowledged) {
        like(journal(1, qr/1 record before it or in it is missing; load/,
                     $path), qr/: damaged, 2 segments, 1 record/,
             'a broken first record that was acknowledged is damage');
    }
    else {
        like(journal(0, undef, $path), qr/: ok, 2 segments, 1 record/,
             'a broken first record that was not acknowledged is a torn tail');
    }
}


# ---- the end ----

# Returns a segment with a record of a key for each of @durable, and what these
# records say was on disk.  The records $lost are lost.

sub with_holes {
    my ($journal, $lost, @durable) = @_;

    for (@durable) {
        my $number = $journal->{next};
        my $at = $journal->append(["k$number"], durable => $_);

        substr($journal->{data}, $at) =~ tr/\0-\xff/\0/
            if grep { $_ == $number } @$lost;
    }

    return $journal->segment;
}

# Each row has what is tested, which records of a segment are lost, what each
# record says was on disk, the records that count, how many are missing (or that
# a hole is at the beginning), and the bytes of a torn tail.

for (['nothing says that a lost record was on disk', [3], [0, 0, 0, 2, 2],
      [1, 2], undef, 3],
     ['the last record says that a lost record was on disk', [3],
      [0, 0, 0, 2, 3], [1, 2, 4, 5], 1],
     ['the next record says that a lost record was on disk', [3],
      [0, 0, 0, 3, 3], [1, 2, 4, 5], 1],
     ['of two lost records, one was on disk', [3, 4], [0, 0, 0, 0, 3, 3],
      [1, 2, 5, 6], 2],
     ['of two holes, one was on disk', [2, 4], [0, 0, 2, 2, 3, 3], [1, 3], 1, 3],
     ['two holes were on disk', [2, 4], [0, 0, 2, 2, 3, 4], [1, 3, 5, 6], 2],
     ['nothing says that the first record was on disk', [1], [0, 0, 0], [],
      undef, 3],
     ['a record says that the first record was on disk', [1], [0, 0, 1], [2, 3],
      'first'],
     ['the last records are lost', [4, 5], [0, 1, 2, 3, 4], [1, 2, 3]])
{
    my ($what, $lost, $durable, $left, $missing, $torn) = @$_;
    my $path = $t->write_file('end', with_holes(BloomTest::Journal->new, $lost,
                                                @$durable));
    my @complaint = !$missing ? (0, undef)
                  : $missing eq 'first'
                    ? (1, qr/: 64 bytes from position 128 on contain no valid record; load/)
                    : (1, qr/ contain no valid record; $missing records? before it or in it (is|are) missing; load/);

    is(join(' ', map { $_->{key} }
                     json_lines(journal(@complaint, '--keys', '--json', '-q',
                                        $path))),
       join(' ', map { "k$_" } @$left), "the keys that count where $what");

    my $found = json(journal(@complaint, '--json', $path));

    is($found->{result}, $missing ? 'damaged' : 'ok', "the verdict where $what");
    is($found->{missing}, $missing && $missing ne 'first' ? $missing : 0,
       "the number of missing records where $what");
    is($found->{torn} != 0, !!$torn, "the torn tail where $what");
    is($found->{used}, 128 + 64 * ($missing ? $left->[-1] : @$left),
       "the bytes that count where $what") if @$left;
}

# The records that say what was on disk may be in a later segment.

for (['nothing says that the end of a segment was on disk', [0, 1, 2], [2, 2],
      [1, 2], undef],
     ['the next segment says that a lost record was on disk', [0, 0, 0], [2, 3],
      [1, 2, 4 .. 7], 1],
     ['a later segment says that a lost record was on disk', [0, 0, 0], [2, 2],
      [1, 2, 4 .. 7], 1, 3])
{
    my ($what, $first, $second, $left, $missing, $last) = @$_;
    my $one = BloomTest::Journal->new;
    my $data = with_holes($one, [3], @$first);
    my $two = $one->next_segment;
    my $next = with_holes($two, [], @$second);
    my $three = $two->next_segment;
    my $path = directory($what =~ tr/ /-/r, 1 => $data, 2 => $next,
                         3 => with_holes($three, [], 2, $last // 2));
    my @complaint = !$missing ? (0, undef)
                    : (1, qr{/2: is damaged: 1 record before it or in it is missing; load});

    is(join(' ', map { $_->{key} }
                     json_lines(journal(@complaint, '--keys', '--json', '-q',
                                        $path))),
       join(' ', map { "k$_" } @$left), "the keys that count where $what");
    like(journal(@complaint, $path),
         $missing ? qr{/3: ok, .* 2 records.*\n.*: damaged, 3 segments, 6 rec}
                  : qr{/1:\ ok,\ .*\ 2\ records.*\n
                       .*/2:\ ok,\ .*,\ 128\ of\ .*\ 0\ records,\ 0\ keys,
                           \ then\ a\ torn\ tail\ of\ .*\n
                       .*/3:\ ok,\ .*,\ 128\ of\ .*\ 0\ records,\ 0\ keys,
                           \ then\ a\ torn\ tail\ of\ 123\ bytes\n
                       .*:\ ok,\ 3\ segments,\ 2\ rec}x,
         "what journal prints where $what");

    # a segment that is missing is a hole like any other

    unlink "$path/2" or die "unlink: $!";
    journal($last ? (1, qr{/3: is damaged: the segment from position 262144 to 524288, which comes before it, is missing; 3 records before it or in it are missing; load})
                  : (0, undef), $path);
}

{
    # what another journal says of records with the same numbers does not count

    my $one = BloomTest::Journal->new;
    my $data = with_holes($one, [2], 0, 0, 0);
    my $path = directory('promised-by-another', 1 => $data,
                         2 => with_holes($one->next_segment(journal => 'x' x 16),
                                         [], 3, 4));

    like(journal(1, qr{^ngx-bloom journal: \S+/2: is damaged: it belongs to another journal than \S+/1; move it away$},
                 $path), qr{/1: ok, .* 1 record, 1 key, .* a torn tail},
         'another journal says nothing of the records of this one');
    is_deeply([json_lines(journal(1, qr/another journal/, '--json', $path))]->[1],
              { file => "$path/2", result => 'damaged',
                error => "is damaged: it belongs to another journal than $path/1;"
                         . ' move it away' },
              'journal --json says that a segment is of another journal, and no'
              . ' more');

    # nothing behind the end counts: no removal, no clear, no type

    my $end = BloomTest::Journal->new;
    $end->append(['a']);
    my $lost = $end->append(['b']);
    $end->append(['a'], type => REMOVE, durable => 1);
    $end->append(['c'], type => 77, durable => 1);
    substr($end->{data}, $lost, RECORD) = "\0" x RECORD;
    my $clear = $end->next_segment;
    $clear->append_clear(durable => 1);
    $path = directory('behind-the-end', 1 => $end->segment,
                      2 => $clear->segment);

    is(journal(0, undef, '--keys', '-q', $path), "a\n",
       'what is behind the end removes nothing');
    is(journal(0, undef, '--removed', '-q', $path), '',
       'what is behind the end has removed nothing');
}

{
    # a segment that was prepared: the numbers of its records may begin later
    # than its header says

    my $prepared = BloomTest::Journal->new(sequence => 5);
    $prepared->append(['nine'], sequence => 9);
    my $path = $t->write_file('prepared', $prepared->segment);

    like(journal(0, undef, $path), qr/: ok, .* 1 record, .* sequence 9 to 9/,
         'records before the first one of a segment are not missing');

    for (8, 4) {
        my $hole = BloomTest::Journal->new(sequence => 5);
        $hole->append(['nine'], sequence => 9);
        $hole->append(['ten'], durable => $_);
        substr($hole->{data}, 128, RECORD) = "\0" x RECORD;
        $path = $t->write_file('prepared-hole', $hole->segment);

        is(journal($_ >= 5
                   ? (1, qr/: is damaged: 64 bytes from position 128 on contain no valid record; load/)
                   : (0, undef), '--keys', '-q', $path),
           $_ >= 5 ? "ten\n" : '',
           "a first record is a hole if record $_ was on disk, and 5 was the first");
    }
}

for (1, ~0) {
    my $bad = BloomTest::Journal->new;
    $bad->append(['one'], durable => $_);
    is(journal(0, qr/a torn tail/, '--keys',
               $t->write_file('bad', $bad->segment)), '',
       "the first record cannot know that record $_ was on disk");
}


# ---- records of all types ----

# Returns what --keys or --removed prints of segments or a directory.

sub listed {
    my ($option, @paths) = @_;

    return join ' ', split /\n/, journal(0, undef, $option, @paths);
}

{
    my $first = BloomTest::Journal->new;
    $first->append([qw(a b c d e f)]);
    my $second = $first->next_segment;
    $second->append([qw(b c d gone)], type => REMOVE);
    $second->append_restoration;
    my $removal = $second->append(['b'], type => REMOVE);
    $second->append(['d']);
    $second->append(['e', 'e'], type => REMOVE);
    $second->append([qw(f gone)], type => REMOVE);
    my $third = $second->next_segment;
    $third->append(['f']);
    $third->append_restoration(kinds => 4);

    my $path = directory('types', 1 => $first->segment,
                         2 => $second->segment, 3 => $third->segment);
    my @paths = map { "$path/$_" } 1 .. 3;

    is(listed('--keys', $path), 'a c d d f',
       'journal --keys leaves out keys that were removed later');
    is(listed('--removed', $path), 'b e gone',
       'journal --removed prints the keys whose last record is a removal');
    is(listed('--keys', @paths), 'a c d d f',
       'segments that are named together are parts of one journal');
    is(listed('--removed', @paths), 'b e gone',
       'journal --removed takes segments together');
    is(listed('--removed', $paths[1]), 'b e f gone',
       'journal --removed of one segment knows that segment only');
    is(listed('--keys', $paths[0], $path), 'a b c d e f a c d d f',
       'a directory is a journal of its own');

    like(journal(0, undef, $path),
         qr{^\Q$paths[0]\E:\ ok,\ .*\ 1\ record,\ 6\ keys,\ sequence\ .*\n
            \Q$paths[1]\E:\ ok,\ .*\ 6\ records,\ 10\ keys
                \ \(1\ added,\ 9\ removed,\ all\ restored\ 1\ time\),
                   \ sequence\ .*\n
            \Q$paths[2]\E:\ ok,\ .*\ 2\ records,\ 1\ key
                \ \(all\ restored\ 1\ time\),\ sequence\ .*\n
            \Q$path\E:\ ok,\ 3\ segments,\ 9\ records,\ 17\ keys
                \ \(8\ added,\ 9\ removed,\ all\ restored\ 2\ times\)\n\z}x,
         'journal prints how many keys were added, removed and restored');

    my $segment = json(journal(0, undef, '--json', $paths[1]));
    is_deeply([@$segment{qw(records keys added removed restorations cleared
                            removed_so_far removed_bytes_so_far)}],
              [6, 10, 1, 9, 1, JSON::PP::false, 9, 15],
              'journal --json has the numbers of keys of each type');

    my @removed = json_lines(journal(0, undef, '--removed', '--json', $path));
    is_deeply($removed[0], {
        key => 'b', sequence => 4, time => '2023-11-14T22:13:20.004Z',
        position => $second->{base} + $removal,
    }, 'journal --removed --json says where the key was removed');
    is(journal(0, undef, '--removed', '-0', $path), "b\0e\0gone\0",
       'journal --removed -0 ends keys with zero bytes');
    journal(2, qr/--keys and --removed cannot be used together/,
            '--keys', '--removed', @paths);
}

{
    # a writer died before its removal counted, and the next one took the number

    my $first = BloomTest::Journal->new;
    $first->append(['a']);
    $first->append(['b']);
    my $next = $first->next_segment;
    $first->append(['a'], type => REMOVE);
    $next->append(['c']);
    $next->append(['d']);
    my $path = directory('unpublished', 1 => $first->segment,
                         2 => $next->segment);

    is(listed('--keys', '-q', $path), 'a b c d',
       'a removal that never counted removes nothing, and hides no key');
    is(listed('--removed', '-q', $path), '',
       'a removal that never counted is not shown');
    like(journal(0, undef, $path),
         qr{/1:\ ok,\ .*\ 2\ records,\ .*,\ sequence\ 1\ to\ 2,\ .*\ a\ torn
            \ tail\ of\ .*\n.*/2:\ ok,\ .*,\ sequence\ 3\ to\ 4,}x,
         'it is a torn tail');
}

{
    # what the zone had before its journal is in an image

    my $later = BloomTest::Journal->new(base => 3 * SIZE, sequence => 42);
    $later->append(['a', 'b']);
    $later->append(['b'], type => REMOVE);
    my $path = directory('later', 1 => $later->segment);
    my $begins = 3 * SIZE + 128;

    for (['--keys', "a\n"], ['--removed', "b\n"], ['-0', '--keys', "a\0"]) {
        my ($out, @options) = reverse @$_;

        is(journal(0, qr{^ngx-bloom journal: warning: \Q$path\E: the journal begins at position $begins: keys that were added or removed before that are in the image or the checkpoints of the zone\n\z},
                   @options, $path), $out,
           "journal @options says that the journal lacks earlier keys");
        journal(0, undef, '-q', @options, $path);
        journal(0, undef, @options, "$path/1");
    }

    my @keys = json_lines(journal(0, qr/the journal begins at position $begins/,
                                  '--keys', '--json', $path));
    is($keys[0]{position}, $begins, 'the first key has this position');
    journal(0, undef, $path);

    journal(0, qr/the journal begins at position $begins/, '--keys',
            directory('later-empty',
                      1 => BloomTest::Journal->new(base => 3 * SIZE,
                                                   sequence => 2)->segment));

    # nothing was before, or it was cleared

    my $whole = BloomTest::Journal->new(base => 3 * SIZE);
    $whole->append(['a']);
    journal(0, undef, '--keys', directory('begins-first', 1 => $whole->segment));

    my $cleared = BloomTest::Journal->new(sequence => 42);
    $cleared->append_clear;
    $cleared->append(['a']);
    journal(0, undef, '--keys', directory('begins-cleared',
                                          1 => $cleared->segment));
}

{
    my $odd = BloomTest::Journal->new;
    $odd->append(["a\nb", 'c']);
    $odd->append(["a\nb"], type => REMOVE);
    my $path = $t->write_file('odd', $odd->segment);

    is(listed('--keys', $path), 'c',
       'a removed key need not be one that can be printed');
    journal(2, qr/the key "a\\x0ab" contains a line end/, '--removed', $path);
}

{
    my $before = BloomTest::Journal->new;
    $before->append(['a', 'b']);
    $before->append(['r'], type => REMOVE);
    my $clear = $before->next_segment;
    $clear->append_clear;
    $clear->append(['b']);
    $clear->append(['s'], type => REMOVE);
    my $path = directory('cleared', 1 => $before->segment,
                         2 => $clear->segment);

    is(listed('--keys', $path), 'b',
       'journal --keys leaves out keys that were added before a clear');
    is(listed('--removed', $path), 's',
       'journal --removed leaves out keys that were removed before a clear');
    like(journal(0, undef, "$path/2"),
         qr/ 3 records, 2 keys \(cleared at the beginning, 1 added, 1 removed\),/,
         'journal says that a segment begins with a clear');

    my $only = BloomTest::Journal->new;
    $only->append_clear;
    $path = $t->write_file('only-clear', $only->segment);
    like(journal(0, undef, $path),
         qr/ 1 record, 0 keys \(cleared at the beginning\), sequence/,
         'journal says of a segment that it has only a clear');
    is(json(journal(0, undef, '--json', $path))->{cleared}, JSON::PP::true,
       'journal --json says that a segment begins with a clear');

    my $late = BloomTest::Journal->new;
    $late->append(['a']);
    $late->append_clear;
    $late->append(['b']);
    $path = $t->write_file('late-clear', $late->segment);
    journal(1, qr/64 bytes from position 192 on contain no valid record; 1/,
            $path);
}

for my $type (5, 6, 255) {
    my $newer = BloomTest::Journal->new;
    $newer->append(['before']);
    my $at = $newer->append(['k' x 17], type => $type, count => 70000);
    $newer->append(['after']);
    my $path = $t->write_file('newer-type', $newer->segment);
    my $error = "newer-type: has a record of type $type at position $at, which"
                . ' this program does not know; use a newer program';

    journal(2, qr/\Q$error\E$/, @$_, $path)
        for [], ['--keys'], ['--removed'], ['--json'];
}


# ---- changes of a source ----

{
    my $first = BloomTest::Journal->new;
    $first->append(['old', 'gone'], time => 1700000000100);
    $first->append_changes('ids', 0, '1700000000000-5', ['gone', 'x'],
                           ['new', 'back'], time => 1700000000200);
    $first->append_changes('ids', '1700000000000-5', '1700000000001', [],
                           ['more'], time => 1700000000300);
    $first->append_changes('ids', '1700000000001', '1700000000007', ['back'],
                           [], time => 1700000000400);

    my $second = $first->next_segment;
    $second->append_changes('ids', '1700000000007', '1700000000007-1', [], []);
    $second->append_changes('ids', '9-9', '9-9', [], []);

    my $path = "$dir/changes";
    mkdir $path;
    $t->write_file('changes/1', $first->segment);
    $t->write_file('changes/2', $second->segment);

    my @lines = split /\n/, journal(0, undef, $path);

    like($lines[0],
         qr/, \d+ of 262144 bytes used, 4 records, 8 keys \(5 added, 3 removed, source at 1700000000007\), sequence/,
         'journal counts the keys of changes, and says where the source is');
    like($lines[1], qr/, 2 records, 0 keys \(source at 9-9\), sequence/,
         'journal says of a segment without keys where the source is');
    like($lines[2], qr/8 keys \(5 added, 3 removed, source at 9-9\)/,
         'the sum says where the source is at the end');

    my @json = json_lines(journal(0, undef, '--json', $path));

    is_deeply([map { [@$_{qw(keys added removed source_position
                             removed_so_far removed_bytes_so_far)}] }
                   @json[0, 1]],
              [[8, 5, 3, '1700000000007', 3, 9], [0, 0, 0, '9-9', 3, 9]],
              'journal --json has the same numbers');
    ok(!exists json(journal(0, undef, '--json', $file))->{source_position},
       'without changes, there is no source_position');

    is_deeply([split /\n/, journal(0, undef, '--keys', $path)],
              [qw(old new more)],
              'journal --keys shows the keys that changes add');
    is_deeply([split /\n/, journal(0, undef, '--removed', $path)],
              [qw(gone x back)],
              'journal --removed shows the keys that changes remove');

    my ($new) = grep { $_->{key} eq 'new' }
                     json_lines(journal(0, undef, '--keys', '--json', $path));

    is_deeply([@$new{qw(sequence position time)}],
              [2, 200, '2023-11-14T22:13:20.200Z'],
              'a key of changes has the place and the time of its record');

    my $clear = BloomTest::Journal->new;
    $clear->append(['restored']);
    $clear->append_changes('ids', 0, 1, ['restored'], []);
    $clear->append_restoration;
    $path = $t->write_file('restored-changes', $clear->segment);
    is(journal(0, undef, '--keys', $path), "restored\n",
       'a restoration restores what changes have removed');
    is(journal(0, undef, '--removed', $path), '',
       'a restored key of changes is not removed any more');
}

for (['too many removals', 0, 1, ['a'], ['b'], first => 3],
     ['a position that goes back', '5-1', 5, [], []],
     ['a digest that begins later', 5, 6, [], ['a'], since => '5-1'],
     ['keys in a gap', 5, 5, ['a'], []])
{
    my ($what, $before, $after, @rest) = @$_;
    my $bad = BloomTest::Journal->new;

    $bad->append(['before']);
    $bad->append_changes('ids', $before, $after, @rest);
    $bad->append(['behind']);

    my $path = $t->write_file('bad-changes', $bad->segment);
    is(journal(1, qr/contain no valid record/, '--keys', $path),
       "before\nbehind\n", "changes with $what are damage");
}


# ---- t/fuzz/corpus/record ----

{
    my $torn = BloomTest::Journal->new;
    $torn->append(['torn', 'away']);
    my $hole = BloomTest::Journal->new(base => 2 ** 33, sequence => 5);
    $hole->append(['before']);
    my $from = $hole->append(['hole']);
    $hole->append(['behind']);
    substr($hole->{data}, $from, RECORD + 8) = "\0" x (RECORD + 8);
    my $lengths = BloomTest::Journal->new;
    $lengths->append([map { 'k' x $_ } 1, 127, 128, 300]);

    my $types = BloomTest::Journal->new;
    $types->append_clear;
    $types->append(['added', 'again']);
    $types->append(['added'], type => REMOVE);
    $types->append_restoration;
    my $newer = BloomTest::Journal->new;
    $newer->append(['newer'], type => 5);
    $newer->append(['behind']);

    my $changes = BloomTest::Journal->new;
    $changes->append_changes('ids', 0, '1-2', ['gone', 'away'], ['here']);
    $changes->append_changes('ids', '1-2', 3, [], ['added']);
    $changes->append_changes('ids', 3, 4, ['removed'], []);
    $changes->append_changes('s' x 255, 4, 5, [], []);
    $changes->append_changes('ids', 9, 9, [], []);

    my %seed = (
        'changes' => $changes->{data},
        'types' => $types->{data},
        'newer-type' => $newer->{data},
        'three-records' => $journal->{data},
        'header-alone' => BloomTest::Journal->new->{data},
        'torn' => substr($torn->{data}, 0, -9),
        'hole' => $hole->{data},
        'lengths' => $lengths->{data},
    );

    for my $name (sort keys %seed) {
        my $path = "$checkout/t/fuzz/corpus/record/$name";

        ok(-e $path && content_of($path) eq $seed{$name},
           "the fuzzer of the journal begins with $name");
    }
}

done_testing;
