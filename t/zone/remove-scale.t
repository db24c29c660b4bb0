#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Of many keys, many are removed, half of them false positives that were found
# by asking.  Afterwards each removed key is absent, each other key answers as
# before, and so do the other false positives.  TEST_NGINX_LARGE=1 takes ten
# million keys and 100,000 removals, which needs a few minutes and a gigabyte of
# memory.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(now wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

my $large = $ENV{TEST_NGINX_LARGE};
my $keys = $large ? 10_000_000 : 100_000;
my $removals = $keys / 100;
my $half = $removals / 2;

use constant BODY => 100_000;      # keys in a request


# Writes the numbered keys of the first half of all, which the images have; the
# others are added.  A load that replays the additions of the last hour replays
# all of them.

sub make_image {
    my ($seed) = @_;

    my $file = $t->testdir . '/keys.txt';

    if (!-e $file) {
        open my $out, '>', $file or die "$file: $!";
        print $out "id$_\n" for 1 .. $keys / 2;
        close $out or die "$file: $!";
    }

    my ($exit, $out, $err) = $t->run_tool(
        'build', '-o', $t->testdir . "/image$seed.bloom", '-p', '0.01',
        '-n', $keys, '--seed', $seed, '--as-of', rfc3339(time - 600), $file,
        { limit => 300 });
    $exit == 0 or die "build: $err";
    install_image($t, "image$seed");
}


# Returns a letter for each key: p(resent), a(bsent) or u(nknown).

sub answers {
    my (@keys) = @_;

    my $answers = '';

    while (my @some = splice @keys, 0, BODY) {
        my $response = api($t, POST => 'zones/ids/test',
                           body => join "\n", @some);
        my ($list) = $response->body =~ /"answers":\[(.*?)\]/
            or die "unexpected answer: $response";

        $list =~ s/"(.)[a-z]*",?/$1/g;
        $answers .= $list;
    }

    return $answers;
}


# Returns how many of the numbered keys have each answer.

sub count_of_all {
    my (%but) = @_;

    my %count = (p => 0, a => 0, u => 0);

    for (my $first = 1; $first <= $keys; $first += BODY) {
        my @some = grep { !$but{$_} }
                        map { "id$_" } $first .. $first + BODY - 1;

        $count{$_}++ for split //, answers(@some);
    }

    return \%count;
}


sub send_keys {
    my ($path, @keys) = @_;

    my %sum;

    while (my @some = splice @keys, 0, BODY) {
        my $response = api($t, POST => "zones/ids/$path",
                           body => join '', map { "$_\n" } @some);
        $response->status == 200 or die "$path: $response";

        my $json = $response->json;
        $sum{$_} += $json->{$_} // 0
            for qw(received added already_present removed absent);
    }

    return \%sum;
}


make_image(1);
configure($t, ["zone=ids file=ids.bloom removals=$removals"], api => 1);
$t->run;
send_keys('keys', map { "id$_" } $keys / 2 + 1 .. $keys);

is_deeply(count_of_all(), { p => $keys, a => 0, u => 0 },
          "all $keys keys are present before the removals");


# Some keys of the image, some that were added, and false positives: as many to
# remove as to leave

my (@false, $asked);

while (@false < 2 * $half) {
    my @never = map { 'never' . $asked++ } 1 .. BODY;
    my $answers = answers(@never);

    push @false, map { $never[$_] }
                     grep { substr($answers, $_, 1) eq 'p' } 0 .. $#never;
}

my @left = @false[$half .. 2 * $half - 1];
my @removed = ((map { 'id' . $_ * 200 } 1 .. $half), @false[0 .. $half - 1]);
my %removed = map { $_ => 1 } @removed;

note("$asked keys asked to find " . 2 * $half . ' false positives');
is_deeply(send_keys('remove', @removed),
          { received => $removals, added => 0, already_present => 0,
            removed => $removals, absent => 0 },
          "$removals keys are removed");


sub all_answer_as_before {
    my ($when, $same) = @_;

    is_deeply(count_of_all(%removed),
              { p => $keys - $half, a => 0, u => 0 },
              "$when, each of " . ($keys - $half) . ' other keys is present');
    is(answers(@removed) =~ tr/a//, $removals,
       "$when, each of $removals removed keys is absent");
    is(answers(@left) =~ tr/p//, $half,
       "$when, each of $half false positives that were left is present")
        if $same;
}

all_answer_as_before('after the removals', 1);
is(zone_state($t, 'ids')->{removals}{count}, $removals,
   'the zone counts its removed keys');

$t->kill_all;
$t->run;
wait_until(sub { answers('id1') eq 'p' });
all_answer_as_before('after kill -9 of all processes', 1);

# another image of the same keys, complete up to a time before the removals

make_image(2);
is(api($t, POST => 'zones/ids/reload')->status, 200, 'another image is loaded');
all_answer_as_before('after a load of another image', 0);


# An addition makes its own key present, and no other removed key.

my @again = @removed[map { $_ * 10 } 0 .. $removals / 10 - 1];

send_keys('keys', @again);
delete @removed{@again};
is(answers(@again) =~ tr/p//, scalar @again,
   'keys that were added again are present');
is(answers(sort keys %removed) =~ tr/a//, scalar keys %removed,
   'the other removed keys are absent');

done_testing;
