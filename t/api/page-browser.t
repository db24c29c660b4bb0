#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the page in a real browser, in both colour schemes and at the width of a
# phone, with zones in good order and in trouble.  Tests that the committed page
# is what the sources in dashboard/ give.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Scene;

my $top = abs_path(dirname(__FILE__) . '/../..');


subtest 'the committed page is what the sources in dashboard/ give' => sub {
    my $t = BloomTest->new;
    my $built = $t->testdir . '/page.html';

    my ($exit, $out, $err) =
        run_command(['node', "$top/dashboard/build.mjs", $built]);

    is($exit, 0, 'the page is built') or diag($err);

    my @texts = map {
        open my $fh, '<:raw', $_ or die "cannot open $_: $!";
        local $/;
        scalar <$fh>;
    } $built, "$top/dashboard/page.html";

    ok($texts[0] eq $texts[1],
       'the page that was built equals the committed one')
        or diag('run: make dashboard, and commit dashboard/page.html');
};


my $t = BloomTest->new;

scene($t, bad_day($t));
$t->run;
worsen($t);

my $helper;
my $ended = 0;

my %do = (
    silence => sub { $helper = $t->helper; kill 'STOP', $helper },
    wake => sub { kill 'CONT', $helper },
    stop => sub { $t->stop },
    start => sub { repair($t); $t->run },
);

my $status = browse($t, 'drive.mjs', sub {
    my ($said) = @_;

    if ($said =~ /^(not )?ok (.*)/) {
        ok(!$1, $2);
        return;
    }

    if ($said =~ /^do (\w+)$/) {
        $do{$1}->();
        return 'done';
    }

    $ended ||= $said eq 'end';
    diag($said) if $said ne 'end';
    return;
});

is($status, 0, 'the test in the browser ended without an error');
ok($ended, 'the test in the browser ran to its end');

done_testing;
