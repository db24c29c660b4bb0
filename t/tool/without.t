#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that --without leaves keys out of an image, in whatever format and
# spelling the lists have them, and says which of its keys no list has.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(json tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $n = 0;

sub file {
    my ($name, $text) = @_;

    $t->write_file($name, $text);

    return "$dir/$name";
}

# Builds an image from a list without some keys.  Returns it, the counts, and
# standard error.

sub build {
    my ($list, $without, @options) = @_;

    my $image = "$dir/image" . ++$n;
    my ($exit, $out, $err)
        = $t->run_tool('build', '--json', '-o', $image, '-p', '1e-7', '--seed',
                       '99', '--without', file("without$n", $without), @options,
                       file("list$n", $list));

    is($exit, 0, "build @options --without exits with 0") or diag($err);

    return ($image, json($out), $err);
}

sub answers {
    my ($name, $image, %expected) = @_;

    my @keys = sort keys %expected;
    my ($exit, $out) = $t->run_tool('test', $image, '--', @keys);

    is($out, join('', map { "$expected{$_} $_\n" } @keys),
       "the image lacks just the key that is left out: $name");
}

sub counts {
    my ($name, $json, %expected) = @_;

    is_deeply({ map { $_ => $json->{$_} } keys %expected }, \%expected,
              "--json counts the keys that are left out: $name");
}

sub bytes_of { open my $in, '<:raw', $_[0] or die $!; local $/; <$in> }


# ---- each format ----

my %list = (
    lines => "one.example\nhttp://EVIL.example:80/ # bad\ntwo.example\n",
    adblock => "! list\n||one.example^\n||evil.example^\n||two.example^\n",
    hosts => "0.0.0.0 one.example evil.example\n0.0.0.0 two.example\n",
    dnsmasq => "address=/one.example/evil.example/#\naddress=/two.example/#\n",
    rpz => "\$TTL 60\n\@ SOA a. b. ( 1\n2 3 4 5 )\none.example CNAME .\n"
           . "*.evil.example CNAME .\ntwo.example CNAME .\n",
    'csv:url' => "id,url\n1,one.example\n2,\"http://evil.example./\"\n"
                 . "3,two.example\n",
    json => qq({"key":"one.example"}\n{"key":"EVIL.example"}\n)
            . qq({"key":"two.example"}\n),
    auto => "one.example\nevil.example\ntwo.example\n",
);

for my $from (sort keys %list) {
    my ($image, $json, $err)
        = build($list{$from}, "# no longer bad\n\n  Evil.Example.  # yet\n",
                '--form', 'url', '--from', $from);

    answers($from, $image, 'one.example' => 'present',
            'evil.example' => 'absent', 'two.example' => 'present');
    counts($from, $json, received => 2, items => 2, duplicates => 0,
           left_out => 1, without_unmatched => 0, errors => 0, skipped => 0);
    unlike($err, qr/warning/, "no key is unneeded: $from");
}


# ---- key forms and spellings ----

{
    my ($image, $json)
        = build("evil.example\nevil.example/x\nhttp://www.evil.example/\n"
                . "EVIL.example\n", "HTTPS://evil.EXAMPLE\n", '--form', 'url');

    counts('entries of other pages and hosts stay', $json, items => 2,
           left_out => 2);
    answers('an entry, not what requests ask', $image,
            'evil.example/' => 'absent', 'evil.example/x' => 'present',
            'www.evil.example' => 'present');

    ($image, $json) = build("B\xc3\xbccher.example\na.example\n192.0.2.1\n"
                            . "[2001:DB8::0:1]\n",
                            "xn--bcher-kva.example.\n2001:db8::1\n",
                            '--form', 'host');
    answers('hosts', $image, 'xn--bcher-kva.example' => 'absent',
            'a.example' => 'present', '192.0.2.1' => 'present',
            '2001:db8::1' => 'absent');
    counts('hosts', $json, left_out => 2, items => 2);

    ($image, $json) = build("One\none\nTWO\n", "ONE\n", '--form', 'lower');
    answers('lower', $image, one => 'absent', two => 'present');
    counts('lower', $json, left_out => 2, items => 1);

    ($image, $json)
        = build("One\none\none\n\xff\xfe\n", "one\n\xff\xfe\n");
    answers('raw, byte by byte', $image, One => 'present', one => 'absent',
            "\xff\xfe" => 'absent');
    counts('raw', $json, left_out => 3, items => 1);

    ($image, $json) = build("a\0b\0c\nd\0", "b\n", '-0');
    answers('-0', $image, a => 'present', b => 'absent', "c\nd" => 'present');

    ($image, $json) = build("# a\0comment\none\n\xe9t\xe9\n# \xe9\ntwo\n",
                            "two\n", '--from', 'lines');
    counts('zero bytes and Latin-1 lose nothing', $json, received => 2,
           left_out => 1, comments => 2);
}


