#!/usr/bin/perl

# Several rules: their keys are taken before the first is tested, and yet each
# is tested with its own, in its turn, and the first that fires decides.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;

my $t = BloomTest->new;

# Each zone has keys of its own, which the others have not.

my %form = (raw => 'raw', lower => 'lower', host => 'host', url => 'url',
            lines => 'raw');
my %has = (raw => 'a b', lower => 'mixed-case', host => 'evil.example',
           url => 'evil.example/page', lines => 'x,y');

$t->build_image("$_.bloom", [$has{$_}], '-p', $_ eq 'lines' ? '1e-9' : '1e-6',
                '--seed', 1, '--key', $form{$_})
    for sort keys %has;
$t->build_image('old.bloom', ['old'], '-p', '1e-9', '--seed', 1, '--as-of',
                '2001-01-01T00:00:00Z');

# nine rules: one more than are taken together

my $nine = join "\n", map {
    "bloom_reject present \$arg_k$_ zone=raw decode=form status=48$_;"
} 1 .. 9;

$t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=raw file=%%TESTDIR%%/raw.bloom;
    bloom_zone zone=lower file=%%TESTDIR%%/lower.bloom;
    bloom_zone zone=host file=%%TESTDIR%%/host.bloom;
    bloom_zone zone=url file=%%TESTDIR%%/url.bloom;
    bloom_zone zone=lines file=%%TESTDIR%%/lines.bloom;
    bloom_zone zone=old file=%%TESTDIR%%/old.bloom max_age=1d;

    # What these are depends on the rules before: they must not be evaluated
    # until those have been tested.

    map \$bloom_status \$after { PASSED "a b"; default ""; }
    map \$bloom_status \$arg_after { PASSED "a b"; default ""; }
    map \$bloom_status \$http_x_after { PASSED "a b"; default ""; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Zone "\$bloom_zone" always;

        location /mixed {
            bloom_reject present \$arg_raw zone=raw decode=form status=481;
            bloom_reject present \$http_x_lower zone=lower status=482;
            bloom_reject present \$cookie_host zone=host status=483;
            bloom_reject present \$arg_url zone=url decode=uri status=484;
            bloom_reject present \$arg_lines zone=lines status=485;
            try_files /page =500;
        }
        location /nine { $nine try_files /page =500; }
        location ~ ^/captured/(?<one>[^/]*)/(?<two>[^/]*)\$ {
            set \$three \$arg_three;
            bloom_reject present \$one zone=raw status=481;
            bloom_reject present \$two zone=lines status=482;
            bloom_reject present \$three zone=raw status=483;
            try_files /page =500;
        }
        location /own {
            bloom_reject present \$remote_addr zone=raw status=481;
            bloom_reject present \$uri zone=raw status=482;
            bloom_reject present \$host zone=host status=483;
            bloom_reject present \$http_user_agent zone=lower status=484;
            try_files /page =500;
        }
        location /after {
            bloom_reject present \$arg_k zone=lower status=481;
            bloom_reject present \$after zone=raw status=482;
            try_files /page =500;
        }
        location /after-arg {
            bloom_reject present \$arg_k zone=lower status=481;
            bloom_reject present \$arg_after zone=raw status=482;
            try_files /page =500;
        }
        location /after-http {
            bloom_reject present \$arg_k zone=lower status=481;
            bloom_reject present \$http_x_after zone=raw status=482;
            bloom_reject present \$arg_raw zone=raw status=483;
            try_files /page =500;
        }
        location /unavailable {
            bloom_unavailable reject;
            bloom_reject present \$arg_one zone=raw decode=form status=481;
            bloom_reject absent \$arg_two zone=old status=482;
            bloom_reject present \$arg_three zone=raw decode=form status=483;
            try_files /page =500;
        }
        location /split {
            bloom_reject present \$arg_one zone=raw decode=form status=481;
            bloom_reject present \$arg_two zone=lines split=| status=482;
            bloom_reject present \$arg_three zone=raw decode=form status=483;
            bloom_reject present "\$arg_four" zone=raw decode=form status=484;
            try_files /page =500;
        }
        location /pass {
            bloom_pass present \$arg_one zone=raw decode=form;
            bloom_reject absent \$arg_two zone=lines status=482;
            try_files /page =500;
        }
        location /bloom/ { bloom_api; }
    }
}
CONF
$t->write_file('html/page', 'a page');
$t->run;

