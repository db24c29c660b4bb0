#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# $bloom_match is the expression that a rule on "present" has found: at the
# time of the decision, in whatever form, and still after an internal redirect.
# $bloom_label names the list.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %list = (
    raw => ['Evil.Example', 'a<b>'],
    lower => ['evil.example'],
    host => ['evil.example', '10.0.0.1', 'xn--bcher-kva.example',
             '2001:db8::1'],
    url => ['evil.example/', 'page.example/a/b.html?q=1', '[2001:db8::1]/',
            'dir.example/x/', 'page.example/a/b.html', 'www.page.example/a/',
            "page.example/<'&>"],
    other => ['good.example/', 'third.example/'],
);

$t->build_image("$_.bloom", $list{$_}, '-p', '1e-9', '--seed', 1, '--form',
                $_ eq 'other' ? 'url' : $_)
    for sort keys %list;

my @forms = grep { $_ ne 'other' } sort keys %list;
my $locations = join '', map { <<"CONF" } @forms;
        location = /$_ { bloom_reject present \$arg_k zone=$_ decode=form; }
        location = /list/$_ {
            bloom_reject present \$arg_k zone=$_ decode=form split=,;
        }
CONF

configure_rules($t, {}, <<"CONF");
    large_client_header_buffers 4 64k;
    bloom_zone zone=raw file=%%TESTDIR%%/raw.bloom;
    bloom_zone zone=lower file=%%TESTDIR%%/lower.bloom;
    bloom_zone zone=host file=%%TESTDIR%%/host.bloom "label=Bad hosts";
    bloom_zone zone=url:1m file=%%TESTDIR%%/url.bloom label=URLhaus;
    bloom_zone zone=other file=%%TESTDIR%%/other.bloom;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        error_page 403 /refused;
        location = /refused {
            internal;
            return 403 "\$bloom_zone|\$bloom_label|\$bloom_key|\$bloom_match|";
        }
        location /bloom/ { bloom_api write=on; }
$locations
        location /other/ {
            add_header X-Match "\$bloom_zone|\$bloom_label|\$bloom_match|";
            location = /other/pass {
                bloom_pass present \$arg_k zone=url;
                try_files /page =500;
            }
            location = /other/absent {
                bloom_pass absent \$arg_k zone=url;
                bloom_reject absent \$arg_k zone=url;
                try_files /page =500;
            }
            location = /other/empty {
                bloom_reject present \$arg_k zone=url invalid=fire empty=fire
                             status=404;
                try_files /page =500;
            }
            location = /other/routed {
                bloom_route present \$arg_k zone=url to=\@routed;
                try_files /page =500;
            }
            location = /other/dry {
                bloom_dry_run on;
                bloom_reject present \$arg_k zone=other;
                bloom_route present \$arg_k zone=url to=\@routed;
                try_files /page =500;
            }
            location = /other/unchecked { try_files /page =500; }
        }
        location \@routed {
            add_header X-Match "\$bloom_zone|\$bloom_label|\$bloom_match|";
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /together {
            bloom_reject present \$arg_a zone=raw;
            bloom_reject present \$arg_b zone=url;
            bloom_reject present \$arg_c zone=host;
            bloom_reject present \$arg_d zone=lower;
            bloom_reject present \$arg_e zone=other;
            try_files /page =500;
        }
    }
CONF
$t->write_file('html/page', 'a page');

# The backend has another image loaded while it handles a request.

my $backend = $t->backend(8081, sub {
    replace_file($t, 'url.bloom', $t->read_file('raw.bloom'));
    api($t, POST => 'zones/url/reload')->status == 200 or die 'no reload';

    return { body => 'routed' };
});
$t->run;


# Returns the zone, label, key and match of a request that is refused.

sub refused {
    my ($where, $key) = @_;

    my $r = $t->get("/$where?k=" . encoded($key));
    is($r->status, 403, "'$key' is refused") or diag($r);

    return split /\|/, $r->body, -1;
}


