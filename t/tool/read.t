# ngx-bloom: info, verify, test, size and merge, the help of all commands, and
# that the man page has every option.  The header's fields and the bits are
# read here from docs/image-format.md, not through the tool.

use strict;
use warnings;

use FindBin;
use IO::Compress::Gzip qw(gzip);
use JSON::PP ();
use List::Util qw(product sum);
use POSIX ();

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $tool = $ENV{TEST_BLOOM_TOOL} // "$FindBin::Bin/../../build/ngx-bloom";

my @commands = qw(build info test expand verify size add merge journal import
                  export analyze);


# Runs the tool; checks its exit status and standard error, which is empty or
# matches; returns standard output.

sub tool {
    my ($status, $complaint, @arguments) = @_;

    my ($exit, $out, $err) = $t->run_tool(@arguments);
    my $shown = join ' ', map { ref $_ ? '' : substr($_, 0, 60) } @arguments;
    $shown =~ s/\Q$dir\E\///g;
    $shown =~ s/[^ -~]/?/g;

    is($exit, $status, "$shown: exits with $status");

    if (defined $complaint) {
        like($err, $complaint, "$shown: complains");
    } else {
        is($err, '', "$shown: does not complain");
    }

    return $out;
}

# A line that is exactly this text, but for a number at each %% in it.

sub line {
    my ($text) = @_;

    my $pattern = join '[0-9.e-]+', map { quotemeta } split /%%/, $text, -1;

    return qr/\A$pattern\n\z/;
}

# With its standard output redirected by a shell.

sub tool_redirected {
    my ($redirection, @arguments) = @_;

    return run_command(['sh', '-c', "\"\$0\" \"\$@\" $redirection", $tool,
                        @arguments]);
}

sub json { return JSON::PP->new->utf8->decode($_[0]) }
sub json_lines { return map { json($_) } split /\n/, $_[0] }


# An image's header and bits.

sub header {
    my ($path) = @_;

    open my $fh, '<:raw', $path or die "$path: $!";
    local $/;
    my $file = <$fh>;
    my %field;

    @field{qw(version file_size at size layout k lines flags bits hash key_form
              seed capacity items fpr created as_of build_id)}
        = unpack 'x8 L< x4 Q< Q< Q< x8 L< L< L< L< Q< L< L< L< x12 Q< Q< d<'
                 . ' Q< Q< H32', $file;
    $field{payload} = substr $file, $field{at};

    return \%field;
}

sub ones { return unpack '%64b*', $_[0] }

# The rate of exactly these bits of a blocked image with one line a key.

sub rate_of_bits {
    my ($header) = @_;

    my $sector = 64 / $header->{k};
    my @lines = map {
        product(map { ones($_) / (8 * $sector) } unpack "(a$sector)*", $_)
    } unpack '(a64)*', $header->{payload};

    return sum(@lines) / @lines;
}

sub near {
    my ($got, $wanted, $name) = @_;

    ok(abs($got - $wanted) <= 1e-9 * abs $wanted, $name)
        or diag("$got is not $wanted");
}

sub copy_with {
    my ($from, $to, $change) = @_;

    my $content = $t->read_file($from);
    $change->($content);

    return $t->write_file($to, $content);
}


# ---- help, and what is no command or option ----

for my $command (@commands) {
    my $help = tool(0, undef, $command, '--help');

    like($help, qr/\AUsage: ngx-bloom $command /, "$command: usage");
    like($help, qr/^Examples:\n(?:  .*\n)*?  (?:.* )?ngx-bloom $command /m,
         "$command: has examples");
    is(join('', grep { length > 81 } split /^/, $help), '',
       "$command: help has no line of more than 80 columns");
    is(tool(0, undef, 'help', $command), $help, "help $command is the same");
    is(tool(0, undef, $command, '-h'), $help, "$command -h is the same");

    tool(2, line("ngx-bloom $command: unknown option \"--nonsense\"; see"
                 . " \"ngx-bloom $command --help\""), $command, '--nonsense');
    tool(2, qr/unknown option "-Z"/, $command, '--json', '-Z');
    tool(2, qr/option --json takes no value/, $command, '--json=1');
}

my $usage = tool(0, undef, '--help');
like($usage, qr/^  \Q$_\E /m, "the help names $_") for @commands, 'help';
is(tool(0, undef, '-h'), $usage, '-h is the same');
is(tool(0, undef, 'help'), $usage, 'help is the same');
is(tool(0, undef, 'help', 'help'), $usage, 'help help as well');

like(tool(0, undef, '--version'),
     qr/^ngx-bloom \d\S*, image format version 1$/, '--version');

my $list = join ', ', @commands, 'help';
tool(2, qr/^ngx-bloom: unknown command "nonsense"; there are $list;/,
     'nonsense');
tool(2, qr/unknown command "nonsense"/, 'help', 'nonsense');
tool(2, qr/^ngx-bloom: no command given;/);
tool(2, qr/^ngx-bloom: unknown option "--nonsense"/, '--nonsense');
tool(2, qr/option -o wants a value/, 'merge', '-o');
tool(2, qr/option -o wants a value/, 'merge', '--output');
tool(2, qr/option --layout wants a value/, 'size', '--layout');


# ---- the man page ----

# The options, those of a long name with it: "-o, --output"

my $option = qr/-[a-zA-Z0-9], --[a-z-]+|--[a-z][a-z-]+/;

