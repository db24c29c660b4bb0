#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests `bloom_api zone=`: at that location, other zones do not exist.  Their
# names, rules, keys and counts are in no response, and no request changes them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

use constant MANY => 300;             # more than are counted separately

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image("$_.bloom", ['http://evil.example/', "http://$_.example/"],
                '-p', '1e-9', '--form', 'url')
    for qw(shown hidden third);
$t->build_image('other.bloom', ['http://new.example/'], '-p', '1e-9',
                '--form', 'url');

# `first` and `last` are declared after the locations that name them

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
%%TEST_GLOBALS_HTTP%%
    access_log off;
    bloom_zone zone=hidden file=hidden.bloom form=url label=Confidential;
    bloom_lookup $arg_hiding $is_hidden zone=hidden;
    bloom_lookup $arg_k $is_shown zone=shown;
    bloom_lookup $arg_k $is_third zone=third;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        client_max_body_size 0;

        location /mixed {
            bloom_reject present $arg_k zone=hidden name=hidden-first;
            bloom_reject present $arg_k zone=shown name=shown-middle;
            bloom_reject present $arg_k zone=hidden name=hidden-last
                         status=451;
            try_files /none =204;
        }
        location /hiding {
            bloom_reject present $arg_hiding zone=hidden name=hidden-alone;
            try_files /none =204;
        }
        location /plain {
            bloom_reject present $arg_k zone=shown name=shown-first;
            bloom_reject present $arg_k zone=third name=third-last;
            try_files /none =204;
        }
        location /hidden-place {
            bloom_unknown reject;
            bloom_reject absent $arg_k zone=hidden name=hidden-absent;
            try_files /none =204;
        }

        location /shown/ {
            bloom_api write=on zone=shown;
            if ($arg_in_if) { set $x 1; }
        }
        location /two/ { bloom_api zone=third zone=shown; }
        location /reads/ { bloom_api zone=hidden; }
        location /bloom/ { bloom_api; }
    }
    bloom_zone zone=third file=third.bloom form=url;
    bloom_zone zone=shown file=shown.bloom form=url;
}
CONF
$t->run;

my $lookup = 'keys?key=http://evil.example/';


sub names { return [map { $_->{name} } @{ $_[0]->json->{zones} }] }


# Returns what a response says, without what depends on the time and on the name
# of a zone.

sub said {
    my ($response, $zone) = @_;

    my $text = "$response";
    $text =~ s/^Date: [^\r\n]*//m;
    $text =~ s/\b$zone\b/NAME/g;

    return $text;
}


subtest 'lists have only the zones that exist there' => sub {
    is_deeply($t->get('/shown/')->json->{zones}, ['shown'],
              'the index has one zone');
    is_deeply($t->get('/two/')->json->{zones}, ['third', 'shown'],
              'the index has two zones, in the order of the parameters');
    is_deeply([sort @{ $t->get('/bloom/')->json->{zones} }],
              ['hidden', 'shown', 'third'],
              'without zone= the index has all zones');

    is_deeply(names($t->get('/shown/zones')), ['shown'], 'zones has one zone');
    is_deeply(names($t->get('/two/zones')), ['third', 'shown'],
              'zones has two zones');
    is(scalar @{ names($t->get('/bloom/zones')) }, 3,
       'without zone=, zones has all zones');
    is($t->get('/shown/zones/shown')->json->{name}, 'shown',
       'the state of a zone is shown');
};


# every kind of request for a zone: method, path, body

my @requests = (
    [GET => ''], [HEAD => ''], [GET => '/keys?key=a'], [GET => '/rates'],
    [GET => '/removed'], [GET => '/image'], [GET => '/nothing'],
    [POST => '/test', "a\n"], [POST => '/keys', "http://new.example/\n"],
    [POST => '/remove', "http://evil.example/\n"],
    [DELETE => '/keys?key=http://evil.example/'],
    [POST => '/changes?after=0&position=1', "+a\n"],
    [POST => '/gap?position=1'], [POST => '/reload'], [POST => '/checkpoint'],
    [POST => '/clear'], [PUT => '/image', $t->read_file('other.bloom')],
    [PATCH => ''], [POST => '/clear?in_if=1'],
);

subtest 'another zone is answered as one that does not exist' => sub {
    my $before = zone_state($t, 'hidden');

    for (@requests) {
        my ($method, $path, $body) = @$_;

        my ($hidden, $absent) = map {
            $t->request($method, "/shown/zones/$_$path", body => $body // '')
        } 'hidden', 'nobody';

        is($hidden->status, 404, "$method $path is answered with 404");
        is(said($hidden, 'hidden'), said($absent, 'nobody'),
           "$method $path is answered as for a zone that does not exist");
    }

    my $after = zone_state($t, 'hidden');
    is($after->{generation}, $before->{generation},
       'no request has loaded an image');
    is_deeply([lookup_keys($t, 'hidden', 'http://evil.example/',
                           'http://new.example/')], ['present', 'absent'],
              'no request has changed the zone');
};


subtest 'no response mentions another zone or its rules' => sub {
    for my $path ('', 'zones', 'metrics', $lookup, 'keys?key=hidden.test',
                  'keys?key=http://hidden.example/', 'zones/shown',
                  "zones/shown/$lookup", 'zones/shown/removed')
    {
        my $r = $t->get("/shown/$path");
        is($r->status, 200, "GET $path answers");

        my $body = $r->body;
        $body =~ s/"key":"[^"]*"//g if $path =~ /key=/;
        unlike($body =~ s/hidden\.(?:test|example)//gr,
               qr/hidden|Confidential|third|arg_hiding/,
               "GET $path tells nothing of another zone");
    }

    unlike($t->request(GET => '/shown/', headers => { Accept => 'text/html' })
             ->body, qr/Confidential|hidden-/,
           'the page tells nothing of another zone');
};


