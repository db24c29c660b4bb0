#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that a request is decided once: internal redirects, named locations,
# error pages and subrequests do not evaluate the same rules again.  The rules
# of a route's target are evaluated.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

# A rule that fires logs one line.  In a dry run the request goes on, so a rule
# that is evaluated twice logs two lines.

configure_rules($t, { ids => ['one'], bad => ['evil', 'none'] },
                <<'CONF', backend => 8081);

    # the locations inherit the rules of the server

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

    # the rules route requests

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

    # locations with rules that requests reach after a decision

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

    # the requests have subrequests

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
CONF

$t->write_file('html/dry/index/final.html', 'index');
$t->write_file('html/ssi/page.html',
    'head <!--# include virtual="/part?id=none" --> '
    . '<!--# include virtual="/part?id=one" --> tail');
$t->write_file('html/addition/page.html', 'page ');
$t->write_file('html/index.html', 'index');

my $mirrored = $t->backend(8085, 'mirrored');

$t->run;


# Requests a path and returns the status of the response, $bloom_status,
# $bloom_zone, and how many rules that fired the request left in the log.

sub outcome_and_lines {
    my ($path, %option) = @_;

    my $mark = $t->log_mark;
    my $outcome = outcome($t, $path, %option);
    my $lines = () = $t->log_since($mark)
                     =~ /(?:rejecting|routing|passing) request/g;

    return "$outcome $lines";
}


sub body {
    my ($path, %option) = @_;

    return $t->get($path, %option)->body;
}


subtest 'redirects do not evaluate inherited rules again' => sub {
    is(outcome_and_lines('/?id=none'), '404 REJECTED ids 1',
       'a request is rejected once without a redirect');
    is(outcome_and_lines('/?id=one'), '200 PASSED ids 0',
       'a request is passed once when index redirects it');

    for my $how (qw(try error rewrite named several index/)) {
        is(outcome_and_lines("/dry/$how?id=none"),
           '200 REJECTED_DRY_RUN ids 1',
           "a rule fires once for the redirects of /dry/$how");
        is(outcome_and_lines("/dry/$how?id=one"), '200 PASSED ids 0',
           "a request is passed through the redirects of /dry/$how");
    }

    is(body('/dry/several?id=none'), 'index',
       'a request is answered after three redirects');
};


subtest 'a route does not evaluate the same rule again' => sub {
    my @to = (port => 8082);

    is(outcome_and_lines('/?id=none', @to), '200 ROUTED ids 1',
       'a rule routes a request once to a location that inherits the rule');
    is(body('/?id=none', @to), 'backend /confirm?id=none',
       'a routed request is answered by the target location');
    is(outcome_and_lines('/self?id=none', @to), '404 ROUTED ids 1',
       'a rule that routes to its own location fires once');
    is(outcome_and_lines('/ping?id=none', @to), '404 ROUTED ids 2',
       'two rules that route to each other fire once each');
    is(outcome_and_lines('/?id=one', @to), '200 PASSED ids 0',
       'a request for a present key is not routed');
};


subtest 'the rules of a target are evaluated' => sub {
    my @to = (port => 8082);

    is(outcome_and_lines('/named?id=none', @to), '403 REJECTED bad 2',
       'a rule of the target rejects a routed request');
    is(outcome_and_lines('/named?id=new', @to), '200 ROUTED ids 1',
       'a request stays routed when no rule of the target fires');
    is(body('/named?id=new', @to), 'backend /named?id=new',
       'a request that the target passes reaches the backend');
    is(outcome_and_lines('/chain?id=none', @to), '451 REJECTED bad 3',
       'a rule of a second target rejects a request that is routed twice');
    is(outcome_and_lines('/chain?id=new', @to), '200 ROUTED ids 1',
       'a request that the first target passes is not routed twice');
    is(outcome_and_lines('/moves?id=none', @to), '403 REJECTED bad 2',
       'a rule rejects a routed request after a rewrite of the target');
};


