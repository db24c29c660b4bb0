#!/usr/bin/perl

# Huge pages: each kind where the machine has it, and what is said where it has
# not.  With TEST_NGINX_HUGE_PAGES=1, and root, the machine is made to have
# both, and is as before in the end.

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

sub install {
    my ($image) = @_;

    my $dir = $t->testdir;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

sub pages { return $t->get('/bloom/zones/ids')->json->{memory}{pages} }

sub serve {
    my ($option) = @_;

    install('one');
    configure($t, ["zone=ids file=ids.bloom$option"], api => 1, workers => 2);
    my $mark = $t->log_mark;
    $t->run;

    is(ask($t, 'ids', @ids, @others), "$all$none", 'the zone answers');

    return $t->log_since($mark);
}

# The helper loads another image, and the first again: a bank that was used is
# used again.

sub load_twice {
    for my $image (qw(two one)) {
        install($image);
        is($t->post('/bloom/zones/ids/reload')->status, 200,
           'another image is loaded');
        is(ask($t, 'ids', @ids, @others),
           $image eq 'one' ? "$all$none" : "$none$all", 'and serves');
    }
}

# How much of the memory the endpoint says to be on huge pages; all of the
# filter but what is at its ends.

sub is_huge {
    my ($what) = @_;

    my $got = 0;

    wait_until(sub {
        $got = pages()->{huge_bytes};
        return $got >= $size - 2 * $huge;
    }, 20);

    cmp_ok($got, '>=', $size - 2 * $huge, $what);
}


subtest 'no such kind' => sub {
    configure($t, ['zone=ids file=one.bloom huge_pages=big']);
    like($t->run_fails, qr/invalid huge_pages "big".*"reserved"/,
         'is refused, and those there are are named');
};


subtest 'small pages' => sub {
    machine($transparent, 'always');

    my $log = serve(' huge_pages=off');

    like($log, qr/"ids" has \d+k for its filter and, by now, 0k of its memory on huge pages/,
         'the log says so');
    is_deeply(pages(), { wanted => 'off', kind => 'small', huge_bytes => 0 },
              'and the endpoint');

    load_twice();
    is(pages()->{huge_bytes}, 0, 'they stay small');
    $t->stop;
};


subtest 'transparent ones' => sub {
    machine($transparent, 'advise');

    my $log = serve('');

    is(pages()->{wanted}, 'transparent', 'are asked for unless told otherwise');

    if (look($transparent) =~ /^(?:advise|always|within_size|force)$/) {
        is(pages()->{kind}, 'transparent', 'and are there');
        is_huge('under all of the filter');
        like($log, qr/by now, [1-9]\d*k of its memory on huge pages \(with huge_pages=transparent\)/,
             'the log says so');

        load_twice();
        is_huge('also after a load by the helper');

        if (my @memory = zone_memory($t->master)) {
            my $resident = 0;

            ok(wait_until(sub {
                ($resident) = sort { $b <=> $a }
                              map { $_->{resident} } zone_memory($t->master);
                return $resident < 1.3 * $size;
            }), 'the old bank was given back')
                or diag("$resident bytes of $size");
        }

        install('one');
        configure($t, ['zone=ids file=ids.bloom'], api => 1);
        $t->reload;
        is_huge('a new helper finds them too');

    } else {
        is_deeply(pages(), { wanted => 'transparent', kind => 'small',
                             huge_bytes => 0 },
                  'where the system has none the endpoint says so');
        like($log, qr/by now, 0k of its memory on huge pages/, 'and the log');
        note("$transparent lets nobody have them");
    }

    $t->stop;
};


subtest 'reserved ones, and none there' => sub {
    machine($reserved, 0);
    plan skip_all => 'this machine has some' if look($reserved) > 0;

    my $log = serve(' huge_pages=reserved');

    like($log, qr/\[warn\].*bloom zone "ids" has no reserved huge pages: it /,
         'a warning');
    like($log, qr/it wants \d+ of 2048k, .* with "sysctl vm.nr_hugepages"/,
         'says what to do');
    is(pages()->{wanted}, 'reserved', 'what was wanted');
    isnt(pages()->{kind}, 'reserved', 'and was not got');

    load_twice();
    $t->stop;
};


subtest 'reserved ones' => sub {
    my $needed = int(2.25 * $size / $huge) + 8;

    machine($reserved, $needed);
    plan skip_all => "vm.nr_hugepages is below $needed; as root,"
                     . ' TEST_NGINX_HUGE_PAGES=1 raises it for the test'
        if look($reserved) < $needed;

    my $log = serve(' huge_pages=reserved');

    unlike($log, qr/\[warn\]/, 'no warning');
    is(pages()->{kind}, 'reserved', 'are got');
    is_huge('under all of the filter');

    load_twice();
    is_huge('after loads by the helper');

    $t->reload;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'a reload keeps them');
    is(pages()->{kind}, 'reserved', 'reserved as before');

    my $mark = $t->log_mark;
    configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
    $t->reload;
    like($t->log_since($mark),
         qr/"ids" keeps its memory, and its huge_pages "reserved": restart/,
         'memory in use cannot change its kind');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'and serves on');

    # two instances at once, and pages for one

    configure($t, ['zone=ids file=ids.bloom huge_pages=reserved'], api => 1,
              workers => 2);
    machine($reserved, $needed);
    my ($free) = look('/proc/meminfo') =~ /^HugePages_Free:\s*(\d+)/m;

    $t->upgrade;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'an upgrade serves');
    isnt(pages()->{kind}, 'reserved', 'on other pages where these are taken')
        if $free < $needed - 8;

    $t->stop;

    ok(wait_until(sub {
        look('/proc/meminfo') =~ /^HugePages_Free:\s*(\d+)/m;
        return $1 >= $needed;
    }), 'nginx leaves none taken');
};


subtest 'a zone that starts empty' => sub {
    machine($transparent, 'advise');

    configure($t, map { ["zone=ids capacity=6m fpr=1e-6$_"] }
                      ' huge_pages=transparent');
    $t->run;
    is(ask($t, 'ids', @ids), $none, 'answers');

    configure($t, ['zone=ids capacity=6m fpr=1e-6 huge_pages=off']);
    $t->reload;
    is(ask($t, 'ids', @ids), $none, 'also when it wants other pages');
    $t->stop;
};


done_testing;
