#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Shows what bloom_feedback with except=on does where it must not be used: a
# backend answers 404 for a key that exists.  docs/adaptive.md tells this.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Rules;
use BloomTest::Zones;
use IO::Socket::INET;

my $t = BloomTest->new;
my @keys = map { "id$_" } 1 .. 100;

# the backend has all keys, unless it is told to answer something else

my $except = 'bloom_feedback 404 except=on rate=1000r/s after=1s';
my $audit = 'bloom_audit 100% add=on rate=1000r/s';
my $argument = "bloom_reject absent \$arg_id zone=ids; $except";
my $path = "bloom_reject absent \$id zone=ids; $except; $audit";

my %rules = (
    ''        => $argument,
    audited   => "$argument; $audit",
    '= /raw'  => $argument,
    '= /arg'  => "$argument;
                  proxy_pass http://127.0.0.1:%%PORT_8081%%/arg?id=\$arg_id",
    '~ ^/raw/(?<id>[^/]+)$'         => $path,
    '~ ^/checked/(?<id>[^/]+)$'     => "$path; rewrite ^ \$uri break",
    '~ ^/request_uri/(?<id>[^/]+)$' => "$path; rewrite ^ \$uri break;
                  proxy_pass http://127.0.0.1:%%PORT_8081%%/x\$request_uri",
    '~ ^/scgi/(?<id>[^/]+)$'        => "$path; rewrite ^ \$uri break;
                  scgi_param REQUEST_URI \$request_uri;
                  scgi_pass 127.0.0.1:%%PORT_8083%%",
);

configure_rules($t, { ids => \@keys },
                <<'CONF' . locations(\%rules, 8081) . '}');
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        proxy_set_header X-Status $arg_status;

        location /bloom/ { bloom_api write=on; }
CONF

# Returns the status of the backend for a path, which it neither decodes nor
# resolves, and for a status that a request asks for.

sub status_of {
    my ($uri, $status) = @_;

    my ($path) = $uri =~ m{^(?:/x(?=/request_uri))?([^?]*)};

    return $path =~ /there/ || $path !~ m{%|//|/\.|#} ? $status || 200 : 404;
}

$t->backend(8081, sub {
    my ($request) = @_;

    return { status => status_of($request->{uri},
                                 $request->{headers}{'x-status'}),
             body => 'b' };
});

# the same backend, by SCGI

my $scgi = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128,
                                 LocalPort => $t->port(8083), ReuseAddr => 1)
    or die "cannot listen: $!";

my $scgi_pid = spawn(sub {
    while (my $client = $scgi->accept) {
        my ($length, $byte) = '';

        $length .= $byte while read($client, $byte, 1) && $byte ne ':';
        read $client, my $params, $length + 1;

        my ($uri) = $params =~ /\0REQUEST_URI\0([^\0]*)/;
        my ($status) = $uri =~ /status=(\d+)/;

        print $client 'Status: ', status_of($uri, $status), "\r\n\r\nb";
        close $client;
    }
});

$t->run;


# Asks for a key while the backend answers with a status.

