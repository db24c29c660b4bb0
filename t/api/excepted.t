#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what operators see of excepted keys, and how they forget them: the state,
# the metrics, the lists, the explanation of a key, and POST clear?only=excepted.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant BURST => 10;

my $t = BloomTest->new;
my @zones = qw(ids memory small slow chosen hosts);

# A saved image has the as_of of the image that it comes from.

$t->build_image('ids.bloom', [map { keys_of($_, 20) } qw(ready a b c d)],
                '-p', '1e-9', '--as-of', rfc3339(time - 7200));

$t->write_file('memory.bloom', $t->read_file('ids.bloom'));
$t->build_image('hosts.bloom', ['shop.example', 'up.example', 'ready.example'],
                '-p', '1e-9', '--form', 'host');

# The builder's exception is not a key of the filter: its bits are set all the
# same, as those of a false positive are.

$t->build_image('plain.bloom', [keys_of('ready', 20), 'chosen', 'both'],
                '-p', '1e-9');
$t->write_file('chosen.bloom', with_exceptions($t->read_file('plain.bloom'),
    [[1, 0, 'chosen'], [5, 0, 'both']]));

# The backend has no key, so each key of the images is a false positive.

sub configure_feedback {
    my (%option) = @_;

    my $except = $option{except} // 'except=on rate=10000r/s after=1s';

    $t->write_file_expand('nginx.conf', join "\n", <<'CONF',
%%TEST_GLOBALS%%
worker_processes 2;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    access_log off;
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=ids file=ids.bloom;
    bloom_zone zone=memory file=memory.bloom journal=off;
    bloom_zone zone=small file=ids.bloom removals=4;
    bloom_zone zone=slow file=ids.bloom;
    bloom_zone zone=chosen file=chosen.bloom;
    bloom_zone zone=hosts file=hosts.bloom;
    bloom_zone zone=none capacity=1k fpr=1e-9 removals=1;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ {
            client_max_body_size 0;
            bloom_api write=on image=on;
        }
        location /read/ { bloom_api; }
        location = /plain {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass   http://127.0.0.1:%%PORT_8081%%;
        }
        location = /measured {
            bloom_reject   absent $arg_id zone=ids;
            bloom_feedback 404;
            proxy_pass     http://127.0.0.1:%%PORT_8081%%;
        }
        location = /split {
            bloom_reject   absent $arg_id zone=ids split=,;
            bloom_feedback 404;
            proxy_pass     http://127.0.0.1:%%PORT_8081%%;
        }
CONF
        (map { my $how = $_ eq 'slow' ? $except =~ s/\brate=\S+/rate=1r\/m/r
                                      : $except;
               <<"CONF" } @zones),
        location = /$_ {
            bloom_reject   absent \$arg_id zone=$_;
            bloom_feedback 404 $how;
            proxy_pass     http://127.0.0.1:%%PORT_8081%%;
        }
CONF
        <<'CONF');
    }
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        add_header X-Backend 1 always;
        location / { return 404; }
    }
}
CONF
}

configure_feedback();
$t->run;


sub reload_file {
    my ($zone) = @_;

    my $response = api($t, POST => "zones/$zone/reload");
    $response->status == 200 or die "zone $zone: no image:\n$response";
}


# Requests keys, and returns a digit for each: 1 if the request reached the
# backend.

sub request {
    my ($zone, @keys) = @_;

    return join '', map { $_->header('X-Backend') ? 1 : 0 }
                        $t->pipeline(map { "/$zone?id=$_" } @keys);
}


# Requests keys until they are excepted: a generation has to serve for some time
# before the zone excepts keys.

sub except {
    my ($zone, @keys) = @_;

    wait_until(sub { request($zone, @keys) !~ /1/ })
        or die "zone $zone does not except @keys";
}


sub forget {
    my ($zone) = @_;

    return api($t, POST => "zones/$zone/clear?only=excepted");
}


sub excepted { return zone_state($t, $_[0])->{removals}{excepted} }


# Tests a rate, of which the state has some digits.

sub is_rate {
    my ($got, $want, $name) = @_;

    is(sprintf('%.6f', $got), sprintf('%.6f', $want), $name);
}


# Returns the keys of GET removed, in an order.

sub listed {
    my ($zone, $query) = @_;

    return join ' ', sort map { $_->{key} }
        @{ api($t, GET => "zones/$zone/removed?$query")->json->{keys} };
}


