#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Internationalised hosts, which cost most of all keys, take a worker about a
# millisecond at a time: a list in a header takes a bounded number of
# instructions, and a request that tests many of them looks at the clock after
# each.  nginx runs under valgrind, which counts, so other work on the machine
# does not matter.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Process qw(spawn wait_until run_command alive);

# A little more than what a processor of today does in a millisecond.  Without a
# bound, the lists below took up to 200 million.

use constant MOST => 20_000_000;

use constant HEADER => 8000;                 # bytes of a list
use constant KEYS => 5000;

my $t = BloomTest->new(log_level => 'error');

-x '/usr/bin/callgrind_control'
    or plan(skip_all => 'valgrind is not installed; run: make deps');
$t->nginx_build !~ /fsanitize/
    or plan(skip_all => 'valgrind cannot run an nginx with sanitizers');
$t->nginx_build !~ /--coverage/
    or plan(skip_all => 'an nginx that counts what runs takes more instructions');

$t->build_image('hosts.bloom', ['evil.example'], '--form', 'host');

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
daemon off;
master_process off;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    access_log off;
    large_client_header_buffers 4 16k;

    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=new capacity=1k fpr=0.01 form=host;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location / {
            bloom_reject present $http_x_hosts zone=hosts split=,
                         invalid=pass;
            empty_gif;
        }
        location /bloom/ { bloom_api write=on; }
    }
}
CONF

my $profile = $t->testdir . '/callgrind';
my $pid = spawn(['valgrind', '--tool=callgrind',
                 '--toggle-collect=ngx_bloom_lookup_list_parts',
                 '--toggle-collect=ngx_http_bloom_body_read',
                 "--callgrind-out-file=$profile", $t->_command]);

wait_until(sub {
    IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port(8080));
}, 120) or die 'nginx does not start under valgrind';

my $dumps = 0;

# Returns the file of what was counted since the last call.

sub counted {
    my ($exit, undef, $err) = run_command(['callgrind_control', '-d', $pid]);
    $exit == 0 or die "callgrind_control failed: $err";

    my $file = "$profile." . ++$dumps;
    wait_until(sub { -s $file && `tail -n 1 \Q$file\E` =~ /^totals:/ }, 60)
        or die "callgrind did not write $file";

    return $file;
}

sub instructions { return (`tail -n 1 \Q$_[0]\E` =~ /^totals: (\d+)/)[0] }

# Returns how often a function was called.  A name has a number, with which later
# lines replace it.

sub calls {
    my ($file, $function) = @_;

    open my $lines, '<', $file or die "$file: $!";
    my ($number, $called, $calls) = ('', '', 0);

    while (my $line = <$lines>) {
        $number = $1 if $line =~ /=\((\d+)\) \Q$function\E(?:\@|$)/;
        $called = $1 if $line =~ /^cfn=\((\d+)\)/;
        $calls += $1 if $line =~ /^calls=(\d+)/ && $called eq $number;
    }

    return $calls;
}


# ---- lists ----

my %lists = (
    'U+FDFA, which becomes 18 characters' => "\xef\xb7\xba",
    'four of them'                        => "\xef\xb7\xba" x 4,
    'U+3316, which becomes six'           => "\xe3\x8c\x96",
    'nine of them'                        => "\xe3\x8c\x96" x 9,
    'twenty of them, too many'            => "\xe3\x8c\x96" x 20,
    'umlauts'                             => "\xc3\xbc",
    'long labels in upper case'           => "\xc3\x9c" x 40,
    'snowmen'                             => "\xe2\x98\x83" x 50,
    'joiners'      => "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe2\x98\x83" x 10,
);

$t->get('/', headers => ['X-Hosts' => "\xc3\xbc,evil.example"]);
cmp_ok(instructions(counted()), '>', 5000, 'the work of a list is counted');

for my $what (sort keys %lists) {
    my $list = substr "$lists{$what}," x HEADER, 0, HEADER;

    is($t->get('/', headers => ['X-Hosts' => $list])->status, 200,
       "$what: a request is served");

    my $count = instructions(counted());

    cmp_ok($count, '>', 20_000, "$what: the work is counted");
    cmp_ok($count, '<', MOST, "$what: the work of a list is bounded");
    note("$what: $count instructions");
}


# ---- a request with many keys ----

for (['internationalised', 'hosts/test', "\xc3\xbc.example"],
     ['long', 'hosts/test', "\xef\xb7\xba" x 4 . '.example'],
     ['snowmen', 'hosts/test', "\xe2\x98\x83" x 20 . '.example'],
     ['escaped', 'hosts/test', '%C3%BC.example'],
     ['added', 'new/keys', "\xc3\xbc.example"],
     ['other', 'hosts/test', 'u.example'])
{
    my ($what, $uri, $key) = @$_;

    is($t->request(POST => "/bloom/zones/$uri", body => "$key\n" x KEYS,
                   headers => ['Content-Type' => 'text/plain'])->status, 200,
       "$what keys: a request is served");

    my $file = counted();
    my $turns = calls($file, 'ngx_http_bloom_body_read');
    my $turn = instructions($file) / ($turns || 1);

    cmp_ok($turns, '>', $what eq 'other' ? 0 : 1,
           "$what keys: other requests have their turns");
    cmp_ok($turn, '<', MOST / 2, "$what keys: the work of a turn is bounded");
    note("$what keys: $turns turns of $turn instructions");
}

kill QUIT => $pid;
ok(wait_until(sub { !alive($pid) }, 60), 'nginx ends');

done_testing();
