#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that --min-keys, --max-loss and --max-growth refuse a new image that
# differs too much from the image that it would replace, and --must-have and --must-not-have
# one with wrong keys, and that the old image then stays.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(content_of copy_with_header info json json_lines lines_of tool tool_ok
                       tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $image = "$dir/list.bloom";

sub stdin_of { return { stdin => lines_of(map { "key$_" } 1 .. $_[0]) } }

# Runs a build of so many keys over the image.  Returns what it prints to
# standard error.

sub build_over {
    my ($status, $keys, @options) = @_;

    my ($exit, $out, $err) = $t->run_tool('build', '-o', $image, @options,
                                          stdin_of($keys));
    is($exit, $status, "a build of $keys keys with \"@options\" exits with"
                       . " $status") or diag($err);
    is($out, '', 'a refused build prints no result') if $status != 0;

    return $err;
}

# Tests that a build is refused with this message and changes nothing.

sub refused {
    my ($message, $keys, @options) = @_;

    my $old = content_of($image);
    my $err = build_over(1, $keys, @options);

    like($err, qr/\Angx-bloom build: \Q$image\E: not written: $message\n\z/,
         'the message has both numbers and says what to do');
    is(content_of($image), $old, 'the old image stays');
    is_deeply([glob "$dir/{*,.[!.]*}.tmp*"], [], 'no other file stays');
}

sub start_with {
    my ($keys, @options) = @_;

    unlink $image;
    tool_ok('build', '-q', '-o', $image, '--allow-empty', @options,
            stdin_of($keys));
}

sub items_are {
    my ($keys, $name) = @_;

    is(info($image)->{items}, $keys, $name);
}


subtest '--max-loss and --max-growth hold in one direction each' => sub {
    start_with(1000);

    refused('it would have 799 distinct keys, 201 fewer \(20.1 %\) than the 1000'
            . ' of the image that it replaces, and --max-loss allows 20 %;'
            . ' check the input, or use --max-loss off if the change is'
            . ' right', 799, '--max-loss', '20%', '--max-growth', 0);
    refused('it would have 1201 distinct keys, 201 more \(20.1 %\) than the 1000'
            . ' of the image that it replaces, and --max-growth allows 20 %;'
            . ' check the input, or use --max-growth off if the change is'
            . ' right', 1201, '--max-growth', '20%', '--max-loss', '0%');
    refused('it would have 999 distinct keys, 1 fewer \(0.1 %\) than the 1000 of'
            . ' the image that it replaces, and --max-loss allows 0 keys; .*',
            999, '--max-loss', 0);
    refused('.* 11 more .* and --max-growth allows 10 keys; .*', 1011,
            '--max-growth', 10);
    refused('.* 2 fewer .* and --max-loss allows 1 key; .*', 998, '--max-loss',
            1);

    build_over(0, 1200, '-q', '--max-loss', 0, '--max-growth', '20%');
    items_are(1200, 'exactly the allowed growth passes');
    build_over(0, 960, '-q', '--max-loss', '20%', '--max-growth', 0);
    items_are(960, 'exactly the allowed loss passes');
    build_over(0, 950, '-q', '--max-loss', 10);
    items_are(950, 'exactly the allowed number of keys may be lost');
    build_over(0, 2000, '-q', '--max-loss', 0);
    items_are(2000, '--max-loss allows every growth');
    build_over(0, 1000, '-q', '--max-growth', 0);
    items_are(1000, '--max-growth allows every loss');
    build_over(0, 2000, '-q', '--max-growth', '1k');
    items_are(2000, 'exactly the allowed number of keys may be new');

    build_over(0, 10, '-q', '--max-loss', 'off', '--max-growth', 0);
    items_are(10, '--max-loss off allows every loss');
    build_over(0, 40, '-q', '--max-growth', '300%');
    items_are(40, 'a growth of more than 100 % can be allowed');
    build_over(0, 1000, '-q', '--max-growth', 'off', '--max-loss', 0);
    items_are(1000, '--max-growth off allows every growth');
    build_over(0, 100, '-q');
    items_are(100, 'without the options every change passes');
};


subtest 'new keys make up for lost ones' => sub {
    start_with(1000);
    tool_ok('build', '-q', '-o', $image, '--max-loss', 0, '--max-growth', 0,
            { stdin => lines_of(map { "other$_" } 1 .. 1000) });
    items_are(1000, 'another thousand keys is neither loss nor growth');
};


