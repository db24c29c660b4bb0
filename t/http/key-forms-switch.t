#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that each lookup is answered by one generation with its own key form:
# while images of different key forms take turns, a key that each image has is
# never absent and a key that no image has is never present.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

# The images have the same host as each key form stores it, and each has its own
# seed.

my %key = (raw => 'WWW.Evil.Example/', lower => 'www.evil.example/',
           url => 'evil.example/');

$t->build_image("$_.bloom", [$key{$_}, "second.$key{$_}"], '-p', '1e-9', '-n',
                '20k', '--form', $_, $_ eq 'raw' ? () : ('--hash', 'siphash'))
    for sort keys %key;

$t->build_image('other.bloom', ['other.example/'], '-p', '1e-9', '--form',
                'url');

install_image($t, 'raw', 'list');
configure($t, ['zone=list:1m file=list.bloom', 'zone=other file=other.bloom'],
          api => 1, workers => 2, server => <<'CONF');
    location = /all {
        bloom_reject present $arg_k zone=list split=, match=all;
        try_files /page =500;
    }
    large_client_header_buffers 4 64k;
    location = /late {
        bloom_reject present $http_long zone=other;
        bloom_reject present $http_long zone=other;
        bloom_reject present $http_long zone=other;
        bloom_reject present $http_long zone=other;
        bloom_reject present $http_long zone=other;
        bloom_reject present $http_long zone=other;
        bloom_reject absent $arg_one zone=list;
        try_files /page =500;
    }
    location = /rules {
        bloom_reject absent $arg_one zone=list status=481;
        bloom_reject absent $arg_two zone=list status=482;
        bloom_reject absent $arg_three zone=list status=483;
        try_files /page =500;
    }
CONF
$t->write_file('html/page', 'a page');
$t->run;

my $generation = generation($t, 'list');

my $switcher = spawn(sub {
    for (my $round = 1; $round <= 40 || !-e "$dir/enough"; $round++) {
        for my $form (qw(url raw lower)) {
            install_image($t, $form, 'list');
            api($t, POST => 'zones/list/reload')->status == 200 or die;
        }
    }
});

my ($asked, %answers, %rejected, %rules, %late) = (0);
my $long = '%2541/../' x 7_000;
my $both = "$key{raw},,second.$key{raw}";

while (alive($switcher)) {
    $answers{ask($t, 'list', $key{raw}, 'other.example/')}++ for 1 .. 20;

    for ($t->pipeline(map { "/all?k=$_" } ($both) x 20,
                      ("$both,other.example/") x 20))
    {
        $rejected{$asked++ % 40 < 20 ? 'all' : 'not all'}{$_->status}++;
    }

    # rules that take long, so that images change before the last rule runs

    $late{$_->status}++
        for map { $t->get("/late?one=$key{raw}",
                          headers => { Long => "long.example/$long" }) }
            1 .. 20;

    my @keys = ($key{raw}, 'other.example/');

    for my $rule (0 .. 3) {
        my $query = join '&', "one=$keys[$rule == 1]", "two=$keys[$rule == 2]",
                    "three=$keys[$rule == 3]";

        $rules{$rule}{$_->status}++
            for $t->pipeline(("/rules?$query") x 10);
    }

    $t->write_file('enough', '') if $asked >= 200;
}

cmp_ok(generation($t, 'list'), '>=', $generation + 120,
       'images of three key forms take turns in 120 generations');
cmp_ok($asked, '>=', 200, 'at least 200 lists are looked up meanwhile');
is(join(' ', sort keys %{ $rules{$_} }), $_ ? "48$_" : '200',
   $_ ? "rule $_ of three decides in every generation"
      : 'none of three rules fires in any generation')
    for 0 .. 3;
is(join(' ', sort keys %late), '200',
   'a present key is never absent for a rule after others that take long');
is(join(' ', sort keys %answers), '10',
   'a present key is never absent and another key is never present');
is(join(' ', sort keys %{ $rejected{all} }), '403',
   'a list of present keys is rejected in every generation');
is(join(' ', sort keys %{ $rejected{'not all'} }), '200',
   'a list with an absent key is passed in every generation');

done_testing();
