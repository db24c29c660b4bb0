#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# POST clear drops added keys, removed keys and uploads: the zone goes back to
# the image of file=, or to an empty filter, also after a restart.  It needs
# write=on and honours "serving=".  If the image cannot be loaded, nothing
# changes.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '20k');
$t->build_image('pushed.bloom', ['id1', keys_of('wrong', 10)], '-p', '1e-9',
                '-n', '20k');
$t->build_image('dated.bloom', ['id1', 'dated'], '-p', '1e-9', '-n', '20k',
                '--as-of', rfc3339(time));

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=20k fpr=1e-9',
               'zone=memory capacity=20k fpr=1e-9 journal=off',
               'zone=fixed file=ids.bloom journal=off'],
          api => 1, add => 1, workers => 2,
          server => 'location /read/ { bloom_api; }');
$t->run;

sub clear {
    my ($zone, %option) = @_;

    return api($t, POST => "zones/$zone/clear" . (delete $option{query} // ''),
               %option);
}


subtest 'added keys are dropped' => sub {
    for my $zone (qw(ids seen memory)) {
        my $id = $zone eq 'ids' ? 1 : 0;

        add($t, $zone, ['a1', 'id11']);
        $t->get("/add/$zone?k=a2");
        is(ask($t, $zone, qw(a1 a2 id1 id11)), "11${id}1",
           "zone $zone has added keys");

        my $before = generation($t, $zone);
        my $response = clear($zone);
        is($response->status, 200, "zone $zone is cleared")
            or diag($response);
        is($response->json->{generation}, $before + 1,
           'the next generation serves');
        is($response->json->{zone}{state}, 'serving', 'the zone is serving');
        is($response->json->{zone}{token}, zone_state($t, $zone)->{token},
           'the response has the token of the new generation');
        is(ask($t, $zone, qw(a1 a2 id1 id11)), "00${id}0",
           "zone $zone has its first keys alone");

        add($t, $zone, ['b1']);
        is(ask($t, $zone, qw(a1 b1 id1)), "01$id",
           "a key that is added to zone $zone then is present");
    }

    is(clear('fixed')->status, 200,
       'a zone whose keys cannot change is loaded again');
    is(ask($t, 'fixed', 'id1', 'no'), '10', 'its image serves');
};


subtest 'a clear is not undone by a restart' => sub {
    for my $how (qw(stop kill_all)) {
        add($t, $_, ['a3']) for qw(ids seen);
        is(clear($_)->status, 200, "zone $_ is cleared") for qw(ids seen);
        add($t, $_, ['c1']) for qw(ids seen);

        $t->$how;
        $t->run;

        is(ask_until_known($t, 'ids', qw(id1 a3 b1 c1)), '1001',
           "zone ids has what was added after the clear after $how");
        is(ask_until_known($t, 'seen', qw(id1 a3 b1 c1)), '0001',
           "zone seen has what was added after the clear after $how");
        is(zone_state($t, $_)->{state}, 'serving',
           "zone $_ is serving after $how") for qw(ids seen);
    }
};


subtest 'an upload is dropped' => sub {
    for my $zone (qw(ids seen)) {
        my $id = $zone eq 'ids' ? 1 : 0;

        is(upload_image($t, $zone, 'pushed')->status, 200,
           "a wrong image is pushed to zone $zone");
        add($t, $zone, ['d1']);
        is(api($t, POST => "zones/$zone/checkpoint")->status, 200,
           'a checkpoint is written');
        is(ask($t, $zone, qw(wrong1 d1 id2)), '110', 'the pushed image serves');

        is(clear($zone)->status, 200, "zone $zone is cleared");
        is(ask($t, $zone, qw(wrong1 d1 id2)), "00$id",
           'the zone has its first keys alone');
        ok(!zone_state($t, $zone)->{image}{uploaded},
           'the state says that no upload serves');
        is(scalar files($t->testdir . "/state/$zone/{upload,checkpoint}.*"), 0,
           'no upload and no checkpoint is left');
    }

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(wrong1 d1 id2)), '001',
       'the image of file= serves after a restart');
    is(ask_until_known($t, 'seen', qw(wrong1 d1 id2)), '000',
       'the empty filter serves after a restart');

    is(upload_image($t, 'ids', 'pushed')->status, 200,
       'an image is pushed after the clear');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(wrong1 id2)), '10',
       'that image serves after a restart');
    is(clear('ids')->status, 200, 'the zone is cleared again');
};