subtest 'distinct keys count, not lines' => sub {
    start_with(1000);

    my ($exit, undef, $err)
        = $t->run_tool('build', '-o', $image, '--max-loss', '20%',
                       { stdin => lines_of(('key1') x 1000) });

    is($exit, 1, 'a thousand times the same key is refused');
    like($err, qr/would have 1 distinct key,/, 'as one key');
};


subtest 'either option refuses another key form' => sub {
    start_with(1000, '--form', 'lower');

    for my $option ('--max-loss', '--max-growth') {
        refused('it would have the key form raw, and the image that it replaces'
                . ' has lower, .* correct --form or, if the change is right,'
                . ' leave out --max-loss and --max-growth', 1000, $option,
                '20%');
    }

    build_over(0, 1000, '-q', '--max-loss', '20%', '--form', 'lower');
    build_over(0, 1000, '-q', '--max-loss', 'off', '--max-growth', 'off');
    is(info($image)->{form}, 'raw', 'with both off, another one passes');
};


subtest 'without an old image there is nothing to compare' => sub {
    unlink $image;
    like(build_over(0, 5, '--max-loss', '20%'),
         qr/warning: \Q$image\E: does not exist, so --max-loss and --max-growth compare/,
         'the first build passes, and says so');

    unlink $image;
    is(build_over(0, 5, '-q', '--max-growth', '20%'), '',
       '-q suppresses the warning');

    start_with(0);
    build_over(0, 5, '-q', '--max-growth', '20%');
    items_are(5, 'no part of an old image without keys is computed');

    start_with(0);
    refused('it would have 5 distinct keys, 5 more than the 0 of .*', 5,
            '--max-growth', 4);
};


subtest 'a damaged old image is an error' => sub {
    $t->write_file('list.bloom', 'damaged');

    for my $option ('--max-loss', '--max-growth') {
        like(build_over(2, 5, $option, '20%'),
             qr/list\.bloom:\ .*\n
                ngx-bloom\ build:\ .*list\.bloom:\ not\ written:\ it\ cannot
                \ be\ compared\ with\ .*;\ repair\ or\ remove\ that\ file,
                \ or\ leave\ out\ --max-loss\ and\ --max-growth/x,
             'the message says what to do');
        is(content_of($image), 'damaged', 'the file stays');
    }

    build_over(0, 5, '-q', '--max-loss', 'off', '--max-growth', 'off');
    items_are(5, 'with both off it is replaced');
};


subtest '--replaces names the image to compare with' => sub {
    start_with(1000);

    my $new = "$dir/list.bloom.new";
    my @beside = ('build', '-o', $new, '--replaces', $image, '--max-loss',
                  '20%');

    tool(1, qr/500 distinct keys, 500 fewer \(50 %\) than the 1000/, @beside,
         stdin_of(500));
    ok(!-e $new, 'the new file is not written');

    tool_ok(@beside, stdin_of(900));
    is(info($new)->{items}, 900, 'an image within the limit is written');
    items_are(1000, 'the old image is not touched');
    unlink $new;
};


subtest '--min-keys' => sub {
    start_with(1000);
    refused('it would have 949 distinct keys, and --min-keys demands 950; .*',
            949, '--min-keys', 950);
    build_over(0, 950, '-q', '--min-keys', 950);

    start_with(1);
    my ($exit) = $t->run_tool('build', '-o', "$dir/first.bloom", '--min-keys',
                              '1k', stdin_of(999));
    is($exit, 1, 'it holds for a first build, too');
};


subtest 'merge has the guards' => sub {
    start_with(1000, '-n', '5k');
    tool_ok('build', '-q', '-o', "$dir/more.bloom", '--like', $image,
            { stdin => lines_of(map { "more$_" } 1 .. 1000) });

    my @merge = ('merge', '-o', $image, $image, "$dir/more.bloom");
    my $old = content_of($image);

    tool(1, qr/ngx-bloom merge: .* %\) than the 1000 of .* and --max-growth allows/,
         @merge, '--max-growth', '20%');
    tool(1, qr/--min-keys demands 5000/, @merge, '--min-keys', '5k');
    is(content_of($image), $old, 'the old image stays');
    tool_ok(@merge, '--max-growth', '200%');
    cmp_ok(info($image)->{items}, '>', 1900, 'a change that is allowed passes');
};


subtest 'import has the guards' => sub {
    start_with(1000);
    $t->write_file('bits', "\xff" x 12 . "\0" x 113);

    my @import = ('import', '--from', 'bitmap', '--scheme', 'double', '--bits',
                  1000, '--hashes', 4, '-q', '-o', $image, "$dir/bits");

    tool(1, qr/ngx-bloom import: .* %\) than the 1000 of .* and --max-loss allows/,
         @import, '--max-loss', '50%');
    tool(1, qr/--min-keys demands 1000/, @import, '--min-keys', '1k');
    items_are(1000, 'the old image stays');
    tool(0, undef, @import, '--max-loss', '99%');
};


