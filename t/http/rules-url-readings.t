#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A URL with escapes may have two readings: what a browser fetches, and what a server
# makes of that if it unescapes and resolves again. Rules that refuse ask about both,
# and a rule that allows passes only a URL with one.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

my %rules = (
    reject => 'bloom_reject present $url zone=bad',
    list => 'bloom_reject present $url zone=bad "split= "',
    exact => 'bloom_reject present $url zone=bad exact',
    pass => 'bloom_pass present $url zone=good;
             bloom_reject present $url zone=all',
    'pass-exact' => 'bloom_pass present $url zone=good exact;
                     bloom_reject present $url zone=all',
    'pass-list' => 'bloom_pass present $url zone=good exact "split= ";
                    bloom_reject present $url zone=all "split= "',
    shield => 'bloom_reject absent $url zone=pages exact',
);

my %list = (
    bad => ['evil.example/files/malware.exe', 'http://hosting.example/mallory/',
            'http://odd.example/a%2Fb'],
    good => ['http://hosting.example/good', 'http://hosting.example/dir/'],
    all => ['hosting.example'],
    pages => ['http://shop.example/p/1'],
);

$t->build_image("$_.bloom", $list{$_}, '--form', 'url', '-p', '1e-9')
    for keys %list;

configure_rules($t, \%list, <<'CONF' . locations(\%rules, 8081) . '}',
    bloom_arg url $url;
    bloom_lookup $url $listed zone=bad;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Status $bloom_status always;
        add_header X-Match $bloom_match always;
        add_header X-Key $bloom_key always;
        location /lookup { return 200 "listed $listed"; }
        location /bloom/ { bloom_api; }
CONF
                backend => 8081);
$t->run;

sub ask {
    my ($place, $url) = @_;

    return $t->get("/$place?url=" . encoded($url));
}

# A listed page or directory, in spellings that a browser or a server takes for it;
# what is found; the answers of a rule and of a rule with "exact".

my $file = 'evil.example/files/malware.exe';
my $mallory = 'hosting.example/mallory/';

my @spellings = (
    ['http://evil.example/files/malware.exe', $file, 403, 403],
    ['http://evil.example/a%2Fb/../files/malware.exe', $file, 403, 403],
    ['http://evil.example/a%3Fb/../files/malware.exe', $file, 403, 403],
    ['http://evil.example/a%5Cb/../files/malware.exe', $file, 403, 403],
    ['http://evil.example/a%253Fb/../files/malware.exe', $file, 403, 403],
    ['http://evil.example/a%2Fb\\%2E.\\files\\malware.exe', $file, 403, 403],
    ['http://evil.example/a%2f..%2f../files/malware.exe?x', $file, 403, 200],
    ['http://evil.example/x/..%2ffiles/malware.exe', $file, 403, 403],
    ['http://hosting.example/mallory/%252e%252e/x', $mallory, 403, 200],
    ['http://hosting.example/mallory/..%2fx', $mallory, 403, 200],
    ['http://hosting.example/mallory/x%3f/../../y', '', 200, 200],
    ['http://hosting.example/z/x%2Fy/../..%2fmallory/x', $mallory, 403, 200],
    ['http://hosting.example/z/%2e%2e%252fmallory/', $mallory, 403, 403],
    ['http://odd.example/a%2Fb', 'odd.example/a/b', 403, 403],
    ['http://odd.example/%61%2fb', 'odd.example/a/b', 403, 403],
    ['http://evil.example/x/%2F../files/malware.exe', $file, 403, 403],
    ['http://evil.example/x/%5c%252e./files/malware.exe', $file, 403, 403],
    ['http://evil.example/x//..%2ffiles/malware.exe', $file, 403, 403],
    ['http://evil.example/x//../files/malware.exe', '', 200, 200],
    ['http://evil.example/x%3F/..%2f..%2ffiles/malware.exe', $file, 403, 403],
    ['http://evil.example/x/..%2ffiles/malware.exe%3Fy', $file, 403, 200],
    ['http://hosting.example/z%253f/..%5C../mallory/x?y', $mallory, 403, 200],
    ['http://hosting.example/mallory/../x', '', 200, 200],
    ['http://hosting.example/mallory%2F', $mallory, 403, 403],
);

