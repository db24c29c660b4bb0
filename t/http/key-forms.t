#!/usr/bin/perl

# Key forms where requests are decided: what is looked up is what the image's
# key form makes of a key, and what is no key in it fires no rule.  The endpoint
# says by what a key was found.

use strict;
use warnings;

use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Api;

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

# the same seed each time: whether a key is absent is no matter of chance

$t->build_image("$_.bloom", $list{$_}, '-p', '1e-9', '--seed', 1, '--key', $_)
    for sort keys %list;

my @zones = sort keys %list;

$t->write_file_expand('nginx.conf', join "\n", <<'HTTP', (map {
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    large_client_header_buffers 4 256k;
    log_format decided '$uri [$bloom_status] [$bloom_zone] [$bloom_key]';
    access_log %%TESTDIR%%/decided.log decided;

    bloom_unavailable reject;
HTTP
    "    bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;
    bloom_lookup \$arg_k \$known_$_ zone=$_ decode=form;"
} @zones), <<'SERVER', (map {
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Status $bloom_status always;
        add_header X-Key $bloom_key always;
        location /bloom/ { client_max_body_size 0; bloom_api; }
SERVER
    "        location = /known/$_ { return 200 \"<\$known_$_>\"; }
        location = /absent/$_ {
            bloom_log_level error;
            bloom_reject absent \$arg_k zone=$_ decode=form;
            try_files /page =500;
        }
        location = /present/$_ {
            bloom_log_level error;
            bloom_reject present \$arg_k zone=$_ decode=form;
            try_files /page =500;
        }"
} @zones), '    }', '}', '');

$t->write_file('html/page', 'a page');
$t->run;


sub encoded { return $_[0] =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ger }

sub known {
    my ($zone, $key) = @_;

    my ($known) = $t->get("/known/$zone?k=" . encoded($key))->body =~ /<(.*)>/;

    return length $known ? $known : '?';
}

sub shown { return $_[0] =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger }


# ---- what a key is looked up by ----

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
      '[2001:DB8:0::1]' => 1, '2001:db8::2' => 0],

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
      'http://3221225985/' => 1, "ht\ttp://evil.exa\nmple/" => 1])
{
    my ($zone, @cases) = @$_;

    while (my ($key, $want) = splice @cases, 0, 2) {
        is(known($zone, $key), $want, "$zone: " . shown($key));
    }
}


# ---- what is no key ----

my %unparsable = (
    host => ['.', 'a b', 'evil.example:x', '1.2.3.4.5', '[::', "a\0.example",
             'x' x 300, 'x' x 70_000],
    url  => ['http://', '/path', 'mailto:a@evil.example', 'http://a:b/',
             "http://evil.example/\0", 'http://evil.example%00/',
             'http://256.256.256.256/', 'evil.example/' . 'x' x 70_000],
);

for my $zone (sort keys %unparsable) {
    my $counters = sub { zone_state($t, $zone)->{counters} };
    my $before = $counters->();
    my $mark = $t->log_mark;

    for my $key (@{ $unparsable{$zone} }) {
        my $k = encoded($key);
        my $name = "$zone: " . substr shown($key), 0, 30;

        is(known($zone, $key), '?', "$name: neither absent nor present");

        for my $rule (qw(absent present)) {
            my $r = $t->get("/$rule/$zone?k=$k");
            is($r->status, 200, "$name: $rule does not fire");
            is($r->header('X-Status'), 'PASSED', "$name: it can tell");
        }
    }

    my $after = $counters->();
    my $n = 3 * @{ $unparsable{$zone} };

    is($after->{invalid} - $before->{invalid}, $n, "$zone: all counted");
    is($after->{$_}, $before->{$_}, "$zone: not as $_")
        for qw(checks absent present unknown rejected);
    is(scalar(() = $t->log_since($mark) =~ / passing request: key "[^"]*" invalid for/g),
       2 * $n / 3, "$zone: a line in the log at the rules' level");
    ok(zone_state($t, $zone)->{image}{key_form} eq $zone, "$zone: key_form");
}

is(known($_, "\0 %"), 0, "$_: every key is one") for qw(raw lower);


# ---- what a decision says of it ----

for (['present', 'url', 'HTTP://WWW.Evil.Example:80/a/%2e./b?c#d', 403,
      'www.evil.example/b?c'],
     ['present', 'host', 'X.Evil.Example.:1', 403, 'x.evil.example'],
     ['present', 'lower', 'EVIL.Example', 403, 'evil.example'],
     ['present', 'raw', 'Evil.Example', 403, 'Evil.Example'],
     ['absent', 'host', 'OTHER.example', 404, 'other.example'],
     ['present', 'host', 'OTHER.example', 200, 'other.example'],
     ['present', 'host', 'not a HOST', 200, 'not a HOST'])
{
    my ($rule, $zone, $key, $status, $canonical) = @$_;
    my $r = $t->get("/$rule/$zone?k=" . encoded($key));

    is($r->status, $status, "$rule $zone $key: status");
    is($r->header('X-Key'), $canonical, "$rule $zone $key: \$bloom_key");
}

