#!/usr/bin/perl

# A request is decided once: internal redirects, named locations, error pages
# and subrequests do not evaluate the same rules again, while the rules of a
# route's target are evaluated.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);
$t->build_image('bad.bloom', ['evil', 'none'], '-p', '1e-9', '--seed', 1);

# Each evaluation of a rule that fires leaves one line in the log, for in dry
# run a rule that is evaluated again would say so again.

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=bad file=%%TESTDIR%%/bad.bloom;

    # one list for the server, inherited by most of its locations

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root %%TESTDIR%%/html;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_reject absent $arg_id zone=ids;

        location / { }
        location /backend { proxy_pass http://127.0.0.1:%%PORT_8081%%; }

        location /dry/ {
            bloom_dry_run on;

            location /dry/try {
                try_files /none /none/ /dry/final?$args;
            }
            location /dry/error {
                error_page 404 =200 /dry/final?$args;
            }
            location /dry/rewrite {
                rewrite ^ /dry/final last;
            }
            location /dry/named {
                try_files /none @final;
            }
            location /dry/several {
                error_page 404 = @again;
            }
            location /dry/final { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
            location /dry/index/ { index final.html; }
        }
        location @final { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location @again { try_files /none /none/ /dry/index/?$args; }
    }

    # routes

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_route absent $arg_id zone=ids to=/confirm?$args;

        location / { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /self { bloom_route absent $arg_id zone=ids to=/self?$args; }
        location /ping { bloom_route absent $arg_id zone=ids to=/pong?$args; }
        location /pong { bloom_route absent $arg_id zone=ids to=/ping?$args; }
        location /named {
            bloom_route absent $arg_id zone=ids to=@list;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @list {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /chain {
            bloom_route absent $arg_id zone=ids to=@first;
        }
        location @first {
            bloom_route present $arg_id zone=bad to=@second;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @second {
            bloom_reject absent $arg_other zone=ids;
            bloom_reject present $arg_id zone=bad status=451;
        }
        location /moves {
            bloom_route absent $arg_id zone=ids to=@moves;
        }
        location @moves {
            rewrite ^ /list last;
        }
        location /list {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }

    # what has rejected or passed is not decided again

    server {
        listen 127.0.0.1:%%PORT_8083%%;
        root %%TESTDIR%%/html;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        recursive_error_pages on;

        location /rejected {
            bloom_reject absent $arg_id zone=ids;
            error_page 404 /sorry?$args;
        }
        location /rejected-named {
            bloom_reject absent $arg_id zone=ids;
            error_page 404 @sorry;
        }
        location /passed {
            bloom_pass absent $arg_id zone=ids;
            try_files /none /sorry?$args;
        }
        location /unfired {
            bloom_reject present $arg_id zone=ids;
            try_files /none /sorry?$args;
        }
        location /unlisted { try_files /none /sorry?$args; }
        location /sorry {
            bloom_reject present $arg_id zone=bad status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @sorry {
            bloom_reject present $arg_id zone=bad status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }

    # subrequests

    server {
        listen 127.0.0.1:%%PORT_8084%%;
        root %%TESTDIR%%/html;
        add_header X-Bloom "$bloom_status $bloom_zone" always;

        location / {
            bloom_reject absent $arg_id zone=ids;

            location /ssi/ { ssi on; }
            location /addition/ {
                add_after_body /part;
                addition_types *;
            }
            location /mirror/ {
                mirror /mirrored;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
            location /auth/ {
                auth_request /auth-part?id=none;
                proxy_pass http://127.0.0.1:%%PORT_8081%%;
            }
        }
        location /part {
            bloom_reject absent $arg_id zone=ids;
            bloom_reject absent static zone=ids;
            bloom_route absent static zone=bad to=@elsewhere;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/part;
        }
        location @elsewhere { return 500; }
        location /mirrored {
            bloom_reject absent static zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8085%%;
        }
        location /auth-part {
            bloom_reject absent static zone=ids status=401;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location / { return 200 "backend $request_uri"; }
    }
}
CONF

$t->write_file('html/dry/index/final.html', 'index');
$t->write_file('html/ssi/page.html',
    'head <!--# include virtual="/part?id=none" --> '
    . '<!--# include virtual="/part?id=one" --> tail');
$t->write_file('html/addition/page.html', 'page ');
$t->write_file('html/index.html', 'index');

my $mirrored = $t->backend(8085, 'mirrored');

$t->run;


# An answer as "status $bloom_status $bloom_zone", and how many lines about
# rules that fired it left in the log.

sub outcome {
    my ($path, %option) = @_;

    my $mark = $t->log_mark;
    my $r = $t->get($path, %option);
    my $lines = () = $t->log_since($mark)
                     =~ /(?:rejecting|routing|passing) request/g;

    return $r->status . ' ' . ($r->header('X-Bloom') // '') . " $lines";
}


sub body {
    my ($path, %option) = @_;

    return $t->get($path, %option)->body;
}


subtest 'one list, several passes' => sub {
    is(outcome('/?id=none'), '404 REJECTED ids 1', 'no redirect');
    is(outcome('/?id=one'), '200 PASSED ids 0', 'index');

    for my $how (qw(try error rewrite named several index/)) {
        is(outcome("/dry/$how?id=none"), '200 REJECTED_DRY_RUN ids 1', $how);
        is(outcome("/dry/$how?id=one"), '200 PASSED ids 0', "$how, passing");
    }

    is(body('/dry/several?id=none'), 'index', 'after three redirects');
};


subtest 'routes' => sub {
    my @to = (port => 8082);

    is(outcome('/?id=none', @to), '200 ROUTED ids 1',
       'to a location that inherits the same rule');
    is(body('/?id=none', @to), 'backend /confirm?id=none', 'and there');
    is(outcome('/self?id=none', @to), '404 ROUTED ids 1', 'to itself');
    is(outcome('/ping?id=none', @to), '404 ROUTED ids 2', 'in a circle');
    is(outcome('/?id=one', @to), '200 PASSED ids 0', 'nowhere');
};


subtest 'the rules of a target' => sub {
    my @to = (port => 8082);

    is(outcome('/named?id=none', @to), '403 REJECTED bad 2', 'one fires');
    is(outcome('/named?id=new', @to), '200 ROUTED ids 1',
       'none fires: the request stays routed');
    is(body('/named?id=new', @to), 'backend /named?id=new', 'and passes');
    is(outcome('/chain?id=none', @to), '451 REJECTED bad 3', 'on and on');
    is(outcome('/chain?id=new', @to), '200 ROUTED ids 1', 'or not');
    is(outcome('/moves?id=none', @to), '403 REJECTED bad 2',
       'after a rewrite in between');
};


subtest 'what has been decided' => sub {
    my @to = (port => 8083);

    is(outcome('/rejected?id=none', @to), '404 REJECTED ids 1',
       'a rejection, before a page with rules');
    is(body('/rejected?id=none', @to), 'backend /sorry?id=none',
       'which serves');
    is(outcome('/rejected-named?id=none', @to), '404 REJECTED ids 1',
       'the same by name');
    is(outcome('/passed?id=none', @to), '200 PASSED ids 0', 'a pass');
    is(outcome('/unfired?id=none', @to), '410 REJECTED bad 1',
       'no decision yet: the next list is evaluated');
    is(outcome('/unlisted?id=none', @to), '410 REJECTED bad 1',
       'likewise where nothing was checked before');
    is(outcome('/unlisted?id=one', @to), '200 PASSED bad 0', 'and passes');
};


subtest 'subrequests' => sub {
    my @to = (port => 8084);

    is(outcome('/ssi/page.html?id=one', @to), '200 PASSED ids 0',
       'SSI: the page is decided about');
    is(body('/ssi/page.html?id=one', @to),
       'head backend /part?id=none backend /part?id=one tail',
       'its parts are not');
    is(outcome('/ssi/page.html?id=none', @to), '404 REJECTED ids 1',
       'or it is rejected');

    is(outcome('/addition/page.html?id=one', @to), '200 PASSED ids 0',
       'addition');
    is(body('/addition/page.html?id=one', @to), 'page backend /part',
       'what is added is not checked');

    is(outcome('/auth/?id=one', @to), '200 PASSED ids 0', 'auth_request');
    is(outcome('/auth/?id=none', @to), '404 REJECTED ids 1',
       'the check of the request comes before it');

    is(outcome('/mirror/?id=none', @to), '404 REJECTED ids 1',
       'a rejected request is not mirrored');
    is(outcome('/mirror/?id=one', @to), '200 PASSED ids 0',
       'and one that passes');
    ok(wait_until(sub { $mirrored->requests }), 'is mirrored');
    is(join(' ', map { $_->{uri} } $mirrored->requests), '/mirrored?id=one',
       'alone, and its mirror is not checked');
};


subtest 'requests of one connection' => sub {
    my @ids = (qw(one none one), '', qw(none none one));
    my @r = $t->pipeline(map { $_ eq '' ? '/' : "/?id=$_" } @ids);

    is(join(', ', map { $_->status . ' ' . ($_->header('X-Bloom') // '') } @r),
       '200 PASSED ids, 404 REJECTED ids, 200 PASSED ids, 200 , '
       . '404 REJECTED ids, 404 REJECTED ids, 200 PASSED ids',
       'each is decided alone');

    my $c = $t->connect(8082);
    my @got = map {
        $c->send($t->request_text(GET => "/named?id=$_", keepalive => 1));
        my $r = $c->response;
        $r->status . ' ' . $r->header('X-Bloom');
    } qw(none one new none);
    $c->close;

    is(join(', ', @got), '403 REJECTED bad, 200 PASSED ids, 200 ROUTED ids, '
       . '403 REJECTED bad', 'also after routes');
};


done_testing;