{
    open my $fh, '<', "$FindBin::Bin/../../docs/ngx-bloom.1" or die $!;
    my $page = do { local $/; <$fh> };
    my ($described) = $page =~ /^\.SH COMMANDS\n(.*?)^\.SH /ms;
    my %section = $described =~ /^\.SS (\w+)\n(.*?)(?=^\.SS |\z)/msg;

    is(join(' ', sort keys %section), join(' ', sort @commands),
       'the man page has a section for each command');

    for my $command (@commands) {
        my @help = $t->run_tool($command, '--help');
        my @has = $help[1] =~ /^ +($option)/mg;
        my @tags = $section{$command} =~ /^\.T[PQ]\n\.BR? (.*)/mg;

        for (@tags) {
            s/\\-/-/g;
            s/ "(.*?)" ?/$1/g;
        }

        my @tagged = map { /^($option)/ } @tags;

        cmp_ok(scalar(@has), '>=', 2, "$command: options in its help");
        is(join(' ', sort @tagged), join(' ', sort @has),
           "$command: the man page has the options of its help");
        like($page, qr/^\.B ngx\\-bloom $command\b/m,
             "$command: is in the synopsis");
    }
}


# ---- info ----

my @keys = map { "key-$_" } 1 .. 1000;

my $ids = $t->build_image('ids.bloom', \@keys, '--seed', '4294967295', '-n',
                          '2k', '--as-of', '2020-01-31T12:00:00.25Z');
my $classic = $t->build_image('classic.bloom', \@keys, '--layout', 'classic',
                              '-p', '1e-4');
my $secret = '00112233445566778899aabbccddeeff';
my $siphash = $t->build_image('siphash.bloom', \@keys, '--hash', 'siphash',
                              '--seed', $secret, '-p', '1e-6');

{
    my $header = header($ids);
    my $info = json(tool(0, undef, 'info', '--json', $ids));

    is($info->{file}, $ids, 'info: file');
    is($info->{bytes}, -s $ids, 'info: bytes');
    is($info->{$_}, $header->{$_}, "info: $_ as in the header")
        for qw(version bits k lines seed capacity fpr items build_id);
    is($info->{capacity}, 2000, 'info: capacity as asked for');
    is($info->{items}, 1000, 'info: items as there were');
    is($info->{seed}, 4294967295, 'info: seed as asked for');
    is($info->{layout}, 'blocked', 'info: layout');
    is($info->{hash}, 'murmur3', 'info: hash');
    is($info->{key}, 'raw', 'info: key form');
    is($info->{as_of}, '2020-01-31T12:00:00.250Z', 'info: as of');
    is($header->{as_of}, 1580472000250, 'as of in the header');
    is($info->{created},
       POSIX::strftime('%Y-%m-%dT%H:%M:%S', gmtime($header->{created} / 1000))
       . sprintf('.%03dZ', $header->{created} % 1000), 'info: created');
    ok(!$info->{items_estimated}, 'info: items are counted');
    near($info->{bits_per_item}, $header->{bits} / 1000, 'info: bits an item');
    ok($info->{expected_fpr} > 0 && $info->{expected_fpr} < 1e-4,
       'info: half full, a much better rate than promised');

    my $text = tool(0, undef, 'info', $ids);

    for ([file => $ids], [size => qr/\S+ KiB \($info->{bytes} bytes\)/],
         ['format version' => 1], ['build id' => $info->{build_id}],
         [created => $info->{created}], ['complete as of' => $info->{as_of}],
         [layout => "blocked, $info->{bits} bits, k $info->{k}, lines 1"],
         [hash => 'murmur3, seed 4294967295'], ['key form' => 'raw'],
         [capacity => '2000 keys at a false-positive rate of 0.1 %'],
         [items => '1000'],
         ['expected rate' => qr/0\.\S+ % with these items/])
    {
        my ($name, $value) = @$_;
        $value = quotemeta $value unless ref $value;
        like($text, qr/^$name +$value$/m, "info: the text has $name");
    }
}

{
    my $info = json(tool(0, undef, 'info', '--json', $classic));

    is($info->{layout}, 'classic', 'info: classic');
    is($info->{lines}, 0, 'info: classic has no lines');
    is($info->{as_of}, undef, 'info: as of is not stated');

    my $text = tool(0, undef, 'info', $classic);

    like($text, qr/^complete as of +not stated$/m, 'info: and says so');
    like($text, qr/^layout +classic, \d+ bits, k \d+$/m, 'info: no lines');
}

{
    my $json = tool(0, undef, 'info', '--json', $siphash);
    my $text = tool(0, undef, 'info', $siphash);

    is(json($json)->{hash}, 'siphash', 'info: siphash');
    is(json($json)->{seed}, undef, 'info: its key is not in the JSON');
    is(json($json)->{lines}, 2, 'info: two lines for a low rate');
    like($text, qr/^hash +siphash, key secret$/m, 'info: nor in the text');
    unlike($json . $text, qr/00112233|1100|3322/, 'info: nor anywhere');
}

