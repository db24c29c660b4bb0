#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests exact: a rule looks up only the whole key, and none of its parents.  The
# same rule without exact stands beside each one, as a control.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

my %has = (
    raw   => ['a.b'],
    lower => ['a.b'],
    host  => ['good.example', '192.0.2.1'],
    url   => ['good.example/', 'page.example/a/b.html', 'dir.example/x/',
              'query.example/p?q=1', '192.0.2.1/'],
);

$t->build_image("$_.bloom", $has{$_}, '-p', '1e-9', '--seed', 1, '--form', $_)
    for keys %has;
$t->build_image('cold.bloom', ['good.example/'], '-p', '1e-9', '--seed', 1,
                '--form', 'url', '--as-of', '2020-01-01T00:00:00Z');
$t->write_file('html/page', 'a page');

# Ways in which a rule's key is looked up.  The key of "late" is one of a map,
# which may depend on the rule before it.

my $other = 'bloom_reject present $arg_other zone=raw status=489';

my %ways = (
    alone    => '%s',
    composed => '%s',
    first    => "%s; $other",
    second   => "$other; %s",
    late     => "$other; %s",
    list     => '%s split=|',
    all      => '%s split=| match=all',
);

my $locations = '';

for my $way (keys %ways) {
    for my $form (sort(keys %has), 'cold') {
        for my $exact ('', ' exact') {
            my $key = $way eq 'composed' ? '"$arg_k$arg_l"'
                      : $way eq 'late' ? '$late' : '$arg_k';
            my $rules = sprintf $ways{$way},
                "bloom_reject present $key zone=$form decode=form$exact";
            my $name = join '-', $way, $form, $exact ? 'exact' : ();

            $locations .= "location = /$name { $rules; try_files /page =500; }"
                          . "\n";
        }
    }
}

configure_rules($t, {}, <<"CONF");
    @{[ map { "bloom_zone zone=$_ file=%%TESTDIR%%/$_.bloom;\n" }
            sort keys %has ]}
    map \$arg_k \$late { volatile; default \$arg_k; }
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "\$bloom_status \$bloom_zone" always;
        add_header X-Key "<\$bloom_key>" always;

        $locations

        location = /route {
            bloom_route present \$arg_k zone=url decode=form exact to=/routed;
            try_files /page =500;
        }
        location = /routed {
            bloom_rules off;
            return 200 "routed";
        }
        location = /pass {
            bloom_pass present \$arg_k zone=url decode=form exact;
            bloom_reject absent \$arg_k zone=url decode=form status=410
                         empty=fire;
            bloom_reject absent never zone=raw status=411;
            try_files /page =500;
        }
        location = /shield {
            bloom_reject absent \$arg_k zone=url decode=form exact;
            try_files /page =500;
        }
        location = /fire {
            bloom_reject present \$arg_k zone=url decode=form exact
                         invalid=fire empty=fire;
            try_files /page =500;
        }
    }
CONF
$t->run;


# form, key, whether it is found, whether it is found with exact

my @cases = (
    ['raw', 'a.b', 1, 1], ['raw', 'x.a.b', 0, 0], ['raw', 'A.B', 0, 0],
    ['lower', 'A.B', 1, 1], ['lower', 'x.a.b', 0, 0],

    ['host', 'good.example', 1, 1], ['host', 'GOOD.example.:80', 1, 1],
    ['host', 'www.good.example', 1, 0], ['host', 'a.b.good.example', 1, 0],
    ['host', '!.good.example', 1, 0], ['host', 'user@good.example', 1, 1],
    ['host', 'other.example', 0, 0], ['host', '0xc0.2.1', 0, 0],
    ['host', '0xc0.0.2.1', 1, 1],

    ['url', 'http://good.example/', 1, 1], ['url', 'good.example', 1, 1],
    ['url', 'HTTPS://user:pw@GOOD.example.:443/a/..#x', 1, 1],
    ['url', 'http://good.example/page', 1, 0],
    ['url', 'http://good.example/?q', 1, 0],
    ['url', 'http://www.good.example/', 1, 0],
    ['url', 'http://page.example/a/b.html', 1, 1],
    ['url', 'http://page.example/a/./c/../b.html#x', 1, 1],
    ['url', 'http://page.example/a/b.html?q=1', 1, 0],
    ['url', 'http://www.page.example/a/b.html', 1, 0],
    ['url', 'http://page.example/a/', 0, 0],
    ['url', 'http://dir.example/x/', 1, 1],
    ['url', 'http://dir.example/x/y', 1, 0],
    ['url', 'http://query.example/p?q=1', 1, 1],
    ['url', 'http://query.example/p', 0, 0],
    ['url', 'http://query.example/p?q=1&r=2', 0, 0],
    ['url', 'http://3221225985/', 1, 1], ['url', 'http://192.0.2.1/x', 1, 0],
);

