#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A load that needs more memory than is left is refused before it takes any, or
# while it runs.  The message says how much is left and how much is needed.
# The test writes the files in which the system reports its memory.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP qw(decode_json);

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my $faults = BloomTest::Faults->new($t);
$faults->needed;

$t->environment(NGX_BLOOM_FAULT_MEMORY => "$dir/memory");

# more than 32 MiB, after which a load checks the memory again

my $large = 8_000_000;

for my $seed (1, 2) {
    $t->build_image("$seed.bloom", ['one', "image$seed"], '-p', '1e-9',
                    '-n', $large, '--seed', $seed);
}


# What a load needs, in kilobytes: the filter and a reserve.

my (undef, $info) = $t->run_tool('info', '--json', "$dir/1.bloom");
my $filter = decode_json($info)->{bits} / 8;
my $spare = int($filter / 8);
$spare = 16 * 1024 * 1024 if $spare > 16 * 1024 * 1024;
my $needs = int(($filter + $spare + 1023) / 1024);

my @unlimited = ('proc/meminfo' => meminfo(2 * $needs));


# Replaces the system's files: names and contents.

sub system_says {
    my (%file) = @_;

    remove_tree("$dir/memory");

    for my $name (keys %file) {
        make_path("$dir/memory/$name" =~ s{/[^/]*$}{}r);
        $t->write_file("memory/$name", $file{$name});
    }
}