for (@spellings) {
    my ($url, $match, $status, $exact) = @$_;

    my $response = ask('reject', $url);
    is($response->status, $status, "$url gets $status");
    is($response->header('X-Match') // '', $match, "$url is found as \"$match\"");
    is(ask('list', "http://other.example/ $url")->header('X-Match') // '', $match,
       "$url in a list is found as \"$match\"");
    is(ask('exact', $url)->status, $exact, "$url gets $exact from a rule with exact");
    like(ask('lookup', $url)->body, $status == 403 ? qr/listed 1/ : qr/listed 0/,
         "a variable of bloom_lookup agrees about $url");
}

# Allowed pages and directories of a listed host: a rule, and one with exact.

for (['http://hosting.example/good', 200, 200],
     ['http://hosting.example/%67ood', 200, 200],
     ['http://hosting.example/x/../good', 200, 200],
     ['http://hosting.example/x/%2e%2e/good', 200, 200],
     ['http://hosting.example/mallory/%252e%252e/good', 403, 403],
     ['http://hosting.example/mallory/..%2fgood', 403, 403],
     ['http://hosting.example/a%2Fb/../good', 200, 200],
     ['http://hosting.example/good%2f..%2fmallory/x', 403, 403],
     ['http://hosting.example/dir/x', 200, 403],
     ['http://hosting.example/mallory/%252e%252e/dir/x', 403, 403],
     ['http://hosting.example/dir/%252e%252e/mallory/x', 403, 403],
     ['http://hosting.example/dir/a%2fb', 200, 403],
     ['http://hosting.example/dir/x%2Fy%2Fz/../..%2f..%2fmallory/x', 403, 403],
     ['http://hosting.example/dir/..%2fmallory/%252e%252e/dir/x', 403, 403],
     ['http://hosting.example/dir/a%2f..%2fb', 403, 403],
     ['http://hosting.example/dir/a%3fb', 403, 403],
     ['http://hosting.example/other', 403, 403]) {
    my ($url, $status, $exact) = @$_;

    is(ask('pass', $url)->status, $status, "$url gets $status after a bloom_pass");
    is(ask('pass-exact', $url)->status, $exact,
       "$url gets $exact after a bloom_pass with exact");
    is(ask('pass-list', $url)->status, $exact,
       "$url in a list gets $exact after a bloom_pass with exact");
}

# A shield asks about both readings: what exists in one of them is passed.

is(ask('shield', 'http://shop.example/p/1')->status, 200, 'an item that exists passes');
is(ask('shield', 'http://shop.example/x%2Fy/../p/1')->status, 200,
   'an item that exists in the reading of a browser passes');
is(ask('shield', 'http://shop.example/x/..%2fp/1')->status, 200,
   'an item that exists in the reading of a server that unescapes first passes');
is(ask('shield', 'http://shop.example/p/2')->status, 404,
   'an item that exists in no reading is rejected');

# The key is the browser's reading, and it is found when it is asked about.

my $key = ask('reject', 'http://hosting.example/mallory/%252e%252e/x')->header('X-Key');
is($key, 'hosting.example/mallory/%252E%252E/x',
   'the key of a route or a rejection is the reading of a browser');
is(ask('reject', "http://$key")->header('X-Key'), $key,
   'the key of a key is that key');

# GET /keys shows which expressions a rule with "exact" looks up, and what each rule
# does.

my $why = $t->get('/bloom/keys?key='
                  . 'http://hosting.example/mallory/%25252e%25252e/good')->json;
my ($all) = grep { $_->{name} eq 'good' } @{ $why->{zones} };

is_deeply([map { $_->{key} } grep { $_->{whole} } @{ $all->{expressions} }],
          ['hosting.example/mallory/%252E%252E/good', 'hosting.example/good'],
          'the whole keys of both readings are marked');
my @passes = grep { $_->{action} eq 'pass' } map { @{ $_->{rules} } }
             @{ $why->{lists} };

is_deeply([map { $_->{effect} } @passes], ['none', 'none', 'none'],
          'no bloom_pass fires for one of two readings');
my ($fires) = grep { $_->{effect} eq 'fires' && !$_->{decided} }
              map { @{ $_->{rules} } } @{ $why->{lists} };
like($fires->{entry}, qr/^hosting\.example\//,
     'the rule that decides has the entry that was found');

done_testing;
