#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests if= of bloom_pass, bloom_reject and bloom_route: a rule whose condition
# is empty or "0" looks nothing up, counts nothing and does not fire.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

$t->build_image('cold.bloom', ['one'], '-p', '1e-9', '--seed', 1, '--as-of',
                '2020-01-01T00:00:00Z');

my $one = 'bloom_reject present $arg_a zone=bad status=482';
my $two = 'bloom_reject present $arg_b zone=bad status=483';
my $three = 'bloom_reject present $arg_c zone=bad status=484';
my $maybe = 'bloom_reject present $id zone=bad status=481 if=$arg_if';

my %rules = (
    item  => 'bloom_reject absent $id zone=ids invalid=fire empty=fire
              if=$reads name=item',
    value => 'bloom_reject absent $id zone=ids if=$arg_if',
    text  => 'bloom_reject absent $id zone=ids "if=${arg_if}${arg_and}"',
    pass  => 'bloom_pass present $id zone=ids if=$arg_if;
              bloom_reject present $id zone=bad',
    route => 'bloom_route present $id zone=bad if=$arg_if to=@routed',
    cold  => 'bloom_unknown reject;
              bloom_reject absent $id zone=cold if=$arg_if',
    list  => 'bloom_reject absent $id zone=ids if=$arg_if split=,',
    dry   => 'bloom_reject absent $id zone=ids if=$arg_if dry_run',
    feedback => 'bloom_feedback 404;
                 bloom_reject absent $id zone=feedback if=$reads;
                 proxy_pass http://127.0.0.1:%%PORT_8082%%',

    # rules before, between and after a rule that may be skipped

    first  => "$maybe; $one; $two",
    middle => "$one; $two; $maybe; $three",
    either => "$maybe; bloom_reject present \$id zone=bad status=482
               if=\$negated",
    'before-map' => 'bloom_reject absent $id zone=ids if=$arg_if status=481;
                     bloom_reject present $bloom_status zone=bad status=482',
);

configure_rules($t, { ids => ['one', 'both'], bad => ['bad', 'both'] },
                <<'CONF' . locations(\%rules, 8081) . <<'CONF', backend => 8081);
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;
    bloom_zone zone=feedback file=%%TESTDIR%%/ids.bloom;
    bloom_state_path %%TESTDIR%%/state;

    map $request_method $reads { GET 1; HEAD 1; }
    map $arg_if $negated { 0 1; "" 1; default 0; }
    bloom_arg id $id;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;

        location /bloom/ { bloom_api; }
        location @routed { bloom_rules off; return 200 "routed"; }
CONF
    }
    server {
        listen 127.0.0.1:%%PORT_8082%%;
        location / { bloom_rules off; return 404; }
    }
CONF

$t->run;


# Returns what a zone and a rule have counted, in one text.

sub counted {
    my ($zone, $rule) = @_;

    my $counters = zone_state($t, $zone)->{counters};
    my $text = api($t, GET => 'metrics')->body;
    my %count = $text =~ /^nginx_bloom_rule_\w+\{rule="\Q$rule\E".*?
                          (?:answer|decision)="(\w+)"\}\ (\d+)$/gmx;

    return join ' ', (map { "$_ $counters->{$_}" }
                          qw(checks absent present invalid rejected)),
                     map { $count{$_} ? "$_ $count{$_}" : () }
                         sort keys %count;
}


subtest 'a shield for reads lets other methods through' => sub {
    my $before = counted('ids', 'item');

    outcomes_are($t, <<'END');
POST /item?id=new     200  $bloom_status is empty
PUT /item?id=new      200  $bloom_status is empty
OPTIONS /item?id=new  200  $bloom_status is empty
DELETE /item?id=new   200  $bloom_status is empty
PATCH /item?id=new    200  $bloom_status is empty
PUT /item?id=a&id=b   200  invalid=fire does not apply to a skipped rule
PUT /item             200  empty=fire does not apply to a skipped rule
END
    is(counted('ids', 'item'), $before,
       'a rule that is skipped looks nothing up and counts nothing');

    outcomes_are($t, <<'END');
GET /item?id=new   404 REJECTED ids
HEAD /item?id=new  404 REJECTED ids
/item?id=one       200 PASSED ids    a present key passes
/item?id=a&id=b    404 INVALID ids   invalid=fire applies
/item              404 REJECTED ids  empty=fire applies
END
    is(counted('ids', 'item'),
       'checks 3 absent 2 present 1 invalid 1 rejected 4'
       . ' absent 2 empty 1 fired 4 invalid 1 present 1',
       'a rule that runs counts');
};


subtest 'a condition holds unless it is empty or 0' => sub {
    outcomes_are($t, <<'END');
/value?id=new           200
/value?id=new&if=       200
/value?id=new&if=0      200
/value?id=new&if=1      404 REJECTED ids
/value?id=new&if=00     404 REJECTED ids
/value?id=new&if=off    404 REJECTED ids
/value?id=new&if=%30    404 REJECTED ids
/text?id=new            200
/text?id=new&if=0       200
/text?id=new&and=0      200
/text?id=new&if=0&and=0  404 REJECTED ids
/text?id=new&and=x      404 REJECTED ids
END
};


subtest 'each action takes a condition' => sub {
    outcomes_are($t, <<'END');
/pass?id=both&if=1      200 PASSED ids           bloom_pass passes
/pass?id=both           403 REJECTED bad         bloom_pass does not pass
/route?id=bad&if=1      "routed"                 bloom_route routes
/route?id=bad           200                      bloom_route does not route
/cold?id=one&if=1       503 UNKNOWN cold         bloom_unknown applies
/cold?id=one            200                      bloom_unknown does not apply
/list?id=one,new&if=1   404 REJECTED ids         a rule with split= runs
/list?id=one,new        200                      a rule with split= is skipped
/dry?id=new&if=1        200 REJECTED_DRY_RUN ids  a rule on trial runs
/dry?id=new             200                      a rule on trial is skipped
END
};


subtest 'a rule that is skipped is not blamed by bloom_feedback' => sub {
    my $said = sub { zone_state($t, 'feedback')->{feedback}{false_positives} };

    is($t->post('/feedback?id=one', '')->status, 404,
       'POST reaches the backend');
    is($said->(), 0, 'a 404 for POST is no false positive');
    $t->get('/feedback?id=one');
    is($said->(), 1, 'a 404 for GET is a false positive');
};


# A request before each of these has other keys.

subtest 'each rule of a list has its own key, whichever are skipped' => sub {
    for my $row (split /\n/, <<'END') {
/first?id=bad&if=1         481 REJECTED bad
/first?id=bad              200
/first?id=bad&a=bad        482 REJECTED bad
/first?id=none&if=1&a=bad  482 REJECTED bad
/first?b=bad               483 REJECTED bad
/first?b=none              200 PASSED bad
/middle?id=bad&if=1        481 REJECTED bad
/middle?id=bad&if=1&b=bad  483 REJECTED bad
/middle?id=bad&if=0&c=bad  484 REJECTED bad
/middle?id=bad             200
/either?id=bad&if=1        481 REJECTED bad
/either?id=bad&if=0        482 REJECTED bad
/either?id=none            200 PASSED bad
/before-map?id=new&if=1    481 REJECTED ids
/before-map?id=one&if=1    200 PASSED bad
/before-map?id=new         200
END
        $t->get('/middle?a=bad&b=bad&c=bad&id=bad&if=1');
        outcomes_are($t, $row);
    }
};


done_testing;