subtest 'a decided request is not decided again' => sub {
    my @to = (port => 8083);

    is(outcome_and_lines('/rejected?id=none', @to), '404 REJECTED ids 1',
       'the rules of an error page do not change a rejection');
    is(body('/rejected?id=none', @to), 'backend /sorry?id=none',
       'a rejected request is answered with its error page');
    is(outcome_and_lines('/rejected-named?id=none', @to),
       '404 REJECTED ids 1',
       'the rules of a named error page do not change a rejection');
    is(outcome_and_lines('/passed?id=none', @to), '410 REJECTED bad 1',
       'a bloom_pass does not silence the rules of a later location');
    is(outcome_and_lines('/passed?id=other', @to), '200 PASSED bad 0',
       'the rules of a later location pass a request after a bloom_pass');
    is(outcome_and_lines('/unfired?id=none', @to), '410 REJECTED bad 1',
       'the rules of a later location are evaluated when none has fired');
    is(outcome_and_lines('/unlisted?id=none', @to), '410 REJECTED bad 1',
       'the rules of a later location reject a request not checked before');
    is(outcome_and_lines('/unlisted?id=one', @to), '200 PASSED bad 0',
       'the rules of a later location pass a request not checked before');
};


subtest 'subrequests are not checked' => sub {
    my @to = (port => 8084);

    is(outcome_and_lines('/ssi/page.html?id=one', @to), '200 PASSED ids 0',
       'a request for a page with SSI is checked');
    is(body('/ssi/page.html?id=one', @to),
       'head backend /part?id=none backend /part?id=one tail',
       'the parts of a page with SSI are not checked');
    is(outcome_and_lines('/ssi/page.html?id=none', @to),
       '404 REJECTED ids 1', 'a request for a page with SSI is rejected');

    is(outcome_and_lines('/addition/page.html?id=one', @to),
       '200 PASSED ids 0', 'a request for a page with an addition is checked');
    is(body('/addition/page.html?id=one', @to), 'page backend /part',
       'an addition to a page is not checked');

    is(outcome_and_lines('/auth/?id=one', @to), '200 PASSED ids 0',
       'the subrequest of auth_request is not checked');
    is(outcome_and_lines('/auth/?id=none', @to), '404 REJECTED ids 1',
       'a request is rejected before its auth_request');

    is(outcome_and_lines('/mirror/?id=none', @to), '404 REJECTED ids 1',
       'a request that would be mirrored is rejected');
    is(outcome_and_lines('/mirror/?id=one', @to), '200 PASSED ids 0',
       'a request that is mirrored is passed');
    ok(wait_until(sub { $mirrored->requests }), 'a passed request is mirrored');
    is(join(' ', map { $_->{uri} } $mirrored->requests), '/mirrored?id=one',
       'a rejected request is not mirrored and a mirror is not checked');
};


subtest 'each request of a connection is decided alone' => sub {
    my @ids = (qw(one none one), '', qw(none none one));
    my @r = $t->pipeline(map { $_ eq '' ? '/' : "/?id=$_" } @ids);

    is(join(', ', map { $_->status . ' ' . ($_->header('X-Bloom') // '') } @r),
       '200 PASSED ids, 404 REJECTED ids, 200 PASSED ids, 200 , '
       . '404 REJECTED ids, 404 REJECTED ids, 200 PASSED ids',
       'each pipelined request has its own outcome');

    my $c = $t->connect(8082);
    my @got = map {
        $c->send($t->request_text(GET => "/named?id=$_", keepalive => 1));
        my $r = $c->response;
        $r->status . ' ' . $r->header('X-Bloom');
    } qw(none one new none);
    $c->close;

    is(join(', ', @got), '403 REJECTED bad, 200 PASSED ids, 200 ROUTED ids, '
       . '403 REJECTED bad',
       'each request of a connection has its own outcome after routes');
};


done_testing;