like($t->log_since(0), qr{rejecting\ request:\ key\ "www\.evil\.example/b\?c"\ maybe
                          \ present\ in\ bloom\ zone\ "url"}x,
     'the log has the canonical key');


# ---- long keys ----

for (['escapes', 'http://evil.example/' . '%25' x 21_000, 1],
     ['slashes', 'http://evil.example/' . '/.' x 30_000, 1],
     ['labels', 'a.' x 32_000 . 'evil.example', '?'],
     ['no match', 'http://good.example/' . '/..' x 20_000, 0])
{
    my ($name, $key, $want) = @$_;

    is(known('url', $key), $want, "url: $name");
    is(known('host', $key), '?', "host: $name");
}


# ---- the endpoint ----

sub explained {
    my ($zone, $key) = @_;

    my $r = api($t, GET => "zones/$zone/keys?key=" . encoded($key));
    is($r->status, 200, "$zone: GET keys: " . shown($key));

    return $r->json;
}

{
    my $got = explained('url', 'http://a.EVIL.example/x?y');

    is($got->{key}, 'http://a.EVIL.example/x?y', 'the key as it came');
    is($got->{key_form}, 'url', 'its form');
    is($got->{canonical}, 'http://a.evil.example/x?y', 'its canonical form');
    is($got->{answer}, 'present', 'the answer');
    is_deeply([map { ($_->{present} ? '+' : '-') . $_->{key} }
                   @{ $got->{expressions} }],
              ['-a.evil.example/x?y', '-a.evil.example/x', '-a.evil.example/',
               '-evil.example/x?y', '-evil.example/x', '+evil.example/'],
              'which expression it is');

    $got = explained('host', 'not a host');
    is($got->{answer}, 'invalid', 'what is no key');
    like($got->{reason}, qr/^has /, 'and why');
    is_deeply([$got->{expressions}, $got->{bits}], [[], []],
              'is not looked up');
    ok(!exists $got->{canonical}, 'and has no canonical form');

    $got = explained('raw', 'Evil.Example');
    is($got->{canonical}, 'Evil.Example', 'raw: itself');
    is_deeply($got->{expressions},
              [{ key => 'Evil.Example', present => JSON::PP::true }],
              'raw: found by itself');
    ok(scalar @{ $got->{bits} }, 'raw: has bits');
}

# the module and the tool make the same of keys

my @keys = map { @$_ } values %list;
push @keys, 'http://A.b.c.d.e.f.g/1/2/3/4/5.html?p=%3F', 'a.b.c.d.e.f.g.h.i',
     '%68ttp://x.y/%%%25', 'http://[::1]/', 'x' x 63, 'ftp://x..y.../',
     "\xc3\xb1.example", 'http:/\\host\\p\\..?q\\..', ' x.y ', '1.2', '..';

for my $zone (@zones) {
    my (undef, $out) = $t->run_tool('expand', '--json', '--key', $zone, '-0',
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
        is_deeply($found[$i], \%want, "$zone: as the tool: " . shown($keys[$i]))
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
        'POST test') or diag($r);

    $r = api($t, POST => 'zones/url/test', body => join "\n",
             map { "http://h$_.example/" . 'p' x 1000 } 1 .. 20_000);
    is($r->json->{absent}, 20_000, 'POST test: many long ones');

    # they are asked for in groups: by one expression and by thirty, and those
    # that are no key

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
       'POST test: each in its place') or diag($r);
}

$t->stop;


# ---- forms to come ----

my $image = $t->read_file('raw.bloom');
substr($image, 76, 4) = pack 'L<', 77;
substr($image, 4092, 4) = pack 'L<', crc32c(substr $image, 0, 4092);
$t->write_file('raw.bloom', $image);

like($t->run_fails, qr{\[emerg\].*image\ "\S+/raw\.bloom"\ of\ bloom\ zone\ "raw"\ has
                       \ key\ form\ 77,\ which\ this\ program\ does\ not\ know;
                       \ use\ a\ newer\ program}x,
     'an unknown key form is refused, and what to do');
$t->expect_log(qr/key form 77/);

# An imported image hashes keys as its system does: no form may change them.

$t->write_file('bitmap', "\1" x 64);
my ($exit, undef, $err) = $t->run_tool('import', '--from', 'bitmap', '--scheme',
                                       'go-zero', '--bits', 512, '--hashes', 3,
                                       '-o', "$dir/raw.bloom", "$dir/bitmap");
is($exit, 0, 'an imported image') or diag($err);

$image = $t->read_file('raw.bloom');
substr($image, 76, 4) = pack 'L<', 3;
substr($image, 4092, 4) = pack 'L<', crc32c(substr $image, 0, 4092);
$t->write_file('raw.bloom', $image);

like($t->run_fails, qr/raw\.bloom" .* is impossible: imported, with key form url/,
     'that has a key form is refused');
$t->expect_log(qr/is impossible: imported/);

done_testing();


sub crc32c {
    my $crc = 0xffffffff;

    for my $byte (unpack 'C*', $_[0]) {
        $crc ^= $byte;
        $crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}
