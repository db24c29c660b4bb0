#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that POST remove and DELETE keys make keys absent in all workers, and
# no other key; that a removal lasts through reloads, crashes, restarts and
# older images, until the key is added again or a newer image has it; and that
# GET removed lists removed keys.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $json = { 'Content-Type' => 'application/json' };
my @ids = keys_of('id', 20);

$t->build_image('first.bloom', \@ids, '-p', '1e-9', '-n', '10k',
                '--as-of', time - 7200);
install_image($t, 'first');

configure($t, ['zone=ids file=ids.bloom',
               'zone=seen capacity=400k fpr=1e-9',
               'zone=memory capacity=10k fpr=1e-9 journal=off',
               'zone=fixed file=ids.bloom journal=off',
               'zone=urls capacity=10k fpr=1e-9 form=url hash=siphash',
               'zone=hosts capacity=10k fpr=1e-9 form=host',
               'zone=lower capacity=10k fpr=1e-9 form=lower',
               'zone=small capacity=10k fpr=1e-9 removals=3',
               'zone=none capacity=10k fpr=1e-9 removals=0'],
          api => 1, workers => 2, server => <<'CONF');
    location /reading/ { bloom_api; }
CONF
$t->run;

sub post { return api($t, POST => 'zones/' . shift(@_) . '/remove', @_) }

sub delete_key {
    my ($zone, $key, %option) = @_;

    my $query = $key =~ s/([^\w.-])/sprintf '%%%02X', ord $1/ger;

    return api($t, DELETE => "zones/$zone/keys?key=$query"
                             . ($option{durable} ? '&durable=true' : ''));
}

# Tests an answer: the keys received, removed and absent, and for one key the
# expressions that are still present.

sub is_removed {
    my ($r, $received, $removed, $absent, $still, $name) = @_;

    my $got = eval { $r->json } // {};
    my %want = (received => $received, removed => $removed, absent => $absent,
                still_present => $still);

    is_deeply({ map { $_ => $got->{$_} } keys %want }, \%want, $name)
        or diag($r);

    return $r;
}

# All answers of both workers about keys, each asked until both have answered.

sub everywhere {
    my ($zone, @keys) = @_;

    my %answers;

    wait_until(sub {
        my ($answers, $worker) = ask($t, $zone, @keys);
        $answers{$worker}{$answers} = 1;
        return keys %answers == 2;
    });

    return join ' ', map { sort keys %$_ } values %answers;
}

# All removed keys of a zone, from as many requests as are needed.

sub removed {
    my ($zone, $limit) = @_;

    my ($from, @keys) = ('');

    do {
        my $r = api($t, GET => "zones/$zone/removed?limit=$limit$from")->json;
        cmp_ok(scalar @{ $r->{keys} }, '<=', $limit,
               'a part of the list has at most the keys asked for');
        push @keys, map { $_->{key} } @{ $r->{keys} };
        $from = defined $r->{next} ? "&from=$r->{next}" : undef;
    } while (defined $from && @keys < 1000);

    return @keys;
}


subtest 'keys in a body are removed' => sub {
    add($t, 'seen', [keys_of('r', 8)]);
    is_removed(post('seen', body => "r1\nr2\n"), 2, 2, 0, undef,
               'two present keys in lines are removed');
    is(everywhere('seen', keys_of('r', 8)), '00111111 00111111',
       'the removed keys are absent in both workers, and no other key is');
    is_removed(post('seen', body => '["r3","r\u0034"]', headers => $json),
               2, 2, 0, undef, 'two present keys in JSON are removed');
    is_removed(post('seen', body => "r4\r\n\nr5\nr5\nnone\n"), 4, 1, 3, undef,
               'keys that are absent, or twice in the body, are counted');
    is(everywhere('seen', keys_of('r', 8)), '00000111 00000111',
       'the keys of all bodies are absent');
    is_removed(post('seen', body => ''), 0, 0, 0, undef,
               'an empty body removes nothing');

    add($t, 'seen', ['r1', 'r3']);
    is(everywhere('seen', keys_of('r', 8)), '10100111 10100111',
       'a removed key that is added again is present in both workers');
    is_removed(post('seen', body => "r1\n"), 1, 1, 0, [],
               'a key that was added again can be removed again');
    is(ask($t, 'seen', 'r1'), '0', 'it is absent again');

    is_removed(post('ids', body => "id1\nid2\n"), 2, 2, 0, undef,
               'keys of an image are removed');
    is(ask($t, 'ids', @ids), '00' . '1' x 18,
       'the other keys of the image are present');

    my @many = keys_of('many', 5000);
    add($t, 'seen', \@many);
    is_removed(post('seen', body => join "\n", @many), 5000, 5000, 0, undef,
               '5,000 keys are removed by one request');
    unlike(ask($t, 'seen', @many), qr/1/, 'all of them are absent');
};


