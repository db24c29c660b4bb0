#!/usr/bin/perl

# Zones too small for what is to be loaded, and zones that change their size
# or their process while keys are added: two instances of a zone, of which
# neither answers "absent" for what the other has acknowledged.

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

sub install {
    my ($image) = @_;

    unlink "$dir/new";
    link "$dir/$image.bloom", "$dir/new" or die "link: $!";
    rename "$dir/new", "$dir/ids.bloom" or die "rename: $!";
}

sub configured {
    my ($size) = @_;

    configure($t, ["zone=ids$size file=ids.bloom",
                   "zone=seen$size capacity=1k fpr=1e-9"],
              api => 1, add => 1, workers => 1);
}


subtest 'too small' => sub {
    install('small');
    configured(':600k');
    $t->run;
    add($t, 'ids', ['a1']);
    my $need = -s "$dir/large.bloom";

    install('large');
    my $r = is_error(api($t, POST => 'zones/ids/reload'), 507, qr/\d/,
                     'a reload');
    my ($size, $unit) = $r->json->{error}{message}
                        =~ /(?:at least|zone=ids:|need\w*)\D{0,40}?(\d+)([kmg]?)/i;
    ok(defined $size, 'the size needed is said')
        or diag($r->body);
    like($r->json->{error}{message}, qr/reload nginx, or, if .* is given/,
         'and that a reload will do where none was given');
    if (defined $size) {
        my $bytes = $size * { '' => 1, k => 1024, m => 1024 ** 2,
                              g => 1024 ** 3 }->{lc $unit};
        configured(":$size$unit");
        $t->reload;
        ok(wait_until(sub { sure($t, 'ids', 'large') eq '1' }),
           'with it the image fits') or diag("$bytes bytes, image of $need");
        is(sure($t, 'ids', 'a1', 'id1', 'no'), '110', 'and nothing is lost');
    }

    $t->stop;
};


# After a reload a zone has the room of the image before, and an upload may use
# it; a start must not take the size of file= alone.

subtest 'an upload that is larger than the image of file=' => sub {
    my $upload = sub {
        my ($zone) = @_;

        is(api($t, PUT => "zones/$zone/image",
               body => $t->read_file('large.bloom'))->status, 200,
           "an upload to $zone");
        add($t, $zone, ['a1']);
    };
    my $serves = sub {
        is(sure($t, $_, 'large', 'id1', 'a1', 'no', 'small'), '11100',
           "$_: $_[0]") for 'ids', 'seen';
    };

    install('large');
    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=200k fpr=1e-9'], api => 1);
    $t->run;
    install('small');
    $t->reload;
    ok(wait_until(sub { sure($t, 'ids', 'small') eq '1' }), 'a small image');
    $upload->($_) for 'ids', 'seen';
    $serves->('it serves');

    configured('');
    $t->stop;
    $t->run;
    $serves->('after a restart');
    $t->reload;
    $serves->('after a reload');
    $t->upgrade;
    $serves->('after an upgrade');

    # a size that is given is another matter

    configured(':600k');
    my $upload_file = qr{"\Q$dir\E/state/ids/upload\..*"};
    my $refused = qr{"ids"\ in\ .*:\d+\ is\ too\ small\ for\ the
                     \ uploaded\ image\ .*$upload_file
                     .*write\ "zone=ids:(\d+k)"}x;

    my ($exit, $output) = $t->test_config;
    isnt($exit, 0, 'nginx -t refuses one that is too small');
    like($output, $refused, 'for the uploaded image');
    like($t->reload_fails, $refused, 'a reload as well');
    $serves->('it serves on');

    my ($size) = $output =~ $refused;
    configured(":$size");
    $t->reload;
    $serves->('with the size that was said');
    $t->stop;
    remove_tree("$dir/state");
};


