#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A worker stops in the middle of a lookup that has found its key, and meanwhile
# an image of another key form takes its place.  The lookup starts again with
# the key as the client sent it, and finds it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

# Each image has the same host, as its key form stores it.

my %key = (raw => 'WWW.Evil.Example/', lower => 'www.evil.example/',
           url => 'evil.example/');

$t->build_image("$_.bloom", [$key{$_}], '-p', '1e-9', '--form', $_)
    for sort keys %key;

install_image($t, 'raw', 'list');
configure($t, ['zone=list:1m file=list.bloom'], api => 1, workers => 2,
          server => <<'CONF');
    location = /alone {
        bloom_reject absent $arg_one zone=list;
        try_files /page =500;
    }
    location = /two {
        bloom_reject absent $arg_one zone=list;
        bloom_reject absent $arg_two zone=list;
        try_files /page =500;
    }
CONF
$t->write_file('html/page', 'a page');
$t->run;

for my $path (qw(/alone /two)) {
    for my $forms (['lower', 'raw'], ['url', 'raw'], ['url', 'lower']) {
        my ($before, $after) = @$forms;

        load($before);

        my $stop = $faults->stop_at('present');
        my $connection = $t->connect;
        $connection->send($t->request_text(
            GET => "$path?one=$key{raw}&two=$key{raw}"));
        my $pid = $faults->stopped($stop);

        load($after);
        resume_process($pid);

        is($connection->response->status, 200,
           "$path: the key is present while $after replaces $before");
    }
}

sub load {
    my ($form) = @_;

    install_image($t, $form, 'list');
    is(api($t, POST => 'zones/list/reload')->status, 200, "$form is loaded");
}

done_testing();
