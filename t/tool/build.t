#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build" makes an image of all keys that its input has,
# with each option, and that it writes the image whole or not at all.

use strict;
use warnings;

use Fcntl qw(:mode);
use IO::Compress::Gzip qw(gzip $GzipError);
use IO::Socket::UNIX;
use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command spawn);
use BloomTest::Tool qw(content_of info json tool tool_path tool_test);

use constant PAGE => 4096;

my $t = tool_test(user => 'nobody');
my $dir = $t->testdir;
my $tool = tool_path();


# ------------------------------------------------------------------ helpers

my $images = 0;

# Runs a build that must succeed.  Returns the image's path and what was
# printed.

sub build {
    my @arguments = @_;

    my %option = ref $arguments[-1] ? %{ pop @arguments } : ();
    my $image = "$dir/image" . ++$images;

    my ($exit, $out, $err)
        = $t->run_tool('build', '-o', $image, @arguments, \%option);

    $exit == 0
        or fail("ngx-bloom build @arguments"), diag("exit $exit: $err");

    return wantarray ? ($image, $out, $err) : $image;
}


sub build_json { return json((build('--json', @_))[1]) }


# Returns what two builds of the same keys have in common: the header up to the
# time of creation, and all that follows the header.

sub bits {
    my ($image) = @_;

    my $file = content_of($image);

    return substr($file, 0, 120) . substr($file, PAGE);
}


sub gz {
    my ($text) = @_;

    gzip(\$text => \my $packed, -Level => 1) or die $GzipError;

    return $packed;
}


# Returns how many of these keys are present and absent.

sub count {
    my ($image, @keys) = @_;

    my ($exit, $out, $err) = $t->run_tool('test', '-c', '-0', '--json',
        $image, { stdin => join '', map { "$_\0" } @keys });
    my $result = eval { json($out) } || {};

    return "exit $exit: $err" if !%$result;
    return "$result->{present} present, $result->{absent} absent";
}


# The file that a refused build would replace: it must be there afterwards,
# unchanged, and no other file.

my $target = "$dir/refused/old.bloom";
$t->write_file('refused/old.bloom', 'the old file');


sub target_ok {
    my ($name) = @_;

    is(content_of($target), 'the old file',
       "the old file is unchanged after a refused build ($name)");
    is_deeply([glob "$dir/refused/{*,.[!.]*}"], [$target],
              "nothing is left beside the old file after a refused build"
              . " ($name)");
}


# Tests the result of a build that must fail with one line that says what is
# wrong, where, and what to do.

sub is_refused {
    my ($name, $message, $exit, $out, $err) = @_;

    is($exit, 2, "a refused build exits with 2 ($name)");
    is($out, '', "a refused build prints no result ($name)");
    like($err, qr/\A ngx-bloom\ build:\ [^\n]* $message [^\n]* \n \z/x,
         "a refused build says what is wrong in one line ($name)");
    target_ok($name);
}

# Runs a build that must fail.

sub refused {
    my ($name, $message, @arguments) = @_;

    is_refused($name, $message,
               $t->run_tool('build', '-o', $target, @arguments));
}

# Runs a command that runs the tool in its own way, and must fail.

sub refused_command {
    my ($name, $message, @command) = @_;

    is_refused($name, $message, run_command([@command], env => $t->{env}));
}


# ------------------------------------------------------------ a first build

{
    my @keys = map { "key-$_" } 1 .. 1000;
    my $file = $t->write_file('first', join '', map { "$_\n" } @keys);
    my ($image, $out, $err) = build('-p', '0.01', '--seed', 7, $file);

    like($out, qr/\A\Q$image\E:\ 1000\ keys,\ 1000\ distinct,\ blocked,
                  \ [\d.]+\ KiB,\ [\d.]+\ bits\ per\ key,
                  \ false-positive\ rate\ [\d.]+\ %\n\z/x,
         'build prints a summary');
    like((build('-p', '0.01', '-n', '10k', $file))[1],
         qr/, false-positive rate now [\d.e-]+ %, at capacity 1 %\n\z/,
         'build prints two rates if there is room for more keys');
    is($err, '', 'a build that succeeds prints no message');
    is(count($image, @keys), '1000 present, 0 absent',
       'all keys of a build are present');

    my (undef, $quiet) = build('-q', $file);
    is($quiet, '', 'build -q prints nothing');

    my $json = build_json('-p', '0.01', '--seed', 7, $file);

    is(-s $image, $json->{size_bytes},
       'build --json states the size of the file');
    is_deeply([@$json{qw(received items duplicates empty capacity fpr)}],
              [1000, 1000, 0, 0, 1000, 0.01],
              'build --json has the counts, the capacity and the rate');
    cmp_ok($json->{estimated_fpr}, '<=', 0.01,
           'build --json estimates a rate that keeps the promise');
    is($json->{bits_per_item}, $json->{bits} / 1000,
       'build --json has the bits for each item');
    like($json->{build_id}, qr/\A[0-9a-f]{32}\z/,
         'build --json has the build id');
    like($json->{duration_ms}, qr/\A\d/,
         'build --json has the duration in milliseconds');
}


