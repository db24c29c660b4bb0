#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_remove: which requests remove which keys, how locations inherit
# the directive, that a key is absent before the client has a response, and
# what happens to keys that cannot be removed.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['id1', 'id2', 'id3', keys_of('gone', 200)],
                '-p', '1e-9', '-n', '10k', '--as-of', time - 7200);
$t->write_file('html/page', 'a page');
$t->write_file('html/gone.html', 'gone');

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=10k fpr=1e-9',
               'zone=fixed file=ids.bloom journal=off',
               'zone=small capacity=10k fpr=1e-9 removals=2',
               'zone=urls capacity=10k fpr=1e-9 form=url'],
          api => 1, workers => 2, http => 'bloom_arg id $id;',
          server => <<'CONF');
    root html;
    bloom_remove $arg_s zone=seen;

    location /page { }
    location = /own { bloom_remove $arg_o zone=seen; return 200; }
    location = /both { bloom_remove $arg_o zone=seen;
                       bloom_remove $arg_i zone=ids; return 200; }
    location = /none { bloom_remove off; return 200; }
    location /outer/ {
        bloom_remove $arg_o zone=seen;
        location /outer/none { bloom_remove off; return 200; }
        location /outer/own { bloom_remove $arg_n zone=seen; return 200; }
        location /outer/inherits { return 200; }
        location /outer/adds { bloom_add $arg_n zone=seen; return 200; }
    }
    location = /if { bloom_remove $arg_o zone=seen if=$arg_if; return 200; }
    location = /form { bloom_remove $arg_o zone=seen decode=form; return 200; }
    location = /uri { bloom_remove $arg_o zone=seen decode=uri; return 200; }
    location = /raw { bloom_remove $arg_o zone=seen; return 200; }
    location = /error { bloom_remove $arg_o zone=seen; return 404; }
    location = /errors { bloom_remove $arg_o zone=seen; return 404;
                         error_page 404 /gone.html; }
    location = /inside { bloom_remove $arg_o zone=seen;
                         try_files /none.html /page?$args; }
    location = /status { bloom_remove st$status zone=seen; return 201; }
    location = /change { bloom_remove $arg_o zone=seen;
                         bloom_add $arg_n zone=seen; return 200; }
    location /made { bloom_remove $upstream_http_x_gone_id zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location = /sub { bloom_remove $arg_o zone=seen; ssi on;
                      ssi_types text/plain; default_type text/plain;
                      alias html/ssi; }
    location = /part { bloom_remove part$arg_x zone=seen; return 200 part; }
    location = /to-fixed { bloom_remove $arg_o zone=fixed; return 200; }
    location = /to-small { bloom_remove $arg_o zone=small; return 200; }
    location = /url { bloom_remove $arg_o zone=urls; return 200; }
    location = /ambiguous { bloom_remove $id zone=seen; return 200; }
CONF
$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));
$t->write_file('html/ssi', '<!--#include virtual="/part" -->');

