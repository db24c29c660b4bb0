#!/usr/bin/perl

# POST .../keys: all forms of a body, what is counted, what is refused and
# what was taken before that.

use strict;
use warnings;

use IO::Select;
use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-6');
configure($t, ['zone=ids file=ids.bloom',
               'zone=seen capacity=2m fpr=1e-9',
               'zone=memory capacity=10k fpr=1e-9 journal=off',
               'zone=fixed file=ids.bloom journal=off',
               'zone=small capacity=10 fpr=1e-6'],
          api => 1, workers => 2);
$t->run;

my $json = { 'Content-Type' => 'application/json' };

sub post { return api($t, POST => 'zones/' . shift(@_) . '/keys', @_) }


subtest 'lines' => sub {
    for my $type (undef, 'text/plain', 'text/plain; charset=utf-8',
                  'application/x-www-form-urlencoded',
                  'application/octet-stream')
    {
        my $name = $type // 'no content type';
        (my $key = $name) =~ tr/a-z//cd;
        my $r = post('seen', body => "$key.1\n$key.2\n$key.1\n",
                     headers => defined $type ? { 'Content-Type' => $type }
                                              : {});
        is($r->status, 200, "$name: status");
        is_added($r, 3, 2, 1, undef, 'what was new');
        is(ask($t, 'seen', "$key.1", "$key.2", "$key.3"), '110', 'and is in');
    }

    is_added(post('seen', body => "unended"), 1, 1, 0, undef,
             'no newline at the end');
    is_added(post('seen', body => "unended\n"), 1, 0, 1, undef,
             'is the same key');
    is_added(post('seen', body => ''), 0, 0, 0, undef, 'nothing');
    is_added(post('seen', body => "\n\nempty\n\n\n"), 1, 1, 0, undef,
             'empty lines');
    is_added(post('seen', body => "returns\r\nreturn\r\n"), 2, 2, 0, undef,
             'lines of another system');
    is(ask($t, 'seen', 'unended', 'empty', 'returns', 'return'), '1111',
       'all are in');
};


