#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Added keys of any bytes can be recovered from a zone's journal: with
# "journal --keys -0" and "build -0", or, if a key has a zero byte, with --json
# and --from json.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Tool qw(tool_path);
use BloomTest::Process qw(run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $tool = tool_path();

$t->build_image('none.bloom', [], '--allow-empty', '-n', '1k');
configure($t, [map { "zone=$_ file=none.bloom" } 'bytes', 'nul', 'copy'],
          api => 1, workers => 1);
$t->run;

# Keys with each byte, in the middle and alone; with all bytes; with line ends;
# with the first bytes of other kinds of files.  Those that are not UTF-8 are
# sent as lines, those with line ends as JSON.

my @lines = ("\x1f\x8b\x08", (map { chr, "a${\chr}b" } 1 .. 9, 11 .. 12,
                                                       14 .. 255),
             "a\rb", "\ra", "\xef\xbb\xbfmark",
             join '', map { chr } grep { $_ != 10 } 1 .. 255);
my @ascii = ("\n", "\r", "a\nb", "a\rb\r", "\na", "a\n", "a\r\n", "\r\n",
             "one\n\ntwo", join '', map { chr } 1 .. 127);
my @nul = ("\0", "a\0b", "\0\0", "\0a", "a\0", "\n\0\r",
           join '', map { chr } 0 .. 127);

sub json_body {
    return headers => { 'Content-Type' => 'application/json' },
           body => JSON::PP->new->ascii->encode([@_]);
}

for my $zone ('bytes', 'nul') {
    my $response = api($t, POST => "zones/$zone/keys",
                       body => join '', map { "$_\n" } @lines);
    is($response->status, 200, "keys of any bytes are added to '$zone'");

    my @json = (@ascii, $zone eq 'nul' ? @nul : ());
    $response = api($t, POST => "zones/$zone/keys", json_body(@json));
    is($response->status, 200, "keys with line ends are added to '$zone'");
}

my %distinct = map { $_ => 1 } @lines, @ascii;
my $distinct = keys %distinct;

sub pipeline {
    my ($zone, $journal, $build) = @_;

    unlink "$dir/$zone.bloom";

    return run_command(['sh', '-c',
        "'$tool' journal --keys $journal '$dir/state/$zone'"
        . " | '$tool' build -p 1e-9 --json $build -o '$dir/$zone.bloom'"]);
}

# Lines cannot carry these keys; no image is built of only some of the keys.

for (['bytes', ''], ['nul', ''], ['nul', '-0']) {
    my ($zone, $how) = @$_;
    my ($exit, undef, $err) = pipeline($zone, $how, $how);

    is($exit, 2, "journal --keys $how of '$zone' and build fail together");
    like($err, $how ? qr/contains a zero byte.*--json/ : qr/a line end.*-0.*--json/,
         "journal --keys $how of '$zone' says what to do");
    like($err, qr/the input has no keys/, "build gets no key of '$zone'");
    ok(!-e "$dir/$zone.bloom",
       "no image is built of only some keys of '$zone'");
}

{
    my ($exit, $out, $err) = pipeline('bytes', '-0', '-0');

    is("$exit $err", '0 ', 'journal --keys -0 and build -0 succeed');
    is(JSON::PP::decode_json($out)->{items}, $distinct,
       'journal --keys -0 and build -0 give as many keys as were added');

    # sorted: a key that begins as gzip data does must not come first

    my ($status, $count) = $t->run_tool('test', '-c', '-0',
        "$dir/bytes.bloom",
        { stdin => join '', map { "$_\0" } sort keys %distinct });
    is("$status $count", "0 $distinct present, 0 absent\n",
       'journal --keys -0 and build -0 give all keys that were added');
}

{
    my ($exit, $out, $err) = pipeline('nul', '--json', '--from json');

    is("$exit $err", '0 ', 'journal --keys --json and build --from json succeed');
    is(JSON::PP::decode_json($out)->{items}, $distinct + @nul,
       'journal --keys --json and build --from json give as many keys as were'
       . ' added');

    is(api($t, PUT => 'zones/copy/image', body => $t->read_file('nul.bloom'))
           ->status, 200, 'the image of these keys is loaded');
    is_deeply(api($t, POST => 'zones/copy/test', json_body(@ascii, @nul))
                  ->json->{answers}, [('present') x (@ascii + @nul)],
              'the image has the keys with line ends and zero bytes');
    is_deeply([lookup_keys($t, 'copy', grep { !/\r\z/ } @lines)],
              [('present') x grep { !/\r\z/ } @lines],
              'the image has the keys that are not UTF-8');
}

$t->stop;
done_testing;
