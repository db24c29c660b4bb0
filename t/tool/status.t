#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that "ngx-bloom status" compares the zones of several nodes: of two
# nginxes, and of servers of the test that tell any state.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Api;
use BloomTest::FakeServer qw(fake_server);
use BloomTest::Process qw(now);
use BloomTest::Tool qw(json);
use BloomTest::Zones;

my $generous = 60 * ($ENV{TEST_NGINX_SANITIZED} ? 5 : 1);
my $json = JSON::PP->new->utf8->canonical;
my @servers;

my $one = BloomTest->new;
my $two = BloomTest->new;


# Runs the command; returns its exit status, what it prints as JSON, and its
# standard error.

sub status {
    my ($exit, $out, $err) = $one->run_tool('status', '--json', @_);

    return ($exit, $out eq '' ? undef : json($out), $err);
}

# Tests the exit status and the problems, each given as "zone what".

sub problems_are {
    my ($urls, $problems, $name) = @_;

    my ($exit, $found, $err) = status('--timeout', 20, @$urls);
    my @got = map { ($_->{zone} // '-') . " $_->{what}" }
                  @{ $found->{problems} };

    is_deeply([sort @got], [sort @$problems], $name)
        or diag($json->pretty->encode($found));
    is($exit, @$problems ? 1 : 0, "exit status: $name") or diag($err);

    return join "\n", map { $_->{message} } @{ $found->{problems} };
}


# Starts a server that answers each path by a function, which gets the connection
# and the number of the request.  Returns its URL.

sub server {
    my ($answer) = @_;

    my ($pid, $port) = fake_server(sub {
        my ($client, $n) = @_;
        my $request = '';

        while ($request !~ /\r\n\r\n/) {
            sysread $client, $request, 4096, length $request or last;
        }

        my ($path) = $request =~ m{^GET (\S+)} or return;
        $answer->($client, $path, $n);
    });

    push @servers, $pid;

    return "http://127.0.0.1:$port";
}

sub date_of {
    return POSIX::strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime $_[0]);
}

sub send_json {
    my ($client, $time, $value) = @_;

    my $body = $json->encode($value);

    syswrite $client, "HTTP/1.1 200 OK\r\nDate: " . date_of($time)
                      . "\r\nConnection: close\r\nContent-Length: "
                      . length($body) . "\r\n\r\n$body";
}

# Returns the state of a zone at a time, with some members changed.

sub state_at {
    my ($time, %change) = @_;

    my $state = {
        name => 'ids', state => 'serving', generation => 1, file => '/x',
        label => undef, expire => undef,
        image => { build_id => 'ab' x 16, uploaded => JSON::PP::false,
                   as_of => undef, created => '2026-11-01T02:00:00.000Z',
                   layout => 'blocked', lines => 1, hash => 'murmur3',
                   form => 'raw', k => 8, bits => 15872, capacity => 1000,
                   items => 3, items_estimated => JSON::PP::false },
        filter => { bits_set => 24, fill_ratio => 0.0015, estimated_items => 3,
                    max_items => 1000, layers => 0 },
        removals => { limit => 10000, count => 0, excepted => 0 },
        journal => { enabled => JSON::PP::true, owing_workers => 0,
                     lost_keys => 0, lost_at => undef, error => undef },
        load => { result => undef, message => undef },
        helper => { heartbeat => POSIX::strftime('%Y-%m-%dT%H:%M:%S.500Z',
                                                 gmtime $time) },
    };

    for my $path (keys %change) {
        my @names = split /\./, $path;
        my $last = pop @names;
        my $at = $state;
        $at = $at->{$_} //= {} for @names;
        $at->{$last} = $change{$path};
    }

    return $state;
}

# Starts an endpoint with the zone "ids".  Options: clock (how far it is ahead of
# the real time), version, zones (a function that returns states; it gets the
# time and the number of the question).

sub endpoint {
    my ($change, %option) = @_;

    my $time = sub { time + ($option{clock} // 0) };
    my $asked = 0;

    return server(sub {
        my ($client, $path) = @_;

        return send_json($client, $time->(),
                         { version => $option{version} // '1.2.3',
                           zones => ['ids'] }) if $path eq '/bloom/';

        my %change = %{ ref $change eq 'CODE' ? $change->($asked++) : $change };
        send_json($client, $time->(),
                  { zones => [state_at($time->(), %change)] });
    }) . '/bloom/';
}


# Two nginxes

my @keys = map { "key-$_" } 1 .. 100;

for my $t ($one, $two) {
    $t->build_image('ids.bloom', \@keys, '-n', '1k');
    configure($t, ["zone=ids:16m file=%%TESTDIR%%/ids.bloom journal=on",
                   'zone=own:16m capacity=1000 fpr=0.001'],
              api => 1,
              http => 'bloom_state_path %%TESTDIR%%/state;',
              server => 'location /denied/ { deny all; bloom_api; }'
                        . ' location /no/ { return 404; }');
}

$two->write_file('ids.bloom', $one->read_file('ids.bloom'));
$_->run for $one, $two;

my @base = map { 'http://127.0.0.1:' . $_->port(8080) } $one, $two;
my @urls = map { "$_/bloom/" } @base;
my @hosts = map { m{//(.*)} } @base;

{
    my ($exit, $out, $err) = $one->run_tool('status', @urls);

    is($exit, 0, 'two nodes that agree: exit status 0') or diag("$out$err");
    like($out, qr/^zone +node +state +gen +image +keys +fill +bits set/,
         'the table has a title');
    like($out, qr/^ids +\Q$hosts[0]\E +serving +1 +[0-9a-f]{8} +\d+ +\S+ % /m,
         'the table has a row for a zone of a node');
    like($out, qr/^own +\Q$hosts[1]\E +serving /m,
         'the table has a row for each zone of each node');
    unlike($out, qr/source/, 'without a source there is no such column');
    unlike($out, qr/\*/, 'nothing is marked');
    like($out, qr/^2 nodes, 2 zones: nothing is wrong, and the nodes agree$/m,
         'the command says that the nodes agree');
}

problems_are([@urls], [], 'zones that start empty may have other build ids');
problems_are(["$base[0]/bloom", "$base[1]/bloom/zones/ids"], [],
             'a URL of an endpoint without its slash and one of a zone');
problems_are(["$base[0]/bloom/zones", "$base[1]/bloom/zones/ids/"], [],
             'a URL of a list of zones');

{
    my (undef, $found) = status("$base[0]/bloom/zones/ids");
    my ($zone) = @{ $found->{zones} };

    is($found->{nodes}[0]{version}, api($one, GET => '')->json->{version},
       'the version is known from the URL of a zone');
    is($zone->{build_id}, build_id($one, 'ids'), 'JSON has the build id');
    is($zone->{bits_set}, zone_state($one, 'ids')->{filter}{bits_set},
       'JSON has the number of bits set');
}

add($two, 'ids', ['another']);

like(problems_are([@urls], ['ids bits_set'], 'a node lacks a key'),
     qr/^the number of bits that are set differs: \d+ on \Q$hosts[0]\E, \d+ on \Q$hosts[1]\E; some nodes lack/,
     'the message says which node has more bits');

{
    my ($exit, $out) = $one->run_tool('status', @urls);

    like($out, qr/^ids +\Q$hosts[0]\E .* \d+\* +\d+ +on +ok/m,
         'the number of bits is marked');
    like($out, qr/^\* zone "ids": the number of bits/m,
         'a sentence below the table says what disagrees');
    unlike($out, qr/\033/, 'what is no terminal gets no colour');
}

add($one, 'ids', ['another']);
problems_are([@urls], [], 'the node has got the key');

api($one, DELETE => 'zones/ids/keys?key=key-1');
problems_are([@urls], ['ids removed'], 'a node lacks a removal');
api($two, DELETE => 'zones/ids/keys?key=key-1');
problems_are([@urls], [], 'the node has got the removal');

add($one, 'own', [map { "own-$_" } 1 .. 300]);
problems_are([@urls], ['own estimated_items'],
             'a zone that started empty lacks many keys');
add($two, 'own', [map { "own-$_" } 1 .. 300]);
problems_are([@urls], [], 'the zone has got the keys');

$two->build_image('own.bloom', [@keys, 'another'], '-n', '1k');
upload_image($two, 'ids', 'own');
$one->build_image('own.bloom', [@keys, 'another'], '-n', '1k');
upload_image($one, 'ids', 'own');
isnt(build_id($one, 'ids'), build_id($two, 'ids'), 'each node has built its own');
problems_are([@urls], [], 'images of the same keys agree');

# A sample

{
    $one->write_file('sample', join "\n", @keys[0 .. 49], 'none', '');

    my @sample = ('--sample', $one->testdir . '/sample');

    problems_are([@sample, "$base[0]/bloom/zones/ids",
                  "$base[1]/bloom/zones/ids"], [], 'a sample of keys');

    my ($exit, $out) = $one->run_tool('status', @sample, @urls);

    like($out, qr/^zone "ids": the same keys are expected: 0 of 51 sampled keys differ$/m,
         'the command says that the answers agree');

    $two->build_image('few.bloom', [@keys[10 .. 99], map { "x$_" } 1 .. 11],
                      '-n', '1k');
    upload_image($two, 'ids', 'few');
    like(problems_are([@sample, @urls], ['ids sample'],
                      'images of other keys'),
         qr/^the same keys are expected: 10 of 51 sampled keys differ; key-1 is present on \Q$hosts[0]\E, absent on \Q$hosts[1]\E; load/m,
         'the message counts the keys, and shows one');
    is_deeply([grep { $_->{zone} eq 'ids' }
                    @{ (status(@sample, @urls))[1]{sampled} }],
              [{ zone => 'ids', keys => 51, differ => 10 }],
              'JSON has the numbers');

    for (['', qr/a sample has 1 to 10000 keys/],
         [join("\n", 1 .. 10001), qr/a sample has 1 to 10000 keys/],
         [join('', ('x' x 60000 . "\n") x 20), qr/and less than 1024 KiB/])
    {
        $one->write_file('bad', $_->[0]);
        my ($exit, $out, $err) = $one->run_tool('status', '--sample',
            $one->testdir . '/bad', @urls);
        is($exit, 2, 'a sample that is too small or too large is refused');
        like($err, $_->[1], 'the message says so');
    }

    my ($exit2, $out2, $err2) = $one->run_tool('status', '--sample',
        $one->testdir . '/missing', @urls);
    is($exit2, 2, 'a sample that is missing is refused');
    like($err2, qr/missing/, 'the message names the file');
}

$two->build_image('new.bloom', \@keys, '-n', '2k', '--form', 'lower');
upload_image($two, 'ids', 'new');
like(problems_are([@urls], ['ids form'], 'a node has another image'),
     qr/^the key form differs: raw on \S+; lower on \S+; the nodes answer differently/m,
     'the message about key forms has both');

problems_are([$urls[0], 'http://127.0.0.1:' . $two->port(1)], ['- no_answer'],
             'a node is down');
like(problems_are(["$base[0]/bloom/zones/none"], ['- no_answer'], 'no zone'),
     qr/404 \(.*none.*\): there is no endpoint and no zone at this URL/,
     'a wrong name of a zone is named');
like(problems_are(["$base[0]/no/"], ['- no_answer'], 'no endpoint'),
     qr/404: there is no endpoint/, 'a wrong path is named');
like(problems_are(["$base[0]/denied/"], ['- no_answer'], 'a refusal'),
     qr/403: the server refuses this machine; see "allow"/,
     'a refusal is named');


# Servers of the test

my $good = endpoint({});

problems_are([$good, endpoint({})], [], 'two endpoints agree');
problems_are([$good, endpoint({}, version => '1.2.4')], ['- version'],
             'another version');
problems_are([$good, endpoint({ name => 'x' })], ['ids missing', 'x missing'],
             'an endpoint lacks a zone');
problems_are([$good, endpoint({ 'image.bits' => 512 })], ['ids geometry'],
             'another geometry');
problems_are([$good, endpoint({ 'removals.limit' => 5 })],
             ['ids removals_limit'], 'other room for removed keys');
problems_are([$good, endpoint({ 'removals.count' => 5,
                                'removals.excepted' => 5 })], [],
             'excepted keys are those of the node');
problems_are([endpoint({ 'journal.error' => 'write() failed' })],
             ['ids journal_error'], 'a journal that fails');
problems_are([endpoint({ 'journal.lost_keys' => 2 })], ['ids lost_keys'],
             'lost keys');
problems_are([endpoint({ 'load.result' => 'refused' })], ['ids load'],
             'a failed load');
problems_are([endpoint({ state => 'damaged' })], ['ids state'],
             'a zone that is damaged');
problems_are([endpoint({ state => 'new_state' })], ['ids state'],
             'a state that this tool does not know');

# Each node's clock decides: a wrong one does no harm.

problems_are([$good, endpoint({}, clock => 86400)], [],
             'a clock that is a day ahead');
problems_are([$good, endpoint({}, clock => -86400)], [],
             'a clock that is a day behind');
problems_are([endpoint({ 'helper.heartbeat' => '2026-01-01T00:00:00.000Z' })],
             ['ids helper'], 'a helper that is silent');

# Changes that are on their way

problems_are([endpoint(sub { { 'filter.bits_set' => 20 + 8 * $_[0] } }),
              endpoint(sub { { 'filter.bits_set' => 24 + 8 * $_[0] } })],
             [], 'numbers that rise and may have been equal');
problems_are([endpoint(sub { { 'filter.bits_set' => 20 + 8 * $_[0] } }),
              endpoint(sub { { 'filter.bits_set' => 64 + 8 * $_[0] } })],
             ['ids bits_set'], 'numbers that rise and were never equal');

# Most nodes are right.

{
    my ($exit, $out) = $one->run_tool('status', $good, endpoint({}), endpoint(
        { 'image.build_id' => 'cd' x 16,
          'image.created' => '2026-11-02T02:00:00.000Z' }));

    like($out, qr/ abababab\* /, 'the oldest image is marked');
    unlike($out, qr/ cdcdcdcd\* /, 'a newer one is not');

    ($exit, $out) = $one->run_tool('status', $good, endpoint({}), endpoint(
        { 'image.form' => 'lower', 'image.build_id' => 'cd' x 16 }));

    like($out, qr/ cdcdcdcd\* /, 'the value of the minority is marked');
    unlike($out, qr/ abababab\* /, 'the value of the majority is not');
}

# Images that each node has built itself

sub built {
    my ($as_of, $items, %change) = @_;

    return endpoint({ 'image.build_id' => sprintf('%032x', rand 1e9),
                      'image.as_of' => $as_of, 'image.items' => $items,
                      'filter.bits_set' => int rand 1e6, %change });
}

problems_are([built('2026-11-01T02:00:00Z', 1000),
              built('2026-11-01T02:00:00Z', 1000)], [],
             'as many keys at the same time');
like(problems_are([built('2026-11-01T02:00:00Z', 1000),
                   built('2026-11-01T02:00:00Z', 999)], ['ids items'],
                  'one key less at the same time'),
     qr/^the number of keys of the image differs: 999 on \S+, 1000 on /,
     'the message has both numbers');
problems_are([built('2026-11-01T02:00:00Z', 1000),
              built('2026-11-01T02:50:00Z', 1010)], [],
             'a few keys more, an hour later');
problems_are([built('2026-11-01T02:00:00Z', 1000),
              built('2026-11-01T02:50:00Z', 1100)], ['ids items'],
             'many keys more');
like(problems_are([built('2026-11-01T02:00:00Z', 1000),
                   built('2026-11-02T02:00:00Z', 1000)], ['ids build_id'],
                  'an image of yesterday'),
     qr/^the images are of other times: 2026-11-01T02:00:00Z on \S+, 2026-11-02T02:00:00Z on \S+; build or load a newer one on /,
     'the message has both times');
problems_are([built(undef, 1000), built(undef, 1000)], [],
             'without as_of, the times at which the images were made count');
problems_are([built(undef, 1000),
              built(undef, 1000,
                    'image.created' => '2026-11-01T04:00:00.000Z')],
             ['ids build_id'], 'and these are apart');

# A source

sub source {
    my ($position, %change) = @_;

    return endpoint({ source => { name => 's', position => $position,
                                  state => 'current', lag_ms => 120,
                                  max_lag_ms => 30000, max_body => 65000,
                                  digest => '0' x 16, digest_since => '0',
                                  %change },
                      %{ delete $change{zone} // {} } });
}

{
    my @two = (source('1699-3'),
               source('1699-4', zone => { 'filter.bits_set' => 999 }));

    problems_are([@two], [], 'other positions are no error');

    my (undef, $out) = $one->run_tool('status', @two);

    like($out, qr/^zone .* source +position +digest +lag /, 'there are columns for it');
    like($out, qr/ current +1699-3 +00000000 +0\.1s /, 'the position and the lag');
}

problems_are([source('5'), source('5', zone => { 'filter.bits_set' => 999,
                                                 'removals.count' => 7 })],
             [], 'bits and removed keys depend on batches');
like(problems_are([source('5', digest => '1' x 16), source('5')],
                  ['ids digest'], 'other digests at the same position'),
     qr/^the digest of the source's changes differs: ([01])\1{15} on \S+; (?!\1)([01])\2{15} on /,
     'the message has both digests');
problems_are([source('5', digest => '1' x 16), source('6')], [],
             'digests at other positions');
problems_are([source('5', digest => '1' x 16), source('5', digest_since => 4)],
             [], 'digests that begin at other positions');
like(problems_are([source('5'), source('6', digest => '2' x 16), source('5'),
                   source('6', digest => '3' x 16)], ['ids digest'],
                  'two of four digests'),
     qr/differs: 2{16} on \S+; 3{16} on /, 'only these are named');
problems_are([source('5', digest => undef), source('5')], [],
             'a node that does not tell its digest');
problems_are([source('5'), endpoint({})], ['ids source'], 'a lack of a source');
problems_are([source('5'), source('5', name => 'other')], ['ids source'],
             'another source');
problems_are([source('5', state => 'gap', zone => { state => 'late' })],
             ['ids source_state', 'ids state'], 'a gap');
problems_are([source('5', lag_ms => 60000, max_lag_ms => undef)], ['ids lag'],
             'a lag without max_lag');
problems_are([source('0', state => 'waiting', lag_ms => undef)],
             ['ids source_state'], 'no sign of life yet');

# Hostile servers

{
    my $evil = "evil\033[2J\x{202e}\n" . 'x' x 5000;
    my ($exit, $out, $err) = $one->run_tool('status',
                                            endpoint({ name => $evil,
                                                       state => $evil }));

    is($exit, 1, 'a hostile state is a problem');
    unlike("$out$err", qr/\033|\xe2\x80\xae/, 'its text cannot move a cursor');
    like($out, qr/evil\\x1b\[2J.*\.\.\./, 'its text is escaped and cut');
    cmp_ok(length $out, '<', 10000, 'its text does not fill the screen');
}

sub serves {
    my ($text) = @_;

    return server(sub { syswrite $_[0], "HTTP/1.1 200 OK\r\n"
                                        . "Connection: close\r\n\r\n$text" });
}

for (['no JSON', '<html>', qr/is not JSON/],
     ['an empty body', '', qr/is not JSON/],
     ['an empty object', '{}', qr/has no state of a zone/],
     ['a number', '17', qr/has no state of a zone/],
     ['arrays in arrays', '[' x 100000, qr/is not JSON/],
     ['a list of numbers', '{"zones":[1,2]}', qr/has no state of a zone/],
     ['too many zones', '{"zones":[' . join(',', (1) x 20000) . ']}',
      qr/has too many zones/],
     ['an index of an index', '{"zones":[],"version":"1"}',
      qr/has no state of a zone/])
{
    my ($name, $text, $message) = @$_;

    like(problems_are([serves($text)], ['- no_answer'], $name), $message,
         "the message says what is wrong with $name");
}

for (['a server that says nothing', sub { sleep 3600 }, qr/within 1000 ms/],
     ['a body that drips', sub {
          syswrite $_[0], "HTTP/1.1 200 OK\r\n\r\n";
          while (syswrite $_[0], ' ') { sleep 0.1 }
      }, qr/within 1000 ms/],
     ['a body without an end', sub {
          syswrite $_[0], "HTTP/1.1 200 OK\r\n\r\n";
          1 while syswrite $_[0], ' ' x 65536;
      }, qr/is longer than \d+ bytes|within 1000 ms/])
{
    my ($name, $answer, $message) = @$_;
    my $begun = now();
    my ($exit, $found) = status('--timeout', 1, server($answer), $good);

    is($exit, 1, "exit status: $name");
    like($found->{problems}[0]{message}, $message, "the message about $name");
    is($found->{zones}[0]{name}, 'ids', "the other node is shown: $name");
    cmp_ok(now() - $begun, '<', $generous, "bounded time: $name");
}

# All nodes are asked at the same time.

{
    my $silent = server(sub { sleep 3600 });
    my $begun = now();
    my ($exit, $found) = status('--timeout', 2,
                                map { "$silent/$_" } 1 .. 100);

    is(scalar @{ $found->{problems} }, 100, 'a hundred nodes do not answer');
    cmp_ok(now() - $begun, '<', 100, 'they are not asked one after the other');
}

# Usage

for ([[], qr/no URL is given; see "ngx-bloom status --help"/],
     [['ftp://x/'], qr{ftp://x/: must be an http:// or https:// URL}],
     [['http://u:secret@h/?a'], qr{must be an http}],
     [['--timeout', 0, $good], qr/--timeout "0": must be a number of seconds/],
     [[($good) x 257], qr/there are 257 URLs; give at most 256/])
{
    my ($arguments, $message) = @$_;
    my ($exit, $found, $err) = status(@$arguments);

    is($exit, 2, 'wrong usage: exit status 2');
    like($err, $message, 'the message says what is wrong');
    unlike($err, qr/secret/, 'no message has a password');
}

{
    (my $url = $good) =~ s{//}{//user:secret@};
    my $down = 'http://u:secret@127.0.0.1:' . $two->port(1);
    my ($exit, $out, $err) = $one->run_tool('status', $url, $down);

    unlike("$out$err", qr/secret/, 'no output has a password');
}

kill 'KILL', @servers;

done_testing;
