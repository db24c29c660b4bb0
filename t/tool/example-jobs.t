#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the scripts, settings and units of conf-examples without running them: a
# shell checker has nothing to say, each setting of an example is described, and
# systemd accepts the units.  nightly.t, block-list-job.t, follow.t and pull.t run
# them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use BloomTest::Tool qw(content_of tool_path tool_test);
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $examples = "$top/conf-examples";
my $t = tool_test();
my $dir = $t->testdir;

sub has {
    my ($program) = @_;

    return (run_command(['sh', '-c', "command -v $program"]))[0] == 0;
}


subtest 'a shell checker has nothing to say about the scripts' => sub {
    plan skip_all => 'there is no shellcheck' if !has('shellcheck');

    for ('nightly/rebuild.sh', 'block-list-job/fetch-list.sh',
         'cluster/build-part.sh')
    {
        is((run_command(['shellcheck', "$examples/$_"]))[1], '',
           "shellcheck says nothing about $_");
    }
};


subtest 'the settings of the examples are settings of the scripts' => sub {
    my $rebuild = content_of("$examples/nightly/rebuild.sh");
    my $fetch = content_of("$examples/block-list-job/fetch-list.sh");

    for (['nightly', $rebuild], ['block-list-job', $rebuild . $fetch]) {
        my ($folder, $scripts) = @$_;
        my %known = map { $_ => 1 } 'PATH', $scripts =~ /^#   ([A-Z_]+) /mg;

        for my $file (glob "$examples/$folder/*.env") {
            my $name = $file =~ s/^\Q$examples\E\///r;
            my @set = content_of($file) =~ /^#?([A-Z_]+)=/mg;

            ok(scalar @set, "$name has settings");
            is(join(' ', grep { !$known{$_} } @set), '',
               "each setting of $name is described");
        }
    }

    for (['MAX_LOSS', '1%'], ['MAX_GROWTH', '50%']) {
        my ($name, $bound) = @$_;

        like(content_of("$examples/nightly/ids.env"), qr/^$name=$bound$/m,
             "the example of a shield has $name=$bound");
        like($rebuild, qr/^#   $name .*\n#.*\(default: $bound;/m,
             "$bound is the default of $name that is described");
        like($rebuild, qr/^$name=\$\{$name:-$bound\}$/m,
             "$bound is the default of $name");
        like(content_of("$examples/block-list-job/urlhaus.env"),
             qr/^$name=20%$/m, "a list may change by a fifth: $name");
    }
};


subtest 'systemd accepts the units' => sub {
    plan skip_all => 'there is no systemd-analyze' if !has('systemd-analyze');

    # the units have the paths and users of an installation

    my %program = ('rebuild.sh' => "$examples/nightly/rebuild.sh",
                   'ngx-bloom' => tool_path(),
                   'ngx-bloom-pull' => "$top/src/cli/ngx-bloom-pull");
    my (@units, @times);

    for my $path (glob "$examples/*/*.{service,timer}") {
        my ($unit) = $path =~ m{([^/]+)\z};
        my $text = content_of($path);

        is(join("\n", grep { !/^(?:#.*|\[[A-Z]\w+\]|[A-Z]\w+=.*)?$/ }
                           split /\n/, $text), '',
           "each line of $unit is a section or a setting");
        like($text, qr/^Type=notify$/m, 'follow tells systemd that it is ready')
            if $unit =~ /follow/;

        $text =~ s{/usr/local/\S*/([\w.-]+)}{$program{$1}}g;
        $text =~ s{^User=.*}{User=root}m;
        push @units, $t->write_file("units/$unit", $text);
        push @times, $text =~ /^OnCalendar=(.*)$/mg;
    }

    my ($status, $out, $err) = run_command(
        ['systemd-analyze', 'verify', '--man=no',
         map { s/@(?=\.)/\@ids/r } @units],
        env => { SYSTEMD_UNIT_PATH => "$dir/units:" });
    is($status, 0, 'systemd-analyze verifies the units') or diag $out . $err;
    is(join("\n", grep { /\Q$dir\E/ } split /\n/, $out . $err), '',
       'systemd-analyze has nothing to say about the units');

    cmp_ok(scalar @units, '>=', 6, 'all units are verified');
    cmp_ok(scalar @times, '>=', 3, 'timers have times');
    is((run_command(['systemd-analyze', 'calendar', $_]))[0], 0,
       "systemd understands the time $_") for @times;
};

done_testing;