# ---- duplicates, a file with nothing, all keys ----

{
    my (undef, $json, $err)
        = build("a\nb\na\na\n", "a\na\n # a\na\n");
    counts('duplicates', $json, received => 1, left_out => 3,
           without_unmatched => 0);

    for my $nothing ('', "# nothing\n\n", "\xef\xbb\xbf# nothing") {
        my ($image, $json, $err) = build("a\nb\n", $nothing);

        counts('nothing', $json, received => 2, left_out => 0,
               without_unmatched => 0);
        is($err, '', 'a file without keys leaves nothing out');
    }

    my ($exit, undef, $all)
        = $t->run_tool('build', '-o', "$dir/all", '--without',
                       file('all-keys', "a\n"), { stdin => "a\na\n" });
    is($exit, 2, 'an image without keys is refused');
    like($all, qr/--without leaves out all keys; use --allow-empty if/,
         'the message names --without');
}


# ---- many keys, threads ----

{
    my @keys = map { "key-$_-" . 'x' x ($_ % 40) } 1 .. 60_000;
    my $list = join('', map { "$_\n" } @keys);
    my $without = join('', map { "$keys[3 * $_]\n" } 0 .. 19_999);
    my (@images, @json);

    for my $threads (1, 4) {
        my ($image, $json) = build($list, $without, '--threads', $threads);

        push @images, $image;
        counts("$threads threads", $json, items => 40_000, left_out => 20_000,
               without_unmatched => 0);
    }

    my ($plain) = build(join('', map { "$keys[$_]\n" }
                                 grep { $_ % 3 } 0 .. $#keys), '');

    # all but the time of the build, which is in the header
    my ($one, $four, $same)
        = map { substr bytes_of($_), 4096 } @images, $plain;

    ok(length $one > 1000, 'the image has a filter');
    ok($one eq $four, 'the number of threads makes no difference');
    ok($one eq $same, 'the image is that of a list without these keys');
}


# ---- keys that no list has ----

{
    my (undef, $json, $err)
        = build("a\nb\n", "n1\nb\nn2\n\nn\e3\nn4\nn2\n");

    counts('unneeded keys', $json, received => 1, left_out => 1,
           without_unmatched => 4);
    is($err, join('', map { "ngx-bloom build: warning: $dir/without$n: $_\n" }
                      'no list has 4 of its 5 keys; correct or remove them',
                      'line 1: no list has "n1"', 'line 3: no list has "n2"',
                      'line 5: no list has "n\x1b3"'),
       'a warning has three examples of keys that no list has');

    ($json, $err) = (build("a\n", "b\n", '-q'))[1, 2];
    is($err, '', '-q prints no warning');

    my ($exit, $out) = $t->run_tool('build', '-o', "$dir/summary", '--without',
                                    file('summary-keys', "a\n"),
                                    { stdin => "a\nb\na\n" });
    like($out, qr/^\Q$dir\E\/summary-keys: 2 keys were left out$/m,
         'the summary says how many keys were left out');
}


# ---- add ----

{
    my $image = "$dir/added";

    $t->run_tool('build', '-o', $image, '--form', 'url', '-p', '1e-7', '-n',
                 '1k', { stdin => "a.example\n" });

    my ($exit, $out, $err)
        = $t->run_tool('add', '--json', '--from', 'hosts', '--without',
                       file('add-keys', "b.example\na.example\n"), $image,
                       { stdin => "0.0.0.0 a.example b.example c.example\n" });
    is($exit, 0, 'add --without exits with 0') or diag($err);
    counts('add', json($out), received => 1, added => 1, left_out => 2);
    answers('add', $image, 'a.example' => 'present', 'b.example' => 'absent',
            'c.example' => 'present');
}


# ---- errors; the old image stays ----

{
    my $image = "$dir/old";
    my $list = file('old-list', "a.example\n");

    $t->run_tool('build', '-o', $image, '--form', 'url', $list);

    my $before = bytes_of($image);

    my $refuse = sub {
        my ($without, $complaint, @options) = @_;

        my ($exit, $out, $err)
            = $t->run_tool('build', '-o', $image, '--form', 'url', '--without',
                           $without, @options, $list);

        is($exit, 2, "--without $without @options is refused");
        like($err, $complaint, 'the message says why');
        ok(bytes_of($image) eq $before, 'the old image stays');
    };

    my $bad = file('bad', "a.example\n# ok\nhttp://\e/x\n");

    $refuse->($bad, qr/\Q$bad\E:[ ]line[ ]3:[ ]"http:\/\/\\x1b\/x"[ ]
                       .*;[ ]correct[ ]the[ ]file[ ]of[ ]--without$/x);
    my $both = file('both', "a.example\n");
    $refuse->($both,
              qr/--exceptions "\Q$both\E": is also the file of --without/,
              '--from', 'lines', '--exceptions', $both);
}

done_testing;
