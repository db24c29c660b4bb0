#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests key forms: a key is looked up in the form of the image, an invalid key
# fires no rule, and the endpoint says which expressions of a key it looked up.

use strict;
use warnings;

use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %list = (
    raw   => ['Evil.Example'],
    lower => ['Evil.Example', "\xc3\x84"],
    host  => ['evil.example', 'co.uk', "b\xc3\xbccher.example", '10.0.0.1',
              '2001:db8::1'],
    url   => ['evil.example/', 'http://page.example/a/b.html?q=1',
              'dir.example/x/', '192.0.2.1/'],
);

# The seed is fixed: whether a key is absent does not depend on chance.

$t->build_image("$_.bloom", $list{$_}, '-p', '1e-9', '--seed', 1, '--form', $_)
    for sort keys %list;

my @zones = sort keys %list;

my ($zones, $locations) = ('', '');

for (@zones) {
    $zones .= <<"CONF";
    bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;
    bloom_lookup \$arg_k \$known_$_ zone=$_ decode=form;
CONF
    $locations .= <<"CONF";
        location = /known/$_ { return 200 "<\$known_$_>"; }
        location = /absent/$_ {
            bloom_log_level error;
            bloom_reject absent \$arg_k zone=$_ decode=form;
            try_files /page =500;
        }
        location = /present/$_ {
            bloom_log_level error;
            bloom_reject present \$arg_k zone=$_ decode=form;
            try_files /page =500;
        }
CONF
}

configure_rules($t, {}, <<"CONF");
    large_client_header_buffers 4 256k;
    bloom_unknown reject;
$zones
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Status \$bloom_status always;
        add_header X-Key \$bloom_key always;
        location /bloom/ { client_max_body_size 0; bloom_api image=on; }
$locations
    }
CONF
$t->write_file('html/page', 'a page');
$t->run;


sub answer {
    my ($zone, $key) = @_;

    my ($known) = $t->get("/known/$zone?k=" . encoded($key))->body =~ /<(.*)>/;

    return length $known ? $known : '?';
}

sub shown { return $_[0] =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger }


# ---- canonical keys and expressions ----

my %answer = (0 => 'absent', 1 => 'present',
              '?' => 'neither absent nor present');

for (['raw', 'Evil.Example' => 1, 'evil.example' => 0],

     ['lower', 'Evil.Example' => 1, 'evil.example' => 1, 'EVIL.EXAMPLE' => 1,
      'evil.example.' => 0, "\xc3\x84" => 1, "\xc3\xa4" => 0],

     ['host', 'evil.example' => 1, 'EVIL.example' => 1, 'evil.example.' => 1,
      'evil.example:8080' => 1, 'a.b.evil.example' => 1,
      'notevil.example' => 0, 'example' => 0, 'evil.example.org' => 0,
      'x.co.uk' => 1, 'uk' => 0, "B\xc3\x9cCHER.example" => 1,
      'xn--bcher-kva.example' => 1, 'xn--bcher-kvb.example' => 0,
      '10.0.0.1' => 1, '0xa.1' => 1, '012.0.0.1' => 1, '167772161' => 1,
      '[::ffff:10.0.0.1]:80' => 1, '10.0.0.2' => 0, 'a.10.0.0.1' => '?',
      '[2001:DB8:0::1]' => 1, '2001:db8::2' => 0,

      # as it stands in a URL, with bytes that no host of a list has
      '!.evil.example' => 1, 'a+b.evil.example' => 1, 'x@evil.example' => 1,
      '%65vil.example' => 1, "a\0.evil.example" => 1, "\xff.evil.example" => 1,
      "ab--c\xe3\x80\x82evil.example" => 1, "-a\xef\xbc\x8eevil.example" => 1,
      'a b' => 0, "a\0.example" => 0, 'evil.example@good.example' => 0],

     ['url', 'http://evil.example/' => 1, 'evil.example' => 1,
      'HTTPS://user:pw@WWW.Evil.Example.:443/any/page?x#y' => 1,
      'http://%65vil.example%2Fx' => 1, 'http://evil.example@good.example' => 0,
      'http://evilexample/' => 0, 'http://good.example/?u=evil.example' => 0,
      'http://page.example/a/b.html?q=1' => 1,
      'http://page.example/a/./c/../b.html?q=1#x' => 1,
      'http://www.page.example//a//b.html?q=1' => 1,
      'http://page.example/a/b.html' => 0,
      'http://page.example/a/b.html?q=2' => 0,
      'http://dir.example/x/y/z' => 1, 'http://dir.example/x' => 0,
      'http://3221225985/' => 1, "ht\ttp://evil.exa\nmple/" => 1,
      '//evil.example:/x' => 1, '//evil.example://good.example/' => 1,
      '\\\\evil.example:\\\\good.example' => 1, 'evil.example:/x' => 1,
      "http://evil.example/\0" => 1, "http://evil.example/a\0b" => 1,
      "http://a\0b.evil.example/" => 1, 'http://evil.example%00/' => 0,
      'http://ab--c%E3%80%82evil.example/' => 1,
      'http://!*%EF%BC%8Ea-%EF%BD%A1evil.example/' => 1,
      'http://[a.evil.example/' => 1, 'http://evil.example.good.example/' => 0])
{
    my ($zone, @cases) = @$_;

    while (my ($key, $want) = splice @cases, 0, 2) {
        is(answer($zone, $key), $want,
           "key '" . shown($key) . "' is $answer{$want} for key form $zone");
    }
}


