#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests split=, which makes a key a list of parts: a rule fires if its condition
# holds for one of them or, with match=all, for all of them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

my @ids = map { "id$_" } 1 .. 500;

$t->build_image('ids.bloom', [@ids, 'a b', "\xff", ';', 'x' x 500],
                '-p', '1e-9', '--seed', 1);
$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-9', '--seed', 1,
                '--form', 'host');
$t->write_file('html/page', 'a page');

my %rules = (
    absent      => 'bloom_reject absent $arg_k zone=ids split=,',
    absent_any  => 'bloom_reject absent $arg_k zone=ids split=, match=any',
    absent_all  => 'bloom_reject absent $arg_k zone=ids match=all split=,',
    present     => 'bloom_reject present $arg_k zone=ids split=,',
    present_all => 'bloom_reject present $arg_k zone=ids split=, match=all',
    pass        => 'bloom_pass present $arg_k zone=ids split=,',
    pass_any    => 'bloom_pass present $arg_k zone=ids split=, match=any',
    route       => 'bloom_route present $arg_k zone=ids split=, to=/routed',
    semicolon   => 'bloom_reject absent $arg_k zone=ids "split=;"',
    space       => 'bloom_reject absent $arg_k zone=ids "split= "',
    form        => 'bloom_reject absent $arg_k zone=ids split=, decode=form',
    header      => 'bloom_reject absent $http_x_ids zone=ids split=,',
    host        => 'bloom_reject present $arg_k zone=hosts split=, decode=form',
    host_all    => 'bloom_reject present $arg_k zone=hosts split=, match=all
                    decode=form',
    host_absent => 'bloom_reject absent $arg_k zone=hosts split=, match=all
                    decode=form',
    cold        => 'bloom_reject absent $arg_k zone=cold split=,',
    cold_closed => 'bloom_unknown reject;
                    bloom_reject absent $arg_k zone=cold split=,',
);

# A later rule that rejects every request shows whether bloom_pass fires.

$rules{$_} .= '; bloom_reject absent never zone=ids status=410'
    for 'pass', 'pass_any';

configure_rules($t, {}, <<'CONF'
    access_log off;
    large_client_header_buffers 4 128k;

    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1h;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Status $bloom_status always;
        add_header X-Key $bloom_key always;
        location /bloom/ { bloom_api; }
        location /routed { return 200 routed; }
CONF
    . locations({ map { $_ => "$rules{$_}; try_files /page =500" }
                      keys %rules }) . '}');

$t->build_image('cold.bloom', \@ids, '--as-of', '2020-01-01T00:00:00Z');
$t->run;

outcomes_are($t, <<'END');
/absent?k=id1,id2,id3     200  all parts are present
/absent?k=id1             200  a key without a separator is a list of one
/absent?k=id1,no,id3      404  a part in the middle is absent
/absent?k=id1,id2,no      404  the last part is absent
/absent?k=no,id2,id3      404  the first part is absent
/absent?k=no              404  the only part is absent
/absent?k=id1,,id2,       200  empty parts are no keys
/absent?k=,,,             200  a list of empty parts is no key
/absent?k=                200  an empty list is no key
/absent?k=id1;id2         404  another byte does not separate
/absent_any?k=id1,no,id3  404  match=any is the default
/absent_any?k=id1,id2     200  match=any needs one absent part
/absent_all?k=id1,no,id3  200  match=all needs all parts
/absent_all?k=no,none     404  match=all has all parts
/absent_all?k=id1,id2     200  match=all has no part
/absent_all?k=,           200  match=all does not hold for no parts
/present?k=no,none        200  no part is present
/present?k=no,id7,none    403  one part is present
/present_all?k=no,id7     200  match=all needs all parts
/present_all?k=id7,id8    403  match=all has all parts
/pass?k=id1,id2           200  bloom_pass wants all parts by default
/pass?k=id1,no            410  bloom_pass lacks a part
/pass?k=no                410  bloom_pass has no part
/pass?k=                  410  bloom_pass does not pass an empty list
/pass_any?k=id1,no        200  bloom_pass with match=any wants one part
/pass_any?k=no            410  bloom_pass with match=any has no part
/semicolon?k=id1;id2      200  a list is cut at its separator
/semicolon?k=id1;no       404  a part behind another separator is absent
/semicolon?k=id1,id2      404  a comma is a part of a key then
/route?k=no,id3           "routed"  one part is present
/route?k=no,none          "a page"  no part is present
END

outcomes_are($t, join '', map {
    my ($list, $rest) = /^(.*?)(  .*)$/s;
    "/form?k=" . encoded($list) =~ s/,/%2C/gr . "$rest\n"
} (" id1 , \tid2  200  blanks around parts are no part of them",
   "id1\t,\tid2   200  nor are tabs",
   'id1, no  404  a part behind a blank is absent',
   'a b  200  a blank within a part is a part of it',
   'a, b  404  but none before it',
   "\xff,id1  200  a part has any bytes",
   ';  200  a part is a separator of other lists',
   'x' x 500 . ',id9  200  a part is long'));

