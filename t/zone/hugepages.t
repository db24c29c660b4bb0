#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone uses transparent huge pages if the machine has them, and reports how
# much of its memory is on them.  With TEST_NGINX_HUGE_PAGES=1, as root, the
# test permits them, and restores the machine's setting at its end.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $huge = 2 ** 21;
my $transparent = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';
my $before;

sub look {
    open my $fh, '<', $transparent or return '';
    my ($value) = <$fh> =~ /\[(\w+)\]/;

    return $value;
}

sub change {
    my ($value) = @_;

    open my $fh, '>', $transparent or return;
    print $fh $value;
    close $fh;
}

END {
    my $status = $?;
    change($before) if defined $before;
    $? = $status;
}

if ($ENV{TEST_NGINX_HUGE_PAGES}) {
    $before = look();
    change('advise');
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

sub huge_bytes {
    return $t->get('/bloom/zones/ids')->json->{memory}{huge_bytes};
}

sub serve {
    install_image($t, 'one');
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
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
        $got = huge_bytes();
        return $got >= $size - 2 * $huge;
    }, 20);

    cmp_ok($got, '>=', $size - 2 * $huge, $what);
}


subtest 'a process gets no huge pages' => sub {
    small_pages(1);

    my $log = serve();

    like($log, qr/"ids" has a filter of \d+k, and 0k of its memory is on huge pages/,
         'the log says that no memory is on huge pages');
    is(huge_bytes(), 0, 'the endpoint reports small pages');

    load_twice();
    is(huge_bytes(), 0,
       'no memory is on huge pages after loads by the helper');
    $t->stop;
    small_pages(0);
};


subtest 'transparent huge pages are used' => sub {
    my $log = serve();

    if (look() =~ /^(?:advise|always|within_size|force)$/) {
        is_huge('all of the filter is on transparent huge pages');
        like($log, qr/and [1-9]\d*k of its memory is on huge pages/,
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
        is(huge_bytes(), 0, 'the endpoint reports small pages where the system'
                            . ' has no huge ones');
        like($log, qr/and 0k of its memory is on huge pages/,
             'the log says that no memory is on huge pages');
        note("$transparent allows no transparent huge pages");
    }

    $t->stop;
};


subtest 'a zone starts empty' => sub {
    configure($t, ['zone=ids capacity=6m fpr=1e-6']);
    $t->run;
    is(ask($t, 'ids', @ids), $none,
       'everything is absent in an empty zone on huge pages');

    $t->stop;
};


done_testing;
