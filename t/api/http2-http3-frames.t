#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Bodies of requests arrive whole, however the DATA frames of HTTP/2 and HTTP/3
# cut them: in two at every byte, in random pieces of 0 to 16384 bytes with empty
# frames among them, and, in HTTP/3, in one frame of a megabyte or more.
# FRAMES_SEED repeats a run, and FRAMES_ROUNDS makes it longer.

use strict;
use warnings;

use List::Util qw(max min);

use BloomTest;
use BloomTest::Api;
use BloomTest::Protocols;
use BloomTest::Zones;

use constant LARGEST => 16384;    # frame of HTTP/2 that nginx accepts

my $seed = $ENV{FRAMES_SEED} // int rand 2 ** 31;
my $rounds = $ENV{FRAMES_ROUNDS} // 40;

my $t = BloomTest->new;
my $listen = listen_for_all($t);

configure($t, ['zone=seen capacity=1m fpr=1e-9'], api => 1,
          server => $listen);
$t->run;


my (@keys, $calls);

# Returns keys that no other call returns.

sub new_keys {
    my ($count) = @_;

    $calls++;

    return map { "n$calls-$_" } 1 .. $count;
}


# Sends a body of keys in frames of the given sizes, and tests that nginx has
# received and added as many keys as there are.  They are looked up in the end:
# if all are present then, nginx has received these keys and no other ones.
# Returns whether that is so.

sub arrives {
    my ($c, $keys, $body, $pieces, %option) = @_;

    my $response = $c->ask(POST => '/bloom/zones/seen/keys', body => $body,
                           pieces => $pieces, %option);
    my $got = eval { $response->json } // {};
    my $fine = $response->status == 200
               && ($got->{received} // -1) == @$keys
               && ($got->{added} // -1) == @$keys;

    push @keys, @$keys;
    diag "expected " . @$keys . " keys from frames of @$pieces bytes:\n"
         . $response if !$fine;

    return $fine;
}

sub all_are_present {
    my ($name) = @_;

    my $absent = 0;

    while (my @some = splice @keys, 0, 20_000) {
        $absent += grep { $_ ne 'present' } lookup_keys($t, 'seen', @some);
    }

    is($absent, 0, "every key is present: $name");
}


sub json { return headers => ['content-type' => 'application/json'] }


# Each cut is between two frames; at both ends, one of the frames is empty.

sub test_cuts {
    my ($c) = @_;

    my @forms = (
        ['lines', sub { join "\n", @_ }],
        ['lines with CR LF, and empty ones',
         sub { "\r\n" . join("\r\n\n", @_) . "\r\n" }],
        ['JSON', sub { '["' . join('" , "', @_) . '"]' }, json()],
        ['JSON with escapes',
         sub { '[' . join(',', map { s/(.)$/sprintf '\\u%04x', ord $1/er
                                     =~ s/.*/"$&"/r } @_) . ']' }, json()],
    );

    for my $form (@forms) {
        my ($name, $write, %option) = @$form;
        my $length = length $write->(new_keys(2));
        my ($cuts, $fine) = (0, 0);

        for (my $cut = 0; $cut <= $length; $cut++) {
            for my $unsized (0, 1) {
                my @keys = new_keys(2);
                my $body = $write->(@keys);

                $length = length $body;
                $cuts++;
                $fine += arrives($c, \@keys, $body,
                                 [$cut, $length - $cut],
                                 unsized => $unsized, %option);
            }
        }

        is($fine, $cuts, "$name: a body arrives that is cut at any byte");
    }

    all_are_present('bodies that were cut in two');
}


# Returns random sizes of frames for a body: small ones, large ones, or both.

sub random_pieces {
    my ($length) = @_;

    my $most = (1, 4, 64, 1024, LARGEST)[rand 5];

    # a body of many frames takes its time

    $most = max($most, int($length / 500) + 1);
    $most = LARGEST if $most > LARGEST;

    my @pieces;

    for (my $left = $length; $left > 0; $left -= $pieces[-1]) {
        push @pieces, rand() < 0.2 ? 0
                      : rand() < 0.1 ? min($left, LARGEST)
                      : min($left, 1 + int rand $most);
    }

    push @pieces, 0 if rand() < 0.3;

    return \@pieces;
}


sub test_random {
    my ($c) = @_;

    srand $seed;

    my ($fine, $frames, $empty) = (0, 0, 0);

    for (1 .. $rounds) {
        my @keys = new_keys(1 + int rand((1, 20, 300, 6000)[rand 4]));
        my $is_json = rand() < 0.3;
        my $end = rand() < 0.5 ? "\n" : "\r\n";
        my $body = $is_json ? '["' . join('","', @keys) . '"]'
                            : join $end, @keys, '';
        my $pieces = random_pieces(length $body);

        # padding counts as a part of the frame

        my %padding;
        if (max(@$pieces) < LARGEST - 256 && $c->name eq 'HTTP/2'
            && rand() < 0.3)
        {
            %padding = (padding => int rand 256);
        }

        $frames += @$pieces;
        $empty += grep { $_ == 0 } @$pieces;
        $fine += arrives($c, \@keys, $body, $pieces,
                         unsized => rand() < 0.5, %padding,
                         $is_json ? json() : ());
    }

    is($fine, $rounds, "each of $rounds bodies arrives in random frames")
        or diag "repeat this with FRAMES_SEED=$seed";
    note "seed $seed: $frames frames, of which $empty are empty";
    cmp_ok($empty, '>=', $rounds / 2, 'many of the frames are empty');
    all_are_present('random frames');
}


# HTTP/3 has no largest frame; its packets cut the frame where they want.

sub test_large {
    my ($c) = @_;

    my @keys = new_keys(100_000);
    my $body = join "\n", @keys;
    my $piece = $c->name eq 'HTTP/3' ? length $body : LARGEST;
    my $what = $c->name eq 'HTTP/3' ? 'one frame' : 'the largest frames';

    cmp_ok(length $body, '>', 2 ** 20, 'the body has more than 1 MiB');
    is_added($c->ask(POST => '/bloom/zones/seen/keys', body => $body,
                     piece => $piece, unsized => 1),
             100_000, 100_000, 0, undef, "$what of keys arrives");
    is(scalar(grep { $_ ne 'present' } lookup_keys($t, 'seen',
                                                   @keys[0 .. 9999])),
       0, 'its keys are present');
}


over_each($t, sub {
    my ($class) = @_;

    my $c = $class->new($t);

    subtest 'every cut in two' => sub { test_cuts($c) };
    subtest 'random frames' => sub { test_random($c) };
    subtest 'large frames' => sub { test_large($c) };
});


done_testing;
