#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what commands do with the exceptions of --except: info, verify, add
# and merge know them, guards count them in; a build with many good keys
# takes little memory, and one that fails leaves the old image.

use strict;
use warnings;

use BloomTest;
use BloomTest::Disk;
use BloomTest::Image qw(exceptions_in with_exceptions);
use BloomTest::Tool qw(content_of info json json_lines lines_of tool tool_memory
                       tool_test);

my $t = tool_test();
my $dir = $t->testdir;

my @listed = map { "bad$_" } 1 .. 2000;
my @good = map { "good$_" } 1 .. 2000;
my $listed = $t->write_file('listed', lines_of(@listed));
my $good = $t->write_file('good', lines_of(@good));
my $time = 1767225600000;

sub excepted { return sort map { $_->[2] } exceptions_in(content_of($_[0])) }

sub build {
    my ($name, @options) = @_;

    return json(tool(0, undef, 'build', '--json', '-o', "$dir/$name", '-p',
                     '0.05', '--seed', 77, @options));
}

my $image = "$dir/excepted.bloom";

build('excepted.bloom', '--except', $good, $listed);

my @excepted = excepted($image);
my $n = @excepted;

cmp_ok($n, '>', 20, 'there are exceptions');


# ---- info, verify, test ----

# an image whose exceptions have several kinds

my $kinds = $t->write_file('kinds.bloom', with_exceptions(
    content_of($t->build_image('plain.bloom', [qw(a b c d e)], '-n', 100)),
    [[1, $time, 'a'], [2, $time, 'b'], [4, $time, 'c'], [3, $time, 'd'],
     [7, 0, 'e']]));

{
    is(info($image)->{excepted}, $n, 'info --json counts the exceptions');
    is(info($image)->{removed}, 0, 'they are not removed keys');
    like(tool(0, undef, 'info', $image), qr/^excepted        $n keys$/m,
         'info counts the exceptions');
    unlike(tool(0, undef, 'info', $image), qr/^(?:removed|feedback) /m,
           'info prints no other kinds');

    my $info = info($kinds);

    is(join(' ', @$info{qw(excepted removed feedback)}), '3 3 2',
       'info --json counts each kind');
    like(tool(0, undef, 'info', $kinds),
         qr/^excepted        3 keys\nremoved         3 keys\nfeedback        2 keys$/m,
         'info counts each kind');

    is(join(' ', sort split /\n/, tool(0, undef, 'info', '--removed', $kinds)),
       'b d e', 'info --removed lists removed keys alone');
    is(join(' | ', sort split /\n/, tool(0, undef, 'info', '--exceptions',
                                        $kinds)),
       'excepted a | excepted,removed d | excepted,removed,feedback e'
       . ' | feedback c | removed b', 'info --exceptions lists all with kinds');

    my %json = map { $_->{key} => $_ }
               json_lines(tool(0, undef, 'info', '--exceptions', '--json',
                               $kinds));

    is_deeply($json{e}, { key => 'e', kinds => [qw(excepted removed feedback)],
                          time => undef }, 'info --exceptions --json: e');
    is_deeply($json{a}, { key => 'a', kinds => ['excepted'],
                          time => '2026-01-01T00:00:00.000Z' },
              'info --exceptions --json: a');
    tool(2, qr/cannot be used together/, 'info', '--removed', '--exceptions',
         $kinds);
    my $json = json(tool(0, undef, 'verify', '--json', $kinds));

    is(join(' ', @$json{qw(excepted removed feedback)}), '3 3 2',
       'verify --json counts each kind');
    like(tool(0, undef, 'verify', $kinds),
         qr/, 3 excepted keys, 3 removed keys, 2 feedback keys$/,
         'verify counts each kind');
    like(tool(1, undef, 'test', '-c', $kinds, qw(a b c d e)), qr/^0 present, 5/,
         'test takes exceptions of all kinds for absent');
}


# ---- add ----

{
    my $copy = $t->write_file('copy.bloom', content_of($image));

    like(tool(0, undef, 'add', $copy, { stdin => "$excepted[0]\n" }),
         qr/1 added \(of which 1 had been exceptions\)/,
         'an excepted key that is added is no longer an exception');
    is(join(' ', excepted($copy)), "@excepted[1 .. $#excepted]",
       'the other exceptions stay');
    is(json(tool(0, undef, 'add', '--json', $copy,
                 { stdin => "new\n$excepted[1]\n" }))->{excepted}, $n - 2,
       'add --json counts the other exceptions');
}


# ---- merge ----

