#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_add: which requests add which keys, how locations inherit the
# directive, and that a key is in its zone before the client has a response.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-6', '-n', '5k');
$t->write_file('html/page', 'a page');
$t->write_file('html/gone.html', 'gone');

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=10k fpr=1e-9',
               'zone=fixed file=ids.bloom journal=off'],
          api => 1, workers => 2, server => <<'CONF');
    root html;
    bloom_add $arg_s zone=seen;

    location /page { }
    location = /own { bloom_add $arg_o zone=seen; return 200; }
    location = /both { bloom_add $arg_o zone=seen; bloom_add $arg_i zone=ids;
                       return 200; }
    location = /none { bloom_add off; return 200; }
    location /outer/ {
        bloom_add $arg_o zone=seen;
        location /outer/none { bloom_add off; return 200; }
        location /outer/own { bloom_add $arg_n zone=seen; return 200; }
        location /outer/inherits { return 200; }
    }
    location = /if { bloom_add $arg_o zone=seen if=$arg_if; return 200; }
    location = /form { bloom_add $arg_o zone=seen decode=form; return 200; }
    location = /uri { bloom_add $arg_o zone=seen decode=uri; return 200; }
    location = /raw { bloom_add $arg_o zone=seen; return 200; }
    location = /error { bloom_add $arg_o zone=seen; return 404; }
    location = /errors { bloom_add $arg_o zone=seen; return 404;
                         error_page 404 /gone.html; }
    location = /redirect { bloom_add $arg_o zone=seen; return 302 /; }
    location = /inside { bloom_add $arg_o zone=seen;
                         try_files /none.html /page?$args; }
    location = /status { bloom_add st$status zone=seen; return 201; }
    location /made { bloom_add $upstream_http_x_new_id zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location = /shield { bloom_reject absent $arg_o zone=ids;
                         bloom_add $arg_o zone=ids; try_files /page =500; }
    location = /sub { bloom_add $arg_o zone=seen; ssi on; ssi_types text/plain;
                      default_type text/plain; alias html/ssi; }
    location = /part { bloom_add part$arg_x zone=seen; return 200 part; }
    location = /asks { auth_request /asked; bloom_add $arg_o zone=seen;
                       try_files /page =500; }
    location = /asked { bloom_add asked$arg_x zone=seen; root html;
                        try_files /page =500; }
    location = /to-fixed { bloom_add $arg_o zone=fixed; return 200; }
CONF
$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));
$t->write_file('html/ssi', '<!--#include virtual="/part" -->');

$t->backend(8081, sub {
    my ($request) = @_;
    my ($id, $status) = $request->{uri} =~ m{id=(\w*)&status=(\d+)};
    return { status => $status // 201, headers => ['X-New-Id' => $id // ''],
             body => 'made ' . 'x' x 100_000 };
});
$t->run;


# Each request with the keys of zone "seen" after it: + is present, - is absent.

my $n = 0;

for (['/page?s=%', 200, '+%', 'a location without bloom_add'],
     ['/own?s=%a&o=%b', 200, '-%a +%b', 'a location with its own bloom_add'],
     ['/none?s=%', 200, '-%', 'a location with bloom_add off'],
     ['/outer/none?s=%a&o=%b&n=%c', 200, '-%a -%b -%c',
      'a nested location with bloom_add off'],
     ['/outer/own?s=%a&o=%b&n=%c', 200, '-%a -%b +%c',
      'a nested location with its own bloom_add'],
     ['/outer/inherits?s=%a&o=%b', 200, '-%a +%b',
      'a nested location without bloom_add'],
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
     ['/page/none?s=%', 404, '+%', 'a location whose file does not exist'])
{
    my ($uri, $status, $keys, $what) = @$_;

    $n++;
    s/%(?=[a-z]\b|[&\s]|$|%)/k$n/g for $uri, $keys;

    is($t->get($uri)->status, $status, "$what answers $status");

    for (split ' ', $keys) {
        my ($sign, $key) = /^([+-])(.*)/;
        my $form = $key =~ s/\+/%2B/gr;

        is(api($t, GET => "zones/seen/keys?key=$form")->json->{answer},
           $sign eq '+' ? 'present' : 'absent',
           "$what " . ($sign eq '+' ? 'adds' : 'does not add') . " key $key");
    }
}


