#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from" finds the hosts and URLs in lists as
# blockers publish them, and skips each other entry with its reason.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(build_text content_of json tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub build { return build_text(@_) }

# Checks which of these keys a lookup finds.

sub finds {
    my ($image, $what, $present, $absent) = @_;

    my (undef, $out) = $t->run_tool('test', $image, '--', @$present, @$absent);

    is($out, join('', map({ "present $_\n" } @$present),
                  map { "absent $_\n" } @$absent), $what);
}

# Each case is an entry of a list, and either what is found and not found, or
# the reason to skip it.

sub cases {
    my ($format, $form, $before, @cases) = @_;

    for (@cases) {
        my ($entry, $expected, @absent) = @$_;
        my ($image, $json)
            = build("$before$entry\n", '--from', $format, '--form', $form,
                    '--allow-empty', '-p', '1e-9', '-n', 1000);
        my $what = "$format, $form: $entry" =~ s/\n/\\n/gr;

        if (ref $expected) {
            finds($image, "$what is found", $expected, \@absent);
            is($json->{skipped} + $json->{errors}, 0, "$what is kept");
            next;
        }

        is_deeply([$json->{received}, $json->{lines_read},
                   map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [0, 1, $expected], "$what is skipped");
    }
}


# ---- hosts ----

cases('hosts', 'host', "# comment\n\n",
    map({ ["$_ one.example", ['one.example', 'a.one.example']] }
        '0.0.0.0', '127.0.0.1', '127.0.0.53', '127.255.255.254', '::', '::1',
        '::0', '0', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', "127.0.0.1\t",
        '0.0.0.0 localhost'),
    ['127.0.0.1 one.example two.example # three.example',
     ['one.example', 'two.example'], 'three.example'],
    map({ ["$_ one.example", 'gives a host its address, and blocks nothing'] }
        '192.168.1.5', '216.239.38.120', '126.255.255.255', '128.0.0.1',
        '0.0.0.1', '255.255.255.255', 'fe80::1%lo0', 'ff00::0', 'ff02::1',
        '::2', '2001:db8::7f00:1', '192.168.1.5 localhost'),
    map({ [$_, 'has only names for the machine itself'] }
        '127.0.0.1 localhost', '127.0.0.1 localhost.localdomain local',
        '255.255.255.255 broadcasthost', '::1 localhost',
        '::1 ip6-localhost ip6-loopback', 'fe80::1%lo0 localhost',
        'fe00::0 ip6-localnet', 'ff00::0 ip6-mcastprefix',
        'ff02::1 ip6-allnodes', 'ff02::2 ip6-allrouters',
        'ff02::3 ip6-allhosts', '0.0.0.0 0.0.0.0',
        '127.0.0.1 localhost localhost4 localhost4.localdomain4',
        '::1 localhost6 localhost6.localdomain6'),
);


# ---- what no key of the forms host and url is, in every format ----

my @ranges = (
    '192.0.2.0/24', '192.0.2.7/32', '0.0.0.0/0', '2001:db8::/32', '::/0',
    '2001:db8::1/128', '::ffff:192.0.2.0/120', '192.0.2.0/255.255.255.0',
    '192.0.2.1-192.0.2.9', '192.0.2.1 - 192.0.2.9', '2001:db8::1-2001:db8::9',
    '192.0.2.0/24 ; SBL1', '192.0.2.0/24;SBL1', '192.0.2.0/24 # why',
    '2001:db8::/32 ; SBL2', '192.0.2.1-192.0.2.9 # why',
    '192.0.2.1 - 192.0.2.9 ; why',
);

my @elements = (
    'shop.example##[aria-label="Scroll to the top"]', 'a.example,b.example##x',
    'news.example#?#.x:has-text(This site uses cookies)', 'one.example#@#.ad',
    'one.example#$#body { x: y }', 'one.example#%#//scriptlet("x")',
    'one.example#@?#.x', 'one.example#$?#.x', 'one.example#@$?#.x',
    'one.example##^script', 'one.example##a[href="/x"]', 'one.*##.ad',
    '~one.example,two.example##.ad', "b\xc3\xbccher.example##.ad",
    'one.example###ad', 'one.example$$script[a="b"]', 'one.example$@$script',
);

for my $form ('host', 'url') {
    for my $format (undef, 'lines') {
        my @from = defined $format ? ('--from', $format) : ();

        for (map({ [$_, 'is a range of addresses'] } @ranges),
             map({ [$_, 'is about elements of pages'] } @elements))
        {
            my ($text, $reason) = @$_;
            my (undef, $json) = build("$text\nbad.example\n", @from, '--form',
                                      $form);
            is_deeply([@$json{qw(received skipped errors)},
                       map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                      [1, 1, 0, $reason],
                      ($format // 'keys') . ", $form: $text is skipped");
        }
    }
}

for (@ranges, @elements) {
    my ($image, $json) = build("$_\n", '--form', 'raw', '-p', '1e-9', '-n', 9);
    is($json->{received}, 1, "raw: $_ is a key, as any text");
}

# URLs that look like them

cases('lines', 'url', '',
    map({ [$_, [$_]] }
        'http://192.0.2.0/24', 'https://192.0.2.1/255.255.255.0',
        '192.0.2.0/99', '192.0.2.0/24x', '192.0.2.0/24/', '192.0.2.0/',
        '192.0.2.0:8080/24', '[2001:db8::]/32', '192.0.2.0.a/24',
        '192.0.2.0.example/24', 'ab.example:80/32',
        'https://x.example/a#b', 'https://x.example/#/route', 'x.example/##top',
        'https://x.example/##top', 'https://x.example##top',
        'https://x.example/a$$b', 'x.example/a$$b', 'x.example#top'),
);

cases('lines', 'host', '',
    map({ [$_, [$_]] } '192.0.2.1', '192-0-2-1.example', 'dead.beef.example'),
);

for (['csv:1', '"192.0.2.0/24",x', 'is a range of addresses'],
     ['csv:1', 'one.example##.ad,x', 'is about elements of pages'],
     ['json', '{"key":"192.0.2.0/24"}', 'is a range of addresses'])
{
    my ($format, $text, $reason) = @$_;
    for my $form ('host', 'url') {
        my (undef, $json) = build("$text\n", '--from', $format, '--form', $form,
                                  '--allow-empty');
        is_deeply([map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [$reason], "$format, $form: $text is skipped");
    }
}


# ---- lines ----

cases('lines', 'host', '',
    map({ [$_, ['one.example', 'a.one.example']] }
        '*.one.example', '.one.example', 'https://*.one.example/'),
    map({ [$_, 'is a regular expression'] }
        '(\.|^)bad\.example$', '^ad([sxv]?[0-9]*|system)[_.-]',
        '^(.+[_.-])?telemetry[_.-]', 'ads[0-9]+\.example', '.*xn--.*$'),
    map({ [$_, 'is a rule of Adblock lists; use --from adblock'] }
        '||bad.example^', '@@||good.example^'),
);

{
    my (undef, $json) = build("; a list of ranges\n192.0.2.1\n", '--from',
                              'lines', '--form', 'host');
    is_deeply([@$json{qw(received comments)}], [1, 1],
              'lines: ";" begins a comment in a list of hosts');

    (undef, $json) = build("; key\n", '--from', 'lines', '--form', 'raw');
    is($json->{received}, 1, 'lines: ";" may begin any other key');
}


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


# ---- dnsmasq ----

cases('dnsmasq', 'url', "# comment\n\n",
    map({ [$_, ['http://one.example/', 'http://a.one.example/x']] }
        map({ "address=/one.example/$_" }
            '', '#', '0.0.0.0', '127.0.0.1', '127.0.0.53'),
        'local=/one.example/', 'server=/one.example/', '--local=/one.example/',
        ' address = /one.example/ # comment', 'address=/.one.example/',
        'address=/*.one.example/'),
    ['address=/one.example/two.example/0.0.0.0', ['one.example', 'two.example']],
    ['address=/one.example/192.0.2.1', 'has an address of its own'],
    ['server=/one.example/192.0.2.1', 'is forwarded to a server'],
    ['local=/one.example/192.0.2.1', 'is forwarded to a server'],
    ['server=/one.example/#', 'is an exception, which --exceptions FILE collects'],
    ['address=/#/0.0.0.0', 'applies to all names'],
    ['address=//0.0.0.0', 'applies to names without a dot'],
    ['address=/zip/0.0.0.0', 'is a whole top-level domain, which no key can stand for'],
    ['address=/a*.example/0.0.0.0', 'has a wildcard'],
    ['server=192.0.2.1', 'names no domain'],
    map({ [$_, 'is another option of dnsmasq'] } 'cache-size=1000',
        'bogus-priv', 'host-record=nas.example,192.0.2.1'),
    ['conf-file=/etc/other.conf', 'includes another file'],
    map({ ["address=/one.example/$_", 'blocks only IPv6'] } '::', '::1'),
);

{
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--from',
        'dnsmasq', { stdin => "address=/a.b/\n0.0.0.0 c.d\n" });
    like($err, qr/line 2: "0.0.0.0 c.d" is not an option of dnsmasq/,
         'dnsmasq: a line without = is invalid');

    my (undef, $json) = build("server=/a.b/c.d/#\n", '--from', 'dnsmasq',
        '--exceptions', "$dir/exceptions", '--allow-empty');
    is(content_of("$dir/exceptions"), "a.b\nc.d\n",
       'dnsmasq: exceptions are written');
}


# A domain that has an address of its own is not blocked, and neither is the
# domain of a network, in either order of the lines.

for my $own ('address=/%s/192.0.2.1', 'host-record=%s,192.0.2.1',
             'host-record=%s,x.test,192.0.2.1,2001:db8::1', 'cname=%s,x.test')
{
    for my $name ('one.example', 'NAS.one.example', 'a.b.one.example') {
        for my $block ('local=/one.example/', 'server=/one.example/',
                       'address=/one.example/#', 'address=/one.example/0.0.0.0')
        {
            my $kept = $name ne 'one.example' && $block =~ /^address/ ? 2 : 1;
            for my $lines ([$block, sprintf $own, $name],
                           [sprintf($own, $name), $block])
            {
                my ($image, $json) = build(join("\n", @$lines, 'local=/b.test/'),
                                           '--from', 'dnsmasq', '--form', 'host');
                is($json->{received}, $kept,
                   "dnsmasq: @$lines: " . ($kept == 2 ? 'blocked' : 'not blocked'));
            }
        }
    }
}

for my $other ('address=/x.one.example/0.0.0.0', 'cname=a.test,x.one.example',
               'address=/one.example.test/192.0.2.1',
               'host-record=other.example,192.0.2.1')
{
    my ($image) = build("local=/one.example/\n$other\n", '--from', 'dnsmasq',
                        '--form', 'host');
    finds($image, "dnsmasq: $other does not unblock one.example",
          ['one.example'], []);
}


# ---- unbound ----

cases('unbound', 'host', "# comment\nserver:\n\n",
    map({ [$_, ['one.example', 'a.one.example']] }
        map({ qq(local-zone: "one.example" $_) }
            qw(always_nxdomain always_refuse always_nodata always_deny
               always_null static refuse deny redirect inform_deny
               inform_redirect)),
        'local-zone: one.example. static', "local-zone:\t'One.Example'\t'static'",
        'local-zone: "one.example" static # why', 'server: local-zone: "one.example" static',
        map({ qq(local-data: "$_") }
            'one.example A 0.0.0.0', 'one.example. IN A 127.0.0.1',
            'one.example 60 IN AAAA ::', 'one.example 60 A 0.0.0.0')),
    ["local-data: 'one.example A 0.0.0.0' # why", ['one.example']],
    ['local-zone: "one.example" static server:', ['one.example']],
    ['local-zone: "one.example" static local-zone: "two.example" deny',
     ['one.example', 'two.example']],
    map({ [qq(local-zone: "one.example" $_),
           'is an exception, which --exceptions FILE collects'] }
        qw(always_transparent transparent typetransparent inform)),
    map({ [qq(local-zone: "one.example" $_),
           'blocks only one kind of addresses'] }
        qw(block_a block_aaaa block_a_wdata block_aaaa_wdata)),
    ['local-zone: "one.example" nodefault',
     'only removes a zone that unbound has by default'],
    ['local-zone: "one.example" noview', 'is about some clients only'],
    ['local-zone: "one.example" truncate', 'only asks for TCP'],
    ['local-zone: "." refuse', 'applies to all names'],
    ['local-zone: "zip." refuse',
     'is a whole top-level domain, which no key can stand for'],
    ['local-data: "one.example A 192.0.2.1"', 'has an address of its own'],
    ['local-data: "one.example CNAME two.example."',
     'is answered with another name'],
    [q(local-data: 'one.example TXT "# x"'), 'has data of its own'],
    ['include: "/etc/unbound/more.conf"', 'includes another file'],
    ['local-data-ptr: "192.0.2.1 one.example"', 'is another option of unbound'],
    ['cache-max-ttl: 86400', 'is another option of unbound'],
);

cases('unbound', 'host', "view:\n",
    ['local-zone: "one.example" refuse', 'is about some clients only'],
    ['local-data: "one.example A 0.0.0.0"', 'is about some clients only'],
    ["server:\nlocal-zone: one.example refuse", ['one.example']],
);

for (['0.0.0.0 one.example', 'is not an option of unbound such as'],
     ['local-zone: "one.example"', 'has no type of local-zone'],
     ['local-zone: "one.example" block', 'has a type of local-zone that unbound'],
     ['local-data: "one.example"', 'has no record such as'])
{
    my ($text, $reason) = @$_;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--from',
        'unbound', '--form', 'host', { stdin => "server:\n$text\n" });
    is($exit, 2, "unbound: $text is invalid");
    like($err, qr/line 2: .* \Q$reason\E/, "unbound: the message says so: $text");
}

for my $own ('%s A 192.0.2.1', '%s. IN AAAA 2001:db8::1', '%s CNAME x.test.') {
    for my $name ('one.example', 'NAS.one.example') {
        my $data = sprintf qq(local-data: "$own"), $name;
        for my $type (qw(static redirect refuse deny)) {
            my $zone = qq(local-zone: "one.example." $type);
            my $kept = $name ne 'one.example' && $type ne 'static' ? 2 : 1;
            for my $lines ([$zone, $data], [$data, $zone]) {
                my (undef, $json) = build(
                    join("\n", @$lines, 'local-zone: "b.test" deny'), '--from',
                    'unbound', '--form', 'host');
                is($json->{received}, $kept,
                   "unbound: @$lines: " . ($kept == 2 ? 'blocked' : 'not blocked'));
            }
        }

        my ($image) = build(qq(local-zone: "one.example" always_null\n$data\n),
                            '--from', 'unbound', '--form', 'host');
        finds($image, "unbound: always_null blocks whatever is in the zone: $data",
              ['one.example'], []);
    }
}


for my $data ('one.example A 0.0.0.0', 'x.one.example. AAAA ::') {
    for my $type (qw(transparent typetransparent inform)) {
        my (undef, $json) = build(
            qq(local-zone: one.example. $type\nlocal-data: "$data"\n), '--from',
            'unbound', '--form', 'host', '--exceptions', "$dir/exceptions");
        is_deeply([$json->{received},
                   map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [1, 'is answered as usual, but has blocked names in it'],
                  "unbound: a zone is no exception if it has $data");
    }
}


# ---- rpz ----

my $head = <<'ZONE';
$TTL 1h
$ORIGIN rpz.test.
; a comment (
@ IN SOA localhost. root.localhost. ( 1 ; serial (
  1h 15m ; "
  30d 2h )
  IN NS localhost.
ZONE

sub zone {
    my ($text, @options) = @_;

    return build($text, '--from', 'rpz', '--form', 'host', '--allow-empty',
                 '-p', '1e-9', '-n', 1000, @options);
}

for (
    map({ [$_, ['one.example', 'a.one.example']] }
        'one.example CNAME .', '*.one.example CNAME .', 'one.example CNAME *.',
        'One.Example 300 IN CNAME rpz-drop.', 'one.example IN 1h CNAME .',
        'one.example.rpz.test. CNAME . ; x', 'one.example A 0.0.0.0',
        "one.example A\t127.0.0.1", 'one.example AAAA ::',
        'one.example ( CNAME . )', "one.example (\nCNAME\n. )",
        "\$ORIGIN example.rpz.test.\none CNAME .",
        "\$ORIGIN example\none CNAME ."),
    ["one.example TXT x\n  CNAME .", ['one.example'], 1],
    ['one.example CNAME rpz-passthru.', 'is an exception, which --exceptions FILE collects'],
    ['One.example CNAME one.Example.', 'is an exception, which --exceptions FILE collects'],
    ['one.example CNAME one.example', 'is answered with another name'],
    ['one.example CNAME rpz-tcp-only.', 'only asks for TCP (rpz-tcp-only)'],
    ['one.example CNAME garden.example.', 'is answered with another name'],
    ['one.example A 192.0.2.1', 'has an address of its own'],
    ['one.example TXT "a ( b"', 'has data of its own'],
    ['24.0.2.0.192.rpz-ip CNAME .', 'is about an address in answers (rpz-ip)'],
    ['32.1.2.0.192.rpz-client-ip CNAME .', 'is about a client (rpz-client-ip)'],
    ['ns.example.rpz-nsdname CNAME .', 'is about a name server (rpz-nsdname)'],
    ['32.1.2.0.192.rpz-nsip CNAME .', 'is about a name server (rpz-nsip)'],
    ['one.example. CNAME .', 'is outside its zone'],
    ['onerpz.test. CNAME .', 'is outside its zone'],
    ['* CNAME .', 'applies to all names'],
    ['*.zip CNAME .', 'is a whole top-level domain, which no key can stand for'],
    ['$INCLUDE other', 'includes another file'],
    ['$GENERATE 1-9 x$ CNAME .', 'is a directive that is not supported'],
) {
    my ($entry, $expected, $skipped) = @$_;
    my ($image, $json) = zone("$head$entry\n");
    my $what = "rpz: $entry" =~ s/\n/\\n/gr;

    if (ref $expected) {
        finds($image, "$what is found", $expected, ['localhost', 'rpz.test']);
        is($json->{skipped}, $skipped // 0, "$what is kept");

    } else {
        is_deeply([$json->{received}, $json->{skipped},
                   map { $_->{reason} } @{ $json->{skipped_by_reason} }],
                  [0, 1, $expected], "$what is skipped");
    }
}

for (
    ['no origin', "\@ SOA a. b. 1 1 1 1 1\none.example CNAME .\n"],
    ['the name of a zone by its SOA record',
     "rpz.test. 60 IN SOA a. b. 1 1 1 1 1\none.example.rpz.test. CNAME .\n"],
    ['a root origin', "\$ORIGIN .\nrpz.test SOA a. b. 1 1 1 1 1\n\tNS x.\n"
     . "\$ORIGIN example.rpz.test.\none CNAME .\n\$ORIGIN rpz.test.\n"],
) {
    my ($name, $text) = @$_;
    my ($image, $json) = zone($text);
    finds($image, "rpz: a zone with $name", ['one.example'], ['rpz.test']);
}

{
    my (undef, $json) = zone("\@ SOA a. b. 1 1 1 1 1\none.example. CNAME .\n");
    like($json->{skipped_by_reason}[0]{reason}, qr/^has an absolute name, but/,
         'rpz: an absolute name needs the name of the zone');

    for (["$head  one.example ( CNAME .\nx\n", qr/line 8: parentheses begin here and do not end; correct the file/],
         [" CNAME .\n", qr/line 1: " CNAME ." has no name, and no record/],
         ["${head}one.example\n", qr/line 8: "one.example" is not a record/],
         ["$head \$ORIGIN x.\n", qr/line 8: " \$ORIGIN x." is not a record/],
         ["${head}\@ IN \$ORIGIN x.\n", qr/line 8: "@ IN \$ORIGIN x." is not a record/],
         ["${head}" . 'x' x 300 . " CNAME .\n", qr/line 8: "x+..." has a name that is too long/])
    {
        my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none",
            '--from', 'rpz', '--form', 'host', '--max-errors', 0,
            { stdin => $_->[0] });
        is($exit, 2, 'rpz: an invalid zone is refused');
        like($err, $_->[1], 'rpz: what is wrong with the zone is said');
    }
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
    ['rpz', "${head}a.example CNAME .\n"],
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
my $none = "has none of the formats that --from auto knows: $formats";
my $few_do = 'does not fit --from';
my $knows = "--from auto knows $formats";

for (
    ['', 'is empty'], [" \n\r\n", 'is empty'],
    ["a.example\0\n", 'has binary data'],
    ["\x01\x02" x 20, 'has binary data'], ["# x\n! y\n", 'has only comments'],
    ["Service temporarily unavailable\n",
     qr/line 1: "Service temporarily unavailable" $none/],
    ["\n# ids\nid,name\n1,x\n",
     qr/line 3 is taken for the header, and has "id", "name" \(separated by ","\), and none of the columns $columns/],
    ["4711\n4712\n", qr/line 1: "4711" $none/],
    ["# mine\r\nhttp://a.example/x\r\n\r\nhttp://b.example/y\n \xff||x.test^ \n"
     . "http://c.example/z\nwhat?\nd.example\n",
     qr/line 5: "\\xff\|\|x.test\^" $few_do lines, .* \(4 of 6\); $knows/],
    ["http://a.example/x\n||x.test^\n||y.test^\nhttp://c.example/\nb.example/x",
     qr/line 2: "\|\|x.test\^" $few_do lines, .* \(3 of 5\); $knows/],
    ["0.0.0.0 a.example\n0.0.0.0 b.example\nc example\n",
     qr/line 3: "c example" $few_do hosts, .* \(2 of 3\); $knows/],
) {
    my ($text, $why) = @$_;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--from',
        'auto', '--allow-empty', { stdin => $text });
    is($exit, 2, "auto refuses what $why");
    like($err, qr/standard input: $why[^;\n]*; check the file, or name its format with --from\n/,
         "auto says that it $why");
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
    ['csv:2', 'url', join('', map {
        "\"$_\n\",\"http://h$_.example/ab\n\",\"x\"\"\n" . "\n" x ($_ % 7) . ",\"\"\"\r\n"
    } 1 .. 60_000), 60_000],
    ['rpz', 'host', $head . join('', map {
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
                                      : "h$_.example" . ($form eq 'url' ? '/ab' : '') }
                   grep { $_ > 1000 } map { 97 * $_ } 11 .. 600;
    finds($results[1][0], "$format: keys of all blocks are found", \@some, []);
}

done_testing;
