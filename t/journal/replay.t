#!/usr/bin/perl

# The journal at start: replayed whole; a torn tail is cut; nothing that is
# valid is dropped; where records may be missing the zone cannot tell.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my @ids = keys_of('id', 10);

$t->build_image('ids.bloom', \@ids, '-p', '1e-9', '-n', '50k');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2);


# Begins anew with these segments, {base => bytes}, and nothing else.

sub begin_with {
    my (%segment) = @_;

    remove_tree("$dir/state");
    make_path($state, { mode => 0700 });
    chmod 0700, "$dir/state";

    for my $base (keys %segment) {
        $t->write_file(sprintf('state/ids/journal.%016x', $base),
                       $segment{$base});
    }
}


sub segments { return files("$state/journal.*") }


# What ngx-bloom says of the journal: an object for each segment.

sub listed {
    my ($exit, $out) = $t->run_tool('journal', '--json', segments());

    return $exit, JSON::PP->new->incr_parse($out);
}


subtest 'what was added' => sub {
    $t->run;
    add($t, 'ids', [map { "a$_" } 1 .. 2000]);
    add($t, 'ids', [map { "d$_" } 1 .. 1000], durable => 1);
    $t->get("/add/ids?k=b$_") for 1 .. 50;

    my @keys = ((map { "a$_" } 1 .. 2000), (map { "d$_" } 1 .. 1000),
                map { "b$_" } 1 .. 50);

    my ($exit, $out) = $t->run_tool('journal', '--keys', segments());
    is($exit, 0, 'the tool reads the journal of a zone that serves');
    is(join("\n", sort split /\n/, $out), join("\n", sort @keys),
       'it has just these keys');

    for my $how ('kill_all', 'stop') {
        $t->$how;
        $t->run;
        is(sure($t, 'ids', @ids, @keys), '1' x (10 + @keys),
           "all are there after $how");
        is(sure($t, 'ids', map { "no$_" } 1 .. 500), '0' x 500,
           'and nothing else');
    }

    is_added(api($t, POST => 'zones/ids/keys', body => join "\n", @keys),
             scalar @keys, 0, scalar @keys, undef, 'they are known');
    add($t, 'ids', ['later']);
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', 'later', @keys), '1' x (1 + @keys),
       'what is added later follows');
    $t->stop;

    ($exit, my @segments) = listed();
    is($exit, 0, 'the journal is whole');
    is(scalar(grep { $_->{broken} || $_->{torn} || $_->{missing} } @segments),
       0, 'with nothing broken, torn or missing');
};


subtest 'several segments' => sub {
    begin_with();
    $t->run;

    my @batches = map { my $n = $_; [map { "long-key-$n-$_" . 'x' x 80 }
                                         1 .. 5000] } 1 .. 8;
    add($t, 'ids', $_) for @batches;
    cmp_ok(scalar segments(), '>', 1, 'the journal has several');

    $t->kill_all;
    $t->run;

    my $r = api($t, POST => 'zones/ids/test',
                body => join "\n", map { @$_ } @batches);
    wait_until(sub {
        $r = api($t, POST => 'zones/ids/test',
                 body => join "\n", map { @$_ } @batches);
        return !grep { $_ eq 'unknown' } @{ $r->json->{answers} };
    });
    is(scalar(grep { $_ eq 'present' } @{ $r->json->{answers} }), 40_000,
       'all of them are read');
    $t->stop;

    my ($exit, @segments) = listed();
    is($exit, 0, 'all are whole');
    my $keys = 0;
    $keys += $_->{keys} for @segments;
    cmp_ok($keys, '>=', 40_000, 'with all keys');
};


subtest 'segments of another writer' => sub {
    my $first = BloomTest::Journal->new(created => 1_600_000_000_000);
    $first->append(['w1', 'w2']);
    $first->append(["any\xff", 'x' x 65535]);
    my $second = BloomTest::Journal->new(base => $first->{size},
        sequence => $first->{next}, created => 1_600_000_100_000);
    $second->append(['w3']);

    begin_with(0 => $first->segment, $first->{size} => $second->segment);
    $t->run;
    is(sure($t, 'ids', @ids, qw(w1 w2 w3 w4 any%ff)), '1' x 13 . '0' . '0',
       'are read');
    is(api($t, GET => 'zones/ids/keys?key=any%ff')->json->{answer}, 'present',
       'with keys of any bytes');

    add($t, 'ids', ['w4']);
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', qw(w1 w2 w3 w4 w5)), '11110', 'and written on');
    $t->stop;

    my ($exit, @segments) = listed();
    is($exit, 0, 'the whole is a good journal');
    is($segments[-1]{missing} + $segments[-1]{broken}, 0, 'without a gap');
};


# A record that was being written: nobody was told that its keys are added.

