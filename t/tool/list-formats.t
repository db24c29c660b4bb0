#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from" finds the hosts and URLs in lists as
# blockers publish them, and skips each other entry with its reason.

use strict;
use warnings;

use BloomTest;
use BloomTest::Lists qw($Zone_head cases finds);
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(build_text content_of json tool tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub build { return build_text(@_) }


# ---- exceptions ----

{
    my $text = "||a.example^\n@\@||Good.example^\n@\@||b.example/x^\$all\n"
               . "@\@||c.example^\$script\n@\@d.example\n";
    my $file = "$dir/exceptions";
    my ($image, $json) = build($text, '--from', 'adblock', '--form', 'url',
                               '--exceptions', $file);

    is(content_of($file),
       "good.example/\nb.example/x\nb.example/x/\nd.example/\n",
       'exceptions are written in canonical form');
    is_deeply([@$json{qw(received exceptions skipped lines_read)}], [1, 4, 1, 5],
              'exceptions are counted');

    my ($again) = build(content_of($file), '--form', 'url');
    finds($again, 'an image is built from exceptions',
          ['http://www.good.example/x', 'b.example/x?y'], ['a.example']);

    build("||a.example^\n", '--from', 'adblock', '--exceptions', $file);
    is(content_of($file), '', 'without exceptions, the file becomes empty');

    $t->write_file('list', "||a.example^\n");
    for (['the image', "$dir/image"], ['a list to read', "$dir/list"]) {
        my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/image",
            '--from', 'adblock', '--exceptions', $_->[1], "$dir/list");
        is($exit, 2, "--exceptions cannot be $_->[0]");
        like($err, qr/--exceptions ".*": is also $_->[0]; name another file/,
             "--exceptions says that it is $_->[0]");
    }

    is(content_of("$dir/list"), "||a.example^\n", 'the list is unchanged');

    # the file is not replaced where no line can be an exception: it may be
    # the file of --except

    $t->write_file('good', "good.example\n");
    for (['build', '-o', "$dir/image"], ['add', $again]) {
        my ($exit, undef, $err) = $t->run_tool(@$_, '--exceptions',
                                               "$dir/good", "$dir/list");
        is($exit, 2, "$_->[0] --exceptions needs --from");
        like($err, qr/--exceptions needs --from LIST: without it, every line/,
             "$_->[0] says that --exceptions needs --from");
    }

    is(content_of("$dir/good"), "good.example\n", 'the file is not replaced');

    # the exceptions cannot be written: the image stays, too

    $t->write_file('image', 'old');
    mkdir "$dir/closed" or die "mkdir: $!";

    for (["$dir/missing/file", 'a missing directory'],
         ["$dir/closed", 'a directory'], ['/dev/full', 'a device'])
    {
        my ($exit) = $t->run_tool('build', '-q', '-o', "$dir/image", '--from',
            'adblock', '--exceptions', $_->[0], "$dir/list");
        is($exit, 2, "--exceptions cannot be $_->[1]");
        is(content_of("$dir/image"), 'old', "$_->[1]: the image stays");
    }

    # the image cannot be written: the exceptions stay, too

    $t->write_file('many', join '', map { "||x$_.example^\n" } 1 .. 50_000);
    $t->write_file('kept', 'old');

    my (undef, undef, $full) = run_command(
        ['bash', '-c', q{trap '' XFSZ; ulimit -f 40; exec "$@"}, 'bash',
         tool_path(), 'build', '-q', '-o', "$dir/image", '--from', 'adblock',
         '--exceptions', "$dir/kept", "$dir/many"]);
    like($full, qr/cannot be written: File too large; the old file is/,
         'a full disk is reported');
    is(content_of("$dir/$_"), 'old', "a full disk: the old $_ stays")
        for 'image', 'kept';
    is_deeply([glob "$dir/*.tmp-*"], [], 'no temporary file is left');

    my $many = join '', map { "@\@||x$_.example^\n" . '! ' . 'x' x 50 . "\n" }
                            1 .. 50_000;
    build($many, '--from', 'adblock', '--exceptions', $file, '-j', 4,
          '--form', 'host', '--allow-empty');
    is(content_of($file), join('', map { "x$_.example\n" } 1 .. 50_000),
       'exceptions are in the order of the list');
}


