#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone with form= takes images of that key form only, however an image gets
# in; whatever served before serves on.  A zone without form= takes images of any
# form, and the log warns of a change.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my %key = (raw => 'HTTP://Evil.Example/', host => 'evil.example',
           url => 'evil.example/');

$t->build_image("$_.bloom", [$key{$_}], '-p', '1e-9', '-n', '1k', '--form', $_)
    for sort keys %key;

my $odd = 'http://WWW.evil.example/x';

# Returns what messages say about an image of a key form that the zone does not
# want.

sub wrong {
    my ($has, $wants) = @_;

    my $phrase = qq(has the key form "$has", and the zone wants "$wants")
                 . qq( ("form=$wants"): build it with "ngx-bloom build --form)
                 . qq( $wants");

    return qr/\Q$phrase\E/;
}

my $wrong = wrong('raw', 'url');
my $image = qr/image "\Q$dir\E\/urls\.bloom" of bloom zone "urls"/;

# Configures the zone "urls" with these parameters, its size given, since
# nginx cannot compute it without an image.

sub set_up {
    my ($parameters) = @_;

    configure($t, ["zone=urls:1m $parameters"], api => 1, add => 1);
}

my $file = 'file=urls.bloom';
my $empty = 'capacity=1k fpr=1e-9';

sub install { install_image($t, $_[0], 'urls') }

sub form { return zone_state($t, 'urls')->{image}{form} }

# Tests that the image of the form url serves.

sub serves_on {
    my ($when) = @_;

    is(form() . ask_until_known($t, 'urls', $odd, 'no.example/'), 'url10',
       "the image of the form url serves $when");
}

# Uploads an image of another key form than the zone wants, and tests that it is
# refused.

sub is_refused {
    my ($name, $want) = @_;

    my $wrong = wrong($name, $want);

    is_error(upload_image($t, 'urls', $name), 422,
             qr/the uploaded image for bloom zone "urls" $wrong/,
             "an upload of $name is refused by a zone that wants $want");
}

# Returns the path of the uploaded image in the state directory.

sub uploaded {
    my @files = files("$dir/state/urls/upload.*.bloom");

    is(scalar @files, 1, 'the state directory has one uploaded image');

    return $files[0];
}


subtest 'nginx starts with an image of the form only' => sub {
    install('raw');
    set_up("$file form=url");

    like($t->run_fails,
         qr/\[emerg\] .*$image $wrong/,
         'nginx does not start with an image of another form');

    my ($status, $text) = $t->test_config;
    isnt($status, 0, 'nginx -t refuses it, too');
    like($text, $wrong, 'nginx -t says why');

    set_up("$file form=raw");
    is(($t->test_config)[0], 0, 'nginx -t accepts it with form= of its form');

    install('url');
    set_up("$file form=url");
    $t->run;
    serves_on('after a start');
};


subtest 'an image of another form gets in by no way' => sub {
    install('raw');
    like($t->reload_fails,
         qr/\[emerg\] .*$image $wrong/,
         'HUP is refused, and the log says why');
    serves_on('after HUP');

    is_error(api($t, POST => 'zones/urls/reload'), 422, $wrong,
             'POST reload is refused');
    is(zone_state($t, 'urls')->{load}{result}, 'refused',
       'the state says that the load was refused');
    serves_on('after POST reload');

    is_refused('raw', 'url');
    is_refused('host', 'url');
    serves_on('after two uploads');
    is(upload_image($t, 'urls', 'url')->status, 200,
       'an upload of the form url is taken');
    serves_on('from that upload');

    my $mark = $t->log_mark;
    kill 'USR2', $t->master;
    $t->wait_for_log(qr/\[emerg\].*$wrong/, $mark);
    wait_until(sub { !-e "$dir/nginx.pid.oldbin" });
    $t->excuse_log($mark);
    serves_on('after an upgrade by USR2 was refused');

    install('url');
    set_up("$file form=url watch=50ms");
    $t->reload;
    $mark = $t->log_mark;
    install('raw');
    $t->wait_for_log(qr/\[error\].*$wrong/, $mark);
    serves_on('after watch= has refused a file');
    install('url');
    $t->stop;
};


# A zone that started empty, too, has declared its form.

subtest 'a zone that starts empty takes uploads of its form only' => sub {
    set_up("$empty form=host");
    $t->run;
    is_refused('url', 'host');
    is_refused('raw', 'host');
    is(upload_image($t, 'urls', 'host')->status, 200,
       'an upload of the form host is taken');
    is(ask_until_known($t, 'urls', 'www.evil.example', 'no.example'), '10',
       'that image serves');
    $t->stop;
    remove_tree("$dir/state");

    set_up($empty);
    $t->run;
    is(upload_image($t, 'urls', 'host')->status, 200,
       'without form= it takes an upload of any form');
    is(form(), 'host', 'that image serves in its form');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'form= is added while an upload of another form serves' => sub {
    for my $source ($file, $empty) {
        my ($instead, $task) = $source eq $file
                               ? ('the image of "file"', 'reload')
                               : ('an empty filter', 'clear');

        set_up($source);
        $t->run;
        add($t, 'urls', ['http://added.example/x']);
        is(upload_image($t, 'urls', 'raw')->status, 200,
           "an upload of the form raw serves in place of $instead");

        my $path = uploaded();
        my $starts = qr/"urls" in \S+nginx\.conf:\d+ starts with the uploaded/;
        my $then = quotemeta 'and upload it before you add "form="; or start'
                             . qq( without "form=", and go back to $instead)
                             . " by POST $task";
        my $which = qr/image "\Q$path\E", which $wrong, $then/;
        my $refused = qr/\[emerg\] .*bloom zone $starts $which/;

        set_up("$source form=url");
        like($t->reload_fails, $refused, 'HUP is refused with form=url');
        is(form(), 'raw', 'the upload serves on');
        like(($t->test_config)[1], $refused, 'nginx -t is refused');

        $t->stop;
        like($t->run_fails, $refused, 'nginx does not start');

        # do what the message says

        set_up($source);
        $t->run;
        is(form(), 'raw', 'the upload serves again without form=');
        is(api($t, POST => "zones/urls/$task")->status, 200,
           "POST $task goes back to $instead");
        set_up("$source form=url");
        $t->reload;
        ok(wait_until(sub { form() eq 'url' }),
           'a reload then brings an image of the form url');
        is(ask_until_known($t, 'urls', 'http://ADDED.example/x', 'no.example'),
           $task eq 'reload' ? '10' : '00',
           'with the key that was added in another form, if it was kept');
        $t->stop;
        remove_tree("$dir/state");
    }
};


# Here form= names the form that the empty filter had anyway, so nothing else in
# the configuration says that the memory has to be recreated.

subtest 'form= has the form that the zone started with' => sub {
    set_up($empty);
    $t->run;
    add($t, 'urls', ['evil.example']);
    is(upload_image($t, 'urls', 'host')->status, 200,
       'an upload of the form host serves');
    unlink uploaded();
    set_up("$empty form=raw");
    $t->expect_log(qr/\[alert\].*upload\..*cannot be opened.*"unknown"/);
    $t->reload;
    is(form(), 'raw', 'a reload without its file brings an empty filter back');
    is(ask($t, 'urls', 'evil.example', 'www.evil.example'), '1?',
       'with the key that was added, and other keys are unknown');
    $t->stop;
    remove_tree("$dir/state");
};


# As above, but the zone also loses its journal, so no file tells the reload
# what serves.

subtest 'form= is added to a zone in memory' => sub {
    set_up($file);
    $t->run;
    is(upload_image($t, 'urls', 'raw')->status, 200,
       'an upload of the form raw serves');
    set_up("$file journal=off form=url");
    $t->reload;
    ok(wait_until(sub { form() eq 'url' }), 'the reload loads file= instead');
    $t->wait_for_log(qr/going to load .*, since the image that serves has/);
    serves_on('after the reload');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'required=off' => sub {
    set_up("$file required=off");
    install('raw');
    $t->run;

    my $mark = $t->log_mark;
    set_up("$file required=off form=url");
    $t->reload;
    $t->expect_log(qr/\[alert\].*$wrong/);
    $t->wait_for_log(qr/\[alert\].*$wrong/, $mark);
    is(form(), 'raw', 'an image of another form serves on after a reload');
    ok(wait_until(sub { zone_state($t, 'urls')->{load}{result} eq 'refused' }),
       'the state says that it was refused');
    $t->stop;

    $t->expect_log(qr/\[alert\].*"urls" is not loaded/);
    $t->run;
    is(ask($t, 'urls', $odd), '?', 'nothing serves after a start');
    install('url');
    is(api($t, POST => 'zones/urls/reload')->status, 200,
       'POST reload loads an image of the form');
    serves_on('after POST reload');
    $t->stop;
};


subtest 'the log warns of a change without key=' => sub {
    my $both = qr/has the key form "raw", and the image before it had "url"/;
    my $form = qr/\[warn\].*"urls": its image $both;.*"--form url".*"form=url"/;

    set_up($file);
    $t->run;
    my $mark = $t->log_mark;
    install('raw');
    $t->reload;
    like($t->wait_for_log($form, $mark), $form, 'HUP warns of another form');

    # the memory is recreated

    set_up($file);
    install('url');
    api($t, POST => 'zones/urls/reload');
    $mark = $t->log_mark;
    install('raw');
    configure($t, ["zone=urls:2m $file"], api => 1);
    $t->reload;
    like($t->log_since($mark), $form, 'HUP with another size warns, too');

    $mark = $t->log_mark;
    api($t, POST => 'zones/urls/reload');
    unlike($t->log_since($mark), qr/key form/,
           'the same form again is no change');
    $t->stop;
};


done_testing;
