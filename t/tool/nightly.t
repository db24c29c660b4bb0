#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests conf-examples/nightly: the script that rebuilds an image from a
# database, with a program in place of psql.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Jobs qw(job_path job_program text unsafe_directories);
use BloomTest::Process qw(run_command spawn wait_until);
use BloomTest::Zones;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $nightly = abs_path(dirname(__FILE__) . '/../../conf-examples/nightly');

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->write_file('html/index.html', '');
my $path = job_path($t);

# This psql prints the keys.  With a file "fails" it fails halfway, with a file
# "waits" it waits until that is gone.

job_program($t, 'psql', <<"SH");
case "\$*" in *'SELECT id FROM items'*) ;; *) exit 2 ;; esac
if [ -e '$dir/fails' ]; then
    head -n 500 '$dir/keys'
    echo 'psql: server closed the connection unexpectedly' >&2
    exit 3
fi
cat '$dir/keys'
touch '$dir/asked'
while [ -e '$dir/waits' ]; do sleep 0.05; done
SH

my %settings = (
    PATH => $path, TMPDIR => "$dir/tmp",
    SOURCE => 'psql -XAt -c "SELECT id FROM items"',
    IMAGE => "$dir/ids.bloom", BUILD_OPTIONS => '-p 1e-6 -n 5k',
);

sub settings {
    my (%more) = @_;

    return (%settings,
            ZONE_URL => 'http://127.0.0.1:' . $t->port(8080)
                        . '/bloom/zones/ids',
            %more);
}

# Runs the script and returns its exit status and what it prints.

sub rebuild {
    my (%more) = @_;

    my ($exit, $out, $err) = run_command(["$nightly/rebuild.sh"],
                                         env => { settings(%more) });

    return ($exit, "$out$err");
}

sub keys_are { $t->write_file('keys', text(@_)) }

# Tests that the script fails, says why and leaves everything as it was.

sub changes_nothing {
    my ($what, $message, %more) = @_;

    my $image = $t->read_file('ids.bloom');
    my $build = build_id($t, 'ids');
    my ($exit, $said) = rebuild(%more);

    is($exit, 1, "$what ends with status 1");
    like($said, $message, "$what is explained");
    like($said, qr/nothing was changed/, "$what changes nothing, it says");
    ok($t->read_file('ids.bloom') eq $image, "$what leaves the file");
    is(build_id($t, 'ids'), $build, "$what leaves the image that serves");
    no_rests($what);
}

sub no_rests {
    my ($what) = @_;

    is_deeply([glob("$dir/tmp/*"), glob("$dir/*.saved")], [],
              "$what leaves no temporary file");
}


my @ids = map { "id$_" } 1 .. 1000;

subtest 'the first image is built before nginx runs' => sub {
    keys_are(@ids);
    my ($exit, $said) = rebuild();
    is($exit, 0, 'the exit status is 0') or diag($said);
    like($said, qr/is the first image: start or reload nginx/,
         'the script says so');
    like($said, qr/ids\.bloom: does not exist, so --max-loss and --max-growth compare /,
         'the script says that it compares with nothing');
    no_rests('the first run');
};

