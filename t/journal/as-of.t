#!/usr/bin/perl

# What a new image drops of the journal: nothing, unless it states as of when
# it is complete; then what is older than that by more than an hour.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my @ids = keys_of('id', 10);
my $now = time;

# of whoever stops: it removes the file

mkdir "$dir/faults" or die "mkdir: $!";
chmod 0777, "$dir/faults";
my $fault = "$dir/faults/next";
$t->environment(NGX_BLOOM_FAULT_FILE => $fault);

my $disk = BloomTest::Disk->new($t, 'state');

sub rfc {
    my @time = gmtime $_[0];

    return sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $time[5] + 1900,
                   $time[4] + 1, @time[3, 2, 1, 0];
}

# An image of @ids and a key of its own name, and the file of the zone

sub image {
    my ($name, $as_of) = @_;

    $t->build_image("$name.bloom", [@ids, $name], '-p', '1e-9',
                    defined $as_of ? ('--as-of', rfc($as_of)) : ());
}

sub install {
    my ($name) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$name.bloom", "$dir/ids.bloom" or die "link: $!";
}

# A journal of the hours: a segment for each, with a key of its name, such as
# h3, that was added so many hours ago

my @hours = (6, 5, 4, 3, 2);

sub begin_with_hours {
    my ($name) = @_;

    remove_tree("$dir/state");
    make_path($state, { mode => 0700 });
    chmod 0700, "$dir/state";

    my ($base, $sequence) = (0, 1);

    for my $hours (@hours) {
        my $time = ($now - $hours * 3600) * 1000;
        my $segment = BloomTest::Journal->new(
            base => $base, sequence => $sequence, created => $time);
        $segment->append(["h$hours"], time => $time);
        $t->write_file(sprintf('state/ids/journal.%016x', $base),
                       $segment->segment);
        $base += $segment->{size};
        $sequence = $segment->{next};
    }

    install($name);
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
    $t->run;
}

my @names = map { "h$_" } @hours;

sub hours { return sure($t, 'ids', @names) }

sub segments { return scalar files("$state/journal.*") }


# The next to come to a place stops there.

sub stop_at {
    my ($place) = @_;

    $t->write_file('fault.tmp', "$place 1 stop\n");
    rename "$dir/fault.tmp", $fault or die "rename: $!";

    return { place => $place, mark => $t->log_mark };
}

sub stopped {
    my ($stop) = @_;

    my $line = $t->wait_for_log(qr/fault injected at "$stop->{place}"/,
                                $stop->{mark});

    return ($line =~ / (\d+)#\d+: /)[0] // die "no process in: $line";
}


image('plain');
image('ancient', $now - 10 * 3600);
image('before', $now - 5 * 3600 - 1800);
image('between', $now - 2 * 3600 - 1800);
image('recent', $now);


subtest 'an image without as_of drops nothing' => sub {
    begin_with_hours('plain');
    is(hours(), '11111', 'at start');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');
    is(hours(), '11111', 'nor then');
    cmp_ok(segments(), '>=', 5, 'all segments are there');
    $t->stop;
};


subtest 'one with as_of drops what is older by more than an hour' => sub {
    begin_with_hours('plain');
    add($t, 'ids', ['new']);
    install('between');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'reload');

    # 2.5 hours ago less one: h6, h5, h4 go, h3 and h2 stay

    is(hours(), '00011', 'and no more than that');
    is(sure($t, 'ids', 'new', 'between', 'plain', 'id1'), '1101', 'so the rest');

    ok(wait_until(sub {
        return !-e "$state/journal.0000000000000000";
    }), 'segments that it covers are removed');
    cmp_ok(segments(), '>=', 2, 'those that it does not are kept');

    $t->kill_all;
    $t->run;
    is(hours(), '00011', 'after a restart, too');
    is(sure($t, 'ids', 'new'), '1', 'with what is new');

    # what was removed is in no older image

    my $generation = generation($t, 'ids');
    is_error(api($t, PUT => 'zones/ids/image',
                 body => $t->read_file("$_.bloom")),
             422, qr/too old.*--as-of/, "an image as of before is refused: $_")
        for 'ancient', 'before';
    is(generation($t, 'ids'), $generation, 'the zone serves on');
    is(hours(), '00011', 'as it did');

    # nor, as far as anybody knows, in one that does not say

    is_error(api($t, PUT => 'zones/ids/image',
                 body => $t->read_file('plain.bloom')),
             422, qr/too old.*--as-of/, 'nor one that does not say');
    is(sure($t, 'ids', @names[3, 4], 'new'), '111', 'nothing is lost');

    is(api($t, PUT => 'zones/ids/image', body => $t->read_file('recent.bloom'))
           ->status, 200, 'a newer one');
    is(sure($t, 'ids', 'h3', 'h2', 'new', 'recent'), '0011', 'drops the rest');
    $t->stop;
};


subtest 'an older image is refused at start as well' => sub {
    begin_with_hours('between');
    is(hours(), '00011', 'begins with a newer one');
    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'which removes segments');

    install('ancient');
    my $log = $t->reload_fails;
    like($log, qr/too old.*--as-of/, 'the reload says why');
    is(hours(), '00011', 'the zone serves on');
    is_error(api($t, POST => 'zones/ids/reload'), 422, qr/too old.*--as-of/,
             'by the endpoint, too');

    $t->stop;
    like($t->run_fails, qr/\[emerg\].*too old.*--as-of/, 'the start as well');

    install('recent');
    $t->run;
    is(sure($t, 'ids', 'recent', 'id1', 'no'), '110', 'a newer one is good');
    $t->stop;
};