# Returns the samples of a zone without the prefix and the zone.

sub metrics {
    my ($zone) = @_;

    return map { /^nginx_bloom_(\w+)\{zone="$zone",?(.*?)\} (\S+)$/
                 ? ("$1 $2" => $3) : () }
               split /\n/, api($t, GET => 'metrics')->body;
}


# Returns the only expression in the answer about a key.

sub expression {
    my ($zone, $key) = @_;

    return api($t, GET => "zones/$zone/keys?key=$key")->json->{expressions}[0];
}


# Returns why the rule of a zone fires on a key, or undef if it does not.

sub fires {
    my ($zone, $key) = @_;

    my ($rule) = grep { $_->{zone} eq $zone && $_->{effect} eq 'fires' }
        map { @{ $_->{rules} } }
        @{ api($t, GET => "keys?key=$key")->json->{lists} };

    return $rule && join ' ', grep { defined } @$rule{qw(entry exception)};
}


subtest 'state and metrics count excepted keys' => sub {
    my $state = zone_state($t, 'ids');

    is_deeply($state->{removals}, { limit => 10000, count => 0, excepted => 0,
                                    excepted_limit => 5000 },
              'no key is excepted at first');
    is_deeply($state->{feedback},
              { absent => 0, false_positives => 0, excepted_rejected => 0,
                measured_fpr => undef, measured_fpr_without_excepted => undef,
                excepted => 0, not_excepted => 0, not_excepted_doubt => 0,
                not_excepted_full => 0, not_excepted_rate => 0 },
              'the counters are 0 at first');
    is(zone_state($t, 'none')->{removals}{excepted_limit}, 0,
       'removals=1 has no room for an excepted key');

    except('ids', 'ready1');
    my $before = zone_state($t, 'ids')->{feedback};
    is(request('ids', keys_of('a', 4), keys_of('a', 4), 'unheard-of'),
       '111100000', 'a false positive passes once');

    $state = zone_state($t, 'ids');
    is($state->{feedback}{excepted}, 5, 'the state counts what was excepted');
    is($state->{feedback}{not_excepted}, $before->{not_excepted},
       'each of the last false positives was excepted');
    is($state->{feedback}{false_positives}, $before->{false_positives} + 4,
       'false positives that reached the backend are counted');
    is($state->{feedback}{absent}, $before->{absent} + 5,
       'requests for excepted keys count as absent');
    is($state->{feedback}{excepted_rejected}, $before->{excepted_rejected} + 4,
       'of these, those whose key is an excepted one are counted');

    my ($wrong, $right) = ($before->{false_positives} + 4,
                           $before->{absent} + 5);

    is_rate($state->{feedback}{measured_fpr}, $wrong / ($wrong + $right),
            'the measured rate counts an excepted key once');
    is_rate($state->{feedback}{measured_fpr_without_excepted},
            ($wrong + $before->{excepted_rejected} + 4) / ($wrong + $right),
            'the other rate is what it would be without excepted keys');
    is($state->{removals}{excepted}, 5, 'the state has the excepted keys');
    is($state->{removals}{count}, 5, 'they take room of removed keys');

    my %metrics = metrics('ids');
    my %want = (
        'feedback_excepted_keys_total ' => 5,
        'feedback_not_excepted_keys_total reason="doubt"'
            => $state->{feedback}{not_excepted_doubt},
        'feedback_not_excepted_keys_total reason="full"' => 0,
        'feedback_not_excepted_keys_total reason="rate"' => 0,
        'feedback_excepted_rejected_total '
            => $before->{excepted_rejected} + 4,
        'excepted_keys ' => 5,
        'excepted_keys_limit ' => 5000,
        'removed_keys ' => 5,
        'audit_added_keys_total ' => 0,
    );

    is($metrics{$_}, $want{$_}, "the metric $_ is $want{$_}") for sort keys %want;
};