subtest 'the expression that the API shows' => sub {
    for (['raw', 'Evil.Example', 'a<b>'],
         ['lower', 'EVIL.example'],
         ['host', 'evil.example', 'a.b.EVIL.example.:80',
          "B\xc3\x9cCHER.example",
          'www.a+b.evil.example', '0xa.1', '[2001:DB8:0::1]:443',
          "ab--c\xe3\x80\x82evil.example", "a\0.evil.example",
          'x@%65vil.example'],
         ['url', 'http://evil.example/',
          'HTTPS://u:p@WWW.Evil.Example.:443/x?y',
          'http://page.example/a/./c/../b.html?q=1#x', '//evil.example:/x',
          'http://www.page.example//a//b.html?q=1', 'http://dir.example/x/y/z',
          'http://www.page.example/a/c', 'http://page.example/a/b.html?q=2',
          "http://page.example/<'&>", "http://page.example/\%3c%27&>",
          'http://!*%EF%BC%8Ea-%EF%BD%A1evil.example/',
          'http://[2001:DB8::1]/x',
          "http://a\0b.evil.example/\xff<script>", 'ftp:evil.example\\x',
          'http://a.b.c.d.e.f.g.evil.example/1/2/3/4/5/6?7',
          'evil.example/' . 'x' x 10_000])
    {
        my ($form, @keys) = @$_;

        for my $key (@keys) {
            my $asked = api($t, GET => "zones/$form/keys?key=" . encoded($key))
                            ->json;
            my @found = grep { $_->{present} } @{ $asked->{expressions} };

            my ($zone, undef, $canonical, $match) = refused($form, $key);
            my $name = substr($key, 0, 40) =~ s/([^ -~])/?/gr;

            is($zone, $form, "the zone of '$name'");
            is($canonical, $asked->{expressions}[0]{key}, "the key of '$name'");
            is($match, $found[0]{key}, "the expression of '$name'");
            ok(scalar(grep { $_ eq $match } @{ $list{$form} }),
               "the expression of '$name' is in the list");
            cmp_ok(index($canonical, $match), '>=', 0,
                   "the expression of '$name' is a part of the key");

            # the first part of a list that is found

            my $part = (refused("list/$form",
                                "no.example,, $key ,evil.example"))[3];
            is($part, $match, "the expression of '$name' in a list");
        }
    }
};


subtest 'lists with many parts' => sub {
    my @no = map { "no$_.example/$_/$_?x" } 1 .. 70;

    is((refused('list/url', join ',', @no, 'http://www.DIR.example/x/y', @no,
                'evil.example'))[3],
       'dir.example/x/', 'the first part that is found gives the expression');
    is((refused('list/raw', join ',', @no, 'a<b>', 'Evil.Example'))[3],
       'a<b>', 'also in the form raw');
};


subtest 'the label of the list' => sub {
    is((refused('url', 'evil.example'))[1], 'URLhaus', 'the label of url');
    is((refused('host', 'evil.example'))[1], 'Bad hosts', 'the label of host');
    is((refused('raw', 'a<b>'))[1], 'raw',
       'the name of a zone without a label');
};


subtest 'the rule that decides, of several' => sub {
    for (['a=a<b>', 'raw|raw|a<b>|a<b>|'],
         ['a=x&b=www.evil.example/y',
          'url|URLhaus|www.evil.example/y|evil.example/|'],
         ['b=no.example&c=x.evil.example',
          'host|Bad hosts|x.evil.example|evil.example|'],
         ['b=no.example&c=no.example&d=Evil.Example',
          'lower|lower|evil.example|evil.example|'],
         ['c=no.example&d=x&e=a.good.example',
          'other|other|a.good.example/|good.example/|'])
    {
        my ($query, $want) = @$_;
        is($t->get("/together?$query")->body, $want, "?$query");
    }

    is($t->get('/together?a=x&b=no.example&c=no.example&d=x&e=no.example')
           ->body, 'a page', 'no rule fires');
};


subtest 'rules that do not find a key' => sub {
    my %want = (
        'pass?k=www.evil.example/x' => 'url|URLhaus|evil.example/|',
        'pass?k=no.example' => 'url|URLhaus||',
        'absent?k=evil.example/' => 'url|URLhaus||',
        'absent?k=no.example/' => 'url|URLhaus||',
        'dry?k=x.good.example' => 'other|other|good.example/|',
        'dry?k=no.example' => 'url|URLhaus||',
        'unchecked?k=evil.example' => '|||',
    );

    is($t->get("/other/$_")->header('X-Match'), $want{$_}, "/other/$_")
        for sort keys %want;

    # after a request that has found something

    refused('url', 'http://dir.example/x/y/z');
    is($t->get("/other/empty?k=$_")->status, 404, "an invalid key '$_' fires")
        for '', '/x';
};


subtest 'what was found when the request was decided' => sub {
    my $r = $t->get('/other/routed?k=http://page.example/a/b.html?q=2');
    is($r->body, 'routed', 'the backend has had another image loaded');
    is($r->header('X-Match'), 'url|URLhaus|page.example/a/b.html|',
       'the expression is that of the image before');
    is(zone_state($t, 'url')->{image}{form}, 'raw',
       'an image of another form serves');
    is(zone_state($t, 'url')->{label}, 'URLhaus', 'the label is in the state');
};


done_testing;