# ---------------------------------------------------------------- weak seeds

{
    my $file = $t->write_file('short', join '', map { "$_\n" } 1 .. 100);

    for my $case (['classic', 8, 1], ['classic', 1, 1], ['classic', 0, 0],
                  ['classic', 9, 0], ['classic', 264, 0], ['blocked', 8, 0])
    {
        my ($layout, $seed, $warns) = @$case;
        my (undef, undef, $err) =
            build('-p', '0.01', '--layout', $layout, '--seed', $seed, $file);

        if ($warns) {
            like($err, qr/\A ngx-bloom\ build:\ warning:\ --seed\ $seed:
                          [^\n]* use\ a\ number\ above\ 8 [^\n]* \n \z/x,
                 "build warns of seed $seed in layout $layout");

        } else {
            is($err, '', "build does not warn of seed $seed in layout $layout");
        }
    }
}


# -------------------------------------- the same keys make the same image

# Several blocks of 1 MiB, which end anywhere in a line, with duplicates.  The
# generator has a fixed seed, so that a failure can be repeated.

my $state = 1;

sub next_random { return $state = ($state * 1103515245 + 12345) & 0x7fffffff }

my @many = map { next_random() . 'x' x (next_random() % 13) } 1 .. 150_000;
my %distinct = map { $_ => 1 } @many;
my $lines = join '', map { "$_\n" } @many, @many[0 .. 9999];

cmp_ok(length $lines, '>', 2 * 1024 * 1024, 'the keys fill several blocks');

my $plain = $t->write_file('many', $lines);
my $half = index($lines, "\n", length($lines) / 2) + 1;

