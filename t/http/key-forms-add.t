#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests additions to zones with key forms: every spelling of an added key is
# present, also after restarts and with an image of another key form.  The
# journal has canonical keys.  An invalid key is counted and not added.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;


$t->build_image("$_.bloom", ['first.example'], '-p', '1e-9', '-n', '10k',
                '--form', $_) for qw(raw lower host url);

sub install { install_image($t, $_[0], 'list') }

my @zones = ('zone=hosts capacity=100k fpr=1e-9 form=host',
             'zone=urls capacity=10k fpr=1e-9 form=url',
             'zone=small capacity=10k fpr=1e-9 form=lower',
             'zone=memory capacity=10k fpr=1e-9 form=url journal=off',
             'zone=list:1m file=list.bloom');

install('raw');
configure($t, \@zones, api => 1, add => 1, workers => 2);
$t->run;

# Returns the keys of a journal except those of the feed.

sub journal {
    my ($zone) = @_;

    my ($exit, $out) = $t->run_tool('journal', '--keys',
                                    files("$dir/state/$zone/journal.*"));
    is($exit, 0, "the tool reads the journal of zone $zone");

    my %keys = map { $_ => 1 } grep { !/\bfeed\b/i } split /\n/, $out;

    return join ',', sort keys %keys;
}


# ---- keys that the endpoint adds ----

is_deeply(api($t, POST => 'zones/hosts/keys', body => join "\n",
              '# comment', 'Evil.Example.', 'EVIL.example:80', '', 'not a host',
              'other.example', "b\xc3\xbccher.example", '..')->json,
          { received => 7, added => 3, already_present => 1, invalid => 3,
            first_invalid => { number => 1,
                                  reason => 'has a byte that a host cannot have' },
            durable => JSON::PP::false },
          'the endpoint adds lines and reports those that are invalid hosts');

is_deeply(api($t, POST => 'zones/urls/keys?durable=true',
              headers => ['Content-Type' => 'application/json'],
              body => '["http://Evil.Example/a/../b", "", "evil.example/b",'
                      . ' "http://", "mailto:x"]')->json,
          { received => 5, added => 1, already_present => 1, invalid => 3,
            first_invalid => { number => 2, reason => 'is empty' },
            durable => JSON::PP::true },
          'the endpoint adds an array and reports elements that are empty or'
          . ' have no host');

is_deeply(api($t, POST => 'zones/hosts/keys', body => "a b\nc d\n")->json,
          { received => 2, added => 0, already_present => 0, invalid => 2,
            first_invalid => { number => 1,
                                  reason => 'has a byte that a host cannot have' },
            durable => JSON::PP::false },
          'the endpoint adds nothing from lines that are invalid hosts');

is_deeply(api($t, POST => 'zones/small/keys', body => "A B\na b\n")->json,
          { received => 2, added => 1, already_present => 1, invalid => 0,
            durable => JSON::PP::false },
          'the endpoint reports no invalid key of key form lower');

is(zone_state($t, 'hosts')->{counters}{invalid}, 5,
   'the invalid keys of zone hosts are counted');
is(zone_state($t, 'urls')->{counters}{invalid}, 3,
   'the invalid keys of zone urls are counted');

{
    my @feed = map { $_ % 10 ? "h$_.FEED.example" : "no host $_" } 1 .. 20_000;
    my $r = api($t, POST => 'zones/hosts/keys', body => join "\n", @feed);

    is_added($r, 20_000, 18_000, 0, undef,
             'the endpoint adds a feed of 18,000 valid keys');
    is($r->json->{invalid}, 2000,
       'the endpoint reports 2,000 invalid keys of a feed');
    is($r->json->{first_invalid}{number}, 10,
       'the endpoint reports the first invalid key of a feed');
}


# ---- bloom_add ----

{
    my $mark = $t->log_mark;

    is($t->get('/add/hosts?k=ADDED.example:1')->status, 200,
       'a request whose key bloom_add adds succeeds');
    is($t->get('/add/hosts?k=..')->status, 200,
       'a request whose key is invalid for bloom_add succeeds');
    like($t->wait_for_log(qr/was not added/, $mark) && $t->log_since($mark),
         qr/\[error\].*a key of 2 bytes was not added to bloom zone "hosts": it /,
         'the error log says that an invalid key was not added');
    is(zone_state($t, 'hosts')->{counters}{invalid}, 2006,
       'an invalid key of bloom_add is counted');

    my $long = 'http://long.example/' . 'x' x 5000;
    $t->get("/add/urls?k=$long");
    is(ask($t, 'urls', $long, "$long/"), '10',
       'a long key that bloom_add adds is present');
}

$t->get("/add/$_->[0]?k=$_->[1]")
    for ['urls', 'http://Added.example/%2561/'], ['small', 'ADDED'],
        ['memory', 'HTTP://memory.example/x'], ['list', 'HTTP://Raw.Example/p'],
        ['list', 'Plain.Example'];

is(journal('urls'), 'added.example/a/,evil.example/b,long.example/'
                    . 'x' x 5000,
   'the journal of zone urls has the canonical keys');
is(journal('small'), 'a b,added',
   'the journal of zone small has the canonical keys');