{
    my @info = json_lines(tool(0, undef, 'info', '--json', $ids, $classic));

    is(join(' ', map { $_->{file} } @info), "$ids $classic",
       'info: with several images, an object a line');

    my $out = tool(2, qr/^ngx-bloom info: \Q$dir\E\/missing: /, 'info',
                   "$dir/missing", $ids);
    like($out, qr/^items +1000$/m, 'info: goes on behind a missing file');

    copy_with('ids.bloom', 'payload.bloom', sub { substr($_[0], -1) ^= "\1" });
    tool(0, undef, 'info', "$dir/payload.bloom");

    my $name = "$dir/a\"b\xff.bloom";
    rename copy_with('ids.bloom', 'odd.bloom', sub { }), $name;
    is(json(tool(0, undef, 'info', '--json', $name))->{file},
       "$dir/a\"b\x{fffd}.bloom", 'info: an odd name in JSON');

    tool(2, qr/no image is named/, 'info');
}


# ---- verify ----

for my $path ($ids, $classic) {
    my $header = header($path);
    my $found = json(tool(0, undef, 'verify', '--json', $path));
    my ($bits, $k) = @$header{qw(bits k)};
    my $ones = ones($header->{payload});
    my $items = -$bits / $k * log(1 - $ones / $bits);
    my $load = $k * $found->{estimated_items} / $bits;

    is($found->{file}, $path, 'verify: file');
    is($found->{result}, 'ok', 'verify: ok');
    is($found->{items}, 1000, 'verify: items');
    near($found->{fill}, $ones / $bits, 'verify: fill');
    if ($path eq $ids) {
        near($found->{fpr}, rate_of_bits($header), 'verify: rate of its bits');

    } else {
        my $independent = ($ones / $bits) ** $k;

        # double hashing, whose positions are not quite independent, adds some

        ok($found->{fpr} >= $independent && $found->{fpr} < 1.3 * $independent,
           'verify: rate of its bits, in a classic image');
    }

    is($found->{estimated_items}, int($items + 0.5), 'verify: estimate');
    near($found->{estimated_items_error},
         sqrt($bits * (exp($load) - 1 - $load)) / $k, 'verify: its error');
    ok(abs($found->{estimated_items} - 1000)
       < 6 * $found->{estimated_items_error}, 'verify: it is right');

    like(tool(0, undef, 'verify', $path),
         line("$path: ok, 1000 items, %% % of the bits set, false-positive"
              . " rate %% %, $found->{estimated_items} +- %% items estimated"
              . ' from the bits'), 'verify: as text');
    is(tool(0, undef, 'verify', '-q', $path), '', 'verify: quiet');
}

tool(2, qr/no image is named/, 'verify');

# Each kind of damage, and what verify says of it; info says the same of what
# is not in the payload, and test and merge take none of them.

my @damages = (
    [empty => qr/is empty; /, sub { $_[0] = '' }],
    [text => qr/is not a Bloom filter image: /, sub { $_[0] = "key\n" x 5000 }],
    [bit => qr/is not a Bloom filter image: /, sub { substr($_[0], 3) = '' }],
    [piece => qr/is truncated: it has 100 bytes/,
     sub { substr($_[0], 100) = '' }],
    [magic => qr/is not a Bloom filter image: /,
     sub { substr($_[0], 0, 1) = "\x09" }],
    [newer => qr/is of version 2 .* use a newer program/,
     sub { substr($_[0], 8, 1) = "\2" }],
    [swapped => qr/was written in big-endian byte order/,
     sub { substr($_[0], 12, 4) = "\1\2\3\4" }],
    [header => qr/is damaged: the checksum of its header /,
     sub { substr($_[0], 100, 1) ^= "\x80" }],
    [reserved => qr/is damaged: the checksum of its header /,
     sub { substr($_[0], 4000, 1) ^= "\1" }],
    [cut => qr/is truncated: /, sub { chop $_[0] }],
    [header_only => qr/is truncated: /, sub { substr($_[0], 4096) = '' }],
    [longer => qr/is longer than it says: /, sub { $_[0] .= "\0" }],
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
       "$name: not said to be ok");

    my $found = json(tool(1, $says, 'verify', '--json', $path));
    is($found->{result}, 'damaged', "$name: in JSON");
    like($found->{error}, qr/^$message/, "$name: and why");

    $in_payload ? tool(0, undef, 'info', $path)
                : is(tool(2, $says, 'info', $path), '', "$name: info");
    is(tool(2, $says, 'test', $path, 'key-1'), '', "$name: test");
    tool(2, $says, 'merge', '-o', "$dir/none.bloom", $ids, $path);
    tool(2, $says, 'merge', '-o', "$dir/none.bloom", $path, $ids);
}

ok(!-e "$dir/none.bloom", 'merge: no image is made of a damaged one');

# One flipped bit in every byte of the header that has a meaning, and
# truncation at a few hundred places, many files at a time.

{
    my $content = $t->read_file('ids.bloom');
    my $size = length $content;
    my @paths;

    for my $at (0 .. 151, 4092 .. 4095) {
        my $copy = $content;
        substr($copy, $at, 1) ^= chr(1 << $at % 8);
        push @paths, $t->write_file("flip/$at", $copy);
    }

    push @paths, map { $t->write_file("cut/$_", substr $content, 0, $_) }
                     grep { $_ < $size } map { $_ * 61 } 0 .. $size / 61;

    my ($exit, $out, $err) = $t->run_tool('verify', '--json', @paths);
    my @found = json_lines($out);

    is($exit, 1, 'verify: all of them are damaged');
    is(scalar @found, scalar @paths, 'verify: every one is answered');
    is(join(' ', grep { $_->{result} ne 'damaged' } @found), '',
       'verify: none is found to be good');
    is(() = $err =~ /^ngx-bloom verify: \Q$dir\E\/(?:flip|cut)\/\d+: /mg,
       scalar @paths, 'verify: and says so, a line each');
}