subtest '--must-have and --must-not-have' => sub {
    start_with(1000);
    $t->write_file('must', "\xef\xbb\xbf# samples\n\nkey1\r\n key500 # x\n");
    $t->write_file('must-not', "! ours\nours\nkey1001\n");

    my @guards = ('--must-have', "$dir/must", '--must-not-have',
                  "$dir/must-not");

    build_over(0, 1000, '-q', '-p', '1e-9', @guards);
    items_are(1000, 'an image that is right is written');

    refused("it lacks the key \"key500\" of line 4 of --must-have"
            . " $dir/must; check the input", 499, @guards);
    refused("it has the key \"key1001\" of line 3 of --must-not-have"
            . " $dir/must-not; take it out of the input or, if it is not"
            . ' there, build the image again, with another seed', 1001,
            @guards);

    $t->write_file('most', "key1\n" . '#' x 1023 . ("\n" . '#' x 1023) x 16_382
                           . "\n" . '#' x 1019);
    $t->write_file('more', $t->read_file('most') . '#');

    is(-s "$dir/most", 16 << 20, 'a file of keys has 16 MiB');

    for my $option ('--must-have', '--must-not-have') {
        like(build_over(2, 1000, $option, "$dir/more"),
             qr/not written: $option \S*more has more than 16 MiB, which nginx does not accept; keep only samples/,
             "$option refuses a file that nginx does not accept");
    }

    tool(2, qr/has more than 16 MiB/, 'build', '-o', $image, '--must-have', '-',
         "$dir/must", { stdin => "key1\n" x (4 << 20) });
    tool(2, qr/refused: --must-have \S*more has more than 16 MiB/, 'verify',
         '--must-have', "$dir/more", $image);
    items_are(1000, 'the old image stays');
    build_over(0, 1000, '-q', '--must-have', "$dir/most");
};


subtest 'samples are looked up in the key form' => sub {
    $t->write_file('urls.txt', "bad.example/\nshop.example/sale\n");

    my @build = ('build', '-q', '-o', "$dir/urls.bloom", '--form', 'url', '-p',
                 '1e-9', "$dir/urls.txt");

    tool(0, undef, @build, '--must-have',
         $t->write_file('must', "http://user\@BAD.example:80/any?thing\n"));
    tool(1, qr/has the key "https:\/\/www\.shop\.example\/sale\?x", by "shop\.example\/sale", of line 2 of/,
         @build, '--must-not-have',
         $t->write_file('must-not',
                        "own.example\nhttps://www.shop.example/sale?x\n"));
};


subtest 'verify has the guards' => sub {
    start_with(1000, '-p', '1e-9');
    $t->write_file('must', "key1\nkey1000\n");
    $t->write_file('must-not', "ours\n");

    my @all = ('--min-keys', '1k', '--must-have', "$dir/must",
               '--must-not-have', "$dir/must-not");

    tool(0, undef, 'verify', '-q', @all, $image);
    my $found = json(tool(0, undef, 'verify', '--json', @all, $image));
    is($found->{result}, 'ok', 'an image that is right is ok');
    ok(abs($found->{estimated_items} - 1000) < 20,
       'its bits are counted with samples, too');

    my $fewer = "$dir/fewer.bloom";
    tool_ok('build', '-q', '-o', $fewer, stdin_of(900));

    for (['it has 900 distinct keys, and --min-keys demands 901; check the'
          . ' input', '--min-keys', 901],
         ['it has 900 distinct keys, 100 fewer (10 %) than the 1000 of the image'
          . ' that it replaces, and --max-loss allows 9 %; check the input, or'
          . ' use --max-loss off if the change is right', '--max-loss', '9%',
          '--replaces', $image],
         ["it lacks the key \"key1000\" of line 2 of --must-have $dir/must;"
          . ' check the input', '--must-have', "$dir/must"])
    {
        my ($message, @guards) = @$_;

        tool(1, qr/\Angx-bloom verify: \Q$fewer: refused: $message\E\n\z/,
             'verify', @guards, $fewer);

        my ($exit, $out) = $t->run_tool('verify', '--json', @guards, $fewer);
        is($exit, 1, '--json has the same status');
        is_deeply(json($out), { file => $fewer, result => 'refused',
                                error => "refused: $message" },
                  '--json has the reason');
    }

    tool(0, undef, 'verify', '-q', '--max-loss', '10%', '--max-growth', 0,
         '--replaces', $image, $fewer);
    tool(1, qr/100 more \(11.1 %\) than the 900 .* and --max-growth allows 11 %/,
         'verify', '--max-growth', '11%', '--replaces', $fewer, $image);
    tool(2, qr/--max-loss and --max-growth need --replaces, the image to/,
         'verify', $_, '10%', $fewer) for '--max-loss', '--max-growth';
    tool(2, qr/cannot be read/, 'verify', '--must-have', "$dir/missing",
         $image);

    my ($exit, $out) = $t->run_tool('verify', '--json', '--min-keys', 950,
                                    $fewer, $image);
    is_deeply([map { $_->{result} } json_lines($out)], ['refused', 'ok'],
              'each image has its own result');
};