subtest 'rules of other zones do not exist for "why"' => sub {
    my $why = $t->get("/shown/$lookup")->json;

    is_deeply(names($t->get("/shown/$lookup")), ['shown'],
              'the key is looked up in one zone');
    is_deeply([map { [map { $_->{rule} } @{ $_->{rules} }] }
                   @{ $why->{lists} }],
              [['shown-middle'], ['shown-first']],
              'the lists have the rules of the zone, and no list is empty');
    is_deeply([map { scalar @{ $_->{places} } } @{ $why->{lists} }], [1, 1],
              'each list has its place');
    is_deeply([map { $_->{effect} . ($_->{decided} ? ' decided' : '') }
                   map { @{ $_->{rules} } } @{ $why->{lists} }],
              ['fires', 'fires'],
              'a rule of another zone does not decide before');
    is_deeply([map { $_->{variable} } @{ $why->{variables} }], ['$is_shown'],
              'the variables are those of the zone');

    my $all = $t->get("/bloom/$lookup")->json;
    my ($middle) = grep { $_->{rule} eq 'shown-middle' }
                   map { @{ $_->{rules} } } @{ $all->{lists} };
    ok($middle->{decided}, 'without zone=, the rule before it decides');
    is(scalar @{ $all->{lists} }, 4, 'without zone=, there are all lists');
    is(scalar @{ $all->{variables} }, 3,
       'without zone=, there are all variables');

    my $only = $t->get('/shown/keys?key=http://hidden.example/')->json;
    is_deeply([map { $_->{effect} }
                   map { @{ $_->{rules} } } @{ $only->{lists} }],
              ['none', 'none'],
              'a key that only another zone has is found by no rule');

    my $two = $t->get("/two/$lookup");
    is_deeply(names($two), ['third', 'shown'], 'two zones are asked');
    is_deeply([map { $_->{answer} } @{ $two->json->{zones} }],
              ['present', 'present'], 'each of two zones has its own answer');
    is_deeply([map { $_->{answer} } @{
                  $t->get('/two/keys?key=http://third.example/')->json->{zones}
              }], ['present', 'absent'],
              'the answers of two zones are not exchanged');
};


subtest 'metrics have only the zones and their rules' => sub {
    $t->get('/mixed?k=http://evil.example/');

    my $metrics = $t->get('/shown/metrics')->body;
    like($metrics, qr/^nginx_bloom_state\{zone="shown",/m,
         'the metrics have the zone');
    like($metrics, qr/^nginx_bloom_rule_checks_total\{rule="shown-middle",/m,
         'the metrics have the rules of the zone');
    is_deeply([grep { !/zone="shown"|^nginx_bloom_build_info|^#/ }
                   split /\n/, $metrics], [],
              'each sample belongs to the zone');
    like($t->get('/reads/metrics')->body,
         qr/^nginx_bloom_rule_requests_total\{rule="hidden-first",.*\} 1$/m,
         'the rule of the other zone has counted');
};


subtest 'a zone takes additions only where it exists with write=on' => sub {
    ok(-d "$dir/state/shown", 'the zone of write=on has a state directory');
    ok(!-e "$dir/state/$_", "zone $_, which nothing changes, has none")
        for qw(hidden third);

    is($t->request(POST => '/shown/zones/shown/keys',
                   body => "http://new.example/\n")->status, 200,
       'keys are added where the zone exists');
    is_error($t->request(POST => '/two/zones/shown/keys', body => "x\n"), 403,
             qr/write=on/, 'a zone that exists without write=on is read-only');
    is_error($t->request(POST => '/reads/zones/hidden/keys', body => "x\n"),
             403, qr/write=on/, 'another location has its own write=');
};


subtest 'counts shared with other zones are shown only where all exist' => sub {
    my $conf = $t->read_file('nginx.conf');
    my $many = join "\n", map {
        "bloom_zone zone=z$_ capacity=1k fpr=0.1 journal=off;"
    } 1 .. MANY;
    my $last = 'z' . MANY;
    my $before = 'z' . (MANY - 1);

    $conf =~ s/(\n    server \{)/\n$many\n
        bloom_lookup \$arg_k \$many zone=$before;$1
        location \/added {
            bloom_reject present \$arg_k zone=hidden name=hidden-added;
        }
        location = \/many { return 200 "\$many\\n"; }
        location \/last\/ { bloom_api write=on zone=$last; }/ or die;
    $t->write_file('nginx.conf', $conf);
    $t->reload;

    is($t->get('/many?k=x')->body, "0\n", 'another zone is asked');
    is(zone_state($t, $last)->{counters}{absent}, 1,
       'without zone=, zones that are counted together show the sum');
    is($t->get("/last/zones/$last")->json->{counters}{absent}, 0,
       'with zone=, such a zone does not show it');
    is($t->get('/last/zones')->json->{zones}[0]{counters}{absent}, 0,
       'with zone=, such a zone does not show it in the list of zones');
    is($t->request(POST => "/last/zones/$last/clear")
         ->json->{zone}{counters}{absent}, 0,
       'with zone=, such a zone does not show it in the response to a change');
    like($t->get('/last/metrics')->body,
         qr/^nginx_bloom_checks_total\{zone="$last",answer="absent"\} 0$/m,
         'with zone=, such a zone does not show it in the metrics');

    like($t->get('/bloom/metrics')->body, qr/\{rule="other",zone="other"/,
         'without zone=, rules that are counted together are shown');
    unlike($t->get("/$_/metrics")->body, qr/"other"/,
           "with zone=, they are not shown by /$_/") for qw(shown reads last);
};


done_testing;