# Segments of the journal that the pushed image covered may have been removed.

subtest 'the image of file= is older than what was removed' => sub {
    my $file = $t->testdir . '/state/ids/base';

    $t->stop;
    my $base = read_base($file);
    write_base($file, %$base, dropped => (time - 7200) * 1000);
    $t->write_file('pushed.bloom', '');
    $t->build_image('pushed.bloom', ['id1', 'wrong1'], '-p', '1e-9', '-n',
                    '20k', '--as-of', rfc3339(time));
    $t->build_image('first.bloom', ['id1', 'wrong1'], '-p', '1e-9', '-n',
                    '20k', '--as-of', rfc3339(time));
    $t->write_file('kept.bloom', $t->read_file('ids.bloom'));
    install_image($t, 'first');
    $t->run;
    is(upload_image($t, 'ids', 'pushed')->status, 200, 'an image is pushed');

    install_image($t, 'kept');
    is_error(api($t, POST => 'zones/ids/reload'), 422, qr/too old/,
             'a reload refuses the older image of file=');
    is(clear('ids')->status, 200, 'a clear goes back to it');
    is(ask($t, 'ids', qw(id2 wrong1)), '10', 'it serves');

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(id2 wrong1)), '10',
       'it serves after a restart');
};


subtest 'removed keys are restored' => sub {
    for my $zone (qw(ids seen memory)) {
        my @keys = ('g1', 'g2', $zone eq 'ids' ? 'id1' : 'g3');

        add($t, $zone, ['g1', 'g2', 'g3']);

        my $remove = sub {
            my $response = api($t, POST => "zones/$zone/remove",
                               body => join "\n", @keys);
            is($response->status, 200, "keys of zone $zone are removed");
            is($response->json->{removed}, 3, 'all of them were present');
            is(zone_state($t, $zone)->{removals}{count}, 3,
               'the state counts them');
        };

        $remove->();
        my $before = generation($t, $zone);
        my $response = clear($zone, query => '?only=removed');
        is($response->status, 200, "the keys of zone $zone are restored")
            or diag($response);
        is($response->json->{generation}, $before,
           'the same generation serves');
        is(ask($t, $zone, @keys), '111', 'they are present again');
        is(zone_state($t, $zone)->{removals}{count}, 0, 'no key is removed');

        $remove->();
        is(clear($zone)->status, 200, "zone $zone is cleared");
        is(ask($t, $zone, @keys), $zone eq 'ids' ? '001' : '000',
           'a clear drops removals, too');
        is(zone_state($t, $zone)->{removals}{count}, 0, 'no key is removed');
    }

    # more keys than fit into a record

    my @many = map { "$_-" . 'x' x 900 } 1 .. 300;
    add($t, 'seen', \@many);
    api($t, POST => 'zones/seen/remove', body => join "\n", @many);
    is(zone_state($t, 'seen')->{removals}{count}, 300,
       'many keys are removed');
    is(clear('seen', query => '?only=removed')->status, 200,
       'they are restored');
    is(zone_state($t, 'seen')->{removals}{count}, 0, 'no key is removed');
    is(scalar(grep { $_ eq 'absent' } lookup_keys($t, 'seen', @many)), 0,
       'they are present again');
    $t->kill_all;
    $t->run;
    is(scalar(grep { $_ eq 'absent' } lookup_keys($t, 'seen', @many)), 0,
       'they are present after a restart');
    is(zone_state($t, 'seen')->{removals}{count}, 0,
       'no key is removed after a restart');
};


# An image that serves may cover removals, so that they are no exceptions.  They
# are restored all the same: no image that is older than them brings them back.

