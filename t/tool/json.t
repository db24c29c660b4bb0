#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the man page documents exactly the members that each command prints
# with --json.

use strict;
use warnings;

use FindBin;
use JSON::PP ();

use BloomTest;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Journal;
use BloomTest::Tool qw(content_of tool_test);

my $t = tool_test();
my $dir = $t->testdir;


# ---- the members that the man page documents ----

my (%documented, %of_image, %of_fuse, $command, $name);

my ($section) = content_of("$FindBin::Bin/../../docs/ngx-bloom.1")
                =~ /^\.SH JSON\n(.*?)^\.SH /ms
    or BAIL_OUT('docs/ngx-bloom.1 has no section JSON');

my $heading = '';

for (split /\n/, $section) {
    $command = $1 if /^\.SS (\w+)/;
    $heading = $_ if /:\z/;

    if (/^\.B (\w+)\z/ && $command) {
        $name = $1;
        $documented{$command}{$name} = 1;
        $of_image{$name} = 1
            if $command eq 'info' && $heading =~ /^For each image/;
    }

    $of_fuse{$name} = 1 if /^Layout fuse only: /;

    $documented{$command}{'members of info'} = 1
        if /^All members that info has for an image, and/;
}

for my $members (values %documented) {
    if (delete $members->{'members of info'}) {
        $members->{$_} = 1 for keys %of_image;
    }
}

# these commands take and write no images in layout fuse

for my $members (@documented{qw(add import merge)}) {
    delete @$members{keys %of_fuse};
}


# ---- the members that the commands print, from runs of each kind ----

$t->write_file('ids', join '', map { "key-$_\n" } 1 .. 100);
$t->write_file('bitmap', "\x55" x 100);

my $segment = BloomTest::Journal->new;
$segment->append(['one', "\xff"]);
$segment->append_changes('ids', 0, 1, [], ['two']);
mkdir "$dir/journal";
$t->write_file('journal/1', $segment->segment);
$t->write_file('broken', 'NGXBLOOM' . "\0" x 200);

my $image = "$dir/ids.bloom";
my $fuse = "$dir/fuse.bloom";
my $removed = $t->write_file('removed.bloom', with_exceptions(
    content_of($t->build_image('all.bloom', ["\xff"])), [[2, 1, "\xff"]]));
my $hosts = $t->build_image('hosts.bloom', ['evil.example'], '--form', 'host');

my @import = ('--from', 'bitmap', '--scheme', 'double', '--bits', '800',
              '--hashes', '3');
my $imported = "$dir/imported.bloom";

$t->run_tool('import', @import, '-o', $imported, "$dir/bitmap");

my %runs = (
    build    => [['-o', $image, "$dir/ids"],
                 ['-o', "$dir/like.bloom", '--like', $imported, "$dir/ids"],
                 ['-o', $fuse, '--layout', 'fuse', "$dir/ids"]],
    info     => [[$image], [$fuse], [$imported], ['--removed', $removed],
                 ['--exceptions', $removed]],
    test     => [[$image, 'key-1', "\xff"], ['-c', $image, 'key-1'],
                 [$hosts, 'www.evil.example', '/x']],
    expand   => [['evil.example', '/x']],
    verify   => [[$image], ["$dir/broken"], ["$dir/none"]],
    size     => [['-n', '1m', '-p', '0.01'],
                 ['-n', '1m', '-p', '0.01', '--max-keys', '2m'],
                 ['-n', '1m', '-p', '0.01', '--expire', '24h']],
    add      => [[$image, "$dir/ids"], ["$dir/like.bloom", "$dir/ids"]],
    merge    => [['-o', "$dir/both.bloom", $image, $image],
                 ['-o', "$dir/both.bloom", $imported, $imported]],
    journal  => [["$dir/journal/1"], ['--keys', "$dir/journal"],
                 ["$dir/broken"]],
    import   => [[@import, '-o', "$dir/again.bloom", "$dir/bitmap"]],
    export   => [['--to', 'bitmap', '--key', 'ids', '-o', "$dir/ids.resp",
                  $imported]],
    analyze  => [['-n', '100', '-p', '0.1', '--runs', '2', '--steps', '2',
                  '--asked', '100', '-q']],
);

sub printed_by {
    my ($command) = @_;

    my %printed;

    for my $arguments (@{ $runs{$command} }) {
        my (undef, $out) = $t->run_tool($command, '--json', @$arguments);

        for my $object (JSON::PP->new->incr_parse($out)) {
            $printed{$_} = 1 for keys %$object;
        }
    }

    return \%printed;
}


# build makes the images that other commands read

for my $command ('build', sort grep { $_ ne 'build' } keys %runs) {
    is_deeply([sort keys %{ $documented{$command} }],
              [sort keys %{ printed_by($command) }],
              "the man page documents the members of $command --json");
}

# follow and status ask servers: follow.t and status.t read what they print

is_deeply([sort grep { !/^(?:follow|status)$/ } keys %documented],
          [sort keys %runs],
          'the man page documents the JSON of these commands');

done_testing();
