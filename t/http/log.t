#!/usr/bin/perl

# The line in the error log about a request that is rejected or routed: its
# level, its words, and that no key can spoil the log.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    large_client_header_buffers 4 64k;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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
}
CONF

$t->run;


# What a request left in the log about a decision.

sub logged {
    my ($path, @options) = @_;

    my $mark = $t->log_mark;
    $t->get($path, @options);

    return join "\n", grep { / (?:rejecting|routing|passing) request/ }
                           split /\n/, $t->log_since($mark);
}


sub key {
    return (logged(@_) =~ / request: key "(.*)" absent from /s)[0] // 'no line';
}


subtest 'words' => sub {
    my ($line) = logged('/x?id=none') =~ / \[info\] .*: \*\d+ (.*)/;
    is($line, 'rejecting request: key "none" absent from bloom zone "ids",'
              . ' client: 127.0.0.1, server: log.example,'
              . ' request: "GET /x?id=none HTTP/1.1", host: "localhost"',
       'rejecting what is absent');
    like(logged('/present?id=one'),
         qr/rejecting request: key "one" maybe present in bloom zone "ids",/,
         'rejecting what is present');
    like(logged('/route?id=none'),
         qr/ routing request: key "none" absent from bloom zone "ids", /,
         'routing');

    is(logged('/pass?id=none'), '', 'passing is not logged');
    is(logged('/x?id=one'), '', 'nor is what no rule fires on');
    is(logged('/x'), '', 'nor what is not checked');
};


subtest 'level' => sub {
    for my $level (qw(info notice warn error)) {
        like(logged("/$level?id=none"), qr/ \[$level\] .* rejecting /, $level);
    }

    like(logged('/?id=none'), qr/ \[info\] /, 'info by default');
    like(logged('/notice/inner?id=none'), qr/ \[notice\] /, 'inherited');
    like(logged('/notice/error?id=none'), qr/ \[error\] /, 'or not');
    is(logged('/quiet/info?id=none'), '', 'below what is logged');
    like(logged('/quiet/notice?id=none'), qr/ \[notice\] /, 'and above');
};


subtest 'hostile keys' => sub {
    my $mark = $t->log_mark;

    my @expected = (
        ['a%0ab', 'a\x0Ab', 'newline'],
        ['a%0d%0a2020/01/01%20%5Berror%5d%201', 'a\x0D\x0A2020/01/01 [error] 1',
         'a forged line'],
        ['%00', '\x00', 'NUL'],
        ['%1b[31m', '\x1B[31m', 'escape sequence'],
        ['%22%5c', '\x22\x5C', 'quote and backslash'],
        ['%7f%80%ff', '\x7F\x80\xFF', 'DEL and above'],
        ['~%7e', '~~', 'the last that is printed'],
        ['%1f%20%21', '\x1F !', 'the first'],
        ['%25s%25n', '%s%n', 'a format'],
    );

    for (@expected) {
        my ($sent, $shown, $what) = @$_;
        is(key("/decoded?id=$sent"), $shown, $what);
    }

    is(key('/header', headers => { 'X-Key' => "t\tu\x80\xc3\xa9" }),
       't\x09u\x80\xC3\xA9', 'raw bytes of a header');

    unlike($t->log_since($mark), qr/[^\x20-\x7e\n]/,
           'nothing but printable ASCII in the log');
};


subtest 'long keys' => sub {
    my %key = (255 => '', 256 => '', 257 => '...', 30_000 => '...');

    for my $length (sort { $a <=> $b } keys %key) {
        my $shown = $length > 256 ? 256 : $length;

        is(key('/header', headers => { 'X-Key' => 'k' x $length }),
           'k' x $shown . $key{$length}, "$length bytes");
    }

    is(key('/header', headers => { 'X-Key' => "\xff" x 300 }),
       '\xFF' x 256 . '...', '300 bytes that are escaped');
    like(logged('/header', headers => { 'X-Key' => "\xff" x 300 }),
         qr/ absent from bloom zone "ids", client: .* host: /,
         'and the rest of the line');
};


done_testing;
