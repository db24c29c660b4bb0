#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that a zone with bloom_source takes changes in order, once and as a whole;
# that it answers "unknown" instead of "absent" without a sign of life and after
# a gap; that its place lasts through reloads, crashes, restarts and other
# images; and what it refuses.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Source;
use BloomTest::Zones;

my $t = BloomTest->new;

my @zones = ('zone=live capacity=10k fpr=1e-9;'
             . ' bloom_source zone=live name=s max_lag=off',
             'zone=lag capacity=10k fpr=1e-9;'
             . ' bloom_source zone=lag name=s max_lag=2s',
             'zone=ids file=ids.bloom;'
             . ' bloom_source zone=ids name=s max_lag=off',
             'zone=urls capacity=10k fpr=1e-9 form=url;'
             . ' bloom_source zone=urls name=s max_lag=off',
             'zone=small capacity=10k fpr=1e-9 removals=2;'
             . ' bloom_source zone=small name=s max_lag=off',
             'zone=plain capacity=10k fpr=1e-9');

$t->build_image('at10.bloom', ['base', 'old'], '-p', '1e-9', '-n', '10k',
                '--source', 's=10');
install_image($t, 'at10');
configure($t, \@zones, api => 1, workers => 2, server => <<'CONF');
    location /reading/ { bloom_api; }
CONF
$t->run;

# What the tool says about the image NAME.bloom.

sub info_of {
    my ($name) = @_;

    my (undef, $out) = $t->run_tool('info', $t->testdir . "/$name.bloom");

    return $out;
}

# Tests a refusal: its status and its code.