subtest 'a size that changes' => sub {
    install('small');
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
            is(sure($t, $zone, @keys, 'no'), '1' x @keys . '0',
               "zone=$zone$size: all are there");
        }
        $add->("size$size");
    }

    $t->kill_all;
    $t->run;
    is(sure($t, $_, @keys, 'no'), '1' x @keys . '0', "after a restart: $_")
        for 'ids', 'seen';
    $t->stop;
};


# An old worker is held by a connection with a request in the middle, on which
# it is asked and added to, while a new one serves others.

sub keep {
    my $c = BloomTest::Connection->new($t->port(8080));

    # a request that has begun: the worker stays until it is done

    $c->send("POST /bloom/zones/ids/keys HTTP/1.1\r\nHost: localhost\r\n"
             . "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    $c->interim == 100 or die 'no 100 Continue';

    return $c;
}

sub chunk { return sprintf "%x\r\n%s\r\n", length $_[0], $_[0] }

subtest 'additions on both sides of a changed size' => sub {
    install('small');
    configured(':1m');
    $t->run;
    my @old = $t->workers;
    my $c = keep();
    $c->send(chunk("old1\n"));

    configured(':2m');
    $t->reload(keep_old => 1);
    ok(alive($old[0]), 'the old worker is there still');

    add($t, 'ids', ['new1']);
    $c->send(chunk("old2\nold3\n"));
    $c->send("0\r\n\r\n");
    my $r = $c->response;
    is_added($r, 3, 3, 0, undef, 'it takes keys');

    # acknowledged a moment ago by the other instance: never absent

    my $at_once = ask($t, 'ids', qw(old1 old2 old3 new1));
    unlike($at_once, qr/0/, 'the new one does not say absent')
        or diag($at_once);
    is(sure($t, 'ids', qw(old1 old2 old3 new1 no)), '11110',
       'and then it knows');

    $c->close;
    ok(wait_until(sub { !alive($old[0]) }), 'the old worker goes');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', qw(old1 old2 old3 new1 no)), '11110',
       'all are there after a restart');
    $t->stop;
};


# Two masters, each with its own memory: whatever is added to one is known to
# the other, or it cannot tell.

subtest 'an upgrade' => sub {
    install('small');
    configured(':1m');
    $t->run;

    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);
    my (%asked, %added, @lost, @keys);

    # each connection is served by one worker: ask who it was

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

    is(join(' ', sort keys %asked), 'new old', 'both sides are asked');
    is(scalar @lost, 0, 'neither has said absent of what was added')
        or diag("such as $lost[0], of " . @lost);

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint meanwhile');
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('small.bloom'))->status, 200,
       'an upload meanwhile');

    $t->upgrade_finish;
    is(sure($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'the new one has all');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', @keys, 'no'), '1' x @keys . '0',
       'after a restart, too');
};


# The upgrade is called off: the old master goes on.

subtest 'an upgrade that is taken back' => sub {
    my $old = $t->master;
    my $new = $t->upgrade_begin;
    my @keys = keys_of('back', 200);

    add($t, 'ids', [$_]) for @keys;
    $t->upgrade_back;
    ok(!alive($new) && alive($old), 'the new master ends');

    is(sure($t, 'ids', @keys, 'no'), '1' x @keys . '0', 'the old one has all');
    $t->kill_helper;
    add($t, 'ids', ['helped'], durable => 1);
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'and a helper');
    is(sure($t, 'ids', @keys, 'helped'), '1' x (1 + @keys), 'as before');
};


# Its master dies and its workers serve on; another nginx takes over.

subtest 'a master that dies' => sub {
    my @left = $t->kill_master;
    my @keys = keys_of('orphan', 50);

    add($t, 'ids', \@keys);
    $t->get("/add/ids?k=more$_") for 1 .. 50;
    is(ask($t, 'ids', @keys), '1' x 50, 'its workers serve on');

    $t->end_processes('KILL', @left);
    $t->run;
    is(sure($t, 'ids', @keys, keys_of('more', 50), 'no'), '1' x 100 . '0',
       'the next one has all');
};


done_testing;