is($t->get('/header', headers => ['X-Ids' => 'id1, id2,  id3'])->status, 200,
   'a header that lists present keys is passed');
is($t->get('/header', headers => ['X-Ids' => 'id1, no'])->status, 404,
   'a header that lists an absent key is rejected');


# ---- counters and variables ----

{
    my $counted = sub {
        my $before = zone_state($t, 'ids')->{counters};
        my $r = $t->get("/$_[0]?k=$_[1]");
        my $after = zone_state($t, 'ids')->{counters};

        return $r, map { $after->{$_} - $before->{$_} }
                       qw(checks absent present rejected);
    };

    my ($r, @counts) = $counted->('absent', 'id1,,no,id2,none');
    is("@counts", '4 2 2 1',
       'a rejected list counts each part and one rejected request');
    is($r->header('X-Key'), 'id1,,no,id2,none', '$bloom_key is the whole list');
    is($r->header('X-Status'), 'REJECTED',
       '$bloom_status says that the list is rejected');

    ($r, @counts) = $counted->('absent', ',');
    is("@counts", '0 0 0 0', 'a list of empty parts counts nothing');
    is($r->header('X-Status'), undef, 'a list of empty parts has no outcome');
}


# ---- long lists with one part that differs ----

for my $n (1, 2, 63, 64, 65, 128, 400) {
    my @some = @ids[0 .. $n - 1];

    is($t->get('/absent?k=' . join(',', @some))->status, 200,
       "a list of $n present parts is passed");
    is($t->get('/absent?k=' . join(',', @some, 'no'))->status, 404,
       "a list of $n present parts and an absent one is rejected");

    for my $at (0, int($n / 2), $n - 1) {
        my @other = map { "no$_" } 1 .. $n;
        $other[$at] = 'id500';
        is($t->get('/present?k=' . join(',', @other))->status, 403,
           "a list of $n parts is rejected for the present part at $at");
    }
}

is($t->get('/absent?k=' . join(',', (@ids) x 20, 'no'))->status, 404,
   'a list of 10,000 present parts and an absent one is rejected');
is($t->get('/absent?k=' . ',' x 60_000 . 'id1')->status, 200,
   'a list of 60,000 empty parts and a present one is passed');


# ---- key forms ----

outcomes_are($t, <<'END');
/host?k=good.example,WWW.EVIL.example:80        403  a part is listed
/host?k=good.example,%20other.example           200  no part is listed
/host?k=a:b,evil.example                        403  a part is invalid
/host?k=a:b,good.example                        403  a part is invalid
/host?k=..,:                                    403  all parts are invalid
/host_all?k=evil.example,x.evil.example         403  all parts are listed
/host_all?k=evil.example,..                     403  one is listed, one invalid
/host_all?k=good.example,..                     200  a part is not listed
/host_absent?k=good.example,other.example       404  all parts are absent
/host_absent?k=good.example,..                  200  a part is invalid
/host_absent?k=..                               200  the only part is invalid
END

{
    my $before = zone_state($t, 'hosts')->{counters};
    $t->get('/host?k=..,evil.example,a:b,good.example');
    my $after = zone_state($t, 'hosts')->{counters};

    is(join(' ', map { $after->{$_} - $before->{$_} }
                     qw(checks absent present invalid)), '2 1 1 2',
       'invalid parts are counted');

    # The expressions of several parts are looked up together.  Those of two
    # long names fill a group.

    my $long = join '.', ('a') x 40, 'example';
    is($t->get("/host?k=$long,$long,$long,b.$long,evil.example")->status, 403,
       'a list with names of many labels is rejected for a present part');

    # The expressions of one name may be divided between two groups.

    my $deep = 'a.b.c.d.e.evil.example';
    my @passed = grep {
        $t->get('/host?k=' . join(',', map({ "n$_.example" } 1 .. $_), $deep))
          ->status != 403
    } 20 .. 66;

    is("@passed", '',
       'a present parent domain is found after 20 to 66 other names');
}


# ---- a zone that answers unknown ----

is($t->get('/cold?k=id1,no')->status, 200,
   'a list is passed by default when the zone answers unknown');
is($t->get('/cold?k=id1,no')->header('X-Status'), 'UNKNOWN',
   '$bloom_status says that the answer is unknown');
is($t->get('/cold_closed?k=id1,no')->status, 503,
   'bloom_unknown reject rejects a list with status 503');
is($t->get('/cold_closed?k=,')->status, 200,
   'bloom_unknown reject passes a list of empty parts');

{
    my $before = zone_state($t, 'cold')->{counters}{unknown};
    $t->get('/cold?k=id1,no,,id2');
    is(zone_state($t, 'cold')->{counters}{unknown} - $before, 3,
       'each part counts as unknown');
}

done_testing();
