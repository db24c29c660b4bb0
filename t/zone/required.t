#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# With bloom_zone ... required=off nginx starts even if a zone has nothing to
# serve.  That zone answers unknown until its image is there; other zones serve.
# With required=on, the default, the start is refused.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $path = "$dir/ids.bloom";

$t->build_image('good.bloom', ['id1', 'id2'], '-p', '1e-9', '-n', '100k');
$t->build_image('other.bloom', ['other1'], '-p', '1e-9', '-n', '1k');

my $good = $t->read_file('good.bloom');

sub install {
    my ($content) = @_;

    unlink $path;
    replace_file($t, 'ids.bloom', $content) if defined $content;
}

sub flipped {
    my ($offset) = @_;

    my $content = $good;
    substr($content, $offset, 1) ^= "\1";

    return $content;
}

# Configures two zones: "ids", with these parameters, and one that can serve.

sub set_up {
    my ($parameters) = @_;

    configure($t, ["zone=ids:2m file=ids.bloom $parameters",
                   'zone=other file=other.bloom'], api => 1, add => 1);
}

sub state_of { return zone_state($t, 'ids')->{state} }


# What is wrong with the image: the file's content, undef for no file, and the
# message about it.

my %bad = (
    'a missing image' => [undef, qr/cannot be opened/],
    'a damaged header' => [flipped(140), qr/is damaged/],
    'a damaged payload' => [flipped(-1), qr/is damaged/],
    'a truncated image' => [substr($good, 0, -1), qr/is truncated/],
    'an empty file' => ['', qr/is empty/],
    'a text file' => ["id1\nid2\n", qr/is not a Bloom filter image/],
);


subtest 'the image is required' => sub {
    for my $parameters ('', 'required=on') {
        install(undef);
        set_up($parameters);
        like($t->run_fails,
             qr{\[emerg\] .*image "\Q$path\E" of bloom zone "ids" .*required=off},
             "nginx does not start without it, by '$parameters'");
    }

    install($good);
    $t->run;
    is(ask($t, 'ids', 'id1', 'no'), '10', 'nginx starts with a good image');
    $t->stop;
};


for my $what (sort keys %bad) {
    my ($content, $reason) = @{ $bad{$what} };

    subtest "the image is not required: $what" => sub {
        install($content);
        set_up('required=off');

        my ($exit, $output) = $t->test_config;
        is($exit, 0, "nginx -t accepts $what") or diag($output);

        my $mark = $t->log_mark;
        $t->run;

        $t->expect_log(qr/\[alert\].*"ids"/);
        like($t->log_since($mark),
             qr{\[alert\]\ .*image\ "\Q$path\E"\ of\ bloom\ zone\ "ids"
                \ .*$reason}x,
             'an alert names file, zone and reason');
        is(state_of(), 'not_loaded', 'the state of the zone is not_loaded');
        is(ask($t, 'ids', 'id1', 'no'), '??', 'every answer is unknown');
        is(ask($t, 'other', 'other1', 'no'), '10', 'another zone serves');

        # a key that is acknowledged now is present once the zone serves

        my $added = api($t, POST => 'zones/ids/keys', body => "added\n");
        my $by_directive = $t->get('/add/ids?k=directive')->status;
        is($by_directive, 200, 'a request that adds a key is served');

        for my $what ('remove', 'clear?only=removed', 'checkpoint') {
            my @keys = $what eq 'remove' ? (body => "id1\n") : ();
            is_error(api($t, POST => "zones/ids/$what", @keys), 503,
                     qr/the zone is not loaded; load an image/,
                     "POST $what says what to do");
        }

        is(api($t, POST => 'zones/ids/reload')->status, 422,
           'POST reload is refused while the image is bad');
        is(state_of(), 'not_loaded',
           'the state is not_loaded after a refused load');

        install($good);
        is(api($t, POST => 'zones/ids/reload')->status, 200,
           'POST reload loads a good image');
        is(state_of(), 'serving', 'the zone serves');
        is(ask($t, 'ids', 'id1', 'id2', 'no'), '110',
           'the zone answers from the image');
        isnt(ask($t, 'ids', 'added'), '0',
             'a key that was acknowledged while nothing served is not absent')
            if $added->status == 200;

        $t->reload;
        is(ask($t, 'ids', 'id1', 'no'), '10',
           'the zone serves after a reload of nginx');
        $t->stop;
        remove_tree("$dir/state");
    };
}


