#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Keys survive a change of a zone's size, an upgrade of nginx and the death of
# its master, and no instance of a zone answers "absent" for a key that another
# instance has acknowledged.  An upload may need more room than file=.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Connection;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('small.bloom', ['id1', 'small'], '-p', '1e-9', '-n', '5k');
$t->build_image('large.bloom', ['id1', 'large', keys_of('l', 100_000)],
                '-p', '1e-9');

sub configured {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom",
                   "zone=seen$size capacity=1k fpr=1e-9"],
              api => 1, add => 1, workers => 1);
}


subtest 'a zone is too small for an image' => sub {
    install_image($t, 'small');
    configured(':600k');
    $t->run;
    install_image($t, 'large');

    my $refused = is_error(api($t, POST => 'zones/ids/reload'), 507,
                           qr/reload nginx, or, if .* is given/,
                           'a load of an image that does not fit is refused');
    my ($size) = $refused->json->{error}{message} =~ /"zone=ids:(\d+k)"/;

    configured(":$size");
    $t->reload;
    is(ask_until_known($t, 'ids', 'large', 'id1', 'no'), '110',
       'the image fits into a zone of the size that the refusal names');
    $t->stop;
};


# After a reload a zone keeps the room that its former image needed, and an
# upload may use it.  A later start must not size the zone by file= alone.

subtest 'an upload is larger than the image of file=' => sub {
    my $upload = sub {
        my ($zone) = @_;

        is(upload_image($t, $zone, 'large')->status, 200,
           "a large image is uploaded to zone $zone");
        add($t, $zone, ['a1']);
    };
    my $serves = sub {
        is(ask_until_known($t, $_, 'large', 'id1', 'a1', 'no', 'small'), '11100',
           "the uploaded image serves in zone $_ $_[0]") for 'ids', 'seen';
    };

    install_image($t, 'large');
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=200k fpr=1e-9'], api => 1);
    $t->run;
    install_image($t, 'small');
    $t->reload;
    ok(wait_until(sub { ask_until_known($t, 'ids', 'small') eq '1' }),
       'a small image serves in a zone with room for a large one');
    $upload->($_) for 'ids', 'seen';
    $serves->('at once');

    configured('');
    $t->stop;
    $t->run;
    $serves->('after a restart');
    $t->reload;
    $serves->('after a reload');
    $t->upgrade;
    $serves->('after an upgrade');

    # a configured size is not exceeded for an uploaded image

    configured(':600k');
    my $upload_file = qr{"\Q$dir\E/state/ids/upload\..*"};
    my $refused = qr{"ids"\ in\ .*:\d+\ is\ too\ small\ for\ the
                     \ uploaded\ image\ .*$upload_file
                     .*write\ "zone=ids:(\d+k)"}x;

    my ($exit, $output) = $t->test_config;
    isnt($exit, 0,
         'nginx -t refuses a size that is too small for the uploaded image');
    like($output, $refused, 'nginx -t names the upload and the size it needs');
    like($t->reload_fails, $refused,
         'a refused reload names the upload and the size it needs');
    $serves->('after a refused reload');

    my ($size) = $output =~ $refused;
    configured(":$size");
    $t->reload;
    $serves->('with the size that it needs');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'the size of a zone changes' => sub {
    install_image($t, 'small');
    configured(':1m');
    $t->run;

    my @keys;
    my $add = sub {
        for my $zone ('ids', 'seen') {
            add($t, $zone, [map { "$_[0]$_" } 1 .. 20]);
            $t->get("/add/$zone?k=$_[0]21");
        }
        push @keys, map { "$_[0]$_" } 1 .. 21;
    };

    $add->('first');

    for my $size (':2m', ':1m', ':3m', '') {
        configured($size);
        $t->reload;
        for my $zone ('ids', 'seen') {
            is(ask_until_known($t, $zone, @keys, 'no'), '1' x @keys . '0',
               "all keys are present in zone=$zone$size");
        }
        $add->("size$size");
    }

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, $_, @keys, 'no'), '1' x @keys . '0',
       "all keys are present in zone $_ after a restart")
        for 'ids', 'seen';
    $t->stop;
};


# Begins a request.  Its worker stays until it is answered, while new workers
# serve other connections.

