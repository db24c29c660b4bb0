#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that POST keys adds and counts the keys of a body in lines or JSON.  It
# refuses a body that it cannot read, and keeps the keys before the error.

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


subtest 'keys are added from lines' => sub {
    for my $type (undef, 'text/plain', 'text/plain; charset=utf-8',
                  'application/x-www-form-urlencoded',
                  'application/octet-stream')
    {
        my $name = $type // 'no content type';
        (my $key = $name) =~ tr/a-z//cd;
        my $r = post('seen', body => "$key.1\n$key.2\n$key.1\n",
                     headers => defined $type ? { 'Content-Type' => $type }
                                              : {});
        is($r->status, 200, "lines with $name are taken");
        is_added($r, 3, 2, 1, undef,
                 "new keys of lines with $name are added");
        is(ask($t, 'seen', "$key.1", "$key.2", "$key.3"), '110',
           "keys of lines with $name are in the zone");
    }

    is_added(post('seen', body => "unended"), 1, 1, 0, undef,
             'a last line without a newline is a key');
    is_added(post('seen', body => "unended\n"), 1, 0, 1, undef,
             'a last line with or without a newline is the same key');
    is_added(post('seen', body => ''), 0, 0, 0, undef,
             'an empty body adds nothing');
    is_added(post('seen', body => "\n\nempty\n\n\n"), 1, 1, 0, undef,
             'empty lines are not keys');
    is_added(post('seen', body => "returns\r\nreturn\r\n"), 2, 2, 0, undef,
             'CR at the end of a line is not part of the key');
    is(ask($t, 'seen', 'unended', 'empty', 'returns', 'return'), '1111',
       'keys of lines are in the zone');
};


subtest 'keys are added from JSON' => sub {
    is_added(post('seen', body => '["j1", "j2","j1"]', headers => $json),
             3, 2, 1, undef,
             'strings of an array are keys');
    is_added(post('seen', body => '[]', headers => $json), 0, 0, 0, undef,
             'an empty array adds nothing');
    is_added(post('seen', body => qq( [ "\\u0061b" ,\n"\\"q" ]\n),
                  headers => $json), 2, 2, 0, undef,
                  'escapes in a string are decoded');
    is_added(post('seen', body => '["\ud83d\ude00"]', headers => {
                 'Content-Type' => 'application/json; charset=utf-8' }),
             1, 1, 0, undef, 'surrogates in a string are decoded');
    is(ask($t, 'seen', 'j1', 'j2', 'ab', 'abc'), '1110',
       'keys of JSON are in the zone');

    for my $key ("%22q", "%F0%9F%98%80") {
        is(api($t, GET => "zones/seen/keys?key=$key")->json->{answer},
           'present', "the key $key is in the zone");
    }
};


subtest 'a body that is not a JSON array of strings is refused' => sub {
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
                         qr/\b(?:byte|position)\D*\d/,
                         "JSON with this is refused: $what");
        like($r->json->{error}{message} // '',
             qr/\b(?:byte|position)\D*(?:$at|@{[$at + 1]})\b/,
             "the error states the position in JSON with this: $what")
            if defined $at;
    }

    my $r = post('seen', body => '["before1", "before2", nonsense',
                 headers => $json);
    is($r->status, 400, 'a body with an error after two keys is refused');
    is_added($r, 2, 2, 0, undef,
             'the response counts the keys before an error');
    is(ask($t, 'seen', 'before1', 'before2'), '11',
       'keys before an error are in the zone');
};