# ---- lines ----

cases('lines', 'url', "# x\n! y\n",
    ['*.one.example', ['http://one.example/x', 'http://a.one.example/']],
    ['http://*.one.example/p', ['http://one.example/p']],
    ['.one.example', ['http://a.one.example/x']],
    ['one.example:8080', ['http://one.example/']],
    ['https://one.example:8443/p?x # y', ['http://one.example/p?x']],
    ['192.0.2.0/24', 'is a range of addresses'],
    ['2001:db8::/32', 'is a range of addresses'],
    ['http://192.0.2.0/24', ['http://192.0.2.0/24']],
);

cases('lines', 'host', '',
    map({ [$_, ['one.example', 'a.one.example']] }
        'one.example', '*.one.example', 'http://one.example', 'one.example/',
        'https://one.example/', 'one.example:80', 'http://one.example:80/',
        'http://*.one.example/'),
    ['http://one.example/p', 'has a path; use --form url'],
    ['one.example/p', 'has a path; use --form url'],
    ['http://one.example?p', 'has a path; use --form url'],
    ['192.0.2.0/24', 'is a range of addresses'],
);

cases('lines', 'raw', '', map { [$_, [$_]] } '*.one.example', 'http://one.example/p',
                                       '192.0.2.0/24');


# ---- hosts of every format answer about URLs ----

for (['lines', 'one.example'], ['hosts', '0 one.example'],
     ['adblock', '||one.example^'], ['dnsmasq', 'local=/one.example/'],
     ['rpz', "one.example CNAME ."], ['csv:1', '"one.example",x'],
     ['json', '{"key":"one.example"}'])
{
    my ($image) = build("$_->[1]\n", '--from', $_->[0], '--form', 'url');
    finds($image, "$_->[0] with hosts: the form url finds URLs of subdomains",
          ['https://a.one.example/x/y?z', 'one.example'], ['two.example']);
}


# ---- a line end within a URL ----

{
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none",
        '--form', 'url', '--from', 'csv:1',
        { stdin => "x.example,\"a\nb\"\n\"http://a.example/x\ny\",z\n" });
    is($exit, 2, 'csv: a URL cannot have a line end within it');
    like($err, qr/line 3: "http:.*" has a tab or a line end within it/,
         'csv: the line with such a URL is named');
}


# ---- auto ----

for (
    ['adblock', "! Title: x\n||a.example^\n||b.example/x^\$all\n##.ad\n"],
    ['adblock', "! x\n1.2.3.4\na.example\n"],
    ['adblock', "[Adblock Plus]\na.example\n/ads/x\n"],
    ['hosts', "# x\n127.0.0.1 localhost\n0.0.0.0 a.example\n0 b.example # y\n"],
    ['dnsmasq', "# x\naddress=/a.example/#\nserver=/b.example/\n"],
    ['rpz', "${Zone_head}a.example CNAME .\n"],
    ['rpz', "a.example CNAME .\n*.a.example CNAME .\n"],
    ['csv:url', "# x\n# id,url\n1,http://a.example/x\n"],
    ['csv:url', "id,\"URL\",host\n1,\"http://a.example/x\",\"z\ny\"\n"],
    ['csv:host', "id,host\n1,a.example\n"],
    ['lines', "# x\nhttp://a.example/x\nb.example\n1.2.3.4\n*.c.example # y\n"],
    ['lines', "http://a.example/x,y\n"],
    ['json', "{\"key\":\"a.example\"}\n"],
) {
    my ($format, $text) = @$_;
    my ($image, $json, $err) = build($text, '--from', 'auto', '--form', 'url',
                                     '-q');
    is_deeply($json->{files}, [{ file => 'standard input', from => $format }],
              "auto recognizes $format");
    is($err, "ngx-bloom build: standard input: is read with --from $format\n",
       "auto says that it reads $format");
    cmp_ok($json->{received}, '>', 0, "auto reads $format");
}

