#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the line that a rejected or routed request leaves in the error log: its
# text, its level, and that it escapes and truncates keys.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

configure_rules($t, { ids => ['one'] }, <<'CONF');
    large_client_header_buffers 4 64k;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        server_name log.example;
        bloom_reject absent $arg_id zone=ids;

        location / { }
        location /route {
            bloom_route absent $arg_id zone=ids to=@routed;
        }
        location /present { bloom_reject present $arg_id zone=ids; }
        location /pass { bloom_pass absent $arg_id zone=ids; }
        location @routed { return 200 "routed"; }

        location /info { bloom_log_level info; }
        location /notice {
            bloom_log_level notice;
            location /notice/inner { }
            location /notice/error { bloom_log_level error; }
        }
        location /warn { bloom_log_level warn; }
        location /error { bloom_log_level error; }

        location /quiet {
            error_log %%TESTDIR%%/error.log notice;
            location /quiet/info { bloom_log_level info; }
            location /quiet/notice { bloom_log_level notice; }
        }

        location /header { bloom_reject absent $http_x_key zone=ids; }
        location /decoded {
            bloom_reject absent $arg_id zone=ids decode=uri;
        }
    }
CONF

$t->run;


# Returns the lines that a request leaves in the error log about a decision.

sub logged {
    my ($path, @options) = @_;

    my $mark = $t->log_mark;
    $t->get($path, @options);

    return join "\n", grep { / (?:rejecting|routing|passing) request/ }
                           split /\n/, $t->log_since($mark);
}


# Returns the key as it is shown in such a line.

sub key {
    return (logged(@_) =~ / request: key "(.*)" absent from /s)[0] // 'no line';
}


subtest 'the line names the decision, the key and the zone' => sub {
    my ($line) = logged('/x?id=none') =~ / \[info\] .*: \*\d+ (.*)/;

    # nginx appends the part from "client" on; Angie quotes all of its values

    (my $unified = $line // '') =~ s/: ([^" ][^ ,]*)(?=, )/: "$1"/g;
    $unified =~ s/ request_line: / request: /;
    is($unified, 'rejecting request: key "none" absent from bloom zone "ids",'
                 . ' client: "127.0.0.1", server: "log.example",'
                 . ' request: "GET /x?id=none HTTP/1.1", host: "localhost"',
       'the log says that a request for an absent key is rejected');
    like(logged('/present?id=one'),
         qr/rejecting request: key "one" maybe present in bloom zone "ids",/,
         'the log says that a request for a present key is rejected');
    like(logged('/route?id=none'),
         qr/ routing request: key "none" absent from bloom zone "ids", /,
         'the log says that a request for an absent key is routed');

    is(logged('/pass?id=none'), '', 'a bloom_pass that fires logs nothing');
    is(logged('/x?id=one'), '', 'a rule that does not fire logs nothing');
    is(logged('/x'), '', 'a request without a key logs nothing');
};


subtest 'bloom_log_level sets the level of the line' => sub {
    for my $level (qw(info notice warn error)) {
        like(logged("/$level?id=none"), qr/ \[$level\] .* rejecting /,
             "bloom_log_level $level logs at level $level");
    }

    like(logged('/?id=none'), qr/ \[info\] /, 'the default level is info');
    like(logged('/notice/inner?id=none'), qr/ \[notice\] /,
         'a location inherits the level');
    like(logged('/notice/error?id=none'), qr/ \[error\] /,
         'a location overrides the inherited level');
    is(logged('/quiet/info?id=none'), '',
       'a line below the level of error_log is not logged');
    like(logged('/quiet/notice?id=none'), qr/ \[notice\] /,
         'a line at the level of error_log is logged');
};


subtest 'the log escapes bytes that are not printable' => sub {
    my $mark = $t->log_mark;

    my @expected = (
        ['a%0ab', 'a\x0Ab', 'a newline'],
        ['a%0d%0a2020/01/01%20%5Berror%5d%201', 'a\x0D\x0A2020/01/01 [error] 1',
         'a forged line'],
        ['%00', '\x00', 'a NUL'],
        ['%1b[31m', '\x1B[31m', 'a terminal escape sequence'],
        ['%22%5c', '\x22\x5C', 'a quote and a backslash'],
        ['%7f%80%ff', '\x7F\x80\xFF', 'DEL and higher bytes'],
        ['~%7e', '~~', 'the last printable byte'],
        ['%1f%20%21', '\x1F !', 'the first printable bytes'],
        ['%25s%25n', '%s%n', 'a format string'],
    );

    for (@expected) {
        my ($sent, $shown, $what) = @$_;
        is(key("/decoded?id=$sent"), $shown,
           "the log shows a key with $what as $shown");
    }

    is(key('/header', headers => { 'X-Key' => "t\tu\x80\xc3\xa9" }),
       't\x09u\x80\xC3\xA9', 'the log escapes raw bytes of a header');

    unlike($t->log_since($mark), qr/[^\x20-\x7e\n]/,
           'the log has only printable ASCII');
};


subtest 'the log truncates keys to 256 bytes' => sub {
    my %key = (255 => '', 256 => '', 257 => '...', 30_000 => '...');

    for my $length (sort { $a <=> $b } keys %key) {
        my $shown = $length > 256 ? 256 : $length;

        is(key('/header', headers => { 'X-Key' => 'k' x $length }),
           'k' x $shown . $key{$length},
           "the log shows $shown bytes of a key of $length bytes");
    }

    is(key('/header', headers => { 'X-Key' => "\xff" x 300 }),
       '\xFF' x 256 . '...',
       'the log shows 256 bytes of a key of 300 bytes that are escaped');
    like(logged('/header', headers => { 'X-Key' => "\xff" x 300 }),
         qr/ absent from bloom zone "ids", client: .* host: /,
         'the line of a truncated key is complete');
};


done_testing;
