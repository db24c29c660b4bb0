#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone is downloaded as an image and uploaded again.  The image knows which
# keys were removed, whatever the journal says about them: keys that were
# added, removed and added before; those of another image; and those that change
# after the download.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k');
configure($t, ['zone=ids file=ids.bloom removals=1000'], api => 1);
$t->run;

sub remove {
    my $response = api($t, POST => 'zones/ids/remove', body => join "\n", @_);
    $response->status == 200 or die "not removed: $response";
}

# records have milliseconds, and a removal counts if it is later than the image

sub later { select undef, undef, undef, 0.01 }

later();
add($t, 'ids', [map { "live$_" } 1 .. 6]);
remove('live1', 'live2', 'live3', 'id1');    # were added
add($t, 'ids', ['live2', 'live3']);          # lifts
remove('live3');
later();

my $image = api($t, GET => 'zones/ids/image')->body;

later();
remove('live4', 'id2');
add($t, 'ids', ['live1']);

my @keys = ((map { "live$_" } 1 .. 6), (map { "id$_" } 1 .. 3), 'no');
my $now = '1100110010';

sub answers {
    my ($name) = @_;

    is(ask_until_known($t, 'ids', @keys), $now, $name);
}

answers('keys answer by the last operation');

my $file = $t->write_file('downloaded.bloom', $image);
my ($exit, $out) = $t->run_tool('test', $file,
                                { stdin => join '', map { "$_\n" } @keys });

is(join('', $out =~ /^(present|absent)/mg) =~ s/present/1/gr =~ s/absent/0/gr,
   '0101110110', 'the image has the keys of its time');

is(api($t, PUT => 'zones/ids/image', body => $image)->status, 200,
   'the image is uploaded');
answers('keys answer as before after the upload');

$t->kill_all;
$t->run;
answers('keys answer as before after kill -9 of all processes');

is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
   'a checkpoint is written');
$t->kill_all;
$t->run;
answers('keys answer as before after a start from a checkpoint');

is(api($t, POST => 'zones/ids/reload')->status, 200,
   'the image without live keys is loaded');
answers('keys answer as before after a load of the first image');

done_testing;