# A copy with another header, under a good checksum.

sub crc32c {
    my $crc = 0xffffffff;

    for my $byte (unpack 'C*', $_[0]) {
        $crc ^= $byte;
        $crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}

sub copy_with_header {
    my ($from, $to, %change) = @_;

    return copy_with($from, $to, sub {
        substr($_[0], $_, length $change{$_}) = $change{$_} for keys %change;
        substr($_[0], 4092, 4) = pack 'L<', crc32c(substr $_[0], 0, 4092);
    });
}

# Numbers that are allowed, and beyond anything that is.

{
    my $most = "\xff" x 8;
    my $path = copy_with_header('ids.bloom', 'extreme.bloom', 60 => "\1",
                                96 => $most, 104 => $most, 120 => $most,
                                128 => $most);

    my $info = json(tool(0, undef, 'info', '--json', $path));
    is($info->{items}, '18446744073709551615', 'info: the most items');
    is($info->{expected_fpr}, 1, 'info: are too many');
    like(tool(0, undef, 'info', $path), qr/^items +18446744073709551615, /m,
         'info: as text');
    like(tool(0, undef, 'verify', $path), qr/: ok, 18446744073709551615 items/,
         'verify: its bits are good');
    tool(0, undef, 'merge', '-o', "$dir/extreme-2.bloom", $path, $path, $ids);
    is(header("$dir/extreme-2.bloom")->{items}, '18446744073709551615',
       'merge: a sum that does not overflow');
}

# What cannot be read is an error, and outweighs damage.

my @unreadable = (
    ["$dir/missing" => qr/cannot be opened: No such file/],
    [$dir => qr/is not a regular file; name an image/],
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
       'verify: each has its result');
}


# ---- test ----

is(tool(0, undef, 'test', $ids, 'key-1', 'key-1000'),
   "present key-1\npresent key-1000\n", 'test: present');
is(tool(1, undef, 'test', $siphash, 'key-1', 'nothing', 'key-2'),
   "present key-1\nabsent nothing\npresent key-2\n", 'test: one is absent');
is(tool(1, undef, 'test', '-q', $siphash, 'nothing'), '', 'test: quiet, no');
is(tool(0, undef, 'test', '-q', $siphash, 'key-1'), '', 'test: quiet, yes');
is(tool(1, undef, 'test', $siphash, '--', '-4711', '--json'),
   "absent -4711\nabsent --json\n", 'test: keys that look like options');
tool(2, qr/unknown option "-4"/, 'test', $siphash, '-4711');

# Every key is found, whatever the filter is like.

my $all = join '', map { "$_\n" } @keys;

for (['blocked'], ['classic', '--layout', 'classic'],
     ['siphash', '--hash', 'siphash'], ['two lines', '-p', '1e-5'],
     ['three lines', '-p', '1e-8'], ['k of 1', '-p', '0.5'],
     ['roomy', '-n', '100k'], ['overfull', '-n', '100', '-q'])
{
    my ($name, @options) = @$_;
    my $image = $t->build_image('kind.bloom', \@keys, @options);

    is(tool(0, undef, 'test', $image, { stdin => $all }),
       join('', map { "present $_\n" } @keys), "$name: all are present");
    is(tool(0, undef, 'test', '-c', $image, { stdin => $all }),
       "1000 present, 0 absent\n", "$name: counted");
}

# Where keys come from.

{
    my $present = "present key-1\npresent key-2\n";
    my $file = $t->write_file('some', "key-1\nkey-2");
    my $gz = '';

    gzip(\"key-1\r\n", \$gz);
    gzip(\"\r\nkey-2\n", \$gz, Append => 1);
    $t->write_file('some.gz', $gz);
    $t->write_file('cut.gz', substr $gz, 0, -1);

    is(tool(0, undef, 'test', $ids, '-f', $file), $present, 'test: -f');
    is(tool(0, undef, 'test', '-f', "$file.gz", $ids), $present,
       'test: gzip, of two members, with CR LF and an empty line');
    is(tool(0, undef, 'test', $ids, '--file', '-', { stdin => "key-1\nkey-2" }),
       $present, 'test: -f - is standard input');
    is(tool(0, undef, 'test', $ids, { stdin => $gz }), $present,
       'test: gzip from a pipe');
    is(tool(0, undef, 'test', $ids,
            { stdin => "\xef\xbb\xbfkey-1\r\n\nkey-2\n" }), $present,
       'test: a byte order mark is left out');

    tool(2, qr/^ngx-bloom test: \Q$dir\E\/cut\.gz: byte \d+: /, 'test', $ids,
         '-f', "$dir/cut.gz");
    tool(2, qr/^ngx-bloom test: \Q$dir\E\/missing: cannot be opened: /, 'test',
         $ids, '-f', "$dir/missing");
    tool(2, qr/is a directory/, 'test', $ids, '-f', $dir);
    tool(2, qr/from -f \Q$file\E or from the command line, not both/, 'test',
         $ids, '-f', $file, 'key-1');
    tool(2, qr/no image is named/, 'test');

    tool(2, qr/no keys to ask about: the input has none/, 'test', $ids);
    tool(2, qr/no keys to ask about: all are empty/, 'test', $ids, '');
    tool(2, qr/no keys to ask about: all are empty/, 'test', $ids,
         { stdin => "\n\r\n\n" });
    is(tool(2, qr/no keys/, 'test', '-c', $ids, { stdin => "\n" }),
       "0 present, 0 absent, 1 empty keys were skipped\n",
       'test: empty keys are counted');
}