sub start {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom"], api => 1, add => 1);
    $t->run;

    # a helper that has just begun would load a file that changes

    my $before = zone_state($t, 'ids')->{helper}{heartbeat} // '';
    wait_until(sub {
        (zone_state($t, 'ids')->{helper}{heartbeat} // '') gt $before
    }) or die 'the helper does not begin';
}

start('');


subtest 'a first image that nginx refuses is no success' => sub {
    my $url = 'http://127.0.0.1:' . $t->port(8080) . '/bloom/zones/wrong';
    my ($exit, $said) = rebuild(ZONE_URL => $url, IMAGE => "$dir/first.bloom");

    is($exit, 2, 'the exit status is 2');
    like($said, qr/refuses the new image: 404 .*wrong.* is the first image/,
         'the script says why');
    ok(-e "$dir/first.bloom", 'the image stays in place');
    no_rests('this run');
};


subtest 'a rebuild brings new keys and drops none that was added' => sub {
    chmod 0640, "$dir/ids.bloom" or die "chmod: $!";
    add($t, 'ids', ['added1']);
    keys_are(@ids, 'new1');

    my ($exit, $said) = rebuild();
    is($exit, 0, 'the exit status is 0') or diag($said);
    like($said, qr/nginx serves \S+ids\.bloom with 1001 keys/,
         'the script says what serves');
    is(ask($t, 'ids', 'id1', 'new1', 'added1', 'other'), '1110',
       'old, new and added keys are present');

    my $state = zone_state($t, 'ids');
    is($state->{generation}, 2, 'the image is loaded once');
    ok($state->{image}{as_of}, 'the image has an as_of');
    is((stat "$dir/ids.bloom")[2] & 07777, 0640,
       'the new image has the mode of the old one');
    no_rests('a rebuild');
};


subtest 'as_of is the time before the query' => sub {
    my $before = time;
    my ($exit) = rebuild(SOURCE => "sleep 2; $settings{SOURCE}", LAG => 7200,
                         CHANGE => 1);
    is($exit, 0, 'the exit status is 0');

    my (undef, $info) = $t->run_tool('info', '--json', "$dir/ids.bloom");
    my ($h, $m, $s) = $info =~ /"as_of": "[^T]*T(\d+):(\d+):(\d+)/;
    my $late = ($h * 3600 + $m * 60 + $s - ($before - 7200)) % 86400;
    cmp_ok($late, '<=', 1, 'as_of is two hours, the LAG, before the start');
};


subtest 'a query that fails changes nothing' => sub {
    $t->write_file('fails', '');
    changes_nothing('a query that fails halfway',
                    qr/psql: server closed .*SOURCE failed with status 3/s);
    changes_nothing('a query that fails before a pipe',
                    qr/SOURCE failed with status 3/,
                    SOURCE => "$settings{SOURCE} | cat");
    unlink "$dir/fails";
};


subtest 'too few or too many keys change nothing' => sub {
    keys_are(@ids[0 .. 849]);
    changes_nothing('a query without 15 % of the rows',
                    qr/850\ distinct\ keys,\ 151\ fewer\ \(15.1\ %\)\ than
                       \ the\ 1001\ .*\ and\ --max-loss\ allows\ 1\ %.*\n
                       .*it\ has\ 151\ keys\ fewer\ than\ the\ old\ one,
                       \ and\ MAX_LOSS\ allows\ 1%;\ to\ see\ some\ of
                       \ them\ next\ time,\ set\ KEEP_KEYS;
                       \ .*\ run\ this\ once\ with\ MAX_LOSS=off;/x);
    changes_nothing('such a query, if 5 % are allowed',
                    qr/--max-loss allows 5 %/, MAX_LOSS => '5%');
    changes_nothing('such a query, if 150 keys are allowed',
                    qr/--max-loss allows 150 keys.*MAX_LOSS allows 150;/s,
                    MAX_LOSS => 150, MAX_GROWTH => 'off');
    changes_nothing('fewer keys than MIN_KEYS',
                    qr/850\ distinct\ keys,\ and\ --min-keys\ demands\ 950
                       .*\n.*MIN_KEYS/x, MIN_KEYS => 950, CHANGE => 1);
    changes_nothing('the setting of another version',
                    qr/MAX_CHANGE is no setting: set MAX_LOSS and MAX_GROWTH/,
                    MAX_CHANGE => '20%');

    keys_are(@ids, map { "more$_" } 1 .. 502);
    changes_nothing('a query with too many keys',
                    qr/1502\ distinct\ keys,\ 501\ more\ \(50\ %\)\ than
                       \ the\ 1001\ .*\n.*it\ has\ 501\ keys\ more\ than\ the
                       \ old\ one,\ and\ MAX_GROWTH\ allows\ 50%;
                       \ .*\ run\ this\ once\ with\ MAX_GROWTH=off;/x);
    changes_nothing('one key too many, if none may be new',
                    qr/it has 1 key more than the old one/, MAX_GROWTH => 0,
                    SOURCE => "printf '%s\\n' id1001 new1; head -n 1000 $dir/keys");

    keys_are();
    changes_nothing('a query without keys', qr/the image cannot be built/,
                    CHANGE => 1);

    keys_are(@ids[0 .. 499]);
    my ($exit) = rebuild(MAX_LOSS => 'off', MAX_GROWTH => 0);
    is($exit, 0, 'MAX_LOSS=off lets half of the keys pass');
    is(ask($t, 'ids', 'id1', 'id900'), '10', 'the other half is absent');

    keys_are(@ids);
    ($exit) = rebuild(MAX_GROWTH => 'off', MAX_LOSS => 0);
    is($exit, 0, 'MAX_GROWTH=off lets twice as many keys pass');

    keys_are(@ids[0 .. 499]);
    ($exit) = rebuild(CHANGE => 1);
    is($exit, 0, 'CHANGE=1 lets half of the keys pass');
    keys_are(@ids);
    ($exit) = rebuild(CHANGE => 1);
    is($exit, 0, 'CHANGE=1 lets twice as many keys pass');
};


subtest 'the message names keys that are gone' => sub {
    my $kept = "$dir/ids.keys";
    my ($exit) = rebuild(KEEP_KEYS => $kept);
    is($exit, 0, 'the keys of the old image are kept');

    keys_are('new1', "new\e[2J", reverse @ids[0 .. 849]);
    changes_nothing('a query without 15 % of the rows',
                    qr/it\ has\ 148\ keys\ fewer\ .*;\ 150\ lines\ of\ SOURCE
                       \ are\ gone,\ such\ as\ "id1000"\ "id851"\ "id852"
                       \ "id853"\ "id854";\ correct\ SOURCE\ or/x,
                    KEEP_KEYS => $kept);

    keys_are(@ids[1 .. 999]);
    $t->write_file('without', text(@ids[500 .. 599]));
    changes_nothing('a query without one row',
                    qr/it has 1 key fewer .*; 1 line of SOURCE is gone, "id1";/,
                    KEEP_KEYS => $kept, MAX_LOSS => 0);
    keys_are(@ids);
    changes_nothing('exceptions that leave out a tenth',
                    qr/it\ has\ 100\ keys\ fewer\ .*;\ no\ line\ of\ SOURCE\ is
                       \ gone:\ look\ at\ KEY_FILES\ and\ EXCEPTIONS;/x,
                    KEEP_KEYS => $kept, EXCEPTIONS => "$dir/without");

    # comments of a list are no keys

    my %list = (KEEP_KEYS => $kept,
                BUILD_OPTIONS => "$settings{BUILD_OPTIONS} --from lines");
    keys_are('# today', @ids);
    ($exit) = rebuild(%list);
    is($exit, 0, 'a list is kept');
    keys_are('# tomorrow', @ids[0 .. 899]);
    changes_nothing('a list without a tenth',
                    qr/; 100 lines of SOURCE are gone, such as "id1000" /,
                    %list);
    keys_are(@ids);
};


subtest 'bad settings change nothing' => sub {
    changes_nothing('a missing SOURCE', qr/SOURCE is not set/, SOURCE => '');
    changes_nothing('a missing endpoint', qr/give ZONE_URL or NGINX_RELOAD/,
                    ZONE_URL => '', NGINX_RELOAD => '');
    changes_nothing('a wrong option', qr/--frp.*the image cannot be built/s,
                    BUILD_OPTIONS => '--frp 1');
    changes_nothing('an unknown zone',
                    qr/nginx refuses .* 404 there is no zone/,
                    ZONE_URL => "http://127.0.0.1:" . $t->port(8080)
                                . '/bloom/zones/other');
    changes_nothing('another file than that of the zone',
                    qr/the zone at \S+ does not load/,
                    IMAGE => "$dir/other.bloom") if other_image();
    changes_nothing('an endpoint that does not answer', qr/does not answer/,
                    ZONE_URL => 'http://127.0.0.1:' . $t->port(9999) . '/');
};

sub other_image {
    my ($exit) = $t->run_tool('build', '-q', '-o', "$dir/other.bloom",
                              '-p', '1e-6', "$dir/keys");
    return $exit == 0;
}


subtest 'an image of another kind changes nothing' => sub {
    my %kind = (hash => '--hash siphash', layout => '--layout classic',
                fpr => '-p 1e-5');

    for my $name (sort keys %kind) {
        changes_nothing("another $name",
                        qr/new\ image\ has\ $name\ \S+,\ the\ old\ one\ has
                           \ .*BUILD_OPTIONS.*CHANGE=1/x,
                        BUILD_OPTIONS => "-p 1e-6 -n 5k $kind{$name}");
    }

    changes_nothing('another key form',
                    qr/would have the key form lower, .* has raw/,
                    BUILD_OPTIONS => '-p 1e-6 -n 5k --form lower');

    my ($exit, $said) = rebuild(BUILD_OPTIONS => '-p 1e-6 -n 5k --form lower',
                                CHANGE => 1);
    is($exit, 0, 'CHANGE=1 allows another key form') or diag($said);
    is(ask($t, 'ids', 'ID1'), '1', 'the new key form serves');

    ($exit) = rebuild(CHANGE => 1);
    is($exit, 0, 'CHANGE=1 allows the first key form again');
};


subtest 'AS_OF prints the time of the keys' => sub {
    $t->write_file('list', '');
    utime time, time - 500, "$dir/list" or die "utime: $!";
    my %list = (AS_OF => "date -r '$dir/list' +%s");

    changes_nothing('an earlier as_of than that of the old image',
                    qr/as_of.*is\ earlier\ than.*old\ image.*CHANGE=1/x, %list);

    my ($exit, $said) = rebuild(%list, CHANGE => 1);
    is($exit, 0, 'CHANGE=1 allows an earlier as_of') or diag($said);
    is(age_of_image(), 500, 'as_of is the time that AS_OF prints');

    ($exit) = rebuild(%list);
    is($exit, 0, 'the same as_of is not earlier');

    changes_nothing('an AS_OF that fails', qr/AS_OF failed with status 4/,
                    AS_OF => 'echo 1; exit 4');
    changes_nothing('an AS_OF that prints no number',
                    qr/AS_OF prints "yesterday", not seconds/,
                    AS_OF => 'echo yesterday');
    changes_nothing('--as-of in BUILD_OPTIONS',
                    qr/BUILD_OPTIONS cannot have --as-of: set AS_OF/,
                    BUILD_OPTIONS => '--as-of 1700000000');

    ($exit) = rebuild();
    is($exit, 0, 'without AS_OF the time is that of the query');
};

sub age_of_image {
    my (undef, $info) = $t->run_tool('info', '--json', "$dir/ids.bloom");
    my ($h, $m, $s) = $info =~ /"as_of": "[^T]*T(\d+):(\d+):(\d+)/;
    my $list = (stat "$dir/list")[9];

    return 500 + ($list % 86400) - ($h * 3600 + $m * 60 + $s);
}


subtest 'KEYS_MATCH checks every key' => sub {
    keys_are(@ids, '<td>7', "<td>\e[2J", map { "<td>$_" } 1 .. 50);
    changes_nothing('a key that does not match',
                    qr/1001:<td>7\n1002:<td>\^\[\[2J\n
                       .*\ do\ not\ match\ KEYS_MATCH=id\[0-9\]\+/sx,
                    KEYS_MATCH => 'id[0-9]+');
    changes_nothing('a wrong expression', qr/KEYS_MATCH=\(\( is not a/,
                    KEYS_MATCH => '((');

    keys_are(@ids, '');
    my ($exit, $said) = rebuild(KEYS_MATCH => 'id[0-9]+');
    is($exit, 0, 'keys that match pass, and so do empty lines')
        or diag($said);
    keys_are(@ids);
};


subtest 'an old image that is damaged or missing' => sub {
    rename "$dir/ids.bloom", "$dir/kept.bloom" or die "rename: $!";
    $t->write_file('ids.bloom', 'damaged');

    for my $max ('20%', 'off') {
        my ($exit, $said) = rebuild(MAX_LOSS => $max, MAX_GROWTH => $max);
        is($exit, 1, "a damaged one is not compared with MAX_LOSS=$max");
        like($said, qr/ids\.bloom: .*nothing was changed/s,
             'the script names it');
        is($t->read_file('ids.bloom'), 'damaged', 'the file stays');
    }

    my ($exit, $said) = rebuild(CHANGE => 1);
    is($exit, 0, 'CHANGE=1 replaces a damaged one') or diag($said);

    unlink "$dir/ids.bloom";
    ($exit, $said) = rebuild();
    is($exit, 0, 'a missing one is compared with nothing') or diag($said);
    like($said, qr/does not exist, so --max-loss and --max-growth compare/,
         'the script says so');

    unlink "$dir/ids.bloom";
    ($exit, $said) = rebuild(MIN_KEYS => 1001);
    is($exit, 1, 'MIN_KEYS holds without an old image');

    rename "$dir/kept.bloom", "$dir/ids.bloom" or die "rename: $!";
    ($exit) = rebuild(CHANGE => 1);
    is($exit, 0, 'with the file all is as before');
};


subtest 'of two rebuilds at once the second one changes nothing' => sub {
    unlink "$dir/asked";
    $t->write_file('waits', '');

    my $pid = spawn(["$nightly/rebuild.sh"], env => { settings() });
    ok(wait_until(sub { -e "$dir/asked" }), 'the first rebuild has begun');

    my ($exit, $said) = rebuild();
    is($exit, 1, 'the second one ends with status 1');
    like($said, qr/another rebuild of \S+ is running; nothing was changed/,
         'the second one says why');

    my $generation = generation($t, 'ids');
    unlink "$dir/waits";
    waitpid $pid, 0;
    is($?, 0, 'the first one succeeds');
    is(generation($t, 'ids'), $generation + 1, 'one image is loaded');
};


subtest 'an image for more keys makes the zone larger' => sub {
    my @large = (BUILD_OPTIONS => '-p 1e-6 -n 500k');

    changes_nothing('an image that is too large, without NGINX_RELOAD,',
                    qr/too\ small:\ it\ has .*
                       too\ large\ for\ the\ zone's\ memory .*
                       nginx\ -s\ reload/sx,
                    @large, NGINX_RELOAD => '');

    add($t, 'ids', ['added2']);
    my ($exit, $said) = rebuild(@large);
    is($exit, 0, 'a reload of nginx makes room') or diag($said);
    like($said, qr/reloading nginx.*nginx serves/s, 'the script says so');
    ok(settled($t, 'ids', sub { $_[0]{image}{capacity} == 500_000 }),
       'the new image serves, soon in all workers');
    is(ask_until_known($t, 'ids', 'id1', 'added1', 'added2', 'other'), '1110',
       'no added key is lost');
    no_rests('a rebuild that reloads nginx');
};


subtest 'without an endpoint nginx is reloaded' => sub {
    keys_are(@ids, 'new2');
    my $mark = $t->log_mark;
    my ($exit, $said) = rebuild(ZONE_URL => '',
                                BUILD_OPTIONS => '-p 1e-6 -n 500k');
    is($exit, 0, 'the exit status is 0') or diag($said);
    like($said, qr/nginx was told to load \S+ with 1001 keys/,
         'the script says what it did');
    ok($t->wait_for_log(qr/serves generation/, $mark), 'the image is loaded');
    is(ask_until_known($t, 'ids', 'new2'), '1', 'a new key is present');
};


subtest 'a zone of a given size keeps what fits it' => sub {
    $t->stop;
    rebuild(ZONE_URL => '', NGINX_RELOAD => 'true');
    start(':1m');

    $t->expect_log(qr/bloom zone "ids" is too small: it needs/);
    changes_nothing('an image that is too large for the size',
                    qr/is too small: it needs .*does not accept the new/s,
                    BUILD_OPTIONS => '-p 1e-6 -n 500k');
    changes_nothing('such an image without an endpoint',
                    qr/is too small: it needs .*does not accept the new/s,
                    BUILD_OPTIONS => '-p 1e-6 -n 500k', ZONE_URL => '');
};


subtest 'a directory where others can plant links is refused' => sub {
    my $victim = $t->write_file('victim', 'mine');

    for my $setting ('IMAGE', 'KEEP_KEYS') {
        unsafe_directories($t, sub {
            my ($directory, $home) = @_;
            my $what = "$setting in $directory";

            for ('lock', 'build-id.new', 'build-id', 'new', 'saved') {
                symlink $victim, "$home/x.$_" or die "symlink: $!";
            }

            my ($exit, $said) = rebuild($setting => "$home/x");

            is($exit, 1, "$what: the exit status is 1");
            like($said, qr/^rebuild: other users can replace files in \Q$home\E: run this as the owner .*; nothing was changed/m,
                 "$what: the script says why, and what to do");
            is($t->read_file('victim'), 'mine',
               "$what: the target of the links stays");
            ok(!-e "$home/x", "$what: no file is made");
            no_rests($what) if $setting eq 'KEEP_KEYS';
        });
    }
};

done_testing();
