#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --except" makes an image in which no good key is
# found and every listed key is, in all key forms, layouts and hashes, by a
# second reader of the format and of the key forms; and that it names the good
# keys that a list has, and loses no listed key unless --except-wins is given.

use strict;
use warnings;

use FindBin;
use POSIX qw(mkfifo);
use Time::HiRes qw(time);

use lib "$FindBin::Bin/../reference";

use BloomTest;
use BloomTest::Collision qw(crafted);
use BloomTest::Image qw(bits_set exceptions_in image_of parsed read_vector);
use BloomTest::Process qw(spawn);
use BloomTest::Tool qw(content_of json lines_of members_are tool tool_path
                       tool_test);
use KeyForms;

my $t = tool_test();
my $dir = $t->testdir;
my $n = 0;

sub file { return $t->write_file($_[0], $_[1]) }

# Builds an image from a list with --except; returns it and what --json prints.

sub build {
    my ($list, $good, @options) = @_;

    my $image = "$dir/image" . ++$n;
    my $warning = $good =~ /^[^#\n]/m ? undef
                  : qr/: has no good key, so --except has no effect; check how/;
    my $out = tool(0, $warning, 'build', '--json', '-o', $image, @options,
                   '--except', file("good$n", $good), file("list$n", $list));

    return ($image, json($out));
}

# What build says when it refuses to build an image.

sub refused {
    my ($list, $good, $why, @options) = @_;

    my $image = "$dir/refused";

    tool(2, $why, 'build', '-o', $image, @options, '--except',
         file('good', $good), file('list', $list));
    ok(!-e $image, 'nothing is written');
}

sub excepted { return sort map { $_->[2] } exceptions_in(content_of($_[0])) }

sub answers {
    my ($image, @keys) = @_;

    my (undef, $out) = $t->run_tool('test', $image, { stdin => lines_of(@keys) });

    return map { /^(\w+)/ } split /\n/, $out;
}

sub all_are {
    my ($answer, $name, $image, @keys) = @_;

    my @answers = answers($image, @keys);
    my @others = grep { $answers[$_] ne $answer } 0 .. $#keys;

    is("@keys[@others]", '', $name);
    is(scalar @answers, scalar @keys, 'each key has an answer');
}


# ---- every good key is absent, and every listed key is present ----

my @words = qw(shop mail news www cdn img blog api dev test);

sub word { return $words[rand @words] . int rand 1000 }

my %key = (
    raw => sub { return 'Key' . int rand 1e6 },
    lower => sub { return 'Key' . int rand 1e6 },
    host => sub { return join '.', (map { word() } 1 .. 1 + rand 3), 'example' },
    url => sub {
        return 'http://' . join('.', (map { word() } 1 .. 1 + rand 3), 'example')
               . join '/', '', map { word() } 1 .. rand 4;
    },
);

sub expressions {
    my ($form, $key) = @_;

    return $key if $form eq 'raw';
    return lc $key if $form eq 'lower';

    my (undef, @expressions) = KeyForms::expand($form, $key);

    return @expressions;
}

srand 7;

for (['raw'], ['lower', '--layout', 'classic'], ['host'], ['url'],
     ['raw', '--hash', 'siphash'], ['host', '--hash', 'siphash', '--layout',
                                    'classic'],
     ['url', '--layout', 'classic', '--threads', '1'],
     ['host', '--threads', '4'], ['raw', '-p', '1e-5', '-n', '10', '-q'],
     ['url', '--memory', '16m'])
{
    my ($form, @options) = @$_;
    my @rate = grep({ $_ eq '-p' } @options) ? () : ('-p', '0.1');
    my @listed = map { $key{$form}->() } 1 .. 150;
    my %listed = map { (expressions($form, $_))[0] => 1 } @listed;
    my @good = grep { !grep { $listed{$_} } expressions($form, $_) }
               map { $key{$form}->() } 1 .. 300;
    my $name = "$form @options";
    my $from = time;

    my ($image, $json) = build(lines_of(@listed), lines_of(@good, @good),
                               '--form', $form, @rate, @options);
    my $content = content_of($image);
    my $parsed = parsed($content);
    my @exceptions = exceptions_in($content);
    my %false = map { $_ => 1 } grep { bits_set($parsed, $_) && !$listed{$_} }
                map { expressions($form, $_) } @good;

    cmp_ok(scalar keys %false, '>', 3, "there are false positives: $name");
    is(join(' ', excepted($image)), join(' ', sort keys %false),
       "the exceptions are the false positives: $name");
    is(scalar(grep { $_->[0] != 1 } @exceptions), 0,
       'each exception has the kind of the builder');
    is(scalar(grep { $_->[1] < 1000 * $from - 1 || $_->[1] > 1000 * time }
              @exceptions), 0, 'each exception has the time of the build');
    all_are('absent', "no good key is found: $name", $image, @good);
    all_are('present', "every listed key is found: $name", $image, @listed);

    my ($size) = unpack 'x3592 Q<', $content;
    my @matched = grep { grep { $false{$_} } expressions($form, $_) } @good;

    members_are("build --json counts good keys and exceptions: $name", $json,
                good_keys => 2 * @good, good_keys_matched => 2 * @matched,
                excepted => scalar @exceptions, conflicts => 0,
                size_bytes => -s $image, exceptions_bytes => $size);
}


# ---- without exceptions, the image is as before ----

{
    my @same = ('--seed', 5, '-p', '1e-9');

    for ('', "# nothing\n\n", "good\n") {
        my ($image, $json) = build("a\nb\n", $_, @same);
        my $plain = $t->build_image('plain', ['a', 'b'], @same);

        is(substr(content_of($image), 4096), substr(content_of($plain), 4096),
           'its bytes are those of an image without good keys');
        is(-s $image, -s $plain, 'it has the same size');
        is($json->{exceptions_bytes}, 0, 'exceptions take no bytes');
    }

    my ($image, $json) = build('', "a\n", '--allow-empty');

    is($json->{excepted}, 0, 'an empty image needs no exceptions');
}


# ---- conflicts ----

{
    my @host = ('--form', 'host', '-p', '1e-9');

    refused("one.example\nevil.example\n", "# good\n\nwww.evil.example # x\n",
            qr{^ngx-bloom\ build:\ \Q$dir\E/good:\ line\ 3:\ "www\.evil\.example"
               \ must\ not\ be\ found,\ but\ \Q$dir\E/list,\ line\ 2,\ has
               \ "evil\.example"\n}x, @host);
    refused("one.example\nEVIL.Example.\n", "evil.example\n",
            qr/good: line 1: "evil\.example" must .* line 2, has "evil\.example"/,
            @host);
    refused("\n0.0.0.0 a.example evil.example # x\n", "x.evil.example\n",
            qr/line 2, has "evil\.example"/, @host, '--from', 'hosts');
    refused("http://evil.example/a/b\nevil.example/a/\n",
            "https://www.evil.example/a/b?c\n",
            qr{a/b\?c"\ must\ .*,\ line\ 1,\ has\ "evil\.example/a/b"
               .*line\ 2,\ has\ "evil\.example/a/"}xs,
            '--form', 'url', '-p', '1e-9');
    refused("id,url\n1,x.example/\n2,\"http://evil.example\n/\"\n"
            . "3,evil.example\n", "evil.example/x\n",
            qr/line 5, has "evil\.example\/"/, '--form', 'url', '-p', '1e-9',
            '--from', 'csv:url', '--max-errors', 1);
    refused("a\0bad\0", "bad\n", qr/list, key 2, has "bad"/, '-0', '-p',
            '1e-9');
    refused("bad\nbad\n", "bad\nbad\n",
            qr/good:\ line\ 1:\ "bad"\ .*\ line\ 1,\ has\ "bad"
               .*1\ key\ of\ the\ lists\ matches\ good\ keys\ of/sx,
            '-p', '1e-9');

    # several files on both sides: the first place of each

    my @lists = map { file("many$_", $_ == 2 ? "x\nbad\n" : "bad$_\n") } 1 .. 3;
    my @goods = map { ('--except', file("goods$_", "ok$_\nbad\n")) } 1 .. 2;

    tool(2, qr{/goods1: line 2: "bad" must not .* \Q$dir\E/many2, line 2, has},
         'build', '-o', "$dir/refused", '-p', '1e-9', @goods, @lists);

    # many: the first are named

    my @bad = map { "bad$_" } 1 .. 5000;

    for my $threads (1, 4) {
        my (undef, undef, $err)
            = $t->run_tool('build', '-o', "$dir/refused", '--threads', $threads,
                           '--except', file('g', lines_of('x', @bad)),
                           file('l', lines_of(reverse @bad)));
        my @err = split /\n/, $err;

        is(scalar(grep { /line (\d+): "bad(\d+)" .* line (\d+),/
                         && $1 == $2 + 1 && $3 == 5001 - $2 && $2 <= 20 } @err),
           20, "the first 20 of many conflicts are named ($threads threads)");
        like($err, qr/: 4980 more conflicts\n.*: 5000 keys of the lists match/,
             'the other conflicts are counted');
    }

    # keys in the temporary file are not overlooked

    {
        my @many = map { "many$_" } 1 .. 1_200_000;
        my $out = tool(0, undef, 'build', '--json', '-o', "$dir/spilled", '-p',
                       '1e-6', '--memory', '16m', '--except-wins', '--except',
                       file('good', lines_of(@many[0 .. 999], 'ok')),
                       file('list', lines_of(@many)));

        cmp_ok(json($out)->{temporary_bytes}, '>', 8e6, 'most hashes spill');
        is(json($out)->{conflicts}, 1000, 'all conflicts are found');
    }

    # lists that cannot be read again

    tool(2, qr/good: line 1: "bad" must not be found, but a list has "bad"\n/,
         'build', '-o', "$dir/refused", '-p', '1e-9', '--except',
         file('good', "bad\n"), { stdin => "a\nbad\n" });

    # a key that --without leaves out is in no list

    my ($image, $json)
        = build("bad\nother\n", "bad\n", '-p', '0.5', '--seed', 3, '--without',
                file('without', "bad\n"));

    all_are('absent', 'a key that --without leaves out is no conflict', $image,
            'bad');
    is($json->{conflicts}, 0, 'it is not counted as a conflict');
}


# ---- --except-wins ----

{
    my @listed = map { "bad$_.example" } 1 .. 1000;
    my @good = map { "good$_.example" } 1 .. 3000;
    my ($image, $json)
        = build(lines_of(@listed), lines_of('www.bad7.example', @good,
                                            'BAD9.example', 'a.bad7.example'),
                '--form', 'host', '--except-wins', '-p', '0.05', '--seed', 1);

    all_are('absent', 'a listed key is not found with --except-wins', $image,
            qw(bad7.example www.bad7.example bad9.example));
    all_are('present', 'all other listed keys are found', $image,
            grep { !/^bad[79]\./ } @listed);
    all_are('absent', 'no good key is found', $image, @good);
    is($json->{conflicts}, 2, 'the summary counts the conflicts');
    is_deeply($json->{conflict_examples},
              [{ file => "$dir/good$n", line => 1, key => 'www.bad7.example',
                 expression => 'bad7.example', list => "$dir/list$n",
                 list_line => 7 },
               { file => "$dir/good$n", line => 3002, key => 'BAD9.example',
                 expression => 'bad9.example', list => "$dir/list$n",
                 list_line => 9 }], 'the summary has examples');

    my $out = tool(0, undef, 'build', '-o', "$dir/wins", '-p', '1e-9',
                   '--except-wins', '--except', file('g', "ok\na\n"),
                   { stdin => "a\nb\n" });

    like($out, qr{^\Q$dir\E/wins:\ 2\ good\ keys,\ of\ which\ the\ filter\ matched
                  \ 1;\ 1\ exception\ \(1\ in\ the\ lists\),\ 11\ bytes\n
                  \Q$dir\E/g:\ line\ 2:\ "a"\ is\ not\ found,\ but\ a\ list\ has
                  \ "a"\n\z}mx,
         'build says how many exceptions are in the lists, and which');
    is(join(' ', answers("$dir/wins", 'a', 'b')), 'absent present',
       'just the good key is not found');

    my @wins = ('build', '-o', "$dir/wins", '-p', '1e-9', '--except-wins',
                '--except', file('g', lines_of('ok', map { "bad$_" } 1 .. 23)),
                file('l', lines_of(reverse map { "bad$_" } 1 .. 23)));

    $out = tool(0, undef, @wins);
    is_deeply([map { s{\Q$dir\E/}{}gr } grep { /is not found/ } split /\n/, $out],
              [map { "g: line @{[ $_ + 1 ]}: \"bad$_\" is not found, but l, line "
                     . (24 - $_) . ", has \"bad$_\"" } 1 .. 20],
              'build names the first 20 conflicts, with both lines');
    like($out, qr/\n3 more conflicts\n\z/, 'and the number of the others');
    is(tool(0, undef, @wins, '-q'), '', 'with -q it prints nothing');
    unlike(tool(0, undef, @wins, '--json'), qr/is not found/,
           'with --json the examples are in the JSON only');
    like(tool(0, undef, 'build', '-0', '-o', "$dir/wins", '-p', '1e-9',
              '--except-wins', '--except', file('g', "bad\n"),
              file('l', "a\0bad\0")),
         qr{"bad" is not found, but \Q$dir\E/l, key 2, has "bad"\n\z},
         'a key of a list with -0 has a number');

    tool(2, qr/--except-wins needs --except FILE/, 'build', '-o', "$dir/x",
         '--except-wins', { stdin => "a\n" });
}


# ---- MurmurHash3 collides at will ----

{
    my ($key) = grep { crafted($_) !~ /[\r\n \t#!]|\A\x1f\x8b|\A\xef\xbb/ }
                map { "$_-a-key-of-at-least-24-bytes" } 1 .. 1000;
    my $twin = crafted($key);
    my @rate = ('-p', '1e-9');

    my ($image, $json) = build("$key\nother\n", "$twin\n", @rate);

    is(join(' ', excepted($image)), $twin,
       'a key with the hash of a listed key becomes an exception');
    all_are('present', 'the listed key is found', $image, $key, 'other');

    ($image, $json) = build("$key\nother\n", "$twin\n$key\n", '--except-wins',
                            @rate);
    is($json->{conflicts}, 1, 'of two keys with one hash, one is in the list');

    refused("$twin\n$key\n", "$twin\n", qr/, line 1, has /, @rate);

    # a listed key that --without leaves out

    ($image, $json) = build("$key\n$twin\n", "$twin\n", @rate, '--without',
                            file('without', "$twin\n"));
    is(join(' ', excepted($image)), $twin,
       'a key that --without leaves out becomes an exception');

    # in doubt it is a conflict

    tool(2, qr/but a list has/, 'build', '-o', "$dir/refused", @rate,
         '--except', file('good', "$twin\n"), { stdin => "$key\n" });

    # a list that has changed since it was read; another list, which has not, has
    # a key with the hash

    for my $change (['overwritten', sub { file('changing', "other\n") }],
                    ['appended to', sub { open my $fh, '>>', $_[0] or die;
                                          print $fh "more\n"; close $fh }],
                    ['replaced', sub { file('new', "$key\nother\n");
                                       rename "$dir/new", $_[0] or die }],
                    ['removed', sub { unlink $_[0] or die }])
    {
        my ($how, $do) = @$change;
        my $list = file('changing', $how eq 'overwritten' ? "$twin\nother\n"
                                                         : "$key\nother\n");
        my $fifo = "$dir/fifo";

        unlink $fifo;
        mkfifo($fifo, 0600) or die "$fifo: $!";

        open my $err, '>', "$dir/err" or die "$dir/err: $!";
        my $pid = spawn([tool_path(), 'build', '-o', "$dir/refused", @rate,
                         '--except', $fifo, $list,
                         file('constant', $how eq 'overwritten' ? "$key\n"
                                                                : "x\n")],
                        stderr => $err);

        # the build opens the pipe when the filter is finished

        open my $fh, '>', $fifo or die "$fifo: $!";
        $do->($list);
        print $fh "$twin\n";
        close $fh;

        waitpid $pid, 0;
        is($? >> 8, 2, "a list that was $how is not trusted");
        like(content_of("$dir/err"), qr/but a list has /,
             'the message names the good key alone');
    }
}


# ---- bad input ----

{
    my $list = file('list', "bad.example\n");
    my @build = ('build', '-o', "$dir/refused", '--form', 'host', '-p', '1e-9');

    tool(2, qr/is also a file of --except/, @build, '--from', 'adblock',
         '--exceptions', file('both', "x.example\n"), '--except', "$dir/both", $list);
    # the first invalid line, whichever thread reads it

    my @many = map { "ok$_.example" } 1 .. 200_000;
    my $bad = file('bad', lines_of(@many[0 .. 99_999], 'http://', @many, '..'));

    for my $threads (1, 4) {
        my (undef, undef, $err) = $t->run_tool(@build, '--threads', $threads,
                                               '--except', $bad, $list);

        like($err, qr{\A\S+\ build:\ \Q$bad\E:\ line\ 100001:\ "http://"
                      \ [^\n]*;\ correct\ the\ file\ of\ --except\n\z}x,
             "the first invalid line is named ($threads threads)");
    }

    refused("bad\n", 'k' x 1_200_000, qr/a line of 1 MiB or more/);
    ok(!-e "$dir/refused", 'no image is written');

    $t->write_file('imported.bloom', image_of(read_vector(
                       "$FindBin::Bin/../golden/exceptions-imported.txt")));
    tool(2, qr/cannot be used if --like names an imported filter/, 'build',
         '-o', "$dir/refused", '--like', "$dir/imported.bloom", '--except',
         file('g', "x\n"), $list);
}

# ---- too many exceptions ----

# The bytes of all exceptions are limited to 2^28.  In a filter in which every key
# seems to be present, 5000 good keys of 60,000 bytes take more.

{
    my $list = file('many', lines_of(map { "listed$_" } 1 .. 5000));
    my @overfull = ('build', '-q', '-o', "$dir/full", '-p', '0.5', '-n', 1);
    my $fifo = "$dir/long";

    mkfifo($fifo, 0600) or die "$fifo: $!";

    tool(0, undef, 'build', '-q', '-o', "$dir/full", file('few', "old\n"));
    my $old = content_of("$dir/full");

    my $writer = spawn(sub {
        local $SIG{PIPE} = 'IGNORE';
        open my $fh, '>', $fifo or die "$fifo: $!";
        print $fh $_, 'k' x 60_000, "\n" or last for 10_001 .. 15_000;
    });

    tool(2, qr{\A[^\n]*build:\ \Q$dir\E/full:\ not\ written:\ the\ exceptions\ of
               \ --except\ would\ take\ more\ than\ 256\ MiB;\ use\ a\ lower
               \ -p\n\z}x, @overfull, '--except', $fifo, $list,
         { limit => 300 });
    waitpid $writer, 0;
    ok(content_of("$dir/full") eq $old, 'the old image stays');
    unlink "$dir/full";
}

# lines as in other files of keys

{
    # in a filter with far too many keys, every key seems to be present

    my $many = lines_of(map { "listed$_" } 1 .. 5000);
    my @overfull = ('-q', '-p', '0.5', '-n', 1);
    my $gzip = "$dir/good.gz";

    system("printf 'good\\r\\n\\nGood\\001\\r\\n' | gzip > $gzip") == 0 or die;

    for (["\xef\xbb\xbfgood\r\n  other  # comment\r\n! x\r\n\0zero\0\n",
          ['good', 'other', "\0zero\0"]],
         ["no line end", ['no line end']],
         ['k' x 65535, ['k' x 65535]])
    {
        my ($text, $keys) = @$_;
        my ($image) = build($many, $text, @overfull);

        is_deeply([excepted($image)], [sort @$keys],
                  'the file is read as with --from lines');
    }

    tool(0, undef, 'build', '-o', "$dir/gz", @overfull, '--except', $gzip,
         file('l', $many));
    is_deeply([excepted("$dir/gz")], ["Good\1", 'good'], 'gzip is inflated');
}


done_testing;