subtest 'keys over 65535 bytes, and empty strings, are invalid' => sub {
    my $long = 'x' x 65535;
    is_added(post('seen', body => "$long\n"), 1, 1, 0, undef,
             'a line of 65535 bytes is a key');
    is_added(post('seen', body => JSON::PP::encode_json(["a$long" =~ s/x$//r]),
                  headers => $json), 1, 1, 0, undef,
             'a string of 65535 bytes is a key');

    my $is_invalid = sub {
        my ($r, $invalid, $number, $reason, $what) = @_;

        is($r->status, 200, "$what: the other keys are added");
        is($r->json->{invalid}, $invalid, "$what is counted");
        is($r->json->{received}, $r->json->{added} + $invalid
                                 + $r->json->{already_present},
           "$what: the counts add up");
        is_deeply($r->json->{first_invalid},
                  { number => $number, reason => $reason }, "$what is named");
    };
    my $too_long = 'is longer than 65535 bytes';

    $is_invalid->(post('seen',
                       body => "short1\n\nshort2\n${long}x\nshort3\n"),
                  1, 4, $too_long, 'a line of 65536 bytes');
    is(ask($t, 'seen', 'short1', 'short2', 'short3'), '111',
       'the keys before and after one that is too long are in the zone');

    $is_invalid->(post('seen', body => "\xef\xbb\xbf${long}x\r\nshort4\r\n"),
                  1, 1, $too_long, 'a first line of 65536 bytes and a mark');
    $is_invalid->(post('seen', body => "short5\n" . 'y' x 10_000_000 . "\nz"),
                  1, 2, $too_long, 'a line of ten million bytes');
    $is_invalid->(post('seen', body => 'y' x 10_000_000), 1, 1, $too_long,
                  'a body of one such line');
    $is_invalid->(post('seen', headers => $json,
                       body => JSON::PP::encode_json(['ok', "${long}x", 'ok'])),
                  1, 2, $too_long, 'a string of 65536 bytes');
    $is_invalid->(post('seen', body => '["", "a1", ""]', headers => $json),
                  2, 1, 'is empty', 'an empty string');
};


subtest 'keys may be percent-encoded' => sub {
    my $encoded = sub {
        return api($t, POST => "zones/seen/keys?decode=$_[0]",
                   body => $_[1], headers => $_[2] || {});
    };
    my $answers = sub {
        my $r = api($t, POST => 'zones/seen/test?decode=uri',
                    body => join "\n",
                            map { s/([^\w])/sprintf '%%%02x', ord $1/ger } @_);
        return join ' ', @{ $r->json->{answers} };
    };

    is_added($encoded->('uri', "a%0Ab\r\nc%ffd%0D\n%zz%\n100%25\n%0a"), 5, 5, 0,
             undef, 'keys with any bytes');
    is($answers->("a\nb", "c\xffd\r", '%zz%', '100%', "\n"),
       'present present present present present',
       'are decoded; an escape that is not valid stays');
    is_added($encoded->('uri', '["%ff%fe", "%41"]', $json), 2, 2, 0, undef,
             'in JSON, too');
    is($answers->("\xff\xfe", 'A', '%41'), 'present present absent',
       'and are in the zone');
    is_added($encoded->('off', "%42\n"), 1, 1, 0, undef, 'decode=off');
    is($answers->('B', '%42'), 'absent present', 'leaves escapes');
    is_error($encoded->('form', "x\n"), 400, qr/"decode".*"off" or "uri"/,
             'another value is refused');

    for (65535, 65536) {
        my $r = $encoded->('uri', '%7A' x $_ . "\nq$_\n");
        is_deeply([@{ $r->json }{qw(received invalid)}],
                  [2, $_ == 65535 ? 0 : 1], "a key of $_ bytes, all encoded");
        is($answers->("q$_"), 'present', 'the next key is added');
    }
    is($answers->('z' x 65535), 'present', 'the longest key is added');
};


subtest 'bodies of other types are refused' => sub {
    for my $type ('application/xml', 'multipart/form-data; boundary=x',
                  'text/html', 'application/jsonx', 'nonsense')
    {
        is_error(post('seen', body => "typed\n",
                      headers => { 'Content-Type' => $type }),
                 415, qr/./, "a body of type $type is refused");
    }
    is_error(post('seen', body => "typed\n",
                  headers => { 'Content-Encoding' => 'gzip' }),
             415, qr/compress|encod/i, 'a compressed body is refused');
    is(ask($t, 'seen', 'typed'), '0',
       'a refused body adds nothing');
};


subtest 'durable=true waits for the disk' => sub {
    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => "now\n"),
             1, 1, 0, 1, 'a key with durable=true is durable');

    # keys that are already present must be on disk as well

    is_added(api($t, POST => 'zones/seen/keys?durable=true',
                 body => "now\n"), 1, 0, 1, 1,
                 'a key that is already present is durable');
    is_added(api($t, POST => 'zones/seen/keys?durable=true', body => ''),
             0, 0, 0, undef,
             'an empty body may be durable');

    my $r = post('memory', body => "m1\n");
    is_added($r, 1, 1, 0, 0,
             'a key in a zone without a journal is not durable');
    is_added(api($t, POST => 'zones/memory/keys?durable=true', body => "m2\n"),
             1, 1, 0, 0,
             'durable=true makes no key durable without a journal')
        if api($t, GET => 'zones/memory')->status == 200;
};


# A request that adds nothing is durable when the keys of all others are on
# disk.  The helper is stopped, so they are not, and the only worker has seen
# each request before the next one is answered.

