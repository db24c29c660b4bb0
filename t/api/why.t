#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests GET /keys of the endpoint, "Why is this blocked?": it looks up a key in
# all zones and says what the rules of all locations do about it.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new(log_level => 'debug');

my $good = $t->write_file('good.txt', "built\n");

$t->build_image('ids.bloom', ['id1', 'id2', 'built'], '-p', '1e-9',
                '--except-wins', '--except', $good);
$t->build_image('urls.bloom', ['http://evil.example/dir/',
                               'http://both.example/'],
                '-p', '1e-9', '--form', 'url');
$t->build_image('hosts.bloom', ['good.example', 'both.example'],
                '-p', '1e-9', '--form', 'host');
$t->build_image('old.bloom', ['x'], '-p', '1e-9', '--as-of',
                rfc3339(time - 3600 * 24 * 7));

my $conf = <<'CONF';
%%TEST_GLOBALS%%
events { }
http {
%%TEST_GLOBALS_HTTP%%
    access_log off;
    bloom_zone zone=ids file=ids.bloom;
    bloom_zone zone=bad file=urls.bloom label=URLhaus;
    bloom_zone zone=good file=hosts.bloom "label=Our partners";
    bloom_zone zone=old file=old.bloom max_age=1d;
    bloom_zone zone=idle capacity=1k fpr=1e-6;
    bloom_lookup $arg_k $known zone=ids;               # mark:known
    bloom_lookup "$arg_a-$arg_b" $pair zone=idle decode=uri; # mark:pair

    map $request_method $reads { GET 1; HEAD 1; }
    bloom_reject absent $arg_id zone=ids;              # mark:http
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        server_name shop.example www.shop.example;

        location /inherits { try_files /none =204; }
        location = /exact { try_files /none =204; }
        location /go {
            bloom_pass present $arg_url zone=good;     # mark:pass
            bloom_reject present $arg_url zone=bad name=no-evil; # mark:go
            bloom_reject present $arg_url zone=idle status=451;  # mark:idle
            bloom_route present $remote_addr zone=bad to=/slow; # mark:route
            location /go/in { try_files /none =204; }
            location ~ ^/go/(re) {
                bloom_dry_run on;
                try_files /none =204;
            }
            location /go/own {
                bloom_reject present $arg_urls zone=bad split=, match=all
                             invalid=fire empty=fire decode=form; # mark:split
                try_files /none =204;
            }
            try_files /none =204;
        }
        location /trial {
            bloom_dry_run on;
            bloom_reject present $arg_t zone=bad;      # mark:trial
            try_files /none =204;
        }
        location /old {
            bloom_unknown reject;
            bloom_reject present $arg_o zone=old;      # mark:old
            try_files /none =204;
        }
        location /cond {
            bloom_reject present $arg_c zone=bad invalid=pass; # mark:cond
            if ($arg_x) { set $y 1; }
            limit_except GET { deny all; }
        }
        location @named {
            bloom_route present $arg_n zone=bad to=@named;  # mark:named
        }
        location /flags {
            bloom_pass present $arg_f zone=good exact; # mark:exact
            bloom_reject present $arg_f zone=good name=trial dry_run
                         invalid=pass; # mark:dry
            bloom_reject present $arg_f zone=bad exact; # mark:whole
            bloom_reject absent $arg_f zone=good exact; # mark:neither
            try_files /none =204;
        }
        location /if {
            bloom_reject present $arg_i zone=bad if=$reads; # mark:if
            bloom_reject present $arg_i zone=bad if=$reads empty=fire; # mark:if2
            bloom_reject present $arg_i zone=bad if=$arg_if; # mark:other-if
            bloom_reject present $arg_i zone=bad status=410; # mark:always
            bloom_reject present $arg_i zone=bad if=$reads; # mark:last
            try_files /none =204;
        }
        location /off { bloom_rules off; try_files /none =204; }
        location /bloom/ { bloom_api write=on; bloom_rules off; }
        location /reading/ { bloom_api; bloom_rules off; }
    }
    server {                                           # mark:second
        listen 127.0.0.1:%%PORT_8081%%;
        location / { try_files /none =204; }
    }
}
CONF

$t->write_file_expand('nginx.conf', $conf);

my $file = $t->testdir . '/nginx.conf';
my @lines = split /^/, $t->read_file('nginx.conf');

$t->run;


