# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Scene;

# Runs nginx with zones of every kind, in a good state or on a bad day, for
# tests and pictures of the page.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use POSIX ();

use BloomTest::Api;
use BloomTest::Zones;

our @EXPORT = qw(scene bad_day worsen repair browse);

my $page = abs_path(dirname(__FILE__) . '/../../../dashboard');


# The endpoint is at /bloom/, at /bare without a slash at its end, at /reading/
# without writing, and at /proxied/deep/ behind a proxy.
#
# GET /item?id=ID rejects keys that zone "items" lacks, and so does GET
# /except?id=ID, which excepts false positives, such as the key "gone" of the image,
# of which the key "chosen" is an exception.
# GET /go?url=URL rejects keys that zone "bad-urls" has, and GET /seen?k=KEY asks
# zone "seen".  On a bad day GET
# /token?id=ID and GET /customer?id=ID reject keys that zones "tokens" and
# "customers" lack, and GET /lost?id=ID audits those that zone "leaked" lacks.
# The backend has all IDs that begin with "id", or with "t" and a digit.

sub scene {
    my ($t, @more) = @_;

    my $good = $t->write_file('good.txt', "chosen\n");

    $t->build_image('items.bloom',
                    ['gone', 'chosen', map { "id$_" } 1 .. 61_999],
                    '-n', '100k', '-p', '0.001',
                    '--except-wins', '--except', $good,
                    '--as-of', time_of(time - 2 * 3600));
    $t->build_image('urls.bloom',
                    ['http://evil.example/', 'http://phish.example/login',
                     map { "http://host$_.example/" } 1 .. 9_000],
                    '-n', '10k', '-p', '1e-6', '--form', 'url',
                    '--hash', 'siphash', '--as-of', time_of(time - 1200));

    my $more = join "\n", map { "bloom_zone $_;" } @more;
    my $bad = @more == 0 ? '' : <<'CONF';
        location /token {
            bloom_reject absent $arg_id zone=tokens;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /customer {
            bloom_reject absent $arg_id zone=customers;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /lost {
            bloom_audit 100%;
            bloom_reject absent $arg_id zone=leaked;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
worker_processes 2;
events { }
http {
%%TEST_GLOBALS_HTTP%%
    access_log off;
    bloom_log_level info;
    bloom_zone zone=items file=items.bloom;
    bloom_zone zone=bad-urls file=urls.bloom label=URLhaus;
    bloom_zone zone=seen capacity=50k fpr=0.01 layout=classic journal=off;
    $more
    bloom_lookup \$arg_k \$seen zone=seen;
    map \$request_method \$reads { GET 1; HEAD 1; }
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        bloom_feedback 404;
$bad
        location /item {
            bloom_reject absent \$arg_id zone=items;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /except {
            bloom_feedback 404 except=on after=1s;
            bloom_reject absent \$arg_id zone=items;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /go {
            bloom_reject present \$arg_url zone=bad-urls decode=uri
                         if=\$reads;
            try_files /none =204;
        }
        location /seen { return 200 "\$seen"; }
        location /bloom/ { client_max_body_size 0; bloom_api write=on; }
        location /bare { bloom_api write=on; }
        location /reading/ { bloom_api; }
        location /proxied/deep/ {
            proxy_pass http://127.0.0.1:%%PORT_8080%%/bloom/;
            proxy_set_header Host \$http_host;
        }
    }
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location / {
            if (\$arg_id ~ ^(id|t[0-9])) {
                return 204;
            }
            return 404;
        }
    }
}
CONF
}


# Returns the zones of a bad day for scene().  The image of "customers" is too
# old. Once nginx runs, worsen() does the rest: "tokens" gets far too many keys,
# "leaked" lacks keys that the backend has and refuses an image, "grown" gets four
# layers, the last of which has the key "new", and "recent", whose keys expire,
# gets as many as fill two slices and a part of a third.

sub bad_day {
    my ($t) = @_;

    $t->build_image('old.bloom', [map { "id$_" } 1 .. 1000], '--as-of',
                    time_of(time - 30 * 3600));
    repair($t);

    return ('zone=customers file=old.bloom max_age=24h',
            'zone=tokens capacity=1k fpr=0.001',
            'zone=leaked file=leaked.bloom',
            'zone=grown capacity=100 fpr=0.001 max_keys=3k',
            'zone=recent capacity=20k fpr=0.001 expire=24h');
}


sub worsen {
    my ($t) = @_;

    add($t, 'tokens', [map { "token$_" } 1 .. 2600]);
    add($t, 'grown', [map { "key$_" } 1 .. 2000]);
    add($t, 'grown', ['new']);
    add($t, 'recent', [map { "r$_" } 1 .. 6000]);

    $t->get("/token?id=none$_") for 1 .. 400;
    $t->get("/lost?id=id$_") for 1 .. 3;

    # a new file in place of the old one, with a wrong byte

    my $image = $t->build_image('torn.bloom', [map { "t$_" } 1 .. 2000]);
    flip($image, -1);
    rename $image, $t->testdir . '/leaked.bloom' or die "rename: $!";

    my $refused = api($t, POST => 'zones/leaked/reload');
    $refused->status == 422 or die "a torn image is not refused:\n$refused";
}


# Puts an undamaged image back, which nginx needs to start.

sub repair {
    my ($t) = @_;

    return $t->build_image('leaked.bloom', [map { "t$_" } 1 .. 1000]);
}


# Runs a script of dashboard/test/ with the address of nginx and arguments.
# Calls `line` with each line that the script prints, and sends what that
# returns to the script, if anything.  Returns the exit status.

sub browse {
    my ($t, $script, $line, @arguments) = @_;

    -d "$page/node_modules/playwright-core"
        or die 'the packages of dashboard/ are not installed;'
               . " run: make dashboard-packages\n";

    pipe my $from_page, my $to_us or die "pipe: $!";
    pipe my $from_us, my $to_page or die "pipe: $!";

    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDIN, '<&', $from_us or POSIX::_exit(126);
        open STDOUT, '>&', $to_us or POSIX::_exit(126);
        close $_ for $from_page, $to_us, $from_us, $to_page;

        exec 'node', "$page/test/$script",
             'http://127.0.0.1:' . $t->port(8080), @arguments
            or POSIX::_exit(127);
    }

    close $_ for $to_us, $from_us;
    $to_page->autoflush(1);

    while (defined(my $said = <$from_page>)) {
        chomp $said;
        my $answer = $line->($said);
        print $to_page "$answer\n" if defined $answer;
    }

    waitpid $pid, 0;

    return $? >> 8 || $?;
}


sub time_of {
    my ($time) = @_;

    return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $time);
}


1;