# Keys of all bytes, of many bytes, and with line ends in them.

{
    my $long = join '', map { chr(33 + $_ % 90) } 1 .. 1_048_577;
    my $bytes = join '', map { chr } grep { $_ != 10 && $_ != 13 } 1 .. 255;
    my $image = $t->build_image('odd-keys.bloom', [$long, $bytes]);

    is(tool(0, undef, 'test', $image, { stdin => "$long\n$bytes\n" }),
       "present $long\npresent $bytes\n", 'test: a key of 1 MB');
    is(tool(1, undef, 'test', '-c', $image, { stdin => "${long}x\n$bytes" }),
       "1 present, 1 absent\n", 'test: another, one byte longer');
    is(tool(0, undef, 'test', $image, $bytes), "present $bytes\n",
       'test: the bytes as an argument');

    $image = $t->build_image('lines.bloom', ["two\nlines", "end\r\n", 'one']);

    is(tool(1, undef, 'test', '-0', $image,
            { stdin => "two\nlines\0one\0\0end\r\n\0end" }),
       "present two\nlines\0present one\0present end\r\n\0absent end\0",
       'test: -0 in and out');
    is(tool(0, undef, 'test', '--null', '--count', $image,
            { stdin => "two\nlines\0\0" }),
       "1 present, 0 absent, 1 empty keys were skipped\n", 'test: counted');
}