subtest 'torn tails' => sub {
    my $journal = BloomTest::Journal->new;
    $journal->append(['t1', 't2']);
    my $at = $journal->append(['torn1', 'torn2']);
    my $whole = $journal->segment;
    my $end = $journal->{used};

    for my $cut ($at + 1, $at + 8, $at + 31, $at + 32, $end - 5) {
        my $left = $cut - $at;

        for (['zeros behind it', substr($whole, 0, $cut)
              . "\0" x (length($whole) - $cut)],
             ['the file ends', substr($whole, 0, $cut)],
             ['rubbish behind it', substr($whole, 0, $cut)
              . "\xa5" x 100 . "\0" x (length($whole) - $cut - 100)])
        {
            my ($how, $content) = @$_;
            begin_with(0 => $content);
            my $mark = $t->log_mark;
            $t->run;

            my $answers = sure($t, 'ids', qw(id1 t1 t2 torn1 torn2 no));
            is($answers, '111000', "$left bytes of a record, $how: cut");

            add($t, 'ids', ['after1']);
            $t->kill_all;
            $t->run;
            is(sure($t, 'ids', qw(t1 t2 torn1 after1 no)), '11010',
               'what follows is kept');
            $t->kill_all;

            my ($exit, $first) = listed();
            is($exit, 0, 'and the journal is whole again');
            is("@$first{qw(torn broken missing)}", '0 0 0', 'with nothing torn');
        }
    }
};


# The system may have written what came later and not what came first.

subtest 'damage' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

    my $make = sub {
        my ($created) = @_;
        my $journal = BloomTest::Journal->new(created => $created);
        my @at = map { $journal->append(["r$_", "s$_"]) } 1 .. 3;
        return ($journal, @at);
    };

    my $now = int(time) * 1000 - 60_000;
    my ($journal, @at) = $make->($now);

    for (['a flipped bit', sub { substr($_[0], $at[1] + 33, 1) ^= "\1" }],
         ['a flipped bit of a header',
          sub { substr($_[0], $at[1] + 1, 1) ^= "\1" }],
         ['zeros', sub { substr($_[0], $at[1], $at[2] - $at[1])
                             = "\0" x ($at[2] - $at[1]) }])
    {
        my ($what, $damage) = @$_;
        my $content = $journal->segment;
        $damage->($content);
        begin_with(0 => $content);

        my $mark = $t->log_mark;
        $t->run;
        is(ask($t, 'ids', qw(id1 r1 s1 r3 s3)), '11111',
           "$what: what is valid behind it is kept");
        is(ask($t, 'ids', qw(r2 no)), '??', 'nothing is said to be absent');
        like($t->wait_for_log(qr/has lost added keys/, $mark), qr/\[alert\]/,
             'the log says so');
        my $state = zone_state($t, 'ids');
        like(JSON::PP::encode_json($state), qr/damaged/, 'and so does the state');

        add($t, 'ids', ['new1']);
        is(ask($t, 'ids', 'new1', 'no'), '1?', 'additions go on');
        $t->kill_all;
        $t->run;
        is(ask($t, 'ids', qw(r1 r2 r3 new1 no)), '1?11?',
           'after a restart, too');

        # it ends with an image that has all that may have been lost

        $t->build_image('whole.bloom', [@ids, 'r2', 's2'], '-p', '1e-9', '-n',
                        '50k');
        is(api($t, PUT => 'zones/ids/image',
               body => $t->read_file('whole.bloom'))->status, 200,
           'an image that does not say as of when');
        is(ask($t, 'ids', qw(r2 no)), '1?', 'does not end it');
        $t->stop;
    }

    # keys that were lost long before the image's as_of are in it, or are no
    # longer wanted

    ($journal, @at) = $make->($now - 5 * 3600_000);
    my $content = $journal->segment;
    substr($content, $at[1] + 33, 1) ^= "\1";
    begin_with(0 => $content);
    $t->run;
    is(ask($t, 'ids', qw(r1 no)), '1?', 'old damage');
    $t->build_image('new.bloom', \@ids, '-p', '1e-9', '-n', '50k', '--as-of',
                    rfc(time));
    is(api($t, PUT => 'zones/ids/image',
           body => $t->read_file('new.bloom'))->status, 200,
       'an image that is newer');
    is(sure($t, 'ids', qw(id1 no)), '10', 'ends it');
    $t->kill_all;
    $t->run;
    is(sure($t, 'ids', qw(id1 no)), '10', 'for good');
    $t->stop;
};


sub rfc {
    my @time = gmtime $_[0];

    return sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $time[5] + 1900,
                   $time[4] + 1, @time[3, 2, 1, 0];
}


subtest 'missing segments' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['m1']);
    my $third = BloomTest::Journal->new(base => 2 * $first->{size},
                                        sequence => $first->{next} + 5);
    $third->append(['m3']);

    begin_with(0 => $first->segment, 2 * $first->{size} => $third->segment);
    my $mark = $t->log_mark;
    $t->run;
    is(ask($t, 'ids', qw(id1 m1 m3 no)), '111?', 'cannot be known');
    like($t->wait_for_log(qr/lacks a segment/, $mark), qr/\[alert\]/,
         'the log says so');
    $t->stop;
};


subtest 'journals of others' => sub {
    my $newer = BloomTest::Journal->new(version => 2);
    $newer->append(['n1']);
    begin_with(0 => $newer->segment);

    my $content = $t->read_file('state/ids/journal.0000000000000000');
    my $log = $t->run_fails;
    like($log, qr/\[emerg\].*journal\.0000000000000000/, 'a newer version');
    like($log, qr/newer/, 'is refused with what to do');
    my ($exit, $output) = $t->test_config;
    is($exit, 1, 'nginx -t refuses it, too');
    like($output, qr/newer/, 'and says the same');
    ok($content eq $t->read_file('state/ids/journal.0000000000000000'),
       'it is left as it was');

    # and a running nginx does not let go of what it has

    begin_with();
    $t->run;
    add($t, 'ids', ['x1']);
    is(ask($t, 'ids', 'x1', 'no'), '10', 'a good one serves');
    $t->stop;
};


done_testing;
