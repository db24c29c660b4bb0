#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the alerts of conf-examples/prometheus pass their tests, and that
# the alerts and the dashboard only use metrics that exist.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Prometheus;
use BloomTest::Rules;

my $t = BloomTest->new;
my $examples = 'conf-examples/prometheus';

sub slurp {
    my ($path) = @_;

    open my $fh, '<:raw', $path or die "cannot open $path: $!";
    local $/;

    return <$fh>;
}

# Returns all metrics, of zones that together have a value for each of them.

sub metrics {
    $t->build_image('ids.bloom', ['one'], '--as-of', '2020-01-01T00:00:00Z');
    configure_rules($t, {}, <<'CONF');
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom max_age=100000d;
    bloom_zone zone=fleet capacity=1k fpr=0.01;
    bloom_source zone=fleet name=s;
    bloom_zone zone=brief capacity=1k fpr=0.01 expire=1h;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        location / {
            bloom_feedback 404;
            bloom_reject absent $arg_id zone=ids;
        }
    }
CONF
    $t->run;
    $t->get('/?id=none');
    $t->post('/bloom/zones/ids/reload')->status == 200 or die 'no reload';

    return { map { /^(\w+)/ ? ("nginx_bloom_$1" => 1) : () }
                 keys %{ samples($t) } };
}


subtest 'promtool accepts and tests the examples' => sub {
    for (['check', 'config', "$examples/prometheus.yml"],
         ['check', 'rules', "$examples/alerts.yml"],
         ['test', 'rules', "$examples/alerts-test.yml"])
    {
        my ($exit, $said) = promtool(@$_);
        is($exit, 0, "promtool @$_ succeeds") or diag($said);
        like($said, qr/SUCCESS/, "promtool @$_ reports success");
    }

    # the tests must fail if an alert is wrong

    my $alerts = slurp("$examples/alerts.yml") =~ s/> 0\.8 \*/> 0.9 */r;
    $t->write_file('alerts.yml', $alerts);
    $t->write_file('alerts-test.yml', slurp("$examples/alerts-test.yml"));

    my ($exit) = promtool('test', 'rules', $t->testdir . '/alerts-test.yml');
    isnt($exit, 0, 'a test of a wrong alert fails');
};


subtest 'each alert is tested' => sub {
    my $tests = slurp("$examples/alerts-test.yml");
    my @alerts = slurp("$examples/alerts.yml") =~ /- alert: (\w+)/g;

    cmp_ok(scalar @alerts, '>', 5, 'alerts.yml has alerts');

    for my $alert (@alerts) {
        like($tests, qr/alertname: $alert\n\s+eval_time: \w+\n\s+exp_alerts:\n/,
             "$alert is tested");
    }
};


subtest 'the examples use metrics that exist' => sub {
    my $metrics = metrics();
    my $dashboard = eval {
        JSON::PP->new->utf8->decode(slurp("$examples/grafana.json"));
    };

    is(ref $dashboard, 'HASH', 'the Grafana dashboard is JSON') or diag($@);
    cmp_ok(scalar @{ $dashboard->{panels} }, '>', 5,
           'the Grafana dashboard has panels');
    is(scalar(grep { !@{ $_->{targets} } } @{ $dashboard->{panels} }), 0,
       'each panel of the dashboard has a query');

    for my $file ('grafana.json', 'alerts.yml', 'alerts-test.yml') {
        my %asked = map { $_ => 1 }
                        slurp("$examples/$file") =~ /(nginx_bloom_\w+)/g;
        my @missing = grep { !$metrics->{$_} } sort keys %asked;

        cmp_ok(scalar keys %asked, '>', 5, "$file uses metrics");
        is("@missing", '', "all metrics that $file uses exist");
    }
};


done_testing;
