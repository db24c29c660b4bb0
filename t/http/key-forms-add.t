#!/usr/bin/perl

# Key forms of zones that take keys: an added key is found however it is
# written, after a restart and after a reload, and by an image of another form,
# too.  The journal has the canonical keys; what is no key is left out, counted
# and said.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image("$_.bloom", ['first.example'], '-p', '1e-9', '-n', '10k',
                '--key', $_) for qw(raw lower host url);

sub install {
    my ($image) = @_;

    unlink "$dir/new";
    link "$dir/$image.bloom", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/list.bloom" or die "rename: $!";
}

my @zones = ('zone=hosts capacity=10k fpr=1e-9 key=host',
             'zone=urls capacity=10k fpr=1e-9 key=url',
             'zone=small capacity=10k fpr=1e-9 key=lower',
             'zone=memory capacity=10k fpr=1e-9 key=url journal=off',
             'zone=list:1m file=list.bloom');

install('raw');
configure($t, \@zones, api => 1, add => 1, workers => 2);
$t->run;

# The keys of a journal, but those of the feed.

sub journal {
    my ($zone) = @_;

    my ($exit, $out) = $t->run_tool('journal', '--keys',
                                    files("$dir/state/$zone/journal.*"));
    is($exit, 0, "$zone: the tool reads the journal");

    my %keys = map { $_ => 1 } grep { !/\bfeed\b/i } split /\n/, $out;

    return join ',', sort keys %keys;
}


# ---- what is said of a feed ----

is_deeply(api($t, POST => 'zones/hosts/keys', body => join "\n",
              '# comment', 'Evil.Example.', 'EVIL.example:80', '', 'not a host',
              'other.example', "b\xc3\xbccher.example", '..')->json,
          { received => 7, added => 3, already_present => 1, invalid => 3,
            first_invalid => { number => 1,
                                  reason => 'has a byte that no host has' },
            durable => JSON::PP::false },
          'lines: what is no host is left out, counted, and said');

is_deeply(api($t, POST => 'zones/urls/keys?durable=true',
              headers => ['Content-Type' => 'application/json'],
              body => '["http://Evil.Example/a/../b", "", "evil.example/b",'
                      . ' "http://", "mailto:x"]')->json,
          { received => 4, added => 1, already_present => 1, invalid => 2,
            first_invalid => { number => 4, reason => 'has no host' },
            durable => JSON::PP::true },
          'an array: likewise');

is_deeply(api($t, POST => 'zones/hosts/keys', body => "a b\nc d\n")->json,
          { received => 2, added => 0, already_present => 0, invalid => 2,
            first_invalid => { number => 1,
                                  reason => 'has a byte that no host has' },
            durable => JSON::PP::false },
          'nothing but what is no host');

is_deeply(api($t, POST => 'zones/small/keys', body => "A B\na b\n")->json,
          { received => 2, added => 1, already_present => 1, invalid => 0,
            durable => JSON::PP::false },
          'where every key is one');

is(zone_state($t, 'hosts')->{counters}{invalid}, 5, 'hosts: counted');
is(zone_state($t, 'urls')->{counters}{invalid}, 2, 'urls: counted');

{
    my @feed = map { $_ % 10 ? "h$_.FEED.example" : "no host $_" } 1 .. 20_000;
    my $r = api($t, POST => 'zones/hosts/keys', body => join "\n", @feed);

    is_added($r, 20_000, 18_000, 0, undef, 'a feed of many');
    is($r->json->{invalid}, 2000, 'of which some are none');
    is($r->json->{first_invalid}{number}, 10, 'the first of them');
}


# ---- bloom_add ----

{
    my $mark = $t->log_mark;

    is($t->get('/add/hosts?k=ADDED.example:1')->status, 200, 'bloom_add');
    is($t->get('/add/hosts?k=..')->status, 200, 'of what is no key');
    like($t->wait_for_log(qr/is not added/, $mark) && $t->log_since($mark),
         qr/\[error\].*a key of 2 bytes is not added to bloom zone "hosts": it /,
         'says so');
    is(zone_state($t, 'hosts')->{counters}{invalid}, 2006, 'and counts it');

    my $long = 'http://long.example/' . 'x' x 5000;
    $t->get("/add/urls?k=$long");
    is(ask($t, 'urls', $long, "$long/"), '10', 'a long one');
}

$t->get("/add/$_->[0]?k=$_->[1]")
    for ['urls', 'http://Added.example/%2561/'], ['small', 'ADDED'],
        ['memory', 'HTTP://memory.example/x'], ['list', 'HTTP://Raw.Example/p'],
        ['list', 'Plain.Example'];

is(journal('urls'), 'added.example/a/,evil.example/b,long.example/'
                    . 'x' x 5000, 'urls: the journal has the canonical keys');
is(journal('small'), 'a b,added', 'small: likewise');
is(journal('list'), 'HTTP://Raw.Example/p,Plain.Example', 'list: raw');
is(journal('hosts'), 'added.example,evil.example,other.example,'
                     . 'xn--bcher-kva.example', 'hosts: likewise');


# ---- as they are asked for ----

