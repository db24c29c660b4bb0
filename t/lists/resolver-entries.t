#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom build --from" finds the names that hosts files and
# configurations of dnsmasq, unbound and response policy zones block, and skips
# each other entry with its reason.

use strict;
use warnings;

use BloomTest;
use BloomTest::Lists qw($Zone_head cases finds);
use BloomTest::Tool qw(build_text content_of tool_test);

my $t = tool_test();
my $dir = $t->testdir;

sub build { return build_text(@_) }


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
    ['0.0.0.0 192.0.2.1', 'names an address, which nobody resolves'],
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
                my (undef, $json) = build(
                    join("\n", @$lines, 'local=/b.test/'), '--from', 'dnsmasq',
                    '--form', 'host');
                is($json->{received}, $kept,
                   "dnsmasq: @$lines: "
                   . ($kept == 2 ? 'blocked' : 'not blocked'));
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
        'local-zone: one.example. static',
        "local-zone:\t'One.Example'\t'static'",
        'local-zone: "one.example" static # why',
        'server: local-zone: "one.example" static',
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
     ['local-zone: "one.example" block', 'has a type of local-zone that'],
     ['local-data: "one.example"', 'has no record such as'])
{
    my ($text, $reason) = @$_;
    my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none", '--from',
        'unbound', '--form', 'host', { stdin => "server:\n$text\n" });
    is($exit, 2, "unbound: $text is invalid");
    like($err, qr/line 2: .* \Q$reason\E/,
         "unbound: the message says so: $text");
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
                   "unbound: @$lines: "
                   . ($kept == 2 ? 'blocked' : 'not blocked'));
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
    my ($image, $json) = zone("$Zone_head$entry\n");
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

    for (["$Zone_head  one.example ( CNAME .\nx\n", qr/line 8: parentheses begin here and do not end; correct the file/],
         [" CNAME .\n", qr/line 1: " CNAME ." has no name, and no record/],
         ["${Zone_head}one.example\n", qr/line 8: "one.example" is not a record/],
         ["$Zone_head \$ORIGIN x.\n", qr/line 8: " \$ORIGIN x." is not a record/],
         ["${Zone_head}\@ IN \$ORIGIN x.\n", qr/line 8: "@ IN \$ORIGIN x." is not a record/],
         ["${Zone_head}" . 'x' x 300 . " CNAME .\n", qr/line 8: "x+..." has a name that is too long/])
    {
        my ($exit, undef, $err) = $t->run_tool('build', '-o', "$dir/none",
            '--from', 'rpz', '--form', 'host', '--max-errors', 0,
            { stdin => $_->[0] });
        is($exit, 2, 'rpz: an invalid zone is refused');
        like($err, $_->[1], 'rpz: what is wrong with the zone is said');
    }
}


# ---- lists of two programs ----

# dnsmasq reads no list of unbound: what the other list says about a name does
# not lift the block.

{
    my %block = (dnsmasq => 'address=/one.example/#',
                 unbound => 'local-zone: "one.example" redirect');
    my %own = (dnsmasq => 'address=/one.example/192.0.2.1',
               unbound => 'local-data: "one.example A 192.0.2.1"');

    for my $block (sort keys %block) {
        for my $own (sort keys %own) {
            my @files = ($t->write_file('block', "$block{$block}\n"),
                         $t->write_file('own', "$own{$own}\n"));
            my ($exit) = $t->run_tool('build', '-q', '-o', "$dir/two", '--form',
                                      'host', '--from', 'auto', @files);

            is($exit, $block eq $own ? 2 : 0,
               "a block of $block and an address of $own");
        }
    }
}


# ---- names that no resolver asks for ----

# In the form url they would be URLs, and a page of a list of names, or a host
# behind an @, would be blocked.

for my $form ('host', 'url') {
    for (['hosts', '', '0.0.0.0 %s', '/page', '?x', ':8080',
          '%41', '\\x'],
         ['dnsmasq', '', 'address=/%s/0.0.0.0', '?x', '#x', ':8080', '\\x'],
         ['dnsmasq', '', 'server=/%s/#', '?x', '#x', ':8080', '\\x'],
         ['unbound', '', 'local-zone: "%s" always_nxdomain', '/page', '?x',
          ':8080'],
         ['unbound', '', 'local-data: "%s A 0.0.0.0"', '/page', ':8080'],
         ['rpz', "\$ORIGIN rpz.test.\n", '%s CNAME .', '/page', '?x', '#x',
          ':8080', '\\.x.example', '\\047x'],
         ['rpz', "\$ORIGIN rpz.test.\n", '%s CNAME rpz-passthru.', '/page'])
    {
        my ($format, $before, $entry, @ends) = @$_;

        for my $name ('info@one.example', 'https://one.example',
                      map { "one.example$_" } @ends)
        {
            next if $format eq 'dnsmasq' && $name =~ m|/|;

            my $line = sprintf $entry, $name;
            my (undef, $json)
                = build("$before$line\n", '--from', $format, '--form', $form,
                        '--exceptions', "$dir/exceptions", '--max-errors', 1,
                        '--allow-empty');

            is_deeply([@$json{'received', 'exceptions'},
                       map { $_->{reason} } @{ $json->{errors_by_reason} }],
                      [0, 0, 'has a byte that a host cannot have'],
                      "$format, $form: $line is invalid");
        }
    }
}


done_testing();