{
    my @asked = ('key-1', qq{a"b\\c\t}, "\xc3\xa9", "\xe9!", "\xed\xa0\x80",
                 "\xe0\x80\x80", "\xc0\x80", "\xf4\x90\x80\x80",
                 "\xf0\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98\x80");
    my $out = tool(1, undef, 'test', '--json', $siphash,
                   { stdin => join "\n", @asked });
    my @answers = json_lines($out);

    is($answers[0]{key}, 'key-1', 'test: a key in JSON');
    is($answers[0]{result}, 'present', 'test: its result');
    is($answers[1]{key}, $asked[1], 'test: quotes and a tab');
    is($answers[1]{result}, 'absent', 'test: absent');
    is($answers[2]{key}, "\x{e9}", 'test: UTF-8');
    ok(!exists $answers[2]{key_hex}, 'test: needs no hexadecimal');
    is($answers[3]{key}, "\x{fffd}!", 'test: not UTF-8');
    is($answers[3]{key_hex}, 'e921', 'test: is in hexadecimal too');
    is($answers[4]{key_hex}, 'eda080', 'test: a surrogate is not UTF-8');
    ok(exists $answers[$_]{key_hex},
       'test: nor is ' . unpack 'H*', $asked[$_])
        for 5 .. 9;
    is($answers[10]{key}, "\x{1f600}", 'test: of four bytes');

    my $count = json(tool(1, undef, 'test', '--json', '-c', $siphash,
                          { stdin => "key-1\n\nx\n" }));
    is(join(' ', @$count{qw(present absent empty)}), '1 1 1',
       'test: counted in JSON');
}

# An answer comes as soon as its question: no more input is waited for.

{
    pipe my $reader, my $questions or die $!;
    pipe my $answers, my $writer or die $!;

    my $pid = BloomTest::Process::spawn([$tool, 'test', $siphash],
                                        stdin => $reader, stdout => $writer);
    close $_ for $reader, $writer;

    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { die "no answer\n" };
    $questions->autoflush;

    for (['key-1', 'present'], ['nothing', 'absent']) {
        my ($key, $result) = @$_;

        print $questions "$key\n";
        alarm BloomTest::Process::time_limit();
        is(eval { scalar <$answers> }, "$result $key\n",
           "test: is asked about $key and answers");
        alarm 0;
    }

    close $questions;
    waitpid $pid, 0;
    is($? >> 8, 1, 'test: the status is that of all');
}

# Output that cannot be written is an error.

for ([test => $ids, 'key-1'], [info => $ids], [verify => $ids],
     [size => '-n', '1', '-p', '0.1'], ['--help'])
{
    for my $redirection ('> /dev/full', '>&-') {
        my ($exit, undef, $err) = tool_redirected($redirection, @$_);

        is($exit, 2, "$$_[0] $redirection: is an error");
        like($err, qr/cannot write to standard output: /,
             "$$_[0] $redirection: says so");
    }
}


# ---- size ----

# Both layouts, or the one that is asked for.

sub size {
    my $out = tool(0, undef, 'size', '--json', @_);

    return grep({ $_ eq '--layout' } @_) ? json($out) : json_lines($out);
}

for (['10m', '0.001'], ['1k', '0.1'], ['1m', '1%'], ['3', '1e-6'],
     ['1g', '1e-9'], ['1', '0.5'])
{
    my ($n, $p) = @$_;
    my ($blocked, $textbook) = size('-n', $n, '-p', $p);
    my $items = $n =~ s/k$/000/r =~ s/m$/000000/r =~ s/g$/000000000/r;
    my $rate = $p eq '1%' ? 0.01 : $p;

    is($blocked->{layout}, 'blocked', "size $n $p: blocked");
    is($textbook->{layout}, 'classic', "size $n $p: classic");

    for ($blocked, $textbook) {
        is($_->{bytes} * 8, $_->{bits}, "size $n $p: bytes are bits");
        is($_->{bits} % 512, 0, "size $n $p: whole lines");
        ok($_->{fpr} > 0 && $_->{fpr} <= $rate, "size $n $p: rate is kept");
        is($_->{items}, $items, "size $n $p: items");
        near($_->{bits_per_item}, $_->{bits} / $items,
             "size $n $p: bits an item");
    }

    next if $items < 1000;

    # the textbook's -n ln p / (ln 2)^2, a little more as k is whole

    my $least = -$items * log($rate) / log(2) ** 2;

    ok($textbook->{bits} > 0.999 * $least
       && $textbook->{bits} < 1.03 * $least + 1024,
       "size $n $p: classic is as the textbook says");
    ok($blocked->{bits} > $least && $blocked->{bits} < 1.3 * $least + 1024,
       "size $n $p: blocked is somewhat larger");
}

for my $layout (qw(blocked classic)) {
    my ($most) = size('-p', '1e-4', '-m', '1m', '--layout', $layout);

    cmp_ok($most->{bytes}, '<=', 1 << 20, "size: $layout fits the memory");
    cmp_ok($most->{fpr}, '<=', 1e-4, "size: $layout keeps the rate");

    my ($back) = size('-n', $most->{items}, '-p', '1e-4', '--layout', $layout);
    is($back->{bits}, $most->{bits}, "size: $layout, items and rate back");

    my ($over) = size('-n', $most->{items} + 1, '-p', '1e-4', '--layout',
                      $layout);
    cmp_ok($over->{bytes}, '>', 1 << 20, "size: $layout, one more is too much");

    my ($least) = size('-n', '100k', '-m', '200k', '--layout', $layout);

    cmp_ok($least->{bytes}, '<=', 200 << 10, "size: $layout fits again");
    is($least->{items}, 100_000, "size: $layout, items");
    ok($least->{fpr} > 0 && $least->{fpr} < 1e-3, "size: $layout, the rate");

    my ($better) = size('-n', '100k', '-p', $least->{fpr} * 0.98, '--layout',
                        $layout);
    cmp_ok($better->{bytes}, '>', 200 << 10,
           "size: $layout, a better rate is too much");

    my $image = $t->build_image('sized.bloom', ['key'], '--layout', $layout,
                                '-n', '100k', '-p', '1e-5');
    my ($sized) = size('--items', '100k', '--fpr', '1e-5', '--layout', $layout);
    is(header($image)->{$_}, $sized->{$_}, "size: $layout, $_ as build has it")
        for qw(bits k lines);
}

like(tool(0, undef, 'size', '-n', '10m', '-p', '0.1%'),
     qr{\A
        layout  [ ]+ items    [ ]+ rate     [ ]+ memory        [ ]+ bits/item
                [ ]+ k  [ ]+ lines \n
        blocked [ ]+ 10000000 [ ]+ 0\.1[ ]% [ ]+ 18\.\d[ ]MiB [ ]+ 15\.\d+
                [ ]+ 8  [ ]+ 1 \n
        classic [ ]+ 10000000 [ ]+ 0\.1[ ]% [ ]+ 17\.\d[ ]MiB [ ]+ 14\.\d+
                [ ]+ 10 [ ]+ - \n\z}x,
     'size: as text');
is(() = tool(0, undef, 'size', '--memory', '1m', '-p', '0.01', '--layout',
             'classic') =~ /^(?:classic|blocked)/mg, 1, 'size: one layout');

tool(2, qr/give two of -n \(items\), -p \(rate\) and -m \(memory\)/, 'size',
     @$_)
    for [], ['-n', '1'], ['-p', '0.1'], ['-m', '1k'],
        ['-n', '1', '-p', '0.1', '-m', '1k'];

tool(2, qr/-n "\Q$_\E": a number of keys is a count/, 'size', '-n', $_, '-p',
     '0.1')
    for '0', 'x', '', '1x', '-1', '1.5', '5000g', '99999999999999999999';
tool(2, qr/-p "\Q$_\E": a rate is from 1e-9 to 0\.5/, 'size', '-n', '1', '-p',
     $_)
    for '0', '1', '0.6', 'x', '', '1e-10', '-0.1', 'nan', '51%';
tool(2, qr/-m "\Q$_\E": memory is in bytes/, 'size', '-n', '1', '-m', $_)
    for '0', 'x', '', '1kk', '1025g';
tool(2, qr/--layout "x": there are blocked and classic/, 'size', '-n', '1',
     '-p', '0.1', '--layout', 'x');
tool(2, qr/"4711" is no option/, 'size', '-n', '1', '-p', '0.1', '4711');
tool(2, qr/too little for even one item/, 'size', '-m', '63', '-p', '0.1');
tool(2, qr/too little for 10000000 items/, 'size', '-m', '1k', '-n', '10m');
tool(2, qr/need more than 1 TiB/, 'size', '-n', '4000g', '-p', '1e-9');


# ---- merge ----

# Images of keys $from to $to that can be merged with ids.bloom.

sub like_ids {
    my ($name, $from, $to, @options) = @_;

    return $t->build_image($name, [map { "key-$_" } $from .. $to], '--like',
                           $ids, @options);
}

sub payload { return header($_[0])->{payload} }

{
    my $more = like_ids('more.bloom', 501, 1500);
    my $both = like_ids('both.bloom', 1, 1500);
    my $merged = "$dir/merged.bloom";

    my $out = tool(0, undef, 'merge', '-o', $merged, $ids, $more);
    my $header = header($merged);

    ok($header->{payload} eq (payload($ids) | payload($more)),
       'merge: the bits of both');
    ok($header->{payload} eq payload($both),
       'merge: the bits of an image of all keys');
    is(tool(0, undef, 'verify', '-q', $merged), '', 'merge: is a good image');
    is(tool(0, undef, 'test', '-c', $merged,
            { stdin => join "\n", map { "key-$_" } 1 .. 1500 }),
       "1500 present, 0 absent\n", 'merge: all keys are in it');

    is($header->{$_}, header($ids)->{$_}, "merge: $_ of the first")
        for qw(layout bits k lines hash seed capacity fpr);
    isnt($header->{build_id}, header($_)->{build_id}, 'merge: a new build id')
        for $ids, $more;
    is($header->{flags}, 1, 'merge: items are estimated');
    is($header->{as_of}, 0, 'merge: not as of, as one does not state it');

    my $info = json(tool(0, undef, 'info', '--json', $merged));
    ok($info->{items_estimated}, 'merge: info knows');
    ok(abs($info->{items} - 1500) < 6 * $info->{items_error},
       'merge: the estimate is right') or diag($info->{items});
    like($out, line("$merged: 2 images, $info->{items} +- %% distinct, blocked,"
                    . ' %% KiB, false-positive rate %% %'),
         'merge: the result');
    like(tool(0, undef, 'info', $merged),
         qr/^items +$info->{items}, estimated, \+- \d+$/m, 'merge: in info');

    my $result = json(tool(0, undef, 'merge', '--json', '--output',
                           "$dir/again.bloom", $more, $ids));
    is($result->{items}, $info->{items}, 'merge: the same in another order');
    is($result->{file}, "$dir/again.bloom", 'merge: JSON has the file');
    is($result->{bytes}, -s $merged, 'merge: and its size');
    is($result->{images}, 2, 'merge: and of how many');
    is($result->{build_id}, header("$dir/again.bloom")->{build_id},
       'merge: and the build id');
    ok(payload("$dir/again.bloom") eq $header->{payload},
       'merge: the same bits');

    # an image merged with itself, or with a part, has what it has

    is(tool(0, undef, 'merge', '-q', '-o', "$dir/again.bloom", $ids, $ids), '',
       'merge: quiet');
    ok(payload("$dir/again.bloom") eq payload($ids), 'merge: twice the same');

    # into one of those merged

    my $own = copy_with('more.bloom', 'own.bloom', sub { });
    tool(0, undef, 'merge', '-o', $own, $own, $ids);
    ok(payload($own) eq $header->{payload}, 'merge: into one of them');

    # several: the OR of all

    my @parts = map { like_ids("part-$_", 100 * $_ + 1, 100 * $_ + 100) }
                    0 .. 14;
    like(tool(0, undef, 'merge', '-o', "$dir/again.bloom", @parts),
         qr/: 15 images, /, 'merge: fifteen');
    ok(payload("$dir/again.bloom") eq $header->{payload},
       'merge: fifteen parts are the whole');
}

# They need not fit into memory.

SKIP: {
    skip 'the sanitizers need more address space than that', 2
        if $ENV{TEST_NGINX_SANITIZED};

    my $large = $t->build_image('large', ['a'], '-n', '60m');
    my $more = $t->build_image('large-more', ['b'], '--like', $large);

    my ($exit, $out, $err) = run_command(
        ['sh', '-c', 'ulimit -v 98304 && exec "$@"', 'sh', $tool, 'merge', '-q',
         '-o', "$dir/large-both", $large, $more]);
    is($exit, 0, 'merge: two images of 112 MiB with 96 MiB of memory')
        or diag($err);
    is(tool(0, undef, 'test', '-c', "$dir/large-both", 'a', 'b'),
       "2 present, 0 absent\n", 'merge: and all is in it');

    unlink $large, $more, "$dir/large-both";
}

# Images of several chunks.

{
    my @numbers = map { $t->build_image("$_.numbers", [$_ .. $_ + 999], '-n',
                                        '1500k', '--seed', '1') } 1000, 5000;
    my $both = $t->build_image('both.numbers', [1000 .. 1999, 5000 .. 5999],
                               '--like', $numbers[0]);
    my $merged = "$dir/merged.numbers";

    cmp_ok(-s $both, '>', 2 << 20, 'an image of three chunks');

    tool(0, undef, 'merge', '-q', '-o', $merged, @numbers);
    ok(payload($merged) eq payload($both), 'merge: chunk by chunk');
    is(tool(0, undef, 'test', '-c', $merged,
            { stdin => join "\n", 1000 .. 1999, 5000 .. 5999 }),
       "2000 present, 0 absent\n", 'test: in every chunk');

    my $found = json(tool(0, undef, 'verify', '--json', $merged));
    near($found->{fill}, ones(payload($both)) / header($both)->{bits},
         'verify: every chunk is counted');

    my $size = -s $merged;
    my $damaged = copy_with('merged.numbers', 'damaged.numbers',
                            sub { substr($_[0], -1) ^= "\1" });
    my $message = line("ngx-bloom verify: $damaged: is damaged: the checksum of"
                       . ' bytes ' . (8192 + (2 << 20)) . ' to ' . ($size - 1)
                       . ' differs; copy or build it again');
    tool(1, $message, 'verify', $damaged);
    is(tool(2, qr/is damaged/, 'test', $damaged, '1000'), '',
       'test: no answer, as the last chunk is damaged');
}

# The number of items is at most the sum: 1 and 1 are never 3.

{
    my @one = map { like_ids("one-$_.bloom", $_, $_) } 1, 2;
    my $empty = like_ids('empty.bloom', 1, 0, '--allow-empty');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", @one);
    ok(header("$dir/few.bloom")->{items} =~ /^[12]$/,
       'merge: no more items than both have');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $one[0], $empty,
         $empty);
    my $header = header("$dir/few.bloom");
    is($header->{items}, 1, 'merge: with empty ones, the items');
    is($header->{flags}, 0, 'merge: are no estimate');

    unlike(tool(0, undef, 'merge', '-o', "$dir/few.bloom", $one[0], $empty),
           qr/\+-/, 'merge: and not shown as one');

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $empty,
         "$dir/merged.bloom");
    is(header("$dir/few.bloom")->{flags}, 1,
       'merge: an estimate stays one, with an empty one');

    # what an image says that it has outweighs an estimate

    my $more = copy_with_header('ids.bloom', 'claims.bloom',
                                104 => pack 'Q<', 1200);

    tool(0, undef, 'merge', '-q', '-o', "$dir/few.bloom", $ids, $more);
    is(header("$dir/few.bloom")->{items}, 1200,
       'merge: no fewer items than one image has');
}