subtest 'what was added within the hour stays, whatever the image says' => sub {
    begin_with_hours('plain');
    add($t, 'ids', [keys_of('fresh', 50)]);

    image('later', time);

    for my $name (qw(between recent later)) {
        is(api($t, PUT => 'zones/ids/image',
               body => $t->read_file("$name.bloom"))->status, 200, $name);
        is(sure($t, 'ids', keys_of('fresh', 50)), '1' x 50, 'all are there');
    }

    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', keys_of('fresh', 50)), '1' x 50, 'after a restart, too');
};


# None of the tools makes such an image, but a wrong clock or another program.

subtest 'an image of a time to come drops nothing' => sub {
    $t->stop;

    my $image = $t->read_file('recent.bloom');
    substr($image, 128, 8) = pack 'Q<', ($now + 90 * 86400) * 1000;
    substr($image, 136, 16) = 'another build id';
    substr($image, 4092, 4)
        = pack 'L<', BloomTest::Journal::crc32c(substr $image, 0, 4092);
    $t->write_file('tomorrow.bloom', $image);

    begin_with_hours('plain');
    add($t, 'ids', [keys_of('fresh', 50)]);

    my $mark = $t->log_mark;

    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('tomorrow.bloom'))->status, 200,
       'it is loaded');
    like($t->log_since($mark),
         qr/\[warn\].* complete, as of .* UTC, which is still to come: .*clock/,
         'and warned of');
    is(sure($t, 'ids', keys_of('fresh', 50)), '1' x 50, 'fresh keys stay');
    is(hours(), '11111', 'older ones as well');
    is(sure($t, 'ids', 'recent', 'id1', 'plain'), '110', 'the image serves');

    add($t, 'ids', [keys_of('later', 50)]);
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', keys_of('fresh', 50), keys_of('later', 50)), '1' x 100,
       'after a restart, too, with those that were added since');
    is(hours(), '11111', 'and the older ones');

    # where an image has covered some, and segments are gone for it

    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('between.bloom'))->status, 200,
       'one of the past');
    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'lets segments be removed');
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('tomorrow.bloom'))->status, 200,
       'then one of a time to come is not too old');
    is(sure($t, 'ids', keys_of('fresh', 50), keys_of('later', 50)), '1' x 100,
       'and fresh keys stay');
    $t->stop;
};


# Until a start would begin with the image that serves, the journal keeps what
# the one before needs.

subtest 'an upload that does not become the base' => sub {
    begin_with_hours('plain');

    $disk->refuse('EIO', 'rename');
    is_error(api($t, PUT => 'zones/ids/image',
                 body => $t->read_file('between.bloom')),
             503, qr/serves, but after a restart the one before will/,
             'cannot be kept');
    $disk->allow;
    is(hours(), '00011', 'and serves');

    # a new helper looks for what is not needed before it writes one

    $t->expect_log(qr/exited on signal 9/);
    $t->kill_helper;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'a checkpoint');
    cmp_ok(segments(), '>=', 5, 'all segments are there');

    $t->kill_all;
    $t->run;
    is(hours(), '11111', 'after a restart the one before has all it had');
    is(sure($t, 'ids', 'plain', 'between'), '10', 'and serves');

    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('between.bloom'))->status, 200,
       'one that is kept');
    ok(wait_until(sub { !-e "$state/journal.0000000000000000" }),
       'lets segments be removed');
    $t->stop;
};


subtest 'an upload that does not become the base by a death' => sub {
    plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
        unless $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

    begin_with_hours('plain');

    my $stop = stop_at('switched');
    my $c = $t->connect;
    $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                              body => $t->read_file('between.bloom')));
    my $helper = stopped($stop);
    is(hours(), '00011', 'it serves');

    # the next helper loads it again, and looks for what is not needed before

    $stop = stop_at('switch');
    kill 'KILL', $helper or die "kill: $!";
    stopped($stop);
    cmp_ok(segments(), '>=', 5, 'all segments are there');

    $t->kill_all;
    $t->run;
    is(hours(), '11111', 'after a restart the one before has all it had');
    is(sure($t, 'ids', 'plain', 'between'), '10', 'and serves');
};


subtest 'max_age' => sub {
    $t->stop;
    remove_tree("$dir/state");
    install('between');

    configure($t, ['zone=ids file=ids.bloom max_age=2h'], api => 1);
    $t->run;
    is(ask($t, 'ids', 'id1', 'no'), '??', 'an image that is too old counts as'
                                          . ' not loaded');
    like(api($t, GET => 'zones/ids')->body, qr/stale/, 'the state says so');

    install('recent');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'a newer one');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'serves');

    install('plain');
    is_error(api($t, POST => 'zones/ids/reload'), 422, qr/as.of/,
             'one that does not say is refused');
    is(ask($t, 'ids', 'id1', 'no'), '10', 'the other one serves on');
    $t->stop;

    # one that grows old while it serves

    image('growing', time - 7195);
    install('growing');
    configure($t, ['zone=ids file=ids.bloom max_age=2h'], api => 1);
    $t->run;
    ok(wait_until(sub { ask($t, 'ids', 'id1', 'no') eq '??' }),
       'one that grows too old');
};


done_testing;
