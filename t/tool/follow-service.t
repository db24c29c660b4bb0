#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what `ngx-bloom follow` shows on a terminal and tells systemd, and that the
# module links none of the libraries that the tool needs for it.

use strict;
use warnings;

use FindBin;
use IO::Select;
use IO::Socket::UNIX;
use Socket qw(SOCK_DGRAM);

use BloomTest;
use BloomTest::Follow qw(follow redis redis_server redis_stop stop_follow);
use BloomTest::Ledger;
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Tool qw(tool_path tool_test);

my $t = tool_test();
my $dir = $t->testdir;
my $tool = tool_path();
my $redis = redis_server($t, 6379);
my $zone = BloomTest::Ledger->new($t, 8081);

redis($redis, 'XADD', 's', '1-0', 'add', 'a', 'add', 'b');


subtest 'the terminal has a progress line and lines' => sub {
    plan(skip_all => 'script(1) is not installed')
        if system('command -v script > /dev/null') != 0;

    my $pid = spawn(['script', '-qefc',
                     "'$tool' follow --from beginning --stream s --source ids"
                     . " --zone '" . $zone->url . "' $redis->{url}",
                     "$dir/terminal"]);
    my $shown = sub { return eval { $t->read_file('terminal') } // '' };

    ok(wait_until(sub {
        $shown->() =~ m{\r1 of 1 zone up to date, 0 failing, 2 changes sent, 0 invalid, \S+(?: k)?/s\e\[K};
    }), 'the progress line has the zones, the changes and the rate')
        or diag $shown->();
    like($shown->(), qr/^(?:\r\e\[K)?ngx-bloom follow: \S+: the zone is at 0\r?$/m,
         'an event is a line');
    unlike($shown->(), qr/"event"/, 'which is not JSON');

    redis_stop($redis);
    ok(wait_until(sub { $shown->() =~ /\r0 of 1 zone up to date, 1 failing/ }),
       'a failure shows in the progress line') or diag $shown->();
    $redis = redis_server($t, 6379);

    kill 'TERM', $pid;
    wait_until(sub { waitpid($pid, 1) == $pid });
};


subtest 'systemd is told of the start, the state and the end' => sub {
    my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM,
                                       Local => "$dir/notify")
        or die "socket: $!";
    my @told;

    my $hears = sub {
        my ($what) = @_;

        return wait_until(sub {
            while (IO::Select->new($socket)->can_read(0)) {
                $socket->recv(my $text, 4096);
                push @told, $text;
            }
            return grep { $_ =~ $what } @told;
        });
    };

    $zone->set(position => '0', changes => []);
    redis($redis, 'XADD', 's', '2-0', 'add', 'a');

    my $follower = follow($t, '--from', 'beginning', '--zone', $zone->url,
                          $redis->{url}, { NOTIFY_SOCKET => "$dir/notify" });

    ok($hears->(qr/^STATUS=1 of 1 zone up to date, 0 failing$/),
       'the state says how many zones are up to date') or diag "@told";
    is($told[0], 'READY=1', 'the first message is that it is ready');

    is((stop_follow($follower))[0], 0, 'SIGTERM ends it with 0');
    ok($hears->(qr/^STOPPING=1$/), 'it says that it stops') or diag "@told";
    is($told[-1], 'STOPPING=1', 'which is the last message');
};


subtest 'the module needs no client library' => sub {
    my $module = $ENV{TEST_NGINX_MODULE}
                 // "$FindBin::Bin/../../build/ngx_http_bloom_module.so";
    my $binary = $ENV{TEST_NGINX_BINARY} // '/usr/sbin/nginx';

    # where the module is linked into nginx, the libraries are nginx's

    my ($exit, $out) = run_command(
        ['readelf', '-d', $module ne '' ? $module : $binary]);
    is($exit, 0, 'readelf reads the module');

    my @needed = $out =~ /\(NEEDED\).*\[(.*?)\]/g;
    ok((grep { /^libc\.so/ } @needed), 'it lists the libraries of the module');
    is_deeply([grep { /curl|redis/ } @needed], [],
              'none of them is for requests or for Redis')
        or diag "@needed";

    (undef, $out) = run_command(['readelf', '-d', $tool]);
    like($out, qr/\(NEEDED\).*libcurl.*\(NEEDED\).*libhiredis/s,
         'which the tool has');
};


$zone->kill;
redis_stop($redis);
done_testing;