subtest 'removals that the image covers are restored' => sub {
    my @ids = keys_of('id', 3);
    $t->build_image('older.bloom', \@ids, '--as-of', time - 7200);

    my $load = sub {
        my ($name) = @_;
        is(api($t, PUT => 'zones/ids/image',
               body => $t->read_file("$name.bloom"))->status, 200,
           "the $name image is loaded");
    };

    clear('ids');
    $load->('older');
    api($t, POST => 'zones/ids/remove', body => "id1\nid2")->status == 200
        or die 'not removed';
    my $then = time + 2;
    $t->build_image('newer.bloom', \@ids, '--as-of', $then);
    $load->('newer');
    is(ask($t, 'ids', 'id1', 'id2'), '11', 'it has removed keys again');

    wait_until(sub { time > $then });
    is(clear('ids', query => '?only=removed')->status, 200,
       'all keys are restored');
    api($t, POST => 'zones/ids/remove', body => 'id2')->status == 200
        or die 'not removed';
    $load->('older');
    is(ask($t, 'ids', 'id1', 'id2'), '10',
       'only what was removed since then is absent');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', 'id1', 'id2'), '10', 'after a restart, too');
    clear('ids');
};


subtest 'a clear is conditional' => sub {
    my $token = zone_state($t, 'ids')->{token};
    my $clear = "zones/ids/clear?serving";
    add($t, 'ids', ['e1']);

    is_error(api($t, POST => "$clear=1-0"), 412, qr/nothing was changed/,
             'another token is refused');
    is(ask($t, 'ids', 'e1'), '1', 'nothing has changed');
    is(api($t, POST => "$clear=$token")->status, 200,
       'the token of the generation that serves is accepted');
    is(ask($t, 'ids', 'e1'), '0', 'the key is dropped');
    is_error(api($t, POST => "$clear=$token"), 412, qr/serving=/,
             'the token is that of the former generation then');
};


subtest 'a clear is refused' => sub {
    is_error($t->request(POST => '/read/zones/ids/clear'), 403, qr/write=on/,
             'without write=on');
    is(api($t, GET => 'zones/ids/clear')->header('Allow'), 'POST',
       'the answer to GET names POST');
    refusals_are($t, <<'END');
GET zones/ids/clear                      405 method_not_allowed  POST
POST zones/nothing/clear                 404 unknown_zone  nothing
POST zones/ids/clear?only=               400 bad_query  "removed" "excepted"
POST zones/ids/clear?only=added          400 bad_query  "removed" "excepted"
POST zones/ids/clear?only=except         400 bad_query  "removed" "excepted"
POST zones/ids/clear?only=excepted,removed  400 bad_query  "removed" "excepted"
POST zones/ids/clear?olny=removed        400 bad_query  "olny" nothing "only"
POST zones/ids/clear?only=removed&only=all  400 bad_query  more "only"
END

    # who sends "only=removed" in the body must not lose the added keys

    add($t, 'ids', ['kept']);
    is_error(clear('ids', body => 'only=removed'), 400, qr/no body.*\?only=/,
             'with a body');
    is_error(clear('ids', chunks => ['only=removed']), 400, qr/no body/,
             'with a body in chunks');
    is(ask($t, 'ids', 'kept'), '1', 'an added key is still there');
    is_error(clear('ids', headers => { Origin => 'http://other.example' }),
             403, qr/another site/, 'for a page of another site');
};


subtest 'the image of file= cannot be loaded' => sub {
    is(upload_image($t, 'ids', 'pushed')->status, 200, 'an image is pushed');
    add($t, 'ids', ['f1']);
    my $before = generation($t, 'ids');

    my $image = $t->read_file('ids.bloom');
    replace_file($t, 'ids.bloom', substr($image, 0, 8000));

    is_error(clear('ids'), 422, qr/ids\.bloom.*truncated|ids\.bloom/,
             'a damaged image is refused');
    is(generation($t, 'ids'), $before, 'the generation is the same');
    is(ask($t, 'ids', qw(wrong1 f1 id2)), '110', 'nothing has changed');

    replace_file($t, 'ids.bloom', $image);
    is(clear('ids')->status, 200, 'the zone is cleared when the file is good');
    is(ask($t, 'ids', qw(wrong1 f1 id2)), '001', 'the file serves');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(wrong1 f1 id2)), '001',
       'it serves after a restart');
};


subtest 'the log says that a zone was cleared' => sub {
    my $mark = $t->log_mark;
    clear($_) for qw(ids seen);
    like($t->log_since($mark),
         qr/"ids" is cleared and serves generation \d+: .*ids\.bloom with/,
         'with the file');
    like($t->log_since($mark),
         qr/"seen" is cleared and serves generation \d+: an empty filter/,
         'with the empty filter');
};


done_testing;
