#!/usr/bin/perl

# ngx-bloom add: keys into an image that is there.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(content_of info json lines_of present tool_ok
                       tool_path tool_test);

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


# ------------------------------------------------------ the same as built whole

for ([], ['--layout', 'classic'], ['-p', '0.00001'], ['--hash', 'siphash'],
     ['--key', 'lower'])
{
    my @how = @$_;

    my $image = build('some.bloom', \@old, '-n', 3000, @how);
    my $before = info($image);
    my $whole = build('whole.bloom', [@old, @new], '--like', $image);

    chmod 0640, $image;

    my $result = add($image, [@new, @new[0 .. 9], @old[0 .. 4]]);
    my $after = info($image);

    is($result->{received}, 1015, "@how: received");
    cmp_ok(abs($result->{added} - 1000), '<', 10, "@how: added");
    is($result->{already_present}, 1015 - $result->{added}, "@how: known");
    ok($result->{written}, "@how: written");
    ok(substr(content_of($image), 4096) eq substr(content_of($whole), 4096),
       "@how: the bits of an image of all keys");
    is(present($image, @old, @new), 2000, "@how: all are present");

    cmp_ok(abs($after->{items} - 2000), '<', 10, "@how: items");
    is($after->{items}, $result->{items}, "@how: as was said");
    ok($after->{items_estimated}, "@how: an estimate, as some were known");

    isnt($after->{build_id}, $before->{build_id}, "@how: another image");
    is($after->{$_}, $before->{$_}, "@how: the same $_")
        for qw(capacity fpr bits k hash layout key_form);
    is((stat $image)[2] & 07777, 0640, "@how: the file's mode");
}


# ----------------------------------------------------------------- how many

{
    my $image = build('exact.bloom', \@old, '-n', 3000, '-p', '1e-9');

    my $result = add($image, \@new);
    is($result->{added}, 1000, 'all new: added');
    is($result->{items}, 2000, 'items');
    ok(!$result->{items_estimated}, 'exactly');
    is($result->{items_error}, 0, 'without an error');
    ok(!info($image)->{items_estimated}, 'in the image, too');

    my $was = content_of($image);
    my $inode = (stat $image)[1];

    $result = add($image, [@new, @old]);
    is($result->{added}, 0, 'all known: added');
    is($result->{already_present}, 2000, 'known');
    ok(!$result->{written}, 'nothing is written');
    is((stat $image)[1], $inode, 'the file is as it was');
    ok(content_of($image) eq $was, 'and what is in it');

    like(scalar tool_ok('add', $image, { stdin => "old1\n\n" }),
         qr/^\Q$image\E: 1 keys, 0 added, 2000 distinct of 3000, false-positive rate .*; it is as it was\n.* 1 empty key was skipped\n\z/,
         'as people read it');

    $result = add($image, []);
    is($result->{received}, 0, 'no key is no error');
    ok(!$result->{written}, 'and no reason to write');

    my $empty = build('empty.bloom', [], '-n', 3000);
    is(add($empty, [@new, @new])->{items}, 1000,
       'into an empty one: distinct keys are counted exactly');
    ok(!info($empty)->{items_estimated}, 'and known to be');
}

{
    # a filter so full that a third of what is new seems to be present

    my $image = build('full.bloom', [map { "a$_" } 1 .. 20_000], '-n', 20_000,
                      '-p', '0.3');
    my $result = add($image, [map { "b$_" } 1 .. 10_000]);

    cmp_ok($result->{added}, '<', 7500, 'a full filter: fewer are seen as new');
    cmp_ok(abs($result->{items} - 30_000), '<',
           6 * $result->{items_error}, 'but as many are counted');
    cmp_ok($result->{items_error}, '<', 200, 'with a small error');
}


# -------------------------------------------------------------------- warnings

{
    my $image = build('small.bloom', \@old);

    my ($out, $err) = tool_ok('add', $image, { stdin => lines_of(@new) });
    like($err, qr/warning: \d+ distinct keys are more than the capacity of 1000: .*-n for the keys to come/,
         'over its capacity');

    ($out, $err) = tool_ok('add', '-q', $image, { stdin => "x\ny\n" });
    is($out . $err, '', '--quiet');
}


# ----------------------------------------------------------------------- as_of

{
    my $image = build('dated.bloom', \@old, '-n', 9000, '--as-of',
                      '2026-01-31T12:00:00Z');

    is(add($image, \@new)->{as_of}, '2026-01-31T12:00:00.000Z',
       'as_of stays as it is');
    is(info($image)->{as_of}, '2026-01-31T12:00:00.000Z', 'in the image');

    my $result = add($image, \@new, '--as-of', '2026-02-01T12:00:00Z');
    ok($result->{written}, 'a later --as-of is written, even without new keys');
    is(info($image)->{as_of}, '2026-02-01T12:00:00.000Z', 'so it is');

    my $was = content_of($image);

    for (['2026-01-01T00:00:00Z', qr/is complete up to 2026-02-01T12:00:00.000Z, which is later than --as-of; leave it out/],
         ['tomorrow', qr/a time is written as/],
         [time + 86400, qr/in the future/])
    {
        my ($as_of, $message) = @$_;
        my ($exit, $out, $err) = $t->run_tool('add', '--as-of', $as_of, $image,
                                              { stdin => "never\n" });
        is($exit, 2, "--as-of $as_of is refused");
        like($err, $message, 'and says why');
    }

    ok(content_of($image) eq $was, 'the image is as it was');
}