is(journal('list'), 'HTTP://Raw.Example/p,Plain.Example',
   'the journal of zone list has the raw keys');
is(journal('hosts'), 'added.example,evil.example,other.example,'
                     . 'xn--bcher-kva.example',
   'the journal of zone hosts has the canonical keys');


# ---- other spellings of added keys ----

sub finds_all {
    my ($when) = @_;

    is(ask_until_known($t, 'hosts', 'x.evil.EXAMPLE:1', 'xn--bcher-kva.example',
            'h19999.feed.example', 'a.added.example', 'h10.feed.example',
            'good.example'), '111100',
       "zone hosts has other spellings of added keys $when");
    is(ask_until_known($t, 'urls', 'http://EVIL.example/b?x', 'evil.example/c',
            'added.example/a/b', 'added.example/b'), '1010',
       "zone urls has other spellings of added keys $when");
    is(ask_until_known($t, 'small', 'Added', 'ADDED', 'other'), '110',
       "zone small has other spellings of added keys $when");
}

finds_all('at once');
is(ask($t, 'memory', 'memory.example/x?y', 'memory.example/y'), '10',
   'zone memory has another spelling of an added key at once');

for my $how (qw(stop kill_all)) {
    $t->$how;
    $t->run;
    finds_all("after $how");
    is(ask($t, 'memory', 'memory.example/x'), '0',
       "a key of zone memory is absent after $how");
}

is(api($t, POST => 'zones/hosts/checkpoint')->status, 200,
   'the endpoint takes a checkpoint');
add($t, 'hosts', ['Behind.example']);
$t->kill_all;
$t->run;
finds_all('after a checkpoint and kill_all');
is(ask_until_known($t, 'hosts', 'a.behind.example'), '1',
   'a key added after the checkpoint is present after kill_all');


# ---- an image of another key form ----

is(ask_until_known($t, 'list', 'HTTP://Raw.Example/p', 'http://raw.example/p',
        'Plain.Example', 'plain.example'), '1010',
   'only the exact spelling of an added key is present under key form raw');

my %answer = (0 => 'absent', 1 => 'present',
              '?' => 'neither absent nor present');

for my $load ('load', 'restart', 'reload') {
    for (['url', 'HTTP://Raw.Example/p' => 1, 'raw.example/p?q' => 1,
          'raw.example/' => 0, 'plain.example' => 1, 'first.example' => 1],
         ['host', 'http://raw.example/p' => '?', 'PLAIN.example' => 1,
          'raw.example' => 0, 'x.first.example' => 1],
         ['lower', 'http://raw.example/P' => 1, 'PLAIN.example' => 1,
          'raw.example' => 0],
         ['raw', 'HTTP://Raw.Example/p' => 1, 'http://raw.example/p' => 0,
          'Plain.Example' => 1, 'plain.example' => 0])
    {
        my ($form, @cases) = @$_;

        install($form);

        if ($load eq 'load') {
            is(api($t, POST => 'zones/list/reload')->status, 200,
               "the endpoint loads an image with key form $form");
        } elsif ($load eq 'restart') {
            $t->stop;
            $t->run;
        } else {
            $t->reload;
        }

        ok(settled($t, 'list', sub { $_[0]{image}{form} eq $form }),
           "an image with key form $form serves after a $load");

        while (my ($key, $want) = splice @cases, 0, 2) {
            is($want eq '?' ? ask($t, 'list', $key) : ask_until_known($t, 'list', $key),
               $want,
               "$key is $answer{$want} for key form $form after a $load");
        }
    }
}

# A key that is added under one key form is canonical to the next.

install('url');
api($t, POST => 'zones/list/reload');
add($t, 'list', ['HTTP://Later.Example:80/%61?q']);
install('raw');
api($t, POST => 'zones/list/reload');
is(ask_until_known($t, 'list', 'later.example/a?q', 'HTTP://Later.Example:80/%61?q'),
   '10', 'key form raw has the canonical form of a key added under url');

# ---- another form= ----

for my $how ('reload', 'restart') {
    my ($key, $other) = $how eq 'reload' ? qw(host lower) : qw(lower host);

    add($t, 'hosts', ['Mixed.Example']);
    is(api($t, POST => 'zones/hosts/checkpoint')->status, 200,
       "the endpoint takes a checkpoint of form=$key before the $how");

    $t->stop if $how eq 'restart';
    $zones[0] =~ s/form=\w+/form=$other/;
    $zones[3] =~ s/form=\w+/form=raw/;
    configure($t, \@zones, api => 1, add => 1, workers => 2);

    my $mark = $t->log_mark;
    $how eq 'reload' ? $t->reload : $t->run;

    is(zone_state($t, 'hosts')->{image}{form}, $other,
       "the zone serves form=$other after the $how");
    is(ask_until_known($t, 'hosts', 'Evil.EXAMPLE', 'mixed.example', 'a.evil.example',
            'a.behind.example'),
       $other eq 'host' ? '1111' : '1100',
       "the added keys are looked up with form=$other after the $how");
    like($t->log_since($mark),
         qr/zone "memory" starts empty again: .* or key form changed/,
         "a zone without a journal starts empty after the $how")
        if $how eq 'reload';
}

done_testing();