subtest 'an image whose bits contradict its number of keys' => sub {
    my $items = 104;    # its place in the header
    my @guard = ('--min-keys', 10);

    for my $layout ('blocked', 'classic', 'fuse') {
        for my $case ([1000, 1300, 'fewer'], [1000, 10_000, 'fewer'],
                      [1000, 800, 'more'], [1000, 100, 'more'],
                      [1000, 1000], [1000, 1100], [1000, 920])
        {
            my ($keys, $states, $than) = @$case;

            # the header of a fuse image has the keys of the base, too

            next if $layout eq 'fuse' && $states < $keys;

            start_with($keys, '--layout', $layout, '-p', '1e-4',
                       $layout eq 'fuse' ? () : ('-n', '2k'));
            my $lies = copy_with_header('list.bloom', 'lies.bloom',
                                        $items => pack 'Q<', $states);

            tool($than ? 1 : 0,
                 $than && qr/\Angx-bloom verify: \Q$lies\E: refused: it states $states distinct keys, and its bits are those of $than, about (?:9[5-9]\d|10[0-4]\d); build it again, or leave out --min-keys, --max-loss and --max-growth\n\z/,
                 'verify', '-q', @guard, $lies);
            tool(0, undef, 'verify', '-q', $lies);
        }
    }

    start_with(0, '-n', '10k');
    my $none = copy_with_header('list.bloom', 'none.bloom',
                                $items => pack 'Q<', 10_000);
    my $message = 'it states 10000 distinct keys, and its bits are those of'
                  . ' fewer, about 0; ';

    tool(1, qr/refused: $message/, 'verify', '-q', @guard, $none);
    start_with(9000);
    tool(1, qr/refused: $message/, 'verify', '-q', $_, '20%', '--replaces',
         $image, $none) for '--max-loss', '--max-growth';
    is(json(($t->run_tool('verify', '--json', @guard, $none))[1])->{result},
       'refused', '--json says so');
};


subtest 'honest images of all kinds pass' => sub {
    my @guard = ('verify', '-q', '--min-keys', 1);

    for my $layout ('blocked', 'classic') {
        for my $fill (1, 10, 1000, 20_000, 300_000) {
            start_with($fill, '-n', 1000, '--layout', $layout, '-p', '0.01');
            tool(0, undef, @guard, $image);
        }
    }

    # one that was added to, beyond its capacity, and keys twice; merged ones

    start_with(1000, '-p', '0.3');
    tool_ok('add', '-q', $image, stdin_of($_)) for 2000, 2000, 50_000;
    tool(0, undef, @guard, $image);

    my $other = "$dir/other.bloom";
    tool_ok('build', '-q', '-o', $other, '--like', $image, stdin_of(60_000));
    tool_ok('merge', '-q', '-o', $other, $other, $image);
    tool(0, undef, @guard, $other);

    start_with(3000, '--layout', 'fuse', '-p', '0.3');
    tool(0, undef, @guard, $image);
};


subtest 'a wrong value' => sub {
    my %must = (loss => '1%, up to 100%, a number of keys such as 500, or off',
                growth => '50%, a number of keys such as 10k, or off');

    for (['loss', '100.1%'], ['growth', '1000001%'],
         map { my $value = $_; map { [$_, $value] } 'loss', 'growth' }
             '-5%', '-5', '%', '5%%', 'of', '1e3%', '.5%', '1.5', '5x', '')
    {
        my ($name, $value) = @$_;

        tool(2, qr/--max-$name "\Q$value\E": must be a percentage such as $must{$name}/,
             'build', '-o', $image, "--max-$name", $value, stdin_of(1));
    }
};


done_testing;
