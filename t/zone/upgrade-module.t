#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx is upgraded from an earlier module to this one and back while keys are
# added and removed.  No acknowledged key is absent, before, during and after;
# and keys that this module removed are absent in the end.  The earlier module
# cannot read a journal with removals: it answers "unknown" then.
# TEST_NGINX_OLD_MODULE names the earlier module, built for the same nginx.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $old_module = $ENV{TEST_NGINX_OLD_MODULE}
    or plan(skip_all => 'TEST_NGINX_OLD_MODULE names no earlier module');

my $t = BloomTest->new;
my $new_module = $t->{module}
    or plan(skip_all => 'the module is linked into nginx');

$t->build_image('ids.bloom', [keys_of('id', 10)], '-p', '1e-9', '-n', '50k',
                '--as-of', rfc3339(time - 600));

sub with_module {
    my ($module) = @_;

    $t->{module} = $module;
    configure($t, ["zone=ids file=ids.bloom",
                   "zone=seen capacity=50k fpr=1e-9"],
              api => 1, add => 1);
}

my %added = (ids => [keys_of('id', 10)], seen => []);
my $next = 0;

sub add_some {
    for my $zone ('ids', 'seen') {
        my @keys = map { 'key' . $next++ } 1 .. 20;

        add($t, $zone, \@keys);
        push @{ $added{$zone} }, @keys;
    }
}


# Both modules may answer: each connection may reach either.

sub none_is_absent {
    my ($name) = @_;

    for my $zone ('ids', 'seen') {
        my $answers = join '', map { scalar ask($t, $zone, @{ $added{$zone} }) }
                                   1 .. 6;
        unlike($answers, qr/0/, "no key of zone $zone is absent $name");
    }
}


# Removes keys, once this module has the connection: the earlier one does not
# know the request.

sub removed {
    my ($zone, @keys) = @_;

    my $response;
    wait_until(sub {
        $response = api($t, POST => "zones/$zone/remove",
                        body => join "\n", @keys);
        return $response->status == 200;
    }) or die "keys are not removed: $response";

    my %gone = map { $_ => 1 } @keys;
    $added{$zone} = [grep { !$gone{$_} } @{ $added{$zone} }];
}


subtest 'nginx is upgraded from the earlier module' => sub {
    with_module($old_module);
    $t->run;
    add_some();
    none_is_absent('in the earlier module');

    with_module($new_module);
    $t->upgrade_begin;
    add_some();
    none_is_absent('in both modules');
    removed('ids', 'id1', 'key0');
    removed('seen', 'key20');
    none_is_absent('when this module has removed keys');

    my $mark = $t->log_mark;
    eval { add_some() } for 1 .. 3;
    none_is_absent('when both modules have added keys after removals');
    $t->upgrade_finish;
    add_some();
    is(ask_until_known($t, 'ids', 'id1', 'key0', 'id2'), '001',
       'removed keys are absent after the upgrade');
    is(ask_until_known($t, 'seen', 'key20', 'key21'), '01',
       'removed keys are absent in a zone without an image');
    none_is_absent('after the upgrade');
    $t->excuse_log($mark);
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'key0', 'id2'), '001',
       'removed keys are absent after kill -9 of all processes');
    none_is_absent('after kill -9 of all processes');
    $t->stop;
};


subtest 'the upgrade is reverted' => sub {
    system('rm', '-rf', $t->testdir . '/state');
    %added = (ids => [keys_of('id', 10)], seen => []);
    with_module($old_module);
    $t->run;
    add_some();

    with_module($new_module);
    $t->upgrade_begin;
    my $mark = $t->log_mark;
    removed('ids', 'id1');
    removed('seen', $added{seen}[0]);
    none_is_absent('when this module has removed keys');
    $t->upgrade_back;
    none_is_absent('when the earlier module is alone again');

    # it refuses to start with such a journal rather than to lose keys

    $t->stop;
    with_module($old_module);
    my ($outcome, $log) = $t->try_run;
    is($outcome, 'refused', 'the earlier module does not start any more');
    like($log, qr/newer/, 'the earlier module says that it is too old');
    $t->stop;
    $t->excuse_log($mark);

    with_module($new_module);
    $t->run;
    is(ask_until_known($t, 'ids', 'id1', 'id2'), '01',
       'this module starts with what it has removed');
    none_is_absent('when this module starts again');
};

done_testing;
