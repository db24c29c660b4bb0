#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests GET metrics: promtool and a real Prometheus read the metrics of zones
# and rules, and the values match the requests that were made.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Prometheus;
use BloomTest::Rules;

my $t = BloomTest->new;
my $dir = $t->testdir;

$t->build_image('ids.bloom', ['one', 'gone'], '-p', '1e-9', '--seed', 1,
                '--as-of', '2020-01-01T00:00:00Z');
link "$dir/ids.bloom", "$dir/aged.bloom" or die "link: $!";
$t->build_image('next.bloom', [1 .. 500], '-p', '1e-3', '--seed', 2);

# Zones of all kinds, one of them with a name that has to be escaped.

sub configure {
    my (%option) = @_;

    configure_rules($t, {}, <<"CONF", main => 'worker_processes 2;');
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=aged file=%%TESTDIR%%/aged.bloom max_age=1h;
    bloom_zone zone=seen capacity=100 fpr=0.01 max_keys=301;
    bloom_zone zone=brief capacity=100 fpr=0.01 expire=20s;
    bloom_zone 'zone=q"\\\\x\xc3\xa9\xff' capacity=100 fpr=0.01 journal=off;
    bloom_lookup \$arg_id \$known zone=ids;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { client_max_body_size 0; bloom_api write=on; }
        location /shield {
            bloom_feedback 404;
            bloom_reject absent \$arg_id zone=ids name=shield;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /audit {
            bloom_audit 100%;
            bloom_reject absent \$arg_id zone=ids name=audit;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject present \$arg_id zone=ids 'name=say "no"';
        }
        location /route {
            bloom_route present \$arg_id zone=ids to=/bloom-no;
            bloom_pass absent \$arg_id zone=ids;
        }
        location /stale {
            bloom_unknown reject;
            bloom_reject absent \$arg_id zone=aged name=stale;
        }
        location /lookup { return 200 "\$known"; }
        $option{server}
    }
CONF
}

configure(server => '');
$t->backend(8081, sub {
    my ($request) = @_;

    return { status => $request->{uri} =~ /gone/ ? 404 : 200, body => 'b' };
});
$t->run;


subtest 'the metrics are in the format of Prometheus' => sub {
    my $response = $t->get('/bloom/metrics');

    is($response->status, 200, 'GET metrics answers with 200');
    is($response->header('Content-Type'),
       'text/plain; version=0.0.4; charset=utf-8',
       'the metrics have the type of the text format');
    is($t->head('/bloom/metrics')->status, 200,
       'HEAD metrics answers with 200');
    is($t->post('/bloom/metrics')->status, 405, 'POST metrics is refused');

    my ($exit, $said) = promtool('check', 'metrics', { stdin => $response->body });
    is($exit, 0, 'promtool accepts the metrics');
    is($said, '', 'promtool prints no complaint about the metrics');

    ($exit, $said) = promtool('check', 'metrics',
                              { stdin => "# TYPE x_total gauge\nx_total 1\n" });
    isnt($exit, 0, 'promtool refuses metrics that are wrong');
};