# As of the earliest, if all state one.

{
    my @dated = map { like_ids("dated-$_.bloom", 1, 9, '--as-of', $_) }
                    1_600_000_000, 1_500_000_000, 1_550_000_000;

    tool(0, undef, 'merge', '-q', '-o', "$dir/dated.bloom", @dated);
    is(header("$dir/dated.bloom")->{as_of}, 1_500_000_000_000,
       'merge: as of the earliest');

    tool(0, undef, 'merge', '-q', '-o', "$dir/dated.bloom", @dated,
         "$dir/empty.bloom");
    is(header("$dir/dated.bloom")->{as_of}, 0,
       'merge: not as of, if one does not say');
}

# More than there is room for.

{
    my $full = like_ids('full.bloom', 1001, 2400, '-q');

    like(tool(0, line('ngx-bloom merge: warning: %% distinct keys are more'
                      . ' than the capacity of 2000: the false-positive rate'
                      . ' will be about %% % instead of the promised 0.1 %;'
                      . ' build the first image again, with an -n for the keys of all,'
                      . ' and the others like it'),
              'merge', '-o', "$dir/over.bloom", $ids, $full),
         qr/^\Q$dir\E\/over\.bloom: 2 images, /, 'merge: made all the same');
    tool(0, undef, 'merge', '-q', '-o', "$dir/over.bloom", $ids, $full);
}