my $columns = 'url, host, hostname, domain, fqdn or ip, or ioc_value, value or'
              . ' indicator beside a column of types';
my $formats = 'lines, adblock, hosts, dnsmasq, unbound, rpz, json, and csv with a column'
              . " $columns";
my $none = "has none of the formats that --from auto knows: $formats; without"
           . ' --from, each line is a key';
my $few_do = 'does not fit --from';
my $knows = "--from auto knows $formats";

for (
    ['', 'is empty'], [" \n\r\n", 'is empty'],
    ["a.example\0\n", qr/line 1: "a\.example\\x00" $none/],
    ["\x01\x02" x 20, qr/line 1: "(?:\\x01\\x02)+\S*" $none/], ["# x\n! y\n", 'has only comments'],
    ["Service temporarily unavailable\n",
     qr/line 1: "Service temporarily unavailable" $none/],
    ["\n# ids\nid,name\n1,x\n",
     qr/line 3 is taken for the header, and has "id", "name" \(separated by ","\), and none of the columns $columns/],
    ["4711\n4712\n", qr/line 1: "4711" $none/],
    [qq("4711"\n"4712"\n), qr/line 1: ""4711"" has none of .*; --from csv:1 reads the first column of quoted lines/],
    ["# mine\r\nhttp://a.example/x\r\n\r\nhttp://b.example/y\n \xff||x.test^ \n"
     . "http://c.example/z\nwhat?\nd.example\n",
     qr/line 5: "\\xff\|\|x.test\^" $few_do lines, .* \(4 of 6\); $knows/],
    ["http://a.example/x\n||x.test^\n||y.test^\nhttp://c.example/\nb.example/x",
     qr/line 2: "\|\|x.test\^" $few_do lines, .* \(3 of 5\); $knows/],
    ["0.0.0.0 a.example\n0.0.0.0 b.example\nc example\n",
     qr/line 3: "c example" $few_do hosts, .* \(2 of 3\); $knows/],
    [join('', "id\tname\n", map { "$_\tx$_\n" } 1 .. 20),
     qr/line 1 is taken for the header, and has "id", "name" \(separated by tabs\)/],
) {
    my ($text, $why) = @$_;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--from',
        'auto', '--allow-empty', { stdin => $text });
    is($exit, 2, "auto refuses what $why");
    like($err, qr/standard input: $why[^;\n]*; check the file, or name its format with --from\n/,
         "auto says that it $why");
}

for my $form ('host', 'url') {
    my $text = "local=/a.example/\nserver=/b.example/\ncache-size=9\n";
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--form',
                                           $form, '--from', 'auto',
                                           { stdin => $text });
    is($exit, 2, "$form: auto refuses lines of dnsmasq with too many others");
    like($err, qr/line 3: "cache-size=9" $few_do dnsmasq, .* \(2 of 3\)/,
         "$form: auto names the format that the list is closest to");
}

$t->write_file('a', "0.0.0.0 a.example\n");
$t->write_file('b', "||b.example^\n");
{
    my ($image, $json) = build('', '--from', 'auto', '-j', 4, '--form', 'host',
                               "$dir/a", "$dir/b");
    is_deeply([map { $_->{from} } @{ $json->{files} }], ['hosts', 'adblock'],
              'auto decides for each file');
    finds($image, 'files of several formats make one image',
          ['a.example', 'b.example'], ['c.example']);
}


{
    my (undef, $json) = build("# address, host, remark\n0 a.example\n" x 3,
                              '--from', 'auto');
    is($json->{files}[0]{from}, 'hosts',
       'auto does not take a comment with commas for the header of a csv');
}


# ---- add reads the same lists ----