for my $way (sort keys %ways) {
    subtest "a rule with exact looks up the whole key: $way" => sub {
        for (@cases) {
            my ($form, $key, $found, $exact) = @$_;
            my $k = encoded($key);

            is($t->get("/$way-$form?k=$k")->status, $found ? 403 : 200,
               "the $form key '$key' is " . ($found ? '' : 'not ') . 'found');
            is($t->get("/$way-$form-exact?k=$k")->status, $exact ? 403 : 200,
               "the $form key '$key' is " . ($exact ? '' : 'not ')
               . 'found with exact');
        }
    };
}


subtest 'each part of a list is looked up as a whole key' => sub {
    my $lists = sub {
        my ($way, @keys) = @_;

        return $t->get("/$way?k=" . encoded(join '|', @keys))->status;
    };

    is($lists->('list-url-exact', 'good.example/a', 'page.example/'), 200,
       'no part is found as a whole');
    is($lists->('list-url-exact', 'good.example/a', 'dir.example/x/'), 403,
       'the last part is found as a whole');
    is($lists->('all-url-exact', 'good.example/a', 'dir.example/x/'), 200,
       'one of two parts is not found as a whole');
    is($lists->('all-url', 'good.example/a', 'dir.example/x/'), 403,
       'both parts are found without exact');
    is($lists->('all-url-exact', ('good.example/', 'dir.example/x/') x 40), 403,
       'all parts of a long list are found as a whole');
    is($lists->('all-url-exact', ('good.example/') x 79, 'good.example/x'), 200,
       'the last part of a long list is not found as a whole');
};


subtest 'exact changes neither what is valid nor the canonical key' => sub {
    for my $way (sort keys %ways) {
        for my $exact ('', '-exact') {
            is(outcome($t, "/$way-url$exact?k=http%3A%2F%2F"),
               '403 INVALID url', "an invalid key is rejected: $way$exact");
            is(outcome($t, "/$way-host$exact?k=.."), '403 INVALID host',
               "an invalid host is rejected: $way$exact");
            is(outcome($t, "/$way-cold$exact?k=good.example"),
               '200 UNKNOWN cold', "the answer is unknown: $way$exact");
        }
    }

    for my $way (grep { !/list|all/ } sort keys %ways) {
        is($t->get("/$way-url-exact?k=HTTP://GOOD.example")->header('X-Key'),
           '<good.example/>', "\$bloom_key is the canonical key: $way");
    }
};


subtest 'each action takes exact' => sub {
    outcomes_are($t, <<'END');
    /route?k=good.example     "routed"          bloom_route routes the listed key
    /route?k=good.example/x   "a page"          and passes a key below it
    /pass?k=good.example      200 PASSED url    bloom_pass passes the listed key
    /pass?k=good.example/x    411 REJECTED raw  and not a key below it
    /shield?k=good.example    200 PASSED url    a shield passes the listed key
    /shield?k=good.example/x  404 REJECTED url  and not a key below it
    /fire                     403 REJECTED url  empty=fire holds with exact
    /fire?k=http%3A           403 INVALID url   invalid=fire holds with exact
END
};

done_testing();
