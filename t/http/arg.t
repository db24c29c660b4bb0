#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_arg: its variable is the argument of exactly one name, decoded as
# a form decodes it, and a key made of an argument with several values is
# invalid.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

# In a zone of key form raw, only an argument with several values is invalid.

my $absent = 'bloom_reject absent $id zone=ids';
my $kept = 'set $kept $id; bloom_reject present';

my %rules = (
    '= /value' => 'bloom_reject present $id zone=added invalid=fire status=409;
                   add_header X-Escaped "<$id_escaped>" always;
                   try_files /none /shown?$args',
    '= /shown' => 'add_header X-Escaped "<$id_escaped>" always;
                   return 200 "<$id>"',

    absent   => "$absent invalid=fire empty=fire status=410",
    passing  => $absent,
    composed => 'bloom_reject absent "$id:$other" zone=ids invalid=fire
                 status=410',
    'composed-empty' => 'bloom_reject absent "$id$other" zone=ids empty=fire
                         status=410',
    list     => "$absent split=, invalid=fire status=410",
    two      => "bloom_reject present \$other zone=ids status=481 invalid=pass;
                 $absent status=482 invalid=fire",
    'two-first' => "$absent status=481 invalid=fire;
                    bloom_reject present \$other zone=ids status=482",
    block    => 'bloom_reject present $id zone=ids',

    # a value that goes through a map, a set or bloom_lookup

    'by-map'        => 'bloom_reject present $through zone=ids',
    'by-map-pass'   => 'bloom_reject present $through zone=ids invalid=pass',
    'by-map-shield' => 'bloom_reject absent $through zone=ids;
                        bloom_reject absent "$through$arg_more" zone=ids
                        empty=fire status=410',
    'by-set'        => "$kept \$kept zone=ids",
    'by-set-list'   => "$kept \"\$kept\" zone=ids split=,",
    'by-set-two'    => "$kept \$host zone=ids status=481;
                        bloom_reject present \$kept zone=ids status=482",
    'by-lookup'     => 'set $x 1; if ($known = 2) { return 500; }
                        bloom_reject present $other zone=ids status=481;
                        bloom_reject present "$arg_more" zone=ids status=482;
                        proxy_pass http://127.0.0.1:%%PORT_8081%%',

    '= /names'  => 'return 200 "<$odd><$ids><$arg_lower>"',
    '= /known'  => 'set $x "$known|$both_known"; return 200 "$x"',
    '= /mapped' => 'return 200 "$mapped"',
    checked => "$absent invalid=fire empty=fire;
                proxy_pass http://127.0.0.1:%%PORT_8082%%/item?id=\$id_escaped",
    header  => "$absent invalid=fire empty=fire;
                proxy_set_header X-Id \$id_escaped;
                proxy_pass http://127.0.0.1:%%PORT_8082%%/item",
    adds    => 'bloom_add $id zone=added',

    rewritten => 'rewrite ^ /shown?id=new? last',
    replaced  => 'set $before $id; set $args id=new;
                  return 200 "<$before><$id>"',
    'ssi/'    => 'ssi on',
);