$t->backend(8081, sub {
    my ($request) = @_;
    my ($id) = $request->{uri} =~ m{id=(\w*)};
    return { status => 200, headers => ['X-Gone-Id' => $id // ''],
             body => 'gone ' . 'x' x 100_000 };
});
$t->run;

# The first removal of a zone needs a segment of the journal that the helper may
# not have created yet.  POST remove waits for it, and bloom_remove does not.

for ('ids', 'seen', 'small', 'urls') {
    api($t, POST => "zones/$_/remove", body => "http://first.example/\n")
        ->status == 200 or die "zone $_ takes no removals";
}


# Each request with the keys of zone "seen" after it: + is present, - is absent.
# All keys are added before.

my $n = 0;

for (['/page?s=%', 200, '-%', 'a location without bloom_remove'],
     ['/own?s=%a&o=%b', 200, '+%a -%b', 'a location with its own bloom_remove'],
     ['/none?s=%', 200, '+%', 'a location with bloom_remove off'],
     ['/outer/none?s=%a&o=%b&n=%c', 200, '+%a +%b +%c',
      'a nested location with bloom_remove off'],
     ['/outer/own?s=%a&o=%b&n=%c', 200, '+%a +%b -%c',
      'a nested location with its own bloom_remove'],
     ['/outer/inherits?s=%a&o=%b', 200, '+%a -%b',
      'a nested location without bloom_remove'],
     ['/outer/adds?s=%a&o=%b', 200, '+%a -%b',
      'a nested location with a bloom_add'],
     ['/if?o=%', 200, '+%', 'a location whose if= is empty'],
     ['/if?o=%&if=0', 200, '+%', 'a location whose if= is 0'],
     ['/if?o=%&if=1', 200, '-%', 'a location whose if= is 1'],
     ['/form?o=%%2B1+2', 200, '-%%2B1%202', 'a location with decode=form'],
     ['/uri?o=%%2B1+2', 200, '-%%2B1+2', 'a location with decode=uri'],
     ['/raw?o=%%2B1+2', 200, '-%%252B1+2', 'a location without decode='],
     ['/error?o=%', 404, '-%', 'a location that returns an error'],
     ['/page/none?s=%', 404, '-%', 'a location whose file does not exist'])
{
    my ($uri, $status, $keys, $what) = @$_;

    $n++;
    s/%(?=[a-z]\b|[&\s]|$|%)/k$n/g for $uri, $keys;

    for (split ' ', $keys) {
        my ($key) = /^[+-](.*)/;
        add($t, 'seen', [$key =~ s/%(..)/chr hex $1/ger]);
    }

    is($t->get($uri)->status, $status, "$what answers $status");

    for (split ' ', $keys) {
        my ($sign, $key) = /^([+-])(.*)/;
        my $form = $key =~ s/\+/%2B/gr;

        is(api($t, GET => "zones/seen/keys?key=$form")->json->{answer},
           $sign eq '+' ? 'present' : 'absent',
           "$what " . ($sign eq '+' ? 'does not remove' : 'removes')
           . " key $key");
    }
}


subtest 'keys are removed once the final status is known' => sub {
    add($t, 'seen', [qw(b1 st201 st200 inside insides head new main part old)]);

    $t->get('/both?o=b1&i=id1');
    is(ask($t, 'seen', 'b1', 'st201'), '01',
       'the first of two bloom_remove directives removes its key alone');
    is(ask($t, 'ids', 'id1', 'id2'), '01',
       'the second of two bloom_remove directives removes its key alone');

    $t->get('/status');
    is(ask($t, 'seen', 'st201', 'st200'), '01',
       'a key that contains $status is removed with the final status');

    $t->get($_) for '/raw?o=', '/raw';
    is(ask($t, 'seen', 'inside', 'insides'), '11',
       'an empty key removes nothing');
    $t->get('/inside?o=inside&s=insides');
    is(ask($t, 'seen', 'inside', 'insides'), '10',
       'a redirected request removes the key of the location it ends in');

    $t->head('/own?o=head');
    is(ask($t, 'seen', 'head'), '0', 'a HEAD request removes its key');

    $t->get('/change?o=old&n=new2');
    is(ask($t, 'seen', 'old', 'new2'), '01',
       'a response can remove one key and add another');
    $t->get('/change?o=new&n=new');
    is(ask($t, 'seen', 'new'), '1',
       'a key that a response both removes and adds is present');

    is($t->get('/sub?o=main')->body, 'part', 'a page has a subrequest');
    is(ask($t, 'seen', 'main', 'part'), '01', 'a subrequest removes nothing');
};


# The client has received the header but no body: all workers know the removal.

subtest 'a key is absent before the client sees the header' => sub {
    my ($answers, $i) = ('');

    for $i (1 .. 200) {
        my $c = $t->connect;
        $c->send("GET /made?id=gone$i HTTP/1.1\r\nHost: localhost\r\n\r\n");
        $c->interim == 200 or die 'no header';
        $answers .= ask($t, 'ids', "gone$i");
        $c->close;
    }

    is($answers, '0' x 200,
       'each of 200 keys is absent once its header is sent');
    is(ask($t, 'ids', map { "gone$_" } 1 .. 200), '0' x 200,
       'all of them stay absent');
};


subtest 'keys that cannot be removed stay present, and are counted' => sub {
    my $mark = $t->log_mark;

    add($t, 'small', ['s1', 's2']);
    $t->get("/to-small?o=$_") for 's1', 's2', 's1';
    is(ask($t, 'small', 's1', 's2'), '01',
       'a zone with room for one more removed key removes one');
    is(zone_state($t, 'small')->{counters}{removals_refused}, 1,
       'the other one is counted');
    is(zone_state($t, 'small')->{counters}{removed_keys}, 1,
       'the removed key is counted');
    is(zone_state($t, 'small')->{counters}{removals_absent}, 2,
       'keys that were absent before are counted');
    like($t->log_since($mark),
         qr/\[error\] .*bloom_remove could not remove a key from bloom zone "small", so the key stays as it was: the zone has no room for more removed keys/,
         'the log says which zone has no room');

    is($t->get('/to-fixed?o=id2')->status, 200,
       'a request that would remove from a zone without a journal succeeds');
    is(ask($t, 'fixed', 'id2'), '1', 'the key stays present');

    $mark = $t->log_mark;
    my $before = zone_state($t, 'urls')->{counters}{invalid};
    is($t->get('/url?o=mailto:x')->status, 200,
       'a request with an invalid key succeeds');
    is(zone_state($t, 'urls')->{counters}{invalid}, $before + 1,
       'the invalid key is counted');
    like($t->log_since($mark),
         qr/\[error\] .*a key of 8 bytes was not removed from bloom zone "urls": it \w/,
         'the log says why it was not removed');

    $mark = $t->log_mark;
    is($t->get('/ambiguous?id=a&id=b')->status, 200,
       'a request with an ambiguous argument succeeds');
    like($t->log_since($mark),
         qr/\[error\] .*a key was not removed from bloom zone "seen": the argument, cookie or header that it comes from is ambiguous in the request; let "bloom_remove" take the key from the backend's response/,
         'the log says why its key was not removed');
};


subtest 'removals survive crashes and restarts' => sub {
    my @keys = keys_of('kill', 50);
    add($t, 'seen', \@keys);
    $t->get("/raw?o=$_") for @keys;

    $t->kill_worker('KILL', $_) for $t->workers;
    is(ask_until_known($t, 'seen', @keys), '0' x 50,
       'removals survive the death of all workers');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', @keys), '0' x 50,
       'removals survive the death of all processes');
    is(ask_until_known($t, 'ids', 'id1', 'id2', 'gone1', 'gone200'), '0100',
       'removals from a zone with an image survive, too');
    $t->stop;
    $t->run;
    is(ask_until_known($t, 'seen', @keys), '0' x 50,
       'removals survive a restart');
};


done_testing;
