#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests locations with several rules: each rule gets its own key in its turn, and
# sees what the rules before it have decided.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

# Each zone has a key that no other zone has.

my %form = (raw => 'raw', lower => 'lower', host => 'host', url => 'url',
            lines => 'raw');
my %has = (raw => 'a b', lower => 'mixed-case', host => 'evil.example',
           url => 'evil.example/page', lines => 'x,y');

$t->build_image("$_.bloom", [$has{$_}], '-p', $_ eq 'lines' ? '1e-9' : '1e-6',
                '--seed', 1, '--form', $form{$_})
    for sort keys %has;
$t->build_image('old.bloom', ['old'], '-p', '1e-9', '--seed', 1, '--as-of',
                '2001-01-01T00:00:00Z');

my $nine = join ";\n", map {
    "bloom_reject present \$arg_k$_ zone=raw decode=form status=48$_"
} 1 .. 9;

my ($one, $two, $three) = map {
    "bloom_reject present \$arg_$_->[0] zone=raw decode=form status=48$_->[1]"
} ['one', 1], ['two', 2], ['three', 3];
my $first = 'bloom_reject present $arg_k zone=lower status=481';

my %rules = (
    mixed => 'bloom_reject present $arg_raw zone=raw decode=form status=481;
              bloom_reject present $http_x_lower zone=lower status=482;
              bloom_reject present $cookie_host zone=host status=483;
              bloom_reject present $arg_url zone=url decode=uri status=484;
              bloom_reject present $arg_lines zone=lines status=485',
    nine  => $nine,
    '~ ^/captured/(?<one>[^/]*)/(?<two>[^/]*)$' => 'set $three $arg_three;
              bloom_reject present $one zone=raw status=481;
              bloom_reject present $two zone=lines status=482;
              bloom_reject present $three zone=raw status=483',
    own   => 'bloom_reject present $remote_addr zone=raw status=481;
              bloom_reject present $uri zone=raw status=482;
              bloom_reject present $host zone=host status=483;
              bloom_reject present $http_user_agent zone=lower status=484',
    after => "$first; bloom_reject present \$after zone=raw status=482",
    'after-arg'  => "$first;
                     bloom_reject present \$arg_after zone=raw status=482",
    'after-http' => "$first;
                     bloom_reject present \$http_x_after zone=raw status=482;
                     bloom_reject present \$arg_raw zone=raw status=483",
    unknown => "bloom_unknown reject; $one;
                bloom_reject absent \$arg_two zone=old status=482; $three",
    split   => "$one; bloom_reject present \$arg_two zone=lines split=|
                status=482; $three;
                bloom_reject present \"\$arg_four\" zone=raw decode=form
                status=484",
    pass    => 'bloom_pass present $arg_one zone=raw decode=form;
                bloom_reject absent $arg_two zone=lines status=482',
);

$_ .= '; try_files /page =500' for values %rules;