subtest 'requests are counted that only an excepted key stops' => sub {
    my $rejected = sub {
        my ($zone, @paths) = @_;

        my $before = zone_state($t, $zone)->{feedback};
        $t->pipeline(@paths);
        my $after = zone_state($t, $zone)->{feedback};

        return join ' ', map { $after->{$_} - $before->{$_} }
                             qw(excepted_rejected absent false_positives);
    };

    is($rejected->('ids', map { "/measured?id=$_" } 'a1', 'a2', 'a1', 'none'),
       '3 4 0', 'also under a bloom_feedback without except=on');
    is($rejected->('ids', '/plain?id=a1', '/plain?id=a1'), '0 0 0',
       'but not without a bloom_feedback');
    is($rejected->('ids', map { ("/plain?id=$_", '/ids?id=none') } 'a1', 'a2'),
       '0 2 0', 'an absent key does not count as the excepted key before it');
    is($rejected->('ids', '/split?id=a1,a2'), '0 1 0', 'nor does a list of keys');

    api($t, POST => 'zones/ids/remove', body => "a1\n")->status == 200
        or die 'not removed';
    is($rejected->('ids', '/ids?id=a1', '/ids?id=a2'), '1 2 0',
       'an excepted key that was removed, too, would be absent anyway');
    api($t, POST => 'zones/ids/clear?only=removed')->status == 200
        or die 'not restored';

    is($rejected->('chosen', '/chosen?id=both', '/chosen?id=chosen'),
       '0 2 0', 'so would one that the builder of the image chose');

    except('hosts', 'ready.example');
    request('hosts', 'shop.example', 'up.example', 'www.up.example');
    is($rejected->('hosts', map { "/hosts?id=$_" } 'SHOP.example', 'none.example',
                                                   'www.up.example'),
       '2 3 0', 'in a form with several expressions they are counted, too');
};


subtest 'the state says why keys are not excepted' => sub {
    my $reasons = sub {
        my $f = zone_state($t, $_[0])->{feedback};
        is($f->{not_excepted}, $f->{not_excepted_doubt} + $f->{not_excepted_full}
                              + $f->{not_excepted_rate},
           'not_excepted is the sum over all reasons');
        return $f;
    };

    add($t, 'ids', ['b1']);
    my $before = $reasons->('ids');
    is(request('ids', 'b1', 'b1'), '11', 'an added key passes again and again');
    is($reasons->('ids')->{not_excepted_doubt},
       $before->{not_excepted_doubt} + 2, 'the reason is a doubt');

    except('small', 'ready1', 'ready2');
    is(request('small', keys_of('a', 3), 'ready1'), '1110',
       'a zone excepts up to half of removals');
    is($reasons->('small')->{not_excepted_full}, 3,
       'the reason is that the share is used');
    is_deeply(zone_state($t, 'small')->{removals},
              { limit => 4, count => 2, excepted => 2, excepted_limit => 2 },
              'the state shows that it is');
    is(api($t, POST => 'zones/small/remove', body => "b1\nb2\n")->status, 200,
       'the other half is left for removed keys');

    except('slow', 'ready1');
    request('slow', keys_of('a', 20), keys_of('b', 20), keys_of('c', 20));
    my $after = $reasons->('slow');
    cmp_ok($after->{excepted}, '>=', BURST, 'a burst of keys is excepted');
    cmp_ok($after->{not_excepted_rate}, '>=', 61 - BURST - 30,
           'the reason for others is the rate');
    is($after->{excepted} + $after->{not_excepted}, $after->{false_positives},
       'each false positive is counted as excepted or as not excepted');

    my %metrics = metrics('small');
    is($metrics{'feedback_not_excepted_keys_total reason="full"'}, 3,
       'the metrics have the reason, too');
};