subtest 'DELETE removes one key' => sub {
    add($t, 'seen', ['d1', 'd 2', 'd+3/%']);
    is_removed(delete_key('seen', 'd1'), 1, 1, 0, [],
               'DELETE removes a present key');
    is_removed(delete_key('seen', 'd1'), 1, 0, 1, [],
               'DELETE of an absent key says so');
    is_removed(delete_key('seen', 'd+3/%'), 1, 1, 0, [],
               'a key in a query is decoded');
    is_removed(api($t, DELETE => 'zones/seen/keys?key=d+2'), 1, 1, 0, [],
               '+ in a query is a space');

    my $r = delete_key('seen', 'd4', durable => 1);
    is($r->json->{durable}, JSON::PP::true,
       'DELETE with durable=true is on disk');
    is(delete_key('seen', 'd4')->json->{durable}, JSON::PP::false,
       'DELETE without durable=true does not wait');

    refusals_are($t, <<'END');
DELETE zones/seen/keys                       400 bad_query  ?key=K
DELETE zones/seen/keys?                      400 bad_query  ?key=K
DELETE zones/seen/keys?key=                  400 bad_query  ?key=K
DELETE zones/seen/keys?key=a&key=b           400 bad_query  "key" nothing
DELETE zones/seen/keys?key=a&durabel=true    400 bad_query  "durabel" "durable"
DELETE zones/seen/keys?key=a&durable=maybe   400 bad_query  "durable"
END

    add($t, 'seen', ['body']);
    for ([body => "body\n"], [chunks => ['body']]) {
        is_error(api($t, DELETE => 'zones/seen/keys?key=body', @$_), 400,
                 qr{proxies drop it; .*POST zones/seen/remove},
                 "DELETE with a body ($_->[0]) is refused");
    }
    is(ask($t, 'seen', 'body'), '1', 'such a DELETE removes nothing');
    is_removed(api($t, DELETE => 'zones/seen/keys?key=body',
                   headers => { 'Content-Length' => 0,
                                'Content-Type' => 'image/png' }),
               1, 1, 0, [], 'DELETE with an empty body is taken');
};


subtest 'a body that cannot be read is refused' => sub {
    add($t, 'seen', [keys_of('b', 9)]);

    # t/api/keys.t has JSON of all kinds

    is_error(post('seen', body => '["b1" "b2"]', headers => $json), 400,
             qr/\bbyte \d+: /, 'JSON without a comma is refused');

    my $r = post('seen', body => '["b2","b3",7]', headers => $json);
    is($r->status, 400, 'a body with an error after two keys is refused');
    is_removed($r, 2, 2, 0, undef, 'the keys before the error are removed');

    my $long = 'x' x 65535;
    $r = post('seen', body => "b4\n${long}x\nadded\n");
    is_removed($r, 3, 1, 1, undef, 'the keys beside one that is too long');
    is_deeply($r->json->{first_invalid},
              { number => 2, reason => 'is longer than 65535 bytes' },
              'which is counted and named');
    is_removed(post('seen', body => "$long\n"), 1, 0, 1, [],
               'a line of 65535 bytes is a key');

    is_error(post('seen', body => "b6\n",
                  headers => { 'Content-Encoding' => 'gzip' }), 415, qr/./,
             'a compressed body is refused');
    refusals_are($t, 'POST zones/seen/remove?durable=x b6\n'
                     . '  400 bad_query  "durable"');

    # POST with a key that is not in the body would otherwise do nothing, and
    # answer 200

    refusals_are($t, <<'END');
POST zones/seen/remove?key=b6 b7\n  400 bad_query  "key" nothing
POST zones/seen/keys?key=b6 b7\n    400 bad_query  "key" nothing
END
    is(ask($t, 'seen', keys_of('b', 9)), '000011111',
       'the keys of refused bodies are as before');

    for my $size (1, 3) {
        my @keys = map { "piece$size.$_" } 1 .. 20;
        add($t, 'seen', \@keys);
        is_removed(post('seen',
                        chunks => [join("\n", @keys) =~ /(.{1,$size})/gs]),
                   20, 20, 0, undef,
                   "a body in chunks of $size bytes is read");
    }
};


