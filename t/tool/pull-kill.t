#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that a kill -9 of ngx-bloom-pull before any of its steps, and a failure
# of any step, leaves the old file or the new one whole, and that the next pull
# brings the image and has nginx load it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Pull;

my $t = pull_test(BloomTest->new(module => 0));
my $dir = $t->testdir;
my $key = public_key('first');
my ($old, $new) = (image(1, 100), image(2, 100));

publish('ids.bloom', $new, 'first');
my $sig = content("$dir/www/ids.bloom.minisig");

my $server = $t->backend(8081, { paths => {
    '/ids.bloom' => { headers => ['ETag', '"new"'], body => $new },
    '/ids.bloom.minisig' => $sig,
    '/reload' => 'ok',
} });
my $origin = 'http://127.0.0.1:' . $t->port(8081);
my @pull = ("$origin/ids.bloom", 'ids.bloom', '--public-key', $key, '--reload',
            "$origin/reload", '--metrics', "$dir/pull.prom");

# Each program of a step is a script that counts, and at the step of the file
# "at" kills the pull with all its processes, or fails.  Only the programs that
# can change something, or whose result decides, are steps: the others are
# filters of text.

my @programs = qw(chmod chown cmp curl find flock minisign mkdir mv ngx-bloom
                  rm sha256sum stat sync);

mkdir "$dir/steps" or die "mkdir: $!";
$t->write_file('steps/step', <<"SH");
#!/bin/sh
read -r n < '$dir/count'; n=\$((n + 1)); echo \$n > '$dir/count'
read -r at do < '$dir/at'
name=\${0##*/}
if [ \$n = "\$at" ]; then
    echo "\$name" > '$dir/reached'
    case \$do in kill) kill -9 0 ;; *) exit 1 ;; esac
fi
PATH=\${PATH#*:}
exec "\$name" "\$@"
SH
chmod 0755, "$dir/steps/step" or die "chmod: $!";
symlink 'step', "$dir/steps/$_" or die "symlink: $!" for @programs;

# Runs a pull that is killed at, or whose step fails.  Returns its exit status,
# and the name of the step, or nothing if there is no such step.

sub pull_with_steps {
    my ($at, $do) = @_;

    $t->write_file('count', "0\n");
    $t->write_file('at', "$at $do\n");
    unlink "$dir/reached";

    my ($command, %option) = pull_command(@pull);
    $option{env}{PATH} = "$dir/steps:$option{env}{PATH}";
    my ($exit, $out, $err) = run_command($command, %option, limit => 120);

    chomp(my $step = content("$dir/reached") // '');

    return ($exit, $step, "$out$err");
}

sub reloads { return scalar grep { $_->{method} eq 'POST' } $server->requests }

my %seen;

for my $do ('kill', 'fail') {
    my $at = 0;

    while (++$at < 200) {
        install('ids.bloom', $old, 0640);

        my $reloads = reloads();
        my ($exit, $step, $said) = pull_with_steps($at, $do);

        last if $step eq '';
        $seen{"$do $step"}++;

        my $what = "$do at step $at, $step";
        my $now = content("$dir/node/ids.bloom") // '';
        my $replaced = $now eq $new;

        ok($now eq $old || $replaced, "$what: the file is whole");
        is($exit, 137, "$what: the pull is killed") if $do eq 'kill';
        ok($exit == 2 || $exit == 0 && $replaced,
           "$what: success is reported only of the new image")
            or diag("$exit: $said") if $do eq 'fail';

        my ($next, $out, $err) = pull(@pull);
        ok($next == 0 || $next == 1 && $replaced, "$what: the next pull works")
            or diag("$next: $out$err");
        file_is('ids.bloom', $new, "$what: the next pull brings the image",
                0640);
        cmp_ok(reloads(), '>', $reloads, "$what: nginx loads the image");
    }

    cmp_ok($at, '>', 15, "there are steps to $do at");
    ok($seen{"$do $_"}, "a pull has a step $_ to $do at")
        for qw(chmod curl find minisign mv ngx-bloom sync);
}

done_testing;
