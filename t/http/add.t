#!/usr/bin/perl

# bloom_add: which requests add a key, and when: before the client has the
# header.  Where the list comes from, and what ends it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
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


# Each request and the keys of zone seen after it: those with + are in

my $n = 0;

for (['/page?s=%', 200, '+%', 'of the server'],
     ['/own?s=%a&o=%b', 200, '-%a +%b', 'a list of its own'],
     ['/none?s=%', 200, '-%', 'off'],
     ['/outer/none?s=%a&o=%b&n=%c', 200, '-%a -%b -%c', 'off, deeper'],
     ['/outer/own?s=%a&o=%b&n=%c', 200, '-%a -%b +%c', 'its own, deeper'],
     ['/outer/inherits?s=%a&o=%b', 200, '-%a +%b', 'inherited'],
     ['/if?o=%', 200, '-%', 'if= of nothing'],
     ['/if?o=%&if=0', 200, '-%', 'if= of 0'],
     ['/if?o=%&if=1', 200, '+%', 'if= of 1'],
     ['/if?o=%&if=00', 200, '+%', 'if= of anything else'],
     ['/form?o=%%2B1+2', 200, '+%%2B1%202', 'decode=form'],
     ['/uri?o=%%2B1+2', 200, '+%%2B1+2', 'decode=uri'],
     ['/raw?o=%%2B1+2', 200, '+%%252B1+2', 'no decoding'],
     ['/error?o=%', 404, '+%', 'an error'],
     ['/errors?o=%', 404, '', 'an error with a page'],
     ['/redirect?o=%', 302, '+%', 'a redirect'],
     ['/page/none?s=%', 404, '+%', 'not found'])
{
    my ($uri, $status, $keys, $what) = @$_;

    $n++;
    s/%(?=[a-z]\b|[&\s]|$|%)/k$n/g for $uri, $keys;

    is($t->get($uri)->status, $status, "$what: status");

    for my $key (split ' ', $keys) {
        my $in = $key =~ s/^\+// ? 'present' : ($key =~ s/^-//, 'absent')[1];
        my $form = $key =~ s/\+/%2B/gr;
        is(api($t, GET => "zones/seen/keys?key=$form")->json->{answer}, $in,
           "$what: $key");
    }
}


subtest 'with the right rules' => sub {
    $t->get('/both?o=b1&i=b2');
    is(ask($t, 'seen', 'b1', 'b2'), '10', 'one zone');
    is(ask($t, 'ids', 'b1', 'b2'), '01', 'and the other');

    is($t->get('/status')->status, 201, 'what is known with the header');
    is(ask($t, 'seen', 'st201', 'st200', 'st', 'st000'), '1000', 'is known');

    is($t->get('/raw?o=')->status, 200, 'an empty key');
    is($t->get('/raw')->status, 200, 'none');

    is($t->get('/shield?o=new')->status, 404, 'rejected first');
    is($t->get('/shield?o=new')->status, 200, 'and then known');

    $t->get('/inside?o=inside&s=insides');
    is(ask($t, 'seen', 'insides'), '1',
       'a request adds where it ends up, not on its way');
    is(ask($t, 'seen', 'inside'), '0', 'and there alone');

    $t->head('/own?o=head');
    is(ask($t, 'seen', 'head'), '1', 'HEAD');
    $t->post('/made?id=posted&status=201', 'x' x 100_000);
    is(ask($t, 'ids', 'posted'), '1', 'POST');
};


subtest 'subrequests' => sub {
    is($t->get('/sub?o=main')->body, 'part', 'one within another');
    is(ask($t, 'seen', 'main', 'part'), '10', 'adds nothing');

    is($t->get('/asks?o=asker')->status, 200, 'one before the other');
    is(ask($t, 'seen', 'asker', 'asked'), '10', 'nor does that');
};


# The client has the header and nothing else yet: the key is in, in all
# workers.

subtest 'before the client sees the header' => sub {
    for my $i (1 .. 200) {
        my $c = $t->connect;
        $c->send("GET /made?id=head$i&status=201 HTTP/1.1\r\n"
                 . "Host: localhost\r\n\r\n");
        $c->interim == 201 or die 'no header';

        my $answer = ask($t, 'ids', "head$i");
        $answer eq '1' or is($answer, '1', "key $i") or last;
        $c->close;
    }

    is(ask($t, 'ids', map { "head$_" } 1 .. 200), '1' x 200,
       'two hundred of them were');
};


subtest 'what is no key' => sub {
    my $mark = $t->log_mark;
    my $r = $t->get('/own?o=' . 'x' x 7000);
    is($r->status, 200, 'a long one');
    is(api($t, GET => 'zones/seen/keys?key=' . 'x' x 7000)->json->{answer},
       'present', 'is one');

    is($t->get('/to-fixed?o=fixed1')->status, 200, 'a zone that takes none');
    is(ask($t, 'fixed', 'fixed1', 'id1'), '01', 'takes none');
};


# What a dead worker has answered for is in the zone, and in the journal.

subtest 'survives' => sub {
    my @keys = keys_of('kill', 50);
    $t->get("/raw?o=$_") for @keys;

    $t->kill_worker('KILL', $_) for $t->workers;
    is(sure($t, 'seen', @keys), '1' x 50, 'the death of all workers');

    $t->get("/raw?o=last$_") for 1 .. 50;
    $t->kill_all;
    $t->run;
    is(sure($t, 'seen', @keys, map { "last$_" } 1 .. 50), '1' x 100,
       'the death of everything');
    is(sure($t, 'ids', 'posted', 'head7', 'id1', 'no'), '1110',
       'in the other zone, too');

    $t->stop;
    $t->run;
    is(sure($t, 'seen', @keys), '1' x 50, 'and a restart');
};


done_testing;
