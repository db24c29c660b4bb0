#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# With "nginx -p ./" and "working_directory", workers and the helper are in
# another directory than the master.  All files of zones are still found where
# the configuration means them.

use strict;
use warnings;

use Cwd qw(getcwd);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new(prefix => './');
my $dir = $t->testdir;
my $home = getcwd();

for ('elsewhere', 'sub') {
    mkdir "$dir/$_" or die "mkdir: $!";
}

sub image_of {
    my ($name, @keys) = @_;

    $t->build_image("$name.bloom", ['must', @keys], '-p', '1e-9', '-n', '1k');
}

image_of('one', 'id1');
image_of('two', 'id2');
image_of('three', 'id3');
$t->build_image('without.bloom', ['id4'], '-p', '1e-9', '-n', '1k');
$t->write_file('must.txt', "must\n");

sub conf {
    configure($t, ['zone=ids:2m file=ids.bloom;'
                   . ' bloom_guard zone=ids must_have=must.txt', @_],
              api => 1,
              main => "working_directory $dir/elsewhere;");

    my $conf = $t->read_file('nginx.conf');
    $conf =~ s/bloom_state_path \S+;/bloom_state_path state;/
        or die 'no bloom_state_path';
    $t->write_file('nginx.conf', $conf);
}

# Starts nginx with a relative prefix, in a directory below the test's.

sub start {
    my ($prefix, $in) = @_;

    $t->{prefix} = $prefix;
    chdir "$dir/$in" or die "chdir: $!";
    $t->run;
    chdir $home or die "chdir: $!";
}

sub load {
    my ($image) = @_;

    install_image($t, $image);
    return api($t, POST => 'zones/ids/reload');
}

install_image($t, 'one');
conf();
start('./', '.');

is(readlink "/proc/$_/cwd", "$dir/elsewhere",
   'working_directory moves the process')
    for $t->workers, $t->helper;
is(ask_until_known($t, 'ids', 'id1', 'id2'), '10',
   'nginx starts with a relative prefix');
is(zone_state($t, 'ids')->{file}, "$dir/ids.bloom",
   'the state of the zone names its file by an absolute path');

is(load('two')->status, 200, 'POST reload finds the image');
is(ask($t, 'ids', 'id1', 'id2'), '01', 'the new image serves');

my $refused = load('without');
is($refused->status, 422, 'POST reload refuses an image without a key of'
                          . ' must_have') or diag($refused);
like($refused->body,
     qr/lacks the key \\"must\\" of line 1 of \\"must_have=\Q$dir\E\/must\.txt/,
     'the refusal names the file of keys by an absolute path');

install_image($t, 'three');
$t->reload;
is(ask_until_known($t, 'ids', 'id2', 'id3'), '01',
   'a reload of nginx finds the image');
is(load('one')->status, 200, 'POST reload finds the image after a reload');

add($t, 'ids', ['added']);
ok(-e "$dir/state/ids/control",
   'the state directory is below the prefix');

$t->upgrade;
is(ask_until_known($t, 'ids', 'id1', 'added'), '11',
   'an upgrade of nginx finds the image and the added key');
is(load('two')->status, 200, 'POST reload finds the image after an upgrade');

is(upload_image($t, 'ids', 'three')->status, 200, 'an uploaded image is kept');
$t->stop;

start('../', 'sub');
is(ask_until_known($t, 'ids', 'id3', 'added'), '11',
   'a start in another directory, with a relative prefix that means the same'
   . ' one, finds the uploaded image and the added key');
$t->stop;

# the helper looks for a file that is being watched

conf('zone=watched:2m file=watched.bloom watch=50ms');
install_image($t, 'one', 'watched');
start('./', '.');
is(ask_until_known($t, 'watched', 'id1', 'id2'), '10',
   'a zone with watch= starts');
install_image($t, 'two', 'watched');
ok(wait_until(sub { ask($t, 'watched', 'id1', 'id2') eq '01' }),
   'watch= finds the new image');
$t->stop;

is(join(' ', glob "$dir/elsewhere/* $dir/sub/*"), '',
   'nothing is written to the working directory');

done_testing;