subtest 'a reload of nginx brings the zone to life' => sub {
    install(undef);
    set_up('required=off');
    $t->run;
    is(ask($t, 'ids', 'id1'), '?', 'every answer is unknown without an image');

    $t->reload;
    is(ask($t, 'ids', 'id1'), '?',
       'every answer is unknown after a reload without an image');
    is(ask($t, 'other', 'other1', 'no'), '10',
       'another zone serves after a reload without an image');

    my $mark = $t->log_mark;
    install($good);
    $t->reload;
    ok(settled($t, 'ids', sub { $_[0]{state} eq 'serving' }),
       'the zone serves after a reload with an image');
    like($t->log_since($mark),
         qr{"ids" is going to load "\Q$path\E", since no image serves$}m,
         'the log says why the image is loaded');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the zone answers from the image');

    # a further reload keeps what serves

    install(undef);
    $mark = $t->log_mark;
    $t->reload;
    like($t->wait_for_log(qr/continues with generation \d/, $mark),
         qr/ids\.bloom" of bloom zone "ids" cannot be opened/,
         'the log says what continues to serve after a reload without a file');
    ok(settled($t, 'ids', sub { ($_[0]{load}{result} // '') eq 'refused' }),
       'the state says that the load was refused');
    like(zone_state($t, 'ids')->{load}{message}, qr/cannot be opened/,
         'and why');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the image before serves on');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'POST reload brings a zone that has a size to life' => sub {
    install(undef);
    set_up('required=off');
    $t->run;
    $t->expect_log(qr/\[alert\]\ .*"ids"\ is\ not\ loaded\ .*;\ correct\ that,
                      \ and\ send\ "POST\ reload"\ or\ reload\ nginx$/mx);

    install($good);
    my $response = api($t, 'POST', 'zones/ids/reload');
    is($response->status, 200, 'the load succeeds');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the zone answers from the image');
    $t->stop;
    remove_tree("$dir/state");
};


# Without an image the size that the zone needs is unknown.

subtest 'the zone has no size' => sub {
    install(undef);
    configure($t, ['zone=ids file=ids.bloom required=off',
                   'zone=other file=other.bloom'], api => 1);
    $t->run;
    $t->expect_log(qr/\[alert\]\ .*"ids"\ is\ not\ loaded\ .*;\ correct\ that,
                      \ and\ reload\ nginx$/mx);
    is(ask($t, 'ids', 'id1'), '?', 'every answer is unknown without an image');

    install($good);
    $t->reload;
    ok(settled($t, 'ids', sub { $_[0]{state} eq 'serving' }),
       'the zone serves after a reload with an image');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the zone answers from the image');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'a watched image appears' => sub {
    for my $what ('a missing image', 'a damaged payload') {
        install($bad{$what}[0]);
        set_up('watch=50ms required=off');
        $t->run;
        is(ask($t, 'ids', 'id1'), '?', "every answer is unknown with $what");

        install($good);
        ok(settled($t, 'ids', sub { $_[0]{state} eq 'serving' }),
           "the helper loads the image that replaces $what");
        is(ask($t, 'ids', 'id1', 'no'), '10',
           "the zone answers from the image that replaced $what");
        $t->stop;
        remove_tree("$dir/state");
    }
};


subtest 'an uploaded image is damaged' => sub {
    install($good);
    set_up('required=off');
    $t->run;
    $t->build_image('upload.bloom', ['id1', 'up1'], '-p', '1e-9', '-n', '10k');
    is(upload_image($t, 'ids', 'upload')->status, 200, 'an image is uploaded');
    $t->stop;

    my ($upload) = glob "$dir/state/ids/upload.*.bloom";
    flip($upload, -1);

    my $mark = $t->log_mark;
    $t->run;
    like($t->log_since($mark), qr/\[alert\].*\Q$upload\E.*"ids"/,
         'an alert names file and zone');
    like(state_of(), qr/^(?:not_loaded|damaged)$/,
         'the state of the zone says that it lacks keys');
    is(ask($t, 'ids', 'up1', 'no'), '??',
       'keys that the uploaded image may have had are unknown');
    is(ask($t, 'other', 'other1', 'no'), '10', 'another zone serves');

    is(upload_image($t, 'ids', 'upload')->status, 200,
       'the image is uploaded again');
    is(ask_until_known($t, 'ids', 'id1', 'up1', 'no'), '110',
       'the zone answers from the image');
    $t->stop;
    remove_tree("$dir/state");
};


# During an upgrade both instances have nothing to serve, but take keys.

subtest 'a zone that is not loaded catches up with another instance' => sub {
    rename "$dir/ids.bloom", "$dir/aside.bloom" or die "rename: $!";
    configure($t, ['zone=ids:2m file=ids.bloom required=off'],
              api => 1, add => 1);
    $t->expect_log(qr/\[alert\].*bloom zone "ids"/);
    $t->run;

    $t->upgrade_begin;
    is($t->get('/add/ids?k=meanwhile')->status, 200,
       'bloom_add takes a key during an upgrade');
    $t->upgrade_finish;

    rename "$dir/aside.bloom", "$dir/ids.bloom" or die "rename: $!";
    $t->reload;
    ok(settled($t, 'ids', sub { $_[0]{state} eq 'serving' }),
       'the zone serves after a reload with its image');
    is(ask_until_known($t, 'ids', 'id1', 'meanwhile', 'no'), '110',
       'all keys are present');
    $t->stop;
};


done_testing;