# Returns FILE:LINE of the line that ends with "# mark:NAME", and of a rule, a
# variable or a place.

sub at { return "$file:" . line($_[0]) }


sub line {
    my ($mark) = @_;
    my ($i) = grep { $lines[$_] =~ /# mark:$mark$/ } 0 .. $#lines;

    return $i + 1;
}


sub place { return "$_[0]{file}:$_[0]{line}" }


sub why {
    my ($key, $prefix) = @_;

    $key =~ s/([^\w.:\/-])/sprintf '%%%02X', ord $1/ge;

    return $t->get(($prefix // '/bloom') . "/keys?key=$key")->json;
}


# Returns the rule with a mark.

sub rule {
    my ($answer, $mark) = @_;

    my ($rule) = grep { place($_) eq at($mark) }
                 map { @{ $_->{rules} } } @{ $answer->{lists} };
    return $rule;
}


# Returns what a rule does about a key, and why.

sub effect {
    my ($rule) = @_;

    return join ' ', map { $_ // '-' } $rule->{answer},
        @$rule{grep { exists $rule->{$_} } qw(entry exception)},
        $rule->{effect}, $rule->{decided} ? 'decided' : ();
}


my $evil = 'http://www.evil.example/dir/page?q';


subtest 'each rule has its effect, and the facts that lead to it' => sub {
    my $answer = why($evil);

    is(effect(rule($answer, 'go')), 'present evil.example/dir/ fires',
       'a rule that fires has the entry that its zone finds');
    is($t->get("/go?url=$evil")->status, 403, 'this rule rejects the key');
    is(effect(rule($answer, 'route')), 'present evil.example/dir/ fires',
       'a rule with another key is considered for itself');
    is(effect(rule($answer, 'trial')), 'present evil.example/dir/ fires',
       'a rule in a dry run has its effect');
    is($t->get("/trial?t=$evil")->status, 204, 'a dry run rejects nothing');
    is(effect(rule($answer, 'http')), 'absent fires',
       'a rule on absent keys fires on a key that its zone does not find');
    is(effect(rule($answer, 'idle')), 'absent none decided',
       'a rule whose zone does not find the key has no effect');
    is(effect(rule($answer, 'pass')), 'invalid none',
       'a rule whose zone calls the key invalid may have no effect');
    is(effect(rule($answer, 'old')), 'unknown unknown',
       'a rule whose zone does not know has the effect "unknown"');
    is($t->get("/old?o=$evil")->status, 503,
       'an unknown key gets what bloom_unknown says');
};


subtest 'a rule has the exception that makes its key absent' => sub {
    my $says = sub {
        my ($key, $mark) = @_;
        return effect(rule(why($key), $mark));
    };

    is($says->('id1', 'http'), 'present id1 none',
       'a present key has its entry where a rule does not fire, too');
    is(api($t, POST => 'zones/ids/remove', body => 'id1')->json->{removed}, 1,
       'a key is removed');
    is($says->('id1', 'http'), 'absent id1 removed fires',
       'a removed key is an exception of the kind "removed"');
    api($t, POST => 'zones/ids/keys', body => 'id1');
    is($says->('built', 'http'), 'absent built image_excepted fires',
       'a key of --except is an exception of the kind "image_excepted"');

    api($t, POST => 'zones/bad/remove', body => 'http://evil.example/dir/');
    is($says->($evil, 'go'), 'absent evil.example/dir/ removed none',
       'the entry is the expression that is an exception');
    is($says->($evil, 'whole'), 'absent none',
       'an exact rule does not look at the exception of a directory');
    api($t, POST => 'zones/bad/keys', body => 'http://evil.example/dir/');
};


subtest 'the first rule of a list that fires decides' => sub {
    my $both = why('both.example');

    is(effect(rule($both, 'pass')), 'present both.example fires',
       'a rule that passes a key fires');
    is(effect(rule($both, 'go')), 'present both.example/ fires decided',
       'a later rule with the same key fires, and is decided');
    is(effect(rule($both, 'route')), 'present both.example/ fires',
       'a later rule with another key is not decided');
    is($t->get('/go?url=both.example')->status, 204, 'the key is passed');
};


subtest 'exact, dry_run, invalid=fire' => sub {
    my $parent = why('www.both.example');

    is(effect(rule($parent, 'exact')), 'absent none',
       'an exact rule does not fire on a key whose parent is found');
    is(rule($parent, 'exact')->{exact}, JSON::PP::true,
       'an exact rule is called exact');
    is(effect(rule($parent, 'dry')), 'present both.example fires',
       'a rule that is not exact fires on a key whose parent is found');
    is(rule($parent, 'dry')->{dry_run}, JSON::PP::true,
       'a rule on trial is marked');
    is(effect(rule($parent, 'neither')), 'absent fires',
       'a rule on trial decides nothing: an exact rule on absent keys fires on '
       . 'a key whose parent is found');
    is($t->get('/flags?f=www.both.example')->status, 404,
       'the first rule that fires and is not decided decides the request');

    is(effect(rule(why('both.example'), 'exact')), 'present both.example fires',
       'an exact rule fires on the whole key');
    is($t->get('/flags?f=both.example')->status, 204,
       'the whole key is passed');

    my $invalid = why('http://a<b.example:no/');
    my $split = rule($invalid, 'split');
    is(effect($split), 'invalid fires', 'invalid=fire fires on an invalid key');
    is_deeply([@$split{qw(split match invalid empty decode)}],
              [',', 'all', 'fire', 'fire', 'form'],
              'a rule has its parameters');
    is(effect(rule($invalid, 'go')), 'invalid fires',
       'a block list fires on an invalid key by default');
    is_deeply([@{ rule($invalid, 'go') }{qw(invalid empty if)}],
              ['fire', 'pass', undef], 'a block list has its defaults');
    is_deeply([@{ rule($invalid, 'http') }{qw(invalid empty)}],
              ['pass', 'pass'], 'a shield has its defaults');
    is_deeply([@{ rule($invalid, 'pass') }{qw(invalid empty)}],
              ['pass', 'pass'], 'bloom_pass has its defaults');
    is(effect(rule($invalid, 'cond')), 'invalid none',
       'a rule with invalid=pass does not fire on an invalid key');
};


subtest 'a rule with if= may not run' => sub {
    my $answer = why($evil);

    is(rule($answer, 'if')->{if}, '$reads', 'a rule has its condition');
    is(rule($answer, 'if2')->{empty}, 'fire', 'empty=fire is shown');
    is(join(' ', map { rule($answer, $_)->{decided} ? 1 : 0 }
                     qw(if if2 other-if always last)), '0 1 0 0 1',
       'a rule with if= hides those with the same condition alone');
    is($t->get("/if?i=$evil")->status, 403, 'the condition holds for GET');
    is($t->request('POST', "/if?i=$evil")->status, 410,
       'the rule without a condition decides about POST');
};


subtest 'each zone has its answer' => sub {
    my $answer = why($evil);
    my %zone = map { $_->{name} => $_ } @{ $answer->{zones} };

    is($answer->{key}, $evil, 'the answer has the key decoded');
    is(join(' ', map { $_->{name} } @{ $answer->{zones} }),
       'ids bad good old idle', 'all zones are in the answer, in their order');
    is(join(' ', map { $_->{answer} } @{ $answer->{zones} }),
       'absent present invalid unknown absent', 'each zone has its own answer');
    is($zone{bad}{label}, 'URLhaus', 'a zone has its label');
    is($zone{ids}{label}, undef, 'a zone without a label has null');
    is($zone{good}{reason}, 'has a byte that a host cannot have',
       'the answer says why a key is invalid');
    is($zone{old}{state}, 'stale', 'the state says why a key is unknown');
    ok(!exists $zone{bad}{state}, 'a zone that knows its answer has no state');

    for my $name ('bad', 'good', 'ids') {
        my $alone = api($t, GET => "zones/$name/keys?key=$evil")->json;
        delete @$alone{qw(key bits set)};
        my %all = %{ $zone{$name} };
        delete @all{qw(name label)};
        is_deeply(\%all, $alone,
                  "the answer of zone $name is that of the zone alone");
    }

    unlike($t->get("/bloom/keys?key=$evil")->body, qr/"(?:bits|set)"/,
           'the answer has no bits');
};


subtest 'each list of rules says where it applies' => sub {
    my $answer = why($evil, '/reading');
    my %places = map {
        place($_->{rules}[0]) => join '; ', map {
            join ' ', $_->{server} // '-', $_->{modifier} // (),
                      $_->{location} // '-', $_->{dry_run} ? 'dry' : (),
                      $_->{unknown}
        } @{ $_->{places} }
    } @{ $answer->{lists} };

    is($places{at('http')},
       'shop.example - pass; shop.example /inherits pass; '
       . 'shop.example = /exact pass; - - pass; - / pass',
       'servers and locations inherit a list');
    is($places{at('pass')},
       'shop.example /go pass; shop.example /go/in pass; '
       . 'shop.example ~ ^/go/(re) dry pass',
       'nested locations inherit a list');
    is($places{at('cond')},
       'shop.example /cond pass; shop.example if /cond pass; '
       . 'shop.example limit_except /cond pass',
       'the blocks of a location inherit its list');
    is($places{at('old')}, 'shop.example /old reject',
       'a place says what it does about unknown keys');

    my ($nameless) = grep { !defined $_->{server} }
                     map { @{ $_->{places} } } @{ $answer->{lists} };
    is(place($nameless), at('second'),
       'a server without a name has its place in the configuration');

    my @rules = map { @{ $_->{rules} } } @{ $answer->{lists} };
    my %once;
    is(scalar(grep { $once{ place($_) }++ } @rules), 0,
       'each rule is there once');
    is_deeply([@{ rule($answer, 'go') }{qw(rule action condition key zone
                                           status)}],
              ['no-evil', 'reject', 'present', '$arg_url', 'bad', 403],
              'a rule has its name, action, condition, key, zone and status');
    is(rule($answer, 'idle')->{status}, 451, 'a rule has its own status');
    is(rule($answer, 'route')->{to}, '/slow', 'a rule has its target');
    is(rule($answer, 'pass')->{rule}, at('pass'),
       'a rule without a name is called FILE:LINE, as in metrics');
};


subtest 'variables of bloom_lookup' => sub {
    my $variables = why('id1')->{variables};

    is_deeply($variables, [
        { variable => '$known', file => $file, line => line('known'),
          key => '$arg_k', zone => 'ids', value => '1' },
        { variable => '$pair', file => $file, line => line('pair'),
          key => '$arg_a-$arg_b', decode => 'uri', zone => 'idle',
          value => '0' },
    ], 'each variable has the value that it has for this key');
};


subtest 'keys and errors' => sub {
    for my $path ('keys', 'keys?key=', 'keys?k=id1') {
        my $r = api($t, GET => $path);
        is_error($r, 400, qr/\/bloom\/keys\?key=K/,
                 "GET $path is refused because it names no key");
        is($r->json->{error}{code}, 'bad_query', "GET $path has a code");
    }
    is_error(api($t, $_ => 'keys?key=id1'), 405, qr/./,
             "$_ of all keys is refused")
        for qw(POST PUT DELETE);
    is($t->head('/bloom/keys?key=id1')->status, 200, 'HEAD works');
    is(api($t, GET => 'keys/?key=id%31+')->json->{key}, 'id1 ',
       'the key is form-decoded');
    is(api($t, GET => 'keys?key=id1', headers => { 'If-Match' => '"x"' })
           ->status, 200, 'If-Match does not prevent reading');

    # bytes that a terminal obeys, or that are not UTF-8

    for my $key ("\e[2J\0\n\r\x7f", "\xc2\x9b2J", "\xe2\x80\xaeelpmaxe",
                 "\xff\xfe\x80", '"\\/<script>', "\xf0\x9f\x98\x80",
                 "http://evil.example/dir/\xe2\x80\xae\xc2\x85\e")
    {
        (my $query = $key) =~ s/([^\w])/sprintf '%%%02X', ord $1/ge;
        my $r = $t->get("/bloom/keys?key=$query");
        is($r->status, 200, 'a key may have any bytes');
        ok(eval { $r->json; 1 }, 'the answer is JSON') or diag($@);
        unlike($r->body, qr/[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|
                            \xe2\x80[\x8e\x8f\xa8-\xae]/x,
               'the answer has no byte that a terminal obeys');
    }
    is(why("\xe2\x80\xae")->{key}, "\x{202e}",
       'a program reads the character as it is');
};


subtest 'nothing is counted or changed' => sub {
    my $before = api($t, GET => 'metrics')->body;
    why($evil) for 1 .. 3;
    my $after = api($t, GET => 'metrics')->body;

    my $counts = sub {
        return join "\n", grep { /_(?:total)\{/ } split /\n/, $_[0];
    };
    is($counts->($after), $counts->($before), 'no counter changes');
};


done_testing;