sub begin_addition {
    my $c = BloomTest::Connection->new($t->port(8080));

    $c->send("POST /bloom/zones/ids/keys HTTP/1.1\r\nHost: localhost\r\n"
             . "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    $c->interim == 100 or die 'no 100 Continue';

    return $c;
}

sub chunk { return sprintf "%x\r\n%s\r\n", length $_[0], $_[0] }

subtest 'old and new workers add keys while the size changes' => sub {
    install_image($t, 'small');
    configured(':1m');
    $t->run;
    my @old = $t->workers;
    my $c = begin_addition();
    $c->send(chunk("old1\n"));

    configured(':2m');
    $t->reload(keep_old => 1);
    ok(alive($old[0]), 'the old worker still runs');

    add($t, 'ids', ['new1']);
    $c->send(chunk("old2\nold3\n"));
    $c->send("0\r\n\r\n");
    my $r = $c->response;
    is_added($r, 3, 3, 0, undef, 'the old worker adds keys');

    # the other instance has just acknowledged these keys

    my $at_once = ask($t, 'ids', qw(old1 old2 old3 new1));
    unlike($at_once, qr/0/,
           'keys of the old instance are not absent in the new one')
        or diag($at_once);
    is(ask_until_known($t, 'ids', qw(old1 old2 old3 new1 no)), '11110',
       'keys of the old instance become present in the new one');

    $c->close;
    ok(wait_until(sub { !alive($old[0]) }), 'the old worker exits');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', qw(old1 old2 old3 new1 no)), '11110',
       'the keys of both instances are present after a restart');
    $t->stop;
};


# Each of two masters has its own memory.  A key that is added to one instance
# is present or unknown in the other.

subtest 'nginx is upgraded' => sub {
    install_image($t, 'small');
    configured(':1m');
    $t->run;

    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);
    my (%asked, %added, @lost, @keys);

    # one worker serves each connection, and its answer has its pid

    for my $n (1 .. 2000) {
        my $key = "up$n";
        my $zone = $n % 2 ? 'ids' : 'seen';

        my ($who) = $t->get("/$zone?k=x")->body =~ /of (\d+)/;
        if ($n % 3) {
            add($t, $zone, [$key]);
        } else {
            $t->get("/add/$zone?k=$key");
        }

        for (1 .. 3) {
            my ($answer, @by) = ask($t, $zone, $key);
            push @lost, "$key: $side{$by[0]}" if $answer eq '0';
            $asked{$side{$by[0]}}++;
        }
        push @keys, $key if $zone eq 'ids';

        last if $n >= 300 && keys %asked == 2;
    }

    is(join(' ', sort keys %asked), 'new old',
       'the old and the new instance are asked');
    is(scalar @lost, 0, 'no added key is absent in either instance')
        or diag("for example $lost[0], of " . @lost);

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written during the upgrade');
    is(upload_image($t, 'ids', 'small')->status, 200,
       'an image is uploaded during the upgrade');

    $t->upgrade_finish;
    is(ask_until_known($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'all keys are present in the new instance');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'all keys are present after a restart of the new instance');
};


# The new master exits, and the old one starts workers again.

subtest 'an upgrade is taken back' => sub {
    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my @keys = keys_of('back', 200);

    add($t, 'ids', [$_]) for @keys;
    $t->upgrade_back;
    ok(!alive($new) && alive($old),
       'the new master ends and the old one survives');

    is(ask_until_known($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'keys added during the upgrade are present in the old instance');
    $t->kill_helper;
    add($t, 'ids', ['helped'], durable => 1);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the helper of the old instance loads an image');
    is(ask_until_known($t, 'ids', @keys, 'helped'), '1' x (1 + @keys),
       'all keys are present after the load');
};


# The workers of a dead master continue to serve until another nginx starts.

subtest 'the master dies' => sub {
    my @left = $t->kill_master;
    my @keys = keys_of('orphan', 50);

    add($t, 'ids', \@keys);
    $t->get("/add/ids?k=more$_") for 1 .. 50;
    is(ask($t, 'ids', @keys), '1' x 50,
       'the workers of a dead master serve the keys that they add');

    $t->end_processes('KILL', @left);
    $t->run;
    is(ask_until_known($t, 'ids', @keys, keys_of('more', 50), 'no'), '1' x 100 . '0',
       'keys added by workers of a dead master are present after a start');
};


done_testing;