# What cannot be merged, and what that leaves behind: nothing.

{
    my $old = $t->write_file('old.bloom', 'as it was');

    for ([layout => '--layout', 'classic', '-n', '2k', '--seed', '4294967295'],
         [bits => '-n', '4k', '--seed', '4294967295'],
         [seed => '-n', '2k', '--seed', '4294967294'],
         [hash => '-n', '2k', '--hash', 'siphash'])
    {
        my ($what, @options) = @$_;
        my $other = $t->build_image("other-$what.bloom", ['key'], @options);

        tool(2, line("ngx-bloom merge: $other: cannot be merged with $ids, from"
                     . " which it differs in $what; build it again with"
                     . " \"--like $ids\""),
             'merge', '-o', $old, $ids, $other);
    }

    my $other = $t->build_image('other-sip.bloom', \@keys, '--hash', 'siphash',
                                '-p', '1e-6');
    tool(2, qr/differs in seed/, 'merge', '-o', $old, $siphash, $other);
    tool(2, qr/damaged-last: is damaged/, 'merge', '-o', $old, $ids,
         "$dir/damaged-last");
    is($t->read_file('old.bloom'), 'as it was', 'merge: old file untouched');

    my $twin = $t->build_image('twin.bloom', ['key'], '--like', $siphash);
    tool(0, undef, 'merge', '-o', "$dir/sip.bloom", $siphash, $twin);

    tool(2, qr/-o FILE is missing/, 'merge', $ids, $ids);
    tool(2, qr/name two images or more/, 'merge', '-o', $old);
    tool(2, qr/name two images or more/, 'merge', '-o', $old, $ids);
    tool(2, qr/^ngx-bloom merge: \Q$dir\E\/no\/x: /, 'merge', '-o',
         "$dir/no/x", $ids, $ids);
    tool(2, qr/^ngx-bloom merge: \Q$dir\E: is not a regular file/, 'merge',
         '-o', $dir, $ids, $ids);

    is(join(' ', glob "$dir/*tmp-*"), '', 'merge: no temporary file is left');
}

done_testing;
