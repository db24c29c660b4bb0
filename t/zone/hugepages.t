#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone uses each kind of huge pages that the machine has, and reports what it
# got if the machine has none.  With TEST_NGINX_HUGE_PAGES=1, as root, the
# test switches both kinds on, and restores the machine's settings at its end.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $huge = 2 ** 21;
my $transparent = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';
my $reserved = '/proc/sys/vm/nr_hugepages';
my %before;

sub look {
    my ($file) = @_;

    open my $fh, '<', $file or return '';
    local $/;
    my $text = <$fh>;

    return $text =~ /\[(\w+)\]/ ? $1 : $text =~ s/\s+$//r;
}

sub change {
    my ($file, $value) = @_;

    open my $fh, '>', $file or return;
    print $fh $value;
    close $fh or return;

    return 1;
}

sub machine {
    my ($file, $value) = @_;

    $ENV{TEST_NGINX_HUGE_PAGES} or return;
    $before{$file} //= look($file);
    change($file, $value);
}

END {
    my $status = $?;
    change($_, $before{$_}) for keys %before;
    $? = $status;
}


my $t = BloomTest->new(log_level => 'notice');

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to touch all shared memory at start');

my @ids = keys_of('id', 50);
my @others = keys_of('other', 50);
my ($all, $none) = ('1' x 50, '0' x 50);

$t->build_image('one.bloom', \@ids, '-p', '1e-6', '-n', '6m');
$t->build_image('two.bloom', \@others, '-p', '1e-6', '-n', '6m');

my $size = -s $t->testdir . '/one.bloom';      # about 24 MiB

sub pages { return $t->get('/bloom/zones/ids')->json->{memory}{pages} }

sub serve {
    my ($option) = @_;

    install_image($t, 'one');
    configure($t, ["zone=ids file=ids.bloom$option"], api => 1, workers => 2);
    my $mark = $t->log_mark;
    $t->run;

    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the zone answers from its image');

    return $t->log_since($mark);
}

# The helper loads another image, and then the first one again, so that each
# bank of the zone's memory is used twice.

sub load_twice {
    for my $image (qw(two one)) {
        install_image($t, $image);
        is($t->post('/bloom/zones/ids/reload')->status, 200,
           "image $image is loaded");
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all", "image $image serves");
    }
}

# Tests that the endpoint reports the whole filter, except its two ends, on huge
# pages.

sub is_huge {
    my ($what) = @_;

    my $got = 0;

    wait_until(sub {
        $got = pages()->{huge_bytes};
        return $got >= $size - 2 * $huge;
    }, 20);

    cmp_ok($got, '>=', $size - 2 * $huge, $what);
}


subtest 'huge_pages= has an invalid value' => sub {
    configure($t, ['zone=ids file=one.bloom huge_pages=big']);
    like($t->run_fails, qr/invalid huge_pages "big".*"reserved"/,
         'an invalid value is refused and the message names the valid values');
};


subtest 'huge pages are switched off' => sub {
    machine($transparent, 'always');

    my $log = serve(' huge_pages=off');

    like($log, qr/"ids" has a filter of \d+k, and 0k of its memory is on huge pages/,
         'the log says that no memory is on huge pages');
    is_deeply(pages(), { wanted => 'off', kind => 'small', huge_bytes => 0 },
              'the endpoint reports small pages');

    load_twice();
    is(pages()->{huge_bytes}, 0,
       'no memory is on huge pages after loads by the helper');
    $t->stop;
};