subtest 'bloom_add adds keys once the final status is known' => sub {
    $t->get('/both?o=b1&i=b2');
    is(ask($t, 'seen', 'b1', 'b2'), '10',
       'the first of two bloom_add directives adds its key to its zone alone');
    is(ask($t, 'ids', 'b1', 'b2'), '01',
       'the second of two bloom_add directives adds its key to its zone alone');

    is($t->get('/status')->status, 201,
       'a request whose key contains $status is answered with 201');
    is(ask($t, 'seen', 'st201', 'st200', 'st', 'st000'), '1000',
       'a key that contains $status is added with the final status');

    is($t->get('/raw?o=')->status, 200, 'a request with an empty key succeeds');
    is($t->get('/raw')->status, 200, 'a request without a key succeeds');

    is($t->get('/shield?o=new')->status, 404,
       'a request for an absent key is rejected where bloom_add adds it');
    is($t->get('/shield?o=new')->status, 200,
       'a key that the rejected request added is present to the next request');

    $t->get('/inside?o=inside&s=insides');
    is(ask($t, 'seen', 'insides'), '1',
       'a redirected request adds the key of the location it ends in');
    is(ask($t, 'seen', 'inside'), '0',
       'a redirected request does not add the key of the location it left');

    $t->head('/own?o=head');
    is(ask($t, 'seen', 'head'), '1', 'a HEAD request adds its key');
    $t->post('/made?id=posted&status=201', 'x' x 100_000);
    is(ask($t, 'ids', 'posted'), '1', 'a POST request adds its key');
};


subtest 'subrequests add no keys' => sub {
    is($t->get('/sub?o=main')->body, 'part',
       'a page includes the response of a subrequest');
    is(ask($t, 'seen', 'main', 'part'), '10',
       'a request adds its key and its included subrequest does not');

    is($t->get('/asks?o=asker')->status, 200,
       'a request passes its auth_request subrequest');
    is(ask($t, 'seen', 'asker', 'asked'), '10',
       'a request adds its key and its auth_request subrequest does not');
};


# The client has received the header but no body: all workers find the key.

subtest 'a key is in its zone before the client sees the header' => sub {
    for my $i (1 .. 200) {
        my $c = $t->connect;
        $c->send("GET /made?id=head$i&status=201 HTTP/1.1\r\n"
                 . "Host: localhost\r\n\r\n");
        $c->interim == 201 or die 'no header';

        my $answer = ask($t, 'ids', "head$i");
        $answer eq '1'
            or is($answer, '1', "key head$i is present once its header is sent")
            or last;
        $c->close;
    }

    is(ask($t, 'ids', map { "head$_" } 1 .. 200), '1' x 200,
       'two hundred added keys are present');
};


subtest 'long keys are added and zones without a journal take none' => sub {
    my $r = $t->get('/own?o=' . 'x' x 7000);
    is($r->status, 200, 'a request with a key of 7,000 bytes succeeds');
    is(api($t, GET => 'zones/seen/keys?key=' . 'x' x 7000)->json->{answer},
       'present', 'a key of 7,000 bytes is added');

    is($t->get('/to-fixed?o=fixed1')->status, 200,
       'a request that would add to a zone without a journal succeeds');
    is(ask($t, 'fixed', 'fixed1', 'id1'), '01',
       'a zone with an image and without a journal takes no key');
};


# Keys of responses that a dead worker has sent are in the zone and the journal.

subtest 'added keys survive crashes and restarts' => sub {
    my @keys = keys_of('kill', 50);
    $t->get("/raw?o=$_") for @keys;

    $t->kill_worker('KILL', $_) for $t->workers;
    is(ask_until_known($t, 'seen', @keys), '1' x 50,
       'added keys survive the death of all workers');

    $t->get("/raw?o=last$_") for 1 .. 50;
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', @keys, map { "last$_" } 1 .. 50), '1' x 100,
       'keys added to an empty zone survive the death of all processes');
    is(ask_until_known($t, 'ids', 'posted', 'head7', 'id1', 'no'), '1110',
       'keys added to a zone with an image survive the death of all processes');

    $t->stop;
    $t->run;
    is(ask_until_known($t, 'seen', @keys), '1' x 50, 'added keys survive a restart');
};


done_testing;