# ---- invalid keys ----

my %invalid = (
    host => ['.', 'evil.example/x', 'evil.example:x', '1.2.3.4.5', '[::',
             'evil.example#', 'x@', 'x' x 300, 'x' x 70_000],
    url  => ['http://', '/path', 'mailto:a@evil.example', 'http://a:b/',
             'http://256.256.256.256/', 'evil.example/' . 'x' x 70_000],
);

for my $zone (sort keys %invalid) {
    my $counters = sub { zone_state($t, $zone)->{counters} };
    my $before = $counters->();
    my $mark = $t->log_mark;

    for my $key (@{ $invalid{$zone} }) {
        my $k = encoded($key);
        my $name = "invalid $zone key '"
                   . substr(shown($key), 0, 30) . q(');

        is(answer($zone, $key), '?', "$name is neither absent nor present");

        for (['absent', 200], ['present', 403]) {
            my ($rule, $status) = @$_;
            my $r = $t->get("/$rule/$zone?k=$k");
            is($r->status, $status,
               "bloom_reject $rule answers $status to the $name");
            is($r->header('X-Status'), 'INVALID',
               "\$bloom_status says that bloom_reject $rule met the $name");
        }
    }

    my $after = $counters->();
    my $n = 3 * @{ $invalid{$zone} };

    is($after->{invalid} - $before->{invalid}, $n,
       "each invalid $zone key is counted");
    is($after->{$_}, $before->{$_}, "an invalid $zone key is not counted in $_")
        for qw(checks absent present unknown);
    is($after->{rejected} - $before->{rejected}, $n / 3,
       "each invalid $zone key that is rejected is counted");
    is(scalar(() = $t->log_since($mark)
                  =~ / (?:pass|reject)ing request: key "[^"]*" invalid for/g),
       2 * $n / 3,
       "each rule logs an invalid $zone key at the level of bloom_log_level");
    ok(zone_state($t, $zone)->{image}{form} eq $zone,
       "the state of zone $zone has its key form");
}

is(answer($_, "\0 %"), 0, "key form $_ has no invalid keys") for qw(raw lower);


# ---- variables and the log ----

for (['present', 'url', 'HTTP://WWW.Evil.Example:80/a/%2e./b?c#d', 403,
      'www.evil.example/b?c'],
     ['present', 'host', 'X.Evil.Example.:1', 403, 'x.evil.example'],
     ['present', 'lower', 'EVIL.Example', 403, 'evil.example'],
     ['present', 'raw', 'Evil.Example', 403, 'Evil.Example'],
     ['absent', 'host', 'OTHER.example', 404, 'other.example'],
     ['present', 'host', 'OTHER.example', 200, 'other.example'],
     ['absent', 'host', 'no/HOST', 200, 'no/HOST'],
     ['present', 'host', 'no/HOST', 403, undef])
{
    my ($rule, $zone, $key, $status, $canonical) = @$_;
    my $r = $t->get("/$rule/$zone?k=" . encoded($key));

    is($r->status, $status,
       "bloom_reject $rule zone=$zone answers $status to $key");
    is($r->header('X-Key'), $canonical,
       "bloom_reject $rule zone=$zone changes $key to "
       . ($canonical // 'no key'));
}

like($t->log_since(0), qr{rejecting\ request:\ key\ "www\.evil\.example/b\?c"\ maybe
                          \ present\ in\ bloom\ zone\ "url"}x,
     'the error log has the canonical key');


# ---- long keys ----

for (['many escapes', 'http://evil.example/' . '%25' x 21_000, 1],
     ['many slashes', 'http://evil.example/' . '/.' x 30_000, 1],
     ['many labels', 'a.' x 32_000 . 'evil.example', '?'],
     ['many parent directories', 'http://good.example/' . '/..' x 20_000, 0])
{
    my ($name, $key, $want) = @$_;

    is(answer('url', $key), $want,
       "a long key with $name is $answer{$want} for key form url");
    is(answer('host', $key), '?',
       "a long key with $name is neither absent nor present for key form host");
}


# ---- the endpoint ----

sub explained {
    my ($zone, $key) = @_;

    my $r = api($t, GET => "zones/$zone/keys?key=" . encoded($key));
    is($r->status, 200,
       "the endpoint explains key '" . shown($key) . "' of zone $zone");

    return $r->json;
}

{
    my $got = explained('url', 'http://a.EVIL.example/x?y');

    is($got->{key}, 'http://a.EVIL.example/x?y',
       'the endpoint repeats the key');
    is($got->{form}, 'url', 'the endpoint states the key form');
    is($got->{canonical}, 'http://a.evil.example/x?y',
       'the endpoint states the canonical key');
    is($got->{answer}, 'present', 'the endpoint answers that a key is present');
    is_deeply([map { ($_->{present} ? '+' : '-') . $_->{key} }
                   @{ $got->{expressions} }],
              ['-a.evil.example/x?y', '-a.evil.example/x', '-a.evil.example/',
               '-evil.example/x?y', '-evil.example/x', '+evil.example/'],
              'the endpoint states which expression of a key is present');

    $got = explained('host', 'no/host');
    is($got->{answer}, 'invalid',
       'the endpoint answers that a key is invalid');
    like($got->{reason}, qr/^has /,
         'the endpoint gives the reason why a key is invalid');
    is_deeply([$got->{expressions}, $got->{bits}], [[], []],
              'the endpoint states no expressions of an invalid key');
    ok(!exists $got->{canonical},
       'the endpoint states no canonical form of an invalid key');

    $got = explained('raw', 'Evil.Example');
    is($got->{canonical}, 'Evil.Example',
       'the canonical form of a raw key is the key');
    is_deeply($got->{expressions},
              [{ key => 'Evil.Example', present => JSON::PP::true,
                 removed => JSON::PP::false, excepted => JSON::PP::false,
                 image_excepted => JSON::PP::false, whole => JSON::PP::true }],
              'the only expression of a raw key is the key');
    ok(scalar @{ $got->{bits} },
       'the endpoint states the bits of a raw key');
}

# The module and the tool agree on canonical keys and expressions.

my @keys = map { @$_ } values %list;
push @keys, 'http://A.b.c.d.e.f.g/1/2/3/4/5.html?p=%3F', 'a.b.c.d.e.f.g.h.i',
     '%68ttp://x.y/%%%25', 'http://[::1]/', 'x' x 63, 'ftp://x..y.../',
     "\xc3\xb1.example", 'http:/\\host\\p\\..?q\\..', ' x.y ', '1.2', '..';

for my $zone (@zones) {
    my (undef, $out) = $t->run_tool('expand', '--json', '--form', $zone, '-0',
                                    '-f', '-', { stdin => join "\0", @keys });
    my @expanded = map { decode_json($_) } split /\n/, $out;
    my @found;

    for my $key (@keys) {
        my $got = api($t, GET => "zones/$zone/keys?key=" . encoded($key))->json;
        push @found, { canonical => $got->{canonical},
                       expressions => [map { $_->{key} }
                                           @{ $got->{expressions} }],
                       $got->{reason} ? (reason => $got->{reason}) : () };
    }

    for my $i (0 .. $#keys) {
        my %want = map { $_ => $expanded[$i]{$_} } keys %{ $found[$i] };
        is_deeply($found[$i], \%want,
                  "the endpoint and the tool explain $zone key '"
                  . shown($keys[$i]) . "' alike")
            or diag(explain($found[$i], $expanded[$i]));
    }
}

{
    my $r = api($t, POST => 'zones/url/test', body => join "\n",
                'evil.example', 'http://', 'good.example', 'x' x 60_000,
                'EVIL.example', 'http://evil.example/' . 'x' x 60_000);

    is_deeply($r->json, {
        answers => [qw(present invalid absent invalid present present)],
        tested => 6, absent => 1, present => 3, unknown => 0, invalid => 2 },
        'POST test answers and counts present, absent and invalid keys')
        or diag($r);

    $r = api($t, POST => 'zones/url/test', body => join "\n",
             map { "http://h$_.example/" . 'p' x 1000 } 1 .. 20_000);
    is($r->json->{absent}, 20_000,
       'POST test answers 20,000 long keys');

    # Keys are looked up in groups.  These have one expression, thirty or, if
    # invalid, none.

    my %one = (
        present => ['evil.example', 'http://a.b.c.d.e.evil.example/1/2/3/4?5'],
        absent => ['good.example', 'http://a.b.c.d.e.good.example/1/2/3/4?5'],
        invalid => ['http://'],
        unknown => [''],
    );
    my @order = map { (qw(present absent invalid unknown))
                      [($_ * $_ + int($_ / 7)) % 4] } 1 .. 3000;

    $r = api($t, POST => 'zones/url/test',
             headers => { 'Content-Type' => 'application/json' },
             body => JSON::PP::encode_json([map {
                 my $keys = $one{ $order[$_] };
                 $keys->[$_ / 50 % @$keys];
             } 0 .. $#order]));
    is(join(' ', @{ $r->json->{answers} }), join(' ', @order),
       'POST test answers 3,000 keys in their order') or diag($r);
}

done_testing();
