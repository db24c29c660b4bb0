#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the counts of a response add up, whatever becomes of the keys: each
# key that was received is counted once.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;
my $json = { 'Content-Type' => 'application/json' };

my @image = ('-p', '1e-9', '-n', '10k');

$t->build_image('raw.bloom', ['base'], @image, '--source', 's=10');
$t->build_image('host.bloom', ['base.example'], @image, '--source', 's=11',
                '--form', 'host');
install_image($t, 'raw', 'forms');

configure($t, ['zone=hosts capacity=10k fpr=1e-9 form=host',
               'zone=small capacity=10k fpr=1e-9 removals=3',
               'zone=log capacity=10k fpr=1e-9 form=host;'
               . ' bloom_source zone=log name=s max_lag=off',
               'zone=full capacity=10k fpr=1e-9 removals=2;'
               . ' bloom_source zone=full name=s max_lag=off',
               'zone=forms file=forms.bloom;'
               . ' bloom_source zone=forms name=s max_lag=off'],
          api => 1, workers => 1);
$t->run;

my @counts = qw(added already_present removed absent superseded invalid
                refused);

# Tests a response: its status, and its counts, of which those that are not
# named are 0.

sub counts_are {
    my ($r, $status, $want, $name) = @_;

    is($r->status, $status, "$name: the status") or diag($r);

    my $got = eval { $r->json } // {};
    my $sum = 0;

    $sum += $got->{$_} // 0 for @counts;

    is($got->{received} // 0, $sum, "$name: the counts add up") or diag($r);
    is_deeply({ map { $got->{$_} ? ($_ => $got->{$_}) : () }
                'received', @counts },
              $want, "$name: the counts") or diag($r);
}

sub post { return api($t, POST => "zones/$_[0]", @_[1 .. $#_]) }

subtest 'additions' => sub {
    counts_are(post('hosts/keys', body => "a.example\nb.example\n"), 200,
               { received => 2, added => 2 }, 'new keys');
    counts_are(post('hosts/keys',
                    body => "a.example\nc.example\n[::\nc.example\n"), 200,
               { received => 4, added => 1, already_present => 2, invalid => 1 },
               'keys of all kinds');
    counts_are(post('hosts/keys', body => '["d.example","[::",7]',
                    headers => $json), 400,
               { received => 2, added => 1, invalid => 1 }, 'a wrong array');
};


subtest 'removals' => sub {
    counts_are(post('hosts/remove',
                    body => "a.example\n[::\na.example\nz.example\n"), 200,
               { received => 4, removed => 1, absent => 2, invalid => 1 },
               'keys of all kinds');
    counts_are(post('hosts/remove', body => '["b.example","[::",7]',
                    headers => $json), 400,
               { received => 2, removed => 1, invalid => 1 }, 'a wrong array');

    for ([c => 'c.example', { received => 1, removed => 1 }],
         [absent => 'y.example', { received => 1, absent => 1 }],
         [invalid => '%5B::', { received => 1, invalid => 1 }])
    {
        my ($name, $key, $want) = @$_;

        counts_are(api($t, DELETE => "zones/hosts/keys?key=$key"), 200, $want,
                   "DELETE of a key, $name");
    }

    add($t, 'small', [keys_of('key', 4)]);

    counts_are(post('small/remove',
                    body => join '', map { "key$_\n" } 1 .. 6), 507,
               { received => 6, removed => 3, refused => 3 },
               'more keys than there is room for');
    counts_are(api($t, DELETE => 'zones/small/keys?key=key4'), 507,
               { received => 1, refused => 1 }, 'DELETE without room');
};


subtest 'changes' => sub {
    counts_are(changes($t, 'log', 0, 1, '+a.example', '+b.example',
                       '-c.example', '+[::', '+a.example', '-d.example',
                       '+d.example'),
               200, { received => 7, added => 3, absent => 1, superseded => 2,
                      invalid => 1 }, 'changes of all kinds');
    counts_are(changes($t, 'log', 1, 2, '+a.example', '-b.example',
                       '-[::', '-[::'),
               200, { received => 4, already_present => 1, removed => 1,
                      invalid => 2 }, 'further changes');
    counts_are(changes($t, 'log', 1, 2, '+a.example'), 200, {},
               'changes that the zone has');
    counts_are(changes($t, 'full', 0, 1, '+a', '-b', '-c', '-d'), 507, {},
               'changes that there is no room for, as a whole');
};


subtest 'a key that another image makes invalid' => sub {
    my $text = $t->request_text(
        POST => '/bloom/zones/forms/changes?source=s&after=11&position=12',
        body => "+ok.example\n+[::\n-x:y:z\n");
    my $c = $t->connect;

    # the first worker reads all but the end of the body before it answers the
    # next request

    $c->send(substr $text, 0, -1);

    install_image($t, 'host', 'forms');
    is(post('forms/reload')->status, 200, 'an image of another key form loads');

    $c->send(substr $text, -1);

    counts_are($c->response, 200,
               { received => 3, added => 1, invalid => 2 },
               'keys that were valid when they were read');
};


subtest 'lookups' => sub {
    my $r = post('hosts/test', body => "d.example\nz.example\n[::\n\n"
                               . ('x' x 70_000) . "\n");
    my $got = $r->json;

    is($got->{tested}, 4, 'all keys are tested');
    is($got->{tested}, $got->{absent} + $got->{present} + $got->{unknown}
                       + $got->{invalid}, 'the counts add up');
    is_deeply($got->{answers}, [qw(present absent invalid invalid)],
              'the answers');
};

done_testing;
