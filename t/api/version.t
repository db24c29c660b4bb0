#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The tool, the log, the index of the endpoint and the metrics all name the same
# version, and the log names it once for each start of nginx.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Prometheus;
use BloomTest::Zones;

my $t = BloomTest->new;

configure($t, ['zone=one capacity=1k fpr=1e-6'], api => 1);

my (undef, $out) = $t->run_tool('--version');
my ($version) = $out =~ /^ngx-bloom (\d+\.\d+\.\d+),/;
ok($version, '"ngx-bloom --version" prints a version');


# How often the log has the line about the version since this mark.

sub lines {
    my ($mark, $zones) = @_;

    return scalar(() = $t->log_since($mark)
        =~ /\[notice\] .*: bloom module \Q$version\E serves \Q$zones\E$/mg);
}


subtest 'a start logs the version and the number of zones' => sub {
    my $mark = $t->log_mark;
    $t->run;
    is(lines($mark, '1 zone'), 1, 'the log has the line once after a start');

    $mark = $t->log_mark;
    configure($t, [map { "zone=$_ capacity=1k fpr=1e-6" } 'one', 'two'],
              api => 1);
    my ($exit, $said) = $t->test_config;
    is($exit, 0, '"nginx -t" accepts the configuration');
    unlike($said, qr/bloom module/, '"nginx -t" does not print the version');

    $t->reload;
    unlike($t->log_since($mark), qr/bloom module/,
           'neither "nginx -t" nor a reload logs the version again');

    $mark = $t->log_mark;
    $t->upgrade;
    is(lines($mark, '2 zones'), 1, 'an upgrade logs the version once');
};


subtest 'the endpoint says its version' => sub {
    is(api($t, GET => '')->json->{version}, $version,
       'the index has the version of the tool');
    is(samples($t)->{qq(build_info{version="$version"})}, 1,
       'the metric build_info has the version of the tool');
};


done_testing;
