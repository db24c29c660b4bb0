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
# that is evaluated twice logs two lines.  PASS asks the backend.

my $pass = 'proxy_pass http://127.0.0.1:%%PORT_8081%%;';

configure_rules($t, { ids => ['one'], bad => ['evil', 'none'] },
                <<'CONF' =~ s/PASS/$pass/gr, backend => 8081);

    # the locations inherit the rules of the server

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root %%TESTDIR%%/html;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_reject absent $arg_id zone=ids;

        location / { }

        location /dry/ {
            bloom_dry_run on;

            location /dry/try { try_files /none /none/ /dry/final?$args; }
            location /dry/error { error_page 404 =200 /dry/final?$args; }
            location /dry/rewrite { rewrite ^ /dry/final last; }
            location /dry/named { try_files /none @final; }
            location /dry/several { error_page 404 = @again; }
            location /dry/final { PASS }
            location /dry/index/ { index final.html; }
        }
        location @final { PASS }
        location @again { try_files /none /none/ /dry/index/?$args; }
    }

    # the rules route requests

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_route absent $arg_id zone=ids to=/confirm?$args;

        location / { PASS }
        location /self { bloom_route absent $arg_id zone=ids to=/self?$args; }
        location /ping { bloom_route absent $arg_id zone=ids to=/pong?$args; }
        location /pong { bloom_route absent $arg_id zone=ids to=/ping?$args; }
        location /named { bloom_route absent $arg_id zone=ids to=@list; PASS }
        location @list { bloom_reject present $arg_id zone=bad; PASS }
        location /chain { bloom_route absent $arg_id zone=ids to=@first; }
        location @first {
            bloom_route present $arg_id zone=bad to=@second; PASS
        }
        location @second {
            bloom_reject absent $arg_other zone=ids;
            bloom_reject present $arg_id zone=bad status=451;
        }
        location /moves { bloom_route absent $arg_id zone=ids to=@moves; }
        location @moves { rewrite ^ /list last; }
        location /list { bloom_reject present $arg_id zone=bad; PASS }
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
            bloom_reject present $arg_id zone=bad status=410; PASS
        }
        location @sorry {
            bloom_reject present $arg_id zone=bad status=410; PASS
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
            location /addition/ { add_after_body /part; addition_types *; }
            location /mirror/ { mirror /mirrored; PASS }
            location /auth/ { auth_request /auth-part?id=none; PASS }
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
            bloom_reject absent static zone=ids status=401; PASS
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


# Tests a table of outcomes with the number of rules that fired, each of which
# leaves a line in the log.

sub decided {
    my ($port, $table) = @_;

    for my $row (split /\n/, $table) {
        my ($path, $expected, $lines, $why) = split /\s{2,}/, $row, 4;
        my $mark = $t->log_mark;

        outcomes_are($t, "$path  $expected  $why", port => $port);
        is(scalar(() = $t->log_since($mark)
                       =~ /(?:rejecting|routing|passing) request/g),
           $lines, "rules that fire for $path: $lines");
    }
}


subtest 'redirects do not evaluate inherited rules again' => sub {
    my @how = qw(try error rewrite named several index/);
    my $redirects = join '', map { <<"END" } @how;
/dry/$_?id=none  200 REJECTED_DRY_RUN ids  1  a rule fires once
/dry/$_?id=one  200 PASSED ids  0  a request is passed
END

    decided(8080, $redirects . <<'END');
/?id=none             404 REJECTED ids          1  without a redirect
/?id=one              200 PASSED ids            0  index redirects it
/dry/several?id=none  "index"                   1  after three redirects
END
};


subtest 'a route does not evaluate the same rule again' => sub {
    decided(8082, <<'END');
/?id=none     200 ROUTED ids                1  the target inherits the rule
/?id=none     "backend /confirm?id=none"    1  the target answers
/self?id=none  404 ROUTED ids               1  a rule routes to its own location
/ping?id=none  404 ROUTED ids               2  two rules route to each other
/?id=one      200 PASSED ids                0  a present key is not routed
END
};


subtest 'the rules of a target are evaluated' => sub {
    decided(8082, <<'END');
/named?id=none  403 REJECTED bad          2  the target rejects
/named?id=new   200 ROUTED ids            1  no rule of the target fires
/named?id=new   "backend /named?id=new"   1  the target passes
/chain?id=none  451 REJECTED bad          3  a second target rejects
/chain?id=new   200 ROUTED ids            1  the first target does not route
/moves?id=none  403 REJECTED bad          2  after a rewrite of the target
END
};


subtest 'a decided request is not decided again' => sub {
    decided(8083, <<'END');
/rejected?id=none        404 REJECTED ids          1  by its error page
/rejected?id=none        "backend /sorry?id=none"  1  its error page answers
/rejected-named?id=none  404 REJECTED ids          1  by a named error page
/passed?id=none    410 REJECTED bad  1  a bloom_pass silences no later rule
/passed?id=other   200 PASSED bad    0  later rules pass it after a bloom_pass
/unfired?id=none   410 REJECTED bad  1  later rules run if none has fired
/unlisted?id=none  410 REJECTED bad  1  later rules reject what was not checked
/unlisted?id=one   200 PASSED bad    0  later rules pass what was not checked
END
};


subtest 'subrequests are not checked' => sub {
    decided(8084, <<'END');
/ssi/page.html?id=one   200 PASSED ids    0  a page with SSI is checked
/ssi/page.html?id=none  404 REJECTED ids  1  a page with SSI is checked
/addition/page.html?id=one  200 PASSED ids    0  a page with an addition
/addition/page.html?id=one  "page backend /part"  0  an addition
/auth/?id=one           200 PASSED ids    0  the request of auth_request
/auth/?id=none          404 REJECTED ids  1  before auth_request
/mirror/?id=none        404 REJECTED ids  1  before mirror
/mirror/?id=one         200 PASSED ids    0  a request that is mirrored
END
    is($t->get('/ssi/page.html?id=one', port => 8084)->body,
       'head backend /part?id=none backend /part?id=one tail',
       'the parts of a page with SSI are not checked');
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
