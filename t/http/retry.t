#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the recipes of the documents work if nginx asks several servers for
# one request: $upstream_status is then a list, and its last status counts.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $docs = abs_path(dirname(__FILE__) . '/../../docs');

my $created = recipe('directives.md', qr/^map \$upstream_status \$created \{.*?^\}/ms);
my $deleted = recipe('directives.md',
                     qr/^map \$request_method:\$upstream_status \$deleted \{.*?^\}/ms);
my $denied = recipe('adaptive.md', qr/^map "\$bloom_status \$upstream_status".*$/m);

my $t = BloomTest->new;

$t->build_image('shield.bloom', ['gone', 'here'], '-p', '1e-9', '--seed', 1);

# The backend "dead" has a server that refuses connections, the backend "busy"
# one that answers 503.  Each request asks that server first.

configure($t, ['zone=ids capacity=10k fpr=1e-9',
               'zone=shield file=shield.bloom'],
          api => 1, http => <<"HTTP", server => <<'SERVER');
    $created
    $deleted
    $denied
    log_format keys escape=json "\$id";

    upstream dead {
        server 127.0.0.1:%%PORT_8089%% max_fails=0;
        server 127.0.0.1:%%PORT_8081%% backup;
    }
    upstream busy {
        server 127.0.0.1:%%PORT_8082%% max_fails=0;
        server 127.0.0.1:%%PORT_8081%% backup;
    }
    upstream down {
        server 127.0.0.1:%%PORT_8089%% max_fails=0;
        server 127.0.0.1:%%PORT_8089%% backup;
    }
    server {
        listen 127.0.0.1:%%PORT_8083%%;
        proxy_next_upstream error http_503;

        location ~ ^/(?<to>dead|busy)/shield/(?<id>[^/]+)\$ {
            bloom_reject absent \$id zone=shield;
            bloom_feedback 404;
            access_log %%TESTDIR%%/denied.log keys if=\$denied;
            rewrite ^/\\w+(.*) \$1 break;
            proxy_pass http://\$to;
        }
    }
HTTP
    add_header X-Statuses $upstream_status always;
    proxy_next_upstream error http_503 non_idempotent;

    location ~ ^/(?<to>dead|busy)/item/(?<id>[^/]+)$ {
        bloom_add $id zone=ids if=$created;
        bloom_remove $id zone=ids if=$deleted;
        rewrite ^/\w+(.*) $1 break;
        proxy_pass http://$to;
    }
    location ~ ^/down/item/(?<id>[^/]+)$ {
        rewrite ^/\w+(.*) $1 break;
        error_page 502 = @other;
        proxy_pass http://down;
    }
    location @other {
        bloom_add $id zone=ids if=$created;
        proxy_pass http://127.0.0.1:%%PORT_8081%%;
    }
    location ~ ^/(?<to>dead|busy)/new$ {
        bloom_add $upstream_http_x_new_id zone=ids;
        rewrite ^/\w+(.*) $1 break;
        proxy_pass http://$to;
    }
SERVER

$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));

my %status = (PUT => 201, DELETE => 204, POST => 201);

$t->backend(8081, sub {
    my ($request) = @_;
    my ($status) = $request->{uri} =~ /status-(\d+)/;

    $status //= $request->{uri} =~ /gone/ ? 404
                : $status{ $request->{method} } // 200;

    return { status => $status, headers => ['X-New-Id' => 'made'] };
});
$t->backend(8082, { status => 503, headers => ['X-New-Id' => 'lost'] });
$t->run;


# The first removal of a zone may wait for a segment of the journal.

api($t, POST => 'zones/ids/remove', body => "first\n")->status == 200
    or die 'zone ids takes no removals';


for (['dead', '502, '], ['busy', '503, ']) {
    my ($to, $before) = @$_;

    subtest "the last status counts behind a $to server" => sub {
        for my $method (qw(PUT POST)) {
            my $id = lc "$to-$method";
            my $response = $t->request($method, "/$to/item/$id");

            is($response->header('X-Statuses'), "${before}201",
               "a $method that creates an item asks two servers");
            is(ask($t, 'ids', $id), '1', "bloom_add adds the item of a $method");
        }

        $t->request(PUT => "/$to/item/$to-status-409");
        is(ask($t, 'ids', "$to-status-409"), '0',
           'bloom_add does not add an item that the last server refuses');

        my $id = "$to-put";
        $t->request(DELETE => "/$to/item/$id-status-409");
        $t->request(GET => "/$to/item/$id");
        is(ask($t, 'ids', $id), '1', 'only a successful DELETE removes an item');

        my $response = $t->request(DELETE => "/$to/item/$id");
        is($response->header('X-Statuses'), "${before}204",
           'a DELETE that succeeds asks two servers');
        is(ask($t, 'ids', $id), '0', 'bloom_remove removes the item');
    };
}

subtest 'the last status counts after an error page' => sub {
    my $response = $t->request(PUT => '/down/item/other');

    is($response->header('X-Statuses'), '502, 502 : 201',
       'an error page asks another backend');
    is(ask($t, 'ids', 'other'), '1', 'bloom_add adds the item');
};

subtest 'a header of the last response counts' => sub {
    $t->post("/$_/new", '') for 'dead', 'busy';

    is(ask($t, 'ids', 'made'), '1',
       'bloom_add takes the ID of the response that the client gets');
    is(ask($t, 'ids', 'lost'), '0',
       'bloom_add takes no ID of a response that nginx has dropped');
};

subtest 'bloom_feedback and the log of denied keys take the last status' => sub {
    my $before = zone_state($t, 'shield')->{feedback}{false_positives};

    for my $to ('dead', 'busy') {
        $t->get("/$to/shield/$_", port => 8083) for 'gone', 'here';
    }

    is(zone_state($t, 'shield')->{feedback}{false_positives} - $before, 2,
       'two denied requests are counted');
    ok(wait_until(sub { $t->read_file('denied.log') eq "gone\ngone\n" }),
       'their keys are logged');
};

done_testing;


# Returns a part of a document.

sub recipe {
    my ($name, $part) = @_;

    open my $fh, '<', "$docs/$name" or die "cannot read $name: $!\n";
    local $/;

    return <$fh> =~ /($part)/ ? $1 : die "$name has no part $part\n";
}