subtest 'JSON' => sub {
    is_added(post('seen', body => '["j1", "j2","j1"]', headers => $json),
             3, 2, 1, undef, 'an array');
    is_added(post('seen', body => '[]', headers => $json), 0, 0, 0, undef,
             'of nothing');
    is_added(post('seen', body => qq( [ "\\u0061b" ,\n"\\"q" ]\n),
                  headers => $json), 2, 2, 0, undef, 'with escapes');
    is_added(post('seen', body => '["\ud83d\ude00"]', headers => {
                 'Content-Type' => 'application/json; charset=utf-8' }),
             1, 1, 0, undef, 'with surrogates');
    is(ask($t, 'seen', 'j1', 'j2', 'ab', 'abc'), '1110', 'they are in');

    for my $key ("%22q", "%F0%9F%98%80") {
        is(api($t, GET => "zones/seen/keys?key=$key")->json->{answer},
           'present', "$key is in");
    }
};


subtest 'JSON that is none' => sub {
    my @cases = (
        ['{"a": 1}', 0, 'an object'], ['"a"', 0, 'a string'],
        ['["a" "b"]', 5, 'no comma'], ['["bad1", 7]', 9, 'a number'],
        ['["bad2", ["b"]]', 9, 'an array in it'], ['[,]', 1, 'a comma alone'],
        ['["a",]', 5, 'a comma at the end'], ['["a"] x', 6, 'more behind it'],
        ['["\x"]', undef, 'an unknown escape'],
        ['["\ud800"]', undef, 'half a surrogate'],
        ["[\"a\nb\"]", undef, 'a control character'],
        ['["a"', undef, 'cut short'], ['', undef, 'nothing'],
        ["[\"\xff\"]", undef, 'not UTF-8'],
    );

    for (@cases) {
        my ($body, $at, $what) = @$_;
        my $r = is_error(post('seen', body => $body, headers => $json), 400,
                         qr/\b(?:byte|position)\D*\d/, $what);
        like($r->json->{error}{message} // '',
             qr/\b(?:byte|position)\D*(?:$at|@{[$at + 1]})\b/, 'where it is')
            if defined $at;
    }

    my $r = post('seen', body => '["kept1", "kept2", nonsense',
                 headers => $json);
    is($r->status, 400, 'what came before');
    is_added($r, 2, 2, 0, undef, 'is said');
    is(ask($t, 'seen', 'kept1', 'kept2'), '11', 'and kept');
};


subtest 'keys that are too long' => sub {
    my $long = 'x' x 65535;
    is_added(post('seen', body => "$long\n"), 1, 1, 0, undef,
             '65535 bytes are a key');
    is_added(post('seen', body => JSON::PP::encode_json(["a$long" =~ s/x$//r]),
                  headers => $json), 1, 1, 0, undef, 'in JSON, too');

    my $r = is_error(post('seen', body => "short1\n\nshort2\n${long}x\nshort3\n"),
                     400, qr/line 4\b/, 'one more is none');
    is_added($r, 2, 2, 0, undef, 'what came before is said');
    is(ask($t, 'seen', 'short1', 'short2', 'short3'), '110', 'and kept');

    is_error(post('seen', body => "short4\n" . 'y' x 10_000_000), 400,
             qr/line 2\b/, 'ten million bytes');
    is_error(post('seen', body => JSON::PP::encode_json(['ok', "${long}x"]),
                  headers => $json), 400, qr/\b[12]\b/, 'in JSON');
};


subtest 'other content types' => sub {
    for my $type ('application/xml', 'multipart/form-data; boundary=x',
                  'text/html', 'application/jsonx', 'nonsense')
    {
        is_error(post('seen', body => "typed\n",
                      headers => { 'Content-Type' => $type }),
                 415, qr/./, $type);
    }
    is_error(post('seen', body => "typed\n",
                  headers => { 'Content-Encoding' => 'gzip' }),
             415, qr/compress|encod/i, 'what is compressed');
    is(ask($t, 'seen', 'typed'), '0', 'nothing was added');
};


subtest 'durable' => sub {
    for my $query ('durable=true', 'durable=1') {
        my $r = api($t, POST => "zones/seen/keys?$query", body => "$query\n");
        is_added($r, 1, 1, 0, 1, $query);
    }

    # keys that are known have to be on disk as well

    is_added(api($t, POST => 'zones/seen/keys?durable=true',
                 body => "durable=1\n"), 1, 0, 1, 1, 'known ones');
    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => ''),
             0, 0, 0, undef, 'none');

    my $r = post('memory', body => "m1\n");
    is_added($r, 1, 1, 0, 0, 'a zone without a journal is not');
    is_added(api($t, POST => 'zones/memory/keys?durable=true', body => "m2\n"),
             1, 1, 0, 0, 'whatever is asked for')
        if api($t, GET => 'zones/memory')->status == 200;
};


# Who adds nothing is told that all others' keys are on disk.  The helper stands
# still, so they are not; and the only worker has seen a request before the next
# is answered.

subtest 'durable, with nothing to add' => sub {
    my $one = BloomTest->new;
    configure($one, ['zone=hosts capacity=10k fpr=1e-6 key=host'], api => 1);
    $one->run;

    my $path = 'zones/hosts/keys';
    is_added(api($one, POST => "$path?durable=true", body => "\n"),
             0, 0, 0, 1, 'to a zone without a key');
    add($one, 'hosts', ['a.example']);

    my ($helper) = $one->helpers;
    kill 'STOP', $helper;
    ok(wait_until(sub {
        open my $stat, '<', "/proc/$helper/stat" or return;
        return <$stat> =~ /\) T /;
    }), 'the helper stands still');

    add($one, 'hosts', ['b.example']);

    my @cases = (
        ['nothing', '', {}, 0, 0], ['an empty line', "\n", {}, 0, 0],
        ['an empty array', '[]', $json, 0, 0],
        ['a key that is none', "a b\n", {}, 1, 0],
        ['a key that is known', "a.example\n", {}, 1, 1],
    );

    my @asked = map {
        my $c = $one->connect;
        $c->send($one->request_text(POST => "/bloom/$path?durable=true",
                                    body => $_->[1], headers => $_->[2]));
        cmp_ok(zone_state($one, 'hosts')->{journal}{unsynced_bytes}, '>', 0,
               "$_->[0]: a key is not on disk");
        $c;
    } @cases;

    my @told = IO::Select->new(map { $_->{socket} } @asked)->can_read(0);
    is(scalar @told, 0, 'and nobody is told that it is');

    kill 'CONT', $helper;

    for (@cases) {
        my ($what, undef, undef, $received, $known) = @$_;
        is_added((shift @asked)->response, $received, 0, $known, 1,
                 "$what: until it is");
    }
    is(zone_state($one, 'hosts')->{journal}{unsynced_bytes}, 0, 'all are');
    $one->stop;
};


subtest 'zones that take none' => sub {
    my $r = post('fixed', body => "f1\n");
    cmp_ok($r->status, '>=', 400, 'a file and no journal');
    is_error($r, 409, qr/journal/, 'says why');
    is(ask($t, 'fixed', 'f1', 'id1'), '01', 'nothing was added');
};


subtest 'past the capacity' => sub {
    my $mark = $t->log_mark;
    is_added(post('small', body => join '', map { "s$_\n" } 1 .. 30),
             30, undef, undef, undef, 'is accepted');
    is_added(post('small', body => join '', map { "t$_\n" } 1 .. 30),
             30, undef, undef, undef, 'again');
    is(ask($t, 'small', map { ("s$_", "t$_") } 1 .. 30), '1' x 60,
       'all are in');
    $t->wait_for_log(qr/\[warn\].*small/, $mark);
    is(scalar(() = $t->log_since($mark) =~ /\[warn\].*"small".*capacity/g), 1,
       'and warned of once');
};


subtest 'to a zone with an image' => sub {
    is_added(post('ids', body => "id1\nid2\n"), 2, 1, 1, undef, 'counts');
    is(ask($t, 'ids', 'id1', 'id2', 'id3'), '110', 'both are in');

    my ($answers, @workers);
    for (1 .. 100) {
        ($answers, @workers) = ask($t, 'ids', 'id2');
        is($answers, '1', 'in all workers') or last if $_ == 1;
        last if $answers ne '1';
    }
    is($answers, '1', 'again and again');
};


subtest 'many' => sub {
    my @keys = map { "many$_" } 1 .. 300_000;
    my $body = join '', map { "$_\n" } @keys;

    is_added(post('seen', body => $body), 300_000, undef, undef, undef,
             'three hundred thousand');
    my $r = api($t, POST => 'zones/seen/test', body => $body);
    is(scalar(grep { $_ ne 'present' } @{ $r->json->{answers} }), 0,
       'are in');
    is_added(post('seen', body => $body), 300_000, 0, 300_000, undef,
             'and known');
    is_added(post('seen', body => JSON::PP::encode_json(\@keys),
                  headers => $json), 300_000, 0, 300_000, undef,
             'in JSON, too');
};


# Bytes that separate keys may come in any piece.

subtest 'in pieces' => sub {
    my @keys = map { "piece$_" } 1 .. 20;
    my $body = join "\n", @keys;

    for my $size (1, 2, 3, 7, 64) {
        my @chunks = $body =~ /(.{1,$size})/gs;
        my $r = post('seen', chunks => \@chunks);
        is_added($r, 20, $size == 1 ? 20 : 0, $size == 1 ? 0 : 20, undef,
                 "chunks of $size");
    }

    @keys = map { "slow$_" } 1 .. 20;
    is_added(post('seen', body => JSON::PP::encode_json(\@keys),
                  headers => $json, piece => 1, pause => 0.0005),
             20, 20, 0, undef, 'JSON byte by byte');
    is_added(post('seen', body => join("\r\n", @keys), piece => 1,
                  pause => 0.0005),
             20, 0, 20, undef, 'lines byte by byte');
};


done_testing;
