#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A start and nginx -t warn about an image that only root can read: the master
# opens it as root, but later loads run as the workers' user.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

$> == 0 or plan(skip_all => 'only root can run workers as another user');

my ($nobody, $group) = (getpwnam 'nobody')[2, 3];
defined $nobody or plan(skip_all => 'there is no user nobody');

my $t = BloomTest->new(user => 'nobody ' . getgrgid $group);
my $dir = $t->testdir;

mkdir "$dir/sub" or die "mkdir: $!";
my $image = $t->build_image('sub/ids.bloom', ['id1']);
configure($t, ['zone=ids file=sub/ids.bloom']);


# mode, owner and group of the directory and of the file, and the path that
# the workers' user has no access to

my @cases = (
    ['a file that all may read', 0755, 0, 0, 0644, 0, 0, undef],
    ['a file of root alone', 0755, 0, 0, 0600, 0, 0, $image],
    ['a file that only others may write', 0755, 0, 0, 0602, 0, 0, $image],
    ['a directory of root alone', 0700, 0, 0, 0644, 0, 0, "$dir/sub/"],
    ['a directory to list and not to enter', 0744, 0, 0, 0644, 0, 0,
     "$dir/sub/"],
    ['a directory to enter and not to list', 0711, 0, 0, 0644, 0, 0, undef],
    ["a file of the workers' user", 0700, $nobody, 0, 0400, $nobody, 0, undef],
    ["a file of the workers' group", 0710, 0, $group, 0640, 0, $group, undef],
    ["a file that all but the workers' group may read",
     0755, 0, 0, 0604, 0, $group, $image],
    ["a file that all but the workers' user may read",
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
    is($exit, 0, "nginx -t succeeds with $what");

    $t->run;
    is(ask($t, 'ids', 'id1', 'id2'), '10',
       "nginx starts and answers with $what");

    for (['nginx -t', $output], ['the start', $t->log_since($mark)]) {
        my ($when, $text) = @$_;

        if (defined $way) {
            like($text, qr{\[warn\]\ .*image\ "\Q$image\E"\ of\ bloom\ zone
                           \ "ids"\ can\ be\ loaded\ at\ a\ start\ only:
                           \ "\Q$way\E"\ is\ not\ accessible\ to\ user
                           \ "nobody";}x,
                 "$when names the path in the way of $what");

        } else {
            unlike($text, qr/\[warn\]/, "$when gives no warning about $what");
        }
    }

    $t->stop;
}


# With watch= a file that the helper cannot read, or that is not a regular one,
# is reported once and not at every check.  A second zone, whose file is
# replaced four times, shows that the helper continues to check.

subtest 'a watched file cannot be read' => sub {
    chown 0, 0, "$dir/sub", $image;
    chmod 0755, "$dir/sub" or die "chmod: $!";
    chmod 0644, $image or die "chmod: $!";
    $t->build_image('other.bloom', ['id1']);
    configure($t, ['zone=ids file=sub/ids.bloom watch=50ms',
                   'zone=other file=other.bloom watch=50ms']);
    $t->run;

    my $checks_on = sub {
        for my $i (1 .. 4) {
            $t->build_image('other.bloom', ["new$i"]);
            ok(wait_until(sub { scalar(ask($t, 'other', "new$i")) eq '1' }),
               "the helper loads replacement $i of another watched file");
        }
    };
    my $reports = sub {
        my ($mark, $what) = @_;

        return scalar(() = $t->log_since($mark)
                           =~ /\[error\] .*sub\/ids.bloom" .* $what/g);
    };

    my $mark = $t->log_mark;
    $t->build_image('sub/new.bloom', ['id2']);
    chmod 0600, "$dir/sub/new.bloom" or die "chmod: $!";
    rename "$dir/sub/new.bloom", $image or die "rename: $!";
    $t->wait_for_log(qr/cannot be opened/, $mark);
    $checks_on->();
    is($reports->($mark, 'cannot be opened'), 1,
       'a file that only root may read is reported once');
    like($t->log_since($mark),
         qr{image\ "\Q$image\E"\ of\ bloom\ zone\ "ids"\ cannot\ be\ opened:
            \ correct\ the\ owner\ or\ the\ mode\ of\ "\Q$image\E",\ which
            \ user\ "nobody"\ cannot\ access:\ it\ has\ user\ 0\ \(root\),
            \ group\ 0\ \(root\)\ and\ mode\ 0600\ \(13:}x,
         'the message names the user, the owner and mode, and what to do');
    is(ask($t, 'ids', 'id1', 'id2'), '10',
       'the previous image continues to serve');

    chmod 0644, $image or die "chmod: $!";
    ok(wait_until(sub { scalar(ask($t, 'ids', 'id1', 'id2')) eq '01' }),
       'the file is loaded when its mode is corrected');

    $mark = $t->log_mark;
    unlink $image or die "unlink: $!";
    mkdir $image or die "mkdir: $!";
    $t->wait_for_log(qr/is not a regular file/, $mark);
    $checks_on->();
    is($reports->($mark, 'is not a regular file'), 1,
       'a directory in place of the file is reported once');

    $t->stop;
};


done_testing;
