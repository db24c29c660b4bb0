#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom add" adds keys to an image: the image is the one that a
# build of all keys makes, errors leave it unchanged, and additions at the same
# time lose nothing.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Process qw(run_command spawn);
use BloomTest::Tool qw(content_of info json lines_of members_are present
                       tool_ok tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $tool = tool_path();


sub build {
    my ($name, $keys, @options) = @_;

    my $image = "$dir/$name";
    tool_ok('build', '-q', '-o', $image, @options, '--allow-empty',
            { stdin => lines_of(@$keys) });

    return $image;
}

sub add {
    my ($image, $keys, @options) = @_;

    return json(scalar tool_ok('add', '--json', @options, $image,
                                      { stdin => lines_of(@$keys) }));
}


my @old = map { "old$_" } 1 .. 1000;
my @new = map { "new$_" } 1 .. 1000;


# --------------------------------------- the same image as a build of all keys

for ([], ['--layout', 'classic'], ['-p', '0.00001'], ['--hash', 'siphash'],
     ['--form', 'lower'])
{
    my @how = @$_;

    my $image = build('some.bloom', \@old, '-n', 3000, @how);
    my $before = info($image);
    my $whole = build('whole.bloom', [@old, @new], '--like', $image);

    chmod 0640, $image;

    my $result = add($image, [@new, @new[0 .. 9], @old[0 .. 4]]);
    my $after = info($image);

    is($result->{received}, 1015,
       "add --json counts the keys it received for an image of (@how)");
    cmp_ok(abs($result->{added} - 1000), '<', 10,
           "add --json counts the keys that were absent from an image of"
           . " (@how)");
    is($result->{already_present}, 1015 - $result->{added},
       "add --json counts the keys already present in an image of (@how)");
    ok($result->{written},
       "add --json says that it has written an image of (@how)");
    ok(substr(content_of($image), 4096) eq substr(content_of($whole), 4096),
       "an image of (@how) has the bits of an image built of all keys");
    is(present($image, @old, @new), 2000,
       "old and new keys are present in an image of (@how)");

    cmp_ok(abs($after->{items} - 2000), '<', 10,
           "the items of an image of (@how) are about right after an addition");
    is($after->{items}, $result->{items},
       "add --json has the items that info has of an image of (@how)");
    ok($after->{items_estimated},
       "items are an estimate where some keys were present in (@how)");

    isnt($after->{build_id}, $before->{build_id},
         "an addition to an image of (@how) gives it a new build id");
    is($after->{$_}, $before->{$_},
       "an addition keeps $_ of an image of (@how)")
        for qw(capacity fpr bits k hash layout form);
    is((stat $image)[2] & 07777, 0640,
       "an addition keeps the file mode of an image of (@how)");
}


# ------------------------------------------------------------ counts of keys

{
    my $image = build('exact.bloom', \@old, '-n', 3000, '-p', '1e-9');

    my $result = add($image, \@new);
    members_are('items are exact if all keys are new', $result, added => 1000,
                items => 2000, items_estimated => JSON::PP::false,
                items_error => 0);
    ok(!info($image)->{items_estimated},
       'info --json says that items are exact if all keys are new');

    my $build = info($image)->{build_id};

    $result = add($image, [@new, @old]);
    members_are('an addition of present keys adds none and is written', $result,
                added => 0, already_present => 2000,
                written => JSON::PP::true, items => 2000);
    isnt(info($image)->{build_id}, $build,
         'an addition of present keys gives the image another build id, so '
         . 'that zones forget excepted keys');

    like(scalar tool_ok('add', $image, { stdin => "old1\n\n" }),
         qr/^\Q$image\E: 1 key, 0 added, 2000 distinct, capacity 3000, false-positive rate [^;]*\n.* 1 empty key was skipped\n\z/,
         'add prints how many keys it added and skipped');

    my $was = content_of($image);
    my $inode = (stat $image)[1];

    $result = add($image, []);
    members_are('add without a key writes no image', $result, received => 0,
                written => JSON::PP::false);
    is((stat $image)[1], $inode,
       'an addition without keys leaves the file in place');
    ok(content_of($image) eq $was,
       'an addition without keys leaves the content unchanged');
    like(scalar tool_ok('add', $image, { stdin => '' }),
         qr/; the image is unchanged$/m,
         'add says that it leaves the image unchanged without a key');

    my $empty = build('empty.bloom', [], '-n', 3000);
    is(add($empty, [@new, @new])->{items}, 1000,
       'distinct keys added to an empty image are counted exactly');
    ok(!info($empty)->{items_estimated},
       'info --json says that items of a formerly empty image are counted');
}

{
    # a filter so full that a third of the new keys seem to be present

    my $image = build('full.bloom', [map { "a$_" } 1 .. 20_000], '-n', 20_000,
                      '-p', '0.3');
    my $result = add($image, [map { "b$_" } 1 .. 10_000]);

    cmp_ok($result->{added}, '<', 7500,
           'an addition to a full filter sees fewer keys as new than there'
           . ' are');
    cmp_ok(abs($result->{items} - 30_000), '<',
           6 * $result->{items_error},
           'an addition to a full filter estimates the items well');
    cmp_ok($result->{items_error}, '<', 200,
           'the estimate of items of a full filter has a small error');
}


# -------------------------------------------------------------------- warnings

{
    my $image = build('small.bloom', \@old);

    my ($out, $err) = tool_ok('add', $image, { stdin => lines_of(@new) });
    like($err, qr/warning: \d+ distinct keys exceed the capacity of 1000: .*; rebuild the image with a larger -n/,
         'add warns of more keys than the capacity');

    ($out, $err) = tool_ok('add', '-q', $image, { stdin => "x\ny\n" });
    is($out . $err, '', 'add -q prints nothing, and no warning');
}


# ----------------------------------------------------------------------- as_of

{
    my $image = build('dated.bloom', \@old, '-n', 9000, '--as-of',
                      '2026-01-31T12:00:00Z');

    is(add($image, \@new)->{as_of}, '2026-01-31T12:00:00.000Z',
       'add without --as-of keeps as_of in its result');
    is(info($image)->{as_of}, '2026-01-31T12:00:00.000Z',
       'add without --as-of keeps as_of in the image');

    my $result = add($image, \@new, '--as-of', '2026-02-01T12:00:00Z');
    ok($result->{written}, 'add writes a later --as-of, even without new keys');
    is(info($image)->{as_of}, '2026-02-01T12:00:00.000Z',
       'info --json has the later as_of that add has written');

    my $was = content_of($image);

    for (['2026-01-01T00:00:00Z', qr/is already complete as of 2026-02-01T12:00:00.000Z, which is later than --as-of; leave out --as-of/],
         ['tomorrow', qr/must be a time such as/],
         [time + 86400, qr/in the future/])
    {
        my ($as_of, $message) = @$_;
        my ($exit, $out, $err) = $t->run_tool('add', '--as-of', $as_of, $image,
                                              { stdin => "never\n" });
        is($exit, 2, "add --as-of $as_of is refused");
        like($err, $message, "add --as-of $as_of is refused with a reason");
    }

    ok(content_of($image) eq $was,
       'refused values of --as-of leave the image unchanged');
}


# ------------------------------------------------------------- lists and forms

{
    my $image = build('hosts.bloom', ['bad.example'], '-n', 100, '--form',
                      'host');
    my $list = $t->write_file('hosts',
                              "# bad\n0.0.0.0 WORSE.example worst.example\n");

    my $result = json(scalar tool_ok('add', '--json', '--from', 'hosts',
                                            $image, $list));
    is($result->{received}, 2,
       'add --from hosts counts the names of a hosts file');
    is($result->{comments}, 1, 'add --from hosts counts comments');
    is(present($image, qw(worse.example a.worst.example good.example)), 2,
       'added keys are in the key form of the image');

    my $nul = build('nul.bloom', ['a'], '-n', 100);
    tool_ok('add', '-q', '-0', $nul, { stdin => "b\nc\0d\0" });
    is(present($nul, qw(a b c d)), 2,
       'add -0 takes keys that end with a zero byte');

    $t->write_file('one', "one\n");
    $t->write_file('two', "two\n");
    tool_ok('add', '-q', $nul, "$dir/one", "$dir/two");
    is(present($nul, qw(one two three)), 2, 'add takes keys of several files');
}


# -------------------------------------------------------------------- imported

{
    # a bitmap as in Redis, whose keys cannot be counted

    my $bits = $t->write_file('bitmap', "\0" x 12_500);
    my $image = "$dir/imported.bloom";

    tool_ok('import', '-o', $image, '--from', 'bitmap', '--scheme', 'go-zero',
            '--bits', 100_000, '--hashes', 5, $bits);

    my $before = info($image);
    my $result = add($image, \@new);

    is(present($image, @new), 1000,
       'keys that were added to an imported image are present');
    cmp_ok(abs($result->{items} - 1000), '<', 100,
           'the items of an imported image are estimated from its bits');
    ok($result->{items_estimated},
       'the items of an imported image are marked as an estimate');
    is(info($image)->{origin}, $before->{origin},
       'an addition keeps the origin of an imported image');
    tool_ok('verify', '-q', $image);
}


# ---------------------------------------------------------------------- errors

{
    my $image = build('safe.bloom', \@old, '-n', 3000);
    my $was = content_of($image);
    my $other = build('other.bloom', \@new);
    my $torn = $t->write_file('torn.bloom', substr($was, 0, -1));
    my $keys = $t->write_file('keys', lines_of(@new));

    for ([qr/no image is named/],
         ['nowhere.bloom', qr/nowhere\.bloom: cannot be opened: No such file/,
          "$dir/nowhere.bloom", $keys],
         ['no image', qr/keys: is not a Bloom filter image/, $keys, $keys],
         ['torn', qr/torn\.bloom: is truncated/, $torn, $keys],
         ['no keys', qr/other\.bloom: is an image, not a list of keys/,
          $image, $other],
         ['its own file', qr/safe\.bloom: is also the output/, $image, $image],
         ['keys that are not there', qr/missing: cannot be opened/, $image,
          "$dir/missing"],
         ['-0 with --from', qr/--from and -0 cannot be used together/,
          '-0', '--from', 'lines',
          $image, $keys],
         ['an unknown option', qr/unknown option "--like"/, '--like', $image,
          $keys])
    {
        my $name = ref $_->[0] ? 'no image named' : shift @$_;
        my ($message, @arguments) = @$_;

        my ($exit, $out, $err) = $t->run_tool('add', @arguments);
        is($exit, 2, "an addition with $name is refused");
        like($err, $message, "an addition with $name says what is wrong");
        ok(content_of($image) eq $was,
           "an addition with $name leaves the image unchanged");
    }

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -f 4 && exec "$@"', 'sh', $tool, 'add', $image,
         $keys], env => $t->{env});
    is($exit, 2, 'an addition that finds no room on the disk fails');
    like($err, qr/safe\.bloom: cannot be written: File too large; the old file is unchanged/,
         'an addition that finds no room on the disk says so');
    ok(content_of($image) eq $was,
       'an addition that finds no room on the disk leaves the image unchanged');
    is_deeply([glob "$dir/*.tmp-*"], [],
              'an addition that finds no room on the disk leaves no temporary'
              . ' file');
}