subtest 'lists and explanations tell excepted keys from removed ones' => sub {
    api($t, POST => 'zones/ids/remove', body => "b2\na2\n")->status == 200
        or die 'not removed';

    is(listed('ids', ''), 'a2 b2', 'GET removed lists removed keys only');
    is(listed('ids', 'kind=removed'), 'a2 b2', '?kind=removed says the same');
    is(listed('ids', 'kind=excepted'), 'a1 a2 a3 a4 ready1',
       '?kind=excepted lists excepted keys only');

    my $list = api($t, GET => 'zones/ids/removed?kind=excepted&limit=2')->json;
    is($list->{count}, 5, 'the list has their number');
    is($list->{limit}, 5000, 'and up to how many the zone excepts');
    is(scalar @{ $list->{keys} }, 2, 'limit= cuts the list off');
    like($list->{keys}[0]{time}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
         'each key has a time');
    is(scalar @{ api($t, GET => 'zones/ids/removed?kind=excepted&from='
                                . $list->{next})->json->{keys} }, 3,
       'from= goes on with it');

    is_error(api($t, GET => "zones/ids/removed?kind=$_"), 400,
             qr/must be "removed" or "excepted"/, "kind=$_ is refused")
        for '', 'built', 'except';
    is_error($t->get('/read/zones/ids/removed?kind=excepted'), 403,
             qr/write=on/, 'the list needs write=on');

    my %want = (
        a1 => ['', 1, '', 'a1 excepted'],
        a2 => [1, 1, '', 'a2 removed'],
        b2 => [1, '', '', 'b2 removed'],
        b3 => ['', '', '', undef],
        'unheard-of' => ['', '', '', ''],
    );

    for my $key (sort keys %want) {
        my ($removed, $excepted, $chosen, $why) = @{ $want{$key} };
        my $one = expression('ids', $key);

        is_deeply({ map { $_ => !!$one->{$_} } qw(removed excepted
                                                image_excepted) },
                  { removed => !!$removed, excepted => !!$excepted,
                    image_excepted => !!$chosen }, "GET .../keys explains $key");
        is(fires('ids', $key), $why, "GET keys explains $key");
    }

    ok(expression('chosen', 'chosen')->{image_excepted},
       'an exception of the builder is one');
    is(zone_state($t, 'chosen')->{image}{excepted}, 2,
       'the state has the number of exceptions of the builder');
    is({ metrics('chosen') }->{'image_excepted '}, 2, 'so have the metrics');
    is(zone_state($t, 'ids')->{image}{excepted}, 0,
       'removed and excepted keys are none');
    is(fires('chosen', 'chosen'), 'chosen image_excepted', 'GET keys says so');
    is(fires('chosen', 'both'), 'both excepted', 'GET keys names the later kind');
    is(listed('chosen', 'kind=excepted'), 'both',
       'an excepted key that the image brings is listed');
    is(excepted('chosen'), 1, 'and counted');
};


# Many keys of other kinds are passed over in pieces.

subtest 'few keys among many of another kind are listed' => sub {
    my @many = keys_of('many', 2000);

    api($t, POST => 'zones/chosen/remove', body => join "\n", @many)->status
        == 200 or die 'not removed';
    except('chosen', 'ready1', 'ready2');

    is(listed('chosen', 'kind=excepted'), 'both ready1 ready2',
       'three excepted keys among 2000 removed ones');
    is(scalar(split ' ', listed('chosen', 'limit=10000')), 2000,
       'and the removed ones');
    api($t, POST => 'zones/chosen/clear?only=removed')->status == 200
        or die 'not restored';
    is(listed('chosen', 'kind=excepted'), 'both ready1 ready2',
       'restoring removed keys leaves excepted keys as they are');
    is(listed('chosen', ''), '', 'no key is removed then');
    is(forget('chosen')->status, 200, 'the zone forgets its excepted keys');
    ok(expression('chosen', $_)->{image_excepted},
       "$_ is still an exception of the builder") for qw(chosen both);
};


subtest 'excepted keys are forgotten' => sub {
    for my $zone (qw(ids memory)) {
        except($zone, 'ready1', 'c1', 'c2');

        if ($zone eq 'ids') {
            api($t, POST => "zones/$zone/remove", body => "d1\nc2\n")->status
                == 200 or die 'not removed';
        }

        my $count = excepted($zone);
        my $generation = generation($t, $zone);
        my $token = zone_state($t, $zone)->{token};
        my $mark = $t->log_mark;
        my $response = forget($zone);

        is($response->status, 200, "zone $zone forgets its excepted keys")
            or diag($response);
        is($response->json->{generation}, $generation,
           'the same generation serves');
        is($response->json->{zone}{token}, $token, 'the token is the same');
        is($response->json->{zone}{removals}{excepted}, 0,
           'the state has no excepted key');
        is(listed($zone, 'kind=excepted'), '', 'none is listed');
        like($t->log_since($mark),
             qr/"$zone": \d+ excepted keys are restored/,
             'the log has their number');
        is(request($zone, 'c2', 'd1'), '00', 'removed keys stay removed')
            if $zone eq 'ids';
        is(request($zone, 'c1'), '1', 'an excepted key is present again');
        is(request($zone, 'c1'), '0', 'and is excepted again at once');
        cmp_ok($count, '>=', 3, 'there were excepted keys');
    }

    is_error($t->request(POST => '/read/zones/ids/clear?only=excepted'), 403,
             qr/write=on/, 'this needs write=on');
    is_error(api($t, POST => 'zones/ids/clear?only=excepted&serving=1-0'), 412,
             qr/nothing was changed/, 'serving= holds for it');
    is(excepted('ids'), 1, 'a refused request changes nothing');
};