subtest 'transparent huge pages are used' => sub {
    machine($transparent, 'advise');

    my $log = serve('');

    is(pages()->{wanted}, 'transparent',
       'transparent huge pages are wanted by default');

    if (look($transparent) =~ /^(?:advise|always|within_size|force)$/) {
        is(pages()->{kind}, 'transparent',
           'the endpoint reports transparent huge pages');
        is_huge('all of the filter is on transparent huge pages');
        like($log, qr/and [1-9]\d*k of its memory is on huge pages \(huge_pages=transparent\)/,
             'the log says how much memory is on transparent huge pages');

        load_twice();
        is_huge('all of the filter is on huge pages after loads by the helper');

        if (my @memory = zone_memory($t->master)) {
            my $resident = 0;

            ok(wait_until(sub {
                ($resident) = sort { $b <=> $a }
                              map { $_->{resident} } zone_memory($t->master);
                return $resident < 1.3 * $size;
            }), 'the memory of the old bank is given back')
                or diag("$resident bytes of $size");
        }

        install_image($t, 'one');
        configure($t, ['zone=ids file=ids.bloom'], api => 1);
        $t->reload;
        is_huge('a new helper reports that all of the filter is on huge pages');

    } else {
        is_deeply(pages(), { wanted => 'transparent', kind => 'small',
                             huge_bytes => 0 },
                  'the endpoint reports small pages where the system has no'
                  . ' huge ones');
        like($log, qr/and 0k of its memory is on huge pages/,
             'the log says that no memory is on huge pages');
        note("$transparent allows no transparent huge pages");
    }

    $t->stop;
};


subtest 'reserved huge pages are wanted and the machine has none' => sub {
    machine($reserved, 0);
    plan skip_all => 'this machine has reserved huge pages'
        if look($reserved) > 0;

    my $log = serve(' huge_pages=reserved');

    like($log, qr/\[warn\].*bloom zone "ids" has no reserved huge pages: it /,
         'a warning says that there are no reserved huge pages');
    like($log, qr/it needs \d+ of 2048k, .* with "sysctl vm.nr_hugepages"/,
         'the warning says how many are needed and how to reserve them');
    is(pages()->{wanted}, 'reserved',
       'the endpoint reports that reserved huge pages are wanted');
    isnt(pages()->{kind}, 'reserved',
         'the endpoint does not report reserved huge pages');

    load_twice();
    $t->stop;
};


subtest 'reserved huge pages are used' => sub {
    my $needed = int(2.25 * $size / $huge) + 8;

    machine($reserved, $needed);
    plan skip_all => "vm.nr_hugepages is below $needed; as root,"
                     . ' TEST_NGINX_HUGE_PAGES=1 raises it for the test'
        if look($reserved) < $needed;

    my $log = serve(' huge_pages=reserved');

    unlike($log, qr/\[warn\]/, 'nginx starts without a warning');
    is(pages()->{kind}, 'reserved',
       'the endpoint reports reserved huge pages');
    is_huge('all of the filter is on reserved huge pages');

    load_twice();
    is_huge('all of the filter is on huge pages after loads by the helper');

    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the zone answers after a reload');
    is(pages()->{kind}, 'reserved', 'a reload keeps the reserved huge pages');

    my $mark = $t->log_mark;
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
    $t->reload;
    like($t->log_since($mark),
         qr/"ids" keeps its memory, and its huge_pages "reserved": restart/,
         'the log says that memory in use cannot change its kind of pages');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the zone continues to answer');

    # two instances run at once, and there are huge pages for one

    configure($t, ['zone=ids file=ids.bloom huge_pages=reserved'], api => 1,
              workers => 2);
    machine($reserved, $needed);
    my ($free) = look('/proc/meminfo') =~ /^HugePages_Free:\s*(\d+)/m;

    $t->upgrade;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the zone answers after an upgrade');
    isnt(pages()->{kind}, 'reserved',
         'the new instance gets no reserved huge pages while the old has them')
        if $free < $needed - 8;

    $t->stop;

    ok(wait_until(sub {
        look('/proc/meminfo') =~ /^HugePages_Free:\s*(\d+)/m;
        return $1 >= $needed;
    }), 'all reserved huge pages are free after nginx stops');
};


subtest 'a zone starts empty' => sub {
    machine($transparent, 'advise');

    configure($t, map { ["zone=ids capacity=6m fpr=1e-6$_"] }
                      ' huge_pages=transparent');
    $t->run;
    is(ask($t, 'ids', @ids), $none,
       'everything is absent in an empty zone on huge pages');

    configure($t, ['zone=ids capacity=6m fpr=1e-6 huge_pages=off']);
    $t->reload;
    is(ask($t, 'ids', @ids), $none,
       'everything is absent after a change of huge_pages=');
    $t->stop;
};


done_testing;