configure_rules($t, { ids => ['one', 'a b', 'x&y', "two\r\nlines", 'a:b'] },
                <<'CONF' . locations(\%rules, 8081) . '}', backend => 8081);
    large_client_header_buffers 4 64k;
    bloom_zone zone=added capacity=1k fpr=1e-9;
    bloom_state_path %%TESTDIR%%/state;

    bloom_arg id $id $id_escaped;
    bloom_arg other $other;
    bloom_arg "a b+%41" $odd;
    bloom_arg ids[] $ids;
    bloom_arg lower $arg_lower;

    bloom_lookup $id $known zone=ids;
    bloom_lookup "$id:$other" $both_known zone=ids;
    map $id $mapped { default "<$id>"; }
    map $id $through { default $id; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        location /bloom/ { bloom_api; }
CONF

$t->write_file('html/ssi/page.html',
    '<!--# include virtual="/shown?id=none" -->'
    . '<!--# include virtual="/shown?id=a&id=b" -->'
    . '<!--# include virtual="/shown" -->');

my $backend = $t->backend(8082, sub { 'backend' });

$t->run;


# Returns what the URL Standard says about a query: "<value>" or "several".

sub expected {
    my ($name, $query) = @_;

    my %seen;

    for (grep { length } split /&/, $query) {
        my ($n, $v) = split /=/, $_, 2;
        $v //= '';
        s/\+/ /g, s/%([0-9A-Fa-f]{2})/chr hex $1/ge for $n, $v;
        $seen{$v} = 1 if $n eq $name;
    }

    return keys %seen > 1 ? 'several' : '<' . join('', keys %seen) . '>';
}


# Returns what the module says about it, in the same form.

sub got {
    my ($response) = @_;

    return 'several' if $response->status == 409;
    return "status " . $response->status if $response->status != 200;

    my $escaped = $response->header('X-Escaped');
    return "escaped '$escaped'"
        unless $escaped =~ /^<(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})*>$/;
    return "not '$escaped'" if $escaped =~ s/%(..)/chr hex $1/ger
                               ne $response->body;

    return $response->body;
}


subtest 'the variable is the argument of exactly this name' => sub {
    for (# query, value
         ['id=x', '<x>'], ['ID=x', '<>'], ['Id=x&id=y', '<y>'],
         ['id=x&ID=y', '<x>'], ['%69d=x', '<x>'], ['i%64=x', '<x>'],
         ['i%44=x', '<>'], ['idx=x', '<>'], ['xid=x', '<>'], ['id', '<>'],
         ['id=', '<>'], ['', '<>'], ['&&id=x&&', '<x>'], ['=x', '<>'],
         ['id=x=y', '<x=y>'], ['x=id=y', '<>'], ['id%3dx', '<>'],
         ['id%00=x', '<>'], ['id+=x', '<>'], ['id=x&', '<x>'],
         ['x?id=y', '<>'], ['id=%26id=y', '<&id=y>'])
    {
        my ($query, $value) = @$_;
        is(expected('id', $query), $value, "the standard reads ?$query");
        is(got($t->get("/value?$query")), $value, "the module reads ?$query");
    }

    is(got($t->get('/value?id=x#&id=y')), '<x>',
       'the text after # is not part of the query');

    is($t->get('/names?a+b%2b%2541=1&ids%5B%5d=2&lower=3')->body, '<1><2><3>',
       'a name may have any bytes');
    is($t->get('/names?ids[]=2&a%20b%2B%25%34%31=1&LOWER=3')->body,
       '<1><2><>', 'a name may be written in many ways');
};


subtest 'the variable is decoded as a form' => sub {
    for (['a+b', '<a b>'], ['a%20b', '<a b>'], ['a%2Bb', '<a+b>'],
         ['a%2bb', '<a+b>'], ['%c3%a9', "<\xc3\xa9>"], ['%ff', "<\xff>"],
         ['%', '<%>'], ['%4', '<%4>'], ['%zz', '<%zz>'], ['%%41', '<%A>'],
         ['100%', '<100%>'], ['%2541', '<%41>'], ['%00', "<\0>"],
         ['%0d%0aX', "<\r\nX>"], ['x;id=y', '<x;id=y>'], ['~-._', '<~-._>'])
    {
        my ($sent, $value) = @$_;
        my $name = $value =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger;
        is(got($t->get("/value?id=$sent")), $value,
           "the value of ?id=$sent is $name");
    }
};


