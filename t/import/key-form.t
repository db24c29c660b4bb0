#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests imports of filters whose keys have a key form (--form), and the check
# that an import finds keys of its source (--check).  nginx then looks each
# spelling of a key up, also with the two hashes that refer to the key's bytes,
# and keeps keys that are added.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Schemes qw(bits_of);
use BloomTest::Tool qw(info json tool tool_test);
use BloomTest::Zones;

my $t = tool_test(module => 1);
my $dir = $t->testdir;

my @schemes = qw(go-zero bits-and-blooms double);
my ($m, $k) = (8009, 5);

# so few bits may give a warning of the measured rate

my $warning = qr/\A(?:ngx-bloom import: warning: .*\n)?\z/;

# Writes a bitmap with these keys.  Returns the arguments that import it.

sub bitmap {
    my ($name, $scheme, @keys) = @_;

    my $bitmap = "\0" x 1002;

    substr($bitmap, $_ >> 3, 1) |= chr(0x80 >> ($_ & 7))
        for map { bits_of($scheme, $_, $m, $k) } @keys;

    return ('--from', 'bitmap', '--scheme', $scheme, '--bits', $m, '--hashes',
            $k, $t->write_file($name, $bitmap));
}

my @hosts = map { "bad$_.example" } 1 .. 60;
my @urls = map { "bad$_.example/dir/" } 1 .. 60;

for my $scheme (@schemes) {
    my $hosts = $t->write_file('hosts', join '', map { "WWW.$_:80\n" } @hosts);
    my $urls = $t->write_file('urls', join '', map { s/bad/BAD/r . "x.exe\n" }
                                               @urls);

    my $out = tool(0, $warning, 'import', '--form', 'host', '--check', $hosts,
                   '-o', "$dir/$scheme-host.bloom",
                   bitmap('bits', $scheme, @hosts));
    like($out, qr/: finds all 60 keys of --check$/m,
         "an import says what it found ($scheme)");
    is(info("$dir/$scheme-host.bloom")->{form}, 'host',
       "the image has the key form ($scheme)");

    is(json(tool(0, $warning, 'import', '--json', '--form', 'url', '--check',
                 $urls, '-o', "$dir/$scheme-url.bloom",
                 bitmap('bits', $scheme, @urls)))->{checked}, 60,
       "--json has the number of checked keys ($scheme)");
}

like(tool(0, $warning, 'import', '-o', "$dir/plain.bloom",
          bitmap('bits', 'double', @hosts)),
     qr/: not checked: .* --check$/m,
     'an import without --check says so');
is(info("$dir/plain.bloom")->{form}, 'raw', 'the default is raw');


subtest 'nginx looks up spellings and keeps added keys' => sub {
    my @zones = map { ("$_-host", "$_-url") } @schemes;
    my @added = map { "HTTP://Added$_.Example/A/../b" } 1 .. 100;

    configure($t, [map { 'zone=' . tr/-/_/r . " file=$_.bloom" } @zones],
              api => 1);
    $t->run;

    for my $when ('at once', 'after a restart') {

        for my $zone (@zones) {
            my $name = $zone =~ tr/-/_/r;
            my $host = $zone =~ /host/;
            my @in = $host ? map { ("x.$_", uc) } @hosts
                           : map { ("http://a.$_?q",
                                   "HTTPS://" . s/bad/BAD/r) } @urls;
            my @new = $host ? map { "Added$_.Example:80" } 1 .. 100 : @added;

            add($t, $name, \@new) if $when eq 'at once';

            is(scalar(grep { $_ ne 'present' } lookup_keys($t, $name, @in)), 0,
               "all spellings of all keys are present in $zone $when");
            is(scalar(grep { $_ ne 'present' } lookup_keys($t, $name, @new)), 0,
               "all added keys are present in $zone $when");
            cmp_ok(scalar(grep { $_ eq 'present' }
                          lookup_keys($t, $name,
                                      map { "other$_.example" } 1 .. 100)),
                   '<', 20, "most other keys are absent in $zone $when");
        }

        $t->kill_all;
        $t->run if $when eq 'at once';
    }
};


# ---- what --check refuses ----

my @import = ('import', '-o', "$dir/refused.bloom");

sub refused {
    my ($status, $message, @arguments) = @_;

    is(tool($status, $message, @import, @arguments), '',
       'a refused import prints no result');
    ok(!-e "$dir/refused.bloom", 'a refused import writes no image');
}

my $keys = $t->write_file('keys', join '', map { "$_\n" } @hosts);
my @double = bitmap('bits', 'double', @hosts);

refused(1, qr/keys:\ "bad\d+\.example"\ is\ not\ found\n .*
              the\ image\ finds\ \d\ of\ 60\ keys,\ [\d.]+\ %,
              \ and\ is\ not\ written;\ check\ .*--scheme/sx,
        '--check', $keys, bitmap('bits', 'go-zero', @hosts),
        '--scheme', 'redisbloom');

@double = bitmap('bits', 'double', @hosts);
refused(1, qr/finds \d of 60 keys/, '--check',
        $t->write_file('upper', join '', map { "\U$_\E\n" } @hosts), @double);
refused(1, qr/finds 60 of 61 keys, 98.4 %/, '--check',
        $t->write_file('one-more', join '', map { "$_\n" } @hosts, 'no.test'),
        @double);
refused(1, qr/"no host\/" has a byte/, '--form', 'host', '--check',
        $t->write_file('invalid', "no host/\n"), @double);
refused(2, qr/has no keys to check/, '--check', $t->write_file('empty', "\n"),
        @double);
refused(2, qr/cannot be opened/, '--check', "$dir/nothing", @double);
refused(2, qr/--form url: with --funnel long, .* numbers/, '--form', 'url',
        '--funnel', 'long', @double);

done_testing();