subtest 'zones have metrics' => sub {
    my $before = samples($t);

    is($before->{'checks_total{zone="ids",answer="absent"}'}, 0,
       'a counter is 0 at first');

    $t->get('/shield?id=none') for 1 .. 3;
    $t->get('/shield?id=one') for 1 .. 4;
    $t->get('/shield?id=gone');
    $t->get('/audit?id=none');
    $t->get('/audit?id=gone-none');
    $t->get('/dry?id=one') for 1 .. 5;
    $t->get('/route?id=one') for 1 .. 6;
    $t->get('/route?id=none') for 1 .. 2;
    $t->get('/lookup?id=one') for 1 .. 7;
    $t->get('/stale?id=one');
    add($t, 'seen', ['a', 'b']);
    add($t, 'seen', ['a']);

    my $s = samples($t);
    my %want = (
        'checks_total{zone="ids",answer="absent"}' => 3 + 2 + 4,
        'checks_total{zone="ids",answer="present"}' => 4 + 1 + 5 + 6 + 7,
        'checks_total{zone="ids",answer="unknown"}' => 0,
        'checks_total{zone="aged",answer="unknown"}' => 1,
        'invalid_keys_total{zone="ids"}' => 0,
        'requests_total{zone="ids",decision="rejected"}' => 3,
        'requests_total{zone="aged",decision="rejected"}' => 1,
        'requests_total{zone="ids",decision="routed"}' => 6,
        'requests_total{zone="ids",decision="dry_run"}' => 5,
        'additions_total{zone="seen",result="added"}' => 2,
        'additions_total{zone="seen",result="already_present"}' => 1,
        'feedback_requests_total{zone="ids",result="absent"}' => 3,
        'feedback_requests_total{zone="ids",result="false_positive"}' => 1,
        'audited_requests_total{zone="ids"}' => 2,
        'audit_results_total{zone="ids",result="wrong_absent"}' => 1,
        'audit_results_total{zone="ids",result="confirmed"}' => 1,
        'audit_results_total{zone="ids",result="unanswered"}' => 0,
        'audit_added_keys_total{zone="ids"}' => 0,
        'audit_not_added_keys_total{zone="ids"}' => 0,
        'state{zone="ids",state="serving"}' => 1,
        'state{zone="ids",state="stale"}' => 0,
        'state{zone="aged",state="stale"}' => 1,
        'state{zone="aged",state="serving"}' => 0,
        'generation{zone="ids"}' => 1,
        'image_as_of_timestamp_seconds{zone="ids"}' => '1577836800.000',
        'image_max_age_seconds{zone="aged"}' => 3600,
        'image_items{zone="ids"}' => 2,
        'estimated_items{zone="seen"}' => 2,
        'image_capacity{zone="seen"}' => 100,
        'image_fpr{zone="seen"}' => '0.01',
        'max_items{zone="seen"}' => 700,
        'layers{zone="seen"}' => 0,
        'max_items{zone="ids"}' => 2,
        'promised_fpr{zone="ids"}' => '1e-09',
        'journal_error{zone="seen"}' => 0,
        'expire_seconds{zone="brief"}' => '20.000',
        'live_slices{zone="brief"}' => 1,
        'ready_slices{zone="brief"}' => 16,
        'clock_behind_seconds{zone="brief"}' => 0,
        'max_items{zone="brief"}' => 100,
        'loads_total{zone="ids",result="ok"}' => 0,
        'load_size_bytes{zone="ids"}' => 0,
        'generation{zone="q\\"\\\\x' . "\xc3\xa9" . '?"}' => 1,
    );

    is($s->{$_}, $want{$_}, "$_ is $want{$_}") for sort keys %want;

    my $wrong = 'last_wrong_absent_timestamp_seconds';
    cmp_ok(abs($s->{"$wrong\{zone=\"ids\"}"} - time), '<', 60,
           'the last wrong absent is less than a minute ago');
    is($s->{"$wrong\{zone=\"seen\"}"}, undef,
       'a zone without a wrong absent has no time of one');

    my $state = zone_state($t, 'seen');
    is(zone_state($t, 'ids')->{feedback}{measured_fpr}, 0.25,
       'the state has the rate that follows from feedback_requests_total');
    is($state->{feedback}{measured_fpr}, undef,
       'the state has no measured rate without feedback');
    is($s->{'journal_bytes{zone="seen"}'}, $state->{journal}{bytes},
       'journal_bytes equals the bytes of the journal in the state');
    cmp_ok($s->{'journal_bytes{zone="seen"}'}, '>', 0,
           'journal_bytes of a zone with a journal is over 0');
    is($s->{'zone_bytes{zone="seen"}'}, $state->{memory}{zone_bytes},
       'zone_bytes equals the one in the state');
    cmp_ok(abs($s->{'fill_ratio{zone="seen"}'}
               - $state->{filter}{fill_ratio}), '<', 1e-6,
           'fill_ratio equals the one in the state');

    for my $none ('image_as_of_timestamp_seconds{zone="seen"}',
                  'image_max_age_seconds{zone="ids"}',
                  'last_load_success{zone="ids"}',
                  map { "$_\{zone=\"seen\"}" }
                      qw(expire_seconds live_slices ready_slices
                         clock_behind_seconds))
    {
        ok(!exists $s->{$none}, "the metrics do not have $none");
    }

    my $age = $s->{'image_age_seconds{zone="ids"}'};
    cmp_ok(abs($age - (time - 1577836800)), '<', 60,
           'image_age_seconds is the time since as_of');
    cmp_ok($s->{'image_age_seconds{zone="seen"}'}, '<', 600,
           'image_age_seconds is the time since the filter was created');
    cmp_ok(abs($s->{'helper_heartbeat_timestamp_seconds{zone="ids"}'} - time),
           '<', 60, 'the heartbeat of the helper is less than a minute old');

    my $build = zone_state($t, 'ids')->{image}{build_id};
    is($s->{"image_info{zone=\"ids\",build_id=\"$build\",layout=\"blocked\","
            . 'hash="murmur3",form="raw",k="'
            . zone_state($t, 'ids')->{image}{k} . '",uploaded="false"}'}, 1,
       'image_info has the properties of the image as labels');
};