{
    my ($image) = build("a.example\n", '--form', 'url');
    my @add = ('add', '--json', '--exceptions', "$dir/exceptions", '--from',
               'auto', '--max-skipped', '30%', $image);
    my ($exit, $out, $err) = $t->run_tool(@add,
        { stdin => "||b.example^\n@\@||c.example^\n||d.example/x^\n##x\n" });

    is($exit, 0, 'add reads an adblock list') or diag($err);

    tool(2, qr/ 1 of 1 are skipped: check --from, or use a larger --max-skipped/,
         'add', '--from', 'adblock', '--max-skipped', 0, $image,
         { stdin => "||x.example^\$image\n" });
    is_deeply([@{ json($out) }{qw(added skipped exceptions lines_read)}],
              [3, 1, 1, 4], 'add counts the lines of a list');
    finds($image, 'add adds the keys of a list',
          ['http://www.b.example/x', 'd.example/x'], ['c.example']);
    is(content_of("$dir/exceptions"), "c.example/\n", 'add writes exceptions');

    my $before = content_of($image);
    ($exit, undef, $err) = $t->run_tool(@add, { stdin => "||e.example^\n##x\n" });
    is($exit, 2, 'add keeps to --max-skipped');
    is(content_of($image), $before, 'a list that add refuses changes nothing');
    is(content_of("$dir/exceptions"), "c.example/\n",
       'a list that add refuses leaves the exceptions unchanged');
}


# ---- the limit for skipped lines ----

{
    my $text = "||a.example^\n" x 90 . "! x\n\n" . "||b.example^\$image\n" x 10;
    my @options = ('--from', 'adblock', '--form', 'host');

    build($text, @options, '--max-skipped', $_) for '10', '10%', '1k';

    for (['9', '9'], ['9.9%', '9.9%'], ['0', '0'], ['0%', '0%']) {
        $t->write_file('old', 'old');
        my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/old",
            @options, '--max-skipped', $_->[0], { stdin => $text });
        is($exit, 2, "--max-skipped $_->[0] is exceeded");
        like($err, qr/\A(?:[^\n]*line 9[345]: "\|\|b.example\^\$image" has the option \$image\n){3}[^\n]*: 7 more lines: has the option \$image\n[^\n]*: more lines are skipped than --max-skipped allows \($_->[1]\); 10 of 100 are skipped: check --from and --form, or use a larger --max-skipped\n\z/,
             "--max-skipped $_->[0] names the reasons");
        is(content_of("$dir/old"), 'old',
           'the old file stays if too many lines are skipped');
    }
}


# The limit holds for all files together.

{
    my @files = map { $t->write_file("part$_", "||a$_.example^\n" x 45
                                     . "||b.example^\$image\n" x 5) } 1, 2;

    for (['10', 0], ['10%', 0], ['9', 2], ['9.9%', 2]) {
        my ($exit) = $t->run_tool('build', '-q', '-o', "$dir/parts", '--from',
                                  'adblock', '--form', 'host', '--max-skipped',
                                  $_->[0], @files);
        is($exit, $_->[1], "--max-skipped $_->[0] holds over two files");
    }
}


# A line may have several entries, and a share is not rounded down.

{
    for (['dnsmasq', '--max-skipped', "address=/com/net/org/x.example/#\n",
          '100%', 3, 0],
         ['hosts', '--max-errors', "0.0.0.0 a\@b.c d\@e.f x.example\n",
          '100%', 0, 2],
         ['adblock', '--max-skipped',
          "||x^\$image\n" x 29 . "||x.example^\n" x 71, '29%', 29, 0])
    {
        my ($format, $option, $text, $limit, @left_out) = @$_;
        my ($image, $json) = build($text, '--from', $format, '--form', 'host',
                                   $option, $limit);

        is_deeply([@$json{qw(skipped errors)}], \@left_out,
                  "$format: $option $limit allows just that");
        finds($image, "$format: the rest is kept", ['x.example'], []);
    }

    build("address=/com/net/org/x.example/#\n", '--from', 'dnsmasq');

    my ($exit) = $t->run_tool('build', '-o', "$dir/none", '--from', 'dnsmasq',
        '--max-skipped', '99%', { stdin => "address=/com/net/x.example/#\n" });
    is($exit, 2, 'skipped entries count against a smaller share');
}


