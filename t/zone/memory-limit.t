#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx survives a load that exceeds the limit of its control group, such as a
# container's: the load is refused, and no process is killed.
#
# The test runs with TEST_NGINX_CGROUP=1, as root: it creates a control group
# below its own, and removes it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

$ENV{TEST_NGINX_CGROUP}
    or plan(skip_all => 'it makes a control group: set TEST_NGINX_CGROUP=1');

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to fill all shared memory at start');


# Returns the directory of this process's group and the names of its limits.

my ($own, $limit) = do {
    open my $fh, '<', '/proc/self/cgroup' or die "/proc/self/cgroup: $!";
    local $/;
    my $groups = <$fh>;

    $groups =~ /^\d+:memory:(.*)$/m
        ? ("/sys/fs/cgroup/memory$1", 'memory.limit_in_bytes')
    : $groups =~ /^0::(.*)$/m ? ("/sys/fs/cgroup$1", 'memory.max')
    : plan(skip_all => 'there are no control groups');
};

my $group = "$own/bloom-test-$$";

mkdir $group or plan(skip_all => "a control group cannot be made: $group: $!");

# even if the test dies: the group can be removed once no process is in it

END {
    if ($group) {
        local $?;
        eval { $t->kill_all };
        wait_until(sub { rmdir $group }, 5) or diag("$group: $!");
    }
}

-e "$group/$limit"
    or plan(skip_all => "$group has no $limit: this system limits no memory"
                        . ' of groups in groups');

sub set {
    my ($file, $value) = @_;

    open my $fh, '>', "$group/$file" or die "$group/$file: $!";
    syswrite $fh, $value or die "$group/$file: $value: $!";
}


$t->build_image('small.bloom', ['one'], '-p', '1e-6', '-n', '1m');
$t->build_image('large.bloom', ['two'], '-p', '1e-6', '-n', '30m');
my $size = -s "$dir/large.bloom";

install_image($t, 'small');
small_pages(1);
configure($t, ['zone=ids:400m file=ids.bloom watch=1s'],
          api => 1, workers => 2);
$t->run;

my @processes = ($t->master, $t->workers, $t->helpers);

set('cgroup.procs', $_) for @processes;
set($limit, int($size * 0.8));


subtest 'a watched file is too large for the limit' => sub {
    install_image($t, 'large');
    $t->wait_for_log(qr/lack of memory: .*the control group "\Q$group\E" has/);
    is(ask($t, 'ids', 'one', 'two'), '10', 'the old image serves on');

    my $looked = zone_state($t, 'ids')->{helper}{heartbeat};
    wait_until(sub { zone_state($t, 'ids')->{helper}{heartbeat} gt $looked })
        or die 'the helper does not work';
    is("@{[$t->master, $t->workers, $t->helpers]}", "@processes",
       'all processes live');
};


subtest 'a request asks for the load' => sub {
    for (1 .. 3) {
        is_error(api($t, POST => 'zones/ids/reload'), 507,
                 qr/needs \d+k more.*has \d+k left/,
                 "request $_ for a load is refused");
    }

    is("@{[$t->master, $t->workers, $t->helpers]}", "@processes",
       'all processes live');
};


subtest 'the limit is raised' => sub {
    set($limit, $size * 2);
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'the load succeeds');
    is(ask($t, 'ids', 'one', 'two'), '01', 'the new image serves');
    is("@{[$t->master, $t->workers, $t->helpers]}", "@processes",
       'all processes live');
};


# The group can be removed once no process is in it.

$t->stop;
wait_until(sub { rmdir $group }) or diag("$group: $!");
undef $group;

done_testing;