subtest 'durable=true waits for the disk if nothing is added' => sub {
    my $one = BloomTest->new;
    configure($one, ['zone=hosts capacity=10k fpr=1e-6 form=host'], api => 1);
    $one->run;

    my $path = 'zones/hosts/keys';
    is_added(api($one, POST => "$path?durable=true", body => "\n"),
             0, 0, 0, 1, 'an empty line is durable in a zone without keys');
    add($one, 'hosts', ['a.example']);

    my $helper = $one->helper;
    kill 'STOP', $helper;
    ok(wait_until(sub {
        open my $stat, '<', "/proc/$helper/stat" or return;
        return <$stat> =~ /\) T /;
    }), 'the helper is stopped');

    add($one, 'hosts', ['b.example']);

    my @cases = (
        ['an empty body', '', {}, 0, 0], ['an empty line', "\n", {}, 0, 0],
        ['an empty array', '[]', $json, 0, 0],
        ['an invalid key', "a b\n", {}, 1, 0],
        ['a key that is present', "a.example\n", {}, 1, 1],
    );

    my @asked = map {
        my $c = $one->connect;
        $c->send($one->request_text(POST => "/bloom/$path?durable=true",
                                    body => $_->[1], headers => $_->[2]));
        cmp_ok(zone_state($one, 'hosts')->{journal}{unsynced_bytes}, '>', 0,
               "$_->[0] is sent while a key is not on disk");
        $c;
    } @cases;

    my @told = IO::Select->new(map { $_->{socket} } @asked)->can_read(0);
    is(scalar @told, 0,
       'no response says that a key is durable before it is on disk');

    kill 'CONT', $helper;

    for (@cases) {
        my ($what, undef, undef, $received, $present) = @$_;
        is_added((shift @asked)->response, $received, 0, $present, 1,
                 "$what is durable once all keys are on disk");
    }
    is(zone_state($one, 'hosts')->{journal}{unsynced_bytes}, 0,
       'no byte of the journal is unsynced once all keys are durable');
    $one->stop;
};


subtest 'a zone with a file and without a journal takes no keys' => sub {
    my $r = post('fixed', body => "f1\n");
    cmp_ok($r->status, '>=', 400,
           'POST keys to a zone with a file and no journal fails');
    is_error($r, 409, qr/journal/,
             'POST keys to a zone with a file and no journal is refused');
    is(ask($t, 'fixed', 'f1', 'id1'), '01', 'a refused key is not added');
};


subtest 'keys past the capacity are taken and warned of' => sub {
    my $mark = $t->log_mark;
    is_added(post('small', body => join '', map { "s$_\n" } 1 .. 30),
             30, undef, undef, undef, 'keys past the capacity are accepted');
    is_added(post('small', body => join '', map { "t$_\n" } 1 .. 30),
             30, undef, undef, undef,
             'more keys past the capacity are accepted');
    is(ask($t, 'small', map { ("s$_", "t$_") } 1 .. 30), '1' x 60,
       'all keys past the capacity are in the zone');
    $t->wait_for_log(qr/\[warn\].*small/, $mark);
    is(scalar(() = $t->log_since($mark) =~ /\[warn\].*"small".*capacity/g), 1,
       'the log warns once of keys past the capacity');
};


subtest 'keys are added to a zone with an image' => sub {
    is_added(post('ids', body => "id1\nid2\n"), 2, 1, 1, undef,
             'a key of the image is already present, another key is added');
    is(ask($t, 'ids', 'id1', 'id2', 'id3'), '110',
       'keys of the image and added ones are in the zone');

    my ($answers, @workers);
    for (1 .. 100) {
        ($answers, @workers) = ask($t, 'ids', 'id2');
        is($answers, '1',
           'an added key is in the zone at once') or last if $_ == 1;
        last if $answers ne '1';
    }
    is($answers, '1', 'all workers find an added key');
};


# The bytes that separate keys may be in any chunk.

subtest 'a body may arrive in pieces of any size' => sub {
    my @keys = map { "piece$_" } 1 .. 20;
    my $body = join "\n", @keys;

    for my $size (1, 2, 3, 7, 64) {
        my @chunks = $body =~ /(.{1,$size})/gs;
        my $r = post('seen', chunks => \@chunks);
        is_added($r, 20, $size == 1 ? 20 : 0, $size == 1 ? 0 : 20, undef,
                 "keys of lines in chunks of $size bytes are read");
    }

    @keys = map { "slow$_" } 1 .. 20;
    is_added(post('seen', body => JSON::PP::encode_json(\@keys),
                  headers => $json, piece => 1, pause => 0.0005),
             20, 20, 0, undef,
             'keys of JSON that arrives byte by byte are read');
    is_added(post('seen', body => join("\r\n", @keys), piece => 1,
                  pause => 0.0005),
             20, 0, 20, undef,
             'keys of lines that arrive byte by byte are read');
};


done_testing;