subtest 'invalid keys are counted and left out' => sub {
    my @urls = ('http://a.example/', 'mailto:x', 'http://b.example/');
    add($t, 'urls', [@urls[0, 2]]);

    my $r = is_removed(post('urls', body => join "\n", @urls), 3, 2, 0, undef,
                       'the valid keys of a body are removed');
    is_deeply([@{ $r->json }{'invalid'}, $r->json->{first_invalid}{number}],
              [1, 2], 'the invalid key is counted, and its number is given');

    $r = is_removed(delete_key('urls', 'mailto:x'), 1, 0, 0, undef,
                    'DELETE of an invalid key removes nothing');
    is_deeply([@{ $r->json }{'invalid'}, $r->json->{first_invalid}{number}],
              [1, 1], 'the answer says so');
    like($r->json->{first_invalid}{reason}, qr/\w/, 'there is a reason');

    # its canonical form is longer than a key may be

    $r = post('urls', body => 'http://a.example/' . "\xff" x 60_000 . "\nmailto:x\n");
    is($r->status, 200, 'a URL that becomes too long is answered');
    is($r->json->{invalid}, 2, 'it is invalid');
};


subtest 'other key forms: the entry with the canonical key is removed' => sub {
    add($t, 'urls', ['http://evil.example/', 'http://evil.example/a/b?c',
                     'http://evil.example/x/']);

    is_removed(delete_key('urls', 'HTTP://Evil.example:80/a/./b?c#d'), 1, 1, 0,
               ['evil.example/'],
               'a URL that is found by its host, too, is still present');
    is_removed(delete_key('urls', 'http://www.evil.example/x/y'), 1, 0, 1,
               ['evil.example/', 'evil.example/x/'],
               'a URL that is found by its parents alone has no entry');
    is_removed(delete_key('urls', 'evil.example/'), 1, 1, 0, [],
               'an expression can be removed');
    is_deeply([lookup_keys($t, 'urls', map { "http://$_" }
                           'evil.example/a/b?c', 'evil.example/other',
                           'evil.example/x/y')],
              ['absent', 'absent', 'present'],
              'only the URL below an entry that is left is present');
    is_removed(delete_key('urls', 'evil.example/x/'), 1, 1, 0, [],
               'the last entry is removed');
    is_deeply([lookup_keys($t, 'urls', 'http://evil.example/x/y')], ['absent'],
              'a URL without any entry is absent');

    add($t, 'hosts', ['evil.example', 'www.evil.example']);
    is_removed(delete_key('hosts', 'WWW.Evil.example:8080'), 1, 1, 0,
               ['evil.example'], 'a host that is found by its parent domain');
    is_removed(delete_key('hosts', 'evil.example'), 1, 1, 0, [],
               'the parent domain is removed');

    add($t, 'lower', ['AbC']);
    is_removed(delete_key('lower', 'aBc'), 1, 1, 0, [],
               'a key in another letter case is removed');
    is(ask($t, 'lower', 'AbC'), '0', 'it is absent in any case');
};


subtest 'durable=true waits for the disk' => sub {
    add($t, 'seen', ['w1', 'w2']);

    my $r = api($t, POST => 'zones/seen/remove?durable=true', body => "w1\n");
    is_removed($r, 1, 1, 0, [], 'a key is removed');
    is($r->json->{durable}, JSON::PP::true, 'the removal is durable');
    is(zone_state($t, 'seen')->{journal}{unsynced_bytes}, 0,
       'all bytes of the journal are on disk');

    add($t, 'memory', ['m1']);
    $r = api($t, POST => 'zones/memory/remove?durable=true', body => "m1\n");
    is_removed($r, 1, 1, 0, [], 'a zone without a journal takes removals');
    is($r->json->{durable}, JSON::PP::false,
       'they are not durable without a journal');
    is(everywhere('memory', 'm1'), '0 0', 'both workers have such a removal');
};