# Saves the image of a zone into NAME.bloom.

sub save {
    my ($zone, $name) = @_;

    my $response = api($t, GET => "zones/$zone/image");

    $response->status == 200 or die "no image:\n$response";
    $t->write_file("$name.bloom", $response->body);
}


subtest 'what is excepted after the clear stays' => sub {
    for my $zone (qw(ids memory)) {
        except($zone, 'ready2');
        forget($zone)->status == 200 or die 'not forgotten';
        except($zone, 'ready3');
        reload_file($zone);
        is(listed($zone, 'kind=excepted'), 'ready3',
           "zone $zone keeps what was excepted after the clear when its image is"
           . ' loaded again');
    }

    except('ids', 'ready4');
    save('ids', 'later');
    is(upload_image($t, 'ids', 'later')->status, 200,
       'an image is saved and uploaded');
    is(listed('ids', 'kind=excepted'), 'ready3 ready4',
       'it brings what was excepted after the clear');
    is(zone_state($t, 'ids')->{image}{excepted}, 0,
       'excepted keys of an image are no exceptions of its builder');
    reload_file('ids');
    is(excepted('ids'), 0, 'another image forgets excepted keys');
};


subtest 'an image saved before the clear does not bring keys back' => sub {
    except('ids', 'ready1', 'd2', 'd3');
    save('ids', 'before');
    forget('ids')->status == 200 or die 'not forgotten';
    is(upload_image($t, 'ids', 'before')->status, 200, 'it is uploaded');
    is(excepted('ids'), 0, 'its excepted keys are forgotten');
    is(listed('ids', ''), 'a2 b2 c2 d1', 'its removed keys are not');

    $t->kill_all;
    $t->run;
    is(excepted('ids'), 0, 'nor does a restart bring them back');
    is(excepted('memory'), 0, 'a restart forgets excepted keys');

    # the checkpoint was written before the clear, and nothing was loaded since

    except('slow', 'ready1');
    is(api($t, POST => 'zones/slow/checkpoint')->status, 200,
       'a checkpoint is written');
    forget('slow')->status == 200 or die 'not forgotten';
    $t->kill_all;
    $t->run;
    is(excepted('slow'), 0, 'a checkpoint does not bring them back');

    # only the journal knows of the clear

    replace_file($t, 'memory.bloom', $t->read_file('before.bloom'));
    reload_file('memory');
    is(listed('memory', 'kind=excepted'), 'd2 d3 ready1',
       'the image brings excepted keys to a zone without a journal');
    is(forget('memory')->status, 200, 'that zone forgets them');
    is(excepted('memory'), 0, 'it has none then');
    reload_file('memory');
    is(excepted('memory'), 3, 'the image brings them back');
    replace_file($t, 'memory.bloom', $t->read_file('ids.bloom'));
};


subtest 'a clear forgets excepted keys' => sub {
    for my $zone (qw(ids memory)) {
        reload_file($zone);
        except($zone, 'ready1', 'a1');
        is(api($t, POST => "zones/$zone/clear")->status, 200,
           "zone $zone is cleared");
        is(excepted($zone), 0, 'it has no excepted key');
        is(request($zone, 'a1'), '1', 'an excepted key is present again');
    }
};


subtest 'without except=on no key is excepted' => sub {
    configure_feedback(except => 'except=off');
    $t->reload;

    my $before = zone_state($t, 'ids');
    is(request('ids', 'b5', 'b5'), '11', 'a false positive passes each time');

    my $after = zone_state($t, 'ids');
    is($after->{removals}{excepted}, $before->{removals}{excepted},
       'no key is excepted');
    is($after->{feedback}{not_excepted}, $before->{feedback}{not_excepted},
       'that does not count as not excepted');
    is($after->{feedback}{false_positives},
       $before->{feedback}{false_positives} + 2, 'both are counted');
};


done_testing;
