#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests what operators see of learned keys, and how they forget them: the state,
# the metrics, the lists, the explanation of a key, and POST clear?only=learned.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant BURST => 10;

my $t = BloomTest->new;
my @zones = qw(ids memory small slow excepted hosts);

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
$t->write_file('excepted.bloom', with_exceptions($t->read_file('plain.bloom'),
    [[1, 0, 'chosen'], [5, 0, 'both']]));

# The backend has no key, so each key of the images is a false positive.

sub configure_learning {
    my (%option) = @_;

    my $learn = $option{learn} // 'learn=on learn_rate=10000r/s learn_after=1s';

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
    bloom_zone zone=excepted file=excepted.bloom;
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
        (map { my $how = $_ eq 'slow' ? $learn =~ s/_rate=\S+/_rate=1r\/m/r
                                      : $learn;
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

configure_learning();
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


# Requests keys until they are learned: a generation has to serve for some time
# before the zone learns keys.

sub learn {
    my ($zone, @keys) = @_;

    wait_until(sub { request($zone, @keys) !~ /1/ })
        or die "zone $zone does not learn @keys";
}


sub forget {
    my ($zone) = @_;

    return api($t, POST => "zones/$zone/clear?only=learned");
}


sub learned { return zone_state($t, $_[0])->{removals}{learned} }


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


# Returns what the summary of GET keys says of a zone.

sub said {
    my ($zone, $key) = @_;

    my ($said) = map { /: zone $zone (.*)/ ? $1 : () }
        @{ api($t, GET => "keys?key=$key")->json->{summary} };

    return $said;
}


subtest 'state and metrics count learned keys' => sub {
    my $state = zone_state($t, 'ids');

    is_deeply($state->{removals}, { limit => 10000, count => 0, learned => 0,
                                    learned_limit => 5000 },
              'no key is learned at first');
    is_deeply($state->{feedback},
              { absent => 0, false_positives => 0, learned_rejected => 0,
                measured_fpr => undef, measured_fpr_without_learning => undef,
                learned => 0, not_learned => 0, not_learned_doubt => 0,
                not_learned_full => 0, not_learned_rate => 0 },
              'the counters are 0 at first');
    is(zone_state($t, 'none')->{removals}{learned_limit}, 0,
       'removals=1 has no room for a learned key');

    learn('ids', 'ready1');
    my $before = zone_state($t, 'ids')->{feedback};
    is(request('ids', keys_of('a', 4), keys_of('a', 4), 'unheard-of'),
       '111100000', 'a false positive passes once');

    $state = zone_state($t, 'ids');
    is($state->{feedback}{learned}, 5, 'the state counts what was learned');
    is($state->{feedback}{not_learned}, $before->{not_learned},
       'each of the last false positives was learned');
    is($state->{feedback}{false_positives}, $before->{false_positives} + 4,
       'false positives that reached the backend are counted');
    is($state->{feedback}{absent}, $before->{absent} + 5,
       'requests for learned keys count as absent');
    is($state->{feedback}{learned_rejected}, $before->{learned_rejected} + 4,
       'of these, those whose key is a learned one are counted');

    my ($wrong, $right) = ($before->{false_positives} + 4,
                           $before->{absent} + 5);

    is_rate($state->{feedback}{measured_fpr}, $wrong / ($wrong + $right),
            'the measured rate counts a learned key once');
    is_rate($state->{feedback}{measured_fpr_without_learning},
            ($wrong + $before->{learned_rejected} + 4) / ($wrong + $right),
            'the other rate is what it would be without learning');
    is($state->{removals}{learned}, 5, 'the state has the learned keys');
    is($state->{removals}{count}, 5, 'they take room of removed keys');

    my %metrics = metrics('ids');
    my %want = (
        'feedback_learned_keys_total ' => 5,
        'feedback_not_learned_keys_total reason="doubt"'
            => $state->{feedback}{not_learned_doubt},
        'feedback_not_learned_keys_total reason="full"' => 0,
        'feedback_not_learned_keys_total reason="rate"' => 0,
        'feedback_learned_rejected_total '
            => $before->{learned_rejected} + 4,
        'learned_exceptions ' => 5,
        'learned_exceptions_limit ' => 5000,
        'removed_keys ' => 5,
        'learned_keys_total ' => 0,
    );

    is($metrics{$_}, $want{$_}, "the metric $_ is $want{$_}") for sort keys %want;
};


subtest 'requests are counted that only a learned key stops' => sub {
    my $rejected = sub {
        my ($zone, @paths) = @_;

        my $before = zone_state($t, $zone)->{feedback};
        $t->pipeline(@paths);
        my $after = zone_state($t, $zone)->{feedback};

        return join ' ', map { $after->{$_} - $before->{$_} }
                             qw(learned_rejected absent false_positives);
    };

    is($rejected->('ids', map { "/measured?id=$_" } 'a1', 'a2', 'a1', 'none'),
       '3 4 0', 'also under a bloom_feedback without learn=on');
    is($rejected->('ids', '/plain?id=a1', '/plain?id=a1'), '0 0 0',
       'but not without a bloom_feedback');
    is($rejected->('ids', map { ("/plain?id=$_", '/ids?id=none') } 'a1', 'a2'),
       '0 2 0', 'an absent key does not count as the learned key before it');
    is($rejected->('ids', '/split?id=a1,a2'), '0 1 0', 'nor does a list of keys');

    api($t, POST => 'zones/ids/remove', body => "a1\n")->status == 200
        or die 'not removed';
    is($rejected->('ids', '/ids?id=a1', '/ids?id=a2'), '1 2 0',
       'a learned key that was removed, too, would be absent anyway');
    api($t, POST => 'zones/ids/clear?only=removed')->status == 200
        or die 'not restored';

    is($rejected->('excepted', '/excepted?id=both', '/excepted?id=chosen'),
       '0 2 0', 'so would one that the builder of the image chose');

    learn('hosts', 'ready.example');
    request('hosts', 'shop.example', 'up.example', 'www.up.example');
    is($rejected->('hosts', map { "/hosts?id=$_" } 'SHOP.example', 'none.example',
                                                   'www.up.example'),
       '2 3 0', 'in a form with several expressions they are counted, too');
};


subtest 'the state says why keys are not learned' => sub {
    my $reasons = sub {
        my $f = zone_state($t, $_[0])->{feedback};
        is($f->{not_learned}, $f->{not_learned_doubt} + $f->{not_learned_full}
                              + $f->{not_learned_rate},
           'not_learned is the sum over all reasons');
        return $f;
    };

    add($t, 'ids', ['b1']);
    my $before = $reasons->('ids');
    is(request('ids', 'b1', 'b1'), '11', 'an added key passes again and again');
    is($reasons->('ids')->{not_learned_doubt},
       $before->{not_learned_doubt} + 2, 'the reason is a doubt');

    learn('small', 'ready1', 'ready2');
    is(request('small', keys_of('a', 3), 'ready1'), '1110',
       'a zone learns up to half of removals');
    is($reasons->('small')->{not_learned_full}, 3,
       'the reason is that the share is used');
    is_deeply(zone_state($t, 'small')->{removals},
              { limit => 4, count => 2, learned => 2, learned_limit => 2 },
              'the state shows that it is');
    is(api($t, POST => 'zones/small/remove', body => "b1\nb2\n")->status, 200,
       'the other half is left for removed keys');

    learn('slow', 'ready1');
    request('slow', keys_of('a', 20), keys_of('b', 20), keys_of('c', 20));
    my $after = $reasons->('slow');
    cmp_ok($after->{learned}, '>=', BURST, 'a burst of keys is learned');
    cmp_ok($after->{not_learned_rate}, '>=', 61 - BURST - 30,
           'the reason for others is the rate');
    is($after->{learned} + $after->{not_learned}, $after->{false_positives},
       'each false positive is counted as learned or as not learned');

    my %metrics = metrics('small');
    is($metrics{'feedback_not_learned_keys_total reason="full"'}, 3,
       'the metrics have the reason, too');
};


subtest 'lists and explanations tell learned keys from removed ones' => sub {
    api($t, POST => 'zones/ids/remove', body => "b2\na2\n")->status == 200
        or die 'not removed';

    is(listed('ids', ''), 'a2 b2', 'GET removed lists removed keys only');
    is(listed('ids', 'kind=removed'), 'a2 b2', '?kind=removed says the same');
    is(listed('ids', 'kind=learned'), 'a1 a2 a3 a4 ready1',
       '?kind=learned lists learned keys only');

    my $list = api($t, GET => 'zones/ids/removed?kind=learned&limit=2')->json;
    is($list->{count}, 5, 'the list has their number');
    is($list->{limit}, 5000, 'and up to how many the zone learns');
    is(scalar @{ $list->{keys} }, 2, 'limit= cuts the list off');
    like($list->{keys}[0]{time}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
         'each key has a time');
    is(scalar @{ api($t, GET => 'zones/ids/removed?kind=learned&from='
                                . $list->{next})->json->{keys} }, 3,
       'from= goes on with it');

    is_error(api($t, GET => "zones/ids/removed?kind=$_"), 400,
             qr/must be "removed" or "learned"/, "kind=$_ is refused")
        for '', 'built', 'learner';
    is_error($t->get('/read/zones/ids/removed?kind=learned'), 403,
             qr/write=on/, 'the list needs write=on');

    my %want = (
        a1 => ['', 1, '', 'a1 is a learned key: the backend did not know it'],
        a2 => [1, 1, '', 'a2 was removed'],
        b2 => [1, '', '', 'b2 was removed'],
        b3 => ['', '', '', undef],
        'unheard-of' => ['', '', '', ''],
    );

    for my $key (sort keys %want) {
        my ($removed, $learned, $excepted, $why) = @{ $want{$key} };
        my $one = expression('ids', $key);

        is_deeply({ map { $_ => !!$one->{$_} } qw(removed learned excepted) },
                  { removed => !!$removed, learned => !!$learned,
                    excepted => !!$excepted }, "GET .../keys explains $key");
        is(said('ids', $key), !defined $why ? undef
                              : 'does not find it' . ($why && ": $why"),
           "GET keys explains $key");
    }

    ok(expression('excepted', 'chosen')->{excepted},
       'an exception of the builder is one');
    is(zone_state($t, 'excepted')->{image}{excepted}, 2,
       'the state has the number of exceptions of the builder');
    is({ metrics('excepted') }->{'image_excepted '}, 2, 'so have the metrics');
    is(zone_state($t, 'ids')->{image}{excepted}, 0,
       'removed and learned keys are none');
    is(said('excepted', 'chosen'),
       'does not find it: chosen is an exception that the builder of the image'
       . ' chose', 'GET keys says so');
    is(said('excepted', 'both'), 'does not find it: both is a learned key: the'
       . ' backend did not know it', 'GET keys names the later kind');
    is(listed('excepted', 'kind=learned'), 'both',
       'a learned key that the image brings is listed');
    is(learned('excepted'), 1, 'and counted');
};


# Many keys of other kinds are passed over in pieces.

subtest 'few keys among many of another kind are listed' => sub {
    my @many = keys_of('many', 2000);

    api($t, POST => 'zones/excepted/remove', body => join "\n", @many)->status
        == 200 or die 'not removed';
    learn('excepted', 'ready1', 'ready2');

    is(listed('excepted', 'kind=learned'), 'both ready1 ready2',
       'three learned keys among 2000 removed ones');
    is(scalar(split ' ', listed('excepted', 'limit=10000')), 2000,
       'and the removed ones');
    api($t, POST => 'zones/excepted/clear?only=removed')->status == 200
        or die 'not restored';
    is(listed('excepted', 'kind=learned'), 'both ready1 ready2',
       'restoring removed keys leaves learned keys as they are');
    is(listed('excepted', ''), '', 'no key is removed then');
    is(forget('excepted')->status, 200, 'the zone forgets its learned keys');
    ok(expression('excepted', $_)->{excepted},
       "$_ is still an exception of the builder") for qw(chosen both);
};


subtest 'learned keys are forgotten' => sub {
    for my $zone (qw(ids memory)) {
        learn($zone, 'ready1', 'c1', 'c2');

        if ($zone eq 'ids') {
            api($t, POST => "zones/$zone/remove", body => "d1\nc2\n")->status
                == 200 or die 'not removed';
        }

        my $count = learned($zone);
        my $generation = generation($t, $zone);
        my $token = zone_state($t, $zone)->{token};
        my $mark = $t->log_mark;
        my $response = forget($zone);

        is($response->status, 200, "zone $zone forgets its learned keys")
            or diag($response);
        is($response->json->{generation}, $generation,
           'the same generation serves');
        is($response->json->{zone}{token}, $token, 'the token is the same');
        is($response->json->{zone}{removals}{learned}, 0,
           'the state has no learned key');
        is(listed($zone, 'kind=learned'), '', 'none is listed');
        like($t->log_since($mark),
             qr/"$zone": \d+ learned keys are restored/,
             'the log has their number');
        is(request($zone, 'c2', 'd1'), '00', 'removed keys stay removed')
            if $zone eq 'ids';
        is(request($zone, 'c1'), '1', 'a learned key is present again');
        is(request($zone, 'c1'), '0', 'and is learned again at once');
        cmp_ok($count, '>=', 3, 'there were learned keys');
    }

    is_error($t->request(POST => '/read/zones/ids/clear?only=learned'), 403,
             qr/write=on/, 'this needs write=on');
    is_error(api($t, POST => 'zones/ids/clear?only=learned&serving=1-0'), 412,
             qr/nothing was changed/, 'serving= holds for it');
    is(learned('ids'), 1, 'a refused request changes nothing');
};


# Saves the image of a zone into NAME.bloom.

sub save {
    my ($zone, $name) = @_;

    my $response = api($t, GET => "zones/$zone/image");

    $response->status == 200 or die "no image:\n$response";
    $t->write_file("$name.bloom", $response->body);
}


subtest 'what is learned after the clear stays' => sub {
    for my $zone (qw(ids memory)) {
        learn($zone, 'ready2');
        forget($zone)->status == 200 or die 'not forgotten';
        learn($zone, 'ready3');
        reload_file($zone);
        is(listed($zone, 'kind=learned'), 'ready3',
           "zone $zone keeps what was learned after the clear when its image is"
           . ' loaded again');
    }

    learn('ids', 'ready4');
    save('ids', 'later');
    is(upload_image($t, 'ids', 'later')->status, 200,
       'an image is saved and uploaded');
    is(listed('ids', 'kind=learned'), 'ready3 ready4',
       'it brings what was learned after the clear');
    is(zone_state($t, 'ids')->{image}{excepted}, 0,
       'learned keys of an image are no exceptions of its builder');
    reload_file('ids');
    is(learned('ids'), 0, 'another image forgets learned keys');
};


subtest 'an image saved before the clear does not bring keys back' => sub {
    learn('ids', 'ready1', 'd2', 'd3');
    save('ids', 'before');
    forget('ids')->status == 200 or die 'not forgotten';
    is(upload_image($t, 'ids', 'before')->status, 200, 'it is uploaded');
    is(learned('ids'), 0, 'its learned keys are forgotten');
    is(listed('ids', ''), 'a2 b2 c2 d1', 'its removed keys are not');

    $t->kill_all;
    $t->run;
    is(learned('ids'), 0, 'nor does a restart bring them back');
    is(learned('memory'), 0, 'a restart forgets learned keys');

    # the checkpoint was written before the clear, and nothing was loaded since

    learn('slow', 'ready1');
    is(api($t, POST => 'zones/slow/checkpoint')->status, 200,
       'a checkpoint is written');
    forget('slow')->status == 200 or die 'not forgotten';
    $t->kill_all;
    $t->run;
    is(learned('slow'), 0, 'a checkpoint does not bring them back');

    # only the journal knows of the clear

    replace_file($t, 'memory.bloom', $t->read_file('before.bloom'));
    reload_file('memory');
    is(listed('memory', 'kind=learned'), 'd2 d3 ready1',
       'the image brings learned keys to a zone without a journal');
    is(forget('memory')->status, 200, 'that zone forgets them');
    is(learned('memory'), 0, 'it has none then');
    reload_file('memory');
    is(learned('memory'), 3, 'the image brings them back');
    replace_file($t, 'memory.bloom', $t->read_file('ids.bloom'));
};


subtest 'a clear forgets learned keys' => sub {
    for my $zone (qw(ids memory)) {
        reload_file($zone);
        learn($zone, 'ready1', 'a1');
        is(api($t, POST => "zones/$zone/clear")->status, 200,
           "zone $zone is cleared");
        is(learned($zone), 0, 'it has no learned key');
        is(request($zone, 'a1'), '1', 'a learned key is present again');
    }
};


subtest 'without learn=on nothing is learned' => sub {
    configure_learning(learn => 'learn=off');
    $t->reload;

    my $before = zone_state($t, 'ids');
    is(request('ids', 'b5', 'b5'), '11', 'a false positive passes each time');

    my $after = zone_state($t, 'ids');
    is($after->{removals}{learned}, $before->{removals}{learned},
       'nothing is learned');
    is($after->{feedback}{not_learned}, $before->{feedback}{not_learned},
       'that does not count as not learned');
    is($after->{feedback}{false_positives},
       $before->{feedback}{false_positives} + 2, 'both are counted');
};


done_testing;