# ------------------------------------------------------------ several at once

{
    my $image = build('shared.bloom', [], '-n', 5000);

    my @pids = map {
        my $n = $_;
        my $file = $t->write_file("part$n",
                               lines_of(map { "part$n.$_" } 1 .. 100));
        spawn([$tool, 'add', '-q', $image, $file], env => $t->{env});
    } 1 .. 12;

    my $failed = 0;
    for (@pids) { waitpid $_, 0; $failed += $? != 0 }

    is($failed, 0, 'twelve additions to one image at once succeed');
    is(present($image, map { my $n = $_; map { "part$n.$_" } 1 .. 100 }
                       1 .. 12), 1200,
       'no key of twelve additions at once is lost');
}


# ------------------------------------------------------- the counts add up

{
    my $image = build('counts.bloom', ['old.example'], '--form', 'host',
                      '-n', '100');

    $t->write_file('left.txt', lines_of('left.example'));

    my $json = add($image, ['a.example', 'b.example', 'b.example', 'a[b', '',
                            'left.example', 'old.example', '# x'],
                   '--from', 'lines', '--max-errors', '9', '--without',
                   "$dir/left.txt");

    is_deeply([@$json{qw(added already_present left_out errors empty comments)}],
              [2, 2, 1, 1, 1, 1], 'each key is counted');
    is($json->{received}, $json->{added} + $json->{already_present},
       'the keys that an addition receives add up');
    is($json->{lines_read}, $json->{received} + $json->{left_out}
                            + $json->{skipped} + $json->{errors},
       'the lines that it reads add up');
}

done_testing;