sub meminfo {
    my ($available, $swap) = @_;

    return join '', "MemTotal:       99999999 kB\n",
                    "MemFree:            1000 kB\n",
                    "MemAvailable:   $available kB\n",
                    'SwapFree:       ' . ($swap // 0) . " kB\n";
}

sub kb { return $_[0] * 1024 . "\n" }

# The files of a group of version 2: its limit, usage, cache and so on.

sub group2 {
    my ($path, $limit, $usage, $cache, %swap) = @_;

    return ("$path/memory.max" => $limit eq 'max' ? "max\n" : kb($limit),
            "$path/memory.current" => kb($usage),
            "$path/memory.stat" => "anon 5000\nfile 70000\n"
                . 'inactive_file ' . kb($cache - 2)
                . 'active_file ' . kb(1) . 'slab_reclaimable ' . kb(1),
            map { ("$path/memory.swap.$_" =>
                       $swap{$_} eq 'max' ? "max\n" : kb($swap{$_})) }
                keys %swap);
}

# The files of a group of version 1, which have other names.

sub group1 {
    my ($path, $limit, $usage, $cache, %swap) = @_;

    return ("$path/memory.limit_in_bytes" => $limit eq 'max'
                ? "9223372036854771712\n" : kb($limit),
            "$path/memory.usage_in_bytes" => kb($usage),
            "$path/memory.stat" => "inactive_file 1\nactive_file 1\n"
                . 'total_inactive_file ' . kb($cache - 1)
                . 'total_active_file ' . kb(1),
            map { ("$path/memory.memsw.${_}_in_bytes" => kb($swap{$_})) }
                keys %swap);
}

my ($v2, $v1) = ('sys/fs/cgroup', 'sys/fs/cgroup/memory');

my $number = 1;

sub load {
    install_image($t, ++$number % 2 + 1);
    return api($t, POST => 'zones/ids/reload');
}

sub loads {
    my ($name, %file) = @_;

    system_says(%file);
    my $response = load();
    is($response->status, 200, $name) or diag($response);
}

sub refuses {
    my ($left, $where, $name, %file) = @_;

    system_says(%file);
    is_error(load(), 507,
             qr/"ids" .*memory: .* needs ${needs}k more, and $where has ${left}k/,
             $name);
    $number++;
}


system_says(@unlimited);
install_image($t, 1);
configure($t, ['zone=ids file=ids.bloom', 'zone=two:200m file=1.bloom'],
          api => 1, workers => 2);
$t->run;


subtest 'the machine is short of memory' => sub {
    refuses(4096, 'the machine', 'a load is refused that needs too much',
            'proc/meminfo' => meminfo(4096));
    is(ask($t, 'ids', 'one', 'no'), '10', 'the old image serves on');
    is(zone_state($t, 'ids')->{load}{result}, 'no_room',
       'the state of the zone has the result');

    refuses($needs - 1, 'the machine', 'a load is refused for a kilobyte',
            'proc/meminfo' => meminfo($needs - 1));
    loads('a load succeeds for which the memory just suffices',
          'proc/meminfo' => meminfo($needs));

    refuses(3000, 'the machine', 'free swap counts, and does not suffice',
            'proc/meminfo' => meminfo(1000, 2000));
    loads('a load succeeds that needs the swap',
          'proc/meminfo' => meminfo(1000, $needs - 1000));

    my $arc = sub {
        return "13 1 0x01 123 33456 1 2\nname                 type data\n"
             . 'c_min                4    ' . kb(1000)
             . 'size                 4    ' . kb($_[0]);
    };
    refuses(5000, 'the machine', 'the cache of ZFS counts, but for its least',
            'proc/meminfo' => meminfo(1000),
            'proc/spl/kstat/zfs/arcstats' => $arc->(5000));
    loads('a load succeeds that needs the cache of ZFS',
          'proc/meminfo' => meminfo(1000),
          'proc/spl/kstat/zfs/arcstats' => $arc->($needs));

    loads('a load succeeds if the system does not say what is left');
    loads('a load succeeds if the system does not know what is available',
          'proc/meminfo' => "MemTotal: 1000 kB\nMemFree: 10 kB\n");
};


for my $version (2, 1) {
    my ($root, $group, $line) = $version == 2
        ? ($v2, \&group2, '0::') : ($v1, \&group1, '4:memory:');

    my @process = (@unlimited, 'proc/self/cgroup'
                   => "1:name=systemd:/\n9:cpu,cpuacct:/other\n${line}/a/b\n");

    subtest "control groups of version $version have limits" => sub {
        refuses(8000, qr{the control group \\?"/$root/a/b\\?"},
                'a load is refused that needs more than its group may have',
                @process, $group->("$root/a/b", 20000, 15000, 3000));
        refuses(8000, qr{the control group \\?"/$root/a\\?"},
                'the group above is the one that is short',
                @process, $group->("$root/a/b", 'max', 15000, 3000),
                $group->("$root/a", 20000, 15000, 3000));
        refuses(500, qr{the control group \\?"/$root\\?"},
                'the group of a container is at the root',
                @process, $group->($root, 20000, 20000, 500));
        refuses(500, qr{the control group \\?"/$root/a\\?"},
                'the group that has least left counts',
                @process, $group->("$root/a/b", 20000, 15000, 3000),
                $group->("$root/a", 20000, 20000, 500),
                $group->($root, 20000, 19000, 500));
        refuses(300, qr{the control group \\?"/$root/a/b\\?"},
                'a group that uses more than its limit has its cache left',
                @process, $group->("$root/a/b", 20000, 25000, 300));

        loads('a load succeeds in a group with enough',
              @process, $group->("$root/a/b", $needs + 5000, 5003, 3));
        loads('a load succeeds in a group that can give back enough',
              @process, $group->("$root/a/b", 20000, 20000, $needs));
        loads('a load succeeds in a group without a limit',
              @process, $group->("$root/a/b", 'max', 20000, 10));
        loads('a load succeeds in a group of which nothing is known', @process);
    };
}


subtest 'control groups have limits of swap' => sub {
    my $swap = $needs;
    my @v2 = ('proc/meminfo' => meminfo(2 * $needs, $swap),
              'proc/self/cgroup' => "0::/a\n");
    my @v1 = ('proc/meminfo' => meminfo(2 * $needs, $swap),
              'proc/self/cgroup' => "3:memory:/a\n");
    my @full = (20000, 20000, 10);

    loads('a group of version 2 may use all swap if it says nothing of it',
          @v2, group2("$v2/a", @full));
    loads('a group of version 2 may use all swap without a limit',
          @v2, group2("$v2/a", @full, max => 'max', current => 5));
    refuses(10, qr/the control group .*/,
            'a group of version 2 may use no swap',
            @v2, group2("$v2/a", @full, max => 0, current => 0));
    refuses(310, qr/the control group .*/,
            'a group of version 2 has some swap left',
            @v2, group2("$v2/a", @full, max => 500, current => 200));

    loads('a group of version 1 may use all swap if it says nothing of it',
          @v1, group1("$v1/a", @full));
    refuses(510, qr/the control group .*/,
            'a group of version 1 has a limit of memory and swap together',
            @v1, group1("$v1/a", @full, limit => 21000, usage => 20500));
};


subtest 'uploads and starts need memory, too' => sub {
    system_says('proc/meminfo' => meminfo(100));
    is_error(upload_image($t, 'ids', '1'), 507,
             qr/the machine has 100k left; free memory, or raise the limit/,
             'an upload is refused that needs too much');

    my ($status, $log) = $t->test_config;
    is($status, 0, '"nginx -t" takes no memory, and so succeeds') or diag($log);

    $t->stop;
    like($t->run_fails, qr/\[emerg\].*needs?.* the machine has 100k left/,
         'a start that needs too much is refused');
    system_says(@unlimited);
    $t->run;
    is(ask($t, 'ids', 'one', 'no'), '10', 'the next start succeeds');
};


# The job has loaded some chunks when the memory becomes short.

subtest 'memory becomes short during a load' => sub {
    my $before = generation($t, 'ids');
    my $stop = $faults->stop_at('load', 5);

    install_image($t, 2);
    my $c = $t->connect;
    $c->send($t->request_text(POST => '/bloom/zones/ids/reload'));
    my $helper = $faults->stopped($stop);

    system_says('proc/meminfo' => meminfo(300));
    resume_process($helper);
    is_error($c->response, 507, qr/the machine has 300k left/,
             'the load is refused in its middle');
    is(generation($t, 'ids'), $before, 'the old image serves on');

    system_says(@unlimited);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'the image is loaded when there is memory again');
};


# There is room for one of them at a time.

subtest 'two zones load one after the other' => sub {
    system_says('proc/meminfo' => meminfo(int($needs * 1.5)));

    my $stop = $faults->stop_at('load', 2);
    my @c = map { $t->connect } 1 .. 2;
    $c[0]->send($t->request_text(POST => '/bloom/zones/ids/reload'));
    my $helper = $faults->stopped($stop);

    $c[1]->send($t->request_text(POST => '/bloom/zones/two/reload'));
    select undef, undef, undef, 0.2;
    resume_process($helper);

    is($c[0]->response->status, 200, 'the first load succeeds');
    is($c[1]->response->status, 200, 'the second one has waited for its end');
};


done_testing;
