#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that ranges of addresses, element rules and rules for other programs are
# no keys of the forms host and url, and that URLs which look like them are.

use strict;
use warnings;

use BloomTest;
use BloomTest::Lists qw(cases);
use BloomTest::Tool qw(build_text tool tool_test);

my $t = tool_test();

sub build { return build_text(@_) }


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

my $dnsmasq = 'is a line of dnsmasq; use --from dnsmasq';
my @dnsmasq = ('address=/ads.example/0.0.0.0', 'address=/ads.example/#',
               'server=/ads.example/', 'local=/ads.example/',
               '--address=/ads.example/', 'address=/a.example/b.example/');

my $csv = 'is a line of CSV; use --from csv:COLUMN';
my @csv = ('1,bad.example', 'bad.example;phishing', 'url;type', '7;a.example/x');

for my $form ('host', 'url') {
    for my $format (undef, 'lines') {
        my @from = defined $format ? ('--from', $format) : ();

        for (map({ [$_, 'is a range of addresses'] } @ranges),
             map({ [$_, 'is about elements of pages'] } @elements),
             map({ [$_, $dnsmasq] } @dnsmasq), map({ [$_, $csv] } @csv))
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

for (@ranges, @elements, @dnsmasq, @csv) {
    my ($image, $json) = build("$_\n", '--form', 'raw', '-p', '1e-9', '-n', 9);
    is($json->{received}, 1, "raw: $_ is a key, as any text");
}

tool(2, qr/ has no keys, and 2 lines are skipped; check --from and --form, or use --allow-empty/,
     'build', '-o', $t->testdir . '/none', '--form', 'url',
     { stdin => "192.0.2.0/24\n1,x.example\n" });

# URLs that look like them

cases('lines', 'url', '',
    map({ [$_, [$_]] }
        'http://192.0.2.0/24', 'https://192.0.2.1/255.255.255.0',
        '192.0.2.0/99', '192.0.2.0/24x', '192.0.2.0/24/', '192.0.2.0/',
        '192.0.2.0:8080/24', '[2001:db8::]/32', '192.0.2.0.a/24',
        '192.0.2.0.example/24', 'ab.example:80/32',
        'https://x.example/a#b', 'https://x.example/#/route', 'x.example/##top',
        'https://x.example/##top', 'https://x.example##top',
        'https://x.example/a$$b', 'x.example/a$$b', 'x.example#top',
        'http://address=/x', 'local/x', 'server.example/address=/x',
        'http://x.example/a,b;c', 'x.example/a,b;c', 'x.example?a,b',
        'http://x,y.example/'),
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

done_testing();
