#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_add and bloom_remove: which requests change which keys, how
# locations inherit the directives, that a key changes before the client has a
# response, and what happens to keys that cannot be changed.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

# D is the directive that is tested, and O the other one.

my $locations = <<'CONF';
    root html;
    D $arg_s zone=seen;

    location /page { }
    location = /own { D $arg_o zone=seen; return 200; }
    location = /both { D $arg_o zone=seen; D $arg_i zone=ids; return 200; }
    location = /none { D off; return 200; }
    location /outer/ {
        D $arg_o zone=seen;
        location /outer/none { D off; return 200; }
        location /outer/own { D $arg_n zone=seen; return 200; }
        location /outer/inherits { return 200; }
        location /outer/other { O $arg_n zone=seen; return 200; }
    }
    location = /if { D $arg_o zone=seen if=$arg_if; return 200; }
    location = /form { D $arg_o zone=seen decode=form; return 200; }
    location = /uri { D $arg_o zone=seen decode=uri; return 200; }
    location = /raw { D $arg_o zone=seen; return 200; }
    location = /error { D $arg_o zone=seen; return 404; }
    location = /errors { D $arg_o zone=seen; return 404;
                         error_page 404 /gone.html; }
    location = /redirect { D $arg_o zone=seen; return 302 /; }
    location = /inside { D $arg_o zone=seen;
                         try_files /none.html /page?$args; }
    location = /status { D st$status zone=seen; return 201; }
    location /made { D $upstream_http_x_id zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location = /shield { bloom_reject absent $arg_o zone=ids;
                         D $arg_o zone=ids; try_files /page =500; }
    location = /change { D $arg_o zone=seen; O $arg_n zone=seen; return 200; }
    location = /sub { D $arg_o zone=seen; ssi on; ssi_types text/plain;
                      default_type text/plain; alias html/ssi; }
    location = /part { D part$arg_x zone=seen; return 200 part; }
    location = /asks { auth_request /asked; D $arg_o zone=seen;
                       try_files /page =500; }
    location = /asked { D asked$arg_x zone=seen; try_files /page =500; }
    location = /to-fixed { D $arg_o zone=fixed; return 200; }
    location = /to-small { D $arg_o zone=small; return 200; }
    location = /url { D $arg_o zone=urls; return 200; }
    location = /ambiguous { D $id zone=seen; return 200; }
CONF

# Requests, their status, and the keys of zone "seen" that they change (+) or do
# not change (-).

my @requests = (
    ['/page?s=%', 200, '+%', 'a location without the directive'],
    ['/own?s=%a&o=%b', 200, '-%a +%b', 'a location with its own directive'],
    ['/none?s=%', 200, '-%', 'a location with "off"'],
    ['/outer/none?s=%a&o=%b&n=%c', 200, '-%a -%b -%c',
     'an inner one with "off"'],
    ['/outer/own?s=%a&o=%b&n=%c', 200, '-%a -%b +%c',
     'an inner one with its own directive'],
    ['/outer/inherits?s=%a&o=%b', 200, '-%a +%b', 'an inner one without any'],
    ['/outer/other?s=%a&o=%b', 200, '-%a +%b',
     'an inner one with the other directive'],
    ['/if?o=%', 200, '-%', 'a location whose if= is empty'],
    ['/if?o=%&if=0', 200, '-%', 'a location whose if= is 0'],
    ['/if?o=%&if=1', 200, '+%', 'a location whose if= is 1'],
    ['/if?o=%&if=00', 200, '+%', 'a location whose if= is 00'],
    ['/form?o=%%2B1+2', 200, '+%%2B1%202', 'a location with decode=form'],
    ['/uri?o=%%2B1+2', 200, '+%%2B1+2', 'a location with decode=uri'],
    ['/raw?o=%%2B1+2', 200, '+%%252B1+2', 'a location without decode='],
    ['/error?o=%', 404, '+%', 'a location that returns an error'],
    ['/errors?o=%', 404, '', 'a location with an error page'],
    ['/redirect?o=%', 302, '+%', 'a location that redirects the client'],
    ['/page/none?s=%', 404, '+%', 'a location whose file does not exist'],
);

for (['bloom_add', 'bloom_remove'], ['bloom_remove', 'bloom_add']) {
    my ($directive, $other) = @$_;

    subtest $directive => sub { tests($directive, $other) };
}

done_testing;


sub tests {
    my ($directive, $other) = @_;

    my $adds = $directive eq 'bloom_add';
    my $t = BloomTest->new;

    $t->build_image('ids.bloom', ['id1', 'id2'], '-p', '1e-9', '-n', '10k',
                    '--as-of', time - 7200);
    $t->write_file('html/page', 'a page');
    $t->write_file('html/gone.html', 'gone');
    $t->write_file('html/ssi', '<!--#include virtual="/part" -->');

    configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=10k fpr=1e-9',
                   'zone=fixed file=ids.bloom journal=off',
                   'zone=small capacity=10k fpr=1e-9 removals=2',
                   'zone=urls capacity=10k fpr=1e-9 form=url'],
              api => 1, workers => 2, http => 'bloom_arg id $id;',
              server => $locations =~ s/\bD (?=\S)/$directive /gr
                                   =~ s/\bO (?=\S)/$other /gr);
    $t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));

    $t->backend(8081, sub {
        my ($id) = $_[0]{uri} =~ m{id=(\w*)};
        return { status => 201, headers => ['X-Id' => $id // ''],
                 body => 'made ' . 'x' x 100_000 };
    });
    $t->run;

    # The first removal of a zone needs a segment of the journal that the helper
    # may not have created yet.  POST remove waits for it.

    for ('ids', 'seen', 'small', 'urls') {
        api($t, POST => "zones/$_/remove", body => "http://first.example/\n")
            ->status == 200 or die "zone $_ takes no removals";
    }

    # Brings keys into the state before a change.

    my $prepare = sub { add($t, $_[0], [@_[1 .. $#_]]) if !$adds };

    # Returns 1 for each key that is changed, and 0 for each that is not.

    my $changed = sub {
        my $answers = ask_until_known($t, @_);
        $answers =~ tr/01/10/ if !$adds;
        return $answers;
    };

    my $n = 0;

    for (@requests) {
        my ($uri, $status, $keys, $what) = @$_;

        $n++;
        s/%(?=[a-z]\b|[&\s]|$|%)/k$n/g for $uri, $keys;

        my %wanted = map { substr($_, 1) => /^\+/ ? 1 : '' }
                         map { s/%(..)/chr hex $1/ger } split ' ', $keys;
        $prepare->('seen', keys %wanted);

        is($t->get($uri)->status, $status, "$what answers $status");

        for my $key (sort keys %wanted) {
            my $asked = $key =~ s/([^\w])/sprintf '%%%02X', ord $1/ger;
            my $present = api($t, GET => "zones/seen/keys?key=$asked")
                              ->json->{answer} eq 'present';

            is(($adds ? $present : !$present) ? 1 : '', $wanted{$key},
               "$what " . ($wanted{$key} ? 'changes' : 'does not change')
               . " the key $key");
        }
    }

    subtest 'keys are changed once the final status is known' => sub {
        $prepare->('seen', qw(b1 b2 st201 st200 st st000 inside insides head));
        $prepare->('ids', qw(b1 b2 posted));

        $t->get('/both?o=b1&i=b2');
        is($changed->('seen', 'b1', 'b2'), '10',
           'the first of two directives changes its key in its zone alone');
        is($changed->('ids', 'b1', 'b2'), '01',
           'and so does the second');
        is($t->get('/status')->status, 201, 'a key may contain $status');
        is($changed->('seen', 'st201', 'st200', 'st', 'st000'), '1000',
           'it has the final status');
        is($t->get($_)->status, 200, "a request without a key succeeds: $_")
            for '/raw?o=', '/raw';
        $t->get('/inside?o=inside&s=insides');
        is($changed->('seen', 'inside', 'insides'), '01',
           'a redirected request changes the key of the location it ends in');
        $t->head('/own?o=head');
        is($changed->('seen', 'head'), '1', 'a HEAD request changes its key');
        $t->post('/made?id=posted', 'x' x 100_000);
        is($changed->('ids', 'posted'), '1', 'a POST request changes its key');

        my ($one, $two) = $adds ? ('added', 'gone') : ('gone', 'added');

        add($t, 'seen', ['gone', 'kept']);
        $t->get("/change?o=$one&n=$two");
        $t->get('/change?o=kept&n=kept');
        is(ask($t, 'seen', 'added', 'gone', 'kept'), '101',
           'a response adds a key, removes another, and adds one of both');
    };

    subtest 'subrequests change no keys' => sub {
        $prepare->('seen', qw(main part asker asked));
        is($t->get('/sub?o=main')->body, 'part', 'a page has a subrequest');
        is($t->get('/asks?o=asker')->status, 200, 'auth_request has one');
        is($changed->('seen', qw(main part asker asked)), '1010',
           'each request changes its key, and its subrequest does not');
    };

    # The client has received the header but no body: all workers know the key.

    subtest 'a key is changed before the client sees the header' => sub {
        my @keys = keys_of('head', 200);
        my $answers = '';

        $prepare->('ids', @keys);

        for my $key (@keys) {
            my $c = $t->connect;
            $c->send("GET /made?id=$key HTTP/1.1\r\nHost: localhost\r\n\r\n");
            $c->interim == 201 or die 'no header';
            $answers .= $changed->('ids', $key);
            $c->close;
        }

        is($answers, '1' x 200, 'each key is changed once its header is sent');
        is($changed->('ids', @keys), '1' x 200, 'all of them stay so');
    };

    subtest 'keys that cannot be changed' => sub {
        my $key = $adds ? 'fixed1' : 'id2';
        my $does = $adds ? 'added to' : 'removed from';

        is($t->get("/to-fixed?o=$key")->status, 200,
           'a request that would change a zone without a journal succeeds');
        is($changed->('fixed', $key), '0', 'the key is as it was');

        my $mark = $t->log_mark;
        my $before = zone_state($t, 'urls')->{counters}{invalid};
        is($t->get('/url?o=mailto:x')->status, 200,
           'a request with an invalid key succeeds');
        is(zone_state($t, 'urls')->{counters}{invalid}, $before + 1,
           'the invalid key is counted');
        is($t->get('/ambiguous?id=a&id=b')->status, 200,
           'a request with an ambiguous argument succeeds');

        my $log = $t->log_since($mark);

        like($log, qr/\[error\] .*key of 8 bytes was not $does .*"urls": it \w/,
             'the log says why the invalid key was not changed');
        like($log, qr/\[error\] .*not $does .*"seen": .*ambiguous.*"$directive"/,
             'the log says what to do about the ambiguous one');
    };

    $adds ? only_add($t) : only_remove($t);

    # The keys of responses that a dead worker has sent are in zone and journal.

    subtest 'changes survive crashes and restarts' => sub {
        my @keys = keys_of('kill', 50);
        my @last = keys_of('last', 50);

        $prepare->('seen', @keys, @last);
        $t->get("/raw?o=$_") for @keys;
        $t->kill_worker('KILL', $_) for $t->workers;
        is($changed->('seen', @keys), '1' x 50, 'the death of all workers');

        $t->get("/raw?o=$_") for @last;
        $t->kill_all;
        $t->run;
        is($changed->('seen', @keys, @last), '1' x 100,
           'the death of all processes');
        is($changed->('ids', 'posted', 'head7'), '11',
           'the death of all processes, in a zone with an image');
        is(ask($t, 'ids', 'id1', 'no'), '10', 'other keys are as they were');
        $t->stop;
        $t->run;
        is($changed->('seen', @keys), '1' x 50, 'a restart');
        $t->stop;
    };
}


sub only_add {
    my ($t) = @_;

    subtest 'rejected requests and long keys' => sub {
        is($t->get('/shield?o=new')->status, 404,
           'a request for an absent key is rejected where bloom_add adds it');
        is($t->get('/shield?o=new')->status, 200,
           'a key that the rejected request added is present to the next one');

        my $long = 'x' x 7000;
        is($t->get("/own?o=$long")->status, 200,
           'a request with a key of 7,000 bytes succeeds');
        is(api($t, GET => "zones/seen/keys?key=$long")->json->{answer},
           'present', 'a key of 7,000 bytes is added');
    };
}


sub only_remove {
    my ($t) = @_;

    subtest 'a zone without room for more removed keys' => sub {
        my $mark = $t->log_mark;

        add($t, 'small', ['s1', 's2']);
        $t->get("/to-small?o=$_") for 's1', 's2', 's1';
        is(ask($t, 'small', 's1', 's2'), '01',
           'a zone with room for one more removed key removes one');

        my $counters = zone_state($t, 'small')->{counters};

        is($counters->{removals_refused}, 1, 'the other one is counted');
        is($counters->{removed_keys}, 1, 'the removed key is counted');
        is($counters->{removals_absent}, 2,
           'keys that were absent before are counted');
        like($t->log_since($mark),
             qr/\[error\] .*bloom_remove .* "small", .* no room for/,
             'the log says which zone has no room');
    };
}