# Returns the samples of rules, with short names.

sub rules {
    my $s = samples($t);

    return { map { my $value = $s->{$_};
                   s/^rule_(checks|requests)_total\{rule=//;
                   s/\b(zone|action|condition|answer|decision)=//g; tr/"}//d;
                   ($_ => $value) }
             grep { /^rule_/ } keys %$s };
}


subtest 'rules have metrics' => sub {
    my $rules = rules();
    my ($line) = grep { /bloom_route/ } split /^/, $t->read_file('nginx.conf');
    my $at = 1;

    for (split /^/, $t->read_file('nginx.conf')) {
        last if $_ eq $line;
        $at++;
    }

    my %want = (
        'shield,ids,reject,absent,absent' => 3,
        'shield,ids,reject,absent,present' => 5,
        'shield,ids,reject,absent,fired' => 3,
        'shield,ids,reject,absent,dry_run' => 0,
        'audit,ids,reject,absent,absent' => 2,
        'audit,ids,reject,absent,audited' => 2,
        'audit,ids,reject,absent,fired' => 0,
        'say \no\,ids,reject,present,dry_run' => 5,
        "$dir/nginx.conf:$at,ids,route,present,fired" => 6,
        "$dir/nginx.conf:" . ($at + 1) . ',ids,pass,absent,fired' => 2,
        'stale,aged,reject,absent,unknown' => 1,
        'stale,aged,reject,absent,unknown' => 1,
        'stale,aged,reject,absent,fired' => 0,
    );

    is($rules->{$_}, $want{$_}, "rule $_ is $want{$_}") for sort keys %want;
};


subtest 'loads have metrics' => sub {
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'a good image is loaded');
    unlink "$dir/ids.bloom";
    $t->write_file('ids.bloom', 'none');
    is(api($t, POST => 'zones/ids/reload')->status, 422,
       'a bad image is refused');

    my $s = samples($t);
    is($s->{'loads_total{zone="ids",result="ok"}'}, 1,
       'the good load is counted');
    is($s->{'loads_total{zone="ids",result="refused"}'}, 1,
       'the refused load is counted');
    is($s->{'last_load_success{zone="ids"}'}, 0,
       'last_load_success is 0 after a refused load');
    is($s->{'generation{zone="ids"}'}, 2,
       'the generation is that of the good load');
    like($s->{'last_load_duration_seconds{zone="ids"}'}, qr/^\d+\.\d{3}$/,
         'the duration of the last load has milliseconds');
    cmp_ok(abs($s->{'last_load_timestamp_seconds{zone="ids"}'} - time), '<',
           60, 'the time of the last load is less than a minute ago');

    rename "$dir/next.bloom", "$dir/ids.bloom" or die "rename: $!";
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'a good image is loaded after a bad one');
    is(samples($t)->{'last_load_success{zone="ids"}'}, 1,
       'last_load_success is 1 after a good load');
};


