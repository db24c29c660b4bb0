#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx is upgraded to another version of nginx, or to a program derived from
# it, and back, while keys are added and removed.  Both have this version of the
# module and use one state directory.  No acknowledged key is absent, and no
# removed key is present in the end.  Angie inherits the sockets of Angie alone,
# so it is stopped or started instead.
#
# TEST_NGINX_OTHER_BINARY names the other nginx, and TEST_NGINX_OTHER_MODULE its
# module, unless the module is linked into it.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(run_command);
use BloomTest::Upgrades;
use BloomTest::Zones;

my $other = $ENV{TEST_NGINX_OTHER_BINARY}
    or plan(skip_all => 'TEST_NGINX_OTHER_BINARY names no other nginx');

my $t = BloomTest->new;
my $dir = $t->testdir;

my %nginx = (
    tested => { binary => abs_path($t->{binary}), module => $t->{module} },
    other => { binary => abs_path($other),
               module => $ENV{TEST_NGINX_OTHER_MODULE} // '' },
);

# whether a new master inherits the sockets of the old one

my $inherits = is_angie('tested') == is_angie('other');

$t->{binary} = "$dir/nginx";
$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time - 600));


sub is_angie {
    my ($which) = @_;

    my ($exit, $out, $err) = run_command([$nginx{$which}{binary}, '-V']);
    die "$nginx{$which}{binary} -V: $err" if $exit != 0;

    return "$out$err" =~ /^Angie version:/m ? 1 : 0;
}


# Replaces the program and its configuration, as a package manager would.

sub install {
    my ($which) = @_;

    symlink $nginx{$which}{binary}, "$dir/nginx.new" or die "symlink: $!";
    rename "$dir/nginx.new", "$dir/nginx" or die "rename: $!";

    delete $t->{build};
    $t->{module} = $nginx{$which}{module};
    configure($t, ["zone=ids file=ids.bloom",
                   "zone=seen capacity=50k fpr=1e-9"],
              api => 1, add => 1);
}

sub runs {
    my ($which, $master) = @_;

    is(readlink "/proc/$master/exe", $nginx{$which}{binary},
       "the master is the $which nginx");
}


for (['other', 'tested'], ['tested', 'other']) {
    my ($from, $to) = @$_;

    subtest "the $from nginx is upgraded to the $to one" => sub {
        remove_tree("$dir/state");

        my $keys = BloomTest::Upgrades->new($t, ids => [keys_of('id', 10)],
                                            seen => []);

        install($from);
        $t->run;
        runs($from, $t->master);
        $keys->change;
        $keys->none_is_absent('before the upgrade');

        if ($inherits) {
            install($to);
            runs($to, $t->upgrade_begin);

            for (1 .. 3) {
                $keys->change;
                $keys->none_is_absent('while both run');
            }

            $t->upgrade_finish;

        } else {
            $t->stop;
            install($to);
            $t->run;
            runs($to, $t->master);
        }

        $keys->add_some;
        $keys->all_is_known('after the upgrade');

        is(api($t, POST => 'zones/seen/checkpoint')->status, 200,
           'a checkpoint is written');
        $keys->add_some;
        $t->kill_all;

        # the nginx of before reads what the one after has written

        install($from);
        $t->run;
        runs($from, $t->master);
        $keys->all_is_known("after a restart as the $from nginx");
        $t->stop;
    };
}


done_testing;