{
    my @like = ('--like', $image);
    my $has = $t->build_image('has.bloom', [$excepted[0], 'x'], @like);
    my $same = "$dir/same.bloom";
    my $warned = qr{^\S+\ merge:\ warning:\ \Q$dir\E/merged\.bloom:\ good\ keys
                    \ of\ --except\ may\ be\ found\ in\ it,[^\n]*\n\z}mx;

    my $merged = sub {
        my $out = json(tool(0, $warned, 'merge', '--json', '-o',
                            "$dir/merged.bloom", @_));

        return "$out->{excepted} $out->{lifted}";
    };

    is($merged->($image, $has), $n - 1 . ' 1',
       'an exception that another image has as a key is dropped');

    tool(0, undef, 'build', '-q', '-o', $same, @like, '--except', $good,
         $t->write_file('other', lines_of(map { "other$_" } 1 .. 1000)));

    my %both = map { $_ => 1 } excepted($same);
    $merged->($image, $same);

    my $result = content_of("$dir/merged.bloom");
    my @kept = sort map { $_->[2] } exceptions_in($result);

    ok(@kept >= 1, 'images with exceptions of their own keep some');
    is(scalar(grep { $_->[0] != 1 } exceptions_in($result)), 0,
       'the kinds survive');
    is(join(' ', grep { $_ ne 'absent' }
                 map { /^(\w+)/ } split /\n/,
                 ($t->run_tool('test', "$dir/merged.bloom",
                               { stdin => lines_of(@kept) }))[1]), '',
       'what both except or do not have stays absent');
    is(scalar(() = ($t->run_tool('test', "$dir/merged.bloom",
                                 { stdin => lines_of(@listed) }))[1]
                   =~ /^present/mg), @listed, 'no listed key is lost');

    my $out = tool(0, qr/warning/, 'merge', '-o', "$dir/merged.bloom", $image,
                   $has);

    like($out, qr/, \d+ exceptions \(\d+ excepted, 0 removed, 0 by feedback\), 1 no longer an exception as another image has it$/,
         'merge says how many exceptions there are and are not');
    tool(0, undef, 'merge', '-q', '-o', "$dir/merged.bloom", $image, $has);

    # an exception of two kinds in two images

    my @small = ('--like', "$dir/plain.bloom");
    my @two = map {
        $t->write_file("two$_", with_exceptions(
            content_of($t->build_image("two$_.plain", ['k'], @small)),
            [[$_, $time, 'k']]))
    } 1, 2;

    tool(0, qr/warning/, 'merge', '-o', "$dir/merged.bloom", @two);
    is(join(' ', map { "$_->[0] $_->[2]" }
                 exceptions_in(content_of("$dir/merged.bloom"))), '3 k',
       'an exception has the kinds that it has in any image');
}


# ---- guards ----

{
    my @build = ('build', '-o', "$dir/guarded.bloom", '-p', '0.05');

    like((($t->run_tool(@build, '--must-not-have', $good, $listed))[2]),
         qr/it has the key "good\d+" of line \d+ of --must-not-have/,
         'without --except, the image has good keys');
    tool(0, undef, @build, '--must-not-have', $good, '--must-have', $listed,
         '-q', '--except', $good, $listed);
    tool(1, qr/it lacks the key "bad7" of line 7 of --must-have/, @build,
         '--must-have', $listed, '--except-wins', '--except',
         $t->write_file('bad7', "bad7\n"), $listed);
}


# ---- a warning of large exceptions ----

{
    my $few = $t->write_file('few', "a\nb\n");
    my (undef, undef, $err)
        = $t->run_tool('build', '-o', "$dir/large.bloom", '-p', '0.5', '-n', 1,
                       '-q', '--except', $good, $listed);

    is($err, '', '-q warns of nothing');

    (undef, undef, $err)
        = $t->run_tool('build', '-o', "$dir/large.bloom", '-p', '0.4',
                       '--except', $t->write_file('long', lines_of(
                           map { 'x' x 100 . $_ } 1 .. 1000)), $listed);

    like($err, qr/warning: \d+ exceptions take \S+ KiB, and the filter \S+ \w+; with a lower -p there are fewer$/,
         'a warning says that the exceptions take more than the filter');
}


# ---- memory ----

{
    my $many = "$dir/many";
    my $count = 3_000_000;

    open my $fh, '>', $many or die "$many: $!";
    print $fh map { "a-good-key-$_\n" } $_ * 1000 + 1 .. $_ * 1000 + 1000
        for 0 .. $count / 1000 - 1;
    close $fh or die "$many: $!";

    my @options = ('--json', '-j', 2, '--memory', '16m', '-p', '1e-4', $listed);
    my ($exit, $out, $err, $with)
        = tool_memory({}, 'build', '-o', "$dir/with", '--except', $many,
                      @options);

    is($exit, 0, 'three million good keys are read') or diag($err);
    is(json($out)->{good_keys}, $count, 'all of them are counted');

    my (undef, undef, undef, $without)
        = tool_memory({}, 'build', '-o', "$dir/without", @options);

    cmp_ok($with - $without, '<',
           $ENV{TEST_NGINX_SANITIZED} ? 100e6 : 12e6,
           'they take no more memory than some blocks');
    cmp_ok(json($out)->{excepted}, '<', 1000, 'there are few exceptions');
}


# ---- a full disk ----

{
    mkdir "$dir/full" or die "$dir/full: $!";

    my $disk = BloomTest::Disk->new($t, 'full');
    my @build = ('build', '-p', '0.05', '-o', "$dir/full/image", '--except',
                 $good, $listed);

    tool(0, undef, @build);

    my $before = content_of("$dir/full/image");

    for my $call (qw(write sync rename)) {
        $disk->refuse('ENOSPC', $call);
        tool(2, qr/No space left/, @build);
        is(content_of("$dir/full/image"), $before,
           "the old image remains if the disk refuses: $call");
        is(join(' ', map { s,.*/,,r } glob "$dir/full/*"), 'image',
           'nothing else is left');
    }

    $disk->allow;
    tool(0, undef, @build);
}


done_testing;
