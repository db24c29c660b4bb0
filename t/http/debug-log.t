#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An nginx that is built with --with-debug writes to its debug log what each
# rule finds and decides, the steps of each load, and each append to a journal.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new(log_level => 'debug');

plan skip_all => 'nginx is built without --with-debug'
    if $t->nginx_build !~ /--with-debug/;

configure_rules($t, { ids => ['one', 'two'], bad => ['two'] }, <<'CONF',
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=seen capacity=1k fpr=1e-9;
    bloom_zone zone=none file=%%TESTDIR%%/missing.bloom required=off;
    bloom_unknown reject;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        location = /two {
            bloom_reject absent $arg_id zone=ids name=shield;
            bloom_reject present $arg_id zone=bad name=list status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /pass {
            bloom_pass present $arg_id zone=ids name=let;
            bloom_route present $arg_other zone=bad to=/known name=away
                        empty=fire;
        }
        location = /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids name=trial;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /unknown {
            bloom_reject absent $arg_id zone=none name=down;
        }
        location = /audit {
            bloom_audit 100%;
            bloom_reject absent $arg_id zone=ids name=sample;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /invalid {
            bloom_reject present $id zone=bad name=form invalid=pass;
            bloom_reject present $id zone=bad name=method if=$is_post;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /add { bloom_add $arg_id zone=seen; return 204; }
    }
    bloom_arg id $id;
    map $request_method $is_post { POST 1; }
CONF
                backend => 8081);

# the zone "none" is not loaded

$t->expect_log(qr/image "\S+missing\.bloom" of bloom zone "none" cannot be/);
$t->expect_log(qr/bloom zone "none" is not loaded/);
$t->run;


# What the debug log says of rules for a path.

sub said {
    my ($path) = @_;

    my $mark = $t->log_mark;
    $t->get($path);

    return join '|', $t->log_since($mark)
        =~ /\[debug\] .*?\*\d+ bloom (rule .*)$/mg;
}


subtest 'the debug log has the key, answer and decision of each rule' => sub {
    for (# path, and of each rule its name, zone, key, answer and decision
         ['/two?id=one', 'shield ids one present continue',
          'list bad one absent continue'],
         ['/two?id=two', 'shield ids two present continue',
          'list bad two present reject'],
         ['/two?id=three', 'shield ids three absent reject'],
         ['/two', 'shield ids - empty continue', 'list bad - empty continue'],
         ['/pass?id=one', 'let ids one present pass'],
         ['/pass?id=three', 'let ids three absent continue',
          'away bad - empty route'],
         ['/dry?id=three', 'trial ids three absent reject in dry run'],
         ['/unknown?id=three', 'down none three unknown reject'],
         ['/audit?id=three', 'sample ids three absent audit'],
         ['/invalid?id=one&id=two', 'form bad - invalid continue'])
    {
        my ($path, @rules) = @$_;

        is(said($path), join('|', map {
            my ($rule, $zone, $key, $answer, $decision) = split ' ', $_, 5;
            my $shown = $key eq '-' ? '' : $key;

            qq(rule "$rule" of zone "$zone": key "$shown", )
            . "answer $answer, $decision"
        } @rules), "the debug log shows each rule that runs: $path");
    }
};


subtest 'a key in the debug log is escaped and cut' => sub {
    like(said('/two?id=%22%0a'), qr/key "%22%0a"/,
         'an encoded key is shown as it was sent');
    is(said('/dry?id=' . 'x' x 300),
       'rule "trial" of zone "ids": key "' . 'x' x 256
       . '...", answer absent, reject in dry run',
       'a long key is cut after 256 bytes');
    like(said("/two?id=\xc3\xa4"), qr/key "\\xC3\\xA4"/,
         'bytes beyond ASCII are escaped');
};


subtest 'the debug log has each append' => sub {
    my $mark = $t->log_mark;
    $t->get('/add?id=new');

    # the helper process appends the key if the worker cannot do so at once

    my $appended = 'bloom journal "' . quotemeta($t->testdir . '/state/seen')
                   . '": appended';

    like($t->wait_for_log(qr/\[debug\] .*: $appended /, $mark),
         qr/$appended 1 key in \d+ bytes at \d+, sequence 1$/,
         'an append of one key has its place in the journal');

    $mark = $t->log_mark;
    add($t, 'seen', ['newer', 'newest']);

    like($t->wait_for_log(qr/\[debug\] .*: $appended /, $mark),
         qr/$appended 2 keys in \d+ bytes at \d+, sequence 2$/,
         'an append of a batch has the number of its keys');
};


# The steps of the loads of a zone.

sub steps {
    my ($mark, $zone) = @_;

    return join '|', $t->log_since($mark)
        =~ /\[debug\] .*?: bloom zone "\Q$zone\E": load ([a-z]+)/mg;
}


subtest 'the debug log has the steps of each load' => sub {
    my $mark = $t->log_mark;
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a load succeeds');
    is(steps($mark, 'ids'), 'opens|verified|replays|replayed|serves',
       'the steps of a load are in order');
    like($t->log_since($mark),
         qr{: load opens "\S+/ids\.bloom": 2 keys, \d+ bytes$}m,
         'a load names its image, with keys and bytes');
    like($t->log_since($mark),
         qr/: bloom zone "ids": load serves generation 2$/m,
         'a load names the generation that serves');

    $t->write_file('ids.bloom', 'damaged');
    $mark = $t->log_mark;
    is(api($t, POST => 'zones/ids/reload')->status, 422, 'a load is refused');
    is(steps($mark, 'ids'), 'fails', 'a load that is refused has one step');
    like($t->log_since($mark),
         qr{: bloom zone "ids": load fails: image "\S+/ids\.bloom"},
         'the step has the reason');
};


subtest 'nothing is logged at another level' => sub {
    $t->write_file('nginx.conf',
                   $t->read_file('nginx.conf') =~ s/debug;/info;/r);
    $t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);
    $t->reload;

    my $mark = $t->log_mark;
    $t->get('/two?id=one');
    add($t, 'seen', ['last']);
    unlike($t->log_since($mark), qr/\[debug\]/, 'the log has no debug line');
};


done_testing;
