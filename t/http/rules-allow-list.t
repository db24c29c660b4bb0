#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests allow lists beside a list of URLs, of which half are on allowed hosts:
# an allow list before it opens it, and the ways that the documentation gives do
# not.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# Of the listed URLs, those of @below are on allowed hosts.

my @hosts = map { "code$_.example" } 1 .. 100;

my @below = map { ("http://$_/mallory/setup.exe",
                   "https://files.$_/a/b/c/d/e/f.zip?x=1", "http://$_:8080/d/")
                } @hosts[0 .. 49];
my @elsewhere = map { ("http://bad$_.example/x", "http://192.0.2.$_/i/") }
                    1 .. 75;

# Listed hosts: an allowed one, the parent of an allowed one, and others.

my @sites = ('code7.example', 'shared.example', 'evil.example',
             map { "evil$_.example" } 1 .. 20);
my $spared = 'good.shared.example';

# Pages that are listed by mistake.

my @pages = ('http://code1.example/mallory/setup.exe', 'http://bad7.example/x');

my @options = ('-p', '1e-9', '--seed', 1, '--form', 'url');

$t->build_image('urls.bloom', [@below, @elsewhere], @options);
$t->build_image('sites.bloom', \@sites, @options);
$t->build_image('hosts.bloom', [@hosts, $spared], @options);
$t->build_image('pages.bloom', \@pages, @options);

my $allowed = join "\n", map { "        .$_ urls;" } @hosts, $spared;

configure_rules($t, {}, <<"CONF", backend => 8081);
    bloom_zone zone=urls file=%%TESTDIR%%/urls.bloom;
    bloom_zone zone=sites file=%%TESTDIR%%/sites.bloom;
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=pages file=%%TESTDIR%%/pages.bloom;
    bloom_arg url \$url;

    map_hash_bucket_size 128;

    map \$url \$plain_host {
        "~*^https?://(?<in_url>[a-z0-9.-]+)(:[0-9]*)?(/|\\z)" \$in_url;
        default "";
    }

    map \$plain_host \$lists {
        hostnames;
$allowed
        default urls,sites;
    }

    map \$lists \$unless_allowed {
        urls    "";
        default \$url;
    }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "\$bloom_status \$bloom_zone" always;

        location = /trap {
            bloom_pass present \$url zone=hosts;
            bloom_reject present \$url zone=urls;
            bloom_reject present \$url zone=sites;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /exact {
            bloom_pass present \$url zone=hosts exact;
            bloom_reject present \$url zone=urls;
            bloom_reject present \$url zone=sites;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /pages {
            bloom_pass present \$url zone=pages exact;
            bloom_reject present \$url zone=urls;
            bloom_reject present \$unless_allowed zone=sites;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /hosts {
            bloom_reject present \$url zone=urls;
            bloom_reject present \$unless_allowed zone=sites;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF
$t->run;


# Returns those of the URLs that pass.

sub passing {
    my ($path, @urls) = @_;

    return grep { $t->get("$path?url=" . encoded($_))->status == 200 } @urls;
}


subtest 'an allow list of hosts before a list of URLs opens it' => sub {
    my ($exit, $output) = $t->test_config;
    my @opened = $output =~ /listed URLs pass the rule in .*? in \S+:(\d+) /g;
    my @lines = split /\n/, $t->read_file('nginx.conf');

    is(join('|', map { $lines[$_ - 1] =~ /(zone=.*);/ } @opened), 'zone=hosts',
       'nginx -t warns of the allow list, and of no other');

    is_deeply([passing('/trap', @below)], \@below,
              'each listed URL on an allowed host passes');
    is(join(' ', passing('/trap', @elsewhere)), '',
       'no other listed URL passes');
};


subtest 'with exact, no listed URL passes' => sub {
    is(join(' ', passing('/exact', @below, @elsewhere)), '',
       'no listed URL passes');
    is(outcome($t, '/exact?url=http://code7.example/'), '200 PASSED hosts',
       'the front page of a host on both lists passes');
    is(outcome($t, '/exact?url=http://code7.example/x'), '403 REJECTED sites',
       'another page of it does not pass');
};


subtest 'an allow list of pages allows these pages alone' => sub {
    is_deeply([passing('/pages', @below, @elsewhere)], \@pages,
              'of the listed URLs, only the allowed pages pass');
    is(join(' ', passing('/pages', map { "$_?x" } @pages)), '',
       'an allowed page with a query does not pass');
};


subtest 'allowed hosts after the list of URLs are spared listed hosts' => sub {
    is(join(' ', passing('/hosts', @below, @elsewhere)), '',
       'no listed URL passes');
    is_deeply([passing('/hosts', map { "http://$_/alice" } @hosts)],
              [map { "http://$_/alice" } @hosts],
              'other URLs on all allowed hosts pass');

    for (["http://$spared/a", '200 PASSED urls', 'an allowed host'],
         ["http://a.$spared:80/a", '200 PASSED urls', 'below an allowed host'],
         ['http://code7.example', '200 PASSED urls', 'a host on both lists'],
         ['http://shared.example/a', '403 REJECTED sites', 'a listed host'],
         ['http://evil7.example/', '403 REJECTED sites', 'another listed host'],
         ["http://$spared\@evil.example/", '403 REJECTED sites',
          'a listed host with a user'],
         ["http://${spared}:80\@evil.example/", '403 REJECTED sites',
          'a listed host with a user and a password'],
         ["http://$spared\t.evil.example/", '403 REJECTED sites',
          'a listed host with a tab'],
         ["\thttp://evil.example/", '403 REJECTED sites',
          'a listed host after a tab'],
         ["http://%67ood.shared.example/", '403 REJECTED sites',
          'an allowed host in another spelling'])
    {
        my ($url, $want, $what) = @$_;
        is(outcome($t, '/hosts?url=' . encoded($url)), $want, $what);
    }
};

done_testing();
