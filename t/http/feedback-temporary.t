#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Shows what bloom_feedback with learn=on does where it must not be used: a
# backend answers 404 for a key that exists.  docs/adaptive.md tells this.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;
use BloomTest::Zones;

my $t = BloomTest->new;
my @keys = map { "id$_" } 1 .. 100;

# the backend has all keys, unless it is told to answer something else; it does
# not decode "%69", an "i"

configure_rules($t, { ids => \@keys }, <<'CONF');
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        proxy_set_header X-Status $arg_status;

        location /bloom/ { bloom_api write=on; }

        location / {
            bloom_reject   absent $arg_id zone=ids;
            bloom_feedback 404 learn=on learn_rate=1000r/s learn_after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /audited {
            bloom_reject   absent $arg_id zone=ids;
            bloom_feedback 404 learn=on learn_rate=1000r/s learn_after=1s;
            bloom_audit    100% learn=on learn_rate=1000r/s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location ~ ^/raw/(?<id>[^/]+)$ {
            bloom_reject   absent $id zone=ids;
            bloom_feedback 404 learn=on learn_rate=1000r/s learn_after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location ~ ^/checked/(?<id>[^/]+)$ {
            bloom_reject   absent $id zone=ids;
            bloom_feedback 404 learn=on learn_rate=1000r/s learn_after=1s;
            rewrite ^ $uri break;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF

$t->backend(8081, sub {
    my ($request) = @_;

    return { status => 404, body => 'b' } if $request->{uri} =~ /%69/;
    return { status => $request->{headers}{'x-status'} || 200, body => 'b' };
});
$t->run;


# Asks for a key while the backend answers with a status.

sub asked {
    my ($key, $status) = @_;

    return outcome($t, "/?id=$key&status=" . ($status // 200));
}


# Asks for a key while the backend answers 404, until the key is rejected: a
# zone learns no key in the first second of an image.

sub learned {
    my ($key) = @_;

    return wait_until(sub { asked($key, 404) eq '404 REJECTED ids' });
}


subtest 'a temporary 404 makes a key absent that exists' => sub {
    is(asked('id1'), '200 PASSED ids', 'the key is present at first');
    ok(learned('id1'), 'the backend answers 404, and the key is rejected');
    is(asked('id1'), '404 REJECTED ids',
       'the key is rejected although the backend has it again');
    is(asked('id2', 404), '404 PASSED ids',
       'a temporary 404 reaches the client once');
    is(asked('id2'), '404 REJECTED ids', 'one such response suffices');
    is(asked('id3'), '200 PASSED ids', 'other keys are not affected');
};

subtest 'another status changes nothing' => sub {
    for my $status (403, 410, 500, 503) {
        is(asked('id4', $status), "$status PASSED ids",
           "the backend answers $status");
        is(asked('id4'), '200 PASSED ids', 'the key is present afterwards');
    }
};

subtest 'the key is absent as long as the image serves' => sub {
    $t->reload;
    is(asked('id1'), '404 REJECTED ids', 'after a reload of nginx');

    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image is loaded again');
    is(generation($t, 'ids'), 2, 'a new generation serves');
    is(asked('id1'), '404 REJECTED ids', 'the key is still rejected');
};

subtest 'the key is present again when it is added' => sub {
    is(add($t, ids => ['id1'])->{added}, 1, 'the key counts as new');
    is(asked('id1'), '200 PASSED ids', 'the key is present');
    is(asked('id2'), '404 REJECTED ids', 'another learned key is rejected');
    ok(learned('id10'), 'the zone still learns');
    is(asked('id1', 404), '404 PASSED ids', 'the backend answers 404 again');
    is(asked('id1'), '200 PASSED ids',
       'a key that was added a moment ago is not learned');
};

subtest 'an audit that learns adds the key again' => sub {
    ok(learned("id$_"), "id$_ is learned") for 11, 12;
    is(outcome($t, '/audited?id=id11&status=404'), '404 AUDITED ids',
       'the key is audited while the backend answers 404');
    is(asked('id11'), '404 REJECTED ids', 'it is rejected afterwards');
    is(outcome($t, '/audited?id=id11'), '200 AUDITED ids',
       'the key is audited while the backend has it');
    is(asked('id11'), '200 PASSED ids', 'it is present afterwards');
    is(asked('id12'), '404 REJECTED ids', 'another learned key is rejected');
    is(zone_state($t, 'ids')->{audit}{wrong_absent}, 1,
       'the audit counts a wrong absent');
};

subtest 'a backend that reads the path in another way' => sub {
    ok(learned('id13'), 'the zone learns');
    is(outcome($t, '/checked/%69d14'), '200 PASSED ids',
       'the backend gets the path that was checked');
    is(outcome($t, '/raw/%69d14'), '404 PASSED ids',
       'the backend gets the path of the client, and has no such item');
    is(outcome($t, '/raw/id14'), '404 REJECTED ids',
       'the key is rejected in any spelling');
};

subtest 'all learned keys are present again after a clear' => sub {
    ok(learned("id$_"), "id$_ is learned") for 5, 6;
    is(api($t, POST => 'zones/ids/clear?only=learned')->status, 200,
       'the zone forgets what it has learned');
    is(asked("id$_"), '200 PASSED ids', "id$_ is present") for 2, 5, 6;
};

subtest 'all learned keys are present again after another image' => sub {
    ok(learned("id$_"), "id$_ is learned") for 7, 8;
    $t->build_image('ids.bloom', \@keys, '-p', '1e-9');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'it is loaded');
    is(asked("id$_"), '200 PASSED ids', "id$_ is present") for 7, 8;
};

subtest 'all learned keys are present again after a restart' => sub {
    ok(learned('id9'), 'id9 is learned');
    $t->stop;
    $t->run;
    is(asked('id9'), '200 PASSED ids', 'id9 is present');
};

done_testing;