sub asked {
    my ($key, $status) = @_;

    return outcome($t, "/?id=$key&status=" . ($status // 200));
}


# Asks for a key while the backend answers 404, until the key is rejected: a
# zone excepts no key in the first second of an image.

sub excepted {
    my ($key) = @_;

    return wait_until(sub { asked($key, 404) eq '404 REJECTED ids' });
}


subtest 'a temporary 404 makes a key absent that exists' => sub {
    is(asked('id1'), '200 PASSED ids', 'the key is present at first');
    ok(excepted('id1'), 'the backend answers 404, and the key is rejected');
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
    is(asked('id2'), '404 REJECTED ids', 'another excepted key is rejected');
    ok(excepted('id10'), 'the zone still excepts');
    is(asked('id1', 404), '404 PASSED ids', 'the backend answers 404 again');
    is(asked('id1'), '200 PASSED ids',
       'a key that was added a moment ago is not excepted');
};

subtest 'an audit that excepts adds the key again' => sub {
    ok(excepted("id$_"), "id$_ is excepted") for 11, 12;
    is(outcome($t, '/audited?id=id11&status=404'), '404 AUDITED ids',
       'the key is audited while the backend answers 404');
    is(asked('id11'), '404 REJECTED ids', 'it is rejected afterwards');
    is(outcome($t, '/audited?id=id11'), '200 AUDITED ids',
       'the key is audited while the backend has it');
    is(asked('id11'), '200 PASSED ids', 'it is present afterwards');
    is(asked('id12'), '404 REJECTED ids', 'another excepted key is rejected');
    is(zone_state($t, 'ids')->{audit}{wrong_absent}, 1,
       'the audit counts a wrong absent');
};

# A client's spelling of a path that the backend does not decode or resolve.

sub spellings {
    my ($way, $id) = @_;

    return ("/$way/%" . unpack('H2', $id) . substr($id, 1),
            '/%' . unpack('H2', $way) . substr($way, 1) . "/$id",
            "//$way/$id", "/./$way/$id", "/x/../$way/$id", "/$way//$id",
            "/$way/$id#x");
}

subtest 'a 404 for a path that the backend reads in another way' => sub {
    my $doubts = sub { zone_state($t, 'ids')->{feedback}{not_excepted_doubt} };
    my $before;

    ok(excepted('id13'), 'the zone excepts');

    for my $way (qw(raw request_uri scgi)) {
        for my $path (spellings($way, 'id14')) {
            $before = $doubts->();

            is(outcome($t, $path), '404 PASSED ids',
               "the backend has no $path");
            is($doubts->() - $before, 1, "$path is counted as a doubt");
            is(asked('id14'), '200 PASSED ids',
               "no key is excepted from $path");
        }
    }

    is(outcome($t, '/r%61w?id=id14'), '404 PASSED ids',
       'the backend has no /r%61w');
    is(asked('id14'), '200 PASSED ids',
       'no argument is excepted from a path that the backend does not decode');

    for (map({ "/$_" } spellings('checked', 'id14')), '/%61rg?id=id14') {
        is(outcome($t, s{^//}{/}r), '200 PASSED ids',
           "the backend gets the path that was checked, not $_");
    }

    my $n = 20;

    for my $path (map({ "/$_/ID" } qw(raw request_uri scgi)), '/raw?id=ID',
                  '/%61rg?id=ID', grep { !/#/ } spellings('checked', 'ID'))
    {
        my $key = 'id' . $n++;
        my $asked = $path =~ s/ID|%49D/$key/r;
        my $mark = $asked =~ /\?/ ? '&' : '?';

        $asked .= "${mark}status=404";
        is(outcome($t, $asked), '404 PASSED ids', "the backend denies $asked");
        is(asked($key), '404 REJECTED ids', "$key is excepted from $asked");
    }
};

subtest 'a 200 for a path that the backend reads in another way' => sub {
    my $audit = sub { zone_state($t, 'ids')->{audit}{not_added} };

    for my $way (qw(raw request_uri scgi)) {
        my $before = $audit->();
        my $mark = $t->log_mark;

        is(outcome($t, "/$way//there"), '200 AUDITED ids',
           "the backend has something at /$way//there");
        like($t->wait_for_log(qr/wrong absent/, $mark),
             qr/lacks key "there": it was not added, since the client wrote the path in another way and the backend may have read another key; add it if it exists;/,
             "the error log says why no key is added: $way");
        is($audit->() - $before, 1,
           "the key is counted as not excepted: $way");
        is(asked('there'), '404 REJECTED ids', "no key is added: $way");
    }

    for my $path (map({ "/$_/there$_" } qw(raw request_uri scgi)),
                  '/x/../checked//%74herechecked')
    {
        my ($key) = $path =~ m{/([^/]*)\z};

        $key =~ s/%74/t/;
        is(outcome($t, $path), '200 AUDITED ids',
           "the backend has something at $path");
        is(asked($key), '200 PASSED ids', "the key of $path is added");
    }
};

kill 'KILL', $scgi_pid;
waitpid $scgi_pid, 0;

subtest 'all excepted keys are present again after a clear' => sub {
    ok(excepted("id$_"), "id$_ is excepted") for 5, 6;
    is(api($t, POST => 'zones/ids/clear?only=excepted')->status, 200,
       'the zone forgets what it has excepted');
    is(asked("id$_"), '200 PASSED ids', "id$_ is present") for 2, 5, 6;
};

subtest 'all excepted keys are present again after another image' => sub {
    ok(excepted("id$_"), "id$_ is excepted") for 7, 8;
    $t->build_image('ids.bloom', \@keys, '-p', '1e-9');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'it is loaded');
    is(asked("id$_"), '200 PASSED ids', "id$_ is present") for 7, 8;
};

subtest 'all excepted keys are present again after a restart' => sub {
    ok(excepted('id9'), 'id9 is excepted');
    $t->stop;
    $t->run;
    is(asked('id9'), '200 PASSED ids', 'id9 is present');
};

done_testing;