# ------------------------------------------------------------- lists and forms

{
    my $image = build('hosts.bloom', ['bad.example'], '-n', 100, '--key',
                      'host');
    my $list = $t->write_file('hosts',
                              "# bad\n0.0.0.0 WORSE.example worst.example\n");

    my $result = json(scalar tool_ok('add', '--json', '--from', 'hosts',
                                            $image, $list));
    is($result->{received}, 2, 'a hosts file: names');
    is($result->{comments}, 1, 'comments');
    is(present($image, qw(worse.example a.worst.example good.example)), 2,
       'by the form of the image');

    my $nul = build('nul.bloom', ['a'], '-n', 100);
    tool_ok('add', '-q', '-0', $nul, { stdin => "b\nc\0d\0" });
    is(present($nul, qw(a b c d)), 2, '-0: keys end with a zero byte');

    $t->write_file('one', "one\n");
    $t->write_file('two', "two\n");
    tool_ok('add', '-q', $nul, "$dir/one", "$dir/two");
    is(present($nul, qw(one two three)), 2, 'several files');
}


# -------------------------------------------------------------------- imported

{
    # a bitmap in the manner of Redis, whose keys cannot be counted

    my $bits = $t->write_file('bitmap', "\0" x 12_500);
    my $image = "$dir/imported.bloom";

    tool_ok('import', '-o', $image, '--from', 'bitmap', '--scheme', 'go-zero',
            '--bits', 100_000, '--hashes', 5, $bits);

    my $before = info($image);
    my $result = add($image, \@new);

    is(present($image, @new), 1000, 'an imported image takes keys');
    cmp_ok(abs($result->{items} - 1000), '<', 100, 'and counts them by its bits');
    ok($result->{items_estimated}, 'as an estimate');
    is(info($image)->{origin}, $before->{origin}, 'its origin is kept');
    tool_ok('verify', '-q', $image);
}


# ---------------------------------------------------------------------- errors

{
    my $image = build('safe.bloom', \@old, '-n', 3000);
    my $was = content_of($image);
    my $other = build('other.bloom', \@new);
    my $torn = $t->write_file('torn.bloom', substr($was, 0, -1));
    my $keys = $t->write_file('keys', lines_of(@new));

    for ([qr/name the image/],
         ['nowhere.bloom', qr/nowhere\.bloom: cannot be opened: No such file/,
          "$dir/nowhere.bloom", $keys],
         ['no image', qr/keys: is not a Bloom filter image/, $keys, $keys],
         ['torn', qr/torn\.bloom: is truncated/, $torn, $keys],
         ['no keys', qr/other\.bloom: is an image and not a list of keys/,
          $image, $other],
         ['its own file', qr/safe\.bloom: is the output too/, $image, $image],
         ['keys that are not there', qr/missing: cannot be opened/, $image,
          "$dir/missing"],
         ['-0 with --from', qr/give one of them/, '-0', '--from', 'lines',
          $image, $keys],
         ['an unknown option', qr/unknown option "--like"/, '--like', $image,
          $keys])
    {
        my $name = ref $_->[0] ? 'no image named' : shift @$_;
        my ($message, @arguments) = @$_;

        my ($exit, $out, $err) = $t->run_tool('add', @arguments);
        is($exit, 2, "$name is refused");
        like($err, $message, 'and says why');
        ok(content_of($image) eq $was, 'the image is as it was');
    }

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -f 4 && exec "$@"', 'sh', $tool, 'add', $image,
         $keys], env => $t->{env});
    is($exit, 2, 'a disk that is full');
    like($err, qr/safe\.bloom: cannot be written: File too large; the old file is as it was/,
         'is said');
    ok(content_of($image) eq $was, 'the image is as it was');
    is_deeply([glob "$dir/*.tmp-*"], [], 'nothing is left beside it');
}


# -------------------------------------------------- several at once, signals

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

    is($failed, 0, 'twelve additions at once: all succeed');
    is(present($image, map { my $n = $_; map { "part$n.$_" } 1 .. 100 }
                       1 .. 12), 1200,
       'and no key is lost');

    my $was = content_of($image);
    pipe my $reader, my $writer or die $!;
    my $pid = spawn([$tool, 'add', $image], stdin => $reader,
                    env => $t->{env});
    close $reader;
    syswrite $writer, "never\n";
    ok(scalar wait_until(sub { () = glob "$image.tmp-*" }), 'one is under way');
    kill 'INT', $pid;
    wait_until(sub { waitpid($pid, POSIX::WNOHANG) == $pid });
    is($? & 127, 2, 'SIGINT ends it');
    ok(content_of($image) eq $was, 'the image is as it was');
    is_deeply([glob "$image.*"], [], 'nothing is left beside it');
}

done_testing;