sub is_refused {
    my ($response, $status, $code, $name) = @_;

    is_error($response, $status, qr/\w/, $name // "refused: $code");
    is($response->json->{error}{code}, $code, "the code is $code");
}

sub answers { return join '', ask_until_known($t, @_) }

subtest 'changes are applied in order and once' => sub {
    my $r = is_applied(changes($t, 'live', 0, 5, '+a', '+b', '-c'), 5,
                       'the first changes');
    is($r->{received}, 3, 'received');
    is($r->{added}, 2, 'added');
    is($r->{removed}, 0, 'an absent key is not removed');
    is(answers('live', qw(a b c)), '110', 'the changes hold');

    is_applied(changes($t, 'live', 5, '5-1', '-a', '+a', '+b', '-b', '+d'),
               '5-1', 'the last change of a key counts');
    is(answers('live', qw(a b c d)), '1001', 'the last change holds');

    $r = changes($t, 'live', 0, 5, '+a', '+b', '-d');
    is($r->status, 200, 'changes a second time');
    is_deeply($r->json, { applied => JSON::PP::false, position => '5-1' },
              'are not applied');

    $r = changes($t, 'live', 6, 7, '+z');
    is_refused($r, 409, 'wrong_position');
    is($r->json->{position}, '5-1', 'the position is in the response');

    $r = changes($t, 'live', 0, 7, '+z');
    is_refused($r, 409, 'wrong_position', 'changes that overlap');
    is(answers('live', qw(a b c d z)), '10010', 'nothing was changed');

    is_applied(changes($t, 'live', '5-1', 18446744073709551615), 
               '18446744073709551615', 'a position without changes');
    is(position($t, 'live'), '18446744073709551615', 'the position moved');
};

subtest 'what is refused' => sub {
    # Q is a query that is right

    refusals_are($t, <<'END' =~ s/\bQ\b/source=s&after=0&position=1/gr);
POST zones/lag/changes?Q +a\nb\n                  400 bad_body
POST zones/lag/changes?Q&offset=-1 +a\n           400 bad_query  "offset"
POST zones/lag/changes?Q&more=2 +a\n              400 bad_query  "more"
POST zones/lag/changes?Q&decode=form +a\n         400 bad_query  "decode"
POST zones/lag/changes?source=s&after=0&position=0&more=true  400 bad_body
POST zones/lag/changes?source=s&after=0           400 bad_query  position
POST zones/lag/changes?source=s&after=0&position=1x  400 bad_query  "position"
POST zones/lag/changes?source=s&after=2&position=1  400 bad_query  position after
POST zones/lag/changes?source=s&after=0&position=0 +a\n  400 bad_body
POST zones/lag/changes?Q&x=1                      400 bad_query  "x"
POST zones/lag/changes?source=t&after=0&position=1  409 wrong_source
POST zones/plain/changes?Q                        409 not_possible
POST zones/plain/gap?source=s&position=1          409 not_possible
POST zones/lag/keys a\n                           409 no_additions
POST zones/lag/remove a\n                         409 no_removals
DELETE zones/lag/keys?key=a                       409 no_removals
POST zones/lag/clear?only=removed                 409 not_possible  source nothing
END
    is_refused(api($t, POST => 'zones/lag/changes?source=s&after=0&position=1',
                   body => '["+a",""]',
                   headers => { 'Content-Type' => 'application/json' }),
               400, 'bad_body', 'an empty string');
    is_refused($t->request(POST => '/reading/zones/lag/changes?source=s&after=0'
                                   . '&position=1'), 403, 'read_only');
    is_refused(changes($t, 'lag', 0, 1, map { "+key$_" } 1 .. 20000), 413,
               'too_large');
    is(position($t, 'lag'), 0, 'nothing of this has moved the zone');

    my $r = changes($t, 'urls', 0, 1, '+http://evil.example/a',
                    '+javascript:alert(1)');
    is($r->json->{invalid}, 1, 'invalid keys are counted');
    is(zone_state($t, 'urls')->{counters}{invalid}, 1, 'in the state, too');
    changes($t, 'urls', 0, 1, '+javascript:alert(1)');
    changes($t, 'urls', 7, 8, '+javascript:alert(1)');
    changes($t, 'urls', 1, 2, '+javascript:alert(1)', 'x');
    is(zone_state($t, 'urls')->{counters}{invalid}, 1,
       'but not in changes that are not applied');
    is($r->json->{first_invalid}{number}, 2, 'and the first is named');
    is(answers('urls', 'http://evil.example/a'), '1',
       'the other keys are added');

    $r = api($t, POST => 'zones/urls/changes?source=s&after=1&position=2',
             body => '["-http://evil.example/a","+http://b.example/"]',
             headers => { 'Content-Type' => 'application/json' });
    is_applied($r, 2, 'changes in JSON');
    is(answers('urls', 'http://evil.example/a', 'http://b.example/'), '01',
       'hold');

    is_applied(changes($t, 'small', 0, 1, '+a', '+b', '+c', '-x'), 1,
               'a removal');
    $r = changes($t, 'small', 1, 2, '+d', '-a', '-b');
    is_refused($r, 507, 'no_room');
    is(answers('small', qw(a b c d)), '1110', 'nothing of it was applied');
    is(position($t, 'small'), 1, 'the zone has not moved');
    is_applied(changes($t, 'small', 1, 2, '+x', '-a', '-a'), 2,
               'a removal for which there is room');
};

subtest 'invalid keys are left out' => sub {
    my $long = 'x' x 65535;

    for my $zone ('live', 'urls') {
        for (['lines', sub { join "\n", @_ }, 'text/plain'],
             ['JSON', sub { JSON::PP->new->encode(\@_) }, 'application/json'])
        {
            my ($name, $body, $type) = @$_;
            my $from = position($t, $zone);
            my $to = $zone eq 'live' && $from > 1e19 ? undef : $from + 1;

            gap($t, $zone, 5), ($from, $to) = (5, 6) if !defined $to;

            my $r = api($t, POST => "zones/$zone/changes?source=s&after=$from"
                                    . "&position=$to",
                        body => $body->('+http://a.example/', '+', '-', "+${long}x",
                                        '-http://b.example/',
                                        '+http://a.example/'),
                        headers => { 'Content-Type' => $type });
            my $json = is_applied($r, $to, "$zone, $name: the batch is applied");

            is($json->{invalid}, 3, "$zone, $name: invalid keys are counted");
            is_deeply($json->{first_invalid},
                      { number => 2, reason => 'is empty' },
                      "$zone, $name: the first is named");

            my $sum = 0;
            $sum += $json->{$_} for qw(added already_present removed absent
                                       superseded invalid);
            is($sum, $json->{received}, "$zone, $name: the counts add up");
            is($json->{superseded}, 1, "$zone, $name: a change that another one(?#
                                       ) of the key replaces is counted");
        }
    }

    my $from = position($t, 'live');
    my $r = is_applied(changes($t, 'live', $from, $from + 1, "+$long"),
                       $from + 1, 'a key of 65535 bytes');
    is($r->{added}, 1, 'is added');
};

subtest 'signs of life' => sub {
    is(source_state($t, 'lag'), 'waiting', 'no sign of life yet');
    is(zone_state($t, 'lag')->{state}, 'late', 'the zone is late');
    is(zone_state($t, 'lag')->{source}{lag_ms}, undef, 'no lag is known');

    is_applied(changes($t, 'lag', 0, 3, '+a'), 3, 'changes');
    is(scalar ask($t, 'lag', qw(a b)), '1?', 'are no sign of life');

    is_refused(alive($t, 'lag', 4), 409, 'wrong_position');
    is(scalar ask($t, 'lag', 'b'), '?', 'a later position is none');
    is(alive($t, 'lag', 2)->status, 200, 'an earlier position');
    is(scalar ask($t, 'lag', 'b'), '?', 'is none, either');

    my $r = alive($t, 'lag', 3);
    is_deeply($r->json, { applied => JSON::PP::false, position => '3' },
              'a sign of life');
    is(scalar ask($t, 'lag', qw(a b)), '10', 'absent is known now');
    is(source_state($t, 'lag'), 'current', 'the source is current');

    wait_until(sub { ask($t, 'lag', 'b') eq '?' });
    is(source_state($t, 'lag'), 'late', 'without a sign of life it is late');
    alive($t, 'lag', 3);
    is(scalar ask($t, 'lag', qw(a b)), '10', 'and recovers');

    my $clear = 'zones/lag/clear?serving';
    is(api($t, POST => "$clear=1-0")->status, 412,
       'a clear of another generation is refused');
    is(api($t, POST => "$clear=" . zone_state($t, 'lag')->{token})->status, 200,
       'a clear');
    is(source_state($t, 'lag'), 'waiting', 'waits for a sign of life');
    is(scalar ask($t, 'lag', 'b'), '?', 'until then, absent is unknown');
    is_applied(changes($t, 'lag', 0, 3, '+a'), 3, 'changes after a clear');
    alive($t, 'lag', 3);
    is(scalar ask($t, 'lag', qw(a b)), '10', 'and it recovers');

    like(api($t, GET => 'metrics')->body,
         qr/source_state\{zone="lag",state="current"\} 1\n/, 'metrics');
};

subtest 'gaps' => sub {
    is_applied(changes($t, 'ids', 10, 20, '+new', '-old'), 20, 'changes');
    is(answers('ids', qw(base old new no)), '1010', 'hold');

    is_deeply(gap($t, 'ids', 30)->json, { position => '30' }, 'a gap');
    is(source_state($t, 'ids'), 'gap', 'the state says so');
    is(scalar ask($t, 'ids', qw(base old new no)), '1?1?',
       'absent is unknown');
    is_applied(changes($t, 'ids', 30, 31, '+later'), 31, 'later changes');

    my $r = api($t, GET => 'zones/ids/image');
    $t->write_file('gap.bloom', $r->body);
    like(info_of('gap'),
         qr/^source .* position 10$/m,
         'an image of the zone claims no more than it has');

    $t->stop;
    $t->run;
    is(source_state($t, 'ids'), 'gap', 'a restart does not forget a gap');
    is(scalar ask($t, 'ids', qw(base later no)), '11?', 'nor changes');

    $t->build_image('at25.bloom', ['base', 'new'], '-p', '1e-9', '-n', '10k',
                    '--source', 's=25');
    is(upload_image($t, 'ids', 'at25')->status, 200, 'an image before the gap');
    is(source_state($t, 'ids'), 'gap', 'does not close it');

    $t->build_image('at30.bloom', ['base', 'new'], '-p', '1e-9', '-n', '10k',
                    '--source', 's=30');
    is(upload_image($t, 'ids', 'at30')->status, 200, 'an image at the gap');
    isnt(source_state($t, 'ids'), 'gap', 'closes it');
    is(answers('ids', qw(base old new later no)), '10110',
       'with the changes after it');
    is(position($t, 'ids'), 31, 'and their position');
};

subtest 'images' => sub {
    $t->build_image('at40.bloom', ['base', 'x'], '-p', '1e-9', '-n', '10k',
                    '--source', 's=40', '--as-of', time - 7200);
    is_applied(changes($t, 'ids', 31, 35, '+gone', '-new'), 35, 'changes');
    is(upload_image($t, 'ids', 'at40')->status, 200,
       'an image at a later position');
    is(position($t, 'ids'), 40, 'moves the zone there');
    is(answers('ids', qw(base x gone new later)), '11000',
       'its keys are the truth, whatever the time');

    is_applied(changes($t, 'ids', 40, 45, '+y', '-x'), 45, 'changes');
    is(upload_image($t, 'ids', 'at40')->status, 200, 'the same image again');
    is(answers('ids', qw(base x y)), '101', 'changes after it are replayed');
    is(position($t, 'ids'), 45, 'up to the same position');

    $t->build_image('other.bloom', ['base'], '-p', '1e-9', '-n', '10k',
                    '--source', 't=1');
    my $r = upload_image($t, 'ids', 'other');
    is_refused($r, 422, 'image_refused', 'an image of another source');
    like($r->json->{error}{message}, qr/has changes of the source "t"/,
         'the message names the source');

    $r = api($t, GET => 'zones/ids/image');
    $t->write_file('copy.bloom', $r->body);
    like(info_of('copy'),
         qr/^source .* position 45$/m, 'an image of the zone has its position');

    is_refused(api($t, POST => 'zones/ids/reload'), 422, 'image_refused',
               'an image before changes that nobody has sent');
    is(answers('ids', qw(base x y)), '101', 'the other image serves on');

    $t->build_image('at44.bloom', ['base', 'old'], '-p', '1e-9', '-n', '10k',
                    '--source', 's=44');
    install_image($t, 'at44');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a reload of file=');
    is(answers('ids', qw(base old gone y x)), '11010',
       'replays the changes after its position');
    is(position($t, 'ids'), 45, 'up to the same position');

    is(api($t, POST => 'zones/ids/clear')->status, 200, 'a clear');
    is(position($t, 'ids'), 44, 'goes back to the position of file=');
    is(scalar ask($t, 'ids', qw(base old y)), '11?',
       'and its keys; absent is unknown, also with max_lag=off');
    is(source_state($t, 'ids'), 'waiting', 'the zone waits for its source');
    $t->kill_all;
    $t->run;
    is(scalar ask($t, 'ids', qw(base old y)), '11?', 'after a crash, too');
    alive($t, 'ids', 44);
    is(answers('ids', qw(base old y)), '110', 'until a sign of life');

    is_applied(changes($t, 'ids', 44, 45, '+y'), 45, 'changes');
    api($t, POST => 'zones/ids/clear')->status == 200 or fail('a clear');
    is(scalar ask($t, 'ids', qw(base old y)), '11?', 'another clear');
    is_applied(changes($t, 'ids', 44, 45, '+y'), 45, 'the changes again');
    is(answers('ids', qw(base old z)), '110', 'are all that was missing');
    api($t, POST => 'zones/ids/clear')->status == 200 or fail('a clear');
    alive($t, 'ids', 44);
};

subtest 'restarts' => sub {
    is_applied(changes($t, 'ids', 44, 46, '+r', '-old'), 46, 'changes');
    $t->reload;
    is(position($t, 'ids'), 46, 'after a reload');
    $t->kill_all;
    $t->run;
    is(position($t, 'ids'), 46, 'after a crash');
    is(answers('ids', qw(base old r)), '101', 'with the changes');

    api($t, POST => 'zones/ids/checkpoint')->status == 200
        or fail('a checkpoint');
    is_applied(changes($t, 'ids', 46, 47, '-r', '+s'), 47,
               'changes after a checkpoint');
    $t->kill_all;
    $t->run;
    is(position($t, 'ids'), 47, 'after a crash with a checkpoint');
    is(answers('ids', qw(base old r s)), '1001', 'with the changes');

    $t->upgrade;
    is(position($t, 'ids'), 47, 'after an upgrade');
    is(answers('ids', qw(base old r s)), '1001', 'with the changes');
    is(source_state($t, 'lag'), 'waiting', 'a start waits for a sign of life');
};

done_testing;