sub there {
    my ($name) = @_;

    is(sure($t, 'hosts', 'x.evil.EXAMPLE:1', 'xn--bcher-kva.example',
            'h19999.feed.example', 'a.added.example', 'h10.feed.example',
            'good.example'), '111100', "$name: hosts");
    is(sure($t, 'urls', 'http://EVIL.example/b?x', 'evil.example/c',
            'added.example/a/b', 'added.example/b'), '1010', "$name: urls");
    is(sure($t, 'small', 'Added', 'ADDED', 'other'), '110', "$name: lower");
}

there('at once');
is(ask($t, 'memory', 'memory.example/x?y', 'memory.example/y'), '10',
   'memory only');

# what nginx was told while the disk refuses is kept, in its key form

{
    $disk->refuse('ENOSPC', qw(write grow open sync));
    $t->get('/add/hosts?k=KEPT.example:77');
    is(ask($t, 'hosts', 'a.kept.example'), '1', 'kept: is there at once');
    is(zone_state($t, 'hosts')->{journal}{pending_keys}, 1, 'kept: it waits');

    api($t, POST => 'zones/list/reload');
    $disk->allow;
    ok(settled($t, 'hosts', sub { !$_[0]{journal}{pending_keys} }),
       'kept: it is appended');
    like(journal('hosts'), qr/\bkept\.example\b/, 'kept: as it is canonical');
    $t->expect_log(qr/No space left on device/);
}

for my $how (qw(stop kill_all)) {
    $t->$how;
    $t->run;
    there($how);
    is(sure($t, 'hosts', 'kept.example'), '1', "$how: kept");
    is(ask($t, 'memory', 'memory.example/x'), '0', "$how: memory only");
}

is(api($t, POST => 'zones/hosts/checkpoint')->status, 200, 'a checkpoint');
add($t, 'hosts', ['Behind.example']);
$t->kill_all;
$t->run;
there('behind a checkpoint');
is(sure($t, 'hosts', 'a.behind.example'), '1', 'behind a checkpoint');


# ---- an image of another form ----

is(sure($t, 'list', 'HTTP://Raw.Example/p', 'http://raw.example/p',
        'Plain.Example', 'plain.example'), '1010', 'raw: byte for byte');

for my $load ('reload', 'restart', 'watch') {
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

        if ($load eq 'reload') {
            is(api($t, POST => 'zones/list/reload')->status, 200,
               "$form: $load");
        } elsif ($load eq 'restart') {
            $t->stop;
            $t->run;
        } else {
            $t->reload;
        }

        ok(settled($t, 'list', sub { $_[0]{image}{key_form} eq $form }),
           "$form: $load: it serves");

        while (my ($key, $want) = splice @cases, 0, 2) {
            is($want eq '?' ? ask($t, 'list', $key) : sure($t, 'list', $key),
               $want, "$form: $load: $key");
        }
    }
}

# what is added under one form is canonical to the next

install('url');
api($t, POST => 'zones/list/reload');
add($t, 'list', ['HTTP://Later.Example:80/%61?q']);
install('raw');
api($t, POST => 'zones/list/reload');
is(sure($t, 'list', 'later.example/a?q', 'HTTP://Later.Example:80/%61?q'),
   '10', 'url, then raw: the canonical key');


# and what is kept under one form is loaded into an image of the next

{
    $disk->refuse('ENOSPC', qw(write grow));
    $t->get('/add/list?k=HTTP://Waits.Example');
    is(zone_state($t, 'list')->{journal}{pending_keys}, 1, 'kept under raw');
    install('url');
    my $r = api($t, POST => 'zones/list/reload');
    is($r->status, 200, 'kept: a reload') or diag($r);
    is(sure($t, 'list', 'waits.example/a'), '1', 'kept: raw, then url');
    $disk->allow;
    ok(settled($t, 'list', sub { !$_[0]{journal}{pending_keys} }),
       'kept: it is appended');
}


# ---- another key= ----

for my $how ('reload', 'restart') {
    my ($key, $other) = $how eq 'reload' ? qw(host lower) : qw(lower host);

    add($t, 'hosts', ['Mixed.Example']);
    is(api($t, POST => 'zones/hosts/checkpoint')->status, 200,
       "$how: a checkpoint of key=$key");

    $t->stop if $how eq 'restart';
    $zones[0] =~ s/key=\w+/key=$other/;
    $zones[3] =~ s/key=\w+/key=raw/;
    configure($t, \@zones, api => 1, add => 1, workers => 2);

    my $mark = $t->log_mark;
    $how eq 'reload' ? $t->reload : $t->run;

    is(zone_state($t, 'hosts')->{image}{key_form}, $other,
       "$how: key=$other serves");
    is(sure($t, 'hosts', 'Evil.EXAMPLE', 'mixed.example', 'a.evil.example',
            'kept.example', 'a.behind.example'),
       $other eq 'host' ? '11111' : '11010',
       "$how: the keys are looked up as that has them");
    like($t->log_since($mark),
         qr/zone "memory" starts empty again: .* or key form changed/,
         "$how: a zone without a journal starts anew") if $how eq 'reload';
}

done_testing();