configure_rules($t, {}, <<'CONF' . locations(\%rules) . '}');
    bloom_zone zone=raw file=%%TESTDIR%%/raw.bloom;
    bloom_zone zone=lower file=%%TESTDIR%%/lower.bloom;
    bloom_zone zone=host file=%%TESTDIR%%/host.bloom;
    bloom_zone zone=url file=%%TESTDIR%%/url.bloom;
    bloom_zone zone=lines file=%%TESTDIR%%/lines.bloom;
    bloom_zone zone=old file=%%TESTDIR%%/old.bloom max_age=1d;

    # These values depend on earlier rules.

    map $bloom_status $after { PASSED "a b"; default ""; }
    map $bloom_status $arg_after { PASSED "a b"; default ""; }
    map $bloom_status $http_x_after { PASSED "a b"; default ""; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_zone" always;
        location /bloom/ { bloom_api; }
CONF
$t->write_file('html/page', 'a page');
$t->run;

sub status { return $t->get(@_)->status }


subtest 'the first rule that fires decides' => sub {
    my @ways = (
        ['raw', sub { "raw=$_[0]" }, 'a+b', 'none'],
        ['lower', sub { ('X-Lower' => $_[0]) }, 'MIXED-Case', 'none'],
        ['host', sub { (Cookie => "host=$_[0]") }, 'www.Evil.Example:80',
         'other.example'],
        ['url', sub { "url=$_[0]" }, 'http:%2f%2fEVIL.example/page?x',
         'http://other.example/'],
        ['lines', sub { "lines=$_[0]" }, 'x,y', 'x'],
    );

    # each key is present, absent or empty, in all combinations

    my %wrong;

    for my $mixture (0 .. 3 ** @ways - 1) {
        my ($rest, $first, $last, @arguments, @headers) = ($mixture);

        for my $i (0 .. $#ways) {
            my ($zone, $give, $present, $absent) = @{ $ways[$i] };
            my $kind = $rest % 3;
            my @given = $give->(('', $absent, $present)[$kind]);

            push @{ @given == 1 ? \@arguments : \@headers }, @given
                if $kind || $mixture % 2;
            $rest = int $rest / 3;

            $first //= 481 + $i . " $zone" if $kind == 2;
            $last = $zone if $kind;
        }

        my $want = $first // '200 ' . ($last // '');
        my $got = outcome($t, '/mixed?' . join('&', @arguments),
                          headers => { @headers });

        $wrong{"$mixture: $got, not $want"} = 1 if $got ne $want;
    }

    is(join("\n", sort keys %wrong), '',
       'the first rule that fires decides in all combinations of five keys');
};


subtest 'nine rules decide in their order' => sub {
    is(status("/nine?k$_=a+b"), "48$_", "rule $_ of nine rejects its own key")
        for 1 .. 9;
    is(status('/nine?k9=a+b&k8=a+b&k1=b'), 488,
       'rule 8 decides before rule 9');
    is(status('/nine?' . join '&', map { "k$_=x" } 1 .. 9), 200,
       'a request that none of nine rules rejects is passed');
};


subtest 'the keys may be any variables' => sub {
    is(status('/captured/a%20b/x,y?three=a+b'), 481,
       'the first of two captures is the key of the first rule');
    is(status('/captured/x,y/x,y?three=a+b'), 482,
       'the second of two captures is the key of the second rule');
    is(status('/captured/x,y/a%20b'), 200,
       'a capture that is present in the zone of another rule is passed');

    is(status('/own/x', headers => { 'User-Agent' => 'Mixed-CASE' }), 484,
       'a request header is a key');
    like($t->http("GET /own/x HTTP/1.0\r\nHost: Evil.example\r\n\r\n"),
         qr/^HTTP\S+ 483 /, 'the host of a request is a key');

    is(status('/after?k=x'), 482,
       'a map is evaluated after the rules that it depends on');
    is(status("/after$_?k=x&raw=x"), 482,
       "a map named like a$_ variable is evaluated after the rules before it")
        for qw(-arg -http);
    is(status('/after-http?raw=x'), 200,
       'a map sees no outcome when no rule before it had a key');
};


subtest 'unknown zones, lists, texts and bloom_pass have their turn' => sub {
    outcomes_are($t, <<'END');
/unknown?one=a+b&two=x            481 raw    before an unknown zone
/unknown?one=x&two=x&three=a+b    503 old    the unknown zone
/unknown?one=x&three=a+b          483 raw    the unknown zone has no key
/split?one=a+b&two=x,y&three=a+b  481 raw    before a list
/split?one=x&two=x|x,y&three=a+b  482 lines  the list
/split?one=x&two=x&three=a+b      483 raw    after the list
/split?one=x&two=x&four=a+b       484 raw    a text with a variable
/pass?one=a+b&two=x               200 raw    a bloom_pass fires
/pass?one=x&two=x                 482 lines  the bloom_pass does not fire
/pass?one=x&two=x,y               200 lines  neither decides
END
};


subtest 'a key is counted only if its rule is evaluated' => sub {
    my $counted = sub {
        my $counters = api($t, GET => 'zones/lines')->json->{counters};
        return $counters->{absent} + $counters->{present};
    };
    my $before = $counted->();

    is(status('/pass?one=a+b&two=x'), 200,
       'the first of two rules decides a request');
    is($counted->(), $before, 'the key of the second rule is not counted');
    is(status('/pass?one=x&two=x'), 482,
       'the second of two rules decides a request');
    is($counted->(), $before + 1, 'the key of the second rule is counted once');
};


done_testing;
