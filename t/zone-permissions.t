#!/usr/bin/perl

# The master reads images as root.  Who will read them later, while nginx
# runs, are the workers: start and nginx -t warn when they could not.

use strict;
use warnings;

use BloomTest;
use BloomTest::Zones;

$> == 0 or plan(skip_all => 'only root can run workers as another user');

my ($nobody, $group) = (getpwnam 'nobody')[2, 3];
defined $nobody or plan(skip_all => 'there is no user nobody');

my $t = BloomTest->new(user => 'nobody ' . getgrgid $group);
my $dir = $t->testdir;

mkdir "$dir/sub" or die "mkdir: $!";
my $image = $t->build_image('sub/ids.bloom', ['id1']);
configure($t, ['zone=ids file=sub/ids.bloom']);


# mode and owner of the directory and of the file, and what is in the way

my @cases = (
    ['open to all', 0755, 0, 0, 0644, 0, 0, undef],
    ['a file of root alone', 0755, 0, 0, 0600, 0, 0, $image],
    ['a file that only others may write', 0755, 0, 0, 0602, 0, 0, $image],
    ['a directory of root alone', 0700, 0, 0, 0644, 0, 0, "$dir/sub/"],
    ['a directory to list and not to enter', 0744, 0, 0, 0644, 0, 0,
     "$dir/sub/"],
    ['a directory to enter and not to list', 0711, 0, 0, 0644, 0, 0, undef],
    ['all by owner', 0700, $nobody, 0, 0400, $nobody, 0, undef],
    ['all by group', 0710, 0, $group, 0640, 0, $group, undef],
    ['a group without a right that others have',
     0755, 0, 0, 0604, 0, $group, $image],
    ['an owner without a right that others have',
     0755, 0, 0, 0044, $nobody, 0, $image],
);

for (@cases) {
    my ($what, $mode, $user, $gid, $file_mode, $file_user, $file_gid, $way)
        = @$_;

    chown $user, $gid, "$dir/sub" or die "chown: $!";
    chown $file_user, $file_gid, $image or die "chown: $!";
    chmod $mode, "$dir/sub" or die "chmod: $!";
    chmod $file_mode, $image or die "chmod: $!";

    my $mark = $t->log_mark;
    my ($exit, $output) = $t->test_config;
    is($exit, 0, "$what: nginx -t passes");

    $t->run;
    is(ask($t, 'ids', 'id1', 'id2'), '10', 'nginx starts and answers');

    for (["nginx -t", $output], ['start', $t->log_since($mark)]) {
        my ($when, $text) = @$_;

        if (defined $way) {
            like($text, qr{\[warn\]\ .*image\ "\Q$image\E"\ of\ bloom\ zone
                           \ "ids"\ could\ not\ be\ loaded\ again\ .*
                           "\Q$way\E"\ does\ not\ let\ user\ "nobody"\ in}x,
                 "$when warns and names what is in the way");

        } else {
            unlike($text, qr/\[warn\]/, "$when has nothing to warn of");
        }
    }

    $t->stop;
}


done_testing;