subtest 'an argument with several values is invalid' => sub {
    for (['id=x&id=y', 'several'], ['id=x&id=x', '<x>'],
         ['id=a+b&id=a%20b&%69d=a%20%62', '<a b>'], ['id=x&id=', 'several'],
         ['id&id=x', 'several'], ['id&id=', '<>'], ['id=x&id=X', 'several'],
         ['id=x&id=xy', 'several'], ['id=xy&id=x', 'several'],
         ['id=x&i%64=y', 'several'], ['id=x&ID=y', '<x>'],
         ['id=x&id=x&id=y', 'several'], ['id=%&id=%25', '<%>'])
    {
        my ($query, $value) = @$_;
        is(got($t->get("/value?$query")), $value, "the value of ?$query");
    }

    outcomes_are($t, <<'END');
/absent?id=one                      200 PASSED ids
/absent?id=one&id=one               200 PASSED ids
/absent?id=one&id=two               410 INVALID ids
/absent?id=one&id=                  410 INVALID ids
/absent?ID=one                      410 REJECTED ids
/passing?id=one&id=none             200 INVALID ids
/passing?id=none                    404 REJECTED ids
/passing?                           200
/block?id=none&id=one               403 INVALID ids
/block?id=none                      200 PASSED ids
/block?                             200
/composed?id=a&other=b              200 PASSED ids
/composed?id=a&other=c              410 REJECTED ids
/composed?id=a&other=b&id=c         410 INVALID ids
/composed?id=a&other=b&other=c      410 INVALID ids
/composed-empty?id=a&id=b           200 INVALID ids
/composed-empty?                    410 REJECTED ids
/list?id=one,a+b                    200 PASSED ids
/list?id=one&id=a+b                 410 INVALID ids
/two?id=one&other=one               481 REJECTED ids
/two?id=one&id=two                  482 INVALID ids
/two?id=one&other=one&other=two     200 INVALID ids
/two-first?id=one&id=two&other=one  481 INVALID ids
/two-first?id=one&other=one         482 REJECTED ids
END

    is(decisions_logged($t, '/absent?id=one&id=two'),
       'rejecting request: key "" invalid for bloom zone "ids"',
       'the log says that the key is invalid');
    is(decisions_logged($t, '/composed?id=a&other=b&id=c'),
       'rejecting request: key ":b" invalid for bloom zone "ids"',
       'the log has the key without its ambiguous argument');
};


subtest 'an ambiguous value that went through set or map is invalid' => sub {
    outcomes_are($t, <<'END');
/by-map?id=one                403 REJECTED ids
/by-map?id=none               200 PASSED ids
/by-map?id=none&id=one        403 INVALID ids
/by-map?                      200
/by-map-pass?id=none&id=one   200 INVALID ids
/by-map-shield?id=none&id=one  200 INVALID ids
/by-map-shield?               410 REJECTED ids
/by-set?id=one                403 REJECTED ids
/by-set?id=none&id=one        403 INVALID ids
/by-set?                      200
/by-set-list?id=none,one      403 REJECTED ids
/by-set-list?id=none&id=one   403 INVALID ids
/by-set-list?                 200
/by-set-two?id=none&id=one    482 INVALID ids
/by-set-two?                  200 PASSED ids
/by-lookup?id=one&other=one   481 REJECTED ids
/by-lookup?id=none&id=one     200
END

    is(decisions_logged($t, '/by-set?id=one&id=two'),
       'rejecting request: key "" invalid for bloom zone "ids"',
       'the log says that the key is invalid');
};


subtest 'other variables are empty for an argument with several values' => sub {
    my $counted = sub {
        my ($path) = @_;
        my $before = zone_state($t, 'ids')->{counters};
        my $body = $t->get($path)->body;
        my $after = zone_state($t, 'ids')->{counters};
        return "$body " . join ' ', map { $after->{$_} - $before->{$_} }
                                        qw(checks invalid);
    };

    is($counted->('/known?id=a&other=b'), '0|1 2 0',
       'bloom_lookup looks a single value up');
    is($counted->('/known?id=a&other=b&id=c'), '| 0 2',
       'bloom_lookup is empty, and each key is counted as invalid once');
    is($counted->('/known?other=b'), '|0 1 0',
       'a key with an empty part is looked up');
    is($t->get('/mapped?id=a&id=b')->body, '<>', 'a map sees an empty value');

    my $mark = $t->log_mark;
    my $before = zone_state($t, 'added')->{counters}{invalid};
    $t->get('/adds?id=new&id=newer');
    my $counters = zone_state($t, 'added')->{counters};
    is($counters->{added} . ' ' . ($counters->{invalid} - $before), '0 1',
       'bloom_add counts an ambiguous key and does not add it');
    like($t->log_since($mark),
         qr/a key was not added to bloom zone "added": .* ambiguous .*; let "bloom_add" take the key from the backend's response/,
         'the log says why a key is not added');
    $t->get('/adds?id=new&id=new');
    is(zone_state($t, 'added')->{counters}{added}, 1,
       'bloom_add adds the key of an argument with one value');
};