subtest 'the number of series of rules is bounded' => sub {
    my $rules = join "\n", map {
        "location /many$_ { bloom_reject absent \$arg_id zone=ids name=m$_; }"
    } 1 .. 400;

    configure(server => $rules);
    $t->reload;
    $t->get("/many$_?id=none") for 1, 399, 400;

    my $names = { map { /^([^,]*)/ ? ($1 => 1) : () } keys %{ rules() } };
    cmp_ok(scalar keys %$names, '<=', 256, '400 rules have at most 256 series');
    is(rules()->{'m1,ids,reject,absent,fired'}, 1,
       'one of the first rules has a series of its own');
    cmp_ok(rules()->{'other,other,other,other,fired'}, '>=', 1,
           'rules without a series of their own are counted together');

    my ($exit, $said) = promtool('check', 'metrics',
                                 { stdin => $t->get('/bloom/metrics')->body });
    is("$exit $said", '0 ', 'promtool accepts metrics of many rules');

    configure(server => '');
    $t->reload;
    is(rules()->{'shield,ids,reject,absent,fired'}, 3,
       'the series of a rule continues when other rules are removed');
};


subtest 'Prometheus reads the metrics' => sub {
    my $port = $t->port(9090);

    $t->write_file('prometheus.yml', <<"YML");
global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs:
  - job_name: nginx
    metrics_path: /bloom/metrics
    static_configs: [ { targets: [ "127.0.0.1:@{[ $t->port(8080) ]}" ] } ]
YML

    open my $log, '>', "$dir/prometheus.log" or die "prometheus.log: $!";
    my $pid = spawn(sub {
        exec 'prometheus', "--config.file=$dir/prometheus.yml",
             "--storage.tsdb.path=$dir/prometheus",
             "--web.listen-address=127.0.0.1:$port"
            or die "cannot run prometheus: $!";
    }, stderr => $log, stdout => $log);

    my $query = sub {
        my ($promql) = @_;
        my $form = HTTP::Tiny->new->www_form_urlencode({ query => $promql });
        my $got = HTTP::Tiny->new(timeout => 5)
                  ->get("http://127.0.0.1:$port/api/v1/query?$form");

        return $got->{success}
               ? JSON::PP::decode_json($got->{content})->{data}{result} : [];
    };

    my $found = wait_until(sub {
        my $result = $query->('nginx_bloom_generation{zone="ids"}');
        return @$result && $result->[0]{value}[1];
    });
    is($found, 3, 'Prometheus has the generation of a zone');

    my $up = $query->('up{job="nginx"}');
    is($up->[0]{value}[1], 1, 'Prometheus reads the metrics without an error');
    is($query->('count(nginx_bloom_rule_checks_total{rule="shield"})')
       ->[0]{value}[1], 5, 'Prometheus has the series of a rule');

    kill 'TERM', $pid;
    wait_until(sub { !BloomTest::Process::alive($pid) })
        or kill 'KILL', $pid;
};


subtest 'the metrics are valid if no zone is declared' => sub {
    configure_rules($t, {}, <<'CONF');
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api; }
    }
CONF
    $t->stop;
    $t->run;

    my $response = $t->get('/bloom/metrics');

    is($response->status, 200, 'GET metrics answers with 200 without zones');
    like($response->body, qr/^# TYPE nginx_bloom_state gauge$/m,
         'the metrics are described without zones');
    is_deeply([map { s/\{.*//r } keys %{ samples($t) }], ['build_info'],
              'the metrics have no sample but the version without zones');

    my ($exit, $said) = promtool('check', 'metrics', { stdin => $response->body });
    is("$exit $said", '0 ', 'promtool accepts metrics without samples');
};


done_testing;