subtest 'zones that take no removals' => sub {
    for (post('fixed', body => "id3\n"), delete_key('fixed', 'id3')) {
        is_error($_, 409, qr/"fixed": no key was removed: .*no journal/,
                 'a zone with a file and no journal takes no removals');
        is($_->json->{error}{code}, 'no_removals', 'the error has its code');
    }
    is(ask($t, 'fixed', 'id3'), '1', 'the key is present');

    add($t, 'none', ['n1']);
    is_error(delete_key('none', 'n1'), 507, qr/no room .*raise "removals=0"/,
             'a zone with removals=0 has no room');
    is(ask($t, 'none', 'n1'), '1', 'the key is present');
};


subtest 'a zone without room answers 507 with the counts so far' => sub {
    add($t, 'small', [keys_of('s', 9)]);
    is_removed(post('small', body => "s1\n"), 1, 1, 0, [], 'there is room');

    my $r = post('small', body => join "\n", 's1', 'none', 's2', 's3', 's4');
    is_error($r, 507, qr/"small": .*no room for more removed keys/,
             'there is no room for all keys of a body');
    is($r->json->{error}{code}, 'no_room', 'the error has its code');
    is_removed($r, 5, 1, 2, undef, 'the answer counts what is removed');
    is(ask($t, 'small', 's1', 's2', 's3', 's4'), '0011',
       'the keys before the error are removed, the others are present');

    $r = is_error(delete_key('small', 's4'), 507, qr/no room/,
                  'a key is refused');
    is_removed($r, 1, 0, 0, ['s4'], 'the answer says that it is present');
    is_removed(delete_key('small', 's1'), 1, 0, 1, [],
               'a key that is removed already needs no room');
    is_deeply(zone_state($t, 'small')->{removals},
              { limit => 3, count => 3, excepted => 0, excepted_limit => 1 },
              'the state says that the room is used up');

    add($t, 'small', ['s1']);
    is_removed(delete_key('small', 's4'), 1, 1, 0, [],
               'a key that is added again makes room');
};


subtest 'GET removed lists the removed keys' => sub {
    my @odd = ('"quoted"', "tab\tand\\", 'x' x 500, 'naïve');
    my @keys = sort @odd, keys_of('list', 50);

    post('memory', body => join '', map { "$_\n" } @keys);

    my $r = api($t, GET => 'zones/memory/removed');
    is($r->status, 200, 'the list is sent');
    is($r->json->{count}, @keys + 1, 'the list has the number of keys');
    is($r->json->{limit}, 10000, 'the list has the limit');
    is($r->json->{generation}, 1, 'the list has the generation');
    is($r->json->{next}, undef, 'the list is complete');
    is_deeply([sort map { $_->{key} } @{ $r->json->{keys} }],
              [sort 'm1', map { my $k = $_; utf8::decode($k); $k } @keys],
              'the list has all keys');
    is(scalar(grep { $_->{time} !~ /^20\d\d-\d\d-\d\dT[\d:.]+Z$/ }
                   @{ $r->json->{keys} }), 0, 'each key has a time');

    is(join(' ', sort(removed('memory', $_))),
       join(' ', sort map { $_->{key} } @{ $r->json->{keys} }),
       "the list is the same in parts of up to $_ keys") for 1, 7, 16, 17, 10000;

    refusals_are($t, "GET zones/memory/removed?limit=$_"
                     . '  400 bad_query  "limit" 1 10000')
        for '', 0, -1, 10001, 'x', '9' x 30;
    refusals_are($t, "GET zones/memory/removed?from=$_"
                     . '  400 bad_query  "from"')
        for '', 'x', '1-', '-1', '1-x', '1-2-3', '1-' . '9' x 30;
    is(api($t, GET => 'zones/memory/removed?from=1-' . '9' x 18)->status, 200,
       'a cursor past the end is answered');
    is_error(api($t, GET => 'zones/memory/removed?from=2-0'), 412,
             qr/generation 2 .*generation 1 serves/,
             'a list of another generation cannot be continued');

    is_error($t->get('/reading/zones/memory/removed'), 403, qr/write=on/,
             'a client that cannot change the zone cannot read the list');
    is(api($t, GET => 'zones/none/removed')->json->{count}, 0,
       'a zone without removed keys has an empty list');
    is(length($t->head('/bloom/zones/memory/removed')->body), 0,
       'HEAD gets no body');
};