sub outcome {
    my $response = $t->get(@_);
    return $response->status . ' ' . ($response->header('X-Zone') // '');
}

sub status { return $t->get(@_)->status }


subtest 'the first that fires' => sub {
    my @ways = (
        ['raw', sub { "raw=$_[0]" }, 'a+b', 'none'],
        ['lower', sub { ('X-Lower' => $_[0]) }, 'MIXED-Case', 'none'],
        ['host', sub { (Cookie => "host=$_[0]") }, 'www.Evil.Example:80',
         'other.example'],
        ['url', sub { "url=$_[0]" }, 'http:%2f%2fEVIL.example/page?x',
         'http://other.example/'],
        ['lines', sub { "lines=$_[0]" }, 'x,y', 'x'],
    );

    # each key: as one that is there, another, an empty one, in all mixtures

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
        my $got = outcome('/mixed?' . join('&', @arguments),
                          headers => { @headers });

        $wrong{"$mixture: $got, not $want"} = 1 if $got ne $want;
    }

    is(join("\n", sort keys %wrong), '', 'in all mixtures of keys');
};


subtest 'more rules than are taken together' => sub {
    is(status("/nine?k$_=a+b"), "48$_", "the rule $_") for 1 .. 9;
    is(status('/nine?k9=a+b&k8=a+b&k1=b'), 488, 'the first of two');
    is(status('/nine?' . join '&', map { "k$_=x" } 1 .. 9), 200, 'none');
};


subtest 'variables' => sub {
    is(status('/captured/a%20b/x,y?three=a+b'), 481, 'a capture');
    is(status('/captured/x,y/x,y?three=a+b'), 482, 'the other one');
    is(status('/captured/x,y/a%20b'), 200, 'each in its own zone');

    is(status('/own/x', headers => { 'User-Agent' => 'Mixed-CASE' }), 484,
       'a header');
    like($t->http("GET /own/x HTTP/1.0\r\nHost: Evil.example\r\n\r\n"),
         qr/^HTTP\S+ 483 /, 'a host');

    is(status('/after?k=x'), 482, 'of a map that sees what the rules said');
    is(status("/after$_?k=x&raw=x"), 482, "the same with a name in a$_...")
        for qw(-arg -http);
    is(status('/after-http?raw=x'), 200, 'and what it sees without a rule');
};


subtest 'a zone that cannot tell' => sub {
    is(status('/unavailable?one=a+b&two=x'), 481, 'behind the one that fires');
    is(status('/unavailable?one=x&two=x&three=a+b'), 503, 'before it');
    is(status('/unavailable?one=x&three=a+b'), 483, 'with no key for it');
};


subtest 'rules of other kinds between' => sub {
    is(status('/split?one=a+b&two=x,y&three=a+b'), 481, 'before a list');
    is(status('/split?one=x&two=x|x,y&three=a+b'), 482, 'the list');
    is(status('/split?one=x&two=x&three=a+b'), 483, 'behind the list');
    is(status('/split?one=x&two=x&four=a+b'), 484, 'a text');
    is(status('/pass?one=a+b&two=x'), 200, 'an allow list');
    is(status('/pass?one=x&two=x'), 482, 'and who is not in it');
    is(status('/pass?one=x&two=x,y'), 200, 'but elsewhere');
};


# The answers are counted as they are given, not as keys are taken.

subtest 'counters' => sub {
    my $counted = sub {
        my $counters = api($t, GET => 'zones/lines')->json->{counters};
        return $counters->{absent} + $counters->{present};
    };
    my $before = $counted->();

    is(status('/pass?one=a+b&two=x'), 200, 'the first rule decides');
    is($counted->(), $before, 'the second has not been asked');
    is(status('/pass?one=x&two=x'), 482, 'the second decides');
    is($counted->(), $before + 1, 'it has been asked once');
};


done_testing;
