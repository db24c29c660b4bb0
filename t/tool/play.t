#!/usr/bin/perl

# ngx-bloom play: a filter to be looked at, by commands from a pipe and from a
# terminal.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Process qw(run_command);

my $t = BloomTest->new(module => 0);
my $dir = $t->testdir;
my $tool = $ENV{TEST_BLOOM_TOOL} // "$FindBin::Bin/../../build/ngx-bloom";


# What it prints for each command, the greeting first: commands are told apart
# by "show", whose picture is parsed.

sub play {
    my ($commands, @options) = @_;

    my ($exit, $out, $err) = $t->run_tool('play', @options,
                                          { stdin => $commands });

    return ($exit, $out, $err);
}


# The last picture in a text: a sign for each bit.

sub picture {
    my ($text) = @_;

    my %rows;

    while ($text =~ /^ *(\d+)  ([.#o+x]{64})$/mg) {
        $rows{$1} = $2;
    }

    return join '', map { $rows{$_} } sort { $a <=> $b } keys %rows;
}

sub bits {
    my ($picture, $signs) = @_;

    return [grep { substr($picture, $_, 1) =~ /[$signs]/ }
            0 .. length($picture) - 1];
}


# ---- add and test ----

for my $layout ('blocked', 'classic') {
    my @options = ('--layout', $layout);
    my ($exit, $out, $err) = play("add apple\n", @options);

    is($exit, 0, "$layout: exits with 0");
    is($err, '', "$layout: says nothing else");

    my ($text) = $out =~ /^added "apple": (.*)$/m;
    my @own = sort { $a <=> $b } $text =~ /(\d+)\+/g;
    my $picture = picture($out);

    is(length $picture, 512, "$layout: 512 bits");
    is_deeply(bits($picture, '+'), \@own, "$layout: the picture has its bits");
    is(scalar @own, $layout eq 'blocked' ? 8 : 7, "$layout: k of them");
    is_deeply(bits($picture, '#ox'), [], "$layout: and no others");

    # the same filter as an image: the bits are the file's last 64 bytes

    my $image = $t->build_image("$layout.bloom", ['apple', 'pear'], @options,
                                '-n', '50', '-p', '0.01', '--seed', '0');
    my $words = substr $t->read_file("$layout.bloom"), -64;

    (undef, $out) = play("add apple pear\nshow\n", @options);
    is_deeply(bits(picture($out), '#'),
              [grep { vec $words, $_, 1 } 0 .. 511],
              "$layout: the bits of an image with the same keys");

    my $ones = @{ bits(picture($out), '#') };

    like($out, qr/^$ones of 512 bits set \([23]\.\d %\), 2 of 50 keys \(the bits look like 2\)$/m,
         "$layout: how full it is");

    # what is asked for

    (undef, $out) = play("add apple pear\ntest apple\n", @options);
    like($out, qr/^"apple" is maybe present:(?: \d+o)+$/m, "$layout: present");
    is_deeply(bits(picture($out), 'o'), \@own, "$layout: by its bits");

    (undef, $out) = play("add apple pear\ntest plum\n", @options);
    like($out, qr/^"plum" is absent:(?: \d+[ox])*(?: \d+x)(?: \d+[ox])*$/m,
         "$layout: absent");
    ok(@{ bits(picture($out), 'x') } > 0, "$layout: by a bit that is not set");
    is(scalar @{ bits(picture($out), 'o#') }, $ones,
       "$layout: asking sets none");

    (undef, $out) = play("add apple\nadd apple\n", @options);
    like($out, qr/^"apple" may be present already, nothing changes:(?: \d+o)+$/m,
         "$layout: again");
    like($out, qr/, 1 of 50 keys .*\n.*\n\z/, "$layout: and is not counted");
}


# ---- rates ----

{
    my ($exit, $out) = play("fill 50\nask 100k\n");
    my ($found) = $out =~ /^asked for absent1 to absent100000: (\d+) maybe/m;
    my ($rate, $expected, $capacity)
        = $out =~ /^false-positive rate: ([\d.]+) % of these bits, ([\d.]+) % expected of so many keys, ([\d.]+) % at capacity\n\z/m;

    like($out, qr/^added key1 to key50$/m, 'fill');
    is($expected, $capacity, 'at its capacity: the rates are the same');
    is($expected, '0.778', 'and what sizing says');
    cmp_ok(abs($found / 1000 - $rate), '<', 5 * sqrt($rate / 1000),
           'as many wrong answers as the bits let expect');

    (undef, $out) = play("fill 30\nfill 20\nask 60k\nask 40k\n");
    like($out, qr/^added key31 to key50$/m, 'fill goes on');
    like($out, qr/^asked for absent60001 to absent100000: /m, 'so does ask');

    my $sum = 0;
    $sum += $_ for $out =~ /: (\d+) maybe present, which/g;
    is($sum, $found, 'in parts the same');

    (undef, $out) = play("fill 50\nclear\nfill 1\n");
    like($out, qr/^0 of 512 bits set \(0\.0 %\), 0 of 50 keys/m, 'clear');
    like($out, qr/^added key1 to key1$/m, 'and all begins again');
}


# ---- options ----

{
    my ($exit, $out) = play('', '-n', '100', '-p', '0.01');
    is(length picture($out), 1024, '-n: more bits');
    like($out, qr/\n\n *512  /, 'a gap between lines of a blocked filter');

    (undef, $out) = play('', '-n', '100', '--layout', 'classic');
    unlike($out, qr/\n\n/, 'and none in a classic one');

    my (undef, $one) = play("add a\n");
    my (undef, $same) = play("add a\n", '--seed', '0');
    my (undef, $other) = play("add a\n", '--seed', '1');
    my (undef, $sip) = play("add a\n", '--hash', 'siphash', '--seed', '0' x 32);
    is($one, $same, 'the seed is 0');
    isnt(picture($one), picture($other), 'another seed, other bits');
    isnt(picture($one), picture($sip), 'another hash, too');
}

for (['-n "x": a number of keys is a count', '-n', 'x'],
     ['-p "2": a rate is from', '-p', '2'],
     ['--layout "x": there are blocked', '--layout', 'x'],
     ['--hash "x": there are murmur3', '--hash', 'x'],
     ['--seed "x": murmur3 wants', '--seed', 'x'],
     ['"x" is no option; keys are added by commands', 'x'],
     ['1000 keys at a rate of 0.01 need more than the 4096 bits that can be '
      . 'looked at: take fewer (-n) or a higher rate (-p)', '-n', '1000'])
{
    my ($complaint, @options) = @$_;
    my ($exit, $out, $err) = play('', @options);

    is($exit, 2, "@options: refused");
    like($err, qr/^ngx-bloom play: \Q$complaint/, "@options: says why");
}

{
    my ($exit, undef, $err) = run_command(['sh', '-c', '"$0" play < /',
                                           $tool]);
    is($exit, 2, 'commands that cannot be read are an error');
    like($err, qr/^ngx-bloom play: standard input: cannot be read: Is a dir/,
         'and it says why');
}

like((play('', '--help'))[1], qr/^Usage: ngx-bloom play/, 'help');


# ---- commands ----

{
    my ($exit, $out, $err) = play("a one\nt one\nf 2\nc\ns\nh\nq\nadd two\n");

    is($exit, 0, 'the first letter will do');
    is($err, '', 'for all of them');
    like($out, qr/^  add   KEY\.\.\.  add keys.*^  quit +end/ms, 'help');
    unlike($out, qr/added "two"/, 'quit ends it');

    ($exit, $out, $err) = play("\n  # a remark\n\tadd \t x  y \r\n");
    is($exit, 0, 'blanks, empty lines and remarks');
    like($out, qr/^added "x": .*\nadded "y": /m, 'words are keys');

    for (['foo', 'there is no command "foo"'], ['add', 'add wants keys'],
         ['test ', 'test wants keys'], ['addx y', 'there is no command "addx"'],
         (map { [$_, 'fill wants a number from 1 to 10000000'] }
              'fill', 'fill 0', 'fill x', 'fill 1 2', 'fill 11m'),
         ['ask', 'ask wants a number from 1 to 10000000'])
    {
        my ($line, $complaint) = @$_;

        ($exit, $out, $err) = play("show\n$line\nadd last\n");
        is($exit, 2, "$line: an error");
        is($err, "ngx-bloom play: line 2: $complaint; \"help\" lists the "
                 . "commands\n", "$line: says where and what");
        like($out, qr/^added "last"/m, "$line: and goes on");
    }
}


# ---- on a terminal ----

sub terminal {
    my ($commands, %env) = @_;

    my ($exit, $out) = run_command(['script', '-qec', "'$tool' play",
                                    '/dev/null'],
                                   stdin => $commands,
                                   env => { TERM => 'xterm', NO_COLOR => '',
                                            %env });

    return ($exit, $out =~ s/\r\n/\n/gr);
}

{
    my ($exit, $out) = terminal("add a\nfoo\nquit\n");

    is($exit, 0, 'a person may err');
    like($out, qr/^> /m, 'a prompt');
    like($out, qr/ngx-bloom play: there is no command "foo"; "help" lists/,
         'no numbers of lines');
    like($out, qr/\e\[1;32m\++\e\[0m/, 'colours');

    (undef, my $plain) = terminal("add a\nquit\n", NO_COLOR => '1');
    unlike($plain, qr/\e/, 'NO_COLOR: none');
    like($plain, qr/^> /m, 'NO_COLOR: a prompt all the same');

    (undef, $plain) = terminal("add a\nquit\n", TERM => 'dumb');
    unlike($plain, qr/\e/, 'a terminal that has none');

    unlike((play("add a\n"))[1], qr/\e|^> /m, 'a pipe: neither');
}

done_testing();
