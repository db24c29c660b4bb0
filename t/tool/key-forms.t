#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that build, test, info, merge and --like use the key form of an image.

use strict;
use warnings;

use BloomTest;
use BloomTest::Tool qw(json json_lines tool tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub build {
    my ($name, $keys, @options) = @_;

    tool(0, undef, 'build', '-q', '-o', "$dir/$name", '-p', '1e-6', @options,
         { stdin => join '', map { "$_\n" } @$keys });

    return "$dir/$name";
}

sub results {
    my ($image, @keys) = @_;

    my (undef, $out) = $t->run_tool('test', '--json', $image, '--', @keys);

    return json_lines($out);
}


# ---- build, info, test ----

my @forms = (
    [raw => ['Ab'], ['Ab'], ['ab', 'AB'], []],
    [lower => ['Ab'], ['aB', 'ab', 'AB'], ['a b'], []],
    [host => ['Bad.Example.', '0x7f.1', '[2001:DB8::1]:80', 'co.uk',
              "b\xc3\xbccher.test", 'com'],
     ['bad.example', 'a.b.BAD.example:8080', 'a+b.bad.example', '!.bad.example',
      'x@bad.example', '%62ad.example', "ab--c\xe3\x80\x82bad.example",
      '127.0.0.1', '2130706433',
      '2001:db8:0::1', 'other.co.uk', 'www.xn--bcher-kva.test', 'com'],
     ['example', 'notbad.example', 'bad.example.org', '127.0.0.2', 'x.com',
      'a b'],
     ['...', 'bad.example/', 'bad.example:x', '1.2.3.256']],
    [url => ['http://Bad.example/', 'other.test/dir/', 'other.test/page?x',
             'ftp://1.2.3.4/a'],
     ['https://www.bad.example:8443/any?thing', 'bad.example',
      'HTTP:\\\\BAD.EXAMPLE', 'http://user@bad.example/', '//bad.example',
      'http://%62ad.example/', '//bad.example:/x',
      '//bad.example://good.example/', "http://ab--c\xef\xbc\x8ebad.example/",
      'http://a%00b.bad.example/', 'other.test/dir/sub/page',
      'other.test/./dir//',
      'other.test/%2564ir/', 'other.test/page?x#y', '0x01020304/a?b'],
     ['http://example/', 'notbad.example', 'other.test/', 'other.test/page',
      'other.test/page?y', '1.2.3.4/b', 'x.1.2.3.4.test/a'],
     ['/bad.example/', 'mailto:x@bad.example', 'http://a:b/']],
);

for (@forms) {
    my ($form, $keys, $present, $absent, $invalid) = @$_;
    my $image = build("$form.bloom", $keys, '--form', $form);

    is(json(tool(0, undef, 'info', '--json', $image))->{form}, $form,
       "info --json names the key form $form");
    like(tool(0, undef, 'info', $image), qr/^key form +$form$/m,
         "info names the key form $form");
    is(unpack('x76 L<', $t->read_file("$form.bloom")),
       { raw => 0, lower => 1, host => 2, url => 3 }->{$form},
       "the image has the number of the key form $form");

    for my $key (@$present) {
        is((results($image, $key))[0]{answer}, 'present',
           "this key is present by the key form $form: $key");
    }

    is((results($image, $_))[0]{answer}, 'absent',
       "this key is absent by the key form $form: $_") for @$absent;

    for my $key (@$invalid) {
        my ($result) = results($image, $key);

        is($result->{answer}, 'invalid',
           "this key is invalid by the key form $form: $key");
        like($result->{reason}, qr/^has /,
             "test --json says why this key is invalid by the key form $form:"
             . " $key");
    }

    is(tool(@$absent + @$invalid ? 1 : 0, undef, 'test', $image, '-f', '-',
            { stdin => join '', map { "$_\n" } @$present, @$absent,
                                               @$invalid }),
       join('', (map { "present $_\n" } @$present),
                (map { "absent $_\n" } @$absent),
                (map { "invalid $_\n" } @$invalid)),
       "test prints an answer for each key of the key form $form");
}

is_deeply([results("$dir/url.bloom", 'http://a.b.other.test/dir/x?y', 'x.test',
                   '/')],
          [{ key => 'http://a.b.other.test/dir/x?y', answer => 'present',
             expression => 'other.test/dir/' },
           { key => 'x.test', answer => 'absent' },
           { key => '/', answer => 'invalid', reason => 'has no host' }],
          'test --json shows which expression of a URL is present');
is_deeply([results("$dir/host.bloom", 'a.Bad.Example')],
          [{ key => 'a.Bad.Example', answer => 'present',
             expression => 'bad.example' }],
          'test --json shows which parent domain is present');
is_deeply([results("$dir/lower.bloom", 'AB')],
          [{ key => 'AB', answer => 'present' }],
          'test --json shows no expression where a key has one form only');

is(tool(1, undef, 'test', '-c', "$dir/url.bloom", 'bad.example', 'x.test', '/'),
   "1 present, 1 absent, 1 invalid\n", 'test -c counts invalid keys');
is(json(tool(1, undef, 'test', '-c', '--json', "$dir/url.bloom", '/'))
   ->{invalid}, 1, 'test -c --json counts invalid keys');

is(json((tool(0, undef, 'build', '--json', '--form', 'url', '-o',
                     "$dir/same", { stdin => "a.b\nHTTP://a.b:80/\na.b/x/..\n" }
                    )))->{items}, 1, 'spellings of one key count once');

tool(2, qr{^ngx-bloom\ build:\ standard\ input:\ line\ 2:\ "/x"\ has\ no\ host\n
           ngx-bloom\ build:\ there\ are\ more\ invalid\ lines\ than
           \ --max-errors\ allows\ \(0\);\ [^\n]+\n\z}x,
     'build', '--form', 'url', '-o', "$dir/none", { stdin => "a.b\n/x\n" });
ok(!-e "$dir/none", 'nothing is built of a list with an invalid key');
tool(2, qr/^ngx-bloom build: standard input: key 2: "\/x" has no host\n/,
     'build', '-0', '--form', 'url', '-o', "$dir/none", { stdin => "a.b\0/x" });


# A key to look up is a host as in a URL; a list has hosts.

tool(2, qr/line 1: "\Q$_\E" has a byte that a host cannot have\n/, 'build', '--form',
     'host', '-o', "$dir/none", { stdin => "$_\n" })
    for '*.bad.example', 'someone@bad.example', '||bad.example^', 'a b';

tool(2, qr/line 2: "\Q$_->[0]\E" $_->[1]\n/, 'build', '--form', 'url', '-o',
     "$dir/none", { stdin => "ok.example\n$_->[0]\n" })
    for ['||evil.example^', 'has a byte that a host cannot have'],
        ['@@||good.example^', 'has a byte that a host cannot have'],
        ['0.0.0.0 evil.example', 'has a byte that a host cannot have'],
        ['<html>502 Bad Gateway</html>', 'has a byte that a host cannot have'],
        ['evil.example # seen', 'has a byte that a host cannot have'],
        ['{"url":"evil.example"}', 'has a port that is not a number'],
        ['1,http://evil.example/', 'has other text before its scheme'];

tool(2, qr/line 1: .*\n.*more invalid lines/, 'add', "$dir/url.bloom",
     { stdin => "||evil.example^\n" });

tool(2, qr/^ngx-bloom build: --form "names": must be raw, lower, host or url;/,
     'build', '--form', 'names', '-o', "$dir/x");


# ---- --like and merge ----

tool(0, undef, 'build', '-q', '-o', "$dir/more.bloom", '--like',
     "$dir/url.bloom", { stdin => "WWW.more.test\n" });
is((results("$dir/more.bloom", 'http://www.MORE.test/x'))[0]{answer},
   'present', 'build --like takes over the key form');

tool(0, undef, 'build', '-q', '-o', "$dir/more.bloom", '--like',
     "$dir/url.bloom", '--form', 'url', { stdin => "WWW.more.test\n" });
tool(2, qr/^ngx-bloom build: --form "host": --like takes the key form of \S+, which is url;/,
     'build', '-o', "$dir/none", '--like', "$dir/url.bloom", '--form', 'host',
     { stdin => "a.b\n" });

tool(0, undef, 'merge', '-q', '-o', "$dir/all.bloom", "$dir/url.bloom",
     "$dir/more.bloom");
is(json(tool(0, undef, 'info', '--json', "$dir/all.bloom"))->{form},
   'url', 'merge keeps the key form');
is((results("$dir/all.bloom", $_))[0]{answer}, 'present',
   "$_ is present in a merged image of URLs")
    for 'x.bad.example/y', 'www.more.test:80';

my @same = ('-n', '10', '--seed', '1');
build("seeded-$_", ['a.b'], '--form', $_, @same) for qw(host url);
tool(2, qr/cannot be merged with .* they differ in key form;/, 'merge', '-o',
     "$dir/none", "$dir/seeded-host", "$dir/seeded-url");

done_testing;