my %same = (
    'a pipe' => sub { build(@_, { stdin => $lines }) },
    'a pipe named "-"' => sub { build(@_, '-', { stdin => $lines }) },
    'CR LF' => sub { build(@_, { stdin => $lines =~ s/\n/\r\n/gr }) },
    'zero bytes' => sub { build(@_, '-0', { stdin => $lines =~ tr/\n/\0/r }) },
    'no last line end' => sub { build(@_, { stdin => $lines =~ s/\n\z//r }) },
    'a byte order mark' => sub { build(@_, { stdin => "\xef\xbb\xbf$lines" }) },
    'empty lines' => sub { build(@_, { stdin => "\n\n$lines\r\n\n" }) },
    'another order' => sub {
        build(@_, { stdin => join '', map { "$_\n" } reverse @many });
    },
    'two files, the first without a last line end' => sub {
        build(@_, $t->write_file('a', substr $lines, 0, $half - 1),
                  $t->write_file('b', substr $lines, $half));
    },
    'a file, gzip and a pipe' => sub {
        build(@_, $t->write_file('a', substr $lines, 0, $half),
                  $t->write_file('b.gz', gz(substr $lines, $half)), '-',
              { stdin => "$many[5]\n" });
    },
);

{
    my $expected = bits(scalar build('--seed', 42, '-j', 1, $plain));

    for my $name (sort keys %same) {
        ok(bits(scalar $same{$name}->('--seed', 42)) eq $expected,
           "keys from this source make the same image: $name");
    }

    ok(bits(scalar build('--seed', 43, $plain)) ne $expected,
       'another seed makes another image');
    ok(bits(scalar build('--seed', 42, { stdin => "${lines}one more\n" }))
       ne $expected, 'another key makes another image');
}

for my $options (['-p', '0.001'], ['-p', '1e-6'], ['--layout', 'classic'],
                 ['--hash', 'siphash'])
{
    my @seed = ('--seed', $options->[1] eq 'siphash'
                          ? '000102030405060708090a0b0c0d0e0f' : '42');
    my $image = build(@$options, @seed, '-j', 1, $plain);

    for my $threads (2, 3, 8, 256) {
        ok(bits(scalar build(@$options, @seed, '-j', $threads, $plain))
           eq bits($image),
           "build @$options makes the same image with -j $threads");
    }

    is(count($image, @many), @many . ' present, 0 absent',
       "all keys are present in the image of build @$options");
    is(info($image)->{items}, keys %distinct,
       "the items of build @$options are the distinct keys");
}

{
    my $json = build_json($plain);

    is($json->{received}, @many + 10_000,
       'build --json counts duplicates as received');
    is($json->{items}, keys %distinct,
       'build --json does not count duplicates as items');
    is($json->{duplicates}, @many + 10_000 - keys %distinct,
       'build --json counts duplicates');

    # more of one key than a partition may grow to

    $json = build_json({ stdin => "again\nand again\n" x 300_000 });

    is($json->{received}, 600_000,
       'two keys given many times are all received');
    is($json->{items}, 2, 'two keys given many times are two items');
}


# ------------------------------------------------------------------- the keys

{
    my ($image, $out) = build('--seed', 1, { stdin => "a\n\n\r\nb\n\n" });

    is(info($image)->{items}, 2, 'empty keys are not added');
    like($out, qr/^\Q$image\E: 3 empty keys were skipped$/m,
         'build says how many empty keys it skipped');
    is(build_json({ stdin => "a\n\n\r\nb\n\n" })->{empty}, 3,
       'build --json says how many empty keys it skipped');

    my $same = bits(scalar build('--seed', 1, { stdin => "a\nb\n" }));

    ok(bits($image) eq $same, 'empty keys do not change the image');
}

# which bytes end a line, and which belong to the key

for (["a\rb\n", ["a\rb"], 'a CR inside a line belongs to the key'],
     ["a\r\r\n", ["a\r"], 'only one CR belongs to the line end'],
     ["a \t\n", ["a \t"], 'white space belongs to the key'],
     ["a\0b\n", ["a\0b"], 'a zero byte in a line belongs to the key'],
     ["a\n\xef\xbb\xbfb\n", ['a', "\xef\xbb\xbfb"],
      'a byte order mark after the beginning belongs to the key'],
     ["\xef\xbb\xbf\n\xef\xbb\n", ["\xef\xbb"],
      'a line of nothing but a byte order mark is empty'])
{
    my ($input, $keys, $name) = @$_;
    my $image = build('--seed', 1, '-p', '1e-9', { stdin => $input });

    # looked up from files of one line, as keys with -0 have no zero bytes

    is(info($image)->{items}, @$keys, $name);

    for my $key (@$keys) {
        my ($exit) = $t->run_tool('test', '-q', $image, '-f',
                                  $t->write_file('key', "$key\n"))
            if $key !~ /\r\z|\A\xef\xbb\xbf/;
        is($exit // 0, 0, "the key is present where $name");
    }
}

{
    my $image = build('-0', '--seed', 1, '-p', '1e-9',
                      { stdin => "\xef\xbb\xbf\0a\r\n\0\n" });

    is(info($image)->{items}, 3,
       'build -0 takes line ends and byte order marks as part of a key');
    is(count($image, "a\r\n", "\xef\xbb\xbf", "\n"),
       '3 present, 0 absent',
       'keys with line ends and byte order marks are present');
    is(count($image, 'a', "a\r"), '0 present, 2 absent',
       'keys without their line ends are absent');
}

{
    my @keys = (map({ chr } 1 .. 9, 11 .. 255),
                map({ join '', map { chr } $_ .. 255 } 0x80 .. 0xfe));
    my $input = join '', map { "$_\0" } @keys;
    my $image = build('-0', '-p', '1e-9', { stdin => $input });

    is(count($image, @keys), @keys . ' present, 0 absent',
       'keys of all bytes from 0x01 to 0xff are present');
    is(info($image)->{items}, @keys,
       'keys of all bytes from 0x01 to 0xff are distinct');
}

{
    # a mark in each line, so that later blocks begin with a mark, too

    my ($mark, @keys) = ("\xef\xbb\xbf", 1 .. 200_000);
    my $marked = build('--seed', 1, { stdin => join '', map { "$mark$_\n" }
                                                           @keys });
    my $same = build('--seed', 1, '-0',
                     { stdin => join "\0$mark", @keys });

    ok(bits($marked) eq bits($same),
       'only the first line of all loses its byte order mark');
}

{
    # a line with its end must fit into a block

    my $most = 1024 * 1024 - 1;
    my @long = map { ('k' x ($_ - 8)) . sprintf '%08d', $_ }
                   ($most - 12 .. $most), 500_000, 65_536;
    my @keys = map { ('k' x ($_ - 8)) . sprintf '%08d', $_ }
                   (65_536 - @long .. 65_535);
    my $input = join '', map { "$long[$_]\n$keys[$_]\n" } 0 .. $#long;
    my @options = ('--seed=5', '-p', '1e-9', '--max-errors', scalar @long);

    for my $form ('raw', 'lower') {
        my ($image, undef, $err) = build(@options, '--form', $form,
                                         { stdin => $input });

        is(count($image, @keys), @keys . ' present, 0 absent',
           "keys of up to 65535 bytes are present: $form");
        is(info($image)->{items}, @keys,
           "longer ones, of almost 1 MiB, are left out: $form");
        like($err, qr/line 1: .* is longer than 65535 bytes$/m,
             "and named: $form");
        ok(bits(scalar build(@options, '--form', $form, { stdin => gz($input) }))
           eq bits($image), "from gzip they make the same image: $form");
        is(count($image, substr $keys[-1], 0, -1), '0 present, 1 absent',
           "the longest key without its last byte is absent: $form");
    }
}


# --------------------------------------------------------------- the options

{
    my $keys = $t->write_file('keys', join '', map { "$_\n" } 1 .. 100);
    my $as = sub { return info(scalar build(@_, $keys)) };

    my $default = $as->();

    is_deeply([@$default{qw(fpr layout hash form capacity)}],
              [0.001, 'blocked', 'murmur3', 'raw', 100],
              'build has these defaults, and room for the keys');
    is($default->{as_of}, undef, 'build does not state as_of by default');
    isnt($default->{seed}, $as->()->{seed},
         'build takes a random seed by default');
    isnt($default->{build_id}, $as->()->{build_id},
         'each build has a build id of its own');
    like($default->{created}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/,
         'the image states when it was created');

    for ([fpr => 1e-4, '-p', '1e-4'], [fpr => 0.01, '--fpr', '1%'],
         [capacity => 5000, '-n', '5k'], [items => 100, '-n', '5k'],
         [capacity => 2_000_000, '--capacity=2m'],
         [layout => 'classic', '--layout', 'classic'],
         [layout => 'blocked', '--layout', 'blocked'],
         [hash => 'siphash', '--hash', 'siphash'],
         [hash => 'murmur3', '--hash', 'murmur3'],
         [form => 'raw', '--form', 'raw'],
         [seed => 4294967295, '--seed', '4294967295'],
         [seed => 0, '--seed', '0'], [items => 100, '--threads', '2'],
         [as_of => '2024-02-29T10:00:00.000Z',
          '--as-of', '2024-02-29T10:00:00Z'],
         [as_of => '2024-02-29T10:00:00.250Z',
          '--as-of', '2024-02-29T12:30:00.25+02:30'],
         [as_of => '2024-02-29T10:00:00.000Z', '--as-of', '1709200800'])
    {
        my ($member, $value, @options) = @$_;

        is($as->(@options)->{$member}, $value,
           "build @options makes an image with $member $value");
    }

    my $key = '00112233445566778899aabbccddeeff';
    my $image = build('--hash', 'siphash', '--seed', $key, $keys);
    is(unpack('H*', substr content_of($image), 80, 16), $key,
       'build --seed puts the key of siphash into the image');
    ok(bits(scalar build('--seed', uc $key, '--hash', 'siphash', $keys))
       eq bits($image),
       'neither the order of options nor the case of a seed matters');
    ok(bits(scalar build('--hash', 'siphash', $keys))
       ne bits(scalar build('--hash', 'siphash', $keys)),
       'build takes a random key for siphash by default');

    # a FIFO can be opened for writing once the build has opened it for reading

    POSIX::mkfifo("$dir/fifo", 0600) or die "mkfifo: $!";
    my $before = time;
    my $pid = spawn([$tool, 'build', '-q', '-o', "$dir/started", '--as-of',
                     'start', "$dir/fifo"], env => $t->{env});
    open my $fifo, '>', "$dir/fifo" or die "open: $!";
    my $after = time;
    print {$fifo} "key\n";
    close $fifo;
    waitpid $pid, 0;
    is($?, 0, 'build takes --as-of start');

    my ($seconds) = info("$dir/started")->{as_of} =~ /T(.*)\.\d+Z\z/;
    my ($from, $to) = map { POSIX::strftime('%H:%M:%S', gmtime $_) }
                          $before, $after;
    ok(($from le $to) == ($seconds ge $from && $seconds le $to),
       '--as-of start is the time before the first key was read')
        or diag("$from, $seconds, $to");

    # a capacity that is too small is taken with a warning, which -q omits

    my ($small, $out, $err) = build('-n', '50', $keys);
    like($err, qr/\A ngx-bloom\ build:\ warning:\ 100\ distinct\ keys
                  \ exceed\ the\ capacity\ of\ 50:\ [^\n]*\ not\ the
                  \ promised\ 0\.1\ %;\ [^\n]+\n\z/x,
         'build warns of more keys than -n, with the rate to expect');
    is(info($small)->{capacity}, 50,
       'more keys than -n do not change the capacity');
    is(count($small, 1 .. 100), '100 present, 0 absent',
       'all keys are present where there are more than -n');

    my (undef, undef, $none) = build('-n', '100', $keys);
    is($none, '', 'build does not warn of as many keys as -n');
}

{
    my $keys = $t->write_file('keys', join '', map { "$_\n" } 1 .. 100);

    for my $options ([], ['-n', '10k', '-p', '1e-6'],
                     ['--layout', 'classic', '-n', '3k'],
                     ['--hash', 'siphash', '-p', '0.2'])
    {
        my $first = build(@$options, $keys);
        my $second = build('--like', $first, { stdin => "other\n" });
        my ($of_first, $of_second) = (info($first), info($second));

        # bytes 48 to 95, with the key of the hash, and capacity and rate

        is(substr(content_of($second), 48, 56),
           substr(content_of($first), 48, 56),
           "build --like takes geometry, hash and capacity of an image of"
           . " (@$options)");
        is($of_second->{fpr}, $of_first->{fpr},
           'build --like takes the rate of an image of (@$options)');
        is($of_second->{items}, 1,
           'build --like takes no keys of an image of (@$options)');

        my ($exit, undef, $err) = $t->run_tool('merge', '-o', "$dir/merged",
                                               $first, $second);
        is($exit, 0,
           'an image made with --like can be merged with one of'
           . ' (@$options)') or diag($err);
        is(count("$dir/merged", 1 .. 100, 'other'), '101 present, 0 absent',
           'a merged image of (@$options) has the keys of both');
    }
}

{
    my ($image, undef, $err) = build('--allow-empty', { stdin => '' });

    is(info($image)->{items}, 0,
       'build --allow-empty makes an image without keys');
    unlike(tool(0, undef, 'verify', '--json', $image), qr/:\s*-/,
           'an image without keys has no negative rate');
    is(count($image, 1 .. 100), '0 present, 100 absent',
       'an image without keys answers absent');
}

# the measured rate is the promised one; as the seed is fixed, it is always the
# same

for my $options (['-p', '0.1'], ['-p', '0.01'], ['-p', '0.001'],
                 ['-p', '0.01', '--layout', 'classic'],
                 ['-p', '0.01', '--hash', 'siphash'])
{
    my @seed = ('--seed', "@$options" =~ /siphash/ ? '5a' x 16 : '2026');
    my $image = build(@$options, @seed, $plain);
    my ($wrong) = count($image, map { "absent$_" } 1 .. 100_000)
                  =~ /^(\d+) present/;
    my $promised = $options->[1] * 100_000;

    # four standard deviations of a binomial distribution

    cmp_ok($wrong, '<=', $promised + 4 * sqrt $promised,
           "build @$options errs no more often than promised in 100,000"
           . " lookups");
    cmp_ok($wrong, '>', $promised / 3,
           "build @$options errs about as often as promised");
}


# ----------------------------------------------------------- the output

my $keys = $t->write_file('two', "a\nb\n");

{
    my $image = "$dir/mode.bloom";
    my $mode = sub { return sprintf '%04o', S_IMODE((stat $image)[2]) };
    my $rebuild = sub {
        my ($exit, undef, $err) = $t->run_tool('build', '-o', $image, $keys);
        return $exit == 0 ? 'built' : $err;
    };

    my $mask = umask 027;
    is($rebuild->(), 'built', 'build makes a new file');
    is($mode->(), '0640', 'a new image has the mode that umask leaves');
    umask $mask;

    chmod 0604, $image;
    my $inode = (stat $image)[1];
    is($rebuild->(), 'built', 'build replaces a file');
    is($mode->(), '0604', 'a replaced file keeps its mode');
    isnt((stat $image)[1], $inode,
         'a replaced image is a new file under the old name');

    if ($> == 0) {
        chown 65534, 65533, $image;
        is($rebuild->(), 'built', 'build replaces a file of another owner');
        is(join(':', (stat $image)[4, 5]), '65534:65533',
           'a replaced file keeps its owner');
        is($mode->(), '0604',
           'a replaced file of another owner keeps its mode');
    }

    mkdir "$dir/elsewhere";
    rename $image, "$dir/elsewhere/real.bloom";
    symlink 'elsewhere/real.bloom', $image;
    $inode = (stat $image)[1];
    is($rebuild->(), 'built', 'build replaces a file through a symbolic link');
    ok(-l $image, 'the symbolic link stays');
    isnt((stat $image)[1], $inode,
         'the file that the link leads to is replaced');
    is(join(' ', glob "$dir/elsewhere/*"), "$dir/elsewhere/real.bloom",
       'nothing is left beside the file that the link leads to');

    my ($exit) = run_command(['sh', '-c', 'cd "$1" && exec "$2" build -o here'
                              . ' keys', 'sh', $dir, $tool], env => $t->{env});
    is($exit, 0, 'build makes an image in the current directory');
    ok(-s "$dir/here", 'build takes an output without a slash');
}

# An image with siphash contains a secret.

{
    my $image = "$dir/secret.bloom";
    my $mode = sub { return sprintf '%04o', S_IMODE((stat $_[0])[2]) };
    my @siphash = ('--hash', 'siphash');
    my $keeps = qr/warning: \Q$image\E: contains a secret, .* as it keeps the mode 0644 .*chmod o=/;

    for ([022, '0640', '0644'], [0, '0640', '0666'], [027, '0640', '0640'],
         [077, '0600', '0600'], [0777, '0000', '0000'])
    {
        my ($wanted, $secret, $other) = @$_;
        my $mask = umask $wanted;
        my $shown = sprintf '%03o', $wanted;

        unlink $image;
        tool(0, undef, 'build', '-q', '-o', $image, @siphash, $keys);
        is($mode->($image), $secret,
           "a new image of SipHash has mode $secret with umask $shown");

        unlink $image;
        tool(0, undef, 'build', '-q', '-o', $image, $keys);
        is($mode->($image), $other,
           "a new image of MurmurHash3 has mode $other with umask $shown");

        umask $mask;
    }

    # a mode that the administrator has set stays

    my $mask = umask 022;

    unlink $image;
    tool(0, undef, 'build', '-o', $image, @siphash, $keys);
    chmod 0644, $image;
    tool(0, $keeps, 'build', '-o', $image, @siphash, $keys);
    is($mode->($image), '0644', 'build keeps the mode of an image of SipHash');
    tool(0, $keeps, 'build', '-o', $image, '--like', $image, $keys);
    tool(0, $keeps, 'add', $image, { stdin => "another\n" });
    is($mode->($image), '0644', 'add keeps the mode of an image of SipHash');
    tool(0, $keeps, 'merge', '-o', $image, $image, $image);
    is($mode->($image), '0644', 'merge keeps the mode of an image of SipHash');
    tool(0, undef, 'build', '-q', '-o', $image, @siphash, $keys);
    tool(0, undef, 'merge', '-q', '-o', $image, $image, $image);
    tool(0, undef, 'add', '-q', $image, { stdin => "another\n" });

    chmod 0604, $image;
    tool(0, qr/keeps the mode 0604/, 'build', '-o', $image, @siphash, $keys);

    chmod 0660, $image;
    tool(0, undef, 'build', '-o', $image, @siphash, $keys);
    is($mode->($image), '0660', 'a mode that others cannot read is not warned of');

    # an image made like one with a secret has the same secret

    for (['build', '--like', $image, '-o', "$dir/like.bloom", $keys],
         ['merge', '-o', "$dir/like.bloom", $image, $image])
    {
        unlink "$dir/like.bloom";
        tool(0, undef, @$_);
        is($mode->("$dir/like.bloom"), '0640',
           "$_->[0] of images of SipHash makes an image of mode 0640");
    }

    umask $mask;
}


# never a device of this machine: a tool that failed here would replace it

POSIX::mkfifo("$dir/pipe", 0600);
symlink "$dir/none", "$dir/dangling";
my $socket = IO::Socket::UNIX->new(Local => "$dir/socket", Listen => 1)
    or die "cannot make a socket: $!";

for (['a directory', $dir, qr/is a directory; name a file/],
     ['a socket', "$dir/socket", qr/is not a regular file/],
     ['a pipe', "$dir/pipe", qr/is not a regular file/],
     ['a link to nothing', "$dir/dangling",
      qr/is a symbolic link to a file that does not exist/],
     ['a directory that does not exist', "$dir/none/x",
      qr/No such file or directory/],
     ['a file as a directory', "$target/x", qr/Not a directory/],
     ['standard output', '-', qr/the output cannot be standard output/])
{
    my ($name, $path, $message) = @$_;

    my ($exit, $out, $err) = $t->run_tool('build', '-o', $path,
                                          { stdin => "a\n" });

    is($exit, 2, "an output that is $name is an error");
    like($err, qr/\Angx-bloom build: [^\n]*$message[^\n]*\n\z/,
         "an output that is $name is refused with the reason");
    is($out, '', "an output that is $name gives no result");
}

ok(-S "$dir/socket", 'a socket that was named as output is still a socket');
ok(-p "$dir/pipe", 'a pipe that was named as output is still a pipe');
ok(-l "$dir/dangling" && !-e "$dir/none",
   'a link to nothing that was named as output still leads to nothing');
target_ok('outputs that cannot be');

# a report that cannot be written is an error, but the image is there

for (['full', '> /dev/full'], ['closed', '>&-']) {
    my ($name, $redirection) = @$_;
    my $image = "$dir/stdout-$name.bloom";
    my ($exit, undef, $err) = run_command(
        ['sh', '-c', "echo a | \"\$1\" build -o \"\$2\" $redirection", 'sh',
         $tool, $image], env => $t->{env});

    is($exit, 2, "a build with standard output $name exits with 2");
    like($err, qr/\Angx-bloom build: cannot write to standard output: /,
         "a build with standard output $name says so");
    is((info($image))->{items}, 1,
       "a build with standard output $name makes a whole image");
}

{
    my $image = "$dir/closed.bloom";
    my ($exit) = run_command(
        ['sh', '-c', '"$1" build -q -o "$2" "$3" <&- >&- 2>&-', 'sh', $tool,
         $image, $t->write_file('keys', "a\n")], env => $t->{env});

    is($exit, 0, 'a build with all standard streams closed succeeds');
    is(count($image, 'a'), '1 present, 0 absent',
       'no message gets into an image where standard streams are closed');
}


# ------------------------------------------------------------------- refusals

my $as_is = $t->write_file('like.bloom', content_of(scalar build($keys)));
run_command(['gzip', '-k', $as_is]);

for ([qr/-p "2": .* 1e-9 to 0\.5/, '-p', '2'],
     [qr/-p "0":/, '-p', '0'],
     [qr/-p "nan":/, '-p', 'nan'],
     [qr/-p "-1":/, '-p', '-1'],
     [qr/-p "1e-10":/, '-p', '1e-10'],
     [qr/-p "":/, '-p', ''],
     [qr/-n "0":/, '-n', '0'],
     [qr/-n "-5":/, '-n', '-5'],
     [qr/-n "10x":/, '-n', '10x'],
     [qr/-n "99999999999999999999":/, '-n', '99999999999999999999'],
     [qr/-n "99999999g":/, '-n', '99999999g'],
     [qr/--layout "counting": .*blocked.*classic/,
      '--layout', 'counting'],
     [qr/--hash "md5": .*murmur3.*siphash/, '--hash', 'md5'],
     [qr/unknown option "--key=url"; use --form;/, '--key=url'],
     [qr/unknown option "--max-change=20%"; use --max-loss and --max-growth;/,
      '--max-change=20%'],
     [qr/--form "url2": .*raw/, '--form', 'url2'],
     [qr/--seed "4294967296": .*number/, '--seed', '4294967296'],
     [qr/--seed "x":/, '--seed', 'x'],
     [qr/--seed "1": must be 32 hexadecimal/,
      '--hash', 'siphash', '--seed', '1'],
     [qr/--seed "(zz){16}":/, '--hash', 'siphash', '--seed', 'zz' x 16],
     [qr/--as-of "tomorrow": .*2026-01-31T12:00:00Z/,
      '--as-of', 'tomorrow'],
     [qr/--as-of "2024-02-30T10:00:00Z":/,
      '--as-of', '2024-02-30T10:00:00Z'],
     [qr/--as-of "2024-02-28T10:00:00":/,
      '--as-of', '2024-02-28T10:00:00'],
     [qr/--as-of "0":/, '--as-of', '0'],
     [qr/--as-of "1709200800000": .* in the future/,
      '--as-of', '1709200800000'],
     [qr/-j "0":/, '-j', '0'],
     [qr/-j "257":/, '-j', '257'],
     [qr/unknown option "--bogus"/, '--bogus'],
     [qr/unknown option "-x"/, '-x'],
     [qr/-p needs a value/, '-p'],
     [qr/needs a value/, '--fpr'],
     [qr/--like takes rate,/, '--like', $as_is, '-p', '0.1'],
     [qr/--like takes rate,/, '--like', $as_is, '-n', '5'],
     [qr/--like takes rate,/, '--like', $as_is, '--layout', 'classic'],
     [qr/--like takes rate,/, '--like', $as_is, '--hash', 'siphash'],
     [qr/--like takes rate,/, '--like', $as_is, '--seed', '5'],
     [qr/none: cannot be opened: No such file/,
      '--like', "$dir/none"],
     [qr/two: is not a Bloom filter image/, '--like', $keys],
     [qr/like.bloom: is an image, not a list of keys; use "ngx-bloom merge"/,
      $as_is],
     [qr/like.bloom.gz: its gzip data is an image, not a list of keys; use "ngx-bloom merge"/,
      "$as_is.gz"])
{
    my ($message, @options) = @$_;
    my $last = @options == 1 && $options[0] =~ /^-(p|-fpr)$/;

    refused("@options" =~ s,\Q$dir\E/,,gr, $message,
            $last ? ($keys, @options) : (@options, $keys));
}

is(($t->run_tool('build', '-q', '-o', "$dir/ahead", '--as-of', time + 600,
                 $keys))[0], 0,
   'build --as-of takes a time of a clock that is some minutes ahead');

refused('no such input',
        qr/none: cannot be opened: No such file.*; check the name/,
        $keys, "$dir/none");
refused('a directory as input', qr/elsewhere: is a directory/,
        $keys, "$dir/elsewhere");
refused('no key', qr/the input has no keys; use --allow-empty/,
        { stdin => '' });
refused('only empty keys', qr/the input has no keys/, { stdin => "\n\r\n" });
refused('only a byte order mark', qr/the input has no keys/,
        { stdin => "\xef\xbb\xbf" });

{
    my ($exit, $out, $err) = $t->run_tool('build', $keys);

    is($exit, 2, 'a build without -o exits with 2');
    like($err, qr/\Angx-bloom build: -o FILE is missing[^\n]*\n\z/,
         'a build without -o says that it is missing');
}

{
    my $packed = gz($lines);

    refused('gzip that is truncated',
            qr/cut\.gz: byte 1000: the gzip data is truncated/,
            $t->write_file('cut.gz', substr $packed, 0, 1000));
    refused('gzip of an unknown method',
            qr/bad\.gz: byte \d+: the gzip data is damaged/,
            $t->write_file('bad.gz', "\x1f\x8b\x09" . substr $packed, 3));
}

{
    # the user nobody cannot read files of root: copy the tool for it

    my $copy = $t->write_file('tool', content_of($tool));
    chmod 0755, $copy;
    chmod 0, $t->write_file('secret', "a\n");
    chmod 0777, "$dir/refused";
    my @as_nobody = $> != 0 ? () : ('setpriv', '--reuid', 65534, '--regid',
                                    65534, '--clear-groups');

    refused_command('an input without permission',
                    qr/secret: cannot be opened: Permission denied; run as/,
                    @as_nobody, $copy, 'build', '-o', $target, "$dir/secret");
    chmod 0755, "$dir/refused";
}


# -------------------------------------------------------------- a full disk

# within the header, the table and the bits; sh counts in blocks of 512 bytes

for my $limit (1, 9, 30) {
    refused_command("files limited to $limit blocks",
                    qr/old\.bloom:\ cannot\ be\ written:\ File\ too\ large;
                       \ the\ old\ file\ is\ unchanged/x,
                    'sh', '-c', 'ulimit -f "$1" && shift && exec "$@"', 'sh',
                    $limit, $tool, 'build', '-o', $target, '-n', '20k', $keys);
}

SKIP: {
    skip 'the sanitizers need more address space than that', 5
        if $ENV{TEST_NGINX_SANITIZED};

    refused_command('too little memory', qr/out of memory: \d+ more bytes/,
                    'sh', '-c', 'ulimit -v 1000000 && exec "$@"', 'sh',
                    $tool, 'build', '-j', 1, '-o', $target, '-n', '10g',
                    $keys);
}


# ---- a table that is read as keys ----

for (["id;name\n1001;a\n1002;b\n", 'semicolons'],
     ["id\tname\n1001\ta\n1002\tb", 'tabs'],
     ["1,a\n2,b\n3,c\n", 'commas'], ["1|a\n2|b\n3|c\n", 'bars'],
     ["1;a\n2;b\n", undef], ["1;a\n2;b\n3\n", undef],
     ["1;a\n2;b;c\n3;d\n", undef], ["1\n2\n3\n", undef])
{
    my ($text, $name) = @$_;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', $t->testdir . '/table',
                                           { stdin => $text });
    my $what = $text =~ s/\n/\\n/gr =~ s/\t/\\t/gr;

    is($exit, 0, "$what is built");
    is($err, !defined $name ? ''
             : "ngx-bloom build: warning: standard input: each line has as"
               . " many $name as the first, as a table has; if one of its"
               . " columns has the keys, read it with --from csv:COLUMN\n",
       "$what: the build warns of tables only");
}

# The first block ends within a line.

{
    my $text = join '', map { "$_;x\n" } 1 .. 200_000;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', $t->testdir . '/table',
                                           { stdin => $text });

    is($exit, 0, 'a table of more than one block is built');
    like($err, qr/warning: standard input: each line has as many semicolons/,
         'the build warns of it');
}

done_testing;