subtest 'state and metrics count removals' => sub {
    my %before = %{ zone_state($t, 'lower')->{counters} };
    my $count = zone_state($t, 'lower')->{removals}{count};

    add($t, 'lower', ['c1', 'c2']);
    post('lower', body => "c1\nc2\nc3\n");

    my $state = zone_state($t, 'lower');

    is($state->{counters}{removed_keys}, $before{removed_keys} + 2,
       'the state counts removed keys');
    is($state->{counters}{removals_absent}, $before{removals_absent} + 1,
       'the state counts removed keys that were absent');
    is($state->{counters}{removals_refused}, 0, 'no removal was refused');
    is_deeply($state->{removals}, { limit => 10000, count => $count + 3,
                                    excepted => 0, excepted_limit => 5000 },
              'the state has the number of removed keys, and the limit');

    my $metrics = api($t, GET => 'metrics')->body;

    for (['removals_total', 'result="removed"', $before{removed_keys} + 2],
         ['removals_total', 'result="absent"', $before{removals_absent} + 1],
         ['removals_total', 'result="refused"', 0],
         ['removed_keys', '', $count + 3],
         ['removed_keys_limit', '', 10000])
    {
        my ($name, $label, $value) = @$_;
        my $labels = join ',', 'zone="lower"', length $label ? $label : ();
        like($metrics, qr/^nginx_bloom_$name\{\Q$labels\E\} $value$/m,
             "the metric $name $label is right");
    }
};


# Tests what the subtests above have removed, and what they have not.

sub as_before {
    my ($what) = @_;

    is(ask_until_known($t, 'ids', @ids), '00' . '1' x 18,
       "removals in a zone with an image stay after $what");
    is(ask_until_known($t, 'seen', keys_of('r', 8), 'many1', 'd1', 'body'),
       '00100111000', "removals in a zone that started empty stay after $what");
    is_deeply([lookup_keys($t, 'urls', 'http://evil.example/x/y')],
              ['absent'], "an entry stays removed after $what");
    is(join(' ', sort(removed('ids', 100))), 'id1 id2',
       "the removed keys are listed after $what");
}

subtest 'a removal lasts' => sub {
    as_before('nothing');
    $t->reload;
    as_before('a reload');
    is(ask($t, 'memory', 'm1'), '0',
       'a removal without a journal stays after a reload');
    $t->stop;
    $t->run;
    as_before('a restart');
    is(ask($t, 'memory', 'm1'), '0',
       'the zone without a journal starts empty');
    $t->kill_all;
    $t->run;
    as_before('kill -9 of all processes');
    api($t, POST => 'zones/ids/checkpoint')->status == 200 or die 'checkpoint';
    $t->stop;
    $t->run;
    as_before('a checkpoint and a restart');
};


subtest 'an image counts if it is newer than the removal' => sub {
    my $load = sub {
        my ($name, $as_of, @keys) = @_;

        $t->build_image("$name.bloom", \@keys, '-p', '1e-9', '-n', '10k',
                        '--as-of', $as_of);
        install_image($t, $name);
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           "the image is loaded: $name");
    };

    add($t, 'ids', ['late']);
    is_removed(delete_key('ids', 'late'), 1, 1, 0, [], 'an added key goes');

    # as of a time before the removals, and with a different seed

    $load->('older', time - 3600, @ids, 'late');
    is(ask_until_known($t, 'ids', @ids, 'late'), '00' . '1' x 18 . '0',
       'an older image that has removed keys does not bring them back');
    is(join(' ', sort(removed('ids', 100))), 'id1 id2 late',
       'the removals are still listed');

    $load->('newer', time + 2, @ids[1 .. 9]);
    is(ask_until_known($t, 'ids', @ids, 'late'), '0' . '1' x 9 . '0' x 11,
       'a newer image is the truth: its keys are present, the others absent');
    is_deeply([removed('ids', 100)], ['late'],
       'the image has covered the removals, except that of a key that was added'
       . ' less than an hour before its as_of');

    $t->stop;
    $t->run;
    is(ask_until_known($t, 'ids', @ids, 'late'), '0' . '1' x 9 . '0' x 11,
       'the answers are the same after a restart');

    # an upload counts in the same way

    is_removed(delete_key('ids', 'id5'), 1, 1, 0, [], 'another key goes');
    is(upload_image($t, 'ids', 'older')->status, 200,
       'an older image is uploaded');
    is(ask_until_known($t, 'ids', 'id4', 'id5', 'id6'), '101',
       'an older upload does not bring the key back');
};


done_testing;