# ---- the summary ----

{
    my $text = "||a.example^\n||a.example^\n\n! x\n||b.example^\$image\n"
               . "##\e[1mx\n" . "/x.js\n" x 5;
    my ($exit, $out) = $t->run_tool('build', '-o', "$dir/summary", '--from',
        'adblock', '--form', 'host', { stdin => $text });
    is(($out =~ /\A[^\n]*\n(.*)\z/s)[0], <<"TEXT", 'a build shows its summary');
$dir/summary: 1 duplicate, 1 empty line, 1 comment, 7 other lines were skipped
   skipped  reason                      example
         5  does not begin with a host  standard input:7: /x.js
         1  has the option \$image       standard input:5: ||b.example^\$image
         1  is about elements of pages  standard input:6: ##\\x1b[1mx
TEXT

    my (undef, $json) = build($text, '--from', 'adblock', '--form', 'host');
    is_deeply($json->{skipped_by_reason}[1],
              { reason => 'has the option $image', count => 1,
                examples => [{ file => 'standard input', line => 5,
                               text => '||b.example^$image' }] },
              'the summary is in the JSON');
    is($json->{duplicates}, 1, 'duplicates are in the JSON');

    (undef, $json) = build(join("\n", map({ "a$_.example" } 1 .. 5), '/', '/', ''),
                           '--form', 'url', '--max-errors', '2');
    is_deeply($json->{errors_by_reason},
              [{ reason => 'has no host', count => 2,
                 examples => [map { { file => 'standard input', line => $_,
                                      text => '/' } } 6, 7] }],
              'reasons for invalid lines are in the JSON');
}


# ---- lists in lower case ----

for (
    [[map { "a.example/p$_%C3%84" } 1 .. 199], 0, 'few pages'],
    [[map { "a.example/p$_%C3%84" } 1 .. 200], 1, 'pages in lower case'],
    [['a.example/P', map { "a.example/p$_" } 1 .. 300], 0, 'one capital letter'],
    [[map { "A$_.example" } 1 .. 300], 0, 'hosts'],
) {
    my ($urls, $warns, $what) = @$_;
    my ($image, undef, $err) = build(join("\n", @$urls), '--form', 'url');
    is(scalar($err =~ /none of the 200 pages has a capital letter/), $warns || '',
       "a warning of lists in lower case: $what");
}


# ---- the result does not depend on threads and blocks ----

for (
    ['rpz', 'host', $Zone_head . join('', map {
        ($_ % 1000 ? '' : "\$ORIGIN z$_.rpz.test.\n")
        . "h$_ TXT ( \"a\" ; )\n  \"b\"\n )\n  CNAME .\n"
    } 1 .. 60_000), 60_000 - 999],
    ['adblock', 'host', join('', map {
        "||h$_.example^\n||i$_.example^\$image\n" . ($_ % 3 ? '' : "##x$_\n")
    } 1 .. 60_000), 60_000],
) {
    my ($format, $form, $text, $count) = @$_;
    my @results;

    for my $threads (1, 4) {
        my ($image, $json) = build($text, '--from', $format, '--form', $form,
                                   '-j', $threads, '--seed', 1, '-p', 1e-6);
        delete @$json{qw(duration_ms created build_id path file)};
        push @results, [$image, $json];
        is($json->{received}, $count, "$format: all keys of many blocks are read");
    }

    is_deeply($results[0][1], $results[1][1],
              "$format: the result does not depend on the threads");

    my @some = map { $format eq 'rpz' ? "h$_.z" . int($_ / 1000) * 1000
                                      : "h$_.example" }
                   grep { $_ > 1000 } map { 97 * $_ } 11 .. 600;
    finds($results[1][0], "$format: keys of all blocks are found", \@some, []);
}

done_testing;