subtest 'the variable follows changes of the arguments' => sub {
    is($t->get('/rewritten?id=old')->body, '<new>',
       'a rewrite changes the argument');
    is($t->get('/replaced?id=old')->body, '<old><new>',
       '"set $args" changes the argument');
    is($t->get('/ssi/page.html?id=page')->body, '<none><><>',
       'a subrequest has its own argument');
};


# The backend must get the value that was checked, whatever bytes it has.

subtest 'the escaped value is safe in a request to the backend' => sub {
    for (["id=one&ID=bad&id=one", 'one'], ['id=a+b;id=bad', undef],
         ['id=a+b', 'a%20b'], ['id=x%26y&x=1', 'x%26y'],
         ['id=two%0d%0alines', 'two%0D%0Alines'])
    {
        my ($query, $id) = @$_;

        my @before = $backend->requests;
        my @status = map { $t->get("/$_?$query")->status } qw(checked header);
        my @seen = $backend->requests;
        splice @seen, 0, @before;

        if (!defined $id) {
            is("@status", '404 404', "?$query is rejected");
            is(scalar @seen, 0, "the backend does not see ?$query");
            next;
        }

        is("@status", '200 200', "?$query is passed");
        is($seen[0]{uri}, "/item?id=$id",
           "the backend gets the checked argument of ?$query and no other");
        is($seen[1]{headers}{'x-id'}, $id,
           "the backend gets the checked argument of ?$query in a header");
    }
};


subtest 'random queries are read as the standard says' => sub {
    srand 1;

    my @pieces = ('id', 'ID', '%69%64', 'i%64', 'i', 'd', 'idx', '=', '=', '=',
                  '&', '&', '&', '%', '%4', '%26', '%3D', '+', '%20', 'x', 'y',
                  ';', '%00', '%c3%a9', '?', '/');
    my @wrong;

    for (1 .. 40) {
        my @queries = map {
            join '', map { $pieces[rand @pieces] } 1 .. 2 + int rand 14
        } 1 .. 50;
        my @r = $t->pipeline(map { "/value?$_" } @queries);

        for my $i (0 .. $#queries) {
            my ($got, $want) = (got($r[$i]), expected('id', $queries[$i]));
            push @wrong, "?$queries[$i]: $got, not $want" if $got ne $want;
        }
    }

    is(join("\n", @wrong), '',
       'the module reads 2,000 random queries as the standard says');
};


subtest 'long queries are read in linear time' => sub {
    my $long = 'id=' . 'v' x 60_000;
    is(length $t->get("/value?$long")->body, 60_002, 'a long value is read');
    is(got($t->get('/value?' . 'x&' x 25_000 . 'id=1')), '<1>',
       'a query of 25,000 arguments is read');
    is(got($t->get('/value?' . 'id=1&' x 12_000)), '<1>',
       'an argument that is given 12,000 times is read');
    is(got($t->get('/value?' . 'id=1&' x 12_000 . 'id=2')), 'several',
       'an argument whose last value differs has several values');
    is(got($t->get('/value?id=' . '%41' x 20_000)),
       '<' . 'A' x 20_000 . '>', 'a long escaped value is read');
};


done_testing;
