#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A key whose host no browser asks for cannot be added.  Such a key that was
# added before, by an older version or under another key form, stays present:
# after restarts, in checkpoints, and in images of any key form.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/list";

# lines that are not URLs, and the canonical keys that version 0.1.0 made of
# them

my %junk = (
    '||evil.example^' => '||evil.example^/',
    '@@||good.example^' => '||good.example^/',
    '0.0.0.0 evil.example' => '0.0.0.0%20evil.example/',
    '<html>502 Bad Gateway</html>' => '<html>502%20bad%20gateway</html>',
    'evil.example # seen today' => 'evil.example%20/',
    "http://\x80.evil.example/x" => '%80.evil.example/x',
);
my @junk = sort keys %junk;
my $junk = '1' x @junk;

$t->build_image("$_.bloom", ['first.example'], '-p', '1e-9', '-n', '50k',
                '--form', $_) for qw(raw lower host url);

# Returns 1 for each key that is present, 0 for absent, ! for invalid.

sub found {
    my %mark = (present => 1, absent => 0, invalid => '!');

    return join '', map { $mark{$_} } lookup_keys($t, 'list', @_);
}

sub start_with {
    my ($form, @keys) = @_;

    my $journal = BloomTest::Journal->new;
    $journal->append(\@keys, time => (time - 60) * 1000);

    install_image($t, $form, 'list');
    begin_state($t, 'list', $journal);
    $t->run;
}

# Tests that the zone has all junk and adds none of it.

sub has_junk {
    my ($when) = @_;

    is(found(@junk), $junk,
       "all keys of the journal are present $when");
    is(found('||other.example^', 'x y.example'), '00',
       "junk that was not added is absent $when");

    my $answer = api($t, POST => 'zones/list/keys',
                     body => join "\n", @junk, '')->json;

    is($answer->{invalid}, scalar @junk, "none of it can be added $when");
    is($answer->{added} + $answer->{already_present}, 0,
       "so nothing is added $when");
}

configure($t, ['zone=list:4m file=list.bloom'], api => 1, add => 1,
          workers => 2);


subtest 'a journal with keys that cannot be added any more' => sub {
    start_with('url', 'plain.example/', map { $junk{$_} } @junk);
    has_junk('after a start');

    is_deeply(api($t, POST => 'zones/list/keys',
                  body => "ok.example\n\n$junk[0]\n")->json->{first_invalid},
              { number => 3, reason => 'has a byte that a host cannot have' },
              'the answer says which key is invalid, and why');
    is($t->get('/add/list?k=||evil2.example^')->status, 200,
       'a request with junk for bloom_add succeeds');
    is(found('||evil2.example^'), '0', 'bloom_add does not add it');
    $t->expect_log(qr/was not added to bloom zone "list"/);

    for my $how (qw(kill_all stop)) {
        $t->$how;
        $t->run;
        has_junk("after $how");
    }

    is(api($t, POST => 'zones/list/reload')->status, 200, 'a reload succeeds');
    has_junk('after a load');

    is(api($t, POST => 'zones/list/checkpoint')->status, 200,
       'a checkpoint succeeds');
    $t->kill_all;
    $t->run;
    has_junk('after a checkpoint');

    my ($exit, $out) = $t->run_tool('journal', '--keys',
                                    files("$state/journal.*"));
    is($exit, 0, 'the tool reads the journal');
    my %has = map { $_ => 1 } split /\n/, $out;
    is(scalar(grep { $has{$_} } values %junk), scalar @junk,
       'the journal still has every key');
};


subtest 'images of other key forms have the keys of the journal' => sub {
    for (['raw', map { $junk{$_} } @junk], ['lower', map { $junk{$_} } @junk],
         ['url', @junk])
    {
        my ($form, @keys) = @$_;

        install_image($t, $form, 'list');
        is(api($t, POST => 'zones/list/reload')->status, 200,
           "an image with key form $form is loaded");
        is(found(@keys), $junk,
           "all keys are present under key form $form");
    }

    $t->stop;
};


subtest 'keys that were added under key form raw' => sub {
    my @hosts = ('*.evil.example', 'a b.example', 'user@mail.example',
                 "tab\tbed.example");

    start_with('raw', @junk, @hosts);
    is(found(@junk, @hosts), '1' x (@junk + @hosts),
       'they are present under key form raw');

    for my $how ('load', 'restart') {
        for (['url', @junk, @hosts], ['host', @hosts], ['raw', @junk]) {
            my ($form, @keys) = @$_;

            install_image($t, $form, 'list');

            if ($how eq 'load') {
                api($t, POST => 'zones/list/reload');
            } else {
                $t->kill_all;
                $t->run;
            }

            ok(settled($t, 'list', sub { $_[0]{image}{form} eq $form }),
               "an image with key form $form serves after a $how");
            is(found(@keys), '1' x @keys,
               "all of them are present under key form $form after a $how");
        }
    }

    $t->stop;
};


# The keys are in the checkpoints alone.

subtest 'a zone that stands on its checkpoints keeps the keys' => sub {
    configure($t, ['zone=list:4m capacity=50k fpr=1e-9 form=url'], api => 1,
              add => 1);
    start_with('url', map { $junk{$_} } @junk);

    for (1, 2) {
        add($t, 'list', [map { "filler$_.example/" . 'x' x 900 } 1 .. 500]);
        is(api($t, POST => 'zones/list/checkpoint')->status, 200,
           'a checkpoint is written');
    }

    # a helper that begins looks for segments to remove

    $t->expect_log(qr/exited on signal 9/);
    $t->kill_helper;
    ok(wait_until(sub { !-e "$state/journal." . '0' x 16 }),
       'the segment with the keys is removed');
    has_junk('in the filter');
    $t->kill_all;
    $t->run;
    has_junk('in a checkpoint');
    $t->stop;
};

done_testing();
